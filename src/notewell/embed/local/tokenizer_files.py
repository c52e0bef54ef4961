"""Text to token ids: by our WordPiece if a model's files describe exactly that, else by the
`tokenizers` package.

WordPiece is a few lines, where the package brings a model hub; a test compares both on every
script.
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from notewell.embed.local.local_model import DOWNLOAD_AGAIN
from notewell.errors import EmbedderError

_SPECIAL = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
_BERT = {
    "type": "WordPiece",
    "unk_token": "[UNK]",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
}
_CHARACTERS_A_TOKEN = 50
_MAX_WORD, _CACHED_WORD, _CACHE_SIZE = 100, 40, 100_000
# `str.split` splits at these; the reference drops them.
_CONTROL_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]+")


_HAN = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f"
    "\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f])"
)


class Tokens(Protocol):
    """Text to token ids."""

    @property
    def unknown(self) -> int | None:
        """The id of a word that is not in the vocabulary."""

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids with the special ones at the ends, at most `limit` in all."""

    def plain(self, text: str, limit: int) -> list[int]:
        """Ids of the text alone, at most `limit`."""


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char).startswith("P")


class WordPiece:
    """Greedy longest-match tokeniser over a fixed vocabulary."""

    def __init__(self, vocabulary: Path | Mapping[str, int]) -> None:
        if isinstance(vocabulary, Path):
            words = vocabulary.read_text(encoding="utf-8").removesuffix("\n").split("\n")
            self.ids = dict(zip(words, range(len(words)), strict=True))
        else:
            self.ids = dict(vocabulary)
        if "[UNK]" not in self.ids:
            raise EmbedderError(
                "the vocabulary has no [UNK]: it is not a BERT vocabulary", hint=DOWNLOAD_AGAIN
            )
        self.unknown = self.ids["[UNK]"]
        self._cached = lru_cache(_CACHE_SIZE)(self._ids_of)

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids between [CLS] and [SEP], at most `limit` with these two."""
        try:
            return [self.ids["[CLS]"], *self.plain(text, limit - 2), self.ids["[SEP]"]]
        except KeyError as error:  # not checked when loading: a static model needs neither
            raise EmbedderError(
                f"the vocabulary has no {error.args[0]}", hint=DOWNLOAD_AGAIN
            ) from None

    def plain(self, text: str, limit: int) -> list[int]:
        """Ids of the text alone, at most `limit`."""
        ids: list[int] = []
        for word in _CONTROL_SPACE.sub("", text).split():
            ids.extend(self._cached(word) if len(word) <= _CACHED_WORD else self._ids_of(word))
            if len(ids) >= limit:
                break
        return ids[:limit]

    def _ids_of(self, word: str) -> tuple[int, ...]:
        return tuple(i for piece in self._split(word) for i in self._pieces(piece))

    def _split(self, word: str) -> list[str]:
        """Lower-cases, strips accents and control characters, and separates punctuation and Han
        characters.
        """
        if not (word.isascii() and word.isprintable()):
            kept = (
                c
                for c in word
                if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co") and c != "\ufffd"
            )
            word = _HAN.sub(r" \1 ", "".join(kept))
        # letter by letter, without the final sigma of `str.lower`
        word = word.replace("Σ", "σ").lower()
        if not word.isascii():
            word = "".join(
                c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn"
            )
        return "".join(f" {c} " if _is_punctuation(c) else c for c in word).split()

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _MAX_WORD:
            return [self.unknown]
        ids: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                found = self.ids.get(word[start:end] if not start else "##" + word[start:end])
                if found is not None:
                    ids.append(found)
                    start = end
                    break
            else:
                return [self.unknown]
        return ids


class FastTokens:
    """Any tokeniser that a tokenizer.json describes; special tokens in a text are read as plain
    text.
    """

    def __init__(self, description: str, name: str) -> None:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - an optional package
        except ImportError as error:
            hint = 'pip install "notewell[onnx]"'
            raise EmbedderError(
                f"the tokeniser of {name} needs the package tokenizers", hint=hint
            ) from error
        try:
            self._inner: Any = Tokenizer.from_str(description)
        except Exception as error:
            raise EmbedderError(
                f"the tokenizer.json of {name} cannot be read: {error}", hint=DOWNLOAD_AGAIN
            ) from error
        self._inner.no_padding()
        self._inner.no_truncation()
        self._inner.encode_special_tokens = True
        unknown = getattr(self._inner.model, "unk_token", None)
        self.unknown: int | None = self._inner.token_to_id(unknown) if unknown else None
        empty = self._inner.encode("").ids
        mark = self._inner.encode("a", add_special_tokens=False).ids
        framed = self._inner.encode("a").ids
        # The number of special tokens before and after a text is measured: every kind of tokeniser
        # states it elsewhere.
        self._head = framed.index(mark[0]) if mark and mark[0] in framed else len(empty)
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
            options = json.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
            if options.get("do_lower_case", True):
                return WordPiece(vocabulary)
            missing = (
                "its vocab.txt is case-sensitive, which only a tokenizer.json describes in full"
            )
        else:
            missing = "it has neither tokenizer.json nor vocab.txt"
    except (OSError, ValueError, AttributeError) as error:
        raise EmbedderError(
            f"the tokeniser of {name} cannot be read: {error}", hint=DOWNLOAD_AGAIN
        ) from error
    raise EmbedderError(
        f"{name} has no tokeniser: {missing}", hint=f"put the model's tokenizer.json into {folder}"
    )


def tokens_of(description: str, name: str) -> Tokens:
    """The tokeniser that a tokenizer.json describes."""
    try:
        parsed = json.loads(description)
        vocabulary = parsed["model"]["vocab"] if _is_plain_bert(parsed) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EmbedderError(
            f"the tokenizer.json of {name} cannot be read: {error!r}", hint=DOWNLOAD_AGAIN
        ) from error
    return WordPiece(vocabulary) if vocabulary is not None else FastTokens(description, name)


def _is_plain_bert(parsed: Mapping[str, Any]) -> bool:
    """Whether this is exactly the uncased tokeniser of BERT, with nothing added."""
    model, before = parsed["model"], parsed.get("normalizer") or {}
    added = parsed.get("added_tokens") or []
    after = parsed.get("post_processor") or {}
    return (
        all(model.get(key) == value for key, value in _BERT.items())
        and "[UNK]" in model["vocab"]
        and before.get("type") == "BertNormalizer"
        and all(before.get(k) for k in ("clean_text", "handle_chinese_chars", "lowercase"))
        and before.get("strip_accents") in (None, True)
        and (parsed.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
        and all(row.get("special") and row["content"] in _SPECIAL for row in added)
        and (not after or _is_bert_frame(after))
    )


def _is_bert_frame(after: Mapping[str, Any]) -> bool:
    """Whether a text is put between [CLS] and [SEP]."""
    if after.get("type") == "BertProcessing":
        return bool(after["cls"][0] == "[CLS]" and after["sep"][0] == "[SEP]")
    single = [next(iter(part.values()))["id"] for part in after.get("single", ())]
    return after.get("type") == "TemplateProcessing" and single == ["[CLS]", "A", "[SEP]"]
