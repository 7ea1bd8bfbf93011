"""Windows for other verifiers: honest windows, and one for each way to misbehave (vectors/windows/README.md).

    python vectors/windows.py            # write the missing files; make each missing proof
    python vectors/windows.py --check    # make all windows from the stored proofs, compare byte for byte
    python vectors/windows.py NAME ..    # make and write these cases
    python vectors/windows.py --prune    # make all windows from the stored proofs, drop unused proofs

All contents except the proofs are functions of names. Each proof uses fresh randomness. The script therefore stores
every proof in vectors/windows/made.json, with the keys for its verification.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.simulate import generate  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--prune", action="store_true", help="drop the stored proofs that no case uses")
    parser.add_argument(
        "names", nargs="*", help="cases to write again; those that are missing if none is named"
    )
    options = parser.parse_args()
    if options.check:
        with tempfile.TemporaryDirectory() as folder:
            different = generate.compare(Path(folder))
        for name in different:
            print(f"vectors: {name} is another", file=sys.stderr)
        return int(bool(different))
    if options.prune:
        with tempfile.TemporaryDirectory() as folder:
            print(f"vectors: {generate.prune(Path(folder))} stored proofs and keys dropped", file=sys.stderr)
        return 0
    generate.write(options.names, progress=lambda name: print(name, file=sys.stderr, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
