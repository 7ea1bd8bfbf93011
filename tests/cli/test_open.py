"""`open` shows how far it is, can be interrupted, and goes on when it is run again."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_audit._internal.clock import now_ms
from rag_audit.cli import main
from rag_audit.models.layout import Layout
from rag_audit.proofs.backends.scan import store as index_store
from rag_audit.proofs.backends.scan.store import RUN
from rag_audit.retrieval.documents import DocumentStore
from rag_audit.retrieval.embedders import NothingToEmbed, Vectors
from rag_audit.retrieval.embedders.static import StaticEmbedder
from tests.cli.conftest import Shell
from tests.window.simulator import EMBEDDER, TEXTS

PLACE = ("index of law", 3 * RUN)


@pytest.fixture
def command(service: Shell, tmp_path: Path) -> list[str]:
    """A window of scan tenants in a folder of its own, for the parties of `service`."""
    root, policy = service.root, tmp_path / "policy.json"
    service.ok(
        "provider",
        "policy",
        "new",
        policy,
        "--window",
        tmp_path.name,
        "--tenant",
        "law=8",
        "--tenant",
        "medicine=8",
        "--n",
        "3",
        "--k-max",
        "2",
        "--mechanism",
        "noise",
        "--eps-acc",
        "14",
        "--gains",
        "1,4",
        "--lattice",
        "64",
        "--top-k",
        "2",
        "--accounts-max",
        "3",
        "--lasts",
        "1h",
        "--opens-in",
        "1h",
        "--query-tokens",
        "2",
        "--embedder",
        EMBEDDER,
    )
    options = {
        "--policy": policy,
        "--roster": root / "roster.json",
        "--docs": root / "docs",
        "--key": root / "provider" / "key",
    }
    nonces = [a for name in ("w1", "w2") for a in ("--witness", str(root / f"{name}.nonce"))]
    return [
        "provider",
        "open",
        str(tmp_path / "window"),
        *(str(a) for pair in options.items() for a in pair),
        *nonces,
        "--embedder",
        EMBEDDER,
    ]


def test_an_interrupted_opening_goes_on(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(step: str, done: int, _: int) -> None:
        if (step, done) == PLACE:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rag_audit.cli.open.stages", lambda: stop)
        interrupted = CliRunner().invoke(main, command)
    assert interrupted.exit_code == 130 and "the same command continues" in interrupted.stderr
    folder = tmp_path / "window"
    secrets = json.loads((folder / "secrets.json").read_bytes())
    assert not list((folder / "public").iterdir())
    other = CliRunner().invoke(main, command[:3])  # without what a new window needs
    assert other.exit_code == 2 and "--policy" in other.stderr

    firsts: list[tuple[str, int]] = []
    commit = index_store._commit

    def watched(rows: object, first: int, *rest: object) -> bytes:
        firsts.append((Path(rows.filename).stem, first))  # type: ignore[attr-defined]
        return commit(rows, first, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(index_store, "_commit", watched)
    done = CliRunner().invoke(main, [*command, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["status"] == "committed"
    assert firsts == [("law", n) for n in range(3 * RUN, 64, RUN)] + [
        ("medicine", n) for n in range(0, 64, RUN)
    ]
    kept = json.loads((folder / "secrets.json").read_bytes())
    changed = {name for name, value in kept.items() if value != secrets[name]}
    assert (
        changed == {"s0", "s1"} and kept.keys() == secrets.keys()
    )  # the seed is drawn when the window opens
    again = CliRunner().invoke(main, [*command[:3], "--json"])
    first = json.loads(done.stdout)
    read = first.pop("inventory")["read"]
    assert {tenant: (own["documents"], own["positions"], own["files"]) for tenant, own in read.items()} == {
        tenant: (len(texts),) * 3 for tenant, texts in TEXTS.items()
    }
    assert json.loads(again.stdout) == first


def test_an_opening_cut_off_before_it_was_published_is_published(command: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "window"
    done = CliRunner().invoke(main, [*command, "--json"])
    (folder / "unfinished.json").write_text("{}")
    for path in (folder / "public").glob("*.*"):
        path.unlink()
    again = CliRunner().invoke(main, [*command, "--json"])
    first = json.loads(done.stdout)
    del first["inventory"]  # the documents are not read again
    assert json.loads(again.stdout) == first
    assert (folder / "public" / "header.json").exists() and not (folder / "unfinished.json").exists()


def test_progress_is_shown_on_a_terminal(command: list[str]) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-m", "rag_audit", *command], stdout=subprocess.PIPE, stderr=slave, env=environment
    ) as child:
        os.close(slave)
        shown = b""
        try:
            while data := os.read(master, 1 << 16):
                shown += data
        except OSError:  # how Linux says that the other end is closed
            pass
        assert child.stdout is not None and b"committed" in child.stdout.read()
    os.close(master)
    for line in (b"documents of law 5/5", b"index of law 48/64", b"index of medicine 64/64"):
        assert line in shown


def test_a_window_is_dated_on_request_once_it_is_prepared(command: list[str], tmp_path: Path) -> None:
    began = now_ms()
    done = CliRunner().invoke(main, [*command, "--opens-in", "20s", "--json"])
    result = json.loads(done.stdout)
    # The policy alone says in an hour.
    assert began + 20_000 <= result["opens_at"] <= now_ms() + 20_000
    published = json.loads((tmp_path / "window" / "public" / "header.json").read_text())
    assert published["policy"]["opens_at"] == published["header"]["opens_at"] == result["opens_at"]
    assert published["policy"]["closes_at"] - result["opens_at"] == 3_600_000


def test_documents_beyond_the_limit_are_counted_on_standard_error(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for tenant, texts in {**TEXTS, "law": [*TEXTS["law"], "whereas " * 600]}.items():
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / "docs" / f"{tenant}.jsonl").write_text(lines)
    command[command.index("--docs") + 1] = str(tmp_path / "docs")
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    said = [line for line in done.stderr.splitlines() if "tokens" in line]
    assert len(said) == 1 and "cut 1: longer than 512 tokens, found by the first 512 only" in said[0]
    assert said[0].endswith("law.jsonl, line 6")


def test_files_that_are_not_read_are_named_and_the_one_that_is_read_is_not(
    command: list[str], tmp_path: Path
) -> None:
    docs = own_docs(command, tmp_path)
    (docs / "notes.md").write_text("Notes.")
    done = CliRunner().invoke(main, [*command, "--json"])
    assert done.exit_code == 0, done.output
    assert (
        "omitted 1: the folder has <tenant>.jsonl files, and only these files are read: notes.md"
        in done.stderr
    )
    assert ".jsonl are not read" not in done.stderr
    assert [entry["name"] for entry in json.loads(done.stdout)["inventory"]["omitted"]] == ["notes.md"]


def own_docs(command: list[str], tmp_path: Path) -> Path:
    """A folder with a JSON Lines file of five texts for each tenant, which the command reads."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for tenant, texts in TEXTS.items():
        (docs / f"{tenant}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    command[command.index("--docs") + 1] = str(docs)
    return docs


@pytest.mark.parametrize("more", [[], ["--vectors", "vectors"]], ids=["plain", "cached"])
def test_a_document_that_cannot_be_embedded_is_named_and_omitted_if_asked(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    """The embedder gives no vector for two texts of law.jsonl, which only shows once they are embedded."""
    docs = own_docs(command, tmp_path)
    with (docs / "law.jsonl").open("a") as file:
        file.write('{"text": "no vector one"}\n{"text": "Roof."}\n{"text": "no vector two", "id": "a-8"}\n')
    embed = StaticEmbedder.embed_documents

    def failing(self: StaticEmbedder, texts: Sequence[str], *, first: int = 0) -> Vectors:
        for number, text in enumerate(texts, first):
            if text.startswith("no vector"):
                raise NothingToEmbed("the text has no token to embed", field=f"documents[{number}]")
        return embed(self, texts, first=first)

    monkeypatch.setattr(StaticEmbedder, "embed_documents", failing)
    first_bad = len(TEXTS["law"]) + 1
    command += [str(tmp_path / word) if word == "vectors" else word for word in more]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2 and "the text has no token to embed" in done.stderr
    assert f"at: law.jsonl, line {first_bad}" in done.stderr
    done = CliRunner().invoke(main, [*command, "--skip-unreadable", "--json"])
    assert done.exit_code == 0, done.output
    named = f"law.jsonl, line {first_bad}; law.jsonl, line {first_bad + 2}"
    assert f"omitted 2: the text has no token to embed: {named}" in done.stderr
    value = json.loads(done.stdout)
    assert value["status"] == "committed" and value["inventory"]["read"]["law"]["documents"] == first_bad
    with DocumentStore(Layout(tmp_path / "window").documents) as store:
        held = [passage.text for passage in store.passages("law").values()]
    assert len(held) == first_bad and not any(text.startswith("no vector") for text in held)
