"""The published proofs and traces of the scan argument, through the interface of windows."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.proofs import verify
from rag_audit import _native
from rag_audit._internal.canonical import digest_hex
from rag_audit.errors import InvalidProof, PolicyError, RagAuditError
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import DEFAULT_TABLE
from rag_audit.proofs.backends.scan import coalition
from rag_audit.proofs.backends.scan import key as key_module
from rag_audit.proofs.backends.scan import system as system_module
from rag_audit.proofs.backends.scan.key import (
    ARGUMENT,
    PROTOCOL,
    VERSION,
    EmbedArgument,
    EmbedKey,
    ScanKey,
    commit_index,
)
from rag_audit.proofs.backends.scan.system import SYSTEM
from rag_audit.proofs.statements.coalition import CoalitionSize
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.relation.commitments import noise_key, topk_commitment, vector_commitment
from rag_audit.relation.draws import draw
from rag_audit.relation.scores import MAX_DIMENSION, MAX_LATTICE

FOLDER = Path(__file__).resolve().parents[2] / "vectors" / f"v{VERSION}" / "scan"


@pytest.fixture(scope="module")
def proofs() -> dict[str, Any]:
    return json.loads((FOLDER / "proofs.json").read_text("utf-8"))


def data(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def element(text: str) -> int:
    return int(text, 16)


def flipped(proof: bytes) -> bytes:
    return proof[:-1] + bytes([proof[-1] ^ 1])


def test_the_folder_is_small() -> None:
    # Six files have runs about the integer encoder, each with a proof and with wrong proofs of 14 to 28 kB.
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_500_000


def test_the_published_answer_is_accepted(proofs: dict[str, Any]) -> None:
    result = proofs["answer"]
    key = ScanKey(
        data(result["index"]), result["dimension"], result["capacity"], bytes.fromhex(result["window"]),
        tuple(result["gains"]), result["listed"], result["lo"], result["hi"], result["lattice"],
    )  # fmt: skip
    assert key.digest.hex() == result["index_digest"]
    statement = Statement(
        ctx=element(result["context"]),
        c_seed=element(result["c_seed"]),
        beacon=element(result["beacon"]),
        slot=element(result["slot"]),
        c_idx=key.c_idx,
        cq=element(result["cq"]),
        htopk=element(result["htopk"]),
    )
    parts = [data(result[name]["proof"]) for name in ("certificate", "query_proof")]
    verify(key, tuple(parts), statement)
    for bad in ((flipped(parts[0]), parts[1]), (parts[0], flipped(parts[1]))):
        with pytest.raises(InvalidProof):
            verify(key, bad, statement)


def test_the_published_answer_is_the_relations(proofs: dict[str, Any]) -> None:
    """What it is a proof of follows from its secrets by the reference."""
    result = proofs["answer"]
    rows = bytes(v & 0xFF for v in result["rows"])
    key = bytes.fromhex(result["index_key"])
    assert commit_index(rows, result["dimension"], result["capacity"], key) == data(result["index"])
    assert vector_commitment(element(result["query_salt"]), result["query"]) == element(result["cq"])
    assert topk_commitment(element(result["list_salt"]), result["positions"]) == element(result["htopk"])
    s0, s1 = map(element, result["seed"])
    kappa = noise_key(s0, s1, element(result["beacon"]), element(result["slot"]))
    assert len(draw(kappa, result["capacity"], result["gains"])) == result["capacity"]


def test_the_published_embedding_is_accepted(proofs: dict[str, Any]) -> None:
    result = proofs["embed"]
    argument = EmbedArgument(
        result["tokens"], result["dimension"], result["vocabulary"], result["norm_factor"]
    )
    rows = bytes(v & 0xFF for v in result["rows"])
    key = EmbedKey.commit(rows, argument)
    assert key.points == data(result["table"]) and key.digest.hex() == result["table_digest"]
    statement = EmbedStatement(
        element(result["context"]), key.root, element(result["hq"]), element(result["cq"])
    )
    verify(key, (data(result["proof"]),), statement)
    with pytest.raises(InvalidProof):
        verify(key, (flipped(data(result["proof"])),), statement)


def test_the_published_coalition_certificate_is_accepted(proofs: dict[str, Any]) -> None:
    result = proofs["coalition"]
    statement = _native.ScanCoalition(
        bytes.fromhex(result["context"]), result["dimension"], b"".join(map(bytes.fromhex, result["cq"])),
        result["accounts"], result["tenants"], result["first"], tuple(result["theta"]), tuple(result["largest"]),
        result["room"],
    )  # fmt: skip
    records, pairs = data(result["records"]["proof"]), data(result["pairs"]["proof"])
    statement.verify(records, [pairs])
    for bad in ((flipped(records), pairs), (records, flipped(pairs))):
        with pytest.raises(ValueError, match="equations do not hold"):
            statement.verify(bad[0], [bad[1]])


def test_the_protocols_are_named_after_the_argument() -> None:
    """Every name is made of the native core's digest: one of another layout or trace has other names."""
    assert bytes.fromhex(ARGUMENT) == _native.scan_protocol()
    named = {"system": "scan", "version": VERSION, "argument": ARGUMENT}
    assert digest_hex({**named, "claims": ["A2", "A3", "A4"]}) == PROTOCOL
    assert digest_hex({**named, "claims": ["coalition"]}) == coalition.PROTOCOL
    parameters = {"tokens": 64, "dimension": 768, "vocabulary": 32_000, "norm_factor": 16_593}
    assert digest_hex({**named, "claims": ["A1"], **parameters}) == EmbedArgument(64).digest()


def test_the_argument_is_the_published_one() -> None:
    """After the first release a new name needs a new version with vectors of its own."""
    trace = hashlib.sha256((FOLDER / "trace.json").read_bytes()).hexdigest()
    assert (VERSION, trace, ARGUMENT) == (
        1,
        "2e004863aaf02b57d7f82afc4d075feb02aeb979fd841f635b7e4525dd09b0a2",
        "5f5d56957c43ddd62994658f152aa66ffe754b101dfe4274816f28d2f4c78aec",
    )


CONSTANTS = Constants(
    capacity=1000,
    dimension=256,
    top_k=5,
    gains=(1, 8),
    lo=101,
    hi=810,
    lattice=128,
    query_tokens=64,
    table=DEFAULT_TABLE,
)


def constants(**changes: Any) -> dict[str, str]:
    return SYSTEM.circuits(replace(CONSTANTS, **changes))


def test_limits_are_those_of_the_native_core() -> None:
    limits = _native.scan_limits()
    own = {
        "capacity": system_module.MAX_CAPACITY,
        "dimension": MAX_DIMENSION,
        "listed": key_module.MAX_LISTED,
        "lattice": MAX_LATTICE,
        "coalition_records": coalition.MAX_RECORDS,
        "coalition_dimension": coalition.MAX_DIMENSION,
        **{name: key_module._MOST_EMBEDDED[name] for name in ("tokens", "vocabulary", "norm_factor")},
    }
    assert {name: limits[name] for name in own} == own
    assert key_module._MOST_EMBEDDED["dimension"] == limits["dimension"]
    others = {"gains", "coalition_classes", "coalition_labels", "coalition_denominator"}
    assert set(limits) - set(own) == others


GAINS = (1, 8, 64, 512, 4096, 32_768)


@pytest.mark.parametrize(
    ("name", "last", "beyond"),
    [
        ("capacity", 1 << 24, (1 << 24) + 1),
        ("capacity", 5, 0),
        ("dimension", 4096, 4097),
        ("dimension", 13, 0),
        ("top_k", 1000, 1001),
        ("top_k", 1, 0),
        ("gains", GAINS, (*GAINS, 32_768)),
        ("gains", GAINS, (1, 9)),
        ("lattice", 1 << 24, 1 << 25),
        ("lattice", 1, 0),
        ("hi", 64 * 256, 64 * 256 + 1),
        ("lo", 101, 810),
    ],
)
def test_a_policys_constants_end_where_the_argument_does(name: str, last: Any, beyond: Any) -> None:
    assert constants(**{name: last})["retrieve"] == PROTOCOL
    with pytest.raises(RagAuditError) as caught:
        constants(**{name: beyond})
    assert caught.value.exit_code.value == 2
    assert name in f"{caught.value.field} {caught.value}"


@pytest.mark.parametrize(
    ("name", "maximum"),
    [("tokens", 208), ("dimension", 4096), ("vocabulary", 32_768), ("norm_factor", 1 << 20)],
)
def test_an_embedders_parameters_end_where_the_argument_does(name: str, maximum: int) -> None:
    given = {"tokens": 64, name: maximum}
    assert len(EmbedArgument(**given).digest()) == 64
    for beyond in (0, maximum + 1):
        with pytest.raises(PolicyError) as caught:
            EmbedArgument(**{**given, name: beyond})
        assert caught.value.field == name


@pytest.mark.parametrize(("name", "maximum"), [("records", 65_535), ("dimension", 882)])
def test_a_coalition_certificates_parameters_end_where_the_argument_does(name: str, maximum: int) -> None:
    given: dict[str, Any] = {"records": 10, "dimension": 10, "theta": (999, 1000), name: maximum}
    assert coalition.SYSTEM.digest(CoalitionSize(**given)) == coalition.PROTOCOL
    for beyond in (0, maximum + 1):
        with pytest.raises(PolicyError) as caught:
            coalition.SYSTEM.digest(CoalitionSize(**{**given, name: beyond}))
        assert caught.value.field == name
    for theta in ((1000, 1000), (0, 5), (1, 1001)):
        with pytest.raises(PolicyError):
            coalition.SYSTEM.digest(CoalitionSize(**{**given, "theta": theta}))
