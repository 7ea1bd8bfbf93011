"""The service and its clients: one that leaves early, one that sends a line without end, one that sends no JSON."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_audit.cli import account as account_commands
from rag_audit.cli import window as commands
from rag_audit.errors import SetupError, SizeError
from rag_audit.models.question import MAX_REQUEST_BYTES
from rag_audit.service import lines, process

ROOT = Path(__file__).parents[2]


class FakeWindow:
    """Answers by the number of a request; a refusal is what a window would sign."""

    def __init__(self) -> None:
        self.handled: list[Any] = []
        self.fault: Exception | None = None
        self.release = SimpleNamespace(period_s=None)

    def handle(self, value: Any, *, eager: bool) -> Any:
        self.handled.append(value)
        if self.fault is not None:
            raise self.fault
        return Reply({"answer": len(self.handled)})

    def refuse(self, reason: str, detail: str) -> Any:
        return Reply({"reason": reason, "detail": detail})


class Reply:
    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    def canonical(self) -> bytes:
        return json.dumps(self.value).encode()


class Endless(io.RawIOBase):
    """So many bytes without a line break, and then lines; counts the most that one reading asked for."""

    def __init__(self, length: int, rest: bytes) -> None:
        self.left, self.rest = length, io.BytesIO(rest)
        self.maximum = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None and size > 0, "a line without a limit is read"
        self.maximum = max(self.maximum, size)
        if self.left > size:
            self.left -= size
            return b"x" * size
        if self.left:
            line, self.left = b"x" * self.left, 0
            return line + self.rest.readline(size - len(line))
        return self.rest.readline(size)


def served(window: FakeWindow, requests: Any) -> list[dict[str, Any]]:
    replies = io.BytesIO()
    lines.answer_lines(window, requests, replies, iter(()))  # type: ignore[arg-type]
    return [json.loads(line) for line in replies.getvalue().splitlines()]


def test_a_line_above_the_limit_gets_one_refusal_and_the_next_its_answer() -> None:
    window = FakeWindow()
    requests = Endless(300 << 20, b'\n{"a":1}\n')
    refused, answered = served(window, requests)
    assert refused["reason"] == "malformed" and str(MAX_REQUEST_BYTES) in refused["detail"]
    assert answered == {"answer": 1} and window.handled == [{"a": 1}]
    assert requests.maximum <= MAX_REQUEST_BYTES + 1


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_line_of_just_the_limit_is_read(ending: bytes) -> None:
    window = FakeWindow()
    line = b'{"a":"' + b"x" * (MAX_REQUEST_BYTES - 8) + b'"}'
    assert len(line) == MAX_REQUEST_BYTES
    assert served(window, io.BytesIO(line + ending)) == [{"answer": 1}]
    (refused,) = served(window, io.BytesIO(line + b" " + ending))
    assert refused["reason"] == "malformed"


@pytest.mark.parametrize("line", [b"\xff", b"{", b"[" * 1000, b"1" * 5000, b'{"a":1,"a":1}', b"1.5", b"\x00"])
def test_what_is_no_json_is_refused_by_name(line: bytes) -> None:
    (refused,) = served(FakeWindow(), io.BytesIO(line + b"\n"))
    assert refused["reason"] == "malformed" and "request" in refused["detail"]


class _Resumed:
    def __init__(self, window: FakeWindow) -> None:
        self.window = window

    def __enter__(self) -> FakeWindow:
        return self.window

    def __exit__(self, *_: object) -> None:
        return None


@contextmanager
def listening(
    window: FakeWindow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], socket.socket]]:
    """`serve --socket` in a thread of this process; gives what connects to it."""
    servers: list[Any] = []
    ready = threading.Event()
    original = lines.socketserver.ThreadingUnixStreamServer.serve_forever

    def watched(self: Any, *_: object) -> None:
        servers.append(self)
        ready.set()
        original(self, poll_interval=0.01)

    monkeypatch.setattr(commands, "resume", lambda *_, **__: _Resumed(window))
    monkeypatch.setattr(lines.socketserver.ThreadingUnixStreamServer, "serve_forever", watched)
    address = folder / "socket"
    words = [str(folder), "--socket", str(address)]
    thread = threading.Thread(target=commands.serve.main, args=(words,), kwargs={"standalone_mode": False})
    thread.start()

    def connect() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(address))
        connection.settimeout(60)
        return connection

    assert ready.wait(60)
    try:
        yield connect
    finally:
        servers[0].shutdown()
        thread.join(60)
    assert not thread.is_alive() and not address.exists()


def ask(connect: Callable[[], socket.socket]) -> dict[str, Any]:
    with connect() as connection, connection.makefile("rwb") as stream:
        stream.write(b"{}\n")
        stream.flush()
        answer: dict[str, Any] = json.loads(stream.readline())
        return answer


class Slow:
    """Answers once it is released, and says when it has begun to."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.handling, self.released = threading.Event(), threading.Event()

    def __call__(self, value: Any, *, eager: bool) -> Reply:
        self.handling.set()
        assert self.released.wait(60)
        return Reply({"answer": self.answer})


def test_a_client_that_leaves_early_disturbs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    window, slow = FakeWindow(), Slow("x" * (1 << 22))  # more than the connection's buffers hold
    with monkeypatch.context() as patch, listening(window, tmp_path, monkeypatch) as connect:
        patch.setattr(window, "handle", slow)
        connection = connect()
        connection.sendall(b"{}\n")
        assert slow.handling.wait(60)
        connection.close()
        slow.released.set()
        patch.undo()
        assert ask(connect) == {"answer": 1}
    err = capfd.readouterr().err
    assert "Traceback" not in err and "InternalError" not in err


def test_a_fault_in_one_answer_leaves_the_service_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    window = FakeWindow()
    with listening(window, tmp_path, monkeypatch) as connect:
        window.fault = ZeroDivisionError("a secret")
        with connect() as connection:
            connection.sendall(b"{}\n")
            assert connection.recv(100) == b""  # no answer: the connection ends
        window.fault = None
        assert ask(connect) == {"answer": 2}
    err = capfd.readouterr().err
    assert "rag-audit: InternalError: " in err and "Traceback" not in err and "a secret" not in err
    (report,) = (tmp_path / "cache").rglob("*.txt")
    assert "command: serve\n" in report.read_text() and "a secret" not in report.read_text()


def test_a_file_in_the_sockets_place_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("precious")
    with pytest.raises(SetupError, match="the file is not a socket"):
        lines._free(path, "--socket")
    assert path.read_text() == "precious"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "old"))
    lines._free(tmp_path / "old", "--socket")
    assert not (tmp_path / "old").exists()


def test_an_account_reads_answers_up_to_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_commands, "MAX_ANSWER_BYTES", 100)
    request: Any = SimpleNamespace(canonical=lambda: b"{}")

    def answered(length: int) -> Any:
        path = tmp_path / f"socket-{length}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen()
            listener.settimeout(60)

            def answer() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(b'"' + b"x" * (length - 2) + b'"\n')

            thread = threading.Thread(target=answer)
            thread.start()
            try:
                return account_commands.over_socket(path)(request)
            finally:
                thread.join()

    assert answered(100) == "x" * 98
    with pytest.raises(SizeError, match="input too large"):
        answered(101)


def test_an_answer_under_way_leaves_before_a_stopped_service_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, slow = FakeWindow(), Slow("late")
    drained = lines.Running.drained

    def watched(self: lines.Running, seconds: float) -> bool:
        assert not drained(self, 0.0)
        slow.released.set()
        return drained(self, 60)

    monkeypatch.setattr(window, "handle", slow)
    monkeypatch.setattr(lines.Running, "drained", watched)
    with listening(window, tmp_path, monkeypatch) as connect:
        connection = connect()
        connection.sendall(b"{}\n")
        assert slow.handling.wait(60)
    with connection:
        assert json.loads(connection.makefile("rb").readline()) == {"answer": "late"}


def test_a_service_is_told_to_stop_as_by_a_keyboard() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), process.stopped_by_signal():
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(60)
    assert signal.getsignal(signal.SIGTERM) == before
