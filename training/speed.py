"""Times exported models beside each other, in turns, so that a busy machine is unfair to none.

python -m training.speed MODEL.onnx... [--shapes 1x400 4x100 1x12]
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from training import export


def runner(path: Path, shape: str, threads: int) -> Callable[[], object]:
    """A function that runs the model once on rows x tokens of random ids."""
    rows, length = map(int, shape.split("x"))
    opened = export.session(path, threads)
    ids = np.random.default_rng(0).integers(1000, 20_000, (rows, length))
    feeds = {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    feed = {given.name: feeds.get(given.name, ids) for given in opened.get_inputs()}
    return lambda: opened.run(None, feed)


def contest(runners: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each, one after the other, round by round."""
    found: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            run()
            begun = time.perf_counter()
            run()
            found[name].append((time.perf_counter() - begun) * 1000)
    return found


def main() -> None:
    """Print the least and the middle time of each model and shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--shapes", nargs="+", default=["1x400", "1x256", "4x100", "8x64", "1x12"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    print(f"onnxruntime {onnxruntime.__version__}, {chosen.threads} threads")
    pairs = [(path, shape) for path in chosen.models for shape in chosen.shapes]
    runners = {f"{path} {shape}": runner(path, shape, chosen.threads) for path, shape in pairs}
    for name, times in contest(runners, chosen.rounds).items():
        print(f"{name:60} least {min(times):7.1f} ms  middle {float(np.median(times)):7.1f} ms")


if __name__ == "__main__":
    main()
