"""One provider: asks, waits and asks again where that helps, and says in one sentence what went wrong where not."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from recollect.embed.http import MAX_ANSWER_BYTES, Answer, CallError, Client, address, redacted
from recollect.embed.presets import Preset
from recollect.embed.shapes import message_of
from recollect.errors import EmbedderError, QuotaError, SettingsError

ATTEMPTS = 6
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_AGAIN = frozenset((408, 409, 425, 429))
_REFUSED = frozenset((400, 413, 422))
_LONGEST_MESSAGE = 300
# What providers say when money or the allowance of a day or month is gone, unlike a limit per minute.
_SPENT = re.compile(
    r"insufficient[_ ](?:quota|balance|credit|funds)|billing_(?:hard_limit|not_active)|out of credits?|"
    r"(?:calls?|requests?|tokens?) ?(?:/|per) ?(?:month|day)|"
    r"(?:monthly|daily) (?:limit|quota|usage)|PerDay|credit balance|payment required",
    re.IGNORECASE,
)
_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')


class RefusedError(EmbedderError):
    """The provider does not take this request; a smaller or another one it may."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Provider:
    """A preset with the address, key and patience to use it; its repr, errors and logs hold no key."""

    def __init__(
        self,
        preset: Preset,
        *,
        url: str = "",
        key: str = "",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
        client: Client | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.preset = preset
        self.url = (url or preset.url).rstrip("/")
        self.timeout_s = timeout_s
        self.clock = clock
        self._headers = {"User-Agent": "recollect", **(headers or {})}
        self._has_key = bool(key)
        if key:
            name = "x-goog-api-key" if preset.shape == "gemini" else "Authorization"
            self._headers[name] = key if preset.shape == "gemini" else f"Bearer {key}"
        self._secrets = [s for s in (key, *(headers or {}).values()) if s]
        if any(not s.isascii() or not s.isprintable() for s in self._secrets):
            raise SettingsError(f"the key of {preset.name} has characters no key has", hint=f"look at {self._key_name}")
        try:
            self.host = address(self.url).hostname or ""
        except CallError as error:
            raise SettingsError(f"embed.url: {error}", hint='such as "https://example.org/v1"') from None
        self._client = client or Client(secrets=self._secrets)
        self._wait = wait
        self._jitter = jitter
        self._stops: set[threading.Event] = set()
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

    def release(self, stop: threading.Event) -> None:
        """Says that nobody waits for an event any more."""
        with self._lock:
            self._stops.discard(stop)

    def cut(self) -> None:
        """Ends the calls under way; later ones are possible again."""
        self._client.cancel()

    def close(self) -> None:
        """Ends everything under way at once, pauses and sockets alike, for good."""
        with self._lock:
            self._closed = True
            stops = list(self._stops)
        for stop in stops:
            stop.set()
        self._client.close()

    def error(self, reason: str, *, hint: str = "") -> EmbedderError:
        """An error in this provider's name, without its key."""
        said = redacted(reason, self._secrets)
        return EmbedderError(
            f"{self.preset.name} at {self.host}: {said}", hint=hint or "check embed.url and embed.model"
        )

    def json(self, method: str, path: str, *, body: Any = None, until: float, stop: threading.Event) -> Any:
        """The answer to a JSON request, parsed."""
        data = None if body is None else json.dumps(body).encode("utf-8", "replace")
        answer = self.ask(method, path, data=data, until=until, stop=stop)
        return self.parsed(answer.body)

    def parsed(self, data: bytes) -> Any:
        """A body as JSON, or an error that says it is none."""
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            start = data[:40].decode("utf-8", "replace")
            raise self.error(f"its answer is no valid JSON: it begins with {start!r}") from None

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
        """An answer with a good status by `until`, after as many attempts as make sense."""
        headers = {**self._headers, **({"Content-Type": kind} if data is not None else {})}
        for attempt in range(1, attempts + 1):
            left = until - self.clock()
            if left <= 0:
                raise self.error("there was no time left to ask", hint="allow more time with embed.timeout_s")
            limits: Any = {"timeout_s": min(self.timeout_s, left), "max_bytes": max_bytes}
            found = self._once(method, self.url + path, body=data, headers=headers, **limits)
            if isinstance(found, Answer):
                return found
            failure, pause = found
            if attempt == attempts:
                break
            if pause is None:
                pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (attempt - 1)) * (0.5 + self._jitter())
            if self.clock() + pause >= until:
                wait = f"it would take another {pause:.0f} s" if pause >= 0.5 else "there is no time to ask again"
                raise self.error(f"{failure}; {wait}", hint=self._down_hint())
            if self._wait(stop, pause):
                raise self.error("it was cancelled")
        raise self.error(f"{failure}; gave up after {attempts} attempts", hint=self._down_hint())

    def _once(self, method: str, url: str, **request: Any) -> Answer | tuple[str, float | None]:
        """A good answer, or a failure that may pass with how long the server asks to wait; raises at others."""
        try:
            answer = self._client.call(method, url, **request)
        except CallError as error:
            if not error.again or self._closed:
                raise self.error(str(error)) from None
            return str(error), None
        return answer if answer.status < 300 else (self._failure(answer), _asked_pause_s(answer))

    def _down_hint(self) -> str:
        if self.preset.name in ("ollama", "lmstudio"):
            return f"start {self.preset.name}, or choose another model with embed.model"
        return "try again later, or choose another model with embed.model"

    def _failure(self, answer: Answer) -> str:
        """What a bad status means, when asking again may help; raises where it does not."""
        text = answer.body[:20_000].decode("utf-8", "replace")
        try:
            said = message_of(json.loads(text))
        except (ValueError, RecursionError):
            said = ""
        said = redacted(" ".join(said.split())[:_LONGEST_MESSAGE], self._secrets)
        status = answer.status
        reason = f"it answered {status} {answer.reason}" + (f": {said}" if said else "")
        if status == 402 or (status in (403, 429) and _SPENT.search(text)):
            raise QuotaError(
                f"{self.preset.name} at {self.host}: the quota is used up ({status}){': ' + said if said else ''}",
                hint="look at your plan there and run recollect index when it is settled, or set another embed.model",
            )
        if status == 401 or (status in (400, 403) and "API_KEY_INVALID" in text):
            what = f"it refused the key ({status})" if self._has_key else f"it asks for a key ({status})"
            raise self.error(what, hint=f"set {self._key_name} to a valid key")
        if status == 403:
            raise self.error(reason, hint=f"check that the key in {self._key_name} may use this model")
        if status == 404:
            pull = f"ollama pull {self.preset.model}, or " if self.preset.name == "ollama" else ""
            raise self.error(reason, hint=f"{pull}check embed.model and embed.url")
        if status in _REFUSED:
            raise RefusedError(said or reason, status)
        if status in _AGAIN or status >= 500:
            return reason
        raise self.error(reason)


def _asked_pause_s(answer: Answer) -> float | None:
    """How long the server asks to wait: in seconds, as a date against its own clock, or inside the answer."""
    wanted = answer.headers.get("retry-after", "").strip()
    if milliseconds := answer.headers.get("retry-after-ms", ""):
        wanted = str(float(milliseconds) / 1000) if milliseconds.replace(".", "", 1).isdigit() else wanted
    try:
        return max(0.0, float(wanted))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    try:
        then = parsedate_to_datetime(wanted)
        now = parsedate_to_datetime(answer.headers["date"]).timestamp() if "date" in answer.headers else time.time()
        return max(0.0, then.timestamp() - now)
    except (TypeError, ValueError):
        pass
    found = _DELAY.search(answer.body[:20_000].decode("utf-8", "replace"))
    return float(found[1]) if found else None


__all__ = ["ATTEMPTS", "Provider", "RefusedError"]
