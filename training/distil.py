"""Teaches a student what several teachers agree on: where a text stands, and which texts are near
each other.

Every batch gives rows of unit vectors. Each is drawn to its text's place in the teachers' joint
space (`joint.py`). Each teacher's similarities are standardised a row at a time and averaged; the
student's, sharpened by a fixed factor, are drawn towards their softmax. Where a question has a
labelled answer, part of the target is that answer. The leading dimensions alone are taught the
same, so that short vectors work too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from training.corpus import Corpus, Windows
from training.joint import neighbours
from training.student import Packed, Student, batches, pack, pooled, warm

SHARP = 2.0  # the factor on standardised similarities before the softmax
# The factor on the student's cosines. Were it learned, it would grow without end while all vectors
# crowd together, and rounding to a byte would leave nothing of what tells them apart.
SHARPNESS = 20.0
LABEL = 0.3  # the part of a target that a labelled answer gets
PLACE = 4.0  # what the distance from a text's place counts beside its neighbours
SHORT = 192  # leading dimensions that are also taught alone
_HIDDEN = -1e4
_TIMED = 100, 300  # the steps by which the rest is timed


@dataclass(slots=True)
class Taught:
    """Texts as the student reads them, each teacher's vectors for them with its weight, and their
    places.
    """

    ids: Sequence[np.ndarray]
    vectors: Mapping[str, Tensor]
    weights: Mapping[str, float]
    places: Tensor

    def target(self, rows: Tensor) -> Tensor:
        """What the teachers agree on for some texts, standardised by row, own place hidden."""
        own = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
        total = sum(self.weights.values())
        some = [
            self.weights[k] / total * standardised((v[rows] @ v[rows].T).float(), own)
            for k, v in self.vectors.items()
        ]
        return torch.stack(some).sum(0).masked_fill(own, _HIDDEN)


@dataclass(slots=True)
class Plan:
    """How long a run is, how large its batches are, and the share of each kind of batch."""

    steps: int
    rows: int = 1024
    most_pieces: int = 130_000
    peak: float = 2e-4
    shares: Mapping[str, float] = field(
        default_factory=lambda: {
            "english": 0.43,
            "pairs": 0.18,
            "other": 0.15,
            "windows": 0.18,
            "other windows": 0.06,
        }
    )
    near: int = 32
    """How many neighbours of a group come with it in a hard batch."""
    seeds: int = 40_000
    seed: int = 0
    seconds: float = 0
    """With a time, the number of steps is set by how long the first ones take."""


def standardised(similar: Tensor, own: Tensor) -> Tensor:
    """Similarities less the mean of their row, over its deviation; a text's own place counts for
    neither.
    """
    many = similar.shape[1] - 1
    mean = similar.masked_fill(own, 0).sum(1, keepdim=True) / many
    apart = (similar - mean).masked_fill(own, 0)
    return apart / ((apart**2).sum(1, keepdim=True) / many).sqrt().clamp_min(1e-6)


def drawn(
    vectors: Tensor, target: Tensor, labels: Tensor | None = None, *, sharpness: float = SHARPNESS
) -> Tensor:
    """How far the student's similarities are from the target; `labels` are each row's answer, or
    -1.
    """
    own = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    wanted = (SHARP * target).softmax(1)
    if labels is not None:
        has = (labels >= 0).float()[:, None]
        answer = F.one_hot(labels.clamp_min(0), len(vectors)).float()
        wanted = wanted * (1 - LABEL * has) + answer * LABEL * has
    found = (vectors @ vectors.T * sharpness).masked_fill(own, _HIDDEN).log_softmax(1)
    return F.kl_div(found, wanted, reduction="batchmean")


def apart(vectors: Tensor, places: Tensor) -> Tensor:
    """How far vectors are from their places."""
    return 1 - (vectors * places.float()).sum(1).mean()


class Distiller:
    """A run: batches of five kinds, one optimiser."""

    def __init__(self, student: Student, plan: Plan, device: str) -> None:
        self.student, self.plan, self.device = student.to(device), plan, device
        held = list(student.parameters())
        self.optimiser = torch.optim.AdamW(
            held, lr=plan.peak, weight_decay=0.01, fused=device == "cuda"
        )
        self.dice = random.Random(plan.seed)
        self.kinds: dict[str, Callable[[], Tensor]] = {}

    def states(self, rows: Sequence[np.ndarray]) -> tuple[Tensor, Packed]:
        """The state of every piece, and the texts it was made of."""
        packed = pack(rows, self.device)
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            return self.student(packed).float(), packed

    def vectors(self, rows: Sequence[np.ndarray]) -> Tensor:
        """One unit vector a text."""
        states, packed = self.states(rows)
        return pooled(states, packed.bounds[:-1], packed.bounds[1:])

    def both(
        self, vectors: Tensor, target: Tensor, places: Tensor, labels: Tensor | None = None
    ) -> Tensor:
        """The loss of whole vectors and of their leading dimensions."""
        loss = drawn(vectors, target, labels) + PLACE * apart(vectors, places)
        short, short_places = (F.normalize(v[:, :SHORT], dim=-1) for v in (vectors, places.float()))
        return loss + 0.5 * (drawn(short, target, labels) + PLACE * apart(short, short_places))

    def turn(self, taught: Taught, most: int = 20_000) -> None:
        """Begins as near to the places as a turn of the untaught vectors can bring it."""
        with torch.no_grad():
            some = self.dice.sample(range(len(taught.ids)), min(most, len(taught.ids)))
            known = torch.ones(len(some), self.student.turn.in_features + 1, device=self.device)
            for places in batches([len(taught.ids[r]) for r in some], self.plan.most_pieces):
                states, packed = self.states([taught.ids[some[place]] for place in places])
                lengths = torch.diff(packed.starts.long())
                owners = torch.repeat_interleave(
                    torch.arange(len(lengths), device=self.device), lengths
                )
                sums = torch.zeros(len(places), states.shape[1], device=self.device).index_add_(
                    0, owners, states
                )
                known[torch.tensor(places, device=self.device), :-1] = sums / lengths[:, None]
            wanted = taught.places[torch.tensor(some, device=self.device)].float()
            # The states' own size is kept: what follows is trained in steps of one size.
            wanted = wanted * known[:, :-1].norm(dim=1).mean()
            ridge = 1e-3 * len(some) * torch.eye(known.shape[1], device=self.device)
            found = torch.linalg.solve(known.T @ known + ridge, known.T @ wanted)
            self.student.turn.weight.copy_(found[:-1].T)
            self.student.turn.bias.copy_(found[-1])
            self.student.turns = True

    def teach_groups(self, kind: str, corpus: Corpus, taught: Taught) -> None:
        """Batches of groups: of neighbours, which are hardest to tell apart, of one source, or of
        all.
        """
        of_source: dict[str, list[int]] = {}
        for n, source in enumerate(corpus.sources):
            of_source.setdefault(source, []).append(n)
        large = {s: g for s, g in of_source.items() if len(g) > 2000}
        sources = list(large)
        shares = [len(large[s]) ** 0.6 for s in sources]
        everything = range(len(corpus.groups))
        last = torch.tensor([group[-1] for group in corpus.groups], device=taught.places.device)
        seeds = self.dice.sample(everything, min(self.plan.seeds, len(everything)))
        near = neighbours(
            taught.places[last], torch.tensor(seeds, device=last.device), self.plan.near
        )

        def picked() -> Iterator[int]:
            luck = self.dice.random()
            while luck < 0.4:
                yield from near[self.dice.randrange(len(near))].tolist()
            among = (
                large[self.dice.choices(sources, shares)[0]]
                if sources and luck < 0.7
                else everything
            )
            while True:
                yield self.dice.choice(among)

        def batch() -> Tensor:
            rows: dict[int, int] = {}
            answer_of: dict[int, int] = {}
            pieces = 0
            for n in picked():
                if len(rows) >= self.plan.rows or pieces >= self.plan.most_pieces:
                    break
                group = corpus.groups[n]
                pieces += sum(len(taught.ids[r]) for r in group if r not in rows)
                for r in group:
                    rows.setdefault(r, len(rows))
                if corpus.labelled[n]:
                    answer_of[rows[group[0]]] = rows[group[1]]
            labels = [answer_of.get(i, -1) for i in range(len(rows))]
            vectors = self.vectors([taught.ids[r] for r in rows])
            answers, chosen = (torch.tensor(x, device=self.device) for x in (labels, list(rows)))
            return self.both(vectors, taught.target(chosen), taught.places[chosen], answers)

        self.kinds[kind] = batch

    def teach_pairs(
        self,
        english_of: Sequence[int],
        languages: Sequence[str],
        taught: Taught,
        others: Sequence[np.ndarray],
    ) -> None:
        """Batches of translations: each is as near to every English text as its own English side
        is.

        `english_of` are the places in `taught` of the English sides. Small languages come up more
        often than they have texts.
        """
        of_language: dict[str, list[int]] = {}
        for n, language in enumerate(languages):
            of_language.setdefault(language, []).append(n)
        names = list(of_language)
        shares = [len(of_language[name]) ** 0.6 for name in names]

        def batch() -> Tensor:
            picked: dict[int, int] = {}
            for name in self.dice.choices(names, shares, k=self.plan.rows // 2):
                n = self.dice.choice(of_language[name])
                picked.setdefault(english_of[n], n)
            rows = list(picked)
            vectors = self.vectors(
                [taught.ids[r] for r in rows] + [others[n] for n in picked.values()]
            )
            english, other = vectors.split(len(rows))
            chosen = torch.tensor(rows, device=self.device)
            target, places = taught.target(chosen), taught.places[chosen]
            mixed = torch.where(torch.rand(len(rows), 1, device=self.device) < 0.5, english, other)
            own = torch.eye(len(rows), device=self.device)
            wanted = 0.5 * own + 0.5 * (SHARP * target).softmax(1)
            loss = (
                self.both(mixed, target, places)
                + PLACE * (apart(english, places) + apart(other, places)) / 2
            )
            for n, size in enumerate((vectors.shape[1], SHORT)):
                a, b = (F.normalize(v[:, :size], dim=-1) for v in (english, other))
                found = (b @ a.T * SHARPNESS).log_softmax(1)
                loss = loss + (1.0 if n == 0 else 0.5) * F.kl_div(
                    found, wanted, reduction="batchmean"
                )
            return loss

        self.kinds["pairs"] = batch

    def teach_windows(
        self,
        kind: str,
        windows: Windows,
        taught: Taught,
        runs: Sequence[np.ndarray],
        cuts: Sequence[np.ndarray],
    ) -> None:
        """Windows pooled from one pass over their passage, beside questions.

        `runs` are the passages as pieces, `cuts` the pieces at which each of their atoms begins,
        and an end. The texts of `taught` are those of all windows, then those of the questions of
        all passages.
        """
        many, offset = len(windows.atoms), len(windows.windows)
        at_once = max(2, self.plan.most_pieces // 1500)

        def batch() -> Tensor:
            some = self.dice.sample(range(many), min(at_once, many))
            questions = [taught.ids[offset + n] for n in some]
            states, packed = self.states([runs[n] for n in some] + questions)
            begins, ends, rows = [], [], []
            for place, n in enumerate(some):
                for w in range(windows.first[n], windows.first[n + 1]):
                    _, a, b = windows.windows[w]
                    begins.append((place, cuts[n][a]))
                    ends.append((place, cuts[n][b]))
                    rows.append(w)
            base = packed.bounds
            first = [base[p] + at for p, at in begins] + base[len(some) : -1].tolist()
            last = [base[p] + at for p, at in ends] + base[len(some) + 1 :].tolist()
            made = pooled(states, np.array(first), np.array(last))
            chosen = torch.tensor(rows + [offset + n for n in some], device=self.device)
            return self.both(made, taught.target(chosen), taught.places[chosen])

        self.kinds[kind] = batch

    def run(self, say: Callable[[str], None], look: Callable[[int], None] | None = None) -> None:
        """All steps; says how the losses are every hundred, and has a look after every fifth of
        them.
        """
        kinds = list(self.kinds)
        shares = [self.plan.shares[k] for k in kinds]
        losses: dict[str, list[Tensor]] = {k: [] for k in kinds}
        begun = time.monotonic()
        self.student.train()
        step = 0
        while step < self.plan.steps:
            self.optimiser.param_groups[0]["lr"] = warm(
                (step + 1) / self.plan.steps, self.plan.peak
            )
            kind = self.dice.choices(kinds, shares)[0]
            loss = self.kinds[kind]()
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
            self.optimiser.step()
            losses[kind].append(loss.detach())
            step += 1
            if step % 100 == 0 or step == self.plan.steps:
                means = {k: float(torch.stack(v).mean()) for k, v in losses.items() if v}
                say(f"step {step}: " + ", ".join(f"{k} {v:.3f}" for k, v in means.items()))
                losses = {k: [] for k in kinds}
            # the first ones are slow: kernels are compiled
            if self.plan.seconds and step == _TIMED[0]:
                timed = time.monotonic()
            if self.plan.seconds and step == _TIMED[1]:
                now = time.monotonic()
                each = (now - timed) / (_TIMED[1] - _TIMED[0])
                self.plan.steps = step + int((self.plan.seconds - (now - begun)) / each)
                say(f"{each:.3f} s a step: {self.plan.steps} steps in all")
            if (
                look
                and step > _TIMED[1]
                and step % max(1, self.plan.steps // 5) == 0
                and step < self.plan.steps
            ):
                self.student.eval()
                look(step)
                self.student.train()
        self.student.eval()
