"""The coalition proof in the scan argument (docs/scan/coalition.md)."""

from __future__ import annotations

import base64
import concurrent.futures
from collections.abc import Callable, Mapping
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
from rag_audit.proofs.backends.scan import reference
from rag_audit.proofs.backends.scan.key import COALITION_PROTOCOL
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.coalition import CoalitionSystem
from rag_audit.proofs.executors import run_jobs
from rag_audit.proofs.interface import OpenedKey, Pins
from rag_audit.proofs.statements.coalition import CoalitionPrivate, CoalitionStatement
from rag_audit.relation.field import to_bytes

PROTOCOL = COALITION_PROTOCOL
"""The digest that names the argument where groth16 names a circuit."""
MAX_RECORDS = 65_535
MAX_DIMENSION = 882
"""The most components of a vector: packed, they fit one run of a list hash together with a salt."""
_FIELDS = ("system", "circuit", "room", "records", "pairs")


class ScanCoalition:
    """Coalition proofs by the scan argument (`CoalitionSystem`)."""

    ENGINES: tuple[str, ...] = ("native", "reference")

    def digest(self, *, records: int, dimension: int, theta: tuple[int, int]) -> str:
        """The digest of the protocol, which is the same for all windows.

        :raises PolicyError: there are more records or components than the protocol allows, or theta is out of range
        """
        p, q = theta
        if not 0 < p < q <= 1000:
            raise PolicyError("theta is not a fraction in (0, 1)", field="theta",
                              expected="0 < p < q <= 1000", found=f"{p}/{q}")  # fmt: skip
        for name, value, most in (("records", records, MAX_RECORDS), ("dimension", dimension, MAX_DIMENSION)):
            if not 1 <= value <= most:
                raise PolicyError(
                    f"{name} exceed what the protocol allows", field=name, expected=f"1..{most}", found=value
                )
        return PROTOCOL

    def published_keys(self, *, records: int, dimension: int, theta: tuple[int, int]) -> dict[str, Json]:
        """See `CoalitionSystem.published_keys`: there are none."""
        return {}

    def open_key(
        self,
        *,
        records: int,
        dimension: int,
        theta: tuple[int, int],
        published: Mapping[str, Json],
        pins: Pins,
    ) -> OpenedKey[None]:
        """See `CoalitionSystem.open_key`: there is no key, and the pin of the protocols is checked."""
        check_pin(pins)
        return OpenedKey(None, self.digest(records=records, dimension=dimension, theta=theta), None)

    def certify(
        self,
        statement: CoalitionStatement,
        private: CoalitionPrivate,
        *,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Json]:
        """Make and verify the coalition proof: first one run over the records, then runs over pairs, each a job of its
        own.

        :raises WitnessError: the claim is false, the private inputs are not the statement's, or the window has more
            records or distinct norms than the argument allows
        :raises InvalidProof: the new proof does not verify, for example because a worker returned something else
        """
        try:
            room = _native.ScanCoalition.room(private.vectors, statement.dimension)
            native = _native_statement(statement, room)
            runs = native.runs()
            records, blindings = native.prove_records(_native_private(private))
        except (ValueError, OverflowError) as exc:
            raise _refused(exc) from exc
        report = progress or (lambda done, total: None)
        report(1, 1 + runs)
        jobs = [PairsJob(statement, private, room, records, blindings, run) for run in range(runs)]
        pairs = [b""] * runs
        for done, (run, proof) in enumerate(run_jobs(enumerate(jobs), executor), start=2):
            pairs[run] = proof
            report(done, 1 + runs)
        certificate: dict[str, Json] = {
            "system": "scan",
            "circuit": PROTOCOL,
            "room": room,
            "records": base64.b64encode(records).decode(),
            "pairs": [base64.b64encode(proof).decode() for proof in pairs],
        }
        self.verify(statement, certificate, key=None)
        return certificate

    def verify(
        self, statement: CoalitionStatement, certificate: Json, *, key: None, engine: str = "native"
    ) -> None:
        """Return if the coalition proof proves the statement.

        :param key: None, since this system has no keys
        :param engine: "native", or "reference", the second verifier
        :raises InvalidProof: the proof does not prove it; `found` has the reason
        :raises SchemaError: the proof has other fields, is of another system or protocol, or comes with a key
        :raises EncodingError: the proof is not canonical
        :raises SetupError: the engine is another
        """
        if engine not in self.ENGINES:
            raise SetupError(
                "the verifier is unknown", field="engine", expected=", ".join(self.ENGINES), found=engine
            )
        if key is not None:
            raise SchemaError("the scan argument has no keys", field="verification_keys", expected=None)
        if not isinstance(certificate, dict) or set(certificate) != set(_FIELDS):
            found = sorted(map(str, certificate)) if isinstance(certificate, dict) else kind_of(certificate)
            raise SchemaError(
                "the value is not a coalition proof", field="certificate", expected=_FIELDS, found=found
            )
        for name, expected in (("system", "scan"), ("circuit", PROTOCOL)):
            if certificate[name] != expected:
                raise SchemaError("the coalition proof is of another system", field=f"certificate.{name}",
                                  expected=expected, found=certificate[name])  # fmt: skip
        room, pairs = certificate["room"], certificate["pairs"]
        if type(room) is not int or not isinstance(pairs, list):
            raise SchemaError("the value is not a coalition proof", field="certificate", expected=_FIELDS)
        records = parse_base64(certificate["records"], field="certificate.records")
        runs = [parse_base64(run, field=f"certificate.pairs[{i}]") for i, run in enumerate(pairs)]
        try:
            if engine == reference.ENGINE:
                reference.verify_coalition(statement, room, records, runs)
            else:
                _native_statement(statement, room).verify(records, runs)
        except (ValueError, OverflowError) as exc:
            raise InvalidProof(
                "the coalition proof does not verify", field="certificate", found=str(exc)
            ) from exc


SYSTEM: CoalitionSystem[None] = ScanCoalition()
"""The system that `proofs.coalition.coalition_system` returns."""


@dataclass(frozen=True)
class PairsJob:
    """The job of one run over pairs. It is picklable, and holds secrets, which `repr` omits.

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
            native = _native_statement(self.statement, self.room)
            return native.prove_pairs(
                _native_private(self.private), self.records, self.blindings, self.number
            )
        except (ValueError, OverflowError) as exc:
            raise _refused(exc) from exc


def _refused(exc: Exception) -> WitnessError:
    return WitnessError("there is no coalition proof for this window", field="certificate", found=str(exc))


def _native_statement(statement: CoalitionStatement, room: int) -> _native.ScanCoalition:
    if len(statement.cq) > statement.capacity:
        raise ValueError(f"records: expected at most {statement.capacity}, found {len(statement.cq)}")
    return _native.ScanCoalition(
        to_bytes(statement.ctx),
        statement.dimension,
        b"".join(map(to_bytes, statement.cq)),
        list(statement.account),
        list(statement.tenant),
        list(statement.first),
        statement.theta,
        (statement.c, statement.c_tenant),
        room,
    )


def _native_private(private: CoalitionPrivate) -> tuple[bytes, bytes, list[int]]:
    return private.vectors, b"".join(map(to_bytes, private.salts)), list(private.labels)
