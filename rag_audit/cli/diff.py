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
"""Maximum characters of a text in the output."""


@click.command()
@click.argument("directory", type=PATH)
@configured("documents")
@path_option("--docs", required=True, help="the documents of the next window, as `provider open --docs`")
@reading_options
@flag_option("--list", "listed", help="show the beginning of each added or removed document")
@json_option
def diff(directory: Path, docs: Path, reading: Reading, listed: bool, as_json: bool) -> None:
    """List the differences between the documents of --docs and the window in DIRECTORY.

    A window's index is fixed, so documents are added and removed with the next window.
    """
    inventory = Inventory()
    read = reading.load(docs, inventory)
    differences = changes(directory, {tenant: [d.passage for d in own] for tenant, own in read.items()})
    rows = {
        tenant: {"added": len(c.added), "removed": len(c.removed), "unchanged": c.unchanged}
        | (
            {"texts_added": [d.text for d in c.added], "texts_removed": [d.text for d in c.removed]}
            if listed
            else {}
        )
        for tenant, c in differences.items()
    }
    text = []
    for tenant, c in differences.items():
        text.append(f"{tenant}: {len(c.added)} added, {len(c.removed)} removed, {c.unchanged} unchanged")
        if listed:
            text += [*_begins("+", c.added), *_begins("-", c.removed)]
    emit({"tenants": rows, "inventory": inventory.as_json()}, as_json, text)


def _begins(sign: str, documents: Sequence[Passage]) -> list[str]:
    return [f"  {sign} {d.text[:SHOWN]}" for d in documents]
