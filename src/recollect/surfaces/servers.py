"""The commands that stay: `mcp` for a client on stdin and stdout, `serve` for HTTP and the page."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.errors import UsageError
from recollect.memory import Memory
from recollect.surfaces.options import with_memory
from recollect.surfaces.upkeep import Upkeep

if TYPE_CHECKING:
    from recollect.surfaces.guard import Door

TOKEN = "RECOLLECT_TOKEN"  # noqa: S105 - the name of the variable, not a token
_SHORTEST = 16


@click.command()
@click.option("--read-only", is_flag=True, help="Leave out the tools that write.")
@with_memory
def mcp(memory: Memory, *, read_only: bool, as_json: bool) -> None:
    """Serve MCP on stdin and stdout, for an agent that starts it.

    'recollect install' writes the entry that starts it; 'recollect serve' serves MCP over HTTP at /mcp.

    \b
    recollect mcp --workspace ~/notes
    recollect mcp --read-only
    """
    del as_json
    _end_on_sigterm()
    with Upkeep(memory):  # the model loads and the notes are read while the protocol's own packages load
        from recollect.surfaces.mcp import serve_stdio  # noqa: PLC0415

        serve_stdio(memory, read_only=read_only)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free one.")
@click.option("--token-file", type=click.Path(), help=f"File (mode 0600) with the token; else {TOKEN}.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further name this server is asked by.")
@click.option("--read-only", is_flag=True, help="Leave out what writes.")
@with_memory
def serve(
    memory: Memory, *, host: str, port: int, token_file: str | None, allow_host: Sequence[str], read_only: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Serve the page, the HTTP API and MCP (at /mcp) until Ctrl-C.

    \b
    recollect serve --port 8765
    RECOLLECT_TOKEN=... recollect serve --host 0.0.0.0
    """
    del as_json
    from recollect.surfaces.guard import Door  # noqa: PLC0415

    local = is_loopback(host)
    token = read_token(token_file)
    if not local and not token:
        raise UsageError(
            f"{host} can be reached by other machines, so a token is needed",
            hint=f"set {TOKEN}, or name a file of mode 0600 with --token-file",
        )
    door = Door(token=token, loopback=local, names=tuple(allow_host))
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"recollect serves {memory.root} at http://{shown}:{listening.getsockname()[1]}/\n")
    sys.stderr.flush()
    _run(memory, door, listening, read_only=read_only)


def _run(memory: Memory, door: Door, listening: socket.socket, *, read_only: bool) -> None:
    from recollect.surfaces.http import application, server  # noqa: PLC0415

    _end_on_sigterm()
    server(application(memory, door, read_only=read_only)).run(sockets=[listening])


def _end_on_sigterm() -> None:
    """Ends with 0 at once: every write is whole or absent, so nothing need be closed and nothing hung is waited for."""

    def end(*_: object) -> None:
        os._exit(0)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(file: str | None) -> str:
    """The token of a file that only its owner can read, else of the environment, else none."""
    token = os.environ.get(TOKEN, "")
    if file:
        try:
            mode = Path(file).stat().st_mode
            token = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the token file {file} cannot be read: {error}", hint="name another") from error
        if os.name != "nt" and stat.S_IMODE(mode) & 0o077:
            raise UsageError(f"others can read the token file {file}", hint=f"chmod 600 {file}")
    if (file or token) and (len(token) < _SHORTEST or not token.isascii() or any(c.isspace() for c in token)):
        raise UsageError(
            f"a token must be at least {_SHORTEST} letters and digits without a space",
            hint='python3 -c "import secrets; print(secrets.token_urlsafe(32))"',
        )
    return token


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(128)  # who reads the address may ask at once: it waits until everything is loaded
    except OSError as error:
        made.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="choose another --port, or 0 for any free one"
        ) from error
    return made


COMMANDS: tuple[click.Command, ...] = (mcp, serve)
