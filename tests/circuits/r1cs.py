"""Constraint systems and witnesses in plain Python: the constraints that a witness violates, and the names of their
signals. Formats: iden3 r1cs and wtns (binary), circom's sym (text)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rag_audit.relation.field import MODULUS

Combination = tuple[tuple[int, int], ...]
"""(wire, coefficient) pairs."""


def _sections(data: bytes) -> dict[int, bytes]:
    result = {}
    offset = 12
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        kind, size = struct.unpack_from("<IQ", data, offset)
        result[kind] = data[offset + 12 : offset + 12 + size]
        offset += 12 + size
    return result


def read_witness(wtns: bytes) -> list[int]:
    """The wires' values."""
    assert wtns[:4] == b"wtns"
    values = _sections(wtns)[2]
    return [int.from_bytes(values[i : i + 32], "little") for i in range(0, len(values), 32)]


@dataclass(frozen=True)
class System:
    """A constraint system with the names of its wires."""

    constraints: list[tuple[Combination, Combination, Combination]]
    names: dict[int, str]
    """wire to name (the first of those that share it), without `main.`"""
    wires: dict[str, int]
    public: int

    @classmethod
    def read(cls, r1cs: Path, symbols: Path) -> System:
        """From a compiler's output."""
        data = r1cs.read_bytes()
        assert data[:4] == b"r1cs"
        sections = _sections(data)
        size, _, _, outputs, inputs = struct.unpack_from("<I32sIII", sections[1])
        assert size == 32
        body = memoryview(sections[2])
        offset = 0

        def combination() -> Combination:
            nonlocal offset
            (count,) = struct.unpack_from("<I", body, offset)
            offset += 4
            terms = []
            for _ in range(count):
                wire = int.from_bytes(body[offset : offset + 4], "little")
                terms.append((wire, int.from_bytes(body[offset + 4 : offset + 36], "little")))
                offset += 36
            return tuple(terms)

        constraints = []
        while offset < len(body):
            constraints.append((combination(), combination(), combination()))
        wires = cls.read_wires(symbols)
        names: dict[int, str] = {}
        for name, wire in wires.items():
            names.setdefault(wire, name)
        return cls(constraints, names, wires, outputs + inputs)

    @staticmethod
    def read_wires(symbols: Path) -> dict[str, int]:
        """Names (without `main.`) and wires of the signals that remain after the compiler's simplification."""
        wires: dict[str, int] = {}
        for line in symbols.read_text().splitlines():
            _, wire, _, name = line.split(",")
            if wire != "-1":
                wires[name.removeprefix("main.")] = int(wire)
        return wires

    @cached_property
    def touching(self) -> dict[int, list[int]]:
        """Wire to the constraints that it is in."""
        result: dict[int, list[int]] = {}
        for i, sides in enumerate(self.constraints):
            for wire in {wire for side in sides for wire, _ in side}:
                result.setdefault(wire, []).append(i)
        return result

    def broken(self, witness: list[int], only: Iterable[int] | None = None) -> Iterator[int]:
        """Indices of the constraints that do not hold (among `only`)."""
        for i in range(len(self.constraints)) if only is None else only:
            a, b, c = (sum(witness[wire] * k for wire, k in side) for side in self.constraints[i])
            if (a * b - c) % MODULUS:
                yield i

    def signals(self, constraint: int) -> set[str]:
        """Names of a constraint's signals."""
        wires = {wire for side in self.constraints[constraint] for wire, _ in side}
        return {self.names[wire] for wire in wires if wire}

    def broken_signals(self, witness: list[int]) -> list[set[str]]:
        """The signals of each broken constraint."""
        return [self.signals(i) for i in self.broken(witness)]


def signal_class(name: str) -> str:
    """A signal's name without its indices: `noise.draw[7].x` is `noise.draw[].x`."""
    return re.sub(r"\[\d+\]", "[]", name)
