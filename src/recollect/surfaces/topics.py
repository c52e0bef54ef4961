"""The commands of the top help, by what they are for."""

from __future__ import annotations

from collections.abc import Mapping

import click

TOPICS: Mapping[str, tuple[str, ...]] = {
    "Find": ("search", "get", "why", "timeline", "trace"),
    "Write": ("remember", "forget", "link"),
    "Index": ("index", "watch", "status", "doctor", "migrate"),
    "Agents and browser": ("install", "mcp", "serve"),
    "Set up and measure": ("init", "config", "eval", "demo"),
}
_LONGEST = 90


def write(formatter: click.HelpFormatter, commands: Mapping[str, click.Command]) -> None:
    """Writes a section for each topic; a command of no topic stands under "More"."""
    known = {name for names in TOPICS.values() for name in names}
    topics = {**TOPICS, "More": tuple(sorted(set(commands) - known))}
    width = max(map(len, commands))
    for topic, names in topics.items():
        shown = [commands[n] for n in names if n in commands and not commands[n].hidden]
        if shown:
            with formatter.section(topic):
                rows = [(f"{c.name:<{width}}", c.get_short_help_str(_LONGEST)) for c in shown]
                formatter.write_dl(rows)
