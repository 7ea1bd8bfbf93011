"""What `pip install .` gives, without extras, is enough for a verifier and a witness, and holds no GPL package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXAMPLES = ROOT / "docs/examples"

# A process in which the packages of extras cannot be imported, and whose last line says what was loaded.
RUN = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
from rag_audit.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    print(end.code)
print(*(name for name in sys.modules if name.startswith("rag_audit.")), file=sys.stderr)
"""


def run(*arguments: str) -> tuple[str, set[str]]:
    """What the command printed, with its exit code in a last line, and the package's modules that it loaded."""
    extras = [
        "pymerkle",
        "wordllama",
        "tokenizers",
        "onnxruntime",
        "faiss",
        "matplotlib",
        "distributed",
        "ray",
    ]
    code = RUN.format(blocked=extras, arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    *complaints, loaded = done.stderr.splitlines()
    assert complaints == []
    return done.stdout, set(loaded.split())


def test_a_verifier_needs_no_extra() -> None:
    out, loaded = run("verify", str(EXAMPLES / "window.json"), "--trust", str(EXAMPLES / "trust.toml"),
                   "--receipts", str(EXAMPLES / "receipts"))  # fmt: skip
    assert out.startswith("PASS")
    assert out.rstrip().endswith("0")
    # It is independent: nothing that a provider or an account runs has judged here.
    rooms = {name.split(".")[1] for name in loaded}
    assert rooms >= {"cli", "verify", "estimate", "proofs", "models", "log"}
    assert rooms.isdisjoint({"commit", "attest", "service", "account", "witness", "lab"})


def test_the_packaged_example_needs_no_extra() -> None:
    out, _ = run("verify", "--example")
    first, *rest, code = out.splitlines()
    assert first.startswith("PASS eps_audit=") and len(rest) == 3 and code == "0"


def test_a_witness_needs_no_extra(tmp_path: Path) -> None:
    out, loaded = run("witness", "--help")
    assert "cosign" in out
    assert not any(name.startswith(("rag_audit.commit", "rag_audit.attest")) for name in loaded)


@pytest.mark.parametrize("name", ["pymerkle", "circom2", "snarkjs"])
def test_no_gpl_package_is_in_the_base_install(name: str) -> None:
    assert not any(d.lower().startswith(name) for d in PROJECT["dependencies"])
