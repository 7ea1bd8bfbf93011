"""Accounts that ask to be enrolled, replace their key, or have lost it; and what they have used of a window."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit.account.account import Account
from rag_audit.cli import main
from rag_audit.cli.open import previous_window
from rag_audit.errors import SchemaError, SignatureError
from rag_audit.models.enrolling import EnrolmentRequest
from rag_audit.models.publication import Publication
from rag_audit.models.requests import Answer
from rag_audit.models.roster import admit, load_roster
from tests.window.simulator import ORIGIN, QUESTIONS, Service

NEXT = "w-2"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def requested(account: Account, folder: Path, *options: str, window: str = NEXT) -> Path:
    """A request in the provider's folder."""
    done = run("account", "request", account.directory, "--origin", ORIGIN, "--window", window, *options)
    assert done.exit_code == 0, done.output
    folder.mkdir(exist_ok=True)
    path = folder / f"{account.account}.json"
    path.write_text(done.stdout)
    return path


def read(path: Path) -> EnrolmentRequest:
    return EnrolmentRequest.parse(json.loads(path.read_text()), field=path.name)


def approve(root: Path, *options: str) -> Any:
    done = run("account", "approve", root / "roster.json", root / "requests", "--origin", ORIGIN,
               "--window", NEXT, "--json", *options)  # fmt: skip
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_requests_wait_until_they_are_approved(tmp_path: Path) -> None:
    accounts = [Account.create(tmp_path / name, name, "law") for name in ("a", "b", "c")]
    for account in accounts[:2]:
        requested(account, tmp_path / "requests")
    requested(accounts[2], tmp_path / "requests", window="w-1")
    waits = approve(tmp_path)
    assert (waits["waiting"], list(waits["refused"])) == (["a", "b"], ["c.json"])
    assert not (tmp_path / "roster.json").exists()
    assert approve(tmp_path, "--account", "b")["added"] == ["b"]
    assert approve(tmp_path, "--all")["added"] == ["a"]
    assert approve(tmp_path, "--all")["added"] == []
    assert load_roster(tmp_path / "roster.json") == [a.roster_entry for a in (accounts[1], accounts[0])]
    done = run("account", "approve", tmp_path / "roster.json", tmp_path / "requests", "--origin", ORIGIN,
               "--window", NEXT, "--account", "c")  # fmt: skip
    assert done.exit_code == 2 and "this account has no request" in done.stderr


@pytest.mark.parametrize(
    "change",
    [{"key": "11" * 32}, {"tenant": "medicine"}, {"account": "b"}, {"window": "w-3"}, {"origin": "other"},
     {"previous": "22" * 32}, {"previous": None, "previous_sig": None}, {"previous_sig": None}],
    ids=lambda c: " ".join(c),
)  # fmt: skip
def test_a_changed_request_is_not_its_signers(tmp_path: Path, change: dict[str, str | None]) -> None:
    account = Account.create(tmp_path / "a", "a", "law")
    account.keys.renew("a")
    result = EnrolmentRequest.sign(account.roster_entry, account.keys.newest, origin=ORIGIN, window=NEXT,
                                 previous=account.keys.before)  # fmt: skip
    result.check(origin=ORIGIN, window=NEXT)
    changed = result.model_copy(update=change)
    with pytest.raises(SignatureError):
        changed.check(origin=changed.origin, window=changed.window)


def test_a_key_is_replaced_by_who_has_the_old_one_only(tmp_path: Path) -> None:
    roster = tmp_path / "roster.json"
    account = Account.create(tmp_path / "a", "a", "law")
    admit(roster, [read(requested(account, tmp_path / "requests"))])
    first = account.roster_entry.key
    thief = Account.create(tmp_path / "thief", "a", "law")
    stolen = read(requested(thief, tmp_path / "requests", "--rotate"))
    stolen.check(origin=ORIGIN, window=NEXT)  # signed well, by keys of its own
    for request in (stolen, stolen.model_copy(update={"tenant": "medicine"})):
        with pytest.raises(SchemaError):
            admit(roster, [request])
    assert [line.key for line in load_roster(roster)] == [first]
    requested(account, tmp_path / "requests", "--rotate")
    assert approve(tmp_path, "--all")["replaced"] == ["a"]
    assert (
        [line.key for line in load_roster(roster)] == [Account(account.directory).roster_entry.key] != [first]
    )
    # The account loses both: the provider vouches for whoever asks now.
    other = Account.create(tmp_path / "new", "a", "law")
    requested(other, tmp_path / "requests")
    assert approve(tmp_path, "--lost", "a")["replaced"] == ["a"]
    assert load_roster(roster) == [other.roster_entry]


def test_a_key_is_one_accounts(tmp_path: Path) -> None:
    one = Account.create(tmp_path / "a", "a", "law")
    requests = [
        EnrolmentRequest.sign(one.roster_entry.model_copy(update={"account": name}), one.keys.newest,
                              origin=ORIGIN, window=NEXT) for name in ("a", "b")
    ]  # fmt: skip
    with pytest.raises(SchemaError, match="the key is already on the roster"):
        admit(tmp_path / "roster.json", requests)
    assert not (tmp_path / "roster.json").exists()


def test_each_key_signs_in_the_windows_whose_roster_has_it(tmp_path: Path) -> None:
    service = Service(tmp_path)
    account = service.accounts["law-1"]
    with service.open() as window:
        public = window.directory / "public"
        service.ask(window, "law-1", QUESTIONS["law"][0])
        requested(account, tmp_path / "requests", "--rotate")
        service.accounts["law-1"] = account = Account(account.directory)
        assert isinstance(service.ask(window, "law-1", QUESTIONS["law"][1]), Answer)
        shown = run("account", "status", account.directory, "--window", public, "--json")
        assert json.loads(shown.stdout) == {"account": "law-1", "window": "w-1", "used": 2, "left": 1, "n": 3,
                                            "unanswered": 0}  # fmt: skip
        account.request(Publication.load(public), QUESTIONS["law"][2])
        assert account.used(Publication.load(public)) == (2, 3, True)
        service.clock.now = window.policy.closes_at
        service.finish(window)
        before = previous_window(public, "w-2")
    with service.open("second", previous=before, window="w-2", opens_at=service.clock() + 10_000,
                      closes_at=service.clock() + 3_600_000) as window:  # fmt: skip
        line = next(r for r in window.context.commitment.roster if r.account == "law-1")
        assert (
            line.key == account.keys.newest.verifier.public.hex() != account.keys.before.verifier.public.hex()
        )  # type: ignore[union-attr]
        assert isinstance(service.ask(window, "law-1", QUESTIONS["law"][0]), Answer)
