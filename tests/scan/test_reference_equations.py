"""Every point and scalar of a proof stands in an equation of the second verifier, and each equation has a point of its
own: whoever leaves one out takes a word for any other, under the same challenges."""

from __future__ import annotations

from collections import defaultdict

import pytest

from rag_audit.proofs.backends.reference.group import Point
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript
from rag_audit.relation.field import MODULUS
from tests.scan.known_answers import KNOWN_ANSWERS, KnownAnswers

CLOSING = ["messages", "values", "left", "output", "right", "opening"]
SMALL = {"noise", "query"}
SCALARS = {*SMALL, "feed forward", "attention"}
RUNS = [pytest.param(name, marks=() if name in SMALL else pytest.mark.full) for name in KNOWN_ANSWERS]

Sums = list[dict[Point | str, int]]
"""What each equation has of each point."""


class Held(Transcript):
    """A transcript that answers with given challenges, whatever it has heard; without any, with its own."""

    def __init__(self, name: str, answers: list[int] | None = None) -> None:
        super().__init__(name)
        self.drawn: list[int] = []
        self._answers = answers

    def challenge(self, label: str) -> int:
        own = super().challenge(label)
        self.drawn.append(own if self._answers is None else self._answers[len(self.drawn)])
        return self.drawn[-1]


class Noted(Reader):
    """A reader that notes what it has read, and may read one scalar as another."""

    def __init__(self, transcript: Transcript, proof: bytes, changed: int = -1) -> None:
        super().__init__(transcript, proof)
        self.points: list[tuple[str, Point]] = []
        self.scalars: list[str] = []
        self._changed = changed

    def point(self, label: str) -> Point:
        result = super().point(label)
        self.points.append((label, result))
        return result

    def scalar(self, label: str) -> int:
        result = super().scalar(label)
        self.scalars.append(label)
        return (result + (len(self.scalars) - 1 == self._changed)) % MODULUS


def read(
    golden: KnownAnswers, answers: list[int] | None = None, changed: int = -1
) -> tuple[Sums, Held, Noted]:
    transcript = Held(golden.run, answers)
    reader = Noted(transcript, golden.proof, changed)
    sums: Sums = []
    for equation in golden.read(golden.statement, reader).equations:
        sums.append(defaultdict(int))
        for k, point in equation:
            sums[-1][point] = (sums[-1][point] + k) % MODULUS
    return sums, transcript, reader


def closing(sums: Sums) -> list[str]:
    """The equations after those of the link; a run with a link also opens its scores."""
    return CLOSING if len(sums) == len(CLOSING) else [*CLOSING, "scores"]


def names(sums: Sums) -> list[str]:
    link = [f"link {i}" for i in range(len(sums) - len(closing(sums)))]
    return link + closing(sums)


@pytest.mark.parametrize("name", RUNS)
def test_every_point_stands_in_an_equation_and_each_equation_has_one_of_its_own(name: str) -> None:
    sums, _, reader = read(KNOWN_ANSWERS[name]())
    assert len(set(point for _, point in reader.points)) == len(reader.points)
    alone, of_label = set[str](), defaultdict[str, set[frozenset[str]]](set)
    for label, point in reader.points:
        where = frozenset(called for called, sum_ in zip(names(sums), sums, strict=True) if sum_.get(point))
        assert where, label
        alone |= where if len(where) == 1 else set()
        of_label[label].add(where)
    assert alone == set(names(sums))
    assert of_label["opened value"] == {frozenset({"values", "opening"})}
    assert of_label["constraint round"] == {frozenset({"values"})}
    openings = [called for called in closing(sums) if called in ("opening", "scores")]
    assert of_label["fold"] == {frozenset({called}) for called in openings}
    assert of_label["lookup children"] == {frozenset({"messages"})}
    assert of_label["left factor"] == {frozenset({"values", "left"})}
    assert of_label["right factor"] == {frozenset({"values", "output", "right"})}


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(SCALARS))
def test_every_scalar_moves_an_equation(name: str) -> None:
    golden = KNOWN_ANSWERS[name]()
    sums, transcript, reader = read(golden)
    moved = []
    for number, label in enumerate(reader.scalars):
        changed, _, _ = read(golden, transcript.drawn, number)
        moved.append((label, [n for n, a, b in zip(names(sums), sums, changed, strict=True) if a != b]))
    assert all(result for _, result in moved)
    of_messages = [result for label, result in moved if label == "message opening"]
    assert of_messages == [["messages", "values"]] * 16 + [["messages"], ["values"]]
    of_product = [result for label, result in moved if label == "product"]
    assert of_product == [["left", "output"], ["left"], ["output"], ["right"], ["right"]]
    of_link = [result for label, result in moved if label == "link"]
    claims = len(sums) - len(closing(sums)) - 2
    if name == "query":
        components, (own, row, *blindings) = of_link[: -claims - 2], of_link[-claims - 2 :]
        # Each component stands in the query, in the scores, in what is packed and in what is looked up; the salt in
        # two.
        *components, salt = components
        assert all(result[:2] == ["link 0", "link 1"] and len(result) == 4 for result in components)
        assert salt == ["link 0", "link 2"]
        assert [own, row, *blindings] == [[f"link {i}"] for i in range(claims + 2)]
