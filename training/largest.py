"""Adds to a student's weights how large each column of its states gets, so that `export` can even
them out.

    python -m training.largest STUDENT.npz

Reads some texts of WORK/train, which `training.gather` wrote. A few columns are ten times as large
as all others: rounded to bytes with one scale for all, little would be left of those.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from training import corpus, models, weights
from training.fetch import work
from training.student import Packed, Student, attention, from_bert, pack

TEXTS = 96


def largest(student: Student, packed: Packed) -> dict[str, Tensor]:
    """By the matrix that the states are multiplied by: the largest of each of their columns."""
    found: dict[str, Tensor] = {}
    x = student.first_norm(student.words(packed.ids) + student.places(packed.places))
    for n, layer in enumerate(student.layers):
        stem = f"encoder.layer.{n}."
        query, key, value = layer.before(x)
        mixed = attention(query, key, value, packed).reshape(x.shape)
        found[f"{stem}attention.self.query"] = x
        x = layer.attend_norm(x + layer.attend_out(mixed))
        found[f"{stem}intermediate.dense"] = x
        inner = F.gelu(layer.grow(x))
        found[f"{stem}output.dense"] = inner
        x = layer.norm(x + layer.shrink(inner))
    return {name: states.abs().amax(0) for name, states in found.items()}


def main() -> None:
    """Writes the weights again, with what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("state", type=Path)
    given = parser.parse_args()
    state = weights.read_files([given.state])
    student = from_bert({name: torch.from_numpy(value) for name, value in state.items()}).eval()
    texts = list(corpus.lines(sorted((work() / "train").glob("texts.jsonl*"))))
    ids = models.pieces(work() / "weights" / "pieces.model")
    most: dict[str, Tensor] = {}
    with torch.no_grad():
        for row in ids(["passage: " + text for text in texts[:: len(texts) // TEXTS]]):
            for name, size in largest(student, pack([np.array(row)], "cpu")).items():
                most[name] = torch.maximum(most.get(name, size), size)
    added = {name + weights.MOST: size.numpy() for name, size in most.items()}
    halves = {name: value.astype(np.float16) for name, value in (state | added).items()}
    np.savez(given.state, allow_pickle=False, **halves)


if __name__ == "__main__":
    main()
