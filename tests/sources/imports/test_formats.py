"""Each format: what is taken from an export, what is left out, and who said it when."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notewell.index.dedupe import _SUPERSEDES
from notewell.sources.imports.bundle import Bundle
from notewell.sources.imports.formats import JSON_FORMATS, format_of_values
from notewell.sources.imports.items import Item, moment, paragraphs, turn
from notewell.sources.imports.rendering import note_of
from notewell.text.markdown import parse
from tests.fuzz.targets import record, value
from tests.sources.imports.made import EXPORTS, items, words

NEVER = ("abandoned", "system", "tool", "call", "thought", "signal", "deleted", "script", "style")
FORMAT_OF = {
    "chatgpt.json": "chatgpt",
    "claude.json": "claude",
    "claude-memories.json": "claude",
    "claude-projects.json": "claude",
    "memory.jsonl": "mcp-memory",
    "basic-memory.md": "basic-memory",
    "basic-memory.json": "basic-memory",
    "mem0.json": "mem0",
    "openmemory.json": "mem0",
    "letta.af": "letta",
    "letta-v1.af": "letta",
    "letta-passages.json": "letta",
    "page.html": "html",
}


@pytest.mark.parametrize("name", sorted(FORMAT_OF))
def test_every_format_is_known_by_its_shape(name: str) -> None:
    found = list(Bundle(str(EXPORTS / name)).items())
    assert {kind.name for kind, _ in found} == {FORMAT_OF[name]}
    assert all(item.id and item.title and item.parts and item.made for _, item in found)
    assert len({item.id for _, item in found}) == len(found)


def test_every_fixture_is_read() -> None:
    assert set(FORMAT_OF) == {place.name for place in EXPORTS.iterdir()}


@pytest.mark.parametrize("name", sorted(FORMAT_OF))
def test_tools_thoughts_and_what_was_thrown_away_are_left_out(name: str) -> None:
    said = words(items(EXPORTS / name))
    assert [word for word in NEVER if f"{word} words" in said] == []


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).astimezone().replace(tzinfo=None)


def test_a_conversation_of_chatgpt_is_the_one_that_was_shown_last() -> None:
    (item,) = items(EXPORTS / "chatgpt.json")
    assert (item.title, item.id) == ("Port of staging", "67a678d3-a274-8191-94ee-7ca817b25b36")
    assert item.made == utc("2026-03-01T10:00:00Z")
    assert item.changed == utc("2026-03-01T10:01:40Z")
    asked, answered = item.parts
    time = f"{utc('2026-03-01T10:00:01Z'):%Y-%m-%d %H:%M}"
    assert asked.text == (
        f"## Which port does staging answer on?\n\n**User**, {time}:\n\n[image]\nWhich port does "
        "staging answer on?"
    )
    assert answered.text == f"**Assistant**, {time}:\n\nIt answers on 8443."
    assert [part.key for part in item.parts] == ["m1", "m6"]


def test_a_tree_that_runs_in_a_circle_or_has_no_end_is_read(tmp_path: Path) -> None:
    def node(name: str, parent: str | None) -> dict[str, Any]:
        message = {
            "id": name,
            "author": {"role": "user"},
            "content": {"content_type": "text", "parts": [name]},
        }
        return {"id": name, "parent": parent, "message": message}

    circle = {
        "title": "a",
        "current_node": "x",
        "mapping": {"x": node("x", "y"), "y": node("y", "x")},
    }
    headless = {"title": "b", "current_node": None, "mapping": {"z": node("z", None)}}
    place = tmp_path / "a.json"
    place.write_text(json.dumps([circle, headless]))
    assert [[part.key for part in item.parts] for item in items(place)] == [["y", "x"], ["z"]]


def test_a_conversation_of_claude_has_its_last_branch_and_the_names_of_files() -> None:
    (item,) = items(EXPORTS / "claude.json")
    assert item.made == utc("2026-03-02T09:00:00Z")
    assert [part.key for part in item.parts] == ["u1", "u3"]
    assert item.parts[0].text.startswith("## Which tea do the guests like?\n\n**User**")
    assert item.parts[0].text.endswith("like?\n\n[file: guests.txt]")
    assert item.parts[1].text.endswith("Oolong, from the first flush.")


def test_messages_of_claude_that_name_no_parent_are_all_there(tmp_path: Path) -> None:
    said = [{"uuid": str(n), "sender": "human", "text": f"word {n}"} for n in range(3)]
    place = tmp_path / "a.json"
    place.write_text(json.dumps([{"uuid": "c", "name": "", "chat_messages": said}]))
    (item,) = items(place)
    assert (item.title, len(item.parts)) == ("Conversation", 3)


def test_what_claude_remembers_and_projects_are_notes() -> None:
    whole, project = items(EXPORTS / "claude-memories.json")
    assert [part.text for part in whole.parts] == [
        "**Work**",
        "Writes firmware in Rust.",
        "**Home**",
        "Keeps bees.",
    ]
    assert "p-1" in project.title
    rules, text = items(EXPORTS / "claude-projects.json")
    assert (rules.origin, text.origin) == ("owner", "untrusted")
    assert text.title == "heating.md (Greenhouse)"
    assert text.parts[0].text == "## Heating"


def test_a_graph_becomes_a_note_for_each_thing_with_links() -> None:
    mieke, shop, ravi = items(EXPORTS / "memory.jsonl")
    assert [p.text for p in mieke.parts] == [
        "- Repairs clocks",
        "- Lives in Ghent\n  since 2019",
        "- works_at [[clock-shop-e0c628100c60|Clock shop]]",
    ]
    assert (shop.tags, ravi.tags) == (("place",), ())
    assert [p.text for p in ravi.parts] == ["- knows [[mieke-e84626f52981|Mieke]]"]


def test_a_graph_as_one_object_and_with_the_names_of_basic_memory(tmp_path: Path) -> None:
    entity = {"name": "a", "entityType": "t", "observations": ["one"]}
    place = tmp_path / "graph.json"
    place.write_text(
        json.dumps(
            {"entities": [entity], "relations": [{"from": "a", "to": "b", "relationType": "r"}]}
        )
    )
    assert [p.text for p in items(place)[0].parts] == ["- one", "- r [[b-24a5716b5389|b]]"]
    lines = [
        {
            "type": "entity",
            "entityName": "a",
            "entityType": "t",
            "observations": [{"content": "one"}],
        },
        {"type": "relation", "from_id": "a", "to_id": "b]] [[c", "relation_type": "r"},
    ]
    place.write_text("\n".join(map(json.dumps, lines)))
    assert [p.text for p in items(place)[0].parts] == ["- one", "- r [[b-c-34530c46d43f|b)) ((c]]"]


def test_a_note_of_basic_memory_keeps_its_words_and_its_front_matter() -> None:
    (item,) = items(EXPORTS / "basic-memory.md")
    text = note_of(item, "basic-memory")
    front = parse(text).front
    assert front["permalink"] == front["id"] == "coffee/brewing-methods"
    assert front["tags"] == ("coffee", "brewing")
    assert (front["date"], front["type"]) == ("2026-02-03", "note")
    assert text.count("# Coffee Brewing Methods") == 1
    assert "- relates_to [[Coffee Bean Origins]]" in text
    tea, cups = items(EXPORTS / "basic-memory.json")
    assert (tea.id, tea.parts[0].text) == ("tea/green", "- [fact] Steep at 80 degrees")
    assert [p.text for p in cups.parts] == ["- [count] Six of them", "- used_for [[Tea]]"]


def test_facts_of_mem0_are_one_note_for_each_owner_and_day() -> None:
    alice, bob = items(EXPORTS / "mem0.json")
    assert [p.text for p in alice.parts] == ["- Allergic to walnuts", "- Prefers window seats"]
    assert alice.made is not None
    assert alice.made.date() == utc("2026-02-01T18:00:00Z").date()
    assert bob.title.startswith("Memories of bob, 2026-02-0")
    assert words(items(EXPORTS / "openmemory.json")).count("- ") == 1


def test_an_agent_file_of_letta_has_blocks_and_what_was_said() -> None:
    human, talk = items(EXPORTS / "letta.af")
    assert human.title == "sam: human"
    assert [part.text for part in human.parts] == ["First name: Chad", "Sails on Sundays."]
    said = [part.text.rpartition("\n")[2] for part in talk.parts]
    assert said == ["Where do I sail?", "On the Zwin.", "Every Sunday."]
    assert talk.made == utc("2026-01-10T08:00:00Z")
    assert [item.title for item in items(EXPORTS / "letta-v1.af")] == [
        "kim: persona",
        "Conversation with kim",
    ]


def test_a_page_becomes_markdown() -> None:
    (item,) = items(EXPORTS / "page.html")
    assert (item.title, item.origin, item.name) == ("Bread & salt", "untrusted", "page.html")
    assert item.made == utc("2026-01-20T10:00:00Z")
    assert "\n\n".join(part.text for part in item.parts) == (
        "## Bread\n\nKnead for ten minutes, then [rest](https://example.org/rest) it.\n\n"
        "- flour\n  - rye\n- salt\n\n1. mix\n2. bake\n\n"
        "| size | minutes |\n| --- | --- |\n| small | 35 |\n\n"
        "```\noven  --at 230\n  <wait>\n```\n\n[image: a loaf]"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1772359200, "2026-03-01T10:00:00Z"),
        (1772359200000, "2026-03-01T10:00:00Z"),
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z"),
        (" 2026-03-01T10:00:00+00:00", "2026-03-01T10:00:00Z"),
    ],
)
def test_times_are_read_as_they_are_written(given: Any, expected: str) -> None:
    assert moment(given) == utc(expected)


@pytest.mark.parametrize(
    "given",
    [None, True, "", "yesterday", -5, 0, 1e300, float("nan"), float("inf"), [], {}, 10**400],
)
def test_what_is_no_time_is_none(given: Any) -> None:
    assert moment(given) is None


def test_what_somebody_says_cannot_break_the_note() -> None:
    part = turn("User", "# Loud\n\n```\n# not a heading\n\n---", None)
    assert part is not None
    assert part.text == "## Loud\n\n**User**:\n\n### Loud\n\n```\n# not a heading\n\n---\n```"
    odd = Item("i", "a: 'b' \"c\" \\ [d]", paragraphs("---\ntitle: x\n---"))
    assert parse(note_of(odd, "x")).front["title"] == 'a: ’b’ "c" \\ [d]'
    assert [p.text for p in paragraphs("a\n\n```\nb\n\nc\n```\n\nd")] == [
        "a",
        "```\nb\n\nc\n```",
        "d",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "mapping",
                    "current_node",
                    "message",
                    "author",
                    "role",
                    "content",
                    "parts",
                    "content_type",
                    "chat_messages",
                    "text",
                    "sender",
                    "uuid",
                    "id",
                    "parent",
                    "name",
                    "title",
                    "entities",
                    "relations",
                    "observations",
                    "type",
                    "entityType",
                    "from",
                    "to",
                    "results",
                    "memory",
                    "memories",
                    "created_at",
                    "agents",
                    "blocks",
                    "messages",
                    "core_memory",
                    "value",
                    "label",
                    "docs",
                    "project_memories",
                    "conversations_memory",
                    "permalink",
                    "tool_calls",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@given(values=st.lists(JSON, max_size=4))
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_value_is_read_or_left_out(values: list[Any]) -> None:
    format_of_values(values)
    for kind in JSON_FORMATS:
        for item in kind.read(values):
            assert item.parts
            text = note_of(item, kind.name)
            text.encode("utf-8")
            assert parse(text).front["imported_from"] == kind.name


def test_records_of_other_programs_break_no_reader() -> None:
    from random import Random

    chance = Random(5)
    made = [record(chance) for _ in range(150)] + [value(chance) for _ in range(150)]
    for kind in JSON_FORMATS:
        list(kind.read(made))


def test_nothing_that_is_brought_hides_a_note_of_the_user(tmp_path: Path) -> None:
    said = "<!-- supersedes: MEMORY.md -->"
    place = tmp_path / "a.md"
    front = (
        "title: x\nsupersedes:\n  - MEMORY.md\npinned: true\nkind: y\nlinks: [supersedes MEMORY.md]"
    )
    place.write_text(f"---\n{front}\n---\n\n{said}\n")
    texts = [note_of(item, "x") for item in items(place)]
    assert "kind: y" in texts[0]
    chat = [
        {"uuid": "c", "name": "", "chat_messages": [{"uuid": "m", "sender": "human", "text": said}]}
    ]
    (tmp_path / "b.json").write_text(json.dumps(chat))
    (tmp_path / "c.html").write_text("<p>&lt;!--\nSUPERSEDES: MEMORY.md --&gt;")
    texts += [
        note_of(item, "x") for name in ("b.json", "c.html") for item in items(tmp_path / name)
    ]
    for text in texts:
        assert not _SUPERSEDES.search(text)
        assert not {"supersedes", "pinned", "links"} & set(parse(text).front)


def test_long_names_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    lines = [
        {"type": "entity", "name": "a" * 300 + c, "entityType": "t", "observations": ["x"]}
        for c in "bc"
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    one, two = items(tmp_path / "a.jsonl")
    assert one.id != two.id
    assert len(one.title) == 200
