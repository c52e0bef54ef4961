"""The weights and the vocabulary of notewell's default model, and where they come from; nothing
here runs a model.
"""

from __future__ import annotations

__version__ = "1.1.0"

NAME = "notewell-small"
SOURCE = "trained from multilingual-e5-small, int8; see training/ in notewell's repository"
LICENCE = "MIT"
SHA256 = {
    "model.onnx": "722072f27f3d464ef79055192859c843e661a7b4f989b34b47e64943a4d0a94b",
    "pieces.model": "fe61cef35d0ba599d6c52e7b346269d3e9b9c3db30b770816428412190baa660",
}
"""The files of this package; notewell compares the model with its hash before it uses it."""
