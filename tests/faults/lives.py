"""A program that lives many short lives: each does its work in a process of its own and is killed
at a random moment.

`python -m tests.faults.lives FOLDER ACT KILLS SEED` prints one JSON object: how many lives there
were, how many of them were killed at their work, what they had reported as done, and every promise
that was found broken afterwards. Lives are forked, so that a hundred of them take seconds; the
parent itself never opens an index.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from notewell import Memory
from notewell.embed.vector_sets import pinned
from notewell.index.dedupe import consolidate
from notewell.notes.links import read_links
from notewell.notes.proposals import Proposals
from notewell.store.rows import hash_of
from notewell.store.sqlite import connection, schema
from notewell.store.sqlite.checksum_vfs import checking_vfs
from notewell.store.sqlite.store import SqliteStore
from notewell.surfaces.cli.doctor import _altered
from notewell.types import Filters
from tests.conftest import sqlite_of
from tests.faults.early import seal_early
from tests.faults.test_kill_index import content

NOTES = 40
AT_WORK = b"at work\n"
Say = Callable[[str], None]


def make_notes(root: Path, *, notes: int = NOTES) -> None:
    """Notes with copies, contradictions, links and words of their own."""
    chance = random.Random(7)
    words = [f"word{n}" for n in range(300)]
    (root / "memory").mkdir(parents=True, exist_ok=True)
    for n in range(notes):
        parts = [
            f"## Topic {k}\n\n{' '.join(chance.choices(words, k=40))}. See [[note-{n // 2}]].\n\n"
            for k in range(3)
        ]
        (root / f"memory/note-{n}.md").write_text(f"# Note {n}\n\n" + "".join(parts))
        said = f"The staging port of the billing service is {8000 + n % 5}.\n"
        (root / f"memory/port-{n}.md").write_text(said)


def letters(number: int) -> str:
    """A word of letters alone, which the index keeps whole."""
    return "".join("abcdefghij"[int(d)] for d in str(number))


def rewrite_chunks(db: apsw.Connection) -> None:
    """A migration that takes its time: every chunk is written twice."""
    for _ in range(2):
        db.execute("UPDATE chunks SET text = text || ''")
        db.execute("UPDATE fields SET body = CAST(body AS BLOB)")


def add_colour(db: apsw.Connection) -> None:
    """A migration that adds a column."""
    db.execute("ALTER TABLE documents ADD COLUMN colour TEXT")


def faults(root: Path, *, model: str = "none") -> list[str]:
    """What is wrong with an index: damage, or parts that do not agree."""
    with Memory.open(root, embed__model=model) as memory:
        found = [n.code for n in memory.notices if n.code.startswith("index_")]
        with memory.store.writing():
            found += [
                r[0]
                for r in sqlite_of(memory).connection.db.execute("PRAGMA integrity_check")
                if r[0] != "ok"
            ]
        return [*found, *memory.store.audit(), *_altered(memory.store)]


@dataclass
class Act:
    """What a life does, over and over, saying what is done; and what must hold after it was
    killed.
    """

    root: Path
    life: int = 0
    said: list[str] = field(default_factory=list)

    def prepare(self) -> None:
        """Once, before the first life."""
        make_notes(self.root)
        with Memory.open(self.root, embed__model="hashed") as memory:
            memory.sync()

    def begin(self) -> None:
        """Before each life, by the parent."""

    def live(self, say: Say) -> None:
        raise NotImplementedError

    def broken(self) -> list[str]:
        """Promises that do not hold after a kill."""
        return faults(self.root)

    def end(self) -> list[str]:
        """Promises that do not hold after all of it."""
        return []


class Index(Act):
    def live(self, say: Say) -> None:
        chance = random.Random(self.life)
        with Memory.open(self.root, embed__model="hashed") as memory:
            while True:
                for n in chance.sample(range(NOTES), 5):
                    place = self.root / f"memory/note-{n}.md"
                    place.write_text(
                        f"# Note {n}\n\nrevision {chance.random()}\n\n" + place.read_text()[-800:]
                    )
                gone = self.root / f"memory/note-{chance.randrange(NOTES)}.md"
                kept = gone.read_bytes()
                gone.unlink()
                memory.sync(force=chance.random() < 0.3)
                gone.write_bytes(kept)
                memory.sync()
                say("synced")

    def broken(self) -> list[str]:
        for n in range(NOTES):
            place = self.root / f"memory/note-{n}.md"
            if not place.exists() or not place.read_text().startswith("#"):
                place.write_text(f"# Note {n}\n\nback again\n")
        with Memory.open(self.root, embed__model="hashed") as memory:
            lost = [
                d
                for d in memory.store.documents.stored()
                if not memory.store.documents.chunks_of(d)
            ]
        return [*faults(self.root), *lost]

    def end(self) -> list[str]:
        with Memory.open(self.root, embed__model="hashed") as memory:
            memory.sync()
        never_killed = self.root.parent / "never-killed.sqlite"
        with Memory.open(self.root, embed__model="hashed", index__path=str(never_killed)) as memory:
            memory.sync()
        one, other = content(self.root / ".notewell/index.sqlite"), content(never_killed)
        # those of text that is gone are a cache
        one["vectors"] = [v for v in one["vectors"] if v in other["vectors"]]
        return [name for name in one if one[name] != other[name]]


class Reembed(Act):
    SIZES = ("hashed@256", "hashed@512")

    def live(self, say: Say) -> None:
        n = self.life
        while True:
            model = self.SIZES[n % 2]
            with Memory.open(self.root, embed__model=model) as memory:
                if memory.sync().pending == 0:
                    say(model)
                memory.prune()
            n += 1

    def broken(self) -> list[str]:
        with Memory.open(self.root, embed__model="none") as memory:
            have, all_of_them = memory.store.vectors.coverage(pinned(memory.store))
            found = memory.search("staging port of the billing service")
        half = (
            [] if have == all_of_them else [f"the model that answers has {have} of {all_of_them}"]
        )
        return [*faults(self.root), *half, *([] if found.hits else ["an empty answer"])]


class Remember(Act):
    def live(self, say: Say) -> None:
        chance = random.Random(self.life)
        with Memory.open(self.root, embed__model="none") as memory:
            for n in range(10_000):
                word = letters(self.life * 10_000 + n)
                shape: dict[str, Any] = chance.choice(
                    [{}, {"file": "memory/note-1.md", "heading": "Topic 1"}]
                )
                text = (
                    f"Entry is called {word}q. "
                    + "It goes on. " * chance.choice([1, 300])
                    + f"End {word}z."
                )
                done = memory.remember(text, **shape, force=True)
                say(f"{word} {done.path}")

    def broken(self) -> list[str]:
        text = "\n".join(p.read_text() for p in sorted(self.root.glob("memory/*.md")))
        begun, ended = (re.findall(p, text) for p in (r"is called (\w+)q\.", r"End (\w+)z\."))
        told = {line.split()[0] for line in self.said}
        out = [f"{w} was reported and is gone" for w in told - set(ended)]
        out += [f"{w} stands there in part" for w in set(begun) ^ set(ended)]
        out += [
            f"{p.name} is left"
            for p in self.root.glob("memory/.*")
            if time.time() - p.stat().st_mtime > 60
        ]
        with Memory.open(self.root, embed__model="none") as memory:
            memory.sync()
            last = self.said[-1].split()[0] if self.said else ""
            if last and f"{last}z" not in "".join(
                h.chunk.text for h in memory.search(f"{last}z", sync=False).hits
            ):
                out.append(f"{last} is not found")
        return [*out, *faults(self.root)]


class Propose(Remember):
    """Changes that are shown first; some are taken back."""

    def live(self, say: Say) -> None:
        chance = random.Random(self.life)
        now = dt.datetime(2026, 5, 6, 9, 30)  # noqa: DTZ001 - a morning of this place
        with Memory.open(self.root, embed__model="none") as memory:
            proposals = Proposals(memory.notebook)
            for n in range(10_000):
                word = letters(self.life * 10_000 + n)
                file = chance.choice(["", "memory/note-1.md", f"memory/made-{word}.md"])
                text = (
                    f"Entry is called {word}q. "
                    + "It goes on. " * chance.choice([1, 300])
                    + f"End {word}z."
                )
                done = proposals.apply(proposals.remember(text, file=file, now=now).token, now=now)
                if chance.random() < 0.3:
                    proposals.undo(done.undo)
                else:
                    say(f"{word} {done.paths[0]}")


class Forget(Act):
    def begin(self) -> None:
        lines = [
            f"- Fact {n} has the codeword{letters(n)}q and is whole{letters(n)}z."
            for n in self.own()
        ]
        (self.root / f"memory/life-{self.life}.md").write_text(
            "# Life\n\nkept text\n\n" + "\n".join(lines) + "\n"
        )

    def own(self) -> range:
        return range(self.life * 30, self.life * 30 + 30)

    def live(self, say: Say) -> None:
        with Memory.open(self.root, embed__model="none") as memory:
            memory.sync()
            for n in self.own():
                word = f"codeword{letters(n)}q"
                receipt = memory.forget(query=word, yes=True, from_files=n % 2 == 0, backup=False)
                if not receipt.proved:
                    say(f"! {word}: {receipt.still_found} {receipt.lingering}")
                say(word)

    def broken(self) -> list[str]:
        out = [line for line in self.said if line.startswith("!")]
        text = (self.root / f"memory/life-{self.life}.md").read_text()
        if (
            re.findall(r"codeword(\w+)q", text) != re.findall(r"whole(\w+)z", text)
            or text.count("kept text") != 1
        ):
            out.append("a line stands there in part")
        told = {line for line in self.said if not line.startswith("!")}
        with Memory.open(self.root, embed__model="none") as memory:
            memory.sync()
            for n in self.own():
                word = f"codeword{letters(n)}q"
                there = any(
                    word in h.chunk.text
                    for h in memory.search(word, sync=False, min_score=0.0).hits
                )
                if there and word in told:
                    out.append(f"{word} is back")
            left = {f"codeword{letters(n)}q" for n in self.own()} - told
            found = {w for w in left if memory.store.documents.says(w)}
            if len(left - found) > 1:  # the one under way may be gone without a receipt
                out.append(f"{left - found} are gone, and nobody was told")
        return [*out, *faults(self.root)]


class Consolidate(Act):
    def live(self, say: Say) -> None:
        with Memory.open(self.root, embed__model="none") as memory:
            while True:
                memory.store.relations.reset_judgements()
                consolidate(memory.store)
                say("judged")

    def end(self) -> list[str]:
        with Memory.open(self.root, embed__model="none") as memory:
            store = memory.store
            consolidate(store)
            chunks = [
                c for path in store.documents.stored() for c in store.documents.chunks_of(path)
            ]
            killed = store.relations.related(chunks, Filters())
            store.relations.reset_judgements()
            consolidate(store)
            whole = store.relations.related(chunks, Filters())
        copies, conflicts = (
            sum(bool(getattr(r, name)) for r in whole.values())
            for name in ("copy", "conflicts_with")
        )
        out = (
            []
            if killed == whole
            else ["what passages are to each other is not what it would be without kills"]
        )
        return [
            *out,
            *([] if copies and conflicts else [f"{copies} copies and {conflicts} contradictions"]),
        ]


class Migrate(Act):
    """Files of this schema that a later version migrates: each is migrated, or as it was."""

    def prepare(self) -> None:
        super().prepare()
        shutil.copy(self.root / ".notewell/index.sqlite", self.root.parent / "then.sqlite")
        self.root.parent.joinpath("now.json").write_text(json.dumps(self.held()))

    def held(self) -> dict[str, Any]:
        store = SqliteStore(self.root / ".notewell/index.sqlite")
        try:
            return {
                "chunks": sorted(store.connection.all("SELECT id, text FROM chunks"), key=repr),
                "vectors": [
                    [name, key, row.tobytes().hex()]
                    for name, _, _ in store.vectors.models()
                    for key, row in sorted(
                        store.vectors.by_hash(
                            name,
                            [
                                hash_of(r[0])
                                for r in store.connection.all("SELECT content_hash FROM vectors")
                            ],
                        ).items()
                    )
                ],
            }
        finally:
            store.close()

    def begin(self) -> None:
        folder = self.root / ".notewell"
        for old in folder.glob("index.sqlite*"):
            old.unlink()
        shutil.copy(self.root.parent / "then.sqlite", folder / "index.sqlite")
        schema.MIGRATIONS = (schema.create_tables, schema.add_windows, rewrite_chunks, add_colour)

    def live(self, say: Say) -> None:
        SqliteStore(self.root / ".notewell/index.sqlite").close()
        say("migrated")

    def broken(self) -> list[str]:
        held = json.loads(json.dumps(self.held()))
        wanted = json.loads((self.root.parent / "now.json").read_text())
        version = (
            sqlite3.connect(self.root / ".notewell/index.sqlite")
            .execute("PRAGMA user_version")
            .fetchone()[0]
        )
        out = [] if version == 4 else [f"the index is of version {version}"]
        return [
            *out,
            *(f"{k} differ" for k in wanted if held[k] != wanted[k]),
            *faults(self.root, model="hashed"),
        ]


class OnNetwork(Index):
    """The same where there is no WAL: what was half done is rolled back."""

    def prepare(self) -> None:
        super().prepare()
        file = self.root / ".notewell/index.sqlite"
        assert not Path(f"{file}-wal").exists()
        assert file.read_bytes()[18:20] == b"\x01\x01", (
            "the file says that it has a rollback journal"
        )


class Link(Act):
    """Links that are made and taken out again: each that was told stands there, whole."""

    def live(self, say: Say) -> None:
        chance = random.Random(self.life)
        with Memory.open(self.root, embed__model="none") as memory:
            for n in range(10_000):
                kind = f"k{letters(self.life * 10_000 + n)}"
                memory.link(
                    "memory/note-1.md", kind, f"memory/note-{chance.randrange(2, NOTES)}.md"
                )
                say(f"made {kind}")
                if n % 3 == 2:
                    before = f"k{letters(self.life * 10_000 + n - 1)}"
                    edge = next(e for e in read_links(self.root)[0] if e.kind == before)
                    say(f"going {before}")
                    memory.link("memory/note-1.md", before, edge.end.name, remove=True)
                    say(f"gone {before}")

    def broken(self) -> list[str]:
        edges, notices = read_links(self.root)
        there = [e.kind for e in edges]
        told: dict[str, set[str]] = {what: set() for what in ("made", "going", "gone")}
        for line in self.said:
            if not line.startswith("!"):
                told[line.split()[0]].add(line.split()[1])
        out = [n.message for n in notices]
        out += [
            f"{kind} was made and is not there"
            for kind in told["made"] - told["going"] - set(there)
        ]
        out += [f"{kind} was taken out and is there" for kind in told["gone"] & set(there)]
        return [
            *out,
            *(["a link stands there twice"] if len(there) != len(set(there)) else []),
            *faults(self.root),
        ]


class Import(Act):
    """Exports that grow from life to life: every note is whole, none is there twice, and nothing
    told is missing.
    """

    TALKS = 30

    def live(self, say: Say) -> None:
        place = self.root.parent / "conversations.json"
        with Memory.open(self.root, embed__model="none") as memory:
            for turns in range(self.life + 2, self.life + 200):
                place.write_text(json.dumps([self.talk(n, turns) for n in range(self.TALKS)]))
                assert not memory.import_files([place]).failed
                say(str(turns))

    @staticmethod
    def talk(number: int, turns: int) -> dict[str, Any]:
        said = [
            {"uuid": f"{number}-{t}", "sender": "human", "text": f"begin{t} end{t}"}
            for t in range(turns)
        ]
        return {"uuid": str(number), "name": f"Talk {number}", "chat_messages": said}

    def broken(self) -> list[str]:
        made = sorted(self.root.glob("memory/imported/claude/*.md"))
        out = (
            [f"{len(made)} notes"]
            if len(made) > self.TALKS or (self.said and len(made) < self.TALKS)
            else []
        )
        least = int(self.said[-1]) if self.said else 0
        for place in made:
            begun = re.findall(r"^begin(\d+) end\1$", place.read_text(), re.MULTILINE)
            if begun != [str(n) for n in range(len(begun))] or len(begun) < least or not begun:
                out.append(f"{place.name} has the turns {begun}, not {least}")
        return [*out, *faults(self.root)]


ACTS: dict[str, type[Act]] = {
    "index": Index,
    "reembed": Reembed,
    "remember": Remember,
    "propose": Propose,
    "forget": Forget,
    "consolidate": Consolidate,
    "migrate": Migrate,
    "network": OnNetwork,
    "link": Link,
    "import": Import,
}


def forked(work: Callable[[Say], None]) -> tuple[int, int]:
    """A child that does the work: its number, and where its lines can be read."""
    out, into = os.pipe()
    child = os.fork()
    if child:
        os.close(into)
        return child, out
    os.close(out)
    code = 1
    try:
        work(lambda line: (os.write(into, f"{line}\n".encode()), None)[1])
        code = 0
    except BaseException:  # noqa: BLE001 - a child must never run on into what the parent does
        os.write(into, f"! {traceback.format_exc()[-600:]!r}\n".encode())
    finally:
        os._exit(code)


def lines(handle: int) -> Iterator[str]:
    """Whole lines until the other side is closed."""
    with os.fdopen(handle, "rb") as file:
        for line in file.read().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield line.decode().rstrip("\n")


def asked(question: Callable[[], list[str]]) -> list[str]:
    """The answer of a child, so that the parent opens nothing."""

    def work(say: Say) -> None:
        for line in question():
            say(line)

    child, out = forked(work)
    answer = list(lines(out))
    os.waitpid(child, 0)
    return answer


def main(folder: Path, name: str, kills: int, seed: int) -> dict[str, Any]:
    """Lives until so many were killed at their work; one that was done before the blow does not
    count.
    """
    chance = random.Random(seed)
    checking_vfs()
    seal_early()
    if name == "network":
        vars(connection)["on_network"] = lambda _: True
    act = ACTS[name](folder / "workspace")
    act.root.mkdir(parents=True)

    def prepare() -> list[str]:
        act.prepare()
        return []

    def live(say: Say) -> None:
        say(AT_WORK.decode().rstrip())
        act.live(say)

    begun = time.monotonic()
    broken = asked(prepare)
    span = 0.05
    life = killed = reported = 0
    while killed < kills and life < 4 * kills:
        act.life, act.said = life, []
        act.begin()
        child, out = forked(live)
        # the moment is counted from here, however slow a fork is
        at_work = os.read(out, len(AT_WORK)) == AT_WORK
        time.sleep(chance.random() * span)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        act.said = list(lines(out))
        killed += at_work and os.WIFSIGNALED(status)
        reported += len(act.said)
        # The moment is drawn from a span that is about two pieces of work long, however fast this
        # machine is.
        span = min(
            1.0, max(0.005, span * (1.2 if len(act.said) < 2 and not os.WIFEXITED(status) else 0.8))
        )
        broken += [f"life {life}: {line}" for line in act.said if line.startswith("! ")]
        broken += [f"life {life}: {line}" for line in asked(act.broken)]
        life += 1
    broken += asked(act.end)
    took_s = round(time.monotonic() - begun)
    return {
        "act": name,
        "lives": life,
        "killed": killed,
        "reported": reported,
        "took_s": took_s,
        "broken": broken,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))  # noqa: T201
