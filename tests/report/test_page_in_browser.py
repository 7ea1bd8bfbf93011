"""The page as readers see it, in a real browser: wide, on a phone, on paper, in the dark, without scripts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from rag_audit.report.html.page import render
from rag_audit.report.model import Report
from tests.browser.axe import axe_source, violations
from tests.browser.chromium import Chromium, chromium, find_chromium
from tests.report.conftest import OUTCOMES
from tests.report.test_mistakes import POOLED, _pilot_of, report
from tests.report.test_page import HOSTILE, SECTIONS, _hostile, _listing

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        find_chromium() is None,
        reason="no Chromium to look at pages with: apt-get install chromium, or name one in RAG_AUDIT_CHROMIUM",
    ),
]
TWO, PILOT = "two mechanisms", "pilot with two mechanisms"
PAGES = (*OUTCOMES, "pooled-listing", TWO, PILOT, "German", f"German {PILOT}")
MAX_PRINTED = 7
"""Maximum sheets."""
MAX_SCREENS = {1280: (800, 4), 390: (844, 9)}
"""Height of a screen, and the maximum number of screens above the folds, by width."""
UNFOLDED = "document.querySelectorAll('details').forEach(fold => fold.open = true)"
ABOVE = "document.querySelector('main > details').getBoundingClientRect().top + scrollY"
"""The height of the page above its folds."""
BOXES = """
[...document.querySelectorAll('header, section, footer')].map(e => {
  const r = e.getBoundingClientRect();
  return {id: e.id || e.tagName, left: r.left, right: r.right, top: r.top, bottom: r.bottom}
})"""
OUTSIDE = """
[...document.querySelectorAll('main *, header *')].filter(e => {
  const r = e.getBoundingClientRect(), t = e.closest('svg');
  return r.width && (r.left < -0.5 || r.right > innerWidth + 0.5)
}).map(e => e.tagName + '.' + (e.className.baseVal ?? e.className) + ': ' + e.textContent.slice(0, 40))"""
OVERLAPS = """
[...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  return boxes.flatMap(([a, r], i) => boxes.slice(i + 1).filter(([b, s]) =>
    r.left < s.right - 1 && s.left < r.right - 1 && r.top < s.bottom - 2 && s.top < r.bottom - 2).map(([b]) => a + ' / '
    + b))
})"""


CONTRAST = """
(() => {
  const light = c => {
    const [r, g, b] = c.match(/[0-9.]+/g).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) **
    2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const ratio = c => (Math.max(light(c), paper) + 0.05) / (Math.min(light(c), paper) + 0.05);
  const worst = (what, property) => Math.min(...[...document.querySelectorAll(what)].map(e =>
  ratio(getComputedStyle(e)[property]))); return [worst('svg text', 'fill'), worst('svg .line, svg .axis, svg .rule',
  'stroke'), worst('svg .mark, svg .bar', 'fill')];
})()"""
"""The least contrasts in charts, which axe leaves out: of letters, of lines, of marks."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as result:
        yield result


@pytest.fixture(scope="module")
def pages(reports: dict[str, Report], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file for each outcome, and for mechanisms that the example does not have."""
    folder = tmp_path_factory.mktemp("pages")
    result = {}
    more = {
        "pooled-listing": _listing(reports["PASS"]),
        TWO: report(None, POOLED, POOLED),
        PILOT: report(_pilot_of(POOLED), POOLED, POOLED),
    }
    assert {t.mechanism for t in more[TWO].tenants} == {"pooled-listing", "sampling"}
    assert more[TWO].outcome == "PASS" and more[PILOT].vouching.pilot
    written = {name: render(shown) for name, shown in {**reports, **more}.items()}
    written |= {"German": render(reports["PASS"], "de"), f"German {PILOT}": render(more[PILOT], "de")}
    for name, markup in written.items():
        result[name] = folder / f"{name}.html"
        result[name].write_text(markup, encoding="utf-8")
    return result


def _complaints(browser: Chromium) -> list[Any]:
    """What the browser had to refuse or could not do."""
    return [
        e
        for e in browser.events
        if e["method"]
        in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Network.loadingFailed")
        or (
            e["method"] == "Network.requestWillBeSent"
            and not e["params"]["request"]["url"].startswith("file:")
        )
    ]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_sections_stand_in_order_inside_the_width(
    name: str, width: int, browser: Chromium, pages: dict[str, Path]
) -> None:
    browser.open(pages[name], width=width)
    browser.value(UNFOLDED)
    boxes = browser.value(BOXES)
    # A page of a window that is not established has no chart of privacy.
    left_out = {"test", "retrieval"} if name in ("FAIL", "UNDECIDED", "UNPROVEN") else set()
    expected = ["masthead", *(section for section in SECTIONS if section not in left_out), "FOOTER"]
    assert [b["id"] for b in boxes if b["id"] != "why"] == expected
    for above, below in itertools.pairwise(boxes):
        assert above["bottom"] <= below["top"] + 0.5, (above, below)
    for box in boxes:
        assert 0 <= box["left"] < box["right"] <= width and box["bottom"] - box["top"] > 20, box
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value(OUTSIDE) == [] and browser.value(OVERLAPS) == []
    assert _complaints(browser) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", MAX_SCREENS)
def test_what_an_officer_needs_fits_on_few_screens(
    name: str, width: int, browser: Chromium, pages: dict[str, Path]
) -> None:
    browser.open(pages[name], width=width)
    height, screens = MAX_SCREENS[width]
    assert height < browser.value(ABOVE) <= screens * height


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width, dark", [(1280, False), (1280, True), (390, False), (390, True)])
def test_axe_finds_no_violation(
    name: str, width: int, dark: bool, browser: Chromium, pages: dict[str, Path]
) -> None:
    source = axe_source()
    if source is None:
        pytest.skip("axe-core could not be installed from npm")
    browser.open(pages[name], width=width, dark=dark)
    assert violations(browser, source) == []
    browser.value(UNFOLDED)
    assert violations(browser, source) == []


@pytest.mark.parametrize("dark", [False, True])
def test_charts_can_be_told_from_paper(dark: bool, browser: Chromium, pages: dict[str, Path]) -> None:
    """WCAG 1.4.3 for letters, 1.4.11 for what is drawn."""
    browser.open(pages["PASS"], width=1280, dark=dark)
    browser.value(UNFOLDED)
    letters, lines, marks = browser.value(CONTRAST)
    assert letters >= 4.5 and lines >= 3 and marks >= 3


def test_axe_would_find_one(browser: Chromium, tmp_path: Path) -> None:
    source = axe_source()
    if source is None:
        pytest.skip("axe-core could not be installed from npm")
    (tmp_path / "bad.html").write_text(
        "<!doctype html><html lang=en><title>t</title><main><h1>a</h1><p"
        " style='color:#ccc;background:#fff'>pale</p><table>"
        "<tr><th>a<td>b</table><input><ul><li>a</ul><a href='#x'>x</a><svg role=img></svg></main>"
    )
    browser.open(tmp_path / "bad.html", width=1280)
    result = " ".join(violations(browser, source))
    assert "color-contrast" in result and "svg-img-alt" in result


@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_on_few_sheets(
    name: str, browser: Chromium, pages: dict[str, Path], tmp_path: Path
) -> None:
    browser.open(pages[name], width=1280, dark=True)
    browser.pdf(tmp_path / "page.pdf")
    printed = pypdfium2.PdfDocument((tmp_path / "page.pdf").read_bytes())
    assert 2 <= len(printed) <= MAX_PRINTED
    assert {(round(p.get_width()), round(p.get_height())) for p in printed} == {(595, 842)}
    text = " ".join(p.get_textpage().get_text_range() for p in printed)
    verdict, again = (
        ("Urteil", "So wiederholen Sie die Prüfung")
        if name.startswith("German")
        else ("Verdict", "How to repeat the verification")
    )
    assert verdict in text and again in text and "Show" not in text.split()


def test_light_and_dark_are_two_pictures(browser: Chromium, pages: dict[str, Path]) -> None:
    paper = []
    for dark in (False, True):
        browser.open(pages["PASS"], width=1280, dark=dark)
        paper.append(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert paper == ["rgb(255, 255, 255)", "rgb(21, 24, 27)"]


def _visible_rows(browser: Chromium) -> int:
    browser.call("DOM.enable")
    result = browser.call("DOM.performSearch", query="//section[@id='checks']//tbody/tr")
    nodes = browser.call(
        "DOM.getSearchResults", searchId=result["searchId"], fromIndex=0, toIndex=result["resultCount"]
    )
    return sum(_has_box(browser, node) for node in nodes["nodeIds"])


def _click(browser: Chromium, selector: str) -> None:
    """Click the middle of an element, as a reader does."""
    root = browser.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    node = browser.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
    browser.call("DOM.scrollIntoViewIfNeeded", nodeId=node)
    x0, y0, *_, x2, y2, _, _ = browser.call("DOM.getContentQuads", nodeId=node)["quads"][0]
    for kind in ("mousePressed", "mouseReleased"):
        browser.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=(x0 + x2) / 2,
            y=(y0 + y2) / 2,
            button="left",
            clickCount=1,
        )


def _has_box(browser: Chromium, node: int) -> bool:
    try:
        return browser.call("DOM.getBoxModel", nodeId=node)["model"]["height"] > 0
    except RuntimeError:  # it has none
        return False


def test_without_scripts_every_check_shows_and_the_choice_works(
    browser: Chromium, pages: dict[str, Path], reports: dict[str, Report]
) -> None:
    """By a click on what a reader sees, since no script may run."""
    browser.open(pages["FAIL"], width=1280, script=False)
    browser.call("DOM.enable")
    browser.call("DOM.getDocument", depth=-1)
    checks = reports["FAIL"].checks
    _click(browser, "#fold-every > summary")
    root = browser.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    fold = browser.call("DOM.querySelector", nodeId=root, selector="#fold-every")["nodeId"]
    assert "open" in browser.call("DOM.getAttributes", nodeId=fold)["attributes"]
    assert _visible_rows(browser) == len(checks)
    for choice, rows in (
        ("wrong", sum(c.outcome != "pass" for c in checks)),
        ("ledger", sum(c.id.startswith("ledger.") for c in checks)),
        ("all", len(checks)),
    ):
        _click(browser, f"#show-{choice}")
        assert _visible_rows(browser) == rows
    assert _complaints(browser) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_hostile_page_runs_nothing_and_stays_inside(
    width: int, browser: Chromium, reports: dict[str, Report], tmp_path: Path
) -> None:
    page = tmp_path / "hostile.html"
    page.write_text(render(_hostile(reports["FAIL"])), encoding="utf-8")
    browser.open(page, width=width)
    assert (
        browser.value("document.querySelectorAll('script, img, iframe, object, embed, link, form').length")
        == 0
    )
    assert HOSTILE in browser.value("document.body.textContent")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert _complaints(browser) == []


def test_the_policy_refuses_what_escaping_would_have_let_through(
    browser: Chromium, pages: dict[str, Path], tmp_path: Path
) -> None:
    """The second line of defence alone: markup is put into a page as if it had not been escaped."""
    page = tmp_path / "injected.html"
    bad = "<script>document.title='ran'</script><img src='https://example.org/x.png' onerror=\"document.title='ran'\">"
    page.write_text(
        pages["PASS"].read_text().replace("<main>", f"<main>{bad}<style>h1{{display:none}}</style>")
    )
    browser.open(page, width=1280)
    assert browser.value("document.title") != "ran"
    assert browser.value("getComputedStyle(document.querySelector('h1')).display") == "block"
    refused = [
        e
        for e in browser.events
        if e["method"] == "Log.entryAdded" and "Content Security Policy" in e["params"]["entry"]["text"]
    ]
    assert len(refused) >= 3
