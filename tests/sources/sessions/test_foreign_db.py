"""A database of another program is read while it is used, and nothing of it changes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from notewell.memory import Memory
from notewell.sources.sessions import foreign_db
from notewell.sources.sessions.foreign_db import WRITTEN, ForeignDb, unpacked
from notewell.sources.sessions.session_source import SessionSource
from tests.conftest import CountingEmbedder
from tests.sources.sessions.layouts import ANSWER, LAYOUTS, QUESTION, database, run

OPENCLAW = next(one for one in LAYOUTS if one.program == "OpenClaw")
GOOSE = next(one for one in LAYOUTS if one.program == "Goose")


def stats(folder: Path) -> dict[str, tuple[int, int]]:
    return {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.iterdir()}


def numbers(file: Path) -> list[int]:
    with ForeignDb(str(file)) as db:
        return [row[0] for row in db.rows("SELECT x FROM t ORDER BY x")]


@pytest.mark.parametrize("wal", [True, False])
def test_what_is_not_yet_moved_out_of_the_wal_is_seen_and_no_file_changes(
    tmp_path: Path, *, wal: bool
) -> None:
    file = database(tmp_path / "a.db", "CREATE TABLE t (x); INSERT INTO t VALUES (1)", wal=wal)
    assert os.listdir(tmp_path) == ["a.db"]
    before = stats(tmp_path)
    assert numbers(file) == [1]
    assert stats(tmp_path) == before
    writer = apsw.Connection(str(file))
    writer.execute("INSERT INTO t VALUES (2)")
    before = stats(tmp_path)
    assert numbers(file) == [1, 2]
    assert stats(tmp_path) == before
    with ForeignDb(str(file)) as db:
        rows = db.rows("SELECT x FROM t")
        next(rows)
        writer.execute("INSERT INTO t VALUES (3)")  # nobody waits for us
        with pytest.raises(OSError, match="is writing to it"):
            db.check()
    writer.close()
    assert numbers(file) == [1, 2, 3]


def stale_wal(file: Path) -> None:
    """A WAL of which nothing is valid, as one has it that was begun anew."""
    writer = apsw.Connection(str(file))
    writer.execute("INSERT INTO t VALUES (2)")
    wal = Path(f"{file}-wal").read_bytes()
    writer.close()
    Path(f"{file}-wal").write_bytes(wal[:16] + bytes(8) + wal[24:])


@pytest.mark.parametrize(
    "broken",
    [stale_wal, lambda f: Path(f"{f}-wal").write_bytes(os.urandom(9000))],
    ids=["stale", "bad"],
)
def test_a_wal_is_never_deleted_nor_written(tmp_path: Path, broken: Callable[[Path], None]) -> None:
    file = database(tmp_path / "a.db", "CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    broken(file)
    (tmp_path / "b.db").touch()
    (tmp_path / "b.db-wal").write_bytes(b"something")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with contextlib.suppress(OSError):
        assert 1 in numbers(file)
    with pytest.raises(OSError, match="it is empty"):
        numbers(tmp_path / "b.db")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_it_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    file = database(tmp_path / "a b%#?.db", "CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    file.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert numbers(file) == [1]
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "data",
    [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4096],
    ids=["empty", "text", "bad"],
)
def test_what_is_no_database_is_reported_and_the_rest_is_found(
    own_environment: Path, root: Path, data: bytes
) -> None:
    GOOSE.make(own_environment, root)
    bad = own_environment / ".hermes/state.db"
    bad.parent.mkdir()
    bad.write_bytes(data)
    scanned = SessionSource(root).scan()
    assert [s.path for s in scanned.skipped] == [str(bad)]
    assert [Path(d.path).name for d in scanned.documents] == ["20261116_1"]
    assert scanned.complete


def test_an_unknown_version_is_reported_and_not_guessed(
    own_environment: Path, root: Path, embedder: CountingEmbedder
) -> None:
    database(
        own_environment / ".local/share/opencode/opencode.db", "CREATE TABLE session_v9 (id TEXT)"
    )
    with Memory.open(root, sources="memory,sessions", embedder=embedder) as memory:
        notice = next(n for n in memory.search("staging").notices if n.code == "unread_notes")
    assert "opencode.db (an unknown version of opencode" in notice.message


def test_a_program_that_writes_at_that_moment_loses_nothing(
    own_environment: Path, root: Path, embedder: CountingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    GOOSE.make(own_environment, root)
    with Memory.open(root, sources="sessions", embedder=embedder) as memory:
        memory.sync()
        with monkeypatch.context() as patch:
            patch.setattr(ForeignDb, "is_old", lambda _: True)
            report = memory.sync()
            assert (report.dropped, report.complete) == (0, False)
        assert memory.search(QUESTION).hits
        assert not memory.search(QUESTION).hits[0].kept
    source = SessionSource(root)
    (document,) = source.scan().documents
    with monkeypatch.context() as patch:
        patch.setattr(ForeignDb, "is_old", lambda _: True)
        assert source.read_from(document, None).unread == WRITTEN


def packed(place: Path) -> None:
    """The answer, as OpenClaw packs an event that is long."""
    zstandard = pytest.importorskip("zstandard")
    with apsw.Connection(str(place)) as db:
        for seq, text in db.execute("SELECT seq, event_json FROM transcript_events").fetchall():
            if isinstance(text, str) and ANSWER in text:
                data = zstandard.ZstdCompressor().compress(text.encode())
                navigation = json.dumps(
                    {
                        "version": 1,
                        "report": {"kind": "canonical"},
                        "navigation": {},
                        "reset": {},
                        "model": {},
                        "modelBytes": 0,
                        "modelWithoutCheckpointBytes": 0,
                        "withoutCustomDataBytes": 0,
                    }
                )
                db.execute(
                    "UPDATE transcript_events SET event_json = NULL, event_zstd = ?,"
                    " event_utf8_bytes = ?, navigation_json = ? WHERE seq = ?",
                    (data, len(text.encode()), navigation, seq),
                )
    db.close()


def test_packed_events_are_read_or_the_package_for_them_is_named(
    own_environment: Path, root: Path, embedder: CountingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed(OPENCLAW.make(own_environment, root))
    with Memory.open(root, sources="memory,sessions", embedder=embedder) as memory:
        with monkeypatch.context() as patch:
            for module in ("foreign_db", "openclaw_sessions"):
                patch.setattr(f"notewell.sources.sessions.{module}.unpacker", lambda: None)
            found = memory.search(QUESTION)
            assert any(QUESTION in hit.chunk.text for hit in found.hits)
            assert not any(ANSWER in hit.chunk.text for hit in found.hits)
            notice = next(n for n in found.notices if n.code == "unread_notes")
            assert "pip install notewell[zstd]" in notice.message
        found = memory.search(QUESTION)  # the package is there now
        assert any(ANSWER in hit.chunk.text for hit in found.hits)
        assert not any(n.code == "unread_notes" for n in found.notices)


def test_a_packed_bomb_and_rubbish_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    zstandard = pytest.importorskip("zstandard")
    monkeypatch.setattr(foreign_db, "_MOST_BYTES", 1000)
    assert unpacked(zstandard.ZstdCompressor().compress(b"x" * 900)) == b"x" * 900
    for data in (zstandard.ZstdCompressor().compress(b"x" * 100_000), b"rubbish", b""):
        with pytest.raises(ValueError, match="cannot be unpacked"):
            unpacked(data)


def test_odd_values_in_a_database_do_not_stop_the_others(own_environment: Path, root: Path) -> None:
    place = GOOSE.make(own_environment, root)
    run(
        place,
        (
            "INSERT INTO sessions (id, working_dir) SELECT '../../e''vil #?\n', working_dir FROM "
            "sessions LIMIT 1"
        ),
        "INSERT INTO messages (session_id, role, content_json, created_timestamp)"
        " VALUES ('20261116_1', 'user', '[[[[', 1), ('20261116_1', 'user', x'00ff', -1)",
    )
    source = SessionSource(root)
    documents = source.scan().documents
    assert len(documents) == 2
    for document in documents:
        assert "\n" not in document.path
        assert source.document(document.path) == document
        source.read_from(document, None)
        source.edges(document)
    assert [t.text for t in source.read_from(documents[-1], None).turns][-1] == ANSWER
