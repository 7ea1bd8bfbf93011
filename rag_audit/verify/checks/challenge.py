"""`proof.challenge`: the records that must have proofs, and the draws that name them."""

from __future__ import annotations

from rag_audit._internal.errors import SignatureError
from rag_audit.log.keys import VerifierKey
from rag_audit.log.note import parse_note, verify_note
from rag_audit.models.challenge import Challenge, sample_size
from rag_audit.models.trust import Trust, decimal
from rag_audit.verify.case import Case, Status


def open_challenge(text: str, trust: Trust, *, field: str) -> Challenge:
    """Open a challenge note by a verifier whom trust.toml names.

    :raises EncodingError: the text is not a note
    :raises VersionError: the note is of another kind
    :raises SignatureError: the note is signed by another key
    """
    note = parse_note(text, field=field)
    keys = [VerifierKey.parse(v.vkey, field=f"trust.verifier.{v.name}") for v in trust.verifier]
    verify_note(note, keys, field=field)
    return Challenge.parse(note.text, field=field)


def required_records(case: Case) -> set[int] | None:
    """The records that must have proofs: all in full mode, else the challenged records; None if no draw counts.

    Every challenge over this ledger must be answered in full. A verifier cannot see challenges that were drawn and
    never published, so the verifier's own challenge must count. Otherwise the provider could draw
    repeatedly and publish a favourable draw.

    >>> from pathlib import Path
    >>> from rag_audit.verify.verifier import open_window
    >>> case = open_window(Path("docs/examples"), trust=Path("docs/examples/trust.toml"))
    >>> sorted(required_records(case) or ())
    [2, 3, 6, 7, 8, 9, 10]
    """
    every = [q.seq for q in case.queries]
    require = case.trust.require
    case.figures["mode"] = require.mode
    full = require.mode == "full"
    positions: set[int] = set()
    over = True
    for named in case.challenges:
        if drawn := _drawn(case, named.challenge, every):
            positions.update(drawn)
        elif drawn is None:
            over = case.record("proof.challenge", Status.UNDECIDED, "a challenge over this ledger",
                               "a challenge over another ledger", named.name)  # fmt: skip
    if full:
        return set(every)
    beta, eta = decimal(require.beta), decimal(require.eta)
    if beta is None or eta is None or not (0 < beta < 1 and 0 < eta < 1):
        result = ", ".join(
            f"{name} {'absent' if v is None else v}" for name, v in (("beta", beta), ("eta", eta))
        )
        case.require("proof.challenge", False, "beta and eta in (0, 1) in trust.toml", result)
        return None
    needed = sample_size(beta, eta, len(every))
    own = [len(_drawn(case, named.challenge, every) or ()) for named in case.challenges]
    published, result = _published(case, every)
    largest = max(own if own else map(len, published), default=0)
    if own and over:
        result = f"the verifier's own challenge of {largest} records"
    positions.update(*published)
    enough = over and largest >= needed and (largest > 0 or not every)
    drawn_by = "a challenge by this verifier" if own else "a signed challenge"
    if not case.record(
        "proof.challenge",
        Status.PASS if enough else Status.UNDECIDED,
        f"{drawn_by} of at least {needed} records",
        result,
    ):
        return None
    case.figures["sampled"] = len(positions)
    case.figures["challenge"] = "full" if len(positions) == len(every) else "own" if own else "published"
    return positions


def _drawn(case: Case, challenge: Challenge, every: list[int]) -> list[int] | None:
    """The records that a challenge draws, or None if it is over another ledger."""
    named = (challenge.origin, challenge.window, challenge.size, challenge.root)
    if named != (case.header.origin, case.header.window, case.final.size, case.final.root):
        return None
    return challenge.positions(every)


def _published(case: Case, every: list[int]) -> tuple[list[list[int]], str]:
    """The draws of the window file that count, and their description for the report."""
    draws: list[list[int]] = []
    result = "no challenge by a key in trust.toml"
    for number, text in enumerate(case.file.challenges):
        with case.guarding("proof.challenge"):
            try:
                challenge = open_challenge(text, case.trust, field=f"challenges[{number}]")
            except SignatureError as exc:
                result = str(exc)
                continue
            drawn = _drawn(case, challenge, every)
            if drawn is None:
                result = "a challenge over another ledger"
                continue
            draws.append(drawn)
            result = f"a challenge of {max(map(len, draws))} records"
    return draws, result
