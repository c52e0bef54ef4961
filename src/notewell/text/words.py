"""The one analyser: text to terms, for the index, for questions and for overlap.

All scripts are tokenised without any setting. Words are folded (NFKC, case, Latin accents) and
stemmed as English; the exact form is stored next to the stem. Identifiers, versions, paths and
dates become one term and also their parts. Korean words and runs of unspaced scripts become
overlapping bigrams plus the last character, so that a single character is a prefix query and a
longer word is a phrase of bigrams. Terms contain no space and no double quote, so that a list of
them can be stored as one text.

`index_terms` analyses a text, `query_terms` a question. `analysed` is `index_terms` for one piece
between spaces, with a fast path for plain words; joined over `pieces_of`, it gives the terms of the
text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import Stemmer

from notewell.text.note_files import LONE


class _LazyPattern:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._pattern), name)
        setattr(self, name, found)  # so that this method is not called for it again
        return found


def lazy_compile(pattern: str) -> re.Pattern[str]:
    """`re.compile` on first use: a command needs few of the expressions, and large ones take
    time.
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern))


# Scripts written without spaces: Han, kana, and the Thai, Lao, Myanmar and Khmer blocks.
_UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
# Marks and vowel signs that belong to a word although `\w` does not match them.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0711\u0730-\u074a\u0900-\u0963\u0966-\u0dff\u0f18-\u0fbc\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_JOIN = r"_.\-/:@+'’"
_ASCII = re.compile(rf"[A-Za-z0-9]+(?:[{_JOIN}]{{1,2}}[A-Za-z0-9]+)*(?:\+\+|#(?!\w))?")
# Runs of the commonest letters come first: one step for a word instead of one for each character.
_PLAIN = "A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0400-\u0481\u048a-\u052f"
_LETTERS_RUN = rf"(?:[{_PLAIN}]++|[^\W_{_UNSPACED}{_HANGUL}]|[{_MARKS}])+"
_SPACED = rf"{_LETTERS_RUN}(?:[{_JOIN}]{{1,2}}{_LETTERS_RUN})*(?:\+\+|\#(?!\w))?"
_ANY = lazy_compile(rf"(?P<cjk>[{_UNSPACED}]+)|(?P<hangul>[{_HANGUL}]+)|{_SPACED}")
# the groups would slow `findall` down
_ANY_WORD = lazy_compile(rf"[{_UNSPACED}]+|[{_HANGUL}]+|{_SPACED}")
_UNSPACED_RUN = lazy_compile(rf"[{_UNSPACED}]+")
_WIDE = lazy_compile(rf"[{_UNSPACED}{_HANGUL}]")
_LETTERS = re.compile(r"[^\W\d_]+")  # in runs, of which a text has far fewer
_FOREIGN = lazy_compile(r"[^\W\d_\u0000-\u024f]+")
_PARTS = lazy_compile(rf"(?:[^\W\d_]|[{_MARKS}])+|\d+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)\Z")
_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\Z")
_ASCII_WORD = re.compile(r"[a-z]+\Z")
# Soft hyphens and characters without width, which a page or an editor leaves inside words. The one
# that parts Persian words stays, so that they are found by their parts.
UNSEEN = "\u00ad\u034f\u061c\u180e\u200b\u200d-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
UNSEEN_IN_WORDS = rf"[{UNSEEN}]|(?<![\u0600-\u06ff])\u200c"
_UNSEEN = re.compile(UNSEEN_IN_WORDS)
_NAMING = re.compile(r"\d|(?<=.)[A-Z]|[_./:@+#]")  # what only a name or an identifier has inside
_ACCENT_BASE = re.compile(r"[a-zA-Z][\u0300-\u036f]")

ANALYSER = "words-4"  # the version of this analyser; an index built by another version is rebuilt

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are aren't as at be because been before
    being below between both but by can can't cannot could couldn't did didn't do does doesn't
    doing don't down during each few for from further had hadn't has hasn't have haven't having
    he her here hers herself him himself his how i if in into is isn't it its itself just let's
    me more most mustn't my myself no nor not now of off on once only or other our ours
    ourselves out over own please same shall shan't she should shouldn't so some such tell than
    that the their theirs them themselves then there these they this those through to too under
    until up upon us very was wasn't we were weren't what when where which while who whom whose
    why will with won't would wouldn't you your yours yourself yourselves i'm i've i'd i'll
    we've we're we'll you're you've it's that's there's what's who's where's how's
    ever did's""".split()  # noqa: SIM905 - words read better than a column of quotes
)

_stem = Stemmer.Stemmer("english", 0).stemWord
_ODD_LETTERS = str.maketrans("ıİſ", "iis")
_CACHE_SIZE = 200_000
_MAX_WORD = 256
_MAX_RUN = 8
AROUND = ".,;:!?()\"'"  # punctuation that no word begins or ends with


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a question: stems, exact forms, phrases of bigrams, single characters, stop
    words, and names.

    Names are those of the stems that come from a word with a digit, a joint or a capital, unless it
    begins a sentence.
    """

    words: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    prefixes: tuple[str, ...] = ()
    stop: tuple[str, ...] = field(default=(), compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.words or self.prefixes)


def clean(text: str) -> str:
    """The text as valid UTF-8: without lone surrogates and NUL."""
    if "\x00" in text:
        text = text.replace("\x00", " ")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = LONE.sub("\ufffd", text)
    return text


def visible(text: str) -> str:
    """The text without soft hyphens and characters that have no width."""
    return text if text.isascii() else _UNSEEN.sub("", text)


def _normal(text: str) -> str:
    """The text in the form in which its words are looked for."""
    return text if text.isascii() else unicodedata.normalize("NFKC", visible(text))


def lower(text: str) -> str:
    """The text in lower case, with `i` and `s` for the letters that match them where `re` ignores
    case.
    """
    return text.translate(_ODD_LETTERS).lower()


def fold(word: str) -> str:
    """The word in folded case, without accents on Latin letters (elsewhere marks carry meaning)."""
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
    """Fast path for plain ASCII words (lower, UPPER or Capitalised): the stem, and the exact form
    if it differs.
    """
    if not word.isalpha() or not word.isascii():
        return None
    rest = word[1:]
    if rest and not rest.islower() and not rest.isupper():
        return None
    low = word.lower()
    stem = _stem(low)
    return stem, low if stem != low else ""


def _expand(word: str) -> tuple[str, str]:
    """The terms of one spaced word: its stems and parts, and its exact forms, both joined by
    spaces.
    """
    low = word.lower() if word.isascii() else fold(word).replace("’", "'")
    rest = word[1:]
    if (not rest or rest.islower() or rest.isupper()) and (simple := plain(low)):
        return simple
    if low.endswith("'s"):
        return _expand(word[:-2])
    if "'" in low:
        return _expand(word.replace("'", "").replace("’", ""))
    if match := _DATE.match(low):
        year, month, day = match.groups()
        iso = f"{year}-{int(month):02}-{int(day):02}"
        return " ".join(dict.fromkeys((low, iso, iso[:7], year))), ""
    if match := _VERSION.match(low):
        return " ".join(dict.fromkeys((low, match.group(1)))), ""
    terms: dict[str, None] = {low: None}
    exact: dict[str, None] = {}
    for piece in filter(None, re.split(rf"[{_JOIN}#]+", word)):
        low_piece = fold(piece)
        parts = _CAMEL.findall(piece) if word.isascii() else _PARTS.findall(low_piece)
        for part in dict.fromkeys((low_piece, *(fold(p) for p in parts))):
            if len(part) < 2 < len(low):
                continue  # the `e` of `e0308` or the digit of a path means nothing alone
            stem = _stem(part) if _ASCII_WORD.match(part) else part
            terms[stem] = None
            if stem != part:
                exact[part] = None
    return " ".join(terms), " ".join(exact)


class _Analyser(dict[str, tuple[str, str]]):
    """Words to their terms: most words of a text were seen before, and cost one dictionary
    look-up.
    """

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


def words_in(text: str) -> list[str]:
    """The words and runs of a text as they are written, in order."""
    return _ASCII.findall(text) if text.isascii() else _ANY_WORD.findall(_normal(text))


def pieces_of(text: str) -> list[str]:
    """The text split at its spaces; since no word contains a space, the pieces have the same words
    as the text.
    """
    return _normal(text).split()


def analysed(piece: str) -> tuple[str, str]:
    """The terms and the exact forms of a piece from `pieces_of`, both joined by spaces."""
    if len(piece) <= _MAX_WORD and (simple := plain(piece.strip(AROUND))):
        return simple
    return index_terms(piece)


class TermCache(dict[str, tuple[str, str]]):
    """The analyser for documents: `analysed` of each of `pieces_of`, remembered, since most come
    again.

    A piece that begins with a space is a term already, from another index.
    """

    def __missing__(self, piece: str) -> tuple[str, str]:
        if piece.isalpha() and piece.isascii() and piece.islower() and len(piece) <= _MAX_WORD:
            stem = _stem(piece)  # as `plain` does it, for the most common kind of piece
            terms = self[piece] = (stem, piece if stem != piece else "")
        else:
            terms = self[piece] = (piece[1:], "") if piece[0] == " " else analysed(piece)
        return terms


def places(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each word and run in a text."""
    if text.isascii():
        return (match.span() for match in _ASCII.finditer(text))
    unseen = {match.start() for match in _UNSEEN.finditer(text)}
    if not unseen:
        return (match.span() for match in _ANY.finditer(text))
    seen = [at for at in range(len(text)) if at not in unseen]
    return (
        (seen[match.start()], seen[match.end() - 1] + 1) for match in _ANY.finditer(visible(text))
    )


def index_terms(text: str) -> tuple[str, str]:
    """The terms of a text in order, and the exact forms of those that stemming changed, both joined
    by spaces.
    """
    found = list(map(_analyser.__getitem__, words_in(text)))
    return " ".join([stem for stem, _ in found]), " ".join([form for _, form in found if form])


def term_set(text: str) -> frozenset[str]:
    """The distinct terms of a text."""
    return frozenset(index_terms(text)[0].split())


@lru_cache(maxsize=64)  # for every passage of an answer the same terms are looked for
def begins_of(terms: frozenset[str]) -> frozenset[str]:
    """How words in lower case that have one of these terms may begin: a stem is like its word but
    for its last letter.

    A text without any of them has none of the terms. Apostrophes and ways to write a date are left
    to the caller.
    """
    # the only other change
    dying = {f"{term[0]}ying" for term in terms if len(term) == 3 and term.endswith("ie")}
    return frozenset({term[: max(2, len(term) - 1)] for term in terms} | dying)


@lru_cache(maxsize=64)
def query_terms(text: str) -> Terms:
    """The terms of a question; any text is valid, and operators and punctuation have no special
    meaning.
    """
    words: dict[str, None] = {}
    exact: dict[str, None] = {}
    stop: dict[str, None] = {}
    phrases: dict[tuple[str, ...], None] = {}
    prefixes: dict[str, None] = {}
    names: dict[str, None] = {}
    normal = _normal(clean(text))
    for match in (_ASCII if normal.isascii() else _ANY).finditer(normal):
        token = match.group()
        if match.lastgroup:
            *grams, last = _bigrams(token)
            if not grams:
                prefixes[last] = None
            words.update(dict.fromkeys(grams))
            phrases.update(dict.fromkeys(pairwise(grams)))
            continue
        stems, forms = _analyser[token]
        if fold(token).replace("’", "'") in STOP_WORDS:
            stop.update(dict.fromkeys(stems.split()))
            continue
        words.update(dict.fromkeys(stems.split()))
        exact.update(dict.fromkeys(forms.split()))
        if _NAMING.search(token) or (token[0].isupper() and not _begins(normal, match.start())):
            names.update(dict.fromkeys(stems.split()))
    if not words and not prefixes:
        words, stop = stop, {}
    return Terms(
        tuple(words), tuple(exact), tuple(phrases), tuple(prefixes), tuple(stop), tuple(names)
    )


def _begins(text: str, at: int) -> bool:
    """Whether a sentence begins here."""
    before = text[max(0, at - _MAX_RUN) : at].rstrip(" \t\"'`([*_“‘«»")
    return not before or before[-1] in ".!?:\n\r。！？"


def count_tokens(text: str) -> int:
    """About how many model tokens a text has: one for four ASCII characters, one for each wide
    character.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    wide = len(_WIDE.findall(text))
    rest = len(text) - wide
    narrow = len(text.encode("ascii", "ignore"))
    return wide + (narrow + 3) // 4 + (rest - narrow + 1) // 2


@lru_cache(maxsize=4096)  # searches return the same chunks again and again
def foreign_share(text: str) -> float:
    """The share of the letters that are outside the Latin script, which an English model cannot
    read.
    """
    if text.isascii() or _FOREIGN.search(text) is None:
        return 0.0
    letters = sum(map(len, _LETTERS.findall(text)))
    return sum(map(len, _FOREIGN.findall(text))) / letters if letters else 0.0


def is_unspaced(text: str) -> bool:
    """Whether a text contains a script that is written without spaces."""
    return _UNSPACED_RUN.search(text) is not None


def counted(number: int, name: str) -> str:
    """A number of things as people write it: `1 passage`, `2,876 passages`."""
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"
