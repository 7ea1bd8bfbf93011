"""`rag-audit provider policy explore`: the recall that a policy's noise leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from rag_audit._internal.canonical import jcs, read_bytes
from rag_audit._internal.durable import beside, replace_file
from rag_audit._internal.errors import PolicyError
from rag_audit.cli.common import emit, json_option, progress, say
from rag_audit.cli.options import (
    default_option,
    gain_list,
    gathered,
    model_option,
    path_option,
    read_policy,
    score_range,
    skip_option,
    whole_number,
)
from rag_audit.commit.choose import DEFAULT_EPS_ACC
from rag_audit.commit.explore.collections import WITH_QUESTIONS
from rag_audit.models.policy import OWN_DOCUMENTS, Policy
from rag_audit.models.publication import MAX_PUBLICATION_BYTES
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER
from rag_audit.retrieval.inventory import Inventory

if TYPE_CHECKING:
    from rag_audit.commit.explore.samples import Sample
    from rag_audit.commit.explore.simulate import Grid, Noise
    from rag_audit.retrieval.embedders import Embedder


COLLECTION = "squad"
QUESTIONS = 400
"""The number of questions of a public collection that the command asks."""
OTHER_TEXTS = "--index measures other public texts, and --own-texts the provider's own"


@dataclass(frozen=True)
class _Documents:
    """The options about the texts and questions to explore, and their embedder.

    Without `index` and `own_texts` the texts are those of a public collection.
    """

    collection: str | None
    data: Path | None
    index: Path | None
    own_texts: Path | None
    skip_unreadable: bool
    questions: Path | None
    tenant: str | None
    capacity: int | None
    embedder: str
    model: Path | None

    def within(self, policy: Policy | None) -> _Documents:
        """The same texts, with tenant and capacity of a policy where the options name none. A public collection has
        its own size.

        :raises PolicyError: the policy has several tenants and the options name none of them
        """
        if policy is None or self.files is None:
            return self
        only = policy.tenants[0].tenant if len(policy.tenants) == 1 else None
        tenant, capacity = self.tenant or only, self.capacity
        if capacity is None:
            part = policy.tenant(tenant or "")
            if part is None:
                raise PolicyError(
                    "name one of the policy's tenants",
                    field="--tenant",
                    expected=", ".join(t.tenant for t in policy.tenants),
                    actual=tenant,
                )
            capacity = part.capacity
        return replace(self, tenant=tenant, capacity=capacity)

    def chosen_embedder(self, policy: Policy | None) -> Embedder:
        """The embedder, with the token limits of a policy."""
        from rag_audit.retrieval.embedders import get_embedder

        if policy is None:
            return get_embedder(self.embedder, folder=self.model)
        tokens = policy.tokens
        return get_embedder(
            self.embedder, folder=self.model, query_tokens=tokens.query, document_tokens=tokens.document
        )

    @property
    def files(self) -> Path | None:
        """The place of the texts if no public collection has them."""
        return self.index or self.own_texts

    def check(self, policy: Path | None) -> None:
        """Refuse options that contradict one another.

        :raises PolicyError: texts have two sources, questions are missing or have no texts, or no policy can record
            that the texts are the provider's own
        """

        def refuse(message: str, option: str, expected: str, actual: str) -> NoReturn:
            raise PolicyError(message, field=option, expected=expected, actual=actual)

        if self.index is not None and self.own_texts is not None:
            refuse("the texts have two sources", "--own-texts", "--index or --own-texts", "both")
        if self.files is None:
            if self.questions is not None:
                refuse("the questions have no texts", "--questions", "--index for public texts, or --own-texts",
                       "neither")  # fmt: skip
            return
        option = "--index" if self.own_texts is None else "--own-texts"
        if self.collection is not None or self.data is not None:
            refuse("the texts have two sources", option, f"a public collection or {option}", "both")
        if self.questions is None:
            refuse("the texts have no questions", option, "--questions FILE", "no --questions")
        if self.own_texts is not None and policy is None:
            refuse("no policy can record that the provider looks at its own documents", "--own-texts",
                   "--policy FILE", "no --policy")  # fmt: skip

    def sample(self, embedder: Embedder, seed: int) -> Sample:
        """The embedded texts and questions.

        :raises RagAuditError: a file cannot be read, the tenant has no documents, or there is no public collection
        """
        from rag_audit.commit.explore import collections, samples
        from rag_audit.commit.explore.samples import load_passages, load_questions, make_sample

        if self.files is None or self.questions is None:
            name = self.collection or COLLECTION
            try:
                whole = collections.collection(name, self.data)
            except collections.CollectionError as exc:
                exc.hint = f"{exc.hint or 'name another folder'}, or --data FOLDER; {OTHER_TEXTS}"
                raise
            texts = whole.sample(QUESTIONS, seed)
            say(f"public texts: {whole.name}, {len(texts.passages):,} passages, {len(texts.questions):,} of"
                f" {len(whole.questions):,} questions")  # fmt: skip
            return make_sample(
                [samples.Passage((str(i),), text) for i, text in enumerate(texts.passages)],
                [
                    samples.Question(text, tuple(map(str, sorted(places))), f"{name}, question {i}")
                    for i, (text, places) in enumerate(zip(texts.questions, texts.relevant, strict=True))
                ],
                embedder, capacity=self.capacity, seed=seed,
            )  # fmt: skip
        inventory = Inventory()
        try:
            passages = load_passages(self.files, self.tenant, inventory, skip_unreadable=self.skip_unreadable)
        finally:  # an error about a missing tenant may be due to its omitted files
            for line in inventory.lines():
                say(line)
        questions = load_questions(self.questions)
        return make_sample(passages, questions, embedder, capacity=self.capacity, seed=seed)


@dataclass(frozen=True)
class _Grid:
    """The options about the mechanisms, numbers of queries and coalition sizes to explore."""

    gains: tuple[tuple[int, ...], ...]
    lattice: tuple[int, ...]
    score_window: tuple[tuple[int, int], ...]
    mechanisms: tuple[str, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]
    positions_per_document: int | None

    def read(self, policy: Policy | None, embedder: Embedder, own: Noise | None) -> Grid:
        """The grid, with the numbers of a policy where the options name none.

        :param own: the policy's own noise
        """
        from rag_audit.commit.explore import ladder, simulate

        return simulate.Grid(
            ladder.grid(self.gains, self.lattice, self.score_window, embedder, own),
            self.n or (200 if policy is None else policy.n,),
            self.k or (10 if policy is None else policy.k_max,),
            self.positions_per_document or (1 if policy is None else policy.noised_positions),
        )


@dataclass(frozen=True)
class _Target:
    """The options about answers and bounds; None is the policy's value."""

    top_k: int | None
    eps_acc: str | None
    delta_acc: str | None
    delta: str | None


@click.command("explore")
@gathered(
    "documents",
    _Documents,
    click.option(
        "--collection",
        type=click.Choice(WITH_QUESTIONS),
        help=f"the public collection whose texts are searched  [default: {COLLECTION}]",
    ),
    path_option("--data", help="the folder of the public collections  [default: that of RAG_AUDIT_DATA]"),
    path_option(
        "--index",
        help='other public texts instead: JSON Lines {"id": .., "text": ..}, or a folder as for `provider open --docs`',
    ),
    path_option(
        "--own-texts",
        help="the provider's own documents instead, in the forms of --index; the command records in the file of"
        " --policy that the provider chose the policy with their help, and every verdict repeats it",
    ),
    skip_option,
    path_option(
        "--questions", help='with --index or --own-texts: JSON Lines {"question": .., "passage": <id>}'
    ),
    click.option("--tenant", help="the tenant of the documents, if the policy has several"),
    click.option(
        "--capacity",
        callback=whole_number,
        help="positions  [default: the smallest power of two for all documents]",
    ),
    default_option("--embedder", default=DEFAULT_EMBEDDER, help="the embedder of documents and questions"),
    model_option,
)
@path_option("--policy", "policy_file", help="a policy: its constants are the defaults")
@gathered(
    "grid",
    _Grid,
    click.option(
        "--gains",
        metavar="1,8,64",
        callback=gain_list,
        multiple=True,
        help="repeat for each  [default: a ladder of noise]",
    ),
    click.option(
        "--lattice", callback=whole_number, multiple=True, help="repeat for each; with every --gains"
    ),
    click.option(
        "--score-window",
        metavar="LO:HI",
        callback=score_range,
        multiple=True,
        help="repeat for each  [default: the embedder's]",
    ),
    click.option(
        "--mechanism",
        "mechanisms",
        metavar="sampling:KEEP|pooled-listing:KEEP:F:THRESHOLD",
        multiple=True,
        help="a mechanism of random bits; repeat for each  [default: sampling and pooled-listing at 0.9 and 0.7]",
    ),
    click.option(
        "--n",
        callback=whole_number,
        multiple=True,
        help="queries an account; repeat for each  [default: 200]",
    ),
    click.option(
        "--k",
        "--k-max",
        "k",
        callback=whole_number,
        multiple=True,
        help="coalition; repeat for each  [default: 10]",
    ),
    click.option(
        "--positions-per-document",
        callback=whole_number,
        metavar="POSITIONS",
        help="positions of the documents that the bounds of noise are about  [default: those of --policy, or 1]",
    ),
)
@gathered(
    "target",
    _Target,
    click.option("--top-k", callback=whole_number, help="positions in an answer  [default: 5]"),
    click.option("--eps-acc", help=f"for the closed form  [default: {DEFAULT_EPS_ACC}]"),
    click.option("--delta-acc", help="[default: 1e-7]"),
    click.option("--delta", "--delta-policy", "delta", help="[default: 1e-5]"),
)
@click.option(
    "--repeats",
    callback=whole_number,
    help="answers to each question  [default: enough for 4,000 in all]",
)
@default_option("--seed", type=click.IntRange(min=0), default=0, help="seed of the simulation")
@path_option("--csv", "csv_file", help="write the grid as CSV")
@path_option("--picture", help="draw recall against eps (png, svg, pdf)")
@json_option
def explore(
    documents: _Documents,
    policy_file: Path | None,
    grid: _Grid,
    target: _Target,
    repeats: int | None,
    seed: int,
    csv_file: Path | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Measure the recall of mechanisms on public texts, next to their bounds.

    Figures on the provider's own documents (--own-texts) depend on the ranking without a mechanism, and one document
    can change this ranking. No bound covers a choice that follows from them, so the policy records it, and the provider
    must not publish the figures.
    """
    from rag_audit.commit.explore import bernoulli, render, simulate
    from rag_audit.retrieval.embedders import relevance_of

    for written in grid.mechanisms:
        bernoulli.parse_mechanism(
            written
        )  # an error in the option ends the command before it reads documents
    documents.check(policy_file)
    base = None if policy_file is None else read_policy(policy_file)
    documents = documents.within(base)
    embedder = documents.chosen_embedder(base)
    noise = None if base is None else base.noise
    own = None if noise is None else simulate.Noise(tuple(noise.gains), noise.score_window())
    if documents.own_texts is not None and policy_file is not None and base is not None:
        _record_own_documents(policy_file, base)
    sample = documents.sample(embedder, seed)
    exploration = simulate.explore(
        sample,
        grid.read(base, embedder, own),
        top_k=target.top_k or (5 if base is None else base.top_k),
        eps_acc=target.eps_acc or (base and base.eps_acc) or DEFAULT_EPS_ACC,
        delta_acc=target.delta_acc or (base and base.delta_acc) or "1e-7",
        delta=target.delta or ("1e-5" if base is None else base.delta_policy),
        repeats=repeats,
        seed=seed,
        progress=progress("questions"),
    )
    ns, sizes = (
        list(dict.fromkeys(p.n for p in exploration.points)),
        list(dict.fromkeys(p.k for p in exploration.points)),
    )

    def chosen(count: int) -> list[bernoulli.BernoulliMechanism]:
        """The mechanisms at a number of queries of an account; the largest coalition has all accounts of the tenant."""
        queries = count * max(sizes)
        return [
            bernoulli.parse_mechanism(written, queries) for written in grid.mechanisms
        ] or bernoulli.default_mechanisms(relevance_of(embedder), queries)

    bernoulli_points = {
        count: [
            bernoulli.measure(
                sample, mechanism, top_k=exploration.top_k, n=count, ks=dict.fromkeys((1, *sizes)),
                repeats=exploration.repeats, seed=seed, progress=progress("windows"),
            )
            for mechanism in chosen(count)
        ]
        for count in ns
    }  # fmt: skip
    if csv_file is not None:
        replace_file(csv_file, render.csv_of(exploration.points))
    if picture is not None:
        render.draw(exploration, picture, [point for points in bernoulli_points.values() for point in points])
    tables = [
        f"\n{render.bernoulli_table(points, exploration, count)}"
        for count, points in bernoulli_points.items()
    ]
    emit(
        {
            **exploration.as_json(),
            "mechanisms": [
                {"n": count, **p.as_json()} for count, points in bernoulli_points.items() for p in points
            ],
        },
        as_json,
        [*"\n".join([render.table(exploration), *tables, ""]).split("\n"), *exploration.headlines(own)],
    )


def _record_own_documents(file: Path, policy: Policy) -> None:
    """State in a policy's file, and in its explanation, that the provider looks at its own documents.

    The statement is written before the first measurement, so that an interrupted command leaves it. A window that has
    committed to the policy keeps its own copy.

    :raises StoreError: a file cannot be written
    """
    from rag_audit.report.policy_text import explained_again

    say(f"recorded in {file}: {OWN_DOCUMENTS} A policy that follows from these figures states it too (policy new"
        " --own-documents).")  # fmt: skip
    if policy.own_documents:
        return
    stated = policy.model_copy(update={"own_documents": True})
    explained = beside(file, f"{file.name}.explained.txt")
    if explained.exists():
        text = read_bytes(explained, max_bytes=MAX_PUBLICATION_BYTES).decode("utf-8", "replace")
        replace_file(explained, explained_again(text, policy, stated).encode())
    replace_file(file, jcs(stated.dump()) + b"\n")
