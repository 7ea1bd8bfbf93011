"""`receipt.*`: the receipts of honest accounts agree with the ledger.

A receipt that is badly signed, edited or of another window is rejected (undecided), never a FAIL: otherwise an
account could frame the provider. Only a contradiction that the provider signed is a FAIL.
"""

from __future__ import annotations

from rag_audit._internal.errors import RagAuditError, SetupError
from rag_audit._internal.words import counted
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.models.receipts import OpenedReceipt, contradictions, open_receipt, withheld_once
from rag_audit.models.records import QueryRecord, verifies
from rag_audit.verify.case import Case, ReceiptFile, Reembed, Status
from rag_audit.verify.checks.signatures import provider_key


def check(case: Case, reembed: Reembed | None) -> None:
    """Run the group.

    >>> from pathlib import Path
    >>> from rag_audit.verify.verifier import open_window
    >>> folder = Path("docs/examples")
    >>> case = open_window(folder, trust=folder / "trust.toml", receipts=[folder / "receipts"])
    >>> check(case, None)
    >>> len(case.checks), {check.status.value for check in case.checks}
    (3, {'pass'})

    :param reembed: re-embeds disclosed questions, by the embedder with artefacts pinned in trust.toml
    """
    opened: list[tuple[ReceiptFile, OpenedReceipt]] = []
    rejected = list(case.unread)
    for item in case.receipts:
        try:
            opened.append((item, _open(case, item)))
        except RagAuditError as exc:
            rejected.append(f"{item.name}: {exc}")
    case.record(
        "receipt.accepted",
        Status.UNDECIDED if rejected else Status.PASS,
        "receipts for this window with signatures of provider and account",
        _first_of(rejected) if rejected else counted(len(opened), "receipt"),
    )
    result = [(item, text) for item, receipt in opened for text in _disagreements(case, receipt)]
    between = withheld_once([receipt for _, receipt in opened], case.policy)
    result += [(opened[index][0], text) for index, text in between.items()]
    wrong = [f"{item.name}: {text}" for item, text in result]
    # A receipt counts once, however many files contain it.
    accepted = {receipt.record.seq for _, receipt in opened}
    disagreeing = {id(item) for item, _ in result}
    case.tallies["receipts_repeated"] = len(opened) - len(accepted)
    case.tallies["receipts_accepted"] = len(accepted)
    case.tallies["receipts_agreeing"] = len(
        accepted - {r.record.seq for i, r in opened if id(i) in disagreeing}
    )
    case.tallies["disclosed"] = len({r.record.seq for i, r in opened if i.receipt.disclosed is not None})
    case.report("receipt.consistent", not wrong, "every receipt agrees with the ledger",
                wrong[0] if wrong else counted(len(opened), "receipt agrees", "receipts agree"))  # fmt: skip
    named = {receipt.record.seq: _listed(case, item) for item, receipt in opened}
    counting = sum(named.values())
    case.figures["receipts"], case.figures["receipts_other"] = counting, len(named) - counting
    case.tallies["receipts_dependent"] = own = len({r.record.seq for i, r in opened if _dependent(case, i)})
    minimum, kind = case.trust.require.min_receipts, "" if case.trust.pilot else "independent "
    free = counting - own  # in a pilot the provider's own accounts count too, like its witnesses
    wanted = "min_receipts (absent) receipts" if minimum is None else counted(minimum, "receipt")
    case.require("receipt.independent", minimum is not None and (free if kind else counting) >= minimum,
                 f"at least {wanted} of {kind}accounts in trust.toml",
                 free if kind or not own else f"{counting} ({free} independent)")  # fmt: skip
    _re_execute(case, opened, reembed)


def _first_of(complaints: list[str]) -> str:
    more = len(complaints) - 1
    return complaints[0] + (f" (and {more} more)" if more else "")


def _open(case: Case, item: ReceiptFile) -> OpenedReceipt:
    receipt = item.receipt
    _of_this_window(case, item)
    account = case.accounts().get(receipt.account)
    if account is None:
        raise SetupError(
            "the receipt's account is not on the roster", field=item.name, actual=receipt.account
        )
    if not verifies(bytes.fromhex(account.key), receipt.message(), receipt.sig):
        raise SetupError(
            "the receipt is not countersigned by its account", field=item.name, actual=receipt.account
        )
    opened = open_receipt(
        receipt.receipt,
        origin=case.header.origin,
        header_digest=case.header_digest,
        log_key=provider_key(case),
        field=item.name,
    )
    if opened.record.account != receipt.account:
        raise SetupError(
            "the receipt belongs to another account",
            field=item.name,
            expected=receipt.account,
            actual=opened.record.account,
        )
    return opened


def _of_this_window(case: Case, item: ReceiptFile) -> None:
    """Name a receipt of another service or window as such. The origin in the unverified note only selects the message.

    :raises SetupError: the receipt names the log of another window
    """
    note = TlogProof.parse(item.receipt.receipt, field=item.name).checkpoint
    if (actual := note.text.split("\n", 1)[0]) != case.header.log:
        raise SetupError(
            "the receipt belongs to another service or window", expected=case.header.log, actual=actual
        )


def _disagreements(case: Case, receipt: OpenedReceipt) -> list[str]:
    """The contradictions between the provider's signed data and the ledger."""
    tenant = case.tenants.get(receipt.record.tenant)
    wrong = ["the tenant is unknown"] if tenant is None else contradictions(receipt, tenant, case.policy)
    size = receipt.checkpoint.size
    if size > case.tree.size:
        if case.partial:  # the entries end before the unreadable ones
            return wrong
        wrong.append(f"the provider signed a ledger of {size} entries and published {case.tree.size}")
    elif case.tree.root(size) != receipt.checkpoint.root:
        wrong.append(f"split view: the provider signed another ledger of {size} entries in the receipt")
    record = receipt.record
    if case.partial and record.seq >= len(case.entries):
        return wrong
    published = case.entries[record.seq] if record.seq < len(case.entries) else None
    if not isinstance(published, QueryRecord) or published != record:
        wrong.append(f"the receipt's record {record.seq} is not in the ledger")
    return wrong


def _listed(case: Case, item: ReceiptFile) -> bool:
    """Whether the receipt is of an account that trust.toml lists, and the account has its own key."""
    named = case.trust.listed(item.receipt.account)
    account = case.accounts().get(item.receipt.account)
    return (
        named is not None
        and account is not None
        and account.custody == "account"
        and account.key == named.key
    )


def _dependent(case: Case, item: ReceiptFile) -> bool:
    """Whether the receipt counts, of an account that trust.toml calls dependent on the provider."""
    named = case.trust.listed(item.receipt.account)
    return named is not None and not named.independent and _listed(case, item)


def _re_execute(case: Case, opened: list[tuple[ReceiptFile, OpenedReceipt]], reembed: Reembed | None) -> None:
    """Check A1 on disclosed queries: hq must open, and then cq must be the pinned embedder's vector."""
    total = len(case.queries)
    disclosed = [(i, r) for i, r in opened if i.receipt.disclosed is not None]
    if reembed is None or not disclosed:
        case.figures.setdefault("query_embedding", "declared")
        return
    done: set[int] = set()
    vouched: set[int] = set()
    wrong: list[str] = []
    for item, receipt in disclosed:
        query = item.receipt.disclosed
        assert query is not None
        again = reembed(query.query, bytes.fromhex(query.salt))
        with case.guarding("receipt.disclosed"):
            if again.hq != receipt.record.hq:
                raise SetupError("the disclosed query does not open hq", field=item.name,
                                 expected="a text and a salt that open hq")  # fmt: skip
            if again.cq != receipt.record.cq:
                wrong.append(f"the commitment in record {receipt.record.seq} is to another vector")
            done.add(receipt.record.seq)
            if _listed(case, item):
                vouched.add(receipt.record.seq)
    case.report("proof.query_embedding", not wrong, "cq of the pinned embedder's vector of the query",
                wrong[0] if wrong else f"{len(done)} of {total} records re-executed, {len(vouched)} of them for"
                " accounts that trust.toml names")  # fmt: skip
    # Proofs are stronger evidence than the verifier's own execution, and they cover every record. The provider chooses
    # what its own accounts disclose, so their disclosures are no evidence about the others.
    case.figures.setdefault(
        "query_embedding", f"re-executed({len(vouched)}/{total})" if vouched else "declared"
    )
