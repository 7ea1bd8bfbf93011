"""Challenges: a verifier's draw of the records that must be proved, made once the ledger can no longer change.

A challenge is a signed note over the cosigned final root and a nonce that only the verifier's key can produce. The
positions follow from both by the public draw below (vectors/v1/challenge.json), so neither side chooses them, and a
verifier that is asked twice makes the same draw.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext

from rag_audit._internal.canonical import Json, jcs, parse_base64, parse_hex, sha256
from rag_audit._internal.errors import SchemaError, VersionError
from rag_audit.log.keys import Signer

DOMAIN = "rag-audit/challenge/v1"
NONCE_DOMAIN = b"rag-audit/challenge-nonce/v1"


@dataclass(frozen=True)
class Challenge:
    """The content of a challenge note.

    :param size: ledger size of the final checkpoint
    :param root: its root, 32 bytes
    :param nonce: 32 bytes that only the verifier could know in advance
    :param sample: the number of query records to draw; None challenges all of them
    """

    origin: str
    window: str
    size: int
    root: bytes
    nonce: bytes
    sample: int | None

    @classmethod
    def new(
        cls, key: Signer, origin: str, window: str, size: int, root: bytes, sample: int | None
    ) -> Challenge:
        """The challenge by a verifier's key over a ledger, which is the same however often it is asked for.

        The nonce is SHA-256 of an Ed25519 signature (RFC 8032, deterministic) that is never shown, so it is as hard to
        foresee as the signature is to forge. It does not depend on `sample`: a larger draw contains every smaller one.
        """
        over: Json = {"origin": origin, "window": window, "size": size, "root": root.hex()}
        nonce = sha256(NONCE_DOMAIN + key.sign(NONCE_DOMAIN + jcs(over)))
        return cls(origin, window, size, root, nonce, sample)

    def text(self) -> str:
        """The note's text: six lines and the mode."""
        mode = "full" if self.sample is None else f"sampled {self.sample}"
        root = base64.b64encode(self.root).decode()
        return f"{DOMAIN}\n{self.origin}\n{self.window}\n{self.size}\n{root}\n{self.nonce.hex()}\n{mode}\n"

    @classmethod
    def parse(cls, text: str, *, field: str) -> Challenge:
        """Read a challenge from the text that `text` gives.

        :raises VersionError: the note is of another kind or version
        :raises SchemaError: a line is missing or not canonical
        """
        lines = text.split("\n")
        if lines[0] != DOMAIN:
            raise VersionError("the note is not a challenge", field=field, expected=DOMAIN, actual=lines[0])
        if len(lines) != 8 or lines[7] != "":
            raise SchemaError(
                "the challenge note has the wrong number of lines",
                field=field,
                expected=7,
                actual=len(lines) - 1,
            )
        words = lines[6].split(" ")
        if words == ["full"]:
            sample = None
        elif len(words) == 2 and words[0] == "sampled":
            sample = _natural(words[1], f"{field}.mode")
        else:
            raise SchemaError(
                "unknown challenge mode", field=field, expected="full | sampled <count>", actual=lines[6]
            )
        return cls(
            origin=lines[1],
            window=lines[2],
            size=_natural(lines[3], f"{field}.size"),
            root=parse_base64(lines[4], field=f"{field}.root"),
            nonce=parse_hex(lines[5], 32, field=f"{field}.nonce"),
            sample=sample,
        )

    def positions(self, query_seqs: Sequence[int]) -> list[int]:
        """The challenged ledger indices, ascending. `query_seqs` has the window's query records in ledger order."""
        if self.sample is None:
            return sorted(query_seqs)
        return sorted(query_seqs[j] for j in draw(self.root, self.nonce, len(query_seqs), self.sample))


def _natural(text: str, field: str) -> int:
    if not text.isascii() or not text.isdigit() or (len(text) > 1 and text[0] == "0") or len(text) > 15:
        raise SchemaError(
            "not a decimal count", field=field, expected="digits without a leading zero", actual=text
        )
    return int(text)


def sample_size(beta: Decimal, eta: Decimal, count: int) -> int:
    """The sample size s = ceil(ln(1/eta) / beta), at most `count`: with it, a fraction beta of bad records goes unseen
    with probability at most eta.

    :param beta: the fraction, in (0, 1)
    :param eta: the probability, in (0, 1)
    :raises SchemaError: beta or eta is not in (0, 1)
    """
    if not (0 < beta < 1 and 0 < eta < 1):
        raise SchemaError("beta and eta are not probabilities", field="beta, eta", expected="both in (0, 1)",
                          actual=f"{beta}, {eta}")  # fmt: skip
    # In decimals, since floats have no 1e-999; rounded up, so that the sample is never too small.
    with localcontext(Context(prec=40, rounding=ROUND_CEILING)):
        wanted = -eta.ln() / beta
        return count if wanted >= count else math.ceil(wanted)


def draw(root: bytes, nonce: bytes, count: int, sample: int) -> list[int]:
    """Draw `min(sample, count)` distinct indices below `count` by a partial Fisher-Yates shuffle over a SHA-256 stream.

    Step j picks uniformly from j..count-1 by rejection of 128-bit words, so that every subset is equally likely.
    """
    words = _stream(sha256(DOMAIN.encode() + root + nonce))
    order = list(range(count))
    for j in range(min(sample, count)):
        k = j + _below(words, count - j)
        order[j], order[k] = order[k], order[j]
    return order[: min(sample, count)]


def _stream(seed: bytes) -> Iterator[int]:
    counter = 0
    while True:
        block = sha256(seed + counter.to_bytes(8, "big"))
        yield int.from_bytes(block[:16], "big")
        yield int.from_bytes(block[16:], "big")
        counter += 1


def _below(words: Iterator[int], bound: int) -> int:
    limit = (1 << 128) - (1 << 128) % bound
    return next(word for word in words if word < limit) % bound
