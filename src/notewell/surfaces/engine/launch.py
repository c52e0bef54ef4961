"""Starting an engine in the background, where there is reason to, and ending one that hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.launcher import NOTEWELL, detached
from notewell.model_names import depends_on_folder
from notewell.opener import beside
from notewell.surfaces.engine.attach import SILENCE_S, NoAnswerError, attach
from notewell.surfaces.engine.place import Place, peer, runtime
from notewell.surfaces.engine.thin import place_of

if TYPE_CHECKING:
    from notewell.types import Notice

MOST = 4  # engines of one user; whoever comes later does without
SOON_S = 3.0
_HUNG_S = 5.0


def launch(
    root: str, options: Sequence[str], env: Mapping[str, str], *, indexed: bool
) -> int | None:
    """Starts an engine and returns its process id, or 0 if somebody has just started one.

    None where settings, the index or other engines say no. With `indexed`, there must be an index.
    """
    from notewell.settings import load  # noqa: PLC0415

    settings = load(Path(root), env=env, flags=flags_of(options))
    if not settings.engine.enabled or any(
        map(depends_on_folder, (settings.embed.model, *settings.embed.chain))
    ):
        return None
    if indexed and not settings.index.url:
        from notewell.store.locate import index_path  # noqa: PLC0415 - loaded by now: somebody has searched

        if not index_path(Path(root), settings, env, make=False)[0].is_file():
            return None
    place = place_of(root, options, env)
    if place is None or (len(places(env)) >= MOST and len(living(env)) >= MOST):
        return None
    if _is_begun(place):
        return 0
    return detached(
        [*NOTEWELL, "engine", "run", "--workspace", root, *options, "--folder", place.folder], env
    )


def _is_begun(place: Place) -> bool:
    """Whether an engine was started here a moment ago; if not, one is now."""
    if _was_begun(place):
        return True
    beside(place.begun).replace(
        place.begun, b"", mode=0o600, writer=str(os.getpid()), settled=False
    )
    return False


def _was_begun(place: Place) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return 0 <= time.time() - os.stat(place.begun).st_mtime < SOON_S
    return False


def flags_of(options: Sequence[str]) -> dict[str, str]:
    """The settings that the options of a command line give; they come in pairs."""
    from notewell.settings import index_flags  # noqa: PLC0415

    flags: dict[str, str] = {}
    pairs = list(zip(options[::2], options[1::2], strict=True))
    for value in (value for name, value in pairs if name == "--setting"):
        key, _, given = value.partition("=")
        flags[key.strip()] = given.strip()
    for name, value in pairs:
        flags |= (
            index_flags(value)
            if name == "--index"
            else {"embed.model": value}
            if name == "--model"
            else {}
        )
    return flags


def places(env: Mapping[str, str]) -> list[Place]:
    """The places where an engine of this user listens, or did until it was killed."""
    return [place for place in _remembered(env) if os.path.exists(place.address)]


def _remembered(env: Mapping[str, str]) -> list[Place]:
    """The places of which there is any file."""
    folder = runtime(env).folder
    names = os.listdir(folder) if folder else []
    ends = [os.path.basename(file).removeprefix("x") for file in Place("", "x").files]
    found = {name.removesuffix(end) for name in names for end in ends if name.endswith(end)}
    return [Place(folder or "", name) for name in sorted(found)]


def living(env: Mapping[str, str]) -> list[Place]:
    """The places where an engine listens now; what ended or killed ones have left is removed."""
    return [
        place for place in _remembered(env) if not _is_dead(place) and os.path.exists(place.address)
    ]


def _is_dead(place: Place) -> bool:
    try:
        place.connect(within_s=SILENCE_S).close()
    except (ConnectionRefusedError, FileNotFoundError):
        from notewell.store.lock import locked  # noqa: PLC0415

        with locked(Path(place.lock), wait_s=0.0) as mine:  # one that is being started holds it
            if mine and not _was_begun(place):
                place.clear()
            elif mine:
                Path(place.address).unlink(missing_ok=True)
            return mine
    except OSError:
        return False
    return False


def refused(env: Mapping[str, str]) -> list[Notice]:
    """What keeps engines from the folder where they would listen, such as somebody who made it
    first.
    """
    from notewell.types import Notice  # noqa: PLC0415 - not for a command that an engine answers

    found = runtime(env)
    if not found.refused:
        return []
    hint = "remove it, or set XDG_RUNTIME_DIR to a folder that belongs to you alone"
    so = (
        f"engines listen in {found.folder}"
        if found.folder
        else "there is no engine, and every command starts cold"
    )
    return [Notice("engine_folder", f"{' and '.join(found.refused)}, so {so}", hint)]


def end_hung(place: Place) -> bool:
    """Ends an engine that holds its place and has not said a word for some seconds; returns whether
    it did.
    """
    try:
        attach(place, "status", waits=True, silence_s=_HUNG_S).close()
    except NoAnswerError as error:
        return error.hung and end_process(place)
    return False


def mark(place: Place, *, hosted: bool) -> None:
    """Notes whether the engine, whose lock the caller holds, is a part of a server."""
    with contextlib.suppress(FileNotFoundError):
        if hosted:
            beside(place.host).replace(place.host, b"", mode=0o600, settled=False)
        else:
            os.unlink(place.host)


def end_process(place: Place) -> bool:
    """Kills the engine at a place, but no server that is one; only a process of this user is
    reached there at all.
    """
    if os.path.exists(place.host):
        return False
    with contextlib.suppress(OSError):
        made = place.connect(within_s=_HUNG_S)
        with made:
            found = peer(made)
        if found is not None and found.pid > 0:
            os.kill(found.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
            return True
    return False
