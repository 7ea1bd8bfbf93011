"""The page's verifiers against the native ones: the same proofs accepted, and the same reasons for refusing others."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rag_audit import _native
from rag_audit.proofs.backends.scan.key import RECORD as FIELDS
from rag_audit.report.browser.assets import NATIVE
from rag_audit.report.browser.inside import native
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders.integer_bert.files import load_files
from tests.embedders import small_bert
from tests.frontend.conftest import Process
from tests.native import test_encoder as of_encoder
from tests.scan import test_pooled_listing as pooled
from tests.scan.test_batch import job_of, key_of, requested, shared

pytestmark = [pytest.mark.page, pytest.mark.usefixtures("process")]
ROOT = Path(__file__).resolve().parents[2]


def vectors(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((ROOT / "vectors/v1/scan" / name).read_text())
    return read


def outcome(call: Callable[[], object]) -> str:
    """Nothing, or the reason of a refusal."""
    try:
        call()
    except ValueError as exc:
        return f"refused: {exc}"
    return "done"


def agree(here: Callable[[], object], there: Callable[[], object]) -> str:
    result = outcome(here)
    assert result == outcome(there)
    return result


def changed(proof: bytes, count: int = 12) -> list[bytes]:
    """Proofs with one bit changed, cut, and with more at the end."""
    wrong = [proof[:-1], proof + b"\0", b"", proof[:64]]
    for k in range(count):
        at = k * (len(proof) - 1) // (count - 1)
        wrong.append(proof[:at] + bytes([proof[at] ^ 1 << k % 8]) + proof[at + 1 :])
    return wrong


def test_the_module_imports_nothing() -> None:
    """No clock, no randomness, no network: section 2 of a module has its imports (WebAssembly 1.0, section 5.5.5)."""
    module, at, sections = NATIVE.read_bytes(), 8, set()
    while at < len(module):
        number, size, shift, at = module[at], 0, 0, at + 1
        while True:
            byte = module[at]
            size, shift, at = size | (byte & 0x7F) << shift, shift + 7, at + 1
            if byte < 0x80:
                break
        sections.add(number)
        at += size
    assert 10 in sections and 2 not in sections


def proof_of(value: dict[str, Any]) -> bytes:
    return base64.b64decode(value["proof"])


def elements(of: dict[str, Any], *names: str) -> bytes:
    return b"".join(bytes.fromhex(of[name]) for name in names)


RECORD = ("c_seed", "beacon", "slot", "context", "cq", "htopk")


def answered() -> tuple[dict[str, Any], bytes]:
    of = vectors("proofs.json")["answer"]
    return of, elements(of, *RECORD)


def made(core: Any, of: dict[str, Any], window: bytes | None = None) -> tuple[Any, Any]:
    index = core.ScanIndex(base64.b64decode(of["index"]), of["dimension"], of["capacity"])
    window = bytes.fromhex(of["window"]) if window is None else window
    return index, core.ScanParameters(window, of["gains"], of["listed"], of["lo"], of["hi"], of["lattice"])


def test_answers_and_changed_ones() -> None:
    of, record = answered()
    certificate, proof = proof_of(of["certificate"]), proof_of(of["query_proof"])
    both = [(core, *made(core, of)) for core in (native, _native)]
    assert both[0][1].encode() == both[1][1].encode() == base64.b64decode(of["index"])
    assert both[0][1].digest().hex() == of["index_digest"]

    def verify(record: bytes, certificate: bytes, proof: bytes) -> str:
        here, there = (
            lambda core=core, i=i, p=p: core.scan_verify(i, p, [record], certificate, proof)
            for core, i, p in both
        )
        return agree(here, there)

    assert verify(record, certificate, proof) == "done"
    refused = [verify(record, certificate, wrong) for wrong in changed(proof)]
    refused += [verify(record, wrong, proof) for wrong in changed(certificate)]
    refused += [
        verify(record[:-1] + bytes([record[-1] ^ 1]), certificate, proof),
        verify(record[:-1], certificate, proof),
    ]
    refused += [verify(b"\xff" * len(record), certificate, proof)]
    assert all(result.startswith("refused: ") for result in refused) and len(set(refused)) > 5


def test_a_batch_names_the_false_ones() -> None:
    of, record = answered()
    certificate, proof = proof_of(of["certificate"]), proof_of(of["query_proof"])
    bad = proof[:-1] + bytes([proof[-1] ^ 1])
    records = [
        ([record], certificate, proof),
        ([record], certificate, bad),
        ([record], certificate, proof[:-1]),
    ] * 2
    result = []
    for core in (native, _native):
        batch = core.ScanBatch(*made(core, of))
        result.append(
            [batch.add(records), batch.holds(), batch.search(records), batch.retained(), batch.CHUNK]
        )
        alone = core.ScanBatch(*made(core, of))
        result[-1] += [alone.add(records[:1]), alone.holds()]
    assert result[0] == result[1]
    assert result[0][1] is False and [i for i, _ in result[0][2]] == [1, 2, 4, 5] and result[0][-1] is True


@pytest.mark.parametrize("gains", [(1, 8), ()], ids=["noise", "exact"])
def test_proofs_of_several_records_and_changed_ones(gains: tuple[int, ...]) -> None:
    """Made here, since the vectors have digests of such proofs alone."""
    key = key_of(gains)
    jobs = [requested(key, slot) for slot in (101, 102, 103)]
    certificate, proof = shared(key).parse_proof(job_of(jobs).run(), field="proof").parts or (b"", b"")
    records = [job.statement.encode(FIELDS) for job in jobs]
    other = requested(key, 104).statement.encode(FIELDS)
    whole = (records, certificate, proof)
    wrong = [
        ([other, *records[1:]], certificate, proof),
        (records[:2], certificate, proof),
        (records[::-1], certificate, proof),
        ([], certificate, proof),
        (records * 22, certificate, proof),
        *((records, bad, proof) for bad in changed(certificate or proof, 2) if bad),
        *((records, certificate, bad) for bad in changed(proof, 4)),
    ]
    unreadable = ([records[0][:-1], *records[1:]], certificate, proof)
    both = []
    for core in (native, _native):
        index = core.ScanIndex(key.points, key.dimension, key.capacity)
        of = (key.window, list(gains), key.listed, key.lo, key.hi, key.lattice)
        batch, alone = (core.ScanBatch(index, core.ScanParameters(*of)) for _ in range(2))
        refused = outcome(lambda batch=batch: batch.add([whole, unreadable]))
        result = [alone.add([whole, whole]), alone.holds(), batch.add([whole, *wrong]), batch.holds()]
        both.append([*result, batch.search([whole, *wrong]), batch.retained(), batch.CHUNK, refused])
    assert both[0] == both[1]
    assert both[0][:2] == [[], True] and both[0][3] is False
    assert [i for i, _ in both[0][4]] == [*range(1, len(wrong) + 1)]
    assert len({reason for _, reason in both[0][4]}) > 4 and both[0][7].startswith("refused: record")


def embedded(core: Any, of: dict[str, Any]) -> tuple[Any, tuple[int, int]]:
    table = core.ScanTable(base64.b64decode(of["table"]), of["dimension"], of["vocabulary"])
    assert table.digest().hex() == of["table_digest"]
    return table, (of["tokens"], of["norm_factor"])


def test_embeddings_and_changed_ones() -> None:
    of = vectors("proofs.json")["embed"]
    statement, proof = elements(of, "context", "hq", "cq"), proof_of(of)
    both = [(core, *embedded(core, of)) for core in (native, _native)]
    result = []
    for some in (proof, *changed(proof)):
        here, there = (
            lambda c=c, t=t, p=p, some=some: c.scan_embed_verify(t, p, statement, some) for c, t, p in both
        )
        result.append(agree(here, there))
    assert result[0] == "done" and all(reason.startswith("refused: ") for reason in result[1:])
    records = [(statement, some) for some in (proof, *changed(proof, 2))]
    steps = []
    for core, table, parameters in both:
        batch = core.ScanEmbedBatch(table, parameters)
        steps.append([batch.add(records), batch.holds(), batch.search(records)])
    assert steps[0] == steps[1] and steps[0][1] is False


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, bytes]:
    """The pins of a small integer encoder, and the public values and the proof of one text."""
    folder = small_bert.write(tmp_path_factory.mktemp("small"))
    integers = load_files(folder, small_bert.SCALES).model
    model, public = of_encoder.core(integers), of_encoder.statement(integers, of_encoder.TOKENS)
    return model.pins(), public, of_encoder.prove(model, public, of_encoder.TOKENS)


def test_proofs_of_the_integer_encoder_and_changed_ones(encoder: tuple[bytes, bytes, bytes]) -> None:
    pins, public, proof = encoder
    both = [core.EncoderPins(pins) for core in (native, _native)]
    assert both[0].digest() == both[1].digest() == hashlib.sha256(pins).digest()
    parameters = (of_encoder.PLACES, of_encoder.NORM_FACTOR)
    others = [
        public[: 32 * k + 31] + bytes([public[32 * k + 31] ^ 1]) + public[32 * k + 32 :] for k in range(3)
    ]
    cases = [(parameters, public, proof), *((parameters, public, some) for some in changed(proof)),
             *((parameters, other, proof) for other in (*others, public[:-1], b"\xff" * 96))]  # fmt: skip
    places, factor = parameters
    for other in ((places, factor + 1), (places, factor + (1 << 32)), (places, 0), (8, factor), (12, factor),
                  (32, factor), (0, factor)):  # fmt: skip
        cases.append((other, public, proof))
    result = []
    for case in cases:
        here, there = (lambda x=x, case=case: x.verify(*case) for x in both)
        result.append(agree(here, there))
    assert result[0] == "done" and all(reason.startswith("refused: ") for reason in result[1:])
    assert len({*result}) > 6


def test_pins_of_an_integer_encoder_that_are_none(encoder: tuple[bytes, bytes, bytes]) -> None:
    pins, _, _ = encoder
    cut = [pins[:-1], pins + b"\0", b"", b"x" + pins[1:], pins[:80]]
    sizes = [pins[:at] + b"\xff" * 4 + pins[at + 4 :] for at in range(28, 80, 4)]
    point = pins[:80] + b"\xff" * 32 + pins[112:]
    for bad in (*cut, *sizes, point):
        result = agree(lambda bad=bad: native.EncoderPins(bad), lambda bad=bad: _native.EncoderPins(bad))
        assert result.startswith("refused: ")


def test_coins_and_changed_ones() -> None:
    of = vectors("proofs.json")["coins"]
    slot, proof = elements(of, "c_seed", "beacon", "slot"), proof_of(of)
    context = bytes.fromhex(of["context"])
    rows = [
        core.scan_bits_verify(of["capacity"], context, slot, of["bound"], proof) for core in (native, _native)
    ]
    assert rows[0] == rows[1]
    for bound, some in [(of["bound"] + 1, proof), *((of["bound"], bad) for bad in changed(proof, 6))]:
        here, there = (
            lambda c=c, bound=bound, some=some: c.scan_bits_verify(of["capacity"], context, slot, bound, some)
            for c in (native, _native)
        )
        assert agree(here, there).startswith("refused: ")


@pytest.mark.parametrize(("file", "listed"), [("document-table", False), ("pooled-listing", True)])
def test_document_tables_and_changed_ones(file: str, listed: bool) -> None:
    of = vectors(f"{file}.json")["table"]
    slot, proof = elements(of, "c_seed", "beacon", "slot"), proof_of(of)
    context = bytes.fromhex(of["context"])
    numbers = tuple(of[name] for name in ("capacity", "rows", "positions_per_row", "fresh", "bound"))
    table, previous = (base64.b64decode(of[f"{name}_points"]) for name in ("table", "previous"))
    given = (context, slot, numbers, table, previous, listed)
    columns = native.scan_documents_verify(*given, proof)
    assert columns == _native.scan_documents_verify(*given, proof)
    assert len(columns) == 3 + listed
    exchanged = table[32:64] + table[:32] + table[64:]
    before = (previous, listed)
    statements = [
        (context, slot, (*numbers[:4], of["bound"] + 1), table, *before),
        (context, slot, numbers, exchanged, *before),
        (context, slot, numbers, table, None, False),
        (context, slot, (*numbers[:3], numbers[1], numbers[4]), table, None, False),
        (context, slot, numbers, table[:-32], *before),
        (context, slot, numbers, table, previous[:-1], listed),
        (context, slot, numbers, table, previous, not listed),
        (context, slot, numbers, table, previous[:-32] + previous[:32], listed),
        (context[1:], slot, numbers, table, *before),
        (context, slot, (0, *numbers[1:]), table, *before),
        (context, slot, (numbers[0], 0, *numbers[2:]), table, *before),
        (context, slot, (1 << 21, (1 << 20) + 1, *numbers[2:]), table, *before),
        (context, slot, (*numbers[:2], 0, *numbers[3:]), table, *before),
        (context, slot, (*numbers[:3], numbers[1] + 1, numbers[4]), table, *before),
    ]
    for statement, some in [*((s, proof) for s in statements), *((given, bad) for bad in changed(proof, 6))]:
        here, there = (
            lambda c=c, statement=statement, some=some: c.scan_documents_verify(*statement, some)
            for c in (native, _native)
        )
        assert agree(here, there).startswith("refused: ")


def test_records_of_pooled_listing_and_changed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend calls the page's core in the place of the native one."""
    honest = pooled.proved()
    proof = base64.b64decode(honest[1]["proof"])
    cases = [dict(enumerate(honest)), {0: honest[1]}, {1: honest[0]}]
    cases += [{1: {**honest[1], "proof": base64.b64encode(bad).decode()}} for bad in changed(proof, 6)]
    there = [{k: str(reason) for k, reason in pooled.refusals(case).items()} for case in cases]
    decoded = import_module("rag_audit.proofs.backends.scan.key")._decoded
    decoded.cache_clear()  # it has the native core's index
    for module in ("engine", "key", "pooled_listing"):
        monkeypatch.setattr(f"rag_audit.proofs.backends.scan.{module}._native", native)
    try:
        here = [{k: str(reason) for k, reason in pooled.refusals(case).items()} for case in cases]
    finally:
        decoded.cache_clear()
    assert here == there
    assert here[0] == {} and all(len(refused) == 1 for refused in here[1:])


def test_coalitions_and_changed_ones() -> None:
    of = vectors("proofs.json")["coalition"]
    pairs = of["pairs"] if isinstance(of["pairs"], list) else [of["pairs"]]
    records, runs = proof_of(of["records"]), [proof_of(run) for run in pairs]
    both = []
    for core in (native, _native):
        statement = core.ScanCoalition(
            bytes.fromhex(of["context"]), of["dimension"], b"".join(map(bytes.fromhex, of["cq"])), of["accounts"],
            of["tenants"], of["first"], tuple(of["theta"]), tuple(of["largest"]), of["room"],
        )  # fmt: skip
        assert statement.runs() == len(runs)
        both.append(statement)
    cases = [(records, runs), (records, []), (runs[0], runs), *((bad, runs) for bad in changed(records, 5)),
             *((records, [bad, *runs[1:]]) for bad in changed(runs[0], 5))]  # fmt: skip
    result = []
    for some, others in cases:
        here, there = (lambda x=x, some=some, others=others: x.verify(some, others) for x in both)
        result.append(agree(here, there))
    assert result[0] == "done" and all(reason.startswith("refused: ") for reason in result[1:])


@pytest.mark.parametrize(
    ("points", "dimension", "capacity"), [(b"", 3, 12), (b"\xff" * 192, 3, 12), (b"", 0, 0)]
)
def test_indices_that_are_none(points: bytes, dimension: int, capacity: int) -> None:
    result = agree(
        lambda: native.ScanIndex(points, dimension, capacity),
        lambda: _native.ScanIndex(points, dimension, capacity),
    )
    assert result.startswith("refused: ")


def test_limits_and_protocol_are_the_native_ones() -> None:
    for name in ("scan_protocol", "scan_encoder_protocol", "scan_pooled_protocol"):
        assert getattr(native, name)() == getattr(_native, name)()
    assert native.scan_limits() == _native.scan_limits()
    assert native._Batch.CHUNK == _native.ScanBatch.CHUNK
    for sizes in ((1, 0), (100_000, 3), (1 << 20, 3), (1 << 24, 0), (1 << 24, 1), (1 << 24, 6)):
        assert native.scan_max_batch(*sizes) == _native.scan_max_batch(*sizes)
    for capacity in (1, 12, 1000):
        assert native.scan_listed_empty(capacity, 1) == _native.scan_listed_empty(capacity, 1)


@pytest.fixture(scope="module")
def groth16() -> tuple[str, list[bytes], list[bytes]]:
    """A key of the documented example, with the proofs and public inputs that its verifier checks under it."""
    requested: list[tuple[str, list[bytes], list[bytes]]] = []
    real = _native.groth16_verify_batch

    def keep(key: str, proofs: list[bytes], inputs: list[bytes]) -> list[tuple[int, str | None]]:
        requested.append((key, [*map(bytes, proofs)], [*map(bytes, inputs)]))
        return real(key, proofs, inputs)

    folder = ROOT / "docs" / "examples"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "groth16_verify_batch", keep)
        verify_window(folder / "window.json", trust=folder / "trust.toml")
    return max(requested, key=lambda of: len(of[1]))


def test_groth16_proofs_and_changed_ones(groth16: tuple[str, list[bytes], list[bytes]]) -> None:
    key, proofs, inputs = groth16
    assert (
        native.groth16_verify_batch(key, proofs, inputs)
        == _native.groth16_verify_batch(key, proofs, inputs)
        == []
    )
    swapped = [inputs[-1], *inputs[1:-1], inputs[0]]
    wrong = [
        proofs[0][:-1],
        proofs[0][:-1] + b"\0",
        b"\xff" * 256,
        bytes(256),
    ][: len(proofs)]
    pairs = [(proofs, swapped), ([*wrong, *proofs[len(wrong) :]], inputs), (proofs, [inputs[0][:-1], *inputs[1:]]),
             (proofs, [inputs[0][:-32], *inputs[1:]]), (proofs, [b"\xff" * len(inputs[0]), *inputs[1:]])]  # fmt: skip
    for some, of in pairs:
        result = native.groth16_verify_batch(key, some, of)
        assert result == _native.groth16_verify_batch(key, some, of) and result
    for key_text in ("", "{}", key.replace("groth16", "plonk"), key.replace("bn128", "bls")):
        assert agree(
            lambda text=key_text: native.groth16_verify_batch(text, proofs, inputs),
            lambda text=key_text: _native.groth16_verify_batch(text, proofs, inputs),
        ).startswith("refused: ")
    assert agree(
        lambda: native.groth16_verify_batch(key, proofs, inputs[1:]),
        lambda: _native.groth16_verify_batch(key, proofs, inputs[1:]),
    ).startswith("refused: ")


def test_what_only_provers_ask_for_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="no scan_prove"):
        native.scan_prove()


def test_a_panic_is_an_error_with_its_words(process: Process) -> None:
    """Last, since the instance is spent."""
    from rag_audit.report.browser.inside.module import call

    with pytest.raises(RuntimeError, match=r"capacity overflow|memory"):
        call("array_full", 2**31, 0.0)
