"""What the page asks for, over a real socket."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from notewell.settings import user_file
from notewell.surfaces.hooks.journal import Journal, Passage
from notewell.surfaces.server.calls import CALLS
from tests.conftest import Write
from tests.surfaces.server.served import Served, serving


@pytest.fixture
def served(root: Path, write: Write) -> Iterator[Served]:
    write("memory/2026-05-06.md", "# Standup\n\nThe staging port is 8081.\n", age_s=30 * 86_400)
    write(
        "memory/2026-09-03.md",
        "# Standup\n\nThe staging port is 9443 now. See [[auth]].\n",
        age_s=30 * 86_400,
    )
    write(
        "memory/auth.md",
        "---\npinned: true\n---\n# Auth\n\nTokens live <b>30</b> days. #security\n",
    )
    with serving(root) as one:
        yield one


def test_home_tells_what_is_remembered(served: Served) -> None:
    home = served.get("/api/home").json
    assert home["workspace"] == served.memory.root.name
    assert home["can_write"] is True
    assert home["counts"] == {"notes": 3, "conversations": 0, "passages": 3, "days": 3}
    assert home["days"][0] == {"day": "2026-05-06", "notes": 1, "passages": 1}
    assert {"name": "Standup", "kind": "heading", "count": 2} in home["topics"]
    assert [one["path"] for one in home["pinned"]] == ["memory/auth.md"]
    assert home["empty"] is None
    [conflict] = home["attention"]["conflicts"]
    assert conflict["text"] == "The staging port is 9443 now."
    assert conflict["other"]["text"] == "The staging port is 8081."


def test_the_notes_of_a_clone_are_trusted_with_a_click(root: Path, write: Write) -> None:
    write("memory/2026-05-06.md", "# Standup\n\nThe staging port is 8081.\n")
    (root / ".svn").mkdir()
    with serving(root) as one:
        home = one.get("/api/home").json
        assert home["doubt"]["folder"] == str(root)
        assert one.get("/api/search?query=staging+port").json["results"][0]["origin"] == "untrusted"
        elsewhere = one.post("/api/trust", {"folder": str(root.parent)})
        assert elsewhere.json["error"]["message"] == "nobody asks about this folder"
        assert one.post("/api/trust", {"folder": str(root)}).json == {"folder": str(root)}
        assert one.get("/api/home").json["doubt"] is None
        assert one.get("/api/search?query=staging+port").json["results"][0]["origin"] == "owner"
    assert str(root) in user_file(os.environ).read_text()


def test_whom_to_trust_is_no_tool_for_a_model() -> None:
    assert "trust" not in {name for name, call in CALLS.items() if call.tool}
    assert "trust" not in CALLS


def test_home_as_of_a_day(served: Served) -> None:
    home = served.get("/api/home?as_of=2026-06").json
    assert home["days"][0]["day"] == "2026-05-06"
    assert "2026-09-03" not in [one["day"] for one in home["days"]]
    assert home["attention"]["conflicts"] == []


def test_a_note_saved_a_moment_ago_is_at_home(served: Served, write: Write) -> None:
    served.get("/api/home")
    write("memory/new.md", "# New\n\nSomething new.\n", age_s=0.0)
    assert served.get("/api/home").json["lately"][0]["path"] == "memory/new.md"


def test_what_was_shown_does_not_count_as_never_found(served: Served) -> None:
    never = served.get("/api/home").json["attention"]["never_found"]
    assert never["paths"] == ["memory/2026-05-06.md", "memory/2026-09-03.md"]
    assert served.get("/api/search?query=staging+port+8081&limit=1&include_superseded=true").json[
        "results"
    ]
    after = served.get("/api/home").json["attention"]["never_found"]
    assert after["count"] == 1
    assert after["since"] == dt.datetime.now().date().isoformat()  # noqa: DTZ005


def test_what_hooks_injected_is_shown_where_it_belongs(served: Served) -> None:
    journal = Journal(os.environ)
    journal.add(
        host="claude-code",
        workspace=served.memory.root,
        prompt="which port",
        tokens=9,
        passages=[Passage("memory/2026-05-06.md#L3", "hash", 0.5)],
        now=dt.datetime.now(dt.UTC),
    )
    journal.add(
        host="codex",
        workspace=Path("/elsewhere"),
        prompt="other",
        tokens=9,
        passages=[Passage("memory/2026-05-06.md#L3")],
        now=dt.datetime.now(dt.UTC),
    )
    [injected] = served.get("/api/note?path=memory/2026-05-06.md").json["injected"]
    assert (injected["host"], injected["prompt"]) == ("claude-code", "which port")
    attention = served.get("/api/home").json["attention"]
    assert attention["useless"] == []
    assert attention["never_found"]["paths"] == ["memory/2026-09-03.md"]
    journal.mark(journal.entries()[0].id)
    [useless] = served.get("/api/home").json["attention"]["useless"]
    assert useless["citation"] == "memory/2026-05-06.md#L3"


def test_a_file_that_is_not_read_is_named(served: Served, write: Write) -> None:
    write("memory/broken.md", bytes(range(32)) * 40)
    unread = served.get("/api/home").json["attention"]["unread"]
    assert [one["path"] for one in unread if one["path"].startswith("memory/")] == [
        "memory/broken.md"
    ]
    assert all(one["reason"] and one["hint"] for one in unread)


def test_an_empty_memory_says_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path, synced=False) as served:
        empty = served.get("/api/home").json["empty"]
    assert len(empty["sentences"]) == 3
    assert empty["command"].startswith("notewell ")


def test_read_only_home_says_so(root: Path, write: Write) -> None:
    write("memory/tea.md", "# Tea\n\nTea is at four.\n")
    with serving(root, read_only=True) as served:
        assert served.get("/api/home").json["can_write"] is False


def test_days_list_notes_the_newest_first(served: Served) -> None:
    answer = served.get("/api/days?from=2026-01-01&to=2026-10-01").json
    assert [(one["day"], [e["path"] for e in one["entries"]]) for one in answer["days"]] == [
        ("2026-09-03", ["memory/2026-09-03.md"]),
        ("2026-05-06", ["memory/2026-05-06.md"]),
    ]
    assert answer["more"] is None
    assert served.get("/api/days?from=nonsense").status == 400


def test_a_note_is_a_safe_page_with_what_surrounds_it(served: Served) -> None:
    note = served.get("/api/note?path=memory/auth.md").json
    assert "Tokens live &lt;b&gt;30&lt;/b&gt; days." in note["html"]
    assert note["outline"] == [{"level": 1, "text": "Auth", "line": 4}]
    assert [one["path"] for one in note["backlinks"]] == ["memory/2026-09-03.md"]
    other = served.get("/api/note?path=memory/2026-09-03.md").json
    assert '<a href="#/note/memory/auth.md">auth</a>' in other["html"]
    [statement] = other["statements"]
    assert [(v["from"], v["until"]) for v in statement["versions"]] == [
        ("2026-05-06", "2026-09-03"),
        ("2026-09-03", None),
    ]
    assert served.get("/api/note?path=memory/none.md").status == 404
    assert served.get(f"/api/note?path={quote('../../etc/passwd')}").status == 404


def test_a_search_can_render_its_hits(served: Served) -> None:
    found = served.get("/api/search?query=staging+port&render=true").json["results"]
    assert all("<mark>staging</mark>" in one["html"] for one in found[:1])
    assert "html" not in json.dumps(served.get("/api/search?query=staging+port").json["results"])


def test_a_change_is_shown_made_and_taken_back(served: Served) -> None:
    place = served.memory.root / "memory/auth.md"
    before = place.read_bytes()
    shown = served.post("/api/preview", {"action": "unpin", "ref": "auth"}).json
    assert "-pinned: true" in shown["diffs"][0]["diff"]
    assert shown["diffs"][0]["hash"] == served.get("/api/note?path=auth").json["hash"]
    assert place.read_bytes() == before
    made = served.post("/api/apply", {"token": shown["token"]}).json
    assert made["paths"] == ["memory/auth.md"]
    assert b"pinned" not in place.read_bytes()
    assert [one["id"] for one in served.get("/api/changes").json["changes"]] == [made["undo"]]
    assert served.post("/api/undo", {"undo": made["undo"]}).json["undo"] is None
    assert place.read_bytes() == before
    assert served.post("/api/undo", {"undo": made["undo"]}).status == 404


def test_a_conflict_is_told_and_nothing_is_written(served: Served, write: Write) -> None:
    shown = served.post(
        "/api/preview", {"action": "remember", "text": "Tea is at four.", "file": "memory/auth.md"}
    ).json
    write("memory/auth.md", "# Auth\n\nAnother tab was faster.\n")
    reply = served.post("/api/apply", {"token": shown["token"]})
    assert reply.status == 409
    assert reply.json["error"]["code"] == "changed"
    assert (served.memory.root / "memory/auth.md").read_text(
        encoding="utf-8"
    ) == "# Auth\n\nAnother tab was faster.\n"
    assert served.post("/api/apply", {"token": shown["token"]}).status == 404


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"action": "burn"}, "action must be one of"),
        ({"action": "remember"}, "remember needs text"),
        ({"action": "correct", "ref": "auth"}, "correct needs text"),
        ({"action": "settle", "keep": "auth"}, "settle needs drop"),
        ({"action": "pin", "ref": "auth", "text": "x"}, "pin has no argument 'text'"),
        ({"action": "forget", "ref": "none"}, "no note or passage is called 'none'"),
    ],
)
def test_a_wrong_change_is_refused_with_a_sentence(
    served: Served, given: dict[str, str], message: str
) -> None:
    error = served.post("/api/preview", given)
    assert error.status in (400, 404)
    assert message in error.json["error"]["message"]
    assert error.json["error"]["hint"]


def test_a_secret_in_a_diff_is_not_shown(served: Served) -> None:
    secret = "ghp_" + "a1B2" * 9
    shown = served.post(
        "/api/preview", {"action": "remember", "text": f"The key is {secret} for CI."}
    ).json
    assert secret not in json.dumps(shown)
    assert any("secret" in one for one in shown["warnings"])
    served.post("/api/apply", {"token": shown["token"]})
    assert secret not in json.dumps(served.get("/api/changes").json)


@pytest.mark.parametrize("route", ["preview", "apply", "undo"])
def test_writing_needs_what_it_always_needed(served: Served, route: str) -> None:
    assert served.get(f"/api/{route}").status == 405
    assert (
        served.ask("POST", f"/api/{route}", {}, headers={"Origin": "http://evil.example"}).status
        == 403
    )
    assert (
        served.ask("POST", f"/api/{route}", {}, headers={"Sec-Fetch-Site": "cross-site"}).status
        == 403
    )
    plain = served.ask("POST", f"/api/{route}", raw=b"{}", headers={"Content-Type": "text/plain"})
    assert plain.status == 400


def test_read_only_has_no_route_that_writes(root: Path, write: Write) -> None:
    write("memory/tea.md", "# Tea\n\nTea is at four.\n")
    with serving(root, read_only=True) as served:
        for route in ("preview", "apply", "undo"):
            assert served.post(f"/api/{route}", {}).status == 404
        assert served.get("/api/changes").status == 200
