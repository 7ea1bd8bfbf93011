"""`rag-audit lab attack`: published attacks against the reference engine, a window or a chat endpoint."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import SetupError
from rag_audit._internal.printable import printable_text
from rag_audit.cli.common import PATH, Group, emit, json_option, progress
from rag_audit.cli.options import (
    PROCESSES,
    Real,
    default_option,
    flag_option,
    path_option,
    seed_option,
    skip_option,
    whole_number,
)
from rag_audit.lab.commands.services import Options, service_of

if TYPE_CHECKING:
    from rag_audit.lab.attacks.runner import Result, Session


@click.group(cls=Group)
def attack() -> None:
    """Run published membership attacks against your own service."""


@attack.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the attacks, their papers and their requirements."""
    from rag_audit.lab.attacks.methods import ATTACKS

    rows = [
        {
            "name": a.name,
            "paper": a.paper,
            "about": a.about,
            "log_probabilities": a.probabilities,
            "learns": a.learns,
        }
        for a in ATTACKS.values()
    ]
    lines = [
        f"{a.name:11} {a.about}  [{a.paper}]" + ("  (needs log-probabilities)" if a.probabilities else "")
        for a in ATTACKS.values()
    ]
    emit({"attacks": rows}, as_json, lines)


@attack.command("run")
@click.argument("names", nargs=-1, required=True, metavar="NAME..|all")
@default_option(
    "--target",
    default="engine",
    help="engine, in process; a chat endpoint with retrieval behind it (https://host/v1); or a window's socket",
)
@default_option(
    "--data",
    default="demo",
    help="the service's documents: demo, a collection of RAG_AUDIT_DATA, JSON Lines, or a folder",
)
@skip_option
@path_option("--others", "others_file", help="documents outside the service  [default: a part of --data]")
@path_option("--own", "own_file", help="the attacker's own texts  [default: a part of the others]")
@default_option("--out", type=PATH, default=Path("attacks"), help="folder for results and finished work")
@click.option(
    "--members", callback=whole_number, help="attacked documents, and as many others  [default: up to 1000]"
)
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    metavar="NAME[:PARAMETERS]",
    help="mechanism of the engine, such as none or sampling:0.7; repeat for each  [default: all]",
)
@click.option(
    "--defence",
    "defences",
    multiple=True,
    type=click.Choice(["none", "mirabel", "mirabel-plain", "prompt", "paraphrase"]),
    help="defence of the engine; repeat for each, with every --mechanism  [default: all without noise]",
)
@click.option("--k", "accounts", callback=whole_number, help="accounts of the coalition  [default: 4]")
@click.option(
    "--n", callback=whole_number, help="the policy's queries of an account, for eps_audit  [default: 200]"
)
@default_option(
    "--trials", type=click.IntRange(min=0), default=500, help="worlds of each kind for lower bounds"
)
@seed_option
@click.option("--top-k", callback=whole_number, help="passages of an answer  [default: 5]")
@default_option("--jobs", type=PROCESSES, default=1, help="number of processes; each measures one cell")
@click.option(
    "--generator",
    help="what answers from the passages: a model file in this process (gguf:PATH) or a chat endpoint"
    "  [default: the extractive baseline, without a model]",
)
@click.option("--generator-digest", metavar="SHA256", help="the digest that the model file must have")
@click.option(
    "--proxy",
    metavar="NAME",
    help="the attacker's model of hard words: token-statistics, the trigram baseline, or gguf:PATH"
    "  [default: the model of --generator gguf:PATH, else token-statistics]",
)
@click.option("--model", help="the chat endpoint's model")
@click.option("--key-env", help="the environment variable with the chat endpoint's key")
@default_option("--timeout", type=Real(0.1, 86_400), default=60.0, help="maximum seconds of one read")
@default_option("--attempts", type=click.IntRange(1, 1000), default=5, help="maximum seconds of one question")
@flag_option("--no-stream", help="request complete answers instead of a stream")
@flag_option("--logprobs", help="request log-probabilities (some attacks need them)")
@click.option("--parallel", callback=whole_number, help="simultaneous questions to an endpoint  [default: 1]")
@path_option("--account", "folders", multiple=True, help="for a window: an account's folder; repeat")
@path_option("--window", "public", help="for a window: its public folder")
@click.option("--provider", help="for a window: the provider's vkey, or a file with it")
@json_option
def run_(as_json: bool, **options: Any) -> None:
    """Run attacks, and print the results with the certified figures.

    Exit code 1: a lower bound on epsilon from an attack is above the certified bound, so one of the two is wrong.
    """
    from rag_audit.lab.attacks import report, runner
    from rag_audit.lab.attacks.interface import BoundExceeded

    chosen = Options(**options)
    chosen.out.mkdir(parents=True, exist_ok=True)
    results, facts = _elsewhere(chosen) if chosen.target != "engine" else _engine(chosen)
    value: dict[str, object] = {"type": "attacks", "v": 1, "target": chosen.target, "data": chosen.data,
                                "seed": chosen.seed, **facts}  # fmt: skip
    value["results"] = [r.as_json() for r in results]
    label = str(facts["generator"])
    replace_file(chosen.out / "attacks.json", json.dumps(value, indent=1).encode())
    replace_file(chosen.out / "attacks.csv", report.csv_of(results))
    replace_file(chosen.out / "section.md", report.section(results, label).encode())
    said = [str(facts["certified"])] if "certified" in facts else report.verdict(results)
    emit(
        value,
        as_json,
        [
            *report.table(results),
            "",
            f"answered by: {label}",
            f"hard words chosen by: {facts['proxy']}",
            *said,
        ],
    )
    if runner.refuted(results):
        raise BoundExceeded(
            "a lower bound on epsilon is above the certified bound, so one of the two is wrong",
            field=str(chosen.out / "attacks.json"),
            expected="lower bounds below the certified ones",
            actual="; ".join(report.verdict(results)),
            hint="repeat the attack with another --seed; a second such result shows a fault of the accounting or the"
            " engine",
        )


@attack.command("tables")
@click.argument("names", nargs=-1, metavar="[COLLECTION..]")
@click.option("--members", callback=whole_number, help="attacked members, and as many others  [default: 500]")
@seed_option
@default_option("--out", type=PATH, default=Path("attacks"), help="folder for finished work")
def tables_(names: tuple[str, ...], members: int | None, seed: int, out: Path) -> None:
    """The papers' tables on the public collections (RAG_AUDIT_DATA), with the papers' figures in brackets."""
    from rag_audit.lab.attacks import tables

    unknown = [name for name in names if name not in tables.GROUPS]
    if unknown:
        raise SetupError("no table uses this collection", field="COLLECTION", expected=", ".join(tables.GROUPS),
                         actual=unknown[0])  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    result = tables.measure(
        out, members=members or 500, seed=seed, names=names or tuple(tables.GROUPS), progress=progress
    )
    text = tables.render(result)
    replace_file(out / "tables.md", text.encode())
    click.echo(printable_text(text))


def _engine(o: Options) -> tuple[list[Result], dict[str, object]]:
    """Attacks on the reference engine, cell by cell in the requested number of processes."""
    from rag_audit.lab.attacks import runner

    session = _session(o)
    if o.jobs > 1:
        with ProcessPoolExecutor(o.jobs, get_context("spawn")) as pool:
            show = progress("cells")
            for done, _ in enumerate(pool.map(_cell, [(o, i) for i in range(len(session.plan.cells))]), 1):
                show(done, len(session.plan.cells))
    results = session.run(o.out, progress("attacks"))
    split, bench, plan = session.split, session.bench, session.plan
    return results, {
        "generator": plan.service[0],
        "proxy": plan.service[1],
        "members": len(split.members),
        "others": len(split.others),
        "index": len(split.index),
        "capacity": bench.capacity,
        "top_k": bench.top_k,
        "n": plan.policy[0],
        "k_max": plan.policy[1],
        "confidence": plan.confidence,
        "delta": runner.DELTA,
        "mechanisms": {
            cell.mechanism: bench.attacked(cell.mechanism).parameters.model_dump(exclude_defaults=True)
            for cell in plan.cells
        },
    }


def _cell(requested: tuple[Options, int]) -> None:
    """Run one cell in a separate process, and store its results."""
    o, number = requested
    session = _session(o)
    session.run(o.out, only=[session.plan.cells[number]])


@lru_cache(maxsize=1)
def _session(o: Options) -> Session:
    from rag_audit.lab.attacks import cells, runner
    from rag_audit.lab.attacks.methods import chosen

    attacks = chosen(list(o.names))
    split = o.split(elsewhere=False)
    bench = o.bench(split)
    columns = cells.default_cells(o.k)
    if o.mechanisms or o.defences:
        columns = cells.cells(o.mechanisms or ("none",), o.defences or ("none",), o.k)
    plan = runner.Plan(
        attacks=tuple(a.name for a in attacks),
        cells=tuple(columns),
        trials=o.trials,
        seed=o.seed,
        policy=(o.n or 200, o.k),
        data=runner.digest_of(split),
        service=(bench.engine(cells.Cell("none")).generator.label, bench.tools.proxy.name),
    )
    return runner.Session(plan, attacks, bench, split)


def _elsewhere(o: Options) -> tuple[list[Result], dict[str, object]]:
    """Attacks on a chat endpoint or a window."""
    from rag_audit.lab.attacks import runner
    from rag_audit.lab.attacks.campaign import numbered
    from rag_audit.lab.attacks.methods import chosen

    attacks = chosen(list(o.names))
    split = o.split(elsewhere=True)
    bench = o.bench(split)
    target, facts = service_of(o, bench, numbered(split))
    accounts = max(1, len(o.folders)) if o.accounts is None else o.accounts
    results = runner.run_elsewhere(attacks, target, bench, split, accounts=accounts, seed=o.seed)
    return results, {
        "generator": target.label,
        "proxy": bench.tools.proxy.name,
        "members": len(split.members),
        "others": len(split.others),
        **facts,
    }
