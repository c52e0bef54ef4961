"""Days that file names, front matter and questions name. Now is Wednesday, 18 March 2026."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.dates import date_of_path, date_of_value, parse_day, spans_in

NOW = dt.datetime(2026, 3, 18, 12, 0, tzinfo=dt.UTC)


def spans(text: str) -> list[tuple[str, str]]:
    return [(s.start.isoformat(), s.end.isoformat()) for s in spans_in(text, NOW)]


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("2026-02-10.md", "2026-02-10"),
        ("memory/2026-02-10-standup-with-anna.md", "2026-02-10"),
        ("memory/standup_2026_02_10.md", "2026-02-10"),
        ("20260210.md", "2026-02-10"),
        ("10 February 2026.md", "2026-02-10"),
        ("Daily/February 10th, 2026.md", "2026-02-10"),
        ("10-Feb-2026 call.md", "2026-02-10"),
        ("2026-02-10T12-30.md", "2026-02-10"),
        ("memory/2026/02/10.md", "2026-02-10"),
        ("memory/2026/2/3-standup.md", "2026-02-03"),
        ("2026/2026-02/2026-02-10.md", "2026-02-10"),
        ("2026-02-10/notes.md", "2026-02-10"),
        ("2099-01-01.md", "2099-01-01"),
    ],
)
def test_a_path_names_its_day_in_many_ways(path: str, day: str) -> None:
    assert date_of_path(path) == dt.date.fromisoformat(day)


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "2026-02-30.md",
        "2026-13-01.md",
        "2026-02.md",
        "3000-01-01.md",
        "12026-02-10.md",
        "202602101.md",
    ],
)
def test_a_path_that_names_no_day(path: str) -> None:
    assert date_of_path(path) is None


def test_the_last_valid_day_of_a_path_wins() -> None:
    assert date_of_path("2025-01-01/2026-02-10.md") == dt.date(2026, 2, 10)
    assert date_of_path("2025-01-01/2026/02/10.md") == dt.date(2026, 2, 10)
    assert date_of_path("2026/02/10/2025-01-01.md") == dt.date(2025, 1, 1)
    assert date_of_path("2026-02-10/2026-99-99.md") == dt.date(2026, 2, 10)


def test_front_matter_begins_with_an_iso_day() -> None:
    assert date_of_value("2026-02-10T10:00:00Z") == dt.date(2026, 2, 10)
    assert date_of_value("2026-2-3") == dt.date(2026, 2, 3)
    assert date_of_value("2026-02-30") is None
    assert date_of_value("2026-02-101") is None
    assert date_of_value("soon") is None


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("what happened on 2024-03-19?", "2024-03-19", "2024-03-19"),
        ("2024/3/9", "2024-03-09", "2024-03-09"),
        ("the notes of 2024-03", "2024-03-01", "2024-03-31"),
        ("today", "2026-03-18", "2026-03-18"),
        ("Yesterday's talk", "2026-03-17", "2026-03-17"),
        ("the day before yesterday", "2026-03-16", "2026-03-16"),
        ("last Tuesday", "2026-03-17", "2026-03-17"),
        ("last wednesday", "2026-03-11", "2026-03-11"),
        ("on Friday", "2026-03-13", "2026-03-13"),
        ("this Friday", "2026-03-20", "2026-03-20"),
        ("3 days ago", "2026-03-15", "2026-03-15"),
        ("two weeks ago", "2026-03-02", "2026-03-08"),
        ("a month ago", "2026-02-01", "2026-02-28"),
        ("a couple of weeks ago", "2026-03-02", "2026-03-08"),
        ("last week", "2026-03-09", "2026-03-15"),
        ("this week", "2026-03-16", "2026-03-22"),
        ("last month", "2026-02-01", "2026-02-28"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("in the last 10 days", "2026-03-08", "2026-03-18"),
        ("in March", "2026-03-01", "2026-03-31"),
        ("last March", "2025-03-01", "2025-03-31"),
        ("in april", "2025-04-01", "2025-04-30"),
        ("March 2024", "2024-03-01", "2024-03-31"),
        ("March 5", "2026-03-05", "2026-03-05"),
        ("march 19", "2025-03-19", "2025-03-19"),
        ("May 5th, 2024", "2024-05-05", "2024-05-05"),
        ("12 may 2024", "2024-05-12", "2024-05-12"),
        ("the 5th of May", "2025-05-05", "2025-05-05"),
        ("on 5 may in Berlin", "2025-05-05", "2025-05-05"),
        ("in 2024", "2024-01-01", "2024-12-31"),
    ],
)
def test_english_questions_name_days(text: str, start: str, end: str) -> None:
    assert spans(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("昨天说了什么", "2026-03-17", "2026-03-17"),
        ("前天", "2026-03-16", "2026-03-16"),
        ("上周的会议", "2026-03-09", "2026-03-15"),
        ("上上周", "2026-03-02", "2026-03-08"),
        ("上个月", "2026-02-01", "2026-02-28"),
        ("去年", "2025-01-01", "2025-12-31"),
        ("三天前", "2026-03-15", "2026-03-15"),
        ("二十一天前", "2026-02-25", "2026-02-25"),
        ("两个月前", "2026-01-01", "2026-01-31"),
        ("2024年3月5日", "2024-03-05", "2024-03-05"),
        ("2024年3月", "2024-03-01", "2024-03-31"),
        ("4月份", "2025-04-01", "2025-04-30"),
        ("昨日の会議", "2026-03-17", "2026-03-17"),
        ("一昨日", "2026-03-16", "2026-03-16"),
        ("先週", "2026-03-09", "2026-03-15"),
        ("先月", "2026-02-01", "2026-02-28"),
        ("3日前", "2026-03-15", "2026-03-15"),
        ("3ヶ月前", "2025-12-01", "2025-12-31"),
        ("１２月２５日", "2025-12-25", "2025-12-25"),
        ("2月に", "2026-02-01", "2026-02-28"),
        ("어제 회의", "2026-03-17", "2026-03-17"),
        ("지난주에", "2026-03-09", "2026-03-15"),
        ("지난달", "2026-02-01", "2026-02-28"),
        ("3일 전", "2026-03-15", "2026-03-15"),
        ("2주 전에", "2026-03-02", "2026-03-08"),
        ("2024년 3월 5일", "2024-03-05", "2024-03-05"),
    ],
)
def test_chinese_japanese_and_korean_questions_name_days(text: str, start: str, end: str) -> None:
    assert spans(text) == [(start, end)]


@pytest.mark.parametrize(
    "text",
    [
        "may 5 people join?",
        "it may 12 times fail",
        "we march 5 miles",
        "march on",
        "step 5 may fail",
        "this may be wrong",
        "an article on sun protection",
        "we sat on the sun deck",
        "the second of mars",
        "2024-13-01",
        "2023-02-29",
        "February 30",
        "192.168.1.1",
        "error 2024 in module",
        "port 8080, 1999 bugs",
        "目前天气如何",
        "日本周辺の地図",
        "13月5日",
        "",
    ],
)
def test_words_that_only_look_like_days_name_none(text: str) -> None:
    assert spans(text) == []


def test_an_abbreviated_sunday_is_a_day_where_nothing_follows() -> None:
    assert spans("what did we do on sun?") == [("2026-03-15", "2026-03-15")]
    assert spans("on Sun we met") == [("2026-03-15", "2026-03-15")]


def test_days_are_read_with_the_letters_of_a_turkish_keyboard() -> None:
    assert spans("on frıday") == spans("on FRİDAY") == spans("on Friday")
    assert spans("in aprıl") == spans("in April")
    assert spans("thıs mornıng") == spans("this morning")


def test_several_days_come_in_the_order_of_the_question() -> None:
    found = spans_in("compare last week with 2024-03-19 and yesterday", NOW)
    assert [s.words for s in found] == ["last week", "2024-03-19", "yesterday"]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2024", "2024-01-01", "2024-12-31"),
        (" 2024-02 ", "2024-02-01", "2024-02-29"),
        ("2024-03-19", "2024-03-19", "2024-03-19"),
        ("last week", "2026-03-09", "2026-03-15"),
        ("in March", "2026-03-01", "2026-03-31"),
        ("march", "2026-03-01", "2026-03-31"),
        ("may", "2025-05-01", "2025-05-31"),
        ("early march", "2026-03-01", "2026-03-31"),
        ("Monday", "2026-03-16", "2026-03-16"),
        ("3 days ago", "2026-03-15", "2026-03-15"),
        ("since the 3rd of March", "2026-03-03", "2026-03-03"),
        ("the last 3 days", "2026-03-15", "2026-03-18"),
        ("30d", "2026-02-16", "2026-03-18"),
        ("2 weeks", "2026-03-04", "2026-03-18"),
        ("2026-W12", "2026-03-16", "2026-03-22"),
        ("Q1 2026", "2026-01-01", "2026-03-31"),
        ("2026-Q4", "2026-10-01", "2026-12-31"),
        ("2026-03-19T10:00:00Z", "2026-03-19", "2026-03-19"),
        ("2026-03-19 10:00", "2026-03-19", "2026-03-19"),
        ("20260319", "2026-03-19", "2026-03-19"),
        ("now", "2026-03-18", "2026-03-18"),
        ("tomorrow", "2026-03-19", "2026-03-19"),
        ("上周", "2026-03-09", "2026-03-15"),
        ("上周以来", "2026-03-09", "2026-03-15"),
        ("三月", "2026-03-01", "2026-03-31"),
        ("最近3天", "2026-03-15", "2026-03-18"),
        ("3天前", "2026-03-15", "2026-03-15"),
        ("지난주", "2026-03-09", "2026-03-15"),
    ],
)
def test_a_flag_is_the_first_or_the_last_day_of_what_it_names(
    text: str, first: str, last: str
) -> None:
    assert parse_day(text, NOW) == dt.date.fromisoformat(first)
    assert parse_day(text, NOW, end=True) == dt.date.fromisoformat(last)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2024-13",
        "0000",
        "2024-02-30",
        "last weak",
        "last week or so",
        "foo 2026-03-01",
        "march or april",
        "2026-W60",
        "99999999",
        "13月",
        "in",
    ],
)
def test_a_flag_that_names_no_day_is_none(text: str) -> None:
    assert parse_day(text, NOW) is None


PIECES = (
    "last",
    "3",
    "999",
    "weeks",
    "years",
    "ago",
    "in",
    "may",
    "31",
    "2024",
    "年",
    "月",
    "日",
    "前",
    ".",
    "-",
)


@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES)).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_question_is_read_without_an_error(text: str) -> None:
    for span in spans_in(text, NOW):
        assert span.start <= span.end
        assert span.words in text


@given(
    st.text(max_size=30)
    | st.lists(st.sampled_from((*PIECES, "d", "W", "Q", "last week"))).map(" ".join)
)
@settings(max_examples=300, deadline=None)
def test_any_flag_is_read_without_an_error(text: str) -> None:
    first, last = parse_day(text, NOW), parse_day(text, NOW, end=True)
    assert (first is None) == (last is None)
    assert first is None or last is None or first <= last
