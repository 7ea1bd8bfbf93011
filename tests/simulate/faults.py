"""Every case of vectors/windows."""

from __future__ import annotations

from tests.simulate.cases import Fault
from tests.simulate.forgeries import FORGERIES
from tests.simulate.kinds import KINDS
from tests.simulate.malicious import MALICIOUS
from tests.simulate.pooled import POOLED
from tests.simulate.unreadable import UNREADABLE

FAULTS: list[Fault] = [
    Fault("honest", "nothing: an honest window"),
    Fault("few", "nothing: two questions", base="few"),
    Fault("disclosed", "nothing: the accounts disclose their questions", shown=None, base="disclosed"),
    Fault(
        "embedded",
        "nothing: records have proofs of A1 too",
        require={"query_embedding": "proved"},
        base="embedded",
    ),
    *MALICIOUS,
    *FORGERIES,
    *KINDS,
    *POOLED,
    *UNREADABLE,
]
