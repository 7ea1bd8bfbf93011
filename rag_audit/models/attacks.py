"""The results of `rag-audit lab attack run`, shown with a verdict (docs/attacks.md, "Attack results in a report").

The results are the provider's own measurement: they are unsigned, and no check depends on them. A verifier parses the
file with the same care as any other file from outside.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rag_audit._internal.canonical import parse_json, read_bytes
from rag_audit._internal.printable import printable
from rag_audit.mechanisms import MechanismName
from rag_audit.models.models import Count, DecimalText, Hex32, Identifier, Model, One, Positive

MAX_ATTACKS_BYTES = 16 << 20
MAX_RESULTS = 4096
"""Attacks times cells; a run of all attacks in all cells has about 200."""
_ROUNDING = 1e-9
"""Maximum excess of an average of shares above 1."""
_REAL = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")


def _real(value: object) -> float:
    """A number as `parse_json` gives it with `reals`: an integer, or the text of another one."""
    if type(value) is int:
        return float(value)
    if not isinstance(value, str) or not _REAL.fullmatch(value):
        raise ValueError("a finite number")
    return float(value) + 0.0  # -0.0 becomes 0.0, which is written without a sign


def _share(value: object) -> object:
    result = _real(value)
    return min(1.0, result) if result <= 1 + _ROUNDING else result


def _epsilon(value: object) -> object:
    return math.inf if value == "inf" else _real(value)


Share = Annotated[float, BeforeValidator(_share), Field(ge=0, le=1)]
"""A rate, an AUC or another share."""
Epsilon = Annotated[float, BeforeValidator(_epsilon), Field(ge=0)]
"""An epsilon; `inf` if there is none."""
Text = Annotated[str, Field(max_length=4096), AfterValidator(printable)]
"""Words for people, on one line. Reading escapes all characters that act on a terminal."""
Interval = Annotated[list[Share], Field(min_length=3, max_length=3)]
"""A figure and both ends of its 95 % interval."""


class AttackedMechanism(Model):
    """The mechanism applied to the scores: gains and score window of the noise, sampling rate, and flip probability,
    as in a policy."""

    kind: MechanismName
    gains: Annotated[list[Positive], Field(max_length=64)] = Field(default_factory=list)
    lattice: Positive | None = None
    lo: Count | None = None
    hi: Count | None = None
    keep: Positive | None = None
    """Pi over 2^40"""
    flip_probability: Positive | None = None
    """Q over 2^40"""
    threshold: Positive | None = None


class AttackCell(Model):
    """One column of a run."""

    mechanism: Text
    """as the option --mechanism has it; a name in `mechanisms`"""
    defence: Literal["none", "mirabel", "mirabel-plain", "prompt", "paraphrase"]
    accounts: Positive


class AttackFigures(Model):
    """An attack's figures against one cell."""

    auc: Interval
    tpr_at_1pct: Interval
    accuracy: Interval
    adjusted_accuracy: Interval
    precision: Interval
    recall: Interval
    f1: Interval
    ks: Interval


class AttackBounds(Model):
    """A lower bound on epsilon from lists, with the parameters and counts of its run."""

    lower: Epsilon
    gaussian: Epsilon
    certified: Epsilon
    eps_audit: Epsilon
    auc: Share
    trials: Positive


class AttackForms(Model):
    """The number of answers of each form."""

    followed: Count
    """in the requested format"""
    declined: Count
    """without an answer, such as "I don't know" """
    ignored: Count
    """in another format"""
    repeated: Count
    """the same words again and again"""
    empty: Count


class AttackAnswers(Model):
    """The answers of one attack in one cell: their form, and what they repeat of the returned passages."""

    forms: AttackForms
    copied: Interval | None
    """the average share of a returned passage's five-word sequences in the answer, without those of the question"""
    verbatim: Interval | None
    """the share of answers with at least five consecutive words of a passage"""
    longest: Count
    """words of the longest such run"""


class AttackResult(Model):
    """One attack in one cell."""

    attack: Identifier
    cell: AttackCell
    queries: Positive
    """questions about one document, of one account"""
    documents: Positive
    refused: Count
    figures: AttackFigures
    retrieval: Interval | None
    hidden: Annotated[list[Share], Field(min_length=2, max_length=2)]
    ceiling: Share | None
    bounds: AttackBounds | None
    written: AttackAnswers | None = None


class AttackRun(Model):
    """A run of attacks: attacks.json in its output folder."""

    type: Literal["attacks"]
    v: One
    target: Text
    data: Text
    seed: Count
    generator: Text
    """what wrote the answers; of a model file with its digest"""
    proxy: Text | None = None
    """what chose the words that are hard to guess"""
    members: Positive
    others: Positive
    results: Annotated[list[AttackResult], Field(max_length=MAX_RESULTS)]
    certified: Text | None = None
    """of a service elsewhere: the certified guarantee, in words"""
    header: Hex32 | None = None
    """of a window: the digest of its entry 0"""
    tenant: Identifier | None = None
    """of a window: the tenant of the accounts that asked"""
    index: Positive | None = None
    """of the engine: documents in its index; `capacity` are its positions"""
    capacity: Positive | None = None
    top_k: Positive | None = None
    n: Positive | None = None
    k_max: Positive | None = None
    confidence: Share | None = None
    delta: DecimalText | None = None
    """of the engine: the delta of the lower bounds on the epsilon of noise"""
    mechanisms: dict[Text, AttackedMechanism] = Field(default_factory=dict)
    """of the engine: the parameters of each cell's mechanism"""

    @classmethod
    def load(cls, path: Path) -> AttackRun:
        """Read attacks.json.

        :raises EncodingError: it cannot be read, or is no JSON
        :raises SizeError: it is above its limit
        :raises SchemaError: a field is missing, unknown, out of range or no finite number
        """
        data = read_bytes(path, max_bytes=MAX_ATTACKS_BYTES)
        return cls.parse(parse_json(data, source=path.name, reals=True), field=path.name)
