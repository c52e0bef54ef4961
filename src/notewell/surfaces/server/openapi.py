"""The OpenAPI document of the HTTP server, made from the same table as its routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from notewell import __version__
from notewell.surfaces import view
from notewell.surfaces.server.calls import ADDRESS, Call, Param

_REFUSALS = {
    400: "an argument is wrong; the message says which and what would be right",
    401: "the token is missing or wrong",
    403: "the request came from another site",
    404: "there is no passage, note or route with that name",
    409: "a note is not as it was when the change was shown; nothing was written",
    413: "the body is too large",
    421: "the Host header does not name this server",
    429: "too many requests",
    500: "the index cannot be read or written",
    503: "the index is busy or cannot be reached",
}


def _responses(schema: Mapping[str, Any], *, streams: bool) -> dict[str, Any]:
    fine: dict[str, Any] = {"application/json": {"schema": schema}}
    if streams:
        fine["application/x-ndjson"] = {"schema": {"type": "string"}}
    refused = {"application/json": {"schema": view.ERROR.schema}}
    codes = {
        str(code): {"description": words, "content": refused} for code, words in _REFUSALS.items()
    }
    return {"200": {"description": "the answer", "content": fine}, **codes}


def _parameter(param: Param) -> dict[str, Any]:
    schema = {k: v for k, v in param.schema().items() if k != "description"}
    if "maxLength" in schema:
        schema["maxLength"] = min(schema["maxLength"], ADDRESS)
    return {
        "name": param.name,
        "in": "query",
        "required": param.required,
        "description": param.doc,
        "schema": schema,
    }


def operation(call: Call, method: str) -> dict[str, Any]:
    """One route of a call."""
    made: dict[str, Any] = {
        "operationId": f"{call.name}_{method}",
        "summary": call.title,
        "description": call.doc,
        "responses": _responses(call.shape.schema, streams=call.name == "search"),
    }
    if method == "get":
        made["parameters"] = [_parameter(p) for p in call.params]
    else:
        made["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": call.schema()}},
        }
    return made


def document(calls: Iterable[Call]) -> dict[str, Any]:
    """The document of these calls."""
    paths: dict[str, Any] = {}
    for call in calls:
        methods = ("post",) if call.writes else ("get", "post")
        paths[f"/api/{call.name}"] = {m: operation(call, m) for m in methods}
    about = "Search your notes and agent memory on this machine."
    info = {"title": "notewell", "version": __version__, "description": about}
    return {"openapi": "3.1.0", "info": info, "paths": paths}
