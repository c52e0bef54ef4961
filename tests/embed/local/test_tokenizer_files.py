"""Tokenisers of folders: the same ids as the reference, whichever way they are read."""

from __future__ import annotations

import json
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from notewell.embed.local.tokenizer_files import FastTokens, WordPiece, read_tokens, tokens_of
from notewell.errors import EmbedderError
from tests.embed.made import packaged, save_json

DESCRIPTION = packaged("tokenizer.json").read_text(encoding="utf-8")


@cache
def fast() -> FastTokens:
    return FastTokens(DESCRIPTION, "bge")


@cache
def ours() -> WordPiece:
    found = tokens_of(DESCRIPTION, "bge")
    assert isinstance(found, WordPiece)
    return found


def changed(**parts: Any) -> str:
    return json.dumps(json.loads(DESCRIPTION) | parts)


@given(st.text(alphabet="abc ÄΣσ東か한\u0301\n.-[CLS]", max_size=60), st.integers(2, 30))
@settings(max_examples=100, deadline=None)
def test_both_ways_give_the_same_ids(text: str, limit: int) -> None:
    assert fast().encode(text, limit) == ours().encode(text, limit)
    assert fast().plain(text, limit) == ours().plain(text, limit)


@pytest.mark.parametrize(
    "parts",
    [
        {"normalizer": None},
        {
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": None,
                "lowercase": False,
            }
        },
        {"pre_tokenizer": {"type": "Whitespace"}},
        {
            "added_tokens": [
                {
                    "id": 5,
                    "content": "[unused4]",
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
            ]
        },
    ],
)
def test_anything_but_plain_bert_is_left_to_the_package(parts: dict[str, Any]) -> None:
    assert isinstance(tokens_of(changed(**parts), "other"), FastTokens)


@cache
def roberta() -> FastTokens:
    words = {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4, "Ġ": 5}
    made = Tokenizer(models.BPE(vocab=words, merges=[("a", "b")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), add_prefix_space=False
    )
    made.add_special_tokens(["<s>", "</s>"])
    return FastTokens(made.to_str(), "roberta")


def test_another_kind_is_framed_and_cut_inside_its_frame() -> None:
    assert roberta().encode("abab", 10) == [0, 4, 4, 1]
    assert roberta().encode("ab" * 50, 5) == [0, 4, 4, 4, 1]
    assert roberta().encode("", 5) == [0, 1]
    assert roberta().plain("ab" * 50, 5) == [4] * 5


def test_the_name_of_a_special_token_is_data() -> None:
    assert 0 not in roberta().plain("a<s>b", 20)
    assert ours().unknown not in fast().plain("[UNK]", 20)


def test_the_end_alone_may_be_marked() -> None:
    made = Tokenizer(models.WordLevel({"a": 0, "b": 1, "</s>": 2, "<unk>": 3}, unk_token="<unk>"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 2)]
    )
    found = FastTokens(made.to_str(), "t5")
    assert found.encode("a b a b", 3) == [0, 1, 2]
    assert found.unknown == 3


def test_lone_surrogates_are_dropped() -> None:
    assert fast().encode("a\ud800 b", 10) == fast().encode("a b", 10)


def test_a_vocabulary_alone_is_that_of_uncased_bert(tmp_path: Path) -> None:
    shutil.copy(packaged("vocab.txt"), tmp_path / "vocab.txt")
    assert read_tokens(tmp_path, "x").encode("The Backup", 9) == ours().encode("The Backup", 9)
    save_json(tmp_path / "tokenizer_config.json", {"do_lower_case": False})
    with pytest.raises(EmbedderError, match="case-sensitive"):
        read_tokens(tmp_path, "x")


def test_no_tokeniser_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"neither tokenizer\.json nor vocab\.txt") as caught:
        read_tokens(tmp_path, "x")
    assert "tokenizer.json" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "not json", '{"model": null}', '{"model": {"type": "Nothing"}}']
)
def test_a_damaged_description_is_an_error(text: str) -> None:
    with pytest.raises(EmbedderError, match=r"tokenizer\.json of x cannot be read"):
        tokens_of(text, "x")


def test_a_missing_package_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(EmbedderError, match="tokenizers") as caught:
        tokens_of(changed(normalizer=None), "x")
    assert 'pip install "notewell[onnx]"' in caught.value.hint


def test_a_vocabulary_of_another_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(EmbedderError, match=r"\[UNK\]"):
        read_tokens(tmp_path, "x")
    with pytest.raises(EmbedderError, match=r"\[CLS\]"):
        WordPiece({"[UNK]": 0, "a": 1}).encode("a", 5)
