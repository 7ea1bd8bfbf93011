"""Windows that sample documents: chains of windows in which documents keep their bits, and one cheater a check."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit._internal.parts import joined, separated
from rag_audit.attest.columns import SampleStore
from rag_audit.attest.context import drawn_bits
from rag_audit.attest.window import Window
from rag_audit.cli.earlier import earlier_windows
from rag_audit.commit import carrying, preparing
from rag_audit.commit import tables as tables_module
from rag_audit.commit.carrying import Continuing
from rag_audit.commit.document_table import DocumentSizeError, TableCapacityError
from rag_audit.commit.stored import delete_secrets
from rag_audit.commit.tables import CarriedTable, load_table
from rag_audit.errors import ExitCode, PolicyError, SchemaError, StoreError, WitnessError
from rag_audit.log.note import Note, parse_note
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.records import BeaconEntry, PreviousWindow
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.statements import COLUMNS
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.report import as_json, render
from rag_audit.report.cumulative import compose, load_window
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.verify.case import Status
from rag_audit.verify.checks import tables
from tests.window.outcomes import exit_codes
from tests.window.simulator import QUESTIONS, TEXTS, Service

KEEP = 7 * PROBABILITY_RANGE // 10
SHAPE = TableShape(rows=10, positions_per_document=2, fresh_rows=3)
ACCEPTED: dict[str, Any] = {
    "mechanisms": ["sampling"],
    "max_exclusion_factor": "3.3334",
    "min_keep": "0.7",
    "max_abandoned": 1,
    "max_empty": 1,
}
FAIL, UNDECIDED = ExitCode.FAIL, ExitCode.MALFORMED
Texts = Mapping[str, Sequence[str]]
FIRST: Texts = {
    "a": ["A contract is an agreement between parties.", "The law enforces a contract."],
    "b": ["A tort is a civil wrong that causes someone harm."],
    "c": ["Bail is money paid to release an accused person."],
}
SECOND: Texts = {
    "a": ["A contract is a promise."],
    "c": FIRST["c"],
    "d": ["Copyright protects original works."],
}
"""b is deleted, a edited, d added."""
THIRD: Texts = {**FIRST, "d": SECOND["d"], "e": ["Habeas corpus lets a prisoner challenge a detention."]}
"""b returns, e is added."""


def passages(texts: Texts) -> list[Passage]:
    return [Passage(text, document=key) for key, own in texts.items() for text in own]


class Chain:
    """Windows of one origin, one after another. The provider continues the table of the latest one unless told."""

    accepted: Mapping[str, Any] = ACCEPTED
    """The requirements of the trust file."""

    def __init__(self, root: Path, *, shape: TableShape = SHAPE, system: str = "scan") -> None:
        self.service = Service(root)
        self.shape, self.system = shape, system
        self.windows: list[Path] = []
        self.times: list[int] = []

    def open(
        self,
        texts: Texts,
        *,
        continuing: Sequence[int] | None = None,
        say: Callable[[str], None] = lambda line: None,
        given_up: Sequence[str] = (),
        shape: TableShape | None = None,
        keep: int = KEEP,
        capacity: int = 16,
        **options: Any,
    ) -> Window:
        """A window that waits for its beacon.

        :param continuing: the numbers of the earlier windows whose folders the provider reads, the latest first
        :param options: of `Service.commit`
        """
        number = len(self.windows) + 1
        folders = self.windows[::-1] if continuing is None else [self.windows[n - 1] for n in continuing]
        sampling = Sampling(keep=keep, documents=shape or self.shape)
        window = self.service.commit(
            f"w-{number}",
            window=f"w-{number}",
            previous=self.previous(),
            documents={"law": passages(texts), "medicine": passages({"m": TEXTS["medicine"][:2]})},
            continuing=Continuing(folders, say, {"law": frozenset(given_up)}),
            capacities={"law": capacity, "medicine": 16},
            system=self.system,
            **{
                "mechanisms": {"law": sampling, "medicine": Sampling(keep=KEEP, documents=SHAPE)},
                **options,
            },
        )
        self.windows.append(window.directory)
        return window

    def previous(self) -> PreviousWindow | None:
        if not self.windows:
            return None
        return ClosedWindow.of(WindowFile.load(self.windows[-1] / "public"), field="previous").as_previous()

    def run(self, texts: Texts, *, abandoned: bool = False, sampled: bool = True, **options: Any) -> Path:
        """A window from header to trailer, with its proofs.

        :param sampled: whether the witnesses give its beacon
        """
        with self.open(texts, **options) as window:
            if sampled:
                self.service.cosign_header(window)
                self.service.clock.now = window.header.opens_at
                if not abandoned:
                    self.service.ask(window, "law-1", QUESTIONS["law"][0])
                    self.service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
            else:
                self.service.cosign_only(window)
            self.service.finish(window, abandoned=abandoned)
            if not abandoned:
                window.answer_challenge(self.service.challenge(window))
        return window.directory

    def verify(
        self, number: int, *previous: int | Path, file: Path | None = None, **require: object
    ) -> ReportedVerdict:
        """The verdict on a window, with earlier windows in hand.

        :param file: a changed file of the window
        :param require: further or other requirements of the trust file
        """
        folder = self.windows[number - 1]
        with Window.resume(folder, key=self.service.key, clock=self.service.clock) as window:
            receipts = self.service.receipts(window, folder / "receipts")
            trust = self.service.trust(window.policy, **{**self.accepted, **require})
        return verify_window(
            file or folder / "public",
            trust=trust,
            receipts=[receipts],
            previous=[p if isinstance(p, Path) else self.windows[p - 1] / "public" for p in previous],
        )

    def bits(self, number: int) -> dict[str, bool]:
        """The bit of each document that has a row in a window."""
        rows = load_table(self.windows[number - 1], "law").table.rows
        return {row.key: row.sampled for row in rows if row.key is not None and row.sampled is not None}


def three_windows(root: Path, **options: Any) -> Chain:
    """Three windows: documents are edited, deleted, added, and one returns. A test continues a `copy_of` them.

    :param options: of `Chain`
    """
    result = Chain(root / "service", **options)
    for number, texts in enumerate((FIRST, SECOND, THIRD), 1):
        result.run(texts)
        shutil.copytree(result.service.root, root / f"after-{number}")
        result.times.append(result.service.clock.now)
    return result


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return three_windows(tmp_path_factory.mktemp("chain"))


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Chain]:
    """A chain of its own for a test that adds a window."""
    yield Chain(tmp_path)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that does not check which tables it continues."""
    monkeypatch.setattr(preparing, "check_chain", lambda policy, folders, previous: None)


def copy_of(chain: Chain, folder: Path, windows: int) -> Chain:
    """The chain after its first windows, in a folder in which a test continues it."""
    shutil.copytree(chain.service.root.parent / f"after-{windows}", folder)
    result = Chain.__new__(Chain)
    result.service = chain.service.copied(folder, chain.times[windows - 1])
    result.shape, result.system = chain.shape, chain.system
    result.windows = [folder / path.name for path in chain.windows[:windows]]
    return result


def test_documents_keep_their_bits_through_edits_deletion_and_return(chain: Chain) -> None:
    one, two, three = (chain.bits(number) for number in (1, 2, 3))
    assert set(one) == {"a", "b", "c"} and set(two) == {"a", "b", "c", "d"} and set(three) == {*"abcde"}
    assert {key: two[key] for key in one} == one
    assert {key: three[key] for key in two} == two
    for number, texts in enumerate((FIRST, SECOND, THIRD), 1):
        table = load_table(chain.windows[number - 1], "law")
        counts = {row.key: row.positions for row in table.table.rows if row.positions}
        assert counts == {key: len(own) for key, own in texts.items()}
        assert table.table.drawn == (SHAPE.rows if number == 1 else SHAPE.fresh_rows)


def test_every_window_of_the_chain_passes_and_its_figure_is_for_documents(chain: Chain) -> None:
    for number in (1, 2, 3):
        verdict = chain.verify(number, *range(1, number))
        assert verdict.passed, verdict.deciding
        assert (
            "exclusion_factor=3.3334 exclusion_factor_all_accounts=3.3334 positions_per_document=2"
            in verdict.line
        )
        assert verdict.figures["documents"]["law"] == {
            "rows": 10,
            "positions_per_document": 2,
            "fresh_rows": 3,
            "continues": None if number == 1 else f"w-{number - 1}",
            "first": "w-1",
        }
        assert "was not supplied" not in render(verdict)
        assert not any("for a document of one position" in line for line in verdict.does_not_prove)
        report = " ".join(render(verdict).split())
        assert "The figure is for a document of at most 2 positions, which all share one bit." in report


def test_a_folder_of_windows_is_the_chain_before_a_window(chain: Chain) -> None:
    window = chain.windows[2] / "public"
    earlier = earlier_windows([chain.service.root], window).windows
    assert earlier == tuple(folder / "public" for folder in chain.windows[:2])
    assert chain.verify(3, *earlier[::-1]).passed


def _forked(root: Path) -> tuple[Chain, WindowFile]:
    """A chain of two windows, and another second window that the same witnesses cosigned."""
    chain = Chain(root / "a")
    chain.run(FIRST)
    chain.times.append(chain.service.clock.now)
    shutil.copytree(chain.service.root, root / "after-1")
    other = copy_of(chain, root / "b", 1)
    chain.run(SECOND)
    other.run(THIRD)
    return chain, WindowFile.load(other.windows[1] / "public")


def test_a_fork_in_a_folder_is_read_under_every_name(tmp_path: Path) -> None:
    chain, fork = _forked(tmp_path)
    window = chain.windows[1] / "public"
    for tag, name in enumerate(
        (
            "fork.json",
            f"{digest_hex(fork.entries[0])}.json",
            "2026/fork/window.json",
            "fork.JSON",
            "w-1/fork.json",
        )
    ):
        folder = tmp_path / f"archive-{tag}"
        shutil.copytree(chain.windows[0] / "public", folder / "w-1")
        shutil.copytree(window, folder / "copy")
        earlier = earlier_windows([folder], window)
        assert chain.verify(2, *earlier.windows).passed, "the folder has a copy of the window itself"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        save_window(fork, folder / name)
        verdict = chain.verify(2, *earlier_windows([folder], window).windows)
        assert exit_codes(verdict)["header.chain"] == FAIL, name


def _bare(file: WindowFile) -> dict[str, Any]:
    return {"proofs": {}}


def _false_proof(file: WindowFile) -> dict[str, Any]:
    """As many proofs: the proof of the other tenant's sample in the place of law's."""
    of = {e["tenant"]: str(e["seq"]) for e in file.entries if e["type"] == "sample"}
    other, own = (file.proofs[of[tenant]]["sample"] for tenant in ("medicine", "law"))
    assert isinstance(own, dict) and isinstance(other, dict)
    return {"proofs": {**file.proofs, of["law"]: {"sample": {**own, "proof": other["proof"]}}}}


def _damaged_policy(file: WindowFile) -> dict[str, Any]:
    return {"policy": {**file.policy, "n": file.policy["n"] + 1}}


def _malformed_policy(file: WindowFile) -> dict[str, Any]:
    return {"policy": {**file.policy, "n": "many"}}


@pytest.mark.parametrize("change", [_bare, _false_proof, _damaged_policy, _malformed_policy])
def test_of_two_files_of_one_earlier_window_either_may_have_the_proofs(
    chain: Chain, tmp_path: Path, change: Callable[[WindowFile], dict[str, Any]]
) -> None:
    file, whole = WindowFile.load(chain.windows[0] / "public"), chain.windows[0] / "public"
    save_window(file.model_copy(update=change(file)), tmp_path / "other.json")
    for given in ((whole, tmp_path / "other.json"), (tmp_path / "other.json", whole)):
        assert chain.verify(2, *given).passed
    assert not chain.verify(2, tmp_path / "other.json").passed


def test_two_faulty_files_of_one_earlier_window_have_one_outcome_in_either_order(
    chain: Chain, tmp_path: Path
) -> None:
    file = WindowFile.load(chain.windows[0] / "public")
    for name, change in (("bare", _bare), ("false", _false_proof), ("policy", _damaged_policy)):
        save_window(file.model_copy(update=change(file)), tmp_path / f"{name}.json")
    for names in permutations(("bare", "false", "policy")):
        verdict = chain.verify(2, *(tmp_path / f"{name}.json" for name in names))
        outcome = next(check for check in verdict.checks if check.id == "header.tables")
        assert outcome.status is Status.FAIL, "a false proof is graver than no proof"
        assert outcome.actual.startswith("proof.sample.law: "), names


def test_without_the_earlier_windows_the_verdict_says_so(chain: Chain) -> None:
    assert chain.verify(1).passed, "no table before the first one"
    verdict = chain.verify(3)
    assert verdict.line == "UNPROVEN header.tables" and verdict.exit_code is ExitCode.UNMET
    assert failing(chain, 3) == {"header.tables": ExitCode.UNMET}
    report: Any = as_json(verdict)
    told = {claim["id"] for claim in report["claims"]}
    assert told.isdisjoint({"privacy", "answers", "randomness"}) and "ledger" in told
    law = next(line for line in report["protections"] if line["tenant"] == "law")
    assert [law[name]["strength"] for name in ("lists", "presence", "absence")] == ["not-established"] * 3
    assert "exclusion_factor" not in report["figures"] or report["figures"]["exclusion_factor"] is None
    assert "supply every window before this one with --previous" in " ".join(render(verdict).split())


@pytest.mark.parametrize(
    ("given", "missing"), [((), 3), ((2,), 2), ((1,), 3)], ids=["none", "the last", "the first"]
)
def test_figures_of_a_chain_need_every_window_of_the_chain(
    chain: Chain, given: tuple[int, ...], missing: int
) -> None:
    """With fewer windows fewer bits and random lists would count, so a provider could leave windows out."""
    verdict = chain.verify(3, *given)
    codes = exit_codes(verdict)
    assert codes.pop("header.chain", UNDECIDED) is UNDECIDED, "a given window may be out of reach"
    assert codes == {"header.tables": ExitCode.UNMET}
    outcome = next(check for check in verdict.checks if check.id == "header.tables")
    before = ClosedWindow.of(WindowFile.load(chain.windows[missing - 2] / "public"), field="window")
    assert outcome.actual == (
        f"the window before w-{missing} was not supplied: supply every window back to the first one with --previous"
        f" (header {before.digest})"
    )
    report: Any = as_json(verdict)
    law = next(line for line in report["protections"] if line["tenant"] == "law")
    assert [law[name]["strength"] for name in ("lists", "presence", "absence")] == ["not-established"] * 3
    assert report["figures"].get("exclusion_factor") is None


def test_figures_of_several_windows_count_a_persistent_bit_once(chain: Chain) -> None:
    parts = [load_window(folder / "public") for folder in chain.windows]
    assert compose(parts).exclusion_factor_all_accounts == 3.3334
    assert compose(parts[1:]).exclusion_factor == 3.3334, "the bits are of a window that is not given"
    unlinked = [replace(part, tables={}) for part in parts]
    assert compose(unlinked).exclusion_factor == pytest.approx(37.04, abs=0.01), (
        "three chains draw three bits"
    )
    assert compose([parts[0], parts[2]]).exclusion_factor == pytest.approx(11.12, abs=0.01), (
        "the link is missing"
    )
    fork = replace(parts[1], policy=parts[1].policy.model_copy(update={"window": "fork"}))
    assert compose([*parts, fork]).exclusion_factor == pytest.approx(11.12, abs=0.01), (
        "two continue one table"
    )
    law, *others = parts[1].policy.tenants
    tenants = [law.model_copy(update={"keep": 9 * PROBABILITY_RANGE // 10}), *others]
    other = replace(parts[1], policy=parts[1].policy.model_copy(update={"tenants": tenants}))
    with pytest.raises(PolicyError, match="constant in a chain"):
        compose([parts[0], other])


def test_figures_of_several_windows_refuse_tenants_that_the_header_does_not_commit_to(
    chain: Chain, tmp_path: Path
) -> None:
    file = WindowFile.load(chain.windows[1] / "public")
    tenants: list[Any] = [dict(tenant) for tenant in file.tenants if isinstance(tenant, dict)]
    tenants[0] = {**tenants[0], "table": {**tenants[0]["table"], "previous": None}}
    save_window(file.model_copy(update={"tenants": tenants}), tmp_path / "window.json")
    with pytest.raises(SchemaError, match="the tenants differ from the committed tenants"):
        load_window(tmp_path / "window.json")


def test_the_text_of_a_table_names_no_secret(chain: Chain) -> None:
    table = load_table(chain.windows[1], "law")
    carried = carrying.carried_from([chain.windows[1]], "law")
    assert table.proved is not None and carried is not None
    for text in (repr(table), repr(carried), repr(table.table.rows[0])):
        for secret in (table.key, table.proved[1], *(row.salt for row in table.table.rows)):
            assert repr(secret) not in text
        assert "sampled" not in text and "'a'" not in text


def test_the_tables_stay_private_and_outlive_the_secrets(chain: Chain, tmp_path: Path) -> None:
    folder = tmp_path / "window"
    shutil.copytree(chain.windows[0], folder)
    table = load_table(folder, "law")
    for path in (folder / "table-law", folder / "tables.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    public = b"".join(p.read_bytes() for p in (folder / "public").rglob("*") if p.is_file())
    names = [row.salt for row in table.table.rows] + [row.name for row in table.table.rows] + [table.key]
    for secret in names:
        assert secret not in public and secret.hex().encode() not in public
    assert b'"document"' not in (folder / "table-law").read_bytes()
    delete_secrets(folder)
    carried = carrying.carried_from([folder], "law")
    assert carried is not None and carried.table == replace(table.table, carried=())


def test_a_window_abandoned_before_its_beacon_hands_the_table_on(fresh: Chain) -> None:
    fresh.run(FIRST)
    fresh.run(SECOND, abandoned=True, sampled=False)
    fresh.run(SECOND)
    verdict = fresh.verify(3, 1, 2)
    assert verdict.passed, verdict.deciding
    assert verdict.figures["documents"]["law"]["continues"] == "w-1"


def test_an_abandoned_window_without_a_beacon_entry_is_named(fresh: Chain) -> None:
    fresh.run(FIRST, abandoned=True, sampled=False)
    fresh.run(SECOND)
    assert "window w-1 was abandoned and has no beacon entry" in " ".join(fresh.verify(2, 1).notes)


def test_a_window_abandoned_before_its_samples_gets_them_when_it_is_closed(
    fresh: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider stopped between the beacon and the samples."""
    with monkeypatch.context() as patch:
        patch.setattr(Window, "_sample", lambda window: None)
        window = fresh.open(FIRST)
        fresh.service.cosign_header(window)
    assert not window.tables_complete
    with window:
        fresh.service.finish(window, abandoned=True)
        assert window.tables_complete
    fresh.run(SECOND)
    verdict = fresh.verify(2, 1)
    assert verdict.passed, verdict.deciding
    assert verdict.figures["documents"]["law"]["continues"] == "w-1"


def test_a_window_abandoned_after_its_beacon_counts(fresh: Chain) -> None:
    fresh.run(FIRST)
    fresh.run(SECOND, abandoned=True)
    fresh.run(SECOND)
    verdict = fresh.verify(3, 1, 2)
    assert verdict.passed, verdict.deciding
    assert verdict.figures["documents"]["law"]["continues"] == "w-2"


def test_documents_without_room_wait_and_are_named(fresh: Chain) -> None:
    fresh.run(FIRST)
    said: list[str] = []
    many = {**FIRST, **{name: [f"Passage about {name}."] for name in ("p", "q", "r", "s")}}
    fresh.run(many, say=said.append)
    assert said == [
        "law: 1 document waits for the next window, since each window has room for 3 new documents (--fresh-rows): 's'"
    ]
    assert set(fresh.bits(2)) == {*"abcpqr"}
    fresh.run(many, say=said.append)
    assert len(said) == 1 and set(fresh.bits(3)) == {*"abcpqrs"}


def test_a_document_with_too_many_positions_and_too_many_documents_are_refused_by_name(fresh: Chain) -> None:
    with pytest.raises(DocumentSizeError) as size:
        fresh.open({"long": ["One.", "Two.", "Three."]})
    assert size.value.field == "law: 'long'" and "at most 2 positions" in str(size.value.expected)
    with pytest.raises(TableCapacityError) as many:
        fresh.open({str(number): [f"Text {number}."] for number in range(8)})
    assert many.value.field == "law: documents" and "at most 7" in str(many.value.expected)


def test_no_row_of_an_absent_document_is_replaced(fresh: Chain) -> None:
    fresh.shape = TableShape(rows=4, positions_per_document=2, fresh_rows=2)
    fresh.run({"a": FIRST["a"], "b": FIRST["b"]})
    said: list[str] = []
    fresh.run({"a": FIRST["a"], "c": FIRST["c"]}, say=said.append)
    assert "room for 2 documents in all its windows (--documents 4 less --fresh-rows 2)" in said[0]
    assert "'b' among them" in said[0] and said[0].endswith("Left out: 'c'")
    fresh.run({"a": FIRST["a"], "b": FIRST["b"]}, say=said.append)
    assert len(said) == 1 and fresh.bits(3)["b"] == fresh.bits(1)["b"]


def test_a_document_that_was_given_up_leaves_its_row_and_may_not_return(fresh: Chain) -> None:
    fresh.shape = TableShape(rows=4, positions_per_document=2, fresh_rows=2)
    said: list[str] = []
    fresh.run({"a": FIRST["a"], "b": FIRST["b"]})
    fresh.run({"a": FIRST["a"], "c": FIRST["c"]}, say=said.append)
    assert "give up removed documents that never return (--given-up, or documents.given_up" in said[0]
    fresh.run({"a": FIRST["a"], "c": FIRST["c"]}, say=said.append, given_up=["b"])
    assert len(said) == 1 and {"a", "c"} <= set(fresh.bits(3)) and fresh.bits(3)["a"] == fresh.bits(1)["a"]
    assert fresh.verify(3, 1, 2).exit_code is ExitCode.PASS
    with pytest.raises(PolicyError, match="a document that was given up is present") as caught:
        fresh.open({"a": FIRST["a"], "b": FIRST["b"]}, given_up=["b"])
    assert caught.value.field == "law: 'b'"


@pytest.mark.parametrize(
    ("limit", "outcome"), [(None, None), ("0.3", ExitCode.PASS), ("0.29", ExitCode.UNMET)]
)
def test_more_fresh_rows_than_the_limit_of_the_trust_file_are_unmet(
    chain: Chain, limit: str | None, outcome: ExitCode | None
) -> None:
    """Each window of the chain replaces 3 of 10 rows."""
    verdict = chain.verify(1, max_fresh_share=limit)
    (found,) = [c for c in verdict.checks if c.id == "trust.max_fresh_share"] or [None]
    if outcome is None:
        assert found is None and verdict.exit_code is ExitCode.PASS
        return
    assert found is not None and verdict.exit_code is outcome
    assert (found.expected, found.actual) == (f"at most {limit} of the rows", "3 of 10 rows of tenant law")


def test_the_documents_that_were_given_up_are_read_by_tenant(tmp_path: Path) -> None:
    path = tmp_path / "given-up.jsonl"
    path.write_text('{"tenant": "law", "document": "b"}\n\n{"tenant": "hr", "document": "x"}\n')
    assert carrying.load_given_up(path) == {"law": {"b"}, "hr": {"x"}} and carrying.load_given_up(None) == {}
    path.write_text('{"tenant": "law"}\n')
    with pytest.raises(SchemaError) as caught:
        carrying.load_given_up(path)
    assert caught.value.field == "given-up.jsonl, line 1" and "document" in str(caught.value.expected)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": TableShape(10, 2, 2)},
        {"shape": TableShape(9, 2, 3)},
        {"keep": KEEP - 1},
        {"capacity": 17},
    ],
    ids=["fresh_rows", "rows", "keep", "capacity"],
)
def test_the_numbers_of_a_chain_are_constant(chain: Chain, change: dict[str, Any], tmp_path: Path) -> None:
    continued = copy_of(chain, tmp_path / "copy", 1)
    with pytest.raises(PolicyError, match=r"another shape|differs from that of the table before"):
        continued.open(SECOND, **change)


@pytest.mark.parametrize("systems", [("scan", "groth16"), ("groth16", "scan")])
def test_a_chain_of_tables_keeps_its_proof_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, systems: tuple[str, str]
) -> None:
    chain = Chain(tmp_path, system=systems[0])
    chain.run(FIRST)
    chain.system = systems[1]
    with pytest.raises(PolicyError, match="constant in a chain differs") as caught:
        chain.open(SECOND)
    assert f"system {systems[0]}" in str(caught.value.expected)
    assert f"system {systems[1]}" in str(caught.value.actual)
    assert "start another chain (another origin)" in str(caught.value.hint)
    assert not (tmp_path / "w-2" / "public" / "header.json").exists(), "nothing is published"

    honest = Policy.chain_constants
    with monkeypatch.context() as cheating:
        cheating.setattr(Policy, "chain_constants", lambda self, t: {**honest(self, t), "system": None})
        chain.run(SECOND, sampled=False, abandoned=True)
    (chain.windows[1] / "receipts").mkdir(exist_ok=True)
    outcome = next(check for check in chain.verify(2, 1).checks if check.id == "header.tables")
    assert exit_codes(chain.verify(2, 1))["header.tables"] == FAIL
    assert f"system {systems[0]}, as in window w-1" in str(outcome.expected)


@pytest.mark.parametrize("name", ["system", "constants"])
def test_a_table_of_another_version_is_named(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An abandoned window hands on the table before, which another version stored without some of its settings."""
    continued = copy_of(chain, tmp_path / "copy", 1)
    honest = tables_module._pack_carried

    def without(table: CarriedTable) -> bytes:
        named, *parts = separated(honest(table), 5, field="table before")
        value = json.loads(named)
        (value if name in value else value["constants"]).pop(name)
        return joined([jcs(value), *parts])

    with monkeypatch.context() as patch:
        patch.setattr(tables_module, "_pack_carried", without)
        window = continued.open(SECOND)
    with window:
        continued.service.cosign_only(window)
        continued.service.finish(window, abandoned=True)
    with pytest.raises(StoreError, match="the format of another version") as caught:
        continued.open(SECOND)
    assert name in str(caught.value.actual)
    assert str(caught.value.field).endswith("w-2/table-law")
    assert "start another chain (another origin)" in str(caught.value.hint)


def test_a_missing_table_and_that_of_another_tenant_are_named(chain: Chain, tmp_path: Path) -> None:
    continued = copy_of(chain, tmp_path / "copy", 1)
    path = continued.windows[0] / "table-law"
    kept = path.read_bytes()
    path.unlink()
    with pytest.raises(StoreError) as missing:
        continued.open(SECOND)
    assert (
        missing.value.field == str(path)
        and "document table of the window is missing" in missing.value.message
    )
    path.write_bytes(kept)
    shutil.copy(path, path.with_name("table-medicine"))
    with pytest.raises(StoreError):
        load_table(continued.windows[0], "medicine")
    with pytest.raises(PolicyError) as unnamed:
        Chain.open(copy_of(chain, tmp_path / "other", 2), SECOND, continuing=[])
    assert "folder" in str(unnamed.value.hint)


# -- cheaters --------------------------------------------------------------------------------------------------


def failing(chain: Chain, number: int, *previous: int) -> dict[str, ExitCode]:
    return exit_codes(chain.verify(number, *previous))


@pytest.mark.parametrize("ground", ["w-1", "w-2"])
def test_an_abandoned_window_has_a_second_beacon_that_the_provider_chose(
    fresh: Chain, ground: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second beacon decides the bits of the abandoned window, which later windows carry."""
    honest = Window._sample

    def sample(window: Window) -> None:
        context = window.samples._context
        if window.header.window == ground and window.status == "active":
            values = (digest(number) for number in range(1 << 20))
            value = next(v for v in values if not drawn(context, v).any())
            second = BeaconEntry(
                type="beacon", v=1, seq=1, entry=0, source="witnesses", value=value.hex(), notes=[],
                checkpoint="none",
            )  # fmt: skip
            context.state.append(second)
            context.state.beacons[0] = value
        honest(window)

    def digest(number: int) -> bytes:
        return hashlib.sha256(number.to_bytes(4)).digest()

    def drawn(context: Any, value: bytes) -> Any:
        public = context.public("law")
        stated = COLUMNS["sample"](public, context.policy, header=context.header, beacon=value)
        return drawn_bits(context.secrets, stated)[:3]

    monkeypatch.setattr(Window, "_sample", sample)
    if ground == "w-2":
        fresh.run(FIRST)
    fresh.run(SECOND, abandoned=True)
    fresh.run(SECOND)
    number = len(fresh.windows)
    assert not fresh.bits(number)["d"], "the provider chose the bit"
    assert failing(fresh, number, *range(1, number)) == {"header.tables": FAIL}


@pytest.mark.parametrize("ending", ["complete", "empty", "abandoned"])
def test_a_window_with_a_beacon_hides_its_bits(
    fresh: Chain, ending: str, monkeypatch: pytest.MonkeyPatch, unchecked: None
) -> None:
    """A window without its sample entry is left out of the chain of tables, so its bits are drawn again."""
    honest = SampleStore.ensure

    def ensure(store: SampleStore, tenant: str, *, low_memory: bool = False) -> int:
        hidden = store._context.header.window == "w-1" and tenant == "law"
        return 0 if hidden else honest(store, tenant, low_memory=low_memory)

    monkeypatch.setattr(SampleStore, "ensure", ensure)
    with fresh.open(FIRST) as window:
        fresh.service.cosign_header(window)
        fresh.service.clock.now = window.header.opens_at
        if ending == "complete":
            fresh.service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
        fresh.service.finish(window, abandoned=ending == "abandoned")
    with pytest.raises(PolicyError, match="has a beacon, which decided the bits of its table"):
        fresh.open(FIRST)
    shutil.rmtree(fresh.service.root / "w-2", ignore_errors=True)
    monkeypatch.setattr(carrying, "carried_from", lambda folders, tenant, read: None)
    fresh.run(FIRST)
    assert failing(fresh, 2, 1) == {"header.tables": FAIL}


@pytest.mark.parametrize("change", ["fresh bits", "positions"])
def test_a_later_window_gives_up_persistent_bits(
    chain: Chain, change: str, tmp_path: Path, unchecked: None
) -> None:
    forged = copy_of(chain, tmp_path / "copy", 1)
    honest = Sampling
    with pytest.MonkeyPatch.context() as patch:
        if change == "positions":
            patch.setattr(f"{__name__}.Sampling", lambda keep, documents: honest(keep=keep))
        forged.run(SECOND, shape=replace(SHAPE, fresh_rows=None))
    assert failing(forged, 2, 1) == {"header.tables": FAIL}


def test_the_table_of_an_abandoned_window_is_skipped(chain: Chain, tmp_path: Path, unchecked: None) -> None:
    forged = copy_of(chain, tmp_path / "copy", 1)
    forged.run(SECOND, abandoned=True)
    forged.run(SECOND, continuing=[1])
    assert failing(forged, 3, 1, 2) == {"header.tables": FAIL}
    verdict = forged.verify(3)
    assert verdict.line == "UNPROVEN header.tables", "the earlier windows are the only evidence"


def test_the_table_of_an_older_window_is_continued(chain: Chain, tmp_path: Path, unchecked: None) -> None:
    forged = copy_of(chain, tmp_path / "copy", 2)
    forged.run(THIRD, continuing=[1])
    assert failing(forged, 3, 1, 2) == {"header.tables": FAIL}


def test_a_first_table_is_claimed_twice(chain: Chain, tmp_path: Path, unchecked: None) -> None:
    forged = copy_of(chain, tmp_path / "copy", 1)
    forged.run(SECOND, continuing=[])
    assert failing(forged, 2, 1) == {"header.tables": FAIL}
    verdict = forged.verify(2)
    assert verdict.line == "UNPROVEN header.tables"


def test_two_windows_that_continue_one_table_are_a_fork(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider and witnesses that went on from a copy: the second continuation of the first window's table is a
    window that follows another one than this window does."""
    forged = copy_of(chain, tmp_path / "copy", 1)
    forged.run(FIRST, abandoned=True, sampled=False)
    forged.run(SECOND)
    second = forged.windows[2] / "public"
    digests = {
        digest_hex(WindowFile.load(folder / "public").entries[0])
        for folder in (forged.windows[2], chain.windows[1])
    }
    verdict = chain.verify(2, 1, second)
    assert exit_codes(verdict) == {"header.chain": ExitCode.MALFORMED, "header.tables": FAIL}
    outcome = next(check for check in verdict.checks if check.id == "header.tables")
    assert all(digest in outcome.actual for digest in digests)
    # Without a table of its own an abandoned window before the beacon is no continuation.
    verdict = chain.verify(2, 1, forged.windows[1] / "public")
    assert exit_codes(verdict) == {"header.chain": FAIL}
    # No quorum cosigned the end of the second continuation.
    file = WindowFile.load(second)
    note = parse_note(file.final_checkpoint)
    alone = tmp_path / "alone.json"
    save_window(
        file.model_copy(update={"final_checkpoint": str(Note(note.text, note.signatures[:-1]))}), alone
    )
    verdict = chain.verify(2, 1, alone)
    assert exit_codes(verdict) == {"header.chain": ExitCode.MALFORMED}
    with monkeypatch.context() as patch:
        patch.setattr(tables, "_continued_once", lambda *given: True)
        assert exit_codes(chain.verify(2, 1, second)) == {"header.chain": ExitCode.MALFORMED}


def test_the_table_of_another_tenant_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = Chain(tmp_path)
    forged.run(FIRST)
    honest = carrying.carried_from
    monkeypatch.setattr(carrying, "carried_from", lambda folders, tenant, read: honest(folders, "medicine"))
    forged.run(SECOND)
    assert failing(forged, 2, 1) == {"header.tables": FAIL}


def test_another_header_than_the_proof_s_is_named(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = copy_of(chain, tmp_path / "copy", 1)
    honest = CarriedTable.entry
    monkeypatch.setattr(
        CarriedTable, "entry", lambda self: honest(self).model_copy(update={"header": "0" * 64})
    )
    forged.run(SECOND)
    assert failing(forged, 2, 1) == {"header.tables": FAIL}


def test_more_rows_are_drawn_than_the_policy_says(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = copy_of(chain, tmp_path / "copy", 1)
    with monkeypatch.context() as patch:
        more = replace(SHAPE, fresh_rows=4)
        patch.setattr(carrying, "place_documents", placing(more))
        patch.setattr(TableShape, "drawn", lambda self, *, first: 10 if first else 4)
        forged.run(SECOND)
    assert failing(forged, 2, 1)["proof.sample.law"] is ExitCode.MALFORMED, (
        "it has the size of another statement"
    )


def placing(shape: TableShape) -> Callable[..., Any]:
    honest = carrying.place_documents

    def place(_: TableShape, documents: Mapping[str, int], previous: Any = None, **_given_up: object) -> Any:
        before = previous and replace(previous, shape=shape)
        placement = honest(shape, documents, before)
        return replace(placement, table=replace(placement.table, shape=SHAPE))

    return place


def test_a_carried_bit_is_flipped(chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = copy_of(chain, tmp_path / "copy", 1)
    monkeypatch.setattr(carrying, "carried_from", flipping())
    assert_no_proof_of_a_flipped_bit(forged)


def flipping() -> Callable[..., CarriedTable | None]:
    """Reads the table before, and flips the bit of its first row with a document."""
    honest = carrying.carried_from

    def flipped(folders: Sequence[Path], tenant: str, read: Any) -> CarriedTable | None:
        carried = honest(folders, tenant)
        assert carried is not None
        rows = list(carried.table.rows)
        number = next(n for n, row in enumerate(rows) if row.key is not None)
        rows[number] = replace(rows[number], sampled=not rows[number].sampled)
        return replace(carried, table=replace(carried.table, rows=tuple(rows)))

    return flipped


def assert_no_proof_of_a_flipped_bit(forged: Chain) -> None:
    with forged.open(SECOND) as window, pytest.raises(WitnessError) as caught:
        forged.service.cosign_header(window)
    assert "the document table has no valid proof" in str(caught.value)
    assert not any(c.isdigit() for c in str(caught.value)), "row numbers are secret"


def test_the_ledger_names_other_carried_columns_than_the_proof_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = Chain(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("rag_audit.attest.columns.SampleStore._carried", lambda self, tenant: "0" * 64)
        forged.run(FIRST)
    assert failing(forged, 1)["proof.sample.law"] is FAIL


def test_a_record_of_the_window_before_has_no_proof(chain: Chain, tmp_path: Path) -> None:
    """A record without a proof could contain the exact answer, which shows the bits of the chain."""
    file = WindowFile.load(chain.windows[0] / "public")
    (seq,) = (
        str(e["seq"])
        for e in file.entries
        if isinstance(e, dict) and e["type"] == "query" and e["tenant"] == "law"
    )
    proofs: dict[str, Any] = {key: file.proofs[key] for key in file.proofs if key != seq}
    save_window(file.model_copy(update={"proofs": proofs}), tmp_path / "window.json")
    assert chain.verify(2, 1).passed
    verdict = chain.verify(2, tmp_path / "window.json")
    assert exit_codes(verdict) == {"header.tables": UNDECIDED}
    assert verdict.deciding is not None and f"record {seq}" in verdict.deciding.actual
    sampled = chain.verify(2, tmp_path / "window.json", mode="sampled", beta="0.5", eta="0.9")
    assert "header.tables" not in exit_codes(sampled), sampled.deciding
    assert "law: the records of window w-1 are not verified here in sampled mode" in " ".join(sampled.notes)


def test_a_damaged_window_before_is_no_evidence_against_this_window(chain: Chain, tmp_path: Path) -> None:
    """Anybody can change a part of a stored file, and the signed header shows the change."""
    file = WindowFile.load(chain.windows[0] / "public")
    policy: Any = copy.deepcopy(file.policy)
    policy["tenants"][0]["keep"] += 1
    save_window(file.model_copy(update={"policy": policy}), tmp_path / "window.json")
    verdict = chain.verify(2, tmp_path / "window.json")
    assert exit_codes(verdict) == {"header.tables": UNDECIDED}
    assert verdict.deciding is not None and "damaged file: c_policy" in verdict.deciding.actual


@pytest.mark.parametrize("cheat", ["none", "changed"])
def test_the_window_before_has_no_valid_proof(chain: Chain, cheat: str, tmp_path: Path) -> None:
    """The ledger of the window before names the carried columns, and only its proof shows that they have its bits."""
    file = WindowFile.load(chain.windows[0] / "public")
    entry = next(
        e for e in file.entries if isinstance(e, dict) and e["type"] == "sample" and e["tenant"] == "law"
    )
    proofs: dict[str, Any] = {key: file.proofs[key] for key in file.proofs}
    own = proofs.pop(str(entry["seq"]))
    if cheat == "changed":
        proof = bytearray(base64.b64decode(own["sample"]["proof"]))
        proof[-1] ^= 1
        changed = {**own["sample"], "proof": base64.b64encode(proof).decode()}
        proofs[str(entry["seq"])] = {"sample": changed}
    (tmp_path / "before").mkdir()
    save_window(file.model_copy(update={"proofs": proofs}), tmp_path / "before" / "window.json")
    verdict = chain.verify(2, tmp_path / "before" / "window.json")
    assert exit_codes(verdict) == {"header.tables": ExitCode.MALFORMED if cheat == "none" else FAIL}
    assert verdict.deciding is not None and "proof.sample.law" in verdict.deciding.actual
