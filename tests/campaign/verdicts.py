"""Mutated windows, receipts, trust files and notes through `verify`, by the hundred thousand.

    python -m tests.campaign.verdicts --cases 100000 --seed 1     all cores; ends early after --budget seconds
    python -m tests.campaign.verdicts --case 1/4711               one case, by its name

The campaign checks for every case that it ends in a verdict or in a named error within ten seconds of processor time,
that a verdict has a report in every format, and that a PASS equals the verdict of the unmutated window. The windows come
from vectors/windows. In one of eight cases, every party signs the mutated window, as a provider with the help of all
parties could arrange.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import jcs
from rag_audit.cli.reports import FORMATS
from rag_audit.errors import ExitCode, RagAuditError
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.verification import ReportedVerdict, verify_window
from tests.campaign.again import made_again
from tests.fuzz.mutate import PARTS, Mutator
from tests.simulate.cases import FOLDER

WINDOWS = (
    "few",
    "few",
    "honest",
    "embedded",
    "sampling",
    "certified",
    "sampled-by-own-draw",
    "in-a-row",
)
"""The mutated cases, which all pass without mutations. The small case occurs more often."""
KINDS = ("window", "window", "window", "text", "receipt", "trust", "note", "sealed")
LIMIT = 10
"""Seconds of processor time that a case may take."""
OWN = (
    "receipts",
    "receipts_other",
    "query_embedding",
    "allowed",
    "mode",
    "beta",
    "eta",
    "challenge",
    "sampled",
)
"""Figures that describe the verifier's requirements and inputs, and not the window."""


class Broken(AssertionError):
    """A case that ended as none may."""


class Late(BaseException):
    """A case took too long. No handler of errors is to take it for one."""


@dataclass
class Subject:
    """An honest case's files, in memory."""

    name: str
    case: dict[str, Any] = field(init=False)
    honest: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        folder = FOLDER / self.name
        self.case = json.loads((folder / "case.json").read_text())
        self.window = json.loads((folder / self.case["window"]).read_text())
        self.trust = (folder / self.case["trust"]).read_text()
        self.receipts = [json.loads((folder / name).read_text()) for name in self.case["receipts"]]
        self.challenges = [(folder / name).read_text() for name in self.case["challenges"]]
        self.previous = [(folder / name).read_bytes() for name in self.case["previous"]]

    def files(self) -> dict[str, bytes]:
        """The inputs of a verifier."""
        return {
            "window.json": jcs(self.window),
            "trust.toml": self.trust.encode(),
            **{f"receipt-{n}.json": jcs(r) for n, r in enumerate(self.receipts)},
            **{f"challenge-{n}.txt": text.encode() for n, text in enumerate(self.challenges)},
            **{f"previous-{n}.json": data for n, data in enumerate(self.previous)},
        }


class Campaign:
    """One process's part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.subjects = {name: Subject(name) for name in dict.fromkeys(WINDOWS)}
        for subject in self.subjects.values():
            verdict = self.verify(subject.files())
            assert verdict.passed, (subject.name, verdict.deciding)
            subject.honest = self.essence(verdict, whole=True)

    def verify(self, files: dict[str, bytes]) -> ReportedVerdict:
        """The verdict on files as a verifier reads them."""
        for old in self.folder.iterdir():
            old.unlink()
        for name, data in files.items():
            (self.folder / name).write_bytes(data)

        def named(start: str) -> list[Path]:
            return [self.folder / name for name in sorted(files) if name.startswith(start)]

        return verify_window(
            self.folder / "window.json", trust=self.folder / "trust.toml", receipts=named("receipt"),
            previous=named("previous"), challenges=named("challenge"),
        )  # fmt: skip

    def essence(self, verdict: ReportedVerdict, *, whole: bool) -> dict[str, Any]:
        """The values that no mutation of a passing window may change.

        :param whole: the verifier's own files are the honest ones, so that their figures count too
        """
        figures = {k: v for k, v in json.loads(json.dumps(verdict.figures)).items() if whole or k not in OWN}
        return {"figures": figures, "checks": [c.id for c in verdict.checks] if whole else None}

    def case(self, name: str) -> str:
        """Run one case, and return how it ended.

        :raises Broken: it ended otherwise than it may
        """
        draw = Mutator(f"verdicts/{name}")
        kind = draw.pick(*KINDS)
        subject = self.subjects["few" if kind == "sealed" else draw.pick(*WINDOWS)]
        judged = False
        try:
            files = getattr(self, f"_{kind}")(subject, draw)
            with limited():
                verdict = self.verify(files)
                judged = True
                rendered(verdict)
        except RagAuditError as exc:
            if judged:
                raise Broken(f"{name} ({subject.name}, {kind}): the report says {exc!r}") from exc
            if not str(exc).isprintable() and "\n" not in str(exc):
                raise Broken(f"{name} ({subject.name}, {kind}): an error says {exc!r}") from exc
            return "error"
        except Late as exc:
            raise Broken(f"{name} ({subject.name}, {kind}): took more than {LIMIT} s") from exc
        except Exception as exc:
            last = traceback.extract_tb(sys.exc_info()[2])[-1]
            raise Broken(
                f"{name} ({subject.name}, {kind}): {type(exc).__name__}: {exc} at {last.filename}:{last.lineno}"
            ) from exc
        if verdict.passed:
            if kind == "sealed":  # an estimate that nobody proves is the provider's word
                verdict.figures["c"] = subject.honest["figures"]["c"]
            own = kind in ("receipt", "trust", "note")
            result = self.essence(verdict, whole=not own)
            honest = subject.honest
            if own:
                honest = {
                    "figures": {k: v for k, v in honest["figures"].items() if k not in OWN},
                    "checks": None,
                }
            if result != honest:
                different = {k: v for k, v in result["figures"].items() if honest["figures"].get(k) != v}
                raise Broken(f"{name} ({subject.name}, {kind}): passes with {different or result['checks']}")
        return ExitCode(verdict.exit_code).name

    # -- kinds -----------------------------------------------------------------------------------------------

    def _window(self, subject: Subject, draw: Mutator) -> dict[str, bytes]:
        """Another value of the window file, mostly of the same form, so that what lies behind the forms is reached."""
        files = subject.files()
        if draw.random.random() < 0.3:
            files["window.json"] = draw.json(subject.window, under=PARTS)
        else:
            files["window.json"] = json.dumps(draw.gentle(subject.window, under=PARTS)).encode()
        return files

    def _text(self, subject: Subject, draw: Mutator) -> dict[str, bytes]:
        """The notes inside a window, and its bytes."""
        files, value = subject.files(), json.loads(jcs(subject.window))
        beacon = next(e for e in value["entries"] if e["type"] == "beacon")
        place = draw.pick("header_checkpoint", "final_checkpoint", "note", "beacon", "bytes")
        if place == "note":
            number = draw.random.randrange(len(beacon["notes"]))
            beacon["notes"][number] = draw.text(beacon["notes"][number])
        elif place == "beacon":
            beacon["checkpoint"] = draw.text(beacon["checkpoint"])
        elif place != "bytes":
            value[place] = draw.text(value[place])
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        files["window.json"] = draw.bytes(data) if place == "bytes" else data
        return files

    def _receipt(self, subject: Subject, draw: Mutator) -> dict[str, bytes]:
        files = subject.files()
        if not subject.receipts:
            return files
        value = json.loads(jcs(draw.pick(*subject.receipts)))
        if draw.random.random() < 0.6:
            value["receipt"] = draw.text(value["receipt"])
            data = json.dumps(value).encode("utf-8", "surrogatepass")
        else:
            data = draw.json(value)
        if draw.random.random() < 0.5:
            files["receipt-0.json"] = data
        else:
            files["receipt-9.json"] = data
        return files

    def _trust(self, subject: Subject, draw: Mutator) -> dict[str, bytes]:
        return {**subject.files(), "trust.toml": draw.file(subject.trust)}

    def _note(self, subject: Subject, draw: Mutator) -> dict[str, bytes]:
        """A challenge that the verifier names, or that the window has."""
        files = subject.files()
        notes = subject.challenges or subject.window["challenges"] or [subject.window["final_checkpoint"]]
        if draw.random.random() < 0.5:
            files["challenge-0.txt"] = draw.file(draw.pick(*notes))
        else:
            value = {**subject.window, "challenges": [draw.text(draw.pick(*notes))]}
            files["window.json"] = json.dumps(value).encode("utf-8", "surrogatepass")
        return files

    def _sealed(self, subject: Subject, draw: Mutator) -> dict[str, bytes]:
        """A mutation by a provider with the help of all parties: signed, cosigned and countersigned after the mutation."""
        from tests.campaign.sealing import sealed

        return sealed(self, draw)


def rendered(verdict: ReportedVerdict) -> dict[str, str]:
    """The verdict's report in every format, by the format's name."""
    report = report_of(verdict)
    return {name: render_report(report, name, checks=True) for name in FORMATS}


@contextmanager
def limited() -> Iterator[None]:
    """Interrupt what takes longer than `LIMIT` seconds of processor time."""

    def late(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _part(work: tuple[str, int, int, int, float]) -> tuple[Counter[str], list[str]]:
    """Every `step`-th case from `first` on, until the time is over."""
    seed, first, step, cases, until = work
    ended: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        campaign = Campaign(Path(folder))
        for number in range(first, cases, step):
            if time.monotonic() > until:
                break
            try:
                ended[campaign.case(f"{seed}/{number}")] += 1
            except Broken as exc:
                broken.append(str(exc))
                ended["BROKEN"] += 1
                if len(broken) == 20:
                    break
    return ended, broken


def run(
    cases: int, seed: str, *, processes: int | None = None, budget: float = 3600
) -> tuple[Counter[str], list[str]]:
    """Run the campaign on all cores.

    :param budget: seconds after which no further case begins
    :returns: the number of cases by result, and the faults
    """
    processes = processes or os.cpu_count() or 1
    until = time.monotonic() + budget
    parts = [(seed, first, processes, cases, until) for first in range(processes)]
    ended: Counter[str] = Counter()
    broken: list[str] = []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for count, result in pool.imap_unordered(_part, parts):
            ended += count
            broken += result
    return ended, broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--processes", type=int)
    parser.add_argument(
        "--budget", type=float, default=3600, help="seconds after which no further case begins"
    )
    parser.add_argument("--case", action="append", help="one case by its name, as a failure prints it")
    options = parser.parse_args()
    if options.case:
        return made_again(Campaign, options.case)
    ended, broken = run(options.cases, options.seed, processes=options.processes, budget=options.budget)
    print(f"seed {options.seed}: {sum(ended.values())} cases: {dict(ended)}")
    print("\n".join(broken))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
