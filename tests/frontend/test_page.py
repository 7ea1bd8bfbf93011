"""The page in real Chromium: the command's outcomes and words on the documented example and on every vector."""

from __future__ import annotations

import http.server
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.models.manifest import ENCODER_ARTEFACT
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.browser.page import make_page
from tests.browser.chromium import chromium, find_chromium
from tests.embedders import small_bert
from tests.endpoint import serving
from tests.frontend.frontend import Frontend
from tests.frontend.public import CASES, ROOT, Case, public_folder, with_forged_roles
from tests.window import test_encoder_windows as encoders
from tests.window.forge import Forge
from tests.window.simulator import Finished, Service, finished_window
from tests.window.test_checks import lied_about_positions

EXAMPLES = ROOT / "docs" / "examples"
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


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A window with A1 `proved` for an integer encoder with random weights."""
    model = small_bert.write(tmp_path_factory.mktemp("model"), encoders.SHAPE)
    service = Service(tmp_path_factory.mktemp("encoded"), embedder="bert-int", model=model)
    return encoders.finished_window(service, encoders.opened(service, "w-1"))


def of_another_model(forge: Forge, folder: Path) -> None:
    """The pins of another model under the committed digest."""
    encoders.other_pins(forge, small_bert.write(folder / "other", encoders.SHAPE, seed=1))


def unchanged(forge: Forge, folder: Path) -> None:
    """The honest window."""


def falsely(change: Callable[[Forge], None]) -> Callable[[Forge, Path], None]:
    return lambda forge, folder: change(forge)


@pytest.mark.parametrize(
    ("change", "pinned", "starts", "check"),
    [
        pytest.param(unchanged, True, (0, "PASS "), "", id="honest"),
        pytest.param(unchanged, False, (3, "UNMET "), "trust.query_embedding", id="without pin"),
        pytest.param(falsely(encoders.renamed), True, (1, "FAIL "), "proof.embed.valid.law", id="false proof"),
        pytest.param(falsely(encoders.truncated), True, (2, "UNDECIDED "), "proof.embed.valid.law", id="truncated"),
        pytest.param(falsely(encoders.other_places), True, (1, "FAIL "), "proof.embed.valid.law", id="places"),
        pytest.param(of_another_model, True, (1, "FAIL "), "proof.embed.key.law", id="another model"),
    ],
)  # fmt: skip
def test_proofs_of_an_integer_encoder_end_as_with_the_command(
    change: Callable[[Forge, Path], None],
    pinned: bool,
    starts: tuple[int, str],
    check: str,
    frontend: Frontend,
    encoded: Finished,
    tmp_path: Path,
) -> None:
    trust = encoded.service.trust_text(encoded.policy, **encoders.require(encoded))
    if not pinned:
        trust = "\n".join(line for line in trust.splitlines() if not line.startswith(ENCODER_ARTEFACT))
    forge = Forge(encoded)
    change(forge, tmp_path)
    (tmp_path / "sealed").mkdir()
    file, receipts = forge.seal(tmp_path / "sealed")
    (tmp_path / "window.json").write_bytes(jcs(file.dump()))
    (tmp_path / "trust.toml").write_text(trust)
    frontend.clear()
    frontend.drop([tmp_path / "window.json"], [tmp_path / "trust.toml", *sorted(receipts.glob("*.json"))])
    result = frontend.verify()
    assert result == frontend.command(tmp_path / "command")
    assert (result.exit_code, result.printed[: len(starts[1])]) == starts
    not_passed = {found["id"] for found in result.report["checks"] if found["outcome"] != "pass"}
    honest = change is unchanged and pinned
    assert not not_passed if honest else check in not_passed
    assert ("query_embedding=proved " in result.printed) is honest


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
