"""Ignore files: `.gitignore` and our own, read once for each folder of a walk; odd lines are
skipped and noted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from notewell.opener import Opener
from notewell.text.globs import Pattern, PatternList, pattern_of
from notewell.types import Notice

GIT_RULES, OWN_RULES = ".gitignore", ".notewellignore"
MOST_BYTES = 1_000_000
MOST_COST = 20_000
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Oddity:
    """A line of an ignore file, or all of it (line 0), or a pattern of the settings, that has no
    effect, and why.
    """

    place: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.place}{f' line {self.line}' if self.line else ''}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _RuleFile:
    """The rules of one file, for what is in its folder, and what they cost for each name there."""

    base: str
    name: str
    patterns: PatternList
    cost: int


@dataclass(frozen=True, slots=True)
class Rules:
    """The ignore rules for a folder, from its own files and from those of the folders above; none
    with `blind`.
    """

    opener: Opener
    files: tuple[_RuleFile, ...] = ()
    blind: bool = False

    def below(
        self, folder: str, names: Iterable[str], odd: dict[Oddity, None] | None = None
    ) -> Rules:
        """The rules with those of a folder, of which the names are known; oddities are added to
        `odd`.
        """
        found = self.files
        for name in (GIT_RULES, OWN_RULES):
            if self.blind or name not in names:
                continue
            place = os.path.join(folder, name)
            left = MOST_COST - sum(file.cost for file in found)
            try:
                data = self.opener.read(place, most=MOST_BYTES + 1, cut=True)
            except OSError as error:
                noted: tuple[Oddity, ...] = (
                    Oddity(place, 0, f"it is not read, because {error.strerror}"),
                )
            else:
                patterns, cost, lines = _patterns(data, left)
                found = (*found, _RuleFile(folder, name, patterns, cost))
                noted = tuple(Oddity(place, line, reason) for line, reason in lines)
            if odd is not None:
                odd |= dict.fromkeys(noted)
        return Rules(self.opener, found, self.blind)

    def only(self, name: str) -> Rules:
        """The rules that come from files of one name."""
        return Rules(self.opener, tuple(file for file in self.files if file.name == name))

    def ignore(self, location: str, *, folder: bool) -> bool:
        """Whether the nearest rule for a location ignores it; our own file comes before git's."""
        for file in reversed(self.files):
            names = location[len(file.base) :].strip(os.sep).split(os.sep)
            if pattern := file.patterns.decides(names, folder=folder):
                return not pattern.keeps
        return False


@lru_cache(maxsize=16)
def _patterns(data: bytes, most_cost: int) -> tuple[PatternList, int, tuple[tuple[int, str], ...]]:
    """The patterns of a file, their cost, and the lines that are skipped with the reasons."""
    text = data[:MOST_BYTES].decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    found: list[Pattern] = []
    odd: list[tuple[int, str]] = []
    cost = 0
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            pattern = pattern_of(line)
        except ValueError as error:
            pattern = None
            odd.append((number, f"{line.strip()[:_SHOWN]!r} is skipped, because {error}"))
            cost += 1
        else:
            cost += pattern.cost if pattern else 0
        if cost > most_cost:
            odd.append(
                (number, "this line and those below are skipped, because there are too many rules")
            )
            return PatternList(found), most_cost, tuple(odd)
        if pattern is not None:
            found.append(pattern)
    if len(data) > MOST_BYTES:
        odd.append(
            (number, f"the rest is skipped, because the file is larger than {MOST_BYTES:,} bytes")
        )
    return PatternList(found), cost, tuple(odd)


def notices_of(odd: Iterable[Oddity], root: str) -> tuple[Notice, ...]:
    """One notice for all oddities, which names the first; none if there are none."""
    found = [str(one).removeprefix(root.rstrip(os.sep) + os.sep) for one in odd]
    if not found:
        return ()
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return (
        Notice("pattern_skipped", f"{found[0]}{more}", "fix or delete it; all other rules hold"),
    )
