"""Import py_ecc without its side effect.

`import py_ecc` raises the interpreter's recursion limit to 100,000, and from then on a deeply nested JSON
document ends the process with a stack overflow instead of a RecursionError. What is used here (the optimised
curves) recurses a few hundred levels at most.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def import_py_ecc(name: str) -> Any:
    """Import a module of py_ecc by its full name and leave the recursion limit as it was."""
    limit = sys.getrecursionlimit()
    try:
        return import_module(name)
    finally:
        sys.setrecursionlimit(limit)
