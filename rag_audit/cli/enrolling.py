"""`rag-audit account request`, `approve`, `status` and `names`: enrolment by the account's own request, the account's
used queries, and the documents of its passages."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_audit._internal.canonical import Json, read_json
from rag_audit._internal.errors import (
    ExitCode,
    RagAuditError,
    RequestRefused,
    SchemaError,
    SetupError,
    brief,
)
from rag_audit._internal.words import counted
from rag_audit.account.account import RESTORED, Account
from rag_audit.cli.common import PATH, client_of, emit, json_option, say, verifier_key
from rag_audit.cli.options import flag_option, line, path_option
from rag_audit.models.enrolling import MAX_REQUEST_BYTES, EnrolmentRequest
from rag_audit.models.publication import Publication
from rag_audit.models.roster import admit, load_roster, signed_by_roster
from rag_audit.models.trust import Trust

if TYPE_CHECKING:
    from rag_audit.account.client.sync import Client
    from rag_audit.account.names import NamesReport


def _require_enrolments(client: Client) -> None:
    """Refuse a service that takes no requests.

    :raises SetupError: the service takes none, or cannot be reached
    """
    try:
        client.enrolments()
    except SetupError as exc:
        if exc.actual == "status 404":
            exc.message = "the service takes no enrolment requests"
            exc.hint = "give --origin and --window in place of --url, and send the provider the request that is printed"
        raise


@click.command("request")
@click.argument("directory", type=PATH)
@click.option(
    "--origin",
    callback=line,
    help="the provider's ledger name in its window headers; not needed with --url",
)
@click.option(
    "--window",
    help="the window that the account wants to join; with --url the next window by default",
)
@flag_option("--rotate", help="make a new key that replaces the account's key from this window on")
@click.option("--url", help="send the request to the provider's service, and print the decision")
@click.option("--provider", help="with --url: the provider's vkey, or a file with it")
@json_option
def request(
    directory: Path,
    origin: str | None,
    window: str | None,
    rotate: bool,
    url: str | None,
    provider: str | None,
    as_json: bool,
) -> None:
    """Print a signed request for a line on a provider's roster (`account approve`), or send the request with --url.

    With --url, a later run of the same command shows the decision about the request. With --rotate, the old key signs
    the new key. The account stores both keys, and each key signs in the windows that have it on their roster. To repeat
    a lost request, run the command without --rotate.
    """
    asker = Account(directory)
    if url is None and (origin is None or window is None):
        raise click.UsageError("give --origin and --window, or --url")
    if (url is None) != (provider is None) or (url is not None and origin is not None):
        raise click.UsageError("--url needs --provider and replaces --origin")
    if url is not None:
        with client_of(url, verifier_key(provider or "", field="--provider")) as client:
            _require_enrolments(client)  # before a key is made in vain
            if rotate:
                asker.keys.renew(asker.account)
            answer = client.enrol(asker, window)
        value = {"account": answer.account, "window": answer.window, "status": answer.status,
                 "reason": answer.reason, "seq": answer.seq}  # fmt: skip
        place = "" if answer.seq is None else f" at {answer.seq}"
        why = f": {answer.reason}" if answer.reason else ""
        emit(value, as_json, f"{answer.account} in {answer.window}: {answer.status}{place}{why}")
        return
    if rotate:
        asker.keys.renew(asker.account)
    signed = EnrolmentRequest.sign(
        asker.roster_entry,
        asker.keys.newest,
        origin=origin or "",
        window=window or "",
        previous=asker.keys.before,
    )
    click.echo(signed.canonical().decode())


@click.command("approve")
@click.argument("roster", type=PATH)
@click.argument("folder", type=PATH)
@click.option("--origin", required=True, callback=line, help="the provider's ledger name")
@click.option("--window", required=True, help="the id of the window that the roster is for")
@click.option("--account", "named", multiple=True, help="approve this account's request; repeat")
@flag_option("--all", "every", help="approve every request with a valid signature")
@click.option(
    "--lost",
    multiple=True,
    help="approve this account's request although the account lost its old key; repeat",
)
@json_option
def approve(
    roster: Path,
    folder: Path,
    origin: str,
    window: str,
    named: tuple[str, ...],
    every: bool,
    lost: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add the approved requests of FOLDER (one file each) to the ROSTER of the next window.

    Without --account, --all or --lost the command lists the waiting requests and changes no file. The command names and
    never approves a request with an invalid signature, or for another provider or window.
    """
    if not folder.is_dir():
        raise SchemaError("the folder of requests does not exist", field=str(folder))
    by_account: dict[str, dict[str, EnrolmentRequest]] = {}
    bad: dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            read = EnrolmentRequest.parse(read_json(path, max_bytes=MAX_REQUEST_BYTES), field=path.name)
            read.check(origin=origin, window=window)
        except RagAuditError as exc:
            bad[path.name] = str(exc)
            continue
        by_account.setdefault(read.account, {}).setdefault(read.digest(), read)
    if unknown := sorted({*named, *lost} - by_account.keys()):
        raise SchemaError("this account has no request that can be approved", field=unknown[0])
    lines = {line.account: line for line in load_roster(roster)}
    chosen: list[EnrolmentRequest] = []
    for name, requests in by_account.items():
        if not (every or name in named or name in lost):
            continue
        candidates = list(requests.values())
        if name not in lost:
            # If the roster's key signed a request, this request is the account's.
            candidates = [r for r in candidates if signed_by_roster(r, lines.get(name))] or candidates
        if len(candidates) > 1:
            raise SchemaError("several requests are for one account", field=name,
                              actual=", ".join(r.key for r in candidates),
                              hint="remove the files of the other requests")  # fmt: skip
        chosen += candidates
    added, replaced = admit(roster, chosen, lost=lost) if chosen else ([], [])
    accounts = {r.account for r in chosen}
    waiting = [name for name in by_account if name not in accounts]
    still = [request for name in waiting for request in by_account[name].values()]
    value = {"added": added, "replaced": replaced, "waiting": waiting, "refused": bad}
    words = [f"{len(added)} added, {len(replaced)} replaced, {len(waiting)} waiting, {len(bad)} refused"]
    words += [f"waiting: {r.account}, {r.tenant}, key {r.key}" for r in still]
    emit(value, as_json, [*words, *(f"refused: {name}: {why}" for name, why in bad.items())])


@click.command("status")
@click.argument("directory", type=PATH)
@path_option("--window", "public", help="the window's public folder; not needed with --url")
@click.option("--url", help="the provider's service, to find the open window; needs --provider")
@click.option("--provider", help="with --url: the provider's vkey, or a file with it")
@json_option
def status(
    directory: Path, public: Path | None, url: str | None, provider: str | None, as_json: bool
) -> None:
    """Show how many of a window's queries the account has used and how many are left.

    The command counts the account's own receipts. With --url it also counts the records in the provider's log, and
    reports records without a receipt in this folder.
    """
    if (public is None) == (url is None) or (url is None) != (provider is None):
        raise click.UsageError("give --window, or --url and --provider")
    asker, log = Account(directory), None
    if public is not None:
        window = Publication.load(public)
    else:
        with client_of(url or "", verifier_key(provider or "", field="--provider")) as client:
            window = client.publication()
            log = client.recorded(asker.account, window)
    window.check()
    used, granted, pending = asker.used(window)
    unknown = [] if log is None else asker.unknown(window, log.queries)
    used = used + len(unknown)
    value: dict[str, Json] = {
        "account": asker.account, "window": window.parsed_header().window, "used": used,
        "left": max(0, granted - used - pending), "n": granted, "unanswered": int(pending),
    }  # fmt: skip
    lines = [f"{used} of {granted} queries used, {value['left']} left"]
    if pending:
        lines[0] += ", 1 waits for its answer: repeat that query"
    if log is not None:
        value |= {"recorded": len(log.queries), "without_receipt": [*unknown]}
    if unknown:
        value["hint"] = RESTORED
        lines += [
            f"{len(unknown)} of these queries are in the provider's log and have no receipt here: {RESTORED}"
        ]
    emit(value, as_json, lines)


@click.command("names")
@click.argument("directory", type=PATH)
@path_option("--window", "public", help="the window's public folder; without --url no proof is requested")
@click.option("--url", help="the provider's service, for the proof of the open window; needs --provider")
@click.option("--provider", help="with --url: the provider's vkey, or a file with it")
@click.option(
    "--document-column",
    "column",
    help="the metadata field that names the document of a passage; by default the source of files, otherwise a field"
    " that equals the key of each passage",
)
@path_option(
    "--trust",
    help="a trust file; its pins name the verification key behind the proof, for a tenant with circuits",
)
@json_option
@click.pass_context
def names(
    ctx: click.Context,
    directory: Path,
    public: Path | None,
    url: str | None,
    provider: str | None,
    trust: Path | None,
    column: str | None,
    as_json: bool,
) -> None:
    """Check which documents the account's passages of a window belong to.

    Every answer for a tenant with a document table opens the name of each passage's document. The command compares the
    names with the metadata, with one another and with the names in the account's other windows. With --url it also
    requests the proof that the names are those in the document table of the window header, and stores the proof.
    Without a proof for all answers the exit code is 3.
    """
    if (public is None) == (url is None) or (url is None) != (provider is None):
        raise click.UsageError("give --window, or --url and --provider")
    asker, refused = Account(directory), None
    pins = None if trust is None else Trust.load(trust).pins
    if public is not None:
        window = Publication.load(public)
        report = asker.check_names(window, column=column)
        report = report.with_proof(asker.stored_proof(window, asker.passages(window), pins))
    else:
        with client_of(url or "", verifier_key(provider or "", field="--provider")) as client:
            window = client.publication()
            try:
                report = client.names(asker, window, column=column, pins=pins)
            except (RequestRefused, SetupError) as exc:
                # Without the proof the comparison still stands. An error of the comparison itself comes here again.
                report, refused = asker.check_names(window, column=column), exc
    reason = {} if refused is None else {"refused": refused.as_json()}
    emit({**asdict(report), "proved": report.proved, **reason}, as_json, _lines_of(report))
    if refused is not None:
        say(f"no proof: {refused}")
    if not report.proved or report.opened < report.answers:
        ctx.exit(int(ExitCode.UNMET))


_STATED = (
    "the names are those of the rows in the document table; passages of one document share a row, passages of different"
    " documents do not"
)
_PROOFS = {
    "none": f"proved: {_STATED}",
    "ceremony": f"proved: {_STATED}",
    "unsafe": f"proved under an unsafe setup: the maker of the key can forge this proof: {_STATED}",
    "unpinned": "proved under the provider's own setup, which is unsafe, because the provider can forge this proof; pin"
    f" the key of a ceremony with --trust: {_STATED}",
}


def _lines_of(report: NamesReport) -> list[str]:
    documents = "1 document" if report.documents == 1 else f"{report.documents} documents"
    passages = "1 passage" if report.passages == 1 else f"{report.passages} passages"
    windows = ", ".join(map(brief, report.earlier[:20])) + ", .." * (len(report.earlier) > 20)
    lines = [
        f"{report.window}: {passages} of {documents}",
        f"answers with openings: {report.opened} of {report.answers}",
        f"other windows compared: {len(report.earlier)} ({windows or 'none'})",
    ]
    if report.column is not None:
        lines.append(f"the metadata field {brief(report.column)} names the documents")
    if report.undetermined:
        lines.append(
            f"not checked: the metadata of {report.undetermined} passages do not determine their documents"
            " (--document-column names the field)"
        )
    if report.known:
        lines.append(
            f"{counted(report.known, 'document has the name', 'documents have the names')} of other windows; this does"
            " not show that a document has the same row or bit in them"
        )
    lines += [
        f"changed: a passage of {brief(before)} in another window has the text of a passage of {brief(now)}; under"
        " another key a document has another Bernoulli bit"
        for before, now in report.renamed
    ]
    lines += [
        f"equal: a passage of {brief(first)} has the text of a passage of {brief(other)}; if they are copies of one"
        " document, it has two Bernoulli bits"
        for first, other in report.copies
    ]
    lines += [
        f"alike: the keys {brief(first)} and {brief(other)} differ only in case or Unicode form"
        for first, other in report.alike
    ]
    if report.replaced:
        lines.append("the stored proof was damaged, and the command replaced it")
    lines.append(
        _PROOFS[report.setup]
        if report.setup is not None
        else "not proved: the names can differ from those in the document table; --url requests the proof while the"
        " window is open"
    )
    return lines
