"""A window whose vectors come from an endpoint, which gives a text another vector each time it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import jcs
from rag_audit.account.account import embedder_of
from rag_audit.attest.reading import WindowReader
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.commit.preparing import Terms
from rag_audit.models.manifest import manifest_digest
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.retrieval.embedders.declared import ManifestEmbedder
from rag_audit.retrieval.tokens import tokens_beyond
from tests.embedders.test_endpoint import DIMENSION, EmbeddingServer, settings
from tests.endpoint import serving
from tests.window.simulator import ORIGIN, QUESTIONS, TEXTS, Service

SIZES = ("--accounts", "16", "--n", "200", "--mechanism", "noise")


class Drifting(EmbeddingServer):
    """Gives a text another vector each time."""

    def vector(self, text: str) -> list[float]:
        return [x * (1 + 0.3 * ((len(self.seen) * (n + 1)) % 5)) for n, x in enumerate(super().vector(text))]


def test_a_window_is_served_proved_and_verified_though_vectors_cannot_be_made_again(
    service: Service, tmp_path: Path
) -> None:
    policy = service.policy(
        dimension=DIMENSION, table=None, score_window=(20, 160), system="scan", tokens=(8, 64)
    )
    limits = {"query_tokens": 8, "document_tokens": 64}
    with serving(Drifting()) as server:
        place = settings(tmp_path, server.url, attempts=1)
        window = Window.open(
            tmp_path / "window", key=service.key, policy=policy, terms=Terms(ORIGIN, service.beacon()),
            roster=[a.roster_entry for a in service.accounts.values()], documents=TEXTS, clock=service.clock,
            embedder=get_embedder("openai", folder=place, **limits),
        )  # fmt: skip
        service.cosign_header(window)
        service.clock.now = window.header.opens_at
        question = QUESTIONS["law"][0]
        publication = Publication.load(window.directory / "public")
        asker, known = service.accounts["law-1"], embedder_of(publication)
        assert isinstance(known, ManifestEmbedder)
        assert tokens_beyond(publication, "x" * 81, known) == 3

        def send(request: Any) -> Any:
            return json.loads(window.handle(json.loads(request.canonical())).canonical())

        before = len(server.seen)
        asker.ask(publication, question, service.key.verifier, send, embedder=known)
        assert len(server.seen) == before + 1, "the account itself asks no endpoint"
        once = window.context.state.records[0]

        server.faults = ["500"]
        refused = window.handle(
            json.loads(asker.request(publication, "Is it down?", embedder=known).canonical())
        )
        assert (refused.type, getattr(refused, "reason", None)) == ("refusal", "unavailable")
        server.faults = []
        asker.ask(publication, "Is it down?", service.key.verifier, send, embedder=known)
        window.shut()

        before = len(server.seen)
        window = Window.resume(window.directory, key=service.key, model=place, clock=service.clock)
        assert window.context.state.records[0] == once
        service.finish(window)
        window.prove()
        window.shut()
        assert WindowReader(window.directory).estimate(place).public()
        assert len(server.seen) == before, "what was embedded once is not asked for again"
    receipts = service.receipts(window, tmp_path / "receipts")

    trust = service.trust(
        policy, max_epsilon="1e9", max_score_hi=160, min_score_width=140, query_embedding="declared"
    )
    own = known.manifest()
    pins = trust.pins.model_copy(update={"embedder": own["artefacts"], "manifest": manifest_digest(own)})
    file = WindowFile.load(window.directory / "public")
    verdict = verify_window(
        file, trust=trust.model_copy(update={"pins": pins}), receipts=[receipts], model=place
    )
    assert verdict.passed, verdict.line
    assert verdict.figures["query_embedding"] == "declared"
    assert "proof.query_embedding" not in {check.id for check in verdict.checks}
    assert any("vectors of openai are declared" in note for note in verdict.notes)
    assert any("endpoint" in text for text in verdict.does_not_prove)


def test_policy_and_trust_file_of_defaults_agree_for_many_components(
    service: Service, tmp_path: Path
) -> None:
    place, out = settings(tmp_path, "https://models.example/v1", dimension=1536), tmp_path / "policy.json"
    embedder = ["--embedder", "openai", "--model", str(place)]
    result = CliRunner().invoke(
        main, ["provider", "policy", "new", str(out), "--window", "w", "--tenant", "a=64", *embedder, *SIZES]
    )
    assert result.exit_code == 0, result.output
    policy = Policy.parse(json.loads(out.read_text()), field="policy")
    assert policy.noise is not None and (policy.noise.lo, policy.noise.hi) == (848, 6786)
    assert policy.estimator.coalition_proof is None
    trust, vkeys = tmp_path / "trust.toml", [str(w.vkey) for w in service.witnesses.values()]
    words = ["verifier", "trust", "new", str(trust), "--origin", ORIGIN, "--provider", str(service.key.verifier),
             "--witness", vkeys[0], "--embedder", "openai"]  # fmt: skip
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2 and not trust.exists()
    done = CliRunner().invoke(main, [*words, "--model", str(place)])
    assert done.exit_code == 0, done.output
    require = Trust.from_toml(trust.read_bytes(), source="trust.toml").require
    assert (require.query_embedding, require.coalition, require.max_score_hi) == (
        "declared",
        "not-checked",
        6786,
    )


def test_a_retained_question_of_other_embedders_is_as_it_was(service: Service) -> None:
    from rag_audit._internal.sealed import seal
    from rag_audit.attest.query import Retained, seal_retained, unseal_retained

    plain = {"positions": [1, 2], "query": "What?", "salt": "00"}
    kept = unseal_retained(seal(jcs(plain), bytes(32), b"slot"), bytes(32), b"slot")
    assert kept == Retained("What?", "00", (1, 2))
    vector = Retained("What?", "00", (1, 2), bytes([1, 255]))
    again = unseal_retained(seal_retained(vector, bytes(32), b"slot"), bytes(32), b"slot")
    assert again == vector
    assert again.opened(get_embedder()).vector.tolist() == [1, -1]


@pytest.mark.parametrize("name", ["onnx", "sentence-transformers", "openai"])
def test_embedders_of_a_place_need_one(name: str, tmp_path: Path) -> None:
    words = [
        "provider",
        "policy",
        "new",
        str(tmp_path / "p"),
        "--window",
        "w",
        "--tenant",
        "a=64",
        "--embedder",
        name,
        *SIZES,
    ]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2 and "--model" in done.output
