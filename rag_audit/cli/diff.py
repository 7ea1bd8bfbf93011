"""`rag-audit provider diff`: the changes that a new window over updated documents would make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rag_audit.cli.common import PATH, emit, json_option
from rag_audit.cli.config import configured
from rag_audit.cli.documents import Reading, reading_options
from rag_audit.cli.options import flag_option, path_option
from rag_audit.commit.changes import changes
from rag_audit.models.passage import Passage
from rag_audit.retrieval.inventory import Inventory

SHOWN = 60
"""The characters of a text that are shown."""


@click.command()
@click.argument("directory", type=PATH)
@configured("documents")
@path_option("--docs", required=True, help="the documents of the next window, as `provider open --docs`")
@reading_options
@flag_option("--list", "listed", help="show the beginning of each document that comes or goes")
@json_option
def diff(directory: Path, docs: Path, reading: Reading, listed: bool, as_json: bool) -> None:
    """Say which documents of --docs the window in DIRECTORY does not hold, and which ones it alone holds.

    A window's index is fixed: documents come and go with the next window.
    """
    inventory = Inventory()
    read = reading.load(docs, inventory)
    found = changes(directory, {tenant: [d.passage for d in own] for tenant, own in read.items()})
    rows = {
        tenant: {"added": len(c.added), "removed": len(c.removed), "unchanged": c.unchanged}
        | (
            {"texts_added": [d.text for d in c.added], "texts_removed": [d.text for d in c.removed]}
            if listed
            else {}
        )
        for tenant, c in found.items()
    }
    text = []
    for tenant, c in found.items():
        text.append(f"{tenant}: {len(c.added)} added, {len(c.removed)} removed, {c.unchanged} unchanged")
        if listed:
            text += [*_begins("+", c.added), *_begins("-", c.removed)]
    emit({"tenants": rows, "inventory": inventory.as_json()}, as_json, text)


def _begins(sign: str, documents: Sequence[Passage]) -> list[str]:
    return [f"  {sign} {d.text[:SHOWN]}" for d in documents]
