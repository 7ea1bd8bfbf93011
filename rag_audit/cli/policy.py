"""`rag-audit policy`: write a policy from a target, see what it promises, and what it leaves of retrieval."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from rag_audit.cli.common import PATH, Group, emit, json_option, progress
from rag_audit.cli.options import duration, parsed
from rag_audit.commit.draft import draft_policy
from rag_audit.encoding.canonical import jcs, read_json
from rag_audit.encoding.durable import replace_file
from rag_audit.errors import PolicyError
from rag_audit.estimate.clusters import MAX_DENOMINATOR
from rag_audit.formats.policy import DEFAULT_SCORE_WINDOW, Policy, SystemName
from rag_audit.formats.publication import MAX_PUBLICATION_BYTES
from rag_audit.parties.provider.window import now_ms
from rag_audit.proofs.policy import check_policy
from rag_audit.relation.scores import ScoreWindow

if TYPE_CHECKING:
    from rag_audit.index.embedders import Embedder
    from rag_audit.privacy.explore import Noise

# The accountant's libraries take most of a second to import; commands that do not need them should not wait.

METHODS = ("classical", "split", "analytic", "exact")
DOCUMENT_TOKENS = 512
"""where `policy new` lets documents be cut"""
LATTICES = (64, 32, 16)
"""Lattices that a target is calibrated on, finest first, unless one is asked for."""
DEFAULT_GAINS = (1, 8, 64)
DEFAULT_LATTICE = 32
DEFAULT_EPS_ACC = "4"


@parsed
def _whole(text: str, option: str) -> int:
    if re.fullmatch(r"0*[1-9][0-9]{0,14}", text) is None:
        raise PolicyError("not a positive integer", field=option, expected="an integer >= 1", found=text)
    return int(text)


@parsed
def _gains(text: str, option: str) -> tuple[int, ...]:
    if re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text) is None:
        raise PolicyError("not a list of integers", field=option, expected="1,8,64", found=text)
    return tuple(int(part) for part in text.split(","))


@parsed
def _range(text: str, option: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if match is None or int(match[1]) >= int(match[2]):
        raise PolicyError("not a score window", field=option, expected="lo:hi with 0 <= lo < hi", found=text)
    return int(match[1]), int(match[2])


@parsed
def _theta(text: str, option: str) -> tuple[int, int]:
    """p/q of 0.974 or 4/5."""
    if re.fullmatch(r"0?\.[0-9]{1,9}|[0-9]{1,9}/0*[1-9][0-9]{0,8}", text):
        theta = Fraction(text)
        if 0 < theta < 1 and theta.denominator <= MAX_DENOMINATOR:
            return theta.numerator, theta.denominator
    raise PolicyError("not a threshold", field=option, expected="in (0, 1), in thousandths or as p/q with q <= 1000",
                      found=text)  # fmt: skip


@parsed
def _tau(text: str, option: str) -> tuple[int, str]:
    """(tau, unit) of 500 (positions), 90s or 12h; 0 is the whole window."""
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if match is None:
        raise PolicyError("not a span", field=option, expected="query records (500), or a time (90s, 15m, 12h, 7d)",
                          found=text)  # fmt: skip
    seconds = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
    return int(match[1]) * seconds.get(match[2], 1), "seconds" if match[2] else "positions"


@parsed
def _certificate(text: str, option: str) -> tuple[str, int] | None:
    """(system, records) of groth16:64; None of none."""
    if text == "none":
        return None
    match = re.fullmatch(r"(groth16|scan):([1-9][0-9]{0,8})", text)
    if match is None:
        raise PolicyError("not a certificate", field=option, expected="none, groth16:RECORDS or scan:RECORDS",
                          found=text)  # fmt: skip
    return match[1], int(match[2])


@click.group(cls=Group)
def policy() -> None:
    """Write a window's policy, and see what it promises and what it costs."""


def _tenants(items: Sequence[str], system: SystemName) -> tuple[dict[str, int], dict[str, SystemName]]:
    """Capacities and proof systems by tenant."""
    capacities: dict[str, int] = {}
    systems: dict[str, SystemName] = {}
    for item in items:
        match = re.fullmatch(r"([^=]+)=([0-9]{1,15})(:(scan|groth16))?", item)
        if match is None or match[1] in capacities:
            raise PolicyError(
                "not a tenant", field="--tenant", expected="ID=CAPACITY or ID=CAPACITY:SYSTEM, each id once",
                found=item,
            )  # fmt: skip
        capacities[match[1]] = int(match[2])
        systems[match[1]] = cast(SystemName, match[4] or system)
    return capacities, systems


def _read(file: Path) -> Policy:
    made = Policy.parse(read_json(file, max_bytes=MAX_PUBLICATION_BYTES), field=file.name)
    check_policy(made, None)
    return made


def _figures(made: Policy) -> dict[str, Any]:
    from rag_audit.accounting import policy_figures

    return policy_figures(
        made.noise.mechanism(),
        n=made.n,
        eps_acc=made.eps_acc,
        delta_acc=made.delta_acc,
        k=made.k_max,
        delta=made.delta_policy,
        accounts_max=max(t.accounts_max for t in made.tenants),
    )


@dataclass(frozen=True)
class Chosen:
    """Noise for a policy, the per-account epsilon that goes with it, and why."""

    gains: tuple[int, ...]
    lattice: int
    eps_acc: str
    why: str


def _choose(
    *,
    gains: tuple[int, ...] | None,
    lattice: int | None,
    eps_acc: str | None,
    eps_joint: str | None,
    calibration: str,
    n: int,
    k_max: int,
    delta_acc: str,
    delta_policy: str,
) -> Chosen:
    """The noise asked for, or the least that meets the target.

    :raises PolicyError: noise and a target for all accounts together, both targets, or a target out of reach
    """
    from rag_audit.accounting import Calibration, Mechanism, calibrate
    from rag_audit.accounting.values import text

    if eps_joint is not None and (eps_acc is not None or gains is not None):
        raise PolicyError(
            "more than one target",
            field="--eps-joint",
            expected="one of --eps-acc, --eps-joint and --gains",
            found="--eps-acc" if eps_acc is not None else "--gains",
        )
    if gains is not None:
        mechanism = Mechanism(gains, lattice or DEFAULT_LATTICE)
        why = "The noise was given, not chosen for a target."
        return Chosen(gains, mechanism.lattice, eps_acc or DEFAULT_EPS_ACC, why)
    if eps_joint is None:
        eps_acc = eps_acc or DEFAULT_EPS_ACC
    made: list[Calibration] = []
    refused: PolicyError | None = None
    for choice in LATTICES if lattice is None else (lattice,):
        try:
            made.append(
                calibrate(
                    calibration,
                    n=n,
                    delta_acc=delta_acc,
                    eps_acc=eps_acc,
                    eps_joint=eps_joint,
                    k=k_max,
                    delta=delta_policy,
                    lattice=choice,
                )
            )
        except PolicyError as exc:
            refused = exc
    if not made:
        assert refused is not None
        raise refused
    best = min(made, key=lambda c: len(c.mechanism.gains))  # the first of these has the finest lattice
    target = (
        f"eps_joint {eps_joint} for {k_max} accounts" if eps_joint else f"eps_acc {eps_acc} for one account"
    )
    why = (
        f"The least noise for {target}, {n} queries each, by the {calibration} calibration: with the fewest gains,"
        f" and then the finest lattice{'' if lattice else f' of {LATTICES}'}."
    )
    return Chosen(best.mechanism.gains, best.mechanism.lattice, eps_acc or text(best.eps_acc), why)


@policy.command("new")
@click.argument("out", type=PATH)
@click.option("--window", required=True, help="the window's id, e.g. 2026-11")
@click.option(
    "--tenant",
    "tenants",
    multiple=True,
    required=True,
    metavar="ID=CAPACITY[:SYSTEM]",
    help="repeat for each tenant; with its own proof system, if it has one",
)
@click.option(
    "--system",
    type=click.Choice(["scan", "groth16"]),
    default="scan",
    show_default=True,
    help="proof system: scan needs no setup; groth16 is for small tenants, with short proofs",
)
@click.option(
    "--opens-in",
    default="15m",
    show_default=True,
    callback=duration,
    help="time for the witnesses to cosign before it opens",
)
@click.option("--lasts", default="7d", show_default=True, callback=duration)
@click.option("--n", callback=_whole, default="200", show_default=True, help="queries an account")
@click.option(
    "--k-max",
    "--k",
    callback=_whole,
    default="10",
    show_default=True,
    help="largest coalition that the bound covers",
)
@click.option("--eps-acc", help=f"target: epsilon of one account  [default: {DEFAULT_EPS_ACC}]")
@click.option("--eps-joint", help="target: epsilon of k-max accounts together, at delta-policy")
@click.option(
    "--calibration",
    type=click.Choice(METHODS),
    default="exact",
    show_default=True,
    help="how noise is chosen",
)
@click.option("--delta-acc", default="1e-7", show_default=True)
@click.option("--delta-policy", "--delta", default="1e-5", show_default=True)
@click.option(
    "--accounts-max",
    callback=_whole,
    default="16",
    show_default=True,
    help="accounts that a tenant may ever have in the window",
)
@click.option(
    "--gains",
    metavar="1,8,64",
    callback=_gains,
    help="noise components, instead of choosing them for the target",
)
@click.option(
    "--lattice",
    callback=_whole,
    help="R: steps of a score, a power of two  [default: chosen; 32 with --gains]",
)
@click.option(
    "--score-window",
    metavar="LO:HI",
    callback=_range,
    default="{}:{}".format(*DEFAULT_SCORE_WINDOW),
    show_default=True,
    help="raw scores that count",
)
@click.option("--top-k", callback=_whole, default="5", show_default=True)
@click.option(
    "--theta",
    callback=_theta,
    default="0.8",
    show_default=True,
    help="cosine from which two queries count as near; set it with `rag-audit estimate calibrate --questions`",
)
@click.option(
    "--tau",
    callback=_tau,
    default="0",
    show_default=True,
    help="how far apart near queries may be: in query records (500) or time (12h); 0 is the whole window",
)
@click.option(
    "--certificate",
    callback=_certificate,
    default="none",
    show_default=True,
    metavar="SYSTEM:RECORDS",
    help="prove the coalition estimate of a window of up to so many records: groth16:64, or scan for large ones",
)
@click.option(
    "--dimension", callback=_whole, default="256", show_default=True, help="of the embedder's vectors"
)
@click.option(
    "--query-tokens",
    callback=_whole,
    default="64",
    show_default=True,
    help="where queries are cut; up to 64 the embedding is proved too, at a cost that grows with it",
)
@click.option(
    "--proving", type=click.Choice(["eager", "on-challenge"]), default="on-challenge", show_default=True
)
@json_option
def new(
    out: Path,
    window: str,
    tenants: tuple[str, ...],
    system: SystemName,
    opens_in: int,
    lasts: int,
    gains: tuple[int, ...] | None,
    lattice: int | None,
    eps_acc: str | None,
    eps_joint: str | None,
    query_tokens: int,
    tau: tuple[int, Literal["positions", "seconds"]],
    as_json: bool,
    **options: Any,
) -> None:
    """Write a well-formed policy to OUT, from a target for epsilon or from noise that is given.

    JSON has no comments: each number is explained on stdout and in OUT.explained.txt.
    """
    from rag_audit.privacy.explain import explain

    capacities, systems = _tenants(tenants, system)
    chosen = _choose(
        gains=gains,
        lattice=lattice,
        eps_acc=eps_acc,
        eps_joint=eps_joint,
        **{name: options[name] for name in ("calibration", "n", "k_max", "delta_acc", "delta_policy")},
    )
    opens = now_ms() + opens_in
    made = draft_policy(
        window=window,
        opens_at=opens,
        closes_at=opens + lasts,
        capacities=capacities,
        system=systems,
        gains=chosen.gains,
        lattice=chosen.lattice,
        eps_acc=chosen.eps_acc,
        tokens=(query_tokens, DOCUMENT_TOKENS),
        tau=tau[0],
        tau_unit=tau[1],
        **options,
    )
    check_policy(made, options["dimension"])
    figures = _figures(made)
    text = explain(made, figures, chosen.why)
    explained = out.with_name(f"{out.name}.explained.txt")
    replace_file(out, jcs(made.dump()) + b"\n")
    replace_file(explained, text.encode())
    emit(
        {
            "policy": str(out),
            "explained": str(explained),
            "c_policy": made.digest(),
            "chosen": {
                "gains": list(chosen.gains),
                "lattice": chosen.lattice,
                "eps_acc": chosen.eps_acc,
                "why": chosen.why,
            },
            **figures,
        },
        as_json,
        [
            *text.split("\n"),
            f"{out}: C_policy {made.digest()}",
            f"{explained}: this explanation",
            "what it leaves of retrieval, which no bound says:"
            f" rag-audit policy explore --policy {out} --index .. --questions ..",
        ],
    )


@policy.command("bounds")
@click.argument("file", type=PATH, required=False)
@click.option("--n", callback=_whole, help="queries an account")
@click.option("--k", "--k-max", "k", callback=_whole, help="coalition size")
@click.option("--eps-acc", help="epsilon promised to one account; only the closed form reads it")
@click.option("--delta-acc")
@click.option("--delta", "--delta-policy", "delta")
@click.option("--gains", metavar="1,8,64", callback=_gains, help="noise components")
@click.option("--lattice", callback=_whole, help="R: steps of a score, a power of two")
@click.option("--accounts-max", callback=_whole, help="accounts of the largest tenant")
@json_option
def bounds(file: Path | None, accounts_max: int | None, as_json: bool, **options: Any) -> None:
    """All bounds of a policy FILE, or of the constants given: the numbers that a verdict carries."""
    from rag_audit.accounting import Mechanism, policy_figures
    from rag_audit.accounting.values import probability
    from rag_audit.accounting.wellformed import check_infinite_loss
    from rag_audit.privacy.explain import COVERS, figures_text

    given = [name for name, value in options.items() if value is not None]
    if file is not None:
        if given or accounts_max is not None:
            raise click.UsageError("give a policy file or constants, not both")
        figures = _figures(_read(file))
    else:
        if missing := [f"--{name.replace('_', '-')}" for name in options if name not in given]:
            raise click.UsageError(f"give a policy file, or also {', '.join(missing)}")
        mechanism = Mechanism(options.pop("gains"), options.pop("lattice"))
        check_infinite_loss(
            mechanism, options["n"] * options["k"], probability(options["delta"], "delta_policy")
        )
        figures = policy_figures(mechanism, accounts_max=accounts_max, **options)
    emit({"covers": COVERS, **figures}, as_json, figures_text(figures).split("\n"))


@policy.command("explore")
@click.option(
    "--index",
    type=PATH,
    required=True,
    help='documents: JSON Lines {"id": .., "text": ..}, or a folder as for `open --docs`',
)
@click.option("--questions", type=PATH, required=True, help='JSON Lines {"question": .., "passage": <id>}')
@click.option("--policy", "policy_file", type=PATH, help="a policy: its constants are the defaults")
@click.option("--tenant", help="whose documents, if there are several tenants")
@click.option(
    "--capacity", callback=_whole, help="positions  [default: the power of two that holds the documents]"
)
@click.option(
    "--gains",
    metavar="1,8,64",
    callback=_gains,
    multiple=True,
    help="repeat for each  [default: a ladder of noise]",
)
@click.option("--lattice", callback=_whole, multiple=True, help="repeat for each; with every --gains")
@click.option(
    "--score-window",
    metavar="LO:HI",
    callback=_range,
    multiple=True,
    help="repeat for each  [default: the embedder's]",
)
@click.option(
    "--n", callback=_whole, multiple=True, help="queries an account; repeat for each  [default: 200]"
)
@click.option(
    "--k", "--k-max", "k", callback=_whole, multiple=True, help="coalition; repeat for each  [default: 10]"
)
@click.option("--top-k", callback=_whole, help="positions in an answer  [default: 5]")
@click.option("--eps-acc", help=f"for the closed form  [default: {DEFAULT_EPS_ACC}]")
@click.option("--delta-acc", help="[default: 1e-7]")
@click.option("--delta", "--delta-policy", "delta", help="[default: 1e-5]")
@click.option("--embedder", default="wordllama-256", show_default=True)
@click.option("--model", type=PATH, help="folder of an ONNX embedder")
@click.option(
    "--repeats", callback=_whole, help="answers to each question  [default: enough for 4,000 in all]"
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="of the simulation")
@click.option("--csv", "csv_file", type=PATH, help="write the grid as CSV")
@click.option("--picture", type=PATH, help="draw recall against eps (png, svg, pdf)")
@json_option
def explore(
    index: Path,
    questions: Path,
    policy_file: Path | None,
    tenant: str | None,
    capacity: int | None,
    gains: tuple[tuple[int, ...], ...],
    lattice: tuple[int, ...],
    score_window: tuple[tuple[int, int], ...],
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
    from rag_audit.index.embedders import get_embedder
    from rag_audit.privacy import explore as explorer

    base = None if policy_file is None else _read(policy_file)
    if base is not None and tenant is None and len(base.tenants) == 1:
        tenant = base.tenants[0].tenant
    if base is not None and capacity is None:
        part = base.tenant(tenant or "")
        if part is None:
            raise PolicyError(
                "which of the policy's tenants?",
                field="--tenant",
                expected=", ".join(t.tenant for t in base.tenants),
                found=tenant,
            )
        capacity = part.capacity
    tokens = (
        {} if base is None else {"query_tokens": base.tokens.query, "document_tokens": base.tokens.document}
    )
    model_used = get_embedder(embedder, folder=model, **tokens)
    own = None if base is None else explorer.Noise(tuple(base.noise.gains), base.noise.score_window())
    sample = explorer.make_sample(
        explorer.load_passages(index, tenant),
        explorer.load_questions(questions),
        model_used,
        capacity=capacity,
        seed=seed,
    )
    found = explorer.explore(
        sample,
        _grid(gains, lattice, score_window, model_used, own),
        ns=n or (200 if base is None else base.n,),
        ks=k or (10 if base is None else base.k_max,),
        top_k=top_k or (5 if base is None else base.top_k),
        eps_acc=eps_acc or (DEFAULT_EPS_ACC if base is None else base.eps_acc),
        delta_acc=delta_acc or ("1e-7" if base is None else base.delta_acc),
        delta=delta or ("1e-5" if base is None else base.delta_policy),
        repeats=repeats,
        seed=seed,
        progress=progress("questions"),
    )
    if csv_file is not None:
        replace_file(csv_file, _csv([point.as_json() for point in found.points]))
    if picture is not None:
        explorer.draw(found, picture)
    emit(found.as_json(), as_json, [*explorer.table(found).split("\n"), "", *found.headlines(own)])


def _grid(
    gains: Sequence[tuple[int, ...]],
    lattices: Sequence[int],
    ranges: Sequence[tuple[int, int]],
    embedder: Embedder,
    own: Noise | None,
) -> list[Noise]:
    """Every gains with every lattice, or the ladder, with every score window; and a policy's own noise."""
    from rag_audit.privacy.explore import DEFAULT_MECHANISMS, Noise

    pairs = [(g, r) for g in gains or (DEFAULT_GAINS,) for r in lattices or (DEFAULT_LATTICE,)]
    made = [] if own is None else [own]
    for g, r in pairs if gains or lattices else DEFAULT_MECHANISMS:
        default = ScoreWindow.for_scale(embedder.scale, r) if own is None else own.window
        for lo, hi in ranges or [(default.lo, default.hi)]:
            made.append(Noise(g, ScoreWindow(lo, hi, r)))
    return made


def _csv(rows: Sequence[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "gains": ",".join(map(str, row["gains"]))})
    return out.getvalue().encode()
