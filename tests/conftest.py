"""What all tests share: an environment without anybody's settings, and workspaces made of a few files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.memory import Memory
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Role, Vectors
from tests.postgres import UNTESTED, database, own_server, postgres  # noqa: F401 - fixtures

Write = Callable[..., Path]
NO_FOLDING = "no file system that folds case could be mounted: needs libfuse 2, /dev/fuse and root"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says loudly what was skipped for want of a server or of a file system."""
    skipped = terminalreporter.stats.get("skipped", [])
    for told in (UNTESTED, NO_FOLDING):
        if count := sum(told in str(report.longrepr) for report in skipped):
            terminalreporter.write_sep("!", f"{told} ({count} tests were skipped)", red=True)


def sqlite_of(memory: Memory) -> SqliteStore:
    """The store of a memory, for tests that look into its file."""
    assert isinstance(memory.store, SqliteStore)
    return memory.store


@pytest.fixture(autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings of the person who runs the tests are seen, and none of theirs are written."""
    home = tmp_path_factory.mktemp("home")
    for name in [n for n in os.environ if n.startswith(("NOTEWELL_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("NOTEWELL_ENGINE_ENABLED", "0")  # no test leaves a process behind that it did not ask for
    return home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty workspace."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def write(root: Path) -> Write:
    """Writes a file of the workspace; `age_s` sets its time of change that long ago, as a settled file has it."""

    def write(path: str, text: str | bytes, *, age_s: float = 60.0) -> Path:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
        changed = place.stat().st_mtime - age_s
        os.utime(place, (changed, changed))
        return place

    return write


class CountingEmbedder(HashedEmbedder):
    """A hashed embedder that remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        (self.documents if role == "document" else self.queries).extend(texts)
        return super().embed(texts, role)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def memory(root: Path, embedder: CountingEmbedder) -> Iterator[Memory]:
    """The workspace, opened with a deterministic model."""
    with Memory.open(root, embedder=embedder) as memory:
        yield memory
