"""Running the service: health, metrics, logs, traces, the OpenAPI document, addresses."""

from __future__ import annotations

import io
import json
import logging
import re
import socket
from typing import Any

import jsonschema
import pytest

from rag_audit._internal import log_lines
from rag_audit.attest.window import Window
from rag_audit.errors import SetupError
from rag_audit.service import logs
from rag_audit.service import logs as tracing
from rag_audit.service.limits import Limits
from rag_audit.service.openapi import openapi
from rag_audit.service.server import http_service, listen, parse_address
from tests.serving.conftest import JSON, Served
from tests.window.simulator import Service


def test_health_and_readiness(served: Served) -> None:
    assert served.get("/healthz").value == {"alive": True}
    ready = served.get("/readyz")
    assert (ready.status, ready.value) == (200, {"ready": True})
    assert ready.headers["cache-control"] == "no-store"


def test_unknown_addresses_and_methods_have_names(served: Served) -> None:
    for path in ("/", "/v1", "/v1/query/", "/public", "/windows/w-1", "/v2/query"):
        reply = served.get(path)
        assert (reply.status, reply.value["error"]) == (404, "NotFound"), path
    for path, method in (("/v1/query", "GET"), ("/healthz", "POST"), ("/public/header.json", "DELETE")):
        reply = served.get(path, method)
        assert (reply.status, reply.value["error"]) == (405, "MethodNotAllowed")
        assert reply.headers["allow"]


def test_metrics_count_outcomes_and_name_nobody(fresh: Served) -> None:
    request = fresh.request("law-1", "What is a contract?")
    reply = fresh.post("/v1/query", request.canonical())
    fresh.accept("law-1", request, reply)
    fresh.post("/v1/queries", b'[{"account":"somebody"}, 1]')
    fresh.get("/public/header.json")
    text = fresh.get("/metrics").body.decode()
    entries = fresh.window.state.tree.size
    for line in (
        'rag_audit_requests_total{outcome="answer"} 1.0',
        'rag_audit_requests_total{outcome="malformed"} 2.0',
        'rag_audit_http_responses_total{route="/v1/query",status="200"} 1.0',
        'rag_audit_window_status{status="active"} 1.0',
        'rag_audit_window_status{status="final"} 0.0',
        "rag_audit_requests_in_service 0.0",
        f"rag_audit_requests_in_service_limit {float(Limits().waiting)}",
        f"rag_audit_ledger_entries {float(entries)}",
        "rag_audit_ledger_writable 1.0",
    ):
        assert line in text.splitlines(), line
    for secret in ("law", "somebody", "contract", request.salt, request.hq):
        assert secret not in text
    # A time that a query took could tell something of its scores: counters and states have none.
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    assert set(kinds.values()) == {"counter", "gauge"}
    published = fresh.window.directory / "public/header.json"
    assert f"rag_audit_public_bytes_total {float(published.stat().st_size)}" in text


@pytest.fixture
def lines() -> Any:
    stream = io.StringIO()
    handler = log_lines.log_lines(stream)
    try:
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    finally:
        log_lines.remove_handler(handler)
    assert handler not in logging.getLogger("rag_audit").handlers


def test_logs_are_json_with_the_request_s_id_and_no_content(fresh: Served, lines: Any) -> None:
    request = fresh.request("law-1", "What is a contract?")
    sent = {**JSON, "X-Request-Id": "trace-1.a_B"}
    reply = fresh.post("/v1/query", request.canonical(), sent)
    fresh.accept("law-1", request, reply)
    assert reply.headers["x-request-id"] == "trace-1.a_B"
    other = fresh.get("/secret-path?token=secret", X_Request_Id="not well formed\t")
    created = other.headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{16}", created)
    fresh.service.stop()
    result = [line for line in lines() if line["event"] == "request"]
    assert [line.pop("time")[-1] for line in result] == ["Z", "Z"]
    size = len(request.canonical())
    assert result == [
        {"level": "info", "event": "request", "request_id": "trace-1.a_B", "method": "POST",
         "route": "/v1/query", "status": 200, "bytes_in": size, "outcome": "answer"},
        {"level": "info", "event": "request", "request_id": created, "method": "GET", "route": "other",
         "status": 404, "bytes_in": 0},
    ]  # fmt: skip


@pytest.mark.parametrize("given", ["", "-a", "a" * 65, 'a"b', "a b", "ä", "a\n"])
def test_an_id_that_is_not_well_formed_is_replaced(given: str) -> None:
    assert re.fullmatch("[0-9a-f]{16}", logs.request_id(given))


def test_a_logged_exception_is_named_without_its_message() -> None:
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "fault", None, None)
    try:
        raise ValueError("a secret")
    except ValueError:
        import sys

        record.exc_info = sys.exc_info()
    line = log_lines.JsonLines().format(record)
    assert json.loads(line)["exception"] == "ValueError" and "secret" not in line


def test_a_text_line_has_time_level_event_and_fields_on_one_line() -> None:
    record = logging.LogRecord("x", logging.WARNING, "x", 1, "w-1 waits\nfor %s", ("w1",), None)
    record.fields = {"status": 503}
    line = log_lines.TextLines().format(record)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning w-1 waits\\nfor w1 status=503", line
    ), line


def test_spans_are_made_where_a_program_wants_them(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[tuple[str, Any]] = []

    class Tracer:
        def start_as_current_span(self, name: str, *, attributes: Any, **_: Any) -> Any:
            spans.append((name, attributes))
            return tracing.trace.get_tracer("x").start_as_current_span(name)

    original = tracing.trace.get_tracer
    monkeypatch.setattr(
        tracing.trace, "get_tracer", lambda name: Tracer() if name == "rag_audit" else original(name)
    )
    served.post("/v1/query", b"{}", {**JSON, "X-Request-Id": "one"})
    assert spans == [("rag_audit.query", {"rag_audit.request_id": "one"})]
    monkeypatch.setattr(tracing, "TRACES", False)
    assert served.post("/v1/query", b"{}").status == 400
    assert len(spans) == 1


def test_the_openapi_document_has_the_models_schemas(served: Served) -> None:
    result = served.get("/openapi.json").value
    assert result == openapi(Limits())
    schemas = result["components"]["schemas"]
    assert {"SignedRequest", "Answer", "Refusal", "Publication"} <= set(schemas)
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(result)):
        assert name in schemas
    request = served.request("medicine-2", "What helps against fever?")
    checker = jsonschema.Draft202012Validator(
        {"$ref": "#/components/schemas/SignedRequest", "components": result["components"]}
    )
    checker.validate(request.dump())
    assert not checker.is_valid({**request.dump(), "i": 0})
    routes = {route.path.replace(":path", "") for route in served.service.app.routes}
    assert routes == set(result["paths"])


# -- addresses -------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_said(opened: tuple[Service, Window]) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match="cannot be listened on") as caught:
            http_service(opened[1], ("127.0.0.1", port))
        assert caught.value.field == f"127.0.0.1:{port}"


def test_an_address_of_another_machine_is_said() -> None:
    with pytest.raises(SetupError, match="cannot be listened on"):
        listen("192.0.2.1", 0)


@pytest.mark.parametrize(
    "text", ["", "8080", ":80", "host:", "host:-1", "host:65536", "host:999999", "::1:80", "[::1]", "host:x"]
)
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(SetupError, match="not an address") as caught:
        parse_address(text, field="--http")
    assert caught.value.field == "--http"


def test_addresses() -> None:
    assert parse_address("127.0.0.1:0", field="x") == ("127.0.0.1", 0)
    assert parse_address("[::1]:443", field="x") == ("::1", 443)
    with listen("127.0.0.1", 0) as result:
        assert result.family == socket.AF_INET and result.getsockname()[1] > 0
