"""A window whose embedder is an encoder in integer arithmetic, and the commands that take its constants."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit.account.account import embedder_of
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.commit.preparing import Terms
from rag_audit.errors import PolicyError
from rag_audit.models.manifest import manifest_digest
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder, public_artefacts
from tests.embedders import small_bert
from tests.window.simulator import ORIGIN, Service

DOCUMENTS = {"law": ["the law", "a court of law", "red house"], "medicine": ["fever", "a drug dose for pain"]}


def test_a_window_is_served_and_verified(service: Service, tmp_path: Path) -> None:
    folder = small_bert.write(tmp_path / "model")
    limits = {"query_tokens": 8, "document_tokens": 24}
    own = get_embedder("bert-int", folder=folder, **limits)
    policy = service.policy(dimension=16, table=None, score_window=own.score_window, system="scan",
                            tokens=(8, 24), top_k=1)  # fmt: skip
    window = Window.open(
        tmp_path / "window", key=service.key, policy=policy, terms=Terms(ORIGIN, service.beacon()),
        roster=[a.roster_entry for a in service.accounts.values()], documents=DOCUMENTS, clock=service.clock,
        embedder=own,
    )  # fmt: skip
    service.cosign_header(window)
    service.clock.now = window.header.opens_at
    publication = Publication.load(window.directory / "public")
    asker = service.accounts["law-1"]

    def send(request: Any) -> Any:
        return json.loads(window.handle(json.loads(request.canonical())).canonical())

    asker.ask(publication, "the court", service.key.verifier, send, embedder=embedder_of(publication, folder))
    service.finish(window)
    window.prove()
    receipts = service.receipts(window, tmp_path / "receipts")
    window.shut()

    lo, hi = own.score_window
    trust = service.trust(policy, max_epsilon="1e9", max_score_hi=hi, min_score_width=hi - lo)
    pins = trust.pins.model_copy(
        update={"embedder": own.manifest()["artefacts"], "manifest": manifest_digest(own.manifest())}
    )
    trust = trust.model_copy(update={"pins": pins})
    file = WindowFile.load(window.directory / "public")
    result = verify_window(file, trust=trust, receipts=[receipts], model=folder)
    assert result.figures["query_embedding"] == "re-executed(1/1)"
    assert next(c for c in result.checks if c.id == "proof.query_embedding").status == "pass"

    # One other scale is another embedder: its vectors are no evidence about this window's.
    other = small_bert.write(tmp_path / "other", scales=replace(small_bert.SCALES, x=7))
    refused = verify_window(file, trust=trust, receipts=[receipts], model=other)
    assert not refused.figures["query_embedding"].startswith("re-executed")
    assert any("another manifest" in note for note in refused.notes)


@pytest.mark.parametrize(
    "lo, hi, owner",
    [(209, 1674, "minilm-int"), (420, 1680, DEFAULT_EMBEDDER), (101, 810, "an earlier version")],
)
def test_a_score_window_of_another_embedder_is_refused(
    service: Service, lo: int, hi: int, owner: str
) -> None:
    with pytest.raises(PolicyError, match="score window belongs to another embedder") as caught:
        service.open("w-other", score_window=(lo, hi))
    assert f"{lo}..{hi}, the window of" in str(caught.value.actual) and owner in str(caught.value.actual)
    assert "--embedder hashed-words-64" in str(caught.value.hint)


def test_policies_and_trust_files_name_minilm_int(service: Service, tmp_path: Path) -> None:
    out = tmp_path / "policy.json"
    arguments = ["provider", "policy", "new", str(out), "--window", "w", "--tenant", "a=64"]
    arguments += ["--accounts", "16", "--n", "200", "--mechanism", "noise"]
    done = CliRunner().invoke(main, [*arguments, "--embedder", "minilm-int"])
    assert done.exit_code == 0, done.output
    policy = Policy.parse(json.loads(out.read_text()), field="policy")
    assert policy.noise is not None and (policy.noise.lo, policy.noise.hi) == (209, 1674)
    assert set(policy.tenants[0].circuits) == {"embed", "retrieve"}

    folder, small = small_bert.write(tmp_path / "model"), tmp_path / "small.json"
    arguments[3] = str(small)
    done = CliRunner().invoke(main, [*arguments, "--embedder", "bert-int", "--model", str(folder)])
    assert done.exit_code == 0, done.output
    refused = CliRunner().invoke(
        main, [*arguments, "--embedder", "bert-int", "--model", str(tmp_path / "no")]
    )
    assert refused.exit_code == 2 and "Traceback" not in refused.output

    trust, vkeys = tmp_path / "trust.toml", [str(w.vkey) for w in service.witnesses.values()]
    arguments = ["verifier", "trust", "new", str(trust), "--origin", ORIGIN,
                 "--provider", str(service.key.verifier), "--witness", vkeys[0], "--embedder", "minilm-int"]  # fmt: skip
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert all(digest in trust.read_text() for digest in public_artefacts("minilm-int").values())
