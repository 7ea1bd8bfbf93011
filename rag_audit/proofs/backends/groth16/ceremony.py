"""Phase 2 of a setup by several parties (Bowe, Gabizon, Miers 2017), in snarkjs's file formats.

Each party multiplies the key's delta by its own secret and proves knowledge of the secret. Forging a proof takes all
the secrets, so one party that destroys its secret is enough. No file can show that the parties are different people:
each party chooses its own name, and a contributor recognises its contribution by its hash.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from rag_audit import _native
from rag_audit._internal.cache import build_once
from rag_audit._internal.canonical import Json
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import CeremonyError, SetupError
from rag_audit.proofs.backends.groth16.circuit import compile_circuit, compiled_anew
from rag_audit.proofs.backends.groth16.instance import Instance
from rag_audit.proofs.backends.groth16.keys import KeyFiles, VerificationKey, installed, load_keys, write_keys
from rag_audit.proofs.backends.groth16.powers import Contribution, check_powers, file_digest, named, secret

MAX_NAME_BYTES = 64
BEACON_EXPONENT = 10
"""Number of hashes of a beacon's value: 2^10, the minimum that snarkjs accepts."""
MIN_CONTRIBUTIONS = 2


@dataclass(frozen=True)
class Ceremony:
    """Both phases of a checked key, and the digests of the files used in the check.

    :param phase1: contributions to the powers of tau
    :param phase1_digest: SHA-256 of the powers' file
    :param phase2: contributions to the key
    :param r1cs_digest: SHA-256 of the constraints' file
    :param zkey_digest: SHA-256 of the key's file
    :param vk: the verification key with its circuit's digest; None if there is no contribution of a secret, or no
        circuit is named
    :param snarkjs_digest: SHA-256 of verification_key.json as `snarkjs zkey export verificationkey` writes it; None if
        there is no contribution of a secret
    """

    phase1: tuple[Contribution, ...]
    phase1_digest: str
    phase2: tuple[Contribution, ...]
    r1cs_digest: str
    zkey_digest: str
    vk: VerificationKey | None
    snarkjs_digest: str | None

    @property
    def contributed(self) -> int:
        """The number of contributions of a secret to phase 2; with none, anyone can forge proofs under the key."""
        return secret(self.phase2)

    @property
    def setup(self) -> str:
        """`ceremony` if each phase has two or more contributions of a secret, else `unsafe`. Beacons have no secret."""
        fewest = min(secret(self.phase1), self.contributed)
        return "ceremony" if fewest >= MIN_CONTRIBUTIONS else "unsafe"

    def as_json(self) -> dict[str, Json]:
        """The ceremony as a JSON value, for programs."""
        return {
            "vk": None if self.vk is None else self.vk.digest,
            "verification_key": {"sha256": self.snarkjs_digest},
            "r1cs": {"sha256": self.r1cs_digest},
            "zkey": {"sha256": self.zkey_digest},
            "phase1": {
                "sha256": self.phase1_digest,
                "contributions": [c.as_json() for c in self.phase1],
            },
            "contributions": [c.as_json() for c in self.phase2],
            "setup": self.setup,
        }


def start(instance: Instance, ptau: Path, out: Path, *, ptau_digest: str | None = None) -> None:
    """Write an instance's key before any contribution. This key must not be used for proofs.

    :param ptau: powers of tau, prepared for phase 2
    :param ptau_digest: see `check_powers`
    :raises CeremonyError: the powers are proven false, or differ from the named ones
    :raises SetupError: `out` exists, or a file cannot be read or written
    """
    _refuse_existing(out)
    check_powers(ptau, digest=ptau_digest)
    circuit = compile_circuit(instance)
    with named(ptau):
        _native.zkey_new(circuit.r1cs, ptau, out)


def contribute(old: Path, new: Path, name: str) -> Contribution:
    """Multiply a key's delta by a secret from the operating system, which is wiped, and write the key to `new`.

    :param name: the contributor's name, at most 64 bytes, printable
    :raises SetupError: `new` exists, the name is not of that form, or a file cannot be read or written
    """
    if not name.isprintable() or not 1 <= len(name.encode()) <= MAX_NAME_BYTES:
        raise SetupError(
            "the contributor's name is not valid",
            field="name",
            expected=f"1..{MAX_NAME_BYTES} bytes, printable",
            actual=ascii(name),
        )
    _refuse_existing(new)
    with named(old):
        digest = _native.zkey_contribute(old, new, name)
    return Contribution(name, None, digest.hex())


def check_key(
    r1cs: Path,
    ptau: Path,
    zkey: Path,
    *,
    circuit: str | None = None,
    ptau_digest: str | None = None,
    shown: Path | None = None,
) -> Ceremony:
    """Check that a key follows from the circuit, these powers and the key's contributions, and check all contributions.

    :param r1cs: the circuit's constraints
    :param circuit: digest that the verification key names; the caller vouches that the constraints are this circuit's
    :param ptau_digest: see `check_powers`
    :param shown: the path that errors name, if `zkey` is a copy
    :raises CeremonyError: the key is proven false
    :raises SetupError: a file is malformed or unreadable
    """
    powers = check_powers(ptau, digest=ptau_digest)
    shown = shown or zkey
    with named(zkey, shown):
        fault = _native.zkey_fault(r1cs, ptau, zkey)
        if fault is not None:
            raise CeremonyError("the key is false", field=str(shown), actual=fault)
        phase2 = tuple(map(Contribution.of, _native.zkey_contributions(zkey)))
        text = _native.groth16_verification_key(zkey) if secret(phase2) else None
    return Ceremony(
        powers.contributions,
        powers.digest,
        phase2,
        file_digest(r1cs, what="constraints"),
        file_digest(zkey, what="key"),
        None if text is None or circuit is None else VerificationKey.from_snarkjs(text, circuit),
        None if text is None else hashlib.sha256(text.encode()).hexdigest(),
    )


def check_instance_key(
    instance: Instance, ptau: Path, zkey: Path, *, ptau_digest: str | None = None, shown: Path | None = None
) -> Ceremony:
    """Check a key of an instance (`check_key`). The function recompiles the instance, so that it trusts no file in the
    cache.

    :raises CeremonyError, SetupError: as `check_key`, or the circuit cannot be compiled
    """
    with compiled_anew(instance) as circuit:
        return check_key(
            circuit.r1cs, ptau, zkey, circuit=instance.digest(), ptau_digest=ptau_digest, shown=shown
        )


def refuse_without_secret(ceremony: Ceremony, zkey: Path) -> VerificationKey:
    """The verification key of a checked ceremony for an instance.

    :raises CeremonyError: there is no contribution of a secret
    """
    if ceremony.vk is None:
        raise CeremonyError(
            "no party contributed a secret, so anybody can forge proofs with this key", field=str(zkey)
        )
    return ceremony.vk


def finalise(
    instance: Instance,
    ptau: Path,
    zkey: Path,
    *,
    beacon: bytes | None = None,
    out: Path | None = None,
    ptau_digest: str | None = None,
) -> KeyFiles:
    """Check a key and install it in the user cache, where `proving_key` finds it from now on.

    :param beacon: a public value that was unpredictable before the last contribution; the function adds it after that
        contribution
    :param out: a second path for the installed key, for relying parties to check
    :param ptau_digest: see `check_powers`
    :raises CeremonyError: the key or the powers are proven false, or there is no contribution
    :raises SetupError: a file is malformed or unreadable, `out` exists, or another key is installed
    """
    if out is not None:
        _refuse_existing(out)
    digest = instance.digest()
    folder = installed(digest)
    if folder.exists():
        raise SetupError(
            "a key of this circuit is installed already",
            field=str(folder),
            actual=f"vk {load_keys(folder, digest).vk_digest}",
            hint=f"windows that name it need it; if there are none: rm -r {folder}",
        )

    def build(partial: Path) -> None:
        key = partial / "key.zkey"
        with named(zkey):
            if beacon is None:
                shutil.copyfile(zkey, key)
            else:
                _native.zkey_beacon(zkey, key, "final beacon", beacon, BEACON_EXPONENT)
        # The copy is checked and not the original, which could change in between.
        ceremony = check_instance_key(instance, ptau, key, ptau_digest=ptau_digest, shown=zkey)
        refuse_without_secret(ceremony, zkey)
        write_keys(
            partial,
            instance,
            phase1=f"sha256:{ceremony.phase1_digest}",
            contributions=ceremony.contributed,
            setup=ceremony.setup,
            extra={"contributors": [c.as_json() for c in ceremony.phase2]},
        )

    files = load_keys(build_once(folder, build), digest)
    if out is not None:
        with files.zkey.open("rb") as key:
            replace_file(out, lambda handle: shutil.copyfileobj(key, handle, 1 << 20))
    return files


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise SetupError("the file exists already", field=str(path), hint="give another name")
