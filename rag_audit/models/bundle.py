"""manifest.json of a bundle: the packed files with their digests, their roles, and the options of the verification
(docs/verifier.md, "Bundles")."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rag_audit._internal.errors import BundleError
from rag_audit.log.note import MAX_NOTE_BYTES
from rag_audit.models.models import Count, DecimalText, Hex32, Model, repeated
from rag_audit.models.tiles import MAX_TILE_BYTES
from rag_audit.models.trust import MAX_TRUST_BYTES
from rag_audit.models.windowfile import MAX_SIBLINGS_BYTES

MEDIA_TYPE: Literal["application/vnd.rag-audit.bundle+json;version=1"] = (
    "application/vnd.rag-audit.bundle+json;version=1"
)
MANIFEST = "manifest.json"
REPORT = "report.json"
MAX_MANIFEST_BYTES = 16 << 20
MAX_REPORT_BYTES = 64 << 20
MAX_FILES = 60_000
"""Maximum packed files; accounts pack many receipts into tiles (`account receipt pack`)."""
MAX_TOTAL_BYTES = 3 << 30
"""Maximum total bytes of the packed files: a ZIP archive of this size needs no extension of the format."""

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._@+=-]{0,127}"
_TILE = r"tiles/[0-9a-f]{64}\.json"
_NUMBER = "[0-9]{1,5}"
_PATHS = "|".join(
    [
        REPORT.replace(".", "[.]"),
        f"trust/{_NAME}",
        f"window/({_NAME}|{_TILE})",
        f"(receipts|previous)/{_NUMBER}/({_NAME}|{_TILE})",
        f"challenges/{_NUMBER}/{_NAME}",
    ]
)
PATH = re.compile(rf"\A(?:{_PATHS})\Z")
FOLDER = re.compile(rf"\Areceipts/{_NUMBER}\Z")
PackedPath = Annotated[str, StringConstraints(pattern=rf"^({_PATHS})$")]
"""The place of a packed file. It begins with the file's role and ends with the file's own name, so that a repeated
verification quotes the same names. No part of it begins with a dot."""
NAME = re.compile(rf"\A{_NAME}\Z")

_LIMITS = {
    REPORT: MAX_REPORT_BYTES,
    "trust": MAX_TRUST_BYTES,
    "window": MAX_SIBLINGS_BYTES,
    "previous": MAX_SIBLINGS_BYTES,
    "receipts": MAX_TILE_BYTES,
    "challenges": MAX_NOTE_BYTES,
}


def limit_of(path: str) -> int:
    """The maximum bytes of a packed file, by its role.

    >>> limit_of("trust/trust.toml") == MAX_TRUST_BYTES
    True
    """
    return _LIMITS[path.partition("/")[0]]


class PackedFile(Model):
    """A packed file."""

    path: PackedPath
    bytes: Count
    sha256: Hex32


class PackedOptions(Model):
    """The options of the verification that decide its verdict, besides the files. The engine is none of them: every
    engine gives the same verdict."""

    max_epsilon: DecimalText | None
    allow_unsafe_setup: bool


class Manifest(Model):
    """The content of a bundle. The files are in the order of their paths, and every file has a role."""

    mediaType: Literal["application/vnd.rag-audit.bundle+json;version=1"]
    window: PackedPath
    trust: PackedPath
    receipts: list[Annotated[str, StringConstraints(pattern=r"^receipts/[0-9]{1,5}(/.+)?$")]]
    """for each file or folder that `--receipts` named, the file or the folder"""
    previous: list[PackedPath]
    challenges: list[PackedPath]
    options: PackedOptions
    files: Annotated[list[PackedFile], Field(min_length=3, max_length=MAX_FILES)]

    def check(self) -> None:
        """Check that the files and their roles agree.

        :raises BundleError: a file is named twice, has no role, or a role names no file
        """
        paths = [file.path for file in self.files]
        if twice := repeated(path.casefold() for path in paths):
            raise BundleError("the manifest names a file twice", field=f"{MANIFEST}.files", actual=twice[0])
        known = set(paths)
        roles = [
            REPORT,
            self.window,
            self.trust,
            *self.previous,
            *self.challenges,
            *(path for path in self.receipts if not FOLDER.match(path)),
        ]
        if lost := [path for path in roles if path not in known]:
            raise BundleError("the bundle lacks a file of its manifest", field=MANIFEST, expected=lost[0])
        folders = {path.rpartition("/")[0] for path in (self.window, *self.previous)}
        folders |= {path if FOLDER.match(path) else path.rpartition("/")[0] for path in self.receipts}
        for path in paths:
            if path not in roles and path.rpartition("/")[0].removesuffix("/tiles") not in folders:
                raise BundleError("a file of the bundle has no role", field=MANIFEST, actual=path)
