"""The extractive generator copies from its passages, and from nothing else."""

import math

import pytest

from rag_audit.lab.attacks.generators.extractive import ExtractiveGenerator, exact_match
from rag_audit.lab.attacks.interface import Continue, FillMasks, NextWord, YesNo, mask_answers, verdict_of
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.proxy import TokenStatistics

TEXT = "The clinic of Doctor Amundsen in Tromso treats frostbite with warm water and patience since nineteen eighty."
HERE, AWAY = (
    [Passage(TEXT)],
    [Passage("Bread rises because yeast turns sugar into gas while the dough is kept warm.")],
)
GENERATOR = ExtractiveGenerator(TokenStatistics([AWAY[0].text]))
GUARDED = ExtractiveGenerator(TokenStatistics([AWAY[0].text]), guarded=True)


def test_masks_are_filled_from_the_passage_alone() -> None:
    task = FillMasks(TEXT.replace("Amundsen", "[Mask_1]").replace("frostbite", "[Mask_2]"), 2)
    assert mask_answers(GENERATOR.answer(task, HERE).text) == {1: "amundsen", 2: "frostbite"}
    assert mask_answers(GENERATOR.answer(task, AWAY).text) == {}
    assert mask_answers(GENERATOR.answer(task, []).text) == {}


def test_presence_is_seen_and_the_guarded_prompt_says_nothing() -> None:
    task = YesNo(TEXT, TEXT, presence=True)
    assert verdict_of(GENERATOR.answer(task, HERE).text) is True
    assert verdict_of(GENERATOR.answer(task, AWAY).text) is False
    assert verdict_of(GUARDED.answer(task, HERE).text) is None


@pytest.mark.parametrize(
    ("statement", "passages", "said"),
    [
        ("treats frostbite with warm water and patience", HERE, True),
        ("treats frostbite with warm bread and patience", HERE, False),
        ("treats frostbite with warm water and patience", AWAY, None),
    ],
)
def test_a_statement_is_true_false_or_unknown(
    statement: str, passages: list[Passage], said: bool | None
) -> None:
    assert verdict_of(GENERATOR.answer(YesNo("?", statement), passages).text) is said


def test_a_text_is_continued_word_for_word_unless_guarded() -> None:
    task = Continue("The clinic of Doctor Amundsen in Tromso", 5)
    assert GENERATOR.answer(task, [*AWAY, *HERE]).text == "treats frostbite with warm water"
    assert "treats frostbite with" not in GUARDED.answer(task, HERE).text


def test_the_next_word_is_likelier_where_the_passage_has_it() -> None:
    task = NextWord("Doctor Amundsen in", "Tromso")
    (here,), (away,) = (GENERATOR.answer(task, p).log_probabilities or () for p in (HERE, AWAY))
    assert math.exp(here) > 0.8
    assert math.exp(away) < 0.05


def test_log_probabilities_are_those_of_the_words_that_were_written() -> None:
    reply = GENERATOR.answer(Continue("The clinic of Doctor Amundsen", 4, probabilities=True), HERE)
    assert reply.log_probabilities is not None
    assert len(reply.log_probabilities) == 4
    assert all(p <= 0 for p in reply.log_probabilities)


def test_exact_match_needs_the_answer_in_a_passage() -> None:
    assert exact_match(HERE, ["warm water"])
    assert not exact_match(AWAY, ["warm water", ""])
