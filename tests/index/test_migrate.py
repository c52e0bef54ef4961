from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import StoreError, UsageError
from notewell.index.migrate import migrate
from notewell.memory import Memory
from notewell.notes.tombstones import tombstones_of
from notewell.store.rows import hash_kept
from notewell.store.sqlite.store import SqliteStore
from notewell.surfaces.cli.commands import run
from tests.conftest import PATIENT, Write
from tests.embed.models import Windowed

GOLDEN = Path(__file__).parents[1] / "golden/notes"
QUESTIONS = ("who keeps the staging port", "deploy day", "which database", "2026")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with links, copies, contradictions, something forgotten, and vectors of two
    models.
    """
    root = tmp_path_factory.mktemp("made") / "notes"
    shutil.copytree(GOLDEN, root)
    (root / "memory/one.md").write_text("The staging port of atlas is 8080. See [[two]].\n")
    (root / "memory/two.md").write_text("The staging port of atlas is 9090.\n")
    (root / "memory/three.md").write_text(
        "A passage about the quixotic zeppelin that is to be forgotten.\n"
    )
    (root / "memory/empty.md").write_text("")
    for model in (Windowed(), HashedEmbedder(64)):
        with Memory.open(root, embedder=model, env=PATIENT) as memory:
            memory.sync()
            memory.forget(query="quixotic zeppelin", yes=True)
    return root


@pytest.fixture
def source(made: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(made / ".notewell/index.sqlite")
    yield store
    store.close()


def answers(root: Path, index: Path) -> list[Any]:
    with Memory.open(root, index=index, embedder=HashedEmbedder(64), env=PATIENT) as memory:
        found = [memory.search(q, profile=p) for q in QUESTIONS for p in ("default", "rrf")]
        return [
            [(h.chunk.id, round(h.score, 6), h.superseded_by, h.conflicts_with) for h in f.hits]
            for f in found
        ]


def test_everything_comes_over_and_answers_the_same_without_a_model(
    source: SqliteStore, made: Path, tmp_path: Path
) -> None:
    target = SqliteStore(tmp_path / "copy.sqlite")
    done = migrate(source, target)
    counts = {part.what: part.count for part in done.parts}
    assert done.verified
    assert done.copied == counts["documents"] == source.counts()["documents"]
    assert (
        counts["passages"]
        == counts["keywords"]
        == counts["judgements"]
        == source.counts()["chunks"]
    )
    assert counts["vectors"] == 2 * len(
        {c.content_hash for p in source.documents.stored() for c in source.documents.chunks_of(p)}
    )
    assert counts["links"]
    assert counts["windows"] > 10
    assert counts["tombstones"] == len(tombstones_of(source).load().stones) > 0
    assert target.audit() == []
    assert target.relations.unjudged(1) == []
    target.close()
    with Memory.open(
        made, index=tmp_path / "copy.sqlite", embedder=HashedEmbedder(64), env=PATIENT
    ) as memory:
        report = memory.sync()
    assert (report.added, report.changed, report.embedded) == (0, 0, 0)
    assert answers(made, tmp_path / "copy.sqlite") == answers(made, made / ".notewell/index.sqlite")


def test_a_run_that_was_stopped_is_taken_up_and_does_nothing_twice(
    source: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notewell.index.migrate._BATCH", 3)
    target = SqliteStore(tmp_path / "copy.sqlite")
    total = len(source.documents.stored())
    for stop in (("notes", 4), ("notes", 7), ("likeness", 3)):

        def stopped(what: str, done: int, _total: int, stop: tuple[str, int] = stop) -> None:
            if what == stop[0] and done >= stop[1]:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            migrate(source, target, progress=stopped)
        assert (target.counts()["documents"] < total) == (stop[0] == "notes")
    done = migrate(source, target)
    assert (done.copied, done.already, done.verified) == (0, total, True)
    assert migrate(source, target).copied == 0, "a second run finds nothing to do"
    target.close()


def test_other_notes_are_not_overwritten_unless_told(source: SqliteStore, tmp_path: Path) -> None:
    target = SqliteStore(tmp_path / "copy.sqlite")
    root = tmp_path / "other"
    (root / "memory").mkdir(parents=True)
    (root / "memory/one.md").write_text("Something else altogether.\n")
    with Memory(
        root,
        Memory.open(root, env=PATIENT).settings,
        target,
        embedder=HashedEmbedder(32),
        env=PATIENT,
    ) as memory:
        memory.sync()
        with pytest.raises(StoreError, match="holds other notes") as caught:
            migrate(source, target)
        assert "--overwrite" in caught.value.hint
        assert [c.text for c in target.documents.chunks_of("memory/one.md")] == [
            "Something else altogether."
        ]
        assert migrate(source, target, overwrite=True).verified
        assert "8080" in target.documents.chunks_of("memory/one.md")[0].text


def test_what_does_not_agree_is_seen(source: SqliteStore, tmp_path: Path) -> None:
    target = SqliteStore(tmp_path / "copy.sqlite")
    migrate(source, target)
    chunk = target.documents.chunks_of("memory/one.md")[0]
    target.connection.db.execute("UPDATE chunks SET text = 'another' WHERE row = ?", (chunk.row,))
    target.connection.db.execute(
        "DELETE FROM vectors WHERE content_hash = ?", (hash_kept(chunk.content_hash),)
    )
    done = migrate(source, target)
    assert not done.verified
    assert [p.what for p in done.parts if not p.same] == ["passages", "vectors"]
    target.connection.db.execute("UPDATE windows SET codes = x'00'")
    target.vectors.forget()
    assert "windows" in [p.what for p in migrate(source, target).parts if not p.same]
    target.close()


def test_one_index_is_not_both_ends(source: SqliteStore) -> None:
    with pytest.raises(UsageError, match="both"):
        migrate(source, source)


def test_while_another_process_indexes_it_waits_and_says_so(
    source: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = SqliteStore(tmp_path / "copy.sqlite")
    real = SqliteStore.exclusive
    monkeypatch.setattr(SqliteStore, "exclusive", lambda self, _wait_s: real(self, 0.0))
    with source.exclusive(0.0), pytest.raises(StoreError, match="indexing"):
        migrate(source, target)
    target.close()


def test_the_command_prints_the_proof(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index, copy = str(made / ".notewell/index.sqlite"), str(tmp_path / "copy.sqlite")
    assert run(["migrate", index, copy, "-w", str(made)]) == 0
    out = capsys.readouterr().out
    assert "verified" in out
    assert "judgements" in out
    assert run(["migrate", index, copy, "-w", str(made), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verified"] is True
    assert told["copied"] == 0
    assert run(["migrate", str(tmp_path / "none.sqlite"), copy]) == 2
    assert "there is no index" in capsys.readouterr().err


def test_without_the_driver_the_error_names_the_extra(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a.md", "one")
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    assert (
        run(["search", "one", "-w", str(root), "--index", "postgresql://ann:hush@localhost/notes"])
        == 1
    )
    err = capsys.readouterr().err
    assert "pip install 'notewell[postgres]'" in err
    assert "hush" not in err
    assert (
        run(["search", "one", "-w", str(root), "--index", "mysql://ann:hush@localhost/notes"]) == 2
    )
    assert "hush" not in capsys.readouterr().err
