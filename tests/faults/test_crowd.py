"""Twelve processes on one index: nobody is locked out, no answer is wrong or empty, and none is
older than the last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.crowd import INDEXERS, READERS

LONG_S = float(os.environ.get("FAULTS_CROWD_S", "120"))


def crowd(folder: Path, seconds: float) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.crowd", str(folder), str(seconds)],
        capture_output=True,
        cwd=Path(__file__).parents[2],
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout)
    print(done.stdout)  # noqa: T201 - the report of a long run, shown by `pytest -rP`
    return told


def check(told: dict[str, Any]) -> None:
    assert told["broken"] == []
    everyone = told["told"]
    assert len(everyone) == READERS + INDEXERS + 2
    readers = [everyone[f"reader {n}"] for n in range(READERS)]
    assert all(r["searches"] >= 1 for r in readers)
    assert sum(r.get("not_synced", 0) for r in readers) == 0, "nobody found the index locked"
    assert sum(r.get("index_rebuilt", 0) + r.get("index_reopened", 0) for r in readers) == 0
    assert everyone["switcher"]["switches"] >= 1


def test_twelve_processes_for_a_few_seconds(tmp_path: Path) -> None:
    check(crowd(tmp_path, 3.0))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twelve_processes_for_two_minutes(tmp_path: Path) -> None:
    told = crowd(tmp_path, LONG_S)
    check(told)
    everyone = told["told"]
    assert all(everyone[f"reader {n}"]["latest"] > 0 for n in range(READERS)), (
        "they saw the beacon move"
    )
    assert everyone["watcher"]["reports"] > 0
