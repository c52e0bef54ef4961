"""Walks over real notes in a real workspace: names, anchors, circles, depth, bounds, and names of
nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from notewell.errors import NotFoundError, UsageError
from notewell.memory import Memory
from notewell.notes import link_walk
from notewell.notes.link_walk import LinkResolver, LinkWalk
from notewell.types import Edge, End
from tests.conftest import Write


def steps(found: LinkWalk) -> list[tuple[str, str, str]]:
    """Direction and kind, where from, where to."""
    out = []
    for hop in found.hops:
        parent = found.start if hop.parent < 0 else found.hops[hop.parent].node
        out.append((f"{hop.direction} {hop.kind}", parent.citation, hop.node.citation))
    return out


def test_every_way_of_naming_a_note_leads_to_it(memory: Memory, write: Write) -> None:
    write(
        "memory/ops/deploy.md",
        "# Deploy\n\nHow.\n\n## Rollback plan\n\nBack.\n\n## Rollback plan\n\nAgain. ^b1\n",
    )
    write("memory/team/a.md", "one [[Deploy]]\n")
    write("memory/team/b.md", "[x](../ops/deploy.md)\n")
    write("memory/team/c.md", "[[deploy#Rollback plan]]\n")
    write("memory/team/d.md", "[x](/memory/ops/deploy.md#rollback-plan-1)\n")
    write("memory/team/e.md", "[[Deploy#^b1]]\n")
    write("memory/team/f.md", "[x](../ops/deploy.md#L6-L7)\n")
    write("memory/team/g.md", "---\nreferences: memory/ops/deploy.md:3\n---\ntext\n")
    write("memory/team/h.md", "[[ops/deploy#no such heading]]\n")
    write("memory/team/i.md", "[x](deploy.md)\n")
    expected = {
        "a": "memory/ops/deploy.md",
        "b": "memory/ops/deploy.md",
        "c": "memory/ops/deploy.md#L7",
        "d": "memory/ops/deploy.md#L11",
        "e": "memory/ops/deploy.md#L11",
        "f": "memory/ops/deploy.md#L7",
        "g": "memory/ops/deploy.md#L3",
        "h": "memory/ops/deploy.md",
        "i": "memory/ops/deploy.md",
    }
    for name, citation in expected.items():
        found, notices = memory.trace(f"memory/team/{name}.md")
        assert [hop.node.citation for hop in found.hops] == [citation], name
        assert notices == []
    short = memory.search("Back", sync=False).hits[0].chunk.id
    write("memory/team/j.md", f"---\nderives_from: {short}\n---\ntext\n")
    assert memory.trace("memory/team/j.md")[0].hops[0].node.citation == "memory/ops/deploy.md#L7"
    back, _ = memory.trace("memory/ops/deploy.md", direction="in")
    assert {hop.node.path for hop in back.hops} == {f"memory/team/{n}.md" for n in "abcdefghij"}
    passage, _ = memory.trace("memory/ops/deploy.md#L11", direction="in")
    names = {hop.node.path[-4] for hop in passage.hops}
    assert names == set("abdehi"), (
        "what names this passage or the whole note, not what names another passage"
    )


def test_a_path_that_leads_nowhere_is_not_guessed_at(memory: Memory, write: Write) -> None:
    write("memory/readme.md", "text")
    write("memory/a.md", "[x](other/readme.md) and [[Nothing#Here]]")
    found, _ = memory.trace("memory/a.md")
    assert [(h.node.path, h.node.dangling) for h in found.hops] == [
        ("other/readme.md", True),
        ("Nothing#Here", True),
    ]
    write("memory/other/readme.md", "there now")
    found, _ = memory.trace("memory/a.md")
    assert [(h.node.path, h.node.dangling) for h in found.hops] == [
        ("memory/other/readme.md", False),
        ("Nothing#Here", True),
    ]
    (memory.root / "memory/other/readme.md").unlink()
    assert memory.trace("memory/a.md")[0].hops[0].node.dangling


def test_edges_go_with_what_makes_them(memory: Memory, write: Write) -> None:
    write("memory/b.md", "text")
    write("memory/a.md", "[[b]]")
    assert len(memory.trace("memory/b.md", direction="in")[0].hops) == 1
    write("memory/a.md", "no more", age_s=50)
    assert memory.trace("memory/b.md", direction="in")[0].hops == ()
    write("memory/a.md", "[[b]] again", age_s=40)
    assert len(memory.trace("memory/b.md", direction="in")[0].hops) == 1
    (memory.root / "memory/a.md").unlink()
    assert memory.trace("memory/b.md", direction="in")[0].hops == ()


def test_a_circle_ends_and_depth_is_kept(memory: Memory, write: Write) -> None:
    for name, after in zip("abcd", "bcda", strict=True):
        write(f"memory/{name}.md", f"[[{after}]] and myself [[{name}]]")
    found, _ = memory.trace("memory/a.md", depth=10)
    paths = [(h.node.path[-4], h.again) for h in found.hops]
    assert paths == [
        ("b", False),
        ("a", True),
        ("c", False),
        ("b", True),
        ("d", False),
        ("c", True),
        ("a", True),
        ("d", True),
    ]
    assert [h.depth for h in found.hops] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert not found.cut
    assert max(h.depth for h in memory.trace("memory/a.md", depth=2)[0].hops) == 2
    both, _ = memory.trace("memory/a.md", depth=10, direction="both")
    assert {h.node.path[-4] for h in both.hops if not h.again} == {"b", "c", "d"}


def test_a_step_is_not_shown_again_from_its_far_end(memory: Memory, write: Write) -> None:
    write("memory/a.md", "one [[b]]\n\n# Head\n\ntwo [[b]]\n")
    write("memory/b.md", "text")
    found, _ = memory.trace("memory/a.md", direction="both")
    assert steps(found) == [("out references", "memory/a.md", "memory/b.md")]


def test_only_the_kinds_asked_for_are_walked(memory: Memory, write: Write) -> None:
    write("memory/c.md", "text")
    write("memory/b.md", "---\nderives_from: c\n---\n[[d]]")
    write("memory/a.md", "---\nderives_from: memory/b.md\ncauses: c\n---\n[[c]]")
    found, _ = memory.trace("memory/a.md", kinds=["derives_from"])
    assert steps(found) == [
        ("out derives_from", "memory/a.md", "memory/b.md"),
        ("out derives_from", "memory/b.md", "memory/c.md"),
    ]
    with pytest.raises(UsageError, match="not a kind of link"):
        memory.trace("memory/a.md", kinds=["Derives From"])


def test_a_passage_says_what_stands_in_it_and_what_its_note_says(
    memory: Memory, write: Write
) -> None:
    write(
        "memory/a.md",
        "---\nderives_from: [[x]]\n---\n# One\n\nfirst [[y]]\n\n# Two [[z]]\n\nsecond\n",
    )
    for name in "xyz":
        write(f"memory/{name}.md", name)
    assert {h.node.path[-4] for h in memory.trace("memory/a.md:6")[0].hops} == {"x", "y"}
    assert {h.node.path[-4] for h in memory.trace("memory/a.md#two-z")[0].hops} == {"x", "z"}
    assert {h.node.path[-4] for h in memory.trace("memory/a.md")[0].hops} == {"x", "y", "z"}


def test_a_walk_is_bounded_and_says_so(memory: Memory, write: Write) -> None:
    write("memory/hub.md", "\n".join(f"[[n{i}]]" for i in range(300)))
    found, _ = memory.trace("memory/hub.md")
    assert len(found.hops) == link_walk.MOST
    assert found.cut


def test_what_a_reference_may_be(memory: Memory, write: Write) -> None:
    write("memory/deploy.md", "# Plan\n\ntext\n")
    for reference in (
        "memory/deploy.md",
        "deploy",
        "memory/deploy.md:3",
        "deploy#plan",
        "memory/deploy.md#L3",
        "[[deploy]]",
    ):
        assert memory.trace(reference)[0].start.path == "memory/deploy.md"
    for wrong in ("nothing", "", "https://example.org", "zzzz"):
        with pytest.raises(NotFoundError) as error:
            memory.trace(wrong)
        assert error.value.hint


def test_a_link_is_a_line_of_a_file_that_outlives_the_index(memory: Memory, write: Write) -> None:
    write("memory/a.md", "# Head\n\nalpha text\n")
    write("memory/b.md", "beta text\n")
    before = {p: p.read_bytes() for p in memory.root.rglob("*.md")}
    edge, changed = memory.link("memory/a.md:3", "derives_from", "memory/b.md")
    assert changed
    assert (edge.start.name, edge.start.anchor, edge.end.name) == (
        "memory/a.md",
        "head",
        "memory/b.md",
    )
    assert memory.link("memory/a.md#head", "derives_from", "b") == (edge, False), (
        "it is there already"
    )
    assert memory.link("memory/a.md", "derives_from", "b")[1], "of the whole note it is another"
    assert {p: p.read_bytes() for p in memory.root.rglob("*.md")} == before, "no note was touched"
    lines = (memory.root / "links.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0])["from"] == "memory/a.md#head"
    index = Path(memory.store.name)
    memory.close()
    for file in index.parent.glob("index.*"):
        file.unlink()
    with Memory.open(memory.root, embed__model="none") as again:
        found, _ = again.trace("memory/a.md#head")
        assert [h.node.path for h in found.hops] == ["memory/b.md"]
        assert [h.node.citation for h in again.trace("memory/b.md", direction="in")[0].hops] == [
            "memory/a.md#L3",
            "memory/a.md",
        ]


def test_a_link_follows_its_passage_through_edits_and_renames(memory: Memory, write: Write) -> None:
    write("memory/a.md", "# Head\n\nalpha text\n\n# Other\n\nother text\n")
    write("memory/b.md", "beta text\n")
    memory.link("memory/a.md#head", "causes", "memory/b.md")
    write("memory/a.md", "# Other\n\nother text\n\n# Head\n\nalpha text, edited\n", age_s=50)
    (back,) = memory.trace("memory/b.md", direction="in")[0].hops
    assert back.node.citation == "memory/a.md#L7", "found by its heading"
    write("memory/a.md", "# Other\n\nother text\n\n# Renamed\n\nalpha text\n", age_s=40)
    (memory.root / "memory/b.md").rename(memory.root / "memory/renamed.md")
    (hop,) = memory.trace("memory/a.md")[0].hops
    assert hop.node.path == "memory/renamed.md", "found by its content"


def test_a_link_can_be_taken_out_again(memory: Memory, write: Write) -> None:
    for name in "abc":
        write(f"memory/{name}.md", name * 5)
    memory.link("a", "causes", "b")
    memory.link("a", "causes", "c")
    place = memory.root / "links.jsonl"
    place.write_bytes(place.read_bytes() + b"not json\n")
    _, notices = memory.trace("a")
    assert [n.code for n in notices] == ["links_broken"]
    assert "line 3" in notices[0].message
    assert memory.link("a", "causes", "b", remove=True)[1]
    assert not memory.link("a", "causes", "b", remove=True)[1]
    assert [h.node.path for h in memory.trace("a")[0].hops] == ["memory/c.md"]
    assert place.read_bytes().endswith(b"not json\n"), "what we do not understand is left alone"
    (memory.root / "memory/c.md").unlink()
    assert memory.trace("a")[0].hops[0].node.dangling
    assert memory.link("a", "causes", "memory/c.md", remove=True)[1]


@pytest.mark.parametrize(
    ("kind", "end", "words"),
    [
        ("Bad Kind", "b", "not a kind"),
        ("causes", "a", "itself"),
        ("causes", "nothing", "no note or passage"),
    ],
)
def test_a_wrong_link_is_refused(
    memory: Memory, write: Write, kind: str, end: str, words: str
) -> None:
    write("memory/a.md", "a")
    write("memory/b.md", "b")
    with pytest.raises(UsageError, match=words):
        memory.link("a", kind, end)
    assert not (memory.root / "links.jsonl").exists()


def test_edges_that_something_else_knows_of_are_walked_too(memory: Memory, write: Write) -> None:
    write("memory/a.md", "a")
    write("memory/b.md", "b")
    memory.sync()
    told = Edge("supersedes", End("memory/a.md"), End("memory/b.md"))
    links = LinkResolver(memory.store, memory.root)
    found = link_walk.walk(links, links.whole("memory/a.md"), further=lambda chunk: [told])
    assert steps(found) == [("out supersedes", "memory/a.md", "memory/b.md")]


def test_conflicts_are_found_between_passages(memory: Memory, write: Write) -> None:
    write("memory/a.md", "---\nconflicts_with: memory/b.md\n---\nport 1")
    write("memory/b.md", "port 2")
    write("memory/c.md", "port 3")
    chunks = [h.chunk for h in memory.search("port").hits]
    ids = {c.path[-4]: c.id for c in chunks}
    resolver = LinkResolver(memory.store, memory.root)
    assert link_walk.conflicts(resolver, chunks) == {(ids["a"], ids["b"])}
    links = [Edge("supersedes", End("memory/c.md"), End("memory/b.md"))]
    assert (ids["c"], ids["b"]) in link_walk.conflicts(resolver, chunks, links)
