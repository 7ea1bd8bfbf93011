"""What the native core reads and checks for every request and answer, against Python's own and OpenSSL's."""

from __future__ import annotations

import json
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from rag_audit import _native
from rag_audit._internal import canonical
from rag_audit._internal.canonical import jcs, parse_json
from rag_audit.errors import RagAuditError, SizeError
from rag_audit.log.keys import signed_by
from tests import openssl

# -- JSON ------------------------------------------------------------------------------------------------

TEXTS = [
    b"null",
    b" [ ] ",
    b"{}",
    b"-1",
    b"0",
    b"9007199254740991",
    b"-9007199254740991",
    b'"\\u00e9\\ud83d\\ude00"',
    b'"\xc3\xa9"',
    b'{"a":{"a":[true,false,null]},"\\u0061b":1}',
    b'["\\"\\\\\\/\\b\\f\\n\\r\\t"]',
    b"[" * 60 + b"]" * 60,
    b"\t\n\r 1 \r\n",
    # What only the other reader takes, or nobody.
    b"",
    b" ",
    b"01",
    b"-0",
    b"-",
    b"+1",
    b"1.0",
    b"1e3",
    b"9007199254740992",
    b"-9007199254740992",
    b"1" * 40,
    b"NaN",
    b"nul",
    b"nulls",
    b'"',
    b'"\\"',
    b'"\n"',
    b'"\x00"',
    b'"\\x"',
    b'"\\u12"',
    b'"\\u+123"',
    b'"\\ud800"',
    b'"\\ud800\\u0041"',
    b'"\\udc00"',
    b'{"a":1,"a":2}',
    b'{"a":1,"\\u0061":2}',
    b"{1:2}",
    b'{"a"}',
    b'{"a":1,}',
    b"[1,]",
    b"[,1]",
    b"[1 2]",
    b"[1",
    b"{",
    b"1 2",
    b"[]]",
    b"\xff",
    b"\xef\xbb\xbf1",
    b"[" * 65 + b"]" * 65,
    b"[" * 64 + b"1" + b"]" * 64,
    b"[" * 63 + b'{"a":1}' + b"]" * 63,
    b"'a'",
    b"\x0b1",
]


def slowly(data: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the reader step by step makes of a text: its value, or the name of its error."""
    with monkeypatch.context() as patch:
        patch.setattr(
            canonical,
            "_native",
            SimpleNamespace(plain_json=lambda _: None, canonical_json=_native.canonical_json),
        )
        try:
            return parse_json(data, source="text")
        except RagAuditError as exc:
            return exc.name


@pytest.mark.parametrize("data", TEXTS)
def test_json_is_read_alike_at_once_and_step_by_step(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, result = slowly(data, monkeypatch), _native.plain_json(data)
    assert result is None or result == expected
    assert json.dumps(result) == json.dumps(expected) or result is None, "true is no 1"
    if data in TEXTS[:13]:
        assert data == b"null" or result is not None, "this is plain enough"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_is_written_is_read_again(value: Any, ascii_only: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    assert value is None or _native.plain_json(data) == value
    assert parse_json(jcs(value), source="text") == value


@given(st.binary(max_size=12) | st.text('[]{}",:\\u09-1.etrufalsn ', max_size=16).map(str.encode))
def test_what_is_no_json_is_read_by_neither(data: bytes) -> None:
    result = _native.plain_json(data)
    if result is not None:
        assert json.loads(data) == result


def test_values_are_counted_outside_texts_and_before_any_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for data, count in ((b"1", 1), (b'"[,{"', 1), (b'["\\",",{}]', 4), (b'{"a":[1,2]}', 4), (b'"[[[', 1)):
        assert _native.json_values(data) == count
    assert parse_json(b'["[[[[[,,,,,"]', source="text", max_values=2) == ["[[[[[,,,,,"]
    monkeypatch.setattr(_native, "plain_json", lambda _: pytest.fail("was read"))
    with pytest.raises(SizeError, match="too many JSON values"):
        parse_json(b"[[],[]]", source="text", max_values=2)


# -- signatures ------------------------------------------------------------------------------------------

ORDER = 2**252 + 27742317777372353535851937790883648493
FIELD = 2**255 - 19
SMALL = [
    bytes.fromhex(h)
    for h in (
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    )
]
"""Points of order 8."""
STRANGE = [y.to_bytes(32, "little") for y in (0, 1, FIELD - 1, FIELD, FIELD + 1, 2, 3, 2**255 - 1)] + SMALL
STRANGE += [point[:31] + bytes([point[31] | 0x80]) for point in STRANGE]


def test_strange_points_verify_exactly_where_they_do_elsewhere() -> None:
    """Keys and commitments of small order or in a second encoding: an account's record must not count for one verifier
    and not for another."""
    true = 0
    for key, commitment, s, message in product(STRANGE, STRANGE, (0, 1), (b"", b"a", b"b")):
        signature = commitment + s.to_bytes(32, "little")
        result = signed_by(key, message, signature)
        assert result == openssl.accepts(key, signature, message), (key.hex(), commitment.hex(), s)
        true += result
    assert true > 0, "some of these verify without the cofactor"


def test_a_signature_is_of_one_message_under_one_key_and_has_one_form() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public, message = key.public_key().public_bytes_raw(), b"a message"
    signature = key.sign(message)
    assert signed_by(public, message, signature)
    s = int.from_bytes(signature[32:], "little")
    others = [signature[:32] + (s + ORDER).to_bytes(32, "little"), signature[:63], signature + b"\0", b""]
    others += [
        signature[:i] + bytes([signature[i] ^ 1 << b]) + signature[i + 1 :] for i in range(64) for b in (0, 7)
    ]
    for other in others:
        assert not signed_by(public, message, other) and not openssl.accepts(public, other, message)
    assert not signed_by(public, message + b"!", signature)
    assert not signed_by(public[:31], message, signature)
    assert not signed_by(bytes([public[0] ^ 1]) + public[1:], message, signature)
    with pytest.raises(ValueError, match="signature: expected 64 bytes"):
        _native.ed25519_verifies(public, message, b"")
