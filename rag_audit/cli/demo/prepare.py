"""The demo's texts and questions: the standard library's docstrings, or a person's own texts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rag_audit._internal.canonical import jcs
from rag_audit.cli.demo.corpus import Question, load_questions, passages
from rag_audit.cli.demo.own import MAX_TEXTS, own_questions, own_texts
from rag_audit.cli.demo.stage import Demo, say
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.inventory import Inventory
from rag_audit.retrieval.texts import DocumentPart

WHOLE = "stdlib"
"""The tenant with all docstrings."""
DOCUMENT = "document"
"""The field that names a text's document (`provider open --document-column`)."""


def read_texts(
    docs: Path | None, embedder: Embedder, *, skip_unreadable: bool = False
) -> tuple[dict[str, list[DocumentPart]], list[Question]]:
    """Read the texts by tenant, and return them with the questions about them. Nothing is written.

    :param docs: a person's own texts; None for the standard library's docstrings
    :param skip_unreadable: whether a file of theirs that cannot be read is omitted; without it the error is raised
    """
    if docs is None:
        tenants = {WHOLE: passages()}
        # Nothing was measured on the second set before it was written.
        questions = [replace(question, tenant=WHOLE) for question in load_questions(blind=True)]
        modules = len({text.document for text in tenants[WHOLE]})
        say(f"tenant {WHOLE}: {len(tenants[WHOLE])} docstrings of {modules} modules of the standard library")
        say(
            f"each begins with the name of its object, and its first {embedder.limits.document} tokens are embedded"
        )
    else:
        inventory = Inventory()
        tenants, left_out = own_texts(docs, inventory, skip_unreadable=skip_unreadable)
        for line in inventory.lines():
            say(line)
        questions = own_questions(tenants, embedder)
        named = ", ".join(f"{name} ({len(texts)})" for name, texts in tenants.items())
        say(f"your own texts: {named}; questions are sentences of them")
        for name, count in left_out.items():
            print(
                f"rag-audit: {count} texts of {name} beyond {MAX_TEXTS} are left out",
                file=sys.stderr,
                flush=True,
            )
    return tenants, questions


def write_texts(demo: Demo, tenants: Mapping[str, Sequence[DocumentPart]]) -> None:
    """Write the texts by tenant where `provider open --docs` finds them."""
    folder = demo.provider / "docs"
    folder.mkdir(parents=True)
    for name, texts in tenants.items():
        (folder / f"{name}.jsonl").write_bytes(
            b"".join(jcs({"id": d.id, DOCUMENT: d.document, "text": d.text}) + b"\n" for d in texts)
        )
