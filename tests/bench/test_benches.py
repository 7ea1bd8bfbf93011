"""Every measurement prints one JSON object, with names that mean the same in all of them. Sizes here measure
nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
COST = ("seconds", "cpu_seconds", "peak_bytes")


def run(name: str, *options: str) -> dict[str, Any]:
    """What it prints with --json: all of its standard output is one object."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *options, "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    assert {"cpu", "cores", "memory_gib", "revision", "load"} <= set(value["machine"])
    assert value["threads"] >= 1
    return value


def test_batches() -> None:
    value = run("batch", "--documents", "100", "--dimension", "16", "--records", "3,70", "--threads", "1")
    assert value["documents"] == 100 and value["bytes"] > 0
    for name in COST:
        assert set(value[name]) == {"3", "70"}


def test_the_scan_argument() -> None:
    value = run(
        "scan", "--documents", "100", "--dimension", "16", "--gains", "1,8", "--batch", "2", "--threads", "1",
        "--mechanisms",
    )  # fmt: skip
    assert value["documents"] == 100 and value["gains"] == [1, 8] and value["threads"] == 1
    steps = {"index", "index_decoding", "noise_proof", "query_proof", "verify", "batch"}
    steps |= {"sampling_proof", "sampling_proof_verify", "sampled", "sampled_verify", "sampled_batch"}
    for name in COST:
        assert set(value[name]) == steps and all(figure > 0 for figure in value[name].values()), name
    assert set(value["bytes"]) == {"index", "proofs", "sampling_proof", "sampled"}
    assert value["bytes"]["proofs"] > 10_000


def test_coalition_certificates() -> None:
    value = run("coalition", "--records", "20", "--accounts", "10")
    assert value["records"] == 20 and value["bytes"] > 10_000
    assert all(set(value[name]) == {"certify", "verify"} for name in COST)


def test_verification_of_large_windows() -> None:
    value = run("verify", "--records", "12")
    assert value["records"] == [12] and set(value["windows"]) == {"12"}
    assert all(set(value["windows"]["12"][name]) == {"read", "verify"} for name in COST)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("core", "--documents 500", {"documents", "gains", "seconds"}),
        ("engine", "--documents 500", {"documents", "gains", "seconds"}),
        ("ledger", "--records 32 --appenders 1 4", {"bytes", "durable_records_per_second"}),
        ("accounting", "--policies 1", {"policies", "seconds"}),
        ("embed", "--batch 2", {"tokens", "bytes", "seconds"}),
        ("groth16", "--powers 8", {"2^8", "batch"}),
        pytest.param("beside", "--documents 8 --gains 1", {"sizes"}, marks=pytest.mark.circuits),
    ],
)
def test_the_others(name: str, options: str, expected: set[str]) -> None:
    assert expected <= set(run(name, *options.split()))


@pytest.mark.full
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("recall", "--questions 20 --collection scifact", "collections"),
        ("explore", "--questions 20", "collections"),
        ("estimate", "--queries 5000 --trials 2 --targets 1", "scale"),
    ],
)
def test_those_that_read_collections(name: str, options: str, expected: str) -> None:
    assert expected in run(name, *options.split())


def test_a_served_query() -> None:
    value = run("service", "--documents", "32", "--queries", "2", "--gains", "")
    assert value["documents"] == 32 and value["gains"] == [] and value["queries"] == 2
    steps = {"check_signed", "check_opened", "select_positions", "document_openings", "query_record"}
    steps |= {"seal_retained", "make_receipt"}
    assert set(value["server_ms"]) == {"all", *steps} and set(value["account_ms"]) == {"request", "accept"}
    assert sum(value["server_ms"][step] for step in steps) <= value["server_ms"]["all"]


@pytest.mark.full
def test_a_window_from_texts_to_verdict() -> None:
    """Slow, since A1 is proved over the whole table."""
    value = run("whole", "--documents", "40", "--queries", "2", "--alone", "2", "--batch", "2")
    assert value["verify"]["verdict"] == "PASS-SAMPLED" and set(value["prove"]["seconds"]) == {
        "first",
        "alone",
        "batch",
    }
    assert value["open"]["embedding"]["seconds"] > 0 and value["serve"]["resident_bytes"] > 0


@pytest.mark.full
def test_proving_on_a_local_cluster() -> None:
    """Slow, since each worker loads the package."""
    value = run("cluster", "--documents", "40", "--records", "2")
    assert value["prove"]["cpu_seconds"] > value["prove"]["of_jobs"] > 0
    assert value["prove"]["idle_per_second"] > 0 and value["workers"] == 2


@pytest.mark.full
def test_load_over_http() -> None:
    """Slow, since the real server's window opens a minute after it is committed."""
    value = run(
        "http", "--documents", "50", "--accounts", "3", "--queries", "6", "--kills", "1", "--rate", "20"
    )
    assert value["steady"]["answered"] == value["killed"]["answered"] == 6
    assert value["steady"]["server_cpu_ms"] > 0 and len(value["killed"]["restart_seconds"]) == 1
    assert value["checked"] == {"records": 12, "lost": 0, "slots_reused": 0, "other_records": 0}


@pytest.mark.full
def test_quantisation() -> None:
    """Slow, since it collects the standard library's docstrings."""
    value = run("quantisation", "--documents", "100", "--queries", "2", "--dimensions", "16")
    rows = {(row["vectors"], row["cut"], row["components"]): row for row in value["table"]}
    assert ("nested, 1/j", 4, "int4, turned") in rows and ("semantic part", 128, "float") in rows
    assert {row["dimension"] for row in value["table"]} == {16, 256}
    assert all(0 <= row[f"recall@{k}"] <= 100 for row in value["table"] for k in (5, 20))
    assert rows["even, j^-1", 16, "int4, turned"]["scale"] == 0.75


def test_many_accounts() -> None:
    value = run("accounts", "--accounts", "20", "--roster", "50", "--queries", "4")
    assert (value["accounts"], value["enrolled"], value["queries"]) == (20, 2, 4)
    steps = {
        "request",
        "list",
        "approve",
        "open",
        "enrol",
        "beacons",
        "resume",
        "account reads",
        "query",
        "close",
        "end",
    }
    assert set(value["seconds"]) == steps | {"read window", "verify"}
    assert set(value["roster"]["seconds"]) == {"write", "read", "check", "commit", "places", "one more"}
    assert value["bytes"]["header.json"] > 0 and value["bytes"]["window"] > 0


@pytest.mark.full
def test_a_window_of_many_records() -> None:
    value = run("window", "--records", "20")
    steps = {
        "open",
        "answers",
        "resume",
        "close",
        "export",
        "challenge",
        "prove, all stored",
        "read window",
        "verify",
    }
    assert all(set(value["windows"]["20"][name]) == steps for name in COST)
