"""The archive of a bundle: a ZIP file with manifest.json first, then the packed files in the order of their paths.

The writer stores every file without compression, at one date, so that the same files give the same bytes with every
release of zlib. The reader also accepts deflated files, and refuses everything else that an archive can contain. It
reads each file in parts into a new private folder, counts the bytes of each part against the limits, and compares the
digests. A bundle comes from another party, so each refusal has an error with its own words.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from rag_audit._internal.canonical import Json, jcs, parse_json, read_bytes
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import BundleError, EncodingError, SizeError
from rag_audit._internal.regular import open_regular
from rag_audit.models import bundle
from rag_audit.models.bundle import MANIFEST, MAX_MANIFEST_BYTES, REPORT, Manifest, PackedFile

MAX_ARCHIVE_BYTES = bundle.MAX_TOTAL_BYTES + (64 << 20)
"""Maximum bytes of an archive: its files, the manifest and the directory."""
_CHUNK = 1 << 20
_DATED = (1980, 1, 1, 0, 0, 0)
"""The first date that the format can write, for every file."""
_END = struct.Struct("<4s4H2LH")
"""The record at the end of an archive: signature, four counts, size and place of the directory, size of a comment."""
_LOCAL = struct.Struct("<4s5H3L2H")
"""The record before a file's name and content: signature, version, flags, method, time, date, CRC, compressed size,
size, and the lengths of the name and of further fields."""
_LISTED_BYTES = 46
"""Bytes of a file's record in the directory, without its name."""
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    ValueError,
    OverflowError,
    struct.error,
)
"""The errors of the libraries that read a damaged archive; ValueError is that of a name that is not UTF-8."""
_HINT = "ask the sender for the bundle a second time"


@dataclass(frozen=True)
class Unpacked:
    """The files of a bundle in a private folder. Each file has the digest that the manifest names."""

    folder: Path
    manifest: Manifest

    @property
    def window(self) -> Path:
        """The window file, with its siblings and tiles next to it."""
        return self.folder / self.manifest.window

    @property
    def trust(self) -> Path:
        """The sender's trust file."""
        return self.folder / self.manifest.trust

    @property
    def receipts(self) -> list[Path]:
        """The files and folders of receipts."""
        return self._paths(self.manifest.receipts)

    @property
    def previous(self) -> list[Path]:
        """The previous windows."""
        return self._paths(self.manifest.previous)

    @property
    def challenges(self) -> list[Path]:
        """The sender's own challenges."""
        return self._paths(self.manifest.challenges)

    def report(self) -> dict[str, Json]:
        """The sender's report as JSON. The bundle's digests protect it from damage and not from the sender.

        :raises BundleError: the file contains no JSON object
        """
        data = read_bytes(self.folder / REPORT, max_bytes=bundle.MAX_REPORT_BYTES)
        value = parse_json(data, source=REPORT)
        if not isinstance(value, dict):
            raise BundleError("the packed report is not a report", field=REPORT, expected="a JSON object")
        return value

    def _paths(self, names: list[str]) -> list[Path]:
        return [self.folder / name for name in names]


def packed_file(folder: Path, path: str) -> PackedFile:
    """The size and digest of a file below a folder.

    :param path: relative, with the separator /
    """
    place = folder / path
    return PackedFile(path=path, bytes=place.stat().st_size, sha256=digest_of(place))


def digest_of(path: Path) -> str:
    """SHA-256 of a file, which may be large, in hexadecimal."""
    with open_regular(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_archive(folder: Path, manifest: Manifest, out: Path) -> None:
    """Write the manifest and its files, which are below a folder, into an archive. An existing archive is replaced.

    :raises BundleError: a file changed after the manifest was made
    :raises SizeError: the files exceed the limits of a bundle
    :raises StoreError: the archive cannot be written
    """
    _check_sizes(manifest)

    def write(handle: BinaryIO) -> None:
        with zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_info(MANIFEST), jcs(manifest.dump()) + b"\n")
            for file in manifest.files:
                info = _info(file.path)
                info.file_size = file.bytes
                with open_regular(folder / file.path) as source, archive.open(info, "w") as target:
                    _copy(source, target, file)

    replace_file(out, write)


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATED)
    info.create_system = 3  # Unix, on every system
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


def _copy(source: IO[bytes], target: IO[bytes], file: PackedFile) -> None:
    """Copy a file in parts.

    :raises BundleError: the file has more bytes, fewer bytes or another digest than the manifest states
    """
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK):
        size += len(chunk)
        if size > file.bytes:
            raise BundleError("a file of the bundle is larger than the manifest states", field=file.path,
                              expected=f"{file.bytes} bytes", actual="more", hint=_HINT)  # fmt: skip
        digest.update(chunk)
        target.write(chunk)
    if (size, digest.hexdigest()) != (file.bytes, file.sha256):
        raise BundleError("a file of the bundle differs from the manifest", field=file.path,
                          expected=f"{file.sha256}, {file.bytes} bytes",
                          actual=f"{digest.hexdigest()}, {size} bytes", hint=_HINT)  # fmt: skip


def _check_sizes(manifest: Manifest) -> None:
    """Check the sizes that the manifest states.

    :raises SizeError: a file or their total is too large
    """
    for file in manifest.files:
        if file.bytes > (limit := bundle.limit_of(file.path)):
            raise SizeError("a file of the bundle is too large", field=file.path,
                            expected=f"at most {limit} bytes", actual=f"{file.bytes} bytes")  # fmt: skip
    if (total := sum(file.bytes for file in manifest.files)) > bundle.MAX_TOTAL_BYTES:
        raise SizeError("the files of the bundle are too large in total", field="bundle",
                        expected=f"at most {bundle.MAX_TOTAL_BYTES} bytes", actual=f"{total} bytes",
                        hint="publish the window's folder instead of a bundle")  # fmt: skip


@contextmanager
def opened(path: Path) -> Iterator[Unpacked]:
    """Unpack a bundle into a private folder, which exists until the block ends.

    :raises BundleError: the archive is no bundle, contains something else than its manifest states, or is damaged
    :raises SizeError: the archive or a file exceeds the limits
    :raises EncodingError: the archive cannot be read
    """
    try:
        handle = open_regular(path)
    except OSError as exc:
        raise EncodingError.of_os_error(exc, "cannot be read", field=path) from exc
    with handle, tempfile.TemporaryDirectory(prefix="rag-audit-bundle-") as name:
        folder = Path(name)
        try:
            _check_end(handle)
            with zipfile.ZipFile(handle) as archive:
                manifest = _unpack(archive, folder)
        except _DAMAGED as exc:
            raise BundleError("the archive is damaged", field=path.name, actual=str(exc), hint=_HINT) from exc
        yield Unpacked(folder, manifest)


def _check_end(handle: BinaryIO) -> None:
    """Check the record at the end of an archive before a library reads the directory into memory.

    :raises BundleError: the file is no plain archive: it has other content before, after or between its files
    :raises SizeError: the archive or its directory is too large
    """
    size = handle.seek(0, os.SEEK_END)
    if size > MAX_ARCHIVE_BYTES:
        raise SizeError("the archive is too large", field="bundle", expected=f"at most {MAX_ARCHIVE_BYTES} bytes",
                        actual=f"{size} bytes")  # fmt: skip
    handle.seek(max(0, size - _END.size))
    data = handle.read(_END.size)
    expected = "a ZIP archive of one part without a comment"
    if len(data) != _END.size:
        raise BundleError("the file is not a bundle", field="bundle", expected=expected, actual=f"{size} bytes",
                          hint=_HINT)  # fmt: skip
    signature, disk, first_disk, here, total, length, start, comment = _END.unpack(data)
    if signature != b"PK\x05\x06" or (disk, first_disk, comment) != (0, 0, 0) or here != total:
        raise BundleError("the file is not a bundle", field="bundle", expected=expected,
                          actual="another or a truncated file", hint=_HINT)  # fmt: skip
    if total > bundle.MAX_FILES + 1:
        raise SizeError("the archive has too many files", field="bundle", expected=f"at most {bundle.MAX_FILES}",
                        actual=total)  # fmt: skip
    if start + length + _END.size != size:
        raise BundleError("the archive contains data outside of its files", field="bundle",
                          expected=f"{start + length + _END.size} bytes", actual=f"{size} bytes",
                          hint=_HINT)  # fmt: skip
    handle.seek(0)


def _unpack(archive: zipfile.ZipFile, folder: Path) -> Manifest:
    entries = _entries(archive)
    if MANIFEST not in entries:
        raise BundleError("the archive has no manifest", field="bundle", expected=MANIFEST)
    listed = entries.pop(MANIFEST)
    with archive.open(listed) as source:
        data = source.read(MAX_MANIFEST_BYTES + 1)
    value = parse_json(data, source=MANIFEST, max_bytes=MAX_MANIFEST_BYTES)
    if not isinstance(value, dict) or value.get("mediaType") != bundle.MEDIA_TYPE:
        raise BundleError("the manifest's format is unknown", field=f"{MANIFEST}.mediaType",
                          expected=bundle.MEDIA_TYPE,
                          actual=value.get("mediaType") if isinstance(value, dict) else None)  # fmt: skip
    _check_content(archive, listed)
    manifest = Manifest.parse(value, field=MANIFEST)
    manifest.check()
    _check_sizes(manifest)
    if lost := [file.path for file in manifest.files if file.path not in entries]:
        raise BundleError("the bundle lacks a file of its manifest", field="bundle", expected=lost[0])
    if unknown := sorted(entries.keys() - {file.path for file in manifest.files}):
        raise BundleError("the bundle contains a file that its manifest does not name", field="bundle",
                          actual=unknown[0])  # fmt: skip
    for file in manifest.files:
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(handle, "wb") as target, archive.open(entries[file.path]) as source:
            _copy(source, target, file)
        _check_content(archive, entries[file.path])
    return manifest


def _check_content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Check that the stored bytes of a file are its content and nothing else. The library stops at the stated size, so
    it reads neither bytes after the end of a compressed stream nor content above the stated size.

    :raises BundleError: there are further bytes
    """
    left, size = info.compress_size, info.compress_size
    if info.compress_type == zipfile.ZIP_DEFLATED:
        assert archive.fp is not None
        archive.fp.seek(info.header_offset + _LOCAL.size + len(info.orig_filename.encode()))
        stream, size = zlib.decompressobj(-zlib.MAX_WBITS), 0
        while left and not stream.eof and size <= info.file_size:
            data = archive.fp.read(min(left, _CHUNK))
            left -= len(data) or left
            while data and not stream.eof and size <= info.file_size:
                size += len(stream.decompress(data, _CHUNK))
                data = stream.unconsumed_tail
        if not stream.eof and size <= info.file_size:  # the last input can leave a few bytes of output
            size += len(stream.flush())
        left = len(stream.unused_data) + left if stream.eof else 1
    else:
        left = 0
    if left or size != info.file_size:
        raise _outside(f"further bytes in {info.filename}")


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The archive's files by name.

    :raises BundleError: a name leads out of the folder or occurs twice, a file is a link, is encrypted, is compressed
        by another method, or shares bytes with another file, or the archive has bytes that belong to no file
    """
    result: dict[str, zipfile.ZipInfo] = {}
    seen: set[str] = set()
    end = listed = 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        name = info.orig_filename
        if fault := _fault(info, name):
            raise BundleError(f"the archive contains {fault}", field="bundle", actual=name)
        if name.casefold() in seen:
            raise BundleError("the archive contains a name twice", field="bundle", actual=name)
        if info.header_offset < end:
            raise BundleError("the archive contains files that share bytes", field="bundle", actual=name)
        if info.header_offset > end or not _plain(archive, info):
            raise _outside(f"data before or in the record of {name}")
        end = info.header_offset + _LOCAL.size + len(name.encode()) + info.compress_size
        listed += _LISTED_BYTES + len(name.encode())
        seen.add(name.casefold())
        result[name] = info
    assert archive.fp is not None
    if end + listed + _END.size != (size := archive.fp.seek(0, os.SEEK_END)):
        raise _outside(f"{size - end - listed - _END.size} further bytes")
    return result


def _plain(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    """Whether both records of a file state the same, and contain no comment and no further fields."""
    assert archive.fp is not None
    archive.fp.seek(info.header_offset)
    data = archive.fp.read(_LOCAL.size)
    if len(data) != _LOCAL.size or info.comment or info.extra:
        return False
    _, _, flags, method, _, _, crc, compressed, size, name, extra = _LOCAL.unpack(data)
    return (flags, method, crc, compressed, size, name, extra) == (
        info.flag_bits,
        info.compress_type,
        info.CRC,
        info.compress_size,
        info.file_size,
        len(info.orig_filename.encode()),
        0,
    )


def _outside(actual: str) -> BundleError:
    return BundleError("the archive contains data outside of its files", field="bundle",
                       expected="files without gaps, comments and further fields", actual=actual,
                       hint=_HINT)  # fmt: skip


def _fault(info: zipfile.ZipInfo, name: str) -> str | None:
    """The words for an entry that no bundle contains, or None."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or parts[0][1:2] == ":":
        return "an absolute path"
    if ".." in parts:
        return "a path that leads out of its folder"
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "a link" if stat.S_ISLNK(mode) else "an entry that is no regular file"
    if info.flag_bits & _ENCRYPTED:
        return "an encrypted file"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "a file that is compressed by an unknown method"
    if name != MANIFEST and not bundle.PATH.match(name):
        return "a name that no file of a bundle has"
    return None
