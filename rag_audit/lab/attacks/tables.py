"""The papers' tables on the public collections, each figure beside the paper's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_audit.lab.attacks import campaign, papers, runner
from rag_audit.lab.attacks.cells import WEAK_NOISE, Bench, Cell
from rag_audit.lab.attacks.methods import chosen
from rag_audit.lab.attacks.metrics import Figure
from rag_audit.lab.attacks.runner import Result
from rag_audit.lab.attacks.split import LEAST, Split, make_split
from rag_audit.lab.attacks.utility import Question, Utility, utility
from rag_audit.lab.empirical.sets import collection, folder
from rag_audit.retrieval.embedders import get_embedder

PLAIN, MIRABEL = Cell("none"), Cell("none", "mirabel")
PROMPT, PARAPHRASE = Cell("none", "prompt"), Cell("none", "paraphrase")
NOISE, BOTH = Cell(WEAK_NOISE), Cell(WEAK_NOISE, "mirabel")
_SHADOW = ("rag-mia", "s2mia-t", "s2mia-m", "mba", "s-rag")
_ABLATION = ("mba-random", "mba-plm", "mba-nosc", "mba")
_MIRABEL = ("s2mia-t", "mba-random", "ia")
_DEFENDED = (PLAIN, MIRABEL, NOISE, BOTH)
GROUPS: Mapping[str, Sequence[tuple[Sequence[str], Sequence[Cell]]]] = {
    "mts": (
        ((*papers.MASKS_1["mts"], *_ABLATION[:3], "s2mia-t", "s-rag"), (PLAIN,)),
        (_SHADOW, (PROMPT, PARAPHRASE)),
    ),
    "squad": (((*papers.MASKS_1["squad"], *_ABLATION[:3]), (PLAIN,)),),
    "travel": ((_SHADOW, (PLAIN, PROMPT, PARAPHRASE)),),
    **{
        name: ((_MIRABEL, _DEFENDED), (("s2mia-s", "s2mia-p"), (PLAIN, MIRABEL, NOISE)))
        for name in ("medquad", "scifact", "pubmedqa")
    },
}
"""By collection, which attacks run in which cells."""
QUESTIONS = 500
"""Honest questions of the utility tables and of detection, at most."""
Results = dict[tuple[str, str, Cell], Result]
Costs = dict[tuple[str, Cell], Utility]


@dataclass(frozen=True)
class Measured:
    """Everything that the tables print.

    :param members: attacked members, and as many others, by collection
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
    """Run what the tables need; finished cells are kept in `out`.

    :param members: attacked members of each collection, and as many others; fewer where it is too small
    :raises CollectionError: the collections are not at hand
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
        if asked := _questions(name, split):
            costs |= {(name, cell): utility(bench.engine(cell), asked, seed) for cell in _DEFENDED}
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
        found = [
            Question(r["question"], frozenset({places[texts[r["passage"]]]}), tuple(r["answers"]))
            for r in rows
            if texts.get(r["passage"]) in places
        ]
    else:
        have = collection(name)
        found = [
            Question(text, here)
            for text, relevant in zip(have.questions, have.relevant, strict=True)
            if (here := frozenset(places[have.passages[i]] for i in relevant if have.passages[i] in places))
        ]
    step = max(1, len(found) // QUESTIONS)
    return found[::step][:QUESTIONS]


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
    for corpus, attacks in papers.MASKS_1.items():
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
        for corpus, attacks in papers.MASKS_2.items()
        for attack, theirs in attacks.items()
        if (r := m.results.get((corpus, attack, PLAIN))) is not None
    ]
    return table("Masks, table 2", ["corpus", "attack", "retrieval recall", "AUC"], rows)


def _shadow(m: Measured) -> str:
    first, second = [], []
    for corpus, attacks in papers.SHADOW_1.items():
        for attack, theirs in attacks.items():
            found = [m.results.get((corpus, attack, cell)) for cell in (PLAIN, PROMPT, PARAPHRASE)]
            plain = found[0]
            if plain is None:
                continue
            names = ("auc", "accuracy", "f1")
            first.append(
                [corpus, attack, *(pair(plain.figures[n], p) for n, p in zip(names, theirs, strict=True))]
            )
            aucs = papers.SHADOW_2[corpus][attack]
            second.append(
                [corpus, attack, *(pair(_of(r, "auc"), p) for r, p in zip(found, aucs, strict=True))]
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
    """Detection of members' queries against as many of others and honest ones together, half and half."""
    rows = []
    for corpus, attacks in papers.MIRABEL_2.items():
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
    labels = {PLAIN: "nothing", MIRABEL: "Mirabel", NOISE: "noise", BOTH: "both"}
    rows = []
    for cell, label in labels.items():
        cost = m.costs.get(("squad", cell))
        if cost is not None:
            paper = papers.MIRABEL_3.get(cell.defence) if cell.mechanism == "none" else None
            em = (
                papers.MIRABEL_7["both" if cell.defence == "mirabel" else "noise"]
                if paper is None
                else paper[0]
            )
            rows.append([label, pair(cost.exact, em), pair(cost.recall, None if paper is None else paper[1])])
    return table(
        "Mirabel, tables 3 and 7: honest questions, SQuAD (paper: NQ)", ["under", "EM@5", "R@5"], rows
    )


def _defence(m: Measured) -> str:
    return _pairs_of(
        m, "Mirabel, tables 4 and 5", papers.MIRABEL_45, (PLAIN, MIRABEL), ("nothing", "Mirabel")
    )


def _composed(m: Measured) -> str:
    return _pairs_of(m, "Mirabel, table 6", papers.MIRABEL_6, (NOISE, BOTH), ("noise", "both"))


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
            found = [m.results.get((corpus, attack, cell)) for cell in cells]
            rows.append(
                [corpus, attack]
                + [pair(_of(r, "adjusted_accuracy"), p) for r, p in zip(found, adjusted, strict=True)]
                + [pair(_of(r, "ks"), p) for r, p in zip(found, ks, strict=True)]
            )
    head = [
        "corpus",
        "attack",
        *(f"{what}, {label}" for what in ("adjusted accuracy", "KS") for label in labels),
    ]
    return table(title, head, [row for row in rows if any(cell != "-" for cell in row[2:])])


def _parts(m: Measured) -> str:
    rows = [
        [corpus, attack, *(pair(_of(r, "ks"), p) for r, p in zip(found, theirs, strict=True))]
        for corpus, attacks in papers.MIRABEL_12.items()
        for attack, theirs in attacks.items()
        if any(found := [m.results.get((corpus, attack, cell)) for cell in (PLAIN, MIRABEL, NOISE)])
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
