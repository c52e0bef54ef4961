"""Starting an engine in the background, where there is reason to, and ending one that hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from notewell.opener import beside
from notewell.surfaces.engine.attach import SILENCE_S, NoAnswerError, attach
from notewell.surfaces.engine.place import Place, peer, runtime_folder
from notewell.surfaces.engine.thin import place_of
from notewell.surfaces.hooks.deadline import detached

MOST = 4  # engines of one user; whoever comes later does without
SOON_S = 3.0
_HUNG_S = 5.0


def launch(root: str, options: Sequence[str], env: Mapping[str, str], *, indexed: bool) -> int | None:
    """Starts an engine and returns its process id, or 0 if somebody has just started one.

    None where settings, the index or other engines say no. With `indexed`, there must be an index.
    """
    from notewell.settings import load  # noqa: PLC0415

    settings = load(Path(root), env=env, flags=flags_of(options))
    if not settings.engine.enabled or any(map(_is_relative, (settings.embed.model, *settings.embed.chain))):
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
    command = ["engine", "run", "--workspace", root, *options, "--folder", place.folder]
    return detached([sys.executable, "-m", "notewell", *command])


def _is_begun(place: Place) -> bool:
    """Whether an engine was started here a moment ago; if not, one is now."""
    with contextlib.suppress(FileNotFoundError):
        if 0 <= time.time() - os.stat(place.begun).st_mtime < SOON_S:
            return True
    beside(place.begun).replace(place.begun, b"", mode=0o600, writer=str(os.getpid()), settled=False)
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
        flags |= index_flags(value) if name == "--index" else {"embed.model": value} if name == "--model" else {}
    return flags


def _is_relative(model: str) -> bool:
    """Whether a model is a path that depends on the current folder, which an engine does not share with its callers."""
    return model.startswith(".") or (model.lower().endswith(".gguf") and not os.path.isabs(os.path.expanduser(model)))


def places(env: Mapping[str, str]) -> list[Place]:
    """The places where an engine of this user listens, or did until it was killed."""
    folder = runtime_folder(env)
    end = Place("", "").address
    names = os.listdir(folder) if folder else []
    return [Place(folder or "", name.removesuffix(end)) for name in sorted(names) if name.endswith(end)]


def living(env: Mapping[str, str]) -> list[Place]:
    """The places where an engine listens now; what a killed one has left is removed."""
    return [place for place in places(env) if not _is_dead(place)]


def _is_dead(place: Place) -> bool:
    try:
        place.connect(within_s=SILENCE_S).close()
    except (ConnectionRefusedError, FileNotFoundError):
        from notewell.store.lock import locked  # noqa: PLC0415

        with locked(Path(place.lock), wait_s=0.0) as mine:  # one that is being started holds it
            if mine:
                Path(place.address).unlink(missing_ok=True)
            return mine
    except OSError:
        return False
    return False


def end_hung(place: Place) -> bool:
    """Ends an engine that holds its place and has not said a word for some seconds; returns whether it did."""
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
    """Kills the engine at a place, but no server that is one; only a process of this user is reached there at all."""
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
