"""Shell completion: the scripts that are printed, and what they are told in a real process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from notewell.settings import AGENTS
from notewell.surfaces.cli.commands import run

ASK = (
    "import sys; sys.argv[0] = 'notewell'; from notewell.surfaces.cli.commands import run; "
    "sys.exit(run([]))"
)


def complete(line: str, number: int) -> list[str]:
    """What bash would be offered for the word of this number."""
    env = {
        **os.environ,
        "_NOTEWELL_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(number),
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""
    return [one.partition(",")[2] for one in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--completion", shell]) == 0
    said = capsys.readouterr().out
    assert "_NOTEWELL_COMPLETE" in said
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=said, text=True, check=True, timeout=30)


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err


def test_commands_options_and_values_are_offered() -> None:
    assert {"search", "serve", "status"} <= set(complete("notewell s", 1))
    assert "--since" in complete("notewell search --si", 2)
    known = {"memory", "extra", "sessions", "media", "documents", *AGENTS}
    assert set(complete("notewell search --source ", 3)) == known
    assert complete("notewell search --profile open", 3) == ["openclaw", "openclaw-2026.2.13"]
