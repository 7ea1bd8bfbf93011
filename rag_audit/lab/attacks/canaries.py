"""Canaries: unique random texts. A coin decides for each whether it enters the index before the commitment, and the
test asks for all of them afterwards.

A canary begins like the documents around it, so that a question in their manner finds it, and ends in words that do not
follow from one another, so that no model can guess them (the paper on canaries and synthetic text). A separate fair
coin decides for each canary, so one run with many canaries gives a lower bound on epsilon (Steinke, Nasr and Jagielski
2023).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random, SystemRandom

import numpy as np

from rag_audit._internal.canonical import read_text
from rag_audit._internal.durable import create_private
from rag_audit._internal.errors import SchemaError
from rag_audit.lab.attacks.interface import Answer, AttackError, Continue, Floats, Probe, Target, Task
from rag_audit.lab.attacks.proxy import TokenStatistics
from rag_audit.lab.attacks.split import MIN_WORDS
from rag_audit.lab.attacks.targets.engine import Engine
from rag_audit.lab.attacks.text import grams, words
from rag_audit.lab.empirical import rates
from rag_audit.lab.empirical.lower_bounds import CONFIDENCE, one_run_epsilon

MAX_FILE_BYTES = 64 << 20
LEAST = 16
"""Minimum number of canaries for a bound."""
GUESSED = 4
"""One canary in this number is guessed to be in, and one to be out; there is no guess about the others."""


@dataclass(frozen=True)
class Canary:
    """One canary, which is a secret until it has been tested.

    :param inserted: whether its coin puts it into the index
    :param perplexity: of its suffix, under token statistics of the documents
    """

    id: str
    prefix: str
    suffix: str
    inserted: bool
    perplexity: float

    @property
    def text(self) -> str:
        """The whole canary."""
        return f"{self.prefix} {self.suffix}"


def make(
    documents: Sequence[str],
    count: int,
    *,
    prefix_words: int = 20,
    suffix_words: int = 12,
    perplexity: float = 2000.0,
    random: Random | None = None,
) -> list[Canary]:
    """Canaries in the manner of documents.

    :param perplexity: of the suffix; within a tenth of it where the documents have enough words
    :param random: draws texts and coins; None selects the operating system's generator
    :raises AttackError: there are fewer documents of enough words than canaries
    """
    draw = random or SystemRandom()
    long = [text for text in documents if len(text.split()) >= max(MIN_WORDS, prefix_words)]
    if count < 1 or len(long) < count:
        raise AttackError("there are too few documents to make canaries of", field="--docs",
                          expected=f"{count} of at least {prefix_words} words", actual=len(long))  # fmt: skip
    model = TokenStatistics(documents)
    created = []
    for number, text in enumerate(draw.sample(long, count)):
        prefix = " ".join(text.split()[:prefix_words])
        suffix = model.unlikely_words(Random(draw.getrandbits(64)), suffix_words, words(prefix), perplexity)
        result = model.perplexity([*words(prefix)[-2:], *suffix])
        created.append(
            Canary(f"canary-{number}", prefix, " ".join(suffix), bool(draw.getrandbits(1)), round(result, 1))
        )
    return created


def save(canaries: Sequence[Canary], path: Path) -> None:
    """Write canaries and their coins to a new private file.

    :raises StoreError: the file exists already or cannot be written
    """
    create_private(path, b"".join(json.dumps(asdict(c)).encode() + b"\n" for c in canaries))


def load(path: Path) -> list[Canary]:
    """Read canaries.

    :raises SchemaError: a line is no canary, or there is no line
    """
    result = []
    for number, line in enumerate(read_text(path, max_bytes=MAX_FILE_BYTES).splitlines(), 1):
        try:
            value = json.loads(line)
            c = Canary(str(value["id"]), str(value["prefix"]), str(value["suffix"]), value["inserted"],
                       float(value["perplexity"]))  # fmt: skip
            if not isinstance(c.inserted, bool):
                raise TypeError("inserted")
            result.append(c)
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise SchemaError("the line is not a canary", field=f"{path}, line {number}",
                              expected="a file of `rag-audit lab canary new`",
                              actual=str(exc)[:60]) from exc  # fmt: skip
    if not result:
        raise SchemaError(
            "the file has no canary", field=str(path), expected="a file of `rag-audit lab canary new`"
        )
    return result


def tasks(canary: Canary) -> list[Task]:
    """The task for a canary: its continuation."""
    return [Continue(canary.prefix, len(canary.suffix.split()) + 8)]


def recall_score(canary: Canary, replies: Sequence[str]) -> float:
    """The largest share of the suffix's words and of its bigrams that a reply has."""
    w = words(canary.suffix)
    wanted = grams(w, 2) | grams(w, 1)
    shares = [len(wanted & (grams(r, 2) | grams(r, 1))) / len(wanted) for r in map(words, replies)]
    return max(shares, default=0.0)


@dataclass(frozen=True)
class Tested:
    """The result of a test of canaries.

    :param lower: the lower bound on epsilon from one run
    :param queries: total number of questions
    """

    canaries: int
    inserted: int
    auc: rates.Estimate
    correct: int
    guesses: int
    lower: float
    queries: int


def test(canaries: Sequence[Canary], target: Target, *, accounts: int = 1, delta: str | int = 0) -> Tested:
    """Ask a service for every canary and guess which are there.

    :raises AttackError: there are too few canaries, or all are in or all out
    """
    probes = [Probe(n, place, account, task)
              for n, canary in enumerate(canaries) for account in range(accounts)
              for place, task in enumerate(tasks(canary))]  # fmt: skip
    inside = sum(c.inserted for c in canaries)
    if len(canaries) < LEAST or inside in (0, len(canaries)):
        raise AttackError("too few canaries for a test", field="CANARIES", expected=f"{LEAST}, some in and some out",
                          actual=f"{len(canaries)}, {inside} of them in")  # fmt: skip
    answers = target.ask(probes)
    scores = _scores(canaries, probes, answers)
    truth = np.array([c.inserted for c in canaries])
    order = np.argsort(-scores, kind="stable")
    g = len(canaries) // GUESSED
    correct = int(truth[order[:g]].sum() + (~truth[order[-g:]]).sum())
    lower = one_run_epsilon(correct, 2 * g, len(canaries), delta=delta, confidence=CONFIDENCE)
    auc = rates.delong(scores[truth], scores[~truth])
    return Tested(len(canaries), inside, auc, correct, 2 * g, lower, len(probes))


def in_engine(engine: Engine, canaries: Sequence[Canary]) -> Engine:
    """An engine with the canaries as its first documents. Canaries that their coins excluded have empty places.

    An answer reads the text of a listed place whether or not its canary is in the index. Its information therefore
    follows from the lists without other inputs, and the bound on the lists covers it.
    """
    return replace(
        engine, one_window=True, empty=frozenset(n for n, c in enumerate(canaries) if not c.inserted)
    )


def _scores(canaries: Sequence[Canary], probes: Sequence[Probe], answers: Sequence[Answer]) -> Floats:
    said: dict[int, list[str]] = {}
    for probe, answer in zip(probes, answers, strict=True):
        said.setdefault(probe.document, []).append(answer.reply.text)
    return np.array([recall_score(canary, said[n]) for n, canary in enumerate(canaries)])
