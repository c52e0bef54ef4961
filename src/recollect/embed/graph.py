"""A writer of ONNX models: the few messages of the format that a transformer needs, without the onnx package."""

from __future__ import annotations

import struct
from typing import Any

FLOAT, _INT8, _INT64 = 1, 3, 7
_KINDS = {"float32": FLOAT, "int8": _INT8, "int64": _INT64}
_OPSET = 17
_IR_VERSION = 8


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


class Graph:
    """Nodes and constants in the order they are added; every call gives the name of what it makes."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, value: Any) -> str:
        """An array of float32, int8 or int64."""
        import numpy as np  # noqa: PLC0415

        name = f"c{len(self._constants)}"
        raw = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
        dims = b"".join(_number(1, n) for n in value.shape)
        self._constants.append(dims + _number(2, _KINDS[value.dtype.name]) + _bytes(8, name) + _bytes(9, raw))
        return name

    def node(self, kind: str, *inputs: str, **attributes: int | float | list[int]) -> str:
        """An operation with one output."""
        name = f"n{len(self._nodes)}"
        parts = [*(_bytes(1, i) for i in inputs), _bytes(2, name), _bytes(4, kind)]
        for key, value in attributes.items():
            if isinstance(value, list):
                body = b"".join(_number(8, n) for n in value) + _number(20, 7)
            elif isinstance(value, float):
                body = _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
            else:
                body = _number(3, value) + _number(20, 2)
            parts.append(_bytes(5, _bytes(1, key) + body))
        self._nodes.append(b"".join(parts))
        return name

    def model(self, output: str, *, width: int) -> bytes:
        """The model that turns `input_ids` into `last_hidden_state`."""
        self._nodes.append(_bytes(1, output) + _bytes(2, "last_hidden_state") + _bytes(4, "Identity"))
        free = [_bytes(1, _bytes(2, name)) for name in ("batch", "sequence")]
        graph = [
            *(_bytes(1, n) for n in self._nodes),
            _bytes(2, "encoder"),
            *(_bytes(5, c) for c in self._constants),
            _bytes(11, _value("input_ids", _INT64, free)),
            _bytes(12, _value("last_hidden_state", FLOAT, [*free, _bytes(1, _number(1, width))])),
        ]
        return b"".join([_number(1, _IR_VERSION), _bytes(7, b"".join(graph)), _bytes(8, _number(2, _OPSET))])


def _value(name: str, kind: int, dims: list[bytes]) -> bytes:
    """The name, type and shape of an input or output."""
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, b"".join(dims))))
