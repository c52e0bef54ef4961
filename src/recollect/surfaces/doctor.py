"""`recollect doctor`: looks at everything a search needs, and names for each fault the one thing that mends it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from recollect import settings as settings_
from recollect.embed.chain import Probe
from recollect.errors import RecollectError, StoreDamagedError
from recollect.memory import Memory, Status
from recollect.ports import Shared, Store, Verdict
from recollect.settings import Settings, plain_model
from recollect.store.place import index_path, open_index
from recollect.store.sqlite import SqliteStore, on_network
from recollect.surfaces import render
from recollect.text.chunk import Passage
from recollect.text.words import index_terms

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_LOW_BYTES, _TOO_LOW_BYTES = 200_000_000, 20_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what, how it stands, and the command or setting that mends it."""

    what: str
    verdict: Verdict
    detail: str
    fix: str = ""


def examine(root: Path, flags: Mapping[str, Any], env: Mapping[str, str], *, deep: bool) -> list[Check]:
    """Every check, in the order in which one thing needs another; those that cannot be made are left out."""
    if not root.is_dir():
        return [Check("workspace", "fail", f"{root} is not a folder", "make it, or name another with -w")]
    root = Path(os.path.realpath(root))
    checks: list[Check] = []
    try:
        settings = settings_.load(root, env=env, flags={k.replace("__", "."): v for k, v in flags.items()})
    except RecollectError as error:
        return [_workspace(root), Check("settings", "fail", str(error), error.hint)]
    checks += [_workspace(root), _settings(root, settings, env)]
    if settings.index.url:
        return [*checks, *_database(root, settings, env, deep=deep)]
    try:
        place, notices = index_path(root, settings, env)
        checks += [Check("index place", "warn", n.message, n.hint) for n in notices]
        there = place.exists()
        store = SqliteStore(place if there else None, read_only=there and not os.access(place.parent, os.W_OK))
    except RecollectError as error:
        checks.append(Check("index", "fail", str(error), error.hint))
        return checks
    checks += [_disk(place.parent, store), *_file_system(place)]
    with Memory(root, settings, store) as memory:
        return [*checks, *_inside(memory, there=there, deep=deep)]


def _inside(memory: Memory, *, there: bool, deep: bool) -> list[Check]:
    checks = [*_index(memory, there=there, deep=deep)]
    try:
        return [*checks, *_models(memory, deep=deep)]
    except RecollectError as error:
        return [*checks, Check("model", "fail", str(error), error.hint)]


def _database(root: Path, settings: Settings, env: Mapping[str, str], *, deep: bool) -> Iterator[Check]:
    """What an index in a database needs: the server, its extension, its tables, its roles; then as for a file."""
    try:
        store, beside, notices = open_index(root, settings, env)
    except RecollectError as error:
        yield Check("database", "fail", str(error), error.hint)
        return
    with Memory(root, settings, store, notices, env=env, beside=beside) as memory:
        try:
            yield Check("database", "ok", store.name)
            if isinstance(store, Shared):
                yield from (Check(one.what, one.verdict, one.detail, one.fix) for one in store.health())
            yield from _inside(memory, there=bool(memory.store.counts()["documents"]), deep=deep)
        except RecollectError as error:
            yield Check("database", "fail", str(error), error.hint)


def _workspace(root: Path) -> Check:
    there = (root / "memory").is_dir() or any(p.name.casefold() == "memory.md" for p in root.iterdir())
    if there:
        return Check("workspace", "ok", str(root))
    return Check("workspace", "warn", f"{root} has neither MEMORY.md nor memory/", "run: recollect init")


def _settings(root: Path, settings: Settings, env: Mapping[str, str]) -> Check:
    files = [settings_.user_file(env), root / settings_.WORKSPACE_FILE]
    read = [str(f) for f in files if f.is_file()]
    changed = len({key for key in settings.origins if settings.origins[key] != "default"})
    return Check("settings", "ok", f"{changed} set; files: {', '.join(read) or 'none'}")


def _disk(folder: Path, store: Store) -> Check:
    free = shutil.disk_usage(folder).free
    need = max(_LOW_BYTES, 2 * store.counts()["bytes"])
    verdict: Verdict = "fail" if free < _TOO_LOW_BYTES else "warn" if free < need else "ok"
    fix = "" if verdict == "ok" else "free some space there, or set index.path to another disk"
    return Check("disk space", verdict, f"{free / 1e6:,.0f} MB free where the index is", fix)


def _file_system(place: Path) -> Iterator[Check]:
    if on_network(place.parent):
        yield Check(
            "file system", "warn", "the index is on a network file system: slower, and locks may not hold",
            "set index.path to a file on a disk of this machine",
        )  # fmt: skip
    else:
        yield Check("file system", "ok", "a disk of this machine")
    if os.name == "nt" or not place.exists():
        return
    for path, unwanted, mend in ((place, 0o077, "chmod 600"), (place.parent, 0o022, "chmod go-w")):
        mode = path.stat().st_mode & 0o777
        if mode & unwanted:
            yield Check("permissions", "warn", f"others have access to {path} ({mode:o})", f"{mend} {path}")
            return
    yield Check("permissions", "ok", "the index is yours alone")


def _index(memory: Memory, *, there: bool, deep: bool) -> Iterator[Check]:
    store = memory.store
    if not there:
        yield Check("index", "warn", "there is none yet", "run: recollect index")
        return
    try:
        status = memory.status()
        faults = [*store.audit(), *_altered(store)] if deep else []
    except StoreDamagedError as error:
        yield Check("index", "fail", str(error), "run: recollect index --force")
        return
    size = f"{status.documents} files, {status.chunks} passages, {status.bytes / 1e6:.1f} MB"
    if faults:
        yield Check("index", "fail", "; ".join(faults), "run: recollect index --force")
    else:
        yield Check("index", "ok", f"{size}; every part agrees" if deep else size)
    yield _freshness(status)
    yield from (Check("file", "warn", f"{s.path}: {s.reason}", "mend the file, or name it in .recollectignore")
                for s in status.skipped)  # fmt: skip


def _altered(store: Store) -> Iterator[str]:
    """Passages whose text is not what its hash says, or whose keywords are not those of their text."""
    for path in store.documents():
        chunks = store.chunks_of(path)
        terms = store.chunk_terms([c.row for c in chunks])
        for c in chunks:
            found = terms.get(c.row)  # none at all is seen by the audit
            if found and (found.body, found.exact) != index_terms(c.text):
                yield f"keywords of {path} are not those of its text"
            if Passage(c.start_line, c.end_line, c.heading, c.text).content_hash != c.content_hash:
                yield f"a passage of {path} is damaged"


def _freshness(status: Status) -> Check:
    if status.fresh:
        return Check("freshness", "ok", f"all {status.on_disk} files are indexed as they are")
    todo = f"{status.to_add} to add, {status.to_change} to read again, {status.to_drop} to drop"
    return Check("freshness", "warn", todo, "run: recollect index (a search also does it)")


def _models(memory: Memory, *, deep: bool) -> Iterator[Check]:
    if memory.settings.embed.model == "none":
        yield Check("model", "ok", "keywords only, as set")
        return
    known = memory.levels()
    asked = {p.name: p for p in memory.probe([name for name, _ in known if deep or plain_model(name)])}
    working = 0
    for name, error in known:
        probe = asked.get(name)
        if probe is not None:
            yield _probed(probe)
            working += probe.ok
        elif error is not None:
            yield Check(f"model {name}", "warn", str(error), error.hint)
        else:
            yield Check(f"model {name}", "ok", "not asked, since it is not on this machine (--deep asks it)")
            working += 1
    if not working:
        yield Check("chain", "fail", "no model answers, so keywords alone do", "set embed.model to local")
    yield from _vectors(memory)


def _probed(probe: Probe) -> Check:
    what = f"model {probe.name}"
    if not probe.ok:
        return Check(what, "warn", probe.error, probe.hint)
    detail = (
        f"{probe.latency_ms:.0f} ms, {probe.dim} dimensions, alike {probe.alike:.2f} over unlike {probe.unlike:.2f}"
    )
    return Check(what, "ok", detail)


def _vectors(memory: Memory) -> Iterator[Check]:
    status = memory.status()
    refused = f"; {status.refused} refused" if status.refused else ""
    refused += f"; {status.waiting} in a batch at the provider" if status.waiting else ""
    done = f"{status.embedded} of {status.chunks} passages by {status.embedder}{refused}"
    if status.pending and status.answering not in ("none", status.embedder):
        done += f"; {status.answering} answers until the rest is there"
    if status.pending:
        yield Check("vectors", "warn", f"{done}, {status.pending} to go", "run: recollect index")
    elif status.refused:
        yield Check("vectors", "warn", done, "run: recollect index --force to try those again")
    else:
        yield Check("vectors", "ok", done)
    if status.answering.startswith("hashed@") and memory.settings.embed.model == "auto":
        yield Check(
            "meaning", "warn", f"the index is pinned to {status.answering}, which knows spelling and no meaning",
            "run: recollect index --model local",
        )  # fmt: skip
    old = sum(count for name, _, count in status.models if name not in (status.answering, status.embedder))
    limit_mb = memory.settings.embed.cache_mb
    room = f"{status.cache_bytes / 1e6:.1f} of {limit_mb:g} MB for text that is in no note now"
    if old:
        yield Check("cache", "ok", f"{room}; {old} vectors of models before", "run: recollect index --prune")
    else:
        yield Check("cache", "ok", room)


def show(checks: Sequence[Check]) -> None:
    """One line a check, and what mends it."""
    for one in checks:
        mark = click.style(f"{one.verdict:<4}", fg=_COLOURS[one.verdict], bold=one.verdict != "ok")
        click.echo(f"{mark}  {one.what}: {render.one_line(one.detail)}")
        if one.fix:
            click.echo(f"      {render.one_line(one.fix)}")


def failed(checks: Sequence[Check]) -> bool:
    """Whether anything is so wrong that a search cannot do what was asked for."""
    return any(one.verdict == "fail" for one in checks)


def wire(checks: Sequence[Check]) -> dict[str, Any]:
    """The checks as plain values."""
    return {
        "ok": not failed(checks),
        "checks": [{"what": c.what, "verdict": c.verdict, "detail": c.detail, "fix": c.fix} for c in checks],
    }
