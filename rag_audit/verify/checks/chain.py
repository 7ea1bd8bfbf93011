"""`opening.chain`, `opening.abandoned` and `opening.empty`: the windows before this one, and how many of them were
abandoned or ended without a query."""

from __future__ import annotations

from rag_audit._internal.errors import RagAuditError
from rag_audit.models.chain import ClosedWindow, Outcome, Unanswered
from rag_audit.models.windowfile import WindowFile
from rag_audit.verify.case import Case, Status
from rag_audit.verify.checks.signatures import open_trusted


def check(case: Case) -> None:
    """Run the checks; `case.figures["abandoned"]` and `case.figures["empty"]` are the opening's counts."""
    stated = Unanswered.before(case.opening)
    case.figures["abandoned"], case.figures["empty"] = stated.abandoned, stated.empty
    reached: list[ClosedWindow] = []
    with case.guarding("opening.chain"):
        _walk(case, reached)
    case.tallies["chain_reached"] = len(reached)
    _counts(case, reached)


def _walk(case: Case, reached: list[ClosedWindow]) -> None:
    """Follow the openings back through the windows that the verifier was given.

    :param reached: a list that receives each window of the chain, the nearest first
    :raises RagAuditError: a given window cannot be read, or is not the one that the witnesses' quorum cosigned
    """
    named = case.opening.previous
    files = [(file, f"previous[{number}]") for number, file in enumerate(case.previous)]
    if unread := next((file for file, _ in files if isinstance(file, RagAuditError)), None):
        raise unread
    if named is None:
        # Only the witnesses know whether a first window is really the first: they refuse to cosign a second one.
        case.report("opening.chain", not case.previous, "the origin's first window, or its predecessor named",
                    "no previous window" if not case.previous else "names no predecessor")  # fmt: skip
        return
    if not case.previous:
        case.report("opening.chain", True, "a predecessor that the quorum had cosigned last",
                    f"opening {named.opening[:16]}.., not given: rests on the witnesses")  # fmt: skip
        return
    given = [_given(case, file, field) for file, field in files if isinstance(file, WindowFile)]
    links = {window.digest: window for window in given}
    later = case.opening
    while later.previous is not None and (window := links.pop(later.previous.opening, None)) is not None:
        overlap = window.ended_at > later.opens_at
        found, root = later.previous.root, window.head.root.hex()
        if found != root or overlap:
            case.report("opening.chain", False, f"final root {root} of {window.opening.window}, intervals apart",
                        f"{found}{', overlapping' if overlap else ''}")  # fmt: skip
            return
        reached.append(window)
        later = window.opening
    if not reached:
        case.report("opening.chain", False, f"opening {named.opening}",
                    ", ".join(window.digest for window in given))  # fmt: skip
    elif links:
        case.record("opening.chain", Status.UNDECIDED, "windows that follow one another up to this one",
                    f"{len(links)} given that the chain does not reach")  # fmt: skip
    else:
        end = (
            "back to the origin's first"
            if later.previous is None
            else "what came before rests on the witnesses"
        )
        case.report("opening.chain", True, "each names the one before it, intervals apart",
                    f"{len(reached)} before this one, {end}")  # fmt: skip


def _given(case: Case, file: WindowFile, field: str) -> ClosedWindow:
    window = ClosedWindow.of(file, field=field)
    signed = open_trusted(case, file.final_checkpoint, field=field, window=window.opening.window)
    signed.quorum_time(case.trust.quorum)
    return window


def _counts(case: Case, reached: list[ClosedWindow]) -> None:
    """Check that each opening's counts follow from the window before it."""
    later = [case.opening, *(window.opening for window in reached)]
    pairs = [(opening, Unanswered.before(opening), window.unanswered)
             for opening, window in zip(later, reached, strict=False)]  # fmt: skip
    complete = any(window.outcome is Outcome.COMPLETE for window in reached)
    exact = later[-1].previous is None or complete
    for name, stated, passed in (
        ("abandoned", case.figures["abandoned"], "as many as were opened since the last complete window"),
        ("empty", case.figures["empty"], "as many as ended without a query since the last complete window"),
    ):
        wrong = next(((o, c, e) for o, c, e in pairs if getattr(c, name) != getattr(e, name)), None)
        if wrong is not None:
            opening, claimed, expected = wrong
            case.report(f"opening.{name}", False, f"{getattr(expected, name)} in the opening of {opening.window}",
                        getattr(claimed, name), "entries[0].previous")  # fmt: skip
        else:
            case.report(f"opening.{name}", True, passed,
                        f"{stated}{'' if exact else ', rests on the witnesses'}")  # fmt: skip
