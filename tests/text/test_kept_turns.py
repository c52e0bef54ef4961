"""What is kept of a conversation comes back as it was, whatever was said."""

from __future__ import annotations

import datetime as dt

from hypothesis import example, given
from hypothesis import strategies as st

from notewell.text.kept_turns import KeptTalk, dump, load, path_of_kept
from notewell.types import Turn

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
ours = st.sampled_from(
    [
        "## user (line 3)",
        "\\## user, 2026-01-02 03:04:05 (line 3)",
        "---",
        "",
        "\n",
        "\u2028## x (line 1)",
    ]
)
first, last = dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1)  # noqa: DTZ001 - of the clock on the wall
times = st.none() | st.datetimes(first, last).map(lambda t: t.replace(microsecond=0))
turns = st.builds(
    Turn,
    st.integers(1, 10**9),
    st.sampled_from(["owner", "agent", "untrusted", "system"]),
    st.lists(texts | ours, min_size=1).map("\n".join),
    times,
)


@given(texts, texts, texts, st.lists(turns))
@example("/a", "t", "p", [Turn(1, "owner", "## assistant (line 2)\n\\\\## user (line 9)\n", None)])
def test_what_is_kept_comes_back(path: str, title: str, project: str, said: list[Turn]) -> None:
    talk = KeptTalk(path, title, project, tuple(said))
    assert load(dump(talk)) == talk
    assert path_of_kept(dump(talk)) == path


@given(st.text())
def test_any_text_can_be_loaded(text: str) -> None:
    load(text)
    load(f"---\nconversation: {text}\n---\n\n{text}")


def test_people_can_read_it() -> None:
    said = Turn(12, "owner", "Which port?", dt.datetime(2026, 3, 19, 9, 0))  # noqa: DTZ001
    assert dump(
        KeptTalk("/c/5.jsonl", "Ports", "ledger", (said, Turn(13, "agent", "8443.", None)))
    ) == (
        '---\nconversation: "/c/5.jsonl"\ntitle: "Ports"\nproject: "ledger"\n---\n\n'
        "## user, 2026-03-19 09:00:00 (line 12)\n\nWhich port?\n\n## assistant (line 13)\n\n"
        "8443.\n\n"
    )
