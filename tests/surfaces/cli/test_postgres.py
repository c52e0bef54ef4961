"""The command line over an index in PostgreSQL."""

from __future__ import annotations

import json
import runpy
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from notewell.memory import Memory
from notewell.store.postgres import shared
from notewell.store.postgres.store import PostgresStore
from notewell.store.values import Finding
from notewell.surfaces.cli import doctor
from notewell.surfaces.cli.commands import run
from notewell.surfaces.server.upkeep import Upkeep
from tests.conftest import PATIENT, Write
from tests.eval.made import write_set
from tests.postgres import Server
from tests.surfaces.server.served import serving
from tests.test_readme import SAMPLE, blocks, console

PASSWORD = "hush-hush"
ADDRESS = "postgresql://notewell@db.example/notewell"
OF_ADMIN = "postgresql://postgres@db.example/notewell"


@pytest.fixture
def index(database: str, root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the database, with a password that must never be shown."""
    write("MEMORY.md", "The staging port is 8080. The release day is Thursday.")
    monkeypatch.setenv("NOTEWELL_INDEX_WORKSPACE", str(root))
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.chdir(root)
    return database.replace("owner@", f"owner:{PASSWORD}@")


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    assert PASSWORD not in captured.out + captured.err
    return captured.out


def test_everything_works_by_the_address_and_nothing_shows_its_password(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "8080" in told(capsys, "search", "staging port", "--index", index)
    assert json.loads(told(capsys, "index", "--index", index, "--json"))["unchanged"] == 1
    assert "nothing" in told(capsys, "forget", "--query", "zeppelin", "--index", index)
    status = json.loads(told(capsys, "status", "--index", index, "--json"))
    assert status["index"].startswith("postgresql://owner@")
    assert {"chunks", "vectors", "postings"} <= {t["name"] for t in status["database"]["tables"]}
    assert "HNSW" in told(capsys, "status", "--index", index)
    assert "owner@" in told(capsys, "config", "--index", index)
    told(capsys, "config", "--index", index, "--json")
    told(capsys, "why", "staging port", "MEMORY.md", "--index", index)
    told(capsys, "timeline", "--index", index)
    told(capsys, "get", "MEMORY.md", "--index", index)


def test_the_address_may_be_in_the_users_settings_or_the_environment(
    index: str,
    root: Path,
    own_environment: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = own_environment / ".config/notewell/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[index]\nurl = "{index}"\n')
    assert "8080" in told(capsys, "search", "staging port")
    assert not (root / ".notewell/index.sqlite").exists()
    file.write_text("")
    monkeypatch.setenv("NOTEWELL_INDEX_URL", index)
    assert json.loads(told(capsys, "status", "--json"))["documents"] == 1
    monkeypatch.delenv("NOTEWELL_INDEX_URL")
    (root / "notewell.toml").write_text(f'[index]\nurl = "{index}"\n')
    told(capsys, "search", "staging port", code=2)


def test_a_worker_says_what_it_did(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "--no-embed", "--index", index)
    assert (
        json.loads(told(capsys, "index", "--worker", "--index", index, "--json"))["embedded"] == 1
    )
    assert (
        json.loads(told(capsys, "index", "--worker", "--index", index, "--json"))["embedded"] == 0
    )
    told(capsys, "index", "--worker", "--force", "--index", index, code=2)
    told(capsys, "index", "--worker", code=2)


def test_migrate_goes_both_ways(index: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index")
    assert "verified" in told(capsys, "migrate", ".notewell/index.sqlite", index)
    back = json.loads(told(capsys, "migrate", index, "back.sqlite", "--json"))
    assert back["verified"]
    assert back["source"].startswith("postgresql://owner@")


def checks(index: str, root: Path) -> dict[str, Finding]:
    found = doctor.examine(root, {"index.url": index, "embed.model": "none"}, {}, deep=True)
    return {one.what: one for one in found}


def test_doctor_finds_nothing_wrong_with_a_healthy_database(
    index: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "index", "--index", index)
    found = checks(index, root)
    assert {c.verdict for c in found.values()} <= {"ok", "warn"}
    for what in (
        "database",
        "extension",
        "index type",
        "bloat",
        "connections",
        "row security",
        "role",
    ):
        assert found[what].verdict == "ok", found[what]
    assert "pgvector 0.8" in found["extension"].detail


def test_doctor_names_what_is_wrong_and_what_fixes_it(
    postgres: Server, root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:

    write("MEMORY.md", "The staging port is 8080.")
    url = postgres.database("empty")
    name = url.split("@/")[1].split("?")[0]
    with Memory.open(root, index=url, embed__model="hashed", env=PATIENT) as memory:
        memory.sync()
    for sql in (
        "ALTER TABLE notewell.edges DISABLE ROW LEVEL SECURITY",
        "CREATE TABLE notewell.extra (v vector(3))",
        "CREATE INDEX extra_ivf ON notewell.extra USING ivfflat (v vector_l2_ops)",
        "CREATE TABLE notewell.bloated (a int)",
        "INSERT INTO notewell.bloated SELECT generate_series(1, 2000)",
        "DELETE FROM notewell.bloated WHERE a > 500",
    ):
        postgres.execute(sql, name)
    monkeypatch.setattr(shared, "_DEAD_ROWS", 100)
    monkeypatch.setattr(shared, "_UNANALYZED_ROWS", 100)
    monkeypatch.setattr(shared, "_FREE_CONNECTIONS", 1000)
    monkeypatch.setattr(shared, "_GOOD_VECTOR", (99, 0, 0))
    found = checks(postgres.url(name, "admin"), root)
    assert found["role"].verdict == "warn"
    assert "superuser" in found["role"].detail
    assert found["row security"].verdict == "fail"
    assert "ENABLE ROW LEVEL SECURITY" in found["row security"].fix
    assert "extra_ivf" in found["index type"].detail
    assert "dead rows" in found["bloat"].detail
    assert "VACUUM" in found["bloat"].fix
    assert "analyzed" in found["statistics"].detail
    assert found["connections"].verdict == "warn"
    assert found["extension"].verdict == "warn"
    monkeypatch.setattr(shared, "_LEAST_VECTOR", (99, 0, 0))
    assert checks(url, root)["extension"].verdict == "fail"


def test_doctor_says_when_the_server_is_away(root: Path, write: Write) -> None:
    write("MEMORY.md", "The staging port is 8080.")
    found = checks(f"postgresql://ann:{PASSWORD}@127.0.0.1:1/none", root)
    assert found["database"].verdict == "fail"
    assert PASSWORD not in repr(found)
    assert found["database"].fix


def test_a_server_tells_of_what_another_machine_changed(index: str, root: Path) -> None:
    changed = threading.Event()

    def tell(event: str, **facts: Any) -> None:
        if event == "synced" and facts["changed"] and not facts["added"]:
            changed.set()

    options: dict[str, Any] = {
        "index": index,
        "index__workspace": str(root),
        "embed__model": "none",
        "env": PATIENT,
    }
    with Memory.open(root, **options) as memory, Memory.open(root, **options) as elsewhere:
        memory.sync()
        with Upkeep(memory, tell):
            elsewhere.store.documents.drop(["MEMORY.md"])
            assert changed.wait(60.0)


def test_the_page_about_it_is_run(
    postgres: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its SQL as an administrator, then its commands in their order and its Python, on the sample
    notes.
    """
    sql = "\n".join(blocks("sql", ["docs/postgres.md"]))
    first, _, inside = sql.partition("\\c notewell\n")
    for database, part in (("postgres", first), ("notewell", inside)):
        for statement in filter(str.strip, part.split(";")):
            postgres.execute(statement, database)
    notes = Path(shutil.copytree(SAMPLE, tmp_path / "notes"))
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.chdir(notes)
    told(capsys, "index")
    url = postgres.url("notewell", "notewell")
    commands = [c for block in console("docs/postgres.md") for c in block]
    assert len(commands) > 7
    for command in commands:
        assert command.words[0] == "notewell"
        for name, value in command.given.items():
            monkeypatch.setenv(name, value.replace(ADDRESS, url))
        words = [
            word.replace(ADDRESS, url).replace(OF_ADMIN, postgres.url("notewell"))
            for word in command.words[1:]
        ]
        told(capsys, *words)
        for name in command.given:
            monkeypatch.delenv(name)
    with Memory.open(notes, index=url, embed__model="hashed", env=PATIENT) as memory:
        status = memory.status()
        assert status.fresh
        assert status.pending == 0
        assert status.database is not None
        shown = tmp_path / "shown.py"
        for code in blocks("py", ["docs/postgres.md"]):
            assert "shared.admit" in code
            shown.write_text(code, encoding="utf-8")
            runpy.run_path(str(shown), init_globals={"memory": memory})
    granted = (
        "SELECT has_table_privilege('alice', 'notewell.chunks', 'INSERT'), members FROM "
        "notewell.workspaces"
    )
    assert postgres.execute(granted, "notewell") == [(True, [])], (
        "admitted, and expelled from this one again"
    )


def test_serve_says_that_the_server_is_away_and_answers_when_it_is_back(
    own_server: Server, root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("MEMORY.md", "The staging port is 8080.")
    monkeypatch.setenv("NOTEWELL_INDEX_URL", own_server.database("empty"))
    monkeypatch.setenv("NOTEWELL_INDEX_TIMEOUT_S", "5")
    with serving(root, model="none") as served:
        assert served.get("/api/search?query=staging").json["results"]
        own_server.kill()
        away = served.get("/api/search?query=port")
        assert (away.status, away.json["error"]["code"]) == (503, "store_away")
        assert served.get("/api/search?query=port+staging").status == 503
        own_server.start()
        assert served.get("/api/search?query=port").json["results"][0]["path"] == "MEMORY.md"


def test_the_ranking_is_measured_over_a_database_and_nothing_is_left_there(
    index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("eval", str(write_set(tmp_path / "tiny")), "--cache", str(tmp_path), "--json")
    ours, theirs = (
        json.loads(told(capsys, *asked, *more))["sets"]["tiny"] for more in ((), ("--index", index))
    )
    assert set(ours) == set(theirs) == {"default", "lexical", "vector"}
    for profile, figures in ours.items():
        assert theirs[profile]["ndcg@10"] == pytest.approx(figures["ndcg@10"], abs=0.01)
    store = PostgresStore(index, workspace="eval tiny w1")
    assert store.counts()["documents"] == store.counts()["vectors"] == 0
    store.close()


@pytest.mark.parametrize(
    "words",
    [["search", "port", "--index", ""], ["migrate", "", "x.sqlite"], ["index", "--index", " "]],
)
def test_an_index_without_a_name_is_refused(
    words: list[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable that is not set must not mean another index than the one that was meant."""
    assert run([*words, "-w", str(root)]) == 2
    assert "the name of the index is empty" in capsys.readouterr().err
    assert not (root / ".notewell").exists()
