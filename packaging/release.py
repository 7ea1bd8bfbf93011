"""Make a release: wheels, the page, the parts list, their digests, and a signature over the digests.

    python packaging/release.py --key ~/keys/rag-audit-release --out dist/release dist/*.whl dist/verify.html

The signature is OpenSSH's (``ssh-keygen -Y``) by an Ed25519 key, under a separate namespace, so that a signature of the
same key for another purpose is not valid for a release. docs/versions.md describes how to make the key and how to check
a release.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from sbom import bill

NAMESPACE = "rag-audit-release"
SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
PARTS = "sbom.cdx.json"


def _ssh(words: Sequence[str | Path], **given: object) -> subprocess.CompletedProcess[bytes]:
    command = shutil.which("ssh-keygen")
    if command is None:
        sys.exit("rag-audit: a release is signed with ssh-keygen; install it: apt-get install openssh-client")
    return subprocess.run([command, *map(str, words)], capture_output=True, **given)  # type: ignore[call-overload]


def public_key(key: Path) -> str:
    """Return the line of a private key's public half; the key must be an Ed25519 key."""
    if not key.is_file():
        sys.exit(f"rag-audit: no key at {key}; docs/versions.md says how it is made")
    if key.stat().st_mode & 0o077:
        sys.exit(f"rag-audit: others may read {key}; chmod 600 {key}")
    beside = key.with_name(f"{key.name}.pub")
    line = beside.read_text() if beside.is_file() else _ssh(["-y", "-f", key]).stdout.decode()
    if not re.match(r"ssh-ed25519 [A-Za-z0-9+/=]+", line):
        sys.exit(f"rag-audit: {key} is no Ed25519 key")
    return " ".join(line.split()[:2])


def collect(artefacts: Sequence[Path], out: Path) -> list[Path]:
    """Copy the released files into an empty folder, and write the parts list into it."""
    if not any(path.suffix == ".whl" for path in artefacts):
        sys.exit("rag-audit: a release has a wheel at least")
    if missing := [str(path) for path in artefacts if not path.is_file()]:
        sys.exit(f"rag-audit: no such file: {', '.join(missing)}")
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    for path in artefacts:
        shutil.copyfile(path, out / path.name)
    (out / PARTS).write_text(json.dumps(bill(), indent=1, sort_keys=True) + "\n")
    return sorted(out.iterdir())


def sums(files: Sequence[Path]) -> str:
    """Format digests as sha256sum writes and checks them."""
    return "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(files))


def release(artefacts: Sequence[Path], key: Path, out: Path) -> None:
    """Fill a folder, sign it, and check the signature like a recipient."""
    signer = public_key(key)
    files = collect(artefacts, out)
    (out / SUMS).write_text(sums(files))
    done = _ssh(["-Y", "sign", "-q", "-f", key, "-n", NAMESPACE, out / SUMS])
    if done.returncode or not (out / SIGNATURE).is_file():
        sys.exit(f"rag-audit: ssh-keygen did not sign: {done.stderr.decode().strip()}")
    allowed = out.parent / "release-signers.own"
    allowed.write_text(f'release namespaces="{NAMESPACE}" {signer}\n')
    if not holds(out, allowed):
        sys.exit("rag-audit: the release does not verify under its own key")
    print(f"{out}: {len(files)} files, signed by {signer}")


def holds(folder: Path, allowed: Path) -> bool:
    """Check that an allowed key signed the digests, and that the digests match all files of the folder."""
    signed = (folder / SUMS).read_bytes()
    done = _ssh(
        ["-Y", "verify", "-f", allowed, "-I", "release", "-n", NAMESPACE, "-s", folder / SIGNATURE],
        input=signed,
    )
    others = [path for path in folder.iterdir() if path.name not in (SUMS, SIGNATURE)]
    return done.returncode == 0 and signed.decode() == sums(others)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "artefacts", nargs="+", type=Path, help="wheels, and whatever else is released with them"
    )
    parser.add_argument("--key", required=True, type=Path, help="the release key's private file")
    parser.add_argument("--out", required=True, type=Path, help="the folder to fill; what is in it goes")
    options = parser.parse_args()
    release(options.artefacts, options.key, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
