"""The commands that keep running: `mcp` for a client on stdin and stdout, `serve` for HTTP and the
page.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from notewell.errors import UsageError
from notewell.memory import Memory
from notewell.surfaces.cli.options import with_memory, workspace_of
from notewell.surfaces.cli.render import one_line
from notewell.surfaces.failures import without_mcp

if TYPE_CHECKING:
    from notewell.surfaces.server.guard import Door

TOKEN = "NOTEWELL_TOKEN"  # noqa: S105 - the name of the variable, not a token
_SHORTEST = 16


@click.command()
@click.option("--read-only", is_flag=True, help="Offer no tools that write.")
@click.option("--expert", is_flag=True, help="List every argument of the tools; agents need fewer.")
@click.option("--cwd", hidden=True)
@with_memory
def mcp(memory: Memory, *, read_only: bool, expert: bool, cwd: str | None, as_json: bool) -> None:
    """Serve MCP on stdin and stdout, to the agent that starts it.

    'notewell install' writes the entry into an agent's settings. 'notewell serve' offers MCP over
    HTTP at /mcp.

    \b
    notewell mcp --workspace ~/notes
    notewell mcp --read-only
    """
    del as_json
    if missing := without_mcp():
        raise missing
    if cwd:  # of the client, where this process works in another folder
        memory.notebook.cwd = Path(cwd)
    _end_on_sigterm()
    from notewell.surfaces.server.upkeep import Upkeep  # noqa: PLC0415 - it loads asyncio

    with Upkeep(memory):  # loads the model and reads the notes while the MCP packages load
        from notewell.surfaces.server.mcp import Offer  # noqa: PLC0415
        from notewell.surfaces.server.stdio import serve_stdio  # noqa: PLC0415

        serve_stdio(memory, Offer(read_only=read_only, expert=expert))


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; one that others can reach needs a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="0 takes any free port.",
)
@click.option(
    "--token-file",
    type=click.Path(),
    help=f"File (mode 0600) with a token of your own (default: {TOKEN}, else one is made).",
)
@click.option(
    "--anyone-on-this-machine",
    "anyone",
    is_flag=True,
    help="Ask for no token: every user of this machine can then read the notes, and change them.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Another host name that clients may use (repeatable).",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--read-only", is_flag=True, help="Offer nothing that writes.")
@with_memory
def serve(
    memory: Memory,
    *,
    host: str,
    port: int,
    token_file: str | None,
    anyone: bool,
    allow_host: Sequence[str],
    opens: bool,
    read_only: bool,
    as_json: bool,
) -> None:
    """Serve the page, the HTTP API and MCP (at /mcp) until Ctrl-C.

    The address that it prints ends in a token, without which nobody gets in. On Linux your own
    programs need none.

    \b
    notewell serve --open
    NOTEWELL_TOKEN=... notewell serve --host 0.0.0.0
    """
    del as_json
    from notewell.surfaces.server.guard import Door  # noqa: PLC0415
    from notewell.surfaces.server.peer import own_user  # noqa: PLC0415

    local = is_loopback(host)
    token = read_token(token_file)
    if not local and not token:
        hint = f"set {TOKEN}, or give a file of mode 0600 with --token-file"
        raise UsageError(f"other machines can reach {host}, so a token is needed", hint=hint)
    if token and anyone:
        hint = f"leave out --anyone-on-this-machine, or {TOKEN} and --token-file"
        raise UsageError(
            "you gave a token and also --anyone-on-this-machine; use only one of them", hint=hint
        )
    door = Door(
        token=token,
        # Who gives a token wants it asked for, and behind another name a program lets others in.
        uid=own_user() if local and not token and not allow_host else None,
        anyone=anyone,
        loopback=local,
        names=tuple(allow_host),
    )
    listening = _listen(host, port)
    address = _address(listening, host)
    _announce(memory, door, address, read_only=read_only)
    if opens:
        # A browser in the terminal ends only when it is closed.
        threading.Thread(target=_show, args=(address, door), daemon=True).start()
    from notewell.surfaces.server.http import application  # noqa: PLC0415 - slow, so after the address
    from notewell.surfaces.server.limits import server  # noqa: PLC0415

    _end_on_sigterm()
    app = application(memory, door, read_only=read_only)
    with _engine(memory):
        server(app).run(sockets=[listening])


def _address(listening: socket.socket, host: str) -> str:
    """The address of the page, by number: localhost may be somebody else's too."""
    bound, port = listening.getsockname()[:2]
    name = bound if is_loopback(host) else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


def _announce(memory: Memory, door: Door, address: str, *, read_only: bool) -> None:
    """Says where the page is, with the key where that is asked for and only this user reads it."""
    asked = not door.token and not door.anyone
    kept = asked and _goes_to_a_file()
    shown = f"{address}#token={door.key}" if asked and not kept else address
    click.echo(f"notewell serves {one_line(str(memory.root))} at {shown}", err=True)
    if kept and door.uid is None:
        told = f"its token is not written to a file; start it in a terminal, or set {TOKEN}"
        click.echo(f"note: {told}", err=True)
    if door.anyone:
        can = "read these notes" if read_only else "read and change these notes"
        click.secho(f"warning: every user of this machine can {can} there", err=True, fg="yellow")


def _goes_to_a_file() -> bool:
    """Whether what is printed stays in a file, which others may be able to read."""
    try:
        return stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _show(address: str, door: Door) -> None:
    """Opens the page in the browser; no command line that others can read holds its key."""
    from notewell.launcher import show_page  # noqa: PLC0415

    if not show_page(address, address if door.anyone else f"{address}#token={door.key}"):
        click.echo("note: no browser could be started; open the address above", err=True)


def _engine(memory: Memory) -> AbstractContextManager[None]:
    """Lets other commands of this workspace be answered by this process, where that is wanted."""
    from notewell.surfaces.engine.daemon import hosted  # noqa: PLC0415
    from notewell.surfaces.engine.thin import options_of, place_of  # noqa: PLC0415

    given = click.get_current_context().params
    options = given["given"], given["index_path"], given["model"]
    place = (
        place_of(str(memory.root), options_of(*options), os.environ)
        if memory.settings.engine.enabled
        else None
    )
    if place is None:
        return nullcontext()
    return hosted(memory, workspace_of(str(memory.root), *options), place, os.environ)


def _end_on_sigterm() -> None:
    """Exits with 0 at once: writes are atomic, so nothing needs to be closed, and no hanging thread
    is waited for.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(file: str | None) -> str:
    """The token from a file that only its owner can read, else from the environment, else an empty
    text.
    """
    token = os.environ.get(TOKEN, "")
    if file:
        try:
            mode = Path(file).stat().st_mode
            token = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"the token file {file} cannot be read: {error}", hint="give another file"
            ) from error
        if os.name != "nt" and stat.S_IMODE(mode) & 0o077:
            raise UsageError(
                f"other users can read the token file {file}", hint=f"chmod 600 {file}"
            )
    if (file or token) and (
        len(token) < _SHORTEST or not token.isascii() or any(c.isspace() for c in token)
    ):
        hint = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise UsageError(
            f"a token must have at least {_SHORTEST} ASCII characters and no spaces", hint=hint
        )
    return token


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # On Windows, SO_REUSEADDR would let another program take the port while we listen.
    if sys.platform == "win32":
        made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        # A client may connect as soon as the address is printed; it waits until all is loaded.
        made.listen(128)
    except OSError as error:
        made.close()
        hint = "choose another --port, or 0 for any free one"
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}", hint=hint) from error
    return made
