"""A whole service in one process: provider, witnesses, accounts, verifier, with a clock that tests move.

The parties talk through the same texts and files as in production; only the clock and the folder are shared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import jcs
from rag_audit.account.account import Account
from rag_audit.attest.release import Release
from rag_audit.attest.window import Window
from rag_audit.commit.carrying import FIRST, Continuing
from rag_audit.commit.preparing import Terms
from rag_audit.commit.stored import OpenProgress
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merging import merge_signatures
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import parse_note, sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.challenge import Challenge
from rag_audit.models.manifest import manifest_digest
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.records import PreviousWindow, WitnessBeacon
from rag_audit.models.requests import Answer
from rag_audit.models.trust import Groth16Pin, Pins, Require, Trust
from rag_audit.models.trust_template import trust_template
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16.instance import Instance
from rag_audit.proofs.backends.groth16.keys import proving_key
from rag_audit.proofs.backends.groth16.policy import policy_instances
from rag_audit.proofs.backends.scan.release import protocols_digest
from rag_audit.relation.noise import table_digest
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.retrieval.embedders import (
    Embedder,
    get_embedder,
    public_artefacts,
    public_manifest,
    published_constants,
)
from rag_audit.verify.inputs import VerifierOptions
from rag_audit.witness.witness import Witness
from tests.drafting import draft

ORIGIN = "example.org/rag"
START = 1_800_000_000_000
CAPACITY = 8
EMBEDDER = "hashed-words-64"
"""Its circuits are small."""
RELEASE_S = 0.001
"""The least period of eager answers, for which nobody waits here; `test_release.py` is about the real one."""
QUERY_TOKENS = 2
"""Time: a proof of A1 costs by the token, and by the power of two that holds its constraints."""

TEXTS: Mapping[str, Sequence[str]] = {
    "law": [
        "A contract is an agreement between parties that the law enforces.",
        "A tort is a civil wrong that causes someone harm or loss.",
        "Habeas corpus lets a prisoner challenge an unlawful detention before a court.",
        "Copyright protects original works of authorship for a limited time.",
        "Bail is money paid to release an accused person until the trial.",
    ],
    "medicine": [
        "Aspirin reduces fever and relieves mild pain.",
        "Insulin lowers the glucose level in the blood.",
        "A vaccine trains the immune system to recognise a pathogen.",
        "Antibiotics kill bacteria but do not help against viruses.",
    ],
}

QUESTIONS = {
    "law": [
        "Contract law: what is it?",
        "Bail money: how do I get out of jail?",
        "Copyright law: who owns a text?",
    ],
    "medicine": ["What lowers blood sugar?", "What helps against fever?", "Do antibiotics cure the flu?"],
}
"""Of the law's, the words that an embedding takes name what the passages are about: a list has winners."""

STRICT: dict[str, Any] = {
    "max_epsilon": "60",
    "max_delta": "1e-5",
    "min_k_max": 2,
    "max_theta": "0.8",
    "min_tau": 0,
    "max_K_share": "0.25",
    "max_abandoned": 0,
    "max_score_hi": 320,
    "min_score_width": 280,
    "query_embedding": "re-executed",
    "coalition": "not-checked",
    "min_receipts": 1,
    "allow_unsafe_setup": True,
}
DEFAULT_SCORES: dict[str, Any] = {"max_score_hi": 1680, "min_score_width": 1260}
"""In the place of the limits above for the default embedder, whose scores have another range."""
SMALL_POLICY: dict[str, Any] = {
    "n": 3,
    "k_max": 2,
    "eps_acc": "14",
    "accounts_max": 3,
    "gains": (1, 4),
    "lattice": 64,
    "top_k": 2,
}
"""The figures of a small policy, for `draft_policy`."""


class Clock:
    """Milliseconds that only move when told to."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds


@dataclass
class Service:
    """Every party of one origin, in folders of their own below `root`."""

    root: Path
    clock: Clock = field(default_factory=Clock)
    embedder: str = EMBEDDER
    model: Path | None = None
    """the folder of the embedder's files, if it has any"""
    witnesses: dict[str, Witness] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)
    drawing: tuple[str, ...] = ("w1", "w2")
    """the witnesses that make the beacon"""

    def __post_init__(self) -> None:
        self.key = SigningKey.generate(ORIGIN)
        self.verifier_key = SigningKey.generate("verifier.example.org")
        for name in ("w1", "w2"):
            self.witnesses[name] = Witness.init(self.root / name, name, clock=self.clock)
        for tenant in TEXTS:
            for number in (1, 2):
                name = f"{tenant}-{number}"
                self.accounts[name] = Account.create(self.root / "accounts" / name, name, tenant)

    def policy(self, **changes: Any) -> Policy:
        """A small policy that opens ten seconds from now."""
        published = published_constants(self.embedder, self.model)
        values: dict[str, Any] = {
            "window": "w-1",
            "opens_at": self.clock() + 10_000,
            "closes_at": self.clock() + 3_600_000,
            "capacities": dict.fromkeys(TEXTS, CAPACITY),
            "tokens": (QUERY_TOKENS, 512),
            "dimension": published.dimension,
            "table": published.table,
            "score_window": published.score_window,
            "system": "groth16",
        }
        return draft(**{**SMALL_POLICY, **values, **changes})

    def beacon(self) -> WitnessBeacon:
        """A fresh nonce commitment of every witness of the beacon."""
        members = [
            {"name": n, "vkey": str(w.vkey), "commitment": w.nonce_commitment().hex()}
            for n, w in self.witnesses.items()
            if n in self.drawing
        ]
        return WitnessBeacon.parse({"source": "witnesses", "witnesses": members}, field="beacon")

    def commit(
        self,
        name: str = "window",
        *,
        previous: PreviousWindow | None = None,
        documents: Mapping[str, Sequence[str | Passage]] = TEXTS,
        opens_in: int | None = None,
        progress: OpenProgress | None = None,
        witnesses: Sequence[VerifierKey] = (),
        continuing: Continuing = FIRST,
        **changes: Any,
    ) -> Window:
        """Phase A up to the provider's signature.

        :param witnesses: whose cosignatures are waited for; those of the beacon if empty
        """
        policy = self.policy(**changes)
        query, document = policy.tokens.query, policy.tokens.document
        window = Window.open(
            self.root / name,
            key=self.key,
            policy=policy,
            embedder=get_embedder(
                self.embedder, folder=self.model, query_tokens=query, document_tokens=document
            ),
            roster=[a.roster_entry for a in self.accounts.values()],
            documents=documents,
            terms=Terms(ORIGIN, self.beacon(), witnesses, previous, opens_in, continuing),
            clock=self.clock,
            progress=progress,
        )
        window.release = Release(RELEASE_S)
        return window

    def cosign_header(self, window: Window) -> None:
        """The witnesses' cosignatures, and then their nonces."""
        entry = jcs(window.header.dump())
        public = window.directory / "public"
        text = (public / "checkpoint-1.txt").read_text()
        log_key = self.key.verifier
        for witness in self.witnesses.values():
            window.admit([str(witness.cosign_header(text, entry, log_key=log_key))])
        merged = merge_signatures([parse_note((public / "checkpoint-1.txt").read_text())])
        keys = [w.vkey for w in self.witnesses.values()]
        self.clock.advance(1_000)
        reveals = [
            str(w.reveal(merged, entry, log_key=log_key, witnesses=keys, quorum=len(keys)))
            for n, w in self.witnesses.items()
            if n in self.drawing
        ]
        window.admit(reveals)

    def cosign_only(self, window: Window) -> None:
        """The witnesses' cosignatures of a header whose beacon they do not reveal."""
        entry = jcs(window.header.dump())
        text = (window.directory / "public" / "checkpoint-1.txt").read_text()
        for witness in self.witnesses.values():
            window.admit([str(witness.cosign_header(text, entry, log_key=self.key.verifier))])

    def copied(self, root: Path, now: int) -> Service:
        """The same parties over an earlier copy of this service's folder, at the time of the copy."""
        result = Service.__new__(Service)
        result.root, result.clock = root, Clock(now)
        result.embedder, result.model = self.embedder, self.model
        result.key, result.verifier_key = self.key, self.verifier_key
        result.witnesses = {n: Witness(root / n, clock=result.clock) for n in self.witnesses}
        result.accounts = {n: Account(root / "accounts" / n) for n in self.accounts}
        return result

    def open(self, name: str = "window", **changes: Any) -> Window:
        """An active window, its opening time reached."""
        window = self.commit(name, **changes)
        self.cosign_header(window)
        self.clock.now = window.header.opens_at
        return window

    def ask(self, window: Window, account: str, text: str, *, eager: bool = False) -> Answer:
        """One query from text to checked answer, in JSON over the wire."""
        self.clock.advance(7)
        publication = Publication.load(window.directory / "public")

        def send(request: Any) -> Any:
            return json.loads(window.handle(json.loads(request.canonical()), eager=eager).canonical())

        tokens = window.policy.tokens
        own = None
        if self.model is not None:
            own = account_embedder(self.embedder, self.model, tokens.query, tokens.document)
        return self.accounts[account].ask(publication, text, self.key.verifier, send, embedder=own)

    def finish(self, window: Window, *, abandoned: bool = False) -> None:
        """Close, and let the witnesses cosign the end."""
        self.clock.advance(7)
        text = window.close(abandoned=abandoned)
        file = WindowFile.load(window.directory / "public")
        entries = [jcs(e) for e in file.entries]
        tree = HashTree(leaf_hash(e) for e in entries)
        for witness in self.witnesses.values():
            last = witness.last(window.header.log)
            assert last is not None
            note = witness.cosign(
                text,
                log_key=self.key.verifier,
                consistency=tree.consistency_path(last[0], tree.size),
                trailer=(entries[-1], tree.inclusion_path(tree.size - 1, tree.size)),
                entries=entries,
            )
            window.admit([str(note)])

    def challenge(self, window: Window, sample: int | None = None) -> str:
        """A signed challenge over the final checkpoint."""
        file = WindowFile.load(window.directory / "public")
        head = Checkpoint.parse(parse_note(file.final_checkpoint).text)
        drawn = Challenge.new(self.verifier_key, ORIGIN, window.header.window, head.size, head.root, sample)
        return str(sign_note(drawn.text(), self.verifier_key))

    def receipts(self, window: Window, folder: Path, *, disclose: bool = True) -> Path:
        """All accounts' countersigned receipts."""
        publication = Publication.load(window.directory / "public")
        for account in self.accounts.values():
            account.export_receipts(publication, folder, disclose=disclose)
        return folder

    def circuits(self, policy: Policy, *, batch: int | None = None) -> list[Instance]:
        """The circuits of a policy of this service."""
        published = published_constants(self.embedder, self.model)
        return policy_instances(policy, published.dimension, published.table, batch=batch)

    def trust_text(
        self,
        policy: Policy,
        *,
        independent: Sequence[str] = ("law-1", "medicine-1"),
        batch: int | None = None,
        **require: Any,
    ) -> str:
        """The verifier's own trust file.

        :param batch: pins keys of proofs of so many records too
        """
        pins = [
            Groth16Pin(circuit=i.digest(), vk=proving_key(i).vk_digest, setup="unsafe")
            for i in self.circuits(policy, batch=batch)
        ]
        return self.trusting(pins, Require(**{**STRICT, **require}), independent)

    def trusting(self, pins: Sequence[Groth16Pin], require: Require, independent: Sequence[str]) -> str:
        """A trust file with this service's parties, which pins circuits' keys and has these requirements."""
        if self.model is None:
            artefacts = public_artefacts(self.embedder)
            manifest = manifest_digest(public_manifest(self.embedder))
        else:
            own = get_embedder(self.embedder, folder=self.model).manifest()
            artefacts, manifest = dict(own["artefacts"]), manifest_digest(own)
        trust = {
            "version": 1,
            "quorum": 2,
            "provider": {"origin": ORIGIN, "vkey": str(self.key.verifier)},
            "witness": [{"name": n, "vkey": str(w.vkey)} for n, w in self.witnesses.items()],
            "beacon": {"witnesses": [*self.drawing]},
            "verifier": [{"name": "verifier", "vkey": str(self.verifier_key.verifier)}],
            "account": [{"id": n, "key": self.accounts[n].roster_entry.key} for n in independent],
            "pins": Pins(
                noise_table=table_digest(),
                groth16=[*pins],
                embedder=artefacts,
                manifest=manifest,
                scan=protocols_digest(),
            ),
            "require": require,
        }
        return trust_template(Trust.parse(trust, field="trust.toml"))

    def trust(self, policy: Policy, **options: Any) -> Trust:
        """`trust_text`, read."""
        return Trust.from_toml(self.trust_text(policy, **options).encode(), source="trust.toml")


@dataclass
class Finished:
    """A closed, proved and cosigned window with what its verifier holds. Tests change copies of its parts."""

    service: Service
    window: Path
    file: WindowFile
    policy: Policy
    receipts: Path
    batch: int | None = None
    """how many records were proved at once"""

    def verify(
        self, file: WindowFile | None = None, *, receipts: Sequence[Path] | None = None, **options: Any
    ) -> ReportedVerdict:
        """Verify the window, or a changed copy."""
        trust = options.pop("trust", None) or self.service.trust(
            self.policy, batch=self.batch, **options.pop("require", {})
        )
        requested = {f.name: options.pop(f.name) for f in fields(VerifierOptions) if f.name in options}
        return verify_window(
            file or self.file,
            trust=trust,
            options=VerifierOptions(**requested),
            receipts=[self.receipts] if receipts is None else receipts,
            **options,
        )

    def changed(self, **parts: Any) -> WindowFile:
        """A copy of the file with parts replaced."""
        return WindowFile.parse({**self.value(), **parts}, field="window.json")

    def value(self) -> dict[str, Any]:
        """The file as a fresh JSON value."""
        value: dict[str, Any] = json.loads(jcs(self.file.dump()))
        return value


@lru_cache(maxsize=2)
def account_embedder(name: str, model: Path, query: int, document: int) -> Embedder:
    """An account's embedder, loaded once."""
    return get_embedder(name, folder=model, query_tokens=query, document_tokens=document)


def finished_window(
    root: Path,
    *,
    rounds: int = 3,
    batch: int | None = None,
    drawing: tuple[str, ...] = ("w1", "w2"),
    **changes: Any,
) -> Finished:
    """Six queries over two tenants, the first of each proved eagerly, all others after close.

    :param rounds: how many queries each tenant gets
    :param batch: prove so many of them at once
    :param drawing: the witnesses that make the beacon
    :param changes: of the policy
    """
    service = Service(root, drawing=drawing)
    keys = [w.vkey for w in service.witnesses.values()]
    window = service.open(witnesses=keys, **changes)
    for number in range(rounds):
        for tenant in TEXTS:
            service.ask(window, f"{tenant}-{1 + number % 2}", QUESTIONS[tenant][number], eager=number == 0)
    service.finish(window)
    window.answer_challenge(service.challenge(window), batch=batch or 1)
    folder = service.receipts(window, root / "verifier" / "receipts")
    window.shut()
    file = WindowFile.load(window.directory / "public")
    return Finished(service, window.directory, file, window.policy, folder, batch)
