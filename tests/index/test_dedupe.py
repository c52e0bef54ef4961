from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.compare.judge import judge
from notewell.index import dedupe as module
from notewell.index.dedupe import NEIGHBOURS, Consolidated, consolidate, replaces, standing
from notewell.index.walk import Walk
from notewell.memory import Memory
from notewell.sources.files import FileSource
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Copy
from notewell.types import Chunk, Document, Facts, Filters, Relations, Role, Vectors
from tests.conftest import PATIENT, CountingEmbedder, Write, sqlite_of
from tests.search.made import chunk as made
from tests.store.made import put_document

ALL = Filters()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "index.sqlite")
    yield made
    made.close()


@pytest.fixture
def engine(root: Path, store: SqliteStore) -> Walk:
    return Walk([FileSource(root)], store)


def settle(engine: Walk) -> Consolidated:
    engine.sync()
    return consolidate(engine.store)


def related(store: SqliteStore, path: str, filters: Filters = ALL) -> Relations:
    """What the first passage of a note is to others."""
    chunk = store.documents.chunks_of(path)[0]
    return store.relations.related([chunk], filters).get(chunk.row, Relations())


def first(store: SqliteStore, path: str) -> str:
    return store.documents.chunks_of(path)[0].id


def test_the_newest_of_copies_stands_for_all(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    for day in ("01", "02", "03"):
        write(f"memory/2026-03-{day}.md", "The staging port is 8080.")
    settle(engine)
    newest = first(store, "memory/2026-03-03.md")
    assert related(store, "memory/2026-03-03.md") == Relations()
    for day in ("01", "02"):
        found = related(store, f"memory/2026-03-{day}.md")
        assert (found.superseded_by, found.copy) == (newest, True)
        assert found.successor == "memory/2026-03-03.md#L1"


def test_when_the_newest_copy_goes_the_next_one_is_seen_again(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    places = [write(f"memory/2026-03-0{n}.md", "The staging port is 8080.") for n in (1, 2, 3)]
    settle(engine)
    places[2].unlink()
    settle(engine)
    assert related(store, "memory/2026-03-02.md") == Relations()
    assert related(store, "memory/2026-03-01.md").superseded_by == first(
        store, "memory/2026-03-02.md"
    )
    write("memory/2026-03-02.md", "Something else is here now, about the garden.")
    settle(engine)
    assert related(store, "memory/2026-03-01.md") == Relations()
    write("memory/2026-03-03.md", "The staging port is 8080.")
    settle(engine)
    assert related(store, "memory/2026-03-01.md").superseded_by == first(
        store, "memory/2026-03-03.md"
    )


def test_a_conflict_marks_both_and_hides_none(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    write("memory/2026-03-01.md", "The staging port is 8080.")
    write("memory/2026-03-02.md", "The staging port is 9443.")
    settle(engine)
    ids = [first(store, f"memory/2026-03-0{n}.md") for n in (1, 2)]
    assert related(store, "memory/2026-03-01.md") == Relations(conflicts_with=(ids[1],))
    assert related(store, "memory/2026-03-02.md") == Relations(conflicts_with=(ids[0],))


def test_a_conflict_names_the_newest_copy_and_goes_when_the_other_side_goes(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    places = [write(f"memory/2026-03-0{n}.md", "The staging port is 8080.") for n in (1, 2)]
    write("memory/2026-03-03.md", "The staging port is 9443.")
    settle(engine)
    assert related(store, "memory/2026-03-03.md").conflicts_with == (
        first(store, "memory/2026-03-02.md"),
    )
    places[1].unlink()
    settle(engine)
    assert related(store, "memory/2026-03-03.md").conflicts_with == (
        first(store, "memory/2026-03-01.md"),
    )
    places[0].unlink()
    settle(engine)
    assert related(store, "memory/2026-03-03.md") == Relations()
    assert store.connection.all("SELECT count(*) FROM conflicts") == [(0,)]


def test_what_a_filter_hides_does_not_stand_for_what_it_shows(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    for day in ("01", "02", "03"):
        write(f"memory/2026-03-{day}.md", "The staging port is 8080.")
    settle(engine)
    until = Filters(until=dt.date(2026, 3, 2))
    assert related(store, "memory/2026-03-02.md", until) == Relations()
    assert related(store, "memory/2026-03-01.md", until).superseded_by == first(
        store, "memory/2026-03-02.md"
    )
    assert (
        related(store, "memory/2026-03-01.md", Filters(path="memory/2026-03-01.md")) == Relations()
    )


def test_a_date_or_pin_that_changes_changes_who_stands_for_the_group(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    text = "The staging port is 8080."
    write("memory/2026-03-01.md", text)
    write("memory/2026-03-02.md", text)
    settle(engine)
    write("memory/2026-03-01.md", f"---\npinned: true\n---\n{text}")
    settle(engine)
    assert related(store, "memory/2026-03-01.md") == Relations()
    assert related(store, "memory/2026-03-02.md").superseded_by == first(
        store, "memory/2026-03-01.md"
    )
    write("memory/2026-03-01.md", f"---\ndate: 2026-04-01\n---\n{text}")
    settle(engine)
    assert related(store, "memory/2026-03-02.md").superseded_by == first(
        store, "memory/2026-03-01.md"
    )
    write("memory/2026-03-01.md", f"---\ndate: 2026-02-01\n---\n{text}")
    settle(engine)
    assert related(store, "memory/2026-03-01.md").superseded_by == first(
        store, "memory/2026-03-02.md"
    )


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
        "Every release is tagged, announced in the channel, and rolled back within an hour when "
        "errors rise by half"
    ) * 2
    for seed in range(4):
        store = SqliteStore(None)
        for path in (*paths[seed:], *paths[:seed]):
            write(path, text)
            Walk([FileSource(root)], store).sync()
            consolidate(store)
        found = store.relations.related([store.documents.chunks_of(p)[0] for p in paths], ALL)
        heads.add(tuple(sorted((r.superseded_by, r.successor) for r in found.values())))
        for path in paths:
            (root / path).unlink()
        store.close()
    assert len(heads) == 1
    assert all(successor.startswith("MEMORY.md") for _, successor in next(iter(heads)))


def test_a_second_run_has_nothing_to_do(engine: Walk, write: Write, store: SqliteStore) -> None:
    write("memory/a.md", "The staging port is 8080.")
    assert settle(engine).judged == 1
    assert settle(engine) == Consolidated()


def test_only_what_changed_is_judged_again(engine: Walk, write: Write, store: SqliteStore) -> None:
    for n in range(20):
        write(
            f"memory/note{n}.md",
            f"# Topic {n}\n\nThe colour of house {n} is known to nobody but Ann.",
        )
    settle(engine)
    write("memory/note3.md", "# Topic 3\n\nThe colour of house 3 is green.")
    assert settle(engine).judged == 1


def test_a_deadline_leaves_the_rest_for_later(
    engine: Walk, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(30):
        write(f"memory/2026-03-{n % 28 + 1:02}-{n}.md", "The staging port is 8080.")
    engine.sync()
    monkeypatch.setattr(module, "_COMMIT_EVERY_S", 0.0)
    assert consolidate(store, deadline=time.monotonic() - 1) == Consolidated(complete=False)
    assert len(store.relations.unjudged(100)) == 30
    assert consolidate(store).judged == 30
    assert store.relations.unjudged(100) == []


def test_a_crash_in_the_middle_leaves_whole_judgements_and_the_next_run_completes_them(
    engine: Walk, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(1, 10):
        write(
            f"memory/2026-03-0{n}.md",
            "The staging port is 8080." if n % 2 else "The staging port is 9443.",
        )
    engine.sync()
    put, calls = store.relations.put_copies, [0]

    def fails(copies: Sequence[Copy]) -> None:
        calls[0] += 1
        if calls[0] == 4:
            raise RuntimeError("the power went out")
        put(copies)

    monkeypatch.setattr(store.relations, "put_copies", fails)
    with pytest.raises(RuntimeError):
        consolidate(store)
    monkeypatch.setattr(store.relations, "put_copies", put)
    judged = {r[0] for r in store.connection.all("SELECT row FROM copies")}
    waiting = set(store.relations.unjudged(100))
    assert judged.isdisjoint(waiting)
    assert len(judged | waiting) == 9
    consolidate(store)
    assert related(store, "memory/2026-03-01.md").superseded_by == first(
        store, "memory/2026-03-09.md"
    )
    assert related(store, "memory/2026-03-09.md").conflicts_with == (
        first(store, "memory/2026-03-08.md"),
    )


def test_other_rules_judge_everything_anew(
    engine: Walk, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
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
    put_document(store, Document(path, "memory", 1, 1, ""), str(number), chunk.facts, [chunk])


def work(store: SqliteStore, number: int, text: str) -> tuple[int, int]:
    """Rows fetched and comparisons made for one more note."""
    put(store, number, text)
    fetched = [0]

    def counted(_cursor: object, row: tuple[object, ...]) -> tuple[object, ...]:
        fetched[0] += 1
        return row

    with store.writing():  # so that the connection that writes also reads
        store.connection.db.row_trace = counted
        done = consolidate(store)
        store.connection.db.row_trace = None
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


def test_near_copies_join_when_the_vector_comes_and_chains_hide_nothing(
    root: Path, write: Write
) -> None:
    base = (
        "The importer reads every file of the folder, checks its length and its hash, writes a line"
        " into the journal and moves the file into the archive when all rows were stored without an"
        " error"
    )
    write("memory/2026-03-01.md", base)
    write("memory/2026-03-02.md", base.replace("checks", "carefully checks"))

    class Sure(CountingEmbedder):
        id = "sure@256"

        def embed(self, texts: Sequence[str], role: Role) -> Vectors:
            return super().embed(["the same"] * len(texts), role)

    with Memory.open(root, env=PATIENT, embed__model="none") as memory:
        memory.sync()
        assert related(sqlite_of(memory), "memory/2026-03-01.md") == Relations()
    with Memory.open(root, env=PATIENT, embedder=Sure()) as memory:
        memory.sync()
        store = sqlite_of(memory)
        assert related(store, "memory/2026-03-01.md").superseded_by == first(
            store, "memory/2026-03-02.md"
        )
        write(
            "memory/2026-03-03.md",
            base.replace("checks", "carefully checks").replace("writes", "quickly slowly writes"),
        )
        write("memory/2026-03-04.md", base.replace("the archive", "the archive 7"))
        memory.sync()
        assert related(store, "memory/2026-03-04.md") == Relations()
        forms = store.connection.all(
            "SELECT group_form, count(DISTINCT form) FROM copies GROUP BY 1 ORDER BY 2"
        )
        assert sorted(n for _, n in forms) in ([1, 1, 2], [1, 3])


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("memory/old.md", (("memory/old.md", ""),)),
        ("./memory/old.md#Ports", (("memory/old.md", "Ports"),)),
        ("memory/old.md#L3-L5", (("memory/old.md", "L3-L5"),)),
        ("memory/old.md:3-5", (("memory/old.md", "L3-L5"),)),
        ("old", (("memory/old.md", ""),)),
        ("[[Old#Ports]]", (("memory/old.md", "Ports"),)),
        ("[[Old plan]]", (("memory/Old plan.md", ""),)),
        ("memory://memory/Old%20plan.md", (("memory/Old plan.md", ""),)),
        ("memory/late.markdown", (("memory/late.markdown", ""),)),
    ],
)
def test_what_a_note_supersedes(
    engine: Walk,
    write: Write,
    store: SqliteStore,
    named: str,
    expected: tuple[tuple[str, str], ...],
) -> None:
    write("memory/old.md", "# Ports\n\nStaging has 8080.\n")
    write("memory/Old plan.md", "It was a plan.\n")
    settle(engine)
    assert replaces(made("a", supersedes=(named,)), store) == expected
    assert replaces(made("a", f"text\n<!-- supersedes: {named} -->\nmore"), store) == expected
    assert replaces(made("a", f"text <!-- supersedes: {named} --> more"), store) == (), (
        "only on a line of its own"
    )
    transcript = made("a", f"<!-- supersedes: {named} -->", source="sessions")
    assert replaces(transcript, store) == (), "a transcript hides no note"


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
    engine: Walk, write: Write, store: SqliteStore, reference: str, hidden: set[str]
) -> None:
    write(
        "memory/old.md",
        (
            "# Ports\n\nStaging has 8080.\n\n# Hosts\n\nThe name is kestrel,\nand the other is "
            "falcon.\n"
        ),
    )
    write("memory/new.md", f"---\nsupersedes: {reference}\n---\nAll of it has moved to the cloud.")
    settle(engine)
    chunks = store.documents.chunks_of("memory/old.md")
    found = store.relations.related(chunks, ALL)
    assert {c.heading[0] for c in chunks if c.row in found} == hidden
    assert all(
        not r.copy and r.superseded_by == first(store, "memory/new.md") for r in found.values()
    )


def test_an_entry_supersedes_by_id_until_it_is_gone(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    write("memory/2026-03-01.md", "The staging port is 8080.")
    settle(engine)
    old = first(store, "memory/2026-03-01.md")
    place = write(
        "memory/2026-03-02.md", f"Staging was switched off for good.\n<!-- supersedes: {old} -->\n"
    )
    settle(engine)
    assert related(store, "memory/2026-03-01.md").superseded_by == first(
        store, "memory/2026-03-02.md"
    )
    place.unlink()
    settle(engine)
    assert related(store, "memory/2026-03-01.md") == Relations()


def test_two_notes_that_supersede_each_other_both_stay(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    write("memory/a.md", "---\nsupersedes: memory/b.md\n---\nApples are red.")
    write("memory/b.md", "---\nsupersedes: memory/a.md\n---\nPears are green and long.")
    write("memory/c.md", "---\nsupersedes: memory/c.md\n---\nPlums are blue inside.")
    settle(engine)
    assert [related(store, f"memory/{name}.md") for name in "abc"] == [Relations()] * 3


def test_facts_of_two_people_in_two_notes_are_two_facts(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    write("memory/ann.md", "port: 8080")
    write("memory/bob.md", "port: 8080")
    write("memory/carl.md", "port: 9090")
    settle(engine)
    assert [related(store, f"memory/{name}.md") for name in ("ann", "bob", "carl")] == [
        Relations()
    ] * 3


def test_pieces_of_one_note_that_share_lines_are_no_conflict(
    engine: Walk, store: SqliteStore
) -> None:
    one = Chunk("one", "a.md", "memory", 1, 3, (), "The port is 8080. Ann knows it.", "h1", Facts())
    two = Chunk("two", "a.md", "memory", 3, 5, (), "The port is 9090. Ann knows it.", "h2", Facts())
    put_document(store, Document("a.md", "memory", 1, 1, ""), "d", Facts(), [one, two])
    consolidate(store)
    assert store.relations.related(store.documents.chunks_of("a.md"), ALL) == {}


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
            store.documents.drop([path])
        else:
            one = made(f"{name}{TEXTS.index(text)}", text, path=path)
            put_document(store, Document(path, "memory", 1, 1, ""), str(step), one.facts, [one])
        if step % 3:
            consolidate(store)
    consolidate(store)
    chunks = [store.documents.chunks_of(path)[0] for path in store.documents.stored()]
    groups = {
        row: (g, form)
        for row, g, form in store.connection.all("SELECT row, group_form, form FROM copies")
    }
    known = {frozenset(pair) for pair in store.connection.all("SELECT one, other FROM conflicts")}
    assert set(groups) == {c.row for c in chunks}
    for a, b in combinations(chunks, 2):
        verdict = judge(module._read(a), module._read(b))
        if groups[a.row][0] == groups[b.row][0]:
            assert verdict == "duplicate", (a.text, b.text)
        assert (frozenset((groups[a.row][1], groups[b.row][1])) in known) == (
            verdict == "conflict"
        ), (a.text, b.text)
    assert all(pair <= {form for _, form in groups.values()} for pair in known), (
        "nothing is left of what is gone"
    )
    hidden = store.relations.related(chunks, ALL)
    by_id = {c.id: c for c in chunks}
    for row, found in hidden.items():
        if found.superseded_by:
            assert groups[by_id[found.superseded_by].row][0] == groups[row][0]
            assert by_id[found.superseded_by].row not in {
                r for r, f in hidden.items() if f.superseded_by
            }
    store.close()


def test_two_processes_that_judge_at_once_do_not_trip_over_each_other(
    root: Path, write: Write
) -> None:
    """Another process drops notes between a look at what waits and the transaction that judges
    it.
    """
    for n in range(5):
        write(f"memory/n{n}.md", f"The lamp {n} hangs in hall {n}.\n")
    with Memory.open(root, embed__model="none", consolidate=False) as memory:
        memory.sync()
        other = SqliteStore(Path(memory.store.name))
        waiting = memory.store.relations.unjudged
        calls: list[int] = []

        def look(limit: int) -> list[int]:
            found = waiting(limit)
            if not calls:
                calls.append(1)
                other.documents.drop([f"memory/n{n}.md" for n in range(3)])
            return found

        memory.store.relations.unjudged = look  # type: ignore[method-assign]
        assert consolidate(memory.store).judged == 2
        other.close()


def test_a_passage_that_another_process_drops_meanwhile_is_left_out(
    engine: Walk, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        write(f"memory/{n}.md", f"The staging port of house {n} is {n}.")
    engine.sync()
    waiting = store.relations.unjudged

    def drops(limit: int) -> list[int]:
        rows = waiting(limit)
        store.documents.drop(["memory/1.md"])
        return rows

    monkeypatch.setattr(store.relations, "unjudged", drops)
    assert consolidate(store) == Consolidated(2, 1)
    assert store.audit() == []


def sentences(number: int) -> list[str]:
    """A long passage like no other; all of them begin and end alike."""
    letters = str.maketrans("0123456789", "bcdfghjklm")
    return [
        f"Ann Smith met a{number}o{n} and e{number}u{n} at the harbour gate.".translate(letters)
        for n in range(6)
    ]


def test_long_passages_that_begin_alike_are_not_compared(store: SqliteStore) -> None:
    for n in range(0, 600, 20):
        put(store, n, "\n".join(sentences(n)))
    assert consolidate(store) == Consolidated(judged=30, compared=0)
    put(
        store,
        700,
        "\n".join([*sentences(40)[:5], "Ann Smith met Tom and Bob at the harbour gate."]),
    )
    put(store, 701, "\n".join(reversed(sentences(60))))
    assert consolidate(store) == Consolidated(judged=2, compared=1), (
        "the other one has a form that is known"
    )
    assert related(store, "memory/2001-12-02.md").superseded_by == "id60"


def test_what_is_found_does_not_depend_on_the_size_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
        tables = (
            "SELECT row, form, group_form FROM copies ORDER BY row",
            "SELECT * FROM conflicts ORDER BY one, other",
        )
        found.add(repr([store.connection.all(sql) for sql in tables]))
        store.close()
    assert len(found) == 1
