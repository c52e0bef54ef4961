"""`make bench-serve`: how servers answer at 6,000 passages: MCP, HTTP under load, and the page in a
browser.

The passages' vectors are synthetic (as in `make bench`), stored under the packaged model's name;
questions are embedded by the packaged model itself, so that every answer pays for its question.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from measure import Clustered, Figure, machine
from run import about, line, table

import notes
from notewell.memory import Memory

NOTES = 2_000
MANY = 10_000
CLIENTS = (16, 50)  # at once
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
START = [sys.executable, "-m", "notewell.surfaces.cli.main"]


def environment(home: Path) -> dict[str, str]:
    """No settings of the person who measures, and no engine."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("NOTEWELL_", "XDG_"))}
    return {**keep, "HOME": str(home), "NOTEWELL_ENGINE_ENABLED": "0"}


class Client:
    """A plain MCP client on the pipes of a process."""

    def __init__(self, root: Path, *, env: dict[str, str]) -> None:
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [*START, "mcp", "-w", str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        self._number = 0
        self.call("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def search(self, question: str) -> float:
        begun = time.perf_counter()
        answer = self.call(
            "tools/call", {"name": "memory_search", "arguments": {"query": question}}
        )
        if (
            answer["result"].get("isError")
            or answer["result"]["structuredContent"]["mode"] != "hybrid"
        ):
            raise SystemExit(f"not a hybrid answer: {answer}")
        return (time.perf_counter() - begun) * 1000

    def close(self) -> None:
        self.process.communicate(timeout=30)


def mcp(root: Path, home: Path, questions: Sequence[str]) -> Iterator[Figure]:
    """The first answer after the process starts, and those after it; no question twice."""
    firsts, spent = [], []
    for n in range(3):
        client = Client(root, env=environment(home))
        client.search(questions[n])
        firsts.append(time.perf_counter() - client.begun)
        spent.append(cpu(client.process.pid))
        if n < 2:
            client.close()
    before = cpu(client.process.pid)
    took = [client.search(q) for q in questions[3:]]
    each = (cpu(client.process.pid) - before) / len(took) * 1000
    client.close()
    how = f"median of {len(firsts)} processes, wall; best {min(firsts):.2f}"
    yield Figure(
        "mcp_first",
        "first MCP answer after process start",
        statistics.median(firsts),
        "s",
        how,
        1.5,
    )
    yield Figure(
        "mcp_first_cpu",
        "the same, CPU time",
        statistics.median(spent),
        "s",
        "median of 3, both cores",
    )
    how = f"{len(took)} questions, each once, wall; p95 {np.percentile(took, 95):.0f}"
    yield Figure(
        "mcp_later",
        "later MCP answers, question embedded, p50",
        statistics.median(took),
        "ms",
        how,
        50.0,
    )
    yield Figure(
        "mcp_later_cpu", "the same, CPU time", each, "ms", "mean, with what runs in the background"
    )


@contextlib.contextmanager
def serving(root: Path, home: Path) -> Iterator[tuple[int, int]]:
    """A server process: its port and its process id."""
    process = subprocess.Popen(
        [*START, "serve", "-w", str(root), "--port", "0"],
        stderr=subprocess.PIPE,
        env=environment(home),
    )
    assert process.stderr is not None
    said = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stderr.readline().decode())
    assert said is not None
    try:
        yield int(said[1]), process.pid  # no token: on Linux it sees that this user asks
    finally:
        process.terminate()
        process.communicate(timeout=30)


def cpu(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """Resident size in MB."""
    for one in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if one.startswith("VmRSS"):
            return int(one.split()[1]) / 1024
    return 0.0


def load(
    port: int, pid: int, questions: Sequence[str], seconds: float, *, clients: int
) -> Iterator[Figure]:
    """So many clients at once, each asking again as soon as it has its answer."""
    took: list[float] = []
    errors: list[str] = []
    sizes: list[float] = []
    until = time.perf_counter() + seconds

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        n = number
        while time.perf_counter() < until:
            begun = time.perf_counter()
            body = json.dumps({"query": questions[n % len(questions)]})
            try:
                connection.request(
                    "POST", "/api/search", body, {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                data = answer.read()
            except OSError as error:
                errors.append(str(error))
                connection.close()
                continue
            took.append((time.perf_counter() - begun) * 1000)
            if answer.status == 429:
                errors.append("429")
                time.sleep(0.05)
            elif answer.status != 200 or not json.loads(data)["results"]:
                errors.append(f"{answer.status} {data[:200]!r}")
            n += 7
        connection.close()

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads):
        sizes.append(resident(pid))
        time.sleep(max(0.2, seconds / 30))
    for thread in threads:
        thread.join()
    asked = f"{clients} clients, {seconds:g} s, {len(questions)} questions, closed loop"
    if errors:
        print(errors[:3], file=sys.stderr)
    name, what = f"load_{clients}", f"{clients} clients at once"
    median, slow = (float(np.percentile(took, share)) for share in (50, 99))
    yield Figure(f"{name}_errors", f"{what}: errors", len(errors), "errors", asked, 0, "equal")
    yield Figure(f"{name}_rate", "the same: answers", len(took) / seconds, "/s", asked)
    yield Figure(f"{name}_p50", "the same: p50", median, "ms", asked)
    yield Figure(
        f"{name}_p99", "the same: p99", slow, "ms", f"{asked}; target 8 × p50", 8.0 * median
    )
    third = max(1, len(sizes) // 3)
    grown = statistics.median(sizes[-third:]) - statistics.median(sizes[third : 2 * third])
    how = f"last third against the middle third; {sizes[-1]:.0f} MB at the end"
    yield Figure(f"{name}_growth", "the same: memory grown", max(0.0, grown), "MB", how, 10.0)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium, or None where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        yield None
        return
    with sync_playwright() as play:
        made = play.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield made
        made.close()


def opened(port: int, pid: int, count: int) -> Iterator[Figure]:
    """What a person waits for who opens the page: the first paint, and the figures of Home."""
    painted, filled = [], []
    with browser() as chromium:
        if chromium is None:
            return
        for n in range(11):
            context = chromium.new_context(viewport={"width": 1280, "height": 900})
            made = context.new_page()
            made.add_init_script(
                """new MutationObserver((_, self) => { if (document.querySelector('.figures')) {
                     window.filled = performance.now(); self.disconnect(); } })
                   .observe(document, {childList: true, subtree: true});"""
            )
            made.goto(f"http://127.0.0.1:{port}/")
            made.wait_for_selector(".figures")
            made.wait_for_function(
                "() => performance.getEntriesByName('first-contentful-paint').length"
            )
            if n:  # the first one wakes the server up
                painted.append(
                    made.evaluate(
                        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
                    )
                )
                filled.append(made.evaluate("window.filled"))
            else:
                before = cpu(pid)
            context.close()
    how = (
        f"{len(painted)} fresh tabs, {count:,} notes, empty cache of the browser, wall; worst "
        f"{max(painted):.0f}"
    )
    yield Figure(
        "page_paint", "page: first paint of Home, p50", statistics.median(painted), "ms", how, 200.0
    )
    how = f"the same tabs; worst {max(filled):.0f}"
    yield Figure("page_home", "page: all of Home, p50", statistics.median(filled), "ms", how)
    each = (cpu(pid) - before) / len(filled) * 1000
    yield Figure(
        "page_home_cpu",
        "the same, CPU time of the server",
        each,
        "ms",
        "mean, with all files of the page",
    )


# One key stroke after another, each as soon as the hits of the one before are shown; the time until
# they are.
_TYPE = """async (text) => {
  const box = document.getElementById('query');
  const took = [];
  for (let n = 1; n <= text.length; n++) {
    const part = text.slice(0, n);
    if (!part.trim()) continue;
    const begun = performance.now();
    box.value = part;
    box.dispatchEvent(new Event('input', {bubbles: true}));
    await new Promise((shown) => {
      const look = () => document.getElementById('hits')?.dataset.asked === part
        && (seen.disconnect(), shown());
      const seen = new MutationObserver(look);
      seen.observe(document.getElementById('view'),
        {attributes: true, childList: true, subtree: true});
    });
    took.push(performance.now() - begun);
  }
  return took;
}"""


def typed(port: int, pid: int, questions: Sequence[str], count: int) -> Iterator[Figure]:
    """What a person waits for who types a question: from a key stroke to its hits."""
    took: list[float] = []
    with browser() as chromium:
        if chromium is None:
            return
        made = chromium.new_page(viewport={"width": 1280, "height": 900})
        made.goto(f"http://127.0.0.1:{port}/#/search")
        made.wait_for_selector("#hits", state="attached")
        before = cpu(pid)
        for question in questions:
            took += made.evaluate(_TYPE, question[:60])
        each = (cpu(pid) - before) / len(took) * 1000
    key, what = f"page_key_{count}", f"page, {count:,} notes: key stroke to hits"
    how = f"{len(took)} key strokes of {len(questions)} questions in headless Chromium, wall"
    yield Figure(key, f"{what}, p50", statistics.median(took), "ms", how)
    yield Figure(f"{key}_p95", "the same, p95", float(np.percentile(took, 95)), "ms", how, 60.0)
    yield Figure(
        f"{key}_cpu",
        "the same, CPU time of the server",
        each,
        "ms",
        "mean, question embedded, hits rendered",
    )


def drawn(port: int, questions: Sequence[str]) -> Iterator[Figure]:
    """What a person waits for who moves a slider of the laboratory."""
    took, pools = [], []
    with browser() as chromium:
        if chromium is None:
            return
        made = chromium.new_page(viewport={"width": 1280, "height": 900})
        made.goto(f"http://127.0.0.1:{port}/#/lab")
        made.wait_for_selector("#profile option", state="attached")
        made.get_by_text("Try other settings").click()
        for question in questions:
            with made.expect_response("**/api/search"):
                made.fill("#lab-query", question)
            for value in ("0.4", "1.6", "1"):
                with made.expect_response("**/api/search"):
                    made.locator("#vector").fill(value)
                made.wait_for_timeout(60)
                took.append(float(made.get_attribute("#slopes", "data-draw-ms") or "nan"))
                pools.append(made.locator("#slopes path.near").count())
            made.get_by_role("button", name="Reset to the profile").click()
    how = f"{len(took)} steps of {statistics.median(pools):.0f} candidates; worst {max(took):.0f}"
    yield Figure(
        "page_draw",
        "page: the drawing of one slider step, p50",
        statistics.median(took),
        "ms",
        how,
        50.0,
    )


def workspace(root: Path, count: int) -> None:
    """Notes and their index, unless they are there already."""
    if root.exists():
        return
    notes.write_workspace(root, count)
    with Memory.open(root, env={}, embedder=Clustered()) as memory:
        memory.sync()


def main(arguments: Sequence[str]) -> int:
    """Measures and shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--many", type=int, default=MANY, help="how many notes Home is opened with")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the clients ask")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="make the workspace here, or use the one there"
    )
    asked = parser.parse_args(arguments)
    host = machine()
    with tempfile.TemporaryDirectory(prefix="notewell-serve-") as folder:
        base = asked.keep or Path(folder)
        root, home = base / "workspace", base / "home"
        home.mkdir(parents=True, exist_ok=True)
        workspace(root, asked.notes)
        workspace(base / "many", asked.many)
        questions = list(dict.fromkeys(notes.questions(notes.Prose(11), root, 160)))
        with Memory.open(root, env={}) as memory:
            chunks = memory.store.counts()["chunks"]
        figures = list(mcp(root, home, questions[:63]))
        with serving(root, home) as (port, pid):
            figures += [
                *typed(port, pid, questions[100:115], asked.notes),
                *drawn(port, questions[100:115]),
            ]
            for clients in CLIENTS:
                figures += load(port, pid, questions[:100], asked.seconds, clients=clients)
        with serving(base / "many", home) as (port, pid):
            figures += [
                *opened(port, pid, asked.many),
                *typed(port, pid, questions[100:115], asked.many),
            ]
    print(f"{chunks:,} passages; {about(host, asked.notes)}\n")
    print(table([line(f) for f in figures]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
