"""What a note says of others: wiki links, Markdown links, front matter, and a session that continues another. Pure."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from recollect.text.markdown import FrontValue, Parsed
from recollect.types import BlockKind, Edge, End

KINDS = ("derives_from", "supersedes", "conflicts_with", "references", "causes", "calls", "imports")
KIND = re.compile(r"[a-z][a-z_]{0,39}\Z")
ID = re.compile(r"[a-z2-7]{12}\Z")
LINES = re.compile(r"L?(\d{1,9})(?:-L?(\d{1,9}))?\Z", re.IGNORECASE)
NOTES = (".md", ".markdown", ".mdx")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_ENDINGS = (*NOTES, ".txt", ".rst", ".org", ".adoc", ".jsonl", ".json")
_WIKI = re.compile(r"\[\[([^\[\]\n|#]{0,300})(?:#([^\[\]\n|]{0,300}))?(?:\|[^\[\]\n]{0,300})?\]\]")
_TARGET = r"(<[^<>\n]{1,1000}>|[^\s()<>]{1,1000}(?:\([^\s()]{0,300}\)[^\s()]{0,300})?)"
_MARKDOWN = re.compile(rf"\]\([ \t]*{_TARGET}(?:[ \t]+[\"'(][^\n]{{0,300}}?[\"')])?[ \t]*\)")
_DEFINED = re.compile(rf"^ {{0,3}}\[(?!\^)[^\[\]\n]{{1,300}}\]:[ \t]*{_TARGET}", re.MULTILINE)
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,300}\Z")
_FILE = re.compile(r"\.(?!(?:md|markdown|mdx)\Z)[A-Za-z0-9]{2,5}\Z")
_FENCE = re.compile(r"[ \t]*(?:>[ \t]*)*(`{3,}|~{3,})")
_TICKS = re.compile(r"`+")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_WITH_LINES = re.compile(r"(?P<name>.+\.\w+):(?P<lines>\d{1,9}(?:-\d{1,9})?)\Z")
_SESSION_KEYS = (
    "parentSessionId",
    "parent_session_id",
    "parent_session",
    "forked_from_id",
    "continues",
    "resumed_from",
)


def link_key(name: str) -> str:
    """What a written name and the path it means have in common: the file's name without its ending, folded.

    Of a name that ends with a session's uuid, only that.
    """
    last = unicodedata.normalize("NFC", name.strip()).rstrip("/").rpartition("/")[2].casefold()
    ending = next((e for e in _ENDINGS if last.endswith(e) and last != e), "")
    last = last.removesuffix(ending)
    return last[-36:] if UUID.match(last[-36:]) else last


def slug(heading: str) -> str:
    """A heading as links name it: folded, words joined by hyphens, nothing else."""
    words = re.findall(r"[\w]+", unicodedata.normalize("NFKC", unquote(heading)).casefold().replace("_", " "))
    return "-".join(words)


def place_of(written: str) -> End | None:
    """A reference as people write it: id, path, name, `path#heading`, `path#L3-L9`, `path:3-9`, wiki or Markdown link.

    None for an address elsewhere and for nothing.
    """
    text = " ".join(unicodedata.normalize("NFC", written).split())
    if match := _MARKDOWN.search(text):
        return _of_target(match[1])
    if text.startswith("[") or text.endswith("]"):
        text = text.strip("[]").partition("|")[0].strip()
    if match := _WITH_LINES.match(text):
        return End(match["name"], _lines(match["lines"]))
    if _SCHEME.match(text) or text.startswith("//"):
        return None
    name, _, anchor = text.partition("#")
    return End(name.strip(), _anchor(anchor)) if name.strip() or anchor.strip() else None


def _of_target(target: str) -> End | None:
    """What a Markdown link leads to; None when that is not in the workspace."""
    target = target.removeprefix("<").removesuffix(">").strip()
    if match := _WITH_LINES.match(target):
        return End(unquote(match["name"]), _lines(match["lines"]))
    if not target or _SCHEME.match(target) or target.startswith("//"):
        return None
    path, _, anchor = target.partition("#")
    path = unicodedata.normalize("NFC", unquote(path.partition("?")[0])).replace("\\", "/")
    if "\n" in path or "\0" in path:
        return None
    return End(path, _anchor(unquote(anchor))) if path or anchor else None


def _anchor(text: str) -> str:
    """Lines as `L3-L9`, a block as `^name`, of nested headings the last one."""
    text = " ".join(text.split())
    if re.fullmatch(r"L\d{1,9}(?:-L?\d{1,9})?", text, re.IGNORECASE):
        return _lines(text)
    return text.rpartition("#")[2].strip()


def _lines(text: str) -> str:
    match = LINES.match(text)
    if not match:
        return ""
    first = int(match[1])
    last = max(first, int(match[2] or first))
    return f"L{first}-L{last}" if last > first else f"L{first}"


def edges_of(path: str, parsed: Parsed) -> list[Edge]:
    """Every edge that a note makes, in order, none twice: its front matter's, of the whole note, then its links'."""
    found: dict[Edge, None] = {}
    for kind, place in _front(parsed.front):
        found[Edge(kind, End(path), place)] = None
    for line, place in _in_text(parsed):
        end = place if place.name else End(path, place.anchor)
        found[Edge("references", End(path, f"L{line}"), end)] = None
    return list(found)


def _front(front: Mapping[str, FrontValue]) -> Iterator[tuple[str, End]]:
    for key, value in front.items():
        kind = key.replace("-", "_")
        if kind in KINDS:
            for one in _values(value):
                if place := place_of(one):
                    yield kind, place
        elif kind == "links":
            for one in _values(value):
                own, _, target = one.replace(":", " ", 1).partition(" ")
                if KIND.match(own) and (place := place_of(target)):
                    yield own, place


def _values(value: FrontValue) -> Iterable[str]:
    if isinstance(value, tuple):
        return value
    return [part for part in value.split(",") if part.strip()]


def _in_text(parsed: Parsed) -> Iterator[tuple[int, End]]:
    """Links of the text with their lines; what stands in code or a comment is none."""
    for block in parsed.blocks:
        lines = parsed.lines[block.start_line - 1 : block.end_line]
        if block.kind is BlockKind.FENCE or (block.kind is BlockKind.PARAGRAPH and lines[0].startswith(("    ", "\t"))):
            continue
        if not any("[" in line for line in lines):
            continue  # most notes link to nothing
        text = _without_code("\n".join(_without_fences(lines)))
        found: list[tuple[int, End]] = []
        for match in _WIKI.finditer(text):
            name, anchor = match[1].strip(), _anchor(match[2] or "")
            embedded = text[match.start() - 1 : match.start()] == "!" and _FILE.search(name)
            if (name or anchor) and not _SCHEME.match(name) and not embedded:
                found.append((match.start(), End(unicodedata.normalize("NFC", name), anchor)))
        for match in (*_MARKDOWN.finditer(text), *_DEFINED.finditer(text)):
            before = text[max(0, match.start() - 302) : match.start()]
            place = _of_target(match[1])
            if place and not _IMAGE.search(before.rpartition("\n")[2]):
                found.append((match.start(), place))
        line, at = block.start_line, 0
        for offset, place in sorted(found, key=lambda f: f[0]):
            line, at = line + text.count("\n", at, offset), offset
            yield line, place


def _without_fences(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a list with those of fences inside it made empty."""
    mark = ""
    for line in lines:
        match = _FENCE.match(line)
        if mark:
            if match and match[1].startswith(mark) and not line[match.end() :].strip():
                mark = ""
            yield ""
        elif match:
            mark = match[1]
            yield ""
        else:
            yield line


def _without_code(text: str) -> str:
    """Text with code spans and comments blanked, every line where it was; a backtick alone is text."""
    runs = [(m.start(), m.end()) for m in _TICKS.finditer(text) if text[m.start() - 1 : m.start()] != "\\"]
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
    path: str, records: Iterable[Mapping[str, Any]], *, own: str = "", known: Mapping[str, str] | None = None
) -> list[Edge]:
    """`derives_from` edges of a transcript to the sessions that it continues, from its raw records.

    A session is named by its id, which is its file's name or the end of it. `own` is this session's id. `known` maps
    the uuid of a message to the path that holds it, for formats that name only a message (`parentUuid`, `leafUuid`).
    """
    here: set[str] = set()
    parents: dict[str, None] = {}
    messages: dict[str, None] = {}
    for record in records:
        payload = record.get("payload")
        for part in (record, payload if isinstance(payload, Mapping) else {}):
            here |= {v for key in ("uuid", "id") if isinstance(v := part.get(key), str)}
            parents.update((v, None) for key in _SESSION_KEYS if isinstance(v := part.get(key), str))
            session = part.get("sessionId")
            if isinstance(session, str) and own and session != own:
                parents[session] = None
            forked = part.get("forkedFrom")
            if isinstance(forked, Mapping) and isinstance(v := forked.get("sessionId"), str):
                parents[v] = None
            messages.update((v, None) for key in ("parentUuid", "leafUuid") if isinstance(v := part.get(key), str))
    ends = [End(p.strip()) for p in parents if p.strip() and p != own]
    elsewhere = dict.fromkeys((known or {}).get(m, "") for m in messages if m not in here)
    ends += [End(p) for p in elsewhere if p and p != path]
    return [Edge("derives_from", End(path), end) for end in dict.fromkeys(ends)]


def candidates_for(name: str, base: str) -> list[str]:
    """Paths that a written name may mean, the likeliest first: from the note's own folder, then from the root."""
    name = name.strip()
    rooted = name.startswith("/")
    folder = posixpath.dirname(base)
    tries = [name.lstrip("/")] if rooted else [posixpath.join(folder, name), name]
    out: dict[str, None] = {name: None} if rooted else {}
    for one in tries:
        path = posixpath.normpath(one) if one else ""
        if path and path != "." and not path.startswith("../"):
            out[path] = None
            out |= {path + ending: None for ending in NOTES if not path.endswith(ending)}
    return list(out)
