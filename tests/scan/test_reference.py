"""The second verifier of the scan argument against published bytes; each run's tests stand in a file of their own."""

from __future__ import annotations

import base64
import dataclasses
import random
from typing import Any

import pytest
from py_ecc.optimized_bn128 import FQ, Z1, add, multiply, normalize

from rag_audit.errors import EncodingError, RagAuditError
from rag_audit.proofs.reference import coins, embed, listing, noise, query
from rag_audit.proofs.reference.extensions import Functional, below, dot, eq_table, numbers
from rag_audit.proofs.reference.group import G, P, Point, decode, encode, generator, total
from rag_audit.proofs.reference.index import Index
from rag_audit.proofs.reference.session import row_bits
from rag_audit.proofs.reference.transcript import Reader, Transcript
from rag_audit.proofs.reference.words import Seed
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import ScoreWindow
from tests.scan.golden import GOLDEN, Labels, counts, published, traces, words_by_label

FULL = pytest.mark.full
RUNS = [pytest.param(name, marks=() if name in ("noise", "query") else FULL) for name in GOLDEN]


def test_generators_are_the_published_ones() -> None:
    known = published("generators")
    for family in "GQ":
        for i, point in enumerate(known[f"{family}_first"]):
            assert encode(generator(f"{family}/{i}")).hex() == point
    for name in "HU":
        assert encode(generator(f"{name}/0")).hex() == known[name]


def test_sums_are_those_of_py_ecc() -> None:
    rng = random.Random(1)
    points = [generator(G(i)) for i in range(4)]
    terms = [(rng.randrange(MODULUS), points[i % 3]) for i in range(5)]
    terms += [(1, points[3]), (-1, points[3]), (7, None), (0, points[1])]
    result = Z1
    for k, point in terms:
        if point is not None:
            result = add(result, multiply((FQ(point[0]), FQ(point[1]), FQ(1)), k % MODULUS))
    assert total(terms) == tuple(int(c) for c in normalize(result))
    assert total([(2, G(0)), (-1, G(0)), (-1, G(0))]) is None


def test_points_have_one_encoding() -> None:
    assert encode(decode(encode(None))) == encode(None)
    for bad in (b"\xc0" + bytes(31), b"\x40" + bytes(30) + b"\x01", b"\x3f" + b"\xff" * 31):
        with pytest.raises(EncodingError):
            decode(bad)


@pytest.mark.parametrize("m", [0, 1, 5, 8])
def test_extensions_are_the_sums_that_they_stand_for(m: int) -> None:
    rng = random.Random(m)
    a, p = ([rng.randrange(MODULUS) for _ in range(n)] for n in (3, 5))
    weights, at = eq_table(a), eq_table(p)
    assert below(a, m) == sum(weights[:m]) % MODULUS
    assert numbers(a, m) == dot(weights[:m], range(m))
    for coefficients in ((1,), (3, 5, 7), (1, 2, 3, 4, 5)):
        stride = len(coefficients)
        expected = sum(
            weights[i] * c * at[stride * i + o]
            for i in range(m)
            for o, c in enumerate(coefficients)
            if stride * i + o < len(at)
        )
        assert Functional(tuple(a), coefficients, m).at(p) == expected % MODULUS


@pytest.mark.parametrize("name", RUNS)
def test_a_published_proof_is_accepted_through_every_published_state(name: str) -> None:
    golden, heard = GOLDEN[name](), Labels()
    transcript = Transcript(golden.run, heard)
    session = golden.read(golden.statement, Reader(transcript, golden.proof))
    assert session.holds()
    # Before a run over pairs, its file has the states in which the run over records is read.
    assert heard.states == base64.b64decode(golden.part["states"])[-len(heard.states) :]
    assert transcript.state.hex() == golden.part["last_state"]


@pytest.mark.parametrize("change", [lambda p: p[:-32], lambda p: p + bytes(32)])
def test_a_proof_has_one_length(change: Any) -> None:
    golden = GOLDEN["coins"]()
    with pytest.raises(EncodingError):
        golden.holds(change(golden.proof))


def other(value: Any) -> Any:
    """Another value of the same kind: of a list its first element changes, of an index its digest."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, int):
        return value + 1
    if isinstance(value, tuple) and len(value) == 2 and (value[1] ** 2 - value[0] ** 3 - 3) % P == 0:
        return generator(G(5))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = {Index: "digest", Seed: "beacon", ScoreWindow: "lo"}[type(value)]
        return dataclasses.replace(value, **{name: other(getattr(value, name))})
    return type(value)([other(value[0]), *value[1:]])


@FULL
@pytest.mark.parametrize("name", GOLDEN)
def test_no_other_public_value_has_the_proof(name: str) -> None:
    golden = GOLDEN[name]()
    for field in dataclasses.fields(golden.statement):
        value = getattr(golden.statement, field.name)
        if value is None or isinstance(value, bool):
            continue
        try:
            held = golden.holds(
                golden.proof, dataclasses.replace(golden.statement, **{field.name: other(value)})
            )
        except RagAuditError:
            continue  # it is no value that a statement may have, or its proofs have another length
        assert not held, field.name


@FULL
@pytest.mark.parametrize("name", GOLDEN)
def test_a_proof_with_a_changed_word_of_any_label_is_refused(name: str) -> None:
    golden = GOLDEN[name]()
    for label, changed in words_by_label(golden):
        assert not golden.holds(changed), label


def rows_of(capacity: int, records: int = 1) -> list[Point]:
    return [None] * ((capacity - 1 >> row_bits(capacity, records)) + 1)


def index_of(capacity: int, dimension: int) -> Index:
    return Index(capacity, dimension, dimension * rows_of(capacity), bytes(32))


def certificates(capacity: int, gains: list[int], *, slots: int = 0) -> noise.Slots:
    """The statement of noise certificates of these sizes, of several slots where their number is given."""
    seeds = [Seed(0, 0, 0)] * max(1, slots)
    return noise.Slots(bytes(32), seeds, capacity, gains, several=slots > 0)


def queries(
    capacity: int, dimension: int, listed: int, gains: list[int], *, records: int = 0, kept: bool = False
) -> query.Asked:
    """The statement of a query proof of these sizes, of several records where their number is given."""
    count, window = max(1, records), ScoreWindow(0, 64, 1 << 24)
    rows, index = rows_of(capacity, count), index_of(capacity, dimension)
    noise = [rows] * (count if gains else 0)
    column, known = rows if kept else None, [(0, 0)] * count
    return query.Asked(bytes(32), index, gains, window, listed, noise, column, known, records > 0)


def lists(capacity: int, dimension: int, most: int) -> listing.Listed:
    rows = rows_of(capacity)
    return listing.Listed(bytes(32), index_of(capacity, dimension), 20, most, rows, rows, rows, rows, 0, 0)


def embedded(tokens: int, vocabulary: int, dimension: int) -> embed.Embedded:
    return embed.Embedded(0, index_of(vocabulary + 1, dimension), tokens, 8145, 0, 0)


def tossed(capacity: int) -> coins.Coins:
    return coins.Coins(bytes(32), Seed(0, 0, 0), capacity, 77)


SIZES = [
    ("trace", "3 positions, gains 1", certificates(3, [1])),
    ("trace", "1,000 positions, gains 1, 8", certificates(1000, [1, 8])),
    ("trace", "300,000 positions, gains 1, 8, 64", certificates(300_000, [1, 8, 64])),
    ("trace", "3 positions of 2, 2 listed, gains 1", queries(3, 2, 2, [1])),
    ("trace", "1,000 positions of 256, 5 listed, gains 1, 8", queries(1000, 256, 5, [1, 8])),
    ("trace", "300,000 positions of 70, 10 listed, gains 1, 8, 64", queries(300_000, 70, 10, [1, 8, 64])),
    ("trace", "2 tokens of 8, 3 components, A 8,145", embedded(2, 8, 3)),
    ("trace", "64 tokens of 32,000, 256 components, A 8,145", embedded(64, 32_000, 256)),
    ("trace-coins", "3 positions", tossed(3)),
    ("trace-coins", "300,000 positions", tossed(300_000)),
    ("trace-sampled", "3 positions of 2, 2 listed, kept", queries(3, 2, 2, [], kept=True)),
    ("trace-sampled", "1,000 positions of 256, 5 listed", queries(1000, 256, 5, [])),
    (
        "trace-sampled",
        "1,000 positions of 256, 5 listed, kept, gains 1, 8",
        queries(1000, 256, 5, [1, 8], kept=True),
    ),
    ("trace-listing", "3 positions of 2, at most 2 listed", lists(3, 2, 2)),
    ("trace-listing", "300,000 positions of 70, at most 10 listed", lists(300_000, 70, 10)),
    ("trace-together", "1 slot of 3 positions, gains 1", certificates(3, [1], slots=1)),
    ("trace-together", "3 slots of 1,000 positions, gains 1, 8", certificates(1000, [1, 8], slots=3)),
    (
        "trace-together",
        "16 slots of 100,000 positions, gains 1, 8, 64",
        certificates(100_000, [1, 8, 64], slots=16),
    ),
    ("trace-together", "1 record of 3 positions of 2, 2 listed, gains 1", queries(3, 2, 2, [1], records=1)),
    ("trace-together", "3 records of 1,000 positions of 256, 5 listed", queries(1000, 256, 5, [], records=3)),
    (
        "trace-together",
        "5 records of 1,000 positions of 70, 10 listed, gains 1, 8",
        queries(1000, 70, 10, [1, 8], records=5),
    ),
]


@pytest.mark.parametrize(
    ("name", "sizes", "statement"),
    [
        pytest.param(*case, marks=() if case[1].startswith(("1 slot", "1 record", "3 p")) else FULL)
        for case in SIZES
    ],
)
def test_messages_and_claims_are_those_of_the_published_traces(name: str, sizes: str, statement: Any) -> None:
    run, read = {
        noise.Slots: (getattr(statement, "run", ""), lambda s, r: noise.read(s, r)[0]),
        query.Asked: (getattr(statement, "run", ""), query.read),
        coins.Coins: (coins.RUN, lambda s, r: coins.read(s, r)[0]),
        embed.Embedded: (embed.RUN, embed.read),
        listing.Listed: (listing.RUN, listing.read),
    }[type(statement)]
    published_run = "list" if run == listing.RUN else run
    left_out = ("table claim: ", "link: ")  # the reference has them as parts of closing, without a name
    expected = [
        line for line in traces(name, published_run)[sizes] if not line.split(" x ")[1].startswith(left_out)
    ]
    assert sorted(counts(run, lambda reader: read(statement, reader))) == sorted(expected)
