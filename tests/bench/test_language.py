"""The comparison of a language model with the baseline: it resumes, and prints only documents with all answers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench import language
from rag_audit.lab.attacks.cells import Cell
from tests.attacks.language import FakeModel

TEXTS = [
    f"Report {n} says that the {a} of district {n} opened its doors to {b} people in year {n + 1800} and that nobody"
    f" in the {c} had expected so many visitors on day {n}."
    for n, (a, b, c) in enumerate(
        (x, y, z)
        for x in ("library", "harbour", "theatre", "museum", "stadium")
        for y in ("ninety", "seventy", "forty", "sixty", "eighty")
        for z in ("council", "village", "parish", "office")
    )
]


def corpus(model: FakeModel, out: Path, until: float) -> language.Corpus:
    return language.corpus("squad", TEXTS, model, 20, out, until)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(
        lambda prompt: "Yes." if "appear in the context" in prompt else "the doors to all people"
    )


def test_a_run_prints_complete_answers_and_goes_on_without_asking_twice(
    model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "PASSES", ((("s2mia-s", "rag-mia"), language.PLAIN, 0.5),
                                             (("s2mia-s",), language.GUARDED, 0.5)))  # fmt: skip
    first = language.report([corpus(model, tmp_path, math.inf)], 20)
    asked = len(model.prompts)
    lines = first.splitlines()
    assert asked == 60, "two questions on each of twenty documents, and one under the guarded prompt"
    assert sum("| language model | 10 |" in line for line in lines) == 6
    assert sum("| extractive baseline | 10 |" in line for line in lines) == 6
    assert any(line.startswith("| squad | `rag-mia` | language model | 10 | 1.00 | 0.50 (0.50 to 0.50)") and
               line.endswith("| 0.52 |") for line in lines)  # fmt: skip
    assert any("| `s2mia-s` | guarded | language model | 20 | 20 | 0 | 0 | 0 | 0 |" in line for line in lines)
    assert language.report([corpus(model, tmp_path, 0)], 20) == first
    assert len(model.prompts) == asked


def test_documents_without_all_answers_are_not_printed(model: FakeModel, tmp_path: Path) -> None:
    whole = corpus(model, tmp_path, math.inf)
    assert language.ask([whole], ["rag-mia"], Cell("none"), 3) == 3
    later = corpus(model, tmp_path, 0)
    assert language.ask([later], ["rag-mia"], Cell("none"), 20) == 3
    assert language.ask([later], ["rag-mia"], language.GUARDED, 20) == 0
    assert language.report([later], 20).count("`") == 0
