"""Whether a sentence asks, tells, or only says that somebody looked and found nothing. Pure.

English, German, Dutch, French, Spanish, Portuguese, Italian, Polish, Russian, Chinese, Japanese and
Korean.
"""

from __future__ import annotations

import re
from functools import lru_cache

from notewell.text.words import lazy_compile

_MOST_WORDS = 25  # of a question without a question mark; longer ones have something to tell
_LONGEST = 1000  # characters of a clause that are looked at


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _any_of(*patterns: str, start: str = "", end: str = "") -> re.Pattern[str]:
    return lazy_compile(f"(?i){start}(?:{'|'.join(patterns)}){end}")


_ASKS = lazy_compile(r"[?？؟][\"'”’»)\]*_\s]*\Z")
# A sentence that ends in a full stop, or has a colon in it, tells something even if it begins with
# "what".
_TELLS = lazy_compile(r"[.:;,!。：；，！、][\"'”’»)\]*_\s]*\Z|[:：]\s")

# How a question begins that somebody types without a question mark.
_OPENS_QUESTION = _any_of(
    r"wh(?:at|ich|en|ere|o|om|ose|y)(?:['’]?s)?|how(?:['’]s)?|any idea",
    r"do(?:es)? (?:we|i|you|they|it|he|she|the|any|our)|did (?:we|i|you|they|the)",
    r"is (?:there|it|the|this|that|our)|are (?:there|we|the|our)|was (?:there|it|the)",
    r"(?:can|could|would|will|should|have) (?:you|we|i)|has (?:the|anybody|anyone)",
    r"w(?:er|as|ann|o|ie|arum|elche[rsmn]?|ieso|eshalb|omit|ofür|ohin|oher|en|em|essen)",
    r"gibt es|haben wir|weißt du|kannst du",
    r"wat|wanneer|waar|hoe|welke?|waarom|hoeveel|is er",
    r"qu(?:i|e|oi|and|el(?:le)?s?)|où|comment|pourquoi|combien|est-ce|y a-t-il",
    (
        r"qu[ée]|qui[ée]n(?:es)?|cu[áa]ndo|d[óo]nde|c[óo]mo|cu[áa]l(?:es)?|cu[áa]nt[oa]s?|por "
        r"qu[ée]|hay"
    ),
    r"quem|quando|onde|qual|quais|quant[oa]s?|há",
    r"chi|che cosa|cosa|dove|come|quale|quali|perché|c['’]è",
    r"kto|co|kiedy|gdzie|jak(?:i|a|ie|ą)?|czy|któr[yae]|dlaczego|ile",
    r"кто|что|когда|где|как(?:ой|ая|ое|ие|ую)?|почему|сколько|куда|зачем|есть ли",
    start=r"\A\W*(?:(?:and|so|but|hey|hi|ok|okay|please|also|und|et|y|e|en|а|и)\b[\s,]+){0,2}",
    end=r"\b",
)
_CJK_QUESTION = _any_of(
    r"请问|谁|誰|什么|甚麼|怎么|怎麼|哪[里个天些位]|为什么|為什麼|为啥|多少|多久|几[次个分天点]",
    r"何[をがでに時]|なぜ|どこ|どの|どう|いつ|だれ|누가|누구|언제|어디|무엇|어떻게|왜\b|몇|어느",
    r"(?:吗|嗎|呢)\W*\Z",
    r"(?:ですか|ますか|でしょうか|인가요|나요|까요|습니까|입니까)\W*\Z",
)
_REQUESTS = _any_of(
    r"remind me|tell me|show me|find out|look up|search for|do you know",
    r"sag mir|zeig mir|erinnere mich|vertel me|dis-moi|rappelle-moi|dime|recuérdame|me diga|diz-me",
    r"dimmi|ricordami|powiedz mi|przypomnij mi|скажи(?:те)? мне|напомни(?:те)? мне",
    r"告诉我|告訴我|教えて|알려",
    start=r"\A\W*(?:please |bitte |por favor[, ]*|s['’]il te pla[îi]t[, ]*)?",
)

# A request for work, made of an agent, which tells no more than that somebody wanted it.
_WANTS_WORK = _any_of(
    r"add|write|implement|fix|find|create|build|run|test|plan|book|cook|check|explain|review|help|debug",
    (
        r"investigate|refactor|draft|generate|summari[sz]e|list|walk me|figure out|look "
        r"(?:at|into|for)"
    ),
    r"schreib|prüfe|erkläre|suche|finde|erstelle|behebe|schau|écris|vérifie|explique|cherche|corrige",
    r"escribe|revisa|explica|busca|crea|arregla|scrivi|controlla|cerca|napisz|sprawdź|znajdź|напиши|проверь",
    start=r"\A\W*(?:please |bitte |now |also |can you |could you |let['’]s )?",
    end=r"\b",
)

_NOT = (
    r"(?:could|can|did|do|does|was|were|am|is|are|have|has|had) not"
    r"|(?:could|ca|did|do|does|was|were|is|are|have|has|had)n['’]?t"
    r"|cannot|unable to|failed to"
)
_FIND = r"(?:find|found|locate|see|spot|determine|tell|know|recall|remember|identify|come across)"
_RECORD = (
    r"(?:mentions?|traces?|records?|notes?|references?|information|evidence|match(?:es)?|results?|hits?"
    r"|documentation|indication|details?|entry|entries|answers?|memory|memories|data|files?|such)"
)
_FOUND_NOTHING = _any_of(
    rf"\b(?:i|we|i['’]ve|we['’]ve)\b[^.\n]{{0,60}}?\b(?:{_NOT})\b[^.\n]{{0,30}}?\b{_FIND}\b",
    rf"\b(?:{_NOT})\b (?:been able to |able to |actually |really |seem to )?{_FIND}"
    r" (?:any|anything|nothing|it|this|that|what|where|which|who|when|how|one|such"
    r"|mentions?|evidence)\b",
    (
        r"\b(?:found|see|have|there (?:is|are|was|were)|there['’]s) (?:nothing|no (?:\w+ "
        rf"){{0,2}}{_RECORD})\b"
    ),
    (
        rf"\bno (?:\w+ ){{0,2}}{_RECORD} (?:(?:was|were|is|are) "
        r")?(?:found|available|exists?|about|of|for|on)\b"
    ),
    (
        r"\bnothing (?:was |is |has been )?(?:found|turned up|came "
        r"up|mentions?|says|relevant|recorded)\b"
    ),
    r"\bnothing in (?:the|your|my|our|this)\b|\b(?:came up empty|no luck|no idea|not sure)\b",
    (
        r"\b(?:is|are|was|were)(?: not|n['’]t) "
        r"(?:documented|mentioned|recorded|specified|stated|noted)\b"
    ),
    r"\b(?:does|do)(?: not|n['’]t) (?:say|mention|specify|state)\b",
    # German and Dutch
    (
        r"\b(?:nichts|nirgends|keine[nrsm]?) (?:\w+ "
        r"){0,4}?(?:gefunden|finden|erwähnt|dokumentiert|vermerkt)\b"
    ),
    r"\b(?:nicht|nichts|keine[nrsm]?)\b[^.\n]{0,40}\b(?:finden|gefunden|feststellen)\b",
    r"\bweiß (?:ich |es |das )?(?:leider )?nicht\b|\b(?:steht|ist|sind) (?:leider )?nirgends\b",
    r"\bgibt (?:es )?(?:dazu )?keine[nr]? (?:hinweise?|informationen|notiz|angaben|eintrag)",
    r"\b(?:niets|geen \w+|nergens) (?:\w+ ){0,4}?(?:gevonden|vinden|vermeld)\b",
    r"\bniet (?:kunnen )?(?:vinden|gevonden)\b|\bweet (?:ik )?(?:het )?niet\b",
    # French, Spanish, Portuguese and Italian
    (
        r"\bn['’](?:ai|a|avons) (?:\w+ ){0,3}?(?:re)?trouv|\bn['’]ai rien\b|\bne "
        r"(?:trouve|sais|vois)\b"
    ),
    r"\brien (?:trouvé|n['’]indique|ne dit)|\baucune? (?:trace|mention|information|note|résultat)",
    r"\bno (?:he |hemos |pude |pudimos |se )?(?:encontr|hall)\w*|\bno (?:lo )?sé\b",
    (
        r"\bno hay (?:ning|informaci|menci|registro|notas|nada)|\bnada (?:\w+ "
        r"){0,3}?(?:indica|menciona)"
    ),
    r"\bn[ãa]o (?:\w+ ){0,2}?(?:encontr|ach)\w*|\bn[ãa]o sei\b|\bnada (?:foi )?encontrad",
    r"\bn[ãa]o há (?:nenhum|informa|men|registro|nada)",
    (
        r"\bnon (?:\w+ ){0,3}?trov\w*|\bnon (?:lo )?so\b|\bnessuna? "
        r"(?:traccia|menzione|informazione|nota)"
    ),
    # Polish and Russian
    r"\bnie (?:\w+ ){0,3}?znal\w*|\bnie wiem\b|\bnic nie znal|\bbrak (?:informacji|wzmian|wynik)",
    (
        r"\bне (?:\w+ )?(?:наш|найд|найти|нахо)\w*|\bне знаю\b|\bнет "
        r"(?:информации|упомин|запис|данных)"
    ),
    # Chinese, Japanese and Korean
    r"(?:没有?|沒有?|未能?|无法|無法)(?:能)?(?:在.{0,20})?(?:找到|发现|發現|查到|提到|提及|记录|記錄|确定)",
    r"找不到|查不到|搜不到|没找到|没有任何|没有相关|不知道|不清楚",
    r"見つかり?ま?せん|見つけられ|見つからな|見当たりません|見当たらな|わかりません|分かりません",
    r"(?:記載|情報|記録)(?:が|は)?(?:ありません|ない|見)",
    r"찾(?:을 수|지 못)|발견하지 못|(?:정보|기록|내용|언급)[이가은는]? ?없|모르겠",
)

# What somebody did or will do to find out, and what he offers: not what was asked for.
_TELLS_OF_LOOKING = _any_of(
    r"(?:i|we|i['’]ve|we['’]ve)(?: (?:just|also|already|now|have|then))*"
    r" (?:look|search|check|grep|scann?|went|read|review|examin|tried|quer)\w*",
    (
        r"let me|let['’]s|i['’]ll|i will|i['’]m (?:going|not)|i am (?:going|not)|i could|i['’]d|i "
        r"would"
    ),
    r"i can (?:look|search|check|try|help|also|keep|dig)|shall i|should i|do you want|would you",
    r"if you|please|could you|can you|you (?:can|could|may|might)|once you|feel free|happy to",
    (
        r"ich (?:habe|werde|kann|könnte|schaue|suche)|wir haben|wenn (?:du|sie)|soll ich|möchtest "
        r"du|bitte"
    ),
    r"ik heb (?:\w+ ){0,4}?(?:gezocht|gekeken|bekeken)|als je|wil je",
    (
        r"j['’]ai (?:cherché|regardé|parcouru|vérifié|fouillé)|je (?:peux|vais|pourrais)|si "
        r"(?:tu|vous)"
    ),
    r"he (?:buscado|revisado|mirado)|busqué|revisé|puedo|si quieres|quieres que|voy a",
    r"procurei|verifiquei|pesquisei|posso|se quiser|vou",
    r"ho (?:cercato|controllato|guardato)|se vuoi|vuoi che|posso",
    r"przeszuka\w*|sprawdzi\w*|szuka\w*|mogę|jeśli|czy chcesz",
    r"я (?:поиска|посмотре|провери|могу)\w*|если (?:хотите|хочешь)|хотите",
    r"我(?:已经|已)?(?:查|搜|看|找|翻|检查|可以)|如果(?:你|您)|需要我|要不要",
    r".{0,40}?(?:探しました|検索しました|確認しました|調べました)|.{0,40}?(?:찾아보|검색해|확인해)",
    start=r"\A\W*(?:(?:sorry|unfortunately|leider|désolé|lo siento|mi dispiace|helaas|抱歉)\b\W*)?",
)
# Words for what somebody looks for, in a clause that denies something and tells nothing else.
_WHAT_IS_LOOKED_FOR = _any_of(
    rf"\b{_FIND}\b|\b{_RECORD}\b",
    r"\b(?:anywhere|context|clear|sure|idea|written|documented|specified|related|relevant|answer)\b",
    r"(?:find|fand|gefund|notiz|hinweis|angab|eintrag|erwähn|unklar|gevonden|vinden|notitie|vermeld)",
    r"(?:trouv|mention|indiqu|précis|encontr|consta|menciona|indica|trova|risult|znal|wzmian|wiadomo)",
    r"найд|найт|наш[лё]|упомин|запис|сведен|известно|указан|找|记录|記錄|提到|提及|信息|資訊|说明|說明",
    r"見つ|記載|情報|記録|書かれ|찾|기록|정보|언급|내용",
)
_DENYING = _words(
    "not no none nothing nowhere neither never cannot unable without lack lacks empty"
    " fail fails failed nicht nichts nirgends kein keine keinen keiner keines keinem"
    " niet niets geen nergens onbekend ne pas rien aucun aucune nulle nada ningún ningun"
    " ninguna ninguno sin não nao nenhum nenhuma non nulla niente nessun nessuna nie nic brak"
    " żadna żadne żadnej żadnych не нет ничего нигде никак никаких"
)
_DENYING_PARTS = ("n't", "n’t", "n'ai", "n’ai", "n'a", "n’a", "n'est", "n’est")
_DENYING_SIGNS = ("没", "沒", "未", "无", "無", "不", "ません", "ない", "なし", "없", "못", "않")
_LETTERS = lazy_compile(r"[^\W\d_]+")
_COMMAS = lazy_compile(r"[,，、;；]\s*")
_TURNS = lazy_compile(
    r"(?i);\s|[,;]?\s\b(?:but|however|though|although|yet|instead|aber|jedoch|sondern|maar|echter|mais"
    r"|cependant|pero|sino|mas|porém|ma|però|ale|jednak|но|однако)\b"
    r"|[,，]?\s?(?:但是?|不过|不過|然而)|が、|けど|しかし|하지만|그러나|지만"
)


# Words, as the analyser writes them, in which people tell of a search; they answer nothing.
OF_SEARCHING = _words(
    "anywher avail codebas conclus couldnt determin detail doc folder gone git indic md mention"
    " notes readm readme.md relev repo repositori specif sorri unabl unfortun workspac"
    " leider ordner hinweis helaas map malheureus dossier lament carpeta pasta purtropp cartella"
    " niestet katalog папк сожален"
)


def asks(sentence: str) -> bool:
    """Whether a sentence is a question, by its mark."""
    return _ASKS.search(sentence) is not None


@lru_cache(maxsize=1024)
def opens_question(sentence: str) -> bool:
    """Whether a sentence that somebody typed begins like a question, or asks to be told, and tells
    nothing itself.
    """
    if len(sentence.split(maxsplit=_MOST_WORDS)) > _MOST_WORDS:
        return False
    start = sentence[:_LONGEST].strip()
    if _REQUESTS.match(start):
        return True
    opens = _OPENS_QUESTION.match(start) or _CJK_QUESTION.search(start)
    return opens is not None and _TELLS.search(start) is None


@lru_cache(maxsize=1024)
def wants_work(sentence: str) -> bool:
    """Whether a sentence asks in few words for something to be done."""
    short = len(sentence.split(maxsplit=_MOST_WORDS)) <= _MOST_WORDS
    return short and _WANTS_WORK.match(sentence) is not None


def denies(text: str) -> bool:
    """Whether a text denies anything, or says that it failed."""
    low = text.lower()
    if any(part in low for part in _DENYING_PARTS) or not _DENYING.isdisjoint(
        _LETTERS.findall(low)
    ):
        return True
    return not low.isascii() and any(sign in low for sign in _DENYING_SIGNS)


def finds_nothing(clause: str) -> bool:
    """Whether a clause says that something was not found, or is not known."""
    start = clause[:_LONGEST]
    return denies(start) and _FOUND_NOTHING.search(start) is not None


def may_find_nothing(clause: str) -> bool:
    """Whether a clause denies something, in words that people use for what they look for; many such
    tell a fact.
    """
    start = clause[:_LONGEST]
    return denies(start) and _WHAT_IS_LOOKED_FOR.search(start) is not None


def tells_of_looking(clause: str) -> bool:
    """Whether a clause tells of the search for an answer, or offers one, instead of giving it."""
    return _TELLS_OF_LOOKING.match(clause[:_LONGEST]) is not None


def clauses(sentence: str) -> list[str]:
    """A sentence, cut where it turns: `I looked but found nothing` is two clauses."""
    return [clause for clause in _TURNS.split(sentence) if clause.strip()]


def phrases(sentence: str) -> list[str]:
    """A sentence, cut at its commas: `It runs on port 80, can you check that?` tells first and asks
    then.
    """
    return [phrase for phrase in _COMMAS.split(sentence) if phrase.strip()]
