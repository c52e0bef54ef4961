"""Forgetting: out of the index for good, out of the files when told to, with a receipt that can be checked."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import mmap
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import NotFoundError, RecollectError, StoreError
from recollect.ports import Shared, Sought, Store
from recollect.sources.files import decode
from recollect.store.lock import settle
from recollect.sync.engine import Engine
from recollect.sync.notes import Notes
from recollect.text.entry import cut, keep_ends
from recollect.text.forgotten import Forgotten, Tombstone, normal_words, tombstones, units
from recollect.text.markdown import split_lines
from recollect.text.words import clean, index_terms, query_terms, term_set
from recollect.types import Chunk, Filters

NOTE_SOURCES = ("memory", "extra")
_LONG_LINE = 20
_PROBES = 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines to forget; `whole` when they are all of their document."""

    path: str
    source: str
    start_line: int
    end_line: int
    text: str
    id: str = ""
    whole: bool = False

    @property
    def citation(self) -> str:
        """Where a person finds it."""
        if self.whole:
            return self.path
        last = f"-L{self.end_line}" if self.end_line > self.start_line else ""
        return f"{self.path}#L{self.start_line}{last}"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file that lost lines, or is gone, and where its backup is."""

    path: str
    deleted: bool
    backup: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten and what proves it; `id` is empty when it was only a preview."""

    id: str
    pieces: tuple[Piece, ...]
    files: tuple[Rewritten, ...] = ()
    kept_files: tuple[str, ...] = ()
    chunks: int = 0
    vectors: int = 0
    tombstones: int = 0
    searched: int = 0
    still_found: tuple[str, ...] = ()
    lingering: tuple[str, ...] = ()

    @property
    def proved(self) -> bool:
        """Whether nothing of it was found again, in an answer or in the bytes of the index."""
        return bool(self.id) and not self.still_found and not self.lingering


class Selection:
    """Turns what a user names into pieces, from the index as it is now."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self.store = store
        self.engine = engine

    def chunk(self, chunk: Chunk) -> list[Piece]:
        """A passage by its id."""
        return [_piece(chunk)]

    def document(self, path: str) -> list[Piece]:
        """All of a document."""
        chunks = self.store.chunks_of(path)
        known = self.store.documents().get(path)
        if known is None:
            raise NotFoundError(f"nothing indexed is called {path!r}", hint="give an id, a path or path:from-to")
        text = self.engine.text_of(path) or "\n\n".join(c.text for c in chunks)
        last = max(len(keep_ends(text)), *(c.end_line for c in chunks)) if chunks else 1
        return [Piece(path, known.source, 1, last, text, whole=True)]

    def lines(self, path: str, first: int, last: int, text: str) -> list[Piece]:
        """Lines of a note, as they are on disk; of a transcript what was said on them."""
        known = self.store.documents().get(path)
        source = known.source if known else "memory"
        if source not in NOTE_SOURCES:
            text = self.engine.said(path, first, last) or text
        return [Piece(path, source, first, last, text)]

    def saying(self, words: str) -> list[Piece]:
        """Every paragraph or list item that has all of the words; a whole passage where only that has."""
        terms = query_terms(words)
        wanted = set(terms.words) | set(terms.prefixes)
        if not wanted:
            return []
        sought = Sought(tuple(terms.words), prefixes=tuple(terms.prefixes), every=True, in_head=False)
        count = self.store.counts()["chunks"]
        rows = [s.row for s in self.store.lexical(sought, max(1, count), Filters())]
        found: dict[tuple[str, int, int, str], Piece] = {}
        for chunk in sorted(self.store.chunks(rows).values(), key=lambda c: (c.path, c.start_line)):
            spoken = chunk.source not in NOTE_SOURCES
            exact = spoken or _is_whole_lines(chunk)
            all_lines = (1, chunk.end_line - chunk.start_line + 1)
            parts = [(a, b, unit) for a, b, unit in units(chunk.text) if exact and wanted <= _all_terms(unit)]
            for first, last, unit in parts or [(*all_lines, chunk.text)]:
                # A turn is one line of its file, however many its text has.
                a, b = all_lines if spoken else (first, last)
                one = Piece(
                    chunk.path, chunk.source, chunk.start_line + a - 1, chunk.start_line + b - 1, unit.rstrip("\n"),
                    "" if parts else chunk.id,
                )  # fmt: skip
                found.setdefault((one.path, one.start_line, one.end_line, unit if spoken else ""), one)
        return list(found.values())

    def session(self, name: str) -> list[Piece]:
        """A transcript, by its path, its name or the beginning of it."""
        sessions = [p for p, s in self.store.documents().items() if s.source not in NOTE_SOURCES]
        found = [p for p in sessions if name in (p, Path(p).stem, Path(p).name)]
        if not found and len(name) >= 4:
            found = [p for p in sessions if Path(p).stem.startswith(name)]
        if len(found) != 1:
            which = f"{len(found)} sessions begin with {name!r}" if found else f"no session is called {name!r}"
            raise NotFoundError(which, hint="give its whole name, as recollect search prints it")
        return self.document(found[0])

    def before(self, day: dt.date) -> list[Piece]:
        """Documents and turns of conversations that are older than a day; what has no date stays."""
        found: list[Piece] = []
        for path in sorted(self.store.documents()):
            chunks = self.store.chunks_of(path)
            old = [c for c in chunks if c.day is not None and c.day < day]
            if old and len(old) == len(chunks):
                found += self.document(path)
            else:
                found += [_piece(c) for c in old]
        return found


@dataclass(frozen=True, slots=True)
class Act:
    """What forgetting works with."""

    store: Store
    engine: Engine
    notes: Notes
    backups: Path | None
    now: dt.datetime


def forget(act: Act, pieces: Sequence[Piece], *, from_files: bool, backup: bool) -> Receipt:
    """Forgets the pieces: tombstones first, then the files if told, then the index, then every byte that is left."""
    made = act.now.isoformat(timespec="seconds")
    mark = "\0".join([made, *(f"{p.citation}\0{p.text}" for p in pieces)])
    receipt = hashlib.blake2b(mark.encode("utf-8", "replace"), digest_size=5).hexdigest()
    stones = [s for p in pieces for s in tombstones(p.text, p.path, made=made, receipt=receipt, id=p.id)]
    current = (act.store.get_meta("forgotten") or "") == act.engine.tombstones.load().signature
    forgotten = act.engine.tombstones.add(stones)
    files, kept = _from_files(act, pieces, receipt, backup=backup) if from_files else ((), ())
    touched = {p.path for p in pieces} | {path for p in pieces for path in _copies(act.store, p)}
    before = _ids(act.store, touched)
    act.engine.again(sorted(touched))
    if current:  # else some documents were not yet looked through for what was forgotten before: the next sync does
        act.store.set_meta("forgotten", forgotten.signature)
    lingering: list[str] = []
    vectors = 0
    try:
        vectors, clean_file = act.store.scrub()
        if not clean_file and not isinstance(act.store, Shared):
            lingering.append("another process reads the index: bytes may stay in its WAL until it is closed")
    except StoreError as error:
        lingering.append(f"the index could not be rewritten, so bytes may stay in it: {error}")
    if isinstance(act.store, Shared):
        lingering.append("the server keeps bytes of deleted rows in its pages, WAL and backups until it reuses them")
    _remove_set_aside(act.store)
    own = Forgotten(tuple(stones))
    probes = _probes(pieces)
    lingering += [f"{name} still has it" for name in _files_with(act.store, probes)]
    if act.backups is not None:
        lingering += [f"an earlier backup has it: {p}" for p in _old_backups(act.backups, own, pieces, receipt)]
    return Receipt(
        receipt, tuple(pieces), tuple(files), tuple(kept),
        chunks=len(before - _ids(act.store, touched)), vectors=vectors, tombstones=len(stones),
        searched=len(probes), still_found=tuple(_found_again(act.store, own, pieces)), lingering=tuple(lingering),
    )  # fmt: skip


def undo(act: Act, name: str) -> list[Tombstone]:
    """Lifts the tombstones of a receipt or of a passage's id, and returns them."""
    lifted = [s for s in act.engine.tombstones.load().stones if name in (s.receipt, s.id)]
    if not lifted:
        raise NotFoundError(f"no receipt and no forgotten passage is called {name!r}", hint="give the receipt's name")
    act.engine.tombstones.lift(lambda one: name in (one.receipt, one.id))
    return lifted


def backups_of(act: Act, receipt: str) -> list[str]:
    """The backups that a receipt made."""
    folder = act.backups
    return sorted(str(p) for p in folder.glob(f"*{receipt}*")) if folder and folder.is_dir() else []


def _piece(chunk: Chunk) -> Piece:
    return Piece(chunk.path, chunk.source, chunk.start_line, chunk.end_line, chunk.text, chunk.id)


def _ids(store: Store, paths: Iterable[str]) -> set[str]:
    return {chunk.id for path in paths for chunk in store.chunks_of(path)}


def _is_whole_lines(chunk: Chunk) -> bool:
    return chunk.text.count("\n") == chunk.end_line - chunk.start_line


def _all_terms(text: str) -> set[str]:
    body, _ = index_terms(text)
    return set(body.split())


def _copies(store: Store, piece: Piece) -> set[str]:
    """Documents that may hold the same text, or a part of it that is forgotten by itself."""
    found: set[str] = set()
    for _, _, unit in units(piece.text):
        if len(unit) >= _LONG_LINE:
            found |= store.paths_with(sorted(term_set(unit)))
    return found


def _from_files(act: Act, pieces: Sequence[Piece], receipt: str, *, backup: bool) -> tuple[list[Rewritten], list[str]]:
    """Takes the pieces out of their notes; transcripts belong to the programs that write them and are left alone."""
    files: list[Rewritten] = []
    kept: list[str] = []
    by_path: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_path.setdefault(piece.path, []).append(piece)
    for path, own in by_path.items():
        if any(p.source not in NOTE_SOURCES for p in own):
            kept.append(path)
            continue
        document = act.notes.source.document(path)
        if document is None:
            continue
        location = os.path.realpath(document.location)
        saved: list[str] = []

        whole = next((p for p in own if p.whole), None)

        def keep(data: bytes, *, path: str = path, saved: list[str] = saved, whole: Piece | None = whole) -> None:
            if whole and _has_more(data, whole, act.engine.safe):
                raise StoreError(f"{path} changed while it was looked at", hint="run it again")
            if backup and act.backups is not None:
                saved[:] = [_back_up(act, path, receipt, data)]

        if whole:
            act.notes.remove(location, keep=keep)
            files.append(Rewritten(path, deleted=True, backup="".join(saved)))
        elif act.notes.change(location, lambda text, own=own: _cut_out(text, own, act.engine.safe), keep=keep):  # type: ignore[misc]
            files.append(Rewritten(path, deleted=False, backup="".join(saved)))
    return files, kept


def _cut_out(text: str, pieces: Iterable[Piece], safe: Callable[[str], str]) -> str:
    """A note without the pieces: whole lines where they are whole, else the words alone.

    A piece is known as the index has it, without its secrets; the note has them.
    """
    known = split_lines(safe(clean(text)))
    for first, last, own in reversed(_merged(pieces)):
        lines = "\n".join(known[first - 1 : last])
        piece = own[0]
        if len(own) > 1 or lines.strip() == piece.text.strip():
            if len(own) > 1 and not all(_says(lines, one) for one in own):
                raise StoreError(f"{piece.path} changed while it was looked at", hint="run it again")
            text = cut(text, first, last)
            continue
        ends = keep_ends(text)
        inside = "".join(ends[first - 1 : last])
        stones = Forgotten(tuple(tombstones(piece.text, piece.path)))
        less, count = stones.without(inside, piece.path)
        expected = stones.without(lines, piece.path)[1]
        if not expected:
            raise StoreError(f"{piece.path} changed while it was looked at", hint="run it again")
        if count < expected:
            hint = f"name its lines: recollect forget {piece.path}:{first}-{last} --from-files --yes"
            raise StoreError(f"a secret stands in a part of the lines {first}-{last} of {piece.path}", hint=hint)
        text = "".join((*ends[: first - 1], less, *ends[last:]))
    return text


def _has_more(data: bytes, whole: Piece, safe: Callable[[str], str]) -> bool:
    """Whether a note says what it did not when it was chosen to be deleted: that was not asked for."""
    try:
        now = units(safe(clean(decode(data))))
    except ValueError:
        return False  # what cannot be read as text was not chosen by its text
    said = {tuple(normal_words(unit)) for _, _, unit in units(whole.text)}
    return any(tuple(normal_words(unit)) not in said for _, _, unit in now)


def _says(lines: str, piece: Piece) -> bool:
    """Whether a piece stands on these lines."""
    stones = tuple(tombstones(piece.text, piece.path))
    return not stones or Forgotten(stones).has(lines, piece.path) is not None


def _merged(pieces: Iterable[Piece]) -> list[tuple[int, int, list[Piece]]]:
    """Line ranges from top to bottom with their pieces; those that overlap become one."""
    out: list[tuple[int, int, list[Piece]]] = []
    for piece in sorted(pieces, key=lambda p: (p.start_line, p.end_line)):
        if out and piece.start_line <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], piece.end_line), [*out[-1][2], piece])
        else:
            out.append((piece.start_line, piece.end_line, [piece]))
    return out


def _back_up(act: Act, path: str, receipt: str, data: bytes) -> str:
    folder = act.backups
    if folder is None:
        return ""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = path.strip("/").replace("/", "__")[-120:]
    place = folder / f"{act.now:%Y%m%d-%H%M%S}-{receipt}-{name}"
    handle = os.open(place, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    settle(folder)
    return str(place)


def _probes(pieces: Sequence[Piece]) -> list[bytes]:
    """The longest line of each piece, to look for in the bytes of the index."""
    lines = [max(split_lines(p.text), key=len, default="").strip() for p in pieces]
    long = sorted({line for line in lines if len(line) >= _LONG_LINE}, key=len, reverse=True)
    return [line.encode("utf-8", "replace") for line in long[:_PROBES]]


def _files_with(store: Store, probes: Sequence[bytes]) -> list[str]:
    """Files of the index that have the bytes of a probe which no passage of the index has any more."""
    found: list[str] = []
    if store.file is None:
        return found
    for end in ("", "-wal", "-journal"):
        place = Path(f"{store.file}{end}")
        with (
            contextlib.suppress(OSError, ValueError),  # no such file, or an empty one
            place.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            if any(data.find(probe) >= 0 and not store.says(probe.decode()) for probe in probes):
                found.append(place.name)
    return found


def _found_again(store: Store, own: Forgotten, pieces: Sequence[Piece]) -> list[str]:
    """Citations of passages that a search for the forgotten words brings and that still hold them."""
    found: dict[str, None] = {}
    for piece in pieces[:_PROBES]:
        words = query_terms(" ".join(normal_words(piece.text)[:200])).words
        counts = store.term_counts(words).found_in
        rare = sorted((w for w in words if counts[w]), key=lambda w: counts[w])[:32]
        rows = [s.row for s in store.lexical(Sought(tuple(rare)), 100, Filters())]
        for chunk in store.chunks(rows).values():
            if own.has(chunk.text, chunk.path):
                found[chunk.citation] = None
    return list(found)


def _remove_set_aside(store: Store) -> None:
    """A damaged index that was set aside still holds the text, and nothing that the notes do not have."""
    path = store.file
    if path is not None:
        for old in path.parent.glob(f"{path.stem}.damaged-*"):
            old.unlink(missing_ok=True)


def _old_backups(folder: Path, own: Forgotten, pieces: Sequence[Piece], receipt: str) -> list[str]:
    """Backups of earlier receipts that hold the text: they are the user's to keep or to delete."""
    found = []
    for place in sorted(folder.glob("*")) if folder.is_dir() else []:
        if f"-{receipt}-" in place.name:
            continue
        with contextlib.suppress(OSError, RecollectError):
            text = place.read_bytes().decode("utf-8", "replace")
            if any(own.has(text, p.path) for p in pieces[:_PROBES]):
                found.append(str(place))
    return found
