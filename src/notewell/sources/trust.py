"""Whether the notes of a workspace are the user's own: not another user's, and not those of a clone
without their hand.

Who has written is told by what cannot come with a clone: the list of what HEAD was (the reflog)
with the identity of the user's own git settings, and our own list of the folders that the user has
written to. `git` is never run: the settings of a repository can make it run anything.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from notewell.errors import NoteError, SettingsError
from notewell.opener import ANYWHERE, MOST_SETTINGS_BYTES, Opener, beside, inside, is_in
from notewell.settings import Settings, load, state_folder, user_file
from notewell.store.nearest import (
    EVERYBODY,
    is_foreign,
    is_named,
    is_own,
    keeps_here,
    name_of_owner,
    own_users,
)
from notewell.types import Notice

FOREIGN, CLONE = "foreign_folder", "clone_not_trusted"  # kinds of doubt
TRUSTING = "notewell sources trust"  # what a person types, and no model is told
VERSIONED = (
    ".git",
    ".hg",
    ".jj",
    ".svn",
    ".sl",
    ".bzr",
    "_darcs",
    ".pijul",
    ".fslckout",
    "CVS/Root",
)
_LATEST_BYTES = 500_000  # of a reflog: thousands of entries
_FIRST_BYTES = 4096
_MOST_FILES = 40  # that git settings include
# Compiled when they are first used: few workspaces are clones.
_SECTION = r'\[\s*([\w.-]+)\s*(?:"[^"]*"\s*)?\]'
_MADE = (
    rb"(?:commit|cherry-pick|revert|am)\b|merge .*: Merge made by\b"
    rb"|rebase (?:-\w+ )?\((?:pick|reword|edit|squash|fixup|continue)\)"
)
_WRITTEN = "written.txt"
_VARIABLES = ("GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME")


class Doubt(NamedTuple):
    """Why the notes of a workspace do not count as the user's own, and the folder to trust if they
    do.
    """

    kind: str
    folder: str
    reason: str

    @property
    def command(self) -> str:
        """What a person types who trusts them."""
        from shlex import quote  # noqa: PLC0415 - few have doubts

        return f"{TRUSTING} {quote(self.folder)}"

    @property
    def notice(self) -> Notice:
        """What a person should know."""
        hint = f"if you trust what is written there, type in a terminal: {self.command}"
        return Notice(self.kind, f"the notes here count as untrusted: {self.reason}", hint)


class Trust:
    """What is known of whose a workspace is; looked up again when what tells it has changed."""

    def __init__(
        self,
        root: Path,
        named: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        *,
        own_file: bool = False,
    ) -> None:
        """With `own_file` the folders that are trusted are in the user's own settings, and may
        change there.
        """
        self.root = os.path.realpath(root)
        self._env = os.environ if env is None else env
        self._file = user_file(self._env) if own_file else None
        self._list = state_folder(self._env) / _WRITTEN
        self._own = own_users()
        self._is_foreign = is_foreign(self.root, ())
        self._top = "" if self._is_foreign else top_of(self.root)
        self._git = git_of(self._top) if self._top else _Git()
        self._named = tuple(named)
        self._is_named = self._has_name()
        self._seen: tuple[object, ...] | None = None
        self._doubt: Doubt | None = None
        self._clones: dict[str, bool] = {}

    @property
    def doubt(self) -> Doubt | None:
        """Why the notes are not the user's own, or None."""
        if (seen := self._marks()) != self._seen:
            if self._seen is not None and self._file is not None:
                with contextlib.suppress(SettingsError):  # every command reports it
                    self._named = load(Path(os.devnull), env=self._env).trusted_folders
            self._is_named, self._seen = self._has_name(), seen
            self._clones.clear()
            sure = self._is_named or not (self._is_foreign or self._top)
            self._doubt = None if sure else self._look()
        return self._doubt

    def _look(self) -> Doubt | None:
        if self._is_foreign:
            return Doubt(FOREIGN, self.root, f"the folder belongs to {name_of_owner(self.root)}")
        if self._has_written():
            return None
        reason = "they came with a clone, in which you have not written or committed anything yet"
        return Doubt(CLONE, self._top, reason)

    def _has_name(self) -> bool:
        return is_named(self.root, self._named) or (
            bool(self._top) and is_named(self._top, self._named)
        )

    @property
    def notices(self) -> tuple[Notice, ...]:
        """That the notes are not the user's own, which a process reports once with a search."""
        return () if (doubt := self.doubt) is None else (doubt.notice,)

    @property
    def keeps_here(self) -> bool:
        """Whether the workspace's own folder for what notewell keeps may be used."""
        return keeps_here(self.root, self._named)

    @property
    def signature(self) -> str:
        """A text that changes when other notes may count as the user's own; each document is then
        read again.
        """
        if self.doubt is not None:  # first, as it reads the list of trusted folders again
            return "untrusted"
        places = (
            os.path.realpath(os.path.expanduser(one.removesuffix("*"))) for one in self._named
        )
        near = [
            one
            for one, place in zip(self._named, places, strict=True)
            if one == EVERYBODY or is_in(place, self.root) or is_in(self.root, place)
        ]
        below = [line for line in _written(self._list) if is_in(line.partition(" ")[2], self.root)]
        known = "\0".join(sorted({*near, *below}))
        return f"whose-2 {zlib.crc32(known.encode('utf-8', 'surrogateescape')):x}"

    def believes(self, owner: int, location: str) -> bool:
        """Whether what a user has written at a location is, as far as owners tell, the user's
        own.
        """
        if self._own is None or owner in self._own:
            return not self._is_of_clone(os.path.dirname(location))
        if self._is_named and is_in(location, self.root):
            return True
        return is_named(os.path.dirname(location), self._named)

    def _is_of_clone(self, folder: str) -> bool:
        """Whether a folder belongs to a clone inside the workspace in which the user has not
        written.
        """
        if folder == self.root or not is_in(folder, self.root):
            return False
        if folder not in self._clones:
            below = Trust(Path(folder), self._named, self._env) if _marks_of(folder) else None
            doubted = below is not None and (below.doubt is not None or below.is_anothers)
            self._clones[folder] = doubted or self._is_of_clone(os.path.dirname(folder))
        return self._clones[folder]

    @property
    def is_anothers(self) -> bool:
        """Whether a folder of another system than git is a clone, though it is in a repository."""
        marks = _marks_of(self.root)
        return (
            bool(marks)
            and ".git" not in marks
            and not self._is_named
            and _line_of(self.root) not in _written(self._list)
            and not _has_hg_alone(self.root)
        )

    def refuse_writing(self, location: str) -> None:
        """Raises NoteError where a file is another user's, or would be made in a folder of
        theirs.
        """
        place = location
        while not os.path.lexists(place):
            place = os.path.dirname(place)
        folder = place if os.path.isdir(place) else os.path.dirname(place)
        if self._is_named or is_named(folder, self._named):
            return
        for one in filter(os.path.lexists, (self.root, folder, place)):
            if not is_own(one, self._own):
                message = f"{one} belongs to {name_of_owner(one)}, so nothing is written there"
                hint = (
                    "write in a folder of yours with -w; if you trust its owner: "
                    f"{self._trusting(folder)}"
                )
                raise NoteError(message, hint=hint)

    def _trusting(self, folder: str) -> str:
        return Doubt("", self.root if self._is_foreign else folder, "").command

    def wrote(self) -> bool:
        """Notes that the user, and not a program, has written here; returns whether that ends a
        doubt.
        """
        doubt = self.doubt
        if doubt is None or doubt.kind != CLONE:
            return False
        _note(self._list, [*_written(self._list), _line_of(self._top)])
        return self.doubt is None

    def forget(self) -> None:
        """Takes back that the user has written here."""
        written = _written(self._list)
        kept = [line for line in written if line != _line_of(self._top)]
        if kept != written:
            _note(self._list, kept)

    def _marks(self) -> tuple[object, ...]:
        """What changes when the answer may."""
        own = (self._list, self._file) if self._file else (self._list,)
        return tuple(_stamp(file) for file in (*self._git.logs, self._git.config, *own))

    def _has_written(self) -> bool:
        if _line_of(self._top) in _written(self._list):
            return True
        if os.path.lexists(os.path.join(self._top, ".git")):
            if any(set(_marks_of(one)) & {".hg", ".svn"} for one in _upwards(self._top)):
                return False  # Mercurial and Subversion may have brought the `.git`
            return self._git.is_home_made() or self._git.has_entry_of(identities(self._env))
        return _has_hg_alone(self._top)


def trust_of(root: Path, settings: Settings, env: Mapping[str, str]) -> Trust:
    """The trust in a workspace with these settings."""
    origin = settings.origins.get("trusted_folders", "")
    return Trust(root, settings.trusted_folders, env, own_file=origin in ("", str(user_file(env))))


def top_of(root: str) -> str:
    """The folder under version control that a workspace is in; empty if there is none.

    What another user put there does not count, nor does the home folder for what is below it.
    """
    # Git tracks no folder called `.git`. The folder of any other system can arrive in a clone, at
    # any depth.
    found = ""
    for here in _upwards(root):
        if ".git" in (marks := _marks_of(here)):
            return here
        found = here if marks else found
    return found


def _upwards(root: str) -> Iterator[str]:
    """A folder and those above it, up to the home folder or the border of a file system."""
    home, here = os.path.realpath(os.path.expanduser("~")), root
    while True:
        yield here
        above = os.path.dirname(here)
        if above in (here, home) or not _same_device(here, above):
            return
        here = above


def _marks_of(folder: str) -> list[str]:
    """The names that put a folder under version control, but not what others put into a folder open
    to them.
    """
    places = ((name, os.path.join(folder, name)) for name in VERSIONED)
    found = [(name, place) for name, place in places if os.path.lexists(place)]
    own = own_users()
    return [name for name, place in found if is_own(place, own) or not _is_open(folder)]


def _is_open(folder: str) -> bool:
    """Whether other users may write in a folder."""
    try:
        return bool(os.stat(folder).st_mode & 0o022)
    except OSError:
        return True


def _same_device(one: str, other: str) -> bool:
    try:
        return os.stat(one).st_dev == os.stat(other).st_dev
    except OSError:
        return False


class _Git(NamedTuple):
    """Where git keeps what happened in a repository; nothing where a `.git` file leads to one that
    is not of it.
    """

    logs: tuple[str, ...] = ()
    config: str = ""

    def is_home_made(self) -> bool:
        """Whether nothing in it came from elsewhere: it was made here, and knows no other
        repository.
        """
        if not self.config or os.path.lexists(
            os.path.join(os.path.dirname(self.config), "FETCH_HEAD")
        ):
            return False
        sections = {section.partition(".")[0] for section, _, _ in _settings_in(_text(self.config))}
        return "remote" not in sections and not any(
            b"\tclone: " in _part(log, first=True) for log in self.logs
        )

    def has_entry_of(self, people: frozenset[bytes]) -> bool:
        """Whether one of these people has made a commit in it."""
        return any(
            _is_by(line, people) for log in self.logs for line in reversed(_part(log).split(b"\n"))
        )


def git_of(top: str) -> _Git:
    """What git keeps for a folder; a `.git` that leads elsewhere must be known there, as an archive
    can bring any.
    """
    mark = os.path.join(top, ".git")
    if not os.path.isfile(mark) or not is_own(mark, own_users()):
        plain = os.path.isdir(mark) and not os.path.islink(mark) and is_own(mark, own_users())
        return (
            _Git((os.path.join(mark, "logs", "HEAD"),), os.path.join(mark, "config"))
            if plain
            else _Git()
        )
    named = first_line(mark).removeprefix("gitdir:").strip()
    folder = os.path.realpath(os.path.join(top, named)) if named else ""
    if not folder or not is_own(folder, own_users()):
        return _Git()
    if back := first_line(os.path.join(folder, "gitdir")):  # a worktree
        common = os.path.realpath(
            os.path.join(folder, first_line(os.path.join(folder, "commondir")))
        )
        if os.path.realpath(os.path.join(folder, back)) != os.path.realpath(mark):
            return _Git()
        logs = tuple(os.path.join(one, "logs", "HEAD") for one in (folder, common))
        return _Git(logs, os.path.join(common, "config"))
    config = os.path.join(folder, "config")  # a submodule
    for section, key, value in _settings_in(_text(config)):
        if (section, key) == ("core", "worktree") and os.path.realpath(
            os.path.join(folder, value)
        ) == top:
            return _Git((os.path.join(folder, "logs", "HEAD"),), config)
    return _Git()


def _is_by(line: bytes, people: frozenset[bytes]) -> bool:
    """Whether an entry of a reflog, `old new Name <mail> time zone TAB act`, is a commit that one
    of them made.
    """
    who, mark, act = line.partition(b"\t")
    if not mark or not re.match(_MADE, act):
        return False
    name, _, rest = who.split(b" ", 2)[-1].partition(b" <")
    return bool(people & {name.strip().lower(), rest.partition(b">")[0].strip().lower()})


def identities(env: Mapping[str, str]) -> frozenset[bytes]:
    """The names and addresses of this user, by their own git settings and environment, in small
    letters.
    """
    home = os.path.expanduser("~")
    base = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    usual = [os.path.join(base, "git", "config"), os.path.join(home, ".gitconfig")]
    todo = [env["GIT_CONFIG_GLOBAL"]] if env.get("GIT_CONFIG_GLOBAL") else usual
    found = [env.get(name, "") for name in _VARIABLES]
    read: set[str] = set()
    while todo and len(read) < _MOST_FILES:
        file = todo.pop()
        if file in read:
            continue
        read.add(file)
        for section, key, value in _settings_in(_text(file, ANYWHERE)):
            if section == "user" and key in ("name", "email"):
                found.append(value)
            elif section in ("include", "includeif") and key == "path":
                todo.append(
                    os.path.normpath(os.path.join(os.path.dirname(file), os.path.expanduser(value)))
                )
    return frozenset(one.strip().lower().encode() for one in found if one.strip())


def _settings_in(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, key and value of each line of git's settings; a section without lines has one with
    an empty key.
    """
    section = ""
    for whole in text.splitlines():
        line = whole.strip()
        if found := re.match(_SECTION, line):
            section = found[1].lower()
            line = line[found.end() :].strip()
            yield section, "", ""
        if line and line[0] not in "#;":
            key, _, value = line.partition("=")
            yield (
                section,
                key.strip().lower(),
                re.split(r"\s[#;]", value.strip(), maxsplit=1)[0].strip().strip('"'),
            )


def _has_hg_alone(top: str) -> bool:
    """Whether a folder is a Mercurial repository that was made here; of all others it is not
    known.
    """
    if _marks_of(top) != [".hg"] or os.path.lexists(os.path.join(top, ".hg", "sharedpath")):
        return False
    sections = {section for section, _, _ in _settings_in(_text(os.path.join(top, ".hg", "hgrc")))}
    return "paths" not in sections


def _text(file: str, opener: Opener | None = None) -> str:
    """A settings file of a repository, in its own folder; empty where there is none."""
    try:
        data = (opener or inside(os.path.dirname(file))).read(
            file, most=MOST_SETTINGS_BYTES, cut=True
        )
    except OSError:
        return ""
    return data.decode("utf-8", "replace")


def _part(log: str, *, first: bool = False) -> bytes:
    """The first or the latest entries of a reflog, which a link does not lead to."""
    opener = inside(os.path.dirname(os.path.dirname(log)))
    try:
        with io.BufferedReader(opener.file(log)) as file:
            if not first:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LATEST_BYTES))
            return file.read(_FIRST_BYTES if first else _LATEST_BYTES)
    except OSError:
        return b""


def first_line(location: str) -> str:
    """The text of a short file, such as one that names a folder; empty where there is none."""
    try:
        return (
            ANYWHERE.read(location, most=_FIRST_BYTES, cut=True).decode("utf-8", "replace").strip()
        )
    except OSError:
        return ""


def _stamp(file: str | Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _line_of(top: str) -> str:
    """A folder as the list of those that the user has written to has it; another clone in its place
    is another.
    """
    mark = next(
        (os.path.join(top, name) for name in VERSIONED if os.path.lexists(os.path.join(top, name))),
        top,
    )
    try:
        number = os.lstat(mark).st_ino
    except OSError:
        number = 0
    # A new folder may get the inode of a removed one; the first entry of a reflog tells when the
    # clone was made.
    first = next(
        (part for log in git_of(top).logs if (part := _part(log, first=True))), b""
    ).partition(b"\n")[0]
    return f"{number}-{zlib.crc32(first):x} {top}".replace("\n", " ")


def _written(file: Path) -> list[str]:
    """The folders under version control that the user has written to."""
    try:
        data = beside(file).read(file, most=MOST_SETTINGS_BYTES)
    except OSError:
        return []
    return data.decode("utf-8", "surrogateescape").splitlines()


def _note(file: Path, lines: Sequence[str]) -> None:
    with contextlib.suppress(OSError):  # then it is asked again
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = "".join(f"{line}\n" for line in dict.fromkeys(lines))
        beside(file).replace(file, data.encode("utf-8", "surrogateescape"), mode=0o600)
