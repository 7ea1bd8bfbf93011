"""Proofs of claim A1: hq and cq come from the same tokens under the committed table (docs/circuits.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from rag_audit import _native
from rag_audit._internal.cache import build_file, cache_dir
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import EncodingError, WitnessError
from rag_audit.models.manifest import StaticTable
from rag_audit.proofs.backends.groth16.circuit import Inputs
from rag_audit.proofs.backends.groth16.instance import EMBED_INPUTS, EmbedInstance
from rag_audit.proofs.backends.groth16.job import Bound, prove
from rag_audit.proofs.backends.groth16.verifiers import records_json
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.relation.field import from_bytes
from rag_audit.relation.table import ARITY, tree_depth, wide_row

_ELEMENT = 32


@dataclass(frozen=True)
class EmbedTable:
    """A static embedder's table and the tree over it (docs/relation.md, "Commitments").

    :param rows: int8, row by row, shape (tokens, dimension)
    :param dimension: components of a row
    :param depth: depth of the tree of arity 8
    :param nodes: the tree's leaves, then level by level to the root, 32 bytes big-endian each
    """

    rows: bytes = field(repr=False)
    dimension: int
    depth: int
    nodes: bytes = field(repr=False)

    @classmethod
    def build(cls, rows: bytes, dimension: int, depth: int) -> EmbedTable:
        """Hash the tree over the rows, which takes a few seconds for 32,768 leaves.

        :raises EncodingError: the rows do not fit such a tree; it needs at least one more place, for a zero row
        """
        try:
            return cls(rows, dimension, depth, _native.table_tree(rows, dimension, depth))
        except ValueError as exc:
            raise EncodingError("the table does not fit its tree", actual=str(exc)) from exc

    @property
    def root(self) -> int:
        """The root, which is committed to and public in a statement."""
        return from_bytes(self.nodes[-_ELEMENT:], field="root")

    @property
    def tokens(self) -> int:
        """Number of rows."""
        return len(self.rows) // self.dimension

    def row(self, place: int) -> bytes:
        """The row at a place of the tree, which is zero after the last token's row."""
        row = self.rows[place * self.dimension : (place + 1) * self.dimension]
        return row or bytes(self.dimension)

    def path(self, place: int) -> bytes:
        """The eight children of each node on the way from a place to the root, lowest first."""
        path, start = b"", 0
        for level in range(self.depth, 0, -1):
            place //= ARITY
            first = start + ARITY * place
            path += self.nodes[first * _ELEMENT : (first + ARITY) * _ELEMENT]
            start += ARITY**level
        return path


@cache
def table_tree(table: StaticTable) -> EmbedTable:
    """The table with the tree over it. The tree is hashed once (seconds) and stored in the user's cache.

    :raises SetupError: the rows cannot be read; the cached tree is damaged, or the cache cannot be written
    """
    rows, depth = table.rows(), tree_depth(table.constants.vocabulary)
    folder = cache_dir("tables") / table.digest
    nodes = build_file(
        folder,
        "nodes",
        lambda: EmbedTable.build(rows, table.dimension, depth).nodes,
        table.tree,
        what="tree over the embedder's table",
    )
    return EmbedTable(rows, table.dimension, depth, nodes)


@dataclass(frozen=True)
class EmbedJob(Bound):
    """The job that proves `embed` for one record. It is picklable. It contains secrets, which `repr` omits.

    :param instance: the circuit
    :param statement: the public values
    :param tokens: the query's tokens, cut to the embedder's limit
    :param salt_q: salt of hq
    :param salt_c: salt of cq
    :param rows: the opened rows, one for each place of the circuit, int8
    :param paths: the opened rows' paths, one after another
    """

    instance: EmbedInstance
    statement: EmbedStatement
    tokens: Sequence[int] = field(repr=False)
    salt_q: int = field(repr=False)
    salt_c: int = field(repr=False)
    rows: bytes = field(repr=False)
    paths: bytes = field(repr=False)

    @classmethod
    def of(
        cls,
        instance: EmbedInstance,
        statement: EmbedStatement,
        table: EmbedTable,
        tokens: Sequence[int],
        *,
        salt_q: int,
        salt_c: int,
    ) -> EmbedJob:
        """The job that opens these tokens' rows of `table`, and the zero row in unused places.

        :raises WitnessError: there is no token or too many, the table has no row for a token, or the table has another
            shape than the circuit's, or no zero row where the circuit expects one
        """
        shapes = {
            "dimension": (table.dimension, instance.dimension),
            "depth": (table.depth, instance.depth),
        }
        for name, (actual, expected) in shapes.items():
            if actual != expected:
                raise WitnessError(
                    "the table does not fit the circuit", field=name, expected=expected, actual=actual
                )
        if any(table.row(instance.zero_row)):
            raise WitnessError("the table has no zero row where the circuit opens one", field="zero_row")
        if not 1 <= len(tokens) <= instance.tokens:
            raise WitnessError(
                "does not fit the circuit",
                field="tokens",
                expected=f"1..{instance.tokens} tokens",
                actual=len(tokens),
            )
        for number, token in enumerate(tokens):
            if not 0 <= token < table.tokens:
                raise WitnessError(
                    "a token is outside the table",
                    field=f"tokens[{number}]",
                    expected=f"0..{table.tokens - 1}",
                )
        places = [*tokens, *[instance.zero_row] * (instance.tokens - len(tokens))]
        return cls(
            instance,
            statement,
            tuple(tokens),
            salt_q,
            salt_c,
            b"".join(map(table.row, places)),
            b"".join(map(table.path, places)),
        )

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name."""
        width = self.instance.dimension
        rows = [self.rows[i : i + width] for i in range(0, len(self.rows), width)]
        elements = range(0, len(self.paths), _ELEMENT)
        return {
            **{name: getattr(self.statement, name) for name in EMBED_INPUTS},
            "salt_q": self.salt_q,
            "salt_c": self.salt_c,
            "count": len(self.tokens),
            "token": [*self.tokens, *[0] * (self.instance.tokens - len(self.tokens))],
            "row": [element for row in rows for element in wide_row(memoryview(row).cast("b"))],
            "node": [int.from_bytes(self.paths[i : i + _ELEMENT], "big") for i in elements],
        }

    def run(self) -> dict[str, Json]:
        """The proof as its record carries it: system, circuit, a, b, c, records.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        proof = prove(self.instance, self.inputs(), self.statement, vk=self.vk)
        return records_json(proof, [self.statement])
