"""The sentences, curves and parameter names that reports and commands use for a mechanism.

No verdict depends on this package, so the verifier does not import it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Protocol

from rag_audit._internal.errors import PolicyError
from rag_audit._internal.words import PLAIN, Say, marked
from rag_audit.mechanisms.accounting.values import text
from rag_audit.mechanisms.base import Limit, Mechanism
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

if TYPE_CHECKING:
    from rag_audit.mechanisms import accounting


WITHOUT_NOISE = 86
"""How many of 100 SQuAD questions find their passage among five without noise (docs/accounting.md, "Retrieval quality
under noise"; wordllama-lexical-768)."""
LITTLE = 10.0
"""The minimum epsilon of a weak bound: a test may be right exp(10) times as often as it is wrong."""
LIMITS: tuple[Limit | None, ...] = ("max_epsilon", "max_exclusion_factor", None)
"""The limits in order of precedence for the text about a whole policy."""


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
    def flip_probability(self) -> int | None: ...
    @property
    def threshold(self) -> int | None: ...


class Setting(Protocol):
    """The parameters for comparing settings of one mechanism; reals are decimal strings."""

    @property
    def sigma_over_delta(self) -> str | None: ...
    @property
    def keep(self) -> str | None: ...
    @property
    def gains(self) -> Sequence[int]: ...
    @property
    def lattice(self) -> int: ...


class TableFacts(Protocol):
    """The part of a tenant's document table that a sentence names."""

    @property
    def rows(self) -> int: ...
    @property
    def positions_per_document(self) -> int: ...


class Facts(Setting, Protocol):
    """A report's data about one tenant; reals are decimal strings, probabilities over 2^40 are integers.

    A report may come from a file, so the values are not checked before a mechanism reads them.
    """

    @property
    def eps(self) -> str | None: ...
    @property
    def exclusion_factor(self) -> str | None: ...
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
    def flip_probability(self) -> str | None: ...
    @property
    def documents(self) -> TableFacts | None: ...
    @property
    def keep_over_range(self) -> int | None: ...
    @property
    def flip_over_range(self) -> int | None: ...
    @property
    def threshold(self) -> int | None: ...


MODERATE = 10
"""The largest epsilon of moderate protection."""


@dataclass(frozen=True)
class SettingWords:
    """The names of the parameter that compares settings of a mechanism, on a page; `{}` is the placeholder of its
    value.

    :param short: the name of a measured setting in a chart
    :param plain: the same in text without Greek letters
    :param own: the setting of the policy, in a sentence
    :param note: the meaning of the parameter
    """

    short: str
    plain: str
    own: str
    note: str


@dataclass(frozen=True)
class Loss:
    """The contribution of one window to the privacy loss of a chain of windows.

    :param noise: distributions that compose, each with its number of queries
    :param epsilon: an epsilon that is added, with delta 0
    :param continues: whether a window that continues bits and listed documents of another one adds no epsilon: of all
        windows that continue one another, the largest epsilon counts
    """

    noise: tuple[tuple[accounting.Mechanism, int], ...] = ()
    epsilon: Decimal = Decimal(0)
    continues: bool = False


@dataclass(frozen=True)
class Ceiling:
    """The bound on every test by one number of accounts whether a document is in the index.

    :param points: (false-positive rate, true-positive rate), in rising order
    :param at_one_percent: the true-positive rate at a false-positive rate of 0.01
    """

    accounts: int
    points: Sequence[tuple[float, float]]
    at_one_percent: float


def percent(share: float) -> str:
    """A probability in percent with two digits; a value that only rounds to 100 % is not called certain.

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


def listed_at_random(listed: int, capacity: int, positions: int) -> float:
    """The probability that a list of K random positions of N contains one of a document's s positions.

    >>> listed_at_random(2, 8, 1), listed_at_random(2, 8, 7)
    (0.25, 1.0)

    :param listed: K
    :param capacity: N, which a report from a file may state as 0
    :param positions: s
    """
    if listed + positions > capacity:
        return 1.0
    return 1 - math.prod(1 - listed / (capacity - taken) for taken in range(positions))


def promises_little(eps: float, sizes: Sizes) -> str:
    """A warning that a coalition's finite epsilon gives little protection."""
    return f"eps {text(eps)} for {sizes.k_max} accounts promises little"


def missed_words(keep: str | None) -> str:
    """The share of passages that a sample of the index does not find, in words; empty if every position is sampled.

    >>> missed_words("0.9")
    '10 % of its passages cannot be found'

    :param keep: a decimal share
    """
    return "" if keep is None else f"{100 * (1 - float(keep)):.3g} % of its passages cannot be found"


@dataclass(frozen=True)
class Option:
    """A mechanism as the value of the option --mechanism: NAME[:KEEP[:REST]].

    :param keep: the sampled share of positions, a decimal; None if the value has none
    :param rest: the remaining text, from its colon on
    :param whole: the whole value, for errors
    :param expected: the forms of all values, for errors
    :param relevance: the minimum raw score of a relevant passage, measured on public texts; None if it is unknown
    """

    keep: str | None
    rest: str
    whole: str
    expected: str
    relevance: int | None = None

    def refused(self) -> PolicyError:
        """The error for a value that is not of its mechanism's form."""
        return PolicyError(
            "the option names no mechanism", field="--mechanism", expected=self.expected, actual=self.whole
        )

    def kept(self, default: str | None = None) -> int | None:
        """The probability in the value, over 2^40.

        :param default: the default share, a decimal; None samples every position
        :raises PolicyError: the share is not a decimal number, or rounds to 0 or 1
        """
        from rag_audit.mechanisms.accounting.curves import probability_over_range

        share = self.keep or default
        return None if share is None else probability_over_range(share, "--mechanism: KEEP")


@dataclass(frozen=True)
class Sizes:
    """A policy's numbers for comparing mechanisms.

    :param noise: the noise that the policy has, or would have
    :param eps: epsilon of this noise for the coalition of k_max accounts
    :param n: queries of an account
    :param k_max: accounts of the coalition
    :param every: m, queries of all accounts of the largest tenant
    :param capacity: the largest tenant's positions
    """

    noise: accounting.Mechanism
    eps: float
    n: int
    k_max: int
    every: int
    capacity: int


class Description(ABC):
    """The description of one mechanism. Its methods read the parameters that every mechanism has."""

    mechanism: ClassVar[type[Mechanism]]
    forms: ClassVar[tuple[str, ...]]
    """the forms of the value of `provider policy new --mechanism`"""
    words: ClassVar[str]
    """the mechanism's operation, for a line of text"""
    any_coalition: ClassVar[bool] = False
    """whether its figure is the same for any number of accounts"""
    does_not_prove: ClassVar[str | None] = None
    """a limit of the window's proofs, for the verdict"""
    changes: ClassVar[dict[str, str]] = {
        "trust.min_score_width": "policy.tenants.scores, which the embedder's dimension determines: rag-audit"
        " provider policy new --embedder, --dimension"
    }
    """by check of a trust file: the field that decides it, and the command that changes that field"""
    coalition: ClassVar[str]
    """the meaning of its figure for coalitions larger than k_max, for `provider policy new`"""
    computed: ClassVar[str] = marked(
        "An exact closed form for the random bits of the mechanism, rounded up; it is not a Gaussian approximation."
    )
    """how the curves of tests are made"""
    no_ceiling: ClassVar[str] = marked("The accountant could not compute a bound for tests.")
    """why a page has no curve of tests"""
    unbounded: ClassVar[str] = marked("no figure bounds the information that lists contain about it.")
    """the text about a returned document if no epsilon is finite"""
    settings: ClassVar[SettingWords] = SettingWords(
        marked("{} sampled"),
        marked("{} of the positions sampled"),
        marked("a sampled share of {}"),
        marked("No account can find a document outside of the sample."),
    )
    observed: ClassVar[str] = "the lists of {}"
    """what epsilon covers, with the accounts in the place of the braces"""
    meaning: ClassVar[str] = "the lists of {} change the odds of a document's presence by at most {}"
    """the meaning of epsilon, with the accounts and the factor in the places of the braces"""
    texts_reveal: ClassVar[bool] = False
    """whether a report states that returning a document reveals its presence in the index"""

    @classmethod
    @abstractmethod
    def chosen(cls, option: Option) -> Mechanism:
        """The mechanism that a value of the option --mechanism names, not yet `placed`.

        :raises PolicyError: the value is of another form, or a parameter is out of range
        """

    @classmethod
    @abstractmethod
    def compared(cls, sizes: Sizes) -> list[str]:
        """The mechanism's guarantee and cost at a policy's sizes, a line for each of the option's usual values."""

    @classmethod
    def warnings(cls, mechanism: Mechanism, sizes: Sizes) -> list[str]:
        """Warnings to a provider about a tenant's mechanism: little retrieval quality, or a weak guarantee."""
        return []

    @classmethod
    def largest(cls, mechanism: Mechanism, accounts: int, queries: int) -> str | None:
        """The largest coalition, or the most questions, with an epsilon of at most 10; None if no count bounds it.

        :param accounts: the maximum accounts of the tenant, with a number of queries each
        """
        return None

    @classmethod
    def epsilon_at(cls, mechanism: Mechanism, accounts: int, queries: int, delta: str) -> float:
        """Epsilon for accounts with a number of queries each, by the exact accountant.

        :raises PolicyError: the accountant refuses a parameter
        """
        return math.inf

    @classmethod
    def loss(cls, mechanism: Mechanism, accounts: int, queries: int) -> Loss | None:
        """The contribution of one window to the loss over several windows; None if no epsilon bounds every outcome."""
        return None

    @classmethod
    def figures_depend_on(cls, mechanism: Mechanism, accounts: int, queries: int) -> int:
        """The number that determines `certified`, so that equal settings are computed once."""
        return 0

    @classmethod
    def certified(
        cls, mechanism: Mechanism, accounts: int, queries: int, delta: str | None
    ) -> tuple[float, float | None]:
        """Epsilon, and the maximum area under the curve of every membership test, for accounts with queries each.

        :param delta: None where the caller asks for no epsilon that needs one
        """
        return math.inf, None

    @classmethod
    def ceiling(
        cls, mechanism: Mechanism, accounts: int, queries: int, rates: Sequence[float]
    ) -> Ceiling | None:
        """The bound on every membership test by accounts with a number of queries each; None without a bound.

        :param rates: false-positive rates for computing a curve without closed form; 0.01 is one of them
        :raises PolicyError: the accountant refuses a parameter
        """
        return None

    @classmethod
    def parameters(cls, mechanism: Mechanism) -> Mapping[str, int | list[int] | None]:
        """The parameters under the names of `Parameters` that a run of attacks writes."""
        return {"keep": mechanism.keep}

    @classmethod
    @abstractmethod
    def described(cls, values: Parameters) -> str:
        """The mechanism with its parameters in words."""

    @classmethod
    @abstractmethod
    def option(cls, values: Parameters) -> str | None:
        """The value of `lab attack run --mechanism`; None where the reference engine lacks the mechanism."""

    @classmethod
    def explained(cls, mechanism: Mechanism) -> list[str]:
        """The mechanism's operation, guarantee and cost, as parts of a sentence for `provider policy new`."""
        return [cls.words, *cls._sampling_words(mechanism)]

    @classmethod
    def for_users(cls, mechanism: Mechanism, accounts: int, queries: int) -> list[str]:
        """Sentences for the persons whose documents are in the index, and for the persons who ask.

        :param accounts: the maximum accounts of the tenant, with a number of queries each
        """
        return ["No figure bounds what the answers reveal about a document."]

    @classmethod
    def _sampling_words(cls, mechanism: Mechanism) -> list[str]:
        if mechanism.keep is None:
            return []
        kept = mechanism.keep / PROBABILITY_RANGE
        unit = "position" if mechanism.table is None else "document"
        span = "chain of windows" if mechanism.persists else "window"
        return [
            f"the sample contains each {unit} with probability {kept:.4g} for the whole {span}, and other {unit}s"
            f" score 0, so an answer misses about {percent(1 - kept)} of its passages"
        ]

    @classmethod
    def _exact_words(cls, mechanism: Mechanism) -> list[str]:
        s = mechanism.scores
        return [f"scores are clamped to {s.lo}..{s.hi}, mapped to {s.lattice} steps and ranked exactly"]

    @classmethod
    def covered(cls, windows: Mapping[str, Sequence[tuple[Mechanism, int]]]) -> str | None:
        """A sentence on the probability that one account receives a given document whatever it asks; None without one.

        :param windows: by tenant, the mechanism of each window and the queries of one account
        """
        return None

    @classmethod
    def setting(cls, values: Setting) -> str | None:
        """The parameter for comparing settings of this mechanism."""
        return values.keep

    @classmethod
    def place(cls, values: Setting, *, accounts: int, queries: int, delta: str, positions: int = 1) -> float:
        """The place of a measured setting on the axis of a chart: its epsilon, or its sampled share.

        :param accounts: the size of the coalition of the window, with a number of queries each
        :param positions: the maximum number of positions of a document
        :raises PolicyError: the accountant refuses a parameter
        """
        return float(values.keep or 0)

    @classmethod
    def details(cls, facts: Facts, say: Say = PLAIN) -> str:
        """The parameters of the mechanism that follow its words in a list of evidence.

        :param say: the language
        """
        if facts.keep is None:
            return ""
        share = say.number(share_text(float(facts.keep)))
        if facts.documents is None:
            return say.text(", %(share)s of positions sampled", share=share)
        return say.text(", %(share)s of documents sampled", share=share)

    @classmethod
    def returned(cls, facts: Facts) -> str:
        """The condition under which an account that asks for a document receives its text."""
        if facts.keep is None:
            return "the text of a document that is listed is returned"
        return (
            "a document among the best matches is returned with its text if its random bit permits"
            f" ({100 * float(facts.keep):.3g} in 100)"
        )

    @classmethod
    @abstractmethod
    def cost(cls, facts: Facts) -> str:
        """The mechanism's cost for the users who ask."""

    @classmethod
    def no_epsilon(cls, facts: Facts, say: Say = PLAIN) -> str:
        """Why a page has no epsilon.

        :param say: the language
        """
        return say.text("There is no epsilon: the accountant finds no finite bound for this policy.")

    @classmethod
    def from_facts(cls, facts: Facts) -> Mechanism:
        """The mechanism that a report states.

        :raises PolicyError: the report's values are no mechanism
        """
        raise PolicyError(
            "the report has no parameters of this mechanism", field="mechanism", actual=cls.mechanism.name
        )
