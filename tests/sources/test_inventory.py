"""What a reading of a folder leaves out is named, and nothing is left out in silence."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.errors import RagAuditError
from rag_audit.retrieval import texts
from rag_audit.retrieval.chunks import Cutting
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed, get_embedder
from rag_audit.retrieval.embedders.base import Vectors
from rag_audit.retrieval.inventory import SHOWN, Inventory, NoDocumentsError
from rag_audit.retrieval.readers import MAX_NAME, DocumentsError, Omission, ReadFile, Section
from rag_audit.retrieval.texts import load_directory


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def read(folder: Path, **options: bool) -> Inventory:
    inventory = Inventory()
    load_directory(folder, inventory=inventory, **options)
    return inventory


def sizes(largest: str, *, documents: int = 1) -> dict[str, object]:
    """The sizes of a tenant whose documents have one position each."""
    return {"documents": documents, "positions": documents, "largest": largest,
            "largest_positions": 1, "median_positions": 1}  # fmt: skip


def omitted(inventory: Inventory) -> dict[str, str]:
    return {entry.name: entry.reason for entry in inventory.omitted}


def test_everything_that_is_not_read_is_named(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere", {"bail.txt": "Bail."})
    folder = put(
        tmp_path / "docs",
        {"law/rent.txt": "Rent.", "law/deep/roof.md": "Roof.", "law/.draft.md": "Draft.", ".git/HEAD": "x",
         "law/plan.png": b"\x89PNG", "law/LICENCE": "text", "hr/leave.txt": "Leave."},
    )  # fmt: skip
    (folder / "law" / "more").symlink_to(tmp_path / "elsewhere")
    (folder / "law" / "linked.txt").symlink_to(tmp_path / "elsewhere" / "bail.txt")
    inventory = read(folder)
    assert inventory.as_json()["read"] == {
        "hr": {**sizes("hr/leave.txt"), "files": 1},
        "law": {**sizes("law/linked.txt", documents=3), "files": 3},
    }
    hidden = "the name begins with a dot, which hides it"
    assert omitted(inventory) == {
        ".git": hidden,
        "law/.draft.md": hidden,
        "law/more": "links to folders are not followed",
        "law/plan.png": "files ending in .png are not read",
        "law/LICENCE": "files without an ending are not read",
    }


def test_files_beside_json_lines_are_named_and_the_file_that_is_read_is_not(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "law.jsonl": '{"text": "Rent."}\n',
            "hr/handbook.txt": "Leave.",
            "notes.md": "Notes.",
            "a.png": b"",
            "hr/x.jsonl": "{}",
        },
    )
    inventory = read(tmp_path)
    beside = "the folder has <tenant>.jsonl files, and only these files are read"
    assert omitted(inventory) == {
        "notes.md": beside,
        "hr/handbook.txt": beside,
        "hr/x.jsonl": beside,
        "a.png": "files ending in .png are not read",
    }
    assert "law.jsonl" not in "".join(inventory.lines())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("law/empty.txt", ""),
        ("law/dots.md", "\n...\n\n---\n"),
        (
            "law/app.html",
            "<html><head><title>App</title></head><body><script src=a.js></script></body></html>",
        ),
        ("law/latin.txt", b"caf\xe9"),
        ("law/minutes.odt", b"PK"),
        ("law/rows.jsonl", '{"text": "Rent."}\n'),
        ("law/rows.jsonl.gz", b""),
    ],
)
def test_a_file_that_looks_like_a_document_and_yields_no_text_stops_or_is_named(
    tmp_path: Path, name: str, content: str | bytes
) -> None:
    put(tmp_path, {"law/rent.txt": "Rent.", name: content})
    with pytest.raises(RagAuditError) as caught:
        read(tmp_path)
    assert caught.value.field == str(tmp_path / name)
    inventory = read(tmp_path, skip_unreadable=True)
    assert list(omitted(inventory)) == [name] and inventory.documents == {"law": {"law/rent.txt": 1}}


def loop(folder: Path) -> str:
    (folder / "law" / "loop.txt").symlink_to("loop.txt")
    return "law/loop.txt"


def gone(folder: Path) -> str:
    (folder / "law" / "gone.txt").symlink_to(folder / "nowhere.txt")
    return "law/gone.txt"


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "law" / "pipe.txt")
    return "law/pipe.txt"


def unnamed(folder: Path) -> str:
    (folder / "law" / os.fsdecode(b"Miet\xfc.txt")).write_text("Rent.")
    return "law/Miet\udcfc.txt"


@pytest.mark.parametrize("make", [loop, gone, pipe, unnamed])
def test_what_cannot_be_opened_stops_or_is_named(tmp_path: Path, make: Callable[[Path], str]) -> None:
    name = make(put(tmp_path, {"law/rent.txt": "Rent."}))
    with pytest.raises(DocumentsError) as caught:
        load_directory(tmp_path, text_alone=False)
    assert caught.value.field == str(tmp_path / name)
    assert list(omitted(read(tmp_path, skip_unreadable=True, text_alone=False))) == [name]


def test_a_name_that_is_not_unicode_is_shown_escaped(tmp_path: Path) -> None:
    unnamed(put(tmp_path / "docs", {"law/rent.txt": "Rent."}))
    arguments = ["provider", "diff", str(tmp_path), "--docs", str(tmp_path / "docs")]
    done = CliRunner().invoke(main, arguments)
    assert (
        done.exit_code == 2
        and "the file's name is not UTF-8" in done.stderr
        and "Miet\\udcfc.txt" in done.stderr
    )
    done = CliRunner().invoke(main, [*arguments, "--skip-unreadable"])
    assert "omitted 1: the file's name is not UTF-8: law/Miet\\udcfc.txt" in done.stderr, done.stderr


def test_a_folder_that_cannot_be_read_stops_or_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, {"law/rent.txt": "Rent.", "law/closed/roof.txt": "Roof."})
    scandir = os.scandir

    def refusing(path: Path) -> object:  # whoever runs the tests may be allowed to read every folder
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(DocumentsError, match="the folder cannot be read") as caught:
        load_directory(tmp_path)
    assert caught.value.field == str(tmp_path / "law" / "closed")
    assert omitted(read(tmp_path, skip_unreadable=True)) == {"law/closed": "the folder cannot be read"}


def test_folders_far_below_the_top_are_read(tmp_path: Path) -> None:
    """The folders are deeper than the stack may grow."""
    folder = tmp_path.joinpath("law", *["d"] * 300)
    folder.mkdir(parents=True)
    (folder / "rent.txt").write_text("Rent.")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 200)
    try:
        [result] = load_directory(tmp_path)["law"]
    finally:
        sys.setrecursionlimit(limit)
    assert (
        result.text == "Rent." and result.place is not None and result.place.endswith("/d/rent.txt, chunk 1")
    )


def test_pages_without_text_are_named_by_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = [Omission("has no text", page=n) for n in (2, 3, 4, 7)]
    result = ReadFile(
        (Section("Rent.", {"page": 1}),), (*scanned, Omission("is not read", part="the attachment a.zip"))
    )
    monkeypatch.setattr(texts.FileReader, "read", lambda self, file: result)
    put(tmp_path, {"law/scan.pdf": b""})
    assert omitted(read(tmp_path)) == {
        "law/scan.pdf, pages 2-4, 7": "has no text",
        "law/scan.pdf, the attachment a.zip": "is not read",
    }


def test_empty_and_broken_lines_are_named(tmp_path: Path) -> None:
    put(
        tmp_path, {"law.jsonl": '{"text": "Rent."}\n{"text": ""}\n{"text": 7}\n{"text": \n', "hr.jsonl": "\n"}
    )
    with pytest.raises(DocumentsError, match="the file contains no documents") as caught:
        load_directory(tmp_path)
    assert caught.value.field == "hr.jsonl"
    inventory = read(tmp_path, skip_unreadable=True)
    assert list(omitted(inventory)) == [
        "hr.jsonl", "law.jsonl, line 2", "law.jsonl, line 3", "law.jsonl, line 4, column 10",
    ]  # fmt: skip
    assert inventory.sizes("law").positions == 1 and inventory.documents["hr"] == {}


def test_repeated_texts_and_shortened_headings_are_named(tmp_path: Path) -> None:
    put(
        tmp_path,
        {"law/a.md": f"# {'A' * (MAX_NAME + 1)}\n\nRent.", "law/b.txt": "Roof.", "law/c.txt": "Roof."},
    )
    inventory = Inventory()
    load_directory(tmp_path, text_alone=False, cutting=Cutting(headings=True), inventory=inventory)
    assert [entry.name for entry in inventory.repeated] == ["law/c.txt, chunk 1"]
    assert inventory.cut and all(entry.name.startswith("law/a.md, chunk") for entry in inventory.cut)
    assert inventory.sizes("law").positions == len(load_directory(tmp_path)["law"])


def test_a_file_is_one_document_with_a_position_for_each_chunk(tmp_path: Path) -> None:
    paragraphs = "\n\n".join(f"Paragraph {n} is about rent." for n in range(40))
    put(
        tmp_path,
        {"law/long.txt": paragraphs, "law/short.txt": "Roof.", "law/other.txt": "Door.", "hr/a.txt": "Pay."},
    )
    inventory = Inventory()
    parts = load_directory(tmp_path, cutting=Cutting(200), inventory=inventory)["law"]
    long = [part for part in parts if part.document == "law/long.txt"]
    assert len(long) > 3 and all(part.passage.document == part.document for part in parts)
    assert list(inventory.lines()) == [
        "read hr: 1 document in 1 position from 1 file",
        f"read law: 3 documents in {len(parts)} positions (median 1, largest {len(long)}: 'law/long.txt') from 3 files",
    ]
    assert inventory.as_json()["read"]["law"] == {
        "documents": 3, "positions": len(parts), "largest": "law/long.txt", "largest_positions": len(long),
        "median_positions": 1, "files": 3,
    }  # fmt: skip


LINES = (
    '{"id": "a#1", "source": "a.pdf", "text": "Rent."}\n{"id": "a#2", "source": "a.pdf", "text": "Roof."}\n'
    '{"id": "b#1", "metadata": {"source": "b.pdf"}, "text": "Door."}\n'
)


@pytest.mark.parametrize("text_alone", [False, True])
def test_a_column_names_the_document_of_a_line(tmp_path: Path, text_alone: bool) -> None:
    put(tmp_path, {"law.jsonl": LINES})
    parts = load_directory(tmp_path, document_column="source", text_alone=text_alone)["law"]
    assert [part.document for part in parts] == ["a.pdf", "a.pdf", "b.pdf"]
    assert [part.document for part in load_directory(tmp_path)["law"]] == ["a#1", "a#2", "b#1"]


def test_an_id_names_a_document_as_text_or_number_and_a_line_without_one_is_named_by_its_text(
    tmp_path: Path,
) -> None:
    lines = ['{"id": 7, "text": "A."}', '{"id": "7", "text": "B."}', '{"text": "C."}', '{"text": "C."}',
             '{"id": "", "text": "D."}', '{"id": true, "text": "E."}']  # fmt: skip
    put(tmp_path, {"law.jsonl": "\n".join(lines)})
    keys = [part.document for part in load_directory(tmp_path)["law"]]
    assert keys[:2] == ["7", "7"] and keys[2] == keys[3] and len(set(keys)) == 4
    assert all(key.startswith("sha256:") and len(key) == 71 for key in keys[2:])


@pytest.mark.parametrize(
    ("value", "actual"), [("", "no such field"), (', "source": null', "no such field"), (', "source": " "', "another value"),
                          (', "source": ["a"]', "another value"), (', "source": true', "another value")]
)  # fmt: skip
def test_a_line_without_the_named_column_is_an_error_or_omitted(
    tmp_path: Path, value: str, actual: str
) -> None:
    put(tmp_path, {"law.jsonl": LINES + f'{{"text": "Wall."{value}}}\n'})
    with pytest.raises(DocumentsError, match="the line names no document") as caught:
        load_directory(tmp_path, document_column="source")
    assert (caught.value.field, caught.value.actual) == ("law.jsonl, line 4.source", actual)
    inventory = Inventory()
    load_directory(tmp_path, document_column="source", skip_unreadable=True, inventory=inventory)
    assert list(omitted(inventory)) == ["law.jsonl, line 4.source"] and inventory.sizes("law").documents == 2


def test_count_prints_sizes_capacity_and_time_before_anything_is_embedded(tmp_path: Path) -> None:
    paragraphs = "\n\n".join(f"Paragraph {n} is about rent." for n in range(400))
    put(tmp_path, {"law/long.txt": paragraphs, "law/short.txt": "Roof.", "hr/a.txt": "Pay é."})
    done = CliRunner().invoke(main, ["provider", "count", str(tmp_path), "--chunk", "200"])
    assert done.exit_code == 0, done.output
    hr, room, law, law_room, time = done.stdout.splitlines()
    assert hr == "hr: 1 document in 1 position, 0.00 MB of text"
    assert room == "  smallest capacity: 64 positions (provider policy new --tenant hr=64)"
    done = CliRunner().invoke(main, ["provider", "count", str(tmp_path), "--chunk", "200", "--json"])
    value = json.loads(done.stdout)
    own = value["tenants"]["law"]
    assert (
        own["documents"] == 2
        and own["positions"] == own["largest_positions"] + 1
        and own["largest"] == "law/long.txt"
    )
    assert own["capacity"] // 2 < own["positions"] <= own["capacity"] and value["tenants"]["hr"]["bytes"] == 7
    assert law.startswith(f"law: 2 documents in {own['positions']} positions (median 1, largest ")
    assert law_room.startswith(f"  smallest capacity: {own['capacity']} positions")
    assert time.startswith("embedding: about ") and value["seconds_to_embed"] >= 0


def test_count_makes_no_estimate_with_a_text_that_has_no_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Embedder, texts: Sequence[str], *, first: int = 0) -> Vectors:
        raise NothingToEmbed("the text has no token to embed", field="documents[0]")

    put(tmp_path, {"law.jsonl": '{"text": "Rent."}\n'})
    monkeypatch.setattr(type(get_embedder()), "embed_documents", refuse)
    done = CliRunner().invoke(main, ["provider", "count", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "embedding: no estimate" in done.stdout


def test_the_inventory_names_ten_tenants_and_adds_up_the_others(tmp_path: Path) -> None:
    put(tmp_path, {f"t{n:02}.jsonl": '{"text": "Rent."}\n{"text": "Roof."}\n' for n in range(SHOWN + 2)})
    lines = list(read(tmp_path).lines())
    assert len(lines) == SHOWN + 1 and lines[-1] == "read 2 other tenants: 4 documents in 4 positions"


def test_a_line_for_people_has_ten_names_and_json_has_all(tmp_path: Path) -> None:
    put(tmp_path / "docs", {"law/rent.txt": "Rent.", **{f"law/{n:02}.png": b"" for n in range(13)}})
    inventory = read(tmp_path / "docs")
    [line] = [line for line in inventory.lines() if line.startswith("omitted")]
    assert line.startswith("omitted 13: files ending in .png are not read: law/00.png; ")
    assert line.endswith("law/09.png; and 3 more") and line.count(".png;") == SHOWN
    assert len(json.loads(json.dumps(inventory.as_json()))["omitted"]) == 13


def test_copied_rows_are_counted_and_omitted_ones_named(tmp_path: Path) -> None:
    rows = '{"id": 1, "text": "Rent.", "who": "law", "v": 1}\n{"id": 2, "text": "", "who": "law"}\n{"id": 3, "text": "Roof.", "who": null}\n{"id": 4\n'
    put(tmp_path, {"rows.jsonl": rows})
    arguments = [
        "provider",
        "documents",
        str(tmp_path / "rows.jsonl"),
        "--tenant-column",
        "who",
        "--keep",
        "id",
        "--drop",
        "w",
    ]
    done = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path / "none")])
    assert done.exit_code == 2 and list((tmp_path / "none").iterdir()) == []
    done = CliRunner().invoke(
        main, [*arguments, "--skip-unreadable", "--out", str(tmp_path / "out"), "--json"]
    )
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert value["documents"] == {"law": 1} and value["inventory"]["read"] == {"law": sizes("1")}
    assert [entry["name"] for entry in value["inventory"]["omitted"]] == [
        "rows.jsonl, line 2 (id 2).text", "rows.jsonl, line 3 (id 3).who", "rows.jsonl, line 4, column 9", "w", "v",
    ]  # fmt: skip
    assert "omitted 1: a row has no tenant: rows.jsonl, line 3 (id 3).who (NULL)" in done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["law.jsonl"]


def documents(folder: Path, rows: str, *options: str) -> Result:
    put(folder, {"rows.jsonl": rows})
    arguments = ["provider", "documents", str(folder / "rows.jsonl"), "--out", str(folder / "out"), *options]
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    ("rows", "actual"), [("", "no rows"), ('{"text": ""}\n{"n": 1}\n', "no row that can be used")]
)
def test_a_source_without_documents_is_named_with_the_rows_that_were_omitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str, actual: str
) -> None:
    options = ("--tenant", "law", "--skip-unreadable")
    done = documents(tmp_path, rows, *options)
    assert done.exit_code == 2 and "the source holds no documents" in done.stderr
    assert f"  at: {tmp_path / 'rows.jsonl'}\n" in done.stderr and f"  actual: {actual}\n" in done.stderr
    reasons = ["a row has no text: rows.jsonl, line 1.text", "a row lacks a column: rows.jsonl, line 2"]
    assert all((f"  omitted 1: {reason}" in done.stderr) == bool(rows) for reason in reasons), done.stderr
    monkeypatch.setattr(sys, "argv", ["rag-audit", "--json"])
    value = json.loads(documents(tmp_path, rows, *options, "--json").stdout)
    assert [entry["reason"] for entry in value["inventory"]["omitted"]] == (
        ["a row has no text", "a row lacks a column"] if rows else []
    )


def test_names_in_an_error_without_documents_stay_on_one_line(tmp_path: Path) -> None:
    put(tmp_path, {"law/a\n  actual: nothing wrong.txt": ""})
    with pytest.raises(NoDocumentsError) as caught:
        read(tmp_path, skip_unreadable=True)
    assert "law/a\\n  actual: nothing wrong.txt" in caught.value.diagnostics()


def test_a_copy_names_repeated_texts_of_one_tenant(tmp_path: Path) -> None:
    rows = "".join(
        json.dumps({"text": text, "who": who}) + "\n"
        for text, who in [("Rent.", "law"), ("Rent.", "hr"), ("Roof.", "law"), ("Rent.", "law")]
    )
    done = documents(tmp_path, rows, "--tenant-column", "who", "--json")
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert value["documents"] == {"hr": 1, "law": 3}
    assert [entry["name"] for entry in value["inventory"]["repeated"]] == ["rows.jsonl, line 4"]
    assert "repeated 1: the text of an earlier passage of the tenant: rows.jsonl, line 4" in done.stderr


def test_a_copy_prints_its_counts_in_words(tmp_path: Path) -> None:
    rows = '{"text": "Rent.", "who": "law"}\n{"text": "Leave.", "who": "hr"}\n'
    done = documents(tmp_path, rows, "--tenant-column", "who")
    assert done.stdout == f"documents: hr 1; law 1\nout: {tmp_path / 'out'}\n"
