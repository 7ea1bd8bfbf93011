"""What is proved of a record, and what a window fixes for the proofs of a tenant before there is any record."""

from __future__ import annotations

from dataclasses import dataclass

STATEMENTS = ("retrieve", "embed")
"""What is proved about a record, in the order of work and report: claims A2 to A4, and claim A1. A policy names a
circuit (or protocol) for each statement that its tenant's records are proved for; `retrieve` is always among them."""


@dataclass(frozen=True)
class Constants:
    """What a window fixes for the proofs of one tenant before there is any record: policy and embedder.

    :param capacity: committed positions
    :param dimension: components of a vector
    :param top_k: K
    :param gains: of the noise
    :param lo: lower end of the score window
    :param hi: upper end of the score window
    :param lattice: R
    :param query_tokens: where queries are cut
    :param norm_factor: of the embedder's integer normalisation; None: its vectors have none, and no A1 can be proved
    """

    capacity: int
    dimension: int
    top_k: int
    gains: tuple[int, ...]
    lo: int
    hi: int
    lattice: int
    query_tokens: int
    norm_factor: int | None
