"""The embedder behind an endpoint that speaks the OpenAI format, on one of this machine that misbehaves as it is
told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_audit.errors import EncodingError, EndpointError, RagAuditError, SetupError
from rag_audit.models.manifest import re_executable
from rag_audit.relation.commitments import text_query_commitment
from rag_audit.retrieval.embedders import NothingToEmbed, get_embedder, published_constants
from rag_audit.retrieval.embedders.base import DocumentRefused
from rag_audit.retrieval.embedders.declared import ManifestEmbedder
from rag_audit.retrieval.embedders.endpoint import EndpointEmbedder
from rag_audit.retrieval.embedders.quantise import quantise_unit
from rag_audit.retrieval.vectors import CachedEmbedder
from tests.endpoint import Endpoint, serving

DIMENSION = 12
KEY = "sk-s3cret"


class EmbeddingServer(Endpoint):
    """Gives each text a vector that follows from its digest.

    :param faults: also `nonsense`, `fewer`, `twice`, `words`, `wide`, `nan`, `huge`, `zero`, `true`, `reversed`
    """

    def vector(self, text: str) -> list[float]:
        return [byte / 16 - 8 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSION]]

    refused: str | None = None
    """A text that the endpoint refuses with status 400, alone and among others."""

    def refuses(self, body: dict[str, Any]) -> bool:
        return self.refused in body["input"]

    def answer(self, body: dict[str, Any], fault: str) -> tuple[str, bytes]:
        data: list[dict[str, Any]] = [
            {"index": n, "object": "embedding", "embedding": self.vector(text)}
            for n, text in enumerate(body["input"])
        ]
        last = data[-1]
        if fault == "nonsense":
            return "text/html", b"<html>"
        if fault == "fewer":
            data.pop()
        if fault == "twice":
            last["index"] = 0
        if fault == "reversed":
            data.reverse()
        spoiled = {"words": "seven", "wide": [1.0] * (DIMENSION + 1), "nan": [float("nan")] * DIMENSION,
                   "huge": [10**400] * DIMENSION, "zero": [0] * DIMENSION, "true": [True] * DIMENSION}  # fmt: skip
        last["embedding"] = spoiled.get(fault, last["embedding"])
        return "application/json", json.dumps(
            {"object": "list", "data": data, "model": body["model"]}
        ).encode()


def settings(folder: Path, url: object, **changes: object) -> Path:
    """An embedder.toml; a change to None takes a field away."""
    path = folder / "embedder.toml"
    fields = {"url": url, "model": "small", "dimension": DIMENSION, "batch": 4, **changes}
    path.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in fields.items() if v is not None))
    return path


def embedder(place: Path, waits: list[float] | None = None, **options: Any) -> EndpointEmbedder:
    return EndpointEmbedder(place, sleep=(waits if waits is not None else []).append, **options)


TEXTS = [f"text number {n}" for n in range(10)]


def test_texts_go_out_in_batches_and_come_back_quantised_in_their_order(tmp_path: Path) -> None:
    with serving(EmbeddingServer(["reversed"])) as server:
        result = embedder(settings(tmp_path, server.url))
        vectors = result.embed_documents(TEXTS)
    assert [len(requested["input"]) for requested in server.seen] == [4, 4, 2]
    assert {(requested["model"], requested["encoding_format"]) for requested in server.seen} == {
        ("small", "float")
    }
    assert set(server.paths) == {"/v1/embeddings"}
    expected = [quantise_unit(np.array(server.vector(text)), result.scale, turn=True) for text in TEXTS]
    assert vectors.dtype == np.int8 and vectors.tolist() == [v.tolist() for v in expected]


def test_prompts_and_limits_are_put_to_the_text(tmp_path: Path) -> None:
    with serving(EmbeddingServer()) as server:
        place = settings(tmp_path, server.url, query_prompt="q: ", document_prompt="d: ")
        result = embedder(place, query_tokens=1, document_tokens=2)
        result.embed_query("what is bail?")
        result.embed_documents(["a text of more than sixteen characters"])
    assert [requested["input"] for requested in server.seen] == [["q: what is "], ["d: a text of more t"]]
    assert result.cut_documents(["0123456789abcdef", "0123456789abcdefg"]) == 1


@pytest.mark.parametrize("text", ["what is bail?", "\x00 a", "é" * 9, "🦆🦆 x"])
def test_a_query_is_its_own_tokens(tmp_path: Path, text: str) -> None:
    with serving(EmbeddingServer()) as server:
        result = embedder(settings(tmp_path, server.url))
        assert len(result.tokenize(text)) == -(-len(text) // 8)
        assert result.embed_tokens(result.tokenize(text)).tolist() == result.embed_query(text).tolist()
    assert [requested["input"] for requested in server.seen] == [[text], [text]]
    assert result.query_commitment(text, 5) == text_query_commitment(5, text.encode())
    with pytest.raises(EncodingError, match="not a part of a text"):
        result.embed_tokens([7])


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_not_sent(tmp_path: Path, text: str) -> None:
    with serving(EmbeddingServer()) as server:
        result = embedder(settings(tmp_path, server.url))
        with pytest.raises(NothingToEmbed):
            result.embed_query(text)
        with pytest.raises(NothingToEmbed) as caught:
            result.embed_documents(["a", text], first=7)
    assert caught.value.field == "documents[8]" and server.seen == []


@pytest.mark.parametrize(
    ("fault", "waited"),
    [
        ("429", [7.0]),
        ("429 soon", [1.0]),
        ("500", [1.0]),
        ("nonsense", [1.0]),
        ("fewer", [1.0]),
        ("twice", [1.0]),
        ("words", [1.0]),
        ("true", [1.0]),
    ],
)
def test_what_may_pass_is_asked_again(tmp_path: Path, fault: str, waited: Sequence[float]) -> None:
    waits: list[float] = []
    with serving(EmbeddingServer([fault])) as server:
        result = embedder(settings(tmp_path, server.url), waits)
        assert result.embed_documents(TEXTS[:2]).shape == (2, DIMENSION)
    assert waits == waited and len(server.seen) == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [("wide", "another dimension"), ("nan", "not a finite number"), ("huge", "not a finite number")],
)
def test_what_will_not_pass_is_named_and_not_repeated(tmp_path: Path, fault: str, message: str) -> None:
    with serving(EmbeddingServer([fault])) as server:
        result = embedder(settings(tmp_path, server.url))
        with pytest.raises(EndpointError, match=message):
            result.embed_documents(TEXTS[:2])
    assert len(server.seen) == 1


def test_an_endpoint_that_refuses_everything_is_named_and_no_document_is(tmp_path: Path) -> None:
    with serving(EmbeddingServer(["400"] * 9)) as server, pytest.raises(EndpointError) as caught:
        embedder(settings(tmp_path, server.url)).embed_documents(TEXTS[:4])
    assert caught.value.name == "EndpointError" and caught.value.field == server.url
    # The batch, its half, that half's half, and a plain word, which is refused as well.
    assert [len(requested["input"]) for requested in server.seen] == [4, 2, 1, 1]


@pytest.mark.parametrize("number", [0, 5, 9])
def test_a_text_that_the_endpoint_refuses_is_named(tmp_path: Path, number: int) -> None:
    with serving(EmbeddingServer()) as server:
        server.refused = TEXTS[number]
        result = embedder(settings(tmp_path, server.url))
        with pytest.raises(DocumentRefused, match="refuses a text") as caught:
            result.embed_documents(TEXTS, first=100)
        assert caught.value.field == f"documents[{100 + number}]" and "status 400" in str(caught.value.actual)
        cached = CachedEmbedder(result, tmp_path / "kept" / "vectors", say=print)
        with cached, pytest.raises(DocumentRefused) as caught:
            cached.embed_documents([TEXTS[(number + 1) % 10], *TEXTS], first=100)
        assert caught.value.field == f"documents[{101 + number}]"
        with pytest.raises(DocumentRefused) as caught:
            result.embed_query(TEXTS[number])
        assert caught.value.field == "query"


def test_a_request_that_is_too_large_is_sent_in_parts(tmp_path: Path) -> None:
    """An endpoint that limits the texts of a request refuses the batch and none of its texts."""
    with serving(EmbeddingServer(["400", "400"])) as server:
        vectors = embedder(settings(tmp_path, server.url)).embed_documents(TEXTS[:4])
        assert vectors.shape == (4, DIMENSION)
    assert [len(requested["input"]) for requested in server.seen] == [4, 2, 1, 1, 2]


@pytest.mark.parametrize("fault", ["nan", "huge"])
def test_a_vector_that_is_not_finite_names_its_document(tmp_path: Path, fault: str) -> None:
    with serving(EmbeddingServer(["well", fault])) as server, pytest.raises(DocumentRefused) as caught:
        embedder(settings(tmp_path, server.url)).embed_documents(TEXTS, first=10)
    assert caught.value.field == "documents[17]"


def test_a_vector_without_a_direction_names_its_document(tmp_path: Path) -> None:
    with serving(EmbeddingServer(["zero"])) as server, pytest.raises(NothingToEmbed) as caught:
        embedder(settings(tmp_path, server.url)).embed_documents(TEXTS[:3], first=4)
    assert caught.value.field == "documents[6]"


def test_another_dimension_in_the_middle_keeps_what_was_done(tmp_path: Path) -> None:
    """What came before it is in the cache, and is not asked for again."""
    texts = [f"text {n}" for n in range(300)]
    said: list[str] = []
    with serving(EmbeddingServer(["well", "well", "wide"])) as server:
        result = embedder(settings(tmp_path, server.url, batch=128))
        with CachedEmbedder(result, tmp_path / "kept" / "vectors", say=said.append) as cached:
            with pytest.raises(EndpointError) as caught:
                cached.embed_documents(texts)
            assert (caught.value.expected, caught.value.actual) == (DIMENSION, DIMENSION + 1)
            assert len(cached.unknown(texts)) == 300 - 256
        server.seen.clear()
        with CachedEmbedder(result, tmp_path / "kept" / "vectors", say=said.append) as again:
            vectors = again.embed_documents(texts)
        assert [text for requested in server.seen for text in requested["input"]] == texts[256:]
        assert vectors.tolist() == result.embed_documents(texts).tolist()
    assert said == []


# -- the key -------------------------------------------------------------------------------------------------


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(EmbeddingServer(["well", "400"])) as server:
        result = embedder(settings(tmp_path, server.url, key_env="TESTED_KEY"))
        monkeypatch.delenv("TESTED_KEY", raising=False)
        with pytest.raises(SetupError, match="not in the environment") as missing:
            result.embed_query("a")
        assert missing.value.hint == "export TESTED_KEY=.."
        monkeypatch.setenv("TESTED_KEY", KEY)
        result.embed_query("a")
        with pytest.raises(EndpointError) as refused:
            result.embed_query("a")  # this endpoint repeats the header in its refusal
    assert server.keys == [f"Bearer {KEY}"] * 3  # the last request asks whether anything is answered
    assert "(the key)" in str(refused.value.actual)
    shown = [refused.value.diagnostics(), str(refused.value), repr(vars(result)), json.dumps(result.manifest()),
             *capfd.readouterr()]  # fmt: skip
    assert not [text for text in shown if KEY in text]
    long = "k" * 2000  # as tokens are that say whose they are
    monkeypatch.setenv("TESTED_KEY", long)
    with serving(EmbeddingServer(["400"])) as server:
        result = embedder(settings(tmp_path, server.url, key_env="TESTED_KEY"))
        with pytest.raises(EndpointError) as refused:
            result.embed_query("a")
    assert "kk" not in refused.value.diagnostics() and "(the key)" in str(refused.value.actual)
    monkeypatch.setenv("TESTED_KEY", f"{KEY}\r\nX: y")
    with pytest.raises(SetupError) as caught:
        result.embed_query("a")
    assert KEY not in caught.value.diagnostics()


@pytest.mark.parametrize(
    ("changes", "error", "place"),
    [
        ({"url": "http://models.example/v1", "key_env": "K"}, "unencrypted", "embedder.toml.url"),
        ({"url": "https://me:pw@models.example/v1"}, "more than a place", "embedder.toml.url"),
        ({"url": "https://models.example/v1?key=1"}, "more than a place", "embedder.toml.url"),
        ({"url": "ftp://models.example"}, "not an address", "embedder.toml.url"),
        ({"url": "http://[::1"}, "not an address", "embedder.toml.url"),
        ({"url": None}, "not complete", "embedder.toml.url"),
        ({"model": None}, "not complete", "embedder.toml.model"),
        ({"dimension": None}, "not complete", "embedder.toml.dimension"),
        ({"dimension": 0}, "not well-formed", "embedder.toml.dimension"),
        ({"dimension": "many"}, "not well-formed", "embedder.toml.dimension"),
        ({"key": KEY}, "no such setting", "embedder.toml.key"),
        ({"pooling": "mean"}, "no such setting", "embedder.toml.pooling"),
        ({"dimension": 64, "cut": 65}, "fewer components", "cut"),
        ({"dimension": 8192}, "more components than", "dimension"),
    ],
)
def test_settings_that_will_not_do_are_named(
    tmp_path: Path, changes: dict[str, object], error: str, place: str
) -> None:
    path = settings(tmp_path, **{"url": "https://models.example/v1", **changes})
    with pytest.raises(RagAuditError, match=error) as caught:
        get_embedder("openai", folder=path)
    assert caught.value.field == place
    assert KEY not in caught.value.diagnostics()


def test_settings_that_are_missing_or_no_toml_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="needs --model"):
        get_embedder("openai")
    with pytest.raises(SetupError, match="no such file"):
        get_embedder("openai", folder=tmp_path / "none.toml")
    (tmp_path / "embedder.toml").write_text("url = ")
    with pytest.raises(EncodingError, match="not valid TOML"):
        get_embedder("openai", folder=tmp_path)


# -- what is published ---------------------------------------------------------------------------------------


def test_the_manifest_names_the_model_and_not_the_place(tmp_path: Path) -> None:
    created = embedder(settings(tmp_path, "https://here.example/v1")).manifest()
    assert created == embedder(settings(tmp_path, "https://there.example/v1", attempts=2)).manifest()
    assert (created["kind"], created["model"], created["dimension"]) == ("openai", "small", DIMENSION)
    assert created["quantiser"] == {"bits": 4, "scale": "0.866", "turn": "turn-1"}
    assert "example" not in json.dumps(created)
    assert created != embedder(settings(tmp_path, "https://here.example/v1", model="large")).manifest()
    result = published_constants("openai", tmp_path)
    assert (result.dimension, result.table) == (DIMENSION, None)
    assert not re_executable("openai") and re_executable("onnx")


def test_a_cut_keeps_the_first_components(tmp_path: Path) -> None:
    with serving(EmbeddingServer()) as server:
        result = embedder(settings(tmp_path, server.url, cut=5))
        vector = result.embed_query("a")
        assert (
            vector.tolist()
            == quantise_unit(np.array(server.vector("a")[:5]), result.scale, turn=True).tolist()
        )
    assert (result.dimension, result.manifest()["dimension"], result.manifest()["cut_from"]) == (
        5,
        5,
        DIMENSION,
    )


def test_an_account_asks_by_the_manifest_alone(tmp_path: Path) -> None:
    result = embedder(settings(tmp_path, "https://here.example/v1"), query_tokens=3)
    known = ManifestEmbedder(result.manifest())
    assert known.manifest() == result.manifest()
    assert known.query_commitment("a question", 4) == result.query_commitment("a question", 4)
    assert known.tokenize("a question") == result.tokenize("a question")
    with pytest.raises(SetupError):
        known.embed_query("a question")
    with pytest.raises(NothingToEmbed):
        known.tokenize(" ")
