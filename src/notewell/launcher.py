"""The one way to start a process; `tests/test_launcher.py` finds any other.

Python looks for modules in the current folder first, and a clone may bring a `json.py`. So every
process of ours is this very Python with `-P`, has no current folder in PYTHONPATH either, and works
in a folder where no stranger can write. With `-I` it would not find what `pip install --user` or
PYTHONPATH brought, and so perhaps not notewell itself.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from notewell.model_names import depends_on_folder

if TYPE_CHECKING:
    import subprocess

NOTEWELL = ("-m", "notewell")
NEUTRAL = sys.prefix if os.name == "nt" else os.sep
"""Where our processes work: nobody's clone, and nothing that anybody wants to unmount.

On Windows every user may make folders in the root of a drive, so it is not that.
"""
FOLDERS = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "OPENCLAW_STATE_DIR",
    "COPILOT_HOME",
    "QWEN_HOME",
    "QWEN_RUNTIME_DIR",
    "GOOSE_PATH_ROOT",
    "HERMES_HOME",
    "CLINE_DATA_DIR",
    "SSL_CERT_FILE",
)
"""Variables of other programs with a path, which is another one in another folder if it is
relative.
"""
_SHOW = """
import signal, sys, webbrowser
signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is for the server, and nothing is to be \
said about it here
sys.exit(not webbrowser.open(sys.argv[1]))
"""
_ALSO = ("NOTEWELL_WORKSPACE", "SSL_CERT_DIR", "TMPDIR", "TEMP", "TMP")
_MODEL = "NOTEWELL_EMBED_MODEL"


def can_start() -> bool:
    """Whether this program is a Python that can be started again, and not one with Python
    inside.
    """
    name = os.path.basename(sys.executable or "").lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def command(*words: str) -> list[str]:
    """A command line of this very Python, wherever it is started; OSError if there is none."""
    if not can_start():
        raise OSError(
            f"{sys.executable or 'this program'} is not a Python that can be started again"
        )
    return [sys.executable, "-P", *words]


def absolute(path: str) -> str:
    """A path as it is from any folder; unchanged where the current one was deleted."""
    with contextlib.suppress(OSError):
        return os.path.abspath(path)
    return path


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The variables for a process in another folder, where they mean the same as here."""
    made = dict(env)
    for name in (*FOLDERS, *_ALSO):
        if made.get(name):
            made[name] = absolute(made[name])
    if depends_on_folder(made.get(_MODEL, "")):
        made[_MODEL] = absolute(made[_MODEL])
    if "PYTHONPATH" in made:
        made["PYTHONPATH"] = os.pathsep.join(module_path(made["PYTHONPATH"].split(os.pathsep)))
    return made


def module_path(folders: Sequence[str]) -> list[str]:
    """Those of some folders of modules that are neither the current one nor depend on it."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        here = ""
    return [one for one in folders if os.path.isabs(one) and os.path.realpath(one) != here]


def detached(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Starts a process that belongs to no session and no terminal; returns its id.

    Nobody waits for it, but when it ends before its parent it leaves nothing behind.
    """
    import subprocess  # noqa: PLC0415 - most commands start nothing

    flags = 0
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NO_WINDOW
    nowhere = subprocess.DEVNULL
    made = subprocess.Popen(  # noqa: S603 - the command is ours
        command(*words),
        cwd=NEUTRAL,
        env=environment(env),
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
        creationflags=flags,
    )
    made.returncode = 0  # Python warns nobody that it still runs
    if os.name != "nt":
        import threading  # noqa: PLC0415

        with contextlib.suppress(RuntimeError):  # no room for a thread
            threading.Thread(
                target=_wait, args=(made.pid,), name="wait for a process", daemon=True
            ).start()
    return made.pid


def _wait(process: int) -> None:
    """Lets the system forget a child that has ended; a server would collect them."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, 0)


def has_ended(process: int) -> bool:
    """Whether a process that was `detached` by this one has ended; False where nobody can tell."""
    try:
        return os.name != "nt" and os.waitpid(process, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


class Piped:
    """A process that is written to and read from, and is gone when it is closed."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], *, quiet: bool = True) -> None:
        """With `quiet` nobody sees what it says on stderr."""
        import subprocess  # noqa: PLC0415 - most commands start nothing

        self.process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - the command is ours
            command(*words),
            cwd=NEUTRAL,
            env=environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise OSError("a process was started without pipes")
        self.stdin: IO[bytes] = stdin
        self.stdout: IO[bytes] = stdout

    def answer(self, sent: bytes, *, within_s: float) -> bytes:
        """What it writes when it was sent this, or nothing if it failed; TimeoutError if it is
        late.
        """
        from subprocess import TimeoutExpired  # noqa: PLC0415

        try:
            told = self.process.communicate(sent, timeout=within_s)[0]
        except TimeoutExpired:
            raise TimeoutError(f"over {within_s:g} s") from None
        finally:
            self.close()
        return told if self.process.returncode == 0 else b""

    def close(self, *, within_s: float = 0.0) -> None:
        """Says that nothing more will be sent, and ends it if it does not end by itself in time."""
        from subprocess import TimeoutExpired  # noqa: PLC0415

        if within_s:
            with contextlib.suppress(OSError, TimeoutExpired):
                self.stdin.close()
                self.process.wait(timeout=within_s)
        self.process.kill()
        for pipe in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        self.process.wait()


def show_page(address: str, with_key: str) -> bool:
    """Opens a page of this user's server in the browser; no command line that others can read holds
    its key.
    """
    import subprocess  # noqa: PLC0415
    import webbrowser  # noqa: PLC0415

    try:
        if sys.platform == "darwin" and "BROWSER" not in os.environ:
            said = f'open location "{with_key}"'
            subprocess.run(
                ["/usr/bin/osascript"],
                cwd=NEUTRAL,
                input=said,
                text=True,
                check=True,
                capture_output=True,
            )
            return True
        # On Windows no other user can read a command line; Linux knows whose browser it is.
        page = with_key if sys.platform == "win32" else address
        if not can_start():
            return webbrowser.open(page)
        words = command("-c", _SHOW, page)
        # It keeps this terminal, which a browser in text needs.
        subprocess.run(words, cwd=NEUTRAL, env=environment(os.environ), check=True)  # noqa: S603 - the command is ours
        return True
    except (OSError, subprocess.CalledProcessError, webbrowser.Error):
        return False
