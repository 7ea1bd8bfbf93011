"""A small collection of invented notes, and what an attacker makes of a part of it."""

from collections.abc import Iterator
from random import Random

import pytest

from rag_audit.lab.attacks import metrics
from rag_audit.lab.attacks.campaign import Unit, tools_of
from rag_audit.lab.attacks.cells import Bench
from rag_audit.lab.attacks.interface import Tools
from rag_audit.lab.attacks.split import Split, make_split
from rag_audit.retrieval.embedders import get_embedder

_WHO = [
    "sailor",
    "gardener",
    "pianist",
    "carpenter",
    "student",
    "baker",
    "pilot",
    "teacher",
    "farmer",
    "violinist",
    "miner",
    "weaver",
]
_HAS = [
    "migraine",
    "asthma",
    "vertigo",
    "eczema",
    "insomnia",
    "arthritis",
    "anaemia",
    "bronchitis",
    "tinnitus",
    "sciatica",
    "gout",
    "hepatitis",
]
_WHERE = [
    "Lisbon",
    "Oslo",
    "Nairobi",
    "Quito",
    "Hanoi",
    "Tbilisi",
    "Perth",
    "Dublin",
    "Lima",
    "Riga",
    "Kyoto",
    "Dakar",
    "Cairo",
    "Bergen",
    "Malmo",
]
_TAKES = [
    "ibuprofen",
    "salbutamol",
    "betahistine",
    "hydrocortisone",
    "melatonin",
    "iron",
    "colchicine",
    "codeine",
    "aspirin",
    "zinc",
]
_LIKES = [
    "chess",
    "rowing",
    "pottery",
    "origami",
    "cycling",
    "astronomy",
    "falconry",
    "beekeeping",
    "calligraphy",
    "fencing",
    "judo",
]
_WHEN = ["March", "April", "June", "August", "October", "December"]


def note(random: Random) -> str:
    """One invented note, of about sixty words."""
    pick = random.choice
    return (
        f"A {random.randint(21, 88)}-year-old {pick(_WHO)} from {pick(_WHERE)} came in {pick(_WHEN)} with {pick(_HAS)} and"
        f" {pick(_HAS)}. The doctor had prescribed {pick(_TAKES)} twice daily, later {pick(_TAKES)} at night. Symptoms"
        f" began {random.randint(2, 60)} days after a journey to {pick(_WHERE)} for {pick(_LIKES)}. A brother, who works as"
        f" a {pick(_WHO)} near {pick(_WHERE)}, suffers from {pick(_HAS)} too and prefers {pick(_LIKES)} to any treatment."
        f" The next visit is on day {random.randint(1, 28)} of {pick(_WHEN)}, room {random.randint(100, 999)}."
    )


@pytest.fixture(scope="session", autouse=True)
def _few_bootstrap_samples() -> Iterator[None]:
    """Intervals are most of a small run's time, and no test reads their digits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "REPEATS", 20)
        yield


@pytest.fixture(scope="session")
def texts() -> list[str]:
    random = Random(5)
    return [note(random) for _ in range(400)]


@pytest.fixture(scope="session")
def split(texts: list[str]) -> Split:
    return make_split(texts, members=60, others=60, seed=1)


@pytest.fixture(scope="session")
def bench(split: Split) -> Bench:
    embedder = get_embedder(query_tokens=512)
    return Bench(split.index, embedder, tools_of(split.own, Unit(embedder), 1), seed=1)


@pytest.fixture(scope="session")
def tools(bench: Bench) -> Tools:
    return bench.tools
