"""A score window beyond reach. Without the bounds that templates assert of their parameters, the slot arithmetic of
the scores wraps modulo r: the quotients' range is nearly the whole field, the last slot of a group takes up whatever
the others lack, and a prover chooses the scores. Each of the places that refuse such a window is tried alone."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Any

import pytest

from rag_audit.errors import PolicyError, SetupError
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.groth16 import system as groth16
from rag_audit.proofs.backends.groth16.circuit import compile_circuit
from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.proofs.backends.scan import system as scan
from tests.circuits.forger import LITERAL, Patch, selected, unbounded_system
from tests.circuits.retrieve_case import TINY, random_case

pytestmark = pytest.mark.circuits

# Chosen scores: the top of the window at odd positions, its foot at the others. The last slot of a group is what
# the group's equation leaves for it, and its quotient is read off as that of any field element.
FORGERY: tuple[Patch, ...] = (
    (
        "lib/scores.circom",
        "        equal[g].packed <== R * sum;",
        "        equal[g].packed <== R * sum;\n        var forged = 0;",
    ),
    (
        "lib/scores.circom",
        "quantised[first + i].scaled <-- R * (((raised >> (W * i)) & ((1 << W) - 1)) - 56 * d);",
        "quantised[first + i].scaled <-- i < count - 1 ? R * ((first + i) % 2 == 1 ? hi : lo)"
        " : (R * sum - forged) / (1 << (W * i));\n"
        "            forged += quantised[first + i].scaled * (1 << (W * i));",
    ),
    (
        "lib/scores.circom",
        "remainder.in <-- (scaled - offset + width * (h + 1) * R) % width;",
        "remainder.in <-- (scaled - offset) % width;",
    ),
    ("lib/scores.circom", "signal positive <-- shifted >= (h + 1) * R ? 1 : 0;", "signal positive <-- 1;"),
    (
        "lib/scores.circom",
        "more.in <-- positive == 1 ? shifted \\ R - (h + 1) : shifted \\ R;",
        "more.in <-- ((scaled - offset) \\ width) \\ R;",
    ),
    ("lib/scores.circom", "low.in <-- shifted % R;", "low.in <-- ((scaled - offset) \\ width) % R;"),
)

BEYOND_REACH = [
    (16, 2000, 2200),
    pytest.param(256, 20_000, 20_709, marks=pytest.mark.full),
]


def unchecked(dimension: int, lo: int, hi: int) -> RetrieveInstance:
    """An instance whose constants nobody has looked at."""
    result = object.__new__(RetrieveInstance)
    values = dict(zip((f.name for f in fields(TINY)), astuple(TINY), strict=True))
    for name, value in {**values, "dimension": dimension, "lo": lo, "hi": hi}.items():
        object.__setattr__(result, name, value)
    return result


@pytest.mark.parametrize(("dimension", "lo", "hi"), BEYOND_REACH)
def test_without_their_bounds_the_templates_take_any_scores(dimension: int, lo: int, hi: int) -> None:
    instance = unchecked(dimension, lo, hi)
    case = random_case(instance, 1)
    assert case.scores() == [0] * instance.capacity, "no score reaches the window"
    judge = unbounded_system(instance)
    witness = selected(case.inputs(), [case], instance, *FORGERY, judge=judge)
    assert list(judge.broken(witness)) == []
    forged = [witness[judge.wires[f"answer[0].scores.u[{i}]"]] for i in range(instance.capacity)]
    chosen = [instance.lattice * (i % 2) for i in range(instance.capacity)]
    assert forged[:-1] == chosen[:-1] and forged[-1] in (0, instance.lattice)


@pytest.mark.parametrize(("dimension", "lo", "hi"), [(16, 2000, 2200), (256, 20_000, 20_709), (16, 20, 1025)])
def test_the_circuit_does_not_compile(dimension: int, lo: int, hi: int) -> None:
    with pytest.raises(SetupError) as caught:
        compile_circuit(unchecked(dimension, lo, hi), flags=LITERAL)
    assert "assert(0 <= lo && lo < hi && hi <= 64 * d)" in str(caught.value.actual)


@pytest.mark.parametrize(("dimension", "lo", "hi"), [(16, 2000, 2200), (256, 20_000, 20_709), (16, 20, 1025)])
def test_the_instance_cannot_be_made(dimension: int, lo: int, hi: int) -> None:
    with pytest.raises(PolicyError) as caught:
        RetrieveInstance(8, dimension, 5, (1,), lo, hi, 64)
    assert (caught.value.field, caught.value.actual) == ("hi", hi)
    RetrieveInstance(8, dimension, 5, (1,), lo % 20, 64 * dimension, 64)


@pytest.mark.parametrize("system", [groth16.SYSTEM, scan.SYSTEM])
@pytest.mark.parametrize(("dimension", "lo", "hi"), [(16, 2000, 2200), (256, 20_000, 20_709), (16, 20, 1025)])
def test_no_proof_system_names_a_circuit_for_it(system: Any, dimension: int, lo: int, hi: int) -> None:
    constants = Constants(8, dimension, 5, (1,), lo, hi, 64, 64, None)
    for refuse in (system.circuits, system.check_constants):
        with pytest.raises(PolicyError, match="the score window is beyond every score"):
            refuse(constants)
