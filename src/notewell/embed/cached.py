"""An embedder with a cache in a small SQLite file: no text is embedded twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw

from notewell.embed.embedder import Embedder, PassageVectors
from notewell.types import Role, Vectors


class CachedEmbedder:
    """Wraps any embedder; keys are hashes of model, role and text, so the file contains no text."""

    def __init__(self, inner: Embedder, path: Path) -> None:
        self.inner = inner
        self.id = inner.id
        self.dim = inner.dim
        self.window_dims: int = getattr(inner, "window_dims", 0)
        self.every_script: bool = getattr(inner, "every_script", False)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = apsw.Connection(str(path))
        self._db.set_busy_timeout(30_000)
        self._db.execute("PRAGMA journal_mode=wal").fetchall()
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Rows from the file, or from the model for texts that are not in it."""
        import numpy as np  # noqa: PLC0415

        def make(some: Sequence[str]) -> list[bytes]:
            return [vector.astype("<f4").tobytes() for vector in self.inner.embed(some, role)]

        rows = [np.frombuffer(blob, dtype="<f4") for blob in self._blobs(texts, role, make)]
        return np.stack(rows) if rows else np.zeros((0, self.dim), dtype=np.float32)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
        """The same with windows, which the file keeps in half precision: many times what their
        codes keep of them.
        """
        inner: Any = self.inner
        blobs = self._blobs(
            texts, "windows", lambda some: [_packed(one) for one in inner.embed_passages(some)]
        )
        return [_unpacked(blob, self.dim) for blob in blobs]

    def _blobs(
        self, texts: Sequence[str], kind: str, make: Callable[[Sequence[str]], Sequence[bytes]]
    ) -> list[bytes]:
        """What the file has for texts; what it lacks is made first."""
        keys = [
            hashlib.blake2b(
                f"{self.id}\0{kind}\0{t}".encode("utf-8", "surrogatepass"), digest_size=16
            ).digest()
            for t in texts
        ]
        stored = {
            k: self._db.execute("SELECT vector FROM vectors WHERE key = ?", (k,)).fetchone()
            for k in set(keys)
        }
        cached: dict[bytes, bytes] = {k: row[0] for k, row in stored.items() if row}
        todo = {key: text for key, text in zip(keys, texts, strict=True) if key not in cached}
        if todo:
            fresh = dict(zip(todo, make(list(todo.values())), strict=True))
            with self._db:
                self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", fresh.items())
            cached |= fresh
        return [cached[key] for key in keys]


def _packed(one: PassageVectors) -> bytes:
    """The number of windows, their spans, the whole vector and the windows."""
    import numpy as np  # noqa: PLC0415

    spans = np.asarray(one.spans, dtype="<i4").reshape(-1, 2)
    whole, windows = np.asarray(one.whole).astype("<f4"), np.asarray(one.windows).astype("<f2")
    return b"".join(
        (np.int32(len(spans)).tobytes(), spans.tobytes(), whole.tobytes(), windows.tobytes())
    )


def _unpacked(blob: bytes, dim: int) -> PassageVectors:
    import numpy as np  # noqa: PLC0415

    count = int(np.frombuffer(blob, dtype="<i4", count=1)[0])
    spans = np.frombuffer(blob, dtype="<i4", count=2 * count, offset=4).reshape(-1, 2).tolist()
    whole = np.frombuffer(blob, dtype="<f4", count=dim, offset=4 + 8 * count)
    rest = np.frombuffer(blob, dtype="<f2", offset=4 + 8 * count + 4 * dim)
    windows = rest.astype(np.float32).reshape(count, -1 if count else dim)
    return PassageVectors(whole, windows, [(start, end) for start, end in spans])
