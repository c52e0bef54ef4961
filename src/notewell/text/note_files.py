"""Files of notes: their names, and their bytes as text. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

ENTRY_STEMS = ("memory", "user")
"""Names, in lower case, of the notes at the root of a workspace that list lasting facts:
`MEMORY.md` and `USER.md`.
"""
ENTRY_FILES = tuple(f"{stem}.md" for stem in ENTRY_STEMS)
_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
# the escape is common in logs of terminals
_CONTROL = bytes((*range(9), *range(14, 27), *range(28, 32), 127))
LONE = re.compile("[\ud800-\udfff]")
"""Half of a character, which valid text does not have."""
_MOST_CONTROL = 0.05  # of random or packed bytes a tenth are control characters
_LONGEST_NAME = 80  # bytes
# random pairs of bytes are nearly always letters
_MOST_BROKEN = {"utf-8": 0.3, "utf-16-le": 0.02, "utf-16-be": 0.02}


@lru_cache(maxsize=1024)
def stem_of(path: str) -> str:
    """The name of a file without folder and ending."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return name[:dot] if 0 < dot < len(name) - 1 else name


def is_entry_file(path: str) -> bool:
    """Whether a path is that of `MEMORY.md` or `USER.md` at the root of a workspace."""
    return "/" not in path and stem_of(path).casefold() in ENTRY_STEMS


def decode(data: bytes) -> str:
    """Text of a file's bytes, with U+FFFD for what is broken; ValueError with the reason if they
    are not text.

    The text is UTF-8, or UTF-16 with its byte order mark. A few bad bytes do not make a file
    binary.
    """
    text = decode_exactly(data)
    return text if text.isascii() else LONE.sub("\ufffd", text)


def decode_exactly(data: bytes) -> str:
    """The same with a lone surrogate for what is broken, so that `encode_like` gives the very bytes
    again.
    """
    mark, codec = encoding_of(data)
    body = data[len(mark) : len(data) - len(stray_byte(data))]
    try:
        text, broken = body.decode(codec), 0
    except UnicodeDecodeError:
        text = body.decode(codec, _escape(codec))
        broken = len(LONE.findall(text))
    flat = body if codec == "utf-8" else text.encode("utf-8", "surrogatepass")
    if _too_many(len(flat) - len(flat.translate(None, _CONTROL)), text, _MOST_CONTROL):
        raise ValueError("a binary file")
    if _too_many(broken, text, _MOST_BROKEN[codec]):
        raise ValueError("not UTF-8 text" if codec == "utf-8" else "not valid UTF-16 text")
    return text


def _too_many(count: int, text: str, share: float) -> bool:
    """Whether so many characters of a text are too many; a single one is not, unless there is no
    other.
    """
    return count > max(1.0, share * len(text)) or 0 < count == len(text)


def _escape(codec: str) -> str:
    return "surrogateescape" if codec == "utf-8" else "surrogatepass"


def stray_byte(data: bytes) -> bytes:
    """The half of a character that a cut file in UTF-16 ends with, if any."""
    return data[-1:] if encoding_of(data)[1] != "utf-8" and len(data) % 2 else b""


def encoding_of(data: bytes) -> tuple[bytes, str]:
    """The byte order mark that a file starts with, if any, and the codec of its text."""
    return next(((mark, codec) for mark, codec in _MARKS if data.startswith(mark)), (b"", "utf-8"))


def encode_like(text: str, data: bytes) -> bytes:
    """A text from `decode_exactly`, maybe edited, in the encoding of a file, with its marks and
    broken bytes.
    """
    mark, codec = encoding_of(data)
    return mark + text.encode(codec, _escape(codec)) + stray_byte(data)


def safe_name(title: str) -> str:
    """A part of a file's name made of a title: letters and digits of any script, bounded, the same
    on every system.
    """
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", title))
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word
        if len(longer.encode("utf-8", "replace")) > _LONGEST_NAME:
            break
        name = longer
    return (name or "-".join(words)[:16]).lower()
