"""`rag-audit verifier challenge` signs no draw over a ledger that can still change."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.log.note import parse_note, sign_note, verify_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.challenge import Challenge
from tests.named import error_name

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    SigningKey.generate("verifier.example.org").save(tmp_path / "key")
    return tmp_path / "key"


def run(window: Path, key: Path, trust: Path = EXAMPLES / "trust.toml") -> Result:
    arguments = [
        "verifier",
        "challenge",
        window,
        "--key",
        key,
        "--trust",
        trust,
        "--out",
        key.parent / "note.txt",
    ]
    return CliRunner().invoke(main, [str(a) for a in arguments])


def changed(folder: Path, **parts: object) -> Path:
    value = json.loads((EXAMPLES / "window.json").read_text())
    path = folder / "window.json"
    path.write_text(json.dumps({**value, **parts}))
    return path


def test_a_cosigned_ledger_is_challenged(key: Path) -> None:
    assert run(EXAMPLES / "window.json", key).exit_code == 0
    note = parse_note((key.parent / "note.txt").read_text())
    verify_note(note, [SigningKey.load(key).verifier])
    assert Challenge.parse(note.text, field="note").sample is None


def test_the_command_draws_once_and_its_note_can_be_named(key: Path, tmp_path: Path) -> None:
    """In full mode nothing depends on the draw; over another ledger the named note is still not answered."""
    shutil.copy(EXAMPLES / "trust.toml", tmp_path / "trust.toml")
    vkey = SigningKey.load(key).verifier
    with (tmp_path / "trust.toml").open("a") as file:
        file.write(f'\n[[verifier]]\nname = "own"\nvkey = "{vkey}"\n')
    notes = []
    for _ in range(2):
        assert run(EXAMPLES / "window.json", key).exit_code == 0
        notes.append((tmp_path / "note.txt").read_text())
    assert notes[0] == notes[1]
    verify = ["verify", EXAMPLES / "window.json", "--trust", tmp_path / "trust.toml", "--json"]
    verify += ["--receipts", EXAMPLES / "receipts", "--challenge", tmp_path / "note.txt"]
    done = CliRunner().invoke(main, [str(a) for a in verify])
    assert done.exit_code == 0, done.output
    requested = Challenge.parse(parse_note(notes[0]).text, field="note")
    other = replace(requested, root=bytes(32))
    (tmp_path / "note.txt").write_text(str(sign_note(other.text(), SigningKey.load(key))))
    done = CliRunner().invoke(main, [str(a) for a in verify])
    assert done.exit_code == 2
    assert json.loads(done.stdout)["line"] == "UNDECIDED proof.challenge"


def test_without_a_quorum_there_is_no_challenge(key: Path, tmp_path: Path) -> None:
    final = json.loads((EXAMPLES / "window.json").read_text())["final_checkpoint"]
    alone = re.sub(r"\u2014 w2 .*\n", "", final)
    assert alone != final
    done = run(changed(tmp_path, final_checkpoint=alone), key)
    assert done.exit_code == 2 and error_name(done) == "SignatureError"
    assert not (tmp_path / "note.txt").exists()


def test_entries_of_another_ledger_are_not_challenged(key: Path, tmp_path: Path) -> None:
    entries = json.loads((EXAMPLES / "window.json").read_text())["entries"]
    done = run(changed(tmp_path, entries=[*entries[:-2], entries[-1]]), key)
    assert done.exit_code == 2 and error_name(done) == "SchemaError"
    assert not (tmp_path / "note.txt").exists()


def test_another_provider_is_not_challenged(key: Path, tmp_path: Path) -> None:
    text = (EXAMPLES / "trust.toml").read_text()
    vkey = str(SigningKey.generate("example.org/rag").verifier)
    (tmp_path / "trust.toml").write_text(re.sub(r'vkey = "example.org/rag[^"]*"', f'vkey = "{vkey}"', text))
    done = run(EXAMPLES / "window.json", key, tmp_path / "trust.toml")
    assert done.exit_code == 2 and error_name(done) == "SignatureError"
