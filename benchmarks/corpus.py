"""Workspaces of any size: prose whose words follow Zipf's law over a vocabulary that keeps growing.

The first ranks are the words of the sample notes by their own frequency, then plain nouns, then
compounds. A note comes back to some rarer words of its own. The same seed and size give the same
files. An `unspaced` one writes every word with one to three Chinese characters and no spaces, so
that it is as Chinese or Japanese are to an index.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from notes import common_words, nouns

_BLOCK = 1 << 20
_VOCABULARY = 400_000
# Beyond some thousand words real text follows a second, steeper law. Terms to a passage of 1,000
# characters, at 1,000, 5,000 and 10,000 of them: here 17, 8.6 and 6.4; with one law 46, 29 and 23;
# LongMemEval 16, 7.9 and 5.7; SciFact 21 and 11 (it has 8,400).
_COMMON = 3000
_STEEPER = 1.0
_TOPIC_SHARE = 0.2
_CHUNKS_PER_NOTE = 10
_CHARACTERS = 4000
_OPENINGS = (
    "what did we decide about",
    "when was the",
    "why does",
    "who looks after the",
    "how do I",
    "",
)


class Corpus:
    """Notes without end, about 1,000 characters to a passage."""

    def __init__(self, seed: int = 7, *, unspaced: bool = False) -> None:
        self._space, self._stop = ("", "。") if unspaced else (" ", ".")
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._numbers = np.random.default_rng(seed)
        plain = nouns()
        compounds = [a + b for a in plain for b in plain if a != b]
        longer = [a + b + c for a in plain[::4] for b in plain[1::4] for c in plain[2::4]]
        self._random.shuffle(compounds)
        self._random.shuffle(longer)
        self.words = list(dict.fromkeys([*common_words(), *plain, *compounds, *longer]))[
            :_VOCABULARY
        ]
        if unspaced:
            characters = self._random.sample(
                [chr(0x4E00 + n) for n in range(2 * _CHARACTERS)], _CHARACTERS
            )
            often = [1.0 / (8 + n) for n in range(_CHARACTERS)]
            sizes = self._random.choices((1, 2, 3), (1, 6, 2), k=len(self.words))
            self.words = [
                "".join(self._random.choices(characters, often, k=size)) for size in sizes
            ]
        ranks = np.arange(len(self.words)) + 2.7
        self._reach = np.cumsum(1.0 / ranks * np.minimum(1.0, (_COMMON / ranks) ** _STEEPER))
        self._drawn: Iterator[str] = self._draw()

    def _draw(self) -> Iterator[str]:
        while True:
            ranks = np.searchsorted(self._reach, self._numbers.random(_BLOCK) * self._reach[-1])
            yield from map(self.words.__getitem__, ranks.tolist())

    def _sentence(self, topic: Sequence[str]) -> str:
        words = [next(self._drawn) for _ in range(self._random.randint(6, 18))]
        for i in range(0, len(words), 5):
            if self._random.random() < 5 * _TOPIC_SHARE:
                words[i] = topic[int(len(topic) * self._random.random() ** 2)]
        return self._space.join(words).capitalize() + self._stop

    def note(self, title: str, sections: int = _CHUNKS_PER_NOTE) -> str:
        """A title and sections of about a passage each."""
        topic = [
            self.words[int(300 * (len(self.words) / 300) ** self._random.random())]
            for _ in range(40)
        ]
        parts = [f"# {title}"]
        for _ in range(sections):
            parts.append(f"## {self._space.join(next(self._drawn) for _ in range(3)).capitalize()}")
            size = 0
            lines = []
            while size < 900:
                lines.append(self._sentence(topic))
                size += len(lines[-1].encode()) + 1
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"

    def write(self, root: Path, chunks: int) -> None:
        """Writes notes of about so many passages; all were last changed an hour ago, as settled
        files are.
        """
        first = dt.date(2016, 1, 2)
        changed = dt.datetime.now(dt.UTC).timestamp() - 3600
        for number in range(max(1, chunks // _CHUNKS_PER_NOTE)):
            day = (first + dt.timedelta(days=number % 3650)).isoformat()
            dated = number % 5 < 3
            name = (
                f"memory/{day[:7]}/{day}-{number}.md"
                if dated
                else f"memory/topics/{number % 97}/note-{number}.md"
            )
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(self.note(day if dated else f"Note {number}"), encoding="utf-8")
            os.utime(place, (changed, changed))

    def questions(self, root: Path, count: int) -> list[str]:
        """Questions of four to twelve words, or of as many characters, about sentences of notes
        that are there.
        """
        notes = sorted((root / "memory").rglob("*.md"))
        found: list[str] = []
        while len(found) < count:
            lines = self._random.choice(notes).read_text(encoding="utf-8").splitlines()
            line = (
                self._random.choice([line for line in lines if line.endswith(self._stop)])
                .rstrip(self._stop)
                .lower()
            )
            # two characters are about a word
            words, most = (line.split(), 8) if self._space else (list(line), 16)
            start = self._random.randrange(max(1, len(words) - most + 2))
            about = self._space.join(
                words[start : start + self._random.randint(most * 3 // 8, most)]
            )
            found.append(
                f"{self._random.choice(_OPENINGS)} {about}".strip() if self._space else about
            )
        return found
