"""Where an engine listens: a name for one workspace with its settings, and a socket in a folder of
the user's.

Where there are no such sockets it is a port of this machine, with a secret in a file that both
sides prove to know.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from notewell.launcher import FOLDERS, absolute

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LONGEST = 100  # bytes of a socket's path; systems allow a few more
_WAITING = 128
_TEMPORARY = "/tmp"  # noqa: S108 - what is made there is checked
_SECRET_BYTES = 32
# What an answer can depend on besides settings: folders of agents and of the user, keys of
# providers, the local day, and who the user is, by which their own notes are known.
VARIABLES = frozenset(
    (
        "HOME",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "TZ",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
        *FOLDERS,
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "VOYAGE_API_KEY",
        "MISTRAL_API_KEY",
        "COHERE_API_KEY",
        "CO_API_KEY",
        "JINA_API_KEY",
        "SUDO_UID",
        "GIT_CONFIG_GLOBAL",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
    )
)
_OWN = "NOTEWELL_"
# known by other means, or of no effect
_BESIDE = ("NOTEWELL_WORKSPACE", "NOTEWELL_TOKEN", "NOTEWELL_ENGINE_ENABLED")


class Peer(NamedTuple):
    """The process at the other end of a socket."""

    pid: int
    owner: int


class Place(NamedTuple):
    """The place of one engine: its folder, its name there, and whether it listens on a socket with
    a path.
    """

    folder: str
    name: str
    local: bool = hasattr(socket, "AF_UNIX")

    @property
    def address(self) -> str:
        """The socket, or the file with the port and the secret."""
        return os.path.join(self.folder, f"{self.name}.{'sock' if self.local else 'port'}")

    @property
    def lock(self) -> str:
        """The file whose lock decides who serves."""
        return os.path.join(self.folder, f"{self.name}.lock")

    @property
    def begun(self) -> str:
        """The file whose time of change tells when an engine was started last."""
        return os.path.join(self.folder, f"{self.name}.start")

    @property
    def host(self) -> str:
        """The file that is there if the engine is a part of a server, which nobody kills for being
        silent.
        """
        return os.path.join(self.folder, f"{self.name}.host")

    @property
    def files(self) -> Sequence[str]:
        """All of these, the lock last."""
        return (self.address, self.begun, self.host, self.lock)

    def connect(self, *, within_s: float) -> socket.socket:
        """A connection to whoever listens; OSError if nobody does, or a stranger."""
        if not self.local:
            return _connect_port(self.address, within_s)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(within_s)
            made.connect(self.address)
            refuse_stranger(made)
        except OSError:
            made.close()
            raise
        return made

    def listen(self) -> socket.socket:
        """A socket that listens here, for nobody but this user; the caller holds the lock, so an
        old one is dead.
        """
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.address)
        if not self.local:
            return _listen_port(self.address)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            made.bind(self.address)
        finally:
            os.umask(before)
        made.listen(_WAITING)
        return made

    def clear(self) -> None:
        """Removes its files; for whoever holds the lock."""
        for file in self.files:
            with contextlib.suppress(OSError):
                os.unlink(file)


class Runtime(NamedTuple):
    """The folder of a user where engines listen, if there is one, and what is wrong with those that
    come first.
    """

    folder: str | None
    refused: Sequence[str]


def name_of(root: str, options: Sequence[str], env: Mapping[str, str]) -> str:
    """The name of the engine for a workspace with these options, of this installation, in this
    environment.
    """
    import hashlib  # noqa: PLC0415

    held = {
        k: v for k, v in env.items() if k in VARIABLES or (k.startswith(_OWN) and k not in _BESIDE)
    }
    told = sorted(f"{k}={absolute(v) if v and k in FOLDERS else v}" for k, v in held.items())
    parts = "\0".join((PACKAGE, sys.prefix, root, *options, "", *told))
    return hashlib.blake2b(parts.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def runtime(env: Mapping[str, str]) -> Runtime:
    """The first folder for engines that nobody but this user can enter; it is made."""
    refused: list[str] = []
    for folder in _candidates(env):
        reason = _unfit(folder)
        if not reason:
            return Runtime(folder, refused)
        refused.append(f"{folder} {reason}")
    return Runtime(None, refused)


def _candidates(env: Mapping[str, str]) -> Iterator[str]:
    """Where the folder may be; anybody can be first in /tmp, but nobody else in a folder of the
    user's.
    """
    if os.name == "nt":
        base = env.get("LOCALAPPDATA", "")
        yield from [os.path.join(base, "notewell", "run")] if os.path.isabs(base) else []
        return
    base = env.get("XDG_RUNTIME_DIR", "") or (
        env.get("TMPDIR", "") if sys.platform == "darwin" else ""
    )
    yield from _below(base, "notewell")
    yield f"{_TEMPORARY}/notewell-{os.geteuid()}"
    yield from _below(env.get("HOME", ""), ".cache", "notewell", "run")


def _below(base: str, *names: str) -> Iterator[str]:
    """A folder below one of the user's, if that is one and the path of a socket there is not too
    long.
    """
    folder = os.path.join(base, *names)
    longest = os.fsencode(Place(folder, "0" * 24).address)
    with contextlib.suppress(OSError):
        if (
            os.path.isabs(base)
            and os.stat(base).st_uid == os.geteuid()
            and len(longest) <= _LONGEST
        ):
            yield folder


def _unfit(folder: str) -> str:
    """Why a folder cannot be one of mode 0700 that belongs to this user; nothing if it is, perhaps
    by now.
    """
    try:
        with contextlib.suppress(FileExistsError):
            os.makedirs(folder, mode=0o700)
        if os.name == "nt":
            return ""
        found = os.lstat(folder)
        if found.st_uid != os.geteuid():
            return f"belongs to another user ({found.st_uid})"
        if not stat.S_ISDIR(found.st_mode):
            return "is not a folder"
        if found.st_mode & 0o077:
            os.chmod(folder, 0o700)
    except OSError as error:
        return f"cannot be made: {error.strerror}"
    return ""


def peer(made: socket.socket) -> Peer | None:
    """Who is at the other end; None where the system does not tell."""
    if hasattr(socket, "SO_PEERCRED"):
        pid, owner, _ = struct.unpack(
            "3i", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        )
        return Peer(pid, owner)
    if sys.platform == "darwin":
        _, owner = struct.unpack_from("2I", made.getsockopt(0, 1, 76))  # LOCAL_PEERCRED
        return Peer(made.getsockopt(0, 2), owner)  # LOCAL_PEERPID
    return None


def is_busy(made: socket.socket) -> bool:
    """Whether the silent process at the other end would go on if the machine let it: a thread of it
    wants to run.

    One that was stopped, has died or waits for itself does not. False where the system does not
    tell.
    """
    if sys.platform != "linux":
        return False
    from notewell.opener import ANYWHERE  # noqa: PLC0415

    with contextlib.suppress(OSError, AttributeError):
        tasks = f"/proc/{peer(made).pid}/task"  # type: ignore[union-attr]
        for task in os.listdir(tasks):
            with contextlib.suppress(FileNotFoundError):
                state = (
                    ANYWHERE.read(f"{tasks}/{task}/stat", most=4096).rpartition(b")")[2].split()[0]
                )
                if state in (b"R", b"D"):
                    return True
    return False


def refuse_stranger(made: socket.socket) -> None:
    """Raises PermissionError if the other end belongs to another user."""
    other = peer(made)
    if other is not None and other.owner != os.geteuid():
        raise PermissionError(f"the process {other.pid} at the other end belongs to another user")


def _listen_port(file: str) -> socket.socket:
    import secrets  # noqa: PLC0415

    from notewell.opener import beside  # noqa: PLC0415

    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.bind(("127.0.0.1", 0))
    made.listen(_WAITING)
    known = f"{made.getsockname()[1]} {secrets.token_hex(_SECRET_BYTES)}"
    beside(file).replace(file, known.encode(), mode=0o600, settled=False)
    return made


def _connect_port(file: str, within_s: float) -> socket.socket:
    """A connection over which both sides have proved that they can read the file."""
    import secrets  # noqa: PLC0415

    port, secret = secret_of(file)
    made = socket.create_connection(("127.0.0.1", port), within_s)
    try:
        nonce = secrets.token_hex(_SECRET_BYTES)
        made.sendall(f"{nonce}\n".encode())
        shown = b""
        while not shown.endswith(b"\n") and (part := made.recv(256)):
            shown += part
        if not secrets.compare_digest(shown.strip(), proof(secret, f"engine {nonce}")):
            raise PermissionError("a stranger listens on the port of the engine")
        made.sendall(proof(secret, f"caller {nonce}") + b"\n")
    except OSError:
        made.close()
        raise
    return made


def secret_of(file: str) -> tuple[int, bytes]:
    """The port and the secret in a file."""
    from notewell.opener import beside  # noqa: PLC0415

    port, _, secret = beside(file).read(file, most=1000).decode("ascii", "replace").partition(" ")
    if not port.isdecimal() or not secret:
        raise ConnectionRefusedError(f"{file} names no port")
    return int(port), secret.encode()


def proof(secret: bytes, text: str) -> bytes:
    """What only somebody who knows the secret can say about a text."""
    import hmac  # noqa: PLC0415

    return hmac.new(secret, text.encode(), "sha256").hexdigest().encode()
