"""What a name on the command line may stand for: a regular file, never a pipe or a device that is waited for."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import read_bytes, read_json, read_text
from rag_audit._internal.durable import read_private
from rag_audit.cli import main
from rag_audit.commit.explore.samples import load_questions
from rag_audit.errors import EncodingError, RagAuditError, SetupError, SizeError
from rag_audit.retrieval.readers import DocumentsError
from rag_audit.retrieval.texts import load_directory


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir(0o700)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


KINDS: dict[str, Callable[[Path], None]] = {
    "a FIFO": fifo,
    "a character device": device,
    "a folder": folder,
    "a socket": listening,
}

READERS: dict[str, Callable[[Path], object]] = {
    "read_bytes": lambda path: read_bytes(path, max_bytes=100),
    "read_text": lambda path: read_text(path, max_bytes=100),
    "read_json": lambda path: read_json(path, max_bytes=100),
    "read_private": lambda path: read_private(path, max_bytes=100),
    "questions": load_questions,
    "compressed questions": lambda path: load_questions(path.rename(path.with_suffix(".gz"))),
    "documents": lambda path: load_directory(path.rename(path.with_suffix(".txt")).parent),
}


# Documents lie in folders, so a folder is no fault there.
@pytest.mark.parametrize(
    "kind, reader", [(k, r) for k in KINDS for r in READERS if (k, r) != ("a folder", "documents")]
)
def test_only_regular_files_are_read(kind: str, reader: str, tmp_path: Path) -> None:
    """A FIFO without a writer would be waited for; /dev/zero would fill the memory."""
    path = tmp_path / "file"
    KINDS[kind](path)
    with pytest.raises(RagAuditError) as caught:
        READERS[reader](path)
    assert kind in str(caught.value)
    expected = {"read_private": SetupError, "documents": DocumentsError}.get(reader, EncodingError)
    assert type(caught.value) is expected
    assert caught.value.field is not None and str(tmp_path) in caught.value.field


def test_a_name_that_changes_into_a_fifo_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the name and its opening."""
    regular, path = tmp_path / "regular", tmp_path / "file"
    regular.write_text("{}")
    fifo(path)
    seen = os.stat(regular)
    with monkeypatch.context() as patch:
        patch.setattr("rag_audit._internal.durable.os.stat", lambda _: seen)
        with pytest.raises(EncodingError) as caught:
            read_bytes(path, max_bytes=100)
    assert "a FIFO" in str(caught.value)


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    assert read_bytes(path, max_bytes=5) == read_bytes(tmp_path / "link", max_bytes=5) == b"12345"
    with pytest.raises(SizeError):
        read_bytes(path, max_bytes=4)
    path.write_bytes(b"\xff")
    with pytest.raises(EncodingError, match="not UTF-8"):
        read_text(path, max_bytes=5)


COMMANDS: dict[str, list[str]] = {
    "verify": ["verify", "@", "--trust", "none"],
    "verify --trust": ["verify", "none", "--trust", "@"],
    "verify --receipts": ["verify", "none", "--trust", "none", "--receipts", "@"],
    "verifier bundle": ["verifier", "bundle", "@", "--trust", "none", "--output", "out"],
    "challenge --key": ["verifier", "challenge", "none", "--key", "@", "--trust", "none", "--out", "out"],
    "trust new --account": ["verifier", "trust", "new", "out", "--account", "@"],
    "account add": ["account", "add", "out", "@"],
    "cumulative": ["verifier", "cumulative", "@"],
    "policy bounds": ["provider", "policy", "bounds", "@"],
    "prove --challenge": ["provider", "prove", "none", "--challenge", "@"],
    "setup verify": ["provider", "setup", "verify", "@", "--r1cs", "none", "--ptau", "none"],
    "setup verify --ptau": ["provider", "setup", "verify", "none", "--r1cs", "none", "--ptau", "@"],
    "setup contribute": ["provider", "setup", "contribute", "@", "out", "--name", "x"],
    "receipt verify": ["account", "receipt", "verify", "@", "--window", "none", "--provider", "none"],
    "witness cosign": ["witness", "cosign", "none", "@", "--trust", "none"],
    "estimate calibrate": ["provider", "estimate", "calibrate", "--questions", "@"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_refuses_a_fifo_by_name(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["pipe" if word == "@" else word for word in command])
    assert done.exit_code == 2, done.output
    assert "rag-audit: the path is neither a file nor a folder" in done.stderr
    assert "pipe" in done.stderr
