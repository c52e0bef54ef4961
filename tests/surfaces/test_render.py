from __future__ import annotations

import io
import sys

import pytest

from recollect.surfaces.render import Bar, highlight, one_line, printable
from recollect.types import Notice

BOLD = "\x1b[33m\x1b[1m"


def test_the_words_that_were_asked_for_stand_out_in_any_of_their_forms() -> None:
    shown = highlight("Deploys run; the deploy key is new.", "deploying")
    assert shown.count(BOLD) == 2
    assert f"{BOLD}Deploys\x1b[0m run" in shown


def test_nothing_stands_out_when_nothing_was_asked_for() -> None:
    assert highlight("Deploys run.", "zeppelin") == "Deploys run."


def test_the_only_codes_in_a_highlighted_text_are_ours() -> None:
    shown = highlight("\x1b[31mport\x1b[0m", "port")
    assert shown.replace(BOLD, "").replace("\x1b[0m", "") == "�[31mport�[0m"


@pytest.mark.parametrize("char", ["\x00", "\x07", "\x08", "\x1b", "\x7f", "\x85", "\x9b", "\r", "\u202e", "\u2066"])
def test_what_steers_a_terminal_is_replaced(char: str) -> None:
    assert printable(f"a{char}b") == "a�b"


def test_lines_tabs_and_every_script_stay() -> None:
    assert printable("a\tb\nü 日本 \U0001f600") == "a\tb\nü 日本 \U0001f600"
    assert one_line("a\nb") == "a�b"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_with_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    bar = Bar()
    bar("notes", 1, 2)
    bar("notes", 2, 2)
    bar("vectors", 0, 0)
    assert "notes [###############...............] 1/2" in screen.getvalue()
    assert screen.getvalue().endswith("2/2\x1b[K\n")


def test_progress_is_silent_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    Bar()("notes", 1, 2)
    assert pipe.getvalue() == ""


def test_a_notice_goes_to_stderr_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    from recollect.surfaces import render

    render.notices([Notice("code", "something is so", "do this"), Notice("code", "so be it")])
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "note: something is so (do this)\nnote: so be it\n"
