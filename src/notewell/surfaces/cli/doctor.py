"""`notewell doctor`: checks everything a search needs, and says how to fix what is wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from notewell import settings as settings_
from notewell.errors import NotewellError, StoreDamagedError, UsageError
from notewell.index.survey import no_notes, not_read
from notewell.memory import Memory, deleted_after_days
from notewell.model_names import plain_model
from notewell.search.unread import cure
from notewell.settings import Settings
from notewell.store.locate import admit as let_in
from notewell.store.locate import index_path, open_as_is, open_index
from notewell.store.network_fs import on_network
from notewell.store.ports import Store
from notewell.store.values import Finding, Verdict
from notewell.surfaces.cli import render
from notewell.surfaces.shapes import plain
from notewell.text.chunk import Passage
from notewell.text.words import counted, index_terms

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_LOW_BYTES, _TOO_LOW_BYTES = 200_000_000, 20_000_000


def examine(
    root: Path, flags: Mapping[str, str], env: Mapping[str, str], *, deep: bool
) -> list[Finding]:
    """Every check, in the order in which one thing needs another; checks that cannot be made are
    left out.
    """
    if not root.is_dir():
        return [
            Finding(
                "workspace", "fail", f"{root} is not a folder", "make it, or name another with -w"
            )
        ]
    root = Path(os.path.realpath(root))
    try:
        settings = settings_.load(root, env=env, flags=flags)
    except NotewellError as error:
        return [Finding("workspace", "ok", str(root)), _failed("settings", error)]
    checks = [
        Finding("workspace", "ok", str(root)),
        _settings(root, settings, env),
        *_engine(settings, env),
    ]
    if settings.index.url:
        return [*checks, *_database(root, settings, env, deep=deep)]
    try:
        file, notices = index_path(root, settings, env, make=False)
        checks += [Finding("index place", "warn", n.message, n.hint) for n in notices]
        there = file.exists()
        store = open_as_is(file)
    except NotewellError as error:
        return [*checks, _failed("index", error)]
    checks += [_disk(file.parent, store), *_file_system(file)]
    with Memory(root, settings, store) as memory:
        return [*checks, *inside(memory, there=there, deep=deep)]


def admit(settings: Settings, roles: Sequence[str]) -> list[Finding]:
    """Lets roles use the tables of a database, which nobody who logs in owns, and checks them."""
    if not settings.index.url:
        hint = "--index postgresql://admin@host/database"
        raise UsageError("there is no database to admit roles to", hint=hint)
    return let_in(settings.index.url, roles, timeout_s=settings.index.timeout_s)


def _failed(what: str, error: NotewellError) -> Finding:
    return Finding(what, "fail", str(error), error.hint)


def inside(memory: Memory, *, there: bool, deep: bool) -> Iterator[Finding]:
    """The checks of an open memory: its notes, its index and its models."""
    yield from _notes(memory, there=there)
    yield from _index(memory, there=there, deep=deep)
    yield from (
        Finding("forgotten", "fail", n.message, n.hint) for n in memory.index.tombstones.notices
    )
    yield from _conversations(memory)
    try:
        yield from [*_models(memory, deep=deep)]
    except NotewellError as error:
        yield _failed("model", error)


def _database(
    root: Path, settings: Settings, env: Mapping[str, str], *, deep: bool
) -> Iterator[Finding]:
    """The checks of an index in a database: its server, extension, tables and roles, then those of
    any index.
    """
    try:
        store, beside, notices = open_index(root, settings, env)
    except NotewellError as error:
        yield _failed("database", error)
        return
    with Memory(root, settings, store, notices, env=env, beside=beside) as memory:
        try:
            yield Finding("database", "ok", store.name)
            if store.shared is not None:
                yield from store.shared.health()
            yield from inside(memory, there=bool(memory.store.counts()["documents"]), deep=deep)
        except NotewellError as error:
            yield _failed("database", error)


def _notes(memory: Memory, *, there: bool) -> Iterator[Finding]:
    """What there is to search, and what was found and is not read."""
    states = memory.index.survey.states()
    read = [f"{s.amount} ({s.name})" for s in states if s.read and s.documents]
    waiting = [s for s in states if not s.read and s.documents]
    if not read or (there and not memory.store.counts()["chunks"]):  # a file may have no line
        nothing = no_notes(memory.root, states)
        yield Finding("notes", "warn", nothing.message, nothing.hint)
    else:
        yield Finding("notes", "ok", ", ".join(read))
    for state in waiting:
        told = not_read([state])[0]
        yield Finding(f"not read: {state.name}", "ok" if read else "warn", told.message, told.hint)
    yield from (Finding("notes", "warn", n.message, n.hint) for n in memory.index.files.notices)
    yield from (Finding("trust", "warn", n.message, n.hint) for n in memory.index.trust.notices)


def _settings(root: Path, settings: Settings, env: Mapping[str, str]) -> Finding:
    files = [settings_.user_file(env), root / settings_.WORKSPACE_FILE]
    read = [str(f) for f in files if f.is_file()]
    changed = len({key for key in settings.origins if settings.origins[key] != "default"})
    return Finding("settings", "ok", f"{changed} set; files: {', '.join(read) or 'none'}")


def _engine(settings: Settings, env: Mapping[str, str]) -> Iterator[Finding]:
    """What keeps engines from their folder, or sends them to another."""
    if settings.engine.enabled:
        from notewell.surfaces.engine.launch import refused  # noqa: PLC0415

        yield from (Finding("engine", "warn", one.message, one.hint) for one in refused(env))


def _disk(folder: Path, store: Store) -> Finding:
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    need = max(_LOW_BYTES, 2 * store.counts()["bytes"])
    verdict: Verdict = "fail" if free < _TOO_LOW_BYTES else "warn" if free < need else "ok"
    fix = "" if verdict == "ok" else "free some space, or set index.path to a file on another disk"
    return Finding(
        "disk space", verdict, f"{free / 1e6:,.0f} MB free on the disk of the index", fix
    )


def _file_system(file: Path) -> Iterator[Finding]:
    if on_network(file.parent):
        trouble = "the index is on a network file system, which is slower and may not lock reliably"
        yield Finding("file system", "warn", trouble, "set index.path to a file on a local disk")
    else:
        yield Finding("file system", "ok", "a local disk")
    if os.name == "nt" or not file.exists():
        return
    for path, unwanted, command in ((file, 0o077, "chmod 600"), (file.parent, 0o022, "chmod go-w")):
        mode = path.stat().st_mode & 0o777
        if mode & unwanted:
            yield Finding(
                "permissions",
                "warn",
                f"other users can access {path} ({mode:o})",
                f"{command} {path}",
            )
            return
    yield Finding("permissions", "ok", "only you can read the index")


def _index(memory: Memory, *, there: bool, deep: bool) -> Iterator[Finding]:
    if not there:
        if memory.index.files.any():
            yield Finding("index", "warn", "there is no index yet", "run: notewell index")
        return
    try:
        status = memory.status()
        faults = (
            [*memory.store.audit(), *_altered(memory.store)]
            if deep
            else memory.store.vectors.audit()
        )
    except StoreDamagedError as error:
        yield Finding("index", "fail", str(error), "run: notewell index --force")
        return
    size = (
        f"{counted(status.documents, 'file')}, {counted(status.chunks, 'passage')}, "
        f"{status.bytes / 1e6:.1f} MB"
    )
    if faults:
        yield Finding(
            "index", "fail", "; ".join(faults), f"run: notewell index{' --force' if deep else ''}"
        )
    else:
        yield Finding("index", "ok", f"{size}; all parts agree" if deep else size)
    if status.fresh:
        yield Finding(
            "freshness", "ok", f"{counted(status.on_disk, 'file')} indexed and up to date"
        )
    else:
        todo = f"{status.to_add} to add, {status.to_change} to read again, {status.to_drop} to drop"
        yield Finding(
            "freshness", "warn", todo, "run: notewell index (the next search does it too)"
        )
    for skipped in status.skipped:
        yield Finding("file", "warn", f"{skipped.path}: {skipped.reason}", cure(skipped))


def _conversations(memory: Memory) -> Iterator[Finding]:
    """Whether a program deletes its conversations before they are read, or after that without a
    copy.
    """
    days = deleted_after_days(memory.root)
    if days is None:
        return
    what = f"Claude Code deletes its conversations after {days} days"
    longer = "set cleanupPeriodDays in ~/.claude/settings.json to a larger number"
    if "sessions" not in memory.settings.sources:
        yield Finding("conversations", "warn", f"{what}, and they are not read here", longer)
    elif not memory.settings.sessions.keep:
        yield Finding(
            "conversations",
            "warn",
            f"{what}, and none is kept",
            f"set sessions.keep to true, or {longer}",
        )
    else:
        yield Finding("conversations", "ok", f"{what}; those that were read are kept")


def _altered(store: Store) -> Iterator[str]:
    """Passages whose text does not match its hash, or whose keywords do not match their text."""
    for path in store.documents.stored():
        chunks = store.documents.chunks_of(path)
        indexed = store.keywords.chunk_terms([c.row for c in chunks])
        for c in chunks:
            found = indexed.get(c.row)  # the audit finds passages without keywords
            if found and (found.body, found.exact) != tuple(
                tuple(terms.split()) for terms in index_terms(c.text)
            ):
                yield f"the keywords of {path} do not match its text"
            if Passage(c.start_line, c.end_line, c.heading, c.text).content_hash != c.content_hash:
                yield f"a passage of {path} is damaged"


def _models(memory: Memory, *, deep: bool) -> Iterator[Finding]:
    if memory.settings.embed.model == "none":
        yield Finding("model", "ok", "keywords only, as configured")
        return
    known = [(level.name, level.error) for level in memory.index.chain.levels(memory.store)]
    asked = {
        p.name: p
        for p in memory.index.probe([name for name, _ in known if deep or plain_model(name)])
    }
    working = 0
    for name, error in known:
        probe = asked.get(name)
        if probe is not None:
            found = (render.probe(probe), "") if probe.ok else (probe.error, probe.hint)
            yield Finding(f"model {name}", "ok" if probe.ok else "warn", *found)
            working += probe.ok
        elif error is not None:
            yield Finding(f"model {name}", "warn", str(error), error.hint)
        else:
            yield Finding(
                f"model {name}",
                "ok",
                "not asked, because it is on another machine (--deep asks it)",
            )
            working += 1
    if not working:
        yield Finding(
            "chain",
            "fail",
            "no model answers, so searches use keywords only",
            "set embed.model to local",
        )
    yield from _vectors(memory)


def _vectors(memory: Memory) -> Iterator[Finding]:
    status = memory.status()
    refused = f"; {status.refused} refused" if status.refused else ""
    refused += f"; {status.waiting} in a batch at the provider" if status.waiting else ""
    done = f"{status.embedded} of {status.chunks} passages by {status.embedder}{refused}"
    if status.pending and status.answering not in ("none", status.embedder):
        done += f"; {status.answering} answers until the rest is done"
    if status.pending:
        yield Finding("vectors", "warn", f"{done}, {status.pending} to go", "run: notewell index")
    elif status.refused:
        yield Finding("vectors", "warn", done, "to try those again, run: notewell index --force")
    else:
        yield Finding("vectors", "ok", done)
    if status.answering.startswith("hashed@") and memory.settings.embed.model == "auto":
        pinned = f"the index is pinned to {status.answering}, which compares spelling, not meaning"
        yield Finding("meaning", "warn", pinned, "run: notewell index --model local")
    old = sum(
        count for name, _, count in status.models if name not in (status.answering, status.embedder)
    )
    limit_mb = memory.settings.embed.cache_mb
    room = f"{status.cache_bytes / 1e6:.1f} of {limit_mb:g} MB for text no longer in any note"
    room += f"; {old} vectors of earlier models" if old else ""
    yield Finding("cache", "ok", room, "run: notewell index --prune" if old else "")


def show(checks: Sequence[Finding]) -> None:
    """Prints each check on a line, with its fix below."""
    for one in checks:
        mark = click.style(f"{one.verdict:<4}", fg=_COLOURS[one.verdict], bold=one.verdict != "ok")
        click.echo(f"{mark}  {one.what}: {render.one_line(one.detail)}")
        if one.fix:
            click.echo(f"      {render.one_line(one.fix)}")


def failed(checks: Sequence[Finding]) -> list[str]:
    """What the checks that failed say."""
    return [f"{one.what}: {one.detail}" for one in checks if one.verdict == "fail"]


def wire(checks: Sequence[Finding]) -> dict[str, Any]:
    """The checks as plain values."""
    return {"ok": not failed(checks), "checks": plain(checks)}
