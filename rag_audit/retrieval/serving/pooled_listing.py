"""The provider's part of pooled listing: one set of listed rows for all accounts of a tenant.

docs/accounting.md ("Pooled listing") has the rules and their guarantees. A row of the document table stands for a
document. A request lists the rows that chance draws and the relevant rows in the sample. Its answer has the best K
positions of all rows that are listed by then. Requests act one by one in the order of the ledger: `answer_in_order` is
a fold of `answer` over the requests, and no request reads the set that another one started from.

The native core computes answers. `reference_answer` is the same function in exact Python integers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_audit import _native
from rag_audit._internal.errors import EncodingError, PolicyError
from rag_audit.mechanisms.base import SAMPLE, Mechanism
from rag_audit.mechanisms.pooled_listing import PooledListing
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import Drawn, Int8Array, Int32Array, TenantIndex, draw_bernoulli_bits
from rag_audit.retrieval.serving.base import Asked, Columns, Serving

RowArray = npt.NDArray[np.integer[Any]]
"""The row of each position, shape (capacity,); the number of rows for a position without a row."""


@dataclass(frozen=True)
class PooledRules:
    """The public numbers of pooled listing.

    :param threshold: the minimum raw score of a relevant position, at least 1
    :param longest: the number of places K of an answer
    :param window: the score window of the tenant's policy
    :raises PolicyError: the threshold or K is below 1
    """

    threshold: int
    longest: int
    window: ScoreWindow

    def __post_init__(self) -> None:
        # At 0 every position without a matching text would be relevant, empty positions among them.
        for name, value in (("threshold", self.threshold), ("K", self.longest)):
            if value < 1:
                raise PolicyError(
                    "the value is out of range", field=name, expected="at least 1", actual=value
                )


@dataclass(frozen=True, eq=False)
class PooledAnswer:
    """The result of one request.

    :param listed: 1 for each row that is listed after the request, shape (rows,)
    :param places: K positions, best first; None for a place that the answer leaves empty because no position of a
        listed row with a lattice score above 0 is left
    """

    listed: Int8Array
    places: tuple[int | None, ...]


def positions_in_rows(row_of_position: RowArray, rows: int) -> _native.PooledRows:
    """The row of each position in the form that `answer` reads, made once for all requests.

    :param rows: the number of rows of the document table
    :raises EncodingError: a position has a row outside the table
    """
    if len(row_of_position) and not 0 <= int(row_of_position.min()) <= int(row_of_position.max()) <= rows:
        raise EncodingError(
            "a position has a row outside the document table",
            field="row_of_position",
            expected=f"0 to {rows}",
            actual=f"{int(row_of_position.min())} to {int(row_of_position.max())}",
        )
    return _native.PooledRows(row_of_position.astype("<i4").tobytes(), rows)


def answer(
    scores: Int32Array,
    positions: _native.PooledRows,
    rules: PooledRules,
    *,
    listed: Int8Array,
    kept: Int8Array,
    chance: Int8Array,
) -> PooledAnswer:
    """The set of listed rows after a request, and the request's answer.

    A row is relevant if the score of one of its positions reaches the threshold. The comparisons run for every position
    and every row, so that the time of the first step does not depend on the result. The second step reads the scores of
    listed rows only: every other position counts with the score 0.

    :param scores: the raw score of each position, shape (capacity,)
    :param positions: the row of each position (`positions_in_rows`)
    :param listed: the rows that are listed before the request, 0 or 1, shape (rows,)
    :param kept: the rows in the sample, 0 or 1, shape (rows,)
    :param chance: the rows that chance draws for this request, 0 or 1, shape (rows,)
    :raises EncodingError: an array has another shape or type
    :raises PolicyError: there are fewer positions than K
    """
    _check(scores, positions, rules, listed=listed, kept=kept, chance=chance)
    window = rules.window
    after, places = positions.answer(
        scores.tobytes(), (listed.tobytes(), kept.tobytes(), chance.tobytes()), rules.threshold,
        (window.lo, window.hi, window.lattice), rules.longest,
    )  # fmt: skip
    empty = [None] * (rules.longest - len(places))
    return PooledAnswer(np.frombuffer(after, np.int8), (*places, *empty))


def answer_in_order(
    requests: Iterable[tuple[Int32Array, Int8Array]],
    row_of_position: RowArray,
    rules: PooledRules,
    *,
    listed: Int8Array,
    kept: Int8Array,
) -> Iterator[PooledAnswer]:
    """The answers of requests that act one by one: each uses the set of listed rows that its predecessor produced.

    Two requests on one set would list a row for the first time twice, and the loss of an observer would exceed epsilon.

    :param requests: the scores and the chance of each request (`answer`), in the order of the ledger
    :param row_of_position: shape (capacity,)
    :param listed: the rows that are listed before the first request
    """
    positions = positions_in_rows(row_of_position, len(kept))
    for scores, chance in requests:
        result = answer(scores, positions, rules, listed=listed, kept=kept, chance=chance)
        listed = result.listed
        yield result


def reference_answer(
    scores: Sequence[int],
    row_of_position: Sequence[int],
    rules: PooledRules,
    *,
    listed: Sequence[int],
    kept: Sequence[int],
    chance: Sequence[int],
) -> tuple[list[int], list[int | None]]:
    """The same as `answer` in exact Python integers, position by position.

    :returns: the set of listed rows after the request, and the places of the answer
    """
    after = [
        int(
            listed[r]
            or chance[r]
            or (
                kept[r]
                and any(
                    s >= rules.threshold for s, of in zip(scores, row_of_position, strict=True) if of == r
                )
            )
        )
        for r in range(len(listed))
    ]
    ranked = [
        (-rules.window.quantise(s), p)
        for p, (s, r) in enumerate(zip(scores, row_of_position, strict=True))
        if r < len(after) and after[r] and rules.window.quantise(s) > 0
    ]
    places: list[int | None] = [p for _, p in sorted(ranked)[: rules.longest]]
    return after, places + [None] * (rules.longest - len(places))


def _check(
    scores: Int32Array, positions: _native.PooledRows, rules: PooledRules, **columns: Int8Array
) -> None:
    rows = positions.rows
    for name, column in columns.items():
        if (
            column.dtype != np.int8
            or column.shape != (rows,)
            or (rows and int(column.view(np.uint8).max()) > 1)
        ):
            raise EncodingError(
                "the column is not a bit for each row of the document table",
                field=name,
                expected=f"int8 ({rows},), 0 or 1",
                actual=f"{column.dtype} {column.shape}",
            )
    if scores.dtype != np.int32 or scores.shape != (positions.positions,):
        raise EncodingError(
            "the scores do not have a number for each position of the document table",
            field="scores",
            expected=f"int32 ({positions.positions},)",
            actual=f"{scores.dtype} {scores.shape}",
        )
    if rules.longest > len(scores):
        raise PolicyError("K out of range", field="K", expected=f"1..{len(scores)}", actual=rules.longest)


@dataclass(frozen=True, eq=False)
class TableRows:
    """A tenant's document table as answers use it.

    :param positions: the row of each position (`positions_in_rows`)
    :param kept: the rows in the sample, 0 or 1, shape (rows,)
    """

    positions: _native.PooledRows
    kept: Int8Array


class PooledListingServing(Serving):
    """Lists rows of the document table, one set for all accounts of the tenant.

    :param mechanism: the tenant's mechanism
    :raises TypeError: the mechanism is of another class
    """

    draws = True

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        if not isinstance(mechanism, PooledListing):
            raise TypeError(f"the mechanism is {mechanism.name}")
        assert mechanism.documents is not None  # as for every policy with pooled listing
        self.rows, self.flip_probability = mechanism.documents.rows, mechanism.rules.flip_probability
        self.rules = PooledRules(mechanism.rules.threshold, mechanism.longest, mechanism.window)

    def draw(self, kappa: int, capacity: int) -> Int8Array:
        """The chance of a slot, shape (rows,), 1 if chance lists the row."""
        return draw_bernoulli_bits(kappa, self.rows, self.flip_probability)

    def in_order(
        self, index: TenantIndex, requested: Iterable[Asked], table: TableRows, listed: Int8Array
    ) -> Iterator[PooledAnswer | Exception]:
        """The answers of requests that take effect one by one. A request that fails changes no set.

        :param requested: the requests in the order of the ledger
        :param listed: the rows that are listed before the first request
        :returns: for each request its answer, or the error that stopped it
        """
        for one in requested:
            result = self._answer(index, one, table, listed)
            if isinstance(result, PooledAnswer):
                listed = result.listed
            yield result

    def _answer(
        self, index: TenantIndex, one: Asked, table: TableRows, listed: Int8Array
    ) -> PooledAnswer | Exception:
        chance: Drawn | None = one.drawn
        try:
            if chance is None or chance.dtype != np.int8:
                raise EncodingError("the slot has no chance bits", field="drawn")
            scores = index.scores(one.vector)
            return answer(
                scores, table.positions, self.rules, listed=listed, kept=table.kept,
                chance=chance.astype(np.int8, copy=False),
            )  # fmt: skip
        except Exception as exc:
            return exc

    def select(
        self, index: TenantIndex, requested: Sequence[Asked], columns: Columns
    ) -> list[list[int] | Exception]:
        """See `Serving.select`: the filled places of each answer, best first. No row is listed before the first
        request, and each position of the index is a document of its own.

        :raises EncodingError: the document table has another number of rows than the index has positions
        """
        table = TableRows(positions_in_rows(np.arange(index.capacity), index.capacity), columns[SAMPLE])
        answers = self.in_order(index, requested, table, np.zeros(index.capacity, np.int8))
        return [a if isinstance(a, Exception) else [p for p in a.places if p is not None] for a in answers]

    def withheld(
        self,
        index: TenantIndex,
        vector: Callable[[], Int8Array],
        positions: Sequence[int],
        *,
        columns: Columns,
        documents: Container[int],
    ) -> frozenset[int]:
        """See `Serving.withheld`: none, since every listed position has a score above 0."""
        return frozenset()


SERVING = PooledListingServing
