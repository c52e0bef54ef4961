"""The embedder without a model: spelling in, the same vector out everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from notewell.embed.local.hashed import HashedEmbedder


def cosine(one: str, other: str) -> float:
    a, b = HashedEmbedder().embed([one, other], "document")
    return float(a @ b)


def test_its_id_names_its_size() -> None:
    assert HashedEmbedder(64).id == "hashed@64"
    assert HashedEmbedder(64).embed(["x"], "query").shape == (1, 64)


def test_shared_words_and_shared_spelling_are_near() -> None:
    assert cosine("deploy the server", "the server deploys") > 0.9
    assert cosine("configuration", "configurable") > cosine("configuration", "zebra") + 0.2


def test_unrelated_texts_are_far() -> None:
    assert abs(cosine("deploy the server", "chocolate cake recipe")) < 0.3


def test_every_script_counts() -> None:
    assert cosine("東京都の夜景", "東京都") > cosine("東京都の夜景", "备份脚本") + 0.2
    assert cosine("привет мир", "привет") > 0.5


def test_a_text_without_a_term_has_a_fixed_row() -> None:
    rows = HashedEmbedder(8).embed(["", "!!!"], "document")
    assert np.array_equal(rows, [[1, 0, 0, 0, 0, 0, 0, 0]] * 2)


def test_the_same_text_has_the_same_vector_on_every_machine() -> None:
    (row,) = HashedEmbedder(16).embed(["deploy the server"], "document")
    assert row == pytest.approx(
        [
            0.221,
            0.0,
            0.0,
            -0.11,
            0.0,
            0.0,
            -0.882,
            0.0,
            0.0,
            -0.11,
            0.276,
            0.221,
            0.11,
            0.0,
            0.11,
            0.0,
        ],
        abs=1e-3,
    )
