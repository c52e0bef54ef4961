"""Which of several close passages tells how things are now: the newest, and one that answers rather
than asks.

The words of the question do not decide that, the passages do. Two are on the same subject if their
best sentences have the same words of the question, and all the more if the newer sentence tells of
a change or has another figure.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from notewell.compare.change import figures, gives_new_figure, says_other, tells_change
from notewell.compare.questions import asks
from notewell.compare.reading import sentences
from notewell.search.confidence import instead
from notewell.search.fusion import falling, logit
from notewell.text.words import STOP_WORDS, begins_of, term_set
from notewell.types import Candidate, Chunk, Query, Tense

_LEAST_KNOWN = 0.5  # the sentence to go first has this share of the question
# both have this share of it; of what the other has, that sentence, and its whole passage
_ALIKE = (0.5, 0.8, 0.85)
# the same if the newer tells of a change, and so need not have the words of the older
_CHANGED = (0.3, 0.4, 0.5)
_ECHO = 0.5  # a question of which this share is words of the subject tells nothing else
_TOLD = 0.5  # a passage that tells this share of what it asks does not only ask
_SECTION = 400
_SHORT = 6
_REPLY_LINES = 50  # calls of tools may be between a turn and its reply
_EVENT_DEPTH = 20
_CLAUSES = re.compile(r"[,;，；、]")
_CLOCK = re.compile(r"\d{4}-?\d\d-?\d\d[-_ T]([01]\d|2[0-3])[-:.]?([0-5]\d)(?!\d)", re.ASCII)
_UNKNOWN = -1
_SPEAKER = re.compile(r"\A[\s>*-]*\*\*[^*\n]{1,40}:\*\*")

_terms = lru_cache(maxsize=4096)(term_set)  # of sentences, a kilobyte each


@lru_cache(maxsize=1024)
def _sentences(text: str) -> tuple[tuple[str, str, bool], ...]:
    """The sentences of a passage without who speaks them, in lower case if that is simple, and
    whether each asks.
    """
    plain = [_SPEAKER.sub("", sentence) for sentence in sentences(text)]
    return tuple((one, one.lower() if one.isascii() else "", asks(one)) for one in plain)


def _about(text: str, wanted: Collection[str]) -> Iterator[tuple[str, bool, frozenset[str]]]:
    """The sentences of a passage that may have wanted terms, whether they ask, and all terms of
    each.
    """
    # where none of these is to be seen, no word has to be stemmed
    begins = begins_of(frozenset(wanted))
    for sentence, low, is_question in _sentences(text):
        if low:
            for begin in begins:
                if begin in low:
                    break
            else:
                continue
        yield sentence, is_question, _terms(sentence)


def _title(candidate: Candidate) -> str:
    return " ".join((*candidate.chunk.heading, candidate.chunk.facts.title))


class _Subject:
    """The words that a question is about, with their weights."""

    __slots__ = ("total", "weights", "words")

    def __init__(self, query: Query) -> None:
        self.weights = {
            word: weight for word, weight in query.weights.items() if word in query.subject
        }
        self.words = frozenset(self.weights)
        self.total = self.weigh(self.words)

    def weigh(self, words: Iterable[str]) -> float:
        """How much of the subject these words are; exact, since they come in any order."""
        return math.fsum([self.weights[word] for word in words])


@dataclass(frozen=True, slots=True)
class _Said:
    """What a passage says about a subject: its best sentence, the words that this and its headings
    share with the subject, those that the whole passage does, and the most that a statement, that a
    mere question and that a plain question has of it.
    """

    own: Candidate
    best: str
    shared: frozenset[str]
    covered: frozenset[str]
    told: float
    asked: float
    named: float

    @property
    def only_asks(self) -> bool:
        """Whether the subject is asked about, and nothing is said about it."""
        return self.told < _TOLD * self.asked


def _is_plain(asking: str, terms: frozenset[str]) -> bool:
    """Whether a question is short, with one clause and no figure: it hardly tells a fact in
    passing.
    """
    return len(terms - STOP_WORDS) <= _SHORT and not _CLAUSES.search(asking) and not figures(asking)


def _said(own: Candidate, subject: _Subject) -> _Said:
    weigh, words = subject.weigh, subject.words
    head = _terms(_title(own)) & words
    best, shared, covered = "", head, head
    most = told = asked = named = 0.0
    for sentence, is_question, terms in _about(own.chunk.text, words):
        found = terms & words
        if not found:
            continue
        covered |= found
        whole = weigh(found)
        # The headings are about all of the passage, so the other words tell which sentence it is.
        weight = weigh(found - head) + 0.01 * whole if head else whole
        if weight > most or (weight == most and not is_question and asks(best)):
            most, best, shared = weight, sentence, found | head
        if not is_question:
            told = max(told, whole)
            continue
        if _is_plain(sentence, terms):
            named = max(named, whole)
        if len(found) >= _ECHO * len(terms - STOP_WORDS):
            asked = max(asked, whole)
    # All of a section is about its heading.
    return _Said(
        own,
        best or (own.chunk.text[:_SECTION] if head else ""),
        shared,
        covered,
        told,
        asked,
        named,
    )


@dataclass(frozen=True, slots=True)
class Newer:
    """Puts the newest of several dated passages on the same subject first, if they are close.

    If the question names a period, that is the newest of this time or before it. A question about
    history is left alone, and so is one in the past tense that names no period. `margin` is in
    units of the logit of the score; if the newer passage tells of a change, or has another figure,
    it is `sure`.
    """

    margin: float = 1.0
    sure: float = 4.0
    depth: int = 5

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Moves a passage directly before the first that it outdates, and marks contradictions;
        drops nothing.
        """
        out = list(candidates)
        head = [c for c in out[: self.depth] if c.chunk.day is not None and not c.signals.is_empty]
        several = len({_moment(c.chunk) for c in head}) > 1
        until = _last_day(out, query) if several and query.weights else None
        if until is None:
            return out
        subject = _Subject(query)
        dated = sorted(
            (_said(c, subject) for c in head),
            key=lambda said: (_standing(said.own, until), said.own.id),
        )
        against: dict[str, set[str]] = {}
        for one in dated:
            others = [
                other
                for other in dated
                if _tells_better(one, other, query, until) and self._outdates(one, other, subject)
            ]
            # of one word many things can be said, of more of them hardly
            if len(subject.words) > 1:
                _note_conflict(one, others, against)
            _move_before(out, one.own, {other.own.id for other in others})
        return falling(_marked(c, against[c.id]) if c.id in against else c for c in out)

    def _outdates(self, one: _Said, other: _Said, subject: _Subject) -> bool:
        gap = _gap(other.own, one.own)
        if gap > self.sure or one.own.chunk.path == other.own.chunk.path:
            return False
        if asks(one.best) or not _shares(one, other, subject, _CHANGED):
            return False
        if _changed(one, other):
            return True
        answers = bool(figures(one.best)) or not figures(other.best)
        return gap <= self.margin and answers and _shares(one, other, subject, _ALIKE)


def _move_before(out: list[Candidate], one: Candidate, others: Collection[str]) -> None:
    """Moves a candidate directly before the first of some others, if that is above it, and as
    likely as that one.
    """
    at = next(i for i, c in enumerate(out) if c.id == one.id)
    goal = next((i for i, c in enumerate(out[:at]) if c.id in others), None)
    if goal is not None:
        out.insert(goal, replace(instead(out.pop(at), out[goal]), score=out[goal].score))


def _note_conflict(one: _Said, others: Sequence[_Said], against: dict[str, set[str]]) -> None:
    """Adds the last passage that the one contradicts, both ways; that one contradicts those before
    it.
    """
    for other in reversed(others):
        if _contradicts(one, other):
            against.setdefault(one.own.id, set()).add(other.own.id)
            against.setdefault(other.own.id, set()).add(one.own.id)
            return


def _marked(candidate: Candidate, against: Iterable[str]) -> Candidate:
    known = candidate.relations.conflicts_with
    more = sorted(set(against).difference(known))
    return replace(
        candidate, relations=replace(candidate.relations, conflicts_with=(*known, *more))
    )


def _tells_better(one: _Said, other: _Said, query: Query, until: dt.date) -> bool:
    """Whether the one is from a time that tells more of the day asked for; two events of the same
    period both do.
    """
    if query.tense is Tense.PAST and one.own.signals.date and other.own.signals.date:
        return False
    (day, minute), (other_day, other_minute) = (
        _standing(one.own, until),
        _standing(other.own, until),
    )
    return day > other_day or (day == other_day > 0 and minute > other_minute > _UNKNOWN)


def _standing(candidate: Candidate, until: dt.date) -> tuple[int, int]:
    """The higher, the better a passage tells how things stood on a day; 0 if it is from after
    that.
    """
    day, minute = _moment(candidate.chunk)
    return (day, minute) if day <= until.toordinal() else (0, _UNKNOWN)


def _moment(chunk: Chunk) -> tuple[int, int]:
    """The day of a passage, and the minute if its turn or the name of its file
    (`2026-02-10-1430.md`) tells it.
    """
    day = (chunk.day or dt.date.min).toordinal()
    if chunk.time:
        return day, 60 * chunk.time.hour + chunk.time.minute
    named = _CLOCK.search(chunk.path.rpartition("/")[2])
    return day, 60 * int(named[1]) + int(named[2]) if named else _UNKNOWN


def _shares(one: _Said, other: _Said, subject: _Subject, least: tuple[float, float, float]) -> bool:
    """Whether two passages talk of the same part of the question, and the one says as much as the
    other about it.
    """
    known, shared, covered = least
    both = subject.weigh(one.shared & other.shared)
    return (
        subject.weigh(one.shared) >= _LEAST_KNOWN * subject.total
        and both >= known * subject.total
        and both >= shared * subject.weigh(other.shared)
        and subject.weigh(one.covered) >= covered * subject.weigh(other.covered)
    )


def _by_age(one: _Said, other: _Said) -> tuple[str, str]:
    """The best sentences of two passages, the older first."""
    older, newer = sorted((one, other), key=lambda said: _moment(said.own.chunk))
    return older.best, newer.best


def _changed(one: _Said, other: _Said) -> bool:
    """Whether the newer of two sentences tells of a change, or says something else of the same."""
    older, newer = _by_age(one, other)
    return tells_change(newer) or says_other(newer, older)


def _contradicts(one: _Said, other: _Said) -> bool:
    """Whether both cannot be true."""
    older, newer = _by_age(one, other)
    return tells_change(newer) and gives_new_figure(newer, older)


def _last_day(candidates: Sequence[Candidate], query: Query) -> dt.date | None:
    """The last day of the time that a question is about; None if it is about no single time."""
    if query.tense is Tense.HISTORY:
        return None
    if query.until is not None:
        return query.until
    if query.before:
        return _day_before(query.before, candidates)
    return dt.date.max if query.tense is Tense.NOW else None


def _day_before(event: Sequence[str], candidates: Sequence[Candidate]) -> dt.date | None:
    """The day before something happened: the first passage that has most of its words, best in a
    heading, tells it.
    """
    found: list[tuple[int, bool, int]] = []
    for c in candidates[:_EVENT_DEPTH]:
        if c.chunk.day is not None and c.chunk.day > dt.date.min:
            head = _terms(_title(c))
            terms = head.union(*(terms for _, _, terms in _about(c.chunk.text, event)))
            if event[0] in terms:
                found.append(
                    (
                        -sum(word in terms for word in event),
                        event[0] not in head,
                        c.chunk.day.toordinal(),
                    )
                )
    return dt.date.fromordinal(min(found)[2] - 1) if found else None


@dataclass(frozen=True, slots=True)
class Replies:
    """Puts what answers before what only asks the same as the question, such as an earlier turn of
    a conversation.

    What another speaker says next in the same conversation goes before the turn that asks, unless
    it answers nothing either; it is as likely as its own words make it. If it is not found and the
    turn asks the same and no more, the turn goes behind those below it that are within `margin`, in
    units of the logit of the score, and say as much about the subject.
    """

    margin: float = 2.0
    depth: int = 5

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Moves such passages down and their replies up; drops nothing."""
        out = list(candidates)
        may_ask = [c for c in out[: self.depth] if "?" in c.chunk.text or "？" in c.chunk.text]
        if not may_ask or not query.weights:
            return out
        subject = _Subject(query)
        for asking in [
            said
            for said in (_said(c, subject) for c in may_ask)
            if said.only_asks or said.named > said.told == 0
        ]:
            at = next(i for i, c in enumerate(out) if c.id == asking.own.id)
            reply = _reply(asking.own, out)
            if reply is not None:
                out.insert(min(at, reply), _in_place_of(asking.own, out.pop(reply)))
                continue
            telling = [
                i
                for i in range(at + 1, min(self.depth, len(out)))
                if self._tells(out[i], asking, subject)
            ]
            if telling and asking.only_asks:
                out.insert(telling[-1], out.pop(at))
        return falling(out)

    def _tells(self, candidate: Candidate, asking: _Said, subject: _Subject) -> bool:
        if _gap(asking.own, candidate) > self.margin:
            return False
        said = _said(candidate, subject)
        return not said.only_asks and said.told >= _ALIKE[1] * asking.asked


def _gap(one: Candidate, other: Candidate) -> float:
    return logit(one.score) - logit(other.score)


def _in_place_of(asking: Candidate, reply: Candidate) -> Candidate:
    """The reply to a turn, where that turn was: its own words need not be those of the question.

    That the turn has the words of the question does not make the reply an answer, so its confidence
    stays.
    """
    signals = reply.signals._replace(reply=1.0)
    return replace(reply, score=max(reply.score, asking.score), signals=signals)


def _reply(asking: Candidate, candidates: Sequence[Candidate]) -> int | None:
    """Where the passage is that another speaker says next in the same conversation."""
    chunk = asking.chunk
    after = [
        (c.chunk.start_line, i)
        for i, c in enumerate(candidates)
        if c.chunk.path == chunk.path
        and c.chunk.origin != chunk.origin
        and not c.signals.is_empty
        and 0 < c.chunk.start_line - chunk.end_line <= _REPLY_LINES
    ]
    return min(after)[1] if after else None
