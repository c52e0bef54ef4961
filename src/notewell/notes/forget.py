"""Forgetting: what a user names, out of the index for good and out of the files if asked, with a
receipt as proof.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import mmap
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from notewell.errors import ChangedError, NotewellError, NotFoundError, StoreError
from notewell.index.walk import Walk
from notewell.notes.editor import Notes
from notewell.notes.selection import NOTE_SOURCES, Piece
from notewell.notes.undo_log import UndoLog, hash_of
from notewell.opener import MOST_KEPT_BYTES, beside
from notewell.store.ports import Store
from notewell.store.values import Sought
from notewell.text.forgotten import Forgotten, Tombstone, normal_words, tombstones, units
from notewell.text.markdown import split_lines
from notewell.text.note_edit import cut, keep_ends
from notewell.text.note_files import decode
from notewell.text.words import clean, query_terms, term_set
from notewell.types import Filters

_LONG_LINE = 20
_PROBES = 20


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file that lost lines, or is gone, and where its backup is."""

    path: str
    deleted: bool
    backup: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten and what proves it; `id` is empty when it was only a preview.

    `elsewhere` cites passages of other notes that hold the same text: with `everywhere` it is
    forgotten there too.
    """

    id: str
    pieces: tuple[Piece, ...]
    everywhere: bool = False
    elsewhere: tuple[str, ...] = ()
    files: tuple[Rewritten, ...] = ()
    kept_files: tuple[str, ...] = ()
    chunks: int = 0
    vectors: int = 0
    tombstones: int = 0
    searched: int = 0
    still_found: tuple[str, ...] = ()
    lingering: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()  # besides answers: what was looked through and has nothing of it

    @property
    def proved(self) -> bool:
        """Whether nothing of it was found again, in an answer or in the bytes of the index.

        Unless it was forgotten everywhere, answers from the notes of `elsewhere` may have it, and
        so may their bytes.
        """
        return bool(self.id) and not self.still_found and not self.lingering


@dataclass(frozen=True, slots=True)
class ForgetContext:
    """What forgetting works with; notes with an `expected` hash must still have it."""

    walk: Walk
    notes: Notes
    backups: Path | None
    now: dt.datetime
    expected: Mapping[str, str] = field(default_factory=dict)


def forget(
    context: ForgetContext,
    pieces: Sequence[Piece],
    *,
    everywhere: bool,
    from_files: bool,
    backup: bool,
) -> Receipt:
    """Forgets the pieces: tombstones first, then the files if asked, then the index, then every
    byte that is left.

    Each goes from its own note, or with `everywhere` its text from every note in the index.
    """
    store, walk = context.walk.store, context.walk
    walk.tombstones.require_all()
    # to the microsecond: what is lifted and forgotten again is another receipt
    made = context.now.isoformat()
    mark = "\0".join([made, *(f"{p.citation}\0{p.text}" for p in pieces)])
    receipt = hashlib.blake2b(mark.encode("utf-8", "replace"), digest_size=5).hexdigest()
    stones = [
        stone
        for p in pieces
        for stone in tombstones(
            p.text, p.path, everywhere=everywhere, made=made, receipt=receipt, id=p.id
        )
    ]
    same = tuple(elsewhere(store, pieces))
    known = walk.tombstones.load()
    current = (store.get_meta("forgotten") or "") == known.signature
    walk.tombstones.add(stones)
    try:
        files, kept = (
            _from_files(context, pieces, receipt, backup=backup) if from_files else ((), ())
        )
    except ChangedError:
        walk.tombstones.lift(lambda stone: stone.receipt == receipt)
        raise
    touched = {p.path for p in pieces} | (_copies(store, pieces) if everywhere else set())
    before = _ids(store, touched)
    walk.again(sorted(touched))
    # otherwise the next sync still has to remove the text of tombstones that others made
    if current:
        store.set_meta("forgotten", Forgotten((*known.stones, *stones)).signature)
    own = Forgotten(tuple(stones))
    probes = _probes_of(pieces)
    vectors, lingering = _scrub(store)
    checked, found = _looked_through(store, probes)
    lingering += found
    lingering += [
        f"our copy of it still has it: {place}" for place in walk.copies_with(sorted(touched), own)
    ]
    if context.backups is not None:
        UndoLog(context.backups.with_name("changes")).forget(own)
        old = _old_backups(context.backups, own, pieces, receipt)
        lingering += [f"an earlier backup has it: {place}" for place in old]
    return Receipt(
        receipt,
        tuple(pieces),
        everywhere,
        same,
        tuple(files),
        tuple(kept),
        chunks=len(before - _ids(store, touched)),
        vectors=vectors,
        tombstones=len(stones),
        searched=len(probes),
        still_found=tuple(_found_again(store, own, pieces)),
        lingering=tuple(lingering),
        checked=tuple(checked),
    )


def _scrub(store: Store) -> tuple[int, list[str]]:
    """Removes what is left of deleted text from the index; how many vectors, and where bytes may
    remain.
    """
    lingering: list[str] = []
    vectors = 0
    try:
        vectors, clean_file = store.scrub()
        if not clean_file and store.shared is None:
            lingering.append(
                "another process reads the index: bytes may stay in its WAL until it is closed"
            )
    except StoreError as error:
        lingering.append(f"the index could not be rewritten, so bytes may stay in it: {error}")
    if store.file is not None:
        # A damaged index that was set aside still holds the text, and nothing that the notes do not
        # have.
        for old in store.file.parent.glob(f"{store.file.stem}.damaged-*"):
            old.unlink(missing_ok=True)
    return vectors, lingering


def undo(context: ForgetContext, name: str) -> list[Tombstone]:
    """Lifts the tombstones of a receipt or of a passage's id, with others of the same text, and
    returns them.
    """
    known = context.walk.tombstones.load().stones
    gone = {(s.hash, s.place) for s in known if name in (s.receipt, s.id)}
    if not gone:
        raise NotFoundError(
            f"no receipt and no forgotten passage is called {name!r}",
            hint="give the receipt's name",
        )
    context.walk.tombstones.lift(lambda one: (one.hash, one.place) in gone)
    return [s for s in known if (s.hash, s.place) in gone]


def backups_of(context: ForgetContext, receipt: str) -> list[str]:
    """The backups that a receipt made."""
    folder = context.backups
    return sorted(str(p) for p in folder.glob(f"*{receipt}*")) if folder and folder.is_dir() else []


def _ids(store: Store, paths: Iterable[str]) -> set[str]:
    return {chunk.id for path in paths for chunk in store.documents.chunks_of(path)}


def _copies(store: Store, pieces: Iterable[Piece]) -> set[str]:
    """Documents that may hold the same text, or a part of it that is forgotten by itself."""
    long = {unit for piece in pieces for _, _, unit in units(piece.text) if len(unit) >= _LONG_LINE}
    return {path for unit in long for path in store.keywords.paths_with(sorted(term_set(unit)))}


def elsewhere(store: Store, pieces: Sequence[Piece]) -> list[str]:
    """Citations of passages in other notes that hold a part of the pieces; a line of a few letters
    does not count.
    """
    own = Forgotten(tuple(stone for p in pieces for stone in tombstones(p.text, p.path)))
    return [
        chunk.citation
        for path in sorted(_copies(store, pieces))
        for chunk in store.documents.chunks_of(path)
        if own.in_any_note.has(own.without(chunk.text, path)[0], path)
    ]


def _from_files(
    context: ForgetContext, pieces: Sequence[Piece], receipt: str, *, backup: bool
) -> tuple[list[Rewritten], list[str]]:
    """Takes the pieces out of their notes; transcripts belong to the programs that write them and
    are left alone.
    """
    files: list[Rewritten] = []
    left_alone: list[str] = []
    by_path: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_path.setdefault(piece.path, []).append(piece)
    for path, own in by_path.items():
        if any(p.source not in NOTE_SOURCES for p in own):
            left_alone.append(path)
        elif done := _from_file(context, path, own, receipt, backup=backup):
            files.append(done)
    return files, left_alone


def _from_file(
    context: ForgetContext, path: str, pieces: Sequence[Piece], receipt: str, *, backup: bool
) -> Rewritten | None:
    """Takes pieces out of one note, or deletes it; None where it is gone or has none of them."""
    document = context.notes.files.document(path)
    if document is None:
        return None
    location, safe = os.path.realpath(document.location), context.walk.safe
    whole = next((p for p in pieces if p.whole), None)
    saved = ""

    def before(data: bytes) -> None:
        nonlocal saved
        if context.expected.get(path, hash_of(data)) != hash_of(data):
            raise ChangedError(f"{path} changed after this was shown", hint="look at it again")
        if whole and _has_more(data, whole, safe):
            raise _changed(path)
        if backup and context.backups is not None:
            saved = _back_up(context.backups, f"{context.now:%Y%m%d-%H%M%S}-{receipt}", path, data)

    if whole:
        context.notes.remove(location, keep=before)
    elif not context.notes.change(location, lambda text: cut_out(text, pieces, safe), keep=before):
        return None
    return Rewritten(path, deleted=whole is not None, backup=saved)


def _changed(path: str) -> StoreError:
    return StoreError(f"{path} changed in the meantime", hint="run it again")


def cut_out(text: str, pieces: Iterable[Piece], safe: Callable[[str], str]) -> str:
    """A note without the pieces: without their lines where they fill them, else without their
    words.
    """
    # A piece has the text of the index, without secrets; the note has them.
    known = split_lines(safe(clean(text)))
    for first, last, own in reversed(_merged(pieces)):
        lines = "\n".join(known[first - 1 : last])
        piece = own[0]
        if len(own) > 1 or lines.strip() == piece.text.strip():
            if len(own) > 1 and not all(_says(lines, one) for one in own):
                raise _changed(piece.path)
            text = cut(text, first, last)
            continue
        ends = keep_ends(text)
        inside = "".join(ends[first - 1 : last])
        stones = Forgotten(tuple(tombstones(piece.text, piece.path)))
        less, count = stones.without(inside, piece.path)
        expected = stones.without(lines, piece.path)[1]
        if not expected:
            raise _changed(piece.path)
        if count < expected:
            hint = f"name its lines: notewell forget {piece.path}:{first}-{last} --from-files --yes"
            raise StoreError(
                f"a secret is on a part of the lines {first}-{last} of {piece.path}", hint=hint
            )
        text = "".join((*ends[: first - 1], less, *ends[last:]))
    return text


def _has_more(data: bytes, whole: Piece, safe: Callable[[str], str]) -> bool:
    """Whether a note says more than when it was chosen to be deleted: nobody asked to delete
    that.
    """
    try:
        now = units(safe(clean(decode(data))))
    except ValueError:
        return False  # what cannot be read as text was not chosen by its text
    said = {tuple(normal_words(unit)) for _, _, unit in units(whole.text)}
    return any(tuple(normal_words(unit)) not in said for _, _, unit in now)


def _says(lines: str, piece: Piece) -> bool:
    """Whether a piece is on these lines."""
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


def _back_up(folder: Path, name: str, path: str, data: bytes) -> str:
    """Writes a copy that only its owner can read, and returns its path."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / f"{name}-{path.strip('/').replace('/', '__')[-120:]}"
    beside(folder).replace(place, data, mode=0o600)
    return str(place)


def _probes_of(pieces: Sequence[Piece]) -> list[bytes]:
    """The longest line of each piece, to look for in the bytes of the index."""
    lines = [max(split_lines(p.text), key=len, default="").strip() for p in pieces]
    long = sorted({line for line in lines if len(line) >= _LONG_LINE}, key=len, reverse=True)
    return [line.encode("utf-8", "replace") for line in long[:_PROBES]]


def _looked_through(store: Store, probes: Sequence[bytes]) -> tuple[Sequence[str], Sequence[str]]:
    """What was looked through and has nothing of the probes, and where they are or may be."""
    if store.shared is not None:
        lines = [probe.decode() for probe in probes]
        remains = store.shared.remains([line for line in lines if not store.documents.says(line)])
        return remains.checked, remains.left
    found = [f"{name} still has it" for name in _files_with(store, probes)]
    return (["the bytes of the index"] if store.file and probes and not found else []), found


def _files_with(store: Store, probes: Sequence[bytes]) -> list[str]:
    """Files of the index that have the bytes of a probe which no passage of the index has any
    more.
    """
    found: list[str] = []
    if store.file is None:
        return found
    for end in ("", "-wal", "-journal"):
        place = Path(f"{store.file}{end}")
        with (
            contextlib.suppress(OSError, ValueError),  # no such file, or an empty one
            beside(place).file(place) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            if any(
                data.find(probe) >= 0 and not store.documents.says(probe.decode())
                for probe in probes
            ):
                found.append(place.name)
    return found


def _found_again(store: Store, own: Forgotten, pieces: Sequence[Piece]) -> list[str]:
    """Citations of passages that a search for the forgotten words brings and that still hold
    them.
    """
    found: dict[str, None] = {}
    for piece in pieces[:_PROBES]:
        words = query_terms(" ".join(normal_words(piece.text)[:200])).words
        counts = store.keywords.term_counts(words).found_in
        rare = sorted((w for w in words if counts[w]), key=lambda w: counts[w])[:32]
        rows = [s.row for s in store.keywords.lexical(Sought(tuple(rare)), 100, Filters())]
        for chunk in store.documents.chunks(rows).values():
            if own.has(chunk.text, chunk.path):
                found[chunk.citation] = None
    return list(found)


def _old_backups(folder: Path, own: Forgotten, pieces: Sequence[Piece], receipt: str) -> list[str]:
    """Backups of earlier receipts that hold the text: they are the user's to keep or to delete."""
    found = []
    for place in sorted(folder.glob("*")) if folder.is_dir() else []:
        if f"-{receipt}-" in place.name:
            continue
        with contextlib.suppress(OSError, NotewellError):
            text = beside(folder).read(place, most=MOST_KEPT_BYTES).decode("utf-8", "replace")
            if any(own.has(text, p.path) for p in pieces[:_PROBES]):
                found.append(str(place))
    return found
