"""A policy explained in words, for the person who publishes or reads it: the meaning and origin of each number."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from rag_audit._internal.words import counted
from rag_audit.mechanisms import Mechanism, accounting, named
from rag_audit.mechanisms.accounting.documents import EXPOSURE_RATIO
from rag_audit.mechanisms.accounting.figures import PolicyFigures, TenantFigures
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.descriptions import ALL, description
from rag_audit.mechanisms.descriptions.base import LIMITS
from rag_audit.models.policy import OWN_DOCUMENTS, Policy
from rag_audit.models.tenants import NoisePolicy
from rag_audit.proofs.proving import backend

_WIDTH = 110
_COLUMN = 18

COVERS = (
    "These figures only cover the list of selected positions. For every value of eps, the account that"
    " receives a passage can read it."
)
"""Text that is printed before every eps or AUC bound (docs/accounting.md, "Scope of the figures")."""


def covers(policies: Sequence[Policy]) -> str:
    """`COVERS`, and with noise or pooled listing the probability that one account receives a given document
    whatever it asks.

    :param policies: the policies of one window, or of several windows over one index; the text covers their common
        tenants
    :returns: the text; empty if every tenant has mechanism none, because no figure bounds its answers
    """
    shared = set.intersection(*({t.tenant for t in policy.tenants} for policy in policies))
    windows = {name: [(p.mechanism_of(name), p.n) for p in policies] for name in sorted(shared)}
    kinds = {name: {type(mechanism) for mechanism, _ in pairs} for name, pairs in windows.items()}
    if not any(kind.protects for own in kinds.values() for kind in own):
        return ""
    sentences = [COVERS]
    for kind in ALL:
        alike = {name: windows[name] for name, own in kinds.items() if own == {kind.mechanism}}
        sentence = kind.covered(alike) if alike else None
        sentences += [] if sentence is None else [sentence]
    return " ".join(sentences)


def covers_noise(queries: int, positions: int = 1) -> str:
    """`covers` for noise on an index of any size.

    :param queries: the queries of one account
    :param positions: the maximum number of positions of a document
    """
    return (
        f"{COVERS} Even with unlimited noise an answer returns a given document{_filling(positions)} among N positions"
        f" with probability {'K/N' if positions == 1 else f'up to {positions} K/N'} a query, where K is the length of a"
        f" list, and with probability {_over(queries, positions)} over {queries:,} queries."
    )


def _filling(positions: int) -> str:
    return "" if positions == 1 else f" of at most {positions} positions"


def _over(queries: int, positions: int) -> str:
    """The probability that unlimited noise returns a document in one of several queries, with N and K."""
    return f"1 - (1 - K/N)^{queries}" if positions == 1 else f"up to 1 - (1 - {positions} K/N)^{queries}"


def figures_text(figures: PolicyFigures, covered: str) -> str:
    """The text for people of every bound, with its validity and whether it counts as eps_audit.

    :param figures: the result of `accounting.policy_figures`
    :param covered: the scope of the figures (`covers`)
    """
    lines = [*textwrap.wrap(covered, _WIDTH), ""] if covered else []
    if "tenants" in figures:
        lines += [*mechanism_lines(figures["tenants"]), ""]
    if "bounds" in figures:
        lines += _noise_lines(figures)
    return "\n".join(lines)


Table: TypeAlias = tuple[int, bool, bool]
"""The maximum positions of a document, whether its bit persists in the chain of windows, and whether chance lists
documents."""


def _table_of(tenant: TenantFigures) -> Table | None:
    table, chance = tenant["documents"], tenant["exposure"]["by_chance"] is not None
    return (
        None if table is None else (table["positions_per_document"], table["fresh_rows"] is not None, chance)
    )


def unlisted(
    odds: str, all_accounts: str, table: Table | None, tenants: Sequence[str], *, total: bool = False
) -> str:
    """The meaning of `exclusion_factor` for some tenants, in words.

    :param odds: the factor for k_max accounts
    :param all_accounts: the factor for all accounts that a tenant may have
    :param table: see `Table`; None without a document table
    :param total: the factors are for all given windows together, and not for one window
    """
    later = "each window that is not given multiplies" if total else "windows multiply"
    if table is not None:
        size, persistent, chance = table
        queries = "queries"
        if chance:
            queries = "all queries that " + (
                "the policies of the given windows permit" if total else "the policy permits"
            )
        windows = (
            "The figure counts the random bits of the given windows: a document keeps its bit and stays listed in a"
            " window that continues the table of another one, and chance at the queries of each further window"
            " multiplies the figure. An account that received a document in any window of the chain learns every later"
            " version and its removal."
            if persistent and chance and total
            else "The figure is for one window: the bit of a document persists and a listed document stays listed in"
            " the chain of windows, and chance at the queries of each other window multiplies the figure. An account"
            " that received a document in any window of the chain learns every later version and its removal."
            if persistent and chance
            else "The figure counts the random bits of the given windows: a document keeps its bit in a window that"
            " continues the table of another one; content under c rows has the c-th power. An account that received a"
            " document in any window of the chain learns every later version and its removal."
            if persistent and total
            else "The bit of a document persists in the chain of windows, so the figure covers all windows in which the"
            " document keeps its row; content under c rows has the c-th power. An account that received a document in"
            " any window of the chain learns every later version and its removal."
            if persistent
            else f"Each window draws a new bit, and {later} the figure."
        )
        return (
            f"Accounts of {', '.join(tenants)} that never received a given document may conclude its absence: the"
            f" absence becomes more likely by a factor of at most {odds} (exclusion_factor), for any number of accounts"
            f" and {queries}. The figure is for a document of at"
            f" most {counted(size, 'position')}, which all share one bit. {windows}"
            " The presence of a document that an account asks for has no protection: an answer returns"
            " the document if it ranks high enough and is in the sample. The figure bounds the probability of one event"
            " and is not differential privacy."
        )
    return (
        f"Accounts of {', '.join(tenants)} that never received a given document may conclude its absence: the absence"
        f" becomes more likely by a factor of at most {odds} for k_max accounts (exclusion_factor), and of at most"
        f" {all_accounts} for all accounts. Both figures assume {accounting.POSITIONS_PER_DOCUMENT} position for each"
        " document; a document of s positions has at least the s-th power of them. The presence of a document that an"
        " account asks for has no protection: an answer returns the document if it ranks high enough and is in the"
        " sample."
        f" Both figures bound the probability of one event and are not differential privacy; {later} them."
    )


def by_exclusion_factor(
    tenants: Iterable[tuple[str, str | None, str | None, Table | None]], *, total: bool = False
) -> list[str]:
    """`unlisted` once for all tenants with the same figures.

    :param tenants: name, factor for k_max accounts, factor for all accounts (None without a sample), and table
    :param total: see `unlisted`
    """
    groups: dict[tuple[str, str, Table | None], list[str]] = {}
    for name, odds, all_accounts, table in tenants:
        if odds is not None and all_accounts is not None:
            groups.setdefault((odds, all_accounts, table), []).append(name)
    return [unlisted(*figures, names, total=total) for figures, names in groups.items()]


def mechanism_lines(tenants: Mapping[str, TenantFigures]) -> list[str]:
    """The protection of each tenant, in words."""
    lines = []
    for name, tenant in tenants.items():
        kind = description(tenant["mechanism"]).words
        eps, odds, every = tenant["eps"], tenant["exclusion_factor"], tenant["exclusion_factor_all_accounts"]
        factors = "" if odds is None else f"; exclusion_factor {odds}, for all accounts {every}"
        lines.append(f"{name}: {kind}; eps {eps}{factors}")
    for name, tenant in tenants.items():
        lines += textwrap.wrap(f"{name}: {exposure_of(tenant)}", _WIDTH)
    for words in by_exclusion_factor(
        (n, t["exclusion_factor"], t["exclusion_factor_all_accounts"], _table_of(t))
        for n, t in tenants.items()
    ):
        lines += textwrap.wrap(words, _WIDTH)
    beyond = [name for name, t in tenants.items() if _exceeds(t["exclusion_factor"], t["eps"])]
    if beyond:
        lines += textwrap.wrap(
            f"exclusion_factor of {', '.join(beyond)} exceeds exp(eps), because eps does not bound it: eps is about the"
            " lists of selected positions, and exclusion_factor also counts the texts at these positions, which eps"
            " leaves"
            " out. Lists contain positions that match no question. Accounts that have received the texts of nearly all"
            " positions without the document can conclude that the document is absent.",
            _WIDTH,
        )
    return lines


def exposure_of(tenant: TenantFigures) -> str:
    """The number of documents that accounts can read, next to exact retrieval and chance, with a warning."""
    exposure = tenant["exposure"]
    # Noise with a document table returns texts of positions without a row too.
    unit = "text" if named(tenant["mechanism"]).noised and tenant["documents"] is not None else "document"
    words = (
        f"{counted(exposure['accounts'], 'account')} with {exposure['queries']:,} questions in total can read up to"
        f" {counted(exposure['limit'], unit)} of an index with room for {exposure['documents']:,} (exact"
        f" retrieval: {exposure['exact']:,})"
    )
    if exposure["by_chance"] is not None:
        words += f"; chance alone returns at most {float(exposure['by_chance']):,.0f} of them on average"
    if exposure["exceeds_exact"]:
        words += f". WARNING: this is more than {EXPOSURE_RATIO} times the number of exact retrieval"
    return words


def questions_lines(policy: Policy) -> list[str]:
    """For each tenant the total number m of questions, and the largest number with an epsilon of at most 10."""
    lines = []
    for part in policy.tenants:
        mechanism = policy.mechanism(part)
        words = (
            f"{part.tenant}: m = {counted(part.accounts_max, 'account')} x {counted(policy.n, 'question')} ="
            f" {part.accounts_max * policy.n:,} questions"
        )
        largest = description(mechanism.name).largest(mechanism, part.accounts_max, policy.n)
        lines += textwrap.wrap(words if largest is None else f"{words}; {largest}", _WIDTH)
    return lines


def _exceeds(odds: str | None, eps: str) -> bool:
    """Whether a factor is larger than exp(eps)."""
    return odds is not None and math.log(float(odds)) > float(eps)


def _times_positions(figures: PolicyFigures) -> str:
    """The factor of the compositions that follows from the positions of a document; empty for one position."""
    b = figures["bounds"]
    size = b["compositions"] // (b["k"] * b["n"])
    return "" if size == 1 else f" x {size} positions of a document"


def _noise_lines(figures: PolicyFigures) -> list[str]:
    b = figures["bounds"]
    mechanism = b["mechanism"]
    lines = [
        f"unit       {b['unit']}",
        f"adjacency  {b['adjacency']}",
        f"noise      dgs-1, gains {','.join(map(str, mechanism['gains']))}, R {mechanism['lattice']}:"
        f" sigma {mechanism['sigma']} steps, sigma/Delta {mechanism['sigma_over_delta']}",
        f"queries    {b['k']} accounts x {b['n']} queries{_times_positions(figures)} = {b['compositions']:,}, at delta"
        f" {b['delta']};"
        f" infinite losses take {mechanism['infinite_loss_mass']} of it",
        "",
    ]
    for bound in b["bounds"]:
        mark = "  <- eps_audit" if bound["name"] == figures["eps_audit_by"] else ""
        why = "" if bound["valid"] else f"  not valid: {bound['reason']}"
        lines.append(f"{bound['name'].replace('_', ' '):14} eps {bound['eps']}{mark}{why}")
    lines.append(f"{'one account':14} eps {figures['eps_one_account']}")
    if "eps_all_accounts" in figures:
        lines.append(
            f"{'all accounts':14} eps {figures['eps_all_accounts']}  (accounts_max"
            f" {figures['accounts_max']}, no assumption on coalitions)"
        )
    if (membership := figures.get("membership")) is not None:
        lines.append(
            f"membership inference by {b['k']} accounts: AUC at most {membership['auc_bound']}, true positives at 1 %"
            f" false positives at most {100 * float(membership['tpr_at_fpr_1pct']):.3g} %"
        )
    lines += [
        "",
        "for comparison only:",
        *(f"  {name.replace('_', ' '):30} {value}" for name, value in b["not_bounds"].items()),
    ]
    return lines


@dataclass(frozen=True)
class Schedule:
    """The times of the windows of `rag-audit run`, which dates each window itself, as provider.toml states them."""

    lead: str
    lasts: str


def explain(policy: Policy, figures: PolicyFigures, reason: str, schedule: Schedule | None = None) -> str:
    """The explanation of a policy, number by number.

    :param figures: the result of `accounting.policy_figures` for this policy
    :param reason: the reason for the noise, or for the mechanisms if no tenant has noise, in one line
    :param schedule: the schedule of the windows, if the id and the times in the policy are a draft
    """
    if schedule is None:
        lines = [f"Policy of window {policy.window}, explained. C_policy {policy.digest()}", ""]
    else:
        lines = ["Policy of all windows of `rag-audit run`, explained.", ""]
    if policy.noise is None:
        lines += [*textwrap.wrap(reason, _WIDTH), ""]
    for entry in (*_times(policy, schedule), *_entries(policy, reason), _own_documents(policy)):
        lines += _entry_lines(*entry)
    return "\n".join(
        [
            *lines,
            "",
            "Guarantees",
            "",
            *questions_lines(policy),
            "",
            figures_text(figures, covers([policy])),
            "",
        ]
    )


def explained_again(text: str, before: Policy, after: Policy) -> str:
    """The explanation of a policy whose statement about own documents has changed.

    :param text: the explanation of the policy `before`
    """
    old, new = ("\n".join(_entry_lines(*_own_documents(policy))) for policy in (before, after))
    return text.replace(before.digest(), after.digest()).replace(old, new)


def _entry_lines(name: str, value: str, meaning: str) -> list[str]:
    return [
        *textwrap.wrap(f"{name:{_COLUMN}} = {value}", _WIDTH, subsequent_indent=" " * (_COLUMN + 3)),
        *textwrap.wrap(meaning, _WIDTH, initial_indent="    ", subsequent_indent="    "),
    ]


def _own_documents(p: Policy) -> tuple[str, str, str]:
    meaning = OWN_DOCUMENTS if p.own_documents else (
        "The policy does not state that the provider chose it with the help of its own documents."
    )  # fmt: skip
    return "own_documents", "true" if p.own_documents else "absent", meaning


def _times(p: Policy, schedule: Schedule | None) -> Iterator[tuple[str, str, str]]:
    """The id of the window and its times."""
    yield "v", str(p.v), "Version of this format."
    name = "The unique id of the window. The chain of windows and every receipt contain it."
    answers = (
        "The provider answers from this time on; the witnesses must have cosigned the window header before."
    )
    ends = "The provider answers no query after this time."
    deletes = (
        "The time when the provider deletes the seed and the records' private inputs; until then a verifier may"
        " challenge records."
    )
    if schedule is None:
        yield "window", p.window, name
        yield "opens_at", _date(p.opens_at), answers
        yield "closes_at", _date(p.closes_at), ends
        yield "delete_after", _date(p.delete_after), deletes
        return
    days = (p.delete_after - p.closes_at) / 86_400_000
    yield (
        "window",
        "set for each window",
        f"{name} `rag-audit run` replaces the draft values of the id and of the three times in policy.json.",
    )
    yield "opens_at", f"{schedule.lead} after the publication of the window header", answers
    yield "closes_at", f"{schedule.lasts} after opens_at", ends
    yield "delete_after", f"{days:g} days after closes_at", deletes


def _entries(p: Policy, target: str) -> Iterator[tuple[str, str, str]]:
    mechanisms = [p.mechanism(t) for t in p.tenants]
    yield (
        "n",
        f"{p.n:,}",
        "Maximum number of queries of one account in the window. Figures that grow with queries count this maximum.",
    )
    yield (
        "k_max",
        f"{p.k_max:,}",
        _coalition(p, mechanisms),
    )
    if p.noise is None:
        yield (
            "delta_policy",
            p.delta_policy,
            "No figure of this policy depends on delta_policy, because delta belongs to noise and no tenant"
            " has noise. A verifier's max_delta limits the value nevertheless.",
        )
    else:
        yield from _noise_entries(p, p.noise, target)
    yield (
        "top_k",
        str(p.top_k),
        "Number of positions in an answer. It does not change epsilon, but it changes the number of returned passages.",
    )
    yield "unit, adjacency", f"{p.unit}, {p.adjacency}", _unit(mechanisms)
    for tenant in p.tenants:
        words = backend(tenant.system).CIRCUITS
        yield (
            f"tenants.{tenant.tenant}",
            f"capacity {tenant.capacity:,}, accounts_max {tenant.accounts_max}, {tenant.system}",
            "The number of positions, including empty ones. It is a constant of the contract and reveals no document."
            f" accounts_max limits this tenant's accounts{_no_assumption(p.mechanism(tenant))}."
            f" {words} {', '.join(f'{name} {digest[:16]}..' for name, digest in sorted(tenant.circuits.items()))}",
        )
        yield f"tenants.{tenant.tenant}.mechanism", *_mechanism(p.mechanism(tenant))
        if (table := p.mechanism(tenant).table) is not None:
            yield (
                f"tenants.{tenant.tenant}.documents",
                *_documents(table, sampled=p.mechanism(tenant).sampled),
            )
    yield (
        "proving",
        p.proving,
        "The provider proves each record when it answers the query."
        if p.proving == "eager"
        else "The provider proves records after a verifier has challenged them.",
    )
    p_theta, q_theta = p.estimator.theta
    span = "the whole window" if p.estimator.tau == 0 else f"{p.estimator.tau} {p.estimator.tau_unit}"
    yield (
        "estimator",
        f"theta {p_theta}/{q_theta}, tau {p.estimator.tau}",
        f"Queries of different accounts with cosine at or above theta within {span} count as queries of one"
        " coalition. A theta near 1 finds accounts that repeat a question almost word for word.",
    )
    wanted = p.estimator.coalition_proof
    yield (
        "estimator.coalition_proof",
        "none" if wanted is None else f"{wanted.system}, up to {wanted.records} records",
        "The provider only declares the estimate: verdicts contain coalition=not-checked."
        if wanted is None
        else "The provider proves the estimate in the window trailer; a window with more records has no such proof.",
    )
    yield (
        "relevance",
        "null" if p.relevance is None else f"{p.relevance:,}",
        "Retrievers return every passage of an answer, because no threshold was measured for the embedder."
        if p.relevance is None
        else "Minimum raw score of a passage. A retriever computes the score from the account's own question and the"
        " returned text, and returns no passage below it. The threshold changes no figure.",
    )
    yield (
        "tokens",
        f"query {p.tokens.query}, document {p.tokens.document}",
        "Maximum number of tokens. The tokeniser drops the rest of a longer text, and no proof covers the rest.",
    )


def _coalition(p: Policy, mechanisms: Collection[Mechanism]) -> str:
    """The effect of k_max under these mechanisms."""
    decisive = min(mechanisms, key=lambda m: LIMITS.index(m.limit))
    queries = f"{p.k_max * p.n:,} queries"
    return (
        f"The largest covered coalition: {p.k_max:,} accounts that pool their answers send {queries}."
        f" {description(decisive.name).coalition}"
    )


def _documents(table: TableShape, *, sampled: bool) -> tuple[str, str]:
    """The numbers of a document table and their meaning.

    :param sampled: whether a Bernoulli bit decides for each document; else every document is in the window
    """
    if not sampled:
        chain = "Each window has a table of its own, and losses add up over windows."
    elif table.fresh_rows is None:
        chain = "Each window draws the bits of all rows, so windows multiply the factor."
    else:
        chain = (
            f"Each window after the first replaces exactly {counted(table.fresh_rows, 'row')} by rows with new bits;"
            " all other documents keep their bits. More new documents wait for the next window. A window of the same"
            " chain has the same numbers."
        )
    return (
        f"{counted(table.rows, 'row')}, at most {counted(table.positions_per_document, 'position')} for each document",
        f"{'One Bernoulli bit decides for' if sampled else 'The figures are for'} all positions of a document. The"
        f" table has room for {counted(table.documents, 'document')}; `provider open` refuses a document with more"
        f" positions by name. {chain} Choose the numbers without looking at the documents.",
    )


def _unit(mechanisms: Collection[Mechanism]) -> str:
    """The relation of the figures for one position to a document with several positions."""
    if mechanisms and all(m.table is not None for m in mechanisms):
        bits = [m.sampled for m in mechanisms]
        if not any(bits):
            return "Privacy is for one document (`documents`): a document added, removed or replaced."
        shared = "" if all(bits) else " of a tenant with a sample"
        return (
            f"Privacy is for one document, whose positions all share one Bernoulli bit{shared} (`documents`): a"
            " document added or removed."
        )
    several = []
    if any(m.limit == "max_epsilon" for m in mechanisms):
        several.append("loses at most s times epsilon at s times delta")
    if any(m.sampled for m in mechanisms):
        several.append("has at least the s-th power of exclusion_factor")
    if not several:
        return "The unit of the format: one committed position. No tenant of this policy has a figure for it."
    return (
        "Privacy is for one committed position: a document of one position added, removed or replaced. A document of s"
        f" positions {', and '.join(several)}."
    )


def _no_assumption(mechanism: Mechanism) -> str:
    """The bound that accounts_max makes possible, if the tenant's mechanism promises any protection."""
    return ", so a bound with no assumption on coalitions exists" if mechanism.protects else ""


def _mechanism(mechanism: Mechanism) -> tuple[str, str]:
    """A tenant's mechanism, with its guarantee and cost."""
    sentence = "; ".join(description(mechanism.name).explained(mechanism))
    return mechanism.name, f"{sentence[0].upper()}{sentence[1:]}."


def _noise_entries(p: Policy, noise: NoisePolicy, target: str) -> Iterator[tuple[str, str, str]]:
    assert p.delta_acc is not None  # as with noise always
    m = noise.mechanism()
    yield (
        "eps_acc, delta_acc",
        f"{p.eps_acc}, {p.delta_acc}",
        "The guarantee for one account, and the reference for the calibration below.",
    )
    yield (
        "delta_policy",
        p.delta_policy,
        f"The delta of eps_audit. It must exceed k_max delta_acc = {p.k_max * float(p.delta_acc):.3g}, the share of the"
        " closed form; each of the other bounds uses all of delta_policy. Choose a value far below one over the number"
        " of documents.",
    )
    yield (
        "calibration",
        str(p.calibration),
        f"{target} For one account this method requires sigma/Delta of at least {_minimum(p)}; this policy has"
        f" {m.sigma_over_delta:.5g}. Minimum by method: {_by_method(p)}.",
    )
    yield (
        "noise.gains",
        ",".join(map(str, noise.gains)),
        f"Each position's score gets the sum of {len(noise.gains)} draws of {noise.version} (sigma 16,"
        " -127..127) times these gains. Each gain costs one draw for each position in the circuit.",
    )
    yield (
        "noise.lattice",
        str(noise.lattice),
        f"R: scores are integers 0..R, and one document moves {_scores_moved(p)} by at most R, the sensitivity. A"
        " finer lattice needs more noise steps for the same privacy.",
    )
    yield (
        "noise.lo, noise.hi",
        f"{noise.lo}, {noise.hi}",
        "Raw scores are clamped to this range before they are mapped to the lattice. Both ends are constants of the"
        " embedder and do not depend on documents.",
    )
    yield (
        "noise.table",
        noise.table,
        "SHA-256 of the published sampling table; the bounds use its exact masses.",
    )
    yield "sigma", str(p.sigma), "Derived: 16 times the root of the sum of squared gains, in lattice steps."


def _scores_moved(policy: Policy) -> str:
    size = policy.noised_positions
    return "one score" if size == 1 else f"each of at most {size} scores"


def _minimum(policy: Policy) -> str:
    return f"{_required(policy, str(policy.calibration)):.5g}"


def _required(policy: Policy, method: str) -> float:
    assert policy.eps_acc is not None and policy.delta_acc is not None  # as with noise always
    return accounting.required_sigma_over_delta(
        method,
        n=policy.n * policy.noised_positions,
        eps_acc=float(policy.eps_acc),
        delta_acc=float(policy.delta_acc),
    )


def _by_method(policy: Policy) -> str:
    methods = [name for name in accounting.METHODS if name != "exact"]  # its formula is the analytic one
    return ", ".join(f"{name} {_required(policy, name):.5g}" for name in methods)


def _date(milliseconds: int) -> str:
    """An instant as a date for people, with its milliseconds as in the file."""
    seconds = math.floor(milliseconds / 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC ({milliseconds})"
