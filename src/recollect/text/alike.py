"""Whether two passages say the same, contradict each other, or only look alike. Pure, and symmetric by construction.

Likeness alone decides nothing: notes that differ in one number or name are as near to each other as copies are. So a
passage is cut into statements, statements are aligned token by token, and what differs decides: nothing that matters is
a duplicate; a figure, name, value or negation said of the same subject is a conflict; another subject is another fact.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, TypeVar

from recollect.text.lexicon import CHANGES, EVENTS, GENERIC, MANY, MONTHS
from recollect.text.tokens import DATE, FIGURE, MARK, NAME, NOT, SMALL, VERB, WORD, Token, tokens

LONG = 20
"""So many words stand for themselves, whatever heading they are under."""
SURE_COSINE = 0.95
_MOST_STATEMENTS = 40
_FEW = 3
_CHOSEN = 4
_MOST_TOKENS = 400
_LEAST_SHARED = 0.5
_LEAST_NAMED = 0.3
_ITEM = re.compile(r"\s*(?:[-*+]\s+|\d{1,3}\)\s+|>\s?)+")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_THE = re.compile(r"\b(?:is|ist) (?:the|our|my|der|die|das|unser|unsere)\b", re.IGNORECASE)
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_PAST = re.compile(r"\w{2,}[^e\W]ed")
_RULE = re.compile(r"[\s|:=*_-]*\Z")
_MONTH = "|".join(MONTHS)
# Begins with the space, so that the places between are passed over quickly.
_SPACED = rf"\s(?<=[.!?;]\s)(?<!\bMr\.\s)(?<!\bMs\.\s)(?<!\bDr\.\s)\s*(?![a-zа-я]|(?i:{_MONTH})\b)"
_SENTENCE = re.compile(_SPACED)
_ANY_SENTENCE = re.compile(rf"{_SPACED}|(?<=[。！？；])")


T = TypeVar("T")


class _Once(Generic[T]):
    """A property that is worked out when it is first asked for: `cached_property` without its lock, which costs more
    than most of these do. Two threads at once make the same value twice.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value: T = self.make(instance)
        instance.__dict__[self.name] = value
        return value


class Verdict(StrEnum):
    """What two passages are to each other."""

    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Statement:
    """A sentence, list item or table row."""

    tokens: tuple[Token, ...]
    item: bool = False
    definite: bool = False

    @_Once
    def keys(self) -> tuple[str, ...]:
        """What is compared."""
        return tuple([t.key for t in self.tokens])

    @_Once
    def counts(self) -> Counter[str]:
        """How often each key stands in it."""
        return Counter(self.keys)

    @_Once
    def weights(self) -> dict[str, float]:
        """What each key weighs."""
        return {t.key: t.weight for t in self.tokens}

    @_Once
    def weight(self) -> float:
        """How many words it says; two characters of an unspaced script count as one."""
        return sum([t.weight for t in self.tokens])

    @_Once
    def turn(self) -> int:
        """Where what is said about the subject begins."""
        for i, token in enumerate(self.tokens):
            if token.kind == VERB:
                return i or 1  # `use …` has no subject
        return max(1, int(len(self.tokens) * 0.4))

    @_Once
    def verb(self) -> str:
        """The word at the turn, if there is one."""
        return self.tokens[self.turn].key if self.turn < len(self.tokens) else ""


@dataclass(frozen=True)
class Reading:
    """A passage made ready for comparison."""

    statements: tuple[Statement, ...]
    context: frozenset[str]

    @_Once
    def weight(self) -> float:
        """How many words it says."""
        return sum(s.weight for s in self.statements)

    @_Once
    def keys(self) -> frozenset[str]:
        """All that it names, for a quick look."""
        return frozenset(key for s in self.statements for key in s.keys)

    @_Once
    def form(self) -> str:
        """Equal for passages that are surely the same: the same statements and, of short ones, the same headings."""
        parts = sorted("\x1f".join(s.keys) for s in self.statements)
        if self.weight < LONG:
            parts += ["\x1d", *sorted(self.context)]
        return hashlib.blake2b("\x1e".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()

    @_Once
    def _long(self) -> bool:
        """Whether it is like another such passage only if half of its statements stand there as they are."""
        return len(self.statements) > _FEW

    @_Once
    def _chosen(self) -> list[tuple[tuple[int, ...], int]]:
        """Of a long passage a few statements, chosen by their own words, so that two versions choose the same."""
        return sorted({ends for s in self.statements for ends in [_ends(s)] if ends})[:_CHOSEN]

    @_Once
    def traits(self) -> tuple[int, ...]:
        """What it is found by: hashes of how its statements begin, end and read as a whole, and whether it is long."""
        return tuple(sorted({trait | self._long for ends, _ in self._chosen for trait in ends}))

    @_Once
    def sought(self) -> tuple[int, ...]:
        """The traits of passages that it may be like: those that are alike have at least one, few others do.

        Two long passages that share no whole statement are not alike, however many of theirs begin with the same words;
        to compare those would cost more with every note there is.
        """
        short = {trait for ends, _ in self._chosen for trait in ends}
        long = {whole for _, whole in self._chosen} if self._long else short
        return tuple(sorted(short | {trait | 1 for trait in long}))


def _ends(statement: Statement) -> tuple[tuple[int, ...], int] | None:
    """Even hashes of the words that a statement begins with, ends with and has; the last of them once more."""
    plain = [t.key for t in statement.tokens if t.plain]
    size = 4 if sum([t.wide for t in statement.tokens]) * 2 > len(statement.tokens) else 2
    if len(plain) < 2:
        plain = list(statement.keys)
    if not plain:
        return None
    whole = _number("\x1f".join(("s", *sorted(plain))))
    begins, ends = _number("\x1f".join(("a", *plain[:size]))), _number("\x1f".join(("z", *plain[-size:])))
    return tuple(sorted((begins, ends, whole))), whole


def _number(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) & ~1


@lru_cache(maxsize=2048)
def read(text: str, heading: tuple[str, ...] = ()) -> Reading:
    """A passage as statements, with what its headings add to it."""
    statements: list[Statement] = []
    titles = list(heading)
    for part, item in _parts(text, titles):
        for sentence in (_SENTENCE if part.isascii() else _ANY_SENTENCE).split(part):
            if not sentence or not sentence.strip():
                continue
            found = tokens(sentence)
            if found:
                the = "is" in sentence or not sentence.isascii() or "IS" in sentence.upper()  # a quick look first
                statements.append(Statement(found, item, the and _THE.search(sentence) is not None))
    said = {t.key for s in statements for t in s.tokens}
    context = {
        t.key
        for title in titles
        if title.strip().casefold() not in GENERIC
        for t in tokens(title)
        if t.kind in (WORD, NAME, FIGURE, VERB) and t.key not in said and t.key not in GENERIC and t.key != ":"
    }
    return Reading(tuple(statements), frozenset(context))


def _parts(text: str, titles: list[str]) -> Iterator[tuple[str, bool]]:
    """Paragraphs, list items and table rows; headings inside the text join those above it."""
    paragraph: list[str] = []
    item = False
    fence = ""
    for line in (*_COMMENT.sub(" ", text).split("\n"), ""):
        if mark := _FENCE.match(line):
            if paragraph:
                yield " ".join(paragraph), item
                paragraph, item = [], False
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
            continue
        if fence:
            yield line, True
            continue
        heading = _HEADING.match(line)
        bullet = _ITEM.match(line)
        row = line.lstrip().startswith("|")
        if paragraph and (heading or bullet or row or not line.strip()):
            yield " ".join(paragraph), item
            paragraph, item = [], False
        if heading:
            titles.append(heading.group(1))
        elif row:
            if not _RULE.match(line):
                yield " : ".join(cell.strip() for cell in line.strip().strip("|").split("|")), True
        elif line.strip() and not _RULE.match(line):
            item = item or bullet is not None
            paragraph.append(line[bullet.end() :] if bullet else line.strip())


def judge(a: Reading, b: Reading, *, cosine: float | None = None) -> Verdict:  # noqa: PLR0911 - the cheap tests first
    """What two passages are to each other; the order of the two and anything but their text make no difference."""
    if not a.statements or not b.statements:
        return Verdict.DIFFERENT
    if len(a.keys & b.keys) < _LEAST_NAMED * min(len(a.keys), len(b.keys)):
        return Verdict.DIFFERENT
    apart = bool(a.context - b.context) and bool(b.context - a.context)
    long = min(a.weight, b.weight) >= LONG
    if apart and not long:
        return Verdict.DIFFERENT
    common = Counter(s.keys for s in a.statements) & Counter(s.keys for s in b.statements)
    left, right = _without(a.statements, common), _without(b.statements, common)
    if not left and not right:
        return Verdict.DUPLICATE
    shared = sum(common.values())
    few, many = sorted((len(a.statements), len(b.statements)))
    if max(len(left), len(right)) > _MOST_STATEMENTS or (few > _FEW and 2 * shared < many):
        return Verdict.DIFFERENT  # of a longer passage at least half must stand in the other as it is
    pairs = _paired(left, right)
    verdicts = [compare(x, y, cosine=cosine) for x, y in pairs]
    alone = max(len(left), len(right)) - len(pairs)
    if not alone and all(v is Likeness.SAME for v in verdicts):
        return Verdict.DUPLICATE
    if apart:
        return Verdict.DIFFERENT
    if _other_topic(a, b, pairs, verdicts):
        return Verdict.DIFFERENT
    against = Likeness.AGAINST in verdicts
    alike = shared + sum(v is not Likeness.OTHER for v in verdicts)
    enough = alike == few if few <= _FEW < many else 2 * alike >= few
    return Verdict.CONFLICT if against and enough else Verdict.DIFFERENT


def _without(statements: Sequence[Statement], common: Counter[tuple[str, ...]]) -> list[Statement]:
    left = Counter(common)
    out = []
    for one in statements:
        if left[one.keys] > 0:
            left[one.keys] -= 1
        else:
            out.append(one)
    return out


def _paired(left: Sequence[Statement], right: Sequence[Statement]) -> list[tuple[Statement, Statement]]:
    """Statements that share at least half of what they say, the likest first, each once."""
    found: list[tuple[float, list[tuple[str, ...]], int, int]] = []
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            share = _share(x, y)
            if share >= _LEAST_SHARED:
                found.append((-share, sorted((x.keys, y.keys)), i, j))
    taken: tuple[set[int], set[int]] = (set(), set())
    pairs = []
    for _, _, i, j in sorted(found):
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            pairs.append((left[i], right[j]))
    return pairs


def _share(x: Statement, y: Statement) -> float:
    both = sum(
        min(x.weights[key], y.weights[key]) * min(count, y.counts[key])
        for key, count in x.counts.items()
        if key in y.counts
    )
    total = x.weight + y.weight
    return 2.0 * both / total if total else 0.0


class Likeness(StrEnum):
    """What two statements are to each other."""

    SAME = "same"
    AGAINST = "against"
    OTHER = "other"
    MORE = "more"


def _other_topic(
    a: Reading, b: Reading, pairs: Sequence[tuple[Statement, Statement]], verdicts: Sequence[Likeness]
) -> bool:
    """Whether the first sentences are about different things, so that what follows is about different things too."""
    if a.statements[0].item or b.statements[0].item:
        return False
    if a.statements[0].keys == b.statements[0].keys:
        return False
    firsts = {a.statements[0].keys, b.statements[0].keys}
    for (x, y), verdict in zip(pairs, verdicts, strict=True):
        if {x.keys, y.keys} == firsts:
            first, second = sorted((x, y), key=lambda s: s.keys)
            extra = _regions(first, second)[0]
            return verdict is Likeness.OTHER or (verdict is Likeness.MORE and extra[2] < first.turn)
    return len(a.statements) > 1 and len(b.statements) > 1 and not _first_is_elsewhere(a, b)


def _first_is_elsewhere(a: Reading, b: Reading) -> bool:
    """Whether the first sentence of one stands somewhere in the other, as after an insertion at the top."""
    return any(s.keys == a.statements[0].keys for s in b.statements) or any(
        s.keys == b.statements[0].keys for s in a.statements
    )


def compare(x: Statement, y: Statement, *, cosine: float | None = None) -> Likeness:  # noqa: C901, PLR0911, PLR0912 - one exit for each way to differ
    """What two statements are to each other."""
    if x.keys == y.keys:
        return Likeness.SAME
    if y.keys < x.keys:
        x, y = y, x  # the alignment below is not symmetric by itself
    if x.counts == y.counts:
        return _turned(x, y)
    if max(len(x.keys), len(y.keys)) > _MOST_TOKENS:
        return Likeness.OTHER
    regions = _regions(x, y)
    changes = [(p, q) for p, q, *_ in regions]
    if all(_only(p + q, NOT) for p, q in changes):
        one, two = (sum(len(side[n]) for side in changes) for n in (0, 1))
        return Likeness.AGAINST if one != two else Likeness.OTHER
    denial = any(t.kind == NOT for p, q in changes for t in p + q)
    replaced = [r for r in regions if r[0] and r[1]]
    if not denial and not replaced:
        return _more(regions, min(x.weight, y.weight), cosine)
    subject = [r for r in regions if r[2] < x.turn and r[3] < y.turn]
    if all(_only(p + q, MARK) for p, q in changes):
        return Likeness.AGAINST
    for p, q, at, _ in subject:
        said = p + q
        if _only(said, NOT, SMALL):
            continue
        if _role(x, y, regions):
            return Likeness.AGAINST
        if (
            p
            and q
            and at == 0
            and all(t.kind == FIGURE and t.key[-1].isdigit() and not t.key[0].isalpha() for t in said)
        ):
            continue  # `8080 is the port`, not `issue 12 is open`
        return Likeness.OTHER
    if denial:
        return Likeness.AGAINST
    if _event(x) or _event(y) or all(_only(p + q, SMALL) for p, q in changes):
        return Likeness.OTHER
    if _only([t for p, q in changes for t in p + q], DATE) and not any(t.kind == VERB for t in x.tokens):
        return Likeness.OTHER  # `lunch with Sara, Monday` is an entry of a calendar
    if x.verb in MANY and not all(_only(p + q, FIGURE) for p, q in changes):
        return Likeness.OTHER
    return Likeness.AGAINST if replaced else Likeness.OTHER


Region = tuple[tuple[Token, ...], tuple[Token, ...], int, int]


def _regions(x: Statement, y: Statement) -> list[Region]:
    """Where two statements differ, with the place of each difference in both."""
    aligned = SequenceMatcher(None, x.keys, y.keys, autojunk=False)
    return [(x.tokens[i:j], y.tokens[k:m], i, k) for tag, i, j, k, m in aligned.get_opcodes() if tag != "equal"]


def _only(found: Sequence[Token], *kinds: str) -> bool:
    return all(t.kind in kinds for t in found)


def _role(x: Statement, y: Statement, regions: Sequence[Region]) -> bool:
    """`Ann is the lead` against `Bob is the lead`: one place, two people."""
    if len(regions) != 1:
        return False
    p, q, i, k = regions[0]
    names = p and q and i == k == 0 and _only(p + q, NAME) and len(p) == x.turn and len(q) == y.turn
    return bool(names) and x.verb in ("is", "ist") and x.definite and y.definite


def _event(statement: Statement) -> bool:
    """Whether a statement tells what happened, which may happen again with another object."""
    first = statement.tokens[0].key
    if _PAST.fullmatch(first) and first not in CHANGES:
        return True
    return next((t.key for t in statement.tokens if t.key in EVENTS or (t.kind == VERB and t.key != ":")), "") in EVENTS


def _more(regions: Sequence[Region], weight: float, cosine: float | None) -> Likeness:
    """One says a little more than the other: the same only if a model is sure and the words are small."""
    extra = [t for p, q, *_ in regions for t in p + q]
    if cosine is None or cosine < SURE_COSINE or not _only(extra, SMALL, WORD) or any(t.wide for t in extra):
        return Likeness.MORE
    return Likeness.SAME if sum(t.weight for t in extra) * 8 <= weight else Likeness.MORE


def _turned(x: Statement, y: Statement) -> Likeness:
    """The same words in another order: `on Fridays we deploy` is `we deploy on Fridays`, who reports to whom is not."""
    for i in range(1, len(x.keys)):
        if x.keys[i:] + x.keys[:i] == y.keys and (x.tokens[0].kind == SMALL or x.tokens[i].kind == SMALL):
            front = x.tokens[:i] if x.tokens[0].kind == SMALL else x.tokens[i:]
            if any(t.kind == DATE for t in front):
                return Likeness.SAME
    return Likeness.AGAINST


def alike(a: str, b: str, *, cosine: float | None = None) -> Verdict:
    """What two texts are to each other."""
    return judge(read(a), read(b), cosine=cosine)
