from __future__ import annotations

import contextlib
import datetime as dt
import os
import sqlite3
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from notewell import Memory
from notewell.embed import registry
from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import (
    EmbedderError,
    NotFoundError,
    SettingsError,
    StoreError,
    StoreVersionError,
    UsageError,
    WorkspaceError,
)
from notewell.store.nearest import find_workspace
from notewell.store.sqlite.store import SqliteStore
from notewell.store.sqlite.vectors import VectorTable
from notewell.types import Filters, Found, Role, Vectors
from tests.conftest import CountingEmbedder, Write, sqlite_of

NOW = dt.datetime(2026, 6, 1, 9, 0)  # noqa: DTZ001 - a morning of this place
DEPLOY = "Deploys go out on Tuesday. The staging port is 8443."


@pytest.fixture
def notes(write: Write) -> None:
    write(
        "MEMORY.md", "# Memory\n\n- Mira owns the billing service.\n- The staging port is 8080.\n"
    )
    write("USER.md", "Prefers short answers.\n")
    write("memory/2026-05-06.md", f"# Standup\n\nWe met.\n\n## Deploy\n\n{DEPLOY}\n")
    write("memory/2026-03-01.md", "# Standup\n\nThe auth tokens are rotated every week by Mira.\n")
    for n in range(30):
        write(
            f"memory/topic-{n:02}.md",
            f"# Topic {n}\n\nA staging note about subject{n} and the garden of port{n}.\n",
        )


def codes(found: Found) -> list[str]:
    return [n.code for n in found.notices]


def shown(found: Found) -> list[tuple[str, float]]:
    return [(h.chunk.id, h.score) for h in found.hits]


pytestmark = pytest.mark.usefixtures("notes")


def test_a_fresh_note_is_found_by_the_next_search(memory: Memory, write: Write, root: Path) -> None:
    memory.search("zeppelin mooring", now=NOW)
    place = write("memory/new.md", "The zeppelin mooring mast is rusty.", age_s=0)
    assert memory.search("zeppelin mooring", now=NOW).hits[0].chunk.path == "memory/new.md"
    place.write_text("The zeppelin mooring mast was painted.")
    assert "painted" in memory.search("zeppelin mooring", now=NOW).hits[0].snippet
    place.unlink()
    assert all(
        h.chunk.path != "memory/new.md" for h in memory.search("zeppelin mooring", now=NOW).hits
    )


def test_the_same_question_gives_the_same_answer(memory: Memory) -> None:
    first, second = (memory.search("staging port", now=NOW) for _ in range(2))
    assert first.hits
    assert first.hits == second.hits


def test_fewer_hits_are_the_head_of_more(memory: Memory) -> None:
    many = shown(memory.search("staging port garden", limit=20, now=NOW))
    assert len(many) == 20
    for limit in (1, 3, 7):
        assert shown(memory.search("staging port garden", limit=limit, now=NOW)) == many[:limit]


def test_an_answer_does_not_depend_on_how_the_index_came_about(
    root: Path, tmp_path: Path, write: Write, memory: Memory
) -> None:
    memory.sync()
    write("memory/a-late-one.md", "A staging note about port7 that came late.")
    memory.sync()
    with Memory.open(
        root, embedder=HashedEmbedder(), index__path=str(tmp_path / "other.sqlite")
    ) as other:
        other.sync()
        for question in ("staging port", "garden subject7", "Mira", "port7"):
            one, two = (
                memory.search(question, limit=20, now=NOW),
                other.search(question, limit=20, now=NOW),
            )
            assert shown(one) == shown(two)


def test_the_lines_of_a_hit_are_where_its_text_stands(memory: Memory, root: Path) -> None:
    for hit in memory.search("staging port", limit=20, now=NOW).hits:
        lines = (root / hit.chunk.path).read_text().split("\n")
        assert "\n".join(lines[hit.chunk.start_line - 1 : hit.chunk.end_line]) == hit.chunk.text


def test_get_returns_what_a_hit_cites(memory: Memory) -> None:
    for hit in memory.search("staging port", limit=5, now=NOW).hits:
        chunk = hit.chunk
        by_lines = f"{chunk.path}:{chunk.start_line}-{chunk.end_line}"
        for reference in (chunk.id, chunk.id[:8], chunk.citation, by_lines):
            text = memory.get(reference)
            assert (text.path, text.start_line, text.end_line, text.text) == (
                chunk.path,
                chunk.start_line,
                chunk.end_line,
                chunk.text,
            )


def test_get_by_id_follows_a_passage_that_moved(memory: Memory, write: Write) -> None:
    chunk = memory.search("staging port 8443", now=NOW).hits[0].chunk
    assert chunk.text == DEPLOY
    write(
        "memory/2026-05-06.md",
        f"A new first line.\n\n# Standup\n\nWe met.\n\n## Deploy\n\n{DEPLOY}\n",
        age_s=0,
    )
    assert memory.get(chunk.id).text == DEPLOY


def test_get_takes_whole_files_and_single_lines(memory: Memory) -> None:
    whole = memory.get("USER.md")
    assert (whole.text, whole.start_line, whole.end_line) == ("Prefers short answers.", 1, 1)
    assert memory.get("MEMORY.md:3").text == "- Mira owns the billing service."
    assert memory.get("MEMORY.md#L3").text == "- Mira owns the billing service."
    assert memory.get("MEMORY.md:3-99").end_line == 4


def test_get_takes_a_name_in_either_unicode_form(memory: Memory, write: Write) -> None:
    write("memory/café.md", "menu")
    assert memory.get(unicodedata.normalize("NFD", "memory/café.md")).text == "menu"


@pytest.mark.parametrize(
    "reference",
    ["memory/none.md", "MEMORY.md:99", "MEMORY.md:4-3", "../secret.md", "/etc/passwd", "", "\0"],
)
def test_get_of_what_is_not_there_or_not_ours_is_an_error_with_a_hint(
    memory: Memory, root: Path, reference: str
) -> None:
    (root.parent / "secret.md").write_text("secret")
    with pytest.raises(NotFoundError) as caught:
        memory.get(reference)
    assert caught.value.hint


def test_get_of_a_file_that_became_binary_says_so(memory: Memory, write: Write) -> None:
    write("memory/topic-00.md", b"\0\0")
    with pytest.raises(NotFoundError, match="a binary file"):
        memory.get("memory/topic-00.md")


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(since=dt.date(2026, 5, 1), until=dt.date(2026, 5, 31)), {"memory/2026-05-06.md"}),
        (Filters(until=dt.date(2026, 4, 1)), {"memory/2026-03-01.md"}),
        (Filters(path="memory/2026-*.md"), {"memory/2026-05-06.md", "memory/2026-03-01.md"}),
        (Filters(path="MEMORY.md"), {"MEMORY.md"}),
        (Filters(source="extra"), set()),
    ],
)
def test_filters_are_kept_to(memory: Memory, filters: Filters, expected: set[str]) -> None:
    found = memory.search(
        "staging port mira standup", limit=50, filters=filters, now=NOW, min_score=0.0
    )
    assert {h.chunk.path for h in found.hits} == expected


def test_a_token_budget_ends_the_list_but_never_before_the_first_hit(memory: Memory) -> None:
    every = shown(memory.search("staging port garden", limit=20, now=NOW))
    some = shown(memory.search("staging port garden", limit=20, budget_tokens=60, now=NOW))
    assert 1 < len(some) < 20
    assert some == every[: len(some)]
    assert len(memory.search("staging port garden", limit=20, budget_tokens=1, now=NOW).hits) == 1


class FailingEmbedder(HashedEmbedder):
    """Gives vectors for notes, and none for questions."""

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        if role == "query":
            raise EmbedderError("no answer from the model", hint="start it")
        return super().embed(texts, role)


def test_a_model_that_fails_at_the_question_leaves_keywords_and_says_so(root: Path) -> None:
    with Memory.open(root, embedder=FailingEmbedder()) as memory:
        found = memory.search("billing service", now=NOW)
    assert found.hits[0].chunk.path == "MEMORY.md"
    assert found.mode == "lexical"
    (notice,) = [n for n in found.notices if n.code == "vector_failed"]
    assert "no answer from the model" in notice.message
    assert notice.hint == "start it"


def test_a_model_that_cannot_be_loaded_leaves_keywords_and_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_name: str, **_options: Any) -> None:
        raise EmbedderError("the model file is gone", hint="pip install it")

    monkeypatch.setattr(registry, "embedder", broken)
    with Memory.open(root) as memory:
        found, report, status = (
            memory.search("billing service", now=NOW),
            memory.sync(),
            memory.status(),
        )
    assert found.hits[0].chunk.path == "MEMORY.md"
    assert (found.mode, found.embedder, status.embedder) == ("lexical", "none", "none")
    for notices in (found.notices, report.notices, status.notices):
        assert [(n.code, n.hint) for n in notices] == [("no_embedder", "pip install it")]


def test_keywords_only_is_a_choice_and_no_fault(root: Path) -> None:
    with Memory.open(root, embed__model="none") as memory:
        found = memory.search("billing service", now=NOW)
    assert (found.mode, found.embedder, found.notices) == ("lexical", "none", ())


def test_an_unknown_model_is_a_wrong_setting(root: Path) -> None:
    with Memory.open(root, embed__model="hashd") as memory, pytest.raises(SettingsError) as caught:
        memory.search("billing")
    assert caught.value.hint == "did you mean hashed?"


def test_notes_without_vectors_are_found_by_keywords_and_the_answer_says_how_many(
    root: Path,
) -> None:
    with Memory.open(root, embedder=HashedEmbedder(), embed__budget_s=-1.0) as memory:
        for sync in (True, False):
            found = memory.search("billing service", now=NOW, sync=sync)
            assert found.hits[0].chunk.path == "MEMORY.md"
            assert found.mode == "lexical"
            (notice,) = found.notices
            assert notice.code == "vectors_pending"
            assert notice.message.startswith("36 of 36 passages have no vector yet")
            assert notice.hint == "run: notewell index"
        memory.sync()
        assert memory.search("billing service", now=NOW).notices == ()


def test_a_switch_of_models_answers_by_keywords_until_it_is_done(
    root: Path, memory: Memory
) -> None:
    memory.sync()
    with Memory.open(root, embedder=HashedEmbedder(64), embed__budget_s=-1.0) as other:
        found = other.search("billing service", now=NOW)
        assert found.hits[0].chunk.path == "MEMORY.md"
        assert codes(found) == ["vectors_pending"]
        assert other.sync().embedded == 36
        assert other.search("billing service", now=NOW).mode == "hybrid"


def test_eight_threads_search_at_once_and_get_the_same(memory: Memory) -> None:
    memory.sync()
    expected = memory.search("staging port", now=NOW)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: memory.search("staging port", now=NOW), range(40)))
    assert all(f.hits == expected.hits for f in found)
    assert {(f.stale, f.notices) for f in found} == {(False, ())}


def test_while_another_process_indexes_a_search_answers_from_what_there_is(
    memory: Memory, write: Write
) -> None:
    memory.sync()
    write("memory/new.md", "zeppelin")
    with memory.store.exclusive(0.0):
        found = memory.search("zeppelin staging", now=NOW, min_score=0.0)
        with pytest.raises(StoreError, match="another process is indexing"):
            memory.sync(wait_s=0.0)
    assert found.hits
    assert found.stale
    assert codes(found) == ["indexing"]


def test_sync_reports_counts_and_its_time_with_embedding(
    memory: Memory, embedder: CountingEmbedder
) -> None:
    report = memory.sync()
    assert (report.added, report.chunks, report.embedded, report.pending) == (34, 36, 36, 0)
    assert report.took_ms > 0
    again = memory.sync()
    assert (again.added, again.changed, again.unchanged, again.embedded) == (0, 0, 34, 0)
    assert len(embedder.documents) == 36


def test_the_time_of_a_sync_includes_that_of_the_model(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("notewell.search.search.time.perf_counter", lambda: clock[0])

    class SlowEmbedder(HashedEmbedder):
        def embed(self, texts: Sequence[str], role: Role) -> Vectors:
            clock[0] += 5.0
            return super().embed(texts, role)

    with Memory.open(root, embedder=SlowEmbedder()) as memory:
        assert memory.sync().took_ms >= 5000


def test_status_compares_the_files_with_the_index(memory: Memory, write: Write, root: Path) -> None:
    before = memory.status()
    assert (before.on_disk, before.documents, before.to_add, before.fresh) == (34, 0, 34, False)
    write("memory/just-now.md", "written a moment before the sync", age_s=0)
    memory.sync()
    status = memory.status()
    assert status.fresh, "a file is not doubtful only because it is new"
    assert (status.on_disk, status.documents, status.chunks) == (35, 35, 37)
    assert (status.embedder, status.embedded, status.pending) == ("hashed@256", 37, 0)
    assert status.models == (("hashed@256", 256, 37),)
    assert status.bytes > 0
    (root / "memory/topic-00.md").unlink()
    write("memory/topic-01.md", "changed")
    write("memory/topic-new.md", "new")
    later = memory.status()
    assert (later.to_add, later.to_change, later.to_drop, later.fresh) == (1, 1, 1, False)
    assert later.documents == 35, "looking changes nothing"


def test_a_file_that_cannot_be_indexed_does_not_make_the_index_stale(
    memory: Memory, write: Write
) -> None:
    write("memory/binary.md", b"\0")
    memory.sync()
    status = memory.status()
    assert status.fresh
    assert [(s.path, s.reason) for s in status.skipped] == [("memory/binary.md", "a binary file")]


def test_why_tells_the_rank_of_a_passage_that_is_shown(memory: Memory) -> None:
    found, why = memory.why("staging port 8443", "memory/2026-05-06.md", now=NOW)
    assert found.hits[0].chunk.id == why.chunk.id
    assert (why.rank, why.verdict) == (1, "returned at rank 1")
    assert why.lines[0].startswith("lexical: rank 1 of")


def test_why_names_the_stage_that_dropped_a_passage(memory: Memory) -> None:
    found = memory.search("staging garden", limit=50, now=NOW)
    last = found.hits[-1].chunk
    _, why = memory.why("staging garden", last.id, limit=3, now=NOW)
    assert why.rank is None
    assert why.verdict.startswith("dropped by Cut")
    assert "limit of 3" in why.verdict


def test_why_says_that_no_leg_found_a_passage_and_why_not(root: Path) -> None:
    with Memory.open(root, embed__model="none") as memory:
        _, why = memory.why("garden", "USER.md", now=NOW)
    assert why.verdict == "no leg found it"
    assert "lexical: not among its 30 candidates: it shares no word with the question" in why.lines
    assert "vector: meaning search did not take part" in why.lines


def test_why_takes_lines_and_refuses_what_is_not_indexed(memory: Memory) -> None:
    _, why = memory.why("billing", "MEMORY.md:3", now=NOW)
    assert why.chunk.text == "- Mira owns the billing service."
    with pytest.raises(NotFoundError) as caught:
        memory.why("billing", "memory/none.md", now=NOW)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "   ", "?!... --- ***", "\0\0", '"', "\ud800"])
def test_a_question_without_a_word_finds_nothing_and_says_what_to_do(
    memory: Memory, text: str
) -> None:
    found = memory.search(text, now=NOW)
    assert found.hits == ()
    assert [(n.code, n.hint) for n in found.notices] == [("empty_query", "type some words")]


def test_a_question_of_a_hundred_kilobytes_is_cut_and_answered(memory: Memory) -> None:
    found = memory.search("billing service " + "word " * 20_000, now=NOW)
    assert found.hits[0].chunk.path == "MEMORY.md"
    assert codes(found) == ["query_cut"]


@pytest.mark.parametrize(
    "text",
    [
        "billing\0service",
        "billing \ud800 service",
        'billing" OR NEAR(* service',
        "billing AND NOT service",
    ],
)
def test_nul_bytes_surrogates_and_operators_are_data(memory: Memory, text: str) -> None:
    assert memory.search(text, now=NOW).hits[0].chunk.path == "MEMORY.md"


def test_a_limit_below_one_and_an_unknown_profile_are_refused(memory: Memory) -> None:
    with pytest.raises(UsageError, match="limit is 0"):
        memory.search("billing", limit=0)
    with pytest.raises(UsageError) as caught:
        memory.search("billing", profile="defualt")
    assert caught.value.hint == "did you mean default?"


def test_a_workspace_that_is_not_there_or_no_folder_is_refused(tmp_path: Path, root: Path) -> None:
    with pytest.raises(WorkspaceError, match="does not exist") as caught:
        Memory.open(tmp_path / "nowhere")
    assert "make the folder" in caught.value.hint
    with pytest.raises(WorkspaceError, match="is not a folder"):
        Memory.open(root / "MEMORY.md")


def test_a_closed_memory_says_so(root: Path) -> None:
    memory = Memory.open(root, embedder=HashedEmbedder())
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.search("billing")


def test_an_unreadable_folder_makes_the_answer_stale_and_loses_nothing(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.sync()
    real = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path) == root / "memory":
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = memory.search("auth tokens", now=NOW)
    assert found.hits[0].chunk.path == "memory/2026-03-01.md"
    assert found.stale
    assert codes(found) == ["scan_cut"]
    (told,) = found.notices
    assert told.message == (
        "1 folder cannot be read, so this answer may miss what is new in there: memory "
        "(Permission denied)"
    )
    assert "chmod u+rx" in told.hint
    assert "notewell index" not in told.hint, "which reads no more than this search did"


def test_a_full_disk_leaves_the_answer_as_it_was_and_says_so(memory: Memory, write: Write) -> None:
    memory.sync()
    db = sqlite_of(memory).connection.db
    pages = db.execute("PRAGMA page_count").fetchall()[0][0]
    db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    write(
        "memory/huge.md",
        "\n\n".join(f"# Part {n}\n\nzeppelin {n} " + f"w{n} " * 300 for n in range(60)),
    )
    found = memory.search("billing service", now=NOW)
    assert found.hits[0].chunk.path == "MEMORY.md"
    assert found.stale
    (notice,) = found.notices
    assert notice.code == "not_synced"
    assert "the disk is full" in notice.message
    assert "free some space" in notice.hint
    with pytest.raises(StoreError, match="disk is full"):
        memory.sync()


def test_a_full_disk_while_vectors_are_kept_costs_no_keyword(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: SqliteStore, _model: str, _vectors: Any, **_windows: Any) -> None:
        raise StoreError("the disk is full", hint="free some space")

    monkeypatch.setattr(VectorTable, "put_vectors", full)
    found = memory.search("billing service", now=NOW)
    assert found.hits[0].chunk.path == "MEMORY.md"
    assert codes(found) == ["not_synced", "vectors_pending"]


def test_an_index_stands_in_its_own_folder_that_git_ignores(memory: Memory, root: Path) -> None:
    assert Path(memory.store.name) == root / ".notewell" / "index.sqlite"
    assert (root / ".notewell" / ".gitignore").read_text() == "*\n"
    assert Path(memory.store.name).stat().st_mode & 0o777 == 0o600


def test_in_a_read_only_workspace_the_index_is_in_the_users_data_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.mkdir

    def mkdir(self: Path, *args: Any, **kwargs: Any) -> None:
        if self == root / ".notewell":
            raise OSError(30, "Read-only file system")
        real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    env = {"XDG_DATA_HOME": str(tmp_path / "data")}
    with Memory.open(root, env=env, embedder=HashedEmbedder()) as memory:
        found = memory.search("billing service", now=NOW)
        place = Path(memory.store.name)
    assert found.hits[0].chunk.path == "MEMORY.md"
    assert place.is_relative_to(tmp_path / "data" / "notewell")
    assert not (root / ".notewell").exists()
    (notice,) = found.notices
    assert notice.code == "index_elsewhere"
    assert "index.path" in notice.hint
    with Memory.open(root, env=env, embedder=HashedEmbedder()) as again:
        assert again.store.name == str(place), "the same workspace finds it again"


def test_when_no_place_can_be_written_the_error_says_what_to_set(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mkdir(self: Path, *_args: Any, **_kwargs: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    for more in ({}, {"NOTEWELL_INDEX_PATH": str(tmp_path / "no" / "index.sqlite")}):
        with pytest.raises(StoreError, match="Read-only file system") as caught:
            Memory.open(
                root,
                env={"XDG_DATA_HOME": str(tmp_path / "data"), **more},
                embedder=HashedEmbedder(),
            )
        assert "index.path" in caught.value.hint


def test_an_index_of_a_newer_version_is_left_alone(root: Path) -> None:
    Memory.open(root, embedder=HashedEmbedder()).close()
    file = root / ".notewell" / "index.sqlite"
    db = sqlite3.connect(file)
    db.execute("PRAGMA user_version = 999")
    db.close()
    before = file.read_bytes()
    with pytest.raises(StoreVersionError, match="newer notewell"):
        Memory.open(root)
    assert file.read_bytes() == before


def flip_text(data: bytearray) -> None:
    """One letter of a stored passage, in the table and not in the terms."""
    data[:] = data.replace(b"billing service.", b"Billing service.")


def garbage_header(data: bytearray) -> None:
    data[:100] = b"\x7f" * 100


def truncate(data: bytearray) -> None:
    del data[len(data) // 2 :]


def truncate_to_a_few_bytes(data: bytearray) -> None:
    del data[60:]


def zero_the_middle(data: bytearray) -> None:
    data[4096:-4096] = bytes(len(data) - 8192)


@pytest.mark.parametrize(
    "damage", [flip_text, garbage_header, truncate, truncate_to_a_few_bytes, zero_the_middle]
)
@pytest.mark.parametrize("by", ["search", "search without a look at the files", "sync"])
def test_a_damaged_index_is_set_aside_and_made_anew(root: Path, damage: Any, by: str) -> None:
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        memory.sync()
        expected = shown(memory.search("billing service", now=NOW))
    file = root / ".notewell" / "index.sqlite"
    data = bytearray(file.read_bytes())
    damage(data)
    file.write_bytes(data)
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        if by == "sync":
            told = [n.code for n in memory.sync(force=True).notices]
        else:
            found = memory.search("billing service", now=NOW, sync=by == "search")
            assert shown(found) == expected, "nobody has to ask twice"
            told = codes(found)
    assert told == ["index_rebuilt"]
    assert [p.name for p in file.parent.glob("*damaged*.sqlite")] == ["index.damaged-1.sqlite"]
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        again = memory.search("billing service", now=NOW)
    assert shown(again) == expected
    assert again.notices == ()


def test_a_broken_vector_table_is_made_again_by_the_search_that_meets_it(memory: Memory) -> None:
    memory.sync()
    sqlite_of(memory).connection.db.execute("UPDATE vectors SET vector = x'00'")
    sqlite_of(memory).vectors.forget()
    found = memory.search("billing service", now=NOW)
    assert found.hits[0].chunk.path == "MEMORY.md"
    assert found.mode == "hybrid"
    assert codes(found) == ["index_rebuilt"]
    assert memory.search("billing service", now=NOW).mode == "hybrid"


def test_a_deleted_index_comes_back_by_itself(root: Path, memory: Memory) -> None:
    expected = shown(memory.search("billing service", now=NOW))
    memory.close()
    for file in (root / ".notewell").glob("index.sqlite*"):
        file.unlink()
    with Memory.open(root, embedder=HashedEmbedder()) as again:
        assert shown(again.search("billing service", now=NOW)) == expected


def test_the_workspace_is_the_nearest_folder_upwards_that_looks_like_one(
    root: Path, tmp_path: Path
) -> None:
    deep = root / "src" / "deep"
    deep.mkdir(parents=True)
    assert find_workspace(deep, {}) == root
    assert find_workspace(tmp_path / "workspace", {}) == root
    assert find_workspace(deep, {"NOTEWELL_WORKSPACE": "/elsewhere"}) == Path("/elsewhere")
    bare = tmp_path / "bare"
    bare.mkdir()
    assert find_workspace(bare, {}) == bare


def test_the_packaged_model_finds_what_shares_no_word(root: Path, write: Write) -> None:
    write("memory/travel.md", "The flight to Lisbon leaves at dawn.")
    with Memory.open(root) as memory:
        report = memory.sync()
        found = memory.search("When does the plane to Portugal depart?", now=NOW)
    assert (report.pending, found.mode) == (0, "hybrid")
    assert found.hits[0].chunk.path == "memory/travel.md"
    assert found.embedder.startswith("local/")


def test_a_search_over_a_large_unindexed_tree_is_bounded_and_says_that_it_is_stale(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(300):
        write(
            f"memory/2026-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}-{n}.md",
            f"note number{n} about the walrus",
        )
    write("MEMORY.md", "- the curated walrus\n")
    now = [0.0]

    def clock() -> float:
        now[0] += 0.005
        return now[0]

    with Memory.open(root, embed__model="none", search__scan_s=1.0) as memory:
        monkeypatch.setattr("notewell.index.walk.time.monotonic", clock)
        found = memory.search("curated walrus")
        assert found.stale
        assert [n.code for n in found.notices] == ["sync_cut"]
        total = memory.status().on_disk
        assert 0 < len(memory.store.documents.stored()) < total
        assert found.hits[0].chunk.path == "MEMORY.md", (
            "what is indexed answers, the curated notes first"
        )
        begun = now[0]
        memory.search("curated walrus")
        assert now[0] - begun < 2.0, "by the clock of the engine"
        memory.sync()
        assert not memory.search("walrus").stale
        assert len(memory.store.documents.stored()) == total


@pytest.mark.parametrize("model", ["none", "hashed"])
def test_a_word_that_every_one_of_a_few_notes_has_is_found(
    root: Path, write: Write, model: str
) -> None:
    write("memory/a.md", "The zeppelin lands at noon.")
    write("memory/b.md", "Noted the zeppelin.")
    with Memory.open(root, embed__model=model) as memory:
        assert {h.chunk.path for h in memory.search("zeppelin").hits[:2]} == {
            "memory/a.md",
            "memory/b.md",
        }
        assert not any("zeppelin" in h.chunk.text for h in memory.search("submarine").hits)


def test_a_passage_that_is_replaced_during_a_search_is_found_all_the_same(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("memory/beacon.md", "The beacon stands at number 1.")
    file = root / ".notewell" / "index.sqlite"
    with (
        Memory.open(root, embed__model="none") as memory,
        Memory.open(root, embed__model="none") as other,
    ):
        memory.sync()
        lexical, times = memory.store.keywords.lexical, 0

        def then_it_moves(*arguments: Any) -> Any:
            nonlocal times
            found = lexical(*arguments)
            times += 1
            if times < 3:
                place.write_text(f"The beacon stands at number {times + 1}.")
                other.sync()
            return found

        monkeypatch.setattr(memory.store.keywords, "lexical", then_it_moves)
        hits = memory.search("where does the beacon stand", sync=False).hits
    assert [h.chunk.text for h in hits] == ["The beacon stands at number 3."]
    assert times == 3
    assert file.exists()


def test_where_others_write_all_the_time_they_wait_for_the_last_try(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("memory/beacon.md", "The beacon stands at number 0.")
    with (
        Memory.open(root, embed__model="none") as memory,
        Memory.open(root, embed__model="none") as other,
    ):
        memory.sync()
        lexical = memory.store.keywords.lexical
        written: list[int] = []

        def then_it_moves(*arguments: Any) -> Any:
            found = lexical(*arguments)
            place.write_text(f"The beacon stands at number {len(written) + 1}.")
            with contextlib.suppress(StoreError):  # the lock is held by the search
                other.sync(wait_s=0.0)
                written.append(1)
            return found

        monkeypatch.setattr(memory.store.keywords, "lexical", then_it_moves)
        hits = memory.search("where does the beacon stand", sync=False).hits
    assert [h.chunk.text for h in hits] == ["The beacon stands at number 3."]
    assert len(written) == 3


COLD = """
import sys, threading
from notewell.memory import Memory
real = threading.Thread.start
def start(thread):
    sys.stdout.write(f"{'numpy' in sys.modules}\\n")  # in one piece, as others write too
    real(thread)
threading.Thread.start = start
with Memory.open(sys.argv[1], embed__model=sys.argv[2]) as memory:
    assert memory.search("staging port", sync=False).mode == "hybrid"
"""


# the second one loads its weights on another thread
@pytest.mark.parametrize("model", ["hashed@256", "local"])
def test_the_first_search_of_a_process_loads_numpy_before_it_starts_a_thread(
    root: Path, write: Write, model: str
) -> None:
    write("memory/ports.md", "# Ports\n\nThe staging port is 8081.\n")
    with Memory.open(root, embed__model=model) as memory:
        memory.sync()
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(root), model], capture_output=True, check=True, text=True
    )
    assert set(done.stdout.split()) == {"True"}, (
        "two threads that load it at once may find half of it"
    )
