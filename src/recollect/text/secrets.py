"""The forms of secrets: what each looks like, and what only looks like one. Pure.

A rule looks for the form that an issuer gave its tokens, or for a value that looks secret beside a word that says so.
Every expression is bounded, or begins where a token may begin, so the time is linear in the text. A rule is run only
where its literal marks are: those of a token inside a long run of the characters that tokens are made of, which most
texts do not have at all. That is what makes clean text nearly free.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

_BREAKS = re.compile(r"\r\n|\r|\n")
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = re.compile(r"(?:\s*+[A-Za-z0-9+/=]{16,100}+(?=\s|\Z))++")
_KEY_MOST = 60_000
_PRIVATE_OPEN = re.compile(r"<private>", re.IGNORECASE)
_PRIVATE_CLOSE = re.compile(r"</private>", re.IGNORECASE)

_WORDS = ("password", "passwd", "passphrase", "pwd")
_ASSIGNED = (
    r"(?i)(?<!publickey)(?P<word>pass(?:word|wd|phrase)|pwd|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key"
    r"|auth[_-]?key|token|credentials?)(?P<gap>[\"'`*]{0,3}[ \t]{0,8}(?:=>|:=|=|:)[ \t\"'`*]{0,10})"
    r"(?P<value>[^\s\"'`,;()<>{}\[\]|\\]{6,512}+)(?P<after>[(\[{]?)"
)
_PLACEHOLDER = re.compile(r"[$%*/.~<{#&]|https?:|your|example|placeholder|changeme|xxx|\.\.\.|…", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+(?:(?:\.|->|::)[A-Za-z_][A-Za-z0-9_]*+)++\Z")
_TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9]*(?:Key|Token|Secret|Type|Password|Config|Credentials?)\Z")
_SYMBOL = re.compile(r"[!@#$%^&*+=~]")
_SPOKEN_OF = ("pass", "passwd", "password", "pw", "secret")


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """A form of secret: what it is called, marks of which one must be there, and where in a match the secret is."""

    kind: str
    marks: tuple[str, ...]
    source: str
    fits: Callable[[str], bool] | None = None


def _mixed(value: str) -> bool:
    """Whether a value has the digits and the capitals that a random one has and a name has not."""
    return any(c.isdigit() for c in value) and any(c.isupper() for c in value) and any(c.islower() for c in value)


def _has_digit(value: str) -> bool:
    return any(c.isdigit() for c in value)


def _varied(value: str) -> bool:
    """Whether a value is more than one character again and again, as `xxxxxxxx` and `00000000` in an example are."""
    return len(set(value)) > 5


def _not_stand_in(value: str) -> bool:
    return _PLACEHOLDER.match(value) is None and value.lower() not in _SPOKEN_OF


def _credential(value: str) -> bool:
    """Whether what stands after `Authorization: Basic` is one, or only the next word of a sentence."""
    return _not_stand_in(value) and (_has_digit(value) or value.endswith("=") or value[1:].lower() != value[1:])


def _rule(kind: str, marks: str, pattern: str, fits: Callable[[str], bool] | None = None) -> _Rule:
    """Marks are given with spaces between; a leading `~` stands for the place where a token may begin.

    What is glued to such a token goes with it: it would be a token of its own once the first is a mark.
    """
    source = rf"(?<![A-Za-z0-9_-])(?:{pattern[1:]})[A-Za-z0-9_-]*+" if pattern.startswith("~") else pattern
    return _Rule(kind, tuple(mark.lower() for mark in marks.split()), source, fits)


_RULES = (
    _rule("aws-key", "AKIA ASIA ABIA ACCA", r"~(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])", _varied),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"~gh[pousr]_[A-Za-z0-9]{36,255}", _varied),
    _rule("github-token", "github_pat_", r"~github_pat_[A-Za-z0-9_]{22,255}", _varied),
    _rule("gitlab-token", "glpat- gldt- glrt- glptt-", r"~gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_.-]{20,120}", _varied),
    _rule("slack-token", "xox", r"~xox[abeoprs]-(?:[0-9]+-)?[A-Za-z0-9-]{10,250}", _has_digit),
    _rule("slack-token", "xapp-", r"~xapp-\d-[A-Za-z0-9-]{20,250}"),
    _rule(
        "slack-webhook", "hooks.slack.com", r"(?<=hooks\.slack\.com/)(?:services|workflows)/[A-Za-z0-9]{8,}/[\w/]{20,}"
    ),
    _rule("stripe-key", "sk_ rk_ whsec_", r"~(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9+/=]{16,255}", _varied),
    _rule("anthropic-key", "sk-ant-", r"~sk-ant-[A-Za-z0-9_-]{20,255}", _mixed),
    _rule("openai-key", "sk-", r"~sk-(?!ant-)[A-Za-z0-9_-]{20,255}", _mixed),
    _rule("google-key", "AIza", r"~AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", _varied),
    _rule("google-token", "ya29. GOCSPX-", r"~(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,512}", _varied),
    _rule("huggingface-token", "hf_", r"~hf_[A-Za-z0-9]{30,60}(?![A-Za-z0-9_])", _mixed),
    _rule("npm-token", "npm_", r"~npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])", _mixed),
    _rule("pypi-token", "pypi-", r"~pypi-[A-Za-z0-9_-]{50,512}", _mixed),
    _rule("telegram-token", ":AA", r"~[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _rule(
        "discord-token", ".", r"~[MNO][A-Za-z0-9]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9])", _mixed
    ),
    _rule("discord-webhook", "/api/webhooks/", r"(?<=/api/webhooks/)\d{15,20}/[A-Za-z0-9_-]{40,90}"),
    _rule("sendgrid-key", "SG.", r"~SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    _rule("twilio-key", "sk", r"~SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _rule("mailgun-key", "key-", r"~key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    _rule("mailchimp-key", "-us", r"~[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    _rule("digitalocean-token", "do", r"~do[opr]_v1_[0-9a-f]{64}"),
    _rule("shopify-token", "shp", r"~shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _rule("square-token", "sq0", r"~sq0(?:atp|csp)-[A-Za-z0-9_-]{22,60}"),
    _rule("linear-key", "lin_api_", r"~lin_api_[A-Za-z0-9]{32,64}"),
    _rule("notion-token", "ntn_ secret_", r"~(?:ntn_|secret_)[A-Za-z0-9]{40,60}(?![A-Za-z0-9])", _mixed),
    _rule("databricks-token", "dapi", r"~dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    _rule("vault-token", "hvs. hvb.", r"~hv[sb]\.[A-Za-z0-9_-]{24,300}"),
    _rule("doppler-token", "dp.", r"~dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{32,80}"),
    _rule("groq-key", "gsk_", r"~gsk_[A-Za-z0-9]{40,80}"),
    _rule("xai-key", "xai-", r"~xai-[A-Za-z0-9]{40,100}", _mixed),
    _rule("perplexity-key", "pplx-", r"~pplx-[A-Za-z0-9]{40,80}"),
    _rule("replicate-token", "r8_", r"~r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])"),
    _rule("tavily-key", "tvly-", r"~tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,60}", _mixed),
    _rule("postman-key", "PMAK-", r"~PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _rule("newrelic-key", "NRAK-", r"~NRAK-[A-Z0-9]{27}"),
    _rule("atlassian-token", "ATATT3", r"~ATATT3[A-Za-z0-9_=-]{60,300}"),
    _rule("supabase-token", "sbp_", r"~sbp_[0-9a-f]{40}"),
    _rule("planetscale-token", "pscale_", r"~pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}"),
    _rule("figma-token", "figd_", r"~figd_[A-Za-z0-9_-]{30,80}"),
    _rule("grafana-token", "glsa_ glc_", r"~gl(?:sa|c)_[A-Za-z0-9_+/=]{32,400}"),
    _rule("sentry-token", "sntrys_ sntryu_", r"~sntry[su]_[A-Za-z0-9_+/=]{40,400}"),
    _rule("airtable-token", "pat", r"~pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _rule("age-key", "AGE-SECRET-KEY-1", r"~AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _rule("jwt", "eyJ", r"~eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,2048}"),
    _rule(
        "authorization", "authorization",
        r"(?i:(?<=authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic|token|digest|apikey)[ \t]{1,4})"
        r"(?P<secret>[A-Za-z0-9._~+/=:-]{6,8192}+)", _credential,
    ),
    _rule(
        "authorization", "bearer",
        r"(?<![A-Za-z0-9])(?i:bearer)[ \t]{1,4}(?P<secret>[A-Za-z0-9._+/=-]{16,8192}+)", _has_digit,
    ),
    _rule(
        "url-password", "://",
        r"://[^\s/?#:@\"'<>]{0,128}:(?P<secret>[^\s/?#@\"'<>\[\]]{1,256})@(?=[A-Za-z0-9\[])", _not_stand_in,
    ),
    _rule(
        "password", "curl", r"curl [^\n]{0,200}?(?:-u|--user)[ =][\"']?[^\s:\"'$]{1,64}:(?P<secret>[^\s\"'$]{1,128}+)"
    ),
)  # fmt: skip


# A rule without a group for its secret is for a token, alone or at the end of an address: one run of these characters
# (and of any that is not ASCII), never a shorter one. The other rules are looked for everywhere.
_TOKEN_LEAST = 15
_TOKEN_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+/=-" + bytes(range(128, 256))
_BETWEEN = bytes(ord("x") if c in _TOKEN_CHARS else ord(" ") for c in range(256))
_LONG = b"x" * _TOKEN_LEAST
_MARKS = [(mark, rule) for rule in _RULES for mark in rule.marks if "(?P<secret>" in rule.source]
_TOKEN_MARKS = [(mark, rule) for rule in _RULES for mark in rule.marks if "(?P<secret>" not in rule.source]
_ASSIGNABLE = (*_WORDS, "secret", "token", "key", "credential")
_ASSIGNS = re.compile(r"s?[\"'`*]{0,3}[ \t]{0,8}[=:]")
_LONGEST_WORD = 11
_OTHER_CASES = re.compile("[\u0130\u0131\u017f\u212a]")  # letters that stand for i, s or k where case is ignored


def without_secrets(text: str, counts: Counter[str]) -> str:
    """The text with a mark in place of each secret, counted by kind."""
    before, lowered = text, text.lower()
    if "<private>" in lowered:
        text = _without_private(text, counts)
    if "private key" in lowered:
        text = _without_keys(text, counts)
    for rule in _token_rules(text):
        text = _apply(rule, text, counts)
    for rule in dict.fromkeys([rule for mark, rule in _MARKS if mark in lowered]):
        text = _apply(rule, text, counts)
    if ("=" in text or ":" in text) and [word for word in _ASSIGNABLE if word in lowered]:
        text = _without_assigned(text, lowered if text is before else text.lower(), counts)
    return text


def _token_rules(text: str) -> list[_Rule]:
    """The rules for tokens that have to be run, in their order: none, unless one of them finds something."""
    data = text.encode("utf-8", "replace")
    shape = data.translate(_BETWEEN)
    long = []
    start = shape.find(_LONG)
    while start >= 0:
        end = shape.find(b" ", start)
        long.append(data[start:] if end < 0 else data[start:end])
        start = shape.find(_LONG, end) if end >= 0 else -1
    if not long:
        return []
    runs = b" ".join(long).decode("utf-8", "replace")
    lowered = runs.lower()
    found = list(dict.fromkeys([rule for mark, rule in _TOKEN_MARKS if mark in lowered]))
    return found if any(_compiled(rule.source).search(runs) for rule in found) else []


def _without_assigned(text: str, lowered: str, counts: Counter[str]) -> str:
    """Takes out what is assigned to a word for a secret; looks only where a sign for that stands right after one."""
    pattern = _compiled(_ASSIGNED)
    if not text.isascii() and _OTHER_CASES.search(text):
        return pattern.sub(lambda match: _assigned(match, counts), text)
    starts: set[int] = set()
    for word in _ASSIGNABLE:
        at = lowered.find(word)
        while at >= 0:
            at += len(word)
            if _ASSIGNS.match(lowered, at):
                starts.update(range(max(0, at - _LONGEST_WORD), at))
            at = lowered.find(word, at)
    out: list[str] = []
    done = 0
    for start in sorted(starts):
        if start >= done and (match := pattern.match(text, start)):
            out += (text[done:start], _assigned(match, counts))
            done = match.end()
    return "".join((*out, text[done:])) if out else text


def mark(kind: str, secret: str, counts: Counter[str]) -> str:
    """The mark in place of a secret, with its line breaks, so that every line below keeps its number."""
    counts[kind] += 1
    return f"[redacted:{kind}]" + "".join(_BREAKS.findall(secret))


@cache
def _compiled(source: str) -> re.Pattern[str]:
    """Compiled when its marks are met for the first time: all at once would cost every start of the program."""
    return re.compile(source)


def _apply(rule: _Rule, text: str, counts: Counter[str]) -> str:
    pattern = _compiled(rule.source)
    within = "secret" in pattern.groupindex

    def replace(match: re.Match[str]) -> str:
        secret = match["secret"] if within else match.group()
        if rule.fits is not None and not rule.fits(secret):
            return match.group()
        if not within:
            return mark(rule.kind, secret, counts)
        start = match.start("secret") - match.start()
        whole = match.group()
        return whole[:start] + mark(rule.kind, secret, counts) + whole[start + len(secret) :]

    return pattern.sub(replace, text)


def _assigned(match: re.Match[str], counts: Counter[str]) -> str:
    value = match["value"]
    bare = value if match["gap"][-1] in "\"'`" else value.rstrip(".?:*")
    if match["after"] or not _looks_secret(bare, password=match["word"].lower() in _WORDS):
        return match.group()
    kind = "password" if match["word"].lower() in _WORDS else "secret"
    return match["word"] + match["gap"] + mark(kind, bare, counts) + value[len(bare) :]


def _looks_secret(value: str, *, password: bool) -> bool:
    """Digits among letters, or a symbol among them: what a generated value has and a word or a name has not."""
    if (
        len(value) < (6 if password else 8)
        or _PLACEHOLDER.match(value)
        or _ATTRIBUTE.match(value)
        or _TYPE_NAME.match(value)
    ):
        return False
    if not _varied(value) and not (password and len(set(value)) > 3):
        return False
    digit, letter = _has_digit(value), any(c.isalpha() for c in value)
    if password:
        return digit or (letter and _SYMBOL.search(value) is not None)
    return digit and letter


def _without_private(text: str, counts: Counter[str]) -> str:
    """Takes out `<private>` blocks, one that is never closed to the end; a tag in back quotes is only spoken of."""
    out: list[str] = []
    done = 0
    while match := _PRIVATE_OPEN.search(text, done):
        if text[match.start() - 1 : match.start()] == "`" == text[match.end() : match.end() + 1]:
            out.append(text[done : match.end()])
            done = match.end()
            continue
        close = _PRIVATE_CLOSE.search(text, match.end())
        end = close.end() if close else len(text)
        out += (text[done : match.start()], mark("private", text[match.start() : end], counts))
        done = end
    return "".join((*out, text[done:]))


def _without_keys(text: str, counts: Counter[str]) -> str:
    """Takes out private keys in PEM form; of one whose end is missing, the lines that look like it."""
    out: list[str] = []
    done = 0
    close = _KEY_END.search(text)
    while match := _KEY_BEGIN.search(text, done):
        if close and close.start() < match.end():
            close = _KEY_END.search(text, match.end())  # looked for once each, so that the time stays linear
        near = close if close and close.end() - match.end() <= _KEY_MOST else None
        rest = near or _KEY_LINES.match(text, match.end())
        if rest is None:
            out.append(text[done : match.end()])
            done = match.end()
            continue
        out += (text[done : match.start()], mark("private-key", text[match.start() : rest.end()], counts))
        done = rest.end()
    return "".join((*out, text[done:]))
