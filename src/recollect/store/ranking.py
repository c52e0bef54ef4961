"""The best passages by BM25, exactly, without scoring all that match.

The rarest is looked at first. Once as many passages are in as are wanted, and what is left could not lift another one
among them, the rest is only looked up for those that are there (MaxScore). A sum is always made in the same order, so
that what ties, ties to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.text.bm25 import K1, B

Places = NDArray[np.int32]
Floats = NDArray[np.float64]
_SLACK = 1.0 + 1e-9  # sums of bounds may differ in the last bits from the sums they bound
_AT_ONCE = 256


Count = Callable[[int, int], Floats]
Neighbours = Callable[[Places], Count]
"""Reads passages, and then says of each how often two words stand side by side in it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is sought: its weight, where it stands, ascending, and how often, by the code that is there.

    `word` is the number of what phrases may be made of.
    """

    weight: float
    places: Places
    codes: NDArray[Any]
    often: Callable[[NDArray[Any]], Floats]
    word: int = 0


@dataclass(frozen=True, slots=True)
class Phrase:
    """Two words side by side: where both are, and how often they could be neighbours there.

    `alone` says that the two are not sought beside it.
    """

    weight: float
    words: tuple[int, int]
    places: Places
    at_most: Floats
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long each passage is, against the mean."""

    lengths: NDArray[Any]
    mean: float

    def gain(self, weight: float, places: Places, often: Floats) -> Floats:
        """What a word adds to the score of passages."""
        norm = K1 * (1 - B + B * self.lengths[places] / (self.mean or 1.0))
        gained: Floats = weight * often * (K1 + 1) / (often + norm)
        return gained


def best(
    parts: Sequence[Part],
    phrases: Sequence[Phrase],
    limit: int,
    *,
    lengths: Lengths,
    neighbours: Neighbours,
    passes: NDArray[np.bool_] | None = None,
) -> tuple[Places, Floats]:
    """The places of the `limit` best with all that tie with the last, and their scores, in no order."""
    phrases = [p for p in phrases if len(p.places)]
    left = [p for p in parts if len(p.places)]
    total = Totals(limit, lengths, passes)
    while left and not total.closed(_reach(left, phrases)):
        total.add(left.pop(0))
    for phrase in phrases:
        if phrase.alone:
            total.admit(phrase.places)
    hoped = sum(p.weight for p in phrases) * (K1 + 1)
    while left:
        total.prune(_reach(left, ()) + hoped)
        total.look_up(left.pop(0))
    total.settle(phrases, neighbours)
    return total.top()


def _reach(parts: Sequence[Part], phrases: Sequence[Phrase]) -> float:
    """The most that a passage could score which has nothing but these; phrases of other words it cannot have."""
    words = {p.word for p in parts}
    likely = sum(p.weight for p in phrases if words.issuperset(p.words))
    return (sum(p.weight for p in parts) + likely) * (K1 + 1)


class Totals:
    """Scores so far, of the passages that may still be among the best."""

    def __init__(self, limit: int, lengths: Lengths, passes: NDArray[np.bool_] | None) -> None:
        self._limit, self._lengths, self._passes = limit, lengths, passes
        self._scores = np.zeros(len(lengths.lengths), dtype=np.float64)
        self._seen = np.zeros(len(lengths.lengths), dtype=bool)
        self._places: Places = np.zeros(0, dtype=np.int32)

    def _border(self) -> float:
        """The score of the last that is in, or 0 where there is still room."""
        return _nth(self._scores[self._places], self._limit)

    def closed(self, rest: float) -> bool:
        """Whether nothing can come in that has only what is left."""
        return len(self._places) >= self._limit and self._border() > rest * _SLACK

    def admit(self, places: Places) -> None:
        """Lets passages in whatever they score, if they pass."""
        new = places[~self._seen[places]]
        if self._passes is not None:
            new = new[self._passes[new]]
        if len(new):
            self._seen[new] = True
            self._places = np.concatenate((self._places, new))

    def add(self, part: Part) -> None:
        """Counts a word for all passages that have it."""
        places, codes = part.places, part.codes
        if self._passes is not None:
            there = self._passes[places]
            places, codes = places[there], codes[there]
        self.admit(places)
        self._scores[places] += self._lengths.gain(part.weight, places, part.often(codes))

    def prune(self, rest: float) -> None:
        """Leaves out what can no longer be among the best."""
        scores = self._scores[self._places]
        self._places = self._places[(scores + rest) * _SLACK >= _nth(scores, self._limit)]

    def look_up(self, part: Part) -> None:
        """Counts a word for the passages that are in."""
        at, there = find(part.places, self._places)
        where = self._places[there]
        self._scores[where] += self._lengths.gain(part.weight, where, part.often(part.codes[at[there]]))

    def settle(self, phrases: Sequence[Phrase], neighbours: Neighbours) -> None:
        """Counts phrases, by reading the passages that could win by them, those that promise most first."""
        if not phrases:
            return
        hopes = np.zeros(len(self._places), dtype=np.float64)
        for phrase in phrases:
            at, there = find(phrase.places, self._places)
            hopes[there] += self._lengths.gain(phrase.weight, self._places[there], phrase.at_most[at[there]])
        scores = self._scores[self._places]
        order = np.argsort(-(scores + hopes), kind="stable")
        places, reach, hopes = self._places[order], (scores + hopes)[order], hopes[order]
        done = 0
        while done < len(places):
            border = _nth(self._scores[places], self._limit)
            if reach[done] * _SLACK < border:
                break
            some = slice(done, done + _AT_ONCE)
            reading = places[some][hopes[some] > 0]
            count = neighbours(reading)
            for phrase in phrases:
                self._scores[reading] += self._lengths.gain(phrase.weight, reading, count(*phrase.words))
            done += _AT_ONCE
        self._places = places[:done]

    def top(self) -> tuple[Places, Floats]:
        """The best with all that tie with the last."""
        scores = self._scores[self._places]
        there = scores >= max(_nth(scores, self._limit), np.nextafter(0.0, 1.0))
        return self._places[there], scores[there]


def all_of(
    parts: Sequence[Part],
    phrases: Sequence[Phrase],
    *,
    lengths: Lengths,
    neighbours: Neighbours,
    passes: NDArray[np.bool_] | None = None,
) -> tuple[Places, Floats]:
    """Every passage that has all of it, and its score."""
    lists = sorted([*(p.places for p in parts), *(p.places for p in phrases)], key=len)
    places = lists[0] if passes is None else lists[0][passes[lists[0]]]
    for other in lists[1:]:
        places = places[find(other, places)[1]]
    counted: list[Floats] = []
    if phrases:
        count = neighbours(places)
        counted = [count(*phrase.words) for phrase in phrases]
        there = np.all([often > 0 for often in counted], axis=0)
        places, counted = places[there], [often[there] for often in counted]
    scores = np.zeros(len(places), dtype=np.float64)
    for part in parts:
        scores += lengths.gain(part.weight, places, part.often(part.codes[find(part.places, places)[0]]))
    for phrase, often in zip(phrases, counted, strict=True):
        scores += lengths.gain(phrase.weight, places, often)
    return places, scores


def find(among: Places, wanted: Places) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where wanted places stand in an ascending list, and which of them do."""
    if not len(among):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    at = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return at, among[at] == wanted


def _nth(scores: Floats, limit: int) -> float:
    """The limit-th largest, or 0 where there are fewer."""
    if len(scores) < limit or not limit:
        return 0.0
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit])
