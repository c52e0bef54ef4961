"""What SECURITY.md claims is held by tests that exist; those that no room has are here."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from notewell import Memory
from notewell.errors import StoreError
from notewell.index.dedupe import replaces
from notewell.store.sqlite.checksum_vfs import checking_vfs
from notewell.store.sqlite.store import SqliteStore
from tests.conftest import PATIENT, Write
from tests.growth import no_hang
from tests.search.made import chunk

ROOT = Path(__file__).parents[1]


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")))
    known = {
        n
        for p in (ROOT / "tests").rglob("test_*.py")
        for n in re.findall(r"^def (test_\w+)", p.read_text(), re.M)
    }
    assert len(named) > 40
    assert named - known == set()


def test_every_claim_names_a_test() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    claims = [c for part in text.split("\n## ")[2:] for c in re.split(r"\n(?=- )", part)[1:]]
    silent = [c for c in claims if "`test_" not in c and "does not defend" not in c]
    assert len(claims) > 25
    assert silent == []


@pytest.mark.parametrize(
    "name", ["", "index.sqlite", "index.lock", "forgotten.new", ".gitignore", "backup"]
)
def test_a_link_in_the_folder_of_the_index_is_refused(
    root: Path, tmp_path: Path, name: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = root / ".notewell"
    if name:
        folder.mkdir()
        (folder / name).symlink_to(precious)
    else:
        folder.symlink_to(tmp_path)
    with pytest.raises(StoreError, match="is a link") as caught:
        Memory.open(root, embed__model="none")
    assert "index.path" in caught.value.hint
    assert precious.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["precious", "workspace"]


def planted(root: Path, script: str) -> None:
    """An index as a repository could bring it: changed by somebody else, and copied to its
    place.
    """
    with Memory.open(root, embed__model="none") as memory:
        memory.sync()
    file = root / ".notewell/index.sqlite"
    db = apsw.Connection(str(file), vfs=checking_vfs())
    db.execute(script)
    db.close()
    shutil.copy(file, root / "copy")
    file.unlink()
    os.replace(root / "copy", file)


def test_what_was_planted_in_an_index_that_was_copied_is_not_shown(
    root: Path, write: Write
) -> None:
    write("memory/a.md", "The staging port is 8080.")
    planted(
        root, "UPDATE chunks SET text = 'The staging port is evil.'; UPDATE fields SET body = head"
    )
    with Memory.open(root, embed__model="none") as memory:
        found = memory.search("staging port")
        assert [h.chunk.text for h in found.hits] == ["The staging port is 8080."]
        assert not memory.search("evil").hits
        assert memory.store.audit() == []
    with Memory.open(root, embed__model="none") as memory:
        assert memory.sync().unchanged == 1, "once is enough"


def test_a_planted_time_of_reading_does_not_make_a_copied_index_believed(
    root: Path, write: Write
) -> None:
    write("memory/a.md", "The staging port is 8080.")
    planted(
        root,
        "UPDATE chunks SET text = 'The staging port is evil.'; UPDATE fields SET body = head;"
        "INSERT OR REPLACE INTO meta SELECT 'analysis_since', '1 ' || value FROM meta "
        "WHERE key = 'analysis'",
    )
    with Memory.open(root, embed__model="none") as memory:
        assert [h.chunk.text for h in memory.search("staging port").hits] == [
            "The staging port is 8080."
        ]


def test_an_index_with_a_trigger_of_somebody_else_is_set_aside(root: Path, write: Write) -> None:
    write("memory/a.md", "The staging port is 8080.")
    planted(
        root,
        (
            "CREATE TRIGGER evil AFTER INSERT ON chunks BEGIN UPDATE chunks SET text = 'evil' "
            "WHERE row = NEW.row; END"
        ),
    )
    with Memory.open(root, embed__model="none") as memory:
        found = memory.search("staging port")
    assert [n.code for n in found.notices] == ["index_rebuilt"]
    assert [h.chunk.text for h in found.hits] == ["The staging port is 8080."]


def test_everything_beside_the_index_is_its_owners_alone(root: Path, write: Write) -> None:
    before = os.umask(0)
    try:
        with Memory.open(root, embed__model="hashed") as memory:
            memory.remember("The codeword is zanzibar, as everybody knows.", file="memory/a.md")
            memory.sync()
            memory.forget(query="zanzibar", yes=True, from_files=True)
            open_to_others = [
                f"{p.name} {p.stat().st_mode & 0o777:o}"
                for p in (root / ".notewell").rglob("*")
                if p.name != ".gitignore" and p.stat().st_mode & 0o077
            ]
    finally:
        os.umask(before)
    assert (root / ".notewell").stat().st_mode & 0o777 == 0o700
    assert open_to_others == []


def test_what_a_transcript_says_hides_no_note() -> None:
    store = SqliteStore(None)
    text = "<!-- supersedes: memory/a.md -->\n\nThe staging port is evil."
    assert replaces(chunk("b", text, path="memory/b.md"), store)
    assert replaces(chunk("s", text, path="s.jsonl", source="sessions"), store) == ()


def test_settings_that_name_nobody_reach_nobody(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[Any] = []

    def connect(_self: socket.socket, address: Any) -> None:
        reached.append(address)
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **_k: reached.append(a))
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.setenv(name, "a-key-that-lies-around")
    write("memory/a.md", "The staging port is 8080.")
    with Memory.open(root) as memory:
        memory.sync()
        assert memory.search("staging port").mode == "hybrid"
        memory.status(deep=True)
    assert reached == []


def test_the_runtime_of_the_model_keeps_and_reports_nothing(
    root: Path, write: Write, tmp_path: Path
) -> None:
    """Native code is not seen by a patched socket, but its queue of reports and its number of this
    machine would be.
    """
    write("memory/a.md", "The staging port is 8080.")
    told = ("HOME", "PATH", "SYSTEMROOT", "PYTHONPATH", *PATIENT)
    env = {name: value for name, value in os.environ.items() if name in told} | {
        "HOME": str(tmp_path / "home")
    }
    code = (
        "import sys, notewell; print(notewell.Memory.open(sys.argv[1]).search('staging port').mode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)],
        env=env,
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert done.stdout.split() == ["hybrid"]
    kept = [p.relative_to(tmp_path / "home") for p in (tmp_path / "home").rglob("*") if p.is_file()]
    assert not [p for p in kept if "notewell" not in p.parts]


def hostile_clone(root: Path, write: Write) -> None:
    """Everything that comes with a repository and costs without bound, at once."""
    write(
        "notewell.toml",
        f"extra_paths = ['{'a*' * 16}b.md', '[z-a].md']\n[redact]\npatterns = ['(a+)+$']",
    )
    write("memory/a.md", "The staging port is 8080.\n\n" + "a" * 40 + "!")
    write("memory/.gitignore", "".join(f"*a*a*a*a*a*a*a*a*a*a*a*a{n}*b\n" for n in range(2000)))
    for number in range(30):
        write(f"memory/{number}{'a' * 200}.md", "x")
    (root / ".gitignore").symlink_to("/dev/zero")
    os.mkfifo(root / ".notewellignore")
    (root / "links.jsonl").symlink_to("/dev/zero")


def test_a_hostile_clone_neither_hangs_nor_fills_the_memory(root: Path, write: Write) -> None:
    hostile_clone(root, write)
    with no_hang(), Memory.open(root, embed__model="none") as memory:
        found = memory.search("staging port")
        packed = memory.context("staging port")
    assert "8080" in found.hits[0].chunk.text
    assert {"pattern_skipped"} <= {n.code for n in found.notices}
    assert packed.found is not None
    assert {"links_unread"} <= {n.code for n in packed.found.notices}


@pytest.mark.slow
def test_beside_a_search_of_a_hostile_clone_other_threads_go_on(root: Path, write: Write) -> None:
    """Such as those of a server. Counted in the time of the process, and in the best of a few
    tries.
    """
    hostile_clone(root, write)
    longest_s: list[float] = []
    for _ in range(5):
        moments: list[float] = [time.process_time()]
        over = threading.Event()

        def tick(moments: list[float] = moments, over: threading.Event = over) -> None:
            while not over.wait(0.01):
                moments.append(time.process_time())

        other = threading.Thread(target=tick)
        other.start()
        with Memory.open(
            root, embed__model="none", index=root.parent / f"{len(longest_s)}.sqlite"
        ) as memory:
            memory.search("staging port")
        over.set()
        other.join()
        moments.append(time.process_time())
        longest_s.append(max(b - a for a, b in itertools.pairwise(moments)))
    assert min(longest_s) < 1.0
