"""The documentation's website names every page, and the glossary explains the terms with a page for each."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_the_navigation_names_every_page() -> None:
    named = re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2])
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_each_term_of_the_glossary_names_its_page() -> None:
    rows = [r for r in (DOCS / "glossary.md").read_text("utf-8").splitlines() if r.startswith("| ")][1:]
    terms = [row.split("|")[1].strip() for row in rows if not row.startswith("|---")]
    assert len(terms) >= 25
    assert terms == sorted(terms, key=str.casefold)
    assert [row for row in rows if not re.search(r"\[[^\]]+\]\([\w/-]+\.md(#[\w-]+)?\) \|$", row)] == []
