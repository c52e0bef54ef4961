"""A passage read as statements, each a row of comparable tokens; and the traits by which similar
passages are found.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from notewell.compare.tokens import FIGURE, NAME, VERB, WORD, Token, tokens
from notewell.compare.vocabulary import GENERIC, MONTHS
from notewell.text.words import lazy_compile

LONG = 20  # a passage of this many words means the same under any heading
# passages with more statements than this are alike only if they share half of them word for word
FEW = 3
_CHOSEN = 4
_ITEM = lazy_compile(r"\s*(?:[-*+]\s+|\d{1,3}\)\s+|>\s?)+")
_HEADING = lazy_compile(r"\s{0,3}#{1,6}\s+(.*)")
_COMMENT = lazy_compile(r"(?s)<!--.*?-->")
_THE = lazy_compile(r"(?i)\b(?:is|ist) (?:the|our|my|der|die|das|unser|unsere)\b")
_FENCE = lazy_compile(r"\s{0,3}(```+|~~~+)")
_RULE = lazy_compile(r"[\s|:=*_-]*\Z")
_MONTH = "|".join(MONTHS)
# Starts with the space, so that the regex engine skips quickly over everything else.
_SPACED = rf"\s(?<=[.!?;]\s)(?<!\bMr\.\s)(?<!\bMs\.\s)(?<!\bDr\.\s)\s*(?![a-zа-я]|(?i:{_MONTH})\b)"
_SENTENCE = lazy_compile(_SPACED)
_ANY_SENTENCE = lazy_compile(rf"{_SPACED}|(?<=[。！？；])")

T = TypeVar("T")


class _Cached(Generic[T]):
    """`cached_property` without its lock, which costs more than most of these values; threads may
    compute one twice.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value: T = self.make(instance)
        instance.__dict__[self.name] = value
        return value


@dataclass(frozen=True)
class Statement:
    """A sentence, list item or table row."""

    tokens: tuple[Token, ...]
    item: bool = False
    definite: bool = False

    @_Cached
    def keys(self) -> tuple[str, ...]:
        """The keys of the tokens, which are what is compared."""
        return tuple([t.key for t in self.tokens])

    @_Cached
    def counts(self) -> Counter[str]:
        """How often each key occurs."""
        return Counter(self.keys)

    @_Cached
    def weights(self) -> dict[str, float]:
        """The weight of each key."""
        return {t.key: t.weight for t in self.tokens}

    @_Cached
    def weight(self) -> float:
        """The length in words; two characters of an unspaced script count as one word."""
        return sum([t.weight for t in self.tokens])

    @_Cached
    def turn(self) -> int:
        """The index at which the subject ends and what is said about it begins."""
        for i, token in enumerate(self.tokens):
            if token.kind == VERB:
                return i or 1  # `use …` has no subject
        return max(1, int(len(self.tokens) * 0.4))

    @_Cached
    def verb(self) -> str:
        """The key at the turn, or nothing."""
        return self.tokens[self.turn].key if self.turn < len(self.tokens) else ""


@dataclass(frozen=True)
class Reading:
    """A passage ready for comparison."""

    statements: tuple[Statement, ...]
    context: frozenset[str]

    @_Cached
    def weight(self) -> float:
        """The length in words."""
        return sum(s.weight for s in self.statements)

    @_Cached
    def keys(self) -> frozenset[str]:
        """All keys of all statements."""
        return frozenset(key for s in self.statements for key in s.keys)

    @_Cached
    def form(self) -> str:
        """Equal for certain copies: the same statements and, for short passages, the same
        headings.
        """
        parts = sorted("\x1f".join(s.keys) for s in self.statements)
        if self.weight < LONG:
            parts += ["\x1d", *sorted(self.context)]
        return hashlib.blake2b(
            "\x1e".join(parts).encode("utf-8", "replace"), digest_size=12
        ).hexdigest()

    @_Cached
    def _long(self) -> bool:
        return len(self.statements) > FEW

    @_Cached
    def _chosen(self) -> list[tuple[tuple[int, ...], int]]:
        """The hashes of a few statements, chosen by their words, so that two versions of a passage
        choose the same.
        """
        return sorted({hashes for s in self.statements for hashes in [_hashes(s)] if hashes})[
            :_CHOSEN
        ]

    @_Cached
    def traits(self) -> tuple[int, ...]:
        """Hashes that others find this passage by; the lowest bit is set if the passage is long."""
        return tuple(sorted({trait | self._long for hashes, _ in self._chosen for trait in hashes}))

    @_Cached
    def sought(self) -> tuple[int, ...]:
        """The traits of passages that may be like this one: those that are have at least one of
        them, few others do.

        Two long passages without a common statement are not alike, even if many of their statements
        begin with the same words. Comparing those too would make every new note more expensive than
        the last.
        """
        short = {trait for hashes, _ in self._chosen for trait in hashes}
        long = {whole for _, whole in self._chosen} if self._long else short
        return tuple(sorted(short | {trait | 1 for trait in long}))


def _hashes(statement: Statement) -> tuple[tuple[int, ...], int] | None:
    """Hashes of the first words, the last words and all words of a statement, sorted; then the last
    of these again.
    """
    plain = [t.key for t in statement.tokens if t.plain]
    size = 4 if sum([t.wide for t in statement.tokens]) * 2 > len(statement.tokens) else 2
    if len(plain) < 2:
        plain = list(statement.keys)
    if not plain:
        return None
    whole = _hash("s", *sorted(plain))
    return tuple(sorted((_hash("a", *plain[:size]), _hash("z", *plain[-size:]), whole))), whole


def _hash(*words: str) -> int:
    """An even number: the lowest bit is free to mark long passages."""
    digest = hashlib.blake2b("\x1f".join(words).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) & ~1


@lru_cache(maxsize=2048)
def read(text: str, heading: tuple[str, ...] = ()) -> Reading:
    """A passage as statements, with what its headings add to them."""
    statements: list[Statement] = []
    titles = list(heading)
    for part, item in _parts(text, titles):
        for sentence in _split(part):
            if found := tokens(sentence):
                # The substring test is cheap and rules out most sentences.
                may_be = "is" in sentence or not sentence.isascii() or "IS" in sentence.upper()
                statements.append(
                    Statement(found, item, may_be and _THE.search(sentence) is not None)
                )
    in_text = {t.key for s in statements for t in s.tokens}
    context = {
        t.key
        for title in titles
        if title.strip().casefold() not in GENERIC
        for t in tokens(title)
        if t.kind in (WORD, NAME, FIGURE, VERB)
        and t.key not in in_text
        and t.key not in GENERIC
        and t.key != ":"
    }
    return Reading(tuple(statements), frozenset(context))


def sentences(text: str) -> list[str]:
    """The sentences, list items and table rows of a passage, without its headings."""
    return [sentence for part, _ in _parts(text, []) for sentence in _split(part)]


def _split(part: str) -> list[str]:
    return [
        s for s in (_SENTENCE if part.isascii() else _ANY_SENTENCE).split(part) if s and s.strip()
    ]


_BREAK, _TITLE, _BULLET, _WHOLE, _TEXT = range(5)


def _parts(text: str, titles: list[str]) -> Iterator[tuple[str, bool]]:
    """Paragraphs (False), list items, table rows and lines of code (True); adds headings in the
    text to `titles`.
    """
    paragraph: list[str] = []
    item = False
    for kind, words in (*_lines(text), (_BREAK, "")):
        if paragraph and kind != _TEXT:
            yield " ".join(paragraph), item
            paragraph, item = [], False
        if kind == _TITLE:
            titles.append(words)
        elif kind == _WHOLE:
            yield words, True
        elif kind != _BREAK:
            paragraph.append(words)
            item = item or kind == _BULLET


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line's kind and words; a rule under a paragraph is left out, any other rule is a
    break.
    """
    fence = ""
    for line in _COMMENT.sub(" ", text).split("\n"):
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
            yield _BREAK, ""
        elif fence:
            yield _WHOLE, line
        elif heading := _HEADING.match(line):
            yield _TITLE, heading[1]
        elif _RULE.match(line):
            if not line.strip() or line.lstrip().startswith("|") or _ITEM.match(line):
                yield _BREAK, ""
        elif line.lstrip().startswith("|"):
            yield _WHOLE, " : ".join(cell.strip() for cell in line.strip().strip("|").split("|"))
        elif bullet := _ITEM.match(line):
            yield _BULLET, line[bullet.end() :]
        else:
            yield _TEXT, line.strip()
