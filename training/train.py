"""Trains the student: reads the text, asks the teachers, distils, measures, writes the weights.

    python -m training.train FOLDER [--steps 6000] [--layers 12] [--share 1.0] [--out FOLDER]

FOLDER holds `weights/` (from `training.weights`), `train/` (from `training.gather`) and, to
measure, `sets/sets.json.xz` (from `training.cut_sets`). The weights come out as `student.npz`, with
`train.log` and `figures.json` beside it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from training import corpus, measure, models, weights
from training.corpus import Corpus, Pairs, Windows
from training.distil import Distiller, Plan, Taught
from training.joint import Bridge, Space, role_numbers
from training.student import Student, from_bert, to_bert

TEACHERS = {"bge": 0.8, "gte": 0.8, "nomic": 1.4, "e5": 0.6}
WINDOW_PASSAGES = {"windows": 30_000, "other windows": 15_000}
FEW = 200  # texts of a language and a role that have no mean of their own
LOOK = 700  # sets with fewer passages are measured on the way too


class Log:
    """Says what happens, with the seconds since the start, on the screen and in a file."""

    def __init__(self, path: Path) -> None:
        self.file, self.begun = path.open("a", encoding="utf-8"), time.monotonic()

    def __call__(self, line: str) -> None:
        """One line."""
        said = f"[{time.monotonic() - self.begun:7.1f}] {line}"
        print(said, flush=True)
        self.file.write(said + "\n")
        self.file.flush()


class Reader:
    """Texts as pieces and as word pieces, each read once for all models that share a tokenizer."""

    def __init__(self, models_: Mapping[str, models.Encoder]) -> None:
        self.models = models_
        self.pieces = models_["e5"].encode_ids
        self.words = next((m.encode_ids for name, m in models_.items() if name != "e5"), None)
        self.space: Space
        self.bridge: Bridge

    def rows(self, texts: Sequence[str], names: Iterable[str]) -> dict[str, list[np.ndarray]]:
        """Ids between their two marks, for the tokenizers that some models need."""
        wanted = {"e5" if name == "e5" else "words" for name in names}
        found = {}
        for kind in sorted(wanted):
            read = self.pieces if kind == "e5" else self.words
            found[kind] = [np.array(row, dtype=np.int32) for row in read(texts)] if read else []
        return found

    def asked(
        self, rows: Mapping[str, Sequence[np.ndarray]], roles: Sequence[str], names: Iterable[str]
    ) -> dict[str, Tensor]:
        """The vectors of each teacher."""
        found = {}
        for name in names:
            model = self.models[name]
            given = marked(rows["e5" if name == "e5" else "words"], roles, model, longest=385)
            found[name] = models.encode(model.model, given, model.pooling)
        return found

    def student(
        self, rows: Mapping[str, Sequence[np.ndarray]], roles: Sequence[str]
    ) -> list[np.ndarray]:
        """What the student is given: it shares the pieces of the model that it began as."""
        return marked(rows["e5"], roles, self.models["e5"], longest=corpus.LONGEST)


def marked(
    rows: Sequence[np.ndarray], roles: Sequence[str], model: models.Encoder, *, longest: int
) -> list[np.ndarray]:
    """Rows with the mark of each text's role after their beginning."""
    marks = {"q": model.query_prefix, "p": model.passage_prefix}
    ids = {
        role: np.array(model.encode_ids([mark])[0][1:-1], dtype=np.int32)
        for role, mark in marks.items()
    }
    return [
        np.concatenate([row[:1], ids[role], row[1:-1][: longest - 2 - len(ids[role])], row[-1:]])
        for row, role in zip(rows, roles, strict=True)
    ]


def english_taught(reader: Reader, texts: Sequence[str], roles: Sequence[str]) -> Taught:
    """English texts, placed by all teachers; the first ones that come make the space."""
    rows = reader.rows(texts, TEACHERS)
    vectors = reader.asked(rows, roles, TEACHERS)
    if not hasattr(reader, "space"):
        reader.space = Space.of(vectors, roles, TEACHERS, width=vectors["e5"].shape[1])
    places = reader.space.places(vectors, roles)
    if not hasattr(reader, "bridge"):
        reader.bridge = Bridge.of(vectors["e5"], role_numbers(roles, places.device), places)
    return Taught(reader.student(rows, roles), vectors, TEACHERS, places)


def other_taught(
    reader: Reader, texts: Sequence[str], roles: Sequence[str], languages: Sequence[str]
) -> Taught:
    """Texts of other languages, which e5 alone can read."""
    rows = reader.rows(texts, ["e5"])
    vectors = reader.asked(rows, roles, ["e5"])
    often = {
        key for key, count in Counter(zip(languages, roles, strict=True)).items() if count >= FEW
    }
    names: dict[tuple[str, str], int] = {}
    kinds = [
        names.setdefault((language if (language, role) in often else "", role), len(names))
        for language, role in zip(languages, roles, strict=True)
    ]
    places = reader.bridge.places(vectors["e5"], torch.tensor(kinds, device=vectors["e5"].device))
    return Taught(reader.student(rows, roles), vectors, {"e5": 1.0}, places)


def passages_of(
    windows: Windows, start: models.Encoder
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Each passage as pieces, and the piece at which each of its atoms begins."""

    def read(texts: Sequence[str]) -> list[np.ndarray]:
        return [np.array(row, dtype=np.int32) for row in start.encode_ids(texts)]

    begin, *mark, end = read([start.passage_prefix])[0]
    flat, heads = read([a for passage in windows.atoms for a in passage]), read(windows.heads)
    runs, cuts, at = [], [], 0
    for head, passage in zip(heads, windows.atoms, strict=True):
        parts = [row[1:-1] for row in flat[at : at + len(passage)]]
        at += len(passage)
        front = np.concatenate([[begin], mark, head[1:-1][:40]])
        places = np.minimum(
            len(front) + np.concatenate([[0], np.cumsum([len(p) for p in parts])]), 511
        )
        runs.append(np.concatenate([np.concatenate([front, *parts])[:511], [end]]).astype(np.int32))
        cuts.append(places)
    return runs, cuts


def whole_windows(windows: Windows, cuts: Sequence[np.ndarray]) -> Windows:
    """The same without windows that the passage's last piece cuts off."""
    out = Windows(
        windows.heads, windows.atoms, questions=windows.questions, languages=windows.languages
    )
    for n in range(len(windows.atoms)):
        for w in range(windows.first[n], windows.first[n + 1]):
            _, a, b = windows.windows[w]
            if cuts[n][b] - cuts[n][a] >= 4:
                out.windows.append((n, a, b))
                out.texts.append(windows.texts[w])
        out.first.append(len(out.windows))
    return out


def teach_windows(
    distiller: Distiller, kind: str, found: Corpus, reader: Reader, *, english: bool
) -> str:
    """Adds batches of windows; says how many there are."""
    windows = corpus.cut(found, WINDOW_PASSAGES[kind])
    if len(windows.atoms) < 100:
        return f"{kind}: too few long passages"
    runs, cuts = passages_of(windows, reader.models["e5"])
    windows = whole_windows(windows, cuts)
    texts = [*windows.texts, *windows.questions]
    roles = ["p"] * len(windows.texts) + ["q"] * len(windows.questions)
    languages = [windows.languages[n] for n, _, _ in windows.windows] + windows.languages
    taught = (
        english_taught(reader, texts, roles)
        if english
        else other_taught(reader, texts, roles, languages)
    )
    distiller.teach_windows(kind, windows, taught, runs, cuts)
    return f"{kind}: {len(windows.atoms)} passages, {len(windows.windows)} windows"


def teach_pairs(distiller: Distiller, pairs: Pairs, reader: Reader) -> str:
    """Adds batches of translations; English texts that several languages share are asked once."""
    places: dict[tuple[str, str], int] = {}
    english_of = [
        places.setdefault(key, len(places)) for key in zip(pairs.roles, pairs.english, strict=True)
    ]
    roles, texts = [r for r, _ in places], [t for _, t in places]
    taught = english_taught(reader, texts, roles)
    others = reader.student(reader.rows(pairs.others, ["e5"]), pairs.roles)
    distiller.teach_pairs(english_of, pairs.languages, taught, others)
    return (
        f"pairs: {len(english_of)} of {len(texts)} English texts in "
        f"{len(set(pairs.languages))} languages"
    )


def teach_groups(
    distiller: Distiller, kind: str, found: Corpus, reader: Reader, *, english: bool
) -> str:
    """Adds batches of groups; the English ones, which come first, also say how the student
    begins.
    """
    if english:
        taught = english_taught(reader, found.texts, found.roles)
        distiller.turn(taught)
    else:
        taught = other_taught(reader, found.texts, found.roles, found.languages())
    distiller.teach_groups(kind, found, taught)
    kept = (
        "the joint space keeps {:.3f} and {:.3f}".format(*reader.space.kept) if english else "by e5"
    )
    return f"{kind}: {len(found.texts)} texts are placed, {kept}"


def save(path: Path, student: Student) -> None:
    """The weights under BERT's names, in halves."""
    np.savez(
        path,
        allow_pickle=False,
        **{name: value.astype(np.float16) for name, value in to_bert(student).items()},
    )


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument(
        "--seconds", type=float, default=0, help="fit the steps into this time, instead of --steps"
    )
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="the share of English text and of translations to read",
    )
    parser.add_argument("--peak", type=float, default=2.5e-4)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    out: Path = given.out or given.folder / "out"
    out.mkdir(parents=True, exist_ok=True)
    say = Log(out / "train.log")
    torch.manual_seed(given.seed)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    run(given, out, say, device)


def run(given: argparse.Namespace, out: Path, say: Callable[[str], None], device: str) -> None:
    """Prepares, trains, measures."""
    held = given.folder / "weights"
    english, other, pairs = corpus.load(given.folder / "train", share=given.share, seed=given.seed)
    say(
        f"{len(english.texts)} English texts, {len(other.texts)} others, {len(pairs.english)} "
        "translations"
    )
    teachers = {name: models.load(name, held) for name in TEACHERS}
    for teacher in teachers.values():
        teacher.model.to(device)
    reader = Reader(teachers)
    student = from_bert(
        {k: torch.from_numpy(v) for k, v in weights.read(held, "e5").items()}, layers=given.layers
    )
    plan = Plan(given.steps, peak=given.peak, seed=given.seed, seconds=given.seconds)
    if device == "cpu":
        plan.rows, plan.most_pieces = 64, 6000
    distiller = Distiller(student, plan, device)
    say(teach_groups(distiller, "english", english, reader, english=True))
    say(teach_pairs(distiller, pairs, reader))
    say(teach_groups(distiller, "other", other, reader, english=False))
    say(teach_windows(distiller, "windows", english, reader, english=True))
    say(teach_windows(distiller, "other windows", other, reader, english=False))
    start = teachers["e5"]
    for teacher in teachers.values():
        teacher.model.to("cpu")
    sets = given.folder / "sets" / "sets.json.xz"
    measured = measure.load(sets) if sets.exists() else []
    encoder = measure.StudentEncoder(
        student, lambda texts: [np.array(r) for r in start.encode_ids(texts)], device
    )

    def look(step: int) -> None:
        say(f"on the way, after {step} steps")
        save(out / "student.npz", student)
        measure.measure(encoder, [one for one in measured if len(one.passages) < LOOK], say)

    distiller.run(say, look)
    save(out / "student.npz", student)
    if measured:
        figures = measure.measure(encoder, measured, say)
        (out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    say("done")


if __name__ == "__main__":
    main()
