"""The composed bound for several windows over one index, for `rag-audit verifier cumulative`.

Each window has its own bound, and a coalition that asks in all of them learns from all of them. The windows' privacy
losses add, so the function convolves their distributions; the sum of the epsilons would be far too large.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TypedDict

from rag_audit._internal.canonical import Json, digest_hex, read_json
from rag_audit._internal.errors import PolicyError, SchemaError
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting.bernoulli import Sampling as SampleBound
from rag_audit.mechanisms.accounting.bernoulli import exclusion_factor_over_windows
from rag_audit.mechanisms.accounting.bounds import BoundJson
from rag_audit.mechanisms.accounting.cumulative import cumulative
from rag_audit.mechanisms.accounting.values import Real, text
from rag_audit.mechanisms.base import SAMPLE, constants_text
from rag_audit.mechanisms.descriptions import description
from rag_audit.models.header import list_root
from rag_audit.models.models import repeated
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    ColumnEntry,
    PreviousTable,
    QueryRecord,
    TenantEntry,
    WindowHeader,
    parse_entry,
)
from rag_audit.models.windowfile import MAX_WINDOW_BYTES, WindowFile
from rag_audit.proofs.policy import check_policy


@dataclass(frozen=True)
class WindowPart:
    """A window to compose, and the file that it was read from.

    :param header: digest of the window header; empty for a policy file
    :param previous: digest of the header of the window before; None for the first window of an origin and for a policy
        file
    :param tables: for each tenant with a sample entry and a document table, the reference that a later window has to
        this table, and the reference to the table before (None for a first table)
    """

    source: str
    policy: Policy
    header: str = ""
    previous: str | None = None
    tables: Mapping[str, tuple[PreviousTable, PreviousTable | None]] = field(default_factory=dict)

    @property
    def compositions(self) -> int:
        """Maximum queries of a coalition in the window."""
        return self.policy.k_max * self.policy.n


class ComposedJson(TypedDict):
    """The figures for several windows, reals as decimal strings."""

    eps: str
    eps_by_tenant: dict[str, str]
    bound: BoundJson
    exclusion_factor: str | None
    exclusion_factor_all_accounts: str | None
    exclusion_factor_by_tenant: dict[str, FactorsJson]


class FactorsJson(TypedDict):
    """A tenant's two factors for several windows, as decimal strings."""

    exclusion_factor: str
    exclusion_factor_all_accounts: str


class CumulativeJson(TypedDict):
    """`Cumulative` as JSON, reals as decimal strings.

    :param complete: whether the windows before each given window are given too
    :param missing: for each given window that follows a window that is not given, both windows
    :param eps: the total of the chain; null, like the other figures, for an incomplete chain
    :param eps_by_tenant: the same for each tenant
    :param positions_per_document: the maximum number of positions of a document to which both apply
    :param delta: the largest delta that the eps of a tenant needs: 0 if no tenant needs one
    :param exclusion_factor_by_tenant: the factors of each tenant with a sample in every window
    :param given_windows: the figures of an incomplete chain for the given windows only; null for a complete chain
    """

    complete: bool
    missing: list[MissingJson]
    eps: str | None
    eps_by_tenant: dict[str, str] | None
    positions_per_document: int
    delta: str
    bound: BoundJson | None
    tenants: list[str]
    exclusion_factor: str | None
    exclusion_factor_all_accounts: str | None
    exclusion_factor_by_tenant: dict[str, FactorsJson] | None
    given_windows: ComposedJson | None
    windows: list[dict[str, Json]]


class MissingJson(TypedDict):
    """A gap in a chain of windows.

    :param before: a given window
    :param header: the digest of the header of the window before it, which is not given
    """

    before: str
    header: str


@dataclass(frozen=True)
class Cumulative:
    """The composed bound for all windows.

    Windows that are not given can raise the figures (more noise, another bit), and can lower them: a window between two
    given ones shows that both have one bit. The figures of an incomplete chain are therefore for the given windows
    only, and no bound for the chain in either direction.

    :param alone: the exact eps of each single window at the same delta
    :param tenants: the tenants that every window serves; the bound applies to them
    :param bound: the largest eps of a tenant, at the largest delta that the eps of a tenant needs
    :param positions: the maximum number of positions of a document to which epsilon applies in every window
    :param factors: for each tenant with a sample in every window, the maximum factor by which the absence of a document
        becomes more likely for k_max accounts that received it in none of the windows, and the same factor for all
        accounts that the tenant may have in each window. The factors are for documents of one position, or with
        document tables for documents that keep their rows
    """

    windows: Sequence[WindowPart]
    bound: accounting.Bound
    alone: Sequence[float]
    tenants: Sequence[str]
    positions: int = 1
    factors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    eps_of: Mapping[str, float] = field(default_factory=dict)
    """the total eps of each tenant"""

    @property
    def exclusion_factor(self) -> float | None:
        """The largest factor of a tenant for k_max accounts; None if a tenant has none."""
        return self._largest(0)

    @property
    def exclusion_factor_all_accounts(self) -> float | None:
        """The largest factor of a tenant for all its accounts; None if a tenant has none."""
        return self._largest(1)

    def _largest(self, which: int) -> float | None:
        every = [self.factors.get(tenant) for tenant in self.tenants]
        given = [factors[which] for factors in every if factors is not None]
        return max(given) if given and len(given) == len(every) else None

    @property
    def bits(self) -> dict[str, int]:
        """For each tenant whose documents keep their bits, the number of given windows that continue no given window:
        the factors count one bit of a document for each of them."""
        result = {}
        for tenant in self.tenants:
            kept = {p.policy.window for p in self.windows if p.policy.mechanism_of(tenant).persists}
            if kept:
                result[tenant] = len(kept - {*_continued(self.windows, tenant)})
        return result

    def table(self, tenant: str) -> tuple[int, bool, bool] | None:
        """The maximum positions of a document to which the factors of a tenant apply, whether its bit persists, and
        whether chance lists documents (`policy_text.Table`). None if the factors apply to documents of one position."""
        mechanisms = [part.policy.mechanism_of(tenant) for part in self.windows]
        shapes = [mechanism.table for mechanism in mechanisms]
        given = [shape for shape in shapes if shape is not None]
        if len(given) < len(shapes):
            return None
        chance = any(mechanism.pools for mechanism in mechanisms)
        return min(s.positions_per_document for s in given), all(s.persistent for s in given), chance

    @property
    def missing(self) -> list[MissingJson]:
        """The gaps of the chain. Policy files name no window before, and have none."""
        given = {part.header for part in self.windows}
        return [
            {"before": part.policy.window, "header": part.previous}
            for part in self.windows
            if part.previous is not None and part.previous not in given
        ]

    def as_json(self) -> CumulativeJson:
        """JSON form, reals as decimal strings."""
        figures: ComposedJson = {
            "eps": text(self.bound.eps),
            "eps_by_tenant": {tenant: text(eps) for tenant, eps in self.eps_of.items()},
            "bound": self.bound.as_json(),
            "exclusion_factor": text(self.exclusion_factor),
            "exclusion_factor_all_accounts": text(self.exclusion_factor_all_accounts),
            "exclusion_factor_by_tenant": {
                tenant: {"exclusion_factor": text(own), "exclusion_factor_all_accounts": text(every)}
                for tenant, (own, every) in self.factors.items()
            },
        }
        total = None if self.missing else figures
        return {
            "complete": total is not None,
            "missing": self.missing,
            "eps": None if total is None else total["eps"],
            "eps_by_tenant": None if total is None else total["eps_by_tenant"],
            "positions_per_document": self.positions,
            "delta": text(self.bound.delta),
            "bound": None if total is None else total["bound"],
            "tenants": list(self.tenants),
            "exclusion_factor": None if total is None else total["exclusion_factor"],
            "exclusion_factor_all_accounts": None
            if total is None
            else total["exclusion_factor_all_accounts"],
            "exclusion_factor_by_tenant": None if total is None else total["exclusion_factor_by_tenant"],
            "given_windows": figures if total is None else None,
            "windows": [
                {
                    "window": part.policy.window,
                    "file": part.source,
                    "n": part.policy.n,
                    "k_max": part.policy.k_max,
                    "compositions": part.compositions,
                    "eps_alone": text(eps),
                }
                for part, eps in zip(self.windows, self.alone, strict=True)
            ],
        }


def load_window(path: Path) -> WindowPart:
    """Read a window's policy from window.json, from the window's folder, or from a policy file.

    This function does not verify the window, but the policy must be well-formed, and the parts of the file must match
    the window header's commitments.

    :raises RagAuditError: the file is unreadable or malformed, or a part does not match its commitment
    """
    dimension: object = None
    digest, before = "", None
    carried = dict[str, tuple[PreviousTable, PreviousTable | None]]()
    value = None if path.is_dir() else read_json(path, max_bytes=MAX_WINDOW_BYTES)
    if path.is_dir() or (isinstance(value, dict) and "mediaType" in value):
        file = WindowFile.load(path)
        policy = Policy.parse(file.policy, field=f"{path.name}.policy")
        schema = file.embedder.get("schema")
        dimension = schema.get("dimension") if isinstance(schema, dict) else None
        entries = [parse_entry(e, field=f"{path.name}.entries[{i}]") for i, e in enumerate(file.entries)]
        header = entries[0] if entries else None
        if not isinstance(header, WindowHeader):
            raise SchemaError("the window has no header", field=f"{path.name}.entries[0]")
        tenants = [
            TenantEntry.parse(t, field=f"{path.name}.tenants[{i}]") for i, t in enumerate(file.tenants)
        ]
        for name, verb, committed, actual in (
            ("policy", "differs", header.c_policy, digest_hex(file.policy)),
            ("tenants", "differ", header.tenants, list_root(tenants)),
        ):
            if committed != actual:
                raise SchemaError(
                    f"the {name} {verb} from the committed {name} of the window",
                    field=f"{path.name}.{name}",
                    expected=committed,
                    actual=actual,
                )
        digest = digest_hex(file.entries[0])
        before = None if header.previous is None else header.previous.header
        samples = {e.tenant: e.carried for e in entries if isinstance(e, ColumnEntry) and e.type == SAMPLE}
        last = {e.tenant: e.listed_rows for e in entries if isinstance(e, QueryRecord)}
        for tenant in tenants:
            column, part = samples.get(tenant.tenant), policy.tenant(tenant.tenant)
            if tenant.table is not None and column is not None and part is not None:
                listed = last.get(tenant.tenant) if policy.mechanism(part).pools else None
                own = PreviousTable(window=header.window, header=digest, carried=column, listed=listed)
                carried[tenant.tenant] = (own, tenant.table.previous)
    else:
        policy = Policy.parse(value, field=path.name)
    check_policy(policy, dimension if type(dimension) is int else None)
    return WindowPart(str(path), policy, digest, before, carried)


def compose(
    windows: Sequence[WindowPart], delta: Real | None = None, positions: int | None = None
) -> Cumulative:
    """The exact bound for a coalition of at most k_max accounts in each of the windows.

    :param delta: the total delta of all windows; the largest delta_policy by default
    :param positions: the positions of a document to which the result applies, or fewer where a document table permits
        fewer. By default the largest number to which the figures of every window apply; their losses are then those of
        the windows' own figures
    :raises PolicyError: there is no window, a window is given twice, the windows have no tenant in common, a window
        continues a table with other constants of a chain (`Policy.chain_constants`), or delta is bad
    """
    names = [part.policy.window for part in windows]
    if twice := repeated(names):
        raise PolicyError(
            "the same window is supplied twice", field="windows", expected="each window once", actual=twice[0]
        )
    shared = [{t.tenant for t in part.policy.tenants} for part in windows]
    tenants = sorted(set.intersection(*shared)) if shared else []
    if shared and not tenants:
        raise PolicyError(
            "the windows have no tenant in common, so they do not share an index",
            field="windows",
            expected="a tenant that all windows have",
            actual="; ".join(", ".join(sorted(names)) for names in shared),
        )
    total = delta or str(max((Decimal(part.policy.delta_policy) for part in windows), default=Decimal(0)))
    mechanisms = [part.policy.mechanism_of(tenant) for part in windows for tenant in tenants]
    least = min((m.positions_per_document for m in mechanisms), default=1)
    # Noise has losses for a document of any size; the other mechanisms have figures for their own documents only.
    fixed = [m.positions_per_document for m in mechanisms if not m.noised]
    size = least if positions is None else min([positions, *fixed])
    bounds = [_of_tenant(windows, tenant, total, None if positions is None else size) for tenant in tenants]
    # Without windows there are no tenants, and the accountant raises the error.
    bound = max(bounds, key=lambda b: b.eps) if bounds else cumulative([], total)
    # The eps of another tenant may need a delta that the eps of this one does not.
    bound = replace(bound, delta=max((b.delta for b in bounds), default=bound.delta))
    alone = [
        max((_of_tenant([part], tenant, total).eps for tenant in tenants), default=0.0) for part in windows
    ]
    eps = {tenant: own.eps for tenant, own in zip(tenants, bounds, strict=True)}
    return Cumulative(windows, bound, alone, tenants, size, _factors(windows, tenants), eps)


def _of_tenant(
    windows: Sequence[WindowPart], tenant: str, delta: Real, positions: int | None = None
) -> accounting.Bound:
    """The bound for one tenant: noise composes exactly, the closed forms of pooled listing add to
    it. Windows of a chain that carries bits and listed documents count once, with their largest epsilon.

    :param positions: the positions of a document, each with one loss at each query; by default the positions to which
        the figures of each window apply
    """
    parts: list[tuple[accounting.Mechanism, int]] = []
    listed = Decimal(0)
    before, chains = _continued(windows, tenant), dict[str, Decimal]()
    sizes = []
    for part in windows:
        mechanism = part.policy.mechanism_of(tenant)
        sizes.append(mechanism.positions_per_document)
        loss = description(mechanism.name).loss(mechanism, part.policy.k_max, part.policy.n)
        if loss is None:
            own = f"tenant {tenant} of window {part.policy.window}"
            why = f"mechanism {mechanism.name} of {own} bounds no epsilon"
            return accounting.Bound(accounting.NO_BOUND, math.inf, 0.0, False, why, (why,))
        own_size = mechanism.positions_per_document
        parts += [(noise, losses // own_size * (positions or own_size)) for noise, losses in loss.noise]
        if not loss.continues:
            listed += loss.epsilon
            continue
        first = part.policy.window
        while first in before:
            first = before[first]
        chains[first] = max(chains.get(first, Decimal(0)), loss.epsilon)
    listed += sum(chains.values(), Decimal(0))
    if not parts:
        why = "each window's closed form for its random bits, which add up"
        if before and chains:
            why += "; windows that continue bits and listed documents of another given window add nothing"
        return accounting.Bound(accounting.POOLED_LISTING, float(listed), 0.0, True, None, (why,))
    composed = cumulative(parts, delta, positions or min(sizes))
    return composed if not listed else replace(composed, eps=float(Decimal(repr(composed.eps)) + listed))


def _factors(windows: Sequence[WindowPart], tenants: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The factors of each tenant with a sample in every window: for k_max accounts, and for all accounts that the
    tenant may have."""
    result = {}
    for tenant in tenants:
        own, every = (_factor(windows, tenant, all_accounts=whose) for whose in (False, True))
        if own is not None and every is not None:
            result[tenant] = (own, every)
    return result


def _factor(windows: Sequence[WindowPart], tenant: str, *, all_accounts: bool) -> float | None:
    """The factor for documents that were received in none of the windows. Each window draws its sample anew, except
    that a document keeps its bit in a table that continues the table of another given window. None if the tenant
    samples every position in one of the windows.

    :param all_accounts: count the queries of all accounts that the tenant may have, instead of the queries of k_max
        accounts
    """
    parts: list[tuple[SampleBound, int]] = []
    again: list[tuple[SampleBound, int]] = []
    continuing = _continued(windows, tenant)
    for window in windows:
        policy, part = window.policy, window.policy.tenant(tenant)
        assert part is not None  # every window serves the tenant
        mechanism = policy.mechanism(part)
        sampling = mechanism.sample
        if sampling is None:
            return None
        asked = policy.n * (part.accounts_max if all_accounts else policy.k_max)
        own = (sampling, mechanism.chance_queries(asked))
        (again if window.policy.window in continuing else parts).append(own)
    return exclusion_factor_over_windows(parts, continuing=again)


def _continued(windows: Sequence[WindowPart], tenant: str) -> dict[str, str]:
    """The windows, by id, whose bits the table of another given window has already drawn, with the id of that window.
    With pooled listing they begin with the listed documents at the end of that window.

    Such a window continues exactly that table, and it alone: of two windows that continue one
    table, each draws its new rows, so only the first one counts as its continuation. The other windows of a chain whose
    link is not among the given windows count as one more draw, and the factor is too large rather than too small.

    :raises PolicyError: a window continues a given table with another setting that is constant in a chain
    """
    tables: dict[tuple[str, str, str | None], WindowPart] = {
        _key(part.tables[tenant][0]): part for part in windows if tenant in part.tables
    }
    result, continued = dict[str, str](), set[str]()
    for part in windows:
        previous = part.tables[tenant][1] if tenant in part.tables else None
        before = None if previous is None else tables.get(_key(previous))
        if before is None:
            continue
        own, then = (p.policy.chain_constants(tenant) for p in (part, before))
        if own != then:
            raise PolicyError(
                "a setting of the tenant that is constant in a chain differs from that of the table before",
                field=f"window {part.policy.window}, tenant {tenant}",
                expected=f"{constants_text(then)}, as in window {before.policy.window}",
                actual=constants_text(own),
                hint="no verifier accepts these windows as one chain: `rag-audit verify` with --previous fails at"
                " header.tables",
            )
        if part.policy.mechanism_of(tenant).persists and before.header not in continued:
            continued.add(before.header)
            result[part.policy.window] = before.policy.window
    return result


def _key(reference: PreviousTable) -> tuple[str, str, str | None]:
    return reference.header, reference.carried, reference.listed
