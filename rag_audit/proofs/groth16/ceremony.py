"""Phase 2 of a setup by several parties (Bowe, Gabizon, Miers 2017), in snarkjs's file formats.

Each party multiplies the key's delta by a secret of its own and proves that it knew it. Whoever forges a proof needs
all of them, so one party that forgets its secret is enough. That the parties are different people is nothing that a
file can show: their names are their own words, and a contributor finds its contribution again by its hash.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rag_audit import _native
from rag_audit.canonical import Json
from rag_audit.errors import CeremonyError, SetupError
from rag_audit.proofs.groth16.circuit import compile_circuit
from rag_audit.proofs.groth16.instance import Instance
from rag_audit.proofs.groth16.keys import KeyFiles, file_digest, installed, load_keys, write_keys
from rag_audit.toolchain import build_once

MAX_NAME_BYTES = 64
BEACON_EXPONENT = 10
"""A beacon's value is hashed 2^10 times, which is what snarkjs asks for at least."""
MIN_CONTRIBUTIONS = 2


@dataclass(frozen=True)
class Contribution:
    """What one contribution says of itself.

    :param name: in its contributor's words
    :param beacon: the public value, if it is one in place of a contributor's secret
    :param digest: BLAKE2b-512 of a phase-2 contribution, in hexadecimal, as snarkjs prints it; empty in phase 1
    """

    name: str
    beacon: str | None
    digest: str

    def as_json(self) -> dict[str, Json]:
        """For programs."""
        return {"name": self.name, "beacon": self.beacon, "digest": self.digest}


@dataclass(frozen=True)
class Ceremony:
    """Both phases of a key that was checked.

    :param phase1: of the powers of tau
    :param phase1_digest: SHA-256 of their file
    :param phase2: of the key
    """

    phase1: tuple[Contribution, ...]
    phase1_digest: str
    phase2: tuple[Contribution, ...]

    @property
    def setup(self) -> str:
        """`ceremony` if two parties or more gave a secret in each phase, else `unsafe`. Beacons have no secret."""
        fewest = min(_secret(self.phase1), _secret(self.phase2))
        return "ceremony" if fewest >= MIN_CONTRIBUTIONS else "unsafe"

    def as_json(self) -> dict[str, Json]:
        """For programs."""
        return {
            "phase1": {
                "sha256": self.phase1_digest,
                "contributions": [c.as_json() for c in self.phase1],
            },
            "contributions": [c.as_json() for c in self.phase2],
            "setup": self.setup,
        }


def start(instance: Instance, ptau: Path, out: Path) -> None:
    """Write an instance's key before any contribution; nobody may prove with it.

    :param ptau: powers of tau, prepared for phase 2
    :raises CeremonyError: the powers are proven false
    :raises SetupError: `out` exists, or a file cannot be read or written
    """
    _refuse_existing(out)
    check_powers(ptau)
    circuit = compile_circuit(instance)
    with _named(ptau):
        _native.zkey_new(circuit.r1cs, ptau, out)


def contribute(old: Path, new: Path, name: str) -> Contribution:
    """Multiply a key's delta by a secret from the operating system, which is wiped, and write the key to `new`.

    :param name: at most 64 bytes, printable
    :raises SetupError: `new` exists, another name, or a file cannot be read or written
    """
    if not name.isprintable() or not 1 <= len(name.encode()) <= MAX_NAME_BYTES:
        raise SetupError(
            "not a contributor's name",
            field="name",
            expected=f"1..{MAX_NAME_BYTES} bytes, printable",
            found=ascii(name),
        )
    _refuse_existing(new)
    with _named(old):
        digest = _native.zkey_contribute(old, new, name)
    return Contribution(name, None, digest.hex())


def check_powers(ptau: Path) -> None:
    """Check powers of tau: contributions, powers, and the forms that were made of them for phase 2.

    :raises CeremonyError: proven false
    :raises SetupError: malformed or unreadable
    """
    with _named(ptau):
        fault = _native.ptau_fault(ptau)
    if fault is not None:
        raise CeremonyError("the powers of tau are false", field=str(ptau), found=fault)


def check_key(r1cs: Path, ptau: Path, zkey: Path, *, shown: Path | None = None) -> Ceremony:
    """Check that a key is the circuit's under these powers but for its contributions, and check all of them.

    :param r1cs: the circuit's constraints
    :param shown: what errors call the key, if it is a copy
    :raises CeremonyError: proven false
    :raises SetupError: malformed or unreadable
    """
    check_powers(ptau)
    shown = shown or zkey
    with _named(zkey, shown):
        fault = _native.zkey_fault(r1cs, ptau, zkey)
        phase2 = _native.zkey_contributions(zkey)
        phase1 = _native.ptau_contributions(ptau)
    if fault is not None:
        raise CeremonyError("the key is false", field=str(shown), found=fault)
    return Ceremony(tuple(map(_contribution, phase1)), file_digest(ptau), tuple(map(_contribution, phase2)))


def finalise(instance: Instance, ptau: Path, zkey: Path, *, beacon: bytes | None = None) -> KeyFiles:
    """Check a key and install it in the user cache: `proving_key` gives it from now on.

    :param beacon: a public value that nobody could know before the last contribution, added as the last one
    :raises CeremonyError: the key or the powers are proven false, or nobody contributed
    :raises SetupError: malformed or unreadable, or another key is installed
    """
    circuit = compile_circuit(instance)
    digest = instance.digest()
    folder = installed(digest)
    if folder.exists():
        raise SetupError(
            "a key of this circuit is installed already",
            field=str(folder),
            found=f"vk {load_keys(folder, digest).vk_digest}",
            hint=f"windows that name it need it; if there are none: rm -r {folder}",
        )

    def build(partial: Path) -> None:
        key = partial / "key.zkey"
        with _named(zkey):
            if beacon is None:
                shutil.copyfile(zkey, key)
            else:
                _native.zkey_beacon(zkey, key, "final beacon", beacon, BEACON_EXPONENT)
        # The copy is checked, not the original, which could change in between.
        ceremony = check_key(circuit.r1cs, ptau, key, shown=zkey)
        if _secret(ceremony.phase2) == 0:
            raise CeremonyError("nobody contributed: anyone can forge proofs under this key", field=str(zkey))
        write_keys(
            partial,
            instance,
            phase1=f"sha256:{ceremony.phase1_digest}",
            contributions=_secret(ceremony.phase2),
            setup=ceremony.setup,
            extra={"contributors": [c.as_json() for c in ceremony.phase2]},
        )

    return load_keys(build_once(folder, build), digest)


def _secret(contributions: Sequence[Contribution]) -> int:
    return sum(c.beacon is None for c in contributions)


def _contribution(found: tuple[str, bytes | None, bytes]) -> Contribution:
    name, beacon, digest = found
    # Others wrote the name: nothing of it may steer a terminal.
    printable = "".join(c if c.isprintable() else "?" for c in name)
    return Contribution(printable, None if beacon is None else beacon.hex(), digest.hex())


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise SetupError("the file exists already", field=str(path), hint="give another name")


@contextmanager
def _named(path: Path, shown: Path | None = None) -> Iterator[None]:
    """Errors of the native core under this package's names; they name the file and the place in it."""
    try:
        yield
    except (ValueError, OSError) as exc:
        reason = str(exc).removeprefix(f"{path}: ")
        raise SetupError("not a usable setup file", field=str(shown or path), found=reason) from exc
