"""What a witness reads of a log that grows: the new entries, and everything again where something else has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from rag_audit.attest import publishing
from rag_audit.attest.publishing import GrowingFile
from rag_audit.attest.submitting import Submitting
from rag_audit.cli import main
from rag_audit.errors import EncodingError
from rag_audit.log.signing import SigningKey
from rag_audit.log.tree import MerkleTree
from rag_audit.models import ending, tiles
from rag_audit.models.ending import NOTHING, ReadTiles, read_ending
from rag_audit.models.publication import PUBLICATION, Publication
from rag_audit.models.records import Entry
from rag_audit.models.trust import Require, Trust
from rag_audit.models.trust_template import trust_template
from rag_audit.models.windowfile import MEDIA_TYPE, WindowFile
from rag_audit.witness.rules import STORED_REVEALS, State, WitnessRefused
from rag_audit.witness.witness import Witness
from tests.counting import counted
from tests.window.simulator import STRICT

from .conftest import ORIGIN, Ledger, enrolment, header, query, witness_beacon_of

TILE = 4_000
ZERO = "00" * 32
LATER = {"opens_at": 4_000_000_000_000, "closes_at": 4_000_003_600_000}


@dataclass(frozen=True)
class Raw:
    """An entry as `GrowingFile` wants it."""

    value: dict[str, Any]

    def dump(self) -> dict[str, Any]:
        return self.value


class Provider:
    """A public folder with a log that grows, and a witness that looks at it by its commands."""

    def __init__(self, root: Path, key: SigningKey) -> None:
        self.root, self.public, self.ledger = root, root / "public", Ledger(key)
        self.public.mkdir()
        self.witness = Witness.init(root / "w", "w.example")
        self.growing = GrowingFile(self.public / "window.json")
        first = header(**LATER)
        self.ledger.append(first)
        publication = Publication(
            mediaType=PUBLICATION, header=first, policy={}, embedder={}, roster=[], tenants=[]
        )
        (self.public / "header.json").write_bytes(publication.canonical())
        (self.public / "checkpoint-1.txt").write_text(str(self.ledger.checkpoint()))
        trust = Trust.parse({
            "version": 1, "quorum": 1, "provider": {"origin": ORIGIN, "vkey": str(key.verifier)},
            "witness": [{"name": "w.example", "vkey": str(self.witness.vkey)}], "beacon": {"witnesses": ["w.example"]},
            "pins": {"noise_table": ZERO, "manifest": ZERO, "scan": ZERO},
            "require": Require.parse(STRICT, field="require"),
        }, field="trust.toml")  # fmt: skip
        (root / "trust.toml").write_text(trust_template(trust))
        assert self.run("cosign").exit_code == 0

    def run(self, command: str) -> Result:
        where = [str(self.root / "w"), str(self.public), "--trust", str(self.root / "trust.toml")]
        return CliRunner().invoke(main, ["witness", command, *where])

    def grow(self, entries: int, end: dict[str, Any] | None = None) -> None:
        """Bring the log to so many entries, and publish it."""
        while len(self.ledger.entries) < entries - (end is not None):
            self.ledger.add(query())
        if end is not None:
            self.ledger.append(end)
        self.publish()

    def publish(self) -> None:
        self.growing.save(self.head(), cast("list[Entry]", [Raw(json.loads(e)) for e in self.ledger.entries]))

    def head(self) -> WindowFile:
        return WindowFile(
            mediaType=MEDIA_TYPE, entries=[], header_checkpoint="", final_checkpoint=str(self.ledger.checkpoint()),
            policy={}, embedder={}, roster=[], tenants=[], verification_keys={}, proofs={}, challenges=[],
            coalition_proof=None,
        )  # fmt: skip

    def enrol(self, entries: int) -> None:
        """Let an account join as the last of so many entries."""
        beacon = witness_beacon_of([(self.witness, self.witness.nonce_commitment())])
        self.grow(entries, enrolment(entries - 1, beacon, ts=1_700_000_000_000))

    @property
    def noted(self) -> Path:
        """What the witness keeps of what it has read."""
        (path,) = (self.root / "w" / "read").iterdir()
        return path


@pytest.fixture
def provider(tmp_path: Path, log_key: SigningKey, monkeypatch: pytest.MonkeyPatch) -> Provider:
    monkeypatch.setattr(publishing, "OPEN_TILE_BYTES", TILE)
    return Provider(tmp_path, log_key)


def test_one_more_enrolment_costs_the_same_however_many_entries_there_are(provider: Provider) -> None:
    costs = []
    for size in (300, 600, 1200):
        provider.enrol(size)
        assert provider.run("cosign").exit_code == 0 and provider.run("beacon").exit_code == 0
        provider.enrol(size + 3)
        for command in ("cosign", "beacon"):
            with counted(ending, "leaf_hash") as hashed:
                provider.run(command)
            costs.append(hashed.count)
        assert (provider.public / "notes" / f"beacon-{size + 3}-w.example.txt").exists()
        known = provider.witness.last(provider.ledger.log)
        assert known == (size + 3, provider.ledger.tree.root())
    assert max(costs) <= TILE // 100 + 3 and min(costs) > 0, costs


def test_tiles_that_were_read_are_not_read_again(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.enrol(200)
    assert provider.run("cosign").exit_code == 0
    read = ReadTiles.parse(json.loads(provider.noted.read_bytes()), field="read").tiles
    assert read > 3
    provider.enrol(203)
    looked, read_bytes = [], tiles.read_bytes
    monkeypatch.setattr(
        tiles, "read_bytes", lambda path, **options: looked.append(path) or read_bytes(path, **options)
    )
    assert provider.run("cosign").exit_code == 0
    assert 0 < len(looked) <= 2


@pytest.mark.parametrize("signed", [True, False], ids=["in the checkpoint", "in the tiles alone"])
def test_an_old_entry_that_was_changed_is_refused(provider: Provider, signed: bool) -> None:
    """Whether the provider signs the other history, or publishes it beside the checkpoint of the first."""
    provider.enrol(200)
    assert provider.run("cosign").exit_code == 0 and provider.run("beacon").exit_code == 0
    before = list(provider.ledger.entries)
    provider.enrol(203)
    honest, checkpoint = list(provider.ledger.entries), provider.ledger.checkpoint()
    assert honest[:200] == before
    changed = Provider.__new__(Provider)
    changed.__dict__.update(provider.__dict__)
    changed.growing = GrowingFile(provider.public / "window.json")
    changed.ledger = Ledger(provider.ledger.key, entries=[honest[0], b'{"type":"query"}', *honest[2:]])
    if not signed:
        changed.ledger.checkpoint = lambda size=None: checkpoint  # type: ignore[method-assign]
    changed.publish()
    refused = provider.run("cosign")
    assert (
        isinstance(refused.exception, WitnessRefused)
        or "the checkpoint does not extend the last cosigned checkpoint" in refused.output
    ), refused.output
    assert refused.exit_code != 0
    known = provider.witness.last(provider.ledger.log)
    assert known is not None and known[0] == 200
    assert provider.run("beacon").exit_code != 0
    provider.growing = GrowingFile(provider.public / "window.json")
    provider.publish()
    assert provider.run("cosign").exit_code == 0 and provider.run("beacon").exit_code == 0


def other_peaks(value: dict[str, Any]) -> bytes:
    return json.dumps({**value, "peaks": ["11" * 32 for _ in value["peaks"]]}).encode()


@pytest.mark.parametrize(
    "damage",
    [
        other_peaks,
        lambda value: json.dumps({**value, "peaks": value["peaks"][1:]}).encode(),
        lambda value: json.dumps({**value, "entries": value["entries"] - 1}).encode(),
        lambda value: json.dumps({**value, "entries": 10**15, "peaks": ["11" * 32]}).encode(),
        lambda value: json.dumps({**value, "tiles": 0}).encode(),
        lambda value: json.dumps({**value, "tiles": 10**15}).encode(),
        lambda value: json.dumps({**value, "names": ZERO}).encode(),
        lambda value: b"[" * 100_000,
        lambda value: b"",
    ],
    ids=[
        "peaks",
        "fewer peaks",
        "entries",
        "most entries",
        "no tiles",
        "most tiles",
        "names",
        "deep",
        "empty",
    ],
)
def test_a_wrong_note_of_what_was_read_changes_nothing(
    provider: Provider, damage: Callable[[dict[str, Any]], bytes]
) -> None:
    provider.enrol(200)
    assert provider.run("cosign").exit_code == 0
    good = provider.noted.read_bytes()
    provider.noted.write_bytes(damage(json.loads(good)))
    provider.enrol(203)
    for command in ("cosign", "beacon"):
        done = provider.run(command)
        assert done.exit_code == 0, done.output
    assert provider.noted.stat().st_mode & 0o777 == 0o600
    assert ReadTiles.parse(json.loads(provider.noted.read_bytes()), field="read").before().size >= 100


def test_a_witness_that_was_away_reads_everything(provider: Provider) -> None:
    """The note is of a longer log than it has cosigned, since its signature was refused or lost."""
    provider.enrol(200)
    whole = read_ending(provider.public / "window.json")
    assert (
        whole.read.entries > 100 and read_ending(provider.public / "window.json", whole.read).tree.size == 200
    )
    for since in (1, whole.read.entries - 1, whole.read.entries, 200):
        result = read_ending(provider.public / "window.json", whole.read, since=since)
        assert result.tree.consistency_path(since) == whole.tree.consistency_path(since)
        assert result.read == whole.read
    assert read_ending(provider.public / "window.json", NOTHING, since=0).tree.consistency_path(0) == []


def test_the_note_goes_with_the_window(provider: Provider) -> None:
    provider.enrol(200)
    assert provider.run("cosign").exit_code == 0 and provider.noted.exists()
    provider.ledger.close("w1", ts=1_700_000_000_000)
    provider.publish()
    done = provider.run("cosign")
    assert done.exit_code == 0, done.output
    assert list((provider.root / "w" / "read").iterdir()) == []


@pytest.mark.full
def test_a_hundred_thousand_entries(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "OPEN_TILE_BYTES", 256 << 10)
    for size in (100_000, 100_003):
        provider.enrol(size)
        with counted(ending, "leaf_hash") as hashed:
            provider.run("cosign")
        assert provider.witness.last(provider.ledger.log) == (size, provider.ledger.tree.root())
    assert hashed.count <= (256 << 10) // 100


# -- over HTTP, and the state -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memory:
    """A ledger that a provider has in memory."""

    entries: list[Any]
    tree: MerkleTree


def test_a_provider_reads_no_entries_back(provider: Provider) -> None:
    provider.enrol(200)
    for path in (provider.public / "tiles").iterdir():
        path.unlink()
    entries = [Kept(entry) for entry in provider.ledger.entries]
    tree = MerkleTree(provider.ledger.tree.leaf(n) for n in range(200))
    key = provider.ledger.key.verifier
    requested = Submitting(provider.public, key, [provider.witness.vkey], ledger=Memory(entries, tree))
    log = requested._log()
    assert log is not None and (log.size, log.last) == (200, provider.ledger.entries[-1])
    assert log.tree.consistency_path(150, log.size) == provider.ledger.consistency(150)
    for wrong in (
        Memory(entries[:-1], MerkleTree(tree.leaves(0, 199))),
        Memory(entries, MerkleTree([bytes(32)] * 200)),
    ):
        with pytest.raises(EncodingError, match="the checkpoint does not match the entries"):
            Submitting(provider.public, key, [provider.witness.vkey], ledger=wrong)._log()


@dataclass(frozen=True)
class Kept:
    data: bytes

    def canonical(self) -> bytes:
        return self.data


def test_a_witness_keeps_the_last_reveals_of_each_log(provider: Provider) -> None:
    """Its state would grow with every enrolment otherwise. What it forgot it does not reveal a second time."""
    requested: list[tuple[Any, ...]] = []
    args: dict[str, Any] = {
        "log_key": provider.ledger.key.verifier, "witnesses": [provider.witness.vkey], "quorum": 1,
    }  # fmt: skip
    commitments, notes = [], []
    waiting = provider.witness.nonce_commitment().hex()
    for number in range(STORED_REVEALS + 3):
        size = 2 * (number + 1)
        provider.enrol(size)
        entry = provider.ledger.entries[-1]
        commitments.append(json.loads(entry)["beacon"]["witnesses"][0]["commitment"])
        assert provider.run("cosign").exit_code == 0
        note = (provider.public / "notes" / f"cosign-{size}-w.example.txt").read_bytes()
        requested.append((note, entry, size - 1, provider.ledger.tree.inclusion_path(size - 1)))
        notes.append(provider.witness.reveal(note, entry, index=size - 1, path=requested[-1][3], **args))
    state = State.parse(json.loads((provider.root / "w" / "state.json").read_bytes()), field="state")
    assert set(state.nonces) == {*commitments[3:], waiting}
    for (note, entry, index, path), result in list(zip(requested, notes, strict=True))[3:]:
        assert provider.witness.reveal(note, entry, index=index, path=path, **args) == result
    note, entry, index, path = requested[2]
    with pytest.raises(WitnessRefused, match="no nonce of this witness"):
        provider.witness.reveal(note, entry, index=index, path=path, **args)
    # An offer of it is over, so that the next one is another.
    assert provider.witness.spent("elsewhere", commitments[0]) and not provider.witness.spent(
        "elsewhere", waiting
    )
    assert not provider.witness.spent("elsewhere")
