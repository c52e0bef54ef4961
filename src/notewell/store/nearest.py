"""Which workspace a folder belongs to, and whose it is; it loads next to nothing, for commands that
another answers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = ".notewell"
MARKERS = (FOLDER, "memory")
EVERYBODY = "*"


def find_workspace(start: Path | None, env: Mapping[str, str]) -> Path:
    """`NOTEWELL_WORKSPACE`, else the nearest folder upwards that looks like a workspace of this
    user, else `start`.

    Without `start` it begins in the current folder; WorkspaceError if that was deleted.
    """
    if named := env.get("NOTEWELL_WORKSPACE"):
        return Path(named)
    try:
        start = start or Path.cwd()
    except FileNotFoundError:
        from notewell.errors import WorkspaceError  # noqa: PLC0415 - hardly ever

        hint = "change into another one, or name the folder of your notes with -w"
        raise WorkspaceError("the current folder does not exist any more", hint=hint) from None
    return start if is_marked(start) else _above(start, env) or start


def _above(start: Path, env: Mapping[str, str]) -> Path | None:
    """The nearest workspace of this user above a folder: not above the home, nor on another file
    system.
    """
    home = _state(os.path.expanduser("~"))
    here = _state(start)
    for folder in start.parents:
        if here is None or (home is not None and os.path.samestat(here, home)):
            return None
        above = _state(folder)
        if above is None or above.st_dev != here.st_dev:
            return None
        here = above
        if is_marked(folder) and _counts(folder, above, env):
            return folder
    return None


def _counts(folder: Path, state: os.stat_result, env: Mapping[str, str]) -> bool:
    """Whether a marked folder above is this user's, with one of its marks, or one that they
    trust.
    """
    own = own_users()
    if own is None or (
        state.st_uid in own and any(is_own(folder / name, own) for name in _marks(folder))
    ):
        return True
    return is_named(folder, _named(env))


def _named(env: Mapping[str, str]) -> Sequence[str]:
    """The folders that the user trusts; none where the settings cannot be read, which every command
    reports.
    """
    from notewell.errors import SettingsError  # noqa: PLC0415 - few folders are below somebody else's notes
    from notewell.settings import load  # noqa: PLC0415

    try:
        return load(Path(os.devnull), env=env).trusted_folders
    except SettingsError:
        return ()


def _state(folder: str | Path) -> os.stat_result | None:
    try:
        return os.stat(folder)
    except OSError:
        return None


def is_marked(folder: Path) -> bool:
    """Whether a folder is a workspace for itself and all below it."""
    return bool(_marks(folder))


def _marks(folder: Path) -> list[str]:
    """The names in a folder that make it a workspace."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [
        n for n in names if (n in MARKERS and (folder / n).is_dir()) or n.casefold() == "memory.md"
    ]


def noted_workspace(named: str, folder: str, env: Mapping[str, str]) -> Path | None:
    """The workspace that is named or that a folder is in; None where nobody has notes or an index
    yet.
    """
    if named:
        return Path(named)
    found = find_workspace(Path(folder or os.getcwd()), env)
    if env.get("NOTEWELL_WORKSPACE"):
        return found
    try:
        names = {name.casefold() for name in os.listdir(found)}
    except OSError:
        return None
    return found if names & {*MARKERS, "memory.md", "notewell.toml"} else None


def own_users() -> frozenset[int] | None:
    """The ids of this user and of root; of root, who comes by sudo, also of who called it. None: no
    file has an owner.

    Root itself believes nobody else, as it would write with all rights where that user can put a
    link.
    """
    if not hasattr(os, "geteuid"):
        return None
    here = os.geteuid()
    caller = os.environ.get("SUDO_UID", "") if here == 0 else ""
    return frozenset((0, here, int(caller))) if caller.isdecimal() else frozenset((0, here))


def is_own(place: str | Path, own: frozenset[int] | None) -> bool:
    """Whether a file or folder belongs to one of these users, and if it is a link, the link too."""
    if own is None:
        return True
    try:
        return os.lstat(place).st_uid in own and os.stat(place).st_uid in own
    except OSError:
        return False


def is_named(folder: str | Path, named: Sequence[str]) -> bool:
    """Whether a list names a folder: itself, one above it with `/*`, or all with `*`."""
    if not named:
        return False
    real = os.path.realpath(folder)
    for one in named:
        place = os.path.realpath(os.path.expanduser(one.removesuffix(EVERYBODY)))
        below = one.endswith("/" + EVERYBODY) and real.startswith(place.rstrip(os.sep) + os.sep)
        if one == EVERYBODY or below or (not one.endswith(EVERYBODY) and real == place):
            return True
    return False


def is_foreign(root: str | Path, named: Sequence[str]) -> bool:
    """Whether a workspace belongs to somebody else whom the user does not trust by name."""
    return os.path.lexists(root) and not is_own(root, own_users()) and not is_named(root, named)


def keeps_here(root: str | Path, named: Sequence[str]) -> bool:
    """Whether the folder `.notewell` of a workspace may be used: it and the workspace are not
    somebody else's.
    """
    own, folder = own_users(), os.path.join(root, FOLDER)
    mine = is_own(root, own) and (not os.path.lexists(folder) or is_own(folder, own))
    return mine or is_named(root, named)


def made_mine(*places: str | Path) -> str:
    """What makes the first of some places, which is another user's, this user's; empty if all are
    theirs.

    One `sudo notewell` leaves files of root's.
    """
    mine = frozenset((os.geteuid(),)) if hasattr(os, "geteuid") else None
    strange = next((one for one in places if os.path.lexists(one) and not is_own(one, mine)), None)
    if strange is None:
        return ""
    from shlex import quote  # noqa: PLC0415 - only where something is wrong

    whole = " -R" if os.path.isdir(strange) else ""
    owner = name_of_owner(strange)
    return (
        f'{strange} belongs to {owner}; to make it yours: sudo chown{whole} "$(id -u)" '
        f"{quote(str(strange))}"
    )


def name_of_owner(place: str | Path) -> str:
    """Who a file or folder belongs to, as people call them."""
    try:
        number = os.lstat(place).st_uid
    except OSError:
        return "another user"
    try:
        import pwd  # noqa: PLC0415 - not everywhere, and only for messages

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return f"the user {number}"
