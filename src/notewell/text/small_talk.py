"""Whether a prompt is about something that notes could help with, told without a model: not small
talk or a command.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from pathlib import Path

from notewell.text.everyday import share_of
from notewell.text.words import STOP_WORDS, fold, is_unspaced, query_terms, visible, words_in

_LEAST_BITS = 10.0  # what the words of a prompt must tell, together; two everyday words tell less
_UNKNOWN_BITS = 12.0  # of a word that is in no table
_LONGEST = 400  # characters; nobody chats at such length
# a command of the host, or text that a host made
_OURS = re.compile(r"/[\w:.-]+(?:\s|$)|[!$]\s*\w|<[a-z][\w-]*>")
_FLAG = re.compile(r"\s-{1,2}\w")
_MOST_IN_COMMAND = 2
_COMMANDS = frozenset(
    """git gh npm pnpm yarn npx deno ls cd pwd cp mv rm mkdir grep curl ssh cargo docker podman
    kubectl terraform python python3 pip uv pytest mypy tsc eslint bash sudo""".split()  # noqa: SIM905
)
# Words of scripts that are written without spaces.
_RUNS = re.compile(
    "好的?|行|可以|是的?|不是?|不用了?|不要|对|没错|谢谢你?|多谢|感谢|请|继续|接着|下一个|再来一次|再试一次|停|等等|等一下|你好|早上好|晚安|再见|"
    "明白了?|知道了|没问题|太好了|很好|完美|了|吧|啊|嗯|哈|"
    "はい|いいえ|うん|ええ|ありがとう|ございます|ございました|お願い|します|おねがい|続けて|ください|つづけて|次|もう一度|了解|です|しました|"
    "わかりました|いいね|いい|よ|ね|完璧|こんにちは|おはよう|おやすみ|さようなら|すみません|どうも|ขอบคุณ|ครับ|ค่ะ|ใช่|ไม่|ต่อไป"
)


def says_something(prompt: str) -> bool:
    """Whether a prompt has words that a note could be about."""
    text = visible(prompt).strip()
    if not text or _OURS.match(text) or _is_command(text):
        return False
    if len(text) > _LONGEST:
        return True
    words = [word.replace("’", "'") for word in map(str.casefold, words_in(text))]
    if all(_is_talk(word) for word in words):
        return False
    return sum(map(_bits, query_terms(text).words)) >= _LEAST_BITS


@lru_cache(maxsize=1)
def _words() -> frozenset[str]:
    """Words of greetings, thanks and confirmations, and of talk about the session itself, in some
    thirty languages.
    """
    return frozenset(Path(__file__).with_name("small_talk.txt").read_text(encoding="utf-8").split())


def _is_talk(word: str) -> bool:
    return (
        word in _words()
        or fold(word) in _words()
        or (is_unspaced(word) and not _RUNS.sub("", word))
    )


def _is_command(text: str) -> bool:
    """Whether a line is one for the shell: the name of a program with few words or with flags."""
    first, *rest = text.split()
    if first not in _COMMANDS or "\n" in text or any(word in STOP_WORDS for word in rest):
        return False
    return len(rest) < _MOST_IN_COMMAND or bool(_FLAG.search(text))


def _bits(term: str) -> float:
    share = share_of(term)
    return -math.log2(share) if share else _UNKNOWN_BITS
