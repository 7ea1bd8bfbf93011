"""The mask-based attack (MBA) and its ablations."""

from __future__ import annotations

from typing import ClassVar

from rag_audit.lab.attacks.interface import (
    AttackError,
    FillMasks,
    Replies,
    Task,
    Tasks,
    Tools,
    mask_answers,
)
from rag_audit.lab.attacks.masks import Variant, mask
from rag_audit.lab.attacks.methods.common import FirstFeature

MASKS = 10
"""M: the paper finds 5 to 15 best."""
MIN_MASKS = 3
SPACING = 8
"""Words of a document for each mask. Short documents get fewer than M masks, so that their remaining words still
find them."""
_PAPER = "Mask-based MIA (paper 000)"


class Mba(FirstFeature):
    """Masks the words that a proxy model finds hardest, and counts how many the service fills in."""

    name: ClassVar[str] = "mba"
    paper: ClassVar[str] = _PAPER
    about: ClassVar[str] = "fills the hardest masked words; fragmented words, spelling, proxy ranks"
    variant: ClassVar[Variant] = "full"

    def prepare(self, text: str, tools: Tools) -> list[Task]:
        """One masked text."""
        count = min(MASKS, max(MIN_MASKS, len(text.split()) // SPACING))
        masked = mask(text, count, tools.proxy, tools.speller, variant=self.variant, random=tools.random)
        if not masked.answers:
            raise AttackError("no word of the document can be masked", expected="words beyond the commonest")
        self._answers[masked.text] = masked.answers
        return [FillMasks(masked.text, len(masked.answers))]

    def __init__(self) -> None:
        self._answers: dict[str, tuple[tuple[str, ...], ...]] = {}

    def features(self, text: str, tasks: Tasks, replies: Replies, tools: Tools) -> list[float]:
        """The share of masks that were filled with a right answer."""
        right = total = 0
        for task, reply in zip(tasks, replies, strict=True):
            assert isinstance(task, FillMasks)
            said = mask_answers(reply.text)
            answers = self._answers[task.retrieval]
            total += len(answers)
            right += sum(said.get(n) in spellings for n, spellings in enumerate(answers, 1))
        return [right / max(1, total)]


class MbaWithoutSpelling(Mba):
    """MBA without the correction of misspelled words."""

    name: ClassVar[str] = "mba-nosc"
    about: ClassVar[str] = "MBA without spelling correction (ablation)"
    variant: ClassVar[Variant] = "no-spelling"


class MbaProxyOnly(Mba):
    """MBA with only the proxy model's ranks."""

    name: ClassVar[str] = "mba-plm"
    about: ClassVar[str] = "MBA without fragmented words and spelling (ablation)"
    variant: ClassVar[Variant] = "plm"


class MbaRandom(Mba):
    """MBA with masks at random words."""

    name: ClassVar[str] = "mba-random"
    about: ClassVar[str] = "MBA with random masks (ablation)"
    variant: ClassVar[Variant] = "random"
