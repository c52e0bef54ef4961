"""Encoders in plain torch, loaded from the packed weight files.

`load(name, folder)` gives a model with everything needed to use it; `encode` turns rows of ids into
unit vectors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sentencepiece
import tokenizers
import torch
from torch import Tensor, nn
from torch.nn import functional

from training import weights
from training.student import Packed, Student, attention, batches, from_bert, pack, pooled

Texts = Sequence[str]
EPSILON = 1e-12
LONGEST = 512


class NomicLayer(nn.Module):
    """One layer of nomic-bert: rotary positions, a gated inner layer, no biases."""

    def __init__(self, width: int, inner: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attn = nn.ModuleDict(
            {
                "Wqkv": nn.Linear(width, 3 * width, bias=False),
                "out_proj": nn.Linear(width, width, bias=False),
            }
        )
        self.mlp = nn.ModuleDict(
            {
                "fc11": nn.Linear(width, inner, bias=False),
                "fc12": nn.Linear(width, inner, bias=False),
                "fc2": nn.Linear(inner, width, bias=False),
            }
        )
        self.norm1 = nn.LayerNorm(width, eps=EPSILON)
        self.norm2 = nn.LayerNorm(width, eps=EPSILON)

    def forward(self, states: Tensor, packed: Packed, turn: tuple[Tensor, Tensor]) -> Tensor:
        """States after the layer."""
        query, key, value = self.attn["Wqkv"](states).view(len(states), 3, self.heads, -1).unbind(1)
        mixed = attention(rotated(query, *turn), rotated(key, *turn), value, packed).reshape(
            states.shape
        )
        norms = (t for norm in (self.norm1, self.norm2) for t in (norm.weight, norm.bias))
        matrices = (self.attn["out_proj"], *(self.mlp[name] for name in ("fc11", "fc12", "fc2")))
        return after_attention(states, mixed, *norms, *(matrix.weight for matrix in matrices))


class Nomic(nn.Module):
    """nomic-embed-text: a BERT with rotary positions and gated inner layers."""

    def __init__(
        self, words: int, *, width: int = 768, inner: int = 3072, layers: int = 12, heads: int = 12
    ) -> None:
        super().__init__()
        self.part = width // heads
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(words, width),
                "token_type_embeddings": nn.Embedding(2, width),
            }
        )
        self.emb_ln = nn.LayerNorm(width, eps=EPSILON)
        self.encoder = nn.ModuleDict(
            {"layers": nn.ModuleList(NomicLayer(width, inner, heads) for _ in range(layers))}
        )

    def forward(self, packed: Packed) -> Tensor:
        """States of all tokens, in their order."""
        rate = 1 / 1000.0 ** (torch.arange(0, self.part, 2, device=packed.ids.device) / self.part)
        angle = packed.places[:, None, None] * rate
        turn = angle.cos(), angle.sin()
        held = self.embeddings
        states = self.emb_ln(
            held["word_embeddings"](packed.ids) + held["token_type_embeddings"].weight[0]
        )
        for layer in self.encoder["layers"]:
            states = layer(states, packed, turn)
        return states


def _rotated(states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Each half-pair of a head, turned by its place."""
    left, right = states.float().chunk(2, -1)
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], -1).to(
        states.dtype
    )


def _after(states: Tensor, mixed: Tensor, *held: Tensor) -> Tensor:
    """The rest of a layer, given its weights, so that one compiled form serves every layer."""
    norm1, bias1, norm2, bias2, out, up, gate, down = held
    width = (states.shape[-1],)
    states = functional.layer_norm(
        states + functional.linear(mixed, out), width, norm1, bias1, EPSILON
    )
    gated = functional.linear(states, up) * functional.silu(functional.linear(states, gate))
    return functional.layer_norm(
        states + functional.linear(gated, down), width, norm2, bias2, EPSILON
    )


CUDA = torch.cuda.is_available()
rotated = torch.compile(_rotated, dynamic=True) if CUDA else _rotated
after_attention = torch.compile(_after, dynamic=True) if CUDA else _after


@dataclass(frozen=True)
class Encoder:
    """A model with its tokenizer and the way it is used."""

    name: str
    model: nn.Module
    encode_ids: Callable[[Texts], list[list[int]]]
    """Ids of texts with the two special tokens around them, cut to `LONGEST`."""
    pooling: str
    dim: int
    query_prefix: str
    passage_prefix: str

    def vectors(self, texts: Texts, prefix: str = "") -> Tensor:
        """Unit vectors of texts."""
        rows = self.encode_ids([prefix + text for text in texts])
        return encode(self.model, [np.array(row) for row in rows], self.pooling)


USE = {
    "e5": ("mean", "query: ", "passage: "),
    "gte": ("mean", "", ""),
    "bge": ("cls", "Represent this sentence for searching relevant passages: ", ""),
    "nomic": ("mean", "search_query: ", "search_document: "),
}


def load(name: str, folder: Path | str) -> Encoder:
    """One of the models whose weight files lie in the folder."""
    folder = Path(folder)
    pooling, query, passage = USE[name]
    arrays = weights.read(folder, name)
    model = from_arrays(arrays)
    ids = (
        pieces(folder / "pieces.model") if name == "e5" else word_pieces(folder / "wordpiece.json")
    )
    return Encoder(
        name, model.eval(), ids, pooling, arrays[weights.WORD_TABLE].shape[1], query, passage
    )


def from_arrays(arrays: dict[str, np.ndarray], heads: int = 12) -> Student | Nomic:
    """A model of the shape that the arrays have."""
    if "emb_ln.weight" not in arrays:
        return from_bert(
            {name: torch.from_numpy(value) for name, value in arrays.items()}, heads=heads
        )
    words, width = arrays[weights.WORD_TABLE].shape
    count = 1 + max(
        int(name.split(".")[2]) for name in arrays if name.startswith("encoder.layers.")
    )
    inner = arrays["encoder.layers.0.mlp.fc11.weight"].shape[0]
    with torch.device("meta"):
        model = Nomic(words, width=width, inner=inner, layers=count, heads=heads)
    state = {
        name: torch.from_numpy(np.ascontiguousarray(arrays[name], np.float32))
        for name in model.state_dict()
    }
    model.load_state_dict(state, assign=True)
    return model


def pieces(path: Path) -> Callable[[Texts], list[list[int]]]:
    """The tokenizer of the cut vocabulary: its ids are the model's."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    start, end = processor.bos_id(), processor.eos_id()

    def ids(texts: Texts) -> list[list[int]]:
        return [
            [start, *row[: LONGEST - 2], end]
            for row in processor.encode(list(texts), num_threads=-1)
        ]

    return ids


def word_pieces(path: Path) -> Callable[[Texts], list[list[int]]]:
    """The tokenizer of the English models."""
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)

    def ids(texts: Texts) -> list[list[int]]:
        return [row.ids for row in tokenizer.encode_batch_fast(list(texts))]

    return ids


@torch.no_grad()
def encode(
    model: nn.Module, rows: Sequence[np.ndarray], pooling: str = "mean", *, budget: int = 0
) -> Tensor:
    """Unit vectors of rows of ids, on the model's device, in the order given."""
    device = next(model.parameters()).device
    cuda = device.type == "cuda"
    found: Tensor | None = None
    for batch in batches([len(row) for row in rows], budget or (400_000 if cuda else 2_000)):
        packed = pack([rows[place] for place in batch], device.type)
        with torch.autocast(device.type, dtype=torch.float16, enabled=cuda):
            states = model(packed)
        if pooling == "cls":
            vectors = functional.normalize(states[packed.starts[:-1].long()].float(), dim=-1)
        else:
            vectors = pooled(states, packed.bounds[:-1], packed.bounds[1:])
        if found is None:
            found = torch.empty(
                len(rows),
                vectors.shape[1],
                device=device,
                dtype=torch.half if cuda else torch.float32,
            )
        found[torch.tensor(batch, device=device)] = vectors.to(found.dtype)
    if found is None:
        raise ValueError("no rows to encode")
    return found
