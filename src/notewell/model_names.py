"""Names of models: which provider a name belongs to, and which names are harmless."""

from __future__ import annotations

import os

SAFE_MODELS = (
    "auto",
    "local",
    "none",
    "hashed",
    "notewell-small",
    "bge-small-en-v1.5",
    "all-MiniLM-L6-v2",
)
"""Models that read only the installation and send nothing, so that even a stranger may choose
them.
"""
REMOTE_PROVIDERS = (
    "openai",
    "gemini",
    "voyage",
    "mistral",
    "cohere",
    "jina",
    "ollama",
    "lmstudio",
    "http",
)
"""A model whose name begins with one of these sends notes elsewhere."""


def provider_of(model: str) -> str:
    """The remote provider in a model's name; empty for a local model."""
    name = model.strip().casefold().partition("/")[0]
    return name if name in REMOTE_PROVIDERS else ""


def is_remote(model: str) -> bool:
    """Whether a model sends text to another program or machine."""
    return bool(provider_of(model))


def plain_model(name: str) -> bool:
    """Whether a model needs neither the network nor a path of the user's."""
    head, mark, size = name.partition("@")
    return name in SAFE_MODELS or (head == "hashed" and bool(mark) and size.isdecimal())


def depends_on_folder(name: str) -> bool:
    """Whether a model's name is a path that means another place in another folder."""
    return name.startswith(".") or (
        name.lower().endswith(".gguf") and not os.path.isabs(os.path.expanduser(name))
    )
