"""Changes in two steps: a proposal shows the lines that it would write, and applying it writes
exactly those.

A proposal holds the bytes of each file that it was made from. If a file has other bytes when it is
applied, nothing is written: two people and an agent who write at once never lose a line.
"""

from __future__ import annotations

import datetime as dt
import difflib
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from notewell.errors import ChangedError, NotewellError, NotFoundError, UsageError
from notewell.notes.forget import Receipt, cut_out, elsewhere, forget
from notewell.notes.notebook import Notebook
from notewell.notes.remember import NewMemory, concealed, plan, same_unit
from notewell.notes.selection import Piece
from notewell.notes.undo_log import Change, FileChange, UndoLog, hash_of, hunks, taken_back
from notewell.opener import MOST_KEPT_BYTES, beside
from notewell.text.forgotten import units
from notewell.text.markdown import split_lines
from notewell.text.note_edit import keep_ends, with_front
from notewell.text.note_files import decode_exactly, encode_like
from notewell.types import Chunk, Document

EXPIRES_S = 600.0
MOST_PROPOSALS = 100
_INDENT = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class Draft:
    """What becomes of one file; None is a file that does not exist."""

    path: str
    location: str
    before: bytes | None
    after: bytes | None

    @property
    def texts(self) -> tuple[str, str]:
        """Its text before and after."""
        before, after = (
            "" if data is None else decode_exactly(data) for data in (self.before, self.after)
        )
        return before, after

    @property
    def diff(self) -> str:
        """The lines that change, as a unified diff."""
        before, after = map(_lines, self.texts)
        names = (
            "/dev/null" if self.before is None else self.path,
            "/dev/null" if self.after is None else self.path,
        )
        return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that was shown and not made yet; one with `pieces` forgets them."""

    token: str
    action: str
    summary: str
    drafts: tuple[Draft, ...] = ()
    warnings: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    everywhere: bool = False
    made_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done, in a sentence, and the id by which it can be taken back; empty if there is
    nothing to.
    """

    receipt: str
    undo: str
    paths: tuple[str, ...]


class Proposals:
    """The proposals of one workspace: they expire, and the oldest go when there are many."""

    def __init__(self, notebook: Notebook, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._notebook, self._index, self._clock = notebook, notebook.index, clock
        self._known: OrderedDict[str, Proposal] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def _log(self) -> UndoLog:
        return UndoLog(self._index.beside("changes"))

    def changes(self) -> list[Change]:
        """What can be taken back, the newest first."""
        return self._log.all()

    def remember(
        self,
        text: str,
        *,
        file: str = "",
        heading: str = "",
        tags: Sequence[str] = (),
        now: dt.datetime,
    ) -> Proposal:
        """A new memory in today's note, or the named one."""
        return self._new(NewMemory(text, now, file, heading, tags), "remember")

    def correct(self, reference: str, text: str, *, now: dt.datetime) -> Proposal:
        """A new statement that supersedes another one."""
        old = self._passage(reference)
        return self._new(NewMemory(text, now, supersedes=old.id), "correct", old)

    def settle(self, keep: str, drop: str, *, now: dt.datetime) -> Proposal:
        """One of two passages that contradict each other supersedes the other."""
        kept, dropped = self._passage(keep), self._passage(drop)
        if kept.id == dropped.id:
            raise UsageError(
                "a passage cannot supersede itself", hint="name two different passages"
            )
        summary = f"{kept.citation} supersedes {dropped.citation}"
        draft = self._marked(kept, dropped)
        # a conversation, or a note that is not ours to write: the statement gets its own note
        if draft is None:
            return self._new(NewMemory(kept.text, now, supersedes=dropped.id), "settle", dropped)
        return self._keep(Proposal("", "settle", summary, (draft,), tuple(_replacing(dropped))))

    def pin(self, reference: str, *, pinned: bool = True) -> Proposal:
        """A note that stays at the top, or does so no longer: a line of its front matter."""
        path = self._found(reference)
        location, data = self._note(path)
        text = with_front(decode_exactly(data), "pin", "")
        new = with_front(text, "pinned", "true" if pinned else "")
        action = "pin" if pinned else "unpin"
        draft = Draft(path, location, data, encode_like(new, data))
        if draft.after == data:
            return self._keep(
                Proposal("", action, f"{path} is {'already' if pinned else 'not'} pinned")
            )
        summary = f"{path} is pinned" if pinned else f"{path} is no longer pinned"
        return self._keep(Proposal("", action, summary, (draft,)))

    def forget(self, reference: str, *, everywhere: bool = False) -> Proposal:
        """A passage or note that is forgotten for good, in the index and in its file."""
        self._index.ensure_fresh(embed=False)
        pieces = self._notebook.selected(reference, "", "", None)
        warnings = []
        same = elsewhere(self._index.store, pieces)
        if same and everywhere:
            warnings.append(f"the same text is forgotten in {_listed(same)}; those files keep it")
        elif same:
            warnings.append(f"the same text is also in {_listed(same)}, and stays known there")
        drafts = []
        for path in dict.fromkeys(piece.path for piece in pieces):
            own = [piece for piece in pieces if piece.path == path]
            if self._index.files.document(path) is None:
                warnings.append(
                    f"{path} belongs to another program and keeps the text; searches cannot find "
                    "it there"
                )
                continue
            location, data = self._note(path)
            whole = any(piece.whole for piece in own)
            after = None if whole else cut_out(decode_exactly(data), own, self._index.walk.safe)
            drafts.append(
                Draft(path, location, data, None if after is None else encode_like(after, data))
            )
        names = _listed([piece.citation for piece in pieces])
        proposal = Proposal(
            "", "forget", f"{names} is forgotten", tuple(drafts), tuple(warnings), tuple(pieces)
        )
        return self._keep(replace(proposal, everywhere=everywhere))

    def apply(self, token: str, *, now: dt.datetime) -> Applied:
        """Makes a proposed change, exactly as it was shown; ChangedError if a file is not as it
        was.
        """
        with self._lock:
            proposal = self._known.pop(token, None)
        if proposal is None or proposal.made_s < self._clock() - EXPIRES_S:
            raise NotFoundError(
                "there is no such preview any more", hint="preview the change again"
            )
        self._index.require_writable()
        if not proposal.drafts and not proposal.pieces:
            return Applied(f"Nothing was written: {proposal.summary}.", "", ())
        receipt = None
        if proposal.pieces:
            receipt = self._forget(proposal, now)
        else:
            self._write(proposal)
        backups = {file.path: file.backup for file in receipt.files} if receipt else {}
        files = [
            _done(draft, backups.get(draft.path, ""), keep_old=receipt is None)
            for draft in proposal.drafts
        ]
        number = receipt.id if receipt else secrets.token_hex(5)
        change = Change(
            number,
            now.isoformat(timespec="seconds"),
            proposal.action,
            proposal.summary,
            tuple(files),
            receipt.id if receipt else "",
        )
        undo = number if self._log.add(change) else ""
        return Applied(
            _sentence(proposal, receipt), undo, tuple(draft.path for draft in proposal.drafts)
        )

    def undo(self, name: str) -> Applied:
        """Takes a change back, if the lines that it wrote are still as written; else
        ChangedError.
        """
        change = self._log.find(name)
        if change is None:
            raise NotFoundError(
                f"no change is called {name!r}",
                hint="it was taken back already, or is too long ago",
            )
        self._index.require_writable()
        drafts = [self._back(file) for file in change.files]
        self._exchange(drafts)
        if change.receipt:
            self._unforget(change.receipt, drafts)
        self._log.remove(name)
        return Applied(f"Taken back: {change.summary}.", "", tuple(draft.path for draft in drafts))

    def _keep(self, proposal: Proposal) -> Proposal:
        made = replace(proposal, token=secrets.token_urlsafe(16), made_s=self._clock())
        with self._lock:
            self._known[made.token] = made
            while len(self._known) > MOST_PROPOSALS:
                self._known.popitem(last=False)
        return made

    def _found(self, reference: str) -> str:
        self._index.ensure_fresh(embed=False)
        return self._notebook.references.find(reference).path

    def _passage(self, reference: str) -> Chunk:
        """The passage that a reference means; of a note, the only one that it has."""
        self._index.ensure_fresh(embed=False)
        target = self._notebook.references.find(reference)
        chunks = self._index.store.documents.chunks_of(target.path)
        chunk = self._notebook.chunk(target) or (chunks[0] if len(chunks) == 1 else None)
        if chunk is None:
            raise UsageError(
                f"{target.path} has {len(chunks)} passages",
                hint="name one of them by its id or lines",
            )
        return chunk

    def _note(self, path: str) -> tuple[str, bytes]:
        """Where a note is and its bytes; UsageError for a document that is not ours to write."""
        document = self._index.files.document(path)
        if document is None:
            hint = "conversations and the files of agents stay as their programs write them"
            raise UsageError(f"{path} cannot be changed here", hint=hint)
        location = os.path.realpath(document.location)
        data = self._notebook.notes.look(location)
        if data is None:
            raise NotFoundError(
                f"{path} is not there any more", hint="it was moved or deleted a moment ago"
            )
        return location, data

    def _new(self, new: NewMemory, action: str, old: Chunk | None = None) -> Proposal:
        """A text that is written into a note, which may be new."""
        self._index.ensure_fresh(embed=False)
        planned = plan(self._notebook.remembering, new)
        said = [*(_replacing(old) if old else ()), *(notice.message for notice in planned.notices)]
        if planned.there and old is None:
            return self._keep(
                Proposal("", action, f"this is already remembered at {planned.there.citation}")
            )
        if planned.there and planned.there.id != (old.id if old else ""):
            said.append(f"this is also said at {planned.there.citation}")
        data = self._notebook.notes.look(planned.location)
        text = planned.start if data is None else decode_exactly(data)
        if old is None and same_unit(text, planned.bare):
            return self._keep(Proposal("", action, f"this is already in {planned.path}"))
        added = planned.compose(text)
        made = text[: added.offset] + added.text + text[added.offset :]
        after = encode_like(made, data or b"")
        if self._index.redactor:
            said += [notice.message for notice in concealed(planned.path, made, added.start_line)]
        if planned.path.startswith("memory/") and self._makes_folder():
            said.append(
                "memory/ is new here: folder = always is set too, so that the other notes stay "
                "searched"
            )
        what = (
            f"{planned.path} gets a new entry"
            if data is not None
            else f"{planned.path} is a new note"
        )
        summary = f"{what} that supersedes {old.citation}" if old else what
        return self._keep(
            Proposal(
                "",
                action,
                summary,
                (Draft(planned.path, planned.location, data, after),),
                tuple(said),
            )
        )

    def _makes_folder(self) -> bool:
        """Whether a first `memory/` would be made in a folder of notes."""
        files = self._index.files
        return (
            not os.path.isdir(os.path.join(self._index.root, "memory"))
            and files.mode != "never"
            and files.any()
        )

    def _marked(self, kept: Chunk, dropped: Chunk) -> Draft | None:
        """The note of a passage with a comment line that says what it supersedes; None if it cannot
        have one.
        """
        if self._index.files.document(kept.path) is None:
            return None
        location, data = self._note(kept.path)
        lines = keep_ends(decode_exactly(data))
        if kept.end_line > len(lines):
            return None
        last = lines[kept.end_line - 1]
        bare = last.rstrip("\r\n")
        end = last[len(bare) :] or "\n"
        indent = _INDENT.match(bare)
        mark = f"{indent[0] if indent else ''}<!-- supersedes: {dropped.id} -->"
        lines[kept.end_line - 1] = f"{bare}{end}{mark}{last[len(bare) :]}"
        text = "".join(lines)
        # In a fence or a table the line would be something else, and after a long passage it could
        # be another one's.
        cut = self._index.walk.cut(Document(kept.path, kept.source, 0, 0, location), text)
        first = next((line for line in kept.text.splitlines() if line.strip()), "")
        if not any(
            mark.strip() in c.text and first in c.text and not _fenced(c.text, mark) for c in cut
        ):
            return None
        return Draft(kept.path, location, data, encode_like(text, data))

    def _write(self, proposal: Proposal) -> None:
        """Writes the drafts, and sees to it that a first `memory/` does not hide the other
        notes.
        """
        whole = proposal.action in ("remember", "correct", "settle") and self._makes_folder()
        self._exchange(proposal.drafts)
        if whole:
            self._notebook.keep_folder()

    def _exchange(self, drafts: Sequence[Draft]) -> None:
        notes = self._notebook.notes
        for draft in drafts:
            if not notes.exchange(draft.location, draft.before, draft.after):
                raise ChangedError(
                    f"{draft.path} changed after this was shown", hint="look at it again"
                )

    def _forget(self, proposal: Proposal, now: dt.datetime) -> Receipt:
        expected = {draft.path: hash_of(draft.before) for draft in proposal.drafts}
        with self._index.exclusively():
            for draft in proposal.drafts:
                if hash_of(self._notebook.notes.look(draft.location)) != expected[draft.path]:
                    raise ChangedError(
                        f"{draft.path} changed after this was shown", hint="look at it again"
                    )
            context = replace(self._notebook.forgetting(now), expected=expected)
            return forget(
                context,
                proposal.pieces,
                everywhere=proposal.everywhere,
                from_files=True,
                backup=True,
            )

    def _unforget(self, receipt: str, drafts: Sequence[Draft]) -> None:
        """Makes text known again whose lines are back; where that fails, they go again, so that it
        can be repeated.
        """
        try:
            self._notebook.unforget(receipt)
        except NotFoundError:
            return  # somebody lifted it already
        except NotewellError:
            self._exchange(
                [replace(draft, before=draft.after, after=draft.before) for draft in drafts]
            )
            raise

    def _back(self, file: FileChange) -> Draft:
        """What a file becomes when a change of it is taken back."""
        path, location = self._notebook.notes.locate(file.path)
        data = self._notebook.notes.look(location)
        # A clone may bring a log: whatever that names, only our backups are opened.
        folder = self._index.beside("backup")
        backup = folder / os.path.basename(file.backup) if folder and file.backup else None
        try:
            saved = beside(backup).read(backup, most=MOST_KEPT_BYTES) if backup else b""
        except OSError as error:
            message = f"the backup of {file.path} cannot be read: {error.strerror}"
            raise ChangedError(message, hint="write the text again if you have it") from error
        exact = hash_of(data) == file.after
        if exact and file.created:
            return Draft(path, location, data, None)
        if exact and backup:
            return Draft(path, location, data, saved)
        back = None
        if data is not None and file.after:
            back = taken_back(decode_exactly(data), file, exact=exact, backup=decode_exactly(saved))
        if data is None or back is None:
            message = f"what was written into {file.path} has changed since, so it stays as it is"
            raise ChangedError(message, hint="open the note and change it there")
        return Draft(
            path,
            location,
            data,
            None if file.created and not back.strip() else encode_like(back, data),
        )


def _replacing(old: Chunk) -> Iterator[str]:
    """What to tell somebody who replaces a passage: all of it goes, unless it is pinned."""
    if len(list(units(old.text))) > 1:
        where = f"lines {old.start_line} to {old.end_line} of {old.path}"
        yield (
            f"all of the older passage counts as replaced ({where}): say again what of it is "
            "still true"
        )
    if old.facts.pinned:
        yield f"{old.path} is pinned, so the older passage stays in answers until it is unpinned"


def _lines(text: str) -> list[str]:
    lines = split_lines(text)
    return lines[:-1] if lines and not lines[-1] else lines


def _fenced(text: str, mark: str) -> bool:
    """Whether a line is inside a block of code, where it is not a comment."""
    above = text.partition(mark)[0].splitlines()
    return sum(line.lstrip().startswith(("```", "~~~")) for line in above) % 2 == 1


def _listed(names: Sequence[str]) -> str:
    few = ", ".join(names[:3])
    return few if len(names) <= 3 else f"{few} and {len(names) - 3} more"


def _done(draft: Draft, backup: str, *, keep_old: bool) -> FileChange:
    made = hunks(*draft.texts, keep_old=keep_old) if draft.after is not None else ()
    return FileChange(
        draft.path, draft.before is None, hash_of(draft.after), made, os.path.basename(backup)
    )


def _sentence(proposal: Proposal, receipt: Receipt | None) -> str:
    if receipt is None:
        return f"Written: {proposal.summary}."
    proof = (
        "no search and no byte of the index has it"
        if receipt.proved
        else "; ".join((*receipt.still_found, *receipt.lingering))
    )
    return f"Forgotten (receipt {receipt.id}): {proof}."
