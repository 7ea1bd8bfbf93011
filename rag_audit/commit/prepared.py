"""What a window's folder keeps of a preparation: all that an opening needs but its dates, its predecessor and its
witnesses' nonces (docs/decisions/0039-prepare-date-and-chain-a-window-apart.md).
"""

from __future__ import annotations

from pathlib import Path

from rag_audit._internal.canonical import Json, read_json
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit._internal.errors import PolicyError, StoreError, WindowStateError
from rag_audit.commit.commitment import WindowSecrets
from rag_audit.commit.stored import MAX_COMMITMENT_BYTES
from rag_audit.log.keys import VerifierKey
from rag_audit.models.layout import Layout
from rag_audit.models.models import Model, One
from rag_audit.models.policy import Policy
from rag_audit.models.records import BeaconSource, RosterEntry, TenantEntry

LATER = frozenset({"window", "opens_at", "closes_at", "delete_after"})
"""The policy's fields on which nothing that is prepared rests."""


class Preparation(Model):
    """prepared.json: what a prepared window will open with. It is private, since commitments are published with the
    opening only.

    :param origin: the ledger's name, if it is known already
    :param beacon: the source that was named when the window was prepared, if any; another one may replace it
    """

    v: One = 1
    origin: str | None
    policy: dict[str, Json]
    embedder: dict[str, Json]
    roster: list[RosterEntry]
    tenants: list[TenantEntry]
    beacon: BeaconSource | None
    witnesses: list[str]

    def parsed_witnesses(self) -> list[VerifierKey]:
        """The witnesses that were named when the window was prepared."""
        return [VerifierKey.parse(w, field="prepared.json.witnesses") for w in self.witnesses]

    def parsed_policy(self) -> Policy:
        """The policy, whose dates may be past."""
        return Policy.parse(self.policy, field="prepared.json.policy")

    def redated(self, policy: Policy) -> Policy:
        """Another policy for the same preparation.

        :raises PolicyError: it differs in more than id and dates
        """
        prepared, given = self.parsed_policy().dump(), policy.dump()
        for name in sorted((prepared.keys() | given.keys()) - LATER):
            if prepared.get(name) != given.get(name):
                raise PolicyError("the window was prepared for another policy", field=f"policy.{name}",
                                  expected=prepared.get(name), found=given.get(name),
                                  hint="with --docs the command checks the new policy against the texts, and keeps the"
                                  " index if embedder, texts, tenants and capacities are the same")  # fmt: skip
        return policy

    def save(self, directory: Path) -> None:
        """Write prepared.json."""
        replace_file(Layout(directory).prepared, self.canonical(), mode=PRIVATE_MODE)


def load_preparation(directory: Path) -> tuple[Preparation, WindowSecrets]:
    """Read a preparation back with the secrets that were drawn for it. What it committed to is compared with the index
    and the texts when the window is read back.

    :raises WindowStateError: nothing is prepared there
    :raises StoreError: a part is missing
    """
    layout = Layout(directory)
    if not layout.prepared.exists():
        raise WindowStateError("no window is prepared in this folder", field=str(directory),
                               hint="`rag-audit open --prepare` prepares one, or goes on with it")  # fmt: skip
    value = read_json(layout.prepared, max_bytes=MAX_COMMITMENT_BYTES)
    found = Preparation.parse(value, field="prepared.json")
    window_secrets = WindowSecrets.load(layout.secrets)
    names = [t.tenant for t in found.tenants]
    if set(window_secrets.index_salts) != set(names):
        raise StoreError("the secrets are another window's", field="secrets.json.index_salts")
    for path in (layout.documents, *(p for n in names for p in (layout.rows(n), layout.positions(n)))):
        if not path.exists():
            raise StoreError("a part of the prepared window is missing", field=str(path),
                             hint="`rag-audit open --prepare` makes what is missing")  # fmt: skip
    return found, window_secrets
