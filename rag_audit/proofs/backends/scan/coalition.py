"""The coalition proof in the scan argument (docs/scan/coalition.md)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_audit import _native
from rag_audit._internal.canonical import Json, parse_base64
from rag_audit._internal.errors import (
    InvalidProof,
    PolicyError,
    SchemaError,
    SetupError,
    WitnessError,
    kind_of,
)
from rag_audit.proofs.backends.scan.engine import engine as engine_of
from rag_audit.proofs.backends.scan.engine import engines, native_coalition
from rag_audit.proofs.backends.scan.key import COALITION_PROTOCOL
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.coalition import Coalition, Run
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.records import OpenedKey
from rag_audit.proofs.statements.coalition import (
    MAX_DIMENSION,
    MAX_RECORDS,
    CoalitionSize,
    CoalitionStatement,
)
from rag_audit.proofs.statements.private import CoalitionPrivate
from rag_audit.relation.field import to_bytes

PROTOCOL = COALITION_PROTOCOL
"""The digest that names the argument where groth16 names a circuit."""
_FIELDS = ("system", "circuit", "room", "records", "pairs")


class ScanCoalition:
    """The steps of coalition proofs by the scan argument (`CoalitionSteps`)."""

    def digest(self, size: CoalitionSize) -> str:
        """The digest of the protocol, which is the same for all windows.

        :raises PolicyError: there are more records or components than the protocol allows, or theta is out of range
        """
        p, q = size.theta
        if not 0 < p < q <= 1000:
            raise PolicyError("theta is not a fraction in (0, 1)", field="theta",
                              expected="0 < p < q <= 1000", actual=f"{p}/{q}")  # fmt: skip
        for name, value, maximum in (
            ("records", size.records, MAX_RECORDS),
            ("dimension", size.dimension, MAX_DIMENSION),
        ):
            if not 1 <= value <= maximum:
                raise PolicyError(
                    f"{name} exceed what the protocol allows",
                    field=name,
                    expected=f"1..{maximum}",
                    actual=value,
                )
        return PROTOCOL

    def published_keys(self, size: CoalitionSize) -> dict[str, Json]:
        """See `CoalitionSteps.published_keys`: this system has none."""
        return {}

    def open_key(self, size: CoalitionSize, published: Mapping[str, Json], pins: Pins) -> OpenedKey[None]:
        """See `CoalitionSteps.open_key`: there is no key, and the pin of the protocols is checked."""
        check_pin(pins)
        return OpenedKey(None, self.digest(size), None)

    def own_key(self, size: CoalitionSize) -> None:
        """See `CoalitionSteps.own_key`: this system has none."""

    def make(self, statement: CoalitionStatement, private: CoalitionPrivate, run: Run) -> dict[str, Json]:
        """Make the coalition proof: first one run over the records, then runs over pairs, each a job of its own.

        :raises WitnessError: the claim is false, the private inputs are not the statement's, or the window has more
            records or distinct norms than the argument allows
        """
        try:
            room = _native.ScanCoalition.room(private.vectors, statement.dimension)
            native = native_coalition(statement, room)
            runs = native.runs()
            records, blindings = native.prove_records(_native_private(private))
        except (ValueError, OverflowError) as exc:
            raise _refused(exc) from exc
        run.report(1, 1 + runs)
        jobs = [PairsJob(statement, private, room, records, blindings, number) for number in range(runs)]
        pairs = [b""] * runs
        for done, (number, proof) in enumerate(run(enumerate(jobs)), start=2):
            pairs[number] = proof
            run.report(done, 1 + runs)
        return {
            "system": "scan",
            "circuit": PROTOCOL,
            "room": room,
            "records": base64.b64encode(records).decode(),
            "pairs": [base64.b64encode(proof).decode() for proof in pairs],
        }

    def verify(
        self, statement: CoalitionStatement, coalition_proof: Json, *, key: None, engine: str = "native"
    ) -> None:
        """Return if the coalition proof proves the statement.

        :param key: None, since this system has no keys
        :param engine: "native", or "reference", the second verifier
        :raises InvalidProof: the proof does not prove it; `actual` has the reason
        :raises SchemaError: the proof has other fields, is of another system or protocol, or comes with a key
        :raises EncodingError: the proof is not canonical
        :raises SetupError: the engine is unknown
        """
        if engine not in engines():
            raise SetupError(
                "the verifier is unknown", field="engine", expected=", ".join(engines()), actual=engine
            )
        if key is not None:
            raise SchemaError("the scan argument has no keys", field="verification_keys", expected=None)
        if not isinstance(coalition_proof, dict) or set(coalition_proof) != set(_FIELDS):
            actual = (
                sorted(map(str, coalition_proof))
                if isinstance(coalition_proof, dict)
                else kind_of(coalition_proof)
            )
            raise SchemaError(
                "the value is not a coalition proof", field="coalition_proof", expected=_FIELDS, actual=actual
            )
        for name, expected in (("system", "scan"), ("circuit", PROTOCOL)):
            if coalition_proof[name] != expected:
                raise SchemaError("the coalition proof is of another system", field=f"coalition proof.{name}",
                                  expected=expected, actual=coalition_proof[name])  # fmt: skip
        room, pairs = coalition_proof["room"], coalition_proof["pairs"]
        if type(room) is not int or not isinstance(pairs, list):
            raise SchemaError("the value is not a coalition proof", field="coalition_proof", expected=_FIELDS)
        records = parse_base64(coalition_proof["records"], field="coalition_proof.records")
        runs = [parse_base64(run, field=f"coalition proof.pairs[{i}]") for i, run in enumerate(pairs)]
        try:
            engine_of(engine).coalition(statement, room, records, runs)
        except (ValueError, OverflowError) as exc:
            raise InvalidProof(
                "the coalition proof does not verify", field="coalition_proof", actual=str(exc)
            ) from exc


SYSTEM = Coalition(ScanCoalition())
"""The coalition proofs of the scan argument (`Backend.coalition`)."""


@dataclass(frozen=True)
class PairsJob:
    """The job of one run over pairs. It is picklable. It contains secrets, which `repr` omits.

    :param room: log2 of the number of norms that the coalition proof has room for
    :param records: the run over records
    :param blindings: blindings of that run's columns
    :param number: number of this run
    """

    statement: CoalitionStatement
    private: CoalitionPrivate
    room: int
    records: bytes
    blindings: bytes = field(repr=False)
    number: int

    def run(self) -> bytes:
        """The proof of the run.

        :raises WitnessError: the claim is false
        """
        try:
            native = native_coalition(self.statement, self.room)
            return native.prove_pairs(
                _native_private(self.private), self.records, self.blindings, self.number
            )
        except (ValueError, OverflowError) as exc:
            raise _refused(exc) from exc


def _refused(exc: Exception) -> WitnessError:
    return WitnessError(
        "there is no coalition proof for this window", field="coalition_proof", actual=str(exc)
    )


def _native_private(private: CoalitionPrivate) -> tuple[bytes, bytes, list[int]]:
    return private.vectors, b"".join(map(to_bytes, private.salts)), list(private.labels)
