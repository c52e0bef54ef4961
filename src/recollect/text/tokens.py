"""A text as comparable tokens: figures, dates, times, measures and negations read alike however they are written.

`30 seconds`, `30s` and `thirty seconds` are one token here. Words are folded, runs of
unspaced scripts are single characters. Nothing that can change a meaning may get lost: tense, case of a password, the
sign of a number, the zero of `3.10`. What is lost is articles, markup and words such as `currently`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    weight: float = field(init=False, compare=False, repr=False)
    plain: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """What it weighs, and whether it is a word of the sentence proper: asked of every token again and again."""
        weight = 0.5 if self.wide else 0.0 if self.kind == SMALL or self.key == ":" else 1.0
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "plain", self.kind in (WORD, NAME, VERB) and self.key != ":")


_MAX_DIGITS = 40
_MOST_PLAIN = 100_000
_MONTH = "|".join(sorted((m for m in MONTHS if m not in ("may", "march", "mar", "sep", "mai")), key=len, reverse=True))
# May and March are also verbs: only with a day beside them are they months.
_ANY_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_CJK_WEEKDAYS = {c: n for n, cs in enumerate(("一月", "二火", "三水", "四木", "五金", "六土", "日天")) for c in cs}

_WIDE = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
# Most of a text is plain words; the long pattern below is for the rest.
_PLAIN_WORD = re.compile(r"[A-Za-z]+(?=[\s,;)\"]|[.!?:]*(?:\s|\Z))")
# Whole sentences of words that mean the same wherever they stand, with the marks around them that say nothing.
_LETTER = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u012f\u0132-\u024f\u0400-\u0481\u048a-\u052f"
_PLAIN_RUN = re.compile(rf"(?:\s*+[(\"]*+[{_LETTER}]++(?:[-'][{_LETTER}]++)*+(?:[,;)\"]|[.!]*+)(?=\s|\Z))+")
_SILENT = '(",;).!'
_WIDE_RUN = re.compile(f"[{_WIDE}]+")
_CJK_DAY = re.compile("(?:星期|周|週|礼拜)[一二三四五六日天]|[月火水木金土日]曜日?")
_DAY_STARTS = frozenset("星周週礼月火水木金土日")
_NEGATION_STARTS = frozenset(negation[0] for negation in WIDE_NEGATIONS)
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


class _Plain(dict[str, Token | None]):
    """What a word with the marks after it that say nothing means by itself; None for what the next word may change."""

    def __missing__(self, piece: str) -> Token | None:
        word = piece.strip(_SILENT)
        low = word.lower()
        # A month or a number is read together with what follows it. The article of a sentence is small inside it;
        # `room A` is a name.
        open_ended = low in NUMBER_WORDS or low.replace("'", "-").partition("-")[0] in MONTHS
        token = None if open_ended else Token("a", NAME) if word == "A" else _word(word)
        if len(self) >= _MOST_PLAIN:
            self.clear()
        self[piece] = token
        return token


_plain_words = _Plain()


def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a sentence, in order."""
    found = [token for token in _read(_plain(text)) if token.kind != _FILLER]
    return tuple(_merged(found) if "not" in [token.key for token in found] else found)


def _read(text: str) -> list[Token]:
    """Every token, fillers too: plain words by the sentence, the rest one by one."""
    out: list[Token] = []
    at = 0
    while at < len(text):
        if run := _PLAIN_RUN.match(text, at):
            words = run[0].split()
            found = list(map(_plain_words.__getitem__, words))
            if not at and text[0] == "A" and words[0].strip(_SILENT) == "A" and found[0]:
                found[0] = _word("A")
            if all(found):
                out += found  # type: ignore[arg-type]
                at = run.end()
                continue
            first = next(i for i, token in enumerate(found) if token is None)
            out += found[:first]  # type: ignore[arg-type]
            at = run.end() - len(run[0].split(None, first)[-1])
        elif space := _SPACE.match(text, at):
            at = space.end()
            continue
        elif wide := _WIDE_RUN.match(text, at):
            at = _wide_run(text, at, wide.end(), out)
            continue
        at = _step(text, at, out)
    return out


def _step(text: str, at: int, out: list[Token]) -> int:
    """Adds the token at a place, if it is one, and says where it ends."""
    word = _PLAIN_WORD.match(text, at)
    if word and (low := word[0].lower()) not in MONTHS and low not in NUMBER_WORDS:
        label = at > 0 and word[0] == "A"
        out.append(Token("a", NAME) if label else _word(word[0]))
        return word.end()
    match = _TOKEN.match(text, at)
    kind = match.lastgroup if match else None
    if match is None:
        out += _symbol(text[at], text[at + 1 : at + 2])
        return at + 1
    at = match.end()
    found = match.group()
    number = found if kind == "number" else NUMBER_WORDS.get(found.lower(), "") if kind == "word" else ""
    if number:
        token, at = _amount(number, text, at)
        out.append(token)
    else:
        out += _one(kind or "", found)
    return at


def _wide_run(text: str, at: int, end: int, out: list[Token]) -> int:
    """Adds what characters of scripts without spaces mean: days, negations, and each other one by itself."""
    while at < end:
        char = text[at]
        if char in _DAY_STARTS and (day := _CJK_DAY.match(text, at)):
            out += _one("cjkday", day[0])
            at = day.end()
        elif char in _NEGATION_STARTS and (negation := _negation(text, at)):
            out.append(Token("not", NOT))
            at += len(negation)
        else:
            out.append(_wide(char))
            at += 1
    return at


def _negation(text: str, at: int) -> str:
    """The negation that stands at a place, unless it is part of a plain word."""
    found = next((negation for negation in WIDE_NEGATIONS if text.startswith(negation, at)), "")
    plain = found and (text.startswith(WIDE_PLAIN, at) or (at and text.startswith(WIDE_PLAIN, at - 1)))
    return "" if plain else found


@lru_cache(maxsize=50_000)
def _wide(char: str) -> Token:
    """One character of a script without spaces."""
    char = fold(char)
    kind = _FILLER if char in WIDE_FILLERS else VERB if char in WIDE_VERBS else WORD
    return Token(char, kind, wide=True)


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
    """`no longer` and `not … any more` are plain negations."""
    denied = False
    before = ""
    for token in found:
        again = denied and (token.key in ("anymore", "mehr", "больше", "plu") or (token.key, before) == ("more", "any"))
        if not again and not (token.key == "longer" and before == "not"):
            yield token
        before = token.key
        denied = denied or token.kind == NOT
