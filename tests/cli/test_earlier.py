"""A folder of windows as the earlier windows of a verification."""

from __future__ import annotations

from pathlib import Path

from rag_audit.cli.earlier import earlier_windows


def written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_a_folder_of_windows_names_each_window_once(tmp_path: Path) -> None:
    file = written(tmp_path / "c.json")
    published = written(tmp_path / "b" / "window.json").parent
    written(tmp_path / "a" / "public" / "window.json")
    written(tmp_path / f"{'0' * 64}.json")  # a sibling of a window file
    written(tmp_path / "notes" / "readme.txt")
    written(tmp_path / "readme.txt")
    public = tmp_path / "a" / "public"
    assert earlier_windows([tmp_path], None) == (public, published, file)
    assert earlier_windows([tmp_path, published / "window.json", file], None) == (public, published, file)


def test_the_window_itself_is_no_earlier_window_of_its_folder(tmp_path: Path) -> None:
    first = written(tmp_path / "a" / "window.json").parent
    second = written(tmp_path / "b" / "window.json").parent
    assert (
        earlier_windows([tmp_path], second) == earlier_windows([tmp_path], second / "window.json") == (first,)
    )
    assert earlier_windows([second], second) == (second,), "a user who names it gets the verifier's answer"


def test_a_window_and_a_missing_path_stay_as_they_are(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    own = written(tmp_path / "own" / "public" / "window.json").parents[1]
    given = [written(tmp_path / "a" / "window.json"), tmp_path / "a", empty, tmp_path / "absent.json", own]
    assert earlier_windows(given[1:], None) == tuple(given[1:])
    assert earlier_windows(given, None) == (given[0], *given[2:])
