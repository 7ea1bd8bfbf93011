"""The documents of an account's passages: the openings of their names, and what the account checks about them
(docs/accounts.md, "Names of documents").

An account stores the openings beside its receipts. It compares them with the metadata of its passages, with one another
and with those of earlier windows, and checks the provider's proof that the names are those of the rows in the document
table of the window header.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

from rag_audit._internal.errors import InvalidProof, SchemaError, SetupError, brief
from rag_audit.models.models import Count, Hex32, Identifier, Model
from rag_audit.models.names import MAX_KEY, MAX_POSITIONS, Key, NamesAnswer, document_name, key_of_content
from rag_audit.models.publication import Publication
from rag_audit.models.records import TenantEntry
from rag_audit.models.requests import AnsweredDocument
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.row_names import NamesSetup, convinces, row_names_of
from rag_audit.proofs.statements.row_names import RowNamesPublic
from rag_audit.proofs.statements.tenant import ColumnCommitment

SOURCE = "source"
"""The metadata field with the path of a file, which is the key of the file's document."""
_EVIDENCE = (
    "store the account's folder in a safe place, and ask the provider why the document changed: a document with a"
    " second row has a second Bernoulli bit, which multiplies its exclusion factor"
)


class NamedPassage(Model):
    """A passage of the account with the document that its provider named.

    :param text: SHA-256 over the text without its metadata, so that a text under another key is found
    :param fields: the metadata values that can be the key of a document, as text. A value that is longer than any key
        ends with an ellipsis after `MAX_KEY` characters, so it equals no key
    :param own: whether the key is the digest of the passage's text or content, as for a line without an id
    """

    position: Count
    key: Key
    salt: Hex32
    text: Hex32
    fields: dict[str, str]
    own: bool

    @property
    def name(self) -> bytes:
        """The name that salt and key open, 32 bytes."""
        return document_name(bytes.fromhex(self.salt), self.key)

    @property
    def column(self) -> str | None:
        """The metadata field that certainly names the document: the source of a chunk of a file, whose id is
        ``<source>#<number>``; None for other passages."""
        source = self.fields.get(SOURCE)
        if source is None or not re.fullmatch(re.escape(source) + r"#[1-9][0-9]*", self.fields.get("id", "")):
            return None
        return SOURCE


class StoredNames(Model):
    """The openings in one answer, in the account's folder.

    :param window: the id of the window
    :param persistent: whether a document keeps its row, and so its name, in the windows of a chain
    """

    origin: str
    window: Identifier
    persistent: bool
    passages: list[NamedPassage]

    @classmethod
    def of(cls, window: Publication, tenant: str, documents: Sequence[AnsweredDocument]) -> Self | None:
        """The openings of a checked answer; None for a tenant without a document table.

        :raises InvalidProof: the answer lacks an opening, or has one that no table explains
        """
        table = window.parsed_policy().mechanism_of(tenant).table
        header = window.parsed_header()
        passages = [_named(document, table is not None) for document in documents]
        if table is None:
            return None
        return cls(origin=header.origin, window=header.window, persistent=table.persistent,
                   passages=[p for p in passages if p is not None])  # fmt: skip


def _named(document: AnsweredDocument, expected: bool) -> NamedPassage | None:
    field = f"answer.documents, position {document.position}"
    if (document.name is not None) != expected:
        raise InvalidProof(
            "the answer does not open the name of a passage's document"
            if expected
            else "the answer names a document although the tenant has no document table",
            field=f"{field}.name",
            expected="key and salt, since the tenant has a document table" if expected else "null",
            actual="null" if expected else "an opening",
            hint="the provider may not return a text that belongs to no row of its table: do not use the answer, and"
            " tell the verifier" if expected else None,
        )  # fmt: skip
    if document.name is None:
        return None
    key, text = document.name.key, document.text.encode()
    fields = {
        name: shown if len(shown := str(value)) <= MAX_KEY else f"{shown[:MAX_KEY]}…"
        for name, value in document.metadata.items()
        if isinstance(value, str | int) and not isinstance(value, bool)
    }
    return NamedPassage(
        position=document.position,
        key=key,
        salt=document.name.salt,
        text=hashlib.sha256(text).hexdigest(),
        fields=fields,
        own=key in map(key_of_content, (text, document.passage.data)),
    )


_Pairs: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NamesReport:
    """The result of the checks of one window's names.

    :param passages: the number of positions of which the account received a text and an opening
    :param documents: the number of their documents
    :param positions: the positions of each document, by key
    :param column: the metadata field that names the documents; None if no field does
    :param undetermined: the number of passages whose metadata do not determine the key
    :param earlier: the other windows whose names were compared, by id
    :param known: the number of documents with the name of another window
    :param renamed: pairs of keys, that of another window first, under which two windows have a passage with equal text
    :param copies: pairs of keys under which this window has a passage with equal text
    :param alike: pairs of keys that are equal without regard to case and Unicode form
    :param answers: the number of the account's answers in the window, and `opened` of these with readable openings
    :param replaced: whether the folder had a stored proof that could not be used
    :param setup: the setup of the provider's proof that relates the names to the document table in the window header;
        None without a valid proof
    """

    window: str
    passages: int
    documents: int
    positions: Mapping[str, Sequence[int]]
    column: str | None
    undetermined: int
    earlier: tuple[str, ...]
    known: int
    renamed: _Pairs
    copies: _Pairs
    alike: _Pairs
    answers: int = 0
    opened: int = 0
    replaced: bool = False
    setup: NamesSetup | None = None

    @property
    def proved(self) -> bool:
        """Whether a proof that the provider cannot forge relates the names to the table."""
        return self.setup is not None and convinces(self.setup)

    def with_proof(self, setup: NamesSetup | None) -> NamesReport:
        """The same result once the proof is checked."""
        return replace(self, setup=setup)


def check_names(
    own: Sequence[StoredNames], earlier: Iterable[StoredNames], *, column: str | None = None
) -> NamesReport:
    """Compare the names in a window's answers with metadata, with one another and with those of earlier windows.

    :param own: the openings of the window's answers, at least one
    :param earlier: the openings of other windows
    :param column: the metadata field that names documents; by default the source of files, otherwise a field that
        equals the key of each passage, if there is one
    :raises InvalidProof: a comparison fails; the error names the document
    :raises SetupError: no passage has the field `column`
    """
    at = passages_at(own)
    names: dict[str, NamedPassage] = {}
    for passage in (passage for stored in own for passage in stored.passages):
        before = at[passage.position]
        if before.key != passage.key:
            raise InvalidProof(
                "two answers name different documents for one position",
                field=f"position {passage.position}",
                expected=brief(before.key),
                actual=brief(passage.key),
                hint=_EVIDENCE,
            )
        first = names.setdefault(passage.key, passage)
        if first.name != passage.name:
            raise InvalidProof(
                "one document has two names",
                field=f"document {brief(passage.key)}",
                expected=f"{first.name.hex()}, as at position {first.position}",
                actual=f"{passage.name.hex()} at position {passage.position}",
                hint=_EVIDENCE,
            )
    passages = [at[position] for position in sorted(at)]
    named_by, undetermined = _check_keys(passages, column)
    windows, known, renamed = _compare(own[0], passages, names, earlier)
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for passage in passages:
        positions[passage.key].append(passage.position)
    return NamesReport(
        window=own[0].window,
        passages=len(at),
        documents=len(names),
        positions=dict(positions),
        column=named_by,
        undetermined=undetermined,
        earlier=windows,
        known=known,
        renamed=renamed,
        copies=_pairs((p.text, p.key) for p in passages),
        alike=_pairs((unicodedata.normalize("NFKC", key).casefold(), key) for key in names),
        opened=len(own),
    )


def passages_at(own: Iterable[StoredNames]) -> dict[int, NamedPassage]:
    """The first opening of each position."""
    at: dict[int, NamedPassage] = {}
    for passage in (passage for stored in own for passage in stored.passages):
        at.setdefault(passage.position, passage)
    return at


def _pairs(values: Iterable[tuple[str, str]]) -> _Pairs:
    """Keys with one value: the first of these keys with each other one."""
    keys: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for value, key in values:
        keys[value][key] = None
    return tuple((first, other) for first, *others in keys.values() for other in others)


def _check_keys(passages: Sequence[NamedPassage], column: str | None) -> tuple[str | None, int]:
    """The metadata field that names documents, and the number of passages whose metadata do not determine the key."""
    if column is not None:
        if passages and not any(column in p.fields for p in passages):
            present = sorted({name for p in passages for name in p.fields})
            raise SetupError(
                "the metadata of the passages do not have the field",
                field="--document-column",
                expected=f"one of {', '.join(map(brief, present))}"
                if present
                else "no column: the passages have no metadata",
                actual=column,
                hint="ask the provider for the field that names documents",
            )
        for passage in passages:
            if not (passage.own and column not in passage.fields):
                _require(passage, column)
        return column, 0
    for passage in passages:
        if passage.column is not None:
            _require(passage, passage.column)
    others = [p for p in passages if p.column is None]
    agreeing = Counter(name for p in others for name, value in p.fields.items() if value == p.key)
    if not agreeing:
        files = len(others) < len(passages)
        return (SOURCE if files else None), sum(not p.own for p in others)
    best = max(sorted(agreeing), key=lambda name: agreeing[name])
    if any(not p.own and p.fields.get(best) != p.key for p in others):
        # The document column can be missing from the metadata, and another field can equal some keys by chance.
        return None, sum(not p.own for p in others)
    return best, 0


def _require(passage: NamedPassage, column: str) -> None:
    if (value := passage.fields.get(column)) == passage.key:
        return
    raise InvalidProof(
        "the provider names another document than the metadata of the passage",
        field=f"document {brief(passage.key)}, position {passage.position}",
        expected=f"the metadata field {brief(column)}: {'(none)' if value is None else brief(value)}",
        actual=brief(passage.key),
        hint="documents may have another column: ask the provider for it, and name it with --document-column;"
        " otherwise store the account's folder as evidence",
    )


def _compare(
    own: StoredNames,
    passages: Sequence[NamedPassage],
    names: Mapping[str, NamedPassage],
    earlier: Iterable[StoredNames],
) -> tuple[tuple[str, ...], int, _Pairs]:
    """The windows with names to compare, the number of documents that have the name of one of them, and documents that
    changed their key."""
    if not own.persistent:
        return (), 0, ()
    windows: dict[str, None] = {}
    known: set[str] = set()
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for passage in passages:
        keys[passage.text].add(passage.key)
    renamed: set[tuple[str, str]] = set()
    for stored in earlier:
        if not stored.persistent or stored.origin != own.origin:
            continue
        windows[stored.window] = None
        for passage in stored.passages:
            now = names.get(passage.key)
            if now is not None and now.name != passage.name:
                raise InvalidProof("a document has another name than in an earlier window",
                                   field=f"document {brief(passage.key)}",
                                   expected=f"{passage.name.hex()}, as in window {stored.window}",
                                   actual=f"{now.name.hex()} in window {own.window}", hint=_EVIDENCE)  # fmt: skip
            if now is not None:
                known.add(passage.key)
            if passage.key not in (under := keys.get(passage.text, set())):
                renamed.update((passage.key, key) for key in under)
    return tuple(windows), len(known), tuple(sorted(renamed))


def entry_of(window: Publication, tenant: str) -> tuple[TenantEntry, int]:
    """A tenant's entry in the header, and the number of rows of its document table.

    :raises SetupError: the tenant has no document table
    """
    entry = next((t for t in window.parsed_tenants() if t.tenant == tenant), None)
    shape = None if entry is None else window.parsed_policy().mechanism_of(tenant).table
    if entry is None or entry.table is None or shape is None:
        raise SetupError("the tenant has no document table, so its passages have no names of documents",
                         field=f"tenant {tenant}", hint="for such a tenant every figure is for one"
                         " position")  # fmt: skip
    return entry, shape.rows


def requested(at: Mapping[int, NamedPassage]) -> list[list[int]]:
    """The positions of each request for a proof: at most `MAX_POSITIONS`, all positions of a document in one request.

    :raises SetupError: a document has more positions than one request can have
    """
    of_key: defaultdict[str, list[int]] = defaultdict(list)
    for position in sorted(at):
        of_key[at[position].key].append(position)
    parts: list[list[int]] = [[]]
    for key, positions in of_key.items():
        if len(positions) > MAX_POSITIONS:
            raise SetupError(
                "the account has more passages of one document than one proof covers",
                field=f"document {brief(key)}",
                expected=f"passages at no more than {MAX_POSITIONS:,} positions",
                actual=f"{len(positions):,}",
                hint="compare the names without a proof: name the window with --window in place of --url",
            )
        if len(parts[-1]) + len(positions) > MAX_POSITIONS:
            parts.append([])
        parts[-1] += positions
    return [sorted(part) for part in parts]


def check_proof(
    window: Publication,
    tenant: str,
    at: Mapping[int, NamedPassage],
    answer: NamesAnswer,
    pins: Pins | None = None,
) -> NamesSetup:
    """Check the provider's proof that the names at the account's positions are those of the rows in the document table.

    :param at: the passage at each position of the answer
    :param pins: the account's pins of verification keys
    :returns: the proof's setup
    :raises InvalidProof: a name is another one, or the proof is false
    :raises SchemaError: the answer is about other positions
    """
    entry, rows = entry_of(window, tenant)
    assert entry.table is not None
    if (answer.header, answer.tenant) != (window.header_digest(), tenant):
        raise SchemaError("the proof is of another window or tenant", field="names",
                          expected=f"{tenant} in {window.header_digest()}",
                          actual=f"{answer.tenant} in {answer.header}")  # fmt: skip
    if (
        len(answer.names) != len(answer.positions)
        or not answer.positions
        or any(p not in at for p in answer.positions)
    ):
        raise SchemaError("the answer is about other positions than the request", field="names.positions")
    for position, name in zip(answer.positions, answer.names, strict=True):
        passage = at[position]
        if passage.name.hex() != name:
            raise InvalidProof(
                "the document table has another name than the answer opened",
                field=f"document {brief(passage.key)}, position {position}",
                expected=f"{passage.name.hex()}, the hash of salt and key",
                actual=name,
                hint="store the account's folder as evidence: the provider told the account another document than the"
                " row of the passage has",
            )
    part = window.parsed_policy().tenant(tenant)
    assert part is not None
    statement = RowNamesPublic(
        header=window.header_digest(),
        tenant=tenant,
        capacity=entry.capacity,
        rows=rows,
        table=ColumnCommitment(entry.table.c_table),
        positions=tuple(answer.positions),
        names=tuple(at[p].name for p in answer.positions),
    )
    return row_names_of(part.system).verify(statement, answer.proof, pins)
