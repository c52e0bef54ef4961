"""Retrieval on public memory sets in the shape that other projects publish, with other libraries in
the same run.

python benchmarks/public.py FOLDER                      # LoCoMo, LongMemEval or BEAM, and its
section of PUBLIC.md python benchmarks/public.py FOLDER --model none         # by keywords alone: no
text is embedded python benchmarks/public.py FOLDER --workspaces 10      # a sample of its
workspaces, evenly spaced

A folder has corpus.jsonl, queries.jsonl, qrels.tsv, spans.jsonl and qrels_spans.tsv. A file is a
session, a span a turn. The peers get the passages that we index, the vectors of our model and the
same questions: only the ranking differs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# as the `notewell` command does, before numpy is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import peers

from notewell import __version__
from notewell.embed.cached import CachedEmbedder
from notewell.embed.embedder import Embedder
from notewell.embed.registry import embedder
from notewell.eval import metrics, runner, sets
from notewell.index.documents import embed_text
from notewell.memory import Memory
from notewell.types import Chunk

PAGE = Path(__file__).with_name("PUBLIC.md")
CACHE = Path.home() / ".cache" / "notewell" / "eval" / "vectors.sqlite"
DEPTHS = (1, 5, 10)
# Reports leave these out, or show them apart: the question names the wrong person, or the answer is
# most of a chat.
APART = ("adversarial", "event_ordering", "summarization")
_COLUMNS = tuple(
    f"{what}@{k}"
    for what in ("session", "turn", "evidence")
    for k in DEPTHS
    if (what, k) != ("evidence", 1)
)
_TITLES = tuple(
    name.replace("session", "session hit")
    .replace("turn", "turn hit")
    .replace("evidence", "evidence recall")
    for name in _COLUMNS
)
_INTRO = (
    "# Public memory sets\n\n"
    "Retrieval alone: no model writes or judges an answer. Each section was written by the "
    "command under its title.\nSession: a file counts by its first passage; hit@k is 1 if one of "
    "the first k sessions has evidence (`recall_any@k` in\nreports of LongMemEval). Turn: hit@k "
    "is 1 if one of the first k passages contains a turn with evidence. Evidence\nrecall@k is the "
    "share of the turns with evidence that the first k passages contain. Questions without "
    "evidence are\nleft out. The peers got our passages, our model's vectors and the same "
    "questions, and returned their 50 best: only the\nranking differs. ms is the median of one "
    "question in a running process, without the model's time; where a workspace has\none "
    "question, as in LongMemEval, it is that of a first search, which also loads the index. These "
    "sets were also\nused to choose the weights of the default profile; [QUALITY.md](QUALITY.md) "
    "shows what weights do on a set left out.\n"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A question and the passages that a system returned for it, best first."""

    question: sets.Question
    chunks: Sequence[Chunk]


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of one system."""

    system: str
    kind: str
    answers: Sequence[Answer]
    took_ms: float = 0.0
    why_not: str = ""


def measures(answer: Answer) -> dict[str, float]:
    """Hits by session and by turn, and how much of the evidence was found."""
    question, chunks = answer.question, answer.chunks
    files = list(dict.fromkeys(c.path for c in chunks))
    values = {f"session@{k}": metrics.hit(files, question.grades, k) for k in DEPTHS}
    if question.spans:
        for k in DEPTHS:
            touched = [any(runner.touches(c, span) for c in chunks[:k]) for span in question.spans]
            values[f"turn@{k}"] = float(any(touched))
            values[f"evidence@{k}"] = sum(touched) / len(touched)
    return values


def means(answers: Sequence[Answer]) -> dict[str, float]:
    """The mean of every measure."""
    found = [measures(one) for one in answers]
    return {
        name: statistics.fmean(one[name] for one in found if name in one)
        for name in dict.fromkeys(n for f in found for n in f)
    }


def _search(memory: Memory, question: sets.Question, profile: str) -> tuple[Answer, float]:
    now = question.now or runner.FALLBACK_NOW
    begun = time.perf_counter()
    ranked = memory.searcher.rank(question.text, profile=profile, limit=runner.DEPTH, now=now)
    took_ms = 1000 * (time.perf_counter() - begun)
    return Answer(question, [c.chunk for c in ranked.candidates]), took_ms


def _ours(
    one: sets.EvalSet, model: Embedder | None, profiles: Sequence[str]
) -> Iterator[tuple[str, Memory, list[sets.Question], dict[str, list[tuple[Answer, float]]]]]:
    """Each workspace with its questions, and what each profile answers."""
    for name, memory in runner.memories(one, model, None, lambda *_: None):
        asked = [q for q in one.questions if q.workspace == name]
        if model is not None:
            # so that no figure has the model's time in it
            model.embed([q.text for q in asked], "query")
        yield name, memory, asked, {p: [_search(memory, q, p) for q in asked] for p in profiles}


def _write(
    folder: Path, chunks: Sequence[Chunk], asked: Sequence[sets.Question], model: Embedder | None
) -> None:
    """What the peers read of one workspace."""
    folder.mkdir()
    texts = [embed_text(c) for c in chunks]
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    (folder / "questions.json").write_text(json.dumps([q.text for q in asked]), encoding="utf-8")
    if model is not None:
        np.save(folder / "vectors.npy", model.embed(texts, "document"))
        np.save(folder / "asked.npy", model.embed([q.text for q in asked], "query"))


def answered(
    one: sets.EvalSet, model: Embedder | None, folder: Path, *, with_peers: bool
) -> list[Answers]:
    """What every system answers to every question of a set that has an answer."""
    profiles = ("default", "lexical", "vector") if model else ("lexical",)
    own: dict[str, list[tuple[Answer, float]]] = {p: [] for p in profiles}
    places: list[Path] = []
    asked_of: list[tuple[sets.Question, Sequence[Chunk]]] = []
    for number, (_, memory, asked, found) in enumerate(_ours(one, model, profiles)):
        for profile, answers in found.items():
            own[profile] += answers
        rows = [
            c.row
            for path in memory.store.documents.stored()
            for c in memory.store.documents.chunks_of(path)
        ]
        chunks = (
            [memory.store.documents.chunks([row])[row] for row in sorted(rows)]
            if with_peers and asked
            else []
        )
        if chunks:
            places.append(folder / f"{number}")
            _write(places[-1], chunks, asked, model)
            asked_of += [(question, chunks) for question in asked]
        print(
            f"{one.name}: {number + 1} of {len(one.corpora)} workspaces",
            file=sys.stderr,
            flush=True,
        )
    names = {
        "default": ("notewell", "hybrid"),
        "lexical": ("notewell, keywords", "lexical"),
        "vector": ("notewell, vectors", "vector"),
    }
    out = [
        Answers(*names[p], [a for a, _ in f], statistics.median(ms for _, ms in f))
        for p, f in own.items()
    ]
    for name, (kind, *_) in peers.PEERS.items() if with_peers else ():
        if model is None and kind != "lexical":
            continue
        print(name, file=sys.stderr, flush=True)
        got = peers.rankings(name, places)
        if isinstance(got, str):
            out.append(Answers(name, kind, (), why_not=got))
            continue
        ranked = [
            Answer(q, [chunks[n] for n in numbers])
            for (q, chunks), numbers in zip(asked_of, got[0], strict=True)
        ]
        out.append(Answers(name, kind, ranked, got[1]))
    return out


def _table(systems: Sequence[Answers], *, without: Sequence[str] = ()) -> list[str]:
    lines = [_row(["system", "kind", *_TITLES, "ms"]), _row(["---"] * (len(_TITLES) + 3))]
    for one in systems:
        if one.why_not:
            lines.append(
                _row([one.system, one.kind, f"skipped: {one.why_not}", *[""] * len(_TITLES)])
            )
            continue
        chosen = [a for a in one.answers if a.question.kind not in without]
        lines.append(_row([one.system, one.kind, *_cells(chosen), f"{one.took_ms:.1f}"]))
    return lines


def _cells(answers: Sequence[Answer]) -> list[str]:
    values = means(answers)
    return [f"{values[name]:.3f}" if name in values else "" for name in _COLUMNS]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def section(title: str, how: str, systems: Sequence[Answers]) -> str:
    """The tables of one set: all questions, those that reports use, and our answers by kind of
    question.
    """
    own = systems[0].answers
    kinds = sorted({a.question.kind for a in own})
    apart = [kind for kind in APART if kind in kinds]
    shown = [len(c.text) for a in own for c in a.chunks[:10]]
    mean = statistics.fmean(shown) if shown else 0.0
    lines = [
        f"## {title}",
        "",
        how,
        f"{len(own):,} questions; a passage has {mean:.0f} characters on average.",
        "",
    ]
    lines += _table(systems)
    if apart:
        left = sum(a.question.kind not in apart for a in own)
        lines += [
            "",
            f"Without {' and '.join(apart)} ({left:,} questions):",
            "",
            *_table(systems, without=apart),
        ]
    lines += ["", f"{systems[0].system} by kind of question:", ""]
    lines += [_row(["kind", "questions", *_TITLES]), _row(["---"] * (len(_TITLES) + 2))]
    for kind in kinds:
        chosen = [a for a in own if a.question.kind == kind]
        lines.append(_row([kind, str(len(chosen)), *_cells(chosen)]))
    return "\n".join(lines) + "\n"


def put_section(page: Path, title: str, text: str) -> None:
    """Replaces the section with this title, or adds it; the others stay."""
    before = page.read_text(encoding="utf-8") if page.exists() else _INTRO
    head, *parts = before.split("\n## ")
    kept = {part.split("\n", 1)[0]: f"## {part}".rstrip("\n") + "\n" for part in parts}
    kept[title] = text
    page.write_text("\n".join([head.rstrip("\n") + "\n", *kept.values()]), encoding="utf-8")


def sample(one: sets.EvalSet, most: int) -> sets.EvalSet:
    """The set with at most so many of its workspaces, evenly spaced."""
    names = sorted(one.corpora)
    chosen = set(names[:: max(1, -(-len(names) // most))]) if most else set(names)
    corpora = {name: texts for name, texts in one.corpora.items() if name in chosen}
    return replace(
        one, corpora=corpora, questions=tuple(q for q in one.questions if q.workspace in chosen)
    )


def main(arguments: Sequence[str]) -> int:
    """Measures one set and writes its section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="auto", help="as embed.model; `none` for keywords alone")
    parser.add_argument(
        "--workspaces", type=int, default=0, help="ask in so many workspaces, evenly spaced (all)"
    )
    parser.add_argument(
        "--no-peers",
        action="store_true",
        help="without other libraries, which need the network once",
    )
    parser.add_argument(
        "--cache", type=Path, default=CACHE, help="keeps vectors, so that no text is embedded twice"
    )
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    one = sample(sets.load(given.folder), given.workspaces)
    one = replace(one, questions=tuple(q for q in one.questions if q.answerable))
    inner = embedder(given.model)
    model = CachedEmbedder(inner, given.cache) if inner else None
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="notewell-public-") as folder:
        systems = answered(one, model, Path(folder), with_peers=not given.no_peers)
    title = (
        one.name
        + (f", {len(one.corpora)} workspaces" if given.workspaces else "")
        + ("" if model else ", keywords")
    )
    options = [f"--workspaces {given.workspaces}"] * bool(given.workspaces) + [
        f"--model {given.model}"
    ] * (given.model != "auto")
    command = " ".join(["python benchmarks/public.py", one.name, *options])
    version = (
        f"notewell {__version__}, {inner.id if inner else 'no model'}, Python "
        f"{platform.python_version()}"
    )
    took = f"{time.perf_counter() - begun:.0f} s with embedding what was not embedded before"
    size = f"{len(one.corpora)} workspaces of {sum(map(len, one.corpora.values())):,} files"
    how = (
        f"`{command}`: {version}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}, "
        f"{took}. {size}."
    )
    put_section(given.out, title, section(title, how, systems))
    print(section(title, how, systems))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
