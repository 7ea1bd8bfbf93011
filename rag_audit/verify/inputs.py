"""The files that a verifier is given, read once, with their names and digests for the report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeAlias

from rag_audit._internal.canonical import Json, bounded_text, parse_json, read_bytes, sha256
from rag_audit._internal.errors import EncodingError, RagAuditError
from rag_audit.log.note import MAX_NOTE_BYTES
from rag_audit.models.challenge import Challenge
from rag_audit.models.records import CountersignedReceipt
from rag_audit.models.tiles import RECEIPTS, read_receipts
from rag_audit.models.trust import MAX_TRUST_BYTES, Trust
from rag_audit.models.windowfile import WindowFile, window_file
from rag_audit.verify.case import ReceiptFile
from rag_audit.verify.checks.challenge import open_challenge

MAX_RECEIPT_BYTES = 8 << 20
EARLY = "the window is not complete: the provider publishes window.json after its end and its proofs; repeat this then"
FETCH = "fetch window.json and its sibling files from the provider's public folder"
ABSENT = f"name the folder `public` of the window, or {FETCH}"
Role: TypeAlias = Literal["window", "sibling", "trust", "previous", "challenge", "attacks"]


@dataclass(frozen=True)
class Inputs:
    """The files that a verdict rests on, by name and digest.

    :param files: (role, name, SHA-256) of each file, without a digest if the library received a value
    :param receipts: (name, SHA-256) of each supplied receipt file
    """

    files: list[tuple[Role, str, str | None]] = field(default_factory=list)
    receipts: list[tuple[str, str]] = field(default_factory=list)

    def add(self, role: Role, name: str, digest: str | None) -> None:
        """Write down a file."""
        self.files.append((role, name, digest))


@dataclass(frozen=True)
class VerifierOptions:
    """What one run of a verifier asks for besides its trust file.

    :param engine: the verifier of proofs: native; py_ecc or snarkjs, for circuits; or reference, for all systems
    :param max_epsilon: a tighter limit than trust.toml's
    :param allow_unsafe_setup: accept one-party keys; the verdict then states this
    """

    engine: str = "native"
    max_epsilon: str | None = None
    allow_unsafe_setup: bool = False

    def applied(self, trust: Trust) -> tuple[Trust, list[str]]:
        """The trust file with these options, and the names of the exceptions that the verdict states.

        :raises SchemaError: `max_epsilon` is not a decimal number
        """
        require, requested = trust.require, self.max_epsilon
        unsafe = self.allow_unsafe_setup or require.allow_unsafe_setup
        exceptions = {
            "unsafe-setup": unsafe,
            "max-epsilon-by-option": requested is not None and require.max_epsilon is None,
            "minority-quorum": require.allow_minority_quorum,
            **trust.assumptions,
        }
        update: dict[str, Json] = {"allow_unsafe_setup": unsafe}
        update |= {} if requested is None else {"max_epsilon": requested}
        try:
            changed = type(require).parse({**require.model_dump(), **update}, field="options")
        except RagAuditError as exc:
            exc.hint = "give --max-epsilon as a decimal number, such as 8 or 0.5"
            raise
        if requested is not None and require.max_epsilon is not None:
            tighter = min(require.max_epsilon, requested, key=Decimal)
            changed = changed.model_copy(update={"max_epsilon": tighter})
        return trust.model_copy(update={"require": changed}), [n for n, holds in exceptions.items() if holds]


def _missing(what: str, path: Path, remedy: str) -> EncodingError:
    """The error about a file that is not there. A report has only the last name of the path."""
    name = _printable_path(path)
    error = EncodingError(f"{what} not found: {name}", field=name, hint=remedy)
    error.missing = True
    return error


@contextmanager
def reading(what: str, path: Path, *, missing: str, remedy: str) -> Iterator[None]:
    """Add the verifier's file, and a remedy, to an error in the block.

    :param missing: the remedy if the file does not exist
    :param remedy: the remedy if the file exists and is wrong
    :raises RagAuditError: the block's own error, with a hint
    """
    try:
        yield
    except RagAuditError as exc:
        if not path.exists():
            raise _missing(what, path, missing) from exc
        if exc.hint is None:
            exc.hint = remedy
        raise


def reading_trust(path: Path) -> AbstractContextManager[None]:
    """`reading` of trust.toml."""
    return reading("trust file", path, missing="create one with `rag-audit verifier trust new`",
                   remedy="correct the trust file, or make a new one with `rag-audit verifier trust new`")  # fmt: skip


def reading_window(path: Path) -> AbstractContextManager[None]:
    """`require_window`, and `reading` of a window file."""
    require_window(path)
    return reading("window file", window_file(path), missing=ABSENT,
                   remedy=f"{FETCH} a second time; if the files are the same, ask the provider")  # fmt: skip


def require_window(path: Path) -> None:
    """Raise an EncodingError about a folder without a window file, before a longer task reads it."""
    if path.is_dir() and not (path / "window.json").exists():
        raise _missing(
            "window file", path / "window.json", EARLY if (path / "header.json").exists() else ABSENT
        )


def reading_challenge(path: Path) -> AbstractContextManager[None]:
    """`reading` of a challenge that the verifier drew itself."""
    return reading("challenge", path, missing="draw one with `rag-audit verifier challenge`",
                   remedy="draw a new one with `rag-audit verifier challenge`,"
                          " by a key that trust.toml names")  # fmt: skip


def read_trust(path: Path, inputs: Inputs) -> Trust:
    """`Trust.load`, with the file's digest written down.

    >>> inputs = Inputs()
    >>> read_trust(Path("docs/examples/trust.toml"), inputs).quorum, inputs.files[0][:2]
    (2, ('trust', 'trust.toml'))
    """
    with reading_trust(path):
        data = read_bytes(path, max_bytes=MAX_TRUST_BYTES)
        inputs.add("trust", printable_name(path), sha256(data).hex())
        return Trust.from_toml(data, source=str(path))


def read_window(path: Path, inputs: Inputs) -> tuple[WindowFile, list[RagAuditError]]:
    """`WindowFile.load_to_judge`, with the digests of the file and its siblings written down.

    >>> file, unreadable = read_window(Path("docs/examples"), Inputs())
    >>> len(file.entries), unreadable
    (12, [])
    """
    file, digests, unreadable = WindowFile.load_to_judge(path)
    for number, (name, digest) in enumerate(digests.items()):
        inputs.add("sibling" if number else "window", name, digest)
    return file, unreadable


def read_challenge(path: Path, trust: Trust, inputs: Inputs) -> Challenge:
    """A challenge of the verifier's own (`open_challenge`), with the file's digest written down."""
    with reading_challenge(path):
        data = read_bytes(path, max_bytes=MAX_NOTE_BYTES)
        inputs.add("challenge", printable_name(path), sha256(data).hex())
        text = bounded_text(data, what="note", field=path.name, max_bytes=MAX_NOTE_BYTES)
        return open_challenge(text, trust, field=path.name)


@dataclass(frozen=True)
class Published:
    """A file with another party's challenge. It counts like a challenge in the window file."""

    path: Path


def with_published(file: WindowFile, given: Sequence[Published], inputs: Inputs) -> WindowFile:
    """The window file with further published challenges, each of them once."""
    texts = list(file.challenges)
    for path in (one.path for one in given):
        with reading_challenge(path):
            data = read_bytes(path, max_bytes=MAX_NOTE_BYTES)
            inputs.add("challenge", printable_name(path), sha256(data).hex())
            texts.append(bounded_text(data, what="note", field=path.name, max_bytes=MAX_NOTE_BYTES))
    return file.model_copy(update={"challenges": list(dict.fromkeys(texts))}) if given else file


def load_receipts(paths: Sequence[Path], inputs: Inputs | None = None) -> tuple[list[ReceiptFile], list[str]]:
    """Load countersigned receipts from files and folders (``*.json``), in the order of their names.

    :param inputs: records each file's digest
    :returns: the receipts, and a complaint for each file or folder that is no receipt. Receipts come from other
        parties, so an unreadable one must not prevent the verdict on the rest of the window
    :raises EncodingError: one of the paths does not exist, or is the parent of folders with receipts

    >>> receipts, complaints = load_receipts([Path("docs/examples/receipts")])
    >>> len(receipts), complaints
    (7, [])
    """
    receipts: list[ReceiptFile] = []
    unread: list[str] = []
    for path in paths:
        if not os.path.lexists(path):
            raise _missing("receipts", path,
                           "give --receipts the exported files, or omit it if no account asked")  # fmt: skip
        try:
            inside = (
                sorted(f for f in path.iterdir() if f.name.endswith(".json")) if path.is_dir() else [path]
            )
        except OSError as exc:
            unread.append(f"{printable_name(path)}: {EncodingError('cannot be read', actual=exc.strerror)}")
            continue
        if not inside and path.is_dir():
            _refuse_parent(path)
        for file in inside:
            name = printable_name(file)
            try:
                data = read_bytes(_regular(file), max_bytes=MAX_RECEIPT_BYTES)
                if inputs is not None:
                    inputs.receipts.append((name, sha256(data).hex()))
                value = parse_json(data, source=name)
                if isinstance(value, dict) and value.get("mediaType") == RECEIPTS:
                    _from_tiles(value, file, receipts, unread)
                    continue
                receipts.append(ReceiptFile(name, CountersignedReceipt.parse(value, field=name)))
            except RagAuditError as exc:
                if exc.field is not None:  # a report contains only the last names of paths
                    exc.field = exc.field.replace(str(file), name)
                unread.append(f"{name}: {exc}")
    return receipts, unread


def _refuse_parent(path: Path) -> None:
    """Refuse a folder without receipts if its subfolders have some: it is probably the parent of the right folder.

    :raises EncodingError: the subfolders have receipts
    """
    try:
        below = sorted(f.name for f in path.iterdir() if f.is_dir() and any(f.glob("*.json")))
    except OSError:
        return
    if below:
        named = ", ".join(printable_name(Path(name)) for name in below[:4])
        more = f" and {len(below) - 4} more" if len(below) > 4 else ""
        raise EncodingError(
            "the folder has no receipts, and its subfolders have",
            field=_printable_path(path),
            expected="a folder with the receipts of one window",
            actual=f"receipts in {named}{more}",
            hint="give --receipts the subfolder of the window, for example"
            f" {_printable_path(path / below[0])}",
        )


def _from_tiles(value: Json, file: Path, receipts: list[ReceiptFile], unread: list[str]) -> None:
    """Add the receipts of a receipts.json. Its digest represents the digests of its tiles."""
    for result in read_receipts(value, file):
        if isinstance(result, RagAuditError):
            unread.append(f"{printable_name(file)}: {result}")
            continue
        name = f"{printable_name(file)}/{result[0]}"
        try:
            receipts.append(ReceiptFile(name, CountersignedReceipt.parse(result[1], field=name)))
        except RagAuditError as exc:
            unread.append(f"{name}: {exc}")


def _regular(path: Path) -> Path:
    """Check that a path is a regular file, since reading a folder, pipe or device may fail or never end.

    :raises EncodingError: the path is not a regular file
    """
    if path.exists() and not path.is_file():
        raise EncodingError("the path is not a regular file", field=path.name)
    return path


def printable_name(path: Path) -> str:
    """A file's name for the report, even if it is not Unicode.

    >>> printable_name(Path(os.fsdecode(b"a\\xff.json")))
    'a\\\\xff.json'
    """
    return os.fsencode(path.name).decode(errors="backslashreplace")


def _printable_path(path: Path) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")


def read_previous(path: Path, inputs: Inputs) -> WindowFile | RagAuditError:
    """An earlier window, or its error if it cannot be read. `header.chain` reports the error; other windows count.

    :raises EncodingError: the path does not exist, or the folder has no window.json
    """
    if not os.path.lexists(window_file(path)):
        raise _missing("previous window", window_file(path),
                       "give --previous the window.json, or the folder `public`, of an earlier window, or a folder of"
                       " such windows")  # fmt: skip
    try:
        file, digests = WindowFile.load_with_digests(path)
        inputs.add("previous", *next(iter(digests.items())))
        return file
    except RagAuditError as exc:
        return exc
