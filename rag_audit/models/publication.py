"""public/header.json: the documents that accounts and witnesses need before a window is closed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from rag_audit._internal.canonical import Json, digest_hex, read_json
from rag_audit._internal.errors import InvalidProof, RagAuditError, VersionError
from rag_audit.models.header import compared
from rag_audit.models.models import Model
from rag_audit.models.policy import Policy
from rag_audit.models.records import RosterEntry, TenantEntry, WindowHeader

PUBLICATION = "application/vnd.rag-audit.header+json;version=1"
MAX_PUBLICATION_BYTES = 64 << 20


def hint_of_public(file: Path) -> str | None:
    """The hint for a file that is missing in a provider's own folder of a window and exists in its public folder.

    :returns: None if there is no such public folder
    """
    public = file.parent / "public"
    if file.exists() or not (public / file.name).exists():
        return None
    return f"this is the provider's own folder of the window; name its public folder, {public}"


class Publication(Model):
    """The content of public/header.json."""

    mediaType: str
    header: dict[str, Json]
    policy: dict[str, Json]
    embedder: dict[str, Json]
    roster: list[Json]
    tenants: list[Json]

    @classmethod
    def load(cls, path: Path) -> Publication:
        """Read and check a publication from its file, or from the header.json of a folder."""
        path = path / "header.json" if path.is_dir() else path
        try:
            value = read_json(path, max_bytes=MAX_PUBLICATION_BYTES)
        except RagAuditError as exc:
            exc.hint = exc.hint or hint_of_public(path)
            raise
        return cls.of(value, field=path.name)

    @classmethod
    def of(cls, value: Json, *, field: str) -> Publication:
        """The publication that was read as JSON.

        :raises VersionError: the value is something else, or of another version
        """
        if not isinstance(value, dict) or value.get("mediaType") != PUBLICATION:
            raise VersionError(
                "the file is not the publication of a window header", field=field, expected=PUBLICATION
            )
        return cls.parse(value, field=field)

    def check(self) -> None:
        """Check that the published documents match the window header's commitments. The check runs once, because the
        documents are immutable.

        :raises InvalidProof: a document does not match; the error names the first such document
        """
        _ = self._checked

    def parsed_header(self) -> WindowHeader:
        """The window header, entry 0 of the ledger."""
        return self._header

    def parsed_tenants(self) -> Sequence[TenantEntry]:
        """The tenants' commitments."""
        return self._tenants

    def parsed_policy(self) -> Policy:
        """The policy."""
        return self._policy

    def header_digest(self) -> str:
        """SHA-256 over the canonical JSON of entry 0. Requests and receipts name the window by this digest."""
        return self._digest

    def __copy__(self) -> Self:
        """A copy without the cached values, which are derived from the documents, so that a document of the copy may
        be replaced."""
        copied = super().__copy__()
        for name in ("_checked", "_header", "_tenants", "_policy", "_digest"):
            copied.__dict__.pop(name, None)
        return copied

    @cached_property
    def _checked(self) -> bool:
        roster = [RosterEntry.parse(r, field=f"roster[{i}]") for i, r in enumerate(self.roster)]
        for name, committed, actual in compared(
            self._header, policy=self.policy, embedder=self.embedder, roster=roster, tenants=self._tenants
        ):
            if committed != actual:
                raise InvalidProof("a published document differs from the committed document", field=f"header.{name}",
                                   expected=committed, actual=actual)  # fmt: skip
        return True

    @cached_property
    def _header(self) -> WindowHeader:
        return WindowHeader.parse(self.header, field="header")

    @cached_property
    def _tenants(self) -> Sequence[TenantEntry]:
        return tuple(TenantEntry.parse(t, field=f"tenants[{i}]") for i, t in enumerate(self.tenants))

    @cached_property
    def _policy(self) -> Policy:
        return Policy.parse(self.policy, field="policy")

    @cached_property
    def _digest(self) -> str:
        return digest_hex(self.header)
