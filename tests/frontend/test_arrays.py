"""What stands for numpy in a page, against numpy: alone, and under the accountant."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from rag_audit.errors import SetupError
from rag_audit.mechanisms.accounting import exact, pmf, tradeoff
from rag_audit.report.browser.inside import arrays
from tests.frontend.conftest import Process

pytestmark = [pytest.mark.page, pytest.mark.usefixtures("process")]
RNG = np.random.default_rng(5)


def of(values: np.ndarray) -> arrays.ndarray:
    return arrays.asarray(values.tolist())


def close(actual: arrays.ndarray, expected: np.ndarray, ulps: float = 2) -> bool:
    return bool(np.all(np.abs(np.array(actual.tolist()) - expected) <= ulps * np.spacing(np.abs(expected))))


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 127, 128, 129, 1000, 4097])
def test_sums_are_in_numpy_s_order(length: int) -> None:
    values = RNG.normal(size=length) * 10.0 ** RNG.integers(-20, 20, length)
    assert arrays.sum(of(values)) == float(np.sum(values))
    assert arrays.sum(of(values)[::-1]) == float(np.sum(values[::-1]))
    assert arrays.cumsum(of(values)).tolist() == np.cumsum(values).tolist()


def test_functions_of_each_item() -> None:
    values = np.concatenate([RNG.uniform(1e-300, 700, 200), [1e-12, 1.0, 2.0]])
    for name in ("exp", "log", "expm1", "floor", "abs"):
        assert close(getattr(arrays, name)(of(values)), getattr(np, name)(values)), name
    assert close(arrays.exp(-of(values)), np.exp(-values))
    assert close(arrays.expm1(-of(values)), np.expm1(-values))


def test_arithmetic_and_views_are_numpy_s() -> None:
    x, y = RNG.normal(size=50), RNG.normal(size=50)
    a, b = of(x), of(y)
    assert (a[3:40] * 2 - b[:37] / 3 + 1).tolist() == (x[3:40] * 2 - y[:37] / 3 + 1).tolist()
    assert (1 - a[::-1] * b).tolist() == (1 - x[::-1] * y).tolist()
    a[5:10] += b[:5]
    x[5:10] += y[:5]
    a[0], x[0] = 7.0, 7.0
    a[-1] += 2.0
    x[-1] += 2.0
    assert a.tolist() == x.tolist()
    assert a[a > 0.5].tolist() == x[x > 0.5].tolist()
    assert a[-2::-1].tolist() == x[-2::-1].tolist()
    assert arrays.maximum.accumulate(a).tolist() == np.maximum.accumulate(x).tolist()
    assert arrays.minimum(a, 0.25).tolist() == np.minimum(x, 0.25).tolist()
    assert arrays.roll(a, 13).tolist() == np.roll(x, 13).tolist()
    assert arrays.where(a > 0, b, 1.5).tolist() == np.where(x > 0, y, 1.5).tolist()
    assert arrays.max(a[:0], initial=0.0) == 0.0
    places = RNG.integers(0, 9, 50)
    expected = np.bincount(places, weights=x, minlength=20)
    assert arrays.bincount(of(places.astype(float)), weights=a, minlength=20).tolist() == expected.tolist()
    ordered = np.sort(x)
    for value in (ordered[7], 0.0, -9.0, 9.0):
        result = arrays.searchsorted(of(ordered), float(value), side="right")
        assert result == np.searchsorted(ordered, value, side="right")
    folded = arrays.pad(a, (0, -len(a) % 16)).reshape(-1, 16).sum(axis=0)
    assert folded.tolist() == np.pad(x, (0, -len(x) % 16)).reshape(-1, 16).sum(axis=0).tolist()
    assert arrays.logaddexp(-3.0, -700.0) == float(np.logaddexp(-3.0, -700.0))


@pytest.mark.parametrize("size", [2, 8, 1024, 2**16])
def test_transforms_are_as_exact_as_the_accountant_says(size: int) -> None:
    values = RNG.uniform(0, 1, size)
    result, expected = arrays.fft.rfft(of(values)), np.fft.rfft(values)
    error = np.linalg.norm(np.array(result.re.tolist()) + 1j * np.array(result.im.tolist()) - expected)
    allowed = 16 * pmf.UNIT_ROUNDOFF * math.log2(size)
    assert error <= allowed * np.linalg.norm(expected)
    back = np.array(arrays.fft.irfft(result, size).tolist())
    assert np.linalg.norm(back - values) <= 2 * allowed * np.linalg.norm(values)
    power = arrays.exp(3 * arrays.log(result + 1e-300))
    assert np.allclose(np.array(power.re.tolist()), (expected**3).real, rtol=1e-9)


@pytest.fixture
def expected() -> list[tuple[float, ...]]:
    """The figures by numpy."""
    return figures()


@pytest.fixture
def stood_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The accountant on the page's arrays."""
    caches = [pmf._noise_pmf, exact._fine_grid, exact.loss_grid]
    for module in (pmf, exact, tradeoff):
        monkeypatch.setattr(module, "np", arrays)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


CASES = [((1,), 16, 1), ((1, 4), 64, 6), ((1, 8), 128, 300)]


def figures() -> list[tuple[float, ...]]:
    result = []
    for gains, lattice, queries in CASES:
        mechanism = pmf.Mechanism(gains, lattice)
        eps = exact.Composition([(mechanism, queries)], 1e-6).epsilon()
        result.append((eps, mechanism.outside_mass, mechanism.delta_at(1.0), tradeoff.auc_bound(mechanism, queries),
                      tradeoff.tpr_bound(mechanism, queries, 0.01)))  # fmt: skip
    return result


def test_the_accountant_s_figures_are_the_same(
    expected: list[tuple[float, ...]], request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("stood_in")
    for case, result, by_numpy in zip(CASES, figures(), expected, strict=True):
        assert result == pytest.approx(by_numpy, rel=1e-9, abs=0), case


def test_what_is_not_there_says_so(process: Process) -> None:
    with pytest.raises(SetupError, match="no numpy, and its replacement lacks linspace"):
        arrays.linspace(0, 1)
    with pytest.raises(ValueError, match="arrays of 3 and 2 items"):
        arrays.ones(2) + arrays.ones(3)
    with pytest.raises(IndexError):
        arrays.ones(2)[2]
