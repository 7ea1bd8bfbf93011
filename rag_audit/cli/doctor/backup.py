"""The check of a backup: which parts of a folder are complete, and which of them must not be restored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rag_audit._internal.canonical import jcs, read_text
from rag_audit._internal.clock import now_ms
from rag_audit._internal.errors import RagAuditError, SetupError, StoreError

CONFIG = "provider.toml"
State = Literal["ok", "damaged", "not restorable"]


@dataclass(frozen=True)
class Part:
    """A part of a backup.

    :param name: the file or the window
    :param state: whether it is complete, damaged or missing, or must not be put back
    :param told: its content, the damage, or the reason with the next step
    """

    name: str
    state: State
    told: str


def parts(folder: Path) -> list[Part]:
    """The parts of a backup of a provider's, an account's or a witness's folder. The function changes no file, apart
    from empty lock files.

    :raises SetupError: the folder is none of them
    """
    if (folder / CONFIG).exists():
        return [*_provider(folder)]
    if (folder / "account.skey").exists():
        return [*_account(folder)]
    if (folder / "key").exists() and (folder / "state.json").exists():
        return [*_witness(folder)]
    raise SetupError("the folder is no backup", field=str(folder),
                     expected=f"{CONFIG} of a provider, account.skey of an account, or key and state.json of a witness",
                     hint="name the folder that contains this file")  # fmt: skip


def _provider(folder: Path) -> Iterator[Part]:
    from rag_audit.log.signing import SigningKey
    from rag_audit.service.running.config import RunConfig
    from rag_audit.service.running.directory import in_order, load_state

    try:
        told = RunConfig.load(folder / CONFIG)
    except RagAuditError as exc:
        yield Part(CONFIG, "damaged", str(exc))
        return
    try:
        told.check(now_ms())
        yield Part(CONFIG, "ok", "configuration, policy and roster fit together")
    except RagAuditError as exc:
        yield Part(CONFIG, "damaged", str(exc))
    try:
        yield Part("key", "ok", SigningKey.load(told.path(told.told.key)).name)
    except RagAuditError as exc:
        yield Part("key", "damaged", f"{exc}; without the key no window of this chain can be opened")
    try:
        state = load_state(told.folder)
    except RagAuditError as exc:
        yield Part(
            "run.json", "damaged", f"{exc}; delete the file, and the run inspects its windows once more"
        )
        state = None
    if state is None:
        yield Part("windows", "ok", f"{told.folder} has no window")
        return
    for place in in_order(told.folder, state):
        if not place.opened:
            yield Part(place.window, "ok", "not published yet; the run makes it anew if it is missing")
            continue
        try:
            yield _window(place.folder, place.window)
        except (RagAuditError, sqlite3.DatabaseError) as exc:
            yield Part(place.window, "damaged", str(exc))


def _window(folder: Path, name: str) -> Part:
    """A published window: its ledger against its signed checkpoints, and its secrets.

    :raises RagAuditError: a file is missing or damaged
    """
    from rag_audit.attest.reading import WindowReader
    from rag_audit.log.checkpoint import Checkpoint
    from rag_audit.log.merkle import HashTree, leaf_hash
    from rag_audit.log.note import MAX_NOTE_BYTES, parse_note
    from rag_audit.models.layout import Layout
    from rag_audit.models.records import WindowTrailer

    layout, entries = Layout(folder), WindowReader(folder).entries
    leaves = [leaf_hash(jcs(entry.dump())) for entry in entries]
    for path in sorted(layout.public.folder.glob("checkpoint-*.txt")):
        head = Checkpoint.parse(parse_note(read_text(path, max_bytes=MAX_NOTE_BYTES), field=path.name).text)
        if head.size > len(entries):
            return Part(name, "not restorable", f"the ledger has {len(entries)} entries, and {path.name} was signed"
                        f" over {head.size}: the ledger is older than the public folder. A restored ledger would be a"
                        " fork")  # fmt: skip
        if HashTree(leaves[: head.size]).root() != head.root:
            raise StoreError("the ledger does not match a signed checkpoint", field=path.name)
    if not isinstance(entries[-1], WindowTrailer):
        return Part(name, "not restorable", "the window was open. A provider with an older ledger would use numbers of"
                    " queries twice, and accounts could prove it. If the original is lost, serve nothing from this"
                    " copy: end it with `provider close --abandon`, and the next window counts it")  # fmt: skip
    secrets = (
        "with its secrets" if layout.secrets.exists() else "without secrets, so no further proof can be made"
    )
    return Part(name, "ok", f"ended, {len(entries)} entries, {secrets}")


def _account(folder: Path) -> Iterator[Part]:
    from rag_audit.account.account import Account

    try:
        account = Account(folder)
        yield Part("account", "ok", f"{account.account} of {account.tenant}")
    except RagAuditError as exc:
        yield Part("account", "damaged", str(exc))
        return
    try:
        receipts = account.all_receipts()
    except RagAuditError as exc:
        yield Part("receipts", "damaged", str(exc))
        return
    windows = len({receipt.header for receipt in receipts})
    yield Part("receipts", "ok", f"{len(receipts)} of {windows} windows; if questions followed after the backup, ask"
               " with the restored folder only in the next window (docs/accounts.md)")  # fmt: skip


def _witness(folder: Path) -> Iterator[Part]:
    from rag_audit.witness.witness import Witness

    try:
        witness = Witness(folder)
    except RagAuditError as exc:
        yield Part("witness", "damaged", str(exc))
        return
    yield Part("key", "ok", str(witness.vkey))
    yield Part("state.json", "not restorable", "a witness with an older state may cosign a fork and reveal a nonce"
               " twice. Restore it only if no request came after the backup; otherwise make a new witness with a new"
               " key (`rag-audit witness init`), and tell providers and verifiers")  # fmt: skip
