"""Writes the student's vectors for evaluation sets: a machine without a GPU can then fit a ranking to them.

    python -m training.vectors FOLDER OUT [pass|runs]

Whole vectors are int8 with a scale, windows four bits of their leading dimensions in the order of their passages, both
as one `vectors.npz`; `pass` takes windows from the pass over their passage, `runs` from runs of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from training import measure, models, weights
from training.measure import SHORT, StudentEncoder
from training.student import from_bert


def bytes_of(vectors: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Rows as signed bytes, and their scales."""
    scale = vectors.abs().amax(1, keepdim=True) / 127
    return (vectors / scale).round().to(torch.int8).cpu().numpy(), scale.half().cpu().numpy()


def half_bytes_of(vectors: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The leading dimensions of rows, two to a byte, and their scales."""
    short = F.normalize(vectors[:, :SHORT], dim=-1)
    scale = short.abs().amax(1, keepdim=True) / 7
    codes = (short / scale).round().to(torch.int8) + 8
    return (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8).cpu().numpy(), scale.half().cpu().numpy()


def main(folder: str, out: str, kind: str = "pass") -> None:
    """All sets, all questions."""
    held = Path(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    student = from_bert({k: torch.from_numpy(v) for k, v in weights.read(held / "out", "student").items()}).to(device)
    read = models.load("e5", held / "weights").encode_ids

    def ids_of(texts: Sequence[str]) -> list[np.ndarray]:
        return [np.array(row) for row in read(texts)]

    encoder = StudentEncoder(student.eval(), ids_of, device)
    arrays: dict[str, np.ndarray] = {}
    for one in measure.load(held / "sets" / "sets.json.xz", 10**9):
        whole, windows, owners = encoder.passages(one)
        if kind == "runs":
            windows, owners = encoder.separate(one)
        found = {
            "questions": encoder.whole([q["text"] for q in one.questions], "q").half().cpu().numpy(),
            "counts": np.bincount(owners.cpu().numpy(), minlength=len(one.passages)).astype(np.uint8),
        }
        found["whole"], found["whole_scale"] = bytes_of(whole)
        found["windows"], found["windows_scale"] = half_bytes_of(windows)
        arrays |= {f"{one.name}/{name}": value for name, value in found.items()}
        print(one.name, len(whole), len(windows), flush=True)
    np.savez(Path(out) / "vectors.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
