"""Makes the text of notes safe inside a prompt: quoted between marks that it cannot contain.
Pure.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import count

from notewell.text.host_marks import host_marks
from notewell.text.words import lazy_compile

MARK_LENGTH = 8
OWN, STRANGE = "| ", "> "  # what every quoted line begins with, and every line of an untrusted one
# Characters that people do not see but a model may: controls, bidirectional overrides, invisible
# tags and joiners.
_UNSEEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
    "\u115f\u1160\u3164\uffa0"  # letters without a form
)
_HIDDEN = lazy_compile(f"[{_UNSEEN}]")
_NO_DOTS = "\u2800"  # beside signs of Braille it is their blank, elsewhere nothing that is seen
_NO_DOTS_ALONE = lazy_compile(r"(?<![\u2800-\u28ff])\u2800++(?![\u2801-\u28ff])")
_ODD = lazy_compile(f"[{_UNSEEN}{_NO_DOTS}\t\n\r\x85\u2028\u2029]")
_BREAKS = re.compile("\r\n?|[\x85\u2028\u2029]")
_PLAIN = lazy_compile(r"[\w./#@+~,-]+")
_JOINERS = r"[\u200c\u200d\ufe00-\ufe0f]"
_GAP = rf"(?:\s|{_JOINERS}){{0,8}}"
_BLANKS = rf"(?:[^\S\n]|{_JOINERS})*+"
_COLONS = "∶꞉ː˸׃։᛬⁚ꓽ"  # beside those that Unicode itself takes for one
_OPENS = "<\uff1c\ufe64\u2039\u3008\u27e8\u2329"
_PIPES = "|\uff5c"
# Names that are only ever used as a mark: those of turns and tokens, and those of calls of tools
# and their answers.
_MARKS = (
    "start_of_turn|end_of_turn|start_of_image|end_of_image|(?:start|end)_function_(?:call|declaration|response)"
    r"|bos|eos|unk|sop|eop|(?:bos|eos|pad|unk|cls|mask)_token|unused\d{1,4}"
    "|function_calls?|function_results?|function_response|invoke|parameter|tool_(?:use|calls?|results?|response|outputs?)"
    "|available_tools|thinking|think|system[_-](?:reminder|warning|prompt|message)|arg_key|arg_value"
)
_OF_HOSTS, _HOST_WORDS = map("|".join, host_marks())
# Words that a note may well have after a "<"; they are marks only where something like a tag
# follows.
_WORDS = "s|pad|system|user|assistant|human|tools?|functions?|instructions?|prompt"
_MISTRAL = (
    "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT"
    "|CALL_ID|MODEL_SETTINGS|THINK|gMASK"
)
# Our own marks in any look-alike form; then the marks of chat templates and tool calls: ChatML,
# Llama, Phi, Qwen, DeepSeek, Harmony, Cohere and Gemma with pipes; tags; Llama 2 and Mistral in
# brackets; MiniMax; Claude's old turns.
_LOOKS_ALIKE = lazy_compile(
    rf"(?i)[{_OPENS}](?={_GAP}[/\u2044\u2215\uff0f]?{_GAP}{_GAP.join('memory')})"
    rf"|[{_OPENS}](?={_JOINERS}*[{_PIPES}](?:[^\s>=|]|[\w \u2581-]{{1,60}}[{_PIPES}][>\uff1e]))"
    rf"|[{_OPENS}](?=/?[\w\u2581-]{{1,60}}[{_PIPES}][>\uff1e])"
    rf"|[{_OPENS}](?={_GAP}/?{_GAP}(?:[\w.-]{{1,30}}:)?(?:{_MARKS}|{_OF_HOSTS})(?![\w-]))"
    rf"|[{_OPENS}](?={_GAP}/{_GAP}(?:{_HOST_WORDS})\s{{0,4}}>)|(?<!\w)[{_OPENS}](?={_GAP}(?:{_HOST_WORDS})(?:>|\s+[\w:.-]+\s*=\s*[\"']))"
    rf"|[{_OPENS}](?={_GAP}/?{_GAP}(?:[\w.-]{{1,30}}:)?(?:{_WORDS})(?:={_GAP}\w|\s*(?:/?[>\uff1e\n]|\Z|[\w:.-]+\s*=\s*[\"'])))"
    r"|<<(?=\s{0,4}/?SYS\s{0,4}>>)"
)
_IN_BRACKETS = lazy_compile(rf"(?i)\[(?=/?(?:{_MISTRAL})\]|e~\[)|\](?=~!?b[\[\]])")
# Without any of these there is nothing to look for, which saves a text of another script the
# comparison of letters.
_SUSPECT = lazy_compile(
    rf"[{_OPENS}˂ᐸ❮\[\]［］]|(?m:^){_BLANKS}\S{{4,40}}{_BLANKS}[:：﹕︓{_COLONS}]"
)
_TURN = lazy_compile(r"(?im)^[^\S\n]*+(human|assistant|system|user)(?=[^\S\n]*+:)")
_ESCAPED = {"<<": "&lt;&lt;", "[": "&#91;", "]": "&#93;"}


def visible(text: str) -> str:
    """Text with one kind of line break and no hidden characters."""
    text = _HIDDEN.sub("", _BREAKS.sub("\n", text))
    return _NO_DOTS_ALONE.sub("", text) if _NO_DOTS in text else text


def neutral(text: str) -> str:
    """Visible text without anything that looks like a mark of ours, of an agent, of a chat template
    or of a tool.
    """
    text = visible(text)
    if text.isascii():
        plain, places = text, None
    elif _SUSPECT.search(text):
        plain, places = _plain(text)
    else:
        return text
    edits = [(*found.span(), _ESCAPED.get(found[0], "&lt;")) for found in _marks_in(plain)]
    for turn in _TURN.finditer(plain):
        above = plain[plain.rfind("\n", 0, max(0, turn.start() - 1)) + 1 : turn.start()]
        if not above.strip():  # a turn begins after an empty line
            edits += [(turn.start(1), turn.start(1), "("), (turn.end(1), turn.end(1), ")")]
    out: list[str] = []
    done = 0
    for start, end, instead in sorted(edits):
        first, last = (places[start], places[end]) if places else (start, end)
        out += (text[done:first], instead)
        done = last
    return "".join((*out, text[done:])) if out else text


def _marks_in(plain: str) -> Iterator[re.Match[str]]:
    """The marks in a text; most texts have no sign that could open one, and 4 ms are saved if none
    has.
    """
    if any(sign in plain for sign in _OPENS):
        yield from _LOOKS_ALIKE.finditer(plain)
    if "[" in plain or "]" in plain:
        yield from _IN_BRACKETS.finditer(plain)


# Letters of other scripts that look like a Latin one, beside those that Unicode itself takes for
# the same.
_LATIN = (
    "аеорсхуѕіјԁԛԝһӏкмтвнгАВЕКМНОРСТХУЅІЈαοντρυικχεγηωΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡʏոսօᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡᴢ"
)
_AS = "aeopcxysijdqwhlkmtbhrABEKMHOPCTXYSIJaovtpuikxeynwABEZHIKMNOPTYXigynuoabcdefghijklmnoprstuvwz"
_SIGNS_LIKE = {
    **dict.fromkeys("‐‑‒–—―−⁃˗", "-"),
    **dict.fromkeys("⁄∕⧸", "/"),
    **dict.fromkeys("ǀ∣❘", "|"),
    **dict.fromkeys("‹〈⟨〈˂ᐸ❮", "<"),
    **dict.fromkeys("›〉⟩〉˃ᐳ❯", ">"),
    **dict.fromkeys(_COLONS, ":"),
}
_SAME = dict(zip(_LATIN, _AS, strict=True)) | _SIGNS_LIKE


_MOST_LOOKS = 20_000


class _Looks(dict[int, str | None]):
    """The ASCII character that each one looks like; none for what is put on or between letters."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        like: str | None = char
        if char in _SAME:
            like = _SAME[char]
        elif unicodedata.category(char) in ("Mn", "Me", "Cf"):
            like = None
        elif not char.isascii():
            bare = [c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c)]
            if len(bare) == 1:
                like = _SAME.get(bare[0], bare[0] if bare[0].isascii() else char)
        if len(self) < _MOST_LOOKS:
            self[code] = like
        return like


_LOOKS = _Looks()


def _plain(text: str) -> tuple[str, list[int] | None]:
    """The text as it looks, in ASCII as far as it can be, and where each of its characters is, if
    not at its place.
    """
    plain = text.translate(_LOOKS)
    if len(plain) == len(text):
        return plain, None
    return plain, [place for place, char in enumerate(text) if _LOOKS[ord(char)]] + [len(text)]


def shown(text: str) -> str:
    """Text on one line, such as a name, with line breaks and hidden characters written as
    escapes.
    """
    return _ODD.sub(lambda m: m[0].encode("unicode_escape", "surrogatepass").decode(), text)


def named(text: str) -> str:
    """A name amid words of ours: one line, harmless, and in quotes unless it is clear where it
    ends.
    """
    safe = neutral(shown(text.replace("\\", "\\\\")))
    return safe if _PLAIN.fullmatch(safe) else '"' + safe.replace('"', '\\"') + '"'


def quoted(text: str, *, untrusted: bool = False) -> str:
    """Harmless text of which every line begins with a mark that no line of ours begins with."""
    mark = STRANGE if untrusted else OWN
    return "\n".join((mark + line).rstrip() for line in neutral(text).split("\n"))


def label(text: str) -> str:
    """Text for the head of a fence: one line, without quotes and angle brackets."""
    return (
        shown(text)
        .replace("&", "&amp;")
        .replace('"', "&quot;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )


def boundary(texts: Iterable[str]) -> str:
    """A mark that occurs in none of the texts, and is always the same for the same texts."""
    whole = "\0".join(texts)
    low = whole.casefold()
    tries = (f"{number}\0{whole}".encode("utf-8", "replace") for number in count())
    marks = (hashlib.blake2b(data, digest_size=MARK_LENGTH // 2).hexdigest() for data in tries)
    return next(mark for mark in marks if mark not in low)
