"""Circuit instances: a circuit with its parameters, and the digest that names it.

An instance is a few lines of circom that fix the parameters of a template in circuits/lib. Its digest covers all inputs
of the constraint system, and can be computed without Node: own sources by content, npm packages (compiler, circomlib)
by the integrity hashes in the lock file.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from math import gcd
from pathlib import Path
from typing import ClassVar, Protocol

from rag_audit._internal.canonical import Json, digest_hex
from rag_audit._internal.errors import PolicyError, SetupError
from rag_audit._internal.node import circuits_dir
from rag_audit.models.manifest import TableConstants
from rag_audit.relation.noise import MAX_MAGNITUDE, check_gains, table_digest
from rag_audit.relation.scores import MAX_DIMENSION, ScoreWindow
from rag_audit.relation.table import ARITY, MAX_ROWS, tree_depth

COMPILER_FLAGS = ("--O2",)
PUBLIC_INPUTS = ("ctx", "c_seed", "beacon", "slot", "c_idx", "cq", "htopk")
"""The public inputs of `retrieve`, in the order of the verification key."""
EMBED_INPUTS = ("ctx", "table", "hq", "cq")
"""The public inputs of `embed`."""
MAX_CAPACITY = 1 << 17
"""Maximum positions: each takes more than 1,024 constraints, and the field has domains up to 2^28."""
MAX_NORM_FACTOR = 1 << 20
"""The largest A of the integer normalisation."""
MAX_QUERIES = 16
"""Maximum records of one proof."""
COALITION_INPUTS = ("statement",)
"""The public input of `coalition`."""
SAMPLE_INPUTS = ("ctx", "c_seed", "beacon", "slot", "keep", "c_kept")
"""The public inputs of the circuit `kept`."""
SAMPLED_INPUTS = (*PUBLIC_INPUTS, "c_kept")
"""The public inputs of `retrieve` of a sampled tenant."""
DOCUMENTS_INPUTS = (
    "ctx",
    "c_seed",
    "beacon",
    "slot",
    "keep",
    "drawn",
    "most",
    "continued",
    "c_table",
    "c_previous",
    "c_carried",
    "c_kept",
)
"""The public inputs of the circuit `documents`."""
NAMES_INPUTS = ("ctx", "c_table", "c_opened")
"""The public inputs of the circuit `names`."""
MAX_TABLE = 1 << 18
"""Maximum positions times rows of `documents` and `names`, which take a constraint for each pair."""

_INCLUDE = re.compile(r'^\s*include\s+"([^"]+)"\s*;', re.MULTILINE)


class Instance(Protocol):
    """The interface of an instance for compiling, keys and proofs."""

    @property
    def name(self) -> str:
        """The instance's name, which is also a file name."""

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The names of the public inputs in the verification key's order."""

    def main_source(self) -> str:
        """The circom file with the `main` component."""

    def digest(self) -> str:
        """The circuit's digest that a policy pins, 64 hexadecimal digits."""


@dataclass(frozen=True)
class RetrieveInstance:
    """`retrieve`: claims A2, A3 and A4 for one or several records of one tenant and window in a proof
    (docs/circuits.md). Several records share the cost of the index.

    :param capacity: N, positions of the index, a multiple of 8
    :param dimension: d, components of a vector
    :param top_k: K, positions that a record lists
    :param gains: the policy's noise gains, one for each component; empty without noise
    :param lo: lower end of the score window, raw units
    :param hi: upper end of the score window, raw units
    :param lattice: R, a power of two
    :param sampled: whether unsampled positions score 0
    :param queries: Q, the number of records of a proof
    :raises PolicyError: the circuit cannot be built for the parameters
    """

    capacity: int
    dimension: int
    top_k: int
    gains: tuple[int, ...]
    lo: int
    hi: int
    lattice: int
    sampled: bool = False
    queries: int = 1

    def __post_init__(self) -> None:
        if self.gains:
            check_gains(self.gains)
        _check_queries(self.queries)
        _check_selection(
            self.capacity, self.dimension, self.top_k, self.gains, ScoreWindow(self.lo, self.hi, self.lattice)
        )

    @property
    def name(self) -> str:
        """The instance's name, such as `retrieve-n64-d256-k5-g1x8x64-w101x810-r128`, `retrieve-q4-n256-..` for several
        records, `sampled-n64-..` of a sampled tenant, and `exact-n64-d256-k5-w101x810-r64` without sampling and noise.
        """
        kind = "sampled" if self.sampled else "retrieve" if self.gains else "exact"
        several = f"-q{self.queries}" if self.queries > 1 else ""
        gains = f"-g{'x'.join(map(str, self.gains))}" if self.gains else ""
        return (
            f"{kind}{several}-n{self.capacity}-d{self.dimension}-k{self.top_k}{gains}"
            f"-w{self.lo}x{self.hi}-r{self.lattice}"
        )

    @property
    def seeded(self) -> bool:
        """Whether a proof needs the seed. Without noise no value depends on it."""
        return bool(self.gains)

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The public inputs, in order. A name that differs between records denotes Q values."""
        return SAMPLED_INPUTS if self.sampled else PUBLIC_INPUTS

    def main_source(self) -> str:
        """The circom file with the `main` component; circuits/main contains the files of the usual instances."""
        window = f"{self.lo}, {self.hi}, {self.lattice}"
        arguments = f"{self.queries}, {self.capacity}, {self.dimension}, {self.top_k}"
        if self.gains:
            template = "SampledNoise" if self.sampled else "Retrieve"
            arguments += f", {len(self.gains)}, [{', '.join(map(str, self.gains))}]"
        else:
            template = "Sampled" if self.sampled else "Exact"
        library = "retrieve" if template == "Retrieve" else "sampled"
        return main_file(library, self.public_inputs, f"{template}({arguments}, {window})")

    def digest(self) -> str:
        """SHA-256 over sources, compiler, flags, parameters and the digest of the noise table, if there is noise."""
        return circuit_digest(self, {"noise_table": table_digest()} if self.gains else {})


@dataclass(frozen=True)
class SampleInstance:
    """`kept`: the sampled positions of a tenant that count in a window. The probability is a public input.

    :param capacity: N, positions of the index
    :raises PolicyError: the circuit cannot be built for the parameters
    """

    capacity: int

    def __post_init__(self) -> None:
        _check_capacity(self.capacity)

    @property
    def name(self) -> str:
        """The instance's name, such as `kept-n64`."""
        return f"kept-n{self.capacity}"

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The six public inputs, in order."""
        return SAMPLE_INPUTS

    def main_source(self) -> str:
        """The circom file with the `main` component."""
        return main_file("kept", SAMPLE_INPUTS, f"Kept({self.capacity})")

    def digest(self) -> str:
        """SHA-256 over sources, compiler, flags and parameters."""
        return circuit_digest(self, {})


@dataclass(frozen=True)
class TableInstance:
    """A circuit over a document table; N D is at most `MAX_TABLE`.

    :param capacity: N, positions of the index
    :param rows: D, rows of the document table
    :raises PolicyError: the circuit cannot be built for the parameters
    """

    capacity: int
    rows: int
    circuit: ClassVar[str]
    """The name of the file in `circuits/lib`; its template has the same name with a capital letter."""
    inputs: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        _check_capacity(self.capacity)
        most = min(self.capacity, MAX_TABLE // self.capacity)
        if not 1 <= self.rows <= most:
            raise PolicyError("the number of documents does not fit the circuit", field="documents.rows",
                              expected=f"1..{most} for a capacity of {self.capacity}", actual=self.rows,
                              hint="choose fewer rows (`--documents`), or use `--system scan`")  # fmt: skip

    @property
    def name(self) -> str:
        """The instance's name, such as `documents-n64-d64`."""
        return f"{self.circuit}-n{self.capacity}-d{self.rows}"

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The public inputs, in order."""
        return self.inputs

    def main_source(self) -> str:
        """The circom file with the `main` component."""
        template = f"{self.circuit.capitalize()}({self.capacity}, {self.rows})"
        return main_file(self.circuit, self.inputs, template)

    def digest(self) -> str:
        """SHA-256 over sources, compiler, flags and parameters."""
        return circuit_digest(self, {})


class DocumentsInstance(TableInstance):
    """`documents`: the sampled positions of a tenant with a document table. The probability, the number of fresh rows
    and the maximum number of positions of a document are public inputs.
    """

    circuit = "documents"
    inputs = DOCUMENTS_INPUTS


class NamesInstance(TableInstance):
    """`names`: opened positions of a tenant with a document table belong to rows with opened names."""

    circuit = "names"
    inputs = NAMES_INPUTS


@dataclass(frozen=True)
class EmbedInstance:
    """`embed`: claim A1 for one record (docs/circuits.md).

    :param tokens: T, the maximum number of tokens of a query, at most 64
    :param dimension: d, components of a table row, at most 4,096
    :param depth: depth of the table's tree of arity 8
    :param zero_row: place of a zero row, which is opened for unused tokens
    :param norm_factor: A of the integer normalisation
    :raises PolicyError: the circuit cannot be built for the parameters
    """

    tokens: int
    dimension: int = 768
    depth: int = 5
    zero_row: int = 32_000
    norm_factor: int = 16_593

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= MAX_ROWS:
            raise PolicyError(
                "the token limit does not fit the circuit", expected=f"1..{MAX_ROWS}", actual=self.tokens
            )
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise PolicyError("the dimension does not fit the circuit", expected=f"1..{MAX_DIMENSION}",
                              actual=self.dimension)  # fmt: skip
        if not 1 <= self.norm_factor <= MAX_NORM_FACTOR:
            raise PolicyError("the norm factor does not fit the circuit", field="norm_factor",
                              expected=f"1..{MAX_NORM_FACTOR}", actual=self.norm_factor)  # fmt: skip
        if not 1 <= self.depth <= 5 or not 0 <= self.zero_row < ARITY**self.depth:
            raise PolicyError(
                "the table's tree does not fit the circuit", actual=f"{self.depth}, {self.zero_row}"
            )

    @classmethod
    def of(cls, tokens: int, dimension: int, table: TableConstants) -> EmbedInstance:
        """The circuit for a table: the zero row takes the place after the last token's row.

        :raises PolicyError: as the class
        """
        return cls(tokens, dimension, tree_depth(table.vocabulary), table.vocabulary, table.norm_factor)

    @property
    def name(self) -> str:
        """The instance's name, such as `embed-t64-d768-h5-z32000-a16593`."""
        return f"embed-t{self.tokens}-d{self.dimension}-h{self.depth}-z{self.zero_row}-a{self.norm_factor}"

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The four public inputs, in order."""
        return EMBED_INPUTS

    def main_source(self) -> str:
        """The circom file with the `main` component."""
        arguments = f"{self.tokens}, {self.dimension}, {self.depth}, {self.zero_row}, {self.norm_factor}"
        return main_file("embed", EMBED_INPUTS, f"Embed({arguments})")

    def digest(self) -> str:
        """SHA-256 over sources, compiler, flags and parameters. The table is a public input."""
        return circuit_digest(self, {})


@dataclass(frozen=True)
class CoalitionInstance:
    """`coalition`: the coalition proof of a window of up to `records` records (docs/circuits.md).

    :param records: N, a multiple of 4, at most 64
    :param dimension: d, components of a vector, at most 4,096
    :param theta: the cosine threshold p/q
    :raises PolicyError: parameters that the circuit cannot be built for
    """

    records: int
    dimension: int = 768
    theta: tuple[int, int] = (4, 5)

    def __post_init__(self) -> None:
        if not 4 <= self.records <= 64 or self.records % 4:
            raise PolicyError("the number of records does not fit the circuit", field="coalition_proof.records",
                              expected="a multiple of 4, at most 64", actual=self.records)  # fmt: skip
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise PolicyError("the dimension does not fit the circuit", expected=f"1..{MAX_DIMENSION}",
                              actual=self.dimension)  # fmt: skip
        p, q = self.theta
        if not 0 < p < q <= 1000 or gcd(p, q) > 1:
            raise PolicyError("theta does not fit the circuit", expected="p/q in lowest terms, 0 < p < q <= 1000",
                              actual=f"{p}/{q}")  # fmt: skip

    @property
    def norm_bits(self) -> int:
        """Bits of a squared length, which with rounding at a scale of 3 / sqrt(d) or more is below (7 sqrt(d) / 3 +
        sqrt(d) / 2)^2 < 9 d."""
        return min(max(11, (9 * self.dimension).bit_length()), (64 * self.dimension - 1).bit_length())

    @property
    def name(self) -> str:
        """The instance's name, such as `coalition-n64-d768-t4x5-a13`."""
        p, q = self.theta
        return f"coalition-n{self.records}-d{self.dimension}-t{p}x{q}-a{self.norm_bits}"

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The one public input."""
        return COALITION_INPUTS

    def main_source(self) -> str:
        """The circom file with the `main` component."""
        p, q = self.theta
        arguments = f"{self.records}, {self.dimension}, {p}, {q}, {self.norm_bits}"
        return main_file("coalition", COALITION_INPUTS, f"Coalition({arguments})")

    def digest(self) -> str:
        """SHA-256 over sources, compiler, flags and parameters."""
        return circuit_digest(self, {})


def _check_selection(
    capacity: int, dimension: int, top_k: int, gains: tuple[int, ...], window: ScoreWindow
) -> None:
    """Refuse constants of a selection that no circuit can be built for; no gains are no noise.

    :raises PolicyError: a constant is out of its bounds
    """
    # These are all bounds of the templates (circuits/lib); the compiler's errors about them would be less specific.
    # Numbers of r or more are refused too, because the compiler would reduce them modulo r.
    window.check_reach(dimension)
    if window.hi - window.lo < 2:
        raise PolicyError("the score window is too narrow for the circuit", field="hi",
                          expected=f"at least {window.lo + 2}", actual=window.hi)  # fmt: skip
    _check_capacity(capacity)
    if not 2 <= top_k <= capacity:
        raise PolicyError("K does not fit the circuit", field="top_k", expected=f"2..{capacity}",
                          actual=top_k)  # fmt: skip
    span = (window.lattice + 2 * MAX_MAGNITUDE * sum(gains)).bit_length()
    if 8 * (span + 2 * top_k.bit_length() + 2) > 252:
        raise PolicyError("noise or K are too large for the circuit", actual=f"K {top_k}, gains {gains}")


def _check_capacity(capacity: int, most: int = MAX_CAPACITY) -> None:
    """Refuse a capacity that no circuit can be built for.

    :raises PolicyError: the capacity is no multiple of 8, or too large
    """
    if not 8 <= capacity <= most or capacity % 8:
        raise PolicyError("the capacity does not fit the circuit", field="capacity",
                          expected=f"a multiple of 8, at most {most}", actual=capacity)  # fmt: skip


def _check_queries(queries: int) -> None:
    """Refuse a number of records if no circuit proves a batch of that size.

    :raises PolicyError: the number is below 1 or too large
    """
    if not 1 <= queries <= MAX_QUERIES:
        raise PolicyError(
            "the number of queries does not fit the circuit", expected=f"1..{MAX_QUERIES}", actual=queries
        )


def main_file(library: str, public: tuple[str, ...], component: str) -> str:
    """The text of a main file: one component of a template in circuits/lib, with these public inputs."""
    return (
        "pragma circom 2.2.0;\n\n"
        f'include "../lib/{library}.circom";\n\n'
        f"component main {{public [{', '.join(public)}]}} = {component};\n"
    )


def circuit_digest(instance: Instance, extra: dict[str, Json]) -> str:
    """The digest of an instance (see the module's head); `extra` names further pinned artefacts."""
    main = instance.main_source()
    return digest_hex(
        {
            "extra": extra,
            "flags": list(COMPILER_FLAGS),
            "main": main,
            "packages": {name: _locked(name) for name in ("circom2", "circomlib")},
            "sources": {path: digest for path, digest in included_sources(main)},
        }
    )


def included_sources(main: str) -> tuple[tuple[str, str], ...]:
    """The project's files that a main includes, transitively: (path below circuits/, SHA-256), sorted.

    Includes of npm packages (`circomlib/..`) are omitted: the lock file's integrity hash covers them.
    """
    return _included(circuits_dir(), tuple(_INCLUDE.findall(main)))


@cache
def _included(root: Path, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Like `included_sources`, from the includes of a main in `root`. The result is cached, because a verification
    asks for it dozens of times."""
    result: dict[str, str] = {}
    waiting = [(root / "main", name) for name in names]
    while waiting:
        folder, name = waiting.pop()
        path = (folder / name).resolve()
        if not path.is_relative_to(root) or not path.is_file():
            continue
        key = path.relative_to(root).as_posix()
        if key not in result:
            digest, included = _source(path)
            result[key] = digest
            waiting += [(path.parent, name) for name in included]
    return tuple(sorted(result.items()))


@cache
def _source(path: Path) -> tuple[str, tuple[str, ...]]:
    data = path.read_bytes()
    return hashlib.sha256(data).hexdigest(), tuple(_INCLUDE.findall(data.decode()))


@cache
def _locked(name: str) -> dict[str, Json]:
    lock = json.loads((circuits_dir() / "package-lock.json").read_text())
    try:
        entry = lock["packages"][f"node_modules/{name}"]
        return {"version": entry["version"], "integrity": entry["integrity"]}
    except KeyError as exc:
        raise SetupError("the npm package is not locked", field="package-lock.json", expected=name) from exc
