"""Measures a model's vectors on sets that `cut_sets` has cut: nDCG@10 by file, evidence in the
first five passages.
"""

from __future__ import annotations

import json
import lzma
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from training.student import Student, pack, pooled

WINDOW, STRIDE, LONGEST = 64, 48, 512
SHORT = 192


@dataclass(slots=True)
class MeasuredSet:
    """One set; `passages` are workspace, path, first line, last line, length of the heading,
    text.
    """

    name: str
    passages: list[list[Any]]
    questions: list[dict[str, Any]]

    @property
    def texts(self) -> list[str]:
        """What a model is given for each passage."""
        return [p[5] for p in self.passages]


def load(path: Path, most_questions: int = 300) -> list[MeasuredSet]:
    """All sets, each with at most so many questions, evenly taken."""
    out = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            step = max(1, math.ceil(len(row["questions"]) / most_questions))
            out.append(MeasuredSet(row["name"], row["passages"], row["questions"][::step]))
    return out


def ndcg(paths: Sequence[str], grades: Mapping[str, int], most: int = 10) -> float:
    """nDCG of the first files."""

    def gain(found: Sequence[int]) -> float:
        return math.fsum((2**g - 1) / math.log2(i + 2) for i, g in enumerate(found))

    return gain([grades.get(p, 0) for p in paths[:most]]) / gain(
        sorted(grades.values(), reverse=True)[:most]
    )


def score(one: MeasuredSet, scores: Tensor) -> tuple[float, float | None]:
    """Mean nDCG@10 by file, and the share of evidence lines in the first five passages where lines
    are labelled.
    """
    of_workspace = defaultdict(list)
    for n, passage in enumerate(one.passages):
        of_workspace[passage[0]].append(n)
    gains, covers = [], []
    for row, question in enumerate(one.questions):
        places = torch.tensor(of_workspace[question["workspace"]], device=scores.device)
        own = scores[row][places]
        best = places[own.topk(min(120, len(places))).indices].tolist()
        gains.append(
            ndcg(list(dict.fromkeys(one.passages[n][1] for n in best)), question["grades"])
        )
        if question["spans"]:
            five = [one.passages[n] for n in best[:5]]
            hit = [
                any(p[1] == d and p[2] <= b and p[3] >= a for p in five)
                for d, a, b in question["spans"]
            ]
            covers.append(sum(hit) / len(hit))
    return float(np.mean(gains)), float(np.mean(covers)) if covers else None


def best_of(found: Tensor, owners: Tensor, count: int) -> Tensor:
    """The best window of each passage for every question."""
    out = torch.full((len(found), count), -1.0, device=found.device)
    return out.scatter_reduce(1, owners[None].expand(len(found), -1), found, "amax")


def coarse(vectors: Tensor, dims: int, levels: int = 7) -> Tensor:
    """Vectors as a store keeps windows: the leading dimensions in whole steps, four bits for seven
    levels.
    """
    short = F.normalize(vectors[:, :dims].float(), dim=-1)
    step = short.abs().amax(1, keepdim=True) / levels
    return F.normalize((short / step).round().clamp(-levels, levels) * step, dim=-1)


class StudentEncoder:
    """A student with its pieces: whole passages, and windows of the same pass."""

    def __init__(
        self, student: Student, ids_of: Callable[[Sequence[str]], list[np.ndarray]], device: str
    ) -> None:
        self.student, self.ids_of, self.device = student, ids_of, device
        begin, end = ids_of([""])[0][[0, -1]]
        self.begin, self.end = int(begin), int(end)
        self.marks = {r: ids_of([t])[0][1:-1] for r, t in (("q", "query: "), ("p", "passage: "))}

    def framed(self, ids: np.ndarray, role: str) -> np.ndarray:
        """Pieces with the mark of their role, a beginning and an end."""
        room = LONGEST - len(self.marks[role]) - 2
        return np.concatenate([[self.begin], self.marks[role], ids[:room], [self.end]])

    @torch.no_grad()
    def run(
        self, rows: Sequence[np.ndarray], cuts: Sequence[Sequence[tuple[int, int]]]
    ) -> list[Tensor]:
        """For each row of pieces the unit means of its cuts."""
        budget = 400_000 if self.device == "cuda" else 2_000
        order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
        out: list[Tensor] = [torch.empty(0)] * len(rows)
        at = 0
        while at < len(order):
            upto, size = at, 0
            while upto < len(order) and (size + len(rows[order[upto]]) <= budget or upto == at):
                size += len(rows[order[upto]])
                upto += 1
            some = order[at:upto]
            packed = pack([rows[n] for n in some], self.device)
            with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
                states = self.student(packed).float()
            base = packed.bounds
            begins = np.array([base[i] + a for i, n in enumerate(some) for a, _ in cuts[n]])
            ends = np.array([base[i] + b for i, n in enumerate(some) for _, b in cuts[n]])
            made = pooled(states, begins, ends)
            for n, part in zip(some, made.split([len(cuts[n]) for n in some]), strict=True):
                out[n] = part
            at = upto
        return out

    def whole(self, texts: Sequence[str], role: str) -> Tensor:
        """One vector a text."""
        rows = [self.framed(ids[1:-1], role) for ids in self.ids_of(texts)]
        return torch.cat(self.run(rows, [[(0, len(r))] for r in rows]))

    def passages(self, one: MeasuredSet) -> tuple[Tensor, Tensor, Tensor]:
        """Whole vectors, windows of the same pass, and the passage that each window belongs to."""
        rows, cuts = [], []
        heads = self.ids_of([p[5][: p[4]] for p in one.passages])
        for ids, head in zip(self.ids_of(one.texts), heads, strict=True):
            row = self.framed(ids[1:-1], "p")
            first = (
                1 + len(self.marks["p"]) + min(len(head) - 2, len(row) - len(self.marks["p"]) - 3)
            )
            places = windows_of(len(row) - 1 - first)
            rows.append(row)
            cuts.append([(0, len(row))] + [(first + a, first + b) for a, b in places])
        made = self.run(rows, cuts)
        owners = torch.tensor([n for n, c in enumerate(cuts) for _ in c[1:]], device=self.device)
        return torch.stack([m[0] for m in made]), torch.cat([m[1:] for m in made]), owners


def windows_of(count: int) -> list[tuple[int, int]]:
    """Windows over so many pieces; the last one ends with them."""
    count = max(1, count)
    places = [(a, a + WINDOW) for a in range(0, max(1, count - WINDOW + STRIDE), STRIDE)]
    return [(max(0, min(a, count - WINDOW)), min(b, count)) for a, b in places]


def measure(
    encoder: StudentEncoder, sets: Sequence[MeasuredSet], say: Callable[[str], None]
) -> dict[str, Any]:
    """Every way of scoring on every set."""
    out: dict[str, Any] = {}
    for one in sets:
        asked = encoder.whole([q["text"] for q in one.questions], "q")
        whole, late, owners = encoder.passages(one)
        count = len(one.passages)
        by_whole = asked @ whole.T
        full = best_of(asked @ late.T, owners, count)
        small = best_of(
            F.normalize(asked[:, :SHORT], dim=-1) @ coarse(late, SHORT).T, owners, count
        )
        by = {
            "whole": by_whole,
            "late": full,
            "late+": by_whole + full,
            "late+4bit": by_whole + small,
        }
        out[one.name] = {name: score(one, found) for name, found in by.items()}
        shown = (
            f"{n} {v:.3f}" + (f"/{c:.3f}" if c is not None else "")
            for n, (v, c) in out[one.name].items()
        )
        say(f"{one.name} ({len(late) / count:.1f} windows): " + ", ".join(shown))
    for name in next(iter(out.values())):
        say(f"mean {name}: {np.mean([found[name][0] for found in out.values()]):.4f}")
    return out
