"""Windows with noise and a document table: a chain of three, its figures for documents, and one cheater a check."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.canonical import parse_json
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.commit import carrying, preparing
from rag_audit.commit.choose import NoiseTarget
from rag_audit.commit.commitment import CommittedTenant
from rag_audit.commit.document_table import DocumentSizeError, Placement, place_documents
from rag_audit.commit.explore import simulate
from rag_audit.commit.explore.render import table
from rag_audit.commit.tables import PlacedTable, WindowTable
from rag_audit.errors import PolicyError, StoreError
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting.bounds import eps_at
from rag_audit.mechanisms.accounting.odometer import ladder
from rag_audit.mechanisms.accounting.values import text
from rag_audit.mechanisms.base import Mechanism, TableShape
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.names import NameOpening
from rag_audit.models.records import CountersignedReceipt
from rag_audit.proofs.statements import COLUMNS
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.sample import sample_public
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.scores import ScoreWindow
from rag_audit.report import render, render_report
from rag_audit.report.build import report_of
from rag_audit.report.cumulative import compose, load_window
from rag_audit.report.html.curves import epsilon_curve, protections
from rag_audit.report.html.curves import tests_of as ceilings_of
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.verify.inputs import VerifierOptions
from tests.policy.test_explore import random_sample
from tests.simulate.cases import FOLDER
from tests.simulate.kinds import by_position, three_positions
from tests.window.simulator import QUESTIONS
from tests.window.test_document_tables import FIRST, KEEP, SECOND, THIRD, Chain, Texts, passages

SHAPE = TableShape(rows=10, positions_per_document=2, fresh_rows=None)
SHAPE_OF_ONE = TableShape(rows=1, positions_per_document=1, fresh_rows=None)
ACCEPTED: dict[str, Any] = {"max_epsilon": "200", "max_abandoned": 1, "max_empty": 1}
POLICY: dict[str, Any] = {"eps_acc": "100", "gains": (1, 8)}


class NoiseChain(Chain):
    """Windows of one origin, whose tenants have noise and a document table."""

    accepted = ACCEPTED

    def open(
        self,
        texts: Texts,
        *,
        shape: TableShape | None = None,
        mechanisms: Mapping[str, Mechanism] | None = None,
        **options: Any,
    ) -> Window:
        """
        :param mechanisms: the mechanism of each tenant; noise with the document table by default
        """
        own = Noise(documents=shape or self.shape)
        named = mechanisms or {"law": own, "medicine": own}
        policy = POLICY if any(m.noised for m in named.values()) else {}
        return super().open(texts, **{**policy, "mechanisms": named, **options})


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> NoiseChain:
    result = NoiseChain(tmp_path_factory.mktemp("noise"), shape=SHAPE)
    for texts in (FIRST, SECOND, THIRD):
        result.run(texts)
    return result


def test_three_windows_pass_and_their_epsilon_is_for_a_document(chain: NoiseChain) -> None:
    for number in (1, 2, 3):
        verdict = chain.verify(number, *range(1, number))
        assert verdict.passed, verdict.deciding
        assert "positions_per_document=2" in verdict.line


def test_the_figures_count_every_position_of_a_document(chain: NoiseChain) -> None:
    policy = load_window(chain.windows[0] / "public").policy
    assert policy.noise is not None
    single, losses = policy.noise.mechanism(), policy.n * SHAPE.positions_per_document
    figures = chain.verify(1).figures
    assert figures["eps_one_account"] == text(eps_at(single, losses, policy.delta_policy))
    assert figures["eps_audit"] == text(eps_at(single, policy.k_max * losses, policy.delta_policy))
    every = policy.tenants[0].accounts_max * losses
    assert figures["eps_all_accounts"] == text(eps_at(single, every, policy.delta_policy))
    assert figures["bounds"]["compositions"] == policy.k_max * losses
    assert figures["bounds"]["unit"] == "one document of one tenant's index, with at most 2 positions"
    rungs = len(ladder(policy.k_max * policy.n))
    realised = eps_at(single, SHAPE.positions_per_document, float(policy.delta_policy) / rungs)
    assert figures["eps_realised"] == text(realised)
    assert figures["tenants"]["law"]["exclusion_factor"] is None
    exposure = figures["tenants"]["law"]["exposure"]
    # No proof shows that a position without a row has no text, and noise withholds none: 2 accounts, 3 queries, K = 2.
    assert exposure["documents"] == 16 and exposure["limit"] == min(16, 2 * 3 * 2)


def test_three_windows_compose(chain: NoiseChain) -> None:
    parts = [load_window(folder / "public") for folder in chain.windows]
    total = compose(parts)
    noise = parts[0].policy.noise
    assert noise is not None
    losses = 3 * parts[0].compositions * SHAPE.positions_per_document
    assert total.bound.eps == eps_at(noise.mechanism(), losses, total.bound.delta)
    assert total.positions == 2 and not total.bits
    value = total.as_json()
    assert value["eps_by_tenant"] == dict.fromkeys(("law", "medicine"), text(total.bound.eps))
    assert value["positions_per_document"] == 2


def test_a_reports_total_is_for_a_document_of_the_reports_size(tmp_path: Path) -> None:
    chain = NoiseChain(tmp_path)
    chain.shape = None  # type: ignore[assignment]
    chain.run(FIRST)
    chain.shape = SHAPE
    chain.run(SECOND)
    verdict = chain.verify(2, 1)
    part = load_window(chain.windows[0] / "public")
    assert part.policy.noise is not None
    # Without a table, a document with two positions has two losses at each query too.
    losses = 2 * part.compositions * SHAPE.positions_per_document
    total = report_of(verdict).figures.cumulative
    assert total is not None and total.positions_per_document == 2
    assert total.eps == text(eps_at(part.policy.noise.mechanism(), losses, part.policy.delta_policy))
    words = f"is {total.eps} in total, at delta {total.delta}, about a document of at most 2 positions; "
    assert words in " ".join(render(verdict).split())
    page = " ".join(render_report(report_of(verdict), "html", language="de").split())
    assert "bei δ 0,00001 für ein Dokument mit höchstens 2 Positionen, und" in page


def test_a_report_names_the_document_and_its_positions(chain: NoiseChain) -> None:
    verdict = chain.verify(3, 1, 2)
    words = " ".join(render(verdict).split())
    assert "one document of a document table" in words
    assert "a document of at most 2 positions is present" in words
    assert "absent documents of at most 2 positions" in words
    assert not any("document of one position" in line for line in verdict.does_not_prove)
    assert "eps of tenant law is for a document of at most 2 positions; no proof shows that content" in words
    assert "eps of a replaced document assumes uniformly random positions, which no proof shows" in words
    assert [
        line for line in verdict.does_not_prove if line.startswith("the positions of documents, with noise")
    ]
    # Both positions are outside of the list of 2 of 16 with probability 14/16 13/15.
    assert (
        "a given document of 2 positions among 16 positions with probability 24 % a query (K = 2), 56 % over 3"
        in words
    )
    report = report_of(verdict)
    english, german = (render_report(report, "html", language=language) for language in ("en", "de"))
    assert "of at most 2 positions, over which the losses add up" in english
    assert "assumes that the provider places all texts at uniformly random positions" in english
    assert "an gleichverteilt zufällige Stellen" in german
    assert "mit höchstens 2 Stellen, über die sich die Verluste addieren" in german


def listed_documents(path: Path) -> list[tuple[int, Any]]:
    """The listed positions of a receipt, each with the opening of its text."""
    receipt = CountersignedReceipt.parse(json.loads(path.read_text()), field=path.name)
    body: Any = parse_json(TlogProof.parse(receipt.receipt).extra or b"", source="receipt")["body"]
    return list(zip(body["positions"], body["documents"], strict=True))


def test_no_text_is_withheld(chain: NoiseChain) -> None:
    """A position without a row is listed at times, and its opening shows that it is empty."""
    for folder in chain.windows:
        for path in (folder / "receipts").glob("*.json"):
            assert all(document["salt"] is not None for _, document in listed_documents(path))


def test_a_window_without_a_table_keeps_the_figure_of_one_position(tmp_path: Path) -> None:
    chain, plain = NoiseChain(tmp_path, shape=SHAPE), Noise()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.Noise", lambda documents: plain)
        chain.run(FIRST)
    verdict = chain.verify(1)
    assert verdict.passed and "positions_per_document" not in verdict.line
    assert verdict.figures["bounds"]["compositions"] == 6
    assert any("each figure is for a document of one position" in line for line in verdict.does_not_prove)
    assert not any("uniformly random positions" in line for line in verdict.does_not_prove)
    assert "one committed position" in render(verdict)


def only_one_position_has_a_row(patch: pytest.MonkeyPatch) -> None:
    """Let the provider place one document in its table, and leave the texts of all other documents without a row."""

    def one_document(shape: TableShape, counts: Mapping[str, int], *given: Any, **named: Any) -> Placement:
        return place_documents(shape, {next(iter(counts)): 1}, *given, **named)

    def at(self: PlacedTable, documents: Any, positions: Any, capacity: int) -> WindowTable:
        rows = np.full(capacity, SHAPE_OF_ONE.rows, np.int32)
        rows[positions[0]] = next(i for i, row in enumerate(self.table.rows) if row.key is not None)
        return WindowTable(self.table, secrets.token_bytes(32), rows, self.previous)

    patch.setattr(carrying, "place_documents", one_document)
    patch.setattr(PlacedTable, "at", at)


SIXTEEN: Texts = {name: [f"Document {name} is about contracts."] for name in "abcdefghijklmnop"}


def unchecked_rows(patch: pytest.MonkeyPatch) -> None:
    """A provider that commits to texts without a row."""
    patch.setattr(WindowTable, "require_rows", lambda *given: None)


def test_no_window_commits_to_a_text_without_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_one_position_has_a_row(monkeypatch)
    chain = NoiseChain(tmp_path, shape=SHAPE_OF_ONE)
    own = Noise(documents=SHAPE_OF_ONE)

    def prepared() -> None:
        policy = chain.service.policy(capacities={"law": 16, "medicine": 16}, system="scan",
                                      mechanisms={"law": own, "medicine": own}, **POLICY)  # fmt: skip
        tokens = policy.tokens
        embedder = get_embedder(
            chain.service.embedder, query_tokens=tokens.query, document_tokens=tokens.document
        )
        roster = [a.roster_entry for a in chain.service.accounts.values()]
        preparing.prepare(chain.service.root / "w-1", policy=policy, roster=roster, embedder=embedder,
                          documents={"law": passages(SIXTEEN), "medicine": passages({"m": ["Asthma."]})})  # fmt: skip

    for opened in (lambda: chain.open(SIXTEEN), prepared):
        with pytest.raises(
            StoreError, match="texts are at positions without a row of the document table"
        ) as caught:
            opened()
        assert caught.value.expected == "a row for each of 16 positions with a text"
        assert caught.value.actual == "15 positions without a row"
        folder = chain.service.root / "w-1"
        published = [path for path in (folder / "public").rglob("*") if path.is_file()]
        assert published == [] and not (folder / "prepared.json").exists()


def test_no_window_resumes_with_a_text_without_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program committed to the window: the provider's commands do not serve it."""
    chain = NoiseChain(tmp_path, shape=SHAPE_OF_ONE)
    with monkeypatch.context() as patch:
        only_one_position_has_a_row(patch)
        unchecked_rows(patch)
        with chain.open(SIXTEEN):
            pass
    with pytest.raises(StoreError, match="texts are at positions without a row"):
        Window.resume(chain.windows[0], key=chain.service.key, clock=chain.service.clock)


def test_a_window_resumes_with_its_own_table_only(tmp_path: Path) -> None:
    """The table of another window, with its key, opens, and the header does not commit to it."""
    chain, other = (NoiseChain(tmp_path / name, shape=SHAPE) for name in ("a", "b"))
    for one in (chain, other):
        with one.open(FIRST):
            pass
    own = chain.windows[0]
    for path in (*other.windows[0].glob("table-*"), other.windows[0] / "tables.key"):
        assert (own / path.name).exists()
        shutil.copy(path, own)
    with pytest.raises(StoreError, match="the document table changed inside the window"):
        Window.resume(own, key=chain.service.key, clock=chain.service.clock)


def test_texts_of_positions_without_a_row_count_as_exposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every proof is valid, and accounts read more texts than the table has documents."""
    chain = NoiseChain(tmp_path, shape=SHAPE_OF_ONE)
    unchecked_rows(monkeypatch)
    with pytest.MonkeyPatch.context() as patch:
        only_one_position_has_a_row(patch)
        window = chain.open(SIXTEEN)
    made_up = NameOpening(key="a document", salt="00" * 32)
    monkeypatch.setattr(CommittedTenant, "name_at", lambda self, position: made_up)
    with window:
        chain.service.cosign_header(window)
        chain.service.clock.now = window.header.opens_at
        for account in ("law-1", "law-2"):
            for question in QUESTIONS["law"][:3]:
                chain.service.ask(window, account, question)
        chain.service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
        chain.service.finish(window)
        window.answer_challenge(chain.service.challenge(window))
    verdict = chain.verify(1)
    assert verdict.passed, verdict.deciding
    read = set[int]()
    for path in (chain.windows[0] / "receipts").glob("law*.json"):
        read |= {p for p, document in listed_documents(path) if document["salt"] is not None}
    exposure = verdict.figures["tenants"]["law"]["exposure"]
    assert SHAPE_OF_ONE.documents < len(read) <= exposure["limit"] == 12
    assert verdict.figures["exposed"]["law"] == 12
    assert "2 accounts can read up to 12 of 16 positions" in " ".join(render(verdict).split())
    english, german = (render_report(report_of(verdict), "html", language=name) for name in ("en", "de"))
    assert "can read the texts of at most 12 of 16 positions" in english
    assert "höchstens 12 von 16 Stellen" in german
    limited = chain.verify(1, max_exposure=SHAPE_OF_ONE.documents)
    assert limited.deciding is not None and limited.deciding.id == "trust.max_exposure"


def test_the_verdict_line_has_the_size_of_every_figure(tmp_path: Path) -> None:
    """Noise without a table beside pooled listing with 4 positions: epsilon of the noise is for one position."""
    chain = NoiseChain(tmp_path, shape=SHAPE)
    pool = PooledListing(keep=KEEP, rules=PoolRules(0, 100, "0.1"), documents=TableShape(10, 4, None))
    chain.run(FIRST, mechanisms={"law": Noise(), "medicine": pool})
    verdict = chain.verify(
        1, mechanisms=["noise", "pooled-listing"], max_exclusion_factor="100", min_keep="0.1"
    )
    assert verdict.passed, verdict.deciding
    assert "eps_audit=5.4947" in verdict.line and " positions_per_document=1 " in verdict.line


def test_noise_may_follow_and_precede_persistent_bits(tmp_path: Path) -> None:
    """No figure of noise depends on a bit, and no figure of the bits holds in a chain that answered with noise."""
    chain = NoiseChain(tmp_path, shape=SHAPE)
    persistent = Sampling(keep=KEEP, documents=replace(SHAPE, fresh_rows=3))
    accepted: dict[str, Any] = {
        "mechanisms": ["noise", "sampling"],
        "max_exclusion_factor": "100",
        "min_keep": "0.1",
    }
    chain.run(FIRST, mechanisms={"law": persistent, "medicine": persistent})
    chain.run(SECOND)
    alone, after = chain.verify(2, **accepted), chain.verify(2, 1, **accepted)
    assert alone.passed and after.passed, (alone.deciding, after.deciding)
    assert alone.figures["eps_audit"] == after.figures["eps_audit"]
    with pytest.raises(PolicyError) as caught:
        chain.open(THIRD, mechanisms={"law": persistent, "medicine": persistent})
    assert caught.value.field == "policy.tenants.law"
    carried = carrying.carried_from
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carrying, "carried_from", lambda folders, *given: carried(folders[1:], *given))
        patch.setattr(preparing, "check_chain", lambda *given: None)
        chain.run(THIRD, mechanisms={"law": persistent, "medicine": persistent})
    again = chain.verify(3, 1, 2, **accepted)
    assert not again.passed and again.deciding is not None and again.deciding.id == "header.tables"


# -- policies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanisms", "field"),
    [
        ({"law": Noise(documents=replace(SHAPE, fresh_rows=3))}, "policy.tenants.law.documents.fresh_rows"),
        ({"law": Noise(keep=PROBABILITY_RANGE // 2, documents=SHAPE)}, "policy.tenants.law.keep"),
        (
            {"medicine": Noise(documents=replace(SHAPE, positions_per_document=3))},
            "policy.tenants.medicine.documents.positions_per_document",
        ),
        ({"medicine": Noise()}, "policy.tenants.medicine.documents.positions_per_document"),
        (
            {"law": Noise(documents=replace(SHAPE, positions_per_document=17))},
            "policy.tenants.law.documents.positions_per_document",
        ),
    ],
    ids=["carried bits", "a sample", "two sizes", "one tenant without a table", "more than the capacity"],
)
def test_a_policy_without_a_figure_is_refused_by_name(
    mechanisms: dict[str, Noise], field: str, tmp_path: Path
) -> None:
    chain = NoiseChain(tmp_path, shape=SHAPE)
    every = {"law": Noise(documents=SHAPE), "medicine": Noise(documents=SHAPE), **mechanisms}
    with pytest.raises(PolicyError) as caught:
        chain.service.policy(
            system="scan", capacities={"law": 16, "medicine": 16}, mechanisms=every, **POLICY
        )
    assert caught.value.field == field


def test_a_circuit_proves_the_table_of_noise(tmp_path: Path) -> None:
    """The circuits `documents` and `retrieve` with a sample, whose bits are all 1 except with probability 2^-40."""
    chain = NoiseChain(tmp_path, shape=SHAPE, system="groth16")
    for number, texts in enumerate((FIRST, SECOND), 1):
        chain.run(texts)
        verdict = chain.verify(number, *range(1, number))
        assert verdict.passed, verdict.deciding
        assert "positions_per_document=2" in verdict.line and "proofs=groth16" in verdict.line


def test_the_noise_is_calibrated_for_every_position_of_a_document() -> None:
    """The accountant refuses noise that meets the target for one position, and the choice of noise has the target."""
    one, two = (
        NoiseTarget(3, 2, None, "8", "exact", "1e-7", "1e-5", None, None, positions).choose()
        for positions in (1, 2)
    )
    made: dict[str, Any] = {
        "n": 3,
        "k_max": 2,
        "delta_acc": "1e-7",
        "delta_policy": "1e-5",
        "calibration": "exact",
    }
    noise = accounting.Mechanism(two.gains, two.lattice)
    assert eps_at(noise, 3 * 2 * 2, "1e-5") <= 8
    accounting.check_policy(gains=two.gains, lattice=two.lattice, eps_acc=two.eps_acc, positions=2, **made)
    with pytest.raises(PolicyError, match="calibration"):
        accounting.check_policy(
            gains=one.gains, lattice=one.lattice, eps_acc=one.eps_acc, positions=2, **made
        )


def test_an_ingestion_refuses_a_larger_document(tmp_path: Path) -> None:
    chain = NoiseChain(tmp_path, shape=SHAPE)
    with pytest.raises(DocumentSizeError) as caught:
        chain.open({"a": ["A contract.", "A tort.", "A bail."]})
    assert caught.value.field == "law: 'a'" and caught.value.actual == 3


# -- cheaters --------------------------------------------------------------------------------------------------


def restated(change: Callable[[ColumnPublic], ColumnPublic]) -> Callable[..., ColumnPublic]:
    return lambda *given, **named: change(sample_public(*given, **named))


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(
    ("name", "outcome", "without"),
    [
        ("noise-document-above-the-limit", "fail", three_positions),
        ("noise-position-without-a-row", "undecided", by_position),
    ],
)
def test_a_cheater_is_refused_at_its_own_check(
    name: str, outcome: str, without: Callable[[ColumnPublic], ColumnPublic], engine: str
) -> None:
    """Both cheaters have valid proofs of another statement: a verifier without the policy's statement accepts them."""
    folder = FOLDER / name
    case = json.loads((folder / "case.json").read_text())
    given: dict[str, Any] = {
        "trust": folder / case["trust"],
        "receipts": [folder / path for path in case["receipts"]],
        "options": VerifierOptions(engine=engine),
    }
    verdict = verify_window(folder / case["window"], **given)
    outcomes = {check.id: str(check.status.value) for check in verdict.checks}
    assert verdict.deciding is not None and verdict.deciding.id == "proof.sample.law"
    assert outcomes["proof.sample.law"] == outcome
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(COLUMNS, "sample", restated(without))
        assert verify_window(folder / case["window"], **given).passed


# -- commands --------------------------------------------------------------------------------------------------


NEW = (
    "provider", "policy", "new", "POLICY", "--window", "w-1", "--tenant", "law=64", "--accounts", "4", "--questions", "5",
    "--mechanism", "noise", "--documents", "16", "--positions-per-document", "4", "--eps-joint", "20", "--k-max", "2",
)  # fmt: skip


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_policy_of_noise_by_document_is_calibrated_and_explained(tmp_path: Path) -> None:
    path = str(tmp_path / "policy.json")
    done = run(*(path if word == "POLICY" else word for word in NEW), "--json")
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert float(value["eps_audit"]) <= 20 and value["positions_per_document"] == 4
    assert value["bounds"]["compositions"] == 2 * 5 * 4
    policy = json.loads(Path(path).read_text())
    assert policy["unit"] == "document" and policy["tenants"][0]["documents"]["fresh_rows"] is None
    words = " ".join(Path(value["explained"]).read_text().split())
    assert "2 accounts x 5 queries x 4 positions of a document = 40" in words
    assert "Privacy is for one document (`documents`): a document added, removed or replaced." in words
    assert "losses add up over the positions of a document, of which there are at most 4" in words
    one = run("provider", "policy", "bounds", path)
    given = [
        "--gains",
        ",".join(map(str, policy["noise"]["gains"])),
        "--lattice",
        str(policy["noise"]["lattice"]),
    ]
    same = run("provider", "policy", "bounds", "--n", "5", "--k", "2", "--eps-acc", policy["eps_acc"], "--delta-acc",
               policy["delta_acc"], "--delta", policy["delta_policy"], *given, "--positions-per-document",
               "4", "--json")  # fmt: skip
    assert one.exit_code == same.exit_code == 0
    assert json.loads(same.stdout)["eps_audit"] == value["eps_audit"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        (("--fresh-rows", "2"), "--fresh-rows"),
        (("--mechanism", "law=noise:0.9"), "policy.tenants.law.keep"),
    ],
)
def test_an_option_without_effect_is_refused(more: tuple[str, ...], field: str, tmp_path: Path) -> None:
    path = str(tmp_path / "policy.json")
    done = run(*(path if word == "POLICY" else word for word in NEW), *more)
    assert done.exit_code == 2 and field in done.output, done.output


def test_recall_is_explored_with_the_epsilon_of_documents() -> None:
    noises = [simulate.Noise((1, 8), ScoreWindow(0, 256, 64))]
    one, four = (
        simulate.explore(
            random_sample(), simulate.Grid(noises, [2], [1], size), top_k=5, delta="1e-5", repeats=1
        )
        for size in (1, 4)
    )
    single = accounting.Mechanism((1, 8), 64)
    assert [e.points[0].eps for e in (one, four)] == [eps_at(single, 2, "1e-5"), eps_at(single, 8, "1e-5")]
    assert four.as_json()["positions_per_document"] == 4
    assert "eps_audit is for a document of at most 4 positions" in table(four)
    assert "eps_audit is for a document of one position" in table(one)


def test_the_charts_of_a_report_are_about_documents(chain: NoiseChain) -> None:
    report = report_of(chain.verify(1))
    (protection,) = protections(report)
    figures = report.figures
    curve = dict(epsilon_curve(report, protection))
    assert text(curve[figures.k_max]) == figures.eps and text(curve[1]) == figures.eps_one_account
    ceilings = {c.accounts: c.at_one_percent for c in ceilings_of(report, protection)}
    assert text(ceilings[figures.k_max]) == figures.tpr_at_fpr_1pct
