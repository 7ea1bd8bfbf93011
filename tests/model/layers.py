"""The probability that a false claim passes at random points (`docs/scan/sumcheck.md`, `lookup.md`, `poseidon.md` and
`closing.md`).

Over a prime P of two digits, the tests try every message of a prover and every challenge, so the best possible prover
meets the errors that the pages state. Over a prime of five digits, whole layers run with one false value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random

import numpy as np
import numpy.typing as npt

P = 97
LARGE = 65_519
"""A prime below 2^16 at which the fifth power has an inverse."""

Gate = Callable[..., int]


def inverse(x: int, p: int) -> int:
    """1 / x modulo p."""
    return pow(x, -1, p)


def at(p: int, table: Sequence[int], point: Sequence[int]) -> int:
    """A table's extension at a point, the first coordinate that of the lowest bit."""
    values = list(table)
    for x in point:
        values = [(low + x * (high - low)) % p for low, high in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def eq(p: int, tau: Sequence[int]) -> list[int]:
    """eq(tau, x) for every x."""
    table = [1]
    for t in tau:
        table = [e * (1 - t) % p for e in table] + [e * t % p for e in table]
    return table


def polynomial(p: int, values: Sequence[int]) -> list[int]:
    """The coefficients of what has these values at 0, 1, .."""
    total = [0] * len(values)
    for i, value in enumerate(values):
        term, scale = [1], value
        for k in range(len(values)):
            if k != i:
                term = [(a - k * b) % p for a, b in zip([0, *term], [*term, 0], strict=True)]
                scale = scale * inverse(i - k, p) % p
        total = [(a + scale * b) % p for a, b in zip(total, term, strict=True)]
    return total


def best_round(t: int, error: int, truth: Sequence[int]) -> int:
    """At how many challenges a claim that is false by `error` becomes true, for the best message c_1, .., c_d.

    :param truth: the coefficients q_1, .., q_d of the true round polynomial
    """
    degree, r = len(truth), np.arange(P)
    powers = np.array([(np.power(r, k + 1) - t) % P for k in range(degree)])
    maximum = 0
    for first in product(range(P), repeat=degree - 1):
        # Of the last coefficient all values at once.
        known = sum((c - q) * row for c, q, row in zip(first, truth, powers, strict=False))
        left = (error + known + np.outer(r - truth[-1], powers[-1])) % P
        maximum = max(maximum, int((left == 0).sum(axis=1).max()))
    return maximum


def vanishing_fractions(looked: Sequence[int], rows: Sequence[int]) -> int:
    """At how many alpha the fractions sum to 0 without a pole, for the best two multiplicities of the rows."""
    assert len(rows) == 2
    alphas = [alpha for alpha in range(P) if alpha not in {*looked, *rows}]
    sums = np.array([sum(inverse(alpha - x, P) for x in looked) % P for alpha in alphas])
    shares = np.array([[inverse(alpha - row, P) for row in rows] for alpha in alphas])
    maximum, second = 0, np.arange(P)[:, None]
    for first in range(P):
        left = (sums - first * shares[:, 0] - second * shares[:, 1]) % P
        maximum = max(maximum, int((left == 0).sum(axis=1).max()))
    return maximum


def vanishing_tuples(
    looked: Sequence[tuple[int, int]], rows: Sequence[tuple[int, int]], counts: Sequence[int]
) -> int:
    """At how many pairs of alpha and beta the fractions of tuples sum to 0 without a pole."""
    alpha, beta = np.meshgrid(np.arange(P), np.arange(P))
    inverses = np.array([0, *(inverse(x, P) for x in range(1, P))])

    def denominators(pairs: Sequence[tuple[int, int]]) -> npt.NDArray[np.int64]:
        return np.array([(alpha - a - beta * b) % P for a, b in pairs])

    ours, table = denominators(looked), denominators(rows)
    total = inverses[ours].sum(axis=0) - (inverses[table] * np.array(counts)[:, None, None]).sum(axis=0)
    poles = (ours == 0).any(axis=0) | (table == 0).any(axis=0)
    return int(((total % P == 0) & ~poles).sum())


def vanishing_powers(errors: Sequence[int], first: int = 0) -> int:
    """At how many z the errors of claims cancel under powers of z from `first` on."""
    return sum(sum(e * z ** (first + k) for k, e in enumerate(errors)) % P == 0 for z in range(P))


class Run:
    """A run without commitments: values are sent as they are, and one of them, the `lie`-th, with an error.

    :param lie: the number of the value that is false; None for an honest run
    """

    def __init__(self, p: int, rng: Random, lie: int | None = None) -> None:
        self.p, self.rng, self.lie = p, rng, lie
        self.sent = 0
        self.false: list[str] = []

    def send(self, values: Sequence[int]) -> list[int]:
        """The verifier's view of these values."""
        out = []
        for value in values:
            error = self.rng.randrange(1, self.p) if self.sent == self.lie else 0
            out.append((value + error) % self.p)
            self.sent += 1
        return out

    def challenge(self) -> int:
        """A random element."""
        return self.rng.randrange(self.p)

    def zero(self, name: str, value: int) -> None:
        """Claims that a value is 0."""
        if value % self.p:
            self.false.append(name)

    def reduce(
        self, tau: Sequence[int], claim: int, degree: int, tables: list[list[int]], gate: Gate
    ) -> tuple[list[int], int, list[int]]:
        """`reduce` of `docs/scan/sumcheck.md`: the point, the claim there, and the tables' values, which only a prover
        has."""
        p, point = self.p, list[int]()
        for i, t in enumerate(tau):
            weights = eq(p, tau[i + 1 :])
            values = [
                sum(
                    e * gate(*((row[2 * k] + x * (row[2 * k + 1] - row[2 * k])) % p for row in tables))
                    for k, e in enumerate(weights)
                ) % p
                for x in range(degree + 1)
            ]  # fmt: skip
            coefficients = self.send(polynomial(p, values)[1:])
            r = self.challenge()
            claim = (claim + sum(c * (r ** (k + 1) - t) for k, c in enumerate(coefficients))) % p
            tables = [[(low + r * (high - low)) % p for low, high in zip(row[::2], row[1::2], strict=True)]
                      for row in tables]  # fmt: skip
            point.append(r)
        return point, claim, [row[0] for row in tables]

    def fractions(self, leaves: list[tuple[int, int]]) -> tuple[list[int], int, int]:
        """The tree of `docs/scan/lookup.md` over these p / q: the point of the leaves, and what p and q are there."""
        p = self.p
        layers = [leaves]
        while len(layers[-1]) > 1:
            pairs = zip(layers[-1][::2], layers[-1][1::2], strict=True)
            layers.append([((a * d + b * c) % p, c * d % p) for (a, c), (b, d) in pairs])
        root = layers[-1][0][1]
        q, invert = self.send([root, pow(root, p - 2, p)])
        self.zero("lookup root", q * invert - 1)
        top, point = 0, list[int]()
        for layer in reversed(layers[:-1]):
            mu = self.challenge()
            even, odd = layer[::2], layer[1::2]
            tables = [[(mu * a + b) % p for a, b in even], [(mu * a + b) % p for a, b in odd],
                      [b for _, b in even], [b for _, b in odd]]  # fmt: skip
            inner, claim, _ = self.reduce(
                point, mu * top + 2 * q, 2, tables, lambda g0, g1, q0, q1: g0 * q1 + g1 * q0
            )
            ends = [at(p, [pair[k] for pair in side], inner) for k in (0, 1) for side in (even, odd)]
            p0, p1, q0, q1 = ends
            p0, p1, q0, q1, first, second = self.send([*ends, (mu * p0 + q0) * q1, (mu * p1 + q1) * q0])
            self.zero("lookup product", (mu * p0 + q0) * q1 - first)
            self.zero("lookup product", (mu * p1 + q1) * q0 - second)
            self.zero("lookup layer", claim - first - second)
            join = self.challenge()
            top, q = p0 + join * (p1 - p0), q0 + join * (q1 - q0)
            point = [join, *inner]
        return point, top % p, q % p

    def looked_up(self, values: Sequence[int], rows: Sequence[int], counts: Sequence[int]) -> None:
        """That every value is a row, by the multiplicities that the prover has committed to. Both lists have a power of
        two of entries, as many as one another."""
        p = self.p
        assert len(values) == len(rows)
        alpha = self.challenge()
        leaves = [(1, (alpha - x) % p) for x in values]
        leaves += [(-count % p, (alpha - row) % p) for row, count in zip(rows, counts, strict=True)]
        point, top, q = self.fractions(leaves)
        kappa = self.challenge()
        low, high = point[:-1], point[-1]
        shares = [at(p, list(column), low) for column in (values, counts, rows)]
        ones = (1 - high) * (1 - kappa * shares[0]) - high * (shares[1] + kappa * shares[2])
        self.zero("lookup leaves", top + kappa * q - ones - kappa * alpha)

    def multiplied(
        self,
        matrices: Sequence[Sequence[Sequence[int]]],
        rows: Sequence[Sequence[int]],
        errors: Sequence[int],
    ) -> None:
        """Both sums of the sumcheck "matrices" of `docs/scan/feed-forward.md`, without the residual: the first matrix's products
        with x under public factors w, and the deviations of the second matrix's products with g under public factors.

        :param matrices: W1 and W2, square, of a power of two of rows
        :param rows: x and g
        :param errors: the errors of the claimed sums
        """
        p, half = self.p, inverse(2, self.p)
        (first, second), (x, g), d = matrices, rows, len(rows[0])
        w, v = ([self.challenge() for _ in range(d)] for _ in range(2))
        nu = self.challenge()
        selected = [sum(a * b for a, b in zip(row, w, strict=True)) % p for row in first]
        weighted, plain = ([sum(a * b for a, b in zip(row, by, strict=True)) % p for row in second]
                           for by in (v, [1] * d))  # fmt: skip
        deviations = [(d * a - b * sum(v)) % p for a, b in zip(weighted, plain, strict=True)]
        claims = errors[0] + sum(a * b for a, b in zip(selected, x, strict=True))
        others = errors[1] + sum(a * b for a, b in zip(deviations, g, strict=True))
        variables = d.bit_length() - 1
        point, claim, _ = self.reduce(
            [half] * variables, (claims + nu * others) * pow(half, variables, p), 2, [selected, [*x], deviations, [*g]],
            lambda a, b, c, e: a * b + nu * c * e,
        )  # fmt: skip
        columns = [at(p, column, point) for column in (x, g, selected, weighted, plain)]
        products = [columns[2] * columns[0], (d * columns[3] - columns[4] * sum(v)) * columns[1]]
        *opened, r_1, r_2 = self.send([*columns, *products])
        for value, column in zip(opened, columns, strict=True):
            self.zero("column", value - column)
        self.zero("first matrix", opened[2] * opened[0] - r_1)
        self.zero("second matrix", (d * opened[3] - opened[4] * sum(v)) * opened[1] - r_2)
        self.zero("matrices", claim - r_1 - nu * r_2)

    def permutations(
        self, states: list[list[int]], outputs: Sequence[int], constants: list[list[int]], matrix: list[list[int]],
        full: int,
    ) -> None:  # fmt: skip
        """That word 0 of each state's permutation is the output: `docs/scan/poseidon.md`, with fewer words and rounds.

        :param states: a power of two of them
        :param full: full rounds, first and last
        """
        p, width, last = self.p, len(matrix), len(constants) - 1
        boxes = []
        for number, row in enumerate(constants):
            states = [[(x + c) % p for x, c in zip(state, row, strict=True)] for state in states]
            boxes.append(states)
            partial = full <= number <= last - full
            raised = [[x if partial and i else pow(x, 5, p) for i, x in enumerate(state)] for state in states]
            states = [[sum(m * x for m, x in zip(line, state, strict=True)) % p for line in matrix]
                      for state in raised]  # fmt: skip
        variables = (len(outputs) - 1).bit_length()
        point = [self.challenge() for _ in range(variables)]
        claim = at(p, outputs, point)
        carried = [1] + [0] * (width - 1)
        for number in range(last, -1, -1):
            weights = [sum(matrix[i][j] * carried[i] for i in range(width)) % p for j in range(width)]
            columns = [[state[i] for state in boxes[number]] for i in range(width)]
            if full <= number <= last - full:
                rest = [sum(w * column[b] for w, column in zip(weights[1:], columns[1:], strict=True)) % p
                        for b in range(len(outputs))]  # fmt: skip
                point, claim, ends = self.reduce(
                    point, claim, 5, [columns[0], rest], lambda x, other, w=weights[0]: w * x**5 + other
                )
                others = ends[1:]
            else:
                point, claim, ends = self.reduce(
                    point, claim, 5, columns,
                    lambda *xs, ws=weights: sum(w * x**5 for w, x in zip(ws, xs, strict=True)),
                )  # fmt: skip
                others = []
            count = len(ends) - len(others)
            values = self.send(
                [*ends[:count], *(pow(x, k, p) for k in (2, 4, 5) for x in ends[:count]), *others]
            )
            x, square, fourth, fifth = (values[k * count : (k + 1) * count] for k in range(4))
            for a, b, c, d in zip(x, square, fourth, fifth, strict=True):
                self.zero("square", a * a - b)
                self.zero("fourth power", b * b - c)
                self.zero("fifth power", c * a - d)
            left = sum(w * z for w, z in zip(weights, fifth, strict=False)) + sum(values[4 * count :])
            self.zero("hash layer", left - claim)
            h = self.challenge()
            if others:
                carried = [1] + [h * w % p for w in weights[1:]]
                claim = x[0] + h * values[-1]
            else:
                carried = [pow(h, i, p) for i in range(width)]
                claim = sum(a * value for a, value in zip(carried, x, strict=True))
            claim -= sum(a * c for a, c in zip(carried, constants[number], strict=True))
            if number:
                continue
            # The words of the first state, which a caller holds.
            for i, value in enumerate(x):
                given = at(p, [state[i] for state in boxes[0]], point)
                self.zero("hash input", given - value)
