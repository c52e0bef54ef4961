"""The student: a BERT of any depth that runs many texts of different lengths end to end, without
padding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from training.weights import TURN

try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:  # an older torch, or one without the kernel
    varlen_attn = None

_EPS = 1e-12


class Packed(NamedTuple):
    """Texts one after another: their pieces, each piece's place in its text, and where each text
    begins.
    """

    ids: Tensor
    places: Tensor
    starts: Tensor
    longest: int
    bounds: np.ndarray
    """The starts once more, where the processor can read them without waiting for the device."""


def sent(array: np.ndarray, device: str) -> Tensor:
    """An array on the device; nothing waits for it to arrive."""
    made = torch.from_numpy(array)
    return made.pin_memory().to(device, non_blocking=True) if device == "cuda" else made


def pack(rows: Sequence[np.ndarray], device: str) -> Packed:
    """Lists of piece ids as one row."""
    lengths = np.array([len(r) for r in rows])
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(bounds[-1]) - np.repeat(bounds[:-1], lengths)
    made = (np.concatenate(rows).astype(np.int64), places, bounds.astype(np.int32))
    ids, place, start = (sent(a, device) for a in made)
    return Packed(ids, place, start, int(lengths.max()), bounds)


def _after(x: Tensor, found: Tensor, *held: Tensor) -> Tensor:
    """The rest of a layer, given its weights, so that one compiled form serves every layer."""
    out, out_b, norm, norm_b, grow, grow_b, shrink, shrink_b, last, last_b = held
    width = (x.shape[-1],)
    x = F.layer_norm(x + F.linear(found, out, out_b), width, norm, norm_b, _EPS)
    inner = F.gelu(F.linear(x, grow, grow_b))
    return F.layer_norm(x + F.linear(inner, shrink, shrink_b), width, last, last_b, _EPS)


after_attention = torch.compile(_after, dynamic=True) if torch.cuda.is_available() else _after


class Layer(nn.Module):
    """Attention and feed-forward, each followed by a norm."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.attend = nn.Linear(width, 3 * width)
        self.attend_out = nn.Linear(width, width)
        self.attend_norm = nn.LayerNorm(width, eps=_EPS)
        self.grow = nn.Linear(width, inner)
        self.shrink = nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width, eps=_EPS)

    def before(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values."""
        return self.attend(x).view(len(x), 3, self.heads, -1).unbind(1)

    def after(self, x: Tensor, found: Tensor) -> Tensor:
        """What follows attention."""
        parts = (self.attend_out, self.attend_norm, self.grow, self.shrink, self.norm)
        return after_attention(
            x, found.reshape(len(x), -1), *(t for p in parts for t in (p.weight, p.bias))
        )


class Student(nn.Module):
    """Piece states of the last layer, turned into the space of the vectors, in the order of the
    pieces.
    """

    def __init__(
        self, words: int, places: int, *, width: int, layers: int, heads: int, inner: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(places, width)
        self.first_norm = nn.LayerNorm(width, eps=_EPS)
        self.layers = nn.ModuleList(Layer(width, heads, inner) for _ in range(layers))
        self.turn = nn.Linear(width, width)
        nn.init.eye_(self.turn.weight)
        nn.init.zeros_(self.turn.bias)
        self.turns = True

    def forward(self, packed: Packed) -> Tensor:
        """One row a piece."""
        x = self.first_norm(self.words(packed.ids) + self.places(packed.places))
        for layer in self.layers:
            q, k, v = layer.before(x)
            x = layer.after(x, attention(q, k, v, packed))
        return self.turn(x) if self.turns else x


def attention(q: Tensor, k: Tensor, v: Tensor, packed: Packed) -> Tensor:
    """Each piece looks at those of its own text; the parts are (pieces, heads, width)."""
    starts, longest = packed.starts, packed.longest
    if varlen_attn is not None and q.is_cuda:
        return varlen_attn(
            q.contiguous(), k.contiguous(), v.contiguous(), starts, starts, longest, longest
        )
    # Everywhere else all pieces look at all, and a mask hides those of other texts: simple, and
    # dear for many.
    owners = torch.repeat_interleave(
        torch.arange(len(starts) - 1), (starts[1:] - starts[:-1]).long()
    )
    parts = (t.transpose(0, 1)[None] for t in (q, k, v))
    mask = owners[:, None] == owners[None]
    return F.scaled_dot_product_attention(*parts, attn_mask=mask)[0].transpose(0, 1)


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Places of rows, shortest first, so many together that they have at most `budget` tokens."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    found: list[list[int]] = [[]]
    size = 0
    for place in order:
        if found[-1] and size + lengths[place] > budget:
            found.append([])
            size = 0
        found[-1].append(place)
        size += lengths[place]
    return found


def pooled(states: Tensor, begins: np.ndarray, ends: np.ndarray) -> Tensor:
    """Unit means of runs of rows; runs may overlap."""
    lengths = ends - begins
    before = np.cumsum(lengths) - lengths
    rows = np.repeat(begins - before, lengths) + np.arange(lengths.sum())
    owners = np.repeat(np.arange(len(lengths)), lengths)
    picked = states.float()[sent(rows, states.device.type)]
    sums = picked.new_zeros(len(lengths), states.shape[1]).index_add(
        0, sent(owners, states.device.type), picked
    )
    return F.normalize(sums, dim=-1)


_NAMES = {
    "attend_out": "attention.output.dense",
    "attend_norm": "attention.output.LayerNorm",
    "grow": "intermediate.dense",
    "shrink": "output.dense",
    "norm": "output.LayerNorm",
}


def from_bert(weights: Mapping[str, Tensor], *, layers: int = 0, heads: int = 12) -> Student:
    """A student that begins as a BERT; with fewer `layers`, as every n-th of them."""
    count = 1 + max(int(k.split(".")[2]) for k in weights if k.startswith("encoder.layer."))
    layers = layers or count
    keep = [round(i * (count - 1) / max(1, layers - 1)) for i in range(layers)]
    words = weights["embeddings.word_embeddings.weight"]
    places = (
        weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    inner = weights["encoder.layer.0.intermediate.dense.weight"].shape[0]
    student = Student(
        len(words), len(places), width=words.shape[1], layers=layers, heads=heads, inner=inner
    )
    new = {"words.weight": words, "places.weight": places}
    new |= {f"first_norm.{t}": weights[f"embeddings.LayerNorm.{t}"] for t in ("weight", "bias")}
    for to, at in enumerate(keep):
        old = f"encoder.layer.{at}."
        for tail in ("weight", "bias"):
            parts = [weights[f"{old}attention.self.{n}.{tail}"] for n in ("query", "key", "value")]
            new[f"layers.{to}.attend.{tail}"] = torch.cat(parts)
            new |= {
                f"layers.{to}.{ours}.{tail}": weights[f"{old}{name}.{tail}"]
                for ours, name in _NAMES.items()
            }
    student.turns = f"{TURN}.weight" in weights
    turn = (
        {f"turn.{t}": weights[f"{TURN}.{t}"] for t in ("weight", "bias")} if student.turns else {}
    )
    student.load_state_dict({k: v.float() for k, v in (new | turn).items()}, strict=student.turns)
    return student


def to_bert(student: Student) -> dict[str, np.ndarray]:
    """The weights under BERT's names, as float32."""
    own = {k: v.detach().float().cpu().numpy() for k, v in student.state_dict().items()}
    out = {
        "embeddings.word_embeddings.weight": own["words.weight"],
        "embeddings.position_embeddings.weight": own["places.weight"],
        "embeddings.token_type_embeddings.weight": np.zeros_like(own["words.weight"][:1]),
    }
    out |= {f"embeddings.LayerNorm.{t}": own[f"first_norm.{t}"] for t in ("weight", "bias")}
    out |= {f"{TURN}.{t}": own[f"turn.{t}"] for t in ("weight", "bias")} if student.turns else {}
    for n in range(len(student.layers)):
        for tail in ("weight", "bias"):
            parts = np.split(own[f"layers.{n}.attend.{tail}"], 3)
            for name, part in zip(("query", "key", "value"), parts, strict=True):
                out[f"encoder.layer.{n}.attention.self.{name}.{tail}"] = part
            out |= {
                f"encoder.layer.{n}.{name}.{tail}": own[f"layers.{n}.{ours}.{tail}"]
                for ours, name in _NAMES.items()
            }
    return out


def warm(fraction: float, peak: float, *, rise: float = 0.04) -> float:
    """The learning rate at a fraction of the run: a short rise, then half a cosine down."""
    return (
        peak * min(1.0, fraction / rise) * (0.5 + 0.5 * math.cos(math.pi * min(1.0, fraction)))
        + 1e-6
    )
