"""A window whose embedder has files: each party names their folder, and nobody takes another embedder silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import jcs
from rag_audit.account.account import embedder_of
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.cli.settings import resume
from rag_audit.commit.preparing import Terms
from rag_audit.errors import SetupError
from rag_audit.models.manifest import manifest_digest
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders import EMBEDDERS, OF_A_PLACE, get_embedder, published_constants
from rag_audit.retrieval.embedders.onnx import MODELS
from rag_audit.retrieval.tokens import tokens_beyond
from tests.embedders.test_onnx import DIMENSION, folder
from tests.window.simulator import ORIGIN, Service

__all__ = ["folder"]
NAME = "all-MiniLM-L6-v2"
DOCUMENTS = {"law": ["red", "blue", "red blue"], "medicine": ["blue blue", "red red blue"]}


def test_a_window_is_served_and_verified_with_a_folder_of_files(
    service: Service, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = service.policy(dimension=DIMENSION, table=None, score_window=(20, 160), system="scan",
                            tokens=(4, 256), top_k=1)  # fmt: skip
    assert all(set(part.circuits) == {"retrieve"} for part in policy.tenants)  # A1 is re-executed, not proved
    limits = {"query_tokens": 4, "document_tokens": 256}
    window = Window.open(
        tmp_path / "window", key=service.key, policy=policy, terms=Terms(ORIGIN, service.beacon()),
        roster=[a.roster_entry for a in service.accounts.values()], documents=DOCUMENTS, clock=service.clock,
        embedder=get_embedder(NAME, folder=folder, **limits),
    )  # fmt: skip
    service.cosign_header(window)
    service.clock.now = window.header.opens_at
    window.shut()

    with pytest.raises(SetupError) as caught:
        Window.resume(window.directory, key=service.key, clock=service.clock)
    assert caught.value.field == "--model"
    window = Window.resume(window.directory, key=service.key, model=folder, clock=service.clock)

    publication = Publication.load(window.directory / "public")
    with pytest.raises(SetupError):
        embedder_of(publication)
    asker, embedder = service.accounts["law-1"], embedder_of(publication, folder)
    assert tokens_beyond(publication, "red blue red blue", embedder, folder) == 2

    def send(request: Any) -> Any:
        return json.loads(window.handle(json.loads(request.canonical())).canonical())

    asker.ask(publication, "red", service.key.verifier, send, embedder=embedder)
    service.finish(window)
    window.prove()
    receipts = service.receipts(window, tmp_path / "receipts")
    window.shut()

    trust = service.trust(policy, max_epsilon="1e9", max_score_hi=160, min_score_width=140)
    own = embedder.manifest()
    pins = trust.pins.model_copy(update={"embedder": own["artefacts"], "manifest": manifest_digest(own)})
    trust = trust.model_copy(update={"pins": pins})
    file = WindowFile.load(window.directory / "public")
    without = verify_window(file, trust=trust, receipts=[receipts])
    assert any("--model" in note for note in without.notes) and not without.figures[
        "query_embedding"
    ].startswith("re-executed")
    with_files = verify_window(file, trust=trust, receipts=[receipts], model=folder)
    assert with_files.figures["query_embedding"] == "re-executed(1/1)"
    a1 = next(c for c in with_files.checks if c.id == "proof.query_embedding")
    assert a1.status == "pass"

    # The commands find the folder again where `open` stored it.
    key = tmp_path / "provider.skey"
    service.key.save(key)
    settings = window.directory / "settings.json"
    settings.write_bytes(jcs({"key": str(key), "model": str(folder)}))
    monkeypatch.setattr("rag_audit.attest.window.now_ms", service.clock)
    with resume(window.directory) as again:
        assert again.context.embedder.manifest() == own
    settings.write_bytes(jcs({"key": str(key)}))
    with pytest.raises(SetupError):
        resume(window.directory)


def test_a_policy_takes_its_constants_from_the_embedder(tmp_path: Path) -> None:
    out = tmp_path / "policy.json"
    arguments = [
        "provider",
        "policy",
        "new",
        str(out),
        "--window",
        "w",
        "--tenant",
        "a=64",
        "--embedder",
        NAME,
        *("--accounts", "16", "--n", "200", "--mechanism", "noise"),
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    policy = Policy.parse(json.loads(out.read_text()), field="policy")
    assert policy.noise is not None and (policy.noise.lo, policy.noise.hi) == (218, 1742)
    assert set(policy.tenants[0].circuits) == {"retrieve"}


def test_published_constants_are_those_of_the_embedders() -> None:
    own = {"wordllama-lexical-768", "hashed-words-64", "minilm-int", "minilm-int-lexical-768"}
    assert set(EMBEDDERS) == {*own, *MODELS, *OF_A_PLACE}
    wordllama = get_embedder()
    result = published_constants(EMBEDDERS[0])
    assert (result.dimension, result.score_window) == (wordllama.dimension, wordllama.score_window)
    assert result.table is not None
    assert published_constants(NAME).table is None
    assert result.document_tokens == wordllama.limits.document == 512
    assert published_constants(NAME).document_tokens == MODELS[NAME].max_tokens
    assert [
        published_constants(name).document_tokens for name in ("minilm-int", "minilm-int-lexical-768")
    ] == [256] * 2
    with pytest.raises(SetupError, match="unknown embedder"):
        published_constants("other")


def test_a_verifier_pins_the_files_that_it_has(service: Service, folder: Path, tmp_path: Path) -> None:
    out, vkeys = tmp_path / "trust.toml", [str(w.vkey) for w in service.witnesses.values()]
    arguments = ["verifier", "trust", "new", str(out), "--origin", ORIGIN, "--provider", str(service.key.verifier),
                 "--witness", vkeys[0], "--embedder", NAME]  # fmt: skip
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2 and not out.exists()
    done = CliRunner().invoke(main, [*arguments, "--model", str(folder)])
    assert done.exit_code == 0, done.output
    assert get_embedder(NAME, folder=folder).manifest()["artefacts"]["weights"] in out.read_text()
