"""`verifier trust new`: the verifier's statements about service and witnesses."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_audit.models.trust import ServiceTrust, Trust
from tests.window.test_quorum import trust_new

SERVICE = (
    "--purpose", "search in case files", "--operator", "Example GmbH",
    "--contact", "dpo@example.org", "--keys-made-by", "A, B and C",
)  # fmt: skip


def test_the_service_is_described(tmp_path: Path) -> None:
    assert trust_new(tmp_path, *SERVICE).exit_code == 0
    service = Trust.load(tmp_path / "trust.toml").service
    assert service is not None and service.model_dump() == {
        "purpose": "search in case files",
        "operator": "Example GmbH",
        "contact": "dpo@example.org",
        "keys_made_by": "A, B and C",
    }
    assert "[service]  # shown in reports, not checked" in (tmp_path / "trust.toml").read_text()
    assert trust_new(tmp_path, "--operator", "Example GmbH").exit_code == 0
    service = Trust.load(tmp_path / "trust.toml").service
    assert service is not None and (service.operator, service.purpose) == ("Example GmbH", None)
    # Without a statement, the section has only the comments that a verifier completes.
    assert (
        trust_new(tmp_path).exit_code == 0 and Trust.load(tmp_path / "trust.toml").service == ServiceTrust()
    )
    assert '# operator = ""  # ' in (tmp_path / "trust.toml").read_text()


def test_a_relation_says_nothing_about_independence(tmp_path: Path) -> None:
    """`relation` is for people and no check reads it: only `independent = false` changes the verdict."""
    assert trust_new(tmp_path, "--relation", "w1=a daughter company = same address").exit_code == 0
    trust = Trust.load(tmp_path / "trust.toml")
    assert [(w.name, w.relation, w.independent) for w in trust.witness] == [
        ("w1", "a daughter company = same address", True),
        ("w2", None, True),
    ]
    assert not trust.pilot


def test_a_witness_of_the_provider_is_named(tmp_path: Path) -> None:
    done = trust_new(tmp_path, "--not-independent", "w2", "--relation", "w2=operated by the provider")
    assert done.exit_code == 0 and "allow=pilot-witnesses" in done.stderr
    trust = Trust.load(tmp_path / "trust.toml")
    assert [w.independent for w in trust.witness] == [True, False] and trust.pilot
    assert "independent = false\n" in (tmp_path / "trust.toml").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--relation", "w3=an authority"], "no witness of the file has this name"),
        (["--not-independent", "w3"], "no witness of the file has this name"),
        (["--relation", "w1"], "the relation has no words"),
        (["--relation", "w1="], "the relation has no words"),
        (["--relation", "w1=one", "--relation", "w1=two"], "a witness has two relations"),
        (["--relation", "w1=two\nlines"], "--relation"),
        (["--purpose", "two\nlines"], "--purpose"),
    ],
)
def test_a_wrong_statement_writes_no_file(options: list[str], said: str, tmp_path: Path) -> None:
    done = trust_new(tmp_path, *options)
    assert done.exit_code == 2 and said in done.stderr and "Traceback" not in done.output
    assert not (tmp_path / "trust.toml").exists()
