"""Under-constraint hunting: a real witness with one wire changed and nothing else recomputed must be rejected.

Every wire of the shipped constraint system is tried in `make test-full`, a sample of every class of signals in
`make test`. It finds signals that no constraint pins; that constraints pin them to the right value is what
tests/malicious is for.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from rag_audit.proofs.backends.groth16.circuit import Inputs, compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.instance import Instance, RetrieveInstance
from rag_audit.relation.field import MODULUS
from tests.circuits import test_embed
from tests.circuits.coalition_case import NEAR_A, A, B, C, window
from tests.circuits.coalition_case import TINY as COALITION
from tests.circuits.documents_case import TINY as DOCUMENTS
from tests.circuits.documents_case import small_chain
from tests.circuits.many_case import PAIR, many_job, shared_cases
from tests.circuits.r1cs import System, read_witness, signal_class
from tests.circuits.retrieve_case import SMALL, TINY, random_case
from tests.circuits.sample_column_case import TINY as KEPT
from tests.circuits.sample_column_case import random_kept
from tests.circuits.sampled_case import EXACT, NOISY, SAMPLED, sampled_case

table = test_embed.table

pytestmark = pytest.mark.circuits


def loose_signals(
    instance: Instance, inputs: Inputs, per_class: int | None, seed: int
) -> tuple[list[str], int]:
    """Signals that can be changed alone though nothing explains it, and how many changes were tried.

    Three are free by design. NonZero's `inverse`, where its input is 0: the output is 0 whatever it is. The sign of
    a component that is 0. And every `ctx`, on which the statement puts no condition: -ctx has the same square; without
    noise seed, beacon and slot likewise.
    """
    circuit = compile_circuit(instance)
    system = System.read(circuit.r1cs, circuit.symbols)
    witness = read_witness(compute_witness(circuit, inputs))
    bound = {"ctx", "ctx[]"}
    if "noise.c_seed_squared" in system.wires:
        bound |= {"c_seed", "beacon[]", "slot[]"}
    free = {
        name
        for name, wire in system.wires.items()
        if signal_class(name) in bound
        or (name.endswith(".inverse") and not witness[system.wires[name.removesuffix("inverse") + "out"]])
        or (
            name.startswith("normalised.positive")
            and not witness[system.wires[name.replace("positive", "square")]]
        )
    }
    rng = random.Random(seed)
    classes: dict[str, list[int]] = defaultdict(list)
    for wire, name in system.names.items():
        classes[signal_class(name)].append(wire)
    accepted, tried = [], 0
    for wires in classes.values():
        chosen = wires if per_class is None else rng.sample(wires, min(per_class, len(wires)))
        for wire in chosen:
            honest = witness[wire]
            # A flipped bit, a neighbour, minus the value, a random element: the usual near misses.
            for value in {1 - honest, honest + 1, -honest, rng.randrange(MODULUS)}:
                if value % MODULUS == honest:
                    continue
                tried += 1
                witness[wire] = value % MODULUS
                if next(system.broken(witness, system.touching.get(wire, [])), None) is None:
                    accepted.append(system.names[wire])
            witness[wire] = honest
    return sorted(set(accepted) - free), tried


def test_no_signal_can_be_changed_alone() -> None:
    loose, tried = loose_signals(TINY, random_case(TINY, 11).inputs(), 6, 11)
    assert tried > 1000
    assert loose == []


@pytest.mark.full
@pytest.mark.parametrize("instance", [TINY, SMALL])
def test_no_signal_at_all_can_be_changed_alone(instance: RetrieveInstance) -> None:
    loose, _ = loose_signals(instance, random_case(instance, 12).inputs(), None, 12)
    assert loose == []


def test_no_signal_of_several_records_can_be_changed_alone() -> None:
    loose, tried = loose_signals(PAIR, many_job(PAIR, shared_cases(PAIR, 14)).inputs(), 6, 14)
    assert tried > 1000
    assert loose == []


@pytest.mark.full
def test_no_signal_at_all_of_several_records_can_be_changed_alone() -> None:
    loose, _ = loose_signals(PAIR, many_job(PAIR, shared_cases(PAIR, 15)).inputs(), None, 15)
    assert loose == []


@pytest.mark.full
def test_no_signal_of_embed_can_be_changed_alone(table: test_embed.Table) -> None:
    case = test_embed.Case(table, [1, 2, 3])
    loose, _ = loose_signals(test_embed.TINY, case.inputs(), None, 13)
    assert loose == []


@pytest.mark.full
def test_no_signal_of_coalition_can_be_changed_alone() -> None:
    case = window([A, B, NEAR_A, A, C], [0, 0, 1, 2, 3], [0, 0, 1, 1])
    loose, _ = loose_signals(COALITION, case.job.inputs(), None, 14)
    assert loose == []


@pytest.mark.full
def test_no_signal_of_kept_can_be_changed_alone() -> None:
    loose, _ = loose_signals(KEPT, random_kept(KEPT, 15).job().inputs(), None, 15)
    assert loose == []


@pytest.mark.full
def test_no_signal_of_documents_can_be_changed_alone() -> None:
    for case in small_chain():
        loose, _ = loose_signals(DOCUMENTS, case.inputs(), None, 17)
        assert loose == []


@pytest.mark.full
@pytest.mark.parametrize("kind", [NOISY, SAMPLED, EXACT], ids=lambda k: k.name)
def test_no_signal_of_sampled_records_can_be_changed_alone(kind: RetrieveInstance) -> None:
    loose, _ = loose_signals(kind, sampled_case(kind, 16).job().inputs(), None, 16)
    assert loose == []


def test_the_hunt_finds_a_loose_signal() -> None:
    """A system from which one constraint is taken away: the signals that only it held are reported."""
    circuit = compile_circuit(TINY)
    system = System.read(circuit.r1cs, circuit.symbols)
    witness = read_witness(compute_witness(circuit, random_case(TINY, 11).inputs()))
    ctx = system.wires["ctx_squared[0]"]
    held = system.touching[ctx]
    assert len(held) == 1
    witness[ctx] += 1
    assert list(system.broken(witness, held)) == held
    del system.constraints[held[0]]
    assert list(system.broken(witness)) == []
