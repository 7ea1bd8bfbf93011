"""`rag-audit account request`, `approve` and `status`: enrolment by the account's own request, and the account's
used queries."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit._internal.canonical import Json, read_json
from rag_audit._internal.errors import RagAuditError, SchemaError
from rag_audit.account.account import RESTORED, Account
from rag_audit.cli.common import PATH, client_of, emit, json_option, verifier_key
from rag_audit.cli.options import flag_option, line, path_option
from rag_audit.models.enrolling import MAX_REQUEST_BYTES, EnrolmentRequest
from rag_audit.models.publication import Publication
from rag_audit.models.roster import admit, load_roster, signed_by_roster


@click.command("request")
@click.argument("directory", type=PATH)
@click.option(
    "--origin",
    callback=line,
    help="the provider's ledger name, as its openings have it; not needed with --url",
)
@click.option(
    "--window",
    help="the window that the account wants to be in; with --url the next one by default",
)
@flag_option("--rotate", help="make a new key, which replaces the account's key from that window on")
@click.option("--url", help="send the request to the provider's service, and print what became of it")
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
    """Print a signed request to be put on a provider's roster, for `account approve`; or send it with --url.

    With --url the same command says later what became of the request. With --rotate the old key signs the new one. Both
    are kept: each signs in the windows whose roster has it. A request that got lost is made again without --rotate.
    """
    asker = Account(directory)
    if url is None and (origin is None or window is None):
        raise click.UsageError("give --origin and --window, or --url")
    if (url is None) != (provider is None) or (url is not None and origin is not None):
        raise click.UsageError("--url needs --provider, and takes the place of --origin")
    if url is not None:
        with client_of(url, verifier_key(provider or "", field="--provider")) as client:
            client.enrolments()  # before a key is made in vain
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
    made = EnrolmentRequest.sign(
        asker.roster_entry,
        asker.keys.newest,
        origin=origin or "",
        window=window or "",
        previous=asker.keys.before,
    )
    click.echo(made.canonical().decode())


@click.command("approve")
@click.argument("roster", type=PATH)
@click.argument("folder", type=PATH)
@click.option("--origin", required=True, callback=line, help="the provider's ledger name")
@click.option("--window", required=True, help="the id of the window that the roster is for")
@click.option("--account", "named", multiple=True, help="approve this account's request; repeat")
@flag_option("--all", "every", help="approve every request that is signed as it should be")
@click.option(
    "--lost", multiple=True, help="approve this account's request though it has lost its old key; repeat"
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
    """Put the approved requests of FOLDER (one file each) on the ROSTER of the next window.

    Without --account, --all or --lost it says what waits, and changes nothing. A request that is not signed as it
    should be, or is for another provider or window, is named and never approved.
    """
    if not folder.is_dir():
        raise SchemaError("there is no folder of requests", field=str(folder))
    found: dict[str, dict[str, EnrolmentRequest]] = {}
    bad: dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            read = EnrolmentRequest.parse(read_json(path, max_bytes=MAX_REQUEST_BYTES), field=path.name)
            read.check(origin=origin, window=window)
        except RagAuditError as exc:
            bad[path.name] = str(exc)
            continue
        found.setdefault(read.account, {}).setdefault(read.digest(), read)
    if unknown := sorted({*named, *lost} - found.keys()):
        raise SchemaError("there is no request of this account that can be approved", field=unknown[0])
    lines = {line.account: line for line in load_roster(roster)}
    chosen: list[EnrolmentRequest] = []
    for name, requests in found.items():
        if not (every or name in named or name in lost):
            continue
        candidates = list(requests.values())
        if name not in lost:
            # If the roster's key signed a request, this request is the account's.
            candidates = [r for r in candidates if signed_by_roster(r, lines.get(name))] or candidates
        if len(candidates) > 1:
            raise SchemaError("several requests are for one account", field=name,
                              found=", ".join(r.key for r in candidates),
                              hint="remove the files that are not meant")  # fmt: skip
        chosen += candidates
    added, replaced = admit(roster, chosen, lost=lost) if chosen else ([], [])
    accounts = {r.account for r in chosen}
    waiting = [name for name in found if name not in accounts]
    still = [request for name in waiting for request in found[name].values()]
    value = {"added": added, "replaced": replaced, "waiting": waiting, "refused": bad}
    words = [f"{len(added)} added, {len(replaced)} replaced, {len(waiting)} waiting, {len(bad)} refused"]
    words += [f"waiting: {r.account}, {r.tenant}, key {r.key}" for r in still]
    emit(value, as_json, [*words, *(f"refused: {name}: {why}" for name, why in bad.items())])


@click.command("status")
@click.argument("directory", type=PATH)
@path_option("--window", "public", help="the window's public folder; not needed with --url")
@click.option("--url", help="the provider's service, which says what window is open; needs --provider")
@click.option("--provider", help="with --url: the provider's vkey, or a file with it")
@json_option
def status(
    directory: Path, public: Path | None, url: str | None, provider: str | None, as_json: bool
) -> None:
    """Say how many of a window's queries the account has used and how many are left: from its own receipts, and with
    --url from the provider's log too, which shows whether this folder lacks receipts of queries that were asked.
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
        "account": asker.account, "window": window.parsed_opening().window, "used": used,
        "left": max(0, granted - used - pending), "n": granted, "unanswered": int(pending),
    }  # fmt: skip
    lines = [f"{used} of {granted} queries used, {value['left']} left"]
    if pending:
        lines[0] += ", 1 waits for its answer: repeat it"
    if log is not None:
        value |= {"recorded": len(log.queries), "without_receipt": [*unknown]}
    if unknown:
        value["hint"] = RESTORED
        lines += [f"{len(unknown)} of them are in the provider's log and have no receipt here: {RESTORED}"]
    emit(value, as_json, lines)
