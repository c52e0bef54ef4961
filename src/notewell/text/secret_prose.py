"""Secrets in a sentence: "the pw of the router is …", "… ist das Passwort", "login: admin / …".
Pure.

Words for secrets are looked for first, as most texts have few of them; then the value decides: it
stands where such a sentence has it, and it looks like one. What is read around a word is bounded,
so any text takes time linear in its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice

from notewell.text.secret_forms import has_digit, mixed, not_stand_in, wordy
from notewell.text.words import lazy_compile

Value = tuple[int, int, str]

_WINDOW = 90  # characters of its line that are read after a word, and before it
_PAIR_WINDOW = 300  # before the pair of a login, so that the heading of a table is seen
_LEAST, _KEY_LEAST = 6, 16
_MARK = "[redacted:"

# How a word begins, all of it, and what it is for: a password, a key of a program or a wifi, a PIN.
_WORDS = (
    ("pass", r"pass(?:wor[dt]|code|wd|phrase)s?|(?<![a-z_])passe?", "password"),
    ("pw", r"(?<![a-z_])pwd?", "password"),
    ("psw", r"(?<![a-z_])psw", "password"),
    ("mdp", r"(?<![a-z_])mdp", "password"),
    ("kennwort", "kennwort", "password"),
    ("wachtwoord", "wachtwoord(?:zin)?", "password"),
    ("ww", r"(?<![\w<.-])ww(?=[ :])", "password"),
    ("senha", "senha", "password"),
    ("clave", r"(?<![a-z])(?<!palabra )clave", "password"),
    ("parola d", r"parola d['’]ordine", "password"),
    ("phrase secr", r"phrase secr[eè]te", "password"),
    ("frase se", "frase se[cg]reta", "password"),
    ("chiave", r"(?<![a-z])(?<!parola )chiave", "key"),
    ("chave", r"(?<![a-z])(?<!palavra[ -])chave", "key"),
    ("llave", r"(?<![a-z])llave", "key"),
    ("sleutel", "sleutel", "key"),
    ("klucz", r"(?<![a-z])klucz(?:a|em)?", "key"),
    ("key", r"(?<![a-z])key", "key"),
    ("secret", r"(?<![a-z])secret", "key"),
    ("token", r"(?<![a-z])token", "key"),
    ("pin", r"(?<![a-z_])pin(?:[- ]?(?:code|number|nummer|kod))?", "pin"),
    ("geheimzahl", "geheimzahl", "pin"),
    ("contraseñ", "contraseña", "password"),
    ("contrasena", "contrasena", "password"),
    ("hasł", "hasł(?:o|a|em)", "password"),
    ("haslo", r"(?<![a-z])haslo", "password"),
    ("парол", "парол(?:[ьяюе]м?|ьн(?:ая|ой|ую) фраз[аыу])", "password"),
    ("密码", "密码", "password"),
    ("密碼", "密碼", "password"),
    ("口令", "口令", "password"),
    ("パスワード", "パスワード", "password"),
    ("パスフレーズ", "パスフレーズ", "password"),
    ("パスコード", "パスコード", "password"),
    ("비밀번호", "비밀번호", "password"),
    ("비번", "비번", "password"),
    ("암호", "암호", "password"),
    ("패스워드", "패스워드", "password"),
    ("schlüssel", "schlüssel", "key"),
    ("clé", r"(?<![^\W\d_])(?<!mot[ -])clé", "key"),
    ("ключ", r"(?<![^\W\d_])ключ", "key"),
    ("密钥", "密钥", "key"),
    ("密鑰", "密鑰", "key"),
    (
        "キー",
        r"(?:(?<![主部\u30a0-\u30ff])|(?<=アクセス)|(?<=シークレット))キー(?![\u30a0-\u30ff])",
        "key",
    ),
    (
        "키",
        r"(?:(?<![가-힣])|(?<=인증)|(?<=보안)|(?<=비밀))(?<!기본 )(?<!외래 )키(?![가-힣]{2})",
        "key",
    ),
    ("пин", r"(?<![^\W\d_])пин(?:-?код)?", "pin"),
    ("暗証番号", "暗証番号", "pin"),
    ("핀번호", "핀번호", "pin"),
)
_WIFI = lazy_compile(r"wi-?fi|wlan|вайфа|wpa")
_PHRASES = ("passphrase", "phrase secr", "frase se", "wachtwoordzin", "парольн", "パスフレーズ")
_OF_PHRASE = lazy_compile(r"(?:phrase|frase) (?:de )?\Z")
_OF_PROGRAM = lazy_compile(
    r"(?:api|access|account|admin|auth|client|encryption|licen[cs]e|master|private"
    r"|secret|signing)[-_ ]?\Z"
)
# Words that are also those for the key of a door, of a table or of a keyboard, and what makes them
# that of a program.
_MANY_KEYS = ("chave", "llave", "sleutel", "klucz", "キー", "키")
_KEY_OF = lazy_compile(
    r"(?<![a-z])api(?![a-z])|acc?es|dostęp|toegang|licen|crypt|cript|szyfr|priv|prywat|secre|segre|tajn"
    r"|アクセス|シークレット|秘密|暗号|인증|접근|비밀|보안"
)


def _each(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words that say that the value follows; the soft ones say so only before what is surely a value.
_FIRM = _each(
    "is was remains becomes now still it's it’s 's ’s"
    " ist lautet heißt bleibt wird war jetzt nun noch"
    " est c'est c’est reste devient sera vaut maintenant es era será queda quedó siendo ser ahora"
    " é fica ficou continua agora è sarà resta rimane diventa diventata ora wordt blijft luidt nu"
    " jest brzmi będzie pozostaje teraz это будет остался теперь ещё еще → -> — – -"
)
_SOFT = _each("to auf a à en in para na naar на como come jako als")
# After a verb such as "changed", those before the new value say so as "is" does, and others as the
# soft ones do.
_INTO = _each("to naar para")
_ONTO = _INTO | _each("durch par por su")
_CHANGED = lazy_compile(
    r"(?<!\w)(?:chang(?:ed?|ing)(?!\w)|(?:re)?set(?!\w)|updat|switch|replac"
    r"|geänder|gesetzt|ersetz|umgestellt|modifi|remplac|cambi|reemplaz|sustitu"
    r"|mud(?:ei|ou|amos|ar)(?!\w)|alter(?:ei|ou|ad)|troc|troqu|impost|sostitu"
    r"|gewijzigd|veranderd|vervangen|gezet|zmieni|ustawi|помен|смен|измен|замен)"
)
# What may stand between such a word and the value.
_STILL = lazy_compile(
    r"(?:\s+(?:still|now|again|currently|actually|(?:from |as of )?(?:today|now|tomorrow)(?: on)?"
    r"|immer|noch|jetzt|nun|weiterhin|wieder|aktuell|übrigens|ab (?:sofort|heute|morgen|jetzt)"
    r"|toujours|encore|désormais|maintenant|actuellement|ahora|aún|todavía|siempre|actualmente"
    r"|agora|ainda|sempre|atualmente|ora|adesso|ancora|nog|steeds|nu|voortaan|trouwens|momenteel"
    r"|vanaf (?:nu|vandaag|morgen)|nadal|teraz|wciąż|obecnie|od (?:dziś|dzisiaj|jutra)"
    r"|теперь|сейчас|пока|вс[её]|ещ[её]|по-прежнему|он|à nouveau)(?![\w-])){0,3}"
)
_SIGNS = (":", "：")
_COLON = lazy_compile(r"[*_`]{0,3}[ \u00a0\u202f]?[:：]")
# Words that `secret_words` does not know, so that a colon right behind them is for this module.
_NOT_IN_WORDS = tuple(
    _each(
        "mdp psw wachtwoordzin phrase frase parola schlüssel clé chiave chave llave sleutel klucz"
    )
)
_LINKS_MOST, _PIECES_MOST = 6, 14
_STOPS = (".", "!", "?", ";", "|")
_NEAR = lazy_compile(
    r"\s*(?:\Z|\(|,|(?:for|of|to|on|at|in|from|we|i|that|für|fürs|vom?|der|des|am|beim|im|zum|zur|du|de|del|des|pour"
    r"|d['’]\w|wi-?fi|wlan|para|do|da|dos|das|di|della|dell['’]\w|dello|per|il|van|voor|op|od|dla|от|для|к"
    r"|there|last (?:night|week|month)|yesterday|today|gestern|heute|hier|ayer|hoy|ontem|hoje|ieri"
    r"|oggi|gisteren|vandaag|wczoraj|dzisiaj|вчера|сегодня|nuev[ao]|nuov[ao]|nova|actuel|actual|atual|attuale"
    r"|sigue|pasó|continua|passou|è)(?!\w))"
)
# What stands for "of the printer" where a noun has cases.
_GENITIVE = lazy_compile(
    r"(?<=парол[ья])\s+[^\W\d_]{3,20}\s*\Z|(?<=has[łl][oa])\s+[^\W\d_]{3,20}\s*\Z"
)
# Nouns that make another thing of the word before them.
_NOUN = lazy_compile(
    r"[\s-]*(?:manager|polic|hash|librar|reset|field|form|prompt|rotat|length|generat|file|protect|store|databas|entry"
    r"|check|strength|crack|column|attribut|variab|param|page|screen|expir|rule|managem|auth|input|box|dialog|servic"
    r"|provid|name|id\b|type|format|size|pad\b|bucket|figure|count|limit|list|safe|vault|cach|based|less"
    r"|primari|primair|primár|forán|étrang|estrangeir|públic|publiq|pubbl)"
)
_ENDS = lazy_compile(
    r"[\"'”“»*`_]*\s*(?:\Z|[.,;:!?)\n|]|(?:for|of|to|on|at|in|and|now|für|fürs|vom?|der|des|am|im|zum|du|de|del|des|pour"
    r"|para|do|da|no|di|della|per|van|voor|op|od|dla|i|от|для|к|и)(?!\w))"
)
_COPULAS = _each(
    "is was ist war est es era é è to jest as als comme como come jako это — – - 是 就是 가 이"
)
_ABOUT = _each(
    "about where why how when with without not no over über ohne sans sin sem senza zonder bez без"
)
_OF_SOMETHING = lazy_compile(
    r"\s+(?:(?:for|of|to|fürs?|vom?|der|du|de|del|pour|para|do|da|di|per|van|voor|od|от|для|к)\s+)?[^\s\d.,;:!?|]{2,30}(?=\s)"
)
_OF_SOMEONES = lazy_compile(
    r"\s+(?:for|of|für|vom?|du|de|del|pour|para|do|da|di|per|van|voor|od|от|для)\s+[^\s\d.,;:!?|]{2,30}"
    r"\s+(?!(?:num|nú|numé|nr|n[o°º]|nom|номер|order|room|port|line|page|ticket|version)[a-z]{0,4}\s)[^\s\d.,;:!?|]{2,30}"
    r"(?=\s+\d{4,8}(?:[.!]?\s*\Z|[.!]\s|,))"
)
# Of whom or of what the password is, listed before it: "user mira, password X".
_ACCOUNT = lazy_compile(
    r"(?:wi-?fi|wlan|ssid|вайфа[йя]|(?<!\w)(?:username|user|login|network|benutzer|netz|utilisateur|identifiant|réseau"
    r"|usu[aá]rio|rede?|utente|rete|gebruiker|netwerk|użytkownik|sieć|логин|пользователь|сеть)):?\s+"
    r"(?!guide|manual|stor|doc|list|setting|group|page|interfac)[^\s,;]{2,64}[,;] \Z"
)
_END = lazy_compile(r"[\"'”“»*`_]*\s*(?:\Z|[.,;)](?!\w))")
_PIECE = lazy_compile(r"\S+")

_OPENERS = "\"'`“”„«»「『*_"
_CLOSING = "\"'`“”»«」』*_"
_CLOSERS = frozenset(_CLOSING)
_LEAD = lazy_compile(rf"[ \t\u00a0\u202f({_OPENERS}]{{0,6}}")
# All but blanks, quotes, `|<>` and the scripts from Hangul on. Python makes a class character by
# character, so naming the 61,000 that do not belong to it takes 1.7 ms at the first use, and naming
# those that do takes .3.
_VALUE = lazy_compile(
    r"[\x00-\x08\x0e-\x1b!#-&(-;=?-_a-{}-\x84\x86-\x9f¡-ª¬-º¼-\u10ff\U00010000-\U0010ffff]{4,256}"
)
_TRAIL = ".,;:?)]}*_"
_PHRASE = lazy_compile(
    r"(?:[^\W\d_]{2,14} ){2,9}[^\W\d_]{2,14}(?=[ \u00a0]?(?P<close>[\"'`”“»」』])|\.?\s*(?:\n|\Z))"
)
_SAYS = lazy_compile(
    r"(?<!\w)(?:see|ask|keep|kept|use|is|are|be|must|the|at|in|it|never|not|on|siehe|frag\w*|steht|im|voir|demande\w*"
    r"|ver|pedir|está|zie|vedi|chiedere|zapytaj|zobacz)(?!\w)"
)

# What stands behind a word in another script: nearly always the value, as these write without "for
# the".
_AFTER = lazy_compile(r"(?P<between>[ \t:→(*\"'`\u2010-\ufffd]{0,24})(?P<value>[!-~]{4,256})")
_SAYS_IT = "是为為：:→はがのを는은가이「『“改成了"
_YET = lazy_compile(
    r"[ ]?(?:아직|여전히|이제|현재|지금|오늘|어제"
    r"|まだ|今|今は|今日|昨日|现在|目前|仍然?|还|今天|昨天)\Z"
)
_TURNED = lazy_compile(
    r"[\"'`」』”]?[ ]?(?:\(으\)|으)?로[ ]?"
    r"(?:바[꾸꿨꿔꿈뀌뀐]|변경|설정|재설정|수정|교체|갱신|정[했함])"
)
_UNITS = "年月日位桁文字个個次回时時号년월일자개번회"
_BEFORE = lazy_compile(
    r"(?P<value>[!-~]{6,80})[\"'`」』”]?[ ]?(?:就?是|が|は|가|이|为|為)[ \u3040-\ufffd]{0,14}\Z"
)

_IS = frozenset("是がは가이为為")

_PAIR = lazy_compile(r"(?P<user>[\w.@+-]{2,64})[\"'`]?\Z")
_SLASH = lazy_compile(r"/(?<= /) ")
_LOGIN = lazy_compile(
    r"(?<![a-z])log(?:in|on| in| on)|sign in|cred(?:ential)?s|zugang|zugäng|anmeld|accès|connexion"
    r"|identifiant|acceso|acesso|accesso|inlog|логин|вход|账号|帳號|登录|ログイン|로그인|계정"
)
_LOGIN_WITH = lazy_compile(
    r"login (?:with|as|using) [\w.@+-]{2,64} (?:and|/) (?:password |pw )?[\"'`]?"
)

# Names, numbers and addresses that a sentence about passwords may well have where the value would
# be.
_NAMED = lazy_compile(
    r"(?i:\d{0,2}-?(?:1password|keepass|bitwarden|lastpass|argon2|bcrypt|scrypt|pbkdf2|sha-?\d|md5|base64|hmac|aes|rsa"
    r"|utf-?8|oauth|ed25519|x\.?509|rfc|iso-?\d|fido2|x86|p[a@]ssw[o0]rd))"
)
_ORDINARY = lazy_compile(
    r"\d{1,3}-?[A-Za-zÀ-ÿ][a-zà-ÿ]*"  # 24h, 12-character, 2nd
    r"|(?:\d{1,4}(?:h|min|m|ms|s|d|x|w|am|pm))+|\d\d?:\d\d(?:[ap]m)?"
    r"|\d{4}-\d\d-\d\d[T\d:.Z+-]*|v?\d+(?:[./:-]\w{1,6})+"
    # GitHub2, iPhone15
    r"|[a-z]{0,3}(?:[A-Z][a-z]+){2,}[A-Z]{0,3}\d{0,4}|[a-z]{1,3}[A-Z][a-z]+\d{0,4}"
    r"|[A-Z]{2}[A-Z0-9]*+(?:-[A-Z0-9]++)*+"  # SHOP-1432, RTX4090
    r"|\w+(?:[./-]\w+)*\.(?:md|txt|py|js|ts|json|ya?ml|toml|env|pdf|docx?|xlsx?|csv|html?|png|jpe?g|zip|gz|conf|ini"
    r"|sh|kdbx|pem|key|com|org|net|io|de|dev|local|internal|test)(?:[#:?/].*)?"
    r"|[\w.+-]+@[\w.-]+|[\w!]+[=(].*|.*(?:\]\(|://).*|\d?[A-Z0-9]{2,4}-[a-z]+|[a-zà-ÿ]{2,}\d{1,3}[a-z]"
)
# Names of a program with `_` in them: in small letters, in capitals, or of words with hardly a
# digit.
_SMALL_PART = r"(?:\d{0,2}[a-z]+(?:\d{1,3}[a-z]*)?|\d{1,4})"
_GREAT_PART = r"(?:\d{0,2}[A-Z]+(?:\d{1,3}[A-Z]*)?|\d{1,4})"
_WORD_PART = r"(?:[A-Z]?[a-z]{2,}(?:[A-Z][a-z]+)*|[A-Z]{2,}|v)\d?"
_NAME_OF_CODE = lazy_compile(
    rf"_*(?:{'|'.join(f'{p}(?:_+{p})*' for p in (_SMALL_PART, _GREAT_PART, _WORD_PART))})_*"
)
_PARTS_OF_NAMES = _each(
    "api app attr check column config db env field file func hash id"
    " ids key name num param pass password path pin pwd secret table"
    " test tests the tmp token type user users uuid val value var"
)
_SYMBOL = lazy_compile(r"[^\W_][!#$%^&@~][^\W_]")
_WEAK = lazy_compile(r"[^\W\d_]{2}[^\W_]*(?:[-.+_][^\W_]+)*!{0,3}")
_LETTERS = lazy_compile(r"[^\W\d_]+")
_SAID = _each(
    "required optional missing invalid incorrect hidden hashed string"
    " changeme wrong expired password secret visible public private"
    " disabled enabled default random strong obvious encrypted removed"
)
_PIN = lazy_compile(r"(?a)\d{4,8}(?![\w/-]|[.:,]\d)")
_DIGITS = lazy_compile(r"\d{5,12}(?![\w/-]|[.:,]\d)")
_MANY = lazy_compile(r"(?a)\d{4,12}(?![\w/-]|[.:,]\d)")
_UNIT = lazy_compile(
    r"[ ]?(?:digit|char|zeichen|stell|bit|byte|letter"
    r"|day|word|time|chiffre|cifra|cyfr|цифр|row|entr)"
)
_YEAR = lazy_compile(r"(?:19|20)\d\d\Z")


# A search for one letter is far quicker than one for a word, so each word is looked for by a rare
# letter of it.
_RARE = "vkpwzghc"


class _Finder:
    """Finds the words of one rare letter, or a word that has none."""

    def __init__(self, letter: str, rows: list[tuple[str, str, str]]) -> None:
        self.letter, self.rows = letter, rows
        ways = []
        for begin, _, _ in rows:
            before, _, after = begin.partition(letter)
            ways.append(f"({after}(?<={begin}))" if before else f"({after})")
        self.pattern = lazy_compile(f"{letter}(?:{'|'.join(ways)})")
        self.words = [lazy_compile(rf"(?:{word})(?![a-zа-яà-ÿ_\]])") for _, word, _ in rows]

    def find(self, lowered: str) -> Iterator[tuple[int, int, str]]:
        """Start and end of each word, and what it is for."""
        for near in self.pattern.finditer(lowered):
            row = near.lastindex - 1 if near.lastindex else 0
            begin, _, kind = self.rows[row]
            if word := self.words[row].match(lowered, near.end() - len(begin)):
                yield *word.span(), kind


@cache
def _finders() -> tuple[list[_Finder], list[_Finder]]:
    """For words of ASCII alone, and for the others; made when the first text is read."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for row in _WORDS:
        letter = (
            next((c for c in _RARE if c in row[0]), row[0]) if row[0].isascii() else max(row[0])
        )
        groups.setdefault(letter, []).append(row)
    made = [_Finder(letter, rows) for letter, rows in groups.items()]
    return [one for one in made if one.letter.isascii()], [
        one for one in made if not one.letter.isascii()
    ]


def told(text: str, lowered: str) -> list[Value]:
    """Start, end and kind of the secrets that sentences tell."""
    found: list[Value] = []
    ascii_words, others = _finders()
    finders = ascii_words if lowered.isascii() else [*ascii_words, *others]
    for finder in finders:
        if finder.letter in lowered:
            for start, end, kind in finder.find(lowered):
                if not lowered.startswith(_MARK, start - len(_MARK)):
                    found += _Sentence(text, lowered, start, end, kind).values()
    found += _pairs(text, lowered)
    return found


class _Sentence:
    """One word for a secret, from `start` to `end`, and what its line says before and after it."""

    def __init__(self, text: str, lowered: str, start: int, end: int, kind: str) -> None:
        self.text, self.lowered, self.start, self.end, self.kind = text, lowered, start, end, kind
        self.first = max(0, start - _WINDOW)
        self.first = max(self.first, lowered.rfind("\n", self.first, start) + 1)
        line = lowered.find("\n", end, end + _WINDOW)
        self.last = min(end + _WINDOW, len(lowered)) if line < 0 else line

    def values(self) -> Iterator[Value]:
        """What the sentence tells, at most one value after the word and one before it."""
        if _NOUN.match(self.lowered, self.end) or (
            self.kind == "key" and not self._is_secret_key()
        ):
            return
        if max(self.text[self.end : self.end + 1], self.text[self.start]) >= "\u2e80":
            yield from self._joined()
        yield from self._after()
        yield from self._before()

    def _is_secret_key(self) -> bool:
        """Whether a key is one that opens something; that of a wifi is as short as a password."""
        if _WIFI.search(self.lowered, max(self.first, self.start - 12), self.last):
            self.kind = "password"
        elif self.lowered.startswith("key", self.start):
            return _OF_PROGRAM.search(self.lowered, self.first, self.start) is not None
        elif self.lowered.startswith(_MANY_KEYS, self.start):
            return (
                _KEY_OF.search(
                    self.lowered, max(self.first, self.start - 40), min(self.last, self.end + 40)
                )
                is not None
            )
        return True

    def _after(self) -> Iterator[Value]:
        """The first value that the rest of the line names: directly, or after "is", ":" and the
        like.
        """
        colon = _COLON.match(self.lowered, self.end, self.last)
        own = colon and (self.kind == "pin" or self.lowered.startswith(_NOT_IN_WORDS, self.start))
        if colon and (own or self._is_phrase()):
            told = self._at(colon.end(), firm=True, near=bool(own))
        else:
            told = self._at(self.end, firm=self._is_listed(), near=True) or self._of_something()
        if told:
            yield told
            return
        links = 0
        for piece in islice(_PIECE.finditer(self.lowered, self.end, self.last), _PIECES_MOST):
            word = piece[0]
            if word.endswith(_STOPS) or _MARK in word or links == _LINKS_MOST:
                return
            sign = word.endswith(_SIGNS)
            if sign and not word[:-1].strip(_CLOSING) and piece.start() <= self.end + 2:
                continue  # a sign right behind the word is for `secret_words`
            firm = (
                sign
                or word in _FIRM
                or (
                    word == "to" and self.lowered.startswith(("hasł", "haslo", "klucz"), self.start)
                )
            )
            changed = word in _ONTO and self._is_changed(piece.start())
            if firm or changed or word in _SOFT:
                links += 1
                until = piece.start() + sign * (len(word) - 1)
                near = _NEAR.match(self.lowered, self.end, until) or _GENITIVE.match(
                    self.lowered, self.end, until
                )
                still = _STILL.match(self.lowered, piece.end(), self.last) if firm else None
                firm |= changed and word in _INTO
                if told := self._at(
                    still.end() if still else piece.end(), firm=firm, near=near is not None
                ):
                    yield told
                    return

    def _is_changed(self, until: int) -> bool:
        """Whether the sentence says that someone changed or set something."""
        begin = max(self.first, self.lowered.rfind(". ", self.first, self.start))
        return _CHANGED.search(self.lowered, begin, until) is not None

    def _is_listed(self) -> bool:
        """Whether the line lists what an account has, as in "network Finch, password X", and ends
        after the value.
        """
        if not self.lowered.endswith((", ", "; "), self.first, self.start):
            return False
        found = _PIECE.search(self.text, self.end, self.last)
        return (
            found is not None
            and _END.match(self.text, found.start() + len(found[0].rstrip(_TRAIL)), self.last)
            is not None
            and _ACCOUNT.search(self.lowered, self.first, self.start) is not None
        )

    def _of_something(self) -> Value | None:
        """The value in "the password of the mail X" and "PIN card X", which have no verb."""
        if self.kind == "pin" and (found := _OF_SOMEONES.match(self.lowered, self.end, self.last)):
            return self._at(found.end())
        if found := _OF_SOMETHING.match(self.lowered, self.end, self.last):
            return self._at(found.end())
        return None

    def _at(self, at: int, *, firm: bool = False, near: bool = False) -> Value | None:
        """The value at a place, if it looks enough like one for how it is introduced."""
        lead = _LEAD.match(self.text, at, self.last)
        start = lead.end() if lead else at
        quoted = any(c in _OPENERS for c in self.text[at:start])
        if start == self.end:
            return None
        if self.kind == "pin":
            found = _PIN.match(self.text, start)
            clear = self.text[self.start].isupper() or self.text[self.start] >= "\u0400"
            shouted = firm or (clear and not _YEAR.match(self.text, start))
            good = found and shouted and not _UNIT.match(self.lowered, found.end())
            return (*found.span(), "pin") if found and good else None
        if self._is_phrase() and (phrase := self._phrase(at, start, quoted=quoted)):
            return phrase
        found = _VALUE.match(self.text, start)
        value = found[0].rstrip(_TRAIL) if found else ""
        end = start + len(value)
        if not value or not self._fits(value, end, firm=firm, near=near, quoted=quoted):
            return None
        return start, end, "secret" if self.kind == "key" else "password"

    def _fits(self, value: str, end: int, *, firm: bool, near: bool, quoted: bool) -> bool:
        if self.kind == "key":
            return firm and len(value) >= _KEY_LEAST and _strong(value)
        if quoted and near and self.text[end : end + 1] in _CLOSERS:
            return _strong(value) or _weak(value) or (firm and _plain(value))
        if firm and near and (_DIGITS.fullmatch(value) or self._is_passcode(value)):
            return not _UNIT.match(self.lowered, end)
        if firm:
            return _strong(value) or (near and _weak(value))
        return _strong(value) and _sure(value)

    def _is_passcode(self, value: str) -> bool:
        """Whether a number of four digits is that of a phone."""
        return (
            self.lowered.startswith(("passcode", "パスコード"), self.start)
            and _PIN.fullmatch(value) is not None
            and not _YEAR.match(value)
        )

    def _is_phrase(self) -> bool:
        return (
            self.lowered.startswith(_PHRASES, self.start)
            or _OF_PHRASE.search(self.lowered, self.first, self.start) is not None
        )

    def _phrase(self, at: int, start: int, *, quoted: bool) -> Value | None:
        """A few plain words: in quotes, or after a colon to the end of the line if they say nothing
        else.
        """
        found = _PHRASE.match(self.text, start)
        if not found:
            return None
        if (
            quoted
            if found["close"]
            else self.text[max(0, at - 8) : at].rstrip().endswith((":", "："))
            and not _SAYS.search(self.lowered, start, found.end())
        ):
            return (*found.span(), "passphrase")
        return None

    def _before(self) -> Iterator[Value]:
        """The value in "X is the password of the wifi" and "use X as the password"."""
        if self.kind == "key" or not _ENDS.match(self.lowered, self.end):
            return
        if _COPULAS.isdisjoint(self.lowered[self.first : self.start].split()):
            return
        pieces = list(_PIECE.finditer(self.text, self.first, self.start))
        for n in range(len(pieces) - 1, max(0, len(pieces) - 7), -1):
            piece = pieces[n][0].lower()
            if piece[-1] in ".,;:!?" or piece in _ABOUT:
                return
            if piece not in _COPULAS or pieces[n - 1][0] in _COPULAS:
                continue
            at = pieces[n - 1].start()
            if told := self._told_first(at):
                yield told
            return

    def _told_first(self, at: int) -> Value | None:
        lead = _LEAD.match(self.text, at, self.start)
        start = lead.end() if lead else at
        if self.kind == "pin":
            found = _PIN.match(self.text, start)
            return (*found.span(), "pin") if found else None
        found = _VALUE.match(self.text, start, self.start)
        value = found[0].rstrip(_TRAIL) if found else ""
        quoted = any(c in _OPENERS for c in self.text[at:start])
        if _strong(value) or _weak(value) or (quoted and _plain(value)):
            return start, start + len(value), "password"
        return None

    def _joined(self) -> Iterator[Value]:
        """The value after and before a word of a script that writes without spaces."""
        if found := _AFTER.match(self.text, self.end, self.last):
            value = found["value"].rstrip(_TRAIL + "(\"'`")
            start = found.start("value")
            said = _YET.sub("", between := found["between"].rstrip(" \"'`*"))[-1:]
            says = (
                not between
                or (said and said in _SAYS_IT)
                or (said and said in "을를" and _TURNED.match(self.text, start + len(value)))
            )
            number = _PIN if self.kind == "pin" else _MANY
            if digits := number.match(self.text, start):
                says = says and (between != "" or self.kind == "pin")
                if says and self.text[digits.end() : digits.end() + 1] not in tuple(_UNITS):
                    yield (*digits.span(), "pin" if self.kind == "pin" else "password")
            elif self.lowered.startswith(_MANY_KEYS, self.start) and self.kind == "key":
                if says and len(value) >= _KEY_LEAST and _strong(value):
                    yield start, start + len(value), "secret"
            elif _strong(value) or (says and _weak(value)):
                yield start, start + len(value), "secret" if self.kind == "key" else "password"
        if _IS.isdisjoint(self.text[self.first : self.start]):
            return
        if (found := _BEFORE.search(self.text, self.first, self.start)) and _strong(found["value"]):
            yield (*found.span("value"), "password")


def _pairs(text: str, lowered: str) -> Iterator[Value]:
    """Passwords of pairs: "login: admin / X", also in a table, and "login with admin and X"."""
    for slash in _SLASH.finditer(lowered):
        at = slash.start() - 1
        user = _PAIR.search(text, max(0, at - 65), at)
        start = at + 3 + (text[at + 3 : at + 4] in ("`", '"', "'"))
        found = _VALUE.match(text, start) if user else None
        value = found[0].rstrip(_TRAIL) if found else ""
        if (
            _strong(value)
            and _sure(value)
            and _LOGIN.search(lowered, max(0, at - _PAIR_WINDOW), at)
        ):
            yield start, start + len(value), "password"
    at = lowered.find("login")
    while at >= 0:
        if (pair := _LOGIN_WITH.match(lowered, at)) and (found := _VALUE.match(text, pair.end())):
            value = found[0].rstrip(_TRAIL)
            if _strong(value) and _sure(value):
                yield pair.end(), pair.end() + len(value), "password"
        at = lowered.find("login", at + 1)


def _strong(value: str) -> bool:
    """Whether a value looks made up: not words with numbers after them, nor a name of any known
    form.
    """
    if len(value) < _LEAST or len(set(value)) < 4 or not not_stand_in(value):
        return False
    if _NAMED.match(value) or _ORDINARY.fullmatch(value) or not any(c.isalpha() for c in value):
        return False
    if "_" in value and _NAME_OF_CODE.fullmatch(value):
        return False
    return (has_digit(value) and not wordy(value)) or _SYMBOL.search(value) is not None


def _sure(value: str) -> bool:
    """Whether a strong value is more than letters with digits among them, as a part number is
    too.
    """
    return mixed(value) or (_SYMBOL.search(value) is not None and has_digit(value))


def _weak(value: str) -> bool:
    """Whether a value is made of words and a number, as people choose theirs: `blue-fish-88`,
    `Winter2019!`.
    """
    return (
        len(value) >= _LEAST
        and has_digit(value)
        and _WEAK.fullmatch(value) is not None
        and not _NAMED.match(value)
        and not _ORDINARY.fullmatch(value)
        and ("_" not in value or _chosen(value))
    )


def _chosen(value: str) -> bool:
    """Whether words with `_` between them are a password such as `gato_azul_58`, and not a name in
    a program.
    """
    return (
        value.rstrip("!")[-2:].isdigit()
        and not value.isupper()
        and _PARTS_OF_NAMES.isdisjoint(_LETTERS.findall(value.lower()))
    )


def _plain(value: str) -> bool:
    """Whether a word in quotes may be a password itself, and not what is said about it."""
    return len(value) >= _LEAST and value.isalpha() and value.islower() and value not in _SAID
