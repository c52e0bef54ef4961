"""Copying an index from one store to another: through the port alone, embedding nothing, resumed
after a stop.

A document is copied with its chunks, links, vectors and windows in one transaction, so that a stop
leaves no halves. Vectors of text that is in no document stay behind: they are a cache.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from notewell.errors import StoreError, UsageError
from notewell.index.dedupe import replaces, standing, traits
from notewell.index.documents import words_again
from notewell.notes.tombstones import Tombstones, tombstones_of
from notewell.store.ports import Store
from notewell.store.values import Copy, Judgement, Stored
from notewell.types import Chunk, Document, Facts, Progress, Vectors, silent

_BATCH = 50
_MARK = "migrating"
_OWN = (_MARK, "tombstones", "tombstones_saved")
_SURE = (
    0.999  # one store may round vectors more than the other: only their direction must be the same
)


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of thing that was copied: how many there are on both sides, and their checksums."""

    what: str
    count: int
    there: int
    checksum: str
    checksum_there: str

    @property
    def same(self) -> bool:
        """Whether both sides are the same."""
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


def migrate(
    source: Store,
    target: Store,
    *,
    tombstones: Callable[[Store], Tombstones] = tombstones_of,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Migrated:
    """Copies an index and checks the copy; a target that holds other notes is refused unless it may
    be overwritten.

    What `tombstones` says is forgotten in the source is forgotten in the target too.
    """
    if source.name == target.name:
        raise UsageError(
            f"{source.name} is both the source and the target", hint="name two different indexes"
        )
    with (
        source.exclusive(10.0) as mine,
        target.exclusive(10.0) as theirs,
        target.embedding(10.0) as free,
    ):
        if not (mine and theirs and free):
            raise StoreError(
                "another process is indexing one of the two",
                hint="wait for it, then run this again",
            )
        wanted = source.documents.stored()
        there = target.documents.stored()
        known = {path: one._replace(synced_ns=0) for path, one in wanted.items()}
        strangers = [
            path for path, one in there.items() if known.get(path) != one._replace(synced_ns=0)
        ]
        if strangers and not overwrite and target.get_meta(_MARK) != source.name:
            message = (
                f"{target.name} holds other notes than {source.name}: {', '.join(strangers[:3])}"
            )
            hint = "name another target or workspace, or say --overwrite to drop what is there"
            raise StoreError(message, hint=hint)
        target.set_meta(_MARK, source.name)
        target.documents.drop(strangers)
        paths = [path for path in wanted if path not in there or path in strangers]
        _documents(source, target, {path: wanted[path] for path in paths}, progress)
        _judgements(source, target, list(wanted), progress)
        _rest(source, target)
        forgotten = tombstones(source).load().stones
        stones = {(s.hash, s.place) for s in forgotten}
        kept = {(s.hash, s.place) for s in tombstones(target).add(forgotten).stones} & stones
        target.set_meta(_MARK, "")
        if target.shared is not None:
            for model in target.vectors.dims():
                target.shared.settle(model)
        parts = (
            *_compared(source, target, sorted(wanted), progress),
            _part("tombstones", stones, kept),
        )
    return Migrated(
        source.name, target.name, len(paths), len(wanted) - len(paths), len(strangers), parts
    )


def _documents(
    source: Store, target: Store, wanted: Mapping[str, Stored], progress: Progress
) -> None:
    models = [name for name, _, count in source.vectors.models() if count]
    done = 0
    for part in _batches(list(wanted)):
        with target.writing():
            rows: dict[str, int] = {}
            for path in part:
                stored, chunks = wanted[path], source.documents.chunks_of(path)
                document = Document(path, stored.source, stored.size, stored.mtime_ns, "")
                facts = chunks[0].facts if chunks else Facts()
                words = words_again(chunks, source.keywords.chunk_terms([c.row for c in chunks]))
                target.documents.put(
                    document,
                    stored.digest,
                    facts,
                    chunks,
                    words=words,
                    fresh=True,
                    tail=stored.tail,
                )
                target.history.put_edges(path, source.history.edges_of(path))
                rows |= {c.content_hash: c.row for c in chunks}
            for model in models:
                for some in _batches(list(rows)):
                    windows = _windows(source, model, {key: rows[key] for key in some})
                    target.vectors.put_vectors(
                        model, source.vectors.by_hash(model, some), windows=windows
                    )
        done += len(part)
        progress("notes", done, len(wanted))


def _windows(store: Store, model: str, rows: Mapping[str, int]) -> dict[str, bytes]:
    """The windows of texts, each given by its content hash with a row that has it."""
    found = store.vectors.windows(model, list(rows.values()))
    return {key: found[row] for key, row in rows.items() if row in found}


def _judgements(source: Store, target: Store, paths: Sequence[str], progress: Progress) -> None:
    """Groups and conflicts; what follows from the text alone is computed again."""
    for done, part in enumerate(_batches(paths)):
        ours = list(_chunks(target, part))
        known = target.relations.judgements([c.row for c in ours])
        found = _judged(source, part)
        new = [(c, one) for c in ours if (one := found.get(c.id)) and known.get(c.row) != one]
        target.relations.put_copies(
            [
                Copy(
                    c,
                    one.form,
                    one.group,
                    standing(c),
                    replaces(c, target),
                    traits(c),
                    one.conflicts,
                )
                for c, one in new
            ]
        )
        progress("likeness", min(len(paths), (done + 1) * _BATCH), len(paths))


def _chunks(store: Store, paths: Sequence[str]) -> Iterator[Chunk]:
    return (chunk for path in paths for chunk in store.documents.chunks_of(path))


def _judged(store: Store, paths: Sequence[str]) -> dict[str, Judgement]:
    ids = {c.row: c.id for c in _chunks(store, paths)}
    return {ids[row]: one for row, one in store.relations.judgements(list(ids)).items()}


def _rest(source: Store, target: Store) -> None:
    """What models refused, and every other value that the store remembers."""
    for model, dim, _ in source.vectors.models():
        reasons = {
            chunk.content_hash: reason
            for path, line, reason in source.vectors.refused(model)
            for chunk in source.documents.chunks_of(path)
            if chunk.start_line == line
            and not (dim and source.vectors.by_hash(model, [chunk.content_hash]))
        }
        if reasons:
            target.vectors.refuse(model, reasons)
    with target.writing():
        for key, value in _memory(source).items():
            if target.get_meta(key) != value:
                target.set_meta(key, value)


def _memory(store: Store) -> dict[str, str | int]:
    return {key: value for key, value in sorted(store.remembered().items()) if key not in _OWN}


def _compared(
    source: Store, target: Store, paths: Sequence[str], progress: Progress
) -> Iterator[Part]:
    """Reads everything again from both sides and compares it."""
    kinds: tuple[tuple[str, Callable[[Store, Sequence[str]], Sequence[object]]], ...] = (
        ("documents", _stored(source, target)),
        (
            "passages",
            lambda store, part: [dataclasses.replace(c, row=0) for c in _chunks(store, part)],
        ),
        ("keywords", _terms),
        (
            "links",
            lambda store, part: [(path, *map(repr, store.history.edges_of(path))) for path in part],
        ),
        ("judgements", lambda store, part: sorted(map(repr, _judged(store, part).items()))),
        ("windows", _all_windows),
    )
    for number, (what, read) in enumerate(kinds, start=1):
        yield Part(what, *_both(lambda store, read=read: _sum(store, read, paths), source, target))  # type: ignore[misc]
        progress("check", number, len(kinds) + 3)
    yield _vectors(source, target, paths)
    keys = list(_memory(source))
    yield Part("remembered", *_both(lambda store: _values(store, keys), source, target))


def _part(what: str, ours: set[tuple[str, str]], theirs: set[tuple[str, str]]) -> Part:
    return Part(what, len(ours), len(theirs), _digest(sorted(ours)), _digest(sorted(theirs)))


def _both(
    read: Callable[[Store], tuple[int, str]], source: Store, target: Store
) -> tuple[int, int, str, str]:
    (count, checksum), (there, other) = read(source), read(target)
    return count, there, checksum, other


def _sum(
    store: Store, read: Callable[[Store, Sequence[str]], Sequence[object]], paths: Sequence[str]
) -> tuple[int, str]:
    """How many things some documents have, and their checksum."""
    total, count = hashlib.blake2b(digest_size=8), 0
    for part in _batches(paths):
        found = read(store, part)
        count += len(found)
        total.update(repr(found).encode("utf-8", "surrogatepass"))
    return count, total.hexdigest()


def _stored(*stores: Store) -> Callable[[Store, Sequence[str]], Sequence[object]]:
    known = {id(store): store.documents.stored() for store in stores}

    def read(store: Store, paths: Sequence[str]) -> Sequence[object]:
        there = known[id(store)]
        return [there[path]._replace(synced_ns=0) for path in paths if path in there]

    return read


def _terms(store: Store, paths: Sequence[str]) -> Sequence[object]:
    ids = {c.row: c.id for c in _chunks(store, paths)}
    terms = store.keywords.chunk_terms(list(ids))
    return [(ids[row], terms[row]) for row in sorted(terms, key=ids.__getitem__)]


def _all_windows(store: Store, paths: Sequence[str]) -> Sequence[object]:
    rows = {c.content_hash: c.row for c in _chunks(store, paths)}
    models = sorted(name for name, _, count in store.vectors.models() if count)
    return [
        (model, *one) for model in models for one in sorted(_windows(store, model, rows).items())
    ]


def _values(store: Store, keys: Sequence[str]) -> tuple[int, str]:
    values = {key: str(value) for key in keys if (value := store.get_meta(key)) is not None}
    return len(values), _digest(values)


def _vectors(source: Store, target: Store, paths: Sequence[str]) -> Part:
    """Vectors of all models: equal, or of the same direction."""
    sums = [hashlib.blake2b(digest_size=8) for _ in range(2)]
    counts = [0, 0]
    models = [name for name, _, count in source.vectors.models() if count]
    for part in _batches(paths):
        hashes = sorted({c.content_hash for c in _chunks(source, part)})
        for model in models:
            for some in _batches(hashes):
                ours, theirs = (
                    source.vectors.by_hash(model, some),
                    target.vectors.by_hash(model, some),
                )
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
