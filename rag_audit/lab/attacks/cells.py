"""Which mechanism, defence and coalition a service is attacked under, and the service that has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rag_audit._internal.errors import PolicyError
from rag_audit.lab.attacks.generators.extractive import ExtractiveGenerator
from rag_audit.lab.attacks.interface import Generator, PromptedGenerator, Tools
from rag_audit.lab.attacks.mechanisms import ALL, Attacked, Defence, kind, parse
from rag_audit.lab.attacks.targets.engine import Corpus, Engine
from rag_audit.lab.attacks.targets.rewriting import paraphrase
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import Embedder, relevance_of
from rag_audit.retrieval.engine import smallest_capacity


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
        return self.defence in kind(self.mechanism).bounded


def cells(mechanisms: Sequence[str], defences: Sequence[Defence], accounts: int) -> list[Cell]:
    """Each mechanism with each defence, against one account; mechanisms that bound answers, against a coalition too if
    they have no defence.

    :param accounts: the accounts of the coalition
    """
    return [
        Cell(mechanism, defence, size)
        for mechanism in mechanisms
        for defence in defences
        for size in dict.fromkeys((1, accounts))
        if size == 1 or (defence == "none" and Cell(mechanism).certified)
    ]


def default_cells(accounts: int) -> list[Cell]:
    """Every mechanism with its usual parameters and defences (`Attacked.usual`)."""
    usual = [value for attacked in ALL for value in attacked.usual]
    return [cell for value in usual for cell in cells([value.option], ("none", *value.defences), accounts)]


@dataclass
class Bench:
    """The common parts of one corpus's engines.

    :param documents: the texts of the index, attacked members first
    :param generator: writes the answers; the extractive baseline if None
    :param progress: makes a function that shows the answered questions of an engine
    """

    documents: Sequence[str]
    embedder: Embedder
    tools: Tools
    top_k: int = 5
    seed: int = 0
    generator: PromptedGenerator | None = None
    progress: Callable[[], Callable[[int, int], None]] | None = None

    def __post_init__(self) -> None:
        self.capacity = smallest_capacity(len(self.documents), 8)
        self.corpus = Corpus(self.documents, self.embedder, self.capacity, self.seed)
        self.window = ScoreWindow(*self.embedder.score_window, 64)

    def attacked(self, written: str) -> Attacked:
        """The mechanism of an option, at this corpus's size."""
        return parse(written, self.window, self.capacity, relevance_of(self.embedder))

    def engine(self, cell: Cell) -> Engine:
        """The service of a cell.

        :raises PolicyError: the defence is not defined under the mechanism
        """
        attacked = self.attacked(cell.mechanism)
        if cell.defence not in attacked.defences:
            raise PolicyError(f"this defence is not defined under the mechanism {attacked.name}", field="--defence",
                              expected=" or ".join(sorted(attacked.defences)), actual=cell.defence)  # fmt: skip
        return Engine(
            corpus=self.corpus,
            generator=self._generator(guarded=cell.defence == "prompt"),
            attacked=attacked,
            defence=cell.defence,
            rewrite=paraphrase if cell.defence == "paraphrase" else None,
            top_k=self.top_k,
            seed=self.seed,
            progress=None if self.progress is None else self.progress(),
        )

    def _generator(self, *, guarded: bool) -> Generator:
        if self.generator is None:
            return ExtractiveGenerator(self.tools.model, guarded=guarded)
        return self.generator.guard() if guarded else self.generator

    def beside(self, documents: Sequence[str]) -> Engine:
        """A service of the attacker's own like this one, over other documents, without a mechanism."""
        return replace(self, documents=documents).engine(Cell("none"))
