"""What a document is in the index: its facts, origin, chunks and ids. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from notewell.opener import is_in
from notewell.settings import AGENTS
from notewell.store.values import ChunkWords, FieldTerms
from notewell.text.chunk import ChunkSize, Passage, chunk
from notewell.text.dates import date_of_path, date_of_value
from notewell.text.link_syntax import front_values
from notewell.text.markdown import FrontValue, Parsed
from notewell.text.note_files import ENTRY_STEMS, is_entry_file, stem_of
from notewell.text.words import TermCache, pieces_of
from notewell.types import Chunk, Document, Facts

_TRUE = ("true", "yes", "1", "on")
_TRUST = ("untrusted", "agent", "system", "owner")
_IMPORTANCE = {"low": -0.5, "normal": 0.0, "medium": 0.0, "high": 0.5, "critical": 1.0}
_NAMES = ("title", "aliases", "alias", "tags", "tag")
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_terms, _MOST_PIECES = TermCache(), 100_000
_PAIRS = [one + two for one in _LETTERS for two in _LETTERS]


def facts_of(document: Document, parsed: Parsed) -> Facts:
    """What a document states about itself: front matter first, then its name."""
    front = parsed.front
    name = stem_of(document.path)
    title = _text(front.get("title")) or next(
        (b.heading[0] for b in parsed.blocks if b.heading and b.heading[0]), name
    )
    day = date_of_value(_text(front.get("date"))) or document.day or date_of_path(document.path)
    evergreen = (
        day is None
        or name.casefold() in ENTRY_STEMS
        or _text(front.get("evergreen")).lower() in _TRUE
    )
    importance = _importance(_text(front.get("importance")))
    pinned = any(_text(front.get(key)).lower() in _TRUE for key in ("pin", "pinned"))
    return Facts(
        title, day, evergreen, importance, pinned, tuple(front_values(front.get("supersedes", "")))
    )


def origin_of(
    document: Document, parsed: Parsed, extra_origin: str = "owner", doubted: str = ""
) -> str:
    """Who wrote a note; its front matter may lower the trust that its folder gives, never raise it.

    Of strangers is what belongs to another user, and what is in the folder `doubted`.
    """
    base = (
        extra_origin
        if document.source == "extra"
        else "agent"
        if document.source in AGENTS
        else "owner"
    )
    if document.strange or (doubted and is_in(document.location, doubted)):
        base = "untrusted"
    stated = _text(parsed.front.get("origin")).strip().lower()
    return least_trusted((base, stated) if stated in _TRUST else (base,))


def least_trusted(origins: Iterable[str]) -> str:
    """The origin among several that deserves the least trust; one that is not known deserves
    none.
    """
    return min(
        (one if one in _TRUST else "untrusted" for one in origins),
        key=_TRUST.index,
        default="owner",
    )


def chunks_of(
    document: Document, parsed: Parsed, facts: Facts, size: ChunkSize, *, origin: str = "owner"
) -> list[Chunk]:
    """The chunks of a document, each with an id made of its path and content, never of its
    lines.
    """
    seen: Counter[str] = Counter()
    chunks = []
    for passage in chunk(parsed, size, entries=is_entry_file(document.path)):
        content = passage.content_hash
        key = chunk_id(f"{document.path}\0{content}\0{seen[content]}")
        seen[content] += 1
        place = document.path, document.source, passage.start_line, passage.end_line
        chunks.append(
            Chunk(key, *place, passage.heading, passage.text, content, facts, origin=origin)
        )
    return chunks


def names_of(parsed: Parsed) -> str:
    """The title, aliases and tags of a note's front matter: words by which all of its passages are
    found.
    """
    values = [value for key in _NAMES if (value := parsed.front.get(key))]
    return " ".join(" ".join(front_values(value)) for value in values)


def words_of(chunks: Sequence[Chunk], *, names: str = "") -> list[ChunkWords]:
    """What the keyword index needs of chunks; the terms are shared, and analysed when first looked
    up.
    """
    terms = _shared_terms()
    heads = (f"{' '.join(c.heading)} {stem_of(c.path)} {names}" for c in chunks)
    return [
        ChunkWords(pieces_of(head), c.text, terms) for head, c in zip(heads, chunks, strict=True)
    ]


def words_again(chunks: Sequence[Chunk], known: Mapping[int, FieldTerms]) -> list[ChunkWords]:
    """The same for chunks of another index, whose heads may have names that are not in the
    chunks.
    """
    terms = _shared_terms()
    return [ChunkWords([f" {term}" for term in known[c.row].head], c.text, terms) for c in chunks]


def _shared_terms() -> TermCache:
    if len(_terms) > _MOST_PIECES:
        _terms.clear()
    return _terms


def chunk_id(key: str) -> str:
    """Twelve letters of base 32: the first sixty bits of the key's digest, ten bits to a pair of
    letters.
    """
    number = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=10).digest()[:8], "big") >> 4
    return "".join([_PAIRS[number >> shift & 1023] for shift in (50, 40, 30, 20, 10, 0)])


def digest_of(text: str) -> str:
    """A hash of a document's text, by which a touched file is known to be unchanged."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).hexdigest()


def embed_text(chunk: Chunk) -> str:
    """What a model sees of a chunk: its heading path, then its text."""
    return Passage(chunk.start_line, chunk.end_line, chunk.heading, chunk.text).embed_text


def age_order(document: Document) -> tuple[bool, str, str]:
    """Sorts old to new with curated files last, so that the newest rows get their vectors first."""
    day = document.day or date_of_path(document.path)
    return (day is None, day.isoformat() if day else "", document.path)


def _text(value: FrontValue | None) -> str:
    return value if isinstance(value, str) else ""


def _importance(value: str) -> float:
    try:
        return max(-1.0, min(1.0, float(_IMPORTANCE.get(value.lower(), value))))
    except ValueError:
        return 0.0
