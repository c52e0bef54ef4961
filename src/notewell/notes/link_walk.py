"""Where a passage comes from and what follows from it: a bounded walk over the links between
notes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from notewell.errors import UsageError
from notewell.notes.reference import chunk_at, inside_root, namesakes
from notewell.store.ports import Store
from notewell.text.link_syntax import KIND, KINDS, TAG, candidates_for, link_key, place_of, slug
from notewell.text.reference_syntax import ID, ID_LENGTH
from notewell.types import Chunk, Edge, End

Direction = Literal["out", "in", "both"]
MOST = 200


@dataclass(frozen=True, slots=True)
class Node:
    """A note (`whole`), a passage of one, or a name that nothing has (`dangling`)."""

    path: str
    chunk: Chunk | None = None
    whole: bool = False
    dangling: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the node."""
        return self.path, "" if self.whole or self.chunk is None else self.chunk.id

    @property
    def citation(self) -> str:
        """Where a person finds it."""
        return self.path if self.whole or self.chunk is None else self.chunk.citation


@dataclass(frozen=True, slots=True)
class Hop:
    """One edge of the walk: `parent` is the number of the hop it goes on from (-1: the start).

    `out`: the parent has the link to the node; `in`: the node has it to the parent. `again`: walked
    elsewhere.
    """

    kind: str
    direction: Literal["out", "in"]
    depth: int
    parent: int
    node: Node
    again: bool = False


@dataclass(frozen=True, slots=True)
class LinkWalk:
    """The hops of a walk from its start, nearest first; `cut` when there are more than fit."""

    start: Node
    hops: tuple[Hop, ...]
    cut: bool = False


class LinkResolver:
    """Finds what a place means now; remembers it for the length of one walk."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store = store
        self.root = root
        self._chunks: dict[str, list[Chunk]] = {}
        self._found: dict[tuple[End, str, bool], Node] = {}

    def chunks(self, path: str) -> list[Chunk]:
        """The chunks of a document, in order."""
        if path not in self._chunks:
            self._chunks[path] = self.store.documents.chunks_of(path)
        return self._chunks[path]

    def whole(self, path: str) -> Node:
        """A whole note."""
        chunks = self.chunks(path)
        return Node(path, chunks[0] if chunks else None, whole=True)

    def find(self, place: End, base: str = "", *, short_ids: bool = True) -> Node:
        """What a place means, seen from the note that names it: path, then name, then id, then
        content.
        """
        key = (place, base, short_ids)
        if key not in self._found:
            self._found[key] = self._find(place, base, short_ids)
        return self._found[key]

    def ends(self, edge: Edge) -> tuple[Node, Node]:
        """What both ends of an edge mean; the word of a dangling link must not meet the beginning
        of some id.
        """
        return self.find(edge.start), self.find(
            edge.end, edge.start.name, short_ids=edge.kind != "references"
        )

    def _find(self, place: End, base: str, short_ids: bool) -> Node:  # noqa: FBT001
        if path := self._path(place, base):
            return self._inside(path, place)
        is_id = ID.match(place.name) and (short_ids or len(place.name) == ID_LENGTH)
        by_id = self.store.documents.chunks_by_id(place.name) if is_id else []
        if len(by_id) == 1:
            return Node(by_id[0].path, by_id[0])
        if place.content and (moved := self.store.documents.path_with(place.content)):
            chunk = next((c for c in self.chunks(moved[0]) if c.id == moved[1]), None)
            return Node(moved[0], chunk) if chunk and place.anchor else self.whole(moved[0])
        return Node(place.name + (f"#{place.anchor}" if place.anchor else ""), dangling=True)

    def _path(self, place: End, base: str) -> str:
        named = self.store.documents.paths_named(link_key(place.name))
        for path in (*candidates_for(place.name, base), *inside_root(self.root, place.name)):
            if path in named:
                return path
        if place.content:
            return ""  # a link that knows its content rather finds that than a namesake
        return next(iter(namesakes(place.name, named)), "")

    def _inside(self, path: str, place: End) -> Node:
        chunks = self.chunks(path)
        if not place.anchor:
            return self.whole(path)
        chunk = next((c for c in chunks if place.content and c.content_hash == place.content), None)
        chunk = chunk or chunk_at(chunks, place.anchor)
        return Node(path, chunk) if chunk else self.whole(path)


def check_kind(kind: str) -> None:
    """Raises UsageError for what cannot be the name of a kind."""
    if not KIND.match(kind):
        hint = f"small letters and underscores, such as {', '.join(KINDS)}"
        raise UsageError(f"{kind!r} is not a kind of link", hint=hint)


def edge_between(
    resolver: LinkResolver, kind: str, start: Node, end: Node
) -> tuple[Edge, Callable[[Edge], bool]]:
    """An edge that outlives edits and renames, and a test whether another edge is the same."""
    if start.key == end.key:
        raise UsageError("a passage cannot be linked to itself", hint="name two different ones")

    def lasting(node: Node) -> End:
        if node.dangling:
            return place_of(node.path) or End(node.path)
        if node.whole or node.chunk is None:
            return End(node.path, content=resolver.store.documents.stored()[node.path].digest)
        lines = node.chunk.citation.partition("#")[2]
        anchor = slug(node.chunk.heading[-1]) if node.chunk.heading else ""
        return End(node.path, anchor or lines, node.chunk.content_hash)

    def same(other: Edge) -> bool:
        return other.kind == kind and [e.key for e in resolver.ends(other)] == [start.key, end.key]

    return Edge(kind, lasting(start), lasting(end)), same


def walk(
    resolver: LinkResolver,
    first: Node,
    *,
    links: Sequence[Edge] = (),
    depth: int = 4,
    kinds: Iterable[str] = (),
    direction: Direction = "out",
    most: int = MOST,
    further: Callable[[Chunk], Iterable[Edge]] | None = None,
) -> LinkWalk:
    """Follows edges breadth first from a node; each node is left once, so that a circle ends.

    `links` are edges that no note makes; `further` gives those of a passage from elsewhere.
    """
    given = [(edge, *resolver.ends(edge)) for edge in links]
    wanted = frozenset(kinds)
    hops: list[Hop] = []
    left = {first.key}
    queue: deque[tuple[Node, int, int]] = deque([(first, -1, 0)] if not first.dangling else [])
    while queue:
        node, number, level = queue.popleft()
        if level == depth:
            continue
        # The edge that led here is not shown from its other end as well.
        back = {_mirrored(hops, number, first)}
        for kind, way, other in _around(resolver, node, direction, given=given, further=further):
            whole = (other.path, "")
            key = whole if whole in left else other.key  # a visited note includes its passages
            if (wanted and kind not in wanted) or (kind, way, key) in back:
                continue
            back.add((kind, way, key))
            if len(hops) == most:
                return LinkWalk(first, tuple(hops), cut=True)
            again = key in left
            hops.append(Hop(kind, way, level + 1, number, other, again))
            if not again and not other.dangling:
                left.add(other.key)
                queue.append((other, len(hops) - 1, level + 1))
    return LinkWalk(first, tuple(hops))


def _mirrored(hops: Sequence[Hop], number: int, first: Node) -> tuple[str, str, tuple[str, str]]:
    """A hop as seen from its other end."""
    if number < 0:
        return "", "", ("", "")
    hop = hops[number]
    parent = first if hop.parent < 0 else hops[hop.parent].node
    return hop.kind, "in" if hop.direction == "out" else "out", parent.key


def _around(
    resolver: LinkResolver,
    node: Node,
    direction: Direction,
    *,
    given: Sequence[tuple[Edge, Node, Node]],
    further: Callable[[Chunk], Iterable[Edge]] | None,
) -> Iterator[tuple[str, Literal["out", "in"], Node]]:
    """The edges at a node with their other ends: first the ones it has, then the ones to it."""
    ours = [c for c in resolver.chunks(node.path) if node.whole or c.id == node.key[1]]
    keys = [link_key(node.path), *(c.id for c in ours)]
    more = [(e, *resolver.ends(e)) for c in ours for e in further(c)] if further else []
    if direction != "in":
        made = (
            (e, *resolver.ends(e)) for e in resolver.store.history.edges_from(keys) if e.kind != TAG
        )
        for edge, start, end in chain(made, given, more):
            if _meets(start, node):
                yield edge.kind, "out", end
    if direction != "out":
        naming = (
            (e, *resolver.ends(e)) for e in resolver.store.history.edges_to(keys) if e.kind != TAG
        )
        for edge, start, end in chain(naming, given, more):
            if _meets(end, node):
                yield edge.kind, "in", start


def _meets(end: Node, node: Node) -> bool:
    """Whether an edge ends at this node: a note includes its passages, and a passage the edges of
    its note.
    """
    return (
        not end.dangling
        and end.path == node.path
        and (node.whole or end.whole or end.key == node.key)
    )


def conflicts(
    resolver: LinkResolver, chunks: Sequence[Chunk], links: Sequence[Edge] = ()
) -> set[tuple[str, str]]:
    """Pairs of these passages, by id, of which one has a link that it conflicts with the other or
    supersedes it.
    """
    edges = (*resolver.store.history.edges_from([link_key(c.path) for c in chunks]), *links)
    found: set[tuple[str, str]] = set()
    for edge in dict.fromkeys(e for e in edges if e.kind in ("conflicts_with", "supersedes")):
        ours = [[c for c in chunks if _meets(end, Node(c.path, c))] for end in resolver.ends(edge)]
        found |= {(a.id, b.id) for a in ours[0] for b in ours[1] if a.id != b.id}
    return found
