"""`notewell hook`: what a host calls, and the log of what it got. Loads no more than an event
needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from notewell.surfaces.hooks.deadline import Sent, end_after, user_deadline, within
from notewell.surfaces.hooks.hosts import EVENTS, HOSTS

_KEEP_S, _KEEP_WAIT_S, _KEEP_EMBED_S = 300.0, 30.0, 120.0
_NICE = 10
_OF_PEOPLE = ("log", "useless")


class _Hook(click.Command):
    """A command that tells a person what is wrong with a line, and no host: an exit code of 2 would
    stop its agent.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the line; one that a newer plugin may have written does nothing."""
        is_for_people = args[:1] and args[0] in _OF_PEOPLE
        on_terminal = sys.stdin is not None and sys.stdin.isatty()
        a_person_asks = is_for_people or on_terminal or args == ["--json"]  # hosts name an event
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if a_person_asks:
                raise
            _record(error, os.environ)
            ctx.exit(0)


@click.command(cls=_Hook, epilog=f"Hosts: {', '.join(HOSTS)}")
@click.argument(
    "event", type=click.Choice([*EVENTS, *_OF_PEOPLE, "keep"]), metavar="EVENT|log|useless"
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--host",
    type=click.Choice(list(HOSTS)),
    default="claude-code",
    help="Whose JSON is read and written.",
)
@click.option(
    "-w",
    "--workspace",
    type=click.Path(),
    help="Folder with notes (default: the one the host works in).",
)
@click.option(
    "--budget",
    type=float,
    metavar="SECONDS",
    help="How long changed files may be indexed (hook.sync_s).",
)
@click.option("--wait", is_flag=True, hidden=True)
@click.option(
    "--json", "as_json", is_flag=True, help="With log and useless: print one JSON object."
)
def hook(
    event: str,
    *,
    ids: Sequence[str],
    host: str,
    workspace: str | None,
    budget: float | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Answer an event of an agent: session-start, prompt, stop, compact or session-end.

    Reads the host's JSON from stdin and writes what that host reads. It never fails: what goes
    wrong is in the log of errors. 'hook log' shows what was given to a model and when; 'hook
    useless ID' keeps it away from such prompts.

    \b
    notewell hook prompt --host claude-code
    notewell hook log
    notewell hook useless 3f9a01
    """
    if event in EVENTS:
        _answer(event, host, workspace or "", budget)
    elif event == "keep":
        _keep(Path(workspace or "."), wait=wait)
    else:
        _tell(event, ids, as_json=as_json)


def _answer(event: str, host: str, workspace: str, budget: float | None) -> None:
    """Works in a process that is killed at the deadline; prints nothing if it fails or is late."""
    env = dict(os.environ)
    found, start = click.get_current_context().obj or (None, False)
    read: Sent = found or Sent()
    deadline_s = user_deadline(env)
    sent = read.within(deadline_s)

    def work() -> bytes:
        try:
            from notewell.surfaces.hooks.loop import respond  # noqa: PLC0415 - inside, so that the deadline holds for it

            known = next(one for one in EVENTS if one == event)
            told = respond(
                known,
                HOSTS[host],
                sent or b"",
                env,
                workspace=workspace,
                sync_s=budget,
                start=start,
            )
            return json.dumps(told).encode() + b"\n" if told else b""
        except Exception as error:  # noqa: BLE001 - a hook never fails its host
            _record(error, env)
            return b""

    done = None if sent is None else within(deadline_s - read.spent_s(), work)
    if done is None:
        _record(
            TimeoutError(f"hook {event} of {host} was not done after {deadline_s:g} s, or died"),
            env,
        )
    elif done:
        sys.stdout.flush()
        sys.stdout.buffer.write(done)
        sys.stdout.buffer.flush()


def _record(error: BaseException, env: Mapping[str, str]) -> None:
    from notewell.surfaces import failures  # noqa: PLC0415

    with contextlib.suppress(Exception):
        failures.record(error, env)


def _keep(root: Path, *, wait: bool) -> None:
    """The work in the background: gently, and not for ever."""
    end_after(_KEEP_S)
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_NICE)
    try:
        from notewell.surfaces.hooks.loop import keep  # noqa: PLC0415

        keep(root, os.environ, wait_s=_KEEP_WAIT_S if wait else 0.0, embed_s=_KEEP_EMBED_S)
    except Exception as error:  # noqa: BLE001 - nobody is there to be told
        _record(error, os.environ)


def _tell(event: str, ids: Sequence[str], *, as_json: bool) -> None:
    from notewell.errors import UsageError  # noqa: PLC0415
    from notewell.surfaces.cli import options, render  # noqa: PLC0415
    from notewell.surfaces.hooks.journal import Journal  # noqa: PLC0415

    journal = Journal(os.environ)
    if event == "useless" and not ids:
        raise UsageError("nothing is named", hint="notewell hook log shows the ids")
    if event == "log" and ids:
        raise UsageError(
            f"hook log takes no argument, but got {ids[0]!r}",
            hint="to mark it: notewell hook useless ID",
        )
    found = [journal.mark(name) for name in ids] if event == "useless" else journal.entries()

    def show() -> None:
        for one in found:
            places = ", ".join(
                f"{p.citation} {p.confidence:.2f}" if p.content else p.citation
                for p in one.passages
            )
            mark = "  useless" if one.useless else ""
            click.echo(
                render.one_line(f"{one.id}  {one.time[:16]}  {one.host}  {one.tokens} tokens{mark}")
            )
            click.echo(
                render.one_line(
                    f'    "{one.prompt}"' if one.prompt else "    (the start of a session)"
                )
            )
            click.echo(render.one_line(f"    {places}"))
        if not found:
            click.echo("nothing was given to a model yet")

    options.answer(as_json, lambda: {"injected": [asdict(one) for one in found]}, show)


def thread_failed(failure: threading.ExceptHookArgs) -> None:
    """Writes down what ended a thread; a host must not see it."""
    if failure.exc_value is not None:
        _record(failure.exc_value, os.environ)


def run(arguments: Sequence[str], sent: Sent | None = None, *, start: bool = False) -> int:
    """Runs `notewell hook …` without loading the other commands; `sent` is what is being read from
    stdin already.

    `start` says whether an engine may be started for the next one.
    """
    name = arguments[1] if len(arguments) > 1 else ""
    if (name not in EVENTS and name != "keep") or {"-h", "--help"} & set(arguments):
        from notewell.surfaces.cli.commands import run as run_all  # noqa: PLC0415

        return run_all(arguments)
    try:
        with hook.make_context("notewell hook", list(arguments[1:]), obj=(sent, start)) as context:
            hook.invoke(context)
    except click.exceptions.Exit:
        pass
    except BrokenPipeError:
        from notewell.surfaces.cli.ending import reader_left  # noqa: PLC0415

        reader_left()
    except Exception as error:  # noqa: BLE001 - a hook never fails its host
        _record(error, os.environ)
    return 0
