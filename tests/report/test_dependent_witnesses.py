"""No sentence of a report claims more of its witnesses than the witnesses independent of the provider confirm."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import pytest

from rag_audit.log.keys import ALG_COSIGNATURE, VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.models.trust import Dependence, Trust, WitnessTrust
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.html import overview, regulation
from rag_audit.report.model import Report
from rag_audit.report.svr import properties
from tests.report.conftest import EXAMPLES, NOW
from tests.report.test_mistakes import EN, POOLED, _fronts, page_text, report
from tests.window.simulator import finished_window

RANDOMNESS = ("could not choose the randomness", "with the randomness that the policy promises",
              "Its use of the promised randomness is proved")  # fmt: skip
ONE_LEDGER = ("The ledger was not rewritten", "this window is the origin's first")


def trusting(folder: Path, *dependent: str, own: str = "", more: int = 0, quorum: int = 2) -> Trust:
    """The window's trust file, with dependent witnesses.

    :param own: the name of a further witness that signs with the provider's key
    :param more: the number of further witnesses, w3 and so on, which signed nothing
    """
    trust = Trust.load(folder / "trust.toml")
    added = [
        WitnessTrust(name=f"w{n}", vkey=str(SigningKey.generate(f"w{n}", ALG_COSIGNATURE).verifier))
        for n in range(3, 3 + more)
    ]
    if own:
        public = VerifierKey.parse(trust.provider.vkey).public
        added.append(WitnessTrust(name=own, vkey=str(VerifierKey(own, ALG_COSIGNATURE, public))))
    witnesses = [
        w.model_copy(update={"independent": w.name not in dependent}) for w in [*trust.witness, *added]
    ]
    return trust.model_copy(update={"witness": witnesses, "quorum": quorum})


@pytest.fixture(scope="module")
def beacon(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Report]:
    """A window whose beacon has only the value of w1: the report if w1 is independent, and if it is the provider's.

    A third witness cosigned nothing, so that two independent witnesses could form the quorum of two.
    """
    finished = finished_window(tmp_path_factory.mktemp("drawn"), rounds=1, drawing=("w1",))
    trust = finished.service.trust(finished.policy)
    third = WitnessTrust(name="w3", vkey=str(SigningKey.generate("w3", ALG_COSIGNATURE).verifier))
    reports = [
        report_of(
            finished.verify(
                trust=trust.model_copy(
                    update={
                        "witness": [
                            *(w.model_copy(update={"independent": w.name != own}) for w in trust.witness),
                            third,
                        ]
                    }
                )
            ),
            now=NOW,
        )
        for own in ("", "w1")
    ]
    return reports[0], reports[1]


def said(result: Report, sentences: tuple[str, ...]) -> list[tuple[str, str]]:
    """The sentences that a form of the report has, each with the form's name. The name of a rule is no claim."""
    rules = [str(rule.words) for rule in overview.rules(EN, result) if rule.answer == "open"]
    found = []
    for kind, text in _fronts(result).items():
        for rule in rules:
            text = text.replace(f"not established {rule}", "")
        found += [(kind, words) for words in sentences if words in text]
    return found


@pytest.mark.parametrize("folder", [EXAMPLES, POOLED])
def test_a_common_witness_of_the_provider_does_not_prevent_a_second_ledger(folder: Path) -> None:
    """The quorums {w1, w2} and {w1, w3} have only w1 in common."""
    honest = report(trusting(folder, more=1), folder, folder)
    result = report(trusting(folder, "w1", more=1), folder, folder)
    assert honest.outcome == result.outcome == "PASS" and not result.vouching.pilot
    assert {words for _, words in said(honest, ONE_LEDGER)} == {*ONE_LEDGER}
    assert said(result, ONE_LEDGER) == []
    assert "allow=dependent-quorum" in result.line and "allow=dependent" not in honest.line
    (weakness,) = (w for w in result.weaker if w.id == "quorum")
    assert weakness.words == (
        "two quorums of 2 of 3 witnesses may have only witnesses of the provider (w1) in common: two ledgers could"
        " each have a quorum"
    )
    assert result.shows("randomness") and "quorum" not in {w.id for w in honest.weaker}
    assert {"RAG_AUDIT_PASS_WITH_EXCEPTIONS", "RAG_AUDIT_WITNESSES_DEPENDENT"} < {*properties(result)}
    assert "RAG_AUDIT_WITNESSES_INDEPENDENT" in properties(honest)
    met = {c.place: c.met for c in regulation.clauses(EN, result)}
    assert met["12(1)"] == "open" and "two quorums may have no independent witness in common" in page_text(
        result
    )
    assert overview.followed(result) == "open" and overview.followed(honest) == "yes"


def banner_of(result: Report) -> str | None:
    shown = overview.banner(EN, result)
    return None if shown is None else " ".join(map(str, (shown[0], *shown[1])))


def test_a_page_with_an_assumption_about_witnesses_has_a_banner(beacon: tuple[Report, Report]) -> None:
    """As each `allow=dependent-` of the verdict, which a reader of the page alone does not see."""
    honest, chosen = beacon
    forkable = report(trusting(EXAMPLES, "w1", more=1), EXAMPLES, EXAMPLES)
    assert "allow=dependent-beacon" in chosen.line and "allow=dependent-quorum" in forkable.line
    assert banner_of(honest) is None
    first, second = (
        "Two quorums may have only witnesses of the provider in common (w1), so two ledgers could each have a quorum.",
        "Witnesses of the provider alone made the beacon (w1), so the provider could have chosen the randomness.",
    )
    heading = "The provider takes part in its own control."
    assert "allow=dependent-quorum" in chosen.line and banner_of(chosen) == f"{heading} {first} {second}"
    assert banner_of(forkable) == f"{heading} {first}"
    # A minority quorum without a witness of the provider has its own name in the verdict.
    minority = report(trusting(EXAMPLES, more=2, quorum=2), EXAMPLES, EXAMPLES)
    assert minority.vouching.forkable and banner_of(minority) is None


def test_a_pilot_names_the_way_in_which_the_provider_decides_a_quorum() -> None:
    """Both rules of `Dependence.pilot`: a quorum needs the provider's witnesses, or they alone form one."""
    needed = report(trusting(EXAMPLES, "w1"), EXAMPLES, EXAMPLES)
    alone = report(trusting(EXAMPLES, "w1", "w2", more=2), EXAMPLES, EXAMPLES)
    assert needed.vouching.pilot and alone.vouching.pilot
    for result, own, other in (
        (needed, "operates witnesses that the quorum needs", "operates enough witnesses"),
        (alone, "operates enough witnesses for a quorum", "that the quorum needs"),
    ):
        shown = banner_of(result) or ""
        assert own in shown and own in result.sentence, (shown, result.sentence)
        assert other not in shown and other not in result.sentence


def test_the_rule_of_two_quorums_is_exact() -> None:
    """By enumeration: every two quorums have an independent witness in common exactly if the inequality holds."""
    for n in range(1, 6):
        for quorum, dependent in product(range(1, n + 1), range(n + 1)):
            names, own = tuple(map(str, range(n))), frozenset(map(str, range(dependent)))
            quorums = [set(q) for q in combinations(names, quorum)]
            common = all((a & b) - own for a in quorums for b in quorums)
            assert Dependence(names, own, quorum).shares is common, (n, quorum, dependent)
            needed = all(q & own for q in quorums) or any(q <= own for q in quorums)
            assert Dependence(names, own, quorum).pilot is needed, (n, quorum, dependent)


def test_a_beacon_of_the_providers_witnesses_alone_is_no_randomness(beacon: tuple[Report, Report]) -> None:
    honest, result = beacon
    assert honest.outcome == result.outcome == "PASS" and not result.vouching.pilot
    assert {words for _, words in said(honest, RANDOMNESS)} == {*RANDOMNESS}
    assert said(result, RANDOMNESS) == []
    assert "allow=dependent-beacon" in result.line
    (weakness,) = (w for w in result.weaker if w.id == "beacon")
    assert weakness.words == (
        "the provider's own witnesses alone made the beacon, so the provider could have chosen the randomness"
    )
    assert {"RAG_AUDIT_PASS_WITH_EXCEPTIONS", "RAG_AUDIT_WITNESSES_DEPENDENT"} < {*properties(result)}
    assert "its own witnesses alone made the beacon, so it could have chosen the randomness" in page_text(
        result
    )
    assert "so the provider could have chosen the randomness" in render_report(result, "text")
    assert {p.lists.strength for p in result.protections} <= {"weak", "none"}
    assert {p.isolation.strength for p in result.protections} == {"strong"}
    (claim,) = (c for c in result.claims if c.id == "privacy")
    assert "the figure is valid only if the provider did not choose it" in claim.words
    assert result.shows("answers") and overview.followed(result) == "open"


def test_a_witness_with_the_providers_key_is_the_providers_in_every_form() -> None:
    """The trust file calls w3 independent, and w3 signs with the provider's key."""
    trust = trusting(POOLED, "w1", own="w3")
    result = report(trust, POOLED, POOLED)
    assert trust.pilot and result.vouching.pilot and result.vouching.dependent == ["w1", "w3"]
    assert result.outcome == "PASS" and "allow=pilot-witnesses" in result.line
    names = properties(result)
    assert "RAG_AUDIT_PASS" not in names and "RAG_AUDIT_PASS_WITH_EXCEPTIONS" in names
    assert "RAG_AUDIT_WITNESSES_PILOT" in names
    assert result.warnings[0].startswith("PILOT: trust.toml shows that w1 and w3 are not independent")
    assert said(result, (*RANDOMNESS, *ONE_LEDGER)) == []


def test_one_witness_depends_and_two_witnesses_depend() -> None:
    for dependent, words in ((("w1",), "PILOT: w1 depends on"), (("w1", "w2"), "PILOT: w1 and w2 depend on")):
        assert words in render_report(report(trusting(EXAMPLES, *dependent)), "text")


def test_a_quorum_of_the_providers_witnesses_alone_is_a_pilot() -> None:
    """One of two witnesses is enough, so the provider's one can date a cosignature back."""
    result = report(trusting(EXAMPLES, "w1", quorum=1))
    assert result.vouching.pilot and "allow=pilot-witnesses" in result.line
    assert said(result, (*RANDOMNESS, *ONE_LEDGER)) == []
