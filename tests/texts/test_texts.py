"""Reading a provider's own texts from a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_audit.errors import EncodingError, RagAuditError, SchemaError
from rag_audit.models.passage import Passage
from rag_audit.retrieval.chunks import MAX_CHUNK
from rag_audit.retrieval.inventory import Inventory
from rag_audit.retrieval.readers import DocumentsError, NoTextError
from rag_audit.retrieval.texts import PROGRESS_LINES, load_directory


def test_folders_are_tenants_and_loose_files_the_default_one(tmp_path: Path) -> None:
    for name, text in {
        "acme/a.txt": "Alpha.\n\nBeta.",
        "acme/deep/b.MD": "# Gamma\n\nDelta.",
        "bolt/c.rst": "Epsilon.",
        "d.txt": "\ufeffZeta.",
        "bolt/.hidden.txt": "Eta.",
        ".git/e.txt": "Theta.",
        "bolt/f.bin": "Iota.",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    tenants = load_directory(tmp_path)
    assert {tenant: [(d.id, d.text) for d in documents] for tenant, documents in tenants.items()} == {
        "default": [("d.txt#1", "Zeta.")],
        "acme": [("acme/a.txt#1", "Alpha.\n\nBeta."), ("acme/deep/b.MD#1", "# Gamma\n\nDelta.")],
        "bolt": [("bolt/c.rst#1", "Epsilon.")],
    }
    assert {d.group for d in tenants["acme"]} == {"acme"}


def test_the_reading_of_files_and_lists_is_reported_and_can_be_ended(tmp_path: Path) -> None:
    class Ended(Exception):
        pass

    told: list[tuple[int, int]] = []

    def end(done: int, total: int) -> None:
        told.append((done, total))
        if done == 1:
            raise Ended

    files, lists = tmp_path / "files", tmp_path / "lists"
    for folder in (files, lists):
        folder.mkdir()
    for name in "abc":
        (files / f"{name}.txt").write_text(name)
        (lists / f"{name}.jsonl").write_text('{"text": "x"}\n' * (PROGRESS_LINES + 1))
    load_directory(files, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    told.clear()
    load_directory(lists, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (0, 3), (1, 3), (1, 3), (2, 3), (2, 3), (3, 3)]
    for folder in (files, lists):
        told.clear()
        with pytest.raises(Ended):
            load_directory(folder, progress=end)
        assert told[-1] == (1, 3)


def test_chunks_are_whole_paragraphs_up_to_their_size(tmp_path: Path) -> None:
    paragraphs = [f"{number} " + "word " * 60 for number in range(10)]
    (tmp_path / "a.txt").write_text("\n\n".join(paragraphs) + "\n\n---\n\n", "utf-8")
    chunks = [d.text for d in load_directory(tmp_path)["default"]]
    assert max(map(len, chunks)) <= MAX_CHUNK
    assert [p.strip() for chunk in chunks for p in chunk.split("\n\n")] == [p.strip() for p in paragraphs]
    assert len(chunks) == 5


def dialogue(turns: int) -> str:
    return "\n".join(f"{'Doctor' if n % 2 else 'Patient'}: What was said in turn {n}?" for n in range(turns))


@pytest.mark.parametrize(
    "text",
    [
        dialogue(3),
        dialogue(200),
        dialogue(100).replace("\n", "\r\n"),
        "# Title\n\n    indented\n\tcode\n\n\n\nand a line  \nwith breaks\n",
        " ".join(f"Sentence number {n} ends here." for n in range(200)),
        "。".join("これは長い文章です" for _ in range(300)),
        "x" * 5_000,
        "a b\n" * 3_000 + "\n \n" * 3_000 + "end",
    ],
)
def test_chunks_are_the_files_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode())
    text = text.replace("\r\n", "\n")
    chunks = [d.text for d in load_directory(tmp_path)["default"]]
    assert all(0 < len(chunk) <= MAX_CHUNK and chunk == chunk.strip() for chunk in chunks)
    place, left_out = 0, ""
    for chunk in chunks:
        result = text.find(chunk, place)
        assert result >= 0, chunk
        left_out += text[place:result]
        place = result + len(chunk)
    assert (left_out + text[place:]).strip() == ""


def test_a_dialogue_is_cut_between_its_turns(tmp_path: Path) -> None:
    text = dialogue(200)
    (tmp_path / "a.txt").write_text(text)
    chunks = [d.text for d in load_directory(tmp_path)["default"]]
    assert len(chunks) > 5 and [line for chunk in chunks for line in chunk.split("\n")] == text.split("\n")


def test_sentences_are_kept_whole_where_they_fit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" ".join(f"Sentence number {n} ends here." for n in range(200)))
    chunks = [d.text for d in load_directory(tmp_path)["default"]]
    assert len(chunks) > 5 and all(c.startswith("Sentence") and c.endswith("here.") for c in chunks)


def test_a_long_paragraph_is_cut_between_words(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(1_000)]
    (tmp_path / "a.txt").write_text(" ".join(words) + "\n\n" + "x" * (2 * MAX_CHUNK), "utf-8")
    chunks = [d.text for d in load_directory(tmp_path)["default"]]
    assert max(map(len, chunks)) <= MAX_CHUNK
    assert [word for chunk in chunks for word in chunk.split() if word.startswith("word")] == words
    assert sum(chunk.count("x") for chunk in chunks) == 2 * MAX_CHUNK


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentsError, match="the folder contains no text") as caught:
        load_directory(tmp_path)
    assert caught.value.field == str(tmp_path)


@pytest.mark.parametrize("content", ["", " \n\n --- \n"])
def test_a_file_without_text_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.txt").write_text(content, "utf-8")
    (tmp_path / "b.txt").write_text("Text.", "utf-8")
    with pytest.raises(NoTextError, match="the file holds no text") as caught:
        load_directory(tmp_path)
    assert caught.value.field == str(tmp_path / "a.txt")


@pytest.mark.parametrize("name", ["absent", "file.txt"])
def test_what_is_not_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").write_text("text", "utf-8")
    with pytest.raises(DocumentsError, match="the folder of the documents does not exist"):
        load_directory(tmp_path / name)


def test_text_that_is_not_utf8_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 au lait")
    with pytest.raises(EncodingError, match="not UTF-8") as caught:
        load_directory(tmp_path)
    assert caught.value.field == str(tmp_path / "a.txt")
    assert str(caught.value.actual).startswith("byte 3")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to(tmp_path / "gone")
    with pytest.raises(DocumentsError, match="cannot be read") as caught:
        load_directory(tmp_path)
    assert caught.value.field == str(tmp_path / "a.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(DocumentsError, match="cannot be read") as caught:
        load_directory(tmp_path)
    assert caught.value.field == str(tmp_path / "closed")


def test_a_folder_whose_name_is_no_tenant_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "two words").mkdir()
    (tmp_path / "two words" / "a.txt").write_text("text", "utf-8")
    with pytest.raises(DocumentsError, match="tenant's id") as caught:
        load_directory(tmp_path)
    assert caught.value.actual == "two words"


def test_json_lines_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "law.jsonl").write_text('{"text": "Alpha.\\n\\nBeta."}\n\n{"text": "Gamma.", "id": 7}\n')
    (tmp_path / "ignored.txt").write_text("Delta.")
    tenants = load_directory(tmp_path)
    assert {t: [d.text for d in ds] for t, ds in tenants.items()} == {"law": ["Alpha.\n\nBeta.", "Gamma."]}


@pytest.mark.parametrize("line", ['["Alpha."]', '{"text": 7}', "{}"])
def test_a_line_without_text_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    (tmp_path / "law.jsonl").write_text(f'{{"text": "Alpha."}}\n{line}\n')
    with pytest.raises(SchemaError) as caught:
        load_directory(tmp_path)
    assert caught.value.field == "law.jsonl, line 2"


def test_fields_beside_the_text_are_dropped_only_if_asked(tmp_path: Path) -> None:
    lines = '{"text": "one"}\n{"text": "two", "source": "b", "metadata": {"year": 7}}\n{"text": "3", "metadata": null}\n'
    (tmp_path / "law.jsonl").write_text(lines)
    assert [d.passage for d in load_directory(tmp_path)["law"]] == list(map(Passage, ("one", "two", "3")))
    kept = [d.passage for d in load_directory(tmp_path, text_alone=False)["law"]]
    assert kept == [Passage("one"), Passage.of("two", {"source": "b", "year": 7}), Passage("3")]


@pytest.mark.parametrize(
    "fields, error",
    [
        ('"id": 1, "metadata": {"id": 1}', SchemaError),
        ('"metadata": 7', SchemaError),
        (f'"vector": {[0.5] * 17}', SchemaError),
        (f'"vector": {[1] * 17}', SchemaError),
        ('"name": "\\ud800"', EncodingError),
    ],
)
def test_metadata_that_cannot_be_kept_is_refused_unless_dropped(
    tmp_path: Path, fields: str, error: type[RagAuditError]
) -> None:
    (tmp_path / "law.jsonl").write_text(f'{{"text": "one"}}\n{{"text": "two", {fields}}}\n')
    with pytest.raises(error) as caught:
        load_directory(tmp_path, text_alone=False)
    assert str(caught.value.field).startswith("law.jsonl, line 2")
    if error is not EncodingError:  # what is no Unicode is refused wherever it stands
        assert [d.text for d in load_directory(tmp_path)["law"]] == ["one", "two"]


def test_numbers_that_canonical_json_lacks_become_text_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "law.jsonl").write_text(
        '{"text": "one", "score": 0.50, "big": 9007199254740993, "far": {"km": [1e3, NaN, 7]}}\n'
    )
    [result] = load_directory(tmp_path, text_alone=False)["law"]
    assert result.passage.fields == {
        "score": "0.50", "big": "9007199254740993", "far": {"km": ["1e3", "NaN", 7]},
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", " ", "\\n", "\\u200b", "\\u0000"])
def test_a_line_whose_text_is_empty_is_named_and_left_out_only_if_asked(tmp_path: Path, text: str) -> None:
    (tmp_path / "hr.jsonl").write_text(f'{{"text": "Leave."}}\n\n{{"text": "Pay."}}\n{{"text": "{text}"}}\n')
    with pytest.raises(DocumentsError, match="the line contains no text") as caught:
        load_directory(tmp_path)
    assert caught.value.field == "hr.jsonl, line 4"
    inventory = Inventory()
    result = load_directory(tmp_path, skip_unreadable=True, inventory=inventory)["hr"]
    assert [d.text for d in result] == ["Leave.", "Pay."]
    assert [entry.name for entry in inventory.omitted] == ["hr.jsonl, line 4"]


def test_a_file_s_chunks_name_it(tmp_path: Path) -> None:
    (tmp_path / "law").mkdir()
    (tmp_path / "law" / "bail.md").write_text("Bail is money.")
    [result] = load_directory(tmp_path, text_alone=False)["law"]
    assert result.passage.fields == {"id": "law/bail.md#1", "source": "law/bail.md"}
