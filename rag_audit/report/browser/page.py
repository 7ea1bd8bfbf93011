"""Assembles the page: one self-contained HTML file. Its content security policy forbids network access."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from rag_audit import __version__, _native
from rag_audit._internal.node import circuits_dir
from rag_audit.report.browser.assets import RUNTIME, assets_folder, native_module

MAX_CAPACITY = 1 << 20
"""Maximum positions of an index that a page verifies."""
MAX_BYTES = 512 << 20
"""Maximum total bytes of all files: the module's memory contains them several times."""
_PACKAGES = ("_internal", "cli", "commit", "estimate", "lab/empirical", "log", "mechanisms", "models", "proofs",
             "relation", "report", "retrieval", "verify")  # fmt: skip
"""The packages in the page: the command's and all below the verifier."""
_METADATA = "Metadata-Version: 2.1\nName: ragaudit-zk\nVersion: {}\n"
_DATED = (1980, 1, 1, 0, 0, 0)


def make_page() -> bytes:
    """The page, the same bytes for the same release.

    :raises SetupError: a part is missing or altered, or cannot be downloaded
    """
    folder = assets_folder()
    parts = {name: (folder / "runtime" / name).read_bytes() for name in RUNTIME}
    # The page contains none of the lock's packages, so the written lock only keeps the interpreter's build information.
    lock = json.loads(parts.pop("pyodide-lock.json"))
    parts["lock.json"] = json.dumps({"info": lock["info"], "packages": {}}).encode()
    parts["native.wasm"] = native_module()
    parts["generators.bin"] = _native.scan_generators()
    parts["site.zip"] = _site(folder / "packages")
    style, worker = _asset("page.css"), _asset("worker.js")
    script = '"use strict";\n' + _asset("roles.js") + _asset("page.js")
    for name, value in (("MAX_CAPACITY", MAX_CAPACITY), ("MAX_BYTES", MAX_BYTES)):
        script = script.replace(f"/*{name}*/ 0", str(value))
    parts["worker.js"] = worker.encode()
    return (
        Template(_asset("page.html"))
        .substitute(
            policy=_policy(style, script),
            version=escape(__version__),
            style=style,
            script=script,
            parts="\n".join(
                f'<script type="text/plain" id="{name}">{_packed(data)}</script>'
                for name, data in parts.items()
            ),
        )
        .encode()
    )


def _policy(style: str, script: str) -> str:
    """The content security policy: no network address, and only content of the page itself."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(script)} 'wasm-unsafe-eval' blob:",
            "worker-src blob:",
            f"style-src {_hash(style)}",
            "connect-src 'none'",
            "form-action 'none'",
            "base-uri 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (files("rag_audit.report.browser") / "frontend" / name).read_text(encoding="utf-8")


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, compresslevel=9, mtime=0)).decode()


def _site(wheels: Path) -> bytes:
    """The files that the page's Python imports: the wheels' modules, this package's subpackages, and the circuits'
    sources."""
    content: dict[str, bytes] = {}
    for wheel in sorted(wheels.iterdir()):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.endswith((".pyi", ".c", "-linux-gnu.so", "/")) and ".dist-info/" not in name:
                    content[name] = archive.read(name)
    content.update(_own())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:  # the page is compressed as a whole
        for name in sorted(content):
            archive.writestr(zipfile.ZipInfo(name, _DATED), content[name])
    return out.getvalue()


def _own() -> Iterator[tuple[str, bytes]]:
    package = Path(__file__).parents[2]
    browser, example = package / "report" / "browser", package / "cli" / "example"
    result = [
        path
        for name in _PACKAGES
        for path in (package / name).rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.is_relative_to(example)
        and (not path.is_relative_to(browser) or path.is_relative_to(browser / "inside"))
    ]
    result += [
        package / "__init__.py",
        package / "errors.py",
        package / "lab/__init__.py",
        browser / "__init__.py",
    ]
    for path in result:
        yield f"rag_audit/{path.relative_to(package).as_posix()}", path.read_bytes()
    # By this the package knows its version there.
    yield f"ragaudit_zk-{__version__}.dist-info/METADATA", _METADATA.format(__version__).encode()
    circuits = circuits_dir()
    for path in [*circuits.glob("*.json"), *circuits.glob("*/*.circom")]:
        yield f"rag_audit/_circuits/{path.relative_to(circuits).as_posix()}", path.read_bytes()
