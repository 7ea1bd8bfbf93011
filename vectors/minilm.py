"""Test vectors of the integer encoder (docs/minilm-int.md), by the reference in Python integers.

    python vectors/minilm.py --model FOLDER            # write vectors/v1/minilm-int.json
    python vectors/minilm.py --model FOLDER --check    # compare with the file

FOLDER has the published files of all-MiniLM-L6-v2. The small model follows from SHAKE-256
(`tests/embedders/small_bert.py`).
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rag_audit.retrieval.embedders.integer_bert.files import Files, load_files
from rag_audit.retrieval.embedders.integer_bert.published import FILE_PINS, SCALES, norm_factor
from rag_audit.retrieval.embedders.integer_bert.reference import Reference, Rows
from rag_audit.retrieval.embedders.quantise import published_scale
from rag_audit.retrieval.embedders.static import normalise
from tests.embedders import small_bert

FILE = Path(__file__).resolve().parent / "v1" / "minilm-int.json"
SMALL = ("red house", "The law of the court", "bluish fevers")
PUBLISHED = ("What is a fever?", "Who wrote the law of the sea, and when did it enter into force?")


def cases(files: Files, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Tokens, SHA-256 of each named value (int16, little-endian, row by row), the sums and the int4 vector of each
    text.
    """
    reference, out = Reference(files.model), []
    factor = norm_factor(published_scale(files.model.shape.width))
    for text in texts:
        digests: dict[str, str] = {}

        def see(layer: int, part: str, values: Rows, into: dict[str, str] = digests) -> None:
            flat = [value for row in values for value in row]
            into[f"{layer}.{part}"] = sha256(struct.pack(f"<{len(flat)}h", *flat)).hexdigest()

        tokens = files.tokenizer.encode(text).ids
        sums = reference.embed(tokens, see)
        out.append({
            "text": text, "tokens": tokens, "sha256": digests, "sums": sums,
            "vector": normalise(np.array(sums, np.int64), factor, field="text").tolist(),
        })  # fmt: skip
    return out


def described(files: Files, texts: Sequence[str]) -> dict[str, Any]:
    """A model's shape, scales, digests and cases."""
    model = files.model
    return {
        "shape": asdict(model.shape), "scales": asdict(model.scales), "integers": model.digest(),
        "tables": model.tables_digest(), "weights": files.weights, "tokenizer": files.tokenizer_digest,
        "cases": cases(files, texts),
    }  # fmt: skip


def small() -> dict[str, Any]:
    """The vectors of the small model."""
    with tempfile.TemporaryDirectory() as folder:
        files = load_files(small_bert.write(Path(folder)), small_bert.SCALES)
    return described(files, SMALL)


def published(folder: Path) -> dict[str, Any]:
    """The vectors of the published weights."""
    return described(load_files(folder, SCALES, FILE_PINS), PUBLISHED)


def main() -> int:
    """Write or compare the file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", type=Path, required=True)
    options.add_argument("--check", action="store_true")
    args = options.parse_args()
    text = json.dumps({"small": small(), "all-MiniLM-L6-v2": published(args.model)}, sort_keys=True) + "\n"
    if args.check:
        return int(FILE.read_text() != text)
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
