"""What every embedder promises, whatever it is made of."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from notewell.embed.cached import CachedEmbedder
from notewell.embed.embedder import Embedder
from notewell.embed.local.fastembed_models import FastEmbedder
from notewell.embed.local.hashed import HashedEmbedder
from notewell.embed.local.packaged import PACKAGED, LocalEmbedder, OwnEmbedder
from notewell.embed.registry import DEFAULT_MODEL, at_path
from notewell.text.words import clean
from notewell.types import Role
from tests.embed import made


@cache
def local() -> Embedder:
    """One model for the whole suite: loading it takes longer than using it."""
    return OwnEmbedder(PACKAGED[DEFAULT_MODEL], threads=2)


@cache
def kept(name: str) -> Embedder:
    """Models that are read from files, each made and loaded once."""
    if name in PACKAGED:
        return LocalEmbedder(PACKAGED[name], threads=2)
    if name == "gguf":
        pytest.importorskip(
            "llama_cpp", reason="it has to be compiled, so it is no part of the development tools"
        )
    # Not `tmp_path`: the models outlive the test that asks first.
    folder = Path(tempfile.mkdtemp(prefix="notewell-models-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if name == "fastembed":
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FASTEMBED_CACHE_PATH", str(made.fastembed_cache(folder)))
            patch.setenv("HF_HUB_OFFLINE", "1")
            found = FastEmbedder("BAAI/bge-small-en-v1.5", threads=2)
            found.embed(["loads it"], "document")
            return found
    make: dict[str, Callable[[Path], Path]] = {
        "bge": made.bge_folder,
        "tiny": made.tiny_folder,
        "static": made.static_folder,
        "gguf": made.tiny_gguf,
    }
    return at_path(
        str(make[name](folder / (f"{name}.gguf" if name == "gguf" else name))), threads=2
    )


EMBEDDERS: dict[str, Callable[[Path], Embedder]] = {
    "hashed": lambda _: HashedEmbedder(),
    "local": lambda _: local(),
    "cached": lambda folder: CachedEmbedder(HashedEmbedder(), folder / "cache.sqlite"),
    "minilm": lambda _: kept("all-MiniLM-L6-v2"),
    "onnx folder": lambda _: kept("bge"),
    "plain onnx folder": lambda _: kept("tiny"),
    "static folder": lambda _: kept("static"),
    "gguf": lambda _: kept("gguf"),
    "fastembed": lambda _: kept("fastembed"),
}
ROLES: tuple[Role, ...] = ("document", "query")
TEXTS = [
    "The backup runs at night.",
    "x",
    "東京都の夜景は綺麗です。",
    "A much longer passage about deploys, servers and the people who run them. " * 12,
    "def parse_config(path): ...",
    "Привет, мир! مرحبا שלום नमस्ते",
]
WEIRD = {
    "empty": "",
    "blank": " \n\t ",
    "control": "a\x00b\x01\x0b\x1f",
    "surrogate": clean("a\ud800b\udfff"),
    "emoji": "👩‍👩‍👧‍👦🇩🇪👍🏽",
    "marks": "\u0301\u0301\u0301",
    "100 kB of words": "word " * 20_000,
    "100 kB in one word": "x" * 100_000,
    "100 kB of punctuation": "!" * 100_000,
    "100 kB of Han": "漢" * 33_000,
}


@pytest.fixture(params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> Embedder:
    return EMBEDDERS[request.param](tmp_path)


def test_it_has_a_name_and_a_size(embedder: Embedder) -> None:
    assert embedder.id
    assert embedder.embed(["x"], "document").shape == (1, embedder.dim)


@pytest.mark.parametrize("role", ROLES)
def test_rows_are_unit_vectors(embedder: Embedder, role: Role) -> None:
    rows = embedder.embed(TEXTS, role)
    assert rows.dtype == np.float32
    assert rows.shape == (len(TEXTS), embedder.dim)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("role", ROLES)
def test_no_text_makes_no_row(embedder: Embedder, role: Role) -> None:
    assert embedder.embed([], role).shape == (0, embedder.dim)


def test_rows_come_in_the_order_of_the_texts(embedder: Embedder) -> None:
    there = embedder.embed(TEXTS, "document")
    back = embedder.embed(TEXTS[::-1], "document")
    assert np.array_equal(there, back[::-1])
    assert len(np.unique(there.round(4), axis=0)) == len(TEXTS)


@pytest.mark.parametrize("role", ROLES)
def test_a_row_does_not_depend_on_its_neighbours(embedder: Embedder, role: Role) -> None:
    together = embedder.embed(TEXTS, role)
    alone = np.concatenate([embedder.embed([text], role) for text in TEXTS])
    assert np.array_equal(together, alone)


def test_the_same_text_has_the_same_row(embedder: Embedder) -> None:
    rows = embedder.embed([TEXTS[0], TEXTS[1], TEXTS[0]], "document")
    assert np.array_equal(rows[0], rows[2])
    assert np.array_equal(rows, embedder.embed([TEXTS[0], TEXTS[1], TEXTS[0]], "document"))


def test_a_question_lies_near_the_passage_with_its_words(embedder: Embedder) -> None:
    (question,) = embedder.embed(["when does the backup run at night?"], "query")
    assert int(np.argmax(embedder.embed(TEXTS, "document") @ question)) == 0


@pytest.mark.parametrize("text", WEIRD.values(), ids=WEIRD.keys())
def test_any_text_has_a_row(embedder: Embedder, text: str) -> None:
    for role in ROLES:
        (row,) = embedder.embed([text], role)
        assert np.isfinite(row).all()
        assert float(np.linalg.norm(row)) == pytest.approx(1.0, abs=1e-5)


def test_weird_texts_disturb_no_others(embedder: Embedder) -> None:
    mixed = embedder.embed([*WEIRD.values(), TEXTS[0]], "document")
    assert np.array_equal(mixed[-1:], embedder.embed([TEXTS[0]], "document"))
