"""Questions proposed from somebody's own notes, so that measuring starts in a minute.

Three kinds for a passage: its telling terms, its heading, and a sentence without its rarest words, which only
meaning or context can bring back. They are a start: edit the file, and add what you really ask.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from recollect.ports import Store
from recollect.text.words import STOP_WORDS, query_terms
from recollect.types import Chunk

_SENTENCE = re.compile(r"[^.!?。！？\n]{30,240}[.!?。！？\n]")
_WORD = re.compile(r"[^\W\d_]{3,}")


def propose(store: Store, chunks: list[Chunk], *, most: int = 60) -> list[dict[str, Any]]:
    """Up to `most` questions over different passages, the same ones every time."""
    headings = Counter(" ".join(c.heading) for c in chunks)
    order = sorted(chunks, key=lambda c: zlib.crc32(c.content_hash.encode()))
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for chunk in order:
        for kind, query in _questions(store, chunk, alone=headings[" ".join(chunk.heading)] == 1):
            if query not in seen and len(found) < most:
                seen.add(query)
                lines = f"{chunk.path}#{chunk.start_line}-{chunk.end_line}"
                found.append({"query": query, "expect": lines, "type": kind})
        if len(found) >= most:
            break
    return found


def _questions(store: Store, chunk: Chunk, *, alone: bool) -> Iterator[tuple[str, str]]:
    words = [w for w in dict.fromkeys(_WORD.findall(chunk.text)) if w.casefold() not in STOP_WORDS]
    if len(words) < 6:
        return
    stems = {w: query_terms(w).words for w in words}
    counts = store.term_counts([s for found in stems.values() for s in found]).found_in
    rarity = {w: min((counts.get(s, 0) for s in found), default=0) for w, found in stems.items()}
    rare = sorted(words, key=lambda w: (rarity[w], words.index(w)))[:3]
    yield "terms", " ".join(w for w in words if w in rare)
    if alone and chunk.heading and len(chunk.heading[-1].split()) >= 2:
        yield "heading", chunk.heading[-1]
    sentence = next((m.group().strip() for m in _SENTENCE.finditer(chunk.text)), "")
    kept = [w for w in sentence.split() if not any(r in w for r in rare)]
    if len(kept) >= 5:
        yield "paraphrase", " ".join(kept).strip(" .!?。！？-*|#")
