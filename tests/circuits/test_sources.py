"""The circuit sources: shipped instances, pinned packages, headers, and what the digest covers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rag_audit._internal.node import circuits_dir
from rag_audit.proofs.backends.groth16 import instance as instances
from rag_audit.proofs.backends.groth16.instance import (
    CoalitionInstance,
    EmbedInstance,
    NamesInstance,
    included_sources,
)
from rag_audit.proofs.backends.groth16.policy import SHIPPED
from rag_audit.relation import noise
from tests.circuits.documents_case import TINY as DOCUMENTS
from tests.circuits.many_case import PAIR
from tests.circuits.retrieve_case import TINY
from tests.circuits.sample_column_case import TINY as KEPT
from tests.circuits.sampled_case import NOISY

SOURCES = sorted(path for name in ("lib", "utils") for path in (circuits_dir() / name).glob("*.circom"))


def test_shipped_mains_are_the_generated_ones() -> None:
    result = {path.name: path.read_text() for path in (circuits_dir() / "main").iterdir()}
    assert result == {f"{instance.name}.circom": instance.main_source() for instance in SHIPPED}


def test_noise_table_is_the_reference() -> None:
    text = (circuits_dir() / "lib" / "dgs1_table.circom").read_text()
    lists = [
        [int(x) for x in re.findall(r"\d+", body)]
        for body in re.findall(r"return \[(.*?)\];", text, re.DOTALL)
    ]
    table = noise.alias_table()
    assert lists == [list(table.thresholds), list(table.aliases)]
    assert noise.table_digest() in text


def test_npm_packages_are_pinned_without_addresses() -> None:
    lock = json.loads((circuits_dir() / "package-lock.json").read_text())
    wanted = {"circom2": "0.2.23", "snarkjs": "0.7.6", "circomlib": "2.0.5"}
    assert lock["packages"][""]["dependencies"] == wanted
    assert {name: lock["packages"][f"node_modules/{name}"]["version"] for name in wanted} == wanted
    for name, entry in lock["packages"].items():
        assert "resolved" not in entry
        assert name == "" or entry["integrity"].startswith("sha512-")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_every_template_and_function_has_a_header(path: Path) -> None:
    lines = path.read_text().splitlines()
    for at, line in enumerate(lines):
        if line.startswith(("template ", "function ")):
            start = at
            while lines[start - 1].startswith("///"):
                start -= 1
            header = "\n".join(lines[start:at])
            assert "@notice" in header, line
            if line.startswith("template "):
                assert "@param" in header, f"{line}: inputs and who checks their range"


def test_digest_covers_parameters_sources_compiler_and_table(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {TINY.digest()}

    def changed(digest: str) -> None:
        assert digest not in seen
        seen.add(digest)

    for change in (
        {"capacity": 16},
        {"top_k": 4},
        {"gains": (1, 2)},
        {"lo": 21},
        {"hi": 161},
        {"lattice": 128},
    ):
        changed(replace(TINY, **change).digest())  # type: ignore[arg-type]
    with monkeypatch.context() as patch:
        patch.setattr(instances, "COMPILER_FLAGS", ("--O1",))
        changed(TINY.digest())
    with monkeypatch.context() as patch:
        patch.setattr(instances, "table_digest", lambda: "00" * 32)
        changed(TINY.digest())
    with monkeypatch.context() as patch:
        patch.setattr(instances, "_locked", lambda name: {"version": "9", "integrity": name})
        changed(TINY.digest())
    with monkeypatch.context() as patch:
        patch.setattr(instances, "_included", instances._included.__wrapped__)
        patch.setattr(instances, "_source", lambda path: ("00" * 32, ()))
        changed(TINY.digest())
    assert TINY.digest() in seen


def test_digest_names_every_own_source() -> None:
    retrieve, many, embed, coalition, *others = (
        {name for name, _ in included_sources(main.main_source())}
        for main in (
            TINY,
            PAIR,
            EmbedInstance(24),
            CoalitionInstance(4),
            KEPT,
            NOISY,
            DOCUMENTS,
            NamesInstance(8, 5),
        )
    )
    assert {"lib/dgs1.circom", "lib/dgs1_table.circom", "utils/bits.circom"} <= retrieve - {
        "lib/embed.circom"
    }
    assert retrieve.union(many, embed, coalition, *others) == {
        path.relative_to(circuits_dir()).as_posix() for path in SOURCES
    }
