"""What a run asks of witnesses that have an address, each in a thread of its own and with growing patience."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rag_audit._internal.canonical import jcs
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import RagAuditError
from rag_audit.attest.service import Say
from rag_audit.attest.submitting import Remote, Submitting, fetch_nonce, names_nonce
from rag_audit.attest.waiting import missing_cosignatures
from rag_audit.attest.window import Window
from rag_audit.log.keys import SigningKey
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.jobs import Jobs

FIRST_MS, LAST_MS = 2_000, 60_000
"""How long a witness that failed or refused is left alone, at first and at most."""


class Submissions:
    """The requests of a run to its witnesses. What they answer lies in the folders where `Notes` looks for it.

    :param origin: the ledger's name
    """

    def __init__(
        self,
        config: RunConfig,
        origin: str,
        key: SigningKey,
        jobs: Jobs,
        clock: Callable[[], int],
        say: Say,
    ) -> None:
        self._config, self._origin, self._key = config, origin, key
        self._jobs, self._clock, self._say = jobs, clock, say
        self._remotes = config.remotes
        self._later: dict[str, tuple[int, int]] = {}
        self._said: dict[str, str] = {}

    def look(self, window: Window) -> str | None:
        """Begin to ask for what a window lacks of a witness.

        :returns: what was begun, or None
        """
        for remote in self._remotes:
            if self._free(remote) and self._lacks(window, remote):
                return self._begin(remote, window.opening.window, lambda r=remote: self._both(window, r))  # type: ignore[misc]
        return None

    def nonces(self, missing: Sequence[str], window: str, folder: Path | None = None) -> str | None:
        """Begin to ask for a nonce line that a window's opening, or its enrolments, lack.

        :param missing: the names of the witnesses of whom there is none
        :param folder: where the line goes, if it is for enrolments
        """
        for remote in self._remotes:
            if remote.key.name in missing and self._free(remote):
                return self._begin(remote, window, lambda r=remote: self._nonce(r, window, folder))  # type: ignore[misc]
        return None

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
            try:
                act()
            except (RagAuditError, OSError) as exc:
                _, wait = self._later.get(name, (0, 0))
                wait = min(max(2 * wait, FIRST_MS), LAST_MS)
                self._later[name] = (self._clock() + wait, wait)
                if self._said.get(name) != str(
                    exc
                ):  # a witness that is down for an hour is one line, not a hundred
                    self._said[name] = str(exc)
                    self._say(f"{window}: witness {name}: {exc}; it is asked again until it answers")
            else:
                self._later.pop(name, None)
                if self._said.pop(name, None) is not None:
                    self._say(f"{window}: witness {name} answers again")

        self._jobs.start(f"ask {name}", ask)
        return f"ask {name} for {window}"

    def _both(self, window: Window, remote: Remote) -> None:
        public = window.context.layout.public.folder
        asked = Submitting(public, self._key.verifier, window.witnesses, held=window.state)
        if asked.cosign(remote) is None:
            asked.reveal(remote, len(window.witnesses))

    def _nonce(self, remote: Remote, window: str, folder: Path | None) -> Path:
        line = fetch_nonce(remote, self._origin, window, self._key).witnesses[0]
        folder = folder or self._config.path(self._config.told.nonces)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{line.name.replace('/', '_')}-{line.commitment[:16]}.json"
        replace_file(path, jcs(line.dump()))
        return path
