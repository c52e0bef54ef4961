"""One line for every table of an index, with a hash of all that is in it: equal for equal results,
whatever the code.

    python benchmarks/digest.py FOLDER [MODEL]

indexes a folder from nothing, in an index of its own, and prints the lines. Run it with two
versions of the code and compare: what is quicker must still find the same.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import apsw

from notewell.memory import Memory

# When something was read, and how often something was written, differs from run to run.
_LEFT_OUT = {"documents": {"synced_ns"}, "models": {"changed"}}
_KEYS = "key NOT IN ('place', 'generation', 'chunks', 'analysis_since', 'forgotten_since', 'stale')"


def tables(path: Path) -> list[str]:
    """Name, number of rows and hash of every table of ours."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    names = db.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')"
    )
    lines = []
    for name in sorted(
        str(n) for (n,) in names.fetchall() if not str(n).startswith(("sqlite_", "vocabulary"))
    ):
        columns = [
            r[1]
            for r in db.execute(f"PRAGMA table_info({name})")
            if r[1] not in _LEFT_OUT.get(name, ())
        ]
        which = ", ".join(f'"{column}"' for column in columns)
        found = db.execute(
            f"SELECT {which} FROM {name}{f' WHERE {_KEYS}' if name == 'meta' else ''}"
        ).fetchall()
        content = "\n".join(sorted(map(repr, found))).encode()
        lines.append(f"{name:12} {len(found):8} {hashlib.sha256(content).hexdigest()[:16]}")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Indexes and prints."""
    with tempfile.TemporaryDirectory(prefix="notewell-digest-") as folder:
        place = Path(folder) / "index.sqlite"
        model = arguments[1] if len(arguments) > 1 else "none"
        with Memory.open(
            Path(arguments[0]), env={}, index__path=str(place), embed__model=model
        ) as memory:
            report = memory.sync()
        print(
            f"{report.added} notes, {report.chunks} chunks, redacted "
            f"{dict(sorted(report.redacted.items()))}"
        )
        print("\n".join(tables(place)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
