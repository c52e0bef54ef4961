"""A packaged ONNX model as onnxruntime has optimized it, kept in the user's cache folder for the
next start.

It loads in half the time, and in half the memory: the weights are in a separate file, which is
mapped and not copied. A folder is named after all that it depends on, is made under another name
and renamed when it is complete, and is checked when it is read. Whatever goes wrong, the packaged
file is loaded instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

Made = TypeVar("Made")
_GRAPH, _WEIGHTS, _SUM = "model.onnx", "weights.bin", "sum"
_WRITTEN = {
    "optimized_model_external_initializers_file_name": _WEIGHTS,
    "optimized_model_external_initializers_min_size_in_bytes": "1024",
    # in the order that the processor multiplies them in
    "save_external_prepacked_constant_initializers": "1",
}
# bytes up to which all of a file is read, and how much of others
_WHOLE, _SAMPLES, _SAMPLE = (4_000_000, 64, 4096)
_PART = 1 << 16
_KEPT = 3  # of one model, for several environments of one user

Load = Callable[[Path, Any], Any]
"""Makes a session of a file with options."""


def load(
    model: Path, folder: Path, runtime: Any, *, options: Callable[[], Any], start: Load
) -> Any:
    """A session of a model, from `folder` if it is there; else from its file, and it is written to
    the folder.
    """
    place = folder / f"{model.stem}-{_key(model, runtime)}"
    if is_sound(place):
        with contextlib.suppress(Exception):  # of whatever kind: the packaged file is there
            own = options()
            # it is done
            own.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
            return start(place / _GRAPH, own)
    # a full disk, a folder that cannot be written, another onnxruntime
    with contextlib.suppress(Exception):
        return keep(place, lambda new: _made(model, new, options=options(), start=start))
    return start(model, options())


def _made(model: Path, new: Path, *, options: Any, start: Load) -> Any:
    """A session of the packaged file, which onnxruntime writes in its optimized form as it loads
    it.
    """
    options.optimized_model_filepath = str(new / _GRAPH)
    for name, value in _WRITTEN.items():
        options.add_session_config_entry(f"session.{name}", value)
    session = start(model, options)
    # Linux maps as much around what is read of a file as was written at once: of the words of a
    # question, megabytes.
    with (new / _WEIGHTS).open("rb") as whole, (new / _SUM).open("wb", buffering=0) as parts:
        while part := whole.read(_PART):
            parts.write(part)
    (new / _SUM).replace(new / _WEIGHTS)
    return session


def keep(place: Path, make: Callable[[Path], Made]) -> Made:
    """What a function makes that writes files into a new folder, which then gets its place."""
    new = place.with_name(f".{place.name}.{os.urandom(4).hex()}")
    try:
        new.mkdir(mode=0o700, parents=True)
        made = make(new)
        (new / _SUM).write_text(_sum_in(new), encoding="ascii")
        shutil.rmtree(place, ignore_errors=True)  # it is not sound
        with contextlib.suppress(OSError):  # another process may have been faster
            new.rename(place)
        _drop_old(place)
        return made
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _drop_old(place: Path) -> None:
    """Deletes all but the newest of a model, and what a process that was killed has left."""
    name = place.name.rpartition("-")[0]
    with contextlib.suppress(OSError):
        others = [p for p in place.parent.iterdir() if p.name.lstrip(".").startswith(f"{name}-")]
        others.sort(key=lambda p: (p != place, -p.stat().st_mtime))
        for old in others[_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)


def is_sound(place: Path) -> bool:
    """Whether a folder is complete, as it was made, and nobody else's."""
    try:
        mine = not hasattr(os, "getuid") or place.stat().st_uid == os.getuid()
        return mine and (place / _SUM).read_text(encoding="ascii") == _sum_in(place)
    except (OSError, ValueError):
        return False


def _key(model: Path, runtime: Any) -> str:
    """What the optimized form depends on: the model, onnxruntime and the processor."""
    about = (
        f"{_WRITTEN} {sum_of((model,))} {runtime.__version__} {platform.machine()} {_processor()}"
    )
    return hashlib.blake2b(about.encode(), digest_size=8).hexdigest()


def _processor() -> str:
    """The name and the abilities of the processor, as far as it is quick to learn them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(8192).partition("\n\n")[0]
    except OSError:
        return os.environ.get("PROCESSOR_IDENTIFIER", "")
    return " ".join(
        re.findall(r"^(?:model name|flags|Features|CPU part)\s*:(.*)$", first, re.MULTILINE)
    )


def _sum_in(place: Path) -> str:
    return sum_of(sorted(path for path in place.iterdir() if path.name != _SUM))


def sum_of(files: Iterable[Path]) -> str:
    """A hash of the sizes of files and of samples all over large ones: to read all weights would
    take longer.
    """
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(size.to_bytes(8, "little"))
            if size <= _WHOLE:
                digest.update(file.readall())
                continue
            for i in range(_SAMPLES):
                file.seek(max(0, size - _SAMPLE) * i // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()
