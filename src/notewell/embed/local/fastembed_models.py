"""Models of fastembed, an optional package: from its cache, and from the model hub only if they are
not in it.
"""

from __future__ import annotations

import contextlib
import time
from functools import cached_property
from typing import Any

from notewell.embed.local.local_model import LocalModel, family
from notewell.errors import EmbedderError, SettingsError

PREFIX = "fastembed/"
_RETRY_S = 300.0


class FastEmbedder(LocalModel):
    """A model by the name fastembed gives it."""

    def __init__(self, name: str, *, threads: int = 0) -> None:
        try:
            import fastembed  # noqa: PLC0415 - an optional package
        except ImportError as error:
            hint = 'pip install "notewell[fastembed]"'
            raise EmbedderError(f"{PREFIX}{name} needs the package fastembed", hint=hint) from error
        with contextlib.suppress(ImportError):  # its log would go to the terminal
            from loguru import logger  # noqa: PLC0415

            logger.disable("fastembed")
        rows = {
            row["model"].lower(): row for row in fastembed.TextEmbedding.list_supported_models()
        }
        if name.lower() not in rows:
            import difflib  # noqa: PLC0415

            close = difflib.get_close_matches(name.lower(), rows, n=1, cutoff=0.4)
            hint = (
                f"did you mean {PREFIX}{rows[close[0]]['model']}?"
                if close
                else "its documentation lists them"
            )
            raise SettingsError(f"fastembed has no model {name!r}", hint=hint)
        row = rows[name.lower()]
        own = family(str(row["model"]))
        super().__init__(str(row["model"]), threads=threads, query=own.query, document=own.document)
        self.dim = int(row["dim"])
        self.id = f"{PREFIX}{self.name}@{self.dim}"
        self._failed: EmbedderError | None = None
        self._again_at = 0.0

    @cached_property
    def _loaded(self) -> Any:
        """The model; a failure is cached for a while, since a failing request to the hub takes many
        seconds.
        """
        import fastembed  # noqa: PLC0415
        from huggingface_hub import constants  # noqa: PLC0415

        if self._failed is not None and time.monotonic() < self._again_at:
            raise self._failed
        # First from the cache, so that the hub is not asked about a model that is there.
        with contextlib.suppress(Exception):
            return fastembed.TextEmbedding(self.name, threads=1, local_files_only=True)
        try:
            return fastembed.TextEmbedding(
                self.name, threads=1, local_files_only=bool(constants.HF_HUB_OFFLINE)
            )
        except Exception as error:
            message = (
                f"{self.name} is not in fastembed's cache and could not be downloaded: {error}"
            )
            hint = (
                "connect once to download it, or set FASTEMBED_CACHE_PATH to a folder that has it"
            )
            self._failed, self._again_at = (
                EmbedderError(message, hint=hint),
                time.monotonic() + _RETRY_S,
            )
            raise self._failed from error

    def _row(self, text: str) -> Any:
        try:
            return next(iter(self._loaded.embed([text])))
        except Exception as error:
            raise EmbedderError(f"{self.name} failed: {error}", hint="try another model") from error
