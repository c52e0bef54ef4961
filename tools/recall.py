"""Measures what the hook of a prompt gives, and fits `hook.confidence`: `python tools/recall.py`.

The prompts are in `tests/golden/prompts`. The bar is chosen on every second one of them; the
figures that count are those of the others. After a change of the confidence or of the model, write
the bar it prints into `settings.py`.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from notewell.memory import Memory
from notewell.settings import HookSettings
from notewell.surfaces.hooks.recall import MOST_PASSAGES, recall
from notewell.text.markdown import split_lines
from notewell.text.small_talk import says_something
from notewell.types import Hit

ROOT = Path(__file__).parents[1]
PROMPTS = ROOT / "tests/golden/prompts"
NOTES = {
    "sample": ROOT / "src/notewell/surfaces/sample",
    "handbook": PROMPTS / "handbook",
    "vault": PROMPTS / "vault",
}
PRECISION, FOUND, MOST_TALK, MOST_OFF = 0.85, 0.70, 0.02, 0.10
_BARS = [n / 100 for n in range(30, 96)]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with its kind (talk, off, on, none), the notes it is asked of, and the sections that
    answer it.
    """

    kind: str
    text: str
    notes: str
    expect: tuple[str, ...] = ()
    held: bool = False

    def is_answered_by(self, path: str, first: int, last: int) -> bool:
        """Whether some lines of a note are of a section that answers it."""
        for place in self.expect:
            name, _, heading = place.partition("#")
            start, end = section(NOTES[self.notes] / name, heading)
            if name == path and first <= end and start <= last:
                return True
        return False


@dataclass(frozen=True, slots=True)
class Given:
    """What a prompt got: for each passage its confidence, and whether it is right."""

    prompt: Prompt
    passages: tuple[tuple[float, bool], ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of passages, the share that is right; of prompts, the shares that got their note, or got
    anything.
    """

    precision: float
    found: float
    talk: float
    off: float
    none: float

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.3f}  found {self.found:.3f}  talk {self.talk:.3f}  "
            f"off {self.off:.3f}  unanswerable {self.none:.3f}"
        )

    @property
    def spare(self) -> float:
        """By how much it passes everything that is asked for; below 0, by how much it fails."""
        noise = min(0.0, MOST_TALK - self.talk, MOST_OFF - self.off)
        return noise or min(self.precision - PRECISION, self.found - FOUND)


@lru_cache(maxsize=1000)
def section(file: Path, heading: str) -> tuple[int, int]:
    """The first and the last line of a section."""
    lines = split_lines(file.read_text(encoding="utf-8"))
    heads = [n for n, line in enumerate(lines, start=1) if line.startswith(("# ", "## "))]
    start = next(n for n in heads if lines[n - 1].lstrip("#").strip() == heading)
    return start, next((n - 1 for n in heads if n > start), len(lines))


def prompts() -> list[Prompt]:
    """All prompts; small talk and what is off topic is asked of every collection."""
    found = []
    for number, line in enumerate(
        (PROMPTS / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        row = json.loads(line)
        for notes in (row["notes"],) if "notes" in row else NOTES:
            expect = tuple(row.get("expect", ()))
            found.append(Prompt(row["kind"], row["prompt"], notes, expect, held=number % 2 == 1))
    return found


def opened(folder: Path, names: Sequence[str] = tuple(NOTES)) -> Iterator[tuple[str, Memory]]:
    """The collections, copied to a folder and indexed with the usual model."""
    for name in names:
        root = shutil.copytree(NOTES[name], folder / name)
        memory = Memory.open(root, env={})
        memory.sync()
        yield name, memory


def given(prompt: Prompt, memory: Memory, own: HookSettings) -> Given:
    """What a prompt gets, as in the hook."""
    hits: Sequence[Hit] = recall(memory, prompt.text, own)[1] if says_something(prompt.text) else ()
    places = [(h.confidence, h.chunk.path, h.chunk.start_line, h.chunk.end_line) for h in hits]
    return Given(prompt, tuple((sure, prompt.is_answered_by(*place)) for sure, *place in places))  # type: ignore[arg-type]


def figures(answers: Sequence[Given], bar: float = 0.0) -> Figures:
    """The figures at a bar."""
    at = [
        replace(a, passages=tuple(p for p in a.passages if p[0] >= bar)[:MOST_PASSAGES])
        for a in answers
    ]
    right = [ok for a in at for _, ok in a.passages]
    kinds: Mapping[str, list[Given]] = {
        k: [a for a in at if a.prompt.kind == k] for k in ("talk", "off", "on", "none")
    }

    def share(kind: str) -> float:
        return sum(bool(a.passages) for a in kinds[kind]) / (len(kinds[kind]) or 1)

    found = sum(any(ok for _, ok in a.passages) for a in kinds["on"]) / (len(kinds["on"]) or 1)
    return Figures(
        sum(right) / (len(right) or 1), found, share("talk"), share("off"), share("none")
    )


def open_bar() -> HookSettings:
    """Settings under which all passages come back, so that any bar can be tried on them."""
    return replace(HookSettings(), confidence=0.0, tokens=100_000)


def fitted(answers: Sequence[Given]) -> float:
    """The bar that is furthest from failing anything; of equal ones the highest."""
    return max(_BARS, key=lambda bar: (round(figures(answers, bar).spare, 3), bar))


def main() -> int:
    """Prints the bar and what it gives on both halves."""
    own = open_bar()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        memories = {name: stack.enter_context(memory) for name, memory in opened(Path(folder))}
        answers = [given(p, memories[p.notes], own) for p in prompts()]
    fit, held = ([a for a in answers if a.prompt.held is half] for half in (False, True))
    for bar in _BARS[::2]:
        sys.stdout.write(f"{bar:.2f}  {figures(fit, bar)}\n")
    bar, used = fitted(fit), HookSettings().confidence
    sys.stdout.write(f"\nbar by the first half: {bar:.2f}; in the settings: {used:.2f}\n")
    for name, value in (("fitted", bar), ("in the settings", used)):
        sys.stdout.write(f"held half, {name} {value:.2f}: {figures(held, value)}\n")
    return 0 if figures(held, used).spare >= 0 else 1


if __name__ == "__main__":
    sys.exit(main())
