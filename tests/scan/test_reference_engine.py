"""The second verifier where windows are verified: `verify --engine reference`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench.proofs import failures
from rag_audit import _native
from rag_audit.cli import main
from rag_audit.errors import EncodingError, InvalidProof
from rag_audit.proofs.backends.reference import engine as reference
from rag_audit.proofs.backends.reference.engine import FALSE, Batch
from rag_audit.proofs.backends.scan.engine import engine
from rag_audit.proofs.backends.scan.key import (
    EmbedKey,
    EncoderArgument,
    EncoderKey,
    ScanKey,
    commit_index,
)
from rag_audit.proofs.backends.scan.verify import MALFORMED, refused
from rag_audit.proofs.chunks import in_chunks
from rag_audit.retrieval.embedders.integer_bert.files import load_files
from tests.embedders import small_bert
from tests.native import test_encoder
from tests.scan import test_embed
from tests.scan.test_sampled import BOUND, DIMENSION, KEY, LISTED, SCORES, SEED, WINDOW, N, Tenant, slot
from tests.simulate.cases import expected, run

ROOT = Path(__file__).resolve().parents[2]
WINDOWS = ROOT / "vectors/windows"
CASES = sorted(path.parent.name for path in WINDOWS.glob("*/case.json"))
DECIDED = (
    "tests/scan/test_batch.py",
    "tests/scan/test_coalition.py",
    "tests/window/test_batch.py",
)


def test_each_record_has_an_outcome_of_its_own() -> None:
    def check(record: str) -> bool:
        if record == "malformed":
            raise EncodingError("it is no proof")
        return record == "true"

    for words in (["true"] * 70, ["true", "false", "malformed", "true", *["true"] * 66, "false"]):
        result = in_chunks(Batch(check), len(words), lambda i, words=words: words[i], refused)
        kinds = {InvalidProof: "false", EncodingError: "malformed"}
        assert {i: kinds[type(reason)] for i, reason in result.items()} == {
            i: word for i, word in enumerate(words) if word != "true"
        }
        assert all(reason.actual == FALSE for i, reason in result.items() if words[i] == "false")


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_a_published_window_has_its_verdict(name: str) -> None:
    """The same exit code, deciding check and figures; Groth16's proofs by py_ecc."""
    case = json.loads((WINDOWS / name / "case.json").read_text(encoding="utf-8"))
    case["options"]["engine"] = "reference"
    assert expected(run(case, WINDOWS / name))[0] == case["expect"]


@pytest.mark.full
@pytest.mark.parametrize("module", DECIDED)
def test_lies_are_found_by_the_same_checks_where_it_decides(module: str) -> None:
    """All tests of windows that name no engine, with the second verifier in the native core's place."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.scan.by_reference", module]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_tenant_without_noise_has_no_certificate() -> None:
    points = commit_index(bytes(6), 2, 3, bytes(32))
    key = ScanKey(points, 2, 3, bytes(32), (), 1, *SCORES)
    record = ([bytes(32 * 6)], b"a certificate", b"")
    assert reference.records(key).add([record])[0][1].startswith(MALFORMED)
    assert "without noise" in reference.records(key).add([record])[0][1]


def mangled(proof: bytes) -> list[bytes]:
    """The proof, one that is false, and one that is too short."""
    return [proof, proof[:-1] + bytes([proof[-1] ^ 1]), proof[:-32]]


@pytest.mark.full
def test_proofs_of_a1_have_the_native_core_s_outcomes() -> None:
    key = EmbedKey.commit(test_embed.rows(), test_embed.SMALL)
    tokens = test_embed.TOKENS[0]
    created = test_embed.job(key, tokens).run()
    [part] = test_embed.wire_of(created)
    proofs = [(proof,) for proof in mangled(part)]
    statements = [test_embed.statement(key, tokens)] * 3 + [test_embed.statement(key, tokens, ctx=34)]
    result = [
        failures(key, [*proofs, proofs[0]], statements, engine=engine) for engine in ("native", "reference")
    ]
    native, second = ({i: type(reason) for i, reason in bad.items()} for bad in result)
    assert second == native == {1: InvalidProof, 2: EncodingError, 3: InvalidProof}


@pytest.mark.full
def test_proofs_of_the_integer_encoder_have_the_native_core_s_outcomes(tmp_path: Path) -> None:
    model = load_files(small_bert.write(tmp_path), small_bert.SCALES).model
    native, public = test_encoder.core(model), test_encoder.statement(model, [2, 3])
    key = EncoderKey(EncoderArgument(2, test_encoder.NORM_FACTOR), native.pins())
    proofs = mangled(test_encoder.prove(native, public, [2, 3], 2))
    records = [(public, proof) for proof in proofs] + [(public[:31] + b"\x01" + public[32:], proofs[0])]
    for name in ("native", "reference"):
        batch = engine(name).encoders(key)
        outcomes = [i for i, _ in batch.add(records)], [i for i, _ in batch.search(records)]
        assert outcomes == ([2], [1, 3]) and not batch.holds(), name
        right = engine(name).encoders(key)
        assert right.add(records[:1]) == [] and right.holds()


@pytest.mark.full
@pytest.mark.parametrize(("sampled", "gains"), [(False, ()), (True, ()), (True, (1, 8))])
def test_records_of_sampled_tenants_have_the_native_core_s_outcomes(
    sampled: bool, gains: tuple[int, ...]
) -> None:
    rows = np.random.default_rng(5).integers(-7, 8, (N, DIMENSION), dtype=np.int8)
    points = commit_index(rows.tobytes(), DIMENSION, N, KEY)
    index = _native.ScanIndex(points, DIMENSION, N)
    kept = _native.scan_bits_prove(N, WINDOW, slot(7), SEED, BOUND, False)
    tenant = Tenant(index, rows, kept if sampled else None, gains)
    record = tenant.record(1)
    key = ScanKey(points, DIMENSION, N, WINDOW, gains, LISTED, *SCORES, kept[1] if sampled else None)
    items = [([record.elements], record.certificate, proof) for proof in mangled(record.proof)]
    items.append(([record.elements[:-1] + b"\x09"], record.certificate, record.proof))
    result = []
    for batch in (_native.ScanBatch(index, record.parameters), reference.records(key)):
        malformed = [i for i, _ in batch.add(items)]
        result.append((malformed, batch.holds(), [i for i, _ in batch.search(items)]))
    assert result[0][:2] == result[1][:2] == ([2], False)
    assert {1, 3} <= set(result[0][2]) and result[1][2] == [1, 3]
    if sampled:
        context = (N, WINDOW, slot(7), BOUND)
        assert reference.sample_rows(*context, kept[0]) == kept[1]
        with pytest.raises(ValueError, match=FALSE):
            reference.sample_rows(*context, mangled(kept[0])[1])
        with pytest.raises(ValueError, match=MALFORMED):
            reference.sample_rows(*context, mangled(kept[0])[2])


@pytest.mark.full
def test_the_command_takes_it() -> None:
    folder = WINDOWS / "scan-proof-changed"
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    words = ["verify", folder / case["window"], "--trust", folder / case["trust"], "--engine", "reference"]
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == case["expect"]["exit_code"]
    assert case["expect"]["decides"] in done.output
