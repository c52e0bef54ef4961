"""A fixed rotation, which spreads what a model puts into a few dimensions evenly over all."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np

from notewell.types import Vectors


def rotated(vectors: Vectors, *, back: bool = False) -> Vectors:
    """Vectors rotated as all that are kept as codes are: one, or one a row.

    Models have dimensions many times larger than the rest, and codes scaled to those are coarse for
    all others. Rotation changes no cosine; measured with one byte a dimension, the error of one
    falls from .00075 to .0003.
    """
    signs, mixer = _rotation(vectors.shape[-1])
    if back:
        return ((vectors.reshape(-1, len(mixer)) @ mixer).reshape(vectors.shape) * signs).astype(
            "f4"
        )
    return ((vectors * signs).reshape(-1, len(mixer)) @ mixer).reshape(vectors.shape).astype("f4")


@lru_cache(maxsize=8)
def _rotation(dim: int) -> tuple[Vectors, Vectors]:
    """A sign for every dimension, and the largest Hadamard matrix up to 256 that divides them
    evenly.
    """
    bits = random.Random(dim).getrandbits(dim)  # noqa: S311 - the same on every machine, which is all that counts
    signs = np.array([1.0 if bits >> i & 1 else -1.0 for i in range(dim)], dtype=np.float32)
    mixer = np.ones((1, 1), dtype=np.float32)
    while len(mixer) < 256 and dim % (2 * len(mixer)) == 0:
        mixer = np.block([[mixer, mixer], [mixer, -mixer]])
    return signs, mixer / np.float32(len(mixer) ** 0.5)
