"""Which time a question is about, in several languages. The clock is always an argument.

Most questions are about now, whatever their words, so only the others are recognised: those that
name a period, those in the past tense, and those that ask how something came about.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from notewell.text.dates import placed_spans
from notewell.text.words import STOP_WORDS, lazy_compile, lower, query_terms
from notewell.types import Span, Tense

_MOST_EVENT_WORDS = 3
_EVENT_WORDS = (
    "before",
    "prior",
    "vor",
    "avant",
    "antes",
    "前",
)  # one of which `_EVENT` needs, and it is slow to make
_BEFORE = lazy_compile(
    r"(?i)\b(?:before|prior to|vor|avant|antes de)(?:\s+(?:the|dem|der|den|le|la|el))?\s*\Z"
)
_BEFORE_IN = lazy_compile(
    r"(?i)(?:before|vor(?!\s+\w+\s+(?:tag|woche|monat|jahr))|avant(?!-)|antes)\b"
)
_BEFORE_AFTER = lazy_compile(r"\s*(?:之前|以前|前)")
_SINCE = lazy_compile(
    r"(?i)(?:\b(?:since|after|seit|nach|ab|depuis|après|desde|después "
    r"de)(?:\s+(?:the|dem|der))?)\s*\Z"
)
_SINCE_IN = lazy_compile(r"(?i)(?:since|after|seit|nach|depuis|après|desde|después)\b")
_SINCE_AFTER = lazy_compile(r"\s*(?:以来|以來|之后|以后|之後|以後|起)")
_EVENT = lazy_compile(
    r"(?i)\b(?:before|prior to)\s+(?:(?:the|our|my|his|her|their|its|we|i|they|he|she|it|you)\s+)?"
    r"(?P<en>\w[\w'-]*(?:\s+\w[\w'-]*){0,3})"
    r"|\bvor\s+(?:dem|der|den|unser\w*|mein\w*|ihr\w*|sein\w*)\s+(?:(?-i:[a-zäöüß]\w*)\s+){0,2}(?P<de>(?-i:[A-ZÄÖÜ])\w+)"
    r"|\bavant\s+(?:(?:le|la|les|notre|mon|ma|leur|de)\s+|l['’]|d['’])?(?P<fr>\w+)"
    r"|\bantes\s+(?:del|de\s+(?:la|el|los|las|nuestr[ao]|mi)|de)\s+(?P<es>\w+)"
    r"|(?:\A|[，。,.;；？?！!\s]|在|我们|我們|公司)(?P<zh>(?-i:[\u4e00-\u9fff]){2,6}?)(?:之前|以前|前(?![天年台端面后後]))"
)
# "all", "between" and the like ask for several passages, "when" for the day of one.
_HISTORY = lazy_compile(
    r"(?i)\b(?:summari[sz]\w*|summary of|histor\w+|timeline|chronolog\w+|over time"
    r"|over the (?:years|months)|throughout|ever|between|total|across|altogether|all"
    r"|in (?:what|which) order|order of|evol\w+|when|changed|progress\w*"
    r"|previous(?:ly)?|initial(?:ly)?|original(?:ly)?|at first|first|earlier|earliest"
    r"|used to|former(?:ly)?|back then|at the time|last time|the old|before(?=\W*\Z)"
    r"|geschichte|verlauf|chronik|im laufe?|entwickel\w+|jemals"
    r"|schon (?:ein)?mal|wann|insgesamt|alle|zuerst|anfangs|ursprünglich\w*"
    r"|früher\w*|damals|ehemalig\w*|vorherig\w*|erste[nrsm]?|verändert|geändert"
    r"|histoire|au fil du temps|évolu\w+|quand|au total|tou[ts]e?s|d['’]abord|à l['’]origine"
    r"|auparavant|autrefois|ancien(?:ne)?s?|précédent\w*|premi[eè]re?s?|changé"
    r"|historia|a lo largo del? \w+|evoluci\w+|cuándo|en total|alguna vez|tod[oa]s"
    r"|primer[oa]?s?|original\w*|anterior\w*|antiguamente|inicial\w*|cambiado)\b"
    r"|历史|歷史|变化|變化|一直以来|曾经|曾經|什么时候|什麼時候|何时"
    r"|最初|原来|原來|原本|当时|當時|第一|以前|之前|总共|總共|所有"
    r"|昔|最初|いつ|歴史|これまで|언제|처음|역사|예전"
)
# Verbs in the past tense ask what happened, or how something was; a request for advice asks neither
# for now.
_PAST = lazy_compile(
    r"(?i)\b(?:should (?:i|we)|would you|you (?:think|suggest|recommend|advise)"
    r"|soll(?:te)? ich|sollen wir"
    r"|devrais-je|devrions-nous|debo|debería(?:mos)?"
    r"|did(?:n['’]t)?|was(?:n['’]t)?|were(?:n['’]t)?|had(?:n['’]t)?|ago|yesterday"
    r"|war|waren|hatten?|wurden?|gab|ging(?:en)?"
    r"|kam(?:en)?|konnten?|musst(?:e|en)|sollten?|wollten?"
    r"|était|étaient|avai(?:t|ent|s)|fut|furent"
    r"|(?!fait\b|plait\b|souhait\b|lait\b)\w{3,}(?:ait|aient)"
    r"|era|eran|fue|fueron|hubo|hab[ií]an?|ten[ií]an?|estaban?"
    r"|pod[ií]an?|hac[ií]an?|\w{3,}aba[ns]?|\w{3,}ieron|\w{3,}aron)\b"
)
_PERFECT = lazy_compile(r"(?i)\b(?:have|has)\s+(?:\w+\s+){0,2}had\b")
# A question about what is recent asks for the present state, in whatever tense; these words are not
# what it is about.
_RECENT = lazy_compile(
    r"(?i)\b(?:recent(?:ly)?|latest|newest|current(?:ly)?"
    r"|now|nowadays|still|any ?more|at the moment|these days"
    r"|zuletzt|neueste\w*|aktuell\w*|jetzt|derzeit|zurzeit|inzwischen|mittlerweile|noch|heutzutage"
    r"|dernièrement|récent\w*|actuel\w*|maintenant"
    r"|toujours|encore|désormais|en ce moment|de nos jours"
    r"|reciente\w*|últimamente|actual(?:mente)?|ahora|todavía|aún|hoy en día|en este momento)\b"
    r"|最近|最新|现在|現在|目前|如今|眼下"
)
# What asks for a number is not what the number is of: an answer has the figure in its place.
_AMOUNT = lazy_compile(
    r"(?i)\b(?:how (?:many|much|long|often|far|old|big|large|high)"
    r"|wie (?:viele?|lange|oft|weit|alt|groß|hoch)"
    r"|combien|cuánt[oa]s?)\b|多少|多久|多长|多長|几个|幾個"
)


@dataclass(frozen=True, slots=True)
class TimeAsked:
    """The days that a question names, the last of its period, the terms of `before the move`, its
    tense and subject.
    """

    dates: tuple[Span, ...]
    until: dt.date | None
    before: tuple[str, ...]
    tense: Tense
    subject: frozenset[str]


def time_asked(text: str, now: dt.datetime) -> TimeAsked:
    """What a question says about time: "in June" means what was true by the end of that month."""
    dates: list[Span] = []
    ends: list[dt.date] = []
    rest = text
    for start, end, span in reversed(placed_spans(text, now)):
        head, tail = text[:start], text[end:]
        ahead, behind = _BEFORE.search(head), _BEFORE_AFTER.match(tail)
        first, last = ahead.start() if ahead else start, end + (behind.end() if behind else 0)
        rest = f"{rest[:first]} {rest[last:]}"
        if ahead or behind or _BEFORE_IN.match(span.words):
            ends.append(
                span.start - dt.timedelta(days=1) if span.start > dt.date.min else span.start
            )
            continue
        dates.insert(0, span)
        if not (_SINCE_IN.match(span.words) or _SINCE.search(head) or _SINCE_AFTER.match(tail)):
            ends.append(span.end)
    event = _EVENT.search(rest) if any(map(lower(rest).__contains__, _EVENT_WORDS)) else None
    before: tuple[str, ...] = ()
    if event and not ends:
        before, said = _event_words(event)
        rest = f"{rest[: event.start()]} {said} {rest[event.end() :]}"
    subject = frozenset(query_terms(_AMOUNT.sub(" ", _RECENT.sub(" ", rest))).words)
    until = max(ends) if ends and max(ends) < now.date() else None
    return TimeAsked(tuple(dates), until, before, _tense(rest if before or ends else text), subject)


def _event_words(event: re.Match[str]) -> tuple[tuple[str, ...], str]:
    """The terms of what happened, up to the first small word, and what of the match is more of the
    question.
    """
    words = next(group for group in event.groups() if group).split()
    small = (i for i, word in enumerate(words) if word.lower() in STOP_WORDS)
    end = min(next(small, len(words)), _MOST_EVENT_WORDS)
    return query_terms(" ".join(words[:end])).words if end else (), " ".join(words[end:])


def _tense(text: str) -> Tense:
    if _HISTORY.search(text):
        return Tense.HISTORY
    past = _PAST.search(_PERFECT.sub("", text)) and not _RECENT.search(text)
    return Tense.PAST if past else Tense.NOW
