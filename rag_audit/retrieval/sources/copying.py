"""Writing copied documents as ``<tenant>.jsonl``, all of them or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from rag_audit._internal.canonical import jcs
from rag_audit._internal.durable import sync_directory
from rag_audit._internal.errors import StoreError
from rag_audit.retrieval.inventory import Inventory, NoDocumentsError
from rag_audit.retrieval.readers import DocumentsError
from rag_audit.retrieval.sources.columns import Line
from rag_audit.retrieval.texts import tenant_id

MAX_TENANTS = 512
"""Maximum number of tenants of one source; each tenant has an open file."""


def copied(
    lines: Iterable[Line], out: Path, tenant: str | None = None, *, source: str, inventory: Inventory
) -> Iterator[str]:
    """Write documents into a folder, and yield each document's tenant after writing it.

    All files appear after the last document has been read, so an interrupted copy leaves no file behind.

    :param tenant: the tenant of documents without a tenant
    :param source: where the documents come from, for errors, without a password
    :param inventory: records the written documents, and the documents that repeat a text of their tenant
    :raises DocumentsError: a tenant's name is no id, there are too many tenants, or a file is there already
    :raises NoDocumentsError: there are no documents; the error names the omitted rows
    :raises StoreError: the files cannot be written
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".copy-", dir=out) as temporary, ExitStack() as stack:
            files: dict[str, BinaryIO] = {}
            for document in lines:
                name = tenant_id(document.tenant or tenant or "", document.place)
                if name not in files:
                    path = out / f"{name}.jsonl"
                    if len(files) == MAX_TENANTS:
                        raise DocumentsError(
                            "there are too many tenants", field=document.place, expected=MAX_TENANTS
                        )
                    if path.exists():
                        raise DocumentsError("the tenant's documents are there already", field=str(path),
                                             hint="copy into another folder, and see"
                                                  " `rag-audit provider diff`")  # fmt: skip
                    files[name] = stack.enter_context(open(Path(temporary, path.name), "xb"))
                files[name].write(jcs(document.line) + b"\n")
                inventory.count(name, document.passage)
                yield name
            if not files:
                raise NoDocumentsError(
                    "the source holds no documents",
                    field=source,
                    expected="a row with text",
                    actual="no row that can be used" if inventory.omitted else "no rows",
                    inventory=inventory,
                )
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
            for name in files:
                shutil.move(Path(temporary, f"{name}.jsonl"), out / f"{name}.jsonl")
        sync_directory(out)
    except OSError as exc:
        raise StoreError(
            "the copy cannot be written", field=str(out), actual=exc.strerror or str(exc)
        ) from exc
