"""PDF, Word and HTML in place: found where the user names them, cited by lines, with the page as a heading."""

from __future__ import annotations

from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.memory import Memory
from notewell.settings import load
from notewell.sources.imports import pdf_file
from notewell.sources.paged_files import PagedSource
from tests.conftest import CountingEmbedder, Write
from tests.sources.imports.made import docx, pdf


def paths(source: PagedSource) -> list[str]:
    return [document.path for document in source.scan().documents]


def test_documents_of_named_places_are_found_and_nothing_else(root: Path, write: Write, tmp_path: Path) -> None:
    for name in ("papers/a.pdf", "papers/deep/b.DOCX", "papers/c.html", "papers/d.md", "papers/.e.pdf", "f.pdf"):
        write(name, b"x")
    (tmp_path / "secret.pdf").write_bytes(b"x")
    (root / "papers/link.pdf").symlink_to(tmp_path / "secret.pdf")
    source = PagedSource(root, paths=["papers"])
    assert paths(source) == ["papers/a.pdf", "papers/c.html", "papers/deep/b.DOCX"]
    assert paths(PagedSource(root, paths=())) == []
    assert source.document("papers/a.pdf") is not None
    assert source.document("papers/d.md") is None
    assert [s.reason for s in PagedSource(root, paths=["f.pdf"], max_bytes=0).scan().skipped] == [
        "larger than 0 bytes (documents.max_bytes)"
    ]


def test_a_passage_is_found_cited_and_read_again(root: Path, write: Write, embedder: CountingEmbedder) -> None:
    write("papers/house_rules.docx", docx())
    with Memory.open(root, embedder=embedder, documents__paths=["papers"]) as memory:
        hit = memory.search("when does the boiler start").hits[0]
        assert (hit.chunk.path, hit.chunk.source, hit.chunk.origin) == (
            "papers/house_rules.docx",
            "documents",
            "untrusted",
        )
        assert hit.chunk.heading == ("Rules of the house", "Heating")
        assert "The boiler starts at 4." in memory.get(hit.chunk.citation).text
        assert "Valve B" in memory.get("papers/house_rules.docx#Heating").text
        assert memory.sync(embed=False).unchanged == 1
        assert memory.status().fresh


@pytest.mark.skipif(not pdf_file.can_read_pdf(), reason="needs pypdf (the extra documents)")
def test_the_page_of_a_pdf_is_a_heading(root: Path, write: Write, embedder: CountingEmbedder) -> None:
    write("papers/clock.pdf", pdf("The clock has weights.", "The pendulum swings in two seconds."))
    with Memory.open(root, embedder=embedder, documents__paths=["papers"]) as memory:
        hit = memory.search("pendulum").hits[0]
        assert hit.chunk.heading == ("clock", "Page 2")
        assert hit.chunk.citation.startswith("papers/clock.pdf#L")
        assert "pendulum" in memory.get("papers/clock.pdf#Page 2").text
        assert "pendulum" not in memory.get("papers/clock.pdf#Page 1").text


def test_what_cannot_be_read_is_found_by_its_name_and_says_why(root: Path, write: Write) -> None:
    write("papers/broken_report.docx", b"nonsense")
    write("papers/empty.html", b"")
    with Memory.open(root, embed__model="none", documents__paths=["papers"]) as memory:
        assert memory.sync().added == 2
        assert memory.sync().unchanged == 2, "it is not tried again until it changes"
        assert "not a zip archive" in memory.get("papers/broken_report.docx").text
        assert memory.search("broken report").hits


def test_without_the_library_a_notice_says_what_to_install(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_file, "find_spec", lambda _: None)
    write("papers/a.pdf", pdf("words"))
    with Memory.open(root, embed__model="none", documents__paths=["papers"]) as memory:
        (skipped,) = memory.sync().skipped
        assert "notewell[documents]" in skipped.reason


def test_a_workspace_file_may_not_name_documents(root: Path, write: Write) -> None:
    write("notewell.toml", '[documents]\npaths = ["papers"]\n')
    with pytest.raises(SettingsError, match=r"documents\.paths"):
        load(root, env={"HOME": str(root), "XDG_CONFIG_HOME": str(root)})
