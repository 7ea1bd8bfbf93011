"""The layered argument for Poseidon permutations, from their outputs to their inputs (docs/scan/poseidon.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference.digits import Digit, extension, from_the_top, of, regroup, variables
from rag_audit.proofs.backends.reference.extensions import (
    Functional,
    below,
    dot,
    eq_at,
    eq_table,
    log2,
    numbers,
    powers,
)
from rag_audit.proofs.backends.reference.session import Expr, Session, total
from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import hash_elements, parameters
from rag_audit.relation.tags import TAG_LIST, TAG_NOISE_BLOCK

WIDTH, ROUNDS, LAST, LIST_RUN = 17, 76, 75, 15
FULL = {*range(4), *range(72, 76)}


@dataclass(frozen=True)
class Call:
    """One permutation with these inputs in words 1.. and this output as word 0."""

    inputs: Sequence[Expr | int]
    output: Expr | int


@dataclass(frozen=True)
class Stream:
    """The words of blocks under one key or several: their extension at (words, records : blocks)."""

    keys: Sequence[Expr]
    blocks: int
    words: Sequence[int]
    records: Sequence[int]
    point: Sequence[int]
    value: Expr


def list_calls(session: Session, tag: int, elements: Sequence[Expr | int], result: Expr | int) -> list[Call]:
    """The calls of HL(tag, elements) with the value `result`."""
    h: Expr | int = hash_elements(TAG_LIST, tag, len(elements))
    calls = []
    for i in range(0, len(elements), LIST_RUN):
        last = i + LIST_RUN >= len(elements)
        out = result if last else session.send("running hash", 1)[0]
        calls.append(Call([h, *elements[i : i + LIST_RUN]], out))
        h = out
    return calls


def _transposed(f: Sequence[int]) -> list[int]:
    """M^T f."""
    return [dot([row[j] for row in parameters()[1]], f) for j in range(WIDTH)]


def _sbox_columns(session: Session, words: int, extra: int = 0) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """Words before and after the S-box, and values that are sent with them."""
    sent = session.send("S-box inputs", 4 * words + extra)
    inputs, squares, fourths, fifths = (sent[words * i : words * (i + 1)] for i in range(4))
    for x, square, fourth, fifth in zip(inputs, squares, fourths, fifths, strict=True):
        session.product("square", x, x, square)
        session.product("fourth power", square, square, fourth)
        session.product("fifth power", fourth, x, fifth)
    return inputs, fifths, sent[4 * words :]


def permutations(session: Session, calls: Sequence[Call], stream: Stream | None = None) -> None:
    """The stream's words, and each call's output."""
    lanes = len(stream.records) if stream else 0
    first = stream.blocks << lanes if stream else 0
    size = log2(first + len(calls))
    gamma = powers(session.challenge("hash outputs"), len(calls) + 1)[1:]
    claim = total(zip(gamma, (call.output for call in calls), strict=True))
    p, claim = session.plain("hash layer", size, claim + stream.value if stream else claim, 6)
    f, s = [0] * WIDTH, 0
    if stream:
        f = [0, *eq_table(stream.words)]
        s = Functional(tuple(stream.point), (1,), stream.blocks).at(p[lanes:])
        s *= Functional(tuple(stream.records), (1,), len(stream.keys)).at(p[:lanes])
    u = sum(g * eq_at(p, first + c) for c, g in enumerate(gamma))
    weights = [s * a + u * b for a, b in zip(_transposed(f), parameters()[1][0], strict=True)]
    p, inputs = _layers(session, of(p), claim, weights)
    _inputs(session, calls, stream, p, inputs)


def known_outputs(session: Session, outputs: Sequence[int]) -> tuple[list[int], list[Expr]]:
    """Permutations with these output words 0, and others of zeros: returns a point, and the values of the input
    words there."""
    tau = session.challenges("hash outputs", log2(len(outputs)))
    claim = dot(eq_table(tau, len(outputs)), outputs) + (1 - below(tau, len(outputs))) * hash_elements()
    held_at, held = session.reduce_digits("hash layer", _paired(of(tau)), claim % MODULUS, 5)
    p, inputs = _layers(session, held_at, held, parameters()[1][0])
    return p, [x - constant for x, constant in zip(inputs, parameters()[0][0], strict=True)]


def _paired(p: Sequence[Digit]) -> list[Digit]:
    """Two variables per digit; for an odd number the lowest digit has one."""
    return regroup(p, from_the_top(sum(map(variables, p)), 2))


def _layers(
    session: Session, p: list[Digit], claim: Expr, weights: Sequence[int]
) -> tuple[list[int], list[Expr]]:
    """Reduce the weighted claim about the last S-boxes' outputs to the first ones' inputs; returns their point and
    values."""
    inputs, fifths, _ = _sbox_columns(session, WIDTH)
    session.constraint("hash outputs", total(zip(weights, fifths, strict=True)) - claim)
    functional = powers(session.challenge("hash functional"), WIDTH)
    claim = _carried(functional, total(zip(functional, inputs, strict=True)), LAST)
    point: list[int] = []
    for number in reversed(range(LAST)):
        w = _transposed(functional)
        scale = 1
        if number:
            p, claim = session.reduce_digits("hash layer", _paired(p), claim, 5)
        else:
            point, claim = session.plain("hash layer", sum(map(variables, p)), claim, 6)
            scale = extension(p, point)
        if number in FULL:
            inputs, fifths, _ = _sbox_columns(session, WIDTH)
            session.constraint("hash layer", scale * total(zip(w, fifths, strict=True)) - claim)
            functional = powers(session.challenge("hash functional"), WIDTH)
            claim = total(zip(functional, inputs, strict=True))
        else:
            (x,), (z,), (others,) = _sbox_columns(session, 1, 1)
            session.constraint("hash layer", w[0] * z + others - claim)
            h = session.challenge("hash functional")
            functional = [1, *(h * k % MODULUS for k in w[1:])]
            claim = x + h * others
        claim = _carried(functional, claim, number)
    return point, inputs


def _carried(functional: Sequence[int], after: Expr, number: int) -> Expr:
    """The functional's value on the state that enters a round, from its value after constants are added."""
    return after - dot(functional, parameters()[0][number])


def _inputs(
    session: Session, calls: Sequence[Call], stream: Stream | None, p: Sequence[int], x: Sequence[Expr]
) -> None:
    state: list[Expr] = [Expr()] * WIDTH
    first = 0
    if stream:
        lanes, first = len(stream.records), stream.blocks << len(stream.records)
        low, high = p[:lanes], p[lanes:]
        inside, held = below(high, stream.blocks), eq_table(low, len(stream.keys))
        state[1] = total((inside * e, key) for e, key in zip(held, stream.keys, strict=True))
        state[2] += below(low, len(stream.keys)) * numbers(high, stream.blocks)
        state[3] += below(low, len(stream.keys)) * inside * TAG_NOISE_BLOCK
    for c, call in enumerate(calls):
        weight = eq_at(p, first + c)
        for j, e in enumerate(call.inputs, 1):
            state[j] = total([(1, state[j]), (weight, e)])
    for word, constant, value in zip(state, parameters()[0][0], x, strict=True):
        session.constraint("hash input", word + constant - value)
