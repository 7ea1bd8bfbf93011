"""A cost model: the cost of each step as a function of public sizes, fitted to a report of `bench.suite`.

    python -m bench.costs REPORT --out FILE

The command fits a model and prints how far each term is from its measured values.

- A term is a sum of features with non-negative coefficients, found by least squares of relative errors.
- `FEATURES` lists the features. `observations` selects the measurements for each term.
- Costs are processor seconds of one record, position or window on the report's machine, unless stated otherwise, for
  vectors of 256 components.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2, sqrt
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bench.model import Report, ReportError, Result, table

FORMAT = "rag-audit-costs/1"
MODELS = Path(__file__).parent / "models"
Sizes: TypeAlias = Mapping[str, float]
"""The variables of a cost: n positions, g gains, q records in one proof, count records in one batch."""
Observation: TypeAlias = tuple[dict[str, float], float]

FEATURES = {
    "1": lambda s: 1.0,
    "n": lambda s: s["n"],
    "ng": lambda s: s["n"] * s["g"],
    "root": lambda s: sqrt(s["n"] * max(s["g"], 1)),
    "log": lambda s: log2(s["n"]),
    "1/q": lambda s: 1 / s["q"],
    "count": lambda s: s["count"],
    "count root": lambda s: s["count"] * sqrt(s["n"] * max(s["g"], 1)),
}
TERMS = {
    "index": ("1", "n"),  # committing to a tenant's index
    "noise proof": ("1", "n", "ng"),
    "query proof": ("1", "n"),
    "sampling proof": ("1", "n"),  # the sampling proof of a sampled tenant, once for each window
    "sampled proof": ("1", "n"),
    "batch": ("1", "1/q", "ng"),  # noise proof and query proof of one record in a proof of q records
    "low memory": ("1",),  # a proof of several records in low memory, relative to the usual way
    "batch bytes": ("1", "1/q"),
    "batch verify": ("1", "1/q"),
    "verify": ("1", "root", "count", "count root"),  # a batch of count records
    "verify sampled": ("1", "root", "count", "count root"),
    "bytes": ("1", "log", "root"),  # of noise proof and query proof
    "bytes sampled": ("1", "log", "root"),
    "query embedding": ("1",),
    "query embedding verify": ("1",),
    "query embedding bytes": ("1",),
    "besides": ("1",),  # proving a window's record, without its proofs, noise and scores
    "first": ("1", "n", "ng"),  # a process's first record, including generators and tables
    "draw": ("1", "ng"),  # one slot's noise
    "query": ("1", "n"),  # answering; the noise is precomputed
    "texts": ("1", "n"),  # opening a window, without embedding and the index commitment
    "resume": ("1", "n"),
    "resident": ("1", "n"),  # bytes of the serving process, without drawn noise
    "witness": ("1",),  # of one window, one witness
    "entry": ("1",),  # verifying a record, without its proof
    "entry bytes": ("1",),
    "appends": ("1",),  # durable appends a second of one ledger
}


@dataclass(frozen=True)
class Term:
    """One cost.

    :param worst: the largest relative error at the points of the fit
    :param largest: the largest n among these points; beyond it the model extrapolates
    """

    features: tuple[str, ...]
    coefficients: tuple[float, ...]
    worst: float
    points: int
    largest: float

    def at(self, **sizes: float) -> float:
        """Return the cost at these sizes."""
        return sum(c * FEATURES[f](sizes) for f, c in zip(self.features, self.coefficients, strict=True) if c)


@dataclass(frozen=True)
class Model:
    """All terms, and the machine and time of their report."""

    machine: Mapping[str, Any]
    created: str
    terms: Mapping[str, Term]

    def __getitem__(self, name: str) -> Term:
        if name not in self.terms:
            raise ReportError(f"the model has no term {name!r}: its report lacks the measurement")
        return self.terms[name]

    def dumps(self) -> str:
        terms = {name: vars(term) for name, term in self.terms.items()}
        value = {"format": FORMAT, "created": self.created, "machine": dict(self.machine), "terms": terms}
        return json.dumps(value, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Model:
        """Read a model file.

        :raises ReportError: the file cannot be read, or is not a model
        """
        try:
            value = json.loads(path.read_text("utf-8"))
            if value["format"] != FORMAT:
                raise ReportError(f"{path}: expected format {FORMAT}, found {value['format']}")
            terms = {
                name: Term(
                    tuple(t["features"]), tuple(t["coefficients"]), t["worst"], t["points"], t["largest"]
                )
                for name, t in value["terms"].items()
            }
            return cls(value["machine"], value["created"], terms)
        except OSError as exc:
            raise ReportError(f"{path}: cannot be read: {exc.strerror}") from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise ReportError(f"{path}: not a cost model: {exc}") from exc


def observations(report: Report) -> dict[str, list[Observation]]:
    """Extract the observations of each term from a report: sizes and the measured value."""
    match: defaultdict[str, list[Observation]] = defaultdict(list)
    for result in report.results:
        kind, figures = result.name.partition("-")[0], result.figures
        if kind in _READERS:
            for term, sizes, value in _READERS[kind](figures, result):
                match[term].append((sizes, value))
    usual = {tuple(s.items()): value for s, value in match.pop("batch over alone", [])}
    slow = [(tuple(s.items()), value) for s, value in match.pop("low over alone", [])]
    match["low memory"] = [({}, value / usual[sizes]) for sizes, value in slow if sizes in usual]
    committed = [(s["n"], value) for s, value in match["index"]]
    if committed:  # opening, without the index commitment
        index = fit(TERMS["index"], match["index"])
        match["texts"] = [(s, value - index.at(**s)) for s, value in match["texts"]]
    return dict(match)


def _scan(figures: Mapping[str, Any], result: Result) -> list[tuple[str, dict[str, float], float]]:
    cpu, size = figures["cpu_seconds"], figures["bytes"]
    at = {"n": float(figures["documents"]), "g": float(len(figures["gains"]))}
    exact = {**at, "g": 0.0}
    created = [
        ("index", at, cpu["index"]),
        ("noise proof", at, cpu["noise_proof"]),
        ("query proof", at, cpu["query_proof"]),
        ("verify", {**at, "count": 1.0}, cpu["verify"]),
        ("verify", {**at, "count": float(figures["batch"])}, cpu["batch"]),
        ("bytes", at, float(size["proofs"])),
    ]
    if "sampling_proof" in cpu:
        created += [
            ("sampling proof", exact, cpu["sampling_proof"]),
            ("sampled proof", exact, cpu["sampled"]),
            ("verify sampled", {**exact, "count": 1.0}, cpu["sampled_verify"]),
            ("verify sampled", {**exact, "count": float(figures["batch"])}, cpu["sampled_batch"]),
            ("bytes sampled", exact, float(size["sampled"])),
        ]
    return created


def _batch_proving(figures: Mapping[str, Any], result: Result) -> list[tuple[str, dict[str, float], float]]:
    gains = float(len(figures["gains"].split(",")))
    at = {"q": float(figures["count"]), "n": float(figures["documents"]), "g": gains}
    ratio = figures["prove_cpu_batch"] / figures["prove_cpu_alone"]
    if figures.get("low_memory"):
        return [("low over alone", at, ratio)]
    return [
        ("batch over alone", at, ratio),
        ("batch", at, figures["prove_cpu_batch"]),
        ("batch bytes", at, figures["bytes_batch"] / figures["bytes_alone"]),
        ("batch verify", at, figures["verify_cpu_batch"] / figures["verify_cpu_alone"]),
    ]


def _embed(figures: Mapping[str, Any], result: Result) -> list[tuple[str, dict[str, float], float]]:
    cpu = figures["cpu_seconds"]
    return [
        ("query embedding", {}, cpu["prove"]),
        ("query embedding verify", {}, cpu["batch"] / figures["batch"]),
        ("query embedding bytes", {}, float(figures["bytes"])),
    ]


def _whole(figures: Mapping[str, Any], result: Result) -> list[tuple[str, dict[str, float], float]]:
    at = {"n": float(figures["documents"]), "g": float(len(figures["gains"]))}
    served, proved = figures["serve"], figures["prove"]["cpu_seconds"]
    return [
        ("texts", at, figures["open"]["cpu_seconds"]),
        ("resume", at, served["resume"]["cpu_seconds"]),
        ("resident", at, float(served["resident_bytes"])),
        ("query", at, served["query_ms"]["cpu_median"] / 1000),
        ("draw", at, served["draw"]["cpu_seconds"]),
        ("first", at, proved["first"]),
        *([("record", at, proved["alone"] / (figures["alone"] - 1))] if "alone" in proved else []),
        ("witness", at, served["witness"]["cpu_seconds"]),
    ]


def _verify(figures: Mapping[str, Any], result: Result) -> list[tuple[str, dict[str, float], float]]:
    created: list[tuple[str, dict[str, float], float]] = []
    for records, window in figures["windows"].items():
        cpu = window["cpu_seconds"]
        created += [
            ("entry", {}, (cpu["read"] + cpu["verify"]) / int(records)),
            ("entry bytes", {}, window["bytes"] / int(records)),
        ]
    return created[-2:]  # the largest window only, where the window's fixed cost has the smallest share


def _ledger(figures: Mapping[str, Any], result: Result) -> list[tuple[str, dict[str, float], float]]:
    rates = figures["durable_records_per_second"]
    return [("appends", {}, float(max(rates.values())))]


_READERS = {
    "scan": _scan,
    "batch_proving": _batch_proving,
    "embed": _embed,
    "whole": _whole,
    "verify": _verify,
    "ledger": _ledger,
}


_OF_A_RECORD = ("noise proof", "query proof", "query embedding", "draw", "query")


def fit(features: Sequence[str], points: Sequence[Observation]) -> Term:
    """Fit non-negative coefficients by least squares of relative errors.

    The function tries every set of features and returns the solution with the smallest error; the sets are few.

    :raises ReportError: there are no points
    """
    if not points:
        raise ReportError("a term has nothing that it could be fitted to")
    values = np.array([value for _, value in points])
    rows = np.array([[FEATURES[f](sizes) for f in features] for sizes, _ in points]) / values[:, None]
    ones, best, minimum = np.ones(len(points)), np.zeros(len(features)), float("inf")
    for size in range(1, min(len(features), len(points)) + 1):
        for chosen in itertools.combinations(range(len(features)), size):
            part = rows[:, list(chosen)]
            scale = np.linalg.norm(part, axis=0)
            solved = np.linalg.lstsq(part / scale, ones, rcond=None)[0] / scale
            error = float(np.sum((part @ solved - ones) ** 2))
            if solved.min() >= 0 and error < minimum * (1 - 1e-9):
                minimum, best = error, np.zeros(len(features))
                best[list(chosen)] = solved
    worst = float(np.max(np.abs(rows @ best - 1)))
    largest = max(sizes.get("n", 0.0) for sizes, _ in points)
    return Term(tuple(features), tuple(map(float, best)), worst, len(points), largest)


def fit_all(report: Report) -> Model:
    """Fit a model of every term that the report has measurements for.

    :raises ReportError: the report has no such measurement
    """
    result = observations(report)
    records = result.pop("record", [])
    terms = {name: fit(features, result[name]) for name, features in TERMS.items() if result.get(name)}
    if records and set(_OF_A_RECORD) <= set(terms):
        # The term is a mean, because it is a small difference of large figures.
        left = [value - sum(terms[name].at(**s) for name in _OF_A_RECORD) for s, value in records]
        mean = max(0.0, float(np.mean(left)))
        worst = max(abs(part - mean) / value for part, (_, value) in zip(left, records, strict=True))
        terms["besides"] = Term(("1",), (mean,), worst, len(left), max(s["n"] for s, _ in records))
    if not terms:
        raise ReportError("the report has no measurement that a cost could be fitted to")
    return Model(report.results[0].machine, report.created, terms)


def default_model() -> Path:
    """Return the newest model in bench/models.

    :raises ReportError: the folder has no model
    """
    paths = sorted(p for p in MODELS.glob("*.json") if not p.name.startswith("runs"))
    if not paths:
        raise ReportError(f"{MODELS}: no model; fit one: python -m bench.costs bench.json --out FILE")
    return paths[-1]


def main(arguments: list[str] | None = None) -> int:
    """Fit and write the model, and print the quality of the fit."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("report", type=Path, help="bench.json")
    options.add_argument("--out", type=Path, help="the model file")
    options.add_argument(
        "--most", type=float, metavar="N", help="leave out measurements at more than N positions"
    )
    args = options.parse_args(arguments)
    try:
        report = Report.load(args.report)
        if args.maximum:
            report.results = [r for r in report.results if r.figures.get("documents", 0) <= args.maximum]
        model = fit_all(report)
    except ReportError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    if args.out:
        args.out.write_text(model.dumps(), "utf-8")
    rows = [
        [name, str(term.points), f"{100 * term.worst:.0f} %",
         " + ".join(f"{c:.3g} {f}" for f, c in zip(term.features, term.coefficients, strict=True) if c)]
        for name, term in model.terms.items()
    ]  # fmt: skip
    print("\n".join(table(["term", "points", "worst error", "fitted"], rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
