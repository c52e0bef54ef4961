"""The one analyser: text to terms, for the index, for questions and for overlap.

Every script is tokenised without a choice by the user. Words are folded (NFKC, case, Latin accents) and stemmed
as English; the exact form is kept beside the stem. Identifiers, versions, paths and dates are kept whole and
split. Korean words and runs of scripts written without spaces become overlapping bigrams plus the last character, so
that a single character is a prefix query and a longer word is a phrase of bigrams. The terms contain no space
and no double quote, so a list of them is kept as one text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise

import Stemmer

from recollect.text.late import late

# Scripts written without spaces: Han, kana, and the Thai, Lao, Myanmar and Khmer blocks.
_UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
# Marks and vowel signs that belong to a word although `\w` leaves them out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0711\u0730-\u074a\u0900-\u0963\u0966-\u0dff\u0f18-\u0fbc\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_JOIN = r"_.\-/:@+'’"
_ASCII = re.compile(rf"[A-Za-z0-9]+(?:[{_JOIN}]{{1,2}}[A-Za-z0-9]+)*(?:\+\+|#(?!\w))?")
# Plain runs of the commonest letters first: one step for a word instead of one for each of its characters.
_PLAIN = "A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0400-\u0481\u048a-\u052f"
_LETTERS_RUN = rf"(?:[{_PLAIN}]++|[^\W_{_UNSPACED}{_HANGUL}]|[{_MARKS}])+"
_SPACED = rf"{_LETTERS_RUN}(?:[{_JOIN}]{{1,2}}{_LETTERS_RUN})*(?:\+\+|\#(?!\w))?"
_ANY = late(rf"(?P<cjk>[{_UNSPACED}]+)|(?P<hangul>[{_HANGUL}]+)|{_SPACED}")
_UNSPACED_RUN = late(rf"[{_UNSPACED}]+")
_WIDE = late(rf"[{_UNSPACED}{_HANGUL}]")
_LETTERS = re.compile(r"[^\W\d_]")
_FOREIGN = late(r"[^\W\d_\u0000-\u024f]")
_PARTS = late(rf"(?:[^\W\d_]|[{_MARKS}])+|\d+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)\Z")
_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\Z")
_ASCII_WORD = re.compile(r"[a-z]+\Z")
_ACCENT_BASE = re.compile(r"[a-zA-Z][\u0300-\u036f]")

ANALYSER = "words-3"
"""Names what this module makes of a text; an index made under another name is made anew."""

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are aren't as at be because been before being below between
    both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
    further had hadn't has hasn't have haven't having he her here hers herself him himself his how i if in into is
    isn't it its itself just let's me more most mustn't my myself no nor not now of off on once only or other our ours
    ourselves out over own please same shall shan't she should shouldn't so some such tell than that the their theirs
    them themselves then there these they this those through to too under until up upon us very was wasn't we were
    weren't what when where which while who whom whose why will with won't would wouldn't you your yours yourself
    yourselves i'm i've i'd i'll we've we're we'll you're you've it's that's there's what's who's where's how's
    ever did's""".split()  # noqa: SIM905 - words read better than a column of quotes
)

_stem = Stemmer.Stemmer("english", 0).stemWord
_CACHE_SIZE = 200_000
_MAX_WORD = 256
_MAX_RUN = 8
AROUND = ".,;:!?()\"'"  # no word begins or ends with one of them


@dataclass(frozen=True, slots=True)
class Terms:
    """What a question asks for: stems, exact forms, phrases of bigrams and single characters."""

    words: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    prefixes: tuple[str, ...] = ()
    stop: tuple[str, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.words or self.prefixes)


def clean(text: str) -> str:
    """Text that any UTF-8 consumer takes: no lone surrogates, no NUL."""
    if "\x00" in text:
        text = text.replace("\x00", " ")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def fold(word: str) -> str:
    """Case folded, with accents off Latin letters only (elsewhere marks carry meaning)."""
    word = word.casefold()
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word)
    if _ACCENT_BASE.search(parts):
        parts = re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", parts)
    return unicodedata.normalize("NFC", parts)


def _bigrams(run: str) -> list[str]:
    run = fold(run)
    return [run[i : i + 2] for i in range(len(run) - 1)] + [run[-1]]


def plain(word: str) -> tuple[str, str] | None:
    """The term of a word of ASCII letters in one case, but for the first, and its exact form where that is another.

    None for whatever else, which takes a closer look.
    """
    if not word.isalpha() or not word.isascii():
        return None
    rest = word[1:]
    if rest and not rest.islower() and not rest.isupper():
        return None
    low = word.lower()
    stem = _stem(low)
    return stem, low if stem != low else ""


def _expand(word: str) -> tuple[str, str]:  # noqa: C901 - one branch for each shape of word
    """Index terms of one spaced word: (stems and parts, exact forms), both joined by spaces."""
    low = word.lower() if word.isascii() else fold(word).replace("’", "'")
    rest = word[1:]
    if (not rest or rest.islower() or rest.isupper()) and (simple := plain(low)):
        return simple
    if low.endswith("'s"):
        return _expand(word[:-2])
    if "'" in low:
        return _expand(word.replace("'", "").replace("’", ""))
    whole = low
    terms: dict[str, None] = {whole: None}
    exact: dict[str, None] = {}
    if match := _DATE.match(whole):
        year, month, day = match.groups()
        iso = f"{year}-{int(month):02}-{int(day):02}"
        return " ".join(dict.fromkeys((whole, iso, iso[:7], year))), ""
    if match := _VERSION.match(whole):
        return " ".join(dict.fromkeys((whole, match.group(1)))), ""
    camel = word.isascii()
    for piece in re.split(rf"[{_JOIN}#]+", word):
        if not piece:
            continue
        low_piece = fold(piece)
        parts = _CAMEL.findall(piece) if camel else _PARTS.findall(low_piece)
        for part in dict.fromkeys((low_piece, *(fold(p) for p in parts))):
            if len(part) < 2 < len(whole):
                continue  # the letter of `e0308` or the digit of a path says nothing alone
            if _ASCII_WORD.match(part):
                stem = _stem(part)
                terms[stem] = None
                if stem != part:
                    exact[part] = None
            else:
                terms[part] = None
    return " ".join(terms), " ".join(exact)


class _Analyser(dict[str, tuple[str, str]]):
    """Remembers what a word became: most words of a text were seen before, and those cost one look-up in C."""

    def __missing__(self, word: str) -> tuple[str, str]:
        if not word.isascii() and _WIDE.match(word):
            found, most = (" ".join(_bigrams(word)), ""), _MAX_RUN
        else:
            found, most = _expand(word[:_MAX_WORD]), _MAX_WORD
        if len(word) <= most:
            if len(self) >= _CACHE_SIZE:
                self.clear()
            self[word] = found
        return found


_analyser = _Analyser()


@cache
def _any_word() -> re.Pattern[str]:
    """`_ANY` without its groups, which would make `findall` slow; not compiled before there is a text to read."""
    return re.compile(rf"[{_UNSPACED}]+|[{_HANGUL}]+|{_SPACED}")


def words_in(text: str) -> list[str]:
    """The words and runs of a text as they stand there, in order."""
    return _ASCII.findall(text) if text.isascii() else _any_word().findall(unicodedata.normalize("NFKC", text))


def pieces_of(text: str) -> list[str]:
    """A text cut at its spaces; the words of the pieces are those of the text, for no word reaches over a space."""
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).split()


def analysed(piece: str) -> tuple[str, str]:
    """The terms and the exact forms of one of `pieces_of`, both joined by spaces."""
    if len(piece) <= _MAX_WORD and (simple := plain(piece.strip(AROUND))):
        return simple
    return index_terms(piece)


def _pieces(text: str) -> list[tuple[str, str]]:
    """The terms of every word and run of a text."""
    return list(map(_analyser.__getitem__, words_in(text)))


def places(text: str) -> Iterator[tuple[int, int]]:
    """Where the words and runs of a text stand, as (start, end)."""
    return (match.span() for match in (_ASCII if text.isascii() else _ANY).finditer(text))


def index_terms(text: str) -> tuple[str, str]:
    """What the index stores for a text: its terms in order, and the exact forms that stemming changed."""
    found = _pieces(text)
    return " ".join([stem for stem, _ in found]), " ".join([form for _, form in found if form])


def term_set(text: str) -> frozenset[str]:
    """The distinct terms of a text, of any script."""
    return frozenset(index_terms(text)[0].split())


@lru_cache(maxsize=64)
def query_terms(text: str) -> Terms:
    """What a question looks for; operators and punctuation are data, and any text is fine."""
    words: dict[str, None] = {}
    exact: dict[str, None] = {}
    stop: dict[str, None] = {}
    phrases: dict[tuple[str, ...], None] = {}
    prefixes: dict[str, None] = {}
    for match in _ANY.finditer(unicodedata.normalize("NFKC", clean(text))):
        token = match.group()
        if match.lastgroup:
            run = fold(token)
            if len(run) == 1:
                prefixes[run] = None
                continue
            grams = [run[i : i + 2] for i in range(len(run) - 1)]
            words.update(dict.fromkeys(grams))
            phrases.update(dict.fromkeys(pairwise(grams)))
            continue
        stems, forms = _analyser[token]
        if fold(token).replace("’", "'") in STOP_WORDS:
            stop.update(dict.fromkeys(stems.split()))
            continue
        words.update(dict.fromkeys(stems.split()))
        exact.update(dict.fromkeys(forms.split()))
    if not words and not prefixes:
        words, stop = stop, {}
    return Terms(tuple(words), tuple(exact), tuple(phrases), tuple(prefixes), tuple(stop))


def count_tokens(text: str) -> int:
    """About how many model tokens a text has: four characters each, one for every wide character."""
    if text.isascii():
        return (len(text) + 3) // 4
    wide = len(_WIDE.findall(text))
    rest = len(text) - wide
    narrow = len(text.encode("ascii", "ignore"))
    return wide + (narrow + 3) // 4 + (rest - narrow + 1) // 2


@lru_cache(maxsize=4096)  # of the passages that searches bring again and again
def foreign_share(text: str) -> float:
    """The share of a text's letters outside the Latin script, which an English model cannot read."""
    if text.isascii() or _FOREIGN.search(text) is None:
        return 0.0
    letters = len(_LETTERS.findall(text))
    return len(_FOREIGN.findall(text)) / letters if letters else 0.0


def is_unspaced(text: str) -> bool:
    """Whether a text has a run of a script that is written without spaces."""
    return _UNSPACED_RUN.search(text) is not None
