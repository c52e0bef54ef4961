"""What one would ask later about a thing that somebody said: questions and statements about the
speaker.
"""

from __future__ import annotations

import random
import re

from training.text.common import STOP, words

_FILLER = STOP | frozenset(
    "i im ive id my me am think know guess mean lol haha hahaha yeah yes yep no nope really thing "
    "things just like get got go going gonna wanna cool good nice great okay ok well also too much "
    "many lot lots oh hey hi hello sorry thanks thank maybe probably pretty kind sort said say "
    "tell very even back here now still ever never one something anything dont don didn doesn isn "
    "can couldn wouldn ll ve re its thats that it s t d m u ur because them him her he she "
    "us".split()
)
_OPENING = re.compile(
    (
        r"^(?:(?:yes|yeah|yep|no|nope|so|well|but|and|oh|haha\w*|lol|hmm+|ok|okay|true|same)\b[,.! "
        r"]*)+"
    ),
    re.I,
)
_PARTS = re.compile(r"(?<=[.!?])\s+|\n")
_SUBJECT = re.compile(
    r"\b(?:I|i)(?:\s+(am|was|have|do|don['’]?t|haven['’]?t)\b|['’]?(m|ve|d|ll)\b)?(?![\w.])"
)
_OWN = re.compile(r"\b([Mm]y|[Mm]e|[Mm]yself|[Mm]ine)\b")
_FORMS = {
    "am": ("is", "are"),
    "m": ("is", "are"),
    "was": ("was", "were"),
    "have": ("has", "have"),
    "ve": ("has", "have"),
    "do": ("does", "do"),
    "d": ("would", "would"),
    "ll": ("will", "will"),
    "dont": ("doesn't", "don't"),
    "havent": ("hasn't", "haven't"),
    "": ("", ""),
}
_VERB = re.compile(
    r"(?<=\0) ((?:just|really|also|always|never|only|still|actually|usually|definitely|honestly|"
    r"kinda|sometimes) )?"
    r"(love|like|think|want|need|know|feel|work|live|hate|play|get|see|use|hope|watch|try|enjoy|"
    r"prefer|remember|agree|believe|go|study|teach|eat|drink|run|read|write|drive|walk|make|take|"
    r"wish|listen|speak|cook|bake|travel|own)\b"
)
_QUESTIONS = (
    (r"\b(?:i['’]?m|i am|i come) (?:originally )?from \w+", "Where is {name} from?"),
    (r"\bi (?:grew up|was raised) in \w+", "Where did {name} grow up?"),
    (r"\bi (?:currently |used to )?live (?:in|near|at|by) \w+", "Where does {name} live?"),
    (
        r"\bi (?:currently |used to )?work (?:at|for|in|as|with|on) \w+",
        "What does {name} do for work?",
    ),
    (r"\bi['’]?m (?:studying|majoring in) \w+|\bmy major is \w+", "What is {name} studying?"),
    (r"\bmy favou?rite (\w+(?: \w+)?) (?:is|are|was|would)\b", "What is {name}'s favorite {0}?"),
    (r"\bi (?:just )?(?:started|began) (\w+ing \w+)", "When did {name} start {0}?"),
    (r"\bi (?:just |recently )?(?:bought|got) (?:a|an|some|my|new) (\w+)", "What did {name} buy?"),
    (r"\bi(?:['’]ve| have) been (\w+ing)\b", "What has {name} been {0}?"),
    (r"\bi(?:['’]ve| have) been to \w+|\bi went to \w+|\bi visited \w+", "Where has {name} been?"),
    (r"\bi play (?:the )?(?!with|a lot)\w+", "What does {name} play?"),
    (r"\bi(?:['’]m| am) (?:planning|going) to (\w+) \w+", "What is {name} going to {0}?"),
    (r"\bi(?: really| also)? want to (\w+) \w+", "What does {name} want to {0}?"),
    (r"\bi watched \w+|\bi (?:just )?saw \w+", "What did {name} watch?"),
    (
        r"\bi(?:['’]m| am) (?:currently )?reading \w+|\bi (?:just )?read \w+",
        "What has {name} read?",
    ),
    (
        (
            r"\bmy (wife|husband|boyfriend|girlfriend|brother|sister|mom|dad|dog|cat|roommate|"
            r"boss|son|daughter)\b"
        ),
        "What did {name} say about their {0}?",
    ),
    (r"\bi(?: really| also)? hate \w+|\bi can['’]?t stand \w+", "What does {name} dislike?"),
    (
        r"\bi(?:['’]m| am) (?:really )?(?:scared|afraid|terrified) of \w+",
        "What is {name} afraid of?",
    ),
)
_PATTERNS = [(re.compile(pattern, re.IGNORECASE), question) for pattern, question in _QUESTIONS]


def parts(text: str) -> list[str]:
    """What was said, cut at the ends of sentences, whatever their case."""
    return [part.strip() for part in _PARTS.split(text) if part.strip()]


def telling(text: str) -> list[str]:
    """Words of a phrase that say what it is about, in order."""
    return [
        word
        for word in words(re.sub(r"['’]\w+", "", text))
        if word not in _FILLER and len(word) > 2
    ]


def third_person(text: str, name: str) -> str:
    """A first-person sentence told about its speaker: the name once, pronouns after it."""
    met = 0

    def subject(match: re.Match[str]) -> str:
        nonlocal met
        met += 1
        form = re.sub(r"['’]", "", match[1] or match[2] or "")
        verb = _FORMS[form][0 if met == 1 else 1]
        return ("\0" if met == 1 else "they") + (f" {verb}" if verb else "")

    def own(match: re.Match[str]) -> str:
        nonlocal met
        met += 1
        word = match[1].lower()
        if met == 1:
            return {"my": f"{name}'s", "mine": f"{name}'s"}.get(word, name)
        return {"my": "their", "me": "them", "myself": "themselves", "mine": "theirs"}[word]

    told = _OWN.sub(own, _SUBJECT.sub(subject, text))
    told = _VERB.sub(lambda match: f" {match[1] or ''}{_singular(match[2])}", told)
    return told.replace("\0", name)


def _singular(verb: str) -> str:
    if verb in {"go", "watch", "teach", "wish"}:
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2] not in "aeo" else verb + "s"


def fit(part: str) -> bool:
    """Whether a sentence tells something about its speaker."""
    bare = _OPENING.sub("", part)
    return bool(re.match(r"(?:I|i|my|My)\b", bare)) and len(part) < 200 and len(telling(bare)) >= 3


def about(part: str, name: str, chance: random.Random) -> str:
    """A query that this sentence of this speaker answers."""
    bare = _OPENING.sub("", part).strip()
    asked = [
        (match, question) for pattern, question in _PATTERNS if (match := pattern.search(bare))
    ]
    if asked and chance.random() < 0.6:
        match, question = chance.choice(asked)
        return question.format(*(group.lower() for group in match.groups()), name=name)
    if chance.random() < 0.82:
        return third_person(bare, name)
    topic = " ".join(telling(bare)[:4])
    return chance.choice(
        (f"what did {name} say about {topic}?", f"{name} {topic}", f"did {name} mention {topic}?")
    )
