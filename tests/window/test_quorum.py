"""How many witnesses must agree: of half of them or fewer, two quorums need not share one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.errors import SchemaError
from rag_audit.log.keys import ALG_COSIGNATURE
from rag_audit.log.signing import SigningKey
from rag_audit.models.manifest import manifest_digest
from rag_audit.models.policy import DEFAULT_SCORE_WINDOW
from rag_audit.models.trust import Trust
from rag_audit.proofs.backends.scan import release as scan
from rag_audit.retrieval.embedders import public_manifest
from tests.window.forge import Forge
from tests.window.simulator import ORIGIN, Finished


def written(finished: Finished, *, quorum: int, witnesses: int = 2, allowed: bool = False) -> str:
    """A trust file with that quorum; witnesses beyond two have signed nothing."""
    text = finished.service.trust_text(finished.policy, allow_minority_quorum=allowed)
    for number in range(3, witnesses + 1):
        vkey = SigningKey.generate(f"w{number}", ALG_COSIGNATURE).verifier
        text = text.replace("[pins]", f'[[witness]]\nname = "w{number}"\nvkey = "{vkey}"\n\n[pins]', 1)
    return re.sub(r"quorum = 2", f"quorum = {quorum}", text, count=1)


def test_one_of_two_witnesses_lets_two_ledgers_pass(finished: Finished, tmp_path: Path) -> None:
    """Each witness signs one ledger only, as an honest one does: what the quorum is there for is gone."""
    trust = Trust.from_toml(written(finished, quorum=1, allowed=True).encode(), source="trust.toml")
    roots = set()
    for witness in ("w1", "w2"):
        forge = Forge(finished)
        forge.final_times = {witness: forge.final_times[witness]}
        if witness == "w2":  # the ledger that this one is shown lacks the last record
            last = forge.queries[-1]
            forge.drop_receipts_of(last["account"], last["i"])
            forge.entries.remove(last)
        (tmp_path / witness).mkdir()
        verdict = forge.verify(tmp_path / witness, trust=trust)
        assert verdict.passed, verdict.deciding
        assert verdict.line.endswith("allow=unsafe-setup allow=minority-quorum")
        roots.add(next(c.actual for c in verdict.checks if c.id == "ledger.root"))
    assert len(roots) == 2


@pytest.mark.parametrize(("quorum", "witnesses"), [(1, 2), (1, 3), (2, 4), (2, 5)])
def test_a_quorum_of_half_or_less_is_refused_unless_it_is_allowed_by_name(
    quorum: int, witnesses: int, finished: Finished
) -> None:
    with pytest.raises(SchemaError) as caught:
        Trust.from_toml(written(finished, quorum=quorum, witnesses=witnesses).encode(), source="t.toml")
    assert caught.value.field == "t.toml.quorum" and caught.value.actual == quorum
    assert "allow_minority_quorum" in str(caught.value.expected)
    allowed = written(finished, quorum=quorum, witnesses=witnesses, allowed=True)
    assert Trust.from_toml(allowed.encode(), source="t.toml").quorum == quorum


@pytest.mark.parametrize(("quorum", "witnesses"), [(2, 2), (2, 3), (3, 4), (3, 5)])
def test_a_majority_needs_no_permission(quorum: int, witnesses: int, finished: Finished) -> None:
    text = written(finished, quorum=quorum, witnesses=witnesses)
    assert "allow_minority_quorum = false" in text
    assert not Trust.from_toml(text.encode(), source="t.toml").minority_quorum


def trust_new(folder: Path, *options: str) -> Result:
    (folder / "trust.toml").unlink(missing_ok=True)
    keys = [str(SigningKey.generate(n, ALG_COSIGNATURE).verifier) for n in ("w1", "w2")]
    provider = str(SigningKey.generate(ORIGIN).verifier)
    named = [o for key in keys for o in ("--witness", key)]
    arguments = [
        "verifier",
        "trust",
        "new",
        str(folder / "trust.toml"),
        "--origin",
        ORIGIN,
        "--provider",
        provider,
    ]
    return CliRunner().invoke(main, [*arguments, *named, *options])


def test_trust_new_refuses_a_minority_quorum_or_warns_of_it(tmp_path: Path) -> None:
    refused = trust_new(tmp_path, "--quorum", "1")
    assert refused.exit_code == 2 and "allow_minority_quorum" in refused.stderr
    assert not (tmp_path / "trust.toml").exists()
    warned = trust_new(tmp_path, "--quorum", "1", "--require", "allow_minority_quorum=true")
    assert warned.exit_code == 0 and "warning: a quorum of 1 of 2 witnesses" in warned.stderr
    assert Trust.load(tmp_path / "trust.toml").minority_quorum
    quiet = trust_new(tmp_path)
    assert quiet.exit_code == 0 and "warning" not in quiet.stderr


def test_trust_new_limits_the_score_window_to_a_policy_s_default(tmp_path: Path) -> None:
    assert trust_new(tmp_path).exit_code == 0
    require, (lo, hi) = Trust.load(tmp_path / "trust.toml").require, DEFAULT_SCORE_WINDOW
    assert (require.max_score_hi, require.min_score_width) == (hi, hi - lo)
    assert (
        trust_new(tmp_path, "--require", "max_score_hi=1742", "--require", "min_score_width=1").exit_code == 0
    )
    require = Trust.load(tmp_path / "trust.toml").require
    assert (require.max_score_hi, require.min_score_width) == (1742, 1)


def test_trust_new_pins_this_release_s_manifest_and_scan_protocols(tmp_path: Path) -> None:
    assert trust_new(tmp_path).exit_code == 0
    pins = Trust.load(tmp_path / "trust.toml").pins
    assert pins.manifest == manifest_digest(public_manifest("wordllama-lexical-768"))
    assert pins.scan == scan.protocols_digest()
