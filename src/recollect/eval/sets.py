"""Labelled questions: the corpus format of the public sets, and the simple one for anybody's own notes."""

from __future__ import annotations

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect.errors import UsageError
from recollect.ports import Scanned
from recollect.types import Document


@dataclass(frozen=True, slots=True)
class Span:
    """Lines of a document that hold the evidence."""

    document: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its labels; no label means that nothing answers it."""

    id: str
    text: str
    workspace: str = ""
    kind: str = "-"
    now: dt.datetime | None = None
    grades: Mapping[str, int] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    newer_older: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class EvalSet:
    """A set: questions, and the documents of each workspace as path to text (none: the user's own workspace)."""

    name: str
    questions: tuple[Question, ...]
    corpora: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class TextSource:
    """Documents that are in memory already."""

    name = "memory"

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def scan(self, *, deadline: float | None = None) -> Scanned:
        """All of them."""
        del deadline
        return Scanned(tuple(Document(p, self.name, len(t), 0, p) for p, t in sorted(self.texts.items())))

    def read(self, document: Document) -> str:
        """The text."""
        return self.texts[document.path]


def load(path: Path) -> EvalSet:
    """A set from a folder of the public format, or from a YAML or JSONL file of questions."""
    if path.is_dir():
        return _folder(path)
    if path.suffix in (".jsonl", ".json", ".yaml", ".yml"):
        return _own(path)
    raise UsageError(
        f"{path} is no evaluation set", hint="give a folder with corpus.jsonl, queries.jsonl and qrels.tsv, or a .jsonl or .yaml file"
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    raise UsageError(f"{path} line {number} is not JSON: {error.msg}", hint="one object a line") from error


def _table(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _folder(folder: Path) -> EvalSet:
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        if not (folder / name).exists():
            raise UsageError(f"{folder} has no {name}", hint="an evaluation set is a folder with corpus, queries and qrels")
    corpora: dict[str, dict[str, str]] = defaultdict(dict)
    path_of: dict[str, str] = {}
    for row in _lines(folder / "corpus.jsonl"):
        corpora[row.get("workspace", "")][row["path"]] = row["text"]
        path_of[row["id"]] = row["path"]
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for query, document, grade in _table(folder / "qrels.tsv"):
        grades[query][path_of[document]] = int(grade)
    places = {
        row["id"]: Span(path_of[row["doc"]], row["line_start"], row["line_end"])
        for row in (_lines(folder / "spans.jsonl") if (folder / "spans.jsonl").exists() else ())
    }
    spans: dict[str, list[Span]] = defaultdict(list)
    for query, span, _ in _table(folder / "qrels_spans.tsv"):
        spans[query].append(places[span])
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for query, newer, older in _table(folder / "newer_older.tsv"):
        pairs[query].append((path_of[newer], path_of[older]))
    questions = tuple(
        Question(
            row["id"],
            row["text"],
            row.get("workspace", ""),
            row.get("type", "-"),
            _moment(row.get("date")),
            grades.get(row["id"], {}),
            tuple(spans.get(row["id"], ())),
            tuple(pairs.get(row["id"], ())),
        )
        for row in _lines(folder / "queries.jsonl")
    )
    return EvalSet(folder.name, questions, corpora)


def _moment(value: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(value) if value else None


def _own(path: Path) -> EvalSet:
    return from_rows(path.stem, _yaml(path) if path.suffix in (".yaml", ".yml") else list(_lines(path)))


def from_rows(name: str, rows: Sequence[Any]) -> EvalSet:
    """A set over the user's own workspace from `{query, expect: path[#line], type?}` rows."""
    questions = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not isinstance(row.get("query"), str):
            raise UsageError(f"{name} entry {number} has no query", hint='write {"query": "…", "expect": "memory/note.md#12"}')
        expected = row.get("expect") or []
        grades, spans = {}, []
        for one in [expected] if isinstance(expected, str) else expected:
            file, _, line = str(one).partition("#")
            grades[file] = 1
            if line:
                first, _, last = line.replace("L", "").partition("-")
                spans.append(Span(file, int(first), int(last or first)))
        now = _moment(str(row["date"])) if row.get("date") else None
        questions.append(Question(str(number), row["query"], "", str(row.get("type", "-")), now, grades, tuple(spans)))
    return EvalSet(name, tuple(questions))


def _yaml(path: Path) -> list[Any]:
    try:
        import yaml  # type: ignore[import-untyped] # noqa: PLC0415
    except ImportError as error:
        raise UsageError("reading YAML needs PyYAML", hint="pip install pyyaml, or write JSONL") from error
    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {error}", hint="mend it, or write JSONL") from error
    if not isinstance(rows, list):
        raise UsageError(f"{path} is no list of questions", hint="begin each with '- query:'")
    return rows
