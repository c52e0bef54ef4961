"""Many writers at once, and writers that are killed: no entry lost, none torn, nothing that was
forgotten back.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from notewell.memory import Memory

WRITER = """
import sys
from notewell.memory import Memory
root, name, count, heading, file = sys.argv[1:]
with Memory.open(root, embed__model="none") as memory:
    print("ready", flush=True)
    for n in range(int(count)):
        word = f"{name}x{n}".translate(str.maketrans("0123456789", "abcdefghij"))
        text = f"Entry {n} of writer {name} is called {word}q. " + (
            "It goes on for a while. " * (n % 7)
        )
        done = memory.remember(text + f"End {word}z.", heading=heading, file=file)
        assert done.written
        print(word, done.path, done.start_line, done.end_line, done.id, flush=True)
"""
APPENDER = """
import sys, pathlib
place = pathlib.Path(sys.argv[1])
for n in range(int(sys.argv[2])):
    with place.open("a") as file:
        file.write(f"\\nplain line {n} of a program that knows no locks\\n")
"""
FORGETTER = """
import sys
from notewell.memory import Memory
with Memory.open(sys.argv[1], embed__model="none") as memory:
    print("ready", flush=True)
    for n in range(40):
        receipt = memory.forget(query=f"codeword{n}q", yes=True, from_files=True)
        assert receipt.id and not receipt.still_found
        print(n, flush=True)
"""


def word(writer: int, number: int) -> str:
    """A name of letters alone, which the index keeps whole."""
    return f"w{writer}x{number}".translate(str.maketrans("0123456789", "abcdefghij"))


def python(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE
    )


def write_at_once(root: Path, each: int, *, writers: int = 8) -> None:
    (root / "memory").mkdir()
    shared = root / "memory/shared.md"
    shared.write_text("# Shared\n\n## Log\n\nfirst\n\n## Tail\n\nlast\n")
    others = python(APPENDER, shared, each)
    # Three shapes of writing at once: the note of the day, a section in the middle of a file, the
    # end of that file.
    shapes = [("", ""), ("Log", "memory/shared.md"), ("", "memory/shared.md"), ("", "MEMORY.md")]
    running = [python(WRITER, root, f"w{n}", each, *shapes[n % 4]) for n in range(writers)]
    told = [process.communicate(timeout=600)[0].decode() for process in running]
    assert [process.returncode for process in running] == [0] * writers
    others.communicate(timeout=60)
    assert others.returncode == 0
    text = "\n".join(p.read_text() for p in [*root.glob("memory/*.md"), root / "MEMORY.md"])
    for n in range(writers):
        for k in range(each):
            whole = re.findall(
                rf"Entry {k} of writer w{n} is called {word(n, k)}q\. .*?End {word(n, k)}z\.", text
            )
            assert len(whole) == 1, f"entry {k} of writer {n} stands {len(whole)} times"
            assert text.count(f"{word(n, k)}q") == 1
    assert (
        len(re.findall(r"^plain line \d+ of a program that knows no locks$", text, re.MULTILINE))
        == each
    )
    assert (
        sum(line.startswith("w") for lines in told for line in lines.splitlines()) == writers * each
    )
    with Memory.open(root, embed__model="none") as memory:
        memory.sync()
        for n in range(writers):
            for k in range(each):
                assert (
                    f"{word(n, k)}q"
                    in memory.search(f"{word(n, k)}q", sync=False).hits[0].chunk.text
                )
    assert not list(root.glob("memory/.*")), "no temporary file is left"


def test_eight_processes_write_at_once_and_nothing_is_lost(root: Path) -> None:
    write_at_once(root, 12)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_processes_write_two_hundred_entries_each(root: Path) -> None:
    write_at_once(root, 200)


@pytest.mark.parametrize("shape", [("", ""), ("Log", "memory/shared.md")])
def test_a_killed_writer_loses_nothing_that_it_reported_and_tears_no_file(
    root: Path, shape: tuple[str, str]
) -> None:
    chance = random.Random(11)
    (root / "memory").mkdir()
    start = "# Shared\n\n## Log\n\nfirst\n\n## Tail\n\nlast\n"
    (root / "memory/shared.md").write_text(start)
    reported: list[str] = []
    for life in range(6):
        process = python(WRITER, root, f"life{life}", 100_000, *shape)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        reported += [
            process.stdout.readline().decode().split()[0] for _ in range(chance.randrange(1, 6))
        ]
        spin = time.perf_counter() + chance.random() * 0.01
        while time.perf_counter() < spin:
            pass
        process.kill()
        rest = process.communicate()[0].decode().splitlines(keepends=True)
        reported += [line.split()[0] for line in rest if line.endswith("\n")]
    text = "".join(p.read_text() for p in root.glob("memory/*.md"))
    begun = re.findall(r"is called (\w+)q\.", text)
    ended = re.findall(r"End (\w+)z\.", text)
    assert begun == ended, "no entry stands there in part"
    assert set(reported) <= set(ended)
    assert len(ended) == len(set(ended))
    assert text.count("first") == text.count("last") == 1
    with Memory.open(root, embed__model="none") as memory:
        again = memory.remember(
            "After all the crashes this still works.", file=shape[1], heading=shape[0]
        )
        assert memory.search("crashes still works").hits[0].chunk.id == again.id


def test_a_killed_forgetter_brings_nothing_back_and_tears_no_file(root: Path) -> None:
    chance = random.Random(5)
    (root / "memory").mkdir()
    for part in range(4):
        lines = [
            f"- Fact {n} has the codeword{n}q and is whole{n}z."
            for n in range(part * 10, part * 10 + 10)
        ]
        (root / f"memory/part{part}.md").write_text(
            f"# Part {part}\n\nkept text\n\n" + "\n".join(lines) + "\n"
        )
    process = python(FORGETTER, root)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    done = [int(process.stdout.readline()) for _ in range(chance.randrange(3, 9))]
    spin = time.perf_counter() + chance.random() * 0.05
    while time.perf_counter() < spin:
        pass
    process.kill()
    done += [
        int(line)
        for line in process.communicate()[0].decode().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    text = "".join(p.read_text() for p in sorted(root.glob("memory/*.md")))
    there = [int(n) for n in re.findall(r"codeword(\d+)q", text)]
    assert there == [int(n) for n in re.findall(r"whole(\d+)z", text)], (
        "no line stands there in part"
    )
    assert not set(done) & set(there)
    assert len(there) >= 40 - len(done) - 1, "at most the one under way is gone without a receipt"
    assert text.count("kept text") == 4
    with Memory.open(root, embed__model="none") as memory:
        for n in done:
            assert not memory.forget(query=f"codeword{n}q").pieces
        for n in there[1:]:
            assert memory.forget(query=f"codeword{n}q").pieces
    backups = list((root / ".notewell/backup").iterdir())
    assert backups
    assert json.dumps([p.stat().st_mode & 0o777 for p in backups]) == json.dumps(
        [0o600] * len(backups)
    )
