"""What a check means and what its failing can come from: explanations.toml, by a check's id without its tenant."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rag_audit._internal.errors import SetupError
from rag_audit.report.model import Explanation
from rag_audit.verify.standing import base_id

GROUPS = ("opening", "ledger", "proof", "receipt", "coalition", "bound", "trust")


@cache
def explanations() -> Mapping[str, Explanation]:
    """Every check's explanation by its id, in the order of docs/protocol.md."""
    text = resources.files("rag_audit.report").joinpath("explanations.toml").read_text(encoding="utf-8")
    return dict(_flat(tomllib.loads(text), ""))


def _flat(table: Mapping[str, Any], prefix: str) -> list[tuple[str, Explanation]]:
    if "means" in table:
        own = {k: v for k, v in table.items() if not isinstance(v, dict)}
        own["honest_causes"] = own.pop("causes")
        return [(prefix, Explanation.parse(own, field=f"explanations.{prefix}"))]
    return [
        found
        for name, inner in table.items()
        for found in _flat(inner, f"{prefix}.{name}" if prefix else name)
    ]


def explained(check: str) -> Explanation:
    """The explanation of a check, named with or without its tenant.

    :raises SetupError: there is no such check; the error names the ids that come nearest
    """
    base, _ = base_id(check.strip())
    found = explanations().get(base)
    if found is None:
        near = difflib.get_close_matches(base, explanations(), n=3, cutoff=0.5)
        raise SetupError(
            "there is no such check",
            field="CHECK",
            expected=", ".join(near) if near else "an id of docs/protocol.md",
            found=check,
            hint="rag-audit explain alone lists all of them",
        )
    return found
