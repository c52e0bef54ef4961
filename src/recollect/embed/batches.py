"""Provider batch APIs for a first index: submit, come back later, fetch; cheaper, and never paid for twice.

What was submitted is written down before and after each step, under the content hashes of the texts. A tag that
goes along with every job finds it again at the provider when a crash came between the two.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from recollect.embed.provider import Provider
from recollect.embed.remote import RemoteEmbedder, checked
from recollect.embed.shapes import message_of, resource, row_of
from recollect.errors import EmbedderError
from recollect.ports import Vectors

_STATE = "embed_batches"
_OUTPUT_BYTES = 400_000_000
_INPUT_BYTES = 15_000_000
_ALIVE = frozenset(("validating", "in_progress", "finalizing", "cancelling", "pending", "running"))
_WORKED = frozenset(("completed", "succeeded", "expired", "cancelled"))


class State(Protocol):
    """Where jobs are remembered; a store is one."""

    def get_meta(self, key: str) -> Any:
        """A remembered value, or None."""
        ...

    def set_meta(self, key: str, value: str | int) -> None:
        """Remembers a value."""
        ...


@dataclass(frozen=True, slots=True)
class Round:
    """What one round brought: rows kept, texts still at the provider, and those refused, by content hash."""

    embedded: int = 0
    waiting: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Job:
    """Some texts at the provider; no `id` yet means that nobody knows whether it was submitted."""

    tag: str
    hashes: list[str]
    id: str = ""


def possible(embedder: object) -> bool:
    """Whether a model's provider has a batch API."""
    return isinstance(embedder, RemoteEmbedder) and bool(embedder.provider.preset.batch)


def waiting(model: str, state: State, *, sure: bool = False) -> frozenset[str]:
    """The texts that may be at the provider of a model, by content hash; `sure`: those it has said it has."""
    return frozenset(h for job in _Book(model, state).jobs if job.id or not sure for h in job.hashes)


def advance(
    embedder: RemoteEmbedder,
    missing: Mapping[str, str],
    state: State,
    keep: Callable[[Mapping[str, Vectors]], None],
    *,
    again: bool = False,
) -> Round:
    """One round for texts by content hash: fetch what is done and `keep` it, then submit what nobody has yet.

    A job is forgotten only after `keep` has returned, so a crash at any point repeats a fetch, never a payment.
    Texts too long for one request and files are left out; embed those directly. `again` also submits refused ones.
    """
    book = _Book(embedder.id, state)
    if again:
        book.refused = {}
    desk = _DESKS[embedder.provider.preset.batch](embedder)
    try:
        embedded = _collect(book, desk, keep)
        got = {h for h in missing if h in desk.seen}
        at_work = {h for job in book.jobs for h in job.hashes}
        book.refused = {h: reason for h, reason in book.refused.items() if h in missing}
        book.save()
        known = got | at_work | book.refused.keys()
        fresh = {h: text for h, text in missing.items() if h not in known and embedder.fits(text)}
        for texts in _portions(fresh, embedder.provider.preset.batch_texts):
            job = _Job(_tag(embedder.id, texts), list(texts))
            book.add(job)
            job.id = desk.submit(job.tag, texts)
            book.save()
        return Round(embedded, len((at_work & missing.keys()) | fresh.keys()), book.refused)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise desk.provider.error(
            f"its answer about a batch is not as it should be: {error!r}", hint="set embed.batch to false"
        ) from None
    finally:
        desk.close()


def _collect(book: _Book, desk: _Desk, keep: Callable[[Mapping[str, Vectors]], None]) -> int:
    """Fetches every job that is done, keeps its rows, and only then forgets it."""
    embedded = 0
    for job in list(book.jobs):
        job.id = job.id or desk.find(job.tag)
        book.save()
        try:
            found = desk.results(job) if job.id else {}
        except _LostError as lost:
            book.forget(job)
            raise lost.error from None
        if found is None:
            continue
        rows = {h: row for h, row in found.items() if not isinstance(row, str)}
        if rows:
            keep(rows)
        embedded += len(rows)
        desk.seen |= rows.keys()
        book.refused |= {h: reason for h, reason in found.items() if isinstance(reason, str)}
        book.forget(job)
    return embedded


def _tag(model: str, hashes: Mapping[str, str]) -> str:
    return "recollect-" + hashlib.blake2b("\0".join((model, *hashes)).encode(), digest_size=12).hexdigest()


def _portions(texts: Mapping[str, str], most: int) -> Iterator[dict[str, str]]:
    portion: dict[str, str] = {}
    size = 0
    for key, text in texts.items():
        length = len(text.encode("utf-8", "replace")) + 300
        if portion and (len(portion) >= most or size + length > _INPUT_BYTES):
            yield portion
            portion, size = {}, 0
        portion[key] = text
        size += length
    if portion:
        yield portion


class _Book:
    """The jobs of one model as they are written down."""

    def __init__(self, model: str, state: State) -> None:
        self._key = f"{_STATE}:{model}"
        self._state = state
        self.jobs: list[_Job] = []
        self.refused: dict[str, str] = {}
        self._saved = "{}"
        try:
            self._saved = state.get_meta(self._key) or "{}"
            kept = json.loads(self._saved)
            self.jobs = [_Job(job["tag"], list(job["hashes"]), job["id"]) for job in kept.get("jobs", ())]
            self.refused = dict(kept.get("refused", {}))
        except (ValueError, KeyError, TypeError, AttributeError):
            pass  # not ours to read; at worst a job is paid for and not fetched

    def add(self, job: _Job) -> None:
        self.jobs.append(job)
        self.save()

    def forget(self, job: _Job) -> None:
        self.jobs.remove(job)
        self.save()

    def save(self) -> None:
        jobs = [{"id": job.id, "tag": job.tag, "hashes": job.hashes} for job in self.jobs]
        value = json.dumps({"jobs": jobs, "refused": self.refused} if jobs or self.refused else {})
        if value != self._saved:
            self._state.set_meta(self._key, value)
            self._saved = value


class _Desk(ABC):
    """How a provider's batches are spoken to."""

    def __init__(self, embedder: RemoteEmbedder) -> None:
        self.embedder = embedder
        self.provider: Provider = embedder.provider
        self.stop = embedder.provider.stopper()
        self.seen: set[str] = set()

    def close(self) -> None:
        """Lets go of what would stop it."""
        self.provider.release(self.stop)

    @abstractmethod
    def submit(self, tag: str, texts: Mapping[str, str]) -> str:
        """Hands the texts in and returns the job's id."""

    @abstractmethod
    def find(self, tag: str) -> str:
        """The id of a job that was handed in under this tag, or nothing."""

    @abstractmethod
    def results(self, job: _Job) -> dict[str, Any] | None:
        """A row or the reason of refusal by content hash; None while it is under way."""

    def _until(self) -> float:
        return self.provider.clock() + 4 * self.provider.timeout_s

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        return self.provider.json(method, path, body=body, until=self._until(), stop=self.stop)

    def _row(self, value: Any) -> Any:
        return checked(self.provider, row_of(value), self.embedder.dim)

    @staticmethod
    def _of_job(job: _Job, found: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
        """What was found of a job's own texts; in a job that ran to its end a text without a row is refused."""
        lost = dict.fromkeys(job.hashes, "the batch brought no row for it") if whole else {}
        return {**lost, **{h: found[h] for h in job.hashes if h in found}}

    def _failed(self, job: _Job, reason: str) -> EmbedderError:
        return self.provider.error(
            f"the batch {job.id} failed: {reason or 'it does not say why'}",
            hint="run recollect index again, or set embed.batch to false",
        )


class _Files(_Desk):
    """OpenAI, and Voyage, which puts all but the text beside the file."""

    def __init__(self, embedder: RemoteEmbedder) -> None:
        super().__init__(embedder)
        self.voyage = self.provider.preset.batch == "voyage"

    def submit(self, tag: str, texts: Mapping[str, str]) -> str:
        shared: dict[str, Any] = {}
        lines = []
        for key, text in texts.items():
            body = self.embedder.body([text])
            if self.voyage:
                shared = {k: v for k, v in body.items() if k != "input"}
                lines.append({"custom_id": key, "body": {"input": body["input"]}})
            else:
                lines.append({"custom_id": key, "method": "POST", "url": "/v1/embeddings", "body": body})
        data, kind = _form(tag, "\n".join(json.dumps(line) for line in lines).encode())
        answer = self.provider.ask("POST", "/files", data=data, kind=kind, until=self._until(), stop=self.stop)
        request: dict[str, Any] = {
            "input_file_id": self.provider.parsed(answer.body)["id"],
            "endpoint": "/v1/embeddings",
            "completion_window": "12h" if self.voyage else "24h",
            "metadata": {"tag": tag},
        }
        if self.voyage:
            request["request_params"] = shared
        # One attempt: whether a lost answer was a job is for `find` to say.
        made = self.provider.ask(
            "POST", "/batches", data=json.dumps(request).encode(), until=self._until(), stop=self.stop, attempts=1
        )
        return str(self.provider.parsed(made.body)["id"])

    def find(self, tag: str) -> str:
        listed = self._json("GET", "/batches?limit=100").get("data", ())
        return next((str(b["id"]) for b in listed if (b.get("metadata") or {}).get("tag") == tag), "")

    def results(self, job: _Job) -> dict[str, Any] | None:
        batch = self._json("GET", f"/batches/{job.id}")
        status = str(batch.get("status"))
        if status in _ALIVE:
            return None
        if status not in _WORKED:
            errors = batch.get("errors")
            said = message_of({"errors": errors.get("data") if isinstance(errors, dict) else errors})
            raise _LostError(self._failed(job, said))
        found: dict[str, Any] = {}
        for field_name in ("output_file_id", "error_file_id"):
            if batch.get(field_name):
                found |= dict(self._lines(batch[field_name]))
        return self._of_job(job, found, whole=status == "completed")

    def _lines(self, file: str) -> Iterator[tuple[str, Any]]:
        answer = self.provider.ask(
            "GET", f"/files/{file}/content", until=self._until(), stop=self.stop, max_bytes=_OUTPUT_BYTES
        )
        for line in answer.body.splitlines():
            if not line.strip():
                continue
            one = self.provider.parsed(line)
            response = one.get("response") or {}
            if response.get("status_code") == 200:
                yield one["custom_id"], self._row(response["body"]["data"][0]["embedding"])
            else:
                said = message_of(response.get("body")) or message_of({"error": one.get("error")})
                yield one["custom_id"], said or "the batch refused it"


class _Inline(_Desk):
    """Gemini, with the requests inside the job."""

    def submit(self, tag: str, texts: Mapping[str, str]) -> str:
        requests = [
            {"request": self.embedder.body([text])["requests"][0], "metadata": {"key": key}}
            for key, text in texts.items()
        ]
        body = {"batch": {"displayName": tag, "inputConfig": {"requests": {"requests": requests}}}}
        made = self.provider.ask(
            "POST", f"/{resource(self.embedder.model)}:asyncBatchEmbedContent", data=json.dumps(body).encode(),
            until=self._until(), stop=self.stop, attempts=1,
        )  # fmt: skip
        return str(self.provider.parsed(made.body)["name"])

    def find(self, tag: str) -> str:
        listed = self._json("GET", "/batches?pageSize=100").get("operations", ())
        return next((str(o["name"]) for o in listed if (o.get("metadata") or {}).get("displayName") == tag), "")

    def results(self, job: _Job) -> dict[str, Any] | None:
        operation = self._json("GET", f"/{job.id}")
        metadata = operation.get("metadata") or {}
        status = str(metadata.get("state", "")).rpartition("_")[2].lower()
        if status in _ALIVE or not (status or operation.get("done")):
            return None
        if status not in _WORKED or operation.get("error"):
            raise _LostError(self._failed(job, message_of(operation)))
        done: Any = operation.get("response") or metadata.get("output") or {}
        done = done.get("output", done)
        while isinstance(done, dict):
            done = next((done[k] for k in ("inlinedResponses", "inlinedEmbedContentResponses") if k in done), ())
        found: dict[str, Any] = {}
        for i, one in enumerate(done):
            key = (one.get("metadata") or {}).get("key") or job.hashes[i]
            if "response" in one:
                found[key] = self._row(one["response"]["embedding"]["values"])
            else:
                found[key] = message_of(one) or "the batch refused it"
        return self._of_job(job, found, whole=status == "succeeded")


class _LostError(Exception):
    """A job that failed as a whole; its error is inside."""

    def __init__(self, error: EmbedderError) -> None:
        super().__init__(str(error))
        self.error = error


def _form(name: str, data: bytes) -> tuple[bytes, str]:
    """A multipart form with the purpose and one file, and its content type."""
    border = hashlib.blake2b(data, digest_size=16).hexdigest()
    head = (
        f'--{border}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{name}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return head.encode() + data + f"\r\n--{border}--\r\n".encode(), f"multipart/form-data; boundary={border}"


_DESKS: Mapping[str, Callable[[RemoteEmbedder], _Desk]] = {"openai": _Files, "voyage": _Files, "gemini": _Inline}

__all__ = ["Round", "State", "advance", "possible", "waiting"]
