"""Documents of databases: PostgreSQL (with or without pgvector) and Qdrant."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from rag_audit._internal.errors import SchemaError, SetupError
from rag_audit._internal.extras import needing
from rag_audit._internal.jsonlines import left_out_of
from rag_audit._internal.printable import without_userinfo
from rag_audit._internal.proxies import address_of
from rag_audit.retrieval.readers import DocumentsError
from rag_audit.retrieval.sources.files import check_names
from rag_audit.retrieval.sources.model import Asked, Row, Rows

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.rows import DictRow
    from qdrant_client import QdrantClient

BATCH = 1024
KEY_VARIABLE = "QDRANT_API_KEY"


def postgresql(requested: Asked) -> Rows:
    """The rows of an SQL statement, read through a cursor of a read-only transaction: a snapshot of one moment.

    libpq supplies the password (PGPASSWORD, ~/.pgpass), so that no command line contains it.
    """
    if requested.query is None:
        raise SetupError("a database has many tables", field="--query", expected="an SQL statement",
                         hint="--query 'SELECT id, text, source FROM documents ORDER BY id'")  # fmt: skip
    with needing("psycopg"):
        import psycopg
        from psycopg.rows import dict_row
    try:
        with psycopg.connect(requested.place, row_factory=dict_row) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.cursor(name="rag_audit") as cursor:
                cursor.itersize = BATCH
                cursor.execute(requested.query)  # the operator's own statement
                described = cursor.description or []
                check_names([column.name for column in described], "--query")
                vectors = _vector_columns(
                    connection, {c.name: c.type_code for c in described}, requested.without
                )
                for number, values in enumerate(cursor, 1):
                    if vectors:
                        raise SchemaError(
                            "a vector is no metadata", field=f"row {number}.{vectors[0]}",
                            hint="leave the column out (--drop): a window embeds its documents anew",
                        )  # fmt: skip
                    yield Row(f"row {number}", values)
    except psycopg.Error as exc:
        shown = requested.shown
        raise DocumentsError("the database does not answer with documents", field=shown,
                             actual=str(exc).replace(requested.place, shown).strip()[:300]) from exc  # fmt: skip


def _vector_columns(
    connection: Connection[DictRow], types: Mapping[str, int], without: Collection[str]
) -> list[str]:
    """The columns of pgvector's types, which a connection that does not know pgvector reads as text."""
    rows = connection.execute(
        "SELECT oid FROM pg_type WHERE typname IN ('vector', 'halfvec', 'sparsevec')"
    ).fetchall()
    known = {row["oid"] for row in rows}
    return [name for name, oid in types.items() if oid in known and name not in without]


def qdrant(requested: Asked) -> Rows:
    """The payloads of a Qdrant collection with their points' ids, at ``qdrant://host:port/collection``, with TLS at
    ``qdrants://..``, or in a local folder of the client, ``qdrant:FOLDER/collection``.

    The key is read from the variable QDRANT_API_KEY.
    """
    with needing("qdrant_client"):
        from qdrant_client import QdrantClient
    place, _, name = requested.place.rpartition("/")
    if not name or place in ("", "qdrant:", "qdrant:/"):
        raise SetupError("no collection is named", field="SOURCE", expected="qdrant://host:port/collection",
                         actual=without_userinfo(requested.place))  # fmt: skip
    scheme, remote, host = place.partition("://")
    if remote:
        url = f"{'https' if scheme == 'qdrants' else 'http'}://{host}"
        address = address_of(url)
        if address is None:
            raise SetupError(
                "not a Qdrant server's address",
                field="SOURCE",
                expected="qdrant://host:port/collection",
                actual=without_userinfo(requested.place),
            )
        from rag_audit._internal.http import httpx_options  # httpx, which Qdrant's client needs too

        client = QdrantClient(
            url=url, api_key=os.environ.get(KEY_VARIABLE), check_compatibility=False, **httpx_options(address)
        )
    else:
        folder = Path(place.removeprefix("qdrant:"))
        if not (folder / "meta.json").exists():  # which the client would make
            raise DocumentsError("there is no Qdrant storage in this folder", field=str(folder))
        try:
            client = QdrantClient(path=str(folder))
        except Exception as exc:  # another process may have locked the folder, or its files are damaged
            raise DocumentsError("the Qdrant storage cannot be opened", field=str(folder), actual=_said(exc, host),
                                 expected="a storage that no other process has open") from exc  # fmt: skip
    try:
        yield from _points(client, name, requested.without)
    except Exception as exc:  # the client has no common error: of HTTP, of its models, of its own storage
        raise DocumentsError(
            "the collection cannot be read", field=without_userinfo(requested.place), actual=_said(exc, host)
        ) from exc
    finally:
        client.close()


def _said(exc: Exception, host: str) -> str:
    """The text of a client's error, without the user and password in the given address."""
    text, (user, at, _) = str(exc).strip(), host.rpartition("@")
    password = user.partition(":")[2]
    for secret in [user, unquote(user), password, unquote(password)] if at else []:
        text = text.replace(secret, "***") if secret else text
    return text[:300]


def _points(client: QdrantClient, collection: str, without: Collection[str]) -> Iterator[Row]:
    after = None
    while True:
        points, after = client.scroll(collection, limit=BATCH, offset=after, with_payload=True)
        for point in points:
            values = left_out_of({"id": point.id, **(point.payload or {})}, without)
            yield Row(f"point {point.id}", values)
        if after is None:
            return
