"""Labelled questions, in the format of the public sets or in a simple one for your own notes."""

from __future__ import annotations

import datetime as dt
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from notewell.errors import UsageError
from notewell.opener import ANYWHERE, Opener
from notewell.sources.source import Scanned
from notewell.store.ports import Store
from notewell.text.words import STOP_WORDS, query_terms
from notewell.types import Chunk, Document

_FORMAT = (
    "corpus: id, path, text; queries: id, text; qrels: query, document and grade with tabs between"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]{30,240}[.!?。！？\n]")
_WORD = re.compile(r"[^\W\d_]{3,}")
_OWN_FORMAT = 'write {"query": "…", "expect": "memory/note.md#12"}'
# What follows # is lines, unless it is the end of a file name: `memory/c#.md`.
_LARGEST = 4_000_000_000
_EXPECT = re.compile(
    r"(?P<path>[^#]+(?:#[^#]*\.[^#]*)*)(?:#L?(?P<first>\d+)(?:-L?(?P<last>\d+))?)?"
)


@dataclass(frozen=True, slots=True)
class Span:
    """Lines of a document that hold the evidence."""

    document: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its labels; without a label, nothing answers it."""

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
        """Whether any document answers it; a document with the label 0 does not."""
        return any(grade > 0 for grade in self.grades.values())


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Questions, and the documents of each workspace, text by path; without documents, the user's
    own workspace.
    """

    name: str
    questions: tuple[Question, ...]
    corpora: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class TextSource:
    """A source of documents that are already in memory."""

    name = "memory"

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def scan(self, *, deadline: float | None = None) -> Scanned:
        """All of the documents."""
        del deadline
        return Scanned(
            tuple(Document(p, self.name, len(t), 0, p) for p, t in sorted(self.texts.items()))
        )

    def document(self, path: str) -> Document | None:
        """The document with this path."""
        return next((d for d in self.scan().documents if d.path == path), None)

    def read(self, document: Document) -> str:
        """The text of a document."""
        return self.texts[document.path]


def load(path: Path, opener: Opener = ANYWHERE) -> EvalSet:
    """A set from a folder of the public format, or from a YAML or JSONL file of questions."""
    if path.is_dir():
        return _public_set(path)
    if path.suffix in (".jsonl", ".json", ".yaml", ".yml"):
        return from_rows(
            path.stem,
            _yaml(path) if path.suffix in (".yaml", ".yml") else list(_lines(path, opener)),
        )
    hint = "give a folder with corpus.jsonl, queries.jsonl and qrels.tsv, or a .jsonl or .yaml file"
    raise UsageError(f"{path} is not an evaluation set", hint=hint)


def _read(path: Path, opener: Opener = ANYWHERE) -> str:
    try:
        return opener.read(path, most=_LARGEST).decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}", hint="it must be a regular file of UTF-8 text"
        ) from error


def _lines(path: Path, opener: Opener = ANYWHERE) -> Iterator[Any]:
    for number, line in enumerate(_read(path, opener).split("\n"), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                message = f"{path} line {number} is not JSON: {error}"
                raise UsageError(message, hint="write one object per line") from error


_Row = TypeVar("_Row")


def _each(
    path: Path, rows_of: Callable[[Path], Iterable[_Row]], read: Callable[[_Row], None]
) -> None:
    """Reads every row of a file, if it exists; an error names the number of its row."""
    for number, row in enumerate(rows_of(path) if path.exists() else (), start=1):
        try:
            read(row)
        except KeyError as error:
            raise UsageError(
                f"{path} entry {number}: {error} is missing or unknown", hint=_FORMAT
            ) from error
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError(f"{path} entry {number}: {error}", hint=_FORMAT) from error


def _table(path: Path) -> list[list[str]]:
    return [line.rstrip("\r").split("\t") for line in _read(path).split("\n") if line.strip()]


def _public_set(folder: Path) -> EvalSet:
    """A set in the public format: one small reader for each of its six files."""
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        if not (folder / name).exists():
            hint = "an evaluation set is a folder with corpus, queries and qrels"
            raise UsageError(f"{folder} has no {name}", hint=hint)
    corpora: dict[str, dict[str, str]] = defaultdict(dict)
    path_of: dict[str, str] = {}
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    span_of: dict[str, Span] = {}
    spans: dict[str, list[Span]] = defaultdict(list)
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    questions: list[Question] = []

    def read_document(row: Any) -> None:
        corpora[row.get("workspace", "")][row["path"]] = row["text"]
        path_of[row["id"]] = row["path"]

    def read_grade(row: list[str]) -> None:
        query, document, grade = row
        grades[query][path_of[document]] = int(grade)

    def read_span(row: Any) -> None:
        span_of[row["id"]] = Span(path_of[row["doc"]], row["line_start"], row["line_end"])

    def read_span_label(row: list[str]) -> None:
        query, span, _ = row
        spans[query].append(span_of[span])

    def read_pair(row: list[str]) -> None:
        query, newer, older = row
        pairs[query].append((path_of[newer], path_of[older]))

    def read_question(row: Any) -> None:
        key, workspace = row["id"], row.get("workspace", "")
        if workspace not in corpora:
            raise ValueError(f"no document is in its workspace {workspace!r}")
        kind, now = row.get("type", "-"), _moment(row.get("date"))
        labels = grades.get(key, {}), tuple(spans.get(key, ())), tuple(pairs.get(key, ()))
        questions.append(Question(key, row["text"], workspace, kind, now, *labels))

    _each(folder / "corpus.jsonl", _lines, read_document)
    _each(folder / "qrels.tsv", _table, read_grade)
    _each(folder / "spans.jsonl", _lines, read_span)
    _each(folder / "qrels_spans.tsv", _table, read_span_label)
    _each(folder / "newer_older.tsv", _table, read_pair)
    _each(folder / "queries.jsonl", _lines, read_question)
    return EvalSet(folder.name, tuple(questions), corpora)


def _moment(value: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(value) if value else None


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
        questions.append(
            Question(str(number), row["query"], "", str(row.get("type", "-")), now, grades, spans)
        )
    return EvalSet(name, tuple(questions))


def _expected(value: Any) -> tuple[dict[str, int], tuple[Span, ...]]:
    """The expected paths with a grade of 1, and the lines if any are named."""
    grades: dict[str, int] = {}
    spans: list[Span] = []
    for expected in value if isinstance(value, list) else [value]:
        match = _EXPECT.fullmatch(expected) if isinstance(expected, str) else None
        if match is None:
            raise ValueError(f"{expected!r} is not a path, with or without lines")
        grades[match["path"]] = 1
        if match["first"]:
            spans.append(
                Span(match["path"], int(match["first"]), int(match["last"] or match["first"]))
            )
    return grades, tuple(spans)


def _yaml(path: Path) -> list[Any]:
    try:
        import yaml  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            "reading YAML needs PyYAML", hint="pip install pyyaml, or write JSONL"
        ) from error
    try:
        rows = yaml.safe_load(_read(path))
    except yaml.YAMLError as error:
        raise UsageError(
            f"{path} is not valid YAML: {error}", hint="fix it, or write JSONL"
        ) from error
    if not isinstance(rows, list):
        raise UsageError(f"{path} is not a list of questions", hint="start each with '- query:'")
    return rows


def propose(store: Store, chunks: list[Chunk], *, most: int = 60) -> list[dict[str, Any]]:
    """Up to `most` questions about different passages of your own notes, the same ones every time,
    to edit and add to.

    Of three kinds: the rarest terms of a passage, its heading, and a sentence without those terms,
    which only meaning or context can find.
    """
    headings = Counter(" ".join(c.heading) for c in chunks)
    order = sorted(chunks, key=lambda c: zlib.crc32(c.content_hash.encode()))
    proposed: dict[str, dict[str, Any]] = {}
    for chunk in order:
        for kind, query in _questions(
            store, chunk, unique_heading=headings[" ".join(chunk.heading)] == 1
        ):
            lines = f"{chunk.path}#{chunk.start_line}-{chunk.end_line}"
            proposed.setdefault(query, {"query": query, "expect": lines, "type": kind})
        if len(proposed) >= most:
            break
    return list(proposed.values())[:most]


def _questions(store: Store, chunk: Chunk, *, unique_heading: bool) -> Iterator[tuple[str, str]]:
    words = [w for w in dict.fromkeys(_WORD.findall(chunk.text)) if w.casefold() not in STOP_WORDS]
    if len(words) < 6:
        return
    stems = {w: query_terms(w).words for w in words}
    counts = store.keywords.term_counts([s for of_word in stems.values() for s in of_word]).found_in
    found_in = {
        w: min((counts.get(s, 0) for s in of_word), default=0) for w, of_word in stems.items()
    }
    rare = sorted(words, key=lambda w: (found_in[w], words.index(w)))[:3]
    yield "terms", " ".join(w for w in words if w in rare)
    if unique_heading and chunk.heading and len(chunk.heading[-1].split()) >= 2:
        yield "heading", chunk.heading[-1]
    sentence = next((m.group().strip() for m in _SENTENCE.finditer(chunk.text)), "")
    common = [w for w in sentence.split() if not any(r in w for r in rare)]
    if len(common) >= 5:
        yield "paraphrase", " ".join(common).strip(" .!?。！？-*|#")
