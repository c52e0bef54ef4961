"""Recall beside conversations in which the same questions were asked and nothing was found.

Each prompt about the sample notes was asked in Claude Code before; the notes must help as much as
without those conversations, and nothing of the failures may be given, however they are worded.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.settings import HookSettings
from notewell.surfaces.hooks.recall import recall
from notewell.types import Hit
from tools.recall import NOTES, Prompt, prompts

# A passage that is hardly sure enough may fall below the bar when there is more beside it.
SPARE = 0.02
PROMPTS = [p for p in prompts() if (p.notes, p.kind) == ("sample", "on")][:30]
FAILURES = (
    "I looked through the project files but could not find anything. Shall I search git as well?",
    "I searched the notes and the repository, and there is no mention of this anywhere.",
    "I don't have any information about that. If you share the relevant document, I can help.",
    "I've gone through everything I can see and I can't tell you. It isn't documented here.",
    "The notes mention related things, but not this. Want me to create one?",
)
# Written by somebody who had not read the rules, which know few of them.
OTHER_FAILURES = (
    (
        "Sorry, I have no idea. Nothing relevant came up in memory; maybe ask a colleague who was "
        "around at the time."
    ),
    (
        "Hmm, that isn't covered in any of the Markdown files. The closest is deploy.md, which is "
        "about something else."
    ),
    "I'm afraid I drew a blank here. You may want to check Confluence or Slack.",
    "My search for {asked} returned zero results.",
    (
        "That information doesn't appear to exist in the codebase. Typically, teams keep such a "
        "thing in a runbook."
    ),
    (
        "I checked `MEMORY.md` and `memory/auth.md`:\n\n- MEMORY.md: only general facts\n\nSo I "
        'can\'t answer "{asked}".'
    ),
    "Das geht aus den Dateien nicht hervor.",
    "Keine Ahnung – in den Unterlagen steht dazu kein Wort.",
    "Hierzu liegen mir keine Informationen vor. Bitte frag jemanden aus dem Team.",
    "这个问题在现有文件中没有记载。",
    "很遗憾，目前的资料里看不到相关说明，建议您询问团队成员。",
    "メモには書かれていないようです。",
)
# Prompts of before, in other words, each with the note that answers.
REWORDED = {
    "for how many days is a refresh token good": "memory/auth.md",
    "refresh token lifetime": "memory/auth.md",
    "what does Sam want first in an answer?": "MEMORY.md",
    "exit code 137 in the test container": "memory/errors.md",
    "who approves schema changes": "memory/2026-04-07.md",
    "ECONNRESET payment provider": "memory/2026-05-19.md",
}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    root = shutil.copytree(NOTES["sample"], tmp_path_factory.mktemp("quiet") / "notes")
    with Memory.open(root, env={}) as memory:
        memory.sync()
        yield memory


@pytest.fixture(scope="module", params=[FAILURES, OTHER_FAILURES], ids=["known wordings", "others"])
def talked_about(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Memory]:
    base = tmp_path_factory.mktemp("talked")
    root = shutil.copytree(NOTES["sample"], base / "notes")
    chats = base / "chats"
    chats.mkdir()
    for number, (prompt, failure) in enumerate(zip(PROMPTS, cycle(request.param), strict=False)):
        (chats / f"{number:08d}.jsonl").write_text(transcript(root, number, prompt, failure))
    with Memory.open(
        root, env={}, sources=["memory", "sessions"], sessions__paths=[str(chats)]
    ) as memory:
        memory.sync()
        yield memory


def transcript(root: Path, number: int, prompt: Prompt, failure: str) -> str:
    about = {"timestamp": f"2026-11-10T14:{number:02d}:00.000Z", "cwd": str(root)}
    text = failure.format(asked=prompt.text)
    said = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    rows = (
        {"type": "summary", "summary": prompt.text},
        {"type": "user", **about, "message": {"role": "user", "content": prompt.text}},
        {"type": "assistant", **about, "message": said},
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def given(memory: Memory, prompt: Prompt) -> list[Hit]:
    return recall(memory, prompt.text, HookSettings())[1]


def answers(hit: Hit, prompt: Prompt) -> bool:
    return prompt.is_answered_by(hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line)


def is_first(memory: Memory, prompt: Prompt) -> bool:
    return any(answers(hit, prompt) for hit in memory.search(prompt.text, limit=1).hits)


def test_every_prompt_that_is_helped_is_helped_after_it_failed_once(
    notes: Memory, talked_about: Memory
) -> None:
    sure = HookSettings().confidence + SPARE
    helped = [
        prompt
        for prompt in PROMPTS
        if any(answers(h, prompt) and h.confidence >= sure for h in given(notes, prompt))
    ]
    assert len(helped) > len(PROMPTS) / 2
    lost = [p.text for p in helped if not any(answers(h, p) for h in given(talked_about, p))]
    assert lost == []


def test_a_question_in_other_words_is_helped_too(notes: Memory, talked_about: Memory) -> None:
    def helped(memory: Memory) -> set[str]:
        found = {
            text: {h.chunk.path for h in recall(memory, text, HookSettings())[1]}
            for text in REWORDED
        }
        return {text for text, path in REWORDED.items() if path in found[text]}

    assert len(helped(notes)) > len(REWORDED) / 2
    assert helped(talked_about) >= helped(notes)


def test_nothing_of_the_failures_is_given(talked_about: Memory) -> None:
    for prompt in PROMPTS:
        found = talked_about.search(prompt.text, limit=100).hits
        assert any(h.chunk.text == prompt.text for h in found), "the old question is read"
        assert [
            h.chunk.text for h in given(talked_about, prompt) if h.chunk.source == "sessions"
        ] == []


def test_a_search_puts_the_note_before_the_old_question(
    notes: Memory, talked_about: Memory, request: pytest.FixtureRequest
) -> None:
    known = "known wordings" in request.node.name
    first = [prompt for prompt in PROMPTS if is_first(notes, prompt)]
    lost = [prompt.text for prompt in first if not is_first(talked_about, prompt)]
    tops = [talked_about.search(prompt.text, limit=1).hits[0] for prompt in PROMPTS]
    assert [top.chunk.source for top in tops].count("sessions") <= (0 if known else 1)
    assert len(first) > len(PROMPTS) / 2
    assert len(lost) <= (1 if known else 2), (
        "words that were asked for often count less, so two notes may change places"
    )
