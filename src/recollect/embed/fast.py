"""Models of fastembed, an optional package: out of its cache, and from the model hub only when they are not there."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Any

from recollect.embed.families import family
from recollect.embed.rows import side_by_side, unit_rows
from recollect.errors import EmbedderError, SettingsError
from recollect.ports import Role, Vectors

PREFIX = "fastembed/"
_REMEMBERED_S = 300.0


class FastEmbedder:
    """A model by the name fastembed gives it."""

    def __init__(self, name: str, *, threads: int = 0) -> None:
        try:
            import fastembed  # noqa: PLC0415 - an optional package
        except ImportError as error:
            raise EmbedderError(
                f"{PREFIX}{name} needs the package fastembed", hint='pip install "recollect[fastembed]"'
            ) from error
        with contextlib.suppress(ImportError):  # its log goes to the terminal, whatever the caller does with errors
            from loguru import logger  # noqa: PLC0415

            logger.disable("fastembed")
        rows = {row["model"].lower(): row for row in fastembed.TextEmbedding.list_supported_models()}
        if name.lower() not in rows:
            import difflib  # noqa: PLC0415

            close = difflib.get_close_matches(name.lower(), rows, n=1, cutoff=0.4)
            raise SettingsError(
                f"fastembed has no model {name!r}",
                hint=f"did you mean {PREFIX}{rows[close[0]]['model']}?" if close else "its documentation lists them",
            )
        row = rows[name.lower()]
        self.name = str(row["model"])
        self.dim = int(row["dim"])
        self.id = f"{PREFIX}{self.name}@{self.dim}"
        self._family = family(self.name)
        self._threads = threads
        self._loading = threading.Lock()
        self._model: Any = None
        self._failed: EmbedderError | None = None
        self._again_at = 0.0

    def _loaded(self) -> Any:
        """The model; a failure is remembered for a while, since asking the hub in vain takes many seconds."""
        if self._model is None:
            if self._failed is not None and time.monotonic() < self._again_at:
                raise self._failed
            try:
                self._model = self._load()
            except EmbedderError as error:
                self._failed, self._again_at = error, time.monotonic() + _REMEMBERED_S
                raise
        return self._model

    def _load(self) -> Any:
        import fastembed  # noqa: PLC0415
        from huggingface_hub import constants  # noqa: PLC0415

        # First out of the cache, so that the hub is not even asked about a model that is there.
        with contextlib.suppress(Exception):
            return fastembed.TextEmbedding(self.name, threads=1, local_files_only=True)
        try:
            return fastembed.TextEmbedding(self.name, threads=1, local_files_only=bool(constants.HF_HUB_OFFLINE))
        except Exception as error:
            raise EmbedderError(
                f"{self.name} is not in fastembed's cache and could not be fetched: {error}",
                hint="connect once so that it can be fetched, or set FASTEMBED_CACHE_PATH to a folder that has it",
            ) from error

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text; each runs alone, so that its row does not depend on its neighbours."""
        prefix = self._family.query if role == "query" else self._family.document
        with self._loading:
            model = self._loaded()
        try:
            rows = side_by_side(
                lambda text: next(iter(model.embed([text]))), [prefix + text for text in texts], threads=self._threads
            )
        except Exception as error:
            raise EmbedderError(f"{self.name} failed: {error}", hint="try another model") from error
        return unit_rows(rows, dim=self.dim, name=self.name)
