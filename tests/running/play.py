"""A run with everybody else played by the test: witnesses who look at the public folder, accounts who ask, a
verifier."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import jcs
from rag_audit.log.merging import merge_signatures
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import parse_note
from rag_audit.models.publication import Publication
from rag_audit.models.requests import Answer
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.directory import RunDirectory
from rag_audit.service.running.jobs import Jobs
from rag_audit.service.running.supervisor import Supervisor
from rag_audit.witness.witness import Witness
from tests.window.simulator import EMBEDDER, ORIGIN, TEXTS, Service

LASTS, LEAD = 600_000, 60_000


class Play:
    """One provider's run in a folder, and the other parties around it.

    :param changes: of provider.toml, by table
    """

    def __init__(self, root: Path, service: Service | None = None, **policy: Any) -> None:
        self.root = root
        self.service = service or Service(root)
        self.said: list[str] = []
        self.remote: dict[str, dict[str, Any]] = {}
        self.service.key.save(root / "key")
        drawn = self.service.policy(system="scan", **policy)
        (root / "policy.json").write_text(json.dumps(drawn.dump()))
        roster = [a.roster_entry.dump() for a in self.service.accounts.values()]
        (root / "roster.json").write_text(json.dumps(roster))
        (root / "nonces").mkdir()
        self.documents(TEXTS)
        self.configure()
        self.nonces()

    @property
    def clock(self) -> Any:
        return self.service.clock

    @property
    def folder(self) -> Path:
        return self.root / "run"

    def public(self, window: str) -> Path:
        return self.folder / "windows" / window / "public"

    def configure(self, **tables: Mapping[str, Any]) -> Path:
        """Write provider.toml."""
        values: dict[str, dict[str, Any]] = {
            "documents": {"folder": "docs", "vectors": "cache/vectors", "embedder": EMBEDDER},
            "schedule": {
                "lasts": f"{LASTS // 1000}s",
                "lead": f"{LEAD // 1000}s",
                "prepare": "5m",
                "windows": 2,
            },
            "serve": {"socket": "socket"},
            "proving": {"workers": 0},
        }
        lines = [
            'folder = "run"',
            'key = "key"',
            f'origin = "{ORIGIN}"',
            'policy = "policy.json"',
            'roster = "roster.json"',
        ]
        for table in values.keys() | tables.keys():
            lines.append(f"[{table}]")
            lines += [
                f"{k} = {json.dumps(v)}"
                for k, v in {**values.get(table, {}), **tables.get(table, {})}.items()
            ]
        for name, witness in self.service.witnesses.items():
            lines += ["[[witness]]", f'name = "{name}"', f'vkey = "{witness.vkey}"']
            lines += [f"{k} = {json.dumps(v)}" for k, v in self.remote.get(name, {}).items()]
        path = self.root / "provider.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def documents(self, texts: Mapping[str, Sequence[str]]) -> None:
        (self.root / "docs").mkdir(exist_ok=True)
        for tenant, own in texts.items():
            lines = "".join(json.dumps({"text": text}) + "\n" for text in own)
            (self.root / "docs" / f"{tenant}.jsonl").write_text(lines)

    def nonces(self, count: int = 3, *names: str) -> None:
        """Nonce lines of the witnesses."""
        for name in names or self.service.witnesses:
            witness = self.service.witnesses[name]
            for _ in range(count):
                commitment = witness.nonce_commitment().hex()
                line = {"name": name, "vkey": str(witness.vkey), "commitment": commitment}
                (self.root / "nonces" / f"{name}-{commitment[:8]}.json").write_text(json.dumps(line))

    def supervisor(self, jobs: Jobs | None = None) -> Supervisor:
        config = RunConfig.load(self.root / "provider.toml")
        return Supervisor(config, RunDirectory(config.folder, config.told.schedule.prefix), self.service.key,
                          say=self.said.append, clock=self.clock, jobs=jobs or Jobs(inline=True))  # fmt: skip

    def settle(self, supervisor: Supervisor, until: Callable[[], bool] = lambda: False) -> list[str]:
        """Steps until there is nothing to do."""
        acts: list[str] = []
        while not until() and (act := supervisor.step()) is not None:
            acts.append(act)
            assert len(acts) < 100, acts
        return acts

    # -- the others ------------------------------------------------------------------------------------------

    def witness(self, window: str, *names: str) -> None:
        """What the witnesses do when they look: cosign the opening or the end, then reveal."""
        public = self.public(window)
        (public / "notes").mkdir(exist_ok=True)
        chosen = {n: w for n, w in self.service.witnesses.items() if not names or n in names}
        ended = public / "window.json"
        file = WindowFile.load(public) if ended.exists() else None
        if file is not None and dict(file.entries[-1]).get("type") == "trailer":  # type: ignore[arg-type]
            for name, witness in chosen.items():
                self._cosign_end(public, name, witness, file)
            return
        publication = Publication.load(public)
        entry, text = jcs(publication.header), (public / "checkpoint-1.txt").read_text()
        for name, witness in chosen.items():
            note = witness.cosign_header(text, entry, log_key=self.service.key.verifier)
            (public / "notes" / f"cosign-1-{name}.txt").write_text(str(note))

    def reveal(self, window: str) -> None:
        public = self.public(window)
        entry, text = jcs(Publication.load(public).header), (public / "checkpoint-1.txt").read_text()
        notes = [
            parse_note(text),
            *(parse_note(p.read_text()) for p in (public / "notes").glob("cosign-1-*.txt")),
        ]
        keys = [w.vkey for w in self.service.witnesses.values()]
        merged = merge_signatures(notes, [self.service.key.verifier, *keys])
        for name, witness in self.service.witnesses.items():
            note = witness.reveal(
                merged, entry, log_key=self.service.key.verifier, witnesses=keys, quorum=len(keys)
            )
            (public / "notes" / f"beacon-1-{name}.txt").write_text(str(note))

    def _cosign_end(self, public: Path, name: str, witness: Witness, file: WindowFile) -> None:
        entries = [jcs(e) for e in file.entries]
        tree = HashTree(leaf_hash(e) for e in entries)
        known = witness.last(Publication.load(public).parsed_header().log)
        assert known is not None
        note = witness.cosign(
            file.final_checkpoint,
            log_key=self.service.key.verifier,
            consistency=tree.consistency_path(known[0], tree.size),
            trailer=(entries[-1], tree.inclusion_path(tree.size - 1, tree.size)),
            entries=entries,
        )
        (public / "notes" / f"cosign-{tree.size}-{name}.txt").write_text(str(note))

    def activate(self, supervisor: Supervisor, window: str) -> list[str]:
        """From a published opening to its time.

        :returns: what the run did
        """
        self.witness(window)
        acts = self.settle(supervisor)
        self.clock.advance(1_000)
        self.reveal(window)
        acts += self.settle(supervisor)
        opens = Publication.load(self.public(window)).parsed_header().opens_at
        self.clock.now = max(self.clock.now, opens)
        return acts

    def ask(self, supervisor: Supervisor, window: str, account: str, text: str) -> Answer:
        self.clock.advance(7)

        def send(request: Any) -> Any:
            return json.loads(supervisor.served.handle(json.loads(request.canonical())).canonical())

        return self.service.accounts[account].ask(
            Publication.load(self.public(window)), text, self.service.key.verifier, send
        )

    def verdict(self, window: str, receipts: Path, *previous: str) -> ReportedVerdict:
        publication = Publication.load(self.public(window))
        for account in self.service.accounts.values():
            account.export_receipts(publication, receipts, disclose=True)
        return verify_window(
            WindowFile.load(self.public(window)),
            trust=self.service.trust(publication.parsed_policy()),
            receipts=[receipts],
            previous=[self.public(name) / "window.json" for name in previous],
        )
