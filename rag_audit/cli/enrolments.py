"""`rag-audit provider enrolments`: the requests that accounts sent to a service, and the provider's decisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from rag_audit._internal.canonical import read_text
from rag_audit._internal.clock import now_ms
from rag_audit._internal.errors import PolicyError, SchemaError, SetupError
from rag_audit.attest.state import Places
from rag_audit.cli.common import PATH, Group, emit, json_option
from rag_audit.cli.options import choice_option, flag_option, gathered, path_option
from rag_audit.models.enrolling import EnrolmentRequest
from rag_audit.models.policy import Policy
from rag_audit.models.records import RosterEntry
from rag_audit.models.roster import admit, load_roster, signed_by_roster
from rag_audit.service.enrolment_book import EnrolmentBook, StoredRequest
from rag_audit.service.running.config import RunConfig

_SQLITE = b"SQLite format 3\0"
MAX_NAMES_BYTES = 16 << 20
SHOWN = 3
"""Maximum keys that an error names."""


@click.group(cls=Group)
def enrolments() -> None:
    """List, approve and reject the enrolment requests of a service, also while it runs."""


@dataclass(frozen=True)
class EnrolmentInputs:
    """The files of a provider's requests and roster.

    :param policy: the policy that the roster has to fit, if a configuration names one
    """

    book: Path
    roster: Path | None
    policy: Policy | None

    def lines(self) -> dict[str, RosterEntry] | None:
        """The roster by account, or None if no roster is named."""
        return None if self.roster is None else {line.account: line for line in load_roster(self.roster)}

    @classmethod
    def of(cls, path: Path, roster: Path | None) -> EnrolmentInputs:
        """The files that a configuration names, or a book without a configuration.

        :raises SetupError: the file is neither, or the configuration stores no requests
        """
        try:
            with path.open("rb") as file:
                is_book = file.read(len(_SQLITE)) == _SQLITE
        except OSError as exc:
            raise SetupError("the file cannot be read", field=str(path), expected="provider.toml, or a book of"
                " requests",
                             actual=exc.strerror) from exc  # fmt: skip
        if is_book:
            return cls(path, roster, None)
        config = RunConfig.load(path)
        if config.told.enrolment is None:
            raise SetupError("the configuration does not store enrolment requests", field=str(path),
                             hint='add [enrolment] requests = "enrolments.sqlite" to the configuration')  # fmt: skip
        policy = config.policy(f"{config.told.schedule.prefix}1", now_ms())
        return cls(
            config.path(config.told.enrolment.requests), roster or config.path(config.told.roster), policy
        )


@dataclass(frozen=True)
class Choice:
    """The requests that a person chose."""

    window: str | None
    names: tuple[str, ...]
    keys: tuple[str, ...]
    file: Path | None
    every: bool

    def of(
        self,
        book: EnrolmentBook,
        roster: Mapping[str, RosterEntry] | None = None,
        lost: Collection[str] = (),
    ) -> list[EnrolmentRequest]:
        """The chosen requests among the waiting ones.

        Any party can ask under an account's id. With a roster, if the account's key there signed requests, only these
        are candidates for a name or for `--all`. If an account has a roster line, `--all` takes no other request for
        it, since the roster would refuse that request. Without a roster, every request is a candidate.

        :param roster: the roster by account, for approving requests
        :param lost: accounts with a key on the roster that another party may have; the signature of this key then has
            no weight
        :raises SchemaError: a request is missing, or two are for one account
        """
        waiting = [kept.request for kept in book.requests(window=self.window)]
        lines = roster or {}
        of: dict[str, list[EnrolmentRequest]] = {}
        signed: dict[str, list[EnrolmentRequest]] = {}
        for request in waiting:
            of.setdefault(request.account, []).append(request)
            if request.account not in lost and signed_by_roster(request, lines.get(request.account)):
                signed.setdefault(request.account, []).append(request)
        candidates = {**of, **signed}
        names = dict.fromkeys(self.names)
        if self.file is not None:
            names |= dict.fromkeys(read_text(self.file, max_bytes=MAX_NAMES_BYTES).split())
        known = {request.key for request in waiting}
        if missing := next((n for n in names if n not in of), None) or next(
            (k for k in self.keys if k not in known), None
        ):
            raise SchemaError("no such request is waiting", field=missing)
        keyed = {request.account for request in waiting if request.key in self.keys}
        if twice := next((n for n in names if len(candidates[n]) > 1 and n not in keyed), None):
            keys = [request.key for request in candidates[twice]]
            shown = ", ".join(keys[:SHOWN]) + (" and others" if len(keys) > SHOWN else "")
            actual = f"{len(keys)} requests, for the keys {shown}"
            raise SchemaError("several requests are for one account", field=twice, actual=actual,
                              hint="find out which key belongs to the account, and choose its request by"
                                   " --key")  # fmt: skip
        single = {
            requests[0].digest() for name, requests in candidates.items() if len(requests) == 1 and name not in keyed
            and (name in names or (self.every and (name in signed or name not in lines)))
        }  # fmt: skip
        return [r for r in waiting if r.key in self.keys or r.digest() in single]


_choosing = gathered(
    "chosen",
    Choice,
    click.option("--window", help="only requests for this window"),
    click.option("--account", "names", multiple=True, help="this account's request; repeat"),
    click.option("--key", "keys", multiple=True, help="the request for this key; repeat"),
    path_option("--from", "file", help="the accounts in a file, one a line"),
    flag_option(
        "--all",
        "every",
        help="for each account the only request with a signature of the roster's key, or its only request if"
        " the account has no roster line",
    ),
)
"""The options for choosing requests."""


def _signed(kept: StoredRequest, roster: Mapping[str, RosterEntry] | None) -> bool:
    """Whether the account's key on the roster signed a request. Without the present roster, the function uses the
    roster from the time of the request."""
    if roster is None:
        return kept.signed
    return signed_by_roster(kept.request, roster.get(kept.request.account))


@enrolments.command("list")
@click.argument("provider", type=PATH)
@click.option("--window", help="only requests for this window")
@choice_option(
    "--status",
    choices=["pending", "approved", "enrolled", "rejected", "all"],
    default="pending",
    help="the state of the requests",
)
@json_option
def list_(provider: Path, window: str | None, status: Any, as_json: bool) -> None:
    """List requests. PROVIDER is provider.toml, or the book itself."""
    inputs = EnrolmentInputs.of(provider, None)
    with EnrolmentBook(inputs.book) as book:
        listed = book.requests(None if status == "all" else status, window)
    roster = inputs.lines()
    rows = [_row(kept, roster) for kept in listed]
    lines = [
        f"{r['account']}: {r['tenant']}, for {r['window']}, key {r['key']}"
        + _replaces(r) + ("" if status == "pending" else f", {r['status']}")
        + (f" at {r['seq']}" if r["seq"] is not None else "") + (f": {r['reason']}" if r["reason"] else "")
        for r in rows
    ]  # fmt: skip
    emit({"requests": rows}, as_json, lines or "(no request)")


def _replaces(row: Mapping[str, Any]) -> str:
    if row["replaces"] is None:
        return ""
    if row["status"] == "pending" and not row["signed"]:
        return ", replaces a key that the roster does not have for this account"
    return ", replaces a key"


def _row(kept: StoredRequest, roster: Mapping[str, RosterEntry] | None) -> dict[str, Any]:
    request = kept.request
    return {"account": request.account, "tenant": request.tenant, "window": request.window, "key": request.key,
            "replaces": request.previous, "signed": _signed(kept, roster), "status": kept.status,
            "reason": kept.reason, "seq": kept.seq, "received": kept.received}  # fmt: skip


@enrolments.command("approve")
@click.argument("provider", type=PATH)
@_choosing
@click.option(
    "--lost", multiple=True, help="approve this account's request though it has lost its old key; repeat"
)
@path_option("--roster", help="the roster, if PROVIDER is a book")
@json_option
def approve(
    provider: Path, chosen: Choice, lost: tuple[str, ...], roster: Path | None, as_json: bool
) -> None:
    """Add the named accounts to the roster of future windows, all of them or none.

    A running `rag-audit run` also enrols the accounts with a request for the open window. A request does not prove the
    identity of an account, so check the identity before you approve the request.
    """
    inputs = EnrolmentInputs.of(provider, roster)
    if inputs.roster is None:
        raise click.UsageError("name the roster for the lines with --roster")
    with EnrolmentBook(inputs.book) as book:
        requests = replace(chosen, names=(*chosen.names, *lost)).of(book, inputs.lines(), lost)
        if inputs.policy is not None:
            _fits(inputs.policy, inputs.roster, requests)
        added, replaced = admit(inputs.roster, requests, lost=lost) if requests else ([], [])
        count = book.decide(requests, "approved")
    value = {"approved": count, "added": len(added), "replaced": len(replaced)}
    emit(value, as_json, f"{count} approved: {len(added)} added, {len(replaced)} keys replaced")


def _fits(policy: Policy, roster: Path, requests: Sequence[EnrolmentRequest]) -> None:
    """Refuse requests that exceed the policy: a roster that does not fit the policy would prevent the next window
    from opening."""
    known = {line.account: line for line in load_roster(roster)}
    try:
        Places(policy, known.values()).take([r.roster_entry() for r in requests if r.account not in known])
    except PolicyError as exc:
        exc.hint = "reject the request, approve fewer requests, or raise accounts_max in the policy of future windows"
        raise


@enrolments.command("reject")
@click.argument("provider", type=PATH)
@_choosing
@click.option(
    "--newcomers-of", "owners", multiple=True,
    help="every request with this account's id and without a signature of the roster's key; repeat",
)  # fmt: skip
@click.option("--because", default="", help="the reason, which the account can read")
@json_option
def reject(provider: Path, chosen: Choice, owners: tuple[str, ...], because: str, as_json: bool) -> None:
    """Reject requests. A rejected account has to send another request, with another key or for another window."""
    inputs = EnrolmentInputs.of(provider, None)
    with EnrolmentBook(inputs.book) as book:
        requests = chosen.of(book)
        if owners:
            lines = inputs.lines()
            requests += [
                kept.request for kept in book.requests(window=chosen.window)
                if kept.request.account in owners and not _signed(kept, lines)
            ]  # fmt: skip
        count = book.decide(requests, "rejected", because)
    emit({"rejected": count}, as_json, f"{count} rejected")
