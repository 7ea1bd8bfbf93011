"""Several windows with pooled listing: documents stay listed, and one malicious provider for each wrong set."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.canonical import read_json
from rag_audit.cli import main
from rag_audit.commit import carrying, preparing
from rag_audit.commit.carrying import Continuing
from rag_audit.commit.preparing import Preparation, open_prepared, prepare
from rag_audit.commit.stored import delete_secrets
from rag_audit.commit.tables import CarriedTable, ListedRows, WindowTable, load_table, store_table
from rag_audit.errors import ExitCode, PolicyError, StoreError, WitnessError
from rag_audit.mechanisms.accounting.documents import pooled_factor
from rag_audit.mechanisms.base import Mechanism
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.none import Exact
from rag_audit.mechanisms.pooled_listing import PooledListing
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.publication import Publication
from rag_audit.models.records import PreviousTable
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.scan.listed import listed_digest, no_rows, open_listed
from rag_audit.proofs.statements.tenant import ColumnCommitment
from rag_audit.report import render
from rag_audit.report.cumulative import _of_tenant, compose, load_window
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.verify.checks import tables
from tests.window.outcomes import exit_codes
from tests.window.simulator import ORIGIN, QUESTIONS, TEXTS
from tests.window.test_document_tables import FIRST, SECOND, THIRD, Texts, passages
from tests.window.test_pooled_listing import (
    ACCEPTED,
    CERTAIN,
    KEEP,
    MEDICINE,
    POOLED,
    SHAPE,
    PooledChain,
    law_records,
)

FAIL, UNDECIDED = ExitCode.FAIL, ExitCode.MALFORMED
CONTRACT = QUESTIONS["law"][0]
MECHANISMS = {"law": CERTAIN, "medicine": MEDICINE}


class Windows(PooledChain):
    """A chain with windows in which the tenant law has records or none."""

    def go(
        self,
        texts: Texts,
        questions: Sequence[str] = (CONTRACT,),
        *,
        abandoned: bool = False,
        proved: bool = True,
        **changes: Any,
    ) -> Path:
        """A window from header to trailer.

        :param questions: what account law-1 asks
        :param proved: whether its records are proved
        """
        with self.open(texts, **{"mechanisms": MECHANISMS, **changes}) as window:
            for text in questions:
                self.service.ask(window, "law-1", text)
            if not abandoned:
                self.service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
            self.service.finish(window, abandoned=abandoned)
            if not abandoned:
                window.answer_challenge(self.service.challenge(window))
            elif proved:
                window.prove()
        return window.directory

    def verdict(self, number: int, *previous: int | Path, limit: str = "1e15") -> ReportedVerdict:
        """The verdict on a window, with earlier windows in hand."""
        folder = self.windows[number - 1]
        with self.resumed(number) as window:
            receipts = self.service.receipts(window, folder / "receipts")
            trust = self.service.trust(
                window.policy, **{**ACCEPTED, "max_exclusion_factor": limit, "min_keep": "0.5"}
            )
        files = [p if isinstance(p, Path) else self.windows[p - 1] / "public" for p in previous]
        return verify_window(folder / "public", trust=trust, receipts=[receipts], previous=files)

    def table(self, number: int) -> WindowTable:
        return load_table(self.windows[number - 1], "law")

    def began(self, number: int) -> set[str]:
        """The documents that are listed when a window begins."""
        table = self.table(number)
        return _keys(table, table.listed_at_first().tobytes())

    def ended(self, number: int) -> set[str]:
        """The documents that are listed when a window ends."""
        table = self.table(number)
        assert table.ended is not None
        return _keys(table, table.ended.bits)

    def named(self, number: int) -> PreviousTable:
        """The table before, as a window header names it."""
        tenants = Publication.load(self.windows[number - 1] / "public").tenants
        law = next(t for t in tenants if isinstance(t, dict) and t["tenant"] == "law")
        table: Any = law["table"]
        return PreviousTable.parse(table["previous"], field="previous")

    def last_commitment(self, number: int) -> str | None:
        file = WindowFile.load(self.windows[number - 1] / "public")
        records: list[Any] = [e for e in file.entries if isinstance(e, dict) and e["type"] == "query"]
        of_law = [r["listed_rows"] for r in records if r["tenant"] == "law"]
        return of_law[-1] if of_law else None


def _keys(table: WindowTable, bits: bytes) -> set[str]:
    rows = zip(table.table.rows, bits, strict=True)
    return {row.key for row, bit in rows if bit and row.key is not None}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Windows]:
    yield Windows(tmp_path)


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Windows:
    """Records in the first window; none of the tenant in the second; the third is abandoned after a record; records in
    the fourth. A document is edited, one deleted and added again, and two are new."""
    result = Windows(tmp_path_factory.mktemp("windows"))
    result.go(FIRST, [CONTRACT, QUESTIONS["law"][1]])
    delete_secrets(result.windows[0])
    result.go(SECOND, [])
    result.go(SECOND, ["What protects original works?"], abandoned=True)
    result.go(THIRD, [CONTRACT])
    return result


def test_a_listed_document_stays_listed_and_a_new_one_is_not(chain: Windows) -> None:
    first = chain.ended(1)
    assert "a" in first and chain.began(1) == set()
    assert chain.began(2) == chain.ended(2) == chain.began(3) == first
    third = chain.ended(3)
    assert first < third and "d" in third
    assert chain.began(4) == third and "e" not in third
    # The document b is deleted in the windows between, and keeps its mark if it has one.
    assert first <= chain.began(4)
    for number in (2, 3, 4):
        table = chain.table(number)
        assert not table.listed_at_first()[: table.table.drawn].any()


def test_a_header_names_the_last_record_of_the_window_before(chain: Windows) -> None:
    named = {number: chain.named(number) for number in (2, 3, 4)}
    assert [named[n].window for n in (2, 3, 4)] == ["w-1", "w-2", "w-3"]
    assert [named[n].listed for n in (2, 3, 4)] == [chain.last_commitment(n) for n in (1, 2, 3)]
    assert named[3].listed is None and named[2].listed and named[4].listed
    medicine = Publication.load(chain.windows[1] / "public").tenants[1]
    assert isinstance(medicine, dict) and medicine["table"]["previous"]["listed"] is None  # type: ignore[index,call-overload]


@pytest.mark.parametrize("number", [2, 4])
def test_windows_of_the_chain_pass_with_the_windows_before(chain: Windows, number: int) -> None:
    verdict = chain.verdict(number, *range(1, number))
    accepted = {"trust.records", "receipt.independent", "trust.query_embedding"} if number == 2 else set()
    bad = {c.id for c in verdict.checks if c.status.value != "pass"}
    assert bad <= accepted, verdict.deciding
    tables = next(c for c in verdict.checks if c.id == "header.tables")
    assert f"law: the table of window w-{number - 1}, checked back to the first table" in tables.actual
    assert "was not supplied" not in render(verdict)


def test_without_the_windows_before_the_verdict_says_so(chain: Windows) -> None:
    alone = chain.verdict(4)
    assert alone.line == "UNPROVEN header.tables"
    assert alone.deciding is not None and "the window before w-4 was not supplied" in alone.deciding.actual


def test_the_chain_has_the_epsilon_of_one_window(chain: Windows) -> None:
    parts = [load_window(folder / "public") for folder in chain.windows]

    def eps(windows: Any) -> float:
        return _of_tenant(windows, "law", "0").eps

    one = eps(parts[:1])
    assert eps(parts) == one and 0 < one < 100
    assert eps([parts[0], parts[2]]) == pytest.approx(2 * one, rel=1e-3), "the link is missing"
    listed = parts[1].tables["law"]
    assert listed[1] is not None
    other = replace(
        parts[1],
        tables={**parts[1].tables, "law": (listed[0], listed[1].model_copy(update={"listed": None}))},
    )
    assert eps([parts[0], other]) == pytest.approx(2 * one, rel=1e-3), "another set is carried"
    whole = compose(parts).exclusion_factor
    dropped = 1 - CERTAIN.keep / (1 << 40) if CERTAIN.keep else 0
    q = parts[0].policy.mechanism_of("law").flip_probability
    assert whole is not None and q is not None
    m = parts[0].policy.n * next(t for t in parts[0].policy.tenants if t.tenant == "law").accounts_max
    assert whole == pytest.approx(1 / (dropped * (1 - q / (1 << 40)) ** (4 * m)), rel=1e-3)


def test_the_next_window_is_prepared_while_this_one_answers(fresh: Windows) -> None:
    """The records that follow the preparation count: the set is taken when the prepared window opens."""
    with fresh.open(FIRST, mechanisms=MECHANISMS) as window:
        fresh.service.ask(window, "law-2", "bail")
        policy = fresh.service.policy(
            window="w-2", capacities={"law": 16, "medicine": 16}, system="scan", mechanisms=MECHANISMS
        )
        folder = fresh.windows[0].parent / "w-2"
        tokens = policy.tokens
        prepare(
            folder,
            policy=policy,
            roster=[a.roster_entry for a in fresh.service.accounts.values()],
            documents={"law": passages(SECOND), "medicine": passages({"m": TEXTS["medicine"][:2]})},
            embedder=get_embedder(
                fresh.service.embedder, query_tokens=tokens.query, document_tokens=tokens.document
            ),
            origin=ORIGIN,
            continuing=Continuing([fresh.windows[0]], lambda line: None),
        )
        carried = carrying.carried_from([fresh.windows[0]], "law")
        assert carried is not None and carried.listed is None
        prepared = Preparation.parse(read_json(folder / "prepared.json", max_bytes=1 << 20), field="prepared")
        with pytest.raises(PolicyError, match="the listed rows of the window before are not final"):
            carrying.with_listed_rows(folder, policy, prepared.tenants, fresh.windows)
        fresh.service.ask(window, "law-1", CONTRACT)
        fresh.finish(window)
    previous = ClosedWindow.of(WindowFile.load(fresh.windows[0] / "public"), field="previous").as_previous()
    fresh.windows.append(folder)
    open_prepared(
        folder,
        key=fresh.service.key,
        beacon=fresh.service.beacon(),
        previous=previous,
        policy=policy.moved(fresh.service.clock() + 60_000),
        clock=fresh.service.clock,
    )
    with fresh.resumed(2) as window:
        fresh.service.cosign_header(window)
        fresh.service.clock.now = window.header.opens_at
        fresh.service.ask(window, "law-1", "copyright")
        fresh.finish(window)
    assert "a" in fresh.began(2) and fresh.named(2).listed == fresh.last_commitment(1)
    verdict = fresh.verdict(2, 1)
    assert verdict.passed, verdict.deciding


def test_a_changed_store_of_the_set_is_named(fresh: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.go(FIRST)
    store_table(fresh.windows[0], "law", replace(fresh.table(1), ended=None))
    with pytest.raises(StoreError) as caught:
        fresh.open(SECOND, mechanisms=MECHANISMS)
    assert "listed rows are not those of the tenant's last record" in caught.value.message
    assert caught.value.expected == fresh.last_commitment(1)


def test_a_chain_keeps_its_mechanism(fresh: Windows) -> None:
    fresh.go(FIRST)
    with pytest.raises(PolicyError) as caught:
        fresh.open(SECOND, mechanisms={"law": Sampling(keep=KEEP, documents=SHAPE), "medicine": MEDICINE})
    assert caught.value.field == "policy.tenants.law.mechanism" and caught.value.expected == "pooled-listing"
    with pytest.raises(PolicyError) as caught:
        fresh.open(SECOND, mechanisms={"law": CERTAIN, "medicine": replace(POOLED)})
    assert caught.value.field == "policy.tenants.medicine.mechanism"


RARER = replace(CERTAIN, rules=replace(CERTAIN.rules, unrequested="0.2"))
"""Another flip probability."""


def test_a_chain_keeps_its_chance(fresh: Windows) -> None:
    """The epsilon and the factor of a chain use one flip probability for all windows."""
    fresh.go(FIRST)
    with pytest.raises(PolicyError, match="constant in a chain") as caught:
        fresh.open(SECOND, mechanisms={"law": RARER, "medicine": MEDICINE})
    assert "flip_probability" in str(caught.value.expected) and caught.value.expected != caught.value.actual


def test_windows_with_another_chance_are_no_chain(fresh: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that changes the chance after the first window would publish the figure of the last window only."""
    with monkeypatch.context() as patched:
        patched.setattr(PooledListing, "own_chain_constants", {})
        fresh.go(FIRST, mechanisms={"law": RARER, "medicine": MEDICINE})
        fresh.go(SECOND)
    assert fresh.verdict(2).line == "UNPROVEN header.tables"
    result = fresh.verdict(2, 1)
    (failed,) = [check for check in result.checks if check.status.value == "fail"]
    assert (result.exit_code, failed.id) == (FAIL, "header.tables")
    assert "flip_probability" in str(failed.expected) and failed.expected != failed.actual
    parts = [load_window(folder / "public") for folder in fresh.windows]
    with pytest.raises(PolicyError, match="constant in a chain") as caught:
        compose(parts)
    assert "flip_probability" in str(caught.value.expected) and caught.value.field == "window w-2, tenant law"
    assert str(caught.value.expected).endswith("as in window w-1")


def test_windows_with_another_number_of_queries_do_not_compose(chain: Windows) -> None:
    one, two = (load_window(folder / "public") for folder in chain.windows[:2])
    compose([one, two])
    more = replace(two, policy=two.policy.model_copy(update={"n": two.policy.n + 1}))
    with pytest.raises(PolicyError, match="constant in a chain") as caught:
        compose([one, more])
    for part, told in ((one, caught.value.expected), (more, caught.value.actual)):
        accounts = next(t.accounts_max for t in part.policy.tenants if t.tenant == "law")
        assert f"m {part.policy.n * accounts}," in f"{told},"


def test_a_chain_with_a_missing_window_has_no_total(chain: Windows) -> None:
    """Without a window between, the command does not know whether the windows share bits and listed documents."""
    paths = [str(folder / "public") for folder in chain.windows]

    def run(*given: str) -> tuple[Result, dict[str, Any]]:
        arguments = ["verifier", "cumulative", *given]
        result = CliRunner().invoke(main, [*arguments, "--json"])
        told = CliRunner().invoke(main, arguments)
        assert result.exit_code == told.exit_code
        return told, json.loads(result.stdout)

    whole, figures = run(*paths)
    assert whole.exit_code == 0 and "total: eps" in whole.stdout and "INCOMPLETE" not in whole.stdout
    assert figures["complete"] and figures["missing"] == [] and figures["given_windows"] is None
    words = " ".join(whole.stdout.split())
    assert (
        "for any number of accounts and all queries that the policies of the given windows permit." in words
    )
    assert "chance at the queries of each further window multiplies the figure" in words
    law, medicine = words[words.index("Accounts of law") :].split("Accounts of medicine")
    assert "accounts and queries" not in law and "the figure covers all windows" not in law
    assert "a factor of at most 3.3334 (exclusion_factor), for any number of accounts and queries" in medicine
    for given, before in (((0, 2, 3), "w-3"), ((1, 2, 3), "w-2"), ((3,), "w-4")):
        part, figures = run(*(paths[number] for number in given))
        assert part.exit_code == 3
        first = part.stdout.splitlines()[0]
        assert first.startswith(f"INCOMPLETE chain, no total: the window before {before} (header ")
        assert "\ntotal:" not in part.stdout and "the given windows only, not a total: eps" in part.stdout
        names = ("eps", "bound", "exclusion_factor", "exclusion_factor_all_accounts")
        assert [figures[name] for name in names] == [None] * 4 and not figures["complete"]
        header = load_window(chain.windows[int(before[2:]) - 1] / "public").previous
        assert figures["missing"] == [{"before": before, "header": header}]
        assert all(figures["given_windows"][name] for name in names)


def test_the_number_of_queries_is_constant_in_a_chain(chain: Windows) -> None:
    with chain.resumed(4) as window:
        policy = window.policy
    more = policy.model_copy(update={"n": policy.n + 1})
    first, second = (tables._constants(p, "law") for p in (policy, more))
    assert first != second and ", m " in first
    assert tables._constants(policy, "medicine") == tables._constants(more, "medicine")


def test_the_figures_of_chance_count_the_windows_of_the_chain(chain: Windows) -> None:
    with chain.resumed(4) as window:
        own = window.policy.mechanism_of("law")
    assert own.flip_probability is not None
    factor = chain.verdict(4, 3, 2, 1).figures["tenants"]["law"]["exclusion_factor"]
    expected = pooled_factor(own.sampled_share, own.flip_probability, queries=own.chance_queries(1) * 4)
    assert factor is not None and float(factor) == pytest.approx(expected, rel=1e-3)


def test_the_limit_of_the_factor_counts_the_windows_of_the_chain(chain: Windows) -> None:
    """A chain ends when chance has listed too many documents, although each window alone is below the limit. Nobody
    meets the limit with fewer windows."""
    with chain.resumed(4) as window:
        own = window.policy.mechanism_of("law")
    assert own.flip_probability is not None
    whole = Decimal(str(chain.verdict(4, 3, 2, 1).figures["tenants"]["law"]["exclusion_factor"]))
    near = Decimal(pooled_factor(own.sampled_share, own.flip_probability, queries=own.chance_queries(1) * 3))
    near = near.quantize(Decimal("0.0001"), ROUND_CEILING)
    assert near < whole
    limits = [f"{value.normalize():e}".replace("+", "") for value in (whole, near)]
    assert chain.verdict(4, 3, 2, 1, limit=limits[0]).passed
    verdict = chain.verdict(4, 3, 2, 1, limit=limits[1])
    assert verdict.exit_code is ExitCode.UNMET and verdict.line.startswith(
        "UNMET trust.max_exclusion_factor "
    )
    (check,) = (c for c in verdict.checks if c.status.value != "pass")
    assert (check.id, Decimal(check.actual)) == ("trust.max_exclusion_factor", whole)
    assert chain.verdict(4, 3, 2, limit=limits[1]).line == "UNPROVEN header.tables"


# -- malicious providers -----------------------------------------------------------------------------------------------


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that does not check which windows its tables follow."""
    monkeypatch.setattr(preparing, "check_chain", lambda policy, folders, previous: None)


@pytest.mark.parametrize("abandoned", [False, True], ids=["complete", "abandoned"])
@pytest.mark.parametrize("mechanism", [Exact(), Noise()], ids=["none", "noise"])
def test_answers_under_another_mechanism_leave_the_chain_without_a_figure(
    fresh: Windows, mechanism: Mechanism, abandoned: bool, unchecked: None
) -> None:
    """An account that reads exact answers in one window of the chain learns what bits and lists hide in all others."""
    fresh.go(FIRST)
    fresh.go(SECOND, abandoned=abandoned, mechanisms={"law": mechanism, "medicine": MEDICINE})
    fresh.go(SECOND)
    verdict = fresh.verdict(3, 1, 2)
    assert exit_codes(verdict) == {"header.tables": ExitCode.UNMET}
    assert verdict.line == "UNPROVEN header.tables" and verdict.deciding is not None
    assert verdict.deciding.actual == (
        f"window w-2 answered accounts of law under mechanism {mechanism.name}: no figure holds for the chain"
    )
    assert "4.11" not in render(verdict)


def test_a_first_window_with_exact_answers_leaves_the_chain_without_a_figure(
    fresh: Windows, unchecked: None
) -> None:
    fresh.go(FIRST, mechanisms={"law": Exact(), "medicine": MEDICINE})
    fresh.go(SECOND)
    verdict = fresh.verdict(2, 1)
    assert exit_codes(verdict) == {"header.tables": ExitCode.UNMET}
    assert verdict.deciding is not None and "window w-1" in verdict.deciding.actual


def test_a_window_under_another_mechanism_without_answers_counts_nothing(
    fresh: Windows, unchecked: None
) -> None:
    fresh.go(FIRST)
    fresh.go(SECOND, [], mechanisms={"law": Exact(), "medicine": MEDICINE})
    fresh.go(SECOND)
    verdict = fresh.verdict(3, 1, 2)
    assert "header.tables" not in exit_codes(verdict), verdict.deciding


def test_a_chain_that_starts_anew_needs_the_first_window(
    fresh: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window before names no table before, although its header names a window before."""
    fresh.go(FIRST)
    with monkeypatch.context() as patched:
        patched.setattr(preparing, "check_chain", lambda policy, folders, previous: None)
        patched.setattr(carrying, "carried_from", lambda folders, tenant, read: None)
        fresh.go(SECOND)
    fresh.go(THIRD)
    assert fresh.verdict(3, 2).line == "UNPROVEN header.tables"
    assert exit_codes(fresh.verdict(3, 2, 1)) == {"header.tables": FAIL}
    for given, count in (((1, 2, 3), 2), ((2, 3), 1)):
        paths = [str(fresh.windows[number - 1] / "public") for number in given]
        told = CliRunner().invoke(main, ["verifier", "cumulative", *paths]).stdout
        assert "eps inf at delta 0, for law, medicine" in told and "for law: eps" in told
        assert "persists in the chain" not in told
        assert ("law: 2 of the given windows continue no table" in told) == (count == 2)


Cheat = Callable[[Windows, CarriedTable], ListedRows]


def before_the_last_record(chain: Windows, carried: CarriedTable) -> ListedRows:
    """The set before the last record of the window before."""
    number = int(carried.window[2:])
    with chain.resumed(number) as window:
        records = law_records(window)
        sets = window.answers._listed
        bits = sets.before("law", len(records) - 1).tobytes()
        constants = window.context.public("law").constants
        system = window.context.system("law")
        commitment, opening = system.open_listed(constants, bits, sets._secret(records[-2]))
        assert commitment.digest == records[-2].listed_rows
    return ListedRows(bits, opening, commitment)


def as_it_began(chain: Windows, carried: CarriedTable) -> ListedRows:
    """The set with which the window before began, as if it had no record."""
    table = chain.table(int(carried.window[2:]))
    opening = carried.opening[len(carried.opening) // 3 * 2 :]
    return ListedRows(table.listed_at_first().tobytes(), opening, None)


def cleared(chain: Windows, carried: CarriedTable) -> ListedRows:
    """The empty set with its public commitment."""
    points = no_rows(16, SHAPE.rows)
    blinding = (1).to_bytes(32, "big") * (len(points) // 32)
    return ListedRows(
        bytes(SHAPE.rows), blinding, ColumnCommitment(listed_digest(16, SHAPE.rows, points), points)
    )


def changed(of: Callable[[WindowTable, bytearray], None]) -> Cheat:
    """The last set with other bits, under a commitment of its own."""

    def cheat(chain: Windows, carried: CarriedTable) -> ListedRows:
        assert carried.listed is not None
        bits = bytearray(carried.listed.bits)
        of(chain.table(int(carried.window[2:])), bits)
        commitment, opening = open_listed(16, bytes(bits), bytes(32))
        return ListedRows(bytes(bits), opening, commitment)

    return cheat


def _clear(table: WindowTable, bits: bytearray) -> None:
    bits[next(n for n, row in enumerate(table.table.rows) if row.key == "a")] = 0


def _set(table: WindowTable, bits: bytearray) -> None:
    bits[:] = bytes([1]) * len(bits)


def _swap(table: WindowTable, bits: bytearray) -> None:
    one, other = bits.index(1), bits.index(0)
    bits[one], bits[other] = 0, 1


CHEATS: dict[str, Cheat] = {
    "the set before the last record": before_the_last_record,
    "the set at the beginning of the window before": as_it_began,
    "the empty set": cleared,
    "a cleared bit": changed(_clear),
    "a bit that is set": changed(_set),
    "two handles that exchange their marks": changed(_swap),
}


@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS)
def test_another_set_than_that_of_the_last_record_is_refused(
    fresh: Windows, cheat: Cheat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider commits to the set, names it in the header, and its proofs of the new window are valid."""
    fresh.go(FIRST, [CONTRACT, QUESTIONS["law"][1]])
    honest = carrying.carried_from

    def false(folders: Sequence[Path], tenant: str, read: Any) -> CarriedTable | None:
        carried = honest(folders, tenant, read)
        if carried is None or tenant != "law":
            return carried
        return replace(carried, listed=cheat(fresh, carried))

    with monkeypatch.context() as patched:
        patched.setattr(carrying, "carried_from", false)
        fresh.go(SECOND)
    assert exit_codes(fresh.verdict(2, 1)) == {"header.tables": FAIL}
    alone = fresh.verdict(2)
    assert alone.line == "UNPROVEN header.tables", "the window before is the only evidence"


def test_the_set_of_an_older_window_is_refused(fresh: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second window lists rows, and the third one names the set that the second began with."""
    fresh.go(FIRST)
    fresh.go(SECOND, ["copyright"])
    honest = carrying.carried_from

    def older(folders: Sequence[Path], tenant: str, read: Any) -> CarriedTable | None:
        carried = honest(folders, tenant, read)
        return (
            replace(carried, listed=as_it_began(fresh, carried)) if carried and tenant == "law" else carried
        )

    with monkeypatch.context() as patched:
        patched.setattr(carrying, "carried_from", older)
        fresh.go(THIRD)
    assert exit_codes(fresh.verdict(3, 1, 2)) == {"header.tables": FAIL}


def test_a_first_record_that_starts_from_nothing_is_refused(
    fresh: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table's proof yields the carried set, and the first record's proof starts from the empty one."""
    fresh.go(FIRST)
    with monkeypatch.context() as patched:
        patched.setattr(WindowTable, "listed_at_first", lambda self: np.zeros(SHAPE.rows, np.int8))
        with fresh.open(SECOND, mechanisms=MECHANISMS) as window:
            fresh.service.ask(window, "law-1", "copyright")
            fresh.service.finish(window)
            with pytest.raises(WitnessError, match="the commitment to the listed rows differs"):
                window.answer_challenge(fresh.service.challenge(window))


@pytest.mark.parametrize("cheat", ["no proof", "a false proof"])
def test_records_of_an_abandoned_window_need_proofs(fresh: Windows, cheat: str, tmp_path: Path) -> None:
    """An abandoned window passes in no verdict of its own, and could end with any set."""
    fresh.go(FIRST)
    fresh.go(SECOND, ["copyright"], abandoned=True, proved=cheat != "no proof")
    fresh.go(SECOND)
    before: int | Path = 2
    if cheat == "a false proof":
        file = WindowFile.load(fresh.windows[1] / "public")
        proofs: dict[str, Any] = {key: copy.deepcopy(file.proofs[key]) for key in file.proofs}
        (seq,) = (key for key, value in proofs.items() if "retrieve" in value)
        own = proofs[seq]["retrieve"]
        own["proof"] = own["proof"][:-8] + "AAAA" + own["proof"][-4:]
        before = tmp_path / "window.json"
        save_window(file.model_copy(update={"proofs": proofs}), before)
    verdict = fresh.verdict(3, 1, before)
    assert exit_codes(verdict) == {"header.tables": UNDECIDED if cheat == "no proof" else FAIL}
    assert "valid proofs of records, in window w-2" in str(verdict.deciding)
    if cheat == "a false proof":
        assert fresh.verdict(3, 1, 2).passed


def test_a_tenant_that_samples_names_no_listed_rows(fresh: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.go(FIRST)
    honest = CarriedTable.entry

    def entry(self: CarriedTable) -> PreviousTable:
        named = honest(self)
        return named if self.pools else named.model_copy(update={"listed": "11" * 32})

    with monkeypatch.context() as patched:
        patched.setattr(CarriedTable, "entry", entry)
        fresh.go(SECOND)
        verdict = fresh.verdict(2)
    assert exit_codes(verdict) == {"header.tables": FAIL}
