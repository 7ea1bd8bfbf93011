"""Types of the native core (Rust, `native/`).

Field elements cross as 32 bytes, big-endian, concatenated, and are refused when not below the modulus;
vectors of integers cross as little-endian bytes (int8 or int32). Every function releases the GIL. A malformed
argument raises ValueError naming the field, what was expected and what was found; a file that cannot be read
or written raises OSError.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Self, final

__all__ = [
    "EncoderModel",
    "EncoderOutOfRange",
    "EncoderPins",
    "Groth16Witness",
    "GrowingTree",
    "IntegerEncoder",
    "PackedIndex",
    "PooledRows",
    "ScanBatch",
    "ScanCoalition",
    "ScanEmbedBatch",
    "ScanIndex",
    "ScanParameters",
    "ScanPooledBatch",
    "ScanPooledListing",
    "ScanTable",
    "bls_signed_in_g1",
    "bls_signed_in_g2",
    "canonical_json",
    "draw_bernoulli_bits",
    "draw_noise",
    "ed25519_verifies",
    "groth16_plan",
    "groth16_prove",
    "groth16_setup",
    "groth16_setup_one_party",
    "groth16_verification_key",
    "groth16_verify_batch",
    "groth16_witness",
    "index_commitment",
    "joining_pairs",
    "json_values",
    "lanes",
    "noise_table",
    "noised_top_k",
    "path_root",
    "plain_json",
    "poseidon_absorb",
    "poseidon_hash",
    "poseidon_hash_list",
    "poseidon_permute",
    "ptau_contributions",
    "ptau_fault",
    "ptau_new",
    "ptau_powers",
    "r1cs_unsatisfied",
    "scan_bits_prove",
    "scan_bits_verify",
    "scan_documents_commit",
    "scan_documents_prove",
    "scan_documents_verify",
    "scan_embed_prove",
    "scan_embed_verify",
    "scan_encoder_protocol",
    "scan_generators",
    "scan_limits",
    "scan_listed_empty",
    "scan_listed_rows",
    "scan_max_batch",
    "scan_pooled_protocol",
    "scan_pooled_prove",
    "scan_protocol",
    "scan_prove",
    "scan_prove_noise",
    "scan_row_names_prove",
    "scan_row_names_verify",
    "scan_verify",
    "set_threads",
    "table_tree",
    "threads",
    "top_k",
    "zkey_beacon",
    "zkey_contribute",
    "zkey_contributions",
    "zkey_fault",
    "zkey_new",
]

_Path = str | PathLike[str]

def set_threads(n: int) -> None:
    """Use `n` threads (1..1024) for later computations."""

def threads() -> int:
    """Threads in use; the cores available to the process unless `set_threads` said otherwise."""

def lanes() -> tuple[int, bool]:
    """How many residues the field's kernels take at a time (8 with AVX-512 IFMA, else 1), and whether int4 products use
    AVX2: chosen by what the processor has, and 1 where `RAG_AUDIT_PORTABLE` is set."""

def poseidon_permute(state: bytes) -> bytes:
    """Poseidon permutation of 9, 13 or 17 field elements."""

def poseidon_hash(inputs: bytes) -> bytes:
    """H of docs/relation.md: 1..16 field elements, padded with zeros to 16, to one."""

def poseidon_hash_list(tag: int, elements: bytes) -> bytes:
    """HL of docs/relation.md: a list of field elements under a domain tag, to one."""

def poseidon_absorb(lists: list[tuple[bytes, bytes]]) -> list[bytes]:
    """HL of several lists side by side, each the hash of its tag and length, H(10, tag, len), and its elements."""

def index_commitment(salt: bytes, rows_int8: bytes, dimension: int) -> bytes:
    """HL(7, [salt, nibble stream]) over int8 rows of shape (positions, dimension), components -8..7."""

def bls_signed_in_g1(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a BLS12-381 signature in G1 (48 bytes) is that of a key in G2 (96 bytes) on a message. The message is
    hashed by RFC 9380, and points are compressed in the ZCash form.

    :raises ValueError: one of them is not the canonical encoding of a point of prime order; its name stands first
    """

def bls_signed_in_g2(key: bytes, message: bytes, signature: bytes) -> bool:
    """The same for a signature in G2 (96 bytes) and a key in G1 (48 bytes)."""

def table_tree(rows_int8: bytes, dimension: int, depth: int) -> bytes:
    """All nodes of the tree of arity 8 over int8 rows of shape (rows, dimension), dimension 1..4096: the 8^depth
    leaves, then level by level to the root. Places after the last row, at least one, hold zero rows.
    """

def draw_noise(kappa: bytes, positions: int, gains: list[int]) -> bytes:
    """DGS-1 noise of one slot: `positions` int32 values, each the gain-weighted sum of its draws."""

def draw_bernoulli_bits(kappa: bytes, positions: int, bound: int) -> bytes:
    """One byte a position, 1 where the slot's draw of 40 bits is below the bound, a probability over 2^40."""

def noise_table() -> bytes:
    """The DGS-1 alias table: 128 records of 5 bytes, threshold (uint32, little-endian) and alias (uint8)."""

def canonical_json(value: object) -> bytes | None:
    """The RFC 8785 bytes of a value, or None where it is not one of plain texts, integers below 2^53, booleans and
    null, in lists and dicts with ASCII keys.
    """

def plain_json(data: bytes) -> Any:
    """The value of a JSON text, or None where it is not wholly of texts, integers below 2^53, booleans and null, in
    lists and objects without repeated keys, at most 64 deep.
    """

def json_values(data: bytes) -> int:
    """An upper bound on the values of a JSON text: each but the outermost follows a comma or an opening bracket that
    stands in no text.
    """

def path_root(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """The root to which a path leads from a leaf hash of a tree (RFC 9162, 2.1.3.2); None if it has another length."""

def ed25519_verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether 64 bytes are the Ed25519 signature (RFC 8032, no cofactor) of a message under a key of 32 bytes."""

@final
class GrowingTree:
    """A growing RFC 9162 tree over SHA-256. Safe to use from several threads."""

    def __new__(cls) -> Self:
        """Without leaves."""

    @property
    def size(self) -> int:
        """Number of leaves."""

    def extend(self, leaves: bytes) -> None:
        """Add leaf hashes, 32 bytes each, concatenated."""

    def leaves(self, start: int, end: int) -> list[bytes]:
        """The leaf hashes from `start` to before `end`."""

    def root(self, size: int) -> bytes:
        """Root of the first leaves."""

    def inclusion_path(self, index: int, size: int) -> list[bytes]:
        """PATH(index, D[size]), the leaf's sibling first."""

    def consistency_path(self, m: int, n: int) -> list[bytes]:
        """PROOF(m, D[n]); empty for m = 0 and for m = n."""

@final
class IntegerEncoder:
    """A BERT encoder in integer arithmetic (docs/minilm-int.md). Safe to use from several threads."""

    def __new__(
        cls, shape: Sequence[int], scales: Sequence[int], weights: bytes, exp: bytes, gelu: bytes
    ) -> Self:
        """From sizes (layers, width, heads, inner, vocabulary, places), scales (x, q, v, o, z, g), and weights and
        tables as int16. A dense layer whose sums can need more than 32 bits is refused."""

    def embed(
        self, texts: Sequence[Sequence[int]], first: bool
    ) -> list[tuple[bytes | None, tuple[int, str, int] | None]]:
        """Of each text the int32 sum of the last layer's rows, or the first row; or, if a value leaves its range, its
        layer, its name and the first such value."""

    def trace(
        self, tokens: Sequence[int]
    ) -> tuple[list[tuple[int, str, bytes]], tuple[int, str, int] | None]:
        """Layer, name and int16 values of each named value, and the value that leaves its range, if there is one."""

@final
class PackedIndex:
    """An int4 index in the layout that the score kernel reads; immutable."""

    def __new__(cls, rows_int8: bytes, dimension: int) -> Self:
        """From int8 rows of shape (positions, dimension), components -8..7."""

    @property
    def rows(self) -> int:
        """Number of positions."""

    @property
    def dimension(self) -> int:
        """Components a row."""

    def scores(self, query_int8: bytes) -> bytes:
        """Inner products of every row with `query_int8` (int8, -8..7, shape (dimension,)), as int32."""

@final
class PooledRows:
    """The row of each position of a tenant under pooled listing, for its answers; immutable."""

    def __new__(cls, row_of_position_int32: bytes, rows: int) -> Self:
        """From the row of each position; the number of rows for a position without a row."""

    @property
    def positions(self) -> int:
        """Number of positions."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    def answer(
        self,
        scores_int32: bytes,
        states: tuple[bytes, bytes, bytes],
        threshold: int,
        window: tuple[int, int, int],
        places: int,
    ) -> tuple[bytes, list[int]]:
        """One byte a row, 1 if it is listed after the request, and the positions of the answer, best first: at most
        `places` positions of listed rows with a lattice score above 0. `states` has one byte a row each, 0 or 1: listed
        before the request, in the sample, drawn by chance. `window` is lo, hi and the lattice.
        """

def top_k(
    runs: list[PackedIndex],
    requests: list[tuple[bytes, bytes | None]],
    lo: int,
    hi: int,
    lattice: int,
    k: int,
    sample: bytes | None = None,
) -> list[list[int]]:
    """For each query and its noise (int32, or None for none), the first `k` positions of an index in runs, by
    quantise(scores of the sample, 0 for the others) + noise: larger first, then smaller position. `sample` is a byte 0
    or 1 a position; without it all positions count.
    """

def noised_top_k(scores: bytes, lo: int, hi: int, lattice: int, noise: bytes, k: int) -> list[int]:
    """First `k` positions of quantise(scores) + noise (both int32): larger first, then smaller position."""

def joining_pairs(
    rows_int8: bytes, dimension: int, accounts: list[int], first: list[int], p: int, q: int
) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of rows, components -8..7, that join accounts: the minimal spanning forest, in the
    order (later, earlier), of the graph whose edges are cosines of at least p/q (or equal rows).

    `accounts[j]` is row j's account, below the number of rows; row j is compared with rows `first[j]`..j.
    """

def ptau_new(power: int, path: _Path) -> None:
    """Write a one-party powers of tau for 2^power constraints in snarkjs's .ptau format. Development only."""

def groth16_setup(r1cs_path: _Path, ptau_path: _Path, zkey_path: _Path) -> None:
    """One-party Groth16 keys of a circom circuit in snarkjs's .zkey format."""

def groth16_setup_one_party(r1cs_path: _Path, zkey_path: _Path, ptau_path: _Path | None = None) -> None:
    """`groth16_setup` from secrets drawn and wiped here, many times faster; writes the powers of tau if asked."""

def zkey_new(r1cs_path: _Path, ptau_path: _Path, zkey_path: _Path) -> None:
    """The initial .zkey of a circuit, before any contribution: what `snarkjs zkey new` writes."""

def zkey_contribute(old_path: _Path, new_path: _Path, name: str) -> bytes:
    """Add a phase-2 contribution with fresh randomness to a .zkey; its hash, 64 bytes."""

def zkey_beacon(old_path: _Path, new_path: _Path, name: str, value: bytes, exponent: int) -> bytes:
    """Add a public value, hashed 2^exponent (10..27) times, as a contribution; its hash, 64 bytes."""

def zkey_contributions(zkey_path: _Path) -> list[tuple[str, bytes | None, bytes]]:
    """A .zkey's contributions, unchecked: name, value of the beacon if it is one, hash."""

def zkey_fault(r1cs_path: _Path, ptau_path: _Path, zkey_path: _Path) -> str | None:
    """Why a .zkey is not the circuit's under these powers, changed only by its contributions; None if it is."""

def ptau_contributions(ptau_path: _Path) -> list[tuple[str, bytes | None, bytes]]:
    """The contributions of a .ptau, unchecked: name, value of the beacon if it is one, hash of the response."""

def ptau_fault(ptau_path: _Path, part: bool = False) -> str | None:
    """Why a .ptau, prepared for phase 2, is not what its contributions make; None if it is. With `part` it may be cut
    from a larger ceremony's file.
    """

def ptau_powers(ptau_path: _Path) -> tuple[int, int]:
    """The power of a .ptau, and that of the ceremony which it says it is from; unchecked."""

def groth16_verification_key(zkey_path: _Path) -> str:
    """The text of snarkjs's verification_key.json; ValueError before a contribution, where delta is gamma."""

def r1cs_unsatisfied(r1cs_path: _Path, witness: bytes, limit: int = 16) -> list[int]:
    """Indices of the constraints that the content of a .wtns file breaks, ascending, at most `limit`."""

@final
class Groth16Witness:
    """The values of a circuit's wires, in memory that is overwritten when it is given back."""

    def wtns(self) -> bytes:
        """The content of a .wtns file, in memory that is not overwritten."""

    def __len__(self) -> int: ...

def groth16_plan(code_path: _Path, plan_path: _Path) -> str | None:
    """Write the plan by which a circuit's witnesses are made, from the WebAssembly that circom wrote; None, or the
    reason why there is no plan and no file was written.
    """

def groth16_witness(plan_path: _Path, inputs: list[tuple[str, bytes]]) -> Groth16Witness | None:
    """The witness for inputs by signal name; None where they are not the circuit's, or one of its assertions fails."""

def groth16_prove(zkey_path: _Path, witness: bytes | Groth16Witness, r1cs_path: _Path | None = None) -> bytes:
    """Proof for a witness or the content of a .wtns file, 256 bytes in EIP-197 order:
    A.x A.y | B.x1 B.x0 B.y1 B.y0 | C.x C.y, 32 bytes big-endian each. The constraints say how long values can be;
    without them each is taken to be as long as the field's, which costs time and changes nothing else.
    """

def groth16_verify_batch(
    vk_json: str, proofs: list[bytes], inputs: list[bytes]
) -> list[tuple[int, str | None]]:
    """Check proofs (256 bytes each) against their concatenated public inputs under one key, many by a random linear
    combination. The indices of the bad ones, ascending: with the reason where proof or inputs are malformed, None
    where the equation fails. ValueError if the key is malformed."""

@final
class ScanIndex:
    """Pedersen commitments to the components of an index's positions; immutable."""

    def __new__(cls, points: bytes, dimension: int, capacity: int) -> Self:
        """The published points, 32 bytes each, checked."""

    @staticmethod
    def commit(rows_int8: bytes, dimension: int, capacity: int, key: bytes) -> ScanIndex:
        """Commit to int8 rows in -7..7 of shape (positions, dimension), blinded from a 32-byte key."""

    @staticmethod
    def commit_components(
        columns_int8: bytes, first: int, positions: int, capacity: int, key: bytes
    ) -> bytes:
        """The points of components `first..` alone, from their int8 columns of shape (components, positions)."""

    def encode(self) -> bytes:
        """The points, 32 bytes each."""

    def digest(self) -> bytes:
        """SHA-256 over capacity, dimension and points."""

@final
class ScanParameters:
    """What a tenant's policy fixes for its scan proofs; immutable. `sample`: the commitments of the
    window's verified sampling proof, of a sampled tenant.
    """

    def __new__(
        cls,
        window: bytes,
        gains: list[int],
        listed: int,
        lo: int,
        hi: int,
        lattice: int,
        sample: bytes | None = None,
    ) -> Self: ...

def scan_prove_noise(
    index: ScanIndex, parameters: ScanParameters, slots: list[bytes], seeds: list[bytes], low_memory: bool
) -> tuple[bytes, list[bytes], list[bytes]]:
    """Noise proof of slots (c_seed, beacon, slot), each with its seed: proof, and of each slot the commitments
    and their secret blindings.
    """

def scan_bits_prove(
    capacity: int, context: bytes, slot_elements: bytes, seed: bytes, bound: int, low_memory: bool
) -> tuple[bytes, bytes, bytes]:
    """Proof of a slot's Bernoulli bits, which positions' draws are below the bound: proof, commitments, and their
    secret blindings.
    """

def scan_bits_verify(capacity: int, context: bytes, slot_elements: bytes, bound: int, proof: bytes) -> bytes:
    """The commitments to the Bernoulli bits that a proof is about; ValueError with the reason unless it holds."""

def scan_documents_commit(capacity: int, row: bytes, names: bytes, named: bytes, key: bytes) -> bytes:
    """The points of a document table under blindings from a 32-byte key: of the row of each position (int32; the number
    of rows for none), of the marks of rows with a name, and of the five columns of names. `names` has an element for
    each row, and `named` a byte 0 or 1.
    """

def scan_documents_prove(
    context: bytes,
    slot_elements: bytes,
    numbers: tuple[int, int, int, int, int],
    table: bytes,
    previous: bytes | None,
    listed: bool,
    private: tuple[bytes, bytes, bytes, bytes, bytes],
    before: tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, tuple[bytes, bytes] | None] | None,
    low_memory: bool,
) -> tuple[bytes, list[bytes], list[bytes]]:
    """Proof of a sample by document: proof, and of sample, bits and numbers of positions the commitments and their
    secret blindings. With `listed` the last points of the table before are of its listed rows, and the last commitment
    is that to the rows that are listed when the window begins. `numbers`: capacity, rows, maximum positions of a row,
    drawn rows, bound of the draws. `private`: seed; row of each position, names, marks and key of the table. `before`:
    names, marks and key of the table before, bits and numbers of positions (int32) of its rows, the blindings of both,
    a byte 1 for each row that is carried, and with `listed` the listed rows (bytes) with their blindings.
    """

def scan_documents_verify(
    context: bytes,
    slot_elements: bytes,
    numbers: tuple[int, int, int, int, int],
    table: bytes,
    previous: bytes | None,
    listed: bool,
    proof: bytes,
) -> list[bytes]:
    """The commitments to sample, bits and numbers of positions that a proof is about, and with `listed` to the rows
    that are listed when the window begins; ValueError with the reason unless it holds."""

def scan_row_names_prove(
    context: bytes,
    capacity: int,
    rows: int,
    table: bytes,
    positions: bytes,
    names: bytes,
    private: tuple[bytes, bytes, bytes, bytes],
) -> bytes:
    """Proof that the rows of positions have these names: `positions` increasing int32, 1 to 10,000 of them, and `names`
    an element for each. Positions with one name have one row. `table` has the points of `scan_documents_commit`;
    `private` the row of each position, names, marks and key of the table. ValueError names the first position that has
    no proof: without a row, with another name, or with another row than an earlier position with its name.
    """

def scan_row_names_verify(
    context: bytes, capacity: int, rows: int, table: bytes, positions: bytes, names: bytes, proof: bytes
) -> None:
    """ValueError with the reason unless a proof of `scan_row_names_prove` holds."""

def scan_prove(
    index: ScanIndex,
    parameters: ScanParameters,
    records: list[tuple[bytes, bytes, bytes, tuple[bytes, bytes], tuple[bytes, bytes]]],
    noise_proof: tuple[bytes, list[bytes], list[bytes]] | None,
    key: bytes,
    low_memory: bool,
    sample: tuple[bytes, bytes] | None = None,
) -> bytes:
    """Query proof of records, each (record, noise, scores, (query, salt), (positions, salt)), of which the first is
    c_seed, beacon, slot, context, cq and htopk; noise, scores and positions int32. `noise_proof`: that of their slots,
    as `scan_prove_noise` makes it. Without gains there is no noise proof, and no noise. `sample`: of a sampled tenant
    one byte 0 or 1 a position, and the blindings.
    """

def scan_max_batch(capacity: int, gains: int) -> int:
    """Maximum records of one proof, for these numbers of positions and gains."""

def scan_verify(
    index: ScanIndex, parameters: ScanParameters, records: list[bytes], noise_proof: bytes, proof: bytes
) -> None:
    """ValueError with the reason unless noise proof (empty without gains) and query proof hold for the records."""

@final
class ScanBatch:
    """Proofs of one tenant's records, verified a chunk at a time in memory that does not grow with their number."""

    CHUNK: ClassVar[int]
    def __new__(cls, index: ScanIndex, parameters: ScanParameters) -> Self:
        """An empty batch."""

    def add(self, records: list[tuple[list[bytes], bytes, bytes]]) -> list[tuple[int, str]]:
        """Add (records, noise proof, proof), each of one record or several; the indices of those that are no proof at
        all, with the reason.
        """

    def holds(self) -> bool:
        """Whether everything that was added and not refused is proved."""

    def search(self, records: list[tuple[list[bytes], bytes, bytes]]) -> list[tuple[int, str]]:
        """The indices of those that do not verify, with the reason, whatever was added before."""

    def retained(self) -> int:
        """Points and scalars that stay in memory between chunks."""

@final
class ScanPooledListing:
    """What policy and window of a tenant with pooled listing fix; immutable."""

    def __new__(
        cls,
        window: bytes,
        row: bytes,
        kept: bytes,
        numbers: tuple[int, int, int],
        answer: tuple[int, int],
        scores: tuple[int, int, int],
    ) -> Self:
        """Digest of the window, commitments to the row of each position and to the bit of each row. `numbers`: rows,
        maximum positions of a row, bound of chance. `answer`: minimum relevant score, places. `scores`: score window
        and lattice."""

def scan_encoder_protocol() -> bytes:
    """The digest that names the protocol of proofs of the integer encoder."""

def scan_pooled_protocol() -> bytes:
    """The digest that names the protocol of pooled listing."""

def scan_pooled_prove(
    index: ScanIndex,
    pooled_listing: ScanPooledListing,
    record_elements: bytes,
    table: tuple[bytes, bytes, bytes, bytes, bytes],
    listed: tuple[bytes, bytes, bytes, bytes],
    answer: tuple[bytes, tuple[bytes, bytes], tuple[bytes, bytes]],
    key: bytes,
    low_memory: bool,
) -> tuple[bytes, bytes]:
    """Proof of a record, and the commitments to the listed rows after it. `table`: seed, row of each position (int32),
    key of the table, bits of its rows and their blindings. `listed`: commitments, bits and blindings before the record,
    and blindings after it, which must be used for nothing else. `answer`: scores int32; query int8 and its salt; places
    int32, the number of positions for an empty one, and the salt of htopk. `key`: the index's."""

def scan_listed_rows(capacity: int, listed: bytes, blindings: bytes) -> bytes:
    """Commitments to the listed rows of a document table, one byte 0 or 1 a row, under one blinding a point."""

def scan_listed_empty(capacity: int, rows: int) -> bytes:
    """The commitments that a tenant's first record starts from: no listed row, under the blinding 1 in every point."""

@final
class ScanPooledBatch:
    """Records of one tenant with pooled listing; as `ScanBatch`."""

    CHUNK: ClassVar[int]
    def __new__(cls, index: ScanIndex, pooled_listing: ScanPooledListing) -> Self:
        """An empty batch."""

    def add(self, records: list[tuple[bytes, bytes, bytes, bytes]]) -> list[tuple[int, str]]:
        """Add (record, listed rows before, listed rows after, proof); the indices of those that are no proof at all."""

    def holds(self) -> bool:
        """Whether everything that was added and not refused is proved."""

    def search(self, records: list[tuple[bytes, bytes, bytes, bytes]]) -> list[tuple[int, str]]:
        """The indices of the records that do not verify, with the reason, whatever was added before."""

    def retained(self) -> int:
        """Points and scalars that stay in memory between chunks."""

@final
class ScanEmbedBatch:
    """Proofs of A1 about one table; as `ScanBatch`. `parameters`: maximum tokens of a query, and A."""

    CHUNK: ClassVar[int]
    def __new__(cls, table: ScanTable, parameters: tuple[int, int]) -> Self:
        """An empty batch."""

    def add(self, records: list[tuple[bytes, bytes]]) -> list[tuple[int, str]]:
        """Add (statement, proof) pairs; the indices of those that are no proof at all, with the reason."""

    def holds(self) -> bool:
        """Whether everything that was added and not refused is proved."""

    def search(self, records: list[tuple[bytes, bytes]]) -> list[tuple[int, str]]:
        """The indices of the pairs that do not verify, with the reason, whatever was added before."""

    def retained(self) -> int:
        """Points and scalars that stay in memory between chunks."""

def scan_protocol() -> bytes:
    """The protocol's digest: of its rules of layout, its limits, and what every kind of run says."""

def scan_generators() -> bytes:
    """The first generators as a table, 64 bytes each (x, y, big-endian), which a page takes instead of hashing them."""

def scan_limits() -> dict[str, int]:
    """The largest value of every public parameter, by name."""

@final
class ScanTable:
    """Commitments to the columns of an embedder's published table, not blinded; immutable."""

    def __new__(cls, points: bytes, dimension: int, vocabulary: int) -> Self:
        """The points, 32 bytes each, checked."""

    @staticmethod
    def commit(rows_int8: bytes, dimension: int) -> ScanTable:
        """Commit to int8 rows in -7..7 of shape (vocabulary, dimension)."""

    def encode(self) -> bytes:
        """The points, 32 bytes each."""

    def digest(self) -> bytes:
        """SHA-256 over number of rows, dimension and points."""

def scan_embed_prove(
    table: ScanTable,
    parameters: tuple[int, int],
    statement: bytes,
    rows_int8: bytes,
    tokens: bytes,
    salts: bytes,
) -> bytes:
    """Proof of A1 for (context, hq, cq); parameters are (maximum tokens, A), tokens uint32, salts of hq and cq."""

def scan_embed_verify(table: ScanTable, parameters: tuple[int, int], statement: bytes, proof: bytes) -> None:
    """ValueError with the reason unless the proof of A1 holds for (context, hq, cq)."""

class EncoderOutOfRange(ValueError):
    """A text whose values leave a range of the integer encoder: no proof about it exists."""

@final
class EncoderModel:
    """A BERT encoder in integer arithmetic, for proofs of A1 (docs/scan/encoder-embed.md); immutable."""

    def __new__(
        cls,
        shape: Sequence[int],
        scales: Sequence[int],
        weights: bytes,
        exp: bytes,
        gelu: bytes,
        first: int,
        pins: bytes | None = None,
    ) -> Self:
        """From the arguments of `IntegerEncoder`, the token that all texts begin with, and what `pins` returned before:
        then the model makes no commitments. ValueError if those pins belong to other integers, as far as the vectors
        show it."""

    def pins(self) -> bytes:
        """What a verifier has instead of the integers: commitments, and the vectors of the model."""

    def digest(self) -> bytes:
        """SHA-256 of `pins`."""

    def prove(self, parameters: tuple[int, int], statement: bytes, tokens: bytes, salts: bytes) -> bytes:
        """Proof of A1 for (context, hq, cq); parameters are (places T, A), tokens uint32, salts of hq and cq.
        ValueError if the statement is false; EncoderOutOfRange if the text leaves a range."""

    def prove_all(
        self,
        parameters: tuple[int, int],
        statements: Sequence[bytes],
        tokens: Sequence[bytes],
        salts: Sequence[bytes],
    ) -> bytes:
        """One proof for 1, 2, 4, 8 or 16 records, each with the values of `prove` (docs/scan/encoder-batch.md). The
        error about a text beyond a range, or about another cq, names the query.

        :raises ValueError: another number of records, or malformed values
        """

@final
class EncoderPins:
    """A model of the integer encoder as a verifier of A1 has it; immutable."""

    def __new__(cls, pins: bytes) -> Self:
        """From the bytes of `EncoderModel.pins`, checked."""

    def digest(self) -> bytes:
        """SHA-256 of the bytes."""

    def verify(self, parameters: tuple[int, int], statement: bytes, proof: bytes) -> None:
        """ValueError with the reason unless the proof of A1 holds for (context, hq, cq) and (places T, A)."""

    def verify_all(self, parameters: tuple[int, int], statements: Sequence[bytes], proof: bytes) -> None:
        """The same for one proof of several records."""

    def verify_many(
        self, parameters: tuple[int, int], items: Sequence[tuple[Sequence[bytes], bytes]]
    ) -> list[tuple[int, str]]:
        """Verifies proofs in one sum, each of the records with the statements beside it. The numbers of refused
        proofs, ascending, with the reasons."""

@final
class ScanCoalition:
    """What a coalition certificate is about; immutable. `room`: log2 of the norms that it has room for."""

    def __new__(
        cls,
        context: bytes,
        dimension: int,
        cq: bytes,
        accounts: list[int],
        tenants: list[int],
        first: list[int],
        theta: tuple[int, int],
        largest: tuple[int, int],
        room: int,
    ) -> Self: ...
    @staticmethod
    def room(vectors: bytes, dimension: int) -> int:
        """The room that a certificate of these vectors (int8) needs."""

    def runs(self) -> int:
        """How many runs over pairs a certificate has."""

    def prove_records(self, witness: tuple[bytes, bytes, list[int]]) -> tuple[bytes, bytes]:
        """The run over records of (vectors, salts, labels), and the secret blindings of its columns."""

    def prove_pairs(
        self, witness: tuple[bytes, bytes, list[int]], records: bytes, blindings: bytes, run: int
    ) -> bytes:
        """One run over pairs."""

    def verify(self, records: bytes, pairs: list[bytes]) -> None:
        """ValueError with the reason unless the certificate holds."""
