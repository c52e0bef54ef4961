"""What is measured and how: each function returns figures, in seconds, bytes and counts."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import apsw
import numpy as np

import notes
from notewell.embed.embedder import Embedder, PassageVectors
from notewell.embed.local.packaged import PACKAGED, LocalEmbedder, OwnEmbedder, package_file
from notewell.embed.registry import DEFAULT_MODEL, at_path
from notewell.errors import EmbedderError
from notewell.index.dedupe import consolidate
from notewell.index.walk import Walk
from notewell.memory import Memory
from notewell.sources.files import FileSource
from notewell.store.ports import Store
from notewell.text.link_syntax import edges_of
from notewell.text.markdown import parse
from notewell.text.redact import Redactor
from notewell.text.words import clean, index_terms
from notewell.types import Role, Vectors

MODEL = PACKAGED[DEFAULT_MODEL]
BGE = PACKAGED["bge-small-en-v1.5"]
MODEL_ID = OwnEmbedder(MODEL).id
_CLUSTERS = 200
WINDOW = 200  # characters
_TRIES = 3
_PEAK = """
import atexit, re, resource, sys
def peak():
    try:
        kib = int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
    except OSError:
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (
            1024 if sys.platform == "darwin" else 1
        )
    sys.stderr.write(f"\\npeak {kib}\\n")
atexit.register(peak)
from notewell.surfaces.cli.main import main
sys.argv[0] = "notewell"
main()
"""

Better = Literal["less", "more", "equal"]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured."""

    notes: int
    rounds: int
    questions: int
    texts: int

    @property
    def name(self) -> str:
        """The size in words."""
        return f"{self.notes:,} notes"


FULL = Scale(notes=2000, rounds=7, questions=100, texts=60)
QUICK = Scale(notes=60, rounds=1, questions=4, texts=2)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: a value with its unit, what it should be, and how it was come by."""

    key: str
    what: str
    value: float
    unit: str
    how: str
    target: float | None = None
    better: Better = "less"
    samples: tuple[float, ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> str:
        """`ok` or `missed`; empty without a target."""
        if self.target is None:
            return ""
        if self.better == "equal":
            return "ok" if self.value == self.target else "missed"
        return (
            "ok"
            if (self.value <= self.target if self.better == "less" else self.value >= self.target)
            else "missed"
        )


class Clustered:
    """Vectors without a model: one of some two hundred directions, chosen by the text, with noise
    around it.

    It goes by the packaged model's name, so that an index filled with it is read as the model's
    own. Every text has windows, of half as many dimensions.
    """

    def __init__(self) -> None:
        self.id = MODEL_ID
        self.dim = MODEL.dim
        self.window_dims = self.dim // 2
        self.seen = 0
        self._centres = (
            np.random.default_rng(11).standard_normal((_CLUSTERS, self.dim)).astype(np.float32)
        )

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - both roles are alike
        """One unit row per text."""
        self.seen += len(texts)
        out = np.empty((len(texts), self.dim), dtype=np.float32)
        for i, text in enumerate(texts):
            key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
            noise = np.random.default_rng(key).standard_normal(self.dim, dtype=np.float32)
            out[i] = self._centres[key % _CLUSTERS] + 0.8 * noise
        return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True), dtype=np.float32)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
        """The same with a window for about every fifty tokens."""
        made = []
        for text, whole in zip(texts, self.embed(texts, "document"), strict=True):
            spans = [(at, at + WINDOW) for at in range(0, len(text), WINDOW)]
            noise = np.random.default_rng(len(text)).standard_normal(
                (len(spans), self.dim), dtype=np.float32
            )
            made.append(PassageVectors(whole, whole + noise / np.float32(self.dim**0.5), spans))
        return made


class Precomputed:
    """An embedder whose answers were made beforehand: a search with it spends no time on the
    question's vector.
    """

    def __init__(self, inner: Clustered, questions: Sequence[str]) -> None:
        self.id = inner.id
        self.dim = inner.dim
        self.window_dims = inner.window_dims
        self._known = dict(zip(questions, inner.embed(questions, "query"), strict=True))

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - only questions are asked
        """The row of each known question."""
        return np.stack([self._known[text] for text in texts])


class Away:
    """The packaged model as it is when it does not answer: it fails at once, or it hangs until it
    is let go.
    """

    def __init__(self, *, hangs: bool = False) -> None:
        self.id = MODEL_ID
        self.dim = MODEL.dim
        self.go = threading.Event()
        if not hangs:
            self.go.set()

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """No vector, ever."""
        self.go.wait()
        raise EmbedderError(f"no {role} vectors for {len(texts)} texts")


@dataclass(frozen=True, slots=True)
class Spent:
    """What one process cost."""

    wall_s: float
    cpu_s: float
    peak_bytes: int = 0


class SearchContext:
    """A generated workspace and what is measured on it."""

    def __init__(self, folder: Path, scale: Scale) -> None:
        self.scale = scale
        self.root = folder / "workspace"
        self.home = folder / "home"
        self.home.mkdir()
        self.prose = notes.write_workspace(self.root, scale.notes)
        self.questions = notes.questions(self.prose, self.root, scale.questions)
        self.chunks = 0

    def open(self, **options: Any) -> Memory:
        """The workspace without anybody's settings."""
        return Memory.open(self.root, env={}, **options)

    def command(self, *arguments: str, peak: bool = False) -> Spent:
        """Runs `notewell` as a process of its own and waits for it."""
        script = Path(sys.executable).with_name("notewell")
        start = (
            [str(script)]
            if script.exists()
            else [sys.executable, "-m", "notewell.surfaces.cli.main"]
        )
        if peak:
            start = [sys.executable, "-c", _PEAK]
        keep = {
            k: v for k, v in os.environ.items() if not k.startswith(("NOTEWELL_", "XDG_", "PYTHON"))
        }
        before, begun = _children_s(), time.perf_counter()
        done = subprocess.run(
            [*start, *arguments],
            cwd=self.root,
            capture_output=True,
            check=True,
            env={**keep, "HOME": str(self.home), "NOTEWELL_ENGINE_ENABLED": "0"},
        )
        wall, cpu = time.perf_counter() - begun, _children_s() - before
        return Spent(wall, cpu, int(done.stderr.rsplit(b"peak ", 1)[1]) * 1024 if peak else 0)

    def commands(self, *arguments: str) -> tuple[list[float], list[float]]:
        """Wall and CPU seconds of as many runs as there are rounds."""
        spent = [self.command(*arguments) for _ in range(self.scale.rounds)]
        return [s.wall_s for s in spent], [s.cpu_s for s in spent]

    def first_index(self) -> Iterator[Figure]:
        """Reading, cutting and putting every note, keywords only, into an index that was not there;
        by step.
        """
        rates: dict[str, list[float]] = {"put": [], "put_wall": [], "cut": [], "likeness": []}
        for _ in range(3):
            shutil.rmtree(self.root / ".notewell", ignore_errors=True)
            with self.open(consolidate=False) as memory:
                begun, wall = cpu_s(), time.perf_counter()
                self.chunks = memory.sync(embed=False).chunks
                # with the process that reads ahead
                rates["put"].append(self.chunks / (cpu_s() - begun))
                rates["put_wall"].append(self.chunks / (time.perf_counter() - wall))
                begun = time.process_time()
                rates["cut"].append(self._cut(memory.store) / (time.process_time() - begun))
                begun = time.process_time()
                rates["likeness"].append(
                    consolidate(memory.store).judged / (time.process_time() - begun)
                )
        size = (self.root / ".notewell" / "index.sqlite").stat().st_size
        what = f"first index of {self.scale.name} ({self.chunks:,} chunks), no embedding"
        yield _median(
            "first_index", what, rates["put"], "chunks/s", clock="CPU", target=5000, better="more"
        )
        what = "the same, wall time"
        yield _median(
            "first_index_wall", what, rates["put_wall"], "chunks/s", target=6000, better="more"
        )
        what = "the same without the store: read, redact, parse, cut, link, terms"
        yield _median("first_index_cut", what, rates["cut"], "chunks/s", clock="CPU", better="more")
        what = "afterwards: copies and contradictions found, keywords only"
        yield _median(
            "first_likeness", what, rates["likeness"], "chunks/s", clock="CPU", better="more"
        )
        yield Figure(
            "disk_keywords",
            "bytes on disk a chunk, keywords only",
            size / self.chunks,
            "B",
            "file size, once",
        )
        with self.open(embedder=Clustered()) as memory:
            memory.sync()
        size = (self.root / ".notewell" / "index.sqlite").stat().st_size
        what = f"bytes on disk a chunk, with {MODEL.dim}-dimension vectors"
        yield Figure("disk_vectors", what, size / self.chunks, "B", "file size, once")

    def _cut(self, store: Store) -> int:
        """All that is done for the chunks of every note before they are stored."""
        source, count = FileSource(self.root), 0
        engine = Walk([source], store, redactor=Redactor())
        for document in source.scan().documents:
            text = clean(source.read(document))
            chunks = engine.cut(document, text)
            edges_of(document.path, parse(text))
            for chunk in chunks:
                index_terms(" ".join(chunk.heading))
                index_terms(chunk.text)
            count += len(chunks)
        return count

    def no_change(self) -> Iterator[Figure]:
        """An index run that finds every file as it was."""
        wall, cpu = self.commands("index")
        yield _median(
            "unchanged_process",
            "second index, nothing changed, whole process",
            wall,
            "s",
            target=0.5,
        )
        yield _median("unchanged_process_cpu", "the same, CPU time", cpu, "s", clock="CPU")
        with self.open(embedder=Clustered()) as memory:
            memory.sync()
            took = [_wall(memory.sync) for _ in range(3 * self.scale.rounds)]
        yield _median(
            "unchanged", "second index, nothing changed, in process", took, "s", target=0.5
        )
        yield from self._many()

    def _many(self) -> Iterator[Figure]:
        """The same with five times as many notes."""
        many = copy.copy(self)
        many.root = self.root.with_name("many")
        count = 5 * self.scale.notes
        notes.write_workspace(many.root, count)
        with many.open(embedder=Clustered()) as memory:
            memory.sync()
        wall, cpu = many.commands("index")
        what = f"second index of {count:,} notes, nothing changed, whole process"
        yield _median("unchanged_many", what, wall, "s", target=0.25)
        yield _median("unchanged_many_cpu", "the same, CPU time", cpu, "s", clock="CPU")
        shutil.rmtree(many.root)

    def one_change(self) -> Iterator[Figure]:
        """A sentence is added to one note at a time: only chunks with new text may be embedded."""
        wrong = embedded = 0
        took = []
        model = Clustered()
        with self.open(embedder=model) as memory:
            memory.sync()
            paths = sorted(p for p in memory.store.documents.stored() if p.startswith("memory/20"))
            for path in paths[:: max(1, len(paths) // self.scale.rounds)][: self.scale.rounds]:
                place = self.root / path
                before = {c.content_hash for c in memory.store.documents.chunks_of(path)}
                lines = place.read_text(encoding="utf-8").split("\n")
                lines[4] += " " + self.prose.sentence(self.prose.topic())
                place.write_text("\n".join(lines), encoding="utf-8")
                changed = time.time() - 1800
                os.utime(place, (changed, changed))
                model.seen = 0
                took.append(_wall(memory.sync))
                embedded += model.seen
                new = {c.content_hash for c in memory.store.documents.chunks_of(path)} - before
                wrong += model.seen != len(new)
        how = f"counted over {len(took)} changes"
        yield Figure(
            "changed_embedded",
            "one changed note: chunks embedded again",
            embedded / len(took),
            "chunks",
            how,
        )
        what = "one changed note: runs that embedded more or less than its new chunks"
        yield Figure("changed_wrong", what, wrong, "runs", how, target=0, better="equal")
        yield _median(
            "changed", "one changed note: index without the model's time", took, "s", target=0.5
        )

    def warm_search(self) -> Iterator[Figure]:
        """Searches of an open memory, the question's vector given."""
        fresh = "hybrid, with a look at every file first"
        with self.open(embedder=Precomputed(Clustered(), self.questions)) as memory:
            for key, name, profile in (
                ("lexical", "lexical", "lexical"),
                ("vector", "vector", "vector"),
                ("hybrid", "hybrid", "default"),
                ("fresh", fresh, "default"),
            ):
                took = self._ask(memory, profile, sync=key == "fresh")
                how = f"{len(took)} questions, best of {_TRIES} each, wall"
                target = 10.0 if key == "hybrid" else None
                for part in (50, 95):
                    value = float(np.percentile(took, part))
                    what = f"warm search, {name}, p{part}"
                    goal = target if part == 50 else None
                    yield Figure(
                        f"search_{key}_p{part}", what, value, "ms", how, goal, "less", tuple(took)
                    )

    def _ask(self, memory: Memory, profile: str, *, sync: bool) -> list[float]:
        memory.search(self.questions[0], profile=profile, sync=sync)

        def once(question: str) -> float:
            return _wall(lambda: memory.search(question, profile=profile, sync=sync))

        return [1000 * min(once(q) for _ in range(_TRIES)) for q in self.questions]

    def processes(self) -> Iterator[Figure]:
        """Cold starts: what a person at a terminal waits for."""
        question = "what did we decide about auth tokens"
        self.command("search", question)
        wall, cpu = self.commands("search", question)
        yield _median(
            "cold_search", "cold `notewell search`, packaged model", wall, "s", target=1.0
        )
        yield _median("cold_search_cpu", "the same, CPU time", cpu, "s", clock="CPU")
        wall, cpu = self.commands("search", "--model", "none", question)
        yield _median("cold_search_keywords", "cold `notewell search`, keywords only", wall, "s")
        _, cpu = self.commands("--version")
        yield _median("version_cpu", "`notewell --version`", cpu, "s", clock="CPU", target=0.1)
        how = "peak resident size, once"
        spent = self.command("search", question, peak=True)
        yield Figure(
            "search_peak",
            "memory of a cold search, packaged model",
            spent.peak_bytes / 1e6,
            "MB",
            how,
        )
        shutil.copytree(self.root / "memory", self.home / "fresh" / "memory")
        spent = self.command("index", "--no-embed", "-w", str(self.home / "fresh"), peak=True)
        yield Figure(
            "index_peak", "memory of a first index, no embedding", spent.peak_bytes / 1e6, "MB", how
        )

    def model(self) -> Iterator[Figure]:
        """The packaged model: chunks a second, windows included, and what that means for a whole
        workspace.
        """
        model = OwnEmbedder(MODEL)
        cores = os.cpu_count() or 1
        model.embed(["a first text, which also loads the model"], "document")
        for tokens in (400, 200):
            texts = [self.prose.text(tokens, self.prose.topic()) for _ in range(self.scale.texts)]
            wall, cpu = [], []
            for _ in range(min(3, self.scale.rounds)):
                before = time.process_time()
                wall.append(len(texts) / _wall(lambda: model.embed_passages(texts)))  # noqa: B023
                cpu.append(len(texts) / (time.process_time() - before) * cores)
            best = max(wall)
            how = f"best of {len(wall)} × {len(texts)} chunks, wall"
            what = f"embedding, {tokens}-token chunks"
            yield Figure(f"embed_{tokens}", what, best, "chunks/s", how, 20.0, "more", tuple(wall))
            for count, target in ((600, 30.0), (6000, 300.0)):
                what = f"embedding {count:,} chunks of {tokens} tokens"
                yield Figure(
                    f"embed_{tokens}_{count}",
                    what,
                    count / best,
                    "s",
                    "extrapolated from that rate",
                    target,
                )
            # Never a verdict: nobody saw this rate, it is what the CPU time would allow.
            what = f"estimate: {tokens}-token chunks, were all {cores} cores free"
            how = f"{cores} ÷ CPU seconds a chunk, not observed"
            yield Figure(
                f"embed_{tokens}_estimate", what, max(cpu), "chunks/s", how, samples=tuple(cpu)
            )
        question = "what did we decide about the tokens that the gateway rejected yesterday"
        took = [
            1000 * _wall(lambda: model.embed([question], "query"))
            for _ in range(4 * self.scale.rounds)
        ]
        yield _median("embed_query", "embedding a 12-word question, warm", took, "ms", target=15.0)

    def other_models(self) -> Iterator[Figure]:
        """Small transformers that read 400 word pieces of a text, and a static model of the usual
        size.
        """
        texts = [self.prose.text(600, self.prose.topic()) for _ in range(self.scale.texts)]
        for key, name in (("bge", BGE.name), ("minilm", "all-MiniLM-L6-v2")):
            model = LocalEmbedder(replace(PACKAGED[name], max_tokens=400))
            yield self._rate(
                f"embed_pieces_{key}", f"embedding 400 word pieces, {name}", model, texts, 15.0
            )
        folder = _static_model(self.home / "static")
        texts = [self.prose.text(400, self.prose.topic()) for _ in range(50 * self.scale.texts)]
        what = "embedding, 400-token chunks, static model (30,522 × 256)"
        yield self._rate("embed_static", what, at_path(str(folder)), texts, 2000.0)

    def _rate(
        self, key: str, what: str, model: Embedder, texts: Sequence[str], target: float
    ) -> Figure:
        model.embed(texts[:2], "document")
        rates = [
            len(texts) / _wall(lambda: model.embed(texts, "document"))
            for _ in range(min(3, self.scale.rounds))
        ]
        how = f"best of {len(rates)} × {len(texts):,} chunks, wall"
        return Figure(key, what, max(rates), "chunks/s", how, target, "more", tuple(rates))

    def faults(self) -> Iterator[Figure]:
        """A model that is dead, one that hangs, and a folder that got another name."""
        with self.open(embedder=Clustered()) as memory:
            memory.sync()
        with self.open(embed__model="none") as memory:
            plain = float(np.median(self._ask(memory, "default", sync=False)))
        with self.open(embedder=Away()) as memory:
            took = self._ask(memory, "default", sync=False)
        how = f"{len(took)} questions, best of {_TRIES} each, wall"
        what = f"warm search, the model dead, p50 (keywords only: {number(plain)} ms)"
        yield Figure(
            "search_dead_p50",
            what,
            float(np.median(took)),
            "ms",
            how,
            plain + 50,
            "less",
            tuple(took),
        )
        hanging = Away(hangs=True)
        with self.open(embedder=hanging) as memory:
            first, second = (
                _wall(lambda: memory.search(self.questions[0], sync=False)) for _ in range(2)
            )
            closed = _wall(memory.close)
        hanging.go.set()
        yield Figure(
            "search_hanging",
            "search, the model hanging, deadline 3 s",
            first,
            "s",
            "wall, once",
            3.1,
        )
        yield Figure("search_hanging_next", "the search after it", second, "s", "wall, once", 0.1)
        yield Figure(
            "close_hanging", "closing the memory meanwhile", closed, "s", "wall, once", 0.5
        )
        model = Clustered()
        with self.open(embedder=model) as memory:
            memory.sync()
            model.seen = 0
            (self.root / "memory").rename(self.root / "renamed")
            (self.root / "memory").mkdir()
            (self.root / "renamed").rename(self.root / "memory" / "renamed")
            added = memory.sync().added
        what = f"a folder of {added:,} notes renamed: chunks embedded again"
        yield Figure("renamed_embedded", what, model.seen, "chunks", "counted, once", 0, "equal")

    def figures(self) -> Iterator[Figure]:
        """All of them, in the order of the table."""
        parts = (
            self.first_index,
            self.no_change,
            self.one_change,
            self.warm_search,
            self.processes,
            self.model,
        )
        for part in (*parts, self.other_models, self.faults):
            yield from part()


def _static_model(folder: Path) -> Path:
    """A static model with random rows, of the size of the usual small ones: speed does not depend
    on the numbers.
    """
    folder.mkdir(exist_ok=True)
    shutil.copy(package_file(BGE.package, BGE.vocabulary), folder / "vocab.txt")
    rows = np.random.default_rng(0).standard_normal((30522, 256)).astype("<f4")
    about = {"dtype": "F32", "shape": list(rows.shape), "data_offsets": [0, rows.nbytes]}
    header = json.dumps({"embeddings": about}).encode()
    (folder / "model.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + rows.tobytes()
    )
    return folder


def cpu_s() -> float:
    """CPU seconds of this process and of all that were waited for."""
    return time.process_time() + _children_s()


def _children_s() -> float:
    """CPU seconds of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wall(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _median(
    key: str,
    what: str,
    samples: Sequence[float],
    unit: str,
    *,
    clock: str = "wall",
    target: float | None = None,
    better: Better = "less",
) -> Figure:
    best = max(samples) if better == "more" else min(samples)
    how = f"median of {len(samples)}, {clock}; best {number(best)}"
    return Figure(key, what, statistics.median(samples), unit, how, target, better, tuple(samples))


def number(value: float) -> str:
    """Three digits that matter, and no more."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def free_cores(seconds: float = 0.5) -> float:
    """How many cores are to be had: one busy process for each, and the CPU time they got over the
    time that passed.
    """
    code = (
        f"import time\nend = time.perf_counter() + {seconds}\nwhile time.perf_counter() < end: "
        "pass\n"
    )
    code += "print(time.process_time())"
    count = os.cpu_count() or 1
    running = [
        subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    return sum(float(process.communicate()[0]) for process in running) / seconds


def machine() -> dict[str, Any]:
    """What it ran on; how busy that was matters as much as what it is."""
    name = platform.processor() or platform.machine()
    memory = 0
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        pass
    return {
        "processor": name,
        "cores": os.cpu_count() or 1,
        "free_cores": round(free_cores(), 1),
        "memory_gb": round(memory / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "load": round(os.getloadavg()[0], 1),
    }
