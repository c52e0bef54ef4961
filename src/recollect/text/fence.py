"""Text of notes made safe to stand inside a prompt: quoted between marks that it cannot contain. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from recollect.text.late import late

MARK_LENGTH = 8
# What no reader sees and a model may: controls, bidirectional overrides, invisible tags and joiners of nothing.
_HIDDEN = late(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_BREAKS = re.compile("\r\n?|[\x85\u2028\u2029]")
_GAP = r"[\s\u200c\u200d\ufe00-\ufe0f]{0,8}"
_OPENS = "<\uff1c\ufe64\u2039\u3008\u27e8\u2329"
# Our own marks in any dress, and the marks by which chat templates tell who is speaking.
_LOOKS_ALIKE = late(
    rf"[{_OPENS}](?={_GAP}[/\u2044\u2215\uff0f]?{_GAP}{_GAP.join('memory')})"
    r"|[<\uff1c](?=[|\uff5c][\w \u2581-]{1,60}[|\uff5c][>\uff1e])"
    r"|<(?=/?(?:s|system|user|assistant|human|tool|function_calls|tool_call|tool_result|instructions?|prompt)\b[^<>\n]{0,60}>)"
    r"|<<(?=\s{0,4}/?SYS\s{0,4}>>)"
    r"|\[(?=/?INST\])",
    re.IGNORECASE,
)
_ESCAPED = {"[": "&#91;"}


def visible(text: str) -> str:
    """Text with one kind of line break and nothing hidden in it."""
    return _HIDDEN.sub("", _BREAKS.sub("\n", text))


def neutral(text: str) -> str:
    """Visible text in which nothing looks like a mark of ours or of a chat template."""
    return _LOOKS_ALIKE.sub(lambda m: _ESCAPED.get(m[0], "&lt;" * len(m[0])), visible(text))


def label(text: str) -> str:
    """Text for the head of a fence: on one line, without quotes and angle brackets."""
    flat = " ".join(visible(text).split())
    return flat.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def boundary(texts: Iterable[str]) -> str:
    """A mark made of the texts themselves, the same for the same texts, that occurs in none of them."""
    whole = "\0".join(texts)
    low = whole.casefold()
    number = 0
    while True:
        data = f"{number}\0{whole}".encode("utf-8", "replace")
        mark = hashlib.blake2b(data, digest_size=MARK_LENGTH // 2).hexdigest()
        if mark not in low:
            return mark
        number += 1
