"""The papers' attacks against a language model and the extractive baseline, side by side:
`python -m bench.language MODEL.gguf --out FOLDER [--members N] [--minutes M] [--collections NAME ..]`.

The collections come from RAG_AUDIT_DATA; only their short texts are attacked. The model answers document by document,
a member and a document outside the index by turns, and every answer is stored in FOLDER. The script stops after M
minutes and prints the figures of the documents with all answers; the same command continues. With M = 0 it only prints.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.common import parser
from rag_audit.errors import RagAuditError
from rag_audit.lab.attacks import campaign, runner, tables
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.generators.local import LocalGenerator
from rag_audit.lab.attacks.generators.stored import StoredGenerator
from rag_audit.lab.attacks.interface import Attack, AttackError, Probe, Reply, Task
from rag_audit.lab.attacks.language.model import LanguageModel, open_model
from rag_audit.lab.attacks.language.proxy import LanguageProxy
from rag_audit.lab.attacks.methods import chosen
from rag_audit.lab.attacks.metrics import Figure
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.quality import Form
from rag_audit.lab.attacks.runner import Result
from rag_audit.lab.attacks.split import Split, make_split
from rag_audit.lab.empirical.sets import collection
from rag_audit.retrieval.embedders import get_embedder

COLLECTIONS = ("squad", "mts")
WORDS = range(20, 76)
"""Words of an attacked document: a long prompt costs the model seconds."""
TOP_K, SEED = 3, 0
LEAST = 10
"""Fewest members of a printed figure."""
SAME_ANSWERS: Mapping[str, tuple[str, ...]] = {
    "s2mia-s": ("s2mia-s", "s2mia-p", "s2mia-t", "s2mia-m", "min-k"),
    "rag-mia": ("rag-mia",),
    "mba": ("mba",),
}
"""By attack: the attacks that read the same answers."""
PLAIN, GUARDED = Cell("none"), Cell("none", "prompt")
PASSES: Sequence[tuple[tuple[str, ...], Cell, float]] = (
    (("s2mia-s", "rag-mia"), PLAIN, 0.5),
    (("s2mia-s",), GUARDED, 0.5),
    (("mba",), PLAIN, 0.5),
    (("s2mia-s", "rag-mia"), PLAIN, 1),
    (("mba",), PLAIN, 1),
)
"""The attacks in the order in which the model answers them, and the share of the members."""


class TimeOver(Exception):
    """The model has no time for another answer."""


class UntilThen(LocalGenerator):
    """A generator that refuses new answers after a point in time.

    :param until: seconds since the epoch
    """

    def __init__(self, model: LanguageModel, until: float, *, guarded: bool = False) -> None:
        super().__init__(model, guarded=guarded)
        self._until = until

    def guard(self) -> UntilThen:
        """The same model under the guarded prompt."""
        return UntilThen(self._model, self._until, guarded=True)

    def answer(self, task: Task, passages: Sequence[Passage]) -> Reply:
        """See `LocalGenerator.answer`.

        :raises TimeOver: the time is over
        """
        if time.time() > self._until:
            raise TimeOver
        return super().answer(task, passages)


@dataclass
class Corpus:
    """A collection with a service in front of it.

    :param bench: the engine with the model
    """

    name: str
    split: Split
    bench: Bench

    @property
    def baseline(self) -> Bench:
        """The engine with the extractive baseline; the attacker masks the same words."""
        return replace(self.bench, generator=None)


def corpus(
    name: str, texts: Sequence[str], model: LanguageModel, members: int, out: Path, until: float
) -> Corpus:
    """The short texts of a collection behind the model.

    :raises AttackError: there are too few short texts
    """
    short = [text for text in texts if len(text.split()) in WORDS]
    split = make_split(short, members=members, others=members, seed=SEED)
    embedder = get_embedder(query_tokens=512)
    tools = campaign.tools_of(split.own, campaign.Unit(embedder), SEED, LanguageProxy(model))
    generator = StoredGenerator(UntilThen(model, until), out / f"{name}.jsonl")
    return Corpus(name, split, Bench(split.index, embedder, tools, TOP_K, SEED, generator))


class Work:
    """One attack on one corpus in one cell; a document's tasks are prepared when the attack reaches it."""

    def __init__(self, attack: Attack, corpus: Corpus, cell: Cell) -> None:
        self.attack, self.corpus, self.cell = attack, corpus, cell
        self.texts = campaign.numbered(corpus.split)
        self.engine = corpus.bench.engine(cell)

    def answer(self, document: int) -> None:
        """Let the model answer this document's tasks."""
        one = replace(self.corpus.split, members=(self.texts[document],), others=())
        try:
            tasks = campaign.prepare(self.attack, one, self.corpus.bench.tools).tasks[0]
        except AttackError:
            return  # The attack refuses this document, in the evaluation too.
        self.engine.ask(
            [
                Probe(document, place, account, task)
                for account in range(self.cell.accounts)
                for place, task in enumerate(tasks)
            ]
        )


def ask(corpora: Sequence[Corpus], attacks: Sequence[str], cell: Cell, members: int) -> int:
    """Let the model answer the attacks' questions on the first documents of each corpus.

    :returns: the number of members, and of others, with all answers; fewer than `members` if the time ended before
    """
    work = [Work(attack, c, cell) for c in corpora for attack in chosen(list(attacks))]
    for number in range(members):
        for document in (number, number + campaign.OUTSIDE):
            try:
                for part in work:
                    part.answer(document)
            except TimeOver:
                return number
        print(f"{cell.label}: {' '.join(attacks)}: {number + 1} of {members}", file=sys.stderr)
    return members


def measure(corpus: Corpus, attacks: Sequence[str], cell: Cell, members: int) -> list[tuple[str, Result]]:
    """The results of the first members and others, for the model and for the baseline."""
    split = corpus.split
    part = replace(split, members=split.members[:members], others=split.others[:members])
    result = []
    for name, bench in (("language model", corpus.bench), ("extractive baseline", corpus.baseline)):
        plan = runner.Plan(tuple(attacks), (cell,), 0, bench.seed, (200, 1), runner.digest_of(part))
        result += [(name, r) for r in runner.run(plan, chosen(list(attacks)), bench, part)]
    return result


def paper(name: str, attack: str) -> str:
    """The papers' AUC on the corpus that the collection replaces: masks, then shadow services."""
    masks, shadow = tables.MASKS_1.get(name, {}).get(attack), tables.SHADOW_1.get(name, {}).get(attack)
    result = [f"{values[place]:g}" for values, place in ((masks, 1), (shadow, 0)) if values is not None]
    return ", ".join(result) or "-"


def figure(value: Figure | None, digits: int = 2) -> str:
    """A figure with its interval."""
    return "-" if value is None else f"{value[0]:.{digits}f} ({value[1]:.{digits}f} to {value[2]:.{digits}f})"


def attacks_table(rows: Sequence[tuple[str, str, Result]]) -> str:
    """The AUC of each attack next to the papers', with the retrieval recall.

    :param rows: collection, generator, result
    """
    lines = [
        "| collection | attack | generator | members | retrieval recall | AUC with its 95 % interval | accuracy |"
        " the papers' AUC |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, generator, r in rows:
        recall = "-" if r.retrieval is None else f"{r.retrieval[0]:.2f}"
        lines.append(
            f"| {name} | `{r.attack}` | {generator} | {r.documents // 2} | {recall} | {figure(r.figures['auc'])} |"
            f" {figure(r.figures['accuracy'])} | {paper(name, r.attack)} |"
        )
    return "\n".join(lines)


def answers_table(rows: Sequence[tuple[str, str, Result]]) -> str:
    """The form of the answers, and the size of the generation channel."""
    lines = [
        "| collection | questions of | prompt | generator | answers | "
        + " | ".join(Form)
        + " | copied | verbatim | longest run |",
        "|---" * (8 + len(Form)) + "|",
    ]
    for name, generator, r in rows:
        if r.attack in SAME_ANSWERS and (w := r.written) is not None:
            prompt = "guarded" if r.cell.defence == "prompt" else "plain"
            lines.append(
                f"| {name} | `{r.attack}` | {prompt} | {generator} | {w.count} | "
                + " | ".join(str(w.forms[form]) for form in Form)
                + f" | {figure(w.copied, 3)} | {figure(w.verbatim)} | {w.longest} |"
            )
    return "\n".join(lines)


def main() -> int:
    """Ask the model for a time, and print the tables of the complete answers."""
    options = parser(__doc__)
    options.add_argument("model", type=Path, help="a GGUF file with a chat template")
    options.add_argument("--out", type=Path, required=True, help="the folder of the answers")
    options.add_argument("--members", type=int, default=50, help="attacked members, and as many others")
    options.add_argument("--minutes", type=float, default=60, help="the time for new answers")
    options.add_argument("--collections", nargs="+", default=list(COLLECTIONS))
    args = options.parse_args()
    until = time.time() + 60 * args.minutes
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        model = open_model(args.model)
        corpora = [
            corpus(name, collection(name).passages[:4000], model, args.members, args.out, until)
            for name in args.collections
        ]
    except RagAuditError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    print(report(corpora, args.members))
    return 0


def report(corpora: Sequence[Corpus], members: int) -> str:
    """The tables of all complete answers, after the answers that the time permits."""
    complete: dict[tuple[str, Cell], int] = {}
    for attacks, cell, share in PASSES:
        count = ask(corpora, attacks, cell, round(share * members))
        complete |= {(a, cell): max(count, complete.get((a, cell), 0)) for a in attacks}
    rows = [
        (c.name, generator, result)
        for (attack, cell), count in complete.items()
        if count >= LEAST
        for c in corpora
        for generator, result in measure(c, SAME_ANSWERS[attack], cell, count)
    ]
    plain = [row for row in rows if row[2].cell == PLAIN]
    return f"{attacks_table(plain)}\n\n{answers_table(rows)}"


if __name__ == "__main__":
    sys.exit(main())
