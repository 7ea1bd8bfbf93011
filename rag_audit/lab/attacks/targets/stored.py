"""Replies of a service elsewhere. Each is stored when it arrives, so that an interrupted run resumes at the
interruption."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from threading import Event, Lock

from rag_audit._internal.canonical import sha256
from rag_audit.lab.attacks import journal
from rag_audit.lab.attacks.interface import Answer, Probe


@dataclass(eq=False)
class StoredReplies:
    """Asks the probes that the journal does not contain yet.

    :param answer: asks one probe
    :param journal: the file of answers; an unfinished last line is dropped
    :param service: the name of the service, so that replies of another service in the same folder are not confused with
        its own
    :raises StoreError: a line of the journal is damaged
    """

    answer: Callable[[Probe], Answer]
    journal: Path
    _: KW_ONLY
    label: str
    probabilities: bool
    service: str
    parallel: int = 1
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._known = journal.load(
            self.journal, lambda value: Answer(journal.reply_of(value), value["actual"])
        )

    def ask(self, probes: Sequence[Probe]) -> list[Answer]:
        """Answer probes in their order. Probes of one document and account run one after another.

        :raises RagAuditError: the service failed; the answers before the failure are stored
        """
        keys = [self._key(p) for p in probes]
        todo = {key: probe for key, probe in zip(keys, probes, strict=True) if key not in self._known}
        done, failed = 0, Event()
        with ThreadPoolExecutor(self.parallel) as pool:
            jobs = [pool.submit(self._one, key, probe, failed) for key, probe in todo.items()]
            try:
                while done < len(jobs):
                    part = jobs[done : done + 16]
                    finished, _ = wait(part, return_when=FIRST_EXCEPTION)
                    for job in part:  # in their order, since what follows a failure is another error, or none
                        if job in finished:
                            job.result()
                    done += len(finished)
                    if self.progress is not None:
                        self.progress(done, len(jobs))
            except BaseException:
                for job in jobs:
                    job.cancel()
                raise
        return [self._known[key] for key in keys]

    def _one(self, key: str, probe: Probe, failed: Event) -> None:
        if failed.is_set():
            return  # an account has one pending query
        try:
            answer = self.answer(probe)
        except BaseException:
            failed.set()
            raise
        with self._lock:
            journal.append(self.journal, journal.entry_of(key, answer.reply) | {"actual": answer.actual})
            self._known[key] = answer

    def _key(self, probe: Probe) -> str:
        what = [
            self.service,
            probe.document,
            probe.place,
            probe.account,
            type(probe.task).__name__,
            probe.task.prompt,
        ]
        return sha256(json.dumps(what).encode()).hex()
