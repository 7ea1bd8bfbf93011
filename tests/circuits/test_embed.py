"""`embed` (A1) against the Python reference, over a small table: its witness exists for the reference's hq and cq
and carries its vector; and cheating provers, each caught at the constraint meant for it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from rag_audit.errors import PolicyError, WitnessError
from rag_audit.models.manifest import DEFAULT_TABLE
from rag_audit.proofs.backends.groth16.circuit import compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.instance import EmbedInstance
from rag_audit.relation.commitments import query_commitment, vector_commitment
from rag_audit.relation.field import MODULUS
from rag_audit.relation.table import TableTree, wide_row
from rag_audit.retrieval.embedders.static import normalise
from tests.circuits.forger import Patch, forge, literal_system, shipped_system, shipped_witness
from tests.circuits.r1cs import System, read_witness, signal_class

pytestmark = pytest.mark.circuits

LONG = EmbedInstance(tokens=18, dimension=256, depth=2, zero_row=60)
"""More than 16 tokens, so that the list hash has two starts."""
TINY = EmbedInstance(tokens=4, dimension=256, depth=2, zero_row=60)


@dataclass(frozen=True)
class Table:
    rows: list[list[int]]
    tree: TableTree

    @classmethod
    def of(cls, rows: list[list[int]]) -> Table:
        return cls(rows, TableTree(rows, TINY.depth))

    def row(self, index: int) -> list[int]:
        return self.rows[index] if index < len(self.rows) else [0] * TINY.dimension


@pytest.fixture(scope="module")
def table() -> Table:
    rng = random.Random(5)
    rows = [[rng.randint(-7, 7) for _ in range(TINY.dimension)] for _ in range(56)]
    rows[55] = [-8] * TINY.dimension
    rows[54] = [7] * TINY.dimension
    rows[53] = [1] + [0] * (TINY.dimension - 1)
    return Table.of(rows)


@dataclass(frozen=True)
class Case:
    table: Table
    tokens: list[int]
    instance: EmbedInstance = TINY
    salt_q: int = 11
    salt_c: int = 22
    ctx: int = 33
    opened: list[int] = field(default_factory=list)
    """rows opened instead of the tokens' own"""

    def sums(self) -> np.ndarray:
        return np.sum([self.table.row(t) for t in self.tokens], axis=0, dtype=np.int64)

    def vector(self) -> list[int]:
        return [int(v) for v in normalise(self.sums(), DEFAULT_TABLE.norm_factor, field="query")]

    def inputs(self) -> dict[str, int | list[int]]:
        unused = self.instance.tokens - len(self.tokens)
        places = self.tokens + [TINY.zero_row] * unused
        opened = self.opened + places[len(self.opened) :]
        flat = [wide_row(self.table.row(t)) for t in opened]
        paths = [self.table.tree.path(t) for t in opened]
        return {
            "ctx": self.ctx,
            "table": self.table.tree.root,
            "hq": query_commitment(self.salt_q, self.tokens),
            "cq": vector_commitment(self.salt_c, self.vector()),
            "salt_q": self.salt_q,
            "salt_c": self.salt_c,
            "count": len(self.tokens),
            "token": self.tokens + [0] * unused,
            "row": [x for row in flat for x in row],
            "node": [x for path in paths for eight in path for x in eight],
        }


def agree(case: Case) -> None:
    """hq and cq are the reference's, so a witness says that the tokens and the vector are; and that is checked
    once more by name."""
    circuit = compile_circuit(case.instance)
    witness = read_witness(compute_witness(circuit, case.inputs()))
    wires = System.read_wires(circuit.symbols)
    for j, v in enumerate(case.vector()):
        name, offset = next(
            (n, o) for n, o in ((f"normalised.nibble[{j}]", 8), (f"normalised.signed[{j}]", 0)) if n in wires
        )
        assert (witness[wires[name]] - offset - v) % MODULUS == 0


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 18])
def test_witness_agrees_with_the_reference(table: Table, count: int) -> None:
    rng = random.Random(count)
    agree(Case(table, [rng.randrange(53) for _ in range(count)], LONG))


@pytest.mark.parametrize(
    "tokens",
    [[55] * 18, [54] * 18, [53], [53, 55], [0], [59, 1]],
    ids=["-8", "7", "one", "mixed", "zero id", "zero row"],
)
def test_boundaries(table: Table, tokens: list[int]) -> None:
    """Largest sums, a single component (w = 2^8), token 0, a token whose row is zero."""
    agree(Case(table, tokens, LONG))


def test_nothing_to_embed_has_no_witness(table: Table) -> None:
    inputs = {**Case(table, [1]).inputs(), **{"count": 1}}
    zero = Case(table, [1], opened=[57]).inputs()
    tokens = [57] + [0] * (TINY.tokens - 1)
    cheat = {
        **inputs,
        "row": zero["row"],
        "node": zero["node"],
        "token": tokens,
        "hq": query_commitment(11, [57]),
    }
    cheat["cq"] = vector_commitment(22, [0] * TINY.dimension)
    with pytest.raises(WitnessError):
        compute_witness(compile_circuit(TINY), cheat)


def assert_caught(witness: list[int], check: set[str]) -> None:
    literal = literal_system(TINY)
    broken = literal.broken_signals(witness)
    assert broken, "the forged witness is accepted"
    for signals in broken:
        classes = {signal_class(name) for name in signals}
        assert classes & check, f"rejected by another constraint, of {sorted(classes)[:8]}"
    assert next(shipped_system(TINY).broken(shipped_witness(TINY, witness)), None) is not None


def lie(case: Case, *patches: Patch, **overrides: object) -> list[int]:
    """A forged witness; cq is what the forger's vector commits to, unless it is given."""
    inputs = {**case.inputs(), **overrides}
    witness = forge(TINY, inputs, *patches)  # type: ignore[arg-type]
    if "cq" not in overrides:
        inputs["cq"] = witness[literal_system(TINY).wires["query_hash.out"]]
    return forge(TINY, inputs, *patches)  # type: ignore[arg-type]


def test_the_honest_witness_of_the_forger_is_accepted(table: Table) -> None:
    assert list(literal_system(TINY).broken(lie(Case(table, [1, 2, 3])))) == []


def test_row_of_another_token(table: Table) -> None:
    """A row that is in the table, with its own true path, in place of the token's: the digits choose another child."""
    witness = lie(Case(table, [1, 2, 3], opened=[1, 2, 4]))
    assert_caught(witness, {"opened[].here[].out"})


def test_row_that_is_not_in_the_table(table: Table) -> None:
    case = Case(table, [1, 2, 3])
    row = list(case.inputs()["row"])  # type: ignore[arg-type]
    row[0] += 1
    assert_caught(lie(case, row=row), {"opened[].here[].out"})


def test_another_table(table: Table) -> None:
    other = Table.of([list(reversed(row)) for row in table.rows])
    witness = lie(Case(other, [1, 2, 3]), table=table.tree.root)
    assert_caught(witness, {"table", "opened[].root"})


def test_tokens_of_another_query(table: Table) -> None:
    witness = lie(Case(table, [1, 2, 3]), hq=query_commitment(11, [1, 2, 4]))
    assert_caught(witness, {"hq"})


def test_vector_of_another_commitment(table: Table) -> None:
    case = Case(table, [1, 2, 3])
    assert_caught(lie(case, cq=Case(table, [4]).inputs()["cq"]), {"cq"})


def test_token_in_an_unused_place(table: Table) -> None:
    case = Case(table, [1, 2, 3])
    token = [1, 2, 3, 4] + [0] * (TINY.tokens - 4)
    witness = lie(case, token=token, hq=query_commitment(11, [1, 2, 3]))
    classes = {"used[]", "opened[].here[].out", "hq", "index[].in"}
    assert_caught(witness, classes)


def test_row_of_a_used_token_counted_as_unused(table: Table) -> None:
    """A gap: the second of three places is called unused, so its row need not be opened."""
    gap = (
        "lib/embed.circom",
        "used[i] <-- i < count ? 1 : 0;",
        "used[i] <-- i < count + 1 && i != 1 ? 1 : 0;",
    )
    case = Case(table, [1, 0, 3], opened=[1, TINY.zero_row, 3, 0])
    assert_caught(lie(case, gap), {"used[]"})


@pytest.mark.full
def test_wrong_sign(table: Table) -> None:
    flip = ("lib/embed.circom", "positive[j] <-- e[j] >= 0 ? 1 : 0;", "positive[j] <-- e[j] >= 0 ? 0 : 1;")
    assert_caught(lie(Case(table, [1, 2, 3]), flip), {"normalised.above[].in", "normalised.equal[].packed"})


@pytest.mark.full
def test_wrong_norm(table: Table) -> None:
    wrong = ("lib/embed.circom", "root <-- integer_root(square, n);", "root <-- integer_root(square, n) + 1;")
    assert_caught(lie(Case(table, [1, 2, 3]), wrong), {"normalised.w.low.in"})


@pytest.mark.full
def test_wrong_threshold(table: Table) -> None:
    wrong = (
        "lib/embed.circom",
        "threshold[k] <-- scaled \\ (2 * A);",
        "threshold[k] <-- scaled \\ (2 * A) + 1;",
    )
    assert_caught(lie(Case(table, [1, 2, 3]), wrong), {"normalised.remainder[].in"})


def test_component_rounded_away(table: Table) -> None:
    wrong = ("lib/embed.circom", "value[j].in <-- steps;", "value[j].in <-- 0;")
    assert_caught(lie(Case(table, [1, 2, 3]), wrong), {"normalised.equal[].packed"})


@pytest.mark.full
def test_sum_moved_between_components(table: Table) -> None:
    case = Case(table, [1, 2, 3])
    wrong = (
        "lib/embed.circom",
        "slot[j].in <-- (wide_sum >> (10 * i)) & 1023;",
        "slot[j].in <-- (wide_sum >> (10 * (24 - i))) & 1023;",
    )
    assert_caught(lie(case, wrong), {"equal[].packed"})


def test_parameters_that_no_circuit_fits() -> None:
    for change in ({"tokens": 0}, {"tokens": 65}, {"dimension": 4097}, {"depth": 6}, {"zero_row": 64}):
        with pytest.raises(PolicyError):
            replace(TINY, **change)
