"""`rag-audit provider estimate`: the estimate of repeated questions of a window, and the estimator's error rates."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from rag_audit._internal.canonical import parse_json, read_bytes
from rag_audit._internal.errors import EncodingError, RagAuditError, SchemaError, StoreError
from rag_audit.attest.reading import WindowReader
from rag_audit.cli.common import PATH, Group, emit, json_option, progress
from rag_audit.cli.options import Real, default_option, flag_option, gathered, model_option, path_option
from rag_audit.cli.settings import stored_model
from rag_audit.estimate import calibration
from rag_audit.estimate.figure import write_csv, write_figure
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, Vectors, get_embedder

MAX_QUESTIONS_BYTES = 1 << 30

MAXIMUM = 1_000_000
"""Maximum accounts, questions or windows of a simulation."""


@click.group(cls=Group)
def estimate() -> None:
    """Find accounts that repeat a question almost word for word."""


@estimate.command("window")
@click.argument("directory", type=PATH)
@model_option
@json_option
def window_(directory: Path, model: Path | None, as_json: bool) -> None:
    """Find accounts that repeated a question almost word for word, among the queries that the window in DIRECTORY has
    answered so far, also while it serves.

    The output contains names of accounts: do not publish it.
    """
    window = WindowReader(directory)
    estimated, k_max = window.estimate(model or stored_model(directory)), window.policy.k_max
    p, q = estimated.theta
    tau = f"{estimated.tau} {estimated.tau_unit}" if estimated.tau else "whole window"
    lines = [
        f"c = {estimated.c} over all tenants, {estimated.c_tenant} within one, k_max = {k_max}: "
        + (
            "within the cap"
            if estimated.c <= k_max
            else "ABOVE THE CAP: every verifier will refuse this window"
        ),
        f"records {estimated.records}, theta {p}/{q}, tau {tau}",
        *(f"cluster of {len(cluster)}: {', '.join(cluster)}" for cluster in estimated.clusters),
        *(f"  records {j.earlier} and {j.later} join {' and '.join(j.accounts)}" for j in estimated.joins),
    ]
    emit({**estimated.evidence(), "k_max": k_max}, as_json, lines)


@dataclass(frozen=True)
class _Drawn:
    """The options about the windows that the calibration draws: how many, and how many accounts and questions each
    has."""

    accounts: int
    queries: int
    trials: int


@estimate.command()
@flag_option("--paper", help="reproduce the paper's Observation 5.2: synthetic queries")
@path_option("--questions", help="one question a line, or JSON lines with a field `question`")
@default_option("--embedder", "name", default=DEFAULT_EMBEDDER, help="the embedder of the questions")
@path_option("--model", "--folder", "folder", help="the folder of an embedder's files, or its settings")
@default_option("--theta", type=Real(0, 1), default=calibration.OPERATING_POINT, help="in (0, 1)")
@default_option(
    "--k-max",
    default=4,
    type=click.IntRange(1, MAXIMUM),
    help="k_max of the policy: a window with a larger cluster fails",
)
@gathered(
    "drawn",
    _Drawn,
    default_option(
        "--accounts",
        default=calibration.ACCOUNTS,
        type=click.IntRange(2, MAXIMUM),
        help="honest accounts of a window",
    ),
    default_option(
        "--queries",
        default=calibration.QUERIES,
        help="questions of an account",
        type=click.IntRange(1, MAXIMUM),
    ),
    default_option(
        "--trials", default=calibration.TRIALS, type=click.IntRange(1, MAXIMUM), help="simulated windows"
    ),
)
@path_option("--out", help="write calibration.csv here, and calibration.png with --paper")
@json_option
def calibrate(
    paper: bool,
    questions: Path | None,
    name: str,
    folder: Path | None,
    theta: float,
    k_max: int,
    drawn: _Drawn,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure false alarms: on a provider's embedder and questions, or on the paper's synthetic queries."""
    if paper == (questions is not None):
        raise click.UsageError("give one of --paper and --questions")
    if out is not None and not out.is_dir():
        raise StoreError("the folder does not exist", field="--out", actual=str(out))
    if questions is None:
        _paper(drawn.trials, out, as_json)
        return
    texts = load_questions(questions)
    vectors = _embed(texts, questions.name, name, folder)
    report = calibration.calibrate_questions(
        vectors, theta=theta, k_max=k_max, accounts=drawn.accounts, queries=drawn.queries, trials=drawn.trials
    )
    if out is not None:
        write_csv(report.cells, out / "calibration.csv")
    value = {key: item for key, item in asdict(report).items() if key != "cells"}
    emit({**value, "embedder": name}, as_json, _explain(report, name))


def _paper(trials: int, out: Path | None, as_json: bool) -> None:
    show = progress("cells")
    cells: list[calibration.Cell] = []
    total = 1 + len(calibration.PATTERNS) * len(calibration.COALITIONS)
    for done, part in enumerate(calibration.paper_cells(trials), 1):
        cells += part
        show(done, total)
    if out is not None:
        write_csv(cells, out / "calibration.csv")
        write_figure(cells, out / "calibration.png")
    at = [c for c in cells if c.theta == calibration.OPERATING_POINT and c.pattern != "null"]
    fpr = {f"{c.theta:.2f}": c.detected for c in cells if c.pattern == "null"}
    value: dict[str, object] = {
        "trials": trials,
        "null_fpr": fpr,
        "tpr": {f"{c.pattern} k={c.k_true}": c.detected for c in at},
        "exact": {f"{c.pattern} k={c.k_true}": c.exact for c in at},
    }
    rows = [f"{c.pattern} k={c.k_true:<2}  TPR {c.detected:.3f}  c exact in {c.exact:.3f}" for c in at]
    null = "  ".join(f"{t}: {rate:.3f}" for t, rate in fpr.items())
    emit(value, as_json, [f"null FPR by theta, {trials} trials", f"  {null}", "at theta 0.80", *rows])


def _explain(report: calibration.QuestionReport, embedder: str) -> list[str]:
    def at(theta: float | None) -> str:
        return "no theta up to 0.999 is large enough" if theta is None else f"theta = {theta:.3f} is enough"

    return [
        f"{report.accounts} honest accounts, {report.queries} of {report.questions} questions each "
        f"({report.distinct} distinct vectors of {embedder}), {report.trials} trials",
        f"theta {report.theta}: a false cluster in {report.fpr:.3f} of windows, mean c {report.c_mean:.2f}",
        f"  c above k_max = {report.k_max} in {report.gate_fpr:.3f} of windows",
        f"at most {calibration.ALPHA:.0%} of windows with a false cluster: {at(report.theta_fpr)}",
        f"at most {calibration.ALPHA:.0%} of windows failed by k_max = {report.k_max}: {at(report.theta_gate)}",
    ]


def load_questions(path: Path) -> list[str]:
    """Read questions from a file: JSON Lines with a field ``question``, or plain text with one question per line. Blank
    lines are skipped.

    :raises RagAuditError: the file is unreadable or not UTF-8, or a JSON line has no question (the error names the
        line's number)
    """
    data = read_bytes(path, max_bytes=MAX_QUESTIONS_BYTES)
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as exc:
        raise EncodingError("the file is not UTF-8", field=path.name, actual=f"byte {exc.start}") from exc
    return [_question(line, f"{path.name}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]


def _question(line: str, place: str) -> str:
    if not line.startswith("{"):
        return line
    value = parse_json(line.encode(), source=place)
    if not isinstance(value, dict) or not isinstance(value.get("question"), str):
        raise SchemaError("the line is not a question", field=place, expected='{"question": ".."}')
    return str(value["question"])


def _embed(texts: list[str], source: str, name: str, folder: Path | None) -> Vectors:
    embedder = get_embedder(name, folder=folder)
    vectors = np.zeros((len(texts), embedder.dimension), np.int8)
    for number, text in enumerate(texts):
        try:
            vectors[number] = embedder.embed_query(text)
        except RagAuditError as exc:
            raise SchemaError(exc.message, field=f"{source}, question {number + 1}", actual=text) from exc
    return vectors
