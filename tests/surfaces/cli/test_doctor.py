"""`notewell doctor` names what is wrong and the one thing that mends it, and `status --deep` asks
the models.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import namedtuple
from pathlib import Path
from typing import Any

import apsw
import pytest

from notewell.embed import registry
from notewell.embed.embedder import Embedder
from notewell.errors import EmbedderError
from notewell.settings import user_file
from notewell.store.sqlite.checksum_vfs import checking_vfs
from notewell.surfaces.cli.commands import run
from tests.conftest import Write
from tests.embed.models import Flapping, Mad, Refusing

Capture = pytest.CaptureFixture[str]
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def here(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.chdir(root)
    write("MEMORY.md", "- The staging port is 8080.\n")
    write("memory/a.md", "# Notes\n\nThe backup runs at night.\n")


def doctor(capsys: Capture, *arguments: str, code: int = 0) -> dict[str, dict[str, str]]:
    capsys.readouterr()
    assert run(["doctor", "--json", *arguments]) == code
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] == (code == 0)
    for check in answer["checks"]:
        assert list(check) == ["what", "verdict", "detail", "fix"]
        assert check["detail"]
        assert check["fix"] or check["verdict"] == "ok", "whatever is wrong has its remedy"
    return {check["what"]: check for check in answer["checks"]}


def indexed() -> Path:
    assert run(["index"]) == 0
    return Path(".notewell/index.sqlite")


@pytest.mark.parametrize("arguments", [(), ("--deep",)])
def test_a_sound_workspace_has_nothing_wrong(capsys: Capture, arguments: tuple[str, ...]) -> None:
    indexed()
    checks = doctor(capsys, *arguments)
    assert {c["verdict"] for c in checks.values()} == {"ok"}
    assert list(checks) == [
        "workspace",
        "settings",
        "disk space",
        "file system",
        "permissions",
        "notes",
        "index",
        "freshness",
        "model hashed",
        "vectors",
        "cache",
    ]
    assert checks["vectors"]["detail"] == "2 of 2 passages by hashed@256"


def test_for_people_it_is_a_line_each_and_what_to_do(capsys: Capture) -> None:
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "ok    workspace: " in out
    assert "warn  index: there is no index yet\n      run: notewell index\n" in out


def test_a_folder_that_is_none_or_no_workspace(capsys: Capture, tmp_path: Path) -> None:
    assert doctor(capsys, "-w", str(tmp_path / "no"), code=1)["workspace"]["verdict"] == "fail"
    (tmp_path / "bare").mkdir()
    check = doctor(capsys, "-w", str(tmp_path / "bare"))["notes"]
    assert check["verdict"] == "warn"
    assert "notewell remember" in check["fix"]
    assert list((tmp_path / "bare").iterdir()) == [], "a look makes nothing"
    assert run(["remember", "The teapot is blue.", "-w", str(tmp_path / "bare")]) == 0
    assert doctor(capsys, "-w", str(tmp_path / "bare"))["notes"]["verdict"] == "ok", (
        "and what it names helps"
    )


def test_a_wrong_setting(capsys: Capture) -> None:
    Path("notewell.toml").write_text("[search]\nlimt = 3\n")
    check = doctor(capsys, code=1)["settings"]
    assert check["verdict"] == "fail"
    assert check["fix"] == "did you mean search.limit?"


def test_settings_files_are_named(capsys: Capture) -> None:
    place = user_file(os.environ)
    place.parent.mkdir(parents=True)
    place.write_text("[search]\nlimit = 3\n")
    assert str(place) in doctor(capsys)["settings"]["detail"]


def test_a_model_name_that_does_not_exist(capsys: Capture) -> None:
    check = doctor(capsys, "--model", "hashd", code=1)["model"]
    assert (check["verdict"], check["fix"]) == ("fail", "did you mean hashed?")


def test_a_damaged_index_fails_and_is_left_where_it_is(capsys: Capture) -> None:
    place = indexed()
    place.write_bytes(b"\x7f" * 9000)
    check = doctor(capsys, code=1)["index"]
    assert check["verdict"] == "fail"
    assert check["fix"] == "notewell index --force rebuilds it"
    assert place.read_bytes() == b"\x7f" * 9000
    assert run(["index", "--force"]) == 0
    assert doctor(capsys)["index"]["verdict"] == "ok"


def test_an_index_of_a_newer_version(capsys: Capture) -> None:
    place = indexed()
    db = sqlite3.connect(place)
    db.execute("PRAGMA user_version = 999")
    db.close()
    assert "upgrade notewell" in doctor(capsys, code=1)["index"]["fix"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("DELETE FROM fields WHERE row = 1", "1 passages have no keywords"),
        ("INSERT INTO fields VALUES (99, x'01', x'01', x'01')", "1 keyword rows have no passage"),
        ("UPDATE vectors SET model = 99", "vectors belong to no model"),
        ("UPDATE vectors SET vector = x'00'", "broken vectors"),
        ("UPDATE chunks SET text = 'forged' WHERE row = 1", "a passage of MEMORY.md is damaged"),
        ("UPDATE chunks SET document = 99", "passages belong to no file"),
        (
            "UPDATE fields SET body = x'01' WHERE row = 1",
            "the keywords of MEMORY.md do not match its text",
        ),
        ("DELETE FROM copies WHERE row = 1", "never compared with others"),
        ("INSERT INTO conflicts VALUES (x'01', x'02')", "1 contradictions belong to no passage"),
        ("INSERT INTO forms VALUES (999, x'01')", "1 traits belong to no passage"),
        (
            "INSERT INTO edges VALUES (99, 'a', 'b', '', 'b', 'c', '', 'c')",
            "1 rows refer to something that is gone",
        ),
    ],
)
def test_parts_that_do_not_agree_are_found_by_a_deep_look(
    capsys: Capture, script: str, words: str
) -> None:
    place = indexed()
    # every page is as it was written, and yet they disagree
    db = apsw.Connection(str(place), vfs=checking_vfs())
    db.execute(script)
    db.close()
    check = doctor(capsys, "--deep", code=1)["index"]
    assert words in check["detail"]
    assert check["fix"] == "run: notewell index --force"
    assert run(["index", "--force"]) == 0
    assert doctor(capsys, "--deep")["index"]["verdict"] == "ok", "and that really mends it"


def test_notes_that_are_not_indexed_and_files_that_cannot_be(capsys: Capture, write: Write) -> None:
    indexed()
    write("memory/b.md", "new")
    write("memory/c.md", b"\0")
    checks = doctor(capsys)
    assert checks["freshness"]["detail"] == "1 to add, 0 to read again, 0 to drop"
    assert checks["freshness"]["verdict"] == "warn"
    assert checks["file"]["detail"] == "memory/c.md: a binary file"


@pytest.mark.parametrize(
    ("free", "verdict", "code"), [(10**12, "ok", 0), (10**8, "warn", 0), (10**6, "fail", 1)]
)
def test_a_disk_that_fills_up(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, free: int, verdict: str, code: int
) -> None:
    indexed()
    monkeypatch.setattr("shutil.disk_usage", lambda _path: Usage(10**12, 0, free))
    assert doctor(capsys, code=code)["disk space"]["verdict"] == verdict


def test_a_network_file_system(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    indexed()
    mounts = tmp_path / "mounts"
    mounts.write_text("server:/x / nfs4 rw 0 0\n")
    monkeypatch.setattr("notewell.store.network_fs.MOUNTS", mounts)
    check = doctor(capsys)["file system"]
    assert check["verdict"] == "warn"
    assert "index.path" in check["fix"]


def test_an_index_that_others_can_read(capsys: Capture) -> None:
    place = indexed()
    place.chmod(0o644)
    check = doctor(capsys)["permissions"]
    assert check["verdict"] == "warn"
    assert check["fix"] == f"chmod 600 {place.resolve()}"
    place.chmod(0o600)
    place.parent.chmod(0o777)
    assert doctor(capsys)["permissions"]["fix"].startswith("chmod go-w ")
    place.parent.chmod(0o700)
    assert doctor(capsys)["permissions"]["verdict"] == "ok"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, Embedder | EmbedderError]:
    found: dict[str, Embedder | EmbedderError] = {}
    real = registry.embedder

    def embedder(name: str, **_options: Any) -> Embedder | None:
        one = found.get(name)
        if isinstance(one, EmbedderError):
            raise one
        return one or real(name)

    monkeypatch.setattr(registry, "embedder", embedder)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "auto")
    return found


def test_each_level_is_asked_only_on_a_deep_look_when_it_is_not_on_this_machine(
    capsys: Capture, models: dict[str, Embedder | EmbedderError], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = Flapping("far", dead=True)
    models |= {"openai": far, "gemini": EmbedderError("no key", hint="set GEMINI_API_KEY")}
    monkeypatch.setenv("NOTEWELL_EMBED_CHAIN", "hashed,openai,gemini")
    checks = doctor(capsys)
    assert far.calls == []
    assert checks["model openai"]["verdict"] == "ok"
    assert checks["model gemini"] == {
        "what": "model gemini",
        "verdict": "warn",
        "detail": "no key",
        "fix": "set GEMINI_API_KEY",
    }
    deep = doctor(capsys, "--deep")
    assert deep["model openai"]["detail"] == "connection refused"
    assert deep["model openai"]["fix"] == "start the server"
    assert "dimensions" in deep["model hashed"]["detail"]


def test_no_model_that_answers_is_a_failure(
    capsys: Capture, models: dict[str, Embedder | EmbedderError], monkeypatch: pytest.MonkeyPatch
) -> None:
    models["openai"] = Mad("mad")
    monkeypatch.setenv("NOTEWELL_EMBED_CHAIN", "openai")
    checks = doctor(capsys, "--deep", code=1)
    assert "further apart" in checks["model openai"]["detail"]
    assert checks["chain"]["fix"] == "set embed.model to local"


def test_keywords_only_is_no_fault(capsys: Capture) -> None:
    assert doctor(capsys, "--model", "none")["model"]["detail"] == "keywords only, as configured"


def test_a_switch_that_is_not_done_and_one_that_is(capsys: Capture) -> None:
    indexed()
    check = doctor(capsys, "--model", "hashed@512")["vectors"]
    assert (check["verdict"], check["fix"]) == ("warn", "run: notewell index")
    assert (
        "0 of 2 passages by hashed@512; hashed@256 answers until the rest is done, 2 to go"
        in check["detail"]
    )
    assert run(["index", "--model", "hashed@512"]) == 0
    checks = doctor(capsys, "--model", "hashed@512")
    assert checks["vectors"]["verdict"] == "ok"
    assert checks["cache"]["fix"] == "run: notewell index --prune"
    capsys.readouterr()
    assert run(["index", "--model", "hashed@512", "--prune"]) == 0
    assert "2 old vectors dropped" in capsys.readouterr().out
    assert doctor(capsys, "--model", "hashed@512")["cache"]["fix"] == ""
    pinned = doctor(capsys, "--model", "auto")["meaning"]
    assert (pinned["verdict"], pinned["fix"]) == ("warn", "run: notewell index --model local")


def test_refused_passages_are_counted(
    capsys: Capture, models: dict[str, Embedder | EmbedderError], monkeypatch: pytest.MonkeyPatch
) -> None:
    models["openai"] = Refusing("backup")
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "openai")
    capsys.readouterr()
    assert run(["index"]) == 0
    assert (
        "skipped memory/a.md:3: no vector: the word backup is not allowed"
        in capsys.readouterr().out
    )
    check = doctor(capsys)["vectors"]
    assert check["detail"] == "1 of 2 passages by refusing; 1 refused"
    assert "--force" in check["fix"]


def status(capsys: Capture, *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["status", "--json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_status_asks_the_models_only_when_told_to(
    capsys: Capture, models: dict[str, Embedder | EmbedderError], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = Flapping("far", dead=True)
    models["openai"] = far
    monkeypatch.setenv("NOTEWELL_EMBED_CHAIN", "hashed,openai")
    indexed()
    assert status(capsys)["levels"] == []
    near, away = status(capsys, "--deep")["levels"]
    assert (near["name"], near["model"], near["ok"], near["dim"]) == (
        "hashed",
        "hashed@256",
        True,
        256,
    )
    assert near["alike"] > near["unlike"]
    assert (away["ok"], away["error"], away["hint"]) == (
        False,
        "connection refused",
        "start the server",
    )
    assert run(["status", "--deep"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^hashed     \d+ ms, 256 dimensions", out, re.MULTILINE)
    assert "openai     failed: connection refused (start the server)" in out


def test_status_says_which_model_answers_and_how_large_the_cache_is(capsys: Capture) -> None:
    indexed()
    Path("memory/a.md").unlink()
    indexed()
    found = status(capsys, "--model", "hashed@512")
    assert (found["embedder"], found["answering"], found["pending"]) == (
        "hashed@512",
        "hashed@256",
        1,
    )
    assert found["cache"] == {"vectors": 1, "bytes": 256}
    assert run(["status", "--model", "hashed@512"]) == 0
    out = capsys.readouterr().out
    assert "answering  hashed@256, until the model above has embedded every passage" in out
    assert "1 vector of text no longer in any note (0.0 MB)" in out
