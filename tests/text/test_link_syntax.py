"""What a note says of others, however it writes it."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.link_syntax import (
    candidates_for,
    edges_of,
    lineage,
    link_key,
    link_list,
    place_of,
    slug,
)
from notewell.text.markdown import parse
from notewell.types import Edge, End
from tests.growth import Linear


def said(text: str, path: str = "memory/a.md") -> list[tuple[str, str, str, str]]:
    """Kind, line, name and anchor of every edge."""
    return [(e.kind, e.start.anchor, e.end.name, e.end.anchor) for e in edges_of(path, parse(text))]


@pytest.mark.parametrize(
    ("text", "name", "anchor"),
    [
        ("see [[Deploy]]", "Deploy", ""),
        ("see [[Deploy|how we deploy]]", "Deploy", ""),
        ("see [[Deploy#Rollback plan|back]]", "Deploy", "Rollback plan"),
        ("see [[ops/Deploy#One#Two]]", "ops/Deploy", "Two"),
        ("see [[Deploy#^b1]]", "Deploy", "^b1"),
        ("![[Deploy]]", "Deploy", ""),
        ("[[#Below]]", "memory/a.md", "Below"),
        ("see [it](deploy.md)", "deploy.md", ""),
        ("see [it](../deploy.md#rollback-plan)", "../deploy.md", "rollback-plan"),
        ("see [it](deploy.md#L3-L9)", "deploy.md", "L3-L9"),
        ("see [it](deploy.md#l9-3)", "deploy.md", "L9"),
        ("see [it](deploy.md:3-9)", "deploy.md", "L3-L9"),
        ('see [it](deploy.md "the plan")', "deploy.md", ""),
        ("see [it](<my notes.md>)", "my notes.md", ""),
        ("see [it](my%20notes.md#a%20b)", "my notes.md", "a b"),
        ("see [it](notes_(old).md)", "notes_(old).md", ""),
        ("see [it][ref]\n\n[ref]: deploy.md#x", "deploy.md", "x"),
        ("- item\n- see [[Deploy]]", "Deploy", ""),
        ("| a |\n| - |\n| [[Deploy]] |", "Deploy", ""),
        ("# About [[Deploy]]\n\ntext", "Deploy", ""),
        ("[[数据库#备份]]", "数据库", "备份"),
        ("[[Cafe\u0301]]", "Café", ""),
        ("a ` b [[Deploy]]", "Deploy", ""),
    ],
)
def test_a_link_names_a_note_and_a_place_in_it(text: str, name: str, anchor: str) -> None:
    found = said(text)
    assert [f[2:] for f in found] == [(name, anchor)]
    assert found[0][0] == "references"


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/a.md and [x](https://example.org/a.md) and <mailto:a@b.c>",
        "[x](mailto:a@b.c) [x](//host/a.md) [x](data:text/plain,hi)",
        "`[[Deploy]]` and ``a ` [x](deploy.md)``",
        "`one\n[[Deploy]]\ntwo`",
        "```\n[[Deploy]]\n```",
        "- item\n\n  ```md\n  [x](deploy.md)\n  ```\n- more",
        "~~~\n[[Deploy]]",
        "    [[Deploy]] in an indented block",
        "<!-- [[Deploy]] -->",
        "![a picture](deploy.png) ![[deploy.png]]",
        "[[]] [[#]] [x]() [x](#) [^1]: deploy.md",
        "[[http://example.org]]",
        "[ ](",
    ],
)
def test_what_is_no_link_makes_no_edge(text: str) -> None:
    assert said(text) == []


def test_lines_are_counted_in_the_file() -> None:
    text = "---\ntitle: x\n---\n\n# Head\n\nfirst\nsecond [[B]] and [[C]]\n\n- `x`\n- [d](d.md)\n"
    assert [f[1:3] for f in said(text)] == [("L8", "B"), ("L8", "C"), ("L11", "d.md")]


def test_the_same_link_twice_on_a_line_is_one_edge() -> None:
    assert len(said("[[B]] and [[B]]\n[[B]]")) == 2


def test_front_matter_speaks_for_the_whole_note() -> None:
    text = """---
derives_from: [memory/a.md, "memory/b.md#Head"]
supersedes: memory/old.md
references:
  - "[[Deploy|x]]"
  - memory/c.md:3-9
causes: j625jnjoezvd, memory/d.md
conflicts-with: [[Other]]
links: ["blocks memory/e.md", "part_of: memory/f.md", "NOT memory/g.md", "alone"]
title: memory/h.md
---
text
"""
    assert said(text) == [
        ("derives_from", "", "memory/a.md", ""),
        ("derives_from", "", "memory/b.md", "Head"),
        ("supersedes", "", "memory/old.md", ""),
        ("references", "", "Deploy", ""),
        ("references", "", "memory/c.md", "L3-L9"),
        ("causes", "", "j625jnjoezvd", ""),
        ("causes", "", "memory/d.md", ""),
        ("conflicts_with", "", "Other", ""),
        ("blocks", "", "memory/e.md", ""),
        ("part_of", "", "memory/f.md", ""),
    ]


def test_an_address_in_front_matter_is_no_place_here() -> None:
    assert said("---\nreferences: https://example.org/a.md\n---\n") == []
    assert place_of("") is None
    assert place_of("  ") is None
    assert place_of("[text](memory/a.md#L3)") == End("memory/a.md", "L3")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("memory/Deploy.md", "deploy"),
        ("../x/v1.2.md", "V1.2"),
        ("a/b/Note.markdown", "note.MD"),
        (
            "s/rollout-2026-11-15-0195a2c4-1111-7222-8333-444455556666.jsonl",
            "0195a2c4-1111-7222-8333-444455556666",
        ),
    ],
)
def test_a_name_and_its_path_have_one_key(a: str, b: str) -> None:
    assert link_key(a) == link_key(b)


def test_headings_are_named_as_links_name_them() -> None:
    assert slug("Staging  port: changed!") == "staging-port-changed"
    assert slug("staging-port-changed") == "staging-port-changed"
    assert slug("备份 计划") == "备份-计划"


def test_a_name_is_tried_from_its_note_first_then_from_the_root() -> None:
    assert candidates_for("b.md", "memory/x/a.md")[0] == "memory/x/b.md"
    assert "b.md" in candidates_for("b.md", "memory/x/a.md")
    assert candidates_for("../b", "memory/x/a.md")[:2] == ["memory/b", "memory/b.md"]
    assert candidates_for("/memory/b.md", "memory/x/a.md")[:2] == ["/memory/b.md", "memory/b.md"]
    assert not any(c.startswith("..") for c in candidates_for("../../../etc/passwd", "memory/a.md"))


def test_a_session_that_continues_another_derives_from_it() -> None:
    records: list[dict[str, object]] = [
        {"uuid": "m1", "parentUuid": "m0", "sessionId": "one"},
        {"uuid": "m2", "parentUuid": "m1", "sessionId": "two"},
        {"type": "summary", "leafUuid": "x9"},
        {"type": "session_meta", "payload": {"id": "two", "forked_from_id": "zero"}},
        {"forkedFrom": {"sessionId": "three", "messageUuid": "q"}},
        {"sessionId": 7, "parentUuid": None, "payload": "text"},
    ]
    found = lineage(
        "sessions/two.jsonl",
        records,
        own="two",
        known={"m0": "sessions/one.jsonl", "m1": "no.jsonl"},
    )
    assert {e.kind for e in found} == {"derives_from"}
    assert {e.start for e in found} == {End("sessions/two.jsonl")}
    assert [e.end.name for e in found] == ["one", "zero", "three", "sessions/one.jsonl"]
    assert lineage("s.jsonl", [{"sessionId": "own"}], own="own") == []


PIECES = (
    "[[",
    "]]",
    "](",
    ")",
    "[",
    "a.md",
    "#",
    "|",
    "`",
    "``",
    "```",
    "~~~",
    "\n",
    "- ",
    "    ",
    "<!--",
    "-->",
    "!",
    "---",
    ":",
)


@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_and_lines_are_in_it(text: str) -> None:
    parsed = parse(text)
    found = edges_of("memory/a.md", parsed)
    assert len(set(found)) == len(found)
    for edge in found:
        assert isinstance(edge, Edge)
        assert edge.end.name
        assert "\n" not in edge.end.name + edge.end.anchor
        if edge.start.anchor:
            assert 1 <= int(edge.start.anchor[1:]) <= len(parsed.lines)


@given(
    st.text(string.ascii_letters + string.digits + " ä数._-", min_size=1, max_size=20)
    .map(str.strip)
    .filter(bool),
    st.text(string.ascii_letters + " ", max_size=10),
    st.text(string.ascii_letters + " .,", max_size=30),
)
@settings(max_examples=100, deadline=None)
def test_a_wiki_link_is_found_wherever_it_stands(name: str, heading: str, around: str) -> None:
    text = f"x{around} [[{name}#{heading}|alias]] {around}"
    (found,) = edges_of("n.md", parse(text))
    assert found.end.name.split() == name.split()
    assert found.end.anchor == " ".join(heading.split())


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10**6,
        "](" * 10**6,
        "`" * 1_000_001,
        "[[a" * 400_000,
        "](" + " " * 10**6,
        "[[a]]\n" * 150_000,
    ],
)
def test_a_hostile_note_costs_no_more_than_its_length(text: str, linear: Linear) -> None:
    linear(lambda one: edges_of("a.md", parse(one)), text)


@pytest.mark.parametrize(
    ("text", "share", "names"),
    [
        ("", 0.0, set()),
        ("# Index\n\n- [[a]]\n- [[b#x|B]]\n- [C](docs/c.md)\n", 1.0, {"a", "b", "docs/c"}),
        ("- [[a]]", 1.0, {"a"}),
        ("# [[a]]", 0.0, set()),
        ("- [[a]]\n- [[b]]\n- [[c]]\nOne more line without any link.", 0.75, {"a", "b", "c"}),
        (
            "See [[a]], [[b]] and [[c]] for what the council decided about the pond in spring.",
            0.0,
            set(),
        ),
        (
            "* [How to do it](https://x.org/til/Do%20It.md?plain=1#top) - 2021-02-03\n" * 3,
            1.0,
            {"https://x.org/til/do it"},
        ),
    ],
)
def test_a_list_of_links_is_known_by_its_lines(text: str, share: float, names: set[str]) -> None:
    assert link_list(text) == (share, frozenset(names))
