"""The papers' attacks against a language model and the extractive baseline, side by side:
`python -m bench.language MODEL.gguf --out FOLDER [--members N] [--minutes M] [--collections NAME ..]`.

The collections come from RAG_AUDIT_DATA; only their short texts are attacked. The model answers document by document,
a member and a document outside the index by turns, and every answer is stored in FOLDER. The script stops after M
minutes and writes the figures of the documents with all answers; the same command continues. With M = 0 it only
writes. Before its longest answers, those to masks, the model answers under noise, sampling and pooled listing, with T
worlds of each kind for a lower bound on epsilon (`--trials T`).
`python docs/attacks/generate.py --language-model FOLDER/attacks-*.json` makes the tables of docs/attacks.md.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.common import parser
from rag_audit._internal.durable import replace_file
from rag_audit.commit.explore.collections import collection
from rag_audit.errors import RagAuditError
from rag_audit.lab.attacks import campaign, runner
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.generators.local import LocalGenerator
from rag_audit.lab.attacks.generators.stored import StoredGenerator
from rag_audit.lab.attacks.interface import Attack, AttackError, Probe, Reply, Task
from rag_audit.lab.attacks.language.model import LanguageModel, open_model
from rag_audit.lab.attacks.language.proxy import LanguageProxy
from rag_audit.lab.attacks.methods import chosen
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.runner import Result
from rag_audit.lab.attacks.split import Split, make_split
from rag_audit.retrieval.embedders import get_embedder

COLLECTIONS = ("squad", "mts")
WORDS = range(20, 76)
"""Words of an attacked document: a long prompt costs the model seconds."""
TOP_K, SEED = 3, 0
POLICY = (200, 1)
"""n and k_max of the policy with the printed eps_audit."""
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
BEFORE = 2
"""The passes before the attacks on mechanisms."""
UNDER = ("s2mia-s", "rag-mia")
"""The attacks on mechanisms: each asks one question about a document."""
MECHANISMS = tuple(
    Cell(mechanism, accounts=accounts)
    for accounts in (1, 4)
    for mechanism in ("pooled-listing:0.9", "sampling:0.7", "noise:1,1,1,1:128", "noise:1,8,64:32")
)
"""The mechanisms in the order in which the model answers, each against one account and against four."""
UNDER_SHARE = 0.5
"""The share of the members that are attacked under mechanisms."""


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


def under_mechanisms(split: Split, bench: Bench, trials: int) -> list[Result]:
    """The attacks on each mechanism, with lower bounds on epsilon. The family of bounds that hold together at 95 % has
    all cells, also cells that the time does not reach.

    :returns: the results of the cells with all answers
    """
    plan = runner.Plan(UNDER, MECHANISMS, trials, bench.seed, POLICY, runner.digest_of(split))
    session = runner.Session(plan, chosen(list(UNDER)), bench, split)
    results: list[Result] = []
    for cell in MECHANISMS:
        try:
            results += session.run(only=[cell])
        except TimeOver:
            break
        print(f"{cell.label}: {len(split.members)} members, {trials} worlds of each kind", file=sys.stderr)
    return results


def measure(
    corpus: Corpus, complete: Mapping[tuple[str, Cell], int], model: bool, trials: int
) -> dict[str, object]:
    """The results of the documents with all answers, as attacks.json has them.

    :param complete: the members with all answers, by attack and cell
    :param model: whether the language model answers, or the baseline
    :param trials: worlds of each kind under each mechanism; 0 for no attacks on mechanisms
    """
    split, bench = corpus.split, corpus.bench if model else corpus.baseline
    results: list[Result] = []
    for (attack, cell), count in complete.items():
        if count >= LEAST:
            part = _first(split, count)
            names = SAME_ANSWERS[attack]
            plan = runner.Plan(names, (cell,), 0, bench.seed, POLICY, runner.digest_of(part))
            results += runner.run(plan, chosen(list(names)), bench, part)
    if trials:
        results += under_mechanisms(_attacked(split), bench, trials)
    used = dict.fromkeys([PLAIN.mechanism, *(r.cell.mechanism for r in results)])
    return {
        "type": "attacks", "v": 1, "target": "engine", "data": corpus.name, "seed": bench.seed,
        "generator": bench.engine(PLAIN).generator.label, "proxy": bench.tools.proxy.name,
        "members": len(split.members), "others": len(split.others), "index": len(split.index),
        "capacity": bench.capacity, "top_k": TOP_K, "n": POLICY[0], "k_max": POLICY[1], "delta": runner.DELTA,
        "mechanisms": {m: bench.attacked(m).parameters.model_dump(exclude_defaults=True) for m in used},
        "results": [r.as_json() for r in results],
    }  # fmt: skip


def _attacked(split: Split) -> Split:
    """The documents that are attacked under mechanisms."""
    return _first(split, round(UNDER_SHARE * len(split.members)))


def _first(split: Split, count: int) -> Split:
    return replace(split, members=split.members[:count], others=split.others[:count])


def main() -> int:
    """Ask the model for a time, and print the tables of the complete answers."""
    options = parser(__doc__)
    options.add_argument("model", type=Path, help="a GGUF file with a chat template")
    options.add_argument("--out", type=Path, required=True, help="the folder of the answers")
    options.add_argument("--members", type=int, default=50, help="attacked members, and as many others")
    options.add_argument("--minutes", type=float, default=60, help="the time for new answers")
    options.add_argument(
        "--trials", type=int, default=50, help="worlds of each kind under each mechanism; 0 for none"
    )
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
    for path in write(corpora, args.members, args.out, args.trials):
        print(path)
    return 0


def write(corpora: Sequence[Corpus], members: int, out: Path, trials: int) -> list[Path]:
    """Write the figures of all complete answers, after the answers that the time permits.

    :param trials: worlds of each kind under each mechanism
    :returns: for each corpus a file of the model and a file of the baseline
    """
    complete: dict[tuple[str, Cell], int] = {}

    def work(passes: Sequence[tuple[tuple[str, ...], Cell, float]]) -> None:
        for attacks, cell, share in passes:
            count = ask(corpora, attacks, cell, round(share * members))
            complete.update({(a, cell): max(count, complete.get((a, cell), 0)) for a in attacks})

    work(PASSES[:BEFORE])
    if trials:  # The model answers here, and `measure` reads the stored answers.
        for c in corpora:
            under_mechanisms(_attacked(c.split), c.bench, trials)
    work(PASSES[BEFORE:])
    paths = []
    for c in corpora:
        for name, model in (("model", True), ("baseline", False)):
            paths.append(out / f"attacks-{c.name}-{name}.json")
            replace_file(paths[-1], json.dumps(measure(c, complete, model, trials), indent=1).encode())
    return paths


if __name__ == "__main__":
    sys.exit(main())
