"""The words of commands and reports about a proof system. Each folder of `proofs.backends` has them in a module
`about`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from rag_audit.proofs import backends


@dataclass(frozen=True)
class Description:
    """The words about one proof system. They are separate from the system, which takes long to import.

    :param title: its name in sentences
    :param use: its use case, for the help of `--system`
    :param example: the size of a coalition proof in the syntax of `--coalition-proof`
    :param second: its verifiers other than the native one, for the help of `--engine`
    :param batches: the needs of `provider prove --batch` in this system; empty if it has none
    :param keyed: whether its circuits have keys, and so a setup
    """

    title: str
    use: str
    example: str
    second: str
    batches: str = ""
    keyed: bool = False


def described() -> dict[str, Description]:
    """The words about each proof system by its name, first those without keys."""
    result: dict[str, Description] = {
        name: importlib.import_module(f"{backends.__name__}.{name}.about").DESCRIPTION
        for name in backends.SYSTEMS
    }
    return dict(sorted(result.items(), key=lambda item: item[1].keyed))


def default_system() -> str:
    """The default proof system of tenants and coalition proofs."""
    return next(iter(described()))


def keyed_titles() -> str:
    """The proof systems with keys for their circuits, in words."""
    return " and ".join(words.title for words in described().values() if words.keyed)
