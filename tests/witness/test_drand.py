"""drand rounds against published ones, and what must not pass for one."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from rag_audit.errors import EncodingError, InvalidProof, SchemaError, SignatureError, VersionError
from rag_audit.log.checkpoint import Checkpoint, SignedCheckpoint
from rag_audit.log.note import Note
from rag_audit.log.signing import SigningKey
from rag_audit.models.beacon import drand_beacon
from rag_audit.models.drand import DEFAULT_CHAIN, QUICKNET, DrandChain
from rag_audit.models.records import DrandBeacon

# Published rounds: quicknet's 1000th, the default chain's first, as in drand's own clients' tests.
QUICKNET_1000 = (
    "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"
)
QUICKNET_1000_VALUE = "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd"
DEFAULT_1 = (
    "8d61d9100567de44682506aea1a7a6fa6e5491cd27a0a0ed349ef6910ac5ac20ff7bc3e09d7c046566c9f7f3c6f3b101"
    "04990e7cb424998203d8f7de586fb7fa5f60045417a432684f85093b06ca91c769f0e7ca19268375e659c2a2352b4655"
)
DEFAULT_0 = "176f93498eac9ca337150b46d21dd58673ea4e3581185f869672e59fa4cb390a"
DEFAULT_1_VALUE = "101297f1ca7dc44ef6088d94ad5fb7ba03455dc33d53ddb412bbc4564ed986ec"
QUICKNET_GROUP = "f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e"

WITNESS = SigningKey("w.example", 4, bytes(range(32))).verifier


def cosigned(at: int) -> SignedCheckpoint:
    head = Checkpoint("o", 1, bytes(32))
    return SignedCheckpoint(head, Note(head.text, ()), {WITNESS: at})


def source(chain: DrandChain, number: int) -> DrandBeacon:
    return DrandBeacon(source="drand", chain=chain.hash.hex(), round=number)


def test_a_quicknet_round() -> None:
    due = QUICKNET.round_time(1000)
    value, at = drand_beacon(
        source(QUICKNET, 1000), [QUICKNET_1000], cosigned(due - 60), chain=QUICKNET, quorum=1
    )
    assert (value.hex(), at) == (QUICKNET_1000_VALUE, 1000 * due)


def test_a_round_of_the_chained_network() -> None:
    value, _ = drand_beacon(
        source(DEFAULT_CHAIN, 1), [DEFAULT_1, DEFAULT_0], cosigned(0), chain=DEFAULT_CHAIN, quorum=1
    )
    assert value.hex() == DEFAULT_1_VALUE


def test_a_published_round_of_another_chain_of_quicknets_scheme() -> None:
    walkthrough = replace(
        QUICKNET,
        public_key=bytes.fromhex(
            "81d320f220ee9c79e60e19dedc838c31e3ab919b15481e9feb52f643628c4f6a13fdc52129493875a818109d767272ca"
            "0541cbcdcea9335f2870d781b39b845ba8cbd44fdfe4967781cf72ca5917fc9398bcf97ca0548ed5a709016c4b1ff0f3"
        ),
    )
    signature = bytes.fromhex(
        "95c93585c513ebbcb4777ff15599b3140e5ec0295faa0e483f3deadd88fa6d43f0d3703e3a4ce106e8fd6c6987f32126"
    )
    assert walkthrough.signed(38, signature)
    assert not walkthrough.signed(55, signature)
    assert not QUICKNET.signed(38, signature)


@pytest.mark.parametrize(
    ("chain", "group", "name"),
    [(QUICKNET, QUICKNET_GROUP, b"quicknet"), (DEFAULT_CHAIN, DEFAULT_0, b"")],
    ids=["quicknet", "default"],
)
def test_the_pinned_chains_have_their_hash(chain: DrandChain, group: str, name: bytes) -> None:
    parts = (chain.period.to_bytes(4, "big"), chain.genesis.to_bytes(8, "big"), chain.public_key)
    assert hashlib.sha256(b"".join(parts) + bytes.fromhex(group) + name).digest() == chain.hash


def test_round_times() -> None:
    assert QUICKNET.round_time(1) == QUICKNET.genesis
    # drand-client's util.test.ts: genesis 1595431050, period 30, round 2185561.
    assert DEFAULT_CHAIN.round_time(2185561) == 1660997850
    for number in (0, -1, 2**53):
        with pytest.raises(EncodingError):
            QUICKNET.round_time(number)


def test_another_round_is_refused() -> None:
    with pytest.raises(InvalidProof, match="signature"):
        drand_beacon(source(QUICKNET, 1001), [QUICKNET_1000], cosigned(0), chain=QUICKNET, quorum=1)


def test_another_previous_signature_is_refused() -> None:
    with pytest.raises(InvalidProof, match="signature"):
        drand_beacon(
            source(DEFAULT_CHAIN, 1), [DEFAULT_1, "00" * 32], cosigned(0), chain=DEFAULT_CHAIN, quorum=1
        )


def test_a_chain_that_is_not_pinned_is_refused() -> None:
    other = source(replace(QUICKNET, hash=bytes(32)), 1000)
    with pytest.raises(InvalidProof, match="the drand chain differs from the pinned chain"):
        drand_beacon(other, [QUICKNET_1000], cosigned(0), chain=QUICKNET, quorum=1)


def test_a_round_less_than_a_minute_after_the_quorum_is_refused() -> None:
    due = QUICKNET.round_time(1000)
    with pytest.raises(InvalidProof, match="too soon"):
        drand_beacon(source(QUICKNET, 1000), [QUICKNET_1000], cosigned(due - 59), chain=QUICKNET, quorum=1)


def test_without_a_quorum_there_is_no_beacon() -> None:
    with pytest.raises(SignatureError, match="too few"):
        drand_beacon(source(QUICKNET, 1000), [QUICKNET_1000], cosigned(0), chain=QUICKNET, quorum=2)


@pytest.mark.parametrize("notes", [[], [QUICKNET_1000, QUICKNET_1000]])
def test_the_number_of_signatures(notes: list[str]) -> None:
    with pytest.raises(SchemaError, match="number"):
        drand_beacon(source(QUICKNET, 1000), notes, cosigned(0), chain=QUICKNET, quorum=1)


INFINITY = "c0" + "00" * 47
# x = 4 lies on the curve, in a coset of the prime-order group.
NOT_IN_GROUP = "80" + "00" * 46 + "04"


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param("", id="empty"),
        pytest.param(QUICKNET_1000[:-2], id="short"),
        pytest.param(QUICKNET_1000.upper(), id="upper case"),
        pytest.param(INFINITY, id="infinity"),
        pytest.param(NOT_IN_GROUP, id="not of prime order"),
        pytest.param("9a" + "ff" * 47, id="coordinate not below p"),
        pytest.param("1" + QUICKNET_1000[1:], id="not compressed"),
        pytest.param("80" + "00" * 46 + "01", id="not on the curve"),
        pytest.param(QUICKNET_1000 + "0", id="odd length"),
    ],
)
def test_what_is_not_a_signature(signature: str) -> None:
    with pytest.raises(EncodingError):
        drand_beacon(source(QUICKNET, 1000), [signature], cosigned(0), chain=QUICKNET, quorum=1)


def test_a_key_at_infinity_is_refused() -> None:
    chain = replace(QUICKNET, public_key=bytes.fromhex("c0" + "00" * 95))
    with pytest.raises(EncodingError, match="BLS12-381"):
        chain.signed(1000, bytes.fromhex(QUICKNET_1000))


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(VersionError):
        replace(QUICKNET, scheme="bls-bn254-unchained-on-g1").signed(1000, bytes.fromhex(QUICKNET_1000))
