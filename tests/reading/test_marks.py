"""Byte order marks, UTF-16, NUL and CRLF: one rule for every kind of file."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest

from rag_audit._internal.canonical import bounded_text, parse_json, parse_toml, read_text
from rag_audit._internal.jsonlines import records
from rag_audit.errors import EncodingError, RagAuditError
from rag_audit.log.signing import SigningKey
from rag_audit.proofs.executors import KEY_VARIABLE, worker_key
from rag_audit.retrieval.chunks import Cutting
from rag_audit.retrieval.texts import load_directory

TEXT = "Größe: 5 €"
DOCUMENTS: dict[str, str] = {
    "a.txt": TEXT,
    "a.md": TEXT,
    "a.markdown": TEXT,
    "a.rst": TEXT,
    "a.html": f"<p>{TEXT}",
    "a.htm": f"<!doctype html><html><body><p>{TEXT}</p></body></html>",
    "a.jsonl": '{"text": "' + TEXT + '"}\n',
}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
def test_a_document_s_byte_order_mark_decides(name: str, encoding: str, tmp_path: Path) -> None:
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
    (tmp_path / name).write_bytes(mark + DOCUMENTS[name].encode(encoding))
    [tenant] = load_directory(tmp_path).values()
    assert [document.text for document in tenant] == [TEXT]


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_nul_is_refused_everywhere(name: str, encoding: str, tmp_path: Path) -> None:
    """A NUL inside the text, and UTF-16 without a mark, which is full of them."""
    text = DOCUMENTS[name].replace("5", "\0") if encoding == "utf-8" else DOCUMENTS[name]
    (tmp_path / name).write_bytes(text.encode(encoding))
    with pytest.raises(EncodingError) as caught:
        load_directory(tmp_path)
    assert str(caught.value.field).endswith(name) and "UTF-8" in str(caught.value.hint)
    assert caught.value.message in ("the text contains the character NUL", "the file is not UTF-8")


def test_nul_that_json_writes_as_an_escape_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "law.jsonl").write_text('{"text": "a"}\n{"text": "b\\u0000"}\n')
    with pytest.raises(EncodingError, match="NUL") as caught:
        load_directory(tmp_path)
    assert "line 2" in str(caught.value.field)
    assert [d.text for d in load_directory(tmp_path, skip_unreadable=True)["law"]] == ["a"]


def test_a_message_with_nul_is_refused(tmp_path: Path) -> None:
    message = EmailMessage()
    message["Subject"] = "Heating"
    message.set_content("a\0b")
    (tmp_path / "a.eml").write_bytes(bytes(message))
    with pytest.raises(EncodingError, match="NUL"):
        load_directory(tmp_path)


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE], ids=["UTF-8", "UTF-16"])
def test_records_may_begin_with_a_mark(mark: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        mark + '{"q": "ä"}\r\n'.encode("utf-8" if mark == codecs.BOM_UTF8 else "utf-16-le")
    )
    assert [row for _, _, row in records(tmp_path / "a.jsonl")] == [{"q": "ä"}]


STRICT: dict[str, Callable[[bytes, Path], object]] = {
    "JSON": lambda data, _: parse_json(data, source="a"),
    "TOML": lambda data, _: parse_toml(data, source="a", max_bytes=99),
    "notes": lambda data, _: bounded_text(data, what="note", field="a", max_bytes=99),
    "texts": lambda data, path: path.write_bytes(data) and read_text(path, max_bytes=99),
}


@pytest.mark.parametrize("kind", STRICT)
@pytest.mark.parametrize(
    "mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE], ids=["8", "LE", "BE"]
)
def test_other_files_refuse_a_mark_with_the_remedy(kind: str, mark: bytes, tmp_path: Path) -> None:
    """Their bytes are hashed or signed, so the reader may not remove a mark."""
    with pytest.raises(RagAuditError, match="byte order mark") as caught:
        STRICT[kind](mark + b"{}", tmp_path / "a")
    assert caught.value.hint == "save the file as UTF-8 without a byte order mark"


def test_line_ends_of_plain_text_are_line_feeds(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"# Bail\r\n\r\nBail is\r\nmoney.\r\n")
    [result] = load_directory(tmp_path, text_alone=False, cutting=Cutting(headings=True))["default"]
    assert result.text == "# Bail\n\nBail is\nmoney."
    assert result.passage.fields["headings"] == ["Bail"]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_key_files_end_with_any_line_end(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = SigningKey.generate("example.org/log")
    (tmp_path / "log.key").touch(0o600)
    (tmp_path / "log.key").write_bytes(f"{key.export()}{end}".encode())
    assert SigningKey.load(tmp_path / "log.key").export() == key.export()
    worker = os.urandom(32)
    (tmp_path / "worker.key").touch(0o600)
    (tmp_path / "worker.key").write_bytes(f"{worker.hex()}{end}".encode())
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "worker.key"))
    assert worker_key() == worker
