"""Published proofs of the scan argument for its second verifier, and what tests change in them."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from rag_audit.proofs.backends.reference import (
    attention,
    coalition,
    document_table,
    drawn,
    embed,
    encoder,
    feed_forward,
    pooled_listing,
    query,
    row_names,
)
from rag_audit.proofs.backends.reference.block import Dense, Norm
from rag_audit.proofs.backends.reference.drawn import BernoulliBits, Noise, Seed
from rag_audit.proofs.backends.reference.group import G, Point, decode, encode, total
from rag_audit.proofs.backends.reference.index import Index
from rag_audit.proofs.backends.reference.session import Session
from rag_audit.proofs.backends.reference.transcript import CLAIM, POINT, SCALAR, Reader, Transcript
from rag_audit.relation.scores import ScoreWindow

VECTORS = Path(__file__).parents[2] / "vectors/v1/scan"


@cache
def published(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return result


@dataclass(frozen=True)
class KnownAnswers:
    """A published proof, and its run under a statement."""

    run: str
    statement: Any
    read: Callable[[Any, Reader], Session]
    part: dict[str, Any]

    @property
    def proof(self) -> bytes:
        return base64.b64decode(self.part["proof"])

    def holds(self, proof: bytes, statement: Any = None) -> bool:
        reader = Reader(Transcript(self.run), proof)
        return self.read(self.statement if statement is None else statement, reader).holds()


def numbers(doc: dict[str, Any], *names: str) -> list[int]:
    return [int(doc[name], 16) for name in names]


def rows(text: str) -> list[Point]:
    data = base64.b64decode(text)
    return [decode(data[i : i + 32]) for i in range(0, len(data), 32)]


def _digest(*parts: bytes | str) -> bytes:
    return hashlib.sha256(b"".join(p if isinstance(p, bytes) else bytes.fromhex(p) for p in parts)).digest()


def _noise() -> KnownAnswers:
    doc = published("proofs")["answer"]
    seed = Seed(*numbers(doc, "c_seed", "beacon", "slot"))
    slots = Noise(bytes.fromhex(doc["window"]), [seed], doc["capacity"], doc["gains"])
    return KnownAnswers(slots.RUN, slots, lambda s, r: drawn.read(s, r)[0], doc["certificate"])


def _query() -> KnownAnswers:
    doc, certificate = published("proofs")["answer"], _noise()
    columns = [decode(certificate.proof[:32])]
    named = (doc[name] for name in ("window", "c_seed", "beacon", "slot", "context"))
    one, window_of, *slot = (1).to_bytes(8, "big"), *named
    context = _digest(b"rag-audit/scan/v1/records", window_of, one, *slot, _digest(certificate.proof))
    index = Index.decode(base64.b64decode(doc["index"]), doc["dimension"], doc["capacity"])
    window = ScoreWindow(doc["lo"], doc["hi"], doc["lattice"])
    commitments = [tuple(numbers(doc, "cq", "htopk"))]
    requested = query.Asked(context, index, doc["gains"], window, doc["listed"], [columns], None, commitments)
    return KnownAnswers(query.RUN, requested, query.read, doc["query_proof"])


def _embed() -> KnownAnswers:
    doc = published("proofs")["embed"]
    table = Index.decode(base64.b64decode(doc["table"]), doc["dimension"], doc["vocabulary"] + 1)
    context, hq, cq = numbers(doc, "context", "hq", "cq")
    requested = embed.Embedded(context, table, doc["tokens"], doc["norm_factor"], hq, cq)
    return KnownAnswers(embed.RUN, requested, embed.read, doc)


def _coins() -> KnownAnswers:
    doc = published("proofs")["coins"]
    seed = Seed(*numbers(doc, "c_seed", "beacon", "slot"))
    requested = BernoulliBits(bytes.fromhex(doc["context"]), seed, doc["capacity"], doc["bound"])
    return KnownAnswers(requested.RUN, requested, lambda s, r: drawn.read(s, r)[0], doc)


def _document_table(file: str = "document-table") -> KnownAnswers:
    doc = published(file)["table"]
    seed = Seed(*numbers(doc, "c_seed", "beacon", "slot"))
    sizes = (doc[name] for name in ("capacity", "rows", "positions_per_row", "fresh", "bound"))
    (row, *names), before = (
        [[point] for point in rows(doc[f"{part}_points"])] for part in ("table", "previous")
    )
    requested = document_table.DocumentTable(bytes.fromhex(doc["context"]), seed, *sizes, row, names, before)
    return KnownAnswers(requested.run, requested, lambda s, r: document_table.read(s, r)[0], doc)


def _row_names_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its table, opened positions and names"""
    row, *columns = [[point] for point in rows(part["table_points"])]
    names = [int(name, 16) for name in part["names"]]
    sizes = doc["capacity"], doc["rows"]
    context, positions = bytes.fromhex(doc["context"]), part["opened"]
    requested = row_names.RowNames(context, *sizes, row, columns, positions, names)
    return KnownAnswers(row_names.RUN, requested, row_names.read, part)


def _row_names() -> KnownAnswers:
    doc = published("row-names")["row_names"]
    return _row_names_of(doc, doc)


def wrong_row_names() -> dict[str, tuple[str, KnownAnswers]]:
    """The published wrong proofs of names of rows by their faults, each with the claim that refuses it."""
    doc = published("row-names")
    wrong = {part["name"]: part for part in doc["negative"]}
    return {name: (part["claim"], _row_names_of(doc["row_names"], part)) for name, part in wrong.items()}


def _pooled_listing() -> KnownAnswers:
    doc = published("pooled-listing")["records"]
    index = Index.decode(base64.b64decode(doc["index"]), doc["dimension"], doc["capacity"])
    lists = ([int(x, 16) for x in doc[name]] for name in ("c_seed", "beacon", "slot", "cq", "htopk"))
    records = [
        pooled_listing.Requested(Seed(c_seed, beacon, slot), cq, htopk, [after])
        for c_seed, beacon, slot, cq, htopk, after in zip(*lists, rows(doc["after_points"]), strict=True)
    ]
    sizes = (doc[name] for name in ("rows", "positions_per_row", "bound", "threshold"))
    window = ScoreWindow(doc["lo"], doc["hi"], doc["lattice"])
    given = [rows(doc[f"{name}_points"]) for name in ("row", "kept", "before")]
    requested = pooled_listing.PooledListing(
        bytes.fromhex(doc["context"]), index, *sizes, window, doc["listed"], *given, records
    )
    return KnownAnswers(pooled_listing.RUN, requested, pooled_listing.read, doc)


def _coalition() -> coalition.Coalition:
    doc = published("proofs")["coalition"]
    lists = (doc[name] for name in ("accounts", "tenants", "first"))
    return coalition.Coalition(
        bytes.fromhex(doc["context"]), doc["dimension"], [int(cq, 16) for cq in doc["cq"]], *lists,
        tuple(doc["theta"]), tuple(doc["largest"]), doc["room"],
    )  # fmt: skip


def _records() -> KnownAnswers:
    part = published("proofs")["coalition"]["records"]
    return KnownAnswers(coalition.RUN, _coalition(), lambda s, r: coalition.read(s, r)[0], part)


def _pairs() -> KnownAnswers:
    before, part = _records(), published("proofs")["coalition"]["pairs"]
    _, committed = coalition.read(before.statement, Reader(Transcript(before.run), before.proof))
    digest = hashlib.sha256(before.proof).digest()
    return KnownAnswers(
        coalition.PAIRS, before.statement, lambda s, r: coalition.read_pairs(s, committed, digest, 0, r), part
    )


class Integers:
    """16-bit integers of a file, read from the first on."""

    def __init__(self, text: str) -> None:
        data = base64.b64decode(text)
        self._left = list(struct.unpack(f"<{len(data) // 2}h", data))

    def take(self, count: int) -> list[int]:
        """The next integers."""
        taken, self._left = self._left[:count], self._left[count:]
        assert len(taken) == count
        return taken

    def dense(self, inputs: int, outputs: int) -> Dense:
        """The matrix and the bias of a dense layer."""
        matrix = [self.take(outputs) for _ in range(inputs)]
        return Dense(matrix, self.take(outputs))

    def norm(self, width: int, scale: int) -> Norm:
        """Gain and bias of a LayerNorm."""
        return Norm(self.take(width), self.take(width), scale)

    def attention(self, doc: dict[str, Any]) -> attention.Weights:
        """The weights of an attention block."""
        width, scales = doc["width"], [doc[f"scale_{name}"] for name in "xqvo"]
        layers = [self.dense(width, width) for _ in range(4)]
        exp = doc["exp_above_0"] + [0] * (8192 - len(doc["exp_above_0"]))
        return attention.Weights(doc["heads"], *scales, *layers, self.norm(width, scales[0]), exp)

    def feed_forward(self, doc: dict[str, Any]) -> feed_forward.Weights:
        """The weights of a feed-forward block."""
        width, inner, scales = doc["width"], doc["inner"], [doc[f"scale_{name}"] for name in "xzg"]
        layers = self.dense(width, inner), self.dense(inner, width)
        gelu = Integers(doc["gelu"]).take(4096)
        return feed_forward.Weights(*scales, *layers, self.norm(width, scales[0]), gelu)

    def end(self) -> None:
        """No integer is left."""
        assert not self._left


def _matrices(doc: dict[str, Any], width: int) -> Iterator[list[list[Point]]]:
    """The rows of each column of the first matrix, and of the last."""
    count = width // (width & -width)
    for name in ("inputs", "outputs"):
        points = rows(doc[name])
        each = len(points) // count
        yield [points[i : i + each] for i in range(0, len(points), each)]


def _feed_forward_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its inputs and outputs"""
    weights = Integers(doc["weights"]).feed_forward(doc)
    assert weights.digest.hex() == doc["weights_digest"]
    columns = _matrices(part, doc["width"])
    requested = feed_forward.FeedForward(int(doc["context"], 16), weights, doc["places"], *columns)
    return KnownAnswers(feed_forward.RUN, requested, feed_forward.read, part)


def _attention_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its marks, inputs and outputs"""
    weights = Integers(doc["weights"]).attention(doc)
    assert weights.digest.hex() == doc["weights_digest"]
    (marks,), columns = rows(part["marks"]), _matrices(part, doc["width"])
    requested = attention.Attention(int(doc["context"], 16), weights, doc["places"], marks, *columns)
    return KnownAnswers(attention.RUN, requested, attention.read, part)


def _encoder_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its marks, inputs and outputs"""
    layers = []
    for text, digests in zip(doc["weights"], doc["weights_digests"], strict=True):
        integers = Integers(text)
        layer = encoder.Layer(integers.attention(doc), integers.feed_forward(doc))
        integers.end()
        layers.append(layer)
        assert [layer.attention.digest.hex(), layer.feed_forward.digest.hex()] == digests
    (marks,), columns = rows(part["marks"]), _matrices(part, doc["width"])
    requested = encoder.Encoder(int(doc["context"], 16), layers, doc["places"], marks, *columns)
    return KnownAnswers(encoder.RUN, requested, encoder.read, part)


BLOCKS = {
    "feed forward": ("feed-forward", _feed_forward_of),
    "attention": ("attention", _attention_of),
    "encoder": ("encoder", _encoder_of),
}


def _block(name: str) -> KnownAnswers:
    file, of = BLOCKS[name]
    doc = _honest(published(file))
    return of(doc, doc)


def _honest(doc: dict[str, Any]) -> dict[str, Any]:
    """The block or the layers with a proof."""
    result: dict[str, Any] = doc["layers"] if "layers" in doc else doc["block"]
    return result


def wrong_proofs(name: str) -> dict[str, tuple[str, KnownAnswers]]:
    """The published wrong proofs of a block under the names of their faults, each with the claim that refuses it."""
    file, of = BLOCKS[name]
    doc = published(file)
    return {part["name"]: (part["claim"], of(_honest(doc), part)) for part in doc["negative"]}


KNOWN_ANSWERS = {
    "noise": _noise,
    "query": _query,
    "embed": _embed,
    "coins": _coins,
    "document table": _document_table,
    "pooled document table": partial(_document_table, "pooled-listing"),
    "pooled listing": _pooled_listing,
    "row names": _row_names,
    "coalition records": _records,
    "coalition pairs": _pairs,
    "feed forward": partial(_block, "feed forward"),
    "attention": partial(_block, "attention"),
    "encoder": partial(_block, "encoder"),
}


class Labels:
    """What a transcript hears: kinds, labels, data, and four bytes of each state."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str, bytes]] = []
        self.states = b""

    def __call__(self, kind: int, label: str, data: bytes, state: bytes) -> None:
        if kind == CLAIM:
            return
        self.heard.append((kind, label, data))
        self.states += state[:4]


def words_by_label(golden: KnownAnswers) -> Iterator[tuple[str, bytes]]:
    """The proof with another point or scalar in the place of the last one of each label."""
    labels, proof = Labels(), golden.proof
    golden.read(golden.statement, Reader(Transcript(golden.run, labels), proof))
    words = [(kind, label, data) for kind, label, data in labels.heard if kind in (POINT, SCALAR)]
    words = words[len(words) - len(proof) // 32 :]
    assert b"".join(data for *_, data in words) == proof
    for label, i in {label: i for i, (_, label, _) in enumerate(words)}.items():
        kind, _, old = words[i]
        new = encode(total([(1, decode(old)), (1, G(0))])) if kind == POINT else bytes(31) + b"\x01"
        yield label, proof[: 32 * i] + new + proof[32 * (i + 1) :]
