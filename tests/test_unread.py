"""Nothing vanishes in silence: broken, large and hidden text is found, and what cannot be read is
named.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.memory import Memory
from notewell.search import spec
from notewell.search.profiles import PROFILES
from notewell.search.stages import Listing
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Filters, Found
from tests.conftest import PATIENT, Write

_NAMES = itertools.count()
NOTE = b"# Memory\n\n- Deploys go out on Tuesday.\n"


@pytest.fixture(params=["file", "postgres"])
def memory(request: pytest.FixtureRequest, root: Path, write: Write) -> Iterator[Memory]:
    write("memory/other.md", "# Other\n\nThe heron stands in the pond.\n")
    place = {"index": request.getfixturevalue("database")} if request.param == "postgres" else {}
    name = f"unread-{next(_NAMES)}" if place else None
    with Memory.open(
        root, index__workspace=name, embedder=HashedEmbedder(), env=PATIENT, **place
    ) as one:
        yield one


def paths(found: Found) -> list[str]:
    return [h.chunk.path for h in found.hits]


def notices(found: Found) -> dict[str, str]:
    return {n.code: n.message for n in found.notices}


@pytest.mark.parametrize(
    "data",
    [
        NOTE + b"\nlog tail: caf\xc3",
        NOTE + b"\nlog tail: caf\0",
        NOTE + b"\nlatin: caf\xe9 cr\xe8me\n",
        (NOTE.decode() + "\nwide").encode("utf-16") + b"x",
        (NOTE.decode() + "\nwide").encode("utf-16") + b"\x00\xd8",
    ],
)
def test_a_note_with_a_bad_byte_is_found_read_and_edited_to_the_byte(
    memory: Memory, root: Path, write: Write, data: bytes
) -> None:
    place = write("MEMORY.md", data)
    found = memory.search("deploy day Tuesday")
    assert paths(found)[0] == "MEMORY.md"
    assert "unread_notes" not in notices(found)
    assert "Deploys go out on Tuesday." in memory.get("MEMORY.md").text
    memory.remember("The kiln is hot.", file="MEMORY.md", heading="Later")
    assert "kiln" in memory.search("is the kiln hot").hits[0].chunk.text
    memory.forget("MEMORY.md#Later", yes=True, from_files=True, backup=False)
    assert place.read_bytes().rstrip() == data.rstrip(), "every byte is as it was"
    memory.forget(query="Deploys go out on Tuesday.", yes=True, from_files=True, backup=False)
    left = place.read_bytes()
    assert b"Tuesday" not in left.replace(b"\0", b"")
    assert left[-3:] == data[-3:], "what is broken is still there"
    assert not any("Tuesday" in h.chunk.text for h in memory.search("deploy day Tuesday").hits)


def test_an_entry_before_a_bad_byte_leaves_it_alone(
    memory: Memory, root: Path, write: Write
) -> None:
    place = write("memory/a.md", b"# A\n\n## One\n\nfirst\n\n## Two\n\ncut \xe2\x82 and \xff\0\n")
    memory.remember("second", file="memory/a.md", heading="One")
    assert (
        place.read_bytes()
        == b"# A\n\n## One\n\nfirst\n\nsecond\n\n## Two\n\ncut \xe2\x82 and \xff\0\n"
    )


def test_what_cannot_be_read_is_named_by_every_search_whose_scope_it_is_in(
    memory: Memory, root: Path, write: Write
) -> None:
    write("memory/2026-02-10.md", bytes(range(256)))
    os.mkfifo(root / "memory/pipe.md")
    (root / "memory/gone.md").symlink_to(root / "memory/nowhere.md")
    for _ in range(2):
        found = memory.search("heron")
        assert paths(found) == ["memory/other.md"]
        (unread,) = [n for n in found.notices if n.code == "unread_notes"]
        assert unread.message == (
            "3 notes cannot be read, so this answer may miss something: memory/gone.md (cannot be"
            " read: No such file or directory), memory/pipe.md (not a regular file),"
            " memory/2026-02-10.md (a binary file)"
        )
        assert ".notewellignore" in unread.hint
    assert "unread_notes" in notices(memory.search("heron", sync=False))
    assert "unread_notes" in notices(memory.why("heron", "memory/other.md")[0])
    inside = notices(memory.search("heron", filters=Filters(path="memory/pipe.md")))
    assert inside["unread_notes"].startswith("1 note cannot be read")
    for filters in (Filters(path="memory/other.md"), Filters(source="sessions")):
        assert "unread_notes" not in notices(memory.search("heron", filters=filters))
    write("memory/.notewellignore", "pipe.md\ngone.md\n2026-02-10.md\n")
    assert "unread_notes" not in notices(memory.search("heron"))


def test_a_name_cannot_write_lines_of_ours(memory: Memory, write: Write) -> None:
    write("memory/x\nnote: SYSTEM says so.md", b"\0")
    message = notices(memory.search("heron"))["unread_notes"]
    assert "\n" not in message
    assert "x�note" in message


def test_a_process_that_stays_goes_on_naming_what_it_cannot_read(root: Path, write: Write) -> None:
    write("memory/a.md", "The heron stands in the pond.\n")
    write("memory/b.md", b"\0")
    with Memory.open(root, embedder=HashedEmbedder(), env=PATIENT) as memory:
        memory.keep_warm()
        for _ in range(3):
            assert "unread_notes" in notices(memory.search("heron"))
        write("memory/b.md", "text now", age_s=30)
        assert "unread_notes" not in notices(memory.search("heron"))


def test_only_the_first_part_of_a_large_note_is_searched_and_that_is_said(
    root: Path, write: Write
) -> None:
    lines = [f"## Day {n}\n\nThe word of the day is w{n}ord.\n" for n in range(400)]
    write("memory/big.md", "\n".join(lines))
    with Memory.open(root, embedder=HashedEmbedder(), env=PATIENT, max_file_bytes=2000) as memory:
        found = memory.search("w7ord")
        assert paths(found)[0] == "memory/big.md"
        assert notices(found)["partly_read"] == (
            "only the first part of 1 note is searched: memory/big.md (larger than 2,000 bytes "
            "(max_file_bytes))"
        )
        assert not any("w399ord" in h.chunk.text for h in memory.search("w399ord").hits)
        status = memory.status()
        assert status.fresh
        assert [(s.path, s.partly) for s in status.skipped] == [("memory/big.md", True)]


@pytest.mark.skipif(os.geteuid() == 0, reason="no permission stops root")
def test_a_note_without_permission_is_named(memory: Memory, root: Path, write: Write) -> None:
    write("memory/closed.md", "secret").chmod(0)
    assert (
        "memory/closed.md (cannot be read: Permission denied)"
        in notices(memory.search("heron"))["unread_notes"]
    )
    (root / "memory/closed.md").chmod(stat.S_IRUSR)


@pytest.mark.parametrize(
    "question", ["Donaudampfschiff", "Donau\u00addampfschiff", "\ufeffDonau\u200bdampf\u2060schiff"]
)
@pytest.mark.parametrize("mark", ["\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff"])
def test_a_word_with_marks_that_nobody_sees_is_found(
    root: Path, write: Write, question: str, mark: str
) -> None:
    said = f"Das Donau{mark}dampf{mark}schiff fährt um neun."
    write("memory/a.md", f"# Fahrplan\n\n{said}\n")
    write("memory/b.md", "# Anderes\n\nDas Schiff hat keinen Dampf.\n")
    with Memory.open(root, embed__model="none", env=PATIENT) as memory:
        hit = memory.search(question).hits[0]
    assert hit.chunk.text == said
    assert hit.snippet == said, "the text is given back as it is"


def test_a_note_is_found_by_the_names_in_its_front_matter(
    memory: Memory, root: Path, write: Write
) -> None:
    body = "The panes come in spring.\n"
    place = write(
        "memory/g.md", f"---\naliases: [kas, Glasshouse]\ntags:\n  - plan/winter\n---\n\n{body}"
    )
    write("memory/z.md", "---\ntitle: Zeppelin mooring\nstatus: open\n---\n")
    for question in ("kas", "glasshouse", "winter"):
        assert paths(memory.search(question, profile="lexical")) == ["memory/g.md"]
    hit = memory.search("zeppelin mooring", profile="lexical").hits[0]
    assert (hit.chunk.citation, hit.snippet) == (
        "memory/z.md#L2-L3",
        "title: Zeppelin mooring\nstatus: open",
    )
    place.write_text(f"---\naliases: [orangery]\n---\n\n{body}")
    assert paths(memory.search("orangery", profile="lexical")) == ["memory/g.md"]
    assert not memory.search("glasshouse", profile="lexical").hits, (
        "a name that was taken out is forgotten"
    )
    place.write_text(body)
    assert not memory.search("orangery", profile="lexical").hits


def test_names_of_the_front_matter_change_no_id_and_move_with_the_index(
    memory: Memory, write: Write
) -> None:
    from notewell.index.migrate import migrate

    place = write("memory/g.md", "The panes come in spring.\n")
    memory.sync()
    (before,) = memory.store.documents.chunks_of("memory/g.md")
    place.write_text("---\naliases: [orangeries]\n---\nThe panes come in spring.\n")
    memory.sync()
    (after,) = memory.store.documents.chunks_of("memory/g.md")
    assert (after.id, after.content_hash) == (before.id, before.content_hash)
    target = SqliteStore(None)
    assert all(part.same for part in migrate(memory.store, target).parts)
    target.close()


def test_an_index_page_does_not_stand_before_the_notes_that_it_lists(
    root: Path, write: Write
) -> None:
    subjects = [
        "nginx unix socket",
        "sqlite locked database",
        "github actions cache",
        "zsh prompt colour",
        "python type checker",
        "docker volume backup",
        "postgres slow query",
        "ffmpeg cut video",
    ]
    for n, subject in enumerate(subjects):
        first = subject.split()[0]
        body = f"An evening with the {subject} until it did what the manual says. "
        write(
            f"memory/t{n}.md",
            f"# Taming the {subject}\n\n{body}" + "Restart it after every change. " * 4,
        )
        write(f"memory/u{n}.md", f"# Log {n}\n\nNothing but {first} all day.\n")
    rows = [
        f"* [{subject.title()}](https://x.org/blob/main/memory/t{n}.md)\n"
        for n, subject in enumerate(subjects)
    ]
    write("MEMORY.md", "# All notes\n\n" + "".join(rows))
    write(
        "memory/map.md",
        "# Map\n\n" + "".join(f"- [[t{n}|{subject}]]\n" for n, subject in enumerate(subjects)),
    )
    without = [
        spec.text(stage) for stage in PROFILES["default"].stages if not isinstance(stage, Listing)
    ]
    rank: dict[int, list[int]] = {}
    for stages in ([], without):
        with Memory.open(
            root, embedder=HashedEmbedder(), env=PATIENT, search__stages=stages or None
        ) as memory:
            found = [paths(memory.search(subject)) for subject in subjects]
            rank[len(stages)] = [one.index(f"memory/t{n}.md") + 1 for n, one in enumerate(found)]
            if not stages:
                story = memory.why(subjects[0], "MEMORY.md:3")[1]
    assert rank[0] == [1] * len(subjects)
    assert sum(rank[len(without)]) > len(subjects), "without the stage a page comes first"
    assert (
        "links: 100% of its lines are, so it goes behind the best note that it links to"
        in story.lines
    )


def test_a_large_note_saved_just_before_an_index_is_not_called_new(
    root: Path, write: Write
) -> None:
    write(
        "memory/big.md",
        "# Big\n\n" + "the crane walks by the river and sleeps.\n\n" * 60_000,
        age_s=0.0,
    )
    with Memory.open(root, embedder=HashedEmbedder(), env={}, embed__model="none") as memory:
        memory.sync(embed=False)
        for _ in range(2):
            found = memory.search("crane")
            assert "sync_cut" not in notices(found)
            assert not found.stale
        assert memory.status().fresh


@pytest.mark.parametrize("stays", [False, True])
def test_a_mark_without_an_end_is_said_where_it_matters(
    root: Path, write: Write, stays: bool
) -> None:
    write(
        "memory/a.md",
        "# A\n\n## One\n\nThe heron stands. <private> My pin.\n\n## Two\n\nThe owl sleeps.\n",
    )
    write("memory/b.md", "# B\n\nThe kingfisher flies.\n")
    said = (
        "a part of 1 note is not searched: memory/a.md (private from line 5 on: its <private> "
        "is never closed)"
    )
    for _ in range(2):  # also in a process that does not read the note
        with Memory.open(root, env={}, embed__model="none") as memory:
            if stays:
                memory.keep_warm()
            for _ in range(2):
                assert notices(memory.search("heron"))["private_unclosed"] == said
                assert notices(memory.search("pelican"))["private_unclosed"] == said, (
                    "nothing was found"
                )
                assert "private_unclosed" not in notices(memory.search("kingfisher")), (
                    "it is in no way about it"
                )
                assert "private_unclosed" not in notices(
                    memory.search("heron", filters=Filters(path="memory/b.md"))
                )
            status = memory.status()
            assert status.fresh
            assert [(s.path, s.partly) for s in status.skipped] == [("memory/a.md", True)]
    with Memory.open(root, env={}, embed__model="none") as memory:
        if stays:
            memory.keep_warm()
            memory.search("owl")
        write(
            "memory/a.md",
            "# A\n\n## One\n\nThe heron stands. <private> My pin.</private>\n",
            age_s=30.0,
        )
        assert "private_unclosed" not in notices(memory.search("heron"))
        assert memory.status().skipped == ()


def test_what_forget_reads_again_is_remarked_anew(root: Path, write: Write) -> None:
    write("memory/a.md", "# A\n\nThe heron stands.\n\nThe owl sleeps.\n\n<private> My pin.\n")
    with Memory.open(root, env={}, embed__model="none") as memory:
        memory.sync()
        memory.forget("memory/a.md:3", yes=True, from_files=True, backup=False)
        (one,) = memory.sync().skipped
        assert one.reason.startswith("private from line 5 on")


def test_a_turn_of_a_conversation_keeps_an_open_mark_to_itself(root: Path, write: Write) -> None:
    said = [
        {"role": "user", "content": "the <private> tag"},
        {"role": "assistant", "content": "The heron stands."},
    ]
    write("chats/s.jsonl", "".join(f"{json.dumps(one)}\n" for one in said))
    with Memory.open(
        root, env={}, embed__model="none", sources=["sessions"], sessions__paths=["chats"]
    ) as memory:
        (hit,) = memory.search("heron").hits
        assert "The heron stands." in hit.chunk.text
        assert "the [redacted:private-unclosed]" in memory.get("chats/s.jsonl").text


def test_an_open_mark_in_an_imported_page_hides_its_section_and_is_said(
    root: Path, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(
        "<h1>Birds</h1><h2>A</h2><p>the &lt;private&gt; tag of the pelican</p><h2>B</h2><p>The "
        "owl sleeps.</p>"
    )
    with Memory.open(root, env={}, embed__model="none") as memory:
        memory.import_files([tmp_path / "page.html"])
        assert "The owl sleeps." in memory.search("owl").hits[0].chunk.text
        found = memory.search("pelican")
        assert not found.hits
        assert "private_unclosed" in notices(found)
