"""What kind of answer a question wants, as far as its words say so."""

from __future__ import annotations

import re

from recollect.text.late import late

_HISTORY = late(
    r"\b(?:order|summar\w+|history|timeline|over time|throughout|ever|between|total|across|altogether|all|different"
    r"|after|when|how (?:do|should|can|would|could|might) (?:i|we|you)|(?:can|could|would) you|should (?:i|we))\b",
    re.IGNORECASE,
)
_NOW = late(
    r"\b(?:current(?:ly)?|now|latest|newest|(?:most\s+)?recent(?:ly)?|still|so far|nowadays|these days|any ?more"
    r"|up[- ]to[- ]date|as of (?:now|today))\b"
    r"|现在|目前|最近|最新|当前|當前|如今|現在|目下|今の|いまの|いまは|현재|지금|최근|최신",
    re.IGNORECASE,
)
_PAST = late(
    r"\b(?:previous(?:ly)?|initial(?:ly)?|original(?:ly)?|first|earlier|earliest|before|used to|former(?:ly)?|old"
    r"|back then|at the time|ago|last (?:week|month|year|time)|yesterday)\b|以前|之前|最初|当时|當時|昔",
    re.IGNORECASE,
)
_STATE = late(
    r"\bhow (?:many|much|long|often|frequently|old)\b.*\b(?:have|has|do|does|am|is|are)\b"
    r"|\b(?:have|has) (?:i|we|my|our)\b"
    r"|\b(?:where|(?:what|which) \w+) (?:do|does|am|is|are) (?:i|we|my|our)\b"
    r"|\b(?:am|are) (?:i|we)\b|\bis (?:my|our)\b|\bwhat(?:'s|’s| is| are) (?:my|our)\b",
    re.IGNORECASE,
)


def asks_for_now(text: str) -> bool:
    """Whether a question asks how things stand, so that of two answers the newer one is wanted first.

    "Where do I keep the keys now?" does; "when did I move?", "have I ever…?" and "how do I…?" do not.
    """
    if _HISTORY.search(text):
        return False
    if _NOW.search(text):
        return True
    return not _PAST.search(text) and _STATE.search(text) is not None
