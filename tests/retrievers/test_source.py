"""A program's questions: passages with metadata, receipts, the verdict of their window, and another window
meanwhile."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path

import pytest

from rag_audit.account.retrievers.evidence import KEY, Evidence
from rag_audit.account.retrievers.source import Names, RepeatedId, Source
from rag_audit.errors import RequestRefused, SchemaError, SetupError, StoreError
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.passage import Passage
from rag_audit.models.publication import Publication
from rag_audit.models.windowfile import WindowFile
from rag_audit.retrieval.cuts import describe_repeated_ids
from rag_audit.service.windows import Windows
from tests.retrievers.conftest import DESCRIBED, Program
from tests.serving.conftest import serving
from tests.window.simulator import QUESTIONS, Service

Make = Callable[[], Program]


def test_passages_carry_their_metadata_and_evidence(program: Make) -> None:
    told = program()
    source = Source(told.url, told.account, told.provider)
    result = source.ask(QUESTIONS["law"][0])
    texts = {p.text: p for p in DESCRIBED["law"]}
    for passage in result:
        fields = {k: v for k, v in passage.metadata.items() if k != KEY}
        assert fields == texts[passage.text].fields
        evidence = Evidence.of(passage.metadata)
        assert evidence.header == told.served.window.header_digest
        assert (evidence.i, evidence.receipt().query) == (1, QUESTIONS["law"][0])
    again = asyncio.run(source.ask_async(QUESTIONS["law"][1]))
    assert {Evidence.of(p.metadata).i for p in again} <= {2}
    assert len(Source(told.url, told.account, told.provider, top_k=1).ask(QUESTIONS["law"][0])) <= 1


def test_questions_of_one_account_from_many_threads_wait_for_each_other(program: Make) -> None:
    told = program()
    source = Source(told.url, told.account, told.provider)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(source.ask, [QUESTIONS["law"][n % 2] for n in range(6)]))
    assert len(told.served.window.records) == 6


def test_the_window_s_verdict_is_reached_from_a_passage(program: Make, tmp_path: Path) -> None:
    told = program()
    parties, window = told.served.parties, told.served.window
    result = [
        p for _ in range(4) for p in Source(told.url, told.account, told.provider).ask(QUESTIONS["law"][0])
    ]
    assert result  # four answers of two positions each: all empty has a chance of about 1 in 4,000
    evidence = Evidence.of(result[0].metadata)
    parties.finish(window)
    window.prove()
    (tmp_path / "trust.toml").write_text(parties.trust_text(window.context.policy))
    verdict = evidence.verdict(window.directory / "public", tmp_path / "trust.toml")
    assert verdict.line.startswith("PASS"), verdict.line
    assert verdict.figures["receipts"] == 4
    with pytest.raises(SchemaError, match="another window"):
        evidence.model_copy(update={"header": "00" * 32}).verdict(
            window.directory / "public", tmp_path / "trust.toml"
        )


def test_a_refusal_is_the_program_s_unless_another_window_is_served(tmp_path: Path) -> None:
    parties = Service(tmp_path)
    windows = Windows()
    with (
        parties.open("one", system="scan", n=2) as first,
        serving(parties, first, served=windows) as served,
    ):
        windows.put(first)
        source = Source(served.service.url, parties.accounts["law-1"].directory, str(parties.key.verifier))
        source.ask(QUESTIONS["law"][0])
        parties.finish(first)
        with pytest.raises(RequestRefused) as caught:
            source.ask(QUESTIONS["law"][0])
        assert caught.value.reason == "closed"
        previous = ClosedWindow.of(WindowFile.load(first.directory / "public"), field="window").as_previous()
        parties.clock.now = first.header.closes_at + 1
        with parties.open("two", system="scan", window="w-2", n=2, previous=previous) as second:
            for requested in (source, copy(source)):
                requested._window = Publication.load(first.directory / "public")  # what it saw before
            windows.put(second)
            windows.take(first)
            source.ask(QUESTIONS["law"][0])
            asyncio.run(requested.ask_async(QUESTIONS["law"][0]))
            assert len(second.records) == 2 and source._window is not None
            assert source._window.header_digest() == second.header_digest


def test_what_names_no_answer_is_refused(program: Make) -> None:
    told = program()
    for metadata in ({}, {KEY: "x"}, {KEY: {"window": "w-1"}}):
        with pytest.raises(SchemaError):
            Evidence.of(metadata)
    evidence = Evidence(window="w-1", header="00" * 32, account=str(told.account), i=1, service=told.url)
    with pytest.raises(StoreError, match="no receipt"):
        evidence.receipt()
    with pytest.raises(SetupError):
        Source(told.url, told.account, told.provider, top_k=0)


def test_an_id_belongs_to_one_committed_passage(program: Make) -> None:
    """The same passage has the same id in every answer, whatever the question; and no two passages share one."""
    told = program()
    committed = {p.text: p.fields["id"] for p in DESCRIBED["law"]}
    sources = [Source(told.url, told.account, told.provider) for _ in range(2)]
    seen: dict[str, set[str]] = {}
    for number in range(8):
        for passage in sources[number % 2].ask(QUESTIONS["law"][number % 3]):
            seen.setdefault(passage.text, set()).add(passage.id)
    assert seen and all(ids == {committed[text]} for text, ids in seen.items())


def test_a_passage_without_an_id_is_named_by_window_tenant_and_position() -> None:
    header = "ab" * 32
    names = Names(header)
    for fields in ({}, {"id": None}, {"id": " "}, {"id": True}, {"id": ["x"]}, {"source": "x"}):
        assert names.name("law", 3, fields) == f"{header[:16]}/law/3"
    assert names.name("law", 3, {"id": 7}) == "7" and Names(header).name("law", 3, {"id": "7"}) == "7"


def test_a_repeated_id_is_warned_of_and_joins_no_two_passages() -> None:
    header = "ab" * 32
    names = Names(header)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [names.name("law", p, {"id": i}) for p, i in ((1, "a"), (2, "b"), (1, "a"))] == ["a", "b", "a"]
        assert names.name("tax", 2, {"id": "a"}) == "a"  # another tenant's
    for _ in range(2):
        with pytest.warns(RepeatedId, match="positions 1 and 5 of tenant law"):
            assert names.name("law", 5, {"id": "a"}) == f"{header[:16]}/law/5"
    assert names.name("law", 1, {"id": "a"}) == "a"


def test_repeated_ids_are_named_before_they_are_committed() -> None:
    described = {
        "law": [Passage.of(f"text {n}", {"id": name}) for n, name in enumerate(("a", 7, "b", "a", "7", "c"))],
        "tax": [
            Passage.of("text", {"id": "a"}),
            Passage("text"),
            Passage("text"),
            Passage.of("text", {"x": "a"}),
        ],
    }
    (line,) = describe_repeated_ids(described)
    assert line.startswith("2 ids in the metadata of law ") and "'a' on 2 passages" in line
    assert "numbers 0 and 3" in line and "'7' on 2 passages, the first of them numbers 1 and 4" in line
    many = {"law": [Passage.of("text", {"id": n // 2}) for n in range(20)]}
    (line,) = describe_repeated_ids(many)
    assert "; 7 more;" in line
