"""Prove that no evaluation text is trained on.

    python -m training.proof TEXT.jsonl... --against FOLDER_OF_SETS [--drop]

Every run of 13 tokens (a token is a word, or one Chinese or Japanese character) of every evaluation
query and passage is looked for in the training text; a query or passage shorter than that is looked
for whole. `--drop` removes the groups with a hit. Exits non-zero if any hit remains.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

LENGTH = 13
SHORTEST = 4
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_POWERS = np.array(
    [pow(0x9E3779B97F4A7C15, power, 2**64) for power in range(LENGTH)], dtype=np.uint64
)
_TABLE_BITS = 30

Marks = npt.NDArray[np.uint64]


@lru_cache(maxsize=4_000_000)
def _mark(token: str) -> int:
    return int.from_bytes(blake2b(token.encode(), digest_size=8).digest(), "little")


def tokens(text: str) -> list[str]:
    """Lower-case words and single Chinese or Japanese characters."""
    return _TOKEN.findall(text.lower())


def _numbers(found: Sequence[str]) -> Marks:
    return np.fromiter(map(_mark, found), dtype=np.uint64, count=len(found))


def _whole(found: Sequence[str]) -> int:
    return _mark(" ".join(found)) ^ 0x5BD1E995


def grams(marks: Marks) -> Marks:
    """The hash of every run of 13 tokens."""
    count = len(marks) - LENGTH + 1
    if count <= 0:
        return np.empty(0, dtype=np.uint64)
    total = np.zeros(count, dtype=np.uint64)
    for at in range(LENGTH):
        total += marks[at : at + count] * _POWERS[at]
    return total


def evaluation_texts(folder: Path) -> Iterator[str]:
    """Titles and texts of every query and passage of every set."""
    for name in ("corpus.jsonl", "queries.jsonl"):
        for path in sorted(folder.glob(f"*/{name}")):
            with path.open(encoding="utf-8") as file:
                for line in file:
                    if line.strip():
                        item = json.loads(line)
                        yield from (
                            str(item[field]) for field in ("title", "text") if item.get(field)
                        )


class Wanted:
    """The runs of tokens that must not be met."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = 0
        runs: list[Marks] = []
        wholes: set[int] = set()
        for text in texts:
            self.texts += 1
            found = tokens(text)
            if len(found) >= LENGTH:
                runs.append(np.unique(grams(_numbers(found))))
            elif len(found) >= SHORTEST:
                wholes.add(_whole(found))
        self.wholes = wholes
        self.runs: Marks = np.unique(np.concatenate(runs)) if runs else np.empty(0, dtype=np.uint64)
        self.table = np.zeros(2 ** (_TABLE_BITS - 3), dtype=np.uint8)
        slots = self._slots(self.runs)
        np.bitwise_or.at(
            self.table,
            slots >> np.uint64(3),
            np.uint8(1) << (slots & np.uint64(7)).astype(np.uint8),
        )

    @staticmethod
    def _slots(marks: Marks) -> Marks:
        return marks >> np.uint64(64 - _TABLE_BITS)

    def hits(self, marks: Marks) -> npt.NDArray[np.intp]:
        """Places of the runs that are wanted."""
        if not len(self.runs):
            return np.empty(0, dtype=np.intp)
        slots = self._slots(marks)
        bits = (
            self.table[slots >> np.uint64(3)] >> (slots & np.uint64(7)).astype(np.uint8)
        ) & np.uint8(1)
        likely = np.flatnonzero(bits)
        at = np.minimum(np.searchsorted(self.runs, marks[likely]), len(self.runs) - 1)
        return np.asarray(likely[self.runs[at] == marks[likely]], dtype=np.intp)


def hit_groups(groups: Sequence[Sequence[str]], wanted: Wanted) -> set[int]:
    """Which of these groups of texts hold a wanted run."""
    found: set[int] = set()
    held: list[str] = []
    owner: list[int] = []
    lengths: list[int] = []
    for at, texts in enumerate(groups):
        for text in texts:
            these = tokens(text)
            if SHORTEST <= len(these) < LENGTH and _whole(these) in wanted.wholes:
                found.add(at)
            if len(these) >= LENGTH:
                held += these
                owner.append(at)
                lengths.append(len(these))
    if not lengths:
        return found
    ends = np.cumsum(lengths)
    for place in wanted.hits(grams(_numbers(held))):
        number = int(np.searchsorted(ends, place, side="right"))
        if place + LENGTH <= ends[number]:
            found.add(owner[number])
    return found


def _texts(record: dict[str, Any]) -> Any:
    """The texts of a group, or the two of a translation."""
    return record["texts"] if "texts" in record else [["p", record["en"]], ["p", record["text"]]]


def _batches(path: Path, size: int = 3000) -> Iterator[list[tuple[str, Any]]]:
    held: list[tuple[str, Any]] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            held.append((line, _texts(json.loads(line))))
            if len(held) == size:
                yield held
                held = []
    if held:
        yield held


def scan(path: Path, wanted: Wanted, *, drop: bool) -> tuple[int, int]:
    """Groups of a file and how many have a hit; with `drop` those are taken out of it."""
    groups = hits = 0
    part = path.with_suffix(".part")
    with (
        part.open("w", encoding="utf-8")
        if drop
        else open(os.devnull, "w", encoding="utf-8") as kept
    ):
        for batch in _batches(path):
            hit = hit_groups([[text for _, text in texts] for _, texts in batch], wanted)
            groups += len(batch)
            hits += len(hit)
            kept.writelines(line for at, (line, _) in enumerate(batch) if at not in hit)
    if drop and hits:
        os.replace(part, path)
    elif drop:
        part.unlink()
    return groups, hits


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.proof")
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--against", required=True, type=Path, help="folder of evaluation sets")
    parser.add_argument("--drop", action="store_true", help="remove the groups with a hit")
    asked = parser.parse_args(arguments)
    wanted = Wanted(evaluation_texts(asked.against))
    print(
        f"{wanted.texts} evaluation texts, {len(wanted.runs)} runs of {LENGTH} tokens, "
        f"{len(wanted.wholes)} short ones"
    )
    if not wanted.texts:
        print(f"no evaluation set in {asked.against}", file=sys.stderr)
        return 2
    total = remaining = 0
    for path in asked.texts:
        groups, hits = scan(path, wanted, drop=asked.drop)
        left = scan(path, wanted, drop=False)[1] if asked.drop and hits else hits
        total += groups - (hits if asked.drop else 0)
        remaining += left
        print(
            (
                f"{path.name}: {groups} groups, {hits} with a "
                f"hit{', dropped' if asked.drop and hits else ''}"
            ),
            flush=True,
        )
    print(
        f"{total} groups of training text, {remaining} with a run of {LENGTH} tokens of an "
        "evaluation text"
    )
    return 1 if remaining else 0


if __name__ == "__main__":
    sys.exit(main())
