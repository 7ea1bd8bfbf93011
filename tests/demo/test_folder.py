"""The demo removes the folder of an earlier demo, and no text or file of a person."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.cli.demo import run
from rag_audit.cli.demo.folder import empty_folder
from rag_audit.cli.demo.stage import Demo
from rag_audit.errors import SetupError
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER

pytest.importorskip("wordllama")
REMOVED = "the test ended the demo"
TEXT = "A text about cats and their homes."


def earlier_demo(folder: Path) -> Path:
    """The folder of an earlier demo, with its report, which the function returns."""
    empty_folder(folder)
    report = Demo(folder).verifier / "report.html"
    report.parent.mkdir()
    report.write_text("yesterday")
    return report


def a_text(folder: Path, text: str = TEXT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.txt").write_text(text)
    return folder / "a.txt"


def demo(directory: Path, *options: str | Path) -> Result:
    words = ["demo", "--embedder", DEFAULT_EMBEDDER, "--dir", directory, *options]
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def removing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends a demo that replaced the folder."""

    def ended(*_: object) -> None:
        raise SetupError(REMOVED)

    monkeypatch.setattr(run, "_parties", ended)


@pytest.mark.usefixtures("removing")
@pytest.mark.parametrize("place", ["provider/docs", "mydocs", ".", "link", "dots", "file link"])
def test_texts_inside_the_demo_s_folder_are_refused(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "demo-window"
    report = earlier_demo(folder)
    text = a_text(folder / "provider" / "docs" if place != "mydocs" else folder / "mydocs")
    docs = folder / place
    if place == "link":
        (docs := tmp_path / "link").symlink_to(text.parent)
    elif place == "dots":
        docs = tmp_path / "other" / ".." / "demo-window" / "provider"
        (tmp_path / "other").mkdir()
    elif place == "file link":
        (docs := tmp_path / "texts").mkdir()
        (docs / "loop").symlink_to(docs / "loop")
        (docs / "b.txt").symlink_to(text)
    done = demo(folder, "--docs", docs)
    assert done.exit_code == 2 and "would remove the texts that it is to read" in done.stderr, done.output
    assert str(folder) in done.stderr and report.exists() and text.read_text() == TEXT


@pytest.mark.usefixtures("removing")
def test_an_earlier_demo_stays_until_the_texts_were_read(tmp_path: Path) -> None:
    folder = tmp_path / "demo-window"
    report = earlier_demo(folder)
    assert demo(folder, "--docs", tmp_path / "typo").exit_code == 2 and report.exists()
    a_text(tmp_path / "marks", "--- ***")
    assert demo(folder, "--docs", tmp_path / "marks").exit_code == 2 and report.exists()
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf" / "a.pdf").write_text("no PDF")
    assert demo(folder, "--docs", tmp_path / "pdf").exit_code == 2 and report.exists()
    a_text(tmp_path / "texts")
    done = demo(folder, "--docs", tmp_path / "texts")
    assert REMOVED in done.stderr and not report.exists()
    assert TEXT in (Demo(folder).provider / "docs" / "default.jsonl").read_text()


@pytest.mark.usefixtures("removing")
def test_a_folder_with_other_files_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "demo-window"
    report = earlier_demo(folder)
    text = a_text(folder / "mydocs")
    a_text(tmp_path / "texts")
    done = demo(folder, "--docs", tmp_path / "texts")
    assert done.exit_code == 2 and "no demo made" in done.stderr and "mydocs" in done.stderr, done.output
    assert text.exists() and report.exists()
    other = tmp_path / "other"
    text = a_text(other)
    done = demo(other, "--docs", tmp_path / "texts")
    assert done.exit_code == 2 and "exists already" in done.stderr and text.exists()


@pytest.mark.usefixtures("removing")
def test_an_earlier_demo_s_files_are_no_texts(tmp_path: Path) -> None:
    a_text(tmp_path)
    folder = tmp_path / "demo-window"
    assert REMOVED in demo(folder, "--docs", tmp_path).stderr  # there is no earlier demo yet
    before = sorted(os.listdir(folder))
    done = demo(folder, "--docs", tmp_path)
    assert done.exit_code == 2 and "would be read as texts" in done.stderr, done.output
    assert sorted(os.listdir(folder)) == before
