"""Every case of vectors/windows."""

from __future__ import annotations

from tests.simulate.cases import Fault
from tests.simulate.cheats import CHEATS
from tests.simulate.forgeries import FORGERIES
from tests.simulate.kinds import KINDS
from tests.simulate.unreadable import UNREADABLE

FAULTS: list[Fault] = [
    Fault("honest", "nothing: an honest window"),
    Fault("few", "nothing: two questions", base="few"),
    Fault("disclosed", "nothing: the accounts disclose their questions", shown=None, base="disclosed"),
    Fault("embedded", "nothing: records have proofs of A1 too", require={"a1": "proved"}, base="embedded"),
    *CHEATS,
    *FORGERIES,
    *KINDS,
    *UNREADABLE,
]
