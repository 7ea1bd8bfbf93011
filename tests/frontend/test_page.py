"""The page in real Chromium: the command's outcomes and words on the documented example and on every vector."""

from __future__ import annotations

import base64
import http.server
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.browser.page import make_page
from tests.browser.chromium import Chromium, chromium, find_chromium
from tests.endpoint import serving
from tests.frontend.public import CASES, ROOT, Case, files_below, public_folder, with_forged_roles
from tests.window.forge import Forge
from tests.window.simulator import finished_window
from tests.window.test_checks import lied_about_positions

EXAMPLES = ROOT / "docs" / "examples"
LIMIT_S = 600.0
BASE_INSTALL = """
import sys
sys.modules.update(wordllama=None, tokenizers=None)
import numpy
from rag_audit.cli import main
from rag_audit.errors import SetupError
def unpackbits(_):
    raise SetupError("the page has no numpy, and its replacement lacks unpackbits")
numpy.unpackbits = unpackbits
main()
"""
"""The command without what the page lacks: the extras that embed, and a function that embedders need of numpy."""

OF_THE_EMBEDDER = ("proof.query_embedding", "receipt.disclosed")
"""Checks of disclosed questions, which neither makes without the embedder."""

pytestmark = pytest.mark.page
SAMPLE = (
    "honest",
    "draw-of-the-provider-s-choice",
    "opening-without-quorum",
    "record-without-proof",
    "pooled-listing-third",
    "pooled-set-forked",
)
"""The windows that `make test-page` drops; `make test-full` drops them all."""


NOW = re.compile(r"(Verified|made at) [0-9-]+ [0-9:.]+ UTC")


class Outcome(NamedTuple):
    """How a verification ended: exit code, what is printed, and the report as JSON; without the time of
    verification."""

    exit_code: int
    printed: str
    report: Any

    @classmethod
    def of(cls, exit_code: int, printed: str, report: str | None) -> Outcome:
        if report is not None:
            now = json.loads(report)["filing"]["verified_at"]
            report = NOW.sub(r"\1 now", report.replace(str(now), "0"))
        # A time may stand across the end of a line.
        printed = NOW.sub(r"\1 now", " ".join(printed.split()))
        return cls(exit_code, printed, None if report is None else json.loads(report))


class Frontend:
    """The page as a reader uses it."""

    def __init__(self, browser: Chromium, page: Path) -> None:
        self.browser = browser
        browser.open(page, width=1280)

    def drop(self, provider: list[Path], own: list[Path]) -> None:
        """Choose files in each area."""
        for area, files in (("provider", provider), ("own", own)):
            if files:
                self._drop(f"{area}-files", files, len(files), area)

    def drop_folder(self, folder: Path, area: str) -> None:
        """Choose a folder in an area."""
        self._drop(f"{area}-folder", [folder], len(files_below(folder)), area)

    def _drop(self, field: str, files: list[Path], more: int, area: str) -> None:
        root = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        node = self.browser.call("DOM.querySelector", nodeId=root, selector=f"#{field}")["nodeId"]
        count = f"document.querySelectorAll('#{area}-list tbody tr').length"
        rows = self.value(count)
        self.browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(file.resolve()) for file in files])
        self.until(f"{count} === {rows + more}")

    def table(self, area: str) -> dict[str, tuple[str, str]]:
        """For each file of an area, by its path, the role that its row shows and the reason."""
        rows = self.value(
            f"[...document.querySelectorAll('#{area}-list tbody tr')].map((row) => [row.cells[0].textContent, "
            "row.querySelector('select').value, row.cells[3].textContent])"
        )
        return {path: (role, why) for path, role, why in rows}

    def value(self, expression: str) -> Any:
        return self.browser.value(expression)

    def until(self, condition: str) -> None:
        end = time.monotonic() + LIMIT_S
        while not self.value(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.05)

    def verify(self) -> Outcome:
        """Press the button and wait."""
        assert self.value("!document.getElementById('verify').disabled"), self.value(
            "document.getElementById('readiness').textContent"
        )
        self.value(
            "document.getElementById('result').hidden = true; document.getElementById('verify').click()"
        )
        self.until("!document.getElementById('result').hidden")
        code = self.value("document.getElementById('result').dataset.exitCode")
        saved = "(async () => {{ const a = document.querySelector('#save a[download=\"{}\"]'); return a ? (await saved(a)) : null; }})()"
        report, html = (self.value(saved.format(name)) for name in ("report.json", "report.html"))
        assert (report is None) == (html is None) and (html is None or html.startswith("<!doctype html>"))
        return Outcome.of(int(code), self.value("document.getElementById('report').textContent"), report)

    def command(self, folder: Path) -> Outcome:
        """What the command says of the same files in the same places."""
        encoded = "laid().files.map(({path, bytes}) => [path, btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''))])"
        for path, content in self.value(encoded):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(base64.b64decode(content))
        words = self.value("laid().options")
        done = subprocess.run(
            [sys.executable, "-c", BASE_INSTALL, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        report = folder / "report.json"
        printed = "\n".join(part for part in (done.stdout, done.stderr) if part)
        return Outcome.of(done.returncode, printed, report.read_text() if report.exists() else None)

    def clear(self) -> None:
        self.value("document.getElementById('clear').click()")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "verify.html"
    path.write_bytes(make_page())
    return path


@pytest.fixture(scope="module")
def frontend(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Frontend]:
    if find_chromium() is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield Frontend(browser, page)


def test_the_documented_example_passes_with_the_command_s_words(frontend: Frontend, tmp_path: Path) -> None:
    frontend.clear()
    receipts = sorted((EXAMPLES / "receipts").iterdir())
    frontend.drop([EXAMPLES / "window.json"], [EXAMPLES / "trust.toml", *receipts])
    assert frontend.value("document.getElementById('readiness').textContent").startswith("Ready: 7 receipts")
    result = frontend.verify()
    assert result == frontend.command(tmp_path)
    assert result.exit_code == 0 and result.printed.startswith("PASS eps_audit=12.39 ")
    assert result.report["outcome"] == "PASS" and len(result.report["checks"]) > 60


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[] if case.name in SAMPLE else [pytest.mark.full])
        for case in CASES
    ],
)
def test_a_vector_ends_as_with_the_command(frontend: Frontend, case: Path, tmp_path: Path) -> None:
    """Its whole public folder is dropped on the provider's area, and what the verifier has from elsewhere on the
    other."""
    described = Case.of(case)
    stated = described.stated
    public_folder(described, tmp_path / "public")
    frontend.clear()
    frontend.drop_folder(tmp_path / "public", "provider")
    frontend.drop([], described.own())
    options = stated["options"]
    limit = options.get("max_epsilon", "")
    frontend.value(f"document.getElementById('max-epsilon').value = {json.dumps(limit)}")
    unsafe = bool(options.get("allow_unsafe_setup"))
    frontend.value(f"document.getElementById('unsafe').checked = {json.dumps(unsafe)}")
    result = frontend.verify()
    assert result == frontend.command(tmp_path / "command")
    if stated["expect"].get("decides") not in OF_THE_EMBEDDER:
        assert result.exit_code == stated["expect"]["exit_code"]


def test_a_provider_s_draw_and_trust_file_take_no_role_of_the_verifier_s(
    frontend: Frontend, tmp_path: Path
) -> None:
    """A provider's folder with a trust file, challenges and receipts: the command's UNPROVEN, and a reason beside each
    file."""
    case = Case.of(ROOT / "vectors" / "windows" / "draw-of-the-provider-s-choice")
    with_forged_roles(case, tmp_path / "public")
    frontend.clear()
    frontend.drop_folder(tmp_path / "public", "provider")
    assert (
        frontend.value("document.getElementById('readiness').textContent")
        == "The trust file is missing: drop yours in area 2."
    )
    assert frontend.value("document.getElementById('verify').disabled")
    shown = frontend.table("provider")
    assert shown.pop("public/window.json")[0] == "window"
    assert {role for role, _ in shown.values()} == {"none"} and all(why for _, why in shown.values())
    offered = frontend.value(
        "[...document.querySelectorAll('#provider-list option')].map((option) => option.value)"
    )
    assert {*offered} == {"window", "part", "none"}
    frontend.drop([], case.own())
    result = frontend.verify()
    assert result == frontend.command(tmp_path / "command")
    assert (result.exit_code, result.report["outcome"]) == (3, "UNPROVEN")
    said = frontend.value("document.getElementById('code').textContent")
    assert said.startswith("Exit code 3: ") and "the evidence for the window's figures is incomplete" in said


def test_nothing_that_is_dropped_beside_the_areas_is_taken(frontend: Frontend) -> None:
    frontend.clear()
    frontend.value(
        "(() => { const data = new DataTransfer(); data.items.add(new File(['{}'], 'window.json')); "
        "document.querySelector('h1').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true })); })()"
    )
    assert frontend.value("document.getElementById('readiness').textContent").startswith("No file was added")
    assert frontend.value("dropped.length") == 0


@pytest.mark.full
def test_proofs_of_several_records_end_as_with_the_command(frontend: Frontend, tmp_path: Path) -> None:
    """A window of pairs, and the same with other positions listed in one record of a pair."""
    created = finished_window(tmp_path / "made", batch=2, system="scan", table=None)
    require = {"allow_unsafe_setup": False, "query_embedding": "declared"}
    trust = created.service.trust_text(created.policy, batch=2, **require)
    forge = Forge(created)
    lied_about_positions(forge)
    (tmp_path / "sealed").mkdir()
    forged, held = forge.seal(tmp_path / "sealed")
    for name, file, receipts, outcome in (
        ("honest", created.file, created.receipts, (0, "PASS ")),
        ("forged", forged, held, (1, "FAIL proof.valid.")),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "window.json").write_bytes(jcs(file.dump()))
        (folder / "trust.toml").write_text(trust)
        frontend.clear()
        frontend.drop([folder / "window.json"], [folder / "trust.toml", *sorted(receipts.glob("*.json"))])
        result = frontend.verify()
        assert result == frontend.command(folder / "command")
        assert (result.exit_code, result.printed[: len(outcome[1])]) == outcome


@pytest.mark.full
def test_a_window_in_tiles_ends_as_with_the_command(
    frontend: Frontend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tiles lie in their folder for the command, wherever their reader had them."""
    monkeypatch.setattr("rag_audit.models.window_writer.TILED_BYTES", 1000)
    monkeypatch.setattr("rag_audit.models.window_writer.TILE_BYTES", 2000)
    save_window(WindowFile.load(EXAMPLES), tmp_path / "window.json")
    tiles = sorted((tmp_path / "tiles").iterdir())
    assert len(tiles) > 4
    frontend.clear()
    frontend.drop([tmp_path / "window.json", *tiles], [EXAMPLES / "trust.toml"])
    assert frontend.value("document.getElementById('readiness').textContent").endswith(
        "; 7 records have proofs."
    )
    result = frontend.verify()
    assert result == frontend.command(tmp_path / "command")
    assert result.exit_code == 3 and result.printed.startswith("UNMET receipt.independent")
    # One of them missing has the command's own name.
    frontend.clear()
    frontend.drop([tmp_path / "window.json", *tiles[1:]], [EXAMPLES / "trust.toml"])
    result = frontend.verify()
    assert result == frontend.command(tmp_path / "missing")
    assert result.exit_code == 2 and "tile" in result.printed


def test_what_is_too_large_is_said_before_anything_starts(frontend: Frontend, tmp_path: Path) -> None:
    window = json.loads((EXAMPLES / "window.json").read_text())
    window["policy"]["tenants"][0]["capacity"] = (1 << 20) + 1
    (tmp_path / "window.json").write_text(json.dumps(window))
    frontend.clear()
    frontend.drop([tmp_path / "window.json"], [EXAMPLES / "trust.toml"])
    said = frontend.value("document.getElementById('readiness').textContent")
    assert said.startswith("An index of 1,048,577 positions is too large for this page")
    assert frontend.value("document.getElementById('verify').disabled")


def test_names_from_files_are_never_markup(frontend: Frontend, tmp_path: Path) -> None:
    hostile = tmp_path / "<img src=x onerror=document.title='caught'>.json"
    hostile.write_text("{}")
    frontend.clear()
    frontend.drop([hostile], [hostile])
    for area in ("provider", "own"):
        assert "<img" in frontend.value(f"document.querySelector('#{area}-list td').textContent")
        assert frontend.value(f"document.querySelectorAll('#{area}-list img').length") == 0


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    heard: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}", heard


ATTEMPTS = {
    "fetch": "fetch('{url}/fetch').then(() => 'through', () => 'refused')",
    "image": "new Promise((d) => {{ const i = new Image(); i.onload = i.onerror = (e) => d(e.type === 'load' ? 'through' : 'refused'); i.src = '{url}/image'; }})",
    "script": "new Promise((d) => {{ const s = document.createElement('script'); s.onload = () => d('through'); s.onerror = () => d('refused'); s.src = '{url}/script'; document.body.append(s); }})",
    "frame": "new Promise((d) => {{ const f = document.createElement('iframe'); f.onload = () => setTimeout(() => d('refused'), 500); f.src = '{url}/frame'; document.body.append(f); }})",
    "beacon": "Promise.resolve(navigator.sendBeacon('{url}/beacon')).then(() => new Promise((d) => setTimeout(() => d('refused'), 500)))",
    "worker": "new Promise((d) => {{ const w = new Worker(URL.createObjectURL(new Blob([\"fetch('{url}/worker').then(() => postMessage('through'), () => postMessage('refused'))\"]))); w.onmessage = (e) => d(e.data); }})",
}


@pytest.mark.full
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_address_is_reached(frontend: Frontend, listener: tuple[str, list[str]], attempt: str) -> None:
    url, heard = listener
    assert frontend.value(ATTEMPTS[attempt].format(url=url)) == "refused"
    assert heard == []
