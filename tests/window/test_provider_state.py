"""The provider's own state: what was changed, opened to others, held by another process, or does not fit the disk."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_audit.attest.window import Window
from rag_audit.commit.stored import delete_secrets
from rag_audit.errors import (
    EncodingError,
    ExitCode,
    PolicyError,
    RagAuditError,
    SchemaError,
    SetupError,
    StoreError,
    WindowStateError,
)
from rag_audit.log.signing import SigningKey
from rag_audit.models.requests import Answer, Refusal
from rag_audit.retrieval.engine import CapacityError
from tests.tmpfs import run_on_tmpfs
from tests.window.outcomes import assert_malformed
from tests.window.simulator import ORIGIN, QUESTIONS, TEXTS, Service
from tests.window.test_requests import signed


@pytest.fixture
def shut(service: Service) -> Path:
    """An active window with one record, shut."""
    window = service.open()
    service.ask(window, "law-1", QUESTIONS["law"][0])
    window.shut()
    return window.directory


def resume(service: Service, directory: Path, key: SigningKey | None = None) -> Window:
    return Window.resume(directory, key=key or service.key, clock=service.clock)


def test_an_untouched_window_resumes(service: Service, shut: Path) -> None:
    with resume(service, shut) as window:
        assert len(window.records) == 1


def other_vector(directory: Path) -> None:
    path = directory / "index" / "law.npy"
    rows, position = np.load(path), np.load(path.with_name("law.positions.npy"))[0]
    rows[position, 0] = 1 if rows[position, 0] != 1 else 2
    np.save(path, rows)


def other_text(directory: Path) -> None:
    db = sqlite3.connect(directory / "documents.sqlite")
    assert db.execute("UPDATE documents SET text = text || '!' WHERE tenant = 'law'").rowcount
    db.commit()
    db.close()


def fewer_texts(directory: Path) -> None:
    db = sqlite3.connect(directory / "documents.sqlite")
    db.execute("DELETE FROM documents WHERE tenant = 'medicine'")
    db.commit()
    db.close()


def stored(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def apply(directory: Path) -> None:
        path = directory / "commitment.json"
        value = json.loads(path.read_bytes())
        change(value)
        path.write_text(json.dumps(value))

    return apply


def index_and_its_commitment(directory: Path) -> None:
    """Whoever changes the index changes the stored commitment with it: the opening still says another."""
    from rag_audit.commit.commitment import WindowSecrets, commit_tenant
    from rag_audit.commit.stored import _load_index
    from rag_audit.proofs.proving import backend
    from rag_audit.relation.field import to_bytes
    from rag_audit.retrieval.documents import DocumentStore

    other_vector(directory)
    drawn = WindowSecrets.load(directory / "secrets.json")
    with DocumentStore(directory / "documents.sqlite") as documents:
        index = _load_index(directory, "law")
        blinding = to_bytes(drawn.index_salts["law"])
        committed = backend("groth16").commit_index(index.rows, blinding, directory / "law.points")
        result = commit_tenant("law", index, documents.passages("law"), drawn, committed)
    stored(lambda v: v["tenants"].__setitem__(0, result.entry.dump()))(directory)


def secret(field: str, value: Any) -> Callable[[Path], None]:
    def apply(directory: Path) -> None:
        path = directory / "secrets.json"
        result = json.loads(path.read_bytes())
        result[field] = value
        path.write_text(json.dumps(result))

    return apply


CHANGES: dict[str, tuple[Callable[[Path], Any], type[RagAuditError], str]] = {
    "index changed inside the window": (other_vector, StoreError, "tenant law"),
    "text changed inside the window": (other_text, StoreError, "tenant law"),
    "texts deleted inside the window": (fewer_texts, StoreError, "tenant medicine"),
    "index and stored commitment changed": (index_and_its_commitment, StoreError, "header.tenants"),
    "policy changed": (stored(lambda v: v["policy"].update(n=99)), StoreError, "header.c_policy"),
    "manifest changed": (stored(lambda v: v["embedder"].update(v=2)), StoreError, "header.c_emb"),
    "roster changed": (stored(lambda v: v["roster"].pop()), StoreError, "header.roster"),
    "stored commitment lacks a part": (stored(lambda v: v.pop("roster")), SchemaError, "commitment.json.roster"),
    "stored commitment truncated": (lambda d: (d / "commitment.json").write_text("{"), EncodingError, "commitment.json"),
    "no stored commitment": (lambda d: (d / "commitment.json").unlink(), EncodingError, "commitment.json"),
    "index truncated": (lambda d: os.truncate(d / "index" / "law.npy", 100), StoreError, "index/law.npy"),
    "index shortened": (lambda d: os.truncate(d / "index" / "law.npy", 400), StoreError, "index/law.npy"),
    "index empty": (lambda d: os.truncate(d / "index" / "law.npy", 0), StoreError, "index/law.npy"),
    "index missing": (lambda d: (d / "index" / "law.npy").unlink(), StoreError, "index/law.npy"),
    "index an archive": (lambda d: (d / "index" / "law.npy").write_bytes(b"PK\3\4" + bytes(200)), StoreError, "index/law.npy"),
    "index of another type": (lambda d: np.save(d / "index" / "law.npy", np.zeros((8, 64))), EncodingError, "index rows"),
    "index of objects": (lambda d: np.save(d / "index" / "law.npy", np.array([{}])), StoreError, "index/law.npy"),
    "index out of range": (lambda d: np.save(d / "index" / "law.npy", np.full((8, 64), 9, np.int8)), EncodingError, "index rows"),
    "positions missing": (lambda d: (d / "index" / "law.positions.npy").unlink(), StoreError, "index/law.positions.npy"),
    "positions truncated": (lambda d: os.truncate(d / "index" / "law.positions.npy", 130), StoreError, "index/law.positions.npy"),
    "positions of another type": (lambda d: np.save(d / "index" / "law.positions.npy", np.array(["x"])), StoreError, "index/law.positions.npy"),
    "positions repeated": (lambda d: np.save(d / "index" / "law.positions.npy", np.array([1, 1])), EncodingError, "positions"),
    "documents damaged": (lambda d: (d / "documents.sqlite").write_bytes(b"x" * 5000), StoreError, "documents.sqlite"),
    "ledger damaged": (lambda d: (d / "ledger.sqlite").write_bytes(b"x" * 5000), StoreError, "ledger.sqlite"),
    "ledger missing": (lambda d: [p.unlink() for p in d.glob("ledger.sqlite*")], StoreError, ""),
    "seed file open to others": (lambda d: (d / "secrets.json").chmod(0o640), SetupError, "secrets.json"),
    "seed file missing": (lambda d: (d / "secrets.json").unlink(), SetupError, "secrets.json"),
    "seed file truncated": (lambda d: os.truncate(d / "secrets.json", 20), EncodingError, "secrets.json"),
    "another seed": (secret("s0", "00" * 32), StoreError, "header.c_seed"),
    "seed >= r": (secret("s0", "ff" * 32), EncodingError, "secrets.json.s0"),
    "another index salt": (secret("index_salts", {"law": "00" * 32, "medicine": "00" * 32}), StoreError, "tenant law"),
    "no index salt": (secret("index_salts", {}), StoreError, "secrets.json"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "error", "place"), CHANGES.values(), ids=CHANGES.keys())
def test_a_window_that_does_not_resume(
    change: Callable[[Path], Any], error: type[RagAuditError], place: str, service: Service, shut: Path
) -> None:
    change(shut)
    with pytest.raises(RagAuditError) as caught:
        resume(service, shut)
    assert_malformed(caught.value, error, place)
    if error is SetupError and "open" in caught.value.message:
        assert caught.value.hint is not None and "chmod 600" in caught.value.hint
    with pytest.raises(RagAuditError):  # and not "another process has it open": the folder is free again
        resume(service, shut)


def test_the_rows_of_an_open_window_are_mapped_from_its_folder(service: Service, shut: Path) -> None:
    """And neither a window just opened nor one that came back holds a copy of them."""
    path = shut / "index" / "law.npy"
    assert path.stat().st_mode & 0o777 == 0o600
    with resume(service, shut) as back, service.commit("w-2", window="w-2") as opened:
        for window in (back, opened):
            index = window.commitment.tenants["law"].index
            assert isinstance(index.rows, np.memmap)
            assert Path(index.rows.filename) == window.directory / "index" / "law.npy"
            with pytest.raises(ValueError, match="read-only"):
                index.rows[0, 0] = 1
            embedded = window.context.embedder.embed_documents(TEXTS["law"])
            assert (index.rows[list(index.positions)] == embedded).all()
            assert np.count_nonzero(index.rows.any(axis=1)) == len(TEXTS["law"])


@pytest.fixture
def shut_scan(service: Service) -> Path:
    """An active window of scan tenants, shut."""
    with service.open(system="scan") as window:
        return window.directory


def other_points(directory: Path) -> None:
    path = directory / "index" / "law.points"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


SCAN_CHANGES: dict[str, tuple[Callable[[Path], Any], type[RagAuditError], str]] = {
    "index changed inside the window": (other_vector, StoreError, "law.points"),
    "index changed and its points lost": (
        lambda d: (other_vector(d), (d / "index" / "law.points").unlink()),
        StoreError,
        "tenant law",
    ),
    "points altered": (other_points, StoreError, "law.points"),
    "points truncated": (lambda d: os.truncate(d / "index" / "law.points", 1_000), StoreError, "law.points"),
    "points of another tenant": (
        lambda d: shutil.copy(d / "index" / "medicine.points", d / "index" / "law.points"),
        StoreError,
        "law.points",
    ),
    "another blinding key": (
        secret("index_salts", {"law": "00" * 32, "medicine": "00" * 32}),
        StoreError,
        "law.points",
    ),
}


@pytest.mark.parametrize(("change", "error", "place"), SCAN_CHANGES.values(), ids=SCAN_CHANGES.keys())
def test_a_window_of_scan_tenants_that_does_not_resume(
    change: Callable[[Path], Any],
    error: type[RagAuditError],
    place: str,
    service: Service,
    shut_scan: Path,
) -> None:
    change(shut_scan)
    with pytest.raises(error) as caught:
        resume(service, shut_scan)
    assert place in (caught.value.field or "")


def test_lost_points_are_made_again(service: Service, shut_scan: Path) -> None:
    path = shut_scan / "index" / "law.points"
    before = path.read_bytes()
    path.unlink()
    with resume(service, shut_scan) as window:
        assert window.status == "active"
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_in_use_by_another_process(service: Service, shut: Path) -> None:
    script = (
        "import fcntl, os, sys\n"
        f"h = os.open({str(shut / '.lock')!r}, os.O_RDWR)\n"
        "fcntl.flock(h, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(WindowStateError, match="another process"):
            resume(service, shut)
        other.communicate("")
    resume(service, shut).shut()


def test_a_folder_that_holds_a_window_is_not_opened_over(service: Service, shut: Path) -> None:
    before = sorted((p.name, p.stat().st_size) for p in shut.iterdir())
    service.clock.now += 1
    with pytest.raises(WindowStateError, match="the folder already contains a window"):
        service.commit()
    resume(service, shut).shut()
    assert sorted((p.name, p.stat().st_size) for p in shut.iterdir()) == before


@pytest.mark.parametrize(
    ("changes", "error", "place"),
    [
        ({"opens_at": 5}, PolicyError, "policy.opens_at"),
        ({"closes_at": 5}, PolicyError, "policy.closes_at"),
        ({"eps_acc": "0.1"}, PolicyError, "gains"),
        ({"delta_acc": "1e-5"}, PolicyError, "delta_policy"),
        ({"lattice": 48}, PolicyError, "lattice"),
        ({"score_window": (9, 3)}, PolicyError, "window"),
        ({"score_window": (420, 1680)}, PolicyError, "policy.noise"),
        ({"gains": (0, 4)}, PolicyError, "gains"),
        ({"top_k": 9}, PolicyError, ""),
        ({"capacities": {"law": 8}}, PolicyError, "roster"),
        ({"accounts_max": 1}, PolicyError, "roster"),
        ({"tokens": (32, 512)}, None, ""),
    ],
)  # fmt: skip
def test_a_policy_that_is_refused_at_open(
    changes: dict[str, Any], error: type[RagAuditError] | None, place: str, service: Service
) -> None:
    if error is None:
        service.commit(**changes).shut()
        return
    with pytest.raises(error) as caught:
        service.commit(**changes)
    assert place in (caught.value.field or caught.value.message)
    assert not (service.root / "window" / "ledger.sqlite").exists()


def test_an_index_above_capacity(service: Service) -> None:
    with pytest.raises(CapacityError) as caught:
        service.commit(documents={**TEXTS, "law": [f"Law number {n} says so." for n in range(9)]})
    assert (caught.value.expected, caught.value.actual) == ("at most 8", 9)
    assert caught.value.exit_code is ExitCode.MALFORMED


def test_a_document_without_words_is_named(service: Service) -> None:
    with pytest.raises(RagAuditError) as caught:
        service.commit(documents={**TEXTS, "law": ["A contract.", ""]})
    assert caught.value.exit_code is ExitCode.MALFORMED


def test_the_seed_is_nowhere_but_in_its_file(service: Service, shut: Path) -> None:
    """Neither in what is published nor in anything else that lies in the folder."""
    secrets = json.loads((shut / "secrets.json").read_bytes())
    values = [secrets["s0"], secrets["s1"], secrets["document_key"], secrets["retention_key"],
              *secrets["index_salts"].values()]  # fmt: skip
    question = QUESTIONS["law"][0].encode()
    for path in (p for p in shut.rglob("*") if p.is_file() and p.name != "secrets.json"):
        data = path.read_bytes()
        assert question not in data, path
        assert not any(v.encode() in data or bytes.fromhex(v) in data for v in values), path


def test_what_was_forgotten_cannot_be_read_again(service: Service, shut: Path) -> None:
    delete_secrets(shut)
    with pytest.raises(SetupError, match="cannot be read"):
        resume(service, shut)


# Full disks.


def limited(work: Callable[[int], dict[str, Any]], size: int) -> dict[str, Any]:
    """Run in a child whose files may not grow beyond `size` bytes; what it returns."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            os.write(writer, json.dumps(work(size)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        text = lines.read()
    os.waitpid(pid, 0)
    result: dict[str, Any] = json.loads(text or '{"error": "died"}')
    return result


def set_limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.parametrize("size", [0, 100, 2_000, 6_000])
def test_a_full_disk_while_a_window_is_opened(size: int, service: Service) -> None:
    def work(size: int) -> dict[str, Any]:
        set_limit(size)
        try:
            service.commit().shut()
        except RagAuditError as exc:
            return {"error": exc.name, "field": exc.field}
        return {"error": None}

    result = limited(work, size)
    assert result["error"] == "StoreError" and str(service.root) in result["field"]


def test_a_full_disk_while_queries_are_answered(service: Service) -> None:
    with service.open(n=40, k_max=1, gains=(1, 8, 32), lattice=32) as window:
        directory = window.directory

    def work(size: int) -> dict[str, Any]:
        window = Window.resume(directory, key=service.key, clock=service.clock)
        set_limit(size)
        kinds = []
        for i in range(1, 41):
            reply = window.handle(signed(service, window, i=i))
            kinds.append(reply.reason if isinstance(reply, Refusal) else "answer")
            if isinstance(reply, Refusal):
                break
        return {"kinds": kinds}

    wal = directory / "ledger.sqlite"
    kinds = limited(work, wal.stat().st_size + 60_000)["kinds"]
    answered = kinds.count("answer")
    assert kinds == ["answer"] * answered + ["unavailable"] and answered >= 2
    with Window.resume(directory, key=service.key, clock=service.clock) as window:
        # The one that was refused may be on the disk or not; its slot serves the same request either way.
        assert answered <= len(window.records) <= answered + 1
        assert isinstance(window.handle(signed(service, window, i=answered + 1)), Answer)
        assert [r.i for r in window.records] == list(range(1, answered + 2))


MOUNTED = """
import sys
sys.path.insert(0, {repository!r})
from pathlib import Path
from rag_audit.errors import RagAuditError
from tests.window.simulator import Service
try:
    Service(Path({mount!r})).commit().shut()
except RagAuditError as exc:
    print(exc.name, exc.field)
"""


def test_a_small_tmpfs_that_is_full(tmp_path: Path) -> None:
    mount = tmp_path / "disk"
    mount.mkdir()
    script = tmp_path / "script.py"
    repository = Path(__file__).parents[2]
    script.write_text(MOUNTED.format(repository=str(repository), mount=str(mount)))
    run = run_on_tmpfs(mount, "48k", script)
    assert run.stdout.startswith("StoreError " + str(mount)), run.stderr


def test_another_key_does_not_continue_a_window(service: Service, shut: Path) -> None:
    """Its signatures would be worth nothing; the published checkpoint says whose window it is."""
    with pytest.raises(RagAuditError) as caught:
        resume(service, shut, SigningKey.generate(ORIGIN)).shut()
    assert caught.value.exit_code is ExitCode.MALFORMED
