"""Witness generators: one node process for each circuit, reused for the next record.

Starting node and compiling a circuit's code takes longer than most assignments; a reused process does it once. Inputs
are secret: they pass through a pipe and never touch a disk or a command line. The process overwrites an assignment
after its answer. The text of the inputs remains in its memory until V8 reuses the memory, or the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import struct
import subprocess
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path

from rag_audit._internal.errors import SetupError, WitnessError
from rag_audit._internal.node import circuits_dir, find_node, last_lines

KEPT = 2
"""The maximum number of idle processes: two, for the `retrieve` and `embed` proofs of a record."""

_NO_WITNESS = 3
_kept: OrderedDict[tuple[int, Path], _Generator] = OrderedDict()
_lock = threading.Lock()


def generate(folder: Path, inputs: bytes) -> bytes:
    """Compute the assignment of all wires, as the bytes of a .wtns file. A process computes one at a time; provers that
    run in parallel are processes of their own.

    :param folder: folder of the compiled circuit
    :param inputs: one JSON object, from signal names to decimals or lists of decimals
    :raises WitnessError: the inputs do not satisfy the circuit; `actual` names template and line
    :raises SetupError: node is missing or fails
    """
    key = (os.getpid(), folder)  # a forked child must not talk into its parent's pipes
    with _lock:
        actual = _kept.pop(key, None) or _Generator(folder)
        try:
            status, answer = actual.ask(inputs)
        except (OSError, EOFError) as exc:
            raise SetupError("the witness generator failed", actual=actual.last_words()) from exc
        _kept[key] = actual
        while len(_kept) > KEPT:
            _, oldest = _kept.popitem(last=False)
            oldest.close()
    if status == 0:
        return answer
    text = last_lines(answer.decode(errors="replace"))
    if status == _NO_WITNESS:
        raise WitnessError("the private inputs do not satisfy the circuit", actual=text)
    raise SetupError("the witness generator failed", actual=text)


class _Generator:
    """A process of circuits/witness.cjs. The head of that file describes the protocol of its pipes."""

    def __init__(self, folder: Path) -> None:
        files = [str(folder / "main_js" / name) for name in ("witness_calculator.js", "main.wasm")]
        self._parent = os.getpid()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [find_node().node, str(circuits_dir() / "witness.cjs"), *files],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
        )

    def ask(self, inputs: bytes) -> tuple[int, bytes]:
        """Send inputs, and return status and bytes of the answer.

        :raises OSError, EOFError: the process has ended
        """
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(struct.pack("<I", len(inputs)) + inputs)
        pipe.flush()
        status, length = struct.unpack("<II", self._read(8))
        return status, self._read(length)

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        if len(data) != count:
            raise EOFError
        return data

    def last_words(self) -> str:
        """End a failed process, and return its standard error."""
        self.close(keep=True)
        self._complaints.seek(0)
        with self._complaints:
            return last_lines(self._complaints.read().decode(errors="replace")) or "it ended"

    def close(self, *, keep: bool = False) -> None:
        """End the process if it is a child of this one."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        if self._parent == os.getpid():
            self._process.kill()
            self._process.wait()
        if not keep:
            self._complaints.close()


@atexit.register
def _close_all() -> None:
    for kept in _kept.values():
        kept.close()
