"""Constraint systems and witnesses written byte by byte in circom's formats, so that no test needs Node."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_audit.proofs.backends.groth16 import pyecc
from rag_audit.relation.field import MODULUS

Row = Mapping[int, int]


def section(number: int, body: bytes) -> bytes:
    return struct.pack("<IQ", number, len(body)) + body


def container(magic: bytes, version: int, *sections: bytes) -> bytes:
    return magic + struct.pack("<II", version, len(sections)) + b"".join(sections)


def le(value: int) -> bytes:
    return value.to_bytes(32, "little")


def wtns(values: list[int]) -> bytes:
    """A `.wtns` file of version 2."""
    header = struct.pack("<I", 32) + le(MODULUS) + struct.pack("<I", len(values))
    return container(b"wtns", 2, section(1, header), section(2, b"".join(map(le, values))))


@dataclass
class System:
    """A w o B w = C w with the witness that satisfies it; wire 0 is one, then the public inputs."""

    public: int
    values: list[int] = field(default_factory=lambda: [1])
    rows: list[tuple[Row, Row, Row]] = field(default_factory=list)

    def wire(self, value: int) -> int:
        self.values.append(value % MODULUS)
        return len(self.values) - 1

    def dot(self, row: Row) -> int:
        return sum(self.values[w] * k for w, k in row.items()) % MODULUS

    def multiply(self, a: Row, b: Row) -> int:
        """A new wire that equals the product of two combinations."""
        out = self.wire(self.dot(a) * self.dot(b))
        self.rows.append((a, b, {out: 1}))
        return out

    def r1cs(self) -> bytes:
        header = struct.pack("<I", 32) + le(MODULUS)
        private = len(self.values) - 1 - self.public
        header += struct.pack(
            "<IIIIQI", len(self.values), 0, self.public, private, len(self.values), len(self.rows)
        )
        body = bytearray()
        for constraint in self.rows:
            for row in constraint:
                body += struct.pack("<I", len(row))
                for wire, k in row.items():
                    body += struct.pack("<I", wire) + le(k % MODULUS)
        labels = b"".join(struct.pack("<Q", i) for i in range(len(self.values)))
        return container(b"r1cs", 1, section(1, header), section(2, bytes(body)), section(3, labels))

    def wtns(self) -> bytes:
        return wtns(self.values)

    def inputs(self) -> list[int]:
        return self.values[1 : 1 + self.public]


def random_system(constraints: int, public: int = 3, *, seed: int = 1, width: int = 3) -> System:
    """Products of random combinations with unit, small, negative, power-of-two and full-size coefficients;
    one wire in four is a bit, as in real circuits."""
    rng = random.Random(seed)
    system = System(public)
    for _ in range(public):
        system.wire(rng.randrange(MODULUS))
    pool = [1, 1, 1, -1, -1, 2, -3, 1 << 16, 1 << 200, *(rng.randrange(MODULUS) for _ in range(8))]

    def row() -> dict[int, int]:
        return {rng.randrange(len(system.values)): rng.choice(pool) for _ in range(rng.randint(1, width))}

    while len(system.rows) < constraints:
        if rng.random() < 0.25:
            bit = system.wire(rng.randint(0, 1))
            system.rows.append(({bit: 1}, {bit: 1, 0: -1}, {}))
        else:
            system.multiply(row(), row())
    return system


def off_subgroup() -> bytes:
    """A point of the twist outside the subgroup of order r: the first x = (k, 0) with a square right-hand side."""
    b0, b1 = (int(c) for c in pyecc.curve.b2.coeffs)
    for x in range(1, 100):
        a0, a1 = (x**3 + b0) % pyecc.P, b1
        # Complex method: |a| a square, then (a0 + |a|)/2 a square.
        root = pow(a0 * a0 + a1 * a1, (pyecc.P + 1) // 4, pyecc.P)
        if (root * root - a0 * a0 - a1 * a1) % pyecc.P:
            continue
        for sign in (root, pyecc.P - root):
            half = (a0 + sign) * pow(2, -1, pyecc.P) % pyecc.P
            y0 = pow(half, (pyecc.P + 1) // 4, pyecc.P)
            if (y0 * y0 - half) % pyecc.P == 0 and y0:
                y1 = a1 * pow(2 * y0, -1, pyecc.P) % pyecc.P
                return b"".join(v.to_bytes(32, "big") for v in (0, x, y1, y0))
    raise AssertionError("no such point")


def sections(data: bytes) -> dict[int, bytes]:
    """The parts of a container, in the file's order."""
    parts, offset = {}, 12
    while offset < len(data):
        number, size = struct.unpack_from("<IQ", data, offset)
        parts[number] = data[offset + 12 : offset + 12 + size]
        offset += 12 + size
    return parts
