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
    """Write the page that verifies windows in a browser, without any network, to FILE.

    Its parts are downloaded once, pinned by digests. The page itself is one file that opens no connection. A verifier
    drops the provider's files on its first area and trust.toml, receipts and challenges on the second, and gets what
    `rag-audit verify` says.
    """
    from rag_audit.report.browser.page import make_page

    content = make_page()
    replace_file(file, content)
    digest = hashlib.sha256(content).hexdigest()
    emit({"page": str(file), "bytes": len(content), "sha256": digest}, as_json)
