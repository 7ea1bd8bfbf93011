"""Proofs for several records at once, and their circuits (docs/circuits.md, "Several records in one proof")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from rag_audit._internal.canonical import Json, digest_hex
from rag_audit._internal.errors import InvalidProof, PolicyError, RagAuditError, SchemaError, SetupError
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.groth16.coins import ListingInstance, SampledInstance
from rag_audit.proofs.backends.groth16.instance import RetrieveInstance, RetrieveManyInstance
from rag_audit.proofs.backends.groth16.job import ProofJob, parse_key
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.listing import ListingJob, ListingManyJob
from rag_audit.proofs.backends.groth16.many import ManyProof, RetrieveManyJob, parse_many_proof, record_digest
from rag_audit.proofs.backends.groth16.statements import ListingStatement, ManyStatement
from rag_audit.proofs.batch import Check, at_once, readable
from rag_audit.proofs.checking import OwnProofs
from rag_audit.proofs.interface import OpenedKey, Pins, RecordJob
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.proofs.statements.tenant import PublicValues
from rag_audit.relation.native import held_commitment


def retrieve_instance(c: Constants) -> RetrieveInstance | SampledInstance:
    """The circuit of `retrieve` of a tenant that lists the first K.

    :raises PolicyError: there is none for the constants
    """
    values = (c.capacity, c.dimension, c.top_k, c.gains, c.lo, c.hi, c.lattice)
    return RetrieveInstance(*values) if c.gains and not c.sampled else SampledInstance(*values, c.sampled)


def listing_instance(c: Constants) -> ListingInstance:
    """The circuit of `retrieve` of a listing tenant.

    :raises PolicyError: there is none for the constants
    """
    if not 1 <= c.top_k <= c.capacity:
        raise PolicyError("the longest list does not fit the circuit", field="listed_max",
                          expected=f"1..{c.capacity}", found=c.top_k)  # fmt: skip
    return ListingInstance(c.capacity, c.dimension)


def many_instance(constants: Constants, queries: int) -> RetrieveManyInstance | ListingInstance:
    """The circuit of `retrieve` for several records.

    :raises PolicyError: the circuit cannot be built for this number of records or these constants
    """
    if constants.listing:
        return replace(listing_instance(constants), queries=queries)
    return RetrieveManyInstance(queries, retrieve_instance(constants))


def many_statement(records: Sequence[PublicValues], places: int) -> ManyStatement | ListingStatement:
    """The public values of one proof for records with these, in the proof's order.

    :raises SchemaError: the records cannot share a proof
    """
    if isinstance(records[0], ListingStatement):
        return ListingStatement.of(cast("Sequence[ListingStatement]", records), places)
    return ManyStatement.of(cast("Sequence[Statement]", records), places)


def pinned_key(circuit: str, published: Mapping[str, Json], pins: Pins) -> OpenedKey[VerificationKey]:
    """A circuit's verification key, which is published under the circuit's digest and accepted if it is pinned.

    :raises SetupError: there is no pin, or no published key
    :raises InvalidProof: the key is not the pinned one, or names another circuit
    """
    place = f"verification_keys.{circuit[:16]}"
    pin = pins.key(circuit)
    if pin is None:
        raise SetupError("the circuit has no pin in trust.toml", expected=f"a pin for circuit {circuit}")
    if circuit not in published:
        raise SetupError("the window has no verification key", field=place, expected=pin.vk)
    found = digest_hex(published[circuit])
    if found != pin.vk:
        raise InvalidProof("the verification key is not the pinned one", field=place, expected=pin.vk,
                           found=found)  # fmt: skip
    key = parse_key(published[circuit], field=place)
    if key.circuit != circuit:  # a pin can be wrong, and such a key proves another circuit's statements
        raise InvalidProof("the verification key is another circuit's", field=place, expected=circuit,
                           found=key.circuit)  # fmt: skip
    return OpenedKey(key, found, pin.setup)


@dataclass(frozen=True)
class Shared:
    """Proofs of `retrieve` for several records (`SharedProofs`). No policy names their circuit: it follows from the
    tenant's constants and the proof's number of places, and is accepted if its key is pinned.
    """

    instance: RetrieveManyInstance | ListingInstance

    @property
    def chained(self) -> bool:
        """See `SharedProofs.chained`."""
        return isinstance(self.instance, ListingInstance)

    def job(self, jobs: Mapping[str, RecordJob]) -> RetrieveManyJob | ListingManyJob:
        """See `SharedProofs.job`; the jobs are those of `Groth16.record_job` for `retrieve`."""
        names = tuple(jobs)
        if isinstance(self.instance, ListingInstance):
            return ListingManyJob(self.instance, cast("tuple[ListingJob, ...]", tuple(jobs.values())), names)
        return RetrieveManyJob(self.instance, cast("tuple[ProofJob, ...]", tuple(jobs.values())), names)

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `SharedProofs.carried`: a proof is short, and every record carries it."""
        return proof

    def published_keys(self) -> dict[str, Json]:
        """See `SharedProofs.published_keys`."""
        return {self.instance.digest(): proving_key(self.instance).vk}

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[VerificationKey]:
        """See `SharedProofs.open_key`."""
        return pinned_key(self.instance.digest(), published, pins)

    def parse_proof(self, value: Json, *, field: str) -> ManyProof:
        """See `SharedProofs.parse_proof`."""
        return parse_many_proof(value, self.instance.digest(), field=field)

    def verify(
        self,
        key: VerificationKey,
        proofs: Sequence[ManyProof],
        own: Sequence[PublicValues],
        every: Sequence[PublicValues],
        *,
        engine: str = "native",
        check: Check = at_once,
    ) -> dict[int, RagAuditError]:
        """See `SharedProofs.verify`. The names in a proof only select among statements rebuilt here, whose values the
        pairing check takes.
        """
        known = {record_digest(statement): statement for statement in every}
        read, bad = readable(proofs, lambda proof: proof)
        carried = {(record_digest(own[number]), proof) for number, proof in read.items()}
        # A proof is in the file once for each of its records, and is checked only once.
        whole = [p for p in dict.fromkeys(read.values()) if all(digest in known for digest in p.records)]
        reasons: dict[ManyProof, RagAuditError] = {}
        if isinstance(self.instance, ListingInstance):
            after = Counter(cast(ListingStatement, statement).held_after for statement in every)
            # Nothing held is where every account begins.
            after[held_commitment(0, (), self.instance.capacity)] += 2
            for proof in whole:
                if not all((digest, proof) in carried for digest in proof.records):
                    reasons[proof] = InvalidProof("a record that the proof names has another proof")
                elif any(after[cast(ListingStatement, known[d]).held_after] > 1 for d in proof.records[:-1]):
                    # Which record comes next is told by this commitment.
                    reasons[proof] = InvalidProof("two records say that an account holds the same after them")
        stated, checked = [], []
        for proof in whole:
            if proof in reasons:
                continue
            try:
                stated.append(many_statement([known[d] for d in proof.records], len(proof.records)))
                checked.append(proof)
            except SchemaError as exc:
                if not self.chained:
                    raise
                reasons[proof] = InvalidProof(exc.message, field=exc.field)
        pairs = [(proof.proof, statement) for proof, statement in zip(checked, stated, strict=True)]
        wrong = check(OwnProofs("groth16", key, engine), pairs) if pairs else {}
        reasons |= {checked[i]: reason for i, reason in wrong.items()}
        whole_set = set(whole)
        for number, proof in read.items():
            if record_digest(own[number]) not in proof.records:
                bad[number] = InvalidProof("the proof is for other records")
            elif proof in reasons:
                bad[number] = reasons[proof]
            elif proof not in whole_set:
                bad[number] = SchemaError("the proof is also for a record that the ledger does not have")
        return bad
