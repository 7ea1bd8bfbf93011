"""`rag-audit verifier bundle`, and `rag-audit verify` on a bundle: the same verdict offline, and no hostile archive."""

from __future__ import annotations

import hashlib
import html
import json
import shutil
import stat
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.canonical import jcs
from rag_audit._internal.errors import BundleError
from rag_audit.account.packing import pack_receipts
from rag_audit.cli import main
from rag_audit.cli.reports import FORMATS
from rag_audit.cli.verify import EXAMPLE
from rag_audit.log.signing import SigningKey
from rag_audit.models import bundle as model
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.report import archive
from rag_audit.report.model import Report
from rag_audit.report.signature import signed
from tests.named import error_name

NAMES = [
    "manifest.json",
    "receipts/0/alice-1.json",
    "receipts/0/alice-2.json",
    "receipts/0/bob-1.json",
    "report.json",
    "trust/trust.toml",
    "window/window.json",
]


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def pack(folder: Path, out: Path, *words: object) -> Result:
    given = ["--trust", folder / "trust.toml", "--receipts", folder / "receipts", "--output", out]
    return run("verifier", "bundle", folder / "window.json", *given, *words)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    made = SigningKey.generate("verifier.example.org")
    made.save(path)
    path.with_name("key.pub").write_text(f"{made.verifier}\n")
    return path


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "bundle.zip"
    done = pack(EXAMPLE, out, "--sign", key)
    assert done.exit_code == 0 and done.stdout.startswith("PASS eps_audit="), done.output
    return out


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No run leaves a folder, and no run writes outside of its own folder."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    yield
    assert list(place.iterdir()) == []


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(
    files: dict[str, bytes] | list[tuple[Any, bytes]], out: Path, method: int = zipfile.ZIP_STORED
) -> Path:
    pairs = list(files.items()) if isinstance(files, dict) else files
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in pairs:
            file.writestr(name, data)
    return out


def restated(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files with a manifest that states their sizes and digests, as a cheating sender would write it."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"] = [
        {"path": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in sorted(files.items())
        if name != "manifest.json"
    ]
    return {"manifest.json": jcs(manifest), **{n: d for n, d in files.items() if n != "manifest.json"}}


def test_a_bundle_repeats_the_verification(packed: Path, key: Path, tmp_path: Path) -> None:
    copy = shutil.copy(packed, tmp_path / "received.zip")
    done = run("verify", copy, "--signer", key.with_name("key.pub"), "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["line"] == json.loads(contents(packed)["report.json"])["line"]
    whose, compared = report["notes"][:2] if "sender" in report["notes"][0] else report["notes"][1:3]
    digest = hashlib.sha256((EXAMPLE / "trust.toml").read_bytes()).hexdigest()
    assert whose.startswith(f"this verdict used the sender's trust file from the bundle ({digest})")
    assert compared.startswith(
        "this verdict equals the verdict of the packed report; the key verifier.example.org+"
    )
    assert "of --signer signed" in compared
    assert whose in done.stderr and compared in done.stderr
    assert report["filing"]["command"] == ["rag-audit", "verify", "received.zip"]


def test_an_archive_has_fixed_bytes(packed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed) as file:
        assert file.namelist() == NAMES
        assert {i.date_time for i in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {i.compress_type for i in file.infolist()} == {zipfile.ZIP_STORED}
        assert {(i.create_system, i.external_attr >> 16) for i in file.infolist()} == {
            (3, stat.S_IFREG | 0o644)
        }
    with archive.opened(packed) as files:
        archive.write_archive(files.folder, files.manifest, tmp_path / "again.zip")
        assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_the_same_files_at_the_same_time_give_the_same_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit.report.build.now_ms", lambda: 1_800_100_000_000)
    digests = set()
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        assert pack(EXAMPLE, folder / "bundle.zip").exit_code == 0
        digests.add(hashlib.sha256((folder / "bundle.zip").read_bytes()).hexdigest())
    assert len(digests) == 1


def test_a_deflated_archive_is_read_too(packed: Path, tmp_path: Path) -> None:
    out = zipped(contents(packed), tmp_path / "deflated.zip", zipfile.ZIP_DEFLATED)
    assert out.stat().st_size < packed.stat().st_size
    assert run("verify", out, "--brief").exit_code == 0


@pytest.mark.parametrize("further", [0, 1, 2, 257, 258, 259, 4096])
def test_a_compressed_file_of_several_parts_is_read(further: int, tmp_path: Path) -> None:
    out = zipped({"x": bytes((2 << 20) + further)}, tmp_path / "x.zip", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(out) as file:
        archive._check_content(file, file.getinfo("x"))
        short = file.getinfo("x")
        short.file_size -= 1
        with pytest.raises(BundleError):
            archive._check_content(file, short)


@pytest.mark.parametrize("words", [[], ["--trust", EXAMPLE / "trust.toml"]])
def test_an_archive_under_another_ending_is_refused(
    packed: Path, tmp_path: Path, words: list[object]
) -> None:
    """Under the name window.json, an archive would bring its own trust file unseen."""
    done = run("verify", shutil.copy(packed, tmp_path / "window.json"), *words)
    assert (done.exit_code, done.stdout) == (2, "") and "rename it to end with .zip" in done.stderr


@pytest.mark.parametrize("words", [[], ["--brief"], ["--details"], *(["--format", f] for f in FORMATS)])
def test_every_format_says_that_the_senders_trust_file_decided(packed: Path, words: list[str]) -> None:
    done = run("verify", packed, *words)
    assert done.exit_code == 0 and "the sender's trust file" in html.unescape(done.stdout)
    if words in ([], ["--brief"]):
        assert "[the sender's trust file" in done.stdout.splitlines()[0]
    if not words:
        assert "[the sender's trust file" in done.stdout.splitlines()[-1]
        assert len(done.stdout.splitlines()) <= 12
    done = run("verify", packed, "--trust", EXAMPLE / "trust.toml", *words)
    assert done.exit_code == 0 and "the sender's trust file" not in html.unescape(done.stdout)


def test_the_readers_own_trust_file_decides(packed: Path, tmp_path: Path) -> None:
    text = (EXAMPLE / "trust.toml").read_text()
    own = tmp_path / "own.toml"
    own.write_text(text.replace('max_epsilon = "', 'max_epsilon = "0.', 1))
    assert own.read_text() != text
    done = run("verify", packed, "--trust", own, "--json")
    assert done.exit_code == 3
    assert "used the reader's own trust file" in done.stderr
    assert "its line differs from this verdict's line: PASS eps_audit=" in done.stderr
    done = run("verify", packed, "--trust", EXAMPLE / "trust.toml", "--max-epsilon", "1", "--brief")
    assert done.exit_code == 3 and done.stdout.startswith("UNMET")


def test_the_options_that_decide_are_packed(tmp_path: Path) -> None:
    out = tmp_path / "bundle.zip"
    done = pack(EXAMPLE, out, "--max-epsilon", "1", "--allow-unsafe-setup")
    assert done.exit_code == 3 and done.stdout.startswith("UNMET trust.max_epsilon")
    options = json.loads(contents(out)["manifest.json"])["options"]
    assert options == {"max_epsilon": "1", "allow_unsafe_setup": True}
    done = run("verify", out, "--brief")
    assert done.exit_code == 3 and "equals the verdict of the packed report" in done.stderr


def test_a_window_with_siblings_and_a_previous_window(tmp_path: Path) -> None:
    """Siblings travel with the window that names them, and files keep their own names."""
    folder = tmp_path / "window"
    shutil.copytree(EXAMPLE, folder)
    value = json.loads((folder / "window.json").read_text())
    data = jcs(value["roster"])
    value["roster"] = {"sibling": f"{hashlib.sha256(data).hexdigest()}.json"}
    (folder / value["roster"]["sibling"]).write_bytes(data)
    (folder / "window.json").write_bytes(jcs(value))
    out = tmp_path / "bundle.zip"
    done = pack(folder, out, "--previous", folder)
    assert done.exit_code == 2, done.output  # no window precedes the example, so the chain is undecided
    names = set(contents(out))
    assert {f"window/{value['roster']['sibling']}", f"previous/0/{value['roster']['sibling']}"} <= names
    again = run("verify", out, "--json")
    assert again.exit_code == 2 and "equals the verdict" in again.stderr
    assert json.loads(again.stdout)["line"] == done.stdout.splitlines()[0]


def test_tiles_of_the_window_and_of_receipts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles travel with the file that names them; the example's window is written in tiles here."""
    monkeypatch.setattr("rag_audit.models.window_writer.TILED_BYTES", 1000)
    monkeypatch.setattr("rag_audit.models.window_writer.TILE_BYTES", 2000)
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    save_window(WindowFile.load(EXAMPLE / "window.json"), folder / "window.json")
    header = json.loads((folder / "window.json").read_text())["header"]
    shutil.rmtree(folder / "receipts")
    pack_receipts([EXAMPLE / "receipts"], folder / "receipts", header)
    out = tmp_path / "bundle.zip"
    done = pack(folder, out)
    assert done.exit_code == 0, done.output
    places = {name.rpartition("/")[0] for name in contents(out)}
    assert {"window/tiles", "receipts/0/tiles"} <= places
    shutil.rmtree(folder)
    again = run("verify", out, "--json")
    assert again.exit_code == 0 and "equals the verdict" in again.stderr
    assert json.loads(again.stdout)["counts"]["receipts_agreeing"] == 3


def test_a_challenge_of_the_verifiers_own(key: Path, tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    vkey = SigningKey.load(key).verifier
    with (folder / "trust.toml").open("a") as file:
        file.write(f'\n[[verifier]]\nname = "own"\nvkey = "{vkey}"\n')
    note = tmp_path / "note.txt"
    draw = ["--key", key, "--trust", folder / "trust.toml", "--out", note]
    assert run("verifier", "challenge", folder / "window.json", *draw).exit_code == 0
    out = tmp_path / "bundle.zip"
    assert pack(folder, out, "--challenge", note).exit_code == 0
    assert contents(out)["challenges/0/note.txt"] == note.read_bytes()
    done = run("verify", out, "--json")
    assert done.exit_code == 0
    assert "challenge" in {file["role"] for file in json.loads(done.stdout)["filing"]["inputs"]}


def test_a_packed_challenge_is_no_draw_of_the_reader(key: Path, tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    trust = folder / "trust.toml"
    text = trust.read_text().replace('mode = "full"', 'mode = "sampled"\nbeta = "0.9"\neta = "0.5"', 1)
    trust.write_text(
        f'{text}\n[[verifier]]\nname = "verifier.example.org"\nvkey = "{SigningKey.load(key).verifier}"\n'
    )
    note, out = tmp_path / "note.txt", tmp_path / "bundle.zip"
    draw = ["--key", key, "--trust", trust, "--out", note]
    assert run("verifier", "challenge", folder / "window.json", *draw).exit_code == 0
    done = pack(folder, out, "--challenge", note)
    assert done.exit_code == 0 and "challenge=own" in done.stdout
    done = run("verify", out)
    assert done.exit_code == 0 and "The sender also supplied the challenges" in done.stderr
    done = run("verify", out, "--trust", trust, "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["decided_by"] == ["trust.challenge"]
    trust.write_text(trust.read_text().replace('challenge = "own"', 'challenge = "published"', 1))
    done = run("verify", out, "--trust", trust, "--json")
    assert done.exit_code == 0 and "challenge=published" in json.loads(done.stdout)["line"]
    done = run("verify", out, "--trust", trust, "--challenge", note, "--json")
    assert done.exit_code == 0 and "challenge=own" in json.loads(done.stdout)["line"]


def test_an_interrupted_write_leaves_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(_: object) -> None:
        (file,) = tmp_path.glob("temporary/*/trust/trust.toml")
        file.write_text("x")

    monkeypatch.setattr(archive, "_check_sizes", changed)
    done = pack(EXAMPLE, tmp_path / "bundle.zip")
    assert done.exit_code == 2 and error_name(done) == "BundleError"
    assert not list(tmp_path.glob("*.zip")) and not list(tmp_path.glob(".bundle*"))


# Hostile archives


def entry(name: str, mode: int = stat.S_IFREG | 0o644, method: int | None = None) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    info.compress_type = zipfile.ZIP_STORED if method is None else method
    return info


def added(info: zipfile.ZipInfo, data: bytes = b"x") -> Callable[[Path, Path], None]:
    """An archive with one further entry."""

    def make(packed: Path, out: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a name twice
            zipped([*contents(packed).items(), (info, data)], out)

    return make


def patched(offset: int, value: bytes, *, directory: bool = True) -> Callable[[Path, Path], None]:
    """An archive with other bytes in the directory's last record, at an offset of this record."""

    def make(packed: Path, out: Path) -> None:
        data = bytearray(packed.read_bytes())
        start = data.rindex(b"PK\x01\x02") + offset
        data[start : start + len(value)] = value
        out.write_bytes(data)

    return make


def replaced(
    name: str, change: Callable[[bytes], bytes], *, restate: bool = False
) -> Callable[[Path, Path], None]:
    def make(packed: Path, out: Path) -> None:
        files = contents(packed)
        files[name] = change(files[name])
        zipped(restated(files) if restate else files, out)

    return make


def without(name: str) -> Callable[[Path, Path], None]:
    def make(packed: Path, out: Path) -> None:
        zipped({n: d for n, d in contents(packed).items() if n != name}, out)

    return make


def renamed(name: str) -> Callable[[Path, Path], None]:
    """The manifest itself names a receipt by another path, and the archive contains it there."""

    def make(packed: Path, out: Path) -> None:
        files = contents(packed)
        files[name] = files.pop("receipts/0/bob-1.json")
        zipped(restated(files), out)

    return make


def raw(change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    return lambda packed, out: (out.write_bytes(change(packed.read_bytes())), None)[1]


def field(name: str, value: Any) -> Callable[[bytes], bytes]:
    return lambda data: jcs({**json.loads(data), name: value})


def padded(
    *, gap: bytes = b"", comment: bytes = b"", extra: bytes = b"", local: bytes = b""
) -> Callable[[Path, Path], None]:
    """An archive with bytes that belong to no file.

    :param gap: between the third and the fourth file
    :param local: further fields in the record before a file's content only
    """

    def make(packed: Path, out: Path) -> None:
        with zipfile.ZipFile(out, "w") as file:
            for number, (name, data) in enumerate(contents(packed).items()):
                info = zipfile.ZipInfo(name)
                info.comment, info.extra = comment, extra or local
                file.writestr(info, data)
                if local:
                    info.extra = b""
                if gap and number == 2:
                    assert file.fp is not None
                    file.fp.seek(file.start_dir)
                    file.fp.write(gap)
                    file.start_dir = file.fp.tell()

    return make


def trailing(method: int, *, inside: bool = False) -> Callable[[Path, Path], None]:
    """An archive whose last file has bytes after its content.

    :param inside: the bytes are in the compressed stream
    """

    def make(packed: Path, out: Path) -> None:
        zipped(contents(packed), out, method)
        data = out.read_bytes()
        with zipfile.ZipFile(out) as file:
            info, start, content = file.infolist()[-1], file.start_dir, file.read(file.namelist()[-1])
        stored = data[info.header_offset + 30 + len(info.filename) : start]
        if inside:
            stream = zlib.compressobj(wbits=-15)
            stored = stream.compress(content + b"hidden") + stream.flush()
        else:
            stored += b"hidden"
        size = struct.pack("<L", len(stored))
        local = bytearray(data[info.header_offset : info.header_offset + 30 + len(info.filename)])
        local[18:22] = size
        head = data[: info.header_offset] + local + stored
        listed = bytearray(data[start:-22])
        listed[(at := listed.rindex(b"PK\x01\x02") + 20) : at + 4] = size
        out.write_bytes(head + listed + data[-22:-6] + struct.pack("<LH", len(head), 0))

    return make


FLAGS, OFFSET = 8, 42
HOSTILE: dict[str, tuple[Callable[[Path, Path], None], str, str]] = {
    "a path out of the folder": (added(entry("../x.json")), "BundleError", "leads out of its folder"),
    "a path out of a role": (added(entry("receipts/0/../../x")), "BundleError", "leads out of its folder"),
    "backslashes": (added(entry("receipts\\..\\..\\x")), "BundleError", "leads out of its folder"),
    "the manifest names a path out of the folder": (renamed("receipts/0/../../b.json"), "BundleError", "leads out"),
    "an absolute path": (added(entry("/etc/x")), "BundleError", "an absolute path"),
    "a drive": (added(entry("C:x.json")), "BundleError", "an absolute path"),
    "a link": (added(entry("receipts/0/a.json", stat.S_IFLNK | 0o777), b"/etc/passwd"), "BundleError", "a link"),
    "a device": (added(entry("receipts/0/a.json", stat.S_IFCHR)), "BundleError", "no regular file"),
    "a folder": (added(entry("receipts/1/")), "BundleError", "a name that no file of a bundle has"),
    "a hidden file": (added(entry("window/.x")), "BundleError", "a name that no file of a bundle has"),
    "an unknown role": (added(entry("programs/x.sh")), "BundleError", "a name that no file of a bundle has"),
    "a name twice": (added(entry("trust/trust.toml")), "BundleError", "a name twice"),
    "a name twice on some systems": (added(entry("trust/TRUST.toml")), "BundleError", "a name twice"),
    "an unknown file": (added(entry("receipts/0/eve.json")), "BundleError", "its manifest does not name"),
    "an encrypted file": (patched(FLAGS, b"\x01\x00"), "BundleError", "an encrypted file"),
    "another compression": (
        added(entry("receipts/0/a.json", method=zipfile.ZIP_BZIP2)), "BundleError", "by an unknown method"
    ),
    "files that share bytes": (patched(OFFSET, struct.pack("<L", 40)), "BundleError", "share bytes"),
    "no manifest": (without("manifest.json"), "BundleError", "has no manifest"),
    "a missing file": (without("receipts/0/bob-1.json"), "BundleError", "lacks a file of its manifest"),
    "another trust file": (
        replaced("trust/trust.toml", lambda data: data.replace(b"a", b"b", 1)), "BundleError",
        "differs from the manifest",
    ),
    "a longer file": (
        replaced("trust/trust.toml", lambda data: data + b"\n"), "BundleError", "larger than the manifest states"
    ),
    "a shorter file": (
        replaced("trust/trust.toml", lambda data: data[:-1]), "BundleError", "differs from the manifest"
    ),
    "a manifest of another version": (
        replaced("manifest.json", field("mediaType", "x")), "BundleError", "format is unknown"
    ),
    "a manifest with an unknown field": (replaced("manifest.json", field("x", 1)), "SchemaError", "not well-formed"),
    "a manifest that is no JSON": (replaced("manifest.json", lambda _: b"{"), "EncodingError", "JSON"),
    "no window": (
        replaced("manifest.json", field("window", "window/w.json")), "BundleError", "lacks a file of its manifest"
    ),
    "a file without a role": (
        replaced("manifest.json", field("receipts", [])), "BundleError", "a file of the bundle has no role"
    ),
    "a manifest that names a file twice": (
        replaced(
            "manifest.json",
            lambda data: jcs({**json.loads(data), "files": [json.loads(data)["files"][0], *json.loads(data)["files"]]}),
        ),
        "BundleError", "names a file twice",
    ),
    "a name that is not UTF-8": (
        lambda packed, out: (patched(FLAGS, b"\x00\x08")(packed, out), patched(46, b"\xff")(out, out), None)[2],
        "BundleError", "damaged",
    ),
    "a truncated archive": (raw(lambda data: data[:-30]), "BundleError", "not a bundle"),
    "an empty file": (raw(lambda data: b"PK\x03\x04"), "BundleError", "not a bundle"),
    "data before the archive": (raw(lambda data: b"PK\x03\x04" + data), "BundleError", "outside of its files"),
    "data between two files": (padded(gap=b"hidden"), "BundleError", "outside of its files"),
    "data before the directory": (
        raw(
            lambda data: (
                data[: (at := data.index(b"PK\x01\x02"))]
                + b"hidden"
                + data[at:-6]
                + struct.pack("<LH", at + len(b"hidden"), 0)
            )
        ),
        "BundleError",
        "outside of its files",
    ),
    "a comment": (padded(comment=b"hidden"), "BundleError", "outside of its files"),
    "further fields": (padded(extra=b"\x99\x99\x04\x00abcd"), "BundleError", "outside of its files"),
    "further fields before a file": (
        padded(local=b"\x99\x99\x04\x00abcd"), "BundleError", "outside of its files"
    ),
    "data after a stored file": (trailing(zipfile.ZIP_STORED), "BundleError", "outside of its files"),
    "data after a compressed file": (trailing(zipfile.ZIP_DEFLATED), "BundleError", "outside of its files"),
    "more content than stated": (
        trailing(zipfile.ZIP_DEFLATED, inside=True), "BundleError", "outside of its files"
    ),
    "two sizes of one file": (patched(24, b"\xff"), "BundleError", "outside of its files"),
    "data after the archive": (raw(lambda data: data + b"x" * 30), "BundleError", "not a bundle"),
    "a damaged byte": (
        raw(lambda data: data.replace(b"application/vnd.rag-audit.window", b"application/vnd.rag-audit.Window", 1)),
        "BundleError", "damaged",
    ),
    "another report": (
        replaced("report.json", lambda d: d.replace(b"eps_audit=4", b"eps_audit=1", 1), restate=True),
        "SignatureError", "differs from the report that was signed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_a_named_error(name: str, packed: Path, tmp_path: Path) -> None:
    make, error, words = HOSTILE[name]
    (tmp_path / "here").mkdir()
    out = tmp_path / "here" / "bundle.zip"
    make(packed, out)
    report = tmp_path / "here" / "report.json"
    done = run("verify", out, "--format", "json", "--output", report)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert words in done.stderr and error_name(done) == error, done.stderr
    value = json.loads(report.read_text())
    assert value["outcome"] == "MALFORMED" and value["malformed"]["error"] == error
    assert str(tmp_path) not in report.read_text() and "rag-audit-bundle-" not in done.stderr
    assert {path.name for path in tmp_path.rglob("*")} == {"here", "bundle.zip", "report.json", "temporary"}


def bomb(files: dict[str, bytes], out: Path) -> Path:
    return zipped(files, out, zipfile.ZIP_DEFLATED)


def test_a_file_above_its_limit_is_not_unpacked(packed: Path, tmp_path: Path, reads: list[int]) -> None:
    files = contents(packed)
    files["receipts/0/bob-1.json"] = bytes(model.limit_of("receipts/0/bob-1.json") + 1)
    out = bomb(restated(files), tmp_path / "bomb.zip")
    assert out.stat().st_size < 1 << 20
    done = run("verify", out)
    assert done.exit_code == 2 and error_name(done) == "SizeError"
    assert sum(reads) < 1 << 20


def test_a_total_above_its_limit_is_not_unpacked(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[int]
) -> None:
    monkeypatch.setattr(model, "MAX_TOTAL_BYTES", 32 << 20)
    files = contents(packed)
    for number in range(5):
        files[f"receipts/0/{number}.json"] = bytes(8 << 20)
    done = run("verify", bomb(restated(files), tmp_path / "bomb.zip"))
    assert done.exit_code == 2 and error_name(done) == "SizeError" and "too large in total" in done.stderr
    assert sum(reads) < 1 << 20


def test_a_manifest_that_understates_a_file_stops_the_reading(
    packed: Path, tmp_path: Path, reads: list[int]
) -> None:
    files = restated(contents(packed))
    files["receipts/0/bob-1.json"] = bytes(256 << 20)
    done = run("verify", bomb(files, tmp_path / "bomb.zip"))
    assert done.exit_code == 2 and "larger than the manifest states" in done.stderr
    assert sum(reads) < 4 << 20


def test_a_large_manifest_is_not_parsed(packed: Path, tmp_path: Path, reads: list[int]) -> None:
    out = bomb(contents(packed) | {"manifest.json": bytes(128 << 20)}, tmp_path / "bomb.zip")
    reads.clear()
    done = run("verify", out)
    assert done.exit_code == 2 and error_name(done) == "SizeError"
    assert sum(reads) <= model.MAX_MANIFEST_BYTES + 1


def test_too_many_files_are_not_listed(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MAX_FILES", 5)
    done = run("verify", packed)
    assert done.exit_code == 2 and "too many files" in done.stderr


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the parts that the command reads from entries."""
    sizes: list[int] = []
    real = zipfile.ZipExtFile.read

    def read(self: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        data = real(self, n)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", read)
    return sizes


# A cheating sender


def forged(
    packed: Path, out: Path, change: Callable[[dict[str, Any]], dict[str, Any]], key: SigningKey | None
) -> Path:
    """A bundle whose report states something else, under a manifest and a signature that fit."""
    files = contents(packed)
    value = change(json.loads(files["report.json"]) | {"signature": None})
    if key is not None:
        report = signed(Report.parse(value, field="report"), key)
        value = report.dump()
    files["report.json"] = json.dumps(value).encode()
    return zipped(restated(files), out)


def lower(value: dict[str, Any]) -> dict[str, Any]:
    line = value["line"].replace("eps_audit=4", "eps_audit=1")
    return {**value, "line": line, "figures": {**value["figures"], "eps": "1.3382"}}


def older(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "filing": {**value["filing"], "version": "0.0.9"}}


def other_file(value: dict[str, Any], role: str) -> dict[str, Any]:
    inputs = [{**f, "sha256": "0" * 64} if f["role"] == role else f for f in value["filing"]["inputs"]]
    return {**value, "filing": {**value["filing"], "inputs": inputs}}


LIES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "a lower epsilon": lower,
    "a lower epsilon beside the true line": lambda v: {**v, "figures": {**v["figures"], "eps": "1"}},
    "another sentence": lambda v: {**v, "sentence": v["sentence"] + " It protects every document."},
    "a requirement that is absent": lambda v: {**v, "requirements": v["requirements"][1:]},
    "another window's digest": lambda v: {
        **v, "filing": {**v["filing"], "inputs": [{**f, "sha256": "0" * 64} for f in v["filing"]["inputs"]]}
    },
    "another release and another line": lambda v: older(lower(v)),
    "another release and another root": lambda v: older({**v, "window": {**v["window"], "root": "0" * 64}}),
    "another release and another trust file": lambda v: older(other_file(v, "trust")),
    "another release and other window files": lambda v: older(other_file(v, "window")),
    "another release and other receipts": lambda v: older(
        {**v, "filing": {**v["filing"], "receipts": {**v["filing"]["receipts"], "sha256": "0" * 64}}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("by", ["nobody", "the sender"])
def test_a_report_that_states_another_verdict_is_refused(
    lie: str, by: str, packed: Path, key: Path, tmp_path: Path
) -> None:
    signer = None if by == "nobody" else SigningKey.load(key)
    done = run("verify", forged(packed, tmp_path / "forged.zip", LIES[lie], signer))
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert "the packed report differs from the verdict on the packed files" in done.stderr


def test_another_release_is_compared_by_its_outcomes(packed: Path, key: Path, tmp_path: Path) -> None:
    for signer in (SigningKey.load(key), None):
        out = forged(packed, tmp_path / "older.zip", lambda v: older({**v, "sentence": "x"}), signer)
        done = run("verify", out, "--brief")
        assert done.exit_code == 0 and "equals the verdict" not in done.stderr
        assert "another release (0.0.9) made the packed report" in done.stderr
        assert "no check compared its other fields" in done.stderr


@pytest.mark.parametrize("own_trust", [True, False])
def test_a_signed_report_on_another_window_is_refused(
    own_trust: bool, packed: Path, key: Path, tmp_path: Path
) -> None:
    """The verifier signed the report on one window, and the sender packs it with another window."""
    other = Path("docs/examples")
    assert pack(other, tmp_path / "other.zip").exit_code == 0
    files = contents(tmp_path / "other.zip") | {"report.json": contents(packed)["report.json"]}
    out = zipped(restated(files), tmp_path / "replayed.zip")
    own = ["--trust", other / "trust.toml"] if own_trust else []
    done = run("verify", out, "--signer", key.with_name("key.pub"), *own)
    assert (done.exit_code, done.stdout) == (2, "") and error_name(done) == "BundleError", done.output


@pytest.mark.parametrize(
    "lie",
    [
        lambda v: {**v, "window": {**v["window"], "root": "0" * 64}},
        lambda v: {**v, "window": {**v["window"], "header": "0" * 64}},
        lambda v: other_file(v, "trust"),
        lambda v: other_file(v, "window"),
        lambda v: {**v, "filing": {**v["filing"], "receipts": {"files": 3, "sha256": "0" * 64}}},
    ],
)
def test_the_readers_own_trust_file_excuses_no_other_subject(
    lie: Callable[[dict[str, Any]], dict[str, Any]], packed: Path, key: Path, tmp_path: Path
) -> None:
    out = forged(packed, tmp_path / "forged.zip", lie, SigningKey.load(key))
    given = ["--trust", EXAMPLE / "trust.toml", "--signer", key.with_name("key.pub")]
    done = run("verify", out, *given)
    assert (done.exit_code, done.stdout) == (2, "") and error_name(done) == "BundleError", done.output
    assert "about another window or about other files" in done.stderr


@pytest.mark.parametrize("field", ["line", "outcome"])
def test_a_signed_fail_is_in_the_first_and_last_line(
    field: str, packed: Path, key: Path, tmp_path: Path
) -> None:
    fail = {"line": "FAIL proof.valid", "outcome": "FAIL"}
    out = forged(packed, tmp_path / "f.zip", lambda v: {**v, field: fail[field]}, SigningKey.load(key))
    signer = ["--signer", key.with_name("key.pub")]
    done = run("verify", out, *signer)
    assert (done.exit_code, done.stdout) == (2, "") and error_name(done) == "BundleError"
    assert "FAIL" in done.stderr and "PASS" in done.stderr
    own = ["--trust", EXAMPLE / "trust.toml", *signer]
    done = run("verify", out, *own)
    lines = done.stdout.splitlines()
    assert done.exit_code == 0 and len(lines) <= 12
    for line in (lines[0], lines[-1]):
        assert "[WARNING: the packed report, which verifier.example.org+" in line and "says FAIL]" in line
    for option in ("--brief", "--details"):
        lines = run("verify", out, *own, option).stdout.splitlines()
        assert "says FAIL]" in lines[0] and "says FAIL]" in lines[-1]
    notes = json.loads(run("verify", out, *own, "--json").stdout)["notes"]
    assert any(note.startswith("WARNING: the packed report") for note in notes)


def test_a_pinned_key_must_have_signed(packed: Path, tmp_path: Path) -> None:
    other = SigningKey.generate("verifier.example.org")
    done = run("verify", packed, "--signer", other.verifier)
    assert done.exit_code == 2 and error_name(done) == "SignatureError"
    unsigned = forged(packed, tmp_path / "unsigned.zip", lambda v: v, None)
    done = run("verify", unsigned, "--signer", other.verifier)
    assert done.exit_code == 2 and "has no signature" in done.stderr
    done = run("verify", unsigned, "--brief")
    assert done.exit_code == 0 and "has no signature" in done.stderr
    done = run("verify", packed, "--brief")
    assert done.exit_code == 0 and "no check shows who has this key" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--receipts", "r"],
        ["--previous", "w"],
        ["--challenge", EXAMPLE / "trust.toml"],
        ["--model", "m"],
        ["--attacks", "a"],
        ["--max-epsilon", "1"],
        ["--allow-unsafe-setup"],
    ],
)
def test_options_that_contradict_a_bundle(packed: Path, words: list[str]) -> None:
    done = run("verify", packed, *words)
    assert done.exit_code == 2 and "Error: " in done.stderr


def test_a_signer_needs_a_bundle() -> None:
    given = ["verify", EXAMPLE / "window.json", "--trust", EXAMPLE / "trust.toml", "--signer", "x"]
    done = run(*given)
    assert done.exit_code == 2 and "no bundle" in done.stderr


@pytest.mark.parametrize("name", ["window.json", "trust.toml", "receipts/bob-1.json", "receipts"])
def test_an_archive_replaces_no_input(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = pack(folder, folder / name)
    assert done.exit_code == 2 and "Error: the output " in done.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", [".hidden.json", "a b.json", "é.json"])
def test_a_name_that_cannot_be_packed(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    (folder / "receipts" / "alice-1.json").rename(folder / "receipts" / name)
    done = pack(folder, tmp_path / "bundle.zip")
    assert done.exit_code == 2 and error_name(done) == "BundleError" and "cannot be packed" in done.stderr
