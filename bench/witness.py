"""The cost of one more enrolment for a witness: `python -m bench.witness --accounts 1000 10000 [--json]`.

A window is open. N accounts have joined it one after the other, and this witness has cosigned and revealed for each.
Then a few more accounts join, and each time the witness runs `witness cosign` and `witness beacon` over the published
files. The script measures the processor time of these commands in one process that has loaded the package.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from bench.common import Cost, by_figure, emit, measured, parser
from rag_audit._internal.canonical import digest_hex, read_json
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit.attest.publishing import GrowingFile
from rag_audit.cli import main as command
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.signing import SigningKey
from rag_audit.log.tree import MerkleTree
from rag_audit.models.beacon import nonce_commitment
from rag_audit.models.publication import PUBLICATION, Publication
from rag_audit.models.records import BeaconEntry, Enrolment, Entry, WindowHeader, log_origin
from rag_audit.models.trust import Require, Trust
from rag_audit.models.trust_template import trust_template
from rag_audit.models.windowfile import MEDIA_TYPE, WindowFile
from rag_audit.witness.rules import Nonce, Revealed, State
from rag_audit.witness.witness import Witness

ORIGIN, WINDOW = "bench.example/rag", "w-1"
ZERO = "00" * 32
STRICT = {"max_epsilon": "60", "max_delta": "1e-5", "min_k_max": 2, "max_theta": "0.8", "min_tau": 0,
          "max_K_share": "0.25",
          "max_abandoned": 0, "max_score_hi": 1680, "min_score_width": 1260, "query_embedding": "re-executed",
          "coalition": "not-checked", "min_receipts": 1, "allow_unsafe_setup": False}  # fmt: skip


class Bench:
    """The part of a provider's public folder that a witness reads, and one witness."""

    def __init__(self, root: Path) -> None:
        self.root, self.public = root, root / "public"
        self.public.mkdir()
        self.key = SigningKey.generate(ORIGIN)
        self.witness = Witness.init(root / "witness", "witness")
        self.now = int(time.time() * 1000)
        header = {
            "type": "header", "v": 1, "origin": ORIGIN, "window": WINDOW, "opens_at": self.now + 3_600_000,
            "closes_at": self.now + 7_200_000, "previous": None, "c_emb": ZERO, "c_seed": ZERO, "c_policy": ZERO,
            "beacon": {"source": "drand", "chain": ZERO, "round": 1}, "roster": {"root": ZERO, "count": 0},
            "tenants": {"root": ZERO, "count": 0}, "ledger": ZERO,
        }  # fmt: skip
        self.header = WindowHeader.parse(header, field="header")
        self.entries: list[Entry] = []
        self.tree = MerkleTree()
        self.growing = GrowingFile(self.public / "window.json")
        publication = Publication(mediaType=PUBLICATION, header=self.header.dump(), policy={}, embedder={}, roster=[],
                                  tenants=[])  # fmt: skip
        replace_file(self.public / "header.json", publication.canonical())
        trust = Trust.parse({
            "version": 1, "quorum": 1, "provider": {"origin": ORIGIN, "vkey": str(self.key.verifier)},
            "witness": [{"name": "witness", "vkey": str(self.witness.vkey)}], "beacon": {"witnesses": ["witness"]},
            "pins": {"noise_table": ZERO, "manifest": ZERO, "scan": ZERO},
            "require": Require.parse(STRICT, field="require"),
        }, field="trust.toml")  # fmt: skip
        (root / "trust.toml").write_text(trust_template(trust))
        self._append(self.header)
        (self.public / "checkpoint-1.txt").write_text(self._checkpoint())

    def run(self, joined: int, more: int) -> dict[str, Cost]:
        """Return the costs of the two commands, summed over the last enrolments."""
        self._command("cosign")
        for number in range(joined):
            self._join(number, ZERO)
        self._past()
        total = {"cosign": Cost(0, 0, 0), "beacon": Cost(0, 0, 0)}
        for number in range(more + 1):
            self._join(joined + number, self.witness.nonce_commitment().hex(), publish=True)
            for step in total:
                cost, _ = measured(lambda step=step: self._command(step))  # type: ignore[misc]
                if number:  # the first run reads everything, in any case
                    total[step] = Cost(*map(sum, zip(total[step], cost, strict=True)))
        return {step: Cost(*(figure / more for figure in cost)) for step, cost in total.items()}

    def _join(self, number: int, commitment: str, *, publish: bool = False) -> None:
        member = {"name": "witness", "vkey": str(self.witness.vkey), "commitment": commitment}
        at = len(self.entries)
        line = {"type": "enrolment", "v": 1, "seq": at, "ts": self.now, "account": f"account-{number}", "tenant": "law",
                "key": digest_hex(number), "custody": "account",
                "beacon": {"source": "witnesses", "witnesses": [member]}}  # fmt: skip
        self._append(Enrolment.parse(line, field="enrolment"))
        if publish:
            self._publish()
        note = self._checkpoint()
        drawn = {"type": "beacon", "v": 1, "seq": at + 1, "entry": at, "source": "witnesses", "value": ZERO,
                 "notes": [note], "checkpoint": note}  # fmt: skip
        self._append(BeaconEntry.parse(drawn, field="beacon"))

    def _past(self) -> None:
        """Write the witness's state after the earlier enrolments, and its notes in the folder."""
        log, nonces, size = log_origin(ORIGIN, WINDOW), {}, len(self.entries)
        path = self.root / "witness/state.json"
        state = State.parse(read_json(path, max_bytes=1 << 20), field="state")
        for at in range(1, size, 2):
            done = Revealed(
                origin=ORIGIN, window=WINDOW, size=at + 1, root=self.tree.root(at + 1).hex(), ts=self.now
            )
            nonce = leaf_hash(at.to_bytes(8, "big"))
            nonces[nonce_commitment(nonce).hex()] = Nonce(nonce=nonce.hex(), revealed=done)
            for kind in ("cosign", "beacon"):
                (self.public / "notes" / f"{kind}-{at + 1}-witness.txt").write_text(self._checkpoint(at + 1))
        last = state.logs[log].model_copy(update={"size": size, "root": self.tree.root(size).hex()})
        state = state.model_copy(update={"logs": {log: last}, "nonces": nonces})
        replace_file(path, state.canonical(), mode=PRIVATE_MODE)
        self._publish()

    def _append(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.tree.append(leaf_hash(entry.canonical()))

    def _checkpoint(self, size: int | None = None) -> str:
        n = len(self.entries) if size is None else size
        return str(Checkpoint(log_origin(ORIGIN, WINDOW), n, self.tree.root(n)).sign(self.key))

    def _publish(self) -> None:
        head = WindowFile(
            mediaType=MEDIA_TYPE, entries=[], header_checkpoint="", final_checkpoint=self._checkpoint(), policy={},
            embedder={}, roster=[], tenants=[], verification_keys={}, proofs={}, challenges=[], coalition_proof=None,
        )  # fmt: skip
        self.growing.save(head, self.entries)

    def _command(self, name: str) -> None:
        words = [
            "witness",
            name,
            str(self.root / "witness"),
            str(self.public),
            "--trust",
            str(self.root / "trust.toml"),
        ]
        done = CliRunner().invoke(command, words)
        if done.exit_code:
            raise SystemExit(done.output)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--accounts", type=int, nargs="+", default=[1000], help="how many joined before")
    options.add_argument("--more", type=int, default=10, help="how many join while it is measured")
    given = options.parse_args()
    results: dict[str, Any] = {}
    for accounts in given.accounts:
        with tempfile.TemporaryDirectory() as root:
            costs = Bench(Path(root)).run(accounts, given.more)
        results[str(accounts)] = by_figure(costs)
    emit({"accounts": given.accounts, "an_enrolment": results}, as_json=given.json)


if __name__ == "__main__":
    main()
