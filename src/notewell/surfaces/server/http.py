"""The HTTP server: the calls as routes, a stream of events, MCP at /mcp, and the page."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from importlib import resources
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from notewell.errors import (
    ChangedError,
    NotewellError,
    NotFoundError,
    NotInstalledError,
    StoreAwayError,
    StoreBusyError,
    UsageError,
)
from notewell.memory import Memory
from notewell.search.profiles import PROFILES
from notewell.surfaces import failures
from notewell.surfaces.arguments import ArgumentError
from notewell.surfaces.server import calls, openapi, page_calls
from notewell.surfaces.server.calls import Call, Param, offered
from notewell.surfaces.server.guard import TOO_LARGE, Door, Guard
from notewell.surfaces.server.upkeep import Events, Upkeep

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOLDER = resources.files("notewell.surfaces.server").joinpath("page")
_PAGE = sorted(file.name for file in _FOLDER.iterdir() if file.name.rpartition(".")[2] in _KINDS)
_STREAM = "application/x-ndjson"
# The legs alone, without what settings change: they are to be there before the final order.
_PHASES = {
    "lexical": {"profile": PROFILES["lexical"]},
    "vector": {"profile": PROFILES["vector"]},
    "final": {},
}
_FINAL = ("fusion", "stages", "explain", "format")  # arguments that only the final phase takes
SEARCHERS = 8


class _Json(Response):
    """A response in UTF-8 JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Its bytes; lone surrogates from a damaged file become question marks."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def failure(error: NotewellError) -> Response:
    """An error as a response with its status."""
    statuses = (
        (NotInstalledError, 501),
        (ChangedError, 409),
        (StoreBusyError, 503),
        (StoreAwayError, 503),
        (NotFoundError, 404),
        (UsageError, 400),
    )
    return _Json(
        failing(error), next((status for kind, status in statuses if isinstance(error, kind)), 500)
    )


def failing(error: NotewellError) -> dict[str, Any]:
    """An error as plain values."""
    return failures.wire(failures.code_of(error), str(error), calls.hint(error))


class Api:
    """The routes of one memory."""

    def __init__(self, memory: Memory, events: Events, *, read_only: bool = False) -> None:
        self.memory = memory
        self.events = events
        self.calls = [*offered(read_only=read_only), *page_calls.offered(read_only=read_only)]
        self._seats = anyio.CapacityLimiter(SEARCHERS)

    def routes(self) -> list[Route]:
        """The routes of the calls, the page, the OpenAPI document and the events."""
        made = [
            Route(
                f"/api/{c.name}", self._route(c), methods=["POST"] if c.writes else ["GET", "POST"]
            )
            for c in self.calls
        ]
        made += [
            Route("/" if n == "index.html" else f"/{n}", partial(_file, n), methods=["GET"])
            for n in _PAGE
        ]
        rest = {"/openapi.json": self._openapi, "/api/events": self._events}
        return made + [Route(path, answer, methods=["GET"]) for path, answer in rest.items()]

    def _route(self, call: Call) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            try:
                given = await _arguments(call, request)
                if call.name == "search" and _STREAM in request.headers.get("accept", ""):
                    return StreamingResponse(self._phases(call, given), media_type=_STREAM)
                work = partial(call.run, self.memory, given)
                return _Json(
                    await anyio.to_thread.run_sync(
                        work, abandon_on_cancel=True, limiter=self._seats
                    )
                )
            except HTTPException:
                raise
            except Exception as error:  # noqa: BLE001 - a client gets JSON whatever went wrong
                return failure(failures.known(error))

        return answer

    async def _phases(self, call: Call, given: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """One line for keywords at once, one for vectors, and one for the final order."""

        def lines() -> Iterator[bytes]:
            for phase, change in _PHASES.items():
                rest = {k: v for k, v in given.items() if not change or k not in _FINAL}
                try:
                    answer = call.run(self.memory, {**rest, **change})
                except Exception as error:  # noqa: BLE001 - the other phases may still answer
                    answer = failing(failures.known(error))
                yield (
                    json.dumps({"phase": phase, **answer}, ensure_ascii=False).encode(
                        "utf-8", "replace"
                    )
                    + b"\n"
                )

        async for line in iterate_in_threadpool(lines()):
            yield line

    async def _openapi(self, _request: Request) -> Response:
        return _Json(openapi.document(self.calls))

    async def _events(self, _request: Request) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            yield b": notewell\n\n"
            async for event in self.events.listen():
                data = json.dumps(event, ensure_ascii=False)
                yield (
                    f"event: {event['event']}\ndata: {data}\n\n".encode()
                    if event
                    else b": still here\n\n"
                )

        return StreamingResponse(
            stream(), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )


async def _arguments(call: Call, request: Request) -> dict[str, Any]:
    if request.method == "GET":
        query = request.query_params
        return call.checked({name: query.getlist(name) for name in query}, Param.parse)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ArgumentError(
            "the body must be JSON", hint="send it with Content-Type: application/json"
        )
    try:
        given = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ArgumentError("the body is not valid JSON", hint="send one object in UTF-8") from None
    if not isinstance(given, dict):
        raise ArgumentError("the body must be one JSON object", hint='such as {"query": "…"}')
    return call.checked(given)


async def _file(name: str, _request: Request) -> Response:
    kind = _KINDS[name.rpartition(".")[2]]
    data = _FOLDER.joinpath(name).read_bytes()
    return Response(data, media_type=kind, headers={"cache-control": "no-cache"})


async def _unexpected(_request: Request, error: Exception) -> Response:
    return failure(failures.known(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - the only errors that are handled by status
    code, message, hint = {
        404: ("not_found", f"there is nothing at {request.url.path}", "see /openapi.json"),
        405: (
            "wrong_method",
            f"{request.url.path} does not take {request.method}",
            "see /openapi.json",
        ),
        413: ("too_large", TOO_LARGE, "send less"),
    }[error.status_code]
    return _Json(
        {"error": {"code": code, "message": message, "hint": hint}},
        error.status_code,
        error.headers,
    )


def _mcp(
    memory: Memory, *, read_only: bool
) -> tuple[contextlib.AbstractAsyncContextManager[None], Route]:
    """What runs the sessions of MCP clients, and their route; without the package the route says
    what to install.
    """
    if missing := failures.without_mcp():
        return contextlib.nullcontext(), Route(
            "/mcp", partial(_answered, failure(missing)), methods=["GET", "POST"]
        )
    from mcp.server.streamable_http_manager import (  # noqa: PLC0415
        StreamableHTTPASGIApp,
        StreamableHTTPSessionManager,
    )

    from notewell.surfaces.server import mcp  # noqa: PLC0415

    offer = mcp.Offer(read_only=read_only, connectors=True)
    sessions = StreamableHTTPSessionManager(app=mcp.server(memory, offer), stateless=True)
    return sessions.run(), Route("/mcp", StreamableHTTPASGIApp(sessions))


async def _answered(answer: Response, _request: Request) -> Response:
    return answer


def application(
    memory: Memory, door: Door, *, read_only: bool = False, warm: bool = True
) -> ASGIApp:
    """The application behind its guard; with `warm` it also keeps the index up to date."""
    events = Events()
    upkeep = Upkeep(memory, events.tell) if warm else contextlib.nullcontext()
    sessions, route = _mcp(memory, read_only=read_only)
    key = _Json({"key": door.key}, headers={"cache-control": "no-store"})

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with sessions:
            with upkeep:
                yield
                events.close()

    app = Starlette(
        routes=[
            *Api(memory, events, read_only=read_only).routes(),
            route,
            Route("/api/key", partial(_answered, key), methods=["POST"]),
        ],
        lifespan=lifespan,
        exception_handlers={**dict.fromkeys((404, 405, 413), _refused), Exception: _unexpected},
    )
    return Guard(app, door)
