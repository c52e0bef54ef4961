"""PDF by page, with pypdf in a separate process: a hostile file may take its time and memory, but
not ours.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from importlib.util import find_spec
from typing import Any

from notewell.errors import NoteError
from notewell.launcher import Piped
from notewell.sources.imports.items import Item, dict_of, line_of, list_of, moment, paged

INSTALL = 'pip install "notewell[documents]"'
MOST_PAGES = 5_000
_MOST_TEXT = 50_000_000
_LONGEST_S = 60.0
_MOST_MEMORY = 2_000_000_000
_LOCKED = "it is locked with a password"


def can_read_pdf() -> bool:
    """Whether the library for PDF is installed."""
    return find_spec("pypdf") is not None


def read_pdf(data: bytes, _name: str) -> Item | None:
    """A document by its pages; ValueError with the reason if it cannot be read."""
    if not can_read_pdf():
        raise NoteError("reading PDF needs the library pypdf, which is not installed", hint=INSTALL)
    try:
        told = dict_of(
            json.loads(Piped(["-m", __name__], os.environ).answer(data, within_s=_LONGEST_S))
        )
    except TimeoutError:
        raise ValueError(f"reading it takes over {_LONGEST_S:.0f} seconds") from None
    except ValueError:
        told = {}
    if not told or told.get("error"):
        raise ValueError(str(told.get("error") or "it is not a readable PDF"))
    pages = [str(page) for page in list_of(told.get("pages"))]
    numbered = ((f"Page {n}", text) for n, text in enumerate(pages, 1))
    found = paged(line_of(told.get("title")), numbered, moment(told.get("made")))
    if found is None and pages:
        raise ValueError("its pages have no text: they may be pictures of it")
    return found


def _extracted(data: bytes) -> dict[str, Any]:
    """The pages of a PDF as text, its title and its date."""
    from pypdf import PdfReader  # noqa: PLC0415 - an optional library
    from pypdf.errors import DependencyError, FileNotDecryptedError  # noqa: PLC0415

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": _LOCKED}
        if len(reader.pages) > MOST_PAGES:
            return {"error": f"it has over {MOST_PAGES:,} pages"}
        pages: list[str] = []
        size = 0
        for page in reader.pages:
            pages.append(page.extract_text())
            size += len(pages[-1])
            if size > _MOST_TEXT:
                return {"error": f"its text has over {_MOST_TEXT:,} characters"}
        facts: dict[str, Any] = {"pages": pages}
        # what a file says of itself is often broken, and never needed
        with contextlib.suppress(Exception):
            about = reader.metadata
            made = about.modification_date or about.creation_date if about else None
            facts |= {
                "title": about.title or "" if about else "",
                "made": made.isoformat() if made else "",
            }
    except (DependencyError, FileNotDecryptedError):
        return {"error": _LOCKED}
    except RecursionError:
        return {"error": "it is nested too deep"}
    return facts


def main() -> None:
    """Reads a PDF from stdin and writes its pages to stdout as one JSON object, within bounds of
    memory.
    """
    import logging  # noqa: PLC0415 - only the separate process needs it

    logging.disable()
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every system

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        # if nobody waits any more
        resource.setrlimit(resource.RLIMIT_CPU, (int(_LONGEST_S), int(_LONGEST_S)))
    try:
        told = _extracted(sys.stdin.buffer.read())
    except MemoryError:
        told = {"error": "reading it takes too much memory"}
    except Exception:  # noqa: BLE001 - whatever a broken file makes of the library
        told = {"error": "it is not a readable PDF"}
    sys.stdout.buffer.write(json.dumps(told).encode("utf-8", "surrogatepass"))


if __name__ == "__main__":
    main()
