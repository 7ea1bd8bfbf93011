"""axe-core, which judges a page by the WCAG, from the npm package that package-lock.json pins by its digest."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from rag_audit._internal.cache import build_once, cache_dir
from rag_audit._internal.node import find_node
from rag_audit.errors import RagAuditError
from tests.browser.chromium import Chromium

HERE = Path(__file__).parent
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def axe_source() -> str | None:
    """The script, installed into the user's cache on first use; None where that fails, as without a network."""
    lock = (HERE / "package-lock.json").read_bytes()

    def install(folder: Path) -> None:
        tools = find_node()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder / name)
        path = os.pathsep.join([str(Path(tools.node).parent), os.environ.get("PATH", "")])
        command = [*tools.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True, capture_output=True)

    try:
        folder = build_once(cache_dir() / f"axe-{hashlib.sha256(lock).hexdigest()[:16]}", install)
        return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    except (RagAuditError, OSError, subprocess.SubprocessError):
        return None


def violations(browser: Chromium, source: str) -> list[str]:
    """The violations of WCAG 2.2, levels A and AA, in a page that a browser shows."""
    browser.value(source)
    run = f"axe.run(document, {{runOnly: {{type: 'tag', values: {LEVELS}}}}})"
    result: dict[str, Any] = browser.value(run)
    assert len(result["passes"]) > 10, "axe looked at nothing"
    return [
        f"{rule['id']}: {node['target']}: {node['failureSummary']}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]
