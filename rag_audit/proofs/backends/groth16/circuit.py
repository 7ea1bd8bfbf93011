"""Compiled circuits in the user cache, and the assignments of their wires.

circom2 (circom as WASM) makes the constraint system and a witness generator, also WASM. The native core converts the
generator's code into a plan that assigns wires without Node. If the conversion fails, the generator assigns them.
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

from rag_audit import _native
from rag_audit._internal.cache import (
    build_once,
    cache_dir,
    digest_once,
    progress,
    read_manifest,
    write_manifest,
)
from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.errors import SetupError
from rag_audit._internal.node import (
    NodeFailed,
    circuits_dir,
    last_lines,
    npm_packages,
    run_node,
)
from rag_audit.proofs.backends.groth16.generator import generate
from rag_audit.proofs.backends.groth16.instance import COMPILER_FLAGS, Instance
from rag_audit.relation.field import MODULUS, to_bytes

Inputs = Mapping[str, int | Sequence[int]]
"""A circuit's inputs by signal name."""

FOLDER = "circuits2"
"""Subfolder of the cache with compiled circuits; the number is the format's."""
PLANS = "plans1"
"""Subfolder of the cache with plans, by the digests of the code that they are made of; the number is their format's."""

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
    """Compile an instance, or read it from the cache after comparing its files with their manifest.

    :param flags: circom's flags; a circuit with flags other than the default has a separate cache folder and no keys
    :raises SetupError: Node is missing, the compiler refuses the sources, or a cached file was altered
    """
    key = instance.digest()
    if tuple(flags) != COMPILER_FLAGS:
        key = digest_hex({"circuit": key, "flags": list(flags)})
    folder = build_once(cache_dir(FOLDER) / key, lambda folder: _compile(instance, folder, flags, key))
    actual = read_manifest(folder).get("circuit")
    if actual != key:
        raise SetupError("the cached circuit is another one", field=str(folder), expected=key, actual=actual)
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
    # The compiler is sandboxed to its working folder, so all included files are copied there.
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
        raise SetupError("the circuit does not compile", actual=last_lines(exc.stdout + exc.stderr)) from exc
    for path in (*work.glob("main.*"), work / "main_js"):
        path.rename(folder / path.name)
    shutil.rmtree(work)
    counts = {name: int(count) for name, count in _COUNT.findall(output)}
    return {
        "constraints": counts["non-linear constraints"] + counts["linear constraints"],
        "wires": counts["wires"],
    }


def plan(circuit: Circuit) -> Path | None:
    """The file of a circuit's plan, made of the generator's code or taken from the cache; None if the code has loops or
    addresses that depend on the inputs.

    :raises SetupError: the plan in the cache is of another code, or was altered
    """
    code = circuit.folder / "main_js" / "main.wasm"
    digest = digest_once(code)

    def build(folder: Path) -> None:
        progress("planning how wires are assigned")
        reason = _native.groth16_plan(code, folder / "plan")
        write_manifest(folder, {"code": digest, "reason": reason})

    folder = build_once(cache_dir(PLANS) / digest, build)
    manifest = read_manifest(folder)
    actual = manifest.get("code")
    if actual != digest:
        raise SetupError(
            "the cached plan is of another circuit", field=str(folder), expected=digest, actual=str(actual)
        )
    return folder / "plan" if manifest.get("reason") is None else None


def by_plan(circuit: Circuit, inputs: Inputs) -> _native.Groth16Witness | None:
    """The assignment of all wires for some inputs by the circuit's plan; None if it has none, or refuses the inputs.

    :raises SetupError: as `plan`
    """
    path = plan(circuit)
    if path is None:
        return None
    values = {name: [value] if isinstance(value, int) else value for name, value in inputs.items()}
    encoded = [(name, b"".join(to_bytes(x % MODULUS) for x in each)) for name, each in values.items()]
    try:
        return _native.groth16_witness(path, encoded)
    except (ValueError, OSError) as exc:
        raise SetupError("the plan cannot be used", field=str(path), actual=str(exc)) from exc


def assign(circuit: Circuit, inputs: Inputs) -> bytes | _native.Groth16Witness:
    """The assignment of all wires for given inputs. The circuit's plan computes it; if the plan refuses the inputs,
    circom's own code computes it, or names the fault in the inputs.

    :raises WitnessError, SetupError: as `plan` and `compute_witness`
    """
    witness = by_plan(circuit, inputs)
    return compute_witness(circuit, inputs) if witness is None else witness


def compute_witness(circuit: Circuit, inputs: Inputs) -> bytes:
    """The assignment of all wires for some inputs by circom's own code, as the bytes of a .wtns file (snarkjs's).

    :raises WitnessError: the inputs do not satisfy the circuit; `actual` names template and line
    :raises SetupError: node is missing or fails
    """
    text = json.dumps({name: _decimal(value) for name, value in inputs.items()})
    return generate(circuit.folder, text.encode())


def _decimal(value: int | Sequence[int]) -> str | list[str]:
    return str(value) if isinstance(value, int) else [str(item) for item in value]
