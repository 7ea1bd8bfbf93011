"""An attack on the exclusion factor over three windows, through the running service.

Two accounts of a tenant ask over HTTP for every document by its own text, in each of three windows of a chain. Every
document is one trial: an absent document is never returned, so the share of documents that no answer returned gives
a lower limit of the factor, by Clopper and Pearson.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from scipy.stats import beta

from rag_audit.account.client import Client
from rag_audit.attest.window import Window
from rag_audit.mechanisms.accounting.bounds import eps_at
from rag_audit.mechanisms.base import Mechanism, TableShape
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.report.cumulative import Cumulative, compose, load_window
from rag_audit.report.verification import verify_window
from tests.accounting.test_missing import HALF
from tests.serving.conftest import serving
from tests.window.test_pooled_listing import PooledChain

WINDOWS = 3
RISK = 1e-4
"""The probability that an honest service fails a test of this page."""
WORDS = 6
THRESHOLD = 200
"""Below the score of a text with itself, and above that of two texts without a common word."""


def texts_of(count: int) -> dict[str, list[str]]:
    """Documents of one position, each with words of its own."""
    rng = Random(7)
    return {f"d-{n}": [" ".join(f"{rng.randrange(16**8):08x}" for _ in range(WORDS))] for n in range(count)}


@dataclass(frozen=True)
class Attacked:
    """The result of one chain.

    :param missing: documents that no answer returned, of so many `documents`
    """

    missing: int
    documents: int
    certified: Cumulative

    @property
    def low(self) -> float:
        """A lower limit of the factor, which is too high in one of `1 / RISK` runs."""
        return 1 / float(beta.ppf(1 - RISK, self.missing + 1, self.documents - self.missing))


def attack(root: Path, mechanism: Mechanism, documents: int) -> Attacked:
    """Ask for every document in each window, by both accounts."""
    chain, texts = PooledChain(root), texts_of(documents)
    returned: set[str] = set()
    shape = mechanism.table
    assert shape is not None and shape.documents == documents
    for _ in range(WINDOWS):
        with chain.open(
            texts,
            mechanisms={"law": mechanism, "medicine": Sampling(keep=HALF, documents=TableShape(8, 2, 2))},
            capacities={"law": shape.rows, "medicine": 16},
            n=documents,
            accounts_max=2,
            top_k=5,
            tokens=(WORDS, 512),
        ) as window:
            with (
                serving(chain.service, window) as served,
                Client(served.service.url, chain.service.key.verifier) as client,
            ):
                for account in ("law-1", "law-2"):
                    for (text,) in texts.values():
                        answer = client.ask(chain.service.accounts[account], text)
                        returned |= {document.text for document in answer.documents}
                assert not served.faults
            chain.service.finish(window)
    missing = sum(text not in returned for (text,) in texts.values())
    return Attacked(missing, documents, compose([load_window(folder / "public") for folder in chain.windows]))


def sampled(rows: int, fresh_rows: int | None) -> Sampling:
    return Sampling(keep=HALF, documents=TableShape(rows, 1, fresh_rows))


def pooled(rows: int, fresh_rows: int, f: str) -> PooledListing:
    """Pooled listing, with a threshold that only the document's own text reaches.

    :param f: the maximum probability that chance lists a given document in one window
    """
    table = TableShape(rows, 1, fresh_rows)
    return PooledListing(keep=HALF, rules=PoolRules(0, THRESHOLD, f), documents=table)


def not_above(attacked: Attacked) -> float:
    """The certified factor of the chain, which the attack does not refute."""
    certified = attacked.certified.exclusion_factor_all_accounts
    assert certified is not None and not attacked.certified.missing
    assert attacked.low <= certified
    return certified


def test_a_document_keeps_its_factor_for_three_windows_of_sampling(tmp_path: Path) -> None:
    attacked = attack(tmp_path, sampled(64, 16), 48)
    assert not_above(attacked) == 2.0001
    assert attacked.missing > 12, (
        "one bit for the chain: bits of each window leave 6 of 48 on average, and not 24"
    )


def test_a_document_keeps_its_factor_for_three_windows_of_pooled_listing(tmp_path: Path) -> None:
    """Listed rows are carried: the chance of all windows counts, and the sampling bit counts once."""
    attacked = attack(tmp_path, pooled(64, 16, "0.1"), 48)
    assert not_above(attacked) == pytest.approx(1 / (0.5 * 0.9**WINDOWS), rel=2e-3)
    assert attacked.missing > 6, (
        "one bit for the chain: bits of each window leave 4.4 of 48 on average, and not 17.5"
    )


@pytest.mark.full
def test_a_longer_attack_on_sampling_is_close_to_the_factor(tmp_path: Path) -> None:
    attacked = attack(tmp_path, sampled(256, 56), 200)
    assert attacked.low > 0.6 * not_above(attacked)


@pytest.mark.full
def test_a_longer_attack_on_pooled_listing_refutes_the_factor_of_one_window(tmp_path: Path) -> None:
    attacked = attack(tmp_path, pooled(256, 56, "0.3"), 200)
    assert attacked.low > 1 / (0.5 * 0.7), "the chance of earlier windows counts too"
    assert not_above(attacked) == pytest.approx(1 / (0.5 * 0.7**WINDOWS), rel=2e-3)


@pytest.mark.full
def test_bits_that_each_window_draws_refute_the_factor_of_one_bit(tmp_path: Path) -> None:
    """The attack finds a service that draws the bits anew."""
    attacked = attack(tmp_path, sampled(128, None), 128)
    assert attacked.low > 2.0001
    assert not_above(attacked) == pytest.approx(2**WINDOWS, rel=1e-3)


def test_three_windows_of_noise_by_document_through_the_service(tmp_path: Path) -> None:
    """Every window has a table of its own, answers return every text that a list names, and the epsilons of documents
    compose: one window has three times fewer losses than the chain."""
    chain, shape = PooledChain(tmp_path), TableShape(16, 2, None)
    noise = Noise(documents=shape)
    texts = {key: [own, f"{own} again"] for key, (own,) in texts_of(6).items()}
    filled = {text for own in texts.values() for text in own}
    for number in range(1, WINDOWS + 1):
        with chain.open(
            texts, mechanisms=dict.fromkeys(("law", "medicine"), noise), n=6, accounts_max=3, top_k=4,
            eps_acc="500", gains=(1, 8), lattice=64,
        ) as window:  # fmt: skip
            with (
                serving(chain.service, window) as served,
                Client(served.service.url, chain.service.key.verifier) as client,
            ):
                for own, _ in texts.values():
                    answer = client.ask(chain.service.accounts["law-1"], own)
                    assert {document.text for document in answer.documents} <= filled
                assert not served.faults
            chain.service.finish(window)
        parts = [load_window(folder / "public") for folder in chain.windows]
        total, single = compose(parts), parts[0].policy.noise
        assert single is not None and total.positions == 2 and not total.missing
        losses = number * parts[0].policy.k_max * 6 * 2
        assert total.bound.eps == eps_at(single.mechanism(), losses, total.bound.delta)
    folder = chain.windows[-1]
    with Window.resume(folder, key=chain.service.key, clock=chain.service.clock) as window:
        window.answer_challenge(chain.service.challenge(window))
        receipts = chain.service.receipts(window, folder / "receipts")
        trust = chain.service.trust(
            window.policy, max_epsilon="500", max_abandoned=1, max_empty=1, max_K_share="1"
        )
    earlier = [path / "public" for path in chain.windows[:-1]]
    verdict = verify_window(folder / "public", trust=trust, receipts=[receipts], previous=earlier)
    assert verdict.passed, verdict.deciding
    assert "positions_per_document=2" in verdict.line
