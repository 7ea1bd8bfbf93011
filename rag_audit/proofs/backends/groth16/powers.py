"""Phase 1 of a setup: files of powers of tau, the claims that they make, and the check of these claims."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import CeremonyError, SetupError
from rag_audit._internal.regular import open_regular


@dataclass(frozen=True)
class Contribution:
    """One contribution's description of itself.

    :param name: the contributor's name, chosen by the contributor
    :param beacon: the public value, if a beacon replaces a contributor's secret
    :param digest: BLAKE2b-512 in hexadecimal, as snarkjs prints it: of the response in phase 1, of the contribution in
        phase 2
    """

    name: str
    beacon: str | None
    digest: str

    @classmethod
    def of(cls, actual: tuple[str, bytes | None, bytes]) -> Contribution:
        """A contribution as the native core returns it."""
        name, beacon, digest = actual
        # Others wrote the name, so none of it may control a terminal.
        printable = "".join(c if c.isprintable() else "?" for c in name)
        return cls(printable, None if beacon is None else beacon.hex(), digest.hex())

    def as_json(self) -> dict[str, Json]:
        """The contribution as a JSON value, for programs."""
        return {"name": self.name, "beacon": self.beacon, "digest": self.digest}


@dataclass(frozen=True)
class Powers:
    """Checked powers of tau.

    :param digest: SHA-256 of the powers' file
    :param contributions: the contributions; at least one of them used a secret
    """

    digest: str
    contributions: tuple[Contribution, ...]


def secret(contributions: Sequence[Contribution]) -> int:
    """The number of contributions with a secret: all except beacons, which have public values."""
    return sum(c.beacon is None for c in contributions)


def check_powers(ptau: Path, *, digest: str | None = None) -> Powers:
    """Check powers of tau: the contributions, the powers, and their prepared forms for phase 2.

    A file that was cut from a larger ceremony's file cannot show that its last contribution was over these points. The
    function accepts it only by its digest, which the caller must have compared with the digest that the ceremony
    publishes.

    :param digest: SHA-256 that the file must have
    :raises CeremonyError: the powers are proven false, the file differs from the named one, it was cut from a larger
        one and is not named, or no contribution used a secret
    :raises SetupError: the file is malformed or unreadable
    """
    actual = file_digest(ptau)
    if digest is not None and actual != digest:
        raise CeremonyError(
            "the powers of tau are not the named ones", field=str(ptau), expected=digest, actual=actual
        )
    with named(ptau):
        held, claimed = _native.ptau_powers(ptau)
        if claimed != held and digest is None:
            raise CeremonyError(
                "the powers of tau claim a larger ceremony than they hold",
                field=str(ptau),
                expected=f"powers to 2^{claimed}",
                actual=f"powers to 2^{held}",
                hint="if it is a public ceremony's own cut file, compare its digest with the published one and name it:"
                f" --ptau-sha256 {actual}",
            )
        fault = _native.ptau_fault(ptau, part=digest is not None)
        if fault is not None:
            raise CeremonyError("the powers of tau are false", field=str(ptau), actual=fault)
        contributions = tuple(map(Contribution.of, _native.ptau_contributions(ptau)))
    if secret(contributions) == 0:
        raise CeremonyError("no party contributed a secret to the powers of tau, so anybody can forge proofs with them",
                            field=str(ptau))  # fmt: skip
    return Powers(actual, contributions)


def file_digest(path: Path, *, what: str = "powers of tau") -> str:
    """SHA-256 of a file.

    :raises SetupError: the file cannot be read
    """
    try:
        with open_regular(path) as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as exc:
        raise SetupError(f"{what} cannot be read", field=str(path), actual=exc.strerror) from exc


@contextmanager
def named(path: Path, shown: Path | None = None) -> Iterator[None]:
    """Raise errors of the native core as this package's errors, which name the file and the place in it."""
    try:
        yield
    except (ValueError, OSError) as exc:
        reason = str(exc).removeprefix(f"{path}: ")
        raise SetupError(
            "the file is not a usable setup file", field=str(shown or path), actual=reason
        ) from exc
