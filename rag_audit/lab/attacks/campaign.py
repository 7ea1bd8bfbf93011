"""Runs attacks against targets: preparation once, then each target's answers, scores and bounds.

Two designs answer two questions. *Population*, as in the papers, compares members with documents that are not in the
index. *Worlds*, as in differential privacy: one trial is one draw of a world with the document in its place or with an
empty place, and each world has its own draws. Only the second design can be compared with a certified epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random

import numpy as np

from rag_audit.lab.attacks.interface import (
    Answer,
    Attack,
    AttackError,
    Embed,
    Floats,
    Probe,
    Scorer,
    Target,
    Task,
    Tools,
)
from rag_audit.lab.attacks.methods.synthetic import ngram_score
from rag_audit.lab.attacks.metrics import Figure, Scored, best_threshold, proportion
from rag_audit.lab.attacks.proxy import Proxy, Speller, TokenStatistics
from rag_audit.lab.attacks.quality import Written
from rag_audit.lab.attacks.split import Split
from rag_audit.lab.attacks.targets.engine import Engine, embed_all
from rag_audit.lab.attacks.text import halves
from rag_audit.retrieval.embedders import Embedder

OUTSIDE = 1_000_000
"""The number of the first document that is not in the index."""
_TOGETHER = 256
"""Number of documents per batch of embedded replies."""
VECTORS = 1 << 14
"""Number of cached vectors: a run has millions of replies."""


@dataclass(frozen=True)
class Prepared:
    """An attack's tasks on every document of a split, by the document's number.

    :param refused: documents that the attack cannot be prepared for
    """

    attack: Attack
    tools: Tools
    texts: dict[int, str]
    tasks: dict[int, list[Task]]
    refused: int
    learnt: dict[str, Scorer] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """Maximum queries of one account about one document."""
        return max(len(tasks) for tasks in self.tasks.values())

    def probes(self, documents: Sequence[int], accounts: int) -> list[Probe]:
        """Every task of every document, asked by each account."""
        return [
            Probe(document, place, account, task)
            for document in documents
            for account in range(accounts)
            for place, task in enumerate(self.tasks[document])
        ]


@dataclass(frozen=True)
class Population:
    """An attack's figures against one target.

    :param retrieval: the share of members that reached the generator; None if the target does not report it
    :param hidden: the shares of queries from which a defence hid a document, for members and for others
    """

    scored: Scored
    figures: dict[str, Figure]
    retrieval: Figure | None
    hidden: tuple[float, float]
    documents: int
    written: Written | None = None
    """The form of the answers, and what they repeat of the passages."""


class Unit:
    """Vectors of length 1 by an embedder, with a cache of the latest."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Floats] = {}

    def __call__(self, texts: Sequence[str]) -> Floats:
        """The vectors, shape (n, d)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            result = embed_all(self._embedder, new).astype(np.float64)
            result /= np.maximum(np.linalg.norm(result, axis=1, keepdims=True), 1e-9)
            self._known.update(zip(new, result, strict=True))
        vectors = np.stack([self._known[text] for text in texts])
        for text in list(islice(self._known, max(0, len(self._known) - VECTORS))):
            del self._known[text]
        return vectors


def tools_of(own: Sequence[str], embed: Embed, seed: int, proxy: Proxy | None = None) -> Tools:
    """The tools that an attacker builds from its own texts.

    :param proxy: a language model that finds the words that are hard to guess; the statistics of the texts if None
    """
    model = TokenStatistics(own)
    return Tools(model, proxy or model, Speller(model), embed, seed)


def numbered(split: Split) -> dict[int, str]:
    """The attacked documents of a split by number, others from `OUTSIDE` on."""
    return dict(enumerate(split.members)) | dict(enumerate(split.others, OUTSIDE))


def prepare(attack: Attack, split: Split, tools: Tools) -> Prepared:
    """Prepare an attack on all members and others of a split.

    :raises AttackError: fewer than half of the documents can be attacked
    """
    texts = numbered(split)
    tools = replace(tools, random=Random(f"{tools.seed} {attack.name}"))
    tasks: dict[int, list[Task]] = {}
    for number, text in texts.items():
        try:
            tasks[number] = attack.prepare(text, tools)
        except AttackError:
            continue
    if 2 * len(tasks) < len(texts):
        raise AttackError("the attack cannot be prepared on most documents", field=attack.name,
                          expected=f"at least half of {len(texts)}", actual=len(tasks))  # fmt: skip
    return Prepared(attack, tools, texts, tasks, len(texts) - len(tasks))


def features_of(
    prepared: Prepared, documents: Sequence[int], answers: Sequence[Answer], accounts: int
) -> tuple[Floats, Floats, Floats]:
    """The features of each document, whether it was found at all, and whether a document was hidden.

    :returns: shapes (n, features), (n,), (n,)
    """
    rows, result, hidden, at = [], [], [], 0
    for number, document in enumerate(documents):
        tasks = prepared.tasks[document]
        mine = answers[at : at + accounts * len(tasks)]
        if prepared.attack.embeds and number % _TOGETHER == 0:
            _embed_batch(prepared, documents[number : number + _TOGETHER], answers[at:], accounts)
        at += len(mine)
        replies = [answer.reply for answer in mine]
        rows.append(
            prepared.attack.features(prepared.texts[document], tasks * accounts, replies, prepared.tools)
        )
        result.append(any(answer.actual for answer in mine))
        hidden.append(sum(answer.hidden for answer in mine) / len(mine))
    return np.array(rows), np.array(result, np.float64), np.array(hidden)


def _embed_batch(
    prepared: Prepared, documents: Sequence[int], answers: Sequence[Answer], accounts: int
) -> None:
    """Embed documents and their replies in one batch, since `Tools.embed` only caches the latest batch.

    :param answers: the answers of the documents, in order, first
    """
    texts = [prepared.texts[document] for document in documents]
    replies = sum(accounts * len(prepared.tasks[document]) for document in documents)
    prepared.tools.embed(
        [*texts, *(halves(text)[1] for text in texts), *(a.reply.text for a in answers[:replies])]
    )


def population(
    prepared: Prepared,
    target: Target,
    *,
    accounts: int = 1,
    seed: int = 0,
    shadow: Scorer | None = None,
) -> tuple[Population, Scorer]:
    """Members against others. Every second document is a reference: the attacker knows its membership, and uses it to
    choose thresholds and to learn. The figures come from the remaining documents.

    :param shadow: the scorer that the attack learnt at its own service, if any
    :raises AttackError: the target lacks a feature that the attack needs
    """
    if prepared.attack.probabilities and not target.probabilities:
        raise AttackError("the target gives no log-probabilities", field=prepared.attack.name,
                          hint="choose attacks that need none (`rag-audit lab attack list`)")  # fmt: skip
    documents = sorted(prepared.tasks)
    answers = target.ask(prepared.probes(documents, accounts))
    tasks = [task for document in documents for task in prepared.tasks[document] * accounts]
    written = Written.of(tasks, answers, seed)
    if written is not None:
        written.check(prepared.attack.name)
    features, result, hidden = features_of(prepared, documents, answers, accounts)
    labels = np.array([float(d < OUTSIDE) for d in documents])
    reference = np.zeros(len(documents), np.bool_)
    for label in (0.0, 1.0):
        reference[np.flatnonzero(labels == label)[::2]] = True
    scorer = shadow if shadow is not None else prepared.attack.fit(features[reference], labels[reference])
    scores, member = scorer(features), labels > 0
    threshold = best_threshold(scores[reference & member], scores[reference & ~member])
    scored = Scored(scores[~reference & member], scores[~reference & ~member], threshold)
    seen = any(answer.actual is not None for answer in answers)
    measured = Population(
        scored,
        scored.figures(seed),
        proportion(result[member], seed) if seen else None,
        (float(hidden[member].mean()), float(hidden[~member].mean())),
        len(documents),
        written,
    )
    return measured, scorer


def worlds(
    prepared: Prepared, engine: Engine, scorer: Scorer, *, accounts: int, trials: int
) -> tuple[Floats, Floats]:
    """Scores in worlds with a member in its place, and in worlds with an empty place, with fresh draws for each.

    Each trial draws its document among the members and its own noise or Bernoulli bits. An answer's information is a
    function of the lists (`Engine.ask_without`), so the bound on lists covers any test on these scores.

    :returns: both of shape (trials,)
    """
    members = [d for d in sorted(prepared.tasks) if d < OUTSIDE]
    random = np.random.default_rng([engine.seed, 1])
    scores = []
    for world, ask in enumerate((Engine.ask, Engine.ask_without)):
        drawn = [members[i] for i in random.integers(0, len(members), trials)]
        result: list[Floats] = []
        for turn, part in enumerate(_apart(drawn)):
            fresh = replace(engine, seed=engine.seed + 2 * turn + world + 1, observes=False)
            answers = ask(fresh, prepared.probes(part, accounts))
            result.append(scorer(features_of(prepared, part, answers, accounts)[0]))
        mixed = np.concatenate(result)
        scores.append(mixed[random.permutation(len(mixed))])
    return scores[0], scores[1]


def _apart(drawn: Sequence[int]) -> list[list[int]]:
    """Draws with repetitions as lists without, since a document's draws follow from its number and the seed."""
    lists: list[list[int]] = []
    seen: dict[int, int] = {}
    for document in drawn:
        turn = seen.get(document, 0)
        seen[document] = turn + 1
        if turn == len(lists):
            lists.append([])
        lists[turn].append(document)
    return lists


def learn_at_shadow(
    attack: Attack, split: Split, tools: Tools, build: Callable[[Sequence[str]], Target]
) -> Scorer:
    """A scorer learnt at a service over half of the attacker's own texts. The service has none of the others.

    :param build: makes a service like the target over given documents
    """
    cut = len(split.own) // 2
    half = Split(split.own[:cut], split.own[cut:], (), split.own, (0, 0))
    prepared = prepare(attack, half, tools)
    documents = sorted(prepared.tasks)
    answers = build(half.members).ask(prepared.probes(documents, 1))
    features, _, _ = features_of(prepared, documents, answers, 1)
    return attack.fit(features, np.array([float(d < OUTSIDE) for d in documents]))


def score_without(prepared: Prepared, services: Sequence[Target]) -> None:
    """Let services without the documents answer the same tasks, for scores relative to theirs (RMIA)."""
    documents = sorted(prepared.tasks)
    for service in services:
        shifted = [replace(p, document=p.document + OUTSIDE) for p in prepared.probes(documents, 1)]
        answers, at = service.ask(shifted), 0
        for document in documents:
            count = len(prepared.tasks[document])
            text = prepared.texts[document]
            result = ngram_score(text, [a.reply for a in answers[at : at + count]])
            prepared.tools.reference.setdefault(text, []).append(result if math.isfinite(result) else -50.0)
            at += count
