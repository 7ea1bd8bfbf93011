"""`retrieve` against the Python reference: its witness exists for the reference's positions and no others,
and carries the reference's scores and noise."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from rag_audit.errors import PolicyError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import Circuit, compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.proofs.backends.groth16.policy import SHIPPED
from rag_audit.relation import noise
from rag_audit.relation.commitments import noise_key
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import permute
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k
from tests.circuits.r1cs import System, read_witness
from tests.circuits.retrieve_case import SMALL, TINY, Case, random_case

pytestmark = pytest.mark.circuits

N64_ONE, N64, *LARGE = [
    i for i in SHIPPED if isinstance(i, RetrieveInstance) and i.gains and not i.sampled and i.queries == 1
]
BOUND = (1 << 200) - 1


class Signals(Mapping[str, int]):
    """A witness by its signals' names."""

    def __init__(self, wires: dict[str, int], values: list[int]) -> None:
        self.wires, self.values_of = wires, values

    def __getitem__(self, name: str) -> int:
        value = self.values_of[self.wires[name]]
        return value if value < MODULUS // 2 else value - MODULUS

    def __iter__(self) -> Iterator[str]:
        return iter(self.wires)

    def __len__(self) -> int:
        return len(self.wires)


class Checked:
    """A compiled instance whose witnesses are compared with the reference, signal by signal."""

    def __init__(self, instance: RetrieveInstance) -> None:
        self.instance = instance
        self.circuit: Circuit = compile_circuit(instance)
        self.wires = System.read_wires(self.circuit.symbols)

    def signals(self, case: Case) -> Mapping[str, int]:
        """The witness by name; refuses (WitnessError) what has none. Negative values as such."""
        return Signals(self.wires, read_witness(compute_witness(self.circuit, case.inputs())))

    def agree(self, case: Case) -> None:
        """Scores, draws and listed keys are the reference's."""
        result = self.signals(case)
        instance = self.instance
        assert [self.score(result, i) for i in range(instance.capacity)] == case.scores()
        assert [self.noise(result, i) for i in range(instance.capacity)] == case.noise()
        low = -noise.MAX_MAGNITUDE * sum(instance.gains)
        listed = [result[f"answer[0].top_k.listed[{k}]"] + low for k in range(instance.top_k)]
        keys = case.keys()
        assert listed == [keys[p] for p in case.positions]

    # The compiler keeps some of the wires that are linear in each other: y = u + z, z = the sum of gains times draws.

    def score(self, actual: Mapping[str, int], i: int) -> int:
        """u of a position."""
        name = f"answer[0].scores.u[{i}]"
        return actual[name] if name in actual else actual[f"answer[0].top_k.y[{i}]"] - self.noise(actual, i)

    def noise(self, actual: Mapping[str, int], i: int) -> int:
        """z of a position."""
        if f"answer[0].noise.z[{i}]" in actual:
            return actual[f"answer[0].noise.z[{i}]"]
        gains = self.instance.gains
        draws = [f"answer[0].noise.draw[{len(gains) * i + c}].x" for c in range(len(gains))]
        if all(name in actual for name in draws):
            return sum(g * actual[name] for g, name in zip(gains, draws, strict=True))
        return actual[f"answer[0].top_k.y[{i}]"] - actual[f"answer[0].scores.u[{i}]"]


@pytest.fixture(scope="module")
def tiny() -> Checked:
    return Checked(TINY)


@pytest.fixture(scope="module")
def small() -> Checked:
    return Checked(SMALL)


def documented() -> dict[tuple[int, str], int]:
    """Constraints of whole instances as docs/circuits.md has them, by N and gains."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "circuits.md").read_text()
    rows = re.findall(r"^\| ([\d,]+) \| (\[[\d, ]+\]) \| ([\d,]+) \|", page, re.MULTILINE)
    return {(int(n.replace(",", "")), gains): int(count.replace(",", "")) for n, gains, count in rows}


def test_constraints_are_the_documented_ones() -> None:
    assert documented().keys() == {(i.capacity, str(list(i.gains))) for i in (N64_ONE, N64, *LARGE)}
    assert compile_circuit(N64).constraints == documented()[64, "[1, 8, 64]"]


@pytest.mark.full
def test_constraints_of_large_instances_are_the_documented_ones() -> None:
    for instance in LARGE:
        result = compile_circuit(instance).constraints
        assert result == documented()[instance.capacity, str(list(instance.gains))]


def test_witness_agrees_with_the_reference_at_8(tiny: Checked, small: Checked) -> None:
    for seed in range(10):
        tiny.agree(random_case(TINY, seed))
        small.agree(random_case(SMALL, seed))


def test_witness_agrees_with_the_reference_at_64() -> None:
    Checked(N64).agree(random_case(N64, 0, empty=9))


@pytest.mark.full
def test_witness_agrees_with_the_reference_at_8_a_thousand_times(small: Checked) -> None:
    for seed in range(1000):
        small.agree(random_case(SMALL, seed, empty=seed % 9))


@pytest.mark.full
def test_witness_agrees_with_the_reference_at_64_fifty_times() -> None:
    checked = Checked(N64)
    for seed in range(50):
        checked.agree(random_case(N64, seed, empty=seed))


@pytest.mark.full
def test_witness_agrees_with_the_reference_at_256_and_1024() -> None:
    for instance in LARGE:
        Checked(instance).agree(random_case(instance, 0, empty=100))


def test_only_one_list_of_positions_has_a_witness(tiny: Checked) -> None:
    """Every permutation of the top K, and every other set, is refused."""
    case = random_case(TINY, 3)
    rng = random.Random(3)
    orders = [p for p in permutations(case.positions) if p != case.positions]
    sets = [p for p in permutations(range(TINY.capacity), TINY.top_k) if set(p) != set(case.positions)]
    for positions in rng.sample(orders, 6) + rng.sample(sets, 6):
        with pytest.raises(WitnessError):
            tiny.signals(replace(case, positions=positions))


def test_ties_go_to_the_smaller_position(tiny: Checked) -> None:
    case = tied(between=(TINY.top_k - 1, TINY.top_k))
    tiny.agree(case)
    inside = tied(between=(1, 2))
    tiny.agree(inside)
    p = list(inside.positions)
    p[1], p[2] = p[2], p[1]
    with pytest.raises(WitnessError):
        tiny.signals(replace(inside, positions=tuple(p)))


def tied(between: tuple[int, int]) -> Case:
    for seed in range(2000):
        case = random_case(TINY, seed)
        y = case.keys()
        order = top_k(y, TINY.top_k + 1)
        if y[order[between[0]]] == y[order[between[1]]]:
            return case
    raise AssertionError("no tie found")


def row_of_score(q: list[int], score: int) -> list[int]:
    """A vector of components in -8..7 whose inner product with q is `score`; q has a component 1."""
    row = [0] * len(q)
    rest = score
    for j in sorted(range(len(q)), key=lambda j: -abs(q[j])):
        if q[j]:
            step = max(-8, min(7, int(rest / q[j])))
            row[j] = step
            rest -= step * q[j]
    assert rest == 0 and dot(q, row) == score
    return row


def test_score_boundaries(tiny: Checked) -> None:
    """Clamp edges, every step of the lattice from both sides near them, and the extreme scores."""
    window = ScoreWindow(TINY.lo, TINY.hi, TINY.lattice)
    q = [7, 7, 7, 7, 7, 7, 5, 3, 2, 1, 1, -4, -8, -8, 0, 1]
    steps = [s for s in range(TINY.lo - 2, TINY.hi + 3) if window.quantise(s) != window.quantise(s - 1)]
    edges = [TINY.lo - 1, TINY.lo, TINY.lo + 1, TINY.hi - 1, TINY.hi, TINY.hi + 1, 0, -1]
    wanted = edges + [s - d for s in (*steps[:4], *steps[-4:]) for d in (0, 1)]
    for start in range(0, len(wanted), TINY.capacity):
        scores = wanted[start : start + TINY.capacity]
        rows = [row_of_score(q, s) for s in scores] + [[0] * 16] * (TINY.capacity - len(scores))
        tiny.agree(replace(random_case(TINY, start), q=q, rows=rows).solved())


@pytest.mark.parametrize("q, e", [(-8, -8), (-8, 7), (7, 7), (7, -8)])
def test_extreme_vectors(small: Checked, q: int, e: int) -> None:
    """Largest and smallest inner products, nibble 0 (component -8) included."""
    rows = [[e] * 256, [q] * 256] * 4
    small.agree(replace(random_case(SMALL, 1), q=[q] * 256, rows=rows).solved())


def test_empty_index(small: Checked) -> None:
    small.agree(random_case(SMALL, 5, empty=8))


def test_field_elements_at_the_edge(tiny: Checked) -> None:
    """Every salt, seed half and public scalar may be r - 1; r itself is refused before the circuit."""
    top = MODULUS - 1
    case = replace(
        random_case(TINY, 7),
        s0=top,
        s1=top,
        beacon=top,
        slot=top,
        index_salt=top,
        salt_c=top,
        salt_k=top,
        ctx=top,
    )
    tiny.agree(case.solved())


def words(case: Case) -> Iterator[int]:
    """The first words of a case's noise stream."""
    kappa = noise_key(case.s0, case.s1, case.beacon, case.slot)
    for b in range(2):
        yield from permute([0, kappa, b, 9, *[0] * 13])[1:]


def test_all_bins_are_drawn(small: Checked) -> None:
    """The cases above and these reach every bin of the table, both sides of its threshold where it has two."""
    table = noise.alias_table()
    seen: set[tuple[int, bool]] = set()
    first = random_case(SMALL, 0)
    for case in (replace(first, slot=slot) for slot in range(40)):
        draws = [(word & BOUND) >> 40 * k & (1 << 40) - 1 for word in words(case) for k in range(5)][:24]
        new = {(d & 127, d >> 8 < table.thresholds[d & 127]) for d in draws} - seen
        if new:
            seen |= new
            small.agree(case.solved())
    assert len({j for j, _ in seen}) == noise.BINS


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": 12},
        {"capacity": 0},
        {"top_k": 1},
        {"top_k": 9},
        {"gains": (2,)},
        {"gains": (1, 9)},
        {"lo": 160},
        {"lattice": 48},
        {"dimension": 0},
    ],
)
def test_parameters_that_no_circuit_fits(change: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        replace(TINY, **change)  # type: ignore[arg-type]
