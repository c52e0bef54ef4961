"""Tokenisers of model folders: our WordPiece where the file describes exactly that, else the `tokenizers` package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from recollect.embed.wordpiece import WordPiece
from recollect.errors import EmbedderError

_SPECIAL = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
_CHARACTERS_A_TOKEN = 50


class Tokens(Protocol):
    """Text to token ids."""

    @property
    def unknown(self) -> int | None:
        """The id of a word that is not in the vocabulary."""
        ...

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids with the special ones at the ends, at most `limit` in all."""
        ...

    def plain(self, text: str, limit: int) -> list[int]:
        """Ids of the text alone, at most `limit`."""
        ...


class FastTokens:
    """Any tokeniser that a tokenizer.json describes; names of special tokens in a text are plain text."""

    def __init__(self, description: str, name: str) -> None:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - an optional package
        except ImportError as error:
            raise EmbedderError(
                f"the tokeniser of {name} needs the package tokenizers", hint='pip install "recollect[onnx]"'
            ) from error
        try:
            self._inner: Any = Tokenizer.from_str(description)
        except Exception as error:
            raise EmbedderError(f"the tokenizer.json of {name} cannot be read: {error}", hint="get it anew") from error
        self._inner.no_padding()
        self._inner.no_truncation()
        self._inner.encode_special_tokens = True
        unknown = getattr(self._inner.model, "unk_token", None)
        self.unknown: int | None = self._inner.token_to_id(unknown) if unknown else None
        empty = self._inner.encode("").ids
        mark = self._inner.encode("a", add_special_tokens=False).ids
        whole = self._inner.encode("a").ids
        # What stands before and after the text: found by looking, since every kind of tokeniser says it elsewhere.
        self._head = whole.index(mark[0]) if mark and mark[0] in whole else len(empty)
        self._tail = len(empty) - self._head

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids with the special ones at the ends, at most `limit` in all."""
        ids = self._ids(text, limit, special=True)
        if len(ids) <= limit:
            return ids
        return ids[: limit - self._tail] + (ids[-self._tail :] if self._tail else [])

    def plain(self, text: str, limit: int) -> list[int]:
        """Ids of the text alone, at most `limit`."""
        return self._ids(text, limit, special=False)[:limit]

    def _ids(self, text: str, limit: int, *, special: bool) -> list[int]:
        text = text[: limit * _CHARACTERS_A_TOKEN].encode("utf-8", "ignore").decode("utf-8")
        return list(self._inner.encode(text, add_special_tokens=special).ids)


def read_tokens(folder: Path, name: str) -> Tokens:
    """The tokeniser of a model folder: tokenizer.json, else the vocab.txt of an uncased BERT."""
    described, vocabulary = folder / "tokenizer.json", folder / "vocab.txt"
    try:
        if described.is_file():
            return tokens_of(described.read_text(encoding="utf-8"), name)
        if vocabulary.is_file():
            settings = folder / "tokenizer_config.json"
            told = json.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
            if told.get("do_lower_case", True):
                return WordPiece(vocabulary)
            missing = "its vocab.txt tells upper from lower case, which only a tokenizer.json describes in full"
        else:
            missing = "it has neither tokenizer.json nor vocab.txt"
    except (OSError, ValueError, AttributeError) as error:
        raise EmbedderError(f"the tokeniser of {name} cannot be read: {error}", hint="get its files anew") from error
    raise EmbedderError(f"{name} has no tokeniser: {missing}", hint=f"put the model's tokenizer.json into {folder}")


def tokens_of(description: str, name: str) -> Tokens:
    """The tokeniser that a tokenizer.json describes."""
    try:
        told = json.loads(description)
        vocabulary = told["model"]["vocab"] if _is_plain_bert(told) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EmbedderError(f"the tokenizer.json of {name} cannot be read: {error!r}", hint="get it anew") from error
    return WordPiece(vocabulary) if vocabulary is not None else FastTokens(description, name)


def _is_plain_bert(told: Mapping[str, Any]) -> bool:
    """Whether this is the uncased tokeniser of BERT to the letter, with nothing added."""
    model, before = told["model"], told.get("normalizer") or {}
    added = told.get("added_tokens") or []
    after = told.get("post_processor") or {}
    return (
        model.get("type") == "WordPiece"
        and model.get("unk_token") == "[UNK]"
        and "[UNK]" in model["vocab"]
        and model.get("continuing_subword_prefix") == "##"
        and model.get("max_input_chars_per_word") == 100
        and before.get("type") == "BertNormalizer"
        and all(before.get(k) for k in ("clean_text", "handle_chinese_chars", "lowercase"))
        and before.get("strip_accents") in (None, True)
        and (told.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
        and all(row.get("special") and row["content"] in _SPECIAL for row in added)
        and (not after or _is_bert_frame(after))
    )


def _is_bert_frame(after: Mapping[str, Any]) -> bool:
    """Whether a text stands between [CLS] and [SEP]."""
    if after.get("type") == "BertProcessing":
        return bool(after["cls"][0] == "[CLS]" and after["sep"][0] == "[SEP]")
    single = [next(iter(part.values()))["id"] for part in after.get("single", ())]
    return after.get("type") == "TemplateProcessing" and single == ["[CLS]", "A", "[SEP]"]
