"""`rag-audit provider policy check`, and the same check before `open`: the result of a verifier's trust file for a
window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from rag_audit._internal.errors import ExitCode, SetupError
from rag_audit.cli.common import PATH, emit, json_option, say
from rag_audit.cli.options import model_option, path_option, read_policy
from rag_audit.mechanisms.descriptions import description
from rag_audit.models.manifest import EmbedderManifest, manifest_digest
from rag_audit.models.policy import OWN_DOCUMENTS, Policy
from rag_audit.models.trust import Trust
from rag_audit.proofs.backends import proof_system
from rag_audit.retrieval.embedders import (
    EMBEDDERS,
    INTEGER,
    OF_A_PLACE,
    STATIC,
    PublishedConstants,
    get_embedder,
    public_manifest_of,
    published_constants,
)
from rag_audit.verify.case import Check, Status, worst
from rag_audit.verify.inputs import reading_trust
from rag_audit.verify.policy_check import Parties, policy_checks

CHANGES = {
    "trust.noise_table": "policy.noise.table: a policy of this release",
    "trust.mechanisms": "policy.tenants: rag-audit provider policy new --mechanism",
    "trust.max_epsilon": "policy.noise: rag-audit provider policy new --eps-joint, --n, --k-max",
    "trust.max_exclusion_factor": "policy.tenants.keep, flip_probability: rag-audit provider policy new --mechanism"
    " sampling:KEEP or pooled-listing:KEEP:F",
    "trust.max_exposure": "policy.n, k_max, top_k: rag-audit provider policy new --n, --k-max, --top-k",
    "trust.max_fresh_share": "policy.tenants.documents: rag-audit provider policy new --fresh-rows, --documents",
    "trust.max_delta": "policy.delta_policy: rag-audit provider policy new --delta",
    "trust.max_theta": "policy.estimator.theta: rag-audit provider policy new --theta",
    "trust.min_tau": "policy.estimator.tau: rag-audit provider policy new --tau",
    "trust.max_K_share": "policy.top_k over the least capacity: rag-audit provider policy new --top-k, --tenant",
    "trust.max_score_hi": "policy.noise.hi: rag-audit provider policy new --score-window",
    "trust.min_score_width": "policy.noise.lo, hi: rag-audit provider policy new --score-window",
    "trust.min_keep": "policy.tenants.keep: rag-audit provider policy new --mechanism sampling:KEEP",
    "trust.min_k_max": "policy.k_max: rag-audit provider policy new --k-max",
    "trust.query_embedding": "policy.tenants.circuits: rag-audit provider policy new --query-tokens up to 64"
    " (32 or 64 for minilm-int) with an embedder that is proved",
    "trust.coalition": "policy.estimator.coalition_proof: rag-audit provider policy new --coalition-proof",
    "trust.max_abandoned": "the windows before this one: close them, and name the last with rag-audit provider open"
    " --previous",
    "trust.max_empty": "the windows before this one: a window with a query ends the count of those without one",
    "trust.embedder": "policy.tenants.circuits: rag-audit provider policy new --embedder, --model",
    "trust.setup": "policy.tenants.system: scan, or a ceremony's key (docs/setup.md)",
    "header.signature": "open --origin, --key",
    "header.quorum": "open --witness: a witness that trust.toml names",
    "header.beacon": "open --witness, --drand: the beacon that trust.toml names",
    "receipt.independent": "open --roster: an account that trust.toml names, under its own key",
}
"""For each check the field that decides it, and the command that changes that field."""
_OF_EPSILON = ("trust.max_epsilon", "trust.max_score_hi")
"""Checks that only the mechanisms with an epsilon decide."""


def change_of(check: str, policy: Policy) -> str | None:
    """The policy field that decides a check, and the command that changes it; None if no command is known to change it.

    :param check: the check's id
    """
    mechanisms = {type(policy.mechanism(tenant)) for tenant in policy.tenants}
    if check in _OF_EPSILON:
        mechanisms = {m for m in mechanisms if m.limit == "max_epsilon"}
    own = {description(m.name).changes.get(check) for m in mechanisms}
    if len(own) == 1 and (change := own.pop()) is not None:
        return change
    return CHANGES.get(check)


@click.command("check")
@click.argument("file", type=PATH)
@path_option("--trust", required=True, help="the verifier's trust file (`rag-audit verifier trust new`)")
@click.option(
    "--embedder",
    type=click.Choice(EMBEDDERS),
    help="the embedder of the windows  [default: the embedder that the trust file pins]",
)
@model_option
@json_option
@click.pass_context
def check(
    ctx: click.Context, file: Path, trust: Path, embedder: str | None, model: Path | None, as_json: bool
) -> None:
    """List the requirements of a trust file that windows with the policy FILE would not meet.

    A policy does not name its embedder, so the command checks the embedder of the trust file, or of --embedder and
    --model. The exit codes are those of `rag-audit verify`, for example 3 if the policy does not meet a requirement.
    """
    from rag_audit.report.policy_text import exposure_of

    policy = read_policy(file)
    with reading_trust(trust):
        trusted = Trust.load(trust)
    checks = checks_of(policy, trusted, planned_embedder(policy, trusted, embedder, model))
    wanting = _wanting(checks)
    tenants = policy.figures()["tenants"]
    value = {
        "policy": str(file),
        "trust": str(trust),
        "wanting": [_row(c, policy) for c in wanting],
        "exposure": {name: own["exposure"] for name, own in tenants.items()},
        "own_documents": policy.own_documents is True,
    }
    met = f"{file} meets all requirements of {trust} on a policy: {len(checks)} checks"
    lines = [line for c in wanting for line in _lines(c, policy)] or [met]
    lines += [f"{name}: {exposure_of(own)}" for name, own in tenants.items()]
    emit(value, as_json, [*lines, *([OWN_DOCUMENTS] if policy.own_documents else [])])
    ctx.exit(int(_code(wanting)))


@dataclass(frozen=True)
class PlannedEmbedder:
    """The embedder that windows with the policy will name."""

    manifest: EmbedderManifest
    constants: PublishedConstants


def checks_of(policy: Policy, trust: Trust, planned: PlannedEmbedder | None) -> list[Check]:
    """The checks of a policy, with that of the circuits of A1, which have to be the embedder's."""
    if planned is None:
        return policy_checks(policy, trust)
    checks = policy_checks(policy, trust, embedder=planned.manifest)
    for tenant in policy.tenants:
        constants = policy.constants(tenant, planned.constants.dimension, planned.constants.table)
        own, actual = (
            proof_system(tenant.system).circuits(constants).get("embed"),
            tenant.circuits.get("embed"),
        )
        if actual not in (None, own):
            other = Check("trust.embedder", Status.FAIL, f"the circuit {own or 'none'} of {planned.manifest['kind']}",
                          f"the circuit {actual} of tenant {tenant.tenant}, of another embedder", None)  # fmt: skip
            return [*(c for c in checks if c.id != other.id), other]
    return checks


def planned_embedder(
    policy: Policy, trust: Trust, name: str | None, model: Path | None
) -> PlannedEmbedder | None:
    """The embedder of windows with the policy: the named one, or the one that the trust file pins.

    :param name: the embedder, None for that of the trust file
    :param model: the folder of its files, or its settings
    :returns: None if the trust file pins no embedder, or the policy has no proofs of A1
    :raises SetupError: the trust file pins an embedder that this release does not publish, or files are missing
    """
    pins = trust.pins
    if name is None:
        if model is not None:
            raise SetupError("--model names the files of an embedder", field="--embedder",
                             expected="the embedder of these files", actual="no --embedder")  # fmt: skip
        pinned = pins.embedder or pins.manifest is not None
        if not pinned or all("embed" not in tenant.circuits for tenant in policy.tenants):
            return None
        name = next((known for known in _PUBLISHED if _is_pinned(known, trust)), None)
    if name is None:
        raise SetupError("this release does not publish the embedder of the trust file", field="--embedder",
                         expected="the embedder of the windows; --model names its files",
                         actual=f"a manifest with the digest {pins.manifest}",
                         hint="a policy does not name its embedder, so the command cannot check the proofs of"
                              " A1 without it")  # fmt: skip
    published = model is None and name in _PUBLISHED
    manifest = public_manifest_of(name) if published else get_embedder(name, folder=model).manifest()
    return PlannedEmbedder(manifest, published_constants(name, model))


_PUBLISHED = (*STATIC, *(name for name in INTEGER if name not in OF_A_PLACE))
"""The embedders with artefacts that this release publishes."""


def _is_pinned(name: str, trust: Trust) -> bool:
    manifest, pins = public_manifest_of(name), trust.pins
    if pins.manifest is not None:
        return manifest_digest(manifest) == pins.manifest
    return dict(manifest["artefacts"]) == dict(pins.embedder)


def stop_if_wanting(
    ctx: click.Context, policy: Policy, trust: Path, parties: Parties, *, as_json: bool
) -> None:
    """End the command before entry 0 if a verifier with this trust file would not pass the window."""
    wanting = _wanting(policy_checks(policy, Trust.load(trust), parties))
    if not wanting:
        return
    if as_json:
        emit({"status": "not opened", "wanting": [_row(c, policy) for c in wanting]}, as_json)
    say(f"the window was not opened: {len(wanting)} checks of {trust} would not pass")
    for line in (line for c in wanting for line in _lines(c, policy)):
        say(line)
    ctx.exit(int(_code(wanting)))


def _wanting(checks: Sequence[Check]) -> list[Check]:
    return [c for c in checks if c.status is not Status.PASS]


def _code(wanting: Sequence[Check]) -> ExitCode:
    """The exit code of a verdict with these checks."""
    return worst({c.status for c in wanting}).exit_code


def _row(check: Check, policy: Policy) -> dict[str, object]:
    change = change_of(check.id, policy)
    return {**check.as_json(), **({} if change is None else {"change": change})}


def _lines(check: Check, policy: Policy) -> list[str]:
    lines = [f"{check.status.value:9}  {check.id}", f"  trust.toml asks: {check.expected}",
             f"  the window has:  {check.actual}"]  # fmt: skip
    change = change_of(check.id, policy)
    return lines if change is None else [*lines, f"  decided by {change}"]
