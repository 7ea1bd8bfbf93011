"""Windows with `query_embedding=proved` for an integer encoder, and malicious providers (docs/scan/encoder-embed.md)."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.errors import ExitCode, PolicyError, RequestRefused, WitnessError
from rag_audit._internal.words import PLAIN
from rag_audit.account import account
from rag_audit.attest.proving import Prover
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.manifest import ENCODER_ARTEFACT, PUBLISHED, manifest_digest
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.scan import key
from rag_audit.proofs.backends.scan.embed import TABLE_ARTEFACT
from rag_audit.proofs.backends.scan.encoder import EncoderJob
from rag_audit.proofs.backends.scan.key import EncoderArgument, points_json
from rag_audit.proofs.interface import Job
from rag_audit.report import claims
from rag_audit.report.model import Figures
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.retrieval.embedders.integer_bert import embedder
from rag_audit.retrieval.embedders.integer_bert.published import norm_factor
from rag_audit.retrieval.embedders.integer_bert.semantics import OutOfRange
from rag_audit.verify import policy_check
from tests.embedders import small_bert
from tests.window.forge import Forge
from tests.window.outcomes import not_passed
from tests.window.simulator import ORIGIN, Finished, Service
from tests.window.squad_window import squad_window

FOLDER = os.environ.get("RAG_AUDIT_MINILM") or None
FAIL, UNDECIDED, UNMET = ExitCode.FAIL, ExitCode.MALFORMED, ExitCode.UNMET
SHAPE = dataclasses.replace(small_bert.SHAPE, places=64)
PLACES = 32
DOCUMENTS = {
    "law": ["the law", "a court of law", "red house"],
    "medicine": ["fever", "a drug dose for pain", "the blue drug"],
}
QUESTIONS = {"law": ["the court", "a red house"], "medicine": ["fever and pain", "drug doses"]}
LEVEL = {"query_embedding": "proved", "allow_unsafe_setup": False, "max_epsilon": "1e9"}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_bert.write(tmp_path_factory.mktemp("model"), SHAPE)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_bert.write(tmp_path_factory.mktemp("other"), SHAPE, seed=1)


def opened(service: Service, name: str, **changes: Any) -> Window:
    values = {"tokens": (PLACES, 64), "system": "scan", "window": name, "top_k": 1}
    return service.open(name, documents=DOCUMENTS, **{**values, **changes})


def finished_window(service: Service, window: Window) -> Finished:
    """The window after two questions of one account of each tenant, proved completely. Random weights give all texts
    similar vectors, and more accounts would count as a coalition."""
    for tenant, questions in QUESTIONS.items():
        for question in questions:
            service.ask(window, f"{tenant}-1", question)
    service.finish(window)
    window.prove()
    receipts = service.receipts(window, window.directory / "receipts", disclose=False)
    window.shut()
    file = WindowFile.load(window.directory / "public")
    return Finished(service, window.directory, file, window.policy, receipts)


@pytest.fixture(scope="session")
def encoded(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Finished:
    service = Service(tmp_path_factory.mktemp("encoded"), embedder="bert-int", model=model)
    return finished_window(service, opened(service, "w-1"))


def require(finished: Finished, **changes: Any) -> dict[str, Any]:
    """The requirements that a window with the score window of this model meets."""
    noise = finished.policy.noise
    assert noise is not None
    return {**LEVEL, "max_score_hi": noise.hi, "min_score_width": noise.hi - noise.lo, **changes}


def test_windows_prove_the_query_embedding_of_an_integer_encoder(encoded: Finished) -> None:
    """Three windows of one service, without a disclosed question."""
    service, windows = encoded.service, [encoded]
    for name in ("w-2", "w-3"):
        previous = ClosedWindow.of(windows[-1].file, field="window.json").as_previous()
        service.clock.advance(7_200_000)
        windows.append(finished_window(service, opened(service, name, previous=previous)))
    for finished in windows:
        earlier = [w.window / "public" for w in windows[: windows.index(finished)]][-1:]
        verdict = finished.verify(require=require(finished), previous=earlier)
        assert verdict.passed, verdict.deciding
        assert "query_embedding=proved " in verdict.line and verdict.figures["proved"] == 4
    manifest = encoded.value()["embedder"]["embedder"]
    assert manifest["query_commitment"] == "tokens"
    assert manifest["artefacts"][ENCODER_ARTEFACT] in encoded.file.verification_keys
    lengths = {len(proof["embed"]["proof"]) for proof in Forge(encoded).proofs.values()}
    assert len(lengths) == 1  # texts of different lengths


def test_a_model_without_pin_is_not_proved(encoded: Finished) -> None:
    """The provider could have fitted the model to its index: the verdict names the reason."""
    trust = encoded.service.trust(encoded.policy, **require(encoded))
    pins = {k: v for k, v in trust.pins.embedder.items() if k != ENCODER_ARTEFACT}
    changed = trust.pins.model_copy(update={"embedder": pins})
    verdict = encoded.verify(trust=trust.model_copy(update={"pins": changed}))
    assert not_passed(verdict) == {"trust.query_embedding"} and verdict.exit_code is UNMET
    assert verdict.figures["query_embedding"] == "declared"
    assert any("trust.toml does not pin the model of bert-int" in note for note in verdict.notes)
    no_manifest = trust.pins.model_copy(update={"manifest": None})
    verdict = encoded.verify(trust=trust.model_copy(update={"pins": no_manifest}))
    assert not_passed(verdict) == {"trust.query_embedding"}
    assert any("trust.toml does not pin the manifest of bert-int" in note for note in verdict.notes)


def test_pins_are_decoded_only_under_their_pinned_digest(
    encoded: Finished, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def decoded(_: bytes) -> None:
        raise AssertionError("the pins were decoded")

    trust = encoded.service.trust(encoded.policy, **require(encoded))
    pins = {k: v for k, v in trust.pins.embedder.items() if k != ENCODER_ARTEFACT}
    changed = trust.pins.model_copy(update={"embedder": pins})
    monkeypatch.setattr(key, "_encoder", decoded)
    for engine in ("native", "reference"):
        verdict = encoded.verify(trust=trust.model_copy(update={"pins": changed}), engine=engine)
        assert not_passed(verdict) == {"trust.query_embedding"}
    committed = encoded.value()["embedder"]["embedder"]["artefacts"][ENCODER_ARTEFACT]
    forge = Forge(encoded)
    forge.value["verification_keys"][committed] = points_json(bytes(key.MAX_PINS_BYTES + 1))
    verdict = forge.verify(tmp_path, trust=trust)
    assert "proof.embed.key.law" in not_passed(verdict)
    assert any("too long" in str(c.actual) for c in verdict.checks), verdict.deciding


def test_the_level_before_a_window_needs_the_pins_of_its_encoder(encoded: Finished) -> None:
    trust = encoded.service.trust(encoded.policy, **require(encoded))
    manifest: Any = encoded.value()["embedder"]["embedder"]

    def level(**pins: Any) -> str:
        changed = trust.model_copy(update={"pins": trust.pins.model_copy(update=pins)})
        return policy_check._query_embedding(encoded.policy, changed, manifest)

    assert level() == "proved"
    assert level(embedder={TABLE_ARTEFACT: "00" * 32}) == level(manifest=None) == "re-executed"


def test_a_verifier_pins_no_digest_from_its_cache_alone(
    encoded: Finished, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = encoded.service
    witness = str(next(iter(service.witnesses.values())).vkey)
    words = ["verifier", "trust", "new", str(tmp_path / "trust.toml"), "--origin", ORIGIN, "--provider",
             str(service.key.verifier), "--witness", witness, "--embedder", "bert-int", "--model", str(model)]  # fmt: skip
    monkeypatch.setattr(embedder, "pins_digest", lambda _: "00" * 32)  # another process wrote the cache
    done = CliRunner().invoke(main, words)
    assert done.exit_code == UNDECIDED and "stored pins" in done.stderr, done.output
    monkeypatch.undo()
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output


def test_a_sampled_verdict_speaks_of_the_drawn_questions(encoded: Finished) -> None:
    """Proofs of two of four records say nothing about the vectors of the others."""
    for mode in ("full", "sampled"):
        figures = Figures.model_construct(query_embedding="proved", mode=mode, sampled=2)
        window = claims.Window(figures, *[None] * 4)  # type: ignore[arg-type]
        every, drawn = claims._questions(PLAIN, window), claims._questions_drawn(PLAIN, window)
        assert (every is None, drawn is None) == ((False, True) if mode == "full" else (True, False))
        assert drawn is None or "each of the 2 drawn questions" in drawn


def _embed(forge: Forge, slot: tuple[str, int]) -> dict[str, Any]:
    proof: dict[str, Any] = forge.proofs[slot]["embed"]
    return proof


def swapped(forge: Forge) -> None:
    """Two records have each other's proof with its name."""
    one, other = forge.proofs["law-1", 1], forge.proofs["law-1", 2]
    one["embed"], other["embed"] = other["embed"], one["embed"]


def renamed(forge: Forge) -> None:
    """A record has another record's proof under its own name."""
    _embed(forge, ("law-1", 1))["proof"] = _embed(forge, ("law-1", 2))["proof"]


def without(forge: Forge) -> None:
    del forge.proofs["law-1", 1]["embed"]


def other_places(forge: Forge) -> None:
    """The policy has the longer class, and the proofs are of the shorter one."""
    protocol = EncoderArgument(64, norm_factor("0.75")).digest()
    forge.policy["tokens"]["query"] = 64
    forge.value["embedder"]["embedder"]["tokens"]["query"] = 64
    for tenant in forge.policy["tenants"]:
        tenant["circuits"]["embed"] = protocol
    for proofs in forge.proofs.values():
        proofs["embed"]["protocol"] = protocol


def truncated(forge: Forge) -> None:
    proof = _embed(forge, ("law-1", 1))
    proof["proof"] = proof["proof"][:-4]


CHEATS: dict[str, tuple[Callable[[Forge], None], str, ExitCode]] = {
    "another record's proof": (swapped, "proof.embed.valid.law", FAIL),
    "another record's proof under the own name": (renamed, "proof.embed.valid.law", FAIL),
    "no proof of A1": (without, "proof.present", UNDECIDED),
    "another length class": (other_places, "proof.embed.valid.law", FAIL),
    "a truncated proof": (truncated, "proof.embed.valid.law", UNDECIDED),
}


@pytest.mark.parametrize(("change", "check", "code"), CHEATS.values(), ids=CHEATS.keys())
def test_proofs_that_do_not_hold(
    change: Callable[[Forge], None], check: str, code: ExitCode, encoded: Finished, tmp_path: Path
) -> None:
    forge = Forge(encoded)
    change(forge)
    verdict = forge.verify(tmp_path, trust=encoded.service.trust(encoded.policy, **require(encoded)))
    assert check in not_passed(verdict) and verdict.exit_code is code, verdict.deciding
    assert "query_embedding=proved" not in verdict.line


def _pins_of(folder: Path) -> tuple[str, Any]:
    """The key of another model in the window file: its digest and its pins."""
    table = get_embedder("bert-int", folder=folder).table
    assert table is not None
    prover = table.prover()  # type: ignore[union-attr]
    return prover.digest().hex(), points_json(prover.pins())


def other_pins(forge: Forge, model: Path) -> None:
    """As the key of the committed digest."""
    committed = forge.value["embedder"]["embedder"]["artefacts"][ENCODER_ARTEFACT]
    forge.value["verification_keys"][committed] = _pins_of(model)[1]


def other_pins_committed(forge: Forge, model: Path) -> None:
    """In the manifest under C_emb too."""
    digest, pins = _pins_of(model)
    forge.value["embedder"]["embedder"]["artefacts"][ENCODER_ARTEFACT] = digest
    forge.value["verification_keys"][digest] = pins


@pytest.mark.parametrize(
    ("change", "checks"),
    [
        (other_pins, {"proof.embed.key.law"}),
        (other_pins_committed, {"trust.embedder"}),
    ],
)
def test_the_pins_of_another_model_are_refused(
    change: Callable[[Forge, Path], None],
    checks: set[str],
    encoded: Finished,
    other_model: Path,
    tmp_path: Path,
) -> None:
    forge = Forge(encoded)
    change(forge, other_model)
    verdict = forge.verify(tmp_path, trust=encoded.service.trust(encoded.policy, **require(encoded)))
    assert checks <= not_passed(verdict) and verdict.exit_code is FAIL, verdict.deciding
    assert "query_embedding=proved" not in verdict.line


def test_a_provider_proves_no_record_of_another_query_or_model(
    model: Path, other_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own prover refuses, by name: other tokens, and the files of another model in the place of the window's."""
    service = Service(tmp_path, embedder="bert-int", model=model)
    window = opened(service, "w-1")
    service.ask(window, "law-1", QUESTIONS["law"][0])
    service.finish(window)
    jobs: list[EncoderJob] = []
    original = Prover.job

    def kept(self: Prover, *given: Any) -> Job[Any]:
        job = original(self, *given)
        jobs.extend([job] if isinstance(job, EncoderJob) else [])
        return job

    monkeypatch.setattr(Prover, "job", kept)
    window.prove()
    window.shut()
    [job] = jobs
    assert str(job.salt_q) not in repr(job) and "tokens" not in repr(job)
    with pytest.raises(WitnessError, match="no proof of A1"):
        dataclasses.replace(job, tokens=[*job.tokens, 5]).run()
    table = get_embedder("bert-int", folder=other_model).table
    with pytest.raises(WitnessError, match="another one than the window's"):
        dataclasses.replace(job, prover=table.prover).run()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        ({"tokens": (20, 64)}, "policy.tokens.query", "32 or 64"),
        ({"system": "groth16", "top_k": 2}, "policy.tenants.law.system", "scan"),
    ],
)
def test_policies_that_no_proof_fits_are_refused(
    changes: dict[str, Any], field: str, expected: str, model: Path, tmp_path: Path
) -> None:
    service = Service(tmp_path, embedder="bert-int", model=model)
    with pytest.raises(PolicyError) as caught:
        opened(service, "w-1", **changes)
    assert (caught.value.field, caught.value.expected) == (field, expected)
    assert "provider policy new" in str(caught.value.hint)


def test_commands_pin_a_model_of_the_verifier(model: Path, service: Service, tmp_path: Path) -> None:
    """`trust new --model` computes the pins' digest itself; a policy names the statement, or is refused by name."""
    arguments = ["provider", "policy", "new", str(tmp_path / "policy.json"), "--window", "w", "--tenant", "a=64",
                 "--accounts", "16", "--n", "200", "--mechanism", "noise", "--embedder", "bert-int",
                 "--model", str(model)]  # fmt: skip
    refused = CliRunner().invoke(main, [*arguments, "--query-tokens", "33"])
    assert refused.exit_code == 2 and "32 or 64" in refused.output and "Traceback" not in refused.output
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    policy = json.loads((tmp_path / "policy.json").read_text())
    assert set(policy["tenants"][0]["circuits"]) == {"retrieve", "embed"}
    vkey = str(next(iter(service.witnesses.values())).vkey)
    done = CliRunner().invoke(
        main,
        ["verifier", "trust", "new", str(tmp_path / "trust.toml"), "--origin", ORIGIN, "--witness", vkey,
         "--provider", str(service.key.verifier), "--embedder", "bert-int", "--model", str(model)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    text = (tmp_path / "trust.toml").read_text()
    assert _pins_of(model)[0] in text and 'query_embedding = "proved"' in text


@pytest.mark.data
@pytest.mark.skipif(FOLDER is None, reason="RAG_AUDIT_MINILM names no folder")
def test_a_window_over_squad_proves_the_published_model(tmp_path: Path) -> None:
    assert FOLDER is not None
    finished, verdict, _ = squad_window(tmp_path, Path(FOLDER), 400)
    assert verdict.passed, verdict.deciding
    assert "query_embedding=proved " in verdict.line and verdict.figures["proved"] == 20
    manifest = finished.value()["embedder"]["embedder"]
    assert manifest_digest(manifest) == PUBLISHED["minilm-int"]


def test_a_question_that_leaves_a_range_gets_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no vector, so the account and the service refuse it by name, and its number stays free: every record has a
    proof."""
    scales = dataclasses.replace(small_bert.SCALES, v=10)
    model = small_bert.write(tmp_path / "model", SHAPE, scales=scales)
    service = Service(tmp_path, embedder="bert-int", model=model)
    documents = {"law": ["a court of law", "red house"], "medicine": ["fever", "a drug dose for pain"]}
    window = service.open(
        "w-1", documents=documents, tokens=(PLACES, 64), system="scan", window="w-1", top_k=1
    )
    with pytest.raises(OutOfRange, match="leaves the ranges of the integer encoder"):
        service.ask(window, "law-1", "the court")
    service.ask(window, "law-1", "a court")
    with monkeypatch.context() as patch:  # an account that sends it
        patch.setattr(account, "re_executable", lambda _: False)
        with pytest.raises(RequestRefused, match="leaves the ranges") as caught:
            service.ask(window, "law-2", "the court")
    assert caught.value.reason == "unavailable"
    service.finish(window)
    assert window.prove() == 2  # retrieve and embed of one record
    window.shut()
    entries: list[Any] = WindowFile.load(window.directory / "public").entries
    [record] = [entry for entry in entries if entry["type"] == "query"]
    assert (record["account"], record["i"]) == ("law-1", 1)


@pytest.mark.full
def test_the_second_verifier_accepts_the_window(encoded: Finished) -> None:
    verdict = encoded.verify(require=require(encoded), engine="reference")
    assert verdict.passed, verdict.deciding
    assert "query_embedding=proved " in verdict.line
