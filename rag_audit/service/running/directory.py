"""The folder of a run: its windows by number, and the little that is not in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rag_audit._internal.canonical import read_json
from rag_audit._internal.clock import local_time
from rag_audit._internal.durable import PRIVATE_MODE, replace_file, sync_directory
from rag_audit._internal.errors import SetupError, StoreError, WindowStateError
from rag_audit._internal.lock import is_locked, lock_file
from rag_audit.attest.reading import WindowReader, written_at
from rag_audit.commit.stored import load_stored, unfinished
from rag_audit.log.keys import VerifierKey
from rag_audit.log.place import begun
from rag_audit.models.layout import Layout, Named
from rag_audit.models.models import Count, Hex32, Identifier, Millis, Model, One
from rag_audit.models.policy import Policy
from rag_audit.models.records import WitnessBeacon

MAX_STATE_BYTES = 1 << 24


class Failure(Model):
    """An act of a run that failed at its last attempt.

    :param action: the act, such as `prepare w-2`
    :param message: the error with its remedy
    :param attempts: the number of failed attempts since the act last succeeded
    :param first_at: the time of the first of these attempts, and `last_at` of the last, in milliseconds since the epoch
    :param next_at: the time of the next attempt; 0 if the run makes no further attempt
    """

    action: str
    message: str
    attempts: Count
    first_at: Millis
    last_at: Millis
    next_at: Millis


class Progress(Model):
    """How far a job of a run is.

    :param action: the act, such as `prepare w-2`
    :param step: the step of the act, such as the documents of a tenant
    :param began: the time at which the step was first seen, and `at` of this look, in milliseconds since the epoch
    """

    action: str
    step: str
    done: Count
    total: Count
    began: Millis
    at: Millis

    @property
    def rate(self) -> float | None:
        """Units of the step per second so far; None if nothing is done yet."""
        if not self.done or self.at <= self.began:
            return None
        return self.done / ((self.at - self.began) / 1000)

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds at the rate so far; None if nothing is done yet."""
        return None if self.rate is None else (self.total - self.done) / self.rate

    def __str__(self) -> str:
        rate, left = self.rate, self.seconds_left
        about = "" if rate is None or left is None else f", {rate:.3g} per second, about {left:.0f} s left"
        return f"{self.action}: {self.step} {self.done:,} of {self.total:,}{about}"


class Unresponsive(Model):
    """A witness that does not answer the run's requests.

    :param since: the time of the first failed request, and `next_at` of the next request, in milliseconds since the
        epoch
    :param message: the error of the last request
    """

    witness: str
    since: Millis
    message: str
    next_at: Millis

    def __str__(self) -> str:
        return (
            f"witness {self.witness} does not answer since {local_time(self.since)}: {self.message}; the next request"
            f" follows at {local_time(self.next_at)}"
        )


class RunState(Model):
    """run.json: the facts that the windows' folders do not contain. Without it, the run reads published windows back
    once more.

    :param prefix: the part of windows' ids before their number
    :param published: windows with no remaining work except the answers to later challenges
    :param abandoned: the abandoned windows among them
    :param answered: digests of the challenges that are answered
    :param seen: approximately the last time that the run has observed
    :param failures: the acts that failed at their last attempt
    :param progress: the jobs that take longer than a look
    :param asked: the witnesses that the run asks over HTTP, and `unresponsive` those that do not answer
    :param proves_all: whether the run proves every record without a challenge
    """

    v: One = 1
    prefix: str
    published: Annotated[list[Identifier], Field(default_factory=list)]
    abandoned: Annotated[list[Identifier], Field(default_factory=list)]
    answered: Annotated[list[Hex32], Field(default_factory=list)]
    seen: Millis = 0
    failures: Annotated[list[Failure], Field(default_factory=list)]
    progress: Annotated[list[Progress], Field(default_factory=list)]
    asked: Annotated[list[str], Field(default_factory=list)]
    unresponsive: Annotated[list[Unresponsive], Field(default_factory=list)]
    proves_all: bool = False


@dataclass(frozen=True)
class Place:
    """One window's place on the shelf.

    :param number: its number, from 1
    """

    number: int
    folder: Path

    @property
    def window(self) -> str:
        """The window's id."""
        return self.folder.name

    @property
    def layout(self) -> Layout:
        """The paths of its files."""
        return Layout(self.folder)

    @property
    def opened(self) -> bool:
        """Whether its header is durable."""
        return self.folder.exists() and not unfinished(self.folder)

    @property
    def prepared(self) -> bool:
        """Whether it is prepared and not opened."""
        return self.layout.prepared.exists() and unfinished(self.folder)


@dataclass(frozen=True)
class Facts:
    """The facts about an opened window that a run caches.

    :param delete_after: when its secrets are deleted
    :param witnesses: the witnesses that the window waits for
    :param nonces: commitments to nonces in the window header
    """

    delete_after: int
    witnesses: tuple[VerifierKey, ...]
    nonces: frozenset[str]


class RunDirectory:
    """A run's folder, made if it is missing, and locked by the one process that runs it.

    :raises SetupError: another process runs it, or its windows have another prefix
    """

    windows = Named("windows")
    """The folder of the windows' folders."""
    current = Named("current")
    """A link to the public folder of the window that answers, or will answer next."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder = folder
        self._facts: dict[str, Facts] = {}
        try:
            self.windows.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        except OSError as exc:
            raise StoreError(
                "the run's folder cannot be made", field=str(folder), actual=exc.strerror
            ) from exc
        lock = lock_file(folder / "lock", wait=False)
        if lock is None:
            raise SetupError("another process uses this folder", field=str(folder),
                             hint="stop it first, or name another folder")  # fmt: skip
        self._lock = lock
        try:
            self.state = load_state(folder) or RunState(
                prefix=prefix, published=[], abandoned=[], answered=[], failures=[], progress=[], asked=[],
                unresponsive=[],
            )  # fmt: skip
            self.state = self.state.model_copy(
                update={"progress": [], "unresponsive": []}
            )  # of a process that ended
            if self.state.prefix != prefix:
                raise SetupError("the folder's windows have another prefix", field="schedule.prefix",
                                 expected=self.state.prefix, actual=prefix)  # fmt: skip
            self._save()
        except BaseException:
            self.close()
            raise

    def place(self, number: int) -> Place:
        """The place of the window of that number."""
        return Place(number, self.windows / f"{self.state.prefix}{number}")

    def places(self) -> list[Place]:
        """The windows that have a folder, by number."""
        return sorted(places(self.folder, self.state.prefix), key=lambda p: p.number)

    def latest(self) -> Place | None:
        """The last window with a durable header."""
        return next((p for p in reversed(self.places()) if p.opened), None)

    def opened_before(self, place: Place) -> list[Path]:
        """The folders of the opened windows before a place, the latest first."""
        return [p.folder for p in reversed(self.places()) if p.number < place.number and p.opened]

    def facts(self, place: Place) -> Facts:
        """The facts from an opened window's commitment."""
        if place.window not in self._facts:
            stored = load_stored(place.folder)
            policy = Policy.parse(stored.policy, field="commitment.json.policy")
            beacon = stored.header.beacon
            named = beacon.witnesses if isinstance(beacon, WitnessBeacon) else []
            keys = [VerifierKey.parse(w, field="commitment.json.witnesses") for w in stored.witnesses]
            self._facts[place.window] = Facts(
                policy.delete_after, tuple(keys), frozenset(w.commitment for w in named)
            )
        return self._facts[place.window]

    def used_nonces(self) -> set[str]:
        """The commitments to nonces that openings here name already."""
        return {nonce for place in self.places() if place.opened for nonce in self.facts(place).nonces}

    def point(self, place: Place) -> None:
        """Let `current` name a window's public folder."""
        target = os.path.relpath(place.layout.public.folder, self.folder)
        with suppress(OSError):
            if os.readlink(self.current) == target:
                return
        new = self.folder / ".current"
        try:
            new.unlink(missing_ok=True)
            new.symlink_to(target)
            os.replace(new, self.current)
            sync_directory(self.folder)
        except OSError as exc:
            raise StoreError(
                "the link cannot be written", field=str(self.current), actual=exc.strerror
            ) from exc

    def published(self, place: Place, *, abandoned: bool = False) -> None:
        """Note that a window is done."""
        if place.window not in self.state.published:
            lost = [*self.state.abandoned, place.window] if abandoned else self.state.abandoned
            self._update(published=[*self.state.published, place.window], abandoned=lost)

    def answered(self, challenge: str) -> None:
        """Note that the challenge of that digest is answered."""
        if challenge not in self.state.answered:
            self._update(answered=[*self.state.answered, challenge])

    def failed(self, action: str, message: str, now: int, next_at: int) -> None:
        """Note that an act failed.

        :param next_at: the time of the next attempt; 0 if there is none
        """
        before = next((f for f in self.state.failures if f.action == action), None)
        failure = Failure(
            action=action,
            message=message,
            attempts=1 if before is None else before.attempts + 1,
            first_at=now if before is None else before.first_at,
            last_at=now,
            next_at=next_at,
        )
        self._update(failures=[*self._without(action), failure])

    def succeeded(self, action: str) -> None:
        """Note that an act succeeded."""
        if (others := self._without(action)) != self.state.failures:
            self._update(failures=others)

    def progressed(self, progress: list[Progress]) -> None:
        """Note how far the jobs are."""
        if progress != self.state.progress:
            self._update(progress=progress)

    def configured(self, asked: Sequence[str], *, proves_all: bool) -> None:
        """Note the facts of the configuration that `provider status` shows.

        :param asked: the witnesses that the run asks over HTTP
        """
        if (list(asked), proves_all) != (self.state.asked, self.state.proves_all):
            self._update(asked=list(asked), proves_all=proves_all)

    def unresponsive(self, witnesses: list[Unresponsive]) -> None:
        """Note the witnesses that do not answer."""
        if witnesses != self.state.unresponsive:
            self._update(unresponsive=witnesses)

    def _without(self, action: str) -> list[Failure]:
        return [failure for failure in self.state.failures if failure.action != action]

    def saw(self, now: int, *, every: int) -> None:
        """Note the time, at most once in `every` milliseconds."""
        if abs(now - self.state.seen) >= every:
            self._update(seen=now)

    def close(self) -> None:
        """Release the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _update(self, **changes: object) -> None:
        self.state = self.state.model_copy(update=changes)
        self._save()

    def _save(self) -> None:
        replace_file(self.folder / "run.json", self.state.canonical(), mode=PRIVATE_MODE)


def load_state(folder: Path) -> RunState | None:
    """The state of a run's folder, or None if the folder is not one."""
    path = folder / "run.json"
    if not path.exists():
        return None
    return RunState.parse(read_json(path, max_bytes=MAX_STATE_BYTES), field=str(path))


def places(folder: Path, prefix: str) -> Iterator[Place]:
    """The windows' folders of a run, in no order."""
    try:
        names = [path.name for path in (folder / "windows").iterdir() if path.is_dir()]
    except FileNotFoundError:
        return
    except OSError as exc:
        raise WindowStateError("cannot be read", field=str(folder), actual=exc.strerror) from exc
    for name in names:
        number = re.fullmatch(r"[1-9][0-9]{0,8}", name.removeprefix(prefix))
        if name.startswith(prefix) and number:
            yield Place(int(number[0]), folder / "windows" / name)


def is_running(folder: Path) -> bool:
    """Whether a process runs the folder."""
    return is_locked(folder / "lock")


def in_order(folder: Path, state: RunState) -> list[Place]:
    """A run's windows by number."""
    return sorted(places(folder, state.prefix), key=lambda place: place.number)


def without_commands(text: str) -> str:
    """The condition that a window waits for, without the commands on its folder that a run makes unnecessary."""
    for pattern, instead in (
        (r", then run `rag-audit [a-z ]+`.*", ""),
        (r" \(`rag-audit provider prove[^`]*`\)", ""),
        (r"; `rag-audit provider prove`.*", ""),
        (r": `rag-audit provider (serve|prove|open)[^`]*`.*", ""),
        (r"^`rag-audit provider close`: ", "its window trailer: "),
        (r"^`rag-audit provider open` on the window's folder, which reads ", ""),
    ):
        text = re.sub(pattern, instead, text)
    return text


def standings(folder: Path, state: RunState, now: int) -> list[dict[str, object]]:
    """The state of each window of a run by number: `Standing` with the window's id, or the progress of its preparation.

    :param now: milliseconds since the epoch
    """
    result: list[dict[str, object]] = []
    for place in in_order(folder, state):
        before = result[-1]["status"] if result else None
        result.append({"window": place.window, **_standing(place, state, now, before)})
    return result


def _standing(place: Place, state: RunState, now: int, before: object) -> dict[str, object]:
    """The state of one window.

    :param before: the status of the window before it; None for the first window
    """
    layout = place.layout
    if (
        not layout.commitment.exists()
        or layout.unfinished.exists()
        or not begun(layout.ledger, layout.ledger_place)
    ):
        if layout.prepared.exists():
            waits = (
                "the end of the previous window"
                if before in ("committed", "active")
                else "the witnesses' nonces"
            )
            return {"status": "prepared", "since": written_at(layout.prepared), "waits_for": waits}
        since = written_at(layout.settings) or written_at(place.folder)
        return {"status": "being prepared", "since": since, "waits_for": "its documents' index"}
    result = asdict(WindowReader(place.folder).standing(now, state.asked, proves_all=state.proves_all))
    if place.window in state.abandoned:
        result |= {"status": "abandoned", "waits_for": "nothing"}
    elif place.window in state.published and not layout.secrets.exists():
        result |= {
            "status": "deleted",
            "waits_for": "no event: its secrets are deleted, and its published files remain",
        }
    result["waits_for"] = without_commands(str(result["waits_for"]))
    return result
