"""A search for the secrets that a computation of the native core leaves in the memory of its process.

A child process receives secrets as bytes, lets the native core compute with them, and overwrites its own copies. The
parent then reads the child's memory, and every remaining secret was left by native code. Ordinary means cannot overwrite
Python's own objects.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_audit.relation.field import MODULUS

MARK = bytes(range(7, 71))
"""Values that the process stores on purpose: a reader that does not find them is broken."""
RUN = 24
"""Successive values that are looked for: no chance makes so many."""

PRELUDE = """
import ctypes, os, sys
from rag_audit import _native
mark, held = bytes(range(7, 71)), []
def keep(made):
    held.append(made)
    return made
def take():
    size = int.from_bytes(os.read(0, 8), "little")
    made = keep(os.read(0, size))
    assert len(made) == size
    return made
def give(made):
    os.write(1, len(made).to_bytes(8, "little") + made)
def done():
    for made in held:
        ctypes.memset(id(made) + bytes.__basicsize__ - 1, 0, len(made))
    os.write(1, b"made")
    os.read(0, 1)
"""


def integer(x: int) -> bytes:
    """A field element as an integer of four words."""
    return (x % MODULUS).to_bytes(32, "little")


def montgomery(x: int) -> bytes:
    """A field element as the native core computes with it."""
    return integer(x << 256)


def element(name: str, x: int) -> dict[str, bytes]:
    """The form of a secret field element that only native code has: Python passes it in the other byte order."""
    return {name: montgomery(x), f"{name} as an integer": integer(x)}


def column(name: str, values: Sequence[int], width: str = "i") -> dict[str, bytes]:
    """Both ends of a column as it is handed over, as the core has it, and as field elements.

    :param width: as which Python hands it over, in `struct`'s terms
    """
    assert len(values) >= RUN
    out = {}
    for end, run in (("first", values[:RUN]), ("last", values[-RUN:])):
        out |= {f"{name}, the {end}": struct.pack(f"<{RUN}q", *run)}
        out |= {f"{name}, the {end} as {width}": struct.pack(f"<{RUN}{width}", *run)}
        out |= {f"{name}, the {end} as elements": b"".join(map(montgomery, run[:4]))}
    return out


def bits(name: str, values: Sequence[int]) -> dict[str, bytes]:
    """`column` for bits, with more bits, because a short run of bits can occur by chance."""
    assert len(values) >= 64 and 4 <= sum(values[:64]) <= 60
    head = [int(v) for v in values[:64]]
    return {f"{name} as bytes": bytes(head), name: struct.pack("<64q", *head)}


def read_memory(pid: int) -> list[bytes]:
    """The memory that a process can read and write, mapping by mapping."""
    result = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            match = re.match(r"(\w+)-(\w+) rw\S+ \S+ \S+ \S+ *(.*)", line)
            if match is None or match[3].startswith(("/dev", "[v")):
                continue
            start, end = int(match[1], 16), int(match[2], 16)
            memory.seek(start)
            result.append(memory.read(end - start))
    return result


def counted(pid: int, secrets: Mapping[str, bytes], *, mark: bytes = MARK, tries: int = 20) -> dict[str, int]:
    """The number of occurrences of each secret in a process's memory, without secrets that do not occur. Threads overwrite
    their stacks when they become idle, so the function reads the memory repeatedly until no secret occurs."""
    sought = {"mark": mark, **secrets}
    count: dict[str, int] = {}
    for _ in range(tries):
        memory = read_memory(pid)
        count = {name: sum(held.count(secret) for held in memory) for name, secret in sought.items()}
        assert count.pop("mark") > 0, "the process's memory could not be read"
        if not any(count.values()):
            break
        time.sleep(0.5)
    return {name: n for name, n in count.items() if n}


class Child:
    """A process that runs a script after `PRELUDE`, takes bytes and gives some back."""

    def __init__(self, script: str, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script + "\ndone()\n"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self.pid = self._process.pid

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def hand(self, *values: bytes) -> None:
        assert self._process.stdin is not None
        for value in values:
            self._process.stdin.write(len(value).to_bytes(8, "little"))
            self._process.stdin.flush()
            self._process.stdin.write(value)
            self._process.stdin.flush()

    def get(self) -> bytes:
        """The output of the script."""
        return self._read(int.from_bytes(self._read(8), "little"))

    def wait(self) -> None:
        """Wait until the script has ended and has overwritten its secrets."""
        assert self._read(4) == b"made"

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        assert len(data) == size, "the process ended early"
        return data


def left_behind(script: str, handed: Sequence[bytes], secrets: Mapping[str, bytes]) -> dict[str, int]:
    """The secrets that native code left, each with the number of its occurrences.

    :param script: takes the items of `handed` in order, and returns no value
    """
    with Child(script) as child:
        child.hand(*handed)
        child.wait()
        return counted(child.pid, secrets)
