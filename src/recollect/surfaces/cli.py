"""The command line. One object on stdout with `--json`; everything else that speaks goes to stderr."""

from __future__ import annotations

import os
import sys

from recollect import __version__


def main() -> None:
    """The `recollect` command: answers `--version` before anything is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"recollect {__version__}\n")
        return
    # More BLAS threads gain nothing on one product a question: they cost 50 ms at the start, and spin when idle.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from recollect.surfaces.commands import run  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
