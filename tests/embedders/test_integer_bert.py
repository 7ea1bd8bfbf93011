"""The integer encoder: the native core against the reference in Python integers, value by value, and refused models."""

from __future__ import annotations

import importlib
import json
import math
import os
import shutil
import struct
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256, shake_256
from importlib.machinery import PathFinder
from math import floor, isqrt
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.cli.demo.embedder import choose
from rag_audit.commit.explore.collections import collection
from rag_audit.errors import EncodingError, RagAuditError, SetupError
from rag_audit.mechanisms.pooled_listing import PooledListing
from rag_audit.models.policy import Policy
from rag_audit.retrieval.embedders import (
    DEFAULT_EMBEDDER,
    NothingToEmbed,
    get_embedder,
    lexical,
    public_artefacts,
    published_constants,
    relevance_of,
)
from rag_audit.retrieval.embedders.integer_bert import installed, proved
from rag_audit.retrieval.embedders.integer_bert.embedder import IntegerBert, Rule, native_encoder
from rag_audit.retrieval.embedders.integer_bert.files import Files, load_files, load_scales
from rag_audit.retrieval.embedders.integer_bert.lexical import LexicalBert, lexical_table
from rag_audit.retrieval.embedders.integer_bert.published import (
    ARTEFACTS,
    FILE_ARTEFACTS,
    FILE_PINS,
    LEXICAL_ARTEFACTS,
    LEXICAL_MINILM,
    SCALES,
    norm_factor,
)
from rag_audit.retrieval.embedders.integer_bert.reference import Matrix, Reference, Rows
from rag_audit.retrieval.embedders.integer_bert.semantics import (
    DISTANCES,
    IntegerModel,
    OutOfRange,
    Scales,
    Shape,
    exp_table,
    gelu_table,
)
from rag_audit.retrieval.embedders.lexical import LexicalTable
from rag_audit.retrieval.embedders.quantise import published_scale
from tests.embedders import small_bert

TEXTS = ["red house", "The law of the court", "A drug dose for pain and fevers", "bluish", "red " * 40]
FOLDER = os.environ.get("RAG_AUDIT_MINILM") or None
"""The folder of the published files of all-MiniLM-L6-v2."""
PROVABLE = replace(small_bert.SHAPE, places=64)
"""The smallest shape with proofs."""

Named = list[tuple[int, str, bytes]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_bert.write(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def files(folder: Path) -> Files:
    return load_files(folder, small_bert.SCALES)


def packed(values: Rows) -> bytes:
    flat = [value for row in values for value in row]
    return struct.pack(f"<{len(flat)}h", *flat)


def reference_trace(reference: Reference, tokens: Sequence[int]) -> tuple[Named, tuple[int, str, int] | None]:
    named: Named = []
    try:
        reference.rows(tokens, lambda layer, part, values: named.append((layer, part, packed(values))))
    except OutOfRange as exc:
        return named, (exc.layer, exc.part, exc.value)
    return named, None


def random_model(shape: Shape, scales: Scales, seed: int = 0, shift: int = 6) -> IntegerModel:
    """An encoder of uniform entries in -2^(15 - shift)..; gains have 2^12 more."""
    parts = []
    for name, rows, columns in shape.parameters():
        stream = shake_256(f"{seed}/{name}".encode()).digest(2 * rows * columns)
        entries = np.frombuffer(stream, "<i2") >> shift
        gain = 1 << 12 if "gain" in name else 0
        parts.append((entries + gain).astype("<i2").tobytes())
    return IntegerModel(shape, scales, b"".join(parts))


def test_all_values_equal_those_of_the_reference(files: Files) -> None:
    reference, native = Reference(files.model), native_encoder(files.model)
    lists = [files.tokenizer.encode(text).ids[: files.model.shape.places] for text in TEXTS]
    lists.append([5])
    for tokens in lists:
        named, outside = reference_trace(reference, tokens)
        assert len(named) == 1 + 7 * files.model.shape.layers and outside is None
        assert native.trace(tokens) == (named, None)
    sums = [np.frombuffer(vector or b"", "<i4").tolist() for vector, _ in native.embed(lists, False)]
    assert sums == [reference.embed(tokens) for tokens in lists]
    first = [np.frombuffer(vector or b"", "<i4").tolist() for vector, _ in native.embed(lists, True)]
    assert first == [reference.rows(tokens)[0] for tokens in lists]


@pytest.mark.parametrize(
    "shape",
    [
        Shape(layers=1, width=1 * 3, heads=1, inner=5, vocabulary=4, places=2),  # odd sizes, one head
        Shape(layers=12, width=24, heads=12, inner=96, vocabulary=64, places=9),  # the layers of bge-small
        Shape(layers=1, width=32, heads=2, inner=16, vocabulary=9, places=300),  # several blocks of keys
    ],
)
def test_other_shapes_equal_the_reference(shape: Shape) -> None:
    model = random_model(shape, Scales(x=7, q=8, v=8, o=8, z=7, g=7), shift=5)
    tokens = [(7 * i * i + 3) % shape.vocabulary for i in range(shape.places)]
    assert native_encoder(model).trace(tokens) == reference_trace(Reference(model), tokens)


def test_the_configuration_of_bge_small_equals_the_reference() -> None:
    shape = Shape(layers=12, width=384, heads=12, inner=1536, vocabulary=32, places=4)
    model = random_model(shape, Scales(x=7, q=8, v=8, o=8, z=7, g=7))
    named, outside = reference_trace(Reference(model), [3, 31, 0, 17])
    assert outside is None and len(named) == 1 + 7 * 12
    assert native_encoder(model).trace([3, 31, 0, 17]) == (named, outside)


def changed(model: IntegerModel, change: Callable[[str, np.ndarray[Any, Any]], None]) -> IntegerModel:
    """The model with changed parameters."""
    weights, start = np.frombuffer(model.weights, "<i2").copy(), 0
    for name, rows, columns in model.shape.parameters():
        change(name, weights[start : start + rows * columns])
        start += rows * columns
    return replace(model, weights=weights.tobytes())


@pytest.mark.parametrize(
    ("layer", "part", "scales"),
    [
        (0, "x0", {"x": 11}),
        (1, "q", {"q": 11}),
        (1, "v", {"v": 11}),
        (1, "o", {"o": 11}),
        (1, "z", {"z": 11}),
    ],
)
def test_a_value_outside_its_range_is_named(files: Files, layer: int, part: str, scales: Any) -> None:
    model = replace(random_model(small_bert.SHAPE, small_bert.SCALES, shift=3),
                    scales=replace(Scales(x=7, q=7, v=7, o=7, z=7, g=7), **scales))  # fmt: skip
    tokens = [2, 5, 10, 3]
    named, outside = reference_trace(Reference(model), tokens)
    assert outside is not None and outside[:2] == (layer, part)
    assert not -2048 <= outside[2] <= 2047
    assert native_encoder(model).trace(tokens) == (named, outside)
    assert native_encoder(model).embed([tokens], False) == [(None, outside)]


def test_equal_components_and_distant_scores_are_named(files: Files) -> None:
    def constant(name: str, values: Any) -> None:
        if name in ("word", "place"):
            values[:] = 7

    def distant(name: str, values: Any) -> None:
        if name in ("1.q", "1.k"):
            values[:] = np.eye(16, dtype=np.int16).ravel() * 32767

    scales = Scales(x=7, q=4, v=4, o=7, z=7, g=7)
    for model, expected in (
        (changed(files.model, constant), (0, "variance")),
        (changed(replace(random_model(small_bert.SHAPE, scales, shift=1)), distant), (1, "distance")),
    ):
        named, outside = reference_trace(Reference(model), [2, 5, 10, 3])
        assert outside is not None and outside[:2] == expected
        if expected[1] == "distance":
            assert outside[2] >= DISTANCES
        assert native_encoder(model).trace([2, 5, 10, 3]) == (named, outside)


def test_the_packed_product_is_the_product() -> None:
    rows = [[3, -(1 << 15), 0], [-1, (1 << 15) - 1, 7]]
    assert Matrix(rows).product([-2048, 2047]) == [-2048 * 3 - 2047, 2048 * 32768 + 2047 * 32767, 2047 * 7]


def test_the_tables_are_the_functions() -> None:
    exp = struct.unpack(f"<{DISTANCES}h", exp_table())
    assert list(exp) == [round(2**12 * math.exp(-u / 32)) for u in range(DISTANCES)]
    for z_bits, g_bits in ((6, 6), (8, 8), (6, 4), (5, 8)):
        gelu = struct.unpack("<4096h", gelu_table(z_bits, g_bits))
        for z, entry in zip(range(-2048, 2048), gelu, strict=True):
            t = z / 2**z_bits
            value = t * 0.5 * math.erfc(-t / math.sqrt(2)) * 2**g_bits
            assert abs(entry - min(value, 2047)) <= 0.5 + 1e-9
    assert norm_factor("0.153") == 11712 and norm_factor("0.5") == 3584


def test_the_reference_imports_neither_native_code_nor_numpy() -> None:
    code = (
        "import sys; import rag_audit.retrieval.embedders.integer_bert.reference;"
        "assert 'rag_audit._native' not in sys.modules, 'native'; assert 'numpy' not in sys.modules, 'numpy'"
    )
    # The package's own `__init__` files import more: the two modules are executed without them.
    code = "import sys, types, pathlib\n" + "\n".join(
        f"m = types.ModuleType({name!r}); m.__path__ = [{str(path)!r}]; sys.modules[{name!r}] = m"
        for name, path in (
            ("rag_audit.retrieval", Path("rag_audit/retrieval").resolve()),
            ("rag_audit.retrieval.embedders", Path("rag_audit/retrieval/embedders").resolve()),
        )
    ) + "\n" + code  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr


def test_embedding_texts(folder: Path, files: Files) -> None:
    embedder = get_embedder("bert-int", folder=folder)
    assert embedder.tokenize("the red house") == [2, 11, 5, 10, 3]
    assert (
        embedder.embed_query("the red house").tolist()
        == embedder.embed_documents(["the red house"])[0].tolist()
    )
    many = embedder.embed_documents(TEXTS * 30)
    assert many.shape == (150, 16) and np.abs(many).max() <= 7
    assert (many[:5] == many[-5:]).all()  # a vector does not depend on its neighbours
    assert embedder.cut_documents(TEXTS) == 1
    long = embedder.tokenize("red " * 40)
    assert len(long) == 24 and long[0] == 2 and long[-1] == 3
    assert len(get_embedder("bert-int", folder=folder, query_tokens=5).tokenize("red " * 40)) == 5
    e = Reference(files.model).embed([2, 11, 5, 10, 3])
    w = math.isqrt(sum(v * v for v in e) << 16)
    expected = [(v > 0) - (v < 0) for v in e]
    expected = [s * min(7, (2 * abs(v) * 2389 + w) // (2 * w)) for s, v in zip(expected, e, strict=True)]
    assert embedder.embed_query("the red house").tolist() == expected


def test_refused_texts(folder: Path) -> None:
    embedder = get_embedder("bert-int", folder=folder)
    for text in ("", "  \n", "\u200b"):
        with pytest.raises(NothingToEmbed):
            embedder.embed_query(text)
        with pytest.raises(NothingToEmbed) as caught:
            embedder.embed_documents(["red", text], first=4)
        assert caught.value.field == "documents[5]"
    assert embedder.embed_query("red " * 250_000).shape == (16,)  # 10^6 characters
    for tokens in ([2, 20, 3], [2, -1, 3], [1] * 25):
        with pytest.raises(EncodingError) as refused:
            embedder.embed_tokens(tokens)
        assert refused.value.field == "query"
    with pytest.raises(NothingToEmbed):
        embedder.embed_tokens([])


def test_a_text_outside_the_ranges_is_refused_by_name(tmp_path: Path) -> None:
    place = small_bert.write(tmp_path / "m", scales=replace(small_bert.SCALES, x=11))
    embedder = get_embedder("bert-int", folder=place)
    with pytest.raises(OutOfRange) as caught:
        embedder.embed_query("red")
    assert caught.value.field == "query" and caught.value.expected == "layer 0, x0: -2048..2047"
    with pytest.raises(OutOfRange) as caught:
        embedder.embed_documents(["red"], first=3)
    assert caught.value.field == "documents[3]" and isinstance(caught.value, RagAuditError)


def _configuration(**changes: object) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        value = {**small_bert.configuration(), **changes}
        (place / "config.json").write_text(json.dumps({k: v for k, v in value.items() if v is not None}))

    return change


def _tensor(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def changed(place: Path) -> None:
        of = small_bert.tensors()
        of[name] = change(of[name])
        (place / "model.safetensors").write_bytes(small_bert.safetensors(of))

    return changed


def _cut(count: int) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        data = (place / "model.safetensors").read_bytes()
        (place / "model.safetensors").write_bytes(data[:count])

    return change


def _without(name: str) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        of = small_bert.tensors()
        of[name + ".other"] = of.pop(name)
        (place / "model.safetensors").write_bytes(small_bert.safetensors(of))

    return change


def _bfloat16(place: Path) -> None:
    of = {name: values.astype(np.float16) for name, values in small_bert.tensors().items()}
    (place / "model.safetensors").write_bytes(small_bert.safetensors(of, "BF16"))


def _tokenizer(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def changed(place: Path) -> None:
        value = json.loads(json.dumps(small_bert.TOKENIZER))
        change(value)
        (place / "tokenizer.json").write_text(json.dumps(value))

    return changed


def _module(kind: str) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        kinds = ["Transformer", "Pooling", kind]
        (place / "modules.json").write_text(json.dumps([{"type": f"s.models.{each}"} for each in kinds]))

    return change


QUERY = "encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (_configuration(model_type="roberta"), "config.json: model_type", "graph"),
        (_configuration(model_type=None), "config.json: model_type", "graph"),
        (_configuration(hidden_act="gelu_new"), "config.json: hidden_act", "graph"),
        (_configuration(position_embedding_type="relative_key"), "position_embedding_type", "graph"),
        (_configuration(layer_norm_eps=0.1), "layer_norm_eps", "graph"),
        (_configuration(num_hidden_layers=1), "model.safetensors", "does not describe"),
        (_configuration(num_hidden_layers=3), "model.safetensors", "lack"),
        (_configuration(num_attention_heads=3), "heads", "divide"),
        (_configuration(num_hidden_layers=1000), "layers", "not supported"),
        (_configuration(hidden_size="16"), "hidden_size", "size"),
        (_configuration(intermediate_size=31), "intermediate.dense", "shape"),
        (_configuration(vocab_size=21), "word_embeddings", "shape"),
        (lambda p: (p / "config.json").write_text("{"), "config.json", "JSON"),
        (lambda p: (p / "config.json").write_text("[" * 100_000), "config.json", "JSON"),
        (lambda p: (p / "config.json").unlink(), "config.json", "cannot be read"),
        (_cut(0), "model.safetensors", "truncated"),
        (_cut(7), "model.safetensors", "truncated"),
        (_cut(500), "model.safetensors", "truncated"),
        (_cut(-1), "model.safetensors", "outside the file"),
        (_bfloat16, "embeddings.word_embeddings.weight", "F32"),
        (_tensor(QUERY, lambda t: t + np.float32(8)), f"model.safetensors: {QUERY}", "16 bits"),
        (_tensor(QUERY, lambda t: t * np.float32("nan")), QUERY, "finite"),
        (_tensor(QUERY, lambda t: t[:, :8]), QUERY, "shape"),
        (_tensor("embeddings.token_type_embeddings.weight", lambda t: t + np.float32(7.7)),
         "position_embeddings", "16 bits"),
        (_without(QUERY), "model.safetensors", "does not describe"),
        (_tokenizer(lambda t: t["model"].update(type="BPE", merges=[])), "tokenizer.json", "unknown"),
        (_tokenizer(lambda t: t.update(normalizer=None)), "tokenizer.json", "unknown"),
        (_tokenizer(lambda t: t["model"]["vocab"].pop("##s")), "tokenizer.json", "vocabulary"),
        (_tokenizer(lambda t: t["model"].pop("vocab")), "tokenizer.json", "loaded"),
        (_module("Dense"), "modules.json", "modules"),
        (lambda p: (p / "scales.json").write_text('{"x": 6}'), "scales.json", "well-formed"),
        (lambda p: (p / "scales.json").write_text('{"x":6,"q":7,"v":8,"o":8,"z":6,"g":12}'), "scales.g", "range"),
    ],
)  # fmt: skip
def test_refused_models(tmp_path: Path, change: Callable[[Path], object], place: str, message: str) -> None:
    folder = small_bert.write(tmp_path / "m")
    get_embedder("bert-int", folder=folder)
    change(folder)
    with pytest.raises(RagAuditError, match=message) as caught:
        get_embedder("bert-int", folder=folder)
    assert place in str(caught.value.field)


def test_a_layer_whose_sums_need_more_than_32_bits_is_refused(tmp_path: Path) -> None:
    shape = replace(small_bert.SHAPE, inner=64)
    folder = small_bert.write(tmp_path / "m", shape)
    of = small_bert.tensors(shape)
    name = "encoder.layer.0.output.dense.weight"
    of[name] = np.full_like(of[name], 7.9)
    (folder / "model.safetensors").write_bytes(small_bert.safetensors(of))
    with pytest.raises(SetupError, match="32 bits") as caught:
        load_files(folder, small_bert.SCALES)
    assert name in str(caught.value.field)

    def large(parameter: str, values: Any) -> None:
        if parameter == "1.f":
            values[:] = 32_000

    with pytest.raises(SetupError, match=r"bounds.*layer 1, f"):
        native_encoder(changed(random_model(shape, small_bert.SCALES), large))


def test_the_native_core_checks_its_arguments(files: Files) -> None:
    model = files.model
    for bad in (
        replace(small_bert.SHAPE, heads=1, width=15), replace(small_bert.SHAPE, layers=1),
    ):  # fmt: skip
        object.__setattr__(model, "shape", bad)
        with pytest.raises(SetupError):
            native_encoder(model)
    object.__setattr__(model, "shape", small_bert.SHAPE)
    native = native_encoder(model)
    for tokens in ([], [20], [1] * 25):
        with pytest.raises(ValueError, match="tokens"):
            native.trace(tokens)
        with pytest.raises(ValueError, match="tokens"):
            native.embed([[2], tokens], False)
    with pytest.raises(EncodingError, match="length"):
        replace(model, weights=model.weights[:-1])


def test_minilm_int_accepts_its_published_files_only(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="not the pinned one") as caught:
        get_embedder("minilm-int", folder=folder)
    assert (
        "tokenizer.json" in str(caught.value.field) and caught.value.expected == FILE_PINS["tokenizer.json"]
    )
    with pytest.raises(RagAuditError, match="no such setting"):
        (tmp_path / "embedder.toml").write_text('pooling = "cls"')
        get_embedder("minilm-int", folder=tmp_path)
    assert public_artefacts("minilm-int") == ARTEFACTS
    assert published_constants("minilm-int").dimension == 384


def _package(folder: Path, model: Path) -> None:
    """A package with a model's files below a folder. Its code ends the process that imports it."""
    package = folder / installed.PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('this code never runs')")
    shutil.copytree(model, package / "model")


def test_minilm_int_reads_the_installed_files_and_runs_no_code_of_the_package(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    _package(tmp_path, folder)
    importlib.invalidate_caches()
    assert installed.installed_folder() == tmp_path / installed.PACKAGE / "model"
    for name in ("minilm-int", "minilm-int-lexical-768"):
        with pytest.raises(SetupError, match="not the pinned one") as caught:  # whatever the package contains
            get_embedder(name)
        assert str(tmp_path) in str(caught.value.field)
        assert caught.value.expected == FILE_PINS["tokenizer.json"]
    assert installed.PACKAGE not in sys.modules
    # The option has precedence, and other models have no installed files.
    assert installed.model_place(folder, "minilm-int") == folder
    with pytest.raises(SetupError, match="bert-int embedder needs --model"):
        get_embedder("bert-int")


def test_a_package_that_lacks_a_file_is_not_installed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pip leaves behind, and a copy that ended early."""
    monkeypatch.setattr(installed, "find_spec", lambda name: PathFinder.find_spec(name, [str(tmp_path)]))
    (tmp_path / installed.PACKAGE / "__pycache__").mkdir(parents=True)
    assert installed.installed_folder() is None
    assert choose(None).name == DEFAULT_EMBEDDER
    with pytest.raises(SetupError, match="needs the published files") as caught:
        get_embedder("minilm-int")
    assert installed.INSTALL in str(caught.value.hint)
    model = shutil.copytree(folder, tmp_path / installed.PACKAGE / "model")
    assert installed.installed_folder() == model
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (model / name).rename(model / "elsewhere")
        assert installed.installed_folder() is None
        (model / name).mkdir()
        assert installed.installed_folder() is None
        (model / name).rmdir()
        (model / "elsewhere").rename(model / name)


def test_minilm_int_without_files_names_the_package_and_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, installed.PACKAGE, None)
    with pytest.raises(SetupError, match="needs the published files of all-MiniLM-L6-v2") as caught:
        get_embedder("minilm-int")
    assert caught.value.field == "--model"
    assert installed.INSTALL in str(caught.value.hint) and "--model" in str(caught.value.hint)
    assert published_constants("minilm-int").dimension == 384  # a policy needs no files


def test_the_error_names_the_locked_package() -> None:
    lock = (Path(__file__).parents[2] / "requirements/minilm.txt").read_text()
    assert lock.split()[0] == installed.INSTALL.split()[-1]


def test_a_worker_without_the_folder_reads_its_own_installed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model of another machine's folder is refused if this machine's files differ."""
    scales = small_bert.SCALES
    model = small_bert.write(tmp_path / "m", PROVABLE)
    other = small_bert.write(tmp_path / "other", replace(PROVABLE, layers=PROVABLE.layers + 1))
    digest = load_files(model, scales).model.digest()
    gone = tmp_path / "gone"
    monkeypatch.setattr(proved, "installed_folder", lambda: model)
    with pytest.raises(SetupError, match="is missing on this machine") as caught:  # a model of bert-int
        proved.loaded_encoder(gone, scales, digest)
    assert caught.value.field == str(gone) and installed.INSTALL not in str(caught.value.hint)
    monkeypatch.setattr(proved, "FILE_ARTEFACTS", {"integers": digest})  # the published model
    assert proved.loaded_encoder(gone, scales, digest).digest()
    proved.loaded_encoder.cache_clear()
    monkeypatch.setattr(proved, "installed_folder", lambda: other)
    with pytest.raises(SetupError, match="another model than before") as caught:
        proved.loaded_encoder(gone, scales, digest)
    assert caught.value.field == str(other)
    monkeypatch.setattr(proved, "installed_folder", lambda: None)
    with pytest.raises(SetupError, match="is missing on this machine") as caught:
        proved.loaded_encoder(gone, scales, digest)
    assert caught.value.field == str(gone) and caught.value.hint == installed.INSTALL


def test_the_scales_are_part_of_the_manifest(tmp_path: Path, folder: Path) -> None:
    other = small_bert.write(tmp_path / "m", scales=replace(small_bert.SCALES, x=7))
    first, second = (
        get_embedder("bert-int", folder=place).manifest()["artefacts"] for place in (folder, other)
    )
    assert {name for name in first if first[name] != second[name]} == {"scales"}
    third = small_bert.write(tmp_path / "n", scales=replace(small_bert.SCALES, z=7))
    of_third = get_embedder("bert-int", folder=third).manifest()["artefacts"]
    assert {name for name in first if first[name] != of_third[name]} == {"scales", "tables"}
    assert load_scales(tmp_path, SCALES) == SCALES
    assert (
        IntegerBert("bert-int", load_files(folder, small_bert.SCALES), Rule("cls")).manifest()["pooling"]
        == "cls"
    )


@pytest.mark.data
@pytest.mark.skipif(FOLDER is None, reason="RAG_AUDIT_MINILM names no folder")
def test_a_thousand_texts_equal_the_reference_with_the_published_weights() -> None:
    assert FOLDER is not None
    embedder = get_embedder("minilm-int", folder=FOLDER)
    files = load_files(Path(FOLDER), SCALES, FILE_PINS)
    reference, native = Reference(files.model), native_encoder(files.model)
    for question in collection("squad").sample(1000).questions:
        tokens = embedder.tokenize(question)
        assert native.trace(tokens) == reference_trace(reference, tokens), question


def rounded(values: list[int], length: int) -> list[int]:
    """Integers with about that norm, by the formula of docs/minilm-int.md."""
    norm = max(1, isqrt(sum(v * v for v in values)))
    return [(1 if v > 0 else -1) * ((2 * length * abs(v) + norm) // (2 * norm)) if v else 0 for v in values]


def int4_of(values: list[int], factor: int) -> list[int]:
    w = isqrt(2**16 * sum(v * v for v in values))
    return [(1 if v > 0 else -1) * min(7, (2 * abs(v) * factor + w) // (2 * w)) for v in values]


def test_lexical_components_follow_their_formulas(files: Files) -> None:
    """The reference's sums and the page's formulas, token by token in Python integers."""
    embedder, reference = LexicalBert(LEXICAL_MINILM, files, Rule()), Reference(files.model)
    signs = {
        piece: [1 - 2 * (byte >> (7 - bit) & 1) for byte in shake_256(f"rag-audit/lexical-1/{piece}".encode()).digest(48)
                for bit in range(8)]
        for piece in ("the", "court", "of", "law", "s", "red", "ish")
    }  # fmt: skip
    text = "The court of the law courts"
    tokens = embedder.tokenize(text)
    pieces = ["the", "court", "of", "the", "law", "court", "s"]
    assert [small_bert.WORDS[t].removeprefix("##") for t in tokens[1:-1]] == pieces
    sums = list(reference.embed(tokens))

    # every word of the small vocabulary has the gain 1
    of_query = [sum(signs[p][j] for p in pieces) << small_bert.SCALES.x for j in range(384)]
    factor = norm_factor(published_scale(16 + 384))
    assert embedder.embed_query(text).tolist() == int4_of(sums + of_query, factor)

    counts = Counter(pieces)
    weights = {p: floor(Fraction(256 * n) / (n + Fraction(12, 10) * (Fraction(6, 10) + Fraction(4, 10) * Fraction(7, 180))))
               for p, n in counts.items()}  # fmt: skip
    of_document = [sum(weights[p] * signs[p][j] for p in counts) for j in range(384)]
    parts = rounded(sums, 50_000) + rounded(of_document, 20_000)
    assert embedder.embed_documents([text])[0].tolist() == int4_of(parts, factor)


def test_the_lexical_table_follows_the_vocabulary(files: Files) -> None:
    table = lexical_table(files)
    gains = {word: int(table.gains[table.piece_of[i]]) for i, word in enumerate(small_bert.WORDS)}
    assert {word for word, gain in gains.items() if gain == 0} == {
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    }
    rows = table.rows()
    assert rows.shape == (len(small_bert.WORDS), 384) and not rows[:5].any()

    class Other:
        def get_vocab(self) -> dict[str, int]:
            return {"[CLS]": 0, "der": 1}

    with pytest.raises(SetupError, match="order of frequency"):
        lexical_table(replace(files, tokenizer=cast("Any", Other())))


def test_rarer_words_of_bert_have_higher_gains() -> None:
    words = [f"w{number}" for number in range(2_000)]
    table = LexicalTable.of_bert(["[CLS]", "[unused3]", "[x]", "!", "the", "##s", *words, "s"], 8)
    gains = [int(table.gains[number]) for number in table.piece_of]
    assert gains[:6] == [0, 0, 1, 1, 1, 1]
    assert table.piece_of[5] == table.piece_of[-1], "a piece within a word has the signs of the word"
    ranks = [1 + bisect_right(lexical.RANKS, 2 + number) for number in range(2_000)]
    assert gains[6:-1] == ranks and max(ranks) == 3


def test_the_lexical_variant_is_known_without_files() -> None:
    name = "minilm-int-lexical-768"
    known = published_constants(name)
    assert (known.dimension, known.score_window, known.relevance, known.table) == (
        768,
        (420, 1680),
        766,
        None,
    )
    assert public_artefacts(name) == {**FILE_ARTEFACTS, "lexical": LEXICAL_ARTEFACTS["lexical"]}


def test_relevance_thresholds_belong_to_published_models(folder: Path) -> None:
    assert published_constants("minilm-int").relevance == 644
    assert relevance_of(get_embedder("bert-int", folder=folder)) is None
    assert relevance_of(get_embedder()) == published_constants(DEFAULT_EMBEDDER).relevance == 601


def test_a_policy_of_minilm_int_has_pooled_listing_with_its_threshold(tmp_path: Path) -> None:
    """No file of the model is read."""
    out = tmp_path / "policy.json"
    words = ["provider", "policy", "new", str(out), "--window", "w", "--tenant", "a=64", "--accounts", "4",
             "--questions", "50", "--embedder", "minilm-int"]  # fmt: skip
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    policy = Policy.parse(json.loads(out.read_text()), field="policy")
    pooled = policy.mechanism_of("a")
    assert isinstance(pooled, PooledListing)
    assert (policy.relevance, pooled.rules.threshold) == (644, 644)


@pytest.mark.data
@pytest.mark.skipif(FOLDER is None, reason="RAG_AUDIT_MINILM names no folder")
def test_lexical_components_find_more_passages() -> None:
    """All 2,067 passages and 300 questions of SQuAD."""
    texts = collection("squad")
    found = {}
    for name in ("minilm-int", "minilm-int-lexical-768"):
        embedder = get_embedder(name, folder=FOLDER)
        passages = embedder.embed_documents(texts.passages).astype(np.int32)
        chosen = texts.sample(300)
        ranked = [np.argsort(-(passages @ embedder.embed_query(q).astype(np.int32)), kind="stable")[:5]
                  for q in chosen.questions]  # fmt: skip
        found[name] = sum(
            bool(set(r.tolist()) & set(w)) for r, w in zip(ranked, chosen.relevant, strict=True)
        )
    assert found["minilm-int-lexical-768"] > found["minilm-int"] > 240


VECTORS = json.loads((Path(__file__).parents[2] / "vectors/v1/minilm-int.json").read_text())


def _check_vectors(files: Files, vectors: Any, embedder: Any) -> None:
    assert (files.model.digest(), files.model.tables_digest()) == (vectors["integers"], vectors["tables"])
    assert (files.weights, files.tokenizer_digest) == (vectors["weights"], vectors["tokenizer"])
    native = native_encoder(files.model)
    for case in vectors["cases"]:
        assert embedder.tokenize(case["text"]) == case["tokens"]
        named, outside = native.trace(case["tokens"])
        digests = {f"{layer}.{part}": sha256(values).hexdigest() for layer, part, values in named}
        assert outside is None and digests == case["sha256"]
        ((sums, _),) = native.embed([case["tokens"]], False)
        assert np.frombuffer(sums or b"", "<i4").tolist() == case["sums"]
        assert embedder.embed_query(case["text"]).tolist() == case["vector"]


def test_the_vectors_of_the_small_model(folder: Path, files: Files) -> None:
    _check_vectors(files, VECTORS["small"], get_embedder("bert-int", folder=folder))


@pytest.mark.data
@pytest.mark.skipif(FOLDER is None, reason="RAG_AUDIT_MINILM names no folder")
def test_the_vectors_of_the_published_weights() -> None:
    assert FOLDER is not None
    files = load_files(Path(FOLDER), SCALES, FILE_PINS)
    _check_vectors(files, VECTORS["all-MiniLM-L6-v2"], get_embedder("minilm-int", folder=FOLDER))
