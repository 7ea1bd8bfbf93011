"""`policy check`: the checks of a verdict that a policy alone decides, one stricter requirement at a time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.account.account import Account
from rag_audit.cli import main
from rag_audit.log.keys import ALG_COSIGNATURE
from rag_audit.log.signing import SigningKey
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.mechanisms.sampling import Sampling
from tests.drafting import draft
from tests.embedders import small_bert

SIZES = ("--accounts", 16, "--questions", 200)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy of defaults, and the roster line of an account."""
    folder = tmp_path_factory.mktemp("ahead")
    assert (
        run(
            "provider",
            "policy",
            "new",
            folder / "policy.json",
            "--window",
            "w",
            "--tenant",
            "law=64",
            *SIZES,
            "--mechanism",
            "noise",
        ).exit_code
        == 0
    )
    (folder / "line").write_bytes(Account.create(folder / "account", "alice", "law").roster_entry.canonical())
    return folder


def checked(
    given: Path, out: Path, *trust: object, policy: str = "policy.json"
) -> tuple[int, dict[str, str]]:
    """Exit code of `policy check`, and the status of each check that did not pass."""
    provider = SigningKey.generate("example.org").verifier
    witness = SigningKey.generate("w", ALG_COSIGNATURE).verifier
    result = run(
        "verifier",
        "trust",
        "new",
        out / "trust.toml",
        "--origin",
        "example.org",
        "--provider",
        provider,
        "--witness",
        witness,
        "--account",
        given / "line",
        *trust,
    )
    assert result.exit_code == 0, result.output
    done = run("provider", "policy", "check", given / policy, "--trust", out / "trust.toml", "--json")
    rows = json.loads(done.stdout)["wanting"]
    assert all(row["expected"] and row["actual"] for row in rows)
    return done.exit_code, {row["id"]: row["outcome"] for row in rows}


def test_a_policy_of_defaults_has_what_is_asked_by_default(given: Path, tmp_path: Path) -> None:
    assert checked(given, tmp_path) == (0, {})


@pytest.mark.parametrize(
    ("requirement", "check"),
    [
        ("max_epsilon=7", "trust.max_epsilon"),
        ("max_delta=1e-6", "trust.max_delta"),
        ("min_k_max=11", "trust.min_k_max"),
        ("max_theta=0.8", "trust.max_theta"),
        ("max_K_share=0.01", "trust.max_K_share"),
        ("max_score_hi=1679", "trust.max_score_hi"),
        ("min_score_width=1261", "trust.min_score_width"),
        ("document_embedding=proved", "trust.document_embedding"),
        ("mechanisms=pooled-listing", "trust.mechanisms"),
        ("min_receipts=201", "receipt.independent"),
    ],
)
def test_what_a_policy_lacks_is_named(given: Path, tmp_path: Path, requirement: str, check: str) -> None:
    result = checked(given, tmp_path, "--require", requirement)
    assert result == (3, {check: "unmet"})


def drafted(folder: Path, *options: object) -> Path:
    """A policy of `policy new` with the options, noise where they name no mechanism, and defaults for all else."""
    path = folder / "chosen.json"
    noise = [] if {"--mechanism", "--rights", "--no-rights"} & {*options} else ["--mechanism", "noise"]
    result = run("provider", "policy", "new", path, "--window", "w", *SIZES, *noise, *options)
    assert result.exit_code == 0, result.output
    return path


POOLED = "pooled-listing:0.7:0.5:601"
"""An option with an epsilon of at most 10 for the questions of `SIZES`."""
TABLE = ("--documents", 64, "--positions-per-document", 4, "--fresh-bits")


def named_by(kind: str) -> list[object]:
    """The options for a mechanism; pooled listing requires a document table."""
    return ["--mechanism", kind, *(TABLE if kind.startswith("pooled-listing") else ())]


@pytest.mark.parametrize("capacity", [64, 320, 4096])
@pytest.mark.parametrize("kind", ["noise", "noise:0.9", "sampling", "sampling:0.7", POOLED, "none"])
def test_the_defaults_of_every_mechanism_agree(given: Path, tmp_path: Path, kind: str, capacity: int) -> None:
    """`policy new --mechanism`, then `trust new` with the mechanism accepted by name, or by the policy."""
    policy = drafted(tmp_path, "--tenant", f"law={capacity}", *named_by(kind))
    named = kind.partition(":")[0]
    for number, accepted in enumerate((["--require", f"mechanisms={named}"], ["--policy", policy])):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert checked(given, folder, *accepted, policy=str(policy)) == (0, {}), accepted


@pytest.mark.parametrize("kind", ["noise", "sampling", POOLED])
def test_each_mechanism_that_protects_is_accepted_without_a_policy(
    given: Path, tmp_path: Path, kind: str
) -> None:
    policy = drafted(tmp_path, "--tenant", "law=320", *named_by(kind))
    assert checked(given, tmp_path, policy=str(policy)) == (0, {})


def test_the_mechanisms_that_policy_new_chooses_are_accepted_without_a_policy(
    given: Path, tmp_path: Path
) -> None:
    for number, rights in enumerate(("--no-rights", "--rights")):
        folder = tmp_path / str(number)
        folder.mkdir()
        policy = drafted(folder, "--tenant", "law=320", rights)
        assert checked(given, folder, policy=str(policy)) == (0, {}), rights


def test_no_mechanism_is_accepted_by_name_alone(given: Path, tmp_path: Path) -> None:
    policy = drafted(tmp_path, "--tenant", "law=320", *named_by("none"))
    code, result = checked(given, tmp_path, policy=str(policy))
    assert code == 3 and "trust.mechanisms" in result


def test_the_limit_of_listing_is_no_limit_of_noise(given: Path, tmp_path: Path) -> None:
    """A trust file that accepts both has the limit of noise; no limit is taken from the policy that it names."""
    policy = drafted(
        tmp_path,
        "--tenant",
        "law=320",
        "--tenant",
        "files=320",
        "--mechanism",
        "law=noise",
        "--mechanism",
        "files=pooled-listing",
        *TABLE,
    )
    folder = tmp_path / "trust"
    folder.mkdir()
    code, result = checked(given, folder, "--policy", policy, policy=str(policy))
    assert (code, result) == (3, {"trust.max_epsilon": "unmet"})
    assert 'max_epsilon = "8"' in (folder / "trust.toml").read_text()
    weak = drafted(folder, "--tenant", "law=320", "--mechanism", "sampling:0.95")
    other = tmp_path / "other"
    other.mkdir()
    assert checked(given, other, "--policy", weak, policy=str(weak)) == (
        3,
        {"trust.max_exclusion_factor": "unmet"},
    )


def test_a_policy_is_never_overwritten(tmp_path: Path) -> None:
    path = drafted(tmp_path, "--tenant", "law=64")
    explained = tmp_path / "chosen.json.explained.txt"
    before = path.read_bytes(), explained.read_bytes()
    again = ["provider", "policy", "new", path, "--window", "other", "--tenant", "law=128", *SIZES]
    for gone in (None, path):  # the explanation alone is kept too
        if gone is not None:
            gone.unlink()
        done = run(*again)
        assert done.exit_code == 2 and "not overwritten" in done.stderr and "name another file" in done.stderr
    assert explained.read_bytes() == before[1] and not path.exists()
    path.write_bytes(before[0])
    assert run(*again).exit_code == 2 and path.read_bytes() == before[0]


def test_levels_follow_from_the_policy(given: Path, tmp_path: Path) -> None:
    less = json.loads((given / "policy.json").read_text())
    less["estimator"]["coalition_proof"] = None
    del less["tenants"][0]["circuits"]["embed"]
    (given / "less.json").write_text(json.dumps(less))
    assert checked(given, tmp_path, policy="less.json") == (
        3,
        {"trust.coalition": "unmet", "trust.query_embedding": "unmet"},
    )


def test_a_mechanism_is_named_before_its_figures_count(given: Path, tmp_path: Path) -> None:
    mechanism = Sampling(keep=probability_over_range(defaults.KEEP, "keep"))
    sampled = draft(
        window="w", opens_at=1, closes_at=2, capacities={"law": 64}, n=200, k_max=10, eps_acc="4",
        mechanisms={"law": mechanism}, theta=(19, 20), coalition_proof=("scan", 100),
    )  # fmt: skip
    (given / "sampled.json").write_bytes(sampled.canonical())
    refused = checked(given, tmp_path, "--require", "mechanisms=noise", policy="sampled.json")
    assert refused == (3, {"trust.mechanisms": "unmet"})
    (tmp_path / "trust.toml").unlink()
    assert checked(given, tmp_path, "--require", "mechanisms=noise,sampling", policy="sampled.json") == (
        0,
        {},
    )


def test_protocols_of_another_release_are_undecided(given: Path, tmp_path: Path) -> None:
    assert checked(given, tmp_path) == (0, {})
    path = tmp_path / "trust.toml"
    path.write_text("\n".join(line for line in path.read_text().split("\n") if not line.startswith("scan =")))
    done = run("provider", "policy", "check", given / "policy.json", "--trust", path, "--json")
    result = {row["id"]: row["outcome"] for row in json.loads(done.stdout)["wanting"]}
    expected = {"proof.key.law": "undecided", "coalition.key": "undecided", "trust.setup": "unproven"}
    assert (done.exit_code, result) == (2, expected)


@pytest.mark.parametrize(
    ("kind", "decided"),
    [
        ("noise", "policy.noise: rag-audit provider policy new --eps-joint"),
        (
            "pooled-listing",
            "policy.tenants.keep, flip_probability: rag-audit provider policy new --mechanism"
            " pooled-listing:KEEP:F:THRESHOLD",
        ),
    ],
)
def test_what_decides_epsilon_is_of_the_policys_mechanism(
    given: Path, tmp_path: Path, kind: str, decided: str
) -> None:
    policy = drafted(tmp_path, "--tenant", "law=64", *named_by(kind))
    checked(
        given, tmp_path, "--require", f"mechanisms={kind}", "--require", "max_epsilon=1", policy=str(policy)
    )
    said = run("provider", "policy", "check", policy, "--trust", tmp_path / "trust.toml").stdout
    assert f"decided by {decided}" in said
    assert ("policy.noise" in said) is (kind == "noise")


def trusted(tmp_path: Path, *options: object) -> Result:
    """`trust new` with keys of its own."""
    provider = SigningKey.generate("example.org").verifier
    witness = SigningKey.generate("w", ALG_COSIGNATURE).verifier
    out = tmp_path / "trust.toml"
    out.unlink(missing_ok=True)
    return run(
        "verifier",
        "trust",
        "new",
        out,
        "--origin",
        "example.org",
        "--provider",
        provider,
        "--witness",
        witness,
        *options,
    )


def test_the_limit_of_pooled_listing_is_its_own(tmp_path: Path) -> None:
    policy = drafted(tmp_path, "--tenant", "law=64", *named_by(POOLED))
    for accepted in (["--policy", policy], ["--require", "mechanisms=pooled-listing"]):
        result = trusted(tmp_path, *accepted)
        assert result.exit_code == 0 and 'max_epsilon = "10"' in (tmp_path / "trust.toml").read_text()
    assert "max_epsilon is 10 instead of 8" in " ".join(
        run("verifier", "trust", "new", "--help").stdout.split()
    )


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("max_epsilom=8", "did you mean max_epsilon?"),
        ("max_epsilon", "expected: max_epsilon=VALUE"),
        ("max_epsilon=", "expected: max_epsilon=VALUE"),
        ("min_k_max=ten", "expected: a whole number"),
        ("xyz=1", "a key below [require] of docs/protocol.md"),
    ],
)
def test_a_setting_that_is_no_requirement_is_named(tmp_path: Path, setting: str, said: str) -> None:
    done = trusted(tmp_path, "--require", setting)
    assert done.exit_code == 2 and said in done.stderr and "['" not in done.stderr
    assert not (tmp_path / "trust.toml").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mechanism", "sampling:9"], ["a share above 0 and below 1, such as 0.9", "actual: 9\n", "KEEP"]),
        (
            ["--mechanism", "pooled-listing:0.7:1:354"],
            ["a decimal number above 0 and below 1", "actual: 1\n", "F"],
        ),
        (["--mechanism", "medicine=none"], ["no --tenant is named medicine", "expected: law"]),
        (
            ["--mechanism", "law=none", "--mechanism", "law=noise"],
            ["two options set", "one --mechanism for law"],
        ),
        (
            ["--mechanism", "none", "--mechanism", "noise"],
            ["two options set", "one --mechanism for all tenants"],
        ),
        (["--tenant", "law=32"], ["law is given twice", "actual: law=32"]),
    ],
)
def test_an_option_that_fits_no_tenant_is_named(tmp_path: Path, options: list[str], said: list[str]) -> None:
    done = run(
        "provider",
        "policy",
        "new",
        tmp_path / "p.json",
        "--window",
        "w",
        "--tenant",
        "law=64",
        *SIZES,
        *options,
    )
    assert done.exit_code == 2 and all(words in done.stderr for words in said), done.stderr
    assert "2^40" not in done.stderr and not (tmp_path / "p.json").exists()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders with encoders of one configuration and different weights."""
    folder = tmp_path_factory.mktemp("models")
    shape = replace(small_bert.SHAPE, places=64)
    own, other = (small_bert.write(folder / str(seed), shape, seed) for seed in (1, 2))
    return own, other


def planned(folder: Path, *options: object) -> tuple[int, dict[str, str], str]:
    """Exit code of `policy check` with these options, the status of each check that did not pass, and the messages."""
    done = run(
        "provider", "policy", "check", folder / "chosen.json", "--trust", folder / "trust.toml", "--json", *options
    )  # fmt: skip
    rows = json.loads(done.stdout)["wanting"] if done.stdout else []
    return done.exit_code, {row["id"]: row["outcome"] for row in rows}, done.stderr


def test_a_policy_for_another_embedder_than_the_pinned_one_is_refused(given: Path, tmp_path: Path) -> None:
    """Both embedders have pinned artefacts of one proof system, and the same system proves both."""
    drafted(tmp_path, "--tenant", "law=64")
    assert trusted(tmp_path, "--account", given / "line", "--embedder", "minilm-int").exit_code == 0
    code, rows, _ = planned(tmp_path)
    assert code == 1 and rows["trust.embedder"] == "fail"
    (tmp_path / "chosen.json").unlink()
    (tmp_path / "chosen.json.explained.txt").unlink()
    drafted(tmp_path, "--tenant", "law=64", "--embedder", "minilm-int", "--query-tokens", 32)
    assert planned(tmp_path)[:2] == (0, {})
    code, rows, _ = planned(tmp_path, "--embedder", "wordllama-lexical-768")
    assert code == 1 and rows["trust.embedder"] == "fail"


def test_a_model_that_this_release_does_not_publish_is_named(
    given: Path, tmp_path: Path, models: tuple[Path, Path]
) -> None:
    own, other = models
    options = "--embedder", "bert-int", "--model", own
    drafted(tmp_path, "--tenant", "law=64", "--query-tokens", 32, *options)
    assert trusted(tmp_path, "--account", given / "line", *options).exit_code == 0
    code, _, said = planned(tmp_path)
    assert code == 2 and "does not publish the embedder of the trust file" in said and "--model" in said
    assert planned(tmp_path, *options)[:2] == (0, {})
    code, rows, _ = planned(tmp_path, "--embedder", "bert-int", "--model", other)
    assert code == 1
    assert rows == {
        "trust.embedder": "fail", "trust.manifest": "fail", "trust.query_embedding": "unmet"
    }  # fmt: skip
    code, _, said = planned(tmp_path, "--model", own)
    assert code == 2 and "--embedder" in said


def test_a_folder_of_a_model_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = run(
        "provider", "policy", "new", tmp_path / "p.json", "--window", "w", "--tenant", "law=64", *SIZES,
        "--mechanism", "noise", "--embedder", "minilm-int", "--model", tmp_path / "absent",
    )  # fmt: skip
    assert done.exit_code == 2 and "there is no such file or folder" in done.stderr
    assert str(tmp_path / "absent") in done.stderr and not (tmp_path / "p.json").exists()
