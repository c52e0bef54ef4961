"""Keeps an index, notes and settings of this version for the versions to come: `python -m
tests.upgrade.keep`.

Run it once, when a version is released; a folder that is there is never written again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from notewell import Memory, __version__

HERE = Path(__file__).parent
NOTES = {
    "MEMORY.md": "# Facts\n\n- Mira owns the billing service.\n- Tea, not coffee, for guests.\n",
    "memory/2026-02-10.md": "# Standup\n\nThe staging port moved to 8443. See [[auth]].\n",
    "memory/2026-05-06.md": (
        "# Packing\n\nTwo torches and the small stove.\n\nThe spare key is under the mat.\n"
    ),
    "memory/auth.md": (
        "---\ntitle: Sign-in\ntags: [tokens]\n---\n# Tokens\n\nRefresh tokens live "
        "for thirty days.\n"
    ),
}
WORKSPACE = '[chunk]\ntokens = 300\n\n[search]\nlimit = 5\n\n[embed]\nmodel = "hashed@64"\n'
OWN = "[hook]\nconfidence = 0.5\n\n[index]\ntimeout_s = 20.0\n\n[sessions]\nkeep_mb = 500.0\n"


def keep(folder: Path) -> None:
    """Writes the folder of one version: notes, both settings files, the index, and what was
    forgotten.
    """
    with tempfile.TemporaryDirectory() as made:
        root = Path(made) / "workspace"
        for name, text in NOTES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        (root / "notewell.toml").write_text(WORKSPACE, encoding="utf-8")
        with Memory.open(root) as memory:
            memory.sync()
            memory.forget("memory/2026-05-06.md:5", yes=True)
            memory.sync()
        shutil.copytree(root / "memory", folder / "memory")
        for name in (
            "MEMORY.md",
            "notewell.toml",
            ".notewell/index.sqlite",
            ".notewell/forgotten.jsonl",
        ):
            shutil.copy(root / name, folder / Path(name).name)
    (folder / "config.toml").write_text(OWN, encoding="utf-8")


if __name__ == "__main__":
    place = HERE / __version__
    if place.exists():
        sys.exit(f"{place} is kept already")
    keep(place)
