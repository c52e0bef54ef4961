"""The sources in other languages than English, and how their text is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from training.text.aligned import Pair
from training.text.books import BOOKS, books, electron, libreoffice, rights, stellarium
from training.text.catalogues import catalogues
from training.text.common import Group
from training.text.descriptions_xx import descriptions
from training.text.gnome import gnome
from training.text.manuals import manuals
from training.text.prose_xx import (
    bills,
    classics,
    days,
    idioms,
    koran,
    ledes,
    lives,
    small_talk,
    tatoeba,
)
from training.text.select_xx import build

__all__ = ["SOURCES", "build"]

SOURCES: dict[str, Callable[[], Iterator[Pair | Group]]] = {
    "lo-help": libreoffice,
    "gnome-help": gnome,
    "descriptions": descriptions,
    "messages": catalogues,
    **{name: partial(books, name) for name in BOOKS},
    "stellarium": stellarium,
    "electron": electron,
    "human-rights": rights,
    "manuals": manuals,
    "tatoeba": tatoeba,
    "koran": koran,
    "days": days,
    "wikipedia": ledes,
    "chinese-lives": lives,
    "chinese-classics": classics,
    "chinese-idioms": idioms,
    "korean-bills": bills,
    "small-talk": small_talk,
}
