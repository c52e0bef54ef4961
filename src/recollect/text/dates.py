"""Dates in file names, front matter and questions. The clock is always an argument."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from recollect.text.late import late
from recollect.types import Span

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
            "august aug", "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_DAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday mon",
            "tuesday tue tues",
            "wednesday wed",
            "thursday thu thurs",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
_NUMBERS = {
    "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip
_CJK_NUMBERS = {c: i for i, c in enumerate("〇一二三四五六七八九十")} | {"两": 2, "兩": 2, "零": 0}

_NAME_DATE = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d{2})[-_.]?(\d{2})(?!\d)")
_FOLDER_DATE = re.compile(r"(?:^|/)(\d{4})/(?:\d{4}-)?(\d{1,2})/(?:\d{4}-\d{2}-)?(\d{1,2})(?=[^\d/]|/|$)")
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = "|".join(sorted(_DAYS, key=len, reverse=True))
# "may 5 people", "march 12 miles" and "step 5 may fail" name no day, unless a preposition says so.
_COUNTED = r"(?<!on )(?<!from )(?-i:may|march)\s+\d{1,2}\s+(?:\w{3,}s|people)\b"
_VERB = r"(?<!on )(?<!from )\d{1,2}\s+(?-i:may|march)\s+\w"
_COUNT = r"\d{1,3}|" + "|".join(_NUMBERS)
_CJK_COUNT = r"\d{1,3}|[一二三四五六七八九十两兩]{1,3}"


def make_date(year: int, month: int, day: int) -> dt.date | None:
    """The day, or None when the calendar has no such day."""
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


@lru_cache(maxsize=16_384)  # asked when notes are put in order, and again when they are read
def date_of_path(path: str) -> dt.date | None:
    """The day a path names: `2026-02-10-standup.md`, `2026/02/10.md`, `20260210.md`; the last one wins."""
    found = None
    matches = [m for pattern in (_FOLDER_DATE, _NAME_DATE) for m in pattern.finditer(path)]
    for match in sorted(matches, key=lambda m: m.end()):
        year, month, day = (int(g) for g in match.groups())
        if 1900 <= year <= 2200:
            found = make_date(year, month, day) or found
    return found


def date_of_value(value: str) -> dt.date | None:
    """The day a front-matter value names, if it begins with an ISO date."""
    match = re.match(r"(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)", value)
    return make_date(*(int(g) for g in match.groups())) if match else None


def parse_day(text: str, now: dt.datetime, *, end: bool = False) -> dt.date | None:
    """A day from a flag: an ISO date, a month, a year or a phrase; of a longer span its first or last day.

    The whole text must name it: of "last week or so" nothing is guessed.
    """
    span = parse_span(text, now)
    return None if span is None else span.end if end else span.start


def parse_span(text: str, now: dt.datetime) -> Span | None:
    """The days that a flag names, if it names days and nothing else."""
    text = " ".join(text.split())
    for pattern, read in _FLAG_READERS:
        if match := pattern.fullmatch(text):
            try:
                return read(match, now.date())
            except OverflowError:
                return None
    for phrase in (text, f"in {text}", f"on {text}"):  # a bare month or weekday is no day in a question, but is here
        spans = spans_in(phrase, now)
        rest = phrase.replace(spans[0].words, " ", 1) if len(spans) == 1 else phrase
        if spans and not _FILLER.sub(" ", rest).strip(" ,."):
            return spans[0]
    return None


def spans_in(text: str, now: dt.datetime) -> tuple[Span, ...]:
    """Days that a question names, in order, without those inside a longer match."""
    today = now.date()
    found: list[tuple[int, int, Span]] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            try:
                span = read(match, today)
            except OverflowError:  # a day before or after all days that there are
                continue
            if span and not any(a < match.end() and match.start() < b for a, b, _ in found):
                found.append((match.start(), match.end(), span))
    return tuple(span for _, _, span in sorted(found, key=lambda f: f[0]))


def _day(day: dt.date | None, words: str) -> Span | None:
    return Span(day, day, words) if day else None


def _month(year: int, month: int, words: str) -> Span | None:
    first = make_date(year, month, 1)
    if not first:
        return None
    return Span(first, first.replace(day=calendar.monthrange(year, month)[1]), words)


def _year(year: int, words: str) -> Span | None:
    if not 1900 <= year <= 2200:
        return None
    return Span(dt.date(year, 1, 1), dt.date(year, 12, 31), words)


def _week(day: dt.date, words: str) -> Span:
    monday = day - dt.timedelta(days=day.weekday())
    return Span(monday, monday + dt.timedelta(days=6), words)


def _past_month(month: int, today: dt.date, words: str) -> Span | None:
    latest = today.month - 1 if words.lower().startswith("last") else today.month
    return _month(today.year if month <= latest else today.year - 1, month, words)


def _past_day(month: int, day: int, today: dt.date, words: str) -> Span | None:
    found = make_date(today.year, month, day)
    if found and found > today:
        found = make_date(today.year - 1, month, day)
    return _day(found, words)


def _number(text: str) -> int:
    text = text.lower()
    if text.isdigit():
        return int(text)
    if text in _NUMBERS:
        return _NUMBERS[text]
    if "十" in text:
        tens, _, ones = text.partition("十")
        return _CJK_NUMBERS.get(tens, 1) * 10 + _CJK_NUMBERS.get(ones, 0)
    return _CJK_NUMBERS.get(text, 1)


def _shift_months(day: dt.date, months: int) -> tuple[int, int]:
    index = day.year * 12 + day.month - 1 + months
    return index // 12, index % 12 + 1


def _ago(count: int, unit: str, today: dt.date, words: str) -> Span | None:
    if unit == "day":
        return _day(today - dt.timedelta(days=count), words)
    if unit == "week":
        return _week(today - dt.timedelta(weeks=count), words)
    if unit == "month":
        return _month(*_shift_months(today, -count), words)
    return _year(today.year - count, words)


def _past(count: int, unit: str, today: dt.date, words: str) -> Span:
    days = count * {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
    return Span(today - dt.timedelta(days=min(days, 36500)), today, words)


def _weekday(match: re.Match[str], today: dt.date) -> Span | None:
    back = today.weekday() - _DAYS[match["day"].lower()]
    if not match.group().lower().startswith("this"):
        back = back % 7 or 7
    return _day(today - dt.timedelta(days=back), match.group())


_CJK_UNITS = {
    "天": "day", "日": "day", "周": "week", "週": "week", "星期": "week", "礼拜": "week", "週間": "week",
    "月": "month", "ヶ月": "month", "か月": "month", "年": "year",
    "일": "day", "주": "week", "주일": "week", "달": "month", "개월": "month", "년": "year",
}  # fmt: skip
_CJK_UNIT = "|".join(sorted(_CJK_UNITS, key=len, reverse=True))
_CJK_DAYS = {
    "今天": 0, "今日": 0, "오늘": 0,
    "昨天": 1, "昨日": 1, "きのう": 1, "어제": 1,
    "前天": 2, "一昨日": 2, "おととい": 2, "그저께": 2,
}  # fmt: skip
_CJK_WEEKS = {
    "本周": 0, "这周": 0, "這週": 0, "今週": 0, "这个星期": 0, "이번 주": 0,
    "上周": 1, "上週": 1, "上星期": 1, "上个星期": 1, "上礼拜": 1, "先週": 1, "지난주": 1,
    "上上周": 2, "先々週": 2,
}  # fmt: skip
_CJK_MONTHS = {
    "本月": 0, "这个月": 0, "這個月": 0, "今月": 0, "이번 달": 0,
    "上个月": 1, "上個月": 1, "上月": 1, "先月": 1, "지난달": 1,
}  # fmt: skip
_CJK_YEARS = {"今年": 0, "去年": 1, "昨年": 1, "작년": 1, "前年": 2}


def _any(words: dict[str, int]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_Reader = Callable[[re.Match[str], dt.date], Span | None]


def _readers() -> Iterator[tuple[str, _Reader]]:
    day = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
    yield (
        r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)",
        lambda m, _: _day(make_date(int(m["y"]), int(m["m"]), int(m["d"])), m.group()),
    )
    yield (
        r"(?P<y>\d{4})\s*[年년]\s*(?P<m>\d{1,2})\s*[月월]\s*(?P<d>\d{1,2})\s*[日号號일]",
        lambda m, _: _day(make_date(int(m["y"]), int(m["m"]), int(m["d"])), m.group()),
    )
    yield (
        r"(?P<y>\d{4})\s*[年년]\s*(?P<m>\d{1,2})\s*[月월]",
        lambda m, _: _month(int(m["y"]), int(m["m"]), m.group()),
    )
    yield (
        r"(?<!\d)(?P<m>\d{1,2})\s*[月월]\s*(?P<d>\d{1,2})\s*[日号號일]",
        lambda m, today: _past_day(int(m["m"]), int(m["d"]), today, m.group()),
    )
    yield (
        rf"\b(?P<m>{_MONTH})\.?\s+{day}\b,?\s+(?P<y>\d{{4}})\b",
        lambda m, _: _day(make_date(int(m["y"]), _MONTHS[m["m"].lower()], int(m["d"])), m.group()),
    )
    yield (
        rf"\b{day}(?:\s+of)?\s+(?P<m>{_MONTH})\.?,?\s+(?P<y>\d{{4}})\b",
        lambda m, _: _day(make_date(int(m["y"]), _MONTHS[m["m"].lower()], int(m["d"])), m.group()),
    )
    yield (
        rf"\b(?P<m>{_MONTH})\.?,?\s+(?:of\s+)?(?P<y>\d{{4}})\b",
        lambda m, _: _month(int(m["y"]), _MONTHS[m["m"].lower()], m.group()),
    )
    yield (
        rf"\b(?!{_COUNTED})(?P<m>{_MONTH})\.?\s+{day}\b",
        lambda m, today: _past_day(_MONTHS[m["m"].lower()], int(m["d"]), today, m.group()),
    )
    yield (
        rf"\b(?!{_VERB}){day}(?:\s+of)?\s+(?P<m>{_MONTH})\b",
        lambda m, today: _past_day(_MONTHS[m["m"].lower()], int(m["d"]), today, m.group()),
    )
    yield r"\b(?P<y>\d{4})-(?P<m>\d{2})\b(?!-\d)", lambda m, _: _month(int(m["y"]), int(m["m"]), m.group())
    yield (
        rf"\b(?!this (?-i:may) \w)(?:in|during|since|last|this|of|early|late|mid)[\s-]+(?P<m>{_MONTH})\b",
        lambda m, today: _past_month(_MONTHS[m["m"].lower()], today, m.group()),
    )
    yield r"\b(?:in|during|since|of)\s+(?P<y>(?:19|20|21)\d{2})\b", lambda m, _: _year(int(m["y"]), m.group())
    yield (
        r"(?<!\d)(?P<y>(?:19|20|21)\d{2})\s*[年년](?!\s*\d)",
        lambda m, _: _year(int(m["y"]), m.group()),
    )
    yield rf"\b(?:last|on|past|this|previous)\s+(?!(?-i:sun)\s+\w)(?P<day>{_DAY})\b", _weekday
    yield r"\bday before yesterday\b", lambda m, today: _day(today - dt.timedelta(days=2), m.group())
    yield r"\byesterday\b", lambda m, today: _day(today - dt.timedelta(days=1), m.group())
    yield r"\b(?:today|tonight|this morning|this afternoon)\b", lambda m, today: _day(today, m.group())
    yield (
        rf"\b(?P<n>{_COUNT}|couple of|few)\s+(?P<u>day|week|month|year)s?\s+(?:ago|back|earlier)\b",
        lambda m, today: _ago(
            _number(m["n"].replace("couple of", "2").replace("few", "3")), m["u"].lower(), today, m.group()
        ),
    )
    yield (
        rf"\b(?:last|past|previous)\s+(?P<n>{_COUNT}|few)\s+(?P<u>day|week|month|year)s?\b",
        lambda m, today: _past(_number(m["n"].replace("few", "3")), m["u"].lower(), today, m.group()),
    )
    yield (
        r"\b(?:last|previous)\s+(?P<u>week|month|year)\b",
        lambda m, today: _ago(1, m["u"].lower(), today, m.group()),
    )
    yield r"\bthis\s+(?P<u>week|month|year)\b", lambda m, today: _ago(0, m["u"].lower(), today, m.group())
    yield (
        rf"(?P<n>{_CJK_COUNT})\s*(?:个|個)?(?P<u>{_CJK_UNIT})(?:之?前|以前|\s*전)",
        lambda m, today: _ago(_number(m["n"]), _CJK_UNITS[m["u"]], today, m.group()),
    )
    yield (
        rf"(?!(?<=[目当當之以提])前天)(?P<w>{_any(_CJK_DAYS)})",  # 目前天气 is the weather now
        lambda m, today: _day(today - dt.timedelta(days=_CJK_DAYS[m["w"]]), m.group()),
    )
    yield (
        rf"(?<!日)(?P<w>{_any(_CJK_WEEKS)})",  # 日本周辺 is around Japan
        lambda m, today: _week(today - dt.timedelta(weeks=_CJK_WEEKS[m["w"]]), m.group()),
    )
    yield (
        rf"(?<!日)(?P<w>{_any(_CJK_MONTHS)})",
        lambda m, today: _month(*_shift_months(today, -_CJK_MONTHS[m["w"]]), m.group()),
    )
    yield rf"(?P<w>{_any(_CJK_YEARS)})", lambda m, today: _year(today.year - _CJK_YEARS[m["w"]], m.group())
    yield (
        r"(?<![\d年])(?P<m>\d{1,2})\s*月(?:份|に|の|中)",
        lambda m, today: _past_month(int(m["m"]), today, m.group()),
    )


_READERS = [(late(pattern, re.IGNORECASE), read) for pattern, read in _readers()]

_FILLER = late(
    r"\b(?:in|on|since|from|until|till|by|the|of|a|early|mid|late)\b|[以之]?[来來前后後]|から|まで|부터|까지",
    re.IGNORECASE,
)


def _flag_readers() -> Iterator[tuple[str, _Reader]]:
    """What only a flag may say: short forms that would be no date in a question."""
    units = {"d": "day", "w": "week", "m": "month", "y": "year"}
    yield (
        r"(?P<y>\d{4})(?:-(?P<m>\d{1,2}))?",
        lambda m, _: _month(int(m["y"]), int(m["m"]), m.group()) if m["m"] else _year(int(m["y"]), m.group()),
    )
    yield (
        r"(?P<day>\d{4}-\d{1,2}-\d{1,2})[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s?(?:Z|[+-]\d{2}:?\d{2})?",
        lambda m, _: _day(date_of_value(m["day"]), m.group()),
    )
    yield r"(?P<day>\d{8})", lambda m, _: _day(date_of_path(m["day"]), m.group())
    yield r"(?P<y>\d{4})-?W(?P<w>\d{1,2})", lambda m, _: _iso_week(int(m["y"]), int(m["w"]), m.group())
    yield r"(?P<y>\d{4})[- ]?Q(?P<q>[1-4])", lambda m, _: _quarter(int(m["y"]), int(m["q"]), m.group())
    yield r"Q(?P<q>[1-4])[- ]?(?P<y>\d{4})", lambda m, _: _quarter(int(m["y"]), int(m["q"]), m.group())
    yield r"now", lambda m, today: _day(today, m.group())
    yield r"tomorrow|明天|明日|내일", lambda m, today: _day(today + dt.timedelta(days=1), m.group())
    # "30d" and "2 weeks" are a length of time up to today, as the flags of other tools have it.
    yield (
        r"(?P<n>\d{1,3}) ?(?P<u>[dwmy])",
        lambda m, today: _past(int(m["n"]), units[m["u"].lower()], today, m.group()),
    )
    yield (
        rf"(?:the )?(?P<n>{_COUNT}) (?P<u>day|week|month|year)s?",
        lambda m, today: _past(_number(m["n"]), m["u"].lower(), today, m.group()),
    )
    yield (
        rf"(?:过去|過去|最近|近|지난|최근) ?(?P<n>{_CJK_COUNT}) ?(?:个|個)?(?P<u>{_CJK_UNIT})(?:间|間)?",
        lambda m, today: _past(_number(m["n"]), _CJK_UNITS[m["u"]], today, m.group()),
    )
    yield (
        r"(?P<m>\d{1,2}|[一二三四五六七八九十]{1,2}) ?[月월]",
        lambda m, today: _past_month(_number(m["m"]), today, m.group()),
    )


def _iso_week(year: int, week: int, words: str) -> Span | None:
    try:
        return _week(dt.date.fromisocalendar(year, week, 1), words)
    except ValueError:
        return None


def _quarter(year: int, quarter: int, words: str) -> Span | None:
    first, last = _month(year, 3 * quarter - 2, words), _month(year, 3 * quarter, words)
    return Span(first.start, last.end, words) if first and last else None


_FLAG_READERS = [(late(pattern, re.IGNORECASE), read) for pattern, read in _flag_readers()]
