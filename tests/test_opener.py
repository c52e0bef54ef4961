"""The one opener: what it refuses, and that nothing else in the source opens a file."""

from __future__ import annotations

import ast
import contextlib
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notewell.errors import SettingsError, StoreError, WorkspaceError
from notewell.memory import Memory
from notewell.opener import ANYWHERE, OUTSIDE, Opener, beside, inside
from notewell.settings import load
from notewell.surfaces.cli.starting import start

SOURCE = Path(__file__).parents[1] / "src/notewell"
OPENS = {
    "open",
    "fdopen",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "mkstemp",
    "mkdtemp",
    "touch",
    "memmap",
    "NamedTemporaryFile",
    "TemporaryFile",
    "FileIO",
    "copy2",
    "copyfile",
    "copytree",
}

# What opens files without the opener, and why it may.
ALLOWED = {
    "embed/local/": "files of a model: the user installs and names them, a workspace may not",
    "eval/report.py:baseline.read_text": "a report that the user names",
    "index/conversations.py:store.documents.touch": "a row of the index, not a file",
    "index/walk.py:self.store.documents.touch": "a row of the index, not a file",
    "launcher.py:webbrowser.open": "the page in the browser of the user",
    "notes/editor.py:tempfile.mkstemp": (
        "a new name that nobody foresees, in the folder of a note that is open"
    ),
    "opener.py:": "the opener itself",
    "sources/imports/archive.py:self._zip.open": "a member of an archive that is open",
    "store/network_fs.py:MOUNTS.read_text": "what the system says about its disks",
    "store/postgres/connection.py:self._thread.open": "whether a connection of this thread is open",
    "surfaces/cli/choosing.py:here.open": "opens a memory",
    "surfaces/cli/ending.py:os.open": "/dev/null, for an output that nobody reads any more",
    "surfaces/cli/evaluate.py:Path(place).write_text": (
        "a report that the user names, outside the workspace"
    ),
    "surfaces/cli/evaluate.py:here.open": "opens a memory",
    "surfaces/cli/options.py:Memory.open": "opens a memory",
    "surfaces/cli/options.py:here.open": "opens a memory",
    "surfaces/cli/serving.py:Path(file).read_text": (
        "a token that the user names; a pipe is welcome"
    ),
    "surfaces/cli/starting.py:": "the sample of this package, copied into a new folder",
    "store/sqlite/schema.py:Path(__file__)": "the tables of this package",
    "text/everyday.py:": "a table of this package",
    "text/small_talk.py:": "a table of this package",
    "surfaces/engine/daemon.py:self._here.open": "opens a memory",
    "surfaces/hooks/loop.py:Memory.open": "opens a memory",
    "surfaces/hermes_provider.py:": (
        "a setting in the folder of Hermes, and the opening of a memory"
    ),
    "surfaces/install/changes.py:": "the settings of agents, in the home of the user",
    "surfaces/server/http.py:_FOLDER.joinpath": "the page of this package",
}
THROUGH = ("self._opener.", "self.opener.", "opener.", "ANYWHERE.", "beside(", "inside(")


def opens(text: str) -> Iterator[tuple[int, str]]:
    """Every mention of a function that opens files, called or handed on."""
    tree = ast.parse(text)
    types = {id(n.returns) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    types |= {id(n.annotation) for n in ast.walk(tree) if isinstance(n, ast.arg)}
    for node in ast.walk(tree):
        if id(node) in types:
            continue
        named = isinstance(node, ast.Attribute) and node.attr in OPENS
        bare = isinstance(node, ast.Name) and node.id in OPENS and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, one.name) for one in node.names if one.name in OPENS)
        elif isinstance(node, ast.expr) and (named or bare):
            yield node.lineno, ast.unparse(node)


def test_nothing_in_the_source_opens_a_file_but_through_the_opener() -> None:
    found, used = [], set()
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        for line, what in opens(path.read_text(encoding="utf-8")):
            reasons = [one for one in ALLOWED if f"{name}:{what}".startswith(one)]
            used.update(reasons)
            wraps = what == "os.fdopen"  # of a handle, which came from the opener
            if not reasons and not wraps and not what.startswith(THROUGH):
                found.append(f"{name}:{line}: {what}")
    assert found == []
    assert sorted(ALLOWED) == sorted(used), "what is allowed and not used goes"


@pytest.mark.parametrize(
    "text",
    [
        "open('a')",
        "os.open(a, 0)",
        "Path(a).read_text()",
        "from io import open",
        "x = partial(open, 'a')",
        "Path(a).open('a+b')",
        "with tempfile.NamedTemporaryFile() as file: pass",
    ],
)
def test_the_search_for_opens_finds_them(text: str) -> None:
    assert len(list(opens(text))) == 1


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret").write_bytes(b"secret")
    return place


def test_a_regular_file_is_read_up_to_its_limit(root: Path) -> None:
    (root / "a").write_bytes(b"12345")
    assert inside(root).read(root / "a", most=5) == b"12345"
    assert inside(root).read(root / "a", most=4, cut=True) == b"1234"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        inside(root).read(root / "a", most=4)
    with pytest.raises(FileNotFoundError):
        inside(root).read(root / "b", most=4)
    with pytest.raises(OSError, match="it is a folder"):
        inside(root.parent).read(root, most=4)
    with pytest.raises(OSError, match="not a folder"):
        inside(root).read(root / "a/b", most=4)


def test_a_file_that_grows_under_the_reader_ends_at_the_limit(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_bytes(b"123456789")
    small = os.stat(os.devnull)
    monkeypatch.setattr("notewell.opener.S_ISREG", lambda _: True)
    monkeypatch.setattr("notewell.opener.os.fstat", lambda _: small)
    with pytest.raises(OSError, match="larger than 8 bytes"):
        inside(root).read(root / "a", most=8)
    assert inside(root).read(root / "a", most=8, cut=True) == b"12345678"


@pytest.mark.parametrize("link", ["file", "folder", "above", "absolute", "chain"])
def test_no_link_leads_out(root: Path, outside: Path, link: str) -> None:
    (root / "deep").mkdir()
    place = root / "deep/a"
    if link == "folder":
        (root / "deep/folder").symlink_to(outside)
        place = root / "deep/folder/secret"
    elif link == "above":
        (root / "up").symlink_to("..")
        place = root / "up/outside/secret"
    elif link == "chain":
        (root / "b").symlink_to(outside / "secret")
        place.symlink_to("../b")
    else:
        place.symlink_to(outside / "secret" if link == "absolute" else "../../outside/secret")
    opener = inside(root)
    assert opener.leaves(place)
    for act in (
        lambda: opener.read(place, most=100),
        lambda: opener.open(place, os.O_RDWR | os.O_APPEND),
        lambda: opener.open(place, os.O_CREAT | os.O_WRONLY | os.O_TRUNC),
        lambda: opener.create(place, b"x"),
        lambda: opener.replace(place, b"x", mode=0o600),
    ):
        with pytest.raises(OSError, match=OUTSIDE):
            act()
    assert (outside / "secret").read_bytes() == b"secret"
    assert os.listdir(outside) == ["secret"]


def test_links_that_stay_inside_are_followed(root: Path) -> None:
    (root / "deep").mkdir()
    (root / "way").symlink_to("deep")
    (root / "link").symlink_to(root / "way/a")
    opener = inside(root)
    opener.create(root / "link", b"one")
    assert opener.read(root / "way/a", most=9) == b"one"
    opener.replace(root / "link", b"two", mode=0o640)
    assert (root / "link").is_symlink()
    assert (root / "deep/a").read_bytes() == b"two"
    assert (root / "deep/a").stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileExistsError):
        opener.create(root / "link", b"three")


def test_a_loop_of_links_is_an_error(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(OSError):  # noqa: PT011 - its words are the system's
        inside(root).read(root / "a", most=9)


def test_what_the_user_names_elsewhere_is_a_home_too(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside / "secret")
    assert inside(root, str(outside)).read(root / "link", most=9) == b"secret"
    assert inside(root, str(outside / "secret")).read(outside / "secret", most=9) == b"secret"
    (outside / "other").write_bytes(b"other")
    with pytest.raises(OSError, match=OUTSIDE):
        inside(root, str(outside / "secret")).read(outside / "other", most=9)


@pytest.mark.parametrize("opener", [ANYWHERE, inside(Path("/"))], ids=["anywhere", "inside"])
@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK])
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREAT])
def test_pipes_and_sockets_are_refused_at_once(
    root: Path, opener: Opener, kind: int, flags: int
) -> None:
    os.mknod(root / "odd", kind | 0o600)
    with pytest.raises(OSError, match="not a regular file"):
        opener.open(root / "odd", flags)


def test_devices_are_refused(root: Path) -> None:
    (root / "zero").symlink_to("/dev/zero")
    with pytest.raises(OSError, match=OUTSIDE):
        inside(root).read(root / "zero", most=9)
    with pytest.raises(OSError, match="not a regular file"):
        ANYWHERE.read(root / "zero", most=9)


def test_a_link_that_is_put_there_between_look_and_open_is_not_followed(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "deep").mkdir()
    (root / "deep/secret").write_bytes(b"mine")
    real = os.lstat

    def late(*given: object, **named: object) -> os.stat_result:
        found = real(*given, **named)  # type: ignore[arg-type]
        (root / "deep/secret").unlink()
        (root / "deep/secret").symlink_to(outside / "secret")
        return found

    monkeypatch.setattr("notewell.opener.os.lstat", late)
    with pytest.raises(OSError):  # noqa: PT011 - its words are the system's
        inside(root).read(root / "deep/secret", most=100)


def test_a_folder_that_keeps_turning_into_a_link_never_leads_out(root: Path, outside: Path) -> None:
    (root / "real").mkdir()
    (root / "real/secret").write_bytes(b"mine")
    (root / "one").symlink_to(outside)
    (root / "two").symlink_to("real")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for target in ("one", "two"):
                os.link(root / target, root / "new", follow_symlinks=False)
                os.replace(root / "new", root / "way")
                if os.path.lexists(root / "new"):
                    os.unlink(root / "new")

    other = threading.Thread(target=swap)
    other.start()
    seen = set()
    try:
        for _ in range(2000):
            try:
                seen.add(inside(root).read(root / "way/secret", most=9))
            except OSError as error:
                seen.add(str(error.strerror).encode())
    finally:
        over.set()
        other.join()
    assert b"secret" not in seen


def test_a_draft_that_is_a_link_is_not_written_through(root: Path, outside: Path) -> None:
    (root / ".a.notewell-new").symlink_to(outside / "secret")
    beside(root / "a").replace(root / "a", b"mine", mode=0o600)
    assert (outside / "secret").read_bytes() == b"secret"
    assert sorted(os.listdir(root)) == ["a"]


def test_handles_are_closed_whatever_happens(root: Path, outside: Path) -> None:
    (root / "out").symlink_to(outside)
    (root / "way").symlink_to(".")
    (root / "a").write_bytes(b"x")
    os.mkfifo(root / "pipe")
    before = len(os.listdir("/dev/fd"))
    for name in ("out/secret", "way/a", "way/way/b", "a/b", "pipe", "nowhere/x", "way"):
        with contextlib.suppress(OSError):
            inside(root).read(root / name, most=1)
    assert len(os.listdir("/dev/fd")) == before


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a device": lambda place: place.symlink_to("/dev/zero"),
    "a link out": lambda place: place.symlink_to("/etc/hostname"),
    "a folder": lambda place: place.mkdir(),
}


@pytest.mark.parametrize("kind", ODD)
def test_settings_that_are_no_file_of_the_workspace_are_an_error(root: Path, kind: str) -> None:
    ODD[kind](root / "notewell.toml")
    with pytest.raises(
        SettingsError, match=r"notewell\.toml cannot be read: (it is|a symbolic link)"
    ) as error:
        load(root, env={"HOME": str(root), "XDG_CONFIG_HOME": str(root)})
    assert "regular file" in error.value.hint


def test_huge_settings_are_an_error_and_not_read(root: Path) -> None:
    with (root / "notewell.toml").open("wb") as file:
        file.truncate(3_000_000_000)
    with pytest.raises(SettingsError, match="larger than 1,000,000 bytes"):
        load(root, env={"HOME": str(root), "XDG_CONFIG_HOME": str(root)})


def test_a_pipe_in_the_folder_of_the_index_is_refused(root: Path) -> None:
    (root / ".notewell").mkdir()
    os.mkfifo(root / ".notewell/index.sqlite")
    with pytest.raises(StoreError, match="is a pipe, a socket or a device"):
        Memory.open(root, embed__model="none")


def test_init_writes_through_no_link(root: Path, outside: Path) -> None:
    (root / "notewell.toml").symlink_to(outside / "new")
    with pytest.raises(WorkspaceError, match="leads out"):
        start(root)
    assert os.listdir(outside) == ["secret"]
