"""Secrets out of a text before it is stored or embedded, line by line as long as before. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recollect.errors import SettingsError

VERSION = "redact-1"
"""Names what the rules of `secrets.py` find; an index made under another name is made anew."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many of each kind there were."""

    text: str
    found: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secrets by `[redacted:kind]`; `patterns` are further expressions of the user's."""

    patterns: tuple[str, ...] = ()
    _compiled: tuple[re.Pattern[str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", compiled(self.patterns))

    @property
    def signature(self) -> str:
        """Equal for redactors that make the same of every text."""
        own = hashlib.blake2b("\0".join(self.patterns).encode(), digest_size=6).hexdigest() if self.patterns else ""
        return f"{VERSION}{own and ':'}{own}"

    def __call__(self, text: str) -> Redacted:
        """The text with a mark in place of each secret, and as many lines as before."""
        from recollect.text.secrets import mark, without_secrets  # noqa: PLC0415 - a start that reads nothing is spared

        counts: Counter[str] = Counter()
        text = without_secrets(text, counts)
        for pattern in self._compiled:
            text = "".join(
                part if n % 2 else pattern.sub(lambda m: mark("pattern", m.group(), counts) if m.group() else "", part)
                for n, part in enumerate(re.split(r"(\[redacted:[a-z0-9-]+\])", text))
            )
        return Redacted(text, dict(counts))


def compiled(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """The user's expressions, or an error that says which one is none."""
    found = []
    for text in patterns:
        try:
            pattern = re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise SettingsError(
                f"redact.patterns: {text!r} is no regular expression: {error}", hint="it is read as Python's re does"
            ) from None
        if pattern.match(""):
            raise SettingsError(
                f"redact.patterns: {text!r} matches the empty text", hint="ask for at least a character"
            )
        found.append(pattern)
    return tuple(found)
