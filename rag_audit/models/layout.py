"""The paths of the files in a window's folder (docs/architecture.md, "Processes, keys, folders")."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol


class Folder(Protocol):
    """A layout of files in one folder."""

    @property
    def folder(self) -> Path:
        """Where they are."""


class Named:
    """The path of one name in a layout's folder, as an attribute of the layout."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: Folder, owner: type[Folder]) -> Path:
        return layout.folder / self._name


@dataclass(frozen=True)
class PublicFolder:
    """The public part of a window's folder, which accounts, witnesses and verifiers read and leave their notes in."""

    folder: Path

    header = Named("header.json")
    """The file that accounts and witnesses need of the window (`models.publication`)."""
    window = Named("window.json")
    """The file that a verifier needs (`models.windowfile`)."""
    notes = Named("notes")
    """The folder where witnesses put cosignatures and nonces."""

    def note(self, kind: Literal["cosign", "beacon"], size: int, witness: str) -> Path:
        """A witness's note on the checkpoint of the first `size` entries: its cosignature, or its revealed nonce."""
        return self.notes / f"{kind}-{size}-{witness.replace('/', '_')}.txt"

    challenges = Named("challenges")
    """The folder of the verifiers' challenge notes that were answered."""

    def challenge(self, digest: str) -> Path:
        """The file of a challenge note, named by the digest of the note's text."""
        return self.challenges / f"{digest}.txt"

    def checkpoint(self, size: int) -> Path:
        """The checkpoint of the first `size` entries, with the cosignatures collected so far."""
        return self.folder / f"checkpoint-{size}.txt"

    def checkpoints(self) -> list[Path]:
        """The checkpoints that were published."""
        return sorted(self.folder.glob("checkpoint-*.txt"))


@dataclass(frozen=True)
class Layout:
    """A provider's folder of one window, which is private except for `public`."""

    folder: Path

    @property
    def public(self) -> PublicFolder:
        """The part that others read."""
        return PublicFolder(self.folder / "public")

    lock = Named(".lock")
    """The lock file. The one process that has the window open locks it."""
    settings = Named("settings.json")
    """The commands' settings, with the path of the provider's key."""
    secrets = Named("secrets.json")
    """The window's secrets: seed, blindings and the retention key."""
    unfinished = Named("unfinished.json")
    """The inputs of an unfinished window header. The file exists until the first entry is durable."""
    prepared = Named("prepared.json")
    """The contents of a prepared window that has no dates yet (`commit.preparing`)."""
    commitment = Named("commitment.json")
    """The provider's copy of the values that the window header commits to."""
    ledger = Named("ledger.sqlite")
    """The durable ledger, unless `ledger_place` names a database that has it."""
    ledger_place = Named("ledger.json")
    """The file that names the database with the ledger; without it the ledger is in this folder."""
    documents = Named("documents.sqlite")
    """The tenants' texts by position."""
    indices = Named("index")
    """The folder of the tenants' indices."""

    def rows(self, tenant: str) -> Path:
        """A tenant's vectors, which are mapped into memory."""
        return self.indices / f"{tenant}.npy"

    def positions(self, tenant: str) -> Path:
        """The positions of a tenant's documents."""
        return self.indices / f"{tenant}.positions.npy"

    def points(self, tenant: str) -> Path:
        """A scan tenant's index commitment."""
        return self.indices / f"{tenant}.points"

    def table(self, tenant: str) -> Path:
        """The encrypted document table of a tenant (`commit.tables`)."""
        return self.folder / f"table-{tenant}"

    table_key = Named("tables.key")
    """The key that encrypts the document tables, which outlives the window's other secrets."""

    noise_proofs = Named("noise-proofs")
    """The folder of precomputed noise proofs."""

    def column(self, name: str, tenant: str) -> Path:
        """The encrypted opening of the commitment to a column of a tenant."""
        return self.folder / f"{name}-{tenant}"

    proofs = Named("proofs")
    """The folder of the records' proofs."""

    def proof(self, name: str) -> Path:
        """The file of all of a record's proofs, named by their digest, or of one, named by record and statement."""
        return self.proofs / f"{name}.json"

    def column_proof(self, name: str, tenant: str) -> Path:
        """The file of the proof of a tenant's column."""
        return self.proof(f"{name}-{tenant}")

    verification_keys = Named("verification-keys.json")
    """The digests of the verification keys that the window's proofs are made under."""
    estimate = Named("estimate.json")
    """The estimate of repeated questions with the accounts' names."""
    coalition = Named("coalition.json")
    """The coalition proof that the window trailer names."""
