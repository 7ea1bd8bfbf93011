"""A provider's file takes no role of the verifier's: the page's roles for the public folder of every vector, by
Node."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rag_audit
from rag_audit._internal.node import find_node
from rag_audit.account.packing import pack_receipts
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from tests.frontend.public import CASES, ROOT, Case, files_below, public_folder, with_forged_roles
from tests.simulate.cases import expected, run

ROLES_JS = Path(rag_audit.__file__).parent / "report" / "browser" / "frontend" / "roles.js"
EXAMPLES = ROOT / "docs" / "examples"
OWN_ROLES = ("trust", "receipt", "previous", "challenge", "attacks")


class Dropped(NamedTuple):
    """A file that is dropped on an area of the page."""

    area: str
    source: Path
    folder: str = ""
    chosen: str | None = None
    """the role that a person chooses in the table"""
    role: str | None = None
    """a role that the file has although nothing gave it that role"""


class Assigned(NamedTuple):
    """What the page makes of files."""

    roles: list[dict[str, str]]
    missing: str
    options: list[str] | None
    placed: list[dict[str, str]] | None

    def sources(self) -> list[tuple[str, str]]:
        """Each file that the command gets: its place, and where it came from."""
        assert self.placed is not None
        return [(file["path"], file["source"]) for file in self.placed]

    def role_of(self, files: Sequence[Dropped], name: str) -> tuple[str, str]:
        """Role and reason of the only file of that name."""
        [result] = [r for r, f in zip(self.roles, files, strict=True) if f.source.name == name]
        return result["role"], result["why"]


def assigned(cases: Iterable[Sequence[Dropped]]) -> list[Assigned]:
    """The roles of each list of files, in one process of Node."""
    requested = [
        {
            "files": [
                {
                    "area": f.area, "folder": f.folder, "name": f.source.name, "source": str(f.source),
                    **({} if f.chosen is None else {"chosen": f.chosen}),
                    **({} if f.role is None else {"role": f.role}),
                }
                for f in files
            ],
            "options": {},
        }
        for files in cases
    ]  # fmt: skip
    done = subprocess.run(
        [find_node().node, str(Path(__file__).with_name("roles.mjs")), str(ROLES_JS)],
        input=json.dumps(requested).encode(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return [Assigned(**answer) for answer in json.loads(done.stdout)]


def dropped_folder(area: str, folder: Path) -> list[Dropped]:
    """Every file of a folder, as a browser names it when the folder is dropped."""
    above = folder.parent
    return [
        Dropped(area, path, f"{path.parent.relative_to(above).as_posix()}/") for path in files_below(folder)
    ]


def words_of(options: Sequence[str]) -> list[tuple[str, str]]:
    """The options of the command that name files, as pairs."""
    pairs = list(itertools.pairwise(options))
    named = ("--trust", "--receipts", "--previous", "--challenge", "--attacks")
    return [(word, after) for word, after in pairs if word in named]


def verdict_of(created: Assigned, folder: Path) -> dict[str, Any]:
    """The command's outcome for the files where the page puts them."""
    for place, source in created.sources():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / place)
    assert created.options is not None
    words = words_of(created.options)
    of = {
        name: [after for word, after in words if word == f"--{name}"]
        for name in ("receipts", "previous", "challenge")
    }
    [trust] = [after for word, after in words if word == "--trust"]
    case = {
        "window": created.options[1],
        "trust": trust,
        "options": {},
        "receipts": of["receipts"],
        "previous": of["previous"],
        "challenges": of["challenge"],
    }
    result, _ = expected(run(case, folder))
    return result


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The public folder of each vector, by the vector's name."""
    folders = {}
    for path in CASES:
        folders[path.name] = tmp_path_factory.mktemp("published") / "public"
        public_folder(Case.of(path), folders[path.name])
    return folders


def test_the_public_folder_of_every_vector_gives_the_window_and_nothing_of_the_verifier_s(
    public: dict[str, Path],
) -> None:
    """The command gets the provider's window with its parts, and the verifier's own files in their roles, all of
    them."""
    cases = [Case.of(path) for path in CASES]
    assert len(cases) > 200
    drops = [
        [*dropped_folder("provider", public[case.folder.name]), *(Dropped("own", p) for p in case.own())]
        for case in cases
    ]
    for case, files, result in zip(cases, drops, assigned(drops), strict=True):
        name = case.folder.name
        assert result.missing == "", name
        folder = public[name]
        siblings = [p.name for p in case.named("siblings")]
        # The provider's files: the window and its parts, and each other file is ignored with a reason.
        for file, given in zip(files, result.roles, strict=True):
            assert given["why"], name
            if file.area == "provider":
                role = {"window.json": "window"}.get(file.source.name, "none")
                assert given["role"] == ("part" if file.source.name in siblings else role), (name, file)
        from_provider = {
            place: source for place, source in result.sources() if Path(source).is_relative_to(folder)
        }
        assert from_provider == {f"window/{n}": str(folder / n) for n in ("window.json", *siblings)}, name
        # The verifier's files: all of them, each in its role.
        own = [(place.split("/")[0].split("-")[0], source) for place, source in result.sources()
               if source not in from_provider.values()]  # fmt: skip
        wanted = [("trust", str(case.trust))]
        for role, of in (("receipts", "receipts"), ("previous", "previous"), ("challenge", "challenges")):
            wanted += [(role, str(p)) for p in case.named(of)]
        assert own == wanted, name


FORGED = [
    Case.of(path)
    for path in CASES
    if path.name in ("honest", "draw-of-the-provider-s-choice", "sampled", "of-two-draws-the-one-it-likes",
                     "sampled-by-own-draw", "siblings", "a-receipt-handed-in-by-another-account")
]  # fmt: skip


@pytest.mark.parametrize("case", FORGED, ids=lambda case: case.folder.name)
def test_a_provider_s_folder_full_of_a_verifier_s_files_changes_no_outcome(
    case: Case, tmp_path: Path
) -> None:
    """The folder has a trust file, challenges, receipts and attack results; the outcome is the command's without
    them."""
    with_forged_roles(case, tmp_path / "public")
    files = [*dropped_folder("provider", tmp_path / "public"), *(Dropped("own", p) for p in case.own())]
    [result] = assigned([files])
    assert result.missing == ""
    assert not {r["role"] for r, f in zip(result.roles, files, strict=True) if f.area == "provider"} & {
        *OWN_ROLES
    }
    assert verdict_of(result, tmp_path / "command") == case.stated["expect"]


def test_a_published_draw_is_not_the_verifier_s_own(tmp_path: Path) -> None:
    """The window that passed in the page and was UNPROVEN for the command: the provider chose the draw."""
    case = Case.of(ROOT / "vectors" / "windows" / "draw-of-the-provider-s-choice")
    public_folder(case, tmp_path / "public")
    assert len(list((tmp_path / "public" / "challenges").iterdir())) == 1
    own = [Dropped("own", path) for path in case.own()]
    files = [*dropped_folder("provider", tmp_path / "public"), *own]
    [result] = assigned([files])
    assert result.options is not None and "--challenge" not in result.options
    outcome = verdict_of(result, tmp_path / "command")
    assert (outcome["exit_code"], outcome["decides"]) == (3, "trust.challenge")
    # The same note counts once the verifier hands it in, by an act of its own.
    note = next((tmp_path / "public" / "challenges").iterdir())
    [result] = assigned([[*files, Dropped("own", note)]])
    assert verdict_of(result, tmp_path / "handed in")["exit_code"] == 0


def test_a_trust_file_of_the_provider_s_is_none(tmp_path: Path) -> None:
    case = Case.of(ROOT / "vectors" / "windows" / "honest")
    files = [Dropped("provider", path) for path in with_forged_roles(case, tmp_path / "public")]
    [result] = assigned([files])
    assert result.missing == "The trust file is missing: drop yours in area 2." and result.options is None
    assert result.role_of(files, "trust.toml") == (
        "none",
        "Only your own trust file counts: drop it in area 2.",
    )
    assert result.role_of(files, "header.json")[0] == "none"


@pytest.mark.parametrize("role", OWN_ROLES)
def test_neither_a_choice_nor_a_wrong_role_makes_a_provider_s_file_the_verifier_s(
    role: str, tmp_path: Path
) -> None:
    """The table offers no such role, and a file of area 1 that had one all the same would stay out of the command."""
    case = Case.of(ROOT / "vectors" / "windows" / "sampled-by-own-draw")
    note = case.named("challenges")[0]
    base = [Dropped("provider", case.window), Dropped("own", case.trust)]
    chosen, forced = assigned(
        [
            [*base, Dropped("provider", note, chosen=role)],
            [*base, Dropped("provider", note, role=role)],
        ]
    )
    assert chosen.roles[2]["role"] == "none"
    for result in (chosen, forced):
        assert result.sources() == [
            (f"window/{case.window.name}", str(case.window)),
            ("trust/trust.toml", str(case.trust)),
        ]
        assert result.options is not None and [w for w, _ in words_of(result.options)] == ["--trust"]


def test_parts_lie_only_beside_files_of_their_own_area(tmp_path: Path) -> None:
    """A provider's parts never lie beside an earlier window that the verifier kept."""
    case = Case.of(ROOT / "vectors" / "windows" / "siblings")
    siblings = case.named("siblings")
    own = [Dropped("own", case.trust), Dropped("own", case.window)]
    files = [Dropped("provider", path) for path in (case.window, *siblings)]
    [result] = assigned([[*files, *own, Dropped("own", siblings[0])]])
    places = [place for place, _ in result.sources()]
    assert [p for p in places if p.startswith("previous-0/")] == [
        "previous-0/window.json",
        f"previous-0/{siblings[0].name}",
    ]
    assert len([p for p in places if p.startswith("window/")]) == 1 + len(siblings)


def test_a_published_folder_in_the_verifier_s_area_gives_an_earlier_window_alone(tmp_path: Path) -> None:
    """Whoever drops a provider's folder on the wrong area gets neither its draw nor its trust file nor its receipts."""
    case = Case.of(ROOT / "vectors" / "windows" / "draw-of-the-provider-s-choice")
    with_forged_roles(case, tmp_path / "service" / "public")
    (tmp_path / "service" / "trust.toml").write_bytes(case.trust.read_bytes())
    files = [
        *dropped_folder("own", tmp_path / "service"),
        Dropped("provider", case.window),
        Dropped("own", case.trust),
    ]
    [result] = assigned([files])
    given = {r["role"] for r, f in zip(result.roles, files, strict=True) if f.area == "own" and f.folder}
    assert given == {"previous", "none"}
    assert [f.source for r, f in zip(result.roles, files, strict=True) if r["role"] == "trust"] == [
        case.trust
    ]
    assert result.options is not None and {"--challenge", "--receipts"}.isdisjoint(result.options)
    outcome = verdict_of(result, tmp_path / "command")  # no window is an earlier one of itself
    assert (outcome["exit_code"], outcome["decides"]) == (2, "header.chain")


def test_each_of_the_verifier_s_files_gets_its_role_or_a_reason(tmp_path: Path) -> None:
    """Files of a working folder, dropped one by one."""
    case = Case.of(ROOT / "vectors" / "windows" / "sampled-by-own-draw")
    (tmp_path / "attacks.json").write_text('{"type": "attacks", "v": 1}')
    (tmp_path / "damaged.json").write_text('{"account": "law-1", "sig')
    (tmp_path / "letter.txt").write_text("Dear verifier,\n")
    (tmp_path / "receipt.bak").write_bytes((EXAMPLES / "receipts" / "law-1-1.json").read_bytes())
    digest = tmp_path / f"{'ab' * 32}.json"
    digest.write_bytes((EXAMPLES / "receipts" / "law-1-1.json").read_bytes())
    named = {
        case.trust: "trust", case.window: "previous", case.named("challenges")[0]: "challenge",
        EXAMPLES / "receipts" / "law-1-1.json": "receipt", digest: "receipt",
        tmp_path / "attacks.json": "attacks", tmp_path / "damaged.json": "receipt",
        EXAMPLES / "header.json": "none", EXAMPLES / "answer.json": "none", EXAMPLES / "refusal.json": "none",
        EXAMPLES / "request.json": "none", tmp_path / "letter.txt": "none",
    }  # fmt: skip
    files = [Dropped("own", path) for path in named]
    backup = Dropped("own", tmp_path / "receipt.bak", chosen="receipt")
    [result] = assigned([[Dropped("provider", case.window), *files, backup]])
    assert [r["role"] for r in result.roles[1:-1]] == list(named.values())
    # A name that the command would pass over in a folder is named by itself, so that no chosen receipt is lost.
    assert result.options is not None
    receipts = [after for word, after in words_of(result.options) if word == "--receipts"]
    assert "receipts" in receipts and [r for r in receipts if r.endswith("/receipt.bak")] == [
        "receipts-3/receipt.bak"
    ]
    assert ("--attacks", "attacks/attacks.json") in words_of(result.options)


def test_two_windows_or_two_trust_files_ask_for_a_choice(tmp_path: Path) -> None:
    case = Case.of(ROOT / "vectors" / "windows" / "honest")
    other = tmp_path / "window.json"
    other.write_bytes(case.window.read_bytes())
    own = Dropped("own", case.trust)
    windows = [Dropped("provider", case.window), Dropped("provider", other, chosen="none")]
    several, trusts, chosen = assigned(
        [
            [Dropped("provider", case.window), Dropped("provider", other), own],
            [Dropped("provider", case.window), own, own],
            [*windows, own],
        ]
    )
    assert several.missing.startswith("There are several windows in area 1") and several.options is None
    assert trusts.missing.startswith("There are several trust files in area 2") and trusts.options is None
    assert chosen.missing == "" and chosen.sources()[0][1] == str(case.window)


def test_tiles_lie_in_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of the window from area 1, tiles of packed receipts from area 2."""
    monkeypatch.setattr("rag_audit.models.window_writer.TILED_BYTES", 1000)
    monkeypatch.setattr("rag_audit.models.window_writer.TILE_BYTES", 2000)
    window = WindowFile.load(EXAMPLES)
    (tmp_path / "public").mkdir()
    save_window(window, tmp_path / "public" / "window.json")
    pack, count = pack_receipts([EXAMPLES / "receipts"], tmp_path / "packed", "ab" * 32)
    assert count == 7
    files = [
        *dropped_folder("provider", tmp_path / "public"), *dropped_folder("own", tmp_path / "packed"),
        Dropped("own", EXAMPLES / "trust.toml"),
    ]  # fmt: skip
    [result] = assigned([files])
    places = dict(result.sources())
    for of, folder in (("window", tmp_path / "public"), ("receipts-0", tmp_path / "packed")):
        tiles = sorted((folder / "tiles").iterdir())
        assert tiles and all(places.get(f"{of}/tiles/{t.name}") == str(t) for t in tiles)
    assert result.options is not None and ("--receipts", f"receipts-0/{pack.name}") in words_of(
        result.options
    )


def test_the_scripts_of_the_page_can_be_read() -> None:
    """A quotation mark too many would leave the page without any function; only a browser would show it."""
    scripts = sorted((Path(rag_audit.__file__).parent / "report" / "browser" / "frontend").glob("*.js"))
    assert len(scripts) >= 3
    for script in scripts:
        done = subprocess.run(
            [find_node().node, "--check", script], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
