"""The number of documents that accounts read, in cases with known numbers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from bench import exposure
from rag_audit.commit.explore.bernoulli import PooledList, SampledTopK
from rag_audit.commit.explore.samples import Sample
from rag_audit.commit.explore.simulate import Noise
from rag_audit.mechanisms.accounting.bernoulli import Sampling
from rag_audit.mechanisms.accounting.documents import exposure_limit
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import build_index

HALF = PROBABILITY_RANGE // 2
ROWS = 7 * np.eye(16, dtype=np.int8)


@pytest.fixture(scope="module")
def sample() -> Sample:
    """Sixteen documents, each the best answer to one of sixteen questions."""
    index = build_index(ROWS, 32, Random(1))
    return Sample(index, ROWS, [frozenset({position}) for position in index.positions])


def read(sample: Sample, window: exposure.Window, queries: int, sizes: tuple[int, ...]) -> list[float]:
    result = exposure.documents_read(sample, window, sizes, queries=queries, windows=200, seed=1)
    return [result[k] for k in sizes]


def test_exact_retrieval_returns_every_document_that_is_asked_for(sample: Sample) -> None:
    one, four = read(sample, exposure.exact(1), 4, (1, 4))
    assert one == pytest.approx(16 * (1 - (15 / 16) ** 4), abs=0.15)
    assert four == pytest.approx(16 * (1 - (15 / 16) ** 16), abs=0.3)
    assert four <= exposure_limit(16, queries=16, longest=1)


def test_a_sample_hides_its_share_for_all_accounts(sample: Sample) -> None:
    window = exposure.with_bits(SampledTopK(Sampling(HALF)), 1)
    (many,) = read(sample, window, 200, (1,))
    assert many == pytest.approx(8, abs=0.5)


def test_accounts_share_the_documents_that_pooled_listing_lists(sample: Sample) -> None:
    """The threshold is out of reach, so chance alone lists a document, for all accounts, and the next question about
    it reads it."""
    m, pool = 40, PooledList.of(HALF, "0.5", 1000, 40)
    q = pool.flip_probability / PROBABILITY_RANGE
    unread = (1 - q) ** m + sum(q * (1 - q) ** (t - 1) * (15 / 16) ** (m - t + 1) for t in range(1, m + 1))
    (four,) = read(sample, exposure.with_bits(pool, 1), 10, (4,))
    assert four == pytest.approx(16 * (1 - unread), abs=0.5)


def test_large_noise_returns_documents_by_chance(sample: Sample) -> None:
    (one,) = read(sample, exposure.noised(Noise((1, 8, 64), ScoreWindow(0, 1024, 1)), 2), 3, (1,))
    assert one == pytest.approx(16 * (1 - (30 / 32) ** 3), abs=0.3)


def test_positions_of_one_document_count_once(sample: Sample) -> None:
    """Sixteen passages of four documents."""
    document_of = {position: number // 4 for number, position in enumerate(sample.index.positions)}
    result = exposure.documents_read(
        sample, exposure.exact(1), (1, 4), queries=4, windows=200, seed=1, document_of=document_of
    )
    assert result[1] == pytest.approx(4 * (1 - (3 / 4) ** 4), abs=0.15)
    assert result[4] == pytest.approx(4 * (1 - (3 / 4) ** 16), abs=0.1)
