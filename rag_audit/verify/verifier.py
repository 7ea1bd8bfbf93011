"""Phase D, verify: from a window file, a trust file and receipts to a verdict, without any network connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path

from rag_audit._internal.canonical import Json, digest_hex, jcs, read_bytes, sha256
from rag_audit._internal.errors import ExitCode, RagAuditError, SchemaError, SetupError
from rag_audit._internal.printable import printable
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.models.attacks import MAX_ATTACKS_BYTES, AttackRun
from rag_audit.models.manifest import check_manifest
from rag_audit.models.policy import Policy
from rag_audit.models.records import Entry, Opening, RosterEntry, TenantEntry, parse_entry
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.checking import Checking
from rag_audit.retrieval.embedders import Embedder, get_embedder, re_executable
from rag_audit.verify.case import (
    SAYS_NOTHING,
    Case,
    Check,
    NamedChallenge,
    ReceiptFile,
    Status,
    shortfall,
    worst,
)
from rag_audit.verify.checks import bound, coalition, ledger, opening, proof, receipt
from rag_audit.verify.checks import trust as trust_checks
from rag_audit.verify.facts import Facts, facts_of
from rag_audit.verify.figures import Figures
from rag_audit.verify.inputs import (
    Inputs,
    load_receipts,
    printable_name,
    read_challenge,
    read_previous,
    read_trust,
    read_window,
    reading_attacks,
    reading_window,
)
from rag_audit.verify.measured import Measured, measured_of
from rag_audit.verify.needed import needed_checks
from rag_audit.verify.parts import OutcomeName
from rag_audit.verify.withheld import facts_without, uncertified, without_figures, without_findings
from rag_audit.verify.words import counted

DOES_NOT_PROVE = (
    "what a selected position holds: the figures cover the list of selected positions; the text found there, its "
    "emptiness, and digests in receipts are disclosed with certainty and are outside the bound",
    "the generation channel: what a model writes from the documents",
    "documents of several positions: each figure is for a document of one position. A document of s positions loses up"
    " to s times epsilon, and the factor by which its absence becomes more likely is at least the s-th power",
    "a true coalition above k_max",
    "in sampled mode, records that no proof was asked for",
    "coalitions that diversify their queries below theta: the estimate finds accounts that repeat a question almost"
    " word for word, and a checked estimate says nothing of others",
    "D1 and A1 below `proved`: that a committed vector, or a query vector, is the embedding of its text; nobody"
    " can compute an endpoint's vectors again, not even an account those of its own queries",
    "answers given off the ledger without a receipt",
    "selective refusal and stalling: the provider knows scores and noise",
    "behaviour of honest accounts that depends on their answers (counts, times, c) beyond the all-accounts figure",
    "a second origin over the same index",
    "the same documents as several tenants: committed again under fresh salts they look like others, and each "
    "figure, that for all accounts too, covers the accounts of one tenant",
    "windows that the provider filled with queries of its own, closed and showed to nobody: they do not count as "
    "abandoned",
    "the seed's entropy and secrecy",
    "subliminal channels: timestamps, salts drawn by the library",
    "that embeddings cannot be inverted",
    "the computational assumptions: SHA-256, Poseidon, Ed25519, and the proof system's (docs/security.md)",
)
"""Printed with every verdict, in this order."""
RETURNED_TEXTS = (
    "which texts a tenant with a sample returned: the provider returns no text of a position that the window does not"
    " keep and, with mechanism sampling, none of a position of score 0. No proof covers this yet, odds_unlisted of"
    " mechanism sampling rests on it. Receipts do not show a text that the provider withholds at the end of a list"
    " (mechanism sampling), or from every answer whose receipt the verifier has (noise with sampling, listing)"
)
"""Printed besides, where a tenant samples."""
DOES_NOT_PROVE_BY_MECHANISM = {
    "sampling": "anything about documents that were handed out: odds_unlisted bounds how much more likely the absence"
    " of a document becomes for accounts that never received it, it is no epsilon, and windows multiply it; the"
    " presence of a document that is asked for has no protection",
    "listing": "anything about documents that were handed out, which are known to be there: eps is about the lists"
    " alone, of up to k_max accounts; and an account that keeps nothing of what it is handed finds it no second time",
    "none": "any privacy of a tenant whose mechanism is none: its answers are exact, and the window proves integrity",
}
"""Printed besides, where a tenant has the mechanism."""


CONDITIONAL = "eps_audit is conditional on query vectors that do not depend on the index"
"""What the level of A1 means for epsilon; a window without a figure has no such note."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification: every check, the figures, and the verdict line.

    :param described: what a report says of the window besides (`report.build`), or the exception that prevented this
        description: a fault of the description costs no verdict
    :param measured: a provider's own run of attacks, which changes nothing of the verdict
    :param needed: the ids of the checks that had to run on the window (`needed.needed_checks`)
    """

    exit_code: ExitCode
    checks: Sequence[Check]
    figures: Figures
    notes: Sequence[str]
    described: Facts | Exception = field(repr=False, compare=False)
    measured: Measured | None = None
    needed: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @property
    def facts(self) -> Facts:
        """What a report says of the window besides.

        :raises Exception: the one that kept the facts from being made
        """
        if isinstance(self.described, Exception):
            raise self.described
        return self.described

    @property
    def passed(self) -> bool:
        """Whether every check passed and every requirement is met."""
        return self.exit_code is ExitCode.PASS

    @cached_property
    def status(self) -> Status:
        """The worst outcome of a check, which is the verdict's. Each check is compared with it (`decides`)."""
        return worst({c.status for c in self.checks})

    @property
    def established(self) -> bool:
        """Whether everything that the window's figures rest on passed. If not, the verdict has no privacy figure."""
        return self.status in (Status.PASS, Status.UNMET)

    @property
    def deciding(self) -> Check | None:
        """The first check with the verdict's outcome, or None for a PASS."""
        return next((c for c in self.checks if self.decides(c)), None)

    def decides(self, check: Check) -> bool:
        """Whether a check's outcome is the verdict's; of a PASS none decides."""
        return check.status is self.status and not self.passed

    @property
    def outcome(self) -> OutcomeName:
        """The first word of the verdict line."""
        words: dict[Status, OutcomeName] = {
            Status.FAIL: "FAIL",
            Status.UNDECIDED: "UNDECIDED",
            Status.UNPROVEN: "UNPROVEN",
            Status.UNMET: "UNMET",
        }
        if not self.passed:
            return words[self.status]
        sampled = self.figures.get("mode") == "sampled"
        if "none" in {t["mechanism"] for t in self.figures.get("tenants", {}).values()}:
            return "PASS-INTEGRITY-SAMPLED" if sampled else "PASS-INTEGRITY"
        return "PASS-SAMPLED" if sampled else "PASS"

    @property
    def line(self) -> str:
        """The verdict line (docs/protocol.md, "Verdict")."""
        f = self.figures
        parts: list[str] = [self.outcome]
        sampled = f.get("mode") == "sampled"
        if self.deciding is not None:
            parts.append(self.deciding.id)
        if self.established:
            parts.append(f"{'eps_if_conforming' if sampled else 'eps_audit'}={f.get('eps_audit')}")
            if "tenants" in f:
                parts.append(f"odds_unlisted={f.get('odds_unlisted', 'none')}")
                if "odds_unlisted" in f:
                    parts.append(f"odds_unlisted_all_accounts={f['odds_unlisted_all_accounts']}")
                    parts.append(f"positions_per_document={f['positions_per_document']}")
                parts.append(
                    "mechanisms=" + ",".join(f"{t}:{v['mechanism']}" for t, v in f["tenants"].items())
                )
            keys = ["delta", "k_max", *(("beta", "eta", "challenge") if sampled else ())]
            keys += [
                "mode",
                "records",
                "receipts",
                "a1",
                "d1",
                "coalition",
                "proofs",
                "setup",
                "abandoned",
                "empty",
            ]
            parts += [f"{k}={f.get(k)}" for k in [*keys, "scores"]]
            parts += [f"allow={name}" for name in f.get("allowed", [])]
        return printable(" ".join(parts))

    @property
    def does_not_prove(self) -> list[str]:
        """What the verdict does not say, in sentences for people."""
        present = {t["mechanism"] for t in self.figures.get("tenants", {}).values()}
        return [
            *(text for name, text in DOES_NOT_PROVE_BY_MECHANISM.items() if name in present),
            *(
                [RETURNED_TEXTS]
                if any(t.get("odds_unlisted") for t in self.figures.get("tenants", {}).values())
                else []
            ),
            *DOES_NOT_PROVE,
        ]


def verify_window(
    window: Path | WindowFile,
    *,
    trust: Path | Trust,
    receipts: Sequence[Path] = (),
    previous: Sequence[Path] = (),
    engine: str = "native",
    max_epsilon: str | None = None,
    allow_unsafe_setup: bool = False,
    challenges: Sequence[Path] = (),
    model: Path | None = None,
    attacks: Path | None = None,
    inputs: Inputs | None = None,
    checking: Callable[[WindowFile], Checking] | None = None,
) -> Verdict:
    """Verify a window as a third party that trusts nothing but `trust`.

    :param receipts: countersigned receipt files, or folders of them
    :param previous: earlier windows, in any order, with which the chain is checked instead of relying on the witnesses
    :param engine: what decides about proofs: native; py_ecc or snarkjs, of Groth16 ones; or reference, the second
        verifier of the scan argument, beside py_ecc
    :param max_epsilon: a tighter limit than trust.toml's
    :param allow_unsafe_setup: accept one-party keys, which the verdict then states
    :param challenges: notes that the verifier drew itself, which must be answered whatever others the window has
    :param model: the folder of the embedder's files, if it has any, to re-execute A1 on disclosed queries
    :param checking: makes how the window's proofs are verified, if not in this process and all of them
    :param attacks: what `rag-audit attack run` measured, attacks.json, to be shown beside the verdict
    :param inputs: receives the names and digests of the files as they are read, also of a run that ends in an error
    :raises MeasurementError: the attacks are not on this window or its policy (exit code 3)
    :raises RagAuditError: the window, the trust file, the attacks or a challenge of the verifier's own cannot be read
        (exit code 2)
    """
    inputs = Inputs() if inputs is None else inputs
    trusted = trust if isinstance(trust, Trust) else read_trust(trust, inputs)
    trusted, allowed = _options(trusted, max_epsilon, allow_unsafe_setup)
    own = [NamedChallenge(printable_name(path), read_challenge(path, trusted, inputs)) for path in challenges]
    handed_in, unread = load_receipts(receipts, inputs)
    earlier = [read_previous(path, inputs) for path in previous]
    with nullcontext() if isinstance(window, WindowFile) else reading_window(window):
        file, unreadable = (window, []) if isinstance(window, WindowFile) else read_window(window, inputs)
        case = open_case(file, trusted, handed_in, engine, earlier, unreadable)
    measured = None
    if attacks is not None:
        try:
            measured = _measured(attacks, case, inputs)
        except RagAuditError as exc:
            case.unreadable.append(exc)
    if checking is not None:
        case.checking = checking(file)
    case.unread, case.challenges, case.max_epsilon_asked = unread, own, max_epsilon is not None
    case.figures["allowed"] = allowed
    embedder, notes = _embedder(case, model)
    with nullcontext() if isinstance(window, WindowFile) else reading_window(window):
        _judge(case, embedder)
        verdict = _verdict(case, notes, inputs)
        _refuse(case, verdict)
    if measured is not None and not verdict.established:
        measured = uncertified(measured)
    return replace(verdict, measured=measured)


def _measured(path: Path, case: Case, inputs: Inputs) -> Measured:
    """A provider's attacks.json beside the window."""
    with reading_attacks(path):
        run = AttackRun.load(path)
        digest = sha256(read_bytes(path, max_bytes=MAX_ATTACKS_BYTES)).hex()
        inputs.add("attacks", printable_name(path), digest)
        return measured_of(run, case.policy, case.opening_digest, field=printable_name(path))


def _judge(case: Case, embedder: Embedder | None) -> None:
    """Run every group of checks. An error that a group does not turn into a check's outcome ends that group alone: one
    part that cannot be read must not hide what the others prove.
    """
    groups: list[Callable[[Case], None]] = [
        opening.check,
        ledger.check,
        proof.check,
        partial(receipt.check, embedder=embedder),
        coalition.check,
        bound.check,
        trust_checks.check,
    ]
    for check in groups:
        try:
            check(case)
        except SAYS_NOTHING:
            raise
        except RagAuditError as exc:
            case.unreadable.append(exc)


_RANKS = (ExitCode.FAIL, ExitCode.MALFORMED, ExitCode.UNMET, ExitCode.PASS)


def _refuse(case: Case, verdict: Verdict) -> None:
    """Raise the worst error of what could not be read, unless the checks found worse.

    :raises RagAuditError: the error
    """
    if not case.unreadable:
        return
    worst_error = min(case.unreadable, key=lambda e: _RANKS.index(e.exit_code))
    if _RANKS.index(worst_error.exit_code) <= _RANKS.index(verdict.exit_code):
        raise worst_error


def _options(trust: Trust, max_epsilon: str | None, allow_unsafe_setup: bool) -> tuple[Trust, list[str]]:
    """Apply command-line options to trust.toml's requirements: they tighten one, or are named in the verdict."""
    require = trust.require
    allowed = ["unsafe-setup"] if allow_unsafe_setup or require.allow_unsafe_setup else []
    update: dict[str, Json] = {"allow_unsafe_setup": bool(allowed)}  # before any other option joins the list
    if max_epsilon is not None:
        update["max_epsilon"] = max_epsilon
        if require.max_epsilon is None:
            # The option replaces a requirement that trust.toml leaves out, which the reader of the verdict should know.
            allowed.append("max-epsilon-by-option")
    if require.allow_minority_quorum:
        allowed.append("minority-quorum")
    try:
        changed = type(require).parse({**require.model_dump(), **update}, field="options")
    except RagAuditError as exc:
        exc.hint = "give --max-epsilon as a decimal number, such as 8 or 0.5"
        raise
    if max_epsilon is not None and require.max_epsilon is not None:
        tighter = min(require.max_epsilon, max_epsilon, key=Decimal)
        changed = changed.model_copy(update={"max_epsilon": tighter})
    return trust.model_copy(update={"require": changed}), allowed


def open_case(
    file: WindowFile,
    trust: Trust,
    receipts: Sequence[ReceiptFile],
    engine: str,
    previous: Sequence[WindowFile | RagAuditError] = (),
    unreadable: Sequence[RagAuditError] = (),
) -> Case:
    """Parse every part of a window file. The entries end before the first that is not well-formed, which is noted.

    :param unreadable: the errors of parts that could not be read
    :raises RagAuditError: another part is not well-formed; the first such part is named
    """
    manifest = check_manifest(file.embedder)
    entries: list[Entry] = []
    errors = [*unreadable]
    for i, value in enumerate(file.entries):
        try:
            entries.append(parse_entry(value, field=f"entries[{i}]"))
        except RagAuditError as exc:
            errors.append(exc)
            break
    if not entries and errors:
        raise errors[0]
    if not entries or not isinstance(entries[0], Opening):
        raise SchemaError("entry 0 is not an opening", field="entries[0]")
    tenants = [TenantEntry.parse(t, field=f"tenants[{i}]") for i, t in enumerate(file.tenants)]
    names = [t.tenant for t in tenants]
    if names != sorted(set(names)):
        raise SchemaError("the tenants are not sorted and unique", field="tenants", found=names)
    return Case(
        file=file,
        manifest=manifest,
        trust=trust,
        receipts=receipts,
        engine=engine,
        opening=entries[0],
        opening_digest=digest_hex(file.entries[0]),
        policy=Policy.parse(file.policy, field="policy"),
        roster=[RosterEntry.parse(r, field=f"roster[{i}]") for i, r in enumerate(file.roster)],
        tenants={t.tenant: t for t in tenants},
        entries=entries,
        tree=HashTree(leaf_hash(jcs(value)) for value in file.entries[: len(entries)]),
        final=file.final_head(),
        previous=previous,
        unreadable=errors,
        partial=bool(errors),
    )


def _embedder(case: Case, model: Path | None) -> tuple[Embedder | None, list[str]]:
    """The embedder to re-execute A1 with, if trust.toml pins its artefacts and it is installed here, and warnings."""
    part = case.manifest["embedder"]
    if not any(r.receipt.disclosed for r in case.receipts):
        return None, []
    if not re_executable(part["kind"]):
        return None, [
            f"A1 not re-executed: vectors of {part['kind']} are declared, nobody else can compute them again"
        ]
    if part.get("artefacts") != case.trust.pins.embedder:
        return None, ["A1 not re-executed: the embedder's artefacts are not the pinned ones"]
    try:
        tokens = part["tokens"]
        limits = {"query_tokens": tokens["query"], "document_tokens": tokens["document"]}
        embedder = get_embedder(part["kind"], folder=model, **limits)
    except SetupError as exc:
        hint = exc.hint or ("name their folder with --model" if exc.field == "--model" else "")
        return None, [f"A1 not re-executed: {exc.message}" + (f" ({hint})" if hint else "")]
    except RagAuditError as exc:
        return None, [f"A1 not re-executed: {exc}"]
    if embedder.manifest() != part:
        return None, ["A1 not re-executed: this release's embedder has another manifest"]
    return embedder, []


def _verdict(case: Case, notes: list[str], inputs: Inputs) -> Verdict:
    require = case.trust.require
    windows = {}
    for tenant in case.policy.tenants:
        with suppress(RagAuditError):  # of a tenant whose mechanism contradicts itself
            windows[tenant.tenant] = case.policy.rules(tenant).scores
    ranges = {f"{w.lo}..{w.hi}" for w in windows.values()}
    if len(ranges) > 1:
        ranges = {f"{tenant}:{w.lo}..{w.hi}" for tenant, w in windows.items()}
    figures: Figures = {
        **case.figures,
        "delta": case.policy.delta_policy,
        "k_max": case.policy.k_max,
        "n": case.policy.n,
        "scores": "+".join(sorted(ranges)),
        "lattice": min((w.lattice for w in windows.values()), default=0),
        "dimension": case.manifest["schema"]["dimension"],
        "beta": require.beta,
        "eta": require.eta,
        "window": case.opening.window,
        "origin": case.opening.origin,
    }
    if case.figures.get("a1") != "proved":
        notes = [
            *notes,
            f"A1 is {case.figures.get('a1')}: {CONDITIONAL}",
        ]
    if case.figures.get("challenge") == "published":
        notes = [
            *notes,
            "the challenge is the window file's: of several that were drawn, the provider may have published the one"
            " that it liked, and eta is the chance for a single one; --challenge names the verifier's own",
        ]
    if case.checking.known:
        notes = [
            *notes,
            f"{counted(case.checking.known, 'proof was', 'proofs were')} verified by an earlier run of this user and"
            " not again (--no-cache)",
        ]
    limit = case.policy.tokens.query
    notes = [
        *notes,
        f"queries are cut at {limit} tokens: of a longer question only the first {limit} are asked",
    ]
    notes = [
        *notes,
        *(f"could not be read, and what depends on it was not judged: {e}" for e in case.unreadable),
    ]
    described: Facts | Exception
    try:
        described = facts_of(case, inputs)
    except Exception as exc:
        # The checks have decided: whatever goes wrong from here on must not take that back.
        described = exc
    # What had to run matters wherever a report has sentences (`report.build`): where nothing is false or undecided.
    stands = worst({c.status for c in case.checks}) in (Status.PASS, Status.UNMET, Status.UNPROVEN)
    return concluded(case.checks, figures, notes, described, needed_checks(case) if stands else frozenset())


def concluded(
    checks: Sequence[Check],
    figures: Figures,
    notes: Sequence[str],
    described: Facts | Exception,
    needed: frozenset[str],
) -> Verdict:
    """The verdict on checks that have run.

    Of a check that is not met, `standing.RULES` alone says whether that is a limit or leaves the figures open.
    A window that would pass although a check did not run is not established: each such check is added as one that was
    not met. A verdict on a window that is not established has no privacy figure.

    :param needed: the ids of the checks that had to run on the window
    """
    short = (Status.UNMET, Status.UNPROVEN)
    checks = [replace(c, status=shortfall(c.id)) if c.status in short else c for c in checks]
    if worst({c.status for c in checks}) in (Status.PASS, Status.UNMET):
        checks = [*checks, *_absent(checks, needed)]
    code = worst({c.status for c in checks}).exit_code
    verdict = Verdict(code, tuple(checks), figures, tuple(notes), described, needed=needed)
    if verdict.established:
        return verdict
    return replace(
        verdict,
        checks=without_findings(verdict.checks),
        notes=[note for note in notes if not note.endswith(CONDITIONAL)],
        figures=without_figures(figures),
        described=described if isinstance(described, Exception) else facts_without(described),
    )


def _absent(checks: Sequence[Check], needed: frozenset[str]) -> list[Check]:
    """An unmet check for each one that had to run and did not."""
    return [Check(name, shortfall(name), "a check that runs on this window", "it did not run")
            for name in sorted(needed - {c.id for c in checks})]  # fmt: skip
