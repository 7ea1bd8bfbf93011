"""A verifier's signature on its report: a signed note (c2sp.org/signed-note) over the digest of the report as JSON.

The digest is SHA-256 of the report's canonical JSON (RFC 8785) with `signature` null. The note also has the digest of
the window header and the verdict line, so that a reader of the note alone sees the signed result. Every check rebuilds
the note's text from the report, so no line of the note can differ from the report.
"""

from __future__ import annotations

from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import RagAuditError, SignatureError
from rag_audit.log.keys import ALG_ED25519, VerifierKey
from rag_audit.log.note import parse_note, sign_note, verify_note
from rag_audit.log.signing import SigningKey
from rag_audit.report.model import Report, ReportSignature, ShortReport

DOMAIN = "rag-audit/report/v1"
NO_WINDOW = "none"
"""In the place of a header's digest, for a run that read no window."""


def signed(report: Report | ShortReport, key: SigningKey) -> Report | ShortReport:
    """The report with a signature by a verifier's key.

    :raises EncodingError: the report contains an integer that canonical JSON cannot write
    """
    value = report.dump()
    note = sign_note(_text(value), key)
    signature = ReportSignature(
        name=key.name,
        key_id=key.verifier.key_id.hex(),
        vkey=str(key.verifier),
        sha256=digest(value),
        note=str(note).removesuffix("\n").split("\n"),
    )
    return report.model_copy(update={"signature": signature})


def digest(value: dict[str, Json]) -> str:
    """SHA-256 of a report's canonical JSON without its signature, in hexadecimal."""
    return sha256(jcs({**value, "signature": None})).hex()


def check_signature(value: dict[str, Json], pinned: VerifierKey | None, *, field: str) -> VerifierKey | None:
    """Check the signature of a report that another party made, perhaps by another release.

    :param value: the report as JSON
    :param pinned: the key that must have signed the report; None accepts the key that the signature names, and a
        report without a signature
    :param field: the report's name in errors
    :returns: the key that signed, or None for a report without a signature
    :raises SignatureError: the signature is wrong, absent although a key is pinned, or by another key than the pinned
        one
    """
    place = f"{field}.signature"
    given = value.get("signature")
    if given is None:
        if pinned is None:
            return None
        raise SignatureError("the report has no signature", field=place, expected=_named(pinned),
                             actual="no signature")  # fmt: skip
    try:
        signature = ReportSignature.parse(given, field=place)
        note = parse_note("\n".join(signature.note) + "\n", field=place)
        key = VerifierKey.parse(signature.vkey, field=f"{place}.vkey") if pinned is None else pinned
        if signature.vkey != str(key):
            raise SignatureError("another key signed the report", field=place, expected=str(key),
                                 actual=signature.vkey)  # fmt: skip
        if key.algorithm != ALG_ED25519 or (signature.name, signature.key_id) != (key.name, key.key_id.hex()):
            raise SignatureError("the signature names another key than the key that signed", field=place,
                                 expected=f"{key.name}+{key.key_id.hex()}, which signs notes",
                                 actual=f"{signature.name}+{signature.key_id}")  # fmt: skip
        verify_note(note, [key], field=place)
    except SignatureError:
        raise
    except RagAuditError as exc:
        raise SignatureError("the report's signature cannot be read", field=place, actual=str(exc)) from exc
    if signature.sha256 != note.text.split("\n")[-2]:
        raise SignatureError("the signature names another digest than its note", field=place,
                             expected=note.text.split("\n")[-2], actual=signature.sha256)  # fmt: skip
    if note.text != (expected := _text(value)):
        raise SignatureError(
            "the report differs from the report that was signed",
            field=place,
            expected=note.text,
            actual=expected,
        )
    return key


def _named(key: VerifierKey) -> str:
    return f"a signature by {key.name}+{key.key_id.hex()}"


def _text(value: dict[str, Json]) -> str:
    """The text of the note over a report: four lines."""
    window = value.get("window")
    header = window.get("header") if isinstance(window, dict) else None
    return f"{DOMAIN}\n{header or NO_WINDOW}\n{value.get('line')}\n{digest(value)}\n"
