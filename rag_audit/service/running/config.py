"""provider.toml: the configuration of `rag-audit run` in one file. Relative paths in it are relative to the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from rag_audit._internal.canonical import parse_toml, read_bytes, read_json
from rag_audit._internal.errors import PolicyError, RagAuditError, SchemaError, SetupError
from rag_audit.attest.submitting import Remote
from rag_audit.log.keys import VerifierKey
from rag_audit.log.place import SQLITE
from rag_audit.models.models import Count, Identifier, Line, Model
from rag_audit.models.policy import Policy
from rag_audit.models.publication import MAX_PUBLICATION_BYTES
from rag_audit.models.roster import load_roster
from rag_audit.proofs.policy import check_policy
from rag_audit.retrieval.chunks import MAX_CHUNK, Cutting
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, Embedder, get_embedder
from rag_audit.retrieval.noise_pool import READY_BYTES
from rag_audit.retrieval.texts import DOCUMENT_COLUMN

MAX_CONFIG_BYTES = 1 << 20
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _milliseconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if match is None or int(match[1]) == 0:
        raise ValueError("a duration such as 30s, 15m, 12h or 7d")
    return int(match[1]) * _UNITS[match[2]]


class Documents(Model):
    """[documents]: where each window's documents come from.

    :param folder: the folder of all tenants
    :param folders: instead of `folder`, the folder of each tenant by the tenant's id
    :param document_column: the field of a line that names its document (`load_directory`)
    :param chunk: maximum characters of a chunk; `overlap` and `headings` further define how files are cut (`Cutting`)
    :param vectors: the cache of document vectors
    :param skip_unreadable: omit an unreadable document, which would otherwise prevent the window
    :param given_up: the file with the documents that never return (`commit.carrying.load_given_up`)
    :param one_tenant: the tenant of all files; by default each folder at the top is a tenant
    """

    folder: str | None = None
    folders: Annotated[dict[Identifier, str], Field(default_factory=dict)]
    text_alone: bool = False
    document_column: str = DOCUMENT_COLUMN
    skip_unreadable: bool = False
    given_up: str | None = None
    one_tenant: Identifier | None = None
    chunk: int = MAX_CHUNK
    overlap: int = 0
    headings: bool = False
    vectors: str | None = None
    embedder: str = DEFAULT_EMBEDDER
    model: str | None = None

    @property
    def cutting(self) -> Cutting:
        """How files are cut."""
        return Cutting(self.chunk, self.overlap, self.headings)

    @model_validator(mode="after")
    def _somewhere(self) -> Documents:
        if (self.folder is None) != bool(self.folders):
            raise ValueError("folder, or folders with a folder for each tenant")
        if self.folders and self.one_tenant is not None:
            raise ValueError("folders names the tenants: no one_tenant")
        return self

    @property
    def places(self) -> list[tuple[str, str | None]]:
        """The folders to read, each with the tenant of all its files, or None."""
        if self.folder is not None:
            return [(self.folder, self.one_tenant)]
        return [(folder, tenant) for tenant, folder in sorted(self.folders.items())]

    @model_validator(mode="after")
    def _cut(self) -> Documents:
        try:
            _ = self.cutting
        except SetupError as exc:
            raise ValueError(f"{exc.field}: {exc.expected}") from exc
        return self


class Schedule(Model):
    """[schedule]: when windows open and close.

    :param lasts: from opening to closing; by default the policy's own interval
    :param lead: from the publication of a window header until the window opens; the witnesses have to cosign in this
        time
    :param prepare: how long before a window's closing the run prepares the next one
    :param windows: the number of windows after which the run ends; 0 continues without end
    :param prefix: the part of a window's id before its number
    """

    lasts: str | None = None
    lead: str = "5m"
    prepare: str = "1h"
    windows: Count = 0
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] = "w-"

    @field_validator("lasts", "lead", "prepare")
    @classmethod
    def _duration(cls, value: str | None) -> str | None:
        if value is not None:
            _milliseconds(value)
        return value

    @property
    def lasts_ms(self) -> int | None:
        """`lasts` in milliseconds."""
        return None if self.lasts is None else _milliseconds(self.lasts)

    @property
    def lead_ms(self) -> int:
        """`lead` in milliseconds."""
        return _milliseconds(self.lead)

    @property
    def prepare_ms(self) -> int:
        """`prepare` in milliseconds."""
        return _milliseconds(self.prepare)


class Serve(Model):
    """[serve]: who may ask where.

    :param socket: a Unix socket, as `provider serve --socket`
    :param http: host and port, as `provider serve --http`
    :param precompute: number of precomputed noise proofs for each account, as in `provider serve --precompute`
    :param low_memory: as `provider serve --low-memory`
    :param noise_mib: MiB of noise drawn ahead in each window, as `provider serve --noise-memory`
    """

    socket: Annotated[str, Field(min_length=1)] | None = None
    http: Annotated[str, Field(min_length=1)] | None = None
    precompute: Count = 0
    low_memory: bool = False
    noise_mib: Annotated[int, Field(ge=1, le=1 << 20)] = READY_BYTES >> 20

    @model_validator(mode="after")
    def _somewhere(self) -> Serve:
        if self.socket is None and self.http is None:
            raise ValueError("socket or http, or both")
        return self


class Proving(Model):
    """[proving]: what the run proves after a window closes, and on which machines.

    :param records: every record (`all`), or the records that verifiers' challenges draw (`challenged`)
    :param certify: whether the run makes a coalition proof if the policy asks for one
    :param executor: a cluster, as in `provider prove --executor`; by default this machine
    :param workers: processes on this machine; 0 proves in the service's own process
    """

    records: Literal["all", "challenged"] = "challenged"
    certify: bool = True
    executor: str | None = None
    workers: Count = 1


class Enrolling(Model):
    """[enrolment]: whether accounts may ask over HTTP for a line on the roster.

    :param requests: the book of their requests, which `rag-audit provider enrolments` shows and decides
    :param into_open: write approved accounts to the log of the open window too, if that is the one they asked for
    """

    requests: Annotated[str, Field(min_length=1)]
    into_open: bool = True


class WitnessKey(Model):
    """[[witness]]: a witness. Every window waits for its cosignatures.

    :param url: the address for requests over HTTP; without it, the witness reads the public folder itself
    :param plain: the witness only supports C2SP's tlog-witness, and gives no nonce
    :param pilot: the folder of a witness that the run itself operates, for a pilot: it is not independent of the
        provider
    """

    name: str
    vkey: str
    url: str | None = None
    plain: bool = False
    pilot: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _named(self) -> WitnessKey:
        try:
            key = VerifierKey.parse(self.vkey, field="vkey")
        except Exception as exc:
            raise ValueError("vkey is the key that `witness init` printed") from exc
        if key.name != self.name:
            raise ValueError(f"name is the name in vkey, {key.name}")
        try:
            if self.url is not None:
                Remote(key, self.url)
        except SetupError as exc:
            raise ValueError(f"url is {exc.expected}") from exc
        if self.pilot is not None and (self.plain or self.url is not None):
            raise ValueError("the run operates a pilot witness itself: pilot without url and plain")
        return self


class Config(Model):
    """The content of provider.toml.

    :param folder: the folder of the windows
    :param policy: a policy as `provider policy new` writes it; each window sets its own id and dates
    :param nonces: the folder where witnesses put the lines of `witness nonce`, one per file
    :param store: the place of the windows' ledgers, as in `provider open --store`
    :param beacon: the witnesses' nonces, or drand's quicknet; for drand, another process has to put its signatures into
        public/notes
    """

    folder: str
    key: str
    origin: Line | None = None
    policy: str
    roster: str
    nonces: str = "nonces"
    store: str = SQLITE
    beacon: Literal["witnesses", "drand"] = "witnesses"
    documents: Documents
    schedule: Schedule = Schedule()
    serve: Serve
    proving: Proving = Proving()
    enrolment: Enrolling | None = None
    witness: Annotated[list[WitnessKey], Field(min_length=1)]

    @field_validator("witness")
    @classmethod
    def _different(cls, value: list[WitnessKey]) -> list[WitnessKey]:
        if len({w.name for w in value}) != len(value):
            raise ValueError("every witness once")
        return value

    @model_validator(mode="after")
    def _asked_over_http(self) -> Config:
        if self.enrolment is not None and self.serve.http is None:
            raise ValueError("enrolment requests come over HTTP: serve.http")
        return self

    @model_validator(mode="after")
    def _beacon_of_somebody(self) -> Config:
        if self.beacon == "witnesses" and all(w.plain for w in self.witness):
            raise ValueError(
                'plain witnesses give no nonces: beacon = "drand", or a witness that is not plain'
            )
        return self


@dataclass(frozen=True)
class RunConfig:
    """A configuration with the place of its file.

    :param base: the folder that relative paths are relative to
    """

    base: Path
    told: Config

    @classmethod
    def load(cls, path: Path) -> RunConfig:
        """Read a configuration.

        :raises EncodingError: the file cannot be read, or is not TOML
        :raises SchemaError: a field is wrong, unknown or missing; it is named with its line
        """
        try:
            data = read_bytes(path, max_bytes=MAX_CONFIG_BYTES)
            value = parse_toml(data, source=str(path), max_bytes=MAX_CONFIG_BYTES)
        except RagAuditError as exc:
            inside = path / "provider.toml"
            exc.hint = exc.hint or (
                f"name the file {inside}"
                if inside.is_file()
                else "write the file as docs/deploy/README.md shows (`rag-audit init` writes one), or name another one"
            )
            raise
        try:
            return cls(path.parent, Config.parse(value, field=path.name))
        except SchemaError as exc:
            exc.hint = exc.hint or "correct this line; docs/deploy/README.md explains every field"
            cause = exc.__cause__
            if isinstance(cause, ValidationError):
                line = line_of(data.decode(), cause.errors(include_url=False)[0]["loc"])
                exc.field = f"{path}, line {line}: {str(exc.field).removeprefix(path.name).lstrip('.')}"
                if cause.errors(include_url=False)[0]["type"] == "extra_forbidden":
                    exc.expected = "a field that docs/deploy/README.md names"
            raise

    @property
    def pilots(self) -> list[tuple[VerifierKey, Path]]:
        """The witnesses that the run itself operates, with their folders."""
        return [(VerifierKey.parse(w.vkey, field="witness.vkey"), self.path(w.pilot))
                for w in self.told.witness if w.pilot is not None]  # fmt: skip

    def with_addresses(self, urls: Mapping[str, str]) -> RunConfig:
        """The configuration with the addresses of the witnesses that the run itself operates.

        :param urls: the address by the witness's name
        """
        told = [w.model_copy(update={"url": urls.get(w.name, w.url)}) for w in self.told.witness]
        return replace(self, told=self.told.model_copy(update={"witness": told}))

    def path(self, value: str) -> Path:
        """A path of the configuration, relative to the working folder if the configuration was named so."""
        return self.base / value

    @property
    def folder(self) -> Path:
        """The folder of the windows."""
        return self.path(self.told.folder)

    @property
    def witnesses(self) -> list[VerifierKey]:
        """The witnesses' keys."""
        return [VerifierKey.parse(w.vkey, field="witness.vkey") for w in self.told.witness]

    @property
    def model(self) -> Path | None:
        """The folder of the embedder's files, if it has any."""
        return None if self.told.documents.model is None else self.path(self.told.documents.model)

    def embedder(self, policy: Policy) -> Embedder:
        """The embedder, with the policy's limits.

        :raises SetupError: it is unknown, or a package or a file of it is missing
        """
        tokens = policy.tokens
        return get_embedder(
            self.told.documents.embedder,
            folder=self.model,
            query_tokens=tokens.query,
            document_tokens=tokens.document,
        )

    def check(self, now: int) -> None:
        """Read all inputs that every window needs, so that the command reports errors in them before it starts a
        service.

        :raises RagAuditError: a file cannot be read, or the policy does not fit this embedder
        """
        policy = self.policy(f"{self.told.schedule.prefix}1", now)
        from rag_audit.commit.commitment import check_limits

        embedder = self.embedder(policy)
        check_policy(policy, embedder.dimension)
        check_limits(policy, embedder)
        load_roster(self.path(self.told.roster))

    @property
    def beacon_witnesses(self) -> list[VerifierKey]:
        """The keys of the witnesses that give nonces."""
        return [VerifierKey.parse(w.vkey, field="witness.vkey") for w in self.told.witness if not w.plain]

    @property
    def remotes(self) -> list[Remote]:
        """The witnesses that are asked over HTTP."""
        return [Remote(VerifierKey.parse(w.vkey, field="witness.vkey"), w.url, w.plain)
                for w in self.told.witness if w.url is not None]  # fmt: skip

    def policy(self, window: str, opens_at: int) -> Policy:
        """The policy of one window, read anew, dated and named.

        :raises PolicyError: it is not well-formed
        """
        path = self.path(self.told.policy)
        read = Policy.parse(read_json(path, max_bytes=MAX_PUBLICATION_BYTES), field=path.name)
        lasts = self.told.schedule.lasts_ms or read.closes_at - read.opens_at
        kept = read.delete_after - read.closes_at
        result = read.model_copy(update={"window": window, "opens_at": opens_at, "closes_at": opens_at + lasts,
                                       "delete_after": opens_at + lasts + kept})  # fmt: skip
        check_policy(result, None)
        if lasts <= 0:
            raise PolicyError("the policy's window has no length", field=str(path))
        return result


def line_of(text: str, place: Sequence[str | int]) -> int:
    """The line of a TOML text with a field, or with the header of its table if the field is missing there.

    :param place: keys, and the numbers of tables in a list
    """
    tables: dict[str, int] = {}
    result, depth, where = 1, 0, ()
    wanted = tuple(place)
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if match := re.match(r"\[\[\s*([\w.-]+)\s*\]\]", line):
            count = tables[match[1]] = tables.get(match[1], -1) + 1
            where = (*match[1].split("."), count)
        elif match := re.match(r"\[\s*([\w.-]+)\s*\]", line):
            where = tuple(match[1].split("."))
        elif match := re.match(r"[\"']?([\w.-]+)[\"']?\s*=", line):
            here = (*where, *match[1].split("."))
            if here == wanted[: len(here)] and len(here) > depth:
                result, depth = number, len(here)
            continue
        else:
            continue
        if where == wanted[: len(where)] and len(where) > depth:
            result, depth = number, len(where)
    return result
