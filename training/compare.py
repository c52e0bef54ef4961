"""Measures the models that the student learned from on the same sets, for the model card.

python -m training.compare FOLDER [NAME...]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from training import measure, models, weights


def main(folder: str, *names: str) -> None:
    """Whole-passage vectors of each model on each set."""
    held = Path(folder)
    sets = measure.load(held / "sets" / "sets.json.xz")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out = {}
    for name in names or weights.MODELS:
        begun = time.monotonic()
        encoder = models.load(name, held / "weights")
        encoder.model.to(device)
        found = {}
        for one in sets:
            asked = encoder.vectors([q["text"] for q in one.questions], encoder.query_prefix)
            whole = encoder.vectors(one.texts, encoder.passage_prefix)
            found[one.name] = measure.score(one, (asked @ whole.T).float())
        out[name] = found
        mean = sum(v for v, _ in found.values()) / len(found)
        print(
            name,
            f"{mean:.4f}",
            {k: round(v, 3) for k, (v, _) in found.items()},
            f"{time.monotonic() - begun:.0f} s",
        )
    (held / "out" / "compare.json").write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
