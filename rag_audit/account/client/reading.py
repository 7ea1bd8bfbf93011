"""The files of a window that an account reads over HTTP, and their checks. The caller transports the files.

A generator yields the address and the maximum size of each file that it needs, and receives the content.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from rag_audit._internal.canonical import jcs, parse_json
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import EncodingError, InvalidProof, SignatureError
from rag_audit.account.account import Account, check_receipt
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merkle import HASH_SIZE, HashTree, leaf_hash
from rag_audit.log.note import parse_note
from rag_audit.log.tiles import MAX_BUNDLE_BYTES, TILE_WIDTH, entries_path, parse_bundle, tile_path
from rag_audit.models.publication import MAX_PUBLICATION_BYTES, Publication
from rag_audit.models.records import MAX_CHECKPOINT_BYTES, QueryRecord

T = TypeVar("T")
Wanted: TypeAlias = tuple[str, int]
Reading: TypeAlias = Generator[Wanted, bytes, T]
MAX_ENTRIES = 1 << 24
"""Maximum entries of a log that is read: half a gigabyte of hashes."""


def published(provider: VerifierKey) -> Reading[Publication]:
    """The served window. Its documents must match its window header, which must be entry 0 of the provider's log.

    :raises InvalidProof: a published document is not the committed one, or the log has another entry 0
    :raises SignatureError: the provider did not sign the log's first checkpoint
    """
    data = yield "/public/header.json", MAX_PUBLICATION_BYTES
    window = Publication.of(parse_json(data, source="header.json", max_bytes=MAX_PUBLICATION_BYTES),
                            field="header.json")  # fmt: skip
    window.check()
    note = yield f"{address_of(window)}/checkpoint-1.txt", MAX_CHECKPOINT_BYTES
    try:
        head = open_checkpoint(
            note, origin=window.parsed_header().log, log_key=provider, field="checkpoint-1.txt"
        )
    except SignatureError as exc:
        exc.message = "the provider's key that you named did not sign the ledger of the window"
        exc.hint = (
            "the address or the key belongs to another service: ask the provider for both (its file provider.skey.pub"
            " has the key)"
        )
        raise
    result = (head.checkpoint.size, head.checkpoint.root)
    if result != (1, leaf_hash(jcs(window.header))):
        raise InvalidProof(
            "the provider's log does not begin with the published window header", field="checkpoint-1.txt"
        )
    return window


@dataclass(frozen=True)
class Recorded:
    """The entries of a log about one account.

    :param size: entries under the checkpoint that was read
    :param queries: the account's records, hq by the number of the query
    """

    size: int
    queries: dict[int, str]


def recorded(account: str, window: Publication, provider: VerifierKey) -> Reading[Recorded]:
    """Read one account's records from a window's log. The function reads all entries, and checks them against the
    checkpoint.

    :param account: the account's id
    :raises InvalidProof: the entries do not match the checkpoint
    :raises SignatureError: the provider did not sign the checkpoint
    """
    base = address_of(window)
    note = yield f"{base}/checkpoint", MAX_CHECKPOINT_BYTES
    log = window.parsed_header().log
    head = open_checkpoint(note, origin=log, log_key=provider, field="checkpoint").checkpoint
    _check_size(head.size)
    leaves, queries = list[bytes](), dict[int, str]()
    for first in range(0, head.size, TILE_WIDTH):
        width = min(TILE_WIDTH, head.size - first)
        path = entries_path(first // TILE_WIDTH, width)
        bundle = yield f"{base}/{path}", MAX_BUNDLE_BYTES
        entries = parse_bundle(bundle, path)
        if len(entries) != width:
            raise EncodingError(
                "a bundle has the wrong number of entries", field=path, expected=width, actual=len(entries)
            )
        for entry in entries:
            leaves.append(leaf_hash(entry))
            value = parse_json(entry, source=path)
            if not isinstance(value, dict) or (value.get("type"), value.get("account")) != ("query", account):
                continue
            i, hq = value.get("i"), value.get("hq")
            if type(i) is not int or not isinstance(hq, str):
                raise EncodingError(
                    "a record has no number or no hq", field=f"{path}, entry {len(leaves) - 1}"
                )
            queries[i] = hq
    if HashTree(leaves).root() != head.root:
        raise InvalidProof("the entries do not match the checkpoint", field="checkpoint")
    return Recorded(head.size, queries)


def _check_size(size: int) -> None:
    if size > MAX_ENTRIES:
        raise EncodingError("the log is too long", field="checkpoint", expected=f"at most {MAX_ENTRIES} entries",
                            actual=size)  # fmt: skip


@dataclass(frozen=True)
class ComparedReceipts:
    """The result of comparing an account's receipts with the log.

    :param size: entries under the checkpoint that was read
    :param checked: receipts with a record in the log, which only grew since they were signed
    :param later: receipts that are signed for a longer log than the checkpoint that was read
    :param cosigned: number of the given witnesses that cosigned the checkpoint
    """

    size: int
    checked: int
    later: int
    cosigned: int


def compared(
    account: Account, window: Publication, provider: VerifierKey, witnesses: tuple[VerifierKey, ...] = ()
) -> Reading[ComparedReceipts]:
    """Check an account's receipts against the window's log. Each record must be at the place that its receipt states.
    Each checkpoint that the account has seen, in receipts or in an earlier call, must be a prefix of the log.

    :raises InvalidProof: the log contradicts a receipt, or shrank or changed; the receipts are the evidence
    :raises SignatureError: the provider did not sign the checkpoint
    """
    base, log = address_of(window), window.parsed_header().log
    note = yield f"{base}/checkpoint", MAX_CHECKPOINT_BYTES
    signed = open_checkpoint(note, origin=log, log_key=provider, witnesses=witnesses)
    head, leaves = signed.checkpoint, list[bytes]()
    _check_size(head.size)
    for first in range(0, head.size, TILE_WIDTH):
        width = min(TILE_WIDTH, head.size - first)
        path = tile_path(0, first // TILE_WIDTH, width)
        tile = yield f"{base}/{path}", TILE_WIDTH * HASH_SIZE
        if len(tile) != width * HASH_SIZE:
            raise EncodingError(
                "a tile has the wrong size", field=path, expected=width * HASH_SIZE, actual=len(tile)
            )
        leaves += (tile[at : at + HASH_SIZE] for at in range(0, len(tile), HASH_SIZE))
    tree = HashTree(leaves)
    if tree.root() != head.root:
        raise InvalidProof("the tiles do not match the checkpoint", field="checkpoint")
    seen = account.directory / f"checkpoint-{window.header_digest()[:16]}.txt"
    _not_before(seen, tree, log, provider)
    checked = later = 0
    for kept in account.receipts(window):
        receipt = check_receipt(kept.receipt, window, provider)
        if receipt.checkpoint.size > tree.size:
            later += 1
            continue
        _contained(receipt.record, receipt.checkpoint, tree, f"receipt {kept.i}")
        checked += 1
    replace_file(seen, note, mode=0o600)
    return ComparedReceipts(tree.size, checked, later, len(signed.cosignatures))


def _contained(record: QueryRecord, seen: Checkpoint, tree: HashTree, field: str) -> None:
    if tree.root(seen.size) != seen.root:
        raise InvalidProof("the log does not extend the log behind a receipt", field=field,
                           hint="store the receipt in a safe place: it proves that the provider signed two"
                                " logs")  # fmt: skip
    if tree.leaf(record.seq) != leaf_hash(record.canonical()):
        raise InvalidProof("the log has another record at the index of a receipt", field=field,
                           hint="store the receipt in a safe place: it proves that the provider signed two"
                                " logs")  # fmt: skip


def _not_before(seen: Path, tree: HashTree, log: str, provider: VerifierKey) -> None:
    """Compare the log with the checkpoint that an earlier call stored."""
    if not seen.exists():
        return
    last = open_checkpoint(
        parse_note(seen.read_bytes()), origin=log, log_key=provider, field=seen.name
    ).checkpoint
    if last.size > tree.size or tree.root(last.size) != last.root:
        raise InvalidProof("the log lost or changed entries since the last read", field=seen.name,
                           expected=f"{last.size} entries", actual=tree.size,
                           hint="store that file in a safe place: it proves that the provider signed two"
                                " logs")  # fmt: skip


def address_of(window: Publication) -> str:
    """The window's own address, which no other window has.

    >>> address_of(Publication.load(Path("docs/examples")))
    '/windows/w-1'
    """
    return f"/windows/{quote(window.parsed_header().window, safe='')}"
