"""COSE Receipts read by a COSE library (`cwt`), with the program that docs/interop.md has for readers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.note import parse_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.export import cbor, write_cose
from tests.docs.blocks import named_block
from tests.window.test_cose import NAME, window_of

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        importlib.util.find_spec("cwt") is None, reason="NOT RUN: cwt is not installed, so no COSE library"
    ),
]
KEY = SigningKey(NAME, 1, b"k" * 32)


@pytest.fixture(scope="module")
def window() -> WindowFile:
    return window_of(KEY)


@pytest.fixture(scope="module")
def folder(window: WindowFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All receipts of the window, and the page's program."""
    result = tmp_path_factory.mktemp("cose")
    write_cose(window, result, KEY)
    (result / "read.py").write_text(named_block("interop.md", "cose"))
    return result


def head(window: WindowFile) -> Checkpoint:
    return Checkpoint.parse(parse_note(window.final_checkpoint).text)


def read(folder: Path, receipt: Path, entry: Path, *, key: SigningKey = KEY, log: str) -> str:
    # Without assertions (-O): nothing that it checks may hang on them.
    command = [sys.executable, "-O", folder / "read.py", receipt, entry, str(key.verifier), log]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout.strip() if done.returncode == 0 else f"refused: {done.stderr.strip().splitlines()[-1]}"


def test_a_library_reads_the_first_and_the_last_entry(folder: Path, window: WindowFile) -> None:
    size, log = len(window.entries), head(window).origin
    for index in (0, 2, size - 1):
        result = read(folder, folder / f"{index}.cose", folder / f"{index}.entry", log=log)
        assert result == f"{index} {size}"


def test_the_encoding_is_the_librarys(folder: Path, window: WindowFile) -> None:
    cbor2: Any = pytest.importorskip("cbor2")
    for path in folder.glob("*.cose"):
        data = path.read_bytes()
        assert cbor2.dumps(cbor2.loads(data), canonical=True) == data
        # `canonical` is the order of RFC 7049, shorter keys first, which for these labels is that of RFC 8949 too.
        assert cbor(cbor2.loads(cbor2.loads(data).value[0])) == cbor2.loads(data).value[0]


def changed(
    folder: Path, tmp_path: Path, index: int, size: int, place: int, path: list[bytes] | None = None
) -> Path:
    """A receipt with another size, place or path in its unprotected header."""
    cbor2: Any = pytest.importorskip("cbor2")
    tagged = cbor2.loads((folder / f"{index}.cose").read_bytes())
    proof = cbor2.loads(tagged.value[1][396][-1][0])
    result = cbor([size, place, proof[2] if path is None else path])
    value = [tagged.value[0], {396: {-1: [result]}}, None, tagged.value[3]]
    out = tmp_path / "changed.cose"
    out.write_bytes(b"\xd2" + cbor(value))
    return out


NOT_SIGNED = "cwt.exceptions.VerifyError"


def test_another_leaf_or_another_path(folder: Path, window: WindowFile, tmp_path: Path) -> None:
    size, log = len(window.entries), head(window).origin
    assert NOT_SIGNED in read(folder, folder / "2.cose", folder / "3.entry", log=log)
    cbor2: Any = pytest.importorskip("cbor2")
    path = cbor2.loads(cbor2.loads((folder / "2.cose").read_bytes()).value[1][396][-1][0])[2]
    entry = folder / "2.entry"
    unchanged = changed(folder, tmp_path, 2, size, 2)
    assert read(folder, unchanged, entry, log=log) == f"2 {size}"
    for other, said in (
        ([bytes(32), *path[1:]], NOT_SIGNED),
        (path[::-1], NOT_SIGNED),
        (path[:-1], "too short"),
        ([*path, bytes(32)], "too long"),
    ):
        assert said in read(folder, changed(folder, tmp_path, 2, size, 2, other), entry, log=log)
    assert NOT_SIGNED in read(folder, changed(folder, tmp_path, 2, size, 3), entry, log=log)
    assert "no place" in read(folder, changed(folder, tmp_path, 2, size, size), entry, log=log)


def test_another_size_under_the_same_signature(folder: Path, window: WindowFile, tmp_path: Path) -> None:
    """A path of the left edge holds in trees of several sizes: only the checkpoint in the header says which it was."""
    size, log = len(window.entries), head(window).origin
    other = size - 1 if (size - 1).bit_length() == (size - 2).bit_length() else size + 1
    assert "the checkpoint is of another tree" in read(
        folder, changed(folder, tmp_path, 0, other, 0), folder / "0.entry", log=log
    )


def test_another_key_or_another_log(folder: Path, window: WindowFile) -> None:
    receipt, entry, log = folder / "2.cose", folder / "2.entry", head(window).origin
    assert "refused" in read(folder, receipt, entry, key=SigningKey(NAME, 1, b"o" * 32), log=log)
    assert "of another log" in read(folder, receipt, entry, log=f"{NAME}/w-2")


def test_another_header_under_the_same_signature(folder: Path, window: WindowFile, tmp_path: Path) -> None:
    """Whoever edits the checkpoint or the subject in the protected header has no signature for it."""
    log = head(window).origin
    data = (folder / "2.cose").read_bytes()
    assert data.count(log.encode()) == 2  # the subject, and the checkpoint's first line
    other = f"{log[:-1]}9"
    edited = tmp_path / "edited.cose"
    edited.write_bytes(data.replace(log.encode(), other.encode()))
    assert NOT_SIGNED in read(folder, edited, folder / "2.entry", log=other)
