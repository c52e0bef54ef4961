"""Where a workspace and its index are, and how an index is opened or set aside."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from notewell.errors import StoreDamagedError, StoreError, UsageError
from notewell.opener import is_in
from notewell.settings import Settings, data_folder, in_home, index_flags
from notewell.settings_checks import is_database, without_password
from notewell.store.lock import locked
from notewell.store.nearest import (
    FOLDER,
    is_foreign,
    is_marked,
    keeps_here,
    made_mine,
    name_of_owner,
)
from notewell.store.own_folder import make_own_folder, own_folder
from notewell.store.ports import FileBacked, Store
from notewell.store.sqlite.connection import inode_of
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Finding
from notewell.types import Notice

NAME = "index.sqlite"
REOPENED = Notice(
    "index_reopened",
    "another program replaced the index while it was open, so it was opened again",
    "",
)
_ASIDE_S = 10.0


def _is_wide(root: Path) -> bool:
    """Whether a folder is the user's home or above it; an index there would claim every folder
    below for itself.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    return os.path.isabs(home) and is_in(home, str(root)) and not is_marked(root)


def starts_empty(root: Path, settings: Settings) -> bool:
    """Whether a workspace has no folder for an index yet, and nobody named another place for
    one.
    """
    own = settings.index
    there = os.path.lexists(root / FOLDER) and keeps_here(root, settings.trusted_folders)
    return not own.path and not own.url and not there


def index_path(
    root: Path, settings: Settings, env: Mapping[str, str], *, make: bool = True
) -> tuple[Path, tuple[Notice, ...]]:
    """Where the index of a workspace is: as set, inside it, or in the user's data folder where it
    cannot be written.

    Its folder is made, unless `make` is off.
    """
    if settings.index.path:
        where = root / in_home(settings.index.path)
        if settings.origins.get("index.path") == "flag":
            _refuse_missing(where.parent)
        if make:
            _make_folder(where.parent, hint="set index.path to a folder that can be written")
        return where, ()
    own, reason = own_folder(root), _why_not_here(root, settings)
    if (
        reason is None
        and not make
        and own is not None
        and not own.exists()
        and os.access(root, os.W_OK)
    ):
        return own / NAME, ()
    if reason is None:
        with contextlib.suppress(OSError):
            folder = make_own_folder(root)
            if os.access(folder, os.W_OK):
                return folder / NAME, ()
    folder = folder_away(root, env)
    try:
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"neither {root} nor {folder} can be written: {error.strerror}"
        raise StoreError(
            message, hint="set HOME, or set index.path to a folder that can"
        ) from error
    place = root if own is None or not own.exists() else own
    usual = made_mine(place) or "set index.path to choose another folder"
    why, hint = reason or (f"{place} cannot be written", usual)
    return folder / NAME, (Notice("index_elsewhere", f"{why}, so the index is in {folder}", hint),)


def _why_not_here(root: Path, settings: Settings) -> tuple[str, str] | None:
    """Why the index of a workspace must not be in it, and what helps; None if it may be."""
    if not keeps_here(root, settings.trusted_folders):
        from shlex import quote  # noqa: PLC0415 - only where something is wrong

        place = root if is_foreign(root, ()) else root / FOLDER
        hint = (
            f"if you trust its owner, type in a terminal: notewell sources trust {quote(str(root))}"
        )
        return f"{place} belongs to {name_of_owner(place)}", hint
    if _is_wide(root):
        return (
            f"{root} holds all your folders",
            "run it in the folder of your notes, or name that with -w",
        )
    return None


def folder_away(root: Path, env: Mapping[str, str]) -> Path:
    """The folder of the user for what belongs to a workspace that cannot be written."""
    return (
        data_folder(env)
        / hashlib.blake2b(str(root).encode("utf-8", "replace"), digest_size=8).hexdigest()
    )


def _refuse_missing(folder: Path) -> None:
    """A folder that is named for this one time is more likely misspelt than new."""
    if not folder.exists():
        raise UsageError(
            f"there is no folder {folder} for the index",
            hint="check its name, or make the folder first",
        )


def _make_folder(folder: Path, *, hint: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be created: {error.strerror}", hint=hint) from error


def open_index(
    root: Path, settings: Settings, env: Mapping[str, str]
) -> tuple[Store, Path | None, tuple[Notice, ...]]:
    """Opens the store; also returns the path for locks and backups (None: the index file) and any
    notices.
    """
    if not settings.index.url:
        path, notices = index_path(root, settings, env)
        store, more = open_store(path)
        return store, None, (*notices, *more)
    path, notices = index_path(root, replace(settings, index=replace(settings.index, path="")), env)
    return _open_database(settings.index.url, root=root, settings=settings), path, notices


def _open_database(url: str, *, root: Path, settings: Settings) -> Store:
    index = settings.index
    name = index.workspace or str(root)
    return open_database(
        url, workspace=name, owner=index.owner, agent=index.agent, timeout_s=index.timeout_s
    )


def open_database(
    url: str, *, workspace: str, owner: str = "", agent: str = "", timeout_s: float = 10.0
) -> Store:
    """A workspace of a PostgreSQL database."""
    _refuse_unknown(url)
    from notewell.store.postgres.store import PostgresStore  # noqa: PLC0415 - an extra, and slow to load

    return PostgresStore(url, workspace=workspace, owner=owner, agent=agent, timeout_s=timeout_s)


def admit(url: str, roles: Sequence[str], *, timeout_s: float) -> list[Finding]:
    """Makes the tables of a database or gives them to a role without login, and lets roles use
    them.
    """
    _refuse_unknown(url)
    from notewell.store.postgres.roles import set_up  # noqa: PLC0415 - an extra, and slow to load

    return set_up(url, roles, timeout_s=timeout_s)


def _refuse_unknown(url: str) -> None:
    if not is_database(url):
        message = f"{without_password(url)!r} is not the address of a known kind of database"
        raise UsageError(message, hint="postgresql://…")
    try:
        import notewell.store.postgres.store  # noqa: F401, PLC0415
    except ImportError as error:
        message = f"an index in PostgreSQL needs a package that is not installed: {error.name}"
        raise StoreError(message, hint="pip install 'notewell[postgres]'") from error


def open_named(name: str, *, root: Path, settings: Settings, new: bool) -> Store:
    """A store by its file or address; without `new` a file must exist."""
    if index_flags(name)["index.url"]:
        return _open_database(name, root=root, settings=settings)
    file = in_home(name).absolute()
    if not new and not file.is_file():
        raise UsageError(
            f"there is no index {file}", hint="name the file, such as .notewell/index.sqlite"
        )
    _refuse_missing(file.parent)
    return SqliteStore(file)


def open_store(path: Path) -> tuple[SqliteStore, tuple[Notice, ...]]:
    """Opens an index, with a notice where it is damaged (set aside and rebuilt) or cannot be
    written (only read).
    """
    # Only where the user set such a path: the index of a workspace that cannot be written is
    # elsewhere, see above.
    if path.is_file() and not os.access(path.parent, os.W_OK):
        message = f"{path} cannot be written, so answers may be out of date"
        hint = "set index.path to a folder that can be written"
        return SqliteStore(path, read_only=True), (Notice("index_read_only", message, hint),)
    seen = inode_of(path)
    if not (path.name == NAME and path.is_dir()):  # a folder of any other name belongs to the user
        with contextlib.suppress(StoreDamagedError):
            return SqliteStore(path), ()
    notice = set_aside(path, seen or inode_of(path))
    return SqliteStore(path), (notice,)


def open_as_is(path: Path) -> Store:
    """The index at a path without repairs: read-only where its folder is, in memory where there is
    none.
    """
    there = path.exists()
    return SqliteStore(
        path if there else None, read_only=there and not os.access(path.parent, os.W_OK)
    )


def temporary_store() -> Store:
    """An empty index in memory."""
    return SqliteStore(None)


def set_aside(path: Path, seen: tuple[int, int] | None) -> Notice:
    """Renames a damaged index with its WAL, so that nothing is lost and a new one can be made."""
    # Of several processes that saw the damage, in the file with the inode `seen`, only the first
    # renames it.
    with locked(path.with_name(f"{path.name}.aside-lock"), wait_s=_ASIDE_S):
        if inode_of(path) != seen:
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
                raise StoreError(
                    message, hint="check the disk, or delete the file: it comes back by itself"
                ) from error
    message = f"the index was damaged; it was set aside as {aside.name} and is being rebuilt"
    return Notice("index_rebuilt", message, "nothing you wrote is lost")


def replace_store(broken: FileBacked) -> tuple[Store, tuple[Notice, ...]]:
    """Opens a new store in place of a damaged or replaced file, and says what happened to the old
    one.
    """
    path = broken.file
    if path is None:
        raise StoreError("an index in memory cannot be opened again", hint="open the memory again")
    try:
        swapped = broken.swapped()
    except StoreDamagedError:
        swapped = False
    # another process has replaced it already: its file is sound, and not ours to set aside
    if swapped:
        broken.abandon()
        notice = REOPENED
    else:
        broken.close()
        notice = set_aside(path, broken.inode)
    store, more = open_store(path)
    return store, (notice, *more)
