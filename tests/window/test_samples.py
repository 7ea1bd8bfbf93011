"""Windows whose tenants sample, or have no noise: honest ones, interrupted ones, and one cheater a check."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_audit.attest.window import Window
from rag_audit.errors import ExitCode, PolicyError, StoreError, WitnessError
from rag_audit.mechanisms.accounting import text
from rag_audit.mechanisms.accounting.bernoulli import NoisedSampling
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.none import Exact
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.records import ColumnEntry, SlotKey
from rag_audit.models.windowfile import WindowFile
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.commitments import noise_key, sampling_slot
from rag_audit.relation.draws import bernoulli_bits
from rag_audit.relation.field import digest_to_field
from rag_audit.report import render
from rag_audit.report.export import write_snarkjs
from rag_audit.retrieval.engine import reference_select
from tests.simulate import kinds
from tests.window.forge import Forge
from tests.window.outcomes import exit_codes, not_passed
from tests.window.simulator import QUESTIONS, Finished, Service, finished_window

KEEP = 7 * PROBABILITY_RANGE // 10
MECHANISMS = {"law": Sampling(keep=KEEP), "medicine": Noise(keep=KEEP)}
SYSTEMS = {"law": "scan", "medicine": "groth16"}
ACCEPTED: dict[str, Any] = {
    "mechanisms": ["noise", "sampling"],
    "max_exclusion_factor": "3.3334",
    "min_keep": "0.7",
}
FAIL, UNDECIDED, UNMET = ExitCode.FAIL, ExitCode.MALFORMED, ExitCode.UNMET


@pytest.fixture(scope="session")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A scan tenant that samples without noise, and a groth16 tenant that samples beside its noise."""
    return finished_window(tmp_path_factory.mktemp("sampled"), system=SYSTEMS, mechanisms=MECHANISMS)


@pytest.fixture(scope="session")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Neither noise nor samples: integrity alone, in both systems."""
    mechanism = Exact()
    return finished_window(
        tmp_path_factory.mktemp("exact"),
        rounds=2,
        system=SYSTEMS,
        mechanisms={"law": mechanism, "medicine": mechanism},
    )


def resumed(finished: Finished) -> Window:
    return Window.resume(finished.window, key=finished.service.key, clock=finished.service.clock)


def test_a_text_withheld_from_one_of_two_answers_fails_the_window(sampled: Finished, tmp_path: Path) -> None:
    """Beside noise, the window decides which texts are returned: one receipt opens a position, the other does not."""
    forge = Forge(sampled)
    held = forge.receipt("medicine-1", 1)
    other = copy.deepcopy(held)
    held.body["documents"][0]["salt"] = "b" * 64
    other.body["documents"][0]["salt"] = None
    forge.receipts.append(other)
    verdict = forge.verify(tmp_path, require=ACCEPTED)
    assert verdict.exit_code is FAIL and verdict.deciding is not None
    assert verdict.deciding.id == "receipt.consistent"
    assert "null salt, and a salt in the receipt of record" in verdict.deciding.actual


def test_the_sample_is_proved_once_and_every_record_about_it(sampled: Finished) -> None:
    verdict = sampled.verify(require=ACCEPTED)
    assert verdict.passed, verdict.deciding
    # Of the tenant with noise, two of eight positions at each of the six or nine queries of two or three accounts.
    few, many = (text(NoisedSampling(KEEP, 2, 8).exclusion_factor(3 * accounts)) for accounts in (2, 3))
    assert (
        f"eps_audit=none(sampling) exclusion_factor={few} exclusion_factor_all_accounts={many} positions_per_document=1"
        " delta=1e-5 k_max=2 decisive=law mechanisms=law:sampling,medicine:noise" in verdict.line
    )
    assert verdict.figures["tenants"]["law"]["exclusion_factor"] == "3.3334"
    assert any("No proof covers this rule yet" in line for line in verdict.does_not_prove)
    kinds = [e["type"] for e in sampled.value()["entries"]]
    assert kinds[:4] == ["header", "beacon", "sample", "sample"] and kinds.count("sample") == 2
    assert {"proof.sample.law", "proof.sample.medicine", "ledger.sample"} <= {c.id for c in verdict.checks}
    figures = verdict.figures
    assert figures["listable"] == {"law": 6, "medicine": 6}
    assert figures["tenants"]["medicine"]["eps"] != "inf" == figures["tenants"]["law"]["eps"]
    report = render(verdict)
    assert "becomes more likely by a factor of at most 3.3334 for k_max accounts" in " ".join(report.split())
    assert "law: at most 6 of its positions were listed" in report


def test_answers_are_exact_among_what_the_coins_keep(sampled: Finished) -> None:
    with resumed(sampled) as window:
        secrets, beacon = window.commitment.secrets, digest_to_field(window.state.beacons[0])
        for tenant in ("law", "medicine"):
            slot = sampling_slot("w-1", tenant)
            bits = bernoulli_bits(noise_key(secrets.s0, secrets.s1, beacon, slot), 8, KEEP)
            kept = window.samples.bits(tenant)["sample"]
            assert kept.tolist() == [int(b) for b in bits]
        for record in window.records:
            retained, tenant = window.context.retained(record), window.commitment.tenants[record.tenant]
            rules = window.policy.mechanism_of(record.tenant)
            noise = window.context.drawn(SlotKey(record.tenant, record.account, record.i))
            assert bool(noise.any()) == (record.tenant == "medicine")
            vector = retained.opened(window.context.embedder).vector
            expected = reference_select(
                tenant.index, vector, noise, rules.window, 2, window.samples.bits(record.tenant)["sample"]
            )
            assert list(retained.positions) == expected


def test_a_relying_party_has_to_accept_the_mechanism_and_its_figure(sampled: Finished) -> None:
    verdict = sampled.verify()
    assert verdict.exit_code is UNMET
    assert not_passed(verdict) == {"trust.mechanisms", "trust.max_exclusion_factor", "trust.min_keep"}
    verdict = sampled.verify(require={**ACCEPTED, "max_exclusion_factor": "3.3333"})
    assert not_passed(verdict) == {"trust.max_exclusion_factor"}
    for minimum in (None, "0.71"):
        verdict = sampled.verify(require={**ACCEPTED, "min_keep": minimum})
        assert not_passed(verdict) == {"trust.min_keep"}
    verdict = sampled.verify(require=ACCEPTED, max_epsilon="60")
    assert not_passed(verdict) == {"trust.max_epsilon"}, "an option asks of the whole window"
    verdict = sampled.verify(require={**ACCEPTED, "max_epsilon": "1"})
    assert not_passed(verdict) == {"trust.max_epsilon"}, "of the tenant that has noise"


def test_integrity_alone_is_no_pass(exact: Finished) -> None:
    verdict = exact.verify()
    assert verdict.exit_code is UNMET and not_passed(verdict) == {"trust.mechanisms"}
    verdict = exact.verify(require={"mechanisms": ["none"]})
    assert verdict.passed, verdict.deciding
    assert verdict.line.startswith("PASS-INTEGRITY eps_audit=none(none) delta=")
    assert not any(e["type"] == "sample" for e in exact.value()["entries"])
    values = exact.value()["proofs"].values()
    assert {p["retrieve"].get("noise_proof") for p in values} == {None, ""}, "no noise, no certificate"


def test_exact_answers_of_both_systems_are_those_of_the_reference(exact: Finished) -> None:
    with resumed(exact) as window:
        for record in window.records:
            tenant, silent = window.commitment.tenants[record.tenant], np.zeros(8, np.int32)
            retained = window.context.retained(record)
            vector = retained.opened(window.context.embedder).vector
            rules = window.policy.mechanism_of(record.tenant)
            assert list(retained.positions) == reference_select(tenant.index, vector, silent, rules.window, 2)


def test_scores_that_say_nothing_are_no_pass(exact: Finished, tmp_path: Path) -> None:
    """A window that begins above all scores makes every score 0, and positions are the provider's to choose."""
    for lo, hi in ((300, 4096), (0, 279)):
        forge = Forge(exact)
        for tenant in forge.policy["tenants"]:
            tenant["scores"] |= {"lo": lo, "hi": hi}
        folder = tmp_path / f"{lo}"
        folder.mkdir()
        verdict = forge.verify(folder, require={"mechanisms": ["none"]})
        assert "trust.min_score_width" in not_passed(verdict)


def test_sampled_mode_keeps_its_name(exact: Finished) -> None:
    sampled = {
        "mode": "sampled",
        "beta": "0.9",
        "eta": "0.9",
        "challenge": "published",
        "mechanisms": ["none"],
    }
    assert exact.verify(require=sampled).line.startswith(
        "PASS-INTEGRITY-SAMPLED eps_if_conforming=none(none)"
    )


def test_a_policy_without_what_its_noise_needs_is_refused_by_name(sampled: Finished) -> None:
    for name in ("eps_acc", "delta_acc", "calibration", "sigma"):
        value = sampled.value()
        value["policy"][name] = None
        with pytest.raises(PolicyError) as caught:
            sampled.verify(WindowFile.parse(value, field="window.json"))
        assert caught.value.field == f"policy.{name}"


def test_what_is_written_for_snarkjs_has_the_sample(sampled: Finished, tmp_path: Path) -> None:
    """Statements are rebuilt as a verifier does; the native verifier stands in for snarkjs, which takes long."""
    assert write_snarkjs(sampled.file, tmp_path) > 3
    result = {p["statement"] for p in json.loads((tmp_path / "index.json").read_text())["proofs"]}
    assert result == {"sample", "retrieve", "embed"}
    inputs = json.loads((tmp_path / "sample-medicine" / "public.json").read_text())
    entry = next(e for e in sampled.value()["entries"] if e["type"] == "sample" and e["tenant"] == "medicine")
    assert inputs[-1] == str(int(entry["commitment"], 16)) and inputs[-2] == str(KEEP)


# -- interruptions ---------------------------------------------------------------------------------------------


def test_an_interrupted_sample_goes_on_with_the_stored_commitment(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = service.commit(system="scan", mechanisms={**MECHANISMS, "medicine": Noise()})
    append, failed = window.state.append, []

    def once(entry: Any, **more: Any) -> Any:
        if isinstance(entry, ColumnEntry) and not failed:
            failed.append(True)
            raise StoreError("the disk is full")
        return append(entry, **more)

    monkeypatch.setattr(window.state, "append", once)
    with pytest.raises(StoreError):
        service.cosign_header(window)
    stored = (window.directory / "sample-law").read_bytes()
    proof = (window.directory / "proofs" / "sample-law.json").read_bytes()
    window.shut()
    service.clock.now = window.header.opens_at
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        assert ("law", "sample") not in again.state.columns
        service.ask(again, "law-1", QUESTIONS["law"][0])  # the first query makes good for it
        assert again.state.columns["law", "sample"].seq == 2 < again.records[0].seq
        assert (again.directory / "sample-law").read_bytes() == stored
        assert (again.directory / "proofs" / "sample-law.json").read_bytes() == proof
        assert again.samples.commit() == 0


def test_a_window_is_not_closed_before_its_samples_are_committed_to(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = service.commit(system="scan", mechanisms={**MECHANISMS, "medicine": Noise()})
    with monkeypatch.context() as patched:
        patched.setattr(
            window.samples, "_prove", lambda *_, **__: (_ for _ in ()).throw(StoreError("no memory"))
        )
        with pytest.raises(StoreError):
            service.cosign_header(window)
    service.clock.now = window.header.opens_at
    service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
    assert ("law", "sample") not in window.state.columns
    window.close()
    assert window.state.columns["law", "sample"].seq < len(window.state.entries) - 1
    window.shut()


def test_certificates_are_made_ahead_for_noise_that_is_sampled(service: Service) -> None:
    both = {"law": Noise(keep=KEEP), "medicine": Sampling(keep=KEEP)}
    with service.open(system="scan", mechanisms=both) as window:
        assert window.precompute_noise_proofs(1) == 2, (
            "law's two accounts; without noise there is nothing to certify"
        )
        service.ask(window, "law-1", QUESTIONS["law"][0], eager=True)


def test_a_lost_opening_is_said_and_never_replaced(service: Service) -> None:
    window = service.open(system="scan", mechanisms={**MECHANISMS, "medicine": Noise()})
    service.ask(window, "law-1", QUESTIONS["law"][0])
    window.shut()
    path = window.directory / "sample-law"
    whole = path.read_bytes()
    for damaged in (None, whole[:-1], whole[:64] + b"\0" + whole[65:], b""):
        path.unlink(missing_ok=True)
        if damaged is not None:
            path.write_bytes(damaged)
        with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
            with pytest.raises(StoreError):
                again.prove()
            service.ask(again, "law-2", QUESTIONS["law"][1]) if damaged is None else None
            assert again.state.columns["law", "sample"].seq == 2
    path.write_bytes(whole)
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        assert again.prove() > 0


def test_secrets_of_the_sample_stay_private(sampled: Finished) -> None:
    assert (sampled.window / "sample-law").stat().st_mode & 0o077 == 0
    with resumed(sampled) as window:
        opening = window.samples.opening("law")
        assert opening is not None
        bits, blindings = opening
        assert "blindings" not in repr(window.samples._column("law", "sample")) and "opening=" not in repr(
            window.samples._column("law", "sample")
        )
        public = (sampled.window / "public" / "window.json").read_bytes()
        for secret in (blindings[:32], bits):
            assert secret not in public and secret.hex().encode() not in public


# -- cheaters --------------------------------------------------------------------------------------------------


def test_an_answer_that_ignores_the_sample_has_no_proof(sampled: Finished) -> None:
    with resumed(sampled) as window:
        for record in window.records:
            private, public = window.prover.private(record), window.samples.public(record.tenant)
            assert private.sample is not None
            bits, opening = private.sample
            # A flipped bit changes the list if the best listed position loses its score and another one has a score,
            # or if an unsampled position gets a score and so a place in front of others.
            if window.policy.mechanism_of(record.tenant).noised:
                continue
            scored = window.policy.mechanism_of(record.tenant).window
            scores = np.frombuffer(private.scores(), np.int32)
            above = scored.lo + (scored.hi - scored.lo) // scored.lattice + 1
            scoring = [p for p in np.argsort(-scores).tolist() if scores[p] > above]
            listed = [p for p in scoring if bits[p]]
            first = scoring[: len(private.positions)]
            unsampled = [p for p in first if not bits[p] and p != private.positions[0]]
            chosen = listed[:1] if len(listed) > 1 else unsampled[:1]
            if not chosen:
                continue
            flipped = bytearray(bits)
            flipped[chosen[0]] ^= 1
            forged = copy.copy(private)
            object.__setattr__(forged, "sample", (bytes(flipped), opening))
            proofs = window.prover.proofs(record.tenant, "retrieve", 1)
            job = proofs.prove({"record": window.prover._public(record)}, [forged])
            with pytest.raises(WitnessError):
                job.run()
            assert public.sample is not None
            return
    pytest.fail("no flipped bit changes the list of a record")


def edited(forge: Forge, place: int) -> None:
    """One bit of law's proof is another."""
    proof = bytearray(base64.b64decode(forge.samples["law"]["sample"]["proof"]))
    proof[place] ^= 1
    forge.samples["law"] = {
        "sample": {**forge.samples["law"]["sample"], "proof": base64.b64encode(proof).decode()}
    }


def a_changed_response(forge: Forge) -> None:
    edited(forge, -1)


def a_point_that_is_none(forge: Forge) -> None:
    forge.samples["law"] = {
        "sample": {**forge.samples["law"]["sample"], "proof": base64.b64encode(bytes(64)).decode()}
    }


def another_window(forge: Forge) -> None:
    for entry in forge.entries:
        if entry["type"] == "sample":
            entry["window"] = "w-2"


def the_policy_samples_more(forge: Forge) -> None:
    forge.policy["tenants"][0]["keep"] += 1


CASES: list[tuple[Callable[[Forge], None], ExitCode, str]] = [
    (kinds.sample_after_the_first_question, FAIL, "ledger.sample"),
    (kinds.sample_before_the_beacon, FAIL, "ledger.sample"),
    (kinds.sample_twice, FAIL, "ledger.sample"),
    (kinds.sample_of_nobody, FAIL, "ledger.sample"),
    (another_window, FAIL, "ledger.sequence"),
    (kinds.sample_by_choice, FAIL, "proof.sample.law"),
    (kinds.sample_exchanged, FAIL, "proof.sample.law"),
    (a_changed_response, FAIL, "proof.sample.law"),
    (a_point_that_is_none, UNDECIDED, "proof.sample.law"),
    (kinds.sample_without_proof, UNDECIDED, "proof.sample.law"),
    (the_policy_samples_more, FAIL, "proof.sample.law"),
]


@pytest.mark.parametrize("cheat, outcome, check", CASES, ids=[case[0].__name__ for case in CASES])
def test_a_cheater_fails_at_its_own_check(
    cheat: Callable[[Forge], None], outcome: ExitCode, check: str, sampled: Finished, tmp_path: Path
) -> None:
    forge = Forge(sampled)
    cheat(forge)
    verdict = forge.verify(tmp_path, require=ACCEPTED)
    result = exit_codes(verdict)
    assert result.get(check) is outcome, result
    if outcome is UNDECIDED:
        assert verdict.exit_code is UNDECIDED
