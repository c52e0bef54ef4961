"""Which time a question is about: now unless it says otherwise, a period, the past, or how
something came about.
"""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.text import periods
from notewell.text.periods import TimeAsked, time_asked
from notewell.text.words import query_terms
from notewell.types import Tense
from tests.growth import no_hang

TODAY = dt.datetime(2026, 11, 10, 9)  # noqa: DTZ001 - days of this place

NOW = [
    "",
    "deploy day",
    "Who chairs the committee at the moment?",
    "Do we still deploy on Thursdays?",
    "Is there a spell checker built in these days?",
    "Will there be a conference this year?",
    "Does fab print a summary by default?",
    "Where do I keep the keys now?",
    "How many plants do I have?",
    "How long have I had my cat?",
    "Where did she move to in her most recent move?",
    "Wer leitet den Chor zurzeit?",
    "Fahren wir noch nach Weimar?",
    "Qui préside l'association en ce moment ?",
    "Que fait la caisse ?",
    "¿Todavía pedimos los reactivos a Quimar?",
    "¿Qué compañía está?",
    "现在的端口是多少?",
    "会刊还印刷吗?",
]
PAST = [
    "What port did staging use?",
    "Who was the chair?",
    "Where should I work on my essay?",
    "What would you suggest for lunch?",
    "Wer hatte die Schlüssel?",
    "Où se garaient les clients ?",
    "¿Dónde se dejaban los residuos?",
]
HISTORY = [
    "Summarise the deploys",
    "When did I move to Berlin?",
    "Have I ever been to Japan?",
    "Have I done that before?",
    "How has the rent changed over time?",
    "Who was the first chair?",
    "Where did we originally meet?",
    "Wann war das Konzert?",
    "Wie hat sich der Beitrag im Lauf der Zeit verändert?",
    "Comment le loyer a-t-il évolué au fil du temps ?",
    "¿Cómo ha cambiado el alquiler?",
    "发布日一直以来有哪些变化?",
    "以前的端口是多少?",
]


def asked(text: str) -> TimeAsked:
    return time_asked(text, TODAY)


@pytest.mark.parametrize("question", NOW)
def test_a_question_is_about_now_unless_it_says_otherwise(question: str) -> None:
    assert asked(question).tense is Tense.NOW
    assert asked(question.upper()).tense is Tense.NOW
    assert asked(question).until is None


@pytest.mark.parametrize("question", PAST)
def test_a_verb_in_the_past_and_a_call_for_advice_do_not_ask_how_things_are(question: str) -> None:
    assert asked(question).tense is Tense.PAST


@pytest.mark.parametrize("question", HISTORY)
def test_a_question_about_history_is_told_from_one_about_a_state(question: str) -> None:
    assert asked(question).tense is Tense.HISTORY


@pytest.mark.parametrize(
    ("question", "last"),
    [
        ("what port did staging use in June", "2026-06-30"),
        ("what port did staging use in 2025", "2025-12-31"),
        ("where did we eat last summer", "2026-08-31"),
        ("who was on call last week", "2026-11-08"),
        ("which port was it before June", "2026-05-31"),
        ("what was it before 2026", "2025-12-31"),
        ("what was it before 12 May 2026", "2026-05-11"),
        ("Welcher Port war es im Juni?", "2026-06-30"),
        ("Wo haben wir letzten Sommer gegessen?", "2026-08-31"),
        ("Wer hatte letzte Woche Dienst?", "2026-11-08"),
        ("Wie war das vor 2026?", "2025-12-31"),
        ("Quel était le port en juin ?", "2026-06-30"),
        ("Où mangions-nous l'été dernier ?", "2026-08-31"),
        ("la semaine dernière", "2026-11-08"),
        ("avant 2026", "2025-12-31"),
        ("¿Qué puerto era en junio?", "2026-06-30"),
        ("¿Dónde comíamos el verano pasado?", "2026-08-31"),
        ("la semana pasada", "2026-11-08"),
        ("antes de junio", "2026-05-31"),
        ("6月份的端口是哪个?", "2026-06-30"),
        ("去年夏天我们在哪里吃饭?", "2025-08-31"),
        ("2026年之前是谁?", "2025-12-31"),
    ],
)
def test_a_period_ends_on_its_last_day_and_before_one_is_the_day_before_it(
    question: str, last: str
) -> None:
    assert asked(question).until == dt.date.fromisoformat(last)
    assert asked(question).tense is not Tense.HISTORY


@pytest.mark.parametrize(
    "question",
    ["in this year", "who is it today?", "dieses Jahr", "cette année", "今年", "since June"],
)
def test_a_period_that_is_not_over_is_now(question: str) -> None:
    assert asked(question).until is None
    assert asked(question).dates


@pytest.mark.parametrize(
    ("question", "event", "subject"),
    [
        ("How much rent did we pay before the move?", "move", "rent pay"),
        ("before the Postgres upgrade, which port was it", "Postgres upgrade", "port"),
        ("Was zahlten wir vor dem großen Umzug im Monat?", "Umzug", "Was zahlten wir im Monat"),
        ("Quel était le loyer avant le déménagement ?", "déménagement", "Quel était le loyer"),
        ("¿Cuánto era el alquiler antes de la mudanza?", "mudanza", "era el alquiler"),
        ("搬家之前房租是多少?", "搬家", "房租是"),
    ],
)
def test_before_an_event_names_it_and_what_is_asked(
    question: str, event: str, subject: str
) -> None:
    found = asked(question)
    assert found.before == query_terms(event).words
    assert found.subject == frozenset(query_terms(subject).words)
    assert found.tense is not Tense.HISTORY


def test_words_for_the_time_are_not_what_a_question_is_about() -> None:
    assert (
        asked("Which port does staging use now?").subject
        == asked("Which port does staging use in June?").subject
    )
    assert asked("Do we still print it?").subject == {"print"}


@pytest.mark.parametrize(
    ("question", "same"),
    [
        ("How many species have I seen in the park?", "species seen in the park"),
        ("How long have I had my cat Luna?", "had my cat Luna"),
        ("How much rent do we pay?", "rent do we pay"),
        ("Wie viele Exemplare drucken wir?", "Exemplare drucken wir"),
        ("Wie lange läuft der Vertrag?", "läuft der Vertrag"),
        ("Combien de tables avons-nous ?", "de tables avons-nous"),
        ("¿Cuántas mesas tenemos?", "mesas tenemos"),
        ("我们有多少张桌子？", "我们有 张桌子？"),
    ],
)
def test_what_asks_for_a_number_is_not_what_the_number_is_of(question: str, same: str) -> None:
    assert asked(question).subject == asked(same).subject


def test_much_and_long_stay_where_they_do_not_ask() -> None:
    assert "long" in asked("Where is the long ladder?").subject


def test_before_something_general_is_no_event() -> None:
    assert asked("What must I do before?").before == ()
    assert asked("before").before == ()


@pytest.mark.parametrize("text", ["in june ", "夏天在", "before the move ", "1 ", "été "])
def test_a_text_that_names_thousands_of_days_is_read_in_bounded_time(text: str) -> None:
    with no_hang():
        assert len(asked((text * 20_000)[:20_000]).dates) <= 200


@given(st.text(max_size=200), st.datetimes())
def test_any_text_is_a_question_at_any_time(text: str, now: dt.datetime) -> None:
    found = time_asked(text, now)
    assert found.until is None or found.until < now.date()


def test_an_expression_that_is_slow_to_make_is_made_only_for_questions_that_may_need_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = dt.datetime(2026, 6, 1)  # noqa: DTZ001
    assert periods.time_asked("who led BEFORE the move", now).before
    assert periods.time_asked("who was there anteſ de la mudanza", now).before
    monkeypatch.setattr(periods, "_EVENT", None)
    assert periods.time_asked("what did we decide about auth tokens", now).before == ()
