"""Dates in file names, front matter and questions. The clock is always an argument."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice

from notewell.text.words import lazy_compile, lower
from notewell.types import Span


def numbered(text: str, *, start: int = 0) -> dict[str, int]:
    """Words to the number of their group; commas separate the groups."""
    return {
        word: number
        for number, group in enumerate(text.split(","), start)
        for word in group.split()
    }


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_MONTHS = numbered(
    "january jan, february feb, march mar, april apr, may, june jun, july jul,"
    " august aug, september sept sep, october oct, november nov, december dec",
    start=1,
)
# German, French and Spanish; a word that is also English, such as `mars`, is a date only with a
# word of theirs.
_OTHER_MONTHS = numbered(
    "januar jänner janvier enero, februar février fevrier febrero, märz maerz mars marzo,"
    " april avril abril, mai mayo, juni juin junio, juli juillet julio, august août aout agosto,"
    " september septembre septiembre setiembre, oktober octobre octubre,"
    " november novembre noviembre, dezember décembre decembre diciembre",
    start=1,
)
_DAYS = numbered(
    "monday mon, tuesday tue tues, wednesday wed, thursday thu thurs, friday fri, saturday sat, "
    "sunday sun"
)
_NUMBERS = numbered(
    "a one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve", start=1
)
_OTHER_NUMBERS = numbered(
    "ein eine einem einer un une una, zwei deux dos, drei trois tres,"
    " vier quatre cuatro, fünf cinq cinco, sechs six seis,"
    " sieben sept siete, acht huit ocho, neun neuf nueve, zehn dix diez",
    start=1,
)
_VAGUE = {"couple of": 2, "few": 3}
_DAYS_AGO = {
    "day before yesterday": 2,
    "yesterday": 1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "vorgestern": 2,
    "gestern": 1,
    "heute": 0,
    "avant-hier": 2,
    "aujourd'hui": 0,
    "anteayer": 2,
    "ayer": 1,
}
_CJK_NUMBERS = {c: i for i, c in enumerate("〇一二三四五六七八九十")} | {"两": 2, "兩": 2, "零": 0}
_CJK_DAYS = numbered("今天 今日 오늘, 昨天 昨日 きのう 어제, 前天 一昨日 おととい 그저께")
_CJK_WEEKS = numbered(
    "本周 这周 這週 今週 这个星期, 上周 上週 上星期 上个星期 上礼拜 先週 지난주, 上上周 先々週"
)
_CJK_MONTHS = numbered("本月 这个月 這個月 今月, 上个月 上個月 上月 先月 지난달")
_CJK_WEEKS["이번 주"] = _CJK_MONTHS["이번 달"] = 0
_CJK_YEARS = numbered("今年, 去年 昨年 작년, 前年")
_UNITS = dict.fromkeys("d天日일", "day") | dict.fromkeys("y年년", "year")
_UNITS |= dict.fromkeys(("w", "周", "週", "星期", "礼拜", "週間", "주", "주일"), "week")
_UNITS |= dict.fromkeys(("m", "月", "ヶ月", "か月", "달", "개월"), "month")
_OTHER_UNITS = dict.fromkeys(
    ["tag", "tage", "tagen", "jour", "jours", "día", "días", "dia", "dias"], "day"
)
_OTHER_UNITS |= dict.fromkeys(
    ["woche", "wochen", "semaine", "semaines", "semana", "semanas"], "week"
)
_OTHER_UNITS |= dict.fromkeys(["monat", "monate", "monaten", "mois", "mes", "meses"], "month")
_OTHER_UNITS |= dict.fromkeys(
    ["jahr", "jahre", "jahren", "an", "ans", "année", "années", "año", "años"], "year"
)
# The first month of each, as north of the equator.
_SEASONS = {
    word: month
    for month, words in (
        (3, "spring frühling frühjahr printemps primavera 春"),
        (6, "summer sommer été verano 夏"),
        (9, "autumn fall herbst automne otoño 秋"),
        (12, "winter hiver invierno 冬"),
    )
    for word in words.split()
}

_MOST_SPANS = 40  # of each form
_LONGEST_FLAG = 200
_DIGIT = re.compile(r"\d")
_WIDE = "\u1100"  # the first letter of a script without spaces, or of Korean
_WORDS = re.compile(r"\w+")
_TIME_WORDS = frozenset(
    (
        *_MONTHS,
        *_OTHER_MONTHS,
        *_DAYS,
        *_SEASONS,
        *_OTHER_UNITS,
        "tonight",
        "morning",
        "afternoon",
        "yesterday",
        "today",
    )
) | {f"{unit}{end}" for unit in ("day", "week", "month", "year") for end in ("", "s")}
_TIME_WORDS |= {part for name in _DAYS_AGO for part in _WORDS.findall(name)}

_NAME_DATE = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d{2})[-_.]?(\d{2})(?!\d)")
_WORD_DATE = re.compile(
    r"(?<![^\W_])(?:(\d{1,2})(?:st|nd|rd|th)?[ _.-]+([a-z]{3,9})"
    r"|([a-z]{3,9})[ _.-]+(\d{1,2})(?:st|nd|rd|th)?),?[ _.-]+(\d{4})(?!\d)",
    re.IGNORECASE,
)
_FOLDER_DATE = re.compile(
    r"(?:^|/)(\d{4})/(?:\d{4}-)?(\d{1,2})/(?:\d{4}-\d{2}-)?(\d{1,2})(?=[^\d/]|/|$)"
)


def make_date(year: int, month: int, day: int) -> dt.date | None:
    """The day, or None if the calendar does not have it."""
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def month_of(name: str) -> int:
    """The number of a month by its English name or the first letters of it; 0 for any other
    word.
    """
    return _MONTHS.get(name.casefold(), 0)


@lru_cache(maxsize=16_384)  # called when notes are put in order, and again when they are read
def date_of_path(path: str) -> dt.date | None:
    """The day in a path: `2026-02-10-standup.md`, `2026/02/10.md`, `20260210.md`, `10 Feb 2026`;
    the last one wins.
    """
    found = None
    matches = [
        m for pattern in (_FOLDER_DATE, _NAME_DATE, _WORD_DATE) for m in pattern.finditer(path)
    ]
    for match in sorted(matches, key=lambda m: m.end()):
        if match.re is _WORD_DATE:
            first, after, before, second, last = match.groups()
            year, month, day = int(last), month_of(after or before), int(first or second)
        else:
            year, month, day = (int(g) for g in match.groups())
        if 1900 <= year <= 2200:
            found = make_date(year, month, day) or found
    return found


def date_of_value(value: str) -> dt.date | None:
    """The day at the start of a front-matter value, if that is an ISO date."""
    match = re.match(r"(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)", value)
    return make_date(*(int(g) for g in match.groups())) if match else None


def parse_day(text: str, now: dt.datetime, *, end: bool = False) -> dt.date | None:
    """A day from a flag: an ISO date, a month, a year or a phrase; the first or last day of a
    longer span.

    The entire text must be a date: "last week or so" is not guessed.
    """
    span = parse_span(text, now)
    return None if span is None else span.end if end else span.start


def parse_span(text: str, now: dt.datetime) -> Span | None:
    """The days that a flag means, if all of it is a date."""
    text = " ".join(text.split())
    if len(text) > _LONGEST_FLAG:
        return None
    for pattern, read in _FLAG_READERS:
        if match := pattern.fullmatch(text):
            return _span(read, match, now.date())
    # a flag, unlike a question, may be a bare month or weekday
    for phrase in (text, f"in {text}", f"on {text}"):
        spans = spans_in(phrase, now)
        rest = phrase.replace(spans[0].words, " ", 1) if len(spans) == 1 else phrase
        if spans and not _FILLER.sub(" ", rest).strip(" ,."):
            return spans[0]
    return None


def spans_in(text: str, now: dt.datetime) -> tuple[Span, ...]:
    """The days that a question mentions, in order, without those inside a longer match."""
    return tuple(span for _, _, span in placed_spans(text, now))


def placed_spans(text: str, now: dt.datetime) -> list[tuple[int, int, Span]]:
    """The same with the start and the end of their words."""
    found: list[tuple[int, int, Span]] = []
    if not _may_name_days(text):
        return found
    for pattern, read in _READERS:
        for match in islice(pattern.finditer(text), _MOST_SPANS):
            span = _span(read, match, now.date())
            if span and not any(a < match.end() and match.start() < b for a, b, _ in found):
                found.append((match.start(), match.end(), span))
    return sorted(found, key=lambda f: f[0])


def _may_name_days(text: str) -> bool:
    """A quick test that most questions fail: a date has a digit, a word for a time, or a script
    without spaces.
    """
    if _DIGIT.search(text) or max(text, default="") >= _WIDE:
        return True
    return not _TIME_WORDS.isdisjoint(_WORDS.findall(lower(text)))


# The first and the last day. A reader takes today and a match with the groups y, m, d (year, month,
# day), n, u (number, unit) or w (word), and raises ValueError or OverflowError where the calendar
# has no such day.
_Days = tuple[dt.date, dt.date]
_Reader = Callable[[re.Match[str], dt.date], _Days]


def _span(read: _Reader, match: re.Match[str], today: dt.date) -> Span | None:
    try:
        return Span(*read(match, today), match.group())
    except (ValueError, OverflowError):
        return None


def _month(year: int, month: int) -> _Days:
    return dt.date(year, month, 1), dt.date(year, month, calendar.monthrange(year, month)[1])


def _year(year: int) -> _Days:
    if not 1900 <= year <= 2200:
        raise ValueError
    return dt.date(year, 1, 1), dt.date(year, 12, 31)


def _days(first: dt.date, count: int = 1) -> _Days:
    return first, first + dt.timedelta(days=count - 1)


def _ago(count: int, unit: str, today: dt.date) -> _Days:
    if unit == "day":
        return _days(today - dt.timedelta(days=count))
    if unit == "week":
        return _days(today - dt.timedelta(weeks=count, days=today.weekday()), 7)
    if unit == "month":
        years, month = divmod(today.year * 12 + today.month - 1 - count, 12)
        return _month(years, month + 1)
    return _year(today.year - count)


def _number(text: str) -> int:
    if text in _VAGUE:
        return _VAGUE[text]
    text = lower(text)
    if text.isdigit():
        return int(text)
    if text in _NUMBERS or text in _OTHER_NUMBERS:
        return _NUMBERS.get(text) or _OTHER_NUMBERS[text]
    if "十" in text:
        tens, _, ones = text.partition("十")
        return _CJK_NUMBERS.get(tens, 1) * 10 + _CJK_NUMBERS.get(ones, 0)
    return _CJK_NUMBERS.get(text, 1)


def _month_in(match: re.Match[str]) -> int:
    name = lower(match["m"])
    return _MONTHS.get(name) or _OTHER_MONTHS.get(name) or _number(name)


def _unit_in(match: re.Match[str]) -> str:
    unit = lower(match["u"])
    return _UNITS.get(unit) or _OTHER_UNITS.get(unit, unit)


def _full_date(match: re.Match[str], _: dt.date) -> _Days:
    return _days(dt.date(int(match["y"]), _month_in(match), int(match["d"])))


def _month_of_year(match: re.Match[str], _: dt.date) -> _Days:
    return _month(int(match["y"]), _month_in(match))


def _full_year(match: re.Match[str], _: dt.date) -> _Days:
    return _year(int(match["y"]))


def _past_day(match: re.Match[str], today: dt.date) -> _Days:
    """The last time it was that day of that month."""
    found = dt.date(today.year, _month_in(match), int(match["d"]))
    return _days(found if found <= today else found.replace(year=today.year - 1))


def _past_month(match: re.Match[str], today: dt.date) -> _Days:
    """That month of this year, or of the last one if it is still to come."""
    month = _month_in(match)
    latest = today.month - 1 if _LAST.search(match.group()) else today.month
    return _month(today.year if month <= latest else today.year - 1, month)


def _weekday(match: re.Match[str], today: dt.date) -> _Days:
    back = today.weekday() - _DAYS[lower(match["w"])]
    if not lower(match.group()).startswith("this"):
        back = back % 7 or 7
    return _days(today - dt.timedelta(days=back))


def _counted(match: re.Match[str], today: dt.date) -> _Days:
    """`3 weeks ago`: the calendar week that was."""
    return _ago(_number(match["n"]), _unit_in(match), today)


def _last(match: re.Match[str], today: dt.date) -> _Days:
    return _ago(1, _unit_in(match), today)


def _this(match: re.Match[str], today: dt.date) -> _Days:
    return _ago(0, _unit_in(match), today)


def _up_to_today(match: re.Match[str], today: dt.date) -> _Days:
    """`past 3 weeks`: as many days, up to today."""
    days = _number(match["n"]) * {"day": 1, "week": 7, "month": 30, "year": 365}[_unit_in(match)]
    return today - dt.timedelta(days=min(days, 36500)), today


def _season(match: re.Match[str], today: dt.date) -> _Days:
    """The named season: of a year, or the latest that has begun, or ended for `last summer`."""
    groups = match.groupdict()
    month = _SEASONS[lower(match["s"])]
    if word := groups.get("w"):
        year = _ago(_CJK_YEARS[word], "year", today)[0].year
    elif named := groups.get("y"):
        year = int(named)
    else:
        year = today.year
        while (_months(year, month, 3)[1 if _LAST.search(match.group()) else 0]) > today:
            year -= 1
    return _months(year, month, 3)


def _months(year: int, month: int, count: int) -> _Days:
    years, last = divmod(month + count - 2, 12)
    return _month(year, month)[0], _month(year + years, last + 1)[1]


def _relative(unit: str, words: dict[str, int]) -> _Reader:
    """Reads a word that counts back units from today, such as `yesterday` or `去年`."""
    return lambda match, today: _ago(words[lower(match["w"])], unit, today)


_LAST = lazy_compile(
    r"(?i)\b(?:last|previous|past|letzte\w*|vergangene\w*|vorige\w*|derni[eè]re?|passée?|pasad[ao])\b|上"
)
_MONTH, _DAY, _CJK_UNIT = (
    _any_of(_MONTHS),
    _any_of(_DAYS),
    _any_of(unit for unit in _UNITS if not unit.isascii()),
)
_OTHER_MONTH, _OTHER_UNIT = _any_of(_OTHER_MONTHS), _any_of(_OTHER_UNITS)
_SEASON, _CJK_SEASON = (
    _any_of(s for s in _SEASONS if len(s) > 1),
    _any_of(s for s in _SEASONS if len(s) == 1),
)
_COUNT = r"\d{1,3}|" + "|".join(_NUMBERS)
_OTHER_COUNT = r"\d{1,3}|" + "|".join(_OTHER_NUMBERS)
_CJK_COUNT = r"\d{1,3}|[一二三四五六七八九十两兩]{1,3}"
_DAY_OF_MONTH = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
# "may 5 people", "march 12 miles" and "step 5 may fail" are not dates, unless a preposition says
# so.
_AMOUNT = r"(?<!on )(?<!from )(?-i:may|march)\s+\d{1,2}\s+(?:\w{3,}s|people)\b"
_IN_MONTH = "in|during|since|last|this|of|early|late|mid|before|after"
_MAY_VERB = r"this (?-i:may) \w|(?:before|after) (?-i:may|march)\b"
_VERB = r"(?<!on )(?<!from )\d{1,2}\s+(?-i:may|march)\s+\w"


def _compiled(*readers: tuple[str, _Reader]) -> list[tuple[re.Pattern[str], _Reader]]:
    return [(lazy_compile(f"(?i){pattern}"), read) for pattern, read in readers]


# The same in German, French and Spanish, and the seasons.
_LAST_ONE, _THIS_ONE = (
    "letzte[nrsm]?|vergangene[nrsm]?|vorige[nrsm]?",
    "diese[nrsm]?|cette|cet|ce|esta|este",
)
_LAST_AFTER = r"derni[eè]re?|passée?|pasad[ao]"
_IN = (
    rf"in|im|seit|vor|nach|anfang|mitte|ende|{_LAST_ONE}|diese[nrsm]?|en|depuis|début|mi|fin|avant|après|desde"
    r"|antes\s+de|después\s+de"
)
_ON_DAY = (
    r"\b(?:am|vom|zum|le|du|el|del|al)\s+(?P<d>\d{1,2})(?:er|\.)?\s+"
    rf"(?:de\s+)?(?P<m>{_OTHER_MONTH})"
)
_IN_SEASON = rf"last|this|previous|{_LAST_ONE}|{_THIS_ONE}|{_IN}|during|since|before|after|pendant"
_NO_SEASON = r"(?-i:Spring|Fall)\b|spring\s+(?:boot|framework)\b"  # a program, and a verb
_OTHER_READERS: tuple[tuple[str, _Reader], ...] = (
    (rf"{_ON_DAY}\s+(?:del?\s+)?(?P<y>\d{{4}})\b", _full_date),
    (rf"{_ON_DAY}\b", _past_day),
    (rf"\b(?P<m>{_OTHER_MONTH})\s+(?:del?\s+)?(?P<y>\d{{4}})\b", _month_of_year),
    (rf"\b(?:{_IN})[\s-]+(?P<m>{_OTHER_MONTH})(?:\s+(?:{_LAST_AFTER}))?\b", _past_month),
    (rf"\b(?:im\s+jahre?|{_IN}|durante|pendant)\s+(?P<y>(?:19|20|21)\d{{2}})\b", _full_year),
    (rf"\b(?:vor|il\s+y\s+a|hace)\s+(?P<n>{_OTHER_COUNT})\s+(?P<u>{_OTHER_UNIT})\b", _counted),
    (rf"\b(?:{_LAST_ONE})\s+(?P<u>{_OTHER_UNIT})\b", _last),
    (rf"\b(?P<u>{_OTHER_UNIT})\s+(?:{_LAST_AFTER})\b", _last),
    (rf"\b(?:{_THIS_ONE})\s+(?P<u>{_OTHER_UNIT})\b", _this),
    (rf"\b(?P<s>{_SEASON})\s+(?:of\s+|de\s+)?(?P<y>\d{{4}})\b", _season),
    (rf"\b(?P<s>{_SEASON})\s+(?:{_LAST_AFTER})\b", _season),
    (
        rf"\b(?:{_IN_SEASON})\s+(?:the\s+(?:last\s+)?|l['’])?(?!{_NO_SEASON})(?P<s>{_SEASON})\b",
        _season,
    ),
    (
        rf"(?:(?P<w>{_any_of(_CJK_YEARS)})|(?P<y>\d{{4}})\s*年|上个|上個|这个|這個)的?(?P<s>{_CJK_SEASON})[天季]?",
        _season,
    ),
    (rf"(?:\A|(?<=[\s在于於，。,]))(?P<s>{_CJK_SEASON})天", _season),
)
# Earlier rows win where two matches overlap.
_READERS = _compiled(
    (r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)", _full_date),
    (r"(?P<y>\d{4})\s*[年년]\s*(?P<m>\d{1,2})\s*[月월]\s*(?P<d>\d{1,2})\s*[日号號일]", _full_date),
    (r"(?P<y>\d{4})\s*[年년]\s*(?P<m>\d{1,2})\s*[月월]", _month_of_year),
    (r"(?<!\d)(?P<m>\d{1,2})\s*[月월]\s*(?P<d>\d{1,2})\s*[日号號일]", _past_day),
    (rf"\b(?P<m>{_MONTH})\.?\s+{_DAY_OF_MONTH}\b,?\s+(?P<y>\d{{4}})\b", _full_date),
    (rf"\b{_DAY_OF_MONTH}(?:\s+of)?\s+(?P<m>{_MONTH})\.?,?\s+(?P<y>\d{{4}})\b", _full_date),
    (rf"\b(?P<m>{_MONTH})\.?,?\s+(?:of\s+)?(?P<y>\d{{4}})\b", _month_of_year),
    (rf"\b(?!{_AMOUNT})(?P<m>{_MONTH})\.?\s+{_DAY_OF_MONTH}\b", _past_day),
    (rf"\b(?!{_VERB}){_DAY_OF_MONTH}(?:\s+of)?\s+(?P<m>{_MONTH})\b", _past_day),
    (r"\b(?P<y>\d{4})-(?P<m>\d{2})\b(?!-\d)", _month_of_year),
    (rf"\b(?!{_MAY_VERB})(?:{_IN_MONTH})[\s-]+(?P<m>{_MONTH})\b", _past_month),
    *_OTHER_READERS,
    (r"\b(?:in|during|since|of|before|after)\s+(?P<y>(?:19|20|21)\d{2})\b", _full_year),
    (r"(?<!\d)(?P<y>(?:19|20|21)\d{2})\s*[年년](?!\s*\d)", _full_year),
    (rf"\b(?:last|on|past|this|previous)\s+(?!(?-i:sun)\s+\w)(?P<w>{_DAY})\b", _weekday),
    (rf"\b(?P<w>{'|'.join(_DAYS_AGO)})\b", _relative("day", _DAYS_AGO)),
    (
        rf"\b(?P<n>{_COUNT}|couple of|few)\s+(?P<u>day|week|month|year)s?\s+(?:ago|back|earlier)\b",
        _counted,
    ),
    (
        rf"\b(?:last|past|previous)\s+(?P<n>{_COUNT}|few)\s+(?P<u>day|week|month|year)s?\b",
        _up_to_today,
    ),
    (r"\b(?:last|previous)\s+(?P<u>week|month|year)\b", _last),
    (r"\bthis\s+(?P<u>week|month|year)\b", _this),
    (rf"(?P<n>{_CJK_COUNT})\s*(?:个|個)?(?P<u>{_CJK_UNIT})(?:之?前|以前|\s*전)", _counted),
    # 目前天气: weather now
    (rf"(?!(?<=[目当當之以提])前天)(?P<w>{_any_of(_CJK_DAYS)})", _relative("day", _CJK_DAYS)),
    # 日本周辺: around Japan
    (rf"(?<!日)(?P<w>{_any_of(_CJK_WEEKS)})", _relative("week", _CJK_WEEKS)),
    (rf"(?<!日)(?P<w>{_any_of(_CJK_MONTHS)})", _relative("month", _CJK_MONTHS)),
    (rf"(?P<w>{_any_of(_CJK_YEARS)})", _relative("year", _CJK_YEARS)),
    (r"(?<![\d年])(?P<m>\d{1,2})\s*月(?:份|に|の|中)", _past_month),
)

_FILLER = lazy_compile(
    r"(?i)\b(?:in|on|since|from|until|till|by|the|of|a|early|mid|late)\b|[以之]?[来來前后後]|から|まで|부터|까지"
)


def _iso_week(match: re.Match[str], _: dt.date) -> _Days:
    return _days(dt.date.fromisocalendar(int(match["y"]), int(match["w"]), 1), 7)


def _quarter(match: re.Match[str], _: dt.date) -> _Days:
    year, last_month = int(match["y"]), 3 * int(match["q"])
    return _month(year, last_month - 2)[0], _month(year, last_month)[1]


_ISO_DATE = r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
# Short forms that would not be dates in a question. "30d" and "2 weeks" end today, as in the flags
# of other tools.
_FLAG_READERS = _compiled(
    (r"(?P<y>\d{4})", _full_year),
    (r"(?P<y>\d{4})-(?P<m>\d{1,2})", _month_of_year),
    (
        rf"{_ISO_DATE}[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?\s?(?:Z|[+-]\d{{2}}:?\d{{2}})?",
        _full_date,
    ),
    (r"(?P<y>(?:19|2[01])\d{2}|2200)(?P<m>\d{2})(?P<d>\d{2})", _full_date),
    (r"(?P<y>\d{4})-?W(?P<w>\d{1,2})", _iso_week),
    (r"(?P<y>\d{4})[- ]?Q(?P<q>[1-4])", _quarter),
    (r"Q(?P<q>[1-4])[- ]?(?P<y>\d{4})", _quarter),
    (r"now", lambda _, today: _days(today)),
    (r"tomorrow|明天|明日|내일", lambda _, today: _ago(-1, "day", today)),
    (r"(?P<n>\d{1,3}) ?(?P<u>[dwmy])", _up_to_today),
    (rf"(?:the )?(?P<n>{_COUNT}) (?P<u>day|week|month|year)s?", _up_to_today),
    (
        (
            rf"(?:过去|過去|最近|近|지난|최근) ?(?P<n>{_CJK_COUNT}) ?"
            rf"(?:个|個)?(?P<u>{_CJK_UNIT})(?:间|間)?"
        ),
        _up_to_today,
    ),
    (r"(?P<m>\d{1,2}|[一二三四五六七八九十]{1,2}) ?[月월]", _past_month),
)
