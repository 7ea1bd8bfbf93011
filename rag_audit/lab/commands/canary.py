"""`rag-audit lab canary`: texts that a coin each puts into an index or not, and the test that asks for them
afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import click

from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import SchemaError
from rag_audit._internal.jsonlines import parse_row, string, text_lines
from rag_audit.cli.common import PATH, Group, emit, json_option
from rag_audit.cli.options import Real, default_option, path_option, seed_option, skip_option, whole_number
from rag_audit.lab.commands.services import Options, documents_of, service_of


@click.group(cls=Group)
def canary() -> None:
    """Add random texts to your own index, and measure how many of them an attack recognises."""


@canary.command("new")
@click.argument("file", type=PATH)
@click.option(
    "--docs",
    "data",
    required=True,
    help="documents with the style of the canaries, as `lab attack run --data`",
)
@skip_option
@click.option("--count", callback=whole_number, help="[default: 128]")
@default_option("--perplexity", type=Real(2, 1e12), default=2000.0, help="of their ends")
@json_option
def new(
    file: Path, data: str, skip_unreadable: bool, count: int | None, perplexity: float, as_json: bool
) -> None:
    """Make canaries and toss their coins. FILE is a secret until they have been tested."""
    from rag_audit.lab.attacks import canaries

    result = canaries.make(
        documents_of(data, skip_unreadable=skip_unreadable), count or 128, perplexity=perplexity
    )
    canaries.save(result, file)
    inserted = sum(c.inserted for c in result)
    emit({"canaries": len(result), "inserted": inserted, "file": str(file)}, as_json)


@canary.command("insert")
@click.argument("file", type=PATH)
@path_option("--docs", required=True, help="the service's documents, JSON Lines")
@path_option("--out", required=True, help="the same documents with canaries among them, JSON Lines")
@json_option
def insert(file: Path, docs: Path, out: Path, as_json: bool) -> None:
    """Write the documents with the randomly included canaries; commit this file instead of the documents.

    The documents' lines stay as they are, with every field beside the text.
    """
    from rag_audit.lab.attacks import canaries

    if docs.is_dir():
        raise SchemaError("canaries need the documents of one tenant", field=str(docs),
                          expected="a JSON Lines file", actual="a folder")  # fmt: skip
    own = []
    for place, _, line in text_lines(docs):
        string(parse_row(line, source=place), "text", place)
        own.append(line.strip())
    put = [c.text for c in canaries.load(file) if c.inserted]
    lines = [*own, *(json.dumps({"text": text}, ensure_ascii=False).encode() for text in put)]
    Random().shuffle(lines)
    replace_file(out, b"".join(line + b"\n" for line in lines))
    emit({"documents": len(own), "canaries": len(put), "out": str(out)}, as_json)


@canary.command("test")
@click.argument("file", type=PATH)
@default_option("--target", default="engine", help="as `lab attack run --target`")
@default_option("--docs", "data", default="demo", help="the engine's documents, without canaries")
@skip_option
@default_option(
    "--mechanism", default="none", help="mechanism of the engine, as `lab attack run --mechanism`"
)
@click.option(
    "--k",
    "accounts",
    callback=whole_number,
    help="accounts that send a question for every canary  [default: 1]",
)
@seed_option
@default_option("--out", type=PATH, default=Path("canaries"), help="folder for stored replies")
@click.option(
    "--generator", help="what answers from the passages: a model file (gguf:PATH) or a chat endpoint"
)
@click.option("--model", help="the chat endpoint's model")
@click.option("--key-env", help="the environment variable with the chat endpoint's key")
@path_option("--account", "folders", multiple=True, help="for a window: an account's folder; repeat")
@path_option("--window", "public", help="for a window: its public folder")
@click.option("--provider", help="for a window: the provider's vkey, or a file with it")
@json_option
def test(file: Path, mechanism: str, accounts: int | None, as_json: bool, **options: Any) -> None:
    """Ask for every canary, guess which are there, and print the lower bound on epsilon that the guesses prove.

    Exit code 1: the bound lies above the certified one, so one of the two is wrong.
    """
    from rag_audit.lab.attacks import campaign, canaries, cells
    from rag_audit.lab.attacks.interface import BoundExceeded, Target
    from rag_audit.lab.attacks.runner import DELTA
    from rag_audit.retrieval.embedders import get_embedder

    o = Options(**options)
    marked = canaries.load(file)
    texts = [c.text for c in marked]
    if o.target == "engine":
        texts = documents_of(o.data, skip_unreadable=o.skip_unreadable)
    embedder = get_embedder(query_tokens=512)
    generator, proxy = o.language_models()
    tools = campaign.tools_of(texts[: len(texts) // 5], campaign.Unit(embedder), o.seed, proxy)
    index = [*(c.text for c in marked), *texts] if o.target == "engine" else texts
    bench = cells.Bench(index, embedder, tools, 5, o.seed, generator)
    k, certified = accounts or max(1, len(o.folders)), None
    served: Target
    said = "no figure is certified for this service's answers"
    if o.target == "engine":
        cell = cells.Cell(mechanism, accounts=k)
        engine = bench.engine(cell)
        served = canaries.in_engine(engine, marked)
        certified, _ = engine.attacked.certified(k, len(marked), DELTA)
        actual = canaries.test(marked, served, accounts=k, delta=engine.attacked.delta(DELTA))
        said = f"certified for these queries: {certified:.5g}, above the lower bound by {certified - actual.lower:.5g}"
    else:
        o.out.mkdir(parents=True, exist_ok=True)
        served, facts = service_of(o, bench, {n: c.text for n, c in enumerate(marked)})
        said = facts["certified"]
        actual = canaries.test(marked, served, accounts=k)
    value = {"canaries": actual.canaries, "inserted": actual.inserted, "queries": actual.queries,
             "auc": f"{actual.auc.value:.4f}", "auc_error": f"{actual.auc.error:.4f}", "guesses": actual.guesses,
             "correct": actual.correct, "eps_lower": f"{actual.lower:.4f}",
             "eps_certified": None if certified is None else f"{certified:.5g}"}  # fmt: skip
    lines = [
        f"{actual.canaries} canaries, {actual.inserted} in; AUC {actual.auc.value:.3f} (s.e. {actual.auc.error:.3f})",
        f"{actual.correct} of {actual.guesses} guesses right: eps is at least {actual.lower:.3f} (95 %, one run)",
        said,
    ]
    emit(value, as_json, lines)
    if certified is not None and actual.lower > certified:
        raise BoundExceeded(
            "the lower bound from canaries is above the certified bound, so one of the two is wrong",
            field=str(file), expected=f"at most {certified:.5g}", actual=f"{actual.lower:.5g}",
            hint="repeat the test with another --seed; a second such result shows a fault of the accounting or the"
                 " engine",
        )  # fmt: skip
