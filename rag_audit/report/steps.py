"""The next steps for a reader of a report."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.words import PLAIN, Say
from rag_audit.mechanisms import named
from rag_audit.report.explanations import Cause, cause_of
from rag_audit.report.model import CheckLine, Report
from rag_audit.verify.checks.trust import ABSENT
from rag_audit.verify.verdict import OutcomeName


def next_steps_of(
    checks: Sequence[CheckLine],
    outcome: OutcomeName,
    deciding: list[str],
    weaker: list[str],
    *,
    bare: bool,
    pilot: bool = False,
    say: Say = PLAIN,
) -> list[str]:
    """The next steps, the most urgent one first.

    :param checks: every check
    :param deciding: the checks with the verdict's outcome
    :param weaker: ids of weaknesses
    :param bare: whether no mechanism protects the documents of a tenant
    :param pilot: whether one party can forge each confirmation (`Vouching.pilot`)
    :param say: the language of the steps
    """
    keep = say.text(
        "keep window.json, its siblings, trust.toml and the receipts with this report, so that anybody can repeat it"
    )
    explain = [
        say.text(
            "read the explanation of the check: %(command)s", command=f"rag-audit verifier explain {check}"
        )
        for check in deciding[:1]
    ]
    explain_each = [
        say.text(
            "read the explanation of %(check)s: %(command)s",
            check=check,
            command=f"rag-audit verifier explain {check}",
        )
        for check in deciding[:3]
    ]
    cause = cause_of(checks)
    if outcome == "FAIL" and cause is Cause.PIN:
        return [
            say.text("rely on no figure of this window"),
            say.text(
                "compare the pins of trust.toml with the values that their source publishes, by another way than the"
                " window file, and correct trust.toml if a pin is wrong"
            ),
            *explain,
            say.text("if the pins are right, ask the provider why the window used another value"),
            keep,
        ]
    if outcome == "FAIL" and cause is Cause.FILE:
        return [
            say.text("rely on no figure of this window"),
            say.text(
                "fetch window.json and its siblings from the provider's public folder a second time, and verify them"
            ),
            *explain,
            say.text(
                "if the published file fails too, ask the provider for an answer in writing, and show the file to the"
                " witnesses and to other verifiers"
            ),
            keep,
        ]
    if outcome == "FAIL":
        return [
            say.text("rely on no figure of this window"),
            *explain,
            keep,
            say.text(
                "ask the provider for an answer in writing, and show your files to the witnesses and to other verifiers"
            ),
        ]
    if outcome == "UNDECIDED" and all(check.startswith("receipt.") for check in deciding):
        return [
            say.text("rely on no figure of this window yet"),
            *explain,
            say.text(
                "ask the account that supplied the receipt for a second export, or omit that receipt, and repeat the"
                " verification"
            ),
        ]
    if outcome == "UNDECIDED" and deciding == ["header.chain"]:
        return [
            say.text("rely on no figure of this window yet"),
            say.text(
                "supply every window back to the first one of the service with --previous, or omit --previous for the"
                " first window of a service, and repeat the verification"
            ),
            *explain,
        ]
    if outcome == "UNDECIDED":
        return [
            say.text("rely on no figure of this window yet"),
            *explain,
            say.text("fetch the files from the provider's public folder a second time, and verify them"),
            say.text("compare the releases: a newer window may need a newer rag-audit"),
        ]
    if outcome == "UNPROVEN":
        return [
            say.text("rely on no figure of this window yet: its evidence is incomplete"),
            *explain_each,
            *_remedies(say, checks, deciding),
        ]
    absent = [c.base.partition(".")[2] for c in checks if c.decides and c.expected == ABSENT]
    if outcome == "UNMET" and len(absent) == len(deciding):
        return [
            say.text("set %(names)s in trust.toml, and repeat the verification", names=say.listed(absent)),
            *explain_each,
        ]
    if outcome == "UNMET":
        return [
            say.text(
                "decide whether the window is enough for you: it is sound, and it does not meet trust.toml"
            ),
            *explain_each,
            say.text(
                "ask the provider for a next window that meets the requirement, or lower the requirement in"
                " trust.toml and tell the readers of your report"
            ),
        ]
    trial = [
        say.text(
            "use this report only as a trial of the steps: before anybody relies on a figure, name witnesses and"
            " accounts that do not depend on the provider"
        )
    ]
    steps = [
        *(trial if pilot else []),
        keep,
        say.text("verify the next window with --previous, so that no window can be dropped in between"),
    ]
    if "setup" in weaker:
        steps.append(say.text("ask the provider for keys by several parties, or for scan proofs"))
    if "receipts" in weaker:
        steps.append(
            say.text(
                "ask accounts that you know to be independent of the provider for their receipts, and verify again with"
                " --receipts: an answer without such a receipt could be missing or different in the ledger unnoticed"
            )
        )
    if "sampled" in weaker:
        steps.append(say.text("ask the provider for the proof of every record if no record may be false"))
    if bare:
        steps.append(
            say.text(
                "do not read this verdict as privacy: ask the provider for a mechanism if the documents need one"
            )
        )
    return steps


def shown_steps(say: Say, report: Report) -> list[str]:
    """The next steps of a report in a language."""
    english, own = (
        next_steps_of(
            report.checks,
            report.outcome,
            report.decided_by,
            [weakness.id for weakness in report.weaker],
            bare=any(not named(tenant.mechanism).protects for tenant in report.tenants),
            pilot=report.vouching.pilot,
            say=language,
        )
        for language in (PLAIN, say)
    )
    shown = dict(zip(english, own, strict=True))
    return [shown.get(step) or say.quoted(step) for step in report.next_steps]


def _remedies(say: Say, checks: Sequence[CheckLine], deciding: Sequence[str]) -> list[str]:
    """The steps that establish the checks that left a window open."""
    if deciding == ["header.tables"]:
        return [
            say.text(
                "fetch the earlier windows from the provider's public folder, supply every window back to the first one"
                " of the service with --previous, and repeat the verification"
            )
        ]
    if "trust.records" in deciding:
        return [
            say.text(
                "ask the provider whether it answered a question in this window: a window without an answer has no"
                " proofs, and no file is missing"
            )
        ]
    if "proof.challenge" in deciding and any(
        c.actual.endswith(" absent") for c in checks if c.base == "proof.challenge"
    ):
        return [say.text('set beta and eta in trust.toml, or mode = "full", and repeat the verification')]
    if "trust.setup" in deciding:
        return [
            say.text(
                "ask the provider for keys that several parties made, or for scan proofs; --allow-unsafe-setup accepts"
                " keys of one party, and the verdict names it"
            )
        ]
    return [
        say.text("compare trust.toml with the keys that the window used"),
        say.text("ask the provider for the missing parts, and repeat the verification"),
    ]
