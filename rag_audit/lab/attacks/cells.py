"""Which mechanism, defence and coalition a service is attacked under, and the service that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_audit._internal.errors import PolicyError
from rag_audit.lab.attacks.generators.extractive import ExtractiveGenerator
from rag_audit.lab.attacks.generators.http import ChatGenerator
from rag_audit.lab.attacks.interface import Generator, Tools
from rag_audit.lab.attacks.targets import mechanisms
from rag_audit.lab.attacks.targets.engine import Corpus, Engine
from rag_audit.lab.attacks.targets.ranking import Hiding
from rag_audit.lab.attacks.targets.rewriting import paraphrase
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import Embedder

Defence = Literal["none", "mirabel", "mirabel-plain", "prompt", "paraphrase"]
"""Mirabel on the scores that the mechanism leaves, or on exact scores under it; a guarded prompt; rewritten queries."""
WEAK_NOISE = "noise:1,1,1,1:128"
STRONG_NOISE = "noise:1,8,64:32"
_HIDING: dict[str, Hiding] = {"mirabel": "noised", "mirabel-plain": "plain"}


@dataclass(frozen=True)
class Cell:
    """One column of a run.

    :param mechanism: as the option --mechanism has it
    :param accounts: the accounts of the coalition
    """

    mechanism: str
    defence: Defence = "none"
    accounts: int = 1

    @property
    def label(self) -> str:
        """The column's name."""
        defence = "" if self.defence == "none" else f" + {self.defence}"
        return f"{self.mechanism}{defence}, {self.accounts} account{'s' if self.accounts > 1 else ''}"

    @property
    def certified(self) -> bool:
        """Whether the mechanism's bound covers the answers. It does not if a defence reads exact scores below the
        mechanism."""
        return (
            self.mechanism != "none"
            and self.defence != "mirabel-plain"
            and not (self.defence == "mirabel" and not self.mechanism.startswith("noise"))
        )


def default_cells(accounts: int) -> list[Cell]:
    """Every mechanism against one account and against a coalition, and every defence without noise and with it."""
    coalition = (1, accounts) if accounts > 1 else (1,)
    return [
        *(Cell("none", defence) for defence in ("none", "mirabel", "prompt", "paraphrase")),
        *(Cell(WEAK_NOISE, "none", k) for k in coalition),
        Cell(WEAK_NOISE, "mirabel"),
        *(Cell(STRONG_NOISE, "none", k) for k in coalition),
        *(Cell("sampling:0.7", "none", k) for k in coalition),
        *(Cell("listing:0.7", "none", k) for k in coalition),
    ]


@dataclass
class Bench:
    """The common parts of one corpus's engines.

    :param documents: the texts of the index, attacked members first
    """

    documents: Sequence[str]
    embedder: Embedder
    tools: Tools
    top_k: int = 5
    seed: int = 0
    generator: ChatGenerator | None = None

    def __post_init__(self) -> None:
        self.capacity = max(8, 1 << (len(self.documents) - 1).bit_length())
        self.corpus = Corpus(self.documents, self.embedder, self.capacity, self.seed)
        self.window = ScoreWindow.for_scale(self.embedder.scale, 64)

    def mechanism(self, written: str) -> mechanisms.Mechanism:
        """The mechanism of an option, at this corpus's size."""
        return mechanisms.parse(written, self.window, self.capacity)

    def engine(self, cell: Cell) -> Engine:
        """The service of a cell.

        :raises PolicyError: listing lists chance's documents too, and a guard that hides one of them is not defined
        """
        mechanism = self.mechanism(cell.mechanism)
        if cell.mechanism.startswith("listing") and cell.defence.startswith("mirabel"):
            raise PolicyError("Mirabel is not defined for lists by randomised response", field="--defence",
                              expected="none, prompt or paraphrase", found=cell.defence)  # fmt: skip
        return Engine(
            corpus=self.corpus,
            generator=self._generator(guarded=cell.defence == "prompt"),
            mechanism=mechanism,
            hiding=_HIDING.get(cell.defence, "none"),
            rewrite=paraphrase if cell.defence == "paraphrase" else None,
            top_k=self.top_k,
            seed=self.seed,
        )

    def _generator(self, *, guarded: bool) -> Generator:
        if self.generator is None:
            return ExtractiveGenerator(self.tools.model, guarded=guarded)
        return self.generator.guard() if guarded else self.generator

    def beside(self, documents: Sequence[str]) -> Engine:
        """A service of the attacker's own like this one, over other documents, without a mechanism."""
        return Bench(documents, self.embedder, self.tools, self.top_k, self.seed, self.generator).engine(
            Cell("none")
        )
