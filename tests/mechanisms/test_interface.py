"""What every mechanism of the registry keeps to; a new mechanism is tested once it is registered."""

import inspect
import math
from dataclasses import asdict

import numpy as np
import pytest

from rag_audit.errors import PolicyError
from rag_audit.lab.attacks.mechanisms import parse
from rag_audit.mechanisms import ALL, Mechanism, named
from rag_audit.mechanisms.base import SAMPLE, TableShape
from rag_audit.mechanisms.descriptions import ALL as DESCRIPTIONS
from rag_audit.mechanisms.descriptions import description
from rag_audit.mechanisms.descriptions.base import LIMITS, Option
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.none import Exact
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.attacks import AttackedMechanism
from rag_audit.models.constants import Constants
from rag_audit.models.policy import Policy
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.retrieval.engine import TenantIndex
from rag_audit.retrieval.serving import Asked, serving
from tests.drafting import draft

KEEP = 7 * PROBABILITY_RANGE // 10
DRAFTS = {
    "exact": Exact(),
    "noised": Noise(),
    "pooled": PooledListing(keep=KEEP, rules=PoolRules(0, 354, "0.9"), documents=TableShape(64, 4, 8)),
    "noised-sample": Noise(keep=KEEP),
    "sampled": Sampling(keep=KEEP),
}
POLICY = draft(
    window="w-1", opens_at=1, closes_at=2, capacities=dict.fromkeys(DRAFTS, 64), n=4, k_max=2, eps_acc="20",
    mechanisms=DRAFTS,
)  # fmt: skip
MADE = {t.tenant: POLICY.mechanism(t) for t in POLICY.tenants}
each = pytest.mark.parametrize("mechanism", MADE.values(), ids=MADE)
kinds = pytest.mark.parametrize("kind", ALL, ids=[kind.name for kind in ALL])


def test_every_mechanism_is_in_these_tests() -> None:
    assert {type(m) for m in MADE.values()} == {*ALL}
    assert len({kind.name for kind in ALL}) == len(ALL) and all(named(kind.name) is kind for kind in ALL)
    assert tuple(kind.mechanism for kind in DESCRIPTIONS) == ALL


@kinds
def test_a_mechanism_has_its_words(kind: type[Mechanism]) -> None:
    assert kind.limit in LIMITS and (kind.limit is not None) == kind.protects
    words = description(kind.name)
    assert words.words and words.coalition.endswith(".")
    assert words.does_not_prove or kind.limit == "max_epsilon"
    assert not inspect.isabstract(kind) and not inspect.isabstract(words) and words.mechanism is kind


@each
def test_a_policy_reads_the_mechanism_that_it_writes(mechanism: Mechanism) -> None:
    part = next(t for t in POLICY.tenants if MADE[t.tenant] == mechanism)
    written = part.dump()
    assert {name: written[name] for name in mechanism.fields()} == mechanism.fields()
    again = Policy.parse(POLICY.dump(), field="policy")
    assert again.mechanism_of(part.tenant) == mechanism
    assert sum(kind.is_named_by(part) for kind in ALL) == 1


@each
def test_constants_and_circuits_follow_from_the_mechanism(mechanism: Mechanism) -> None:
    part = next(t for t in POLICY.tenants if MADE[t.tenant] == mechanism)
    constants = POLICY.constants(part, 256, None)
    assert constants == Constants.of(mechanism, dimension=256, query_tokens=64, table=None)
    assert constants.top_k == mechanism.longest <= part.capacity
    assert (SAMPLE in part.circuits) == mechanism.sampled


def test_only_noise_returns_texts_of_positions_without_a_row() -> None:
    shape = TableShape(7, 4, None)
    made = {name: own.by_document(shape) for name, own in MADE.items()}
    most = {name: own.documents_max for name, own in made.items() if own is not None}
    assert most.pop("pooled") == most.pop("sampled") == 7
    assert most.pop("noised") == 64 and "exact" not in most


@each
def test_figures_agree_with_what_the_mechanism_promises(mechanism: Mechanism) -> None:
    name = next(t for t, m in MADE.items() if m == mechanism)
    figures = POLICY.figures()["tenants"][name]
    assert figures["mechanism"] == mechanism.name
    assert math.isfinite(float(figures["eps"])) == (mechanism.limit == "max_epsilon")
    kind = description(mechanism.name)
    assert (kind.loss(mechanism, 2, 4) is not None) == (mechanism.limit == "max_epsilon")
    assert (figures["exclusion_factor"] is not None) == mechanism.sampled == (mechanism.sample is not None)
    assert math.isinf(mechanism.realised([4], n=4, k=2, delta="1e-5")) == (mechanism.limit != "max_epsilon")
    epsilon, auc = kind.certified(mechanism, 1, 4, "1e-5")
    assert math.isfinite(epsilon) == (mechanism.limit == "max_epsilon")
    ceiling = kind.ceiling(mechanism, 1, 4, (0.001, 0.01, 0.5))
    assert (ceiling is not None) == (auc is not None) == mechanism.protects
    if ceiling is not None:
        assert list(ceiling.points) == sorted(ceiling.points) and ceiling.points[-1] == (1.0, 1.0)
        assert 0.01 <= ceiling.at_one_percent <= 1


@each
def test_a_list_that_is_too_long_is_named(mechanism: Mechanism) -> None:
    good = list(range(mechanism.longest))
    assert mechanism.wrong_list(good, len(good)) is None
    assert mechanism.wrong_list([*good, 63], len(good) + 1) is not None
    assert mechanism.wrong_list(good, len(good) - 1) is not None
    assert (mechanism.wrong_list(good[1:], len(good) - 1) is None) == mechanism.pools
    assert mechanism.list_elements(7, good) != mechanism.list_elements(8, good)


@each
def test_a_run_of_attacks_names_the_mechanism(mechanism: Mechanism) -> None:
    kind = description(mechanism.name)
    attacked = AttackedMechanism.parse({"kind": mechanism.name, **kind.parameters(mechanism)}, field="m")
    assert (
        kind.mechanism is type(mechanism) and description(attacked.kind) is kind and kind.described(attacked)
    )
    # The reference engine has neither noise with a sample nor pooled listing.
    missing = mechanism.sampled * bool(mechanism.gains) or mechanism.pools
    assert asdict(mechanism) and (kind.option(attacked) or "").startswith(mechanism.name) != missing


@each
def test_the_lab_attacks_the_mechanism_that_the_option_of_a_run_names(mechanism: Mechanism) -> None:
    kind = description(mechanism.name)
    values = AttackedMechanism.parse({"kind": mechanism.name, **kind.parameters(mechanism)}, field="m")
    if (option := kind.option(values)) is not None:
        assert parse(option, mechanism.window, 64).parameters == values


@each
def test_an_explanation_starts_with_the_words(mechanism: Mechanism) -> None:
    kind = description(mechanism.name)
    explained = kind.explained(mechanism)
    assert explained[0] == kind.words and len(explained) >= 1 + mechanism.sampled


@each
def test_a_provider_draws_and_selects(mechanism: Mechanism) -> None:
    """Draws belong to the slot alone, and a selection is a list that receipts accept."""
    provider, random = serving(mechanism), np.random.default_rng(5)
    index = TenantIndex(random.integers(-7, 8, (64, 16)).astype(np.int8), tuple(range(64)))
    columns = {name: np.ones(64, np.int8) for name in mechanism.columns}
    drawn = provider.draw(7, 64)
    assert drawn.shape == (64,) and (drawn == provider.draw(7, 64)).all()
    assert provider.draws == bool((drawn != provider.draw(8, 64)).any())
    requested = Asked(index.rows[3], drawn if provider.draws else None)
    result = provider.select(index, [requested, requested], columns)
    assert result[0] == result[1] and not isinstance(result[0], Exception)
    assert mechanism.wrong_list(result[0], len(result[0])) is None
    withheld = provider.withheld(
        index, lambda: index.rows[3], result[0], columns=columns, documents=range(64)
    )
    assert withheld <= {*result[0]} and (mechanism.withholds or not withheld)
    alone = provider.withheld(index, lambda: index.rows[3], result[0], columns=columns, documents=())
    assert alone == ({*result[0]} if mechanism.withholds else set())


@kinds
def test_an_option_chooses_the_mechanism(kind: type[Mechanism]) -> None:
    words = description(kind.name)
    assert all(form.split(":")[0] == kind.name for form in words.forms)
    chosen = words.chosen(Option(None, "", kind.name, "", 601))
    assert type(chosen) is kind and chosen.tenant.capacity == 0
    with pytest.raises(PolicyError, match="names no mechanism"):
        words.chosen(Option(None, ":x:y", f"{kind.name}:x:y", ""))
