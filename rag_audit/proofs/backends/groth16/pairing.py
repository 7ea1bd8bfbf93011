"""The pairing of bn128 for verifiers: its Miller loops, all at once, and its final exponentiation.

py_ecc computes with a point of G2 in the field of degree 12 throughout. Here it stays on the twist, over the field of
degree 2, from which a line has 5 coefficients of 12, and all loops share the squares of their product (Vercauteren,
"Optimal pairings", 2010; Scott et al., "On the final exponentiation", 2009). Tests compare both with py_ecc's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

from rag_audit.proofs.backends.groth16.py_ecc_import import import_py_ecc

_fields = import_py_ecc("py_ecc.fields")
_curve = import_py_ecc("py_ecc.optimized_bn128.optimized_curve")
FQ2, FQ12 = _fields.optimized_bn128_FQ2, _fields.optimized_bn128_FQ12

P = 21888242871839275222246405745257275088696311157297823662689037894645226208583
X = 4965661367192848881
"""The curve's parameter: p, r and the loop's length 6 X + 2 are polynomials of it."""
_DIGITS = tuple(1 if d == "1" else 0 for d in f"{6 * X + 2:b}"[1:])
_TURN = int((FQ12([0, 1] + [0] * 10) ** (P * P - 1)).coeffs[0])
"""w^(p^2 - 1), a sixth root of unity of Fp."""

Fp2: TypeAlias = tuple[int, int]
"""a + b i, where w^6 = 9 + i."""
Line: TypeAlias = tuple[int, Fp2, Fp2]
"""The coefficients of 1, w and w^3."""


def miller(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The product of the pairings of points of G2 and of G1 before the final exponentiation, but for a factor in a
    smaller field, which that turns into 1.

    :param pairs: points in py_ecc's projective form, of order r or at infinity
    """
    points = [(_affine2(q), _affine1(p)) for q, p in pairs if not (_curve.is_inf(q) or _curve.is_inf(p))]
    sums = [q for q, _ in points]
    product = FQ12.one()

    def step(others: Sequence[tuple[Fp2, Fp2]]) -> None:
        nonlocal product
        for k, (other, (_, at)) in enumerate(zip(others, points, strict=True)):
            line, sums[k] = _added(sums[k], other, at)
            product = _times(product, line)

    for digit in _DIGITS:
        product = product * product
        step(sums.copy())
        if digit:
            step([q for q, _ in points])
    once = [_frobenius_of_twist(q) for q, _ in points]
    step(once)
    step([(x, _negative(y)) for x, y in map(_frobenius_of_twist, once)])
    return product


def final_exponentiation(f: Any) -> Any:
    """f^((p^12 - 1) / r), as (p^6 - 1)(p^2 + 1) times (p^4 - p^2 + 1) / r. With w^12 = 18 w^6 - 82, the p^6-th power is
    f at -w, and the p^2-th is f at `_TURN` w; after the first factor f at -w is also the inverse.

    :param f: of FQ12, not zero
    """
    f = _at(f, -1) / f
    f = _at(f, _TURN) * f
    x1 = f**X
    x2 = x1**X
    x3 = x2**X
    # p^3 + (6 X^2 + 1) p^2 - (36 X^3 + 18 X^2 + 12 X - 1) p - (36 X^3 + 30 X^2 + 18 X + 2)
    shared = _at(x3**6 * x2**3 * x1**2, -1) ** 6
    last = shared * _at((x2**2 * x1) ** 6 * f**2, -1)
    return _frobenius(_at(f, _TURN)) * _at(x2**6 * f, _TURN) * _frobenius(shared * f) * last


def _at(f: Any, factor: int) -> Any:
    """A polynomial in w at `factor` times w."""
    return FQ12([int(c) * pow(factor, i, P) for i, c in enumerate(f.coeffs)])


def _frobenius(f: Any) -> Any:
    """f^p."""
    total = [0] * 12
    for c, image in zip(f.coeffs, _images(), strict=True):
        for i, part in image:
            total[i] += int(c) * part
    return FQ12(total)


@cache
def _images() -> Sequence[Sequence[tuple[int, int]]]:
    """What the p-th power makes of 1, w, w^2, ..: places and coefficients."""
    w = FQ12([0, 1] + [0] * 10) ** P
    powers = [FQ12.one()]
    for _ in range(11):
        powers.append(powers[-1] * w)
    return [[(i, int(c)) for i, c in enumerate(power.coeffs) if c] for power in powers]


@cache
def _twists() -> tuple[Fp2, Fp2]:
    """(9 + i)^((p - 1) / 3) and (9 + i)^((p - 1) / 2)."""
    root = FQ2([9, 1])
    x, y = (tuple(map(int, (root ** ((P - 1) // n)).coeffs)) for n in (3, 2))
    return (x[0], x[1]), (y[0], y[1])


def _frobenius_of_twist(point: tuple[Fp2, Fp2]) -> tuple[Fp2, Fp2]:
    (x, y), (turn_x, turn_y) = point, _twists()
    return _product((x[0], -x[1]), turn_x), _product((y[0], -y[1]), turn_y)


def _added(one: tuple[Fp2, Fp2], other: tuple[Fp2, Fp2], at: tuple[int, int]) -> tuple[Line, tuple[Fp2, Fp2]]:
    """The line through two points, or the tangent of one, at a point of G1; and the points' sum."""
    (x, y), (x2, y2) = one, other
    if one == other:
        square = _product(x, x)
        slope = _quotient((3 * square[0], 3 * square[1]), (2 * y[0], 2 * y[1]))
    else:
        slope = _quotient((y2[0] - y[0], y2[1] - y[1]), (x2[0] - x[0], x2[1] - x[1]))
    square = _product(slope, slope)
    x3 = ((square[0] - x[0] - x2[0]) % P, (square[1] - x[1] - x2[1]) % P)
    step = _product(slope, (x[0] - x3[0], x[1] - x3[1]))
    y3 = ((step[0] - y[0]) % P, (step[1] - y[1]) % P)
    reach = _product(slope, x)
    line = (-at[1], (slope[0] * at[0], slope[1] * at[0]), (y[0] - reach[0], y[1] - reach[1]))
    return line, (x3, y3)


def _times(f: Any, line: Line) -> Any:
    """The product with a line."""
    constant, (a, b), (c, d) = line
    terms = ((0, constant), (1, (a - 9 * b) % P), (3, (c - 9 * d) % P), (7, b % P), (9, d % P))
    out = [0] * 21
    for i, x in enumerate(f.coeffs):
        for place, y in terms:
            out[i + place] += x * y
    for i in range(20, 11, -1):
        out[i - 6] += 18 * out[i]
        out[i - 12] -= 82 * out[i]
    return FQ12(out[:12])


def _product(a: Fp2, b: Fp2) -> Fp2:
    return (a[0] * b[0] - a[1] * b[1]) % P, (a[0] * b[1] + a[1] * b[0]) % P


def _quotient(a: Fp2, b: Fp2) -> Fp2:
    """a / b; b is not zero, since no two points here have one x but where they are the same."""
    inverse = pow(b[0] * b[0] + b[1] * b[1], -1, P)
    return _product(a, (b[0] * inverse, -b[1] * inverse))


def _negative(a: Fp2) -> Fp2:
    return -a[0] % P, -a[1] % P


def _affine1(point: Any) -> tuple[int, int]:
    x, y = _curve.normalize(point)
    return int(x), int(y)


def _affine2(point: Any) -> tuple[Fp2, Fp2]:
    (a, b), (c, d) = (tuple(map(int, v.coeffs)) for v in _curve.normalize(point))
    return (a, b), (c, d)
