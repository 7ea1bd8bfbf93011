"""The proof systems of this installation. Each is one folder, recognised by the folder's contents.

A folder with a module `system` is a proof system; its `SYSTEM` is a `proving.Backend`. Its module `about` has the words
about it, and a module with the name of a column proves the statement about that column. A folder with a module `engine`
is a second verifier of another system's proofs. A folder with a module `release` has transparent protocols, which
trust.toml pins by one digest. A folder with a module `export` writes its proofs for another program. Only a folder
itself contains its name: a policy names a system, and the registry loads the named system.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Sized
from pathlib import Path
from types import ModuleType

from rag_audit._internal.errors import PolicyError, VersionError
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.interface import ProofSystem
from rag_audit.proofs.statements.coalition import CoalitionStatement


def _folders(module: str) -> tuple[str, ...]:
    """The folders that have a module of this name, sorted; none is imported."""
    result = (folder for folder in pkgutil.iter_modules(__path__) if folder.ispkg)
    return tuple(
        sorted(
            folder.name
            for folder in result
            for path in __path__
            if any(inner.name == module for inner in pkgutil.iter_modules([f"{path}/{folder.name}"]))
        )
    )


SYSTEMS = _folders("system")
"""The names of the proof systems, as policies name them."""
ENGINES = _folders("engine")
"""The names of the verify-only backends."""


def load(name: str) -> ModuleType:
    """The module `system` of the proof system that a policy names.

    :raises VersionError: this release does not have the system
    """
    if name not in SYSTEMS:
        raise VersionError("the proof system is unknown", expected=", ".join(SYSTEMS), actual=name)
    return importlib.import_module(f"{__name__}.{name}.system")


def proof_system(name: str) -> ProofSystem:
    """The proof system that a policy names, for a verifier.

    >>> proof_system("scan").ENGINES[0]
    'native'

    :raises VersionError: this release does not have the system
    """
    result: ProofSystem = load(name).SYSTEM
    return result


def column_module(system: str, name: str) -> ModuleType:
    """The module of a proof system that proves the statement about a column, by its `COLUMN`.

    :raises PolicyError: the system has no such module
    """
    module = f"{__name__}.{system}.{name}"
    if importlib.util.find_spec(module) is None:
        raise PolicyError("the proof system does not prove the column's statement", field=name, actual=system)
    return importlib.import_module(module)


def protocols_digest() -> str:
    """The digest over all transparent protocols of this release, 64 hexadecimal digits. trust.toml pins it."""
    [name] = _folders("release")
    digest: str = importlib.import_module(f"{__name__}.{name}.release").protocols_digest()
    return digest


def proof_writer() -> Callable[[WindowFile, Path, CoalitionStatement | None], Sized]:
    """The function that writes a window's proofs, and its coalition proof, for snarkjs. It returns the written
    files."""
    [name] = _folders("export")
    writer: Callable[[WindowFile, Path, CoalitionStatement | None], Sized]
    writer = importlib.import_module(f"{__name__}.{name}.export").write_snarkjs
    return writer
