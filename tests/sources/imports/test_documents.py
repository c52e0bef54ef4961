"""Word, PDF and HTML: what is read of them, and that a hostile one costs no more than its
length.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.errors import NoteError
from notewell.sources.imports import pdf_file
from notewell.sources.imports.docx_file import read_docx
from notewell.sources.imports.html_page import read_html
from notewell.sources.imports.items import Item
from notewell.sources.imports.pdf_file import read_pdf
from tests.growth import Linear
from tests.sources.imports.made import BODY, docx, pdf, zipped

needs_pypdf = pytest.mark.skipif(
    not pdf_file.can_read_pdf(), reason="needs pypdf (the extra documents)"
)


def text(item: Item | None) -> str:
    assert item is not None
    return "\n\n".join(part.text for part in item.parts)


def test_a_word_document_has_headings_lists_and_tables() -> None:
    found = read_docx(docx(), "")
    assert found is not None
    assert (found.title, found.origin) == ("Rules of the house", "untrusted")
    assert found.made is not None
    assert text(found) == (
        "## Heating\n\nThe boiler starts at 4.\nNever later.\n\n- Valve A\n- Valve B\n\n"
        "| room | degrees |\n| --- | --- |\n| hall | 17 |"
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a zip"),
        (b"PK\x05\x06" + bytes(18), "readable Word"),
        (zipped({"a": "b"}), "readable Word"),
        (docx("<w:document"), "readable Word"),
        (docx("\0"), "readable Word"),
        (docx()[:-30], "not a zip"),
        (
            docx(BODY.replace("<w:document", '<!DOCTYPE x [<!ENTITY a "aa">]><w:document', 1)),
            "document type",
        ),
        (docx('<!DOCTYPE x SYSTEM "file:///etc/passwd"><w:document/>'), "document type"),
        (zipped({"word/document.xml": b" " * 60_000_000}), "would unpack"),
    ],
)
def test_a_word_document_that_is_none_or_hostile_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_docx(data, "")


def test_an_empty_document_is_nothing() -> None:
    assert read_docx(docx('<w:document xmlns:w="w"/>'), "") is None
    assert read_html(b"<script>x</script>", "") is None


def test_tables_in_tables_and_cells_without_end_are_read() -> None:
    deep = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p>" * 1000
    shut = "</w:tc></w:tr></w:tbl>" * 1000
    found = read_docx(docx(f'<w:document xmlns:w="w">{deep}{shut}</w:document>'), "")
    assert text(found).startswith("| x x x")


HOSTILE = {
    "signs": b"<" * 300_000,
    "comments": b"<!--" * 100_000,
    "declarations": b"<!" * 200_000,
    "quotes": b"<a b='>" * 50_000,
    "tags": b"<a href='x" * 50_000,
    "lists": b"<ul><li>" * 30_000,
    "scripts": b"<script>" * 50_000,
    "amp": b"&#1" * 100_000,
    "number": b"&#" + b"9" * 300_000,
    "links": b"<a href='http://x'>a" * 20_000,
    "cells": b"<td>" * 50_000,
    "titles": b"<title>" * 50_000,
    "values": b"<a " + b"x=y " * 100_000 + b">",
    "code": b"<pre>" * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_takes_a_time_that_grows_with_it_alone(name: str, linear: Linear) -> None:
    linear(lambda data: read_html(data, ""), HOSTILE[name] * 4)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"caf\xe9 <meta charset=latin-1>", "café"),
        ("café".encode("utf-16"), "café"),
        (b"\xef\xbb\xbfa", "a"),
        (b"<meta charset=nonsense>a", "a"),
        (b'<p title="a > b">c', "c"),
        (b"a<b and 3<4", "a"),
        (b"1 < 2 &lt; 3", "1 < 2 < 3"),
        (b"<p>a<p>b", "a\n\nb"),
        (b"<a href='javascript:x()'>a</a>", "a"),
        (b"<SCRIPT>x</SCRIPT>a", "a"),
        (b"<!-- x -->a<!doctype y>b<?z?>c", "abc"),
        (b"<title>t</title><title>u</title>a", "a"),
    ],
)
def test_odd_pages_are_read(data: bytes, expected: str) -> None:
    assert text(read_html(data, "")) == expected


@given(data=st.text(st.sampled_from("<>/!-ap \n\"'=&#;title1é["), max_size=120))
@settings(max_examples=100, deadline=None)
def test_any_page_is_read(data: str) -> None:
    read_html(data.encode(), "")


@given(data=st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_any_bytes_are_a_document_or_refused(data: bytes) -> None:
    read_html(data, "")
    with pytest.raises(ValueError, match="zip"):
        read_docx(data, "")


@needs_pypdf
def test_a_pdf_has_pages_a_title_and_a_date() -> None:
    found = read_pdf(pdf("First words.", "Second words.", title="Two pages"), "")
    assert found is not None
    assert (found.title, found.origin) == ("Two pages", "untrusted")
    assert found.made is not None
    assert [part.text for part in found.parts] == [
        "## Page 1\n\nFirst words.",
        "## Page 2\n\nSecond words.",
    ]


@needs_pypdf
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "readable PDF"),
        (b"%PDF-1.4\nnonsense", "readable PDF"),
        (pdf(""), "pages have no text"),
    ],
)
def test_a_pdf_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_pdf(data, "")


def test_a_pdf_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_file, "can_read_pdf", lambda: True)
    monkeypatch.setattr(pdf_file, "_LONGEST_S", 0.0)
    with pytest.raises(ValueError, match="takes over 0 seconds"):
        read_pdf(b"%PDF", "")


def test_without_the_library_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_file, "find_spec", lambda _: None)
    with pytest.raises(NoteError, match="pypdf") as error:
        read_pdf(b"%PDF", "")
    assert "notewell[documents]" in error.value.hint


@needs_pypdf
def test_no_module_of_the_current_folder_is_run_for_a_pdf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pypdf", "json", "io", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(
            "open(__file__ + '.ran', 'w').close()\nraise SystemExit('planted')"
        )
    monkeypatch.chdir(tmp_path)
    found = read_pdf(pdf("First words."), "")
    assert found is not None
    assert [part.text for part in found.parts] == ["## Page 1\n\nFirst words."]
    assert list(tmp_path.glob("*.ran")) == []


@needs_pypdf
def test_a_pdf_that_is_locked_or_endless_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from pypdf import PdfReader, PdfWriter

    writer, out = PdfWriter(PdfReader(io.BytesIO(pdf("a", "b")))), io.BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(out)
    assert pdf_file._extracted(out.getvalue()) == {"error": "it is locked with a password"}
    monkeypatch.setattr(pdf_file, "_MOST_TEXT", 1)
    assert "over 1 characters" in pdf_file._extracted(pdf("a", "b"))["error"]
    monkeypatch.setattr(pdf_file, "MOST_PAGES", 1)
    assert "over 1 pages" in pdf_file._extracted(pdf("a", "b"))["error"]
