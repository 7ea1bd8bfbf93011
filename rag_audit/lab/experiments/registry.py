"""The experiments by name, in the order of the paper."""

from __future__ import annotations

from collections.abc import Iterable

from rag_audit._internal.errors import SchemaError
from rag_audit.lab.experiments import (
    adversaries,
    committed,
    embedder,
    epsilons,
    estimator,
    gates,
    harness,
    hnsw,
    lists,
    recall,
    scalar,
)
from rag_audit.lab.experiments.model import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        epsilons.EXPERIMENT,
        scalar.EXPERIMENT,
        gates.EXPERIMENT,
        harness.TOP_K_HARNESS,
        committed.EXPERIMENT,
        hnsw.EXPERIMENT,
        estimator.EXPERIMENT,
        embedder.EXPERIMENT,
        adversaries.EXPERIMENT,
        harness.EXTERNAL,
        lists.EXPERIMENT,
        recall.EXPERIMENT,
    )
}


def choose(names: Iterable[str]) -> list[Experiment]:
    """The experiments of these names, `all` being every one, in the registry's order.

    :raises SchemaError: a name is unknown
    """
    wanted = set(names)
    unknown = sorted(wanted - {*EXPERIMENTS, "all"})
    if unknown:
        raise SchemaError(
            "there is no such experiment", field="NAME", expected=", ".join(["all", *EXPERIMENTS]), actual=unknown[0],
            hint="rag-audit lab experiment list",
        )  # fmt: skip
    return [e for name, e in EXPERIMENTS.items() if name in wanted or "all" in wanted]
