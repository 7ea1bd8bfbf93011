"""What `policy new` and `policy bounds` say in words of a policy: each statement is about this policy's own sizes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.descriptions.base import listed_at_random, percent
from rag_audit.mechanisms.noise import Noise
from rag_audit.models.policy import Policy
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.report.policy_text import covers
from tests.drafting import draft


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def words(folder: Path, *options: object) -> str:
    """What `policy new` prints, in one line."""
    noise = [] if "--mechanism" in options else ["--mechanism", "noise"]
    done = run(
        "provider", "policy", "new", folder / "p.json", "--window", "w", "--coalition-proof", "none",
        "--accounts", 16, "--questions", 200, *noise, *options,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def drafted(capacities: dict[str, int], n: int = 200, **mechanisms: Mechanism) -> Policy:
    return draft(window="w", opens_at=1, closes_at=2, capacities=capacities, n=n, k_max=2, eps_acc="20",
                        mechanisms=mechanisms or None)  # fmt: skip


def test_the_chance_of_being_handed_out_is_that_of_the_smallest_index(tmp_path: Path) -> None:
    said = words(tmp_path, "--tenant", "law=64", "--tenant", "medicine=1024")
    sentence = (
        "Even with unlimited noise a given document among 64 positions of law is returned with probability 7.8 % a"
        " query (K = 5), nearly 100 % over 200 queries."
    )
    assert sentence in said and "among 1,024" not in said
    assert sentence in " ".join(run("provider", "policy", "bounds", tmp_path / "p.json").stdout.split())
    assert (
        sentence
        in json.loads(run("provider", "policy", "bounds", tmp_path / "p.json", "--json").stdout)["covers"]
    )
    large = covers([drafted({"law": 1024})])
    assert "among 1,024 positions of law is returned with probability 0.49 % a query (K = 5), 62 %" in large


def test_a_sample_returns_no_text_of_a_position_that_it_drops() -> None:
    said = covers([drafted({"law": 64}, law=Noise(keep=PROBABILITY_RANGE // 2))])
    assert "with probability 3.9 % a query (K = 5), 50 % over 200 queries" in said


def test_windows_together_hand_out_more_than_each() -> None:
    large = drafted({"law": 1024})
    assert covers([large, large]).endswith(
        "returned to one account with probability 86 % over the 400 queries of 2 windows."
    )


def test_a_document_has_one_size_in_all_windows() -> None:
    """A document of 8 positions has 8 positions in a window without a document table too."""
    table = TableShape(rows=16, positions_per_document=8, fresh_rows=None)
    plain, by_document = (drafted({"law": 64}, n=1, law=Noise(documents=own)) for own in (None, table))
    once = listed_at_random(5, 64, 8)
    assert percent(once) == "50 %"
    for windows in ([plain, by_document], [by_document, plain], [by_document, by_document]):
        said = covers(windows)
        assert f"returned to one account with probability {percent(1 - (1 - once) ** 2)} over the 2" in said
        assert "a given document of 8 positions among 64 positions" in said


TABLE = ("--documents", 64, "--positions-per-document", 4, "--fresh-bits")


@pytest.mark.parametrize("kind", ["none", "sampling", "pooled-listing"])
def test_nothing_is_said_of_noise_that_no_tenant_has(tmp_path: Path, kind: str) -> None:
    said = words(
        tmp_path, "--tenant", "law=64", "--mechanism", kind, *(TABLE if kind == "pooled-listing" else ())
    )
    assert "unlimited noise" not in said
    assert ("These figures only cover the list of selected positions" in said) is (kind != "none")
    if kind == "pooled-listing":
        assert "Random bits list a given document of law with a probability of at most 10 % over" in said


def test_constants_without_an_index_have_the_formula() -> None:
    said = run(
        "provider",
        "policy",
        "bounds",
        "--n",
        20,
        "--k",
        2,
        "--eps-acc",
        20,
        "--delta-acc",
        "1e-7",
        "--delta",
        "1e-5",
        "--gains",
        "1,8,64",
        "--lattice",
        32,
    )
    assert "with probability 1 - (1 - K/N)^20 over 20 queries" in " ".join(said.stdout.split()), said.output


@pytest.mark.parametrize(
    ("share", "shown"),
    [(1.0, "100 %"), (0.9999, "nearly 100 %"), (0.99, "99 %"), (0.078125, "7.8 %"), (0.00005, "0.005 %")],
)
def test_only_what_is_certain_is_100_percent(share: float, shown: str) -> None:
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("kind", "missed"),
    [
        ("sampling:0.9", "10 %"),
        ("noise:0.7", "30 %"),
    ],
)
def test_an_answer_misses_what_the_sample_drops(tmp_path: Path, kind: str, missed: str) -> None:
    said = words(tmp_path, "--tenant", "law=64", "--mechanism", kind)
    assert f"an answer misses about {missed} of its passages" in said


NOISE_ALONE = ("eps_audit does not cover more accounts", "times epsilon", "The delta of noise")


@pytest.mark.parametrize("options", [("none",), ("sampling",), ("noise",)])
def test_lines_about_noise_are_for_policies_with_noise(tmp_path: Path, options: Sequence[str]) -> None:
    said = words(tmp_path, "--tenant", "law=64", "--mechanism", *options)
    explained = said.partition("Guarantees")[0]
    assert [line in explained for line in NOISE_ALONE] == [options == ("noise",)] * 2 + [False]
    assert ("exclusion_factor" in explained) is (options == ("sampling",))
    assert ("no assumption on coalitions" in explained) is (options != ("none",))


def test_a_sample_below_the_asked_share_is_named_as_that() -> None:
    """A share of 0.7 is below the 0.8 that a verifier may ask for, and most answers still have what they find."""
    said = " ".join(run("verifier", "explain", "trust.min_keep").stdout.split())
    assert "The sample contains a smaller share of positions than you require" in said
    assert "mostly" not in said
