"""`trust.*`: the relying party's requirements, compared with the window."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from math import floor

from rag_audit._internal.words import counted
from rag_audit.mechanisms import named
from rag_audit.models.manifest import EmbedderManifest, manifest_digest
from rag_audit.models.trust import (
    CHALLENGE_LEVELS,
    COALITION_LEVELS,
    DOCUMENT_EMBEDDING_LEVELS,
    QUERY_EMBEDDING_LEVELS,
    at_least,
    decimal,
    tau_of,
)
from rag_audit.proofs.backends import SYSTEMS, proof_system
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.verify.case import Case, Findings, Status

ABSENT = "set in trust.toml (absent)"
"""The expected value of a limit that trust.toml omits."""


def check(case: Case) -> None:
    """Run the group, after all others, since it reads their figures."""
    check_policy(case)
    check_setup(case, case.setups)
    case.require(
        "trust.records", bool(case.queries), "at least 1 record", counted(len(case.queries), "record")
    )
    case.figures["records"] = len(case.queries)
    check_embedder(case, case.manifest["embedder"])


def check_policy(case: Findings) -> None:
    """The requirements of trust.toml for a policy, and for the levels among the figures that its window reaches."""
    require, policy = case.trust.require, case.policy
    table = case.trust.pins.noise_table
    if table is None:
        case.record("trust.noise_table", Status.UNDECIDED, "a pin in trust.toml", "no pin in trust.toml")
    else:
        case.report(
            "trust.noise_table",
            policy.noise is None or table == policy.noise.table,
            table,
            "no noise" if policy.noise is None else policy.noise.table,
        )
    _mechanisms(case)
    _exposure(case)
    _fresh_share(case)
    _maximum(case, "max_delta", decimal(require.max_delta), Decimal(policy.delta_policy))
    p, q = policy.estimator.theta
    _maximum(case, "max_theta", decimal(require.max_theta), Decimal(p) / Decimal(q))
    share = max(Decimal(policy.mechanism(t).longest) / t.capacity for t in policy.tenants)
    _maximum(case, "max_K_share", decimal(require.max_K_share), share)
    limit = None if require.max_abandoned is None else Decimal(require.max_abandoned)
    _maximum(case, "max_abandoned", limit, Decimal(case.figures["abandoned"]))
    _maximum(case, "max_empty", Decimal(require.max_empty), Decimal(case.figures["empty"]))
    mechanisms = [policy.mechanism(t) for t in policy.tenants]
    # Noise drowns scores below the window's upper end; with a threshold above all scores, only chance lists positions.
    ends = [m.upper_end for m in mechanisms if m.limit == "max_epsilon"]
    highest, hi = require.max_score_hi, max(ends, default=0)
    case.require(
        "trust.max_score_hi",
        highest is not None and hi <= highest,
        _or_absent("at most", highest),
        hi or "no noise, no threshold",
    )
    # Without noise, only the part of the score window below the highest score counts.
    wide, width = require.min_score_width, min(m.width(highest) for m in mechanisms)
    case.require(
        "trust.min_score_width", wide is not None and width >= wide, _or_absent("at least", wide), width
    )
    if any(m.sampled for m in mechanisms):
        _least_keep(case, min(m.sampled_share for m in mechanisms))
    minimum = require.min_k_max
    case.require(
        "trust.min_k_max",
        minimum is not None and policy.k_max >= minimum,
        _or_absent("at least", minimum),
        policy.k_max,
    )
    _minimal_tau(case)
    case.figures["document_embedding"] = "declared"
    for name, order in (
        ("query_embedding", QUERY_EMBEDDING_LEVELS),
        ("document_embedding", DOCUMENT_EMBEDDING_LEVELS),
        ("coalition", COALITION_LEVELS),
    ):
        level = str(case.figures.get(name, order[0]))
        requested = getattr(require, name)
        case.require(f"trust.{name}", at_least(level, requested, order), f"{requested} or better", level)
    if (drawn_by := case.figures.get("challenge")) is not None:
        case.require(
            "trust.challenge",
            at_least(drawn_by, require.challenge, CHALLENGE_LEVELS),
            f"{require.challenge} or better (--challenge supplies the verifier's own draw)",
            drawn_by,
        )


def check_setup(case: Findings, kinds: Collection[str]) -> None:
    """Check the weakest of the setups that the proofs rest on; scan proofs rest on none."""
    setup = next((s for s in ("unsafe", "ceremony", "transparent") if s in kinds), "none")
    case.figures["setup"] = setup
    case.require("trust.setup", setup in ("ceremony", "transparent") or case.trust.require.allow_unsafe_setup,
                 "no setup, a setup with two or more contributions, or allow_unsafe_setup", setup)  # fmt: skip


def check_embedder(case: Findings, embedder: EmbedderManifest) -> None:
    """Check the embedder's artefacts, and everything else that its manifest states."""
    _artefacts(case, embedder)
    pin = case.trust.pins.manifest
    if pin is not None:
        result = manifest_digest(embedder)
        case.report("trust.manifest", result == pin, pin, result, "embedder.embedder")


def _least_keep(case: Findings, keep: int) -> None:
    """Check the share of positions in the smallest sample: with hardly any positions, answers are empty.

    :param keep: over 2^40, as in policies, so that a decimal share is compared exactly
    """
    minimum = decimal(case.trust.require.min_keep)
    met = minimum is not None and keep >= floor(minimum * PROBABILITY_RANGE)
    case.require("trust.min_keep", met, _or_absent("at least", minimum), f"{keep / PROBABILITY_RANGE:.6g}")


def _mechanisms(case: Findings) -> None:
    """Check each tenant's mechanism and promised figure: epsilon, exclusion_factor, or both with pooled listing."""
    require, policy = case.trust.require, case.policy
    result = {t.tenant: policy.mechanism(t).name for t in policy.tenants}
    strange = [f"{tenant}: {kind}" for tenant, kind in result.items() if kind not in require.mechanisms]
    case.require("trust.mechanisms", not strange, f"only {', '.join(require.mechanisms)}",
                 "; ".join(strange) or ", ".join(sorted(set(result.values()))))  # fmt: skip
    tenants = case.figures.get("tenants", {})
    with_eps = [t["eps"] for t in tenants.values() if named(t["mechanism"]).limit == "max_epsilon"]
    if case.max_epsilon_asked:  # by an option, which speaks of the verdict's figure
        _maximum(case, "max_epsilon", decimal(require.max_epsilon), case.figures.get("eps_audit"))
    elif with_eps or not tenants:
        maximum = max(with_eps, key=Decimal, default=None)
        _maximum(case, "max_epsilon", decimal(require.max_epsilon), maximum)
    # With pooled listing, the factor counts the queries of every supplied window of the chain (`Mechanism.over`).
    sampled = [t["exclusion_factor"] for t in tenants.values() if named(t["mechanism"]).limits_absence]
    if sampled:
        odds = max(Decimal(odds) for odds in sampled if odds is not None)
        limit = decimal(require.max_exclusion_factor)
        met = limit is not None and odds <= limit
        case.require("trust.max_exclusion_factor", met, _or_absent("at most", limit), odds)


def _exposure(case: Findings) -> None:
    """Check the number of documents that k_max accounts can read, if trust.toml limits it, and name the tenant."""
    limit, tenants = case.trust.require.max_exposure, case.figures.get("tenants", {})
    if limit is None:
        return
    tenant = max(tenants, key=lambda name: tenants[name]["exposure"]["limit"], default=None)
    if tenant is None:
        case.require("trust.max_exposure", False, f"at most {limit} documents", "unknown")
        return
    exposure = tenants[tenant]["exposure"]
    case.require("trust.max_exposure", exposure["limit"] <= limit, f"at most {limit} documents",
                 f"{exposure['limit']} documents of tenant {tenant}, by {counted(exposure['accounts'], 'account')}"
                 f" of {counted(case.policy.n, 'query', 'queries')} each")  # fmt: skip


def _fresh_share(case: Findings) -> None:
    """Check the largest share of rows that each window replaces, if trust.toml limits it and a table persists."""
    limit = decimal(case.trust.require.max_fresh_share)
    tables = [(t.documents.fresh_rows, t.documents.rows, t.tenant) for t in case.policy.tenants
              if t.documents is not None and t.documents.fresh_rows is not None]  # fmt: skip
    if limit is None or not tables:
        return
    fresh, rows, tenant = max(tables, key=lambda table: Decimal(table[0]) / table[1])
    case.require("trust.max_fresh_share", fresh <= limit * rows, f"at most {limit} of the rows",
                 f"{fresh} of {rows} rows of tenant {tenant}")  # fmt: skip


def _minimal_tau(case: Findings) -> None:
    """Check tau against the required minimum. Spans in positions and in seconds cannot be compared; the whole window is
    larger than any finite span.
    """
    estimator, wanted = case.policy.estimator, case.trust.require.min_tau
    met = wanted is not None and estimator.tau == 0
    if wanted is not None and not met:
        minimum, unit = tau_of(wanted)
        met = 0 < minimum <= estimator.tau and unit == estimator.tau_unit
    result = "whole window" if estimator.tau == 0 else f"{estimator.tau} {estimator.tau_unit}"
    case.require(
        "trust.min_tau", met, _or_absent("at least", "the whole window" if wanted == 0 else wanted), result
    )


def _artefacts(case: Findings, embedder: EmbedderManifest) -> None:
    """Check that the manifest has the pinned artefacts: a table fitted to one tenant would move every score.

    The commitments that proofs of A1 use may stay unpinned, which only lowers the level of A1.
    """
    result = embedder["artefacts"]
    pins = case.trust.pins.embedder
    if not pins:
        case.record("trust.embedder", Status.UNDECIDED, "pins in trust.toml", "no pin in trust.toml")
        return
    rest = result
    if isinstance(result, dict) and not result.keys() <= pins.keys():
        tables = {artefact for name in SYSTEMS for artefact in proof_system(name).ARTEFACTS}
        rest = {k: v for k, v in result.items() if k in pins or k not in tables}
    ok = rest == pins
    case.report("trust.embedder", ok, f"{counted(len(pins), 'artefact')} as pinned: {', '.join(sorted(pins))}",
                f"{counted(len(pins), 'artefact')} as pinned" if ok else _difference(pins, rest))  # fmt: skip


def _difference(pins: Mapping[str, str], actual: object) -> str:
    """The first artefact that is not the pinned one, and how many others are not."""
    if not isinstance(actual, dict):
        return "no named artefacts"
    other = [name for name in sorted({*pins, *actual}) if pins.get(name) != actual.get(name)]
    name = other[0]
    more = f" (and {len(other) - 1} more)" if len(other) > 1 else ""
    return f"{name} is {actual.get(name, 'missing')}, the pin is {pins.get(name, 'none')}{more}"


def _maximum(case: Findings, name: str, limit: Decimal | None, value: Decimal | str | None) -> None:
    met = limit is not None and value is not None and Decimal(value) <= limit
    case.require(f"trust.{name}", met, _or_absent("at most", limit), "unknown" if value is None else value)


def _or_absent(words: str, limit: object) -> str:
    return ABSENT if limit is None else f"{words} {limit}"
