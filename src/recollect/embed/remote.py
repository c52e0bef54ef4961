"""The embedder behind HTTP: packs, splits and pools texts, and isolates the one that a provider refuses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from recollect.embed.presets import PRESETS, Model, Preset
from recollect.embed.provider import Provider, RefusedError
from recollect.embed.shapes import body_of, path_of, rows_of
from recollect.errors import EmbedderError, RejectedError, SettingsError
from recollect.ports import Role, Vectors
from recollect.settings import EmbedSettings, owner_of_address
from recollect.text.chunk import pieces
from recollect.text.words import count_tokens
from recollect.types import Media

QUERY_S = 3.0
_PATIENCE = 4
_ROOM = 0.9
_SMALLEST = 16
_TOO_LONG = re.compile(
    r"too (?:long|large|many tokens)|maximum|max(?:imum)?[_ ]|context|exceed|length|limit", re.IGNORECASE
)
_KNOWN_GOOD = "a short test"


class RemoteEmbedder:
    """A model of a provider. Texts that are too long are split and pooled; a blank one is never sent."""

    def __init__(
        self,
        provider: Provider,
        model: Model,
        *,
        dim: int = 0,
        max_tokens_per_request: int = 8000,
        parallel: int = 4,
        remembered: int = 0,
    ) -> None:
        """`remembered` is the size that rows had before, for a model whose size nobody declares: it saves asking."""
        preset = provider.preset
        if dim and model.dim and dim != model.dim and not model.shortens:
            raise SettingsError(
                f"{model.name} gives {model.dim} numbers and cannot give {dim}", hint="set embed.dim to 0"
            )
        self.provider = provider
        self.model = model
        self.usd_per_million = model.usd_per_million
        self.media = model.media
        self._asked_dim = dim if dim != model.dim else 0
        self._parallel = parallel
        self._tokens_per_request = min(max_tokens_per_request, preset.tokens_per_request)
        self._accepted = False
        self.dim = dim or model.dim
        self.declared = bool(self.dim)
        self.remembered = bool(remembered) and not self.declared
        self.outdated = False
        self.dim = self.dim or remembered or self._measured()
        self.id = _id(provider, model, self.dim)

    def __repr__(self) -> str:
        return f"RemoteEmbedder({self.id!r})"

    def close(self) -> None:
        """Ends every request and pause at once; the embedder cannot be used any more."""
        self.provider.close()

    def embed(self, texts: Sequence[str], role: Role, *, deadline_s: float | None = None) -> Vectors:
        """One unit row per text; a question has three seconds, documents as long as each request takes.

        RejectedError when the provider refuses some texts: it holds the rows of all the others.
        """
        import numpy as np  # noqa: PLC0415

        if deadline_s is None:
            deadline_s = QUERY_S if role == "query" else math.inf
        cut = [self._cut(text, role) for text in texts]
        distinct = list({self._key(part): part for parts in cut for part in parts}.values())
        run = _Run(self, role, self.provider.clock() + deadline_s)
        found = dict(zip(map(self._key, distinct), run.all(list(self._packed(distinct))), strict=True))
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        reasons: dict[int, str] = {}
        for i, parts in enumerate(cut):
            rows = [found[self._key(part)] for part in parts]
            refused = [row for row in rows if isinstance(row, str)]
            if refused:
                reasons[i] = refused[0]
            elif rows:
                out[i] = pooled(rows, [count_tokens(part) for part in parts])
            else:
                out[i, 0] = 1.0  # nothing to read: a fixed row, so that a blank passage is no failure
        if reasons:
            some = next(iter(reasons.values()))
            raise RejectedError(
                f"{self.provider.preset.name} refused {len(reasons)} of {len(texts)} texts: {some}",
                hint="these stay findable by keywords",
                reasons=reasons,
                rows={i: out[i] for i in range(len(texts)) if i not in reasons},
            )
        return out

    def fits(self, text: str) -> bool:
        """Whether a text goes whole into one request, as a batch needs it."""
        return not (isinstance(text, Media) and self.media) and len(self._cut(text, "document")) == 1

    def body(self, texts: Sequence[str]) -> dict[str, Any]:
        """The request for some passages."""
        parts = [part for text in texts for part in self._cut(text, "document")]
        return body_of(self.provider.preset, self.model, parts, "document", dim=self._asked_dim)

    @staticmethod
    def _key(part: str) -> tuple[str, str]:
        return (part, part.location if isinstance(part, Media) else "")

    def _cut(self, text: str, role: Role) -> list[str]:
        """The parts in which a text is sent: itself where it fits, none when it is blank."""
        if isinstance(text, Media) and self.media:
            return [text]
        text = text.encode("utf-8", "replace").decode("utf-8")
        if not text.strip():
            return []
        most = int(min(self.model.max_tokens, self._tokens_per_request) * _ROOM)
        return [p for p in pieces(text, most - count_tokens(self.model.prefix(role))) if p.strip()]

    def _packed(self, parts: Sequence[str]) -> Iterator[list[str]]:
        """Requests: as many texts as fit by number and tokens; a file has one of its own."""
        request: list[str] = []
        tokens = 0
        extra = max(count_tokens(prefix) for prefix in self.model.prefixes)
        for part in parts:
            size = count_tokens(part) + extra
            alone = isinstance(part, Media) and self.media
            full = tokens + size > self._tokens_per_request or len(request) >= self.provider.preset.texts_per_request
            if request and (full or alone):
                yield request
                request, tokens = [], 0
            if alone:
                yield [part]
                continue
            request.append(part)
            tokens += size
        if request:
            yield request

    def _measured(self) -> int:
        """How many numbers a row of this model has, by asking for one."""
        run = _Run(self, "document", self.provider.clock() + self.provider.timeout_s)
        (row,) = run.all([[_KNOWN_GOOD]])
        if isinstance(row, str):
            raise self.provider.error(row)
        return len(row)


class _Run:
    """One call of `embed`: its role, its deadline and what stops it."""

    def __init__(self, embedder: RemoteEmbedder, role: Role, until: float) -> None:
        self.embedder = embedder
        self.provider = embedder.provider
        self.role = role
        self.until = until
        self.stop = self.provider.stopper()

    def all(self, requests: Sequence[list[str]]) -> list[Any]:
        """The rows of all requests in order, several under way at once; for a refused text the reason."""
        try:
            if len(requests) < 2:
                return [row for request in requests for row in self._rows(request)]
            pool = ThreadPoolExecutor(max_workers=min(self.embedder._parallel, len(requests)))  # noqa: SLF001
            try:
                answers = [pool.submit(self._rows, request) for request in requests]
                failed = [a for a in wait(answers, return_when=FIRST_EXCEPTION).done if a.exception()]
                return [row for answer in (failed or answers) for row in answer.result()]
            finally:
                self.stop.set()  # after a failure nobody waits for the others' pauses
                pool.shutdown(wait=False, cancel_futures=True)
        except KeyboardInterrupt:
            self.stop.set()
            self.provider.cut()
            raise
        finally:
            self.provider.release(self.stop)

    def _rows(self, texts: Sequence[str]) -> list[Any]:
        """A row for each text or why there is none; a refused request is halved until one text is left."""
        try:
            return self._asked(texts)
        except RefusedError as error:
            self._make_sure(texts, error)
            if len(texts) > 1:
                half = len(texts) // 2
                return [*self._rows(texts[:half]), *self._rows(texts[half:])]
            return [self._parts(texts[0], error)]
        except OSError as error:
            return [f"its file cannot be read: {error.strerror or error}"] * len(texts)

    def _parts(self, text: str, error: RefusedError) -> Any:
        """A text that is too long for the provider after all, as the mean of its halves."""
        tokens = count_tokens(text)
        long = error.status == 413 or _TOO_LONG.search(str(error)) is not None
        if not long or tokens < _SMALLEST or isinstance(text, Media):
            return str(error)
        parts = [part for part in pieces(text, tokens // 2) if part.strip()]
        rows = [row for part in parts for row in self._rows([part])]
        refused = [row for row in rows if isinstance(row, str)]
        return refused[0] if refused else pooled(rows, [count_tokens(part) for part in parts])

    def _make_sure(self, texts: Sequence[str], error: RefusedError) -> None:
        """Raises when the provider takes no text at all from us: then none of them is to blame."""
        if self.embedder._accepted:  # noqa: SLF001
            return
        try:
            if list(texts) == [_KNOWN_GOOD]:
                raise error
            self._asked([_KNOWN_GOOD])
        except RefusedError as again:
            raise self.provider.error(f"it refused the request ({again.status}): {again}") from None

    def _asked(self, texts: Sequence[str]) -> list[Any]:
        one = self.embedder
        preset = self.provider.preset
        body = body_of(preset, one.model, texts, self.role, dim=one._asked_dim)  # noqa: SLF001
        until = min(self.until, self.provider.clock() + _PATIENCE * self.provider.timeout_s)
        answer = self.provider.json("POST", path_of(preset, one.model), body=body, until=until, stop=self.stop)
        try:
            rows = rows_of(preset, answer)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise self.provider.error(f"its answer holds no rows as it should: {error!r}") from None
        if len(rows) != len(texts):
            raise self.provider.error(f"it answered with {len(rows)} rows for {len(texts)} texts")
        one._accepted = True  # noqa: SLF001
        wrong = [] if one.declared or not one.dim else [len(row) for row in rows if len(row) != one.dim]
        if wrong:
            one.outdated = True
            raise self.provider.error(
                f"it gave {wrong[0]} numbers for a text and {one.dim} before", hint="run: recollect index"
            )
        return [checked(self.provider, row, one.dim) for row in rows]


def _id(provider: Provider, model: Model, dim: int | str) -> str:
    name = model.name.removeprefix("models/") or provider.host
    return f"{provider.preset.name}/{name}@{dim}{provider.preset.manner(model)}"


def checked(provider: Provider, row: Any, dim: int) -> Any:
    """A unit row of the right size, or the reason why a text has none."""
    import numpy as np  # noqa: PLC0415

    if dim and len(row) != dim:
        raise provider.error(
            f"it gave {len(row)} numbers where {dim} were expected",
            hint="look at embed.dim; if the model has changed, give it another name",
        )
    size = float(np.linalg.norm(row.astype(np.float64))) if len(row) else 0.0
    if not math.isfinite(size) or size < 1e-12:
        return "the model gave no usable numbers for it (not a number, or all zero)"
    return (row / size).astype(np.float32)


def pooled(rows: Sequence[Any], weights: Sequence[int]) -> Any:
    """The unit mean of rows, each by the length of its text; one row is itself."""
    import numpy as np  # noqa: PLC0415

    if len(rows) == 1:
        return rows[0]
    mean = np.average(np.stack(rows).astype(np.float64), axis=0, weights=[max(1, w) for w in weights])
    size = float(np.linalg.norm(mean))
    return (mean / size).astype(np.float32) if size > 1e-6 else rows[0]


def remote_embedder(
    name: str, model: str, settings: EmbedSettings, env: Mapping[str, str], *, provider: Provider | None = None,
    known: Sequence[str] = (),
) -> RemoteEmbedder:  # fmt: skip
    """The embedder of a preset; address, headers, size and key of the settings are for the one embed.model names.

    `known` are ids that the index has vectors of, the one that answers first.
    """
    preset = PRESETS[name]
    mine = (owner_of_address(settings) or "http") == name
    chosen = preset.known(model or preset.model)
    asked = provider or _provider(preset, settings if mine else EmbedSettings(timeout_s=settings.timeout_s), env)
    sizes = re.compile(re.escape(_id(asked, chosen, "#")).replace(r"\#", r"(\d+)"))
    return RemoteEmbedder(
        asked,
        chosen,
        remembered=next((int(found[1]) for found in map(sizes.fullmatch, known) if found), 0),
        dim=settings.dim if mine else 0,
        max_tokens_per_request=settings.max_tokens_per_request,
        parallel=settings.parallel,
    )


def _provider(preset: Preset, settings: EmbedSettings, env: Mapping[str, str]) -> Provider:
    key = next((env[k].strip() for k in preset.keys if env.get(k, "").strip()), settings.key.strip())
    if preset.key_needed and not key and not settings.url:
        names = " or ".join(preset.keys)
        raise EmbedderError(f"{preset.name} needs a key", hint=f"set {names}, or embed.key in your own settings file")
    if not (settings.url or preset.url):
        raise SettingsError(
            f"embed.model is {preset.name}, but embed.url is empty", hint="set the base address of the endpoint"
        )
    pairs = (header.partition(":") for header in settings.headers)
    headers = {name.strip(): value.strip() for name, _, value in pairs}
    return Provider(preset, url=settings.url, key=key, headers=headers, timeout_s=settings.timeout_s)


__all__ = ["QUERY_S", "RemoteEmbedder", "checked", "pooled", "remote_embedder"]
