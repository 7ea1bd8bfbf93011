"""docs/scan/grammar.md: what the reference reads is what the published traces have, message by message, claim by
claim."""

from __future__ import annotations

import hashlib

import pytest

from docs.scan import grammar
from rag_audit.proofs.backends.reference import coalition
from rag_audit.proofs.backends.reference.transcript import CHALLENGE, POINT, Transcript
from tests.scan.known_answers import published

SMALL = [(run, next(iter(run.sizes))) for run in grammar.RUNS]
ALL = [
    pytest.param(run, size, marks=() if (run, size) in SMALL else pytest.mark.full)
    for run in grammar.RUNS
    for size in run.sizes
]


@pytest.mark.parametrize(("run", "size"), ALL, ids=lambda x: getattr(x, "name", x))
def test_every_entry_is_that_of_the_published_trace(run: grammar.Run, size: str) -> None:
    (trace,) = (
        trace for trace in published(run.file)["runs"] if (trace["run"], trace["sizes"]) == (run.traced, size)
    )
    entries = run.entries(size)
    assert len(entries) == trace["entries"]
    assert hashlib.sha256("\n".join(entries).encode()).hexdigest() == trace["sha256"]


def test_all_published_sizes_are_there() -> None:
    known = {(run.traced, size) for run in grammar.RUNS for size in run.sizes}
    files = {run.file for run in grammar.RUNS}
    traced = {(trace["run"], trace["sizes"]) for file in files for trace in published(file)["runs"]}
    # The sums of many proofs are no runs.
    assert {entry for entry in traced if not entry[0].endswith(("batch", "sum"))} == known


class _Enough(Exception):
    pass


def test_columns_of_many_records_have_the_pages_lengths() -> None:
    """No published trace has more records than a row holds salts of."""
    requested, rows = grammar.coalition_of(16_385, 1), 0

    def count(kind: int, label: str, _data: bytes, _state: bytes) -> None:
        nonlocal rows
        rows += (kind, label) == (POINT, "records")
        if (kind, label) == (CHALLENGE, "lookup alpha"):
            raise _Enough

    reader = grammar.Blank(Transcript(coalition.RUN, count), grammar.Heard())
    with pytest.raises(_Enough):
        coalition.read(requested, reader)
    r, k, a, t, u, bits_of_row = 15, 1, 15, 6, 11, 14
    entries = [r + k, 17, *[r] * u, *[a] * a, u, *[2 * u] * 4, a, a + t, 16, 6, 4]
    assert rows == sum(1 << max(bits - bits_of_row, 0) for bits in entries)


@pytest.mark.full
def test_the_page_is_what_the_reference_reads() -> None:
    assert grammar.PAGE.read_text(encoding="utf-8") == grammar.page(), "run: python docs/scan/grammar.py"


def test_grammars_fold_what_is_repeated_and_what_grows() -> None:
    def say(label: str) -> grammar.Token:
        return ("say", 5, 0, label, False)

    layers = [(say("mu"), ("rounds", "a", 1, k), say("rho")) for k in range(4)]
    tokens = [say("b"), *(token for layer in layers for token in layer), say("b")]
    assert list(grammar.merged([list(grammar.lines(grammar.fold(tokens)))])) == [
        "  C b",
        "  for k = 0, .., 3",
        "      C mu",
        ">     k x { P a, C a }",
        "      C rho",
        "  C b",
    ]
    shorter = [say("b"), say("c")]
    both = [
        list(grammar.lines(grammar.fold(each)))
        for each in ([say("b"), say("b"), say("c")], shorter, [say("c")])
    ]
    assert list(grammar.merged(both)) == ["  C b  x 2 | 1 | -", "  C c"]
