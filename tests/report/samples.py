"""The sample outputs of docs/report.md, from the worked example.

python -m tests.report.samples    write them
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from rag_audit.report import intoto, junit, sarif, svr, text, vsa
from rag_audit.report.html import page
from rag_audit.report.model import Report

PAGE = Path(__file__).resolve().parents[2] / "docs/report.md"
EXAMPLE = PAGE.with_name("report-example.html")
"""The HTML face of the example that passed."""
BLOCK = re.compile(
    r"<!-- report: (?P<name>[a-z]+) -->\n```(?P<language>[a-z]+)\n(?P<body>.*?)```\n", re.DOTALL
)


def blocks(passed: Report, failed: Report, unmet: Report) -> dict[str, str]:
    """The text of every block by its name."""
    said = text.render(failed)
    log = sarif.value(unmet)
    assert isinstance(log, dict)
    result = json.loads(json.dumps(log))["runs"][0]["results"][1]
    case = next(
        c for c in ET.fromstring(junit.render(unmet)).iter("testcase") if c.get("name") == result["ruleId"]
    )
    case.tail = None
    ET.indent(case)
    summary, simple = json.loads(vsa.render(passed)), json.loads(svr.render(passed))
    for statement in (summary, simple):
        del statement["predicate"][intoto.EXTENSION]
    return {
        "passed": text.render(passed).partition("\nnotes\n")[0],
        "failed": said[: said.index("\nprivacy ")],
        "sarif": json.dumps(result, indent=1) + "\n",
        "junit": ET.tostring(case, encoding="unicode") + "\n",
        "vsa": json.dumps(summary, indent=1) + "\n",
        "svr": json.dumps(simple, indent=1) + "\n",
    }


def filled(shown: str, result: Mapping[str, str]) -> str:
    """docs/report.md with every marked block as `result` has it."""

    def block(match: re.Match[str]) -> str:
        return f"<!-- report: {match['name']} -->\n```{match['language']}\n{result[match['name']]}```\n"

    return BLOCK.sub(block, shown)


def main() -> None:
    """Write the blocks, and the page."""
    from tests.report.conftest import sampled_reports

    reports = sampled_reports()
    PAGE.write_text(filled(PAGE.read_text(), blocks(**reports)))
    EXAMPLE.write_text(page.render(reports["passed"]), encoding="utf-8")


if __name__ == "__main__":
    main()
