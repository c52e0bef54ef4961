"""What every model with windows promises. A new one joins by adding a row to `WINDOWED`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from notewell.embed.breaker import Guarded
from notewell.embed.cached import CachedEmbedder
from notewell.embed.embedder import Embedder, PassageVectors, windows_of
from notewell.embed.local.hashed import HashedEmbedder
from tests.conformance.test_embedder import TEXTS, WEIRD
from tests.embed.models import Windowed

WORDS = ("harbour", "lamp", "orchard", "bridge") * 10
# under 512 pieces
LONG = "\n".join(f"Line {n} is about the {word}." for n, word in enumerate(WORDS))


class Model(Embedder, Protocol):
    window_dims: int

    def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]: ...


WINDOWED: dict[str, Callable[[Path], Model]] = {
    "made": lambda _: Windowed(),
    "cached": lambda folder: CachedEmbedder(Windowed(), folder / "cache.sqlite"),
    "guarded": lambda _: Guarded(Windowed(), deadline_s=50),
}


@pytest.fixture(params=WINDOWED)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    return WINDOWED[request.param](tmp_path)


def test_a_model_says_that_it_has_windows_and_how_much_of_them_is_kept(
    model: Model, tmp_path: Path
) -> None:
    assert windows_of(model) is not None
    assert 0 < model.window_dims <= model.dim
    assert model.window_dims % 2 == 0
    plain: tuple[Embedder, ...] = (
        HashedEmbedder(),
        CachedEmbedder(HashedEmbedder(), tmp_path / "plain.sqlite"),
    )
    assert [windows_of(one) for one in (*plain, Guarded(HashedEmbedder()))] == [None] * 3


def test_the_whole_is_what_it_would_be_without_windows(model: Model) -> None:
    texts = [*TEXTS, LONG]
    found = model.embed_passages(texts)
    assert np.allclose(
        np.stack([one.whole for one in found]), model.embed(texts, "document"), atol=1e-5
    )
    assert model.embed_passages([]) == []


def test_windows_cover_a_long_text_in_order(model: Model) -> None:
    (found,) = model.embed_passages([LONG])
    assert len(found.windows) == len(found.spans) > 3
    assert found.windows.shape[1] >= model.window_dims
    assert list(found.spans) == sorted(found.spans)
    assert found.spans[0][0] == 0
    assert found.spans[-1][1] == len(LONG)
    assert all(0 <= start < end for start, end in found.spans)
    gaps = (
        LONG[end:start].strip()
        for (_, end), (start, _) in zip(found.spans, found.spans[1:], strict=False)
    )
    assert not any(gaps), "no word is in no window"
    assert np.linalg.norm(found.windows[:, : model.window_dims], axis=1).min() > 0.1


def test_a_window_does_not_depend_on_other_texts(model: Model) -> None:
    (alone,) = model.embed_passages([LONG])
    together = model.embed_passages([TEXTS[3], LONG, TEXTS[0]])[1]
    assert list(alone.spans) == list(together.spans)
    assert np.allclose(alone.windows, together.windows, atol=1e-5)


@pytest.mark.parametrize("text", WEIRD.values(), ids=WEIRD.keys())
def test_any_text_has_windows_inside_it_or_none(model: Model, text: str) -> None:
    (found,) = model.embed_passages([text])
    assert np.isfinite(found.whole).all()
    assert np.isfinite(found.windows).all()
    assert len(found.windows) == len(found.spans)
    assert all(0 <= start <= end <= len(text) for start, end in found.spans)
