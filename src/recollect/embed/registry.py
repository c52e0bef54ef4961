"""Model names to embedders. The only place that knows which there are."""

from __future__ import annotations

import difflib

from recollect.embed import fast
from recollect.embed.cross import CrossEncoder, HttpReranker
from recollect.embed.hashed import HashedEmbedder
from recollect.embed.local import PACKAGED, LocalEmbedder
from recollect.embed.path import at_path, is_path
from recollect.errors import EmbedderError, SettingsError
from recollect.ports import Embedder, Reranker
from recollect.settings import SearchSettings

DEFAULT_MODEL = "bge-small-en-v1.5"


def embedder(name: str, *, threads: int = 0) -> Embedder | None:
    """The embedder of a name or path: `auto` is the packaged default, `none` is None, an unknown name is an error."""
    if name == "none":
        return None
    if name == "hashed":
        return HashedEmbedder()
    if name.startswith("hashed@"):
        return HashedEmbedder(_size(name))
    wanted = DEFAULT_MODEL if name in ("auto", "local") else name
    if wanted in PACKAGED:
        return LocalEmbedder(PACKAGED[wanted], threads=threads)
    if wanted.startswith(fast.PREFIX):
        return fast.FastEmbedder(wanted.removeprefix(fast.PREFIX), threads=threads)
    if is_path(wanted):
        return at_path(wanted, threads=threads)
    known = ("auto", *PACKAGED, "hashed", "none")
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


def reranker(settings: SearchSettings, *, key: str = "", threads: int = 0) -> Reranker | None:
    """The reranker that settings name, or None."""
    if settings.rerank == "local":
        return CrossEncoder(threads=threads)
    if settings.rerank == "http":
        return HttpReranker(settings.rerank_url, settings.rerank_model, key, settings.rerank_shape)
    return None


__all__ = ["DEFAULT_MODEL", "EmbedderError", "embedder", "reranker"]
