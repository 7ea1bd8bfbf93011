"""Names of documents through the running service: three windows in a row for each mechanism with a document table, and
one malicious provider for each check of the account."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit.account import account as account_module
from rag_audit.account import names as account_names
from rag_audit.account.account import Account, StoredReceipt
from rag_audit.account.client import Client
from rag_audit.account.client.asynchronous import AsyncClient
from rag_audit.account.names import (
    NamedPassage,
    StoredNames,
    check_names,
    check_proof,
    passages_at,
    requested,
)
from rag_audit.attest import names as attest_names
from rag_audit.attest.names import NameProofs
from rag_audit.cli import main
from rag_audit.cli.setup import Circuits
from rag_audit.commit.carrying import Continuing
from rag_audit.commit.commitment import CommittedTenant
from rag_audit.commit.document_table import place_documents
from rag_audit.commit.tables import WindowTable
from rag_audit.errors import (
    InvalidProof,
    PolicyError,
    RequestRefused,
    SchemaError,
    SetupError,
    SizeError,
    WitnessError,
)
from rag_audit.mechanisms.base import Mechanism, TableShape
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.names import MAX_KEY, NameOpening, NamesAnswer, NamesRequest, document_name
from rag_audit.models.passage import Passage
from rag_audit.models.publication import Publication
from rag_audit.models.requests import Answer, answered
from rag_audit.models.trust import Pins
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16.instance import NamesInstance
from rag_audit.proofs.backends.groth16.policy import names_instances
from rag_audit.proofs.backends.scan.row_names import ScanRowNames
from rag_audit.proofs.proving import backend
from rag_audit.proofs.row_names import row_names_of
from rag_audit.proofs.statements.private import TablePrivate
from rag_audit.proofs.statements.row_names import RowNamesPublic
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.service.names import STATUSES, Names
from tests.drafting import draft
from tests.serving.conftest import Reply, Served, serving
from tests.window.simulator import ORIGIN, QUESTIONS, TEXTS, Service
from tests.window.test_document_tables import FIRST, SECOND, THIRD, Texts

EVERY = PROBABILITY_RANGE - 1
"""A sampling rate under which every document is in the sample, so that an answer has the best positions' texts."""
SHAPE = TableShape(rows=10, positions_per_document=2, fresh_rows=3)
MECHANISMS: dict[str, Mechanism] = {
    "sampling": Sampling(keep=EVERY, documents=SHAPE),
    "pooled-listing": PooledListing(keep=EVERY, rules=PoolRules(0, 60, "0.3"), documents=SHAPE),
    "noise": Noise(documents=replace(SHAPE, rows=8, fresh_rows=None)),
}
NOISED: dict[str, Any] = {
    "eps_acc": "100",
    "gains": (1, 8),
    "top_k": 4,
    "capacities": {"law": 8, "medicine": 8},
}
OTHER = Sampling(keep=EVERY)
"""The tenant medicine has no document table, except with noise, whose tenants have documents of one size."""


def described(texts: Texts) -> list[Passage]:
    """Passages as of files: the metadata have the source, which is the document's key."""
    return [
        replace(Passage.of(text, {"id": f"{key}#{number}", "source": key}), document=key)
        for key, own in texts.items()
        for number, text in enumerate(own, 1)
    ]


@dataclass
class Chain:
    """Windows of one origin, one after another, each behind a running service."""

    root: Path
    mechanism: Mechanism
    windows: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.service = Service(self.root)

    @contextmanager
    def served(self, texts: Texts | Sequence[Passage], **changes: Any) -> Iterator[Served]:
        """The next window, which is closed at the end of the block."""
        number, previous = len(self.windows) + 1, None
        if self.windows:
            before = WindowFile.load(self.windows[-1] / "public")
            previous = ClosedWindow.of(before, field="previous").as_previous()
        other = self.mechanism if self.mechanism.noised else OTHER
        law = described(texts) if isinstance(texts, Mapping) else texts
        window = self.service.commit(
            f"w-{number}",
            previous=previous,
            documents={"law": law, "medicine": TEXTS["medicine"][:2]},
            continuing=Continuing(self.windows[::-1], lambda line: None),
            **{
                "window": f"w-{number}",
                "capacities": {"law": 16, "medicine": 16},
                "system": "scan",
                "mechanisms": {"law": self.mechanism, "medicine": other},
                # Noise lists 4 of 8 positions, so that three answers return texts with certainty except for 2^-18.
                **(NOISED if self.mechanism.noised else {}),
                **changes,
            },
        )
        self.windows.append(window.directory)
        with window:
            self.service.cosign_header(window)
            self.service.clock.now = window.header.opens_at
            with serving(self.service, window) as served:
                yield served
            self.service.finish(window)

    def client(self, served: Served) -> Client:
        return Client(served.service.url, self.service.key.verifier)

    @property
    def law(self) -> Account:
        return self.service.accounts["law-1"]


@dataclass
class Asked:
    """A window in which account law-1 asked questions and received the proof of its names."""

    publication: Publication
    report: Any
    at: dict[int, NamedPassage]


@pytest.fixture(scope="module", params=list(MECHANISMS))
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Chain, list[Asked]]:
    chain, result = Chain(tmp_path_factory.mktemp(request.param), MECHANISMS[request.param]), list[Asked]()
    for texts in (FIRST, SECOND, THIRD):
        with chain.served(texts) as served, chain.client(served) as client:
            for text in QUESTIONS["law"]:
                client.ask(chain.law, text)
            window = client.publication()
            report = client.names(chain.law, window)
            result.append(Asked(window, report, chain.law.passages(window)))
            assert not served.faults
    return chain, result


def test_names_are_proved_in_three_windows_in_a_row(asked: tuple[Chain, list[Asked]]) -> None:
    chain, windows = asked
    for number, window in enumerate(windows, 1):
        report = window.report
        assert report.proved and report.window == f"w-{number}"
        assert report.passages == len(window.at) > 0 and report.documents <= report.passages
        assert report.column == "source" and report.undetermined == 0 and report.renamed == ()
        assert all(passage.key == passage.fields["source"] for passage in window.at.values())
        assert chain.law.stored_proof(window.publication, window.at)
    persistent = chain.mechanism.table is not None and chain.mechanism.table.persistent
    if persistent:
        both = {p.key for p in windows[0].at.values()} & {p.key for p in windows[1].at.values()}
        assert windows[1].report.known == len(both) > 0
    else:
        assert [window.report.known for window in windows] == [0, 0, 0], "each window draws new salts"


def test_an_account_s_folder_has_openings_and_proof(asked: tuple[Chain, list[Asked]]) -> None:
    chain, windows = asked
    for window in windows:
        stored = [kept.openings for kept in chain.law.receipts(window.publication)]
        assert len(stored) == 3 and all(names is not None for names in stored)
    run = CliRunner().invoke(
        main, ["account", "names", str(chain.law.directory), "--window", str(chain.windows[1] / "public")]
    )
    assert run.exit_code == 0, run.output
    assert "the metadata field 'source' names the documents" in run.output and "\nproved: " in run.output
    path = chain.law.directory / "names" / f"{windows[1].publication.header_digest()[:16]}.json"
    assert path.stat().st_mode & 0o777 == 0o600


def test_names_of_a_proof_are_the_table_s(asked: tuple[Chain, list[Asked]]) -> None:
    """An honest proof proves no other name, no other position and no other window."""
    chain, windows = asked
    window, other = windows[0], windows[1]
    digest = window.publication.header_digest()
    stored = json.loads((chain.law.directory / "names" / f"{digest[:16]}.json").read_text())["answers"][0]
    answer = NamesAnswer.parse(stored, field="names")
    check_proof(window.publication, "law", window.at, answer)
    position = answer.positions[0]
    passage = window.at[position]

    def refused(wrong: NamedPassage, match: str, *, told: bool) -> None:
        names = [wrong.name.hex(), *answer.names[1:]] if told else answer.names
        with pytest.raises(InvalidProof, match=match) as caught:
            check_proof(
                window.publication,
                "law",
                {**window.at, position: wrong},
                answer.model_copy(update={"names": names}),
            )
        assert told or repr(wrong.key) in str(caught.value)

    another = next((p for p in window.at.values() if p.key != passage.key), None)
    wrong = [passage.model_copy(update={"key": "a contract"}), passage.model_copy(update={"salt": "00" * 32})]
    if another is not None:  # the name of another row
        wrong.append(passage.model_copy(update={"key": another.key, "salt": another.salt}))
    for changed in wrong:
        refused(changed, "the document table has another name", told=False)
        refused(changed, "the proof is refused", told=True)
    moved = answer.model_copy(update={"positions": [*answer.positions[:-1], 15]})
    if 15 not in window.at:
        with pytest.raises(SchemaError, match="other positions"):
            check_proof(window.publication, "law", window.at, moved)
        with pytest.raises(InvalidProof, match="the proof is refused"):
            check_proof(window.publication, "law", {**window.at, 15: window.at[answer.positions[-1]]}, moved)
    with pytest.raises(SchemaError, match="another window"):
        check_proof(other.publication, "law", window.at, answer)
    replayed = answer.model_copy(update={"header": other.publication.header_digest()})
    with pytest.raises(InvalidProof, match="another document table"):
        check_proof(other.publication, "law", window.at, replayed)


def test_two_rows_of_one_name_and_a_position_without_a_row_have_no_proof() -> None:
    """A table in which one document has two rows under one name, so that the openings of both agree."""
    names = [document_name(bytes([n]) * 32, key) for n, key in ((1, "a"), (1, "a"), (2, "b"))]
    rows = np.array([0, 1, 2, 2, 0, 3, 3, 3], "<i4")  # position 5 has no row
    table = TablePrivate(b"k" * 32, rows.tobytes(), names)
    committed = backend("scan").commit_document_table(8, table)

    def statement(*opened: tuple[int, int]) -> RowNamesPublic:
        positions, of = zip(*opened, strict=True)
        return RowNamesPublic("0" * 64, "law", 8, 3, committed, positions, [names[n] for n in of])

    system = row_names_of("scan")
    for opened in (((0, 0), (4, 0)), ((1, 1), (2, 2), (3, 2))):
        proof = system.prove(statement(*opened), table)
        system.verify(statement(*opened), proof)
    for opened in (((0, 0), (1, 1)), ((5, 0),), ((0, 2),)):
        with pytest.raises(WitnessError, match="no valid proof") as caught:
            system.prove(statement(*opened), table)
        assert "row" not in str(caught.value.actual), "row numbers are secret"


def test_names_of_a_tenant_with_circuits(tmp_path: Path) -> None:
    """A proof under the provider's own key does not convince, and one under the pinned key of a ceremony does."""
    chain = Chain(tmp_path, Sampling(keep=EVERY, documents=SHAPE))
    with chain.served(FIRST, system="groth16") as served, chain.client(served) as client:
        client.ask(chain.law, QUESTIONS["law"][0])
        window = client.publication()
        report = client.names(chain.law, window)
        assert (report.setup, report.proved) == ("unpinned", False) and report.passages > 0
        at = chain.law.passages(window)
        [path] = (chain.law.directory / "names").iterdir()
        stored = json.loads(path.read_text())["answers"][0]
        answer, key = NamesAnswer.parse(stored, field="names"), stored["proof"]["key"]
        pin = {"circuit": key["circuit"], "vk": digest_hex(key), "setup": "ceremony"}
        pins = Pins.parse({"groth16": [pin]}, field="pins")
        assert client.names(chain.law, window, pins=pins).proved
        other = Pins.parse({"groth16": [{**pin, "vk": "0" * 64}]}, field="pins")
        with pytest.raises(InvalidProof, match="not the pinned one"):
            client.names(chain.law, window, pins=other)
        position = answer.positions[0]
        wrong = at[position].model_copy(update={"key": "another document"})
        lie = answer.model_copy(update={"names": [wrong.name.hex(), *answer.names[1:]]})
        with pytest.raises(InvalidProof, match="the proof is refused"):
            check_proof(window, "law", {**at, position: wrong}, lie, pins)
        arguments = ["account", "names", str(chain.law.directory), "--window"]
        arguments.append(str(served.window.directory / "public"))
        run = CliRunner().invoke(main, arguments)
        assert run.exit_code == 3 and "the provider can forge this proof" in run.output, run.output

        trust = pinned_by_setup(chain, window, tmp_path, pin)
        arguments += ["--trust", str(trust)]
        run = CliRunner().invoke(main, arguments)
        assert run.exit_code == 3 and "\nproved: " not in run.output, run.output
        # As `verifier trust new --zkey` writes it after the checks of a ceremony.
        trust.write_text(trust.read_text().replace('setup = "unsafe"', 'setup = "ceremony"'))
        run = CliRunner().invoke(main, [*arguments, "--json"])
        assert run.exit_code == 0, run.output
        value = json.loads(run.stdout)
        assert value["proved"] is True and value["setup"] == "ceremony"


def pinned_by_setup(chain: Chain, window: Publication, folder: Path, pin: Mapping[str, str]) -> Path:
    """A trust file with the keys that `provider setup new` lists for a window's policy, that of the names among them."""
    policy, keys, trust = (folder / name for name in ("policy.json", "keys.json", "names.toml"))
    policy.write_bytes(jcs(window.policy))
    run = CliRunner().invoke(
        main, ["provider", "setup", "new", str(policy), "--embedder", chain.service.embedder, "--json"]
    )
    assert run.exit_code == 0, run.output
    keys.write_text(run.stdout)
    listed = {key["circuit"]: key for key in json.loads(run.stdout)["keys"]}
    assert listed[pin["circuit"]] == {
        **pin, "setup": "unsafe", "name": NamesInstance(16, SHAPE.rows).name
    }  # fmt: skip
    service = chain.service
    witnesses = [item for w in service.witnesses.values() for item in ("--witness", str(w.vkey))]
    run = CliRunner().invoke(
        main,
        ["verifier", "trust", "new", str(trust), "--origin", ORIGIN, "--provider", str(service.key.verifier),
         *witnesses, "--embedder", service.embedder, "--setup", str(keys)],
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    return trust


def test_setup_has_the_circuit_of_names_of_each_size_once(tmp_path: Path) -> None:
    """Of tenants with circuits and a document table, which `policy_instances` does not list, as no window needs it."""
    table = Sampling(keep=EVERY, documents=SHAPE)
    policy = draft(
        window="w", opens_at=1, closes_at=2, n=3, k_max=2, eps_acc="4", system="groth16",
        capacities={"a": 16, "b": 16, "c": 16, "d": 32},
        mechanisms={"a": table, "b": table, "c": Sampling(keep=EVERY), "d": table},
    )  # fmt: skip
    assert names_instances(policy) == [NamesInstance(16, SHAPE.rows), NamesInstance(32, SHAPE.rows)]
    path = tmp_path / "policy.json"
    path.write_bytes(policy.canonical())
    one = NamesInstance(32, SHAPE.rows)
    circuits = Circuits("wordllama-lexical-768", None, batch=None, ptau_digest=None, circuit=one.name)
    assert circuits.one_of(path) == one, "the commands of a ceremony take it by name"
    scan = policy.model_copy(
        update={"tenants": [t.model_copy(update={"system": "scan"}) for t in policy.tenants]}
    )
    assert names_instances(scan) == []


# -- comparisons ---------------------------------------------------------------------------------------------------


def passage(position: int, key: str, *, salt: int = 1, text: str = "text", **fields: str) -> NamedPassage:
    digest = hashlib.sha256(f"{text} {position}".encode()).hexdigest()
    return NamedPassage(
        position=position, key=key, salt=f"{salt:064x}", text=digest, fields=fields, own=False
    )


def stored(*passages: NamedPassage, window: str = "w-2", persistent: bool = True) -> StoredNames:
    return StoredNames(origin="example.org/rag", window=window, persistent=persistent, passages=[*passages])


def test_passages_of_one_document_have_one_name() -> None:
    first, second = passage(1, "a"), passage(2, "a", salt=2)
    with pytest.raises(InvalidProof, match="one document has two names") as caught:
        check_names([stored(first), stored(second)], [])
    assert caught.value.field == "document 'a'" and second.name.hex() in str(caught.value.actual)
    with pytest.raises(InvalidProof, match="two answers name different documents for one position"):
        check_names([stored(first), stored(passage(1, "b"))], [])
    own = [stored(first), stored(first, passage(2, "b", salt=2))]
    report, at = check_names(own, []), passages_at(own)
    assert (report.passages, report.documents, sorted(at)) == (2, 2, [1, 2])


def test_a_document_keeps_its_name_from_window_to_window() -> None:
    before, now = stored(passage(3, "a"), window="w-1"), stored(passage(1, "a"))
    assert check_names([now], [before]).known == 1
    renamed = stored(passage(1, "a", salt=2))
    with pytest.raises(InvalidProof, match="another name than in an earlier window") as caught:
        check_names([renamed], [before])
    assert "as in window w-1" in str(caught.value.expected)
    for other in (
        before.model_copy(update={"persistent": False}),
        before.model_copy(update={"origin": "example.org/other"}),
    ):
        assert check_names([renamed], [other]).known == 0
    fresh = renamed.model_copy(update={"persistent": False})
    assert check_names([fresh], [before]).known == 0, "each window draws new salts"


def returned(position: int, text: str, key: str, **fields: str) -> NamedPassage:
    """A passage as the account makes it from an answer."""
    opening = NameOpening(key=key, salt=f"{position:064x}")
    named = account_names._named(answered(position, Passage.of(text, fields), opening), True)
    assert named is not None
    return named


def test_a_renamed_file_and_a_copy_are_reported() -> None:
    """The metadata name the file, so a renamed file has other metadata."""
    before = stored(returned(1, "rent", "a.pdf", source="a.pdf", id="a.pdf#1"), window="w-1")
    now = returned(1, "rent", "b.pdf", source="b.pdf", id="b.pdf#1")
    report = check_names([stored(now)], [before])
    assert report.renamed == (("a.pdf", "b.pdf"),) and report.copies == () and report.earlier == ("w-1",)
    copy = returned(2, "rent", "c.pdf", source="c.pdf", id="c.pdf#1")
    report = check_names([stored(now, copy, persistent=False)], [before])
    assert report.copies == (("b.pdf", "c.pdf"),) and report.earlier == ()


def test_keys_that_differ_in_form_only_are_reported() -> None:
    keys = ("Lease \u00e9.pdf", "lease e\u0301.pdf", "lease.pdf")
    report = check_names([stored(*(passage(n, key, salt=n) for n, key in enumerate(keys)))], [])
    assert report.alike == (keys[:2],) and report.positions == {key: [n] for n, key in enumerate(keys)}


def test_equal_content_under_another_key_is_reported() -> None:
    before = stored(passage(1, "a"), window="w-1")
    assert check_names([stored(passage(1, "b", salt=2))], [before]).renamed == (("a", "b"),)
    both = stored(passage(1, "a"), passage(2, "b", salt=2))
    assert check_names([both], [before]).renamed == ()


def test_metadata_determine_the_key() -> None:
    files = [passage(n, "a.pdf", id=f"a.pdf#{n}", source="a.pdf") for n in (1, 2)]
    assert check_names([stored(*files)], []).column == "source"
    divided = passage(3, "a.pdf (2)", salt=2, id="a.pdf#3", source="a.pdf")
    with pytest.raises(InvalidProof, match="another document than the metadata") as caught:
        check_names([stored(*files, divided)], [])
    assert caught.value.expected == "the metadata field 'source': 'a.pdf'"
    lines = [passage(n, str(n), salt=n, id=str(n), author="x") for n in (1, 2, 3)]
    assert check_names([stored(*lines)], []).column == "id"
    # Without --document-column another field can equal some keys by chance, so the check accuses no provider.
    mixed = [*lines, passage(4, "9", salt=9, id="4")]
    assert (report := check_names([stored(*mixed)], [])).column is None and report.undetermined == 4
    with pytest.raises(InvalidProof, match="another document than the metadata"):
        check_names([stored(*mixed)], [], column="id")
    long = returned(4, "text", "t" * MAX_KEY, title="t" * (MAX_KEY + 1))
    with pytest.raises(InvalidProof, match="another document than the metadata") as caught:
        check_names([stored(long)], [], column="title")
    assert "none" not in str(caught.value.expected)
    with pytest.raises(InvalidProof, match="another document than the metadata"):
        check_names([stored(*lines)], [], column="author")
    with pytest.raises(SetupError, match="do not have the field") as unknown:
        check_names([stored(*lines)], [], column="customer")
    assert unknown.value.expected == "one of 'author', 'id'"


def test_keys_that_metadata_do_not_determine_are_counted() -> None:
    plain = [passage(n, f"file-{n}", salt=n) for n in (1, 2)]
    report = check_names([stored(*plain)], [])
    assert (report.column, report.undetermined) == (None, 2)
    own = plain[0].model_copy(update={"own": True})
    assert check_names([stored(own, plain[1])], []).undetermined == 1
    hidden = [passage(n, f"customer-{n}", salt=n, id=str(n)) for n in (1, 2, 3)]
    chance = passage(4, "4", salt=4, id="4")
    assert check_names([stored(*hidden, chance)], []).column is None


def test_one_request_has_all_positions_of_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two proofs do not show together that equal names share a row."""
    monkeypatch.setattr(account_names, "MAX_POSITIONS", 4)
    at = {n: passage(n, key) for n, key in enumerate("abcabdbe")}
    parts = requested(at)
    assert sorted(p for part in parts for p in part) == [*range(8)]
    assert all(len(part) <= 4 and part == sorted(part) for part in parts) and len(parts) > 1
    for key in "abcde":
        own = {n for n, p in at.items() if p.key == key}
        assert sum(not own.isdisjoint(part) for part in parts) == 1, key
    with pytest.raises(SetupError, match="more passages of one document than one proof covers") as caught:
        requested({n: passage(n, "a") for n in range(5)})
    assert caught.value.field == "document 'a'" and caught.value.exit_code == 2


@pytest.mark.parametrize("key", ["k" * (MAX_KEY + 1), " ", "", "\u200b\n"])
def test_a_key_is_visible_and_short(key: str) -> None:
    """In the window that the provider opens, in an answer and in the account's folder."""
    with pytest.raises(SchemaError, match="blank or too long"):
        place_documents(SHAPE, {key: 1})
    for model, value in (
        (NameOpening, {"key": key, "salt": "00" * 32}),
        (NamedPassage, {**passage(1, "a").dump(), "key": key}),
    ):
        with pytest.raises(SchemaError, match="not well-formed"):
            model.parse(value, field="answer")
    assert NameOpening.parse({"key": "k" * MAX_KEY, "salt": "00" * 32}, field="answer").name


# -- malicious providers ---------------------------------------------------------------------------------------------


LIES = ("key", "salt", "another row", "two keys")
VICTIMS = (
    *(f"law-{lie.replace(' ', '-')}" for lie in LIES),
    "law-unopened",
    "law-without-row",
    "law-long",
    "law-old",
)


@pytest.fixture(scope="module")
def open_window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chain, Served]]:
    """A window whose texts have no metadata. Each malicious answer is for an account of its own."""
    chain = Chain(tmp_path_factory.mktemp("open"), MECHANISMS["sampling"])
    for name in VICTIMS:
        folder = chain.root / "accounts" / name
        chain.service.accounts[name] = Account.create(folder, name, "law")
    plain = [Passage(text, document=key) for key, own in FIRST.items() for text in own]
    with chain.served(plain, n=40, accounts_max=16) as served:
        yield chain, served


def told(
    chain: Chain,
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    account: Account,
    lie: Callable[[int, NameOpening], Any],
) -> Answer:
    """The answer of a provider that opens another name for each position."""
    honest = CommittedTenant.name_at

    def lying(self: CommittedTenant, position: int) -> Any:
        opening = honest(self, position)
        return opening if opening is None else lie(position, opening)

    with monkeypatch.context() as patched, chain.client(served) as client:
        patched.setattr(CommittedTenant, "name_at", lying)
        return client.ask(account, QUESTIONS["law"][0])


def test_an_answer_without_an_opening_is_refused(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, served = open_window
    account = chain.service.accounts["law-unopened"]
    with pytest.raises(InvalidProof, match="does not open the name") as caught:
        told(chain, served, monkeypatch, account, lambda position, opening: None)
    assert "answer.documents, position" in str(caught.value.field)
    assert not account.receipts(served.publication)
    with chain.client(served) as client:  # the request waits, and gets the identical record's honest answer
        assert client.ask(account, QUESTIONS["law"][0]).documents[0].name is not None


def test_an_answer_with_a_long_key_is_not_stored(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chain, served = open_window
    account = chain.service.accounts["law-long"]
    long = NameOpening(key="k", salt="00" * 32).model_copy(update={"key": "k" * (17 << 20)})
    with pytest.raises(SchemaError, match="not well-formed"):
        told(chain, served, monkeypatch, account, lambda position, opening: long)
    assert not account.receipts(served.publication)
    with monkeypatch.context() as patched, chain.client(served) as client:
        patched.setattr(account_module, "MAX_RECEIPT_BYTES", 100)
        with pytest.raises(SizeError, match="too large"):  # no receipt that the account cannot read back
            client.ask(account, QUESTIONS["law"][0])
    assert not [*(account.directory / "receipts").iterdir()]
    with chain.client(served) as client:
        assert client.ask(account, QUESTIONS["law"][0]).documents
    assert len(account.export_receipts(served.publication, tmp_path / "out")) == 1


@pytest.mark.parametrize("damage", ["absent", "null", "no openings", "long key"])
def test_receipts_without_usable_openings_are_read(
    open_window: tuple[Chain, Served], tmp_path: Path, damage: str
) -> None:
    """Receipts of earlier releases have no openings, and damaged openings prevent no export."""
    chain, served = open_window
    with chain.client(served) as client:
        client.ask(chain.service.accounts["law-old"], QUESTIONS["law"][0])
    account = Account(copy_of(chain.service.accounts["law-old"].directory, tmp_path / "law"))
    path = next((account.directory / "receipts").iterdir())
    value = json.loads(path.read_text())
    if damage == "absent":
        del value["names"]
    elif damage == "long key":
        value["names"]["passages"][0]["key"] = "k" * (17 << 20)
    else:
        value["names"] = None if damage == "null" else "openings"
    path.write_bytes(jcs(value))
    assert StoredReceipt.read(path).openings is None
    receipts = len(account.all_receipts())
    assert len(account.export_receipts(served.publication, tmp_path / "out")) == receipts
    assert account.used(served.publication)[0] == receipts


def test_an_opening_without_a_table_is_refused(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, served = open_window
    account, question = chain.service.accounts["medicine-1"], QUESTIONS["medicine"][0]
    with chain.client(served) as client:
        with monkeypatch.context() as patched:
            named = NameOpening(key="a", salt="00" * 32)
            patched.setattr(CommittedTenant, "name_at", lambda self, position: named)
            with pytest.raises(InvalidProof, match="although the tenant has no document table"):
                client.ask(account, question)
        answer = client.ask(account, question)
        assert answer.documents and all(document.name is None for document in answer.documents)
        with pytest.raises(SetupError, match="has no document table"):
            client.names(account, client.publication())


@pytest.mark.parametrize("lie", LIES)
def test_a_false_opening_is_found(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    """Without metadata only the table can show it."""
    chain, served = open_window
    account = chain.service.accounts[f"law-{lie.replace(' ', '-')}"]
    table = served.window.context.tenant("law").table
    assert table is not None
    rows = {row.key: row for row in table.table.rows}

    def false(position: int, opening: NameOpening) -> NameOpening:
        if lie == "key":
            return opening.model_copy(update={"key": opening.key + "'"})
        if lie == "salt":
            return opening.model_copy(update={"salt": "11" * 32})
        if lie == "another row":
            key = "c" if opening.key == "b" else "b"
            return NameOpening(key=key, salt=rows[key].salt.hex())
        return opening.model_copy(update={"key": f"{opening.key}/{position}"})

    answer = told(chain, served, monkeypatch, account, false)
    assert answer.documents
    with (
        chain.client(served) as client,
        pytest.raises(InvalidProof, match="the document table has another name") as caught,
    ):
        client.names(account, client.publication())
    assert str(caught.value.field).startswith("document ") and caught.value.exit_code == 1


def test_a_text_at_a_position_without_a_row_does_not_leave(open_window: tuple[Chain, Served]) -> None:
    chain, served = open_window
    account = chain.service.accounts["law-without-row"]
    table = served.window.context.tenant("law").table
    assert table is not None
    records, rows = len(served.window.records), table.row_of_position.copy()
    request = account.request(served.publication, QUESTIONS["law"][0])
    try:
        table.row_of_position[:] = len(table.table.rows)
        refusal = served.refusal(served.post("/v1/query", request.canonical()))
    finally:
        table.row_of_position[:] = rows
    assert refusal.reason == "unavailable" and "no row in the document table" in refusal.detail
    assert len(served.window.records) == records, "no record, and the slot is unused"
    with chain.client(served) as client:
        assert client.ask(account, QUESTIONS["law"][0]).documents


# -- the endpoint --------------------------------------------------------------------------------------------------


def request_for(
    chain: Chain, served: Served, positions: Sequence[int], account: str = "law-1"
) -> NamesRequest:
    own, header = chain.service.accounts[account], served.window.header
    return NamesRequest.sign(
        own.keys.newest, origin=header.origin, header=served.window.header_digest, tenant=own.tenant,
        account=account, positions=positions,
    )  # fmt: skip


def test_only_positions_of_own_answers_are_proved(open_window: tuple[Chain, Served]) -> None:
    chain, served = open_window
    with chain.client(served) as client:
        answer = client.ask(chain.law, QUESTIONS["law"][0])
    position = answer.documents[0].position
    assert served.post("/v1/names", request_for(chain, served, [position]).canonical()).status == 200
    committed = served.window.context.tenant("law")
    returned = {
        p
        for kept in chain.law.receipts(served.publication)
        if (names := kept.openings)
        for p in (n.position for n in names.passages)
    }
    for asked_for in (
        [next(p for p in range(16) if p not in committed.documents_at)],  # empty
        sorted(committed.documents_at),  # of all documents
        [200_000],
    ):
        if set(asked_for) <= returned:
            continue
        reply = served.post("/v1/names", request_for(chain, served, asked_for).canonical())
        assert (reply.status, reply.value["error"]) == (403, "not-returned")
    # Another account of the tenant has received no text yet.
    other = request_for(chain, served, [position], "law-2")
    assert served.post("/v1/names", other.canonical()).value["error"] == "not-returned"


@pytest.mark.parametrize(
    ("changes", "status", "name"),
    [
        ({"sig": "0" * 128}, 403, "bad-signature"),
        ({"account": "law-9"}, 403, "unknown-account"),
        ({"tenant": "physics"}, 403, "unknown-tenant"),
        ({"tenant": "medicine"}, 403, "wrong-tenant"),
        ({"header": "0" * 64}, 409, "wrong-window"),
        ({"positions": []}, 400, "SchemaError"),
        ({"positions": [2, 1]}, 400, "SchemaError"),
        ({"positions": [1, 1]}, 400, "SchemaError"),
        ({"positions": list(range(10_001))}, 400, "SchemaError"),
        ({"v": 2}, 400, "SchemaError"),
    ],
)
def test_other_requests_are_refused_by_name(
    open_window: tuple[Chain, Served], changes: dict[str, Any], status: int, name: str
) -> None:
    chain, served = open_window
    value = {**request_for(chain, served, [1]).dump(), **changes}
    reply = served.post("/v1/names", json.dumps(value).encode())
    assert (reply.status, reply.value["error"]) == (status, name)
    assert not served.faults


def test_accounts_share_no_stored_proof(open_window: tuple[Chain, Served]) -> None:
    """The time of a shared proof would tell an account that another account received the same passages."""
    chain, served = open_window
    with chain.client(served) as client:
        for name in ("law-1", "law-old"):
            position = client.ask(chain.service.accounts[name], QUESTIONS["law"][0]).documents[0].position
    proofs = []
    for name in ("law-1", "law-old", "law-1"):
        reply = served.post("/v1/names", request_for(chain, served, [position], name).canonical())
        proofs.append(reply.value["proof"]["proof"])
    assert proofs[0] == proofs[2] != proofs[1]


def test_an_account_has_a_limit_of_proofs(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is of each account; the table is committed to once, and a failed proof leaves nothing behind."""
    chain, served = open_window
    names = NameProofs(served.window.context, served.window.answers)
    with chain.client(served) as client:
        for name in ("law-1", "law-old"):
            position = client.ask(chain.service.accounts[name], QUESTIONS["law"][0]).documents[0].position
    commits, commit = list[object](), WindowTable.commit

    def counting(self: WindowTable, system: Any) -> Any:
        commits.append(system)
        return commit(self, system)

    def fail(*args: Any) -> Any:
        raise WitnessError("no proof")

    monkeypatch.setattr(WindowTable, "commit", counting)
    monkeypatch.setattr(attest_names, "SPARE_PROOFS", 1 - served.window.context.policy.n)
    request = request_for(chain, served, [position])
    with monkeypatch.context() as patched:
        patched.setattr(ScanRowNames, "prove", fail)
        with pytest.raises(WitnessError):
            names.answer(request)
    assert not names._proofs and not names._proving.locked()
    assert names.answer(request) == names.answer(request), "a stored proof does not count"
    names._proofs.clear()
    with pytest.raises(RequestRefused) as refused:
        names.answer(request)
    assert refused.value.reason == "proof-limit" and refused.value.reason in STATUSES
    assert names.answer(request_for(chain, served, [position], "law-old")).names
    assert len(commits) == 1


def test_a_forged_request_takes_no_place_and_gets_no_proof(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, served = open_window
    forged = request_for(chain, served, [1]).model_copy(update={"sig": "0" * 128})
    entered: list[str] = []
    monkeypatch.setattr(Names, "_enter", lambda self, account: entered.append(account))
    assert served.post("/v1/names", forged.canonical()).status == 403
    assert entered == [], "only the account itself can occupy its place"
    with pytest.raises(RequestRefused) as refused:
        served.window.name_proofs.answer(forged)
    assert refused.value.reason == "bad-signature"


def test_bodies_that_are_no_request(open_window: tuple[Chain, Served]) -> None:
    _, served = open_window
    assert served.post("/v1/names", b"{").status == 400
    assert served.post("/v1/names", b" " * (1 << 18) + b"{}").status == 413
    assert served.post("/v1/names", b"{}", {"Content-Type": "text/plain"}).status == 415
    assert served.get("/v1/names").status == 405


def test_a_tenant_without_a_table_has_no_names(open_window: tuple[Chain, Served]) -> None:
    chain, served = open_window
    reply = served.post("/v1/names", request_for(chain, served, [1], "medicine-1").canonical())
    assert (reply.status, reply.value["error"]) == (404, "no-table")


def test_a_proof_is_made_once_and_one_at_a_time(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, served = open_window
    with chain.client(served) as client:
        position = client.ask(chain.law, QUESTIONS["law"][2]).documents[0].position
        used = chain.law.used(served.publication)
        body = request_for(chain, served, [position]).canonical()
        proofs = NameProofs._proof
        begun, release, calls = threading.Event(), threading.Event(), list[object]()

        def slow(self: NameProofs, *args: Any) -> Any:
            begun.set()
            release.wait(30)
            calls.append(args)
            return proofs(self, *args)

        monkeypatch.setattr(NameProofs, "_proof", slow)
        replies: list[Reply] = []
        thread = threading.Thread(target=lambda: replies.append(served.post("/v1/names", body)))
        thread.start()
        assert begun.wait(30)
        busy = served.post("/v1/names", body)
        assert (busy.status, busy.value["error"], busy.headers["retry-after"]) == (429, "Busy", "1")
        client.ask(chain.law, QUESTIONS["law"][2])  # answers do not wait for the proof
        release.set()
        thread.join()
        assert replies[0].status == 200 and len(calls) == 1
        made = served.window.name_proofs._proofs.copy()
        assert served.post("/v1/names", body).body == replies[0].body
        assert served.window.name_proofs._proofs == made
        assert chain.law.used(served.publication)[0] == used[0] + 1, "only the question used a query"
    metrics = served.get("/metrics").body.decode()
    assert 'rag_audit_http_responses_total{route="/v1/names",status="200"}' in metrics
    assert 'rag_audit_requests_total{outcome="names"}' in metrics


def test_a_service_that_proves_no_names_is_named(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PolicyError, match="no proof of the names") as caught:
        row_names_of("another")
    chain, served = open_window

    def missing(system: str) -> Any:
        raise caught.value

    monkeypatch.setattr(attest_names, "row_names_of", missing)
    with chain.client(served) as client:
        client.ask(chain.law, QUESTIONS["law"][0])
        shutil.rmtree(chain.law.directory / "names", ignore_errors=True)
        with pytest.raises(RequestRefused) as refused:
            client.names(chain.law, client.publication())
    assert refused.value.reason == "no-proof" and "--window" in str(refused.value.hint)
    url = ["--url", served.service.url, "--provider", str(chain.service.key.verifier)]
    run = CliRunner().invoke(main, ["account", "names", str(chain.law.directory), *url])
    assert run.exit_code == 3 and "answers with openings: " in run.output and "\nnot proved: " in run.output
    value = json.loads(
        CliRunner().invoke(main, ["account", "names", str(chain.law.directory), *url, "--json"]).stdout
    )
    assert value["refused"]["error"] == "RequestRefused" and not value["proved"] and value["positions"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_proof_is_stored_before_the_comparison(
    open_window: tuple[Chain, Served], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, asynchronous: bool
) -> None:
    """Two proved names of one document are evidence, which a failed comparison must not prevent."""
    chain, served = open_window
    with chain.client(served) as client:
        client.ask(chain.service.accounts["law-old"], QUESTIONS["law"][0])
        account = Account(copy_of(chain.service.accounts["law-old"].directory, tmp_path / "law"))
        shutil.rmtree(account.directory / "names", ignore_errors=True)

        def unequal(*args: Any, **options: Any) -> Any:
            raise InvalidProof("one document has two names")

        async def names() -> None:
            async with AsyncClient(served.service.url, chain.service.key.verifier) as other:
                await other.names(account, served.publication)

        monkeypatch.setattr(account_module, "check_names", unequal)
        with pytest.raises(InvalidProof, match="one document has two names"):
            if asynchronous:
                asyncio.run(names())
            else:
                client.names(account, served.publication)
    assert account.stored_proof(served.publication, account.passages(served.publication))
    run = CliRunner().invoke(
        main,
        ["account", "names", str(account.directory), "--window", str(served.window.directory / "public")],
    )
    assert run.exit_code == 1 and "two names" in run.output


# -- the command -------------------------------------------------------------------------------------------------


def test_the_command_names_its_result(open_window: tuple[Chain, Served], tmp_path: Path) -> None:
    chain, served = open_window
    with chain.client(served) as client:
        client.ask(chain.law, QUESTIONS["law"][0])
    provider = str(chain.service.key.verifier)
    url = ["--url", served.service.url, "--provider", provider]
    window = ["--window", str(served.window.directory / "public")]
    folder = copy_of(chain.law.directory, tmp_path / "law")

    def run(*options: str, account: Path = folder) -> Any:
        return CliRunner().invoke(main, ["account", "names", str(account), *options])

    shutil.rmtree(folder / "names", ignore_errors=True)
    local = run(*window)
    assert local.exit_code == 3 and "\nnot proved: " in local.output and "not checked: " in local.output
    count = len(chain.law.receipts(served.publication))
    assert f"\nanswers with openings: {count} of {count}\nother windows compared: 0 (none)\n" in local.output
    done = run(*url, "--json")
    assert done.exit_code == 0 and json.loads(done.output)["proved"] is True, done.output
    assert "\nproved: " in run(*window).output
    assert run(*url, "--document-column", "source").exit_code == 2, "the texts have no metadata"
    assert run().exit_code == 2 and run(*window, *url).exit_code == 2
    fresh = chain.service.accounts["law-2"].directory
    none = run(*window, account=fresh)
    assert none.exit_code == 2 and "no passage of this window" in none.output
    path = next((folder / "names").iterdir())
    value = json.loads(path.read_text())
    value["answers"][0]["proof"]["proof"] = "AAAA"
    path.write_bytes(jcs(value))
    assert run(*window).exit_code in (1, 2) and "the proof is refused" in run(*window).output
    mended = run(*url)
    assert (
        mended.exit_code == 0 and "the stored proof was damaged, and the command replaced it" in mended.output
    )
    assert "\nproved: " in run(*window).output
    old = next((folder / "receipts").iterdir())
    old.write_bytes(jcs({**json.loads(old.read_text()), "names": None}))
    if count > 1:
        part = run(*url)
        assert part.exit_code == 3 and f"\nanswers with openings: {count - 1} of {count}\n" in part.output


def copy_of(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return target
