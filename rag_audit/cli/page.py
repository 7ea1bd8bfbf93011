"""`rag-audit verifier page`: the verifier as a page for a browser."""

from __future__ import annotations

import hashlib
from pathlib import Path

import click

from rag_audit._internal.durable import replace_file
from rag_audit.cli.common import PATH, emit, json_option


@click.command()
@click.argument("file", type=PATH)
@json_option
def page(file: Path, as_json: bool) -> None:
    """Write a page to FILE that verifies windows in a browser without a network.

    The command downloads the parts of the page once and compares them with pinned digests. The page is one file and
    opens no connection. A verifier drops the provider's files on the first area, and trust.toml, receipts and
    challenges on the second area. The page then prints the verdict of `rag-audit verify`.
    """
    from rag_audit.report.browser.page import make_page

    content = make_page()
    replace_file(file, content)
    digest = hashlib.sha256(content).hexdigest()
    emit({"page": str(file), "bytes": len(content), "sha256": digest}, as_json)
