"""Requests to one provider: repeated where that helps, else one sentence that says what went wrong.

Below are the four wire formats: the request for some texts, and where the rows are in the answer.
"""

from __future__ import annotations

import base64
import json
import math
import random
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from notewell.embed.breaker import QUOTA_HINT
from notewell.embed.remote.client import (
    MAX_ANSWER_BYTES,
    Answer,
    CallError,
    Client,
    address,
    redacted,
)
from notewell.embed.remote.presets import Model, Preset
from notewell.errors import EmbedderError, QuotaError, SettingsError
from notewell.types import Media, Role

ATTEMPTS = 6
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_AGAIN = frozenset((408, 409, 425, 429))
_REFUSED = frozenset((400, 413, 422))
_LONGEST_MESSAGE = 300
# How providers report a used-up budget, or a daily or monthly quota, as opposed to a limit per
# minute.
_QUOTA = re.compile(
    r"(?i)insufficient[_ ](?:quota|balance|credit|funds)|billing_(?:hard_limit|not_active)|"
    r"out of credits?|"
    r"(?:calls?|requests?|tokens?) ?(?:/|per) ?(?:month|day)|"
    r"(?:monthly|daily) (?:limit|quota|usage)|PerDay|credit balance|payment required"
)
_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')


class RefusedError(EmbedderError):
    """The provider refuses this request; it may accept a smaller or a different one."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Provider:
    """A preset with its address, key and timeouts; no repr, error or log contains the key."""

    def __init__(
        self,
        preset: Preset,
        *,
        url: str = "",
        key: str = "",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
        patience_s: float = 3.0,
        client: Client | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`patience_s` is how long it takes a provider that has not answered yet to be taken for
        dead.
        """
        self.preset = preset
        self.url = (url or preset.url).rstrip("/")
        self.timeout_s = timeout_s
        self.patience_s = patience_s
        self.clock = clock
        self._alive = False
        self._headers = {"User-Agent": "notewell", **(headers or {})}
        self._has_key = bool(key)
        if key:
            name = "x-goog-api-key" if preset.shape == "gemini" else "Authorization"
            self._headers[name] = key if preset.shape == "gemini" else f"Bearer {key}"
        self._secrets = [s for s in (key, *(headers or {}).values()) if s]
        if any(not s.isascii() or not s.isprintable() for s in self._secrets):
            raise SettingsError(
                f"the key of {preset.name} contains invalid characters",
                hint=f"check {self._key_name}",
            )
        try:
            self.host = address(self.url).hostname or ""
        except CallError as error:
            raise SettingsError(
                f"embed.url: {error}", hint='for example "https://example.org/v1"'
            ) from None
        self._client = client or Client(secrets=self._secrets)
        self._wait = wait
        self._jitter = jitter
        self._stops: weakref.WeakSet[threading.Event] = weakref.WeakSet()
        self._closed = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Provider({self.preset.name!r}, {self.url!r})"

    @property
    def _key_name(self) -> str:
        return self.preset.keys[0] if self.preset.keys else "embed.key"

    def stopper(self) -> threading.Event:
        """An event that ends the pauses between attempts; closing the provider sets it too."""
        stop = threading.Event()
        with self._lock:
            self._stops.add(stop)
            if self._closed:
                stop.set()
        return stop

    def cut(self) -> None:
        """Ends the calls and pauses in progress; later calls are possible."""
        with self._lock:
            stops = list(self._stops)
        for stop in stops:
            stop.set()
        self._client.cancel()

    def close(self) -> None:
        """Ends all calls and pauses at once, for good."""
        with self._lock:
            self._closed = True
        self.cut()
        self._client.close()

    def error(
        self, reason: str, *, hint: str = "", kind: type[EmbedderError] = EmbedderError
    ) -> EmbedderError:
        """An error that names this provider, without its key."""
        message = f"{self.preset.name} at {self.host}: {redacted(reason, self._secrets)}"
        return kind(message, hint=hint or "check embed.url and embed.model")

    def json(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        until: float,
        stop: threading.Event,
        attempts: int = ATTEMPTS,
    ) -> Any:
        """The answer to a JSON request, parsed."""
        data = None if body is None else json.dumps(body).encode("utf-8", "replace")
        return self.parsed(
            self.ask(method, path, data=data, until=until, stop=stop, attempts=attempts).body
        )

    def parsed(self, data: bytes) -> Any:
        """A body as JSON."""
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            start = data[:40].decode("utf-8", "replace")
            raise self.error(f"its answer is not valid JSON: it begins with {start!r}") from None

    def ask(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        kind: str = "application/json",
        until: float,
        stop: threading.Event,
        max_bytes: int = MAX_ANSWER_BYTES,
        attempts: int = ATTEMPTS,
    ) -> Answer:
        """An answer with a good status by `until`, after several attempts if they may help.

        One that nobody answers, or that is out of order from the start, is not asked again for
        long.
        """
        begun = self.clock()
        headers = {**self._headers, **({"Content-Type": kind} if data is not None else {})}
        for attempt in range(1, attempts + 1):
            left = until - self.clock()
            if stop.is_set():
                raise self.error("it was cancelled")
            if left <= 0:
                raise self.error(
                    "there is no time left for a request",
                    hint="allow more time with embed.timeout_s",
                )
            times = {"timeout_s": min(self.timeout_s, left), "connect_s": self.patience_s}
            limits: Any = {**times, "max_bytes": max_bytes}
            found = self._once(method, self.url + path, body=data, headers=headers, **limits)
            if isinstance(found, Answer):
                return found
            failure, pause = found
            if attempt == attempts:
                break
            if pause is None:
                pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (attempt - 1)) * (
                    0.5 + self._jitter()
                )
                if not self._alive and self.clock() + pause >= begun + self.patience_s:
                    break
            if self.clock() + pause >= until:
                wait = (
                    f"it would take another {pause:.0f} s"
                    if pause >= 0.5
                    else "there is no time to ask again"
                )
                raise self.error(f"{failure}; {wait}", hint=self._down_hint())
            if self._wait(stop, pause):
                raise self.error("it was cancelled")
        times_asked = "1 attempt" if attempt == 1 else f"{attempt} attempts"
        raise self.error(f"{failure}; gave up after {times_asked}", hint=self._down_hint())

    def _once(self, method: str, url: str, **request: Any) -> Answer | tuple[str, float | None]:
        """A good answer, or a failure that may pass and the pause the server asks for; raises other
        failures.
        """
        try:
            answer = self._client.call(method, url, **request)
        except CallError as error:
            if not error.again or self._closed:
                raise self.error(str(error)) from None
            return str(error), None
        self._alive = self._alive or answer.status < 500
        return answer if answer.status < 300 else (self._failure(answer), _asked_pause_s(answer))

    def _down_hint(self) -> str:
        if self.preset.name in ("ollama", "lmstudio"):
            return f"start {self.preset.name}, or choose another model with embed.model"
        return "try again later, or choose another model with embed.model"

    def _failure(self, answer: Answer) -> str:
        """What a bad status means, where another attempt may help; raises where it does not."""
        text = answer.body[:20_000].decode("utf-8", "replace")
        try:
            detail = message_of(json.loads(text))
        except (ValueError, RecursionError):
            detail = ""
        detail = redacted(" ".join(detail.split())[:_LONGEST_MESSAGE], self._secrets)
        status = answer.status
        reason = f"it answered {status} {answer.reason}" + (f": {detail}" if detail else "")
        if status == 402 or (status in (403, 429) and _QUOTA.search(text)):
            message = f"the quota is used up ({status})" + (f": {detail}" if detail else "")
            raise self.error(message, hint=QUOTA_HINT, kind=QuotaError)
        if status == 401 or (status in (400, 403) and "API_KEY_INVALID" in text):
            what = "refused the key" if self._has_key else "asks for a key"
            raise self.error(f"it {what} ({status})", hint=f"set {self._key_name} to a valid key")
        if status == 403:
            raise self.error(
                reason, hint=f"check that the key in {self._key_name} may use this model"
            )
        if status == 404:
            pull = f"ollama pull {self.preset.model}, or " if self.preset.name == "ollama" else ""
            raise self.error(reason, hint=f"{pull}check embed.model and embed.url")
        if status in _REFUSED:
            raise RefusedError(detail or reason, status)
        if status in _AGAIN or status >= 500:
            return reason
        raise self.error(reason)


def _asked_pause_s(answer: Answer) -> float | None:
    """The pause a server asks for, if that is a time that ends, such as no `inf`."""
    pause = _wished_s(answer)
    return max(0.0, pause) if pause is not None and math.isfinite(pause) else None


def _wished_s(answer: Answer) -> float | None:
    """What it says: in seconds, as a date by its own clock, or inside the answer."""
    wanted = answer.headers.get("retry-after", "").strip()
    if milliseconds := answer.headers.get("retry-after-ms", ""):
        wanted = (
            str(float(milliseconds) / 1000)
            if milliseconds.replace(".", "", 1).isdecimal()
            else wanted
        )
    try:
        return float(wanted)
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    try:
        then = parsedate_to_datetime(wanted)
        now = (
            parsedate_to_datetime(answer.headers["date"]).timestamp()
            if "date" in answer.headers
            else time.time()
        )
        return then.timestamp() - now
    except (TypeError, ValueError, OverflowError, OSError):
        pass
    found = _DELAY.search(answer.body[:20_000].decode("utf-8", "replace"))
    return float(found[1]) if found else None


def path_of(preset: Preset, model: Model) -> str:
    """The path for embeddings below the base address."""
    if preset.shape == "gemini":
        return f"/{resource(model)}:batchEmbedContents"
    return {"cohere": "/v2/embed", "ollama": "/api/embed"}.get(preset.shape, "/embeddings")


def resource(model: Model) -> str:
    """A model as Gemini names it."""
    return "models/" + model.name.removeprefix("models/")


def body_of(
    preset: Preset, model: Model, texts: Sequence[str], role: Role, *, dim: int = 0
) -> dict[str, Any]:
    """The request for some texts; `dim` asks for shorter vectors than the model's default."""
    options: dict[str, Any] = {}
    if kind := preset.type_of(model, role):
        options[preset.types[0]] = kind
    if dim:
        options[preset.dim_field] = dim
    if preset.shape == "gemini":
        return {"requests": [_gemini(model, text, role, options) for text in texts]}
    name = {"model": model.name} if model.name else {}
    field = "texts" if preset.shape == "cohere" else "input"
    return {**name, field: [model.prefix(role) + text for text in texts], **preset.extra, **options}


def _gemini(model: Model, text: str, role: Role, options: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": model.prefix(role) + text}]
    if model.media and isinstance(text, Media):
        data = base64.b64encode(text.read()).decode()
        parts.append({"inlineData": {"mimeType": text.mime, "data": data}})
    return {"model": resource(model), "content": {"parts": parts}, **options}


def rows_of(preset: Preset, answer: Any) -> list[Any]:
    """The rows of an answer in the order of the texts; ValueError, TypeError or KeyError if there
    are none.
    """
    if preset.shape == "gemini":
        return [row_of(item["values"]) for item in answer["embeddings"]]
    if preset.shape in ("cohere", "ollama"):
        found = answer["embeddings"]
        return [row_of(item) for item in (found["float"] if preset.shape == "cohere" else found)]
    by_index = {item.get("index", i): item["embedding"] for i, item in enumerate(answer["data"])}
    if sorted(by_index) != list(range(len(answer["data"]))):
        raise ValueError("its rows are numbered wrongly")
    return [row_of(by_index[i]) for i in range(len(by_index))]


def row_of(value: Any) -> Any:
    """One row, from a list of numbers or from base64 of little-endian floats."""
    import numpy as np  # noqa: PLC0415

    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float32)
    row = np.asarray(value, dtype=np.float32)
    if row.ndim != 1:
        raise ValueError("a row is not a list of numbers")
    return row


def message_of(answer: Any) -> str:
    """The message inside an error answer, wherever the provider puts it."""
    if not isinstance(answer, dict):
        return answer if isinstance(answer, str) else ""
    for key in ("error", "message", "detail", "errors"):
        value = answer.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict):
            value = value.get("message") or value.get("msg") or value.get("detail")
        if isinstance(value, str) and value:
            return value
    return ""
