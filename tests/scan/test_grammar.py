"""docs/scan/grammar.md: what the reference reads is what the published traces have, message by message, claim by claim."""

from __future__ import annotations

import pytest

from docs.scan import grammar
from tests.scan.golden import published


@pytest.mark.parametrize(
    ("run", "size"),
    [(run, size) for run in grammar.RUNS for size in run.sizes],
    ids=lambda x: getattr(x, "name", x),
)
def test_every_entry_is_that_of_the_published_trace(run: grammar.Run, size: str) -> None:
    (trace,) = (
        trace
        for trace in published(run.trace)["runs"]
        if (trace["run"], trace["sizes"]) == (run.traced, size)
    )
    heard = grammar.hear(run.name, run.sizes[size])
    assert len(heard.entries) == trace["entries"]
    assert heard.digest == trace["sha256"]


def test_all_published_sizes_are_there() -> None:
    files = {run.trace for run in grammar.RUNS}
    known = {(run.traced, size) for run in grammar.RUNS for size in run.sizes}
    traced = {(trace["run"], trace["sizes"]) for file in files for trace in published(file)["runs"]}
    assert {entry for entry in traced if entry[0] in {name for name, _ in known}} == known


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
