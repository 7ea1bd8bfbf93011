"""Every option and argument of every command, and the environment, with values that nobody should give.

Each command ends in one of its documented exit codes with a message, and never in a fault of the program (70). Commands
run in this process, in a folder of their own, and reach no other machine. The default suite takes a few values for each
parameter, always the same ones; `make test-full` takes all of them.
"""

from __future__ import annotations

import json
import os
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from rag_audit.account.account import Account
from rag_audit.cli import main
from rag_audit.service.server import Server
from tests.cli.tree import leaves
from tests.serving.conftest import Served, serving
from tests.window.simulator import QUESTIONS, TEXTS, Service

FEW = 6
"""Values for each parameter in the default suite."""
SERVICE = "http://service.test:8080"
"""An address that is not on this machine, for which the environment's proxies count."""

TEXT = (
    "",
    " ",
    "\udcff",
    "x" * 70_000,
    "-1",
    "0",
    "1e309",
    "nan",
    "\u221e",
    "\u0661\u0662",
    "a\nb\x1b[31m",
    "a=b=c",
    "=",
    ":",
    "+",
    "{}",
    "1/0",
    "0x10",
    "\U0001f642",
    "../..",
    "http://[::1",
    "http://a.test:99999",
    "http://\u00e4.test/\u00e4",
    "postgresql://[",
    "qdrant://[/x",
    "groth16:0",
    "scan:999999999",
    "9" * 400,
    "law=",
    "law=9999999999",
    "sampling:",
    "sampling:2",
    "pooled-listing:0:0",
    "127.0.0.1:99999",
    "[::1",
    f"http://{'a' * 64}.test",
    "ray://[",
    "dask:x",
    "e+1+AA==",
)
NUMBERS = ("-1", "0", "1", "x", "", "1.5", "nan", "inf", "-inf", "1e400", "9" * 30, "\u0661")
FILES: Mapping[str, bytes] = {
    "empty": b"",
    "bytes": bytes(range(256)),
    "cut.json": b'{"a":',
    "list.json": b'[1, {"x": null}, "\\ud800"]',
    "object.json": b'{"v": 1, "type": "header", "account": 5}',
    "deep.json": b"[" * 100_000,
    "number.json": b"1e999",
    "a.toml": b"[provider]\nvkey = 5\n",
    "lines.jsonl": b'{"text": 5}\n{',
    "note.txt": b"example.org\n1\nAA==\n\n\xe2\x80\x94 x AAAA\n",
}
PATHS = ("", ".", "missing/deep/x", "empty/x", "fifo", "loop", "folder", "x" * 300, "\udcff", "a\nb", *FILES)
ENVIRONMENTS: Sequence[Mapping[str, str]] = (
    {"ALL_PROXY": "socks://127.0.0.1:7891/"},
    {"HTTP_PROXY": "http://[::1", "NO_PROXY": "localhost,fd07:b51a:cc66:f0::/64"},
    {"http_proxy": "\udcff", "https_proxy": "nonsense://", "no_proxy": "[:,*.,:/"},
    {"HTTPS_PROXY": "http://proxy.test:99999", "SSL_CERT_FILE": "missing.pem"},
    {"SSL_CERT_DIR": "missing", "SSLKEYLOGFILE": "missing/keys"},
    {"LC_ALL": "xx_YY.nonsense", "LANG": "\udcff", "LANGUAGE": ":", "TZ": "../../nowhere"},
    {"COLUMNS": "x", "LINES": "-1", "TERM": "", "NO_COLOR": "1", "SOURCE_DATE_EPOCH": "x"},
    {"XDG_CACHE_HOME": "empty", "HOME": "missing", "TMPDIR": "missing"},
    {"RAG_AUDIT_DATA": "missing", "RAG_AUDIT_PORTABLE": "x", "PGPASSWORD": "\udcff", "PGPORT": "x"},
)


COMMANDS = leaves(main)
IDS = [" ".join(path) for path in COMMANDS]


@dataclass
class Place:
    """A folder with what commands are given, and a service on this machine."""

    folder: Path
    served: Served
    numbers: Iterator[int]

    def fresh(self) -> str:
        """The name of a file that does not exist yet."""
        return f"new-{next(self.numbers)}"

    def base(self, path: tuple[str, ...], url: str) -> dict[str, Any]:
        """Values with which a command does something small; what is not named here is left out, or named as missing."""
        key, public = str(self.served.parties.key.verifier), str(self.served.window.directory / "public")
        over_http = {"url": url, "provider": key}
        bases: dict[str, dict[str, Any]] = {
            "account new": {"directory": self.fresh(), "name": "a", "tenant": "law"},
            "account add": {"roster": "roster.json", "lines": "line.json"},
            "account approve": {"roster": "roster.json", "folder": "folder", "origin": "example.org", "window": "w-2"},
            "account request": {"directory": "account", "origin": "example.org", "window": "w-2"},
            "account status": {"directory": "account", **over_http},
            "account query": {"text": QUESTIONS["law"][0], "directory": "account", **over_http},
            "account receipt check": {"directory": "account", **over_http},
            "account receipt export": {"directory": "account", "public": public, "out": self.fresh()},
            "lab attack run": {"names": "s2", "target": url, "data": "missing", "attempts": "1", "out": self.fresh()},
            "lab canary new": {"file": self.fresh(), "data": "texts", "count": "2"},
            "lab canary insert": {"file": "object.json", "docs": "texts", "out": self.fresh()},
            "lab canary test": {"file": "object.json", "target": url},
            "verifier cumulative": {"windows": public},
            "verifier challenge": {"window": public, "key": "key", "trust": "trust.toml", "out": self.fresh()},
            "demo": {"docs": "missing"},
            "init": {"directory": self.fresh(), "docs": "texts"},
            "provider documents": {"source": "texts/law.jsonl", "out": self.fresh(), "tenant": "law"},
            "lab experiment run": {"names": "none-of-them", "out": self.fresh()},
            "provider export": {"window": public, "tiles": self.fresh()},
            "provider keygen": {"out": self.fresh(), "name": "example.org"},
            "provider open": {"directory": self.fresh(), "policy_file": "policy.json", "roster": "roster.json", "docs": "texts",
                     "key": "key", "witnesses": "line.json"},
            "verifier page": {"file": self.fresh()},
            "provider policy bounds": {},
            "provider policy check": {"file": "policy.json", "trust": "trust.toml"},
            "provider policy new": {"out": self.fresh(), "window": "w-1", "tenants": "law=64", "mechanisms": "sampling:0.9",
                                    "accounts_max": "16", "n": "200"},
            "account receipt verify": {"file": "receipt", "public": public, "provider": key},
            "account receipt pack": {"receipts": "folder", "window": public, "out": self.fresh()},
            "verifier trust new": {"out": self.fresh(), "origin": "example.org", "provider": key, "witnesses": key},
            "provider estimate calibrate": {"questions": "missing"},
            "verify": {"window": public, "trust": "trust.toml"},
            "witness init": {"directory": self.fresh(), "name": "w1"},
            "witness nonce": {"directory": "witness"},
            "witness cosign": {"directory": "witness", "public": public, "trust": "trust.toml"},
            "witness serve": {"directory": "witness", "http": "127.0.0.1:0", "logs": f"example.org={key}"},
            "witness submit": {"public": public, "url": url, "name": "w1", "trust": "trust.toml", "patience": "0"},
            "provider worker-key": {"out": self.fresh()},
        }  # fmt: skip
        assert bases.keys() <= set(IDS)
        chosen = bases.get(" ".join(path), {})
        for parameter in COMMANDS[path].params:
            name = str(parameter.name)
            if parameter.required and name not in chosen:
                chosen[name] = "missing" if isinstance(parameter.type, click.Path) else "x"
        assert chosen.keys() <= {p.name for p in COMMANDS[path].params}, (path, chosen.keys())
        return chosen


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    parties = Service(tmp_path_factory.mktemp("service"))
    folder = tmp_path_factory.mktemp("options")
    with parties.open(system="scan", n=400, eps_acc="2000") as window, serving(parties, window) as served:
        for name, data in FILES.items():
            (folder / name).write_bytes(data)
        os.mkfifo(folder / "fifo")
        (folder / "loop").symlink_to("loop")
        for name in ("folder", "texts"):
            (folder / name).mkdir()
        (folder / "texts" / "law.jsonl").write_text(
            "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(TEXTS["law"]))
        )
        own = Account.create(folder / "alice", "alice", "law")
        (folder / "line.json").write_bytes(own.roster_entry.canonical())
        (folder / "roster.json").write_text("[]")
        (folder / "account").symlink_to(parties.accounts["law-1"].directory)
        (folder / "policy.json").write_bytes(window.context.policy.canonical())
        (folder / "trust.toml").write_text(parties.trust_text(window.context.policy))
        parties.key.save(folder / "key")
        (folder / "witness").symlink_to(parties.root / next(iter(parties.witnesses)))
        parties.ask(window, "law-1", QUESTIONS["law"][0])
        (kept,) = parties.accounts["law-1"].receipts(served.publication)
        (folder / "receipt").write_text(kept.receipt)
        yield Place(folder, served, count())


@pytest.fixture(autouse=True)
def _alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder, without other machines, and without services that go on until they are stopped."""
    monkeypatch.chdir(place.folder)
    looked_up, connect = socket.getaddrinfo, socket.socket.connect

    def local(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in (None, "", "localhost", "127.0.0.1", "::1", b"127.0.0.1"):
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        return looked_up(host, *args, **kwargs)

    def near(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            raise ConnectionRefusedError("another machine")
        connect(self, address)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    monkeypatch.setattr(socket.socket, "connect", near)
    monkeypatch.setattr(Server, "run", lambda self: None)
    for name in list(os.environ):
        if name.lower() in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name)


def words_of(path: tuple[str, ...], values: Mapping[str, Any]) -> list[str]:
    """A command line. Values follow a sign of equality or two dashes, so that each is a value whatever it begins
    with."""
    options, arguments = [], []
    for parameter in COMMANDS[path].params:
        if parameter.name not in values:
            continue
        value = str(values[str(parameter.name)])
        if isinstance(parameter, click.Argument):
            arguments.append(value)
        else:
            options.append(f"{max(parameter.opts, key=len)}={value}")
    return [*path, *options, "--", *arguments]


def fault_of(words: Sequence[str], environment: Mapping[str, str] | None = None) -> str | None:
    """What is wrong with how a command ended, or None."""
    done = CliRunner().invoke(main, list(words), env=dict(environment or {}))
    shown = " ".join(w if len(w) < 80 else f"{w[:60]}.. ({len(w)})" for w in map(ascii, words))
    shown += "".join(f" {k}={v!a}" for k, v in (environment or {}).items())
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"{shown}: {''.join(traceback.format_exception(done.exception))[-1500:]}"
    if done.exit_code not in (0, 1, 2, 3) or "Traceback" in done.output:
        return f"{shown}: exit code {done.exit_code}: {done.output[-1500:]}"
    if done.exit_code == 2 and not done.stderr.strip() and not done.stdout.strip():
        return f"{shown}: exit code 2 without a message"
    if any(ord(c) < 32 and c not in "\n\t\r" for c in done.output):
        return f"{shown}: a control character was printed"
    return None


def values_for(parameter: click.Parameter) -> list[str]:
    kind = parameter.type
    if isinstance(kind, click.Path):
        return list(PATHS)
    if isinstance(kind, click.Choice):
        return ["", "x", "\udcff", "X" * 1000]
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return list(NUMBERS)
    return list(TEXT)


def chosen(values: Sequence[str], name: str, maximum: int | None) -> list[str]:
    """All values, or a few that differ from parameter to parameter and are the same in each run."""
    if maximum is None or len(values) <= maximum:
        return list(values)
    order = sorted(values, key=lambda value: sha256(f"{name}:{value!a}".encode()).digest())
    return order[:maximum]


def fuzzed(path: tuple[str, ...], place: Place, maximum: int | None) -> list[str]:
    faults = []
    for parameter in COMMANDS[path].params:
        if getattr(parameter, "is_flag", False):
            continue
        for value in chosen(values_for(parameter), f"{path} {parameter.name}", maximum):
            given = {**place.base(path, place.served.service.url), str(parameter.name): value}
            if (fault := fault_of(words_of(path, given))) is not None:
                faults.append(fault)
    return faults


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_no_value_ends_a_command_in_a_fault(path: tuple[str, ...], place: Place) -> None:
    faults = fuzzed(path, place, FEW)
    assert not faults, "\n\n".join(faults)


@pytest.mark.full
@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_none_of_all_values_ends_a_command_in_a_fault(path: tuple[str, ...], place: Place) -> None:
    faults = fuzzed(path, place, None)
    assert not faults, "\n\n".join(faults)


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_no_environment_ends_a_command_in_a_fault(path: tuple[str, ...], place: Place) -> None:
    asks = any(p.name == "url" or p.name == "target" for p in COMMANDS[path].params)
    faults = []
    for environment in ENVIRONMENTS if asks else chosen_environments(path):
        words = words_of(path, place.base(path, SERVICE if asks else place.served.service.url))
        if (fault := fault_of(words, environment)) is not None:
            faults.append(fault)
    assert not faults, "\n\n".join(faults)


def chosen_environments(path: tuple[str, ...]) -> list[Mapping[str, str]]:
    """One environment for a command that asks no service, another one for the next command."""
    return [ENVIRONMENTS[sha256(repr(path).encode()).digest()[0] % len(ENVIRONMENTS)]]


@pytest.mark.parametrize("environment", ENVIRONMENTS[:4], ids=["socks", "address", "bytes", "port"])
def test_a_service_on_this_machine_is_asked_whatever_the_proxies(
    environment: Mapping[str, str], place: Place
) -> None:
    words = words_of(("account", "status"), place.base(("account", "status"), place.served.service.url))
    proxies = {k: v for k, v in environment.items() if "PROXY" in k.upper()}
    done = CliRunner().invoke(main, words, env=proxies)
    assert done.exit_code == 0, done.output


def test_what_the_fuzzing_finds(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that raises what is no named error is found."""

    def broken(raised: Callable[[], Any]) -> str | None:
        monkeypatch.setattr(Account, "used", lambda *_: raised())
        return fault_of(
            words_of(("account", "status"), place.base(("account", "status"), place.served.service.url))
        )

    def fails() -> None:
        raise ValueError("not a named error")

    assert broken(lambda: (0, 3, False)) is None
    assert "exit code 70" in str(broken(fails))
