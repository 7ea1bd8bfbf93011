"""Input that would cost more than it may is refused before it is parsed, by name."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from rag_audit._internal.canonical import count_values, jcs, parse_json, parse_toml, sha256
from rag_audit.errors import EncodingError, PolicyError, RagAuditError, SchemaError, SizeError, brief
from rag_audit.mechanisms.accounting import check_policy, policy_figures
from rag_audit.mechanisms.accounting.pmf import Mechanism
from rag_audit.mechanisms.accounting.values import decimal
from rag_audit.models import windowfile
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import MEDIA_TYPE, WindowFile

TOML: dict[str, tuple[str, type[RagAuditError]]] = {
    "a key of 100,000 parts": ("a" + ".a" * 100_000 + " = 1", SizeError),
    "a key of nine quoted parts": ('"a"' + ' . "a"' * 8 + " = 1", SizeError),
    "a table of 100,000 parts": ("[a" + ".a" * 100_000 + "]", SizeError),
    "arrays in arrays": ("a = " + "[" * 8_000, SizeError),
    "tables in tables": ("a = " + "{a=" * 2_000, SizeError),
    "an integer of 5,000 digits": ("a = " + "1" * 5_000, SizeError),
    "a hexadecimal integer of 5,000 digits": ("a = 0x" + "f" * 5_000, SizeError),
    "a long line": ("# " + "x" * 20_000, SizeError),
    "a string over several lines": ('a = """\nb = 1\n"""', EncodingError),
    "a literal string over several lines": ("a = '''\nb = 1\n'''", EncodingError),
    "a string that does not end": ('a = "b\nc = 1', EncodingError),
    "no month": ("a = 2026-99-01", EncodingError),
    "a digit of another script": ("a = ٣", EncodingError),
    "not UTF-8": ("a = '\udcff'", EncodingError),
    "more than its limit": ("a = 1\n" * 200_000, SizeError),
}


@pytest.mark.parametrize(("text", "error"), TOML.values(), ids=TOML.keys())
def test_toml_is_bounded_before_it_is_parsed(text: str, error: type[RagAuditError]) -> None:
    data = text.encode("utf-8", "surrogateescape")
    tracemalloc.start()
    try:
        with pytest.raises(RagAuditError) as caught:
            Trust.from_toml(data, source="trust.toml")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert type(caught.value) is error, caught.value
    assert caught.value.field is not None and caught.value.field.startswith("trust.toml")
    assert peak < 64 << 20  # Python's parser alone takes gigabytes for the first


def test_what_looks_deep_inside_strings_and_comments_is_not() -> None:
    text = '# [[[[[[[[[[ a.a.a.a.a.a.a.a.a.a """\na = "[[[[[[[[[[ \\" # a.a.a.a.a.a.a.a.a.a"\nb = \'{{{{{{{{{{ " \'\n'
    assert parse_toml(text.encode(), source="x", max_bytes=1_000) == {
        "a": '[[[[[[[[[[ " # a.a.a.a.a.a.a.a.a.a',
        "b": '{{{{{{{{{{ " ',
    }
    digits = 'a = "' + "1" * 5_000 + '"'
    assert len(parse_toml(digits.encode(), source="x", max_bytes=10_000)["a"]) == 5_000


JSON: dict[str, tuple[str, type[RagAuditError]]] = {
    "an integer of 5,000 digits": ("1" * 5_000, EncodingError),
    "arrays in arrays": ("[" * 100_000, EncodingError),
    "65 levels": ("[" * 66 + "]" * 66, EncodingError),
    "a digit of another script": ("٣", EncodingError),
    "an exponent": ("1e5", EncodingError),
}


@pytest.mark.parametrize(("text", "error"), JSON.values(), ids=JSON.keys())
def test_json_has_one_reading_and_an_end(text: str, error: type[RagAuditError]) -> None:
    with pytest.raises(error) as caught:
        parse_json(text, source="file")
    assert str(caught.value.field).startswith("file")


def test_a_wrong_value_is_named_by_its_place() -> None:
    with pytest.raises(EncodingError) as caught:
        jcs({"a": [1, {"b\n": 1.5}]})
    assert caught.value.field == "$.a[1].b\n" and "$.a[1].b\\n" in str(caught.value)


def test_json_values_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, values in (("1", 1), ("[]", 1), ("[1,[2],{}]", 5), ('{"a":{"b":[1,2]}}', 5)):
        assert count_values(text.encode()) >= values
    monkeypatch.setattr("rag_audit._internal.canonical.MAX_VALUES", 10)
    assert parse_json("[1,2,3,4,5,6,7,8]", source="file") == [1, 2, 3, 4, 5, 6, 7, 8]
    monkeypatch.setattr(
        "rag_audit._internal.canonical.json.loads", lambda *_, **__: pytest.fail("was parsed")
    )
    with pytest.raises(SizeError, match="too many JSON values"):
        parse_json("[[],[],[],[],[],[]]", source="file")


def folder_with(folder: Path, **siblings: object) -> Path:
    """A window folder whose parts lie beside it."""
    value: dict[str, object] = {"mediaType": MEDIA_TYPE}
    for key, part in siblings.items():
        data = jcs(part)
        name = f"{sha256(data).hex()}.json"
        (folder / name).write_bytes(data)
        value[key] = {"sibling": name}
    (folder / "window.json").write_bytes(jcs(value))
    return folder


def test_siblings_are_limited_together_before_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_with(tmp_path, entries=["x" * 300], roster=["y" * 300])
    monkeypatch.setattr(windowfile, "MAX_SIBLINGS_BYTES", 700)
    with pytest.raises(SchemaError):  # read, and then other parts are missing
        WindowFile.load(tmp_path)
    monkeypatch.setattr(windowfile, "MAX_SIBLINGS_BYTES", 500)
    monkeypatch.setattr(
        windowfile, "sha256", lambda _: pytest.fail("a sibling was read before all were weighed")
    )
    with pytest.raises(SizeError, match="the siblings are too large in total"):
        WindowFile.load(tmp_path)


def test_a_sibling_that_several_parts_name_counts_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_with(tmp_path, entries=["x" * 300], roster=["x" * 300])
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(windowfile, "MAX_SIBLINGS_BYTES", 500)
    with pytest.raises(SizeError, match="the siblings are too large in total"):
        WindowFile.load(tmp_path)


def test_siblings_values_are_counted_together_before_one_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_with(tmp_path, entries=[[]] * 30, roster=[{}] * 30)
    monkeypatch.setattr(windowfile, "MAX_SIBLINGS_VALUES", 100)
    loads = windowfile.parse_json

    def watched(data: bytes, *, source: str, **options: int) -> object:
        assert source == "window.json", "a sibling was parsed before all were counted"
        return loads(data, source=source, **options)

    monkeypatch.setattr(windowfile, "parse_json", watched)
    with pytest.raises(SizeError, match="JSON values"):
        WindowFile.load(tmp_path)


# Numbers.


@pytest.mark.parametrize(
    "written", ["٣", "1e-7٣", "１", "1_000", " 1", "1\n", "0x1", "1" * 500, "inf", "nan", ""]
)
def test_a_number_on_the_command_line_is_written_in_ascii_digits(written: str) -> None:
    with pytest.raises(PolicyError, match="not a decimal number"):
        decimal(written, "eps")


POLICY = {"gains": (1, 4), "lattice": 64, "n": 3, "k_max": 2, "calibration": "exact"}


def test_a_bound_beyond_floating_point_is_infinite() -> None:
    """eps_acc 100,000 is no promise at all, and no reason to end without a verdict."""
    mechanism = check_policy(**POLICY, eps_acc="100000", delta_acc="1e-7", delta_policy="1e-5")  # type: ignore[arg-type]
    figures = policy_figures(mechanism, n=3, eps_acc="100000", delta_acc="1e-7", k=2, delta="1e-5")
    bounds = {bound["name"]: bound for bound in figures["bounds"]["bounds"]}
    assert bounds["closed_form"]["eps"] == "inf" and not bounds["closed_form"]["valid"]
    assert figures["eps_audit_by"] == "exact" and float(figures["eps_audit"]) < 100


@pytest.mark.parametrize(
    "wrong",
    [
        {"eps_acc": "1e-999"},
        {"eps_acc": "1e-300"},
        {"eps_acc": "1e300"},
        {"delta_acc": "1e-320"},
        {"delta_acc": "1e-320", "calibration": "theorem-3.9"},
        {"delta_acc": "1e-999"},
        {"delta_policy": "1e-320"},
    ],
    ids=str,
)
def test_a_parameter_beyond_floating_point_is_refused_by_name(wrong: dict[str, str]) -> None:
    values = {**POLICY, "eps_acc": "14", "delta_acc": "1e-7", "delta_policy": "1e-5", **wrong}
    with pytest.raises(PolicyError) as caught:
        check_policy(**values)  # type: ignore[arg-type]
    assert caught.value.field in wrong or caught.value.field == "delta_policy"


def test_the_ends_of_the_region_have_figures() -> None:
    for eps in ("1e-9", "1e9"):
        for delta in ("1e-99", "0.5"):
            figures = policy_figures(
                Mechanism((1, 4), 64), n=1, eps_acc=eps, delta_acc="1e-100", k=1, delta=delta
            )
            assert float(figures["eps_audit"]) > 0


def test_a_value_for_an_error_is_cut_where_it_is_made() -> None:
    assert len(brief(["x" * 10_000] * 10_000)) < 5_000
    assert brief(10**5_000) == "an integer of 16610 bits"
    deep: list[object] = []
    for _ in range(1_000):
        deep = [deep]
    assert len(brief(deep)) < 100
