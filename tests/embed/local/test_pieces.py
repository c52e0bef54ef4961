"""The tokeniser of our own model: a table of its vocabulary cuts the first question as the library
cuts all texts.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor

from notewell.embed.local import piece_table
from notewell.embed.local.packaged import PACKAGED, package_file
from notewell.embed.local.pieces import Pieces
from notewell.embed.registry import DEFAULT_MODEL
from notewell.errors import EmbedderError

MODEL = PACKAGED[DEFAULT_MODEL]
VOCABULARY = package_file(MODEL.package, MODEL.vocabulary)
TEXTS = (
    "",
    " ",
    "▁",
    "  a  b ",
    "query: what did we decide",
    "ﬁn\u0301e Ⅷ ½ ™",
    "検索はどこ？",
    "\U0001f9ff\U0001f9ff!",
    "\u200b",
)
ANY = st.text(st.characters(codec="utf-8"), max_size=40)
PARTS = st.lists(
    st.sampled_from([" ", "▁", "ing", "ｱ", "　", "é", "e\u0301", "我们", "\u00ad", "한글", "🧿"])
)


@cache
def library() -> SentencePieceProcessor:
    return SentencePieceProcessor(model_file=str(VOCABULARY))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("models"))


def made(folder: Path) -> Path:
    Pieces(VOCABULARY, "own", hint="", folder=folder)
    return folder


@given(ANY | PARTS.map("".join))
def test_the_table_cuts_any_text_as_the_library_does(folder: Path, text: str) -> None:
    table = piece_table.load(VOCABULARY, folder)
    assert table is not None
    assert table.encode(text) == library().encode(text)


@pytest.mark.parametrize("text", TEXTS)
def test_the_first_text_needs_no_library(
    folder: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [library().bos_id(), *library().encode(text), library().eos_id()]
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    pieces = Pieces(VOCABULARY, "own", hint="", folder=folder)
    assert pieces.encode(text, 512) == wanted
    with pytest.raises(EmbedderError, match="sentencepiece is not installed"):
        pieces.encode(text, 512)


def test_later_texts_long_ones_and_passages_are_cut_by_the_library(folder: Path) -> None:
    long, short = "a harbour " * 300, "the harbour master"
    pieces = Pieces(VOCABULARY, "own", hint="", folder=folder)
    assert pieces.plain(long, 2000) == library().encode(long)
    assert pieces.plain(short, 3) == Pieces(VOCABULARY, "own", hint="", folder=folder).plain(
        short, 3
    )
    assert Pieces(VOCABULARY, "own", hint="", folder=folder).spans(
        short, 9
    ).ids == library().encode(short)


def test_a_damaged_table_is_made_again(tmp_path: Path) -> None:
    (place,) = made(tmp_path).iterdir()
    kept = (place / "pieces-1").read_bytes()
    (place / "pieces-1").write_bytes(kept[:900_000] + bytes(8) + kept[900_008:])
    assert piece_table.load(VOCABULARY, tmp_path) is None
    made(tmp_path)
    assert (place / "pieces-1").read_bytes() == kept


def test_a_table_that_differs_from_the_library_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece_table, "_SPACE", "_")
    assert not list(made(tmp_path).iterdir())
