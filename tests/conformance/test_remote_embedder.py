"""Every remote provider keeps the promises of an embedder, against a server that checks its wire
shape.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notewell.embed.remote.presets import PRESETS
from notewell.embed.remote.remote_embedder import RemoteEmbedder, remote_embedder
from notewell.settings import EmbedSettings
from tests.conformance.test_embedder import (  # noqa: F401 - the suite, with the embedders of this module
    test_a_question_lies_near_the_passage_with_its_words,
    test_a_row_does_not_depend_on_its_neighbours,
    test_any_text_has_a_row,
    test_it_has_a_name_and_a_size,
    test_no_text_makes_no_row,
    test_rows_are_unit_vectors,
    test_rows_come_in_the_order_of_the_texts,
    test_the_same_text_has_the_same_row,
    test_weird_texts_disturb_no_others,
)
from tests.embed.provider_server import KEY, ProviderServer, serving

MODELS = [
    *(name for name in PRESETS if name != "http"),
    "gemini/gemini-embedding-001",
    "ollama/all-minilm",
    "http/some-model",
    "http",
]


@pytest.fixture(params=MODELS)
def embedder(request: pytest.FixtureRequest) -> Iterator[RemoteEmbedder]:
    provider, _, model = request.param.partition("/")
    preset = PRESETS[provider]
    with serving(
        ProviderServer(provider, dim=preset.known(model or preset.model).dim or 96)
    ) as server:
        settings = EmbedSettings(model=request.param, url=server.url, key=KEY, timeout_s=10)
        made = remote_embedder(provider, model, settings, {})
        yield made
        made.close()
        assert server.problems == []
