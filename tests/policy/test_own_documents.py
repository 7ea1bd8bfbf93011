"""The statement that a provider chose its policy with the help of its own documents: who writes and who repeats it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.canonical import jcs, sha256
from rag_audit._internal.errors import SchemaError
from rag_audit.cli import main
from rag_audit.models.policy import OWN_DOCUMENTS, Policy
from rag_audit.report.build import report_of
from rag_audit.report.verification import verify_window
from tests.window.simulator import finished_window

PASSAGES = {
    "oil": "The oil crisis of 1973 began when exporting countries proclaimed an embargo.",
    "tea": "Tea is an aromatic drink prepared by pouring hot water over cured leaves.",
    "sun": "The Sun is the star at the centre of the Solar System.",
}
QUESTIONS = {"How is tea prepared?": "tea", "Which star is at the centre of the Solar System?": "sun"}
FAST = ("--gains", "1,8", "--lattice", 64, "--repeats", 1, "--mechanism", "sampling:0.9", "--n", 2)


def lines(values: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a public collection of three passages, own documents, and a policy."""
    monkeypatch.delenv("RAG_AUDIT_DATA", raising=False)
    passages = lines([{"id": name, "text": text} for name, text in PASSAGES.items()])
    questions = lines([{"question": text, "passage": name} for text, name in QUESTIONS.items()])
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "squad_dev_v1.1_passages.jsonl.gz").write_bytes(gzip.compress(passages))
    (tmp_path / "public" / "squad_dev_v1.1_questions.jsonl.gz").write_bytes(gzip.compress(questions))
    (tmp_path / "law.jsonl").write_bytes(passages)
    (tmp_path / "questions.jsonl").write_bytes(questions)
    done = run(
        "new", tmp_path / "p.json", "--window", "w", "--tenant", "law=64", "--accounts", 2, "--questions", 5
    )
    assert done.exit_code == 0, done.output
    return tmp_path


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["provider", "policy", *map(str, words)])


def explored(*words: object) -> dict[str, Any]:
    done = run("explore", *FAST, "--json", *words)
    assert done.exit_code == 0, done.output
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def refused(*words: object) -> str:
    done = run("explore", *FAST, *words)
    assert done.exit_code == 2 and "Traceback" not in done.output, done.output
    return str(done.stderr)


# -- explore ---------------------------------------------------------------------------------------------


def test_the_texts_are_those_of_a_public_collection(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (place / "p.json").read_bytes()
    value = explored("--data", place / "public", "--policy", place / "p.json")
    assert value["without_noise"]["recall"] == "1.0000" and value["capacity"] == 8, (
        "not the policy's capacity"
    )
    monkeypatch.setenv("RAG_AUDIT_DATA", str(place / "public"))
    done = run("explore", *FAST)
    assert done.exit_code == 0 and "public texts: SQuAD dev v1.1, 3 passages, 2 of 2 questions" in done.stderr
    assert (place / "p.json").read_bytes() == before, "public texts leave no statement"


def test_a_missing_collection_is_named_with_its_remedy(place: Path) -> None:
    told = refused()
    assert "the text collections are missing" in told and "RAG_AUDIT_DATA" in told
    for remedy in ("--data FOLDER", "--index", "--own-texts"):
        assert remedy in told
    assert "scifact_passages.jsonl.gz" in refused("--data", place / "public", "--collection", "scifact")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--own-texts", "law.jsonl", "--questions", "questions.jsonl"), "no policy can record"),
        (("--own-texts", "law.jsonl", "--policy", "p.json"), "--questions FILE"),
        (("--index", "law.jsonl"), "--questions FILE"),
        (("--questions", "questions.jsonl"), "the questions have no texts"),
        (
            ("--index", "law.jsonl", "--own-texts", "law.jsonl", "--questions", "questions.jsonl"),
            "two sources",
        ),
        (("--index", "law.jsonl", "--collection", "squad", "--questions", "questions.jsonl"), "two sources"),
    ],
)
def test_options_that_contradict_one_another_are_named(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(place)
    before = (place / "p.json").read_bytes()
    assert told in refused(*words)
    assert (place / "p.json").read_bytes() == before


def own_texts(place: Path) -> tuple[object, ...]:
    """The options for the provider's own texts."""
    return (
        "--own-texts",
        place / "law.jsonl",
        "--questions",
        place / "questions.jsonl",
        "--policy",
        place / "p.json",
    )


def test_own_texts_are_recorded_in_the_policy_and_its_explanation(place: Path) -> None:
    before = Policy.parse(json.loads((place / "p.json").read_text()), field="policy")
    own = own_texts(place)
    explored(*own)
    after = Policy.parse(json.loads((place / "p.json").read_text()), field="policy")
    assert after == before.model_copy(update={"own_documents": True}) and after.digest() != before.digest()
    explained = (place / "p.json.explained.txt").read_text()
    assert after.digest() in explained and before.digest() not in explained
    assert OWN_DOCUMENTS in " ".join(explained.split())
    again = (place / "p.json").read_bytes()
    explored(*own)
    assert (place / "p.json").read_bytes() == again


def test_the_statement_precedes_the_measurement(place: Path) -> None:
    """An interrupted command leaves the statement."""
    (place / "questions.jsonl").write_bytes(lines([{"question": "What?", "passage": "absent"}]))
    own = own_texts(place)
    assert "not in the index" in refused(*own)
    assert json.loads((place / "p.json").read_text())["own_documents"] is True


# -- policy ----------------------------------------------------------------------------------------------


def test_a_policy_without_the_statement_has_one_form(place: Path) -> None:
    value = json.loads((place / "p.json").read_text())
    policy = Policy.parse(value, field="policy")
    assert "own_documents" not in value and policy.dump() == value
    assert policy.digest() == sha256(jcs(value)).hex()
    for other in (None, False, 1, "true"):
        with pytest.raises(SchemaError) as caught:
            Policy.parse({**value, "own_documents": other}, field="policy")
        assert caught.value.field == "policy.own_documents"


def test_policy_new_and_policy_check_state_it(place: Path, tmp_path: Path) -> None:
    words = ["--window", "w", "--tenant", "law=64", "--accounts", 2, "--questions", 5]
    done = run("new", place / "own.json", *words, "--own-documents")
    assert done.exit_code == 0 and OWN_DOCUMENTS in " ".join(done.output.split())
    example = Path(__file__).parents[2] / "docs" / "examples" / "trust.toml"
    for name, stated in (("p.json", False), ("own.json", True)):
        text = run("check", place / name, "--trust", example).stdout
        assert (OWN_DOCUMENTS in text) is stated
        value = json.loads(run("check", place / name, "--trust", example, "--json").stdout)
        assert value["own_documents"] is stated


# -- verdict ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stated", [False, True])
def test_verdict_and_report_repeat_it(tmp_path: Path, stated: bool) -> None:
    window = finished_window(tmp_path / "window", rounds=1, system="scan", own_documents=stated)
    assert ("own_documents" in window.file.policy) is stated
    verdict = verify_window(
        window.file, trust=window.service.trust(window.policy), receipts=[window.receipts]
    )
    assert (OWN_DOCUMENTS in verdict.notes) is stated
    assert (OWN_DOCUMENTS in report_of(verdict).notes) is stated
