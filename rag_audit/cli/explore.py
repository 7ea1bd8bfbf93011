"""`rag-audit provider policy explore`: the recall that a policy's noise leaves."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import PolicyError
from rag_audit.cli.common import emit, json_option, progress, say
from rag_audit.cli.options import (
    default_option,
    gain_list,
    model_option,
    path_option,
    read_policy,
    score_range,
    skip_option,
    whole_number,
)
from rag_audit.commit.choose import DEFAULT_EPS_ACC
from rag_audit.retrieval.inventory import Inventory


@click.command("explore")
@path_option(
    "--index",
    required=True,
    help='documents: JSON Lines {"id": .., "text": ..}, or a folder as for `provider open --docs`',
)
@skip_option
@path_option("--questions", required=True, help='JSON Lines {"question": .., "passage": <id>}')
@path_option("--policy", "policy_file", help="a policy: its constants are the defaults")
@click.option("--tenant", help="whose documents, if there are several tenants")
@click.option(
    "--capacity",
    callback=whole_number,
    help="positions  [default: the power of two that holds the documents]",
)
@click.option(
    "--gains",
    metavar="1,8,64",
    callback=gain_list,
    multiple=True,
    help="repeat for each  [default: a ladder of noise]",
)
@click.option("--lattice", callback=whole_number, multiple=True, help="repeat for each; with every --gains")
@click.option(
    "--score-window",
    metavar="LO:HI",
    callback=score_range,
    multiple=True,
    help="repeat for each  [default: the embedder's]",
)
@click.option(
    "--mechanism",
    "mechanisms",
    metavar="sampling:KEEP|listing:KEEP:CHANCE:THRESHOLD[:MOST]",
    multiple=True,
    help="a mechanism made of coins; repeat for each  [default: sampling and listing at 0.9 and 0.7]",
)
@click.option(
    "--n",
    callback=whole_number,
    multiple=True,
    help="queries an account; repeat for each  [default: 200]",
)
@click.option(
    "--k",
    "--k-max",
    "k",
    callback=whole_number,
    multiple=True,
    help="coalition; repeat for each  [default: 10]",
)
@click.option("--top-k", callback=whole_number, help="positions in an answer  [default: 5]")
@click.option("--eps-acc", help=f"for the closed form  [default: {DEFAULT_EPS_ACC}]")
@click.option("--delta-acc", help="[default: 1e-7]")
@click.option("--delta", "--delta-policy", "delta", help="[default: 1e-5]")
@default_option("--embedder", default="wordllama-256", help="what embeds documents and questions")
@model_option
@click.option(
    "--repeats",
    callback=whole_number,
    help="answers to each question  [default: enough for 4,000 in all]",
)
@default_option("--seed", type=click.IntRange(min=0), default=0, help="of the simulation")
@path_option("--csv", "csv_file", help="write the grid as CSV")
@path_option("--picture", help="draw recall against eps (png, svg, pdf)")
@json_option
def explore(
    index: Path,
    skip_unreadable: bool,
    questions: Path,
    policy_file: Path | None,
    tenant: str | None,
    capacity: int | None,
    gains: tuple[tuple[int, ...], ...],
    lattice: tuple[int, ...],
    score_window: tuple[tuple[int, int], ...],
    mechanisms: tuple[str, ...],
    n: tuple[int, ...],
    k: tuple[int, ...],
    top_k: int | None,
    eps_acc: str | None,
    delta_acc: str | None,
    delta: str | None,
    embedder: str,
    model: Path | None,
    repeats: int | None,
    seed: int,
    csv_file: Path | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Recall of the noised engine beside eps_audit, on your own documents and questions.

    Recall depends on the ranking without noise, which one document can change: these figures are outside every
    bound and stay with the provider.
    """
    from rag_audit.commit.explore import coins, ladder, render, samples, simulate
    from rag_audit.retrieval.embedders import get_embedder

    asked = [coins.parse_mechanism(written) for written in mechanisms]

    base = None if policy_file is None else read_policy(policy_file)
    if base is not None and tenant is None and len(base.tenants) == 1:
        tenant = base.tenants[0].tenant
    if base is not None and capacity is None:
        part = base.tenant(tenant or "")
        if part is None:
            raise PolicyError(
                "name one of the policy's tenants",
                field="--tenant",
                expected=", ".join(t.tenant for t in base.tenants),
                found=tenant,
            )
        capacity = part.capacity
    tokens = (
        {} if base is None else {"query_tokens": base.tokens.query, "document_tokens": base.tokens.document}
    )
    model_used = get_embedder(embedder, folder=model, **tokens)
    noise = None if base is None else base.noise
    own = None if noise is None else simulate.Noise(tuple(noise.gains), noise.score_window())
    inventory = Inventory()
    try:
        passages = samples.load_passages(index, tenant, inventory, skip_unreadable=skip_unreadable)
    except samples.SampleError:  # a tenant may be missing since its files were omitted
        for line in inventory.lines():
            say(line)
        raise
    for line in inventory.lines():
        say(line)
    sample = samples.make_sample(
        passages,
        samples.load_questions(questions),
        model_used,
        capacity=capacity,
        seed=seed,
    )
    found = simulate.explore(
        sample,
        ladder.grid(gains, lattice, score_window, model_used, own),
        ns=n or (200 if base is None else base.n,),
        ks=k or (10 if base is None else base.k_max,),
        top_k=top_k or (5 if base is None else base.top_k),
        eps_acc=eps_acc or (base and base.eps_acc) or DEFAULT_EPS_ACC,
        delta_acc=delta_acc or (base and base.delta_acc) or "1e-7",
        delta=delta or ("1e-5" if base is None else base.delta_policy),
        repeats=repeats,
        seed=seed,
        progress=progress("questions"),
    )
    ns, sizes = list(dict.fromkeys(p.n for p in found.points)), list(dict.fromkeys(p.k for p in found.points))
    chosen = asked or coins.default_mechanisms(embedder, sample.index.capacity)
    listings = {
        count: [
            coins.measure(
                sample, mechanism, top_k=found.top_k, n=count, ks=dict.fromkeys((1, *sizes)),
                repeats=found.repeats, seed=seed, progress=progress("windows"),
            )
            for mechanism in chosen
        ]
        for count in ns
    }  # fmt: skip
    if csv_file is not None:
        replace_file(csv_file, render.csv_of(found.points))
    if picture is not None:
        render.draw(found, picture, [point for points in listings.values() for point in points])
    tables = [f"\n{render.coin_table(points, found, count)}" for count, points in listings.items()]
    emit(
        {
            **found.as_json(),
            "mechanisms": [{"n": count, **p.as_json()} for count, points in listings.items() for p in points],
        },
        as_json,
        [*"\n".join([render.table(found), *tables, ""]).split("\n"), *found.headlines(own)],
    )
