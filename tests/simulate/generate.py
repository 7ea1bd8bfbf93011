"""Writes vectors/windows, and makes it again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.simulate.cases import FOLDER, HONEST, Fault, files_of
from tests.simulate.cases import write as write_case
from tests.simulate.faults import FAULTS
from tests.simulate.pooled import BY_CIRCUITS, RUNS, base
from tests.simulate.pooled import HONEST as CHAIN
from tests.simulate.recorded import BY_CIRCUIT, Chains, Recorded
from tests.simulate.stored_proofs import StoredProofs
from tests.simulate.windows import BASES, Base, run

MADE = "made.json"


class Bases:
    """The honest windows, each run once."""

    def __init__(self, folder: Path, stored_proofs: StoredProofs) -> None:
        self._folder, self._made = folder, stored_proofs
        self._run: dict[str, Base | Recorded] = {}
        self._chains = Chains(folder / "chains", stored_proofs)
        self._by_circuit = Chains(folder / "circuits", stored_proofs, "documents", BY_CIRCUIT)

    def get(self, name: str) -> Base | Recorded:
        if name not in self._run:
            if name in CHAIN or name in RUNS:
                self._run[name] = base(name, self._chains)
            elif name in BY_CIRCUITS:
                self._run[name] = self._by_circuit.honest(BY_CIRCUITS[name])
            else:
                self._run[name] = run(self._folder / name, self._made, **BASES[name])
        return self._run[name]


def _each(faults: Sequence[Fault], bases: Bases, folder: Path, progress: Callable[[str], None]) -> None:
    for fault in faults:
        shutil.rmtree(folder / fault.name, ignore_errors=True)
        progress(f"{fault.name}: {write_case(fault, files_of(fault, bases.get(fault.base)), folder)}")


def write(names: Sequence[str], *, progress: Callable[[str], None] = lambda name: None) -> None:
    """Write the named cases, or those that are missing."""
    chosen = [
        f for f in FAULTS if (f.name in names if names else not (FOLDER / f.name / "case.json").exists())
    ]
    chosen.sort(key=lambda fault: fault.proving)  # what takes long comes last
    stored_proofs = StoredProofs(FOLDER / MADE, prove=True)
    with tempfile.TemporaryDirectory() as work:
        _each(chosen, Bases(Path(work), stored_proofs), FOLDER, progress)
    stored_proofs.save()


def prune(folder: Path) -> int:
    """Make all cases again in a folder, and forget the stored proofs and keys that no case uses.

    :return: how many proofs and keys it forgot
    """
    stored_proofs = StoredProofs(FOLDER / MADE, prove=False)
    _each(FAULTS, Bases(folder, stored_proofs), folder / "windows", lambda name: None)
    return stored_proofs.drop_unused()


def compare(folder: Path, names: Sequence[str] = ()) -> list[str]:
    """Make cases again in a folder, and name the files that differ from the stored ones."""
    stored_proofs = StoredProofs(FOLDER / MADE, prove=False)
    again = folder / "windows"
    # What a case shares lies in the folders of honest ones.
    needed = (
        {*names, HONEST, *(f.base for f in FAULTS if f.name in names)} if names else {f.name for f in FAULTS}
    )
    chosen = [f for f in FAULTS if f.name in needed]
    _each(chosen, Bases(folder, stored_proofs), again, lambda name: None)
    different = []
    for fault in chosen:
        stored, own = FOLDER / fault.name, again / fault.name
        files = {p.relative_to(d) for d in (stored, own) for p in d.rglob("*") if p.is_file()}
        different += [
            f"{fault.name}/{name}"
            for name in sorted(files)
            if not (stored / name).exists()
            or not (own / name).exists()
            or (stored / name).read_bytes() != (own / name).read_bytes()
        ]
    return different
