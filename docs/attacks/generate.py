"""Write the measured tables of docs/attacks.md.

    python docs/attacks/generate.py attacks/attacks.json [tables.md ..]

`attacks.json` is of `rag-audit lab attack run all`, each `tables.md` what `rag-audit lab attack tables` printed, of
some of the
collections. What stands between `<!-- run -->`, or `<!-- tables -->`, and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_audit.models.attacks import AttackCell, AttackResult, AttackRun

PAGE = Path(__file__).resolve().parents[1] / "attacks.md"
WEAK, STRONG = "noise:1,1,1,1:128", "noise:1,8,64:32"
PLAIN = [
    ("no defence", "none", "none", 1),
    ("Mirabel", "none", "mirabel", 1),
    ("prompt", "none", "prompt", 1),
    ("paraphrase", "none", "paraphrase", 1),
    ("sampling", "sampling:0.7", "none", 1),
    ("sampling, k = 4", "sampling:0.7", "none", 4),
]
CERTIFIED = [
    ("weak noise", WEAK, "none", 1),
    ("weak, k = 4", WEAK, "none", 4),
    ("weak + Mirabel", WEAK, "mirabel", 1),
    ("strong noise", STRONG, "none", 1),
    ("strong, k = 4", STRONG, "none", 4),
    ("listing", "randomized-response:0.7", "none", 1),
    ("listing, k = 4", "randomized-response:0.7", "none", 4),
]


def of_run(run: AttackRun) -> str:
    """AUCs with and without a certificate, and the lower bounds with the certified ones."""
    result = {(r.attack, _key(r.cell)): r for r in run.results}
    names = list(dict.fromkeys(r.attack for r in run.results))
    parts = []
    for columns in (PLAIN, CERTIFIED):
        rows = [
            [f"`{a}`", str(result[a, columns[0][1:]].queries), *(_auc(result[a, c[1:]]) for c in columns)]
            for a in names
        ]
        parts.append(_table(["attack", "queries", *(c[0] for c in columns)], rows))
    rows = [[f"`{a}`", *(_bound(result[a, c[1:]]) for c in CERTIFIED)] for a in names]
    parts.append("Lower bounds on epsilon from lists, 500 trials of each world, with the certified epsilon of the"
                 " same queries; in brackets\nthe test's AUC on lists and its certified ceiling:")  # fmt: skip
    parts.append(_table(["attack", *(c[0] for c in CERTIFIED)], rows))
    return "\n\n".join(parts)


def _key(cell: AttackCell) -> tuple[str, str, int]:
    return cell.mechanism, cell.defence, cell.accounts


def _auc(result: AttackResult) -> str:
    return f"{result.figures.auc[0]:.2f}"


def _bound(result: AttackResult) -> str:
    b = result.bounds
    if b is None or result.ceiling is None:
        return ""
    return f"{b.lower:.2f} < {b.certified:.4g} ({b.auc:.2f} / {result.ceiling:.2f})"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def joined(texts: Sequence[str]) -> str:
    """The tables of several runs over different collections as one: each table's rows one after another."""
    tables: dict[str, list[str]] = {}
    for text in texts:
        for title, lines in _titled(text):
            tables.setdefault(title, lines[:2]).extend(lines[2:])
    return "\n\n".join("\n".join([title, "", *lines]) for title, lines in tables.items())


def _titled(text: str) -> Iterator[tuple[str, list[str]]]:
    title, lines = "", list[str]()
    for line in [*text.splitlines(), "**"]:
        if line.startswith("**"):
            if lines:
                yield title, lines
            title, lines = line, []
        elif line.startswith("|"):
            lines.append(line)


def main() -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("tables", type=Path, nargs="*")
    chosen = parser.parse_args()
    parts = {"run": of_run(AttackRun.load(chosen.run))}
    if chosen.tables:
        parts["tables"] = joined([path.read_text() for path in chosen.tables])
    page = PAGE.read_text()
    for name, text in parts.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, count = mark.subn(lambda m, t=text: f"{m[1]}{t}\n{m[2]}", page)
        if count != 1:
            raise SystemExit(f"{PAGE} has no place for {name}")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
