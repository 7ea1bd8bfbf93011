"""Accounts that are enrolled together: one checkpoint, one reveal, a beacon entry each, and nothing that is square."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import jcs
from rag_audit.account.account import Account
from rag_audit.attest.state import Places
from rag_audit.attest.window import Window
from rag_audit.cli import main, open
from rag_audit.errors import PolicyError, StoreError
from rag_audit.log.merging import merge_signatures
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import parse_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.records import BeaconEntry, Enrolment, RosterEntry
from rag_audit.models.windowfile import WindowFile
from rag_audit.verify.case import Status
from tests.counting import calls
from tests.window.simulator import QUESTIONS, Service
from tests.window.test_enrolment import finish, verdict

NAMES = ("law-7", "law-8", "law-9")


def lines_of(service: Service, names: Sequence[str] = NAMES) -> list[RosterEntry]:
    for name in names:
        service.accounts[name] = Account.create(service.root / "accounts" / name, name, "law")
    return [service.accounts[name].roster_entry for name in names]


def cosigned(service: Service, window: Window) -> list[str]:
    """What the witnesses reveal over the enrolments that window.json ends with, which they cosign."""
    public, log_key = window.directory / "public", service.key.verifier
    file = WindowFile.load(public)
    entries, last = [jcs(e) for e in file.entries], len(file.entries) - 1
    tree = HashTree(leaf_hash(e) for e in entries)
    path = public / f"checkpoint-{tree.size}.txt"
    for witness in service.witnesses.values():
        known = witness.last(window.header.log)
        assert known is not None
        proof = tree.consistency_path(known[0], tree.size)
        window.admit([str(witness.cosign(path.read_text(), log_key=log_key, consistency=proof))])
    service.clock.advance(1_000)
    merged = merge_signatures([parse_note(path.read_text())])
    return [str(w.reveal(merged, entries[last], log_key=log_key, quorum=2, index=last,
                         witnesses=[x.vkey for x in service.witnesses.values()],
                         path=tree.inclusion_path(last, tree.size)))
            for w in service.witnesses.values()]  # fmt: skip


def drawn_for(window: Window) -> list[int]:
    return [e.entry for e in window.state.entries if isinstance(e, BeaconEntry)]


def test_accounts_enrolled_together_draw_one_beacon(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = service.open(accounts_max=5)
    service.ask(window, "law-1", QUESTIONS["law"][0])
    public = window.directory / "public"
    before = {p.name for p in public.glob("checkpoint-*")}
    created = window.enrol_all(lines_of(service), service.beacon())
    seqs = [e.seq for e in created]
    assert seqs == [seqs[0], seqs[0] + 1, seqs[0] + 2]
    assert {p.name for p in public.glob("checkpoint-*")} - before == {f"checkpoint-{seqs[-1] + 1}.txt"}
    service.ask(window, "medicine-1", QUESTIONS["medicine"][0])  # which the published file is not about
    reveals = cosigned(service, window)
    window.admit(reveals)
    window.admit(reveals)
    assert drawn_for(window) == [0, *seqs] and window.state.waiting == {}
    for name, question in zip(NAMES, QUESTIONS["law"], strict=True):
        service.ask(window, name, question)
    assert len({window.state.beacons[seq] for seq in seqs}) == 1
    result = verdict(service, finish(service, window), monkeypatch)
    assert result.passed, result.deciding
    assert (result.figures["enrolments"], result.figures["enrolments_void_or_unused"]) == (3, 0)


def test_an_account_that_joins_after_the_reveal_has_no_part_in_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its provider knows the value by then: an honest one has none for it, and a verifier takes none of a liar."""
    window = service.open(accounts_max=5)
    source = service.beacon()
    first = window.enrol_all(lines_of(service, NAMES[:1]), source)
    reveals = cosigned(service, window)
    window.admit(reveals)
    late = window.enrol_all(lines_of(service, NAMES[1:2]), source)[0]
    window.admit(reveals)
    assert drawn_for(window) == [0, first[0].seq]
    entry = next(e for e in window.state.entries if isinstance(e, BeaconEntry) and e.entry == first[0].seq)
    signed = window.publisher.open_checkpoint(entry.checkpoint.encode())
    window.publisher._append_beacons(
        [late.seq], "witnesses", bytes.fromhex(entry.value), list(entry.notes), signed
    )
    service.ask(window, NAMES[0], QUESTIONS["law"][0])
    service.ask(window, NAMES[1], QUESTIONS["law"][1])
    result = verdict(service, finish(service, window), monkeypatch)
    assert not result.passed
    wrong = [c for c in result.checks if c.status is not Status.PASS]
    assert wrong[0].id == "ledger.enrolment"
    assert wrong[0].expected == f"a checkpoint of this ledger that contains entry {late.seq}"


def test_all_are_enrolled_or_none(service: Service) -> None:
    with service.open(accounts_max=4) as window:
        lines, before = lines_of(service), window.checkpoint()
        for wrong in (
            lines,
            [lines[0], lines[0]],
            [lines[0], lines[1].model_copy(update={"key": lines[0].key})],
        ):
            with pytest.raises(PolicyError):
                window.enrol_all(wrong, service.beacon())
        assert window.checkpoint() == before
        assert len(window.enrol_all(lines[:2], service.beacon())) == 2


@pytest.mark.parametrize("lost", ["checkpoint", "entries", "beacons"])
def test_enrolments_that_were_interrupted_go_on(
    lost: str, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some entries, before the files that witnesses read, or after some of the beacons."""
    window = service.open(accounts_max=5)
    lines, source, put = lines_of(service), service.beacon(), window.state._put
    written: list[Any] = []

    def failing(*args: Any, **options: Any) -> Any:
        if len(written) == 2:
            written[-1].result()
            window.state.store._failure = StoreError("the disk is full")
        written.append(put(*args, **options))
        return written[-1]

    if lost == "entries":
        monkeypatch.setattr(window.state, "_put", failing)
        with pytest.raises(StoreError):
            window.enrol_all(lines, source)
    else:
        window.enrol_all(lines, source)
    if lost == "beacons":
        reveals = cosigned(service, window)
        monkeypatch.setattr(window.state, "_put", failing)
        with pytest.raises(StoreError):
            window.admit(reveals)
    else:
        for path in (window.directory / "public").glob("checkpoint-[2-9]*.txt"):
            path.unlink()
        (window.directory / "public" / "window.json").unlink(missing_ok=True)
    window.shut()
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        known = list(again.state.enrolled_at)
        assert known == list(NAMES[: 2 if lost == "entries" else 3])
        again.admit(cosigned(service, again))
        assert drawn_for(again) == [0, *again.state.enrolled_at.values()]
        for name in known:
            service.ask(again, name, QUESTIONS["law"][0])


def line(number: int) -> RosterEntry:
    key = SigningKey.generate("a").verifier.public.hex()
    return RosterEntry(account=f"law-{number}", tenant="law", key=key, custody="account")


def test_one_more_account_costs_the_same_however_many_there_are(service: Service) -> None:
    policy = service.policy(accounts_max=10_000)
    few, many = (Places(policy, [line(n) for n in range(10, 10 + size)]) for size in (10, 300))
    one, other = line(1), line(2)
    assert few.without_place([one]) == many.without_place([other]) == {}
    assert calls(lambda: few.take([one])) == calls(lambda: many.take([other]))


def test_twice_as_many_accounts_enrolled_together_take_twice_the_calls(service: Service) -> None:
    with service.open(accounts_max=1_000) as window:
        counts: list[int] = []
        for size in (20, 40, 80):
            lines, source = [line(len(window.state.accounts) + n + 10) for n in range(size)], service.beacon()
            entries: list[Enrolment] = []
            counts.append(calls(lambda: entries.extend(window.enrol_all(lines, source))))  # noqa: B023
            assert len(entries) == size
        # The file that witnesses read has all entries, the earlier ones too: 20, 60 and 140 of them.
        assert counts[2] - counts[1] <= 2.6 * (counts[1] - counts[0])


def test_an_enrolment_alone_is_published_as_before(service: Service, tmp_path: Path) -> None:
    with service.open() as window:
        result = window.enrol(lines_of(service, NAMES[:1])[0], service.beacon())
        public = window.directory / "public"
        assert (public / f"checkpoint-{result.seq + 1}.txt").read_text() == window.checkpoint(result.seq + 1)
        assert WindowFile.load(public).entries[-1] == result.dump()


def test_the_commands_take_many_lines(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    window = service.open(accounts_max=5)
    window.shut()
    lines = [entry.dump() for entry in lines_of(service)]
    one, many, roster = (service.root / name for name in ("one.json", "many.json", "new-roster.json"))
    one.write_text(json.dumps(lines[0]))
    many.write_text(json.dumps(lines[1:]))
    added = CliRunner().invoke(main, ["account", "add", str(roster), str(one), str(many), "--json"])
    assert json.loads(added.stdout) == {"added": 3, "accounts": 3} and json.loads(roster.read_text()) == lines
    again = CliRunner().invoke(main, ["account", "add", str(roster), str(one)])
    assert again.exit_code == 2 and json.loads(roster.read_text()) == lines
    nonces = []
    for member in service.beacon().witnesses:
        nonces += ["--witness", str(service.root / f"{member.name}.json")]
        Path(nonces[-1]).write_text(json.dumps(member.dump()))
    monkeypatch.setattr(
        open, "resume", lambda path: Window.resume(path, key=service.key, clock=service.clock)
    )
    for files, told in (
        ([one, many], {"enrolled": 3, "already": 0}),
        ([roster], {"enrolled": 0, "already": 3}),
    ):
        done = CliRunner().invoke(
            main, ["provider", "enrol", str(window.directory), *map(str, files), *nonces, "--json"]
        )
        assert json.loads(done.stdout) == told, done.output
    assert [e["account"] for e in WindowFile.load(window.directory / "public").entries[-3:]] == list(NAMES)  # type: ignore[index, call-overload]
