"""Takes secrets out of a text before it is stored or embedded; line numbers stay the same. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from notewell.errors import SettingsError
from notewell.types import Notice

# the version of the rules in `secret*.py`; an index built by another version is rebuilt
VERSION = "redact-4"

_MOST_FOREIGN, _LONGEST_FOREIGN, _MOST_MEMORY_BYTES = 50, 1_000, 8 << 20


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many of each kind there were."""

    text: str
    found: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secrets by `[redacted:kind]`; `patterns` are additional expressions of the user's.

    `foreign` ones come with a workspace, so they run only under an engine that takes linear time:
    google-re2. What is not used of them is in `notices`.
    """

    patterns: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = field(default=(), init=False)
    _compiled: tuple[Any, ...] = field(default=(), init=False, repr=False)
    _used: tuple[str, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        linear, notices = linear_of(self.foreign)
        object.__setattr__(self, "_compiled", (*compiled(self.patterns), *linear.values()))
        object.__setattr__(self, "_used", (*self.patterns, *(f"re2:{one}" for one in linear)))
        object.__setattr__(self, "notices", notices)

    @property
    def signature(self) -> str:
        """Equal for redactors that change every text in the same way."""
        own = (
            hashlib.blake2b("\0".join(self._used).encode(), digest_size=6).hexdigest()
            if self._used
            else ""
        )
        return f"{VERSION}{own and ':'}{own}"

    def __call__(self, text: str) -> Redacted:
        """The text with a mark in place of each secret, and the same number of lines."""
        from notewell.text.secrets import mark, without_secrets  # noqa: PLC0415 - not needed by a start that reads nothing

        counts: Counter[str] = Counter()
        text = without_secrets(text, counts)
        for pattern in self._compiled:
            text = "".join(
                part
                if n % 2
                else pattern.sub(
                    lambda m: mark("pattern", m.group(), counts) if m.group() else "", part
                )
                for n, part in enumerate(re.split(r"(\[redacted:[a-z0-9-]+\])", text))
            )
        return Redacted(text, dict(counts))


def compiled(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """The user's expressions; SettingsError for one that is not valid."""
    found = []
    for text in patterns:
        try:
            pattern = re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise SettingsError(
                f"redact.patterns: {text!r} is not a regular expression: {error}",
                hint="use the syntax of Python's re",
            ) from None
        if pattern.match(""):
            raise SettingsError(
                f"redact.patterns: {text!r} matches the empty text",
                hint="make it match at least one character",
            )
        found.append(pattern)
    return tuple(found)


def linear_of(patterns: Sequence[str]) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The expressions of a workspace file under google-re2, and a notice about those that are not
    used.
    """
    if not patterns:
        return {}, ()
    found: dict[str, Any] = {}
    hint = "if you trust them, put them into your own settings file"
    try:
        import re2  # noqa: PLC0415 - an extra, and few workspaces have such patterns
    except ImportError:
        why = (
            "such an expression could run without end, and google-re2, which bounds it, is not "
            "installed"
        )
        hint = f"pip install 'notewell[re2]', or {hint}"
        return {}, (_unused(patterns, why, hint),)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY_BYTES
    odd = []
    for text in patterns[:_MOST_FOREIGN]:
        try:
            pattern = re2.compile(text, options=options) if len(text) <= _LONGEST_FOREIGN else None
        except (re2.error, UnicodeError):  # look-around and the like, or not an expression at all
            pattern = None
        if pattern is None or pattern.match(""):
            odd.append(text)
        else:
            found[text] = pattern
    odd += patterns[_MOST_FOREIGN:]
    why = "google-re2 cannot run them, they match the empty text, or they are too long or too many"
    return found, (_unused(odd, why, hint),) if odd else ()


def _unused(patterns: Sequence[str], why: str, hint: str) -> Notice:
    message = (
        f"{len(patterns)} of redact.patterns in the workspace's notewell.toml are not used: {why}"
    )
    return Notice("redaction_not_used", message, hint)
