"""Errors that a newcomer meets name the next step, and commands of two groups have their own help."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (("account", "request", "FOLDER", "--origin", "o", "--window", "w"), "rag-audit account new"),
        (("witness", "nonce", "FOLDER"), "rag-audit witness init"),
    ],
    ids=["account", "witness"],
)
@pytest.mark.parametrize("exists", [True, False], ids=["empty", "missing"])
def test_a_wrong_folder_names_the_command_that_makes_one(
    words: tuple[str, ...], step: str, exists: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    if exists:
        folder.mkdir()
    done = run(*(folder if word == "FOLDER" else word for word in words))
    assert done.exit_code == 2 and f"at: {folder}" in done.stderr
    assert "hint: " in done.stderr and step in done.stderr


def test_a_key_is_no_nonce_line(tmp_path: Path) -> None:
    key, line = tmp_path / "w1.pub", tmp_path / "line.json"
    key.write_text("w1+0de650b4+BCoHIzD5TYbYEYohCGyOTgKD0kQXuPZRDj0rBV0SRg4Z\n")
    line.write_text("[]")
    done = run("provider", "enrol", tmp_path / "w", line, "--witness", key)
    assert done.exit_code == 2 and f"--witness {key}" in done.stderr
    assert "rag-audit witness nonce" in done.stderr


def test_each_group_says_what_its_key_is_for() -> None:
    provider, verifier = (run(group, "keygen", "--help").stdout for group in ("provider", "verifier"))
    assert "signs a provider's ledger" in provider and "signs a verifier's challenges" in verifier
