"""The statements of all proof systems: one module for each kind, with its public values and private inputs.

- `retrieve`: a record lists the positions that its tenant's mechanism selects (claims A2 to A4)
- `embed`: a record's query vector follows from the query's tokens (claim A1)
- `column`: a column that the window commits to once for a tenant contains the bits that its statement names
- `sample`: values drawn from the window's seed: a tenant's sampled positions, a slot's noise or Bernoulli bits
- `coalition`: the accounts of a window form no larger clusters than it declares

Prover and verifier build the public values only from published entries (`tenant`), and never read one from a proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.policy import Policy
from rag_audit.models.records import WindowHeader
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.sample import sample_public
from rag_audit.proofs.statements.tenant import TenantPublic


class ColumnStatement(Protocol):
    """The public values of a tenant's column, from published entries only."""

    def __call__(
        self, tenant: TenantPublic, policy: Policy, *, header: WindowHeader, beacon: bytes
    ) -> ColumnPublic: ...


COLUMNS: Mapping[str, ColumnStatement] = {SAMPLE: sample_public}
"""The statements about columns by the column's name (`mechanisms.COLUMNS`)."""
