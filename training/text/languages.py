"""Which languages the text may be in, how registries name them, and whether a text really is in
one.
"""

from __future__ import annotations

import re

PRIORITY = ("zh", "ja", "ko", "de", "fr", "es", "pt", "it", "ru")
OTHERS = (
    "uk pl nl tr ar hi vi id sv cs da fi no hu ro bg el he th fa ca sk sl hr sr lt lv et eu gl ms "
    "ta te bn kn ml mr gu pa ne si km ka hy az kk uz be mk sq bs eo af cy is ga ur mn my am sw"
).split()
LANGUAGES = frozenset((*PRIORITY, *OTHERS))
SAME = {"nb": "no", "cmn": "zh", "iw": "he", "in": "id", "fil": "tl"}
NOT_PLAIN = frozenset(
    {"sr@ijekavian", "sr@ijekavianlatin", "uz@cyrillic", "ca@valencia", "be@latin", "tt@iqtelif"}
)
_LOCALE = re.compile(r"([a-z]{2,3})(?:[-_]([A-Za-z]{2,8}|\d{3}))?(?:[@.][A-Za-z0-9-]+)?")
_SCRIPTS = {
    "zh": r"[\u4e00-\u9fff]",
    "ja": r"[\u3040-\u30ff]",
    "ko": r"[\uac00-\ud7af]",
    "ru uk bg sr mk be kk mn": r"[\u0400-\u04ff]",
    "ar fa ur": r"[\u0600-\u06ff]",
    "he": r"[\u0590-\u05ff]",
    "hi mr ne": r"[\u0900-\u097f]",
    "bn": r"[\u0980-\u09ff]",
    "pa": r"[\u0a00-\u0a7f]",
    "gu": r"[\u0a80-\u0aff]",
    "ta": r"[\u0b80-\u0bff]",
    "te": r"[\u0c00-\u0c7f]",
    "kn": r"[\u0c80-\u0cff]",
    "ml": r"[\u0d00-\u0d7f]",
    "si": r"[\u0d80-\u0dff]",
    "th": r"[\u0e00-\u0e7f]",
    "my": r"[\u1000-\u109f]",
    "ka": r"[\u10a0-\u10ff]",
    "am": r"[\u1200-\u137f]",
    "km": r"[\u1780-\u17ff]",
    "el": r"[\u0370-\u03ff]",
    "hy": r"[\u0530-\u058f]",
}
SCRIPT = {
    lang: re.compile(letters) for langs, letters in _SCRIPTS.items() for lang in langs.split()
}
DENSE = frozenset({"zh", "ja", "ko"})
_LATIN = re.compile(r"[A-Za-z]")
_WORD = re.compile(r"[^\W\d_]{4,}")
_KANA_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")


def code(locale: str) -> str:
    """The language of a locale such as `pt_BR`, `zh-Hant` or `en-US`; nothing where it is none of
    ours.
    """
    found = _LOCALE.fullmatch(locale)
    if locale in NOT_PLAIN or not found:
        return ""
    lang = SAME.get(found[1], found[1])
    return lang if lang in LANGUAGES or lang == "en" else ""


def _share(letters: re.Pattern[str], text: str) -> float:
    ours = len(letters.findall(text))
    return ours / max(1, ours + len(_LATIN.findall(text)))


def written_in(lang: str, text: str, least: float = 0.3) -> bool:
    """Whether a text has enough letters of the language's own script; always so for Latin ones."""
    if lang == "zh" and _KANA_HANGUL.search(text):
        return False
    if lang == "ja" and SCRIPT["zh"].search(text):
        least = 0.1
    letters = SCRIPT.get(lang)
    if lang == "sr" and _LATIN.search(text) and not SCRIPT["sr"].search(text):
        return True
    return letters is None or _share(letters, text) >= least


def translated(lang: str, english: str, text: str) -> bool:
    """Whether a text is a translation and not the English left as it was."""
    if not text or text == english or not written_in(lang, text):
        return False
    if lang in SCRIPT and lang != "sr":
        return True
    ours = [word.lower() for word in _WORD.findall(text)]
    theirs = {word.lower() for word in _WORD.findall(english)}
    same = sum(word in theirs for word in ours)
    return bool(ours) and same <= 0.5 * len(ours)


def like_lengths(lang: str, english: str, text: str) -> bool:
    """Whether the two lengths can be those of one text in two languages."""
    low, high = (0.15, 1.2) if lang in DENSE else (0.5, 2.2)
    return low <= len(text) / max(1, len(english)) <= high
