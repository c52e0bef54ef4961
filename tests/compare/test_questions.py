"""A sentence that asks, one that says that nothing was found, and one that tells something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.compare.questions import (
    asks,
    clauses,
    finds_nothing,
    opens_question,
    phrases,
    tells_of_looking,
    wants_work,
)

TYPED_QUESTIONS = (
    "which port does staging use",
    "what's the wifi password",
    "please remind me who looks after the printer",
    "wo liegt der Schlüssel für den Keller",
    "wanneer is de volgende release",
    "où est le contrat du fournisseur",
    "cuándo sale la próxima versión",
    "quando è la riunione con il cliente",
    "onde fica o contrato",
    "kiedy jest następne wydanie",
    "где лежит договор",
    "备份多久做一次",
    "次のリリースはいつですか",
    "다음 배포는 언제인가요",
)
FAILURES = (
    "I could not find anything that says this.",
    "I can't find that in the notes.",
    "I wasn't able to locate any mention of the port.",
    "There is no mention of this anywhere.",
    "No notes about that were found.",
    "I'm not sure, and nothing in the files says so.",
    "The lifetime is not documented here.",
    "Dazu habe ich leider nichts gefunden.",
    "Ich konnte keinen Hinweis darauf finden.",
    "Ik heb daar niets over gevonden.",
    "Je n'ai rien trouvé à ce sujet.",
    "Aucune mention dans les fichiers.",
    "No encontré ninguna mención.",
    "Não encontrei nada sobre isso.",
    "Non ho trovato alcuna traccia.",
    "Nie znalazłem żadnej wzmianki.",
    "Я не нашёл никаких упоминаний.",
    "没有找到相关的记录。",
    "その記載は見つかりませんでした。",
    "관련 내용을 찾을 수 없습니다.",
)
FACTS = (
    "Refresh tokens live 30 days.",
    "We deploy on Tuesday, not on Wednesday.",
    "The old port is closed; use 9443.",
    "Es gibt keinen Zug nach zehn Uhr.",
    "La réunion n'aura pas lieu vendredi.",
    "El contrato no se renueva en 2027.",
    "Резервный сервер не работает по ночам.",
    "周三不部署。",
    "水曜日にはデプロイしません。",
    "수요일에는 배포하지 않는다.",
)


@pytest.mark.parametrize("sentence", TYPED_QUESTIONS)
def test_a_question_without_a_mark_is_seen_by_how_it_opens(sentence: str) -> None:
    assert opens_question(sentence)
    assert not finds_nothing(sentence)


@pytest.mark.parametrize("sentence", FAILURES)
def test_somebody_found_nothing(sentence: str) -> None:
    assert any(finds_nothing(clause) for clause in clauses(sentence))


@pytest.mark.parametrize("sentence", FACTS)
def test_a_fact_neither_asks_nor_fails_even_if_it_denies_something(sentence: str) -> None:
    for clause in clauses(sentence):
        assert not finds_nothing(clause)
        assert not opens_question(clause)
        assert not tells_of_looking(clause)


def test_a_question_ends_like_one() -> None:
    assert asks("Which port?")
    assert asks("**哪个端口？** ")
    assert not asks("Is it 8080? It is.")


def test_work_is_asked_for_in_few_words() -> None:
    assert wants_work("fix the smoke test of the importer")
    assert wants_work("write a migration with a new index on order_lines")
    assert not wants_work("The importer was fixed")
    assert not wants_work("fix it " + "as we said in the meeting " * 10)


def test_who_looked_tells_of_that_alone() -> None:
    assert tells_of_looking("I searched README.md and the docs folder")
    assert tells_of_looking("Do you want me to search the git history as well")
    assert not tells_of_looking("Staging answers on port 9443")


def test_a_sentence_is_cut_where_it_turns_and_at_its_commas() -> None:
    assert clauses("I looked everywhere but found nothing") == [
        "I looked everywhere",
        " found nothing",
    ]
    assert phrases("It runs on 80, can you check?") == ["It runs on 80", "can you check?"]
    assert phrases("端口是 80，对吗？") == ["端口是 80", "对吗？"]


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    asks(text)
    for part in (*clauses(text), *phrases(text)):
        for judge in (opens_question, wants_work, finds_nothing, tells_of_looking):
            assert judge(part) in (True, False)
