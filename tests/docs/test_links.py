"""Every relative link of the README and the docs, and every docs reference in the code, leads somewhere."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SOURCES = {".py", ".pyi", ".rs", ".circom", ".toml", ".cjs"}
CITATION = re.compile(r'(docs/[a-z]+\.md)`?(?:, "([^"\n]+)")?')


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in {_anchor(h) for h in HEADING.findall(path.read_text())}, f"{page.name}: {target}"


def _tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / n for n in names.splitlines() if Path(n).suffix in SOURCES and (ROOT / n).exists()]


def test_citations_in_code() -> None:
    wrong = []
    for path in _tracked():
        for name, section in CITATION.findall(path.read_text(encoding="utf-8")):
            page = ROOT / name
            if not page.exists():
                wrong.append(f"{path.relative_to(ROOT)}: {name}")
            elif section and section not in HEADING.findall(page.read_text()):
                wrong.append(f'{path.relative_to(ROOT)}: {name}, "{section}"')
    assert wrong == []
