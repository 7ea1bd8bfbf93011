"""Policies whose tenants name their mechanisms: each field at its ends, what contradicts another, and the figures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import read_json
from rag_audit.cli import main
from rag_audit.commit.compare import comparison
from rag_audit.commit.draft import exact_scores
from rag_audit.errors import PolicyError, RagAuditError, SchemaError
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.accounting import NO_BOUND, POOLED_LISTING, text
from rag_audit.mechanisms.accounting.bernoulli import NoisedSampling
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.mechanisms.accounting.documents import flip_probability_for, pooled_epsilon, pooled_factor
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.descriptions import chosen
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.none import Exact
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.policy import Policy
from rag_audit.proofs.policy import check_policy
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.report.cumulative import compose, load_window
from rag_audit.report.policy_text import explain
from tests.drafting import draft

DIMENSION = 768
KEEP = 9 * PROBABILITY_RANGE // 10


def drafted(system: str = "scan", **mechanisms: Mechanism) -> Policy:
    return draft(
        window="w-1",
        opens_at=1,
        closes_at=2,
        capacities=dict.fromkeys(mechanisms, 64),
        n=4,
        k_max=2,
        eps_acc="20",
        system=system,
        mechanisms=mechanisms,
    )


LISTS = PooledListing(keep=KEEP, rules=PoolRules(0, 354, "0.1"), documents=TableShape(32, 4, 8))
CHANCE = flip_probability_for("0.1", queries=64)  # of 4 queries of each of 16 accounts
EPS, FACTOR = text(pooled_epsilon(KEEP, CHANCE)), text(pooled_factor(KEEP, CHANCE, queries=64))
MIXED = drafted(exact=Exact(), lists=LISTS, noise=Noise(), sample=Sampling(keep=KEEP))
LIST, NOISE, SAMPLE = 1, 2, 3  # the place of each tenant, in the order of names


def changed(change: Callable[[dict[str, Any]], object]) -> Policy:
    value = MIXED.dump()
    change(value)
    return Policy.parse(value, field="policy")


def tenant(at: int, **values: object) -> Callable[[dict[str, Any]], object]:
    return lambda policy: policy["tenants"][at].update(values)


def test_each_tenant_has_its_own_rules() -> None:
    check_policy(MIXED, DIMENSION)
    rules = {t.tenant: MIXED.mechanism(t) for t in MIXED.tenants}
    assert {name: r.name for name, r in rules.items()} == {
        "exact": "none",
        "lists": "pooled-listing",
        "noise": "noise",
        "sample": "sampling",
    }
    assert rules["noise"].gains == (1, 8) and rules["sample"].gains == ()
    assert rules["sample"].keep == KEEP and not rules["noise"].sampled
    assert [sorted(t.circuits) for t in MIXED.tenants] == [
        ["embed", "retrieve"],
        ["embed", "retrieve", "sample"],
        ["embed", "retrieve"],
        ["embed", "retrieve", "sample"],
    ]


def test_noise_may_be_sampled_too_and_keeps_its_name() -> None:
    policy = drafted(both=Noise(keep=KEEP))
    check_policy(policy, DIMENSION)
    assert policy.mechanism(policy.tenants[0]).name == "noise"
    figures = policy.figures()
    assert figures["tenants"]["both"]["eps"] == figures["eps_audit"] != "inf"
    noised = NoisedSampling(KEEP, policy.top_k, 64)  # of 4 queries each by 2 accounts, and by 16
    assert (
        figures["exclusion_factor"]
        == figures["tenants"]["both"]["exclusion_factor"]
        == text(noised.exclusion_factor(8))
    )
    assert (
        figures["exclusion_factor_all_accounts"]
        == text(noised.exclusion_factor(64))
        != figures["exclusion_factor"]
    )
    assert figures["positions_per_document"] == 1


def test_a_policy_of_another_version_is_refused() -> None:
    assert Policy.parse(MIXED.dump(), field="policy") == MIXED
    for version in (0, 2, "1", True, 1.0, None):
        with pytest.raises(SchemaError) as caught:
            Policy.parse({**MIXED.dump(), "v": version}, field="policy")
        assert caught.value.field is not None and caught.value.field.startswith("policy.")


@pytest.mark.parametrize(
    "change, field, expected",
    [
        (tenant(SAMPLE, keep=0), "tenants[3].keep", "at least 1"),
        (tenant(SAMPLE, keep=PROBABILITY_RANGE), "tenants.sample.keep", f"1..{PROBABILITY_RANGE - 1}"),
        (tenant(SAMPLE, keep=1 << 53), "tenants[3].keep", "at most"),
        (tenant(SAMPLE, scores=None), "tenants.sample.scores", "a score window"),
        (tenant(NOISE, scores=asdict(exact_scores(DIMENSION))), "tenants.noise.scores", "null"),
        (tenant(SAMPLE, mechanism="pooled-listing"), "tenants.sample.flip_probability", "a value"),
        (tenant(LIST, noise=True), "tenants.lists.noise", "false"),
        (tenant(LIST, keep=None), "tenants.lists.keep", "0.9 is usual"),
        (tenant(LIST, flip_probability=None), "tenants.lists.flip_probability", "a value"),
        (
            tenant(LIST, flip_probability=PROBABILITY_RANGE),
            "tenants.lists.flip_probability",
            f"1..{PROBABILITY_RANGE - 1}",
        ),
        (lambda p: p.update(top_k=1025), "top_k", "at most 1024, whose receipt fits"),
        (tenant(LIST, threshold=None), "tenants.lists.threshold", "a value"),
        (tenant(LIST, threshold=49 * DIMENSION + 1), "tenants.lists.threshold", "at most 37632"),
        (tenant(LIST, mechanism="top-k"), "tenants.lists.flip_probability", "null"),
        (
            tenant(SAMPLE, mechanism="noise"),
            "tenants[3].mechanism",
            "'top-k' or 'pooled-listing'",
        ),
        (tenant(SAMPLE, flip_probability=1), "tenants.sample.flip_probability", "null"),
        (tenant(SAMPLE, threshold=1), "tenants.sample.threshold", "null"),
        (
            tenant(SAMPLE, scores={"lo": 5, "hi": 5, "lattice": 4}),
            "tenants.sample.scores.hi",
            "greater than lo",
        ),
        (
            tenant(SAMPLE, scores={"lo": 0, "hi": 49_153, "lattice": 1 << 16}),
            "tenants.sample.scores.hi",
            "at most 49152",
        ),
        (
            tenant(SAMPLE, scores={"lo": 0, "hi": 16, "lattice": 24}),
            "tenants.sample.scores.lattice",
            "power of two",
        ),
        (
            tenant(SAMPLE, scores={"lo": 0, "hi": 16, "lattice": 8}),
            "tenants.sample.scores.lattice",
            "from 16, the width",
        ),
        (tenant(SAMPLE, circuits={"retrieve": "00" * 32}), "tenants.sample.circuits", "sample"),
        (
            tenant(0, circuits={"retrieve": "00" * 32, "sample": "00" * 32}),
            "tenants.exact.circuits",
            "digests for",
        ),
        (
            tenant(NOISE, noise=False, scores=asdict(exact_scores(DIMENSION))),
            "noise",
            "null, since no tenant has noise",
        ),
        (lambda p: p.update(noise=None), "eps_acc", "null, since the policy has no noise"),
        (lambda p: p.update(sigma=None), "sigma", "a value"),
        (lambda p: p.update(eps_acc=None), "eps_acc", "a value"),
    ],
)
def test_each_field_is_bounded_and_contradicts_no_other(
    change: Callable[[dict[str, Any]], object], field: str, expected: str
) -> None:
    with pytest.raises(RagAuditError) as caught:
        changed(change).check(DIMENSION)
    assert caught.value.field == f"policy.{field}"
    assert expected in str(caught.value.expected)


def test_without_noise_nothing_of_it_is_said() -> None:
    policy = drafted(sample=Sampling(keep=KEEP))
    policy.check(DIMENSION)
    assert (policy.noise, policy.eps_acc, policy.delta_acc, policy.calibration, policy.sigma) == (None,) * 5
    for name, value in (("eps_acc", "4"), ("sigma", "1"), ("calibration", "exact")):
        with pytest.raises(PolicyError) as caught:
            Policy.parse({**policy.dump(), name: value}, field="policy").check(DIMENSION)
        assert caught.value.field == f"policy.{name}"
    figures = policy.figures()
    assert "bounds" not in figures and figures["eps_audit"] == "inf" and figures["exclusion_factor"] == "10"


def test_one_tenant_without_noise_leaves_no_epsilon_for_the_window() -> None:
    figures = MIXED.figures()
    assert (figures["eps_audit"], figures["eps_audit_by"]) == ("inf", NO_BOUND)
    eps = {name: t["eps"] for name, t in figures["tenants"].items()}
    assert eps["exact"] == eps["sample"] == "inf" != eps["noise"]
    for name in ("exclusion_factor", "exclusion_factor_all_accounts"):
        assert [t[name] for t in figures["tenants"].values()] == [None, FACTOR, None, "10"]
    assert "exclusion_factor" not in figures  # a tenant has no mechanism
    alone = drafted(noise=Noise(), sampled=Noise(keep=KEEP)).figures()
    assert alone["eps_audit"] == eps["noise"]


def test_listing_has_an_epsilon_of_its_own() -> None:
    figures = drafted(lists=LISTS).figures()
    assert figures["eps_audit"] == figures["tenants"]["lists"]["eps"] == EPS != "inf"
    assert figures["eps_audit_by"] == POOLED_LISTING and "bounds" not in figures
    beside = drafted(lists=LISTS, noise=Noise()).figures()
    assert float(beside["eps_audit"]) == max(float(t["eps"]) for t in beside["tenants"].values())
    check_policy(drafted(lists=LISTS), DIMENSION)


def test_windows_of_listing_add_up(tmp_path: Path) -> None:
    parts = []
    for name in ("w-1", "w-2"):
        path = tmp_path / f"{name}.json"
        path.write_bytes(drafted(lists=LISTS).model_copy(update={"window": name}).canonical())
        parts.append(load_window(path))
    result = compose(parts)
    assert result.bound.eps == pytest.approx(2 * float(EPS)) and result.bound.name == POOLED_LISTING
    assert result.exclusion_factor == result.exclusion_factor_all_accounts
    assert result.exclusion_factor == pytest.approx(float(FACTOR) ** 2, rel=2e-4)
    assert result.alone == [float(EPS)] * 2
    path = tmp_path / "sampled.json"
    path.write_bytes(drafted(lists=Sampling(keep=KEEP)).model_copy(update={"window": "w-3"}).canonical())
    mixed = compose([*parts, load_window(path)])
    assert math.isinf(mixed.bound.eps) and mixed.exclusion_factor == pytest.approx(
        10 * float(FACTOR) ** 2, rel=2e-4
    )


def test_the_explanation_says_what_each_tenant_promises() -> None:
    text = explain(MIXED, MIXED.figures(), "as given")
    for sentence in (
        "tenants.sample.mechanism = sampling",
        "the sample contains each position with probability 0.9",
        "Both figures bound the probability of one event and are not differential privacy",
        "the absence becomes more likely by a factor of at most 10 for k_max accounts (exclusion_factor)",
        "Both figures assume 1 position for each document; a document of s positions has at least the s-th power",
        "The presence of a document that an account asks for has no protection",
        "exact answers without protection of the index",
        "a document is listed from the first query on for which one of its positions scores at least 354",
    ):
        assert " ".join(sentence.split()) in " ".join(text.split()), sentence


def test_who_chooses_is_warned() -> None:
    lines = "\n".join(comparison(MIXED, (1, 4), 64))
    m = MIXED.n * MIXED.tenants[0].accounts_max
    assert MIXED.k_max < MIXED.tenants[0].accounts_max and f", m = {m};" in lines
    assert re.search(
        rf"--mechanism pooled-listing:0\.9  79  eps [0-9.]+ for any number of accounts with {m} queries",
        lines,
    )
    assert "sampling:0.9  79  exclusion_factor 10" in lines
    assert "exact: no mechanism hides the index; a verdict is PASS-INTEGRITY" in lines
    assert "noise: with this noise, retrieval on public collections loses more than half" in lines
    assert "noise: eps" in lines and "promises little" in lines
    assert "sample: exclusion_factor is 10 for 2 accounts and 10 for all 16" in lines
    assert "for a document of 4 positions it is 10000 and 10000" in lines
    assert lines.count("the presence of a document that an account asks for has no protection") == 2
    assert (
        "noise: eps is for a document of one position; a document of 4 positions loses at most 4 times"
        in lines
    )
    few = comparison(drafted(few=Sampling(keep=PROBABILITY_RANGE // 3)), (1, 8), 64)
    assert "few: the sample drops more than half of the positions" in "\n".join(few)


def written(tmp_path: Path, *options: str) -> tuple[int, str, Policy | None]:
    out = tmp_path / "p.json"
    for file in (out, tmp_path / "p.json.explained.txt"):
        file.unlink(missing_ok=True)  # `policy new` overwrites nothing
    tenants = ["--tenant", "law=64", "--tenant", "medicine=128:groth16"]
    base = ["provider", "policy", "new", str(out), "--window", "w", *tenants]
    noise = [] if "--mechanism" in options else ["--mechanism", "noise"]
    if any("noise" in option for option in (*noise, *options)):
        noise += ["--eps-acc", "20"]
    done = CliRunner().invoke(main, [*base, *noise, "--accounts", "16", "--n", "4", "--k-max", "2", *options])
    result = Policy.parse(read_json(out, max_bytes=1 << 20), field="p") if done.exit_code == 0 else None
    return done.exit_code, done.output, result


def test_policy_new_writes_the_mechanisms_that_it_is_told(tmp_path: Path) -> None:
    code, text_, result = written(tmp_path)
    assert (
        code == 0 and result is not None and {result.mechanism(t).name for t in result.tenants} == {"noise"}
    )
    assert (
        "--mechanism pooled-listing:0.9" in text_
        and "warning: law: with this noise, retrieval on public collections loses more than half" in text_
    )
    code, text_, result = written(tmp_path, "--mechanism", "sampling", "--mechanism", "medicine=noise:0.8")
    assert result is not None and [result.mechanism(t).name for t in result.tenants] == ["sampling", "noise"]
    assert [result.mechanism(t).keep for t in result.tenants] == [
        probability_over_range("0.9", "k"),
        probability_over_range("0.8", "k"),
    ]
    table = ["--documents", "64", "--positions-per-document", "4", "--fresh-bits"]
    listing = ["--mechanism", "law=pooled-listing:0.6:0.2:400", *table]
    code, text_, result = written(tmp_path, *listing, "--mechanism", "medicine=none")
    assert result is not None and result.noise is None
    own = result.mechanism(result.tenants[0])
    assert isinstance(own, PooledListing) and own.rules.threshold == 400
    assert own.rules.flip_probability == flip_probability_for("0.2", queries=64)
    assert "medicine: no mechanism hides the index; a verdict is PASS-INTEGRITY" in text_


@pytest.mark.parametrize(
    "options",
    [
        ["--mechanism", "secrecy"],
        ["--mechanism", "sampling:2"],
        ["--mechanism", "sampling:0"],
        ["--mechanism", "none:0.5"],
        ["--mechanism", "nobody=sampling"],
        ["--mechanism", "law=sampling", "--mechanism", "law=none"],
        ["--mechanism", "sampling:0.9:0.1"],
        ["--mechanism", "pooled-listing:0.7:0.1"],
        ["--mechanism", "law=pooled-listing:0.7:1:354"],
    ],
)
def test_policy_new_refuses_what_is_no_mechanism(tmp_path: Path, options: list[str]) -> None:
    code, text_, _ = written(tmp_path, *options)
    assert code == 2 and "Traceback" not in text_
    assert not (tmp_path / "p.json").exists()


# -- pooled listing --------------------------------------------------------------------------------------------------

SHAPE = TableShape(32, 4, 8)


def pooled(**changes: Any) -> PooledListing:
    values = {"keep": KEEP, "rules": PoolRules(0, 354, "0.1"), "documents": SHAPE, **changes}
    return PooledListing(**values)


def pooled_policy(**values: object) -> Policy:
    """The policy of one tenant with pooled listing, 16 accounts with four queries each, with other fields."""
    value = drafted(pooled=pooled()).dump()
    value["tenants"][0].update(values)
    return Policy.parse(value, field="policy")


def test_pooled_listing_derives_its_chance_from_f_and_m() -> None:
    policy = pooled_policy()
    check_policy(policy, DIMENSION)
    mechanism = policy.mechanism_of("pooled")
    assert isinstance(mechanism, PooledListing) and mechanism.queries == 64
    assert mechanism.rules == PoolRules(flip_probability_for("0.1", queries=64), 354)
    figures = policy.figures()
    assert figures["eps_audit"] == figures["eps_one_account"] == figures["eps_all_accounts"]
    assert figures["eps_audit"] == text(pooled_epsilon(KEEP, mechanism.rules.flip_probability))
    assert figures["eps_audit_by"] == "pooled-listing"
    own = figures["tenants"]["pooled"]
    factor = text(pooled_factor(KEEP, mechanism.rules.flip_probability, queries=64))
    # Chance at the queries of accounts outside of the coalition counts.
    assert own["exclusion_factor"] == own["exclusion_factor_all_accounts"] == factor
    assert figures["positions_per_document"] == 4
    by_chance = own["exposure"]["by_chance"]
    assert (
        by_chance is not None and float(by_chance) <= 2.4001
    )  # a tenth of 24 documents, over all 64 queries


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        ({"noise": True}, "noise", "false"),
        ({"keep": None}, "keep", "0.9 is usual"),
        ({"keep": PROBABILITY_RANGE}, "keep", f"1..{PROBABILITY_RANGE - 1}"),
        ({"flip_probability": None}, "flip_probability", "a value"),
        ({"flip_probability": PROBABILITY_RANGE}, "flip_probability", f"1..{PROBABILITY_RANGE - 1}"),
        ({"threshold": None}, "threshold", "a value"),
        ({"threshold": 49 * DIMENSION + 1}, "threshold", f"at most {49 * DIMENSION}"),
        ({"scores": None}, "scores", "a score window"),
        ({"documents": None}, "documents", "a document table"),
        (
            {"documents": {"rows": 65, "positions_per_document": 4, "fresh_rows": 8}},
            "documents.rows",
            "1 to 64",
        ),
        (
            {"documents": {"rows": 32, "positions_per_document": 65, "fresh_rows": 8}},
            "documents.positions_per_document",
            "1 to 64",
        ),
        (
            {"documents": {"rows": 32, "positions_per_document": 4, "fresh_rows": 33}},
            "documents.fresh_rows",
            "1 to 31",
        ),
    ],
)
def test_fields_of_pooled_listing_are_bounded(values: dict[str, object], field: str, expected: str) -> None:
    with pytest.raises(PolicyError) as caught:
        pooled_policy(**values).check(DIMENSION)
    assert caught.value.field == f"policy.tenants.pooled.{field}" and expected in str(caught.value.expected)


@pytest.mark.parametrize("f", ["0", "1", "1.5", "0.0"])
def test_an_f_outside_of_0_and_1_is_refused(f: str) -> None:
    with pytest.raises(PolicyError, match="not strictly between 0 and 1") as caught:
        chosen(f"pooled-listing:0.9:{f}:354", whole="", expected="")
    assert caught.value.field == "--mechanism: F"
    with pytest.raises(PolicyError, match="not strictly between 0 and 1"):
        drafted(pooled=pooled(rules=PoolRules(0, 354, f)))


def test_the_default_threshold_is_the_embedder_s_relevance_threshold() -> None:
    read = partial(chosen, whole="pooled-listing:0.9", expected="")
    assert read("pooled-listing:0.9", relevance=601).threshold == 601
    assert read("pooled-listing:0.9:0.1:700", relevance=601).threshold == 700
    with pytest.raises(PolicyError, match="the score of a relevant passage is unknown") as caught:
        read("pooled-listing:0.9")
    assert "--relevance SCORE" in str(caught.value.expected) and "lab relevance" in str(caught.value.hint)


def test_an_f_near_1_is_refused() -> None:
    assert chosen("pooled-listing:0.9:0.5:354", whole="", expected="").rules.unrequested == "0.5"  # type: ignore[attr-defined]
    for f in ("0.51", "0.9999999"):
        with pytest.raises(PolicyError, match="most of the documents that no question asks for") as caught:
            chosen(f"pooled-listing:0.9:{f}:354", whole="", expected="")
        assert (caught.value.field, caught.value.expected) == ("--mechanism: F", "at most 0.5")


def test_pooled_listing_without_a_document_table_names_the_options() -> None:
    with pytest.raises(PolicyError, match="pooled listing needs a document table") as caught:
        drafted(pooled=pooled(documents=None))
    assert caught.value.field == "--documents"


def test_pooled_listing_has_no_circuits() -> None:
    with pytest.raises(PolicyError, match="no circuit proves pooled listing") as caught:
        check_policy(drafted(system="groth16", pooled=pooled()), DIMENSION)
    assert caught.value.field is not None and "mechanism" in caught.value.field
    assert caught.value.expected == "sampling, or the tenant's system scan"
