"""The paths of the files in a window's folder (docs/architecture.md, "Processes, keys, folders")."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class PublicFolder:
    """The public part of a window's folder, which accounts, witnesses and verifiers read and leave their notes in."""

    folder: Path

    @property
    def opening(self) -> Path:
        """The file that accounts and witnesses need of the window (`models.publication`)."""
        return self.folder / "opening.json"

    @property
    def window(self) -> Path:
        """The file that a verifier needs (`models.windowfile`)."""
        return self.folder / "window.json"

    @property
    def notes(self) -> Path:
        """The folder in which witnesses leave cosignatures and nonces."""
        return self.folder / "notes"

    def note(self, kind: Literal["cosign", "beacon"], size: int, witness: str) -> Path:
        """A witness's note on the checkpoint of the first `size` entries: its cosignature, or its revealed nonce."""
        return self.notes / f"{kind}-{size}-{witness.replace('/', '_')}.txt"

    @property
    def challenges(self) -> Path:
        """The folder of the verifiers' challenge notes that were answered."""
        return self.folder / "challenges"

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

    @property
    def lock(self) -> Path:
        """The lock file, held by the one process that has the window open."""
        return self.folder / ".lock"

    @property
    def settings(self) -> Path:
        """The commands' settings, with the path of the provider's key."""
        return self.folder / "settings.json"

    @property
    def secrets(self) -> Path:
        """The window's secrets: seed, blindings and the retention key."""
        return self.folder / "secrets.json"

    @property
    def unfinished(self) -> Path:
        """The inputs with which an opening was begun, until its first entry is durable."""
        return self.folder / "unfinished.json"

    @property
    def prepared(self) -> Path:
        """What a window that is prepared but not dated will open with (`commit.preparing`)."""
        return self.folder / "prepared.json"

    @property
    def commitment(self) -> Path:
        """The provider's copy of what the opening commits to."""
        return self.folder / "commitment.json"

    @property
    def ledger(self) -> Path:
        """The durable ledger, unless `ledger_place` names a database that has it."""
        return self.folder / "ledger.sqlite"

    @property
    def ledger_place(self) -> Path:
        """The file that names the database with the ledger; without it the ledger is in this folder."""
        return self.folder / "ledger.json"

    @property
    def documents(self) -> Path:
        """The tenants' texts by position."""
        return self.folder / "documents.sqlite"

    @property
    def indices(self) -> Path:
        """The folder of the tenants' indices."""
        return self.folder / "index"

    def rows(self, tenant: str) -> Path:
        """A tenant's vectors, which are mapped into memory."""
        return self.indices / f"{tenant}.npy"

    def positions(self, tenant: str) -> Path:
        """The positions of a tenant's documents."""
        return self.indices / f"{tenant}.positions.npy"

    def points(self, tenant: str) -> Path:
        """A scan tenant's index commitment."""
        return self.indices / f"{tenant}.points"

    @property
    def certificates(self) -> Path:
        """The folder of noise certificates made before their queries."""
        return self.folder / "certificates"

    def column(self, name: str, tenant: str) -> Path:
        """The encrypted opening of the commitment to a column of a tenant."""
        return self.folder / f"{name}-{tenant}"

    @property
    def proofs(self) -> Path:
        """The folder of the records' proofs."""
        return self.folder / "proofs"

    def proof(self, name: str) -> Path:
        """The file of all of a record's proofs, named by their digest, or of one, named by record and statement."""
        return self.proofs / f"{name}.json"

    def column_proof(self, name: str, tenant: str) -> Path:
        """The file of the proof of a tenant's column."""
        return self.proof(f"{name}-{tenant}")

    @property
    def verification_keys(self) -> Path:
        """The digests of the verification keys that the window's proofs are made under."""
        return self.folder / "verification-keys.json"

    @property
    def estimate(self) -> Path:
        """The coalition estimate with the accounts' names."""
        return self.folder / "estimate.json"

    @property
    def coalition(self) -> Path:
        """The coalition proof that the closing record names."""
        return self.folder / "coalition.json"
