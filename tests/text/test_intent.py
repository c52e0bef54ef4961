"""What a question wants: how things stand, or how they came about."""

from __future__ import annotations

import pytest

from recollect.text.intent import asks_for_now

NOW = [
    "Where do I keep the keys now?",
    "What is the current staging port?",
    "which phone am I using currently",
    "What is the latest plan for the offsite?",
    "do we still use the old router",
    "What is my favourite tea these days?",
    "how many books have I read so far",
    "How many plants do I have?",
    "How often does my sister call; how often do we talk?",
    "Where am I working?",
    "What's my shoe size?",
    "Is my passport valid?",
    "Have we paid the rent?",
    "现在的端口是多少?",
    "目前谁负责账单服务?",
    "最新的备份脚本在哪里?",
    "當前的路由器密碼,最近改過嗎?",
    "現在のポート番号は?",
    "今の住所を教えて",
    "最近の担当者は誰?",
    "현재 포트 번호는?",
    "지금 누가 담당해?",
    "최근 백업은 어디에 있어?",
]
NOT_NOW = [
    "",
    "staging port",
    "When did I move to Berlin?",
    "Have I ever been to Japan?",
    "How do I reset the router now?",
    "How should we deploy the current release?",
    "Can you tell me my latest address?",
    "Summarise the history of the current port",
    "How many books have I read in total?",
    "What are all my current subscriptions?",
    "What did we decide after the latest outage?",
    "Where did I live before?",
    "What is my previous address?",
    "How much was my rent last year; how much do I recall?",
    "I know nothing about knowledge",
    "什么时候搬的家?",
    "以前的端口是多少?",
    "引っ越したのはいつ?",
    "昔の住所はどこ?",
    "언제 이사했어?",
    "포트 번호는 몇 번이었어?",
]


@pytest.mark.parametrize("question", NOW)
def test_a_question_about_how_things_stand_wants_now(question: str) -> None:
    assert asks_for_now(question)
    assert asks_for_now(question.upper())


@pytest.mark.parametrize("question", NOT_NOW)
def test_a_question_about_the_past_the_whole_or_the_way_does_not(question: str) -> None:
    assert not asks_for_now(question)


@pytest.mark.parametrize("question", ["2019年はどこに住んでいましたか", "誰が書いていましたか"])
def test_a_japanese_verb_ending_is_no_now(question: str) -> None:
    assert not asks_for_now(question)
