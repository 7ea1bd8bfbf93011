"""The user cache: nobody else can write to it, and what was altered in it is not used."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal import cache
from rag_audit._internal.canonical import jcs, read_json
from rag_audit.errors import SetupError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the cache's home, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a" / "home"))
    return tmp_path / "a" / "home"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_level_is_private_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        result = cache.cache_dir("circuits", "x")
        cache.build_once(result / "thing", lambda folder: (folder / "file").touch())
    finally:
        os.umask(before)
    levels = [result / "thing", result, *result.parents[:4]]
    assert levels[-1] == home.parent
    assert {mode(level) for level in levels} == {0o700}


def test_what_others_could_read_is_closed(home: Path) -> None:
    result = cache.cache_dir("keys")
    for level in (result, result.parent):
        level.chmod(0o755)
    cache.cache_dir("keys")
    assert mode(result) == mode(result.parent) == 0o700


@pytest.mark.parametrize("level", ["rag-audit", "rag-audit/keys"])
def test_a_cache_that_others_can_write_to_is_refused(home: Path, level: str) -> None:
    cache.cache_dir("keys")
    (home / level).chmod(0o777)
    with pytest.raises(SetupError, match="other users can write to the cache") as caught:
        cache.cache_dir("keys")
    assert caught.value.field == str(home / level)
    assert "mode 0777" in str(caught.value.actual) and "chmod 700" in str(caught.value.hint)


def test_a_group_is_others_unless_it_is_the_user_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = cache.cache_dir()
    result.chmod(0o770)
    monkeypatch.setattr(cache, "_private_group", lambda gid: False)
    with pytest.raises(SetupError, match="other users can write to the cache"):
        cache.cache_dir()
    monkeypatch.setattr(cache, "_private_group", lambda gid: gid == result.stat().st_gid)
    cache.cache_dir()
    assert mode(result) == 0o700


def test_a_cache_below_a_folder_that_others_can_write_to_is_refused(home: Path) -> None:
    """They could put another folder in its place. Where a sticky bit forbids that, as in /tmp, they cannot."""
    cache.cache_dir()
    home.parent.chmod(0o777)
    with pytest.raises(
        SetupError, match="the cache is inside a folder that other users can write to"
    ) as caught:
        cache.cache_dir()
    assert caught.value.field == str(home.parent)
    home.parent.chmod(0o1777)
    cache.cache_dir()


def test_nothing_is_made_below_a_folder_that_is_refused(home: Path) -> None:
    home.parent.mkdir()
    home.parent.chmod(0o777)
    with pytest.raises(SetupError, match="inside a folder"):
        cache.cache_dir("keys")
    assert not home.exists()


def test_another_user_s_folder_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.cache_dir("keys")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(SetupError, match="another user's folder"):
        cache.cache_dir("keys")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("level, message", [("rag-audit", "is another"), ("", "inside another")])
def test_a_folder_that_was_given_to_another_user_is_refused(home: Path, level: str, message: str) -> None:
    cache.cache_dir("keys")
    os.chown(home / level, 4711, -1)
    with pytest.raises(SetupError, match=f"{message} user's folder") as caught:
        cache.cache_dir("keys")
    assert "owner 4711" in str(caught.value.actual)


def test_a_link_leads_where_the_same_holds(home: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o755)
    home.parent.mkdir()
    home.symlink_to(real)
    assert cache.cache_dir("keys").resolve() == real / "rag-audit" / "keys"
    tmp_path.chmod(0o777)
    with pytest.raises(SetupError, match="the cache is inside a folder that other users can write to"):
        cache.cache_dir("keys")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a manifest."""
    result = tmp_path / "made"
    (result / "inner").mkdir(parents=True)
    (result / "a").write_bytes(b"one")
    (result / "inner" / "b").write_bytes(b"two")
    (result / "link").symlink_to("a")
    cache.write_manifest(result, {"circuit": "c"})
    return result


def test_manifest_lists_every_file(folder: Path) -> None:
    result = cache.read_manifest(folder)
    assert result["circuit"] == "c" and sorted(result["files"]) == ["a", "inner/b", "link"]


def forget_files(folder: Path) -> None:
    value = read_json(folder / "manifest.json", max_bytes=1 << 20)
    del value["files"]
    (folder / "manifest.json").write_bytes(jcs(value))


def relink(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("inner/b")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda f: (f / "a").write_bytes(b"eno"), "a cached file does not match its manifest"),
        (lambda f: (f / "inner" / "b").write_bytes(b""), "a cached file does not match its manifest"),
        (relink, "a cached file does not match its manifest"),
        (lambda f: (f / "a").unlink(), "a cached folder lacks files of its manifest, or has further files"),
        (
            lambda f: (f / "inner" / "package.json").touch(),
            "a cached folder lacks files of its manifest, or has further files",
        ),
        (forget_files, "lists no files"),
        (lambda f: (f / "manifest.json").write_bytes(b"[]"), "lists no files"),
        (lambda f: (f / "manifest.json").write_bytes(b"{"), "has no manifest"),
        (lambda f: (f / "manifest.json").unlink(), "has no manifest"),
    ],
    ids=["altered", "emptied", "link", "missing", "added", "no list", "no object", "no JSON", "none"],
)
def test_altered_folder_is_refused(folder: Path, change: Any, message: str) -> None:
    cache.read_manifest(folder)
    change(folder)
    with pytest.raises(SetupError, match=message) as caught:
        cache.read_manifest(folder)
    assert message == "lists no files" or f"rm -r {folder}" in str(caught.value.hint)


def test_a_file_is_hashed_once_until_it_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []
    real = cache.hashlib.file_digest

    def counted(handle: Any, name: str) -> Any:
        hashed.append(os.fstat(handle.fileno()).st_ino)
        return real(handle, name)

    monkeypatch.setattr(cache.hashlib, "file_digest", counted)
    monkeypatch.setattr(cache, "_SETTLED_NS", -1)
    monkeypatch.setattr(cache, "_hashed", {})
    cache.read_manifest(folder)
    cache.read_manifest(folder)
    assert sorted(hashed) == sorted((folder / name).stat().st_ino for name in ("a", "inner/b"))
    other = folder / "new"
    other.write_bytes(b"one")
    other.replace(folder / "a")
    cache.read_manifest(folder)
    assert hashed[2:] == [(folder / "a").stat().st_ino]


def test_a_file_that_has_just_changed_is_hashed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next change may leave the same time stamp."""
    monkeypatch.setattr(cache, "_hashed", {})
    monkeypatch.setattr(cache, "_SETTLED_NS", 10**18 * 9)
    cache.read_manifest(folder)
    assert cache._hashed == {}
