"""The OpenAPI document of the HTTP server, made from the same rows as its routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recollect import __version__
from recollect.surfaces import shapes
from recollect.surfaces.calls import ADDRESS, Call, Param

_REFUSALS = {
    400: "an argument is wrong; the message says which and what would be right",
    401: "the token is missing or wrong",
    403: "another site's page asked",
    404: "nothing has that name",
    413: "the body is too large",
    421: "the Host is not this server's",
    429: "too many requests",
    500: "the index cannot be read or written",
    503: "the index is busy",
}


def _responses(schema: Mapping[str, Any], *, streams: bool) -> dict[str, Any]:
    fine: dict[str, Any] = {"application/json": {"schema": schema}}
    if streams:
        fine["application/x-ndjson"] = {"schema": {"type": "string"}}
    refused = {"application/json": {"schema": shapes.ERROR}}
    codes = {str(code): {"description": words, "content": refused} for code, words in _REFUSALS.items()}
    return {"200": {"description": "the answer", "content": fine}, **codes}


def _parameter(param: Param) -> dict[str, Any]:
    schema = {k: v for k, v in param.schema().items() if k != "description"}
    if "maxLength" in schema:
        schema["maxLength"] = min(schema["maxLength"], ADDRESS)
    return {
        "name": param.name, "in": "query", "required": param.required, "description": param.doc, "schema": schema,
    }  # fmt: skip


def operation(call: Call, method: str) -> dict[str, Any]:
    """One route of a call."""
    streams = call.name == "search"
    made: dict[str, Any] = {
        "operationId": f"{call.name}_{method}",
        "summary": call.title,
        "description": call.doc,
        "responses": _responses(call.shape, streams=streams),
    }
    if method == "get":
        made["parameters"] = [_parameter(p) for p in call.params]
    else:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": call.schema()}}}
    return made


def document(calls: Iterable[Call]) -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, Any] = {}
    for call in calls:
        methods = ("post",) if call.writes else ("get", "post")
        paths[f"/api/{call.name}"] = {m: operation(call, m) for m in methods}
    return {
        "openapi": "3.1.0",
        "info": {"title": "recollect", "version": __version__, "description": "Memory search on this machine."},
        "paths": paths,
    }
