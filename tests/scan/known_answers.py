"""Published proofs of the scan argument for its second verifier, and what tests change in them."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_audit.proofs.backends.reference import (
    attention,
    coalition,
    document_table,
    drawn,
    embed,
    encoder,
    encoder_embed,
    encoder_input,
    encoder_output,
    feed_forward,
    pooled_listing,
    query,
    row_names,
)
from rag_audit.proofs.backends.reference.block import Blocks, Dense, Matrix, Norm
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
    """16-bit integers of a file with the points of their matrices, read from the first on."""

    def __init__(self, text: str, points: str = "", row_bits: int = 12) -> None:
        data = base64.b64decode(text)
        self._left = list(struct.unpack(f"<{len(data) // 2}h", data))
        self._points, self._row_bits = rows(points), row_bits
        self.matrices: list[tuple[npt.NDArray[np.int64], Matrix]] = []
        """The entries of each matrix that was read, with its commitments."""

    def take(self, count: int) -> list[int]:
        """The next integers."""
        taken, self._left = self._left[:count], self._left[count:]
        assert len(taken) == count
        return taken

    def dense(self, inputs: int, outputs: int) -> Dense:
        """The matrix and the bias of a dense layer."""
        entries = np.array(self.take(inputs * outputs)).reshape(inputs, outputs)
        matrix = self._matrix(inputs, outputs)
        self.matrices.append((entries, matrix))
        return Dense(matrix, self.take(outputs))

    def _matrix(self, inputs: int, outputs: int) -> Matrix:
        of_inputs, of_outputs = Blocks(inputs), Blocks(outputs)
        each = (1 << of_inputs.variables + of_outputs.variables) - 1 >> self._row_bits
        columns = []
        for _ in range(of_inputs.count * of_outputs.count):
            columns.append(self._points[: each + 1])
            del self._points[: each + 1]
        return Matrix(inputs, outputs, columns)

    def norm(self, width: int, scale: int) -> Norm:
        """Gain and bias of a LayerNorm."""
        return Norm(self.take(width), self.take(width), scale)

    def attention(self, doc: dict[str, Any]) -> attention.Weights:
        """The weights of an attention block."""
        width, scales = doc["width"], [doc[f"scale_{name}"] for name in "xqvo"]
        layers = [self.dense(width, width) for _ in range(4)]
        exp = doc["exp_above_0"] + [0] * (8192 - len(doc["exp_above_0"]))
        norm = self.norm(width, scales[0])
        return attention.Weights(self._row_bits, doc["heads"], *scales, *layers, norm, exp)

    def feed_forward(self, doc: dict[str, Any]) -> feed_forward.Weights:
        """The weights of a feed-forward block."""
        width, inner, scales = doc["width"], doc["inner"], [doc[f"scale_{name}"] for name in "xzg"]
        layers = self.dense(width, inner), self.dense(inner, width)
        gelu = Integers(doc["gelu"]).take(4096)
        norm = self.norm(width, scales[0])
        return feed_forward.Weights(self._row_bits, *scales, *layers, norm, gelu)

    def end(self) -> None:
        """No integer and no point is left."""
        assert not self._left and not self._points


def of_block(doc: dict[str, Any]) -> Integers:
    """The weights of a block."""
    return Integers(doc["weights"], doc["matrices"], doc["row_variables"])


def _columns(doc: dict[str, Any], name: str, count: int) -> list[list[Point]]:
    """The rows of `count` columns of equal length."""
    points = rows(doc[name])
    each = len(points) // count
    return [points[i : i + each] for i in range(0, len(points), each)]


def _matrix(doc: dict[str, Any], name: str, width: int) -> list[list[Point]]:
    """The rows of each column of a matrix."""
    return _columns(doc, name, width // (width & -width))


def _matrices(doc: dict[str, Any], width: int) -> Iterator[list[list[Point]]]:
    """The rows of each column of the first matrix, and of the last."""
    return (_matrix(doc, name, width) for name in ("inputs", "outputs"))


def _feed_forward_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its inputs and outputs"""
    weights = of_block(doc).feed_forward(doc)
    assert weights.digest.hex() == doc["weights_digest"]
    columns = _matrices(part, doc["width"])
    requested = feed_forward.FeedForward(int(doc["context"], 16), weights, doc["places"], *columns)
    return KnownAnswers(feed_forward.RUN, requested, feed_forward.read, part)


def _attention_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its marks, inputs and outputs"""
    weights = of_block(doc).attention(doc)
    assert weights.digest.hex() == doc["weights_digest"]
    (marks,), columns = rows(part["marks"]), _matrices(part, doc["width"])
    requested = attention.Attention(int(doc["context"], 16), weights, doc["places"], marks, *columns)
    return KnownAnswers(attention.RUN, requested, attention.read, part)


def _layers(doc: dict[str, Any]) -> list[encoder.Layer]:
    layers = []
    for text, points, digests in zip(doc["weights"], doc["matrices"], doc["weights_digests"], strict=True):
        integers = Integers(text, points, doc["row_variables"])
        layer = encoder.Layer(integers.attention(doc), integers.feed_forward(doc))
        integers.end()
        layers.append(layer)
        assert [layer.attention.digest.hex(), layer.feed_forward.digest.hex()] == digests
    return layers


def _encoder_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its marks, inputs and outputs"""
    (marks,), columns = rows(part["marks"]), _matrices(part, doc["width"])
    requested = encoder.Encoder(int(doc["context"], 16), _layers(doc), doc["places"], marks, *columns)
    return KnownAnswers(encoder.RUN, requested, encoder.read, part)


def _output_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its marks, inputs and hash"""
    width, (marks,) = doc["width"], rows(part["marks"])
    context, (cq,) = int(doc["context"], 16), numbers(part, "cq")
    columns = _matrix(part, "inputs", width)
    requested = encoder_output.Output(context, doc["places"], width, doc["norm_factor"], cq, marks, columns)
    return KnownAnswers(encoder_output.RUN, requested, encoder_output.read, part)


def _embeddings(doc: dict[str, Any]) -> encoder_input.Embeddings:
    width = doc["width"]
    gain, bias = (Integers(doc[name]).take(width) for name in ("gain", "bias"))
    words, of_places = _columns(doc, "words", width), _matrix(doc, "of_places", width)
    sizes = (doc[name] for name in ("vocabulary", "place_rows", "row_bits"))
    norm = Norm(gain, bias, doc["scale_x"])
    embeddings = encoder_input.Embeddings(*sizes, words, of_places, norm, doc["unused"])
    assert embeddings.digest.hex() == doc["embeddings_digest"]
    return embeddings


def _input_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with its marks, outputs and hash"""
    width, (marks,) = doc["width"], rows(part["marks"])
    context, (hq,) = int(doc["context"], 16), numbers(part, "hq")
    columns = _matrix(part, "outputs", width)
    requested = encoder_input.Input(context, _embeddings(doc), doc["places"], hq, marks, columns)
    return KnownAnswers(encoder_input.RUN, requested, encoder_input.read, part)


def _encoder_embed_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof with both hashes"""
    context, hq, cq = *numbers(doc, "context"), *numbers(part, "hq", "cq")
    return _embedded(doc, part, [encoder_embed.Hashes(context, hq, cq)])


def _several_embedded_of(doc: dict[str, Any], part: dict[str, Any]) -> KnownAnswers:
    """:param part: the proof, with another hash of the first query's vector if it is a wrong proof"""
    queries = [encoder_embed.Hashes(*numbers(query, "context", "hq", "cq")) for query in doc["queries"]]
    if "cq" in part:
        (cq,) = numbers(part, "cq")
        queries[0] = replace(queries[0], cq=cq)
    return _embedded(published("encoder-embed")["run"], part, queries)


def _embedded(
    model: dict[str, Any], part: dict[str, Any], queries: list[encoder_embed.Hashes]
) -> KnownAnswers:
    requested = encoder_embed.EncoderEmbedded(
        queries, _embeddings(model), _layers(model), model["places"], model["norm_factor"]
    )
    return KnownAnswers(encoder_embed.RUN, requested, encoder_embed.read, part)


ENCODERS = {
    "feed forward": ("feed-forward", "block", _feed_forward_of),
    "attention": ("attention", "block", _attention_of),
    "encoder": ("encoder", "layers", _encoder_of),
    "encoder output": ("encoder-output", "output", _output_of),
    "encoder input": ("encoder-input", "input", _input_of),
    "encoder embed": ("encoder-embed", "run", _encoder_embed_of),
    "encoder embed of several": ("encoder-batch", "run", _several_embedded_of),
}
"""The runs about the integer encoder: the file of each, what the file calls the values with a proof, and their reader."""


def _of_encoder(name: str) -> KnownAnswers:
    file, honest, of = ENCODERS[name]
    doc = published(file)[honest]
    return of(doc, doc)


WITH_WRONG_PROOFS = (*ENCODERS, "row names")
"""The runs with published wrong proofs."""


def wrong_proofs(name: str) -> dict[str, tuple[str, KnownAnswers]]:
    """The published wrong proofs of a run under the names of their faults, each with the claim that refuses it."""
    if name == "row names":
        return wrong_row_names()
    file, honest, of = ENCODERS[name]
    doc = published(file)
    return {part["name"]: (part["claim"], of(doc[honest], part)) for part in doc["negative"]}


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
    **{name: partial(_of_encoder, name) for name in ENCODERS},
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
