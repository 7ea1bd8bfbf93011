"""`open --prepare`, `status`, `diff`, and `open` again: the next window beside the one that serves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.clock import now_ms
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.models.windowfile import WindowFile
from tests.window.simulator import EMBEDDER, TEXTS, Service


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def value(*arguments: object) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A provider with its files, at the time that it is."""
    result = Service(tmp_path)
    result.clock.now = now_ms()
    result.key.save(tmp_path / "key")
    roster = [a.roster_entry.dump() for a in result.accounts.values()]
    (tmp_path / "roster.json").write_text(json.dumps(roster))
    write_documents(result, TEXTS)
    return result


def write_documents(service: Service, texts: Mapping[str, Sequence[str]]) -> None:
    (service.root / "docs").mkdir(exist_ok=True)
    for tenant, lines in texts.items():
        data = "".join(json.dumps({"text": line}) + "\n" for line in lines)
        (service.root / "docs" / f"{tenant}.jsonl").write_text(data)


def inputs(service: Service, name: str, *, witnesses: bool = True, **changes: Any) -> list[object]:
    root = service.root
    policy = root / f"{name}.json"
    policy.write_text(json.dumps(service.policy(system="scan", window=name, **changes).dump()))
    given: list[object] = [
        "--policy",
        policy,
        "--roster",
        root / "roster.json",
        "--docs",
        root / "docs",
        "--key",
        root / "key",
        "--embedder",
        EMBEDDER,
    ]
    for member in service.beacon().witnesses if witnesses else ():
        path = root / f"{name}-{member.name}.nonce"
        path.write_text(json.dumps(member.dump()))
        given += ["--witness", path]
    return given


def test_a_window_is_prepared_beside_another_and_opened_once_that_is_closed(service: Service) -> None:
    first, second, cache = service.root / "first", service.root / "second", service.root / "cache" / "vectors"
    begun = value("provider", "open", first, *inputs(service, "w-1"), "--opens-in", "1h", "--vectors", cache)
    assert begun["status"] == "committed"
    write_documents(service, {**TEXTS, "law": [*TEXTS["law"][1:], "A new law."]})
    changed = value("provider", "diff", first, "--docs", service.root / "docs", "--list")["tenants"]
    assert changed["law"] == {"added": 1, "removed": 1, "unchanged": 4, "texts_added": ["A new law."],
                              "texts_removed": [TEXTS["law"][0]]}  # fmt: skip
    assert (
        "law: 1 added, 1 removed, 4 unchanged"
        in run("provider", "diff", first, "--docs", service.root / "docs").stdout
    )
    refused = run("provider", "open", second, *inputs(service, "w-2", witnesses=False), "--vectors", cache)
    assert refused.exit_code == 2 and "--witness" in refused.stderr  # only --prepare can do without
    prepare = ["provider", "open", second, *inputs(service, "w-2"), "--vectors", cache, "--prepare"]
    assert value(*prepare)["status"] == "prepared"
    assert not list((second / "public").iterdir())
    assert value("provider", "status", second)["status"] == "prepared"
    assert "--previous" in run("provider", "status", second).stdout
    with Window.resume(first, key=service.key) as window:
        window.close(abandoned=True)
        previous = WindowFile.load(first / "public").entries[0]
    same = service.root / "w-1.json"
    again = run("provider", "open", second, "--previous", first / "public", "--policy", same)
    assert again.exit_code == 2 and "has the id of the previous window" in again.stderr
    opened = value("provider", "open", second, "--previous", first / "public", "--opens-in", "30s")
    assert opened["status"] == "committed" and opened["opens_at"] <= now_ms() + 30_000
    published = json.loads((second / "public" / "header.json").read_text())
    assert published["header"]["previous"]["abandoned"] == 1 and previous is not None
    assert value("provider", "open", second) == opened
    result = value("provider", "status", second)
    assert result["status"] == "committed" and "w1, w2" in result["waits_for"]


def test_a_folder_without_texts_has_no_difference(service: Service, tmp_path: Path) -> None:
    done = run("provider", "diff", tmp_path, "--docs", service.root / "docs")
    assert done.exit_code == 2 and "the folder contains no texts of a window" in done.stderr
