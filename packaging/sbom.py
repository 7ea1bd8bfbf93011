"""The parts list of a release, as CycloneDX 1.6 in JSON: Python, Rust and npm, made of the lock files.

    python packaging/sbom.py > sbom.cdx.json

The script uses no network. The same locks give the same bytes: the serial number follows from the content, and the
document contains a time only if ``SOURCE_DATE_EPOCH`` is set. Crates that run only at build time have the scope
``excluded``. Packages of an extra, and packages for Groth16 tenants or for the page, have the scope ``optional``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
PYTHON_LOCKS = ("requirements/dev.txt", "requirements/frameworks.txt")
NPM_LOCKS = ("circuits/package-lock.json", "rag_audit/report/browser/locked/package-lock.json")
CRATES = ("ragaudit-python", "ragaudit-wasm")
"""The crates that a wheel is compiled from: the extension module, and the page's module."""
SHIPPED_ON = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "wasm32-unknown-unknown")

Graph = dict[str, set[str]]


def normal(name: str) -> str:
    """Return a Python distribution's name in the form that indices compare."""
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def python_locked(paths: Iterable[str] = PYTHON_LOCKS) -> tuple[dict[str, str], Graph]:
    """Read requirements files with pip-compile's notes; return versions by name, and each package's requirements."""
    versions: dict[str, str] = {}
    graph: Graph = {}
    for path in paths:
        for block in re.split(r"\n(?=[a-zA-Z])", (ROOT / path).read_text()):
            result = re.match(r"([\w.-]+)(?:\[[^]]*\])?==([^\s;\\]+)", block)
            if not result:
                continue
            name = normal(result[1])
            versions.setdefault(name, result[2])
            noted = block.partition("# via")[2].replace("#", " ").split()
            for parent in noted:
                graph.setdefault(normal(parent), set()).add(name)
    return versions, graph


def closure(roots: Iterable[str], graph: Graph) -> set[str]:
    reached: set[str] = set()
    left = list(roots)
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += graph.get(name, ())
    return reached


def _requirement(text: str) -> str:
    result = re.match(r"[\w.-]+", text)
    assert result is not None
    return normal(result[0])


def python_parts() -> tuple[list[dict[str, Any]], Graph]:
    """Return the base install and the extras, at the versions in the locks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions, graph = python_locked()
    base = {_requirement(text): text for text in project["dependencies"]}
    extras = {_requirement(text): text for extra, texts in project["optional-dependencies"].items()
              if extra != "dev" for text in texts}  # fmt: skip
    required = closure(base, graph)
    parts, refs = [], {}
    for name in sorted(closure({**base, **extras}, graph)):
        version = versions.get(name)
        purl = f"pkg:pypi/{name}" + (f"@{version}" if version else "")
        refs[name] = purl
        part: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "purl": purl,
                                "scope": "required" if name in required else "optional"}  # fmt: skip
        if version:
            part["version"] = version
        else:  # an extra that the project's locks do not contain
            part["properties"] = [{"name": "rag-audit:requirement", "value": extras[name]}]
        parts.append(part)
    edges = {refs[name]: {refs[n] for n in graph.get(name, ()) if n in refs} for name in refs}
    return parts, edges | {"": {refs[name] for name in {**base, **extras}}}


def rust_parts() -> tuple[list[dict[str, Any]], Graph]:
    """Return the crates that Cargo resolves for the modules of a wheel, on the wheel's platforms."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path",
               str(ROOT / "native/Cargo.toml")]  # fmt: skip
    for platform in SHIPPED_ON:
        command += ["--filter-platform", platform]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    metadata = json.loads(done.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    locked = tomllib.loads((ROOT / "native/Cargo.lock").read_text())["package"]
    sums = {(p["name"], p["version"]): p.get("checksum") for p in locked}
    linked: Graph = {}
    whole: Graph = {}
    for node in metadata["resolve"]["nodes"]:
        for needed in node["deps"]:
            kinds = {kind["kind"] for kind in needed["dep_kinds"]}
            macro = any("proc-macro" in target["kind"] for target in packages[needed["pkg"]]["targets"])
            if kinds & {None, "build"}:
                whole.setdefault(node["id"], set()).add(needed["pkg"])
            if None in kinds and not macro:
                linked.setdefault(node["id"], set()).add(needed["pkg"])
    roots = {key for key, package in packages.items() if package["name"] in CRATES}
    shipped = closure(roots, linked)
    refs = {
        key: f"pkg:cargo/{packages[key]['name']}@{packages[key]['version']}" for key in closure(roots, whole)
    }
    parts = []
    for key, purl in sorted(refs.items(), key=lambda item: item[1]):
        package = packages[key]
        part = {"type": "library", "bom-ref": purl, "name": package["name"], "version": package["version"],
                "purl": purl, "scope": "required" if key in shipped else "excluded",
                "licenses": [{"expression": re.sub(" ?/ ?", " OR ", package["license"])}]}  # fmt: skip
        checksum = sums[package["name"], package["version"]]
        if checksum:
            part["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        parts.append(part)
    edges = {purl: {refs[n] for n in whole.get(key, ()) if n in refs} for key, purl in refs.items()}
    return parts, edges | {"": {refs[key] for key in roots}}


def npm_parts() -> tuple[list[dict[str, Any]], Graph]:
    """Return the circuit compiler, snarkjs, circomlib and the page's Python, at the versions in their locks."""
    parts: dict[str, dict[str, Any]] = {}
    edges: Graph = {"": set()}
    for path in NPM_LOCKS:
        packages = json.loads((ROOT / path).read_text())["packages"]
        refs = {}
        for place, entry in packages.items():
            if place == "":
                continue
            name = place.rpartition("node_modules/")[2]
            purl = f"pkg:npm/{quote(name, safe='/')}@{entry['version']}"
            refs[place] = purl
            algorithm, _, digest = entry["integrity"].partition("-")
            assert algorithm == "sha512"
            parts[purl] = {"type": "library", "bom-ref": purl, "name": name, "version": entry["version"],
                           "purl": purl, "scope": "optional",
                           "hashes": [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}]}  # fmt: skip
            if "license" in entry:
                parts[purl]["licenses"] = [{"expression": entry["license"]}]
        for place, purl in refs.items():
            entry = packages[place]
            wanted = {**entry.get("dependencies", {}), **entry.get("optionalDependencies", {})}
            edges.setdefault(purl, set()).update(
                refs[result] for name in wanted if (result := _resolved(place, name, refs))
            )
        edges[""] |= {refs[f"node_modules/{name}"] for name in packages[""].get("dependencies", {})}
    return [parts[purl] for purl in sorted(parts)], edges


def _resolved(place: str, name: str, refs: dict[str, str]) -> str | None:
    """Find a package that a folder requires, as Node does: in the nearest folder above."""
    while True:
        inside = f"{place}/node_modules/{name}" if place else f"node_modules/{name}"
        if inside in refs:
            return inside
        if not place:
            return None
        place = place.rpartition("node_modules/")[0].rstrip("/")


def bill() -> dict[str, Any]:
    """Return the whole document."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    root = f"pkg:pypi/ragaudit-zk@{version}"
    components: list[dict[str, Any]] = []
    edges: Graph = {}
    for result, needed in (python_parts(), rust_parts(), npm_parts()):
        components += result
        for ref, others in needed.items():
            edges.setdefault(ref or root, set()).update(others)
    value: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "bom-ref": root, "name": "ragaudit-zk", "version": version, "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(edges[ref])} for ref in sorted(edges)],
    }  # fmt: skip
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    value["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}"
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        value["metadata"]["timestamp"] = datetime.fromtimestamp(int(epoch), UTC).isoformat()
    return value


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1, sort_keys=True)
    print()
