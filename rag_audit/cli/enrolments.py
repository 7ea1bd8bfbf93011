"""`rag-audit enrolments`: the requests that accounts sent to a service, and the provider's decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rag_audit.cli.common import PATH, Group, emit, json_option
from rag_audit.encoding.canonical import read_text
from rag_audit.errors import PolicyError, SchemaError, SetupError
from rag_audit.formats.enrolling import EnrolmentRequest
from rag_audit.formats.policy import Policy
from rag_audit.parties.provider.enrolments import EnrolmentBook, Kept
from rag_audit.parties.provider.places import Places
from rag_audit.parties.provider.running.config import RunConfig
from rag_audit.parties.provider.window import now_ms
from rag_audit.parties.roster import admit, load_roster

_SQLITE = b"SQLite format 3\0"
MAX_NAMES_BYTES = 16 << 20


@click.group(cls=Group)
def enrolments() -> None:
    """List, approve and reject the enrolment requests that a service keeps, while it runs."""


@dataclass(frozen=True)
class Desk:
    """Where a provider keeps requests and roster.

    :param policy: what the roster has to fit, where a configuration names it
    """

    book: Path
    roster: Path | None
    policy: Policy | None

    @classmethod
    def of(cls, path: Path, roster: Path | None) -> Desk:
        """What a configuration names, or a book by itself.

        :raises SetupError: it is neither, or the configuration keeps no requests
        """
        try:
            with path.open("rb") as file:
                is_book = file.read(len(_SQLITE)) == _SQLITE
        except OSError as exc:
            raise SetupError("cannot be read", field=str(path), expected="provider.toml, or a book of requests",
                             found=exc.strerror) from exc  # fmt: skip
        if is_book:
            return cls(path, roster, None)
        config = RunConfig.load(path)
        if config.told.enrolment is None:
            raise SetupError("the configuration keeps no enrolment requests", field=str(path),
                             hint='[enrolment] requests = "enrolments.sqlite"')  # fmt: skip
        policy = config.policy(f"{config.told.schedule.prefix}1", now_ms())
        return cls(
            config.path(config.told.enrolment.requests), roster or config.path(config.told.roster), policy
        )


def _choosing(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options by which requests are chosen."""
    for option in (
        click.option(
            "--all", "every", is_flag=True, help="every request of which there is one alone for its account"
        ),
        click.option("--from", "file", type=PATH, help="the accounts that a file names, one a line"),
        click.option("--key", "keys", multiple=True, help="the request for this key; repeat"),
        click.option("--account", "names", multiple=True, help="this account's request; repeat"),
        click.option("--window", help="only requests for this window"),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class Choice:
    """Which requests a person means."""

    window: str | None
    names: tuple[str, ...]
    keys: tuple[str, ...]
    file: Path | None
    every: bool

    def of(self, book: EnrolmentBook) -> list[EnrolmentRequest]:
        """Those that wait.

        :raises SchemaError: one is not there, or two are for one account
        """
        waiting = [kept.request for kept in book.requests(window=self.window)]
        counts = Counter(request.account for request in waiting)
        names = dict.fromkeys(self.names)
        if self.file is not None:
            names |= dict.fromkeys(read_text(self.file, max_bytes=MAX_NAMES_BYTES).split())
        known = {request.key for request in waiting}
        if missing := next((n for n in names if n not in counts), None) or next(
            (k for k in self.keys if k not in known), None
        ):
            raise SchemaError("no such request waits", field=missing)
        if twice := next((name for name in names if counts[name] > 1), None):
            keys = [request.key for request in waiting if request.account == twice]
            raise SchemaError("several requests are for one account", field=twice, found=", ".join(keys),
                              hint="approve one of them by --key, once you know whose it is")  # fmt: skip
        return [
            r for r in waiting
            if r.key in self.keys or r.account in names or (self.every and counts[r.account] == 1)
        ]  # fmt: skip


@enrolments.command("list")
@click.argument("provider", type=PATH)
@click.option("--window", help="only requests for this window")
@click.option(
    "--status", type=click.Choice(["pending", "approved", "enrolled", "rejected", "all"]), default="pending",
    show_default=True, help="where they stand",
)  # fmt: skip
@json_option
def list_(provider: Path, window: str | None, status: Any, as_json: bool) -> None:
    """List requests. PROVIDER is provider.toml, or the book itself."""
    with EnrolmentBook(Desk.of(provider, None).book) as book:
        found = book.requests(None if status == "all" else status, window)
    rows = [_row(kept) for kept in found]
    lines = [
        f"{r['account']}: {r['tenant']}, for {r['window']}, key {r['key']}"
        + (", replaces a key" if r["replaces"] else "") + ("" if status == "pending" else f", {r['status']}")
        + (f" at {r['seq']}" if r["seq"] is not None else "") + (f": {r['reason']}" if r["reason"] else "")
        for r in rows
    ]  # fmt: skip
    emit({"requests": rows}, as_json, lines or "(no request)")


def _row(kept: Kept) -> dict[str, Any]:
    request = kept.request
    return {"account": request.account, "tenant": request.tenant, "window": request.window, "key": request.key,
            "replaces": request.previous, "status": kept.status, "reason": kept.reason, "seq": kept.seq,
            "received": kept.received}  # fmt: skip


@enrolments.command("approve")
@click.argument("provider", type=PATH)
@_choosing
@click.option(
    "--lost", multiple=True, help="approve this account's request though it has lost its old key; repeat"
)
@click.option("--roster", type=PATH, help="the roster, where PROVIDER is a book")
@json_option
def approve(
    provider: Path,
    lost: tuple[str, ...],
    roster: Path | None,
    as_json: bool,
    names: tuple[str, ...],
    **chosen: Any,
) -> None:
    """Put accounts on the roster of the windows to come, all that are named or none.

    A running `rag-audit run` writes those that asked for the open window to its log as well. What the request does not
    say is who the account is: that is what the approval is for.
    """
    desk = Desk.of(provider, roster)
    if desk.roster is None:
        raise click.UsageError("--roster says where the lines go")
    with EnrolmentBook(desk.book) as book:
        requests = Choice(names=(*names, *lost), **chosen).of(book)
        if desk.policy is not None:
            _fits(desk.policy, desk.roster, requests)
        added, replaced = admit(desk.roster, requests, lost=lost) if requests else ([], [])
        count = book.decide(requests, "approved")
    value = {"approved": count, "added": len(added), "replaced": len(replaced)}
    emit(value, as_json, f"{count} approved: {len(added)} added, {len(replaced)} keys replaced")


def _fits(policy: Policy, roster: Path, requests: Sequence[EnrolmentRequest]) -> None:
    """Refuse what the policy has no place for: a roster that does not fit it keeps the next window from opening."""
    known = {line.account: line for line in load_roster(roster)}
    try:
        Places(policy, known.values()).take([r.roster_entry() for r in requests if r.account not in known])
    except PolicyError as exc:
        exc.hint = "reject it, approve fewer, or raise accounts_max in the policy of the windows to come"
        raise


@enrolments.command("reject")
@click.argument("provider", type=PATH)
@_choosing
@click.option("--because", default="", help="the reason, which the account is shown")
@json_option
def reject(provider: Path, because: str, as_json: bool, **chosen: Any) -> None:
    """Reject requests; an account that asks anew has to make another one, with another key or for another window."""
    with EnrolmentBook(Desk.of(provider, None).book) as book:
        count = book.decide(Choice(**chosen).of(book), "rejected", because)
    emit({"rejected": count}, as_json, f"{count} rejected")
