"""A provider's side of the witness protocol, small enough to read: real notes, trees and entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs, sha256
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import Note
from rag_audit.log.signing import SigningKey
from rag_audit.models.records import log_origin
from rag_audit.witness.witness import ShownQuery, Witness

ORIGIN = "provider.example/rag"
OPENS = 1_800_000_000_000
HOUR = 3_600_000


class Clock:
    """A clock that tests move."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


@dataclass
class Ledger:
    """A window's ledger in memory."""

    key: SigningKey
    log: str = log_origin(ORIGIN, "w1")
    """the origin line of its checkpoints"""
    entries: list[bytes] = field(default_factory=list)

    def append(self, value: dict[str, Any]) -> bytes:
        self.entries.append(jcs(value))
        return self.entries[-1]

    @property
    def tree(self) -> HashTree:
        return HashTree(leaf_hash(e) for e in self.entries)

    def checkpoint(self, size: int | None = None) -> Note:
        n = len(self.entries) if size is None else size
        return Checkpoint(self.log, n, self.tree.root(n)).sign(self.key)

    def consistency(self, m: int) -> list[bytes]:
        return self.tree.consistency_path(m)

    def digest(self) -> str:
        return sha256(self.entries[0]).hex()

    def add(self, value: dict[str, Any]) -> bytes:
        """Append an entry with its place; a window header has none."""
        place = {} if value["type"] == "header" else {"seq": len(self.entries)}
        return self.append({**value, **place})

    def shown(self) -> ShownQuery | None:
        """The first query record, as a provider shows it over HTTP."""
        for at, entry in enumerate(self.entries):
            if json.loads(entry)["type"] == "query":
                return ShownQuery(entry, at, self.tree.inclusion_path(at))
        return None

    def close(self, window: str, **changes: Any) -> tuple[bytes, list[bytes]]:
        entry = self.append(
            {
                "type": "trailer",
                "v": 1,
                "seq": len(self.entries),
                "ts": OPENS - HOUR,
                "window": window,
                "queries": 0,
                "enrolments": 0,
                "coalition": None,
                "abandoned": False,
                **changes,
            }
        )
        return entry, self.tree.inclusion_path(len(self.entries) - 1)


def header(window: str = "w1", **changes: Any) -> dict[str, Any]:
    """An opening record with every field; `changes` replace some."""
    return {
        "type": "header",
        "v": 1,
        "origin": ORIGIN,
        "window": window,
        "opens_at": OPENS,
        "closes_at": OPENS + HOUR,
        "previous": None,
        "beacon": {"source": "drand", "chain": "00" * 32, "round": 1},
        "c_emb": "00" * 32,
        "c_seed": "00" * 32,
        "c_policy": "00" * 32,
        "roster": {"root": "00" * 32, "count": 0},
        "tenants": {"root": "00" * 32, "count": 0},
        "ledger": sha256(b"").hex(),
        **changes,
    }


def beacon_of(entry: int = 0) -> dict[str, Any]:
    """The beacon of the opening or of an enrolment, without its place."""
    return {"type": "beacon", "v": 1, "entry": entry, "source": "drand", "value": "00" * 32, "notes": [],
            "checkpoint": ""}  # fmt: skip


def kept(tenant: str, window: str = "w1") -> dict[str, Any]:
    """The sample entry of a tenant, without its place in the ledger."""
    return {"type": "sample", "v": 1, "window": window, "tenant": tenant, "commitment": "00" * 32,
            "carried": None}  # fmt: skip


def query(window: str = "w1", **changes: Any) -> dict[str, Any]:
    """A query record, without its place."""
    return {"type": "query", "v": 1, "window": window, "account": "a", "tenant": "t", "i": 1, "ts": OPENS,
            **dict.fromkeys(("hq", "cq", "htopk", "hans"), "00" * 32), "listed_rows": None, "sig": "00" * 64, "proof": None,
            **changes}  # fmt: skip


def enrolment(seq: int, beacon: dict[str, Any], *, ts: int = OPENS - HOUR) -> dict[str, Any]:
    """An enrolment entry."""
    return {
        "type": "enrolment",
        "v": 1,
        "seq": seq,
        "ts": ts,
        "account": "a",
        "tenant": "t",
        "key": "00" * 32,
        "custody": "account",
        "beacon": beacon,
    }


def witness_beacon_of(pairs: list[tuple[Witness, bytes]]) -> dict[str, Any]:
    """The ``beacon`` field that names these witnesses with these commitments."""
    return {
        "source": "witnesses",
        "witnesses": [{"name": w.vkey.name, "vkey": str(w.vkey), "commitment": c.hex()} for w, c in pairs],
    }


@pytest.fixture
def clock() -> Clock:
    return Clock(OPENS - HOUR)


@pytest.fixture
def log_key() -> SigningKey:
    return SigningKey(ORIGIN, 1, bytes(range(32)))


@pytest.fixture
def make_witness(tmp_path: Path, clock: Clock) -> Callable[[str], Witness]:
    return lambda name: Witness.init(tmp_path / name, name, clock=clock)
