"""What a reader of a report does next."""

from __future__ import annotations

from rag_audit.verify.report.parts import Level, OutcomeName


def next_steps_of(
    outcome: OutcomeName, deciding: list[str], weaker: list[str], protection: Level
) -> list[str]:
    """The next steps, the most urgent one first.

    :param deciding: the checks whose outcome is the verdict's
    :param weaker: ids of weaknesses
    :param protection: how strong the protection of the window is
    """
    keep = "keep window.json, its siblings, trust.toml and the receipts with this report: with them anyone repeats it"
    if outcome == "FAIL":
        return [
            "rely on no figure of this window",
            f"read what the check means: rag-audit explain {deciding[0]}",
            keep,
            "ask the provider for an answer in writing, and show what you have to the witnesses and to other verifiers",
        ]
    if outcome == "UNDECIDED":
        return [
            "rely on no figure of this window yet",
            f"read what is missing: rag-audit explain {deciding[0]}",
            "fetch the files again from the provider's public folder, and verify again",
            "compare releases: a newer window may need a newer rag-audit",
        ]
    if outcome == "UNPROVEN":
        return [
            "rely on no figure of this window yet: what it rests on was not shown to you",
            *(f"read what {check} leaves open: rag-audit explain {check}" for check in deciding[:3]),
            "compare trust.toml with the keys that the window used",
            "ask the provider for what is missing, and verify again",
        ]
    if outcome == "UNMET":
        return [
            "decide whether the window is enough for you: it is sound, and less than trust.toml asks for",
            *(f"read what {check} asks for: rag-audit explain {check}" for check in deciding[:3]),
            "ask the provider for a next window that meets it, or lower the requirement in trust.toml, and say so",
        ]
    steps = [keep, "verify the next window with --previous, so that no window can be dropped in between"]
    if "setup" in weaker:
        steps.append("ask the provider for keys by several parties, or for scan proofs")
    if "sampled" in weaker:
        steps.append("ask for every record's proof where a share of false ones matters to you")
    if protection == "none":
        steps.append("do not read this as privacy: ask for a mechanism where the documents need one")
    return steps
