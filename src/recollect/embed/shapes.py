"""The four wire shapes: what is sent for some texts, and where the rows stand in the answer."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.embed.presets import Model, Preset
from recollect.ports import Role
from recollect.types import Media


def path_of(preset: Preset, model: Model) -> str:
    """Where embeddings are asked for, below the base address."""
    return f"/{resource(model)}{preset.path}" if preset.shape == "gemini" else preset.path


def resource(model: Model) -> str:
    """A model as Gemini names it."""
    return "models/" + model.name.removeprefix("models/")


def body_of(preset: Preset, model: Model, texts: Sequence[str], role: Role, *, dim: int = 0) -> dict[str, Any]:
    """The request for some texts; `dim` only where fewer numbers than the model's own are wanted."""
    options: dict[str, Any] = {}
    if kind := preset.type_of(model, role):
        options[preset.type_field] = kind
    if dim:
        options[preset.dim_field] = dim
    if preset.shape == "gemini":
        return {"requests": [_gemini(model, text, role, options) for text in texts]}
    name = {"model": model.name} if model.name else {}
    field = "texts" if preset.shape == "cohere" else "input"
    return {**name, field: [model.prefix(role) + text for text in texts], **preset.extra, **options}


def _gemini(model: Model, text: str, role: Role, options: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": model.prefix(role) + text}]
    if model.media and isinstance(text, Media):
        data = base64.b64encode(Path(text.location).read_bytes()).decode()
        parts.append({"inlineData": {"mimeType": text.mime, "data": data}})
    return {"model": resource(model), "content": {"parts": parts}, **options}


def rows_of(preset: Preset, answer: Any) -> list[Any]:
    """The rows of an answer in the order of the texts; ValueError, TypeError or KeyError when it has none."""
    if preset.shape == "gemini":
        return [row_of(one["values"]) for one in answer["embeddings"]]
    if preset.shape == "cohere":
        return [row_of(one) for one in answer["embeddings"]["float"]]
    if preset.shape == "ollama":
        return [row_of(one) for one in answer["embeddings"]]
    found = list(answer["data"])
    places = [one.get("index", i) for i, one in enumerate(found)]
    if sorted(places) != list(range(len(found))):
        raise ValueError("its rows are numbered wrongly")
    rows: list[Any] = [None] * len(found)
    for place, one in zip(places, found, strict=True):
        rows[place] = row_of(one["embedding"])
    return rows


def row_of(value: Any) -> Any:
    """One row, from a list of numbers or from base64 of little-endian floats."""
    import numpy as np  # noqa: PLC0415

    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float32)
    row = np.asarray(value, dtype=np.float32)
    if row.ndim != 1:
        raise ValueError("a row is no list of numbers")
    return row


def message_of(answer: Any) -> str:
    """The sentence inside an error's answer, wherever the provider puts it."""
    if not isinstance(answer, dict):
        return answer if isinstance(answer, str) else ""
    for key in ("error", "message", "detail", "errors"):
        value = answer.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict):
            value = value.get("message") or value.get("msg") or value.get("detail")
        if isinstance(value, str) and value:
            return value
    return ""


__all__ = ["body_of", "message_of", "path_of", "resource", "row_of", "rows_of"]
