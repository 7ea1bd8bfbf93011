"""The answers to `rag-audit init`. The folder stores them, so that a repeated command continues with them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rag_audit._internal.canonical import read_json
from rag_audit._internal.errors import SetupError
from rag_audit.models.models import Count, Identifier, Line, Model, One, Positive

FILE = "init.json"
FACTS = ("operator", "purpose", "contact")
"""The answers about the service that reports show and no check reads."""
MAX_BYTES = 1 << 20


class WitnessAnswer(Model):
    """A witness of another party.

    :param vkey: the key that the witness printed
    :param url: its address; None if the parties exchange files
    """

    vkey: str
    url: str | None = None


class TableAnswer(Model):
    """The numbers of a tenant's document table (`TableShape`)."""

    rows: Positive
    positions_per_document: Positive
    fresh_rows: Positive


class Answers(Model):
    """init.json: the answers, and the sizes that were counted.

    :param name: the name of the provider's key and ledger
    :param docs: the folders of the documents, absolute; each of several is a tenant with the folder's name
    :param one_tenant: the tenant of all files; None if each folder at the top is a tenant
    :param rights: whether users of a tenant have individual rights
    :param verifiers: the keys of verifiers whose challenges count
    :param witnesses: the witnesses; none for a pilot, whose witnesses the run operates
    :param lasts: the time from a window's opening to its closing; `lead` the time before its opening
    :param windows: the number of windows; 0 continues without end
    :param model: the folder of the embedder's files, absolute
    :param capacities: the positions of each tenant
    :param tables: the document table of each tenant
    :param operator: the provider's words about the service, for reports; `purpose` and `contact` likewise
    """

    v: One = 1
    name: Line
    docs: Annotated[list[str], Field(min_length=1)]
    one_tenant: Identifier | None
    accounts: Positive
    questions: Positive
    rights: bool
    verifiers: Annotated[list[str], Field(default_factory=list)]
    witnesses: Annotated[list[WitnessAnswer], Field(default_factory=list)]
    http: str
    lasts: str
    lead: str
    windows: Count
    embedder: str
    model: str | None
    skip_unreadable: bool
    capacities: dict[str, Positive]
    tables: dict[str, TableAnswer]
    operator: Line | None = None
    purpose: Line | None = None
    contact: Line | None = None

    @property
    def pilot(self) -> bool:
        """Whether the run operates the witnesses itself."""
        return not self.witnesses

    @property
    def tenants(self) -> list[str]:
        """The tenants, in the order of their names."""
        return sorted(self.capacities)


@dataclass(frozen=True)
class Given:
    """The answers that a command line gives, each under the name of its option. An omitted answer is None or empty."""

    docs: Sequence[Path] = ()
    one_tenant: str | None = None
    name: str | None = None
    accounts: int | None = None
    questions: int | None = None
    rights: bool | None = None
    verifiers: Sequence[str] = ()
    witnesses: Sequence[WitnessAnswer] = ()
    http: str | None = None
    lasts: str | None = None
    lead: str | None = None
    windows: int | None = None
    embedder: str | None = None
    model: Path | None = None
    skip_unreadable: bool = False
    operator: str | None = None
    purpose: str | None = None
    contact: str | None = None

    def values(self) -> dict[str, object]:
        """The answers that were given, in the form of `Answers`."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            name: os.path.abspath(value) if isinstance(value, Path) else
            [os.path.abspath(item) if isinstance(item, Path) else item for item in value]
            if isinstance(value, tuple | list) else value
            for name, value in given.items()
            if (value not in (None, (), []) and value is not False) or (name == "rights" and value is not None)
        }  # fmt: skip


OPTIONS = {"one_tenant": "--tenant", "verifiers": "--verifier", "witnesses": "--witness"}
"""The options whose names differ from the answers' names."""


def load_answers(folder: Path) -> Answers | None:
    """The answers that a folder stores, or None.

    :raises RagAuditError: the file cannot be read
    """
    path = folder / FILE
    if not path.exists():
        return None
    return Answers.parse(read_json(path, max_bytes=MAX_BYTES), field=str(path))


def refuse_other_answers(before: Answers, given: Given, folder: Path) -> None:
    """Refuse an answer that differs from the folder's: keys, policy and trust file follow from the first one.

    :raises SetupError: an answer differs; the error names its option
    """
    for name, value in given.values().items():
        if (earlier := getattr(before, name)) != value:
            raise SetupError(
                "an earlier `rag-audit init` of this folder had another answer",
                field=OPTIONS.get(name, f"--{name.replace('_', '-')}"),
                expected=_shown(earlier),
                actual=_shown(value),
                hint=f"omit the option to continue with the earlier answer; for another answer name another folder"
                     f" than {folder}, or change provider.toml and policy.json of this folder"
                     " (docs/deploy/README.md)",
            )  # fmt: skip


def _shown(value: object) -> str:
    if isinstance(value, list):
        return (
            ", ".join(f"{w.vkey}@{w.url}" if isinstance(w, WitnessAnswer) else str(w) for w in value)
            or "none"
        )
    return {None: "none", True: "yes", False: "no"}.get(value, str(value))  # type: ignore[call-overload,no-any-return]
