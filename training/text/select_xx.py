"""Gather what the sources in other languages yield, and choose from it within a budget.

Sources write all they have to WORK/text-raw; the choice gives each language a budget in bytes, most
of it to passages, and shares it among the sources in turn, so that no source crowds out the others.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from training.fetch import work
from training.text.aligned import Pair
from training.text.common import Group, text_folder
from training.text.languages import PRIORITY

Source = Callable[[], Iterator[Pair | Group]]
SEED = 14
MEGA = 1_000_000
FIRST = ("wikipedia", "stellarium", "chinese-lives", "human-rights", "tatoeba")


@dataclass(frozen=True)
class Budget:
    """Bytes a language may take: of pairs and of groups, in three ranks of languages."""

    pairs: tuple[float, float, float] = (9.0, 7.5, 2.1)
    groups: tuple[float, float, float] = (9.0, 4.5, 0.55)
    passages: float = 0.82
    most_pairs: int = 40_000

    def of(self, kind: str, lang: str) -> float:
        """The bytes for one language."""
        rank = 0 if lang in PRIORITY[:3] else 1 if lang in PRIORITY else 2
        return (self.pairs if kind == "pairs" else self.groups)[rank] * MEGA


def raw_folder() -> Path:
    """Where everything lies before the choice."""
    return work() / "text-raw"


def gather(name: str, source: Source) -> Counter[str]:
    """Write all that a source has: pairs to one file, groups to another."""
    raw_folder().mkdir(parents=True, exist_ok=True)
    paths = {kind: raw_folder() / f"{kind}-{name}.jsonl" for kind in ("pairs", "mono")}
    parts = {kind: path.with_suffix(".part") for kind, path in paths.items()}
    counts: Counter[str] = Counter()
    with (
        parts["pairs"].open("w", encoding="utf-8") as pairs,
        parts["mono"].open("w", encoding="utf-8") as mono,
    ):
        for each in source():
            kind, file = ("pairs", pairs) if isinstance(each, Pair) else ("mono", mono)
            file.write(each.line())
            counts[kind] += 1
    for kind, part in parts.items():
        os.replace(part, paths[kind])
    return counts


@dataclass(frozen=True)
class Line:
    """A line of a raw file and what the choice needs to know of it."""

    path: Path
    lang: str
    passage: bool
    size: int
    marks: tuple[bytes, ...]
    text: str


def _mark(lang: str, text: str) -> bytes:
    return blake2b(f"{lang} {text}".encode(), digest_size=8).digest()


def _pair(path: Path, text: str) -> Line:
    held = json.loads(text)
    marks = (_mark("", held["text"]), _mark(held["lang"], held["en"]))
    passage = held["role"] == "p" and len(held["en"]) >= 180
    return Line(path, held["lang"], passage, len((held["en"] + held["text"]).encode()), marks, text)


def _group(path: Path, text: str) -> Line:
    held = json.loads(text)
    body = held["texts"][1 if held["texts"][0][0] == "q" else 0][1]
    return Line(
        path,
        held["lang"],
        passage=True,
        size=len(text.encode()),
        marks=(_mark("", body),),
        text=text,
    )


def _in_turn(queues: Sequence[list[Line]]) -> Iterator[Line]:
    """One of each source after the other until all are empty."""
    left = [iter(queue) for queue in queues]
    while left:
        for queue in list(left):
            line = next(queue, None)
            if line is None:
                left.remove(queue)
            else:
                yield line


def _take(lines: Iterator[Line], most: float, most_lines: int, seen: set[bytes]) -> list[Line]:
    found: list[Line] = []
    size = 0
    for line in lines:
        if size >= most or len(found) >= most_lines:
            break
        if not seen.intersection(line.marks):
            seen.update(line.marks)
            found.append(line)
            size += line.size
    return found


def _encyclopedic(line: Line) -> bool:
    return line.path.stem.partition("-")[2] in FIRST


def _ordered(lines: list[Line]) -> Iterator[Line]:
    """What an encyclopedia might say before all else, then the sources in turn."""
    yield from _in_turn(_queues([line for line in lines if _encyclopedic(line)]))
    yield from _in_turn(_queues([line for line in lines if not _encyclopedic(line)]))


def _queues(lines: list[Line]) -> list[list[Line]]:
    chance = random.Random(SEED)
    by_path: dict[Path, list[Line]] = defaultdict(list)
    for line in lines:
        by_path[line.path].append(line)
    for queue in by_path.values():
        chance.shuffle(queue)
    return list(by_path.values())


def _languages(kind: str) -> dict[str, list[Line]]:
    read = _pair if kind == "pairs" else _group
    found: dict[str, list[Line]] = defaultdict(list)
    for path in sorted(raw_folder().glob(f"{kind}-*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for text in file:
                line = read(path, text)
                if line.lang:
                    found[line.lang].append(line)
    return found


def choose(budget: Budget) -> Counter[str]:
    """Write WORK/text/xx-pairs-*.jsonl and xx-mono-*.jsonl again; counts by kind and language."""
    counts: Counter[str] = Counter()
    for kind in ("pairs", "mono"):
        chosen: dict[Path, list[str]] = defaultdict(list)
        for lang, lines in sorted(_languages(kind).items()):
            most, seen = budget.of(kind, lang), set[bytes]()
            long = [line for line in lines if line.passage]
            share = budget.passages if kind == "pairs" else 1
            kept = _take(_ordered(long), most * share, budget.most_pairs, seen)
            if kind == "pairs":
                left = most - sum(line.size for line in kept)
                short = _ordered([line for line in lines if not line.passage])
                kept += _take(
                    short,
                    min(left, most * 0.4),
                    min(budget.most_pairs - len(kept), int(1.6 * len(kept)) + 500),
                    seen,
                )
            for line in kept:
                chosen[line.path].append(line.text)
                counts[f"{kind} {lang}"] += 1
        _write(kind, chosen)
    return counts


def _write(kind: str, chosen: dict[Path, list[str]]) -> None:
    text_folder().mkdir(parents=True, exist_ok=True)
    for old in text_folder().glob(f"xx-{kind}-*.jsonl"):
        if raw_folder() / old.name.removeprefix("xx-") not in chosen:
            old.unlink()
    for path, lines in chosen.items():
        target = text_folder() / f"xx-{path.name}"
        target.with_suffix(".part").write_text("".join(lines), encoding="utf-8")
        os.replace(target.with_suffix(".part"), target)


def build(sources: dict[str, Source], names: Sequence[str]) -> int:
    """Gather the named sources, or all, then choose."""
    for name in names or sources:
        began = time.monotonic()
        counts = gather(name, sources[name])
        took = time.monotonic() - began
        print(f"{name}: {counts['pairs']} pairs, {counts['mono']} groups, {took:.0f} s", flush=True)
    chosen = choose(Budget())
    for kind in ("pairs", "mono"):
        files = list(text_folder().glob(f"xx-{kind}-*.jsonl"))
        size = sum(path.stat().st_size for path in files) / MEGA
        lines = sum(count for key, count in chosen.items() if key.startswith(kind))
        print(f"chosen: {lines} {kind} in {len(files)} files, {size:.1f} MB")
    return 0
