"""Repetition of single cases of a campaign."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol


class Cases(Protocol):
    """A campaign, which creates each case from only its name."""

    def case(self, name: str) -> Any:
        """Run one case: what became of it."""


def made_again(campaign: Callable[[Path], Cases], names: Sequence[str]) -> int:
    """Run cases by their names, print what becomes of each, and return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        cases = campaign(Path(folder))
        for name in names:
            print(name, cases.case(name))
    return 0
