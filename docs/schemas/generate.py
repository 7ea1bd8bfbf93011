"""Write the JSON Schemas of the published formats, from the models that parse them.

    python docs/schemas/generate.py          write docs/schemas/*.json
    python docs/schemas/generate.py --check  compare; exit 1 if a committed schema is not the model's

A schema states fields, types, patterns and ranges. What no schema can say (field elements below r, canonical JSON,
duplicate keys, signatures, digests) is in docs/protocol.md and refused by the models and checks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rag_audit.models.attacks import AttackRun
from rag_audit.models.bundle import Manifest
from rag_audit.models.enrolling import EnrolmentAnswer, EnrolmentRequest
from rag_audit.models.models import Model
from rag_audit.models.names import NamesAnswer, NamesRequest
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.records import (
    BeaconEntry,
    BeaconWitness,
    CountersignedReceipt,
    Enrolment,
    QueryRecord,
    RosterEntry,
    SampleEntry,
    SignedReceiptBody,
    TenantEntry,
    WindowHeader,
    WindowTrailer,
)
from rag_audit.models.requests import Answer, Refusal, SignedRequest
from rag_audit.models.tiles import ReceiptTiles, Tile
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import TiledParts, WindowFile
from rag_audit.report.model import Report, ShortReport

HERE = Path(__file__).resolve().parent

MODELS: dict[str, type[Model]] = {
    "answer": Answer,
    "attacks": AttackRun,
    "beacon": BeaconEntry,
    "bundle": Manifest,
    "beacon-witness": BeaconWitness,
    "trailer": WindowTrailer,
    "countersigned-receipt": CountersignedReceipt,
    "enrolment": Enrolment,
    "enrolment-answer": EnrolmentAnswer,
    "enrolment-request": EnrolmentRequest,
    "sample": SampleEntry,
    "header": WindowHeader,
    "header-publication": Publication,
    "names": NamesAnswer,
    "names-request": NamesRequest,
    "policy": Policy,
    "query": QueryRecord,
    "receipt-body": SignedReceiptBody,
    "receipts": ReceiptTiles,
    "refusal": Refusal,
    "report": Report,
    "report-short": ShortReport,
    "request": SignedRequest,
    "roster-line": RosterEntry,
    "tenant": TenantEntry,
    "tile": Tile,
    "trust": Trust,
    "window": WindowFile,
    "window-tiles": TiledParts,
}


def schemas() -> dict[str, str]:
    """File name and text of every schema."""
    result = {}
    for name, model in MODELS.items():
        schema: dict[str, Any] = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:rag-audit:schema:{name}:1",
            **model.model_json_schema(mode="validation"),
        }
        result[f"{name}.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return result


def main(arguments: list[str]) -> int:
    result = schemas()
    if arguments == ["--check"]:
        committed = {p.name: p.read_text(encoding="utf-8") for p in HERE.glob("*.json")}
        wrong = sorted(n for n in result.keys() | committed.keys() if result.get(n) != committed.get(n))
        print(
            "\n".join(f"not the model's schema: {n}" for n in wrong),
            end="\n" if wrong else "",
            file=sys.stderr,
        )
        return int(bool(wrong))
    for name, text in result.items():
        (HERE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
