"""The cost model: fitted to reports whose costs are known, and what a plan makes of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import costs, plan
from bench.costs import TERMS, Model, Term
from bench.model import Report, ReportError, Result

BESIDES = 0.07
MACHINE = {"cpu": "a processor", "cores": 2}


def noise_proof(n: float, g: float) -> float:
    return 0.1 + 2e-6 * n + 5e-6 * n * g


def scanned(n: int, gains: list[int]) -> Result:
    cpu = {
        "index": 0.02 + 2e-5 * n,
        "noise_proof": noise_proof(n, len(gains)),
        "query_proof": 0.1 + 5e-6 * n,
        "verify": 0.03 + 0.005 + 1e-5 * (n * len(gains)) ** 0.5,
        "batch": 0.03 + 10 * (0.005 + 1e-5 * (n * len(gains)) ** 0.5),
    }
    return Result(
        f"scan-{n}-{len(gains)}", MACHINE, 2,
        {"documents": n, "gains": gains, "batch": 10, "cpu_seconds": cpu, "bytes": {"proofs": 50_000}},
    )  # fmt: skip


def joined(q: int, n: int = 1000, low: float = 0.0) -> Result:
    figures: dict[str, Any] = {"documents": n, "count": q, "gains": "1,8,64", "low_memory": low > 0}
    for name in ("verify_cpu", "bytes"):
        figures |= {f"{name}_alone": 2.0, f"{name}_batch": 2.0 * (0.25 + 0.5 / q)}
    slower = 3 * low or 1.0  # on a day on which the machine takes three times as long
    figures["prove_cpu_batch"] = slower * (0.01 + 0.2 / q + 4e-6 * n * 3)
    figures["prove_cpu_alone"] = 9.0 if low else 3.0
    return Result(f"batch_proving-{n}-{q}", MACHINE, 2, figures)


def window(n: int, *, slower: float = 1.0) -> Result:
    cost = {"seconds": 1.0, "peak_bytes": 1}
    own = noise_proof(n, 2) + 0.1 + 5e-6 * n + 2e-7 * n * 2 + 0.005 + 1e-7 * n + 0.4
    return Result(f"whole-{n}", MACHINE, 2, {
        "documents": n, "gains": [1, 8], "alone": 2, "batch": 0,
        "open": {**cost, "cpu_seconds": slower * (0.02 + 2e-5 * n + 0.01 + 1e-5 * n)},
        "serve": {
            "resume": {**cost, "cpu_seconds": 1e-5 * n}, "resident_bytes": 10**8 + 900 * n,
            "query_ms": {"cpu_median": 5 + 1e-4 * n}, "draw": {**cost, "cpu_seconds": 2e-7 * n * 2},
            "witness": {**cost, "cpu_seconds": 0.05},
        },
        "prove": {"cpu_seconds": {"first": 2.0, "alone": own + BESIDES}},
    })  # fmt: skip


def others() -> list[Result]:
    embed = {"cpu_seconds": {"prove": 0.4, "batch": 0.64}, "batch": 64, "bytes": 15_000}
    entries = {"10": {"cpu_seconds": {"read": 9.0, "verify": 9.0}, "bytes": 10**6},
               "1000": {"cpu_seconds": {"read": 0.1, "verify": 0.4}, "bytes": 600_000}}  # fmt: skip
    rates = {"1 appenders": 90, "64 appenders": 4000}
    return [
        Result("embed", MACHINE, 2, embed),
        Result("verify", MACHINE, 2, {"windows": entries}),
        Result("ledger", MACHINE, 2, {"durable_records_per_second": rates}),
    ]


@pytest.fixture(scope="module")
def report() -> Report:
    sizes = [scanned(n, gains) for n in (1000, 10_000, 30_000) for gains in ([1], [1, 8, 64])]
    return Report(
        "2026-01-01",
        [
            *sizes,
            joined(2),
            joined(4),
            joined(16),
            joined(4, 9000),
            joined(4, 9000, 1.25),
            window(10_000),
            window(30_000),
            *others(),
        ],
    )


@pytest.fixture(scope="module")
def model(report: Report) -> Model:
    return costs.fit_all(report)


def test_costs_that_follow_the_features_are_found_and_carried_beyond(model: Model) -> None:
    assert model["noise proof"].at(n=10**6, g=3) == pytest.approx(noise_proof(10**6, 3), rel=1e-6)
    assert model["query proof"].at(n=10**6) == pytest.approx(5.1, rel=1e-6)
    assert model["verify"].at(n=10**6, g=1, count=100) == pytest.approx(0.03 + 100 * 0.015, rel=1e-6)
    assert model["batch"].at(n=10**5, g=3, q=64) == pytest.approx(0.01 + 0.2 / 64 + 1.2, rel=1e-6)
    assert model["low memory"].at() == pytest.approx(1.25)
    assert model["batch bytes"].at(q=64) == pytest.approx(0.25 + 0.5 / 64, rel=1e-6)
    assert model["texts"].at(n=10**5) == pytest.approx(0.01 + 1e-5 * 10**5, rel=1e-6)
    assert model["resident"].at(n=10**6) == pytest.approx(10**9, rel=1e-6)
    assert model["besides"].at() == pytest.approx(BESIDES, rel=1e-6)
    assert model["entry"].at() == 0.0005 and model["appends"].at() == 4000
    assert all(model[name].worst < 1e-6 for name in model.terms) and model["noise proof"].largest == 30_000


def test_no_coefficient_is_negative() -> None:
    term = costs.fit(("1", "n"), [({"n": 10.0}, 5.0), ({"n": 20.0}, 4.0)])
    assert min(term.coefficients) >= 0 and 0 < term.worst < 0.5
    assert term.at(n=10**6) < 10


def test_what_a_report_lacks_is_no_term() -> None:
    part = costs.fit_all(Report("", [joined(2)]))
    assert set(part.terms) == {"batch", "batch bytes", "batch verify"}
    with pytest.raises(ReportError, match="no term 'noise proof'"):
        part["noise proof"]
    with pytest.raises(ReportError, match="no measurement"):
        costs.fit_all(Report(""))


def test_a_model_file_is_read_back_and_others_are_refused(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(model.dumps())
    assert Model.load(path) == model
    for text, reason in (
        ("{", "not a cost model"),
        ('{"format": "x"}', "found x"),
        ("[]", "not a cost model"),
    ):
        path.write_text(text)
        with pytest.raises(ReportError, match=reason):
            Model.load(path)


def test_the_model_that_is_shipped_has_every_term(report: Report) -> None:
    shipped = Model.load(costs.default_model())
    assert set(shipped.terms) == set(TERMS) and shipped.machine["cpu"] and shipped.created[:4].isdigit()


SERVICE = plan.Service(positions=200_000, tenants=20, accounts=100, queries_a_day=10_000)


def whole(model: Model) -> Model:
    """The same with terms for sampled tenants."""
    flat = Term(("1",), (1.0,), 0.0, 1, 30_000)
    named = ("sampling proof", "sampled proof", "verify sampled", "bytes sampled")
    return replace(model, terms={**model.terms, **dict.fromkeys(named, flat)})


def test_cores_and_bytes_grow_with_what_is_proved(model: Model) -> None:
    one = plan.plan(model, replace(SERVICE, sampled=500))
    two = plan.plan(model, replace(SERVICE, queries_a_day=20_000))
    cores = "full: cores"
    assert two["proving"][cores] == pytest.approx(2 * one["proving"][cores])
    assert one["proving"]["sampled: cores"] == pytest.approx(one["proving"][cores] / 20)
    seconds = one["proving"]["full: processor seconds a record"]
    expected = noise_proof(10_000, 3) + 0.15 + 2e-7 * 30_000 + 0.006 + 0.4 + BESIDES
    assert seconds == pytest.approx(expected, rel=1e-6)
    assert one["proving"][cores] == pytest.approx(10_000 * expected / 86_400 / 0.7, rel=1e-6)
    assert one["bytes a day"]["full: proofs"] == pytest.approx(10_000 * 4 / 3 * 65_000, rel=1e-6)
    assert one["bytes a day"]["entries"] == pytest.approx(10_000 * 600)
    assert "sampled: cores" not in two["proving"]


def test_records_of_a_batch_cost_less(model: Model) -> None:
    alone, joint = (plan.plan(model, replace(SERVICE, batch=q)) for q in (1, 16))
    for topic, figure in (("proving", "full: cores"), ("bytes a day", "full: proofs"),
                          ("verifying", "full: processor seconds for proofs")):  # fmt: skip
        assert 0 < joint[topic][figure] < alone[topic][figure]
    assert joint["proving"]["bytes of a job"] > alone["proving"]["bytes of a job"]


def test_a_large_tenant_is_cut_into_shards_that_pay_for_a_merge(model: Model) -> None:
    larger = replace(SERVICE, tenants=1)
    one, cut = plan.plan(whole(model), larger), plan.plan(whole(model), replace(larger, shard=50_000))
    assert (one["tenant"]["shards"], cut["tenant"]["shards"]) == (1, 4)
    assert cut["tenant"]["positions of a shard"] == 50_000
    own = noise_proof(50_000, 3) + 0.1 + 5e-6 * 50_000 + 2e-7 * 150_000 + 0.005 + 1e-7 * 50_000
    merge = 0.1 + 5e-6 * 1024
    assert cut["proving"]["full: processor seconds a record"] == pytest.approx(
        4 * own + 0.4 + BESIDES + merge, rel=1e-6
    )
    assert cut["proving"]["bytes of a job"] < one["proving"]["bytes of a job"]
    assert (
        cut["serving"]["bytes of one index and its drawn noise"]
        < one["serving"]["bytes of one index and its drawn noise"]
    )


def test_memory_decides_how_many_machines_serve(model: Model) -> None:
    large, small = (plan.plan(model, replace(SERVICE, memory_gib=m))["serving"] for m in (24.0, 0.2))
    assert large["machines, by memory"] == 1 < small["machines, by memory"]
    assert small["indices that one machine holds"] < 20
    with pytest.raises(
        ReportError, match=r"take 0\.0 GiB to serve.*a --shard below 10,000, or more --memory"
    ):
        plan.plan(model, replace(SERVICE, memory_gib=0.1))


def test_sampled_tenants_draw_no_noise(model: Model) -> None:
    result = plan.plan(whole(model), replace(SERVICE, gains=0))
    assert result["serving"]["processor seconds of its noise"] == 0
    assert result["proving"]["full: processor seconds a record"] == pytest.approx(1.0 + 0.006 + 0.4 + BESIDES)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"positions": 0}, "--positions: expected at least 1, found 0"),
        ({"positions": 5}, "one for each of 20 tenants"),
        ({"sampled": 10_001}, "--sampled: expected 1..10000"),
        ({"shard": 1 << 25}, "--shard: expected at most 16777216"),
        ({"batch": 65}, "--batch: expected at most 64"),
        ({"batch": 2, "gains": 0}, "no proofs of several records"),
        ({"busy": 0.0}, "--busy"),
    ],
)
def test_a_service_that_cannot_be_is_refused(model: Model, changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(ReportError, match=reason):
        plan.plan(model, replace(SERVICE, **changed))


def test_the_command_prints_a_plan_and_names_what_is_wrong(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.json"
    path.write_text(model.dumps())
    requested = [
        "--positions",
        "4000000",
        "--tenants",
        "4",
        "--accounts",
        "9",
        "--queries-a-day",
        "100",
        "--model",
        str(path),
    ]
    assert plan.main(requested) == 0
    out, err = capsys.readouterr()
    assert "On cores of a processor, measured 2026-01-01." in out and "| proving | full: cores |" in out
    assert "noise proof is extrapolated from at most 30,000 positions" in err
    assert plan.main([*requested, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tenant"]["positions"] == 1_000_000
    assert plan.main([*requested, "--sampled", "1000"]) == 2
    assert capsys.readouterr().err == "bench: --sampled: expected 1..100, found 1000\n"


def test_predictions_stand_beside_what_was_measured(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Result("cluster", MACHINE, 2, {
        "documents": 10_000, "gains": [1, 8], "records": 4, "prove": {"of_jobs": 5.0},
    })  # fmt: skip
    measured = Report("", [window(30_000, slower=2.0), cluster, joined(2)])
    result = {
        (name, figure.partition(",")[0]): predicted / took
        for name, figure, predicted, took in plan.check(model, measured)
    }
    assert result["whole-30000", "open"] == pytest.approx(0.5)
    assert result["whole-30000", "resident while serving"] == pytest.approx(1.0)
    own = noise_proof(10_000, 2) + 0.15 + 2e-7 * 20_000 + 0.006 + 0.4 + BESIDES
    assert result["cluster", "prove"] == pytest.approx(4 * own / 5.0)
    with pytest.raises(ReportError, match="no whole"):
        plan._print_check(model, Report("", [joined(2)]))


PAGE = (Path(plan.__file__).parents[1] / "docs/scale.md").read_text()
RUNS = costs.MODELS / "runs-2026-11-23.json"


def _tables(marker: str) -> list[tuple[str, str]]:
    """The options and the table behind each mark of a page."""
    result = re.findall(rf"<!-- {marker}: (.*?) -->\n\n?((?:\|.*\n)+)", PAGE)
    assert result
    return result


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    for options, table in _tables("plan"):
        assert plan.main(options.split()) == 0
        assert table in capsys.readouterr().out, options


def test_predictions_of_runs_that_no_cost_was_fitted_to_are_within_a_fifth(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the runs and the model that are in the repository: nothing is measured here."""
    model = Model.load(costs.default_model())
    runs = Report.load(RUNS)
    result = list(plan.check(model, runs))
    assert {name for name, *_ in result} == {"cluster", "whole-1000000"}
    wrong = [(name, figure) for name, figure, predicted, took in result if not 0.8 <= predicted / took <= 1.2]
    assert wrong == []
    assert plan.main(["--check", str(RUNS)]) == 0
    out = capsys.readouterr().out
    assert all(table in out for _, table in _tables("check"))
