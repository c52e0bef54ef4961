"""Runs commands one after another and waits for everything that they leave in the background; a
script for Linux.

What loses its parent becomes a child of this process, so it is known when nothing is left. Commands
come as JSON on stdin, each with its words, what it is sent, and whether it must be stopped; what
became of them goes to stdout.

Every Python that starts writes its own command line into a file: whether a process was left behind
when the command ended would depend on which of the two was faster.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_BECOMES_PARENT = 36  # PR_SET_CHILD_SUBREAPER
_SEEN = (
    "import json, sys\nwith open({log!r}, 'a') as log: log.write(json.dumps(sys.orig_argv) + "
    "'\\n')\n"
)


def run(words: list[str], *, sent: str = "", stops: bool = False) -> dict[str, Any]:
    """What a command said, and the command line of every other Python that it started, all of which
    have ended.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        Path(folder, "sitecustomize.py").write_text(_SEEN.format(log=str(log)), encoding="utf-8")
        modules = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        pipe = subprocess.PIPE
        made = subprocess.Popen(
            words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env={**os.environ, "PYTHONPATH": modules},
        )
        if stops:
            assert made.stderr is not None
            made.stderr.readline()
            made.terminate()
        out, err = made.communicate(sent)
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
        _, *others = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        return {"code": made.returncode, "out": out, "err": err, "started": others}


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_BECOMES_PARENT, 1, 0, 0, 0)
    json.dump([run(**one) for one in json.load(sys.stdin)], sys.stdout)
