"""Windows whose tenants list by randomised response: what is handed out, what accounts hold, and one cheater a
check."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs, read_json
from rag_audit.account.account import embedder_of
from rag_audit.account.disclosed_documents import DisclosedDocuments
from rag_audit.attest.window import Window
from rag_audit.errors import ExitCode, SchemaError, SizeError, StoreError, WitnessError
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.randomized_response import ListRules, RandomizedResponse
from rag_audit.models.publication import Publication
from rag_audit.models.receipts import contradictions, open_receipt
from rag_audit.models.records import CountersignedReceipt, QueryRecord, SlotKey
from rag_audit.models.requests import AnsweredDocument
from rag_audit.proofs.statements.private import RandomizedResponsePrivate
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.native_secrets import listed_commitment
from rag_audit.retrieval.serving.randomized_response import reference_listed
from tests.window.forge import Forge
from tests.window.outcomes import exit_codes, not_passed
from tests.window.simulator import QUESTIONS, Finished, Service, finished_window

KEEP = 7 * PROBABILITY_RANGE // 10
RANDOMIZED_RESPONSE = RandomizedResponse(keep=KEEP, rules=ListRules(PROBABILITY_RANGE // 4, 3, 60))
MECHANISMS = {"law": RANDOMIZED_RESPONSE, "medicine": Noise()}
ACCEPTED: dict[str, Any] = {
    "mechanisms": ["noise", "randomized-response"],
    "min_keep": "0.7",
    "max_K_share": "0.375",
}
FAIL, UNDECIDED, UNMET = ExitCode.FAIL, ExitCode.MALFORMED, ExitCode.UNMET


@pytest.fixture(scope="session")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A listing tenant beside one with noise, both proved by the scan argument.

    Chance lists each of the 8 positions with probability 1/4, so about one window in a hundred ends with accounts that
    hold nothing when they ask again. The fixture makes another window then: six in a row do not occur.
    """
    for _ in range(6):
        result = finished_window(tmp_path_factory.mktemp("listed"), system="scan", mechanisms=MECHANISMS)
        with resumed(result) as window:
            if records_that_hold(window):
                return result
    raise AssertionError("no account held a position in any of six windows")


def records_that_hold(window: Window) -> list[QueryRecord]:
    """The records of accounts that held a position when they asked."""
    later = [r for r in window.records if r.tenant == "law" and r.i > 1]
    return [r for r in later if any(getattr(window.prover.private(r).randomized_response, "disclosed", b""))]


@pytest.fixture(scope="session")
def listed_by_circuit(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The same with a groth16 tenant."""
    systems = {"law": "groth16", "medicine": "scan"}
    return finished_window(tmp_path_factory.mktemp("listed"), system=systems, mechanisms=MECHANISMS)


def resumed(finished: Finished) -> Window:
    return Window.resume(finished.window, key=finished.service.key, clock=finished.service.clock)


def lists_of(window: Window, account: str) -> list[set[int]]:
    mine = sorted((r for r in window.records if r.account == account), key=lambda r: r.i)
    return [set(window.context.retained(r).positions) for r in mine]


def test_lists_are_proved_and_bounded_over_all_outcomes(listed: Finished) -> None:
    verdict = listed.verify(require=ACCEPTED)
    assert verdict.passed, verdict.deciding
    assert "mechanisms=law:randomized-response,medicine:noise" in verdict.line
    figures = verdict.figures["tenants"]
    assert figures["law"]["eps"] not in ("inf", "0") and figures["law"]["exclusion_factor"] == "18.729"
    assert (
        figures["law"]["exclusion_factor_all_accounts"] == "44.395"
    )  # nine queries, at a chance of a quarter
    assert {"ledger.sample", "ledger.disclosed_set", "proof.chain", "proof.sample.law"} <= {
        c.id for c in verdict.checks
    }
    assert verdict.figures["eps_realised"] != "inf"


def test_small_tenants_list_by_a_circuit(listed_by_circuit: Finished, tmp_path: Path) -> None:
    verdict = listed_by_circuit.verify(require=ACCEPTED)
    assert verdict.passed, verdict.deciding
    assert "proofs=groth16+scan" in verdict.line and "law:randomized-response" in verdict.line
    for cheat, check in (
        (swap_disclosed, "proof.valid.law"),
        (no_disclosed_set, "ledger.disclosed_set"),
        (swap_proofs, "proof.valid.law"),
    ):
        forge = Forge(listed_by_circuit)
        cheat(forge)
        forge.drop_receipts_of("law-1")
        forge.drop_receipts_of("law-2")
        folder = tmp_path / cheat.__name__
        folder.mkdir()
        result = {c.id for c in forge.verify(folder, require=ACCEPTED).checks if c.status.exit_code is FAIL}
        assert check in result, cheat.__name__


def test_answers_are_the_first_winners_and_are_handed_out_once(listed: Finished) -> None:
    with resumed(listed) as window:
        mechanism = window.policy.mechanism_of("law")
        kept = window.samples.bits("law")["sample"]
        assert isinstance(mechanism, RandomizedResponse)
        for record in (r for r in window.records if r.tenant == "law"):
            retained = window.context.retained(record)
            slot = SlotKey(record.tenant, record.account, record.i)
            held, chance = window.prover._disclosed.before(slot), window.context.drawn(slot)
            vector = retained.opened(window.context.embedder).vector
            index = window.commitment.tenants["law"].index
            expected = reference_listed(
                index, vector, mechanism.rules, sampled=kept, disclosed=held, flips=chance
            )
            assert list(retained.positions) == expected
            salt = retained.opened(window.context.embedder).salts.top_k
            assert int(record.htopk, 16) == listed_commitment(salt, retained.positions, 8)
        for account in ("law-1", "law-2"):
            union: set[int] = set()
            for i, positions in enumerate(lists_of(window, account), 1):
                assert set(window.prover._disclosed.before(SlotKey("law", account, i)).nonzero()[0]) == union
                union |= positions


def test_an_account_ranks_what_it_holds(listed: Finished) -> None:
    publication = Publication.load(listed.window / "public")
    with resumed(listed) as window:
        union = set().union(*lists_of(window, "law-1"))
        texts, kept = window.commitment.tenants["law"].documents_at, window.samples.bits("law")["sample"]
    assert kept is not None
    disclosed_documents = listed.service.accounts["law-1"].disclosed_documents(publication)
    held = {p: d.passage for p, d in disclosed_documents.documents.items()}
    assert held == {p: texts[p] for p in union if p in texts and kept[p]}
    embedder = embedder_of(publication)
    best = disclosed_documents.best(QUESTIONS["law"][0], embedder, 2)
    query = embedder.embed_query(QUESTIONS["law"][0]).astype(int)
    scores = {p: int(embedder.embed_documents([d.text])[0].astype(int) @ query) for p, d in held.items()}
    assert [d.position for d in best] == sorted(scores, key=lambda p: (-scores[p], p))[:2]
    assert listed.service.accounts["medicine-1"].disclosed_documents(publication).documents == {}


ONE = AnsweredDocument(position=1, text="one", metadata={"source": "first.txt"})


def handed(*documents: tuple[int, str]) -> list[AnsweredDocument]:
    return [AnsweredDocument(position=position, text=text, metadata={}) for position, text in documents]


def test_holdings_survive_a_crash_and_belong_to_one_window(tmp_path: Path) -> None:
    path = tmp_path / "held.jsonl"
    store = DisclosedDocuments(path, "11" * 32)
    store.add(handed((3, "three"), (5, "fünf")))
    store.add([*handed((3, "again")), ONE])
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        again = DisclosedDocuments(path, "11" * 32)
        known = dict(again.documents)
        again.add([*handed((3, "three"), (5, "fünf")), ONE])
        assert list(DisclosedDocuments(path, "11" * 32).documents.values()) == [
            *handed((3, "three"), (5, "fünf")),
            ONE,
        ], (cut, known)
    with pytest.raises(SchemaError):
        _ = DisclosedDocuments(path, "22" * 32).documents
    assert path.stat().st_mode & 0o077 == 0


def test_no_more_is_held_than_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "held.jsonl"
    DisclosedDocuments(path, "11" * 32).add(handed((3, "three")))
    before = path.read_bytes()
    monkeypatch.setattr("rag_audit.account.disclosed_documents.MAX_DISCLOSED_BYTES", len(before) + 10)
    with pytest.raises(SizeError) as caught:
        DisclosedDocuments(path, "11" * 32).add(handed((4, "four")))
    assert caught.value.hint and path.read_bytes() == before


def test_a_text_that_nobody_can_embed_ends_no_search(tmp_path: Path, listed: Finished) -> None:
    embedder = embedder_of(Publication.load(listed.window / "public"))
    store = DisclosedDocuments(tmp_path / "held.jsonl", "11" * 32)
    store.add(handed((3, " "), (1, ""), (2, "Bail is money paid to release an accused person.")))
    assert [d.position for d in store.best("What is bail?", embedder, 5)] == [2, 3]


def test_a_capacity_beyond_the_policys_is_no_size_to_work_at(listed: Finished) -> None:
    """The provider's own entry may say anything; nothing is made of that size."""
    path = sorted(listed.receipts.glob("law-1-*.json"))[0]
    value = CountersignedReceipt.parse(read_json(path, max_bytes=1 << 20), field="receipt")
    with resumed(listed) as window:
        opened = open_receipt(
            value.receipt, origin=window.header.origin, header_digest=window.header_digest,
            log_key=listed.service.key.verifier, field="receipt",
        )  # fmt: skip
        entry = window.commitment.tenants["law"].entry
        assert contradictions(opened, entry, window.policy) == []
        vast = entry.model_copy(update={"capacity": (1 << 53) - 1})
        assert "capacity" in contradictions(opened, vast, window.policy)[0]


def test_a_relying_party_has_to_accept_listing_and_ask_for_everything(listed: Finished) -> None:
    verdict = listed.verify(require={**ACCEPTED, "mechanisms": ["noise"]})
    assert verdict.exit_code is UNMET
    assert not_passed(verdict) == {"trust.mechanisms"}
    verdict = listed.verify(require={**ACCEPTED, "max_epsilon": "3"})
    assert verdict.deciding is not None and verdict.deciding.id == "trust.max_epsilon"
    sampled = {"mode": "sampled", "beta": "0.5", "eta": "0.5", "challenge": "published"}
    verdict = listed.verify(require={**ACCEPTED, **sampled})
    assert verdict.exit_code is UNDECIDED
    assert "proof.chain" in not_passed(verdict)


def test_the_chain_goes_on_after_a_stop(service: Service) -> None:
    window = service.open(system="scan", mechanisms=MECHANISMS)
    service.ask(window, "law-1", QUESTIONS["law"][0])
    window.shut()
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        service.ask(again, "law-1", QUESTIONS["law"][1])
        first, second = again.records
        assert first.disclosed_set is not None and first.disclosed_set != second.disclosed_set
        assert not set.intersection(*lists_of(again, "law-1")) - chances(again, "law-1", 2)
        assert again.prove() > 0


def chances(window: Window, account: str, i: int) -> set[int]:
    """The positions that chance lists, which it does again."""
    return set(window.context.drawn(SlotKey("law", account, i)).nonzero()[0])


# -- cheaters --------------------------------------------------------------------------------------------------


def test_what_an_account_holds_cannot_be_forgotten(listed: Finished, tmp_path: Path) -> None:
    """A provider that starts the chain again, so that its account is handed everything a second time, has a proof of
    it, but not about the ledger's commitments; and none at all for the bits under them."""
    with resumed(listed) as window:
        record = records_that_hold(window)[0]
        honest = window.prover.private(record)
        assert honest.randomized_response is not None
        nothing = bytes(len(honest.randomized_response.disclosed))

        def job(lie: RandomizedResponsePrivate) -> Any:
            private = copy.copy(honest)
            object.__setattr__(private, "randomized_response", lie)
            return window.prover.proofs("law", "retrieve", 1).prove(
                {"record": window.prover._public(record)}, [private]
            )

        after, before = honest.randomized_response.after, honest.randomized_response.before
        for lie in (
            RandomizedResponsePrivate(nothing, before, after),
            RandomizedResponsePrivate(nothing, None, after),
        ):
            try:
                result = job(lie).run()
            except WitnessError:
                continue
            forge = Forge(listed)
            slot = record.account, record.i
            forge.proofs[slot] = {**forge.proofs[slot], "retrieve": result}
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            folder.mkdir()
            verdict = forge.verify(folder, require=ACCEPTED)
            assert {c.id for c in verdict.checks if c.status.exit_code is FAIL} == {"proof.valid.law"}


def swap_disclosed(forge: Forge) -> None:
    """Two accounts' chains, one for the other."""
    mine, other = forge.record("law-1", 1), forge.record("law-2", 1)
    mine["disclosed_set"], other["disclosed_set"] = other["disclosed_set"], mine["disclosed_set"]


def swap_proofs(forge: Forge) -> None:
    """An account's two records, each with the other's proof of its list."""
    first, second = forge.proofs["law-1", 1], forge.proofs["law-1", 2]
    forge.proofs["law-1", 1] = {**first, "retrieve": second["retrieve"]}
    forge.proofs["law-1", 2] = {**second, "retrieve": first["retrieve"]}


def no_disclosed_set(forge: Forge) -> None:
    forge.record("law-1", 1)["disclosed_set"] = None


def disclosed_set_of_a_noise_tenant(forge: Forge) -> None:
    forge.record("medicine-1", 1)["disclosed_set"] = "11" * 32


def rolled_back(forge: Forge) -> None:
    """The second record starts from nothing, as the first did."""
    proof = copy.deepcopy(forge.proofs["law-1", 2])
    proof["retrieve"]["before"] = forge.proofs["law-1", 1]["retrieve"]["before"]
    forge.proofs["law-1", 2] = proof


def a_changed_certificate(forge: Forge) -> None:
    proof = copy.deepcopy(forge.proofs["law-1", 2])
    raw = bytearray(base64.b64decode(proof["retrieve"]["noise_proof"]))
    raw[-1] ^= 1
    proof["retrieve"]["noise_proof"] = base64.b64encode(bytes(raw)).decode()
    forge.proofs["law-1", 2] = proof


def another_slots_coins(forge: Forge) -> None:
    proof = copy.deepcopy(forge.proofs["law-1", 2])
    proof["retrieve"]["noise_proof"] = forge.proofs["law-1", 1]["retrieve"]["noise_proof"]
    forge.proofs["law-1", 2] = proof


def the_threshold_moved(forge: Forge) -> None:
    forge.policy["tenants"][0]["threshold"] += 1


def the_chance_moved(forge: Forge) -> None:
    forge.policy["tenants"][0]["flip_probability"] += 1


def longer_lists(forge: Forge) -> None:
    forge.policy["tenants"][0]["listed_max"] += 1


CASES: list[tuple[Callable[[Forge], None], ExitCode, str]] = [
    (swap_disclosed, FAIL, "proof.valid.law"),
    (no_disclosed_set, FAIL, "ledger.disclosed_set"),
    (disclosed_set_of_a_noise_tenant, FAIL, "ledger.disclosed_set"),
    (rolled_back, FAIL, "proof.valid.law"),
    (a_changed_certificate, FAIL, "proof.valid.law"),
    (another_slots_coins, FAIL, "proof.valid.law"),
    (the_threshold_moved, FAIL, "proof.sample.law"),
    (the_chance_moved, FAIL, "proof.sample.law"),
    (longer_lists, FAIL, "proof.sample.law"),
]


@pytest.mark.parametrize("cheat, outcome, check", CASES, ids=[case[0].__name__ for case in CASES])
def test_a_cheater_fails_at_its_own_check(
    cheat: Callable[[Forge], None], outcome: ExitCode, check: str, listed: Finished, tmp_path: Path
) -> None:
    forge = Forge(listed)
    cheat(forge)
    forge.drop_receipts_of("law-1")
    forge.drop_receipts_of("law-2")
    verdict = forge.verify(tmp_path, require=ACCEPTED)
    result = exit_codes(verdict)
    assert result.get(check) is outcome, result


def test_a_lost_record_of_the_chain_is_said(service: Service) -> None:
    window = service.open(system="scan", mechanisms=MECHANISMS)
    service.ask(window, "law-1", QUESTIONS["law"][0])
    service.ask(window, "law-1", QUESTIONS["law"][1])
    record = window.state.by_slot.pop(("law-1", 1))
    with pytest.raises(StoreError, match="record"):
        window.prover.private(window.state.by_slot["law-1", 2])
    assert jcs(record.dump())
    window.shut()
