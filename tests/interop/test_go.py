"""Tools that nobody here wrote, from the Go ecosystem: a C2SP witness, and readers of proofs, checkpoints and tiles.

The programs are in `client/`, `reader/` and `witness/`; their modules come from the Go module proxy, pinned by
`go.sum`. Without Go, or without a proxy that has them, these tests say so and are skipped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.attest.submitting import Remote, Submitting, WitnessSaidNo
from rag_audit.attest.window import Window
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import parse_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.submission import read_cosignature
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.publication import Publication
from rag_audit.models.records import PreviousWindow
from rag_audit.models.trust import Trust, WitnessTrust
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.export import write_tiles
from rag_audit.report.verification import verify_window
from rag_audit.service.limits import Limits
from rag_audit.service.server import Server, listen
from rag_audit.witness.http import Provider, WitnessApplication, WitnessService
from rag_audit.witness.offers import Offers
from tests.window.simulator import ORIGIN, QUESTIONS, Clock, Service
from tests.window.test_cose import window_of
from tests.window.test_export import LINE

pytestmark = pytest.mark.full
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs `client`, `reader` and `witness`."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("NOT RUN: no Go toolchain, so no independent witness and no independent reader")
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    # Which modules the programs need, without others that their authors' go.mod files name.
    fetched = subprocess.run(
        [go, "list", "-deps", "./client", "./reader", "./witness"],
        cwd=HERE, env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    if fetched.returncode and "reading http" in fetched.stderr:
        pytest.skip(f"NOT RUN: the Go module proxy does not give the pinned modules: {fetched.stderr[-400:]}")
    folder = tmp_path_factory.mktemp("go")
    built = subprocess.run(
        [go, "build", "-o", f"{folder}{os.sep}", "./client", "./reader", "./witness"],
        cwd=HERE, env=environment, capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


@dataclass
class GoWitness:
    """transparency-dev's witness, which speaks c2sp.org/tlog-witness over HTTP."""

    address: str
    vkey: VerifierKey

    @property
    def remote(self) -> Remote:
        """The witness as our client knows it."""
        return Remote(self.vkey, f"http://{self.address}", plain=True, patience_s=60)

    def ask(self, note: str, old: int = 0, proof: Sequence[bytes] = ()) -> str:
        """The checkpoint with its cosignature added.

        :raises urllib.error.HTTPError: it refuses
        """
        lines = [f"old {old}", *(base64.b64encode(h).decode() for h in proof), "", note]
        request = urllib.request.Request(
            f"http://{self.address}/add-checkpoint", data="\n".join(lines).encode()
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return note + answer.read().decode()


@pytest.fixture
def service(tmp_path: Path) -> Service:
    # The Go witness has a clock of its own: the others' is a little ahead, so that windows open in its future.
    return Service(tmp_path, clock=Clock(int(time.time() * 1000) + 600_000))


@pytest.fixture
def go_witness(programs: Path, service: Service) -> Iterator[GoWitness]:
    arguments = ["--origin", ORIGIN, "--vkey", str(service.key.verifier), "--name", "witness.example.net"]
    process = subprocess.Popen(
        [programs / "witness", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, "the witness did not start"
        said = json.loads(line)
        yield GoWitness(said["address"], VerifierKey.parse(said["vkey"]))
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


def trust_with(service: Service, window: Window, witness: GoWitness) -> Trust:
    """All three witnesses must have cosigned; the beacon is the two that know our rules."""
    trust = service.trust(window.policy)
    third = WitnessTrust(name=witness.vkey.name, vkey=str(witness.vkey))
    return trust.model_copy(update={"quorum": 3, "witness": [*trust.witness, third]})


def taken(path: Path | None) -> str:
    """A note that our client left, which has it from the witness."""
    assert path is not None
    return path.read_text()


def run(service: Service, witness: GoWitness, name: str, previous: PreviousWindow | None) -> Window:
    """One window with three witnesses, from its opening to its proofs."""
    known = [*(w.vkey for w in service.witnesses.values()), witness.vkey]
    window = service.commit(name, previous=previous, window=name, witnesses=known)
    public = window.directory / "public"
    requested = Submitting(public, service.key.verifier, known)
    window.admit([taken(requested.cosign(witness.remote))])
    service.cosign_header(window)
    assert window.status == "active"
    service.clock.now = window.header.opens_at
    service.ask(window, "law-1", QUESTIONS["law"][0])
    service.finish(window)
    assert window.status == "closed"  # not final: the third is still to cosign
    window.admit([taken(requested.cosign(witness.remote))])
    assert window.status == "final"
    window.prove()
    service.clock.now = window.header.closes_at + 1
    return window


def test_an_independent_witness_cosigns_two_windows_in_a_row(service: Service, go_witness: GoWitness) -> None:
    with run(service, go_witness, "w-1", None) as first:
        before = WindowFile.load(first.directory / "public")
    previous = ClosedWindow.of(before, field="window.json").as_previous()
    with run(service, go_witness, "w-2", previous) as second:
        receipts = service.receipts(second, service.root / "receipts")
        trust = trust_with(service, second, go_witness)
        verdict = verify_window(second.directory / "public", trust=trust, receipts=[receipts],
                                previous=[first.directory / "public"])  # fmt: skip
    assert verdict.passed, verdict.deciding
    quorums = {c.id: c.actual for c in verdict.checks if c.id.endswith(".quorum")}
    assert quorums == dict.fromkeys(("header.quorum", "ledger.quorum"), "w1, w2, witness.example.net")


def test_an_independent_witness_refuses_what_is_no_log(service: Service, go_witness: GoWitness) -> None:
    """What it says of two trees under one line, as all windows of a provider once were."""
    with run(service, go_witness, "w-1", None) as window:
        final = Checkpoint.parse(
            parse_note(WindowFile.load(window.directory / "public").final_checkpoint).text
        )
    fresh = Checkpoint(final.origin, 1, hashlib.sha256(b"the next window's opening").digest())
    for head, old in ((fresh, 0), (fresh, 1), (fresh, final.size)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            go_witness.ask(str(head.sign(service.key)), old)
        assert refused.value.code in (400, 409)
        refused.value.close()
    other = Checkpoint("example.org/other/w-1", 1, fresh.root)
    with pytest.raises(urllib.error.HTTPError) as refused:
        go_witness.ask(str(other.sign(service.key)))
    assert refused.value.code == 404
    refused.value.close()


def test_our_client_follows_an_independent_witness_s_conflicts(
    service: Service, go_witness: GoWitness
) -> None:
    """The witness knows another size than our client expects, and says so in its own words; a fork it refuses."""
    known = [*(w.vkey for w in service.witnesses.values()), go_witness.vkey]
    with service.commit("w-1", window="w-1", witnesses=known) as window:
        public = window.directory / "public"
        requested = Submitting(public, service.key.verifier, known)
        window.admit([taken(requested.cosign(go_witness.remote))])
        service.cosign_header(window)
        service.clock.now = window.header.opens_at
        service.ask(window, "law-1", QUESTIONS["law"][0])
        service.finish(window)
        file = WindowFile.load(public)
        tree = HashTree(leaf_hash(jcs(e)) for e in file.entries)
        # Somebody else has submitted a checkpoint in between, so the size that our client expects is another.
        middle = Checkpoint(window.header.log, 2, tree.root(2)).sign(service.key)
        go_witness.ask(str(middle), 1, tree.consistency_path(1, 2))
        window.admit([taken(requested.cosign(go_witness.remote))])
        assert window.status == "final"
    other = Checkpoint(file.final_head().origin, tree.size + 1, bytes(32)).sign(service.key)
    with pytest.raises(WitnessSaidNo) as refused:
        requested._follow(
            go_witness.remote, other, HashTree([leaf_hash(b"fork")] * (tree.size + 1)), tree.size
        )
    assert "422" in str(refused.value.actual)


def test_an_independent_client_submits_to_our_witness(
    programs: Path, service: Service, tmp_path: Path
) -> None:
    """transparency-dev's client of tlog-witness: growth, a conflict that it names, a proof that does not hold."""
    member, limits = service.witnesses["w1"], Limits()
    window = service.open()
    service.ask(window, "law-1", QUESTIONS["law"][0])
    provider = Provider(ORIGIN, service.key.verifier)
    app = WitnessApplication(
        WitnessService(member, Offers(tmp_path / "w1", member), [provider]), limits, print
    )
    entries = [jcs(e.dump()) for e in window.state.entries]
    tree, log = HashTree(leaf_hash(e) for e in entries), window.header.log
    window.shut()
    note = Checkpoint(log, tree.size, tree.root()).sign(service.key)
    checkpoint = tmp_path / "checkpoint"
    checkpoint.write_text(str(note))

    def submit(url: str, old: int, path: Sequence[bytes]) -> str:
        hashes = [base64.b64encode(h).decode() for h in path]
        done = subprocess.run([programs / "client", url, checkpoint, str(old), *hashes],
                              capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
        return done.stdout if done.returncode == 0 else f"refused: {done.stderr.strip()}"

    with Server(app, listen("127.0.0.1", 0), limits) as server:
        server.start()
        assert submit(server.url, 0, []).strip() == "conflict: 1"
        assert "proof" in submit(server.url, 1, [bytes(32)])
        lines = submit(server.url, 1, tree.consistency_path(1))
    signed = read_cosignature(note, lines.encode(), member.vkey, field="w1")
    assert len(signed.signatures) == 2 and member.last(log) == (tree.size, tree.root())


def read(programs: Path, *arguments: object) -> str:
    done = subprocess.run(
        [programs / "reader", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout.strip() if done.returncode == 0 else f"refused: {done.stderr.strip()}"


def test_independent_readers_read_proofs_and_tiles(programs: Path, service: Service, tmp_path: Path) -> None:
    window = service.open()
    for number in range(2):
        service.ask(window, "law-1", QUESTIONS["law"][number])
    service.finish(window)
    public, log, key = window.directory / "public", window.header.log, str(service.key.verifier)
    window.shut()
    file = WindowFile.load(public)
    witnesses = [str(w.vkey) for w in service.witnesses.values()]
    folder = tmp_path / "proofs"
    service.accounts["law-1"].export_tlog_proofs(Publication.load(public), file, folder, service.key.verifier)
    for number, index in ((1, 2), (2, 3)):
        proof, entry = folder / f"law-1-{number}.tlog-proof", folder / f"law-1-{number}.entry"
        result = read(programs, "tlog-proof", proof, entry, log, key, *witnesses)
        assert result == f"{index} {len(file.entries)} 2"
    swapped = read(programs, "tlog-proof", proof, folder / "law-1-1.entry", log, key, *witnesses)
    assert swapped.startswith("refused")
    assert read(programs, "tlog-proof", proof, entry, ORIGIN, key).startswith("refused")
    # The same ledger as static files.
    tiles = tmp_path / "tiles"
    write_tiles(file, tiles)
    digest = hashlib.sha256(b"".join(jcs(e) for e in file.entries)).hexdigest()
    assert read(programs, "tiles", tiles, log, key) == f"{len(file.entries)} {digest}"
    bundle = next((tiles / "tile" / "entries").rglob("*.p/*"))
    bundle.write_bytes(bundle.read_bytes().replace(b'"closing"', b'"cloSing"'))
    assert read(programs, "tiles", tiles, log, key).startswith("refused")


def test_growth_by_gos_tree_check_alone(programs: Path, tmp_path: Path) -> None:
    """An earlier checkpoint of another root that the log's own key signed: every tile is the later tree's, so nothing
    but the consistency check can refuse it."""
    key = SigningKey("example.org/rag", 1, b"k" * 32)
    file = window_of(key)
    head, hashes = file.final_head(), [leaf_hash(jcs(e)) for e in file.entries]
    tree = HashTree(hashes)
    tiles, old = tmp_path / "tiles", tmp_path / "old"
    write_tiles(file, tiles)
    for root, result in ((tree.root(5), f"5 {head.size}"), (tree.root(4), "refused")):
        old.write_text(str(Checkpoint(head.origin, 5, root).sign(key)))
        told = read(programs, "grown", old, tiles, head.origin, key.verifier)
        assert told.startswith(result)


def test_our_consistency_proofs_are_gos(programs: Path, tmp_path: Path) -> None:
    """Each pair of sizes up to 9: the hashes of our proof, and not one of them less or another."""
    key = SigningKey("example.org/rag", 1, b"k" * 32)
    tree = HashTree(leaf_hash(bytes([i])) for i in range(9))
    places = {size: tmp_path / str(size) for size in range(1, 10)}
    for size, place in places.items():
        place.write_text(str(Checkpoint("log.example", size, tree.root(size)).sign(key)))

    def told(m: int, n: int, proof: Sequence[bytes]) -> str:
        encoded = [base64.b64encode(h).decode() for h in proof]
        return read(programs, "consistent", places[m], places[n], "log.example", key.verifier, *encoded)

    for n in places:
        for m in range(1, n + 1):
            proof = tree.consistency_path(m, n)
            assert told(m, n, proof) == f"{m} {n}"
            if proof:
                assert told(m, n, proof[:-1]).startswith("refused")
                assert told(m, n, [*proof[:-1], bytes(32)]).startswith("refused")
            assert told(m, n, [*proof, bytes(32)]).startswith("refused")


def test_the_line_limit_of_gos_reader_is_the_one_in_the_docs(
    programs: Path, service: Service, tmp_path: Path
) -> None:
    entry = tmp_path / "entry"
    entry.write_bytes(b"{}")
    note = Checkpoint("log.example", 1, leaf_hash(b"{}")).sign(service.key)
    for line, passes in ((LINE, True), (LINE + 3, False)):
        extra = bytes((line - len("extra ")) // 4 * 3)
        text = str(TlogProof(0, (), note, extra))
        longest = max(len(part) for part in text.encode().split(b"\n"))
        assert LINE - 4 < longest <= LINE if passes else longest > LINE
        path = tmp_path / "receipt"
        path.write_text(text)
        result = read(programs, "tlog-proof", path, entry, "log.example", str(service.key.verifier))
        assert (result == "0 1 0") is passes, result
