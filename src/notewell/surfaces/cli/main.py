"""The `notewell` command. With `--json` stdout holds one object; notices and progress go to
stderr.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
import threading

from notewell import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notewell.surfaces.hooks.deadline import Sent


def model_line() -> str:
    """Which default model is installed, where it came from, and its hash."""
    try:
        import notewell_model as model  # noqa: PLC0415 - a few lines of text
    except ImportError:
        return "no default model (pip install notewell-model)"
    sha256 = model.SHA256["model.onnx"]
    return (
        f"model {model.NAME} (notewell-model {model.__version__}: {model.SOURCE}), sha256 {sha256}"
    )


def main() -> None:
    """The `notewell` command: answers `--version` before anything is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"notewell {__version__}\n{model_line()}\n")
        return
    # Windows gives a pipe an old code page: what that cannot show becomes a question mark, not an
    # error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    # One matrix product per question gains nothing from more BLAS threads; they cost 50 ms at start
    # and spin when idle.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from notewell.surfaces.engine import thin  # noqa: PLC0415

        asked = thin.asked(sys.argv[1:], os.environ)
        code, start = thin.answer(asked) if asked else (None, False)
        if code is None:
            code = _here(asked.sent if asked else None, start=start)
            if asked and start and code == 0 and asked.call == "search":
                thin.start_later(asked)
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        sys.stderr.write(
            f"error: notewell is not installed completely: {error}\nhint: install it again\n"
        )
        sys.exit(1)
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    if not any(
        not t.daemon or t.name.startswith(("embed ", "load ", "notewell-warm-up")) for t in others
    ):
        atexit._run_exitfuncs()  # noqa: SLF001
    # Everything is written and closed, so exit at once: taking a model and all modules apart takes
    # a tenth of a search. And where a model call that timed out, or a read of stdin, is still
    # running, native code may crash meanwhile.
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _here(sent: Sent | None, *, start: bool) -> int:
    """Runs the command in this process."""
    # somebody waits for it with every prompt, so it loads what it needs itself
    if sys.argv[1:2] == ["hook"]:
        from notewell.surfaces.cli import hooking  # noqa: PLC0415

        threading.excepthook = hooking.thread_failed
        return hooking.run(sys.argv[1:], sent, start=start)
    # modules are not garbage, and looking for cycles among them takes a tenth of the start
    gc.disable()
    from notewell.surfaces.cli.commands import run  # noqa: PLC0415
    from notewell.surfaces.cli.ending import thread_failed  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    threading.excepthook = thread_failed
    return run(sys.argv[1:])


if __name__ == "__main__":
    main()
