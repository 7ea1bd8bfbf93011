"""provider.toml as the source of the options that all windows share: read, overridden, and refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.cli.common import PATH
from rag_audit.cli.config import VALUES, configured, given
from rag_audit.cli.diff import diff
from rag_audit.cli.open import open_
from rag_audit.cli.window import close, prove, serve

WITNESS = "w1+0de650b4+BCoHIzD5TYbYEYohCGyOTgKD0kQXuPZRDj0rBV0SRg4Z"
CONFIG = f"""
folder = "run"
key = "provider.skey"
policy = "policy.json"
roster = "roster.json"

[documents]
folder = "texts"
chunk = 500
skip_unreadable = true

[serve]
socket = "rag.sock"
precompute = 2

[proving]
workers = 0

[[witness]]
name = "w1"
vkey = "{WITNESS}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["provider", *words])


@click.command()
@configured(*VALUES)
@click.option("--docs", type=PATH)
@click.option("--chunk", type=int, default=1000)
@click.option("--workers", type=click.IntRange(min=1), default=1)
@click.option("--store")
@click.option("--precompute", type=int, default=0)
@click.pass_context
def shown(
    ctx: click.Context, docs: Path | None, chunk: int, workers: int, store: str | None, precompute: int
) -> None:
    """Print the values that a command receives."""
    value = [str(docs), chunk, workers, store, precompute, given(ctx, "docs", "chunk")]
    click.echo(json.dumps(value))


def values(*words: str) -> list[object]:
    done = CliRunner().invoke(shown, words)
    assert done.exit_code == 0, done.output
    result: list[object] = json.loads(done.stdout)
    return result


def test_without_a_configuration_each_option_has_its_own_default(folder: Path) -> None:
    assert values() == ["None", 1000, 1, None, 0, []]


def test_the_file_of_the_current_folder_gives_defaults(folder: Path) -> None:
    (folder / "provider.toml").write_text(CONFIG)
    assert values() == ["texts", 500, 1, None, 2, []]


def test_the_command_line_overrides_the_file(folder: Path) -> None:
    (folder / "provider.toml").write_text(CONFIG)
    assert values("--docs", "other", "--chunk", "800")[:2] == ["other", 800]
    assert values("--docs", "other")[-1] == ["docs"]


def test_another_file_can_be_named_and_its_paths_are_relative_to_it(folder: Path) -> None:
    (folder / "provider.toml").write_text("not TOML")
    (folder / "there").mkdir()
    (folder / "there" / "rag.toml").write_text(CONFIG.replace("chunk = 500", "chunk = 600"))
    assert values("--config", "there/rag.toml")[:2] == ["there/texts", 600]


def test_help_reads_no_configuration(folder: Path) -> None:
    (folder / "provider.toml").write_text("not TOML")
    for command in ("open", "serve", "close", "prove", "diff"):
        assert run(command, "--help").exit_code == 0


@pytest.mark.parametrize("command", [open_, serve, close, prove, diff], ids=lambda c: str(c.name))
def test_a_command_has_the_options_that_the_file_gives(command: click.Command) -> None:
    names = {str(p.name) for p in command.params}
    assert "config" in names
    groups = {
        "open": {"key", "policy_file", "roster", "docs", "chunk", "name", "model", "vectors", "store"},
        "serve": {"address", "http", "precompute", "low_memory", "noise_mib", "enrolments"},
        "close": {"certify", "address", "workers"},
        "prove": {"address", "workers", "low_memory"},
        "diff": {"docs", "chunk", "overlap", "headings", "text_alone", "skip_unreadable"},
    }
    assert groups[str(command.name)] <= names


@pytest.mark.parametrize(
    ("old", "new", "place", "shown"),
    [
        ("chunk = 500", 'chunk = "many"', "line 9: documents.chunk", ["an integer", "many"]),
        ("chunk = 500", "chunks = 500", "line 9: documents.chunks", ["docs/deploy/README.md"]),
        ("precompute = 2", "precompute = -1", "line 14: serve.precompute", ["at least 0", "-1"]),
        ("precompute = 2", 'precompute = "two"', "line 14: serve.precompute", ["an integer", "two"]),
        ('key = "provider.skey"', "", "line 1: key", ["to be present"]),
        ("chunk = 500", "chunk = 500\nchunk = 600", "provider.toml", ["not valid TOML"]),
        ("[serve]", "[documents]\n[serve]", "provider.toml", ["not valid TOML"]),
        (CONFIG, "\0", "provider.toml", ["not valid TOML"]),
    ],
    ids=["type", "unknown", "range", "text", "absent", "key twice", "table twice", "no TOML"],
)
@pytest.mark.parametrize(
    "words", [("open", "w"), ("serve", "w", "--stdio"), ("diff", "w")], ids=lambda w: w[0]
)
def test_a_wrong_file_is_named_with_key_values_and_next_step(
    words: tuple[str, ...], old: str, new: str, place: str, shown: list[str], folder: Path
) -> None:
    (folder / "provider.toml").write_text(CONFIG.replace(old, new))
    done = run(*words)
    assert done.exit_code == 2 and "Traceback" not in done.output
    assert "provider.toml" in done.stderr and place in done.stderr
    assert all(part in done.stderr for part in shown), done.stderr
    assert "hint: " in done.stderr and "docs/deploy/README.md" in done.stderr
    assert not (folder / "w").exists()


def test_a_missing_file_is_an_error_only_if_it_is_named(folder: Path) -> None:
    done = run("open", "w", "--config", "rag.toml")
    assert done.exit_code == 2 and "rag.toml" in done.stderr and "docs/deploy/README.md" in done.stderr
    assert "a new window needs" in run("open", "w").stderr


def test_a_folder_is_no_configuration(folder: Path) -> None:
    (folder / "provider.toml").mkdir()
    done = run("open", "w")
    assert done.exit_code == 2 and "provider.toml" in done.stderr


def test_the_file_replaces_all_options_but_the_nonce_lines(folder: Path) -> None:
    (folder / "provider.toml").write_text(CONFIG)
    done = run("open", "w")
    assert "policy.json" in done.stderr and "a new window needs" not in done.stderr


@pytest.mark.parametrize("words", [("--stdio",), ("--http", "127.0.0.1:0"), ("--socket", "s"), ()])
def test_an_address_of_the_command_line_replaces_the_one_of_the_file(
    words: tuple[str, ...], folder: Path
) -> None:
    (folder / "provider.toml").write_text(CONFIG.replace('socket = "rag.sock"', 'http = "127.0.0.1:0"'))
    done = run("serve", "w", *words)
    assert "there is no window in this folder" in done.stderr  # the address was accepted
    both = run("serve", "w", "--stdio", "--socket", "s")
    assert "give one of --socket, --http and --stdio" in both.stderr
