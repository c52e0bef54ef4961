"""Writes the man page from the help of the commands: `python -m tools.man FILE`."""

from __future__ import annotations

import datetime as dt
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from notewell import __version__
from notewell.surfaces.cli.commands import TOPICS, cli
from tools.dist import epoch

FILES = (
    ("notewell.toml", "settings of the workspace; only those that cannot send notes anywhere"),
    ("~/.config/notewell/config.toml", "your own settings"),
    (".notewell/index.sqlite", "the index; delete it at any time"),
)
CODES = (
    ("0", "done; no hits is not a failure"),
    ("1", "failed"),
    ("2", "wrong usage"),
    ("130", "interrupted"),
)


def escaped(text: str) -> str:
    """Text as roff prints it: no line is a request, and a hyphen is a minus sign that can be
    copied.
    """
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(
        f"\\&{line}" if line.startswith((".", "'")) else line for line in text.splitlines()
    )


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help text; those that click does not wrap keep their lines."""
    for part in inspect.cleandoc(text).split("\n\n"):
        lines = part.splitlines()
        if lines and lines[0] == "\b":
            yield ".PP\n.nf\n.RS\n" + escaped("\n".join(lines[1:])) + "\n.RE\n.fi"
        elif lines:
            yield ".PP\n" + escaped(" ".join(lines))


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """The options of a command with their help."""
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None:
            yield f".TP\n\\fB{escaped(record[0])}\\fR\n{escaped(record[1]) or 'see above'}"


def page() -> str:
    """The whole page."""
    day = dt.datetime.fromtimestamp(int(epoch()), tz=dt.UTC).date().isoformat()
    context = click.Context(cli, info_name="notewell")
    parts = [
        f'.TH NOTEWELL 1 "{day}" "notewell {__version__}" "User Commands"',
        ".SH NAME\nnotewell \\- local memory search for people and their agents",
        (
            ".SH SYNOPSIS\n.B notewell\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]\n.br\n.B "
            "notewell\n\\fIWORDS\\fR"
        ),
        ".SH DESCRIPTION",
        *paragraphs(cli.help or ""),
        ".SH OPTIONS",
        *options(cli, context),
    ]
    for topic, names in TOPICS.items():
        parts.append(f".SH {escaped(topic.upper())}")
        for name in names:
            command = cli.commands[name]
            own = click.Context(command, info_name=name, parent=context)
            usage = " ".join(command.collect_usage_pieces(own))
            parts.append(f".SS notewell {name} {escaped(usage)}")
            parts += [*paragraphs(command.help or ""), *options(command, own)]
    for title, rows in (("FILES", FILES), ("EXIT STATUS", CODES)):
        parts += [
            f".SH {title}",
            *(f".TP\n\\fB{escaped(name)}\\fR\n{escaped(text)}" for name, text in rows),
        ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Writes the page to the file that is named."""
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
