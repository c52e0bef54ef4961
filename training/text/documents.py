"""Technical documentation in English: the HTML, Markdown and manual pages of Debian packages."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from training.fetch import Package, fetched, listed, members
from training.text.common import Group
from training.text.html_pages import read_html
from training.text.man_pages import read_man
from training.text.markdown_pages import read_markdown
from training.text.sections import Section, groups, sample

MOST = 700
MOST_OF = {
    "python3.11-doc": 2500,
    "postgresql-doc-15": 2500,
    "nodejs-doc": 2500,
    "git-doc": 2500,
    "linux-doc-6.1": 3500,
    "perl-doc": 1500,
    "manpages": 2000,
    "manpages-dev": 2500,
    "docker-doc": 1500,
    "clang-14-doc": 1500,
    "podman": 1200,
    "apache2-doc": 1500,
    "python-scipy-doc": 1200,
    "sqlite3-doc": 1500,
    "coreutils": 1500,
    "systemd": 1500,
    "bash-doc": 1200,
    "debian-handbook": 1500,
    "cmake-doc": 1200,
    "vim-doc": 1200,
    "kubernetes-client": 400,
}
_FOREIGN = re.compile(
    r"/man/[a-z]{2}(?:_[A-Z]{2})?(?:\.[\w-]+)?/|/(?:fr|de|es|ja|ko|zh|zh-cn|pt-br|it|ru|pl|tr|da|nl|cs|nb-NO|[a-z]{2}-[A-Z]{2})"
    r"(?:[-_]\w+)?/|\.html\.(?!en)|\.(?:fr|de|es|ja|ko|pt-br|zh-cn|tr|da|ru)\.(?:utf8|html)|/translations/"
)
_DULL = re.compile(
    r"changelog|copyright|genindex|py-modindex|/search\.|NEWS|/_modules/|/_sources/|tldr|error_codes|error-index|"
    r"/TODO|/README\.Debian|licen[cs]e|/annotated|/functions_|/globals_|/files\.html|/classes\.html|/hierarchy|"
    r"nodejs/api/.*\.html|_source\.html|-members\.html|/source/",
    re.IGNORECASE,
)


def read_page(name: str, content: bytes) -> list[Section]:
    """A documentation file's sections, none where its kind is not known."""
    path = PurePosixPath(name.removesuffix(".gz"))
    manual = "/man/man" in f"/{name}"
    if not manual and not re.search(r"\.(?:x?html?(?:\.en)?|md|markdown)$", str(path)):
        return []
    try:
        text = (gzip.decompress(content) if name.endswith(".gz") else content).decode(
            "utf-8", "replace"
        )
    except (OSError, EOFError):
        return []
    if manual:
        return read_man(text, path.stem.removesuffix(".1"))
    if path.suffix in {".md", ".markdown"}:
        return read_markdown(text, path.stem.replace("-", " ").replace("_", " "))
    return read_html(text)


def _wanted(name: str, content: bytes) -> bool:
    kind = re.search(r"/man/man\d|\.(?:x?html?(?:\.en)?|md|markdown)(?:\.gz)?$", f"/{name}")
    return (
        bool(kind)
        and len(content) < 3_000_000
        and not _FOREIGN.search(f"/{name}")
        and not _DULL.search(name)
    )


def _of_package(package: Package, most: int, chance: random.Random) -> list[Group]:
    """Groups from the pages of a package in chance order, somewhat more than are wanted."""
    pages = [
        (name, content)
        for name, content in members(fetched(package.name))
        if _wanted(name, content)
    ]
    chance.shuffle(pages)
    found: list[Group] = []
    for name, content in pages:
        found += groups(
            "docs",
            read_page(name, content),
            chance,
            fenced=bool(re.search(r"\.md|\.markdown", name)),
        )
        if len(found) > most * 1.5:
            break
    return found


def documents() -> Iterator[Group]:
    """Every Debian package listed as documentation, none with too large a share."""
    for package in listed().values():
        if package.registry == "debian" and package.use == "technical documentation":
            chance = random.Random(package.name)
            most = MOST_OF.get(package.name, MOST)
            yield from sample(_of_package(package, most, chance), most, chance)
