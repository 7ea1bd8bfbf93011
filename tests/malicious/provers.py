"""The table of single lies, as parameters of a test."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

MALICIOUS = tomllib.loads((Path(__file__).parent / "provers.toml").read_text())


def lies(circuit: str) -> pytest.MarkDecorator:
    """Give a test each lie about a circuit: `lie`, a patch of the forger's circuit, and `breaks`, the classes of
    constraints that catch it."""
    return pytest.mark.parametrize(
        ("lie", "breaks"),
        [
            pytest.param(
                (lie["file"], lie["old"], lie["new"]),
                set(lie["breaks"]),
                id=name,
                marks=[pytest.mark.full] if lie.get("full") else [],
            )
            for name, lie in MALICIOUS[circuit].items()
        ],
    )
