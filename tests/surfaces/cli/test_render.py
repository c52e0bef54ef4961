from __future__ import annotations

import io
import sys

import pytest

from notewell.surfaces.cli.render import Bar, highlight, one_line, printable
from notewell.types import Estimate, Notice

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


@pytest.mark.parametrize(
    "char", ["\x00", "\x07", "\x08", "\x1b", "\x7f", "\x85", "\x9b", "\r", "\u202e", "\u2066"]
)
def test_what_steers_a_terminal_is_replaced(char: str) -> None:
    assert printable(f"a{char}b") == "a�b"


def test_lines_tabs_and_every_script_stay() -> None:
    assert printable("a\tb\nü 日本 \U0001f600") == "a\tb\nü 日本 \U0001f600"
    assert one_line("a\nb\x1b\u202e\u2028 ü") == r"a\nb\x1b\u202e\u2028 ü"


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


def test_progress_in_a_pipe_is_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    seconds = iter([100.0, 104.0, 111.0, 115.0, 122.0])
    monkeypatch.setattr("notewell.surfaces.cli.render.time.monotonic", lambda: next(seconds))
    bar = Bar()
    for done in (100, 200, 1100, 1500, 2200):
        bar("notes", done, 2300)
    assert pipe.getvalue() == "notes: 1,100 of 2,300, 12 s left\nnotes: 2,200 of 2,300, 1 s left\n"


def test_an_estimate_begins_on_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    bar = Bar()
    bar("vectors", 8, 557)
    bar.estimate(Estimate("local", 557, 9000, seconds=90.0))
    assert "8/557\x1b[K\n557 passages to embed with local: about 1 min 30 s\n" in screen.getvalue()


def test_a_notice_goes_to_stderr_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    from notewell.surfaces.cli import render

    render.notices([Notice("code", "something is so", "do this"), Notice("code", "so be it")])
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "note: something is so (do this)\nnote: so be it\n"
