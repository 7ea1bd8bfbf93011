"""Notes from witnesses and drand: cosignatures, and the beacon values that nobody chose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rag_audit._internal.errors import WindowStateError
from rag_audit.attest.context import Context
from rag_audit.attest.publishing import Publisher
from rag_audit.attest.state import Maker, source_of
from rag_audit.log.note import parse_note
from rag_audit.models.beacon import Reveal, drand_beacon, members_of, witness_beacon
from rag_audit.models.drand import DrandChain
from rag_audit.models.records import BeaconEntry, DrandBeacon


def admit(context: Context, publisher: Publisher, notes: Iterable[str]) -> None:
    """See `Window.admit`."""
    reveals: defaultdict[int, list[str]] = defaultdict(list)
    for text in notes:
        note = parse_note(text)
        if note.text.startswith("rag-audit/beacon/"):
            reveals[Reveal.parse(note.text).size].append(text)
        else:
            publisher.cosign(note)
    for size, group in sorted(reveals.items()):
        _admit_reveals(context, publisher, size - 1, size, group)


def admit_drand(
    context: Context, publisher: Publisher, signatures: Sequence[str], *, chain: DrandChain
) -> None:
    """See `Window.admit_drand`."""
    source = context.state.beacon_source(0)
    if not isinstance(source, DrandBeacon):
        raise WindowStateError("the opening names no drand round", field="beacon", found=source.source,
                               hint="the witnesses reveal: `witness beacon`, then run `open` again")  # fmt: skip
    if 0 in context.state.beacons:
        return
    signed, quorum = publisher.cosigned(1), len(context.witnesses)
    value, _ = drand_beacon(source, signatures, signed, chain=chain, quorum=quorum)
    _append(context, [0], "drand", value, list(signatures), str(signed.note))


def _admit_reveals(
    context: Context, publisher: Publisher, entry: int, size: int, notes: Sequence[str]
) -> None:
    state = context.state
    source = state.beacon_source(entry)
    with state.changed:
        together = state.waiting.get(source_of(source), {}) if entry else {}
        due = [e for e in dict.fromkeys([*together, entry]) if e < size and e not in state.beacons]
    if not due:
        return
    if isinstance(source, DrandBeacon):
        raise WindowStateError("the beacon is a drand round, not witnesses' nonces", field="beacon",
                               hint=f"`rag-audit open --drand-signature` takes round {source.round}")  # fmt: skip
    signed = publisher.cosigned(size)
    named = [m.vkey for m in members_of(source)]
    quorum, window = len(context.witnesses), context.opening.window
    value, _ = witness_beacon(source, notes, signed, trusted=named, quorum=quorum, window=window)
    _append(context, due, "witnesses", value, list(notes), str(signed.note))


def _append(
    context: Context, entries: Sequence[int], source: str, value: bytes, notes: list[str], checkpoint: str
) -> None:
    fields = {"type": "beacon", "v": 1, "source": source, "value": value.hex(), "notes": notes,
              "checkpoint": checkpoint}  # fmt: skip

    def beacon(entry: int) -> Maker:
        return lambda seq: BeaconEntry.parse({**fields, "entry": entry, "seq": seq}, field="beacon")

    with context.state.beacons_of(entries) as due:
        context.state.append_all([beacon(entry) for entry in due])
