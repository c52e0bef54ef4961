"""The words that a comparison of two texts recognises, in several languages: negations, fillers,
verbs, numbers, units.

A language is added by a line in each table. A word in no table is a plain word, which is safe:
those always count.
"""

from __future__ import annotations

from notewell.text.dates import numbered

RULES = "alike-3"  # the version of these rules; verdicts of another version are computed again


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _in_order(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# A word that belongs to two languages must mean the same in both.
NEGATIONS = _words(
    "not no never none cannot without neither nor nobody nothing"
    " nicht kein keine keinen keinem keiner keines nie niemals ohne"
    " не нет никогда без нельзя"
    " pas jamais sans aucun aucune nunca sin nao não nunca sem non mai senza"
    " لا ليس لم لن غير بدون"
)
WIDE_NEGATIONS = _in_order("ません なかった なくなっ ない なし 不 没 沒 無 无 未 别 非 안 않 못 없")
# Words that contain 不, 非 or the like and negate nothing.
WIDE_PLAIN = _in_order("不同 不仅 不過 不过 不断 不久 未来 非常 别人 特别 無料 안녕 안내 안전")
# Left out of a comparison, because they never change the meaning.
FILLERS = _words(
    "a an the this that these those it its we our us there here be been being am now"
    " currently presently still also just already very really then so do does please"
    " der die das den dem des ein eine einen einem einer"
    " wir uns unser unsere es auch jetzt derzeit uhr"
    " мы наш наша наше это также теперь сейчас уже le la les un une el los las nous notre"
)
# Compared, but too small to make a new fact: `from Ann` and `to Ann` differ, and may both be true.
SMALL_WORDS = _words(
    "of to in on at for from by with and or as than into onto over under about per via until since"
    " im in am um an auf zu zum zur von vom und oder mit bei für nach bis seit"
    " и а в во на с со у к по от до за из о об для или"
    " de des du et ou en au aux y del con para por ne"
)
WIDE_FILLERS = frozenset("的吧呢啊也呀嘛ねよを")
# The first of these in a sentence ends the subject.
VERBS = _words(
    "is are was were has have must should may might can could needs need uses use used runs run"
    " lives live works work costs cost takes take keeps keep stays stay stores store answers answer"
    " listens listen points point belongs belong expires expire starts start begins begin ends end"
    " meets meet happen happens opens open closes close supports support reports report prefers"
    " prefer accepts accept requires require means mean contains contain holds hold eats eat drinks"
    " drink speaks speak owns own sits sit stands stand goes go writes write returns return sends"
    " send reads read equals equal becomes become allows allow gets get wants want lasts last"
    " teaches teach likes like loves love knows know leaves departs depart arrives arrive lands"
    " moved changed switched renamed set scheduled due planned deployed written located hosted kept"
    " ist sind war waren hat haben wird werden läuft laufen steht stehen liegt liegen"
    " wohnt wohnen arbeitet heißt heisst beträgt kostet nutzt nutzen verwendet gehört"
    " beginnt endet öffnet schließt isst trinkt spricht kommt geht muss darf kann soll"
    " есть был была было были будет работает работают живёт живет"
    " находится находятся хранится хранятся поддерживаем поддерживает"
    " использует используем стоит называется начинается заканчивается"
    " est sont était peut peuvent doit doivent es son era está están usa vive"
    " trabaja cuesta puede pueden debe deben tiene tienen sale salen è sono può deve"
)
WIDE_VERBS = frozenset("是在为為有用住叫等由は：:")
# What happened once may happen again with another object, so two such sentences are two events.
EVENTS = _words(
    "met bought visited read watched attended ate had called fixed added wrote"
    " discussed talked reviewed merged released shipped saw learned tried asked ran"
    " walked paid sold went came played cooked finished started drank received sent"
    " gekauft getroffen besucht gelesen gesehen купил купила встретил встретила видел видела"
)
# A change of state is not such an event: its result is a fact.
CHANGES = _words(
    "moved changed switched renamed increased decreased replaced updated limited decided agreed "
    "planned scheduled"
)
# A sentence with one of these tells that something is no longer as it was; a regular expression.
NEW_STATE = (
    r"\b(?:moved|moves? to|switch(?:ed|es)?|chang(?:ed|es)|renamed|replac(?:ed|es)|instead"
    r"|no (?:longer|more)|any ?more|not any|resign(?:ed|s)|retired|stepp?(?:ed|s) down"
    r"|from (?:now|today|then)(?: on)?|now|nowadays|since then|stopped|quit|gave up|upgraded"
    r"|updated|increased|decreased|raised|lowered|(?:goes|went|go) (?:up|down)|gone (?:up|down)"
    r"|hand(?:ed|s)\b.{0,40}\bover|t(?:akes|ook) over|takes the|became|becomes|cancell?ed"
    r"|postponed|after all|closed|shut down|ended|new|as of|unless|dropped|abandoned|superseded"
    r"|deprecated|removed|finally|recently|just (?:got|bought|started|moved|switched)"
    r"|jetzt|nun|ab (?:sofort|heute|jetzt)|nicht mehr|kein\w* mehr|statt"
    r"|stattdessen|umgezogen|zieht um|gewechselt|wechselt|geändert|zurückgetreten"
    r"|ersetzt|neue[nrsm]?|steigt|sinkt|erhöht|gesenkt|entfällt|abgesagt|inzwischen"
    r"|mittlerweile|künftig|seitdem|wieder|gibt \w+ \w+ ab|übernimmt|aufgegeben"
    r"|maintenant|désormais|dorénavant|n['’e]\w* \w+ plus|plus de|au lieu|remplacé\w*|remplace"
    r"|changé\w*|passe (?:à|au|en)|déménagé|démissionné|dès|résilié\w*|nouve(?:au|lle|l)s?"
    r"|fini|à partir|augmente|baisse|parti\w* à la retraite|de nouveau|annulé\w*|reporté\w*"
    r"|ahora|ya no|a partir|desde hoy|en lugar|en vez|sino|cambi(?:ó|ado|amos|a)"
    r"|mud(?:ó|amos|aron)|dimiti(?:ó|do)|jubil(?:ó|ado)|sustituy\w+|nuev[oa]s?"
    r"|sube|baja|pasa a|vuelven?|dej(?:ó|amos)|cancelad[oa]|aplazad[oa])\b"
    r"|现在|現在|改[为為到成用]|换[成到了]|換|不再|即日起|从今|辞职"
    r"|辭職|搬[到了]|变更|變更|取消|新[版的任]|升级|升級|交给|接任|推迟"
    r"|もう|新しい|変更|変わ|辞任|引っ越|이제|더 이상|바뀌|변경|이사"
)
# One can like, have or know many things; only a number can be disputed.
MANY = _words("like love enjoy know has hat mag kennt")
# Headings and file names that say nothing about what is below them.
GENERIC = _words(
    "memory memories note notes daily log journal diary standup meeting meetings today facts fact"
    " misc general other user decision decisions learned remembered session chat conversation"
    " notizen tagebuch 笔记 日记 メモ 日記"
)

NUMBER_WORDS = {
    word: str(number)
    for word, number in numbered(
        "zero null ноль, one eins один одна, two zwei два две, three drei три,"
        " four vier четыре, five fünf пять, six sechs шесть, seven sieben семь,"
        " eight acht восемь, nine neun девять, ten zehn десять, eleven elf, twelve zwölf,"
        " thirteen, fourteen, fifteen, sixteen, seventeen, eighteen, nineteen"
    ).items()
}
_TENS = numbered("twenty, thirty, forty, fifty, sixty, seventy, eighty, ninety", start=2)
NUMBER_WORDS |= {word: str(10 * tens) for word, tens in _TENS.items()}
SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
    "billion": 1_000_000_000,
    "dozen": 12,
}
SCALES |= {"k": 1_000, "bn": 1_000_000_000}

UNITS: dict[str, tuple[str, str]] = {}
for _kind, _rows in {
    "time": "ms,millisecond,milliseconds=0.001"
    " s,sec,secs,second,seconds,sekunde,sekunden,секунд,секунды,秒=1"
    " min,mins,minute,minutes,minuten,минут,минуты,分钟=60"
    " h,hr,hrs,hour,hours,stunde,stunden,час,часа,часов,小时,時間=3600"
    " day,days,tag,tage,tagen,день,дня,дней,天=86400"
    " week,weeks,woche,wochen,неделя,недели,недель=604800",
    "bytes": "kb=1e3 mb=1e6 gb=1e9 tb=1e12 kib=1024 mib=1048576 gib=1073741824 byte,bytes=1",
    "length": (
        "mm=0.001 cm=0.01 km,kilometer,kilometers,kilometre,kilometres=1000 "
        "mile,miles=1609.344 m,meter,metre=1"
    ),
    "mass": "mg=0.001 g,gram,grams,gramm=1 kg,kilo,kilos=1000",
    "share": "%,percent,prozent,процентов=1",
    "€": "€,eur,euro,euros=1",
    "$": "$,usd,dollar,dollars=1",
    "£": "£,gbp,pounds=1",
}.items():
    for _row in _rows.split():
        _names, _, _factor = _row.partition("=")
        for _name in _names.split(","):
            UNITS[_name] = (_kind, _factor)

MONTHS = numbered(
    "january jan januar января, february feb februar февраля,"
    " march mar märz marz марта, april apr апреля, may mai мая, june jun juni июня,"
    " july jul juli июля, august aug августа, september sept sep сентября,"
    " october oct oktober октября, november nov ноября, december dec dezember декабря",
    start=1,
)
WEEKDAYS = numbered(
    "monday mon montag montags понедельник понедельникам,"
    " tuesday tue tues dienstag dienstags вторник вторникам,"
    " wednesday wed mittwoch mittwochs среда среду средам,"
    " thursday thu thurs donnerstag donnerstags четверг четвергам,"
    " friday fri freitag freitags пятница пятницу пятницам,"
    " saturday sat samstag samstags суббота субботу субботам,"
    " sunday sonntag sonntags воскресенье воскресеньям"
)
WEEKDAYS |= {f"{name}s": day for name, day in WEEKDAYS.items() if name.endswith("day")}
