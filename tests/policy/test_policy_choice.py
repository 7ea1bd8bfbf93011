"""`rag-audit provider policy new` without a mechanism: the questions on a terminal, the chosen mechanism, its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main, policy
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.base import TableShape
from rag_audit.models.policy import Policy
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, published_constants

SIZES = ("--accounts", 4, "--questions", 50)


def run(out: Path, *options: object, stdin: str | None = None) -> Result:
    words = ["provider", "policy", "new", out, "--window", "w-1", "--tenant", "law=256", *options]
    return CliRunner().invoke(main, [str(word) for word in words], input=stdin)


def made(out: Path, *options: object, stdin: str | None = None) -> Policy:
    done = run(out, *options, stdin=stdin)
    assert done.exit_code == 0, done.output
    return Policy.parse(json.loads(out.read_text()), field="policy")


def refused(out: Path, *options: object) -> str:
    done = run(out, *options)
    assert done.exit_code == 2 and "Traceback" not in done.output and not out.exists(), done.output
    return str(done.stderr)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person answers on a terminal."""
    monkeypatch.setattr(policy, "on_terminal", lambda: True)


def test_pooled_listing_with_a_document_table_is_the_default(tmp_path: Path) -> None:
    chosen = made(tmp_path / "p.json", *SIZES)
    own = chosen.mechanism_of("law")
    assert (chosen.tenants[0].accounts_max, chosen.n, chosen.k_max) == (4, 50, 10)
    assert own.name == "pooled-listing" and own.table == TableShape(256, 64, 64)
    assert own.threshold == published_constants(DEFAULT_EMBEDDER).relevance
    assert 9.5 < own.epsilon(1, None) <= float(defaults.EPS_POOLED_LISTING)
    said = " ".join((tmp_path / "p.json.explained.txt").read_text().split())
    assert (
        "m = 4 accounts x 50 questions = 200 questions; the largest m with an epsilon of at most 10" in said
    )
    assert "at this f and sampled share is 257 (--accounts-max times --n)" in said
    assert "chose pooled listing" in said


def test_more_questions_need_a_smaller_sample(tmp_path: Path) -> None:
    """The default stays at an epsilon of at most 10."""
    own = made(tmp_path / "p.json", "--accounts", 10, "--questions", 100).mechanism_of("law")
    assert own.epsilon(10, None) <= 10
    assert "--rights" in refused(tmp_path / "q.json", "--accounts", 1000, "--questions", 1000)


def test_sampling_is_chosen_if_users_have_individual_rights(tmp_path: Path) -> None:
    own = made(tmp_path / "p.json", *SIZES, "--rights").mechanism_of("law")
    assert own.name == "sampling" and own.table == TableShape(256, 64, 64)
    assert "chose sampling" in (tmp_path / "p.json.explained.txt").read_text()
    assert made(tmp_path / "q.json", *SIZES, "--no-rights").mechanism_of("law").name == "pooled-listing"


def test_options_change_the_default_table(tmp_path: Path) -> None:
    own = made(tmp_path / "p.json", *SIZES, "--positions-per-document", 8, "--fresh-rows", 5).mechanism_of(
        "law"
    )
    assert own.table == TableShape(256, 8, 5)
    own = made(tmp_path / "q.json", *SIZES, "--mechanism", "pooled-listing:0.8", "--fresh-bits").mechanism_of(
        "law"
    )
    assert own.table == TableShape(256, 64, None)


def test_an_own_mechanism_of_one_tenant_leaves_the_others_to_the_command(tmp_path: Path) -> None:
    chosen = made(tmp_path / "p.json", *SIZES, "--tenant", "hr=64", "--mechanism", "hr=none")
    assert {t.tenant: chosen.mechanism(t).name for t in chosen.tenants} == {
        "hr": "none",
        "law": "pooled-listing",
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--accounts NUMBER"),
        (("--accounts", 4), "--questions NUMBER"),
        ((*SIZES, "--rights", "--mechanism", "none"), "a tenant without --mechanism"),
        ((*SIZES, "--gains", "1,8"), "no tenant has noise"),
        ((*SIZES, "--eps-joint", "8"), "--mechanism noise"),
        ((*SIZES, "--embedder", "hashed-words-64"), "pooled listing needs the score of a relevant passage"),
        ((*SIZES, "--system", "groth16"), "the tenant's system scan"),
        ((*SIZES, "--mechanism", "none", "--fresh-rows", 4), "--documents ROWS"),
    ],
)
def test_an_option_that_is_missing_or_has_no_effect_is_named(
    tmp_path: Path, options: tuple[object, ...], told: str
) -> None:
    assert told in refused(tmp_path / "p.json", *options)


def test_a_person_is_asked_for_accounts_questions_and_rights(tmp_path: Path, person: None) -> None:
    chosen = made(tmp_path / "p.json", stdin="4\n50\nn\n")
    assert (chosen.tenants[0].accounts_max, chosen.n) == (4, 50)
    assert chosen.mechanism_of("law").name == "pooled-listing"
    assert made(tmp_path / "q.json", "--accounts", 4, stdin="50\ny\n").mechanism_of("law").name == "sampling"
    # With a mechanism, the rights decide nothing.
    assert made(tmp_path / "r.json", "--mechanism", "none", stdin="4\n50\n").n == 50


def test_the_rights_have_no_default_on_a_terminal(tmp_path: Path, person: None) -> None:
    done = run(tmp_path / "p.json", *SIZES, stdin="\n\n")
    assert done.exit_code != 0 and not (tmp_path / "p.json").exists() and "Traceback" not in done.output


def test_prompts_leave_the_output_for_programs_alone(tmp_path: Path, person: None) -> None:
    value: dict[str, Any] = json.loads(run(tmp_path / "p.json", "--json", stdin="4\n50\nn\n").stdout)
    assert value["eps_audit_by"] == "pooled-listing"


POOLED = ("--mechanism", "pooled-listing:0.95:0.1:601", "--positions-per-document", 4)


@pytest.mark.parametrize(
    ("options", "place", "told"),
    [
        ((*SIZES, "--documents", 0), "--documents", "an integer from 1 to"),
        ((*SIZES, "--positions-per-document", 0), "--positions-per-document", "an integer from 1 to"),
        ((*SIZES, *POOLED, "--documents", 257, "--fresh-rows", 8), "documents.rows", "1 to 256"),
        (
            (*SIZES, "--positions-per-document", 257),
            "documents.positions_per_document",
            "1 to 256",
        ),
        ((*SIZES, "--fresh-rows", 0), "--fresh-rows", "an integer from 1 to"),
        ((*SIZES, *POOLED, "--documents", 1, "--fresh-rows", 1), "documents.rows", "at least 2"),
        (
            ("--accounts", 9007199254740991, "--questions", 50),
            "--accounts",
            "an integer from 1 to 999999999999999",
        ),
        (
            (*SIZES, "--mechanism", "pooled-listing:0.95:1e-11:601"),
            "f",
            "at least 200 x 2^-40, for 200 queries",
        ),
        (
            (*POOLED, "--accounts", 100_000, "--questions", 1000, "--fresh-bits"),
            "accounts_max",
            "at most 16777216 queries of all accounts",
        ),
        (
            (*SIZES, "--tenant", "big=2000000", *POOLED, "--documents", 2**20 + 1, "--fresh-bits"),
            "documents.rows",
            "1 to ",
        ),
    ],
)
def test_a_number_out_of_range_names_its_range(
    tmp_path: Path, options: tuple[object, ...], place: str, told: str
) -> None:
    said = " ".join(refused(tmp_path / "p.json", *options).split())
    assert told in said and place in said, said


@pytest.mark.parametrize(("capacity", "rows"), [(1, 1), (2, 1), (2**20, 2**20)])
def test_the_smallest_and_the_largest_tables_are_policies(tmp_path: Path, capacity: int, rows: int) -> None:
    out = tmp_path / "p.json"
    words = ["provider", "policy", "new", out, "--window", "w-1", "--tenant", f"law={capacity}", *SIZES]
    words += ["--top-k", 1, "--documents", rows, "--positions-per-document", 1, "--fresh-bits"]
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    own = Policy.parse(json.loads(out.read_text()), field="policy").mechanism_of("law")
    assert own.table == TableShape(rows, 1, None)
