"""The ledger in a real PostgreSQL server: what the file promises, with servers and connections killed under it."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any, TextIO

import psycopg
import pytest

from rag_audit.errors import EncodingError, SchemaError, SizeError, StoreError, VersionError
from rag_audit.log import place
from rag_audit.log.appending import MAX_ENTRY_BYTES, AppendResult, Ledger, SlotUsed
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.postgres import PostgresLedger, read_postgres
from rag_audit.log.store import LedgerStore
from tests.child import check_ledger, ended, started
from tests.ledger.appends import ACCOUNTS, KILLED, ROUNDS, Refused, append_in_threads, one_commit, refuse
from tests.postgres import Cluster, cluster


@pytest.fixture(scope="module")
def database() -> Iterator[Cluster]:
    with cluster(durable=True) as result:
        yield result


@pytest.fixture
def ledger(database: Cluster) -> tuple[str, str]:
    return database.address, token_hex(16)


def fill(store: Ledger, count: int) -> list[bytes]:
    bodies = [f"entry {i}".encode() for i in range(count)]
    futures = [
        store.append(body, slot=("a", i + 1), private=f"secret {i}".encode()) for i, body in enumerate(bodies)
    ]
    assert [f.result().index for f in futures] == list(range(count))
    return bodies


def test_entries_come_back_in_order_and_outlive_the_store(ledger: tuple[str, str]) -> None:
    with PostgresLedger(*ledger) as store:
        bodies = fill(store, 600)
        assert store.append(lambda index: b"index %d" % index).result() == AppendResult(
            600, leaf_hash(b"index 600")
        )
    bodies.append(b"index 600")
    with PostgresLedger(*ledger) as store:
        assert len(store) == 601 and list(store.entries()) == bodies
        assert store.entry(7) == b"entry 7"
        assert (store.private(7), store.private(600), store.private(999)) == (b"secret 7", None, None)
        assert (store.slot("a", 8), store.slot("a", 9999), store.slot("b", 1)) == (7, None, None)
        with pytest.raises(EncodingError, match="no such"):
            store.entry(601)
        rows = read_postgres(*ledger)
    assert [body for body, _ in rows] == bodies and rows[3][1] == b"secret 3"


def test_a_slot_serves_one_record_and_a_refusal_costs_others_nothing(ledger: tuple[str, str]) -> None:
    with PostgresLedger(*ledger) as store:
        with one_commit(store) as futures:
            futures += [store.append(b"x%d" % n, slot=("a", 1)) for n in range(3)]
            futures += [store.append(refuse, slot=("a", 2)), store.append(bytes(MAX_ENTRY_BYTES + 1))]
            futures += [store.append(b"last", slot=("b", 1))]
        result = [f.exception() or f.result().index for f in futures]
        assert [f if isinstance(f, int) else type(f) for f in result] == [
            0,
            1,
            SlotUsed,
            SlotUsed,
            Refused,
            SizeError,
            2,
        ]
        assert result[2].index == 1  # type: ignore[union-attr]
        assert list(store.entries()) == [b"first", b"x0", b"last"]


def test_one_process_writes_and_is_named_to_others(ledger: tuple[str, str]) -> None:
    with PostgresLedger(*ledger) as store:
        store.append(b"x").result()
        with pytest.raises(StoreError, match="another process writes") as caught:
            PostgresLedger(*ledger)
        assert f"process {os.getpid()}" in str(caught.value.actual)
    with PostgresLedger(*ledger) as store:
        assert list(store.entries()) == [b"x"]


def test_a_writer_without_its_lock_commits_nothing(ledger: tuple[str, str]) -> None:
    store = PostgresLedger(*ledger)
    store.append(b"x", slot=("a", 1)).result()
    store._db.execute("SELECT pg_advisory_unlock_all()")  # as a pooler does between sessions
    with pytest.raises(StoreError, match="could not be written") as caught:
        store.append(b"y", slot=("a", 2)).result()
    assert "no longer the ledger's writer" in str(caught.value.actual)
    assert store.failure is not None
    store.close()
    assert [body for body, _ in read_postgres(*ledger)] == [b"x"]


def test_a_writer_that_was_replaced_commits_nothing(ledger: tuple[str, str]) -> None:
    old = PostgresLedger(*ledger)
    old.append(b"x").result()
    old._db.execute("SELECT pg_advisory_unlock_all()")
    with PostgresLedger(*ledger) as new:
        new.append(b"y").result()
    old._db.execute("SELECT pg_advisory_lock(%s)", (old._key,))  # a session that has the lock again
    with pytest.raises(StoreError, match="could not be written"):
        old.append(b"z").result()
    old.close()
    assert [body for body, _ in read_postgres(*ledger)] == [b"x", b"y"]


ALTERATIONS = {
    "body": "UPDATE entry SET body = 'forged' WHERE idx = 3",
    "account": "UPDATE entry SET account = 'b' WHERE idx = 3",
    "private dropped": "UPDATE entry SET private = NULL WHERE idx = 3",
    "slot dropped": "UPDATE entry SET account = NULL, i = NULL WHERE idx = 3",
    "row dropped": "DELETE FROM entry WHERE idx = 3",
    "moved": "UPDATE entry SET idx = 77 WHERE idx = 3",
}


@pytest.mark.parametrize("statement", ALTERATIONS.values(), ids=ALTERATIONS.keys())
def test_an_altered_row_is_named(ledger: tuple[str, str], statement: str) -> None:
    with PostgresLedger(*ledger) as store:
        fill(store, 6)
        store._db.execute(statement)  # type: ignore[call-overload]
    for read in (PostgresLedger, read_postgres):
        with pytest.raises(StoreError, match="entry 3"):
            read(*ledger)


def test_a_later_format_is_refused(ledger: tuple[str, str]) -> None:
    with PostgresLedger(*ledger) as store:
        store._db.execute("UPDATE writer SET format = 2")
    with pytest.raises(VersionError):
        PostgresLedger(*ledger)


def test_a_server_that_may_lose_what_it_commits_is_refused(
    database: Cluster, ledger: tuple[str, str]
) -> None:
    with psycopg.connect(database.address, autocommit=True) as connection:

        def told(statement: str, wanted: str) -> None:
            connection.execute(statement)  # type: ignore[call-overload]
            connection.execute("SELECT pg_reload_conf()")
            while connection.execute("SHOW full_page_writes").fetchone() != (wanted,):
                threading.Event().wait(0.01)

        told("ALTER SYSTEM SET full_page_writes = off", "off")
        try:
            with pytest.raises(
                StoreError, match="the server does not store committed data durably"
            ) as caught:
                PostgresLedger(*ledger)
        finally:
            told("ALTER SYSTEM RESET full_page_writes", "on")
    assert str(caught.value.field).endswith("full_page_writes") and caught.value.actual == "off"


def test_commits_wait_for_the_disk_whatever_the_role_has_set(
    database: Cluster, ledger: tuple[str, str]
) -> None:
    with psycopg.connect(database.address, autocommit=True) as connection:
        connection.execute("ALTER ROLE postgres SET synchronous_commit = off")
        try:
            with PostgresLedger(*ledger) as store:
                assert store._one("SHOW synchronous_commit") == ("on",)
        finally:
            connection.execute("ALTER ROLE postgres RESET synchronous_commit")


@pytest.mark.parametrize("address", ["postgresql://u:hidden@/db", "postgresql:///db?password=hidden"])
def test_a_password_is_neither_kept_nor_shown(tmp_path: Path, address: str) -> None:
    with pytest.raises(StoreError, match="has a password") as caught:
        place.choose(tmp_path / "ledger.json", address)
    assert "hidden" not in caught.value.diagnostics() and not list(tmp_path.iterdir())


def test_a_folder_names_its_database(database: Cluster, tmp_path: Path) -> None:
    path, file = tmp_path / "ledger.sqlite", tmp_path / "ledger.json"
    assert not place.begun(path, file)
    place.choose(file, database.address)
    named = file.read_bytes()
    place.choose(file, database.address)
    assert file.read_bytes() == named and file.stat().st_mode & 0o777 == 0o600
    with place.open_ledger(path, file) as store:
        store.append(b"x", private=b"y").result()
        assert isinstance(store, PostgresLedger) and place.begun(path, file)
        assert place.ledger_rows(path, file) == [(b"x", b"y")]
    place.choose(file, place.SQLITE)
    with place.open_ledger(path, file) as store:
        assert isinstance(store, LedgerStore) and len(store) == 0
    with pytest.raises(StoreError, match="is unknown"):
        place.choose(file, "mysql://x")
    file.write_text("{}")
    with pytest.raises(SchemaError):
        place.open_ledger(path, file)


# Crashes.


def dies(ledger: tuple[str, str], die_at: int | None, rounds: int = ROUNDS) -> tuple[int, TextIO]:
    """A process that appends until it dies, or until the ledger fails (`append_in_threads`)."""
    return started(
        lambda pipe: append_in_threads(lambda: PostgresLedger(*ledger), pipe, die_at, rounds, lost=StoreError)
    )


def opened(ledger: tuple[str, str]) -> PostgresLedger:
    """The ledger, once the server has noticed that the last writer is gone, and has recovered."""
    for _ in range(600):
        try:
            return PostgresLedger(*ledger)
        except StoreError as exc:
            recovers = "in recovery mode" in str(exc.actual) or "starting up" in str(exc.actual)
            if "another process writes" not in exc.message and not recovers:
                raise
            threading.Event().wait(0.1)
    return PostgresLedger(*ledger)


def check(ledger: tuple[str, str], answered: list[Any]) -> int:
    with opened(ledger) as store:
        return check_ledger(store, answered, ACCOUNTS)


def crash_at(database: Cluster, boundaries: Iterator[int]) -> int:
    """Let a process die at each of the boundaries, in a ledger of its own, until one is never reached."""
    for died, die_at in enumerate(boundaries):
        ledger = database.address, token_hex(16)
        status, answered = ended(*dies(ledger, die_at))
        if status == 0:
            assert check(ledger, answered) == len(answered) == len(ACCOUNTS) * ROUNDS
            return died
        assert status == KILLED
        before = check(ledger, answered)
        opened(ledger).close()
        status, more = ended(*dies(ledger, die_at))
        assert status in (0, KILLED)
        assert check(ledger, answered + more) >= before
    pytest.fail("the workload never finished")


def test_a_crash_at_some_write_boundaries_loses_nothing_answered(database: Cluster) -> None:
    assert crash_at(database, iter([13, 23, 27, 31, 1000])) == 4


@pytest.mark.full
def test_a_crash_at_every_write_boundary_loses_nothing_answered(database: Cluster) -> None:
    assert crash_at(database, iter(range(1000))) >= 2 * (11 + 3 * (3 + 2))


def test_a_server_killed_amid_appends_loses_nothing_answered(
    database: Cluster, ledger: tuple[str, str]
) -> None:
    answered: list[Any] = []
    for turn in range(3):
        pid, lines = dies(ledger, None, rounds=10_000)
        answered += [json.loads(lines.readline()) for _ in range(60)]
        if turn < 2:
            database.kill()
        else:  # one backend, by a signal that it cannot handle: the server ends all of them, and comes back
            with psycopg.connect(database.address) as connection:
                result = connection.execute(
                    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
                ).fetchone()
            assert result is not None
            os.kill(result[0], signal.SIGKILL)
        status, more = ended(pid, lines)
        assert status == KILLED
        answered += more
        if turn < 2:
            database.start()
        else:
            come_back(database)
        assert check(ledger, answered) >= len(answered)


def come_back(database: Cluster) -> None:
    """Wait until the server has recovered."""
    for _ in range(600):
        try:
            psycopg.connect(database.address).close()
            return
        except psycopg.OperationalError:
            threading.Event().wait(0.1)
    pytest.fail("the server did not come back")
