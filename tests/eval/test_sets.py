"""Labelled questions from files: the public format, anybody's own, and files that are not as they
should be.
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import pytest

from notewell.errors import UsageError
from notewell.eval.sets import EvalSet, Question, Span, TextSource, from_rows, load
from tests.eval.made import CORPUS, jsonl, write_set


def test_a_folder_of_the_public_format(tmp_path: Path) -> None:
    found = load(write_set(tmp_path / "tiny"))
    assert found.name == "tiny"
    assert {name: sorted(texts) for name, texts in found.corpora.items()} == {
        "w1": ["memory/2026-01-10.md", "memory/2026-02-10.md", "memory/tea.md"],
        "w2": ["memory/tea.md"],
    }
    assert found.corpora["w2"]["memory/tea.md"] == CORPUS[3]["text"]
    assert found.questions[0] == Question(
        "q1",
        "staging port",
        "w1",
        "fact",
        dt.datetime(2026, 3, 12),  # noqa: DTZ001 - as it is written
        {"memory/2026-02-10.md": 2, "memory/2026-01-10.md": 1},
        (Span("memory/2026-02-10.md", 3, 3),),
        (("memory/2026-02-10.md", "memory/2026-01-10.md"),),
    )
    assert [q.now for q in found.questions[1:]] == [None] * 3
    assert [q.answerable for q in found.questions] == [True, True, True, False]


def test_spans_pairs_workspaces_types_and_dates_may_be_missing(tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(jsonl([{"id": "1", "path": "a.md", "text": "x"}]))
    (folder / "queries.jsonl").write_text(jsonl([{"id": "q", "text": "x?"}]))
    (folder / "qrels.tsv").write_bytes(b"q\t1\t1\r\n\r\n")
    assert load(folder) == EvalSet(
        "bare", (Question("q", "x?", grades={"a.md": 1}),), {"": {"a.md": "x"}}
    )


def test_a_label_of_0_is_no_answer() -> None:
    assert not Question("q", "x", grades={"a.md": 0}).answerable


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("corpus_jsonl", '{"id": "d1"', "corpus.jsonl line 1 is not JSON"),
        (
            "corpus_jsonl",
            '\n{"id": "d1", "path": "a.md"}',
            "corpus.jsonl entry 1: 'text' is missing",
        ),
        ("corpus_jsonl", "[1]", "corpus.jsonl entry 1"),
        ("corpus_jsonl", "", "entry 1: 'd2' is missing or unknown"),
        ("qrels_tsv", "query-id\tcorpus-id\tscore", "qrels.tsv entry 1"),
        ("qrels_tsv", "q1\td2\t2\nq1\td2", "qrels.tsv entry 2"),
        ("qrels_tsv", "q1\td2\thigh", "qrels.tsv entry 1: invalid literal"),
        (
            "spans_jsonl",
            '{"id": "s1", "doc": "d9", "line_start": 1, "line_end": 1}',
            "spans.jsonl entry 1: 'd9'",
        ),
        ("qrels_spans_tsv", "q1\ts9\t1", "qrels_spans.tsv entry 1: 's9'"),
        ("newer_older_tsv", "q1\td2", "newer_older.tsv entry 1"),
        ("queries_jsonl", '{"id": "q1"}', "queries.jsonl entry 1"),
        (
            "queries_jsonl",
            '{"id": "q1", "text": "x", "workspace": "w9"}',
            "no document is in its workspace 'w9'",
        ),
        (
            "queries_jsonl",
            '{"id": "q1", "text": "x", "workspace": "w1", "date": "May"}',
            "queries.jsonl entry 1",
        ),
    ],
)
def test_a_file_that_is_not_as_it_should_be_names_the_place(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(write_set(tmp_path / "tiny", **{name: text}))
    assert message in str(caught.value)
    assert caught.value.hint


def test_a_folder_that_lacks_a_file_and_a_file_of_another_kind_are_refused(tmp_path: Path) -> None:
    (write_set(tmp_path / "tiny") / "qrels.tsv").unlink()
    with pytest.raises(UsageError, match=r"has no qrels\.tsv") as caught:
        load(tmp_path / "tiny")
    assert "corpus, queries and qrels" in caught.value.hint
    with pytest.raises(UsageError, match=r"notes\.txt is not an evaluation set") as caught:
        load(tmp_path / "notes.txt")
    assert ".jsonl" in caught.value.hint


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read") as caught:
        load(tmp_path / "mine.jsonl")
    assert caught.value.hint == "it must be a regular file of UTF-8 text"


OWN = EvalSet(
    "mine",
    (
        Question("1", "port?", grades={"memory/a.md": 1}, spans=(Span("memory/a.md", 3, 3),)),
        Question(
            "2",
            "tea?",
            kind="how",
            now=dt.datetime(2026, 3, 12),  # noqa: DTZ001 - as it is written
            grades={"b.md": 1, "memory/c#.md": 1},
            spans=(Span("memory/c#.md", 4, 9),),
        ),
        Question("3", "zeppelin?"),
    ),
)


def test_your_own_questions_as_jsonl(tmp_path: Path) -> None:
    rows = [
        {"query": "port?", "expect": "memory/a.md#3"},
        {
            "query": "tea?",
            "expect": ["b.md", "memory/c#.md#L4-L9"],
            "type": "how",
            "date": "2026-03-12",
        },
        {"query": "zeppelin?"},
    ]
    (tmp_path / "mine.jsonl").write_text("\ufeff" + jsonl(rows) + "\n", encoding="utf-8")
    assert load(tmp_path / "mine.jsonl") == OWN


def test_your_own_questions_as_yaml(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "mine.yaml").write_text(
        "- query: port?\n  expect: memory/a.md#3\n"
        "- query: tea?\n  expect: [b.md, 'memory/c#.md#4-9']\n  type: how\n  date: 2026-03-12\n"
        "- query: zeppelin?\n"
    )
    assert load(tmp_path / "mine.yaml") == OWN


def test_yaml_without_pyyaml_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "mine.yaml").write_text("- query: x\n")
    with pytest.raises(UsageError, match="needs PyYAML") as caught:
        load(tmp_path / "mine.yaml")
    assert caught.value.hint == "pip install pyyaml, or write JSONL"


@pytest.mark.parametrize(
    ("text", "message"), [("query: x", "not a list of questions"), ("- [", "not valid YAML")]
)
def test_yaml_that_is_no_list_of_questions_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "mine.yml").write_text(text)
    with pytest.raises(UsageError, match=message):
        load(tmp_path / "mine.yml")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "x"}, "mine entry 2 has no query"),
        ({"query": 3}, "mine entry 2 has no query"),
        ("x", "mine entry 2 has no query"),
        ({"query": "x", "expect": "a.md#intro"}, "mine entry 2: 'a.md#intro' is not a path"),
        ({"query": "x", "expect": 7}, "mine entry 2: 7 is not a path"),
        ({"query": "x", "expect": ["a.md", None]}, "mine entry 2: None is not a path"),
        ({"query": "x", "date": "May"}, "mine entry 2: Invalid isoformat"),
    ],
)
def test_a_question_of_yours_that_is_not_as_it_should_be_is_named_by_its_number(
    row: object, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        from_rows("mine", [{"query": "fine"}, row])
    assert message in str(caught.value)
    assert caught.value.hint == 'write {"query": "…", "expect": "memory/note.md#12"}'


def test_documents_in_memory_are_a_source() -> None:
    source = TextSource({"b.md": "two", "a.md": "one"})
    documents = source.scan().documents
    assert [d.path for d in documents] == ["a.md", "b.md"]
    assert [source.read(d) for d in documents] == ["one", "two"]
