"""Masks of the mask-based attack: where they stand, and which answers count as right."""

from random import Random

import pytest

from rag_audit.lab.attacks.masks import Variant, mask
from rag_audit.lab.attacks.proxy import Speller, TokenStatistics
from rag_audit.lab.attacks.text import STOP_WORDS

OWN = ["the doctor gave the patient a tablet for the headache and a beta blocker"] * 6
TEXT = "The doctor gave the patient a beta-blocker called propranolol because the headachee would not end"
MODEL = TokenStatistics(OWN)
SPELLER = Speller(MODEL)


def test_each_part_gets_its_hardest_word() -> None:
    masked = mask(TEXT, 3, MODEL, SPELLER)
    assert masked.text.count("[Mask_") == 3
    assert "propranolol" in {a[0] for a in masked.answers}
    restored = masked.text
    for number, answers in enumerate(masked.answers, 1):
        restored = restored.replace(f"[Mask_{number}]", answers[0])
    assert restored.lower() == TEXT.lower()


def test_a_fragmented_word_is_masked_as_one() -> None:
    masked = mask("a beta-blocker", 1, MODEL, SPELLER)
    assert masked.answers == (("beta-blocker",),)
    assert mask("a beta-blocker", 1, MODEL, SPELLER, variant="plm").answers[0][0] in ("beta", "blocker")


def test_both_spellings_of_a_misspelled_word_are_right() -> None:
    assert SPELLER.correct("headachee") == "headache"
    assert mask("a headachee", 1, MODEL, SPELLER).answers == (("headachee", "headache"),)
    assert mask("a headachee", 1, MODEL, SPELLER, variant="no-spelling").answers == (("headachee",),)


@pytest.mark.parametrize("variant", ["full", "plm", "no-spelling"])
def test_neighbours_and_stop_words_are_left(variant: Variant) -> None:
    masked = mask(TEXT, 8, MODEL, SPELLER, variant=variant)
    assert "] [Mask" not in masked.text
    assert not {a for answers in masked.answers for a in answers} & STOP_WORDS


def test_random_masks_repeat_with_their_seed() -> None:
    first = mask(TEXT, 3, MODEL, SPELLER, variant="random", random=Random(4))
    assert first == mask(TEXT, 3, MODEL, SPELLER, variant="random", random=Random(4))
    assert len(first.answers) == 3


def test_the_rank_counts_likelier_words() -> None:
    assert MODEL.rank("the", None) == 1
    assert MODEL.rank("doctor", "the") < MODEL.rank("tablet", "the") < MODEL.rank("unheard", "the")


def test_unlikely_words_reach_their_perplexity() -> None:
    model = TokenStatistics([" ".join(f"word{i} word{i + 1}" for i in range(500))])
    drawn = model.unlikely_words(Random(1), 12, [], 1500.0)
    assert len(drawn) == 12
    assert 1000 < model.perplexity(drawn) < 2300
