"""Compiled circuits in the user cache, and the assignments of their wires.

circom2 (circom as WASM) makes the constraint system and a witness generator, also WASM.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rag_audit.encoding.cache import build_once, cache_dir, progress, read_manifest, write_manifest
from rag_audit.encoding.canonical import digest_hex
from rag_audit.errors import SetupError
from rag_audit.proofs.groth16.generator import generate
from rag_audit.proofs.groth16.instance import COMPILER_FLAGS, Instance
from rag_audit.proofs.groth16.toolchain import NodeFailed, circuits_dir, last_lines, npm_packages, run_node

Inputs = Mapping[str, int | Sequence[int]]
"""A circuit's inputs by signal name."""

FOLDER = "circuits2"
"""Subfolder of the cache; `circuits` holds those of earlier releases, whose manifests listed no files."""

_COUNT = re.compile(r"^(non-linear constraints|linear constraints|wires): (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Circuit:
    """A compiled circuit's files."""

    folder: Path

    @property
    def r1cs(self) -> Path:
        """The file of the constraint system, in iden3's r1cs format."""
        return self.folder / "main.r1cs"

    @property
    def symbols(self) -> Path:
        """The file of the wires' names, a line each: label, wire (-1 if simplified away), component, name."""
        return self.folder / "main.sym"

    @property
    def constraints(self) -> int:
        """The number of constraints."""
        return int(json.loads((self.folder / "manifest.json").read_text())["constraints"])


def compile_circuit(instance: Instance, *, flags: Sequence[str] = COMPILER_FLAGS) -> Circuit:
    """Compile an instance, or take it from the cache, whose files are compared with their manifest.

    :param flags: circom's flags; a circuit with other than the default ones is cached apart and has no keys
    :raises SetupError: Node is missing, the compiler refuses the sources, or a cached file was altered
    """
    key = instance.digest()
    if tuple(flags) != COMPILER_FLAGS:
        key = digest_hex({"circuit": key, "flags": list(flags)})
    folder = build_once(cache_dir(FOLDER) / key, lambda folder: _compile(instance, folder, flags, key))
    found = read_manifest(folder).get("circuit")
    if found != key:
        raise SetupError("the cached circuit is another one", field=str(folder), expected=key, found=found)
    return Circuit(folder)


@contextmanager
def compiled_anew(instance: Instance) -> Iterator[Circuit]:
    """Compile an instance from the installed sources, in a folder that exists as long as the context, for checks that
    must not trust the circuit in the cache.

    :raises SetupError: Node is missing, or the compiler refuses the sources
    """
    with tempfile.TemporaryDirectory(prefix="rag-audit-") as name:
        _compile(instance, Path(name), COMPILER_FLAGS, instance.digest())
        yield Circuit(Path(name))


def _compile(instance: Instance, folder: Path, flags: Sequence[str], key: str) -> None:
    progress(f"compiling {instance.name}")
    counts = run_compiler(circuits_dir(), instance.main_source(), folder, flags)
    write_manifest(folder, {"circuit": key, "name": instance.name, **counts})


def run_compiler(sources: Path, main: str, folder: Path, flags: Sequence[str]) -> dict[str, int]:
    """Compile the text `main` against the templates in `sources`, and write main.r1cs, main.sym and main_js to
    `folder`.

    :returns: the numbers of constraints and wires
    :raises SetupError: Node is missing, or the compiler refuses the sources
    """
    # The compiler is sandboxed to the folder it is started in, so everything it includes is copied there.
    packages = npm_packages()
    work = folder / "sources"
    for name in ("lib", "utils"):
        shutil.copytree(sources / name, work / name)
    shutil.copytree(packages / "circomlib" / "circuits", work / "circomlib" / "circuits")
    (work / "main").mkdir()
    (work / "main" / "main.circom").write_text(main)
    arguments = ["main/main.circom", "--r1cs", "--wasm", "--sym", *flags, "-l", ".", "-o", "."]
    try:
        output = run_node(packages / "circom2" / "cli.js", arguments, cwd=work).decode()
    except NodeFailed as exc:
        raise SetupError("the circuit does not compile", found=last_lines(exc.stdout + exc.stderr)) from exc
    for path in (*work.glob("main.*"), work / "main_js"):
        path.rename(folder / path.name)
    shutil.rmtree(work)
    counts = {name: int(count) for name, count in _COUNT.findall(output)}
    return {
        "constraints": counts["non-linear constraints"] + counts["linear constraints"],
        "wires": counts["wires"],
    }


def compute_witness(circuit: Circuit, inputs: Inputs) -> bytes:
    """The assignment of all wires for some inputs, as the bytes of a .wtns file (snarkjs's witness).

    :raises WitnessError: the inputs do not satisfy the circuit; `found` names template and line
    :raises SetupError: node is missing or fails
    """
    text = json.dumps({name: _decimal(value) for name, value in inputs.items()})
    return generate(circuit.folder, text.encode())


def _decimal(value: int | Sequence[int]) -> str | list[str]:
    return str(value) if isinstance(value, int) else [str(item) for item in value]
