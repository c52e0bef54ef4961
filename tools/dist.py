"""Builds what is published: wheels and source packages of notewell and its model, the same bytes
from a commit.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MUSL = ("musllinux_1_1_x86_64", "musllinux_1_1_aarch64")
# have no wheel for musl; the model cannot run there, keywords answer
NO_WHEEL = ("onnxruntime", "sentencepiece")


def epoch(root: Path = ROOT) -> str:
    """The time of the last commit that changed a folder, in seconds, which all files in its package
    get.
    """
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    command = ["git", "log", "-1", "--format=%ct", "--", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "1577836800"


def build(root: Path, out: Path) -> list[Path]:
    """The packages of a checkout; each wheel is made from its source package, so that both are
    known to be complete.
    """
    out.mkdir(parents=True, exist_ok=True)
    for project in (root, root / "model"):
        env = {**os.environ, "SOURCE_DATE_EPOCH": epoch(project)}
        command = [
            sys.executable,
            "-m",
            "build",
            "--no-isolation",
            "--outdir",
            str(out),
            str(project),
        ]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{project} could not be built:\n{done.stdout}{done.stderr}")
    (wheel,) = out.glob("notewell-*-none-any.whl")
    for_musl(wheel)
    return sorted(p for p in out.iterdir() if p.suffix == ".whl" or p.name.endswith(".tar.gz"))


def for_musl(wheel: Path) -> Path:
    """The same wheel for systems with musl, where installers prefer it: it does not ask for what
    runs the model.

    A marker of a requirement cannot tell musl from glibc.
    """
    made = wheel.with_name(wheel.name.replace("-any.whl", f"-{'.'.join(MUSL)}.whl"))
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        record = io.StringIO()
        rows = csv.writer(record, lineterminator="\n")
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith(".dist-info/RECORD"):
                rows.writerow([item.filename, "", ""])
                data = record.getvalue().encode()
            else:
                data = _changed(item.filename, data)
                digest = (
                    base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                )
                rows.writerow([item.filename, f"sha256={digest}", len(data)])
            new.writestr(item, data)
    return made


def _changed(name: str, data: bytes) -> bytes:
    """A file of the wheel for musl: without the requirement, and with its tags."""
    lines = data.decode().splitlines(keepends=True) if ".dist-info/" in name else []
    if name.endswith(".dist-info/METADATA"):
        kept = [
            line
            for line in lines
            if not line.startswith(tuple(f"Requires-Dist: {one}" for one in NO_WHEEL))
        ]
        if len(kept) != len(lines) - len(NO_WHEEL):
            sys.exit(
                f"{name} does not name each of {NO_WHEEL} once: is the wheel for musl still needed?"
            )
        return "".join(kept).encode()
    if name.endswith(".dist-info/WHEEL"):
        tags = "".join(f"Tag: py3-none-{tag}\n" for tag in MUSL)
        return "".join(tags if line.startswith("Tag: ") else line for line in lines).encode()
    return data


def main() -> None:
    """Builds into a folder, checks what was built, and lists it with its hashes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out
    shutil.rmtree(out, ignore_errors=True)
    files = build(ROOT, out)
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True
    )
    sums = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files
    )
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    sys.stdout.write(sums)


if __name__ == "__main__":
    main()
