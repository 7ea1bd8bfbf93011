"""Phase 1 of a setup: files of powers of tau, what they say of themselves, and whether it is true."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rag_audit import _native
from rag_audit.encoding.canonical import Json
from rag_audit.encoding.durable import open_regular
from rag_audit.errors import CeremonyError, SetupError


@dataclass(frozen=True)
class Contribution:
    """What one contribution says of itself.

    :param name: in its contributor's words
    :param beacon: the public value, if it is one in place of a contributor's secret
    :param digest: BLAKE2b-512 in hexadecimal, as snarkjs prints it: in phase 1 of the response, in phase 2 of the
        contribution
    """

    name: str
    beacon: str | None
    digest: str

    @classmethod
    def of(cls, found: tuple[str, bytes | None, bytes]) -> Contribution:
        """From the native core."""
        name, beacon, digest = found
        # Others wrote the name: nothing of it may steer a terminal.
        printable = "".join(c if c.isprintable() else "?" for c in name)
        return cls(printable, None if beacon is None else beacon.hex(), digest.hex())

    def as_json(self) -> dict[str, Json]:
        """For programs."""
        return {"name": self.name, "beacon": self.beacon, "digest": self.digest}


@dataclass(frozen=True)
class Powers:
    """Powers of tau that were checked.

    :param digest: SHA-256 of their file
    :param contributions: one or more, of which at least one gave a secret
    """

    digest: str
    contributions: tuple[Contribution, ...]


def secret(contributions: Sequence[Contribution]) -> int:
    """How many gave a secret: all but beacons, whose values are public."""
    return sum(c.beacon is None for c in contributions)


def check_powers(ptau: Path, *, digest: str | None = None) -> Powers:
    """Check powers of tau: contributions, powers, and the forms that were made of them for phase 2.

    A file that was cut from a larger ceremony's cannot show that its last contribution was over these points: it is
    accepted only by its digest, which the caller has compared with the one that the ceremony publishes.

    :param digest: SHA-256 that the file must have
    :raises CeremonyError: proven false, another file than the named one, cut from a larger one and not named, or powers
        to which nobody gave a secret
    :raises SetupError: malformed or unreadable
    """
    found = file_digest(ptau)
    if digest is not None and found != digest:
        raise CeremonyError(
            "other powers of tau than the named ones", field=str(ptau), expected=digest, found=found
        )
    with named(ptau):
        held, claimed = _native.ptau_powers(ptau)
        if claimed != held and digest is None:
            raise CeremonyError(
                "the powers of tau claim a larger ceremony than they hold",
                field=str(ptau),
                expected=f"powers to 2^{claimed}",
                found=f"powers to 2^{held}",
                hint="if it is a public ceremony's own cut file, compare its digest with the published one and name it:"
                f" --ptau-sha256 {found}",
            )
        fault = _native.ptau_fault(ptau, part=digest is not None)
        if fault is not None:
            raise CeremonyError("the powers of tau are false", field=str(ptau), found=fault)
        contributions = tuple(map(Contribution.of, _native.ptau_contributions(ptau)))
    if secret(contributions) == 0:
        raise CeremonyError("nobody gave the powers of tau a secret: anyone can forge proofs under them",
                            field=str(ptau))  # fmt: skip
    return Powers(found, contributions)


def file_digest(path: Path, *, what: str = "powers of tau") -> str:
    """SHA-256 of a file.

    :raises SetupError: it cannot be read
    """
    try:
        with open_regular(path) as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as exc:
        raise SetupError(f"{what} cannot be read", field=str(path), found=exc.strerror) from exc


@contextmanager
def named(path: Path, shown: Path | None = None) -> Iterator[None]:
    """Errors of the native core under this package's names; they name the file and the place in it."""
    try:
        yield
    except (ValueError, OSError) as exc:
        reason = str(exc).removeprefix(f"{path}: ")
        raise SetupError("not a usable setup file", field=str(shown or path), found=reason) from exc
