"""The tokeniser of our own model: sentencepiece over a vocabulary of many languages."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from notewell.embed.local import piece_table
from notewell.errors import EmbedderError

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

_CHARACTERS_A_PIECE = 50
_NO_LIBRARY = (
    "pip install sentencepiece; where it has no wheel, set embed.model to another model, or to none"
)


class Spans(NamedTuple):
    """The ids of a text, and from which character to which (exclusive) each of them goes."""

    ids: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]


class Pieces:
    """Text to piece ids, with the characters that each piece covers."""

    def __init__(self, path: Path, name: str, *, hint: str, folder: Path | None = None) -> None:
        """Where `folder` has a table of the vocabulary, that is enough for the first short text."""
        self._path, self._name, self._hint, self._lock = path, name, hint, threading.Lock()
        self._known: SentencePieceProcessor | None = None
        self._table = piece_table.load(path, folder) if folder else None
        if self._table:
            self.begin, self.end, self.unknown = self._table.marks
            return
        own = self._library()
        self.begin, self.end, self.unknown = own.bos_id(), own.eos_id(), own.unk_id()
        if folder:
            # of whatever kind: the next process can do without
            with contextlib.suppress(Exception):
                piece_table.keep(path, folder, own)

    def _library(self) -> SentencePieceProcessor:
        try:
            from sentencepiece import SentencePieceProcessor  # noqa: PLC0415 - only for those who embed

            with self._lock:
                self._known = self._known or SentencePieceProcessor(model_file=str(self._path))
                return self._known
        except ImportError as error:
            raise EmbedderError("sentencepiece is not installed", hint=_NO_LIBRARY) from error
        except (OSError, RuntimeError) as error:
            raise EmbedderError(
                f"the vocabulary of {self._name} cannot be loaded: {error}", hint=self._hint
            ) from error

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids between the mark of the beginning and that of the end, at most `limit` with these
        two.
        """
        return [self.begin, *self.plain(text, limit - 2), self.end]

    def plain(self, text: str, limit: int) -> list[int]:
        """Ids of the text alone, at most `limit`."""
        table, self._table = self._table, None
        text = text[: limit * _CHARACTERS_A_PIECE]
        tokens = table if table and len(text) <= piece_table.LONGEST else self._library()
        found: list[int] = tokens.encode(text)
        return found[:limit]

    def spans(self, text: str, limit: int) -> Spans:
        """The same with the place of each piece."""
        found = self._library().encode(
            text[: limit * _CHARACTERS_A_PIECE], return_type="offset_mapping"
        )
        starts, ends = zip(*found["offsets"][:limit], strict=True) if found["ids"] else ((), ())
        return Spans(found["ids"][:limit], starts, ends)
