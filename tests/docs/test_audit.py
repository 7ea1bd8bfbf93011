"""The auditor's page: its commits are in the history, and its commands are commands."""

import re
import subprocess
from pathlib import Path

import click
import pytest

from rag_audit.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/audit.md").read_text()
COMMANDS = re.compile(r"`((?:rag-audit|make|python|cargo) [^`\n]+)`")
PAGES = ["docs/audit.md", "docs/versions.md", "SECURITY.md"]


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _strangers(text: str, history: set[str]) -> list[str]:
    return [commit for commit in re.findall(r"`([0-9a-f]{7})`", text) if commit not in history]


def test_commits_are_in_the_history() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("NOT CHECKED: the commits of docs/audit.md, since this is no checkout")
    if _git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("NOT CHECKED: the commits of docs/audit.md, since this clone is shallow")
    history = {commit[:7] for commit in _git("rev-list", "HEAD").split()}
    findings = PAGE.partition("## Earlier findings")[2].partition("\n## ")[0]
    rows = [row for row in findings.splitlines() if row.startswith("| ")][1:]
    assert [row for row in rows if not re.search(r"`[0-9a-f]{7}`", row)] == []
    assert _strangers(PAGE, history) == []
    assert _strangers("`0000000`", history) == ["0000000"]


def _unknown(command: str) -> str | None:
    """What of a command is not there, or nothing."""
    words = command.split()
    if words[0] == "rag-audit":
        result: click.Command | None = main
        for word in words[1:]:
            if word.startswith("-") or not isinstance(result, click.Group):
                break
            result = result.get_command(click.Context(result), word)
            if result is None:
                return word
        options = {name for p in (result.params if result else []) for name in (*p.opts, *p.secondary_opts)}
        return next((w for w in words if w.startswith("--") and w not in options), None)
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return next((w for w in words[1:] if "=" not in w and w not in targets), None)
    if words[0] == "python":
        if words[1] != "-m":
            return None if (ROOT / words[1]).is_file() else words[1]
        place = ROOT / words[2].replace(".", "/")
        there = place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()
        return None if there or words[2] == "pytest" else words[2]
    return _unknown_test(words)


def _unknown_test(words: list[str]) -> str | None:
    """Cargo runs no test, and says nothing of it, where a name is wrong."""
    if words[1] != "test":
        return words[1]
    crate = words[words.index("-p") + 1].removeprefix("ragaudit-")
    sources = ROOT / "native" / crate / "src"
    if not sources.is_dir():
        return crate
    name = next((w for w in words[words.index("-p") + 2 :] if not w.startswith("-")), None)
    text = "\n".join(path.read_text() for path in sources.rglob("*.rs"))
    result = name is None or re.search(rf"(?:fn|mod) \w*{name}\w*", text)
    return None if result else name


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_there(page: str) -> None:
    text = (ROOT / page).read_text()
    fenced = "".join(f"`{line}`\n" for block in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
                     for line in block.replace("\\\n", "").splitlines())  # fmt: skip
    commands = COMMANDS.findall(text) + COMMANDS.findall(fenced)
    assert {c: _unknown(c) for c in commands if _unknown(c)} == {}
    assert len(COMMANDS.findall(PAGE)) > 20


@pytest.mark.parametrize(
    "command",
    ["rag-audit audit", "rag-audit provider policy bound", "rag-audit verify --nothing", "make nothing",
     "python -m bench.nothing", "python vectors/nothing.py",
     "cargo test -p ragaudit-scan-prover no_such_test", "cargo test -p ragaudit-nothing"],
)  # fmt: skip
def test_a_command_that_is_none_is_seen(command: str) -> None:
    assert _unknown(command) is not None


def test_unsafe_code_stands_where_the_page_says() -> None:
    paragraph = PAGE.partition("**Unsafe code**")[2].partition("`make memory`")[0]
    places = re.findall(r"`(native/[\w/.-]+?(?:\.rs|src/lanes/))`", paragraph)
    files = _git("grep", "-lE", r"\bunsafe (\{|fn|impl|extern)", "--", "native/*.rs").split()
    assert len(places) >= 4 and all((ROOT / place).exists() for place in places)
    assert [file for file in files if not any(file.startswith(place) for place in places)] == []
    assert [place for place in places if not any(file.startswith(place) for file in files)] == []
