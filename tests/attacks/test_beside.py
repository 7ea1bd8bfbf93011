"""A run of attacks as a file from outside, and beside the policy of a window."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import EncodingError, ExitCode, MeasurementError, RagAuditError, SchemaError, SizeError
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models import attacks as formats
from rag_audit.models.attacks import AttackRun
from rag_audit.models.policy import Policy
from rag_audit.report import measured
from rag_audit.report.measured import measured_of
from rag_audit.report.model import Attacks
from tests.drafting import draft
from tests.window.simulator import SMALL_POLICY

NOISE = "noise:1,4:64"
OPENING = "ab" * 32


def result(
    attack: str, mechanism: str, accounts: int = 1, *, lower: float | None = None, **changes: Any
) -> Any:
    """One result as `attack run` writes it."""
    whole = [0.9, 0.85, 0.95]
    names = ("auc", "tpr_at_1pct", "accuracy", "adjusted_accuracy", "precision", "recall", "f1", "ks")
    bounds = None if lower is None else {"lower": lower, "gaussian": lower, "certified": "inf", "eps_audit": "inf",
                                         "auc": 0.6, "trials": 500}  # fmt: skip
    return {
        "attack": attack,
        "cell": {"mechanism": mechanism, "defence": "none", "accounts": accounts},
        "queries": 1,
        "documents": 400,
        "refused": 0,
        "figures": dict.fromkeys(names, whole),
        "retrieval": whole,
        "hidden": [0.0, 0.0],
        "ceiling": None,
        "bounds": bounds,
        **changes,
    }


def run_value(**changes: Any) -> dict[str, Any]:
    """attacks.json of a run under `policy()`."""
    return {
        "type": "attacks",
        "v": 1,
        "target": "engine",
        "data": "ours.jsonl",
        "seed": 0,
        "generator": "extractive",
        "members": 200,
        "others": 200,
        "index": 800,
        "capacity": 1024,
        "top_k": 2,
        "n": 3,
        "k_max": 2,
        "confidence": 0.99,
        "delta": "1e-5",
        "mechanisms": {
            "none": {"kind": "none"},
            NOISE: {"kind": "noise", "gains": [1, 4], "lattice": 64, "lo": 420, "hi": 1680},
        },
        "results": [
            result("mba", "none"),
            result("mba", NOISE, lower=0.4),
            result("mba", NOISE, 2, lower=0.7),
        ],
        **changes,
    }


def policy(**changes: Any) -> Policy:
    values: dict[str, Any] = {
        "window": "w-1",
        "opens_at": 1_800_000_000_000,
        "closes_at": 1_800_003_600_000,
        "capacities": {"law": 8, "medicine": 8},
        "tokens": (4, 512),
        "system": "scan",
    }
    return draft(**{**SMALL_POLICY, **values, **changes})


def beside(value: dict[str, Any], of: Policy | None = None) -> Attacks:
    run = AttackRun.parse(json_read(value), field="attacks.json")
    return measured_of(run, of or policy(), OPENING, field="attacks.json")


def json_read(value: Any) -> Any:
    return formats.parse_json(json.dumps(value), source="attacks.json", reals=True)


def test_each_attack_stands_beside_what_this_verifier_certifies() -> None:
    match = beside(run_value())
    (part,) = match.parts
    assert part.tenants == ["law", "medicine"] and "gains 1,4 at R 64" in part.mechanism
    (row,) = part.rows
    assert row.without_noise == ["0.9000", "0.8500", "0.9500"]
    alone, coalition = row.points
    assert (alone.accounts, coalition.accounts) == (1, 2)
    for point in (alone, coalition):
        assert math.isfinite(float(point.eps_certified or "inf")), "and not the inf of the file"
        assert 0.5 < float(point.lists_auc_at_most or 1) < 1
    assert float(coalition.eps_certified or 0) > float(alone.eps_certified or 0)
    assert match.left_out == 0 and match.above_certified == []


def test_a_lower_bound_above_the_certified_is_named() -> None:
    value = run_value(results=[result("mba", NOISE, lower=0.4), result("mba", NOISE, 2, lower=90.5)])
    (line,) = beside(value).above_certified
    assert line.startswith(
        "mba by 2 accounts on law, medicine: epsilon is at least 90.5, and the certified epsilon is "
    )


def test_listing_and_sampling_are_compared_in_the_policy_s_units() -> None:
    keep = 7 << 37
    pooled = PooledListing(keep=keep, rules=PoolRules(0, 354, "0.1"), documents=TableShape(8, 2, 2))
    of = policy(mechanisms={"law": pooled, "medicine": Sampling(keep=keep + 1)})
    mechanisms = {
        "a": {
            "kind": "pooled-listing",
            "keep": keep,
            "flip_probability": of.mechanism_of("law").flip_probability,
            "threshold": 354,
        },
        "b": {"kind": "sampling", "keep": keep + 1},
        "c": {"kind": "sampling", "keep": keep},
    }
    results = [result("ia", name, lower=0.5) for name in mechanisms]
    match = beside(run_value(mechanisms=mechanisms, results=results), of)
    assert [part.tenants for part in match.parts] == [["law"], ["medicine"]]
    (law,), (medicine,) = (part.rows for part in match.parts)
    assert math.isfinite(float(law.points[0].eps_certified or "inf"))
    assert medicine.points[0].eps_certified == "inf"
    assert match.left_out == 1


def test_what_a_window_would_not_answer_is_left_out_and_counted() -> None:
    value = run_value()
    guarded = result("mba", NOISE)
    guarded["cell"]["defence"] = "mirabel"
    value["results"] += [guarded, result("mba", NOISE, 3), result("ia", NOISE, queries=4)]
    match = beside(value)
    assert match.left_out == 3
    assert [row.attack for row in match.parts[0].rows] == ["mba"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"target": "https://host/v1"}, "target"),
        ({"n": 4}, "n"),
        ({"k_max": 3}, "k_max"),
        ({"top_k": 5}, "top_k"),
        ({"mechanisms": {"none": {"kind": "none"}, NOISE: {"kind": "noise", "gains": [1, 8], "lattice": 64, "lo": 420,
                                                           "hi": 1680}}}, "results"),
        ({"mechanisms": {"none": {"kind": "none"}, NOISE: {"kind": "noise", "gains": [1, 4], "lattice": 64, "lo": 0,
                                                           "hi": 1680}}}, "results"),
        ({"results": []}, "results"),
        ({"header": "cd" * 32, "tenant": "law", "target": "provider.sock"}, "header"),
        ({"header": OPENING, "tenant": "trade", "target": "provider.sock"}, "tenant"),
    ],
)  # fmt: skip
def test_a_run_of_something_else_is_not_what_was_asked_for(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        beside(run_value(**changes))
    assert caught.value.field == f"attacks.json.{field}"
    assert caught.value.exit_code is ExitCode.UNMET
    if field in ("n", "results"):
        assert caught.value.hint == (
            f"rag-audit lab attack run all --mechanism none --mechanism {NOISE} --k 2 --n 3 --top-k 2"
        )


def test_attacks_on_the_window_s_own_service_need_no_parameters() -> None:
    value = run_value(target="provider.sock", header=OPENING, tenant="law", mechanisms={},
                      results=[result("mba", "none"), result("ia", "none", 2)])  # fmt: skip
    for name in ("index", "capacity", "top_k", "n", "k_max", "confidence", "delta"):
        del value[name]
    (part,) = beside(value).parts
    assert part.tenants == ["law"]
    alone, batch = part.rows
    assert [point.accounts for point in alone.points] == [1]
    (point,) = batch.points
    assert point.accounts == 2 and point.eps_at_least is None and point.lists_auc_at_most is not None


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"seed": 0', '"seed": 0, "more": 1', SchemaError),
        ('"seed": 0', '"seed": 0, "seed": 1', EncodingError),
        ('"seed": 0', '"seed": 0.5', SchemaError),
        ('"v": 1', '"v": 2', SchemaError),
        ("0.85", "NaN", EncodingError),
        ("0.85", "Infinity", EncodingError),
        ("0.85", "1e999", SchemaError),
        ("0.85", "-0.1", SchemaError),
        ("0.85", "1.1", SchemaError),
        ("0.85", '"inf"', SchemaError),
        ("0.85", "true", SchemaError),
        ('"lower": 0.4', '"lower": "many"', SchemaError),
        ('"accounts": 2', '"accounts": 0', SchemaError),
        ('"accounts": 2', '"accounts": 1', SchemaError),
        ('"mba"', '"m b a"', SchemaError),
        (f'"{NOISE}": {{', '"noise:2:64": {', SchemaError),
    ],
)
def test_a_file_that_is_no_such_run_is_refused_by_name(
    old: str, new: str, error: type[RagAuditError], tmp_path: Path
) -> None:
    text = json.dumps(run_value())
    assert old in text
    file = tmp_path / "attacks.json"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(error) as caught:
        measured_of(AttackRun.load(file), policy(), OPENING, field="attacks.json")
    assert caught.value.exit_code is ExitCode.MALFORMED
    assert caught.value.field is not None and "attacks.json" in caught.value.field


def test_what_acts_on_a_terminal_is_escaped_as_it_is_read() -> None:
    run = AttackRun.parse(json_read(run_value(generator="a\x1b[2J\nPASS\u202e")), field="attacks.json")
    assert run.generator == r"a\x1b[2J\nPASS\u202e"


def test_large_files_are_refused_before_they_cost_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [result(f"a-{i}", "none") for i in range(formats.MAX_RESULTS + 1)]
    with pytest.raises(SchemaError, match="not well-formed") as caught:
        AttackRun.parse(json_read(run_value(results=many)), field="attacks.json")
    assert caught.value.field == "attacks.json.results"
    file = tmp_path / "attacks.json"
    file.write_text(json.dumps(run_value(results=many)))
    monkeypatch.setattr(formats, "MAX_ATTACKS_BYTES", file.stat().st_size - 1)
    with pytest.raises(SizeError):
        AttackRun.load(file)
    monkeypatch.setattr(measured, "MAX_COUNTS", 2)
    costly = [result(f"a-{i}", NOISE, lower=0.1, queries=i + 1) for i in range(3)]
    with pytest.raises(SizeError, match="too many different numbers of questions"):
        beside(run_value(results=costly))
