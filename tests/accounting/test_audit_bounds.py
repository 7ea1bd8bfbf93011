"""The three bounds of a policy: the specification's table, the paper's leading terms, validity, JSON."""

import json
import math
import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_audit._internal.canonical import jcs, parse_json
from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting import (
    Mechanism,
    audit_bounds,
    closed_form,
    eps_at,
    gaussian_epsilon,
    rdp,
    required_sigma_over_delta,
)
from rag_audit.mechanisms.accounting.values import round_up

AT_3584 = Mechanism((1, 8, 64, 512, 3547), 16)
AT_116 = Mechanism((1, 8, 64, 460), 64)
TYPICAL = {"n": 200, "eps_acc": "4", "delta_acc": "1e-6", "k": 10, "delta": "2e-5"}


def digits(value: float, printed: str) -> bool:
    """Whether a figure is the printed one to the digits printed."""
    places = len(printed.partition(".")[2])
    return f"{value:.{places}f}" == printed


TABLE = [
    # n, eps_acc, k, sigma/Delta; closed form, RDP, RDP with the paper's conversion, exact
    (10_000, 1, 1, 3584, "0.953", "0.126", "0.208", "0.085"),
    (10_000, 1, 10, 3584, "3.25", "0.312", "0.414", "0.281"),
    (10_000, 1, 50, 3584, "7.80", "0.664", "0.866", "0.592"),
    (200, 4, 10, 116, "17.5", "1.57", "1.87", "1.43"),
]


@pytest.mark.parametrize(("n", "eps_acc", "k", "sigma", "closed", "grid", "grid_paper", "exact"), TABLE)
def test_reference_table_of_the_gaussian(
    n: int, eps_acc: float, k: int, sigma: float, closed: str, grid: str, grid_paper: str, exact: str
) -> None:
    sigma_over_delta = required_sigma_over_delta("classical", n=n, eps_acc=eps_acc, delta_acc=1e-6)
    assert round(sigma_over_delta) == sigma
    delta = max(1e-5, 2 * k * 1e-6)
    eps_q = closed_form.query_epsilon(eps_acc, 1e-6, n)
    assert digits(closed_form.advanced_composition(eps_q, k * n, delta - k * 1e-6), closed)
    divergences = rdp.gaussian_divergences(sigma_over_delta, k * n)
    assert digits(rdp.convert(divergences, delta), grid)
    assert digits(rdp.convert_as_paper(divergences, delta), grid_paper)
    assert digits(gaussian_epsilon(sigma_over_delta, k * n, delta), exact)


@pytest.mark.parametrize(("n", "eps_acc", "k", "sigma", "closed", "grid", "grid_paper", "exact"), TABLE)
def test_the_real_noise_of_that_width_has_the_same_bounds(
    n: int, eps_acc: float, k: int, sigma: float, closed: str, grid: str, grid_paper: str, exact: str
) -> None:
    mechanism = AT_3584 if sigma == 3584 else AT_116
    bounds = audit_bounds(
        mechanism,
        n=n,
        eps_acc=eps_acc,
        delta_acc="1e-6",
        k=k,
        delta=str(max(Decimal("1e-5"), k * Decimal("2e-6"))),
    )
    assert bounds.closed_form.valid and bounds.rdp.valid and bounds.exact.valid
    assert bounds.closed_form.eps == pytest.approx(float(closed), rel=5e-3)
    assert bounds.rdp.eps == pytest.approx(float(grid), rel=1e-2)
    assert bounds.comparisons["rdp_paper_conversion"] == pytest.approx(float(grid_paper), rel=1e-2)
    assert bounds.exact.eps == pytest.approx(float(exact), rel=1e-2)
    assert bounds.best is bounds.exact
    assert bounds.eps_audit == bounds.exact.eps


def test_the_closed_form_is_an_order_above_the_exact_bound_at_the_papers_settings() -> None:
    for k in (1, 10, 50):
        bounds = audit_bounds(
            AT_3584,
            n=10_000,
            eps_acc=1,
            delta_acc="1e-6",
            k=k,
            delta=str(max(Decimal("1e-5"), k * Decimal("2e-6"))),
        )
        assert 11 < bounds.closed_form.eps / bounds.exact.eps < 13.5


@pytest.mark.parametrize(
    ("k", "eps_acc", "printed"), [(10, 1, "3.16"), (50, 1, "7.07"), (50, 2, "14.14"), (100, 1, "10.00")]
)
def test_the_papers_leading_terms(k: int, eps_acc: float, printed: str) -> None:
    bounds = audit_bounds(
        AT_3584, n=10_000, eps_acc=eps_acc, delta_acc="1e-6", k=k, delta=str(k * Decimal("2e-6"))
    )
    assert digits(bounds.comparisons["paper_leading_term"], printed)
    assert bounds.comparisons["paper_leading_term"] < bounds.closed_form.eps
    assert "paper_leading_term" not in [b["name"] for b in bounds.as_json()["bounds"]]


def test_the_closed_form_needs_its_hypothesis() -> None:
    """At analytic noise one query is not (eps_q, delta_acc/n)-DP: taken on trust, the figure would be no bound."""
    narrow = audit_bounds(Mechanism((1, 8), 8), **TYPICAL)
    assert not narrow.closed_form.valid
    assert narrow.closed_form.reason is not None and "delta_acc/n" in narrow.closed_form.reason
    tiny_claim = audit_bounds(Mechanism((1, 8), 8), **{**TYPICAL, "eps_acc": "0.01"})
    assert tiny_claim.closed_form.eps < tiny_claim.exact.eps
    assert tiny_claim.eps_audit == tiny_claim.exact.eps


def test_the_closed_form_ends_where_its_lemma_does() -> None:
    bounds = audit_bounds(Mechanism((1, 8), 1), n=1, eps_acc=8, delta_acc="1e-6", k=1, delta="1e-5")
    assert not bounds.closed_form.valid
    assert bounds.closed_form.reason is not None and "above 1" in bounds.closed_form.reason


def test_only_the_closed_form_spends_the_accounts_delta() -> None:
    loose = audit_bounds(AT_116, **TYPICAL)
    tight = audit_bounds(AT_116, **{**TYPICAL, "delta_acc": "1.9e-6"})
    assert tight.exact.eps == loose.exact.eps
    assert tight.rdp.eps == loose.rdp.eps
    assert tight.closed_form.eps != loose.closed_form.eps


@pytest.mark.parametrize("gains", [(1,), (1, 8), (1, 2, 4), (1, 8, 64)])
@pytest.mark.parametrize("m", [(1, 1), (200, 10)])
def test_renyi_is_never_below_exact(gains: tuple[int, ...], m: tuple[int, int]) -> None:
    bounds = audit_bounds(Mechanism(gains, 16), n=m[0], eps_acc=1, delta_acc="1e-7", k=m[1], delta="1e-5")
    assert bounds.rdp.eps >= bounds.exact.eps
    assert bounds.comparisons["rdp_paper_conversion"] >= bounds.rdp.eps


def test_infinite_losses_leave_no_valid_bound() -> None:
    bounds = audit_bounds(Mechanism((1,), 64), **TYPICAL)
    assert bounds.eps_audit == math.inf
    assert not bounds.best.valid
    assert bounds.exact.reason is not None and "infinite" in bounds.exact.reason
    assert bounds.as_json()["eps_audit"] == "inf"


def test_json_has_no_floats_and_is_canonical() -> None:
    document = audit_bounds(AT_116, **TYPICAL).as_json()
    assert parse_json(jcs(document), source="bounds") == json.loads(json.dumps(document))
    assert document["counts"] == "exact"
    assert document["delta"] == "0.00002"
    assert [b["name"] for b in document["bounds"]] == ["closed_form", "rdp", "exact"]


@pytest.mark.parametrize(
    ("gains", "lattice", "m", "delta", "eps"),
    [
        ((1,), 16, 3, "1e-6", 9.2535),
        ((1, 8), 128, 1, "1e-5", 4.3383),
        ((1, 8), 128, 100, "1e-5", 90.723),
        ((1, 8, 64), 32, 2_000, "2e-5", 6.1948),
        ((1, 8, 64, 512, 3547), 16, 10_000_000, "1e-5", 3.7888),
    ],
)
def test_figures_that_every_machine_prints(
    gains: tuple[int, ...], lattice: int, m: int, delta: str, eps: float
) -> None:
    assert eps_at(Mechanism(gains, lattice), m, delta) == eps


@pytest.mark.full
def test_the_largest_policy_stays_under_one_gibibyte() -> None:
    policy = "n=100_000, eps_acc=1, delta_acc='1e-9', k=100, delta='1e-5'"
    script = (
        "import resource; from rag_audit.mechanisms.accounting import Mechanism, audit_bounds; "
        f"audit_bounds(Mechanism((1, 8, 64, 512, 4096, 32768), 64), {policy}); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peak = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(peak) < 2**20  # KiB


@given(st.floats(1e-12, 1e12))
def test_rounding_is_up_and_to_five_digits(value: float) -> None:
    rounded = round_up(value)
    assert value < rounded <= value * 1.00011
    assert float(f"{rounded:.4e}") == rounded


def test_rounding_hides_the_last_bits_of_two_machines() -> None:
    assert round_up(1.23454) == round_up(1.23454 * (1 + 1e-12)) == round_up(1.23454 * (1 - 1e-12)) == 1.2346


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"eps_acc": 0}, "eps_acc"),
        ({"eps_acc": "-1"}, "eps_acc"),
        ({"eps_acc": "nan"}, "eps_acc"),
        ({"eps_acc": "one"}, "eps_acc"),
        ({"eps_acc": True}, "eps_acc"),
        ({"eps_acc": None}, "eps_acc"),
        ({"delta_acc": "0"}, "delta_acc"),
        ({"delta_acc": "1"}, "delta_acc"),
        ({"delta": "1.5"}, "delta_policy"),
        ({"delta": "inf"}, "delta_policy"),
        ({"delta": "1e-5"}, "delta_policy"),
        ({"n": 0}, "n"),
        ({"n": 2.5}, "n"),
        ({"n": True}, "n"),
        ({"k": -1}, "k_max"),
        ({"k": "10"}, "k_max"),
    ],
)
def test_bad_parameters_are_named(change: dict[str, object], field: str) -> None:
    with pytest.raises(PolicyError) as caught:
        audit_bounds(AT_116, **{**TYPICAL, **change})
    assert caught.value.field == field


@given(st.integers(1, 20), st.integers(1, 1000), st.integers(0, 5), st.integers(0, 200))
@settings(max_examples=25, deadline=None)
def test_every_bound_is_monotone_in_k_and_n(k: int, n: int, more_k: int, more_n: int) -> None:
    small = audit_bounds(AT_116, n=n, eps_acc=4, delta_acc="1e-8", k=k, delta="1e-5")
    large = audit_bounds(AT_116, n=n + more_n, eps_acc=4, delta_acc="1e-8", k=k + more_k, delta="1e-5")
    assert large.exact.eps >= small.exact.eps
    assert large.rdp.eps >= small.rdp.eps
    if more_n == 0:  # with more queries each, the closed form promises less for one
        assert large.closed_form.eps >= small.closed_form.eps
