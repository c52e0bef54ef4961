"""A workspace of made-up notes: the same seed gives the same files, and no data from elsewhere is
needed.

Words follow Zipf's law. The first ranks are the words of the sample notes by their own frequency,
then come plain nouns, then compounds of two nouns, so that common, rare and very rare words all
occur as they do in real notes.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from itertools import accumulate
from pathlib import Path

import notewell.surfaces

_NOUNS = """
    air anchor apple apron arch arrow autumn axe badge bag bakery ball bank barn basket bath beach
    bean bear bed bee bell belt bench berry bike bird blade blanket boat bolt bone book boot bottle
    bowl box branch brass bread breeze brick bridge brook broom brush bucket bulb butter button
    cabin cable cake camp candle canyon card cargo carpet cart castle cave cedar chain chair chalk
    cheese cherry chest chimney circle city clay cliff clock cloud coal coast coat coffee coin comb
    copper corn cottage cotton cream creek crow crown cup curtain dairy dawn deer desert desk dish
    dock door dove drawer dress drum duck dust eagle earth egg elbow engine farm feather fence fern
    ferry field finger fire fish flag flame flax floor flour flower fog forest fork fox frame frost
    fruit garden garlic gate ghost glass glove goat gold grain grape grass gravel guitar hail hall
    hammer harbour harvest hat hawk hay heart hedge herb hill hinge honey hood hook horn horse house
    ice ink iron island ivy jacket jar jewel kettle key kitchen kite knee knife ladder lake lamp
    lantern lark leaf leather lemon letter lid light lily lime linen lion lock log loom maple marble
    market marsh mast meadow meal metal milk mill mint mirror moon moss moth mountain mouse mud
    music nail needle nest net night nut oak oar oat ocean oil olive onion orchard oven owl paddle
    page paint palm pan paper path peach pear pearl pebble pen pepper piano pier pillow pine pipe
    pitcher plate plough plum pocket pole pond poppy porch pot potato powder pump quilt rabbit rail
    rain raven reed ribbon rice ridge ring river road robin rock roof root rope rose rudder rug sail
    salt sand saw scarf sea seed shade sheep shelf shell ship shoe shore shovel silk silver sky sled
    sleeve smoke snow soap sock soil song spade spark spice spoon spring stable star steam steel
    stone storm stove straw stream street string sugar summer sun swan table tail tea tent thread
    thunder tide tile timber tin tower town trail train tree trunk tulip tunnel turf valley vase
    velvet vest vine violet wagon wall walnut water wave wax wheat wheel whistle willow wind window
    wine wing winter wire wolf wood wool yard
""".split()  # noqa: SIM905 - words read better than a column of quotes
_VOCABULARY = 12_000
_TOPIC_SHARE = 0.25
_WORD = re.compile(r"[a-z]{2,}")


def sample_files() -> dict[str, str]:
    """The sample notes that come with the package, by their path."""
    folder = Path(str(files(notewell.surfaces) / "sample"))
    return {
        p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8")
        for p in sorted(folder.rglob("*.md"))
    }


def nouns() -> list[str]:
    """Plain nouns, which also make compounds."""
    return list(_NOUNS)


def common_words() -> list[str]:
    """The words of the sample notes, the most frequent first."""
    counted = Counter(w for text in sample_files().values() for w in _WORD.findall(text.lower()))
    return [w for w, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]


class Prose:
    """An endless supply of sentences, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        common = common_words()
        compounds = [a + b for a in _NOUNS for b in _NOUNS if a != b]
        self.random.shuffle(compounds)
        self.words = list(dict.fromkeys([*common, *_NOUNS, *compounds]))[:_VOCABULARY]
        self._weights = list(accumulate(1.0 / (rank + 2.0) for rank in range(len(self.words))))

    def topic(self) -> list[str]:
        """Forty of the rarer words, which a note comes back to."""
        return self.random.sample(self.words[300:], 40)

    def draw(self, count: int, topic: Sequence[str]) -> list[str]:
        """Words in a row: one in four of the topic, the others by Zipf's law."""
        words = self.random.choices(self.words, cum_weights=self._weights, k=count)
        return [
            self.random.choice(topic) if self.random.random() < _TOPIC_SHARE else w for w in words
        ]

    def sentence(self, topic: Sequence[str]) -> str:
        """Six to eighteen words."""
        return " ".join(self.draw(self.random.randint(6, 18), topic)).capitalize() + "."

    def text(self, tokens: int, topic: Sequence[str]) -> str:
        """Sentences of about so many tokens, at four characters each, as the chunker counts."""
        parts: list[str] = []
        size = 0
        while size < tokens * 4:
            parts.append(self.sentence(topic))
            size += len(parts[-1]) + 1
        return " ".join(parts)[: tokens * 4].rpartition(" ")[0]

    def section(self, topic: Sequence[str]) -> str:
        """A heading with paragraphs, a list or some lines of code below it."""
        parts = [f"## {' '.join(self.draw(self.random.randint(2, 4), topic)).capitalize()}"]
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.7:
                parts.append(
                    _wrapped([self.sentence(topic) for _ in range(self.random.randint(2, 6))])
                )
            elif kind < 0.9:
                parts.append(
                    "\n".join(f"- {self.sentence(topic)}" for _ in range(self.random.randint(3, 6)))
                )
            else:
                lines = [
                    "_".join(self.draw(2, topic)) + " = " + str(self.random.randrange(10_000))
                    for _ in range(4)
                ]
                parts.append("\n".join(["```", *lines, "```"]))
        return "\n\n".join(parts)

    def note(self, title: str) -> str:
        """A title and two to four sections on one topic."""
        topic = self.topic()
        return (
            "\n\n".join(
                [f"# {title}", *(self.section(topic) for _ in range(self.random.randint(2, 4)))]
            )
            + "\n"
        )


def _wrapped(sentences: Sequence[str]) -> str:
    lines: list[str] = [""]
    for word in " ".join(sentences).split(" "):
        if len(lines[-1]) + len(word) > 95:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def write_workspace(root: Path, notes: int, *, seed: int = 7) -> Prose:
    """Writes the notes, the sample notes among them; all were last changed an hour ago, as settled
    files are.
    """
    prose = Prose(seed)
    texts = {
        name if "/" not in name else f"memory/sample/{name}": t
        for name, t in sample_files().items()
    }
    first = dt.date(2023, 1, 2)
    number = 0
    while len(texts) < notes:
        if number % 5 < 3:
            day = (first + dt.timedelta(days=number * 3 // 5)).isoformat()
            texts[f"memory/{day[:7]}/{day}-{number}.md"] = prose.note(day)
        else:
            name = "-".join(prose.random.sample(prose.words[100:1500], 2))
            texts[f"memory/topics/{prose.words[300 + number % 40]}/{name}-{number}.md"] = (
                prose.note(name)
            )
        number += 1
    changed = dt.datetime.now(dt.UTC).timestamp() - 3600
    for path, text in texts.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        os.utime(place, (changed, changed))
    return prose


def questions(prose: Prose, root: Path, count: int) -> list[str]:
    """Questions of four to twelve words about notes that are there."""
    openings = (
        "what did we decide about",
        "when was the",
        "why does",
        "who looks after the",
        "how do I",
        "",
    )
    notes = sorted((root / "memory").rglob("*.md"))
    found = []
    for _ in range(count):
        words = _WORD.findall(prose.random.choice(notes).read_text(encoding="utf-8").lower())
        start = prose.random.randrange(max(1, len(words) - 8))
        about = words[start : start + prose.random.randint(3, 7)]
        found.append(f"{prose.random.choice(openings)} {' '.join(about)}".strip())
    return found
