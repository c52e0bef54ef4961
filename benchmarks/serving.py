"""`make bench-serve`: how servers answer at 6,000 passages: MCP, HTTP under load, and the page in a browser.

The passages' vectors are synthetic (as in `make bench`), stored under the packaged model's name; questions are embedded
by the packaged model itself, so that every answer pays for its question.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
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

import notes
import numpy as np
from measure import Clustered, Figure, machine
from run import about, line, table

from recollect.memory import Memory

NOTES = 2_000
CLIENTS = 50
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
START = [sys.executable, "-m", "recollect.surfaces.cli"]


def environment(home: Path) -> dict[str, str]:
    """No settings of the person who measures."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("RECOLLECT_", "XDG_"))}
    return {**keep, "HOME": str(home)}


class Client:
    """A plain MCP client on the pipes of a process."""

    def __init__(self, root: Path, home: Path) -> None:
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [*START, "mcp", "-w", str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(home)
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
        answer = self.call("tools/call", {"name": "memory_search", "arguments": {"query": question}})
        if answer["result"].get("isError") or answer["result"]["structuredContent"]["mode"] != "hybrid":
            raise SystemExit(f"not a hybrid answer: {answer}")
        return (time.perf_counter() - begun) * 1000

    def close(self) -> None:
        self.process.communicate(timeout=30)


def mcp(root: Path, home: Path, questions: Sequence[str]) -> Iterator[Figure]:
    """The first answer after the process starts, and those after it; no question twice."""
    firsts, spent = [], []
    for n in range(3):
        client = Client(root, home)
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
    yield Figure("mcp_first", "first MCP answer after process start", statistics.median(firsts), "s", how, 1.5)
    yield Figure("mcp_first_cpu", "the same, CPU time", statistics.median(spent), "s", "median of 3, both cores")
    how = f"{len(took)} questions, each once, wall; p95 {np.percentile(took, 95):.0f}"
    yield Figure("mcp_later", "later MCP answers, question embedded, p50", statistics.median(took), "ms", how, 50.0)
    yield Figure("mcp_later_cpu", "the same, CPU time", each, "ms", "mean, with what runs in the background")


@contextlib.contextmanager
def serving(root: Path, home: Path) -> Iterator[tuple[int, int]]:
    """A server process: its port and its process id."""
    process = subprocess.Popen(
        [*START, "serve", "-w", str(root), "--port", "0"], stderr=subprocess.PIPE, env=environment(home)
    )
    assert process.stderr is not None
    address = process.stderr.readline().decode()
    try:
        yield int(address.strip().strip("/").rsplit(":", 1)[1]), process.pid
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


def load(port: int, pid: int, questions: Sequence[str], seconds: float) -> Iterator[Figure]:
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
                connection.request("POST", "/api/search", body, {"Content-Type": "application/json"})
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

    threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads):
        sizes.append(resident(pid))
        time.sleep(max(0.2, seconds / 30))
    for thread in threads:
        thread.join()
    asked = f"{CLIENTS} clients, {seconds:g} s, {len(questions)} questions, closed loop"
    if errors:
        print(errors[:3], file=sys.stderr)
    yield Figure("load_errors", f"{CLIENTS} clients at once: errors", len(errors), "errors", asked, 0, "equal")
    yield Figure("load_rate", "the same: answers", len(took) / seconds, "/s", asked)
    yield Figure("load_p50", "the same: p50", float(np.percentile(took, 50)), "ms", asked)
    yield Figure("load_p99", "the same: p99", float(np.percentile(took, 99)), "ms", asked, 500.0)
    third = max(1, len(sizes) // 3)
    grown = statistics.median(sizes[-third:]) - statistics.median(sizes[third : 2 * third])
    how = f"last third against the middle third; {sizes[-1]:.0f} MB at the end"
    yield Figure("load_growth", "the same: memory grown", max(0.0, grown), "MB", how, 10.0)


def page(port: int, questions: Sequence[str]) -> Iterator[Figure]:
    """What a person at the page waits for: from the last key stroke to the first hit, and a slider's redraw."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return
    typed, drawn, pools = [], [], []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        made = browser.new_page(viewport={"width": 1280, "height": 900})
        made.goto(f"http://127.0.0.1:{port}/")
        made.wait_for_selector("#profile option", state="attached")
        made.evaluate(
            """() => { window.seen = 0;
              new MutationObserver(() => { window.seen = performance.now(); })
                .observe(document.getElementById('hits'), {childList: true}); }"""
        )
        for question in questions:
            made.evaluate("() => { document.getElementById('query').value = ''; window.seen = 0; }")
            typed.append(
                made.evaluate(
                    """async (text) => {
                      const box = document.getElementById('query');
                      box.value = text;
                      const begun = performance.now();
                      window.seen = 0;
                      box.dispatchEvent(new Event('input', {bubbles: true}));
                      while (!window.seen) await new Promise(requestAnimationFrame);
                      return window.seen - begun;
                    }""",
                    question,
                )
            )
            made.wait_for_function("document.getElementById('slopes').dataset.drawMs")
            for value in ("0.4", "1.6", "1"):
                with made.expect_response("**/api/search"):
                    made.locator("#vector").fill(value)
                made.wait_for_timeout(60)
                drawn.append(float(made.get_attribute("#slopes", "data-draw-ms") or "nan"))
                pools.append(made.locator("#slopes path.near").count())
            made.get_by_role("button", name="As the profile says").click()
        browser.close()
    how = f"{len(typed)} questions in headless Chromium, wall; worst {max(typed):.0f}"
    yield Figure("page_first", "page: last key stroke to first hit, p50", statistics.median(typed), "ms", how, 100.0)
    how = f"{len(drawn)} steps of {statistics.median(pools):.0f} candidates; worst {max(drawn):.0f}"
    yield Figure("page_draw", "page: the drawing of one slider step, p50", statistics.median(drawn), "ms", how, 50.0)


def main(arguments: Sequence[str]) -> int:
    """Measures and shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the clients ask")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="make the workspace here, or use the one there")
    asked = parser.parse_args(arguments)
    host = machine()
    with tempfile.TemporaryDirectory(prefix="recollect-serve-") as folder:
        base = asked.keep or Path(folder)
        root, home = base / "workspace", base / "home"
        home.mkdir(parents=True, exist_ok=True)
        if not root.exists():
            notes.write_workspace(root, asked.notes)
            with Memory.open(root, env={}, embedder=Clustered()) as memory:
                memory.sync()
        questions = list(dict.fromkeys(notes.questions(notes.Prose(11), root, 160)))
        with Memory.open(root, env={}) as memory:
            chunks = memory.store.counts()["chunks"]
        figures = list(mcp(root, home, questions[:63]))
        with serving(root, home) as (port, pid):
            figures += page(port, questions[100:115])
            figures += load(port, pid, questions[:100], asked.seconds)
    print(f"{chunks:,} passages; {about(host, asked.notes)}\n")
    print(table([line(f) for f in figures]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
