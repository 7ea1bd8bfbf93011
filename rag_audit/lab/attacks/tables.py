"""The papers' tables on the public collections, each figure next to the paper's figure, in the layout of the paper's
table.

The corpora differ from the papers' corpora: medical dialogue replaces HealthCareMagic-100k, SQuAD passages replace MS
MARCO and NQ-simplified, travel dialogue replaces Reddit-travel, MedQuAD replaces NFCorpus, SciFact replaces SCIDOCS,
PubMedQA replaces TREC-COVID. The module also measures the cost of mechanisms and defences for the users: recall, and
whether the answer can be copied.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rag_audit.commit.explore.collections import collection, folder
from rag_audit.lab.attacks import campaign, runner
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.generators.extractive import exact_match
from rag_audit.lab.attacks.interface import Floats
from rag_audit.lab.attacks.mechanisms import Ranking
from rag_audit.lab.attacks.mechanisms.noise import WEAK_NOISE
from rag_audit.lab.attacks.methods import chosen
from rag_audit.lab.attacks.metrics import Figure, proportion
from rag_audit.lab.attacks.runner import Result
from rag_audit.lab.attacks.split import LEAST, Split, make_split
from rag_audit.lab.attacks.targets.engine import Engine
from rag_audit.retrieval.embedders import get_embedder


@dataclass(frozen=True)
class Question:
    """A question, the documents that answer it by their number in the index, and its gold answers, if any."""

    text: str
    documents: frozenset[int]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Utility:
    """The remaining quality of retrieval.

    :param recall: questions with one of their documents among the first K
    :param exact: questions with a gold answer in a returned passage; None without gold answers
    :param hidden: questions with a document that Mirabel hid
    """

    recall: Figure
    exact: Figure | None
    hidden: Figure


def utility(engine: Engine, questions: Sequence[Question], seed: int = 0) -> Utility:
    """Ask an engine honest questions, each in a window of its own."""
    corpus = engine.corpus
    filled = np.array(sorted(corpus.positions))
    ranking = Ranking(engine.attacked, corpus.capacity, filled, engine.top_k, engine.defence, engine.seed)
    texts = [engine.rewrite(q.text) if engine.rewrite is not None else q.text for q in questions]
    result, exact, hidden = [], [], []
    for number, (question, row) in enumerate(zip(questions, corpus.scores(texts), strict=True)):
        selected = ranking.window(number, 2).select(row, 0)
        wanted = {corpus.positions[d] for d in question.documents}
        passages = corpus.passages(selected.positions)
        result.append(bool(wanted & set(selected.positions)))
        exact.append(exact_match(passages, question.answers))
        hidden.append(selected.hidden is not None)
    told = any(q.answers for q in questions)
    return Utility(
        proportion(_floats(result), seed),
        proportion(_floats(exact), seed) if told else None,
        proportion(_floats(hidden), seed),
    )


def _floats(values: Sequence[bool]) -> Floats:
    return np.array(values, np.float64)


MASKS_1 = {
    "mts": {"min-k": (0.65, 0.38, 0.60, 0.75, 0.75, 0.75), "rag-mia": (0.93, 0.49, 0.75, 0.80, 0.91, 0.86),
            "s2mia-s": (0.62, 0.46, 0.77, 0.79, 0.96, 0.87), "s2mia-m": (0.62, 0.57, 0.78, 0.85, 0.92, 0.89),
            "mba": (0.87, 0.88, 0.85, 0.97, 0.81, 0.89)},
    "squad": {"min-k": (0.81, 0.65, 0.58, 0.79, 0.68, 0.73), "rag-mia": (0.97, 0.52, 0.79, 0.82, 0.95, 0.88),
              "s2mia-s": (0.81, 0.67, 0.64, 0.89, 0.64, 0.74), "s2mia-m": (0.81, 0.68, 0.66, 0.87, 0.68, 0.76),
              "mba": (0.98, 0.90, 0.85, 0.90, 0.91, 0.90)},
}  # fmt: skip
"""Table 1 of the paper on masks, GPT-4o-mini: retrieval recall, AUC, accuracy, precision, recall, F1. For `squad` its
NQ-simplified."""
MASKS_2 = {
    "mts": {"mba-random": (0.88, 0.68), "mba-plm": (0.85, 0.74), "mba-nosc": (0.87, 0.85), "mba": (0.87, 0.88)},
    "squad": {"mba-random": (0.96, 0.75), "mba-plm": (0.97, 0.69), "mba-nosc": (0.99, 0.84), "mba": (0.98, 0.90)},
}  # fmt: skip
"""Its table 2: retrieval recall and AUC."""
SHADOW_1 = {
    "mts": {"rag-mia": (0.743, 0.742, 0.789), "s2mia-t": (0.451, 0.451, 0.567), "s2mia-m": (0.518, 0.522, 0.530),
            "mba": (0.948, 0.661, 0.487), "s-rag": (0.983, 0.941, 0.942)},
    "travel": {"rag-mia": (0.741, 0.741, 0.738), "s2mia-t": (0.671, 0.671, 0.575), "s2mia-m": (0.911, 0.761, 0.707),
               "mba": (0.893, 0.688, 0.545), "s-rag": (0.942, 0.862, 0.852)},
}  # fmt: skip
"""Table 1 of the paper on shadow services, Llama 3: AUC, accuracy, F1."""
SHADOW_2 = {
    "mts": {"rag-mia": (0.743, 0.498, 0.496), "s2mia-t": (0.451, 0.468, 0.488), "s2mia-m": (0.518, 0.508, 0.585),
            "mba": (0.948, 0.823, 0.787), "s-rag": (0.983, 0.946, 0.919)},
    "travel": {"rag-mia": (0.741, 0.550, 0.539), "s2mia-t": (0.671, 0.599, 0.504), "s2mia-m": (0.911, 0.626, 0.577),
               "mba": (0.893, 0.815, 0.719), "s-rag": (0.942, 0.918, 0.796)},
}  # fmt: skip
"""Its table 2: AUC without defence, with another prompt, with paraphrase."""
MIRABEL_2 = {
    "medquad": {"s2mia-t": (0.844, 0.865, 0.762, 1.000), "mba-random": (0.847, 0.867, 0.766, 1.000),
                "ia": (0.799, 0.750, 0.896, 0.817)},
    "scifact": {"s2mia-t": (0.853, 0.871, 0.776, 0.992), "mba-random": (0.855, 0.873, 0.775, 1.000),
                "ia": (0.827, 0.772, 0.928, 0.843)},
    "pubmedqa": {"s2mia-t": (0.880, 0.886, 0.846, 0.930), "mba-random": (0.995, 0.995, 1.000, 0.990),
                 "ia": (0.720, 0.744, 0.670, 0.705)},
}  # fmt: skip
"""Table 2 of the paper on Mirabel: accuracy, F1, precision, recall of detection."""
MIRABEL_3 = {"none": (0.272, 0.222), "mirabel": (0.253, 0.172)}
"""Its table 3, Natural Questions at 5 passages: exact match and recall, without and with Mirabel."""
MIRABEL_45 = {
    "medquad": {"s2mia-t": ((0.188, 0.024), (0.358, 0.057)), "mba-random": ((0.377, 0.019), (0.754, 0.038)),
                "ia": ((0.403, 0.008), (0.805, 0.100))},
    "scifact": {"s2mia-t": ((0.126, 0.006), (0.195, 0.039)), "mba-random": ((0.406, 0.101), (0.813, 0.202)),
                "ia": ((0.380, 0.010), (0.771, 0.081))},
    "pubmedqa": {"s2mia-t": ((0.119, 0.021), (0.203, 0.043)), "mba-random": ((0.313, 0.139), (0.625, 0.283)),
                 "ia": ((0.254, 0.083), (0.555, 0.172))},
}  # fmt: skip
"""Its tables 4 and 5: adjusted accuracy and KS distance, each without and with Mirabel."""
MIRABEL_6 = {
    "medquad": {"s2mia-t": ((0.021, 0.020), (0.077, 0.088)), "mba-random": ((0.015, 0.010), (0.022, 0.058)),
                "ia": ((0.004, 0.004), (0.088, 0.046))},
    "scifact": {"s2mia-t": ((0.004, 0.029), (0.051, 0.028)), "mba-random": ((0.040, 0.015), (0.081, 0.040)),
                "ia": ((0.003, 0.018), (0.418, 0.075))},
    "pubmedqa": {"s2mia-t": ((0.038, 0.024), (0.038, 0.050)), "mba-random": ((0.288, 0.004), (0.015, 0.035)),
                 "ia": ((0.174, 0.064), (0.091, 0.094))},
}  # fmt: skip
"""Its table 6, the noise being DP-RAG's at eps 2: adjusted accuracy and KS distance, each with noise and with both."""
MIRABEL_7 = {"noise": 0.030, "both": 0.020}
"""Its table 7, Natural Questions at 5 passages: exact match with noise, and with both."""
MIRABEL_12 = {
    "medquad": {"s2mia-s": (0.378, 0.064, 0.056), "s2mia-p": (0.338, 0.050, 0.098)},
    "scifact": {"s2mia-s": (0.254, 0.024, 0.051), "s2mia-p": (0.137, 0.053, 0.050)},
    "pubmedqa": {"s2mia-s": (0.239, 0.048, 0.041), "s2mia-p": (0.167, 0.038, 0.034)},
}
"""Its table 12: KS distance of similarity and of perplexity, without defence, with Mirabel, with noise."""


PLAIN, MIRABEL = Cell("none"), Cell("none", "mirabel")
PROMPT, PARAPHRASE = Cell("none", "prompt"), Cell("none", "paraphrase")
NOISE, BOTH = Cell(WEAK_NOISE), Cell(WEAK_NOISE, "mirabel")
_SHADOW = ("rag-mia", "s2mia-t", "s2mia-m", "mba", "s-rag")
_ABLATION = ("mba-random", "mba-plm", "mba-nosc", "mba")
_MIRABEL = ("s2mia-t", "mba-random", "ia")
_DEFENDED = (PLAIN, MIRABEL, NOISE, BOTH)
GROUPS: Mapping[str, Sequence[tuple[Sequence[str], Sequence[Cell]]]] = {
    "mts": (
        ((*MASKS_1["mts"], *_ABLATION[:3], "s2mia-t", "s-rag"), (PLAIN,)),
        (_SHADOW, (PROMPT, PARAPHRASE)),
    ),
    "squad": (((*MASKS_1["squad"], *_ABLATION[:3]), (PLAIN,)),),
    "travel": ((_SHADOW, (PLAIN, PROMPT, PARAPHRASE)),),
    **{
        name: ((_MIRABEL, _DEFENDED), (("s2mia-s", "s2mia-p"), (PLAIN, MIRABEL, NOISE)))
        for name in ("medquad", "scifact", "pubmedqa")
    },
}
"""For each collection, the attacks and their cells."""
QUESTIONS = 500
"""Honest questions of the utility tables and of detection, at most."""
Results = dict[tuple[str, str, Cell], Result]
Costs = dict[tuple[str, Cell], Utility]


@dataclass(frozen=True)
class Measured:
    """Everything that the tables print.

    :param members: number of attacked members, equal to the number of others, by collection
    """

    results: Results
    costs: Costs
    members: dict[str, int]


def measure(
    out: Path,
    *,
    members: int,
    seed: int = 0,
    names: Sequence[str] = tuple(GROUPS),
    progress: Callable[[str], Callable[[int, int], None]] | None = None,
) -> Measured:
    """Run the attacks for the tables. Finished cells are stored in `out`.

    :param members: attacked members of each collection, and the same number of others; fewer if the collection is too
        small
    :raises CollectionError: the collections are not available
    """
    results: Results = {}
    costs: Costs = {}
    sizes: dict[str, int] = {}
    for name in names:
        texts = collection(name).passages[:4000]
        sizes[name] = max(LEAST, min(members, 2 * len(texts) // 6))
        split = make_split(texts, members=sizes[name], others=sizes[name], seed=seed)
        embedder = get_embedder(query_tokens=512)
        bench = Bench(
            split.index, embedder, campaign.tools_of(split.own, campaign.Unit(embedder), seed), 5, seed
        )
        for attacks, cells in GROUPS[name]:
            plan = runner.Plan(tuple(attacks), tuple(cells), 0, seed, (200, 4), runner.digest_of(split))
            show = None if progress is None else progress(name)
            for result in runner.run(plan, chosen(list(attacks)), bench, split, out, show):
                results[name, result.attack, result.cell] = result
        if requested := _questions(name, split):
            costs |= {(name, cell): utility(bench.engine(cell), requested, seed) for cell in _DEFENDED}
        bench.corpus.forget()
    return Measured(results, costs, sizes)


def _questions(name: str, split: Split) -> list[Question]:
    """Questions about documents of the index, with gold answers where the collection has them."""
    places = {text: number for number, text in enumerate(split.index)}
    if name == "squad":
        base = folder()
        with gzip.open(base / "squad_dev_v1.1_passages.jsonl.gz", "rt") as file:
            texts = {line["id"]: line["text"] for line in map(json.loads, file)}
        with gzip.open(base / "squad_dev_v1.1_questions.jsonl.gz", "rt") as file:
            rows = [json.loads(line) for line in file]
        result = [
            Question(r["question"], frozenset({places[texts[r["passage"]]]}), tuple(r["answers"]))
            for r in rows
            if texts.get(r["passage"]) in places
        ]
    else:
        have = collection(name)
        result = [
            Question(text, here)
            for text, relevant in zip(have.questions, have.relevant, strict=True)
            if (here := frozenset(places[have.passages[i]] for i in relevant if have.passages[i] in places))
        ]
    step = max(1, len(result) // QUESTIONS)
    return result[::step][:QUESTIONS]


def render(m: Measured) -> str:
    """All tables in Markdown."""
    parts = [
        _masks_1(m),
        _masks_2(m),
        _shadow(m),
        _detection(m),
        _utility(m),
        _defence(m),
        _composed(m),
        _parts(m),
    ]
    return "\n".join(parts)


def _masks_1(m: Measured) -> str:
    names = ("found", "auc", "accuracy", "precision", "recall", "f1")
    rows = []
    for corpus, attacks in MASKS_1.items():
        for attack, theirs in attacks.items():
            r = m.results.get((corpus, attack, PLAIN))
            if r is not None:
                mine = [r.retrieval, *(r.figures[name] for name in names[1:])]
                rows.append([corpus, attack, *(pair(f, p) for f, p in zip(mine, theirs, strict=True))])
    head = ["corpus", "attack", "retrieval recall", "AUC", "accuracy", "precision", "recall", "F1"]
    return table("Masks, table 1", head, rows)


def _masks_2(m: Measured) -> str:
    rows = [
        [corpus, attack, pair(r.retrieval, theirs[0]), pair(r.figures["auc"], theirs[1])]
        for corpus, attacks in MASKS_2.items()
        for attack, theirs in attacks.items()
        if (r := m.results.get((corpus, attack, PLAIN))) is not None
    ]
    return table("Masks, table 2", ["corpus", "attack", "retrieval recall", "AUC"], rows)


def _shadow(m: Measured) -> str:
    first, second = [], []
    for corpus, attacks in SHADOW_1.items():
        for attack, theirs in attacks.items():
            result = [m.results.get((corpus, attack, cell)) for cell in (PLAIN, PROMPT, PARAPHRASE)]
            plain = result[0]
            if plain is None:
                continue
            names = ("auc", "accuracy", "f1")
            first.append(
                [corpus, attack, *(pair(plain.figures[n], p) for n, p in zip(names, theirs, strict=True))]
            )
            aucs = SHADOW_2[corpus][attack]
            second.append(
                [corpus, attack, *(pair(_of(r, "auc"), p) for r, p in zip(result, aucs, strict=True))]
            )
    head = ["corpus", "attack"]
    return "\n".join(
        [
            table("Shadow services, table 1", [*head, "AUC", "accuracy", "F1"], first),
            table(
                "Shadow services, table 2: AUC", [*head, "no defence", "other prompt", "paraphrase"], second
            ),
        ]
    )


def _detection(m: Measured) -> str:
    """Detection of members' queries against an equal number of other queries, half of them about other documents and
    half honest."""
    rows = []
    for corpus, attacks in MIRABEL_2.items():
        for attack, theirs in attacks.items():
            r, honest = m.results.get((corpus, attack, MIRABEL)), m.costs.get((corpus, MIRABEL))
            if r is None or honest is None:
                continue
            true, false = r.hidden[0], (r.hidden[1] + honest.hidden[0]) / 2
            precision = true / (true + false) if true + false else 0.0
            mine = ((1 + true - false) / 2, 2 * true / (1 + true + false), precision, true)
            rows.append([corpus, attack, *(f"{x:.3f} ({p:.3f})" for x, p in zip(mine, theirs, strict=True)),
                         f"{honest.hidden[0]:.3f}"])  # fmt: skip
    head = ["corpus", "attack", "accuracy", "F1", "precision", "recall", "honest questions hit"]
    return table("Mirabel, table 2: detection", head, rows)


def _utility(m: Measured) -> str:
    columns = {
        PLAIN: ("nothing", *MIRABEL_3["none"]),
        MIRABEL: ("Mirabel", *MIRABEL_3["mirabel"]),
        NOISE: ("noise", MIRABEL_7["noise"], None),
        BOTH: ("both", MIRABEL_7["both"], None),
    }
    rows = []
    for cell, (label, exact, recall) in columns.items():
        cost = m.costs.get(("squad", cell))
        if cost is not None:
            rows.append([label, pair(cost.exact, exact), pair(cost.recall, recall)])
    return table(
        "Mirabel, tables 3 and 7: honest questions, SQuAD (paper: NQ)", ["under", "EM@5", "R@5"], rows
    )


def _defence(m: Measured) -> str:
    return _pairs_of(m, "Mirabel, tables 4 and 5", MIRABEL_45, (PLAIN, MIRABEL), ("nothing", "Mirabel"))


def _composed(m: Measured) -> str:
    return _pairs_of(m, "Mirabel, table 6", MIRABEL_6, (NOISE, BOTH), ("noise", "both"))


def _pairs_of(
    m: Measured,
    title: str,
    theirs: Mapping[str, Mapping[str, tuple[tuple[float, float], tuple[float, float]]]],
    cells: tuple[Cell, Cell],
    labels: tuple[str, str],
) -> str:
    rows = []
    for corpus, attacks in theirs.items():
        for attack, (adjusted, ks) in attacks.items():
            result = [m.results.get((corpus, attack, cell)) for cell in cells]
            rows.append(
                [corpus, attack]
                + [pair(_of(r, "adjusted_accuracy"), p) for r, p in zip(result, adjusted, strict=True)]
                + [pair(_of(r, "ks"), p) for r, p in zip(result, ks, strict=True)]
            )
    head = [
        "corpus",
        "attack",
        *(f"{what}, {label}" for what in ("adjusted accuracy", "KS") for label in labels),
    ]
    return table(title, head, [row for row in rows if any(cell != "-" for cell in row[2:])])


def _parts(m: Measured) -> str:
    rows = [
        [corpus, attack, *(pair(_of(r, "ks"), p) for r, p in zip(result, theirs, strict=True))]
        for corpus, attacks in MIRABEL_12.items()
        for attack, theirs in attacks.items()
        if any(result := [m.results.get((corpus, attack, cell)) for cell in (PLAIN, MIRABEL, NOISE)])
    ]
    return table("Mirabel, table 12: KS", ["corpus", "score", "nothing", "Mirabel", "noise"], rows)


def _of(result: Result | None, name: str) -> Figure | None:
    return None if result is None else result.figures[name]


def pair(mine: Figure | None, paper: float | None) -> str:
    """A figure with the half-width of its interval, and the paper's in brackets."""
    if mine is None:
        return "-"
    theirs = "" if paper is None else f" ({paper:g})"
    return f"{mine[0]:.2f} ± {(mine[2] - mine[1]) / 2:.2f}{theirs}"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown under its title."""
    lines = [f"**{title}**", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows), ""])
