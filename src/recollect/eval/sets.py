"""Labelled questions: the corpus format of the public sets, and the simple one for anybody's own notes."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from recollect.errors import UsageError
from recollect.ports import Scanned
from recollect.types import Document

_FORMAT = "corpus: id, path, text; queries: id, text; qrels: query, document and grade with tabs between"
_OWN_FORMAT = 'write {"query": "…", "expect": "memory/note.md#12"}'
# A tail after # is lines, unless it ends a file's name: `memory/c#.md`.
_EXPECT = re.compile(r"(?P<path>[^#]+(?:#[^#]*\.[^#]*)*)(?:#L?(?P<first>\d+)(?:-L?(?P<last>\d+))?)?")


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

    @property
    def answerable(self) -> bool:
        """Whether any document answers it; a label of 0 says that one does not."""
        return any(grade > 0 for grade in self.grades.values())


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
        f"{path} is no evaluation set",
        hint="give a folder with corpus.jsonl, queries.jsonl and qrels.tsv, or a .jsonl or .yaml file",
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="it must be UTF-8 text") from error


def _lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(_read(path).split("\n"), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{path} line {number} is not JSON: {error}", hint="one object a line") from error


_Row = TypeVar("_Row")


def _each(path: Path, rows: Iterable[_Row], take: Callable[[_Row], None]) -> None:
    """Takes every row; one that is not as it should be is named by its number."""
    for number, row in enumerate(rows, start=1):
        try:
            take(row)
        except KeyError as error:
            raise UsageError(f"{path} entry {number}: {error} is missing or unknown", hint=_FORMAT) from error
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError(f"{path} entry {number}: {error}", hint=_FORMAT) from error


def _table(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    return [line.rstrip("\r").split("\t") for line in _read(path).split("\n") if line.strip()]


def _folder(folder: Path) -> EvalSet:  # noqa: C901 - one small reader for each of the six files
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        if not (folder / name).exists():
            hint = "an evaluation set is a folder with corpus, queries and qrels"
            raise UsageError(f"{folder} has no {name}", hint=hint)
    corpora: dict[str, dict[str, str]] = defaultdict(dict)
    path_of: dict[str, str] = {}
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    places: dict[str, Span] = {}
    spans: dict[str, list[Span]] = defaultdict(list)
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    questions: list[Question] = []

    def document(row: Any) -> None:
        corpora[row.get("workspace", "")][row["path"]] = row["text"]
        path_of[row["id"]] = row["path"]

    def label(row: list[str]) -> None:
        query, name, grade = row
        grades[query][path_of[name]] = int(grade)

    def place(row: Any) -> None:
        places[row["id"]] = Span(path_of[row["doc"]], row["line_start"], row["line_end"])

    def span(row: list[str]) -> None:
        query, name, _ = row
        spans[query].append(places[name])

    def pair(row: list[str]) -> None:
        query, newer, older = row
        pairs[query].append((path_of[newer], path_of[older]))

    def question(row: Any) -> None:
        own = row["id"]
        where = row.get("workspace", "")
        if where not in corpora:
            raise ValueError(f"no document is in its workspace {where!r}")
        kind, now = row.get("type", "-"), _moment(row.get("date"))
        found = grades.get(own, {}), tuple(spans.get(own, ())), tuple(pairs.get(own, ()))
        questions.append(Question(own, row["text"], where, kind, now, *found))

    _each(folder / "corpus.jsonl", _lines(folder / "corpus.jsonl"), document)
    _each(folder / "qrels.tsv", _table(folder / "qrels.tsv"), label)
    if (folder / "spans.jsonl").exists():
        _each(folder / "spans.jsonl", _lines(folder / "spans.jsonl"), place)
    _each(folder / "qrels_spans.tsv", _table(folder / "qrels_spans.tsv"), span)
    _each(folder / "newer_older.tsv", _table(folder / "newer_older.tsv"), pair)
    _each(folder / "queries.jsonl", _lines(folder / "queries.jsonl"), question)
    return EvalSet(folder.name, tuple(questions), corpora)


def _moment(value: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(value) if value else None


def _own(path: Path) -> EvalSet:
    return from_rows(path.stem, _yaml(path) if path.suffix in (".yaml", ".yml") else list(_lines(path)))


def from_rows(name: str, rows: Sequence[Any]) -> EvalSet:
    """A set over the user's own workspace from `{query, expect: path[#line], type?}` rows."""
    questions = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not isinstance(row.get("query"), str):
            raise UsageError(f"{name} entry {number} has no query", hint=_OWN_FORMAT)
        try:
            now = _moment(str(row["date"])) if row.get("date") else None
            grades, spans = _expected(row.get("expect") or [])
        except ValueError as error:
            raise UsageError(f"{name} entry {number}: {error}", hint=_OWN_FORMAT) from error
        questions.append(Question(str(number), row["query"], "", str(row.get("type", "-")), now, grades, spans))
    return EvalSet(name, tuple(questions))


def _expected(value: Any) -> tuple[dict[str, int], tuple[Span, ...]]:
    """Paths with a grade of 1, and the lines that were named."""
    grades: dict[str, int] = {}
    spans: list[Span] = []
    for one in value if isinstance(value, list) else [value]:
        match = _EXPECT.fullmatch(one) if isinstance(one, str) else None
        if match is None:
            raise ValueError(f"{one!r} is no path, with or without lines")
        grades[match["path"]] = 1
        if match["first"]:
            spans.append(Span(match["path"], int(match["first"]), int(match["last"] or match["first"])))
    return grades, tuple(spans)


def _yaml(path: Path) -> list[Any]:
    try:
        import yaml  # type: ignore[import-untyped] # noqa: PLC0415
    except ImportError as error:
        raise UsageError("reading YAML needs PyYAML", hint="pip install pyyaml, or write JSONL") from error
    try:
        rows = yaml.safe_load(_read(path))
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {error}", hint="mend it, or write JSONL") from error
    if not isinstance(rows, list):
        raise UsageError(f"{path} is no list of questions", hint="begin each with '- query:'")
    return rows
