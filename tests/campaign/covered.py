"""The parsers of the core under libFuzzer, which follows the branches that an input takes (`native/fuzz`).

    python -m tests.campaign.covered --seconds 60          every target, for this time each
    python -m tests.campaign.covered --only zkey FILE      one input

Each target starts from valid files and proofs, and from inputs of earlier runs that reached new branches. A run ends at an
input that makes a parser panic or overflow, allocate more than half a gigabyte at once, or take more than twenty seconds.
The run stores the input and prints its name.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rag_audit import _native
from rag_audit._internal.cache import cache_dir
from rag_audit.proofs.backends.groth16.circuit import PLANS
from rag_audit.proofs.backends.scan.key import VERSION
from rag_audit.relation.field import to_bytes

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "groth16"))
from systems import random_system  # noqa: E402, of a folder that is no package

from tests.campaign.modules import module  # noqa: E402

FUZZ = ROOT / "native" / "fuzz"
TARGET = cache_dir("fuzz-target")
LONGEST = {"proof": 1 << 16, "certificate": 1 << 15, "ptau": 1 << 15}
"""Bytes of an input; other targets have 16 KB."""
LIMITS = ("-rss_limit_mb=2048", "-malloc_limit_mb=512", "-timeout=20", "-print_final_stats=1")
TARGETS = ("proof", "certificate", "index", "zkey", "ptau", "r1cs", "wtns", "groth16", "plan", "module")


def built() -> Path:
    """The program with instrumented crates of this project. libFuzzer needs a C++ compiler."""
    command = ["cargo", "build", "--release", "--locked", "--quiet"]
    environment = os.environ | {"RUSTC_WRAPPER": str(FUZZ / "covered"), "CARGO_TARGET_DIR": str(TARGET)}
    subprocess.run(command, cwd=FUZZ, env=environment, check=True)
    return TARGET / "release" / "parsers"


def seeds(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Valid inputs, each with its target."""
    system = random_system(3)
    r1cs, ptau, zkey = (folder / name for name in ("c.r1cs", "p.ptau", "k.zkey"))
    r1cs.write_bytes(system.r1cs())
    _native.ptau_new(4, ptau)
    _native.groth16_setup(r1cs, ptau, zkey)
    proof = _native.groth16_prove(zkey, system.wtns())
    yield from ((path.suffix[1:], path.read_bytes()) for path in (r1cs, ptau, zkey))
    yield "wtns", system.wtns()
    yield "groth16", _native.groth16_verification_key(zkey).encode()
    yield "groth16", proof + b"".join(map(to_bytes, system.inputs()))

    code, plan = folder / "c.wasm", folder / "c.plan"
    code.write_bytes(module())
    reason = _native.groth16_plan(code, plan)
    assert reason is None, reason
    yield "module", code.read_bytes()
    yield "plan", plan.read_bytes()
    # And those of real circuits, where they are short enough.
    kept = [path for path in cache_dir(PLANS).glob("*/plan") if path.stat().st_size < 1 << 14]
    yield from (("plan", path.read_bytes()) for path in kept)

    def published(name: str) -> dict[str, object]:
        vectors = ROOT / "vectors" / f"v{VERSION}" / "scan" / f"{name}.json"
        read: dict[str, object] = json.loads(vectors.read_text())
        return read

    def proof_in(part: object, *path: str) -> bytes:
        for name in (*path, "proof"):
            assert isinstance(part, dict)
            part = part[name]
        return base64.b64decode(str(part))

    all_proofs, answer = published("proofs"), published("proofs")["answer"]
    assert isinstance(answer, dict)
    yield "proof", b"\0" + proof_in(answer, "query_proof")
    yield "proof", b"\1" + proof_in(all_proofs, "embed")
    yield "proof", b"\2" + proof_in(published("proofs"), "listing")
    records, pairs = (proof_in(all_proofs, "coalition", name) for name in ("records", "pairs"))
    yield "proof", b"\3" + len(records).to_bytes(3, "big") + records + pairs
    yield "certificate", b"\0" + proof_in(answer, "certificate")
    yield "certificate", b"\1" + proof_in(published("proofs"), "coins")
    sizes = b"".join(answer[name].to_bytes(3, "big") for name in ("dimension", "capacity"))
    yield "index", sizes + base64.b64decode(answer["index"])


def run(program: Path, target: str, words: list[str]) -> tuple[int, str]:
    """The exit code and the output of libFuzzer."""
    environment = os.environ | {"RAG_AUDIT_FUZZ": target}
    done = subprocess.run(
        [program, *words], env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    return done.returncode, done.stderr


def fuzzed(program: Path, target: str, seconds: int) -> bool:
    """Run a target, and print its faults. Returns whether there are none."""
    corpus, result = cache_dir("fuzz", target), cache_dir("fuzz-found")
    words = [str(corpus), f"-max_total_time={seconds}", f"-max_len={LONGEST.get(target, 1 << 14)}",
             f"-artifact_prefix={result}/{target}-", *LIMITS]  # fmt: skip
    code, said = run(program, target, words)
    stats = {line.split()[0].removeprefix("stat::").rstrip(":"): line.split()[1]
             for line in said.splitlines() if line.startswith("stat::")}  # fmt: skip
    inputs = len(list(corpus.iterdir()))
    print(f"{target}: {stats.get('number_of_executed_units', 'no')} cases, {inputs} kept inputs, "
          f"{stats.get('peak_rss_mb', '?')} MB: {'nothing found' if code == 0 else 'FOUND'}", flush=True)  # fmt: skip
    if code:
        print("\n".join(line for line in said.splitlines() if not line.startswith(("#", "INFO"))), flush=True)
    return code == 0


def main() -> int:
    """The command. Its exit code is 1 where something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="how long each target runs")
    parser.add_argument("--only", choices=TARGETS, help="one target alone")
    parser.add_argument("input", nargs="*", help="run these inputs of one target again, and no others")
    requested = parser.parse_args()
    program = built()
    if requested.input:
        code, said = run(program, requested.only, requested.input)
        print(said)
        return code
    with tempfile.TemporaryDirectory() as folder:
        for number, (target, data) in enumerate(seeds(Path(folder))):
            path = cache_dir("fuzz", target) / f"valid-{number}"
            path.write_bytes(data)
    targets = [requested.only] if requested.only else TARGETS
    return 0 if all([fuzzed(program, target, requested.seconds) for target in targets]) else 1


if __name__ == "__main__":
    sys.exit(main())
