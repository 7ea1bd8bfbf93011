"""`rag-audit provider policy`: write a policy from a target, and show its bounds and the recall that it leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import click

from rag_audit._internal.canonical import jcs
from rag_audit._internal.clock import now_ms
from rag_audit._internal.durable import beside, create_file
from rag_audit._internal.errors import PolicyError, SetupError, StoreError
from rag_audit.cli.choice import RIGHTS, choose_mechanism, reason
from rag_audit.cli.common import PATH, Group, emit, json_option, on_terminal, say
from rag_audit.cli.explore import explore
from rag_audit.cli.mechanisms import read_mechanisms
from rag_audit.cli.options import (
    choice_option,
    coalition_proof_size,
    default_option,
    duration,
    flag_option,
    gain_list,
    gathered,
    model_option,
    number_option,
    read_policy,
    score_or_none,
    score_range,
    tau_span,
    theta_fraction,
    whole_number,
)
from rag_audit.cli.policy_check import check
from rag_audit.commit.choose import NoiseTarget
from rag_audit.commit.draft import (
    Embedding,
    EstimatorParameters,
    NoiseParameters,
    Period,
    PrivacyTarget,
    Tenants,
    draft_policy,
)
from rag_audit.mechanisms import Mechanism, defaults
from rag_audit.mechanisms.base import MAX_ROWS, TableShape
from rag_audit.mechanisms.descriptions import pooled_listing
from rag_audit.models.policy import Calibration
from rag_audit.proofs.backends import SYSTEMS
from rag_audit.proofs.description import default_system, described
from rag_audit.proofs.policy import check_policy
from rag_audit.proofs.statements.coalition import MAX_DIMENSION, MAX_RECORDS
from rag_audit.retrieval.embedders import (
    DEFAULT_EMBEDDER,
    EMBEDDERS,
    OF_A_PLACE,
    PublishedConstants,
    published_constants,
)

DESCRIBED = described()
"""The words about each proof system."""

# The accountant's libraries take most of a second to import; commands that do not need them should not wait.

DEFAULT_POSITIONS = 64
"""The maximum positions of a document in a table without options: a file usually has 4 to 50."""
METHODS = ("classical", "split", "analytic", "exact")


@click.group(cls=Group)
def policy() -> None:
    """Write a window's policy, and show its bounds and its cost in recall."""


def _tenants(items: Sequence[str], system: str) -> tuple[dict[str, int], dict[str, str]]:
    """Read capacities and proof systems by tenant."""
    capacities: dict[str, int] = {}
    systems: dict[str, str] = {}
    for item in items:
        match = re.fullmatch(rf"([^=]+)=([0-9]{{1,15}})(:({'|'.join(SYSTEMS)}))?", item)
        if match is None:
            raise PolicyError(
                "the value is not a tenant",
                field="--tenant",
                expected="ID=CAPACITY or ID=CAPACITY:SYSTEM",
                actual=item,
            )
        if match[1] in capacities:
            raise PolicyError(
                f"the tenant {match[1]} is given twice",
                field="--tenant",
                expected="each tenant once",
                actual=item,
            )
        capacities[match[1]] = int(match[2])
        systems[match[1]] = match[4] or system
    return capacities, systems


@dataclass(frozen=True)
class _Time:
    """The options about a window's id and time.

    :param opens_in: milliseconds from now until the window opens
    :param lasts: milliseconds from its opening to its closing
    """

    window: str
    opens_in: int
    lasts: int

    def period(self) -> Period:
        """The window's time."""
        opens = now_ms() + self.opens_in
        return Period(self.window, opens, opens + self.lasts)


@dataclass(frozen=True)
class _Tenants:
    """The options about a policy's tenants."""

    tenants: tuple[str, ...]
    system: str
    mechanisms: tuple[str, ...]
    documents: int | None
    positions_per_document: int | None
    fresh_rows: int | None
    fresh_bits: bool

    def _shape(self, capacity: int, *, default: bool, noised: bool) -> TableShape | None:
        """The document table of a tenant.

        :param default: whether the tenant has a table without any option: a row for each position, and each window
            replaces a quarter of the rows
        :param noised: whether the tenant has noise, so that no bit lasts longer than its window
        :returns: None if the options ask for no table
        :raises PolicyError: an option is missing or contradicts another
        """
        if self.documents is None:
            if not default:
                return None
            rows = min(capacity, MAX_ROWS)
            fresh = None if self.fresh_bits else self.fresh_rows or max(1, rows // 4)
            return TableShape(rows, self.positions_per_document or min(capacity, DEFAULT_POSITIONS), fresh)
        if self.positions_per_document is None:
            raise PolicyError("the document table has no limit for the positions of a document",
                              field="--positions-per-document", expected="a number of positions", actual="none",
                              hint="`rag-audit provider count` prints the positions of the largest"
                                   " document")  # fmt: skip
        if noised:
            return TableShape(self.documents, self.positions_per_document, None)
        if (self.fresh_rows is None) != self.fresh_bits:
            raise PolicyError("the bits of a document table either persist or not", field="--fresh-rows",
                              expected="--fresh-rows ROWS, or --fresh-bits for new bits in every window",
                              actual="both" if self.fresh_bits else "neither")  # fmt: skip
        return TableShape(self.documents, self.positions_per_document, self.fresh_rows)

    def _by_document(
        self, mechanisms: Mapping[str, Mechanism], capacities: Mapping[str, int], chosen: Sequence[str]
    ) -> Mapping[str, Mechanism]:
        """The mechanisms with their document tables.

        :param chosen: the tenants whose mechanism the command chose
        :raises PolicyError: an option is missing, contradicts another, or has no effect
        """
        result = {}
        for tenant, own in mechanisms.items():
            default = own.requires_table or tenant in chosen
            shape = self._shape(capacities[tenant], default=default, noised=own.noised)
            result[tenant] = (None if shape is None else own.by_document(shape)) or own
        with_table = [own for own in result.values() if own.table is not None]
        if with_table and self.fresh_rows is not None and all(own.noised for own in with_table):
            raise PolicyError("the option is about bits that last for a chain of windows", field="--fresh-rows",
                              expected="no --fresh-rows, since losses of noise add up over windows",
                              actual=self.fresh_rows)  # fmt: skip
        if with_table:
            return result
        if self.documents is not None:
            raise PolicyError("a document table belongs to noise, sampling or pooled listing", field="--documents",
                              expected="--mechanism noise, sampling or pooled-listing",
                              actual="no tenant with one of these")  # fmt: skip
        others = {
            "--positions-per-document": self.positions_per_document,
            "--fresh-rows": self.fresh_rows,
            "--fresh-bits": self.fresh_bits or None,
        }
        if given := [name for name, value in others.items() if value is not None]:
            raise PolicyError("the option needs a document table", field=given[0], expected="--documents ROWS",
                              actual="no --documents")  # fmt: skip
        return result

    @property
    def unnamed(self) -> list[str]:
        """The tenants without a mechanism in the options, which the command chooses for them."""
        named = {item.rpartition("=")[0] for item in self.mechanisms}
        ids = [item.partition("=")[0] for item in self.tenants]
        return [] if "" in named else [tenant for tenant in ids if tenant not in named]

    def read(self, embedding: Embedding, accounts: int, default: str | None) -> Tenants:
        """The tenants, with the vectors of an embedder.

        :param accounts: the maximum accounts of a tenant
        :param default: the mechanism of each tenant of `unnamed`; None if there is no such tenant
        :raises PolicyError: an option is malformed, or names a tenant twice
        """
        capacities, systems = _tenants(self.tenants, self.system)
        items = self.mechanisms if default is None else (default, *self.mechanisms)
        mechanisms = read_mechanisms(items, capacities, embedding.relevance)
        return Tenants(capacities, accounts, systems, self._by_document(mechanisms, capacities, self.unnamed))


@dataclass(frozen=True)
class _Users:
    """The options about the users; an omitted one is None.

    :param n: the maximum queries of an account
    :param rights: whether users of a tenant have individual rights
    """

    accounts_max: int | None
    n: int | None
    rights: bool | None

    def complete(self, *, chooses: bool) -> tuple[int, int, bool]:
        """The accounts, the queries and the rights, after a person on a terminal answered the omitted questions.

        Users have no individual rights if neither an option nor a person says so.

        :param chooses: whether the command chooses a mechanism, which depends on the rights
        :raises PolicyError: a number is missing and there is no terminal, or the rights have no effect
        """
        if self.rights is not None and not chooses:
            raise PolicyError("the rights of users choose the mechanism of a tenant that --mechanism does not name",
                              field="--rights", expected="a tenant without --mechanism",
                              actual="--mechanism for every tenant")  # fmt: skip
        accounts = self.accounts_max or _asked_number(
            "--accounts", "maximum accounts of a tenant", defaults.ACCOUNTS_MAX
        )
        queries = self.n or _asked_number(
            "--questions", "maximum questions of an account in the window", defaults.QUERIES
        )
        rights = self.rights
        if rights is None and chooses and on_terminal():
            rights = click.confirm(RIGHTS, default=None, err=True)
        return accounts, queries, bool(rights)


def _asked_number(option: str, question: str, default: int) -> int:
    """A number that no option gives.

    :raises PolicyError: no person can answer, because standard input is no terminal
    """
    if not on_terminal():
        raise PolicyError("a policy needs the number of accounts and of their questions", field=option,
                          expected=f"{option} NUMBER", actual="no such option",
                          hint="the product m of accounts and questions determines the figures; on a terminal, the"
                               " command asks for both")  # fmt: skip
    return int(click.prompt(question, type=click.IntRange(1), default=default, err=True))


@dataclass(frozen=True)
class _Target:
    """The options about the noise and the largest coalition (`NoiseTarget`)."""

    k_max: int
    eps_acc: str | None
    eps_joint: str | None
    calibration: Calibration
    delta_acc: str
    delta_policy: str
    gains: tuple[int, ...] | None
    lattice: int | None

    def noise_target(self, queries: int, positions: int) -> NoiseTarget:
        """The target for the number of queries of an account.

        :param positions: the maximum number of positions of a document of a tenant with noise
        """
        return NoiseTarget(queries, self.k_max, self.eps_acc, self.eps_joint, self.calibration,
                           self.delta_acc, self.delta_policy, self.gains, self.lattice,
                           positions)  # fmt: skip

    def refuse_without_noise(self) -> None:
        """Refuse an option about noise in a policy without noise.

        :raises PolicyError: there is such an option
        """
        given = {"--eps-acc": self.eps_acc, "--eps-joint": self.eps_joint, "--gains": self.gains,
                 "--lattice": self.lattice}  # fmt: skip
        if names := [name for name, value in given.items() if value is not None]:
            raise PolicyError("the option is about noise, and no tenant has noise", field=names[0],
                              expected="--mechanism noise", actual="no tenant with noise")  # fmt: skip


@dataclass(frozen=True)
class _Embedder:
    """The options about the embedder, each as given: None is the embedder's own value."""

    embedder: str
    model: Path | None
    dimension: int | None
    query_tokens: int
    score_window: tuple[int, int] | None
    relevance: int | None

    @cached_property
    def _published(self) -> PublishedConstants:
        if self.model is not None and self.embedder not in OF_A_PLACE:
            if not self.model.exists():
                raise SetupError("there is no such file or folder", field="--model", actual=str(self.model),
                                 expected=f"the files of {self.embedder}, which `provider open` reads")  # fmt: skip
            say(f"--model is not read: a policy takes the published values of {self.embedder}")
        return published_constants(self.embedder, self.model)

    @property
    def embedding(self) -> Embedding:
        """The properties that the policy depends on."""
        return Embedding(
            self.dimension or self._published.dimension,
            self._published.table,
            (self.query_tokens, self._published.document_tokens),
            self._published.relevance if self.relevance is None else self.relevance or None,
        )

    @property
    def scores(self) -> tuple[int, int]:
        """The score window as (lo, hi)."""
        if self.score_window is not None:
            return self.score_window
        return self._published.score_window


@dataclass(frozen=True)
class _Estimator:
    """The options about the coalition estimator.

    :param coalition_proof: the proof system and its number of records, which is None for all queries of the window
    """

    theta: tuple[int, int]
    tau: tuple[int, Literal["positions", "seconds"]]
    coalition_proof: tuple[str, int | None] | None

    def sized(self, queries: int, dimension: int) -> EstimatorParameters:
        """The estimator of a window that may have so many queries."""
        return EstimatorParameters(self.theta, *self.tau, _sized(self.coalition_proof, queries, dimension))


@dataclass(frozen=True)
class _Service:
    """The options about answers, proofs and the provider's own documents."""

    top_k: int
    own_documents: bool
    proving: Literal["eager", "on-challenge"]


@policy.command("new")
@click.argument("out", type=PATH)
@gathered(
    "time",
    _Time,
    click.option("--window", required=True, help="the window's id, e.g. 2026-11"),
    default_option(
        "--opens-in",
        default="15m",
        callback=duration,
        help="time for the witnesses to cosign before the window opens",
    ),
    default_option(
        "--lasts", default="7d", callback=duration, help="time during which the window answers queries"
    ),
)
@gathered(
    "tenants",
    _Tenants,
    click.option(
        "--tenant",
        "tenants",
        multiple=True,
        required=True,
        metavar="ID=CAPACITY[:SYSTEM]",
        help="repeat for each tenant; add the tenant's own proof system if it has one",
    ),
    choice_option(
        "--system",
        choices=[*DESCRIBED],
        default=default_system(),
        help=f"proof system: {'; '.join(words.use for words in DESCRIBED.values())}",
    ),
    click.option(
        "--mechanism",
        "mechanisms",
        multiple=True,
        metavar="[ID=]KIND[:KEEP..]",
        help="noise, sampling, pooled-listing, or none, which only proves integrity; for all tenants, or for one; KEEP"
        f" is the sampled share of positions or documents  [{defaults.KEEP}]; F of pooled listing is"
        f" the probability that random bits list a given document in a window  [{pooled_listing.UNREQUESTED}], and"
        " THRESHOLD the minimum raw score of a passage whose document a question lists  [that of --relevance]"
        "  [default: pooled-listing with KEEP and F such that epsilon is at most"
        f" {defaults.EPS_POOLED_LISTING} for all questions of all accounts]",
    ),
    click.option(
        "--documents",
        callback=whole_number,
        metavar="ROWS",
        help="figures for documents instead of positions, with a table of so many rows; for noise, sampling and"
        " pooled-listing  [default: a row for each position, for pooled-listing and without --mechanism]",
    ),
    click.option(
        "--positions-per-document",
        callback=whole_number,
        metavar="POSITIONS",
        help=f"maximum positions of a document in the table  [default without --documents: {DEFAULT_POSITIONS}]",
    ),
    click.option(
        "--fresh-rows",
        callback=whole_number,
        metavar="ROWS",
        help="new documents of each window after the first; the others keep their bits  [default without --documents:"
        " a quarter of the rows]",
    ),
    flag_option("--fresh-bits", help="draw the bits of all documents anew in each window"),
)
@gathered(
    "users",
    _Users,
    click.option(
        "--accounts-max",
        "--accounts",
        callback=whole_number,
        help="maximum accounts of a tenant in the window  [asked on a terminal]",
    ),
    click.option(
        "--n",
        "--questions",
        callback=whole_number,
        help="maximum queries of an account in the window  [asked on a terminal]",
    ),
    click.option(
        "--rights/--no-rights",
        default=None,
        help="whether users of a tenant have individual rights to documents, or need privacy from one another: without"
        " --mechanism, the command then chooses sampling instead of pooled-listing  [asked on a terminal]",
    ),
)
@gathered(
    "target",
    _Target,
    number_option("--k-max", "--k", default=defaults.K_MAX, help="largest coalition that the bound covers"),
    click.option("--eps-acc", help="target: epsilon of one account, at delta-acc, instead of --eps-joint"),
    click.option(
        "--eps-joint",
        help=f"target: epsilon of k-max accounts, at delta-policy  [default: {defaults.EPS_JOINT}]",
    ),
    choice_option(
        "--calibration", choices=METHODS, default="exact", help="the method that chooses the noise"
    ),
    default_option("--delta-acc", default="1e-7", help="delta of one account's epsilon"),
    default_option(
        "--delta-policy",
        "--delta",
        default=defaults.DELTA,
        help="delta of eps_audit; it must exceed k-max times delta-acc",
    ),
    click.option(
        "--gains",
        metavar="1,8,64",
        callback=gain_list,
        help="noise components, instead of components for the target",
    ),
    click.option(
        "--lattice",
        callback=whole_number,
        help="R: steps of a score, a power of two  [default: chosen; 32 with --gains]",
    ),
)
@gathered(
    "embedder",
    _Embedder,
    choice_option(
        "--embedder",
        choices=EMBEDDERS,
        default=DEFAULT_EMBEDDER,
        help="the embedder of `provider open`; it determines the dimension, the score window and whether A1 is proved",
    ),
    model_option,
    click.option(
        "--dimension",
        callback=whole_number,
        help="dimension of the vectors  [default: the embedder's dimension]",
    ),
    number_option(
        "--query-tokens",
        default=64,
        help="maximum tokens of a query; up to 64 the embedding is also proved, at a cost that grows with this number;"
        " minilm-int takes 32 or 64",
    ),
    click.option(
        "--score-window",
        metavar="LO:HI",
        callback=score_range,
        help="raw scores that count  [default: the embedder's, 420:1680 for the default one]",
    ),
    click.option(
        "--relevance",
        metavar="SCORE",
        callback=score_or_none,
        help="minimum raw score of a passage that retrievers return, or none; `rag-audit lab relevance` measures it"
        "  [default: the embedder's]",
    ),
)
@gathered(
    "estimator",
    _Estimator,
    default_option(
        "--theta",
        callback=theta_fraction,
        default=defaults.THETA,
        help="minimum cosine of similar queries; find it with `rag-audit provider estimate calibrate --questions`",
    ),
    default_option(
        "--tau",
        callback=tau_span,
        default="0",
        help="maximum span between similar queries: query records (500) or time (12h); 0 is the whole window",
    ),
    default_option(
        "--coalition-proof",
        callback=coalition_proof_size,
        default=default_system(),
        metavar="SYSTEM[:RECORDS]",
        help="prove the estimate of repeated questions of a window with up to this number of records:"
        f" {', '.join(words.example for words in DESCRIBED.values())}, or only {default_system()} for"
        f" all queries of all accounts, at most {MAX_RECORDS:,}; with none, the estimate is only declared",
    ),
)
@gathered(
    "service",
    _Service,
    number_option("--top-k", default=defaults.TOP_K, help="positions in an answer"),
    flag_option(
        "--own-documents",
        help="state in the policy that the provider chose it with the help of its own documents, which no bound covers",
    ),
    choice_option(
        "--proving",
        choices=["eager", "on-challenge"],
        default="on-challenge",
        help="the time of the proofs: before an answer leaves, or after a verifier drew the record",
    ),
)
@json_option
def new(
    out: Path,
    time: _Time,
    tenants: _Tenants,
    users: _Users,
    target: _Target,
    embedder: _Embedder,
    estimator: _Estimator,
    service: _Service,
    as_json: bool,
) -> None:
    """Write a well-formed policy to OUT, from the number of accounts and of their questions.

    Without --mechanism, the command chooses pooled-listing, or sampling if users have individual rights. It explains
    each number on stdout and in OUT.explained.txt. It does not overwrite an existing file.
    """
    from rag_audit.commit.compare import comparison
    from rag_audit.report.policy_text import explain

    explained = beside(out, f"{out.name}.explained.txt")
    for path in (out, explained):
        if path.exists():  # a policy that a window may have committed to
            raise StoreError("the file exists already and is not overwritten", field=str(path),
                             hint="name another file, or move the existing file")  # fmt: skip
    embedding = embedder.embedding
    unnamed = tenants.unnamed
    accounts, questions, rights = users.complete(chooses=bool(unnamed))
    default = None
    if unnamed:
        default = choose_mechanism(
            rights=rights, accounts=accounts, questions=questions, relevance=embedding.relevance
        )
    drafted = tenants.read(embedding, accounts, default)
    wanted = target.noise_target(questions, drafted.noised_positions)
    if not drafted.noisy:
        target.refuse_without_noise()
    chosen, queries = wanted.choose(), len(drafted.capacities) * accounts * questions
    draft = draft_policy(
        time.period(),
        drafted,
        PrivacyTarget(
            questions, wanted.k_max, chosen.eps_acc, target.delta_acc, target.delta_policy, target.calibration
        ),
        noise=NoiseParameters(chosen.gains, chosen.lattice, embedder.scores),
        embedding=embedding,
        estimator=estimator.sized(queries, embedding.dimension),
        top_k=service.top_k,
        proving=service.proving,
        own_documents=service.own_documents,
    )
    check_policy(draft, embedding.dimension)
    figures = draft.figures()
    why = (
        chosen.why
        if drafted.noisy
        else "The options name the mechanisms."
        if default is None
        else reason(rights)
    )
    text = explain(draft, figures, why)
    create_file(out, jcs(draft.dump()) + b"\n")
    create_file(explained, text.encode())
    emit(
        {
            "policy": str(out),
            "explained": str(explained),
            "c_policy": draft.digest(),
            "chosen": {
                "gains": list(chosen.gains),
                "lattice": chosen.lattice,
                "eps_acc": chosen.eps_acc,
                "why": why,
            },
            **figures,
        },
        as_json,
        [
            *text.split("\n"),
            *comparison(draft, chosen.gains, chosen.lattice),
            "",
            f"{out}: C_policy {draft.digest()}",
            f"{explained}: this explanation",
            f"measure the recall of this policy with rag-audit provider policy explore --policy {out}",
        ],
    )


def _sized(
    coalition_proof: tuple[str, int | None] | None, queries: int, dimension: int
) -> tuple[str, int] | None:
    """The coalition proof of a policy. Without a size, it covers all queries that the window may have."""
    if coalition_proof is None:
        return None
    system, records = coalition_proof
    if records is None and dimension > MAX_DIMENSION:
        say(
            f"coalition proofs do not support vectors of {dimension} components: the estimate is only declared"
        )
        return None
    return system, min(queries, MAX_RECORDS) if records is None else records


@dataclass(frozen=True)
class _Sizes:
    """The sizes that a bound is for, each as given."""

    n: int | None
    k: int | None
    accounts_max: int | None
    positions: int | None


@policy.command("bounds")
@click.argument("file", type=PATH, required=False)
@gathered(
    "sizes",
    _Sizes,
    click.option("--n", callback=whole_number, help="queries of an account"),
    click.option("--k", "--k-max", "k", callback=whole_number, help="coalition size"),
    click.option("--accounts-max", callback=whole_number, help="accounts of the largest tenant"),
    click.option(
        "--positions-per-document",
        "positions",
        callback=whole_number,
        metavar="POSITIONS",
        help="positions of the documents that the bounds are about  [default: 1]",
    ),
)
@click.option("--eps-acc", help="epsilon promised to one account; only the closed form reads it")
@click.option("--delta-acc", help="delta promised to one account; only the closed form reads it")
@click.option("--delta", "--delta-policy", "delta", help="delta of eps_audit")
@click.option("--gains", metavar="1,8,64", callback=gain_list, help="noise components")
@click.option("--lattice", callback=whole_number, help="R: steps of a score, a power of two")
@json_option
def bounds(
    file: Path | None,
    sizes: _Sizes,
    eps_acc: str | None,
    delta_acc: str | None,
    delta: str | None,
    gains: tuple[int, ...] | None,
    lattice: int | None,
    as_json: bool,
) -> None:
    """Print all bounds of a policy FILE, or of given constants, as in a verdict."""
    from rag_audit.mechanisms.accounting import Mechanism, policy_figures
    from rag_audit.mechanisms.accounting.values import probability
    from rag_audit.mechanisms.accounting.wellformed import check_infinite_loss
    from rag_audit.report.policy_text import COVERS, covers, covers_noise, figures_text

    n, k = sizes.n, sizes.k
    constants = {
        "--n": n, "--k": k, "--eps-acc": eps_acc, "--delta-acc": delta_acc, "--delta": delta, "--gains": gains,
        "--lattice": lattice,
    }  # fmt: skip
    missing = [option for option, value in constants.items() if value is None]
    if file is not None:
        if len(missing) < len(constants) or sizes.accounts_max is not None or sizes.positions is not None:
            raise click.UsageError("give a policy file or constants, not both")
        read = read_policy(file)
        figures, covered = read.figures(), covers([read])
    elif not (
        n and k and eps_acc is not None and delta_acc is not None and delta is not None and gains and lattice
    ):
        raise click.UsageError(f"give a policy file, or also {', '.join(missing)}")
    else:
        mechanism, size = Mechanism(gains, lattice), sizes.positions or 1
        check_infinite_loss(mechanism, n * k * size, probability(delta, "delta_policy"))
        figures = policy_figures(
            mechanism, n=n, eps_acc=eps_acc, delta_acc=delta_acc, k=k, delta=delta,
            accounts_max=sizes.accounts_max, positions=size,
        )  # fmt: skip
        covered = covers_noise(n, size)
    emit({"covers": covered or COVERS, **figures}, as_json, figures_text(figures, covered).split("\n"))


policy.add_command(explore)
policy.add_command(check)
