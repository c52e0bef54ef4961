"""The engine itself: one open memory that stays warm, and whoever connects is answered from it.

A lock decides who serves, so a socket that is found under it is dead. Nothing needs to be closed at
the end: writes are atomic, and the system frees the lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from notewell import __version__
from notewell.opener import ANYWHERE
from notewell.settings import WORKSPACE_FILE, Settings, load, user_file
from notewell.store.lock import locked
from notewell.surfaces import failures
from notewell.surfaces.engine.attach import MOST_BYTES, VERSION, Answer
from notewell.surfaces.engine.launch import end_hung, living, mark
from notewell.surfaces.engine.pipe import Pending
from notewell.surfaces.engine.place import Place, proof, refuse_stranger, secret_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notewell.memory import Memory
    from notewell.surfaces.cli.options import Workspace

LINGER_S = 10.0  # after the last window of a host was closed
_BEAT_S = 0.05
_LOOK_S = 5.0
_HELLO_S = 5.0
_ANSWER_S = 30.0
_HANDOVER_S = 2.0
_LAST_ANSWERS_S = 1.0
_AT_ONCE = 4  # calls; more would only take turns, and nobody would hear that they are alive
# told once by a command, and by a memory for as long as it is open
_SOILED = ("index_rebuilt", "index_reopened")


def serve(here: Workspace, place: Place, env: Mapping[str, str]) -> bool:
    """Serves a place until nobody needs it; returns False at once if another engine does."""
    for last_try in (False, True):
        with locked(Path(place.lock), wait_s=_HANDOVER_S) as mine:
            if mine:
                mark(place, hosted=False)
                asyncio.run(Engine(here, place, env).serve())
                return True
        if last_try or not end_hung(place):
            break
    return False


@contextlib.contextmanager
def hosted(memory: Memory, here: Workspace, place: Place, env: Mapping[str, str]) -> Iterator[None]:
    """Lets a server be the engine of its place, with the memory that it has open; where another is
    one, after that.

    Once it has ended it stays so: somebody stopped it, has another version, or changed the
    settings.
    """
    over = threading.Event()
    made: list[Engine] = []

    def run() -> None:
        while not made and not over.is_set():
            with locked(Path(place.lock), wait_s=0.0) as mine:
                if mine:
                    mark(place, hosted=True)
                    made.append(Engine(here, place, env, memory))
                    asyncio.run(made[0].serve())
            over.wait(_LOOK_S)

    threading.Thread(target=run, name="notewell-engine", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        for engine in made:
            engine.leave()


class Engine:
    """One engine; its parts run in the loop of asyncio but for the calls, which have threads.

    With a `memory` it is a part of the server that has it open, and stays as long as that.
    """

    def __init__(
        self, here: Workspace, place: Place, env: Mapping[str, str], memory: Memory | None = None
    ) -> None:
        self._here, self._place, self._env = here, place, env
        self._hosted = memory is not None
        self._files = (user_file(env), here.root / WORKSPACE_FILE)
        # before they are read, so that no change in between is missed
        self._signature = self._sign()
        self._settings: Settings = load(here.root, env=env, flags=here.flags)
        self._memory = memory
        self._ready, self._ended = asyncio.Event(), asyncio.Event()
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="engine")
        self._windows = self._calls = self._answered = 0
        self._begun = time.time()
        self._inode = 0
        # until when, and by whom
        self._wanted = {"search": 0.0, "host": time.monotonic() + self._settings.engine.idle_s}

    async def serve(self) -> None:
        """Listens, opens the memory, and answers until it is not needed or must not answer any
        more.
        """
        loop = asyncio.get_running_loop()
        listening = self._place.listen()
        self._inode = os.stat(self._place.address).st_ino
        if os.name != "nt" and not self._hosted:
            loop.add_signal_handler(signal.SIGTERM, self.end)
        begin = asyncio.start_unix_server if self._place.local else asyncio.start_server
        server = await begin(self._connected, sock=listening, limit=MOST_BYTES)
        opening = loop.run_in_executor(None, self._open, loop)
        opening.add_done_callback(self._opened)
        while not self._ended.is_set() and self._is_needed():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self._pause_s())
        self.end()
        server.close()
        until = time.monotonic() + _LAST_ANSWERS_S
        while self._calls and time.monotonic() < until:
            await asyncio.sleep(_BEAT_S)
        if self._hosted:
            return
        os._exit(0)  # a model that is being loaded, or a sync, is not waited for

    def end(self) -> None:
        """Takes no more calls; those under way get a moment."""
        if not self._ended.is_set():
            self.leave()
        self._ended.set()

    def leave(self) -> None:
        """Lets nobody find it any more."""
        if self._is_ours():
            self._place.clear()

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Opens the memory and begins to watch; what only some callers need is loaded after
        that.
        """
        from notewell.surfaces.engine import answers  # noqa: PLC0415
        from notewell.surfaces.server.upkeep import Upkeep  # noqa: PLC0415

        answers.route_streams()
        memory = self._memory
        if memory is None:
            self._memory = memory = self._here.open()
            Upkeep(memory).__enter__()
        loop.call_soon_threadsafe(self._ready.set)
        import notewell.surfaces.cli.commands  # noqa: PLC0415
        import notewell.surfaces.server.stdio  # noqa: F401, PLC0415 - the MCP packages, which a window waits for
        from notewell.surfaces.hooks import brief, recall  # noqa: F401, PLC0415

        memory.search("ready")  # loads what the first search would wait for
        living(self._env)  # removes what others have left that were killed

    def _warm(self) -> Memory:
        if self._memory is None:
            raise ConnectionError("the memory is not open yet")
        return self._memory

    def _opened(self, done: asyncio.Future[None]) -> None:
        if error := done.exception():
            with contextlib.suppress(Exception):
                failures.record(error, self._env)
            if not self._ready.is_set():
                self.end()

    def _sign(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for file in self._files:
            try:
                held = os.stat(file)
                found.append((held.st_mtime_ns, held.st_size, held.st_ino))
            except OSError:
                found.append(None)
        return found

    def _is_ours(self) -> bool:
        try:
            return os.stat(self._place.address).st_ino == self._inode
        except OSError:
            return False

    def _is_needed(self) -> bool:
        """Whether somebody may still call: the folders are there, as they are not after a logout,
        and not for long.
        """
        late = not self._hosted and time.monotonic() > max(self._wanted.values())
        return (
            self._is_ours()
            and self._here.root.is_dir()
            and not (late and not self._windows and not self._calls)
        )

    def _pause_s(self) -> float:
        return (
            _LOOK_S
            if self._hosted
            else min(_LOOK_S, max(_BEAT_S, max(self._wanted.values()) - time.monotonic()))
        )

    def _used(self, by: str, *, leaving: bool = False) -> None:
        idle_s = self._settings.engine.idle_s
        self._wanted[by] = time.monotonic() + (min(LINGER_S, idle_s) if leaving else idle_s)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(
                OSError, ValueError, KeyError, TypeError, asyncio.IncompleteReadError, TimeoutError
            ):
                await self._greet(reader, writer)
        finally:
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lets in whoever is of this user, and says hello; another version ends this one."""
        if self._place.local:
            refuse_stranger(writer.get_extra_info("socket"))
        elif not await self._prove(reader, writer):
            return
        hello = json.loads(await asyncio.wait_for(reader.readline(), _HELLO_S))
        call, same = hello["call"], hello[VERSION] == __version__
        _say(
            writer,
            {VERSION: __version__, "ready": self._ready.is_set() or call in ("status", "stop")},
        )
        if not same:
            if not hello.get("resumes"):  # an old window must not end the engine of a new version
                self.end()
        elif call == "status":
            _answer(writer, Answer(json.dumps(self._status()).encode(), b""))
        elif call == "stop":
            self.end()
            _answer(writer, Answer(b"", b""))
        elif self._ended.is_set() or self._sign() != self._signature:
            self.end()
            _say(writer, {"declined": "the settings have changed", "ends": True})
        elif call == "mcp":
            await self._window(hello, reader, writer)
        elif self._ready.is_set():
            await self._call(call, hello, writer)
        await writer.drain()

    async def _prove(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, secret = secret_of(self._place.address)
        nonce = (await asyncio.wait_for(reader.readline(), _HELLO_S)).decode("ascii").strip()
        writer.write(proof(secret, f"engine {nonce}") + b"\n")
        shown = (await asyncio.wait_for(reader.readline(), _HELLO_S)).strip()
        return secrets.compare_digest(shown, proof(secret, f"caller {nonce}"))

    async def _call(
        self, call: str, given: Mapping[str, Any], writer: asyncio.StreamWriter
    ) -> None:
        """Answers a search or a hook."""
        from notewell.surfaces.engine import answers  # noqa: PLC0415

        memory = self._warm()
        known: dict[str, Callable[[], Answer]] = {
            "search": lambda: answers.search(memory, given),
            "hook": lambda: answers.hook(memory, given, self._env),
        }
        hook_s = self._settings.hook.deadline_s
        limit_s = hook_s - float(given.get("spent_s", 0.0)) if call == "hook" else _ANSWER_S
        self._calls += 1
        self._used("host" if call == "hook" else call, leaving=given.get("event") == "session-end")
        try:
            done = asyncio.get_running_loop().run_in_executor(self._threads, known[call])
            _answer(writer, await _alive(done, writer, limit_s))
            self._answered += 1
        except answers.DeclinedError as error:
            _say(writer, {"declined": str(error)})
        except TimeoutError as error:
            if call == "hook":  # as late as in a separate process, and as silent
                failures.record(
                    TimeoutError(f"hook {given.get('event')} was not done after {hook_s:g} s"),
                    self._env,
                )
                _answer(writer, Answer(b"", b""))
            else:
                _say(writer, {"declined": f"it takes too long: {error}"})
        finally:
            self._calls -= 1
        if any(notice.code in _SOILED for notice in memory.index.store_notices):
            self.end()

    async def _window(
        self, given: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serves MCP to one client for as long as it stays."""
        from notewell.surfaces.engine.answers import seen_from  # noqa: PLC0415

        self._windows += 1
        try:
            await _alive(asyncio.ensure_future(self._ready.wait()), writer, _ANSWER_S)
            memory = self._warm()

            def made() -> Any:
                from notewell.surfaces.server.mcp import Offer, server  # noqa: PLC0415

                offer = Offer(
                    read_only=bool(given.get("read_only")), expert=bool(given.get("expert"))
                )
                return server(seen_from(memory, str(given["cwd"])), offer)

            one = await _alive(
                asyncio.get_running_loop().run_in_executor(self._threads, made), writer, _ANSWER_S
            )
            _say(writer, {"serves": True})
            from notewell.surfaces.server.stdio import serve_lines  # noqa: PLC0415

            lines = _Lines(reader, writer, self._count)
            beat = asyncio.create_task(lines.beat())
            try:
                await serve_lines(one, lines, lines)
            finally:
                beat.cancel()
        finally:
            self._windows -= 1
            if not self._windows:
                self._used("host", leaving=True)

    def _count(self) -> None:
        self._answered += 1

    def _status(self) -> dict[str, Any]:
        memory = self._memory
        probe = memory.index.looks.probe if memory else None
        doubt = (
            probe.doubt
            if probe
            else "conversations or extra paths are searched"
            if memory
            else "it is being started"
        )
        return {
            "workspace": str(self._here.root),
            "pid": os.getpid(),
            "version": __version__,
            "ready": self._ready.is_set(),
            "seconds": round(time.time() - self._begun),
            "windows": self._windows,
            "answered": self._answered,
            "idle_s": self._settings.engine.idle_s,
            "hosted": self._hosted,
            "looks": doubt,
            "memory_mb": _memory_mb(),
        }


class _Lines:
    """The lines of one client, as the MCP library reads and writes a file; says that it is alive
    while one waits.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[], None]
    ) -> None:
        self._reader, self._writer, self._count = reader, writer, count
        self._pending = Pending()
        self._asked = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[str]:
        # a line that is too long ends the window; its client goes on alone
        with contextlib.suppress(OSError, ValueError):
            while line := await self._reader.readline():
                self._pending.asked(line)
                self._asked.set()
                yield line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        if self._pending.answered(data):
            self._count()
        self._writer.write(data)

    async def flush(self) -> None:
        with contextlib.suppress(OSError):
            await self._writer.drain()

    async def beat(self) -> None:
        """Writes an empty line now and then for as long as a request waits."""
        while True:
            await self._asked.wait()
            await asyncio.sleep(_BEAT_S)
            if self._pending and not self._writer.is_closing():
                self._writer.write(b"\n")
            else:
                self._asked.clear()


async def _alive(work: asyncio.Future[Any], writer: asyncio.StreamWriter, limit_s: float) -> Any:
    """The result of some work; until it is there an empty line now and then says that we are."""
    until = time.monotonic() + limit_s
    while not work.done():
        if time.monotonic() > until:
            raise TimeoutError(f"over {limit_s:g} s")
        await asyncio.wait((work,), timeout=_BEAT_S)
        if not work.done() and not writer.is_closing():  # a caller that is gone gets nothing more
            writer.write(b"\n")
    return work.result()


def _say(writer: asyncio.StreamWriter, message: Mapping[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")


def _answer(writer: asyncio.StreamWriter, answer: Answer) -> None:
    _say(writer, {"out": len(answer.out), "err": len(answer.err)})
    writer.write(answer.out + answer.err)


def _memory_mb() -> float:
    """The memory of this process now; at its highest where the system tells no more, and 0 where it
    tells nothing.
    """
    with contextlib.suppress(OSError):
        pages = int(ANYWHERE.read("/proc/self/statm", most=1000).split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    if sys.platform == "win32":
        return 0.0
    import resource  # noqa: PLC0415

    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 1)
