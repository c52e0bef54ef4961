"""What is known about a passage for a question: the same measures for every candidate, whichever leg found it.

All are relative to what the question could reach, so they mean the same in a large corpus and a small one:
`text` is BM25 over its own maximum, `cover` the share of the question's information found, `near` how close
together neighbouring words of the question stand, `window` the largest share of it that one stretch of twelve words
holds, `head` how much of it the headings and the file name hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from recollect.ports import FieldTerms, Placed, Placing, Sought, Store, TermCounts
from recollect.text.bm25 import HEAD_WEIGHT, K1, B, idf
from recollect.text.words import Terms, query_terms

NEAR_WINDOW = 8
STRETCH = 12
MAX_TERMS = 64
_COMMON = 0.2


@dataclass(frozen=True, slots=True)
class Ask:
    """A question analysed against a corpus: its terms with their weight."""

    terms: Terms
    weights: dict[str, float]
    pairs: tuple[tuple[str, str], ...]
    total: float
    reach: float
    mean_length: float
    rarity: float = 0.0
    common: frozenset[str] = frozenset()

    @property
    def sought(self) -> Sought:
        """Any of the question's terms; those that cost much and say little are left out."""
        words = tuple(w for w in self.weights if w not in self.common and w not in self.terms.prefixes)
        phrases = [(a, b) for a, b in self.terms.phrases if a in words and b in words]
        return Sought(
            words, tuple(phrases[:MAX_TERMS]), tuple(self.terms.prefixes), tuple(self.terms.exact[:MAX_TERMS])
        )

    @property
    def looked_for(self) -> Sought:
        """All of the question's terms, however common: what a passage is measured by."""
        prefixes = self.terms.prefixes
        return Sought(tuple(w for w in self.weights if w not in prefixes), prefixes=prefixes, exact=self.terms.exact)

    @property
    def sought_whole(self) -> Sought:
        """As an old release asked: every word of the question, however common, must be there."""
        return Sought((*self.terms.words, *self.terms.stop), prefixes=tuple(self.terms.prefixes), every=True)


def ask(text: str, counts_of: object, *, terms: Terms | None = None) -> Ask:
    """Weighs a question's terms by how rare they are; `counts_of` is a store's `term_counts`."""
    terms = terms if terms is not None else query_terms(text)
    counts: TermCounts = counts_of([*terms.words[:2000]])  # type: ignore[operator]
    found = counts.found_in
    ranked = sorted(found, key=lambda w: (found[w] == 0, found[w]))[:MAX_TERMS]
    kept = set(ranked)
    weights = {w: idf(counts.chunks, found[w]) for w in terms.words if w in kept}
    known = [w for w in weights if found[w]]
    common = frozenset(w for w in known if found[w] > _COMMON * counts.chunks and counts.chunks > 200)
    if len(common) == len(known):
        common = frozenset()
    for char in terms.prefixes:
        weights[char] = idf(counts.chunks, 0) / 2
    words = [w for w in terms.words if w in kept]
    pairs = tuple(pairwise(words))
    reach = sum(w for term, w in weights.items() if term in terms.prefixes or found[term]) * (K1 + 1)
    total = sum(weights.values())
    rarity = sum(weights[w] for w in known) / len(known) / idf(counts.chunks, 0) if known else 0.0
    return Ask(terms, weights, pairs, total, reach, counts.mean_length, rarity, common)


def measure(ask: Ask, fields: FieldTerms) -> dict[str, float]:
    """The lexical signals of one passage."""
    return measured(ask, placed(fields, ask.looked_for))


def placed(fields: FieldTerms, sought: Sought) -> Placed:
    """Where what is sought stands among the terms of a chunk."""
    body, names = fields.body.split(), fields.head.split()
    places: dict[str, list[int]] = {}
    words = set(sought.words)
    for i, term in enumerate(body):
        if term in words:
            places.setdefault(term, []).append(i)
    head = words.intersection(names)
    for prefix in sought.prefixes:
        if found := [i for i, term in enumerate(body) if term.startswith(prefix)]:
            places[prefix] = found
        if any(term.startswith(prefix) for term in names):
            head.add(prefix)
    return Placed(len(body), places, head, set(fields.exact.split()).intersection(sought.exact))


def measures(ask: Ask, store: Store, rows: Sequence[int]) -> dict[int, dict[str, float]]:
    """The lexical signals of many passages, by their rows."""
    sought = ask.looked_for
    if isinstance(store, Placing):
        found = store.term_places(rows, sought)
    else:
        found = {row: placed(fields, sought) for row, fields in store.chunk_terms(rows).items()}
    return {row: measured(ask, one) for row, one in found.items()}


def measured(ask: Ask, found: Placed) -> dict[str, float]:
    """The lexical signals of a passage, from where the question's terms stand in it."""
    places, head, weights = found.body, found.head, ask.weights
    if not places and not head:
        return {"text": 0.0, "bm25": 0.0, "cover": 0.0, "near": 0.0, "window": 0.0, "head": 0.0, "exact": 0.0}
    norm = K1 * (1 - B + B * found.length / (ask.mean_length or 1.0))
    bm25 = cover = in_head = 0.0
    for term, weight in weights.items():
        at = places.get(term, ())
        named = head and term in head
        if at or named:
            tf = len(at) + (HEAD_WEIGHT if named else 0.0)
            bm25 += weight * tf * (K1 + 1) / (tf + norm)
            cover += weight
            if named:
                in_head += weight
    if len(places) == 1:
        fullest = weights[next(iter(places))]
    else:
        fullest = densest(sorted([(i, term) for term, at in places.items() for i in at]), weights)
    return {
        "text": bm25 / ask.reach if ask.reach else 0.0,
        "bm25": bm25,
        "cover": cover / ask.total if ask.total else 0.0,
        "near": _near(ask, places) if len(places) > 1 else 0.0,
        "window": fullest / ask.total if ask.total else 0.0,
        "head": in_head / ask.total if ask.total else 0.0,
        "exact": len(found.exact) / len(ask.terms.exact) if found.exact else 0.0,
    }


def _near(ask: Ask, places: Mapping[str, Sequence[int]]) -> float:
    """How much of the question's neighbouring pairs stand near each other, 1 for side by side and in order."""
    got = whole = 0.0
    for a, b in ask.pairs:
        weight = ask.weights[a] + ask.weights[b]
        whole += weight
        if a in places and b in places:
            gap = min_gap(places[a], places[b])
            if gap <= NEAR_WINDOW:
                got += weight * (1.0 - (gap - 1) / NEAR_WINDOW)
    return got / whole if whole else 0.0


def densest(found_at: Sequence[tuple[int, str]], weights: Mapping[str, float], *, stretch: int = STRETCH) -> float:
    """The most that different words within one stretch of a text weigh together, from ascending places."""
    best = weight = 0.0
    inside: dict[str, int] = {}
    first = 0
    for place, term in found_at:
        held = inside.get(term, 0)
        inside[term] = held + 1
        while found_at[first][0] <= place - stretch:
            gone = found_at[first][1]
            first += 1
            inside[gone] -= 1
            if not inside[gone]:
                weight -= weights[gone]
        if not held:
            weight += weights[term]
            best = max(best, weight)
    return best


def min_gap(first: Sequence[int], second: Sequence[int]) -> int:
    """The least distance between two ascending lists of places; one place out of order costs one."""
    i = j = 0
    best = 1 << 30
    while i < len(first) and j < len(second):
        gap = second[j] - first[i]
        if gap > 0:
            best = min(best, gap)
            i += 1
        else:
            best = min(best, max(1, -gap + 1))
            j += 1
    return best
