"""Compare two reports: `python -m bench.compare OLD NEW [--only NAME ..] [--changed PERCENT]`.

OLD and NEW are reports of `bench.suite`, or the output of single scripts with --json. For each figure in both reports
the script prints the ratio NEW / OLD. It then lists the figures that one of the reports lacks. Before the figures it
reports differences that make a comparison difficult: another machine, other lanes or threads, another load. The script
does not compare measurements whose commands differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.model import Report, ReportError, Result, shown, table

PLACE = ("cpu", "cores", "memory_gib", "system", "lanes", "python")


class Pair(NamedTuple):
    """One figure in both reports."""

    figure: str
    old: float
    new: float

    @property
    def ratio(self) -> float | None:
        """New over old; None where the old one is zero."""
        return self.new / self.old if self.old else None


def common(old: Result, new: Result) -> list[Pair]:
    """Return the numbers that both results contain."""
    a, b = old.flat(), new.flat()
    return [Pair(name, a[name], b[name]) for name in a if name in b and _number(a[name]) and _number(b[name])]


def differences(old: Result, new: Result) -> Iterator[str]:
    """Yield the reasons why two results may differ without a change of the program."""
    for name in PLACE:
        if old.machine.get(name) != new.machine.get(name):
            yield f"{name}: {old.machine.get(name)}, then {new.machine.get(name)}"
    if old.threads != new.threads:
        yield f"threads: {old.threads}, then {new.threads}"
    loads = [result.machine.get("load") for result in (old, new)]
    if all(map(_number, loads)) and abs(loads[0] - loads[1]) >= 1:  # type: ignore[operator]
        yield f"load: {loads[0]}, then {loads[1]}"


def compare(old: Report, new: Report, *, changed: float = 0.0, only: list[str] | None = None) -> list[str]:
    """Return the comparison as lines of Markdown.

    :param changed: leave out figures with a ratio nearer to 1 than this many percent
    :param only: compare only these measurements
    """
    a, b = old.by_name(), new.by_name()
    if (
        len(a) == len(b) == 1 and not old.created and not new.created
    ):  # the outputs of two scripts, whatever the files' names
        b = {next(iter(a)): next(iter(b.values()))}
    lines, missing = [], []
    for name in dict.fromkeys([*a, *b]):
        if only and name not in only:
            continue
        if name not in a or name not in b:
            report, where = (old, "OLD") if name not in a else (new, "NEW")
            missing.append(
                f"{name}: not in {where}" + (f" ({why})" if (why := report.missing.get(name)) else "")
            )
            continue
        first, second = a[name], b[name]
        if first.command != second.command:
            missing.append(f"{name}: not compared, measured by `{first.command}`, then by `{second.command}`")
            continue
        pairs, before, after = common(first, second), first.flat(), second.flat()
        missing += [f"{name}.{figure}: not in NEW" for figure in before if figure not in after]
        missing += [f"{name}.{figure}: not in OLD" for figure in after if figure not in before]
        rows = [
            [pair.figure, shown(pair.old), shown(pair.new), "" if pair.ratio is None else f"{pair.ratio:.3f}"]
            for pair in pairs
            if not changed or pair.ratio is None or abs(pair.ratio - 1) * 100 >= changed
        ]
        lines += ["", f"## {name}", "", *(f"- {text}" for text in differences(first, second))]
        lines += (
            ["", *table(["figure", "old", "new", "new / old"], rows)]
            if rows
            else ["", "No figure changed so much."]
        )
    if missing:
        lines += ["", "## In one alone", "", *(f"- {text}" for text in missing)]
    return lines[1:]


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def main(arguments: list[str] | None = None) -> int:
    """Compare and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("old", type=Path)
    options.add_argument("new", type=Path)
    options.add_argument("--only", nargs="+", metavar="NAME", help="these measurements alone")
    options.add_argument(
        "--changed", type=float, default=0.0, metavar="PERCENT", help="figures that changed by so much alone"
    )
    args = options.parse_args(arguments)
    try:
        old, new = Report.load(args.old), Report.load(args.new)
    except ReportError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    print("\n".join(compare(old, new, changed=args.changed, only=args.only)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
