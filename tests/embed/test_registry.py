"""Names of models to embedders."""

from __future__ import annotations

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.embed.local.packaged import PACKAGED, LocalEmbedder
from notewell.embed.registry import DEFAULT_MODEL, embedder
from notewell.errors import SettingsError
from notewell.model_names import SAFE_MODELS


def test_none_is_no_embedder() -> None:
    assert embedder("none") is None


def test_hashed_needs_no_model() -> None:
    assert isinstance(embedder("hashed"), HashedEmbedder)


@pytest.mark.parametrize("name", PACKAGED)
def test_every_packaged_model_has_a_name(name: str) -> None:
    found = embedder(name, threads=1)
    assert isinstance(found, LocalEmbedder)
    assert name in found.id
    assert found.dim == PACKAGED[name].dim


def test_auto_is_the_default() -> None:
    found = embedder("auto")
    assert isinstance(found, LocalEmbedder)
    assert found.packaged is PACKAGED[DEFAULT_MODEL]


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(SettingsError, match="'hashd'") as caught:
        embedder("hashd")
    assert caught.value.hint == "did you mean hashed?"


def test_an_unknown_name_gets_the_list() -> None:
    with pytest.raises(SettingsError) as caught:
        embedder("??")
    assert all(name in caught.value.hint for name in ("auto", "hashed", "none", *PACKAGED))


def test_a_workspace_file_may_name_what_needs_no_path_and_no_network() -> None:
    assert set(SAFE_MODELS) == {"auto", "local", "none", "hashed", *PACKAGED}


def test_hashed_comes_in_any_size_and_local_is_the_default() -> None:
    found = embedder("hashed@512")
    assert found is not None
    assert (found.id, found.dim) == ("hashed@512", 512)
    local = embedder("local")
    assert isinstance(local, LocalEmbedder)
    assert local.packaged is PACKAGED[DEFAULT_MODEL]


@pytest.mark.parametrize("name", ["hashed@", "hashed@x", "hashed@7", "hashed@4097", "hashed@-8"])
def test_a_size_that_makes_no_sense_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="no embedding model is called") as caught:
        embedder(name)
    assert "8 to 4096" in caught.value.hint
