"""Cutting, reading and pairing of training text."""

from __future__ import annotations

import json
import random
from pathlib import Path

from training.text import common, python_code
from training.text.common import Group, Unique, cut, group, write
from training.text.html_pages import read_html
from training.text.man_pages import read_man
from training.text.markdown_pages import read_markdown
from training.text.sections import groups
from training.text.spoken import third_person

PROSE = (
    "The pool is emptied every night and filled again in the morning, which takes two hours or "
    "more. "
) * 3


def test_passages_keep_paragraph_borders_and_bounds() -> None:
    paragraphs = [f"{number} {PROSE}".strip() for number in range(12)]
    passages = cut(paragraphs)
    assert all(common.SHORTEST <= len(text) <= common.LONGEST for text in passages)
    assert "\n\n".join(passages) == "\n\n".join(paragraphs)


def test_a_long_paragraph_is_cut_at_sentences_or_words() -> None:
    assert all(
        text.endswith(".")
        for text in cut([PROSE.strip() * 1 + " " + PROSE.strip() * 9], longest=700)
    )
    assert all(len(text) <= 500 for text in cut(["word " * 900], longest=500))
    assert cut(["x" * 5000])[0] == "x" * common.LONGEST


def test_texts_out_of_bounds_make_no_group() -> None:
    assert group("x", "q", ["a passage that is long enough to stay"]) is None
    assert group("x", "query", ["short"]) is None
    made = group("x", "query", [PROSE, "short", PROSE[:90], PROSE[:80], PROSE[:70]])
    assert made is not None
    assert [kind for kind, _ in made.texts] == ["q", "p", "p", "p"]


def test_identical_groups_are_kept_once_and_written_whole(tmp_path: Path) -> None:
    one = Group("x", "en", (("q", "query"), ("p", PROSE)))
    other = Group("x", "en", (("q", "another query"), ("p", PROSE)))
    prose = Group("x", "en", (("p", PROSE), ("p", PROSE[:90])))
    path = tmp_path / "text" / "en-x.jsonl"
    counts = write(path, Unique().groups([one, one, other, prose]))
    assert counts["groups"] == 2
    assert [json.loads(line)["texts"][0][1] for line in path.read_text().splitlines()] == [
        "query",
        "another query",
    ]
    assert list(path.parent.iterdir()) == [path]


def test_html_gives_headings_terms_and_code() -> None:
    sections = read_html(
        "<html><title>ls — Tools</title><body><div class='sphinxsidebar'><p>menu</p></div>"
        "<h1>ls<a class='headerlink'>¶</a></h1><p>Lists &amp; sorts.</p><h2>1.2. Options</h2>"
        "<dl><dt>-l</dt><dd><p>Long form.</p></dd></dl><pre>ls -l\n  x</pre></body>"
    )
    assert [(section.page, section.title) for section in sections if section.blocks] == [
        ("ls", "ls"),
        ("ls", "Options"),
    ]
    assert [(block.kind, block.text) for block in sections[-1].blocks] == [
        ("dt", "-l"),
        ("p", "Long form."),
        ("code", "ls -l\n  x"),
    ]


def test_manual_pages_give_sections_and_options() -> None:
    sections = read_man(
        '.TH X 1\n.SH OPTIONS\n.TP\n.BR \\-a ", " \\-\\-all\nShow \\fBall\\fR files.\n.PP\nMore.',
        "x",
    )
    assert [(block.kind, block.text) for block in sections[0].blocks] == [
        ("dt", "-a, --all"),
        ("p", "Show all files."),
        ("p", "More."),
    ]


def test_markdown_gives_sections_without_badges() -> None:
    sections = read_markdown(
        (
            "# Tool\n\n[![x](y)](z)\n\nDoes [this](http://x).\n\n## Use\n\n- a\n- b\n\n```sh\ntool "
            "-x\n```\n"
        ),
        "p",
    )
    assert [(section.page, section.title, len(section.blocks)) for section in sections[1:]] == [
        ("Tool", "Tool", 1),
        ("Tool", "Use", 3),
    ]
    assert sections[1].blocks[0].text == "Does this."


def test_a_lead_in_finds_its_command_and_a_heading_its_section() -> None:
    code = "```\ntool list --since 7d --all --verbose\n```\n"
    text = (
        f"# Tool\n\n## Restore a backup\n\n{PROSE}\n\nTo list all backups of the last week, "
        f"run:\n\n{code}"
    )
    made = list(groups("notes", read_markdown(text, "tool"), random.Random(0), fenced=True))
    assert any(
        each.source == "notes-task" and each.texts[1][1].startswith("tool list") for each in made
    )
    assert any(
        "backup" in each.texts[0][1].lower() and PROSE[:40] in each.texts[1][1] for each in made
    )


def test_a_function_loses_its_docstring() -> None:
    text = (
        'def total(values):\n    """Add up all of the given values.\n\n    More.\n    """\n'
        "    found = 0\n    for value in values:\n        found += value\n    return found\n"
    )
    made = list(python_code._of_file(text, random.Random(1)))
    assert len(made) == 1
    assert "def total(values):" in made[0].texts[1][1]


def test_a_speaker_is_told_about_by_name() -> None:
    assert (
        third_person("I'm sure I left my keys there", "Anna")
        == "Anna is sure they left their keys there"
    )
