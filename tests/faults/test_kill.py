"""kill -9 at any moment of anything that writes: it opens, its parts agree, nothing reported as
done is missing.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.lives import ACTS

LONG = int(os.environ.get("FAULTS_KILLS", "600"))  # over all acts


def lives(folder: Path, act: str, kills: int, seed: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.lives", str(folder), act, str(kills), str(seed)],
        capture_output=True,
        cwd=Path(__file__).parents[2],
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout)
    print(done.stdout)  # noqa: T201 - the report of a long run, shown by `pytest -rP`
    return told


@pytest.mark.parametrize("act", ACTS)
def test_a_few_kills_break_nothing(tmp_path: Path, act: str) -> None:
    told = lives(tmp_path, act, 5, seed=1)
    assert told["broken"] == []
    assert told["killed"] == 5, "all of them died at work"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("act", ACTS)
def test_hundreds_of_kills_break_nothing(tmp_path: Path, act: str) -> None:
    told = lives(tmp_path, act, math.ceil(LONG / len(ACTS)), seed=2)
    assert told["broken"] == []
    assert told["killed"] == math.ceil(LONG / len(ACTS)), "all of them died at work"
