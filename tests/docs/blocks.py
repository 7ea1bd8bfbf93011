"""The examples of a page that a test runs unchanged."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def named_block(page: str, name: str) -> str:
    """The text of the fenced block after ``<!-- tested: name -->`` in a page below docs."""
    result = re.findall(
        rf"<!-- tested: {re.escape(name)} -->\n```\w+\n(.*?)^```$", (DOCS / page).read_text(), re.S | re.M
    )
    assert len(result) == 1, f"{page} has {len(result)} blocks of the name {name}"
    text: str = result[0]
    return text
