"""Sentences of the verifier in the language of a page, recognised by their pattern.

The report has notes, results of checks and the sentence of the verdict in English, for programs and other formats. Each
pattern is a message of the catalogue with `%(name)s` for each value. A text without a pattern remains English and is
marked as a quotation: it can contain words of other parties' files.
"""

from __future__ import annotations

import re
from functools import cache

from markupsafe import Markup

from rag_audit._internal.words import marked
from rag_audit.report.language import Language

NOTES = (
    marked("a query has at most %(limit)s tokens: the service ignores the rest of a longer question"),
    marked("query_embedding (A1) is %(level)s: epsilon holds only if no query vector depends on the index"),
    marked(
        "the challenge comes from the window file: the provider may have drawn several challenges and published one of"
        " them, and eta is the probability for a single draw; supply the verifier's own draw with --challenge"
    ),
    marked(
        "%(count)s proof was verified by an earlier run of this user; use --no-cache to verify them in this run"
    ),
    marked(
        "%(count)s proofs were verified by an earlier run of this user; use --no-cache to verify them in this run"
    ),
    marked("unreadable, so dependent checks were not decided: %(reason)s"),
    marked("A1 not re-executed: vectors of %(kind)s are declared, and other parties cannot recompute them"),
    marked("A1 not re-executed: the embedder's artefacts differ from the pinned artefacts"),
    marked("A1 not re-executed: this verifier has no embedder"),
    marked(
        "A1 not proved: trust.toml does not pin the model of %(kind)s, so the provider may have fitted it to the index"
    ),
    marked(
        "A1 not proved: trust.toml does not pin the manifest of %(kind)s, so the provider may have chosen other"
        " constants of its vectors"
    ),
    marked("A1 not re-executed: %(reason)s"),
    marked(
        "%(tenant)s: window %(window)s was abandoned and has no beacon entry: a provider that knew its beacon has seen"
        " one more draw of the bits"
    ),
    marked(
        "%(tenant)s: the records of window %(window)s are not verified here in sampled mode: the figures of the chain"
        " assume that they conform"
    ),
    marked(
        "this verdict used the sender's trust file from the bundle (%(digest)s): the sender chose its keys and its"
        " limits; --trust names your own. The sender also supplied the challenges that count as the verifier's own"
    ),
    marked(
        "this verdict used the sender's trust file from the bundle (%(digest)s): the sender chose its keys and its"
        " limits; --trust names your own"
    ),
    marked(
        "this verdict used the reader's own trust file and options, and not the bundle's; challenges of the bundle"
        " counted like challenges of the window file. The packed report is about the same window and files, and its"
        " line equals this verdict's line: %(reason)s"
    ),
    marked(
        "this verdict used the reader's own trust file and options, and not the bundle's; challenges of the bundle"
        " counted like challenges of the window file. The packed report is about the same window and files, and its"
        " line differs from this verdict's line: %(reason)s"
    ),
    marked("WARNING: the packed report, which has no signature, says %(outcome)s. %(reason)s"),
    marked("WARNING: the packed report, which %(key)s signed, says %(outcome)s. %(reason)s"),
    marked("this verdict equals the verdict of the packed report"),
    marked(
        "another release (%(version)s) made the packed report: its verdict line, its checks' outcomes, its window and"
        " its files equal this verdict's, and no check compared its other fields"
    ),
    marked("the packed report.json has no signature"),
    marked("the key %(key)s of --signer signed the packed report.json"),
    marked("the key %(key)s signed the packed report.json"),
    marked("this run had no --signer, so no check shows who has this key"),
    marked(
        "the window is dated after this report: %(event)s at %(then)s, and this report was made at %(now)s; a clock is"
        " wrong, or this is an example"
    ),
)
"""The notes of `verify.verifier` and of `report.build`."""
VERDICTS = (
    marked(
        "All %(total)s checks of window %(window)s of %(origin)s passed, in a pilot: the provider operates witnesses"
        " that the quorum needs. This shows that the steps work, and shows nothing to a party that does not trust the"
        " provider."
    ),
    marked(
        "All %(total)s checks of window %(window)s of %(origin)s passed, in a pilot: the provider operates enough"
        " witnesses for a quorum. This shows that the steps work, and shows nothing to a party that does not trust the"
        " provider."
    ),
    marked(
        "All %(total)s checks of window %(window)s of %(origin)s passed: %(what)s is proved to follow from the"
        " committed index."
    ),
    marked(
        "The window %(window)s of %(origin)s does not match a value that trust.toml pins: %(failed)s. Compare the pins"
        " of trust.toml with their source first."
    ),
    marked(
        "The file of window %(window)s of %(origin)s is not the ledger that the provider signed: %(failed)s. Fetch the"
        " file a second time first."
    ),
    marked("At least one statement of window %(window)s of %(origin)s is false: %(failed)s."),
    marked("There is no verdict on window %(window)s of %(origin)s (%(names)s). %(reason)s"),
    marked(
        "The window %(window)s of %(origin)s could not be judged: %(count)s of %(total)s could not be decided"
        " (%(names)s). This result does not support the provider."
    ),
    marked(
        "The window %(window)s of %(origin)s is not established: %(count)s of %(total)s did not get the evidence for"
        " its figures (%(names)s). No check proved a false statement, and the window has no privacy figure."
    ),
    marked(
        "The window %(window)s of %(origin)s is sound and does not meet trust.toml: %(count)s not met (%(names)s)."
    ),
    marked("%(count)s of %(total)s failed (%(names)s)"),
    marked("%(number)s check"),
    marked("%(number)s checks"),
    marked("%(number)s requirement"),
    marked("%(number)s requirements"),
    marked("%(quorum)s of %(number)s witness had cosigned the commitments"),
    marked("%(quorum)s of %(number)s witness had cosigned the end"),
    marked("%(quorum)s of %(number)s witnesses had cosigned the commitments"),
    marked("%(quorum)s of %(number)s witnesses had cosigned the end"),
    marked("its only answer"),
    marked("each of its %(number)s answers"),
    marked("the only record drawn"),
    marked("each of the %(number)s records drawn"),
)
"""The sentence of the verdict, its parts, and events in notes."""
RESULTS = (
    marked("signed with size %(size)s"),
    marked("cosigned by no witness of trust.toml"),
    marked("cosigned by %(names)s"),
    marked("size %(size)s root %(root)s"),
    marked("a quorum at %(time)s"),
    marked(
        "quorum %(quorum)s, drawn %(drawn)s in entry %(entry)s, first query %(first)s in entry %(number)s"
    ),
    marked("quorum %(quorum)s, drawn %(drawn)s in entry %(entry)s, first query none"),
    marked("no figure is shown: the figures of this window are not established"),
    marked("epsilon %(eps)s at delta %(delta)s (bound: %(bound)s)"),
    marked("%(number)s invalid proof: %(reason)s"),
    marked("%(number)s invalid proofs; the first: %(reason)s"),
    marked("%(number)s valid proof"),
    marked("%(number)s valid proofs"),
    marked("a valid proof of %(digest)s"),
    marked("a valid proof"),
    marked("%(number)s artefact as pinned"),
    marked("%(number)s artefacts as pinned"),
    marked("%(number)s signed request"),
    marked("%(number)s signed requests"),
    marked("the final tree extends the header's tree"),
    marked("no gap and no repetition"),
    marked("each proof has its record"),
    marked("the times ascend"),
    marked("the times agree with %(number)s quorum"),
    marked("the times agree with %(number)s quorums"),
    marked("%(number)s early proof"),
    marked("%(number)s early proofs"),
    marked("the entries are in order"),
    marked("theta %(theta)s, tau %(tau)s positions (the whole window)"),
    marked("theta %(theta)s, tau %(tau)s seconds (the whole window)"),
    marked("theta %(theta)s, tau %(tau)s positions"),
    marked("%(done)s of %(number)s record has all proofs"),
    marked("%(done)s of %(number)s records have all proofs"),
    marked("the trailer has %(number)s query, %(enrolments)s enrolments"),
    marked("the trailer has %(number)s queries, %(enrolments)s enrolments"),
    marked("the trailer has %(number)s queries, %(enrolments)s enrolment"),
    marked("theta %(theta)s, tau %(tau)s seconds"),
    marked("no noise"),
    marked("no previous window"),
    marked("%(number)s earlier window, back to the origin's first window"),
    marked("%(number)s earlier windows, back to the origin's first window"),
    marked("%(number)s receipt agrees"),
    marked("%(number)s receipts agree"),
    marked("at most %(number)s query of each account"),
    marked("at most %(number)s queries of each account"),
    marked("at most %(number)s"),
    marked("at least %(number)s"),
    marked("%(number)s record with pooled listing"),
    marked("%(number)s records with pooled listing"),
    marked("%(tenant)s: its first table, checked back to the first table of the chain"),
    marked("%(tenant)s: the table of window %(window)s, checked back to the first table of the chain"),
    marked("%(number)s (the witnesses are the only evidence)"),
    marked("header %(header)s, not supplied: the witnesses are the only evidence"),
    marked("a challenge of %(number)s records"),
    marked("the verifier's own challenge of %(number)s records"),
    marked("%(done)s of %(total)s records re-executed, %(named)s of them for accounts that trust.toml names"),
    marked("whole window"),
    marked("full mode"),
    marked("the verification key is not the pinned one (%(digest)s)"),
    marked("the file has no such proof"),
    marked("no challenge by a key in trust.toml"),
    marked("the coalition proof does not verify"),
    marked("no coalition proof in the window"),
    marked("every receipt agrees with the ledger"),
    marked(
        "c = %(count)s: no account but its author repeated a question almost word for word, %(tenant)s in one tenant"
        " (declared, not proved)"
    ),
    marked(
        "c = %(count)s: no account but its author repeated a question almost word for word, %(tenant)s in one tenant"
        " (proved)"
    ),
    marked(
        "c = %(count)s: no account but its author repeated a question almost word for word, %(tenant)s in one tenant"
    ),
    marked(
        "c = %(count)s: %(number)s accounts repeated a question almost word for word, %(tenant)s in one tenant"
        " (declared, not proved)"
    ),
    marked(
        "c = %(count)s: %(number)s accounts repeated a question almost word for word, %(tenant)s in one tenant (proved)"
    ),
    marked(
        "c = %(count)s: %(number)s accounts repeated a question almost word for word, %(tenant)s in one tenant"
    ),
    marked("the roster has more accounts than the tenant's cap"),
    marked("every account is on the roster, with its tenant"),
    marked("entries with the numbers 0, 1, 2, .. (seq)"),
    marked("entry %(entry)s has the number %(number)s (seq)"),
    marked("receipts for this window with signatures of provider and account"),
    marked("a signed challenge of at least %(number)s records"),
    marked("a challenge over another ledger"),
    marked("times that ascend from %(start)s to %(end)s"),
    marked("only proofs of query records, for their tenants' statements"),
    marked("the queries of each account have the numbers 1, 2, .. (i)"),
    marked("one entry for each sampled tenant, before its first query"),
    marked("an entry for %(tenant)s"),
    marked("the ledger names no commitment to the sampled positions"),
    marked("the pairing equation does not hold"),
    marked("proofs of every statement for each of %(number)s records"),
    marked("%(number)s queries, %(enrolments)s enrolments in the trailer"),
    marked("a window trailer"),
    marked("no window trailer: the window is not closed"),
    marked("the final tree extends the tree of the window header"),
    marked("the final tree does not extend the header's tree"),
    marked("times that agree with the times of %(number)s quorums within 60 s"),
    marked("%(level)s or better"),
    marked("a pin for circuit %(digest)s"),
    marked("a pin in trust.toml"),
    marked("no pin in trust.toml"),
    marked("the window has no verification key"),
    marked("the circuit has no pin in trust.toml"),
    marked("every request is signed by its account's key"),
    marked("record %(record)s has no valid signature of its account"),
    marked("drawn after the quorum, before the first query"),
    marked("one beacon for each window header or enrolment"),
    marked("two roster lines have the key %(key)s"),
    marked("cosignatures of %(quorum)s of %(number)s witnesses"),
    marked("different commitments for each tenant"),
    marked("a beacon entry for entry %(entry)s"),
    marked("no beacon entry"),
    marked("%(number)s known witnesses"),
    marked("too few witnesses cosigned the checkpoint (%(number)s)"),
    marked("not signed by the log"),
    marked("no coalition proof: the policy requires none"),
    marked("the trailer names a coalition proof"),
    marked("c at most k_max = %(number)s"),
    marked("set in trust.toml (absent)"),
    marked("a text and a salt that open hq"),
    marked("the disclosed query does not open hq"),
    marked("no table before"),
    marked("%(number)s in the header of %(window)s"),
    marked("a quorum before %(time)s"),
)
"""Results of checks: every result of a window that passed, and frequent other ones."""
_VALUE = re.compile(r"%\((\w+)\)s")
_NUMBER = re.compile(r"[0-9]{1,3}(,?[0-9]{3})*(\.[0-9]+)?")
_NAME = r"[\w.:/+()-]+"
_NAMES = re.compile(rf"({_NAME}(?:, {_NAME})*)(?: and (?:({_NAME})|([0-9,]+) more))?")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+ UTC")
_MAX = 4_000
"""Maximum characters of a text that is compared with the patterns."""


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Each message with the pattern of its texts. A value has no semicolon, except the reason of an error."""
    result = []
    for message in (*NOTES, *VERDICTS, *RESULTS):
        parts = _VALUE.split(message)
        pattern = "".join(
            re.escape(part) if i % 2 == 0 else f"(?P<{part}>{'.+' if part == 'reason' else '[^;]+?'})"
            for i, part in enumerate(parts)
        )
        result.append((message, re.compile(pattern, re.DOTALL)))
    return result


def recognised(say: Language, text: str) -> Markup:
    """A text of the verifier in the language of the page, or as an English quotation.

    :param text: a note, a result of a check, or the sentence of the verdict
    """
    if say.code == "en":
        return say.shown(text)
    found = _recognised(say, text)
    return say.known(text) if found is None else found


def _recognised(say: Language, text: str) -> Markup | None:
    if len(text) > _MAX:
        return None
    for message, pattern in _patterns():
        if (match := pattern.fullmatch(text)) is not None:
            values = {name: _value(say, value) for name, value in match.groupdict().items()}
            return say.text(message, **values)
    parts = text.split("; ")
    if len(parts) > 1:
        shown = [_recognised(say, part) for part in parts]
        if None not in shown:
            return say.joined(shown, "; ")
    return None


def _value(say: Language, value: str) -> Markup:
    """A value of a sentence: a number, an instant, names, a further sentence, or a quotation."""
    if _NUMBER.fullmatch(value):
        return say.shown(say.number(value))
    if _INSTANT.fullmatch(value):
        return say.shown(value)
    if (names := _NAMES.fullmatch(value)) is not None:
        first, last, more = names.groups()
        items: list[object] = [*first.split(", "), *([last] if last else [])]
        if more:
            items.append(say.plural("%(count)s more", "%(count)s more", int(more.replace(",", ""))))
        return say.listed(items) if last or more else say.shown(first)
    found = _recognised(say, value)
    return say.known(value) if found is None else found
