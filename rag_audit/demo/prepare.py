"""The demo's texts and questions: the standard library's docstrings, or a person's own texts."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from rag_audit.accounting.values import text
from rag_audit.demo.corpus import Question, collect, load_questions, small_tenants
from rag_audit.demo.own import MAX_TEXTS, own_questions, own_texts
from rag_audit.demo.stage import Demo, say
from rag_audit.encoding.canonical import jcs
from rag_audit.index.embedders import Embedder
from rag_audit.index.texts import Document
from rag_audit.privacy.explore import samples
from rag_audit.privacy.explore.coins import default_mechanisms, measure
from rag_audit.privacy.explore.samples import Passage, Sample, make_sample
from rag_audit.privacy.explore.simulate import recall_without_noise
from rag_audit.relation.scores import ScoreWindow

WHOLE = "stdlib"
"""The tenant that holds all docstrings, whose records are proved by the scan argument."""
EXACT = ScoreWindow(0, 1 << 14, 1 << 14)
"""Every positive score of 256 components on a step of its own."""
REPEATS = 20
"""Simulated windows of each mechanism."""
SMALL_CAPACITY = 64
"""Positions of the demo's own small tenant, whose records are proved by Groth16."""


def prepare_texts(
    demo: Demo, docs: Path | None, embedder: Embedder
) -> tuple[dict[str, list[Document]], list[Question]]:
    """Write the texts by tenant where `open --docs` finds them, and return them with the questions about them.

    :param docs: a person's own texts; None for the standard library's docstrings
    """
    if docs is None:
        everything, questions = collect(), load_questions()
        small, texts = next(iter(small_tenants(SMALL_CAPACITY).items()))
        tenants = {WHOLE: everything, small: texts}
        _whole_corpus(everything, embedder)
        questions = [q for q in questions if q.tenant == small] + [
            replace(q, tenant=WHOLE) for q in questions
        ]
        say(
            f"tenants: {WHOLE}, all of them, proved by the scan argument; {small}, {len(texts)} of them, by Groth16"
        )
    else:
        tenants, left_out = own_texts(docs)
        questions = own_questions(tenants, embedder)
        named = ", ".join(f"{name} ({len(texts)})" for name, texts in tenants.items())
        say(f"your own texts: {named}; questions are sentences of them")
        for name, count in left_out.items():
            print(
                f"rag-audit: {count} texts of {name} beyond {MAX_TEXTS} are left out",
                file=sys.stderr,
                flush=True,
            )
    for name, texts in tenants.items():
        folder = demo.provider / "docs"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.jsonl").write_bytes(b"".join(jcs({"text": d.text}) + b"\n" for d in texts))
    return tenants, questions


def _whole_corpus(everything: list[Document], embedder: Embedder) -> None:
    """Say how many questions find their docstring among all of them, and under which mechanisms."""
    first, second = (load_questions(blind=blind) for blind in (False, True))
    titles = {d.title for d in everything}
    asked = [[q for q in questions if q.answer in titles] for questions in (first, second)]
    sample = make_sample(
        [Passage((d.title,), d.text) for d in everything],
        [samples.Question(q.question, (q.answer,), q.question) for questions in asked for q in questions],
        embedder,
    )
    sets = [
        Sample(sample.index, sample.queries[part], sample.relevant[part])
        for part in (slice(len(asked[0])), slice(len(asked[0]), None))
    ]
    hits = [round(recall_without_noise(s, EXACT, top_k=5).hit * len(s.queries)) for s in sets]
    say(
        f"recall@5 over all {len(everything)} docstrings without noise: {hits[0]}/{len(asked[0])};"
        f" of a second set, written blind: {hits[1]}/{len(asked[1])}"
    )
    say(
        "what mechanisms without noise would find of the second set, simulated (windows do not serve them yet):"
    )
    for mechanism in default_mechanisms(embedder.name, sample.index.capacity):
        point = measure(sets[1], mechanism, top_k=5, n=len(asked[1]), ks=(2,), repeats=REPEATS)
        say(
            f"  {mechanism.label}: {100 * point.recall.hit:.0f} in 100; eps for two accounts {text(point.eps[2])},"
            f" odds_unlisted {text(mechanism.sampling.odds_unlisted)}"
        )
