"""Packaged models: found without an import, loaded late, and honest when something is missing."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.embed.local.packaged import (
    PACKAGED,
    LocalEmbedder,
    OwnEmbedder,
    Packaged,
    package_file,
    window_places,
)
from notewell.embed.registry import DEFAULT_MODEL
from notewell.errors import EmbedderError
from notewell.memory import Memory

MODEL = PACKAGED[DEFAULT_MODEL]
ROOT = Path(__file__).parents[3]


@cache
def model() -> OwnEmbedder:
    return OwnEmbedder(MODEL, threads=1)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package called `fakemodel` that must never be imported."""
    folder = tmp_path / "fakemodel"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    assert "fakemodel" not in sys.modules


def fake(**changes: str) -> Packaged:
    return dataclasses.replace(MODEL, name="fake", package="fakemodel", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("packaged", PACKAGED.values(), ids=lambda p: p.name)
def test_the_files_of_every_packaged_model_are_installed(packaged: Packaged) -> None:
    assert package_file(packaged.package, packaged.model).stat().st_size > 1_000_000
    assert package_file(packaged.vocabulary_from or packaged.package, packaged.vocabulary).is_file()


def test_a_file_is_found_without_importing_its_package(package: Path) -> None:
    (package / "weights.bin").write_bytes(b"x")
    assert package_file("fakemodel", "weights.bin") == package / "weights.bin"


def test_a_package_that_is_not_installed_is_named_with_a_remedy() -> None:
    with pytest.raises(EmbedderError, match="no_such_package") as caught:
        LocalEmbedder(dataclasses.replace(MODEL, package="no_such_package"))
    assert "pip install no-such-package" in caught.value.hint


def test_a_package_without_the_file_is_named_with_a_remedy(package: Path) -> None:
    with pytest.raises(EmbedderError, match=r"fakemodel.*gone\.onnx") as caught:
        LocalEmbedder(fake(model="gone.onnx"))
    assert "pip install fakemodel" in caught.value.hint


def test_a_damaged_model_file_is_an_error_with_a_remedy(package: Path) -> None:
    (package / "model.onnx").write_bytes(b"not a model")
    (package / "vocab.txt").write_text("[CLS]\n[SEP]\n[UNK]\n")
    broken = LocalEmbedder(fake(model="model.onnx", vocabulary="vocab.txt"))
    with pytest.raises(EmbedderError, match="fake cannot be loaded") as caught:
        broken.embed(["x"], "document")
    assert "--force-reinstall fakemodel" in caught.value.hint


def test_the_package_of_the_model_states_what_it_holds() -> None:
    import notewell_model

    assert MODEL.name == notewell_model.NAME
    assert notewell_model.SHA256["model.onnx"] == MODEL.sha256
    for name, expected in notewell_model.SHA256.items():
        file = package_file("notewell_model", name)
        assert hashlib.sha256(file.read_bytes()).hexdigest() == expected
        for page in (ROOT / "model/README.md", ROOT / "docs/model.md"):
            assert expected in page.read_text(encoding="utf-8"), page


def test_the_version_that_is_asked_for_is_that_of_the_checkout() -> None:
    import notewell_model

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"notewell-model=={notewell_model.__version__}" in project["dependencies"]


def test_a_model_with_other_bytes_is_an_error_with_a_remedy(package: Path) -> None:
    for name in (MODEL.model, MODEL.vocabulary):
        shutil.copy(package_file(MODEL.package, name), package / name)
    whole = OwnEmbedder(fake())
    assert np.array_equal(whole.embed(["backup"], "query"), model().embed(["backup"], "query"))
    with (package / MODEL.model).open("r+b") as file:
        file.seek(20_000_000)  # among the weights: it loads, and gives other vectors
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 0x40]))
    with pytest.raises(
        EmbedderError, match="is not the model that notewell was made with"
    ) as caught:
        OwnEmbedder(fake()).embed(["backup"], "query")
    assert caught.value.hint == "pip install --force-reinstall fakemodel"


def test_without_the_runtime_keywords_answer_and_the_cure_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "MEMORY.md").write_text("# Router\n\nThe router hangs in the hall.\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with Memory.open(root) as memory:
        found = memory.search("where is the router")
    assert [hit.chunk.path for hit in found.hits] == ["MEMORY.md"]
    assert found.mode == "lexical"
    assert any(
        "onnxruntime" in f"{n.message} {n.hint}" and "pip install" in n.hint for n in found.notices
    )


def test_a_missing_runtime_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderError, match="onnxruntime") as caught:
        OwnEmbedder(MODEL).embed(["x"], "document")
    assert "pip install onnxruntime" in caught.value.hint


def test_its_id_names_the_model_its_weights_and_what_it_reads_of_a_text() -> None:
    assert model().id == f"local/{MODEL.name}-{MODEL.sha256[:8]}@{MODEL.max_tokens}"


def test_meaning_is_near_without_a_shared_word() -> None:
    (question,) = model().embed(["how do we save the data every night?"], "query")
    near, far = model().embed(["Backups run at 2 am.", "The cat sleeps on the sofa."], "document")
    assert question @ near > question @ far + 0.1


def test_a_question_is_asked_in_the_words_of_the_model() -> None:
    packaged = PACKAGED["bge-small-en-v1.5"]
    bge = LocalEmbedder(packaged, threads=1)
    asked = bge.embed(["backup"], "query")
    assert np.array_equal(asked, bge.embed([packaged.query_prefix + "backup"], "document"))


@pytest.mark.parametrize(
    "question",
    [
        "Welcher Port gehört zu Staging?",
        "ステージングのポートは？",
        "预发布环境用哪个端口？",
        "какой порт у стейджинга?",
        "quel port utilise la préproduction ?",
        "스테이징 포트가 뭐야?",
    ],
)
def test_a_question_finds_a_note_in_another_language(question: str) -> None:
    (asked,) = model().embed([question], "query")
    near, far = model().embed(
        ["Staging listens on port 9443.", "We had pizza for lunch on Friday."], "document"
    )
    assert asked @ near > asked @ far + 0.05


def test_the_windows_of_a_passage_cover_it_in_one_run() -> None:
    text = (
        " ".join(f"Line {n} is about the harbour." for n in range(40))
        + " The tide table hangs in the hall."
    )
    (found,) = model().embed_passages([text])
    assert np.allclose(found.whole, model().embed([text], "document")[0], atol=1e-6)
    assert found.spans[0][0] == 0
    assert found.spans[-1][1] == len(text)
    assert all(start < next_start < end for (start, end), (next_start, _) in pairwise(found.spans))
    (asked,) = model().embed(["where is the tide table"], "query")
    assert int(np.argmax(found.windows @ asked)) == len(found.spans) - 1


@given(st.text(max_size=400))
@settings(max_examples=60, deadline=None)
def test_any_text_has_windows_inside_it(text: str) -> None:
    (found,) = model().embed_passages([text])
    assert abs(float(found.whole @ found.whole) - 1.0) < 1e-5
    assert len(found.windows) == len(found.spans)
    assert all(0 <= start <= end <= len(text) for start, end in found.spans)


@given(st.integers(0, 2000))
def test_windows_overlap_and_the_last_ends_with_the_text(count: int) -> None:
    places = window_places(count)
    if count <= 64:
        assert places == []
        return
    assert all(end - start == 64 for start, end in places)
    assert (places[0][0], places[-1][1]) == (0, count)
    assert all(one[0] < other[0] <= one[1] for one, other in pairwise(places))


def test_without_its_tokeniser_keywords_answer_and_the_cure_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "MEMORY.md").write_text("# Router\n\nThe router hangs in the hall.\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with Memory.open(root) as memory:
        found = memory.search("where is the router")
    assert ([hit.chunk.path for hit in found.hits], found.mode) == (["MEMORY.md"], "lexical")
    assert any(
        "sentencepiece" in n.message and "pip install sentencepiece" in n.hint
        for n in found.notices
    )


def test_a_damaged_vocabulary_is_an_error_with_a_remedy(package: Path) -> None:
    shutil.copy(package_file(MODEL.package, MODEL.model), package / MODEL.model)
    (package / MODEL.vocabulary).write_bytes(b"not a vocabulary")
    with pytest.raises(EmbedderError, match="the vocabulary of fake cannot be loaded") as caught:
        OwnEmbedder(fake()).embed(["x"], "document")
    assert "--force-reinstall fakemodel" in caught.value.hint


def test_what_lies_beyond_the_limit_is_not_read() -> None:
    head = "word " * MODEL.max_tokens
    one, other = model().embed([head + "backup", head + "sofa"], "document")
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "packaged", [p for p in PACKAGED.values() if p.extra], ids=lambda p: p.name
)
def test_a_model_of_an_extra_says_how_to_get_it(
    packaged: Packaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = dataclasses.replace(packaged, package="no_such_package")
    with pytest.raises(EmbedderError, match="no_such_package") as caught:
        LocalEmbedder(missing)
    assert f'pip install "notewell[{packaged.extra}]"' in caught.value.hint
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [
        name.partition("==")[0].replace("-", "_")
        for name in project["optional-dependencies"][packaged.extra]
    ]
    assert packaged.package in names


@pytest.mark.parametrize(
    "packaged", [p for p in PACKAGED.values() if p.extra], ids=lambda p: p.name
)
def test_further_models_know_meaning_too(packaged: Packaged) -> None:
    one = LocalEmbedder(packaged, threads=1)
    (question,) = one.embed(["how do we save the data every night?"], "query")
    near, far = one.embed(["Backups run at 2 am.", "The cat sleeps on the sofa."], "document")
    assert question @ near > question @ far + 0.05
