"""The comparison of a language model with the baseline: it resumes, and writes only documents with all answers."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest

from bench import language
from rag_audit.lab.attacks.cells import Cell
from rag_audit.models.attacks import AttackRun
from tests.attacks.language import FakeModel

_RANDOM = Random(1)
_WORDS = [
    a + b for a in ("mar", "ton", "lib", "sed", "vol", "hun", "pra") for b in ("del", "kin", "os", "ra", "un")
]
TEXTS = [" ".join(_RANDOM.choices(_WORDS, k=24)) for _ in range(90)]


def corpus(model: FakeModel, out: Path, until: float) -> language.Corpus:
    return language.corpus("squad", TEXTS, model, 20, out, until)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(
        lambda prompt: "Yes." if "appear in the context" in prompt else "the doors to all people"
    )


def test_a_run_writes_complete_answers_and_goes_on_without_asking_twice(
    model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "PASSES", ((("s2mia-s", "rag-mia"), language.PLAIN, 0.5),
                                             (("s2mia-s",), language.GUARDED, 0.5)))  # fmt: skip
    paths = language.write([corpus(model, tmp_path, math.inf)], 20, tmp_path, 0)
    assert len(model.prompts) == 60, (
        "two questions on each of twenty documents, and one under the guarded prompt"
    )
    first = [AttackRun.load(path) for path in paths]
    for run in first:
        assert [(r.attack, r.documents) for r in run.results if r.cell.defence == "none"] == [
            (name, 20) for name in ("s2mia-s", "s2mia-p", "s2mia-t", "s2mia-m", "min-k", "rag-mia")
        ]
    by_model, by_baseline = ({r.attack: r for r in run.results if r.cell.defence == "none"} for run in first)
    assert by_model["rag-mia"].figures.auc[0] == 0.5, "the model says yes to every text"
    assert by_baseline["rag-mia"].figures.auc[0] == 1
    guarded = [r.written for r in first[0].results if r.cell.defence == "prompt"]
    assert guarded[0] is not None and guarded[0].forms.followed == 20
    language.write([corpus(model, tmp_path, 0)], 20, tmp_path, 0)
    assert [AttackRun.load(path) for path in paths] == first
    assert len(model.prompts) == 60


def test_documents_without_all_answers_are_left_out(model: FakeModel, tmp_path: Path) -> None:
    whole = corpus(model, tmp_path, math.inf)
    assert language.ask([whole], ["rag-mia"], Cell("none"), 3) == 3
    later = corpus(model, tmp_path, 0)
    assert language.ask([later], ["rag-mia"], Cell("none"), 20) == 3
    assert language.ask([later], ["rag-mia"], language.GUARDED, 20) == 0
    assert not AttackRun.load(language.write([later], 20, tmp_path, 0)[0]).results


def test_attacks_on_mechanisms_have_lower_bounds_and_stop_when_the_time_ends(
    model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = (Cell("pooled-listing:0.9:0.1:601"), Cell("sampling:0.7"), Cell("noise:1,8,64:32"))
    monkeypatch.setattr(language, "PASSES", ())
    monkeypatch.setattr(language, "MECHANISMS", cells)
    paths = language.write([corpus(model, tmp_path, math.inf)], 20, tmp_path, 8)
    by_model, by_baseline = (AttackRun.load(path) for path in paths)
    for run in (by_model, by_baseline):
        assert [(r.cell.mechanism, r.attack) for r in run.results] == [
            (cell.mechanism, attack) for cell in cells for attack in language.UNDER
        ]
        assert {r.documents for r in run.results} == {20}, "half of the members, and as many others"
        assert set(run.mechanisms) == {"none", *(cell.mechanism for cell in cells)}
    pooled = by_model.results[0].bounds
    assert pooled is not None and pooled.trials == 8 and pooled.lower <= pooled.certified
    later = corpus(model, tmp_path, 0)
    assert language.under_mechanisms(later.split, later.bench, 8) == []
