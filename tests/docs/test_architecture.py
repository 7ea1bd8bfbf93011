"""The package's imports against the rooms drawn in docs/architecture.md."""

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()


def _rows() -> dict[str, int]:
    """Room -> group, counted from the top; a row without a remark belongs to the group above it."""
    drawing = re.search(r"^```\n(cli .*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert drawing is not None
    rows: dict[str, int] = {}
    group = -1
    for line in drawing[1].splitlines():
        rooms, _, remark = line.partition("  ")
        group += bool(remark)
        rows |= dict.fromkeys(rooms.split(), group)
    return rows


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rag_audit":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return found - {"__version__"}


def test_every_room_is_drawn() -> None:
    names = subprocess.run(
        ["git", "ls-files", "rag_audit/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rooms = {Path(name).parts[1].removesuffix(".py") for name in names.stdout.split()}
    assert {r for r in rooms if not r.startswith("__")} - _rows().keys() == set()


def test_imports_point_one_way() -> None:
    rows, wrong = _rows(), []
    for path in sorted((ROOT / "rag_audit").rglob("*.py")):
        room = path.relative_to(ROOT / "rag_audit").parts[0].removesuffix(".py")
        if not room.startswith("__"):
            wrong += [f"{path.relative_to(ROOT)} imports {other}" for other in _imports(path)
                      if rows.get(other, 99) < rows.get(room, 99)]  # fmt: skip
    assert wrong == []
