"""Looks at the files of a workspace: at all of them, or at those alone that are known to have
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from notewell.index.filling import SyncOptions
from notewell.index.probe import ChangeProbe
from notewell.index.walk import Walk
from notewell.index.watch import Places
from notewell.sources.tree_walk import path_of
from notewell.types import Skipped, SyncReport


class Looks:
    """The looks of one process; whoever looks holds the lock of the index."""

    def __init__(self, root: Path, walk: Callable[[], Walk]) -> None:
        self._root, self._walk = root, walk
        # what could not be read, or only partly, when it was last looked at
        self.unread: tuple[Skipped, ...] = ()
        self.probe: ChangeProbe | None = None
        self._signature = ""  # what everything was indexed with at the last look at all files

    def listen(self, places: Places, index: Path | None) -> None:
        """For a process that stays: knows from now on which files have changed, where the system
        tells.
        """
        ours = places.of_index(index)
        self.probe = ChangeProbe(places.root, ignored=ours, whole=places.whole, trees=places.trees)

    def close(self) -> None:
        """Forgets what it knows: the next look is at all files."""
        if self.probe is not None:
            self.probe.close()

    def is_idle(self, sure_s: float) -> bool:
        """Whether a look within `sure_s` proves that no file has changed, nor what is forgotten or
        trusted.
        """
        walk = self._walk()
        same = walk.tombstones.load().signature == (walk.store.get_meta("forgotten") or "")
        same = same and walk.signature == self._signature
        return same and self.probe is not None and self.probe.unchanged(within_s=sure_s)

    def look(self, sure_s: float, options: SyncOptions) -> SyncReport:
        """Keywords for what changed; a look at all files within `sure_s` leaves only what has
        changed since.
        """
        probe, report = self.probe, None
        if probe is None:
            return self._all(options)
        if self.is_idle(sure_s):
            return SyncReport()
        try:
            changed = probe.take(within_s=sure_s)
            report = None if changed is None else self._some(changed, options)
            if report is None:
                probe.arm()
                report = self._all(options)
        finally:
            if report is None or not report.complete:
                probe.close()  # the next look is for what this one did not get to
        return report

    def _all(self, options: SyncOptions) -> SyncReport:
        walk = self._walk()
        self._signature = walk.signature  # of before, so that no change in between is missed
        report = walk.sync(
            force=options.force, deadline=options.deadline, progress=options.progress
        )
        self.unread = report.skipped
        return report

    def _some(self, changed: Collection[str], options: SyncOptions) -> SyncReport | None:
        report = self._walk().sync_some(
            changed, deadline=options.deadline, progress=options.progress
        )
        if report is not None:
            paths = {path_of(location, self._root) for location in changed}
            self.unread = (*(one for one in self.unread if one.path not in paths), *report.skipped)
        return report
