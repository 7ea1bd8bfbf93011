"""Known answers of the scan argument: traces, proofs under fixed nonces with the transcript's states, generators.

    python vectors/scan.py            # write the missing files to the version's folder
    python vectors/scan.py --check    # compare with the files in the version's folder

The native core's tests make the files, because only these tests can fix a prover's nonces. The script never overwrites
a file. After the first release, a change of the protocol raises `VERSION` in native/scan-protocol/src/protocol.rs, and
`VERSION` names the new folder.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
MANIFEST = ROOT.parent / "native" / "Cargo.toml"
FILES = (
    "attention.json",
    "document-table.json",
    "encoder-batch.json",
    "encoder-embed.json",
    "encoder-input.json",
    "encoder-output.json",
    "encoder.json",
    "feed-forward.json",
    "generators.json",
    "pooled-listing.json",
    "proofs.json",
    "row-names.json",
    "trace.json",
)


def folder() -> Path:
    """Return the folder of the version's files."""
    source = (ROOT.parent / "native/scan-protocol/src/protocol.rs").read_text(encoding="utf-8")
    result = re.search(r"pub const VERSION: u64 = (\d+);", source)
    if result is None:
        raise SystemExit("vectors: native/scan-protocol/src/protocol.rs has no VERSION")
    return ROOT / f"v{result[1]}" / "scan"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    if not check and all((folder() / name).exists() for name in FILES):
        print(f"vectors: {folder()} has all files: a published one is not written again", file=sys.stderr)
        return 1
    environment = dict(os.environ) if check else {**os.environ, "RAG_AUDIT_WRITE_VECTORS": "1"}
    command = ["cargo", "test", "--manifest-path", str(MANIFEST), "--release", "--locked", "--quiet"]
    result = subprocess.run(
        [*command, "-p", "ragaudit-scan-prover", "--lib", "test_vectors::"], env=environment, check=False
    )
    if result.returncode and not check:
        print("vectors: put the SHA-256 of the new trace into protocol.rs, then run --check", file=sys.stderr)
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
