"""`rag-audit provider documents`: documents copied from where they are; and the options of commands that read
documents."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from rag_audit.cli.common import emit, json_option, progress, reading_documents, say
from rag_audit.cli.options import default_option, flag_option, gathered, path_option, skip_option
from rag_audit.retrieval.chunks import LONGEST_CHUNK, MAX_CHUNK, SHORTEST_CHUNK, Cutting
from rag_audit.retrieval.inventory import Inventory
from rag_audit.retrieval.sources.columns import Columns, documents
from rag_audit.retrieval.sources.copying import copied
from rag_audit.retrieval.sources.model import Asked
from rag_audit.retrieval.sources.reading import rows
from rag_audit.retrieval.texts import DOCUMENT_COLUMN, DocumentPart, load_directory


@dataclass(frozen=True)
class Reading:
    """The options of a command that reads a folder of documents."""

    text_alone: bool
    document_column: str
    cutting: Cutting
    skip_unreadable: bool
    one_tenant: str | None

    @classmethod
    def of(
        cls,
        text_alone: bool,
        document_column: str,
        chunk: int,
        overlap: int,
        headings: bool,
        skip_unreadable: bool,
        one_tenant: str | None,
    ) -> Reading:
        """The object for the values of the options."""
        return cls(
            text_alone, document_column, Cutting(chunk, overlap, headings), skip_unreadable, one_tenant
        )

    def load(self, folder: Path, inventory: Inventory) -> dict[str, list[DocumentPart]]:
        """The documents of each tenant (`load_directory`). The method records and prints the documents that were
        read and the parts that were omitted."""
        with reading_documents() as show:
            documents = load_directory(
                folder,
                text_alone=self.text_alone,
                document_column=self.document_column,
                cutting=self.cutting,
                skip_unreadable=self.skip_unreadable,
                one_tenant=self.one_tenant,
                inventory=inventory,
                progress=show,
            )
        for line in inventory.lines():
            say(line)
        return documents


reading_options = gathered(
    "reading",
    Reading.of,
    flag_option(
        "--text-alone",
        help="return only texts: without the other fields of the lines of <tenant>.jsonl, and without files' names",
    ),
    default_option(
        "--document-column",
        default=DOCUMENT_COLUMN,
        help="the field of a line of <tenant>.jsonl that names its document: lines with one value are one document; a"
        " line without `id` is a document of its own",
    ),
    default_option(
        "--chunk",
        type=click.IntRange(SHORTEST_CHUNK, LONGEST_CHUNK),
        default=MAX_CHUNK,
        help="maximum characters of a chunk of a text file",
    ),
    default_option(
        "--overlap",
        type=click.IntRange(min=0),
        default=0,
        help="maximum characters that a chunk repeats from the previous chunk",
    ),
    flag_option(
        "--headings", help="also split files at their headings, and store the heading with each chunk"
    ),
    skip_option,
    click.option(
        "--one-tenant",
        metavar="ID",
        help="the tenant of all files; by default each folder at the top is a tenant",
    ),
)
"""Options of a command that reads a folder of documents, which gets them as `reading`."""


def _columns(
    tenant_column: str | None, text_column: str, keep: tuple[str, ...], drop: tuple[str, ...]
) -> Columns:
    """The columns that the options select."""
    return Columns(text_column, tenant_column, keep or None, drop)


@click.command("documents")
@click.argument("source")
@path_option("--out", required=True, help="the folder for <tenant>.jsonl, as `provider open --docs` reads it")
@click.option("--tenant", help="the tenant of all documents")
@gathered(
    "columns",
    _columns,
    click.option("--tenant-column", help="the column that names each document's tenant"),
    default_option("--text-column", default="text", help="the column with the text"),
    click.option(
        "--keep", multiple=True, help="a column to copy with the text; repeat for each; all by default"
    ),
    click.option("--drop", multiple=True, help="a column to omit, such as a vector; repeat for each"),
)
@click.option(
    "--query", help="for a PostgreSQL database: the SQL statement that selects the documents, one a row"
)
@path_option("--texts", help="for a faiss index: the file with its texts, in the order of its vectors")
@flag_option(
    "--skip-unreadable",
    help="omit and name rows without text or tenant or with unsupported values, instead of stopping",
)
@json_option
def documents_(
    source: str,
    out: Path,
    tenant: str | None,
    columns: Columns,
    query: str | None,
    texts: Path | None,
    skip_unreadable: bool,
    as_json: bool,
) -> None:
    """Copy documents from SOURCE into a folder that `provider open --docs` reads.

    SOURCE is a .jsonl, .parquet or .faiss file, qdrant://host:port/collection, qdrant:FOLDER/collection, or
    postgresql://user@host/database. A window commits to this copy. After a change of the source, repeat the command,
    and list the changes of the next window with `rag-audit provider diff`.
    """
    if (tenant is None) == (columns.tenant is None):
        raise click.UsageError("give one of --tenant and --tenant-column")
    show, inventory, done = progress("documents"), Inventory(), 0
    request = Asked(source, query, texts, columns.unused)
    with closing(rows(request)) as read:
        lines = documents(read, columns, inventory, skip=skip_unreadable)
        for _ in copied(lines, out, tenant, source=request.shown, inventory=inventory):
            done += 1
            if done % 1000 == 0:
                show(done, done)
    for line in inventory.lines():
        say(line)
    counts = {name: inventory.sizes(name).positions for name in sorted(inventory.documents)}
    named = "; ".join(f"{name} {count}" for name, count in counts.items())
    value = {"documents": counts, "out": str(out), "inventory": inventory.as_json()}
    emit(value, as_json, [f"documents: {named}", f"out: {out}"])
