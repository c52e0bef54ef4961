"""Where transcripts are found, and how a growing file is read."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from notewell.opener import Opener
from notewell.sources.sessions import growing_file as module
from notewell.sources.sessions.session_source import SessionSource
from notewell.sources.source import Conversations, ReadMark, TranscriptPart
from notewell.types import Document


def turn(text: str, role: str = "user") -> str:
    return json.dumps({"role": role, "content": text}) + "\n"


def claude(text: str) -> str:
    return (
        json.dumps({"type": "user", "cwd": "/x", "message": {"role": "user", "content": text}})
        + "\n"
    )


def codex(cwd: Path | str, text: str) -> str:
    header = {"type": "session_meta", "payload": {"cwd": str(cwd)}}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return json.dumps(header) + "\n" + json.dumps({"type": "response_item", "payload": said}) + "\n"


def put(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return place


@pytest.fixture
def home(own_environment: Path, root: Path) -> Path:
    """A home with sessions of every program: each of this workspace's says `here`, each other says
    `elsewhere`.
    """
    home = own_environment
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(root))
    mine = hashlib.sha256(str(root).encode()).hexdigest()
    put(home / f".claude/projects/{slug}/5c1f.jsonl", claude("here"))
    put(home / f".claude/projects/{slug}/agent-77.jsonl", claude("a helper"))
    put(home / f".claude/projects/{slug}/5c1f/subagents/agent-1.jsonl", claude("a helper"))
    put(home / ".claude/projects/-home-other/9.jsonl", claude("elsewhere"))
    put(
        home / ".codex/sessions/2026/04/02/rollout-2026-04-02T20-53-17-01.jsonl",
        codex(root / "src", "here"),
    )
    put(
        home / ".codex/sessions/2026/04/02/rollout-2026-04-02T20-53-17-02.jsonl",
        codex("/home/other", "elsewhere"),
    )
    put(home / ".codex/sessions/2025/05/01/rollout-2025-05-01T08-00-00-03.jsonl", turn("elsewhere"))
    put(home / ".codex/history.jsonl", turn("a prompt alone"))
    header = json.dumps({"type": "session", "cwd": str(root)}) + "\n"
    claw = json.dumps({"type": "message", "message": {"role": "user", "content": "here"}}) + "\n"
    folder = home / ".openclaw/agents/main/sessions"
    put(folder / "a.jsonl", header + claw)
    put(folder / "b.jsonl.reset.2026-02-05T07-00-00.000Z", header + claw)
    put(folder / "c.jsonl.deleted.2026-02-05T07-00-00.000Z", header + claw)
    put(folder / "d.checkpoint.1.jsonl", header + claw)
    put(folder / "a.jsonl.lock", "1")
    put(folder / "sessions.json", "{}")
    gemini = {"sessionId": "s", "messages": [{"id": "1", "type": "user", "content": "here"}]}
    put(home / f".gemini/tmp/{mine}/chats/session-1.json", json.dumps(gemini))
    put(home / ".gemini/tmp/short-name/chats/session-2.json", json.dumps(gemini))
    put(
        home / ".gemini/tmp/another/chats/session-3.json",
        json.dumps(gemini).replace("here", "elsewhere"),
    )
    put(
        home / ".gemini/projects.json",
        json.dumps({"projects": {str(root): "short-name", "/o": "another"}}),
    )
    return home


def found(source: SessionSource) -> dict[str, str]:
    """What each transcript that is not foreign says."""
    said = {}
    for document in source.scan().documents:
        heard = source.read_from(document, None)
        if not heard.foreign:
            said[Path(document.path).name] = " ".join(t.text for t in heard.turns)
    return said


def test_the_sessions_of_this_workspace_are_found_where_each_program_keeps_them(
    home: Path, root: Path
) -> None:
    source = SessionSource(root)
    assert isinstance(source, Conversations)
    assert found(source) == {
        "5c1f.jsonl": "here",
        "rollout-2026-04-02T20-53-17-01.jsonl": "here",
        "a.jsonl": "here",
        "b.jsonl.reset.2026-02-05T07-00-00.000Z": "here",
        "session-1.json": "here",
        "session-2.json": "here",
    }
    assert all(d.path == d.location for d in source.scan().documents)


def test_all_projects_means_all(home: Path, root: Path) -> None:
    said = found(SessionSource(root, all_projects=True))
    assert {"9.jsonl", "rollout-2026-04-02T20-53-17-02.jsonl", "session-3.json"} <= set(said)
    assert set(said.values()) == {"here", "elsewhere"}


def test_the_workspace_of_openclaw_has_its_sessions_wherever_that_was_started(
    own_environment: Path,
) -> None:
    state = own_environment / ".openclaw"
    said = json.dumps({"type": "message", "message": {"role": "user", "content": "here"}}) + "\n"
    for name, cwd in (("a", "/"), ("b", state / "workspace"), ("c", state / "workspace-other")):
        header = json.dumps({"type": "session", "cwd": str(cwd)}) + "\n"
        put(state / f"agents/main/sessions/{name}.jsonl", header + said)
    (state / "workspace").mkdir()
    assert set(found(SessionSource(state / "workspace"))) == {"a.jsonl", "b.jsonl"}


def test_other_places_come_from_the_variables_of_the_programs(tmp_path: Path, root: Path) -> None:
    put(tmp_path / "codex/sessions/2026/rollout-1.jsonl", codex(root, "moved"))
    assert list(
        found(SessionSource(root, env={"CODEX_HOME": str(tmp_path / "codex")})).values()
    ) == ["moved"]


def test_paths_replace_the_usual_places_and_say_what_is_missing(
    home: Path, root: Path, tmp_path: Path
) -> None:
    put(tmp_path / "logs/deep/one.jsonl", codex("/home/other", "one"))
    put(tmp_path / "logs/two.txt", turn("no transcript"))
    put(root / "chat/three.jsonl", turn("three"))
    source = SessionSource(root, paths=[str(tmp_path / "logs"), "chat/*.jsonl", "nowhere"])
    assert found(source) == {"one.jsonl": "one", "three.jsonl": "three"}
    scanned = source.scan()
    assert "chat/three.jsonl" in {d.path for d in scanned.documents}
    assert [(s.path, s.reason) for s in scanned.skipped] == [
        ("nowhere", "sessions.paths: no such file or folder")
    ]


def test_a_file_too_large_is_skipped_and_a_deadline_is_kept(home: Path, root: Path) -> None:
    assert "larger than 10 bytes" in SessionSource(root, max_file_bytes=10).scan().skipped[0].reason
    cut = SessionSource(root).scan(deadline=0.0)
    assert (cut.documents, cut.complete) == ((), False)


class Grow:
    """A transcript that is written to and listened to."""

    def __init__(self, root: Path) -> None:
        self.file = put(root / "s.jsonl", "")
        self.source = SessionSource(root, paths=["s.jsonl"])
        self.mark: ReadMark | None = None

    def write(self, text: str | bytes) -> None:
        with self.file.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def read_from(self) -> TranscriptPart:
        heard = self.source.read_from(
            Document("s.jsonl", "sessions", 0, 0, str(self.file)), self.mark
        )
        self.mark = heard.mark
        return heard

    def words(self) -> list[tuple[int, str]]:
        return [(t.line, t.text) for t in self.read_from().turns]


@pytest.fixture
def grow(root: Path) -> Grow:
    return Grow(root)


def test_each_turn_is_heard_once_with_its_line(grow: Grow) -> None:
    grow.write(turn("one") + "\n" + turn("two"))
    assert grow.words() == [(1, "one"), (3, "two")]
    assert grow.words() == []
    grow.write(turn("three"))
    heard = grow.read_from()
    assert [(t.line, t.text) for t in heard.turns] == [(4, "three")]
    assert not heard.again


def test_a_half_written_line_waits_for_its_end(grow: Grow) -> None:
    whole = turn("second half")
    grow.write(turn("one") + whole[:20])
    assert grow.words() == [(1, "one")]
    assert grow.words() == []
    grow.write(whole[20:])
    assert grow.words() == [(2, "second half")]


def test_half_a_character_waits_too(grow: Grow) -> None:
    line = json.dumps({"role": "user", "content": "für Grün"}, ensure_ascii=False).encode() + b"\n"
    cut = line.index("ü".encode()) + 1
    grow.write(line[:cut])
    assert grow.words() == []
    grow.write(line[cut:])
    assert grow.words() == [(1, "für Grün")]


def test_a_whole_record_without_its_line_end_is_heard_and_not_again(grow: Grow) -> None:
    grow.write(turn("one") + turn("two").rstrip("\n"))
    assert grow.words() == [(1, "one"), (2, "two")]
    grow.write("\n" + turn("three"))
    assert grow.words() == [(3, "three")]
    grow.write(turn("four").rstrip("\n"))
    assert grow.words() == [(4, "four")]
    grow.write("\n")
    assert grow.words() == []
    grow.write(turn("five"))
    assert grow.words() == [(5, "five")]


def test_a_broken_line_is_left_at_the_end_and_named_in_the_middle(grow: Grow) -> None:
    grow.write(turn("one") + '{"role": "us\n')
    assert (grow.read_from().bad_lines, grow.mark and grow.mark.line) == ((), 1)
    grow.write(turn("three") + "\xff\n" + turn("five"))
    heard = grow.read_from()
    assert [(t.line, t.text) for t in heard.turns] == [(3, "three"), (5, "five")]
    assert heard.bad_lines == (2, 4)
    assert grow.read_from().bad_lines == ()


@pytest.mark.parametrize(
    "after",
    [
        turn("new"),  # cut
        turn("new") * 50,  # replaced by a longer one
        turn("one").replace("one", "ono") + turn("two"),  # of the same length, changed at its head
        turn("one") + turn("two").replace("two", "new"),  # and changed at its end
    ],
)
def test_a_file_that_is_another_one_now_is_read_from_its_start(grow: Grow, after: str) -> None:
    grow.write(turn("one") + turn("two"))
    grow.read_from()
    grow.file.write_text(after, encoding="utf-8")
    heard = grow.read_from()
    assert heard.again
    assert [t.text for t in heard.turns] == [
        json.loads(line)["content"] for line in after.splitlines()
    ]


def test_an_emptied_file_says_nothing(grow: Grow) -> None:
    grow.write(turn("one"))
    grow.read_from()
    grow.file.write_text("", encoding="utf-8")
    heard = grow.read_from()
    assert (heard.again, heard.turns) == (True, ())


def test_a_file_that_takes_back_what_it_said_is_read_whole_each_time(grow: Grow) -> None:
    grow.write('{"sessionId":"s","projectHash":"h"}\n{"id":"1","type":"user","content":"first"}\n')
    assert grow.words() == [(2, "first")]
    grow.write('{"id":"2","type":"gemini","content":"wrong"}\n{"$rewindTo":"2"}\n')
    assert grow.words() == [(2, "first")]


def test_only_what_is_new_is_read(grow: Grow, monkeypatch: pytest.MonkeyPatch) -> None:
    grow.write("".join(turn(f"line {n} " * 20) for n in range(5000)))
    grow.read_from()
    read = 0

    class Counted(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes | Any:
            nonlocal read
            data = super().read(size)
            read += len(data)
            return data

    monkeypatch.setattr(Opener, "file", lambda _, location: Counted(location, "rb"))
    added = turn("a few words more")
    grow.write(added)
    assert grow.words() == [(5001, "a few words more")]
    assert read < len(added) + 4 * module._HASHED_BYTES + 1


def test_one_value_that_is_half_written_is_not_read_yet(root: Path) -> None:
    file = put(root / "s.json", '{"messages": [{"role": "user", "content": "x"')
    source = SessionSource(root, paths=["s.json"])
    document = source.scan().documents[0]
    assert "not complete JSON" in source.read_from(document, None).unread
    file.write_text('[{"role": "user", "content": "x y"}]', encoding="utf-8")
    assert [t.text for t in source.read_from(document, None).turns] == ["x y"]


def test_lines_are_read_alone(grow: Grow) -> None:
    grow.write("".join(turn(f"turn {n}") for n in range(1, 6)))
    document = grow.source.scan().documents[0]
    turns, count = grow.source.lines(document, 2, 3)
    assert ([t.text for t in turns], count) == (["turn 2", "turn 3"], 5)
    assert len(grow.source.lines(document, 1, None)[0]) == 5
    assert grow.source.read(document).startswith("user:\nturn 1\n\nuser:\nturn 2")


def test_a_vanished_file_is_an_os_error(grow: Grow) -> None:
    grow.file.unlink()
    with pytest.raises(FileNotFoundError):
        grow.read_from()


def test_a_session_in_the_workspace_may_link_into_it_but_not_out_of_it(
    root: Path, tmp_path: Path
) -> None:
    os.symlink(put(root / "real.jsonl", turn("linked words")), root / "s.jsonl")
    os.symlink(put(tmp_path / "elsewhere.jsonl", turn("private words")), root / "out.jsonl")
    source = SessionSource(root, paths=["s.jsonl", "out.jsonl"])
    found = source.scan()
    assert [d.path for d in found.documents] == ["s.jsonl"]
    assert "linked words" in source.read(found.documents[0])
    assert [(s.path, "leads out" in s.reason) for s in found.skipped] == [("out.jsonl", True)]
    late = replace(found.documents[0], location=str(root / "out.jsonl"))
    for read in (source.read, source.raw, lambda d: source.read_from(d, None)):
        with pytest.raises(OSError, match="leads out"):
            read(late)


def test_a_session_elsewhere_may_be_a_link(root: Path, tmp_path: Path) -> None:
    os.symlink(put(tmp_path / "real.jsonl", turn("linked words")), tmp_path / "s.jsonl")
    source = SessionSource(root, paths=[str(tmp_path / "s.jsonl")])
    assert "linked words" in source.read(source.scan().documents[0])


OLD = "0195a2c4-1111-7222-8333-444455556666"
NEW = "0195a2c4-9999-7222-8333-444455556666"


def session_file(tmp_path: Path, name: str, *records: object) -> Document:
    place = tmp_path / name
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    place.write_text("\n".join(lines))
    return Document(f"sessions/{name}", "sessions", 1, 1, str(place))


def ends(one: Document) -> list[tuple[str, str, str]]:
    return [(e.kind, e.start.name, e.end.name) for e in SessionSource(Path("/")).edges(one)]


def test_a_resumed_session_derives_from_the_one_whose_records_it_carries(tmp_path: Path) -> None:
    one = session_file(
        tmp_path,
        f"{NEW}.jsonl",
        {"type": "summary", "leafUuid": "m9"},
        "{torn",
        {"sessionId": OLD, "uuid": "m1", "parentUuid": None},
        {"sessionId": NEW, "uuid": "m2", "parentUuid": "m1"},
    )
    assert ends(one) == [("derives_from", f"sessions/{NEW}.jsonl", OLD)]


def test_a_forked_rollout_names_its_parent(tmp_path: Path) -> None:
    meta = {"type": "session_meta", "payload": {"id": NEW, "forked_from_id": OLD}}
    one = session_file(tmp_path, f"rollout-2026-11-15T10-00-00-{NEW}.jsonl", meta)
    assert [e[2] for e in ends(one)] == [OLD]


def test_a_session_of_its_own_has_no_edges(tmp_path: Path) -> None:
    one = session_file(
        tmp_path,
        f"{NEW}.jsonl",
        {"sessionId": NEW},
        [1],
        '"text"',
        "\udcff".encode("utf-8", "replace").decode(),
    )
    assert ends(one) == []
    assert ends(Document("gone.jsonl", "sessions", 1, 1, str(tmp_path / "gone.jsonl"))) == []
