"""The acts of a run on its windows. Each act can be repeated: after a crash, the folder shows that the act is either
complete or not done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path

from rag_audit._internal.canonical import Json, digest_hex, jcs, read_text
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import PolicyError, SetupError
from rag_audit.attest.window import Window
from rag_audit.commit.carrying import Continuing, load_given_up
from rag_audit.commit.preparing import open_prepared, prepare
from rag_audit.commit.stored import delete_secrets
from rag_audit.log.note import MAX_NOTE_BYTES
from rag_audit.log.place import choose
from rag_audit.log.signing import SigningKey
from rag_audit.models.chain import ClosedWindow, Unanswered, outcome_of, reference
from rag_audit.models.drand import QUICKNET
from rag_audit.models.layout import Layout
from rag_audit.models.passage import Passage
from rag_audit.models.records import BeaconSource, DrandBeacon, PreviousWindow, WindowHeader, WindowTrailer
from rag_audit.models.roster import load_roster
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.executors import open_executor
from rag_audit.retrieval.cuts import describe_repeated_ids, note_cuts, with_embeddable
from rag_audit.retrieval.inventory import Inventory, grouped
from rag_audit.retrieval.texts import load_directory
from rag_audit.retrieval.vectors import CachedEmbedder
from rag_audit.service.process import Say
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.directory import Place, RunDirectory
from rag_audit.service.running.witnesses import drop_used, find_beacon

DRAND_LEAD_S = 61
"""A round must be due a minute after the quorum, which is complete before the window opens."""
Check = Callable[..., None]
"""Called with a job's progress; it raises when the job should end."""


class Acts:
    """A provider's acts under one configuration.

    :param key: the provider's key
    """

    def __init__(
        self, config: RunConfig, directory: RunDirectory, key: SigningKey, clock: Callable[[], int], say: Say
    ) -> None:
        self.config, self.directory, self.key, self._clock, self._say = config, directory, key, clock, say
        self._noted: set[str] = set()

    @property
    def origin(self) -> str:
        """The ledger's name."""
        return self.config.told.origin or self.key.name

    # -- the beginning of a window ---------------------------------------------------------------------------

    def prepare(self, place: Place, check: Check) -> None:
        """Read the documents and commit to them (`preparing.prepare`)."""
        told, policy = self.config.told, self.config.policy(place.window, self._clock())
        given, embedder = told.documents, self.config.embedder(policy)
        inventory = Inventory()

        def tell(line: str) -> None:
            self._say(f"{place.window}: {line}")

        left = given.given_up
        given_up = load_given_up(None if left is None else self.config.path(left))

        def commit(documents: Mapping[str, Sequence[Passage]]) -> None:
            prepare(place.folder, policy=policy, roster=load_roster(self.config.path(told.roster)), documents=documents,
                    embedder=embedder, origin=self.origin, witnesses=self.config.witnesses, progress=check,
                    continuing=Continuing(self.directory.opened_before(place), tell, given_up))  # fmt: skip

        documents = self._documents(inventory, check)
        for line in inventory.lines():
            tell(line)
        self._settings(place)
        with ExitStack() as stack:
            new: Mapping[str, Sequence[Passage]] = documents
            if given.vectors is not None:
                path = self.config.path(given.vectors)
                embedder = cached = stack.enter_context(CachedEmbedder(embedder, path, say=self._say))
                new = cached.unknown_of(documents)
            for line in (
                *describe_repeated_ids(documents),
                *grouped("cut", note_cuts(embedder, new, inventory)),
            ):
                tell(line)
            with_embeddable(commit, documents, embedder, inventory, skip=given.skip_unreadable, say=tell)
            if given.vectors is not None:
                tell(f"{cached.reused} vectors reused, {cached.embedded} texts embedded")

    def _documents(self, inventory: Inventory, check: Check) -> dict[str, list[Passage]]:
        given = self.config.told.documents
        read: dict[str, list[Passage]] = {}
        for folder, tenant in given.places:
            parts = load_directory(self.config.path(folder), text_alone=given.text_alone,
                                   document_column=given.document_column, cutting=given.cutting,
                                   skip_unreadable=given.skip_unreadable, one_tenant=tenant,
                                   inventory=inventory, progress=partial(check, "read files"))  # fmt: skip
            read |= {name: [d.passage for d in own] for name, own in parts.items()}
        return read

    def _settings(self, place: Place) -> None:
        """Let the commands of one window, such as `estimate`, work on this one too."""
        settings: dict[str, Json] = {"key": str(self.config.path(self.config.told.key).absolute())}
        if (model := self.config.model) is not None:
            settings["model"] = str(model.absolute())
        place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(place.layout.settings, jcs(settings))

    def open(self, place: Place, previous: PreviousWindow | None) -> WindowHeader | list[str]:
        """Date, chain and publish a prepared window.

        :returns: the window header, or the names of the witnesses without a fresh nonce line
        """
        told = self.config.told
        opens_at = self._clock() + told.schedule.lead_ms
        nonces, used = self.config.path(told.nonces), self.directory.used_nonces()
        beacon: BeaconSource | None
        if told.beacon == "drand":
            round_ = -(-(opens_at // 1000 + DRAND_LEAD_S - QUICKNET.genesis) // QUICKNET.period) + 1
            beacon = DrandBeacon(source="drand", chain=QUICKNET.hash.hex(), round=round_)
        else:
            beacon, missing = find_beacon(nonces, self.config.beacon_witnesses, used, self.once)
            if beacon is None:
                return missing
        try:
            choose(place.layout.ledger_place, told.store)
            header = open_prepared(
                place.folder,
                key=self.key,
                origin=self.origin,
                policy=self.config.policy(place.window, opens_at),
                roster=load_roster(self.config.path(told.roster)),
                beacon=beacon,
                witnesses=self.config.witnesses,
                previous=previous,
                clock=self._clock,
            )
        except PolicyError:  # policy or roster changed since then; the index is reused if it still fits
            place.layout.prepared.unlink(missing_ok=True)
            raise
        drop_used(nonces, self.directory.used_nonces())
        return header

    def once(self, line: str) -> None:
        """Report a repeated observation only the first time."""
        if line not in self._noted:
            self._noted.add(line)
            self._say(line)

    def resume(self, place: Place) -> Window:
        """Read a window back."""
        window = Window.resume(place.folder, key=self.key, model=self.config.model, clock=self._clock)
        serve = self.config.told.serve
        window.low_memory, window.noise_pool.max_bytes = serve.low_memory, serve.noise_mib << 20
        return window

    # -- its end ---------------------------------------------------------------------------------------------

    def close(self, window: Window, check: Check) -> None:
        """Close a window at its date."""
        with self._executor() as executor:
            window.close(certify=self.config.told.proving.certify, executor=executor, progress=check)

    def prove(self, window: Window, check: Check) -> int:
        """Prove every record that is not proved, and publish the proofs."""
        with self._executor() as executor:
            return window.prove(batch=None, executor=executor, progress=check)

    def answer(self, place: Place, note: Path, check: Check) -> int:
        """Prove the records that a verifier's challenge draws."""
        text = read_text(note, max_bytes=MAX_NOTE_BYTES)
        with self.resume(place) as window, self._executor() as executor:
            result = window.answer_challenge(text, batch=None, executor=executor, progress=check)
        self.directory.answered(digest_hex(text))
        return result

    def _executor(self) -> AbstractContextManager[Executor | None]:
        proving = self.config.told.proving
        if proving.executor is None and proving.workers == 0:
            return nullcontext()
        return open_executor(proving.executor, workers=proving.workers)

    def forget(self, place: Place) -> None:
        """Delete a window's secrets on the date that its policy sets."""
        delete_secrets(place.folder)


def previous_of(window: Window) -> PreviousWindow:
    """The reference to a window that has ended, as its successor's header carries it."""
    state, header = window.state, window.header
    if not isinstance(state.entries[-1], WindowTrailer):
        raise SetupError("the window has not ended", field=header.window)
    counts = Unanswered.before(header).after(outcome_of(state.entries))
    return reference(window.header_digest, state.tree.root(), counts)


def previous_on_disk(layout: Layout) -> PreviousWindow:
    """`previous_of` for a window that is not open, from its window file."""
    return ClosedWindow.of(WindowFile.load(layout.public.folder), field=layout.folder.name).as_previous()
