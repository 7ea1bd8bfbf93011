"""How proofs are verified: in portions, elsewhere, and with what an earlier run found valid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import digest_hex
from rag_audit.cli import common, main
from rag_audit.cli.common import after, estimated
from rag_audit.cli.verify import Proofs
from rag_audit.errors import ExecutorError, ExitCode, SetupError
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs import checking, remembered
from rag_audit.proofs.batch import Failures
from rag_audit.proofs.checking import Checking
from rag_audit.proofs.executors import run_jobs
from rag_audit.proofs.remembered import VerifiedProofs, fingerprint
from rag_audit.report.verification import ReportedVerdict
from tests.clock import set_clock
from tests.window.forge import Forge
from tests.window.simulator import Finished
from tests.window.test_checks import lied_about_positions

WINDOW = "ab" * 32


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    folder = tmp_path / "cache" / "verified"

    def cache_dir(*parts: str) -> Path:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        return folder

    monkeypatch.setattr(remembered, "cache_dir", cache_dir)
    return folder


class Counted(VerifiedProofs):
    """How often something was found valid now."""

    def __init__(self, window: str = WINDOW, **options: Any) -> None:
        super().__init__(window, **options)
        self.added = 0

    def add(self, names: Sequence[bytes]) -> None:  # type: ignore[override]
        self.added += len(names)
        super().add(names)


def verified(window: Finished, result: Checking, file: WindowFile | None = None) -> ReportedVerdict:
    return window.verify(file, checking=lambda _: result)


def proofs_of(window: Finished) -> int:
    return sum(len(value) for value in window.file.proofs.values() if isinstance(value, dict))


@pytest.mark.parametrize("portion", [1, 2, 1024])
def test_portions_change_no_outcome(
    finished: Finished, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    monkeypatch.setattr(checking, "PORTION", portion)
    seen: list[tuple[int, int]] = []
    verdict = verified(finished, Checking(progress=lambda *at: seen.append(at)))
    assert verdict.checks == finished.verify().checks
    total = proofs_of(finished)
    assert seen[-1] == (total, total) and seen == sorted(seen)
    assert (len(set(seen)) >= total) is (portion == 1)


def test_a_false_proof_is_found_in_its_portion(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "PORTION", 1)
    forge = Forge(finished)
    lied_about_positions(forge)
    file, receipts = forge.seal(tmp_path)
    whole = finished.verify(file, receipts=[receipts])
    monkeypatch.setattr(checking, "PORTION", 1024)
    verdict = finished.verify(file, receipts=[receipts])
    assert verdict.exit_code is ExitCode.FAIL and verdict.checks == whole.checks


def test_threads_and_portions_give_the_same(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "PORTION", 1)
    with ThreadPoolExecutor(2) as executor:
        assert (
            verified(finished, Checking(run=partial(run_jobs, executor=executor))).checks
            == finished.verify().checks
        )


class Losing(ThreadPoolExecutor):
    """An executor whose workers die."""

    def submit(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no workers")


def test_an_executor_that_takes_nothing_is_no_verdict(finished: Finished) -> None:
    with pytest.raises(ExecutorError):
        verified(finished, Checking(run=partial(run_jobs, executor=Losing(1))))


# -- what is remembered --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["finished", "scanned"])
def test_a_second_run_verifies_nothing_again_and_says_so(name: str, request: pytest.FixtureRequest) -> None:
    window: Finished = request.getfixturevalue(name)
    first, total = Counted(), proofs_of(window)
    plain = verified(window, Checking(remembered=first))
    assert first.added == total and not any("earlier run" in note for note in plain.notes)
    again = Counted()
    verdict = verified(window, Checking(remembered=again))
    assert (len(again), again.added) == (total, 0) and verdict.checks == plain.checks
    assert any(f"{total} proofs were verified by an earlier run" in note for note in verdict.notes)


def test_an_interrupted_run_goes_on(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "PORTION", 1)

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verified(finished, Checking(remembered=VerifiedProofs(WINDOW), progress=stop))
    again = Counted()
    assert len(again) == 2
    assert verified(finished, Checking(remembered=again)).passed and again.added == proofs_of(finished) - 2


def test_a_false_proof_is_not_remembered(finished: Finished, tmp_path: Path) -> None:
    forge = Forge(finished)
    lied_about_positions(forge)
    file, _ = forge.seal(tmp_path)
    first = Counted()
    assert verified(finished, Checking(remembered=first), file).exit_code is ExitCode.FAIL
    again = Counted()
    assert verified(finished, Checking(remembered=again), file).exit_code is ExitCode.FAIL
    assert first.added == len(again) < proofs_of(finished) and again.added == 0


@dataclass(frozen=True)
class Content:
    """A checker to whom every proof is valid."""

    key: bytes
    slow: bool = False

    def failures(self, items: Sequence[Any], /) -> Failures:
        return {}


def test_what_is_remembered_is_bound_to_its_parts() -> None:
    def verified_now(key: bytes, proof: bytes, statement: tuple[int, ...]) -> bool:
        result = Counted()
        assert Checking(remembered=result)(Content(key), [(proof, statement)]) == {}
        return result.added == 1

    assert verified_now(b"key", b"proof", (1, 2)) and not verified_now(b"key", b"proof", (1, 2))
    assert verified_now(b"other", b"proof", (1, 2))
    assert verified_now(b"key", b"other", (1, 2))
    assert verified_now(b"key", b"proof", (1, 3))
    assert not verified_now(b"key", b"proof", (1, 2))


def test_another_program_remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    known = VerifiedProofs(WINDOW)
    before = known.names(Content(b"key"))(b"item")
    monkeypatch.setattr(remembered, "_program", lambda: b"another program")
    assert known.names(Content(b"key"))(b"item") != before


def test_the_program_is_its_native_core_and_its_proof_systems() -> None:
    remembered._program.cache_clear()
    before = remembered._program()
    path = Path(checking.__file__)
    read = Path.read_bytes
    for changed in (path, Path(str(remembered._native.__file__))):
        remembered._program.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda p, c=changed: b"other" if p == c else read(p))
            assert remembered._program() != before
    remembered._program.cache_clear()


def test_values_of_another_kind_have_another_fingerprint() -> None:
    values: list[Any] = [
        b"1",
        "1",
        1,
        [1],
        [[1]],
        [1, 1],
        ["11"],
        ["1", "1"],
        b"",
        "",
        [],
        None,
        True,
        {"a": 1},
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    with pytest.raises(TypeError):
        fingerprint(1.5)


def test_lines_that_are_altered_count_for_nothing(cache: Path) -> None:
    known = VerifiedProofs(WINDOW)
    known.add([b"a" * 32, b"b" * 32])
    log = cache / f"{WINDOW}.log"
    data = bytearray(log.read_bytes())
    data[0] ^= 1
    log.write_bytes(bytes(data) + b"cut")
    again = VerifiedProofs(WINDOW)
    assert b"b" * 32 in again and len(again) == 1 and again.damaged == 1
    again.add([b"c" * 32])
    assert len(VerifiedProofs(WINDOW)) == 2
    (cache / "key").write_bytes(b"x" * 32)
    assert len(VerifiedProofs(WINDOW)) == 0 and VerifiedProofs(WINDOW).damaged == 3


def test_what_others_found_valid_counts_for_those_who_ask_them(cache: Path) -> None:
    VerifiedProofs(WINDOW, elsewhere=True).add([b"a" * 32])
    VerifiedProofs(WINDOW).add([b"b" * 32])
    here, elsewhere = VerifiedProofs(WINDOW), VerifiedProofs(WINDOW, elsewhere=True)
    assert (len(here), here.damaged) == (1, 0) and b"b" * 32 in here
    assert len(elsewhere) == 2


def test_files_of_the_cache_are_this_users_alone(cache: Path) -> None:
    VerifiedProofs(WINDOW).add([b"a" * 32])
    for name in ("key", f"{WINDOW}.log"):
        assert (cache / name).stat().st_mode & 0o777 == 0o600
    (cache / "key").chmod(0o644)
    with pytest.raises(SetupError, match="other users can access a secret file"):
        VerifiedProofs(WINDOW)


def test_old_windows_are_forgotten(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "FILES", 2)
    for number, window in enumerate(("aa", "bb", "cc")):
        VerifiedProofs(window).add([b"a" * 32])
        os.utime(cache / f"{window}.log", (number, number))
    VerifiedProofs("dd").add([b"a" * 32])
    assert {path.stem for path in cache.glob("*.log")} == {"cc", "dd"}
    monkeypatch.setattr(remembered, "MAX_BYTES", 10)
    assert len(VerifiedProofs("dd")) == 0 and not (cache / "dd.log").exists()


# -- the command ---------------------------------------------------------------------------------------------


def test_only_large_windows_are_remembered(
    finished: Finished, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(remember: bool) -> ReportedVerdict:
        with Proofs(1, None, no_cache=not remember).checking(lambda *_: None) as result:
            return finished.verify(checking=result)

    assert run(True).passed and not cache.exists()
    monkeypatch.setattr("rag_audit.cli.verify.LARGE", 3)
    assert run(False).passed and not cache.exists()
    assert run(True).passed and len(VerifiedProofs(digest_hex(finished.file.entries[0]))) == proofs_of(
        finished
    )


def command(finished: Finished, folder: Path, *options: str) -> tuple[int, str]:
    trust = folder / "trust.toml"
    trust.write_text(finished.service.trust_text(finished.policy))
    words = [
        "verify",
        str(finished.window / "public"),
        "--trust",
        str(trust),
        "--receipts",
        str(finished.receipts),
    ]
    done = CliRunner().invoke(main, [*words, *options])
    return done.exit_code, done.output


def test_an_address_that_is_none_is_refused(finished: Finished, tmp_path: Path) -> None:
    code, output = command(finished, tmp_path, "--executor", "nowhere")
    assert code == ExitCode.MALFORMED and "rag-audit: " in output


@pytest.mark.full
def test_the_command_verifies_in_processes(finished: Finished, tmp_path: Path) -> None:
    code, output = command(finished, tmp_path, "--jobs", "2")
    assert code == ExitCode.PASS and "PASS" in output


def test_what_is_left_is_estimated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    set_clock(monkeypatch, common, monotonic=lambda: now[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ended: list[bool] = []
    show = after(lambda: ended.append(True), estimated("verifying proofs"))
    now[0] = 1.0
    show(1, 100)
    assert not capsys.readouterr().err and ended
    now[0] = 10.0
    show(25, 100)
    assert "verifying proofs 25/100  10 s, about 30 s left" in capsys.readouterr().err
