"""Embeddings over HTTP: packs, splits and pools texts, and isolates a text that a provider
refuses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

from notewell.embed.embedder import Takes
from notewell.embed.remote.presets import PRESETS, Model, Preset
from notewell.embed.remote.provider import Provider, RefusedError, body_of, path_of, rows_of
from notewell.errors import EmbedderError, RejectedError, SettingsError
from notewell.settings import EmbedSettings, owner_of_address
from notewell.text.chunk import pieces
from notewell.text.words import count_tokens
from notewell.types import Media, Role, Vectors

if TYPE_CHECKING:
    from notewell.embed.remote.batches import ProviderBatches

QUERY_S = 3.0
_TIMEOUTS_PER_REQUEST = 4
_FILL = 0.9  # our count of tokens is an estimate
_SMALLEST = 16
_TOO_LONG = re.compile(
    r"(?i)too (?:long|large|many tokens)|maximum|max[_ ]|context|exceed|length|limit"
)
_TEST_TEXT = "a short test"
_T = TypeVar("_T")


class RemoteEmbedder:
    """A model of a provider. Long texts are split and pooled; blank texts are never sent."""

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
        """`remembered` is the size of the rows in the index, for a model of undeclared size: it
        saves a request.
        """
        preset = provider.preset
        if dim and model.dim and dim != model.dim and not model.shortens:
            message = f"{model.name} gives {model.dim} numbers and cannot give {dim}"
            raise SettingsError(message, hint="set embed.dim to 0")
        self.provider = provider
        self.model = model
        self.usd_per_million = model.usd_per_million
        self.media = model.media
        self._prefix_tokens = max(map(count_tokens, model.prefixes))
        self.asked_dim = dim if dim != model.dim else 0
        self.parallel = parallel
        self._tokens_per_request = min(max_tokens_per_request, preset.tokens_per_request)
        self.texts_per_request = preset.texts_per_request
        self.accepted = False
        self.dim = dim or model.dim
        self.declared = bool(self.dim)
        self.remembered = bool(remembered) and not self.declared
        self.outdated = False
        self.dim = self.dim or remembered or self._measured()
        self.id = _id(provider, model, self.dim)

    def __repr__(self) -> str:
        return f"RemoteEmbedder({self.id!r})"

    @property
    def batches(self) -> ProviderBatches | None:
        """The provider's batch jobs, or None where it has none."""
        from notewell.embed.remote.batches import ProviderBatches  # noqa: PLC0415 - only for those who use them

        return ProviderBatches(self) if self.provider.preset.batch else None

    def cut(self) -> None:
        """Ends every request and pause at once; the embedder can be used again."""
        self.provider.cut()

    def close(self) -> None:
        """Ends every request and pause at once; the embedder cannot be used again."""
        self.provider.close()

    def embed(
        self, texts: Sequence[str], role: Role, *, deadline_s: float | None = None
    ) -> Vectors:
        """One unit row per text; a question has three seconds, documents have as long as each
        request takes.

        Raises RejectedError when the provider refuses some texts; the error holds the rows of all
        others. Any other EmbedderError holds the rows that had come until then: they are paid for.
        """
        import numpy as np  # noqa: PLC0415

        if deadline_s is None:
            deadline_s = QUERY_S if role == "query" else math.inf
        cut = [self._cut(text, role) for text in texts]
        distinct = list({self._key(part): part for parts in cut for part in parts}.values())
        run = _Run(self, role, self.provider.clock() + deadline_s)
        groups = list(
            packed(distinct, self._size, self.texts_per_request, self._tokens_per_request)
        )
        answers: dict[int, list[Any]] = {}
        failure: EmbedderError | None = None
        try:
            run.all(groups, answers)
        except EmbedderError as error:
            failure = error
        found = {
            self._key(part): row
            for n, rows in answers.items()
            for part, row in zip(groups[n], rows, strict=True)
        }
        rows, reasons = self._joined(cut, found)
        if failure is not None:
            failure.rows = rows
            raise failure
        if reasons:
            message = f"{self.provider.preset.name} refused {len(reasons)} of {len(texts)} texts: "
            message += next(iter(reasons.values()))
            raise RejectedError(
                message, hint="keyword search still finds them", reasons=reasons, rows=rows
            )
        return (
            np.stack([rows[i] for i in range(len(texts))])
            if texts
            else np.zeros((0, self.dim), dtype=np.float32)
        )

    def _joined(
        self, cut: Sequence[list[str]], found: Mapping[Any, Any]
    ) -> tuple[dict[int, Any], dict[int, str]]:
        """The rows of texts, made of those of their parts, and why others were refused, by their
        place.

        A text has neither if a part of it is not found.
        """
        import numpy as np  # noqa: PLC0415

        rows: dict[int, Any] = {}
        reasons: dict[int, str] = {}
        for i, parts in enumerate(cut):
            own = [found.get(self._key(part)) for part in parts]
            refused = [row for row in own if isinstance(row, str)]
            if refused:
                reasons[i] = refused[0]
            elif not own:
                rows[i] = np.eye(1, self.dim, dtype=np.float32)[0]  # a blank text is not a failure
            elif all(row is not None for row in own):
                rows[i] = pooled(own, [count_tokens(part) for part in parts])
        return rows, reasons

    def room(self, rounds: int) -> Takes:
        """Takes passages until the requests that run at once are full, so many times over."""
        packing = _Packing(self.texts_per_request, self._tokens_per_request)
        most = rounds * self.parallel

        def takes(text: str) -> bool:
            for part in self._cut(text, "document"):
                packing.begins(self._size(part))
            return packing.groups <= most

        return takes

    def _size(self, part: str) -> float:
        """The tokens of a part with its prefix; a media file fills a request alone."""
        if isinstance(part, Media) and self.media:
            return math.inf
        return count_tokens(part) + self._prefix_tokens

    def fits(self, text: str) -> bool:
        """Whether a text fits into one request, as a batch needs it."""
        return (
            not (isinstance(text, Media) and self.media) and len(self._cut(text, "document")) == 1
        )

    def body(self, texts: Sequence[str]) -> dict[str, Any]:
        """The request for some passages."""
        parts = [part for text in texts for part in self._cut(text, "document")]
        return body_of(self.provider.preset, self.model, parts, "document", dim=self.asked_dim)

    @staticmethod
    def _key(part: str) -> tuple[str, str]:
        return (part, part.location if isinstance(part, Media) else "")

    def _cut(self, text: str, role: Role) -> list[str]:
        """The parts in which a text is sent: one if it fits, none if it is blank."""
        if isinstance(text, Media) and self.media:
            return [text]
        text = text.encode("utf-8", "replace").decode("utf-8")
        if not text.strip():
            return []
        most = int(min(self.model.max_tokens, self._tokens_per_request) * _FILL)
        return [p for p in pieces(text, most - count_tokens(self.model.prefix(role))) if p.strip()]

    def _measured(self) -> int:
        """The size of this model's rows, by asking for one."""
        run = _Run(self, "document", self.provider.clock() + self.provider.timeout_s)
        answers: dict[int, list[Any]] = {}
        run.all([[_TEST_TEXT]], answers)
        (row,) = answers[0]
        if isinstance(row, str):
            raise self.provider.error(row)
        return len(row)


class _Run:
    """One call of `embed`: its role, its deadline and the event that stops it."""

    def __init__(self, embedder: RemoteEmbedder, role: Role, until: float) -> None:
        self.embedder = embedder
        self.provider = embedder.provider
        self.role = role
        self.until = until
        self.stop = self.provider.stopper()
        self._failures: list[Exception] = []

    def all(self, requests: Sequence[list[str]], found: dict[int, list[Any]]) -> None:
        """Puts the rows of requests into `found`, by their number, several at a time; also those
        before a failure.

        A refused text has its reason instead of a row.
        """
        try:
            if len(requests) < 2:
                found.update((n, self._rows(request)) for n, request in enumerate(requests))
                return
            pool = ThreadPoolExecutor(max_workers=min(self.embedder.parallel, len(requests)))
            try:
                answers = [pool.submit(self._side_by_side, request) for request in requests]
                wait(answers, return_when=FIRST_EXCEPTION)
                ended = [(n, answer) for n, answer in enumerate(answers) if answer.done()]
                found.update(
                    (n, answer.result()) for n, answer in ended if answer.exception() is None
                )
                if self._failures:
                    raise self._failures[0]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        except KeyboardInterrupt:
            self.provider.cut()
            raise

    def _side_by_side(self, texts: Sequence[str]) -> list[Any]:
        """One request of several; after a failure none begins, and nobody waits for the pauses of
        the others.
        """
        try:
            return self._rows(texts)
        except Exception as error:
            self._failures.append(error)
            self.stop.set()
            raise

    def _rows(self, texts: Sequence[str]) -> list[Any]:
        """A row for each text, or why there is none; a refused request is halved down to single
        texts.
        """
        most = self.embedder.texts_per_request
        if len(texts) > most:  # so much was learnt since the texts were packed
            return [
                row for n in range(0, len(texts), most) for row in self._rows(texts[n : n + most])
            ]
        try:
            return self._asked(texts)
        except RefusedError as error:
            self._check_refusal(texts, error)
            if len(texts) > 1:
                half = (len(texts) + 1) // 2
                rows = [*self._rows(texts[:half]), *self._rows(texts[half:])]
                if _too_long(error) and not any(isinstance(row, str) for row in rows):
                    self.embedder.texts_per_request = min(half, self.embedder.texts_per_request)
                return rows
            return [self._split(texts[0], error)]
        except OSError as error:
            return [f"its file cannot be read: {error.strerror or error}"] * len(texts)

    def _split(self, text: str, error: RefusedError) -> Any:
        """The mean of a text's halves where it was refused for its length, else the reason."""
        tokens = count_tokens(text)
        if not _too_long(error) or tokens < _SMALLEST or isinstance(text, Media):
            return str(error)
        parts = [part for part in pieces(text, tokens // 2) if part.strip()]
        rows = [row for part in parts for row in self._rows([part])]
        refused = [row for row in rows if isinstance(row, str)]
        return refused[0] if refused else pooled(rows, [count_tokens(part) for part in parts])

    def _check_refusal(self, texts: Sequence[str], error: RefusedError) -> None:
        """Raises when the provider refuses even a harmless text: then no single text is to
        blame.
        """
        if self.embedder.accepted:
            return
        try:
            if list(texts) == [_TEST_TEXT]:
                raise error
            self._asked([_TEST_TEXT])
        except RefusedError as again:
            raise self.provider.error(f"it refused the request ({again.status}): {again}") from None

    def _asked(self, texts: Sequence[str]) -> list[Any]:
        model = self.embedder
        preset = self.provider.preset
        body = body_of(preset, model.model, texts, self.role, dim=model.asked_dim)
        until = min(
            self.until, self.provider.clock() + _TIMEOUTS_PER_REQUEST * self.provider.timeout_s
        )
        answer = self.provider.json(
            "POST", path_of(preset, model.model), body=body, until=until, stop=self.stop
        )
        try:
            rows = rows_of(preset, answer)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise self.provider.error(
                f"its answer does not hold rows as expected: {error!r}"
            ) from None
        if len(rows) != len(texts):
            raise self.provider.error(f"it answered with {len(rows)} rows for {len(texts)} texts")
        model.accepted = True
        wrong = (
            []
            if model.declared or not model.dim
            else [len(row) for row in rows if len(row) != model.dim]
        )
        if wrong:
            model.outdated = True
            message = f"it returned {wrong[0]} numbers for a text, and {model.dim} before"
            raise self.provider.error(message, hint="run: notewell index")
        return [unit_row(self.provider, row, model.dim) for row in rows]


def _too_long(error: RefusedError) -> bool:
    return error.status == 413 or _TOO_LONG.search(str(error)) is not None


def _id(provider: Provider, model: Model, dim: int | str) -> str:
    name = model.name.removeprefix("models/") or provider.host
    return f"{provider.preset.name}/{name}@{dim}{provider.preset.manner(model)}"


class _Packing:
    """Counts the groups that items fill, of at most `most` items and `limit` in size."""

    def __init__(self, most: int, limit: float) -> None:
        self._most, self._limit = most, limit
        self.groups = self._count = 0
        self._total = 0.0

    def begins(self, size: float) -> bool:
        """Adds an item; whether it is the first of another group."""
        begins = not self._count or self._count >= self._most or self._total + size > self._limit
        if begins:
            self.groups, self._count, self._total = self.groups + 1, 0, 0.0
        self._count, self._total = self._count + 1, self._total + size
        return begins


def packed(
    items: Iterable[_T], size_of: Callable[[_T], float], most: int, limit: float
) -> Iterator[list[_T]]:
    """Groups of at most `most` items and `limit` in size; an item that is larger gets a separate
    group.
    """
    packing, group = _Packing(most, limit), list[_T]()
    for item in items:
        if packing.begins(size_of(item)) and group:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def unit_row(provider: Provider, row: Any, dim: int) -> Any:
    """A unit row, or the reason why a text has none; a row of the wrong size is an error."""
    import numpy as np  # noqa: PLC0415

    if dim and len(row) != dim:
        hint = "check embed.dim; if the model has changed, give it another name"
        raise provider.error(f"it returned {len(row)} numbers instead of {dim}", hint=hint)
    size = float(np.linalg.norm(row.astype(np.float64))) if len(row) else 0.0
    if not math.isfinite(size) or size < 1e-12:
        return "the model returned no usable numbers for it (not a number, or all zero)"
    return (row / size).astype(np.float32)


def pooled(rows: Sequence[Any], weights: Sequence[int]) -> Any:
    """The unit mean of rows, weighted by the length of their texts."""
    import numpy as np  # noqa: PLC0415

    if len(rows) == 1:
        return rows[0]
    mean = np.average(
        np.stack(rows).astype(np.float64), axis=0, weights=[max(1, w) for w in weights]
    )
    size = float(np.linalg.norm(mean))
    return (mean / size).astype(np.float32) if size > 1e-6 else rows[0]


def remote_embedder(
    name: str,
    model: str,
    settings: EmbedSettings,
    env: Mapping[str, str],
    *,
    provider: Provider | None = None,
    known: Sequence[str] = (),
) -> RemoteEmbedder:
    """The embedder of a preset; the settings' address, headers, size and key apply to the provider
    of embed.model.

    `known` are the ids of models with vectors in the index, the one that answers first.
    """
    preset = PRESETS[name]
    mine = (owner_of_address(settings) or "http") == name
    chosen = preset.known(model or preset.model)
    asked = provider or _provider(preset, settings if mine else _others(settings), env)
    sizes = re.compile(re.escape(_id(asked, chosen, "#")).replace(r"\#", r"(\d+)"))
    return RemoteEmbedder(
        asked,
        chosen,
        remembered=next((int(found[1]) for found in map(sizes.fullmatch, known) if found), 0),
        dim=settings.dim if mine else 0,
        max_tokens_per_request=settings.max_tokens_per_request,
        parallel=settings.parallel,
    )


def _others(settings: EmbedSettings) -> EmbedSettings:
    """The settings for a provider that is not the one of embed.model: only how long to wait."""
    return EmbedSettings(timeout_s=settings.timeout_s, deadline_s=settings.deadline_s)


def _provider(preset: Preset, settings: EmbedSettings, env: Mapping[str, str]) -> Provider:
    key = next(
        (env[k].strip() for k in preset.keys if env.get(k, "").strip()), settings.key.strip()
    )
    if preset.key_needed and not key and not settings.url:
        names = " or ".join(preset.keys)
        raise EmbedderError(
            f"{preset.name} needs a key",
            hint=f"set {names}, or embed.key in your own settings file",
        )
    if not (settings.url or preset.url):
        message = f"embed.model is {preset.name}, but embed.url is empty"
        raise SettingsError(message, hint="set the base address of the endpoint")
    pairs = (header.partition(":") for header in settings.headers)
    headers = {name.strip(): value.strip() for name, _, value in pairs}
    timeout_s, patience_s = settings.timeout_s, max(QUERY_S, settings.deadline_s)
    return Provider(
        preset,
        url=settings.url,
        key=key,
        headers=headers,
        timeout_s=timeout_s,
        patience_s=patience_s,
    )
