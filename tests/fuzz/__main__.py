"""Repeat cases by their names, or run a range: ``python -m tests.fuzz "window/17" "policies/0-999"``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.fuzz.targets import Bench, Broken, run_case

for argument in sys.argv[1:]:
    target, _, numbers = argument.rpartition("/")
    first, _, last = numbers.partition("-")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for number in range(int(first), int(last or first) + 1):
            try:
                run_case(target, number, bench)
            except Broken as exc:
                print(exc, flush=True)
