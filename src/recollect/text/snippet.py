"""A short piece of a passage, centred on what matched."""

from __future__ import annotations

import re

from recollect.text.words import index_terms, query_terms

_SPLIT = re.compile(r"\S+")


def snippet(text: str, query: str, *, limit: int = 320) -> str:
    """At most `limit` characters around the densest run of the question's terms; the head when none matches."""
    flat = text.strip()
    if len(flat) <= limit:
        return flat
    start = _best_start(flat, query, limit)
    end = min(len(flat), start + limit)
    if start > 0:
        gap = re.compile(r"\s").search(flat, start, min(len(flat), start + 24))
        start = gap.end() if gap else start
    if end < len(flat):
        gap_at = max(flat.rfind(" ", end - 24, end), flat.rfind("\n", end - 24, end))
        end = gap_at if gap_at > start else end
    return ("…" if start else "") + flat[start:end].strip() + ("…" if end < len(flat) else "")


def _best_start(text: str, query: str, limit: int) -> int:
    terms = query_terms(query)
    wanted = set(terms.words)
    places: list[tuple[int, frozenset[str]]] = []
    for match in _SPLIT.finditer(text):
        word = match.group()
        step = 24 if not word.isascii() else len(word)
        for offset in range(0, len(word), step):
            found = wanted.intersection(index_terms(word[offset : offset + step])[0].split())
            if found:
                places.append((match.start() + offset, frozenset(found)))
    best, best_start = 0, 0
    for i, (start, _) in enumerate(places):
        seen: set[str] = set()
        for place, found in places[i:]:
            if place >= start + limit - 40:
                break
            seen |= found
        if len(seen) > best:
            best, best_start = len(seen), start
    return max(0, min(best_start - limit // 5, len(text) - limit))
