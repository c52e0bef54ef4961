"""Lays out the pages of the site as they lie in the repository, and adds those that are made from
the source.

python -m tools.site && zensical build --strict
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import notewell
from notewell.surfaces.install.entries import AGENTS, Agent
from notewell.surfaces.install.events import HOOKS

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build/pages"
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md")
SYSTEMS = {"Linux": "linux", "macOS": "darwin", "Windows": "win32"}
FOLDERS = ("docs", "benchmarks")


def host(one: Agent) -> str:
    """The page of an agent: what `notewell install` writes for it, from the table that it writes
    from.
    """
    home = {"HOME": "~", "APPDATA": "%APPDATA%"}
    places = {title: str(one.file(home, system=system)) for title, system in SYSTEMS.items()}
    fixed = not one.finds
    flag = " -w FOLDER" if fixed else ""
    lines = [
        f"# {one.title}",
        "",
        "```console",
        f"$ notewell install {one.name}{flag} --print    # shows what would be written",
        f"$ notewell install {one.name}{flag}            # asks, and writes it",
        f"$ notewell install {one.name} --uninstall      # takes it back",
        "```",
        "",
        *(
            ["It works in no folder of a project, so name the folder of your notes.", ""]
            if fixed
            else []
        ),
        *([f"Workspace: {one.finds}.", ""] if one.finds else []),
        *([f"To know: {one.note}.", ""] if one.note else []),
        "## What is written",
        "",
        "| system | settings |",
        "| --- | --- |",
        *(f"| {title} | `{place}` |" for title, place in places.items()),
        "",
    ]
    if one.skill:
        lines += [
            (
                f"A skill in `{one.folder}{one.skill}` says when to search, how to cite and when "
                "to remember."
            ),
            "",
        ]
    if one.name in HOOKS:
        names = ", ".join(f"`{name}`" for name in HOOKS[one.name].names.values())
        lines += [
            (
                f"Hooks in `{one.folder}{one.hooks}`: {names}. What they do is in "
                "[Hooks](../hooks.md)."
            ),
            "",
        ]
    if one.keys:
        entry = one.entry(
            ["notewell", "mcp", *(["--workspace", "/path/to/notes"] if fixed else [])]
        )
        for key in (notewell.__name__, *reversed(one.keys)):
            entry = {key: entry}
        lines += ["## By hand", "", f"The same entry of the server, in `{places['Linux']}`"]
        lines[-1] += " (there as TOML):" if one.linux.endswith(".toml") else ":"
        lines += ["", "```json", json.dumps(entry, indent=2), "```", ""]
    return "\n".join([*lines, "All agents: [plugins](../plugins.md)."]) + "\n"


def reference() -> str:
    """The page of what `from notewell import …` gives, from its docstrings."""
    names = (name for name in notewell.__all__ if not name.startswith("_"))
    parts = [
        "# Python reference\n\nWhat `from notewell import …` gives. A guide: [Python](python.md).\n"
    ]
    for name in sorted(names, key=lambda name: (name != "Memory", name)):
        parts.append(f"\n::: notewell.{name}\n")
        if name == "Memory":  # its parts do most of its work, under the same names
            parts.append("    options:\n      show_if_no_docstring: false\n")
            for method in sorted(delegated()):
                own = getattr(notewell.Memory, method)
                shown = f"    options:\n      heading: Memory.{method}\n      heading_level: 3\n"
                parts.append(f"\n::: {own.__module__}.{own.__qualname__}\n{shown}")
    return "".join(parts)


def delegated() -> list[str]:
    """The public methods of Memory that one of its parts does."""
    members = vars(notewell.Memory)
    return [
        name
        for name in members
        if not name.startswith("_") and type(members[name]).__name__ == "_Delegate"
    ]


def made() -> dict[str, str]:
    """The pages that are in no file, by their path on the site."""
    pages = {f"docs/hosts/{one.name}.md": host(one) for one in AGENTS.values()}
    rows = "".join(f"- [{one.title}]({one.name}.md)\n" for one in AGENTS.values())
    pages["docs/hosts/README.md"] = f"# Agents\n\nWhat `notewell install` does for each.\n\n{rows}"
    pages["docs/reference.md"] = reference()
    return pages


def copied() -> Iterator[Path]:
    """The files of the repository that become pages, and their pictures."""
    yield from (ROOT / name for name in TOP if (ROOT / name).exists())
    for folder in FOLDERS:
        yield from (p for p in sorted((ROOT / folder).iterdir()) if p.suffix in (".md", ".png"))


def main() -> None:
    """Writes all pages into an empty folder."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for path in copied():
        place = PAGES / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    for name, text in made().items():
        place = PAGES / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
