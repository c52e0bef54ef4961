"""The one parser of references: every way in which people, notes and programs name a document or a
part of it. Pure.

docs/references.md has a table of the forms. A file name may contain `:` and `#`, so a text can have
several readings; only who knows the files can choose, and takes the first reading that names one.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

from notewell.text.words import clean
from notewell.types import End

SCHEME = "memory://"
NOTES = (".md", ".markdown", ".mdx")
ENDINGS = (*NOTES, ".txt", ".rst", ".org", ".adoc", ".jsonl", ".json")
ID_LENGTH = 12
LONGEST = 4_096
ID = re.compile(r"[a-z2-7]{4,12}\Z")
_MOST_SPLITS = 8
_LINES = re.compile(r"L?(\d{1,18})(?:-L?(\d{1,18}))?\Z", re.IGNORECASE)
_COLON = re.compile(r"(?P<name>.*[^:]):(?P<lines>\d{1,18}(?:-\d{1,18})?)\Z", re.DOTALL)
_TARGET = r"(<[^<>\n]{1,1000}>|[^\s()<>]{1,1000}(?:\([^\s()]{0,300}\)[^\s()]{0,300})?)"
MARKDOWN_LINK = re.compile(rf"\]\([ \t]*{_TARGET}(?:[ \t]+[\"'(][^\n]{{0,300}}?[\"')])?[ \t]*\)")
LINK_DEFINITION = re.compile(
    rf"^ {{0,3}}\[(?!\^)[^\[\]\n]{{1,300}}\]:[ \t]*{_TARGET}", re.MULTILINE
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference as it was written, and what it may mean: names with the part that is asked for,
    the likeliest first.

    The first reading takes all of the text as a name, which only an existing file can confirm.
    """

    text: str
    readings: tuple[End, ...] = ()

    @property
    def usual(self) -> End:
        """The likeliest reading for one who does not know the files: with the shortest name that
        has a known ending.
        """
        named = [end for end in self.readings if end.name.casefold().endswith(ENDINGS)]
        if named:
            return min(named, key=lambda end: len(end.name))
        return self.readings[min(1, len(self.readings) - 1)] if self.readings else End("")


def parse_reference(written: str) -> Reference:
    """Reads a reference in any form; one that is empty or too long to be one has no readings."""
    if len(written) > LONGEST:
        return Reference(written[:80] + "…")
    text = unicodedata.normalize("NFC", clean(written)).strip()
    exact = text
    if len(text.splitlines()) > 1:
        text = " ".join(text.split())
    found: list[End] = [End(exact)]
    if text.startswith(SCHEME):
        found += [target_end(text), *_readings(clean(unquote(text.removeprefix(SCHEME))))]
    elif match := MARKDOWN_LINK.search(text):
        found.append(target_end(match[1]))
    else:
        inner = text
        if text.startswith(("[", "![[")) or text.endswith("]"):
            inner = text.removeprefix("!").strip("[]").partition("|")[0].strip()
        found += _readings(inner)
        if "\\" in inner:
            found += _readings(inner.replace("\\", "/"))
    return Reference(
        exact, tuple(end for end in dict.fromkeys((*found, *_readings(text))) if end.name)
    )


def target_end(target: str) -> End:
    """A percent-encoded path and part, as links and addresses have them."""
    target = target.removeprefix("<").removesuffix(">").strip()
    path, _, part = target.removeprefix(SCHEME).partition("#")
    if not part and (match := _COLON.match(path)):
        path, part = match["name"], f"L{match['lines']}"
    name = unicodedata.normalize("NFC", clean(unquote(path.partition("?")[0])))
    return End(name.strip(), anchor_of(clean(unquote(part))))


def _readings(text: str) -> list[End]:
    """Lines after a colon, then a part after each `#` from the left, then the text as a name."""
    found: list[End] = []
    if match := _COLON.match(text):
        found.append(End(match["name"].strip(), anchor_of(f"L{match['lines']}")))
    signs = [match.start() for match in re.finditer("#", text)]
    found += [
        End(text[:at].strip(), anchor_of(text[at + 1 :]))
        for at in (*signs[:_MOST_SPLITS], *signs[-1:])
    ]
    return [*found, End(text)]


def is_address(name: str) -> bool:
    """Whether a name, without its lines, is the address of something outside the workspace."""
    return bool(_ADDRESS.match(name))


def anchor_of(text: str) -> str:
    """What follows `#`, in one form: lines as `L3-L9`, a block as `^name`, of nested headings the
    last one.
    """
    text = " ".join(text.split())
    if text[:1] in ("L", "l") and (lines := lines_of(text)):
        first, last = lines
        return f"L{first}-L{last}" if last != first else f"L{first}"
    return text.rpartition("#")[2].strip()


def lines_of(anchor: str) -> tuple[int, int] | None:
    """The lines of `L3`, `L3-L9` or `3-9`, as they are written; None for anything else."""
    match = _LINES.match(anchor)
    return (int(match[1]), int(match[2] or match[1])) if match else None
