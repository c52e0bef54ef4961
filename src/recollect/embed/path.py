"""A model by its path: what lies there decides how it is read."""

from __future__ import annotations

from pathlib import Path

from recollect.embed.folder import FolderEmbedder
from recollect.embed.gguf import GgufEmbedder
from recollect.embed.static import StaticEmbedder, static_place
from recollect.errors import EmbedderError
from recollect.ports import Embedder


def is_path(name: str) -> bool:
    """Whether a model's name is a path: absolute, or beginning with `.` or `~`, or a GGUF file."""
    return name.startswith((".", "~")) or Path(name).is_absolute() or name.lower().endswith(".gguf")


def at_path(name: str, *, threads: int = 0) -> Embedder:
    """The model at a path: a GGUF file, an ONNX file, or a folder with a static or an ONNX model."""
    try:
        place = Path(name).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise EmbedderError(f"{name} cannot be resolved: {error}", hint="give the whole path") from error
    if place.suffix.lower() == ".gguf":
        return GgufEmbedder(place, threads=threads)
    if place.suffix.lower() == ".onnx" and place.is_file():
        folder = place.parent.parent if place.parent.name == "onnx" else place.parent
        return FolderEmbedder(folder, model=place, threads=threads)
    if not place.is_dir():
        raise EmbedderError(
            f"there is no model at {place}", hint="give a folder with an ONNX or static model, or a GGUF file"
        )
    static = static_place(place)
    return StaticEmbedder(static, name=place.name) if static else FolderEmbedder(place, threads=threads)
