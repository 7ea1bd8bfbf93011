"""The build that `pip install .` runs: it checks for a toolchain and then calls maturin.

Without Cargo, maturin would download Rust into a temporary folder, and pip would show no progress for minutes. This
module therefore lists the missing tools and stops, unless RAG_AUDIT_FETCH_RUST=1 asks for the download.
"""

import os
import shutil
import sys

_MISSING = []
if shutil.which("cargo") is None and os.environ.get("RAG_AUDIT_FETCH_RUST") != "1":
    _MISSING.append("a Rust toolchain (1.89 or newer; curl https://sh.rustup.rs -sSf | sh)")
if shutil.which("cc") is None:
    _MISSING.append("a C compiler to link with (cc; apt-get install gcc)")
if _MISSING:
    sys.exit(
        f"rag-audit: this compiles the Rust core, which takes minutes; missing: {', and '.join(_MISSING)}.\n"
        "  RAG_AUDIT_FETCH_RUST=1 lets maturin fetch Rust into a temporary folder for this build alone.\n"
        "  A wheel needs no compiler: pip install ragaudit_zk-*.whl (`make wheels` builds it on another machine)."
    )

os.environ.setdefault("MATURIN_NO_MISSING_BUILD_BACKEND_WARNING", "1")  # this module wraps maturin

from maturin import *  # noqa: E402, F403
