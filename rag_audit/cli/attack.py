"""`rag-audit attack`: published attacks against the reference engine, a window or a chat endpoint."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rag_audit.cli.common import PATH, Group, emit, json_option, progress, say
from rag_audit.cli.options import whole_number
from rag_audit.encoding.durable import replace_file


@click.group(cls=Group)
def attack() -> None:
    """Run published membership attacks against your own service, before others do."""


@attack.command("list")
@json_option
def list_(as_json: bool) -> None:
    """The attacks, their papers, and what they need."""
    from rag_audit.attacks.methods import ATTACKS

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
@click.option("--target", default="engine", show_default=True,
              help="engine: the reference engine, in process")  # fmt: skip
@click.option("--data", default="demo", show_default=True,
              help="documents: demo, a collection of RAG_AUDIT_DATA, JSON Lines, or a folder")  # fmt: skip
@click.option(
    "--others",
    "others_file",
    type=PATH,
    help="documents that are not in the service; by default a part of --data",
)
@click.option(
    "--out",
    type=PATH,
    default=Path("attacks"),
    show_default=True,
    help="folder for results; finished work is kept there",
)
@click.option(
    "--members",
    callback=whole_number,
    help="attacked documents of the index, and as many others  [default: as many as fit, at most 1000]",
)
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    metavar="none|noise:GAINS:R|sampling:KEEP|listing:KEEP",
    help="repeat for each  [default: all four]",
)
@click.option(
    "--defence",
    "defences",
    multiple=True,
    type=click.Choice(["none", "mirabel", "mirabel-plain", "prompt", "paraphrase"]),
    help="repeat for each; with every --mechanism  [default: none]",
)
@click.option("--k", "accounts", callback=whole_number, help="accounts of the coalition  [default: 4]")
@click.option(
    "--n", callback=whole_number, help="the policy's queries an account, for eps_audit  [default: 200]"
)
@click.option(
    "--trials",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    help="worlds of each kind for the lower bounds",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--top-k", callback=whole_number, help="passages of an answer  [default: 5]")
@json_option
def run_(
    names: tuple[str, ...],
    target: str,
    data: str,
    others_file: Path | None,
    out: Path,
    members: int | None,
    mechanisms: tuple[str, ...],
    defences: tuple[str, ...],
    accounts: int | None,
    n: int | None,
    trials: int,
    seed: int,
    top_k: int | None,
    as_json: bool,
) -> None:
    """Run attacks and print what each gets, beside what is certified.

    Exit code 1: a lower bound on epsilon from an attack lies above the certified bound, so one of the two is wrong.
    """
    from rag_audit.attacks import campaign, cells, report, runner
    from rag_audit.attacks.interface import BoundExceeded
    from rag_audit.attacks.methods import chosen
    from rag_audit.attacks.split import given_split, load_texts, make_split
    from rag_audit.index.embedders import get_embedder

    attacks = chosen(list(names))
    texts = _documents(data)
    if others_file is not None:
        split = given_split(texts, load_texts(others_file), [], seed=seed)
    else:
        size = members or min(1000, 2 * len(texts) // 5)
        split = make_split(texts, members=size, others=size, seed=seed)
    if any(split.left_out):
        say(f"left out: {split.left_out[0]} texts without enough words, {split.left_out[1]} copies")
    embedder = get_embedder(query_tokens=512)
    tools = campaign.tools_of(split.own, campaign.Unit(embedder), seed)
    bench = cells.Bench(split.index, embedder, tools, top_k or 5, seed)
    k = accounts or 4
    if mechanisms or defences:
        columns = [
            cells.Cell(m, d, size)  # type: ignore[arg-type]
            for m in mechanisms or ("none",)
            for d in defences or ("none",)
            for size in ((1, k) if m != "none" and d == "none" and k > 1 else (1,))
        ]
    else:
        columns = cells.default_cells(k)
    plan = runner.Plan(
        attacks=tuple(a.name for a in attacks),
        cells=tuple(columns),
        trials=trials,
        seed=seed,
        policy=(n or 200, max(k, 1)),
        data=runner.digest_of(split),
    )
    out.mkdir(parents=True, exist_ok=True)
    results = runner.run(plan, attacks, bench, split, out, progress("attacks"))
    label = bench.engine(columns[0]).generator.label
    value = {
        "target": target,
        "generator": label,
        "data": data,
        "members": len(split.members),
        "others": len(split.others),
        "index": len(split.index),
        "capacity": bench.capacity,
        "seed": seed,
        "confidence": plan.confidence,
        "results": [r.as_json() for r in results],
    }
    replace_file(out / "attacks.json", json.dumps(value, indent=1).encode())
    replace_file(out / "attacks.csv", report.csv_of(results))
    replace_file(out / "section.md", report.section(results, label).encode())
    emit(value, as_json, [*report.table(results), "", *report.verdict(results)])
    if runner.refuted(results):
        raise BoundExceeded(
            "a lower bound on epsilon lies above the certified bound: one of the two is wrong",
            field=str(out / "attacks.json"),
            expected="lower bounds below the certified ones",
            found="; ".join(report.verdict(results)),
            hint="run the same attack with another --seed; if it stays, the accounting or the engine has a fault",
        )


def _documents(data: str) -> list[str]:
    if data == "demo":
        from rag_audit.demo.corpus import collect

        return [document.text for document in collect()]
    from rag_audit.attacks.split import load_data

    return load_data(data)
