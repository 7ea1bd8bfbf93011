"""circomspect's warnings are the ones that docs/circuits.md answers, no more and no fewer."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from rag_audit._internal.node import circuits_dir, npm_packages

PAGE = Path(__file__).resolve().parents[2] / "docs" / "circuits.md"
ROW = re.compile(r"^\| (CS\d{4}) \| `([^`]+)` \| `([^`]+)` \| (.+) \|$", re.MULTILINE)

NOT_RUN = {f"lib/{name}.circom" for name in ("coins", "documents", "kept", "names", "sampled")}
"""Sources with circom 2.2's buses, or that include them, which the tool was not tried on."""
INCLUDE = re.compile(r'include "\.\./(lib/\w+\.circom)"')


def answered() -> Counter[tuple[str, str, str]]:
    return Counter((rule, file, line) for rule, file, line, _ in ROW.findall(PAGE.read_text()))


def test_answered_lines_are_in_the_sources() -> None:
    assert len(answered()) > 40
    for _, file, line in answered():
        lines = [text.strip() for text in (circuits_dir() / file).read_text().splitlines()]
        assert line in lines, f"{file}: {line}"


def test_every_hint_of_the_sources_is_answered() -> None:
    """Each `<--` is a CS0005 or stands in a table of the page: one that is new asks for its constraint."""
    hints = Counter(
        ("CS0005", path.relative_to(circuits_dir()).as_posix(), line.strip())
        for folder in ("lib", "utils")
        for path in (circuits_dir() / folder).glob("*.circom")
        for line in path.read_text().splitlines()
        if "<--" in line
    )
    assert hints - answered() == Counter()


@pytest.mark.circuits
def test_warnings_are_the_answered_ones(tmp_path: Path) -> None:
    tool = shutil.which("circomspect")
    if tool is None:
        pytest.skip("circomspect is not installed: cargo install circomspect")
    root = tmp_path / "circuits"
    shutil.copytree(circuits_dir(), root)
    shutil.copytree(npm_packages() / "circomlib" / "circuits", root / "lib" / "circomlib" / "circuits")
    files = [
        str(path)
        for folder in ("lib", "utils", "main")
        for path in sorted((root / folder).glob("*.circom"))
        if not NOT_RUN & {f"{folder}/{path.name}", *INCLUDE.findall(path.read_text())}
    ]
    report = tmp_path / "report.sarif"
    subprocess.run([tool, *files, "--sarif-file", str(report)], capture_output=True, check=False)
    match: Counter[tuple[str, str, str]] = Counter()
    for result in json.loads(report.read_text())["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        file = place["artifactLocation"]["uri"].rpartition("/circuits/")[2]
        line = (root / file).read_text().splitlines()[place["region"]["startLine"] - 1].strip()
        match[result["ruleId"], file, line] += 1
    assert match == Counter({row: n for row, n in answered().items() if row[1] not in NOT_RUN})
