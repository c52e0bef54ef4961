"""Takes secrets out of a text: private keys and blocks, tokens, and values in places where a secret
belongs. Pure.

The forms are in `secret_forms.py`, the words beside which a value is secret in `secret_words.py`.
Every expression is bounded, or starts where a token may start, so the time is linear in the text. A
rule runs only if its beginning is there: for tokens, inside a long run of token characters, which
most texts do not have at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from notewell.text.private import UNCLOSED, blocks
from notewell.text.secret_forms import PLACES, SHAPES, TOKENS, Test
from notewell.text.secret_prose import told
from notewell.text.secret_words import signs, values

_BREAKS = re.compile(r"\r\n|\r|\n")
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = re.compile(
    r"(?:(?:\s|>|\\[nr])*+(?:[A-Za-z][A-Za-z-]{2,20}: [^\r\n]{1,100}|[A-Za-z0-9+/=]{16,4000}+)"
    r"(?=\s|\Z|\\[nr]|\.{3}|…|[\"'`]))++"
)
_KEY_MOST = 60_000
_ROUNDS_MOST = 5

Span = tuple[int, int, str]


class _Rule:
    """A kind of secret: its name, marks of which one must be present, its expression, and a test of
    the value.
    """

    def __init__(self, kind: str, marks: str, source: str, fits: Test | None) -> None:
        self.kind, self.marks, self.source, self.fits = kind, tuple(marks.split()), source, fits


def _token(pattern: str) -> str:
    """Starts where a token may; characters right after it go too, since they could look like a
    token without it.
    """
    start = "" if pattern.startswith("(?<") else "(?<![A-Za-z0-9_-])"
    return rf"{start}(?:{pattern})[A-Za-z0-9_-]*+"


def _of_prefixes(prefixes: str, alphabet: str, least: int, most: int) -> str:
    begin = "|".join(map(re.escape, sorted(prefixes.split(), key=len, reverse=True)))
    end = r"(?![A-Za-z0-9_-])" if least == most else r"(?<!\.)" if "." in alphabet else ""
    return _token(rf"(?:{begin})[{alphabet}]{{{least},{most}}}{end}")


_STARTS = [
    _Rule(kind, prefixes, _of_prefixes(prefixes, alphabet, least, most), fits)
    for kind, prefixes, alphabet, least, most, fits in TOKENS
]
_PARTED = [_Rule(kind, marks, _token(pattern), fits) for kind, marks, pattern, fits in SHAPES]
_PLACES = [
    (needs, _Rule(kind, marks, f"(?ai:{pattern})", fits))
    for kind, needs, marks, pattern, fits in PLACES
]
_PLACE_MARKS = [
    (needs, mark, rule) for needs, rule in _PLACES for mark in rule.marks if mark[-1] not in ":="
]
_NEEDS = {needs for needs, _ in _PLACES}
_SIGNED = {
    mark[-4:]: (mark, rule) for _, rule in _PLACES for mark in rule.marks if mark[-1] in ":="
}
_WITHIN = [(mark[1:], rule) for rule in _PARTED for mark in rule.marks if mark[0] == "*"]

# A token is a run of at least so many of these characters (or any that are not ASCII).
_TOKEN_LEAST = 15
_WORD_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_TOKEN_CHARS = _WORD_CHARS + b".:+/=~%$," + bytes(range(128, 256))
_BETWEEN = bytes(ord("x") if c in _TOKEN_CHARS else ord(" ") for c in range(256))
_APART = bytes(c if c in _WORD_CHARS else ord(" ") for c in range(256))
_LONG = b"x" * _TOKEN_LEAST


def _heads() -> dict[bytes, list[_Rule]]:
    """The rules by the first three characters of a part, as far as these are letters, digits, `_`
    and `-`.
    """
    heads: dict[bytes, list[_Rule]] = {}
    for rule in (*_STARTS, *_PARTED):
        for prefix in [mark for mark in rule.marks if mark[0] != "*"]:
            head = prefix.encode().translate(_APART).split(b" ")[0][:3]
            for full in (
                [head]
                if len(head) == 3 or len(head) < len(prefix)
                else [head + b"%x" % n for n in range(16)]
            ):
                heads.setdefault(full, []).append(rule)
    return heads


_HEADS = _heads()
_ORDER = {rule: n for n, rule in enumerate((*_STARTS, *_PARTED))}

# Nothing is seen of these: between two characters of a token they only hide it.
_UNSEEN = "\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad\u180e\u034f"
_INSIDE = re.compile(f"(?<=[!-~])[{_UNSEEN}]{{1,1000}}+(?=[!-~])")


def without_secrets(text: str, counts: Counter[str]) -> str:
    """The text with a mark in place of each secret, counted by kind, also where unseen characters
    are inside of it.
    """
    if text.isascii() or not [c for c in _UNSEEN if c in text]:
        return _without(text, counts)
    shown = _INSIDE.sub("", text)
    done = _without(shown, counts)
    if done == shown:
        return text
    pairs = zip(text.split("\n"), shown.split("\n"), done.split("\n"), strict=True)
    return "\n".join(old if plain == new else new for old, plain, new in pairs)


def _without(text: str, counts: Counter[str]) -> str:
    """Again after each find, since a token may start where another ended."""
    for _ in range(_ROUNDS_MOST):
        before, text = text, _once(text, counts)
        if text == before:
            break
    return text


def _once(text: str, counts: Counter[str]) -> str:
    lowered = _lowered(text)
    if "private" in lowered:
        private = blocks(text)
        text = _marked(
            text, ((b.start, b.end, "private" if b.closed else UNCLOSED) for b in private), counts
        )
        text = _marked(text, ((*span, "private-key") for span in _key_spans(text)), counts)
    for rule in _token_rules(text):
        text = _apply(rule, text, counts)
    if counts:
        lowered = _lowered(text)
    at_signs = signs(lowered)
    spans = [
        *_places(text, lowered),
        *_signed(text, lowered, at_signs),
        *values(text, lowered, at_signs),
        *told(text, lowered),
    ]
    return _marked(text, _joined(spans), counts)


def _places(text: str, lowered: str) -> Iterator[Span]:
    """Values in places where a secret belongs: after each mark of a rule."""
    present = {needs for needs in _NEEDS if needs in lowered}
    for needs, mark, rule in _PLACE_MARKS:
        at = lowered.find(mark) if needs in present else -1
        while at >= 0:
            end = at + 1
            if found := _compiled(rule.source).match(text, at):
                end = found.end()
                yield from _span(rule, found)
            at = lowered.find(mark, end)


def _signed(text: str, lowered: str, at_signs: list[int]) -> Iterator[Span]:
    """The same for the marks that end with a sign."""
    done = 0
    for at in at_signs:
        mark, rule = _SIGNED.get(lowered[at - 3 : at + 1], ("", None))
        start = at + 1 - len(mark)
        if rule is None or at < done or not lowered.startswith(mark, start):
            continue
        if found := _compiled(rule.source).match(text, start):
            done = found.end()
            yield from _span(rule, found)


def _span(rule: _Rule, found: re.Match[str]) -> Iterator[Span]:
    if rule.fits is None or rule.fits(found["secret"]):
        yield (*found.span("secret"), rule.kind)


def _joined(spans: list[Span]) -> Iterator[Span]:
    """In order; of those that overlap, one from the first to the end of the last."""
    last: Span | None = None
    for start, end, kind in sorted(spans):
        if last and start < last[1]:
            last = (last[0], max(end, last[1]), last[2])
        else:
            if last:
                yield last
            last = (start, end, kind)
    if last:
        yield last


def _lowered(text: str) -> str:
    """In small letters and of the same length, which only İ would change."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("İ", "i").lower()


def _token_rules(text: str) -> list[_Rule]:
    """The rules for tokens that have to run, in order; none, unless at least one of them
    matches.
    """
    data = text.encode("utf-8", "replace")
    shape = data.translate(_BETWEEN)
    long = []
    start = shape.find(_LONG)
    while start >= 0:
        end = shape.find(b" ", start)
        long.append(data[start:] if end < 0 else data[start:end])
        start = shape.find(_LONG, end) if end >= 0 else -1
    if not long:
        return []
    joined = b" ".join(long)
    heads = _HEADS.keys() & {piece[:3] for piece in joined.translate(_APART).split()}
    runs = joined.decode("utf-8", "replace")
    known = {rule for head in heads for rule in _HEADS[head]} | {
        rule for mark, rule in _WITHIN if mark in runs
    }
    known = {rule for rule in known if [mark for mark in rule.marks if mark.lstrip("*") in runs]}
    found = sorted(known, key=_ORDER.__getitem__)
    return found if any(_compiled(rule.source).search(runs) for rule in found) else []


def mark(kind: str, secret: str, counts: Counter[str]) -> str:
    """The mark that replaces a secret, with its line breaks, so that the lines below keep their
    numbers.
    """
    counts[kind] += 1
    return f"[redacted:{kind}]" + "".join(_BREAKS.findall(secret))


@cache
def _compiled(source: str) -> re.Pattern[str]:
    """Compiled when its mark is first seen, so that the program starts quickly."""
    return re.compile(source)


def _apply(rule: _Rule, text: str, counts: Counter[str]) -> str:
    def replace(match: re.Match[str]) -> str:
        token = match.group()
        return mark(rule.kind, token, counts) if rule.fits is None or rule.fits(token) else token

    return _compiled(rule.source).sub(replace, text)


def _marked(text: str, spans: Iterable[Span], counts: Counter[str]) -> str:
    out: list[str] = []
    done = 0
    for start, end, kind in spans:
        out += (text[done:start], mark(kind, text[start:end], counts))
        done = end
    return "".join((*out, text[done:])) if out else text


def _key_spans(text: str) -> Iterator[tuple[int, int]]:
    """The private keys in PEM format; if the end of one is missing, the lines that look like a
    key.
    """
    at = 0
    close = _KEY_END.search(text)
    while match := _KEY_BEGIN.search(text, at):
        at = match.end()
        if close and close.start() < at:
            # each end is searched once, so that the time stays linear
            close = _KEY_END.search(text, at)
        near = close if close and close.end() - at <= _KEY_MOST else None
        if rest := near or _KEY_LINES.match(text, at):
            at = rest.end()
            yield match.start(), at
