"""Runs commands one after another and waits for everything that they leave in the background; a script for Linux.

What loses its parent becomes a child of this process, so it is known when nothing is left. Commands come as JSON on
stdin, each with its words, what it is sent, and whether it must be stopped; what became of them goes to stdout.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from typing import Any

_BECOMES_PARENT = 36  # PR_SET_CHILD_SUBREAPER


def run(words: list[str], *, sent: str = "", stops: bool = False) -> dict[str, Any]:
    """What a command said, and how many processes it left behind, all of which have ended by now."""
    pipe = subprocess.PIPE
    made = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    if stops:
        assert made.stderr is not None
        made.stderr.readline()
        made.terminate()
    out, err = made.communicate(sent)
    left = 0
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return {"code": made.returncode, "out": out, "err": err, "left": left}
        left += 1


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_BECOMES_PARENT, 1, 0, 0, 0)
    json.dump([run(**one) for one in json.load(sys.stdin)], sys.stdout)
