"""Where a workspace and its index are, and how an index is opened or set aside."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recollect.errors import StoreDamagedError, StoreError, UsageError
from recollect.ports import Store
from recollect.settings import Settings, data_folder, index_flags, is_database, without_password
from recollect.store.lock import locked
from recollect.store.sqlite import SqliteStore
from recollect.types import Notice

MARKERS = (".recollect", "memory")
NAME = "index.sqlite"
REOPENED = Notice("index_reopened", "another program replaced the index while it was open, so it was opened again", "")
_ASIDE_S = 10.0


def find_workspace(start: Path, env: Mapping[str, str]) -> Path:
    """`RECOLLECT_WORKSPACE`, else the nearest folder upwards that looks like a workspace, else `start`."""
    if named := env.get("RECOLLECT_WORKSPACE"):
        return Path(named)
    for folder in (start, *start.parents):
        with contextlib.suppress(OSError):
            names = os.listdir(folder)
            if any(n in MARKERS and (folder / n).is_dir() for n in names) or any(
                n.casefold() == "memory.md" for n in names
            ):
                return folder
    return start


def index_path(root: Path, settings: Settings, env: Mapping[str, str]) -> tuple[Path, tuple[Notice, ...]]:
    """Where the index of a workspace is: as set, inside it, or in the user's data folder when it cannot be written."""
    if settings.index.path:
        where = Path(settings.index.path).expanduser()
        where = where if where.is_absolute() else root / where
        try:
            where.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{where.parent} cannot be made: {error.strerror}", hint="set index.path to a place that can be written"
            ) from error
        return where, ()
    folder = root / ".recollect"
    _refuse_links(folder)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        if os.access(folder, os.W_OK):
            return folder / NAME, ()
    except OSError:
        pass
    key = hashlib.blake2b(str(root).encode("utf-8", "replace"), digest_size=8).hexdigest()
    folder = data_folder(env) / key
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"neither {root} nor {folder} can be written: {error.strerror}", hint="set index.path to a place that can"
        ) from error
    return folder / NAME, (
        Notice(
            "index_elsewhere",
            f"{root} cannot be written, so the index is in {folder}",
            "set index.path to choose the place",
        ),
    )


def _refuse_links(folder: Path) -> None:
    """A cloned repository can hold links: what we write beside the index must not land in somebody's own files."""
    found = [folder] if folder.is_symlink() else []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found += [folder / entry.name for entry in entries if entry.is_symlink()]
    if found:
        raise StoreError(
            f"{found[0]} is a link, and what is written there could land anywhere",
            hint="delete it, or say where the index is with index.path in your own settings",
        )


def open_index(root: Path, settings: Settings, env: Mapping[str, str]) -> tuple[Store, Path | None, tuple[Notice, ...]]:
    """The store of a workspace, the place of what stands beside it where that is not its file, and what to tell."""
    own = settings.index
    if not own.url:
        where, notices = index_path(root, settings, env)
        store, more = open_store(where)
        return store, None, (*notices, *more)
    place, notices = index_path(root, replace(settings, index=replace(own, path="")), env)
    name = own.workspace or str(root)
    return open_database(own.url, workspace=name, agent=own.agent, timeout_s=own.timeout_s), place, notices


def open_database(url: str, *, workspace: str, agent: str = "", timeout_s: float = 10.0) -> Store:
    """A workspace of a PostgreSQL database."""
    if not is_database(url):
        raise UsageError(f"{without_password(url)!r} is no database of a kind that is known", hint="postgresql://…")
    try:
        from recollect.store.postgres import PostgresStore  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise StoreError(
            f"an index in PostgreSQL needs a package that is not installed: {error.name}",
            hint="pip install 'recollect[postgres]'",
        ) from error
    store = PostgresStore(url, workspace=workspace, agent=agent, timeout_s=timeout_s)
    store.read_only = store.lag_s() is not None
    return store


def open_named(place: str, *, root: Path, settings: Settings, new: bool) -> Store:
    """A store by its file or address; without `new` a file must be there."""
    if index_flags(place)["index.url"]:
        own = settings.index
        return open_database(place, workspace=own.workspace or str(root), agent=own.agent, timeout_s=own.timeout_s)
    file = Path(place).expanduser().absolute()
    if not new and not file.is_file():
        raise UsageError(f"there is no index {file}", hint="name the file, such as .recollect/index.sqlite")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{file.parent} cannot be made: {error.strerror}", hint="name another place") from error
    return SqliteStore(file)


def open_store(path: Path) -> tuple[SqliteStore, tuple[Notice, ...]]:
    """Opens an index; a damaged one is set aside and made anew, one that cannot be written is read: with a notice."""
    # Only where the user named such a place: that of a workspace which cannot be written is elsewhere, see above.
    if path.is_file() and not os.access(path.parent, os.W_OK):
        message = f"{path} cannot be written, so answers are as it was when it was made"
        hint = "set index.path to a place that can be written"
        return SqliteStore(path, read_only=True), (Notice("index_read_only", message, hint),)
    seen = inode(path)
    if path.name == NAME and path.is_dir():  # a folder of any other name is somebody's own
        notice = set_aside(path, seen)
        return SqliteStore(path), (notice,)
    try:
        return SqliteStore(path), ()
    except StoreDamagedError:
        notice = set_aside(path, seen or inode(path))
        return SqliteStore(path), (notice,)


def inode(path: Path) -> tuple[int, int] | None:
    """Which file has this name now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def set_aside(path: Path, seen: tuple[int, int] | None) -> Notice:
    """Renames a damaged index with its WAL, so that nothing is lost and a new one can be made.

    Of several processes that have `seen` the damage one does it; for the others the new file has another inode.
    """
    with locked(path.with_name(f"{path.name}.aside-lock"), wait_s=_ASIDE_S):
        if inode(path) != seen:
            return REOPENED
        number = 1
        while (aside := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
            number += 1
        for end in ("-wal", "-shm", ""):  # the file last: a new one must not meet the old WAL
            try:
                os.replace(f"{path}{end}", f"{aside}{end}")
            except FileNotFoundError:
                continue
            except OSError as error:
                message = f"the index {path} is damaged and cannot be set aside: {error.strerror}"
                raise StoreError(message, hint="check the disk, or delete the file: it comes back by itself") from error
    return Notice(
        "index_rebuilt",
        f"the index was damaged; it was set aside as {aside.name} and is made anew",
        "nothing you wrote is lost",
    )
