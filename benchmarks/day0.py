"""The first day: an agent's old conversations, nothing indexed yet, and somebody asks.

    python benchmarks/day0.py --count 20000 --mb 2000       # and writes its section of PUBLIC.md

makes conversations as three agents keep them (`conversations.py`), plants facts in some of them,
and measures the first answer, the first index by keywords, and how often the passage with a planted
fact is among the first hits, beside lexical libraries over the same passages. No vectors are made:
a first answer cannot wait for them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import peers
from conversations import make
from measure import machine, number
from public import PAGE, put_section

from notewell.index.documents import embed_text
from notewell.memory import Memory
from notewell.types import Chunk

_SYLLABLES = (
    "bar",
    "cor",
    "del",
    "fen",
    "gal",
    "hes",
    "jor",
    "kel",
    "lun",
    "mar",
    "nor",
    "per",
    "quin",
    "ros",
    "sel",
    "tam",
)
# What was said, and what somebody asks later, in other words where people would use them.
_FORMS = (
    (
        "The invoice of {name} goes to their office, order number {code}.",
        "which order number is on the invoice of {name}",
    ),
    (
        "We decided that {name} deploys on the replica first, ticket {code}.",
        "what was decided about deploying {name}",
    ),
    (
        "The staging port of the {name} service is {code} since the migration.",
        "staging port of {name}",
    ),
    (
        "{name} asked for a rollback; the release was {code}.",
        "which release did {name} want to roll back",
    ),
    (
        "The door code of the {name} garden house is {code}, do not lose it.",
        "how do I get into the garden house of {name}",
    ),
)
_FIRST_S, _FULL_S = 3.0, 60.0


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was said once, the question for it, and the code by which its passage is
    known.
    """

    said: str
    question: str
    code: str


def facts(count: int, seed: int = 11) -> list[Fact]:
    """Facts about made-up names: five about each name, so that a name alone finds all five."""
    random_ = random.Random(seed)  # noqa: S311 - nothing secret
    names = [a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES if a != b != c]
    codes = random_.sample(range(10_000, 99_999), count)
    chosen = random_.sample(names, count // len(_FORMS) + 1)
    made = []
    for n, code in enumerate(codes):
        said, question = _FORMS[n % len(_FORMS)]
        given = {"name": chosen[n // len(_FORMS)].capitalize(), "code": f"Q{code}"}
        made.append(Fact(said.format(**given), question.format(**given), given["code"]))
    return made


def plant(home: Path, planted: Sequence[Fact]) -> None:
    """Adds each fact as the last turn of a conversation of Claude Code, evenly spaced over all of
    them.
    """
    files = sorted((home / ".claude/projects").glob("*/*.jsonl"))
    for n, fact in enumerate(planted):
        place = files[n * len(files) // len(planted)]
        stat = place.stat()
        line = {
            "type": "user",
            "message": {"role": "user", "content": [{"type": "text", "text": fact.said}]},
        }
        last = json.loads(place.read_text(encoding="utf-8").splitlines()[-1])
        about = {key: last[key] for key in ("timestamp", "cwd", "sessionId", "isSidechain")}
        with place.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line | about) + "\n")
        os.utime(place, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def hits(planted: Sequence[Fact], answers: Sequence[Sequence[str]]) -> dict[int, float]:
    """The share of facts whose passage is among the first k texts of its answer."""
    return {
        k: sum(
            any(f.code in t for t in texts[:k]) for f, texts in zip(planted, answers, strict=True)
        )
        / len(planted)
        for k in (1, 5, 10)
    }


def _row(name: str, took_s: float, found: dict[int, float], ms: float) -> str:
    return (
        f"| {name} | {number(took_s)} | {' | '.join(f'{found[k]:.3f}' for k in (1, 5, 10))} | "
        f"{ms:.1f} |"
    )


def measured(root: Path, planted: Sequence[Fact], *, with_peers: bool) -> list[str]:
    """The lines of the section."""
    begun = time.perf_counter()
    with Memory.open(root, sources="memory,sessions", embed__model="none") as memory:
        early = memory.search(planted[-1].question)
        first_s = time.perf_counter() - begun
        soon = any(planted[-1].code in hit.chunk.text for hit in early.hits[:10])
        walk = memory.index.walk  # without copies and contradictions, which come after it
        used = time.process_time()
        walk.sync()
        full_s, cpu_s = time.perf_counter() - begun, time.process_time() - used
        took, answers = [], []
        for fact in planted:
            asked = time.perf_counter()
            found = memory.search(fact.question, limit=10, sync=False)
            took.append(1000 * (time.perf_counter() - asked))
            answers.append([hit.chunk.text for hit in found.hits])
        store = memory.store
        chunks: list[Chunk] = [
            c for path in store.documents.stored() for c in store.documents.chunks_of(path)
        ]
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    first = (
        f"{first_s:.2f} s after the start (wanted: {_FIRST_S:g} s; {_verdict(first_s, _FIRST_S)})"
    )
    full = (
        f"{full_s:.0f} s, {cpu_s:.0f} s of CPU time (wanted: {_FULL_S:g} s; "
        f"{_verdict(full_s, _FULL_S)})"
    )
    lines = [
        (
            f"- first answer: {first}; the newest planted fact was {'' if soon else 'not '}among "
            "its hits"
        ),
        f"- full index by keywords: {full}, {len(chunks):,} passages, {memory_mb:.0f} MB of memory",
        "",
        f"{len(planted)} planted facts, each asked for once:",
        "",
        "| system | index, s | hit@1 | hit@5 | hit@10 | ms |",
        "| --- | --- | --- | --- | --- | --- |",
        _row("notewell, keywords", full_s, hits(planted, answers), sorted(took)[len(took) // 2]),
    ]
    return lines + (_others(chunks, planted) if with_peers else [])


def _others(chunks: Sequence[Chunk], planted: Sequence[Fact]) -> list[str]:
    texts = [embed_text(c) for c in chunks]
    lines = []
    for name in [name for name, (kind, *_) in peers.PEERS.items() if kind == "lexical"]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "texts.json").write_text(json.dumps(texts), encoding="utf-8")
            Path(folder, "questions.json").write_text(
                json.dumps([f.question for f in planted]), encoding="utf-8"
            )
            begun = time.perf_counter()
            got = peers.rankings(name, [Path(folder)])
        if isinstance(got, str):
            lines.append(f"| {name} | skipped: {got} |  |  |  |  |")
            continue
        found = hits(planted, [[texts[n] for n in numbers] for numbers in got[0]])
        lines.append(
            _row(f"{name}, given the passages", time.perf_counter() - begun, found, got[1])
        )
    return lines


def _verdict(value: float, target: float) -> str:
    return "ok" if value <= target else "missed"


def main(arguments: Sequence[str]) -> int:
    """Makes, measures and writes the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--mb", type=float, default=2000)
    parser.add_argument("--facts", type=int, default=100)
    parser.add_argument(
        "--no-peers",
        action="store_true",
        help="without other libraries, which need the network once",
    )
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    host = machine()
    planted = facts(given.facts)
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder, "home"), Path(os.path.realpath(folder), "work")
        root.mkdir()
        for name in [name for name in os.environ if name.startswith(("XDG_", "NOTEWELL_"))]:
            del os.environ[name]
        os.environ["HOME"] = str(home)
        make(home, root, count=given.count, mb=given.mb)
        plant(home, planted)
        lines = measured(root, planted, with_peers=not given.no_peers)
    command = f"python benchmarks/day0.py --count {given.count} --mb {given.mb:g}"
    free = f"{host['cores']} cores of which {host['free_cores']:g} were to be had"
    where = f"{host['processor']}, {free}, load {host['load']:g}"
    how = (
        f"`{command}`: {given.count:,} conversations of Claude Code, Codex and Goose, "
        f"{given.mb:,.0f} MB, on {where}."
    )
    text = "\n".join(["## day 0", "", how, "", *lines]) + "\n"
    put_section(given.out, "day 0", text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
