"""Provider batch APIs for a first index: submit, come back later, fetch; cheaper, and never paid
for twice.

Every step is recorded before and after it is taken, under the content hashes of the texts. Each job
carries a tag, by which it is found again at the provider after a crash between the two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from notewell.embed.embedder import BatchRound, BatchState, KeepRows
from notewell.embed.remote.provider import message_of, resource, row_of
from notewell.embed.remote.remote_embedder import RemoteEmbedder, packed, unit_row
from notewell.errors import EmbedderError

_STATE = "embed_batches"
_OUTPUT_BYTES = 400_000_000
_INPUT_BYTES = 15_000_000
_RUNNING = frozenset(
    ("validating", "in_progress", "finalizing", "cancelling", "pending", "running")
)
_ENDED = frozenset(("completed", "succeeded", "expired", "cancelled"))


@dataclass(slots=True)
class _Job:
    """Some texts at the provider; without an `id` it is not certain that the job was submitted."""

    tag: str
    hashes: list[str]
    id: str = ""


class ProviderBatches:
    """The batch jobs of one remote model."""

    def __init__(self, embedder: RemoteEmbedder) -> None:
        self.provider = embedder.provider.preset.name
        self.price = embedder.provider.preset.batch_price
        self._embedder = embedder

    def waiting(self, state: BatchState, *, confirmed: bool = False) -> frozenset[str]:
        """The texts that may be at the provider; with `confirmed` only those it has
        acknowledged.
        """
        jobs = _Book(self._embedder.id, state).jobs
        return frozenset(h for job in jobs if job.id or not confirmed for h in job.hashes)

    def advance(
        self, missing: Mapping[str, str], state: BatchState, keep: KeepRows, *, again: bool = False
    ) -> BatchRound:
        """Fetches finished jobs, passes their rows to `keep`, and submits what is in no job yet."""
        embedder, provider = self._embedder, self._embedder.provider
        book = _Book(embedder.id, state)
        if again:
            book.refused = {}
        api = _APIS[provider.preset.batch](embedder)
        try:
            fetched = _collect(book, api, keep)
            submitted = {h for job in book.jobs for h in job.hashes}
            book.refused = {h: reason for h, reason in book.refused.items() if h in missing}
            book.save()
            done = fetched | submitted | book.refused.keys()
            fresh = {
                h: text for h, text in missing.items() if h not in done and embedder.fits(text)
            }
            for portion in packed(
                fresh.items(), _bytes_of, provider.preset.batch_texts, _INPUT_BYTES
            ):
                texts = dict(portion)
                job = _Job(_tag(embedder.id, texts), list(texts))
                book.jobs.append(job)
                book.save()
                job.id = api.submit(job.tag, texts)
                book.save()
            return BatchRound(
                len(fetched), len((submitted & missing.keys()) | fresh.keys()), book.refused
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            message = f"unexpected answer about a batch: {error!r}"
            raise provider.error(message, hint="set embed.batch to false") from None


def _collect(book: _Book, api: _Files | _Inline, keep: KeepRows) -> set[str]:
    """Fetches every finished job, keeps its rows, and only then forgets it; returns the hashes of
    the rows.
    """
    fetched: set[str] = set()
    for job in list(book.jobs):
        job.id = job.id or api.find(job.tag)
        book.save()
        try:
            found = api.results(job) if job.id else {}
        except _JobFailedError:
            book.forget(job)
            raise
        if found is None:
            continue
        rows = {h: row for h, row in found.items() if not isinstance(row, str)}
        if rows:
            keep(rows)
        fetched |= rows.keys()
        book.refused |= {h: reason for h, reason in found.items() if isinstance(reason, str)}
        book.forget(job)
    return fetched


def _tag(model: str, hashes: Mapping[str, str]) -> str:
    return (
        "notewell-"
        + hashlib.blake2b("\0".join((model, *hashes)).encode(), digest_size=12).hexdigest()
    )


def _bytes_of(pair: tuple[str, str]) -> int:
    return len(pair[1].encode("utf-8", "replace")) + 300


class _Book:
    """The recorded jobs of one model."""

    def __init__(self, model: str, state: BatchState) -> None:
        self._key = f"{_STATE}:{model}"
        self._state = state
        self.jobs: list[_Job] = []
        self.refused: dict[str, str] = {}
        self._saved = "{}"
        try:
            self._saved = state.get_meta(self._key) or "{}"
            saved = json.loads(self._saved)
            self.jobs = [
                _Job(job["tag"], list(job["hashes"]), job["id"]) for job in saved.get("jobs", ())
            ]
            self.refused = dict(saved.get("refused", {}))
        except (ValueError, KeyError, TypeError, AttributeError):
            pass  # unreadable: at worst a job that was paid for is not fetched

    def forget(self, job: _Job) -> None:
        self.jobs.remove(job)
        self.save()

    def save(self) -> None:
        jobs = [asdict(job) for job in self.jobs]
        value = json.dumps({"jobs": jobs, "refused": self.refused} if jobs or self.refused else {})
        if value != self._saved:
            self._state.set_meta(self._key, value)
            self._saved = value


class _Api:
    """What the batch APIs share. Each can `submit` texts, `find` the id of a job by its tag, and
    fetch `results`.
    """

    def __init__(self, embedder: RemoteEmbedder) -> None:
        self.embedder = embedder
        self.provider = embedder.provider
        self.stop = embedder.provider.stopper()

    def _until(self) -> float:
        return self.provider.clock() + 4 * self.provider.timeout_s

    def _get(self, path: str) -> Any:
        return self.provider.json("GET", path, until=self._until(), stop=self.stop)

    def _create(self, path: str, body: Any) -> Any:
        # One attempt: if the answer is lost, `find` tells later whether there is a job.
        return self.provider.json(
            "POST", path, body=body, until=self._until(), stop=self.stop, attempts=1
        )

    def _row(self, value: Any) -> Any:
        return unit_row(self.provider, row_of(value), self.embedder.dim)

    @staticmethod
    def _of_job(job: _Job, found: Mapping[str, Any], *, complete: bool) -> dict[str, Any]:
        """The results for a job's texts; in a job that ran to its end a text without a row is
        refused.
        """
        lost = dict.fromkeys(job.hashes, "the batch returned no row for it") if complete else {}
        return {**lost, **{h: found[h] for h in job.hashes if h in found}}

    def _failed(self, job: _Job, reason: str) -> EmbedderError:
        message = f"the batch {job.id} failed: {reason or 'no reason given'}"
        hint = "run notewell index again, or set embed.batch to false"
        return self.provider.error(message, hint=hint, kind=_JobFailedError)


class _Files(_Api):
    """OpenAI, and Voyage, which takes everything but the text outside the file."""

    def submit(self, tag: str, texts: Mapping[str, str]) -> str:
        voyage = self.provider.preset.batch == "voyage"
        shared: dict[str, Any] = {}
        lines = []
        for key, text in texts.items():
            body = self.embedder.body([text])
            if voyage:
                shared = {k: v for k, v in body.items() if k != "input"}
                lines.append({"custom_id": key, "body": {"input": body["input"]}})
            else:
                lines.append(
                    {"custom_id": key, "method": "POST", "url": "/v1/embeddings", "body": body}
                )
        data, kind = _form(tag, "\n".join(json.dumps(line) for line in lines).encode())
        answer = self.provider.ask(
            "POST", "/files", data=data, kind=kind, until=self._until(), stop=self.stop
        )
        file = self.provider.parsed(answer.body)["id"]
        more = (
            {"completion_window": "12h", "request_params": shared}
            if voyage
            else {"completion_window": "24h"}
        )
        request = {
            "input_file_id": file,
            "endpoint": "/v1/embeddings",
            "metadata": {"tag": tag},
            **more,
        }
        return str(self._create("/batches", request)["id"])

    def find(self, tag: str) -> str:
        listed = self._get("/batches?limit=100").get("data", ())
        return next(
            (str(b["id"]) for b in listed if (b.get("metadata") or {}).get("tag") == tag), ""
        )

    def results(self, job: _Job) -> dict[str, Any] | None:
        """A row or the reason for a refusal, by content hash; None while the job is running."""
        batch = self._get(f"/batches/{job.id}")
        status = str(batch.get("status"))
        if status in _RUNNING:
            return None
        if status not in _ENDED:
            errors = batch.get("errors")
            raise self._failed(
                job,
                message_of({"errors": errors.get("data") if isinstance(errors, dict) else errors}),
            )
        found: dict[str, Any] = {}
        for field_name in ("output_file_id", "error_file_id"):
            if batch.get(field_name):
                found |= dict(self._lines(batch[field_name]))
        return self._of_job(job, found, complete=status == "completed")

    def _lines(self, file: str) -> Iterator[tuple[str, Any]]:
        answer = self.provider.ask(
            "GET",
            f"/files/{file}/content",
            until=self._until(),
            stop=self.stop,
            max_bytes=_OUTPUT_BYTES,
        )
        for line in answer.body.splitlines():
            if not line.strip():
                continue
            result = self.provider.parsed(line)
            response = result.get("response") or {}
            if response.get("status_code") == 200:
                yield result["custom_id"], self._row(response["body"]["data"][0]["embedding"])
            else:
                reason = message_of(response.get("body")) or message_of(
                    {"error": result.get("error")}
                )
                yield result["custom_id"], reason or "the batch refused it"


class _Inline(_Api):
    """Gemini, with the requests inside the job."""

    def submit(self, tag: str, texts: Mapping[str, str]) -> str:
        bodies = ((key, self.embedder.body([text])["requests"][0]) for key, text in texts.items())
        requests = [{"request": body, "metadata": {"key": key}} for key, body in bodies]
        body = {"batch": {"displayName": tag, "inputConfig": {"requests": {"requests": requests}}}}
        return str(
            self._create(f"/{resource(self.embedder.model)}:asyncBatchEmbedContent", body)["name"]
        )

    def find(self, tag: str) -> str:
        listed = self._get("/batches?pageSize=100").get("operations", ())
        return next(
            (str(o["name"]) for o in listed if (o.get("metadata") or {}).get("displayName") == tag),
            "",
        )

    def results(self, job: _Job) -> dict[str, Any] | None:
        operation = self._get(f"/{job.id}")
        metadata = operation.get("metadata") or {}
        status = str(metadata.get("state", "")).rpartition("_")[2].lower()
        if status in _RUNNING or not (status or operation.get("done")):
            return None
        if status not in _ENDED or operation.get("error"):
            raise self._failed(job, message_of(operation))
        done: Any = operation.get("response") or metadata.get("output") or {}
        done = done.get("output", done)
        while isinstance(done, dict):
            done = next(
                (
                    done[k]
                    for k in ("inlinedResponses", "inlinedEmbedContentResponses")
                    if k in done
                ),
                (),
            )
        found: dict[str, Any] = {}
        for i, result in enumerate(done):
            key = (result.get("metadata") or {}).get("key") or job.hashes[i]
            if "response" in result:
                found[key] = self._row(result["response"]["embedding"]["values"])
            else:
                found[key] = message_of(result) or "the batch refused it"
        return self._of_job(job, found, complete=status == "succeeded")


class _JobFailedError(EmbedderError):
    """An entire job failed."""


def _form(name: str, data: bytes) -> tuple[bytes, str]:
    """A multipart form with the purpose and one file; also returns its content type."""
    border = hashlib.blake2b(data, digest_size=16).hexdigest()
    head = (
        f'--{border}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{name}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return (
        head.encode() + data + f"\r\n--{border}--\r\n".encode(),
        f"multipart/form-data; boundary={border}",
    )


_APIS: Mapping[str, type[_Files | _Inline]] = {
    "openai": _Files,
    "voyage": _Files,
    "gemini": _Inline,
}
