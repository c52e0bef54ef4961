"""Text to comparable tokens: figures, dates, times, measures and negations are the same token
however they are written.

`30 seconds`, `30s` and `thirty seconds` are one token. Words are folded; each character of an
unspaced script is a token. Everything that can change a meaning is kept: tense, the case of a
password, the sign of a number, the zero of `3.10`. Articles, markup and words such as `currently`
are dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial

from notewell.compare import vocabulary
from notewell.compare.vocabulary import MONTHS, NUMBER_WORDS, WIDE_NEGATIONS, WIDE_PLAIN
from notewell.text.words import fold, lazy_compile, lower

WORD, NAME, FIGURE, DATE, MARK, NOT, SMALL, VERB = (
    "word",
    "name",
    "figure",
    "date",
    "mark",
    "not",
    "small",
    "verb",
)
_FILLER = "filler"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text as it is compared, and its kind."""

    key: str
    kind: str
    wide: bool = False
    weight: float = field(init=False, compare=False, repr=False)
    plain: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Computes the weight, and whether this is a plain word, once: both are read very often."""
        weight = 0.5 if self.wide else 0.0 if self.kind == SMALL or self.key == ":" else 1.0
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "plain", self.kind in (WORD, NAME, VERB) and self.key != ":")


_MAX_DIGITS = 40
_MOST_PLAIN = 100_000
_MONTH = "|".join(
    sorted(
        (m for m in MONTHS if m not in ("may", "march", "mar", "sep", "mai")), key=len, reverse=True
    )
)
# May and March are also verbs: they are months only next to a day.
_ANY_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_CJK_WEEKDAYS = {
    c: n
    for n, cs in enumerate(("一月", "二火", "三水", "四木", "五金", "六土", "日天"))
    for c in cs
}

_WIDE = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
# Most of a text is plain words; the long pattern below reads the rest.
_PLAIN_WORD = lazy_compile(r"[A-Za-z]+(?=[\s,;)\"]|[.!?:]*(?:\s|\Z))")
# Whole sentences of words that mean the same anywhere, with punctuation around them that means
# nothing.
_LETTER = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u012f\u0132-\u024f\u0400-\u0481\u048a-\u052f"
_PLAIN_RUN = lazy_compile(
    rf"(?:\s*+[(\"]*+[{_LETTER}]++(?:[-'][{_LETTER}]++)*+(?:[,;)\"]|[.!]*+)(?=\s|\Z))+"
)
_SILENT = '(",;).!'
_WIDE_RUN = lazy_compile(f"[{_WIDE}]+")
_CJK_DAY = lazy_compile("(?:星期|周|週|礼拜)[一二三四五六日天]|[月火水木金土日]曜日?")
_DAY_STARTS = frozenset("星周週礼月火水木金土日")
_NEGATION_STARTS = frozenset(negation[0] for negation in WIDE_NEGATIONS)
_TOKEN = lazy_compile(
    r"(?i)(?P<box>\[[ xX]\])"
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
    rf"|(?P<word>(?![{_WIDE}])[^\W\d_](?:(?![{_WIDE}])(?:[\w'’]|[.@+-](?=\w)))*(?:\+\+|#(?!\w))?|_+\w+)"
)
_LINK = lazy_compile(r"\[([^\]\n]{2,})\]\([^)\s]*\)")
_MARKED = lazy_compile(r"[`*_]")
_MARKUP = lazy_compile(r"[`*]+")
_UNDERLINE = lazy_compile(r"(?<!\w)_+|_+(?!\w)")
_CONTRACTIONS = [
    (lazy_compile(f"(?i){pattern}"), plain)
    for pattern, plain in (
        (r"\bcan't\b|\bcannot\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"\bshan't\b", "shall not"),
        (r"n't\b", " not"),
        (r"\b(it|that|there|he|she|what|who)'s\b", r"\1 is"),
        (r"'re\b", " are"),
        (r"'m\b", " am"),
        (r"'ll\b", " will"),
    )
]
_SPACE = lazy_compile(r"\s+")
_CAMEL = lazy_compile(r"[a-z][A-Z]")
_UNIT_AFTER = lazy_compile(r"\s?([^\W\d_]+|%|€|\$|£)")
_SCALE_AFTER = lazy_compile(r"(?i)(\s(?:hundred|thousand|million|billion|dozen)|k|bn)\b")
_WIDE_UNITS = ("分钟", "小时", "時間", "秒", "天")


def _plain(text: str) -> str:
    """The text with one spelling for widths, quotes and contractions, and without links and
    markup.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'")
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "'" in text or "annot" in text:
        for pattern, plain in _CONTRACTIONS:
            text = pattern.sub(plain, text)
    return _MARKUP.sub(" ", _UNDERLINE.sub("", text)) if _MARKED.search(text) else text


def _figure(digits: str, unit: str = "", scale: int = 1) -> Token:
    """A figure: its exact value if it has a unit, else as it is written."""
    plain = (
        re.sub(r"(?<=\d)[,'\u202f\u00a0](?=\d{3}(?:\D|\Z))", "", digits)
        .replace("−", "-")
        .lstrip("+")
    )
    kind, factor = vocabulary.UNITS.get(unit, ("", "1"))
    if len(plain) > _MAX_DIGITS or not (unit or scale > 1):
        return Token(plain.replace(",", "."), FIGURE)
    from fractions import Fraction  # noqa: PLC0415 - few figures have a unit

    value = Fraction(plain.replace(",", ".")) * Fraction(factor) * scale
    return Token(f"{kind}{value}", FIGURE)


class _Plain(dict[str, Token | None]):
    """Words with their punctuation to tokens; None for a word whose meaning depends on the next
    one.
    """

    def __missing__(self, piece: str) -> Token | None:
        word = piece.strip(_SILENT)
        low = word.lower()
        # A month or a number is read together with what follows it. An article inside a sentence is
        # lower case, so the `A` of `room A` is a name.
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
    """All tokens, with fillers: runs of plain words at once, everything else one by one."""
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
    """Adds the token at an offset, if there is one, and returns the offset after it."""
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
    number = (
        found if kind == "number" else NUMBER_WORDS.get(found.lower(), "") if kind == "word" else ""
    )
    if number:
        token, at = _amount(number, text, at)
        out.append(token)
    else:
        out.append(_READERS[kind or "word"](found))
    return at


def _wide_run(text: str, at: int, end: int, out: list[Token]) -> int:
    """Adds the tokens of a run in an unspaced script: days, negations, and every other character by
    itself.
    """
    while at < end:
        char = text[at]
        if char in _DAY_STARTS and (day := _CJK_DAY.match(text, at)):
            out.append(_cjk_day(day[0]))
            at = day.end()
        elif char in _NEGATION_STARTS and (negation := _negation(text, at)):
            out.append(Token("not", NOT))
            at += len(negation)
        else:
            out.append(_wide(char))
            at += 1
    return at


def _negation(text: str, at: int) -> str:
    """The negation at an offset, unless it is part of a plain word."""
    found = next((negation for negation in WIDE_NEGATIONS if text.startswith(negation, at)), "")
    plain = found and (
        text.startswith(WIDE_PLAIN, at) or (at and text.startswith(WIDE_PLAIN, at - 1))
    )
    return "" if plain else found


@lru_cache(maxsize=50_000)
def _wide(char: str) -> Token:
    """The token of one character of an unspaced script."""
    char = fold(char)
    kind = (
        _FILLER
        if char in vocabulary.WIDE_FILLERS
        else VERB
        if char in vocabulary.WIDE_VERBS
        else WORD
    )
    return Token(char, kind, wide=True)


def _symbol(char: str, after: str) -> Iterator[Token]:
    """The token of a question mark, an operator or a symbol such as ✅; other punctuation means
    nothing.
    """
    if char in "?？":
        yield Token("?", WORD)
    elif char == "!" and (after == "=" or after.isalpha()):
        yield Token("not", NOT)
    elif char in "&|":
        yield Token("and" if char == "&" else "or", SMALL)
    elif unicodedata.category(char) in ("So", "Sm", "Sc"):
        yield Token(char, MARK)


def _amount(number: str, text: str, at: int) -> tuple[Token, int]:
    """A figure with the unit before or after it, and the offset after both: `€5`, `12k`, `two
    hundred weeks`.
    """
    if number[0] in "€$£":
        return _figure(number[1:], number[0]), at
    scale = 1
    if more := _SCALE_AFTER.match(text, at):
        scale, at = vocabulary.SCALES[lower(more[1].strip())], more.end()
    after = _UNIT_AFTER.match(text, at)
    unit = after[1].lower() if after else ""
    if after and unit in vocabulary.UNITS:
        return _figure(number, unit, scale), after.end()
    wide = next((u for u in _WIDE_UNITS if text.startswith(u, at)), "")
    return _figure(number, wide, scale), at + len(wide)


def _date(year: int, month: int, day: int) -> Token:
    return Token(f"{year or '':0>4}-{month:02}-{day:02}", DATE)


def _numeric_date(text: str) -> Token:
    numbers = _numbers(text)
    return _date(*(numbers if len(numbers) == 3 else (0, *numbers)))


def _cjk_day(text: str) -> Token:
    return Token(f"day{_CJK_WEEKDAYS[text[0] if '曜' in text else text[-1]]}", DATE)


def _named_month(text: str, *, with_day: bool = False) -> Token:
    month = next(MONTHS[w] for w in re.findall(r"[^\W\d_]+", lower(text)) if w in MONTHS)
    year = next((n for n in _numbers(text) if n > 31), 0)
    return _date(year, month, next((n for n in _numbers(text) if n <= 31), 0) if with_day else 0)


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _clock(text: str) -> Token:
    low = text.lower()
    numbers = _numbers(text)
    hour, minute = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if "p" in low and hour < 12:
        hour += 12
    elif "a" in low and hour == 12:
        hour = 0
    return Token(f"{hour:02}:{minute:02}" + (f":{numbers[2]:02}" if len(numbers) > 2 else ""), DATE)


@lru_cache(maxsize=50_000)
def _word(word: str) -> Token:
    low = word.lower()
    if low in vocabulary.NEGATIONS:
        return Token("not", NOT)
    if low in vocabulary.WEEKDAYS:
        return Token(f"day{vocabulary.WEEKDAYS[low]}", DATE)
    if low in vocabulary.FILLERS:
        return Token(low, _FILLER)
    bare = word.removesuffix("'s").removesuffix("'")
    if any(c.isdigit() for c in bare) or "_" in bare or _CAMEL.search(bare):
        return Token(bare, FIGURE)  # a password or a name in code: as it is written
    key = fold(bare)
    if low in vocabulary.SMALL_WORDS:
        return Token(key, SMALL)
    # Tense is kept; the `s` is not, so that `eats` meets `does not eat`.
    key = {"are": "is", "were": "was", "have": "has"}.get(key, key)
    if len(key) > 3 and key.isascii() and key.endswith("s") and not key.endswith("ss"):
        key = key[:-1]
    return Token(key, VERB if low in vocabulary.VERBS else NAME if word[:1].isupper() else WORD)


_READERS: dict[str, Callable[[str], Token]] = {
    "box": lambda text: Token("done" if "x" in text.lower() else "open", MARK),
    "url": lambda text: Token(text.rstrip("/"), FIGURE),
    "path": lambda text: Token(text.rstrip("/") or text, FIGURE),
    "version": lambda text: Token(text.lower().removeprefix("v"), FIGURE),
    "arrow": lambda _: Token(":", VERB),
    "iso": _numeric_date,
    "cjkdate": _numeric_date,
    "cjkday": _cjk_day,
    "dmy": partial(_named_month, with_day=True),
    "mdy": partial(_named_month, with_day=True),
    "my": _named_month,
    "clock": _clock,
    "word": _word,
}
"""What makes a token of each group of `_TOKEN`, but for numbers, which are read with their
units.
"""


def _merged(found: list[Token]) -> Iterator[Token]:
    """The tokens with `no longer` and `not … any more` as plain negations."""
    denied = False
    before = ""
    for token in found:
        again = denied and (
            token.key in ("anymore", "mehr", "больше", "plu")
            or (token.key, before) == ("more", "any")
        )
        if not again and not (token.key == "longer" and before == "not"):
            yield token
        before = token.key
        denied = denied or token.kind == NOT
