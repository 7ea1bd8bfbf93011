"""The page's last part: every check, the fields of NIST SP 800-226, and how to check all of it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_audit._internal.words import counted
from rag_audit.mechanisms import accounting
from rag_audit.report.explain import COVERS
from rag_audit.report.model import CheckLine, Report
from rag_audit.report.page import charts, words
from rag_audit.report.page.markup import Child, Html, clip, join, name, tag

GROUPS = {
    "opening": "commitment and opening",
    "ledger": "ledger",
    "proof": "proofs",
    "receipt": "receipts",
    "coalition": "coalitions",
    "bound": "privacy bound",
    "trust": "requirements",
}
"""The first parts of checks' ids, in the order of a verification."""
MOST_PASSED, MOST_OTHERS = 60_000, 90_000
"""Letters of markup for the rows of the table of checks, of which a window with many tenants has any number."""
MOST_FILES = 30
CLIP = 160


def checks(report: Report) -> Html:
    """Every check with its outcome, which the reader may narrow down without a script."""
    others = [c for c in report.checks if c.outcome != "pass"]
    passed = [c for c in report.checks if c.outcome == "pass"]
    made = {**_rows(others, MOST_OTHERS), **_rows(passed, MOST_PASSED)}
    rows = [made[id(c)] for c in report.checks if id(c) in made]
    left = len(report.checks) - len(rows)
    present = [g for g in GROUPS if any(_group(c) == g for c in report.checks)]
    return tag(
        "section",
        tag("h2", "Every check"),
        tag(
            "p",
            f"{counted(len(report.checks), 'check')}: {len(passed):,} passed, {len(others):,} did not. The"
            " command ",
            tag("code", "rag-audit explain"),
            " and a check's name say what it means.",
        ),
        tag(
            "p",
            f"{counted(left, 'check')} of {len(report.checks):,} left out of this table; the report in JSON"
            " has all of them.",
            class_="warning",
        )
        if left
        else None,
        tag(
            "fieldset",
            tag("legend", "Show"),
            _choice("all", "all", True),
            _choice("wrong", "not passed", False),
            [_choice(g, GROUPS[g], False) for g in present],
            class_="filter",
        ),
        tag(
            "div",
            tag(
                "table",
                tag("caption", "Checks in the order of the verification"),
                tag(
                    "thead",
                    tag("tr", [tag("th", head, scope="col") for head in ("check", "outcome", "found")]),
                ),
                tag("tbody", rows),
                class_="values wide checks",
            ),
            class_="rows",
        ),
        id="checks",
    )


def _rows(checks: Sequence[CheckLine], most: int) -> dict[int, Html]:
    """The rows of the first checks, as long as there is room for them."""
    made: dict[int, Html] = {}
    for check in checks:
        row = _row(check)
        most -= len(row)
        if most < 0:
            break
        made[id(check)] = row
    return made


def _group(check: CheckLine) -> str:
    return check.id.partition(".")[0]


def _choice(value: str, label: str, checked: bool) -> Html:
    return tag(
        "label", tag("input", type="radio", name="show", id=f"show-{value}", checked=checked), f" {label}"
    )


def _row(c: CheckLine) -> Html:
    """One check. Its group becomes a class, so only names that this module knows do."""
    group = _group(c)
    expected = (
        tag("div", "expected ", clip(c.expected, CLIP), class_="small") if c.outcome != "pass" else None
    )
    place = tag("span", f" at {clip(c.at, CLIP)}", class_="small") if c.at is not None else None
    return tag(
        "tr",
        tag("th", name(clip(c.id, 200)), scope="row"),
        tag("td", tag("span", c.outcome, class_=f"tag {c.outcome}")),
        tag("td", clip(c.found, CLIP), place, expected),
        class_=f"{'ok' if c.outcome == 'pass' else 'wrong'}{f' in-{group}' if group in GROUPS else ''}",
    )


def nist(report: Report) -> Html:
    """The subjects of NIST SP 800-226 that a claim of differential privacy is evaluated by."""
    rows: list[list[Child]] = [[field, value] for field, value in nist_fields(report)]
    return tag(
        "section",
        tag("h2", "Fields of NIST SP 800-226"),
        tag(
            "p",
            "What the United States' standards institute asks of a claim of differential privacy (Guidelines"
            " for Evaluating Differential Privacy Guarantees, March 2025), answered for this window.",
        ),
        charts.table("Fields of the guideline", ["field", "this window"], rows, class_="values wide"),
        id="nist",
    )


def nist_fields(report: Report) -> Iterator[tuple[str, str]]:
    """Each field, and what this window says to it."""
    f, w = report.figures, report.window
    kinds = {t.mechanism for t in report.tenants}
    stands = f.standing != "not-established"
    conforming = ", for the answers that conform" if f.standing == "if-conforming" else ""
    yield (
        "Unit of privacy",
        (
            f"{accounting.UNIT}. A document that fills several positions is several units, whose losses add up."
        ),
    )
    yield (
        "Neighbour relation",
        f"{accounting.ADJACENCY}; the number of positions is fixed (bounded differential privacy)",
    )
    eps = "not computed" if f.eps is None else "none (unbounded)" if f.eps == "inf" else f.eps
    if f.standing == "not-established":
        eps = "not established"
    yield (
        "Epsilon (ε)",
        f"{eps}{conforming}; for {words.accounts(f.k_max)} with {f.n:,} queries each in one window",
    )
    yield "Delta (δ)", f.delta if "noise" in kinds else "0: the closed forms have none"
    yield "Mechanism", "; ".join(_mechanisms(report))
    yield (
        "Sensitivity",
        "one document moves one score by no more than the whole lattice; scores are clamped inside the proof",
    )
    yield (
        "Composition",
        (
            "adaptive, over all queries of a coalition"
            + (f"; the bound that counts: {f.by}" if f.by else "")
            + (
                f"; {f.cumulative.windows} windows together: ε {f.cumulative.eps}, and {f.cumulative.condition}"
                if f.cumulative
                else "; one window only"
            )
        ),
    )
    yield (
        "Query model",
        f"interactive: each account asks up to {f.n:,} questions, each answered with up to"
        f" {_longest(report):,} passages",
    )
    yield (
        "Trust model",
        (
            "central: the provider holds documents and seed. That it used the promised randomness is "
            + (
                "proved, not trusted"
                if f.standing == "proved"
                else "not established by this verification"
                if f.standing == "not-established"
                else "proved for the records that were drawn"
            )
        ),
    )
    yield (
        "Correctness of the implementation",
        (
            f"integer arithmetic and a published noise table; proofs: {f.proofs}; keys: {f.setup}; query"
            f" vectors: {f.a1}; document vectors: {f.d1}"
        ),
    )
    yield (
        "Utility and bias",
        (
            ("measured on public collections (above)" if stands else "not established")
            + ". Noise and samples treat all positions alike; whose"
            " questions suffer more was not measured"
        ),
    )
    yield (
        "Side channels",
        (
            "time and size of answers, what the model writes, counts and times of honest accounts: outside"
            " the figures. Noise is drawn in fixed work before the question is known"
        ),
    )
    yield "Security and access control", "the provider's own; nothing of it is part of this verification"
    yield (
        "Data collection exposure",
        (
            "the provider holds the documents in the clear; how it came by them and who else has them is outside. "
            + COVERS.partition(". ")[0]
            + "."
        ),
    )
    yield (
        "Data held after the window",
        f"the provider deletes seed and private inputs after {_date(w.delete_after)}, by its policy",
    )


def _longest(report: Report) -> int:
    return max((t.longest for t in report.tenants), default=report.window.top_k)


def _date(milliseconds: int) -> str:
    from rag_audit._internal.words import day

    return day(milliseconds)


def _mechanisms(report: Report) -> Iterator[str]:
    """What protects the tenants, those alike together."""
    groups: dict[str, list[str]] = {}
    for t in report.tenants:
        how = clip(t.words, 200)
        if t.mechanism == "noise":
            how += (
                f" (rounded discrete Gaussian DGS-1, gains {','.join(map(str, t.gains))}, lattice {t.lattice:,}"
                + (f", σ/Δ {t.sigma_over_delta})" if t.sigma_over_delta is not None else ")")
            )
        if t.keep is not None:
            how += f", {words.share_text(float(t.keep))} of positions kept"
        if t.chance is not None:
            how += f", each position listed by chance with {words.share_text(float(t.chance))} a query"
        groups.setdefault(how, []).append(t.tenant)
    for how, tenants in [*groups.items()][:12]:
        yield f"{words.some(tenants)}: {how}"
    if len(groups) > 12:
        yield f"and {len(groups) - 12:,} more"


def again(report: Report) -> Html:
    """How anybody repeats the verification: the files by their digests, and the command."""
    filing, w = report.filing, report.window
    command = " ".join(filing.command) or "rag-audit verify window.json --trust trust.toml"
    trust = next((i.sha256 for i in filing.inputs if i.role == "trust"), None)
    rows: list[list[Child]] = [
        [i.role, clip(i.name, 120), tag("code", i.sha256) if i.sha256 else "not a file"]
        for i in filing.inputs[:MOST_FILES]
    ]
    left = len(filing.inputs) - MOST_FILES
    if filing.receipts.files:
        rows.append(
            [
                "receipts",
                counted(filing.receipts.files, "file"),
                tag("code", filing.receipts.sha256) if filing.receipts.sha256 else "not files",
            ]
        )
    rows += [
        ["opening", "entry 0 of the ledger", tag("code", w.opening)],
        ["root", f"tree of {counted(w.entries, 'entry', 'entries')}", tag("code", w.root)],
        ["policy", "C_policy", tag("code", w.policy)],
    ]
    return tag(
        "section",
        tag("h2", "How to check it again"),
        tag(
            "p",
            "Take the files below, compare their SHA-256 digests (",
            tag("code", "sha256sum"),
            f"), and run this command of rag-audit {filing.version}. It needs no network, and must end with"
            f" exit code {report.exit_code}.",
        ),
        tag("pre", tag("code", clip(command, 4000)), tabindex="0", role="region", aria_label="command"),
        tag(
            "p",
            "The verdict is only as good as the trust file, whose fingerprint is ",
            tag("code", trust),
            ". Ask for it on another way than this page.",
        )
        if trust
        else None,
        charts.table("Files and digests", ["what", "name", "SHA-256"], rows, class_="values wide"),
        tag("p", f"{counted(left, 'further file')} in the report as JSON.") if left > 0 else None,
        tag("p", "The verdict line, for programs: ", tag("code", clip(report.line, 2000))),
        _notes(report),
        id="again",
    )


def _notes(report: Report) -> Html | None:
    if not report.notes:
        return None
    return join(
        tag("h3", "Notes"), tag("ul", [tag("li", clip(n, 400)) for n in report.notes[:20]], class_="small")
    )
