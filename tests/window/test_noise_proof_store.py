"""Certificates at rest: what lies in the folder opens for its own slot in its own window, or counts as none."""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_audit.attest.noise_proofs import NoiseProofStore
from rag_audit.errors import StoreError
from rag_audit.models.records import SlotKey
from rag_audit.proofs.statements.private import NoiseProof

KEY, OPENING = bytes(range(32)), "ab" * 32
SLOT, NEXT = SlotKey("law", "law-1", 1), SlotKey("law", "law-1", 2)
MADE = NoiseProof(b"proof" * 20, b"points" * 9, b"blindings" * 7)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "noise-proofs"


def store(folder: Path, key: bytes = KEY, header: str = OPENING) -> NoiseProofStore:
    return NoiseProofStore(folder, key, header)


def test_what_was_put_comes_back_until_it_is_dropped(folder: Path) -> None:
    assert store(folder).get(SLOT) is None
    store(folder).drop(SLOT)
    store(folder).put(SLOT, MADE)
    assert store(folder).get(SLOT) == MADE
    assert store(folder).get(NEXT) is None
    store(folder).drop(SLOT)
    assert store(folder).get(SLOT) is None
    assert list(folder.iterdir()) == []


def test_nothing_of_it_can_be_read_and_nobody_else_may_try(folder: Path) -> None:
    store(folder).put(SLOT, MADE)
    (path,) = folder.iterdir()
    assert all(word not in path.read_bytes() for word in (b"proof", b"points", b"blinding"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert "blind" not in repr(MADE).replace("blindings", "") and "blindings" not in repr(MADE)


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda p: os.truncate(p, p.stat().st_size - 1),
    "half written": lambda p: os.truncate(p, p.stat().st_size // 2),
    "shorter than a nonce": lambda p: os.truncate(p, 5),
    "empty": lambda p: os.truncate(p, 0),
    "extended": lambda p: p.write_bytes(p.read_bytes() + b"x"),
    "one bit changed": flipped,
    "a folder": lambda p: (p.unlink(), p.mkdir()),
    "larger than any certificate": lambda p: os.truncate(p, (1 << 24) + 1),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_what_cannot_be_opened_counts_as_none(
    damage: Callable[[Path], object], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store(folder).put(SLOT, MADE)
    damage(folder / "law-1-1")
    with caplog.at_level(logging.WARNING):
        assert store(folder).get(SLOT) is None
    assert "law-1, i = 1" in caplog.text
    if damage is not DAMAGE["a folder"]:
        store(folder).put(SLOT, MADE)
        assert store(folder).get(SLOT) == MADE


def test_a_certificate_serves_its_own_slot_window_and_key_only(folder: Path) -> None:
    store(folder).put(SLOT, MADE)
    for other in (NEXT, SlotKey("law", "law-2", 1)):
        shutil.copy(folder / "law-1-1", folder / f"{other.account}-{other.i}")
        assert store(folder).get(other) is None
    assert store(folder).get(dataclasses.replace(SLOT, tenant="medicine")) is None
    assert store(folder, header="cd" * 32).get(SLOT) is None
    assert store(folder, key=bytes(32)).get(SLOT) is None
    assert store(folder).get(SLOT) == MADE


def test_what_a_crash_left_half_written_is_swept_away(folder: Path) -> None:
    store(folder).put(SLOT, MADE)
    (folder / ".law-1-2.0123456789abcdef").write_bytes(b"half of a certi")
    again = store(folder)
    assert [p.name for p in folder.iterdir()] == ["law-1-1"]
    assert again.get(SLOT) == MADE and again.get(NEXT) is None


def test_a_folder_that_cannot_be_made_is_named(folder: Path) -> None:
    folder.write_text("in the way")
    with pytest.raises(StoreError) as caught:
        store(folder).put(SLOT, MADE)
    assert str(folder) in (caught.value.field or "")
