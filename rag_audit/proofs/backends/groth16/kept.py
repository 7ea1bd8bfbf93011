"""The proof that a sampled tenant's kept positions are the coins of the window's seed (docs/circuits.md, "`kept`")."""

from __future__ import annotations

from dataclasses import dataclass, field

from rag_audit import _native
from rag_audit.proofs.backends.groth16.circuit import Inputs
from rag_audit.proofs.backends.groth16.coins import KEPT_INPUTS, KeptInstance
from rag_audit.proofs.backends.groth16.job import Bound, prove
from rag_audit.proofs.statements.sample import KeptColumn, KeptStatement
from rag_audit.proofs.statements.tenant import KeptCommitment
from rag_audit.relation.field import to_bytes, to_hex
from rag_audit.relation.native import kept_commitment, noise_key


def kept_positions(
    capacity: int, *, s0: int, s1: int, beacon: int, slot: int, keep: int, salt: int
) -> tuple[bytes, int]:
    """The positions that a seed keeps, one byte 0 or 1 each, and the commitment to them.

    :param beacon: f(beacon value)
    :param slot: the tenant's sampling slot
    :param keep: Pi, in 1..2^40 - 1
    :param salt: the commitment's salt
    """
    kept = _native.draw_coins(to_bytes(noise_key(s0, s1, beacon, slot)), capacity, keep)
    return kept, kept_commitment(salt, [bool(bit) for bit in kept])


@dataclass(frozen=True)
class KeptJob(Bound):
    """The job that proves `kept` for one tenant and window. It is picklable, and holds secrets, which `repr` omits.

    :param instance: the circuit
    :param statement: the public values
    :param s0: first half of the seed
    :param s1: second half of the seed
    :param salt: salt of c_kept
    :param vk: see `prove`
    """

    instance: KeptInstance
    statement: KeptStatement
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    salt: int = field(repr=False)
    vk: str | None = None

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name."""
        return {
            **{name: getattr(self.statement, name) for name in KEPT_INPUTS},
            "s0": self.s0,
            "s1": self.s1,
            "salt": self.salt,
        }

    def run(self) -> KeptColumn:
        """The commitment, its salt, and the proof as JSON: system, circuit, a, b, c.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        proof = prove(self.instance, self.inputs(), self.statement, vk=self.vk)
        return KeptColumn(KeptCommitment(to_hex(self.statement.c_kept)), proof, to_bytes(self.salt))
