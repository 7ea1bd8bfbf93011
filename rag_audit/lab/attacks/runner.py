"""A run: attacks against cells of the reference engine, or against a service elsewhere, stored cell by cell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import digest_hex, read_text
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import StoreError
from rag_audit.lab.attacks import campaign
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.generators.extractive import LABEL
from rag_audit.lab.attacks.interface import Attack, Scorer, Target
from rag_audit.lab.attacks.metrics import Figure
from rag_audit.lab.attacks.proxy import PROXY_LABEL
from rag_audit.lab.attacks.quality import Written
from rag_audit.lab.attacks.split import Split
from rag_audit.lab.attacks.targets.engine import Engine
from rag_audit.lab.empirical.lower_bounds import clopper_pearson_epsilon, gaussian_dp_epsilon
from rag_audit.lab.empirical.rates import auc

DELTA = "1e-5"
FAMILY = 0.05
"""How likely any bound of a run is too high: each is computed at a confidence of 1 - FAMILY / (number of bounds)."""
MAX_CELL_BYTES = 1 << 20
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on epsilon and the certified bound, for a document on one position.

    :param lower: Clopper-Pearson, from worlds with and without the document
    :param gaussian: the epsilon of the Gaussian curve with the attack's rates; no bound for other mechanisms
    :param certified: for the number of asked queries; infinite without a certified bound
    :param eps_audit: for the policy's n queries of each account
    :param auc: the AUC of the attack on the lists without other inputs, for comparison with the ceiling
    """

    lower: float
    gaussian: float
    certified: float
    eps_audit: float
    auc: float
    trials: int

    @property
    def distance(self) -> float:
        """The difference between the certified bound and the lower bound; negative if one of the two is wrong."""
        return self.certified - self.lower


def _bounds(value: Mapping[str, Any]) -> Bounds:
    figures = {name: float(value[name]) for name in ("lower", "gaussian", "certified", "eps_audit", "auc")}
    return Bounds(**figures, trials=int(value["trials"]))


@dataclass(frozen=True)
class Result:
    """One attack in one cell.

    :param ceiling: certified ceiling of the AUC of any test on the lists of the queries that were asked
    """

    attack: str
    cell: Cell
    queries: int
    documents: int
    refused: int
    figures: dict[str, Figure]
    retrieval: Figure | None
    hidden: tuple[float, float]
    ceiling: float | None
    bounds: Bounds | None
    written: Written | None = None
    """The form of the answers, and what they repeat of the passages."""

    def as_json(self) -> dict[str, Any]:
        """JSON form; infinity as the text `inf`."""
        return json.loads(json.dumps(asdict(self), sort_keys=True).replace("Infinity", '"inf"'))  # type: ignore[no-any-return]

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Result:
        """The result of its JSON form."""
        bounds = value["bounds"]
        return cls(
            attack=value["attack"],
            cell=Cell(**value["cell"]),
            queries=value["queries"],
            documents=value["documents"],
            refused=value["refused"],
            figures={name: (f[0], f[1], f[2]) for name, f in value["figures"].items()},
            retrieval=tuple(value["retrieval"]) if value["retrieval"] else None,
            hidden=(value["hidden"][0], value["hidden"][1]),
            ceiling=value["ceiling"],
            bounds=None if bounds is None else _bounds(bounds),
            written=None if value["written"] is None else Written.parse(value["written"]),
        )


@dataclass(frozen=True)
class Plan:
    """The parameters of a run, which also identify its finished cells.

    :param trials: worlds of each kind for the lower bounds; 0 for none
    :param policy: n and k_max of the policy with the printed eps_audit
    :param data: a digest of the documents and of how they are split
    :param service: the labels of the generator and of the proxy model
    """

    attacks: tuple[str, ...]
    cells: tuple[Cell, ...]
    trials: int
    seed: int
    policy: tuple[int, int]
    data: str
    service: tuple[str, str] = (LABEL, PROXY_LABEL)

    @property
    def confidence(self) -> float:
        """The confidence of each bound, such that all bounds are jointly valid at 95 %."""
        return 1 - FAMILY / max(1, len(self.attacks) * len(self.cells))

    def file(self, out: Path, attack: str, cell: Cell) -> Path:
        """Where a cell's result lies: its name has a digest of everything that it depends on."""
        key = digest_hex(
            {
                "attack": attack,
                "cell": {"mechanism": cell.mechanism, "defence": cell.defence, "accounts": cell.accounts},
                "trials": self.trials,
                "seed": self.seed,
                "policy": list(self.policy),
                "data": self.data,
                "service": list(self.service),
                "bounds": len(self.attacks) * len(self.cells),
            }
        )
        return out / "cells" / f"{attack}-{key[:16]}.json"


def digest_of(split: Split) -> str:
    """A digest of a split's documents."""
    return digest_hex([list(part) for part in (split.members, split.others, split.rest, split.own)])


@dataclass
class Session:
    """Attacks on the cells of one corpus, each prepared once.

    :param prepared: attacks with ready tasks, by name; `learnt` has the results of learning at services of the
        attacker's own
    """

    plan: Plan
    attacks: Sequence[Attack]
    bench: Bench
    split: Split
    prepared: dict[str, campaign.Prepared] = field(default_factory=dict)
    learnt: dict[str, Scorer] = field(default_factory=dict)

    def run(
        self, out: Path | None = None, progress: Progress | None = None, only: Sequence[Cell] | None = None
    ) -> list[Result]:
        """Run every attack in every cell, or in some. Finished cells are stored in `out`, and a later run skips them.

        :raises AttackError: an attack cannot be prepared
        :raises StoreError: a stored cell cannot be read
        """
        if out is not None:
            (out / "cells").mkdir(parents=True, exist_ok=True)
        results: list[Result] = []
        cells = self.plan.cells if only is None else only
        for cell in cells:
            engine = None
            for attack in self.attacks:
                file = None if out is None else self.plan.file(out, attack.name, cell)
                if file is not None and file.exists():
                    results.append(_kept(file))
                else:
                    engine = engine or self.bench.engine(cell)
                    ready = self._ready(attack)
                    results.append(_measure(self.plan, ready, engine, cell, self.learnt.get(attack.name)))
                    if file is not None:
                        replace_file(file, json.dumps(results[-1].as_json(), sort_keys=True).encode())
                if progress is not None:
                    progress(len(results), len(cells) * len(self.attacks))
        return results

    def _ready(self, attack: Attack) -> campaign.Prepared:
        if attack.name not in self.prepared:
            self.prepared[attack.name] = campaign.prepare(attack, self.split, self.bench.tools)
            _learn_apart(self.prepared[attack.name], self.bench, self.split, self.learnt)
        return self.prepared[attack.name]


def run(
    plan: Plan,
    attacks: Sequence[Attack],
    bench: Bench,
    split: Split,
    out: Path | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """`Session.run` of a new session."""
    return Session(plan, attacks, bench, split).run(out, progress)


def run_elsewhere(
    attacks: Sequence[Attack],
    target: Target,
    bench: Bench,
    split: Split,
    *,
    accounts: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Result]:
    """Run every attack against a service elsewhere, in the papers' design. The lab cannot remove a document from it for
    a trial, so it computes no lower bound.
    """
    results: list[Result] = []
    learnt: dict[str, Scorer] = {}
    for attack in attacks:
        ready = campaign.prepare(attack, split, bench.tools)
        _learn_apart(ready, bench, split, learnt)
        result, _ = campaign.population(
            ready,
            target,
            accounts=accounts,
            seed=seed,
            shadow=learnt.get(attack.name),
        )
        cell = Cell("none", accounts=accounts)
        results.append(_result(ready, cell, result))
        if progress is not None:
            progress(len(results), len(attacks))
    return results


def _learn_apart(ready: campaign.Prepared, bench: Bench, split: Split, learnt: dict[str, Scorer]) -> None:
    """Run an attack's learning at services of the attacker's own, once for all cells."""
    attack = ready.attack
    if attack.learns == "shadow":
        learnt[attack.name] = campaign.learn_at_shadow(attack, split, bench.tools, bench.beside)
    elif attack.learns == "without":
        cut = len(split.own) // 2
        campaign.score_without(ready, [bench.beside(split.own[:cut]), bench.beside(split.own[cut:])])


def _measure(
    plan: Plan, ready: campaign.Prepared, engine: Engine, cell: Cell, shadow: Scorer | None
) -> Result:
    result, scorer = campaign.population(
        ready,
        engine,
        accounts=cell.accounts,
        seed=plan.seed,
        shadow=shadow,
    )
    if not cell.certified:
        return _result(ready, cell, result)
    attacked, queries, bounds = engine.attacked, ready.queries, None
    epsilon, ceiling = attacked.certified(cell.accounts, queries, DELTA)
    if plan.trials:
        inside, outside = campaign.worlds(ready, engine, scorer, accounts=cell.accounts, trials=plan.trials)
        n, k = plan.policy
        bounds = Bounds(
            lower=clopper_pearson_epsilon(
                inside, outside, delta=attacked.delta(DELTA), confidence=plan.confidence
            ),
            gaussian=gaussian_dp_epsilon(inside, outside, delta=DELTA, confidence=plan.confidence),
            certified=epsilon,
            eps_audit=attacked.certified(k, n, DELTA)[0],
            auc=auc(inside, outside),
            trials=plan.trials,
        )
    return _result(ready, cell, result, ceiling, bounds)


def _result(
    ready: campaign.Prepared,
    cell: Cell,
    actual: campaign.Population,
    ceiling: float | None = None,
    bounds: Bounds | None = None,
) -> Result:
    return Result(ready.attack.name, cell, ready.queries, actual.documents, ready.refused, actual.figures,
                  actual.retrieval, actual.hidden, ceiling, bounds, actual.written)  # fmt: skip


def _kept(file: Path) -> Result:
    try:
        return Result.parse(json.loads(read_text(file, max_bytes=MAX_CELL_BYTES)))
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise StoreError("a stored cell is damaged", field=str(file), actual=str(exc)[:80],
                         hint="delete this file, and repeat the command") from exc  # fmt: skip


def refuted(results: Sequence[Result]) -> list[Result]:
    """The results with a lower bound above the certified one."""
    return [r for r in results if r.bounds is not None and r.bounds.distance < 0]


def least_distance(results: Sequence[Result]) -> Result | None:
    """The result with the lower bound nearest to a certified one."""
    bounded = [r for r in results if r.bounds is not None and math.isfinite(r.bounds.certified)]
    return min(bounded, key=lambda r: r.bounds.distance if r.bounds else math.inf, default=None)
