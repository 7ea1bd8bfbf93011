"""A verifier's own mistake reads as one, and no sentence claims more independence or order than the files show."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.words import PLAIN
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.models.trust import Trust
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.claims import Window, _coalition, _cumulative, _privacy
from rag_audit.report.cumulative import compose, load_window
from rag_audit.report.html import decision, overview, regulation
from rag_audit.report.html.page import render
from rag_audit.report.language import language_of
from rag_audit.report.model import Cumulative, Report
from rag_audit.report.verification import verify_window
from rag_audit.verify.checks.coalition import _repeated
from tests.report.conftest import EXAMPLES, NOW

EN = language_of("en")
VECTORS = Path(__file__).resolve().parents[2] / "vectors/windows"


def report(
    trust: Trust | None = None, folder: Path = EXAMPLES, trusted: Path = EXAMPLES, **given: Any
) -> Report:
    """The report of a window under a trust file that may have a mistake."""
    trust = Trust.load(trusted / "trust.toml") if trust is None else trust
    verdict = verify_window(
        folder / "window.json", trust=trust, **{"receipts": [folder / "receipts"], **given}
    )
    return report_of(verdict, now=NOW, version="0")


def trusting(**changes: Any) -> Trust:
    return Trust.load(EXAMPLES / "trust.toml").model_copy(update=changes)


def page_text(report: Report) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]*>", " ", render(report), flags=re.DOTALL))


def _with_other_provider_key() -> Trust:
    provider = trusting().provider
    key = str(SigningKey.generate(provider.origin).verifier)
    return trusting(provider=provider.model_copy(update={"vkey": key}))


def _with_other_origin() -> Trust:
    key = SigningKey.generate("other.example/service")
    return trusting(
        provider=trusting().provider.model_copy(update={"origin": key.name, "vkey": str(key.verifier)})
    )


def _with_other_witnesses() -> Trust:
    def other(vkey: str, name: str) -> str:
        public = SigningKey.generate(name).verifier.public
        return str(replace(VerifierKey.parse(vkey, field="vkey"), public=public))

    return trusting(
        witness=[w.model_copy(update={"vkey": other(w.vkey, w.name)}) for w in trusting().witness]
    )


def _with_fewer_beacon_witnesses() -> Trust:
    beacon = trusting().beacon
    return trusting(beacon=beacon.model_copy(update={"witnesses": beacon.witnesses[:1]}))


def _with_other_pins(**pins: Any) -> Trust:
    return trusting(pins=trusting().pins.model_copy(update=pins))


MISTAKES: dict[str, Callable[[], Trust]] = {
    "provider's key": _with_other_provider_key,
    "origin": _with_other_origin,
    "witnesses": _with_other_witnesses,
    "beacon witnesses": _with_fewer_beacon_witnesses,
    "noise table": lambda: _with_other_pins(noise_table="11" * 32),
    "manifest": lambda: _with_other_pins(manifest="11" * 32),
    "embedder": lambda: _with_other_pins(embedder={**trusting().pins.embedder, "tokenizer": "11" * 32}),
    "proof keys": lambda: _with_other_pins(
        groth16=[g.model_copy(update={"vk": "11" * 32}) for g in trusting().pins.groth16]
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_trust_file_accuses_nobody(mistake: str) -> None:
    result = report(MISTAKES[mistake]())
    assert not result.outcome.startswith("PASS")
    assert overview.followed(result) == "open"
    assert "no" not in {rule.answer for rule in overview.rules(EN, result)}
    assert "is false" not in result.sentence and "statement of the window is false" not in page_text(result)
    assert "Rules followed: not established" in page_text(result)
    steps = " ".join(result.next_steps)
    assert "trust.toml" in steps or "compare trust.toml" in render_report(result, "summary")


def test_the_trust_file_of_another_service_of_one_name_is_the_first_likely_cause() -> None:
    """No key of the trust file signed, so the trust file belongs to another service, as with two pilots."""
    trust = trusting()
    witnesses = [
        w.model_copy(update={"vkey": str(SigningKey.generate(w.name, 4).verifier)}) for w in trust.witness
    ]
    provider = _with_other_provider_key().provider
    result = report(trust.model_copy(update={"provider": provider, "witness": witnesses}))
    lines = render_report(result, "summary").splitlines()
    assert lines[0] == "FAIL header.signature" and "is false" not in result.sentence
    (cause,) = (line for line in lines if line.startswith("likely cause"))
    assert "if nobody cheated: trust.toml is the trust file of another service" in cause
    (reason,) = (line for line in lines if line.startswith("reason"))
    assert reason.count("expected ") == 1 and reason.count("header.signature") == 1
    assert "at trust.toml: provider.vkey" in reason


def test_a_window_with_one_signature_of_another_key_is_false() -> None:
    """The end of the ledger is signed with the pinned key, so the trust file is right."""
    folder = VECTORS / "opening-signed-by-another-key"
    result = report(folder=folder, trusted=VECTORS / "honest")
    assert result.outcome == "FAIL" and overview.followed(result) == "no"
    assert "is false" in result.sentence


def test_an_earlier_window_for_the_first_one_is_the_verifiers_mistake() -> None:
    first: dict[str, Any] = {"folder": VECTORS / "honest", "trusted": VECTORS / "honest"}
    for given in (VECTORS / "in-a-row", VECTORS / "honest"):
        result = report(**first, previous=[given / "window.json"])
        (check,) = (c for c in result.checks if c.base == "header.chain")
        assert (result.outcome, check.outcome) == ("UNDECIDED", "undecided")
        assert "omit --previous for the first window" in render_report(result, "summary")
        assert "no" not in {rule.answer for rule in overview.rules(EN, result)}


def test_two_first_windows_of_one_origin_are_false() -> None:
    result = report(
        folder=VECTORS / "honest",
        trusted=VECTORS / "honest",
        previous=[VECTORS / "embedded/window.json"],
    )
    (check,) = (c for c in result.checks if c.base == "header.chain")
    assert (result.outcome, check.outcome) == (
        "FAIL",
        "fail",
    ) and check.actual.startswith("two cosigned windows: ")


def _order(report: Report) -> tuple[str, str]:
    (rule,) = (r for r in overview.rules(EN, report) if "header.abandoned" in r.checks)
    return rule.answer, str(rule.words)


def test_the_order_of_windows_is_stated_as_far_as_it_was_checked() -> None:
    row: dict[str, Any] = {"folder": VECTORS / "in-a-row", "trusted": VECTORS / "honest"}
    answer, words = _order(report(**row))
    assert answer == "unchecked" and "was not supplied: only the witnesses confirm" in words
    answer, words = _order(report(**row, previous=[VECTORS / "honest/window.json"]))
    assert answer == "yes" and words.startswith("The window follows the previous one")
    answer, words = _order(report())
    assert answer == "yes" and words.startswith("The window is the first one of the service")


def _pilot(accounts: int | None = None) -> Trust:
    """The example's trust file as `rag-audit init` writes it for a pilot."""
    trust = trusting()
    named = trust.account[:accounts] if accounts else trust.account
    return trust.model_copy(
        update={
            "account": [a.model_copy(update={"independent": a not in named}) for a in trust.account],
            "witness": [w.model_copy(update={"independent": False}) for w in trust.witness],
        }
    )


def test_a_pilots_accounts_and_witnesses_are_not_called_independent() -> None:
    result = report(_pilot())
    assert result.outcome == "PASS"
    assert (result.counts.receipts_independent, result.counts.receipts_dependent) == (0, 4)
    (claim,) = (c for c in result.claims if c.id == "receipts-independent")
    assert claim.words == (
        "4 receipts are from accounts that the trust file calls not independent of the provider."
    )
    text = page_text(result)
    for words in ("calls independent of the provider.", "Receipts of independent accounts agree"):
        assert words in page_text(report()) and words not in text
    assert "The trust file calls their accounts not independent of the provider" in text
    assert "calls 0 accounts independent of the provider" in text
    assert "from accounts that are not independent of the provider" in render_report(result, "text")
    (weakness,) = (w for w in result.weaker if w.id == "receipts")
    assert "no receipt of an independent account" in weakness.words


def _fronts(result: Report) -> dict[str, str]:
    """The report for people and for programs."""
    kinds = ("brief", "summary", "text", "json")
    return {**{kind: render_report(result, kind) for kind in kinds}, "html": page_text(result)}


POOLED = VECTORS / "pooled-listing"
"""A window with a chain of bits, keys that nobody made, and two mechanisms."""


def _pilot_of(folder: Path) -> Trust:
    trust = Trust.load(folder / "trust.toml")
    accounts = [a.model_copy(update={"independent": False}) for a in trust.account]
    witnesses = [w.model_copy(update={"independent": False}) for w in trust.witness]
    return trust.model_copy(update={"account": accounts, "witness": witnesses})


@pytest.mark.parametrize("folder", [EXAMPLES, POOLED])
def test_a_pilot_claims_nothing_that_its_one_party_can_forge(folder: Path) -> None:
    honest, pilot = (report(trust, folder, folder) for trust in (None, _pilot_of(folder)))
    assert honest.outcome == pilot.outcome == "PASS"
    claims = (
        "could not choose the randomness",
        "The ledger was not rewritten",
        "this window is the origin's first",
        "committed to before the window opened",
    )
    english = {
        name: re.sub(r"not established +The [^.]*\.", "", text) for name, text in _fronts(pilot).items()
    }
    for words in claims:
        assert any(words in text for text in _fronts(honest).values()), words
        assert not [name for name, text in english.items() if words in text], words
    rules = {rule.checks[-1]: rule.answer for rule in overview.rules(EN, pilot)}
    assert overview.followed(pilot) == "open" and list(rules.values()).count("open") >= 3
    assert {line.strength for p in pilot.protections for line in p.lines.values()} <= {"weak", "none"}
    assert "Its use of the promised randomness is proved" in page_text(honest)
    assert "it could have chosen the randomness" in page_text(pilot)
    met = {c.place: c.met for c in regulation.clauses(EN, pilot)}
    assert {met["12(1)"], met["12(2)(a)"], met["12(2)(c)"]} == {"open"}


@pytest.mark.parametrize(
    ("folder", "setup", "answer"), [(EXAMPLES, "unsafe", "open"), (POOLED, "transparent", "yes")]
)
def test_a_pilots_sentence_for_a_person_agrees_with_its_rules(folder: Path, setup: str, answer: str) -> None:
    """A party that made the keys of the proofs can forge them, so nothing is proved about other tenants."""
    pilot = report(_pilot_of(folder), folder, folder)
    assert pilot.figures.setup == setup
    (rule,) = (r.answer for r in overview.rules(EN, pilot) if "follows the published rule" in r.words)
    (group, *_) = overview.groups(pilot)
    person, table = str(overview.person(EN, group)), str(overview.rows(EN, group)[0].figure)
    assert rule == answer and "account of another tenant" in person
    words = [person, table, str(overview.good(EN, group))]
    if answer == "open":
        assert "could forge the proofs" in table
        assert not [text for text in words if re.search("proved|by proof", text)]
    else:
        assert "(proved for this ledger, which the provider can replace)" in person
        assert "the provider can replace the ledger" in table
    assert all("is proved to come" not in p.isolation.figure for p in pilot.protections)


def test_a_pilot_is_signed_only_as_a_trial() -> None:
    pilot = report(_pilot_of(POOLED), POOLED, POOLED)
    assert decision.supported(pilot) == "trial"
    text = page_text(pilot)
    assert "This report supports: Sign only as a trial" in text and "Sign with conditions" not in text
    assert pilot.next_steps[0].startswith("use this report only as a trial")
    for kind, front in _fronts(pilot).items():
        assert "trial" in front or (kind == "brief" and "others learn nothing" in front), kind
    assert "the provider did not choose the randomness" in pilot.does_not_prove[0]


def test_a_pilot_that_did_not_pass_shows_no_steps_that_work() -> None:
    for change in ({"min_k_max": 9}, {}):
        pilot = _pilot_of(EXAMPLES)
        pilot = pilot.model_copy(update={"require": pilot.require.model_copy(update=change)})
        folder = EXAMPLES if change else VECTORS / "proof-of-another-record"
        result = report(pilot, folder, receipts=[])
        assert result.outcome in ("UNMET", "FAIL") and "One party plays all roles" in page_text(result)
        assert not [kind for kind, text in _fronts(result).items() if "steps work" in text]


FOREIGN: dict[str, Callable[[], Report]] = {
    "receipts of another window": lambda: report(receipts=[VECTORS / "in-a-row/receipts"]),
    "a trust file of another service": lambda: report(_with_other_origin()),
    "a trust file with another key": lambda: report(_with_other_provider_key()),
    "an earlier window of another service": lambda: report(
        folder=VECTORS / "honest", trusted=VECTORS / "honest", previous=[VECTORS / "in-a-row/window.json"]
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_the_verifiers_own_input_is_named_and_the_provider_is_not_asked(name: str) -> None:
    result = FOREIGN[name]()
    assert decision.supported(result) == "repeat"
    text = page_text(result)
    assert "your own input does not fit this window" in text and "Before you ask the provider" in text
    assert "How do you explain this" not in text and "does not support the provider" not in text
    assert "not establishedThe window does not meet" not in text.replace(
        "not established The", "not establishedThe"
    )
    assert "Ihre eigenen Eingaben" in render(result, "de")


def test_an_earlier_window_that_the_verifier_did_not_supply_is_no_fault_of_the_provider() -> None:
    result = report(folder=VECTORS / "pooled-listing-second", trusted=VECTORS / "pooled-listing-second")
    assert result.outcome == "UNPROVEN" and decision.supported(result) == "repeat"
    text = page_text(result)
    assert "your own input is not complete" in text and "Before you ask the provider" in text
    assert "How do you explain this" not in text and "supply every window back to the first one" in text
    assert text.count("see the report in JSON") == 1, "only the table of checks shortens what a check read"
    assert "Ihre eigenen Eingaben" in render(result, "de")


def test_a_false_statement_is_the_providers() -> None:
    result = report(folder=VECTORS / "proof-of-another-record", trusted=VECTORS / "honest", receipts=[])
    assert decision.supported(result) == "refuse" and "How do you explain this" in page_text(result)


def test_no_account_repeated_a_question_where_the_largest_group_is_one_account() -> None:
    result = report()
    assert result.figures.largest_cluster == 2
    for count, words in (
        (1, "no account repeated another account's question"),
        (2, "at most 2 accounts repeated"),
    ):
        parts = result.figures.model_copy(update={"largest_cluster": count})
        said = _coalition(PLAIN, Window(parts, result.counts, result.vouching, result.tenants, result.chain))
        assert said is not None and words in said
    assert (
        _repeated(1, 1)
        == _repeated(0, 0)
        == "no account but its author repeated a question almost word for word, none in one tenant"
    )
    assert _repeated(2, 1).startswith("2 accounts") and _repeated(2, 1).endswith(", none in one tenant")
    assert _repeated(3, 2).startswith("3 accounts") and _repeated(3, 2).endswith(", 2 in one tenant")


def test_receipts_are_asked_of_accounts_and_not_of_the_provider() -> None:
    result = report(folder=POOLED, trusted=POOLED)
    assert [w for w in result.weaker if w.id == "receipts"]
    assert not [q for q in decision.questions(EN, result) if "receipt" in q]
    assert any("ask accounts that you know to be independent" in step for step in result.next_steps)


def test_one_bit_decides_for_the_chain(pooled: Report) -> None:
    text = page_text(pooled)
    assert "one random bit for the whole chain of windows: asking again" in text
    assert "in all windows of the chain together (epsilon" in text and "but rarely" not in text


def test_isolation_is_stated_for_the_ledger_and_without_the_embedding() -> None:
    for kind, text in _fronts(report()).items():
        assert "cannot receive it" not in text and (
            "whatever vector stands for" in text or kind == "brief"
        ), kind


def test_each_row_is_judged_in_its_own_sentence(pooled: Report) -> None:
    text = page_text(pooled)
    assert "strong or moderate against" not in text and "for lists only (epsilon" in text
    good = text.partition("Is this good?")[2].partition("Who is")[0]
    assert good.count("Accounts that ask for the document: no protection") == 1


def test_noise_is_not_said_to_return_nothing_without_regard_to_the_question() -> None:
    text = page_text(report())
    assert "Chance alone returns none" not in text and "Noise also returns documents" in text


def test_receipts_of_dependent_accounts_do_not_count_beside_independent_witnesses() -> None:
    trust = trusting()
    accounts = [a.model_copy(update={"independent": False}) for a in trust.account]
    result = report(trust.model_copy(update={"account": accounts}))
    assert result.outcome == "UNMET" and result.decided_by == ["receipt.independent"]
    (check,) = (c for c in result.checks if c.base == "receipt.independent")
    assert (check.actual, check.expected) == ("0", "at least 1 receipt of independent accounts in trust.toml")
    pilot = report(_pilot())
    (limit,) = (r for r in pilot.requirements if r.name == "min_receipts")
    assert pilot.outcome == "PASS" and "not independent of the provider count too" in str(limit.scope)
    assert "RAG_AUDIT_MET_MIN_RECEIPTS" not in render_report(pilot, "svr")
    assert "RAG_AUDIT_MET_MIN_RECEIPTS" in render_report(report(), "svr")


def test_different_tenants_are_not_added_up(pooled: Report) -> None:
    strip = {name: str(value) for name, _, value, _ in overview.strip(EN, pooled)}
    assert "2 tenants with room" not in strip["size"] and strip["size"].startswith("law")
    assert "law: " in strip["answers"] and "accounts" in strip["answers"]


def test_the_page_tells_how_the_digest_of_the_receipts_is_made() -> None:
    result = report()
    command = "(cd receipts; LC_ALL=C sha256sum *.json) | sha256sum"
    assert command in page_text(result)
    made = subprocess.run(
        ["sh", "-c", command], cwd=EXAMPLES, capture_output=True, text=True, check=True
    ).stdout
    assert made.split()[0] == result.filing.receipts.sha256


def test_limits_of_other_runs_are_left_out(reports: dict[str, Report]) -> None:
    sampled = "in sampled mode, records without a required proof"
    assert sampled in reports["PASS-SAMPLED"].does_not_prove and sampled not in reports["PASS"].does_not_prove
    assert not [line for line in reports["PASS"].does_not_prove if "mechanism sampling" in line]


def test_one_epsilon_of_pooled_listing_covers_the_chain(pooled: Report) -> None:
    assert "one ε covers the whole chain of windows" in page_text(pooled)
    assert "for any number of accounts, in one window" not in page_text(pooled)


def test_an_unknown_operator_names_the_place_of_its_statement() -> None:
    assert "not stated (in trust.toml: [service] operator)" in page_text(report())


def test_the_brief_verdict_gives_its_reason() -> None:
    lines = render_report(report(receipts=[VECTORS / "in-a-row/receipts"]), "brief").splitlines()
    assert len(lines) == 4 and lines[2].startswith("reason: receipt.accepted: read ")
    assert "supply only receipts of this window" in lines[3]


def test_the_missing_points_are_named() -> None:
    text = page_text(report())
    assert (
        "points are missing, to be written into the conditions: law and medicine: weak or no protection"
        in text
    )
    assert "the vectors of documents are not proved" in text and "write the missing point" not in text


def test_some_accounts_of_the_provider_are_counted_apart() -> None:
    result = report(_pilot(1))
    c = result.counts
    assert (
        c.receipts_independent and c.receipts_dependent and c.receipts_independent + c.receipts_dependent == 4
    )
    (claim,) = (line for line in result.claims if line.id == "receipts-independent")
    assert "calls independent" in claim.words and "calls not independent" in claim.words


def test_receipts_of_another_service_are_named_as_such() -> None:
    result = report(receipts=[VECTORS / "in-a-row/receipts"])
    (check,) = (c for c in result.checks if c.base == "receipt.accepted")
    assert (result.outcome, check.outcome) == ("UNDECIDED", "undecided")
    assert "the receipt belongs to another service or window" in check.actual
    assert "example.org/rag/w-1" in check.actual and "roster" not in check.actual
    summary = render_report(result, "summary")
    assert "belong to another service" in summary and "supply only receipts of this window" in summary


def test_a_mechanism_without_delta_states_none(pooled: Report) -> None:
    assert pooled.outcome == "PASS" and pooled.figures.delta == "0" and " delta=0 " in pooled.line
    (claim,) = (c for c in pooled.claims if c.id == "privacy")
    assert "for any number of colluding accounts, at delta 0." in claim.words
    shown = " ".join(render_report(pooled, kind) for kind in ("summary", "text")) + page_text(pooled)
    assert "1e-5" not in shown.replace("at most 1e-5", "")


def test_sentences_after_one_another_have_a_space_between_them(pooled: Report) -> None:
    for result in (pooled, report()):
        for code in ("en", "de"):
            for paragraph in re.findall("<p[ >].*?</p>", render(result, code), flags=re.DOTALL):
                text = re.sub("<code>.*?</code>|<[^>]*>", "", paragraph)
                assert re.search("[a-zäöü]{2}[.][A-ZÄÖÜ][a-zäöü]", text) is None, text


def test_a_figure_for_any_number_of_accounts_has_no_limit_of_accounts(pooled: Report) -> None:
    beyond = "a coalition of more than k_max accounts"
    assert beyond in report().does_not_prove and beyond not in pooled.does_not_prove


def test_a_record_of_pooled_listing_is_received_once_it_is_listed(pooled: Report) -> None:
    """A document is listed by the threshold or by chance, and an answer is the exact top K of listed documents."""
    (group, *_) = overview.groups(pooled)
    found = str(overview.person(EN, group)[0])
    assert f"reaches the threshold of {pooled.tenants[0].threshold}" in found and "sample omits" in found
    assert "Chance can list any record" in found and "best listed matches" in found
    for kind, text in _fronts(pooled).items():
        assert "matching document is returned" not in text, kind
        assert "receives it with a probability" not in text and "is returned with its text if" not in text, (
            kind
        )


def test_a_requirement_met_in_part_is_no_met_requirement() -> None:
    pilot = report(_pilot())
    text = page_text(pilot)
    assert (
        overview.meets(pilot) == "part" and "requirements of the trust file, 1 of them only in part" in text
    )
    assert "every requirement" not in text and "this pilot counts receipts of other accounts too" in text
    assert overview.meets(report()) == "yes" and "meets every requirement" in page_text(report())


@pytest.mark.parametrize("folder", [EXAMPLES, POOLED])
def test_each_line_of_a_pilot_has_one_strength(folder: Path) -> None:
    pilot = report(_pilot_of(folder), folder, folder)
    text = page_text(pilot)
    assert "No row of a pilot is good for another party." in text
    assert "The rows would be as follows if other parties confirmed it." in text
    assert {line.strength for line in pilot.protections[0].lines.values()} <= {"weak", "none"}
    lists = pilot.protections[0].lists
    assert lists.strength == "weak" and lists.eps is not None
    if float(lists.eps) <= 10:
        assert "Observers of lists: moderate, for lists only" in text
        assert "This is moderate" not in text and "This would be moderate" in text
        assert "this is weak; it would be moderate" in " ".join(render_report(pilot, "text").split())
    assert "In a pilot no row" not in page_text(report())


def test_isolation_of_a_pilot_names_the_provider_that_can_replace_the_ledger() -> None:
    for folder in (EXAMPLES, POOLED):
        pilot = report(_pilot_of(folder), folder, folder)
        figure = pilot.protections[0].isolation.figure
        assert "accounts of other tenants see no data of this index" in figure
        assert figure.endswith(", but the provider can replace the ledger")
        assert ("only if the provider followed" in figure) is (pilot.figures.setup == "unsafe")
        assert (
            "but the provider can replace the ledger" in page_text(pilot) or pilot.figures.setup == "unsafe"
        )


def test_a_probability_is_not_called_odds(pooled: Report) -> None:
    for result in (report(), pooled):
        for kind, text in _fronts(result).items():
            assert re.search(r"odds of [0-9]+ in", text) is None, kind
        assert "a probability of 1 in 2 that a document" in page_text(result)


def test_no_infinite_figure_is_among_the_proved_statements() -> None:
    folder = VECTORS / "sampling"
    result = report(folder=folder, trusted=folder)
    (law, protection) = (result.tenants[0], result.protections[0])
    assert law.mechanism == "sampling" and law.eps == result.figures.eps == "inf"
    infinite = Cumulative(
        windows=2,
        condition="c",
        eps="inf",
        delta="0",
        positions_per_document=1,
        exclusion_factor=None,
        exclusion_factor_all_accounts=None,
    )
    figures = result.figures.model_copy(update={"cumulative": infinite})
    window = Window(figures, result.counts, result.vouching, [law], result.chain)
    assert _privacy(PLAIN, window) is None and _cumulative(PLAIN, window) is None
    alone = result.model_copy(update={"tenants": [law], "protections": [protection]})
    text = page_text(alone)
    assert "There is no epsilon" in text and "The window's figure is for any number of accounts" not in text


def test_the_reason_for_no_epsilon_is_the_mechanism() -> None:
    bound = compose([load_window(VECTORS / "sampling/window.json")]).bound
    assert "mechanism sampling of tenant" in str(bound.reason) and "noise" not in str(bound.reason)


def test_a_pilots_seed_is_fixed_by_the_providers_word() -> None:
    pilot, honest = report(_pilot_of(POOLED), POOLED, POOLED), report(folder=POOLED, trusted=POOLED)
    assert "a seed that was fixed before the first question" in page_text(honest)
    assert "a seed that, by the provider's word only, was fixed" in page_text(pilot)
    assert "draws noise in constant work" in page_text(report())
    assert "By the provider's word only, it draws noise" in page_text(report(_pilot()))


def test_the_glossary_makes_no_claim_about_a_pilot() -> None:
    text = page_text(report(_pilot())).partition("Glossary")[2]
    assert "with enough independent witnesses, no entry can change or disappear unnoticed" in text
    assert "in which no entry can change" not in text and "so that the provider cannot show" not in text
    assert "fixed before the window opens" not in text and "an account confirms the answer" not in text


def test_the_signed_digest_is_called_the_headers() -> None:
    result = report()
    signing = page_text(result).partition("Your decision")[2].partition("A signature")[0]
    assert re.search(
        r"Digest of the window's header \(entry 0\) +" + result.window.header, signing.replace("&#39;", "'")
    )
    assert "a decision to sign also accepts the report's limits" in page_text(result)
    assert "A trial permits tests" in page_text(report(_pilot())) and "A trial permits" not in page_text(
        result
    )


def test_a_clause_has_one_result() -> None:
    for result in (report(), report(_pilot())):
        for clause in regulation.clauses(EN, result):
            shown = str(regulation.met(EN, clause.met))
            assert shown != "not met by this window" or not clause.fields.startswith("not established")
            assert clause.place[:5] != "12(3)" or shown.startswith("does not apply, unless")


def test_an_open_rule_is_no_statement() -> None:
    answer, words = _order(report(_pilot()))
    assert answer == "open" and words.startswith("Whether the window is the first one")
    row: dict[str, Any] = {"folder": VECTORS / "in-a-row", "trusted": VECTORS / "honest"}
    for previous in ([], [VECTORS / "honest/window.json"]):
        answer, words = _order(report(_pilot_of(VECTORS / "honest"), previous=previous, **row))
        assert answer == "open" and words.startswith("Whether a window was left out")
        assert "only the witnesses confirm" not in words


def test_the_room_of_a_table_is_no_number_of_documents(pooled: Report) -> None:
    for kind, text in _fronts(pooled).items():
        plain = " ".join(text.split())
        assert re.search(r"of at most [0-9,]+ documents", plain) is None, kind
        assert "the number of documents is not published" in plain or kind == "brief", kind
    strip = {name: str(value) for name, _, value, _ in overview.strip(EN, pooled)}
    assert " each;" not in strip["size"] and not strip["size"].endswith("each")
