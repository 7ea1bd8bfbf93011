"""A folder of windows as the earlier windows of a verification."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_audit.cli.earlier import earlier_windows
from rag_audit.errors import EncodingError
from rag_audit.models.windowfile import MEDIA_TYPE

WINDOW = f'{{"mediaType":"{MEDIA_TYPE}"}}'


def written(path: Path, text: str = WINDOW) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_folder_of_windows_names_each_window_once(tmp_path: Path) -> None:
    file = written(tmp_path / "c.json")
    published = written(tmp_path / "b" / "window.json").parent
    written(tmp_path / "a" / "public" / "window.json")
    written(tmp_path / f"{'0' * 64}.json", "[]")  # a sibling of a window file
    written(tmp_path / "b" / "tiles" / "x" / "0", "[]")
    written(tmp_path / "b" / "tiles" / "0", "[]")
    notes = written(tmp_path / "notes" / "readme.txt", "-")
    readme = written(tmp_path / "readme.txt", "-")
    public = tmp_path / "a" / "public"
    earlier = earlier_windows([tmp_path], None)
    assert earlier.windows == (public, published, file)
    assert earlier.skipped == (published / "tiles" / "x" / "0", notes, readme)
    again = earlier_windows([tmp_path, published / "window.json", file], None)
    assert again.windows == (public, published, file)


@pytest.mark.parametrize(
    "name",
    [
        f"{'ab' * 32}.json",
        "2026/fork/window.json",
        "fork.JSON",
        "fork",
        "fork.json/window.json",
        "w-1/fork.json",
        "w-1/public/window.json",
    ],
)
def test_a_window_is_read_wherever_it_lies(tmp_path: Path, name: str) -> None:
    first = written(tmp_path / "w-1" / "window.json").parent
    fork = written(tmp_path / name, WINDOW[:-1] + ',"entries":[]}')
    fork = fork.parent if fork.name == "window.json" else fork
    assert set(earlier_windows([tmp_path], None).windows) == {first, fork}
    assert fork in earlier_windows([tmp_path, first], None).windows


def test_an_escaped_media_type_is_read_too(tmp_path: Path) -> None:
    file = written(
        tmp_path / "fork.json", WINDOW.replace("/", "\\/", 1).replace("mediaType", "media\\u0054ype")
    )
    assert earlier_windows([tmp_path], None).windows == (file,)


def test_a_mark_across_two_reads_is_found(tmp_path: Path) -> None:
    file = written(tmp_path / "fork", " " * ((1 << 20) - 20) + WINDOW)
    assert earlier_windows([tmp_path], None).windows == (file,)


def test_what_no_window_can_be_is_named(tmp_path: Path) -> None:
    window = written(tmp_path / "w-1" / "window.json").parent
    for number in range(12):
        written(tmp_path / "receipts" / f"r-{number:02}.json", '{"receipt":1}')
    written(tmp_path / "trust.toml", "[trust]")
    written(tmp_path / "w-2.json.gz", "-")
    written(tmp_path / "other" / f"{'0' * 64}.json", "[]")
    written(tmp_path / "w-1" / "header.json", "{}")
    earlier = earlier_windows([tmp_path], None)
    assert earlier.windows == (window,) and len(earlier.skipped) == 16
    words = "\n".join(earlier.notes)
    assert "folder receipts has 12 entries without a window, not read: r-00.json, " in words
    assert words.count("r-") == 10 and " and 2 more" in words
    for name in ("2 entries without a window, not read: trust.toml, w-2.json.gz", "0" * 64, "header.json"):
        assert name in words


def test_what_cannot_be_read_goes_to_the_verifier_which_refuses_it(tmp_path: Path) -> None:
    written(tmp_path / "w-1" / "window.json")
    truncated = written(tmp_path / "w-2.json", WINDOW[:-1])
    broken = written(tmp_path / "w-3.json", '{"entries":[')
    (tmp_path / "away").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    (tmp_path / "back").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    earlier = earlier_windows([tmp_path], None)
    names = ("away", "loop.json", "pipe.json")
    assert set(earlier.windows) == {
        tmp_path / "w-1", truncated, broken, *(tmp_path / name for name in names)
    }  # fmt: skip
    assert not earlier.skipped


def test_a_folder_that_cannot_be_read_is_a_named_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path) -> list[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(EncodingError, match="cannot be read"):
        earlier_windows([tmp_path], None)


def test_the_window_itself_is_no_earlier_window_of_its_folder(tmp_path: Path) -> None:
    first = written(tmp_path / "a" / "window.json").parent
    second = written(tmp_path / "b" / "window.json", WINDOW + " ").parent
    for own in (second, second / "window.json"):
        assert earlier_windows([tmp_path], own).windows == (first,)
    copy = written(tmp_path.with_name("own") / "window.json", WINDOW + " ")
    assert earlier_windows([tmp_path], copy).windows == (first,), "a copy with the same bytes"
    assert earlier_windows([second], second).windows == (second,), (
        "a user who names it gets the verifier's answer"
    )


def test_a_window_and_a_missing_path_stay_as_they_are(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    own = written(tmp_path / "own" / "public" / "window.json").parents[1]
    given = [written(tmp_path / "a" / "window.json"), tmp_path / "a", empty, tmp_path / "absent.json", own]
    assert earlier_windows(given[1:], None).windows == tuple(given[1:])
    assert earlier_windows(given, None).windows == (given[0], *given[2:])
