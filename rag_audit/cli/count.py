"""`rag-audit provider count`: the documents, positions and bytes of a folder, before any text is embedded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from rag_audit._internal.errors import RagAuditError
from rag_audit.cli.common import PATH, emit, json_option
from rag_audit.cli.config import configured
from rag_audit.cli.documents import Reading, reading_options
from rag_audit.cli.options import choice_option, model_option
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, EMBEDDERS, Embedder, get_embedder
from rag_audit.retrieval.engine import smallest_capacity
from rag_audit.retrieval.inventory import Inventory
from rag_audit.retrieval.texts import DocumentPart

SAMPLE = 128
"""Number of texts that the command embeds for its estimate of the time."""


@dataclass(frozen=True)
class Count:
    """The size of one tenant's documents.

    :param bytes: the bytes of all texts in UTF-8
    :param cut: the number of passages that the embedder reads only up to its limit
    """

    inventory: Inventory
    tenant: str
    bytes: int
    cut: int

    @classmethod
    def of(
        cls, inventory: Inventory, tenant: str, parts: Sequence[DocumentPart], embedder: Embedder
    ) -> Count:
        """Count the passages of a tenant."""
        texts = [part.text for part in parts]
        return cls(
            inventory, tenant, sum(len(text.encode()) for text in texts), embedder.cut_documents(texts)
        )

    @property
    def capacity(self) -> int:
        """The smallest capacity with a position for each passage."""
        return smallest_capacity(self.inventory.sizes(self.tenant).positions)

    def as_json(self) -> dict[str, object]:
        """The size for programs."""
        return {
            **self.inventory.sizes(self.tenant).as_json(),
            "bytes": self.bytes,
            "cut": self.cut,
            "capacity": self.capacity,
        }

    def lines(self) -> list[str]:
        """The size for people."""
        sizes = self.inventory.sizes(self.tenant)
        cut = f"; {self.cut} passages are longer than the embedder's limit" if self.cut else ""
        return [
            f"{self.tenant}: {sizes}, {self.bytes / 1e6:.2f} MB of text{cut}",
            f"  smallest capacity: {self.capacity} positions (provider policy new --tenant"
            f" {self.tenant}={self.capacity})",
        ]


@click.command("count")
@click.argument("docs", type=PATH)
@configured("documents", "embedder")
@reading_options
@choice_option(
    "--embedder",
    "name",
    choices=EMBEDDERS,
    default=DEFAULT_EMBEDDER,
    help="the embedder whose time and limit the command states",
)
@model_option
@json_option
def count(docs: Path, reading: Reading, name: str, model: Path | None, as_json: bool) -> None:
    """Count the documents in the folder DOCS, and estimate the time to embed them.

    A capacity is public and fixed for a window, so choose one with room for the documents of later windows. The command
    embeds a sample of the texts, and stores nothing.
    """
    inventory = Inventory()
    read = reading.load(docs, inventory)
    embedder = get_embedder(name, folder=model)
    counts = [Count.of(inventory, tenant, parts, embedder) for tenant, parts in read.items()]
    seconds = seconds_to_embed(embedder, read)
    text = [line for own in counts for line in own.lines()]
    text.append(
        f"embedding: about {seconds:.0f} s on this machine with {name}"
        if seconds is not None
        else f"embedding: no estimate, since {name} gives some texts of the sample no vector"
    )
    value = {
        "tenants": {own.tenant: own.as_json() for own in counts},
        "embedder": name,
        "seconds_to_embed": None if seconds is None else round(seconds, 1),
        "inventory": inventory.as_json(),
    }
    emit(value, as_json, text)


def seconds_to_embed(embedder: Embedder, read: Mapping[str, Sequence[DocumentPart]]) -> float | None:
    """Estimate the seconds to embed all texts from the time for `SAMPLE` texts, which are spread evenly over the
    documents.

    :returns: None if the embedder refuses a text of the sample; `provider open` names such texts
    """
    texts = [part.text for parts in read.values() for part in parts]
    sample = texts[:: max(1, len(texts) // SAMPLE)]
    try:
        embedder.embed_documents(sample[:1])  # the first call also loads the embedder
        start = time.perf_counter()
        embedder.embed_documents(sample)
    except RagAuditError:
        return None
    return (time.perf_counter() - start) * len(texts) / len(sample)
