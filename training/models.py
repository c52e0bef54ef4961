"""Encoders in plain torch, loaded from the packed weight files.

`load(name, folder)` gives a model with everything needed to use it; `encode` turns rows of ids into unit vectors.
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

Texts = Sequence[str]
EPSILON = 1e-12
LONGEST = 512


class Attention(nn.Module):
    """Attention of a BERT layer, under BERT's names."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.self = nn.ModuleDict({part: nn.Linear(width, width) for part in ("query", "key", "value")})
        self.output = nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": nn.LayerNorm(width, eps=EPSILON)})

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """States after attention, residual and norm."""
        batch, length, width = states.shape
        split = (batch, length, self.heads, width // self.heads)
        query, key, value = (self.self[part](states).view(split).transpose(1, 2) for part in ("query", "key", "value"))
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        return self.output["LayerNorm"](self.output["dense"](mixed) + states)


class Layer(nn.Module):
    """One BERT layer."""

    def __init__(self, width: int, inner: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
        self.output = nn.ModuleDict({"dense": nn.Linear(inner, width), "LayerNorm": nn.LayerNorm(width, eps=EPSILON)})

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """States after the layer."""
        states = self.attention(states, mask)
        wide = functional.gelu(self.intermediate["dense"](states))
        return self.output["LayerNorm"](self.output["dense"](wide) + states)


class Bert(nn.Module):
    """A BERT encoder without a head; its state dict has the names of the published weights."""

    def __init__(
        self,
        words: int,
        *,
        width: int = 384,
        inner: int = 1536,
        layers: int = 12,
        heads: int = 12,
        longest: int = LONGEST,
    ) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(words, width),
                "position_embeddings": nn.Embedding(longest, width),
                "token_type_embeddings": nn.Embedding(2, width),
                "LayerNorm": nn.LayerNorm(width, eps=EPSILON),
            }
        )
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer(width, inner, heads) for _ in range(layers))})

    def forward(self, ids: Tensor, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """States of all tokens.

        The mask is True where a token may be seen: (batch, length), or (batch, length, length) with a row for each
        token that looks. None means that every token sees all.
        """
        if positions is None:
            positions = torch.arange(ids.shape[1], device=ids.device)[None]
        held = self.embeddings
        states = held["word_embeddings"](ids) + held["position_embeddings"](positions)
        states = held["LayerNorm"](states + held["token_type_embeddings"].weight[0])
        mask = spread(mask)
        for layer in self.encoder["layer"]:
            states = layer(states, mask)
        return states


class NomicLayer(nn.Module):
    """One layer of nomic-bert: rotary positions, a gated inner layer, no biases."""

    def __init__(self, width: int, inner: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attn = nn.ModuleDict(
            {"Wqkv": nn.Linear(width, 3 * width, bias=False), "out_proj": nn.Linear(width, width, bias=False)}
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

    def forward(self, states: Tensor, mask: Tensor | None, turn: Callable[[Tensor], Tensor]) -> Tensor:
        """States after the layer."""
        batch, length, width = states.shape
        parts = self.attn["Wqkv"](states).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(turn(parts[0]), turn(parts[1]), parts[2], attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        states = self.norm1(states + self.attn["out_proj"](mixed))
        gated = self.mlp["fc11"](states) * functional.silu(self.mlp["fc12"](states))
        return self.norm2(states + self.mlp["fc2"](gated))


class Nomic(nn.Module):
    """nomic-embed-text: a BERT with rotary positions and gated inner layers."""

    def __init__(self, words: int, *, width: int = 768, inner: int = 3072, layers: int = 12, heads: int = 12) -> None:
        super().__init__()
        self.part = width // heads
        self.embeddings = nn.ModuleDict(
            {"word_embeddings": nn.Embedding(words, width), "token_type_embeddings": nn.Embedding(2, width)}
        )
        self.emb_ln = nn.LayerNorm(width, eps=EPSILON)
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList(NomicLayer(width, inner, heads) for _ in range(layers))})

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """States of all tokens; the mask as in Bert."""
        turn = rotary(self.part, ids.shape[1], ids.device)
        held = self.embeddings
        states = self.emb_ln(held["word_embeddings"](ids) + held["token_type_embeddings"].weight[0])
        mask = spread(mask)
        for layer in self.encoder["layers"]:
            states = layer(states, mask, turn)
        return states


def spread(mask: Tensor | None) -> Tensor | None:
    """A mask as attention takes it: for all heads, and for all tokens that look."""
    if mask is None:
        return None
    return mask[:, None, None] if mask.dim() == 2 else mask[:, None]


def rotary(part: int, length: int, device: torch.device) -> Callable[[Tensor], Tensor]:
    """A function that turns each half-pair of a head by its place (base 1000)."""
    rate = 1 / 1000.0 ** (torch.arange(0, part, 2, device=device) / part)
    angle = torch.outer(torch.arange(length, device=device), rate)
    cosine, sine = angle.cos(), angle.sin()

    def turn(states: Tensor) -> Tensor:
        left, right = states.float().chunk(2, -1)
        turned = torch.cat([left * cosine - right * sine, right * cosine + left * sine], -1)
        return turned.to(states.dtype)

    return turn


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
        return encode(self.model, self.encode_ids([prefix + text for text in texts]), self.pooling)


USE = {
    "e5": ("mean", "query: ", "passage: "),
    "gte": ("mean", "", ""),
    "bge": ("cls", "Represent this sentence for searching relevant passages: ", ""),
    "nomic": ("mean", "search_query: ", "search_document: "),
}


def load(name: str, folder: Path | str, layers: int | None = None) -> Encoder:
    """One of the models whose weight files lie in the folder."""
    folder = Path(folder)
    pooling, query, passage = USE[name]
    arrays = weights.read(folder, name)
    model = from_arrays(arrays, layers)
    ids = pieces(folder / "pieces.model") if name == "e5" else word_pieces(folder / "wordpiece.json")
    return Encoder(name, model.eval(), ids, pooling, arrays[weights.WORD_TABLE].shape[1], query, passage)


def from_arrays(arrays: dict[str, np.ndarray], layers: int | None = None, heads: int = 12) -> Bert | Nomic:
    """A model of the shape that the arrays have; with `layers`, only the first so many."""
    words, width = arrays[weights.WORD_TABLE].shape
    nomic = "emb_ln.weight" in arrays
    stem, up = ("encoder.layers.", "mlp.fc11.weight") if nomic else ("encoder.layer.", "intermediate.dense.weight")
    count = 1 + max(int(name.split(".")[2]) for name in arrays if name.startswith(stem))
    inner = arrays[f"{stem}0.{up}"].shape[0]
    count = min(count, layers or count)
    with torch.device("meta"):
        if nomic:
            model: Bert | Nomic = Nomic(words, width=width, inner=inner, layers=count, heads=heads)
        else:
            longest = arrays["embeddings.position_embeddings.weight"].shape[0]
            model = Bert(words, width=width, inner=inner, layers=count, heads=heads, longest=longest)
    wanted = model.state_dict()
    state = {name: torch.from_numpy(np.ascontiguousarray(arrays[name], np.float32)) for name in wanted}
    model.load_state_dict(state, assign=True)
    return model


def pieces(path: Path) -> Callable[[Texts], list[list[int]]]:
    """The tokenizer of the cut vocabulary: its ids are the model's."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    start, end = processor.bos_id(), processor.eos_id()

    def ids(texts: Texts) -> list[list[int]]:
        return [[start, *row[: LONGEST - 2], end] for row in processor.encode(list(texts), num_threads=-1)]

    return ids


def word_pieces(path: Path) -> Callable[[Texts], list[list[int]]]:
    """The tokenizer of the English models."""
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)

    def ids(texts: Texts) -> list[list[int]]:
        return [row.ids for row in tokenizer.encode_batch_fast(list(texts))]

    return ids


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Places of rows, shortest first, so many together that the padded batch has at most `budget` tokens."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    found: list[list[int]] = []
    for place in order:
        if found and (len(found[-1]) + 1) * lengths[place] <= budget:
            found[-1].append(place)
        else:
            found.append([place])
    return found


def padded(rows: Sequence[Sequence[int]], device: torch.device | str, pad: int = 1) -> tuple[Tensor, Tensor]:
    """Rows as one matrix of ids with its mask."""
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), lengths.max()), pad, np.int64)
    mask = np.arange(lengths.max())[None] < lengths[:, None]
    ids[mask] = np.concatenate([np.asarray(row) for row in rows])
    return torch.from_numpy(ids).to(device, non_blocking=True), torch.from_numpy(mask).to(device, non_blocking=True)


def pool(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """One unit vector a row: of the first token, or of the mean of all."""
    states = states.float()
    if pooling == "cls":
        return functional.normalize(states[:, 0], dim=-1)
    return functional.normalize((states * mask[..., None]).sum(1), dim=-1)


def pool_ranges(states: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Unit means of token ranges: `first` and `last` (exclusive) are (batch, windows); an empty range gives zeros."""
    sums = functional.pad(states.float().cumsum(1), (0, 0, 1, 0))
    width = states.shape[-1]
    ends = sums.gather(1, last[..., None].expand(-1, -1, width))
    starts = sums.gather(1, first[..., None].expand(-1, -1, width))
    return functional.normalize(ends - starts, dim=-1)


@torch.no_grad()
def encode(
    model: nn.Module,
    rows: Sequence[Sequence[int]],
    pooling: str = "mean",
    *,
    budget: int = 0,
    dtype: torch.dtype = torch.float16,
) -> Tensor:
    """Unit vectors of rows of ids, on the model's device, in the order given."""
    device = next(model.parameters()).device
    cuda = device.type == "cuda"
    found: Tensor | None = None
    for batch in batches([len(row) for row in rows], budget or (262_144 if cuda else 8_192)):
        ids, mask = padded([rows[place] for place in batch], device)
        with torch.autocast(device.type, dtype=dtype, enabled=cuda):
            states = model(ids, mask)
        vectors = pool(states, mask, pooling)
        if found is None:
            found = torch.empty(len(rows), vectors.shape[1], device=device, dtype=dtype if cuda else torch.float32)
        found[torch.tensor(batch, device=device)] = vectors.to(found.dtype)
    if found is None:
        raise ValueError("no rows to encode")
    return found
