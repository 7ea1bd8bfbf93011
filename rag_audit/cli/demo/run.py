"""The demo: one window from commit to verdict, with every party in a process and a folder of its own.

Each step runs a `rag-audit` command that a person could type. The verifier's process gets only window.json, the
receipts and its own trust.toml.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rag_audit._internal.canonical import jcs, read_json
from rag_audit._internal.clock import now_ms
from rag_audit._internal.errors import ExitCode, SetupError
from rag_audit.cli.demo.corpus import Question
from rag_audit.cli.demo.embedder import Choice, choose, vectors_file, with_vectors
from rag_audit.cli.demo.folder import WITNESSES, check_folder, empty_folder
from rag_audit.cli.demo.own import turns
from rag_audit.cli.demo.prepare import DOCUMENT, read_texts, write_texts
from rag_audit.cli.demo.recall import table
from rag_audit.cli.demo.stage import Demo, say
from rag_audit.commit.draft import (
    EstimatorParameters,
    NoiseParameters,
    Period,
    PrivacyTarget,
    Tenants,
    draft_policy,
)
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.none import Exact
from rag_audit.mechanisms.pooled_listing import PooledListing, PoolRules
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.policy import Policy
from rag_audit.models.records import BeaconWitness, QueryRecord, parse_entry
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.description import default_system
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.engine import smallest_capacity
from rag_audit.retrieval.texts import DocumentPart

CERTIFIED = 16
"""The capacity of the coalition proof, in records."""
ACCOUNTS_MAX, QUERIES_AN_ACCOUNT = 4, 15
"""The policy's accounts_max and n: 60 questions of a tenant in a window."""
LASTS_MS = 3_600_000


def table_shape(texts: Sequence[DocumentPart]) -> TableShape:
    """A document table with room for the documents of the texts: powers of two, since both numbers are public."""
    positions = Counter(text.document for text in texts)
    rows = min(smallest_capacity(len(positions)), smallest_capacity(len(texts)))
    return TableShape(rows, 1 << (max(positions.values()) - 1).bit_length(), fresh_rows=None)


MechanismOf = Callable[[Sequence[DocumentPart], Choice], Mechanism]
"""A mechanism for a tenant's texts and their embedder."""


def _pooled_listing(texts: Sequence[DocumentPart], choice: Choice) -> Mechanism:
    rules = PoolRules(0, choice.threshold, "0.1")
    return PooledListing(keep=probability_over_range("0.95", "keep"), rules=rules).by_document(
        table_shape(texts)
    )


def _sampling(texts: Sequence[DocumentPart], _: Choice) -> Mechanism:
    return Sampling(keep=probability_over_range("0.95", "keep")).by_document(table_shape(texts))


MECHANISMS: tuple[MechanismOf, ...] = (
    _pooled_listing,
    _sampling,
    lambda texts, _: Noise().by_document(table_shape(texts)),
    lambda *_: Exact(),
)
"""Each mechanism. The window has the first mechanism, whose epsilon is finite."""


def demo_policy(
    tenants: Mapping[str, Sequence[DocumentPart]], mechanism: MechanismOf, choice: Choice
) -> Policy:
    """A policy in which all tenants have one mechanism. Its dates are drafts: `provider open --opens-in` dates the
    window once everything is committed."""
    now = now_ms()
    mechanisms = {name: mechanism(texts, choice) for name, texts in tenants.items()}
    size = max(own.positions_per_document for own in mechanisms.values())
    for name, own in mechanisms.items():
        if own.noised and own.table is not None:  # tenants with noise have one size of documents
            mechanisms[name] = own.by_document(replace(own.table, positions_per_document=size)) or own
    return draft_policy(
        Period("demo", now, now + LASTS_MS),
        Tenants(
            capacities={name: smallest_capacity(len(texts)) for name, texts in tenants.items()},
            accounts_max=ACCOUNTS_MAX,
            mechanisms=mechanisms,
        ),
        PrivacyTarget(n=QUERIES_AN_ACCOUNT, k_max=2, eps_acc="20"),
        # With these gains and this lattice noise finds some passages of a small index; the table gives its epsilon.
        noise=NoiseParameters((1, 4), 64, choice.score_window),
        embedding=choice.embedding,
        estimator=EstimatorParameters(coalition_proof=(default_system(), CERTIFIED)),
    )


ORIGIN = "rag-audit.demo/docstrings"
ACCOUNTS_A_TENANT = 2
QUERIES = 16
EAGER = 1
PAGE = "report.html"
"""The verdict as a page, in the verifier's folder."""
COSIGNED_IN = 5
"""Time between the dating of a window and its opening, in durations of the slowest small command so far."""
MIN_LEAD_S = 5


def run_demo(
    directory: Path,
    *,
    docs: Path | None,
    keep: bool,
    skip_unreadable: bool = False,
    embedder_name: str | None = None,
) -> int:
    """Run the demo, and return the verifier's exit code, or 1 if the tampered window did not fail.

    :param embedder_name: the embedder that a person named (`choose`)
    """
    check_folder(directory, docs, keep=keep)
    choice = choose(embedder_name, own_texts=docs is not None)
    embedder = choice.load()
    demo = Demo(directory)
    with demo.phase("corpus"):
        for line in choice.lines(own_texts=docs is not None):
            say(line)
        tenants, questions = read_texts(docs, embedder, skip_unreadable=skip_unreadable)
        # An earlier demo's folder stays until everything that this demo reads is there and was read.
        empty_folder(directory)
        write_texts(demo, tenants)
    vectors = vectors_file(demo, choice, docs)
    with demo.phase("keys of all parties"):
        policy = _parties(demo, tenants, choice)
    with demo.phase("commit"):
        _open(demo, policy, choice, vectors)
    with demo.phase(f"attest: up to {QUERIES} queries; the answer of the first query leaves after its proof"):
        found = _query(demo, policy, embedder, tenants, questions)
    with demo.phase("close, challenge, prove"):
        _close(demo)
    with demo.phase("verify, in a process with window.json, the receipts and trust.toml"):
        _receipts(demo)
        code = _verify(demo)
    with demo.phase("the same window with one byte of one record changed"):
        caught = _tamper(demo)
    with with_vectors(embedder, vectors) as cached:
        _summary(demo, choice, cached, tenants, questions, found)
    say(f"\n{demo.verifier / PAGE}")
    say("This page explains the proved and the unproved claims about the window. Open it in any browser.")
    say(f"rag-audit verify {demo.verifier / 'window.json'} --trust {demo.verifier / 'trust.toml'}"
        f" --receipts {demo.verifier / 'receipts'} prints the full verdict.")  # fmt: skip
    return code if caught else int(ExitCode.FAIL)


def _parties(demo: Demo, tenants: Mapping[str, list[DocumentPart]], choice: Choice) -> Policy:
    demo.verifier.mkdir()
    demo.run("provider keygen", demo.provider / "provider.skey", name=ORIGIN)
    demo.run("provider keygen", demo.verifier / "verifier.skey", name="verifier.demo")
    for name in WITNESSES:
        demo.run("witness init", demo.folder / name, name=f"{name}.demo")
    for tenant in tenants:
        for number in range(1, ACCOUNTS_A_TENANT + 1):
            account = f"{tenant}-{number}"
            folder = demo.folder / "accounts" / account
            line = demo.run("account new", folder, id=account, tenant=tenant)
            folder.with_suffix(".json").write_text(line.stdout)
            demo.run("account add", demo.provider / "roster.json", folder.with_suffix(".json"))
    policy = demo_policy(tenants, MECHANISMS[0], choice)
    (demo.provider / "policy.json").write_bytes(jcs(policy.dump()))
    return policy


def _open(demo: Demo, policy: Policy, choice: Choice, vectors: Path | None) -> None:
    nonces = [demo.provider / f"{name}.nonce.json" for name in WITNESSES]
    for name, path in zip(WITNESSES, nonces, strict=True):
        path.write_text(demo.run("witness nonce", demo.folder / name).stdout)
    for party in [demo.verifier, *(demo.folder / name for name in WITNESSES)]:
        _trust(demo, party, policy, choice)
    # Between the dating of the window and its opening there are only two cosignatures, at this machine's current speed.
    lead = MIN_LEAD_S + math.ceil(COSIGNED_IN * demo.slowest)
    demo.run(
        "provider open",
        demo.window,
        policy=demo.provider / "policy.json",
        roster=demo.provider / "roster.json",
        docs=demo.provider / "docs",
        document_column=DOCUMENT,
        key=demo.provider / "provider.skey",
        embedder=choice.name,
        opens_in=f"{lead}s",
        witness=nonces,
        vectors=[] if vectors is None else [vectors],
    )
    for step in ("cosign", "beacon"):
        _witnessed(demo, step)
    opened = json.loads(demo.run("provider open", demo.window, json=True).stdout)
    say(
        f"window {opened['header'][:16]}.. is {opened['status']}: cosigned by {len(WITNESSES)} witnesses, beacon drawn"
    )
    wait = max(0.0, (opened["opens_at"] - now_ms()) / 1000)
    if wait:
        say(f"it opens in {wait:.0f} s")
        time.sleep(wait + 0.01)
    started = time.monotonic()
    precomputed = json.loads(demo.run("provider prove", demo.window, precompute="1", json=True).stdout)[
        "created"
    ]
    if precomputed:
        say(f"{precomputed} proofs precomputed before the first query, in {time.monotonic() - started:.1f} s")


def _witnessed(demo: Demo, step: str) -> None:
    """Let each witness cosign the window, or reveal its nonce."""
    for name in WITNESSES:
        folder = demo.folder / name
        demo.run(f"witness {step}", folder, demo.public, trust=folder / "trust.toml")


def _trust(demo: Demo, party: Path, policy: Policy, choice: Choice) -> None:
    """Write each party's own trust file from values that it was told directly, not from the window."""
    nonces = [
        BeaconWitness.parse(read_json(demo.provider / f"{n}.nonce.json", max_bytes=65_536), field=n)
        for n in WITNESSES
    ]
    requirements = {
        "mechanisms": "pooled-listing",
        "max_epsilon": "10",
        "max_exclusion_factor": "25",
        "max_delta": "1e-5",
        "min_k_max": "2",
        "max_theta": "0.8",
        "min_tau": "0",
        "max_K_share": "0.1",
        "query_embedding": "proved" if all("embed" in t.circuits for t in policy.tenants) else "re-executed",
        "document_embedding": "declared",
        "coalition": "checked",
        "min_receipts": "2",
    }
    demo.run(
        "verifier trust new",
        party / "trust.toml",
        origin=ORIGIN,
        provider=demo.provider / "provider.skey.pub",
        witness=[nonce.vkey for nonce in nonces],
        verifier=demo.verifier / "verifier.skey.pub",
        account=sorted((demo.folder / "accounts").glob("*-1.json")),
        embedder=choice.name,
        require=[f"{key}={value}" for key, value in requirements.items()],
    )


def _query(
    demo: Demo,
    policy: Policy,
    embedder: Embedder,
    tenants: Mapping[str, Sequence[DocumentPart]],
    questions: list[Question],
) -> tuple[int, int]:
    """Let the accounts ask, and return the number of answers with the passage of the question, and of all answers."""
    accounts = sorted((f"{t}-{n}", t) for t in tenants for n in range(1, ACCOUNTS_A_TENANT + 1))
    p, q = policy.estimator.theta
    plan = turns(
        accounts, questions, embedder, queries=QUERIES, each=policy.n, k_max=policy.k_max, theta=(p, q)
    )
    texts = {(name, text.title): text.text for name, own in tenants.items() for text in own}
    found = answers = 0
    address = demo.provider / "socket"
    socket = os.path.relpath(address)
    command = [sys.executable, "-m", "rag_audit", "provider", "serve", str(demo.window)]
    service = subprocess.Popen(
        [*command, "--socket", socket, "--eager", str(EAGER)], stderr=subprocess.DEVNULL
    )
    try:
        # There is no time limit: the socket appears, or the service has ended.
        while not address.exists():
            if service.poll() is not None:
                raise SetupError("the provider's service did not start", field=str(demo.window),
                                 actual=f"exit code {service.returncode}")  # fmt: skip
            time.sleep(0.05)
        for number, (account, _, question) in enumerate(plan):
            started = time.monotonic()
            done = demo.run(
                "account query",
                question.question,
                account=demo.folder / "accounts" / account,
                window=demo.public,
                provider=demo.provider / "provider.skey.pub",
                socket=socket,
                json=True,
            )
            documents = json.loads(done.stdout)["documents"]
            answers += 1
            own = texts[question.tenant, question.answer] in {one["text"] for one in documents}
            found += own
            waited = f"{time.monotonic() - started:.1f} s" + (", proof included" if number < EAGER else "")
            count = "1 text" if len(documents) == 1 else f"{len(documents)} texts"
            told = f"{count}, {'with' if own else 'without'} the answer"
            say(f"{account:16} {question.question[:60]:60} {told:27} {waited}")
    finally:
        service.terminate()
        service.wait()
    return found, answers


def _close(demo: Demo) -> None:
    demo.run("provider close", demo.window)
    _witnessed(demo, "cosign")
    demo.run("provider close", demo.window)
    note = demo.verifier / "challenge.txt"
    demo.run(
        "verifier challenge",
        demo.public / "window.json",
        key=demo.verifier / "verifier.skey",
        trust=demo.verifier / "trust.toml",
        out=note,
    )
    started = time.monotonic()
    done = demo.run("provider prove", demo.window, challenge=note, workers="2", json=True)
    count = json.loads(done.stdout)["created"]
    say(f"{count} proofs of the challenged records made in {time.monotonic() - started:.1f} s")


def _receipts(demo: Demo) -> None:
    for account in sorted(p for p in (demo.folder / "accounts").iterdir() if p.is_dir()):
        demo.run(
            "account receipt export",
            account=account,
            window=demo.public,
            out=demo.verifier / "receipts",
            disclose=True,
        )
    shutil.copy(demo.public / "window.json", demo.verifier / "window.json")


def _verify(demo: Demo) -> int:
    done = _judged(
        demo, demo.verifier / "window.json", brief=True, format="html", output=demo.verifier / PAGE
    )
    say(done.stdout.rstrip())
    return done.returncode


def _judged(demo: Demo, window: Path, **options: str | Path | bool) -> subprocess.CompletedProcess[str]:
    """Run `verify` with the verifier's trust file and receipts, and accept any verdict."""
    trust, receipts = demo.verifier / "trust.toml", demo.verifier / "receipts"
    return demo.run("verify", window, trust=trust, receipts=receipts, expect=(0, 1, 2, 3), **options)


def _tamper(demo: Demo) -> bool:
    file = WindowFile.load(demo.verifier / "window.json")
    entries = [parse_entry(value, field="entries") for value in file.entries]
    record = next(entry for entry in entries if isinstance(entry, QueryRecord))
    digit = "0" if record.hans[0] != "0" else "1"
    entries[record.seq] = record.model_copy(update={"hans": digit + record.hans[1:]})
    path = demo.verifier / "tampered.json"
    save_window(file.model_copy(update={"entries": [entry.dump() for entry in entries]}), path)
    done = _judged(demo, path, brief=True)
    say(done.stdout.splitlines()[0])
    return done.returncode == int(ExitCode.FAIL)


def _summary(
    demo: Demo,
    choice: Choice,
    embedder: Embedder,
    tenants: Mapping[str, list[DocumentPart]],
    questions: Sequence[Question],
    found: tuple[int, int],
) -> None:
    say("\n== the same questions under every mechanism")
    say("(each figure is for a document; with noise, the losses of all positions of a document add up)")
    policies = [demo_policy(tenants, mechanism, choice) for mechanism in MECHANISMS]
    for line in table(policies, embedder, tenants, questions):
        say(line)
    say(
        f"in the window that was proved, {found[0]} of {found[1]} answers contain the passage of the question"
    )
    say("\n== sizes and times")
    for name, path in (
        ("window.json", demo.verifier / "window.json"),
        ("trust.toml", demo.verifier / "trust.toml"),
    ):
        say(f"{name:24} {path.stat().st_size:>9} bytes")
    receipts = sorted((demo.verifier / "receipts").glob("*.json"))
    say(f"{'a receipt':24} {receipts[0].stat().st_size:>9} bytes")
    proofs = sorted((demo.window / "proofs").glob("*.json"))
    say(f"{'a proof':24} {proofs[0].stat().st_size:>9} bytes")
    for name, seconds in demo.seconds.items():
        say(f"{name[:72]:72} {seconds:6.1f} s")
