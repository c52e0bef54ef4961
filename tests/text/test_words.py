"""The analyser: what the index stores for a text and what a question asks for."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import FieldTerms
from notewell.text import words
from notewell.text.words import (
    STOP_WORDS,
    Terms,
    analysed,
    clean,
    count_tokens,
    counted,
    fold,
    foreign_share,
    index_terms,
    is_unspaced,
    pieces_of,
    places,
    query_terms,
    term_set,
    words_in,
)
from notewell.types import Chunk, Document, Facts
from tests.store.made import put_document

JAPANESE = "東京都庁の展望台は夜景が綺麗です"


def terms(text: str) -> list[str]:
    return index_terms(text)[0].split()


def exact(text: str) -> list[str]:
    return index_terms(text)[1].split()


def found_by(asked: Terms, text: str) -> bool:
    """Whether a text has the strictest form of what a run of an unspaced script asks for: its
    character at the beginning of a term, or all its bigrams in a row.
    """
    there = terms(text)
    if asked.prefixes:
        return any(term.startswith(asked.prefixes[0]) for term in there)
    grams = [w for w in asked.words if len(w) == 2]
    return any(there[i : i + len(grams)] == grams for i in range(len(there)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("DEPLOY", "deploy"),
        ("Straße", "STRASSE"),
        ("ΟΔΟΣ", "οδος"),
        ("ПРИВЕТ", "привет"),
        ("Ｆｕｌｌ", "full"),
        ("ﬁle", "file"),
        ("ｶﾞｷﾞ", "ガギ"),
        ("café", "cafe"),
        ("e\u0301clair", "éclair"),
        ("İstanbul", "istanbul"),
        ("user’s", "user's"),
    ],
)
def test_case_width_and_latin_accents_do_not_matter(one: str, other: str) -> None:
    assert terms(one) == terms(other)


def test_marks_outside_latin_carry_meaning() -> None:
    assert fold("й") != fold("и")
    assert terms("が") != terms("か")


def test_english_words_meet_at_their_stem_and_keep_their_exact_form() -> None:
    assert terms("deploying") == terms("deployed") == ["deploy"]
    assert exact("deploying deployed") == ["deploying", "deployed"]
    assert exact("deploy") == []
    assert query_terms("deploying").exact == ("deploying",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("parseConfig", {"parseconfig", "config"}),
        ("HTTPServer", {"httpserver", "http", "server"}),
        ("snake_case_name", {"snake_case_name", "snake", "case", "name"}),
        ("v2.3.1", {"v2.3.1", "2.3.1"}),
        ("E0308", {"e0308", "0308"}),
        ("src/app/main.py", {"src/app/main.py", "src", "app", "main", "py"}),
        ("me@example.com", {"me@example.com", "com"}),
        ("2026-02-10", {"2026-02-10", "2026-02", "2026"}),
        ("2026/2/3", {"2026/2/3", "2026-02-03", "2026-02", "2026"}),
        ("C++", {"c++"}),
        ("C#", {"c#"}),
        ("GitHub备份", {"github", "git", "hub", "备份"}),
    ],
)
def test_an_identifier_is_kept_whole_and_split(text: str, found: set[str]) -> None:
    assert found <= term_set(text)
    assert found <= set(query_terms(text).words)


def test_apostrophes_make_no_terms_of_their_own() -> None:
    assert terms("Anna's don't") == ["anna", "dont"]
    assert not any("'" in t or "’" in t for t in terms("rock'n'roll it’s 'quoted'"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Привет, мир!", ["привет", "мир"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया"]),
        ("Γειά σου", ["γειά", "σου"]),
        ("mañana naïf", ["manana", "naif"]),
        ("ภาษา", ["ภา", "าษ", "ษา", "า"]),
        ("東京都", ["東京", "京都", "都"]),
        ("한국어 말", ["한국", "국어", "어", "말"]),
    ],
)
def test_every_script_has_terms(text: str, found: list[str]) -> None:
    assert terms(text) == found


def test_emoji_and_punctuation_have_none() -> None:
    assert terms("👩‍💻 — … !!! \"\" ''") == []
    assert not query_terms("???")


@pytest.mark.parametrize(
    "run", [JAPANESE, "我们上周讨论了备份脚本的问题", "ภาษาไทยเขียนติดกัน", "안녕하세요반갑습니다"]
)
def test_every_substring_of_an_unspaced_run_finds_it(run: str) -> None:
    for start in range(len(run)):
        for end in range(start + 1, len(run) + 1):
            assert found_by(query_terms(run[start:end]), f"before {run} after"), run[start:end]


def test_a_run_is_not_found_by_characters_in_another_order() -> None:
    assert not found_by(query_terms("京東"), JAPANESE)
    assert not found_by(query_terms("東京の"), JAPANESE)
    assert not found_by(query_terms("海"), JAPANESE)


@given(
    st.text(
        alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=12
    ),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_any_part_of_any_han_run_finds_it(run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 1))
    end = data.draw(st.integers(start + 1, len(run)))
    assert found_by(query_terms(run[start:end]), run)


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_makes_terms_that_the_index_takes_as_they_are(text: str) -> None:
    stems, forms = index_terms(clean(text))
    asked = query_terms(text)
    wanted = {*stems.split(), *forms.split()}
    for term in (*wanted, *asked.words, *asked.exact, *asked.prefixes):
        assert term
        assert '"' not in term
        assert not any(c.isspace() for c in term)
    store = SqliteStore(None)
    put_document(
        store,
        Document("", "memory", 1, 1, ""),
        "",
        Facts(),
        [Chunk("id", "", "memory", 1, 1, (), clean(text), "")],
    )
    assert {word for (word,) in store.connection.all("SELECT word FROM words")} == wanted
    assert store.keywords.chunk_terms([1]) == {
        1: FieldTerms((), tuple(stems.split()), tuple(forms.split()))
    }
    store.close()


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    asked = query_terms(text)
    found = term_set(clean(text))
    assert set(asked.words) <= found
    assert all(any(term.startswith(p) for term in found) for p in asked.prefixes)


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=200))
@settings(max_examples=200, deadline=None)
def test_the_fast_way_for_ascii_agrees_with_the_general_one(text: str) -> None:
    assert terms(text) == terms(f"{text} …")


def test_stop_words_are_asked_for_only_when_there_is_nothing_else() -> None:
    assert query_terms("what is the deploy").words == ("deploy",)
    assert set(query_terms("what is the deploy").stop) >= {"what", "is", "the"}
    assert set(query_terms("to be or not to be").words) == {"to", "be", "or", "not"}
    assert "the" in STOP_WORDS
    assert "the" in terms("the deploy")


def test_operators_of_a_query_language_are_data() -> None:
    asked = query_terms('NEAR("deploy*" AND NOT body:x) OR -foo')
    assert {"deploy", "near", "foo"} <= set(asked.words)


def test_a_very_long_word_has_a_bounded_term() -> None:
    assert max(map(len, terms("x" * 100_000))) <= 256


@pytest.mark.parametrize("text", ["", "a\x00b", "\ud800x", "x\udfff", "fine"])
def test_clean_text_is_taken_by_any_utf8_consumer(text: str) -> None:
    out = clean(text)
    out.encode("utf-8")
    assert "\x00" not in out
    assert clean(out) == out


def test_clean_leaves_sound_text_as_it_is() -> None:
    assert clean("Ünïcödé 東京 😀\r\n\t") == "Ünïcödé 東京 😀\r\n\t"


@given(st.text(max_size=100))
@settings(max_examples=100, deadline=None)
def test_places_lie_in_the_text_in_order(text: str) -> None:
    spans = list(places(text))
    ends = [0, *(end for _, end in spans)]
    assert all(before <= start < end for before, (start, end) in zip(ends, spans, strict=False))
    assert ends[-1] <= len(text)


def test_tokens_are_about_four_letters_or_one_wide_character() -> None:
    assert count_tokens("") == 0
    assert count_tokens("x" * 400) == 100
    assert count_tokens("東京都") == 3
    assert count_tokens("한국") == 2
    assert count_tokens("привет") == 3


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_a_whole_has_no_more_tokens_than_its_parts(one: str, other: str) -> None:
    assert count_tokens(one + other) <= count_tokens(one) + count_tokens(other)


def test_unspaced_scripts_are_known() -> None:
    assert is_unspaced("see 東京")
    assert is_unspaced("ภาษา")
    assert not is_unspaced("한국어 Привет")


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("plain words", 0.0),
        ("café 12 _", 0.0),
        ("数据库", 1.0),
        ("ab Привет", 0.75),
        ("123 …", 0.0),
    ],
)
def test_the_foreign_share_counts_letters_outside_latin(text: str, share: float) -> None:
    assert foreign_share(text) == pytest.approx(share)


_LETTER = rf"(?:[^\W_{words._UNSPACED}{words._HANGUL}]|[{words._MARKS}])"
_EACH = re.compile(
    rf"(?P<cjk>[{words._UNSPACED}]+)|(?P<hangul>[{words._HANGUL}]+)"
    rf"|{_LETTER}+(?:[{words._JOIN}]{{1,2}}{_LETTER}+)*(?:\+\+|\#(?!\w))?"
)
_MIXED = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.text(alphabet="aZé9ßЖ中文한글กา_.-/:@+'’#  \u0301\u0489", max_size=12),
        st.sampled_from(
            [
                "getUserName",
                "2026-01-02",
                "v1.2.3",
                "don't",
                "C++",
                "c#",
                "x" * 300,
                "日本" * 200,
                "runs",
            ]
        ),
    ),
    max_size=8,
)


@settings(max_examples=500)
@given(_MIXED)
def test_remembered_words_are_those_made_letter_by_letter(parts: list[str]) -> None:
    text = " ".join(parts) if len(parts) % 2 else "".join(parts)
    stems, exact = [], []
    for match in _EACH.finditer(unicodedata.normalize("NFKC", words.visible(text))):
        run = match.group()
        stem, form = (
            (" ".join(words._bigrams(run)), "")
            if match.lastgroup
            else words._expand(run[: words._MAX_WORD])
        )
        stems.append(stem)
        exact += [form] if form else []

    assert words.index_terms(text) == (" ".join(stems), " ".join(exact))
    assert words.index_terms(text) == (" ".join(stems), " ".join(exact))


@given(st.text())
@example("a\u00a0b ´c \u3000 e\u0301 \u0301f #g h# i++ j' 'k x:\x1cy\x85z ﷺ ¨ ﬁ")
@example("GitHub备份脚本 한국어 2026-02-10, don't v1.2.3-rc1 (SQLite's) “quoted” naïve-Café")
def test_the_pieces_of_a_text_have_its_words_and_terms(text: str) -> None:
    pieces = pieces_of(text)
    assert [word for piece in pieces for word in words_in(piece)] == words_in(text)
    stems, forms = index_terms(text)
    found = [analysed(piece) for piece in pieces]
    assert [term for one, _ in found for term in one.split()] == stems.split()
    assert [form for _, one in found for form in one.split()] == forms.split()


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How do I rotate the Stripe keys?", ["stripe"]),
        ("Stripe keys", []),
        ("Who was told? Mira was.", []),
        ("Ask for version 2.4 of autocomplete.js", ["2.4", "autocomplete.js", "autocomplet", "js"]),
        ("Wann hat Ines die Rechnung bezahlt", ["ine", "rechnung"]),
        ("what did I say", []),
        ("我在GitHub上的备份", ["github", "git", "hub"]),
    ],
)
def test_the_names_of_a_question_have_a_capital_a_digit_or_a_joint(
    question: str, names: list[str]
) -> None:
    found = query_terms(question)
    assert list(found.names) == names
    assert set(names) <= {*found.words, *found.stop}


@given(st.text())
def test_names_are_words_of_the_question(question: str) -> None:
    found = query_terms(question)
    assert set(found.names) <= set(found.words)


def test_one_thing_is_written_without_an_s() -> None:
    assert [counted(n, "passage") for n in (0, 1, 2, 2876)] == [
        "0 passages",
        "1 passage",
        "2 passages",
        "2,876 passages",
    ]


@given(st.from_regex(r"[a-z]{1,12}(ing|ed|ies|ational|ibly|ly|s|y|ying)?", fullmatch=True))
@example("dying")
@example("skies")
@example("relational")
def test_a_word_begins_as_its_term_says(word: str) -> None:
    stem = index_terms(word)[0]
    assert any(word.startswith(begin) for begin in words.begins_of(frozenset([stem])))
