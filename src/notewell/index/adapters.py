"""What an index is given by `memory.py`, and what it says of itself to a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from notewell.embed.chain import Resolved
from notewell.index.embedding import LoadModel
from notewell.sources.inventory import SourceState
from notewell.sources.source import NoteFiles, Source
from notewell.sources.tree_walk import UNREAD_FOLDER
from notewell.sources.trust import Trust
from notewell.store.ports import FileBacked, Store
from notewell.text.fence import shown
from notewell.text.words import counted
from notewell.types import Notice, SyncReport

_LAG_S = 1.0
_NAMED, _LONGEST_NAME, _LONGEST_REASON = 3, 80, 60


@dataclass(frozen=True, slots=True)
class Adapters:
    """The concrete parts that `memory.py` chooses: sources of documents, loaders of models, and
    what opens stores.

    `open_store` is there where the store in use is only for now, because there was nothing to put
    in one.
    """

    files: NoteFiles
    trust: Trust
    sources: Sequence[Source]
    load_model: LoadModel
    replace_store: Callable[[FileBacked], tuple[Store, Sequence[Notice]]]
    inventory: Callable[[float], Iterable[SourceState]] = lambda _within_s: ()
    open_store: Callable[[], tuple[Store, Path | None, Sequence[Notice]]] | None = None

    def any_document(self) -> bool:
        """Whether any source has something to index; of notes, the first that is found tells."""
        own = any(source is self.files for source in self.sources) and self.files.any()
        return own or any(
            source.scan().documents for source in self.sources if source is not self.files
        )


@dataclass(frozen=True, slots=True)
class Freshness:
    """How far the index is up to the files after a quick sync, which models there are, and the time
    vectors took.
    """

    stale: bool = False
    notices: tuple[Notice, ...] = ()
    resolved: Resolved | None = None
    embed_s: float = 0.0


def replica_freshness(store: Store) -> Freshness:
    """A replica takes no writes: it answers from what it has, and reports when that is old."""
    lag_s = store.lag_s()
    if lag_s is None:
        return Freshness(stale=True)  # a file that cannot be written; every answer reports it
    if lag_s < _LAG_S:
        return Freshness()
    message = f"the index is a replica, {lag_s:.0f} s behind: this answer may miss the latest notes"
    return Freshness(
        stale=True, notices=(Notice("replica_behind", message, "ask the primary, or wait"),)
    )


def indexing(who: str) -> Freshness:
    """What a search has to report while somebody else is indexing."""
    message = f"{who} is indexing; this answer may miss its latest notes"
    return Freshness(stale=True, notices=(Notice("indexing", message),))


def cut_notices(report: SyncReport) -> list[Notice]:
    """What a search has to report of a sync that did not get to the end."""
    if report.left:
        waiting = (
            "1 new or changed note is"
            if report.left == 1
            else f"{report.left:,} new or changed notes are"
        )
        message = f"{waiting} not indexed yet, so this answer may miss something"
        return [
            Notice("sync_cut", message, "each search goes on; for all at once, run: notewell index")
        ]
    if closed := [one for one in report.skipped if one.reason.startswith(UNREAD_FOLDER)]:
        reasons = [
            one.reason.removeprefix(f"{UNREAD_FOLDER}: ")[:_LONGEST_REASON]
            for one in closed[:_NAMED]
        ]
        names = [
            f"{shown(one.path)[:_LONGEST_NAME]} ({why})"
            for one, why in zip(closed, reasons, strict=False)
        ]
        more = ", …" if len(closed) > _NAMED else ""
        message = (
            f"{counted(len(closed), 'folder')} cannot be read, so this answer may miss what "
            "is new in there"
        )
        hint = "let yourself read it (such as chmod u+rx), or list it in .notewellignore"
        return [Notice("scan_cut", f"{message}: {', '.join(names)}{more}", hint)]
    if not report.complete:
        message = "there was not the time to look into every folder, so newer notes may be missing"
        return [Notice("scan_cut", message, "run: notewell index")]
    return []


def read_again(broken: Store) -> Notice:
    """A database is not ours to replace: the next sync rebuilds every note in it, one after the
    other.
    """
    if broken.vectors.audit():
        broken.vectors.prune(())
        message = f"the vectors in the index {broken.name} were damaged; all of them are made again"
    else:
        with broken.writing():
            for key in ("analysis", "analysis_since"):
                broken.set_meta(key, "")
        message = f"the index {broken.name} was damaged; every note is read into it again"
    return Notice("index_rebuilt", message, "nothing is lost")
