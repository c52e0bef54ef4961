"""The command line. One object on stdout with `--json`; everything else that speaks goes to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from recollect import __version__


def _holds(thread: threading.Thread) -> bool:
    """Whether the end of the process would wait for a thread, or must not meet it."""
    return not thread.daemon or thread.name.startswith(("embed ", "load ", "recollect-warm-up"))


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
    code = run(sys.argv[1:])
    if any(thread is not threading.main_thread() and _holds(thread) for thread in threading.enumerate()):
        # A model that was given up, or a read of stdin, is still at work. Native code must not meet the end of the
        # interpreter, and nobody should wait for it: everything is written and closed, so leave at once.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
