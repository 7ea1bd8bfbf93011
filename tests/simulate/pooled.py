"""Windows with pooled listing, alone and in a chain whose documents have persistent sampling bits."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

from rag_audit.attest.answers import Answers
from rag_audit.attest.listed_rows import ListedRowSets
from rag_audit.attest.state import LedgerState
from rag_audit.attest.window import Window
from rag_audit.commit import carrying, preparing
from rag_audit.mechanisms.base import TableShape
from rag_audit.models.records import QueryRecord, SlotKey
from rag_audit.relation.field import to_hex
from rag_audit.relation.native_secrets import topk_commitment
from tests.simulate.cases import Fault
from tests.simulate.forgeries import published
from tests.simulate.randomness import drawn_from
from tests.simulate.recorded import ASKED, SHAPE, Chains, PublishedChain, Recorded
from tests.window.forge import Forge
from tests.window.test_document_tables import FIRST, SECOND, THIRD, placing

REQUIRED: dict[str, Any] = {
    "mechanisms": ["pooled-listing", "sampling"],
    "max_exclusion_factor": "20",
    "min_keep": "0.7",
    "max_abandoned": 1,
    "max_empty": 1,
    "max_K_share": "0.375",
}
LAW = (("law-1", 1), ("law-1", 2), ("law-2", 1), ("law-2", 2))
EMPTY = 16
"""The number of positions, which stands for an empty place in htopk."""

# -- runs ----------------------------------------------------------------------------------------------------------


def started_from(base: dict[int, int]) -> Callable[[PublishedChain], object]:
    """A window whose record with a number (of the tenant's, from 0) starts from the set after fewer records than precede
    it, in ledger and proof.

    :param base: for each such record, how many records its set counts
    """

    def run(chain: PublishedChain) -> None:
        place = LedgerState.place

        def start(self: ListedRowSets, tenant: str) -> tuple[str | None, Any]:
            records = self._context.state.of_tenant[tenant]
            count = base.get(len(records), len(records)) if tenant == "law" else len(records)
            return None if count == 0 else records[count - 1].listed_rows, self.before(tenant, count)

        def moved(self: LedgerState, record: QueryRecord) -> int:
            actual = place(self, record)
            return base.get(actual, actual) if record.tenant == "law" else actual

        with (
            mock.patch.object(ListedRowSets, "start", start),
            mock.patch.object(LedgerState, "place", moved),
            mock.patch.object(LedgerState, "_chain", lambda self, record, preceding: None),
        ):
            chain.run(FIRST)

    return run


def more_than_m(chain: PublishedChain) -> None:
    """Two accounts with one query each may have two records; the provider answers a third."""
    with mock.patch.object(Answers, "_check_turn", lambda self, query: None):
        chain.run(FIRST, asked=ASKED[:4], n=1, accounts_max=2)


def continued(*numbers: int) -> Callable[[Any], Any]:
    """The folders that a provider reads, which does not check what it continues.

    :param numbers: of earlier windows, the latest first
    """
    return lambda folders: [folders[-number] for number in numbers]


def unchecked(chain: PublishedChain, choose: Callable[[Any], Any], texts: Any) -> None:
    """A window over the table of an earlier one that the provider chooses."""
    honest = carrying.carried_from

    def carried(folders: Any, tenant: str, *rest: Any) -> Any:
        return honest(choose(folders), tenant, *rest)

    with (
        mock.patch.object(preparing, "check_chain", lambda policy, folders, previous: None),
        mock.patch.object(carrying, "carried_from", carried),
    ):
        chain.run(texts)


def more_fresh_rows(chain: PublishedChain) -> None:
    with (
        mock.patch.object(carrying, "place_documents", placing(replace(SHAPE, fresh_rows=4))),
        mock.patch.object(TableShape, "drawn", lambda self, *, first: SHAPE.rows if first else 4),
    ):
        chain.run(SECOND)


def abandoned(chain: PublishedChain) -> None:
    """The same window in each chain that has it."""
    with drawn_from("table-abandoned"):
        chain.abandon(SECOND)


def skips_abandoned(chain: PublishedChain) -> None:
    abandoned(chain)
    unchecked(chain, continued(1), SECOND)


RUNS: dict[str, tuple[int, Callable[[PublishedChain], object]]] = {
    "pooled-cleared": (0, started_from({3: 0})),
    "pooled-forked": (0, started_from({3: 2})),
    "pooled-skipped": (0, started_from({3: 1})),
    "pooled-more": (0, more_than_m),
    "table-abandoned": (1, abandoned),
    "table-abandoned-skipped": (1, skips_abandoned),
    "table-older": (2, lambda chain: unchecked(chain, continued(1), THIRD)),
    "table-first-again": (1, lambda chain: unchecked(chain, lambda folders: [], SECOND)),
    "table-more-rows": (1, more_fresh_rows),
}
"""The bases apart from the honest chain: how many windows of the honest chain it starts with, and its own windows."""
HONEST = {"pooled": 1, "pooled-second": 2, "pooled-third": 3}
BY_CIRCUITS = {"documents-first": 1, "documents-second": 2, "documents-third": 3}
"""The windows of the chain whose tenants both sample by document, one of them with circuits."""


def base(name: str, chains: Chains) -> Recorded:
    """A base by its name."""
    if name in HONEST:
        return chains.honest(HONEST[name])
    windows, run = RUNS[name]
    return chains.other(name, windows, run)


# -- changes of a finished window ----------------------------------------------------------------------------------


def no_commitment(forge: Forge) -> None:
    forge.record("law-2", 2)["listed_rows"] = None


def commitment_of_another_mechanism(forge: Forge) -> None:
    forge.record("medicine-1", 1)["listed_rows"] = forge.record("law-1", 1)["listed_rows"]


def commitments_exchanged(forge: Forge) -> None:
    first, second = forge.record("law-1", 1), forge.record("law-2", 1)
    first["listed_rows"], second["listed_rows"] = second["listed_rows"], first["listed_rows"]


def one_set_twice(forge: Forge) -> None:
    forge.record("law-2", 1)["listed_rows"] = forge.record("law-1", 1)["listed_rows"]


def reordered(forge: Forge) -> None:
    first, second = forge.record("law-1", 1), forge.record("law-2", 1)
    a, b = forge.entries.index(first), forge.entries.index(second)
    forge.entries[a], forge.entries[b] = second, first
    first["ts"], second["ts"] = second["ts"], first["ts"]


def left_out(forge: Forge) -> None:
    """The first record of law-2, whose second one takes its number."""
    forge.entries.remove(forge.record("law-2", 1))
    forge.move("law-2", 2, 1)
    forge.drop_receipts_of("law-2")


def part(of: tuple[str, int], name: str, source: tuple[str, int], what: str) -> Callable[[Forge], None]:
    """A record's proof with a part of another record's."""

    def change(forge: Forge) -> None:
        changed = copy.deepcopy(forge.proofs[of])
        changed["retrieve"][name] = forge.proofs[source]["retrieve"][what]
        forge.proofs[of] = changed

    return change


def unproved(forge: Forge) -> None:
    del forge.proofs["law-1", 2]


def another_chance(forge: Forge) -> None:
    """The policy says a smaller chance than the one that drew."""
    next(t for t in forge.policy["tenants"] if t["tenant"] == "law")["flip_probability"] -= 1


def opened(forge: Forge) -> Window:
    finished = forge.finished
    return Window.resume(finished.window, key=finished.service.key, clock=finished.service.clock)


def relevant_row_omitted(forge: Forge) -> None:
    """The first record lists nothing, and its answer is empty; its proof is the one of the honest answer."""
    value, slot = forge.record("law-1", 1), SlotKey("law", "law-1", 1)
    with opened(forge) as window:
        context = window.context
        salts = context.retained(window.state.by_slot["law-1", 1]).opened(context.embedder).salts
        sets = ListedRowSets(context, window.samples)
        value["listed_rows"] = sets.commit(slot, value["hq"], None, sets.before("law", 0))
        places = [EMPTY] * context.mechanism("law").longest
    value["htopk"] = to_hex(topk_commitment(salts.top_k, places))
    forge.receipts = [r for r in forge.receipts if (r.account, r.i) != ("law-1", 1)]


def text_at_score_0(forge: Forge) -> None:
    """The receipt shows a passage in a place that htopk says is empty."""
    body = forge.receipt("law-1", 1).body
    spare = next(p for p in range(EMPTY) if p not in body["positions"])
    body["positions"].append(spare)
    body["documents"].append(body["documents"][0])


def carried_points(forge: Forge) -> None:
    """The sampling bits that the window takes over are those of another table."""
    own = forge.samples["law"]["sample"]
    data = base64.b64decode(own["previous"])
    third = len(data) // 3
    own["previous"] = base64.b64encode(data[:third] + data[2 * third :] + data[third : 2 * third]).decode()


def other_carried(forge: Forge) -> None:
    """The circuit's proof names a table with other bits."""
    own = forge.samples["law"]["sample"]
    own["carried"] = own["carried"][:-1] + ("0" if own["carried"][-1] != "0" else "1")


def handles_exchanged(forge: Forge) -> None:
    """Two columns of the table change places."""
    own = forge.samples["law"]["sample"]
    data = base64.b64decode(own["table"])
    own["table"] = base64.b64encode(data[32:64] + data[:32] + data[64:]).decode()


def made(name: str, says: str, base: str = "pooled", change: Any = None, **other: Any) -> Fault:
    """A case; a change leaves the receipts of changed records out."""
    changes = {} if change is None else {"change": change}
    return Fault(name, says, base=base, require={**REQUIRED, **other.pop("require", {})}, **changes, **other)


FIRST_TWO = ("pooled-listing", "pooled-listing-second")
FIRST_DOCUMENTS = ("sampling-by-document", "sampling-by-document-second")
SAMPLED = {"mode": "sampled", "beta": "0.5", "eta": "0.5", "challenge": "published"}
POOLED = [
    made("pooled-listing", "nothing: a tenant with pooled listing and one with sampling by document"),
    made("pooled-listing-second", "nothing: the second window of a chain", "pooled-second", previous=FIRST_TWO[:1]),
    made("pooled-listing-third", "nothing: the third window of a chain", "pooled-third", previous=FIRST_TWO),
    made("pooled-set-cleared", "a record starts from no listed row", "pooled-cleared", decides="proof.valid.law"),
    made("pooled-set-forked", "two records start from one set of listed rows", "pooled-forked", decides="proof.valid.law"),
    made("pooled-set-skipped", "a record starts from an older set of listed rows", "pooled-skipped",
         decides="proof.valid.law"),
    made("pooled-more-than-m-queries", "the tenant has more records than the chance counts", "pooled-more",
         decides="ledger.listed_rows"),
    made("pooled-record-without-commitment", "a record does not commit to the listed rows", change=no_commitment,
         decides="ledger.listed_rows"),
    made("pooled-commitment-of-a-sampled-tenant", "a record of another mechanism commits to the listed rows of another tenant",
         change=commitment_of_another_mechanism),
    made("pooled-commitments-exchanged", "two records have the commitments of one another", change=commitments_exchanged,
         decides="proof.valid.law"),
    made("pooled-one-set-for-two-requests", "two records commit to one set of listed rows", change=one_set_twice,
         decides="proof.valid.law"),
    made("pooled-records-reordered", "two accounts' records change places in the chain", change=reordered,
         decides="proof.valid.law"),
    made("pooled-record-left-out", "a record of the chain is missing", change=left_out, decides="proof.valid.law"),
    made("pooled-older-set-before", "a proof names the set of an older record as its start",
         change=part(("law-1", 2), "before", ("law-1", 1), "after"), decides="proof.valid.law"),
    made("pooled-relevant-document-omitted", "a relevant document is neither listed nor in the answer",
         change=relevant_row_omitted, shown=None, decides="proof.valid.law"),
    made("pooled-text-at-score-0", "a receipt has a passage in an empty place", change=text_at_score_0,
         decides="receipt.consistent"),
    made("pooled-record-without-proof", "a record of the chain has no proof", change=unproved, decides="proof.present"),
    made("pooled-listing-in-sampled-mode", "records that start from one another, of which only a draw is requested",
         require=SAMPLED, after=published(3), decides="proof.chain"),
    made("pooled-chance-above-the-policy", "the chance that drew is above the policy's", change=another_chance,
         decides="proof.sample.law"),
    made("pooled-chance-above-the-budget", "the chance of the policy is above what the relying party accepts",
         require={"max_epsilon": "4.1"}, decides="trust.max_epsilon"),
    made("pooled-listing-not-accepted", "a tenant has pooled listing, and the relying party accepts sampling alone",
         require={"mechanisms": ["sampling"]}, decides="trust.mechanisms"),
    made("table-abandoned", "the provider abandoned the second window of a chain after its beacon", "table-abandoned",
         previous=FIRST_TWO[:1], shown=()),
    made("table-of-an-abandoned-window-skipped", "the third window continues the table before an abandoned window",
         "table-abandoned-skipped", previous=("pooled-listing", "table-abandoned"), decides="header.tables"),
    made("table-of-an-older-window-continued", "the third window continues the table of the first one", "table-older",
         previous=FIRST_TWO, decides="header.tables"),
    made("table-first-again", "the second window has a table without one before it", "table-first-again",
         previous=FIRST_TWO[:1], decides="header.tables"),
    made("table-with-more-fresh-rows", "the second window draws bits for more rows than the policy says", "table-more-rows",
         previous=FIRST_TWO[:1], decides="proof.sample.law"),
    made("table-with-other-carried-bits", "a table's proof names other carried bits than the table before", "pooled-second",
         change=carried_points, previous=FIRST_TWO[:1], decides="proof.sample.law"),
    made("table-with-exchanged-handles", "a table's proof names another table than the header", "pooled-second",
         change=handles_exchanged, previous=FIRST_TWO[:1], decides="proof.sample.law"),
    made("sampling-by-document", "nothing: two tenants with document tables, one of them proved by circuits",
         "documents-first"),
    made("sampling-by-document-second", "nothing: the second window of a chain with circuits", "documents-second",
         previous=FIRST_DOCUMENTS[:1]),
    made("sampling-by-document-third", "nothing: the third window of a chain with circuits", "documents-third",
         previous=FIRST_DOCUMENTS),
    made("sampling-by-document-other-carried-bits", "a circuit's proof names other carried bits than the ledger",
         "documents-second", other_carried, previous=FIRST_DOCUMENTS[:1], decides="proof.sample.law"),
    made("sampling-by-document-without-the-first", "the first window of a chain with circuits is not supplied",
         "documents-second", decides="header.tables"),
]  # fmt: skip
