"""Runs commands inside the page of `rag-audit verifier page`, on files that its reader dropped there."""

from __future__ import annotations

import io
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from rag_audit.cli import main
from rag_audit.report.browser.inside import native


def run(arguments: Sequence[str], progress: Callable[[int], None] | None = None) -> str:
    """Run the command `rag-audit` with these arguments, in this process.

    :param progress: called with the number of proofs that were verified so far
    :returns: a JSON object: `exit_code`, `stdout`, `stderr`, and by name the text of the files that `--output` named
    """
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done)

    native.progress = count
    words, out, err = [str(word) for word in arguments], io.StringIO(), io.StringIO()
    sys.argv = ["rag-audit", *words]
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(args=words, prog_name="rag-audit")
    except SystemExit as ended:
        code = ended.code
    named = [Path(after) for word, after in itertools.pairwise(words) if word == "--output"]
    return json.dumps(
        {
            "exit_code": code if isinstance(code, int) else 0,
            "stdout": out.getvalue(),
            "stderr": err.getvalue(),
            "files": {path.name: path.read_text(encoding="utf-8") for path in named if path.exists()},
        }
    )
