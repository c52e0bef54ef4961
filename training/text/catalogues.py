"""Messages of programs in many languages (gettext catalogues), long ones first of all."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator

from training.fetch import fetched, listed, members
from training.text.aligned import Pair, plain, role_of
from training.text.languages import PRIORITY, code, like_lengths, translated

USE = "messages in many languages"
MOST = 15_000
_PLACEHOLDER = re.compile(
    r"%(?:\d+\$)?[-+ #0]*\d*(?:\.\d+)?(?:l{1,2}|h|z|j)?[a-zA-Z]|%\([^)]*\)[a-z]|%L?\d+"
    r"|\$?\{[^}]*\}|\$\w+|&\w+;|@\w+@|\\[a-z]"
)
_ACCELERATOR = re.compile(r"[_&](?=\w)|\(&?_?[A-Z]\)$|\s*\([_&]\w\)")
_CONTEXT = re.compile(r"^[^\n\x04]{0,80}\x04")
_WESNOTH = re.compile(r"^[^\^\n]{1,40}\^")


def catalogue(content: bytes) -> Iterator[tuple[str, str]]:
    """English and translation of each message of a compiled catalogue; first forms alone."""
    if content[:4] not in {b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"}:
        return
    order = "<" if content[:4] == b"\xde\x12\x04\x95" else ">"
    count, ours, theirs = struct.unpack_from(f"{order}III", content, 8)
    for at in range(count):
        length, start = struct.unpack_from(f"{order}II", content, ours + 8 * at)
        size, begin = struct.unpack_from(f"{order}II", content, theirs + 8 * at)
        english = content[start : start + length].decode("utf-8", "replace").split("\0")[0]
        text = content[begin : begin + size].decode("utf-8", "replace").split("\0")[0]
        if english and text:
            yield english, text


def message(text: str) -> str:
    """A message without context, accelerators and markup."""
    return plain(_ACCELERATOR.sub("", _WESNOTH.sub("", _CONTEXT.sub("", text))))


def prose(english: str) -> bool:
    """Whether a message says something: long enough, few placeholders, mostly letters."""
    holes = _PLACEHOLDER.findall(english)
    letters = sum(map(str.isalpha, english))
    return (
        20 <= len(english) <= 1200
        and english.count(" ") >= 3
        and len(holes) <= 2
        and sum(map(len, holes)) <= 0.15 * len(english)
        and letters >= 0.7 * len(english.replace(" ", ""))
    )


def messages(package: str) -> Iterator[tuple[str, str, str]]:
    """Language, English and translation of each message in a package."""
    for path, content in members(fetched(package)):
        if path.endswith(".mo"):
            lang = next(
                (
                    code(part)
                    for part in reversed(path.split("/")[:-1])
                    if part != "mo" and code(part)
                ),
                "",
            )
            if lang not in {"", "en"}:
                for english, text in catalogue(content):
                    yield lang, message(english), message(text)


def catalogues() -> Iterator[Pair]:
    """Messages of all listed packages, each English text once a language, so many a language."""
    counts: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    for package in [name for name, entry in listed().items() if entry.use == USE]:
        of_package: Counter[str] = Counter()
        for lang, english, text in messages(package):
            most = MOST if lang in PRIORITY else MOST // 2
            if counts[lang] >= most or of_package[lang] >= most // 3 or (lang, english) in seen:
                continue
            if (
                prose(english)
                and translated(lang, english, text)
                and like_lengths(lang, english, text)
            ):
                seen.add((lang, english))
                counts[lang] += 1
                of_package[lang] += 1
                yield Pair("messages", lang, role_of(english), english, text)
