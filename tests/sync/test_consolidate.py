from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory import Memory
from recollect.ports import Role, Vectors
from recollect.sources.files import FileSource
from recollect.store.sqlite import SqliteStore
from recollect.sync import consolidate as module
from recollect.sync.consolidate import NEIGHBOURS, Consolidated, consolidate, replaces, standing
from recollect.sync.engine import Engine
from recollect.text.alike import judge
from recollect.types import Chunk, Document, Facts, Filters, Relations
from tests.conftest import CountingEmbedder, Write, sqlite_of
from tests.search.made import chunk as made

ALL = Filters()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "index.sqlite")
    yield made
    made.close()


@pytest.fixture
def engine(root: Path, store: SqliteStore) -> Engine:
    return Engine([FileSource(root)], store)


def settle(engine: Engine) -> Consolidated:
    engine.sync()
    return consolidate(engine.store)


def related(store: SqliteStore, path: str, filters: Filters = ALL) -> Relations:
    """What the first passage of a note is to others."""
    chunk = store.chunks_of(path)[0]
    return store.relations([chunk], filters).get(chunk.row, Relations())


def first(store: SqliteStore, path: str) -> str:
    return store.chunks_of(path)[0].id


def test_the_newest_of_copies_stands_for_all(engine: Engine, write: Write, store: SqliteStore) -> None:
    for day in ("01", "02", "03"):
        write(f"memory/2026-03-{day}.md", "The staging port is 8080.")
    settle(engine)
    newest = first(store, "memory/2026-03-03.md")
    assert related(store, "memory/2026-03-03.md") == Relations()
    for day in ("01", "02"):
        found = related(store, f"memory/2026-03-{day}.md")
        assert (found.superseded_by, found.copy) == (newest, True)
        assert found.successor == "memory/2026-03-03.md#L1"


def test_when_the_newest_copy_goes_the_next_one_is_seen_again(engine: Engine, write: Write, store: SqliteStore) -> None:
    places = [write(f"memory/2026-03-0{n}.md", "The staging port is 8080.") for n in (1, 2, 3)]
    settle(engine)
    places[2].unlink()
    settle(engine)
    assert related(store, "memory/2026-03-02.md") == Relations()
    assert related(store, "memory/2026-03-01.md").superseded_by == first(store, "memory/2026-03-02.md")
    write("memory/2026-03-02.md", "Something else is here now, about the garden.")
    settle(engine)
    assert related(store, "memory/2026-03-01.md") == Relations()
    write("memory/2026-03-03.md", "The staging port is 8080.")
    settle(engine)
    assert related(store, "memory/2026-03-01.md").superseded_by == first(store, "memory/2026-03-03.md")


def test_a_conflict_marks_both_and_hides_none(engine: Engine, write: Write, store: SqliteStore) -> None:
    write("memory/2026-03-01.md", "The staging port is 8080.")
    write("memory/2026-03-02.md", "The staging port is 9443.")
    settle(engine)
    ids = [first(store, f"memory/2026-03-0{n}.md") for n in (1, 2)]
    assert related(store, "memory/2026-03-01.md") == Relations(conflicts_with=(ids[1],))
    assert related(store, "memory/2026-03-02.md") == Relations(conflicts_with=(ids[0],))


def test_a_conflict_names_the_newest_copy_and_goes_when_the_other_side_goes(
    engine: Engine, write: Write, store: SqliteStore
) -> None:
    places = [write(f"memory/2026-03-0{n}.md", "The staging port is 8080.") for n in (1, 2)]
    write("memory/2026-03-03.md", "The staging port is 9443.")
    settle(engine)
    assert related(store, "memory/2026-03-03.md").conflicts_with == (first(store, "memory/2026-03-02.md"),)
    places[1].unlink()
    settle(engine)
    assert related(store, "memory/2026-03-03.md").conflicts_with == (first(store, "memory/2026-03-01.md"),)
    places[0].unlink()
    settle(engine)
    assert related(store, "memory/2026-03-03.md") == Relations()
    assert store._all("SELECT count(*) FROM conflicts") == [(0,)]


def test_what_a_filter_hides_does_not_stand_for_what_it_shows(engine: Engine, write: Write, store: SqliteStore) -> None:
    for day in ("01", "02", "03"):
        write(f"memory/2026-03-{day}.md", "The staging port is 8080.")
    settle(engine)
    until = Filters(until=dt.date(2026, 3, 2))
    assert related(store, "memory/2026-03-02.md", until) == Relations()
    assert related(store, "memory/2026-03-01.md", until).superseded_by == first(store, "memory/2026-03-02.md")
    assert related(store, "memory/2026-03-01.md", Filters(path="memory/2026-03-01.md")) == Relations()


def test_a_date_or_pin_that_changes_changes_who_stands_for_the_group(
    engine: Engine, write: Write, store: SqliteStore
) -> None:
    text = "The staging port is 8080."
    write("memory/2026-03-01.md", text)
    write("memory/2026-03-02.md", text)
    settle(engine)
    write("memory/2026-03-01.md", f"---\npinned: true\n---\n{text}")
    settle(engine)
    assert related(store, "memory/2026-03-01.md") == Relations()
    assert related(store, "memory/2026-03-02.md").superseded_by == first(store, "memory/2026-03-01.md")
    write("memory/2026-03-01.md", f"---\ndate: 2026-04-01\n---\n{text}")
    settle(engine)
    assert related(store, "memory/2026-03-02.md").superseded_by == first(store, "memory/2026-03-01.md")
    write("memory/2026-03-01.md", f"---\ndate: 2026-02-01\n---\n{text}")
    settle(engine)
    assert related(store, "memory/2026-03-01.md").superseded_by == first(store, "memory/2026-03-02.md")


def test_standing_is_pinned_then_by_day_then_curated_and_transcripts_last() -> None:
    day = dt.date(2026, 3, 1)
    order = [
        made("a", path="memory/a.md", pinned=True),
        made("c", path="memory/2026-04-01.md", date=dt.date(2026, 4, 1)),
        made("d", path="memory/2026-03-01.md", date=day),
        made("b", path="MEMORY.md"),
        made("e", path="memory/e.md"),
        made("f", path="s.jsonl", source="sessions", date=dt.date(2026, 5, 1)),
    ]
    assert sorted(order, key=standing, reverse=True) == order


def test_the_group_does_not_depend_on_the_order_of_arrival(root: Path, write: Write) -> None:
    heads = set()
    paths = ["memory/a.md", "memory/b.md", "MEMORY.md", "memory/c.md"]
    text = (
        "Every release is tagged, announced in the channel, and rolled back within an hour when errors rise by half" * 2
    )
    for seed in range(4):
        store = SqliteStore(None)
        for path in (*paths[seed:], *paths[:seed]):
            write(path, text)
            Engine([FileSource(root)], store).sync()
            consolidate(store)
        found = store.relations([store.chunks_of(p)[0] for p in paths], ALL)
        heads.add(tuple(sorted((r.superseded_by, r.successor) for r in found.values())))
        for path in paths:
            (root / path).unlink()
        store.close()
    assert len(heads) == 1
    assert all(successor.startswith("MEMORY.md") for _, successor in next(iter(heads)))


def test_a_second_run_has_nothing_to_do(engine: Engine, write: Write, store: SqliteStore) -> None:
    write("memory/a.md", "The staging port is 8080.")
    assert settle(engine).judged == 1
    assert settle(engine) == Consolidated()


def test_only_what_changed_is_judged_again(engine: Engine, write: Write, store: SqliteStore) -> None:
    for n in range(20):
        write(f"memory/note{n}.md", f"# Topic {n}\n\nThe colour of house {n} is known to nobody but Ann.")
    settle(engine)
    write("memory/note3.md", "# Topic 3\n\nThe colour of house 3 is green.")
    assert settle(engine).judged == 1


def test_a_deadline_leaves_the_rest_for_later(
    engine: Engine, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(30):
        write(f"memory/2026-03-{n % 28 + 1:02}-{n}.md", "The staging port is 8080.")
    engine.sync()
    monkeypatch.setattr(module, "_COMMIT_EVERY_S", 0.0)
    assert consolidate(store, deadline=time.monotonic() - 1) == Consolidated(complete=False)
    assert len(store.unjudged(100)) == 30
    assert consolidate(store).judged == 30
    assert store.unjudged(100) == []


def test_a_crash_in_the_middle_leaves_whole_judgements_and_the_next_run_completes_them(
    engine: Engine, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(1, 10):
        write(f"memory/2026-03-0{n}.md", "The staging port is 8080." if n % 2 else "The staging port is 9443.")
    engine.sync()
    put, calls = SqliteStore.put_copies, [0]

    def fails(self: SqliteStore, copies: object) -> None:
        calls[0] += 1
        if calls[0] == 4:
            raise RuntimeError("the power went out")
        put(self, copies)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteStore, "put_copies", fails)
    with pytest.raises(RuntimeError):
        consolidate(store)
    monkeypatch.setattr(SqliteStore, "put_copies", put)
    judged = {r[0] for r in store._all("SELECT row FROM copies")}
    waiting = set(store.unjudged(100))
    assert judged.isdisjoint(waiting)
    assert len(judged | waiting) == 9
    consolidate(store)
    assert related(store, "memory/2026-03-01.md").superseded_by == first(store, "memory/2026-03-09.md")
    assert related(store, "memory/2026-03-09.md").conflicts_with == (first(store, "memory/2026-03-08.md"),)


def test_other_rules_judge_everything_anew(
    engine: Engine, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/2026-03-01.md", "The staging port is 8080.")
    write("memory/2026-03-02.md", "The staging port is 8080.")
    settle(engine)
    monkeypatch.setattr(module, "RULES", "other")
    assert settle(engine).judged == 2
    assert related(store, "memory/2026-03-01.md").copy


def put(store: SqliteStore, number: int, text: str) -> None:
    path = f"memory/{dt.date(2000, 1, 1) + dt.timedelta(days=number)}.md"
    chunk = made(f"id{number}", text, path=path)
    store.put(Document(path, "memory", 1, 1, ""), str(number), chunk.facts, [chunk])


def work(store: SqliteStore, number: int, text: str) -> tuple[int, int]:
    """Rows fetched and comparisons made for one more note."""
    put(store, number, text)
    fetched = [0]
    plain = store._all

    def counted(sql: str, values: object = ()) -> list[tuple[object, ...]]:
        found = plain(sql, values)  # type: ignore[arg-type]
        fetched[0] += len(found) + 1
        return found

    store._all = counted  # type: ignore[method-assign]
    done = consolidate(store)
    store._all = plain  # type: ignore[method-assign]
    assert done.judged == 1
    return fetched[0], done.compared


@pytest.mark.parametrize("kind", ["copies", "conflicts", "apart"])
def test_a_note_costs_the_same_however_many_there_are(kind: str) -> None:
    texts: dict[str, Callable[[int], str]] = {
        "copies": lambda n: "The staging port is 8080.",
        "conflicts": lambda n: f"The staging port is {n}.",
        "apart": lambda n: f"House{n} belongs to Owner{n * 7}.",
    }
    store = SqliteStore(None)
    early: tuple[int, int] = (0, 0)
    for n in range(1500):
        if n == 60:
            early = work(store, n, texts[kind](n))
        else:
            put(store, n, texts[kind](n))
            if n < 60:
                consolidate(store)
    consolidate(store)
    late = work(store, 1500, texts[kind](1500))
    assert late[0] <= early[0] * 1.2 + 5
    assert late[1] <= NEIGHBOURS
    store.close()


def test_near_copies_join_when_the_vector_comes_and_chains_hide_nothing(root: Path, write: Write) -> None:
    base = (
        "The importer reads every file of the folder, checks its length and its hash, writes a line into the journal"
        " and moves the file into the archive when all rows were stored without an error"
    )
    write("memory/2026-03-01.md", base)
    write("memory/2026-03-02.md", base.replace("checks", "carefully checks"))

    class Sure(CountingEmbedder):
        id = "sure@256"

        def embed(self, texts: Sequence[str], role: Role) -> Vectors:
            return super().embed(["the same"] * len(texts), role)

    with Memory.open(root, env={}, embed__model="none") as memory:
        memory.sync()
        assert related(sqlite_of(memory), "memory/2026-03-01.md") == Relations()
    with Memory.open(root, env={}, embedder=Sure()) as memory:
        memory.sync()
        store = sqlite_of(memory)
        assert related(store, "memory/2026-03-01.md").superseded_by == first(store, "memory/2026-03-02.md")
        write(
            "memory/2026-03-03.md",
            base.replace("checks", "carefully checks").replace("writes", "quickly slowly writes"),
        )
        write("memory/2026-03-04.md", base.replace("the archive", "the archive 7"))
        memory.sync()
        assert related(store, "memory/2026-03-04.md") == Relations()
        forms = store._all("SELECT kin, count(DISTINCT form) FROM copies GROUP BY kin ORDER BY 2")
        assert sorted(n for _, n in forms) in ([1, 1, 2], [1, 3])


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("memory/old.md", (("memory/old.md", ""),)),
        ("./memory/old.md#Ports", (("memory/old.md", "Ports"),)),
        ("memory/old.md#L3-L5", (("memory/old.md", "L3-L5"),)),
        ("abcdefghijkl", (("abcdefghijkl", ""),)),
    ],
)
def test_what_a_note_supersedes(named: str, expected: tuple[tuple[str, str], ...]) -> None:
    assert replaces(made("a", supersedes=(named,))) == expected
    assert replaces(made("a", f"text\n<!-- supersedes: {named} -->\nmore")) == expected
    assert replaces(made("a", f"text <!-- supersedes: {named} --> more")) == (), "only on a line of its own"
    assert replaces(made("a", f"<!-- supersedes: {named} -->", source="sessions")) == (), "a transcript hides no note"


@pytest.mark.parametrize(
    ("reference", "hidden"),
    [
        ("memory/old.md", {"Ports", "Hosts"}),
        ("memory/old.md#ports", {"Ports"}),
        ("memory/old.md#L8", {"Hosts"}),
        ("memory/old.md#6-9", {"Hosts"}),
        ("memory/old.md#nowhere", set()),
        ("memory/gone.md", set()),
    ],
)
def test_a_note_a_part_or_a_line_is_superseded(
    engine: Engine, write: Write, store: SqliteStore, reference: str, hidden: set[str]
) -> None:
    write(
        "memory/old.md", "# Ports\n\nStaging has 8080.\n\n# Hosts\n\nThe name is kestrel,\nand the other is falcon.\n"
    )
    write("memory/new.md", f"---\nsupersedes: {reference}\n---\nAll of it has moved to the cloud.")
    settle(engine)
    chunks = store.chunks_of("memory/old.md")
    found = store.relations(chunks, ALL)
    assert {c.heading[0] for c in chunks if c.row in found} == hidden
    assert all(not r.copy and r.superseded_by == first(store, "memory/new.md") for r in found.values())


def test_an_entry_supersedes_by_id_until_it_is_gone(engine: Engine, write: Write, store: SqliteStore) -> None:
    write("memory/2026-03-01.md", "The staging port is 8080.")
    settle(engine)
    old = first(store, "memory/2026-03-01.md")
    place = write("memory/2026-03-02.md", f"Staging was switched off for good.\n<!-- supersedes: {old} -->\n")
    settle(engine)
    assert related(store, "memory/2026-03-01.md").superseded_by == first(store, "memory/2026-03-02.md")
    place.unlink()
    settle(engine)
    assert related(store, "memory/2026-03-01.md") == Relations()


def test_two_notes_that_supersede_each_other_both_stay(engine: Engine, write: Write, store: SqliteStore) -> None:
    write("memory/a.md", "---\nsupersedes: memory/b.md\n---\nApples are red.")
    write("memory/b.md", "---\nsupersedes: memory/a.md\n---\nPears are green and long.")
    write("memory/c.md", "---\nsupersedes: memory/c.md\n---\nPlums are blue inside.")
    settle(engine)
    assert [related(store, f"memory/{name}.md") for name in "abc"] == [Relations()] * 3


def test_facts_of_two_people_in_two_notes_are_two_facts(engine: Engine, write: Write, store: SqliteStore) -> None:
    write("memory/ann.md", "port: 8080")
    write("memory/bob.md", "port: 8080")
    write("memory/carl.md", "port: 9090")
    settle(engine)
    assert [related(store, f"memory/{name}.md") for name in ("ann", "bob", "carl")] == [Relations()] * 3


def test_pieces_of_one_note_that_share_lines_are_no_conflict(engine: Engine, store: SqliteStore) -> None:
    one = Chunk("one", "a.md", "memory", 1, 3, (), "The port is 8080. Ann knows it.", "h1", Facts())
    two = Chunk("two", "a.md", "memory", 3, 5, (), "The port is 9090. Ann knows it.", "h2", Facts())
    store.put(Document("a.md", "memory", 1, 1, ""), "d", Facts(), [one, two])
    consolidate(store)
    assert store.relations(store.chunks_of("a.md"), ALL) == {}


TEXTS = (
    "The staging port is 8080.",
    "- the staging port is **8080**",
    "The staging port is 9443.",
    "The staging port is not 8080.",
    "The production port is 8080.",
    "Ravi lives in Berlin.",
    "Ravi lives in Lisbon.",
    "Ravi lives in Berlin. He has two cats.",
)
NAMES = ("2026-03-01", "2026-03-02", "ann", "bob", "notes")


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.sampled_from(TEXTS)), max_size=14))
@settings(max_examples=60, deadline=None)
def test_after_any_history_groups_hold_copies_alone_and_every_conflict_is_known(
    history: list[tuple[str, str | None]],
) -> None:
    store = SqliteStore(None)
    for step, (name, text) in enumerate(history):
        path = f"memory/{name}.md"
        if text is None:
            store.drop([path])
        else:
            one = made(f"{name}{TEXTS.index(text)}", text, path=path)
            store.put(Document(path, "memory", 1, 1, ""), str(step), one.facts, [one])
        if step % 3:
            consolidate(store)
    consolidate(store)
    chunks = [store.chunks_of(path)[0] for path in store.documents()]
    kin = {row: (group, form) for row, group, form in store._all("SELECT row, kin, form FROM copies")}
    known = {frozenset(pair) for pair in store._all("SELECT one, other FROM conflicts")}
    assert set(kin) == {c.row for c in chunks}
    for a, b in combinations(chunks, 2):
        verdict = judge(module._read(a), module._read(b))
        if kin[a.row][0] == kin[b.row][0]:
            assert verdict == "duplicate", (a.text, b.text)
        assert (frozenset((kin[a.row][1], kin[b.row][1])) in known) == (verdict == "conflict"), (a.text, b.text)
    assert all(pair <= {form for _, form in kin.values()} for pair in known), "nothing is left of what is gone"
    hidden = store.relations(chunks, ALL)
    by_id = {c.id: c for c in chunks}
    for row, found in hidden.items():
        if found.superseded_by:
            assert kin[by_id[found.superseded_by].row][0] == kin[row][0]
            assert by_id[found.superseded_by].row not in {r for r, f in hidden.items() if f.superseded_by}
    store.close()


def test_two_processes_that_judge_at_once_do_not_trip_over_each_other(root: Path, write: Write) -> None:
    """Another process drops notes between a look at what waits and the transaction that judges it."""
    for n in range(5):
        write(f"memory/n{n}.md", f"The lamp {n} hangs in hall {n}.\n")
    with Memory.open(root, embed__model="none", consolidate=False) as memory:
        memory.sync()
        other = SqliteStore(Path(memory.store.name))
        waiting = memory.store.unjudged
        calls: list[int] = []

        def look(limit: int) -> list[int]:
            found = waiting(limit)
            if not calls:
                calls.append(1)
                other.drop([f"memory/n{n}.md" for n in range(3)])
            return found

        memory.store.unjudged = look  # type: ignore[method-assign]
        assert consolidate(memory.store).judged == 2
        other.close()


def test_a_passage_that_another_process_drops_meanwhile_is_left_out(
    engine: Engine, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        write(f"memory/{n}.md", f"The staging port of house {n} is {n}.")
    engine.sync()
    waiting = store.unjudged

    def drops(limit: int) -> list[int]:
        rows = waiting(limit)
        store.drop(["memory/1.md"])
        return rows

    monkeypatch.setattr(store, "unjudged", drops)
    assert consolidate(store) == Consolidated(2, 1)
    assert store.audit() == []


def sentences(number: int) -> list[str]:
    """A long passage like no other; all of them begin and end alike."""
    letters = str.maketrans("0123456789", "bcdfghjklm")
    return [f"Ann Smith met a{number}o{n} and e{number}u{n} at the harbour gate.".translate(letters) for n in range(6)]


def test_long_passages_that_begin_alike_are_not_compared(store: SqliteStore) -> None:
    for n in range(0, 600, 20):
        put(store, n, "\n".join(sentences(n)))
    assert consolidate(store) == Consolidated(judged=30, compared=0)
    put(store, 700, "\n".join([*sentences(40)[:5], "Ann Smith met Tom and Bob at the harbour gate."]))
    put(store, 701, "\n".join(reversed(sentences(60))))
    assert consolidate(store) == Consolidated(judged=2, compared=1), "the other one has a form that is known"
    assert related(store, "memory/2001-12-02.md").superseded_by == "id60"


def test_what_is_found_does_not_depend_on_the_size_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"The staging port of house {n % 9} is {n % 4}." for n in range(40)]
    texts += ["\n".join(sentences(n % 7)) for n in range(20)]
    found = set()
    for least, largest, seconds in ((128, 2048, 0.1), (1, 64, 60.0), (8, 16, 0.0)):
        monkeypatch.setattr(module, "_BATCH", least)
        monkeypatch.setattr(module, "_LARGEST_BATCH", largest)
        monkeypatch.setattr(module, "_COMMIT_EVERY_S", seconds)
        store = SqliteStore(None)
        for n, text in enumerate(texts):
            put(store, n, text)
        assert consolidate(store).judged == len(texts)
        tables = ("SELECT row, form, kin FROM copies ORDER BY row", "SELECT * FROM conflicts ORDER BY one, other")
        found.add(repr([store._all(sql) for sql in tables]))
        store.close()
    assert len(found) == 1
