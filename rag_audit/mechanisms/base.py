"""The interface of a mechanism: what keeps the answers of one tenant private.

A mechanism is one object with the parameters that the policy gives it. The rest of the package asks the object and
never its name: which positions an answer lists, what the circuits take as constants, which columns a window commits to,
what the accountant bounds, and the sentences that a reader gets. `rag_audit.mechanisms` has the registry.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, Self, TypeAlias

from rag_audit._internal.errors import PolicyError
from rag_audit.relation.coins import COIN_RANGE
from rag_audit.relation.native import topk_commitment
from rag_audit.relation.scores import MAX_LATTICE, ScoreWindow

if TYPE_CHECKING:
    # The accountant imports numpy, which accounts and witnesses do not need for reading a policy.
    from rag_audit.mechanisms import accounting
    from rag_audit.mechanisms.accounting.coins import Sampling as SampleBound

MechanismName: TypeAlias = Literal["noise", "sampling", "listing", "none"]
"""The name of a mechanism in verdicts, reports and trust files."""
Limit: TypeAlias = Literal["max_epsilon", "max_odds_unlisted"]
"""A limit of a trust file on the figure that a mechanism promises."""
LIMITS: tuple[Limit | None, ...] = ("max_epsilon", "max_odds_unlisted", None)
"""The limits in the order in which one decides what is said of a whole policy."""


class ScoreFields(Protocol):
    """The score window as a policy writes it, before it is checked."""

    @property
    def lo(self) -> int: ...
    @property
    def hi(self) -> int: ...
    @property
    def lattice(self) -> int: ...


class NoiseFields(ScoreFields, Protocol):
    """The policy's noise, which all tenants with noise share."""

    @property
    def gains(self) -> list[int]: ...


class TenantFields(Protocol):
    """The fields of a tenant's part of a policy that name its mechanism (docs/protocol.md, "Mechanisms")."""

    @property
    def tenant(self) -> str: ...
    @property
    def capacity(self) -> int: ...
    @property
    def accounts_max(self) -> int: ...
    @property
    def mechanism(self) -> str: ...
    @property
    def noise(self) -> bool: ...
    @property
    def scores(self) -> ScoreFields | None: ...
    @property
    def keep(self) -> int | None: ...
    @property
    def chance(self) -> int | None: ...
    @property
    def listed_max(self) -> int | None: ...
    @property
    def threshold(self) -> int | None: ...


class Parameters(Protocol):
    """A mechanism's parameters without its tenant, as a run of attacks writes them."""

    @property
    def gains(self) -> Sequence[int]: ...
    @property
    def lattice(self) -> int | None: ...
    @property
    def lo(self) -> int | None: ...
    @property
    def hi(self) -> int | None: ...
    @property
    def keep(self) -> int | None: ...
    @property
    def chance(self) -> int | None: ...
    @property
    def threshold(self) -> int | None: ...
    @property
    def listed_max(self) -> int | None: ...


class Setting(Protocol):
    """The parameters by which settings of one mechanism are compared; reals are decimal strings."""

    @property
    def sigma_over_delta(self) -> str | None: ...
    @property
    def keep(self) -> str | None: ...
    @property
    def gains(self) -> Sequence[int]: ...
    @property
    def lattice(self) -> int: ...


class Facts(Setting, Protocol):
    """What a report states about one tenant; reals are decimal strings, probabilities over 2^40 are integers.

    A report may come from a file, so the values are not checked before a mechanism reads them.
    """

    @property
    def eps(self) -> str | None: ...
    @property
    def odds_unlisted(self) -> str | None: ...
    @property
    def capacity(self) -> int: ...
    @property
    def accounts_max(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def score_lo(self) -> int: ...
    @property
    def score_hi(self) -> int: ...
    @property
    def chance(self) -> str | None: ...
    @property
    def keep_coin(self) -> int | None: ...
    @property
    def chance_coin(self) -> int | None: ...
    @property
    def threshold(self) -> int | None: ...


@dataclass(frozen=True)
class Scores:
    """A score window that is checked where it is used (`window`).

    :param lo: lower end, in raw units
    :param hi: upper end, in raw units
    :param lattice: R, the steps between them
    """

    lo: int
    hi: int
    lattice: int

    @classmethod
    def of(cls, fields: ScoreFields) -> Scores:
        """The window that a policy writes."""
        return cls(fields.lo, fields.hi, fields.lattice)

    @property
    def window(self) -> ScoreWindow:
        """The map from raw scores to lattice scores.

        :raises PolicyError: the score window is not well-formed
        """
        return ScoreWindow(self.lo, self.hi, self.lattice)


@dataclass(frozen=True)
class SettingWords:
    """How a page names the parameter by which settings of a mechanism are compared; `{}` stands for its value.

    :param short: the name of a measured setting in a chart
    :param plain: the same in text without Greek letters
    :param own: the setting of the policy, in a sentence
    :param note: what the parameter means
    """

    short: str
    plain: str
    own: str
    note: str


@dataclass(frozen=True)
class Tenant:
    """The public numbers of a tenant that a mechanism reads.

    :param capacity: N, the committed positions
    :param top_k: K of the policy
    :param accounts_max: the maximum number of accounts
    """

    capacity: int
    top_k: int
    accounts_max: int = 1


@dataclass(frozen=True)
class Loss:
    """What one window adds to the privacy loss of a chain of windows.

    :param noise: distributions that compose, each with its number of queries
    :param epsilon: an epsilon that is added, with delta 0
    """

    noise: tuple[tuple[accounting.Mechanism, int], ...] = ()
    epsilon: Decimal = Decimal(0)


@dataclass(frozen=True)
class Ceiling:
    """The bound on every test by one number of accounts whether a document is in the index.

    :param points: (false-positive rate, true-positive rate), in rising order
    :param at_one_percent: the true-positive rate at a false-positive rate of 0.01
    """

    accounts: int
    points: Sequence[tuple[float, float]]
    at_one_percent: float


@dataclass(frozen=True)
class Mechanism(ABC):
    """The mechanism of one tenant.

    Every mechanism has every attribute below; one that a mechanism does not use has its neutral value.

    :param tenant: the tenant's public numbers
    :param scores: the score window
    :param keep: Pi: each position is kept for the window with probability Pi / 2^40; None keeps every position
    """

    tenant: Tenant
    scores: Scores
    keep: int | None = None

    name: ClassVar[MechanismName]
    words: ClassVar[str]
    """what the mechanism does, for a line of text"""
    protects: ClassVar[bool] = True
    """whether it hides anything: a window with a tenant without protection proves integrity alone"""
    form: ClassVar[str] = "top-k"
    """the field `mechanism` of a tenant's part of a policy"""
    limit: ClassVar[Limit | None] = None
    """the limit of a trust file that its figure is held against"""
    grows_by_account: ClassVar[bool] = False
    """whether its epsilon grows with the accounts of a coalition and not with their queries"""
    uses_delta: ClassVar[bool] = False
    """whether its epsilon holds except with probability delta"""
    ranked: ClassVar[bool] = True
    """whether an answer lists exactly K positions in the order of their scores; else an ascending set of positions"""
    withholds_by_score: ClassVar[bool] = False
    """whether an answer leaves out the text of a position of score 0, or of one that is not kept"""
    any_coalition: ClassVar[bool] = False
    """whether its figure is the same for any number of accounts"""
    remembers: ClassVar[bool] = False
    """whether an answer depends on the account's earlier answers: each record commits to what its account holds"""
    own_fields: ClassVar[tuple[str, ...]] = ()
    """fields of a tenant's part of a policy that are null for every other mechanism"""
    does_not_prove: ClassVar[str | None] = None
    """what a verdict says that the window does not prove"""
    changes: ClassVar[dict[str, str]] = {
        "trust.min_score_width": "policy.tenants.scores, which the embedder's dimension fixes: policy new --embedder,"
        " --dimension"
    }
    """by check of a trust file: the field that decides it, and what changes that field"""
    coalition: ClassVar[str]
    """what its figure says of coalitions larger than k_max, for `policy explain`"""
    computed: ClassVar[str] = (
        "A closed form of the mechanism's coins, exact and rounded up; it is no Gaussian approximation."
    )
    """how the curves of tests are made"""
    no_ceiling: ClassVar[str] = "No ceiling could be computed."
    """why a page has no curve of tests"""
    unbounded: ClassVar[str] = "nothing bounds what lists show of it."
    """what is said of a document that was handed out where no epsilon is finite"""
    settings: ClassVar[SettingWords] = SettingWords(
        "{} kept",
        "{} of the positions kept",
        "a share kept of {}",
        "A document that is not in the sample is found by nobody.",
    )
    texts_reveal: ClassVar[bool] = False
    """whether a report says that a document that was handed out is known to be in the index"""

    # -- from a policy ---------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        """Whether a tenant's part of a policy names this mechanism."""

    @classmethod
    @abstractmethod
    def read(cls, part: TenantFields, noise: NoiseFields | None, tenant: Tenant, keep: int | None) -> Self:
        """The mechanism of a tenant's part of a policy.

        :param noise: the policy's noise
        :param keep: the checked probability `part.keep`
        :raises PolicyError: the tenant's fields contradict one another, or are out of range; the field is named
        """

    def limits(self, components: int) -> list[tuple[bool, str, str, object]]:
        """The limits that formats and the embedder set: whether one is kept, its field, what is expected and found.

        :param components: dimension of the embedder's vectors
        """
        return []

    @property
    def own_scores(self) -> Scores | None:
        """The score window that the tenant's part of a policy states; None where another field decides it."""
        return self.scores

    def fields(self) -> dict[str, object]:
        """The fields of a tenant's part of a policy that name this mechanism; `read` is the inverse."""
        own = self.own_scores
        return {
            "mechanism": self.form,
            "noise": bool(self.gains),
            "scores": None if own is None else {"lo": own.lo, "hi": own.hi, "lattice": own.lattice},
            "keep": self.keep,
            "chance": self.chance,
            "listed_max": None if self.ranked else self.longest,
            "threshold": self.threshold,
        }

    # -- circuit constants, committed columns and lists ------------------------------------------------------

    @property
    def gains(self) -> tuple[int, ...]:
        """The gains of the noise on every score; empty without noise."""
        return ()

    @property
    def chance(self) -> int | None:
        """Q: a position is listed at a query with probability Q / 2^40, whatever it holds; None without such coins."""
        return None

    @property
    def threshold(self) -> int | None:
        """The raw score from which a position is relevant; None where scores are ranked."""
        return None

    @property
    def sampled(self) -> bool:
        """Whether the window commits to a column of kept positions."""
        return self.keep is not None

    @property
    def longest(self) -> int:
        """The largest number of positions in one answer."""
        return self.tenant.top_k

    @property
    def window(self) -> ScoreWindow:
        """The map from raw scores to lattice scores.

        :raises PolicyError: the score window is not well-formed
        """
        return self.scores.window

    def list_commitment(self, salt: int, positions: Sequence[int]) -> int:
        """The commitment `htopk` of a record to its positions, as a field element."""
        return topk_commitment(salt, positions)

    def wrong_list(self, positions: Sequence[int], documents: int) -> str | None:
        """What is wrong with the positions of a receipt, in words; None where nothing is.

        :param documents: the number of document openings
        """
        if len(positions) != documents or len(positions) != self.longest:
            return f"{len(positions)} positions and {documents} document openings, where K = {self.longest}"
        return None

    # -- privacy figures -------------------------------------------------------------------------------------

    @property
    def sample(self) -> SampleBound | None:
        """The closed forms of the sample; None where every position is kept."""
        return None

    def epsilon(self, accounts: int, noise: str | None) -> float:
        """Epsilon over all outcomes of a window for a number of accounts; infinite where there is none.

        :param noise: that of the policy's noise for as many accounts
        """
        return math.inf

    def epsilon_at(self, accounts: int, queries: int, delta: str) -> float:
        """Epsilon for accounts with a number of queries each, by the exact accountant.

        :raises PolicyError: the accountant refuses a parameter
        """
        return math.inf

    def realised(self, asked: Sequence[int], *, n: int, k: int, delta: str) -> float:
        """Epsilon for the queries that accounts did ask; infinite where there is none.

        :param asked: queries of each account of the tenant that asked
        """
        return math.inf

    def loss(self, accounts: int, queries: int) -> Loss | None:
        """What one window adds to the loss over several windows; None where no epsilon bounds every outcome."""
        return None

    def odds_unlisted(self, queries: int, positions: int = 1) -> float | None:
        """See `accounting.coins.Sampling.odds_unlisted`; None where every position is kept."""
        return None if self.sample is None else self.sample.odds_unlisted(queries, positions)

    def chance_alone(self, queries: int) -> float | None:
        """See `accounting.coins.Listing.chance_alone`; None where nothing is listed by chance."""
        return None

    def figures_depend_on(self, accounts: int, queries: int) -> int:
        """The number on which `certified` depends, so that equal settings are computed once."""
        return 0

    def certified(self, accounts: int, queries: int, delta: str | None) -> tuple[float, float | None]:
        """Epsilon, and the maximum area under the curve of every membership test, for accounts with queries each.

        :param delta: None where the caller asks for no epsilon that needs one
        """
        return math.inf, None

    def ceiling(self, accounts: int, queries: int, rates: Sequence[float]) -> Ceiling | None:
        """The bound on every membership test by accounts with a number of queries each; None without a bound.

        :param rates: false-positive rates at which a curve without closed form is computed; 0.01 is one of them
        :raises PolicyError: the accountant refuses a parameter
        """
        return None

    # -- a run of attacks ------------------------------------------------------------------------------------

    def parameters(self) -> Mapping[str, int | list[int] | None]:
        """The parameters under the names of `Parameters` that a run of attacks writes."""
        return {"keep": self.keep}

    @classmethod
    @abstractmethod
    def described(cls, values: Parameters) -> str:
        """The mechanism with its parameters in words."""

    @classmethod
    @abstractmethod
    def option(cls, values: Parameters) -> str | None:
        """The value of `attack run --mechanism`; None where the reference engine lacks the mechanism."""

    # -- sentences -------------------------------------------------------------------------------------------

    def explained(self) -> list[str]:
        """What the mechanism does, promises and costs, as parts of a sentence for `policy explain`."""
        return [self.words, *self._sampling_words()]

    def _sampling_words(self) -> list[str]:
        if self.keep is None:
            return []
        kept = self.keep / COIN_RANGE
        return [
            f"each position is kept for the whole window with probability {kept:.4g} and scores 0"
            f" otherwise, so an answer misses about {percent(1 - kept)} of what it would find"
        ]

    def _exact_words(self) -> list[str]:
        s = self.scores
        return [f"scores are cut to {s.lo}..{s.hi} in {s.lattice} steps and ranked exactly"]

    @classmethod
    def covered(cls, windows: Mapping[str, Sequence[tuple[Mechanism, int]]]) -> str | None:
        """A sentence on how likely one account is handed a given document whatever it asks; None without one.

        :param windows: by tenant, the mechanism of each window and the queries of one account
        """
        return None

    @classmethod
    def setting(cls, values: Setting) -> str | None:
        """The parameter by which settings of this mechanism are compared."""
        return values.keep

    @classmethod
    def place(cls, values: Setting, chance: str, *, accounts: int, queries: int, delta: str) -> float:
        """Where a measured setting stands on the axis of a chart: its epsilon, or the share that it keeps.

        :param chance: the probability with which the measurement listed a position whatever it holds, a decimal
        :param accounts: the size of the coalition of the window, with a number of queries each
        :raises PolicyError: the accountant refuses a parameter
        """
        return float(values.keep or 0)

    @classmethod
    def details(cls, facts: Facts) -> str:
        """The parameters of the mechanism that follow its words in a list of evidence."""
        return ""

    @classmethod
    def without_epsilon(cls, facts: Facts) -> str | None:
        """What bounds answers where no epsilon does, in words; None where nothing does."""
        return None

    @classmethod
    @abstractmethod
    def cost(cls, facts: Facts) -> str:
        """What the mechanism costs those who ask."""

    @classmethod
    def no_epsilon(cls, facts: Facts) -> str:
        """Why a page has no epsilon."""
        return "There is no epsilon: at this policy the accountant gives no finite bound."

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        """The mechanism that a report states.

        :raises PolicyError: the report's values are no mechanism
        """
        raise PolicyError("the report has no parameters of this mechanism", field="mechanism", found=cls.name)


def percent(share: float) -> str:
    """A probability in percent with two digits; one that only rounds to 100 % is not called certain.

    >>> percent(0.3), percent(0.999)
    ('30 %', 'nearly 100 %')

    :param share: in 0..1
    """
    if 0.995 <= share < 1:
        return "nearly 100 %"
    return "100 %" if share >= 1 else f"{100 * share:.2g} %"


def share_text(value: float) -> str:
    """A share in per cent with up to three digits.

    >>> share_text(0.9)
    '90 %'
    """
    return f"{100 * value:.3g} %"


def missed_words(keep: str | None) -> str:
    """The share of passages that a sample of the index does not find, in words; empty where every position is kept.

    :param keep: a decimal share
    """
    return "" if keep is None else f"{100 * (1 - float(keep)):.3g} % of its passages cannot be found"


def need(ok: bool, part: TenantFields, field: str, expected: str, found: object) -> None:
    """Refuse a tenant's part of a policy unless a condition holds.

    :raises PolicyError: the condition does not hold
    """
    if not ok:
        raise PolicyError("the tenant's mechanism is not well-formed",
                          field=f"policy.tenants.{part.tenant}.{field}", expected=expected, found=found)  # fmt: skip


def exact_scores(part: TenantFields) -> Scores:
    """The score window of a tenant that ranks without noise.

    :raises PolicyError: the window is missing or too coarse
    """
    fields = part.scores
    need(fields is not None, part, "scores", "a score window, since the tenant has no noise", fields)
    assert fields is not None
    lo, hi, lattice = fields.lo, fields.hi, fields.lattice
    need(lo < hi, part, "scores.hi", f"greater than lo, {lo}", hi)
    # Without noise a coarse lattice only makes ties, which favour low positions whatever is asked.
    fine = hi - lo <= lattice <= MAX_LATTICE and lattice & (lattice - 1) == 0
    expected = f"a power of two from {hi - lo}, the width, up to {MAX_LATTICE}"
    need(fine, part, "scores.lattice", expected, lattice)
    return Scores(lo, hi, lattice)
