"""Moving an index from one store to another: through the port alone, nothing embedded, taken up again after a stop.

A document goes over with its passages, links and vectors in one transaction, so that a stop leaves whole documents.
Vectors of text that is in no document stay behind: they are a cache.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from recollect.errors import StoreError, UsageError
from recollect.ports import Copy, Judgement, Progress, Shared, Store, Stored, Vectors
from recollect.store.tombstones import tombstones_of
from recollect.sync.consolidate import replaces, standing, traits
from recollect.types import Chunk, Document, Facts

_BATCH = 50
_MARK = "migrating"
_OWN = (_MARK, "tombstones", "tombstones_saved")
_SURE = 0.999  # a store may keep vectors more coarsely than the other: the direction is what must come over


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of thing that was copied: how many there are on both sides, and what they add up to."""

    what: str
    count: int
    there: int
    checksum: str
    checksum_there: str

    @property
    def same(self) -> bool:
        """Whether both sides have the same."""
        return (self.count, self.checksum) == (self.there, self.checksum_there)


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration copied, what was there already, and the proof that both sides agree."""

    source: str
    target: str
    copied: int
    already: int
    dropped: int
    parts: tuple[Part, ...]

    @property
    def verified(self) -> bool:
        """Whether every part is the same on both sides."""
        return all(part.same for part in self.parts)


def _quiet(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""


def migrate(source: Store, target: Store, *, overwrite: bool = False, progress: Progress = _quiet) -> Migrated:
    """Copies an index and proves it; a target that holds something else is refused unless it may be overwritten."""
    if source.name == target.name:
        raise UsageError(f"{source.name} is both the source and the target", hint="name two different indexes")
    with source.exclusive(10.0) as mine, target.exclusive(10.0) as theirs, target.embedding(10.0) as free:
        if not (mine and theirs and free):
            raise StoreError("another process is indexing one of the two", hint="wait for it, then run this again")
        wanted = source.documents()
        there = target.documents()
        strangers = [path for path in there if path not in wanted or not _alike(wanted[path], there[path])]
        if strangers and not overwrite and target.get_meta(_MARK) != source.name:
            raise StoreError(
                f"{target.name} holds other notes than {source.name}: {', '.join(strangers[:3])}",
                hint="name another target or workspace, or say --overwrite to drop what is there",
            )
        target.set_meta(_MARK, source.name)
        target.drop(strangers)
        paths = [path for path in wanted if path not in there or path in strangers]
        _documents(source, target, {path: wanted[path] for path in paths}, progress)
        _judgements(source, target, list(wanted), progress)
        _rest(source, target)
        target.set_meta(_MARK, "")
        if isinstance(target, Shared):
            for model in target.dims():
                target.settle(model)
        parts = tuple(_compared(source, target, sorted(wanted), progress))
    return Migrated(source.name, target.name, len(paths), len(wanted) - len(paths), len(strangers), parts)


def _alike(one: Stored, other: Stored) -> bool:
    return dataclasses.replace(one, synced_ns=0) == dataclasses.replace(other, synced_ns=0)


def _documents(source: Store, target: Store, wanted: Mapping[str, Stored], progress: Progress) -> None:
    models = [name for name, _, count in source.models() if count]
    done = 0
    for part in _batches(list(wanted)):
        with target.writing():
            hashes: dict[str, None] = {}
            for path in part:
                stored, chunks = wanted[path], source.chunks_of(path)
                document = Document(path, stored.source, stored.size, stored.mtime_ns, "")
                facts = chunks[0].facts if chunks else Facts()
                target.put(document, stored.digest, facts, chunks, fresh=True, tail=stored.tail)
                target.put_edges(path, source.edges_of(path))
                hashes.update(dict.fromkeys(c.content_hash for c in chunks))
            for model in models:
                for some in _batches(list(hashes)):
                    target.put_vectors(model, source.vectors_of(model, some))
        done += len(part)
        progress("notes", done, len(wanted))


def _judgements(source: Store, target: Store, paths: Sequence[str], progress: Progress) -> None:
    """Groups and conflicts; what follows from a text alone is made again."""
    for done, part in enumerate(_batches(paths)):
        ours = {c.id: c for path in part for c in target.chunks_of(path)}
        known = target.judgements([c.row for c in ours.values()])
        found = _judged(source, part)
        target.put_copies(
            [
                Copy(chunk, one.form, one.kin, standing(chunk), replaces(chunk), traits(chunk), one.conflicts)
                for name, one in found.items()
                for chunk in [ours.get(name)]
                if chunk is not None and known.get(chunk.row) != one
            ]
        )
        progress("likeness", min(len(paths), (done + 1) * _BATCH), len(paths))


def _judged(store: Store, paths: Sequence[str]) -> dict[str, Judgement]:
    ids = {c.row: c.id for path in paths for c in store.chunks_of(path)}
    return {ids[row]: one for row, one in store.judgements(list(ids)).items()}


def _rest(source: Store, target: Store) -> None:
    """What models refused, what was forgotten, and everything else that the store was told to remember."""
    for model, dim, _ in source.models():
        reasons = {
            chunk.content_hash: reason
            for path, line, reason in source.refused(model)
            for chunk in source.chunks_of(path)
            if chunk.start_line == line and not (dim and source.vectors_of(model, [chunk.content_hash]))
        }
        if reasons:
            target.refuse(model, reasons)
    tombstones_of(target).add(tombstones_of(source).load().stones)
    with target.writing():
        for key, value in _memory(source).items():
            if target.get_meta(key) != value:
                target.set_meta(key, value)


def _memory(store: Store) -> dict[str, str | int]:
    return {key: value for key, value in sorted(store.remembered().items()) if key not in _OWN}


def _compared(source: Store, target: Store, paths: Sequence[str], progress: Progress) -> Iterator[Part]:
    """Everything read again from both sides."""
    kinds: tuple[tuple[str, Callable[[Store, Sequence[str]], Sequence[object]]], ...] = (
        ("documents", _stored(source, target)),
        ("passages", lambda store, part: [_plain(c) for path in part for c in store.chunks_of(path)]),
        ("keywords", _terms),
        ("links", lambda store, part: [(path, *map(repr, store.edges_of(path))) for path in part]),
        ("judgements", lambda store, part: sorted(map(repr, _judged(store, part).items()))),
    )
    for number, (what, read) in enumerate(kinds, start=1):
        yield Part(what, *_both(lambda store, read=read: _sum(store, read, paths), source, target))  # type: ignore[misc]
        progress("check", number, len(kinds) + 3)
    yield _vectors(source, target, paths)
    stones = {(one.hash, one.place) for one in tombstones_of(source).load().stones}
    kept = {(one.hash, one.place) for one in tombstones_of(target).load().stones}
    yield Part("tombstones", len(stones), len(stones & kept), _digest(sorted(stones)), _digest(sorted(stones & kept)))
    told = _memory(source)
    yield Part("remembered", *_both(lambda store: _told(store, list(told)), source, target))


def _both(read: Callable[[Store], tuple[int, str]], source: Store, target: Store) -> tuple[int, int, str, str]:
    (count, checksum), (there, other) = read(source), read(target)
    return count, there, checksum, other


def _sum(
    store: Store, read: Callable[[Store, Sequence[str]], Sequence[object]], paths: Sequence[str]
) -> tuple[int, str]:
    """How many things some documents have, and a checksum over them."""
    total, count = hashlib.blake2b(digest_size=8), 0
    for part in _batches(paths):
        found = read(store, part)
        count += len(found)
        total.update(repr(found).encode("utf-8", "surrogatepass"))
    return count, total.hexdigest()


def _stored(*stores: Store) -> Callable[[Store, Sequence[str]], Sequence[object]]:
    known = {id(store): store.documents() for store in stores}

    def read(store: Store, paths: Sequence[str]) -> Sequence[object]:
        there = known[id(store)]
        return [dataclasses.replace(there[path], synced_ns=0) for path in paths if path in there]

    return read


def _terms(store: Store, paths: Sequence[str]) -> Sequence[object]:
    ids = {c.row: c.id for path in paths for c in store.chunks_of(path)}
    return [(ids[row], one) for row, one in sorted(store.chunk_terms(list(ids)).items(), key=lambda i: ids[i[0]])]


def _plain(chunk: Chunk) -> object:
    return dataclasses.replace(chunk, row=0)


def _told(store: Store, keys: Sequence[str]) -> tuple[int, str]:
    values = {key: str(value) for key in keys if (value := store.get_meta(key)) is not None}
    return len(values), _digest(values)


def _vectors(source: Store, target: Store, paths: Sequence[str]) -> Part:
    """Vectors of all models, number by number where both keep them so, else by their direction."""
    sums = [hashlib.blake2b(digest_size=8) for _ in range(2)]
    counts = [0, 0]
    models = [name for name, _, count in source.models() if count]
    for part in _batches(paths):
        hashes = sorted({c.content_hash for path in part for c in source.chunks_of(path)})
        for model in models:
            for some in _batches(hashes):
                ours, theirs = source.vectors_of(model, some), target.vectors_of(model, some)
                counts = [counts[0] + len(ours), counts[1] + len(theirs)]
                for key in sorted(ours.keys() | theirs.keys()):
                    one, other = ours.get(key), theirs.get(key)
                    close = one is not None and other is not None and _cosine(one, other) >= _SURE
                    for total, vector in zip(sums, (one, one if close else other), strict=True):
                        total.update(key.encode() + (b"" if vector is None else vector.tobytes()))
    return Part("vectors", counts[0], counts[1], sums[0].hexdigest(), sums[1].hexdigest())


def _cosine(one: Vectors, other: Vectors) -> float:
    if one.shape != other.shape:
        return 0.0
    size = float(one @ one) * float(other @ other)
    return float(one @ other) / size**0.5 if size else float(not (one.any() or other.any()))


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


def _batches(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for i in range(0, len(values), _BATCH):
        yield values[i : i + _BATCH]


__all__ = ["Migrated", "Part", "migrate"]
