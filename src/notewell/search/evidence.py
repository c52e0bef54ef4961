"""How well the words of a passage match a question: the same measures for every candidate,
whichever leg found it.

All but `bm25` are relative to the most that the question could reach, so they mean the same in a
large corpus and in a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from notewell.store.values import Placed, Sought, TermCounts
from notewell.text.bm25 import HEAD_WEIGHT, K1, B, idf
from notewell.text.everyday import found_in_all, share_of
from notewell.text.words import Terms, query_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

NEAR_WINDOW = 8
STRETCH = 12
MAX_TERMS = 64
MOST_WORDS = 2000
_COMMON = 0.2
_EVERYDAY = 1 / 16


@dataclass(frozen=True, slots=True)
class WeightedQuestion:
    """A question's terms, each weighted by how rare it is in the corpus, and in writing of any
    kind.

    `total` is the sum of the weights, `reach` the highest BM25 score a passage could get, `rarity`
    the mean weight of the words that occur (1: each occurs once), `common` the words that occur in
    so many chunks that matching them is slow and tells little.
    """

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
        """What the keyword leg matches: any of the terms except the common ones."""
        words = tuple(
            w for w in self.weights if w not in self.common and w not in self.terms.prefixes
        )
        phrases = [(a, b) for a, b in self.terms.phrases if a in words and b in words]
        return Sought(
            words,
            tuple(phrases[:MAX_TERMS]),
            tuple(self.terms.prefixes),
            tuple(self.terms.exact[:MAX_TERMS]),
        )

    @property
    def measured(self) -> Sought:
        """What a passage is measured by: all of the terms, however common."""
        prefixes = self.terms.prefixes
        return Sought(
            tuple(w for w in self.weights if w not in prefixes),
            prefixes=prefixes,
            exact=self.terms.exact,
        )

    @property
    def sought_whole(self) -> Sought:
        """What an old release matched: every word of the question, stop words included."""
        return Sought(
            (*self.terms.words, *self.terms.stop), prefixes=tuple(self.terms.prefixes), every=True
        )


class WordSignals(NamedTuple):
    """The lexical signals of one passage; `Signals` says what each means."""

    text: float
    bm25: float
    cover: float
    near: float
    window: float
    head: float
    exact: float
    focus: float
    matched: float
    lost: float
    names: float


def ask(text: str, counts_of: Callable[[Iterable[str]], TermCounts]) -> WeightedQuestion:
    """Weighs the terms of a question by how rare they are; `counts_of` is a store's
    `term_counts`.
    """
    terms = query_terms(text)
    return weigh(terms, counts_of(terms.words[:MOST_WORDS]))


def weigh(terms: Terms, counts: TermCounts) -> WeightedQuestion:
    """The terms of a question with their weights; of very many, the rarest."""
    found_in = counts.found_in
    rarest = set(sorted(found_in, key=lambda w: (found_in[w] == 0, found_in[w]))[:MAX_TERMS])
    words = [w for w in terms.words if w in rarest]
    weights = {w: idf(counts.chunks, found_in_all(w, counts.chunks, found_in[w])) for w in words}
    occurring = [w for w in weights if found_in[w]]
    common = frozenset(
        w for w in occurring if found_in[w] > _COMMON * counts.chunks and counts.chunks > 200
    )
    if len(common) == len(occurring):
        common = frozenset()
    for char in terms.prefixes:
        weights[char] = idf(counts.chunks, 0) / 2
    reach = sum(w for term, w in weights.items() if term in terms.prefixes or found_in[term]) * (
        K1 + 1
    )
    total = sum(weights.values())
    rarity = (
        sum(weights[w] for w in occurring) / len(occurring) / idf(counts.chunks, 0)
        if occurring
        else 0.0
    )
    pairs = tuple(pairwise(words))
    return WeightedQuestion(
        terms, weights, pairs, total, reach, counts.mean_length, rarity, common, counts.chunks
    )


def measures(question: WeightedQuestion, places: Placed) -> dict[int, WordSignals]:
    """The lexical signals of passages by row, from where the terms of `question.measured` are in
    them.
    """
    return dict(zip(places.rows, map(WordSignals._make, measured(question, places)), strict=True))


def measured(question: WeightedQuestion, places: Placed) -> Iterable[tuple[float, ...]]:
    """The same as plain tuples in the order of the passages, which take a tenth of the time."""
    import numpy as np  # noqa: PLC0415

    sought, count = question.measured, len(places.rows)
    terms = [*sought.words, *sought.prefixes]
    if not count:
        return ()
    chunk, term, _ = places.body
    shape = (len(terms), count)
    frequency = (
        np.bincount(term * count + chunk, minlength=len(terms) * count)
        .reshape(shape)
        .astype(np.float64)
    )
    in_head = np.zeros(shape, dtype=bool)
    in_head[places.head[1], places.head[0]] = True
    frequency += HEAD_WEIGHT * in_head
    weights = np.asarray([[question.weights[t]] for t in terms]).reshape(-1, 1)
    norm = K1 * (1 - B + B * places.lengths / (question.mean_length or 1.0))
    bm25 = (weights * frequency * (K1 + 1) / (frequency + norm)).sum(axis=0)
    present = frequency > 0
    near, window = _closeness(question, places, terms)
    total, rarest = question.total or 1.0, idf(question.chunks, 0)
    named = frozenset(question.terms.names)
    names = [n for n, term in enumerate(terms) if term in named]
    columns: dict[str, Column] = {
        "text": bm25 / (question.reach or 1.0),
        "bm25": bm25,
        "cover": (weights * present).sum(axis=0) / total,
        "near": near,
        "window": window / total,
        "head": (weights * in_head).sum(axis=0) / total,
        "exact": places.exact / (len(sought.exact) or 1) * present.any(axis=0),
        "focus": _focus(terms) @ present,
        "matched": (weights * present).sum(axis=0) / rarest,
        "lost": (weights * ~present).max(axis=0, initial=0.0) / rarest,
        "names": present[names].mean(axis=0) if names else np.ones(count),
    }
    return zip(*(columns[name].tolist() for name in WordSignals._fields), strict=True)


def _focus(terms: Sequence[str]) -> Column:
    """The weights of a question's terms by their place, of the sum 1: what is asked for is mostly
    named first.

    Words that are in every sixteenth passage of any writing have none, unless there are no others.
    """
    import numpy as np  # noqa: PLC0415

    telling = np.asarray([share_of(term) < _EVERYDAY for term in terms], dtype=np.float64)
    if not telling.any():
        telling[:] = 1.0
    weights = telling / np.maximum(1.0, np.cumsum(telling))
    return np.asarray(weights / (weights.sum() or 1.0))


def _closeness(
    question: WeightedQuestion, places: Placed, terms: Sequence[str]
) -> tuple[Column, Column]:
    """For each passage: how near neighbouring words of the question are to each other, and the
    heaviest stretch.

    A pair counts 1 side by side and in order, and less with each word between; the wrong order
    costs one word. The heaviest stretch is the largest weight that different terms have within
    `STRETCH` words.
    """
    import numpy as np  # noqa: PLC0415

    near, window = np.zeros(len(places.rows)), np.zeros(len(places.rows))
    chunk, term, position = places.body
    if not len(chunk):
        return near, window
    # All passages are laid on one line, too far apart to be near each other. `last[t]` is where
    # term t was last seen.
    far = STRETCH + NEAR_WINDOW
    at = chunk * (int(places.lengths.max()) + far) + position
    is_term = term == np.arange(len(terms))[:, None]
    last = np.maximum.accumulate(np.where(is_term, at, -far), axis=1)
    starts = np.concatenate(([0], np.flatnonzero(chunk[1:] != chunk[:-1]) + 1))
    weights = np.asarray([[question.weights[t]] for t in terms])
    inside = (weights * (at - last < STRETCH)).sum(axis=0)
    window[chunk[starts]] = np.maximum.reduceat(inside, starts)
    if question.pairs:
        number = {t: n for n, t in enumerate(terms)}
        one, other = np.asarray([(number[a], number[b]) for a, b in question.pairs]).T
        gaps = np.where(
            is_term[other], at - last[one], np.where(is_term[one], at - last[other] + 1, far)
        )
        gap = np.maximum(1, np.minimum.reduceat(gaps, starts, axis=1))
        weight = weights[one] + weights[other]
        closeness = (weight * np.where(gap <= NEAR_WINDOW, 1.0 - (gap - 1) / NEAR_WINDOW, 0.0)).sum(
            axis=0
        )
        near[chunk[starts]] = closeness / (float(weight.sum()) or 1.0)
    return near, window
