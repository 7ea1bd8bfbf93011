"""Builds that anyone can repeat: the same sources, locks and tools give the same bytes in any folder.

    python packaging/build.py web                   rag_audit/report/browser/native.wasm
    python packaging/build.py wheel x86_64 dist     one wheel
    python packaging/build.py twice x86_64          both in two clones of HEAD, and their digests compared

Times in archives are the time of the commit (``SOURCE_DATE_EPOCH``), and the build replaces this machine's paths with
public paths. The build needs Cargo with the target's standard library. Wheels also need maturin with Zig
(``make .venv/wheels/.stamp``).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = "wasm32-unknown-unknown"


def environment(folder: Path, *flags: str) -> dict[str, str]:
    """Return the environment variables of a build in a folder."""
    home = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    if any(character.isspace() for character in f"{folder}{home}"):
        sys.exit(f"rag-audit: RUSTFLAGS cannot name a folder with a space in it: {folder}, {home}")
    time = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=folder, capture_output=True, text=True)
    remapped = (f"--remap-path-prefix={folder}=/rag-audit", f"--remap-path-prefix={home}=/cargo")
    return {
        **os.environ,
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or time.stdout.strip() or "315532800",
        "RUSTFLAGS": " ".join((*flags, *remapped)),
        "MATURIN_NO_MISSING_BUILD_BACKEND_WARNING": "1",
    }


def web(folder: Path) -> Path:
    """Compile the page's module, and write it to the package's path for it."""
    subprocess.run(
        ["cargo", "build", "--manifest-path", "native/Cargo.toml", "--profile", "dist", "--locked", "--quiet",
         "--target", WEB, "--package", "ragaudit-wasm"],
        cwd=folder, env=environment(folder, "-C target-feature=+simd128"), check=True,
    )  # fmt: skip
    built = folder / "native/target" / WEB / "dist/ragaudit_wasm.wasm"
    place = folder / "rag_audit/report/browser/native.wasm"
    place.write_bytes(built.read_bytes())
    return place


def wheel(folder: Path, cpu: str, out: Path) -> Path:
    """Build a wheel for Linux with glibc 2.17 or newer."""
    tools = ROOT / ".venv/wheels/bin"
    built = environment(folder)
    out.mkdir(parents=True, exist_ok=True)
    parts = folder / "native/target/sbom.cdx.json"
    parts.parent.mkdir(exist_ok=True)
    with parts.open("wb") as file:
        subprocess.run([sys.executable, "packaging/sbom.py"], cwd=folder, env=built, stdout=file, check=True)
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.whl")}
    subprocess.run(
        ["maturin", "build", "--profile", "dist", "--locked", "--zig", "--quiet",
         "--target", f"{cpu}-unknown-linux-gnu", "--compatibility", "manylinux2014",
         "--sbom-include", str(parts), "--out", str(out)],
        cwd=folder, env={**built, "PATH": f"{tools}:{built['PATH']}"}, check=True,
    )  # fmt: skip
    (result,) = (path for path in out.glob(f"*{cpu}.whl") if before.get(path) != path.stat().st_mtime_ns)
    return result


def digests(path: Path) -> dict[str, str]:
    """Return the SHA-256 of a file and of the members of a wheel; the members show where two wheels differ."""
    result = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            result |= {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}
    return result


def twice(cpu: str) -> int:
    """Clone HEAD into two folders with names of different lengths, and build in each."""
    result: list[dict[str, str]] = []
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("one", "another-folder/below"):
            folder = Path(scratch, name).resolve()
            folder.parent.mkdir(exist_ok=True)
            subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder)], check=True)
            # HEAD may have changed during the first build.
            subprocess.run(["git", "checkout", "--quiet", revision.strip()], cwd=folder, check=True)
            created = [web(folder), wheel(folder, cpu, folder / "dist")]
            result.append(digests(created[0]) | digests(created[1]))
            print(*(f"{result[-1][path.name]}  {path.name}" for path in created), sep="\n", flush=True)
    different = [
        name for name in sorted({*result[0], *result[1]}) if result[0].get(name) != result[1].get(name)
    ]
    print("DIFFERENT:" if different else "equal", *different)
    return int(bool(different))


def main(words: list[str]) -> int:
    match words:
        case ["web"]:
            web(ROOT)
        case ["wheel", cpu, out]:
            print(wheel(ROOT, cpu, Path(out)))
        case ["twice", cpu]:
            return twice(cpu)
        case _:
            sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
