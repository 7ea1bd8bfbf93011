"""What is said of input that cannot be read: by the document's terms, with a next step, and never the library's
words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import ExitCode, RagAuditError, SchemaError, VersionError
from rag_audit.models.models import Model
from rag_audit.models.records import parse_entry
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import verify_window
from tests.campaign import verdicts
from tests.simulate.cases import FOLDER, run

UNREADABLE = sorted(
    path.parent.name
    for path in FOLDER.glob("*/case.json")
    if json.loads(path.read_text())["expect"]["verdict"] is None
)
MUTATIONS = 150


def _subclasses(of: type) -> Iterator[str]:
    for each in of.__subclasses__():
        yield each.__name__
        yield from _subclasses(each)


CLASSES = re.compile(
    r"\b(" + "|".join({*_subclasses(RagAuditError), *(n for n in _subclasses(Model) if re.search("[a-z][A-Z]", n)),
                       "NoneType", "ValidationError", "ValueError", "RagAuditError"}) + r")\b"
)  # fmt: skip
LIBRARY = re.compile(
    r"Input should|Field required|Extra inputs|String should|valid (integer|string|dictionary|list)|Value error"
    r"|<class|pydantic|Traceback"
)


def faults(error: RagAuditError) -> list[str]:
    """What is wrong with a message to a verifier."""
    value, text = error.as_json(), error.diagnostics()
    said = {name: str(value.get(name, "")) for name in ("message", "expected", "hint")}
    wrong = [f"a class: {CLASSES.search(text)}"] if CLASSES.search(text) else []
    wrong += [f"a library's text: {t!r}" for t in said.values() if LIBRARY.search(t)]
    wrong += ["no next step"] if not said["hint"] else []
    wrong += (
        ["expected is what was found"] if said["expected"] and said["expected"] == value.get("actual") else []
    )
    return wrong


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_window_is_explained(name: str) -> None:
    result = run(json.loads((FOLDER / name / "case.json").read_text()), FOLDER / name)
    assert isinstance(result, RagAuditError) and result.exit_code is ExitCode.MALFORMED
    assert faults(result) == []


def test_there_are_unreadable_windows() -> None:
    assert len(UNREADABLE) == 26


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> verdicts.Campaign:
    return verdicts.Campaign(tmp_path_factory.mktemp("messages"))


def test_mutated_files_are_explained(campaign: verdicts.Campaign) -> None:
    """Of each mutation that is not judged the error, and of each that is judged the checks that could not be
    decided."""
    explained, wrong = 0, {}
    for number in range(MUTATIONS):
        draw = verdicts.Mutator(f"messages/{number}")
        kind = draw.pick("window", "text", "trust", "trust", "note")
        subject = campaign.subjects[draw.pick("few", "few", "sampling", "sampled-by-own-draw")]
        try:
            verdict = campaign.verify(getattr(campaign, f"_{kind}")(subject, draw))
        except RagAuditError as exc:
            explained += 1
            result = faults(exc)
        else:
            result = [
                f"{c.id}: {c.expected} / {c.actual}"
                for c in verdict.checks
                if c.status.value != "pass"
                and (
                    c.expected == c.actual
                    or CLASSES.search(f"{c.expected} {c.actual}")
                    or LIBRARY.search(c.expected)
                )
            ]
        if result:
            wrong[f"messages/{number} ({kind})"] = result
    assert wrong == {} and explained > MUTATIONS // 3


MISSING = {
    "trust.toml": ("trust file not found: trust.toml", "create one with `rag-audit verifier trust new`"),
    "window.json": ("window file not found: window.json", "public folder"),
    "challenge.txt": ("challenge not found: challenge.txt", "rag-audit verifier challenge"),
    "attacks.json": ("attacks file not found: attacks.json", "--attacks"),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_file_is_named_for_what_it_is(name: str, tmp_path: Path) -> None:
    given: dict[str, Path] = {
        "window.json": FOLDER / "few/window.json",
        "trust.toml": FOLDER / "honest/trust.toml",
    }
    given[name] = tmp_path / name
    with pytest.raises(RagAuditError) as caught:
        verify_window(
            given["window.json"],
            trust=given["trust.toml"],
            challenges=[given[n] for n in ("challenge.txt",) if n in given],
            attacks=given.get("attacks.json"),
        )
    message, step = MISSING[name]
    message = message.replace(name, str(tmp_path / name))
    assert caught.value.message == message and step in str(caught.value.hint)
    assert caught.value.diagnostics() == f"{message} ({caught.value.hint})"


NEAR = {
    "a requirement": ("[require]", '[require]\nmax_epsilom = "1"', "did you mean max_epsilon"),
    "a section": ("[pins]", '[[verifiers]]\nname = "x"\n\n[pins]', "did you mean verifier"),
    "a pin": ("[pins]", '[pins]\nnoise_tabel = "x"', "did you mean noise_table"),
    "a witness's key": ('vkey = "w1', 'vkeys = "w2"\nvkey = "w1', "did you mean vkey"),
}


@pytest.mark.parametrize("name", NEAR)
def test_an_unknown_field_has_its_nearest_names(name: str) -> None:
    old, new, hint = NEAR[name]
    text = (FOLDER / "honest/trust.toml").read_text()
    assert old in text
    with pytest.raises(SchemaError) as caught:
        Trust.from_toml(text.replace(old, new, 1).encode(), source="trust.toml")
    assert hint in str(caught.value.hint) and "a field of this format: " in str(caught.value.expected)


def test_places_and_kinds_are_the_documents_own() -> None:
    entry = json.loads((FOLDER / "few/window.json").read_text())["entries"][2]
    for change, expected in (
        ({"seq": "2"}, "an integer"),
        ({"seq": 0}, "at least 1"),
        ({"hq": "x"}, "64 lowercase hexadecimal digits"),
        ({"proof": 5}, "a text"),
        ({"account": ""}, "at most 128 letters, digits and ._@:-, the first a letter or digit"),
    ):
        with pytest.raises(SchemaError) as caught:
            parse_entry({**entry, **change}, field="entries[2]")
        (name,) = change
        assert (caught.value.field, caught.value.expected) == (f"entries[2].{name}", expected)
    with pytest.raises(SchemaError) as caught:
        WindowFile.parse({"entries": {}}, field="window.json")
    assert caught.value.message == "the window file is not well-formed"


SAME: list[tuple[Any, Any]] = [
    (1, "1"),
    ("[null]", [None]),
    ("a" * 300 + "x", "a" * 300 + "y"),
    ("same", "same"),
    (["1"], "['1']"),
    ("a" * 500, "a" * 501),
]


@pytest.mark.parametrize(("expected", "actual"), SAME)
def test_expected_and_found_are_never_one_text(expected: Any, actual: Any) -> None:
    error = VersionError("the version is unknown", field="x", expected=expected, actual=actual)
    value = error.as_json()
    assert value["expected"] != value["actual"]
    assert len(set(re.findall(r"^  (?:expected|actual): (.*)$", error.diagnostics(), re.MULTILINE))) == 2


def test_what_is_no_receipt_is_named_without_its_folder(tmp_path: Path) -> None:
    """A report is read elsewhere, and has the last names of paths alone."""
    (tmp_path / "none.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    for name in ("none.json", "list.json"):
        verdict = verify_window(
            FOLDER / "few/window.json", trust=FOLDER / "honest/trust.toml", receipts=[tmp_path / name]
        )
        (check,) = (c for c in verdict.checks if c.id == "receipt.accepted")
        assert name in check.actual and str(tmp_path) not in check.actual
