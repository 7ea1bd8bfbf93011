"""Columns that are drawn from the seed, committed to, and proved: a slot's noise or Bernoulli bits (docs/scan/noise.md,
docs/scan/bernoulli-bits.md), and the sampled positions of a tenant.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import WitnessError
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.key import BERNOULLI_PROTOCOL, ScanKey
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.private import ColumnPrivate, CommittedColumn, NoiseProof
from rag_audit.proofs.statements.tenant import ColumnCommitment, SlotPublic
from rag_audit.relation.field import MODULUS, to_bytes


def prove_drawn(
    draw: Callable[[], tuple[bytes, bytes, bytes]],
    *,
    positions: int,
    gains: Sequence[int],
    what: str,
    low_memory: bool,
) -> tuple[bytes, bytes, bytes]:
    """The proof of one drawn column: the proof, commitments to its rows, 32 bytes each, and their secret blindings.

    :param draw: makes it
    :param gains: the draws of a position
    :param what: the name of the work, for errors
    :raises WitnessError: the seed does not match `c_seed`, or a word cannot be proved (one in 2^94)
    :raises MemoryLimitError: the machine has too little memory for the work
    """
    memory.require_proof(
        lambda low: memory.drawn_proof_bytes(positions, gains, low_memory=low), what, low_memory=low_memory
    )
    try:
        return draw()
    except ValueError as exc:
        slot = " for this slot" if what == NOISE else ""
        raise WitnessError(f"there is no {what}{slot}", field="slot", actual=str(exc)) from exc


NOISE = "noise proof"


@dataclass(frozen=True)
class SlotProofJob:
    """The job that proves the noise of one slot. It is picklable. It contains the seed, which `repr` omits.

    :param key: the tenant's key
    :param c_seed: commitment to the seed
    :param beacon: f(beacon value)
    :param slot: the slot
    :param s0: first half of the seed
    :param s1: second half of the seed
    :param low_memory: whether to take less memory and more time for the same proof
    """

    key: ScanKey
    c_seed: int
    beacon: int
    slot: int
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    low_memory: bool = False

    @classmethod
    def of(cls, key: ScanKey, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool) -> SlotProofJob:
        """The job for a slot's public values."""
        return cls(key, slot.c_seed, slot.beacon, slot.slot, s0, s1, low_memory)

    def run(self) -> NoiseProof:
        """The column's proof.

        :raises WitnessError: the seed does not match `c_seed`, or a word cannot be proved (one in 2^94)
        :raises MemoryLimitError: the machine has too little memory for the work
        """
        key = self.key

        def draw() -> tuple[bytes, bytes, bytes]:
            proof, [rows], [blindings] = prove_noise([self])
            return proof, rows, blindings

        return NoiseProof(
            *prove_drawn(
                draw, positions=key.capacity, gains=key.gains, what=NOISE, low_memory=self.low_memory
            )
        )

    @property
    def public(self) -> bytes:
        """c_seed, f(beacon) and the slot, 32 bytes each."""
        return b"".join(map(to_bytes, (self.c_seed, self.beacon, self.slot)))

    @property
    def seed(self) -> bytes:
        """The seed's halves, 32 bytes each."""
        return to_bytes(self.s0) + to_bytes(self.s1)


def prove_noise(slots: Sequence[SlotProofJob]) -> tuple[bytes, list[bytes], list[bytes]]:
    """One noise proof for several slots of one tenant: the proof, and for each slot the commitments and their secret
    blindings.

    :raises ValueError: a seed is not that of its `c_seed`, or a word cannot be proved (one in 2^94)
    """
    first = slots[0]
    return _native.scan_prove_noise(
        first.key.index,
        first.key.parameters,
        [slot.public for slot in slots],
        [slot.seed for slot in slots],
        first.low_memory,
    )


@dataclass(frozen=True)
class ColumnJob:
    """The job that commits to a tenant's column of Bernoulli bits and proves it. It is picklable. It contains the seed,
    which `repr` omits.

    :param name: the column's name
    :param context: 32 bytes that bind the proof to window, tenant, column and protocol
    :param slot: c_seed, f(beacon) and the column's slot, 32 bytes each
    :param keep: Pi, over 2^40
    :param low_memory: as for `SlotProofJob`
    """

    name: str
    capacity: int
    context: bytes
    slot: bytes
    keep: int
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    low_memory: bool = False
    keys: ClassVar[dict[str, str]] = {}

    @classmethod
    def of(cls, column: ColumnPublic, private: ColumnPrivate) -> ColumnJob:
        """The job for a column's public values."""
        capacity = column.tenant.constants.capacity
        return cls(
            column.name,
            capacity,
            context_of(column),
            slot_of(column),
            column.bound,
            private.s0,
            private.s1,
            private.low_memory,
        )

    def run(self) -> CommittedColumn:
        """The commitment with its proof and its blindings.

        :raises WitnessError: the seed does not match `c_seed`, or a word cannot be proved (one in 2^94)
        :raises MemoryLimitError: the machine has too little memory for the work
        """
        seed = to_bytes(self.s0) + to_bytes(self.s1)
        proof, rows, blindings = prove_drawn(
            lambda: _native.scan_bits_prove(
                self.capacity, self.context, self.slot, seed, self.keep, self.low_memory
            ),
            positions=self.capacity,
            gains=(1,),
            what=f"proof of the {self.name} positions",
            low_memory=self.low_memory,
        )
        value: dict[str, Json] = {
            "system": "scan",
            "protocol": BERNOULLI_PROTOCOL,
            "proof": base64.b64encode(proof).decode(),
        }
        digest = column_digest(self.name, rows, self.capacity)
        return CommittedColumn(ColumnCommitment(digest, rows), value, blindings)


def context_of(column: ColumnPublic, protocol: str = BERNOULLI_PROTOCOL) -> bytes:
    """The bytes that bind a proof to window, tenant, column and protocol."""
    return sha256(
        f"rag-audit/scan/{column.name}-context/v1".encode() + column.context + bytes.fromhex(protocol)
    )


def slot_of(slot: SlotPublic) -> bytes:
    """c_seed, f(beacon) and the slot, 32 bytes each."""
    return b"".join(map(to_bytes, (slot.c_seed, slot.beacon, slot.slot)))


def rows_digest(domain: bytes, capacity: int, rows: bytes) -> str:
    """The digest that a ledger gets of a column's row commitments: SHA-256 over domain, capacity and rows, 64
    hexadecimal digits."""
    named: Json = {"capacity": capacity, "rows": base64.b64encode(rows).decode()}
    return sha256(domain + jcs(named)).hex()


def record_blindings(domain: bytes, secret: bytes, rows: int) -> bytes:
    """The blindings that follow from a record's secret, 32 bytes a row: SHA-512 of domain, secret and number, modulo
    r."""
    out = b""
    for number in range(rows):
        wide = hashlib.sha512(domain + secret + number.to_bytes(4, "big")).digest()
        out += to_bytes(int.from_bytes(wide, "big") % MODULUS)
    return out


def column_digest(name: str, rows: bytes, capacity: int) -> str:
    """`rows_digest` of a tenant's column."""
    return rows_digest(f"rag-audit/scan/{name}/v1".encode(), capacity, rows)
