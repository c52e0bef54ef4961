"""Model names to embedders. The only place that knows which there are."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence

from recollect.embed import fast
from recollect.embed.cross import CrossEncoder, HttpReranker
from recollect.embed.hashed import HashedEmbedder
from recollect.embed.local import PACKAGED, LocalEmbedder
from recollect.embed.path import at_path, is_path
from recollect.errors import EmbedderError, SettingsError
from recollect.ports import Embedder, Reranker
from recollect.settings import REMOTE_PROVIDERS, EmbedSettings, SearchSettings, is_remote

DEFAULT_MODEL = "bge-small-en-v1.5"


def embedder(
    name: str, *, threads: int = 0, settings: EmbedSettings | None = None, env: Mapping[str, str] | None = None,
    known: Sequence[str] = (),
) -> Embedder | None:  # fmt: skip
    """The embedder of a name or path: `auto` is the packaged default, `none` is None, an unknown name is an error.

    `known` are ids of models that the index has vectors of, so that none is asked over the network how large it is.
    """
    if name == "none":
        return None
    if is_remote(name):
        provider, _, model = name.partition("/")
        own = settings or EmbedSettings(model=name)
        return remote(provider, model, own, os.environ if env is None else env, known=known)
    if name.partition("@")[0] == "hashed":
        return HashedEmbedder(_size(name)) if "@" in name else HashedEmbedder()
    wanted = DEFAULT_MODEL if name in ("auto", "local") else name
    if wanted in PACKAGED:
        return LocalEmbedder(PACKAGED[wanted], threads=threads)
    if wanted.startswith(fast.PREFIX):
        return fast.FastEmbedder(wanted.removeprefix(fast.PREFIX), threads=threads)
    if is_path(wanted):
        return at_path(wanted, threads=threads)
    known = ("auto", *PACKAGED, *REMOTE_PROVIDERS, "hashed", "none")
    close = difflib.get_close_matches(name, known, n=1)
    raise SettingsError(
        f"no embedding model is called {name!r}",
        hint=f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}",
    )


def _size(name: str) -> int:
    """The dimensions that a name such as `hashed@512` asks for."""
    text = name.partition("@")[2]
    if not text.isdecimal() or not 8 <= int(text) <= 4096:
        raise SettingsError(f"no embedding model is called {name!r}", hint="hashed@ takes 8 to 4096 dimensions")
    return int(text)


def remote(
    name: str, model: str, settings: EmbedSettings, env: Mapping[str, str], *, known: Sequence[str] = ()
) -> Embedder:
    """The embedder of a provider in the preset table, and of its default model where none is named."""
    from recollect.embed.remote import remote_embedder  # noqa: PLC0415 - only for those who chose one

    return remote_embedder(name.strip().casefold(), model.strip(), settings, env, known=known)


def reranker(settings: SearchSettings, *, key: str = "", threads: int = 0) -> Reranker | None:
    """The reranker that settings name, or None."""
    if settings.rerank == "local":
        return CrossEncoder(threads=threads)
    if settings.rerank == "http":
        return HttpReranker(settings.rerank_url, settings.rerank_model, key, settings.rerank_shape)
    return None


__all__ = ["DEFAULT_MODEL", "EmbedderError", "embedder", "remote", "reranker"]
