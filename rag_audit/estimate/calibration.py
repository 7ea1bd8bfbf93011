"""Error rates of the coalition estimator: the paper's Observation 5.2, and the same on a provider's own questions.

Cosines are floats here, while a window's estimate is exact (`clusters`). As theta falls, accounts join and never
separate, so one pass over the account pairs by falling cosine gives c at every theta (`growth`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_audit._internal.errors import PolicyError, SchemaError

Floats = npt.NDArray[np.float32]
Pattern = Literal["null", "P-A", "P-B", "P-C"]

ACCOUNTS = 30
QUERIES = 100
DIMENSION = 32
TRIALS = 200
JITTER = 0.10
INTENTS = 5
COALITIONS = (2, 5, 10, 20)
PATTERNS: tuple[Pattern, ...] = ("P-A", "P-B", "P-C")
THETAS = tuple(p / 100 for p in range(20, 100, 5))
"""The paper's thresholds: 0.20 to 0.95 in 16 steps."""
OPERATING_POINT = 0.80
ALPHA = 0.05


@dataclass(frozen=True)
class Cell:
    """One row of the calibration: a pattern at one theta."""

    pattern: Pattern
    k_true: int
    """accounts of the true coalition; 1 for the null"""
    theta: float
    trials: int
    detected: float
    """share of trials with c >= 2, which is the FPR of the null and the TPR of a coalition"""
    exact: float
    """share of trials with c = k_true"""
    c_mean: float
    c_sd: float


@dataclass(frozen=True)
class QuestionReport:
    """The estimator's error rates on honest accounts that ask real questions."""

    questions: int
    distinct: int
    accounts: int
    queries: int
    trials: int
    theta: float
    k_max: int
    fpr: float
    """share of trials with any cluster at theta"""
    gate_fpr: float
    """share of trials with c > k_max at theta, which are honest windows that the gate fails"""
    c_mean: float
    theta_fpr: float | None
    """smallest p/1000 with at most 5 % false clusters; None if 0.999 has more"""
    theta_gate: float | None
    """smallest p/1000 with at most 5 % failed windows"""
    cells: tuple[Cell, ...]


def growth(cosines: npt.NDArray[np.floating]) -> list[tuple[float, int]]:
    """The steps of the largest cluster's size as theta falls: pairs (cosine, c from this cosine on), by falling cosine.

    :param cosines: shape (accounts, accounts), symmetric: the largest cosine between two accounts' queries
    """
    accounts = len(cosines)
    a, b = np.triu_indices(accounts, 1)
    order = np.argsort(-cosines[a, b], kind="stable")
    cluster = [{account} for account in range(accounts)]
    steps, largest = [], 1
    for i, j in zip(a[order].tolist(), b[order].tolist(), strict=True):
        if cluster[i] is cluster[j]:
            continue
        merged = cluster[i] | cluster[j]
        for account in merged:
            cluster[account] = merged
        if len(merged) > largest:
            largest = len(merged)
            steps.append((float(cosines[i, j]), largest))
        if largest == accounts:
            break
    return steps


def largest_cluster(steps: Sequence[tuple[float, int]], theta: float) -> int:
    """The largest cluster c at theta, from the steps of `growth`."""
    return max((c for cosine, c in steps if cosine >= theta), default=1)


def critical_theta(steps: Sequence[tuple[float, int]], c: int) -> float:
    """The largest theta with a largest cluster above c, from the steps of `growth`; -1 if there is none."""
    return max((cosine for cosine, size in steps if size > c), default=-1.0)


def account_cosines(vectors: Floats) -> Floats:
    """The largest cosine between the queries of every two accounts, shape (accounts, accounts), ones on the diagonal.

    :param vectors: shape (accounts, queries, d), nonzero vectors of any length
    """
    accounts, queries, dimension = vectors.shape
    unit = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    columns = np.ascontiguousarray(unit.reshape(-1, dimension).T)
    cosines = np.ones((accounts, accounts), np.float32)
    for account in range(accounts - 1):
        later = unit[account] @ columns[:, (account + 1) * queries :]
        largest = later.max(axis=0).reshape(-1, queries).max(axis=1)
        cosines[account, account + 1 :] = cosines[account + 1 :, account] = largest
    return cosines


def draw(rng: np.random.Generator, pattern: Pattern, k_true: int) -> Floats:
    """Draw one trial's queries, shape (30, 100, 32), uniform on the sphere; the first k_true accounts collude."""

    def sphere(*shape: int) -> npt.NDArray[np.float64]:
        x = rng.standard_normal((*shape, DIMENSION))
        unit: npt.NDArray[np.float64] = x / np.linalg.norm(x, axis=-1, keepdims=True)
        return unit

    vectors = sphere(ACCOUNTS, QUERIES)
    if pattern == "P-A":
        vectors[:k_true] = sphere()
    elif pattern == "P-B":
        vectors[:k_true] = sphere() + JITTER * rng.standard_normal((k_true, QUERIES, DIMENSION))
    elif pattern == "P-C":
        vectors[:k_true] = sphere(INTENTS)[rng.integers(INTENTS, size=(k_true, QUERIES))]
    return vectors.astype(np.float32)


def paper_cells(trials: int = TRIALS, *, seed: int = 1) -> Iterator[list[Cell]]:
    """The paper's calibration (Section 5.4, Figure 4), one pattern and k_true at a time: null first, 16 thetas each."""
    cases: list[tuple[Pattern, int]] = [("null", 1), *((p, k) for p in PATTERNS for k in COALITIONS)]
    for number, (pattern, k_true) in enumerate(cases):
        rng = np.random.default_rng([seed, number])
        trial_steps = [growth(account_cosines(draw(rng, pattern, k_true))) for _ in range(trials)]
        yield [_cell(pattern, k_true, theta, trial_steps) for theta in THETAS]


def _cell(
    pattern: Pattern, k_true: int, theta: float, trial_steps: Sequence[Sequence[tuple[float, int]]]
) -> Cell:
    c = np.array([largest_cluster(steps, theta) for steps in trial_steps])
    return Cell(
        pattern=pattern,
        k_true=k_true,
        theta=theta,
        trials=len(c),
        detected=float(np.mean(c >= 2)),
        exact=float(np.mean(c == k_true)),
        c_mean=float(np.mean(c)),
        c_sd=float(np.std(c)),
    )


def calibrate_questions(
    vectors: npt.NDArray[np.int8],
    *,
    theta: float = OPERATING_POINT,
    k_max: int,
    accounts: int = ACCOUNTS,
    queries: int = QUERIES,
    trials: int = TRIALS,
    seed: int = 1,
) -> QuestionReport:
    """The rate of false clusters among honest accounts. Each account's questions are drawn from the provider's own
    questions, without replacement.

    :param vectors: the questions' query vectors, shape (questions, d), int8, none zero
    :raises PolicyError: theta is outside (0, 1)
    :raises SchemaError: there are fewer questions than accounts times queries, or no accounts, queries or trials
    """
    if not 0 < theta < 1:
        raise PolicyError("theta is outside (0, 1)", field="theta", actual=theta)
    if min(accounts, queries, trials, k_max) < 1:
        raise SchemaError("accounts, queries, trials and k_max must be at least 1", field="calibrate",
                          actual=(accounts, queries, trials, k_max))  # fmt: skip
    needed = accounts * queries
    if len(vectors) < needed:
        raise SchemaError("there are too few questions", field="questions", expected=f"at least {needed}",
                          actual=len(vectors), hint="ask for fewer accounts or queries")  # fmt: skip
    rng = np.random.default_rng([seed, len(vectors)])
    trial_steps = []
    for _ in range(trials):
        chosen = vectors[rng.choice(len(vectors), needed, replace=False)].astype(np.float32)
        trial_steps.append(growth(account_cosines(chosen.reshape(accounts, queries, -1))))
    at_theta = _cell("null", 1, theta, trial_steps)
    return QuestionReport(
        questions=len(vectors),
        distinct=len(np.unique(vectors, axis=0)),
        accounts=accounts,
        queries=queries,
        trials=trials,
        theta=theta,
        k_max=k_max,
        fpr=at_theta.detected,
        gate_fpr=float(np.mean([largest_cluster(steps, theta) > k_max for steps in trial_steps])),
        c_mean=at_theta.c_mean,
        theta_fpr=_smallest_theta([critical_theta(steps, 1) for steps in trial_steps]),
        theta_gate=_smallest_theta([critical_theta(steps, k_max) for steps in trial_steps]),
        cells=tuple(_cell("null", 1, t, trial_steps) for t in THETAS),
    )


def _smallest_theta(critical: Sequence[float]) -> float | None:
    """The smallest p/1000 that at most 5 % of the trials' critical cosines reach."""
    values = np.array(critical)
    return next((p / 1000 for p in range(1, 1000) if np.mean(values >= p / 1000) <= ALPHA), None)
