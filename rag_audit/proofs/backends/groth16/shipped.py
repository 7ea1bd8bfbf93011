"""The instances whose `main` components are in circuits/main."""

from __future__ import annotations

from rag_audit.proofs.backends.groth16.coins import KeptInstance, ListingInstance, SampledInstance
from rag_audit.proofs.backends.groth16.instance import (
    CoalitionInstance,
    EmbedInstance,
    Instance,
    RetrieveInstance,
    RetrieveManyInstance,
)

SHIPPED: tuple[Instance, ...] = (
    *(
        RetrieveInstance(capacity, 256, 5, gains, 101, 810, lattice)
        for capacity in (64, 256)
        for gains, lattice in (((1,), 64), ((1, 8, 64), 128))
    ),
    RetrieveInstance(1024, 256, 5, (1,), 101, 810, 64),
    RetrieveManyInstance(4, RetrieveInstance(256, 256, 5, (1, 8, 64), 101, 810, 128)),
    *(KeptInstance(capacity) for capacity in (64, 256)),
    *(
        SampledInstance(capacity, 256, 5, gains, 101, 810, lattice, sampled)
        for capacity in (64, 256)
        for gains, lattice, sampled in (((), 64, True), ((1,), 64, True), ((), 64, False))
    ),
    *(ListingInstance(capacity, 256) for capacity in (64, 256)),
    EmbedInstance(24),
    EmbedInstance(64),
    CoalitionInstance(16),
    CoalitionInstance(64),
)
