"""Known answers for Bernoulli bits: sampled positions, and the commitments to them."""

from __future__ import annotations

from typing import Any

from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.commitments import (
    noise_key,
    sample_commitment,
    sampling_slot,
)
from rag_audit.relation.draws import bernoulli_bits, uniforms
from rag_audit.relation.field import digest_to_field, to_hex
from rag_audit.relation.vectors import pack_bits

SEED = "rag-audit/vectors/v2"
"""The beginning of the labels that the inputs are derived from."""


def element(label: str, number: int = 0) -> int:
    """Derive a field element from a label by hashing, so that the author cannot choose it."""
    return digest_to_field(f"{SEED}/{label}/{number}".encode())


def bits(label: str, count: int) -> list[bool]:
    """Derive bits from a label by hashing, so that the author cannot choose them."""
    return [bool(element(label, number) & 1) for number in range(count)]


def digits(values: list[bool]) -> str:
    """Return bits as a string of 0 and 1, in the order of positions."""
    return "".join("01"[v] for v in values)


def coin_vectors() -> dict[str, Any]:
    """Return the cases of `v1/coins.json`. Bits are strings of 0 and 1 in the order of positions."""
    kappa = [element("kappa", n) for n in range(3)]
    half, maximum = PROBABILITY_RANGE // 2, PROBABILITY_RANGE - 1
    drawn = uniforms(kappa[0], 100)
    slot = sampling_slot("w-1", "tenant-a")
    packed = [bits("packed", n) for n in (1, 252, 253, 505)]
    return {
        "uniforms": [
            {"kappa": to_hex(k), "count": n, "result": uniforms(k, n)}
            for k, n in ((kappa[0], 100), (kappa[1], 1), (kappa[2], 80))
        ],
        "coins": [
            {"kappa": to_hex(kappa[0]), "count": 100, "bound": b, "result": digits(bernoulli_bits(kappa[0], 100, b))}
            for b in (1, half, maximum, drawn[0], drawn[0] + 1)
        ],
        "pack_bits": [{"bits": digits(p), "result": [to_hex(x) for x in pack_bits(p)]} for p in packed],
        "sampling_slot": [
            {"window": w, "tenant": t, "result": to_hex(sampling_slot(w, t))}
            for w, t in (("w-1", "tenant-a"), ("w-1", "tenant-b"), ("w-2", "tenant-a"))
        ],
        "sampling_key": [
            {
                "s0": to_hex(element("s0")), "s1": to_hex(element("s1")), "beacon": to_hex(element("beacon")),
                "slot": to_hex(slot),
                "result": to_hex(noise_key(element("s0"), element("s1"), element("beacon"), slot)),
            }
        ],
        "kept": [
            {
                "salt": to_hex(element("salt")),
                "bits": digits(p),
                "result": to_hex(sample_commitment(element("salt"), p)),
            }
            for p in packed
        ],
        "negative": [
            {"name": "bound_of_never", "bound": 0, "why": "strictly between 0 and 1"},
            {"name": "bound_of_always", "bound": PROBABILITY_RANGE, "why": "strictly between 0 and 1"},
            {"name": "bits_padding_not_zero", "elements": [to_hex(1 << 3)], "count": 3, "why": "a second packing"},
            {"name": "bits_too_wide", "elements": [to_hex(1 << 252)], "count": 252, "why": "252 bits an element"},
            {"name": "bits_wrong_count", "elements": [to_hex(1)], "count": 253, "why": "two elements needed"},
        ],
    }  # fmt: skip
