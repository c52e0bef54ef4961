"""The best chunks by BM25, exactly, without scoring all that match.

The rarest term comes first. Once enough chunks are in, and the terms that are left could not lift
another one among them, those terms are only looked up for the chunks that are in (MaxScore). A sum
is always made in the same order, so that equal scores are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from notewell.store.values import Sought
from notewell.text.bm25 import EXACT_WEIGHT, HEAD_WEIGHT, K1, idf

Places = NDArray[np.int32]
Floats = NDArray[np.float64]
Codes = NDArray[Any]
Postings = tuple[Places, Codes]
_SLACK = 1.0 + 1e-9  # sums of bounds may differ in the last bits from the sums they bound
_AT_ONCE = 128
_NONE: Postings = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)

Count = Callable[[int, int], Floats]
Neighbours = Callable[[Places], Count]
"""Reads chunks, and returns a function that counts in each how often one word comes directly before
another.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is sought: its weight, the places that have it, ascending, and a count from
    the code of each.
    """

    weight: float
    places: Places
    codes: Codes
    often: Callable[[Codes], Floats]
    word: int = 0  # its number if a phrase may contain it


@dataclass(frozen=True, slots=True)
class Phrase:
    """Two adjacent words: the places that have both, and how often they could be neighbours
    there.
    """

    weight: float
    words: tuple[int, int]
    places: Places
    at_most: Floats
    alone: bool = False  # the two words are not sought as words as well


@dataclass(frozen=True, slots=True)
class Among:
    """The chunks that are ranked: what the length of each counts, how to read them, and which pass
    the filter.
    """

    norms: Floats
    neighbours: Neighbours
    passes: NDArray[np.bool_] | None = None

    def gain(self, weight: float | Floats, places: Places, often: Floats) -> Floats:
        """What a word adds to the score of each chunk."""
        gained: Floats = weight * often * (K1 + 1) / (often + self.norms.take(places))
        return gained


def best(
    parts: Sequence[Part], phrases: Sequence[Phrase], limit: int, among: Among, *, few: int
) -> tuple[Places, Floats]:
    """The places of the `limit` best with all that tie with the last, and their scores, in no
    order.

    A `few` postings are all scored, which is faster than finding out which of them matter.
    """
    phrases = [p for p in phrases if len(p.places)]
    left = [p for p in parts if len(p.places)]
    total = Totals(limit, among)
    if sum(len(p.places) for p in left) <= few:
        total.add_all(left)
        left = []
    while left and not total.closed(_reach(left, phrases)):
        total.add(left.pop(0))
    for phrase in phrases:
        if phrase.alone:
            total.admit(phrase.places)
    hoped = sum(p.weight for p in phrases) * (K1 + 1)
    while left:
        total.prune(_reach(left, ()) + hoped)
        total.look_up(left.pop(0))
    if phrases:
        total.add_phrases(phrases)
    return total.top()


def _reach(parts: Sequence[Part], phrases: Sequence[Phrase]) -> float:
    """The most that a chunk could score that has only these; phrases of other words it cannot
    have.
    """
    words = {p.word for p in parts}
    likely = sum(p.weight for p in phrases if words.issuperset(p.words))
    return (sum(p.weight for p in parts) + likely) * (K1 + 1)


class Totals:
    """The scores so far of the chunks that may still be among the best."""

    def __init__(self, limit: int, among: Among) -> None:
        self._limit, self._gain, self._neighbours, self._passes = (
            limit,
            among.gain,
            among.neighbours,
            among.passes,
        )
        self._scores = np.zeros(len(among.norms), dtype=np.float64)
        self._seen = np.zeros(len(among.norms), dtype=bool)
        self._places: Places = np.zeros(0, dtype=np.int32)

    def closed(self, rest: float) -> bool:
        """Whether no unseen chunk can still reach the top `limit`."""
        return (
            len(self._places) >= self._limit
            and _nth(self._scores.take(self._places), self._limit) > rest * _SLACK
        )

    def admit(self, places: Places) -> None:
        """Lets chunks in whatever they score, if they pass the filter."""
        new = places if not len(self._places) else places[~self._seen.take(places)]
        if self._passes is not None:
            new = new[self._passes[new]]
        if len(new):
            self._seen[new] = True
            self._places = np.concatenate((self._places, new))

    def add(self, part: Part) -> None:
        """Scores a word for all chunks that have it."""
        places, codes = part.places, part.codes
        if self._passes is not None:
            there = self._passes[places]
            places, codes = places[there], codes[there]
        self.admit(places)
        self._scores[places] += self._gain(part.weight, places, part.often(codes))

    def add_all(self, parts: Sequence[Part]) -> None:
        """Scores words, before any other, for all chunks that have them; each sum is made in the
        order of these.
        """
        if not parts:
            return
        places = np.concatenate([part.places for part in parts])
        often = np.concatenate([part.often(part.codes) for part in parts])
        weights = np.repeat([part.weight for part in parts], [len(part.places) for part in parts])
        if self._passes is not None:
            there = self._passes.take(places)
            places, often, weights = places[there], often[there], weights[there]
        self._seen[places] = True
        self._places = np.flatnonzero(self._seen).astype(np.int32)
        gains = self._gain(weights, places, often)
        self._scores = np.bincount(places, gains, minlength=len(self._scores)).astype(
            np.float64, copy=False
        )

    def prune(self, rest: float) -> None:
        """Leaves out chunks that can no longer be among the best."""
        scores = self._scores.take(self._places)
        self._places = self._places[(scores + rest) * _SLACK >= _nth(scores, self._limit)]

    def look_up(self, part: Part) -> None:
        """Scores a word for the chunks that are in."""
        at, there = find(part.places, self._places)
        where = self._places[there]
        self._scores[where] += self._gain(part.weight, where, part.often(part.codes[at[there]]))

    def add_phrases(self, phrases: Sequence[Phrase]) -> None:
        """Scores phrases by reading the chunks that could win by them, the most promising first."""
        places = np.sort(self._places)
        hopes = np.zeros(len(places), dtype=np.float64)
        for phrase in phrases:
            at, there = find(places, phrase.places)
            hopes[at[there]] += self._gain(
                phrase.weight, phrase.places[there], phrase.at_most[there]
            )
        scores = self._scores.take(places)
        reach = scores + hopes
        order = np.flatnonzero(reach * _SLACK >= _nth(scores, self._limit))
        order = order[np.argsort(-reach[order], kind="stable")]
        places, reach, hopes = places[order], reach[order], hopes[order]
        done = 0
        while done < len(places):
            if reach[done] * _SLACK < _nth(self._scores[places], self._limit):
                break
            some = slice(done, done + _AT_ONCE)
            reading = places[some][hopes[some] > 0]
            count = self._neighbours(reading)
            for phrase in phrases:
                self._scores[reading] += self._gain(phrase.weight, reading, count(*phrase.words))
            done += _AT_ONCE
        self._places = places[:done]

    def top(self) -> tuple[Places, Floats]:
        """The best, with all that tie with the last."""
        scores = self._scores.take(self._places)
        there = scores >= max(_nth(scores, self._limit), np.nextafter(0.0, 1.0))
        return self._places[there], scores[there]


def all_of(parts: Sequence[Part], phrases: Sequence[Phrase], among: Among) -> tuple[Places, Floats]:
    """Every chunk that has all of it, and its score."""
    lists = sorted([*(p.places for p in parts), *(p.places for p in phrases)], key=len)
    places = lists[0] if among.passes is None else lists[0][among.passes[lists[0]]]
    for other in lists[1:]:
        places = places[find(other, places)[1]]
    counted: list[Floats] = []
    if phrases:
        count = among.neighbours(places)
        counted = [count(*phrase.words) for phrase in phrases]
        there = np.all([often > 0 for often in counted], axis=0)
        places, counted = places[there], [often[there] for often in counted]
    scores = np.zeros(len(places), dtype=np.float64)
    for part in parts:
        scores += among.gain(
            part.weight, places, part.often(part.codes[find(part.places, places)[0]])
        )
    for phrase, often in zip(phrases, counted, strict=True):
        scores += among.gain(phrase.weight, places, often)
    return places, scores


def find(among: Places, wanted: Places) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each wanted place is in an ascending list, and which of them are there."""
    if not len(among):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    at = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return at, among.take(at) == wanted


def _nth(scores: Floats, limit: int) -> float:
    """The limit-th largest, or 0 where there are fewer."""
    if len(scores) < limit or not limit:
        return 0.0
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit])


def parts_of(
    sought: Sought,
    lists: Mapping[int, Postings],
    chunks: int,
    numbers: Mapping[str, int],
    begun: Mapping[str, list[int]],
) -> list[Part]:
    """What is sought except phrases, the heaviest first; `begun` has the numbers of the words of
    each prefix.
    """
    often = _in_text if sought.in_head else _in_body
    found: list[tuple[str, str, Postings, Callable[[Codes], Floats]]] = [
        ("", word, lists[2 * numbers[word]] if word in numbers else _NONE, often)
        for word in dict.fromkeys(sought.words)
    ]
    found += [
        ("prefix", prefix, _any_of([lists[2 * n] for n in some]), often)
        for prefix, some in begun.items()
    ]
    found += [
        ("exact", word, lists[2 * numbers[word] + 1] if word in numbers else _NONE, _in_exact)
        for word in dict.fromkeys(sought.exact)
    ]
    if not sought.in_head:
        found = [
            (kind, term, _of_body(some) if count is often else some, count)
            for kind, term, some, count in found
        ]
    weighed = [
        (-idf(chunks, len(some[0])), kind, term, some, count) for kind, term, some, count in found
    ]
    weighed.sort(key=lambda w: w[:3])
    return [
        Part(-weight, *some, count, 0 if kind else numbers.get(term, 0))
        for weight, kind, term, some, count in weighed
    ]


def phrases_of(
    sought: Sought, lists: Mapping[int, Postings], chunks: int, numbers: Mapping[str, int]
) -> list[Phrase]:
    """The phrases that are sought, the heaviest first; one weighs as much as its two words in one
    chunk do.
    """
    out, words = [], set(sought.words)
    for pair in dict.fromkeys(sought.phrases):
        one, other = (lists[2 * numbers[w]] if w in numbers else _NONE for w in pair)
        at, there = find(other[0], one[0])
        places, mine, theirs = one[0][there], one[1][there], other[1][at[there]]
        at_most = np.minimum(mine >> 1, theirs >> 1).astype(np.float64)
        if sought.in_head:
            at_most += HEAD_WEIGHT * (mine & theirs & 1)
        there = at_most > 0
        places, at_most = places[there], at_most[there]
        alone = not words.issuperset(pair)
        ids = numbers.get(pair[0], 0), numbers.get(pair[1], 0)
        out.append((-idf(chunks, len(places)), pair, ids, places, at_most, alone))
    out.sort(key=lambda p: p[:2])
    return [
        Phrase(-weight, ids, places, at_most, alone)
        for weight, _, ids, places, at_most, alone in out
    ]


def _of_body(some: Postings) -> Postings:
    """Only the chunks that have it in their body: the bits above the lowest count it there."""
    there = some[1] > 1
    return some[0][there], some[1][there]


def _any_of(lists: Sequence[Postings]) -> Postings:
    """The postings of several words as if they were one."""
    if not lists:
        return _NONE
    if len(lists) == 1:
        return lists[0]
    places, inverse = np.unique(np.concatenate([p for p, _ in lists]), return_inverse=True)
    codes = np.concatenate([c.astype(np.int64) for _, c in lists])
    body = np.bincount(inverse, weights=codes >> 1, minlength=len(places)).astype(np.int64)
    head = np.bincount(inverse, weights=codes & 1, minlength=len(places)) > 0
    return places, body * 2 + head


def _in_text(codes: Codes) -> Floats:
    out: Floats = (codes >> 1) + HEAD_WEIGHT * (codes & 1)
    return out


def _in_body(codes: Codes) -> Floats:
    return (codes >> 1).astype(np.float64)


def _in_exact(codes: Codes) -> Floats:
    return (codes >> 1).astype(np.float64) * EXACT_WEIGHT
