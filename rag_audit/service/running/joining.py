"""Accounts that join the open window of a run. Approved requests become entries of its log while it answers queries.

One batch runs at a time. Its entries name one nonce of each witness, which is revealed over one checkpoint. Requests
that are approved during a batch enter the next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_audit._internal.errors import RequestRefused, StoreError, WindowStateError
from rag_audit.attest.window import Window
from rag_audit.log.signing import SigningKey
from rag_audit.models.beacon import members_of
from rag_audit.models.records import WitnessBeacon
from rag_audit.models.roster import RosterFile
from rag_audit.service.enrolment_book import EnrolmentBook, Intake, StoredRequest
from rag_audit.service.process import Say
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.directory import RunDirectory
from rag_audit.service.running.witnesses import Submissions, drop_used, find_beacon, set_aside
from rag_audit.service.windows import Windows

MAX_BATCH = 4096
"""Maximum accounts that are enrolled at once."""
NEXT = "from the next window on, by its roster"


class Joining:
    """The enrolments of a run. It is inactive if the configuration stores no requests.

    :param asking: sends requests to witnesses that have an address
    :param once: reports a line only the first time
    """

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        served: Windows,
        asking: Submissions,
        say: Say,
        once: Callable[[str], None],
    ) -> None:
        self._told = told = config.told.enrolment
        self.book = None if told is None else EnrolmentBook(config.path(told.requests))
        self._roster = RosterFile(config.path(config.told.roster))
        self._directory, self._served, self._asking = directory, served, asking
        self._lines, self._nonces = directory.folder / "joining", config.path(config.told.nonces)
        self._say, self._once = say, once
        self._tidied: set[str] = set()

    def intake(self, key: SigningKey, origin: str, clock: Callable[[], int]) -> Intake | None:
        """The object that answers requests over HTTP, or None if the configuration stores no requests."""
        if self.book is None:
            return None
        return Intake(self.book, key, origin, windows=self._windows, open_=self._open, clock=clock,
                      roster=self._roster.line)  # fmt: skip

    def close(self) -> None:
        """Close the book."""
        if self.book is not None:
            self.book.close()

    def _open(self) -> str | None:
        window = self._served.newest
        return None if window is None or window.state.ended else window.header.window

    def _windows(self) -> list[str]:
        """The window that is published and has not ended, and the one after it."""
        if (name := self._open()) is None:
            latest = self._directory.latest()
            return [self._directory.place(1 if latest is None else latest.number + 1).window]
        number = int(name.removeprefix(self._directory.state.prefix))
        return [name, self._directory.place(number + 1).window]

    def look(self, window: Window, now: int) -> str | None:
        """Take the next step for approved requests of an active window. A failure of the book never prevents a window
        from ending.

        :returns: a description of the step, or None
        """
        if self.book is None or now < window.header.opens_at:
            return None
        try:
            return self._look(self.book, window, now)
        except StoreError as exc:
            if window.state.store.failure is not None:
                raise
            self._once(f"no account is enrolled: {exc}")
            return None

    def _look(self, book: EnrolmentBook, window: Window, now: int) -> str | None:
        name = window.header.window
        if name not in self._tidied:  # lines that were used just before a crash
            self._tidied.add(name)
            drop_used(self._lines, _used(window))
        if window.state.waiting or not (due := book.due(name, MAX_BATCH)):
            return None
        source = window.header.beacon
        if now > window.header.closes_at or self._told is None or not self._told.into_open:
            return self._put_off(book, name, due, NEXT)
        if not isinstance(source, WitnessBeacon):
            return self._put_off(book, name, due, f"{NEXT}: the open window draws its beacon from drand")
        if self._settled(book, window, due):
            return f"enrolments of {name} are settled"
        witnesses, used = [m.vkey for m in members_of(source)], _used(window)
        beacon, missing = find_beacon(self._lines, witnesses, used, self._once)
        if beacon is None:
            for key in witnesses:
                if key.name in missing and not self._asking.has_address(key.name):
                    if set_aside(self._nonces, self._lines, key, used):
                        return f"nonce of {key.name} for enrolments of {name}"
                    self._once(f"{name}: enrolments wait for a nonce line of {key.name} in {self._nonces}:"
                               " `rag-audit witness nonce` prints one")  # fmt: skip
            return self._asking.nonces(missing, name, self._lines)
        try:
            result = window.enrol_all([kept.request.roster_entry() for kept in due], beacon)
        except (RequestRefused, WindowStateError):  # its time is over since
            return self._put_off(book, name, due, NEXT)
        drop_used(self._lines, _used(window))
        book.enrolled((kept.request, entry.seq) for kept, entry in zip(due, result, strict=True))
        self._say(
            f"{name}: {len(result)} accounts are enrolled; they can send queries after its witnesses have cosigned and"
            " revealed"
        )
        return f"enrol {len(result)} in {name}"

    def _settled(self, book: EnrolmentBook, window: Window, due: Sequence[StoredRequest]) -> bool:
        """Record requests that already have an entry, as after a crash, and requests without a place in the window."""
        state = window.state
        lines = [kept.request.roster_entry() for kept in due]
        there = {n for n, line in enumerate(lines) if state.accounts.get(line.account) == line}
        done = [(due[n].request, state.enrolled_at[lines[n].account])
                for n in there if lines[n].account in state.enrolled_at]  # fmt: skip
        with state.changed:
            refused = state.places.without_place(lines)
        off = [(due[n].request, f"{NEXT}: the open window has no place for the account ({exc.message})")
               for n, exc in refused.items() if n not in there]  # fmt: skip
        off += [
            (due[n].request, "the account is on the roster")
            for n in there
            if lines[n].account not in state.enrolled_at
        ]
        if done:
            book.enrolled(done)
        if off:
            book.put_off(off)
        return bool(done or off)

    def _put_off(self, book: EnrolmentBook, name: str, due: Sequence[StoredRequest], reason: str) -> str:
        book.put_off((kept.request, reason) for kept in due)
        return f"{len(due)} accounts are not enrolled in {name}"


def _used(window: Window) -> set[str]:
    """The commitments to nonces that enrolments of a window name."""
    return {commitment for source in window.state.last_of for commitment in source.split()}
