"""`rag-audit verifier cumulative`: windows over one index compose, from policies and from window files."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.canonical import jcs
from rag_audit.cli import main
from rag_audit.errors import PolicyError
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.base import Mechanism, TableShape
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.policy import Policy
from rag_audit.report.cumulative import WindowPart, compose, load_window
from tests.drafting import draft
from tests.named import error_name

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def policy(window: str, tenants: tuple[str, ...] = ("law",), **changes: object) -> Policy:
    values = {
        "window": window,
        "opens_at": 1,
        "closes_at": 2,
        "capacities": dict.fromkeys(tenants, 64),
        "n": 200,
        "k_max": 10,
        "eps_acc": "4",
        "gains": (1, 8, 64),
        "lattice": 32,
        **changes,
    }
    return draft(**values)  # type: ignore[arg-type]


def write(folder: Path, *policies: Policy) -> list[Path]:
    paths = [folder / f"{number}.json" for number, _ in enumerate(policies)]
    for path, item in zip(paths, policies, strict=True):
        path.write_bytes(jcs(item.dump()))
    return paths


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["verifier", "cumulative", *(str(a) for a in arguments)])


def test_equal_windows_compose_like_one_window_of_all_their_queries(tmp_path: Path) -> None:
    paths = write(tmp_path, *(policy(f"w-{i}") for i in range(4)))
    result = json.loads(run(*paths, "--delta", "2e-5", "--json").stdout)
    batch = accounting.eps_at(accounting.Mechanism((1, 8, 64), 32), 4 * 2000, "2e-5")
    assert float(result["eps"]) == pytest.approx(batch, rel=1e-3)
    assert result["eps"] == "14.627"
    assert [w["eps_alone"] for w in result["windows"]] == ["6.1948"] * 4
    assert [w["window"] for w in result["windows"]] == ["w-0", "w-1", "w-2", "w-3"]


def test_unlike_windows_lie_between_the_larger_and_the_sum(tmp_path: Path) -> None:
    paths = write(tmp_path, policy("a"), policy("b", n=50, k_max=3, gains=(1, 8, 48)))
    result = json.loads(run(*paths, "--json").stdout)
    alone = [float(w["eps_alone"]) for w in result["windows"]]
    assert max(alone) < float(result["eps"]) < sum(alone)
    assert result["delta"] == "0.00001"
    assert [w["compositions"] for w in result["windows"]] == [2000, 150]


def test_one_window_composes_to_its_own_bound(tmp_path: Path) -> None:
    (path,) = write(tmp_path, policy("a"))
    result = json.loads(run(path, "--json").stdout)
    assert result["eps"] == result["windows"][0]["eps_alone"]


def test_the_largest_delta_is_the_default(tmp_path: Path) -> None:
    paths = write(tmp_path, policy("a"), policy("b", delta_policy="2e-5"))
    assert json.loads(run(*paths, "--json").stdout)["delta"] == "0.00002"


def test_what_the_figure_covers_stands_first(tmp_path: Path) -> None:
    text = run(*write(tmp_path, policy("a"), policy("b"))).stdout
    assert text.index("selected positions") < text.index("total: eps")
    assert "verified no window" in text


def test_a_window_file_gives_its_committed_policy(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "window.json", tmp_path / "window.json")
    by_file, by_folder = load_window(tmp_path / "window.json"), load_window(tmp_path)
    value = json.loads((tmp_path / "window.json").read_text())["policy"]
    assert by_file.policy == by_folder.policy == Policy.parse(value, field="policy")


def test_a_window_file_with_another_policy_is_refused(tmp_path: Path) -> None:
    value = json.loads((EXAMPLES / "window.json").read_text())
    value["policy"]["n"] -= 1
    (tmp_path / "window.json").write_bytes(jcs(value))
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "rag-audit: the policy differs from the committed policy of the window" in result.stderr


def test_a_window_given_twice_is_refused(tmp_path: Path) -> None:
    (path,) = write(tmp_path, policy("a"))
    result = run(path, path)
    assert result.exit_code == 2
    assert "rag-audit: the same window is supplied twice" in result.stderr


def test_windows_of_different_tenants_are_refused(tmp_path: Path) -> None:
    result = run(*write(tmp_path, policy("a", ("law",)), policy("b", ("tax",))))
    assert result.exit_code == 2
    assert "have no tenant in common" in result.stderr


def test_tenants_that_all_windows_serve_are_named(tmp_path: Path) -> None:
    paths = write(tmp_path, policy("a", ("law", "tax")), policy("b", ("tax", "tea")))
    assert json.loads(run(*paths, "--json").stdout)["tenants"] == ["tax"]


@pytest.mark.parametrize("delta", ["0", "1", "x"])
def test_a_bad_delta_is_a_named_error(tmp_path: Path, delta: str) -> None:
    result = run(*write(tmp_path, policy("a"), policy("b")), "--delta", delta)
    assert result.exit_code == 2
    assert "rag-audit: " in result.stderr and "  at: delta\n" in result.stderr


def test_files_that_are_no_windows_are_named_errors(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[]")
    for path, error in ((tmp_path / "list.json", "SchemaError"), (tmp_path / "absent", "EncodingError")):
        result = run(path)
        assert result.exit_code == 2
        assert error_name(result) == error


def test_a_policy_that_is_not_well_formed_is_not_composed(tmp_path: Path) -> None:
    result = run(*write(tmp_path, policy("a"), policy("b", gains=(1,), lattice=64)))
    assert result.exit_code == 2
    assert "infinite privacy loss" in result.stderr


def test_nothing_to_compose_is_refused() -> None:
    with pytest.raises(PolicyError, match="no window"):
        compose([], "1e-5")


POOLED = PooledListing(
    keep=99 * (1 << 40) // 100, rules=PoolRules(0, 354, "0.1"), documents=TableShape(16, 2, None)
)


def mixed(folder: Path, medicine: Mechanism) -> list[Path]:
    """Two windows in which tenant law has noise with a document table, and medicine another mechanism."""
    law = Noise(documents=TableShape(16, 2, None))
    own = {"law": law, "medicine": medicine}
    return write(
        folder,
        *(
            policy(window, ("law", "medicine"), mechanisms=own, n=1, k_max=2, gains=(1, 8), eps_acc="1000")
            for window in ("a", "b")
        ),
    )


def test_the_delta_is_that_of_the_tenant_that_needs_the_largest(tmp_path: Path) -> None:
    paths = mixed(tmp_path, POOLED)
    result = json.loads(run(*paths, "--json").stdout)
    assert float(result["eps_by_tenant"]["medicine"]) > float(result["eps_by_tenant"]["law"])
    assert result["eps"] == result["eps_by_tenant"]["medicine"]
    assert result["delta"] == result["bound"]["delta"] == "0.00001", "law's noise has no eps at delta 0"
    assert f"total: eps {result['eps']} at delta 0.00001, for law, medicine" in run(*paths).stdout


def test_pooled_listing_alone_needs_no_delta(tmp_path: Path) -> None:
    own = {"law": POOLED}
    paths = write(tmp_path, *(policy(w, mechanisms=own, n=1, k_max=2, eps_acc="1000") for w in ("a", "b")))
    assert json.loads(run(*paths, "--json").stdout)["delta"] == "0"


def test_a_sampling_tenant_keeps_its_factor_beside_a_tenant_with_noise(tmp_path: Path) -> None:
    paths = mixed(tmp_path, Sampling(keep=7 * (1 << 40) // 10, documents=TableShape(16, 4, None)))
    result = json.loads(run(*paths, "--json").stdout)
    assert result["exclusion_factor"] is None, "law has none"
    assert set(result["exclusion_factor_by_tenant"]) == {"medicine"}
    factor = result["exclusion_factor_by_tenant"]["medicine"]["exclusion_factor"]
    assert float(factor) == pytest.approx((1 / 0.3) ** 2, rel=1e-3)
    text = run(*paths).stdout
    assert "Accounts of medicine that never received a given document" in text
    assert f"at most {factor} (exclusion_factor)" in text and "at most 4 positions" in text
    assert "Accounts of law" not in text


@pytest.mark.parametrize("given", [1, 2, 8])
def test_noise_without_a_table_has_a_loss_for_each_position_of_a_document(given: int) -> None:
    own = [
        policy(w, mechanisms={"law": Noise(documents=t)}, n=5)
        for w, t in (("a", None), ("b", TableShape(16, 2, None)))
    ]
    total = compose([WindowPart("", p) for p in own], positions=given)
    single = own[0].noise
    assert single is not None and total.positions == given
    assert total.bound.eps == accounting.eps_at(single.mechanism(), 2 * 50 * given, total.bound.delta)


def test_a_total_is_for_no_larger_document_than_pooled_listing_permits() -> None:
    own = policy("a", mechanisms={"law": POOLED}, n=1, k_max=2)
    assert compose([WindowPart("", own)], positions=8).positions == 2
