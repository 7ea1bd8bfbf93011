"""Splits of a collection, and the inputs that are refused."""

from pathlib import Path

import pytest

from rag_audit.errors import RagAuditError, SchemaError
from rag_audit.lab.attacks import split as split_module
from rag_audit.lab.attacks.interface import AttackError
from rag_audit.lab.attacks.split import given_split, load_texts, make_split, same
from rag_audit.retrieval.inventory import NoDocumentsError


def test_the_parts_are_disjoint_and_the_seed_decides(texts: list[str]) -> None:
    split = make_split(texts, members=50, others=40, seed=3)
    parts = [split.members, split.others, split.rest, split.own]
    assert (
        sum(map(len, parts))
        == len({same(t) for part in parts for t in part})
        == len({same(t) for t in texts})
    )
    assert split == make_split(texts, members=50, others=40, seed=3)
    assert split.members != make_split(texts, members=50, others=40, seed=4).members


def test_copies_and_short_texts_are_counted(texts: list[str]) -> None:
    again = [*texts, texts[0].upper(), f"  {texts[1]} ", "", "too short"]
    assert make_split(again, members=50, others=40).left_out == (2, 2)


def test_too_few_documents_are_counted_in_the_error(texts: list[str]) -> None:
    with pytest.raises(AttackError, match="too few") as caught:
        make_split([*texts[:100], "short"], members=60, others=60)
    assert "100 usable texts; 1 empty or below 12 words" in str(caught.value.actual)


def test_a_document_on_both_sides_is_found(texts: list[str]) -> None:
    with pytest.raises(AttackError, match="overlap") as caught:
        given_split(texts[:100], [*texts[100:200], texts[7].lower()], [])
    assert "at lines 100" in str(caught.value.actual)


def test_a_given_split_takes_the_attackers_texts_from_the_others(texts: list[str]) -> None:
    split = given_split(texts[:100], texts[100:250], [])
    assert set(split.members) == set(texts[:100])
    assert len(split.own) == 30
    assert set(split.own) | set(split.others) == set(texts[100:250])


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"body": "x"}\n', SchemaError),
        ('["a"]\n', SchemaError),
        ("not json\n", RagAuditError),
        ("", NoDocumentsError),
    ],
)
def test_a_file_of_another_shape_is_refused(content: str, error: type[RagAuditError], tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(content)
    with pytest.raises(error):
        load_texts(path)


def test_the_attacker_s_own_texts_are_limited(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_module, "MAX_OWN", 30)
    drawn = make_split(texts, members=20, others=20)
    assert len(drawn.own) == 30
    assert len(drawn.rest) == len(texts) - 20 - 20 - 30, "what the attacker does not get is in the index"
    assert len(given_split(texts[:50], texts[50:150], texts[150:]).own) == 30
