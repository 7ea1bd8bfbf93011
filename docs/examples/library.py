"""The library from Python: one small window from commit to verdict. `python docs/examples/library.py [FOLDER]`

Every party has a folder of its own; in production each runs on its own machine, and only the contents of `public`
and of the receipts folder travel. Proofs are by the scan argument, which needs no keys of its own.
"""

import os
import sys
import time
from pathlib import Path

from rag_audit import (
    Account,
    Embedding,
    HashTree,
    NoiseParameters,
    Period,
    PrivacyTarget,
    Publication,
    SigningKey,
    Tenants,
    Terms,
    Trust,
    Window,
    WindowFile,
    Witness,
    WitnessBeacon,
    draft_policy,
    get_embedder,
    jcs,
    leaf_hash,
    manifest_digest,
    parse_note,
    protocols_digest,
    table_digest,
    trust_template,
    verify_window,
)

os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")

# Each party makes its own keys; the provider fixes the policy.
key = SigningKey.generate("example.org/rag")
witness = Witness.init(Path("witness"), "witness.example.org")
alice = Account.create(Path("alice"), "alice", tenant="law")
now = time.time_ns() // 1_000_000
policy = draft_policy(Period("w-1", opens_at=now + 8_000, closes_at=now + 600_000), Tenants(capacities={"law": 8}),
                      PrivacyTarget(n=3, k_max=2, eps_acc="14"), noise=NoiseParameters(gains=(1, 4), lattice=64),
                      embedding=Embedding(tokens=(24, 512)), top_k=2)  # fmt: skip
texts = [
    "A contract is an agreement between parties that the law enforces.",
    "Bail is money paid to release an accused person until the trial.",
    "Copyright protects original works of authorship for a limited time.",
]
line = {"name": witness.vkey.name, "vkey": str(witness.vkey), "commitment": witness.nonce_commitment().hex()}
beacon = WitnessBeacon.parse({"source": "witnesses", "witnesses": [line]}, field="beacon")

# The verifier writes down what it knows without asking the window: keys, pins, requirements.
trust = Trust.parse({
    "version": 1,
    "provider": {"origin": "example.org/rag", "vkey": str(key.verifier)},
    "witness": [{"name": witness.vkey.name, "vkey": str(witness.vkey)}],
    "quorum": 1,
    "beacon": {"witnesses": [witness.vkey.name]},
    "account": [{"id": "alice", "key": alice.roster_entry.key}],
    "pins": {
        "noise_table": table_digest(),
        "embedder": get_embedder().manifest()["artefacts"],
        "manifest": manifest_digest(get_embedder().manifest()),
        "scan": protocols_digest(),
    },
    "require": {"max_epsilon": "20", "max_delta": "1e-5", "min_k_max": 2, "max_theta": "0.8", "min_tau": 0,
                "max_K_share": "0.25", "max_abandoned": 0, "max_score_hi": 1680, "min_score_width": 1260,
                "query_embedding": "proved", "coalition": "not-checked", "min_receipts": 1},
}, field="trust.toml")  # fmt: skip
Path("trust.toml").write_text(trust_template(trust), encoding="utf-8")


def cosigned_header(window: Window) -> list[str]:
    """What `rag-audit witness cosign` and `witness beacon` leave in public/notes, and a wait until the window opens."""
    header, checkpoint = jcs(window.header.dump()), Path("window/public/checkpoint-1.txt").read_text()
    note = witness.cosign_header(checkpoint, header, log_key=key.verifier)
    reveal = witness.reveal(note, header, log_key=key.verifier, witnesses=[witness.vkey], quorum=1)
    time.sleep(max(0, window.header.opens_at / 1000 - time.time()) + 0.01)
    return [str(note), str(reveal)]


def cosigned_end(window: Window) -> list[str]:
    """What `rag-audit witness cosign` leaves there after the window closed."""
    file = WindowFile.load(window.directory / "public")
    entries = [jcs(entry) for entry in file.entries]
    tree = HashTree(map(leaf_hash, entries))
    size, _ = witness.last(window.header.log) or (0, b"")
    closing = (entries[-1], tree.inclusion_path(tree.size - 1, tree.size))
    note = witness.cosign(parse_note(file.final_checkpoint), log_key=key.verifier,
                          consistency=tree.consistency_path(size, tree.size), trailer=closing,
                          entries=entries)  # fmt: skip
    return [str(note)]


# -- README --
window = Window.open("window", key=key, policy=policy, roster=[alice.roster_entry], documents={"law": texts},
                     terms=Terms("example.org/rag", beacon))  # fmt: skip
window.admit(cosigned_header(window))  # the witnesses' quorum, then their beacon: now the window is active
public = Publication.load(Path("window/public"))
request = alice.request(public, "What is bail?")  # signed by alice, and repeated until it is answered
reply = window.query(request).dump()
answer = alice.accept(public, request, reply, key.verifier)  # checks the answer and keeps its receipt
window.close()
window.admit(cosigned_end(window))  # the final checkpoint, cosigned
window.prove()  # window/public/window.json is complete
receipts = alice.export_receipts(public, Path("receipts"), disclose=True)
verdict = verify_window(Path("window/public"), trust=Path("trust.toml"), receipts=receipts)
print(verdict.line)
# -- end --
window.shut()
