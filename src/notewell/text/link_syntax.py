"""What a note links to: wiki links, Markdown links, front matter, and sessions that continue
others; its tags. Pure.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from notewell.text import reference_syntax
from notewell.text.markdown import FrontValue, Parsed
from notewell.types import BlockKind, Edge, End

KINDS = ("derives_from", "supersedes", "conflicts_with", "references", "causes", "calls", "imports")
KIND = re.compile(r"[a-z][a-z_]{0,39}\Z")
TAG = "#"  # not a kind that anybody can write: a tag of a note's front matter leads to no note
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_WIKI = re.compile(r"\[\[([^\[\]\n|#]{0,300})(?:#([^\[\]\n|]{0,300}))?(?:\|[^\[\]\n]{0,300})?\]\]")
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,300}\Z")
_FILE = re.compile(r"\.(?!(?:md|markdown|mdx)\Z)[A-Za-z0-9]{2,5}\Z")
_LINK = re.compile(
    r"\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{0,300}))?\]\]|\[([^\[\]\n]{0,300})\]\(<?([^()\s<>]{1,500})[^()\n]{0,99}\)"
)
_WORD = re.compile(r"\w+")
_FEW_WORDS = 2
_LONGEST_TAG = 60
_FENCE = re.compile(r"[ \t]*(?:>[ \t]*)*(`{3,}|~{3,})")
_TICKS = re.compile(r"`+")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_PARENTS = (
    "parentSessionId",
    "parent_session_id",
    "parent_session",
    "forked_from_id",
    "continues",
    "resumed_from",
)


def link_key(name: str) -> str:
    """What a written name and the path it means share: the file's name without its ending,
    case-folded.

    Of a name that ends with a session's uuid, only the uuid.
    """
    last = unicodedata.normalize("NFC", name.strip()).rstrip("/").rpartition("/")[2].casefold()
    ending = next((e for e in reference_syntax.ENDINGS if last.endswith(e) and last != e), "")
    last = last.removesuffix(ending)
    return last[-36:] if UUID.match(last[-36:]) else last


def slug(heading: str) -> str:
    """A heading as links name it: its words, case-folded and joined by hyphens."""
    return "-".join(
        re.findall(
            r"\w+", unicodedata.normalize("NFKC", unquote(heading)).casefold().replace("_", " ")
        )
    )


def place_of(written: str) -> End | None:
    """What a note or `links.jsonl` names in any form of a reference; None for an address elsewhere
    and for nothing.
    """
    usual = reference_syntax.parse_reference(written).usual
    if usual.name.startswith("#"):
        return _inside(End("", reference_syntax.anchor_of(usual.name[1:])))
    return _inside(usual)


def _inside(place: End) -> End | None:
    """The place, unless it is not in the workspace; of lines that are written backwards, the
    first.
    """
    if (
        reference_syntax.is_address(place.name)
        or not (place.name or place.anchor)
        or "\n" in place.name
    ):
        return None
    lines = reference_syntax.lines_of(place.anchor)
    backwards = lines is not None and lines[1] < lines[0] and place.anchor.startswith("L")
    return End(
        place.name.replace("\\", "/"), place.anchor.partition("-")[0] if backwards else place.anchor
    )


def edges_of(path: str, parsed: Parsed) -> list[Edge]:
    """Every edge that a note makes, in order and once: those of its front matter, then its
    links.
    """
    found = [Edge(kind, End(path), place) for kind, place in _front(parsed.front)]
    found += [Edge(TAG, End(path), End(f"#{tag}")) for tag in _tags(parsed.front)]
    for line, place in _in_text(parsed):
        end = place if place.name else End(path, place.anchor)
        found.append(Edge("references", End(path, f"L{line}"), end))
    return list(dict.fromkeys(found))


def _front(front: Mapping[str, FrontValue]) -> Iterator[tuple[str, End]]:
    for key, value in front.items():
        kind = key.replace("-", "_")
        if kind in KINDS:
            for one in front_values(value):
                if place := place_of(one):
                    yield kind, place
        elif kind == "links":
            for one in front_values(value):
                own, _, target = one.replace(":", " ", 1).partition(" ")
                if KIND.match(own) and (place := place_of(target)):
                    yield own, place


def _tags(front: Mapping[str, FrontValue]) -> Iterator[str]:
    values = (one for key in ("tags", "tag") for one in front_values(front.get(key, "")))
    yield from (tag[:_LONGEST_TAG] for one in values if (tag := " ".join(one.split()).lstrip("#")))


def front_values(value: FrontValue) -> Iterable[str]:
    """The references in a value of front matter: those of a list, or of a text with commas."""
    if isinstance(value, tuple):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _in_text(parsed: Parsed) -> Iterator[tuple[int, End]]:
    """Links of the text with their lines; not those in code or comments."""
    for block in parsed.blocks:
        lines = parsed.lines[block.start_line - 1 : block.end_line]
        if block.kind is BlockKind.FENCE or (
            block.kind is BlockKind.PARAGRAPH and lines[0].startswith(("    ", "\t"))
        ):
            continue
        if not any("[" in line for line in lines):
            continue  # most notes link to nothing
        text = _without_code("\n".join(_without_fences(lines)))
        found: list[tuple[int, End]] = []
        for match in _WIKI.finditer(text):
            name = unicodedata.normalize("NFC", match[1].strip())
            embedded = text[match.start() - 1 : match.start()] == "!" and _FILE.search(name)
            place = _inside(End(name, reference_syntax.anchor_of(match[2] or "")))
            if place and not embedded:
                found.append((match.start(), place))
        for match in (
            *reference_syntax.MARKDOWN_LINK.finditer(text),
            *reference_syntax.LINK_DEFINITION.finditer(text),
        ):
            before = text[max(0, match.start() - 302) : match.start()]
            place = _inside(reference_syntax.target_end(match[1]))
            if place and not _IMAGE.search(before.rpartition("\n")[2]):
                found.append((match.start(), place))
        line, at = block.start_line, 0
        for offset, place in sorted(found, key=lambda f: f[0]):
            line, at = line + text.count("\n", at, offset), offset
            yield line, place


def _without_fences(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a list, with those of fences in it emptied."""
    mark = ""
    for line in lines:
        match = _FENCE.match(line)
        yield "" if mark or match else line
        if match and not mark:
            mark = match[1]
        elif match and match[1].startswith(mark) and not line[match.end() :].strip():
            mark = ""


def _without_code(text: str) -> str:
    """Text with code spans and comments blanked and every line in its place; a single backtick is
    text.
    """
    runs = [
        (m.start(), m.end())
        for m in _TICKS.finditer(text)
        if text[m.start() - 1 : m.start()] != "\\"
    ]
    later: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[number][1] - runs[number][0], []).append(number)
    out, at, number = [], 0, 0
    while number < len(runs):
        start, end = runs[number]
        same = later[end - start]
        while same and same[-1] <= number:
            same.pop()
        if not same:
            number += 1
            continue
        closing = same[-1]
        out += [text[at:start], _blank(text[start : runs[closing][1]])]
        at, number = runs[closing][1], closing + 1
    return _COMMENT.sub(lambda m: _blank(m[0]), "".join((*out, text[at:])))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def lineage(
    path: str,
    records: Iterable[Mapping[str, Any]],
    *,
    own: str = "",
    known: Mapping[str, str] | None = None,
) -> list[Edge]:
    """`derives_from` edges of a transcript to the sessions that it continues, from its raw records.

    A session is named by its id, which is its file's name or the end of it. `own` is this session's
    id. `known` maps the uuid of a message to the path that holds it, for formats that name only a
    message (`parentUuid`, `leafUuid`).
    """
    here: set[str] = set()
    sessions: dict[str, None] = {}
    messages: dict[str, None] = {}
    for record in records:
        for part in (record, record.get("payload")):
            if isinstance(part, Mapping):
                here.update(_texts(part, ("uuid", "id")))
                sessions.update(dict.fromkeys(_parents(part, own)))
                messages.update(dict.fromkeys(_texts(part, ("parentUuid", "leafUuid"))))
    ends = [name.strip() for name in sessions if name.strip() and name != own]
    elsewhere = [(known or {}).get(message, "") for message in messages if message not in here]
    ends += [other for other in elsewhere if other and other != path]
    return [Edge("derives_from", End(path), End(name)) for name in dict.fromkeys(ends)]


def _parents(part: Mapping[str, Any], own: str) -> list[str]:
    """The sessions that a part of a record names as those it continues."""
    forked = part.get("forkedFrom")
    return [
        *_texts(part, _PARENTS),
        *(name for name in _texts(part, ("sessionId",)) if own and name != own),
        *(_texts(forked, ("sessionId",)) if isinstance(forked, Mapping) else ()),
    ]


def _texts(part: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [value for key in keys if isinstance(value := part.get(key), str)]


def candidates_for(name: str, base: str) -> list[str]:
    """Paths that a written name may mean, the likeliest first: from the folder of the note, then
    from the root.
    """
    name = name.strip()
    rooted = name.startswith("/")
    folder = posixpath.dirname(base)
    tries = [name.lstrip("/")] if rooted else [posixpath.join(folder, name), name]
    out: dict[str, None] = {name: None} if rooted else {}
    for one in tries:
        path = posixpath.normpath(one) if one else ""
        if path and path != "." and not path.startswith("../"):
            endings = (
                () if path.casefold().endswith(reference_syntax.ENDINGS) else reference_syntax.NOTES
            )
            out |= {path + ending: None for ending in ("", *endings)}
    return list(out)


@lru_cache(maxsize=4096)  # searches return the same passages again and again
def link_list(text: str) -> tuple[float, frozenset[str]]:
    """The share of the lines of a text that are links with hardly a word besides, and what these
    links name.
    """
    if "](" not in text and "[[" not in text:
        return 0.0, frozenset()
    lines = [
        line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")
    ]
    names: list[str] = []
    count = 0
    for line in lines:
        links = list(_LINK.finditer(line))
        inside = sum(len(_WORD.findall(m[2] or m[1] or m[3])) for m in links)
        if links and len(_WORD.findall(_LINK.sub(" ", line))) <= inside + _FEW_WORDS:
            count += 1
            names += [m[1] or m[4] for m in links]
    return count / max(1, len(lines)), frozenset(map(_bare, names))


def is_named(path: str, names: Iterable[str]) -> bool:
    """Whether the names of links, from `link_list`, name a note: by its path, the end of it, or an
    address of it.
    """
    own = _bare(path)
    return any(
        own == name or own.endswith(f"/{name}") or name.endswith(f"/{own}")
        for name in names
        if name
    )


def _bare(name: str) -> str:
    """A name without case, ending, heading and the steps before it."""
    name = (
        unicodedata.normalize("NFC", unquote(name))
        .partition("#")[0]
        .partition("?")[0]
        .strip()
        .casefold()
    )
    ending = next((e for e in reference_syntax.ENDINGS if name.endswith(e)), "")
    return name.removesuffix(ending).lstrip("./")
