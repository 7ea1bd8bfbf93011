"""The service's OpenAPI document, from the models that read and write its messages."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic.json_schema import models_json_schema

from rag_audit import __version__
from rag_audit.models.enrolling import EnrolmentAnswer, EnrolmentOffer, EnrolmentRequest
from rag_audit.models.names import NamesAnswer, NamesRequest
from rag_audit.models.publication import Publication
from rag_audit.models.requests import REFUSALS, Answer, Refusal, SignedRequest
from rag_audit.service.limits import Limits
from rag_audit.service.names import STATUSES as NAMES_STATUSES
from rag_audit.service.queries import STATUSES

MODELS = (
    SignedRequest,
    Answer,
    Refusal,
    NamesRequest,
    NamesAnswer,
    Publication,
    EnrolmentRequest,
    EnrolmentAnswer,
    EnrolmentOffer,
)
_REF = "#/components/schemas/"
_ERROR = {
    "type": "object",
    "required": ["error", "message"],
    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
}


@cache
def openapi(limits: Limits) -> dict[str, Any]:
    """The document (OpenAPI 3.1)."""
    _, result = models_json_schema(
        [(model, "validation") for model in MODELS],
        ref_template=_REF + "{model}",
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rag-audit",
            "version": __version__,
            "description": "Signed requests to an audited window, and its published files (docs/http.md).",
        },
        "paths": {
            "/v1/query": {"post": _post("Answer one signed request", "SignedRequest", _query_responses())},
            "/v1/queries": {"post": _batch(limits)},
            "/v1/names": {"post": _names()},
            "/v1/enrolments": {"get": _offer(), "post": _enrolment()},
            "/public/{name}": {"get": _file("A file of the window that is served")},
            "/windows/{window}/{name}": {"get": _file("A file at the window's own address", "window")},
            "/healthz": {"get": _get("Whether the process runs", "200")},
            "/readyz": {"get": _get("Whether queries are answered", "200", "503")},
            "/metrics": {"get": _get("Prometheus metrics", "200")},
            "/openapi.json": {"get": _get("This document", "200")},
        },
        "components": {"schemas": result.get("$defs", {})},
    }


def _schema(name: str) -> dict[str, Any]:
    return {"$ref": _REF + name}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _post(summary: str, body: str, responses: dict[str, Any]) -> dict[str, Any]:
    return {"summary": summary, "requestBody": {"required": True, "content": _json(_schema(body))},
            "responses": responses}  # fmt: skip


def _query_responses() -> dict[str, Any]:
    reasons: dict[int, list[str]] = {}
    for reason in REFUSALS:
        reasons.setdefault(STATUSES[reason], []).append(reason)
    for status in (408, 413, 415):
        reasons[status] = ["unavailable" if status == 408 else "malformed"]
    reasons[429].append("unavailable")
    refused = {
        str(status): {"description": "Refused: " + ", ".join(names), "content": _json(_schema("Refusal"))}
        for status, names in sorted(reasons.items())
    }
    return {"200": {"description": "Answered", "content": _json(_schema("Answer"))}, **refused}


def _batch(limits: Limits) -> dict[str, Any]:
    replies = {"type": "array", "items": {"oneOf": [_schema("Answer"), _schema("Refusal")]}}
    refused = {
        str(status): {"description": "No request was answered", "content": _json(_schema("Refusal"))}
        for status in (400, 408, 413, 415, 429)
    }
    requests = {"type": "array", "minItems": 1, "maxItems": limits.batch, "items": _schema("SignedRequest")}
    return {
        "summary": "Answer several signed requests, in their order",
        "requestBody": {"required": True, "content": _json(requests)},
        "responses": {"200": {"description": "A reply to each", "content": _json(replies)}, **refused},
    }


def _names() -> dict[str, Any]:
    reasons = {400: ["Malformed"], 408: ["Too slow"], 413: ["Too large"], 415: ["Not application/json"]}
    reasons |= {429: ["Too many waiting requests"], 503: ["The names cannot be proved at the moment"]}
    for reason, status in NAMES_STATUSES.items():
        reasons.setdefault(status, []).append(reason)
    refused = {
        str(status): {"description": ", ".join(names), "content": _json(_ERROR)}
        for status, names in sorted(reasons.items())
    }
    answer = {"description": "The names with their proof", "content": _json(_schema("NamesAnswer"))}
    return _post("Prove the names of documents", "NamesRequest", {"200": answer, **refused})


def _offer() -> dict[str, Any]:
    offer = {"description": "The windows", "content": _json(_schema("EnrolmentOffer"))}
    none = {"description": "This service accepts no requests", "content": _json(_ERROR)}
    return {
        "summary": "Windows with open enrolment",
        "responses": {"200": offer, "404": none},
    }


def _enrolment() -> dict[str, Any]:
    answer = _json(_schema("EnrolmentAnswer"))
    refused = {
        "400": "Malformed, or for another provider", "403": "Not signed by its key", "404": "This service accepts no"
            " requests",
        "408": "Too slow", "409": "For a window without open enrolment", "413": "Too large",
        "415": "Not application/json", "429": "Too many waiting requests", "503": "The request cannot be stored at"
            " the moment",
    }  # fmt: skip
    return _post(
        "Request a line on a roster, or read the decision", "EnrolmentRequest",
        {"200": {"description": "Decided: approved, enrolled or rejected", "content": answer},
         "202": {"description": "The provider has not decided yet", "content": answer},
         **{status: {"description": text, "content": _json(_ERROR)} for status, text in refused.items()}},
    )  # fmt: skip


def _file(summary: str, *more: str) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in (*more, "name")
    ]
    file = {"description": "The file; header.json is a Publication", "content": {"*/*": {}}}
    return {
        "summary": summary,
        "parameters": parameters,
        "responses": {
            "200": file,
            "304": {"description": "The cached file is current"},
            "404": {"description": "No such file"},
        },
    }


def _get(summary: str, *statuses: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {status: {"description": summary} for status in statuses}}
