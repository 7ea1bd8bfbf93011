"""A WebAssembly module as circom's are, by hand: of theirs even the smallest has 1.5 MB of constants and field
arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

HEAD = b"\0asm\1\0\0\0"
CUSTOM, TYPES, FUNCTIONS, MEMORY, CODE, DATA = 0, 1, 3, 5, 10, 11
SHARED, OWN, ONE = 16, 8192, 8256
"""Addresses of the passed words (their cell begins 8 bytes earlier), of the input's cell, and of the cell of 1."""


def leb(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def vector(parts: Sequence[bytes]) -> bytes:
    return leb(len(parts)) + b"".join(parts)


def sized(data: bytes) -> bytes:
    return leb(len(data)) + data


def section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + sized(content)


def fnv(name: bytes) -> int:
    """circom's hash of an input's name."""
    result = 0xCBF29CE484222325
    for byte in name:
        result = (result ^ byte) * 0x100000001B3 % (1 << 64)
    return result


def constant(value: int) -> bytes:
    """i32.const with a signed operand."""
    low = [value >> shift & 0x7F for shift in (0, 7, 14)]
    return bytes([0x41, low[0] | 0x80, low[1] | 0x80, low[2]])


def call(function: int) -> bytes:
    return b"\x10" + leb(function)


def module(init: bytes = b"") -> bytes:
    """A module as circom's are: an input `a` and one wire more, its square; `init` is the code that runs first."""
    copy, multiply = call(0), call(1)
    cell = constant(SHARED - 8)
    own, one = constant(OWN), constant(ONE)
    # The witness' first value is 1, the second the square of `a`; printErrorMessage, where `a` is 0.
    check = own + call(2) + b"\x45\x04\x40" + constant(0) + call(3) + b"\x0f\x0b"
    square = own + own + own + multiply
    get = b"\x20\0\x04\x40" + cell + own + copy + b"\x05" + cell + one + copy + b"\x0b"
    functions = [
        (b"Fr_copy", 1, b""),
        (b"Fr_mul", 2, b""),
        (b"Fr_isTrue", 3, constant(0)),
        (b"printErrorMessage", 0, b""),
        (b"getSharedRWMemoryStart", 4, constant(SHARED)),
        (b"getInputSize", 4, constant(1)),
        (b"getWitnessSize", 4, constant(2)),
        (b"init", 0, init),
        (b"setInputSignal", 2, own + cell + copy + check + square),
        (b"getWitness", 0, get),
    ]
    types = [(1, 0), (2, 0), (3, 0), (1, 1), (0, 1)]
    table = fnv(b"a").to_bytes(8, "little") + bytes(4) + (1).to_bytes(4, "little")
    data = [(SHARED + 40, table), (ONE, b"\1")]
    known = vector([leb(i) + sized(name) for i, (name, _, _) in enumerate(functions)])
    return HEAD + b"".join([
        section(TYPES, vector([b"\x60" + sized(b"\x7f" * a) + sized(b"\x7f" * b) for a, b in types])),
        section(FUNCTIONS, vector([leb(kind) for _, kind, _ in functions])),
        section(MEMORY, b"\1\0\1"),
        section(CODE, vector([sized(b"\0" + code + b"\x0b") for _, _, code in functions])),
        section(DATA, vector([b"\0" + constant(at) + b"\x0b" + sized(held) for at, held in data])),
        section(CUSTOM, sized(b"name") + b"\1" + sized(known)),
    ])  # fmt: skip
