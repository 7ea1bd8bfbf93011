"""A proof of the version before this one, whose rounds bound one variable each: it is refused by name, never accepted."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import digest_hex
from rag_audit.errors import EncodingError, SchemaError
from rag_audit.proofs.backends.reference import embed
from rag_audit.proofs.backends.reference.index import Index
from rag_audit.proofs.backends.scan.embed import verify_embed
from rag_audit.proofs.backends.scan.key import PROTOCOL, VERSION, EmbedArgument, EmbedKey
from rag_audit.proofs.backends.scan.system import SYSTEM
from rag_audit.proofs.statements.embed import EmbedStatement
from tests.scan.golden import Golden, numbers

FORMER: dict[str, Any] = json.loads(Path(__file__).with_name("former.json").read_text(encoding="utf-8"))


def test_its_name_is_that_of_another_release() -> None:
    named = {"system": "scan", "version": FORMER["version"], "argument": FORMER["argument"]}
    assert digest_hex({**named, "claims": ["A2", "A3", "A4"]}) == FORMER["protocol"] != PROTOCOL
    assert FORMER["version"] == VERSION - 1
    file = {"system": "scan", "protocol": FORMER["protocol"], "certificate": "", "proof": ""}
    with pytest.raises(SchemaError) as refused:
        SYSTEM.parse_proof(file, PROTOCOL, field="proof")
    assert refused.value.field == "proof.protocol" and refused.value.found == FORMER["protocol"]


def test_its_proof_is_no_proof_of_this_version() -> None:
    made = FORMER["embed"]
    argument = EmbedArgument(made["tokens"], made["dimension"], made["vocabulary"], made["norm_factor"])
    key = EmbedKey(argument, base64.b64decode(made["table"]))
    assert key.digest.hex() == made["table_digest"]
    context, hq, cq = numbers(made, "context", "hq", "cq")
    proof = base64.b64decode(made["proof"])
    with pytest.raises(EncodingError) as refused:
        verify_embed(key, proof, EmbedStatement(context, key.root, hq, cq))
    assert refused.value.field == "proof"
    table = Index.decode(key.points, made["dimension"], made["vocabulary"] + 1)
    asked = embed.Embedded(context, table, made["tokens"], made["norm_factor"], hq, cq)
    with pytest.raises(EncodingError):
        Golden(embed.RUN, asked, embed.read, made).holds(proof)
