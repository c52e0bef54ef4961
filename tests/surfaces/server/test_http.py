"""The HTTP server, asked over a real socket."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from notewell.surfaces import view
from notewell.surfaces.cli.commands import run
from notewell.surfaces.server import texts
from notewell.surfaces.server.calls import CALLS
from notewell.surfaces.server.guard import MAX_BODY, Door
from notewell.surfaces.server.page_calls import PAGE_CALLS
from tests.conftest import Write
from tests.surfaces.server.served import Served, serving

TOKEN = "a-token-of-thirty-two-characters"
ROUTES = [f"/api/{name}" for name in (*CALLS, *PAGE_CALLS)] + [
    "/",
    "/page.js",
    "/openapi.json",
    "/api/events",
    "/mcp",
    "/nothing",
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served")
    (root / "memory").mkdir()
    (root / "memory/2026-02-10.md").write_text(
        "# Standup\n\nThe staging port is 8081 now.\n", encoding="utf-8"
    )
    (root / "memory/2026-03-12.md").write_text(
        "# Deploy\n\nDeploys moved to Tuesday.\n", encoding="utf-8"
    )
    (root / "MEMORY.md").write_text(
        "# Facts\n\n日本語のメモ。ステージングは夜に止まる。\n", encoding="utf-8"
    )
    (root / "secret.txt").write_text("not a note\n", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def served(workspace: Path) -> Iterator[Served]:
    with serving(workspace) as one:
        yield one


def test_get_and_post_answer_alike_in_the_one_shape(served: Served) -> None:
    by_get = served.get("/api/search?query=staging%20port&limit=2&explain=true").json
    by_post = served.post(
        "/api/search", {"query": "staging port", "limit": 2, "explain": True}
    ).json
    assert by_get["results"] == by_post["results"]
    own = view.found(served.memory.search("staging port", limit=2), explain=True)
    assert by_get.keys() == own.keys()
    assert by_get["results"][0]["citation"] == "memory/2026-02-10.md#L3"
    assert len(by_get["results"]) == 2


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("search", {"query": "staging", "explain": True}),
        ("search", {"query": "夜に止まる"}),
        ("get", {"reference": "memory/2026-02-10.md"}),
        ("why", {"query": "staging", "reference": "memory/2026-03-12.md"}),
        (
            "search",
            {"query": "staging", "format": "context", "budget_tokens": 300, "as_of": "2026-06"},
        ),
        ("search", {"query": "staging", "include_superseded": True, "source": "media"}),
        ("timeline", {"around": "2026-02", "window": 3}),
        ("timeline", {"reference": "memory/2026-02-10.md"}),
        ("remember", {"text": "Tea is at four.", "file": "memory/tea.md", "tags": ["tea"]}),
        ("forget", {"query": "tea four"}),
        ("status", {}),
        ("profiles", {}),
        ("search", {"query": "staging", "render": True}),
        ("home", {}),
        ("preview", {"action": "remember", "text": "Lunch is at noon."}),
        ("changes", {}),
        ("days", {"from": "2026-01", "as_of": "2026-06"}),
        ("note", {"path": "memory/2026-02-10.md", "as_of": "2026-06"}),
    ],
)
def test_every_answer_has_the_shape_the_document_promises(
    served: Served, call: str, given: dict[str, object]
) -> None:
    reply = served.post(f"/api/{call}", given)
    assert reply.status == 200
    document = served.get("/openapi.json").json
    schema = document["paths"][f"/api/{call}"]["post"]["responses"]["200"]["content"][
        "application/json"
    ]["schema"]
    jsonschema.validate(reply.json, schema)
    assert reply.headers["content-type"] == "application/json"


def test_all_returns_what_is_almost_surely_wrong(served: Served) -> None:
    question = {"query": "quarterly zeppelin hangar inspection of the Montgolfier brothers"}
    assert served.post("/api/search", question).json["results"] == []
    whole = served.post("/api/search", {**question, "all": True}).json["results"]
    assert {hit["certainty"] for hit in whole} == {"weak"}
    assert served.get("/api/search?query=quarterly%20zeppelin%20hangar&all=true").json["results"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (
            "/api/search",
            {"query": "x", "all": True, "min_score": 0.3},
            "both set the lowest confidence",
        ),
        ("/api/search", {}, "needs query"),
        ("/api/search", {"query": "  "}, "empty"),
        ("/api/search", {"query": 7}, "query must be a text, not 7"),
        ("/api/search", {"query": "x", "limit": 0}, "limit must be from 1 to 100, not 0"),
        ("/api/search", {"query": "x", "limit": True}, "limit must be a whole number"),
        ("/api/search", {"query": "x", "min_score": float("nan")}, "min_score must be a number"),
        ("/api/search", {"query": "x", "profile": "best"}, "profile must be one of default"),
        ("/api/search", {"query": "x", "since": "whenever"}, "since 'whenever' is not a date"),
        ("/api/search", {"query": "x", "stages": ["mmr(lambda=7)"]}, "lambda is 7"),
        ("/api/search", {"query": "x", "colour": "red"}, "no argument 'colour'"),
        ("/api/search", {"query": "x", "as_of": "whenever"}, "as_of 'whenever' is not a date"),
        ("/api/search", {"query": "x", "since": "2026-03", "until": "2026-02"}, "is after until"),
        ("/api/search", {"query": "x", "stages": ["cut"] * 21}, "stages takes at most 20"),
        ("/api/get", {"reference": "x" * 2000}, "longer than 1,000"),
        ("/api/remember", {"text": " "}, "text is empty"),
        ("/api/remember", {"text": "x", "file": "../outside.md"}, "cannot be written"),
        (
            "/api/remember",
            {"text": "x", "file": "memory/a\nb.md"},
            r"hidden character: memory/a\nb.md",
        ),
        ("/api/remember", {"text": "x", "file": f"memory/{'n' * 300}.md"}, "too many letters"),
        ("/api/remember", {"text": "x", "file": f"memory/{'n' * 300}/a.md"}, "too many letters"),
        (
            "/api/preview",
            {"action": "remember", "text": "x", "file": f"memory/{'名' * 100}.md"},
            "too many letters",
        ),
        ("/api/remember", {"text": "x", "date": "whenever"}, "date 'whenever' is not a date"),
        ("/api/forget", {}, "say what to forget in one way"),
        ("/api/forget", {"reference": "memory/2026-02-10.md", "query": "x"}, "in one way"),
        ("/api/timeline", {"around": "whenever"}, "around 'whenever' is not a date"),
        (
            "/api/timeline",
            {"around": "2026-02", "reference": "MEMORY.md"},
            "cannot both be the middle",
        ),
    ],
)
def test_a_wrong_argument_says_which_and_what_would_be_right(
    served: Served, path: str, body: dict[str, object], words: str
) -> None:
    reply = served.post(path, body)
    assert reply.status == 400
    assert words in reply.json["error"]["message"]
    assert reply.json["error"]["hint"]


def test_the_query_part_is_read_by_kind(served: Served) -> None:
    assert served.get("/api/search?query=x&limit=ten").status == 400
    assert served.get("/api/search?query=x&explain=maybe").status == 400
    found = served.get(
        "/api/search?query=staging&stages=decay(half_life_days%3D30)&stages=mmr&explain=1"
    ).json
    assert [s["name"].partition("(")[0] for s in found["trace"]["stages"]] == [
        "Combine",
        "Decay",
        "Mmr",
        "Cut",
    ]


def test_bodies_that_are_no_json_objects_are_refused(served: Served) -> None:
    for raw in (b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000):
        reply = served.ask(
            "POST", "/api/search", raw=raw, headers={"Content-Type": "application/json"}
        )
        assert reply.status == 400, raw[:10]
    assert served.ask("POST", "/api/search", raw=b"query=x").status == 400


def test_unknown_places_and_methods_are_named(served: Served) -> None:
    assert served.get("/api/everything").json["error"]["code"] == "not_found"
    wrong = served.ask("DELETE", "/api/search")
    assert (wrong.status, wrong.json["error"]["code"]) == (405, "wrong_method")
    assert served.post("/api/get", {"reference": "memory/none.md"}).status == 404


def test_a_stream_brings_keywords_first_and_the_final_order_last(served: Served) -> None:
    reply = served.get("/api/search?query=staging%20port", Accept="application/x-ndjson")
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert [line["phase"] for line in lines] == ["lexical", "vector", "final"]
    assert [line["mode"] for line in lines] == ["lexical", "vector", "hybrid"]
    assert lines[-1]["results"] == served.get("/api/search?query=staging%20port").json["results"]


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b", "[::1"]
)
@pytest.mark.parametrize("route", ROUTES)
def test_a_foreign_host_is_turned_away_from_every_route(
    served: Served, route: str, host: str
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.putrequest("GET", route, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status in (421, 400), answer.read()
    assert b"staging" not in answer.read()
    connection.close()


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost.evil.example",
        "file://",
        "http://[",
        "",
    ],
)
@pytest.mark.parametrize("route", ROUTES)
def test_a_foreign_origin_is_turned_away_from_every_route(
    served: Served, route: str, origin: str
) -> None:
    assert served.ask("GET", route, headers={"Origin": origin}).status == 403
    assert served.ask("POST", route, {"query": "x"}, headers={"Origin": origin}).status == 403


def test_the_own_page_may_ask(served: Served) -> None:
    host = f"127.0.0.1:{served.port}"
    assert (
        served.get(
            "/api/status", Origin=f"http://{host}", **{"Sec-Fetch-Site": "same-origin"}
        ).status
        == 200
    )
    assert served.get("/api/status", **{"Sec-Fetch-Site": "cross-site"}).status == 403
    assert "access-control-allow-origin" not in served.get("/api/status").headers


TRAVERSALS = [
    "../secret.txt",
    "..\\secret.txt",
    "memory/../secret.txt",
    "memory/../../etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "....//secret.txt",
    "..%2fsecret.txt",
    "%2e%2e/secret.txt",
    "..%252fsecret.txt",
    "memory/./../secret.txt",
    "secret.txt",
    "./secret.txt",
    "file:///etc/passwd",
    "~/.bashrc",
    "memory/%2e%2e%2fsecret.txt",
    "..;/secret.txt",
    "memory\\..\\secret.txt",
    "memory/..\u2215secret.txt",
    "\uff0e\uff0e/secret.txt",
    "secret.txt\0.md",
    "../secret.txt:1",
    ".notewell/index.sqlite",
    "memory/../secret.txt#L1-L2",
]


@pytest.mark.parametrize("reference", TRAVERSALS)
def test_no_spelling_reads_what_is_not_a_note(served: Served, reference: str) -> None:
    for reply in (
        served.post("/api/get", {"reference": reference}),
        served.get("/api/get?reference=" + urllib.parse.quote(reference)),
    ):
        assert reply.status in (400, 404)
        assert b"not a note" not in reply.body
        assert b"root:" not in reply.body


def test_a_link_that_leaves_the_workspace_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("outside words\n", encoding="utf-8")
    root = tmp_path / "workspace"
    (root / "memory").mkdir(parents=True)
    (root / "memory/link.md").symlink_to(tmp_path / "outside.md")
    with serving(root) as served:
        assert served.post("/api/get", {"reference": "memory/link.md"}).status == 404
        assert served.post("/api/search", {"query": "outside words"}).json["results"] == []


def test_too_large_a_body_is_refused_before_it_is_read(served: Served) -> None:
    reply = served.ask("POST", "/api/search", headers={"Content-Length": str(MAX_BODY + 1)})
    assert reply.status == 413
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request(
        "POST",
        "/api/search",
        iter([b"x" * 400_000] * 3),
        {"Content-Type": "application/json"},
        encode_chunked=True,
    )
    assert connection.getresponse().status == 413
    connection.close()


def test_every_reply_tells_browsers_to_be_strict(served: Served) -> None:
    for route in ROUTES[:-3]:
        headers = served.get(route).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_a_token_is_asked_for_everything_but_the_bare_page(workspace: Path) -> None:
    with serving(workspace, door=Door(token=TOKEN)) as served:
        for route in (
            "/api/search?query=x",
            "/api/status",
            "/api/events",
            "/mcp",
            "/openapi.json",
            "/nothing",
        ):
            assert served.get(route).status == 401
            assert served.get(route, Authorization="Bearer wrong").status == 401
            assert served.get(route, Authorization=TOKEN).status == 401
        assert served.ask("POST", "/api/key").status == 401
        refused = served.get("/api/status")
        assert refused.json["error"]["code"] == "no_token"
        assert "#token=" in refused.json["error"]["hint"]
        assert refused.headers["www-authenticate"] == "Bearer"
        assert served.get("/api/status", Authorization=f"Bearer {TOKEN}").status == 200
        assert served.get("/").status == 200


def test_the_token_is_given_for_the_key_of_this_run_which_opens_as_well(workspace: Path) -> None:
    keys = []
    for _ in range(2):
        with serving(workspace, door=Door(token=TOKEN), warm=False) as served:
            reply = served.ask("POST", "/api/key", headers={"Authorization": f"Bearer {TOKEN}"})
            assert reply.headers["cache-control"] == "no-store"
            keys.append(reply.json["key"])
            for key in keys:
                status = served.get("/api/status", Authorization=f"Bearer {key}").status
                assert status == (200 if key == keys[-1] else 401)
    assert len({TOKEN, *keys}) == 3


def test_a_door_admits_nobody_by_itself(workspace: Path) -> None:
    with serving(workspace, door=Door(), warm=False) as served:
        assert served.get("/api/status").status == 401
        assert served.get("/api/status", Authorization="Bearer ").status == 401


def test_mcp_takes_the_token_as_a_bearer(workspace: Path) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    takes = {"Accept": "application/json, text/event-stream"}
    with serving(workspace, door=Door(token=TOKEN)) as served:
        assert served.post("/mcp", hello, **takes).status == 401
        known = {**takes, "Authorization": f"Bearer {TOKEN}"}
        assert b"serverInfo" in served.post("/mcp", hello, **known).body


def test_the_page_is_shown_by_address_and_not_as_localhost(served: Served) -> None:
    for host, where in (("localhost:9000", "127.0.0.1:9000"), ("LOCALHOST", "127.0.0.1")):
        reply = served.get("/?q=port", Host=host)
        assert (reply.status, reply.headers["location"]) == (307, f"http://{where}/?q=port")
    assert served.get("/api/status", Host="localhost:9000").status == 200
    assert served.get("/", Host=f"127.0.0.1:{served.port}").status == 200


def test_read_only_leaves_out_what_writes(workspace: Path) -> None:
    with serving(workspace, read_only=True) as served:
        document = served.get("/openapi.json").json
        offered = {path.removeprefix("/api/") for path in document["paths"]}
        assert offered == {name for name, call in (CALLS | PAGE_CALLS).items() if not call.writes}


def test_the_events_begin_at_once(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    assert answer.read1(100).startswith(b": notewell")
    connection.close()


def test_a_note_written_while_it_serves_is_found(root: Path, write: Write) -> None:
    with serving(root) as served:
        assert served.post("/api/search", {"query": "walrus"}).json["results"] == []
        write("memory/new.md", "A walrus was seen.\n")
        assert len(served.post("/api/search", {"query": "walrus"}).json["results"]) == 1


def test_what_is_remembered_is_found_and_what_is_forgotten_is_not(root: Path, write: Write) -> None:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 8081.\n")
    with serving(root) as served:
        done = served.post(
            "/api/remember", {"text": "The walrus lives in Oslo.", "heading": "Animals"}
        ).json
        assert done["written"]
        again = served.post(
            "/api/remember", {"text": "The walrus lives in Oslo.", "heading": "Animals"}
        ).json
        assert (again["written"], again["id"]) == (False, done["id"])
        found = served.post("/api/search", {"query": "where does the walrus live"}).json["results"]
        assert found[0]["id"] == done["id"]
        preview = served.post("/api/forget", {"reference": done["id"]}).json
        assert (preview["dry_run"], preview["receipt"]) == (True, None)
        assert "walrus" in preview["passages"][0]["text"]
        assert served.post("/api/search", {"query": "walrus"}).json["results"]
        gone = served.post(
            "/api/forget", {"reference": done["id"], "yes": True, "from_files": True}
        ).json
        assert gone["proof"]["proved"]
        assert not any("walrus" in note.read_text() for note in root.rglob("memory/*.md"))
        left = served.post("/api/search", {"query": "walrus"}).json["results"]
        assert "walrus" not in json.dumps(left)
        refused = served.post("/api/remember", {"text": "The walrus lives in Oslo."}).json
        assert "force remembers" in refused["error"]["hint"]
        assert "--" not in refused["error"]["hint"]


def test_what_writes_takes_no_get_and_is_away_when_read_only(root: Path, write: Write) -> None:
    write("MEMORY.md", "- a fact\n")
    with serving(root) as served:
        assert served.get("/api/remember?text=x").status == 405
        assert served.get("/api/forget?query=fact&yes=true").status == 405
    with serving(root, read_only=True) as served:
        assert served.post("/api/remember", {"text": "x"}).status == 404
        assert served.post("/api/forget", {"query": "fact", "yes": True}).status == 404
    assert (root / "MEMORY.md").read_text() == "- a fact\n"


def test_the_answers_are_those_of_the_command(
    root: Path, write: Write, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 8081.\n")
    write("memory/2026-02-11.md", "# Standup\n\nThe staging port moved.\n")
    common = ["-w", str(root), "--model", "hashed", "--json"]
    with serving(root) as served:
        for line, call, given in (
            (
                ["search", "staging port", "--as-of", "2026-02-10"],
                "search",
                {"query": "staging port", "as_of": "2026-02-10"},
            ),
            (
                ["search", "staging", "--format", "context"],
                "search",
                {"query": "staging", "format": "context"},
            ),
            (["timeline", "--around", "2026-02-10"], "timeline", {"around": "2026-02-10"}),
            (["forget", "--query", "staging moved"], "forget", {"query": "staging moved"}),
            (["remember", "Mira leads."], "remember", {"text": "Mira leads."}),
        ):
            assert run([*line, *common]) == 0
            own = json.loads(capsysbinary.readouterr().out)
            answer = served.post(f"/api/{call}", given).json
            assert answer.keys() == own.keys(), call
            for key in ("results", "context", "entries", "passages", "id", "citation"):
                if key == "results":
                    strip = [{**h, "recency": 0} for h in own.get(key, [])]
                    assert [{**h, "recency": 0} for h in answer.get(key, [])] == strip
                else:
                    assert answer.get(key) == own.get(key)


def hear(
    served: Served, wanted: Callable[[dict[str, Any]], bool], act: Callable[[], object]
) -> list[dict[str, Any]]:
    """Events from before `act` until the one that is waited for."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    assert answer.readline().startswith(b": notewell")
    act()
    heard: list[dict[str, Any]] = []
    while not heard or not wanted(heard[-1]):
        line = answer.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            heard.append(json.loads(line.removeprefix(b"data: ")))
    connection.close()
    return heard


def test_what_happens_is_told_as_events(root: Path, write: Write) -> None:
    write("MEMORY.md", "- a fact\n")
    with serving(root) as served:
        assert served.post("/api/search", {"query": "fact"}).json["results"]
        heard = hear(
            served,
            lambda e: e["event"] == "synced" and e["added"] == 3,
            lambda: [write(f"memory/{n}.md", f"Walrus {n}.\n") for n in range(3)],
        )
        assert heard[-1]["changed"] is True
        progress = [e for e in heard if e["event"] == "progress"]
        assert {e["what"] for e in progress} >= {"notes"}
        assert all(0 <= e["done"] <= e["total"] for e in progress)
        assert len(served.post("/api/search", {"query": "walrus"}).json["results"]) >= 3


def test_vectors_come_by_themselves_and_are_told_of(root: Path, write: Write) -> None:
    for n in range(40):
        write(f"memory/{n}.md", f"Walrus number {n} eats soup.\n")
    with serving(root, synced=False) as served:
        heard = hear(served, lambda e: e["event"] == "synced", lambda: None)
        status = served.post("/api/status", {}).json
        assert (status["embedded"], status["pending"], status["fresh"]) == (40, 0, True), heard


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_searches_while_an_index_runs(root: Path, write: Write, count: int) -> None:
    write("memory/fact.md", "The walrus lives in Oslo.\n")
    for n in range(count // 4):
        write(
            f"memory/{n}.md",
            f"# Day {n}\n\nThe staging port is {n}.\n\n## Lunch\n\nSoup number {n}.\n",
        )
    failed: list[Any] = []
    with serving(root) as served:

        def ask(share: int) -> None:
            for n in range(share):
                reply = served.post("/api/search", {"query": f"where does the walrus live {n % 5}"})
                if reply.status != 200 or "Oslo" not in json.dumps(reply.json["results"][:3]):
                    failed.append((reply.status, reply.body[:300]))

        assert served.post("/api/search", {"query": "walrus"}).status == 200
        threads = [threading.Thread(target=ask, args=(count // 20,)) for _ in range(20)]
        for thread in threads:
            thread.start()
        served.memory.sync(force=True)
        for n in range(20):
            write(f"memory/later-{n}.md", f"A later note, number {n}.\n")
        served.memory.sync()
        for thread in threads:
            thread.join()
        assert failed == []
        found = served.post("/api/search", {"query": "later note number 19"}).json
        assert "number 19" in found["results"][0]["snippet"]
        assert not found["stale"]


def test_forgetting_names_other_notes_and_takes_them_along_when_asked(
    root: Path, write: Write
) -> None:
    for name in ("mon", "tue"):
        write(f"memory/{name}.md", f"# {name}\n\nMeeting notes follow below, as ever.\n")
    given = {"reference": "memory/mon.md:3"}
    with serving(root) as served:
        preview = served.post("/api/forget", given).json
        assert (preview["everywhere"], preview["elsewhere"]) == (False, ["memory/tue.md#L3"])
        assert "stays there, unless you pass everywhere: true: memory/tue.md#L3" in texts.forget(
            preview
        )
        gone = served.post("/api/forget", {**given, "everywhere": True, "yes": True}).json
        assert "goes there too: memory/tue.md#L3" in texts.forget(gone)
        found = served.get("/api/search?query=meeting+notes+follow&min_score=0").json["results"]
        assert not any("follow" in hit["snippet"] for hit in found)


def test_without_the_mcp_package_the_rest_answers(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with serving(workspace) as bare:
        assert bare.get("/api/search?query=staging").status == 200
        refused = bare.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize"})
    assert refused.status == 501
    assert refused.json["error"]["code"] == "not_installed"
    assert refused.json["error"]["hint"] == 'pip install "notewell[mcp]"'


def test_without_the_mcp_package_its_command_says_what_to_install(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert run(["mcp", "-w", str(workspace)]) == 2
    assert 'pip install "notewell[mcp]"' in capsys.readouterr().err
