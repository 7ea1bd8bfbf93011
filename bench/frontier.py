"""Recall, certified bounds and attacks by mechanism: `python -m bench.frontier [--json] [--out FOLDER]
[--embedder NAME] [--model FOLDER] [--relevance SCORE] [--beside FILE]`.

The collections come from RAG_AUDIT_DATA: SQuAD dev v1.1, SciFact and PubMedQA, each a separate tenant. The script
computes for every mechanism:

- recall among the first 5, next to blind chance and exact retrieval;
- the certified figures for coalitions of 1, 2 and 10 accounts with 200 queries each;
- the factor by which the absence of a document becomes more likely for accounts that never received it: the certified
  factor, and the factor that an attack shows;
- the documents that these accounts read with honest questions (`bench.exposure`), next to the maximum, the number by
  chance alone and the number for exact retrieval; every document fills one position;
- the strongest of the attacks in `bench.lists`.

For noise with a document table, a second table has the same figures for documents of s positions
(`--positions-per-document`): a document is s consecutive passages of the collection, and every bound is for k n s
losses.

Pooled listing has a policy for each size: its m is the number of queries of all accounts, so every coalition of these
accounts has the same epsilon. Its threshold is the published one of the embedder, or `--relevance`.

The attack's lower bound on epsilon (confidence 0.95) must be below the certified bound in every cell. The script prints
the smallest distance, and exit code 1 reports a cell with a lower bound above the certified bound. `--out` is the
folder for the figures as JSON, the tables and a picture of recall against epsilon. An interrupted run continues from
this folder.
"""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from bench import exposure, lists
from bench.common import emit, machine, parser
from bench.lists import Attack, DocumentTarget, Target
from bench.stored import stored_embedder
from rag_audit._internal.durable import replace_file
from rag_audit.commit.explore import bernoulli
from rag_audit.commit.explore.collections import Collection, collection
from rag_audit.commit.explore.samples import Sample
from rag_audit.commit.explore.simulate import Noise, measure_recall, recall_by_flips, recall_without_noise
from rag_audit.errors import PolicyError, RagAuditError, SetupError
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting import curves
from rag_audit.mechanisms.accounting.absence import log_noise_exclusion_factor
from rag_audit.mechanisms.accounting.bernoulli import ChanceListing, Sampling
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.mechanisms.accounting.documents import expected_by_flips, exposure_limit
from rag_audit.mechanisms.descriptions.pooled_listing import UNREQUESTED
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, Embedder, published_constants
from rag_audit.retrieval.engine import build_index, no_noise, select

NAMES = ("squad", "scifact", "pubmedqa")
WITH_QUESTIONS = (*NAMES, "medquad")
TOP_K = 5
QUERIES = 200
SIZES = (1, 2, 10)
DELTA = "1e-5"
NOISES = (((1, 1, 1, 1, 1, 1), 512), ((1, 1, 1, 1), 128), ((1, 8), 32), ((1, 8, 64), 64))
KEEPS = ("0.9", "0.7")
CANDIDATES = 6
CHANCE = 4_000
"""Queries that measure the rows which chance does not list, in windows of m queries."""


@dataclass(frozen=True)
class Cell:
    """One mechanism against one size of coalition.

    :param certified: the bound on epsilon over all outcomes; inf if the mechanism has no such bound
    :param exclusion_factor: the certified factor for a document of one position that no account received; inf where
        no factor is finite
    :param read: the mean number of documents that the accounts read in a window
    :param read_by_chance: the expected number of documents that lists contain without relevance, at most
    :param read_at_most: the maximum number of documents that they can read
    :param attacks: by probe strategy, each with the epsilon that it refutes
    :param odds_shown: the factor that the attack shows for positions that no account receives; inf above every double
    """

    mechanism: str
    recall: float
    error: float
    k: int
    certified: float
    auc_bound: float
    tpr_bound: float
    exclusion_factor: float
    read: float
    read_by_chance: float
    read_at_most: int
    attacks: list[Attack]
    odds_shown: float | None = None

    @property
    def attack(self) -> Attack:
        """Return the strongest attack."""
        return max(self.attacks, key=lambda attack: (attack.eps, attack.auc))

    @property
    def distance(self) -> float:
        """Certified minus shown, of the figures that are finite; negative if one of the two is wrong."""
        result = [self.certified - self.attack.eps] if math.isfinite(self.certified) else []
        if self.odds_shown is not None and math.isfinite(max(self.exclusion_factor, self.odds_shown)):
            result.append(math.log(self.exclusion_factor) - math.log(self.odds_shown))
        return min(result, default=math.inf)


def study(texts: Collection, embedder: Embedder, options: Namespace) -> dict[str, Any]:
    """Compute all cells of one collection."""
    sample, vectors = _sample(texts, embedder, options.seed)
    say = _said(texts.name)
    target = _target(texts, sample, vectors, embedder, options)
    cells = [] if options.only_documents else [
        *_noised(sample, target, embedder, options, say),
        *_sampled(sample, target, embedder, options, say),
        *_pooled(sample, target, options, say),
    ]  # fmt: skip
    documents = [_by_document(texts, sample, embedder, s, options) for s in options.positions_per_document]
    every = [*cells, *(cell for one in documents for cell in one.cells)]
    quiet = recall_without_noise(sample, ScoreWindow(*embedder.score_window, 512), top_k=TOP_K)
    return {
        "collection": texts.name,
        "documents": len(sample.index.positions),
        "read_exactly": {str(k): read for k, read in _read(sample, exposure.exact(TOP_K), options).items()},
        "capacity": sample.index.capacity,
        "questions": len(sample.queries),
        "without_noise": {"recall": quiet.recall, "error": quiet.error},
        "blind": {"recall": recall_by_flips(sample, top_k=TOP_K).recall},
        "cells": [_as_json(cell) for cell in cells],
        "by_document": [
            {**asdict(one), "cells": [_as_json(cell) for cell in one.cells]} for one in documents
        ],
        "smallest_distance": min(cell.distance for cell in every),
    }


def _as_json(cell: Cell) -> dict[str, Any]:
    return {**asdict(cell), "attack": asdict(cell.attack), "distance": cell.distance}


def _read(
    sample: Sample,
    window: exposure.Window,
    options: Namespace,
    sizes: Sequence[int] = SIZES,
    document_of: Mapping[int, int] | None = None,
) -> dict[int, float]:
    """The documents that coalitions of each size read."""
    return exposure.documents_read(
        sample,
        window,
        sizes,
        queries=QUERIES,
        windows=options.repeats,
        seed=options.seed,
        document_of=document_of,
    )


def _sample(texts: Collection, embedder: Embedder, seed: int) -> tuple[Sample, lists.Int8Array]:
    """Make the collection a tenant, and return its documents' vectors in the collection's order."""
    vectors = embedder.embed_documents(texts.passages)
    index = build_index(vectors, max(8, 1 << (len(vectors) - 1).bit_length()), Random(seed))
    queries = np.stack([embedder.embed_query(question) for question in texts.questions])
    relevant = [frozenset(index.positions[i] for i in places) for places in texts.relevant]
    return Sample(index, queries, relevant), vectors


def _target(
    texts: Collection, sample: Sample, vectors: lists.Int8Array, embedder: Embedder, options: Namespace
) -> Target:
    """Choose among a few random documents the one with the clearest result in a separate pilot run."""
    rng, result = Random(options.seed + 1), []
    requested: dict[int, list[str]] = {}
    for question, places in zip(texts.questions, texts.relevant, strict=True):
        for place in places:
            requested.setdefault(place, []).append(question)
    for place in rng.sample(sorted(requested), min(CANDIDATES, len(requested))):
        other = texts.passages[rng.choice([i for i in range(len(vectors)) if i != place])]
        result.append(
            lists.make_target(
                sample.index,
                texts.passages[place],
                sample.index.positions[place],
                other,
                requested[place],
                embedder,
                place,
            )
        )
    noise = _noise(*NOISES[1], embedder)

    def gap(target: Target) -> int:
        pilot = lists.count_noised(target, [noise], top_k=TOP_K, lists=lists.PILOT, seed=options.seed + 2)
        first, second = pilot[0, "repeated"]
        return first - second

    return max(result, key=gap)


@dataclass(frozen=True)
class ByDocument:
    """Noise with a document table, for documents of `positions` positions.

    :param recall: the share of questions whose document has a listed position, without noise
    :param blind: the same share for K positions at random
    :param read_exactly: the documents that k accounts read under exact retrieval, by k
    """

    positions: int
    documents: int
    recall: float
    blind: float
    read_exactly: dict[str, float]
    cells: list[Cell]


def _by_document(
    texts: Collection, sample: Sample, embedder: Embedder, positions: int, options: Namespace
) -> ByDocument:
    """Compute the cells of noise with a document table. Recall counts the questions whose document has a listed
    position."""
    document_of = {place: number // positions for number, place in enumerate(sample.index.positions)}
    places: dict[int, list[int]] = {}
    for place, document in document_of.items():
        places.setdefault(document, []).append(place)
    relevant = [
        frozenset(p for own in relevant for p in places[document_of[own]]) for relevant in sample.relevant
    ]
    found = Sample(sample.index, sample.queries, relevant)
    noises = [_noise(gains, lattice, embedder) for gains, lattice in NOISES]
    recalls = measure_recall(found, noises, top_k=TOP_K, seed=options.seed, repeats=1)
    target = _document_target(texts, sample, embedder, positions, options)
    counts = lists.count_noised(target, noises, top_k=TOP_K, lists=options.lists, seed=options.seed)
    capacity, documents, questions = sample.index.capacity, len(places), len(sample.queries)
    cells = []
    for row, (noise, recall) in enumerate(zip(noises, recalls, strict=True)):
        read = _read(sample, exposure.noised(noise, TOP_K), options, document_of=document_of)
        for k in SIZES:
            m = k * QUERIES
            shown = [
                lists.by_counting(name, counts[row, name], options.lists, m, DELTA) for name in target.probes
            ]
            odds = max(
                lists.factor_by_counting(counts[row, name][0], options.lists, m) for name in target.probes
            )
            label = f"noise, sigma/Delta {noise.sigma_over_delta:.3g}"
            error = math.sqrt(recall.hit * (1 - recall.hit) / questions)
            by_chance = documents * (1 - _unlisted(capacity, positions) ** m)
            at_most = exposure_limit(documents, queries=m, longest=TOP_K)
            cells.append(
                Cell(label, recall.hit, error, k, *_certified(noise, k, positions),
                     _exclusion_factor(noise, capacity, m, positions), read[k], by_chance, at_most, shown, odds)
            )  # fmt: skip
    quiet, window = no_noise(capacity), ScoreWindow(*embedder.score_window, 512)
    exact = sum(
        not own.isdisjoint(select(sample.index, query, quiet, window, TOP_K))
        for query, own in zip(sample.queries, relevant, strict=True)
    )
    read_exactly = _read(sample, exposure.exact(TOP_K), options, document_of=document_of)
    blind = sum(1 - _unlisted(capacity, len(own)) for own in relevant) / questions
    return ByDocument(
        positions, documents, exact / questions, blind, {str(k): n for k, n in read_exactly.items()}, cells
    )


def _unlisted(capacity: int, positions: int) -> float:
    """The probability that K random positions contain none of a document's positions."""
    return math.comb(capacity - positions, TOP_K) / math.comb(capacity, TOP_K)


def _exclusion_factor(noise: Noise, capacity: int, queries: int, positions: int) -> float:
    """The bound on the exclusion factor, at most the largest float; inf if there is no bound."""
    try:
        mechanism = accounting.Mechanism(noise.gains, noise.window.lattice)
    except PolicyError:
        return math.inf
    log = log_noise_exclusion_factor(
        mechanism, listed=TOP_K, capacity=capacity, queries=queries, positions=positions
    )
    return math.inf if math.isinf(log) else math.exp(log) if log < 709 else sys.float_info.max


def _document_target(
    texts: Collection, sample: Sample, embedder: Embedder, positions: int, options: Namespace
) -> DocumentTarget:
    """Choose a document as `_target` chooses a passage; another random document is in the other world."""
    rng = Random(options.seed + 1)
    requested: dict[int, list[str]] = {}
    for question, own in zip(texts.questions, texts.relevant, strict=True):
        for number in own:
            requested.setdefault(number // positions, []).append(question)
    whole = len(texts.passages) // positions  # the last document can have fewer positions
    candidates = [document for document in sorted(requested) if document < whole]
    noise = _noise(*NOISES[1], embedder)
    result = []
    for document in rng.sample(candidates, min(CANDIDATES, len(candidates))):
        other = rng.choice([i for i in range(whole) if i != document])
        first, second = (slice(d * positions, (d + 1) * positions) for d in (document, other))
        result.append(
            lists.make_document_target(
                sample.index,
                texts.passages[first],
                sample.index.positions[first],
                texts.passages[second],
                requested[document],
                embedder,
                document,
            )
        )

    def gap(target: DocumentTarget) -> int:
        pilot = lists.count_noised(target, [noise], top_k=TOP_K, lists=lists.PILOT, seed=options.seed + 2)
        first, second = pilot[0, "repeated"]
        return first - second

    return max(result, key=gap)


def _noise(gains: tuple[int, ...], lattice: int, embedder: Embedder) -> Noise:
    return Noise(gains, ScoreWindow(*embedder.score_window, lattice))


def _noised(
    sample: Sample, target: Target, embedder: Embedder, options: Namespace, say: Callable[[str], Any]
) -> list[Cell]:
    noises = [_noise(gains, lattice, embedder) for gains, lattice in NOISES]
    recalls = measure_recall(sample, noises, top_k=TOP_K, seed=options.seed, repeats=1)
    counts = lists.count_noised(
        target, noises, top_k=TOP_K, lists=options.lists, seed=options.seed, progress=say("lists under noise")
    )
    cells = []
    capacity, documents = sample.index.capacity, len(sample.index.positions)
    for row, (noise, recall) in enumerate(zip(noises, recalls, strict=True)):
        read = _read(sample, exposure.noised(noise, TOP_K), options)
        for k in SIZES:
            shown = [
                lists.by_counting(name, counts[row, name], options.lists, k * QUERIES, DELTA)
                for name in target.probes
            ]
            eps, auc, tpr = _certified(noise, k)
            label = f"noise, sigma/Delta {noise.sigma_over_delta:.3g}"
            by_chance = documents * (1 - (1 - TOP_K / capacity) ** (k * QUERIES))
            cells.append(
                Cell(
                    label,
                    recall.recall,
                    recall.error,
                    k,
                    eps,
                    auc,
                    tpr,
                    _exclusion_factor(noise, capacity, k * QUERIES, 1),
                    read[k],
                    by_chance,
                    exposure_limit(documents, queries=k * QUERIES, longest=TOP_K),
                    shown,
                    max(
                        lists.factor_by_counting(counts[row, name][0], options.lists, k * QUERIES)
                        for name in target.probes
                    ),
                )
            )
    return cells


def _certified(noise: Noise, k: int, positions: int = 1) -> tuple[float, float, float]:
    """Return eps, AUC and TPR at 1 % of the exact accountant; inf and ones where the noise has no bound."""
    try:
        mechanism = accounting.Mechanism(noise.gains, noise.window.lattice)
    except PolicyError:
        return math.inf, 1.0, 1.0
    bounds = accounting.audit_bounds(mechanism, n=QUERIES, eps_acc=4, delta_acc="1e-7", k=k, delta=DELTA,
                                     positions=positions)  # fmt: skip
    member = accounting.membership(mechanism, QUERIES * k * positions)
    return bounds.best.eps, member.auc_bound, member.tpr_at_fpr_1pct


def _sampled(
    sample: Sample, target: Target, embedder: Embedder, options: Namespace, say: Callable[[str], Any]
) -> list[Cell]:
    cells, documents = [], len(sample.index.positions)
    for keep in KEEPS:
        sampling = Sampling(probability_over_range(keep, "keep"))
        mechanism = bernoulli.SampledTopK(sampling)
        point = bernoulli.measure(sample, mechanism, top_k=TOP_K, n=QUERIES, ks=SIZES,
                              repeats=options.repeats, seed=options.seed, progress=say(f"sampling {keep}"))  # fmt: skip
        read = _read(sample, exposure.with_bits(mechanism, TOP_K), options)
        window = ScoreWindow(*embedder.score_window, 512)
        seen = lists.sampled(
            target, sampling, window, top_k=TOP_K, windows=options.windows, seed=options.seed
        )
        shown = [Attack(name, result.auc, result.tpr, math.inf) for name, result in seen.items()]
        odds = max(result.odds for result in seen.values())
        cells += [
            Cell(f"sampling, keep {keep}", point.in_list.recall, point.in_list.error, k, math.inf,
                 curves.auc(sampling), curves.roc(sampling, 0.01), sampling.exclusion_factor(QUERIES * k), read[k], 0.0,
                 exposure_limit(documents, queries=k * QUERIES, longest=TOP_K), shown, odds)
            for k in SIZES
        ]  # fmt: skip
    return cells


def _pooled(sample: Sample, target: Target, options: Namespace, say: Callable[[str], Any]) -> list[Cell]:
    """Pooled listing for each share and each number of queries m of a window."""
    cells, documents = [], len(sample.index.positions)
    relevance = options.relevance
    for keep, k in product(KEEPS, SIZES):
        m = k * QUERIES
        mechanism = bernoulli.PooledList.of(probability_over_range(keep, "keep"), UNREQUESTED, relevance, m)
        point = bernoulli.measure(sample, mechanism, top_k=TOP_K, n=QUERIES, ks=[k], repeats=options.repeats,
                                  seed=options.seed, progress=say(f"pooled listing {keep}, m {m}"))  # fmt: skip
        bits = ChanceListing(mechanism.sampling.keep, mechanism.flip_probability)
        pool = lists.Pool(bits.keep, bits.flip_probability, relevance, m)
        shown = [
            lists.pooled(target, pool, strategy=name, windows=windows, chance_windows=max(1, CHANCE // m),
                         top_k=TOP_K, seed=options.seed)
            for name, windows in (("repeated", options.windows // 4), ("paraphrased", options.windows // 80))
        ]  # fmt: skip
        cells.append(
            Cell(f"pooled-listing, keep {keep}", point.in_list.recall, point.in_list.error, k,
                 point.eps[k], curves.auc_for(bits, 1), curves.tpr(bits, 1, "0.01"), point.exclusion_factor[k],
                 _read(sample, exposure.with_bits(mechanism, TOP_K), options, [k])[k],
                 expected_by_flips(documents, bits.flip_probability, queries=m),
                 exposure_limit(documents, queries=m, longest=TOP_K), [attack for attack, _ in shown],
                 max(odds for _, odds in shown))
        )  # fmt: skip
    return cells


def _said(name: str) -> Callable[[str], Callable[[int, int], None] | None]:
    """Print the progress of long steps on standard error if it is a terminal."""

    def step(words: str) -> Callable[[int, int], None] | None:
        def show(done: int, total: int) -> None:
            if done == total or done % max(1, total // 100) == 0:
                print(f"\r{name}: {words} {done}/{total}\033[K", end="", file=sys.stderr)

        return show if sys.stderr.isatty() else None

    return step


def table(result: dict[str, Any]) -> str:
    """Format one collection's cells in Markdown, and then its cells for documents."""
    name, passages = result["collection"], f"{result['documents']:,} passages"
    tables = []
    if result["cells"]:
        exact, blind = result["without_noise"]["recall"], result["blind"]["recall"]
        tables.append(_table(result, result, f"{name}\n\n{passages}", exact, blind))
    for one in result["by_document"]:
        title = (
            f"{name}, noise with a document table\n\n{one['documents']:,} documents of at most"
            f" {one['positions']} positions, {passages}"
        )
        tables.append(_table(result, one, title, one["recall"], one["blind"]))
    return "\n".join(tables)


def _table(result: dict[str, Any], part: dict[str, Any], title: str, exact: float, blind: float) -> str:
    """Format the cells of one part of a collection's results.

    :param exact: the recall of exact retrieval, and `blind` of positions at random
    """
    head = (
        f"### {title} on {result['capacity']:,} positions,"
        f" {result['questions']:,} questions; exact top {TOP_K} finds"
        f" {100 * exact:.1f} %, blind chance {100 * blind:.1f} %.\n\n"
        "| mechanism | recall@5 | of exact | k | certified eps | attack shows eps >= | AUC: bound, attack |"
        " TPR at 1 %: bound, attack | exclusion factor: bound, shown | documents read: mean, of exact, by chance,"
        " at most | strongest probes |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    rows = []
    for cell in part["cells"]:
        attack, odds = cell["attack"], cell["exclusion_factor"]
        unlisted = ("none" if math.isinf(odds) else _factor(odds)) + ", " + _factor(cell["odds_shown"])
        k, read_exactly = cell["k"], part["read_exactly"][str(cell["k"])]
        read = (
            f"{cell['read']:,.0f}, {cell['read'] / read_exactly:.2f}, {cell['read_by_chance']:,.0f},"
            f" {cell['read_at_most']:,}"
        )
        of_exact = cell["recall"] / exact
        rows.append(
            f"| {cell['mechanism']} | {100 * cell['recall']:.1f} ± {100 * cell['error']:.1f} % |"
            f" {100 * of_exact:.0f} % | {k} |"
            f" {_number(cell['certified'])} | {_number(attack['eps'])} | {cell['auc_bound']:.3f}, {attack['auc']:.3f} |"
            f" {cell['tpr_bound']:.3f}, {attack['tpr']:.3f} | {unlisted} | {read} |"
            f" {attack['probes']} |"
        )
    return head + "\n".join(rows) + "\n"


def beside(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Format the cells of coalitions of two accounts in two runs in Markdown. A figure of the first run stands before
    the arrow, and that of the second run after it; equal figures stand once.

    :param first: a run's figures, as `frontier.json` has them
    """
    lines = [
        "| collection | mechanism | recall@5 | certified eps | attack shows eps >= | AUC of the attack |"
        " exclusion factor shown | documents read | of exact |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    others = {one["collection"]: one for one in second["collections"]}
    for one in first["collections"]:
        other = others[one["collection"]]
        exact = [100 * run["without_noise"]["recall"] for run in (one, other)]
        read = [run["read_exactly"]["2"] for run in (one, other)]
        lines.append(
            f"| {one['collection']} | exact retrieval | {exact[0]:.1f} → {exact[1]:.1f} % | none | none | | |"
            f" {read[0]:,.0f} → {read[1]:,.0f} | |"
        )
        cells = {cell["mechanism"]: cell for cell in other["cells"] if cell["k"] == 2}
        for own in (cell for cell in one["cells"] if cell["k"] == 2):
            pair = own, cells[own["mechanism"]]
            figures = (
                _pair(f"{100 * cell['recall']:.1f}" for cell in pair) + " %",
                _pair(_number(cell["certified"]) for cell in pair),
                _pair(_number(cell["attack"]["eps"]) for cell in pair),
                _pair(f"{cell['attack']['auc']:.3f}" for cell in pair),
                _pair(_factor(cell["odds_shown"]) for cell in pair),
                _pair(f"{cell['read']:,.0f}" for cell in pair),
                _pair(f"{cell['read'] / of:.2f}" for cell, of in zip(pair, read, strict=True)),
            )
            lines.append(f"| {one['collection']} | {own['mechanism']} | " + " | ".join(figures) + " |")
    return "\n".join(lines) + "\n"


def _pair(shown: Iterable[str]) -> str:
    first, second = shown
    return first if first == second else f"{first} → {second}"


def _number(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.2f}"


def _factor(shown: float | None) -> str:
    if shown is None:
        return "-"
    return "above 1e300" if shown > 1e300 else f"{shown:.3g}"


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw recall against the certified epsilon of a coalition of two, a panel for each collection."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(results), figsize=(4 * len(results), 3.4), sharey=True, squeeze=False
    )
    for panel, result in zip(panels[0], results, strict=True):
        panel.axhline(result["without_noise"]["recall"], color="0.6", linewidth=1, linestyle=":")
        for kind, mark in (("noise", "o"), ("pooled-listing", "^")):
            cells = [c for c in result["cells"] if c["k"] == 2 and c["mechanism"].startswith(kind)]
            finite = [c for c in cells if math.isfinite(c["certified"])]
            panel.plot(
                [c["certified"] for c in finite],
                [c["recall"] for c in finite],
                mark,
                label=f"{kind}: certified",
            )
            shown, recall = [c["attack"]["eps"] for c in finite], [c["recall"] for c in finite]
            colour = panel.lines[-1].get_color()
            panel.plot(shown, recall, mark, mfc="none", color=colour, label=f"{kind}: shown by attack")
        for cell in result["cells"]:
            if cell["k"] == 2 and cell["mechanism"].startswith("sampling"):
                panel.axhline(cell["recall"], linewidth=1, color="C2")
                panel.annotate(
                    f"{cell['mechanism']}: factor {cell['exclusion_factor']:.3g}, no eps",
                    (0.02, cell["recall"]),
                    xycoords=("axes fraction", "data"),
                    fontsize=7,
                    va="bottom",
                )
        panel.set_xscale("symlog")
        panel.set_title(result["collection"], fontsize=9)
        panel.set_xlabel("epsilon of two accounts")
    panels[0][0].set_ylabel("recall@5")
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _asked(args: Namespace) -> dict[str, Any]:
    """Return the options and the revision that determine a collection's figures."""
    names = (
        "embedder", "relevance", "questions", "lists", "windows", "repeats", "seed", "positions_per_document",
        "only_documents",
    )  # fmt: skip
    return {name: getattr(args, name) for name in names} | {"revision": machine()["revision"]}


def kept(args: Namespace, name: str) -> dict[str, Any] | None:
    """Read a collection's figures from an earlier run with the same options at the same revision, or return None."""
    path = args.out and args.out / f"frontier-{name}.json"
    if not path or not path.exists():
        return None
    value = json.loads(path.read_text(encoding="utf-8"))
    return value["result"] if value["asked"] == _asked(args) else None


def keep(args: Namespace, name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Store a collection's figures in `--out`, so that an interrupted run continues with the next collection."""
    if args.out:
        value = {"asked": _asked(args), "machine": machine(), "result": result}
        replace_file(args.out / f"frontier-{name}.json", json.dumps(value).encode())
    return result


def threshold(args: Namespace) -> int:
    """The threshold of pooled listing.

    :raises SetupError: no threshold is published or given
    """
    known = args.relevance or published_constants(args.embedder, args.model).relevance
    if known is None:
        raise SetupError(
            "no threshold of pooled listing is published for the embedder", field="--relevance",
            expected="a raw score, which `rag-audit lab relevance` measures", actual="none",
        )  # fmt: skip
    return known


def main() -> int:
    """Measure, print, and report whether a lower bound exceeds its certified bound."""
    options = parser(__doc__)
    options.add_argument(
        "--collections", nargs="+", default=list(NAMES), help="of " + ", ".join(WITH_QUESTIONS)
    )
    options.add_argument("--questions", type=int, default=2000, help="questions of a collection, at most")
    options.add_argument("--lists", type=int, default=6_000, help="lists under noise in an attack")
    options.add_argument(
        "--windows", type=int, default=6_000, help="windows in an attack on sampling; others take a tenth"
    )
    options.add_argument(
        "--repeats", type=int, default=2, help="windows in which recall under coins is measured"
    )
    options.add_argument(
        "--positions-per-document", type=int, nargs="*", default=[4], metavar="S",
        help="positions of a document, for noise with a document table",
    )  # fmt: skip
    options.add_argument(
        "--only-documents", action="store_true", help="only the cells of noise with a document table"
    )
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--embedder", default=DEFAULT_EMBEDDER)
    options.add_argument("--model", type=Path, help="the folder of the embedder's model")
    options.add_argument(
        "--relevance", type=int, help="the threshold of pooled listing, if none is published for the embedder"
    )
    options.add_argument(
        "--vectors", type=Path, help="a file that keeps an integer encoder's sums between runs"
    )
    options.add_argument("--out", type=Path, help="a folder for frontier.json, frontier.md and frontier.svg")
    options.add_argument(
        "--beside", type=Path, help="the frontier.json of an earlier run; adds beside.md to --out"
    )
    args = options.parse_args()
    try:
        texts = [collection(name).sample(args.questions) for name in args.collections]
        embedder = stored_embedder(args.embedder, args.model, args.vectors)
        args.relevance = threshold(args)
    except RagAuditError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    results = [
        kept(args, name) or keep(args, name, study(each, embedder, args))
        for name, each in zip(args.collections, texts, strict=True)
    ]
    smallest = min(result["smallest_distance"] for result in results)
    report = {
        "embedder": args.embedder,
        "relevance": args.relevance,
        "seed": args.seed,
        "lists": args.lists,
        "windows": args.windows,
        "collections": results,
        "smallest_distance": smallest,
    }
    tables = "\n".join(table(result) for result in results)
    if args.out:
        whole = {"machine": machine(), **report}
        (args.out / "frontier.json").write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
        (args.out / "frontier.md").write_text(tables, encoding="utf-8")
        if args.beside:
            earlier = json.loads(args.beside.read_text(encoding="utf-8"))
            (args.out / "beside.md").write_text(beside(earlier, whole), encoding="utf-8")
        if not args.only_documents:
            draw(results, args.out / "frontier.svg")
    if args.json:
        emit(report, as_json=True)
    else:
        print(tables)
        print(f"The smallest distance between a certified bound and what an attack shows is {smallest:.3g}.")
    return int(smallest < 0)


if __name__ == "__main__":
    sys.exit(main())
