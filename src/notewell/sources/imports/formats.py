"""The table of formats that `import` reads: how each is known, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from notewell.sources.imports.basic_memory import is_basic_memory, read_basic_memory, read_markdown
from notewell.sources.imports.chatgpt import is_chatgpt, read_chatgpt
from notewell.sources.imports.claude_ai import is_claude_ai, read_claude_ai
from notewell.sources.imports.items import Item
from notewell.sources.imports.knowledge_graph import GRAPH, is_graph, read_graph
from notewell.sources.imports.letta import is_letta, read_letta
from notewell.sources.imports.mem0 import is_mem0, read_mem0
from notewell.text.reference_syntax import NOTES

JSON_ENDINGS = (".json", ".jsonl", ".ndjson", ".af")


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the folder of its notes, and its name for people."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class JsonFormat(Format):
    """One that is known by the shape of its values."""

    knows: Callable[[dict[str, Any]], bool]
    read: Callable[[Iterable[Any]], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class FileFormat(Format):
    """One that is known by the ending of a file, which becomes one note."""

    endings: tuple[str, ...]
    read: Callable[[bytes, str], Item | None]
    most_bytes: int


JSON_FORMATS = (
    JsonFormat("chatgpt", "ChatGPT", is_chatgpt, read_chatgpt),
    JsonFormat("claude", "Claude.ai", is_claude_ai, read_claude_ai),
    JsonFormat("basic-memory", "basic-memory", is_basic_memory, read_basic_memory),
    JsonFormat(GRAPH, "MCP memory server", is_graph, read_graph),
    JsonFormat("letta", "Letta", is_letta, read_letta),
    JsonFormat("mem0", "mem0", is_mem0, read_mem0),
)


def _html(data: bytes, name: str) -> Item | None:
    from notewell.sources.imports.html_page import read_html  # noqa: PLC0415 - only who has such files pays for it

    return read_html(data, name)


def _docx(data: bytes, name: str) -> Item | None:
    from notewell.sources.imports.docx_file import read_docx  # noqa: PLC0415

    return read_docx(data, name)


def _pdf(data: bytes, name: str) -> Item | None:
    from notewell.sources.imports.pdf_file import read_pdf  # noqa: PLC0415

    return read_pdf(data, name)


MARKDOWN = FileFormat("markdown", "Markdown", NOTES, read_markdown, 20_000_000)
PAGED = (
    FileFormat("html", "HTML", (".html", ".htm", ".xhtml"), _html, 10_000_000),
    FileFormat("docx", "Word", (".docx",), _docx, 100_000_000),
    FileFormat("pdf", "PDF", (".pdf",), _pdf, 200_000_000),
)
BASIC_MEMORY = next(one for one in JSON_FORMATS if one.name == "basic-memory")
KNOWN = ", ".join(one.label for one in (*JSON_FORMATS, MARKDOWN, *PAGED))


def format_of_file(name: str) -> FileFormat | None:
    """The format of a file by its ending; None for others, and for JSON."""
    return next((one for one in (MARKDOWN, *PAGED) if name.casefold().endswith(one.endings)), None)


def format_of_values(first: Sequence[Any]) -> JsonFormat | None:
    """The format that knows the first values of a file."""
    objects = [value for value in first if isinstance(value, dict)]
    return next((one for one in JSON_FORMATS for value in objects if one.knows(value)), None)
