"""Small talk, commands and confirmations, in many languages; anything that a note could be about is
not.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.text.small_talk import says_something


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "   ",
        "\x00",
        "ok",
        "OK!",
        "Yes, please.",
        "thanks a lot",
        "go ahead",
        "👍",
        "...",
        "1",
        "lgtm, ship it",
        "/clear",
        "/model opus",
        "!ls -la",
        "$ pwd",
        "git status",
        "git commit -m wip",
        "<task-notification>\nThe build is done.",
        "danke, passt so",
        "d'accord, merci",
        "vale, gracias",
        "да, спасибо",
        "好的，谢谢",
        "はい、お願いします",
        "네, 감사합니다",
        "tamam, devam et",
        "fix the failing test",
        "why did you do that?",
        "do the same for the other file",
        "i\u00adt’s ok",
    ],
)
def test_nothing_is_asked(prompt: str) -> None:
    assert not says_something(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "which port does staging use",
        "ok, now deploy to staging",
        "who is Lotte",
        "/etc/hosts is ignored on staging",
        "git rebase -i fails with a conflict in the lock file",
        "deploy",
        "数据库多久备份一次",
        "备份",
        "error E0308",
        "docker build fails on the runner",
        "fix the bug in the parser",
        "ok " * 200,
    ],
)
def test_something_is_asked(prompt: str) -> None:
    assert says_something(prompt)


@given(st.text())
def test_any_text_is_one_or_the_other(prompt: str) -> None:
    assert says_something(prompt) in (True, False)
