"""A short piece of a passage, centred on what matched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from recollect.text.words import AROUND, is_unspaced, places, query_terms, term_set

_GAP = re.compile(r"\s")
_TRIM = 24
_STEP = 24


def snippet(text: str, query: str, *, limit: int = 320) -> str:
    """At most `limit` characters around the densest run of the question's terms; the head when none matches."""
    flat = text.strip()
    if len(flat) <= limit:
        return flat
    room = max(0, limit - 2)  # for the dots on both sides
    plain = flat.isascii() and not query_terms(query).prefixes
    first, last = _densest(list((_plain_matches if plain else _matches)(flat, query)), room)
    start = max(0, min(first - room // 5, len(flat) - room))
    end = max(start + room, min(last, first + room))
    start = end - room
    if start > 0 and (gap := _GAP.search(flat, start, max(start, min(start + _TRIM, first)))):
        start = gap.end()
    if end < len(flat):
        trimmed = max(flat.rfind(" ", 0, end), flat.rfind("\n", 0, end))
        end = trimmed if trimmed >= max(last, end - _TRIM) else end
    return ("…" if start else "") + flat[start:end].strip() + ("…" if end < len(flat) else "")


def _matches(text: str, query: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Where the question's terms stand, and which: (start, end, terms)."""
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
        if word.isalpha() and word.isascii() and word[1:].islower() and word[0].lower() not in starts:
            continue  # a stem begins as its word does
        if word.isascii() or not is_unspaced(word):
            if terms_seen := seen(word):
                yield start, end, terms_seen
            continue
        for at in range(start, end, _STEP):
            stop = min(end, at + _STEP + 1)
            if terms_seen := seen(text[at:stop]):
                yield at, stop, terms_seen


def _plain_matches(text: str, query: str) -> list[tuple[int, int, frozenset[str]]]:
    """The same for a text that is all ASCII and a question without prefixes, in a third of the time.

    No word reaches over a space, so what stands between two spaces is looked at once, however often it is there.
    """
    wanted = frozenset(query_terms(query).words)
    begins = tuple(
        {w[: 2 if len(w) > 3 else 1] for w in wanted}
    )  # a stem begins as its word does, but `die` as `dying`
    found: list[tuple[int, int, frozenset[str]]] = []
    for piece in set(text.split()):
        word = piece.strip(AROUND)
        if word.isalpha() and word[1:].islower() and not word.lower().startswith(begins):
            continue
        if wanted.isdisjoint(_terms(piece)):
            continue
        inside = [(start, end, terms) for start, end in places(piece) if (terms := wanted & _terms(piece[start:end]))]
        at = text.find(piece)
        while at >= 0:
            end = at + len(piece)
            if (not at or text[at - 1].isspace()) and (end == len(text) or text[end].isspace()):
                found += [(at + first, at + last, terms) for first, last, terms in inside]
            at = text.find(piece, end)
    return sorted(found, key=lambda match: match[:2])


@lru_cache(maxsize=8192)
def _terms(word: str) -> frozenset[str]:
    """What a word became in the index: most words of a passage stood in one shown before."""
    return term_set(word)


def _densest(matches: list[tuple[int, int, frozenset[str]]], room: int) -> tuple[int, int]:
    """Start and end of the stretch of at most `room` characters with the most different terms."""
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
