"""trust.toml is checked as a whole: also the sections and requirements that the run's mode does not use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from rag_audit.errors import ExitCode, RagAuditError, SchemaError
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.models.drand import DEFAULT_CHAIN, QUICKNET
from rag_audit.models.trust import DrandTrust, Trust

HONEST = (Path(__file__).resolve().parents[2] / "docs/examples/trust.toml").read_text()
"""Full mode, a beacon of witnesses, and one `[[verifier]]`, which full mode does not use."""
OURS, THEIRS = (str(SigningKey.generate(name).verifier) for name in ("ours", "theirs"))
RENAMED = str(replace(VerifierKey.parse(OURS), name="renamed"))
DRAND = f"""[beacon.drand]
chain = "{"0" * 64}"
public_key = "{"00" * 48}"
scheme = "pedersen-bls-x"
genesis = 1
period = 3

[[witness]]"""


def verifiers(*named: tuple[str, str]) -> Callable[[str], str]:
    """Add further `[[verifier]]` sections."""
    added = "".join(f'\n[[verifier]]\nname = "{name}"\nvkey = "{vkey}"\n' for name, vkey in named)
    return lambda text: text + added


UNUSED: dict[str, tuple[Callable[[str], str], str]] = {
    "a verifier's key that is no key": (verifiers(("ours", "not-a-key")), "verifier[1].vkey"),
    "a third verifier's key with another key id": (
        verifiers(("theirs", THEIRS), ("ours", OURS.replace("ours", "oars"))), "verifier[2].vkey"),
    "a verifier twice": (verifiers(("ours", OURS), ("ours", THEIRS)), "verifier"),
    "a verifier's key twice": (verifiers(("ours", OURS), ("theirs", OURS)), "verifier"),
    "a verifier's key twice, under another name": (verifiers(("ours", OURS), ("theirs", RENAMED)), "verifier"),
    "the provider's key": (lambda t: t.replace('vkey = "example.org', 'vkey = "example.com', 1), "provider.vkey"),
    "a witness's key": (lambda t: t.replace('vkey = "w1+', 'vkey = "w1+0', 1), "witness[0].vkey"),
    "an account's key twice": (lambda t: re.sub('\nkey = "[0-9a-f]{64}', '\nkey = "' + t.split('\nkey = "')[1][:64], t),
                               "account"),
    "beta that is no share": (lambda t: t + 'beta = "1"\n', "require.beta"),
    "eta of 0": (lambda t: t + 'eta = "0"\n', "require.eta"),
    "a beacon witness twice": (lambda t: t.replace('["w1", "w2"]', '["w1", "w1"]'), "beacon.witnesses"),
    "a drand scheme that is none": (lambda t: t.replace("[[witness]]", DRAND, 1), "beacon.drand.scheme"),
}  # fmt: skip


def test_the_honest_file_is_accepted() -> None:
    trust = Trust.from_toml(HONEST.encode(), source="trust.toml")
    assert trust.require.mode == "full" and trust.verifier and trust.beacon.drand is None
    more = verifiers(("ours", OURS), ("theirs", THEIRS))(HONEST)
    assert len(Trust.from_toml(more.encode(), source="trust.toml").verifier) == 3


@pytest.mark.parametrize("mode", ["full", "sampled"])
@pytest.mark.parametrize(("change", "place"), UNUSED.values(), ids=UNUSED.keys())
def test_what_the_mode_does_not_use_is_checked_too(
    change: Callable[[str], str], place: str, mode: str
) -> None:
    honest = HONEST.replace('mode = "full"', f'mode = "{mode}"')
    assert change(honest) != honest
    with pytest.raises(RagAuditError) as caught:
        Trust.from_toml(change(honest).encode(), source="trust.toml")
    assert caught.value.exit_code is ExitCode.MALFORMED and caught.value.field == f"trust.toml.{place}"


def test_one_witness_key_under_two_names_is_one_witness() -> None:
    """Two names for one key would let one witness be a quorum of two."""
    first = Trust.from_toml(HONEST.encode(), source="t").witness[0].vkey
    again = str(replace(VerifierKey.parse(first), name="w2"))
    twice = re.sub(r'vkey = "w2\+[^"]*"', f'vkey = "{again}"', HONEST)
    assert twice != HONEST
    with pytest.raises(SchemaError, match="the key of a witness is named twice"):
        Trust.from_toml(twice.encode(), source="trust.toml")


def test_schemes_of_drand_are_those_that_are_verified() -> None:
    schemes = get_args(DrandTrust.model_fields["scheme"].annotation)
    assert set(schemes) == {QUICKNET.scheme, DEFAULT_CHAIN.scheme}
