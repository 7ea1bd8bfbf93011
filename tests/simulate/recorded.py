"""Windows that a service runs with its own proofs, one after another: chains of windows, and pooled listing.

`windows` proves by hand after the run. A window of a chain names columns that the proof of the window before it yields,
so here the service proves while it runs. `recorded` gives it each proof that was made once, by the statement that the
proof proves.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from rag_audit._internal.canonical import digest_hex
from rag_audit.attest.proving import Prover
from rag_audit.attest.window import Window
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.trust import Groth16Pin, Require
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16 import documents, sample, shared
from rag_audit.proofs.backends.groth16.instance import Instance
from rag_audit.proofs.backends.scan.document_table import DocumentTableJob
from rag_audit.proofs.statements.private import CommittedTable
from rag_audit.proofs.statements.tenant import ColumnCommitment
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from tests.simulate.randomness import drawn_from
from tests.simulate.stored_proofs import StoredProofs
from tests.simulate.windows import REQUIRED
from tests.window.forge import Forge
from tests.window.simulator import QUESTIONS, Finished
from tests.window.test_document_tables import FIRST, SECOND, THIRD, Texts
from tests.window.test_pooled_listing import PooledChain

KEEP = 7 * PROBABILITY_RANGE // 10
SHAPE = TableShape(rows=10, positions_per_document=2, fresh_rows=3)
POOLED = PooledListing(keep=KEEP, rules=PoolRules(0, 60, "0.3"), documents=SHAPE)
POLICY: dict[str, Any] = {
    "top_k": 3,
    "table": None,
    "mechanisms": {"law": POOLED, "medicine": Sampling(keep=KEEP, documents=SHAPE)},
}
BY_CIRCUIT: dict[str, Any] = {
    "mechanisms": {name: Sampling(keep=KEEP, documents=SHAPE) for name in ("law", "medicine")},
    "system": {"law": "groth16", "medicine": "scan"},
}
"""The changes of `POLICY` for a chain whose tenants both sample by document, one of them with circuits."""
ASKED: tuple[tuple[str, str], ...] = (
    ("law-1", QUESTIONS["law"][0]),
    ("law-2", QUESTIONS["law"][1]),
    ("law-1", QUESTIONS["law"][1]),
    ("medicine-1", QUESTIONS["medicine"][0]),
    ("law-2", QUESTIONS["law"][2]),
)
"""Who asks what, in the order of the ledger."""
TEXTS: Sequence[Texts] = (FIRST, SECOND, THIRD)
"""Of each window of the honest chain: documents are edited, deleted, added, and one returns."""


@dataclass(kw_only=True)
class Recorded(Finished):
    """A window that its provider proved while it ran the service."""

    def forge(self) -> Forge:
        """The window, to be changed."""
        return Forge(self)

    def trust_text(self, *, independent: Sequence[str], **require: Any) -> str:
        """What the window's verifier trusts."""
        pins = [
            Groth16Pin(
                circuit=circuit,
                vk=digest_hex(self.file.verification_keys[circuit]),
                setup="unsafe",
            )
            for circuit in (i.digest() for i in self.service.circuits(self.policy))
        ]
        return self.service.trusting(pins, Require(**{**REQUIRED, **require}), independent)


@dataclass(frozen=True)
class _StoredJob:
    """A record's proof, made now or before."""

    label: str
    job: Any
    stored_proofs: StoredProofs

    @property
    def keys(self) -> Mapping[str, str]:
        keys: Mapping[str, str] = self.job.keys
        return keys

    def run(self) -> Any:
        return self.stored_proofs.other(self.label, self.job.run)


@contextmanager
def recorded(stored_proofs: StoredProofs) -> Iterator[None]:
    """Give a service the stored proofs of records and of document tables; it makes those that are missing."""
    prove_record, prove_table = Prover.job, DocumentTableJob.run
    prove_circuit = documents.DocumentTableJob.run

    def job(prover: Prover, proofs: Any, group: Any) -> Any:
        statements = [repr(proofs.steps.statement(prover._public(record))) for record, _ in group]
        kind = type(proofs.steps).__qualname__
        label = digest_hex(["recorded", kind, *statements])
        return _StoredJob(label, prove_record(prover, proofs, group), stored_proofs)

    def run(table: DocumentTableJob) -> CommittedTable:
        label = digest_hex(["recorded table", *_public(table)])
        return _table(stored_proofs.other(label, lambda: _stored(prove_table(table))))

    def run_circuit(table: documents.DocumentTableJob) -> CommittedTable:
        label = digest_hex(["recorded table", table.instance.digest(), repr(table.statement)])
        return _table(stored_proofs.other(label, lambda: _stored(prove_circuit(table))))

    def key(instance: Instance) -> _StoredKey:
        return _StoredKey(stored_proofs.key(instance))

    with (
        mock.patch.object(Prover, "job", job),
        mock.patch.object(DocumentTableJob, "run", run),
        mock.patch.object(documents.DocumentTableJob, "run", run_circuit),
        mock.patch.object(sample, "proving_key", key),
        mock.patch.object(shared, "proving_key", key),
    ):
        yield


@dataclass(frozen=True)
class _StoredKey:
    """A circuit's verification key, under which all stored proofs of it verify."""

    vk: Any

    @property
    def vk_digest(self) -> str:
        return digest_hex(self.vk)


def _public(table: DocumentTableJob) -> list[str]:
    """The public values of a table's proof."""
    values = (table.context, table.slot, repr(table.numbers).encode(), table.table, table.previous or b"")
    return [value.hex() for value in values]


def _stored(column: CommittedTable) -> dict[str, Any]:
    return {
        "digest": column.commitment.digest,
        "points": _text(column.commitment.points),
        "proof": column.proof,
        "opening": _text(column.opening),
        "carried": [column.carried.digest, _text(column.carried.points)],
        "carried_opening": _text(column.carried_opening),
    }


def _table(stored: dict[str, Any]) -> CommittedTable:
    digest, points = stored["carried"]
    return CommittedTable(
        commitment=ColumnCommitment(stored["digest"], _data(stored["points"])),
        proof=stored["proof"],
        opening=_data(stored["opening"]),
        carried=ColumnCommitment(digest, _data(points)),
        carried_opening=_data(stored["carried_opening"]),
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _data(text: str) -> bytes:
    return base64.b64decode(text)


class PublishedChain(PooledChain):
    """Windows of one origin with pooled listing and sampling by document."""

    def run(self, texts: Texts, *, asked: Sequence[tuple[str, str]] = ASKED, **changes: Any) -> Path:
        """A window from header to trailer, with its proofs."""
        with self.open(texts, **{**POLICY, **changes}) as window:
            for account, text in asked:
                self.service.ask(window, account, text)
            self.service.finish(window)
            self.prove(window)
        return window.directory

    def abandon(self, texts: Texts) -> Path:
        """A window that the provider gives up after its beacon."""
        with self.open(texts, **POLICY) as window:
            self.service.finish(window, abandoned=True)
        return window.directory

    def prove(self, window: Window) -> None:
        """Make all proofs."""
        window.prove()

    def finished(self, number: int, receipts: Path) -> Recorded:
        """A window with its receipts, which disclose no question."""
        with self.resumed(number) as window:
            self.service.receipts(window, receipts, disclose=False)
            policy, folder = window.policy, window.directory
        return Recorded(self.service, folder, WindowFile.load(folder / "public"), policy, receipts)


class Chains:
    """The chains of a run of the generator: the honest one, and each other one from the windows it shares with it.

    :param name: the honest chain's name, from which its secrets follow
    :param changes: what its policies have in place of `POLICY`
    """

    def __init__(
        self, folder: Path, stored_proofs: StoredProofs, name: str = "pooled", changes: Mapping[str, Any] = {}
    ) -> None:
        self._folder, self._made, self._name, self._changes = folder, stored_proofs, name, changes
        self._times: list[int] = []
        self._chain: PublishedChain | None = None

    def after(self, windows: int, name: str) -> PublishedChain:
        """A copy of the honest chain after its first windows, for a chain with a name."""
        honest = self._honest()
        if windows == 0:
            return PublishedChain(self._folder / name)
        folder = self._folder / name
        shutil.copytree(self._folder / f"after-{windows}", folder)
        result = PublishedChain.__new__(PublishedChain)
        result.service = honest.service.copied(folder, self._times[windows - 1])
        result.windows = [folder / path.name for path in honest.windows[:windows]]
        return result

    def _honest(self) -> PublishedChain:
        if self._chain is None:
            with drawn_from(self._name), recorded(self._made):
                chain = PublishedChain(self._folder / self._name)
                for number, texts in enumerate(TEXTS, 1):
                    chain.run(texts, **self._changes)
                    shutil.copytree(chain.service.root, self._folder / f"after-{number}")
                    self._times.append(chain.service.clock.now)
            self._chain = chain
        return self._chain

    def honest(self, number: int) -> Recorded:
        """A window of the honest chain."""
        return self._honest().finished(number, self._folder / f"receipts-{number}")

    def other(self, name: str, windows: int, run: Callable[[PublishedChain], object]) -> Recorded:
        """The last window of a chain that starts with windows of the honest one.

        :param name: the base's name, from which the chain's secrets follow
        :param windows: how many of its windows are the honest ones
        :param run: runs its other windows
        """
        with drawn_from(name):
            chain = self.after(windows, name)
            with recorded(self._made):
                run(chain)
            return chain.finished(len(chain.windows), self._folder / f"receipts-{name}")
