"""From model names to embedders: the only module that knows all kinds of models."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from notewell.embed.embedder import Embedder, Reranker
from notewell.embed.local import fastembed_models
from notewell.embed.local.hashed import HashedEmbedder
from notewell.embed.local.packaged import OWN, PACKAGED, LocalEmbedder, OwnEmbedder
from notewell.errors import EmbedderError, SettingsError
from notewell.model_names import REMOTE_PROVIDERS, is_remote
from notewell.settings import EmbedSettings, SearchSettings, cache_folder

DEFAULT_MODEL = OWN


def embedder(
    name: str,
    *,
    threads: int = 0,
    settings: EmbedSettings | None = None,
    env: Mapping[str, str] | None = None,
    known: Sequence[str] = (),
) -> Embedder | None:
    """The embedder for a name or path: `auto` is the packaged default, `none` is None, an unknown
    name is an error.

    `known` are the ids of models with vectors in the index, so that no request is needed to learn a
    model's size.
    """
    if name == "none":
        return None
    if is_remote(name):
        from notewell.embed.remote.remote_embedder import remote_embedder  # noqa: PLC0415 - others need none of it

        provider, _, model = (part.strip() for part in name.partition("/"))
        own, environment = settings or EmbedSettings(model=name), os.environ if env is None else env
        return remote_embedder(provider.casefold(), model, own, environment, known=known)
    head, mark, size = name.partition("@")
    if head == "hashed":
        if mark and not (size.isdecimal() and 8 <= int(size) <= 4096):
            raise SettingsError(
                f"no embedding model is called {name!r}", hint="hashed@ takes 8 to 4096 dimensions"
            )
        return HashedEmbedder(int(size)) if mark else HashedEmbedder()
    wanted = DEFAULT_MODEL if name in ("auto", "local") else name
    if wanted in PACKAGED:
        cache = cache_folder(os.environ if env is None else env) / "models"
        kind = OwnEmbedder if wanted == OWN else LocalEmbedder
        return kind(PACKAGED[wanted], threads=threads, prepared=cache)
    if wanted.startswith(fastembed_models.PREFIX):
        return fastembed_models.FastEmbedder(
            wanted.removeprefix(fastembed_models.PREFIX), threads=threads
        )
    if is_path(wanted):
        return at_path(wanted, threads=threads)
    names = ("auto", *PACKAGED, *REMOTE_PROVIDERS, "hashed", "none")
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(names)}"
    raise SettingsError(f"no embedding model is called {name!r}", hint=hint)


def is_path(name: str) -> bool:
    """Whether a model's name is a path: absolute, starting with `.` or `~`, or a GGUF file."""
    return name.startswith((".", "~")) or Path(name).is_absolute() or name.lower().endswith(".gguf")


def at_path(name: str, *, threads: int = 0) -> Embedder:
    """The model at a path: a GGUF file, an ONNX file, or a folder with a static or an ONNX
    model.
    """
    from notewell.embed.local.gguf import GgufEmbedder  # noqa: PLC0415 - the packaged model needs none of these
    from notewell.embed.local.onnx_folder import FolderEmbedder  # noqa: PLC0415
    from notewell.embed.local.static import StaticEmbedder, find_static  # noqa: PLC0415

    try:
        path = Path(name).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise EmbedderError(
            f"{name} cannot be resolved: {error}", hint="give the full path"
        ) from error
    if path.suffix.lower() == ".gguf":
        return GgufEmbedder(path, threads=threads)
    if path.suffix.lower() == ".onnx" and path.is_file():
        folder = path.parent.parent if path.parent.name == "onnx" else path.parent
        return FolderEmbedder(folder, model=path, threads=threads)
    if not path.is_dir():
        raise EmbedderError(
            f"there is no model at {path}",
            hint="give a folder with an ONNX or static model or a GGUF file",
        )
    static = find_static(path)
    return (
        StaticEmbedder(static, name=path.name) if static else FolderEmbedder(path, threads=threads)
    )


def reranker(settings: SearchSettings, *, key: str = "", threads: int = 0) -> Reranker | None:
    """The reranker that settings name, or None."""
    if settings.rerank == "none":
        return None
    from notewell.embed.rerankers import CrossEncoder, HttpReranker  # noqa: PLC0415 - most searches rerank nothing

    if settings.rerank == "local":
        return CrossEncoder(threads=threads)
    return HttpReranker(settings.rerank_url, settings.rerank_model, key, settings.rerank_shape)
