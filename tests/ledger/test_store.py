"""The durable ledger: order, slots, alteration, full disks, and a crash at every write boundary."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import EncodingError, SizeError, StoreError, VersionError
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.store import MAX_ENTRY_BYTES, AppendResult, LedgerStore, SlotUsed
from tests.child import check_ledger, in_child
from tests.ledger.appends import ACCOUNTS, KILLED, ROUNDS, Refused, append_in_threads, one_commit, refuse
from tests.tmpfs import run_on_tmpfs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def fill(store: LedgerStore, count: int) -> list[bytes]:
    bodies = [f"entry {i}".encode() for i in range(count)]
    for i, body in enumerate(bodies):
        store.append(body, slot=("a", i + 1), private=f"secret {i}".encode()).result()
    return bodies


def test_entries_come_back_in_order_and_outlive_the_store(path: Path) -> None:
    with LedgerStore(path) as store:
        bodies = fill(store, 600)
        result = store.append(lambda index: b"index %d" % index).result()
        assert result == AppendResult(600, leaf_hash(b"index 600"))
        bodies.append(b"index 600")
    with LedgerStore(path) as store:
        assert len(store) == 601
        assert list(store.entries()) == bodies
        assert list(store.entries(599)) == bodies[599:]
        assert store.entry(7) == b"entry 7"
        assert (store.private(7), store.private(600), store.private(999)) == (b"secret 7", None, None)
        assert (store.slot("a", 8), store.slot("a", 9999), store.slot("b", 1)) == (7, None, None)
        with pytest.raises(EncodingError, match="no such"):
            store.entry(601)


def test_the_file_is_private_to_its_owner(path: Path) -> None:
    LedgerStore(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_slot_serves_one_record(path: Path) -> None:
    with LedgerStore(path) as store:
        fill(store, 3)
        with pytest.raises(SlotUsed) as caught:
            store.append(b"another", slot=("a", 2)).result()
        assert caught.value.index == 1
        assert "a, i 2" in caught.value.diagnostics()
        assert store.append(b"next", slot=("b", 2)).result().index == 3
    with LedgerStore(path) as store:
        with pytest.raises(SlotUsed) as caught:
            store.append(b"again", slot=("a", 1)).result()
        assert caught.value.index == 0
        assert len(store) == 4


def test_two_appends_for_one_slot_in_one_commit(path: Path) -> None:
    with LedgerStore(path) as store:
        with one_commit(store) as futures:
            futures += [store.append(b"x%d" % n, slot=("a", 1)) for n in range(5)]
        assert [f.result().index for f in futures[:2]] == [0, 1]
        assert [type(f.exception()) for f in futures[2:]] == [SlotUsed] * 4
        assert list(store.entries()) == [b"first", b"x0"]


def test_what_build_raises_reaches_the_caller_and_costs_no_index(path: Path) -> None:
    with LedgerStore(path) as store:
        store.append(b"zero").result()
        with pytest.raises(Refused, match="1"):
            store.append(refuse, slot=("a", 1)).result()
        assert store.append(b"one", slot=("a", 1)).result().index == 1


def test_an_entry_has_at_most_65535_bytes(path: Path) -> None:
    with LedgerStore(path) as store:
        assert store.append(bytes(MAX_ENTRY_BYTES)).result().index == 0
        with pytest.raises(SizeError):
            store.append(bytes(MAX_ENTRY_BYTES + 1)).result()
        assert len(store) == 1


def test_many_appenders_get_one_gapless_order(path: Path) -> None:
    seen: dict[int, bytes] = {}

    def run(name: str) -> None:
        for i in range(1, 26):
            body = f"{name} {i}".encode()
            seen[store.append(body, slot=(name, i)).result().index] = body

    with LedgerStore(path) as store:
        threads = [threading.Thread(target=run, args=(f"a{n}",)) for n in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert [seen[i] for i in range(400)] == list(store.entries())


def test_a_closed_store_takes_nothing_but_keeps_what_waited(path: Path) -> None:
    store = LedgerStore(path)
    futures = [store.append(b"%d" % n) for n in range(50)]
    store.close()
    store.close()
    assert [f.result().index for f in futures] == list(range(50))
    with pytest.raises(StoreError, match="closed"):
        store.append(b"late")


def test_a_ledger_has_one_writer(path: Path) -> None:
    with LedgerStore(path) as store:
        store.append(b"x").result()
        with pytest.raises(StoreError, match="cannot be opened") as caught:
            LedgerStore(path)
        assert "another process" in str(caught.value.hint)


ALTERATIONS = {
    "body": "UPDATE entry SET body = 'forged' WHERE idx = 3",
    "body and leaf": "UPDATE entry SET body = (SELECT body FROM entry WHERE idx = 4), "
    "leaf = (SELECT leaf FROM entry WHERE idx = 4) WHERE idx = 3",
    "leaf": "UPDATE entry SET leaf = zeroblob(32) WHERE idx = 3",
    "account": "UPDATE entry SET account = 'b' WHERE idx = 3",
    "i": "UPDATE entry SET i = 99 WHERE idx = 3",
    "private": "UPDATE entry SET private = 'other' WHERE idx = 3",
    "private dropped": "UPDATE entry SET private = NULL WHERE idx = 3",
    "slot dropped": "UPDATE entry SET account = NULL, i = NULL WHERE idx = 3",
    "row dropped": "DELETE FROM entry WHERE idx = 3",
    "moved": "UPDATE entry SET idx = 77 WHERE idx = 3",
    "text for bytes": "UPDATE entry SET body = CAST(body AS TEXT) WHERE idx = 3",
}


@pytest.mark.parametrize("statement", ALTERATIONS.values(), ids=ALTERATIONS.keys())
def test_an_altered_row_is_named(path: Path, statement: str) -> None:
    with LedgerStore(path) as store:
        fill(store, 6)
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()
    with pytest.raises(StoreError, match="entry 3"):
        LedgerStore(path)


def test_a_damaged_file_is_refused(path: Path) -> None:
    with LedgerStore(path) as store:
        for n in range(200):
            store.append(bytes([n]) * 500)
    data = bytearray(path.read_bytes())
    data[4096 * 5 : 4096 * 6] = os.urandom(4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="entry"):
        LedgerStore(path)


@pytest.mark.parametrize(
    ("content", "error"), [(b"not a database" * 100, StoreError), (None, VersionError)], ids=["text", "other"]
)
def test_what_is_not_a_ledger(path: Path, content: bytes | None, error: type[Exception]) -> None:
    if content is None:
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE t (x)")
        db.commit()
        db.close()
    else:
        path.write_bytes(content)
    with pytest.raises(error):
        LedgerStore(path)


def test_a_later_format_is_refused(path: Path) -> None:
    LedgerStore(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 2")
    db.close()
    with pytest.raises(VersionError):
        LedgerStore(path)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        LedgerStore(tmp_path / "none" / "ledger.sqlite")


def test_a_commit_waits_for_the_disk(path: Path) -> None:
    # A killed process cannot show this: the kernel keeps what it wrote. SQLite's documentation says these do.
    with LedgerStore(path) as store:
        settings = [store._one(f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "fullfsync")]
    assert settings == [("wal",), (2,), (1,)]


# Crashes.


def dies(path: Path, die_at: int) -> tuple[int, list[Any]]:
    """What a process has reported that appends until it dies (`append_in_threads`)."""
    return in_child(lambda pipe: append_in_threads(lambda: LedgerStore(path), pipe, die_at))


def check_after_crash(path: Path, acknowledged: list[Any]) -> int:
    with LedgerStore(path) as store:
        return check_ledger(store, acknowledged, ACCOUNTS)


def test_a_crash_at_every_write_boundary_loses_nothing_acknowledged(tmp_path: Path) -> None:
    died = 0
    for die_at in range(1000):
        path = tmp_path / f"{die_at}.sqlite"
        status, acknowledged = dies(path, die_at)
        if status == 0:
            break
        assert status == KILLED
        died += 1
        before = check_after_crash(path, acknowledged)
        # The service comes back, goes on, and dies again at the same count of boundaries.
        status, more = dies(path, die_at)
        assert status in (0, KILLED)
        assert check_after_crash(path, acknowledged + more) >= before
    else:
        pytest.fail("the workload never finished")
    # Two around each of 9 statements that open the file, and of at least 3 commits of 3 records each.
    assert died >= 2 * (9 + 3 * (3 + 2))
    assert check_after_crash(path, acknowledged) == len(acknowledged) == len(ACCOUNTS) * ROUNDS


def test_a_torn_write_is_cut_back_to_a_whole_commit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    sizes: list[int] = []

    def commits(pipe: int) -> None:
        store = LedgerStore(path)
        for n in range(6):
            store.append(b"%d a %d" % (n, n + 1), slot=("a", n + 1), private=b"a %d" % (n + 1)).result()
            size = path.with_name("ledger.sqlite-wal").stat().st_size
            os.write(pipe, json.dumps(size).encode() + b"\n")
        os._exit(KILLED)

    status, sizes = in_child(commits)
    assert status == KILLED
    log = path.with_name("ledger.sqlite-wal").read_bytes()
    base = path.read_bytes()
    assert len(log) == sizes[-1]
    cuts = sorted({*range(0, len(log), 1500), *sizes, *(s - 1 for s in sizes)})
    for torn in (False, True):
        for cut in cuts:
            copy = tmp_path / "copy.sqlite"
            copy.write_bytes(base)
            # Random bytes behind the cut, of which the first differs: one alone might be what was there, and the commit whole.
            tail = bytes(b ^ 0xFF for b in log[cut : cut + 1]) + os.urandom(max(0, len(log) - cut - 1))
            copy.with_name("copy.sqlite-wal").write_bytes(log[:cut] + (tail if torn else b""))
            whole = sum(s <= cut for s in sizes)
            assert check_after_crash(copy, [[n, "a", n + 1] for n in range(whole)]) == whole
            for file in tmp_path.glob("copy.sqlite*"):
                file.unlink()


# Full disks.


def fill_until_error(store: LedgerStore) -> tuple[int, StoreError]:
    acknowledged = 0
    while True:
        try:
            index = store.append(bytes(30_000), slot=("a", acknowledged + 1)).result().index
        except StoreError as exc:
            return acknowledged, exc
        assert index == acknowledged
        acknowledged += 1


def test_a_file_size_limit_loses_nothing_acknowledged(path: Path) -> None:
    def work(pipe: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        store = LedgerStore(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        acknowledged, error = fill_until_error(store)
        try:
            store.append(b"after").result()
            after = "appended"
        except StoreError:
            after = "refused"
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        store.close()
        os.write(pipe, json.dumps([acknowledged, after, error.hint]).encode() + b"\n")

    status, [[acknowledged, after, hint]] = in_child(work)
    assert (status, after) == (0, "refused")
    assert acknowledged > 5
    assert "disk" in hint
    with LedgerStore(path) as store:
        assert acknowledged <= len(store) <= acknowledged + 1
        count = len(store)
        assert store.append(b"more", slot=("a", count + 1)).result().index == count


@pytest.mark.parametrize("limit", [0, 100, 4096, 8192])
def test_a_ledger_that_cannot_be_made_for_lack_of_space(path: Path, limit: int) -> None:
    def work(pipe: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            LedgerStore(path)
        except StoreError as exc:
            os.write(pipe, json.dumps(exc.message).encode() + b"\n")

    assert in_child(work) == (0, ["the ledger cannot be opened"])
    with LedgerStore(path) as store:
        assert store.append(b"first").result().index == 0


FULL_DISK = """
import subprocess, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.ledger.test_store import fill_until_error
from rag_audit.log.store import LedgerStore
path = Path({mount!r}) / "ledger.sqlite"
store = LedgerStore(path)
acknowledged, error = fill_until_error(store)
store.close()
subprocess.run(["mount", "-o", "remount,size=8m", {mount!r}], check=True)
with LedgerStore(path) as store:
    assert acknowledged <= len(store) <= acknowledged + 1, (acknowledged, len(store))
    assert acknowledged > 5
    count = len(store)
    assert store.append(b"more", slot=("a", count + 1)).result().index == count
print("recovered", error.name)
"""


def test_a_full_disk_loses_nothing_acknowledged(tmp_path: Path) -> None:
    mount = tmp_path / "disk"
    mount.mkdir()
    script = tmp_path / "script.py"
    script.write_text(FULL_DISK.format(root=str(Path(__file__).resolve().parents[2]), mount=str(mount)))
    run = run_on_tmpfs(mount, "1m", script)
    assert run.stdout.strip() == "recovered StoreError", run.stderr
