"""Plans: every circuit has one; every operator of the language means in it what it means in circom's own code; what it
refuses, that code refuses by name. `tests/circuits/both.py` compares both in all other tests of circuits."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from rag_audit import _native
from rag_audit._internal.cache import cache_dir, digest_once
from rag_audit._internal.node import circuits_dir
from rag_audit.errors import SetupError, WitnessError
from rag_audit.proofs.backends.groth16 import circuit as circuits
from rag_audit.proofs.backends.groth16.circuit import (
    PLANS,
    Circuit,
    Inputs,
    assign,
    by_plan,
    compile_circuit,
    compute_witness,
    plan,
    run_compiler,
)
from rag_audit.proofs.backends.groth16.instance import Instance
from rag_audit.relation.field import MODULUS
from tests.circuits import (
    coalition_case,
    documents_case,
    many_case,
    retrieve_case,
    sample_column_case,
    sampled_case,
    test_embed,
)
from tests.circuits.r1cs import read_witness

pytestmark = pytest.mark.circuits

INSTANCES: list[Instance] = [
    retrieve_case.TINY,
    many_case.PAIR,
    sampled_case.NOISY,
    sampled_case.SAMPLED,
    sampled_case.EXACT,
    sample_column_case.TINY,
    documents_case.TINY,
    coalition_case.TINY,
    test_embed.TINY,
]
EDGES = [0, 1, 2, 5, 2**31 - 1, 2**31, 2**32, 2**64 - 1, 2**64, 2**127 + 5, 2**253, MODULUS // 2, MODULUS // 2 + 1,
         MODULUS - 2**31, MODULUS - 2, MODULUS - 1]  # fmt: skip
EXPRESSIONS = [
    "a + b", "a - b", "a * b", "-a", "b == 0 ? 0 : a / b", "b == 0 ? 7 : a \\ b", "b == 0 ? 7 : a % b",
    "a \\ 7", "a % 7", "a \\ 4096", "a % 4096", "a \\ (1 << 70)", "a % ((1 << 70) + 3)", "a ** 5", "a ** 0",
    "a & b", "a | b", "a ^ b", "~a", "a & 4095", "(a >> 60) & 255", "(a >> 5) >> 7", "a & ((1 << 200) - 1)",
    "(a >> 250) & 7", "a >> 0", "a >> 253", "a >> 254", "a >> (-3)", "a << 3", "a << 200", "a << 253", "a << (-4)",
    "a < b", "a <= b", "a > b", "a >= b", "a == b", "a != b", "a && b", "a || b", "!a", "a < 0", "a >= 0 ? b : -b",
    "a ? (b ? 1 : 2) : (b ? 3 : 4)", "last(a, b)", "steps(a, b)",
]  # fmt: skip
"""With a and b for two inputs."""
FUNCTIONS = """
function last(a, b) {
    var values[4] = [a, b, a + b, 5];
    var found = 0;
    for (var i = 0; i < 4; i++) {
        if (values[i] < 10) {
            found = values[i];
        } else {
            if (values[i] > b) { found += i; }
        }
    }
    return found;
}
function steps(a, b) {
    var count = 0;
    for (var i = 0; i < 6; i++) {
        count += (a >> (40 * i)) < b ? 1 : i * i;
    }
    return count;
}
"""


def compiled(folder: Path, body: str, *, functions: str = "") -> Circuit:
    """A circuit with the inputs a and b; `body` has the rest of its template."""
    text = (
        f"pragma circom 2.2.0;\n{functions}\ntemplate Main() {{ signal input a; signal input b; {body} }}\n"
    )
    run_compiler(circuits_dir(), text + "component main = Main();\n", folder, ("--O1",))
    return Circuit(folder)


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Circuit:
    lines = [f"out[{i}] <-- {text};" for i, text in enumerate(EXPRESSIONS)]
    body = f"signal output out[{len(lines)}]; {' '.join(lines)} assert(a != 77 || b == 3);"
    return compiled(tmp_path_factory.mktemp("operators"), body, functions=FUNCTIONS)


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda i: i.name)
def test_every_circuit_has_a_plan(instance: Instance) -> None:
    assert plan(compile_circuit(instance)) is not None


def test_operators(operators: Circuit) -> None:
    """The fixture of this folder compares what `compute_witness` gives with the plan's witness."""
    assert plan(operators) is not None
    rng = random.Random(1)
    pairs = [*product(EDGES, EDGES), *[(rng.randrange(MODULUS), rng.randrange(MODULUS)) for _ in range(8)]]
    for a, b in pairs:
        compute_witness(operators, {"a": a, "b": b})
    result = read_witness(compute_witness(operators, {"a": 12, "b": 10}))
    for text, value in (("a + b", 22), ("a \\ 7", 1), ("a & b", 8), ("a ^ b", 6), ("a > b", 1)):
        assert result[1 + EXPRESSIONS.index(text)] == value


def test_an_assertion_that_is_no_constraint_is_kept(operators: Circuit) -> None:
    for b, holds in ((3, True), (4, False)):
        inputs = {"a": 77, "b": b}
        assert (by_plan(operators, inputs) is not None) is holds
    with pytest.raises(WitnessError, match="do not satisfy") as caught:
        assign(operators, {"a": 77, "b": 4})
    assert "line" in str(caught.value.actual)


def test_inputs_are_taken_modulo_the_order(operators: Circuit) -> None:
    expected = compute_witness(operators, {"a": MODULUS - 1, "b": 5})
    result = by_plan(operators, {"a": -1, "b": MODULUS + 5})
    assert result is not None and result.wtns() == expected


INPUTS = retrieve_case.random_case(retrieve_case.TINY, 3).inputs()


@pytest.mark.parametrize(
    "wrong",
    [
        {name: value for name, value in INPUTS.items() if name != "cq"},
        {**INPUTS, "other": 1},
        {**INPUTS, "position": [0]},
        {**INPUTS, "s0": 5},
        {**INPUTS, "htopk": 5},
    ],
    ids=["missing", "unknown", "short", "another seed", "another commitment"],
)
def test_what_a_plan_refuses_has_the_error_of_circoms_code(wrong: Inputs) -> None:
    circuit = compile_circuit(retrieve_case.TINY)
    assert by_plan(circuit, wrong) is None
    with pytest.raises(WitnessError) as one:
        assign(circuit, wrong)
    with pytest.raises(WitnessError) as other:
        compute_witness(circuit, wrong)
    assert str(one.value) == str(other.value)


def test_honest_inputs_need_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = compile_circuit(retrieve_case.TINY)

    def forbidden(folder: Path, inputs: bytes) -> bytes:
        raise AssertionError("asked the generator")

    monkeypatch.setattr(circuits, "generate", forbidden)
    result = assign(circuit, INPUTS)
    assert isinstance(result, _native.Groth16Witness)
    assert _native.r1cs_unsatisfied(circuit.r1cs, result.wtns()) == []


@pytest.mark.parametrize(
    "body",
    [
        "var n = 0; var rest = a; while (rest > b) { rest -= b + 1; n++; } signal output out <-- n;",
        "var values[3] = [5, 6, 7]; signal output out <-- values[a];",
        "signal output out <-- 1 << a;",
    ],
    ids=["loop", "index", "shift"],
)
def test_code_that_depends_on_inputs_has_no_plan(tmp_path: Path, body: str) -> None:
    """circom's own code assigns it as ever."""
    circuit = compiled(tmp_path, body)
    assert plan(circuit) is None
    assert by_plan(circuit, {"a": 2, "b": 0}) is None
    assert isinstance(assign(circuit, {"a": 2, "b": 0}), bytes)


def test_a_plan_that_was_altered_is_refused() -> None:
    circuit = compile_circuit(retrieve_case.TINY)
    path = plan(circuit)
    assert path == cache_dir(PLANS) / digest_once(circuit.folder / "main_js" / "main.wasm") / "plan"
    content = path.read_bytes()
    try:
        path.write_bytes(content[:-1] + b"\1")
        with pytest.raises(SetupError, match="does not match its manifest"):
            assign(circuit, INPUTS)
    finally:
        path.write_bytes(content)


def test_plans_are_read_strictly(tmp_path: Path) -> None:
    """Cut, extended or changed, a plan is refused by name or does other steps, and nothing else happens."""
    path = plan(compile_circuit(retrieve_case.TINY))
    assert path is not None
    content = path.read_bytes()
    encoded = [("a", bytes(32))]
    refused = tmp_path / "plan"
    for bad in (b"", content[:20], content[:-1], content + b"\0", b"x" + content[1:]):
        refused.write_bytes(bad)
        with pytest.raises(ValueError, match=r"plan"):
            _native.groth16_witness(refused, encoded)
    rng = random.Random(7)
    for number in range(40):
        changed = bytearray(content)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        each = tmp_path / f"plan{number}"
        each.write_bytes(changed)
        try:
            assert _native.groth16_witness(each, encoded) is None
        except ValueError as exc:
            assert "plan" in str(exc)
