"""Every link of the README and the docs, every piece of code that they name, and every page or section that the code
names, is there."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SOURCES = {".py", ".pyi", ".rs", ".circom", ".toml", ".cjs", ".lock"}
CITATION = re.compile(r'((?:docs|vectors)/[\w/-]+\.(?:md|json))(?:#([\w-]+))?`?(?:, "([^"\n]+)")?')
SECTION = re.compile(r'((?:[\w-]+/)*[\w-]+\.md)`?(?:,| \()\s*"([^"]+)"')
COMMENT = re.compile(r"\n[ \t]*(?://[/!]?|#|\*)?[ \t]*")
FENCED = re.compile(r"```.*?```", re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")
# A file or folder, with the name of something in it.
PLACE = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?(?:::(\w+))?")
# A function, a test, a constant: of several words, so that no word of English or of a format is taken for one.
NAME = re.compile(r"[a-zA-Z]\w*_\w*_\w+")
MODULE = re.compile(r"python -m ((?:bench|rag_audit)[\w.]*)")


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _anchors(page: Path) -> set[str]:
    return {_anchor(heading) for heading in HEADING.findall(FENCED.sub("", page.read_text("utf-8")))}


@cache
def _tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / n for n in names.splitlines() if (ROOT / n).is_file()]


@cache
def _sources() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in _tracked() if path.suffix in SOURCES}


@cache
def _identifiers() -> frozenset[str]:
    return frozenset(word for text in _sources().values() for word in re.findall(r"\w+", text))


def test_pages_are_tracked() -> None:
    assert set(PAGES) <= set(_tracked())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page: Path) -> None:
    text = FENCED.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in _anchors(path), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_that_a_page_names(page: Path) -> None:
    """Files and what is in them, functions and tests by name, modules that are run."""
    text = FENCED.sub("", page.read_text("utf-8"))
    tops = {path.relative_to(ROOT).parts[0] for path in _tracked()}
    modules = MODULE.findall(page.read_text("utf-8"))
    wrong = [name for name in modules if not _module(name)]
    for quoted in QUOTED.findall(text):
        place = PLACE.fullmatch(quoted)
        if place and quoted.split("/")[0] in tops and "/" in quoted:
            path = ROOT / quoted.partition("::")[0]
            name = place[1]
            if not path.exists() or (name and not re.search(rf"\b{name}\b", path.read_text("utf-8"))):
                wrong.append(quoted)
        elif NAME.fullmatch(quoted) and quoted not in _identifiers():
            wrong.append(quoted)
    assert wrong == []


def _module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__main__.py").exists()


def _citations(text: str) -> list[tuple[str, str, str]]:
    """Pages that a text names by their path from the root, with an anchor or a section."""
    return CITATION.findall(COMMENT.sub(" ", text))


def test_citations_in_code() -> None:
    wrong = []
    for path, text in _sources().items():
        if path == Path(__file__).resolve():
            continue  # it cites what is not there, below
        for name, anchor, section in _citations(text):
            page = ROOT / name
            if (
                not page.exists()
                or (anchor and anchor not in _anchors(page))
                or (section and section not in HEADING.findall(page.read_text("utf-8")))
            ):
                wrong.append(f"{path.relative_to(ROOT)}: {name} {anchor} {section}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sections_that_a_page_names(page: Path) -> None:
    """As in: docs/relation.md ("Vectors")."""
    for name, section in SECTION.findall(" ".join(page.read_text("utf-8").split())):
        places = [path for path in (ROOT / name, page.parent / name) if path.exists()]
        assert places, f"{page.name}: {name}"
        assert section in HEADING.findall(places[0].read_text("utf-8")), f'{page.name}: {name}, "{section}"'


@pytest.mark.parametrize(
    "text",
    [
        "// `docs/scan/nowhere.md`",
        'See docs/scan/README.md, "No such section"',
        "(docs/scan/verification.md#no-such-section)",
        'Wrapped: docs/scan/README.md,\n    /// "No such section"',
        "vectors/v1/scan/nothing.json",
    ],
)
def test_a_citation_of_nothing_is_seen(text: str) -> None:
    result = [c for c in _citations(text) if c[0]]
    assert len(result) == 1
    name, anchor, section = result[0]
    assert not (ROOT / name).exists() or anchor or section


def test_decisions_are_numbered_once() -> None:
    files = sorted((ROOT / "docs/decisions").glob("*.md"))
    numbers = [int(file.name[:4]) for file in files]
    assert len(set(numbers)) == len(numbers)
    headings = [int(file.read_text().removeprefix("# ").partition(".")[0]) for file in files]
    assert headings == numbers
