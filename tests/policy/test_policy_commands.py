"""`rag-audit provider policy new` and `bounds`: targets are met, numbers are a verdict's, bad input is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.canonical import jcs
from rag_audit.cli import main
from rag_audit.mechanisms import accounting
from rag_audit.models.policy import Policy
from rag_audit.report.verification import verify_window
from tests.named import error_name

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SIZES = ("--accounts", 16, "--n", 200, "--mechanism", "noise")
CONSTANTS = {
    "--n": "200",
    "--eps-acc": "4",
    "--delta-acc": "1e-6",
    "--k": "10",
    "--delta": "2e-5",
    "--gains": "1,8,64",
    "--lattice": "32",
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def options(values: dict[str, str]) -> list[str]:
    return [part for pair in values.items() for part in pair]


def made(path: Path, *arguments: object) -> tuple[Policy, dict[str, Any]]:
    for file in (path, path.with_name(f"{path.name}.explained.txt")):
        file.unlink(missing_ok=True)  # `policy new` overwrites nothing
    sizes = ["--accounts", 16, "--n", 200, "--k-max", 10, "--mechanism", "noise"]
    for option, other in (
        ("--accounts", None),
        ("--n", "--questions"),
        ("--k-max", None),
        ("--mechanism", "--rights"),
    ):
        if option in arguments or other in arguments:
            del sizes[(at := sizes.index(option)) : at + 2]
    result = run(
        "provider",
        "policy",
        "new",
        path,
        "--window",
        "w-1",
        "--tenant",
        "law=64",
        "--json",
        *sizes,
        *arguments,
    )
    assert result.exit_code == 0, result.output
    policy = Policy.parse(json.loads(path.read_text()), field="policy")
    policy.check(768)
    return policy, json.loads(result.stdout)


def refused(result: Result, error: str, field: str) -> None:
    assert result.exit_code == 2, result.output
    assert error_name(result) == error
    assert f"  at: {field}\n" in result.stderr
    assert "Traceback" not in result.stderr


# -- new -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["scan", "groth16"])
@pytest.mark.parametrize(("window", "dimension"), [("20000:20709", 256), ("2000:2200", 16), ("20:1025", 16)])
def test_a_score_window_beyond_reach_is_refused(
    tmp_path: Path, system: str, window: str, dimension: int
) -> None:
    refused(
        run(
            "provider",
            "policy",
            "new",
            tmp_path / "p.json",
            "--window",
            "w-1",
            "--tenant",
            "law=64",
            "--system",
            system,
            "--score-window",
            window,
            "--dimension",
            dimension,
            *SIZES,
        ),
        "PolicyError",
        "hi",
    )
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize("method", ["classical", "split", "analytic", "exact"])
def test_a_joint_target_is_met(tmp_path: Path, method: str) -> None:
    policy, told = made(
        tmp_path / "p.json", "--eps-joint", 2, "--k-max", 10, "--n", 200, "--delta", "2e-5",
        "--calibration", method, "--lattice", 16,
    )  # fmt: skip
    assert policy.calibration == method
    assert float(told["eps_audit"]) <= (2.001 if method == "analytic" else 2)
    by_its_method = {"classical": "closed_form", "split": "closed_form"}.get(method, "exact")
    (bound,) = [b for b in told["bounds"]["bounds"] if b["name"] == by_its_method]
    assert float(bound["eps"]) == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("method", ["classical", "split", "analytic", "exact"])
def test_one_accounts_target_is_met(tmp_path: Path, method: str) -> None:
    policy, _ = made(tmp_path / "p.json", "--eps-acc", 3, "--calibration", method)
    mechanism = policy.noise.mechanism()
    assert policy.eps_acc == "3"
    assert accounting.eps_at(mechanism, policy.n, policy.delta_acc) <= 3.001
    needed = accounting.required_sigma_over_delta(method, n=200, eps_acc=3, delta_acc=1e-7)
    assert needed * 0.999 <= mechanism.sigma_over_delta <= needed * 1.1


def test_an_exact_target_costs_a_fraction_of_the_classical_noise(tmp_path: Path) -> None:
    exact, classical = (
        made(tmp_path / "p.json", "--eps-acc", 4, "--calibration", m)[0].noise.mechanism().sigma_over_delta
        for m in ("exact", "classical")
    )
    assert classical > 6 * exact


def test_the_fewest_gains_are_chosen_and_then_the_finest_lattice(tmp_path: Path) -> None:
    policy, _ = made(tmp_path / "p.json", "--eps-acc", 4)
    result = {}
    for lattice in (64, 32, 16):
        on_it, _ = made(tmp_path / "q.json", "--eps-acc", 4, "--lattice", lattice)
        result[lattice] = on_it.noise.gains
    fewest = min(len(gains) for gains in result.values())
    finest = max(lattice for lattice, gains in result.items() if len(gains) == fewest)
    assert (policy.noise.lattice, policy.noise.gains) == (finest, result[finest])
    assert len(result[64]) > fewest


def test_noise_that_is_given_is_taken(tmp_path: Path) -> None:
    policy, told = made(tmp_path / "p.json", "--gains", "1,8,64", "--lattice", 16)
    assert (policy.noise.gains, policy.noise.lattice, policy.eps_acc) == ([1, 8, 64], 16, "4")
    assert told["chosen"]["why"].startswith("The options state the noise, without a target.")


def test_the_file_is_canonical_and_its_explanation_stands_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    result = run(
        "provider", "policy", "new", path, "--window", "w-1", "--tenant", "law=64", "--tenant", "tax=8",
        *SIZES, "--eps-joint", 2, "--delta", "2e-5",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    value = json.loads(path.read_text())
    assert path.read_bytes() == jcs(value) + b"\n"
    explained = (tmp_path / "p.json.explained.txt").read_text()
    assert explained in result.stdout
    policy = Policy.parse(value, field="policy")
    assert policy.digest() in explained
    # Every field stands at the start of a line with its value.
    entries = {
        line.split("=")[0].strip() for line in explained.split("\n") if line[:1].strip() and "=" in line
    }
    names = {part for entry in entries for part in entry.split(", ")}
    for name in Policy.model_fields.keys() - {"noise", "tenants"}:
        assert name in names, name
    for name in ("noise.gains", "noise.lattice", "noise.lo", "noise.hi", "noise.table", "tenants.law"):
        assert name in names, name
    figures = [b["eps"] for b in accounting.policy_figures(
        policy.noise.mechanism(), n=policy.n, eps_acc=policy.eps_acc, delta_acc=policy.delta_acc,
        k=policy.k_max, delta=policy.delta_policy,
    )["bounds"]["bounds"]]  # fmt: skip
    assert all(f"eps {eps}" in explained for eps in figures)
    assert explained.index("cover the list of selected positions") < explained.index("<- eps_audit")


TARGET = {"--window": "w-1", "--tenant": "law=64", "--accounts-max": "16", "--n": "200", "--k-max": "10",
          "--mechanism": "noise"}  # fmt: skip


@pytest.mark.parametrize(
    "changes,error,field",
    [
        ({"--eps-acc": "0"}, "PolicyError", "eps_acc"),
        ({"--eps-acc": "-1"}, "PolicyError", "eps_acc"),
        ({"--eps-acc": "nan"}, "PolicyError", "eps_acc"),
        ({"--eps-joint": "0"}, "PolicyError", "eps_joint"),
        ({"--eps-acc": "1e-9"}, "PolicyError", "lattice"),
        ({"--delta-acc": "0"}, "PolicyError", "delta_acc"),
        ({"--delta-policy": "1"}, "PolicyError", "delta_policy"),
        ({"--n": "0"}, "PolicyError", "--n"),
        ({"--n": "2.5"}, "PolicyError", "--n"),
        ({"--k-max": "-1"}, "PolicyError", "--k-max"),
        ({"--accounts-max": "0"}, "PolicyError", "--accounts-max"),
        ({"--gains": "1,9"}, "PolicyError", "gains[1]"),
        ({"--gains": "1,x"}, "PolicyError", "--gains"),
        ({"--lattice": "24"}, "PolicyError", "lattice"),
        ({"--score-window": "810:101"}, "PolicyError", "--score-window"),
        ({"--tenant": "law"}, "PolicyError", "--tenant"),
        ({"--tenant": "law=²"}, "PolicyError", "--tenant"),
        ({"--tenant": "a/b=64"}, "SchemaError", "policy.tenants[0].tenant"),
        ({"--window": "a b"}, "SchemaError", "policy.window"),
        ({"--lasts": "0s"}, "PolicyError", "policy.closes_at"),
        ({"--lasts": "a week"}, "PolicyError", "--lasts"),
        ({"--opens-in": "1y"}, "PolicyError", "--opens-in"),
        ({"--eps-joint": "2", "--eps-acc": "4"}, "PolicyError", "--eps-joint"),
        ({"--eps-joint": "2", "--gains": "1,8"}, "PolicyError", "--eps-joint"),
        ({"--delta-policy": "1e-6", "--delta-acc": "1e-7"}, "PolicyError", "delta_policy"),
        ({"--gains": "1", "--lattice": "512"}, "PolicyError", "lattice"),
        ({"--gains": "1", "--lattice": "128"}, "PolicyError", "lattice"),
        ({"--gains": "1,8,64", "--eps-acc": "1"}, "PolicyError", "gains"),
    ],
)
def test_a_bad_target_is_a_named_error_and_writes_nothing(
    tmp_path: Path, changes: dict[str, str], error: str, field: str
) -> None:
    refused(
        run("provider", "policy", "new", tmp_path / "p.json", *options({**TARGET, **changes})), error, field
    )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_a_named_error(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "p.json"
    refused(run("provider", "policy", "new", path, *options(TARGET)), "StoreError", str(path))


# -- bounds ----------------------------------------------------------------------------------------------


def test_bounds_of_constants_and_of_a_policy_file_are_the_same(tmp_path: Path) -> None:
    made(
        tmp_path / "p.json", "--n", 200, "--eps-acc", "4", "--delta-acc", "1e-6", "--k-max", 10,
        "--delta-policy", "2e-5", "--gains", "1,8,64", "--lattice", 32,
    )  # fmt: skip
    by_file = run("provider", "policy", "bounds", tmp_path / "p.json", "--json")
    by_hand = run("provider", "policy", "bounds", *options(CONSTANTS), "--accounts-max", "16", "--json")
    assert by_file.exit_code == by_hand.exit_code == 0
    of_file, of_constants = json.loads(by_file.stdout), json.loads(by_hand.stdout)
    assert "among 64 positions of law" in of_file.pop("covers")  # constants have no capacity
    assert "among N positions" in of_constants.pop("covers")
    assert of_file.pop("tenants")["law"]["eps"] == of_file["eps_audit"]  # constants have no tenants
    assert of_file == of_constants


def test_bounds_say_which_is_valid_why_not_and_which_counts() -> None:
    result = json.loads(run("provider", "policy", "bounds", *options(CONSTANTS), "--json").stdout)
    bounds = {b["name"]: b for b in result["bounds"]["bounds"]}
    assert {n: (b["eps"], b["valid"]) for n, b in bounds.items()} == {
        "closed_form": ("17.497", False), "rdp": ("6.7023", True), "exact": ("6.1948", True)
    }  # fmt: skip
    assert "above delta_acc/n" in bounds["closed_form"]["reason"]
    assert (result["eps_audit"], result["eps_audit_by"]) == ("6.1948", "exact")
    text = run("provider", "policy", "bounds", *options(CONSTANTS)).stdout
    assert "exact          eps 6.1948  <- eps_audit" in text
    assert "not valid: delta of one query" in text
    assert text.index("selected positions") < text.index("eps 6.1948")


def test_bounds_are_the_numbers_of_a_verdict(tmp_path: Path) -> None:
    window = json.loads((EXAMPLES / "window.json").read_text())
    (tmp_path / "p.json").write_bytes(jcs(window["policy"]))
    promised = json.loads(run("provider", "policy", "bounds", tmp_path / "p.json", "--json").stdout)
    figures: Any = verify_window(EXAMPLES / "window.json", trust=EXAMPLES / "trust.toml").figures
    for name in (
        "bounds", "eps_audit", "eps_audit_by", "eps_one_account", "eps_all_accounts", "accounts_max", "membership"
    ):  # fmt: skip
        assert promised[name] == figures[name], name


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"--eps-acc": "0"}, "eps_acc"),
        ({"--eps-acc": "four"}, "eps_acc"),
        ({"--delta-acc": "0"}, "delta_acc"),
        ({"--delta-acc": "1"}, "delta_acc"),
        ({"--delta": "0"}, "delta_policy"),
        ({"--delta": "1.5"}, "delta_policy"),
        ({"--delta": "1e-5"}, "delta_policy"),
        ({"--n": "0"}, "--n"),
        ({"--n": "1.5"}, "--n"),
        ({"--k": "0"}, "--k"),
        ({"--k": "ten"}, "--k"),
        ({"--gains": "2,8"}, "gains[0]"),
        ({"--gains": "1,9"}, "gains[1]"),
        ({"--gains": "1,1,1,1,1,1,1"}, "gains"),
        ({"--gains": ""}, "--gains"),
        ({"--lattice": "48"}, "lattice"),
        ({"--gains": "1", "--lattice": "512"}, "lattice"),
        ({"--gains": "1", "--lattice": "64"}, "lattice"),
        ({"--accounts-max": "0"}, "--accounts-max"),
    ],
)
def test_bad_constants_are_named_errors(changes: dict[str, str], field: str) -> None:
    refused(run("provider", "policy", "bounds", *options({**CONSTANTS, **changes})), "PolicyError", field)


def test_noise_too_narrow_for_any_bound_names_the_nearest_that_works() -> None:
    result = run("provider", "policy", "bounds", *options({**CONSTANTS, "--gains": "1", "--lattice": "64"}))
    hint = result.stderr.split("nearest that works: ")[1]
    assert hint.startswith("lattice 16 with these gains, or gains 1,1 with this lattice")
    for changes in ({"--gains": "1", "--lattice": "16"}, {"--gains": "1,1", "--lattice": "64"}):
        assert run("provider", "policy", "bounds", *options({**CONSTANTS, **changes})).exit_code == 0


@pytest.mark.parametrize("missing", sorted(CONSTANTS))
def test_a_constant_that_is_missing_is_asked_for(missing: str) -> None:
    result = run(
        "provider", "policy", "bounds", *options({k: v for k, v in CONSTANTS.items() if k != missing})
    )
    assert result.exit_code == 2
    assert missing in result.stderr


def test_a_file_and_constants_together_are_refused(tmp_path: Path) -> None:
    made(tmp_path / "p.json")
    result = run("provider", "policy", "bounds", tmp_path / "p.json", "--n", 3)
    assert result.exit_code == 2 and "not both" in result.stderr


@pytest.mark.parametrize(
    "change,error,field",
    [
        ({"n": 0}, "SchemaError", "p.json.n"),
        ({"delta_policy": "2"}, "PolicyError", "delta_policy"),
        ({"sigma": "1"}, "PolicyError", "policy.sigma"),
        ({"surprise": 1}, "SchemaError", "p.json.surprise"),
    ],
)
def test_a_damaged_policy_file_is_a_named_error(
    tmp_path: Path, change: dict[str, Any], error: str, field: str
) -> None:
    policy, _ = made(tmp_path / "p.json")
    (tmp_path / "p.json").write_bytes(jcs({**policy.dump(), **change}))
    refused(run("provider", "policy", "bounds", tmp_path / "p.json"), error, field)


@pytest.mark.parametrize(("theta", "fraction"), [("0.8", [4, 5]), (".974", [487, 500]), ("9/10", [9, 10])])
def test_theta_is_a_fraction(tmp_path: Path, theta: str, fraction: list[int]) -> None:
    policy, _ = made(tmp_path / "p.json", "--theta", theta)
    assert policy.estimator.theta == fraction


@pytest.mark.parametrize("theta", ["0", "1", "1.5", "5/4", "1/1001", "0.0001", "4/0", "-0.8", "nan", "0.8 "])
def test_a_theta_outside_the_unit_interval_is_refused(tmp_path: Path, theta: str) -> None:
    refused(
        run(
            "provider",
            "policy",
            "new",
            tmp_path / "p.json",
            "--window",
            "w-1",
            "--tenant",
            "law=64",
            "--theta",
            theta,
            *SIZES,
        ),
        "PolicyError",
        "--theta",
    )


TABLE = ("--documents", 64, "--positions-per-document", 4, "--fresh-bits")


def test_accounts_and_questions_give_the_number_of_questions(tmp_path: Path) -> None:
    mechanism = "pooled-listing:0.9:0.1:900"
    policy, value = made(
        tmp_path / "p", "--accounts", 12, "--questions", 30, "--k-max", 3, "--mechanism", mechanism, *TABLE
    )
    assert (policy.tenants[0].accounts_max, policy.n) == (12, 30)
    said = " ".join((tmp_path / "p.explained.txt").read_text().split())
    assert (
        "law: m = 12 accounts x 30 questions = 360 questions; the largest m with an epsilon of at most 10"
        in said
    )
    assert value["tenants"]["law"]["exposure"] == {
        "accounts": 3,
        "queries": 90,
        "documents": 64,
        "limit": 64,
        "exact": 64,
        "by_chance": value["tenants"]["law"]["exposure"]["by_chance"],
        "exceeds_exact": False,
    }
    assert (
        "law: 3 accounts with 90 questions in total can read up to 64 documents of an index with room for 64"
        in said
    )
    assert "chance alone returns at most 6 of them on average" in said


def test_chance_above_exact_retrieval_is_warned_of(tmp_path: Path) -> None:
    """One account with ten questions reads 10 documents exactly; chance alone returns 40 % of 64 = 25.6."""
    options = [
        "--k-max", 1, "--questions", 10, "--accounts-max", 1, "--top-k", 1, "--mechanism", "pooled-listing:0.7:0.4:900",
        *TABLE,
    ]  # fmt: skip
    _, value = made(tmp_path / "p", *options)
    exposure = value["tenants"]["law"]["exposure"]
    assert exposure["exact"] == 10 and 25 < float(exposure["by_chance"]) < 26 and exposure["exceeds_exact"]
    said = " ".join((tmp_path / "p.explained.txt").read_text().split())
    assert "WARNING: this is more than 1.6 times the number of exact retrieval" in said
