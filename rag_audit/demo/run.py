"""The demo: one window from commit to verdict, every party in a process and a folder of its own.

Each step is a command that a person could type (they are printed with --verbose terminals in mind: `$ rag-audit ..`).
The verifier's process gets window.json, the receipts and its own trust.toml, and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_audit.canonical import jcs, read_json
from rag_audit.demo.corpus import SMALL_TENANTS, Question, collect, load_questions, small_tenants
from rag_audit.embedders import Embedder, get_embedder
from rag_audit.engine import build_index, draw_noise, select
from rag_audit.errors import ExitCode, SetupError, StoreError
from rag_audit.policy import Policy, SystemName, draft_policy
from rag_audit.relation.field import random_element
from rag_audit.texts import Document, load_directory
from rag_audit.window import now_ms

ORIGIN = "rag-audit.demo/docstrings"
WHOLE = "stdlib"
"""the tenant that holds all docstrings, proved by the scan argument"""
CAPACITIES = {"scan": 4096, "groth16": 64}
WITNESSES = ("witness-a", "witness-b")
ACCOUNTS_A_TENANT = 2
QUERIES = 6
EAGER = 1
CERTIFIED = 8
"""records that the coalition certificate's circuit has places for"""
QUERY_TOKENS = 24
"""where questions are cut: a proof of the embedding costs by the token"""
OPENS_IN_MS = 12_000
"""and twelve times what reading and embedding the corpus took here: committing takes longer on a busy machine"""
LASTS_MS = 3_600_000


@dataclass
class Demo:
    """Folders of the parties, timings, and how their commands are run."""

    root: Path
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def provider(self) -> Path:
        """The provider's own folder."""
        return self.root / "provider"

    @property
    def window(self) -> Path:
        """The provider's window."""
        return self.provider / "window"

    @property
    def public(self) -> Path:
        """What the provider publishes."""
        return self.window / "public"

    @property
    def verifier(self) -> Path:
        """The verifier's own folder."""
        return self.root / "verifier"

    def run(self, *arguments: str | Path, expect: Sequence[int] = (0,)) -> subprocess.CompletedProcess[str]:
        """One command in a process of its own; its standard error is shown."""
        command = [sys.executable, "-m", "rag_audit", *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode not in expect:
            raise SetupError(
                "a step of the demo failed",
                field=f"rag-audit {' '.join(map(str, arguments))}",
                expected=f"exit code {expect[0]}",
                found=f"{done.returncode}: {done.stdout[-2000:]}",
            )
        return done

    @contextmanager
    def phase(self, name: str) -> Any:
        """Announce and time a phase."""
        say(f"\n== {name}")
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started


def say(text: str = "") -> None:
    """To the person watching."""
    print(text, flush=True)


def run_demo(directory: Path, *, docs: Path | None, keep: bool) -> int:
    """Run it; the exit code is the verifier's, or 1 if the tampered window was not failed."""
    if directory.exists():
        if keep or not (directory / ".rag-audit-demo").exists():
            raise StoreError("folder exists", field=str(directory), hint="remove it, or choose another --dir")
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    (directory / ".rag-audit-demo").touch()
    demo = Demo(directory)
    embedder = get_embedder(query_tokens=QUERY_TOKENS)
    with demo.phase("corpus"):
        tenants, questions = _corpus(demo, docs, embedder)
    with demo.phase("keys, circuits and proving keys (cached after the first run)"):
        policy = _parties(demo, tenants)
    with demo.phase("commit"):
        _open(demo, policy)
    with demo.phase(f"attest: {QUERIES} queries, the first proved before its answer leaves"):
        _query(demo, questions)
    with demo.phase("close, challenge, prove"):
        _close(demo)
    with demo.phase("verify, in a process that gets window.json, the receipts and trust.toml"):
        _receipts(demo)
        code = _verify(demo)
    with demo.phase("the same window with one byte of one record changed"):
        caught = _tamper(demo)
    _summary(demo, policy, embedder, tenants, questions)
    return code if caught else int(ExitCode.FAIL)


def _corpus(
    demo: Demo, docs: Path | None, embedder: Embedder
) -> tuple[dict[str, list[Document]], list[Question]]:
    if docs is None:
        everything, questions = collect(), load_questions()
        small, texts = next(iter(small_tenants(CAPACITIES["groth16"]).items()))
        tenants = {WHOLE: everything, small: texts}
        _whole_corpus(everything, questions, embedder)
        questions = [q for q in questions if q.tenant == small] + [
            replace(q, tenant=WHOLE) for q in questions
        ]
        say(
            f"tenants: {WHOLE}, all of them, proved by the scan argument; {small}, {len(texts)} of them, by Groth16"
        )
    else:
        tenants = {name: texts[: CAPACITIES["scan"]] for name, texts in load_directory(docs).items()}
        questions = [
            Question(d.text[:200], name, d.title) for name, texts in tenants.items() for d in texts[:8]
        ]
        say(f"your own texts: {', '.join(f'{n} ({len(t)})' for n, t in tenants.items())}")
    for name, texts in tenants.items():
        folder = demo.provider / "docs"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.jsonl").write_bytes(b"".join(jcs({"text": d.text}) + b"\n" for d in texts))
    return tenants, questions


def _whole_corpus(everything: list[Document], questions: list[Question], embedder: Embedder) -> None:
    rows = embedder.embed_documents([d.text for d in everything])
    hits = 0
    for question in questions:
        scores = rows.astype(np.int32) @ embedder.embed_query(question.question).astype(np.int32)
        best = np.argsort(-scores, kind="stable")[:5]
        hits += any(everything[i].title == question.answer for i in best)
    say(f"recall@5 over all {len(everything)} docstrings without noise: {hits}/{len(questions)}")


def _parties(demo: Demo, tenants: Mapping[str, list[Document]]) -> Policy:
    demo.verifier.mkdir()
    demo.run("keygen", demo.provider / "provider.skey", "--name", ORIGIN)
    demo.run("keygen", demo.verifier / "verifier.skey", "--name", "verifier.demo")
    for name in WITNESSES:
        demo.run("witness", "init", demo.root / name, "--name", f"{name}.demo")
    for tenant in tenants:
        for number in range(1, ACCOUNTS_A_TENANT + 1):
            account = f"{tenant}-{number}"
            line = demo.run(
                "account", "new", demo.root / "accounts" / account, "--id", account, "--tenant", tenant
            )
            (demo.root / "accounts" / f"{account}.json").write_text(line.stdout)
            demo.run(
                "account", "add", demo.provider / "roster.json", demo.root / "accounts" / f"{account}.json"
            )
    policy = _policy(demo, tenants)
    path = demo.provider / "policy.json"
    path.write_bytes(jcs(policy.dump()))
    keys = demo.run("setup", "new", path, "--json").stdout
    (demo.root / "setup.json").write_text(keys)
    return policy


def _policy(demo: Demo, tenants: Iterable[str]) -> Policy:
    now = now_ms()
    systems: dict[str, SystemName] = {t: "groth16" if t in SMALL_TENANTS else "scan" for t in tenants}
    # Gains and lattice where some questions still find their passage: the figures say what that costs in epsilon.
    return draft_policy(
        window="demo",
        opens_at=now + OPENS_IN_MS + round(12_000 * demo.seconds["corpus"]),
        closes_at=now + LASTS_MS,
        capacities={tenant: CAPACITIES[system] for tenant, system in systems.items()},
        n=4,
        k_max=2,
        eps_acc="14",
        accounts_max=4,
        gains=(1, 4),
        lattice=64,
        tokens=(QUERY_TOKENS, 512),
        system=systems,
        certificate=("groth16", CERTIFIED),
    )


def _open(demo: Demo, policy: Policy) -> None:
    lines = []
    for name in WITNESSES:
        path = demo.provider / f"{name}.nonce.json"
        path.write_text(demo.run("witness", "nonce", demo.root / name).stdout)
        lines += ["--witness", str(path)]
    # Made again, because making keys may have taken minutes.
    policy = _policy(demo, [t.tenant for t in policy.tenants])
    (demo.provider / "policy.json").write_bytes(jcs(policy.dump()))
    for party in [demo.verifier, *(demo.root / name for name in WITNESSES)]:
        _trust(demo, party, policy)
    demo.run(
        "open",
        demo.window,
        "--policy",
        demo.provider / "policy.json",
        "--roster",
        demo.provider / "roster.json",
        "--docs",
        demo.provider / "docs",
        "--key",
        demo.provider / "provider.skey",
        *lines,
    )
    for step in ("cosign", "beacon"):
        for name in WITNESSES:
            demo.run(
                "witness", step, demo.root / name, demo.public, "--trust", demo.root / name / "trust.toml"
            )
    opened = json.loads(demo.run("open", demo.window, "--json").stdout)
    say(
        f"window {opened['opening'][:16]}.. is {opened['status']}: cosigned by {len(WITNESSES)} witnesses, beacon drawn"
    )
    wait = max(0.0, (policy.opens_at - now_ms()) / 1000)
    if wait:
        say(f"it opens in {wait:.0f} s")
        time.sleep(wait + 0.01)
    started = time.monotonic()
    made = json.loads(demo.run("prove", demo.window, "--ahead", "--json").stdout)["made"]
    say(f"{made} noise certificates made before any query, in {time.monotonic() - started:.1f} s")


def _trust(demo: Demo, party: Path, policy: Policy) -> None:
    """Each party writes its own trust file from what it was told directly, not from the window."""
    witnesses = [
        w
        for n in WITNESSES
        for w in ("--witness", read_json(demo.provider / f"{n}.nonce.json", max_bytes=65_536)["vkey"])
    ]
    accounts = [a for p in sorted((demo.root / "accounts").glob("*-1.json")) for a in ("--account", str(p))]
    requirements = {
        "max_epsilon": "50",
        "max_delta": "1e-5",
        "min_k_max": "2",
        "max_theta": "0.8",
        "min_tau": "0",
        "max_K_share": "0.1",
        "a1": "proved" if all("embed" in t.circuits for t in policy.tenants) else "re-executed",
        "d1": "declared",
        "coalition": "checked",
        "min_receipts": "2",
        "allow_unsafe_setup": "true",
    }
    require = [r for key, value in requirements.items() for r in ("--require", f"{key}={value}")]
    demo.run(
        "trust",
        "new",
        party / "trust.toml",
        "--origin",
        ORIGIN,
        "--provider",
        demo.provider / "provider.skey.pub",
        *witnesses,
        "--verifier",
        demo.verifier / "verifier.skey.pub",
        *accounts,
        "--setup",
        demo.root / "setup.json",
        *require,
    )


def _query(demo: Demo, questions: list[Question]) -> None:
    accounts = sorted(p.name for p in (demo.root / "accounts").iterdir() if p.is_dir())
    address = demo.provider / "socket"
    service = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "rag_audit",
            "serve",
            str(demo.window),
            "--socket",
            os.path.relpath(address),
            "--eager",
            str(EAGER),
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not address.exists():
            if service.poll() is not None or time.monotonic() > deadline:
                raise SetupError("the provider's service did not start", field=str(demo.window))
            time.sleep(0.05)
        for number in range(QUERIES):
            account = accounts[number % len(accounts)]
            tenant = account.rsplit("-", 1)[0]
            own = [q for q in questions if q.tenant == tenant]
            question = own[number // len(accounts) * ACCOUNTS_A_TENANT + int(account[-1]) - 1]
            started = time.monotonic()
            done = demo.run(
                "query",
                question.question,
                "--account",
                demo.root / "accounts" / account,
                "--window",
                demo.public,
                "--provider",
                demo.provider / "provider.skey.pub",
                "--socket",
                os.path.relpath(address),
                "--json",
            )
            documents = json.loads(done.stdout)["documents"]
            waited = f"{time.monotonic() - started:.1f} s" + (", proof included" if number < EAGER else "")
            say(f"{account:16} {question.question[:60]:60} {len(documents)} documents  {waited}")
    finally:
        service.terminate()
        service.wait()


def _close(demo: Demo) -> None:
    demo.run("close", demo.window)
    for name in WITNESSES:
        demo.run(
            "witness", "cosign", demo.root / name, demo.public, "--trust", demo.root / name / "trust.toml"
        )
    demo.run("close", demo.window)
    note = demo.verifier / "challenge.txt"
    demo.run(
        "challenge",
        demo.public / "window.json",
        "--key",
        demo.verifier / "verifier.skey",
        "--trust",
        demo.verifier / "trust.toml",
        "--out",
        note,
    )
    started = time.monotonic()
    made = json.loads(demo.run("prove", demo.window, "--challenge", note, "--workers", "2", "--json").stdout)[
        "made"
    ]
    say(f"{made} proofs of the challenged records made in {time.monotonic() - started:.1f} s")


def _receipts(demo: Demo) -> None:
    for account in sorted(p for p in (demo.root / "accounts").iterdir() if p.is_dir()):
        demo.run(
            "receipt",
            "export",
            "--account",
            account,
            "--window",
            demo.public,
            "--out",
            demo.verifier / "receipts",
            "--disclose",
        )
    shutil.copy(demo.public / "window.json", demo.verifier / "window.json")


def _verify(demo: Demo) -> int:
    done = demo.run(
        "verify",
        demo.verifier / "window.json",
        "--trust",
        demo.verifier / "trust.toml",
        "--receipts",
        demo.verifier / "receipts",
        expect=(0, 1, 2, 3),
    )
    say(done.stdout.rstrip())
    return done.returncode


def _tamper(demo: Demo) -> bool:
    value = read_json(demo.verifier / "window.json", max_bytes=1 << 28)
    record = next(e for e in value["entries"] if e["type"] == "query")
    digit = record["hans"][0]
    record["hans"] = ("0" if digit != "0" else "1") + record["hans"][1:]
    path = demo.verifier / "tampered.json"
    path.write_bytes(jcs(value))
    done = demo.run(
        "verify",
        path,
        "--trust",
        demo.verifier / "trust.toml",
        "--receipts",
        demo.verifier / "receipts",
        expect=(0, 1, 2, 3),
    )
    say(done.stdout.splitlines()[0])
    return done.returncode == int(ExitCode.FAIL)


def _summary(
    demo: Demo,
    policy: Policy,
    embedder: Embedder,
    tenants: Mapping[str, list[Document]],
    questions: list[Question],
) -> None:
    say("\n== what it costs and what it takes")
    plain, noised, trials = _recall(policy, embedder, tenants, questions)
    share = round(trials / noised) if noised else 0
    sentence = f"1 question in {share}" if noised else "no question"
    say(f"recall@{policy.top_k} over the questions: {plain:.0%} without noise, {noised / trials:.0%} with it")
    say(f"at this policy {sentence} still finds its passage among the {policy.top_k} documents handed back")
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


def _recall(
    policy: Policy,
    embedder: Embedder,
    tenants: Mapping[str, list[Document]],
    questions: list[Question],
    draws: int = 20,
) -> tuple[float, int, int]:
    """(recall without noise, noised hits, noised trials) over the tenants' own questions, fresh noise each time."""
    window, k = policy.noise.score_window(), policy.top_k
    plain, noised, asked = 0, 0, 0
    for tenant, texts in tenants.items():
        part = policy.tenant(tenant)
        assert part is not None
        index = build_index(embedder.embed_documents([d.text for d in texts]), part.capacity)
        for question in (q for q in questions if q.tenant == tenant):
            targets = {index.positions[i] for i, d in enumerate(texts) if d.title == question.answer}
            if not targets:
                continue
            asked += 1
            vector = embedder.embed_query(question.question)
            silent = np.zeros(part.capacity, np.int32)
            plain += bool(targets & set(select(index, vector, silent, window, k)))
            for _ in range(draws):
                fresh = draw_noise(random_element(), part.capacity, policy.noise.gains)
                noised += bool(targets & set(select(index, vector, fresh, window, k)))
    return plain / max(asked, 1), noised, max(asked, 1) * draws
