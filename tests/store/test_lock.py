from __future__ import annotations

import errno
import fcntl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from notewell.errors import StoreError
from notewell.store import lock
from notewell.store.lock import locked


def test_one_holder_at_a_time_and_free_when_done(tmp_path: Path) -> None:
    path = tmp_path / "index.lock"
    with locked(path, wait_s=0.0) as first, locked(path, wait_s=0.0) as second:
        assert (first, second) == (True, False)
    with locked(path, wait_s=0.0) as again:
        assert again
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_waiting_ends_when_the_holder_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "index.lock"
    code = (
        "import sys; from pathlib import Path; from notewell.store.lock import locked\n"
        "with locked(Path(sys.argv[1]), wait_s=0) as mine:\n"
        "    print(mine, flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "True\n"
    with locked(path, wait_s=0.0) as mine:
        assert not mine
    holder.kill()
    with locked(path, wait_s=60.0) as mine:
        assert mine, "a process that died holds nothing"
    holder.communicate()


def test_an_index_in_memory_needs_no_lock() -> None:
    with locked(None, wait_s=0.0) as mine:
        assert mine


def test_a_lock_that_cannot_be_made_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match="cannot be written") as caught,
        locked(tmp_path / "no" / "lock", wait_s=0.0),
    ):
        pass
    assert caught.value.hint


def test_a_file_system_without_locks_does_not_stop_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with locked(tmp_path / "index.lock", wait_s=0.0) as mine:
        assert mine


def test_a_lock_costs_no_import_before_it_is_taken() -> None:
    code = "import sys, notewell.memory; print('filelock' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_a_lock_whose_file_was_removed_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last holder may take it away, while another one has opened it already."""
    path = tmp_path / "engine.lock"
    first = lock._within
    removed: list[bool] = []

    def removing(handle: int, until: float) -> bool:
        if not removed:
            path.unlink()
            removed.append(True)
        return first(handle, until)

    monkeypatch.setattr(lock, "_within", removing)
    with locked(path, wait_s=0.0) as mine, locked(path, wait_s=0.0) as other:
        assert (mine, other) == (True, False)


def test_a_crowd_that_removes_the_file_lets_one_in_at_a_time(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from notewell.store.lock import locked\n"
        "path, inside = Path(sys.argv[1]), sys.argv[1] + '.inside'\n"
        "for _ in range(100):\n"
        "    with locked(path, wait_s=60.0) as mine:\n"
        "        assert mine\n"
        "        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))\n"
        "        os.unlink(inside)\n"
        "        path.unlink()\n"
    )
    crowd = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "engine.lock")])
        for _ in range(3)
    ]
    assert [one.wait(timeout=60) for one in crowd] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []
