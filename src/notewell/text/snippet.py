"""A short excerpt of a passage, centred on what matched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from notewell.text.words import begins_of, is_unspaced, places, query_terms, term_set

_GAP = re.compile(r"\s")
_DATED = re.compile(r"\d{4}-\d\d")
_TRIM = 24
_STEP = 24
# most words of a passage were in another one that was shown
_terms = lru_cache(maxsize=8192)(term_set)


def snippet(
    text: str, query: str, *, limit: int = 320, around: tuple[int, int] | None = None
) -> str:
    """At most `limit` characters around the densest run of the question's terms; the head if none
    matches.

    With `around`, the characters of a part of the text, only terms in that part count; its head if
    none matches.
    """
    flat = text.strip()
    if len(flat) <= limit:
        return flat
    room = max(0, limit - 2)  # for the dots on both sides
    found, lead = matches(flat, query), room // 5
    if around is not None:
        low, high = (at - (len(text) - len(text.lstrip())) for at in around)
        found = [match for match in found if low <= match[0] and match[1] <= high]
        if not found:
            found, lead = [(low, min(high, low + room), frozenset(("",)))], 0
    first, last = _densest(found, room)
    start = max(0, min(first - lead, len(flat) - room))
    end = max(start + room, min(last, first + room))
    start = end - room
    if start > 0 and (gap := _GAP.search(flat, start, max(start, min(start + _TRIM, first)))):
        start = gap.end()
    if end < len(flat):
        trimmed = max(flat.rfind(" ", 0, end), flat.rfind("\n", 0, end))
        end = trimmed if trimmed >= max(last, end - _TRIM) else end
    return ("…" if start else "") + flat[start:end].strip() + ("…" if end < len(flat) else "")


def matches(text: str, query: str) -> list[tuple[int, int, frozenset[str]]]:
    """Where the terms of a question are in a text, in order: start, end, and which terms."""
    plain = text.isascii() and not query_terms(query).prefixes
    return list((_plain_matches if plain else _matches)(text, query))


def _matches(text: str, query: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """The matches of the question's terms: start, end, and which terms."""
    terms = query_terms(query)
    wanted = frozenset(terms.words)
    starts = {w[0] for w in wanted}

    def seen(piece: str) -> frozenset[str]:
        found = _terms(piece)
        if not terms.prefixes or not wanted.isdisjoint(found):
            return wanted & found
        return frozenset(p for p in terms.prefixes for f in found if f.startswith(p))

    for start, end in places(text):
        word = text[start:end]
        if (
            word.isalpha()
            and word.isascii()
            and word[1:].islower()
            and word[0].lower() not in starts
        ):
            continue  # a stem begins with the same letter as its word
        if word.isascii() or not is_unspaced(word):
            if terms_seen := seen(word):
                yield start, end, terms_seen
            continue
        for at in range(start, end, _STEP):
            stop = min(end, at + _STEP + 1)
            if terms_seen := seen(text[at:stop]):
                yield at, stop, terms_seen


def _plain_matches(text: str, query: str) -> list[tuple[int, int, frozenset[str]]]:
    """The same for an ASCII text and a question without prefixes, in a fifth of the time.

    No word contains a space, so each distinct piece between spaces is analysed only once.
    """
    wanted = frozenset(query_terms(query).words)
    found: list[tuple[int, int, frozenset[str]]] = []
    for piece in _likely_pieces(text, wanted):
        if wanted.isdisjoint(_terms(piece)):
            continue
        inside = [
            (start, end, terms)
            for start, end in places(piece)
            if (terms := wanted & _terms(piece[start:end]))
        ]
        at = text.find(piece)
        while at >= 0:
            end = at + len(piece)
            if (not at or text[at - 1].isspace()) and (end == len(text) or text[end].isspace()):
                found += [(at + first, at + last, terms) for first, last, terms in inside]
            at = text.find(piece, end)
    return sorted(found, key=lambda match: match[:2])


def _likely_pieces(text: str, wanted: frozenset[str]) -> set[str]:
    """The pieces between spaces of an ASCII text that may have wanted terms: all that have the
    beginning of one.
    """
    low = text.lower()
    pieces: set[str] = set()
    for begin in begins_of(wanted):
        at = low.find(begin)
        while at >= 0:
            start = at
            while start and not low[start - 1].isspace():
                start -= 1
            gap = _GAP.search(low, at)
            end = gap.start() if gap else len(low)
            pieces.add(text[start:end])
            at = low.find(begin, end)
    if "'" in text:  # words are indexed without it
        pieces.update(piece for piece in text.split() if "'" in piece)
    if any(map(_DATED.match, wanted)):  # a date may be written in another way
        pieces.update(piece for piece in text.split() if not piece.isalpha())
    return pieces


def _densest(matches: list[tuple[int, int, frozenset[str]]], room: int) -> tuple[int, int]:
    """The start and end of the stretch of at most `room` characters with the most distinct
    terms.
    """
    best, first, last = 0, 0, 0
    for i, (start, stop, _) in enumerate(matches):
        seen: set[str] = set()
        end = stop
        for _, reach, found in matches[i:]:
            if reach > start + room and seen:
                break
            seen |= found
            end = reach
        if len(seen) > best:
            best, first, last = len(seen), start, end
    return first, last
