"""A window's memory is free while the disk is written, whoever writes; and two who want the same do not both get it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rag_audit.account.account import Account
from rag_audit.attest import publishing
from rag_audit.attest.window import Window
from rag_audit.errors import PolicyError
from rag_audit.log import store as ledger_store
from tests.window.simulator import QUESTIONS, Service


def is_free(window: Window) -> bool:
    """Whether another thread could use the window's memory now."""
    got: list[bool] = []

    def look() -> None:
        got.append(window.state.changed.acquire(blocking=False))
        if got[0]:
            window.state.changed.release()

    other = threading.Thread(target=look)
    other.start()
    other.join()
    return got[0]


def watched(window: Window, seen: list[bool], write: Callable[..., Any]) -> Callable[..., Any]:
    def writing(*args: Any, **options: Any) -> Any:
        seen.append(is_free(window))
        return write(*args, **options)

    return writing


def new_account(service: Service, name: str) -> Account:
    service.accounts[name] = Account.create(service.root / "accounts" / name, name, "law")
    return service.accounts[name]


def before_the_first_append(
    window: Window, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]
) -> None:
    """Let something happen while the window's first entry from now on is on its way to the disk."""
    append, happened = window.state._put, []

    def append_slowly(*args: Any, **options: Any) -> Any:
        if not happened:
            happened.append(True)
            happens()
        return append(*args, **options)

    monkeypatch.setattr(window.state, "_put", append_slowly)


def test_the_memory_is_free_while_the_disk_is_written(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service.open(accounts_max=4) as window:
        seen: list[bool] = []
        for module, name in ((ledger_store.LedgerStore, "_execute"), (publishing, "replace_file")):
            monkeypatch.setattr(module, name, watched(window, seen, getattr(module, name)))
        window.enrol(new_account(service, "late").roster_entry, service.beacon())
        enrolled = len(seen)
        service.ask(window, "law-1", QUESTIONS["law"][0])
        service.finish(window)
        assert 2 <= enrolled < len(seen) and all(seen)


@pytest.mark.parametrize(
    ("accounts_max", "names", "message"),
    [(4, ("late", "late"), None), (3, ("third", "fourth"), "cap")],
    ids=["of one account", "beyond the tenant's cap"],
)
def test_an_enrolment_counts_while_it_is_on_its_way(
    accounts_max: int,
    names: Sequence[str],
    message: str | None,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another enrolment comes while the first is on its way to the disk."""
    with service.open(accounts_max=accounts_max) as window:
        lines = {name: new_account(service, name).roster_entry for name in set(names)}
        refused = []

        def enrol_the_other() -> None:
            with pytest.raises(PolicyError, match=message) as caught:
                window.enrol(lines[names[1]], service.beacon())
            refused.append(caught.value)

        before_the_first_append(window, monkeypatch, enrol_the_other)
        window.enrol(lines[names[0]], service.beacon())
        assert len(refused) == 1 and [*window.state.enrolled_at] == [names[0]]


def test_nothing_follows_what_the_closing_record_is_about(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An enrolment that is on its way when the window closes is waited for."""
    with service.open(accounts_max=4) as window:
        account, beacon = new_account(service, "late").roster_entry, service.beacon()
        trailer = threading.Thread(target=lambda: window.close())

        def close() -> None:
            trailer.start()
            trailer.join(2)  # time to write its record, if it did not wait

        before_the_first_append(window, monkeypatch, close)
        window.enrol(account, beacon)
        trailer.join()
        assert [e.type for e in window.state.entries[-2:]] == ["enrolment", "trailer"]
        assert window.state.entries[-1].enrolments == 1  # type: ignore[union-attr]
