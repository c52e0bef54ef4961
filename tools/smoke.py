"""Tries built wheels in an empty environment, as somebody who installs them would: `smoke.py DIST
FOLDER`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import venv
from pathlib import Path

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "smoke", "version": "1"},
}


class Place:
    """An environment with nothing but what is installed into it, and a folder of notes."""

    def __init__(self, folder: Path, dist: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")
        self.notes = folder / "notes"
        (self.notes / "memory").mkdir(parents=True)
        (self.notes / "memory/wifi.md").write_text(
            "# Wifi\n\nThe guest password is on the fridge.\n", encoding="utf-8"
        )
        self.dist = dist
        # Nobody's settings, and no package of the folder that this is started in.
        unset = ("NOTEWELL_", "PYTHONPATH", "XDG_")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(unset)} | {
            "HOME": str(folder / "home")
        }

    def run(self, program: str, *arguments: str, code: int = 0) -> str:
        """What a program of the environment prints, or its error; ends the test if it exits with
        another code.
        """
        command = [str(self.programs / program), *arguments]
        done = subprocess.run(
            command, cwd=self.notes, env=self.env, capture_output=True, text=True, check=False
        )
        if done.returncode != code:
            sys.exit(
                f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout if code == 0 else done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that stays."""
        command = [str(self.programs / "notewell"), *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.notes, env=self.env, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def install(self, what: str) -> None:
        """Installs from the built wheels, and the rest from the index."""
        self.run("pip", "install", "--quiet", "--find-links", str(self.dist), what)


def expect(*, condition: bool, sentence: str) -> None:
    """Ends the test with a sentence, or says that it holds."""
    if not condition:
        sys.exit(f"failed: {sentence}")
    sys.stdout.write(f"ok: {sentence}\n")


def served(place: Place) -> bool:
    """Whether the server answers a search."""
    with place.start("serve", "--port", "0") as process:
        assert process.stderr is not None
        try:
            said = re.search(r"(http://\S+/)#token=(\S+)", process.stderr.readline())
            assert said is not None
            url = f"{said[1]}api/search?query=guest%20password"
            asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {said[2]}"})  # noqa: S310
            with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 - our own server
                return bool(json.load(answer)["results"])
        finally:
            process.terminate()


def spoken(place: Place) -> bool:
    """Whether the MCP server introduces itself and lists its tools."""
    with place.start("mcp") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said = []
        for number, (method, params) in enumerate((("initialize", HELLO), ("tools/list", {}))):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            said.append(json.loads(process.stdout.readline())["result"])
            if method == "initialize":
                process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        process.stdin.close()
        process.wait(60)
    return "memory_search" in {tool["name"] for tool in said[1]["tools"]}


def taken_on_musl(place: Place) -> list[str]:
    """The files that pip would install on a system with musl."""
    tags = [
        word
        for tag in ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64")
        for word in ("--platform", tag)
    ]
    there = ["--dry-run", "--target", str(place.notes / "musl"), "--only-binary", ":all:", *tags]
    said = place.run("pip", "install", *there, "--find-links", str(place.dist), "notewell")
    return re.findall(r"[\w.-]+\.whl", said) + re.findall(r"(?<=Would install ).*", said)


def main() -> None:
    """Tries the base install, then the one for agents."""
    dist, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    place = Place(folder, dist)
    place.install("notewell")
    said = place.run("notewell", "--version")
    expect(condition="sha256" in said, sentence="it installs, and says which model it has")
    expect(condition="Usage: notewell" in place.run("notewell", "--help"), sentence="it has help")
    expect(
        condition="memory/" in place.run("python", "-m", "notewell", "demo"),
        sentence="the demo runs",
    )
    found = json.loads(place.run("notewell", "search", "how do visitors get online", "--json"))
    expect(condition=found["mode"] == "hybrid", sentence="a search uses the model")
    expect(condition=served(place), sentence="the server answers")
    missing = place.run("notewell", "mcp", code=2)
    expect(
        condition='pip install "notewell[mcp]"' in missing,
        sentence="without the extra, mcp says what to install",
    )
    place.install("notewell[mcp]")
    expect(condition=spoken(place), sentence="the MCP server lists its tools")
    taken = " ".join(taken_on_musl(place))
    expect(
        condition="notewell-" in taken and "onnxruntime" not in taken,
        sentence="with musl it installs without a runtime",
    )


if __name__ == "__main__":
    main()
