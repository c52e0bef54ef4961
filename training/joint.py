"""One space for several teachers: a vector for every text whose cosines are the mean of what the
teachers say.

From each teacher's vectors the mean of their role is taken, since a prefix moves all of them the
same way. Then they are weighed by how far apart they lie and joined end to end. The directions that
carry most are kept, the strongest of them in the leading half. Inside each half they are turned at
random, so that no number of a vector is much larger than the others and few bits hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

_AT_ONCE = 65_536
_COMPARED = 4_096

Vectors = Mapping[str, Tensor]


def role_numbers(roles: Sequence[str], device: torch.device) -> Tensor:
    """0 for a question, 1 for a passage."""
    return torch.from_numpy(np.array([role == "p" for role in roles]).astype(np.int64)).to(device)


def means_of(vectors: Tensor, kinds: Tensor, count: int) -> Tensor:
    """The mean of each kind; nought for a kind without vectors."""
    sums = torch.zeros(count, vectors.shape[1], device=vectors.device)
    for at in range(0, len(vectors), _AT_ONCE):
        sums.index_add_(0, kinds[at : at + _AT_ONCE], vectors[at : at + _AT_ONCE].float())
    return sums / torch.bincount(kinds, minlength=count)[:, None].clamp_min(1)


def turned(size: int, seed: int) -> Tensor:
    """A random rotation."""
    made = torch.randn(size, size, generator=torch.Generator().manual_seed(seed))
    return torch.linalg.qr(made).Q


@dataclass(slots=True)
class Space:
    """The joint space; `basis` leads from the teachers' vectors side by side into it."""

    means: Mapping[str, Tensor]
    scales: Mapping[str, float]
    basis: Tensor
    kept: tuple[float, float]
    """The share of all that the teachers say that is left: in the leading half, and in the
    whole.
    """

    @classmethod
    def of(
        cls, vectors: Vectors, roles: Sequence[str], weights: Mapping[str, float], width: int = 384
    ) -> Space:
        """The space of these texts."""
        kinds = role_numbers(roles, next(iter(vectors.values())).device)
        means = {name: means_of(found, kinds, 2) for name, found in vectors.items()}
        scales = {}
        some = torch.linspace(0, len(roles) - 1, min(_COMPARED, len(roles))).long().to(kinds.device)
        for name, found in vectors.items():
            near = F.normalize(found[some].float() - means[name][kinds[some]], dim=-1)
            spread = float((near @ near.T).fill_diagonal_(0).std())
            scales[name] = (weights[name] / sum(weights.values()) / spread) ** 0.5
        space = cls(means, scales, torch.empty(0), (0.0, 0.0))
        together = 0
        for at in range(0, len(roles), _AT_ONCE):
            part = space.side_by_side(vectors, kinds, slice(at, at + _AT_ONCE))
            together = together + part.T @ part
        values, directions = torch.linalg.eigh(together)
        values, directions = values.flip(0).clamp_min(0), directions.flip(1)[:, :width]
        half = width // 2
        space.kept = (
            float(values[:half].sum() / values.sum()),
            float(values[:width].sum() / values.sum()),
        )
        turn = torch.block_diag(turned(half, 1), turned(width - half, 2)).to(directions)
        space.basis = directions @ turn
        return space

    def side_by_side(self, vectors: Vectors, kinds: Tensor, rows: slice) -> Tensor:
        """The teachers' vectors without their means, in a row."""
        own = kinds[rows]
        parts = (
            self.scales[name] * F.normalize(vectors[name][rows].float() - mean[own], dim=-1)
            for name, mean in self.means.items()
        )
        return torch.cat(list(parts), dim=1)

    def places(self, vectors: Vectors, roles: Sequence[str]) -> Tensor:
        """Where texts stand."""
        kinds = role_numbers(roles, self.basis.device)
        rows = (slice(at, at + _AT_ONCE) for at in range(0, len(roles), _AT_ONCE))
        found = [
            F.normalize(self.side_by_side(vectors, kinds, r) @ self.basis, dim=-1).half()
            for r in rows
        ]
        return torch.cat(found)


@dataclass(slots=True)
class Bridge:
    """Leads from one teacher's vectors into the joint space: for texts that the other teachers
    cannot read.
    """

    matrix: Tensor

    @classmethod
    def of(cls, vectors: Tensor, kinds: Tensor, places: Tensor, ridge: float = 1e-3) -> Bridge:
        """Fitted on texts that all teachers have read."""
        means, width = means_of(vectors, kinds, 2), vectors.shape[1]
        left: Tensor = ridge * len(vectors) / width * torch.eye(width, device=vectors.device)
        right = torch.zeros(width, places.shape[1], device=vectors.device)
        for at in range(0, len(vectors), _AT_ONCE):
            rows = slice(at, at + _AT_ONCE)
            part = F.normalize(vectors[rows].float() - means[kinds[rows]], dim=-1)
            left = left + part.T @ part
            right += part.T @ places[rows].float()
        return cls(torch.linalg.solve(left, right))

    def places(self, vectors: Tensor, kinds: Tensor) -> Tensor:
        """Where texts stand; each kind, a language and a role, loses its own mean."""
        means = means_of(vectors, kinds, int(kinds.max()) + 1)
        rows = (slice(at, at + _AT_ONCE) for at in range(0, len(vectors), _AT_ONCE))
        near = (F.normalize(vectors[r].float() - means[kinds[r]], dim=-1) for r in rows)
        return torch.cat([F.normalize(part @ self.matrix, dim=-1).half() for part in near])


def neighbours(places: Tensor, seeds: Tensor, count: int) -> np.ndarray:
    """The nearest places of each seed, itself first."""
    found = [
        (places[some] @ places.T).topk(min(count, len(places)), dim=1).indices
        for some in seeds.split(256)
    ]
    return np.asarray(torch.cat(found).cpu().numpy())
