"""The keyword index against brute force: whatever is written, dropped, sealed, merged and asked, in
any order.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from notewell.errors import StoreDamagedError
from notewell.store.sqlite import keywords
from notewell.store.sqlite.checksum_vfs import checking_vfs
from notewell.store.sqlite.keyword_segments import SegmentGoneError
from notewell.store.sqlite.sizes import SegmentSizes
from notewell.store.sqlite.store import SqliteStore
from notewell.store.term_places import places_in
from notewell.store.values import Sought
from notewell.types import Chunk, Document, Facts, Filters
from tests.store.made import put_document

K1, B = 1.2, 0.75
NOWHERE = Filters()
WORDS = ("ant", "bee", "cat", "dogs", "running", "茶茶", "茶の本", "備份腳本", "備份")
TERMS = (
    "ant",
    "bee",
    "cat",
    "dog",
    "run",
    "茶茶",
    "茶の",
    "の本",
    "備份",
    "份腳",
    "腳本",
    "本",
    "absent",
)


SMALL = SegmentSizes(
    seal_rows=3, merged=3, small_rows=8, check_dropped=2, dead_share=4, unsealed_parts=2
)
"""Segments that a handful of notes fills."""


def note(
    store: SqliteStore, path: str, *texts: str, heading: tuple[str, ...] = (), day: int = 1
) -> None:
    chunks = [
        Chunk(f"{path}#{n}", path, "memory", n, n, heading, t, f"{path}{n}{t}")
        for n, t in enumerate(texts)
    ]
    facts = Facts(date=dt.date(2026, 1, day))
    put_document(store, Document(path, "memory", 1, 1, ""), "d", facts, chunks)


@dataclass(frozen=True)
class Passage:
    id: str
    path: str
    head: list[str]
    body: list[str]
    exact: list[str]


@dataclass
class Truth:
    """What is there, and BM25 over all of it, the long way."""

    passages: dict[int, Passage] = field(default_factory=dict)

    @classmethod
    def of(cls, store: SqliteStore) -> Truth:
        rows = [r[0] for r in store.connection.all("SELECT row FROM chunks ORDER BY row")]
        terms = store.keywords.chunk_terms(rows)
        return cls(
            {
                row: Passage(
                    c.id, c.path, *map(list, (terms[row].head, terms[row].body, terms[row].exact))
                )
                for row, c in store.documents.chunks(rows).items()
            }
        )

    def often(self, passage: Passage, kind: str, what: Any, *, in_head: bool) -> float:
        """How often something stands in a passage, weighed by field."""
        if kind == "exact":
            return 0.25 * passage.exact.count(what)
        counts: list[int] = []
        for words in (passage.head, passage.body):
            if kind == "phrase":
                counts.append(sum(pair == what for pair in pairwise(words)))
            else:
                counts.append(
                    sum(w == what if kind == "word" else w.startswith(what) for w in words)
                )
        return float(counts[1]) + (1.5 if in_head and counts[0] else 0.0)

    def weight(self, kind: str, what: Any, *, in_head: bool) -> float:
        """How rare it is; a phrase as much as passages that have both of its words in one field
        are.
        """
        found = 0
        for p in self.passages.values():
            if kind == "phrase":
                fields = (p.head, p.body) if in_head else (p.body,)
                found += any(what[0] in f and what[1] in f for f in fields)
            else:
                found += self.often(p, kind, what, in_head=in_head) > 0
        return math.log(1 + (len(self.passages) - found + 0.5) / (found + 0.5))

    def ranked(self, sought: Sought, limit: int, paths: set[str] | None) -> list[tuple[str, float]]:
        parts = [("word", w) for w in dict.fromkeys(sought.words)]
        parts += [("prefix", w) for w in dict.fromkeys(sought.prefixes)]
        parts += [("exact", w) for w in dict.fromkeys(sought.exact)]
        parts += [("phrase", w) for w in dict.fromkeys(sought.phrases)]  # type: ignore[misc]
        mean = sum(len(p.body) for p in self.passages.values()) / (len(self.passages) or 1)
        scored = []
        for p in self.passages.values():
            often = [self.often(p, kind, what, in_head=sought.in_head) for kind, what in parts]
            if not (all(often) if sought.every else any(often)) or (
                paths is not None and p.path not in paths
            ):
                continue
            norm = K1 * (1 - B + B * len(p.body) / (mean or 1))
            gains = [
                self.weight(kind, what, in_head=sought.in_head) * tf * (K1 + 1) / (tf + norm)
                for (kind, what), tf in zip(parts, often, strict=True)
                if tf
            ]
            scored.append((sum(gains), p.id))
        return [(name, score) for score, name in sorted(scored, key=lambda s: (-s[0], s[1]))][
            :limit
        ]


def check(
    store: SqliteStore, sought: Sought, limit: int, filters: Filters, paths: set[str] | None
) -> None:
    """The leg's answer is that of brute force: the same scores, and the same passages where no two
    tie.
    """
    truth = Truth.of(store)
    expected = truth.ranked(sought, limit, paths)
    everything = dict(truth.ranked(sought, 10_000, paths))
    found = store.keywords.lexical(sought, limit, filters)
    names = [truth.passages[s.row].id for s in found]
    assert [s.score for s in found] == pytest.approx([score for _, score in expected])
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)
    assert [everything[name] for name in names] == pytest.approx([score for _, score in expected])
    assert len(set(names)) == len(names)
    counts = store.keywords.term_counts(TERMS)
    assert counts.chunks == len(truth.passages)
    for term, count in counts.found_in.items():
        assert count == sum(term in p.head or term in p.body for p in truth.passages.values()), term


texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=4)
acts = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 5), texts, st.sampled_from(["", "ant", "茶の本 bee"])),
    st.tuples(st.just("drop"), st.integers(0, 5)),
    st.tuples(st.just("scrub")),
    st.tuples(st.just("look")),
    st.tuples(st.just("fail"), st.integers(0, 5), texts),
)
some = st.lists(st.sampled_from(TERMS), max_size=4).map(tuple)
soughts = st.builds(
    Sought,
    some,
    st.lists(st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS)), max_size=3).map(tuple),
    st.lists(st.sampled_from(["茶", "a", "備", "zz"]), max_size=2).map(tuple),
    st.lists(st.sampled_from(["dogs", "running", "ant"]), max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
)


def fail(store: SqliteStore, path: str, texts: list[str]) -> None:
    """A write that is undone, after somebody looked at it."""
    with store.writing():
        note(store, path, *texts, "zebra")
        assert store.keywords.term_counts(["zebra"]).found_in == {"zebra": 1}
        raise KeyError


def play(store: SqliteStore, act: tuple[Any, ...]) -> None:
    match act:
        case ("put", number, written, heading):
            note(
                store,
                f"{number}.md",
                *written,
                heading=(heading,) if heading else (),
                day=number + 1,
            )
        case ("drop", number):
            store.documents.drop([f"{number}.md"])
        case ("scrub",):
            store.scrub()
        case ("look",):
            store.keywords.lexical(Sought(TERMS), 3, NOWHERE)
        case ("fail", number, written):
            with pytest.raises(KeyError):
                fail(store, f"{number}.md", written)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(acts, max_size=14),
    soughts,
    st.integers(1, 4),
    st.sampled_from([None, "2.md", "since"]),
    st.sampled_from([0, 3, 1000]),
)
@example([("put", 0, ["茶茶茶 ant", ""], "ant")], Sought(phrases=(("茶茶", "茶茶"),)), 2, None, 0)
def test_any_history_and_any_question_is_as_brute_force_says(
    history: list[tuple[Any, ...]], sought: Sought, limit: int, chosen: str | None, few: int
) -> None:
    filters, paths = {
        None: (NOWHERE, None),
        "2.md": (Filters(path="2.md"), {"2.md"}),
        "since": (Filters(since=dt.date(2026, 1, 3)), {f"{n}.md" for n in range(2, 6)}),
    }[chosen]
    store = SqliteStore(None, sizes=replace(SMALL, few_postings=few))
    for act in history:
        play(store, act)
    if sought:
        check(store, sought, limit, filters, paths)
    rows = [r[0] for r in store.connection.all("SELECT row FROM chunks ORDER BY row")]
    by_number, spelled = (
        store.keywords.term_places([*rows, 999], sought),
        places_in(store.keywords.chunk_terms(rows), sought),
    )
    assert by_number.rows == spelled.rows
    for name in ("lengths", "body", "head", "exact"):
        one, other = getattr(by_number, name).T.tolist(), getattr(spelled, name).T.tolist()
        assert {*map(tuple, one)} == {*map(tuple, other)} if name == "head" else one == other, name
    assert store.audit() == []
    left = Truth.of(store).passages.values()
    store.scrub()
    words = {w for p in left for w in (*p.head, *p.body, *p.exact)}
    assert {w for (w,) in store.connection.all("SELECT word FROM words")} == words
    assert store.connection.all("SELECT count(*) FROM dead") == [(0,)]
    assert store.audit() == []
    store.close()


@pytest.mark.parametrize("few", [0, 100_000])
def test_the_best_of_many_are_those_of_all_however_few_are_asked_for(few: int) -> None:
    store = SqliteStore(None, sizes=replace(SMALL, seal_rows=40, small_rows=200, few_postings=few))
    for n in range(60):
        words = [f"w{(n * k) % 17}" for k in range(1, 9)] + ["common"] * (n % 5)
        note(store, f"{n}.md", " ".join(words), " ".join(words[::2]))
    sought = Sought(("common", "w1", "w2", "w3", "w16"))
    every = store.keywords.lexical(sought, 1000, NOWHERE)
    assert len(every) > 50
    for limit in (1, 2, 5, 10, 50):
        found = store.keywords.lexical(sought, limit, NOWHERE)
        assert [s.score for s in found] == [s.score for s in every[:limit]], "to the last bit"
        check(store, sought, limit, NOWHERE, None)


def test_segments_stay_few_and_a_segment_of_the_dead_goes() -> None:
    store = SqliteStore(None, sizes=replace(SMALL, seal_rows=4, merged=4, small_rows=16))
    for n in range(100):
        note(store, f"{n}.md", f"apple number{n}")
    counts = [
        r[0] for r in store.connection.all("SELECT count FROM keyword_segments ORDER BY first")
    ]
    assert sum(counts) == 100
    assert len(counts) <= 100 / 16 + 4
    store.documents.drop([f"{n}.md" for n in range(90)])
    assert sum(r[0] for r in store.connection.all("SELECT count FROM keyword_segments")) < 60
    assert store.keywords.term_counts(["appl"]).found_in == {"appl": 10}
    assert store.audit() == []


def test_what_many_new_notes_leave_is_sealed_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(None, sizes=replace(SMALL, seal_rows=1000, seal_many=6))
    note(store, "few.md", *(f"apple {n}" for n in range(5)))
    assert store.get_meta("sealed") == 0
    with store.writing():
        for n in range(6):
            note(store, f"{n}.md", f"apple pear{n}")
    assert store.get_meta("sealed") == 11
    monkeypatch.setattr(
        store.keywords._segments,
        "build",
        lambda _: pytest.fail("nothing waits for the first search"),
    )
    check(store, Sought(("appl", "pear3")), 20, NOWHERE, None)
    monkeypatch.undo()
    assert store.audit() == []


def test_what_waits_is_built_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(None, sizes=replace(SMALL, seal_rows=1000, unsealed_parts=9))
    monkeypatch.setattr(keywords, "_BUILT", 2)
    for n in range(7):
        note(store, f"{n}.md", f"apple pear{n}")
    check(store, Sought(("appl", "pear3")), 20, NOWHERE, None)
    assert [len(one.segment.rows) for one in store.keywords._snapshot().segments] == [2, 2, 2, 1]


def test_a_search_goes_on_while_another_process_merges(tmp_path: Path) -> None:
    writer = SqliteStore(tmp_path / "index.sqlite", sizes=replace(SMALL, seal_rows=4, merged=2))
    note(writer, "a.md", *(f"apple {n}" for n in range(6)))
    reader = SqliteStore(tmp_path / "index.sqlite", sizes=replace(SMALL, seal_rows=4, merged=2))
    assert len(reader.keywords.lexical(Sought(("appl",)), 99, NOWHERE)) == 6
    snapshot = reader.keywords._snapshot()
    reader.keywords._pages.clear()
    for n in range(6):
        note(writer, f"b{n}.md", *(f"apple {n}" for n in range(6)))
    with pytest.raises(SegmentGoneError):
        snapshot._gathered([2 * reader.keywords._numbers(["appl"])["appl"]])
    assert len(reader.keywords.lexical(Sought(("appl",)), 99, NOWHERE)) == 42
    assert [len(w.segment.rows) for w in reader.keywords._snapshot().segments if not w.number] == []
    writer.close()
    reader.close()


def test_a_reader_follows_without_reading_all_again(tmp_path: Path) -> None:
    writer, reader = (
        SqliteStore(tmp_path / "index.sqlite", sizes=replace(SMALL, seal_rows=1000)),
        SqliteStore(tmp_path / "index.sqlite", sizes=replace(SMALL, seal_rows=1000)),
    )
    for n in range(9):
        note(writer, f"{n}.md", f"apple pear{n}")
        assert len(reader.keywords.lexical(Sought(("appl",)), 99, NOWHERE)) == n + 1
        assert sum(len(h.segment.rows) for h in reader.keywords._snapshot().segments) == n + 1
        assert len(reader.keywords._snapshot().segments) <= 3
    writer.documents.drop(["3.md"])
    assert len(reader.keywords.lexical(Sought(("appl",)), 99, NOWHERE)) == 8
    writer.close()
    reader.close()


@pytest.mark.parametrize(
    "script",
    [
        "UPDATE postings SET page = zeroblob(length(page))",
        "UPDATE postings SET page = x'00'",
        "DELETE FROM postings",
        "UPDATE keyword_segments SET rows = x'00'",
        "UPDATE keyword_segments SET keys = zeroblob(length(keys))",
        "UPDATE keyword_segments SET width = 3",
    ],
)
def test_damaged_postings_are_said_to_be(tmp_path: Path, script: str) -> None:
    file = tmp_path / "index.sqlite"
    store = SqliteStore(file, sizes=SMALL)
    note(store, "a.md", "apple one", "apple two", "apple three")
    store.close()
    db = apsw.Connection(str(file), vfs=checking_vfs())
    db.execute(script)
    db.close()
    store = SqliteStore(file)
    with pytest.raises(StoreDamagedError, match="keywords"):
        store.keywords.lexical(Sought(("appl",)), 9, NOWHERE)
    assert any("keyword" in fault for fault in store.audit())
    store.close()


@pytest.mark.parametrize("blob", ["x'80'", "x'ffffffffffffff01'", "x'ff7f'"])
def test_damaged_words_of_a_passage_are_said_to_be(tmp_path: Path, blob: str) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    note(store, "a.md", "apple one")
    store.connection.db.execute(f"UPDATE fields SET body = {blob}")
    with pytest.raises(StoreDamagedError):
        store.keywords.chunk_terms([1])
    assert any("keyword" in fault for fault in store.audit())
    store.close()


def test_no_row_number_is_used_again() -> None:
    store = SqliteStore(None)
    note(store, "a.md", "one", "two")
    store.documents.drop(["a.md"])
    note(store, "a.md", "one")
    assert [c.row for c in store.documents.chunks_of("a.md")] == [3]


def test_ties_at_the_border_go_by_id_whatever_the_order_of_writing() -> None:
    found: list[list[str]] = []
    for order in ("abcdef", "fedcba", "cafebd"):
        store = SqliteStore(None, sizes=replace(SMALL, seal_rows=2))
        for name in order:
            note(store, f"{name}.md", "apple pear")
        best = store.keywords.lexical(Sought(("appl",)), 3, NOWHERE)
        found.append(sorted(store.documents.chunks([s.row])[s.row].id for s in best))
    assert found == [["a.md#0", "b.md#0", "c.md#0"]] * 3


def test_one_passage_alone_has_the_terms_that_it_has_among_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = SqliteStore(None)
    for n in range(4):
        note(store, f"{n}.md", f"the quick word{n} runs over word{n + 1}", heading=("Head",))
    rows = [1, 2, 3, 4]
    # the first by its own words, then by all
    alone = {row: store.keywords.chunk_terms([row])[row] for row in rows}
    assert alone == store.keywords.chunk_terms(rows)
    note(store, "more.md", "an unheard newcomer")
    assert store.keywords.chunk_terms([rows[0]])[rows[0]] == alone[rows[0]]
    monkeypatch.setattr("notewell.store.sqlite.keywords._FEW_WORDS", 0)
    note(store, "again.md", "yet another stranger")
    assert store.keywords.chunk_terms([rows[1]])[rows[1]] == alone[rows[1]]
