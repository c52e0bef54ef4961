"""What all tests share: an environment without anybody's settings, and workspaces made of a few
files.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from notewell.embed.local.hashed import HashedEmbedder
from notewell.memory import Memory
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Role, Vectors
from tests.growth import linear  # noqa: F401 - a fixture
from tests.postgres import UNTESTED, database, own_server, postgres  # noqa: F401 - fixtures
from tests.two_users import ALONE, machine  # noqa: F401 - a fixture

Write = Callable[..., Path]

# What the product leaves undone when time is short is done in the tests, however busy the machine
# is: one of a deadline sets its own. An example may take as long as it likes, too.
PATIENT = {
    "NOTEWELL_EMBED_BUDGET_S": "60",
    "NOTEWELL_EMBED_DEADLINE_S": "60",
    "NOTEWELL_HOOK_DEADLINE_S": "60",
    "NOTEWELL_HOOK_SYNC_S": "60",
    "NOTEWELL_SEARCH_RERANK_DEADLINE_S": "60",
    "NOTEWELL_SEARCH_SCAN_S": "60",
}
# as in a job in the background, whose processes inherit it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

NO_FOLDING = "no file system that folds case could be mounted: needs libfuse 2, /dev/fuse and root"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says loudly what was skipped for want of a server, a file system or other users."""
    skipped = terminalreporter.stats.get("skipped", [])
    for told in (UNTESTED, NO_FOLDING, ALONE):
        if count := sum(told in str(report.longrepr) for report in skipped):
            terminalreporter.write_sep("!", f"{told} ({count} tests were skipped)", red=True)


def sqlite_of(memory: Memory) -> SqliteStore:
    """The store of a memory, for tests that look into its file."""
    assert isinstance(memory.store, SqliteStore)
    return memory.store


@pytest.fixture(autouse=True)
def own_environment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """No settings of the person who runs the tests are seen, and none of theirs are written."""
    home = tmp_path_factory.mktemp("home")
    for name in [n for n in os.environ if n.startswith(("NOTEWELL_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NO_COLOR", "1")
    for name, seconds in PATIENT.items():
        monkeypatch.setenv(name, seconds)
    # no test leaves a process behind that it did not ask for
    monkeypatch.setenv("NOTEWELL_ENGINE_ENABLED", "0")
    return home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty workspace."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def write(root: Path) -> Write:
    """Writes a file of the workspace; `age_s` sets its time of change that long ago, as a settled
    file has it.
    """

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
