"""Decides a run's next act from its windows' folders. Each step is one act, so the run can end between any two steps.

The folders contain everything that has happened. Memory contains only open windows, jobs in progress, and the reported
lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rag_audit._internal.canonical import digest_hex, read_text
from rag_audit._internal.clock import local_time, now_ms
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import EncodingError, PolicyError, RagAuditError, SchemaError, SetupError
from rag_audit._internal.words import counted
from rag_audit.attest.reading import number_proved
from rag_audit.attest.waiting import from_witnesses, missing_cosignatures, waited_for
from rag_audit.attest.window import Window
from rag_audit.commit.document_table import DocumentSizeError, TableCapacityError
from rag_audit.log.note import MAX_NOTE_BYTES
from rag_audit.log.signing import SigningKey
from rag_audit.models.chain import Unanswered
from rag_audit.models.records import DrandBeacon, PreviousWindow, WindowHeader, WindowTrailer
from rag_audit.retrieval.engine import CapacityError
from rag_audit.retrieval.texts import NoFolderError
from rag_audit.service.process import Say, precomputing
from rag_audit.service.running.acts import Acts, previous_of, previous_on_disk
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.directory import Place, Progress, RunDirectory, without_commands
from rag_audit.service.running.jobs import Jobs, Stopped
from rag_audit.service.running.joining import Joining
from rag_audit.service.running.observed import Observed
from rag_audit.service.running.witnesses import NoteWatcher, Submissions
from rag_audit.service.windows import Windows

RETRY_MS = 30_000
"""Delay before a failed act is tried a second time."""
PERMANENT = (CapacityError, DocumentSizeError, NoFolderError, PolicyError, SetupError, TableCapacityError)
"""Errors of a preparation that a second attempt with the same configuration repeats."""
SEEN_MS = 60_000
"""How often the time is written down, and by how much a clock may go back without a word."""
PROGRESS_MS = 10_000
"""Interval between reports of the progress of a job."""
REMIND_MS = 600_000
"""Interval between repeated reports of the same waiting condition."""
ROOM_BYTES = 1 << 20
"""Bytes that must be free on the disk before the run reopens a window that could not be written."""


class Supervisor:
    """All windows of one configuration, in one process.

    :param directory: the run's folder, which the supervisor closes
    :param say: takes a line about each act; `warn` takes a line about each failure
    :param jobs: where long work runs
    """

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        key: SigningKey,
        *,
        say: Say,
        warn: Say | None = None,
        clock: Callable[[], int] = now_ms,
        jobs: Jobs | None = None,
    ) -> None:
        self.served = Windows()
        self.observed = Observed()
        self.directory = directory
        self.windows: dict[str, Window] = {}
        self._told = config.told
        self._acts = Acts(config, directory, key, clock, say)
        self._clock, self._say, self._warn = clock, say, warn or say
        self._jobs = jobs or Jobs()
        self._notes = NoteWatcher(say)
        self._asking = Submissions(config, self._acts.origin, key, self._jobs, clock, say, self.observed)
        self.remotes = config.remotes
        self._joining = Joining(config, directory, self.served, self._asking, say, self._acts.once)
        self.intake = self._joining.intake(key, self._acts.origin, clock)
        directory.configured(
            [remote.key.name for remote in self.remotes], proves_all=config.told.proving.records == "all"
        )
        self._beside: dict[str, ExitStack] = {}
        self._later: dict[str, int] = {}
        self._waits: dict[str, tuple[str, int]] = {}
        self._proved: set[str] = set()
        self._tried: set[Path] = set()
        self._last = directory.state.seen
        self._permanent: RagAuditError | None = None
        self._progress: dict[tuple[str, str], int] = {}
        self._progress_at = 0

    # -- for health and metrics, also from other threads ---------------------------------------------------------

    @property
    def permanent(self) -> RagAuditError | None:
        """The error because of which the run makes no further window."""
        return self._permanent

    @property
    def abandoned(self) -> int:
        """The number of abandoned windows in the run's folder."""
        ended = [w for w in list(self.windows.values()) if _abandoned(w)]
        return len({*self.directory.state.abandoned, *(w.header.window for w in ended)})

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self._clock()

    def proofs_waiting(self) -> int:
        """The number of records of ended windows whose proofs the run makes and has not made yet."""
        if self._told.proving.records != "all":
            return 0
        ended = [w for w in list(self.windows.values()) if w.state.ended]
        return sum(
            len(w.records) - number_proved(w.context.layout, w.records, w.context.policy) for w in ended
        )

    def challenges_waiting(self) -> int:
        """The number of challenges whose proofs the run makes now, or could not make at its last attempt."""
        failed = sum(f.action.startswith("challenge ") for f in self.directory.state.failures)
        return failed + self._jobs.count("challenge ")

    def cause(self) -> str | None:
        """Why no window answers queries, without the names of files; None if the run knows no cause."""
        if self._permanent is not None:
            return f"the run makes no further window, because {self._permanent.message}"
        if reasons := self.observed.reasons:
            action, reason = next(reversed(reasons.items()))
            return f"{action} failed: {reason}"
        if waits := list(self._waits.items()):
            name, (what, _) = waits[-1]
            return f"{name} waits for {re.split('[:;]', what)[0]}"
        return "the next window is being prepared" if self._jobs.count("prepare ") else None

    # -- the loop --------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether all windows that the schedule asks for are done."""
        return self._permanent is None and self._over() and not self._unfinished()

    def step(self) -> str | None:
        """Do the next act that is due.

        :returns: a description of the finished or started act, or None if no act is due
        :raises RagAuditError: the next window cannot be prepared with this configuration, and all others are done
        """
        now = self._look_at_the_clock()
        self._look_at_the_jobs(now)
        self.directory.unresponsive(self._asking.unresponsive())
        if (done := self._ended_jobs(now)) is not None:
            return done
        for place in self._unfinished():
            if (done := self._guarded(place.window, now, lambda p=place: self._tend(p, now))) is not None:  # type: ignore[misc]
                return done
        if self._permanent is not None and not self._unfinished():
            raise self._permanent
        return (
            self._guarded("the next window", now, lambda: self._next(now))
            or self._guarded("deletion", now, lambda: self._forget(now))
            or self._guarded("challenges", now, self._challenge)
        )

    def halt(self) -> None:
        """Tell jobs and precomputing threads to end, while answers still leave."""
        self._jobs.stopping.set()

    def stop(self, seconds: float) -> bool:
        """Let jobs end and close all windows; False if a job is still under way, and the process had better end."""
        ended = self._jobs.stop(seconds)
        if ended:
            for name in list(self.windows):
                self._shut(name)
            self._joining.close()
            self.directory.close()
        return ended

    # -- one window ------------------------------------------------------------------------------------------

    def _unfinished(self) -> list[Place]:
        """The opened windows with remaining work, in order."""
        published = set(self.directory.state.published)
        return [p for p in self.directory.places() if p.window not in published and p.opened]

    def _tend(self, place: Place, now: int) -> str | None:
        """The next act for an opened window."""
        name = place.window
        if self._jobs.busy(f"close {name}") or self._jobs.busy(f"prove {name}"):
            return None
        if now >= self.directory.facts(place).delete_after:
            self._warn(
                f"{name} is not finished on its policy's date of deletion, so the run stops working on it"
            )
            if name in self.windows:
                self._shut(name)
            self.directory.published(place)
            return f"done {name}"
        window = self.windows.get(name)
        if window is not None and (failure := window.state.store.failure) is not None:
            self._wait(
                name, f"free space on the disk: {failure}. The service refuses requests and loses none", now
            )
            try_room(place.folder)
            self._shut(name)
            window = None
        if window is None:
            window = self.windows[name] = self._acts.resume(place)
            self.served.put(window)
            return f"resume {name}"
        if taken := self._notes.admit_new(window):
            return f"notes {name}: {', '.join(taken)}"
        if (requested := self._asking.look(window)) is not None:
            return requested
        status, header = window.status, window.header
        if status == "committed":
            return self._not_yet_active(window, now)
        if status == "active":
            if (joined := self._joining.look(window, now)) is not None:
                return joined
            if now > header.closes_at:
                self._quiet(name)
                self._jobs.start(f"close {name}", lambda: self._acts.close(window, self._jobs.check))
                return f"close {name}"
            self._wait(
                name, f"queries from {local_time(header.opens_at)} to {local_time(header.closes_at)}", now
            )
            if name not in self._beside and self._told.serve.precompute:
                self._beside[name] = ExitStack()
                self._beside[name].enter_context(
                    precomputing(window, self._told.serve.precompute, self._say, self._jobs.stopping.is_set)
                )
            if self.served.newest is window:
                self.directory.point(place)
            return None
        return self._ended(place, window, status, now)

    def _not_yet_active(self, window: Window, now: int) -> str | None:
        name, header = window.header.window, window.header
        cosigned = window.publisher.fully_cosigned(1)
        if now > header.closes_at or (now >= header.opens_at and not cosigned):
            missing = missing_cosignatures(window.context.layout.public, 1, window.witnesses)
            reason = f"cosignatures of {', '.join(missing)}" if missing else "its beacon"
            self._warn(f"{name} lacks {reason} at {local_time(header.opens_at)}, at its opening time: the run"
                      " abandons it,"
                      " and opens another window. Verifiers count abandoned windows")  # fmt: skip
            window.close(abandoned=True)
            return f"abandon {name}"
        if cosigned and isinstance(header.beacon, DrandBeacon):
            path = window.context.layout.public.notes / f"drand-{header.beacon.round}.txt"
            if path.exists():
                window.admit_drand(read_text(path, max_bytes=MAX_NOTE_BYTES).split())
                return f"beacon {name}"
        late = (
            ""
            if now < header.opens_at
            else f"; it was to open at {local_time(header.opens_at)}, and opens late"
        )
        self._wait(
            name,
            without_commands(
                waited_for(header, window.context.layout.public, window.witnesses, self.directory.state.asked)
            )
            + late,
            now,
        )
        return None

    def _ended(self, place: Place, window: Window, status: str, now: int) -> str | None:
        name = place.window
        if not self._settled(window):
            missing = missing_cosignatures(place.layout.public, len(window.state.entries), window.witnesses)
            self._wait(
                name,
                f"cosignatures of {', '.join(missing)} on its end; then the next window opens",
                now,
            )
            return None
        if self._told.proving.records == "all" and status == "final" and name not in self._proved:
            self._jobs.start(f"prove {name}", lambda: self._prove(window))
            return f"prove {name}"
        if self._followed(place):
            window.export()
            self.directory.published(place, abandoned=_abandoned(window))
            self._shut(name)
            return f"done {name}"
        return None

    def _prove(self, window: Window) -> None:
        name = window.header.window
        result = self._acts.prove(window, self._jobs.check)
        self._proved.add(name)
        self._say(
            f"{name}: {_proved(len(window.state.records), result)}; {window.context.layout.public.window} is complete"
        )

    def _shut(self, name: str) -> None:
        window = self.windows.pop(name)
        self._waits.pop(name, None)
        self._quiet(name)
        if not self.served.take(window):
            self._say(f"an answer of {name} was cut off: its account repeats the request")
        window.shut()

    def _quiet(self, name: str) -> None:
        """End the background work of a window."""
        if (stack := self._beside.pop(name, None)) is not None:
            stack.close()

    # -- the next window -------------------------------------------------------------------------------------

    def _next(self, now: int) -> str | None:
        schedule, latest = self._told.schedule, self.directory.latest()
        if self._over():
            return None
        place = self.directory.place(1 if latest is None else latest.number + 1)
        job = f"prepare {place.window}"
        if self._jobs.busy(job):
            return None
        before = None if latest is None else self.windows.get(latest.window)
        if latest is not None and before is None and latest.window not in self.directory.state.published:
            return None  # it is read back first
        if not place.prepared:
            if (
                before is not None
                and not before.state.ended
                and (now < before.header.closes_at - schedule.prepare_ms or not before.tables_complete)
            ):
                return None
            self._jobs.start(job, lambda: self._acts.prepare(place, self._jobs.check))
            return job
        if before is not None and not (before.state.ended and self._settled(before)):
            return None
        opened = self._acts.open(place, self._previous())
        if not isinstance(opened, WindowHeader):
            if (requested := self._asking.nonces(opened, place.window)) is not None:
                return requested
            told = from_witnesses("nonces", opened, "nonce", self.directory.state.asked)
            by_file = any(not self._asking.has_address(name) for name in opened)
            self._wait(
                place.window, f"{told} and puts the line into {self._told.nonces}" if by_file else told, now
            )
            return None
        self._say(f"{place.window} is published in {place.layout.public.folder}, and opens at "
                  f"{local_time(opened.opens_at)} if its witnesses cosign it by then")  # fmt: skip
        counts = Unanswered.before(opened)
        if counts != Unanswered():
            self._say(f"{place.window} counts {counts.abandoned} abandoned windows and {counts.empty} without a query"
                      " since the last complete one: verifiers limit both")  # fmt: skip
        return f"open {place.window}"

    def _previous(self) -> PreviousWindow | None:
        """The last window that a witness knows. A window without a cosignature is in no witness's chain."""
        for place in reversed([p for p in self.directory.places() if p.opened]):
            keys = self.directory.facts(place).witnesses
            if len(missing_cosignatures(place.layout.public, 1, keys)) < len(keys):
                window = self.windows.get(place.window)
                return previous_on_disk(place.layout) if window is None else previous_of(window)
        return None

    def _settled(self, window: Window) -> bool:
        """Whether all witnesses that cosigned a window's header cosigned its end."""
        public, size = window.context.layout.public, len(window.state.entries)
        return set(missing_cosignatures(public, size, window.witnesses)) <= set(
            missing_cosignatures(public, 1, window.witnesses)
        )

    def _followed(self, place: Place) -> bool:
        """Whether a later window has its beacon, or none will follow, so that no party asks this window any more."""
        later = [p for p in self.directory.places() if p.number > place.number and p.opened]
        open_ = [self.windows[p.window] for p in later if p.window in self.windows]
        if any(not _abandoned(w) and w.status != "committed" for w in open_):
            return True
        return any(p.window in self.directory.state.published for p in later) or (not later and self._over())

    def _over(self) -> bool:
        """Whether no further window follows: the schedule asks for none, or none can be prepared."""
        return self._permanent is not None or 0 < self._told.schedule.windows <= sum(
            self._counts(p) for p in self.directory.places()
        )

    def _counts(self, place: Place) -> bool:
        """Whether a window counts for the schedule: it is opened and not abandoned."""
        window = self.windows.get(place.window)
        if window is not None:
            return not _abandoned(window)
        return place.opened and place.window not in self.directory.state.abandoned

    # -- afterwards ------------------------------------------------------------------------------------------

    def _forget(self, now: int) -> str | None:
        for name in self.directory.state.published:
            place = Place(0, self.directory.windows / name)
            if place.layout.secrets.exists() and now >= self.directory.facts(place).delete_after:
                self._acts.forget(place)
                self._say(f"{name}: the seed and the stored queries are deleted on the policy's date")
                return f"forget {name}"
        return None

    def _challenge(self) -> str | None:
        for name in self.directory.state.published:
            place = Place(0, self.directory.windows / name)
            if not place.layout.secrets.exists():
                continue
            for path in sorted(place.layout.public.notes.glob("challenge-*.txt")):
                job = f"challenge {name}/{path.name}"
                if path in self._tried or self._jobs.busy(job):
                    continue
                try:
                    digest = digest_hex(read_text(path, max_bytes=MAX_NOTE_BYTES))
                except RagAuditError as exc:  # must not delay the answers to the others
                    self._tried.add(path)
                    self._warn(f"{name}: {path.name} is not answered: {exc}")
                    continue
                if digest in self.directory.state.answered:
                    continue
                self._tried.add(path)
                self._jobs.start(job, lambda p=place, n=path: self._answer(p, n))  # type: ignore[misc]
                return job
        return None

    def _answer(self, place: Place, note: Path) -> None:
        try:
            result = self._acts.answer(place, note, self._jobs.check)
        except (SchemaError, EncodingError) as exc:
            self._warn(f"{place.window}: {note.name} is not answered: {exc}")
            return
        except BaseException:
            self._tried.discard(note)
            raise
        self._say(
            f"{place.window}: the records that {note.name} draws are proved ({counted(result, 'new proof')})"
        )

    # -- clock, failures, reports ---------------------------------------------------------------------------------

    def _look_at_the_clock(self) -> int:
        now = self._clock()
        if now < self._last - SEEN_MS:
            self._warn(f"the clock went back by {(self._last - now) // 1000} s: entries keep their order, and"
                      " tasks with a date wait")  # fmt: skip
            self._later.clear()
        self._last = self.observed.stepped_at = now
        self.directory.saw(now, every=SEEN_MS)
        return now

    def _look_at_the_jobs(self, now: int) -> None:
        """Report the progress of each job that takes longer than `PROGRESS_MS`, and note it for `provider status`."""
        running = {
            (action, step): (done, total) for action, (step, done, total) in self._jobs.progress().items()
        }
        self._progress = {key: self._progress.get(key, now) for key in running}
        if not running:
            self.directory.progressed([])
            return
        if 0 <= now - self._progress_at < PROGRESS_MS:
            return
        self._progress_at = now
        progress = [Progress(action=action, step=step, done=done, total=total, began=self._progress[action, step],
                             at=now) for (action, step), (done, total) in running.items()]  # fmt: skip
        self.directory.progressed(progress)
        for each in progress:
            if each.at > each.began:
                self._say(str(each))

    def _ended_jobs(self, now: int) -> str | None:
        for name, failure in self._jobs.ended():
            if failure is None:
                self._succeeded(name)
                return f"ended {name}"
            if isinstance(failure, Stopped):
                continue
            if not isinstance(failure, RagAuditError | OSError):
                raise failure
            self._failed(name, failure, now)
        return None

    def _guarded(self, what: str, now: int, act: Callable[[], str | None]) -> str | None:
        if now < self._later.get(what, now):
            return None
        try:
            done = act()
        except (RagAuditError, OSError) as exc:
            self._failed(what, exc, now)
            return None
        self._succeeded(what)
        return done

    def _succeeded(self, what: str) -> None:
        self.observed.succeeded(what, again=self._failing(what))
        self.directory.succeeded(what)

    def _failing(self, what: str) -> bool:
        """Whether the last attempt of an act failed."""
        return any(failure.action == what for failure in self.directory.state.failures)

    def _failed(self, what: str, exc: RagAuditError | OSError, now: int) -> None:
        """Postpone a failed act for its owner, and a failed job for the act that starts it. A permanent error of a
        preparation ends the making of windows; the run still completes the windows that it has opened."""
        reason = exc.message if isinstance(exc, RagAuditError) else exc.strerror or "input or output failed"
        self.observed.failed(what, reason, again=self._failing(what))
        kind, _, name = what.partition(" ")
        if kind == "prepare" and isinstance(exc, PERMANENT):
            self._permanent = exc
            self.directory.failed(what, f"{exc}{_hint(exc)}", now, 0)
            self._warn(f"{what}: {exc}{_hint(exc)}; the run makes no further window, completes the others and ends."
                      " Start `rag-audit run` again after the correction")  # fmt: skip
            return
        owners = {"prepare": "the next window", "challenge": "challenges", "close": name, "prove": name}
        self._later[owners.get(kind, what)] = now + RETRY_MS
        self.directory.failed(what, f"{exc}{_hint(exc)}", now, now + RETRY_MS)
        again = ("; it reads policy, roster and documents again, but a change of provider.toml needs a restart"
                 if kind == "prepare" else "")  # fmt: skip
        self._warn(f"{what}: {exc}{_hint(exc)}; the next attempt follows in {RETRY_MS // 1000} s{again}")

    def _wait(self, name: str, what: str, now: int) -> None:
        """Report the condition that a window waits for, once, and then at intervals."""
        said, at = self._waits.get(name, ("", 0))
        if said != what or not 0 <= now - at < REMIND_MS:
            self._waits[name] = (what, now)
            self._say(f"{name} waits for {what}")


def _hint(exc: RagAuditError | OSError) -> str:
    return f" ({exc.hint})" if isinstance(exc, RagAuditError) and exc.hint is not None else ""


def try_room(folder: Path) -> None:
    """Write a little into a window's folder, and remove it.

    :raises StoreError: there is still no room
    """
    probe = folder / ".room"
    replace_file(probe, bytes(ROOM_BYTES))
    probe.unlink(missing_ok=True)


def _proved(records: int, proofs: int) -> str:
    """The end of the work on a window's proofs.

    >>> _proved(4, 8), _proved(1, 2)
    ('all 4 records are proved (8 new proofs)', 'the only record is proved (2 new proofs)')

    :param proofs: the number of proofs that this attempt made; each record has several
    """
    if not records:
        return "the window has no record to prove"
    whole = f"all {records:,} records are" if records > 1 else "the only record is"
    return f"{whole} proved ({counted(proofs, 'new proof')})"


def _abandoned(window: Window) -> bool:
    last = window.state.entries[-1]
    return isinstance(last, WindowTrailer) and last.abandoned
