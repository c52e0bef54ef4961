"""Word's `.docx`: headings, paragraphs, lists and tables, read from its XML without any other
library. Pure.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from itertools import chain, pairwise, zip_longest
from typing import Any
from xml.parsers import expat

from notewell.sources.imports.archive import Archive
from notewell.sources.imports.items import Item, line_of, moment, paged

_MOST_XML = 100_000_000
_HEADING = re.compile(r"heading ([1-6])\Z", re.IGNORECASE)
_BROKEN = "it is not a readable Word document"


def read_docx(data: bytes, _name: str) -> Item | None:
    """A document by its headings; ValueError with the reason if it cannot be read."""
    try:
        with Archive(io.BytesIO(data)) as archive:
            names = {member.name: member for member in archive.members()}
            if "word/document.xml" not in names:
                raise ValueError(_BROKEN)
            styles, facts, words = _Styles(), _Facts(), _Words()
            for name, reader in (
                ("word/styles.xml", styles),
                ("docProps/core.xml", facts),
                ("word/document.xml", words),
            ):
                if name in names:
                    words.styles = styles.names
                    _parse(archive.read(names[name], most=_MOST_XML), reader)
    except (zipfile.BadZipFile, expat.ExpatError) as error:
        raise ValueError(_BROKEN) from error
    return paged(
        line_of(facts.found.get("title", "")),
        [("", words.text())],
        moment(facts.found.get("modified", "")),
    )


def _parse(data: bytes, reader: _Reader) -> None:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def refuse(*_: Any) -> None:  # entities, and so bombs of them, need a document type
        raise ValueError("its XML declares a document type, which no Word document does")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, given: reader.start(
        _local(tag), {_local(k): v for k, v in given.items()}
    )
    parser.EndElementHandler = lambda tag: reader.end(_local(tag))
    parser.CharacterDataHandler = reader.data
    parser.Parse(data, True)  # noqa: FBT003 - the parser's own signature


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


class _Reader:
    """What looks at the XML of one part."""

    def start(self, tag: str, given: dict[str, str]) -> None:
        """An element begins."""

    def end(self, tag: str) -> None:
        """An element ends."""

    def data(self, text: str) -> None:
        """Text inside an element."""


class _Styles(_Reader):
    """Names of styles by their ids: `heading 1` whatever the language of the program."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._id = ""

    def start(self, tag: str, given: dict[str, str]) -> None:
        if tag == "style":
            self._id = given.get("styleId", "")
        elif tag == "name" and self._id:
            self.names.setdefault(self._id, given.get("val", ""))


class _Facts(_Reader):
    """Title and time of change."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._tag = ""

    def start(self, tag: str, given: dict[str, str]) -> None:  # noqa: ARG002 - as every reader has it
        self._tag = tag

    def data(self, text: str) -> None:
        if self._tag in ("title", "modified"):
            self.found[self._tag] = (self.found.get(self._tag, "") + text)[:1000]


class _Words(_Reader):
    """Paragraphs as Markdown; what was deleted or is in the code of a field is left out."""

    def __init__(self) -> None:
        self.styles: dict[str, str] = {}
        self._blocks: list[str] = []
        self._words: list[str] = []
        self._style = ""
        self._listed = False
        self._spoken = False
        # of the table; one in a cell of another is part of that cell
        self._rows: list[list[str]] = []
        self._tables = 0
        self._does: dict[str, Callable[[], None]] = {
            "p": self._paragraph,
            "tc": self._cell,
            "tbl": self._table,
        }

    def text(self) -> str:
        """The Markdown."""
        blocks = [block for block in self._blocks if block]
        gaps = ("\n" if a[:2] == b[:2] == "- " else "\n\n" for a, b in pairwise(blocks))
        return "".join(chain.from_iterable(zip_longest(blocks, gaps, fillvalue="")))

    def start(self, tag: str, given: dict[str, str]) -> None:
        if tag == "p" and not self._tables:
            self._words, self._style, self._listed = [], "", False
        elif tag == "pStyle":
            self._style = self.styles.get(given.get("val", ""), given.get("val", ""))
        elif tag == "numPr":
            self._listed = True
        elif tag == "t":
            self._spoken = True
        elif tag in ("tab", "br", "cr"):
            self._words.append(" " if tag == "tab" or self._tables else "\n")
        elif tag == "tbl":
            self._tables += 1
        elif tag == "tr" and self._tables == 1:
            self._rows.append([])

    def end(self, tag: str) -> None:
        if tag == "t":
            self._spoken = False
        elif tag in self._does:
            self._does[tag]()

    def data(self, text: str) -> None:
        if self._spoken:
            self._words.append(text)

    def _taken(self) -> str:
        said, self._words = "".join(self._words).strip(), []
        return said

    def _paragraph(self) -> None:
        if self._tables:
            self._words.append(" ")
            return
        said = self._taken()
        heading = _HEADING.match(self._style)
        if heading or self._style.lower() == "title":
            said = " ".join(said.split())
            self._blocks.append(
                f"{'#' * (int(heading[1]) if heading else 1)} {said}" if said else ""
            )
        elif self._listed and said:
            self._blocks.append("- " + said.replace("\n", "\n  "))
        else:
            self._blocks.append(said)

    def _cell(self) -> None:
        if self._tables == 1 and self._rows:
            self._rows[-1].append(" ".join(self._taken().replace("|", "/").split()))

    def _table(self) -> None:
        self._tables = max(0, self._tables - 1)
        if self._tables or not self._rows:
            return
        width = max(map(len, self._rows))
        lines = [f"| {' | '.join(row)} |" for row in self._rows if any(row)]
        rule = f"|{' --- |' * width}"
        self._blocks.append("\n".join([*lines[:1], rule, *lines[1:]]) if lines else "")
        self._rows = []
