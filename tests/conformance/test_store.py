"""What every store promises. A new store joins by adding a row to `STORES`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notewell.store import window_codes
from notewell.store.ports import Store
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Copy, Judgement, Scored, Sought
from notewell.text.chunk import Passage
from notewell.types import Chunk, Document, Edge, End, Facts, Filters, Relations, Vectors
from tests.store.made import extend_document, put_document

MODEL = "model@4"
NO_FILTERS = Filters()
PLAIN = Facts()


STORES: dict[str, Callable[[Path], Store]] = {
    "file": lambda folder: SqliteStore(folder / "index.sqlite"),
    "memory": lambda _folder: SqliteStore(None),
}


@pytest.fixture(params=[*STORES, "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgres":
        from notewell.store.postgres.store import PostgresStore

        made: Store = PostgresStore(request.getfixturevalue("database"), workspace=str(tmp_path))
    else:
        made = STORES[request.param](tmp_path)
    yield made
    made.check()
    made.close()


def chunk(
    path: str, text: str, *, line: int = 1, heading: tuple[str, ...] = (), source: str = "memory"
) -> Chunk:
    content = Passage(line, line, heading, text).content_hash
    return Chunk(f"{path}/{content}", path, source, line, line, heading, text, content)


def put(
    store: Store,
    path: str,
    *texts: str,
    facts: Facts = PLAIN,
    source: str = "memory",
    mtime_ns: int = 0,
) -> list[Chunk]:
    """Puts a document whose chunks are the texts, a line each, and returns what the store made of
    them.
    """
    document = Document(path, source, 10, mtime_ns, f"/somewhere/{path}")
    put_document(
        store,
        document,
        f"digest of {texts}",
        facts,
        [chunk(path, t, line=n) for n, t in enumerate(texts, start=1)],
    )
    return store.documents.chunks_of(path)


def words(*wanted: str) -> Sought:
    return Sought(wanted)


def rows(found: Sequence[Scored]) -> list[int]:
    return [s.row for s in found]


def unit(*values: float) -> Vectors:
    vector = np.asarray(values, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def test_a_document_is_remembered_with_its_stat_and_digest(store: Store) -> None:
    put_document(
        store, Document("memory/a.md", "memory", 7, 99, "/w/memory/a.md"), "abc", Facts(), []
    )
    known = store.documents.stored()["memory/a.md"]
    assert (known.path, known.source, known.size, known.mtime_ns, known.digest) == (
        "memory/a.md",
        "memory",
        7,
        99,
        "abc",
    )
    assert known.synced_ns > 0


def test_a_chunk_comes_back_as_it_was_put(store: Store) -> None:
    facts = Facts(
        "Title",
        dt.date(2026, 2, 10),
        evergreen=True,
        importance=0.5,
        pinned=True,
        supersedes=("old.md",),
    )
    one = Chunk(
        "id1", "memory/ü.md", "memory", 3, 9, ("Über", "> b"), "text\n日本語", "hash", facts
    )
    put_document(store, Document(one.path, "memory", 1, 1, ""), "d", facts, [one])
    (back,) = store.documents.chunks_of(one.path)
    assert back == replace(one, row=back.row)
    assert store.documents.chunks([back.row]) == {back.row: back}
    assert store.documents.chunks_by_id("id") == [back]
    assert store.documents.chunks_by_id("ie") == []


def test_put_again_replaces_and_keeps_the_rows_of_what_stayed(store: Store) -> None:
    before = {c.text: c.row for c in put(store, "a.md", "stays here", "goes away")}
    after = {c.text: c for c in put(store, "a.md", "comes new", "stays here")}
    assert set(after) == {"comes new", "stays here"}
    assert after["stays here"].row == before["stays here"]
    assert after["stays here"].start_line == 2, "it moved, and its lines with it"
    assert store.keywords.lexical(words("away"), 10, NO_FILTERS) == []
    assert rows(store.keywords.lexical(words("new"), 10, NO_FILTERS)) == [after["comes new"].row]


def test_a_chunk_whose_words_stayed_but_whose_heading_did_not_is_put_anew(store: Store) -> None:
    under = chunk("a.md", "word", heading=("Head",))
    plain = Chunk(under.id, "a.md", "memory", 1, 2, (), "Head\nword", under.content_hash)
    document = Document("a.md", "memory", 1, 1, "")
    put_document(store, document, "1", Facts(), [under])
    put_document(store, document, "2", Facts(), [plain])
    (back,) = store.documents.chunks_of("a.md")
    assert (back.heading, back.text) == ((), "Head\nword")
    assert store.keywords.chunk_terms([back.row])[back.row].body == ("head", "word")


def test_fresh_makes_every_row_anew(store: Store) -> None:
    put(store, "a.md", "one", "two")
    other = put(store, "b.md", "three")
    document = Document("a.md", "memory", 1, 1, "")
    put_document(store, document, "d", Facts(), [chunk("a.md", "one")], fresh=True)
    assert [c.text for c in store.documents.chunks_of("a.md")] == ["one"]
    assert store.documents.chunks_of("b.md") == other
    assert len(store.keywords.lexical(words("one", "two", "three"), 10, NO_FILTERS)) == 2


def test_extend_adds_and_drops_and_leaves_the_others_alone(store: Store) -> None:
    before = {c.text: c for c in put(store, "s.jsonl", "one", "two", source="sessions")}
    document = Document("s.jsonl", "sessions", 20, 5, "/somewhere/s.jsonl")
    longer = chunk("s.jsonl", "two and three", line=2, source="sessions")
    extend_document(
        store,
        document,
        "more",
        Facts(title="Named"),
        [longer],
        drop=[before["two"].id, "unknown"],
        tail="here",
    )
    after = {c.text: c for c in store.documents.chunks_of("s.jsonl")}
    assert set(after) == {"one", "two and three"}
    assert after["one"].row == before["one"].row
    assert after["one"].facts.title == "Named"
    assert [s.row for s in store.keywords.lexical(words("two"), 9, NO_FILTERS)] == [
        after["two and three"].row
    ]
    known = store.documents.stored()["s.jsonl"]
    assert (known.size, known.mtime_ns, known.digest, known.tail) == (20, 5, "more", "here")
    generation = store.generation
    extend_document(store, document, "more", Facts(title="Named"), [], tail="on")
    assert (store.documents.stored()["s.jsonl"].tail, store.generation) == ("on", generation)


def test_a_chunk_of_another_document_is_not_dropped(store: Store) -> None:
    other = put(store, "a.jsonl", "one")[0]
    extend_document(
        store, Document("b.jsonl", "sessions", 1, 1, "/b"), "x", PLAIN, [], drop=[other.id]
    )
    assert [c.id for c in store.documents.chunks_of("a.jsonl")] == [other.id]


def test_a_tail_goes_with_the_next_put(store: Store) -> None:
    document = Document("s.jsonl", "sessions", 20, 5, "/somewhere/s.jsonl")
    put_document(store, document, "x", PLAIN, [], tail="here")
    assert store.documents.stored()["s.jsonl"].tail == "here"
    put_document(store, document, "y", PLAIN, [])
    assert store.documents.stored()["s.jsonl"].tail == ""


def test_sources_are_counted(store: Store) -> None:
    put(store, "a.md", "one", "two")
    put(store, "b.md", "three")
    put(store, "s.jsonl", source="sessions")
    assert store.documents.sources() == [("memory", 2, 3), ("sessions", 1, 0)]


def test_notes_lack_their_vectors_before_conversations_do(store: Store) -> None:
    note = put(store, "a.md", "one")[0]
    said = put(store, "s.jsonl", "two", source="sessions")[0]
    assert store.vectors.missing(MODEL) == [note.row, said.row]


def test_touch_changes_the_stat_and_nothing_else(store: Store) -> None:
    before = put(store, "a.md", "text")
    generation = store.generation
    store.documents.touch([Document("a.md", "memory", 11, 12, "")])
    known = store.documents.stored()["a.md"]
    assert (known.size, known.mtime_ns, known.digest) == (11, 12, "digest of ('text',)")
    assert store.documents.chunks_of("a.md") == before
    assert store.generation == generation, "what is cached of the chunks still holds"


def test_drop_takes_chunks_and_terms_along_and_minds_no_unknown_path(store: Store) -> None:
    put(store, "a.md", "apple")
    put(store, "b.md", "apple")
    store.documents.drop(["a.md", "never there.md"])
    assert list(store.documents.stored()) == ["b.md"]
    assert [
        c.path
        for c in store.documents.chunks(
            rows(store.keywords.lexical(words("appl"), 10, NO_FILTERS))
        ).values()
    ] == ["b.md"]
    assert store.keywords.term_counts(["appl"]).chunks == 1


def test_writes_join_one_transaction_and_vanish_with_it(store: Store) -> None:
    put(store, "kept.md", "kept")

    def fail() -> None:
        with store.writing():
            put(store, "lost.md", "lost")
            store.documents.drop(["kept.md"])
            raise KeyError("in the middle")

    with pytest.raises(KeyError):
        fail()
    assert list(store.documents.stored()) == ["kept.md"]
    assert len(store.keywords.lexical(words("kept", "lost"), 10, NO_FILTERS)) == 1


def test_the_generation_grows_with_every_change_and_only_then(store: Store) -> None:
    seen = [store.generation]
    put(store, "a.md", "text")
    seen.append(store.generation)
    store.vectors.put_vectors(MODEL, {"hash": unit(1, 0, 0, 0)})
    seen.append(store.generation)
    store.documents.drop(["a.md"])
    seen.append(store.generation)
    assert seen == sorted(set(seen)), "each later one is greater"
    store.set_meta("key", "value")
    store.documents.drop(["a.md"])
    store.vectors.put_vectors(MODEL, {})
    assert store.generation == seen[-1]


def test_meta_values_are_remembered(store: Store) -> None:
    assert store.get_meta("analysis") is None
    store.set_meta("analysis", "words-1")
    store.set_meta("analysis", "words-2")
    assert store.get_meta("analysis") == "words-2"


def test_all_meta_values_can_be_read_at_once(store: Store) -> None:
    store.set_meta("one", 1)
    put(store, "a.md", "apple")
    meta = store.meta()
    assert meta["one"] == 1
    assert {key: meta[key] for key in ("generation", "chunks")} == {
        key: store.get_meta(key) for key in ("generation", "chunks")
    }
    with store.reading():
        assert store.get_meta("one") == store.meta()["one"] == 1
        assert store.get_meta("none") is None
        with store.reading():
            assert store.get_meta("one") == 1
    store.set_meta("one", 2)
    assert store.get_meta("one") == store.meta()["one"] == 2


def test_lexical_order_is_best_first_and_equal_scores_by_row(store: Store) -> None:
    (much,) = put(store, "a.md", "apple apple apple")
    equal = [put(store, f"{name}.md", "apple pear plum fig")[0].row for name in "bcdef"]
    put(store, "z.md", "cherry")
    found = store.keywords.lexical(words("appl"), 10, NO_FILTERS)
    assert rows(found) == [much.row, *sorted(equal)]
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)
    assert store.keywords.lexical(words("appl"), 3, NO_FILTERS) == found[:3], (
        "the limit cuts, it does not choose"
    )


def test_no_match_string_and_no_match_find_nothing(store: Store) -> None:
    put(store, "a.md", "apple")
    assert store.keywords.lexical(words(), 10, NO_FILTERS) == []
    assert store.keywords.lexical(words("pear"), 10, NO_FILTERS) == []


MARCH, APRIL = dt.date(2026, 3, 1), dt.date(2026, 4, 1)
IN_MAY = int(dt.datetime(2026, 5, 5, 12).timestamp()) * 1_000_000_000  # noqa: DTZ001 - a day of this place


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), {"memory/march.md", "memory/sub/april.md", "docs/undated.md"}),
        (Filters(since=APRIL), {"memory/sub/april.md", "docs/undated.md"}),
        (Filters(until=MARCH), {"memory/march.md"}),
        (Filters(since=MARCH, until=APRIL), {"memory/march.md", "memory/sub/april.md"}),
        (Filters(since=dt.date(2026, 5, 5), until=dt.date(2026, 5, 5)), {"docs/undated.md"}),
        (Filters(source="extra"), {"docs/undated.md"}),
        (Filters(path="memory"), {"memory/march.md", "memory/sub/april.md"}),
        (Filters(path="./memory/"), {"memory/march.md", "memory/sub/april.md"}),
        (Filters(path="memory/march.md"), {"memory/march.md"}),
        (Filters(path="mem"), set()),
        (Filters(path="**/april.md"), {"memory/sub/april.md"}),
        (Filters(path="docs/*.md"), {"docs/undated.md"}),
        (Filters(path="."), {"memory/march.md", "memory/sub/april.md", "docs/undated.md"}),
        (Filters(path="memory", since=APRIL), {"memory/sub/april.md"}),
    ],
)
def test_filters_hold_for_every_leg(store: Store, filters: Filters, expected: set[str]) -> None:
    put(store, "memory/march.md", "apple march", facts=Facts(date=MARCH))
    put(store, "memory/sub/april.md", "apple april", facts=Facts(date=APRIL))
    put(store, "docs/undated.md", "apple undated", source="extra", mtime_ns=IN_MAY)
    every = [c for path in store.documents.stored() for c in store.documents.chunks_of(path)]
    store.vectors.put_vectors(MODEL, {c.content_hash: unit(1, 0, 0, 0) for c in every})

    def found(scored: Sequence[Scored]) -> set[str]:
        return {c.path for c in store.documents.chunks(rows(scored)).values()}

    assert found(store.keywords.lexical(words("appl"), 10, filters)) == expected
    assert found(store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 10, filters).rows) == expected
    by_name = store.documents.by_name_or_date(["march", "april", "undated"], [], 10, filters)
    assert found(by_name) == expected


def test_filters_choose_before_the_limit_cuts(store: Store) -> None:
    for n in range(20):
        put(store, f"memory/a{n:02}/standup.md", "apple apple apple", facts=Facts(date=MARCH))
    put(
        store,
        "memory/wanted/standup.md",
        "apple once among many other words",
        facts=Facts(date=MARCH),
    )
    only = Filters(path="memory/wanted")
    assert len(store.keywords.lexical(words("appl"), 5, only)) == 1
    assert len(store.documents.by_name_or_date(["standup"], [], 5, only)) == 1
    assert len(store.documents.by_name_or_date([], [("2026-03-01", "2026-03-01")], 5, only)) == 1


def test_a_passage_with_a_time_and_origin_of_its_own_is_found_by_them(store: Store) -> None:
    """The turns of one conversation lie on several days and come from several people."""
    said = dt.datetime.fromisoformat("2026-04-02T23:59:30")
    turns = [
        replace(chunk("talk.jsonl", "apple asked", line=1), time=said),
        replace(
            chunk("talk.jsonl", "apple answered", line=2),
            time=said + dt.timedelta(days=1),
            origin="agent",
        ),
        chunk("talk.jsonl", "apple without a time", line=3),
    ]
    put_document(
        store,
        Document("talk.jsonl", "sessions", 1, 0, "/talk.jsonl"),
        "d",
        Facts(date=MARCH),
        turns,
    )
    asked, answered, undated = store.documents.chunks_of("talk.jsonl")
    assert (asked.time, asked.origin, asked.day) == (said, "owner", dt.date(2026, 4, 2))
    assert (answered.origin, undated.time, undated.day) == ("agent", None, MARCH)
    second = Filters(since=dt.date(2026, 4, 3), until=dt.date(2026, 4, 3))
    assert rows(store.keywords.lexical(words("appl"), 9, second)) == [answered.row]
    assert rows(store.keywords.lexical(words("appl"), 9, Filters(origin="agent"))) == [answered.row]
    assert rows(
        store.documents.by_name_or_date([], [("2026-04-02", "2026-04-02")], 9, NO_FILTERS)
    ) == [asked.row]
    assert rows(
        store.documents.by_name_or_date([], [("2026-03-01", "2026-03-01")], 9, NO_FILTERS)
    ) == [undated.row]
    moved = [replace(t, start_line=t.start_line + 1, time=None, origin="system") for t in turns]
    put_document(
        store, Document("talk.jsonl", "sessions", 2, 0, "/talk.jsonl"), "e", Facts(), moved
    )
    assert [(c.row, c.time, c.origin) for c in store.documents.chunks_of("talk.jsonl")] == [
        (row, None, "system") for row in (asked.row, answered.row, undated.row)
    ]


def test_a_path_filter_knows_names_in_either_unicode_form(store: Store) -> None:
    put(store, "memory/caf\u00e9.md", "apple")
    assert len(store.keywords.lexical(words("appl"), 5, Filters(path="memory/cafe\u0301.md"))) == 1


def test_a_path_filter_may_name_a_folder_with_brackets(store: Store) -> None:
    put(store, "memory/[draft]/a.md", "apple")
    assert len(store.keywords.lexical(words("appl"), 5, Filters(path="memory/[draft]"))) == 1


def random_units(count: int, seed: int, dim: int = 4) -> Vectors:
    made = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)  # type: ignore[no-any-return]


def test_nearest_is_exact(store: Store) -> None:
    vectors = random_units(300, seed=1)
    chunks = put(store, "a.md", *(f"text {n}" for n in range(300)))
    store.vectors.put_vectors(
        MODEL, {c.content_hash: v for c, v in zip(chunks, vectors, strict=True)}
    )
    question = random_units(1, seed=2)[0]
    found = store.vectors.nearest(MODEL, question, 25, NO_FILTERS)
    oracle = vectors.astype(np.float64) @ question.astype(np.float64)
    best = np.argsort(-oracle, kind="stable")[:25]
    assert rows(found.rows) == [chunks[i].row for i in best]
    assert [s.score for s in found.rows] == pytest.approx(oracle[best].tolist(), abs=2e-6)
    assert (found.count, found.mean, found.deviation) == pytest.approx(
        (300, oracle.mean(), oracle.std()), abs=1e-5
    )


@pytest.mark.parametrize("limit", [1, 3, 7, 50, 1000])
def test_which_of_equal_cosines_get_in_is_decided_by_id_at_every_limit(
    store: Store, limit: int
) -> None:
    chunks = put(store, "a.md", *(f"text {n}" for n in range(60)))
    store.vectors.put_vectors(
        MODEL, {c.content_hash: unit(1, 1, 1, n % 3) for n, c in enumerate(chunks)}
    )
    expected = sorted(range(60), key=lambda n: (n % 3, chunks[n].id))[:limit]
    found = store.vectors.nearest(MODEL, unit(1, 1, 1, 0), limit, NO_FILTERS).rows
    assert set(rows(found)) == {chunks[n].row for n in expected}
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)


def test_which_of_equal_keyword_scores_get_in_does_not_depend_on_the_order_of_indexing(
    store: Store,
) -> None:
    names = [f"{n:03}.md" for n in range(40)]
    kept = []
    for order in (names, names[::-1]):
        store.documents.drop(names)
        ids = {put(store, name, "the same words")[0].row: name for name in order}
        kept.append(
            {ids[row] for row in rows(store.keywords.lexical(words("word"), 10, NO_FILTERS))}
        )
    assert kept[0] == kept[1]
    assert len(kept[0]) == 10


def test_equal_vectors_have_equal_cosines_wherever_they_stand(store: Store) -> None:
    question, vector = random_units(2, seed=3, dim=384)
    chunks = put(store, "a.md", *(f"text {n}" for n in range(61)))
    store.vectors.put_vectors("model@384", {c.content_hash: vector for c in chunks})
    found = store.vectors.nearest("model@384", question, 61, NO_FILTERS).rows
    assert len({s.score for s in found}) == 1
    assert set(store.vectors.cosines("model@384", question, rows(found)[40:43]).values()) == {
        found[0].score
    }


def test_nearest_without_a_vector_is_empty(store: Store) -> None:
    put(store, "a.md", "text")
    assert store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 5, NO_FILTERS).rows == ()
    assert store.vectors.cosines(MODEL, unit(1, 0, 0, 0), [1]) == {}


def test_cosines_are_given_for_the_rows_that_have_a_vector(store: Store) -> None:
    first, second = put(store, "a.md", "one", "two")
    store.vectors.put_vectors(MODEL, {first.content_hash: unit(3, 4, 0, 0)})
    assert store.vectors.cosines(MODEL, unit(1, 0, 0, 0), [second.row, first.row, 999]) == {
        first.row: pytest.approx(0.6)
    }


def test_vectors_belong_to_content_and_model(store: Store) -> None:
    (one,) = put(store, "a.md", "same words")
    (two,) = put(store, "b.md", "same words")
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(1, 0, 0, 0)})
    assert rows(store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 5, NO_FILTERS).rows) == [
        one.row,
        two.row,
    ]
    assert store.vectors.nearest("another@4", unit(1, 0, 0, 0), 5, NO_FILTERS).rows == ()
    assert store.vectors.missing("another@4") == [two.row], "one row for a text that stands twice"


def test_vectors_survive_a_move(store: Store) -> None:
    (before,) = put(store, "old/a.md", "words")
    store.vectors.put_vectors(MODEL, {before.content_hash: unit(1, 0, 0, 0)})
    store.documents.drop(["old/a.md"])
    assert store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 5, NO_FILTERS).rows == ()
    (after,) = put(store, "new/a.md", "words")
    assert store.vectors.missing(MODEL) == []
    assert rows(store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 5, NO_FILTERS).rows) == [after.row]


def test_missing_lists_the_newest_first_and_forgets_what_got_a_vector(store: Store) -> None:
    (one,) = put(store, "a.md", "one")
    (two,) = put(store, "b.md", "two")
    (three,) = put(store, "c.md", "three")
    assert store.vectors.missing(MODEL) == [three.row, two.row, one.row]
    store.vectors.put_vectors(MODEL, {two.content_hash: unit(1, 0, 0, 0)})
    assert store.vectors.missing(MODEL) == [three.row, one.row]
    assert store.vectors.coverage(MODEL) == (1, 3)
    assert store.vectors.models() == [(MODEL, 4, 1)]


def test_a_vector_put_twice_is_the_later_one(store: Store) -> None:
    (one,) = put(store, "a.md", "one")
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(1, 0, 0, 0)})
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(0, 1, 0, 0)})
    assert store.vectors.cosines(MODEL, unit(0, 1, 0, 0), [one.row]) == {one.row: 1.0}


def test_term_counts_say_in_how_many_chunks_a_term_stands(store: Store) -> None:
    put(store, "a.md", "apple apple pear", "apple")
    put(store, "b.md", "plum")
    counts = store.keywords.term_counts(["appl", "plum", "cherri", "appl"])
    assert counts.found_in == {"appl": 2, "plum": 1, "cherri": 0}
    assert counts.chunks == 3
    assert counts.mean_length == pytest.approx((3 + 1 + 1) / 3)


def test_term_counts_take_more_terms_than_a_statement_takes_values(store: Store) -> None:
    put(store, "a.md", "term2500")
    assert sum(store.keywords.term_counts(f"term{n}" for n in range(3000)).found_in.values()) == 1


def test_chunk_terms_are_by_field(store: Store) -> None:
    put_document(
        store,
        Document("memory/deploys.md", "memory", 1, 1, ""),
        "d",
        Facts(),
        [chunk("memory/deploys.md", "Running servers", heading=("Staging",))],
    )
    (one,) = store.documents.chunks_of("memory/deploys.md")
    fields = store.keywords.chunk_terms([one.row])[one.row]
    assert (fields.head, fields.body, fields.exact) == (
        ("stage", "deploy"),
        ("run", "server"),
        ("running", "servers"),
    )


def test_term_places_are_columns_over_the_chunks_that_exist(store: Store) -> None:
    first, second = put(store, "memory/deploys.md", "server, running servers", "tea")
    sought = Sought(
        ("server", "deploy", "zeppelin"), prefixes=("te",), exact=("running", "servers", "ran")
    )
    found = store.keywords.term_places([first.row, 999_999, second.row], sought)
    assert list(found.rows) == [first.row, second.row]
    assert found.lengths.tolist() == [3, 1]
    assert found.body.T.tolist() == [[0, 0, 0], [0, 0, 2], [1, 3, 0]], "chunk, term and position"
    assert sorted(found.head.T.tolist()) == [[0, 1], [1, 1]], "chunk and term"
    assert found.exact.tolist() == [2, 0]
    assert list(store.keywords.term_places([], sought).rows) == []


def test_documents_are_found_by_name_and_by_day(store: Store) -> None:
    (named,) = put(store, "memory/Standup.md", "x")
    (dated,) = put(store, "memory/2026-03-01.md", "x", facts=Facts(date=MARCH))
    (later,) = put(store, "memory/2026-04-01.md", "x", facts=Facts(date=APRIL))
    found = store.documents.by_name_or_date(
        ["standup"], [("2026-03-01", "2026-03-04")], 10, NO_FILTERS
    )
    assert found == [Scored(named.row, 2.0), Scored(dated.row, 0.5)]
    both = store.documents.by_name_or_date(
        ["2026-03-01"], [("2026-03-01", "2026-04-30")], 10, NO_FILTERS
    )
    assert rows(both) == [dated.row, later.row], (
        "the file that is named stands above the days around it"
    )
    assert store.documents.by_name_or_date([], [], 10, NO_FILTERS) == []


def test_counts_say_what_there_is(store: Store) -> None:
    put(store, "a.md", "one", "two")
    store.vectors.put_vectors(MODEL, {"hash": unit(1, 0, 0, 0)})
    counts = store.counts()
    assert (counts["documents"], counts["chunks"], counts["vectors"]) == (1, 2, 1)


def test_edges_are_kept_by_name_and_go_with_their_document(store: Store) -> None:
    put(store, "memory/a.md", "x")
    put(store, "memory/B.md", "y")
    told = [
        Edge("references", End("memory/a.md", "L1"), End("../B", "Head")),
        Edge("derives_from", End("memory/a.md"), End("b.md")),
    ]
    store.history.put_edges("memory/a.md", told)
    assert store.history.edges_from(["a"]) == told
    assert store.history.edges_to(["b"]) == told
    assert store.history.edges_to(["a", "nothing"]) == store.history.edges_from([]) == []
    assert store.history.edges_like("derives_from") == told[1:]
    assert store.history.edges_like("derives") == []
    store.history.put_edges("memory/a.md", told[1:])
    assert store.history.edges_from(["a"]) == told[1:]
    store.history.put_edges("memory/gone.md", told)
    assert store.history.edges_from(["gone"]) == [], (
        "of a document that is not there nothing is kept"
    )
    store.documents.drop(["memory/B.md"])
    assert store.history.edges_to(["b"]) == told[1:], "what a name leads to may come again"
    store.documents.drop(["memory/a.md"])
    assert store.history.edges_to(["b"]) == []


def test_documents_are_found_by_name_content_and_session(store: Store) -> None:
    (deep,) = put(store, "memory/x/Note.md", "here it is")
    put(store, "note.md", "other")
    assert store.documents.paths_named("note") == ["note.md", "memory/x/Note.md"]
    assert store.documents.path_with(deep.content_hash) == ("memory/x/Note.md", deep.id)
    assert store.documents.path_with(store.documents.stored()["note.md"].digest) == ("note.md", "")
    assert store.documents.path_with("no such hash") is None
    uuid = "0195a2c4-1111-7222-8333-444455556666"
    put(store, f"s/rollout-1-{uuid}.jsonl", "turn")
    assert store.documents.paths_named(uuid) == [f"s/rollout-1-{uuid}.jsonl"]
    assert store.documents.changed_ns(["note.md", "gone.md"]) == {"note.md": 0}
    assert store.documents.tails(["note.md", "gone.md"]) == {"note.md": ""}


def test_moments_are_in_order_from_either_side(store: Store) -> None:
    put(store, "memory/2026-04-01.md", "c", facts=Facts(date=APRIL))
    put(store, "memory/2026-03-01.md", "a", "b", facts=Facts(date=MARCH))
    put(store, "undated.md", "old", mtime_ns=1)
    every = store.history.moments(NO_FILTERS, limit=-1)
    assert [(m.path, m.line, m.by) for m in every] == [
        ("undated.md", 1, "file"),
        ("memory/2026-03-01.md", 1, "date"),
        ("memory/2026-03-01.md", 2, "date"),
        ("memory/2026-04-01.md", 1, "date"),
    ]
    assert store.history.moments(NO_FILTERS, limit=1, after=every[1]) == [every[2]]
    assert store.history.moments(NO_FILTERS, limit=1, before=every[2]) == [every[1]]
    assert store.history.moments(NO_FILTERS, limit=2) == every[2:]
    assert [store.history.moment(m.row) for m in every] == every
    assert store.history.moment(99) is None
    assert store.history.moments(Filters(path="memory"), limit=9) == every[1:]
    assert store.history.moments(Filters(until=MARCH), limit=9) == every[:3]


def test_as_of_a_day_nothing_dated_later_is_there_and_what_has_no_date_is(store: Store) -> None:
    (march,) = put(store, "memory/2026-03-01.md", "word", facts=Facts(date=MARCH))
    put(store, "memory/2026-04-01.md", "word", facts=Facts(date=APRIL))
    (undated,) = put(store, "plan.md", "word", mtime_ns=4_000_000_000_000_000_000)
    found = store.keywords.lexical(words("word"), 10, Filters(as_of=MARCH))
    assert set(rows(found)) == {march.row, undated.row}
    assert rows(
        store.keywords.lexical(words("word"), 10, Filters(as_of=MARCH - dt.timedelta(days=1)))
    ) == [undated.row]


def test_dims_name_every_model_that_has_a_vector(store: Store) -> None:
    assert store.vectors.dims() == {}
    store.vectors.put_vectors(MODEL, {"hash": unit(1, 0, 0, 0)})
    store.vectors.put_vectors("other", {"hash": unit(1, 0)})
    store.vectors.refuse("third", {"hash": "no"})
    assert store.vectors.dims() == {MODEL: 4, "other": 2}
    store.vectors.put_vectors("third", {"else": unit(1, 0, 0)})
    assert store.vectors.dims()["third"] == 3


def test_what_a_model_refused_is_not_missing_until_it_is_forgiven(store: Store) -> None:
    one, two = put(store, "a.md", "alpha", "beta")
    store.vectors.refuse(MODEL, {one.content_hash: "too odd"})
    assert store.vectors.missing(MODEL) == [two.row]
    assert store.vectors.missing("another@4") == [two.row, one.row], (
        "another model may think otherwise"
    )
    assert store.vectors.refused(MODEL) == [("a.md", 1, "too odd")]
    assert store.vectors.coverage(MODEL) == (0, 2)
    store.documents.drop(["a.md"])
    assert store.vectors.refused(MODEL) == [], "nobody misses a text that is gone"
    put(store, "b.md", "alpha")
    assert store.vectors.missing(MODEL) == [], "the same text is refused wherever it stands"
    store.vectors.forgive(MODEL)
    assert len(store.vectors.missing(MODEL)) == 1
    assert store.vectors.refused(MODEL) == []


def test_vectors_of_text_that_is_gone_are_kept_and_counted(store: Store) -> None:
    one, two = put(store, "a.md", "alpha", "beta")
    store.vectors.put_vectors(MODEL, {c.content_hash: unit(1, 0, 0, 0) for c in (one, two)})
    assert store.vectors.idle() == (0, 0)
    put(store, "a.md", "alpha")
    assert store.vectors.idle() == (1, 16)
    put(store, "b.md", "beta")
    assert store.vectors.idle() == (0, 0)
    assert store.vectors.missing(MODEL) == []


def test_trim_drops_the_oldest_vectors_of_text_that_is_gone_and_no_other(store: Store) -> None:
    (kept,) = put(store, "a.md", "alpha")
    store.vectors.put_vectors(MODEL, {kept.content_hash: unit(1, 0, 0, 0)})
    for n in range(5):
        store.vectors.put_vectors(MODEL, {f"gone{n}": unit(1, 0, 0, 0)})
    assert store.vectors.trim(80) == 0
    assert store.vectors.trim(40) == 3, "two of sixteen bytes fit"
    assert store.vectors.idle() == (2, 32)
    assert store.vectors.trim(0) == 2
    assert store.vectors.models() == [(MODEL, 4, 1)]
    assert store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 5, NO_FILTERS).count == 1


def test_prune_keeps_the_named_models_and_only_text_that_is_there(store: Store) -> None:
    (one,) = put(store, "a.md", "alpha")
    for model in (MODEL, "old@4", "older@4"):
        store.vectors.put_vectors(
            model, {one.content_hash: unit(1, 0, 0, 0), "gone": unit(1, 0, 0, 0)}
        )
    store.vectors.refuse("old@4", {"x": "no"})
    assert store.vectors.prune([MODEL, "never seen"]) == 5
    assert store.vectors.models() == [(MODEL, 4, 1)]
    assert store.vectors.dims() == {MODEL: 4}
    assert store.vectors.missing("old@4") == [one.row]
    assert store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 5, NO_FILTERS).count == 1
    assert store.vectors.nearest("old@4", unit(1, 0, 0, 0), 5, NO_FILTERS).count == 0
    assert store.vectors.prune([MODEL]) == 0


def test_a_pruned_model_that_comes_back_is_seen(store: Store) -> None:
    (one,) = put(store, "a.md", "alpha")
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(1, 0, 0, 0)})
    assert store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 5, NO_FILTERS).rows[0].score == 1.0
    store.vectors.prune([])
    assert store.vectors.missing(MODEL) == [one.row]
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(0, 1, 0, 0)})
    assert store.vectors.nearest(MODEL, unit(1, 0, 0, 0), 5, NO_FILTERS).rows[0].score == 0.0


def test_a_sound_store_has_nothing_to_say_against_itself(store: Store) -> None:
    assert store.vectors.audit() == []
    one, _ = put(store, "a.md", "alpha", "beta")
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(1, 0, 0, 0)})
    put(store, "a.md", "alpha")
    store.documents.drop(["b.md"])
    assert store.audit() == []


def judged(
    store: Store,
    one: Chunk,
    form: str,
    group: str,
    standing: str = "1",
    *conflicts: str,
    **rest: Any,
) -> None:
    """A chunk as a judgement would leave it: its form is found by a trait of its own and by one
    that all share.
    """
    copy = Copy(one, form.encode(), group.encode(), standing, **rest)
    if store.relations.group_of(copy.form) is None:
        copy = replace(copy, traits=[7, len(form)], conflicts=[c.encode() for c in conflicts])
    store.relations.put_copies([copy])


def related(store: Store, *chunks: Chunk, filters: Filters = NO_FILTERS) -> dict[int, Relations]:
    return store.relations.related(chunks, filters)


def test_a_chunk_waits_for_judgement_when_it_its_facts_or_its_vector_are_new(store: Store) -> None:
    one, two = put(store, "a.md", "one", "two")
    assert store.relations.unjudged(10) == [one.row, two.row]
    assert store.relations.unjudged(1) == [one.row]
    for chunk in (one, two):
        judged(store, chunk, chunk.text, chunk.text)
    assert store.relations.unjudged(10) == []
    put(store, "a.md", "one", "two")
    assert store.relations.unjudged(10) == [], "nothing changed"
    put(store, "a.md", "one", "two", facts=Facts(pinned=True))
    assert store.relations.unjudged(10) == [one.row, two.row]
    for chunk in (one, two):
        judged(store, chunk, chunk.text, chunk.text)
    store.vectors.put_vectors(MODEL, {two.content_hash: unit(1, 0, 0, 0)})
    assert store.relations.unjudged(10) == [two.row]
    store.documents.drop(["a.md"])
    assert store.relations.unjudged(10) == []


def test_the_best_standing_copy_stands_for_its_group_and_ties_break_by_id(store: Store) -> None:
    a, b, c = (put(store, f"{name}.md", name)[0] for name in "abc")
    for one, standing in ((a, "1"), (b, "2"), (c, "2")):
        judged(store, one, "same", "group", standing)
    best = min((b, c), key=lambda x: x.id)
    found = related(store, a, b, c)
    assert {row: r.superseded_by for row, r in found.items()} == {
        x.row: best.id for x in (a, b, c) if x is not best
    }
    assert all(r.copy and r.successor == best.citation for r in found.values())
    store.documents.drop([best.path])
    left = [x for x in (a, b, c) if x is not best]
    assert [r.superseded_by for r in related(store, *left).values()] == [
        max(left, key=lambda x: x.path != "a.md").id
    ]


def test_conflicts_are_between_forms_and_go_with_the_last_copy(store: Store) -> None:
    a, b, c = (put(store, f"{name}.md", name)[0] for name in "abc")
    judged(store, a, "8080", "8080", "1")
    judged(store, b, "9443", "9443", "2", "8080")
    judged(store, c, "8080", "8080", "3")
    assert related(store, b)[b.row].conflicts_with == (c.id,), "the newest of the copies"
    assert related(store, a)[a.row].conflicts_with == (b.id,)
    store.documents.drop(["c.md"])
    assert related(store, b)[b.row].conflicts_with == (a.id,)
    store.documents.drop(["a.md"])
    assert related(store, b) == {}
    again = put(store, "a.md", "a")[0]
    judged(store, again, "8080", "8080")
    assert related(store, again, b) == {}, "a text that comes back is judged anew"


def test_relations_only_name_what_passes_the_filters(store: Store) -> None:
    (a,) = put(store, "a.md", "a", facts=Facts(date=MARCH))
    (b,) = put(store, "b.md", "b", facts=Facts(date=APRIL))
    (c,) = put(store, "c.md", "c", facts=Facts(date=APRIL))
    judged(store, a, "same", "group", "1")
    judged(store, b, "same", "group", "2")
    judged(store, c, "other", "other", "1", "same", replaces=[("a.md", "")])
    assert related(store, a)[a.row] == Relations(
        c.id, c.citation, copy=False, conflicts_with=(c.id,)
    )
    assert related(store, a, filters=Filters(until=MARCH)) == {}


def test_forms_are_found_by_traits_the_likest_and_newest_first(store: Store) -> None:
    chunks = [put(store, f"{n:02}.md", f"text {n}")[0] for n in range(20)]
    for n, one in enumerate(chunks):
        store.relations.put_copies(
            [Copy(one, b"form%d" % n, b"group%d" % n, "1", traits=[1, 2] if n == 19 else [1])]
        )
    found = store.relations.forms_like([1, 2], 5)
    assert list(found) == [b"form19", b"form18", b"form17", b"form16", b"form15"]
    assert found[b"form18"].id == chunks[18].id
    assert store.relations.forms_like([3], 5) == {}
    assert store.relations.forms_like([], 5) == {}
    assert store.relations.known_forms([b"form3", b"group4", b"form99"], [2, 3, 1, 2**63 - 1]) == (
        {b"form3", b"group4"},
        {1, 2},
    )
    assert store.relations.known_forms([], []) == (set(), set())


def test_a_group_can_be_joined_and_all_be_judged_anew(store: Store) -> None:
    a, b = (put(store, f"{name}.md", name)[0] for name in "ab")
    judged(store, a, "a", "a")
    judged(store, b, "b", "b", "2", replaces=[("x.md", "")])
    store.relations.join(b"a", b"b")
    assert store.relations.group_of(b"a") == b"b"
    assert set(store.relations.forms_of(b"b", 5)) == {b"a", b"b"}
    assert related(store, a)[a.row].superseded_by == b.id
    store.relations.reset_judgements()
    assert store.relations.unjudged(5) == [a.row, b.row]
    assert (
        store.relations.group_of(b"a"),
        store.relations.forms_like([7], 5),
        related(store, a, b),
    ) == (None, {}, {})


def test_vectors_are_had_by_content(store: Store) -> None:
    (one,) = put(store, "a.md", "one")
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(0, 1, 0, 0)})
    assert list(store.vectors.by_hash(MODEL, [one.content_hash, "none"])) == [one.content_hash]
    assert store.vectors.by_hash(MODEL, [one.content_hash])[one.content_hash].tolist() == [
        0,
        1,
        0,
        0,
    ]
    assert store.vectors.by_hash("other", [one.content_hash]) == {}
    assert store.vectors.by_hash(MODEL, []) == {}


def test_what_extend_brings_is_known_to_lack_a_vector(store: Store) -> None:
    document = Document("a.jsonl", "sessions", 1, 1, "/a")
    first = chunk("a.jsonl", "first words", source="sessions")
    extend_document(store, document, "x", PLAIN, [first])
    store.vectors.put_vectors(MODEL, {first.content_hash: np.ones(4, dtype=np.float32)})
    assert store.vectors.missing(MODEL) == []
    extend_document(
        store, document, "y", PLAIN, [chunk("a.jsonl", "second words", source="sessions")]
    )
    assert len(store.vectors.missing(MODEL)) == 1, "a list made before it grew is not used any more"


def test_what_was_remembered_is_listed_without_what_the_store_counts(store: Store) -> None:
    store.set_meta("one", 1)
    store.set_meta("two", "zwei")
    put(store, "memory/a.md", "some text")
    told = store.remembered()
    assert {key: told[key] for key in ("one", "two")} == {"one": 1, "two": "zwei"}
    assert not {"generation", "chunks"} & told.keys()


def test_the_edges_of_a_document_are_those_that_were_put(store: Store) -> None:
    put(store, "memory/a.md", "one")
    put(store, "memory/b.md", "two")
    edges = [
        Edge("links", End("memory/a.md"), End("b")),
        Edge("causes", End("b", "L1"), End("memory/a.md", "head")),
    ]
    store.history.put_edges("memory/a.md", edges)
    assert store.history.edges_of("memory/a.md") == edges
    assert store.history.edges_of("memory/b.md") == store.history.edges_of("memory/none.md") == []


def test_judgements_are_read_as_they_were_made_and_those_that_wait_are_left_out(
    store: Store,
) -> None:
    one, two = put(store, "memory/a.md", "one", "two")
    store.relations.put_copies([Copy(one, b"form 1", b"group", "1", (), [1, 2], [b"form 2"])])
    assert store.relations.judgements([one.row, two.row]) == {
        one.row: Judgement(b"form 1", b"group", (b"form 2",))
    }
    store.relations.put_copies([Copy(two, b"form 2", b"other", "1", (), [3])])
    assert store.relations.judgements([two.row])[two.row].conflicts == (b"form 1",)
    assert store.relations.judgements([]) == {}


def test_one_at_a_time_has_the_index_and_a_second_is_told(store: Store) -> None:
    with store.exclusive(0.0) as mine:
        assert mine
        if store.name != ":memory:":
            with store.exclusive(0.0) as second:
                assert not second
        with store.embedding(0.0) as embeds:
            assert embeds, "vectors have a lock of their own, or none"
    with store.exclusive(0.0) as again:
        assert again


def test_text_is_found_as_it_stands_and_documents_by_their_rarest_word(store: Store) -> None:
    put(store, "memory/a.md", "the lamp of the hall")
    put(store, "memory/b.md", "the lamp and the zeppelin")
    assert store.documents.says("lamp of the")
    assert not store.documents.says("LAMP of")
    assert store.keywords.paths_with(["lamp", "zeppelin"]) == {"memory/b.md"}
    assert store.keywords.paths_with(["nowhere"]) == set()


def test_scrubbing_leaves_no_vector_of_text_that_is_gone(store: Store) -> None:
    kept, gone = put(store, "memory/a.md", "kept")[0], put(store, "memory/b.md", "gone")[0]
    vectors = {c.content_hash: np.full(4, 0.5, dtype=np.float32) for c in (kept, gone)}
    store.vectors.put_vectors(MODEL, vectors)
    store.documents.drop(["memory/b.md"])
    assert store.scrub()[0] == 1
    assert set(store.vectors.by_hash(MODEL, list(vectors))) == {kept.content_hash}


WINDOWS = b"the windows of a text"
MODEL64 = "model@64"


def test_windows_come_and_go_with_their_vector(store: Store) -> None:
    one, two = put(store, "a.md", "alpha", "beta")
    (copy,) = put(store, "b.md", "alpha")
    both = {c.content_hash: unit(1, 0, 0, 0) for c in (one, two)}
    store.vectors.put_vectors(
        MODEL, both, windows={one.content_hash: WINDOWS, "not embedded": WINDOWS}
    )
    store.vectors.put_vectors("other@4", both)
    assert store.vectors.windows(MODEL, [one.row, two.row, copy.row]) == {
        one.row: WINDOWS,
        copy.row: WINDOWS,
    }
    assert (
        store.vectors.windows("other@4", [one.row])
        == store.vectors.windows("none@4", [one.row])
        == {}
    )
    assert store.vectors.windows(MODEL, []) == {}
    assert store.audit() == []
    store.vectors.put_vectors(
        MODEL, {two.content_hash: unit(0, 1, 0, 0)}, windows={two.content_hash: b"new"}
    )
    assert store.vectors.windows(MODEL, [two.row]) == {two.row: b"new"}, (
        "what was read before is not used any more"
    )
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(0, 1, 0, 0)})
    assert store.vectors.windows(MODEL, [one.row, two.row]) == {two.row: b"new"}, (
        "those of another vector are gone"
    )


def test_the_nearest_windows_are_those_of_the_passages_asked_for(store: Store) -> None:
    random = np.random.default_rng(7)
    chunks = put(store, "a.md", *(f"text {n}" for n in range(40)))
    made = {
        c.content_hash: random.standard_normal((n % 4, 64)).astype(np.float32)
        for n, c in enumerate(chunks)
    }
    packed = {
        key: window_codes.pack(rows, [(n, n + 5) for n in range(len(rows))], 32)
        for key, rows in made.items()
    }
    packed[chunks[3].content_hash] = b"no windows"
    vectors = {key: np.eye(64, dtype=np.float32)[0] for key in made}
    store.vectors.put_vectors(
        MODEL64, vectors, windows={key: codes for key, codes in packed.items() if codes}
    )
    question = random.standard_normal(64).astype(np.float32)
    # those of the first are known to the second
    for some in (chunks[:9], chunks[5:], chunks[::-3], chunks[:1]):
        found = store.vectors.nearest_windows(MODEL64, question, [c.row for c in some])
        each = [window_codes.nearest([packed[c.content_hash]], question) for c in some]
        expected = {n: one for n, one in enumerate(each) if len(one.passages)}
        assert found.passages.tolist() == list(expected)
        assert found.cosines == pytest.approx(
            [one.cosines[0] for one in expected.values()], abs=2e-6
        )
        assert found.starts.tolist() == [one.starts[0] for one in expected.values()]
        assert found.ends.tolist() == [one.ends[0] for one in expected.values()]
    store.vectors.put_vectors(MODEL64, {chunks[5].content_hash: vectors[chunks[5].content_hash]})
    assert not len(store.vectors.nearest_windows(MODEL64, question, [chunks[5].row]).passages), (
        "they are gone"
    )


def test_windows_are_seen_inside_the_transaction_that_writes_them(store: Store) -> None:
    (one,) = put(store, "a.md", "alpha")

    def write() -> None:
        with store.writing():
            store.vectors.put_vectors(
                MODEL, {one.content_hash: unit(1, 0, 0, 0)}, windows={one.content_hash: WINDOWS}
            )
            assert store.vectors.windows(MODEL, [one.row]) == {one.row: WINDOWS}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    assert store.vectors.windows(MODEL, [one.row]) == {}


def test_a_text_that_moves_keeps_its_windows(store: Store) -> None:
    (one,) = put(store, "a.md", "alpha")
    store.vectors.put_vectors(
        MODEL, {one.content_hash: unit(1, 0, 0, 0)}, windows={one.content_hash: WINDOWS}
    )
    store.documents.drop(["a.md"])
    assert store.vectors.windows(MODEL, [one.row]) == {}
    (moved,) = put(store, "b.md", "alpha")
    assert store.vectors.windows(MODEL, [moved.row]) == {moved.row: WINDOWS}


def test_idle_windows_are_counted_and_trimmed_with_their_vectors(store: Store) -> None:
    (kept,) = put(store, "a.md", "alpha")
    keys = [kept.content_hash, "gone0", "gone1", "gone2"]
    for key in keys:
        store.vectors.put_vectors(MODEL, {key: unit(1, 0, 0, 0)}, windows={key: bytes(84)})
    assert store.vectors.idle() == (3, 300)
    assert store.vectors.trim(299) == 1
    assert store.vectors.idle() == (2, 200)
    assert store.vectors.prune([MODEL]) == 2
    assert store.vectors.windows(MODEL, [kept.row]) == {kept.row: bytes(84)}
    assert store.audit() == []
    put(store, "b.md", "beta")
    assert store.vectors.prune([]) == 1
    assert store.vectors.windows(MODEL, [kept.row]) == {}
    assert store.audit() == []


def test_scrubbing_leaves_no_windows_of_text_that_is_gone(store: Store) -> None:
    kept, gone = put(store, "memory/a.md", "kept")[0], put(store, "memory/b.md", "gone")[0]
    hashes = [kept.content_hash, gone.content_hash]
    store.vectors.put_vectors(
        MODEL, dict.fromkeys(hashes, unit(1, 1, 1, 1)), windows=dict.fromkeys(hashes, WINDOWS)
    )
    assert len(store.vectors.windows(MODEL, [kept.row, gone.row])) == 2
    store.documents.drop(["memory/b.md"])
    assert store.scrub()[0] == 1
    (again,) = put(store, "memory/c.md", "gone")
    assert store.vectors.windows(MODEL, [kept.row, gone.row, again.row]) == {kept.row: WINDOWS}
    assert store.audit() == []


def test_a_store_that_takes_writes_is_behind_nobody(store: Store) -> None:
    assert store.lag_s() is None
    assert not store.read_only


def test_documents_are_listed_with_what_is_counted_of_them(store: Store) -> None:
    put(
        store,
        "memory/b.md",
        "one",
        "two",
        facts=Facts("B", dt.date(2026, 5, 6), pinned=True),
        mtime_ns=7,
    )
    first = put(store, "memory/a.md", "three", facts=Facts("A"), source="extra")[0]
    put_document(store, Document("memory/empty.md", "memory", 0, 0, ""), "", PLAIN, [])
    a, b = store.documents.listed(NO_FILTERS)
    assert (a.path, a.source, a.title, a.date, a.pinned, a.chunks) == (
        "memory/a.md",
        "extra",
        "A",
        None,
        False,
        1,
    )
    assert (a.first_row, a.last_row) == (first.row, first.row)
    assert (b.path, b.date, b.mtime_ns, b.pinned, b.chunks) == (
        "memory/b.md",
        "2026-05-06",
        7,
        True,
        2,
    )
    assert b.last_row - b.first_row == 1
    assert [one.path for one in store.documents.listed(Filters(as_of=dt.date(2026, 5, 5)))] == [
        "memory/a.md"
    ]


def test_headings_are_counted_by_their_path(store: Store) -> None:
    made = [
        replace(chunk("a.md", text, line=n, heading=heading), row=n)
        for n, (text, heading) in enumerate(
            [("x", ("Log",)), ("y", ("Log", "Morning")), ("z", ("Log",)), ("w", ())], 1
        )
    ]
    put_document(
        store, Document("a.md", "memory", 1, 0, ""), "d", Facts(date=dt.date(2026, 5, 6)), made
    )
    assert dict(store.documents.headings(NO_FILTERS)) == {("Log",): 2, ("Log", "Morning"): 1, (): 1}
    assert store.documents.headings(Filters(until=dt.date(2026, 5, 5))) == []


def test_texts_with_a_part_come_newest_first_and_bounded(store: Store) -> None:
    put(store, "a.md", "tea #drink", "nothing", "#plan it", facts=Facts(date=dt.date(2026, 5, 6)))
    put(store, "b.md", "50% of _all #later", facts=Facts(date=dt.date(2026, 5, 8)))
    found = store.documents.texts_with("#", NO_FILTERS, 9)
    assert [text for _, text in found] == ["50% of _all #later", "#plan it", "tea #drink"]
    assert {path for path, _ in found} <= {one.path for one in store.documents.listed(NO_FILTERS)}
    assert [
        t for _, t in store.documents.texts_with("#", Filters(as_of=dt.date(2026, 5, 7)), 1)
    ] == ["#plan it"]
    assert [t for _, t in store.documents.texts_with("% of _", NO_FILTERS, 9)] == [
        "50% of _all #later"
    ]


def test_days_are_counted_by_the_time_of_a_turn_or_the_day_of_its_note(store: Store) -> None:
    put(store, "memory/2026-05-06.md", "one", "two", facts=Facts(date=dt.date(2026, 5, 6)))
    put(store, "memory/2026-05-07.md", "three", facts=Facts(date=dt.date(2026, 5, 7)))
    spoken = [
        replace(
            chunk("s.jsonl", text, line=n, source="sessions"),
            time=dt.datetime(2026, 5, day, 9, 0),  # noqa: DTZ001
        )
        for n, (text, day) in enumerate([("a", 6), ("b", 9)], 1)
    ]
    put_document(
        store,
        Document("s.jsonl", "sessions", 1, 0, ""),
        "d",
        Facts(date=dt.date(2026, 5, 6)),
        spoken,
    )
    found = [(d.day, d.documents, d.chunks) for d in store.history.days(NO_FILTERS)]
    assert found == [("2026-05-06", 2, 3), ("2026-05-07", 1, 1), ("2026-05-09", 1, 1)]
    assert [
        d.day for d in store.history.days(Filters(since=dt.date(2026, 5, 7), source="memory"))
    ] == ["2026-05-07"]


def test_rows_in_dispute_and_rows_with_copies_are_listed(store: Store) -> None:
    one, two, three = put(store, "a.md", "port 1", "port 2", "tea")
    again = put(store, "b.md", "tea at four")[0]
    store.relations.put_copies(
        [
            Copy(one, b"1", b"1", "1", conflicts=(b"2",)),
            Copy(two, b"2", b"2", "1"),
            Copy(three, b"3", b"3", "1"),
            Copy(again, b"4", b"3", "1"),
        ]
    )
    assert store.relations.disputed(9) == [two.row, one.row]
    assert store.relations.disputed(1) == [two.row]
    assert store.relations.copied(9) == [again.row, three.row]
