"""A text as comparable tokens: figures, dates, times, measures and negations read alike however they are written.

`30 seconds`, `30s` and `thirty seconds` are one token here. Words are folded, runs of
unspaced scripts are single characters. Nothing that can change a meaning may get lost: tense, case of a password, the
sign of a number, the zero of `3.10`. What is lost is articles, markup and words such as `currently`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from recollect.text.lexicon import (
    FILLERS,
    MONTHS,
    NEGATIONS,
    NUMBER_WORDS,
    SCALES,
    SHORT_SCALES,
    SMALL_WORDS,
    UNITS,
    VERBS,
    WEEKDAYS,
    WIDE_FILLERS,
    WIDE_NEGATIONS,
    WIDE_PLAIN,
    WIDE_VERBS,
)
from recollect.text.words import fold

WORD, NAME, FIGURE, DATE, MARK, NOT, SMALL, VERB = "word", "name", "figure", "date", "mark", "not", "small", "verb"
_FILLER = "filler"


@dataclass(frozen=True, slots=True)
class Token:
    """What a piece of text means for a comparison, and of which kind it is."""

    key: str
    kind: str
    wide: bool = False


_MAX_DIGITS = 40
_MONTH = "|".join(sorted((m for m in MONTHS if m not in ("may", "march", "mar", "sep", "mai")), key=len, reverse=True))
# May and March are also verbs: only with a day beside them are they months.
_ANY_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_CJK_WEEKDAYS = {c: n for n, cs in enumerate(("一月", "二火", "三水", "四木", "五金", "六土", "日天")) for c in cs}

_WIDE = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
_WIDE_CHAR = re.compile(f"[{_WIDE}]")
# Most of a text is plain words; the long pattern below is for the rest.
_PLAIN_WORD = re.compile(r"[A-Za-z]+(?=[\s,;)\"]|[.!?:]*(?:\s|\Z))")
_TOKEN = re.compile(
    r"(?P<box>\[[ xX]\])"
    r"|(?P<url>[a-z][a-z0-9+.-]*://[^\s<>\"'）)\]]*[^\s<>\"'）)\].,;:!?。，])"
    r"|(?P<iso>(?<![\d.])\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?![\d.]*\d))"
    r"|(?P<cjkdate>(?:\d{4}\s*[年년]\s*)?\d{1,2}\s*[月월]\s*\d{1,2}\s*[日号號일])"
    r"|(?P<cjkday>(?:星期|周|週|礼拜)[一二三四五六日天]|[月火水木金土日]曜日?)"
    rf"|(?P<dmy>(?<![\w.])\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?:{_ANY_MONTH})\b\.?(?:,?\s+\d{{4}}\b)?)"
    rf"|(?P<mdy>\b(?:{_ANY_MONTH})\b\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?!\s*[:%]|[.,]\d)(?:,?\s+\d{{4}}\b)?)"
    rf"|(?P<my>\b(?:{_ANY_MONTH})\s+\d{{4}}\b|\b(?:{_MONTH})\b)"
    r"|(?P<clock>(?<![\w:.])\d{1,2}:\d{2}(?::\d{2})?(?![\d:])(?:\s*[ap]\.?m\b\.?)?|(?<![\w:.])\d{1,2}\s*[ap]\.?m\b\.?"
    r"|(?<![\w:.])\d{1,2}(?=\s*uhr\b)|\d{1,2}\s*[时点時](?!间|間))"
    r"|(?P<path>~?(?:/[A-Za-z0-9_.@+-]+)+/?|(?:[A-Za-z0-9_.@+-]+/)+[A-Za-z0-9_.@+-]*[A-Za-z0-9_@+-])"
    r"|(?P<version>\bv?\d+(?:\.\d+){2,}(?:[\w-]|\.(?=\w))*|\bv\d+(?:\.\d+)*\b)"
    r"|(?P<number>[€$£]?(?:(?<![\w.])[-+−])?(?:\d{1,3}(?:[,'\u202f\u00a0]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)?))"
    r"|(?P<arrow>->|=>|→|=|(?<!\w)[–—](?!\w)|[:：])"
    rf"|(?P<word>(?![{_WIDE}])[^\W\d_](?:(?![{_WIDE}])(?:[\w'’]|[.@+-](?=\w)))*(?:\+\+|#(?!\w))?|_+\w+)",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[([^\]\n]{2,})\]\([^)\s]*\)")
_MARKED = re.compile(r"[`*_]")
_MARKUP = re.compile(r"[`*]+")
_UNDERLINE = re.compile(r"(?<!\w)_+|_+(?!\w)")
_CONTRACTIONS = [
    (re.compile(pattern, re.IGNORECASE), plain)
    for pattern, plain in (
        (r"\bcan't\b|\bcannot\b", "can not"), (r"\bwon't\b", "will not"), (r"\bshan't\b", "shall not"),
        (r"n't\b", " not"), (r"\b(it|that|there|he|she|what|who)'s\b", r"\1 is"), (r"'re\b", " are"), (r"'m\b", " am"),
        (r"'ll\b", " will"),
    )
]  # fmt: skip
_SPACE = re.compile(r"\s+")
_CAMEL = re.compile(r"[a-z][A-Z]")
_UNIT_AFTER = re.compile(r"\s?([^\W\d_]+|%|€|\$|£)")
_SCALE_AFTER = re.compile(r"\s(hundred|thousand|million|billion|dozen)\b", re.IGNORECASE)
_SHORT_AFTER = re.compile(r"(k|bn)\b", re.IGNORECASE)
_WIDE_UNITS = ("分钟", "小时", "時間", "秒", "天")


def _plain(text: str) -> str:
    """One spelling for what many keyboards write: width, quotes, contractions, links."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'")
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "'" in text or "annot" in text:
        for pattern, plain in _CONTRACTIONS:
            text = pattern.sub(plain, text)
    return _MARKUP.sub(" ", _UNDERLINE.sub("", text)) if _MARKED.search(text) else text


def _figure(digits: str, unit: str = "", scale: int = 1) -> Token:
    """A figure by its exact value where a unit says that it is an amount, else as it is written."""
    plain = re.sub(r"(?<=\d)[,'\u202f\u00a0](?=\d{3}(?:\D|\Z))", "", digits).replace("−", "-").lstrip("+")
    kind, factor = UNITS.get(unit, ("", "1"))
    if len(plain) > _MAX_DIGITS or not (unit or scale > 1):
        return Token(plain.replace(",", "."), FIGURE)
    value = Fraction(plain.replace(",", ".")) * Fraction(factor) * scale
    return Token(f"{kind}{value}", FIGURE)


def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a sentence, in order."""
    return tuple(_merged(list(_read(_plain(text)))))


def _read(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        if space := _SPACE.match(text, at):
            at = space.end()
            continue
        word = _PLAIN_WORD.match(text, at)
        if word and (low := word[0].lower()) not in MONTHS and low not in NUMBER_WORDS:
            label = at > 0 and word[0] == "A"  # the article of a sentence is small inside it; `room A` is a name
            yield Token("a", NAME) if label else _word(word[0])
            at = word.end()
            continue
        match = _TOKEN.match(text, at)
        kind = match.lastgroup if match else None
        if kind != "cjkday" and _WIDE_CHAR.match(text, at):
            token, at = _wide(text, at)
            yield token
        elif match is None:
            yield from _symbol(text[at], text[at + 1 : at + 2])
            at += 1
        else:
            at = match.end()
            found = match.group()
            number = found if kind == "number" else NUMBER_WORDS.get(found.lower(), "") if kind == "word" else ""
            if number:
                token, at = _amount(number, text, at)
                yield token
            else:
                yield from _one(kind or "", found)


def _wide(text: str, at: int) -> tuple[Token, int]:
    """One character of a script without spaces, or a negation of several."""
    for negation in WIDE_NEGATIONS:
        if text.startswith(negation, at):
            if text.startswith(WIDE_PLAIN, at) or (at and text.startswith(WIDE_PLAIN, at - 1)):
                break
            return Token("not", NOT), at + len(negation)
    char = fold(text[at])
    kind = _FILLER if char in WIDE_FILLERS else VERB if char in WIDE_VERBS else WORD
    return Token(char, kind, wide=True), at + 1


def _symbol(char: str, after: str) -> Iterator[Token]:
    """A question is no statement, ✅ is not ❌, and operators count; other marks between words say nothing."""
    if char in "?？":
        yield Token("?", WORD)
    elif char == "!" and (after == "=" or after.isalpha()):
        yield Token("not", NOT)
    elif char in "&|":
        yield Token("and" if char == "&" else "or", SMALL)
    elif unicodedata.category(char) in ("So", "Sm", "Sc"):
        yield Token(char, MARK)


def _amount(number: str, text: str, at: int) -> tuple[Token, int]:
    """A figure with its unit, before or after it: `€5`, `12k`, `30 s`, `two hundred weeks`."""
    if number[0] in "€$£":
        return _figure(number[1:], number[0]), at
    scale = 1
    if more := _SCALE_AFTER.match(text, at):
        scale, at = SCALES[more[1].lower()], more.end()
    elif (more := _SHORT_AFTER.match(text, at)) is not None:
        scale, at = SHORT_SCALES[more[1].lower()], more.end()
    after = _UNIT_AFTER.match(text, at)
    unit = after[1].lower() if after else ""
    if after and unit in UNITS:
        return _figure(number, unit, scale), after.end()
    wide = next((u for u in _WIDE_UNITS if text.startswith(u, at)), "")
    return _figure(number, wide, scale), at + len(wide)


def _one(kind: str, found: str) -> Iterator[Token]:
    low = found.lower()
    if kind == "box":
        yield Token("done" if "x" in low else "open", MARK)
    elif kind == "url":
        yield Token(found.rstrip("/"), FIGURE)
    elif kind == "path":
        yield Token(found.rstrip("/") or found, FIGURE)
    elif kind == "version":
        yield Token(low.removeprefix("v"), FIGURE)
    elif kind in ("iso", "cjkdate"):
        parts = [int(n) for n in re.findall(r"\d+", found)]
        yield _date(*(parts if len(parts) == 3 else (0, *parts)))
    elif kind == "cjkday":
        yield Token(f"day{_CJK_WEEKDAYS[found[0] if '曜' in found else found[-1]]}", DATE)
    elif kind in ("dmy", "mdy", "my"):
        yield _named_date(low, kind)
    elif kind == "clock":
        yield _clock(low)
    elif kind == "arrow":
        yield Token(":", VERB)
    else:
        yield _word(found)


def _date(year: int, month: int, day: int) -> Token:
    return Token(f"{year or '':0>4}-{month:02}-{day:02}", DATE)


def _named_date(low: str, kind: str) -> Token:
    month = next(MONTHS[w] for w in re.findall(r"[^\W\d_]+", low) if w in MONTHS)
    numbers = [int(n) for n in re.findall(r"\d+", low)]
    year = next((n for n in numbers if n > 31), 0)
    day = 0 if kind == "my" else next((n for n in numbers if n <= 31), 0)
    return _date(year, month, day)


def _clock(low: str) -> Token:
    numbers = [int(n) for n in re.findall(r"\d+", low)]
    hour, minute = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if "p" in low and hour < 12:
        hour += 12
    elif "a" in low and hour == 12:
        hour = 0
    return Token(f"{hour:02}:{minute:02}" + (f":{numbers[2]:02}" if len(numbers) > 2 else ""), DATE)


@lru_cache(maxsize=50_000)
def _word(word: str) -> Token:
    low = word.lower()
    if low in NEGATIONS:
        return Token("not", NOT)
    if low in WEEKDAYS:
        return Token(f"day{WEEKDAYS[low]}", DATE)
    if low in FILLERS:
        return Token(low, _FILLER)
    bare = word.removesuffix("'s").removesuffix("'")
    if any(c.isdigit() for c in bare) or "_" in bare or _CAMEL.search(bare):
        return Token(bare, FIGURE)  # a password, a name in code: as it is written
    key = fold(bare)
    if low in SMALL_WORDS:
        return Token(key, SMALL)
    # Tense matters and is kept; `eats` in one note is `does not eat` in another.
    key = {"are": "is", "were": "was", "have": "has"}.get(key, key)
    if len(key) > 3 and key.isascii() and key.endswith("s") and not key.endswith("ss"):
        key = key[:-1]
    return Token(key, VERB if low in VERBS else NAME if word[:1].isupper() else WORD)


def _merged(found: list[Token]) -> Iterator[Token]:
    """Without fillers; `no longer` and `not … any more` are plain negations."""
    denied = False
    before = ""
    for token in found:
        if token.kind == _FILLER:
            continue
        again = denied and (token.key in ("anymore", "mehr", "больше", "plu") or (token.key, before) == ("more", "any"))
        if not again and not (token.key == "longer" and before == "not"):
            yield token
        before = token.key
        denied = denied or token.kind == NOT
