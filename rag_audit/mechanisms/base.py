"""The interface of a mechanism: the method that protects the answers of one tenant.

A mechanism is one object with the parameters that the policy gives it. The rest of the package asks the object and
never its name: the listed positions, the constants of the circuits, the columns that a window commits to, and the
accountant's bounds. `rag_audit.mechanisms` has the registry, and `descriptions` the sentences of reports.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, Self, TypeAlias

from rag_audit._internal.errors import PolicyError
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.native import Elements, topk_elements
from rag_audit.relation.scores import MAX_LATTICE, ScoreWindow

if TYPE_CHECKING:
    # The accountant imports numpy, which accounts and witnesses do not need for reading a policy.
    from rag_audit.mechanisms.accounting.bernoulli import Sampling as SampleBound

SAMPLE = "sample"
"""The column of a window's sampled positions."""
MechanismName: TypeAlias = Literal["noise", "sampling", "pooled-listing", "none"]
"""The name of a mechanism in verdicts, reports and trust files."""
Limit: TypeAlias = Literal["max_epsilon", "max_exclusion_factor"]
"""A limit of a trust file on the figure that a mechanism promises."""


Own: TypeAlias = Mapping[str, int | None]
"""The values of the fields that belong to one mechanism (`Mechanism.own_fields`)."""


ChainConstants: TypeAlias = Mapping[str, int | str | None]
"""The settings that all windows of a chain of document tables share (`Policy.chain_constants`)."""
MAX_ROWS = 1 << 20
"""The maximum number of rows of a document table."""


@dataclass(frozen=True)
class TableShape:
    """The public numbers of a tenant's document table, which are constant in a chain of windows.

    :param rows: the number of rows D; `rows - fresh_rows` documents have room
    :param positions_per_document: the maximum number of positions of a document, s
    :param fresh_rows: the number of rows that each window after the first replaces; None if each window draws the bits
        of all rows, so that no table depends on an earlier one
    """

    rows: int
    positions_per_document: int
    fresh_rows: int | None

    def check(self, capacity: int, *, field: str) -> None:
        """Return if every number fits an index.

        :param capacity: N, the positions of the index
        :param field: the table's place, for the error
        :raises PolicyError: a number is outside its range
        """
        for name, value, maximum in (
            ("rows", self.rows, min(MAX_ROWS, capacity)),
            ("positions_per_document", self.positions_per_document, capacity),
        ):
            if not 1 <= value <= maximum:
                raise PolicyError("a number of the document table is out of range", field=f"{field}.{name}",
                                  expected=f"1 to {maximum}", actual=value)  # fmt: skip
        if self.fresh_rows is not None and self.rows == 1:
            raise PolicyError("a table with persistent bits has too few rows", field=f"{field}.rows",
                              expected="at least 2: one for a document, and one that a later window replaces",
                              actual=1, hint="add rows, or draw the bits of all rows in each window"
                              " (--fresh-bits)")  # fmt: skip
        if self.fresh_rows is not None and not 1 <= self.fresh_rows < self.rows:
            raise PolicyError("a number of the document table is out of range", field=f"{field}.fresh_rows",
                              expected=f"1 to {self.rows - 1}: as many rows stay empty as a window replaces, and"
                              " a window needs room for one document", actual=self.fresh_rows)  # fmt: skip

    @property
    def documents(self) -> int:
        """The maximum number of documents in a window: as many rows stay empty as the next window replaces."""
        return self.rows - (self.fresh_rows or 0)

    @property
    def persistent(self) -> bool:
        """Whether documents keep their bits from window to window."""
        return self.fresh_rows is not None

    def drawn(self, *, first: bool) -> int:
        """The number of rows whose bits a window draws.

        :param first: whether the window has no table before
        """
        return self.rows if first or self.fresh_rows is None else self.fresh_rows


class TableFields(Protocol):
    """The document table as a policy writes it, before it is checked."""

    @property
    def rows(self) -> int: ...
    @property
    def positions_per_document(self) -> int: ...
    @property
    def fresh_rows(self) -> int | None: ...


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
    def documents(self) -> TableFields | None: ...


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
class Tenant:
    """The public numbers of a tenant that a mechanism reads.

    :param capacity: N, the committed positions
    :param top_k: K of the policy
    :param accounts_max: the maximum number of accounts
    :param queries: n, the maximum number of queries of an account
    """

    capacity: int
    top_k: int
    accounts_max: int = 1
    queries: int = 1


@dataclass(frozen=True)
class Mechanism(ABC):
    """The mechanism of one tenant.

    Every mechanism has every attribute below; an unused attribute has its neutral value.

    :param tenant: the tenant's public numbers; all 0 if a draft names a mechanism, until `placed`
    :param scores: the score window
    :param keep: Pi: each position, or each row of the document table, is sampled with probability Pi / 2^40; None
        samples every position
    """

    tenant: Tenant = Tenant(capacity=0, top_k=0)
    scores: Scores = Scores(0, 0, 0)
    keep: int | None = None

    name: ClassVar[MechanismName]
    protects: ClassVar[bool] = True
    """whether it gives any protection: a window with a tenant without protection proves only integrity"""
    form: ClassVar[str] = "top-k"
    """the field `mechanism` of a tenant's part of a policy"""
    limit: ClassVar[Limit | None] = None
    """the limit of a trust file that applies to its figure"""
    limits_absence: ClassVar[bool] = False
    """whether `max_exclusion_factor` of a trust file applies to it, as its figure or in addition"""
    noised: ClassVar[bool] = False
    """whether scores get the policy's noise"""
    uses_delta: ClassVar[bool] = False
    """whether its epsilon is valid except with probability delta"""
    withholds_by_score: ClassVar[bool] = False
    """whether an answer omits the text of a position of score 0, or of an unsampled position"""
    pools: ClassVar[bool] = False
    """whether all accounts of the tenant share one set of listed rows: each record commits to the set after it"""
    own_fields: ClassVar[tuple[str, ...]] = ()
    """fields of a tenant's part of a policy that are null for a mechanism that does not name them here"""
    takes_table: ClassVar[bool] = False
    """whether a policy may give it a document table"""
    own_columns: ClassVar[tuple[str, ...]] = ()
    """columns of only this mechanism that the window commits to (`columns`)"""

    # -- from a policy ---------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def is_named_by(cls, part: TenantFields) -> bool:
        """Whether a tenant's part of a policy names this mechanism."""

    @classmethod
    @abstractmethod
    def read(
        cls, part: TenantFields, own: Own, noise: NoiseFields | None, tenant: Tenant, keep: int | None
    ) -> Self:
        """The mechanism of a tenant's part of a policy.

        :param own: the values of `own_fields`
        :param noise: the policy's noise
        :param keep: the checked probability `part.keep`
        :raises PolicyError: the tenant's fields contradict one another, or are out of range; the error names the field
        """

    def placed(self, tenant: Tenant, *, gains: tuple[int, ...], noised: Scores, exact: Scores) -> Self:
        """The same mechanism in a new policy, with the numbers of its tenant.

        :param gains: the gains of the policy's noise
        :param noised: the score window of the policy's noise
        :param exact: the score window of a tenant without noise
        """
        return replace(self, tenant=tenant, scores=exact)

    requires_table: ClassVar[bool] = False
    """whether the mechanism needs a document table"""

    def by_document(self, table: TableShape) -> Mechanism | None:
        """The same mechanism with a document table; None if it has none."""
        return None

    def limits(self, components: int) -> list[tuple[bool, str, str, object]]:
        """The limits of formats and embedder: for each, whether it is met, its field, the expected and the actual
        value.

        :param components: dimension of the embedder's vectors
        """
        return []

    @property
    def own_scores(self) -> Scores | None:
        """The score window that the tenant's part of a policy states; None if another field determines it."""
        return self.scores

    def fields(self) -> dict[str, object]:
        """The fields of a tenant's part of a policy that name this mechanism; `read` is the inverse."""
        own = self.own_scores
        return {
            "mechanism": self.form,
            "noise": self.noised,
            "scores": None if own is None else {"lo": own.lo, "hi": own.hi, "lattice": own.lattice},
            "keep": self.keep,
            "flip_probability": self.flip_probability,
            "threshold": self.threshold,
            "documents": None if self.table is None else asdict(self.table),
        }

    # -- circuit constants, committed columns and lists ------------------------------------------------------

    @property
    def gains(self) -> tuple[int, ...]:
        """The gains of the noise on every score; empty without noise."""
        return ()

    @property
    def flip_probability(self) -> int | None:
        """Q: a position is listed at a query with probability Q / 2^40, whatever its content; None without such
        draws."""
        return None

    @property
    def table(self) -> TableShape | None:
        """The shape of the document table; None if every position is a document of its own."""
        return None

    @property
    def documents_max(self) -> int:
        """The maximum number of documents that answers can return: rows of the document table with room for one, or
        positions. A position without a row scores 0. Noise lists such a position too, and no proof shows that it has
        no text, so noise counts positions."""
        return self.tenant.capacity if self.table is None or self.noised else self.table.documents

    @property
    def threshold(self) -> int | None:
        """The minimum raw score of a relevant position; None if scores are ranked."""
        return None

    @property
    def sampled(self) -> bool:
        """Whether the window samples positions or documents, so that answers miss the others."""
        return self.keep is not None

    @property
    def withholds(self) -> bool:
        """Whether an answer may list a position without its text."""
        return self.sampled

    @property
    def sampled_share(self) -> int:
        """The probability that a window samples a position, over 2^40."""
        return PROBABILITY_RANGE if self.keep is None else self.keep

    @property
    def sample_bound(self) -> int:
        """The bound of the proof of the sample: a draw below it samples a position, or a row of the document table. A
        table without `keep` has the largest bound, so that it lacks a document with probability 2^-40."""
        return min(self.sampled_share, PROBABILITY_RANGE - 1)

    @property
    def positions_per_document(self) -> int:
        """The maximum number of positions of a document to which the figures apply."""
        return 1 if self.table is None else self.table.positions_per_document

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the window commits to once for the tenant, in addition to its index.

        A column's name is the name of its proved statement (`proofs.statements.COLUMNS`), the type of its ledger entry,
        and its key among the policy's circuits and the window file's proofs.
        """
        return (*((SAMPLE,) if self.sampled or self.table is not None else ()), *self.own_columns)

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

    @property
    def upper_end(self) -> int:
        """The raw score from which a higher score changes nothing: the threshold, or the score window's upper end."""
        return self.scores.hi if self.threshold is None else self.threshold

    def width(self, highest: int | None) -> int:
        """The width in raw units of the part of the score window that scores reach.

        :param highest: the highest score that an embedder gives; None if it is unknown
        """
        return (self.scores.hi if highest is None else min(self.scores.hi, highest)) - self.scores.lo

    def list_elements(self, salt: int, positions: Sequence[int]) -> Elements:
        """The elements of the hash `htopk`, a record's commitment to its positions."""
        return topk_elements(salt, positions)

    def padded(self, positions: Sequence[int]) -> Sequence[int]:
        """The entries of `htopk` after its salt and length: the positions, with the capacity N for each empty place."""
        return positions

    def wrong_list(self, positions: Sequence[int], documents: int) -> str | None:
        """The fault in the positions of a receipt, in words; None if there is none.

        :param documents: the number of document openings
        """
        if len(positions) != documents or len(positions) != self.longest:
            return f"{len(positions)} positions and {documents} document openings, where K = {self.longest}"
        return None

    # -- privacy figures -------------------------------------------------------------------------------------

    @property
    def sample(self) -> SampleBound | None:
        """The closed forms of the sample; None if every position is sampled."""
        return None

    def epsilon(self, accounts: int, noise: str | None) -> float:
        """Epsilon over all outcomes of a window for a number of accounts; infinite if there is none.

        :param noise: the epsilon of the policy's noise for the same number of accounts
        """
        return math.inf

    def realised(self, requested: Sequence[int], *, n: int, k: int, delta: str) -> float:
        """Epsilon for the actual queries of the accounts; infinite if there is none.

        :param requested: queries of each account of the tenant that asked
        """
        return math.inf

    def exclusion_factor(self, queries: int, positions: int = 1) -> float | None:
        """See `accounting.bernoulli.Sampling.exclusion_factor`; None if every position is sampled."""
        return None if self.sample is None else self.sample.exclusion_factor(queries, positions)

    def over(self, windows: int) -> Self:
        """The mechanism with figures for several windows of a chain, of which this one is the last, if listed
        documents stay listed; otherwise the mechanism itself.

        :param windows: number of windows, this one included
        """
        return self

    @property
    def chain_constants(self) -> ChainConstants:
        """The numbers that all windows of a chain of document tables share, by their names in messages."""
        own = {"mechanism": self.name, "capacity": self.tenant.capacity, "keep": self.keep}
        return {**own, **self.own_chain_constants, **({} if self.table is None else asdict(self.table))}

    @property
    def own_chain_constants(self) -> ChainConstants:
        """The part of `chain_constants` that only this mechanism has."""
        return {}

    @property
    def persists(self) -> bool:
        """Whether documents have a table and keep their bits in later windows."""
        return self.table is not None and self.table.persistent

    @property
    def carries_listed_rows(self) -> bool:
        """Whether a listed document stays listed in later windows, which then have one epsilon together."""
        return self.pools and self.persists

    def chance_queries(self, queries: int) -> int:
        """Maximum number of queries at which random bits may have listed a document for accounts with so many queries
        together.
        """
        return queries

    def list_without_relevance(self, queries: int) -> float | None:
        """See `accounting.bernoulli.ChanceListing.list_without_relevance`; None if chance lists no position."""
        return None


def constants_text(constants: ChainConstants) -> str:
    """The constants of a chain in words.

    >>> constants_text({"mechanism": "sampling", "capacity": 64, "fresh_rows": 8})
    'mechanism sampling, capacity 64, fresh_rows 8'
    """
    return ", ".join(f"{name} {number}" for name, number in constants.items())


def need(ok: bool, part: TenantFields, field: str, expected: str, actual: object) -> None:
    """Refuse a tenant's part of a policy unless a condition is true.

    :raises PolicyError: the condition is false
    """
    if not ok:
        raise PolicyError("the tenant's mechanism is not well-formed",
                          field=f"policy.tenants.{part.tenant}.{field}", expected=expected, actual=actual)  # fmt: skip


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


def document_table(part: TenantFields, tenant: Tenant) -> TableShape | None:
    """The document table of a tenant's part of a policy; None if it has none.

    :raises PolicyError: a number of the table is out of range
    """
    written = part.documents
    if written is None:
        return None
    shape = TableShape(written.rows, written.positions_per_document, written.fresh_rows)
    shape.check(tenant.capacity, field=f"policy.tenants.{part.tenant}.documents")
    return shape
