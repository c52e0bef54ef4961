"""Notebook: reading, explaining, linking, writing and forgetting passages of a workspace."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from notewell.errors import NotFoundError, StoreError, UsageError
from notewell.index.documents import least_trusted
from notewell.index.index import Index
from notewell.notes.reference import (
    FORMS,
    References,
    Target,
    checked_lines,
    chunk_at,
    chunk_on,
    lines_in,
)
from notewell.search import explain
from notewell.search.evidence import ask
from notewell.search.prompt_block import CONSIDERED, DEFAULT_BUDGET, Context, pack
from notewell.search.search import Search, SearchOptions
from notewell.search.stages import Abstain
from notewell.settings_file import write_setting
from notewell.sources.source import Conversations
from notewell.store.lazy import LazyModule
from notewell.store.lock import locked
from notewell.text.forgotten import Tombstone, normal_words
from notewell.text.link_syntax import place_of
from notewell.text.markdown import split_lines
from notewell.text.reference_syntax import lines_of, parse_reference
from notewell.text.words import clean
from notewell.types import (
    REDACTED,
    Chunk,
    Document,
    Edge,
    End,
    Filters,
    Found,
    Hit,
    Notice,
    Progress,
    silent,
)

if TYPE_CHECKING:
    from notewell.notes import editor, link_walk, links, selection, timeline, whole_note
    from notewell.notes import forget as forget_
    from notewell.notes import remember as remember_
    from notewell.notes.imported_notes import Imported
else:  # a search needs none of them, and they take a tenth of its start
    editor, forget_ = LazyModule("notewell.notes.editor"), LazyModule("notewell.notes.forget")
    link_walk, links = LazyModule("notewell.notes.link_walk"), LazyModule("notewell.notes.links")
    remember_, selection = (
        LazyModule("notewell.notes.remember"),
        LazyModule("notewell.notes.selection"),
    )
    timeline, whole_note = (
        LazyModule("notewell.notes.timeline"),
        LazyModule("notewell.notes.whole_note"),
    )


@dataclass(frozen=True, slots=True)
class Text:
    """What `get` returns: lines of a note, or the turns on some lines of a transcript."""

    path: str
    start_line: int
    end_line: int
    text: str
    chunk: Chunk | None = None
    origin: str = "owner"

    @property
    def hidden(self) -> int:
        """How many secrets are shown as a mark instead."""
        return self.text.count(REDACTED)


class Notebook:
    """What people and agents do with single passages, over an index and its search."""

    def __init__(self, index: Index, search: Search) -> None:
        """`cwd` is set by a command line, whose paths may start from where its user is."""
        self.index = index
        self.search = search
        self.cwd: Path | None = None

    @property
    def references(self) -> References:
        """What finds the meaning of references, seen from where the user is."""
        root = self.index.root
        here = Path(os.path.realpath(self.cwd or root))
        folder = here.relative_to(root).as_posix() if here.is_relative_to(root) else ""
        return References(self.index.store.documents, root, folder=folder, unread=self._unread)

    def _unread(self, path: str) -> str:
        """Why a file of the workspace is not read; empty if nothing is known against it."""
        seen = (
            one.reason for one in self.index.looks.unread if one.path == path and not one.partly
        )
        return self.index.files.refuses(os.path.join(self.index.root, path)) or next(seen, "")

    @property
    def _links(self) -> link_walk.LinkResolver:
        return link_walk.LinkResolver(self.index.store, self.index.root)

    def get(self, reference: str, *, raw: bool = False) -> Text:
        """What a reference names, read from disk and redacted, a transcript as turns; `raw` is the
        file as it is.
        """
        references = self.references
        target = references.on_disk(parse_reference(reference), self._is_document)
        if target is None:
            # ids and names come from the index, and lines move
            self.index.ensure_fresh(embed=False)
            target = references.find(reference)
        return self._read(references.as_indexed(target), raw=raw)

    def whole(self, reference: str, *, as_of: dt.date | None = None) -> whole_note.WholeNote:
        """All of a note or conversation, with its links, neighbours and the versions of what it
        says.
        """
        self.index.ensure_fresh(embed=False)
        return whole_note.whole_note(self.index, self.references.find(reference).path, as_of=as_of)

    def _is_document(self, path: str) -> bool:
        found = (
            self.index.walk.document(path)
            if os.path.isfile(os.path.join(self.index.root, path))
            else None
        )
        return found is not None and found[1].path == path

    def _read(self, target: Target, *, raw: bool = False) -> Text:
        """The lines that a reference means; NotFoundError where they are not there."""
        path, chunk = target.path, target.chunk
        anchor = chunk.citation.rpartition("#")[2] if chunk else target.anchor
        found = self.index.walk.document(path)
        if found is None:
            raise NotFoundError(
                f"{path} is not there any more", hint="notewell index brings the index up to date"
            )
        source, document = found
        redact: Callable[[str], str] = str if raw else self.index.walk.safe
        try:
            if isinstance(source, Conversations) and not raw:
                return _turns(source, document, anchor, redact, chunk)
            text = (
                source.raw(document) if isinstance(source, Conversations) else source.read(document)
            )
        except (OSError, ValueError) as error:
            raise NotFoundError(
                f"{path} cannot be read: {error}", hint="notewell index reports each file"
            ) from error
        lines = split_lines(redact(clean(text)))
        if len(lines) > 1 and not lines[-1]:
            lines.pop()  # the end of the last line does not start another
        first, last = lines_in(path, anchor, lines)
        origin = self.index.walk.origin(document, "\n".join(lines))
        return Text(path, first, last, "\n".join(lines[first - 1 : last]), chunk, origin)

    def chunk(self, target: Target) -> Chunk | None:
        """The chunk that a reference means; None for a whole document."""
        if target.chunk or not target.anchor:
            return target.chunk
        text = self._read(target)
        chunks = self.index.store.documents.chunks_of(target.path)
        chunk = chunk_at(chunks, target.anchor) or chunk_on(chunks, text.start_line, text.end_line)
        if chunk is None:
            raise NotFoundError(
                f"no passage is on line {text.start_line} of {target.path}", hint=FORMS
            )
        return chunk

    def _node(self, reference: str, *, dangling: bool = False) -> link_walk.Node:
        """What a reference means, as a node of the links; with `dangling` it may be a name that
        nothing has.
        """
        try:
            target = self.references.find(reference)
        except NotFoundError:
            place = place_of(reference) if dangling else None
            if place is None:
                raise
            return self._links.find(place)
        chunk = self.chunk(target)
        return link_walk.Node(target.path, chunk) if chunk else self._links.whole(target.path)

    def why(
        self,
        /,
        text: str,
        reference: str,
        *,
        limit: int | None = None,
        budget_tokens: int = 0,
        **options: Unpack[SearchOptions],
    ) -> tuple[Found, explain.Why]:
        """Why a passage has its rank for a question, or why it is missing; of a note, the passage
        that got furthest.
        """
        found = self.search.search(text, limit=limit, budget_tokens=budget_tokens, **options)
        target = self._known(reference)
        gone = self._forgotten(target)
        if isinstance(gone, explain.Why):
            return found, gone
        chunk = self.chunk(target)
        if chunk is None:
            order = {
                m.id: n
                for step in (*found.trace.legs, *found.trace.steps)
                for n, m in enumerate(step.marks)
            }
            chunks = self.index.store.documents.chunks_of(target.path)
            if not chunks:
                raise NotFoundError(f"{target.path} has no passages", hint="it is empty")
            chunk = min(chunks, key=lambda c: (order.get(c.id, 1 << 30), c.start_line))
        keywords = self.index.store.keywords
        asked = ask(found.query.text, keywords.term_counts)
        places = keywords.term_places([chunk.row], asked.measured)
        note = "" if found.mode != "lexical" else "meaning search did not take part"
        ns = self.index.store.documents.changed_ns([chunk.path]).get(chunk.path)
        changed = dt.datetime.fromtimestamp(ns / 1e9).date() if ns else None  # noqa: DTZ006 - a day of this place
        said = explain.why(
            chunk,
            found.query,
            found.trace,
            asked=asked,
            places=places,
            vector_note=note,
            changed=changed,
        )
        return found, replace(said, lines=(*said.lines, *gone))

    def _known(self, reference: str) -> Target:
        """What a reference names; if that was forgotten by its id, the error says so."""
        try:
            return self.references.find(reference)
        except NotFoundError:
            stone = next(
                (s for s in self.index.tombstones.known().stones if s.id and s.id == reference),
                None,
            )
            if stone is None:
                raise
            raise NotFoundError(f"{reference} was {stone.story}", hint=_undo(stone)) from None

    def _forgotten(self, target: Target) -> explain.Why | tuple[str, ...]:
        """The explanation of what was forgotten altogether; of what was so in part, a line that
        says it.
        """
        stones = self.index.tombstones.known()
        if target.chunk or not stones.stones:
            return ()
        path, found = target.path, self.index.walk.document(target.path)
        text = self._read(target) if found and target.anchor else None
        whole = text.text if text else self.index.walk.text_of(path)
        stone = stones.has(whole, path)
        if stone is None or found is None:
            return ()
        left, count = stones.without(whole, path)
        if normal_words(left):
            parts = "1 part of it was" if count == 1 else f"{count} parts of it were"
            return (f"forgotten: {parts} {stone.story}; {_undo(stone)}",)
        first, last = (
            (text.start_line, text.end_line)
            if text
            else (1, max(1, len(split_lines(whole.rstrip()))))
        )
        chunk = Chunk(stone.id, path, found[1].source, first, last, (), whole, "")
        same = forget_.elsewhere(
            self.index.store, [selection.Piece(path, found[1].source, first, last, whole)]
        )
        lines = [
            f"{_undo(stone)} makes it known again",
            *(f"the same text is in {one}" for one in same),
        ]
        return explain.Why(chunk, stone.story, None, tuple(lines), None)

    def context(
        self,
        /,
        text: str,
        *,
        budget_tokens: int = DEFAULT_BUDGET,
        limit: int | None = None,
        choose: Callable[[Sequence[Hit]], Sequence[Hit]] | None = None,
        **options: Unpack[SearchOptions],
    ) -> Context:
        """One block for a prompt that answers a question within a budget of tokens, with the answer
        it is made of.

        Without a `limit` the budget decides: over what a search would show, and further passages
        that are likely. What `choose` returns of the hits is taken instead.
        """
        if budget_tokens < 1:
            raise UsageError(
                f"the budget is {budget_tokens} tokens", hint="give at least a few hundred"
            )
        found = self.search.search(text, limit=limit or CONSIDERED, **options)
        usual = limit or self.search.limit(found.profile)
        likely = tuple(
            h for n, h in enumerate(found.hits) if n < usual or h.confidence >= Abstain().least
        )
        likely = tuple(choose(found.hits)) if choose else likely
        written, notices = links.read_links(self.index.root)
        against = link_walk.conflicts(self._links, [h.chunk for h in likely], written)
        against |= {(h.chunk.id, other) for h in likely for other in h.conflicts_with}
        packed = pack(likely, found.query.text, budget_tokens=budget_tokens, conflicts=against)
        if likely and not packed.passages:
            message = f"no passage fits into {budget_tokens} tokens"
            notices.append(Notice("budget_too_small", message, "give a larger --budget-tokens"))
        return replace(
            packed, found=replace(found, hits=likely, notices=(*found.notices, *notices))
        )

    def trace(
        self,
        reference: str,
        *,
        depth: int = 4,
        kinds: Sequence[str] = (),
        direction: link_walk.Direction = "out",
    ) -> tuple[link_walk.LinkWalk, list[Notice]]:
        """What a passage or note derives from, refers to and so on, step by step; its rank is
        `why`'s business.
        """
        for kind in kinds:
            link_walk.check_kind(kind)
        notices = self.index.ensure_fresh(embed=False).notices
        written, more = links.read_links(self.index.root)
        start = self._node(reference)
        found = link_walk.walk(
            self._links,
            start,
            links=written,
            depth=depth,
            kinds=kinds,
            direction=direction,
            further=self._judged,
        )
        return found, [*self.index.store_notices, *notices, *more]

    def _judged(self, chunk: Chunk) -> list[Edge]:
        """What consolidation knows of a passage, as edges; those from front matter to whole notes
        exist already.
        """
        relations, documents = self.index.store.relations, self.index.store.documents
        found = relations.related([chunk], Filters()).get(chunk.row)
        pairs = [(chunk, other) for other in relations.stands_for(chunk)]
        if found and found.superseded_by:
            pairs += [(newer, chunk) for newer in documents.chunks_by_id(found.superseded_by)]
        resolver = self._links  # it remembers what it found
        edges = []
        for newer, older in pairs:
            named = [
                resolver.find(end, newer.path)
                for name in newer.facts.supersedes
                if (end := place_of(name))
            ]
            if not any(node.whole and node.path == older.path for node in named):
                edges.append(Edge("supersedes", End(newer.id), End(older.id)))
        against = found.conflicts_with if found else ()
        return edges + [Edge("conflicts_with", End(chunk.id), End(other)) for other in against]

    def link(self, start: str, kind: str, end: str, *, remove: bool = False) -> tuple[Edge, bool]:
        """Writes a link into `links.jsonl` of the workspace, or takes it out; whether the file
        changed.
        """
        link_walk.check_kind(kind)
        self.index.ensure_fresh(embed=False)
        ends = [self._node(one, dangling=remove) for one in (start, end)]
        self.index.trust.refuse_writing(os.path.join(self.index.root, links.LINKS_FILE))
        edge, same = link_walk.edge_between(self._links, kind, *ends)
        with locked(self.index.beside("links.lock"), wait_s=10.0) as mine:
            if not mine:
                raise StoreError("another process is writing links", hint="try again")
            if remove:
                return edge, bool(links.remove_links(self.index.root, same))
            if any(same(other) for other in links.read_links(self.index.root)[0]):
                return edge, False
            links.add_link(self.index.root, edge)
            return edge, True

    def timeline(
        self,
        reference: str = "",
        *,
        around: tuple[dt.date, dt.date] | None = None,
        window: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[timeline.Entry], list[Notice]]:
        """What came before and after a passage or some days, over all sources; without either, the
        latest.
        """
        if window < 1:
            raise UsageError(f"the window is {window}", hint="ask for at least one")
        if reference and around:
            raise UsageError(
                "a reference and a day cannot both be the middle", hint="give one of them"
            )
        notices = self.index.ensure_fresh(embed=False).notices
        chosen = filters or Filters()
        if around:
            entries = timeline.around_days(self.index.store, *around, window=window, filters=chosen)
        elif reference:
            node = self._node(reference)
            at, whole = node.chunk, node.whole
            entries = timeline.around_passage(
                self.index.store, at, window=window, filters=chosen, whole=whole
            )
        else:
            entries = timeline.latest(self.index.store, window=window, filters=chosen)
        lacking = [] if entries else self.index.lacking()
        return entries, [*self.index.store_notices, *notices, *lacking]

    @property
    def notes(self) -> editor.Notes:
        """What writes the notes of this workspace."""
        self.index.settle()  # the lock is next to the index
        return editor.Notes(
            self.index.files, self.index.beside("notes.lock"), self.index.trust.refuse_writing
        )

    @property
    def remembering(self) -> remember_.RememberContext:
        """What remembering works with."""
        return remember_.RememberContext(self.notes, self.index.walk, lambda: self.index.embedder)

    def remember(
        self,
        text: str,
        *,
        file: str = "",
        heading: str = "",
        tags: Sequence[str] = (),
        day: dt.date | None = None,
        supersedes: str = "",
        force: bool = False,
        now: dt.datetime | None = None,
    ) -> remember_.Remembered:
        """Writes a text into today's note, or the named one, unless it is there already; the next
        search finds it.
        """
        now = now or dt.datetime.now()  # noqa: DTZ005 - the day of this place
        self.index.require_writable()
        self.index.ensure_fresh(embed=False)
        if supersedes:
            target = self.references.find(supersedes)
            chunk = self.chunk(target)
            supersedes = chunk.id if chunk else target.path
            if file:
                raise UsageError(
                    "a memory that supersedes another gets its own file", hint="leave out --file"
                )
        whole = self.index.files.mode != "never" and self.index.files.any()
        done = remember_.remember(
            self.remembering,
            remember_.NewMemory(text, now, file, heading, tags, day, supersedes, force),
        )
        return replace(done, notices=(*done.notices, *self.keep_folder())) if whole else done

    def keep_folder(self) -> list[Notice]:
        """If a first `memory/` was made in a folder of notes, the others stay searched."""
        files = self.index.files
        if files.mode != "never":
            return []
        files.folder = "always"
        file = write_setting("folder", files.folder, self.index.root, os.environ)
        message = (
            "memory/ is new here; the other notes of the folder stay searched (folder in "
            f"{file.name})"
        )
        return [Notice("folder_kept", message)]

    def import_files(
        self,
        files: Sequence[str | os.PathLike[str]],
        *,
        dry_run: bool = False,
        progress: Progress = silent,
    ) -> Imported:
        """Turns exports of other programs, and documents, into notes; a second import adds only
        what is new.
        """
        from notewell.notes.imported_notes import import_files  # noqa: PLC0415 - few commands import

        return import_files(
            self.notes, [os.fspath(file) for file in files], dry_run=dry_run, progress=progress
        )

    def forget(
        self,
        reference: str = "",
        *,
        query: str = "",
        session: str = "",
        before: dt.date | None = None,
        yes: bool = False,
        everywhere: bool = False,
        from_files: bool = False,
        backup: bool = True,
        now: dt.datetime | None = None,
    ) -> forget_.Receipt:
        """Shows what would be forgotten; with `yes` forgets it for good, from the files too if
        asked to.

        What is named is forgotten in its own note; with `everywhere`, the same text in any other
        note as well.
        """
        if sum(map(bool, (reference, query, session, before))) != 1:
            hint = "an id, path or path:from-to, or --query, --session, --before"
            raise UsageError("say what to forget in one way", hint=hint)
        if not yes:
            self.index.ensure_fresh(embed=False)
            pieces = self.selected(reference, query, session, before)
            return forget_.Receipt(
                "", tuple(pieces), everywhere, tuple(forget_.elsewhere(self.index.store, pieces))
            )
        self.index.require_writable()
        with self.index.exclusively():
            self.index.walk.sync()
            pieces = self.selected(reference, query, session, before)
            context = self.forgetting(now)
            if not pieces:
                return forget_.Receipt("", ())
            for path in {p.path for p in pieces if from_files and p.source != "sessions"}:
                self.index.trust.refuse_writing(os.path.join(self.index.root, path))
            return forget_.forget(
                context, pieces, everywhere=everywhere, from_files=from_files, backup=backup
            )

    def unforget(self, name: str) -> tuple[int, tuple[str, ...]]:
        """Lifts the tombstones of a receipt or an id: how many, and the backups that the receipt
        made.
        """
        self.index.require_writable()
        with self.index.exclusively():
            context = self.forgetting(None)
            lifted = forget_.undo(context, name)
            self.index.walk.sync()
        return len(lifted), tuple(
            p for r in sorted({s.receipt for s in lifted}) for p in forget_.backups_of(context, r)
        )

    def forgetting(self, now: dt.datetime | None) -> forget_.ForgetContext:
        """What forgetting works with."""
        clock = now or dt.datetime.now()  # noqa: DTZ005 - the day of this place
        return forget_.ForgetContext(
            self.index.walk, self.notes, self.index.beside("backup"), clock
        )

    def selected(
        self, reference: str, query: str, session: str, before: dt.date | None
    ) -> list[selection.Piece]:
        """What somebody names to be forgotten, in one of four ways."""
        select = selection.Selection(self.index.walk)
        if query:
            return select.saying(clean(query))
        if session:
            return select.session(session)
        if before:
            return select.before(before)
        target = self.references.find(reference)
        if target.chunk:
            return select.chunk(target.chunk)
        if not target.anchor:
            return select.document(target.path)
        text = self._read(target)
        return select.lines(text.path, text.start_line, text.end_line, text.text)


def _undo(stone: Tombstone) -> str:
    return f"notewell forget --undo {stone.receipt or stone.id}"


def _turns(
    source: Conversations,
    document: Document,
    anchor: str,
    redact: Callable[[str], str],
    chunk: Chunk | None,
) -> Text:
    """The turns on some lines of a transcript."""
    from notewell.text.transcript import readable  # noqa: PLC0415 - only those who have them pay for it

    lines = lines_of(anchor)
    if anchor and lines is None:
        raise NotFoundError(
            f"{document.path} is a transcript, without headings",
            hint="name its lines: path:from-to",
        )
    first, last = lines or (1, None)
    turns, count = source.lines(document, max(first, 1), last)
    first, last = checked_lines(document.path, (first, count if last is None else last), count)
    text = readable([replace(turn, text=redact(turn.text)) for turn in turns])
    return Text(
        document.path, first, last, text, chunk, least_trusted(turn.origin for turn in turns)
    )
