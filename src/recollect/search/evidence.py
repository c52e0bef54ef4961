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
from typing import TYPE_CHECKING, Any

from recollect.ports import FieldTerms, Placed, Placing, Sought, Store, TermCounts
from recollect.text.bm25 import HEAD_WEIGHT, K1, B, idf
from recollect.text.words import Terms, query_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

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
    chunks: int = 0

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
    return Ask(terms, weights, pairs, total, reach, counts.mean_length, rarity, common, counts.chunks)


def measure(ask: Ask, fields: FieldTerms) -> dict[str, float]:
    """The lexical signals of one passage."""
    return _measured(ask, placed({0: fields}, ask.looked_for))[0]


def measures(ask: Ask, store: Store, rows: Sequence[int]) -> dict[int, dict[str, float]]:
    """The lexical signals of many passages, by their rows."""
    sought = ask.looked_for
    if isinstance(store, Placing):
        return _measured(ask, store.term_places(rows, sought))
    return _measured(ask, placed(store.chunk_terms(rows), sought))


def placed(fields: Mapping[int, FieldTerms], sought: Sought) -> Placed:
    """Where what is sought stands among the terms of chunks that are spelled out."""
    import numpy as np  # noqa: PLC0415

    names: dict[str, list[int]] = {}
    for n, word in enumerate(sought.words):
        names.setdefault(word, []).append(n)
    prefixes = list(enumerate(sought.prefixes, start=len(sought.words)))

    def terms(word: str) -> list[int]:
        begun = [n for n, prefix in prefixes if word.startswith(prefix)]
        return names.get(word, []) + begun

    body: list[tuple[int, int, int]] = []
    head: list[tuple[int, int]] = []
    lengths, exact = [], []
    for chunk, one in enumerate(fields.values()):
        spelled = one.body.split()
        lengths.append(len(spelled))
        # Most words of a passage are none of the question's, and this is done for every candidate.
        found = [(at, word) for at, word in enumerate(spelled) if prefixes or word in names]
        body += [(chunk, term, at) for at, word in found for term in terms(word)]
        head += [(chunk, term) for term in sorted({term for word in one.head.split() for term in terms(word)})]
        exact.append(len({*one.exact.split()} & {*sought.exact}))
    return Placed(
        list(fields), np.asarray(lengths), np.reshape(np.asarray(body, dtype=np.int64), (-1, 3)).T,
        np.reshape(np.asarray(head, dtype=np.int64), (-1, 2)).T, np.asarray(exact),
    )  # fmt: skip


def _measured(ask: Ask, found: Placed) -> dict[int, dict[str, float]]:
    """The lexical signals of passages, from where the question's terms stand in them."""
    import numpy as np  # noqa: PLC0415

    sought, many = ask.looked_for, len(found.rows)
    terms = [*sought.words, *sought.prefixes]
    if not many:
        return {}
    chunk, term, _ = found.body
    shape = (len(terms), many)
    often = np.bincount(term * many + chunk, minlength=len(terms) * many).reshape(shape).astype(np.float64)
    named = np.zeros(shape, dtype=bool)
    named[found.head[1], found.head[0]] = True
    often += HEAD_WEIGHT * named
    weights = np.asarray([[ask.weights[t]] for t in terms]).reshape(-1, 1)
    norm = K1 * (1 - B + B * found.lengths / (ask.mean_length or 1.0))
    bm25 = (weights * often * (K1 + 1) / (often + norm)).sum(axis=0)
    there = often > 0
    near, window = _close(ask, found, terms)
    total = ask.total or 1.0
    columns = {
        "text": bm25 / (ask.reach or 1.0),
        "bm25": bm25,
        "cover": (weights * there).sum(axis=0) / total,
        "near": near,
        "window": window / total,
        "head": (weights * named).sum(axis=0) / total,
        "exact": found.exact / (len(sought.exact) or 1) * there.any(axis=0),
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return {row: dict(zip(columns, of_row, strict=True)) for row, of_row in zip(found.rows, values, strict=True)}


def _close(ask: Ask, found: Placed, terms: Sequence[str]) -> tuple[Column, Column]:
    """How much of the question's neighbouring pairs stand near each other, 1 for side by side and in order (one place
    out of order costs one), and the most that different words within one stretch weigh together.
    """
    import numpy as np  # noqa: PLC0415

    near, window = np.zeros(len(found.rows)), np.zeros(len(found.rows))
    chunk, term, place = found.body
    if not len(chunk):
        return near, window
    # Places of all passages on one line, too far apart to be near each other; for each, where every term stood last.
    far = STRETCH + NEAR_WINDOW
    at = chunk * (int(found.lengths.max()) + far) + place
    is_term = term == np.arange(len(terms))[:, None]
    last = np.maximum.accumulate(np.where(is_term, at, -far), axis=1)
    begins = np.flatnonzero(np.diff(chunk, prepend=-1))
    weights = np.asarray([[ask.weights[t]] for t in terms])
    inside = (weights * (at - last < STRETCH)).sum(axis=0)
    window[chunk[begins]] = np.maximum.reduceat(inside, begins)
    if ask.pairs:
        number = {t: n for n, t in enumerate(terms)}
        one, other = np.asarray([(number[a], number[b]) for a, b in ask.pairs]).T
        gaps = np.where(is_term[other], at - last[one], np.where(is_term[one], at - last[other] + 1, far))
        gap = np.maximum(1, np.minimum.reduceat(gaps, begins, axis=1))
        weight = weights[one] + weights[other]
        got = (weight * np.where(gap <= NEAR_WINDOW, 1.0 - (gap - 1) / NEAR_WINDOW, 0.0)).sum(axis=0)
        near[chunk[begins]] = got / (float(weight.sum()) or 1.0)
    return near, window
