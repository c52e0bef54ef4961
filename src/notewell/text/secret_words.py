"""Values beside a word for a secret: `password: …`, `DB_PASS=…`, a table cell, the next line, in
many languages. Pure.

A value is looked at only where `:`, `=`, `|` or `>` follows such a word, so most texts cost little
more than a search for these signs, and any text takes time linear in its length.
"""

from __future__ import annotations

import re
from collections import Counter

from notewell.text.secret_forms import not_stand_in, random, wordy

Value = tuple[int, int, str]

# A value after one of these is a password if it has a digit or a sign in it.
_PASSWORD = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "passord",
    "contraseña",
    "contrasena",
    "senha",
    "wachtwoord",
    "hasło",
    "haslo",
    "пароль",
    "пароля",
    "şifre",
    "şifresi",
    "sifre",
    "lösenord",
    "adgangskode",
    "salasana",
    "jelszó",
    "lozinka",
    "лозинка",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "암호",
    "المرور",
    "סיסמה",
    "khẩu",
    "รหัสผ่าน",
    "पासवर्ड",
)
# These words mean other things too: only a value that looks generated counts.
_PERHAPS = (
    "passe",
    "pass",
    "pwd",
    "pw",
    "psk",
    "clave",
    "parola",
    "heslo",
    "geslo",
    "sandi",
    "парола",
    "κωδικός",
    "السر",
    "ключ",
    "密钥",
    "密鑰",
    "秘钥",
)
_SECRET = ("token", "secret", "credential", "credentials", "_auth", "secret_key_base")
_OF_KEYS = (
    "api",
    "app",
    "access",
    "account",
    "admin",
    "auth",
    "client",
    "encryption",
    "hmac",
    "master",
    "private",
    "secret",
    "server",
    "service",
    "shared",
    "signing",
    "storage",
    "webhook",
)
_KEY = tuple(f"{word}{joint}key" for word in _OF_KEYS for joint in ("", "_", "-", " "))
_VARIABLE = re.compile(
    r"(?<![A-Za-z0-9])(?!PUBLIC|PRIMARY|FOREIGN|CACHE|SORT)[A-Z][A-Z0-9_]{1,40}_(?:KEY|PAT)\Z"
)
_ATTRIBUTE_OF = re.compile(r"[\"'][ \t]{1,4}(?:value|content)[ \t]{0,4}\Z")
_MARK = re.compile(r"\[redacted:[a-z-]{0,40}\Z")
_TAG = re.compile(r"<[\w:.-]{0,40}\Z")
_WORD_MOST, _SIGNS_MOST, _VALUE_MOST = 48, 8, 4096
_KINDS = {"password": "password", "perhaps": "password", "secret": "secret"}
_QUOTES = {"'", '"', "`"}
_SPACE = re.compile(r"\s")

_SIGNS = ":=|>："
_CLOSERS = " \t\"'`*\\]"
_ENDINGS = {word[-3:] for word in (*_PASSWORD, *_PERHAPS)}
_ENDINGS |= {"ken", "ret", "ial", "als", "uth", "ase", "key", "pat", "lue"}
_ENDINGS |= {
    "kie",
    "ifi",
    "nes",
    "sig",
    "ure",
    "ase",
    "nic",
}  # of the marks in `PLACES` that end with a sign
_SHORT_ENDINGS = {word for word in (*_PASSWORD, *_PERHAPS) if len(word) == 2}
_GAP = re.compile(r"(?:=>|:=|==?|::?|：|\||>)[ \t\"'`*\\]{0,10}")
_IN_BARE = r"(?:[^\s\"'`,;&<>{}|\\()\[\]]|[,;&](?!\s|\Z|[\w.-]{0,40}[=:]))"
_BARE = re.compile(_IN_BARE + "{1,4096}+")
_BRACKETS = re.compile(r"[^\s\"'`<>|]{1,200}")
_NAME = re.compile(r"[A-Za-z_][\w.]*(?:->[\w.]+|::[\w.]+)*\Z")
_CELL = re.compile(r"[ \t\"'`*]{0,10}(?P<value>[^\s\"'`|]{4,512}+)[ \t\"'`*]{0,40}(?=\||\r?\n|\Z)")
_ELEMENT = re.compile(r"(?P<value>[^<>\s]{4,512}+)(?=</)")
_BELOW = re.compile(
    r"(?P<block>[>|][-+]?)?[ \t]{0,8}\r?\n(?:[ \t>]{0,40}\r?\n)?"
    r"(?P<indent>[ \t>]{0,40})(?P<bullet>[-*+] )?"
    r"(?:(?:```|~~~)\w{0,20}\r?\n[ \t>]{0,40})?[\"'`]{0,3}(?P<value>[^\s\"'`]{6,512}+)"
    r"[\"'`]{0,3}[ \t]{0,8}(?=\r?\n|\Z)"
)
_RULE = re.compile(
    r"[ \t>]{0,40}\|?[ \t]{0,40}:?-{2,200}+:?[ \t]{0,40}(?:\|[ \t:-]{0,200}+){0,60}+(?:\r?\n|\Z)"
)
_ROW_MOST, _COLUMNS_MOST = 2_000, 4

_DATE_OR_VERSION = re.compile(
    r"v?\d{1,4}([.:/-]\d{1,4}){1,4}(?:[-+.]?(?:rc|beta|alpha|dev|post|[ab])?\.?\d{0,4})?\Z"
)
_NAMED = re.compile(
    r"(?i:argon2|bcrypt|scrypt|pbkdf2|sha-?\d|md5|base64|hmac|aes|rsa|utf-?8|oauth|ed25519|x\.?509|rfc|iso-?\d|p[a@]ssw[o0]rd\Z)"
)
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+(?:(?:\.|->|::)[A-Za-z_][A-Za-z0-9_]*+)++\Z")
_TYPE_NAME = re.compile(
    r"[A-Z][A-Za-z0-9]*(?:Key|Token|Secret|Type|Password|Config|Credentials?)\Z"
)
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[a-z]{2,24}){1,4}\Z")
_SYMBOL = re.compile(r"[!@#$%^&*+=~]")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")


def signs(lowered: str) -> list[int]:
    """Where a sign follows what may be the end of a known word; the quick test that says no for
    nearly every sign.
    """
    found = []
    for sign in _SIGNS:
        at = lowered.find(sign)
        while at >= 0:
            ending = lowered[at - 3 : at]
            if ending[-1:] in _CLOSERS:
                ending = lowered[max(0, at - 16) : at].rstrip(_CLOSERS)[-3:]
            if ending in _ENDINGS or ending[-2:] in _SHORT_ENDINGS:
                found.append(at)
            at = lowered.find(sign, at + 1)
    return sorted(found)


def values(text: str, lowered: str, at_signs: list[int]) -> list[Value]:
    """Start, end and kind of the values beside a word for a secret and look like one."""
    reader, inside = _Reader(text), 0
    for at in at_signs:
        inside = inside + 1 if reader.last[0] <= at < reader.last[1] else 0
        # A long value full of signs is not read from each of them.
        if inside <= _SIGNS_MOST and (kind := _word_before(text, lowered, at)):
            reader.read(at, kind)
    return reader.found


class _Reader:
    """Collects the values of a text; `last` is where the last one without quotes was, secret or
    not.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Value] = []
        self.last = (0, 0)
        self._columns: Counter[int] = Counter()

    def read(self, at: int, kind: str) -> None:
        """Adds what follows the sign at `at`, if it looks secret: there, in the next cell, or on
        the next line.
        """
        text, gap = self.text, _GAP.match(self.text, at)
        start = gap.end() if gap else at + 1
        quote = gap.group().rstrip(" \t*\\")[-1:] if gap else ""
        if text[at] == "|":
            self._add(_CELL.match(text, at + 1), kind)
            self._column(at, kind)
        elif text[at] == ">":
            self._add(_ELEMENT.match(text, at + 1), kind)
        elif text[start : start + 1] in ("", "\n", "\r", "|", ">") and (
            below := _BELOW.match(text, start)
        ):
            indented = below["indent"] and not below["indent"].strip() and not below["bullet"]
            if below["block"] or indented or not wordy(below["value"]):
                self._add(below, kind)
        elif not (quote in _QUOTES and self._quoted(start, quote, kind)):
            self._bare(start, kind)

    def _add(self, match: re.Match[str] | None, kind: str) -> None:
        if match and _looks(match["value"], kind):
            self.found.append((*match.span("value"), _KINDS[kind]))

    def _quoted(self, start: int, quote: str, kind: str) -> bool:
        """Reads a value up to its closing quote, if that is there and nothing is apart by
        spaces.
        """
        close = self.text.find(quote, start, start + _VALUE_MOST)
        value = self.text[start : max(start, close)].rstrip("\\")
        if not value or _SPACE.search(value):
            return False
        if _looks(value, kind):
            self.found.append((start, start + len(value), _KINDS[kind]))
        return True

    def _bare(self, start: int, kind: str) -> None:
        """Reads a value without quotes; a name before a bracket is a call."""
        if not self.last[0] <= start < self.last[1]:
            bare = _BARE.match(self.text, start)
            self.last = bare.span() if bare else (start, start)
        end = self.last[1]
        value = self.text[start:end]
        if self.text[end : end + 1] in ("(", "[", "{"):
            if _NAME.match(value[:256]):
                return
            if more := _BRACKETS.match(self.text, end):
                value = self.text[start : more.end()].rstrip(",;")
        value = value.rstrip(".?:*)")
        if (
            _NAMED.match(value)
            and value.lower().endswith("w0rd")
            and self.text[end : end + 2].strip().isalpha()
        ):
            return  # P@ssw0rd in a sentence
        if _looks(value, kind):
            self.found.append((start, start + len(value), _KINDS[kind]))

    def _column(self, at: int, kind: str) -> None:
        """Reads the column below, if the word before the sign at `at` is the heading of one."""
        text = self.text
        begin, end = (
            text.rfind("\n", max(0, at - _ROW_MOST), at) + 1,
            text.find("\n", at, at + _ROW_MOST),
        )
        rule = _RULE.match(text, end + 1) if end >= 0 else None
        self._columns[begin] += 1
        if rule is None or self._columns[begin] > _COLUMNS_MOST:
            return
        before = text[begin:at].lstrip("> \t").removeprefix("|").count("|")
        at = rule.end()
        # a second rule ends it, so that no row is read often
        while text[at : at + 1] and not _RULE.match(text, at):
            begin, at = at, text.find("\n", at) + 1 or len(text)
            cells = text[begin:at]
            if "|" not in cells:
                return
            place = len(cells) - len(cells.lstrip("> \t"))
            place += cells[place] == "|"
            for _ in range(before):
                place = cells.find("|", place) + 1 or len(cells)
            self._add(_CELL.match(text, begin + place), kind)


def _word_before(text: str, lowered: str, at: int) -> str:
    """What the word before a sign is for: a `password`, `perhaps` one, another `secret`, or
    nothing.
    """
    begin = max(0, at - _WORD_MOST)
    window = lowered[begin:at].rstrip(_CLOSERS)
    if _MARK.search(window):
        return ""
    if (
        lowered[at] == "="
        and window.endswith(("value", "content"))
        and (found := _ATTRIBUTE_OF.search(lowered, begin, at))
    ):
        window = lowered[begin : found.start()]
    written = text[begin : begin + len(window)]
    kind = ""
    if window.endswith(_PASSWORD):
        kind = "password"
    elif window.endswith(_PERHAPS):
        short = next(word for word in _PERHAPS if window.endswith(word))
        kind = "perhaps" if _stands_apart(written, len(short)) else ""
    elif window.endswith(_SECRET):
        kind = "secret" if not window.endswith("publickeytoken") else ""
    elif window.endswith(_KEY) or (
        written.endswith(("_KEY", "_PAT")) and _VARIABLE.search(written)
    ):
        kind = "secret"
    if lowered[at] == ">" and not _TAG.search(window):
        return ""
    return kind


def _stands_apart(written: str, length: int) -> bool:
    """Whether the last letters are a separate word, perhaps only by a capital, as in `dbPass`."""
    before, first = written[-length - 1 : -length], written[-length]
    return not before.isalpha() or (first.isupper() and before.islower())


def _looks(value: str, kind: str) -> bool:
    """Whether a value has digits or signs among its letters, as generated values do and words and
    names do not.
    """
    value = value[:256]
    if len(value) < (6 if kind == "password" else 8) or not not_stand_in(value):
        return False
    if any(p.match(value) for p in (_PATH, _TYPE_NAME, _DATE_OR_VERSION)) or (
        _NAMED.match(value) and wordy(value)
    ):
        return False
    if kind != "password":
        sign = kind == "perhaps" and _SYMBOL.search(value) and _LETTER.search(value)
        return bool(sign or (_LETTER.search(value) and random(value))) and not _ADDRESS.match(value)
    if len(set(value)) < 4:
        return False
    return bool(_DIGIT.search(value) or (_LETTER.search(value) and _SYMBOL.search(value)))
