"""An embedder that remembers, in a small SQLite file of its own: the same text is never embedded twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import apsw

from recollect.ports import Embedder, Role, Vectors


class CachedEmbedder:
    """Wraps any embedder; keys are hashes of model, role and text, so the file holds no text."""

    def __init__(self, inner: Embedder, path: Path) -> None:
        self.inner = inner
        self.id = inner.id
        self.dim = inner.dim
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = apsw.Connection(str(path))
        self._db.set_busy_timeout(30_000)
        self._db.execute("PRAGMA journal_mode=wal").fetchall()
        self._db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Rows from the file where it has them, from the model where not."""
        import numpy as np  # noqa: PLC0415

        keys = [
            hashlib.blake2b(f"{self.id}\0{role}\0{t}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
            for t in texts
        ]
        known: dict[bytes, Vectors] = {}
        for key in dict.fromkeys(keys):
            row = self._db.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
            if row:
                known[key] = np.frombuffer(row[0], dtype="<f4")
        todo = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if todo:
            fresh = self.inner.embed(list(todo.values()), role)
            with self._db:
                for key, vector in zip(todo, fresh, strict=True):
                    known[key] = vector
                    self._db.execute(
                        "INSERT OR REPLACE INTO vectors VALUES (?, ?)", (key, vector.astype("<f4").tobytes())
                    )
        return np.stack([known[key] for key in keys]) if keys else np.zeros((0, self.dim), dtype=np.float32)
