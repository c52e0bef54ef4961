"""Where a passage comes from and what follows from it: a bounded walk over what notes say of one another."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Protocol

from recollect.errors import NotFoundError, UsageError
from recollect.ports import Stored
from recollect.text.links import ID, KIND, KINDS, LINES, NOTES, candidates_for, link_key, place_of, slug
from recollect.types import Chunk, Edge, End

Direction = Literal["out", "in", "both"]
MOST = 200


class Linking(Protocol):
    """What the walk asks of a store."""

    def edges_from(self, keys: Sequence[str]) -> list[Edge]:
        """Edges whose start may be meant by one of these keys."""
        ...

    def edges_to(self, keys: Sequence[str]) -> list[Edge]:
        """Edges whose end may be meant by one of these keys."""
        ...

    def paths_named(self, key: str) -> list[str]:
        """Paths of the documents of that name."""
        ...

    def path_with(self, content: str) -> tuple[str, str] | None:
        """Where content is now."""
        ...

    def chunks_of(self, path: str) -> list[Chunk]:
        """The chunks of a document."""
        ...

    def chunks_by_id(self, prefix: str) -> list[Chunk]:
        """Chunks whose id begins so."""
        ...

    def documents(self) -> dict[str, Stored]:
        """What is indexed, by path."""
        ...


@dataclass(frozen=True, slots=True)
class Node:
    """A whole note, a passage of one, or (`dangling`) a name that nothing answers to."""

    path: str
    chunk: Chunk | None = None
    whole: bool = False
    dangling: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same node again."""
        return self.path, "" if self.whole or self.chunk is None else self.chunk.id

    @property
    def citation(self) -> str:
        """Where a person finds it."""
        return self.path if self.whole or self.chunk is None else self.chunk.citation


@dataclass(frozen=True, slots=True)
class Hop:
    """One edge of the walk: `parent` is the number of the hop it goes on from (-1: the start).

    `out`: the parent says `kind` of the node; `in`: the node says it of the parent. `again`: walked elsewhere.
    """

    kind: str
    direction: Literal["out", "in"]
    depth: int
    parent: int
    node: Node
    again: bool = False


@dataclass(frozen=True, slots=True)
class Trail:
    """A walk from its start, nearest first; `cut` when there was more than fits."""

    start: Node
    hops: tuple[Hop, ...]
    cut: bool = False


class Atlas:
    """Finds what a place means now; remembers it for the length of one walk."""

    def __init__(self, store: Linking) -> None:
        self.store = store
        self._chunks: dict[str, list[Chunk]] = {}
        self._found: dict[tuple[End, str], Node] = {}

    def chunks(self, path: str) -> list[Chunk]:
        """The chunks of a document, in order."""
        if path not in self._chunks:
            self._chunks[path] = self.store.chunks_of(path)
        return self._chunks[path]

    def whole(self, path: str) -> Node:
        """A whole note."""
        chunks = self.chunks(path)
        return Node(path, chunks[0] if chunks else None, whole=True)

    def find(self, place: End, base: str = "") -> Node:
        """What a place means, seen from the note that names it: path, then name, then id, then content."""
        key = (place, base)
        if key not in self._found:
            self._found[key] = self._find(place, base)
        return self._found[key]

    def ends(self, edge: Edge) -> tuple[Node, Node]:
        """What both ends of an edge mean."""
        return self.find(edge.start), self.find(edge.end, edge.start.name)

    def _find(self, place: End, base: str) -> Node:
        path = self._path(place, base)
        if path:
            return self._inside(path, place)
        if ID.match(place.name) and (found := self.store.chunks_by_id(place.name)):
            return Node(found[0].path, found[0])
        if place.content and (moved := self.store.path_with(place.content)):
            chunk = next((c for c in self.chunks(moved[0]) if c.id == moved[1]), None)
            return Node(moved[0], chunk) if chunk and place.anchor else self.whole(moved[0])
        return Node(place.name + (f"#{place.anchor}" if place.anchor else ""), dangling=True)

    def _path(self, place: End, base: str) -> str:
        named = self.store.paths_named(link_key(place.name))
        for path in candidates_for(place.name, base):
            if path in named:
                return path
        if place.content:
            return ""  # a link that knows its content rather finds that than a namesake
        written = place.name.strip("./").casefold()
        near = [p for p in named if f"/{p}".casefold().endswith((f"/{written}", *(f"/{written}{e}" for e in NOTES)))]
        # A name alone is looked for everywhere; a path that leads nowhere is not guessed at.
        return next(iter((*near, *(named if "/" not in written else ()))), "")

    def _inside(self, path: str, place: End) -> Node:
        chunks = self.chunks(path)
        if not place.anchor:
            return self.whole(path)
        chunk = next((c for c in chunks if place.content and c.content_hash == place.content), None)
        chunk = chunk or _at(chunks, place.anchor)
        return Node(path, chunk) if chunk else self.whole(path)


def _at(chunks: Sequence[Chunk], anchor: str) -> Chunk | None:
    """The passage that lines, a heading or a block's name mean; None when it is gone."""
    if anchor.startswith("^"):
        mark = re.compile(re.escape(anchor) + r"(?:\s|\Z)")
        return next((c for c in chunks if mark.search(c.text)), None)
    lines = LINES.match(anchor)
    if lines and anchor.startswith("L"):
        return _on(chunks, int(lines[1]), int(lines[2] or lines[1]))
    wanted = slug(anchor)
    numbered = re.fullmatch(r"(.+)-(\d{1,3})", wanted)  # how a second heading of the same words is told from the first
    for name, skip in ((wanted, 0), (numbered[1], int(numbered[2])) if numbered else ("", 0)):
        under = [c for c in chunks if name and any(slug(h) == name for h in c.heading)]
        own = [c for c in under if slug(c.heading[-1]) == name] or under
        firsts = [c for before, c in zip((None, *own), own, strict=False) if not before or _apart(before, c)]
        if skip < len(firsts):
            return firsts[skip]
    return _on(chunks, int(lines[1]), int(lines[2] or lines[1])) if lines else None


def _apart(before: Chunk, after: Chunk) -> bool:
    """Whether two passages stand in different sections: more than a blank line lies between them."""
    return before.heading != after.heading or after.start_line > before.end_line + 2


def _on(chunks: Sequence[Chunk], first: int, last: int) -> Chunk | None:
    """The passage on some lines, or the next one: a link in a heading belongs to what stands under it."""
    touching = [c for c in chunks if c.start_line <= last and c.end_line >= first]
    if touching:
        return max(touching, key=lambda c: min(c.end_line, last) - max(c.start_line, first))
    return next((c for c in chunks if c.end_line >= first), None)


def check_kind(kind: str) -> None:
    """Refuses what is no name of a kind."""
    if not KIND.match(kind):
        hint = f"small letters and underscores, such as {', '.join(KINDS)}"
        raise UsageError(f"{kind!r} is no kind of link", hint=hint)


def node_of(store: Linking, reference: str, *, dangling: bool = False) -> Node:
    """What a reference means: an id, a path, `path:lines`, `path#heading`, a citation or a note's name."""
    reference = unicodedata.normalize("NFC", reference.strip())
    by_id = store.chunks_by_id(reference) if re.fullmatch(r"[a-z2-7]{4,12}", reference) else []
    if len(by_id) == 1:
        return Node(by_id[0].path, by_id[0])
    place = End(reference) if store.chunks_of(reference) else place_of(reference)
    found = Atlas(store).find(place) if place and place.name else None
    if found and (dangling or not found.dangling):
        return found
    if by_id:
        names = ", ".join(c.id for c in by_id)
        raise NotFoundError(f"{reference} begins more than one id: {names}", hint="give more of it")
    hint = "give an id, a path, path:from-to or path#heading"
    raise NotFoundError(f"nothing indexed is called {reference!r}", hint=hint)


def edge_between(store: Linking, kind: str, start: Node, end: Node) -> tuple[Edge, Callable[[Edge], bool]]:
    """An edge that outlives edits and renames, and whether another edge says the same."""
    if start.key == end.key:
        raise UsageError("a passage cannot be linked to itself", hint="name two different ones")
    atlas = Atlas(store)

    def lasting(node: Node) -> End:
        if node.dangling:
            return place_of(node.path) or End(node.path)
        if node.whole or node.chunk is None:
            return End(node.path, content=store.documents()[node.path].digest)
        lines = node.chunk.citation.partition("#")[2]
        anchor = slug(node.chunk.heading[-1]) if node.chunk.heading else ""
        return End(node.path, anchor or lines, node.chunk.content_hash)

    def same(other: Edge) -> bool:
        return other.kind == kind and [e.key for e in atlas.ends(other)] == [start.key, end.key]

    return Edge(kind, lasting(start), lasting(end)), same


def walk(
    store: Linking,
    first: Node,
    *,
    links: Sequence[Edge] = (),
    depth: int = 4,
    kinds: Iterable[str] = (),
    direction: Direction = "out",
    most: int = MOST,
    further: Callable[[Chunk], Iterable[Edge]] | None = None,
) -> Trail:
    """Follows edges breadth first from a node; each node is left once, so that a circle ends.

    `links` are edges that no note makes, `further` gives those of a passage that something else knows of.
    """
    atlas = Atlas(store)
    told = [(edge, *atlas.ends(edge)) for edge in links]
    wanted = frozenset(kinds)
    hops: list[Hop] = []
    left = {first.key}
    queue: deque[tuple[Node, int, int]] = deque([(first, -1, 0)] if not first.dangling else [])
    while queue:
        node, number, level = queue.popleft()
        if level == depth:
            continue
        # The edge that led here is not shown again from its other end.
        back = {_mirrored(hops, number, first)}
        for kind, way, other in _around(atlas, node, direction, told=told, further=further):
            whole = (other.path, "")
            key = whole if whole in left else other.key  # a note that was left took its passages along
            if (wanted and kind not in wanted) or (kind, way, key) in back:
                continue
            back.add((kind, way, key))
            if len(hops) == most:
                return Trail(first, tuple(hops), cut=True)
            again = key in left
            hops.append(Hop(kind, way, level + 1, number, other, again))
            if not again and not other.dangling:
                left.add(other.key)
                queue.append((other, len(hops) - 1, level + 1))
    return Trail(first, tuple(hops))


def _mirrored(hops: Sequence[Hop], number: int, first: Node) -> tuple[str, str, tuple[str, str]]:
    """A hop as its far end sees it."""
    if number < 0:
        return "", "", ("", "")
    hop = hops[number]
    parent = first if hop.parent < 0 else hops[hop.parent].node
    return hop.kind, "in" if hop.direction == "out" else "out", parent.key


def _around(
    atlas: Atlas,
    node: Node,
    direction: Direction,
    *,
    told: Sequence[tuple[Edge, Node, Node]],
    further: Callable[[Chunk], Iterable[Edge]] | None,
) -> Iterator[tuple[str, Literal["out", "in"], Node]]:
    """The edges at a node with their other ends, those it makes before those it is named by."""
    ours = [c for c in atlas.chunks(node.path) if node.whole or c.id == node.key[1]]
    keys = [link_key(node.path), *(c.id for c in ours)]
    more = [(e, *atlas.ends(e)) for c in ours for e in further(c)] if further else []
    if direction != "in":
        made = ((e, *atlas.ends(e)) for e in atlas.store.edges_from(keys))
        for edge, start, end in chain(made, told, more):
            if _meets(start, node):
                yield edge.kind, "out", end
    if direction != "out":
        naming = ((e, *atlas.ends(e)) for e in atlas.store.edges_to(keys))
        for edge, start, end in chain(naming, told, more):
            if _meets(end, node):
                yield edge.kind, "in", start


def _meets(end: Node, node: Node) -> bool:
    """Whether an edge's end is this node: of a note all that its passages say, of a passage what its note says too."""
    return not end.dangling and end.path == node.path and (node.whole or end.whole or end.key == node.key)


def conflicts(store: Linking, chunks: Sequence[Chunk], links: Sequence[Edge] = ()) -> set[tuple[str, str]]:
    """Pairs of these passages, by id, of which one is said to conflict with the other or to supersede it."""
    atlas = Atlas(store)
    edges = (*store.edges_from([link_key(c.path) for c in chunks]), *links)
    found: set[tuple[str, str]] = set()
    for edge in dict.fromkeys(e for e in edges if e.kind in ("conflicts_with", "supersedes")):
        ours = [[c for c in chunks if _meets(end, Node(c.path, c))] for end in atlas.ends(edge)]
        found |= {(a.id, b.id) for a in ours[0] for b in ours[1] if a.id != b.id}
    return found
