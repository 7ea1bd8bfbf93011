"""A run's exchange with its witnesses: the notes that they put into a window's public folder; their nonce lines, one
per witness for each window header; and requests to witnesses that have an address, each in a separate thread and with
growing intervals between attempts.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from rag_audit._internal.canonical import jcs, read_json, read_text
from rag_audit._internal.durable import replace_file, sync_directory
from rag_audit._internal.errors import RagAuditError, StoreError
from rag_audit.attest.submitting import Remote, Submitting, fetch_nonce, names_nonce
from rag_audit.attest.waiting import missing_cosignatures
from rag_audit.attest.window import Window
from rag_audit.log.keys import VerifierKey
from rag_audit.log.note import MAX_NOTE_BYTES
from rag_audit.log.signing import SigningKey
from rag_audit.models.records import Enrolment, WindowHeader, WitnessBeacon
from rag_audit.service.process import Say
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.directory import Unresponsive
from rag_audit.service.running.jobs import Jobs
from rag_audit.service.running.observed import Observed


class NoteWatcher:
    """Which notes were taken or refused: each version of a file is looked at once, a set of reveals once it changed."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._seen: dict[Path, tuple[int, int]] = {}

    def admit_new(self, window: Window) -> list[str]:
        """Admit new notes: cosignatures one by one, then all reveals of each beacon.

        :returns: the names of the admitted files
        """
        fresh: list[Path] = []
        for path in sorted(window.context.layout.public.notes.glob("*.txt")):
            if path.name.startswith(("challenge-", "drand-")):
                continue
            try:
                result = path.stat()
            except OSError:
                continue
            version = (result.st_mtime_ns, result.st_size)
            if self._seen.get(path) != version:
                self._seen[path] = version
                fresh.append(path)
        if not fresh:
            return []
        cosigned = [p for p in fresh if not p.name.startswith("beacon-")]
        taken = [p.name for p in cosigned] if self._together(window, cosigned) else [
            p.name for p in cosigned if self._admit(window, [p])
        ]  # fmt: skip
        # A reveal may arrive before the cosignatures that it needs, so each arrival retries all waiting notes.
        notes = window.context.layout.public.notes
        for size in sorted({p.name.split("-")[1] for p in notes.glob("beacon-*-*.txt")}):
            batch = sorted(notes.glob(f"beacon-{size}-*.txt"))
            waits = not size.isdigit() or int(size) - 1 not in window.state.beacons
            if waits and len(batch) >= _nonces(window, size) and self._admit(window, batch):
                taken += [p.name for p in batch]
        return taken

    def _together(self, window: Window, paths: list[Path]) -> bool:
        """Take several at once, after which an ended window is published once."""
        try:
            window.admit([read_text(path, max_bytes=MAX_NOTE_BYTES) for path in paths])
        except RagAuditError:
            return False
        return True

    def _admit(self, window: Window, paths: list[Path]) -> bool:
        try:
            window.admit([read_text(path, max_bytes=MAX_NOTE_BYTES) for path in paths])
        except StoreError:  # the notes are not at fault; a later look retries them
            for path in paths:
                self._seen.pop(path, None)
            raise
        except RagAuditError as exc:
            self._say(f"{window.header.window}: {paths[0].name} is not accepted: {exc}")
            return False
        return True


def _nonces(window: Window, size: str) -> int:
    """How many reveals make the beacon of the entry that a checkpoint of that size ends with."""
    if not size.isdigit() or not 0 < int(size) <= len(window.state.entries):
        return len(window.witnesses)
    entry = window.state.entries[int(size) - 1]
    beacon = entry.beacon if isinstance(entry, WindowHeader | Enrolment) else None
    return len(beacon.witnesses) if isinstance(beacon, WitnessBeacon) else len(window.witnesses)


def admit_notes(window: Window, say: Say) -> None:
    """Admit the witnesses' notes from public/notes: cosignatures one by one, then all reveals of each beacon."""
    reveals = defaultdict(list)
    for path in sorted(window.context.layout.public.notes.glob("*.txt")):
        try:
            text = read_text(path, max_bytes=MAX_NOTE_BYTES)
        except RagAuditError as exc:
            say(f"{path.name} is not accepted: {exc}")
            continue
        if path.name.startswith("beacon-"):
            reveals[path.name.split("-")[1]].append(text)
            continue
        try:
            window.admit([text])
        except RagAuditError as exc:
            say(f"{path.name} is not accepted: {exc}")
    for size, notes in reveals.items():
        try:
            window.admit(notes)
        except RagAuditError as exc:
            say(f"the beacon over checkpoint {size} is not accepted: {exc}")


MAX_LINE_BYTES = 1 << 16


def find_beacon(
    folder: Path, witnesses: Sequence[VerifierKey], used: set[str], say: Say
) -> tuple[WitnessBeacon | None, list[str]]:
    """A fresh nonce commitment of every witness, from the files in a folder, or one file.

    :param used: commitments that a window header already names
    :returns: the beacon, or None with the names of the witnesses without a fresh commitment
    """
    result: dict[str, dict[str, str]] = {}
    known = {str(w): w.name for w in witnesses}
    for path in _lines(folder):
        try:
            value = read_json(path, max_bytes=MAX_LINE_BYTES)
            line = WitnessBeacon.parse(
                {"source": "witnesses", "witnesses": [value]}, field=path.name
            ).witnesses[0]
        except RagAuditError as exc:
            say(f"{path.name} is not a nonce line: {exc}")
            continue
        if line.vkey in known and line.commitment not in used:
            result.setdefault(known[line.vkey], line.model_dump())
    missing = [w.name for w in witnesses if w.name not in result]
    if missing:
        return None, missing
    lines = [result[w.name] for w in witnesses]
    return WitnessBeacon.parse({"source": "witnesses", "witnesses": lines}, field=str(folder)), []


def set_aside(folder: Path, target: Path, witness: VerifierKey, used: set[str]) -> bool:
    """Move a witness's fresh nonce line to where no window header looks for one.

    :returns: False if there is no such line
    """
    for path in _lines(folder):
        if find_beacon(path, [witness], used, lambda _: None)[0] is not None:
            target.mkdir(parents=True, exist_ok=True)
            os.replace(path, target / path.name)
            sync_directory(target)
            return True
    return False


def drop_used(folder: Path, used: set[str]) -> None:
    """Remove the files of commitments that window headers name, which no other header can."""
    for path in _lines(folder):
        try:
            value = read_json(path, max_bytes=MAX_LINE_BYTES)
        except RagAuditError:
            continue
        if isinstance(value, dict) and value.get("commitment") in used:
            path.unlink(missing_ok=True)


def _lines(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    try:
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError:
        return []


FIRST_MS, LAST_MS = 2_000, 60_000
"""First and maximum delay before the run contacts a witness that failed or refused."""


class Submissions:
    """A run's requests to its witnesses. Their answers are written to the folders that `Notes` reads.

    :param origin: the ledger's name
    :param observed: counts the requests
    """

    def __init__(
        self,
        config: RunConfig,
        origin: str,
        key: SigningKey,
        jobs: Jobs,
        clock: Callable[[], int],
        say: Say,
        observed: Observed,
    ) -> None:
        self._observed = observed
        self._config, self._origin, self._key = config, origin, key
        self._jobs, self._clock, self._say = jobs, clock, say
        self._remotes = config.remotes
        self._later: dict[str, tuple[int, int]] = {}
        self._said: dict[str, str] = {}

    def look(self, window: Window) -> str | None:
        """Start a request to a witness for the cosignature or nonce that a window lacks.

        :returns: a description of the started request, or None
        """
        for remote in self._remotes:
            if self._free(remote) and self._lacks(window, remote):
                return self._begin(remote, window.header.window, lambda r=remote: self._both(window, r))  # type: ignore[misc]
        return None

    def nonces(self, missing: Sequence[str], window: str, folder: Path | None = None) -> str | None:
        """Start a request for a nonce line that a window header, or the window's enrolments, lack.

        :param missing: the names of the witnesses without a nonce line
        :param folder: the destination of the line, if it is for enrolments
        """
        for remote in self._remotes:
            if remote.key.name in missing and self._free(remote):
                return self._begin(remote, window, lambda r=remote: self._nonce(r, window, folder))  # type: ignore[misc]
        return None

    def unresponsive(self) -> list[Unresponsive]:
        """The witnesses whose last request failed."""
        result = []
        for name, message in sorted(self._said.copy().items()):
            since, (due, _) = self._observed.down_since.get(name), self._later.get(name, (0, 0))
            if since is not None:
                result.append(Unresponsive(witness=name, since=since, message=message, next_at=due))
        return result

    def has_address(self, name: str) -> bool:
        """Whether a witness is asked over HTTP."""
        return any(remote.key.name == name for remote in self._remotes)

    def _free(self, remote: Remote) -> bool:
        name = remote.key.name
        due, wait = self._later.get(name, (0, 0))
        now = self._clock()
        return not self._jobs.busy(f"ask {name}") and (now >= due or due - now > wait)

    def _lacks(self, window: Window, remote: Remote) -> bool:
        public, name, state = window.context.layout.public, remote.key.name, window.state
        joining = max((seq for seqs in list(state.waiting.values()) for seq in list(seqs)), default=0)
        if not state.ended and 0 in state.beacons and not joining:
            return False
        size = len(state.entries) if state.ended else joining + 1
        if name in missing_cosignatures(public, size, window.witnesses):
            return not public.note("cosign", size, name).exists()
        return (
            not state.ended
            and names_nonce(state.beacon_source(size - 1), remote.key)
            and not missing_cosignatures(public, size, window.witnesses)
            and not public.note("beacon", size, name).exists()
        )

    def _begin(self, remote: Remote, window: str, act: Callable[[], object]) -> str:
        name = remote.key.name

        def ask() -> None:
            began = monotonic()
            try:
                act()
            except (RagAuditError, OSError) as exc:
                self._observed.unanswered(name, self._clock())
                _, wait = self._later.get(name, (0, 0))
                wait = min(max(2 * wait, FIRST_MS), LAST_MS)
                self._later[name] = (self._clock() + wait, wait)
                if self._said.get(name) != str(
                    exc
                ):  # a witness that is down for an hour is one line, not a hundred
                    self._said[name] = str(exc)
                    self._say(
                        f"{window}: witness {name}: {exc}; the requests continue until the witness answers"
                    )
            else:
                self._observed.answered(name, monotonic() - began)
                self._later.pop(name, None)
                if self._said.pop(name, None) is not None:
                    self._say(f"{window}: witness {name} answers again")

        self._jobs.start(f"ask {name}", ask)
        return f"ask {name} for {window}"

    def _both(self, window: Window, remote: Remote) -> None:
        public = window.context.layout.public.folder
        requested = Submitting(public, self._key.verifier, window.witnesses, ledger=window.state)
        if requested.cosign(remote) is None:
            requested.reveal(remote, len(window.witnesses))

    def _nonce(self, remote: Remote, window: str, folder: Path | None) -> Path:
        line = fetch_nonce(remote, self._origin, window, self._key).witnesses[0]
        folder = folder or self._config.path(self._config.told.nonces)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{line.name.replace('/', '_')}-{line.commitment[:16]}.json"
        replace_file(path, jcs(line.dump()))
        return path
