"""The package's imports against the packages drawn in docs/architecture.md."""

import ast
import itertools
import re
import shutil
import subprocess
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
MAX_PACKAGES = 17
MAX_VERIFY_LINES = 4145
"""The most lines of `rag_audit/verify`, which auditors read whole."""
MAX_REACHED_LINES = 14_600
"""The most lines of this package that the verifier imports in any way, the examples in docstrings among them and proof
systems apart: a window names those, and `proofs` loads the named ones by name."""
MAX_RUST_LINES = 1000
LONGER_RUST: dict[str, str] = {}
"""Rust files above `MAX_RUST_LINES`, and why."""


def _layers() -> list[set[str]]:
    """The drawing's rooms, from the top floor down."""
    drawing = re.search(r"^```\n(lab[ ,].*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert drawing is not None
    return [set(line.partition("  ")[0].split()) for line in drawing[1].splitlines()]


def _modules() -> dict[str, Path]:
    names = subprocess.run(
        ["git", "ls-files", "rag_audit/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ROOT / name
        for name in names.stdout.split()
    }


MODULES = _modules()


def _imports(path: Path) -> set[str]:
    """The package's modules that a module imports anywhere in it, for types alone too."""
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rag_audit":
            wholes = {f"{node.module}.{alias.name}" for alias in node.names}
            result |= {whole if whole in MODULES else str(node.module) for whole in wholes}
    return result - {"rag_audit"}


def _package(module: str) -> str:
    return module.split(".")[1]


PUBLIC = ("rag_audit", "rag_audit.__main__", "rag_audit.errors")
"""Modules that only give public names to what the packages define."""
INSIDE = {m: _imports(p) - {m} for m, p in MODULES.items() if m not in PUBLIC}


def test_every_room_is_drawn_once() -> None:
    drawn = [room for floor in _layers() for room in floor]
    assert sorted(drawn) == sorted({_package(m) for m in INSIDE})
    assert len(_layers()) <= 11
    assert len(drawn) <= MAX_PACKAGES


def test_a_room_imports_from_floors_below_it_only() -> None:
    floor = {room: number for number, packages in enumerate(_layers()) for room in packages}
    wrong = [f"{module} imports {other}" for module, others in INSIDE.items() for other in others
             if _package(module) != _package(other) and floor[_package(other)] <= floor[_package(module)]]  # fmt: skip
    assert wrong == []


def test_a_floor_is_where_its_imports_put_it() -> None:
    """The drawing has no floor that nothing stands on: each room imports from the floor right below."""
    layers = _layers()
    for above, below in itertools.pairwise(layers):
        used = {_package(other) for m, others in INSIDE.items() if _package(m) in above for other in others}
        assert used & below, f"{sorted(above)} could stand where {sorted(below)} do"


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter(INSIDE).prepare()  # raises CycleError, with the circle


def test_contributors_are_shown_the_same_arrows() -> None:
    arrows = re.search(
        r"^```\n(lab[ ,].*?)\n```", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert arrows is not None
    shown = [set(re.findall(r"\w+", floor)) for floor in arrows[1].split("->")]
    assert shown == _layers()


@pytest.mark.parametrize("room", ["commit", "attest", "service", "account", "witness", "report", "lab"])
def test_the_verifier_imports_nothing_of_the_provider(room: str) -> None:
    reached, left = set(), [m for m in INSIDE if _package(m) == "verify"]
    while left:
        module = left.pop()
        reached.add(module)
        left += [other for other in INSIDE.get(module, ()) if other not in reached]
    assert not {m for m in reached if _package(m) == room}


def _reached(start: str) -> set[str]:
    """The modules that one imports, at once or later, for types alone too, with the packages that hold them."""
    reached, left = set(), [start]
    while left:
        module = left.pop()
        if module not in reached:
            reached.add(module)
            parts = module.split(".")
            left += [*INSIDE.get(module, ()), *(".".join(parts[:n]) for n in range(2, len(parts)))]
    return reached


def _lines(modules: set[str]) -> int:
    return sum(MODULES[module].read_text().count("\n") for module in modules)


def test_the_verifier_can_be_read_whole() -> None:
    lines = _lines({module for module in MODULES if module.startswith("rag_audit.verify")})
    assert lines <= MAX_VERIFY_LINES, f"{lines} lines"


def test_the_verifier_reaches_little() -> None:
    reached = _reached("rag_audit.verify.verifier")
    lines = _lines(reached)
    assert lines <= MAX_REACHED_LINES, f"{lines} lines in {sorted(reached)}"
    assert {_package(m) for m in reached}.isdisjoint(
        {"retrieval", "report", "attest", "commit", "lab", "cli", "service"}
    )
    unwanted = (
        "executors",
        "remembered",
        "cache",
        "http",
        "proxies",
        "signing",
        "window_writer",
        "reference",
    )
    assert [m for m in reached if m.rpartition(".")[2] in unwanted] == []


NATIVE = ROOT / "native"
OF_A_VERIFIER = ("relation", "scan-protocol")
"""The crates that a verifier of the scan argument is made of; provers have `scan-prover` besides."""


def _rust_modules(crate: str) -> dict[str, str]:
    """A crate's modules, tests apart, as their code without comments."""
    texts, source = {}, NATIVE / crate / "src"
    for path in sorted(source.rglob("*.rs")):
        name = "::".join(path.relative_to(source).with_suffix("").parts).removesuffix("::mod")
        code = re.sub(r"//.*", "", path.read_text())
        texts[name] = re.split(r"#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod \w+ \{", code)[0]
    of_tests = {
        f"{name}::{module}".removeprefix("lib::")
        for name, code in texts.items()
        for module in re.findall(r"#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod (\w+);", code)
    }
    return {name: code for name, code in texts.items() if name not in of_tests | {"lib"}}


def _rust_imports(name: str, modules: dict[str, str]) -> set[str]:
    """The modules that one names by a path from the crate, from its parent or among its children."""
    paths = set()
    for root, group, path in re.findall(r"\b(crate|super)::(?:\{([^}]*)\}|([\w:]+))", modules[name]):
        parent = "" if root == "crate" else name.rpartition("::")[0]
        names = [part.strip() for part in group.split(",")] if group else [path]
        paths |= {f"{parent}::{part}".removeprefix("::") for part in names}
    children = {other.rpartition("::")[2] for other in modules if other.rpartition("::")[0] == name}
    paths |= {f"{name}::{child}" for child in children if re.search(rf"\b{child}::", modules[name])}
    result = {
        max((m for m in modules if f"{path}::".startswith(f"{m}::")), key=len, default="") for path in paths
    }
    return result - {name, ""}


@pytest.mark.parametrize("crate", [*OF_A_VERIFIER, "scan-prover"])
def test_no_rust_module_of_the_scan_imports_itself_by_way_of_others(crate: str) -> None:
    modules = _rust_modules(crate)
    graph = {name: _rust_imports(name, modules) for name in modules}
    if crate == "scan-protocol":
        assert {"session", "index_link", "channel"} <= graph["closing"]
        assert "closing::columns" in graph["closing::opening"]
    TopologicalSorter(graph).prepare()  # raises CycleError, with the circle


def test_a_verifier_s_crates_have_no_prover_no_lanes_and_no_threads() -> None:
    manifests = {name: tomllib.loads((NATIVE / name / "Cargo.toml").read_text()) for name in OF_A_VERIFIER}
    result = {name: set(manifest["dependencies"]) for name, manifest in manifests.items()}
    own = {crate for names in result.values() for crate in names if crate.startswith("ragaudit")}
    assert own == {"ragaudit-relation"}
    others = {crate for names in result.values() for crate in names} - own
    assert others == {"ark-bn254", "ark-ec", "ark-ff", "num-bigint", "sha2", "thiserror", "zeroize"}
    for crate in OF_A_VERIFIER:
        code = "\n".join(_rust_modules(crate).values())
        assert not re.findall(r"\brayon\b|\bragaudit_field_simd\b|\blanes\b|\bgetrandom\b|\bunsafe\b", code)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="Cargo says what a crate depends on")
def test_nothing_beneath_a_verifier_s_crate_has_threads() -> None:
    command = ["cargo", "tree", "--offline", "--locked", "--package", "ragaudit-scan-protocol",
               "--edges", "normal", "--prefix", "none", "--format", "{p}"]  # fmt: skip
    tree = subprocess.run(command, cwd=NATIVE, capture_output=True, text=True)
    if tree.returncode != 0 and "offline" in tree.stderr:
        pytest.skip("the crates are not fetched")
    assert tree.returncode == 0, tree.stderr
    names = {line.split()[0] for line in tree.stdout.splitlines()}
    assert {"ragaudit-scan-protocol", "ragaudit-relation", "ark-bn254"} <= names
    assert not {name for name in names if name.startswith(("rayon", "crossbeam", "getrandom"))}
    assert {name for name in names if name.startswith("ragaudit")} == {
        "ragaudit-scan-protocol",
        "ragaudit-relation",
    }


def test_nothing_in_the_argument_s_crate_is_a_prover() -> None:
    """What a prover is asked stands in `prover`; whoever answers is another crate."""
    modules = _rust_modules("scan-protocol")
    requested = set(re.findall(r"pub trait (\w+)", modules["prover"]))
    assert {"ProverWitness", "Sums", "Tree", "SboxColumns"} <= requested
    every = rf"\bimpl\b[^{{;]*\b({'|'.join(sorted(requested))})\b[^{{;]* for "
    assert {name: re.findall(every, code) for name, code in modules.items() if re.findall(every, code)} == {}
    answers = "\n".join(_rust_modules("scan-prover").values())
    assert requested == set(re.findall(every, answers))


def test_the_verifier_s_side_of_a_run_reaches_no_protocol() -> None:
    modules = _rust_modules("scan-protocol")
    reached, left = set(), ["verifier"]
    while left:
        name = left.pop()
        reached.add(name)
        left += sorted(_rust_imports(name, modules) - reached)
    assert {"channel", "transcript", "equation"} <= reached
    assert "session" in modules and not reached & {"session", "closing", "query"}


def test_a_circle_of_rust_modules_is_seen() -> None:
    modules = {"a": "use crate::{b, c::C};", "b": "use crate::d::inner::{x, y};", "c": "", "d": "inner::x();",
               "d::inner": "use super::side::X;", "d::side": "crate::a::f()"}  # fmt: skip
    graph = {name: _rust_imports(name, modules) for name in modules}
    assert graph == {"a": {"b", "c"}, "b": {"d::inner"}, "c": set(), "d": {"d::inner"},
                     "d::inner": {"d::side"}, "d::side": {"a"}}  # fmt: skip
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


def test_rust_files_can_be_read_in_one_go() -> None:
    members = tomllib.loads((NATIVE / "Cargo.toml").read_text())["workspace"]["members"]
    files = [path for member in members for part in ("src", "tests", "benches")
             for path in (NATIVE / member / part).rglob("*.rs")]  # fmt: skip
    lines = {str(path.relative_to(NATIVE)): path.read_text().count("\n") for path in files}
    assert {"scan-protocol/src/lib.rs", "scan-prover/src/lib.rs"} <= set(lines)
    assert {name for name, count in lines.items() if count > MAX_RUST_LINES} == set(LONGER_RUST)


def test_no_place_of_the_scan_differs_in_tests() -> None:
    """They run the protocols as they ship: simulators and cheats have a `Channel` and a random oracle of their own."""
    module = r"#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod \w+;"
    places = {
        f"{crate}::{name}": re.findall(r"cfg\w*!?[\[(].*\btest\b.*", re.sub(module, "", code))
        for crate in (*OF_A_VERIFIER, "scan-prover")
        for name, code in _rust_modules(crate).items()
    }
    assert "scan-protocol::transcript" in places
    assert {name: result for name, result in places.items() if result} == {}
