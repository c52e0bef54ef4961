"""Files of weights: a reader of safetensors, and a fingerprint of model files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notewell.embed.local.local_model import DOWNLOAD_AGAIN
from notewell.errors import EmbedderError

_WHOLE, _SAMPLES, _SAMPLE = 32 << 20, 256, 64 << 10
_MAX_HEADER = 100 << 20
_KINDS = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
}


def fingerprint(files: Iterable[Path]) -> str:
    """Ten characters that change with the content of the files.

    A file over 32 MB is sampled at 256 offsets: weights that were trained, converted or quantised
    again differ everywhere, and reading gigabytes at every start would cost more than the search.
    """
    digest = hashlib.blake2b(digest_size=5)
    for path in files:
        try:
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode("utf-8", "surrogateescape"))
            with path.open("rb") as file:
                if size <= _WHOLE:
                    digest.update(file.read())
                    continue
                for i in range(_SAMPLES):
                    file.seek((size - _SAMPLE) * i // (_SAMPLES - 1))
                    digest.update(file.read(_SAMPLE))
        except OSError as error:
            raise EmbedderError(
                f"{path} cannot be read: {error.strerror}", hint="check the file"
            ) from error
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Tensor:
    """The position of a tensor in its file."""

    kind: str
    shape: tuple[int, ...]
    start: int
    end: int


class Safetensors:
    """The tensors of one file, by name; only requested ones are read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                if not 2 <= length <= min(size - 8, _MAX_HEADER):
                    raise ValueError("its header has an impossible length")
                header = json.loads(file.read(length))
            self._at = 8 + length
            self.tensors = {
                name: Tensor(
                    row["dtype"], tuple(map(int, row["shape"])), *map(int, row["data_offsets"])
                )
                for name, row in header.items()
                if name != "__metadata__"
            }
            if any(not 0 <= t.start <= t.end <= size - self._at for t in self.tensors.values()):
                raise ValueError("it is cut short")
        except OSError as error:
            raise EmbedderError(
                f"{path} cannot be read: {error.strerror}", hint="check the file"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EmbedderError(
                f"{path.name} is not a safetensors file: {error}", hint=DOWNLOAD_AGAIN
            ) from error

    def __getitem__(self, name: str) -> Any:
        """A tensor as a memory-mapped array."""
        import numpy as np  # noqa: PLC0415

        one = self.tensors[name]
        if one.kind != "BF16" and one.kind not in _KINDS:
            raise EmbedderError(
                f"{self._path.name} holds {name} as {one.kind}", hint="save it as F32, F16 or I8"
            )
        kind = np.dtype("<u2" if one.kind == "BF16" else _KINDS[one.kind])
        count = (one.end - one.start) // kind.itemsize
        if count != int(np.prod(one.shape, dtype=np.int64)) or not count:
            raise EmbedderError(
                f"{self._path.name}: the size of {name} does not match its shape",
                hint=DOWNLOAD_AGAIN,
            )
        try:
            flat = np.memmap(
                self._path, dtype=kind, mode="r", offset=self._at + one.start, shape=(count,)
            )
        except (OSError, ValueError) as error:
            raise EmbedderError(
                f"{self._path} cannot be read: {error}", hint="check the file"
            ) from error
        # An unaligned table is copied once here; numpy would copy all of it at every access.
        shaped = np.require(np.asarray(flat), requirements="A").reshape(one.shape)
        # BF16 is the upper half of a float32.
        return (shaped.astype("<u4") << 16).view("<f4") if one.kind == "BF16" else shaped
