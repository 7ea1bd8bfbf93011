"""Makes a bundle of a verification, and compares a packed report with the verdict on the packed files."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import rag_audit
from rag_audit._internal.canonical import Json, parse_json, read_bytes
from rag_audit._internal.durable import create_file
from rag_audit._internal.errors import BundleError, EncodingError, RagAuditError
from rag_audit._internal.regular import open_regular
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.models.bundle import MEDIA_TYPE, NAME, REPORT, Manifest, PackedOptions
from rag_audit.models.tiles import FOLDER, RECEIPTS
from rag_audit.models.windowfile import MAX_WINDOW_BYTES, SIBLING, WindowFile, named_siblings, window_file
from rag_audit.proofs.checking import Checking
from rag_audit.report import render_report
from rag_audit.report.archive import Unpacked, packed_file, write_archive
from rag_audit.report.build import report_of
from rag_audit.report.model import Report, Weakness
from rag_audit.report.signature import signed
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.verify.inputs import MAX_RECEIPT_BYTES, VerifierOptions, printable_name

_TILE = re.compile(r"\A[0-9a-f]{64}\Z")
_LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, the largest time that a report can print."""
_CORE = ("line", "outcome", "exit_code", "decided_by")


@dataclass(frozen=True)
class Files:
    """The files of a verification, by role."""

    window: Path
    trust: Path
    receipts: Sequence[Path] = ()
    previous: Sequence[Path] = ()
    challenges: Sequence[Path] = ()


def make_bundle(
    files: Files,
    out: Path,
    *,
    options: VerifierOptions = VerifierOptions(),
    key: SigningKey | None = None,
    checking: Callable[[WindowFile], Checking] | None = None,
    now: int | None = None,
) -> Report:
    """Copy the files of a verification, verify the copies, and pack them with the report.

    :param options: of the verification; `max_epsilon` and `allow_unsafe_setup` are packed
    :param key: signs the report
    :param checking: makes the object that verifies the window's proofs
    :param now: the report's time in milliseconds since the epoch; the present by default
    :returns: the packed report
    :raises BundleError: a file has a name that a bundle cannot contain
    :raises RagAuditError: an input cannot be read, or the archive cannot be written
    """
    with tempfile.TemporaryDirectory(prefix="rag-audit-bundle-") as name:
        folder = Path(name)
        places = _Copies(folder)
        window = places.window(window_file(files.window), "window")
        trust = places.copy(files.trust, "trust")
        receipts = [places.receipts(path, f"receipts/{i}") for i, path in enumerate(files.receipts)]
        previous = [places.window(window_file(p), f"previous/{i}") for i, p in enumerate(files.previous)]
        challenges = [places.copy(path, f"challenges/{i}") for i, path in enumerate(files.challenges)]
        verdict = verify_window(
            folder / window,
            trust=folder / trust,
            receipts=[folder / path for path in receipts],
            previous=[folder / path for path in previous],
            challenges=[folder / path for path in challenges],
            options=options,
            checking=checking,
        )
        report = report_of(verdict, now=now, command=("rag-audit", "verify", printable_name(out)))
        packed = report if key is None else signed(report, key)
        create_file(folder / REPORT, render_report(packed, "json").encode())
        manifest = Manifest(
            mediaType=MEDIA_TYPE,
            window=window,
            trust=trust,
            receipts=receipts,
            previous=previous,
            challenges=challenges,
            options=PackedOptions(
                max_epsilon=options.max_epsilon, allow_unsafe_setup=options.allow_unsafe_setup
            ),
            files=[packed_file(folder, path) for path in sorted([*places.copied, REPORT])],
        )
        manifest.check()
        write_archive(folder, manifest, out)
    return report


class _Copies:
    """Copies of a verifier's files in the folders of a bundle.

    :ivar copied: the copies' places, relative to the folder
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.copied: set[str] = set()

    def copy(self, source: Path, place: str) -> str:
        """Copy a file under its own name.

        :param place: the folder below the bundle's folder
        :returns: the copy's place
        :raises BundleError: the file has a name that a bundle cannot contain
        :raises EncodingError: the file cannot be read
        """
        name = source.name if source.name else source.resolve().name
        if not NAME.match(name):
            raise BundleError(
                "the name of a file cannot be packed",
                field=printable_name(source),
                expected="letters, digits and . _ @ + = -, without a dot at the beginning",
                hint="copy the file under another name",
            )
        path = f"{place}/{name}"
        if path in self.copied:
            return path
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_regular(source) as handle, target.open("xb") as out:
                shutil.copyfileobj(handle, out)
        except OSError as exc:
            raise EncodingError.of_os_error(exc, "cannot be read", field=source) from exc
        self.copied.add(path)
        return path

    def window(self, source: Path, place: str) -> str:
        """Copy a window file with the siblings and tiles that it names.

        :returns: the window file's place
        """
        value = parse_json(read_bytes(source, max_bytes=MAX_WINDOW_BYTES), source=source.name)
        path = self.copy(source, place)
        if isinstance(value, dict):
            for _, name in named_siblings(value, source):
                self._companion(source.with_name(name), place)
            for part in ("entries", "proofs"):
                self._tiles(value.get(part), source, place)
        return path

    def receipts(self, source: Path, place: str) -> str:
        """Copy a file or a folder of receipts, with the tiles that they name.

        :returns: the place of the file or folder
        """
        if not source.is_dir():
            return self._receipt_file(source, place)
        inside = sorted(path for path in source.iterdir() if path.name.endswith(".json"))
        if not inside:
            raise BundleError("the folder contains no receipt", field=printable_name(source),
                              expected="at least one file *.json")  # fmt: skip
        for path in inside:
            self._receipt_file(path, place)
        return place

    def _receipt_file(self, source: Path, place: str) -> str:
        path = self.copy(source, place)
        with suppress(RagAuditError):  # the verification reports an unreadable receipt
            value = parse_json(read_bytes(source, max_bytes=MAX_RECEIPT_BYTES), source=source.name)
            if isinstance(value, dict) and value.get("mediaType") == RECEIPTS:
                self._tiles(value, source, place)
        return path

    def _tiles(self, part: Json, source: Path, place: str) -> None:
        tiles = part.get("tiles") if isinstance(part, dict) else None
        for tile in tiles if isinstance(tiles, list) else []:
            digest = tile.get("sha256") if isinstance(tile, dict) else None
            if isinstance(digest, str) and _TILE.match(digest):
                self._companion(source.parent / FOLDER / f"{digest}.json", f"{place}/{FOLDER}")

    def _companion(self, source: Path, place: str) -> None:
        """Copy a sibling or a tile. The verification reports an absent one."""
        if SIBLING.match(source.name) and source.is_file():
            self.copy(source, place)


@dataclass(frozen=True)
class Comparison:
    """How to compare the report of a bundle.

    :param own_trust: whether the reader's own trust file and options decide the verdict instead of the packed ones
    :param signer: the key that the reader pins for the packed report's signature
    """

    own_trust: bool
    signer: VerifierKey | None


def compared(verdict: ReportedVerdict, unpacked: Unpacked, how: Comparison) -> ReportedVerdict:
    """Compare the verdict on a bundle's files with the packed report, and begin the verdict's notes with two notes:
    whose trust file decided, and who signed the packed report.

    :raises BundleError: the packed report is about another window or other files, or differs from the report on the
        packed files under the packed trust file
    :raises SignatureError: the packed report's signature is wrong, or is not by the pinned key
    """
    from rag_audit.report.signature import check_signature

    value = unpacked.report()
    signer = check_signature(value, how.signer, field=REPORT)
    if signer is None:
        words = f"the packed {REPORT} has no signature"
    elif how.signer is None:
        words = (
            f"the key {signer.name}+{signer.key_id.hex()} signed the packed {REPORT}; this run had no --signer, so no"
            " check shows who has this key"
        )
    else:
        words = f"the key {signer.name}+{signer.key_id.hex()} of --signer signed the packed {REPORT}"
    remark = None
    if how.own_trust:
        own = _subject(report_of(verdict).dump())
        _require_same(_under_packed_trust(own, unpacked.manifest), _subject(value))
        line = value.get("line")
        whose = (
            "this verdict used the reader's own trust file and options, and not the bundle's; challenges of the bundle"
            " counted like challenges of the window file. The packed report is about the same window and files, and its"
            f" line {'equals' if line == verdict.line else 'differs from'} this verdict's line: {line}"
        )
        if {value.get("outcome"), str(line).partition(" ")[0]} != {verdict.outcome}:
            remark = _other_outcome(value, signer, verdict)
            whose = f"WARNING: {remark.words}. {whose}"
    else:
        compared_with = _require_equal(verdict, value)
        digest = next(file.sha256 for file in unpacked.manifest.files if file.path == unpacked.manifest.trust)
        whose = (
            f"this verdict used the sender's trust file from the bundle ({digest}): the sender chose its keys and its"
            " limits; --trust names your own"
        )
        if unpacked.manifest.challenges:
            whose += ". The sender also supplied the challenges that count as the verifier's own"
        words = f"{compared_with}; {words}"
        remark = Weakness(
            id="senders_trust",
            words=f"the sender's trust file {digest[:16]} decided",
            better="decide by your own trust file (verify --trust)",
        )
    return replace(verdict, notes=[whose, words, *verdict.notes], bundle=remark)


def _other_outcome(
    value: Mapping[str, Json], signer: VerifierKey | None, verdict: ReportedVerdict
) -> Weakness:
    """The warning that a packed report states another outcome than the reader's own trust file and options give."""
    by = "which has no signature" if signer is None else f"which {signer.name}+{signer.key_id.hex()} signed"
    said = str(value.get("line")).partition(" ")[0][:40]
    if said == verdict.outcome:
        said = str(value.get("outcome"))[:40]
    return Weakness(
        id="packed_report",
        words=f"the packed report, {by}, says {said}",
        better="ask the verifier who made the packed report for the reason before you rely on this verdict",
    )


def _require_equal(verdict: ReportedVerdict, value: dict[str, Json]) -> str:
    """Compare a packed report with the report of a verdict. If the same release made both, all fields must be equal
    apart from the signature; else the outcome, every check's outcome, the window and the files.

    :returns: the words for what is equal
    """
    filing = value.get("filing")
    version = filing.get("version") if isinstance(filing, dict) else None
    own: dict[str, Json]
    packed: Json
    if version == rag_audit.__version__:
        report = Report.parse(value, field=REPORT)
        if not 0 <= (now := report.filing.verified_at) <= _LAST_MS:
            raise BundleError(
                "the packed report has no time", field=f"{REPORT}.filing.verified_at", actual=now
            )
        own = report_of(verdict, now=now, command=tuple(report.filing.command)).dump()
        packed = {**value, "signature": None}
        words = "this verdict equals the verdict of the packed report"
    else:
        own, packed = _core(report_of(verdict).dump()), _core(value)
        words = (
            f"another release ({str(version)[:40]}) made the packed report: its verdict line, its checks' outcomes, its"
            " window and its files equal this verdict's, and no check compared its other fields"
        )
    # The verdict lines are compared first, so that the error names both of them.
    for place, ours, theirs in _differences({"line": verdict.line, **own}, packed):
        raise BundleError(
            "the packed report differs from the verdict on the packed files",
            field=f"{REPORT}{place}",
            expected=ours,
            actual=theirs,
            hint="do not rely on the packed report; unpack the archive, and verify its files under your own trust file"
            if version == rag_audit.__version__
            else f"release {version} made the report: repeat the command with this release",
        )
    return words


def _require_same(own: dict[str, Json], packed: dict[str, Json]) -> None:
    """Compare the subjects of two reports.

    :raises BundleError: the packed report is about another window or other files
    """
    for place, ours, theirs in _differences(own, packed):
        raise BundleError(
            "the packed report is about another window or about other files than the packed ones",
            field=f"{REPORT}{place}",
            expected=ours,
            actual=theirs,
            hint="do not rely on the packed report; unpack the archive, and verify its files under your own trust file",
        )


def _subject(value: Mapping[str, Json]) -> dict[str, Json]:
    """The window and the files that a report is about. A header alone does not determine a ledger: the provider can
    write two ledgers under one header, and the root differs."""
    window, filing = value.get("window"), value.get("filing")
    window = window if isinstance(window, dict) else {}
    filing = filing if isinstance(filing, dict) else {}
    files, receipts = filing.get("inputs"), filing.get("receipts")
    roles: dict[str, list[str]] = {}
    for file in files if isinstance(files, list) else []:
        if isinstance(file, dict):
            roles.setdefault(str(file.get("role")), []).append(str(file.get("sha256")))
    return {
        "header": window.get("header"),
        "root": window.get("root"),
        "inputs": {role: list[Json](sorted(digests)) for role, digests in roles.items()},
        "receipts": receipts.get("sha256") if isinstance(receipts, dict) else None,
    }


def _under_packed_trust(subject: dict[str, Json], manifest: Manifest) -> dict[str, Json]:
    """A subject with the packed trust file and challenges in place of the reader's."""
    digests = {file.path: file.sha256 for file in manifest.files}
    inputs = subject["inputs"]
    assert isinstance(inputs, dict)
    packed: dict[str, Json] = {"trust": [digests[manifest.trust]]}
    if manifest.challenges:
        packed["challenge"] = list[Json](sorted(digests[path] for path in manifest.challenges))
    kept = {role: value for role, value in inputs.items() if role not in ("trust", "challenge")}
    return {**subject, "inputs": {**kept, **packed}}


def _core(value: Mapping[str, Json]) -> dict[str, Json]:
    checks = value.get("checks")
    return {
        **{name: value.get(name) for name in _CORE},
        **_subject(value),
        "checks": [
            [check.get("id"), check.get("outcome")] if isinstance(check, dict) else None
            for check in (checks if isinstance(checks, list) else [])
        ],
    }


def _differences(own: Json, packed: Json, place: str = "") -> Iterator[tuple[str, Json, Json]]:
    """The places where two JSON values differ, with both values."""
    if isinstance(own, dict) and isinstance(packed, dict):
        for name in dict.fromkeys([*own, *packed]):
            yield from _differences(own.get(name), packed.get(name), f"{place}.{name}")
    elif isinstance(own, list) and isinstance(packed, list) and len(own) == len(packed):
        for number, (ours, theirs) in enumerate(zip(own, packed, strict=True)):
            yield from _differences(ours, theirs, f"{place}[{number}]")
    elif own != packed or type(own) is not type(packed):
        yield place, own, packed
