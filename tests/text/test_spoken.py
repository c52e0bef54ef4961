"""What programs put around words, and that taking it away is quick."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from notewell.text.spoken import of_agent, of_user
from tests.growth import Linear


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<user_input mode="act">Which port?</user_input>', "Which port?"),
        ("<user_query>\nWhich port?\n</user_query>", "Which port?"),
        (
            "<task>\nWhich port?\n</task>\n<environment_details>x</environment_details>",
            "Which port?",
        ),
        ("<current_datetime>2026-11-16</current_datetime>\n\nWhich port?", "Which port?"),
        ("[read_file for 'a.md'] Result:\nquartz", ""),
        (
            "[execute_command] Result:\nquartz\n<feedback>Use 8443 instead.</feedback>",
            "Use 8443 instead.",
        ),
        ("if a < b and c > d: what is <task> here", "if a < b and c > d: what is  here"),
    ],
)
def test_the_words_of_the_user_stay(text: str, said: str) -> None:
    assert of_user(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            (
                "<attempt_completion>\n<result>\nIt is 8443.\n</result>\n"
                "<command>open x</command>\n</attempt_completion>"
            ),
            "It is 8443.",
        ),
        (
            "<ask_followup_question>\n<question>Which host?</question>\n</ask_followup_question>",
            "Which host?",
        ),
        ("I look.\n<read_file>\n<path>a.md</path>\n</read_file>", "I look."),
        (
            "Use <read_file> to read a file.</read_file>",
            "Use <read_file> to read a file.</read_file>",
        ),
        ("The <result> tag is HTML.", "The <result> tag is HTML."),
    ],
)
def test_the_words_of_the_assistant_stay(text: str, said: str) -> None:
    assert of_agent(text) == said


@pytest.mark.parametrize(
    "piece",
    ["<task>", "<read_file><", "[x] Result:<feedback>", "</task>", "<attempt_completion><command>"],
)
@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("[x] Result:", ""), ("", "</read_file></x")]
)
@pytest.mark.parametrize("read", [of_user, of_agent])
def test_no_text_takes_longer_than_its_length_warrants(
    piece: str, before: str, after: str, read: Callable[[str], str], linear: Linear
) -> None:
    linear(lambda text: read(f"{before}{text}{after}"), piece * 100_000)
