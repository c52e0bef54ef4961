"""Trains the student: reads the text, asks the teachers, distils, measures, writes the weights.

    python -m training.train FOLDER [--steps 6000] [--layers 12] [--share 1.0] [--out FOLDER]

FOLDER holds `weights/` (from `training.weights`), `train/` (from `training.gather`) and, to measure,
`sets/sets.json.xz` (from `training.cut_sets`). The weights come out as `student.npz`, with `train.log` and
`figures.json` beside it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from training import corpus, measure, models, weights
from training.corpus import Corpus, Pairs, Windows
from training.distil import Distiller, Plan, Taught
from training.student import from_bert, to_bert

TEACHERS = {"bge": 0.8, "gte": 0.8, "nomic": 1.4, "e5": 0.6}
WINDOW_PASSAGES = {"english": 30_000, "other": 12_000}


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


class Pieces:
    """The student's pieces."""

    def __init__(self, encoder: models.Encoder) -> None:
        self.encoder = encoder
        self.marks = {"q": encoder.query_prefix, "p": encoder.passage_prefix}

    def raw(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Pieces with a beginning and an end, without a mark."""
        return [np.array(row, dtype=np.int32) for row in self.encoder.encode_ids(texts)]

    def marked(self, texts: Sequence[str], roles: Sequence[str], longest: int = corpus.LONGEST) -> list[np.ndarray]:
        """Pieces with the mark of each text's role."""
        found = self.encoder.encode_ids([self.marks[r] + t for r, t in zip(roles, texts, strict=True)])
        return [np.array([*row[: longest - 1], row[-1]], dtype=np.int32) for row in found]


def asked(teacher: models.Encoder, texts: Sequence[str], roles: Sequence[str]) -> Tensor:
    """A teacher's vectors."""
    marks = {"q": teacher.query_prefix, "p": teacher.passage_prefix}
    rows = teacher.encode_ids([marks[r] + t for r, t in zip(roles, texts, strict=True)])
    return models.encode(teacher.model, [r[:385] for r in rows], teacher.pooling)


def passages_of(windows: Windows, pieces: Pieces) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Each passage as pieces, and the piece at which each of its atoms begins."""
    begin, mark = pieces.raw([pieces.marks["p"]])[0][0], pieces.raw([pieces.marks["p"]])[0][1:-1]
    end = pieces.raw([""])[0][-1]
    flat = pieces.raw([a for passage in windows.atoms for a in passage])
    heads = pieces.raw(windows.heads)
    runs, cuts, at = [], [], 0
    for head, passage in zip(heads, windows.atoms, strict=True):
        parts = [row[1:-1] for row in flat[at : at + len(passage)]]
        at += len(passage)
        front = np.concatenate([[begin], mark, head[1:-1][:40]])
        places = np.minimum(len(front) + np.concatenate([[0], np.cumsum([len(p) for p in parts])]), 511)
        runs.append(np.concatenate([np.concatenate([front, *parts])[:511], [end]]).astype(np.int32))
        cuts.append(places)
    return runs, cuts


def whole_windows(windows: Windows, cuts: Sequence[np.ndarray]) -> Windows:
    """The same without windows that the passage's last piece cuts off."""
    out = Windows(windows.heads, windows.atoms, questions=windows.questions)
    for n in range(len(windows.atoms)):
        for w in range(windows.first[n], windows.first[n + 1]):
            _, a, b = windows.windows[w]
            if cuts[n][b] - cuts[n][a] >= 4:
                out.windows.append((n, a, b))
                out.texts.append(windows.texts[w])
        out.first.append(len(out.windows))
    return out


def teach_windows(
    distiller: Distiller, kind: str, found: Corpus, pieces: Pieces, *, teachers: dict[str, models.Encoder], most: int
) -> str:
    """Adds batches of windows; says how many there are."""
    windows = corpus.cut(found, most)
    if len(windows.atoms) < 100:
        return f"{kind}: too few long passages"
    runs, cuts = passages_of(windows, pieces)
    windows = whole_windows(windows, cuts)
    texts = [*windows.texts, *windows.questions]
    roles = ["p"] * len(windows.texts) + ["q"] * len(windows.questions)
    questions = pieces.marked(windows.questions, ["q"] * len(windows.questions))
    ids = [np.zeros(0, np.int32)] * len(windows.texts) + questions
    vectors = {name: asked(teacher, texts, roles) for name, teacher in teachers.items()}
    taught = Taught(ids, vectors, {name: TEACHERS.get(name, 1.0) for name in teachers})
    distiller.teach_windows(kind, windows, taught, runs, cuts)
    return f"{kind}: {len(windows.atoms)} passages, {len(windows.windows)} windows"


def teach_pairs(distiller: Distiller, pairs: Pairs, pieces: Pieces, teachers: dict[str, models.Encoder]) -> str:
    """Adds batches of translations; English texts that several languages share are asked once."""
    places: dict[tuple[str, str], int] = {}
    rows = [places.setdefault(key, len(places)) for key in zip(pairs.roles, pairs.english, strict=True)]
    roles, texts = [r for r, _ in places], [t for _, t in places]
    ids = pieces.marked(texts, roles)
    vectors = {name: asked(teacher, texts, roles) for name, teacher in teachers.items()}
    distiller.teach_pairs(
        rows, pairs.languages, Taught(ids, vectors, TEACHERS), pieces.marked(pairs.others, pairs.roles)
    )
    return f"pairs: {len(rows)} of {len(texts)} English texts in {len(set(pairs.languages))} languages"


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument(
        "--share", type=float, default=1.0, help="the share of English text and of translations to read"
    )
    parser.add_argument("--peak", type=float, default=2e-4)
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
    start = models.load("e5", held)
    pieces = Pieces(start)
    english, other, pairs = corpus.load(given.folder / "train", share=given.share, seed=given.seed)
    say(f"{len(english.texts)} English texts, {len(other.texts)} others, {len(pairs.english)} translations")
    teachers = {name: models.load(name, held) for name in TEACHERS}
    for teacher in (*teachers.values(), start):
        teacher.model.to(device)
    student = from_bert({k: torch.from_numpy(v) for k, v in weights.read(held, "e5").items()}, layers=given.layers)
    plan = Plan(given.steps, peak=given.peak, seed=given.seed)
    if device == "cpu":
        plan.rows, plan.most_pieces = 64, 6000
    distiller = Distiller(student, plan, device)
    vectors = {name: asked(teacher, english.texts, english.roles) for name, teacher in teachers.items()}
    distiller.teach_groups("english", english, Taught(pieces.marked(english.texts, english.roles), vectors, TEACHERS))
    say("English texts are taught by " + ", ".join(TEACHERS))
    say(teach_pairs(distiller, pairs, pieces, teachers))
    own = {"e5": start}
    vectors = {"e5": asked(start, other.texts, other.roles)}
    distiller.teach_groups("other", other, Taught(pieces.marked(other.texts, other.roles), vectors, {"e5": 1.0}))
    say("other languages are taught by e5")
    say(teach_windows(distiller, "windows", english, pieces, teachers=teachers, most=WINDOW_PASSAGES["english"]))
    say(teach_windows(distiller, "other windows", other, pieces, teachers=own, most=WINDOW_PASSAGES["other"]))
    teachers.clear()
    distiller.run(say)
    weights.write(out, "student", to_bert(student))
    sets = given.folder / "sets" / "sets.json.xz"
    if sets.exists():
        encoder = measure.StudentEncoder(student, pieces.raw, device)
        figures = measure.measure(encoder, measure.load(sets), say)
        (out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    say("done")


if __name__ == "__main__":
    main()
