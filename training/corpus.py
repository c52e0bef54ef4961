"""The training text in memory: groups of texts that belong together, translations, and passages cut
into windows.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Ids = np.ndarray
LONGEST = 320  # pieces of a text in ordinary batches
LONGEST_PASSAGE = 512  # pieces of a passage that is cut into windows
_ATOM_WORDS, _ATOM_SIGNS = 12, 24  # about 16 pieces
_ATOMS, _STEP = 4, 3  # a window has four such atoms and begins three after the last one
_WIDE = 0x2E7F  # signs above it are written without spaces


@dataclass(slots=True)
class Corpus:
    """Different texts with their roles, `q` or `p`; groups of them; `labelled` where the first asks
    for the second.
    """

    roles: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    labelled: list[bool] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    _places: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, texts: Sequence[Sequence[str]], source: str) -> None:
        """One group."""
        group = []
        for role, text in texts:
            place = self._places.setdefault((role, text), len(self.texts))
            if place == len(self.texts):
                self.roles.append(role)
                self.texts.append(text)
            group.append(place)
        self.groups.append(group)
        self.labelled.append(len(texts) > 1 and texts[0][0] == "q" and texts[1][0] == "p")
        self.sources.append(source)

    def languages(self) -> list[str]:
        """The language of each text: that of its last group."""
        found = [""] * len(self.texts)
        for group, source in zip(self.groups, self.sources, strict=True):
            for place in group:
                found[place] = source.rpartition("/")[2]
        return found


@dataclass(slots=True)
class Pairs:
    """English texts and what they are in another language."""

    roles: list[str] = field(default_factory=list)
    english: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Windows:
    """Passages as runs of atoms. A window is `(passage, first atom, end atom)`; `texts` is its
    heading and words.
    """

    heads: list[str] = field(default_factory=list)
    atoms: list[list[str]] = field(default_factory=list)
    windows: list[tuple[int, int, int]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    first: list[int] = field(default_factory=lambda: [0])
    questions: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)


def lines(paths: Iterable[Path]) -> Iterator[Any]:
    """Every record of some files, packed or not."""
    for path in paths:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)


def load(folder: Path, *, share: float = 1.0, seed: int = 0) -> tuple[Corpus, Corpus, Pairs]:
    """English groups, groups of other languages, and translations; `share` of the first and the
    last.
    """
    dice = random.Random(seed)
    english, other, pairs = Corpus(), Corpus(), Pairs()
    texts = list(lines(sorted(folder.glob("texts.jsonl*"))))
    for row in lines(sorted(folder.glob("groups.jsonl*"))):
        if row["lang"] != "en" or dice.random() < share:
            group = [(role, texts[place]) for role, place in row["texts"]]
            (english if row["lang"] == "en" else other).add(group, f"{row['source']}/{row['lang']}")
    for row in lines(sorted(folder.glob("pairs.jsonl*"))):
        if dice.random() < share:
            pairs.roles.append(row["role"])
            pairs.english.append(row["en"])
            pairs.others.append(row["text"])
            pairs.languages.append(row["lang"])
    return english, other, pairs


def atoms(text: str) -> list[str]:
    """A text in small runs of words, or of signs where words have no spaces between them."""
    if sum(ord(sign) > _WIDE for sign in text) > len(text) / 3:
        return [text[i : i + _ATOM_SIGNS] for i in range(0, len(text), _ATOM_SIGNS)]
    words = text.split()
    return [" ".join(words[i : i + _ATOM_WORDS]) for i in range(0, len(words), _ATOM_WORDS)]


def window_places(count: int) -> list[tuple[int, int]]:
    """First and end atom of every window over so many atoms."""
    places = [(i, min(i + _ATOMS, count)) for i in range(0, max(1, count - _ATOMS + _STEP), _STEP)]
    return places or [(0, count)]


def cut(corpus: Corpus, most: int, *, least_atoms: int = 6, seed: int = 0) -> Windows:
    """Long passages of a corpus, with the title of their section in front of every second one."""
    dice = random.Random(seed)
    out = Windows()
    order = [n for n, yes in enumerate(corpus.labelled) if yes]
    dice.shuffle(order)
    seen: set[int] = set()
    for n in order:
        if corpus.groups[n][1] in seen:
            continue
        seen.add(corpus.groups[n][1])
        question, text = (corpus.texts[place] for place in corpus.groups[n][:2])
        parts = atoms(text)[: LONGEST_PASSAGE // 18]
        if len(parts) < least_atoms:
            continue
        head = (
            question if not question.rstrip().endswith(("?", "？")) and dice.random() < 0.5 else ""
        )
        out.heads.append(head)
        out.atoms.append(parts)
        out.questions.append(question)
        out.languages.append(corpus.sources[n].rpartition("/")[2])
        for a, b in window_places(len(parts)):
            out.windows.append((len(out.atoms) - 1, a, b))
            out.texts.append((head + "\n" if head else "") + " ".join(parts[a:b]))
        out.first.append(len(out.windows))
        if len(out.atoms) >= most:
            break
    return out
