"""Build the training text: `python -m training.text.build en|xx [SOURCE...]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from training.text.common import Group, Unique, text_folder, write

Source = Callable[[], Iterator[Group]]
PARTS = {"en": "training.text.sources_en", "xx": "training.text.sources_xx"}


def build(part: str, names: Sequence[str], into: Path) -> int:
    """Write one file a source; a line of counts each."""
    module = importlib.import_module(PARTS[part])
    sources: dict[str, Source] = module.SOURCES
    unknown = set(names) - set(sources)
    if unknown:
        print(
            f"no such source: {', '.join(sorted(unknown))}; there are {', '.join(sources)}",
            file=sys.stderr,
        )
        return 1
    if hasattr(module, "build"):
        return int(module.build(sources, names))
    for name in names or sources:
        began = time.monotonic()
        path = into / f"{part}-{name}.jsonl"
        counts = write(path, Unique().groups(sources[name]()))
        took = time.monotonic() - began
        size = counts["bytes"] / 1e6
        print(
            (
                f"{path.name}: {counts['groups']} groups, {counts['texts']} texts, {size:.1f} MB, "
                f"{took:.0f} s"
            ),
            flush=True,
        )
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.text.build")
    parser.add_argument("part", choices=sorted(PARTS))
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--into", type=Path, help="folder to write to, else WORK/text")
    asked = parser.parse_args(arguments)
    return build(asked.part, asked.sources, asked.into or text_folder())


if __name__ == "__main__":
    sys.exit(main())
