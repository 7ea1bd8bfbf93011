"""A measurement of the questions that find their passage under each mechanism, and of the documents that they read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_audit.cli.demo.corpus import Question
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.policy import Policy
from rag_audit.relation.field import random_element
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.engine import (
    Int8Array,
    TenantIndex,
    build_index,
    draw_bernoulli_bits,
    no_noise,
    select,
)
from rag_audit.retrieval.serving import Asked, serving
from rag_audit.retrieval.serving.pooled_listing import PooledListingServing, TableRows, positions_in_rows
from rag_audit.retrieval.texts import DocumentPart

WINDOWS = 100
"""Number of windows with fresh draws of noise and samples. Each window asks every question."""
EXACT = ScoreWindow(0, 1 << 14, 1 << 14)
"""A score window that gives each positive score a separate step."""


@dataclass(frozen=True)
class Asks:
    """The questions that are measured on one tenant, and the tenant's documents.

    :param vectors: each question's vector
    :param targets: the positions of each question's passage
    :param document: the number of the document of each position, shape (capacity,); `documents` for an empty position
    :param documents: the number of documents
    """

    index: TenantIndex
    vectors: Sequence[Int8Array]
    targets: Sequence[set[int]]
    document: npt.NDArray[np.int64]
    documents: int


@dataclass(frozen=True)
class Measured:
    """The mean results of a window in which one account asks every question.

    :param found: the questions whose passage is among the returned texts
    :param error: the standard error of `found`
    :param read: the documents of which a text is returned
    """

    found: float
    error: float
    read: float


def measure(mechanism: Mechanism, asks: Asks, k: int, windows: int = WINDOWS) -> Measured:
    """Ask all questions, one after another, in windows with fresh draws, through the provider's own functions.

    :param k: the number of passages that the account keeps of each answer
    """
    counts = [_counts(asks, list(_window(mechanism, asks, k))) for _ in range(windows)]
    found, read = zip(*counts, strict=True)
    error = float(np.std(found, ddof=1)) / math.sqrt(windows) if windows > 1 else 0.0
    return Measured(float(np.mean(found)), error, float(np.mean(read)))


def _counts(asks: Asks, texts: Sequence[Sequence[int]]) -> tuple[int, int]:
    """The questions whose passage is among their texts, and the documents of all texts.

    :param texts: the positions of the texts that each question returns
    """
    found = sum(bool(t & set(own)) for t, own in zip(asks.targets, texts, strict=True))
    return found, len({int(asks.document[p]) for own in texts for p in own})


def exact(asks: Asks, k: int) -> Measured:
    """The same without any mechanism."""
    silent, documents = no_noise(asks.index.capacity), set(asks.index.positions)
    texts = [
        [p for p in select(asks.index, vector, silent, EXACT, k) if p in documents] for vector in asks.vectors
    ]
    found, read = _counts(asks, texts)
    return Measured(found, 0.0, read)


def _window(mechanism: Mechanism, asks: Asks, k: int) -> Iterator[list[int]]:
    """The positions whose texts each question returns in one window."""
    provider, index = serving(mechanism), asks.index
    shown = np.ones(index.capacity, np.int8)
    if (table := mechanism.table) is not None:
        kept = draw_bernoulli_bits(random_element(), table.rows, mechanism.sample_bound)
        rows = np.where(asks.document < asks.documents, asks.document, table.rows)
        shown = np.append(kept, np.int8(0))[rows]
    elif mechanism.sampled:
        shown = draw_bernoulli_bits(random_element(), index.capacity, mechanism.sampled_share)
    questions = [Asked(v, provider.draw(random_element(), index.capacity)) for v in asks.vectors]
    if isinstance(provider, PooledListingServing):
        nothing = np.zeros(provider.rows, np.int8)
        of_table = TableRows(positions_in_rows(rows, len(kept)), kept)
        for answer in provider.in_order(index, questions, of_table, nothing):
            if isinstance(answer, Exception):
                raise answer
            yield [p for p in answer.places if p is not None]
        return
    columns = {SAMPLE: shown} if SAMPLE in mechanism.columns else {}
    documents = set(index.positions)
    for vector, question in zip(asks.vectors, questions, strict=True):
        (listed,) = provider.select(index, [question], columns)
        if isinstance(listed, Exception):
            raise listed
        closed = provider.withheld(
            index, _value(vector), listed, columns=columns, documents=documents
        )  # fmt: skip
        yield [p for p in listed if p not in closed and p in documents]


def _value(vector: Int8Array) -> Callable[[], Int8Array]:
    return lambda: vector


def table(
    policies: Sequence[Policy],
    embedder: Embedder,
    tenants: Mapping[str, Sequence[DocumentPart]],
    questions: Sequence[Question],
    *,
    windows: int = WINDOWS,
) -> list[str]:
    """The figure, its scope, and the mean results of each tenant under each policy.

    All policies are measured on one embedding and one placement of the texts. Tenants without questions are skipped.

    :param policies: policies over the same tenants and capacities
    """
    asks = {
        part.tenant: _asks(part.tenant, part.capacity, tenants[part.tenant], questions, embedder)
        for part in policies[0].tenants
    }
    k = policies[0].top_k
    lines = []
    for tenant, own in asks.items():
        if not own.vectors:
            continue
        plain = exact(own, k)
        blind = len(own.vectors) * min(1.0, k / len(own.index.positions))
        lines.append(
            f"tenant {tenant}: {len(own.vectors)} questions, means of {windows} windows; exact retrieval finds"
            f" {plain.found:.0f} passages and reads {plain.read:.0f} of {own.documents} documents, blind chance finds"
            f" {blind:.1f}"
        )
        lines.append(
            f"{'mechanism':19} {'figure':>26}  {'valid for':38} {'passages found':>22} {'documents read':>14}"
        )
        for policy in policies:
            part = policy.figures()["tenants"][tenant]
            mechanism = policy.mechanism_of(tenant)
            result = measure(mechanism, own, k, windows)
            share = f" ({result.found / plain.found:.0%})" if plain.found else ""
            figure = ", ".join(
                [
                    *([] if part["eps"] in ("inf", None) else [f"epsilon {part['eps']}"]),
                    *([] if part["exclusion_factor"] is None else [f"factor {part['exclusion_factor']}"]),
                ]
            )
            lines.append(
                f"{part['mechanism']:19} {figure or 'none':>26}  {_scope(mechanism, policy):38}"
                f" {result.found:>8.1f} ± {result.error:.1f}{share:>7} {result.read:>14.0f}"
            )
    return lines


def _scope(mechanism: Mechanism, policy: Policy) -> str:
    """For whom and about what a mechanism's figure is valid."""
    if not mechanism.protects:
        return "no document"
    unit = "a document" if mechanism.table is not None else "a passage"
    return f"{unit}, {policy.k_max if mechanism.noised else 'any number of'} accounts"


def _asks(
    tenant: str,
    capacity: int,
    texts: Sequence[DocumentPart],
    questions: Sequence[Question],
    embedder: Embedder,
) -> Asks:
    """A tenant's index at random positions, and the questions about its texts."""
    index = build_index(embedder.embed_documents([d.text for d in texts]), capacity)
    number = {name: n for n, name in enumerate(sorted({d.document for d in texts}))}
    document = np.full(capacity, len(number), np.int64)
    document[list(index.positions)] = [number[d.document] for d in texts]
    asked = [
        (embedder.embed_query(q.question), targets)
        for q in questions
        if q.tenant == tenant
        and (targets := {index.positions[i] for i, d in enumerate(texts) if d.title == q.answer})
    ]
    return Asks(index, [v for v, _ in asked], [t for _, t in asked], document, len(number))
