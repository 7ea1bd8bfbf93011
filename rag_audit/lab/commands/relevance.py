"""`rag-audit lab relevance`: the relevance threshold of an embedder, measured on public texts."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import emit, json_option, say
from rag_audit.cli.options import Real, default_option, model_option, path_option
from rag_audit.lab.relevance import SHARE
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder


@click.command("relevance")
@path_option(
    "--index",
    required=True,
    help='public passages: JSON Lines {"id": .., "text": ..}, or a folder of documents',
)
@path_option("--questions", required=True, help='JSON Lines {"question": .., "passage": <id>}')
@default_option("--embedder", default=DEFAULT_EMBEDDER, help="the embedder whose threshold is measured")
@model_option
@default_option(
    "--share",
    type=Real(0.5, 1),
    default=SHARE,
    help="share of questions whose own passage reaches the threshold",
)
@json_option
def relevance(
    index: Path,
    questions: Path,
    embedder: str,
    model: Path | None,
    share: float,
    as_json: bool,
) -> None:
    """Measure the raw score that separates relevant passages, for `provider policy new --relevance`.

    Use public texts: the threshold is published with the policy, and a threshold from a provider's own documents would
    reveal their scores.
    """
    from rag_audit.commit.explore.samples import load_passages, load_questions, make_sample
    from rag_audit.lab.relevance import measure

    passages = load_passages(index)
    sample = make_sample(passages, load_questions(questions), get_embedder(embedder, folder=model))
    result = measure(sample, share)
    value = {
        "embedder": embedder,
        "relevance": result.score,
        "passages": len(passages),
        "questions": len(sample.queries),
        "own": f"{result.own:.4f}",
        "other": f"{result.other:.6f}",
    }
    emit(
        value,
        as_json,
        f"relevance {result.score}: {100 * result.own:.1f} % of {len(sample.queries):,} questions reach it with their"
        f" own passage, and {100 * result.other:.2f} % of the pairs with another question's passage",
    )
    say(f"next: rag-audit provider policy new --embedder {embedder} --relevance {result.score} ..")
