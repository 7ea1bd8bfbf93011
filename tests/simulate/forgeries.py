"""Forgeries that need more than a change before sealing: swapped notes, draws, pins, and what was once found to
pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import ALG_ED25519
from rag_audit.log.note import Note, cosign_note, parse_note, sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.challenge import Challenge
from tests.simulate.answers import Answerer
from tests.simulate.cases import Fault
from tests.window.simulator import ORIGIN

ZERO = "00" * 32
SAMPLED = {"mode": "sampled", "beta": "0.5", "eta": "0.3"}
PUBLISHED = {**SAMPLED, "challenge": "published"}
Value = dict[str, Any]

OUTSIDER = SigningKey("verifier.example.org", ALG_ED25519, bytes(range(32)))
"""A key under the verifier's name that no trust file has."""


def draw(
    value: Value, forge: Answerer, sample: int | None, *, key: SigningKey | None = None, **other: Any
) -> str:
    """A verifier's note over the window's end; another `nonce` is another draw."""
    head = Checkpoint.parse(parse_note(value["final_checkpoint"]).text)
    own = {
        "origin": ORIGIN,
        "window": "w-1",
        "size": head.size,
        "root": head.root,
        "nonce": b"n" * 32,
        **other,
    }
    note = Challenge(sample=sample, **own)
    return str(sign_note(note.text(), key or forge.finished.service.verifier_key))


def drawn(value: Value, note: str) -> list[int]:
    """The records that a note names."""
    records = [e["seq"] for e in value["entries"] if e["type"] == "query"]
    return Challenge.parse(parse_note(note).text, field="challenge").positions(records)


def published(sample: int | None, *, strip: bool = False, **other: Any) -> Callable[[Value, Answerer], None]:
    """The window answers a draw.

    :param strip: leave out the proofs that it does not ask for
    """

    def after(value: Value, forge: Answerer) -> None:
        note = draw(value, forge, sample, **other)
        value["challenges"] = [note]
        if strip:
            value["proofs"] = {
                seq: proof for seq, proof in value["proofs"].items() if int(seq) in drawn(value, note)
            }

    return after


def another_draw(value: Value, forge: Answerer) -> str:
    """A draw of this verifier's that names a record which the published one leaves out."""
    liked = set(drawn(value, draw(value, forge, 3)))
    notes = (draw(value, forge, 3, nonce=bytes([n]) * 32) for n in range(99))
    return next(note for note in notes if set(drawn(value, note)) - liked)


def by_an_outsider(value: Value, forge: Answerer) -> None:
    value["challenges"] = [draw(value, forge, 3, key=OUTSIDER)]


def stripped_of_a_drawn_proof(value: Value, forge: Answerer) -> None:
    published(3, strip=True)(value, forge)
    del value["proofs"][min(value["proofs"], key=int)]


def another_header(value: Value, forge: Answerer) -> None:
    """The witnesses cosigned the honest opening."""
    value["header_checkpoint"] = forge.finished.file.header_checkpoint


def before_it_was_signed(forge: Answerer) -> None:
    forge.policy["delete_after"] += 1


def closed_a_millisecond_later(value: Value, forge: Answerer) -> None:
    value["entries"][-1]["ts"] += 1


def a_record_is_left_out(value: Value, forge: Answerer) -> None:
    value["entries"].pop(3)


def two_records_are_exchanged(value: Value, forge: Answerer) -> None:
    value["entries"].insert(3, value["entries"].pop(4))


def a_proof_of_the_beacon(value: Value, forge: Answerer) -> None:
    value["proofs"]["1"] = value["proofs"]["2"]


def counts_other_queries(forge: Answerer) -> None:
    forge.count = False
    forge.trailer["queries"] = 1


def another_eager_proof(forge: Answerer) -> None:
    forge.record("law-1", 1)["proof"] = ZERO


def no_records(forge: Answerer) -> None:
    forge.value["entries"] = [e for e in forge.entries if e["type"] != "query"]
    forge.receipts.clear()


def pinned(name: str, value: str) -> Callable[[str], str]:
    """Another pin in trust.toml."""

    def change(text: str) -> str:
        changed, count = re.subn(rf'^{name} = "[0-9a-f]*"', f'{name} = "{value}"', text, flags=re.MULTILINE)
        assert count == 1
        return changed

    return change


def unpinned(name: str) -> Callable[[str], str]:
    """A pin that is left out."""

    def change(text: str) -> str:
        changed, count = re.subn(rf'^{name} = ".*\n', "", text, flags=re.MULTILINE)
        assert count == 1
        return changed

    return change


def without_circuit_pins(text: str) -> str:
    """No verification key is pinned."""
    changed, count = re.subn(r"^\[\[pins\.groth16\]\]\n(?:[a-z]+ = .*\n)+\n?", "", text, flags=re.MULTILINE)
    assert count
    return changed


def a_ceremony(text: str) -> str:
    """The relying party knows the keys to be a ceremony's."""
    return text.replace('setup = "unsafe"', 'setup = "ceremony"')


def half_a_quorum(text: str) -> str:
    """One of two witnesses is enough, so that two ends of one ledger could both have a quorum."""
    return text.replace("quorum = 2", "quorum = 1", 1)


def more_lines(value: Value, forge: Answerer) -> None:
    """What honest witnesses, and strangers, may have left on a checkpoint: a line twice, a later one, an unknown
    one."""
    witness = forge.witnesses["w1"]
    for name in ("header_checkpoint", "final_checkpoint"):
        text = value[name]
        later = cosign_note(Note(parse_note(text).text, ()), witness, 1_900_000_000).signatures[0]
        value[name] = f"{text}{text.splitlines()[-1]}\n{later}\n— some.one.else Uw2QOkn8srV1\n"


def half_a_second_early(forge: Answerer) -> None:
    """The provider's clock and the witnesses' differ by a minute, which is allowed."""
    forge.trailer["ts"] = 1000 * max(forge.final_times.values()) + 60_000


def enrolled(forge: Answerer) -> None:
    forge.answer(forge.enrol("law-9", "law"))
    forge.another_query("law-9", 1, ("law-1", 2))


def two_faults(forge: Answerer) -> None:
    """A false proof; the receipts beside it are `a_file_that_is_no_receipt`'s."""
    one, other = forge.proofs["law-2", 1], forge.proofs["law-1", 2]
    one["retrieve"], other["retrieve"] = other["retrieve"], one["retrieve"]


def a_file_that_is_no_receipt(files: dict[str, bytes]) -> None:
    files["receipts/none.json"] = b'{"type": "receipt"'


def three_positions(forge: Answerer) -> None:
    """The provider signed a receipt with one position more than its policy lists."""
    held = forge.receipt("law-1", 2)
    held.body["positions"] = [*held.body["positions"], 7]
    held.body["documents"] = [*held.body["documents"], held.body["documents"][0]]


SHOWN = (("law-1", 1), ("law-1", 2))

FORGERIES = [
    Fault("enrolled", "nothing: an account enrolled during the window, and asked", enrolled, proving=True),
    Fault("eager", "nothing: one answer was proved before it left", lambda f: f.eager.add(("law-1", 1)), base="few"),
    Fault("more-signature-lines", "nothing: checkpoints carry repeated, later and unknown cosignatures", after=more_lines, base="few"),
    Fault("clocks-a-minute-apart", "nothing: the closing record's time is a minute after the quorum's", half_a_second_early, base="few"),
    Fault("ceremony", "nothing: the keys are pinned as a ceremony's", require={"allow_unsafe_setup": False}, trust=a_ceremony, base="few"),
    Fault("unsafe-setup-allowed", "nothing: the option allows what trust.toml does not",
          require={"allow_unsafe_setup": False}, options={"allow_unsafe_setup": True}, base="few"),
    Fault("another-opening-under-the-cosigned-checkpoint", "the witnesses cosigned another opening than the ledger's",
          before_it_was_signed, proving=True, after=another_header, base="few"),
    Fault("closing-record-edited", "the closing record was edited after it was signed", after=closed_a_millisecond_later, base="few"),
    Fault("record-dropped", "a record was dropped after the ledger was signed", after=a_record_is_left_out),
    Fault("records-reordered", "two records were exchanged after the ledger was signed", after=two_records_are_exchanged),
    Fault("proof-of-no-record", "a proof stands beside the beacon", after=a_proof_of_the_beacon, base="few"),
    Fault("closing-record-counts-other-queries", "the closing record counts a query less", counts_other_queries, base="few"),
    Fault("eager-proof-not-the-recorded-one", "a record names another eager proof than the window has", another_eager_proof,
          proving=True, base="few"),
    Fault("no-records", "nobody asked anything", no_records, shown=(), base="few"),
    Fault("another-noise-table-pinned", "the policy's noise table is not the pinned one", trust=pinned("noise_table", ZERO), base="few"),
    Fault("no-noise-table-pinned", "trust.toml pins no noise table", trust=unpinned("noise_table"), base="few"),
    Fault("no-circuit-pinned", "trust.toml pins no verification key", trust=without_circuit_pins, base="few"),
    Fault("another-key-pinned", "trust.toml pins another verification key", trust=lambda t: re.sub(r'^vk = "[0-9a-f]*"', f'vk = "{ZERO}"', t, flags=re.MULTILINE), base="few"),
    Fault("manifest-not-pinned", "proofs over a manifest that nobody pinned: another prompt",
          lambda f: f.value["embedder"]["embedder"].update(prompt=ZERO), proving=True, trust=unpinned("manifest"),
          require={"query_embedding": "proved"}, base="embedded"),
    Fault("a1-not-proved", "no proofs of A1, and the relying party asks for them", require={"query_embedding": "proved"}, base="few"),
    Fault("quorum-of-half", "trust.toml lets half of the witnesses be a quorum", trust=half_a_quorum, base="few"),
    Fault("sampled", "nothing: a sampled window, by the draw that it published", after=published(3), require=PUBLISHED),
    Fault("sampled-by-own-draw", "nothing: a sampled window, by the draw that the verifier names",
          after=published(3, strip=True), require=SAMPLED, challenge=lambda v, f: draw(v, f, 3)),
    Fault("sampled-all", "nothing: a draw of all records leaves nothing to choose", after=published(None),
          require={**SAMPLED, "challenge": "full"}),
    Fault("draw-of-the-provider-s-choice", "the window published a draw, and the relying party asks for its own",
          after=published(3), require=SAMPLED),
    Fault("of-two-draws-the-one-it-likes", "of two draws the provider answered the one that it likes",
          after=published(3, strip=True), require=SAMPLED, challenge=another_draw),
    Fault("no-draw", "sampled mode, and the window has no challenge", require=PUBLISHED),
    Fault("draw-over-another-root", "the challenge is over another ledger", after=published(3, root=bytes(32)),
          require=PUBLISHED),
    Fault("draw-of-too-few", "the challenge draws too few records", after=published(1), require=PUBLISHED),
    Fault("draw-by-a-stranger", "the challenge is by a key that trust.toml does not name", after=by_an_outsider,
          require=PUBLISHED),
    Fault("draw-that-is-no-note", "the challenge is no note", after=lambda v, f: v.update(challenges=["hello"]),
          require=PUBLISHED),
    Fault("own-draw-over-another-ledger", "the verifier's own challenge is over another ledger", after=published(3),
          require=SAMPLED, challenge=lambda v, f: draw(v, f, 3, size=3)),
    Fault("own-draw-by-a-stranger", "the verifier's own challenge is by a key that trust.toml does not name",
          require=SAMPLED, challenge=lambda v, f: draw(v, f, 3, key=OUTSIDER)),
    Fault("drawn-record-without-proof", "a record that the challenge draws has no proof", after=stripped_of_a_drawn_proof,
          require=PUBLISHED),
    Fault("sampled-window-in-full-mode", "proofs for a draw, where the relying party asks for all",
          after=published(3, strip=True)),
    Fault("malformed-receipt", "a file that is no receipt was handed in", files=a_file_that_is_no_receipt, base="few"),
    Fault("malformed-receipt-beside-a-false-proof", "a file that is no receipt hides no false proof", two_faults,
          files=a_file_that_is_no_receipt),
    Fault("receipt-of-more-positions", "a receipt opens more positions than the policy lists", three_positions,
          shown=SHOWN),
]  # fmt: skip
