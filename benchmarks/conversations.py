"""Twenty thousand conversations: how long until they can be searched, and what a look costs when
nothing has changed.

    python -m benchmarks.conversations --count 20000 --mb 2000

makes them in a folder of its own, as Claude Code, Codex and Goose keep them, most bytes being
output of tools, as in real ones; then indexes without vectors, looks again twice, adds one turn,
and lets half of them be deleted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_WORDS = """
port staging ledger invoice deploy tunnel proxy cache queue token session schema index batch worker
retry cron timeout socket branch merge review release rollback migrate bucket region replica shard
vector keyword chunk note memory agent prompt model answer question customer price report budget
meeting decision owner deadline garden boat
""".split()  # noqa: SIM905 - easier to read
_TURNS = 12
_START = 1_767_225_600  # 2026-01-01


def _sentence(random_: random.Random, count: int) -> str:
    return " ".join(random_.choices(_WORDS, k=count)).capitalize() + f" {random_.randrange(5000)}."


def _turns(random_: random.Random, output_bytes: int) -> Iterator[tuple[str, str, str]]:
    """Role, words and what a tool answered."""
    for number in range(_TURNS):
        if number % 2 == 0:
            yield "user", _sentence(random_, 14), ""
        else:
            said = " ".join(_sentence(random_, 18) for _ in range(3))
            yield (
                "assistant",
                said,
                f"{random_.getrandbits(64):016x} " * (output_bytes // (_TURNS // 2) // 17),
            )


def _claude(root: Path, number: int, random_: random.Random, output_bytes: int) -> str:
    lines = []
    for at, (role, words, output) in enumerate(_turns(random_, output_bytes)):
        when = time.strftime(
            "%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(_START + number * 1000 + at * 60)
        )
        about = {
            "timestamp": when,
            "cwd": str(root),
            "sessionId": str(number),
            "isSidechain": False,
        }
        if output:
            result = [{"type": "tool_result", "tool_use_id": "t", "content": output}]
            lines.append(
                {
                    "type": "user",
                    "message": {"role": "user", "content": result},
                    "toolUseResult": {},
                    **about,
                }
            )
        lines.append(
            {
                "type": role,
                "message": {"role": role, "content": [{"type": "text", "text": words}]},
                **about,
            }
        )
    return "".join(json.dumps(line) + "\n" for line in lines)


def _codex(root: Path, number: int, random_: random.Random, output_bytes: int) -> str:
    lines: list[dict[str, object]] = [
        {"type": "session_meta", "payload": {"id": str(number), "cwd": str(root)}}
    ]
    for at, (role, words, output) in enumerate(_turns(random_, output_bytes)):
        when = time.strftime(
            "%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(_START + number * 1000 + at * 60)
        )
        if output:
            answer = {"type": "function_call_output", "call_id": "t", "output": output}
            lines.append({"type": "response_item", "timestamp": when, "payload": answer})
        kind = "input_text" if role == "user" else "output_text"
        said = {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
        lines.append({"type": "response_item", "timestamp": when, "payload": said})
    return "".join(json.dumps(line) + "\n" for line in lines)


def _goose(
    file: Path, root: Path, numbers: range, random_: random.Random, output_bytes: int
) -> None:
    import apsw

    file.parent.mkdir(parents=True)
    with apsw.Connection(str(file)) as db:
        db.execute(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT,"
            " session_type TEXT DEFAULT 'user', working_dir TEXT, updated_at TIMESTAMP);"
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,"
            " content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);"
            "CREATE INDEX idx_messages_session ON messages(session_id);"
        )
        for number in numbers:
            begun = _START + number * 1000
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(begun + 600))
            db.execute(
                "INSERT INTO sessions VALUES (?, '', '', 'user', ?, ?)",
                (str(number), str(root), when),
            )
            for at, (role, words, output) in enumerate(_turns(random_, output_bytes)):
                content = [{"type": "toolResponse", "toolResult": output}] if output else []
                content.append({"type": "text", "text": words})
                parts = [[content[0]], [content[1]]] if output else [content]
                for part in parts:
                    row = (
                        str(number),
                        "user" if part[0]["type"] == "toolResponse" else role,
                        json.dumps(part),
                        begun + at,
                    )
                    db.execute(
                        (
                            "INSERT INTO messages (session_id, role, content_json, "
                            "created_timestamp) VALUES (?, ?, ?, ?)"
                        ),
                        row,
                    )
    db.close()


def make(home: Path, root: Path, *, count: int, mb: float, seed: int = 7) -> None:
    """Writes the conversations below a home: three quarters in files of Claude Code, the rest of
    Codex and Goose.
    """
    random_ = random.Random(seed)  # noqa: S311 - nothing secret
    output_bytes = max(0, int(mb * 1e6 / count) - 4500)
    slug = re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(root))
    claude = home / ".claude/projects" / slug
    claude.mkdir(parents=True)
    codex = home / ".codex/sessions/2026"
    codex.mkdir(parents=True)
    goose = count // 20
    for number in range(count - goose):
        place, form = (
            (codex / f"rollout-{number}.jsonl", _codex)
            if number % 5 == 0
            else (claude / f"{number}.jsonl", _claude)
        )
        place.write_text(form(root, number, random_, output_bytes))
        when = _START + number * 1000
        os.utime(place, (when, when))
    _goose(
        home / ".local/share/goose/sessions/sessions.db",
        root,
        range(count - goose, count),
        random_,
        output_bytes,
    )


def _timed(what: str, work: Callable[[], object]) -> float:
    begun, used = time.perf_counter(), time.process_time()
    work()
    took = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(
        f"{what:<44} {took:8.2f} s  {time.process_time() - used:8.2f} s CPU  {memory:6.0f} MB",
        flush=True,
    )
    return took


def main() -> None:
    """Makes, measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--mb", type=float, default=2000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder, "home"), Path(os.path.realpath(folder), "work")
        root.mkdir()
        for name in [name for name in os.environ if name.startswith(("XDG_", "NOTEWELL_"))]:
            del os.environ[name]
        os.environ["HOME"] = str(home)
        make(home, root, count=given.count, mb=given.mb)
        print(f"{given.count} conversations, {given.mb:.0f} MB")
        _measure(home, root)


def _measure(home: Path, root: Path) -> None:
    from notewell.memory import Memory, conversations_found

    _timed("count what was found, before it is read", lambda: print(conversations_found(root)))
    with Memory.open(root, sources="memory,sessions", embed__model="none") as memory:
        walk = memory.index.walk  # without vectors, copies and contradictions, which come after it
        _timed("first index, searchable by keywords", lambda: print(walk.sync().chunks, "passages"))
        _timed("a look, nothing changed", walk.sync)
        _timed("a look, nothing changed, again", walk.sync)
        _timed("a search", lambda: memory.search("staging port ledger", sync=False))
        place = next((home / ".claude/projects").glob("*/*.jsonl"))
        said = {
            "type": "user",
            "message": {"role": "user", "content": "The zebra is in the garden."},
        }
        with place.open("a") as file:
            file.write(json.dumps(said) + "\n")
        _timed("a look, one turn more", walk.sync)
        for number, gone in enumerate((home / ".claude/projects").glob("*/*.jsonl")):
            if number % 2:
                gone.unlink()
        _timed("a look, half of the files deleted", lambda: print(walk.sync().dropped, "dropped"))
        _timed("a look after that, nothing changed", walk.sync)
    kept = [p.stat().st_size for p in (home / ".local/share/notewell/conversations").glob("*/*.md")]
    print(f"kept: {len(kept)} files, {sum(kept) / 1e6:.0f} MB; index: {_index_mb(root):.0f} MB")


def _index_mb(root: Path) -> float:
    return sum(p.stat().st_size for p in (root / ".notewell").iterdir()) / 1e6


if __name__ == "__main__":
    main()
