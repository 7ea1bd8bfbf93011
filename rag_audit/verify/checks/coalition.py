"""`coalition.*`: the declared estimate against the policy, and the coalition proof."""

from __future__ import annotations

from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.words import counted
from rag_audit.estimate.statement import coalition_statement
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.models.records import CoalitionEstimate
from rag_audit.proofs.backends import proof_system
from rag_audit.proofs.statements.coalition import CoalitionSize
from rag_audit.verify.case import Case, Status


def check(case: Case) -> None:
    """Run the group. Even a declared estimate can fail a window, but only a coalition proof makes it `checked`."""
    if case.partial:
        return  # the estimate is about every record
    trailer = case.trailer
    declared = None if trailer is None else trailer.coalition
    case.figures["coalition"] = "not-checked"
    if declared is None:
        _certificate(case, None)
        return
    policy, asking = case.policy, len({query.account for query in case.queries})
    c, c_tenant = declared.c, declared.c_tenant
    case.figures["c"] = {"all": c, "tenant": c_tenant}
    estimator = policy.estimator
    requested = _parameters(estimator.theta, estimator.tau, estimator.tau_unit)
    result = _parameters(declared.theta, declared.tau, declared.tau_unit)
    right = case.report("coalition.parameters", result == requested, requested, result)
    right &= case.report(
        "coalition.count",
        min(1, asking) <= c_tenant <= c <= asking,
        f"{min(1, asking)} <= c in one tenant <= c <= {asking} accounts with queries",
        f"c = {c}: {_repeated(c, c_tenant)}",
    )
    if _certificate(case, declared) and right:
        case.figures["coalition"] = "checked"
    by = "proved" if case.figures["coalition"] == "checked" else "declared, not proved"
    case.report("coalition.cap", c <= policy.k_max, f"c at most k_max = {policy.k_max}",
                f"c = {c}: {_repeated(c, c_tenant)} ({by})")  # fmt: skip


def _repeated(c: int, c_tenant: int) -> str:
    who, within = counted(c, "account") if c > 1 else "no account but its author", max(1, c_tenant)
    return (
        f"{who} repeated a question almost word for word, {'none' if within == 1 else within} in one tenant"
    )


def _parameters(theta: list[int], tau: int, unit: str) -> str:
    return f"theta {theta[0]}/{theta[1]}, tau {tau} {unit}{'' if tau else ' (the whole window)'}"


def _certificate(case: Case, declared: CoalitionEstimate | None) -> bool:
    """Whether the window's coalition proof proves the declared estimate."""
    required, present = case.policy.estimator.coalition_proof, case.file.coalition_proof
    named = None if declared is None else declared.coalition_proof
    if required is None or not case.queries:
        if present is not None or named is not None:
            why = "the window has no query" if required else "the policy requires none"
            case.record(
                "coalition.proof",
                Status.UNDECIDED,
                f"no coalition proof: {why}",
                "the trailer names a coalition proof",
            )
        return False
    if declared is None or present is None or named is None:
        where = "window" if present is None else "window trailer"
        case.record(
            "coalition.proof",
            Status.UNDECIDED,
            f"a coalition proof by {required.system}",
            f"no coalition proof in the {where}",
        )
        return False
    digest = digest_hex(present)
    if digest != named:
        return case.report(
            "coalition.proof", False, f"the proof with the digest in the window trailer, {named}", digest
        )
    with case.guarding("coalition.circuit"):
        p, q = case.policy.estimator.theta
        dimension = case.manifest["schema"]["dimension"]
        size, proofs = (
            CoalitionSize(required.records, dimension, (p, q)),
            proof_system(required.system).coalition,
        )
        circuit = proofs.digest(size)
        # Another digest may belong to the circuit of an older or newer release, which is unknown here and not proven
        # false.
        status = Status.PASS if circuit == required.circuit else Status.UNDECIDED
        if not case.record(
            "coalition.circuit", status, circuit, required.circuit, "policy.estimator.coalition_proof"
        ):
            return False
        with case.guarding("coalition.key"):
            key = proofs.open(size, case.file.verification_keys, case.trust.pins, engine=case.engine)
            case.report("coalition.key", True, key.digest, key.digest)
            case.setups.add(key.setup or "transparent")
            with case.guarding("coalition.proof"):
                entries = len(case.entries) - 1
                statement = coalition_statement(
                    case.queries,
                    declared,
                    header_digest=case.header_digest,
                    head=Checkpoint(case.header.log, entries, case.tree.root(entries)),
                    dimension=dimension,
                    capacity=required.records,
                )
                key.verify(statement, present)
                proved = f"c = {declared.c}, and {declared.c_tenant} in one tenant"
                return case.report("coalition.proof", True, f"a proof of {proved}", "a valid proof")
    return False
