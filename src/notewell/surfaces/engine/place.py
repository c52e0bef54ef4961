"""Where an engine listens: a name for one workspace with its settings, and a socket in a folder of the user's.

Where there are no such sockets it is a port of this machine, with a secret in a file that both sides prove to know.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LONGEST = 100  # bytes of a socket's path; systems allow a few more
_WAITING = 128
_SECRET_BYTES = 32
# What an answer can depend on besides settings: folders of agents and of the user, keys of providers, the local day.
VARIABLES = frozenset((
    "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TZ", "SSL_CERT_FILE",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "OPENCLAW_STATE_DIR", "COPILOT_HOME", "QWEN_HOME",
    "QWEN_RUNTIME_DIR", "GOOSE_PATH_ROOT", "HERMES_HOME", "CLINE_DATA_DIR",
    "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY", "MISTRAL_API_KEY", "COHERE_API_KEY",
    "CO_API_KEY", "JINA_API_KEY",
))  # fmt: skip
_OWN = "NOTEWELL_"
_BESIDE = ("NOTEWELL_WORKSPACE", "NOTEWELL_TOKEN", "NOTEWELL_ENGINE_ENABLED")  # known by other means, or of no effect


class Peer(NamedTuple):
    """The process at the other end of a socket."""

    pid: int
    owner: int


class Place(NamedTuple):
    """The place of one engine: its folder, its name there, and whether it listens on a socket with a path."""

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
        """The file that is there if the engine is a part of a server, which nobody kills for being silent."""
        return os.path.join(self.folder, f"{self.name}.host")

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
        """A socket that listens here, for nobody but this user; the caller holds the lock, so an old one is dead."""
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


def name_of(root: str, options: Sequence[str], env: Mapping[str, str]) -> str:
    """The name of the engine for a workspace with these options, of this installation, in this environment."""
    import hashlib  # noqa: PLC0415

    held = sorted(f"{k}={v}" for k, v in env.items() if k in VARIABLES or (k.startswith(_OWN) and k not in _BESIDE))
    parts = "\0".join((PACKAGE, sys.prefix, root, *options, "", *held))
    return hashlib.blake2b(parts.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def runtime_folder(env: Mapping[str, str]) -> str | None:
    """The user's folder for engines, which nobody else can enter; None if there is no such folder."""
    if os.name == "nt":
        base = env.get("LOCALAPPDATA", "")
        return _own(os.path.join(base, "notewell", "run")) if os.path.isabs(base) else None
    base = env.get("XDG_RUNTIME_DIR", "") or (env.get("TMPDIR", "") if sys.platform == "darwin" else "")
    with contextlib.suppress(OSError):
        path = os.path.join(base, "notewell")
        fits = len(os.fsencode(Place(path, "0" * 24).address)) <= _LONGEST
        if os.path.isabs(base) and os.stat(base).st_uid == os.geteuid() and fits:
            return _own(path)
    return _own(f"/tmp/notewell-{os.geteuid()}")  # noqa: S108 - made and checked below


def _own(folder: str) -> str | None:
    """A folder of mode 0700 that belongs to this user, made if it is missing."""
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileExistsError):
            os.makedirs(folder, mode=0o700)
        if os.name == "nt":
            return folder
        found = os.lstat(folder)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            if found.st_mode & 0o077:
                os.chmod(folder, 0o700)
            return folder
    return None


def peer(made: socket.socket) -> Peer | None:
    """Who is at the other end; None where the system does not tell."""
    if hasattr(socket, "SO_PEERCRED"):
        pid, owner, _ = struct.unpack("3i", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return Peer(pid, owner)
    if sys.platform == "darwin":
        _, owner = struct.unpack_from("2I", made.getsockopt(0, 1, 76))  # LOCAL_PEERCRED
        return Peer(made.getsockopt(0, 2), owner)  # LOCAL_PEERPID
    return None


def is_busy(made: socket.socket) -> bool:
    """Whether the silent process at the other end would go on if the machine let it: a thread of it wants to run.

    One that was stopped, has died or waits for itself does not. False where the system does not tell.
    """
    if sys.platform != "linux":
        return False
    from notewell.opener import ANYWHERE  # noqa: PLC0415

    with contextlib.suppress(OSError, AttributeError):
        tasks = f"/proc/{peer(made).pid}/task"  # type: ignore[union-attr]
        for task in os.listdir(tasks):
            with contextlib.suppress(FileNotFoundError):
                state = ANYWHERE.read(f"{tasks}/{task}/stat", most=4096).rpartition(b")")[2].split()[0]
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
