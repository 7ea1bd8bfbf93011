"""What commands and reports say of a proof system: each folder of `proofs.backends` has a module `about` with it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from rag_audit.proofs import backends


@dataclass(frozen=True)
class Description:
    """The words about one proof system. They are separate from the system, which takes long to import.

    :param title: its name in sentences
    :param use: when it serves, for the help of `--system`
    :param example: the size of a coalition proof as `--certificate` takes it
    :param second: its verifiers besides the native one, for the help of `--engine`
    :param batches: what `prove --together` needs in this system; empty where it needs nothing
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
    found: dict[str, Description] = {
        name: importlib.import_module(f"{backends.__name__}.{name}.about").DESCRIPTION
        for name in backends.SYSTEMS
    }
    return dict(sorted(found.items(), key=lambda item: item[1].keyed))


def default_system() -> str:
    """The proof system of tenants and coalition proofs for which nobody names one."""
    return next(iter(described()))


def keyed_titles() -> str:
    """The proof systems whose circuits have keys, in words."""
    return " and ".join(words.title for words in described().values() if words.keyed)
