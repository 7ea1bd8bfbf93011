"""A trust file as it is written for a verifier, who then edits it. Verifying itself only reads one (`trust`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import tomlkit
from tomlkit.items import AoT, Item, Table

from rag_audit.models.trust import MAX_EMPTY, TAU_FORMS, Trust

Element = TypeVar("Element", bound=Item)

_ADVICE = {
    "max_theta": "required: what `rag-audit provider estimate calibrate` says of public questions at the policy's size",
    "min_tau": f"required: {TAU_FORMS}",
    "max_exclusion_factor": "required for tenants with a sample, for example 10",
    "min_keep": "required for tenants with a sample, for example 0.5",
    "beta": 'only for mode = "sampled": the share of wrong records that may stay undetected, for example 0.05',
    "eta": 'only for mode = "sampled": the probability that a larger share stays undetected, for example 0.01',
}
"""The comment for a requirement without a value."""


_PIN_REMARKS = {
    "noise_table": "",
    "manifest": "the embedder's: quantiser, prompt and all else but the token limits",
    "scan": "the protocols of scan proofs: another release's may be others",
}


_PILOT = (
    "PILOT: `rag-audit init` wrote this file on the provider's machine, with keys that the provider has too. A PASS",
    "shows that every step works. It shows nothing to a party that does not trust the provider: such a party writes",
    "its own file with `rag-audit verifier trust new`.",
)
_SERVICE = {
    "operator": "the organisation that operates the service",
    "purpose": "the task that users have the service for",
    "contact": "the operator's address for questions about a report",
}
"""The comment for a field of `[service]` without a value."""
_DEPENDENT = "made by `rag-audit init` beside the provider's key: NOT independent of the provider"


def trust_template(
    trust: Trust, remarks: Mapping[str, str] | None = None, *, dependent: Collection[str] = ()
) -> str:
    """A commented trust.toml. Each value of `trust` must be the verifier's own knowledge, never copied from an
    unexamined window.

    :param remarks: the comment for a requirement, by the requirement's name
    :param dependent: the names of the witnesses and the ids of the accounts that are not independent of the provider
    """

    def remarked(item: Element, remark: str) -> Element:
        item.comment(remark)
        item.trivia.comment_ws = "  "
        return item

    document = tomlkit.document()
    document.add(
        tomlkit.comment("What this verifier trusts. rag-audit uses no key, pin or level from anywhere else.")
    )
    if dependent:
        for line in _PILOT:
            document.add(tomlkit.comment(line))
    document.add("version", tomlkit.item(trust.version))
    cosigned = "witnesses that must have cosigned the window header before the window opened"
    document.add("quorum", remarked(tomlkit.item(trust.quorum), cosigned))

    def table(values: Mapping[str, object], remark: str = "") -> Table:
        result = tomlkit.table()
        if remark:
            remarked(result, remark)
        for key, value in values.items():
            result.add(key, value)
        return result

    def tables(items: Sequence[Table]) -> AoT:
        result = tomlkit.aot()
        for item in items:
            result.append(item)
        return result

    document.add("provider", table(trust.provider.model_dump()))
    if trust.service is not None:
        stated = trust.service.model_dump(exclude_none=True)
        service = table(stated, "shown in reports, not checked")
        for name in (name for name in _SERVICE if name not in stated):
            service.add(tomlkit.comment(f'{name} = ""  # {_SERVICE[name]}'))
        document.add("service", service)
    drawn = "the noise depends on a value nobody knew when the provider committed to its seed"
    document.add("beacon", table(trust.beacon.model_dump(exclude_none=True), drawn))
    document.add("witness", tables([
        table(witness.model_dump(exclude_defaults=True), _DEPENDENT if witness.name in dependent else "")
        for witness in trust.witness
    ]))  # fmt: skip
    if trust.verifier:
        counted = "whose challenges count"
        document.add(
            "verifier", tables([table(verifier.model_dump(), counted) for verifier in trust.verifier])
        )
    if trust.account:
        known = "known to be independent of the provider"
        document.add("account", tables([
            table(account.model_dump(exclude_defaults=True), _DEPENDENT if account.id in dependent else known)
            for account in trust.account
        ]))  # fmt: skip
    pins = table({})
    for name, remark in _PIN_REMARKS.items():
        if (digest := getattr(trust.pins, name)) is not None:
            pins.add(name, remarked(tomlkit.string(digest), remark) if remark else tomlkit.string(digest))
    pins.add("embedder", table(dict(sorted(trust.pins.embedder.items())), "SHA-256 of public artefacts"))
    if trust.pins.groth16:
        remark = '"unsafe": made by one party, who could forge proofs with what it threw away'
        pins.add(
            "groth16",
            tables(
                [
                    table(pin.model_dump() | {"setup": remarked(tomlkit.string(pin.setup), remark)})
                    for pin in trust.pins.groth16
                ]
            ),
        )
    document.add("pins", pins)
    # A trust file without one of these three stays without it: its absence is no unmet requirement.
    unsaid = {"max_empty", "max_exposure", "max_fresh_share"} - trust.require.model_fields_set
    exception = "" if "max_empty" in unsaid else f", but an absent max_empty is {MAX_EMPTY}"
    required = table({}, f"an absent max_ or min_ is an unmet requirement{exception}")
    for key, value in trust.require.model_dump(exclude=unsaid).items():
        if value is None:
            required.add(tomlkit.comment(f"{key} =  # {_ADVICE.get(key, 'required')}"))
        else:
            item = tomlkit.item(value if isinstance(value, bool | int | list) else str(value))
            said = (remarks or {}).get(key)
            required.add(key, item if said is None else remarked(item, said))
    document.add("require", required)
    return tomlkit.dumps(document)
