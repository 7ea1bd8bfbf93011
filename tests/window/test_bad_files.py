"""Input that cannot be read: each its own named error with the place, exit code 2, never a traceback."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.errors import (
    EncodingError,
    ExitCode,
    RagAuditError,
    SchemaError,
    SizeError,
    VersionError,
)
from rag_audit.models.trust import Trust
from rag_audit.models.window_writer import save_window, stray_siblings
from rag_audit.models.windowfile import MEDIA_TYPE, WindowFile
from rag_audit.report import as_json, render
from rag_audit.report.verification import verify_window
from rag_audit.verify.inputs import MAX_RECEIPT_BYTES
from tests.window.outcomes import not_passed
from tests.window.simulator import Finished

R = 21888242871839275222246405745257275088548364400416034343698204186575808495617


def text(change: Callable[[str], str]) -> Callable[[dict[str, Any]], bytes]:
    return lambda value: change(jcs(value).decode()).encode()


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], bytes]:
    def write(value: dict[str, Any]) -> bytes:
        change(value)
        return json.dumps(value).encode()

    return write


FILES: dict[str, tuple[Callable[[dict[str, Any]], bytes], type[RagAuditError], str]] = {
    "empty": (lambda v: b"", EncodingError, "window.json"),
    "truncated": (lambda v: jcs(v)[:-100], EncodingError, "window.json"),
    "not UTF-8": (lambda v: b"\xff" + jcs(v), EncodingError, "window.json"),
    "not an object": (lambda v: b"[]", SchemaError, "window.json"),
    "unknown version": (
        edited(lambda v: v.update(mediaType=MEDIA_TYPE[:-1] + "2")),
        VersionError,
        "window.json.mediaType",
    ),
    "no version": (edited(lambda v: v.pop("mediaType")), VersionError, "window.json.mediaType"),
    "duplicate key": (
        text(lambda t: t.replace('"roster":', '"roster":[],"roster":', 1)),
        EncodingError,
        "window.json",
    ),
    "duplicate key in an entry": (
        text(lambda t: t.replace('"hq":', '"hq":"00","hq":', 1)),
        EncodingError,
        "window.json",
    ),
    "a lone surrogate": (
        text(lambda t: t.replace('"hq":"', '"hq":"\\ud800', 1)),
        EncodingError,
        "window.json",
    ),
    "a lone surrogate in a key": (
        text(lambda t: t.replace('"hq":', '"h\\udfff\u00e9":', 1)),
        EncodingError,
        "window.json",
    ),
    "a float": (text(lambda t: t.replace('"ts":1', '"ts":1.5e', 1)), EncodingError, "window.json"),
    "an integer above 2^53": (
        text(lambda t: t.replace('"i":1', '"i":99999999999999999999', 1)),
        EncodingError,
        "window.json",
    ),
    "nested without end": (lambda v: b"[" * 100_000, EncodingError, "window.json"),
    "an unknown field": (edited(lambda v: v.update(extra=1)), SchemaError, "window.json.extra"),
    "a missing field": (edited(lambda v: v.pop("roster")), SchemaError, "window.json.roster"),
    "no entries": (edited(lambda v: v["entries"].clear()), SchemaError, "entries[0]"),
    "entry 0 is no opening": (edited(lambda v: v["entries"].pop(0)), SchemaError, "entries[0]"),
    "an entry of unknown type": (
        edited(lambda v: v["entries"][2].update(type="note")),
        SchemaError,
        "entries[2].type",
    ),
    "an entry whose type is a list": (
        edited(lambda v: v["entries"][2].update(type=["query"])),
        SchemaError,
        "entries[2].type",
    ),
    "an entry whose type is an object": (
        edited(lambda v: v["entries"][2].update(type={})),
        SchemaError,
        "entries[2].type",
    ),
    "an entry of version true": (
        edited(lambda v: v["entries"][2].update(v=True)),
        SchemaError,
        "entries[2].v",
    ),
    "an opening of version true": (
        edited(lambda v: v["entries"][0].update(v=True)),
        SchemaError,
        "entries[0].v",
    ),
    "a policy of version true": (edited(lambda v: v["policy"].update(v=True)), SchemaError, "policy.v"),
    "an origin of two lines": (
        edited(lambda v: v["entries"][0].update(origin="example.org\nPASS")),
        SchemaError,
        "entries[0].origin",
    ),
    "an origin that turns the line around": (
        edited(lambda v: v["entries"][0].update(origin="\u202eexample")),
        SchemaError,
        "entries[0].origin",
    ),
    "an id in digits of another script": (
        edited(lambda v: v["policy"].update(window="w-\u0663")),
        SchemaError,
        "policy.window",
    ),
    "eps in digits of another script": (
        edited(lambda v: v["policy"].update(eps_acc="\u0661\u0664")),
        SchemaError,
        "policy.eps_acc",
    ),
    "a roster line that does not say who holds the key": (
        edited(lambda v: v["roster"][1].pop("custody")),
        SchemaError,
        "roster[1].custody",
    ),
    "an artefact that is a number": (
        edited(lambda v: v["embedder"]["embedder"]["artefacts"].update({"table-scan": 5})),
        EncodingError,
        "embedder.embedder.artefacts.table-scan",
    ),
    "an artefact that is no digest": (
        edited(lambda v: v["embedder"]["embedder"]["artefacts"].update({"table-scan": "xyz"})),
        EncodingError,
        "embedder.embedder.artefacts.table-scan",
    ),
    "artefacts are text": (
        edited(lambda v: v["embedder"]["embedder"].update(artefacts="x")),
        SchemaError,
        "embedder.embedder.artefacts",
    ),
    "an entry of unknown version": (
        edited(lambda v: v["entries"][2].update(v=2)),
        VersionError,
        "entries[2].v",
    ),
    "an entry that is no object": (
        edited(lambda v: v["entries"].__setitem__(2, 7)),
        SchemaError,
        "entries[2].type",
    ),
    "an entry with an unknown field": (
        edited(lambda v: v["entries"][2].update(x=1)),
        SchemaError,
        "entries[2].x",
    ),
    "a number >= r": (edited(lambda v: v["entries"][2].update(hq=f"{R:064x}")), SchemaError, "entries[2].hq"),
    "upper-case hexadecimal": (
        edited(lambda v: v["entries"][2].update(hq="0" * 63 + "A")),
        SchemaError,
        "entries[2].hq",
    ),
    "c_seed >= r": (
        edited(lambda v: v["entries"][0].update(c_seed="f" * 64)),
        SchemaError,
        "entries[0].c_seed",
    ),
    "i is 0": (edited(lambda v: v["entries"][2].update(i=0)), SchemaError, "entries[2].i"),
    "i is true": (edited(lambda v: v["entries"][2].update(i=True)), SchemaError, "entries[2].i"),
    "i is text": (edited(lambda v: v["entries"][2].update(i="1")), SchemaError, "entries[2].i"),
    "an entry too large": (
        edited(lambda v: v["entries"][1]["notes"].append("x" * 70_000)),
        SizeError,
        "entries[1]",
    ),
    "policy misses a field": (edited(lambda v: v["policy"].pop("k_max")), SchemaError, "policy.k_max"),
    "policy with an exponent of a number": (
        edited(lambda v: v["policy"].update(eps_acc="1E3")),
        SchemaError,
        "policy.eps_acc",
    ),
    "policy of unknown version": (edited(lambda v: v["policy"].update(v=2)), SchemaError, "policy.v"),
    "gain 0": (
        edited(lambda v: v["policy"]["noise"].update(gains=[0])),
        SchemaError,
        "policy.noise.gains[0]",
    ),
    "theta q is 0": (
        edited(lambda v: v["policy"]["estimator"].update(theta=[1, 0])),
        SchemaError,
        "policy.estimator.theta[1]",
    ),
    "capacity 0": (
        edited(lambda v: v["policy"]["tenants"][0].update(capacity=0)),
        SchemaError,
        "policy.tenants[0].capacity",
    ),
    "manifest without embedder": (
        edited(lambda v: v["embedder"].pop("embedder")),
        SchemaError,
        "embedder.embedder",
    ),
    "manifest is a list inside": (
        edited(lambda v: v["embedder"].update(schema=[])),
        SchemaError,
        "embedder.schema",
    ),
    "manifest with token limits as text": (
        edited(lambda v: v["embedder"]["embedder"]["tokens"].update(query="64")),
        SchemaError,
        "embedder.embedder.tokens.query",
    ),
    "manifest without dimension": (
        edited(lambda v: v["embedder"]["schema"].pop("dimension")),
        SchemaError,
        "embedder.schema.dimension",
    ),
    "roster line without key": (edited(lambda v: v["roster"][1].pop("key")), SchemaError, "roster[1].key"),
    "tenants out of order": (edited(lambda v: v["tenants"].reverse()), SchemaError, "tenants"),
    "tenant twice": (edited(lambda v: v["tenants"].append(v["tenants"][0])), SchemaError, "tenants"),
    "final checkpoint is no note": (
        edited(lambda v: v.update(final_checkpoint="hello")),
        EncodingError,
        "final_checkpoint",
    ),
    "a sibling with a parent path": (
        edited(lambda v: v.update(proofs={"sibling": "../x.json"})),
        EncodingError,
        "window.json.proofs",
    ),
    "a sibling with an absolute path": (
        edited(lambda v: v.update(proofs={"sibling": "/etc/passwd"})),
        EncodingError,
        "window.json.proofs",
    ),
    "a sibling that is not there": (
        edited(lambda v: v.update(proofs={"sibling": "0" * 64 + ".json"})),
        EncodingError,
        "window.json",
    ),
}


@pytest.mark.parametrize(("write", "error", "place"), FILES.values(), ids=FILES.keys())
def test_a_window_file_that_cannot_be_read(
    write: Callable[[dict[str, Any]], bytes],
    error: type[RagAuditError],
    place: str,
    finished: Finished,
    tmp_path: Path,
) -> None:
    path = tmp_path / "window.json"
    path.write_bytes(write(finished.value()))
    with pytest.raises(RagAuditError) as caught:
        verify_window(path, trust=finished.service.trust(finished.policy))
    assert type(caught.value) is error, caught.value
    assert caught.value.exit_code is ExitCode.MALFORMED
    assert caught.value.field is not None and place in caught.value.field


def test_a_window_file_that_is_not_there(finished: Finished, tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match="window file not found"):
        verify_window(tmp_path / "window.json", trust=finished.service.trust(finished.policy))


def test_a_window_that_is_not_complete_is_said_to_be_early(finished: Finished, tmp_path: Path) -> None:
    """A verifier of a folder before the end of the window learns that the file follows."""
    (tmp_path / "header.json").write_text("{}")
    with pytest.raises(EncodingError, match="window file not found") as caught:
        verify_window(tmp_path, trust=finished.service.trust(finished.policy))
    assert "the window is not complete" in str(caught.value.hint)


def test_a_window_file_above_the_limit(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_window(finished.file, tmp_path / "window.json")
    monkeypatch.setattr("rag_audit.models.windowfile.MAX_WINDOW_BYTES", 1000)
    with pytest.raises(SizeError):
        WindowFile.load(tmp_path)


def test_siblings_are_read_and_checked(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit.models.window_writer.INLINE_BYTES", 500)
    save_window(finished.file, tmp_path / "window.json")
    siblings = sorted(p for p in tmp_path.glob("*.json") if p.name != "window.json")
    assert siblings and WindowFile.load(tmp_path) == finished.file
    siblings[0].write_bytes(siblings[0].read_bytes() + b" ")
    with pytest.raises(EncodingError, match="does not match its name"):
        WindowFile.load(tmp_path)
    for path in siblings[:2]:
        path.unlink()
    with pytest.raises(EncodingError, match="parts of the window file are missing") as caught:
        WindowFile.load(tmp_path)
    assert all(path.name in str(caught.value.expected) for path in siblings[:2])
    assert str(tmp_path) in str(caught.value.actual) and caught.value.hint


def test_parts_of_earlier_window_files_are_told_from_the_others(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit.models.window_writer.INLINE_BYTES", 500)
    save_window(finished.changed(proofs={}), tmp_path / "window.json")
    before = set(tmp_path.iterdir())
    save_window(finished.changed(roster=[*finished.file.roster, "x" * 500]), tmp_path / "window.json")
    (tmp_path / "header.json").write_text("{}")
    stray = stray_siblings(tmp_path / "window.json")
    assert stray and set(stray) < before
    for path in stray:
        path.unlink()
    assert WindowFile.load(tmp_path).proofs == finished.file.proofs


def test_a_window_file_that_nobody_could_read_is_not_written(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit.models.window_writer.INLINE_BYTES", 500)
    for limit in ("MAX_SIBLINGS_BYTES", "MAX_SIBLINGS_VALUES"):
        with monkeypatch.context() as patch:
            patch.setattr(f"rag_audit.models.windowfile.{limit}", 50)
            with pytest.raises(SizeError) as caught:
                save_window(finished.file, tmp_path / "window.json")
        assert "sampled challenge" in str(caught.value.hint) and not any(tmp_path.iterdir())


# Parts that are well-formed JSON but wrong deeper down end in a check, not in a traceback.

DEEP: dict[str, tuple[Callable[[dict[str, Any]], Any], ExitCode]] = {
    "opening checkpoint is no note": (lambda v: v.update(header_checkpoint="hello"), ExitCode.MALFORMED),
    "a proof is no object": (lambda v: v["proofs"].update({next(iter(v["proofs"])): 5}), ExitCode.FAIL),
    "a proof lacks a part": (lambda v: v["proofs"]["4"]["retrieve"].pop("c"), ExitCode.MALFORMED),
    "a proof has another part": (lambda v: v["proofs"]["4"]["retrieve"].update(public=[1]), ExitCode.MALFORMED),
    "a proof of another system": (lambda v: v["proofs"]["4"]["retrieve"].update(system="plonk"), ExitCode.MALFORMED),
    "a proof of another circuit": (lambda v: v["proofs"]["4"]["retrieve"].update(circuit="00" * 32), ExitCode.MALFORMED),
    "a point at infinity": (lambda v: v["proofs"]["4"]["retrieve"].update(a=["00" * 32] * 2), ExitCode.MALFORMED),
    "a key is no object": (lambda v: v["verification_keys"].update({k: 1 for k in v["verification_keys"]}), ExitCode.FAIL),
    "a beacon note is no note": (lambda v: v["entries"][1].update(notes=["hello"]), ExitCode.FAIL),
    "a beacon checkpoint is no note": (lambda v: v["entries"][1].update(checkpoint="hello"), ExitCode.FAIL),
    "a beacon with an impossible seq": (lambda v: v["entries"][1].update(seq=2**50), ExitCode.FAIL),
    "tenants do not fit the policy": (lambda v: v["tenants"].pop(), ExitCode.FAIL),
    "a record of an unknown tenant": (lambda v: v["entries"][2].update(tenant="tax"), ExitCode.FAIL),
    "a record of an unknown account": (lambda v: v["entries"][2].update(account="nobody"), ExitCode.FAIL),
    "lattice 3": (lambda v: v["policy"]["noise"].update(lattice=3), ExitCode.FAIL),
    "gains without end": (lambda v: v["policy"]["noise"].update(gains=[1, 2**50]), ExitCode.FAIL),
    "score window upside down": (lambda v: v["policy"]["noise"].update(lo=9, hi=1), ExitCode.FAIL),
    "theta above 1": (lambda v: v["policy"]["estimator"].update(theta=[9, 8]), ExitCode.FAIL),
    "n beyond reason": (lambda v: v["policy"].update(n=2**53 - 1), ExitCode.FAIL),
    "k_max beyond reason": (lambda v: v["policy"].update(k_max=2**53 - 1), ExitCode.FAIL),
    "accounts_max beyond reason": (lambda v: v["policy"]["tenants"][0].update(accounts_max=2**53 - 1), ExitCode.FAIL),
    "capacity beyond reason": (lambda v: v["policy"]["tenants"][0].update(capacity=2**53 - 1), ExitCode.FAIL),
    "top_k above the capacity": (lambda v: v["policy"].update(top_k=9), ExitCode.FAIL),
    "delta_policy 0": (lambda v: v["policy"].update(delta_policy="0"), ExitCode.FAIL),
    "delta_policy 1e999": (lambda v: v["policy"].update(delta_policy="1e999"), ExitCode.FAIL),
    "eps_acc 0": (lambda v: v["policy"].update(eps_acc="0"), ExitCode.FAIL),
    "eps_acc 1e999": (lambda v: v["policy"].update(eps_acc="1e999"), ExitCode.FAIL),
    "noise table is unknown": (lambda v: v["policy"]["noise"].update(table="00" * 32), ExitCode.FAIL),
    "eps_acc 100,000": (lambda v: v["policy"].update(eps_acc="100000"), ExitCode.FAIL),
    "eps_acc 1e-999": (lambda v: v["policy"].update(eps_acc="1e-999"), ExitCode.FAIL),
    "delta_acc 1e-320": (lambda v: v["policy"].update(delta_acc="1e-320"), ExitCode.FAIL),
    "token limits of 0": (lambda v: v["embedder"]["embedder"]["tokens"].update(query=0), ExitCode.FAIL),
    "embedder unknown": (lambda v: v["embedder"]["embedder"].update(kind="word2vec"), ExitCode.FAIL),
    "a challenge is no note": (lambda v: v.update(challenges=["hello"]), ExitCode.PASS),
}  # fmt: skip


@pytest.mark.parametrize(("change", "exit_code"), DEEP.values(), ids=DEEP.keys())
def test_a_part_that_is_wrong_inside(
    change: Callable[[dict[str, Any]], Any], exit_code: ExitCode, finished: Finished
) -> None:
    value = finished.value()
    change(value)
    verdict = finished.verify(WindowFile.parse(value, field="window.json"))
    assert verdict.exit_code is exit_code, verdict.deciding
    json.dumps(as_json(verdict))


# Receipts.

RECEIPTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "not a receipt": lambda r: r.update(type="note"),
    "unknown version": lambda r: r.update(v=2),
    "an unknown field": lambda r: r.update(x=1),
    "a signature of another size": lambda r: r.update(sig="00"),
    "an account that is not on the roster": lambda r: r.update(account="nobody"),
    "not a tlog-proof": lambda r: r.update(receipt="hello"),
    "a wrong signature": lambda r: r.update(sig="00" * 64),
}


@pytest.mark.parametrize("change", RECEIPTS.values(), ids=RECEIPTS.keys())
def test_a_receipt_that_is_rejected(
    change: Callable[[dict[str, Any]], Any], finished: Finished, tmp_path: Path
) -> None:
    value = json.loads((finished.receipts / "law-1-1.json").read_bytes())
    change(value)
    (tmp_path / "bad.json").write_text(json.dumps(value))
    verdict = finished.verify(receipts=[finished.receipts, tmp_path])
    assert not_passed(verdict) == {"receipt.accepted"}
    assert verdict.exit_code is ExitCode.MALFORMED
    assert verdict.deciding is not None and "bad.json" in verdict.deciding.actual
    assert "and 1 more" not in verdict.deciding.actual


def named_in_no_alphabet(folder: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff.json")).write_bytes(b"{}")
    except OSError:
        pytest.skip("this file system takes Unicode names only")


UNREADABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty": (lambda d: (d / "x.json").write_bytes(b""), "x.json"),
    "not JSON": (lambda d: (d / "x.json").write_bytes(b"\xff"), "x.json"),
    "nested without end": (lambda d: (d / "x.json").write_bytes(b"[" * 100_000), "x.json"),
    "too large": (lambda d: (d / "x.json").write_bytes(b" " * (MAX_RECEIPT_BYTES + 1)), "x.json"),
    "a folder": (lambda d: (d / "x.json").mkdir(), "x.json"),
    "a pipe that nobody writes to": (lambda d: os.mkfifo(d / "x.json"), "x.json"),
    "a device": (lambda d: (d / "x.json").symlink_to("/dev/zero"), "x.json"),
    "a link to nothing": (lambda d: (d / "x.json").symlink_to("nothing"), "x.json"),
    "a name that is no text": (named_in_no_alphabet, "\\xff.json"),
}


@pytest.mark.parametrize(("make", "name"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_receipt_file_that_cannot_be_read_hides_no_false_check(
    make: Callable[[Path], Any], name: str, finished: Finished, tmp_path: Path
) -> None:
    """Receipts come from others: one of them must not be able to turn FAIL into "could not decide"."""
    make(tmp_path)
    receipts = [tmp_path, finished.receipts]
    verdict = finished.verify(receipts=receipts)
    assert not_passed(verdict) == {"receipt.accepted"}
    assert verdict.exit_code is ExitCode.MALFORMED
    assert verdict.deciding is not None and name in verdict.deciding.actual
    entries = finished.value()["entries"]
    entries[3]["ts"] += 1
    verdict = finished.verify(finished.changed(entries=entries), receipts=receipts)
    assert verdict.exit_code is ExitCode.FAIL
    assert [c.status.value for c in verdict.checks if c.id == "receipt.accepted"] == ["undecided"]
    json.dumps(as_json(verdict))
    assert name in render(verdict)


def test_a_receipt_of_another_window(finished: Finished, tmp_path: Path) -> None:
    from tests.window.forge import Forge

    forge = Forge(finished)
    forge.policy["delete_after"] += 1
    (tmp_path / "sealed").mkdir()
    _, receipts = forge.seal(tmp_path / "sealed")
    verdict = finished.verify(receipts=[receipts])
    assert verdict.exit_code is ExitCode.MALFORMED
    assert verdict.deciding is not None and verdict.deciding.id == "receipt.accepted"
    assert "for this window" in verdict.deciding.actual


@pytest.mark.parametrize("missing", ["none.json", "none"])
def test_a_receipt_file_that_is_not_there(missing: str, finished: Finished, tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match=f"receipts not found: {tmp_path}/{missing}") as caught:
        finished.verify(receipts=[finished.receipts, tmp_path / missing])
    assert caught.value.exit_code is ExitCode.MALFORMED


def test_every_rejected_receipt_is_counted(finished: Finished, tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "c.json", "d.txt"):
        (tmp_path / name).write_bytes(b"{}")
    verdict = finished.verify(receipts=[tmp_path])
    (check,) = (c for c in verdict.checks if c.id == "receipt.accepted")
    assert check.actual.startswith("a.json: ") and check.actual.endswith(" (and 2 more)")


# The window before this one.


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 100_000], ids=["empty", "no window", "deep"])
def test_a_previous_window_that_cannot_be_read_hides_no_false_check(
    data: bytes, finished: Finished, tmp_path: Path
) -> None:
    path = tmp_path / "window.json"
    path.write_bytes(data)
    verdict = finished.verify(previous=[path])
    assert not_passed(verdict) == {"header.chain"}
    assert verdict.exit_code is ExitCode.MALFORMED
    entries = finished.value()["entries"]
    entries[3]["ts"] += 1
    verdict = finished.verify(finished.changed(entries=entries), previous=[path])
    assert verdict.exit_code is ExitCode.FAIL


# trust.toml and options.

DRAND = (
    f'[beacon.drand]\nchain = "{"0" * 64}"\npublic_key = "{"zz" * 48}"\nscheme = "pedersen-bls-chained"\n'
    "genesis = 1\nperiod = 3\n\n[[witness]]"
)
REPLACED = tomllib.loads(Path(__file__).with_name("trust_faults.toml").read_text())
TRUST: dict[str, tuple[Callable[[str], str], type[RagAuditError]]] = {
    "not TOML": (lambda t: t + "[[", EncodingError),
    "a key twice": (lambda t: t.replace('mode = "full"', 'mode = "full"\nmode = "full"'), EncodingError),
    "a witness twice": (
        lambda t: t.replace('name = "w2"', 'name = "w1"').replace('["w1", "w2"]', '["w1"]'),
        SchemaError,
    ),
    "an integer of 5,000 digits": (lambda t: t.replace("quorum = 2", "quorum = " + "2" * 5_000), SizeError),
    "a drand key that is not hexadecimal": (lambda t: t.replace("[[witness]]", DRAND, 1), SchemaError),
    "an unknown requirement": (lambda t: t + "max_eps = 1\n", SchemaError),
    "an account's key with a digit more": (lambda t: t.replace('\nkey = "', '\nkey = "0', 1), SchemaError),
    **{name: (lambda t, words=words: t.replace(*words), SchemaError) for name, words in REPLACED.items()},
}


@pytest.mark.parametrize(("change", "error"), TRUST.values(), ids=TRUST.keys())
def test_a_trust_file_that_is_refused(
    change: Callable[[str], str], error: type[RagAuditError], finished: Finished, tmp_path: Path
) -> None:
    honest = finished.service.trust_text(finished.policy)
    changed = change(honest)
    assert changed != honest
    path = tmp_path / "trust.toml"
    path.write_text(changed)
    with pytest.raises(RagAuditError) as caught:
        Trust.load(path)
    assert type(caught.value) is error
    assert caught.value.exit_code is ExitCode.MALFORMED
    assert caught.value.field is not None and str(path) in caught.value.field


@pytest.mark.parametrize("limit", ["eight", "-1", "nan", "inf", ""])
def test_a_limit_on_the_command_line_that_is_no_number(limit: str, finished: Finished) -> None:
    with pytest.raises(SchemaError) as caught:
        finished.verify(max_epsilon=limit)
    assert caught.value.field == "options.max_epsilon"
