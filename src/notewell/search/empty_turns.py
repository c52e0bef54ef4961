"""Which turns of a conversation cannot answer a question: they ask it, or say that nothing was
found.

A conversation in which a question failed has all words of that question, in the turn that asks and
often in its title. If such a turn counted like any other, the next one who asks would be given the
failure instead of the note that answers. So what counts is what a turn tells, in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from notewell.compare.questions import (
    OF_SEARCHING,
    asks,
    clauses,
    denies,
    finds_nothing,
    may_find_nothing,
    opens_question,
    phrases,
    tells_of_looking,
    wants_work,
)
from notewell.compare.reading import sentences
from notewell.text.everyday import share_of
from notewell.text.words import term_set, words_in
from notewell.types import HALF_OPEN, Chunk, Query

# the share of its pairs of words that a turn has from the question if it is that question again
_SAME = 0.6
_QUOTED_WORDS = 3  # a title of fewer words is a name that anybody may use
_MOST_WORDS = 400
_STATED = (".", "。", "!", "！")


class _Part(NamedTuple):
    """A clause of a turn: whether it tells something, its terms, and those of them that are not
    everyday words.
    """

    tells: bool
    terms: frozenset[str]
    special: frozenset[str]


def open_turns(turns: Iterable[Chunk], query: Query) -> dict[str, float]:
    """By the id of each turn, how much of what it says of the subject of a question is a question
    or a failure.
    """
    weights = {word: weight for word, weight in query.weights.items() if word in query.subject}
    return {turn.id: openness(turn, query.text, weights) for turn in turns}


def openness(turn: Chunk, question: str, weights: Mapping[str, float]) -> float:
    """How much of what a turn says of the weighted words of a question is asked or not found: 1 for
    all, 0 for none.

    A turn of an agent that tells nothing new is all open: the words of its title and of the
    question are not its own. One that tells something, but shares no word with the question beyond
    everyday ones, is half open: it may be the short answer to the turn before it, or one more way
    to say that nothing was found, which no list of phrases knows.
    """
    if turn.origin == "owner":
        return (
            1.0
            if _repeats(turn.text, question)
            else _open_share(_parts(turn.text, by_user=True), weights)
        )
    known = term_set(" ".join((question, *turn.heading)))
    said = _without(turn.text, (question, *turn.heading))
    denying = denies(said)
    parts = _parts(said, by_user=False)
    if not any(part.tells and part.special - known for part in parts):
        return 1.0
    share = _open_share(parts, weights) if denying else 0.0
    subject = {word for word in weights if not share_of(word)} or weights.keys()
    on_subject = any(part.tells and not subject.isdisjoint(part.terms) for part in parts)
    return share if on_subject else max(share, HALF_OPEN)


def _without(text: str, quoted: Iterable[str]) -> str:
    """A text without the questions and titles that it repeats to the letter."""
    for one in quoted:
        if len(_pairs(one)) >= _QUOTED_WORDS:
            # What a reply begins with is its subject: "Refresh token lifetime is 30 days."
            inside = rf"(?<!\A)(?<!\Athe ){re.escape(one)}"
            text = re.sub(inside, " ", text, flags=re.IGNORECASE)
    return text


def _open_share(parts: Sequence[_Part], weights: Mapping[str, float]) -> float:
    told = asked = 0.0
    for part in parts:
        weight = sum(weights[word] for word in part.terms if word in weights)
        if part.tells:
            told = max(told, weight)
        else:
            asked = max(asked, weight)
    if told or asked:
        return asked / (told + asked)
    # It was found by its meaning alone. What it tells beside its question may still be what was
    # meant.
    return sum(not part.tells for part in parts) / len(parts) if parts else 1.0


def _repeats(said: str, question: str) -> bool:
    """Whether somebody said the question before, almost in the same words; many prompts are not
    even questions.
    """
    own, asked = _pairs(said), _pairs(question)
    if not own or own == asked:
        return bool(own)
    return len(own & asked) >= _SAME * len(own) and not said.rstrip().endswith(_STATED)


@lru_cache(maxsize=1024)
def _pairs(text: str) -> frozenset[tuple[str, str]]:
    """The words of a text in pairs, each with the next; none of a text that is too long to be a
    question.
    """
    words = words_in(text.casefold())[: _MOST_WORDS + 1]
    return frozenset(pairwise(("", *words))) if len(words) <= _MOST_WORDS else frozenset()


@lru_cache(maxsize=4096)
def _parts(text: str, *, by_user: bool) -> tuple[_Part, ...]:
    return tuple(_read(text, by_user=by_user))


def _read(text: str, *, by_user: bool) -> Iterator[_Part]:
    """The clauses of a turn that tell, ask or say that nothing was found."""
    for sentence in sentences(text):
        for clause, tells in _of_user(sentence) if by_user else _of_agent(sentence):
            terms = term_set(clause)
            special = frozenset(w for w in terms - OF_SEARCHING if len(w) > 1 and not share_of(w))
            yield _Part(tells and (bool(special) or not may_find_nothing(clause)), terms, special)


def _of_agent(sentence: str) -> Iterator[tuple[str, bool]]:
    """The clauses of a sentence of an agent, each with whether it tells something.

    Left out is what tells of the search alone, and a question: an agent that asks offers to go on.
    """
    if asks(sentence):
        return
    for clause in clauses(sentence):
        if finds_nothing(clause):
            yield clause, False
        elif not tells_of_looking(clause):
            yield clause, True


def _of_user(sentence: str) -> Iterator[tuple[str, bool]]:
    """The clauses of a sentence of a user, who often tells something and asks at the end of the
    same sentence.
    """
    parts = phrases(sentence)
    for number, clause in enumerate(parts, start=1):
        open_ = opens_question(clause) or wants_work(clause) or finds_nothing(clause)
        yield clause, not (open_ or (number == len(parts) and asks(sentence)))
