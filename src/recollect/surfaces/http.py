"""The HTTP server: the calls as routes, a stream of events, MCP at /mcp, and the page."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from importlib import resources
from typing import Any, TypeVar

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from recollect.errors import NotFoundError, RecollectError, StoreAwayError, StoreBusyError, UsageError
from recollect.memory import Memory
from recollect.surfaces import calls, openapi
from recollect.surfaces.calls import ArgumentError, Call, offered
from recollect.surfaces.events import Events
from recollect.surfaces.guard import TOO_LARGE, Door, Guard
from recollect.surfaces.upkeep import Upkeep

_T = TypeVar("_T")
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PAGE = ("index.html", "page.css", "page.js", "ask.js", "dom.js", "drawing.js", "knobs.js", "icon.svg")
_STREAM = "application/x-ndjson"
_FINAL = ("fusion", "stages", "explain", "format")  # asked for of the final order alone
SEARCHERS = 8


class _Json(Response):
    """An answer in UTF-8 JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes of it; lone surrogates of a damaged file become question marks."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def failure(error: RecollectError) -> Response:
    """An error as a status and one JSON object."""
    status = 500
    if isinstance(error, StoreBusyError | StoreAwayError):
        status = 503
    elif isinstance(error, NotFoundError):
        status = 404
    elif isinstance(error, UsageError):
        status = 400
    return _Json(failing(error), status)


def failing(error: RecollectError) -> dict[str, Any]:
    """An error as plain values."""
    kind = type(error).__name__.removesuffix("Error")
    code = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind).lstrip("_")
    return {"error": {"code": code, "message": str(error), "hint": calls.hint(error)}}


class Api:
    """The routes over one memory."""

    def __init__(self, memory: Memory, events: Events, *, read_only: bool = False) -> None:
        self.memory = memory
        self.events = events
        self.calls = offered(read_only=read_only)
        self._seats = anyio.CapacityLimiter(SEARCHERS)

    def routes(self) -> list[Route]:
        """All of them."""
        made = [
            Route(f"/api/{c.name}", self._route(c), methods=["POST"] if c.writes else ["GET", "POST"])
            for c in self.calls
        ]
        made += [Route("/" if n == "index.html" else f"/{n}", partial(_file, n), methods=["GET"]) for n in _PAGE]
        made.append(Route("/openapi.json", self._openapi, methods=["GET"]))
        made.append(Route("/api/events", self._events, methods=["GET"]))
        return made

    async def _aside(self, work: Callable[[], _T]) -> _T:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._seats)

    def _route(self, call: Call) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            try:
                given = await _arguments(call, request)
                if call.name == "search" and _STREAM in request.headers.get("accept", ""):
                    return StreamingResponse(self._phases(call, given), media_type=_STREAM)
                return _Json(await self._aside(partial(call.run, self.memory, given)))
            except RecollectError as error:
                return failure(error)

        return answer

    async def _phases(self, call: Call, given: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """Keywords at once, then vectors, then the final order: a line each."""

        def lines() -> Iterator[bytes]:
            for phase, change in (
                ("lexical", {"profile": "lexical"}),
                ("vector", {"profile": "vector"}),
                ("final", {}),
            ):
                bare = (
                    {k: v for k, v in given.items() if k not in ("fusion", "stages", "explain", "format")}
                    if change
                    else given
                )
                try:
                    answer = call.run(self.memory, {**bare, **change})
                except RecollectError as error:
                    answer = failing(error)
                yield json.dumps({"phase": phase, **answer}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"

        async for line in iterate_in_threadpool(lines()):
            yield line

    async def _openapi(self, request: Request) -> Response:
        del request
        return _Json(openapi.document(self.calls))

    async def _events(self, request: Request) -> Response:
        del request

        async def stream() -> AsyncIterator[bytes]:
            yield b": recollect\n\n"
            async for event in self.events.listen():
                data = json.dumps(event, ensure_ascii=False)
                yield f"event: {event['event']}\ndata: {data}\n\n".encode() if event else b": still here\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})


async def _arguments(call: Call, request: Request) -> dict[str, Any]:
    if request.method == "GET":
        query = request.query_params
        return call.parsed({name: query.getlist(name) for name in query})
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ArgumentError("the body must be JSON", hint="send it with Content-Type: application/json")
    try:
        given = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ArgumentError("the body is no valid JSON", hint="send one object in UTF-8") from None
    if not isinstance(given, dict):
        raise ArgumentError("the body must be one JSON object", hint='such as {"query": "…"}')
    return call.arguments(given)


async def _file(name: str, request: Request) -> Response:
    del request
    kind = _KINDS[name.rpartition(".")[2]]
    data = resources.files("recollect.surfaces").joinpath("page", name).read_bytes()
    return Response(data, media_type=kind, headers={"cache-control": "no-cache"})


async def _missing(request: Request, error: Exception) -> Response:
    del error
    message = f"there is nothing at {request.url.path}"
    return _Json({"error": {"code": "not_found", "message": message, "hint": "see /openapi.json"}}, 404)


async def _wrong_method(request: Request, error: Exception) -> Response:
    message = f"{request.url.path} does not take {request.method}"
    allowed = getattr(error, "headers", None)
    body = {"error": {"code": "wrong_method", "message": message, "hint": "see /openapi.json"}}
    return _Json(body, 405, headers=allowed)


async def _too_large(request: Request, error: Exception) -> Response:
    del request, error
    return _Json({"error": {"code": "too_large", "message": TOO_LARGE, "hint": "send less"}}, 413)


def server(app: ASGIApp) -> uvicorn.Server:
    """The server of an application: quiet, without the habits that a server behind a proxy needs."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=1 << 19,
    )
    return uvicorn.Server(config)


def application(memory: Memory, door: Door, *, read_only: bool = False, warm: bool = True) -> ASGIApp:
    """The whole server behind its guard; with `warm` it keeps the index up to date beside answering."""
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager  # noqa: PLC0415

    from recollect.surfaces import mcp  # noqa: PLC0415

    events = Events()
    upkeep = Upkeep(memory, events.tell) if warm else contextlib.nullcontext()
    sessions = StreamableHTTPSessionManager(app=mcp.server(memory, read_only=read_only), stateless=True)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            with upkeep:
                yield
                events.close()

    app = Starlette(
        routes=[*Api(memory, events, read_only=read_only).routes(), Route("/mcp", StreamableHTTPASGIApp(sessions))],
        lifespan=lifespan,
        exception_handlers={404: _missing, 405: _wrong_method, 413: _too_large},
    )
    return Guard(app, door)
