"""`coalition` against brute force, and cheating provers, each caught at the constraint meant for it and at no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rag_audit.errors import EncodingError, InvalidProof, PolicyError, SchemaError, VersionError, WitnessError
from rag_audit.proofs.backends import SYSTEMS
from rag_audit.proofs.backends.groth16 import coalition
from rag_audit.proofs.backends.groth16.coalition import CoalitionJob
from rag_audit.proofs.backends.groth16.instance import CoalitionInstance
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.proving import backend
from rag_audit.proofs.statements.coalition import CoalitionSize
from tests.circuits.coalition_case import NEAR_A, TINY, A, B, C, Row, Window, random_window, window
from tests.circuits.forger import Patch, forge, literal_system, satisfiable, shipped_system, shipped_witness
from tests.circuits.r1cs import signal_class

pytestmark = pytest.mark.circuits

FLAT = CoalitionInstance(4, 2)


def satisfied(case: Window) -> bool:
    return satisfiable(case.job.places.instance, case.job.inputs())


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(s, marks=pytest.mark.full) for s in range(8, 200))]
)
def test_witness_exists_for_the_true_counts_and_for_no_smaller_ones(seed: int) -> None:
    case = random_window(seed)
    c, c_tenant = case.statement.c, case.statement.c_tenant
    assert satisfied(case)
    if c_tenant > 1:
        assert not satisfied(case.stating(c_tenant=c_tenant - 1))
    if c > c_tenant:
        assert not satisfied(case.stating(c=c - 1))


@pytest.mark.full
def test_larger_counts_than_the_true_ones_can_be_claimed() -> None:
    """A provider that overstates gains nothing, so nothing keeps it from it."""
    case = window([A, NEAR_A, C], [0, 1, 2])
    assert case.statement.c == 2
    assert satisfied(case.stating(c=8, c_tenant=3))


@pytest.mark.parametrize(
    "rows, account, c",
    [
        ([A], [0], 1),
        ([A] * 8, [0] * 8, 1),
        ([A] * 8, list(range(8)), 8),
        ([[7] * 8, [-7] * 8, C], [0, 1, 2], 1),
        ([[7] * 8, [7] * 7 + [-7], [1] * 8], [0, 1, 2], 2),
    ],
    ids=["one record", "one account", "identical queries", "opposite", "largest norm"],
)
def test_boundaries(rows: Sequence[Row], account: Sequence[int], c: int) -> None:
    case = window(rows, account)
    assert case.statement.c == c
    assert satisfied(case)


@pytest.mark.parametrize(
    "a, b, c",
    [([6, 2], [5, 1, 3, 2, 1], 2), ([2, 1, 1, 1], [2, 2, 1, 0, 1, 1], 1)],
    ids=["equal: 25 * 32^2 = 16 * 40 * 40", "below: 25 * 7^2 < 16 * 7 * 11"],
)
def test_cosine_at_theta(a: list[int], b: list[int], c: int) -> None:
    case = window([a + [0] * (8 - len(a)), b + [0] * (8 - len(b))], [0, 1])
    assert case.statement.c == c
    assert satisfied(case)
    assert c == 1 or not satisfied(case.stating(c=1, c_tenant=1).knowing(labels=(0, 1)))


def test_full_scale_components_are_counted() -> None:
    """-8, which the packing admits: its norm has a place at d = 8; no slot may overflow."""
    rows = [[-8] * 7 + [7], [-8] * 7 + [6], C]
    case = window(rows, [0, 1, 2])
    assert case.statement.c == 2
    assert satisfied(case)


def test_long_vectors_are_taken_three_by_three() -> None:
    """Above 256 components 16 slots do not fit below r; the third group of three has two rows."""
    rng, instance = np.random.default_rng(5), CoalitionInstance(8, 300)
    rows = rng.integers(-3, 4, (7, 300)).tolist()
    near = [*rows[1][:299], -rows[1][299]]
    case = window([*rows[:6], near, [3] * 299 + [-3]], list(range(8)), instance=instance)
    assert case.statement.c == 2
    assert satisfied(case)
    assert not satisfied(case.stating(c=1, c_tenant=1))


# -- cheating provers ----------------------------------------------------------------------------------------


def assert_caught(assignment: list[int], check: set[str]) -> None:
    broken = literal_system(TINY).broken_signals(assignment)
    assert broken, "the forged assignment is accepted"
    for signals in broken:
        classes = {signal_class(name) for name in signals}
        assert check <= classes, f"rejected by another constraint, of {sorted(classes)[:8]}"
    assert next(shipped_system(TINY).broken(shipped_witness(TINY, assignment)), None) is not None


def lie(case: Window, *patches: Patch, **overrides: Any) -> list[int]:
    """A full assignment for a case whose statement is false, or for inputs that do not belong together."""
    return forge(TINY, {**case.job.inputs(), **overrides}, *patches)


@pytest.fixture(scope="module")
def case() -> Window:
    """Three accounts of one cluster, a fourth alone; account 0 asked twice."""
    return window([A, B, NEAR_A, A, C], [0, 0, 1, 2, 3], [0, 0, 1, 1])


def test_the_honest_witness_of_the_forger_is_accepted(case: Window) -> None:
    assert (case.statement.c, case.statement.c_tenant) == (3, 2)
    assert list(literal_system(TINY).broken(lie(case))) == []


def test_split_cluster(case: Window) -> None:
    """Two accounts with near queries under two labels."""
    split = case.knowing(labels=(0, 1, 0, 3)).stating(c=2)
    assert_caught(lie(split), {"apart[].in"})


def test_one_account_in_two_labels(case: Window) -> None:
    """A chain: account 0's first query is near to account 1's, its second to account 2's. Each pair shares a label."""
    chain = window([A, B, NEAR_A, B], [0, 0, 1, 2])
    assert chain.statement.c == 3
    labels = [0, 2, 0, 2, *[0] * 4]
    assert_caught(lie(chain.stating(c=2, c_tenant=2), label=labels), {"label[]"})


def test_cluster_larger_than_claimed(case: Window) -> None:
    """The second bound is raised, so that nothing can be borrowed from it and nothing else breaks."""
    assert_caught(lie(case.stating(c=2, c_tenant=8)), {"left[].in"})


def test_cluster_larger_than_claimed_in_one_tenant(case: Window) -> None:
    assert_caught(lie(case.stating(c_tenant=1)), {"left_tenant[].in"})


def test_equal_labels_called_different() -> None:
    """A chain of four: the pairs of it that are far apart are taken as different, so each end counts three."""
    chain = window([[7, 2], [6, 6], [2, 7], [-1, 6]], range(4), instance=FLAT)
    assert chain.statement.c == 4
    inputs = chain.stating(c=3, c_tenant=3).job.inputs()
    apart = "i + 2 == j || i + 3 == j ? 1 : label[j] - label[i]"
    wrong = (
        "lib/coalition.circom",
        "different[k].in <== label[j] - label[i];",
        f"different[k].in <-- {apart};",
    )
    broken = literal_system(FLAT).broken_signals(forge(FLAT, inputs, wrong))
    assert broken
    for signals in broken:
        assert {"label[]", "different[].in"} <= {signal_class(name) for name in signals}


def test_label_called_equal_where_it_is_different(case: Window) -> None:
    wrong = ("utils/bits.circom", "inverse <-- in != 0 ? 1 / in : 0;", "inverse <-- 0;")
    split = case.knowing(labels=(0, 1, 2, 3)).stating(c=8, c_tenant=8)
    assert_caught(lie(split, wrong), {"different[].in", "different[].out"})


def test_vector_of_another_commitment(case: Window) -> None:
    """The near vector is exchanged for a far one; its record's cq stays."""
    data = np.frombuffer(case.private.vectors, np.int8).reshape(-1, 8).copy()
    data[2] = C
    altered = case.knowing(vectors=data.tobytes(), labels=(0, 3, 0, 3))
    assert_caught(lie(altered), {"cq[]", "vector_hash[].out"})


def test_commitment_of_another_vector(case: Window) -> None:
    """The same with a cq that fits: the statement is another one."""
    rows = [A, B, C, A, C]
    altered = case.with_rows(rows).knowing(labels=(0, 3, 0, 3))
    assert_caught(lie(altered, statement=case.job.places.digest()), {"statement"})


def test_dropped_record(case: Window) -> None:
    """The record that joins account 1 is taken out of every comparison."""
    without = window([A, B, A, C], [0, 0, 1, 2], [0, 1, 1])
    assert_caught(lie(without, statement=case.job.places.digest()), {"statement"})


def test_smaller_tau(case: Window) -> None:
    narrow = case.stating(first=(0, 1, 2, 3, 4), c=1, c_tenant=1).knowing(labels=(0, 1, 2, 3))
    assert satisfied(narrow)
    assert_caught(lie(narrow, statement=case.job.places.digest()), {"statement"})


@pytest.mark.parametrize("name", ["ctx", "c", "c_tenant"])
def test_other_public_value(case: Window, name: str) -> None:
    other = case.stating(**{name: getattr(case.statement, name) + 1})
    assert_caught(lie(other, statement=case.job.places.digest()), {"statement"})


def test_inner_product_read_across_slots() -> None:
    """Vectors of -8 throughout fill a slot: their product would be read as negative, and their norms as zero."""
    rows = [[-8] * 8, [-8] * 8, C]
    case = window(rows, [0, 1, 2])
    hidden = case.knowing(labels=(0, 1, 2)).stating(c=1, c_tenant=1)
    broken = literal_system(TINY).broken_signals(lie(hidden))
    classes = {signal_class(name) for signals in broken for name in signals}
    assert classes <= {"products.slots[].bit[]", "apart[].bit[]", "apart[].in"}
    assert "products.slots[].bit[]" in classes


def test_product_of_other_components(case: Window) -> None:
    """Inner products that are not of the opened vectors: all components read as zero."""
    wrong = ("lib/coalition.circom", "product[block][k] <== left * right;", "product[block][k] <-- 0;")
    split = case.knowing(labels=(0, 1, 2, 3)).stating(c=1, c_tenant=1)
    broken = literal_system(TINY).broken_signals(lie(split, wrong))
    classes = {signal_class(name) for signals in broken for name in signals}
    assert "products.product[][]" in classes


# -- proofs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(case: Window) -> dict[str, Any]:
    return coalition.SYSTEM.prove(case.statement, case.private)


@pytest.fixture(scope="module")
def key() -> Any:
    return VerificationKey.parse(proving_key(TINY).vk, field="vk")


@pytest.mark.parametrize("engine", ["native", "py_ecc"])
def test_certificate_verifies(case: Window, certificate: dict[str, Any], key: Any, engine: str) -> None:
    coalition.SYSTEM.steps.verify(case.statement, certificate, key=key, engine=engine)


@pytest.mark.full
def test_certificate_of_a_full_window_of_64() -> None:
    """The shipped instance, every place used."""
    shipped = CoalitionInstance(64)
    rng = np.random.default_rng(64)
    rows = rng.standard_normal((64, 768))
    rows[40] = rows[3] + 0.1 * rows[4]
    rows *= 7 / 0.108 / np.linalg.norm(rows, axis=1, keepdims=True)
    vectors = np.clip(np.rint(rows), -7, 7).astype(int).tolist()
    full = window(vectors, [i % 20 for i in range(64)], [i % 3 for i in range(20)], instance=shipped)
    assert full.statement.c == 2
    result = coalition.SYSTEM.prove(full.statement, full.private)
    pinned = VerificationKey.parse(proving_key(shipped).vk, field="vk")
    coalition.SYSTEM.steps.verify(full.statement, result, key=pinned)
    with pytest.raises(InvalidProof):
        coalition.SYSTEM.steps.verify(full.stating(c=1, c_tenant=1).statement, result, key=pinned)


@pytest.mark.parametrize(
    "fault, change",
    [
        ("another window, or other entries", {"ctx": 1}),
        ("smaller c", {"c": 2}),
        ("larger c", {"c": 4}),
        ("smaller c_tenant", {"c_tenant": 1}),
        ("smaller tau", {"first": (0, 1, 2, 3, 4)}),
        ("record of another account", {"account": (0, 0, 1, 2, 2), "tenant": (0, 0, 1)}),
        ("account of another tenant", {"tenant": (0, 0, 0, 1)}),
        ("altered commitment", {"cq": (1, 2, 3, 4, 5)}),
    ],
)
def test_certificate_of_another_statement(
    case: Window, certificate: dict[str, Any], key: Any, fault: str, change: dict[str, Any]
) -> None:
    with pytest.raises(InvalidProof):
        coalition.SYSTEM.steps.verify(case.stating(**change).statement, certificate, key=key)


def test_certificate_without_one_record(case: Window, certificate: dict[str, Any], key: Any) -> None:
    statement = case.statement
    short = replace(statement, cq=statement.cq[:-1], account=statement.account[:-1], first=statement.first[:-1],
                    tenant=statement.tenant[:-1])  # fmt: skip
    with pytest.raises(InvalidProof):
        coalition.SYSTEM.steps.verify(short, certificate, key=key)


def test_certificate_for_another_theta_is_of_another_circuit(
    case: Window, certificate: dict[str, Any], key: Any
) -> None:
    with pytest.raises(SchemaError, match="another circuit"):
        coalition.SYSTEM.steps.verify(case.stating(theta=(3, 5)).statement, certificate, key=key)
    assert coalition.SYSTEM.digest(CoalitionSize(8, 8, (8, 10))) == TINY.digest()


def test_damaged_certificate(case: Window, certificate: dict[str, Any], key: Any) -> None:
    with pytest.raises(EncodingError):
        coalition.SYSTEM.steps.verify(case.statement, {**certificate, "a": ["0" * 64, "0" * 64]}, key=key)
    with pytest.raises(SchemaError):
        coalition.SYSTEM.steps.verify(case.statement, None, key=key)


def test_false_claim_has_no_certificate(case: Window) -> None:
    for false in (case.stating(c=2), case.knowing(labels=(0, 1, 0, 3)), case.knowing(salts=(1,) * 5)):
        with pytest.raises(WitnessError, match="private inputs do not satisfy"):
            coalition.SYSTEM.prove(false.statement, false.private)


def test_window_that_does_not_fit(case: Window) -> None:
    empty = case.stating(cq=(), account=(), tenant=(), first=(), c=0, c_tenant=0)
    with pytest.raises(WitnessError, match="does not fit") as caught:
        coalition.SYSTEM.prove(empty.statement, empty.private)
    assert caught.value.expected == "1..8"
    many = window([A] * 9, [0] * 9)
    with pytest.raises(WitnessError, match="does not fit"):
        coalition.SYSTEM.prove(many.statement, many.private)
    for name in ("vectors", "salts", "labels"):
        short = case.knowing(**{name: getattr(case.private, name)[:-1]})
        with pytest.raises(WitnessError) as caught:
            CoalitionJob.of(short.statement, short.private)
        assert caught.value.field == name


@pytest.mark.parametrize(
    "change", [{"records": 0}, {"records": 10}, {"records": 68}, {"dimension": 4097}, {"theta": (5, 4)},
               {"theta": (0, 4)}, {"theta": (8, 10)}, {"theta": (1, 1001)}]
)  # fmt: skip
def test_parameters_that_no_circuit_fits(change: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        replace(TINY, **change)


def test_job_does_not_show_its_secrets(case: Window) -> None:
    text = repr(case.job)
    for secret in (case.private.salts[0], case.private.vectors, case.private.labels):
        assert str(secret) not in text


def test_system_that_is_not_known() -> None:
    assert backend("groth16").coalition is coalition.SYSTEM
    with pytest.raises(VersionError):
        backend("plonk")
    assert "plonk" not in SYSTEMS
