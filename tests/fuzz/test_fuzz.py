"""Mutated input of every kind ends in a named error or a verdict: never in a traceback, exit 70, or a line that acts.

Each case is a function of its name. A failure says which; `python -m tests.fuzz "window/17"` makes it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import parse_json
from rag_audit.account.account import check_receipt
from rag_audit.attest.window import Window
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.models.publication import Publication
from rag_audit.models.records import ReceiptBody, SignedReceiptBody, receipt_message
from rag_audit.models.requests import Answer, Refusal
from rag_audit.service import lines
from tests.fuzz.mutate import Mutator
from tests.fuzz.targets import TARGETS, Bench, Broken, run_case
from tests.window.simulator import ORIGIN, QUESTIONS, Service

SHORT = 25
"""Cases of each target in the default suite."""
LONG = 4_000
"""And in the full one, in blocks."""
BLOCK = 500


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # where reports of faults would go
    return Bench(tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_some_cases(target: str, bench: Bench) -> None:
    for number in range(SHORT):
        run_case(target, number, bench)


@pytest.mark.full
@pytest.mark.parametrize("block", range(LONG // BLOCK))
@pytest.mark.parametrize("target", TARGETS)
def test_many_cases(target: str, block: int, bench: Bench) -> None:
    for number in range(block * BLOCK, (block + 1) * BLOCK):
        run_case(target, number, bench)


# A service and its accounts, which talk to each other only.


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[Service, Window]:
    """An open window that has answered one query of each account but law-2, whose request waits."""
    service = Service(tmp_path_factory.mktemp("live"))
    window = service.open(system="scan")
    service.ask(window, "law-1", QUESTIONS["law"][0])
    return service, window


def exchange(live: tuple[Service, Window]) -> tuple[Callable[[int], None], ...]:
    """A case of mutated requests, one of mutated replies, and one of receipts that the provider signed as they are."""
    service, window = live
    account = service.accounts["law-2"]
    public = Publication.load(window.directory / "public")
    request = account.request(public, QUESTIONS["law"][1])
    honest = json.loads(request.canonical())
    reply: Any = json.loads(window.handle(honest).canonical())
    refusal: Any = json.loads(window.refuse("limit", "x", account="law-2", i=1, hq=honest["hq"]).canonical())

    def ask(number: int) -> None:
        draw = Mutator(f"requests/{number}")
        line = draw.json(honest).replace(b"\n", b" ")
        answered = lines._reply(window, line, False)
        if not isinstance(answered, Answer | Refusal):
            raise Broken(f"requests/{number}: {answered!r}")
        json.loads(answered.canonical())

    def hear(number: int) -> None:
        draw = Mutator(f"replies/{number}")
        value = json.loads(json.dumps(draw.pick(reply, reply, refusal)))
        if "receipt" in value and draw.random.random() < 0.4:
            value["receipt"] = draw.text(value["receipt"])
        else:
            value = draw.changed(value, value)
        with Bench.named(None):  # type: ignore[arg-type]
            account.accept(public, request, value, service.key.verifier)

    opened = TlogProof.parse(reply["receipt"])
    assert opened.extra is not None
    body = parse_json(opened.extra, source="extra")["body"]

    def signed(number: int) -> None:
        draw = Mutator(f"signed receipts/{number}")
        with Bench.named(None):  # type: ignore[arg-type]
            changed = ReceiptBody.parse(draw.gentle(body), field="body")
            leaf = leaf_hash(changed.record.canonical())
            message = receipt_message(ORIGIN, window.header_digest, leaf, changed.canonical())
            extra = SignedReceiptBody(body=changed, sig=service.key.sign(message).hex()).canonical()
            check_receipt(str(replace(opened, extra=extra)), public, service.key.verifier)

    return ask, hear, signed


@pytest.mark.parametrize("cases", [SHORT, pytest.param(LONG, marks=pytest.mark.full)])
def test_requests_and_replies(cases: int, live: tuple[Service, Window]) -> None:
    for case in exchange(live):
        for number in range(cases):
            case(number)


# The fuzzer itself.


def test_a_case_is_a_function_of_its_name(bench: Bench) -> None:
    first = [Mutator(f"x/{n}").json(bench.window) for n in range(20)]
    assert first == [Mutator(f"x/{n}").json(bench.window) for n in range(20)]
    assert len(set(first)) == 20


def test_a_fault_is_found(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the attack found, put back: a type that is a list; a line that a file adds; a parser's own error."""
    from rag_audit.models import records

    def fault(value: Any, *, field: str) -> Any:
        return records._ENTRY_TYPES[value["type"]].parse(value, field=field)

    with monkeypatch.context() as patch:
        patch.setattr("rag_audit.verify.verifier.parse_entry", fault)
        with pytest.raises(Broken, match="ended in 70"):
            for number in range(2_000):
                run_case("window", number, bench)
    with monkeypatch.context() as patch:
        patch.setattr("rag_audit.cli.common.printable", lambda text: text)
        patch.setattr("rag_audit._internal.errors.printable", lambda text: text)
        with pytest.raises(Broken, match=r"printed|says"):
            for number in range(2_000):
                run_case("trust new", number, bench)
