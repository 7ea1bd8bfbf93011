"""A window's accounts as attackers: what they are handed is what a generator answers from."""

import json
from pathlib import Path
from typing import Any

import pytest

from rag_audit.lab.attacks.generators.extractive import ExtractiveGenerator
from rag_audit.lab.attacks.interface import AttackError, Probe, YesNo, verdict_of
from rag_audit.lab.attacks.proxy import TokenStatistics
from rag_audit.lab.attacks.targets.window import WindowService
from rag_audit.mechanisms.none import Exact
from rag_audit.models.publication import Publication
from tests.window.simulator import TEXTS, Service


def test_accounts_attack_a_window_until_its_limit(tmp_path: Path) -> None:
    service = Service(tmp_path)
    window = service.open(n=2, mechanisms={tenant: Exact() for tenant in TEXTS}, tokens=(64, 512))

    def send(request: Any) -> Any:
        return json.loads(window.handle(json.loads(request.canonical())).canonical())

    accounts = [service.accounts["law-1"], service.accounts["law-2"]]
    absent = "Equity is a body of rules that chancellors developed beside the common law of England."
    target = WindowService(
        accounts,
        Publication.load(window.directory / "public"),
        service.key.verifier,
        send,
        ExtractiveGenerator(TokenStatistics([absent])),
        {0: TEXTS["law"][1], 1: absent},
    )
    assert "eps_audit inf" in target.certified
    here, away = (
        target.ask(Probe(n, 0, n, YesNo(text, text, presence=True)))
        for n, text in enumerate((TEXTS["law"][1], absent))
    )
    assert here.actual is True and verdict_of(here.reply.text) is True
    assert away.actual is False and verdict_of(away.reply.text) is False
    target.ask(Probe(0, 1, 0, YesNo("tort", "tort")))
    with pytest.raises(
        AttackError, match="the account has used all queries of the window's policy"
    ) as caught:
        target.ask(Probe(0, 2, 0, YesNo("bail", "bail")))
    assert caught.value.field == "law-1"
    with pytest.raises(AttackError, match="one tenant"):
        WindowService([*accounts, service.accounts["medicine-1"]], Publication.load(window.directory / "public"),
                      service.key.verifier, send, target._generator, {})  # fmt: skip
    window.shut()
