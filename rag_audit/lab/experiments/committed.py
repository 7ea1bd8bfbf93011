"""The engine itself, end to end: committed seed, slots, Poseidon noise, int4 index, policy window, selection.

`attest` runs the same code for a query, and the circuits prove it; it is too slow for the full grid. It confirms the
distributions that the other cells of the engine's column draw from.
"""

from __future__ import annotations

import numpy as np

from rag_audit.lab.experiments.certified import LATTICE, certified, mechanism
from rag_audit.lab.experiments.harness import TOP_K, engine_chance
from rag_audit.lab.experiments.model import Cell, Experiment, Figure, Size
from rag_audit.lab.experiments.statistics import attack
from rag_audit.lab.experiments.toy import toy
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.native import slot_id
from rag_audit.relation.native_secrets import noise_key
from rag_audit.retrieval.engine import draw_noise, select

EPS = 16
WORLDS = {"in": True, "out": False}


def cells(size: Size) -> list[Cell]:
    """Coalitions of one and of five accounts at eps 16."""
    n, trials, ks = (200, 200, (1, 5)) if size == "full" else (20, 10, (1,))
    return [Cell(f"eps{EPS}-k{k}", "engine", {"eps": EPS, "k": k, "n": n, "trials": trials}) for k in ks]


def run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """The attack, and the target's hit rate with the rate predicted by the noise table."""
    k, n, trials = cell["k"], cell["n"], cell["trials"]
    counts = {
        world: np.array([_hits(rng, cell, inside) for _ in range(trials)]) for world, inside in WORLDS.items()
    }
    figures = attack(counts["in"], counts["out"], bound=certified(mechanism(cell["eps"], n), k * n))
    for world, inside in WORLDS.items():
        queries = trials * k * n
        chance = engine_chance(cell["eps"], n, inside=inside)
        error = (chance * (1 - chance) / queries) ** 0.5
        figures.append(
            Figure(f"hit_rate_{world}", float(counts[world].sum()) / queries, error, theory=chance)
        )
    return figures


def _hits(rng: np.random.Generator, cell: Cell, inside: bool) -> int:
    """One window's answers to k accounts that ask the probe n times each."""
    s0, s1, beacon = (digest_to_field(rng.bytes(32)) for _ in range(3))
    name = rng.bytes(8).hex()
    index, window = toy().index(inside=inside), toy().window(LATTICE)
    gains, query = mechanism(cell["eps"], cell["n"]).gains, toy().query
    hits = 0
    for account in range(cell["k"]):
        for i in range(1, cell["n"] + 1):
            kappa = noise_key(s0, s1, beacon, slot_id(name, "tenant", f"account-{account}", i))
            noise = draw_noise(kappa, index.capacity, gains)
            hits += 0 in select(index, query, noise, window, TOP_K)
    return hits


EXPERIMENT = Experiment(
    "committed",
    "Section 4.4 on the engine",
    "the same attack on the engine end to end, by committed seeds",
    cells,
    run,
)
