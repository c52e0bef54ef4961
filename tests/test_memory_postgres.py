"""The front door over an index in PostgreSQL: the same answers as over a file, and everything that
is done with one.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from notewell.embed.embedder import Takes
from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import StoreAwayError, StoreBusyError, StoreError, UsageError
from notewell.index.migrate import migrate
from notewell.memory import Memory
from notewell.notes.proposals import Proposals
from notewell.search.profiles import PROFILES
from notewell.store.sqlite.store import SqliteStore
from notewell.surfaces.server.page_calls import PAGE_CALLS
from notewell.types import Filters, Found, Role, Vectors
from tests.conftest import PATIENT, CountingEmbedder, Write
from tests.postgres import Server, new_folder

GOLDEN = Path(__file__).parent / "golden"
ROWS = [json.loads(line) for line in (GOLDEN / "questions.jsonl").read_text().splitlines()]
QUESTIONS = [row["query"] for row in ROWS]
NOW = dt.datetime(2026, 6, 1, 9, 0)  # noqa: DTZ001 - a morning of this place
_NAMES = itertools.count()
_NEAR = 0.01  # a vector is a byte a dimension in a file, and four in a database


@pytest.fixture(scope="module")
def golden(
    tmp_path_factory: pytest.TempPathFactory, database: str
) -> Iterator[tuple[Memory, Memory]]:
    """The golden notes in a file and in a database."""
    root = tmp_path_factory.mktemp("golden") / "notes"
    shutil.copytree(GOLDEN / "notes", root)
    options: dict[str, Any] = {"embedder": HashedEmbedder(), "env": PATIENT}
    with (
        Memory.open(root, **options) as file,
        Memory.open(root, index=database, **options) as shared,
    ):
        for memory in (file, shared):
            memory.sync()
        yield file, shared


@pytest.fixture
def shared(root: Path, database: str) -> Iterator[Memory]:
    """An empty workspace of its own in the database."""
    name = f"shared-{next(_NAMES)}"
    with Memory.open(
        root, index=database, index__workspace=name, embedder=HashedEmbedder(), env=PATIENT
    ) as memory:
        yield memory


def test_what_the_page_shows_is_the_same_over_both(golden: tuple[Memory, Memory]) -> None:
    file, shared = (PAGE_CALLS["home"].run(memory, {}) for memory in golden)
    for key in ("counts", "days", "topics", "lately", "pinned"):
        assert file[key] == shared[key], key
    for key in ("conflicts", "copies", "unread"):
        assert sorted(map(str, file["attention"][key])) == sorted(
            map(str, shared["attention"][key])
        ), key
    days = [PAGE_CALLS["days"].run(memory, {"as_of": "2026-03"}) for memory in golden]
    assert days[0] == days[1]
    for path in ("MEMORY.md", file["lately"][0]["path"]):
        one, other = (PAGE_CALLS["note"].run(memory, {"path": path}) for memory in golden)
        assert one == other


def test_changes_are_made_and_taken_back_over_a_database(shared: Memory, write: Write) -> None:
    place = write("memory/2026-05-06.md", "# Standup\n\nThe staging port is 8081.\n")
    before = place.read_bytes()
    proposals = Proposals(shared.notebook)
    pinned = proposals.apply(proposals.pin("2026-05-06").token, now=NOW)
    assert b"pinned: true" in place.read_bytes()
    proposals.undo(pinned.undo)
    assert place.read_bytes() == before
    forgotten = proposals.apply(proposals.forget("memory/2026-05-06.md#L3").token, now=NOW)
    assert "8081" not in str(shared.search("staging port").hits)
    proposals.undo(forgotten.undo)
    assert place.read_bytes() == before
    assert "8081" in str(shared.search("staging port").hits)


def shown(memory: Memory, question: str, **options: Any) -> list[Any]:
    return told(memory.search(question, now=NOW, **options))


def told(found: Found) -> list[Any]:
    return [
        found.mode,
        found.notices,
        [
            (
                h.chunk.id,
                h.chunk.path,
                h.chunk.start_line,
                h.superseded_by,
                h.conflicts_with,
                h.snippet,
            )
            for h in found.hits
        ],
    ]


def agree(ours: Found, theirs: Found) -> None:
    """The same passages with the same to say of each, in the same order but for some that are
    level.

    The last two of them may be level with some that are not shown.
    """
    assert (theirs.mode, theirs.notices, len(theirs.hits)) == (
        ours.mode,
        ours.notices,
        len(ours.hits),
    )
    places = {h.chunk.id: (n, h.confidence) for n, h in enumerate(ours.hits)}
    said = {one[0]: one for one in told(ours)[2]}
    six = [[mark.id for mark in one.trace.steps[0].marks[:6]] for one in (ours, theirs)]
    for n, (hit, one) in enumerate(zip(theirs.hits, told(theirs)[2], strict=True)):
        if hit.chunk.id not in places:
            assert n >= len(theirs.hits) - 2, theirs.query.text
            continue
        place, confidence = places[hit.chunk.id]
        if place == n and six[0] == six[1]:  # what the first six have counts for each
            assert hit.confidence == pytest.approx(confidence, abs=5 * _NEAR), theirs.query.text
        assert abs(place - n) <= 2, "a few that are level may change places"
        assert one == said[hit.chunk.id]


def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are sent to the server from now on."""
    statements: list[str] = []
    execute = psycopg.Connection.execute

    def counted(self: psycopg.Connection[Any], query: Any, *args: Any, **kwargs: Any) -> Any:
        statements.append(str(query))
        return execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    return statements


def test_a_search_of_a_warm_memory_sends_at_most_six_statements(
    shared: Memory, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the look whether files changed, and with all relations: a copy, a contradiction, a
    replacement.
    """
    for n in range(40):
        write(
            f"memory/2026-03-{n % 28 + 1:02d}-note{n}.md",
            f"# Note {n}\n\nDeploys run on Tuesday, said Mira for the {n}th time.",
        )
    write("memory/port.md", "# Port\n\nThe staging server listens on port 8080.")
    write("memory/port again.md", "# Port\n\nThe staging server listens on port 8080.")
    write(
        "memory/port new.md",
        "---\ndate: 2026-05-01\n---\n# Port\n\nThe staging server listens on port 9090.",
    )
    write("memory/tokyo.md", "# 東京\n\n東京都の天気は晴れ。京都は雨。")
    write("memory/lunch.md", "# Lunch\n\nLunch is at noon.")
    write(
        "memory/lunch new.md", "---\nsupersedes: memory/lunch.md\n---\n# Lunch\n\nLunch is at one."
    )
    shared.sync()
    shared.keep_warm()
    assert shared.store.connection.moment().replaced  # type: ignore[attr-defined]
    questions = [
        "when do deploys run",
        "staging server port",
        "when is lunch",
        "note on 2026-03-05 by Mira",
        "東京都の天気",
        "absent",
    ]
    for question in questions[::-1]:
        shared.search(question, now=NOW)  # the first look at the files, and the first plans
    statements = sent(monkeypatch)
    for question in questions:
        for changed in ("", " said Mira"):  # an answer that is remembered is not asked for
            statements.clear()
            found = shared.search(question + changed, now=NOW)
            assert found.hits or question == "absent"
            assert 0 < len(statements) <= 6, statements
    statements.clear()
    write("memory/lunch.md", "# Lunch\n\nLunch is at noon, or later.")
    assert any(
        "or later" in h.chunk.text
        for h in shared.search("is lunch later", now=NOW, include_superseded=True).hits
    )
    assert len(statements) > 6, "what changed is written first"


@pytest.mark.parametrize("profile", ["default", "vector", "openclaw-2026.2.13"])
def test_the_same_passages_come_in_the_same_order_from_both_stores(
    golden: tuple[Memory, Memory], profile: str
) -> None:
    file, shared = golden
    for question in QUESTIONS:  # without a threshold: what is level may be on either side of it
        agree(
            *(
                m.search(question, now=NOW, profile=profile, sync=False, min_score=0.0)
                for m in (file, shared)
            )
        )


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_every_profile_answers_as_well_from_both_stores(
    golden: tuple[Memory, Memory], profile: str
) -> None:
    """The scores of the keyword leg differ a little, since the two count lengths in their own
    way.
    """
    right = [0, 0]
    for row in ROWS[::2]:
        for n, memory in enumerate(golden):
            hits = memory.search(row["query"], now=NOW, profile=profile, sync=False).hits
            right[n] += any(h.chunk.path == row["expect"].partition("#")[0] for h in hits)
    assert abs(right[0] - right[1]) <= 3
    assert min(right) > len(ROWS) / 8


def test_filters_give_the_same_answers_from_both_stores(golden: tuple[Memory, Memory]) -> None:
    for filters in (
        Filters(since=dt.date(2026, 3, 1)),
        Filters(until=dt.date(2026, 3, 31)),
        Filters(path="memory"),
        Filters(path="*.md", source="memory"),
        Filters(as_of=dt.date(2026, 4, 1)),
        Filters(origin="agent"),
    ):
        for question in QUESTIONS[:8]:
            agree(
                *(
                    memory.search(question, now=NOW, filters=filters, sync=False)
                    for memory in golden
                )
            )


def test_reasons_traces_and_timelines_are_the_same(golden: tuple[Memory, Memory]) -> None:
    file, shared = golden
    for question in QUESTIONS[:5]:
        path = file.search(question, now=NOW).hits[0].chunk.path
        stories = [memory.why(question, path, now=NOW)[1] for memory in golden]
        assert len({(w.chunk.id, w.verdict, w.rank) for w in stories}) == 1
        for direction in ("out", "in"):
            walks = [memory.trace(path, direction=direction)[0] for memory in golden]
            assert _plain(walks[1]) == _plain(walks[0])
        assert [e.chunk.id for e in shared.timeline(path)[0]] == [
            e.chunk.id for e in file.timeline(path)[0]
        ]
    assert [e.chunk.id for e in shared.timeline()[0]] == [e.chunk.id for e in file.timeline()[0]]
    assert shared.context(QUESTIONS[0], now=NOW).text == file.context(QUESTIONS[0], now=NOW).text


def _plain(walk: Any) -> Any:
    return [(h.kind, h.direction, h.depth, h.parent, h.node.path, h.again) for h in walk.hops]


def test_what_is_remembered_is_found_and_what_is_forgotten_is_not(
    shared: Memory, root: Path, database: str
) -> None:
    done = shared.remember("The quokka of Rottnest smiles at noon.", now=NOW)
    assert done.written
    assert shared.search("quokka", now=NOW).hits[0].chunk.path == done.path
    receipt = shared.forget(query="quokka", yes=True, now=NOW)
    assert receipt.chunks
    assert receipt.still_found == ()
    assert [line.partition(":")[0] for line in receipt.checked] == [
        "rows",
        "dead rows and their entries in indexes",
    ]
    assert [line.split()[0] for line in receipt.lingering] == ["free", "not"], (
        "pages, WAL and backups"
    )
    assert not receipt.proved, "whose bytes nobody can look at, nobody can prove to be gone"
    assert not said(shared)
    name = shared.settings.index.workspace
    options: dict[str, Any] = {
        "index__workspace": name,
        "embedder": HashedEmbedder(),
        "env": PATIENT,
    }
    with Memory.open(root, index=database, **options) as other:
        other.sync(force=True)
        assert not said(other), "a tombstone holds for all who share the workspace"
        assert other.unforget(receipt.id)[0]
    assert said(shared)


def said(memory: Memory) -> bool:
    return any("quokka" in h.chunk.text for h in memory.search("quokka", now=NOW).hits)


def test_nothing_of_the_index_is_written_into_the_workspace(
    shared: Memory, root: Path, write: Write
) -> None:
    write("memory/a.md", "The staging port is 8080.")
    shared.sync()
    assert {p.name for p in (root / ".notewell").iterdir()} <= {
        ".gitignore",
        "notes.lock",
        "links.lock",
    }
    assert shared.status().index.startswith("postgresql://")


def test_an_index_goes_to_the_database_and_back_with_nothing_embedded(
    golden: tuple[Memory, Memory], database: str, tmp_path: Path
) -> None:
    from notewell.store.postgres.store import PostgresStore

    file = golden[0]
    target = PostgresStore(database, workspace=str(tmp_path))
    there = migrate(file.store, target)
    back = SqliteStore(tmp_path / "back.sqlite")
    again = migrate(target, back)
    for done in (there, again):
        assert done.verified, [p for p in done.parts if not p.same]
    assert [p.checksum for p in again.parts] == [p.checksum for p in there.parts]
    assert target.audit() == back.audit() == []
    back.close()
    target.close()
    model = CountingEmbedder()
    options: dict[str, Any] = {"embedder": model, "env": PATIENT}
    with Memory.open(
        file.root, index=database, index__workspace=str(tmp_path), **options
    ) as memory:
        report = memory.sync()
        assert (report.added, report.changed, report.embedded, model.documents) == (0, 0, 0, [])
        for question in QUESTIONS[:20]:
            assert shown(memory, question) == shown(file, question)


def test_a_migration_that_was_stopped_in_the_database_is_taken_up(
    golden: tuple[Memory, Memory], database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from notewell.store.postgres.store import PostgresStore

    monkeypatch.setattr("notewell.index.migrate._BATCH", 5)
    target = PostgresStore(database, workspace=str(tmp_path))

    def stopped(what: str, done: int, total: int) -> None:
        if what == "notes" and done >= total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(golden[0].store, target, progress=stopped)
    done = migrate(golden[0].store, target)
    assert done.verified
    assert 0 < done.copied < done.copied + done.already == golden[0].store.counts()["documents"]
    target.close()


class Slow(CountingEmbedder):
    """Counts every text it is given, by whom."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        if role == "document":
            self.texts += texts
            time.sleep(0.005)
        return super().embed(texts, role)


class Roomy(Slow):
    """Takes five texts in a round of its requests, as a remote model takes what fills them."""

    def room(self, rounds: int) -> Takes:
        left = iter(range(5 * rounds))
        return lambda _text: next(left, None) is not None


def workers(
    root: Path, database: str, name: str, count: int, *, kind: type[Slow] = Slow
) -> list[Memory]:
    options: dict[str, Any] = {"index": database, "index__workspace": name, "env": PATIENT}
    return [Memory.open(root, embedder=kind(), **options) for _ in range(count)]


@pytest.mark.parametrize("kind", [Slow, Roomy])
def test_workers_share_one_embedding_and_no_text_is_embedded_twice(
    root: Path, write: Write, database: str, monkeypatch: pytest.MonkeyPatch, kind: type[Slow]
) -> None:
    for n in range(120):
        write(f"memory/n{n}.md", f"The lamp number {n} hangs in the hall of house {n}.")
    team = workers(root, database, f"team-{next(_NAMES)}", 3, kind=kind)
    monkeypatch.setattr("notewell.index.filling._BATCH", 8)
    team[0].sync(embed=False)
    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(lambda memory: memory.embed_shared(), team))
    models = [m.embedder for m in team]
    texts = [text for model in models if isinstance(model, Slow) for text in model.texts]
    assert len(texts) == len(set(texts)) == 120
    assert sum(r.embedded for r in reports) == 120
    assert sum(r.embedded > 0 for r in reports) > 1, "one alone did everything"
    assert [r.pending for r in reports] == [0, 0, 0]
    assert team[1].status().answering == team[1].status().embedder != "none"
    for memory in team:
        memory.close()


def test_workers_that_end_together_build_one_vector_index(
    root: Path, write: Write, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notewell.store.postgres.shared.EXACT_UP_TO", 30)
    for n in range(60):
        write(f"memory/n{n}.md", f"The lamp number {n} hangs in the hall of house {n}.")
    team = workers(root, database, "builders", 3)
    team[0].sync()
    model = team[0].status().embedder
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(lambda memory: memory.store.shared.settle(model), team))
    assert any(made)
    database_ = team[0].status().database
    assert database_ is not None
    assert database_.approximate == (model,)
    assert team[1].search("lamp number 7", now=NOW).hits[0].chunk.path == "memory/n7.md"
    for memory in team:
        memory.close()


def test_what_a_worker_that_died_had_claimed_is_done_by_another(
    root: Path, write: Write, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(20):
        write(f"memory/n{n}.md", f"The lamp number {n} hangs in the hall of house {n}.")
    (memory,) = workers(root, database, "widow", 1)
    memory.sync(embed=False)
    assert memory.store.shared is not None
    model = memory.embedder
    assert model is not None
    # by one that is never heard of again
    assert len(memory.store.shared.claim(model.id, 7, 0.8)) == 7
    report = memory.embed_shared()
    assert (report.embedded, report.pending) == (20, 0)
    memory.close()


def test_a_worker_on_a_file_is_a_clear_error(root: Path, write: Write) -> None:
    write("memory/a.md", "one")
    with (
        Memory.open(root, embedder=HashedEmbedder(), env=PATIENT) as memory,
        pytest.raises(UsageError, match="one worker"),
    ):
        memory.embed_shared()


def test_agents_of_one_workspace_do_not_see_each_other(
    root: Path, write: Write, database: str
) -> None:
    write("memory/a.md", "The quokka of Rottnest smiles at noon.")
    options: dict[str, Any] = {
        "index": database,
        "index__workspace": "agents",
        "env": PATIENT,
        "embed__model": "none",
    }
    with (
        Memory.open(root, index__agent="ann", **options) as ann,
        Memory.open(root, index__agent="bob", **options) as bob,
    ):
        ann.sync()
        assert ann.search("quokka", sync=False).hits
        assert not bob.search("quokka", sync=False).hits


def test_a_role_that_the_owner_admits_shares_the_workspace(
    root: Path, write: Write, postgres: Server
) -> None:
    """As docs/postgres.md describes it."""
    write("memory/a.md", "The quokka of Rottnest smiles at noon.")
    url = postgres.database("empty")
    options: dict[str, Any] = {"index__workspace": "ours", "env": PATIENT, "embed__model": "none"}
    theirs = postgres.url(Server.name_in(url), "alice")
    with Memory.open(root, index=url, **options) as memory:
        memory.sync()
        with pytest.raises(StoreError, match="may not"):
            Memory.open(root, index=theirs, **options)
        assert memory.store.shared is not None
        memory.store.shared.admit("alice")
        with Memory.open(root, index=theirs, index__owner="owner", **options) as guest:
            assert guest.search("quokka").hits
            memory.store.shared.expel("alice")
            with pytest.raises(StoreError, match="may not"):
                guest.search("quokka", sync=False)


def test_status_tells_of_tables_indexes_claims_and_clients(golden: tuple[Memory, Memory]) -> None:
    one = golden[1].status().database
    assert one is not None
    sizes = {t.name: t for t in one.tables}
    assert sizes["chunks"].bytes > 0
    assert sizes["chunks"].index_bytes > 0
    assert (one.waiting, one.claimed, one.lag_s, one.approximate) == (0, 0, None, ())
    assert 0 < one.connections <= one.most_connections
    assert golden[0].status().database is None


def test_a_server_that_is_too_old_is_named(
    postgres: Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notewell.store.postgres.schema.LEAST_SERVER", 990_000)
    with pytest.raises(StoreError, match="PostgreSQL 18") as caught:
        Memory.open(root, index=postgres.database("empty"), env=PATIENT)
    assert caught.value.hint == "at least 99 is needed"


def test_a_server_that_is_down_is_said_at_once_and_everything_goes_on_when_it_is_back(
    own_server: Server, root: Path, write: Write
) -> None:
    for n in range(30):
        write(f"memory/n{n}.md", f"The lamp number {n} hangs in the hall of house {n}.")
    url = own_server.database("empty")
    options: dict[str, Any] = {
        "index": url,
        "index__timeout_s": 600,
        "embedder": HashedEmbedder(),
        "env": PATIENT,
    }
    with Memory.open(root, **options) as memory:
        memory.keep_warm()
        memory.sync()
        before = shown(memory, "lamp number 7", min_score=0)
        own_server.kill()
        for _ in range(2):  # and nobody waits: that would take as long as the timeout
            with pytest.raises(StoreAwayError) as caught:
                memory.search("lamp number 7", now=NOW)
            assert caught.value.hint
        write("memory/new.md", "The zeppelin lands at dawn.")
        with pytest.raises(StoreAwayError):
            memory.sync()
        with pytest.raises(StoreAwayError):
            Memory.open(root, **options)
        own_server.start()
        assert shown(memory, "lamp number 7", min_score=0) == before
        assert memory.search("zeppelin", now=NOW).hits[0].chunk.path == "memory/new.md"
        assert memory.store.audit() == []


def test_a_sync_that_is_cut_off_leaves_whole_documents_and_is_taken_up(
    own_server: Server, root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notewell.index.walk._COMMIT_EVERY_S", 0.0)
    for n in range(12):
        write(
            f"memory/n{n}.md",
            "".join(f"# Part {k}\n\nThe lamp {n} of hall {k} is lit.\n\n" for k in range(6)),
        )
    url = own_server.database("empty")
    with Memory.open(
        root, index=url, index__timeout_s=60, embedder=HashedEmbedder(), env=PATIENT
    ) as memory:

        def cut(what: str, done: int, total: int) -> None:
            if what == "notes" and done == 5:
                own_server.kill()

        with pytest.raises(StoreAwayError):
            memory.sync(progress=cut)
        own_server.start()
        there = memory.store.documents.stored()
        assert len(there) == 5
        assert {len(memory.store.documents.chunks_of(path)) for path in there} == {6}
        report = memory.sync()
        assert (report.added, report.unchanged) == (7, 5)
        assert memory.store.audit() == []


def test_a_statement_that_takes_too_long_is_an_error_in_time(
    own_server: Server, root: Path, write: Write
) -> None:
    write("memory/a.md", "The quokka of Rottnest smiles at noon.")
    url = own_server.database("empty")
    with Memory.open(
        root, index=url, index__timeout_s=0.5, embed__model="none", env=PATIENT
    ) as memory:
        memory.sync()
        import psycopg

        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE notewell.chunks IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreBusyError):
                memory.search("quokka", now=NOW, sync=False)
        assert memory.search("quokka", now=NOW).hits


def until(true: Callable[[], object], timeout_s: float = 60.0) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + timeout_s
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


@pytest.mark.slow
def test_a_replica_answers_says_how_far_it_is_behind_and_takes_no_writes(
    own_server: Server, root: Path, write: Write
) -> None:
    write("memory/a.md", "The quokka of Rottnest smiles at noon.")
    url = own_server.database("empty")
    options: dict[str, Any] = {"embedder": HashedEmbedder(), "env": PATIENT}
    with Memory.open(root, index=url, **options) as memory, new_folder() as folder:
        memory.sync()
        replica = Server(own_server.programs, folder)
        replica.run(
            "pg_basebackup",
            "-h",
            own_server.folder,
            "-U",
            "admin",
            "-D",
            replica.data,
            "-R",
            "-c",
            "fast",
        )
        replica.start()
        try:
            theirs = url.replace(str(own_server.folder), str(folder))
            with Memory.open(root, index=theirs, **options) as second:
                assert second.store.read_only
                assert [h.chunk.path for h in second.search("quokka", now=NOW).hits] == [
                    "memory/a.md"
                ]
                for write_it in (
                    second.sync,
                    lambda: second.remember("more"),
                    lambda: second.forget("MEMORY.md", yes=True),
                ):
                    with pytest.raises(StoreError, match="takes no writes"):
                        write_it()
                write("memory/b.md", "The wombat digs at night.")
                memory.sync()
                assert until(lambda: second.search("wombat", now=NOW).hits)
                replica.execute("SELECT pg_wal_replay_pause()")
                write("memory/c.md", "The echidna sleeps in the morning.")
                memory.sync()
                assert until(lambda: second.search("echidna", now=NOW).notices)
                found = second.search("echidna", now=NOW)
                assert [n.code for n in found.notices] == ["replica_behind"]
                assert found.stale
                replica.execute("SELECT pg_wal_replay_resume()")
                assert until(
                    lambda: any(
                        h.chunk.path == "memory/c.md"
                        for h in second.search("echidna", now=NOW).hits
                    )
                )
                figures = second.status().database
                assert figures is not None
                assert figures.lag_s is not None
                own_server.stop("fast")
                assert until(lambda: (second.store.lag_s() or 0.0) > 0.0), (
                    "cut off is behind, whatever was received"
                )
        finally:
            replica.stop()


def test_broken_vectors_in_a_database_are_made_again_by_the_next_index(
    shared: Memory, write: Write
) -> None:
    from notewell.store.postgres.store import PostgresStore

    write("memory/a.md", "The staging port is 8080.")
    shared.sync()
    store = shared.store
    assert isinstance(store, PostgresStore)
    store.connection.write(
        lambda: store.connection.run("UPDATE models SET dim = 7 WHERE workspace = $w")
    )
    assert store.vectors.audit()
    report = shared.sync()
    assert "index_rebuilt" in [n.code for n in report.notices]
    assert (report.embedded, store.vectors.audit()) == (1, [])
    assert shared.search("staging port", now=NOW).mode == "hybrid"


def test_what_one_machine_forgot_with_a_file_is_forgotten_in_the_database_and_on_every_other(
    shared: Memory, root: Path, write: Write, tmp_path: Path
) -> None:
    write("memory/a.md", "The quokka of Rottnest smiles at noon.\n\nTea at four.\n")
    shutil.copytree(root / "memory", tmp_path / "two/memory")
    options: dict[str, Any] = {"embedder": HashedEmbedder(), "env": PATIENT}
    there = {
        **options,
        "index": shared.settings.index.url,
        "index__workspace": shared.settings.index.workspace,
    }
    assert said(shared)
    with Memory.open(root, **options) as file:
        receipt = file.forget(query="quokka", yes=True, now=NOW)
    assert not said(shared), "the database learns it from the folder"
    with Memory.open(tmp_path / "two", **there) as two:
        assert not said(two), "and a machine with other files from the database"
    with Memory.open(tmp_path / "two", **options) as file:
        assert not said(file), "whose folder knows it from then on"
        assert file.unforget(receipt.id)[0] == 1
        assert said(file)
    with Memory.open(tmp_path / "two", **there) as two:
        assert said(two)
    assert said(shared), "what was lifted anywhere does not come back"
