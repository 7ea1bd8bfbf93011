"""What a sampled tenant's answers return without a text: every position that the window does not keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import beta

from rag_audit._internal.canonical import jcs
from rag_audit.account.account import check_documents
from rag_audit.attest import query as steps
from rag_audit.attest.window import Window
from rag_audit.commit.commitment import CommittedTenant, WindowSecrets
from rag_audit.errors import InvalidProof
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.none import Exact
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.receipts import OpenedReceipt, contradictions, open_receipt, withheld_once
from rag_audit.models.records import DocumentOpening, ReceiptBody, TenantEntry
from rag_audit.models.requests import Answer, AnsweredDocument
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.retrieval.engine import Int8Array, TenantIndex, draw_bernoulli_bits
from rag_audit.retrieval.query import OpenedQuery
from rag_audit.retrieval.serving import Asked, serving
from tests.drafting import draft
from tests.window.simulator import QUESTIONS, Service

HALF, TENTH = PROBABILITY_RANGE // 2, PROBABILITY_RANGE // 10
SAMPLED = Sampling(keep=HALF)
NOISED = Noise(keep=HALF)
MECHANISMS = {"sampling": SAMPLED, "noise": NOISED}


# -- a whole window ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=MECHANISMS)
def requested(
    request: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Window, list[Answer]]]:
    """A window whose tenant law samples, and the answers to its accounts, which checked each of them.

    Coins are drawn afresh, so windows are opened until one of them selects a document that it does not keep, and
    returns several texts in one answer.
    """
    mechanisms = {"law": MECHANISMS[request.param], "medicine": Exact()}
    for number in range(40):
        service = Service(tmp_path_factory.mktemp(f"withheld-{number}"))
        window = service.open(mechanisms=mechanisms, system="scan", top_k=6)
        answers = [
            service.ask(window, name, question)
            for name in ("law-1", "law-2")
            for question in QUESTIONS["law"]
        ]
        kept, filled = window.samples.bits("law")["sample"], window.commitment.tenants["law"].documents_at
        bodies = [opened(service, window, a).body for a in answers]
        selected = {p for body in bodies for p in body.positions if p in filled}
        several = any(sum(d.salt is not None for d in body.documents) > 1 for body in bodies)
        if several and any(not kept[p] for p in selected) and any(kept[p] for p in selected):
            break
        window.shut()
    else:
        raise AssertionError("no window keeps some of the selected documents and returns several texts")
    with window:
        yield service, window, answers


def opened(service: Service, window: Window, answer: Answer) -> OpenedReceipt:
    return open_receipt(
        answer.receipt, origin=window.header.origin, header_digest=window.header_digest,
        log_key=service.key.verifier, field="receipt",
    )  # fmt: skip


def test_no_text_of_a_position_that_is_not_kept_leaves_the_provider(
    requested: tuple[Service, Window, list[Answer]],
) -> None:
    service, window, answers = requested
    kept, tenant = window.samples.bits("law")["sample"], window.commitment.tenants["law"]
    rules = window.policy.mechanism_of("law")
    dropped = 0
    for answer in answers:
        body = opened(service, window, answer).body
        handed = {d.position for d in answer.documents}
        assert handed <= {p for p in tenant.documents_at if kept[p]}
        for position, document in zip(body.positions, body.documents, strict=True):
            assert (document.salt is None) == (position not in handed)
            dropped += position in tenant.documents_at and not kept[position]
        if rules.name == "sampling":
            record = opened(service, window, answer).record
            query = window.context.retained(record).opened(window.context.embedder)
            assert all(rules.window.quantise(int(tenant.index.scores(query.vector)[p])) > 0 for p in handed)
    assert dropped, "no answer selected a document that the window does not keep"


def test_the_same_request_is_answered_with_the_same_texts(
    requested: tuple[Service, Window, list[Answer]],
) -> None:
    service, window, answers = requested
    account, publication = service.accounts["law-1"], Publication.load(window.directory / "public")
    kept = account.receipts(publication)[0]
    record = opened(service, window, answers[0]).record
    request = {
        "type": "request", "v": 1, "origin": window.header.origin, "header": window.header_digest,
        "tenant": "law", "account": "law-1", "i": 1, "hq": record.hq, "sig": record.sig,
        "query": kept.query, "salt": kept.salt,
    }  # fmt: skip
    again = window.handle(request)
    assert isinstance(again, Answer)
    assert again.documents == answers[0].documents
    first, second = (opened(service, window, a).body for a in (answers[0], again))
    assert first.canonical() == second.canonical()


def test_without_a_sample_every_digest_is_opened(requested: tuple[Service, Window, list[Answer]]) -> None:
    service, window, _ = requested
    answer = service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
    body = opened(service, window, answer).body
    assert all(document.salt is not None for document in body.documents)
    filled = window.commitment.tenants["medicine"].documents_at
    assert {d.position for d in answer.documents} == {p for p in body.positions if p in filled}


@pytest.mark.parametrize("sampled", [True, False])
def test_an_account_accepts_a_closed_digest_of_a_sampled_tenant_alone(
    requested: tuple[Service, Window, list[Answer]], sampled: bool
) -> None:
    service, window, answers = requested
    answer = next(a for a in answers if len(a.documents) < len(opened(service, window, a).body.positions))
    receipt = opened(service, window, answer)
    if sampled:
        check_documents(answer, receipt, withholds=True)
    else:
        with pytest.raises(InvalidProof):
            check_documents(answer, receipt, withholds=False)


def test_a_text_beside_a_closed_digest_is_refused(requested: tuple[Service, Window, list[Answer]]) -> None:
    service, window, answers = requested
    answer = next(a for a in answers if len(a.documents) < len(opened(service, window, a).body.positions))
    receipt = opened(service, window, answer)
    body = receipt.body
    texts = {d.position: d for d in answer.documents}
    for position, document in zip(body.positions, body.documents, strict=True):
        if document.salt is None:
            texts[position] = AnsweredDocument(
                position=position, text="a text that nobody committed to", metadata={}, name=None
            )
    forged = answer.model_copy(update={"documents": [texts[p] for p in body.positions]})
    with pytest.raises(InvalidProof, match="a text or its metadata differs from the committed document"):
        check_documents(forged, receipt, withholds=True)


# -- a provider that withholds texts ---------------------------------------------------------------------------


def closed_at(receipt: OpenedReceipt, *places: int) -> OpenedReceipt:
    """The receipt with null salts at these places of its list, as a provider would sign it that withholds the texts."""
    documents = [
        d.model_copy(update={"salt": None}) if n in places else d
        for n, d in enumerate(receipt.body.documents)
    ]
    return replace(receipt, body=receipt.body.model_copy(update={"documents": documents}))


def in_order(receipt: OpenedReceipt, positions: Sequence[int], closed: Sequence[int]) -> OpenedReceipt:
    """The receipt with other positions, and null salts at these positions; its commitments do not open."""
    documents = [
        DocumentOpening(hash="a" * 64, salt=None if p in closed else "b" * 64, path=[]) for p in positions
    ]
    body: ReceiptBody = receipt.body.model_copy(update={"positions": list(positions), "documents": documents})
    return replace(receipt, body=body)


def entry_of(window: Window, receipt: OpenedReceipt) -> TenantEntry:
    return window.commitment.tenants[receipt.record.tenant].entry


def misplaced(receipt: OpenedReceipt, window: Window) -> list[str]:
    return [
        text
        for text in contradictions(receipt, entry_of(window, receipt), window.policy)
        if "null salt" in text
    ]


def test_a_withheld_text_of_positive_score_is_a_contradiction(
    requested: tuple[Service, Window, list[Answer]],
) -> None:
    """Positions of score 0 are the end of a list of exact scores, in ascending order."""
    service, window, answers = requested
    receipts = [opened(service, window, answer) for answer in answers]
    assert all(contradictions(r, entry_of(window, r), window.policy) == [] for r in receipts)
    rules, receipt = window.policy.mechanism_of("law"), receipts[0]
    if rules.name != "sampling":
        assert misplaced(closed_at(receipt, 0), window) == []  # only receipts together show it
        return
    for positions, closed, withheld in (
        ([5, 2, 9, 11, 12, 13], [2], 2),  # before a returned text
        ([5, 9, 2, 11, 12, 13], [9, 2, 11, 12, 13], 9),  # before a lower position
        ([5, 9, 2, 11, 12, 13], [2, 11, 12, 13], None),
        ([1, 2, 9, 11, 12, 13], [1, 2, 9, 11, 12, 13], None),
        ([9, 5, 2, 4, 3, 1], [], None),
    ):
        result = misplaced(in_order(receipt, positions, closed), window)
        assert [text.partition(",")[0] for text in result] == (
            [] if withheld is None else [f"position {withheld} has a null salt"]
        )
    several = next(r for r in receipts if sum(d.salt is not None for d in r.body.documents) > 1)
    (text,) = contradictions(closed_at(several, 0), entry_of(window, several), window.policy)
    assert "the provider withholds its text" in text


def test_a_null_salt_of_a_tenant_without_a_sample_is_a_contradiction(
    requested: tuple[Service, Window, list[Answer]],
) -> None:
    service, window, _ = requested
    receipt = opened(service, window, service.ask(window, "medicine-1", QUESTIONS["medicine"][1]))
    assert misplaced(receipt, window) == []
    last = len(receipt.body.documents) - 1
    assert misplaced(closed_at(receipt, last), window) == [
        f"position {receipt.body.positions[last]} has a null salt, and its tenant has no sample"
    ]


def test_a_text_withheld_from_one_answer_is_a_contradiction(
    requested: tuple[Service, Window, list[Answer]],
) -> None:
    """With noise, and with listing: the window decides which texts are returned, not the question."""
    service, window, answers = requested
    receipts = [opened(service, window, answer) for answer in answers]
    assert withheld_once(receipts, window.policy) == {}
    first = next(r for r in receipts if any(d.salt is not None for d in r.body.documents))
    place = next(n for n, d in enumerate(first.body.documents) if d.salt is not None)
    result = withheld_once([first, closed_at(first, place)], window.policy)
    if window.policy.mechanism_of("law").name == "sampling":
        assert result == {}
    else:
        assert list(result) == [1]
        assert result[1].startswith(
            f"position {first.body.positions[place]} has a null salt, and a salt in the receipt of record"
            f" {first.record.seq}:"
        )


# -- many windows through the engine --------------------------------------------------------------------------

CAPACITY, TARGET = 64, "Bail is money paid to release an accused person until the trial."
OTHERS = [
    "A contract is an agreement between parties.", "A tort is a civil wrong.", "Aspirin reduces fever.",
    "Insulin lowers glucose.", "Copyright protects authors.", "A vaccine trains the immune system.",
]  # fmt: skip
WORDS = ("bail", "fever", "contract")
"""Questions of one word: few documents have a positive score, so that positions of score 0 fill the lists."""
EMBEDDER = get_embedder()


def policy_of(mechanism: Mechanism, top_k: int) -> Policy:
    return draft(
        window="w", opens_at=1_000, closes_at=2_000, capacities={"law": CAPACITY}, n=3, k_max=1, eps_acc="14",
        gains=(1, 4), lattice=64, top_k=top_k, mechanisms={"law": mechanism},
    )  # fmt: skip


ROWS = EMBEDDER.embed_documents([TARGET, *OTHERS])
ASKED = [OpenedQuery(word, bytes([i]) * 32, EMBEDDER) for i, word in enumerate(WORDS)]


def tenant_of(positions: Sequence[int], *, target: bool) -> CommittedTenant:
    """The committed tenant, as far as an answer needs it, with or without the target at the first position."""
    rows = np.zeros((CAPACITY, ROWS.shape[1]), np.int8)
    rows[list(positions)] = ROWS
    filled = {p: Passage(text) for p, text in zip(positions, [TARGET, *OTHERS], strict=True)}
    if not target:
        rows[positions[0]] = 0
        del filled[positions[0]]
    documents = SimpleNamespace(inclusion_path=lambda position, size: [])
    result = SimpleNamespace(
        entry=SimpleNamespace(tenant="law"), index=TenantIndex(rows, tuple(filled)), documents_at=filled,
        documents=documents, name_at=lambda position: None,
    )  # fmt: skip
    return cast(CommittedTenant, result)


SECRETS = WindowSecrets(s0=1, s1=2, index_salts={"law": 3}, document_key=b"d" * 32, retention_key=b"r" * 32)


def answers_of(
    number: int, policy: Policy, tenant: CommittedTenant, kept: Int8Array
) -> list[tuple[tuple[int, ...], list[AnsweredDocument], list[DocumentOpening]]]:
    """What one account is answered in a window: positions, texts and openings of each of its questions."""
    mechanism, result = serving(policy.mechanism_of("law")), []
    for i, query in enumerate(ASKED):
        kappa = 1_000_000 * (i + 1) + number
        drawn = mechanism.draw(kappa, CAPACITY)
        (selected,) = mechanism.select(tenant.index, [Asked(query.vector, drawn)], {"sample": kept})
        assert not isinstance(selected, Exception)
        positions = tuple(selected)
        withheld = mechanism.withheld(
            tenant.index,
            lambda query=query: query.vector,
            positions,
            columns={"sample": kept},
            documents=tenant.documents_at,
        )
        texts = steps.documents_of(tenant, positions, withheld)
        result.append((positions, texts, steps.document_openings(tenant, positions, SECRETS, withheld)))
    return result


def returned(answers: Sequence[tuple[object, Sequence[AnsweredDocument], object]]) -> bool:
    return any(document.text == TARGET for _, texts, _ in answers for document in texts)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_window_that_never_returns_a_document_is_like_one_without_it(kind: str) -> None:
    """Under the same coins and noise: everything that the account reads, digests that stay closed aside."""
    policy, random, unlisted, closed = policy_of(MECHANISMS[kind], 6), Random(5), 0, 0
    for number in range(150):
        positions = random.sample(range(CAPACITY), len(ROWS))
        kept = draw_bernoulli_bits(number, CAPACITY, HALF)
        with_it, without = (
            answers_of(number, policy, tenant_of(positions, target=target), kept) for target in (True, False)
        )
        if not kept[positions[0]]:
            assert not returned(with_it)
        if returned(with_it):
            continue
        unlisted += 1
        for (listed, texts, openings), (listed_0, texts_0, openings_0) in zip(with_it, without, strict=True):
            assert (listed, texts) == (listed_0, texts_0)
            assert [d.salt for d in openings] == [d.salt for d in openings_0]
            closed += positions[0] in listed
    assert unlisted > 50 and closed, "the windows do not show what they are drawn for"


def test_the_factor_of_a_sampled_tenant_is_the_printed_one() -> None:
    """The exclusion factor at N = 64 with questions of one word, from below by Clopper and Pearson's limit (97.5 %).

    With the texts of positions of score 0 the same windows show a factor above 14, where 10 is printed.
    """
    mechanism = Sampling(keep=PROBABILITY_RANGE - TENTH)
    policy, random, windows, missing, padded = policy_of(mechanism, 32), Random(6), 3_000, 0, 0
    for number in range(windows):
        positions = random.sample(range(CAPACITY), len(ROWS))
        kept = draw_bernoulli_bits(number, CAPACITY, PROBABILITY_RANGE - TENTH)
        answers = answers_of(number, policy, tenant_of(positions, target=True), kept)
        missing += not returned(answers)
        padded += not returned(answers) and not any(positions[0] in listed for listed, _, _ in answers)
    assert windows / missing == pytest.approx(10, rel=0.15)
    assert 1 / beta.ppf(0.975, missing + 1, windows - missing) <= 10
    assert 1 / beta.ppf(0.975, padded + 1, windows - padded) > 14, "lists are not padded here"


def test_canonical_receipts_hold_a_closed_digest() -> None:
    header = DocumentOpening(hash="a" * 64, salt=None, path=[])
    assert b'"salt":null' in jcs(header.dump())
