"""Packed weights come back nearly as they were, from every form the packages have."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from training import archives

weights = pytest.importorskip("training.weights")
Floats = NDArray[np.floating[Any]]


def test_a_packed_model_comes_back(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    arrays = {
        "table": random.normal(size=(40, 128)),
        "odd": random.normal(size=(5, 10)),
        "bias": random.normal(size=7),
    }
    arrays["table"][3] = 0
    paths = weights.write(tmp_path, "tiny", arrays)
    assert [path.name for path in paths] == ["tiny.npz"]
    back = weights.read(tmp_path, "tiny")
    assert sorted(back) == ["bias", "odd", "table"]
    assert not back["table"][3].any()
    for name, value in arrays.items():
        assert np.abs(back[name] - value).max() < np.abs(value).max() / 200


def test_large_models_are_spread_over_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "FILE_LIMIT", 3000)
    arrays = {f"part{i}": np.full((16, 128), i + 1.0) for i in range(3)}
    assert [path.name for path in weights.write(tmp_path, "big", arrays)] == [
        "big-0.npz",
        "big-1.npz",
        "big-2.npz",
    ]
    assert {
        name: float(value.mean().round()) for name, value in weights.read(tmp_path, "big").items()
    } == {
        "part0": 1.0,
        "part1": 2.0,
        "part2": 3.0,
    }


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no weights of e5"):
        weights.read(tmp_path, "e5")


def test_an_entry_is_found_in_the_rest_of_a_zip() -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("before", "x" * 1000)
        archive.writestr("wanted", "what is wanted " * 50)
        archive.writestr("after", "y")
    rest = whole.getvalue()[20:]
    assert archives.zip_entry(rest, "wanted") == b"what is wanted " * 50


def blocks(matrix: Floats, scale: float) -> bytes:
    """A matrix of small whole numbers as the engine stores it: 32 values a block, low halves
    first.
    """
    found = b""
    for block in (matrix.reshape(-1, 32) + 8).astype(np.uint8):
        found += np.float16(scale).tobytes() + (block[:16] | block[16:] << 4).tobytes()
    return found


def test_a_file_of_the_four_bit_engine_is_read() -> None:
    width, inner, rows = 32, 64, 6
    random = np.random.default_rng(2)
    whole = {"emb.word": (rows, width), "l0.fi.w": (inner, width), "l0.fo.w": (width, inner)}
    whole |= {f"l0.{part}.w": (width, width) for part in ("q", "k", "v", "ao")}
    floats = {
        "emb.pos": (9, width),
        "emb.type": (2, width),
        "emb.ln.w": (width,),
        "emb.ln.b": (width,),
    }
    floats |= {
        f"l0.{part}.b": (whole[f"l0.{part}.w"][0],) for part in ("q", "k", "v", "ao", "fi", "fo")
    }
    floats |= {f"l0.{part}": (width,) for part in ("aln.w", "aln.b", "oln.w", "oln.b")}
    values = {
        name: random.integers(-8, 8, shape).astype(float)
        for name, shape in (whole | floats).items()
    }
    stored = {
        n: blocks(v, 0.5) if n in whole else v.astype("<f4").tobytes() for n, v in values.items()
    }
    entries = [struct.pack("<H", len(n)) + n.encode() + struct.pack("<BI", 0, 0) for n in stored]
    head = b"E5S1" + struct.pack("<I7ifi", 1, width, 1, 4, inner, rows, 9, 2, 1e-12, 32)
    head += (
        struct.pack("<i4iQ", 1, 0, 2, 1, 3, 2)
        + struct.pack("<2I", 0, 2)
        + struct.pack("<f", 0)
        + b"ab"
    )
    head += struct.pack("<iI", 0, 0) + struct.pack("<i", len(stored))
    at = len(head) + sum(len(entry) + 16 for entry in entries)
    for entry, data in zip(entries, stored.values(), strict=True):
        head += entry + struct.pack("<QQ", at, len(data))
        at += len(data)
    arrays = weights.e5(head + b"".join(stored.values()))
    assert np.array_equal(arrays[weights.WORD_TABLE], values["emb.word"] / 2)
    assert np.array_equal(arrays["encoder.layer.0.output.dense.weight"], values["l0.fo.w"] / 2)
    assert np.array_equal(arrays["encoder.layer.0.attention.self.key.bias"], values["l0.k.b"])
    assert len(arrays) == 5 + 16
