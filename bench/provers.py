"""Groth16 provers compared in one run at equal size: `python -m bench.provers [--powers 16 17] [--json]`.

The provers are this project's, snarkjs, arkworks (ark-groth16), taceo-groth16 and gnark. The script measures the
provers that build on this machine, and prints the reason for each prover that does not build. All except gnark prove
the same constraint system and witness (`bench.groth16.chain`); gnark reads no r1cs and compiles the same chain itself.
Each prover proves twice in a separate process, and the second proof counts; snarkjs proves once, including its start.
The sources of the other provers are in bench/provers, a workspace that is outside all builds of the project. The script
compiles it on first use.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.common import emit, measured, parser
from bench.groth16 import PUBLIC, chain
from rag_audit import _native
from rag_audit._internal.cache import cache_dir
from rag_audit._internal.node import find_node, npm_packages
from rag_audit.errors import SetupError

HERE = Path(__file__).parent / "provers"


def native(zkey: Path, wtns: Path, r1cs: Path) -> dict[str, Any]:
    """Return the second of two proofs, in a separate process."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_native_twice, (str(zkey), wtns.read_bytes(), str(r1cs)))


def _native_twice(zkey: str, wtns: bytes, r1cs: str) -> dict[str, Any]:
    _native.groth16_prove(zkey, wtns, r1cs)
    cost, _ = measured(lambda: _native.groth16_prove(zkey, wtns, r1cs))
    return cost._asdict()


def snarkjs(zkey: Path, wtns: Path) -> dict[str, Any]:
    """Make one proof with the command, including its start."""
    cli = npm_packages() / "snarkjs" / "build" / "cli.cjs"
    out = [str(wtns.with_suffix(name)) for name in (".proof.json", ".public.json")]
    command = [find_node().node, str(cli), "groth16", "prove", str(zkey), str(wtns), *out]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SetupError("snarkjs failed", actual=process.returncode)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": 1024 * usage.ru_maxrss,
    }


def build(tool: str, arguments: list[str], folder: Path, environment: dict[str, str]) -> str | None:
    """Build with a tool that may be missing; return the reason if the build fails."""
    path = shutil.which(tool)
    if path is None:
        return f"{tool} is not installed"
    done = subprocess.run(
        [path, *arguments], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )
    return None if done.returncode == 0 else f"does not build: {done.stderr.strip().splitlines()[-1][:160]}"


def report(*command: object) -> dict[str, Any]:
    """Run a prover and parse its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--powers", type=int, nargs="+", default=[16, 17], help="log2 of the rows")
    args = options.parse_args()
    target = cache_dir("bench-provers")
    rust, go = target / "release" / "ragaudit-other-provers", target / "gnark"
    missing = {
        "arkworks, taceo": build(
            "cargo", ["build", "--release", "--locked"], HERE, {"CARGO_TARGET_DIR": str(target)}
        ),
        "gnark": build("go", ["build", "-o", str(go), "."], HERE / "gnark", {}),
    }
    figures: dict[str, Any] = {
        "missing": {name: reason for name, reason in missing.items() if reason},
    }
    with tempfile.TemporaryDirectory() as name:
        for power in args.powers:
            rows = (1 << power) - PUBLIC - 1
            paths = {kind: Path(name) / f"{power}.{kind}" for kind in ("r1cs", "wtns", "zkey")}
            r1cs, wtns, _ = chain(rows)
            paths["r1cs"].write_bytes(r1cs)
            paths["wtns"].write_bytes(wtns)
            _native.groth16_setup_one_party(paths["r1cs"], paths["zkey"])
            runs = {"native": native(paths["zkey"], paths["wtns"], paths["r1cs"])}
            if not missing["arkworks, taceo"]:
                for which in ("taceo", "arkworks"):
                    runs[which] = report(rust, which, paths["r1cs"], paths["wtns"])
            if not missing["gnark"]:
                runs["gnark"] = report(go, rows)
            try:
                runs["snarkjs"] = snarkjs(paths["zkey"], paths["wtns"])
            except SetupError as exc:
                figures["missing"]["snarkjs"] = str(exc)
            others = [run["cpu_seconds"] for which, run in runs.items() if which != "native"]
            if others:
                runs["native"]["cpu_ratio_to_best_other"] = runs["native"]["cpu_seconds"] / min(others)
            figures[f"2^{power}"] = runs
    emit(figures, as_json=args.json)


if __name__ == "__main__":
    main()
