"""The WebAssembly module of a page in a Node process, called from here as the page's Python calls it."""

from __future__ import annotations

import gc
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_audit._internal.node import find_node
from rag_audit.report.browser.assets import NATIVE, native_module
from rag_audit.report.browser.inside import module

PANICKED = 2


class Process:
    """A Node process with one instance of the module."""

    def __init__(self) -> None:
        command = [find_node().node, str(Path(__file__).with_name("module.mjs")), str(NATIVE)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, request: bytes) -> bytes:
        """The return value of `module._transport` in a page."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None and back is not None
        to.write(struct.pack("<I", len(request)) + request)
        to.flush()
        length, _ = struct.unpack("<Id", back.read(12))
        answer = back.read(length)
        if answer[0] == PANICKED:
            raise RuntimeError(answer[1:].decode())
        return answer

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    native_module()  # its error says how the module is built
    result = Process()
    before, module._call = module._call, result.call
    try:
        yield result
    finally:
        gc.collect()  # what is dropped is dropped there, while there is a process
        module._call = before
        result.end()
