"""The README shows the real result of the example, and its program audits a retriever; other pages have the rest."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from click.testing import CliRunner

import rag_audit
from rag_audit.cli import main
from tests.cli.tree import leaves

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs/examples/library.py"
README = (ROOT / "README.md").read_text()


def _shown(page: str) -> str:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return str(block)


def test_the_readme_fits_one_screen() -> None:
    assert len(re.findall(r"\S*\w\S*", README)) <= 800


def test_the_readme_shows_the_result_of_the_example() -> None:
    (result,) = re.findall(r"```\n(PASS .*?)```", README, re.DOTALL)
    assert result == CliRunner().invoke(main, ["verify", "--example"]).stdout
    assert README.index(result) < README.index("rag-audit verify --example\n```")
    assert not re.search(r"\binf\b|allow=|UNSAFE", README)


def test_the_figures_of_the_mechanisms_are_measured() -> None:
    """Recall and epsilon are in the study's table of SQuAD, and times are rounded from docs/performance.md."""
    table = README.partition("\n## Mechanisms\n")[2].partition("\n## ")[0]
    squad = (ROOT / "docs/study.md").read_text().partition("\n### SQuAD")[2].partition("\n### ")[0]
    for figure in ("77.7 %", "0.4 %", "78.6 %", "78.7 %", "86.4 %", "33,405", "5.63", "9.75"):
        assert figure in table and figure.removesuffix(" %").replace(",", "") in squad, figure
    page = (ROOT / "docs/performance.md").read_text()
    times = page.partition("\n## Current measurements\n")[2].partition("\n## ")[0]

    def seconds(row: str, setting: str = "10^5") -> float:
        """The time of a part at 10^5 positions by the clock."""
        (result,) = re.findall(
            rf"^\| {re.escape(row)} \| {re.escape(setting)} \| ([0-9.]+) s ", times, re.MULTILINE
        )
        return float(result)

    noise, query = (
        (row, "10^5, three gains")
        for row in ("noise proof, precomputed", "query proof; bytes of both proofs")
    )
    once = f", and {seconds('sampling proof, once per tenant and window'):.1f} s per tenant and window"
    (record,) = re.findall(r"^\| 10\^5 \| 100,000 \| ([0-9.]+) s \|", page, re.MULTILINE)
    (documents,) = re.findall(r"^\| 100,000 \| [0-9.]+ s \| ([0-9.]+) s ", page, re.MULTILINE)
    costs = {
        "pooled-listing": f"{float(record):.1f} s, and {float(documents):.1f} s per tenant and window, on a Xeon with"
        " AVX-512",
        "noise": f"{seconds(*noise) + seconds(*query):.1f} s",
        "sampling": f"{seconds('query proof without noise, sampled'):.1f} s{once}",
        "none": f"about {seconds('query proof without noise, sampled'):.1f} s",
    }
    for mechanism, cost in costs.items():
        (line,) = re.findall(rf"^\| `{mechanism}.*$", table, re.MULTILINE)
        assert line.endswith(f"| {cost} |"), line


def _audited(search: Callable[[Sequence[str], str], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the README's program on a service with this search function over its stored texts."""
    random = Random(0)
    service, stored = ModuleType("my_service"), list[str]()
    texts = [" ".join(f"word{random.randrange(3000)}" for _ in range(30)) for _ in range(64)]
    for name, value in (
        ("documents", texts),
        ("index", stored.extend),
        ("search", lambda q: search(stored, q)),
    ):
        setattr(service, name, value)
    monkeypatch.setitem(sys.modules, "my_service", service)
    exec(compile(_shown("README.md"), "README.md", "exec"), {})


def test_the_program_audits_an_exact_retriever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nearest(stored: Sequence[str], question: str) -> list[str]:
        requested = set(question.split())
        return sorted(stored, key=lambda text: -len(requested & set(text.split())))[:5]

    _audited(nearest, monkeypatch)
    auc, bound = capsys.readouterr().out.splitlines()
    assert float(auc.split("texts ")[1].split()[0]) > 0.95
    assert float(bound.split()[-1]) > 1


def test_the_program_finds_no_leak_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _audited(lambda stored, question: [], monkeypatch)
    assert capsys.readouterr().out.startswith("AUC of inserted against absent texts 0.50 ")


def test_the_api_page_shows_the_example() -> None:
    marked = re.search(r"# -- README --\n(.*?)# -- end --", EXAMPLE.read_text(), re.DOTALL)
    assert marked is not None
    assert _shown("docs/api.md") == re.sub(r"  # fmt: skip", "", marked[1])


# Under a clock that sleeping puts forward, and that is slow otherwise: nobody waits for the example's window to open,
# and it is committed in time on a busy machine too.
RUN = """
import runpy, sys, time
began, system, slept = time.time_ns(), time.time_ns, 0

def now():
    return began + (system() - began) // 100 + slept

def sleep(seconds):
    global slept
    slept += int(seconds * 1e9)

time.time_ns, time.time, time.sleep = now, lambda: now() / 1e9, sleep
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_example_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(EXAMPLE), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PASS eps_audit=")


def test_the_example_needs_public_names_only() -> None:
    imported = [n for n in ast.walk(ast.parse(EXAMPLE.read_text())) if isinstance(n, ast.ImportFrom)]
    ours = [n for n in imported if (n.module or "").startswith("rag_audit")]
    assert [n.module for n in ours] == ["rag_audit"]
    assert {alias.name for alias in ours[0].names} <= set(rag_audit.__all__)


def test_exports() -> None:
    for name in rag_audit.__all__:
        assert getattr(rag_audit, name).__module__.startswith("rag_audit."), name
    with pytest.raises(AttributeError):
        rag_audit.no_such_name  # noqa: B018
    assert set(rag_audit.__all__) <= set(dir(rag_audit))


def test_every_command_is_listed() -> None:
    table = (ROOT / "docs/commands.md").read_text()
    paths = leaves(main)
    assert {("verify",), ("provider", "open"), ("verifier", "trust", "new")} <= set(paths)
    assert [path for path in paths if f"`{' '.join(path)}`" not in table] == []
