"""docs/security.md lists what the verdict prints, and names tests that exist."""

import re
from pathlib import Path

from rag_audit.report.verification import DOES_NOT_PROVE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/security.md").read_text()


def test_what_is_not_proved_in_the_verdicts_order() -> None:
    section = PAGE[PAGE.index("## What a PASS does not prove") : PAGE.index("## One-party keys")]
    items = [" ".join(i.split()) for i in re.findall(r"\n\d+\. \*\*(.+?)\*\*", section, re.DOTALL)]
    assert len(items) == len(DOES_NOT_PROVE)
    for item, printed in zip(items, DOES_NOT_PROVE, strict=True):
        assert printed.startswith(item), printed


def test_named_tests_exist() -> None:
    named = re.findall(r"`(tests/[a-z0-9_/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 15
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


def test_named_cheaters_exist() -> None:
    table = PAGE[PAGE.index("| guarantee |") : PAGE.index("## Assumptions")]
    cheats = (ROOT / "tests/window/test_checks.py").read_text()
    named = re.findall(r'"([^"]+)"', table)
    assert len(named) > 25
    for name in named:
        assert re.search(rf'MaliciousProver\(\s*"{re.escape(name)}"', cheats), name
