"""What an Obsidian vault says of itself: where its templates are, and how it names its daily
notes.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from notewell.opener import MOST_SETTINGS_BYTES, Opener
from notewell.text.dates import make_date, month_of

FOLDER = ".obsidian"
_TEMPLATES = (
    ("templates.json", "folder"),
    ("plugins/templater-obsidian/data.json", "templates_folder"),
)
_DAILY = "daily-notes.json"
_USUAL = "YYYY-MM-DD"
_LONGEST = 200
_MOST_TOKENS = (
    8  # a file of the vault writes the format: matching it must take no time, whatever it says
)
# The tokens of moment.js that a name of a day is made of; text in brackets is taken as it is.
_NAME = r"[^\W\d_]{1,20}"
_TOKENS = {
    "YYYY": r"(?P<y>\d{4})",
    "YY": r"(?P<yy>\d{2})",
    "MMMM": rf"(?P<name>{_NAME})",
    "MMM": rf"(?P<name>{_NAME})\.?",
    "MM": r"(?P<m>\d{2})",
    "M": r"(?P<m>\d{1,2})",
    "DDDD": r"\d{3}",
    "DDD": r"\d{1,3}",
    "DD": r"(?P<d>\d{2})",
    "Do": r"(?P<d>\d{1,2})(?:st|nd|rd|th)",
    "D": r"(?P<d>\d{1,2})",
    "dddd": _NAME,
    "ddd": rf"{_NAME}\.?",
    "dd": _NAME,
    "WW": r"\d{2}",
    "W": r"\d{1,2}",
    "ww": r"\d{2}",
    "w": r"\d{1,2}",
    "gggg": r"\d{4}",
    "GGGG": r"\d{4}",
    "Q": r"[1-4]",
    "E": r"[1-7]",
    "d": r"[0-6]",
    "e": r"[0-6]",
}
_PART = re.compile(
    r"\[([^\]]*)\]|" + "|".join(sorted(_TOKENS, key=len, reverse=True)) + "|.", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Vault:
    """The folders of a vault that hold templates, and the names of its daily notes; of any other
    folder, nothing.
    """

    templates: tuple[str, ...] = ()
    daily: str = ""
    pattern: re.Pattern[str] | None = None

    def day_of(self, path: str) -> dt.date | None:
        """The day of a daily note, by the vault's own format; None for any other path."""
        if self.pattern is None or not path.startswith(self.daily):
            return None
        match = self.pattern.fullmatch(os.path.splitext(path[len(self.daily) :])[0])
        if match is None:
            return None
        found = match.groupdict()
        year = int(found.get("y") or f"20{found['yy']}")
        month = int(found["m"]) if found.get("m") else month_of(found.get("name") or "")
        return make_date(year, month, int(found["d"])) if month else None


def vault_of(root: str, opener: Opener) -> Vault:
    """What the settings of a vault say; what is missing or odd is as in a vault without
    settings.
    """
    templates = [
        _text(_json(opener, os.path.join(root, FOLDER, file)), key) for file, key in _TEMPLATES
    ]
    daily = _json(opener, os.path.join(root, FOLDER, _DAILY))
    folder = _text(daily, "folder").strip("/")
    named = tuple(name.strip("/") for name in templates if name.strip("/"))
    return Vault(named, f"{folder}/" if folder else "", _pattern(_text(daily, "format") or _USUAL))


def _json(opener: Opener, location: str) -> dict[str, Any]:
    try:
        found = json.loads(opener.read(location, most=MOST_SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) and len(value) <= _LONGEST else ""


@lru_cache(maxsize=16)
def _pattern(wanted: str) -> re.Pattern[str] | None:
    """The pattern of a format of moment.js; None if it does not name a day."""
    made, known = [], set()
    for part in _PART.finditer(wanted):
        token = _TOKENS.get(part[0])
        if token is None:
            made.append(re.escape(part[0] if part[1] is None else part[1]))
            continue
        group = re.match(r"\(\?P<(\w+)>", token)
        if group and group[1] in known:
            # the year of a folder and again of the name
            token = token.replace(f"?P<{group[1]}>", "?:", 1)
        known |= {group[1]} if group else set()
        made.append(token)
    few = sum(part[0] in _TOKENS for part in _PART.finditer(wanted)) <= _MOST_TOKENS
    whole = few and known & {"y", "yy"} and known & {"m", "name"} and "d" in known
    return re.compile("".join(made), re.IGNORECASE) if whole else None
