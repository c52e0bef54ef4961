"""The tokeniser of our own model: sentencepiece over a vocabulary of many languages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from notewell.errors import EmbedderError

_CHARACTERS_A_PIECE = 50
_NO_LIBRARY = "pip install sentencepiece; where it has no wheel, set embed.model to another model, or to none"


class Spans(NamedTuple):
    """The ids of a text, and from which character to which (exclusive) each of them goes."""

    ids: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]


class Pieces:
    """Text to piece ids, with the characters that each piece covers."""

    def __init__(self, path: Path, name: str, *, hint: str) -> None:
        try:
            from sentencepiece import SentencePieceProcessor  # noqa: PLC0415 - only for those who embed
        except ImportError as error:
            raise EmbedderError("sentencepiece is not installed", hint=_NO_LIBRARY) from error
        try:
            self._inner = SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise EmbedderError(f"the vocabulary of {name} cannot be loaded: {error}", hint=hint) from error
        self.begin, self.end, self.unknown = self._inner.bos_id(), self._inner.eos_id(), self._inner.unk_id()

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids between the mark of the beginning and that of the end, at most `limit` with these two."""
        return [self.begin, *self.plain(text, limit - 2), self.end]

    def plain(self, text: str, limit: int) -> list[int]:
        """Ids of the text alone, at most `limit`."""
        found: list[int] = self._inner.encode(text[: limit * _CHARACTERS_A_PIECE])
        return found[:limit]

    def spans(self, text: str, limit: int) -> Spans:
        """The same with the place of each piece."""
        found = self._inner.encode(text[: limit * _CHARACTERS_A_PIECE], return_type="offset_mapping")
        starts, ends = zip(*found["offsets"][:limit], strict=True) if found["ids"] else ((), ())
        return Spans(found["ids"][:limit], starts, ends)
