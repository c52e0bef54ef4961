"""Whether two passages are copies, contradict each other, or only look alike. Pure, and symmetric
by construction.

Similarity alone decides nothing: notes that differ in one number or name are as close to each other
as copies are. So passages are compared statement by statement and token by token, and what differs
decides. If nothing that matters differs, they are copies; if a figure, name, value or negation
about the same subject differs, they contradict each other; if the subject differs, they are
separate facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from typing import NamedTuple

from notewell.compare.reading import FEW, LONG, Reading, Statement
from notewell.compare.tokens import DATE, FIGURE, MARK, NAME, NOT, SMALL, VERB, WORD, Token
from notewell.compare.vocabulary import CHANGES, EVENTS, MANY

SURE_COSINE = 0.95
_MOST_STATEMENTS = 40
_MOST_TOKENS = 400
LEAST_SHARED = 0.5
_LEAST_KEYS_SHARED = 0.3
_PAST = re.compile(r"\w{2,}[^e\W]ed")


class Verdict(StrEnum):
    """How two passages relate."""

    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    DIFFERENT = "different"


class Likeness(StrEnum):
    """How two statements relate."""

    SAME = "same"
    AGAINST = "against"
    OTHER = "other"
    MORE = "more"


class _Region(NamedTuple):
    """Tokens that differ in two statements, and the index of each run."""

    x: tuple[Token, ...]
    y: tuple[Token, ...]
    x_at: int
    y_at: int


def judge(a: Reading, b: Reading, *, cosine: float | None = None) -> Verdict:
    """How two passages relate; `judge(b, a)` returns the same."""
    other_heading = bool(a.context - b.context) and bool(b.context - a.context)
    if not _share_enough(a, b) or (other_heading and min(a.weight, b.weight) < LONG):
        return Verdict.DIFFERENT
    common = Counter(s.keys for s in a.statements) & Counter(s.keys for s in b.statements)
    left, right = _without(a.statements, common), _without(b.statements, common)
    if not left and not right:
        return Verdict.DUPLICATE
    shared = sum(common.values())
    few, many = sorted((len(a.statements), len(b.statements)))
    if max(len(left), len(right)) > _MOST_STATEMENTS or (few > FEW and 2 * shared < many):
        return Verdict.DIFFERENT
    pairs = _paired(left, right)
    verdicts = [compare(x, y, cosine=cosine) for x, y in pairs]
    if len(left) == len(right) == len(pairs) == verdicts.count(Likeness.SAME):
        return Verdict.DUPLICATE
    if other_heading or Likeness.AGAINST not in verdicts or _other_topic(a, b, pairs, verdicts):
        return Verdict.DIFFERENT
    alike = shared + len(verdicts) - verdicts.count(Likeness.OTHER)
    enough = alike == few if few <= FEW < many else 2 * alike >= few
    return Verdict.CONFLICT if enough else Verdict.DIFFERENT


def _share_enough(a: Reading, b: Reading) -> bool:
    """A quick test that most pairs fail."""
    least = min(len(a.keys), len(b.keys))
    return (
        bool(a.statements and b.statements) and len(a.keys & b.keys) >= _LEAST_KEYS_SHARED * least
    )


def _without(statements: Sequence[Statement], common: Counter[tuple[str, ...]]) -> list[Statement]:
    left = Counter(common)
    out = []
    for statement in statements:
        if left[statement.keys] > 0:
            left[statement.keys] -= 1
        else:
            out.append(statement)
    return out


def _paired(
    left: Sequence[Statement], right: Sequence[Statement]
) -> list[tuple[Statement, Statement]]:
    """Pairs of statements that share at least half of their words, the most similar first; each
    statement once.
    """
    found: list[tuple[float, list[tuple[str, ...]], int, int]] = []
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            both = share(x, y)
            if both >= LEAST_SHARED:
                found.append((-both, sorted((x.keys, y.keys)), i, j))
    taken: tuple[set[int], set[int]] = (set(), set())
    pairs = []
    for _, _, i, j in sorted(found):
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            pairs.append((left[i], right[j]))
    return pairs


def share(x: Statement, y: Statement) -> float:
    """The share of their words that two statements have in common."""
    shared = [(key, count) for key, count in x.counts.items() if key in y.counts]
    both = sum(
        [min(x.weights[key], y.weights[key]) * min(count, y.counts[key]) for key, count in shared]
    )
    total = x.weight + y.weight
    return 2.0 * both / total if total else 0.0


def _other_topic(
    a: Reading,
    b: Reading,
    pairs: Sequence[tuple[Statement, Statement]],
    verdicts: Sequence[Likeness],
) -> bool:
    """Whether the first sentences are about different things, so that the sentences after them are
    too.
    """
    first_a, first_b = a.statements[0], b.statements[0]
    if first_a.item or first_b.item or first_a.keys == first_b.keys:
        return False
    firsts = {first_a.keys, first_b.keys}
    for (x, y), verdict in zip(pairs, verdicts, strict=True):
        if {x.keys, y.keys} == firsts:
            first, second = sorted((x, y), key=lambda s: s.keys)
            extra = _regions(first, second)[0]
            return verdict is Likeness.OTHER or (
                verdict is Likeness.MORE and extra.x_at < first.turn
            )
    if len(a.statements) == 1 or len(b.statements) == 1:
        return False
    # After an insertion at the top, the first sentence of one passage is further down in the other.
    return all(s.keys != first_a.keys for s in b.statements) and all(
        s.keys != first_b.keys for s in a.statements
    )


def compare(x: Statement, y: Statement, *, cosine: float | None = None) -> Likeness:
    """How two statements relate."""
    if x.keys == y.keys:
        return Likeness.SAME
    if y.keys < x.keys:
        x, y = y, x  # the alignment below is not symmetric by itself
    if x.counts == y.counts:
        return _reordered(x, y)
    if max(len(x.keys), len(y.keys)) > _MOST_TOKENS:
        return Likeness.OTHER
    return _aligned(x, y, _regions(x, y), cosine)


def _aligned(
    x: Statement, y: Statement, regions: Sequence[_Region], cosine: float | None
) -> Likeness:
    """How two statements relate, by the kinds of tokens in which they differ."""
    kinds = {token.kind for region in regions for token in region.x + region.y}
    if kinds == {NOT}:
        negations_x, negations_y = sum(len(r.x) for r in regions), sum(len(r.y) for r in regions)
        return Likeness.AGAINST if negations_x != negations_y else Likeness.OTHER
    if NOT not in kinds and not any(r.x and r.y for r in regions):
        return _more(regions, min(x.weight, y.weight), cosine)
    if kinds == {MARK}:
        return Likeness.AGAINST
    if any(r.x_at < x.turn and r.y_at < y.turn and _changes_subject(r) for r in regions):
        return Likeness.AGAINST if _same_role(x, y, regions) else Likeness.OTHER
    return (
        Likeness.AGAINST if NOT in kinds or not _may_both_be_true(x, y, kinds) else Likeness.OTHER
    )


def _regions(x: Statement, y: Statement) -> list[_Region]:
    """Where two statements differ."""
    aligned = SequenceMatcher(None, x.keys, y.keys, autojunk=False)
    return [
        _Region(x.tokens[i:j], y.tokens[k:m], i, k)
        for tag, i, j, k, m in aligned.get_opcodes()
        if tag != "equal"
    ]


def _changes_subject(region: _Region) -> bool:
    """Whether a difference before the turn makes it another subject: more than a negation or a
    small word.

    In `8080 is the port` the figure is the value; in `issue 12 is open` it is part of the subject.
    """
    differing = region.x + region.y
    if _only(differing, NOT, SMALL):
        return False
    value = region.x and region.y and region.x_at == 0
    return not value or not all(
        t.kind == FIGURE and t.key[-1].isdigit() and not t.key[0].isalpha() for t in differing
    )


def _same_role(x: Statement, y: Statement, regions: Sequence[_Region]) -> bool:
    """`Ann is the lead` and `Bob is the lead`: one role, two people."""
    if len(regions) != 1:
        return False
    p, q, i, k = regions[0]
    names = p and q and i == k == 0 and _only(p + q, NAME) and len(p) == x.turn and len(q) == y.turn
    return bool(names) and x.verb in ("is", "ist") and x.definite and y.definite


def _may_both_be_true(x: Statement, y: Statement, kinds: set[str]) -> bool:
    """Whether two statements about one subject may differ without disagreeing."""
    return (
        kinds == {SMALL}
        or _tells_event(x)
        or _tells_event(y)
        # `lunch with Sara, Monday` is an entry of a calendar
        or (kinds == {DATE} and all(t.kind != VERB for t in x.tokens))
        or (x.verb in MANY and kinds != {FIGURE})
    )


def _tells_event(statement: Statement) -> bool:
    """Whether a statement tells what happened; that may happen again with another object."""
    first = statement.tokens[0].key
    if _PAST.fullmatch(first) and first not in CHANGES:
        return True
    return (
        next(
            (
                t.key
                for t in statement.tokens
                if t.key in EVENTS or (t.kind == VERB and t.key != ":")
            ),
            "",
        )
        in EVENTS
    )


def _only(found: Sequence[Token], *kinds: str) -> bool:
    return all(t.kind in kinds for t in found)


def _more(regions: Sequence[_Region], weight: float, cosine: float | None) -> Likeness:
    """One statement says a little more: they are the same only if a model is sure and the added
    words are small.
    """
    extra = [t for region in regions for t in region.x + region.y]
    if (
        cosine is None
        or cosine < SURE_COSINE
        or not _only(extra, SMALL, WORD)
        or any(t.wide for t in extra)
    ):
        return Likeness.MORE
    return Likeness.SAME if sum(t.weight for t in extra) * 8 <= weight else Likeness.MORE


def _reordered(x: Statement, y: Statement) -> Likeness:
    """The same words in another order: `on Fridays we deploy` is the same as `we deploy on
    Fridays`, but `Ann reports to Bob` is not the same as `Bob reports to Ann`.
    """
    for i in range(1, len(x.keys)):
        if x.keys[i:] + x.keys[:i] == y.keys and (
            x.tokens[0].kind == SMALL or x.tokens[i].kind == SMALL
        ):
            front = x.tokens[:i] if x.tokens[0].kind == SMALL else x.tokens[i:]
            if any(t.kind == DATE for t in front):
                return Likeness.SAME
    return Likeness.AGAINST
