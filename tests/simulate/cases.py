"""The folders of vectors/windows: a window, what its verifier trusts and holds, and what it has to find."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import jcs
from rag_audit.errors import RagAuditError
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.verify.inputs import VerifierOptions
from tests.simulate import why
from tests.simulate.answers import Answerer
from tests.simulate.randomness import drawn_from
from tests.simulate.recorded import Recorded
from tests.simulate.windows import Base

FOLDER = Path(__file__).resolve().parents[2] / "vectors" / "windows"
HONEST = "honest"
SIBLING = re.compile(r"[0-9a-f]{64}\.json\Z")
SHOWN = (("law-1", 1),)
"""The receipts that are handed in, unless a fault is about another one."""


@dataclass(frozen=True)
class Fault:
    """One way to misbehave, or none.

    :param name: the folder's name
    :param says: what was done, as a person says it
    :param change: does it, to the `Answerer` or `Forge` of a window that is sealed afterwards
    :param proving: the change alters what proofs are bound to, so that records are answered and proved again
    :param after: changes the sealed file's JSON, whose signatures stay as they are
    :param files: changes the files themselves, by name
    :param require: requirements of trust.toml that differ
    :param trust: changes the trust file's text
    :param independent: accounts that trust.toml names
    :param shown: the receipts that are handed in; None hands in all
    :param options: of the verifier's command: `max_epsilon`, `allow_unsafe_setup`
    :param challenge: makes the note that the verifier names itself, of the sealed file's JSON
    :param previous: cases whose windows are handed in as earlier ones
    :param base: the honest window that it starts from
    :param decides: the check that has to decide, where the fault's author says which
    """

    name: str
    says: str
    change: Callable[[Any], Any] = lambda forge: None
    proving: bool = False
    after: Callable[[dict[str, Any], Answerer], Any] = lambda value, forge: None
    files: Callable[[dict[str, bytes]], Any] = lambda files: None
    require: dict[str, Any] = field(default_factory=dict)
    trust: Callable[[str], str] | None = None
    independent: Sequence[str] | None = None
    shown: Sequence[tuple[str, int]] | None = SHOWN
    options: dict[str, Any] = field(default_factory=dict)
    challenge: Callable[[dict[str, Any], Answerer], str] | None = None
    previous: Sequence[str] = ()
    base: str = HONEST
    decides: str | None = None


Files = dict[str, bytes]


def files_of(fault: Fault, base: Base | Recorded) -> Files:
    """The files of a fault's case by name, before what is shared with others is left out."""
    with drawn_from(fault.name), tempfile.TemporaryDirectory() as folder:
        forge: Any = Answerer(base) if isinstance(base, Base) else base.forge()
        fault.change(forge)
        if fault.proving:
            forge.proving = True
        if fault.shown is not None:
            forge.receipts = [r for r in forge.receipts if (r.account, r.i) in fault.shown]
        file, receipts = forge.seal(Path(folder))
        files = {f"receipts/{path.name}": path.read_bytes() for path in sorted(receipts.iterdir())}
    value = json.loads(jcs(file.dump()))
    fault.after(value, forge)
    named = ("law-1", "medicine-1") if fault.independent is None else fault.independent
    trust = base.trust_text(independent=named, **fault.require)
    files["trust.toml"] = (fault.trust(trust) if fault.trust else trust).encode()
    files["window.json"] = jcs(value) + b"\n"
    if fault.challenge is not None:
        files["challenge.txt"] = fault.challenge(value, forge).encode()
    fault.files(files)
    return files


def write(fault: Fault, files: Files, folder: Path) -> dict[str, Any]:
    """Write a case, and return what is expected; a file that another case's folder has is named by its path there."""
    own = folder / fault.name
    places: dict[str, str] = {}
    for name, data in files.items():
        shared = _shared(name, data, folder, fault)
        places[name] = shared or name
        if not shared:
            path = own / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    case: dict[str, Any] = {
        "v": 1,
        "fault": fault.says,
        "window": places["window.json"],
        "trust": places["trust.toml"],
        "siblings": [place for name, place in places.items() if SIBLING.match(name)],
        "receipts": [place for name, place in places.items() if name.startswith("receipts/")],
        "previous": [f"../{name}/window.json" for name in fault.previous],
        "challenges": [place for name, place in places.items() if name == "challenge.txt"],
        "options": fault.options,
    }
    own.mkdir(parents=True, exist_ok=True)
    case["expect"], case["why"] = expected(run(case, own))
    (own / "case.json").write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    expect: dict[str, Any] = case["expect"]
    if fault.decides is not None and expect.get("decides") != fault.decides:
        raise AssertionError(f"{fault.name}: {fault.decides} should decide, not {expect}")
    return expect


def _shared(name: str, data: bytes, folder: Path, fault: Fault) -> str | None:
    """Where another case has the same file."""
    for other in dict.fromkeys((fault.base, HONEST)):
        path = folder / other / name
        if other != fault.name and not SIBLING.match(name) and path.exists() and path.read_bytes() == data:
            return f"../{other}/{name}"
    return None


def run(case: dict[str, Any], folder: Path) -> ReportedVerdict | RagAuditError:
    """The verdict on a case, or the error that ends it before the checks."""
    try:
        return verify_window(
            folder / case["window"],
            trust=folder / case["trust"],
            receipts=[folder / name for name in case["receipts"]],
            previous=[folder / name for name in case["previous"]],
            challenges=[folder / name for name in case["challenges"]],
            options=VerifierOptions(**case["options"]),
        )
    except RagAuditError as exc:
        return exc


def expected(actual: ReportedVerdict | RagAuditError) -> tuple[dict[str, Any], str]:
    """What any verifier has to find, and why."""
    if isinstance(actual, RagAuditError):
        return {"exit_code": int(actual.exit_code), "verdict": None, "error": actual.name}, why.UNREADABLE
    not_passed = {c.id: c.status.value for c in actual.checks if c.status.value != "pass"}
    result: dict[str, Any] = {
        "exit_code": int(actual.exit_code),
        "verdict": actual.line.split(" ")[0],
        "decides": None if actual.deciding is None else actual.deciding.id,
        "not_passed": not_passed,
    }
    if actual.established:
        result["figures"] = {
            name: actual.figures.get(name)
            for name in ("eps_audit", "records", "receipts", "query_embedding", "coalition")
        }
    return result, why.PASSES if actual.deciding is None else why.why(actual.deciding.id)
