"""The man page: every command and option, and nothing that roff would take for a request."""

from __future__ import annotations

import re
import shutil
import subprocess

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.surfaces.cli.commands import cli
from tools.man import escaped, page, paragraphs

_REQUESTS = {".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi", ".RS", ".RE", ".B", ".br"}


def test_every_command_and_option_is_there() -> None:
    text = page().replace("\\-", "-")
    for name, command in cli.commands.items():
        assert f"\n.SS notewell {name} " in text
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.opts[-1] in text


def test_only_the_requests_that_are_meant_begin_a_line() -> None:
    found = {line.split()[0] for line in page().splitlines() if line.startswith((".", "'"))}
    assert found <= _REQUESTS


@given(st.text())
def test_no_text_becomes_a_request(text: str) -> None:
    assert not any(line.startswith((".", "'")) for line in escaped(text).split("\n"))


def test_examples_keep_their_lines() -> None:
    first, second = paragraphs("One\ntwo.\n\n\b\na  b\nc")
    assert first == ".PP\nOne two."
    assert "\na  b\nc\n" in second


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_reads_it() -> None:
    done = subprocess.run(
        ["man", "--warnings", "-l", "-"], input=page(), capture_output=True, text=True, check=True
    )
    assert not re.search(r"warning", done.stderr)
    assert "NOTEWELL(1)" in done.stdout
