"""Malicious provers: full witnesses of a circuit with disabled checks and replaced hints.

`circom` writes one assertion into the witness generator for every `===`. The generator of a malicious prover comes from
the same sources without these assertions and with other hints, so that a false value reaches every signal that depends
on it. The unchanged circuit then decides.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from rag_audit._internal.cache import build_once, cache_dir
from rag_audit._internal.node import circuits_dir
from rag_audit.errors import WitnessError
from rag_audit.proofs.backends.groth16.circuit import (
    Circuit,
    Inputs,
    compile_circuit,
    compute_witness,
    run_compiler,
)
from rag_audit.proofs.backends.groth16.instance import Instance
from rag_audit.relation.commitments import topk_commitment
from rag_audit.relation.field import MODULUS
from rag_audit.relation.selection import top_k
from tests.circuits.r1cs import System, read_witness, signal_class
from tests.circuits.retrieve_case import Case

LITERAL = ("--O0",)
"""No simplification: every constraint of the source is unchanged, and every signal is a wire."""

Patch = tuple[str, str, str]
"""File below circuits/, text there (exactly once), replacement."""

WORD_NOT_BELOW_R: tuple[Patch, ...] = (
    (
        "lib/dgs1.circom",
        "bit[i] <-- rest & 1;",
        "bit[i] <-- (((word & ((1 << 200) - 1)) + (-1 & ((1 << 200) - 1)) + 1) >> i) & 1;",
    ),
    (
        "lib/dgs1.circom",
        "high.in <-- word >> 200;",
        "high.in <-- (word >> 200) + (-1 >> 200)"
        " + (((word & ((1 << 200) - 1)) + (-1 & ((1 << 200) - 1)) + 1) >> 200);",
    ),
)
"""A word of the stream split as word + r, which has the same residue and other bits."""

_CHECK = re.compile(r"^.*[^=!<>]===[^=].*;$", re.MULTILINE)
_BOUND = re.compile(r"^ *assert\(.*\);$", re.MULTILINE)


def forge(instance: Instance, inputs: Inputs, *patches: Patch) -> list[int]:
    """The literal circuit's wires, for inputs that need not satisfy it and with patched assignments.

    A patch may turn `<==` into `<--`: then the constraint stays with the judge, and the forger breaks it.
    """
    return read_witness(compute_witness(_generator(instance, patches), inputs))


@cache
def _generator(instance: Instance, patches: Sequence[Patch]) -> Circuit:
    sources = _sources()
    for name, old, new in patches:
        assert sources[name].count(old) == 1, f"{name}: {old!r} is there {sources[name].count(old)} times"
        assert "<" in old and "===" not in old + new, "a patch replaces an assignment"
        sources[name] = sources[name].replace(old, new)
    return _build(instance, {name: _BOUND.sub("", _CHECK.sub("", text)) for name, text in sources.items()})


def _sources() -> dict[str, str]:
    """The templates by their path below circuits/."""
    return {
        path.relative_to(circuits_dir()).as_posix(): path.read_text()
        for folder in ("lib", "utils")
        for path in sorted((circuits_dir() / folder).glob("*.circom"))
    }


def _build(instance: Instance, sources: Mapping[str, str]) -> Circuit:
    """The literal circuit of these templates instead of the shipped ones."""
    key = hashlib.sha256(repr((instance.main_source(), sorted(sources.items()))).encode()).hexdigest()

    def build(folder: Path) -> None:
        copy = folder / "patched"
        for name, text in sources.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_text(text)
        run_compiler(copy, instance.main_source(), folder, LITERAL)
        shutil.rmtree(copy)

    return Circuit(build_once(cache_dir("forgers") / key, build))


@cache
def unbounded_system(instance: Instance) -> System:
    """The literal circuit with every constraint and without the bounds that templates assert of their parameters."""
    circuit = _build(instance, {name: _BOUND.sub("", text) for name, text in _sources().items()})
    return System.read(circuit.r1cs, circuit.symbols)


@cache
def literal_system(instance: Instance) -> System:
    """The untouched circuit, unsimplified."""
    circuit = compile_circuit(instance, flags=LITERAL)
    return System.read(circuit.r1cs, circuit.symbols)


@cache
def shipped_system(instance: Instance) -> System:
    """The circuit that proofs are made for."""
    circuit = compile_circuit(instance)
    return System.read(circuit.r1cs, circuit.symbols)


def shipped_witness(instance: Instance, literal: Sequence[int]) -> list[int]:
    """The shipped circuit's wires, taken by name from the literal circuit's."""
    wires: Mapping[str, int] = literal_system(instance).wires
    shipped = shipped_system(instance)
    return [1] + [literal[wires[shipped.names[i]]] for i in range(1, len(shipped.names) + 1)]


def selected(
    inputs: Inputs, cases: Sequence[Case], instance: Instance, *patches: Patch, judge: System | None = None
) -> list[int]:
    """A forged witness of `retrieve`. For each record, its positions are the top K of the forged scores and noise.

    :param judge: the circuit with the witness's wires; by default the unchanged circuit
    """
    wires = (judge or literal_system(instance)).wires
    witness = forge(instance, inputs, *patches)

    def signed(name: str) -> int:
        value = witness[wires[name]]
        return value if value < 1 << 64 else value - MODULUS

    lists = []
    for k, case in enumerate(cases):
        u, z = (
            [signed(f"answer[{k}].{name}[{i}]") for i in range(case.instance.capacity)]
            for name in ("scores.u", "noise.z")
        )
        lists.append(top_k([a + b for a, b in zip(u, z, strict=True)], case.instance.top_k))
    hashes = [topk_commitment(case.salt_k, listed) for case, listed in zip(cases, lists, strict=True)]
    return forge(
        instance, {**inputs, "position": [p for listed in lists for p in listed], "htopk": hashes}, *patches
    )


def assert_accepted(instance: Instance, witness: Sequence[int]) -> None:
    """The witness breaks no constraint, neither of the untouched circuit nor of the shipped one."""
    assert list(literal_system(instance).broken(witness)) == []
    assert list(shipped_system(instance).broken(shipped_witness(instance, witness))) == []


def satisfiable(instance: Instance, inputs: Inputs) -> bool:
    """Whether there is an assignment for these inputs."""
    try:
        compute_witness(compile_circuit(instance), inputs)
    except WitnessError:
        return False
    return True


def assert_caught(instance: Instance, witness: list[int], check: set[str]) -> None:
    """Assert that the witness violates only constraints of the check's signals, and that the shipped circuit rejects it.

    :param check: classes of signals; one of them is only in the intended constraint
    """
    broken = literal_system(instance).broken_signals(witness)
    assert broken, "the forged witness is accepted"
    for signals in broken:
        classes = {signal_class(name) for name in signals}
        assert classes & check, f"rejected by another constraint, of {sorted(classes)}"
    assert next(shipped_system(instance).broken(shipped_witness(instance, witness)), None) is not None
