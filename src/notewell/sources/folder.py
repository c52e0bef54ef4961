"""What the notes of any folder are: without `MEMORY.md` and `memory/` its Markdown and text, of
code its documents.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection

from notewell.opener import Opener
from notewell.sources.obsidian import FOLDER as VAULT
from notewell.sources.obsidian import Vault, vault_of
from notewell.text.note_files import stem_of
from notewell.text.reference_syntax import NOTES

TEXTS = (*NOTES, ".txt", ".rst", ".org", ".adoc")
RULES = (*NOTES, ".mdc")
HIDDEN = (
    ".claude/CLAUDE.md",
    ".claude/rules",
    ".cursor/rules",
    ".windsurf/rules",
    ".github/copilot-instructions.md",
)
"""Where programs look for instructions of a project, in folders that are hidden otherwise."""
DOCUMENTS = {".pdf": "PDF", ".docx": "Word file", ".html": "web page", ".htm": "web page"}
"""What `notewell import` makes notes of, by its ending."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MOST_SEEN = 200_000  # files and folders; a look at more takes seconds, each time
_APPS = frozenset((VAULT, ".logseq", "logseq", ".foam", ".zk", ".dendron", ".joplin"))
_MANIFESTS = _words(
    "pyproject.toml setup.py setup.cfg package.json cargo.toml go.mod go.work pom.xml"
    " build.gradle build.gradle.kts settings.gradle cmakelists.txt meson.build composer.json"
    " gemfile mix.exs deno.json deno.jsonc pubspec.yaml package.swift build.sbt project.clj"
    " stack.yaml cabal.project dune-project build.zig flake.nix makefile.am configure.ac"
    " rebar.config description.cabal tsconfig.json build.bazel module.bazel"
)
_MANIFEST_ENDINGS = (".sln", ".csproj", ".fsproj", ".cabal", ".gemspec", ".xcodeproj", ".nimble")
_DOCUMENTATION = _words("docs doc documentation adr adrs rfc rfcs wiki notes specs design")
_GUIDES = _words("readme claude agents gemini contributing architecture development")
_NO_DOCUMENTATION = _words(
    "test tests testdata fixtures fixture __fixtures__ vendor vendored"
    " third_party thirdparty dist build target out coverage generated"
)
_TEMPLATES = frozenset(("templates", "template", "_templates", "_template"))
_NO_NOTE = re.compile(
    r"(?:(?:un)?licen[cs]e(?:[-_.][\w-]+)?|copying(?:\.lesser)?|notice"
    r"|third[-_ ]?party[-_ ]\w+)\.\w+"
    r"|(?:(?:[\w.-]*[-_.])?(?:requirements|constraints)(?:[-_.][\w.-]*)?"
    r"|cmakelists|robots|humans|ads|top_level)\.txt"
    r"|.*\.(?:png|jpe?g|webp|gif|mp3|wav|m4a|ogg|flac)\.txt"  # the label of a picture or a sound
)


class Folder:
    """The rules of one walk over a folder: what it enters and takes; `unread` counts documents that
    are not notes.

    In mode `all` every folder is one of notes; else a folder with the files of a project is code,
    and all below it.
    """

    def __init__(self, root: str, opener: Opener, *, mode: str, most: int) -> None:
        self.root, self.mode, self.most = root, mode, most
        self.vault = vault_of(root, opener) if os.path.isdir(os.path.join(root, VAULT)) else Vault()
        self.unread: Counter[str] = Counter()
        self.cut = ""
        self._taken = self._seen = 0
        self._code: dict[str, bool] = {}
        self._documented: dict[str, bool] = {}

    def look(self, folder: str, names: Collection[str]) -> None:
        """Notes what kind of folder one is, from its names; folders come before what is in them."""
        above, name = os.path.split(folder)
        inner = folder != self.root
        code = inner and self._code.get(above, False)
        if self.mode != "all" and not _APPS & set(names):
            code = code or any(is_manifest(one) for one in names)
        elif _APPS & set(names):
            code = False
        self._code[folder] = code
        self._documented[folder] = inner and (
            self._documented.get(above, False) or name.casefold() in _DOCUMENTATION
        )

    def enters(self, folder: str) -> bool:
        """Whether a folder can hold notes: no templates, in code no tests and nothing made or
        brought along.
        """
        above, name = os.path.split(folder)
        name = name.casefold()
        if not self._room() or name in _TEMPLATES:
            return False
        inside = os.path.relpath(folder, self.root).replace(os.sep, "/")
        if inside in self.vault.templates:
            return False
        return not (self._code.get(above, False) and name in _NO_DOCUMENTATION)

    def takes(self, location: str) -> bool:
        """Whether a file is a note, by its name and folder."""
        folder, name = os.path.split(location)
        name = name.casefold()
        if not name.endswith(TEXTS) or _NO_NOTE.fullmatch(name):
            return False
        if not self._code.get(folder, False) or self._documented.get(folder, False):
            return True
        return stem_of(name) in _GUIDES or (folder == self.root and name.endswith(NOTES))

    def accepts(self, location: str) -> bool:
        """The same for a walk, which is bounded and counts what it cannot read."""
        if not self._room():
            return False
        if self.takes(location):
            self._taken += 1
            if self._taken > self.most:
                self.cut = f"only the first {self.most:,} notes of this folder are read"
            return not self.cut
        kind = DOCUMENTS.get(os.path.splitext(location)[1].casefold())
        if kind and not (kind == "web page" and self._code.get(os.path.dirname(location), False)):
            self.unread[kind] += 1
        return False

    @property
    def spare(self) -> int:
        """How many more files and notes a walk could have seen; below 0 if it was cut."""
        return -1 if self.cut else min(self.most - self._taken, _MOST_SEEN - self._seen)

    def _room(self) -> bool:
        """Counts one more file or folder, and returns whether a search can look at so many each
        time.
        """
        self._seen += 1
        if self._seen > _MOST_SEEN:
            self.cut = f"only the first {_MOST_SEEN:,} files and folders here are looked at"
        return not self.cut


def has_memory(root: str) -> bool:
    """Whether a folder has a `MEMORY.md` or a `memory/`, which then hold its notes."""
    try:
        with os.scandir(root) as entries:
            names = [(e.name.casefold(), e) for e in entries]
            return any(
                name == "memory.md" or (name == "memory" and entry.is_dir())
                for name, entry in names
            )
    except OSError:
        return False


def is_manifest(name: str) -> bool:
    """Whether a file of this name makes its folder one of code."""
    name = name.casefold()
    return name in _MANIFESTS or name.endswith(_MANIFEST_ENDINGS)
