"""The notes that the tests of the page look at: days, a contradiction, hostile markup, scripts of
the world.
"""

from __future__ import annotations

from pathlib import Path

ATTACK = "document.title = 'owned'"
HOSTILE = f"""# <script>{ATTACK}</script>

<img src=x onerror="{ATTACK}"> walrus <svg onload="{ATTACK}"></svg>
[click](javascript:{ATTACK.replace(" ", "")}) </pre></dialog><script>{ATTACK}</script> "><b>bold</b>

## <img src=x onerror="{ATTACK}"> heading #<b>tag</b>

![picture](http://example.invalid/pixel.png "<b>") [data](data:text/html,<script>{ATTACK}</script>)
<iframe srcdoc="<script>{ATTACK}</script>"></iframe> \
[[<img src=x onerror={ATTACK.replace(" ", "")}>]]
"""


def write_notes(root: Path) -> None:
    """33 notes in a fresh folder."""
    (root / "memory").mkdir()
    for n in range(1, 29):
        words = "staging" if n % 3 else "production"
        text = (
            f"# Day {n}\n\nThe {words} port is {8000 + n} since the move.\n\n## Lunch\n\nSoup "
            f"number {n}.\n"
        )
        (root / f"memory/2026-02-{n:02}.md").write_text(text, encoding="utf-8")
    (root / "memory/hostile.md").write_text(HOSTILE, encoding="utf-8")
    (root / "memory/cjk.md").write_text(
        "# メモ\n\nGitHub备份脚本在夜里运行。ステージングは夜に止まる。\n", encoding="utf-8"
    )
    for day, amount in ((1, 40000), (9, 55000)):
        text = f"# Budget\n\nThe marketing budget for the year is {amount} euros.\n"
        (root / f"memory/2026-01-0{day}.md").write_text(text, encoding="utf-8")
    (root / "memory/rtl.md").write_text(
        "# הערות\n\nהפגישה עברה ליום שלישי בשעה 10.\n", encoding="utf-8"
    )
