"""Files of weights: read as they are, or refused with a reason; and told apart."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.embed.local import weights
from notewell.embed.local.weights import Safetensors, fingerprint
from notewell.errors import EmbedderError
from tests.embed.made import save_tensors


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int8", "int32", "int64"])
def test_a_tensor_comes_back(tmp_path: Path, kind: str) -> None:
    value = np.arange(12).reshape(3, 4).astype(kind)
    found = Safetensors(
        save_tensors(tmp_path / "a", {"other": np.ones(3, np.float32), "it": value})
    )["it"]
    assert found.dtype == value.dtype
    assert np.array_equal(found, value)


def test_half_floats_of_the_other_kind_are_widened(tmp_path: Path) -> None:
    value = np.array([1.0, -2.5, 0.15625, 3e38], dtype=np.float32)
    value = (value.view(np.uint32) & 0xFFFF0000).view(np.float32)
    upper = (value.view(np.uint32) >> 16).astype(np.uint16)
    found = Safetensors(save_tensors(tmp_path / "a", {"it": upper}, kinds={"it": "BF16"}))["it"]
    assert found.dtype == np.float32
    assert np.array_equal(found, value)


def test_a_kind_that_numpy_has_not_is_named(tmp_path: Path) -> None:
    file = Safetensors(
        save_tensors(tmp_path / "a", {"it": np.ones(4, np.int8)}, kinds={"it": "F8_E4M3"})
    )
    with pytest.raises(EmbedderError, match="F8_E4M3"):
        file["it"]


def test_a_shape_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    header = json.dumps({"it": {"dtype": "F32", "shape": [5], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(EmbedderError, match="shape"):
        Safetensors(tmp_path / "a")["it"]


def test_a_file_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
    place = save_tensors(tmp_path / "a", {"it": np.ones(100, np.float32)})
    place.write_bytes(place.read_bytes()[:-1])
    with pytest.raises(EmbedderError, match="cut short"):
        Safetensors(place)


def test_a_pointer_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    )
    with pytest.raises(EmbedderError, match="not a safetensors file") as caught:
        Safetensors(tmp_path / "a")
    assert "pointer" in caught.value.hint


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    place = tmp_path_factory.getbasetemp() / "any"
    for content in (raw, struct.pack("<Q", len(raw)) + raw):
        place.write_bytes(content)
        with contextlib.suppress(EmbedderError):
            Safetensors(place)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda x: (
            st.lists(x)
            | st.dictionaries(st.sampled_from(["it", "dtype", "shape", "data_offsets"]), x)
        ),
        max_leaves=8,
    )
)
@settings(max_examples=200, deadline=None)
def test_any_header_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, header: object
) -> None:
    place = tmp_path_factory.getbasetemp() / "header"
    text = json.dumps(header).encode()
    place.write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))
    with contextlib.suppress(EmbedderError):
        file = Safetensors(place)
        for name in file.tensors:
            file[name]


def test_a_changed_byte_is_another_file(tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.write_bytes(bytes(1000))
    before = fingerprint([place])
    assert fingerprint([place]) == before
    place.write_bytes(bytes(999) + b"\x01")
    assert fingerprint([place]) != before


def test_a_large_file_is_told_apart_by_size_ends_and_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_WHOLE", 100)
    monkeypatch.setattr(weights, "_SAMPLE", 16)
    place = tmp_path / "a"
    content = np.random.default_rng(0).bytes(50_000)
    seen = set()
    for changed in (
        content,
        content + b"\0",
        b"\0" + content[1:],
        content[:-1] + b"\0",
        np.random.default_rng(1).bytes(50_000),
    ):
        place.write_bytes(changed)
        seen.add(fingerprint([place]))
    assert len(seen) == 5


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    for read in (Safetensors, lambda p: fingerprint([p])):
        with pytest.raises(EmbedderError, match="cannot be read"):
            read(tmp_path / "gone")
