"""`rag-audit init`."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import RagAuditError, SetupError, StoreError
from rag_audit._internal.lock import lock_file
from rag_audit._internal.words import some
from rag_audit.cli.choice import RIGHTS
from rag_audit.cli.common import PATH, emit, json_option, on_terminal, reading_documents, say, verifier_key
from rag_audit.cli.count import Count, seconds_to_embed
from rag_audit.cli.init.answers import (
    FACTS,
    FILE,
    Answers,
    Given,
    WitnessAnswer,
    load_answers,
    refuse_other_answers,
)
from rag_audit.cli.init.folder import Folder
from rag_audit.cli.options import (
    flag_option,
    gathered,
    model_option,
    path_option,
    read_policy,
    service_options,
    whole_number,
)
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.mechanisms import defaults
from rag_audit.models.models import check_line
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, EMBEDDERS, get_embedder
from rag_audit.retrieval.embedders.integer_bert.installed import installed_folder
from rag_audit.retrieval.engine import smallest_capacity
from rag_audit.retrieval.inventory import Inventory, NoDocumentsError
from rag_audit.retrieval.readers import SUFFIXES
from rag_audit.retrieval.texts import DEFAULT_TENANT, LINES, DocumentPart, load_directory, tenant_id

NAME = "{folder}-{random}.example/rag"
"""The default name of a service. Its random part keeps the windows and the trust files of two pilots apart."""
HTTP = "127.0.0.1:8080"
PILOT = {"lasts": "5m", "lead": "20s", "windows": 2}
"""The schedule of a pilot: its witnesses answer at once."""
SERVICE = {"lasts": "1d", "lead": "5m", "windows": 0}
ROOM = 5, 4
"""Positions per passage of a tenant, as a fraction: room for the documents of later windows."""


MINILM_HINT = (
    "the files of minilm-int are installed: --embedder minilm-int finds more passages for questions in other words"
    " than the text's, and takes about eighty times as long to embed a passage (docs/embedders.md)"
)
"""The line for a provider who named no embedder."""


@dataclass(frozen=True)
class _Documents:
    """The options about documents."""

    docs: tuple[Path, ...]
    tenant: str | None
    skip_unreadable: bool
    embedder: str | None
    model: Path | None


@dataclass(frozen=True)
class _Promises:
    """The options about the users."""

    accounts: int | None
    questions: int | None
    rights: bool | None


@dataclass(frozen=True)
class _Parties:
    """The options about the parties."""

    name: str | None
    verifiers: tuple[str, ...]
    witnesses: tuple[str, ...]


@dataclass(frozen=True)
class _Facts:
    """The options about the service that reports show and no check reads."""

    operator: str | None
    purpose: str | None
    contact: str | None


@dataclass(frozen=True)
class _Service:
    """The options about the service and its windows."""

    http: str | None
    lasts: str | None
    lead: str | None
    windows: int | None


@click.command()
@click.argument("directory", type=PATH)
@gathered(
    "documents",
    _Documents,
    path_option(
        "--docs",
        multiple=True,
        help="the folder of the documents: PDF, HTML, Markdown, text, or <tenant>.jsonl; if it is repeated, each"
        " folder is a tenant with the folder's name",
    ),
    click.option(
        "--tenant",
        metavar="ID",
        help="the tenant of all documents; by default each folder in --docs is a tenant if --docs contains only"
        " folders, and otherwise there is one tenant",
    ),
    flag_option(
        "--skip-unreadable", help="omit and name unreadable files and those without text, instead of stopping"
    ),
    click.option(
        "--embedder", type=click.Choice(EMBEDDERS), help=f"the embedder  [default: {DEFAULT_EMBEDDER}]"
    ),
    model_option,
)
@gathered(
    "promises",
    _Promises,
    click.option(
        "--accounts",
        callback=whole_number,
        help=f"maximum accounts of a tenant  [default: {defaults.ACCOUNTS_MAX}]",
    ),
    click.option(
        "--questions",
        callback=whole_number,
        help=f"maximum questions of an account in a window  [default: {defaults.QUERIES}]",
    ),
    click.option(
        "--rights/--no-rights",
        default=None,
        help="whether users of a tenant have individual rights to documents, or need privacy from one another"
        ": then the mechanism is sampling, and otherwise pooled listing  [default: --no-rights]",
    ),
)
@gathered(
    "parties",
    _Parties,
    click.option(
        "--name",
        help="the name of the provider's key and ledger  [default: the folder's name and six random"
        " digits, such as pilot-4f09c2.example/rag]",
    ),
    click.option(
        "--verifier",
        "verifiers",
        multiple=True,
        help="the vkey of a verifier, or a file with it; repeat for each",
    ),
    click.option(
        "--witness",
        "witnesses",
        multiple=True,
        metavar="VKEY[@URL]",
        help="a witness of another party: its vkey, or a file with it, and its address; repeat for each. Without it,"
        " `rag-audit run` operates two witnesses itself, for a pilot",
    ),
)
@gathered(
    "facts",
    _Facts,
    *service_options,
)
@gathered(
    "service",
    _Service,
    click.option("--http", metavar="HOST:PORT", help=f"the address of the service  [default: {HTTP}]"),
    click.option(
        "--lasts",
        help=f"time from opening to closing  [default: {SERVICE['lasts']}; pilot: {PILOT['lasts']}]",
    ),
    click.option(
        "--lead",
        help="time before opening in which witnesses cosign  [default:"
        f" {SERVICE['lead']}; pilot: {PILOT['lead']}]",
    ),
    click.option(
        "--windows",
        type=click.IntRange(min=0),
        help=f"number of windows, 0 for no end  [default: {SERVICE['windows']}; pilot: {PILOT['windows']}]",
    ),
)
@flag_option("--yes", help="ask no question, and use the default of each omitted option")
@json_option
def init(
    directory: Path,
    documents: _Documents,
    promises: _Promises,
    parties: _Parties,
    facts: _Facts,
    service: _Service,
    yes: bool,
    as_json: bool,
) -> None:
    """Write the files of a service into DIRECTORY: keys, policy, trust file, provider.toml, pilot witnesses.

    The command counts the documents first, and asks for answers that the options omit if standard input is a terminal.
    After it, `rag-audit run DIRECTORY/provider.toml` runs the service. A repeated command completes an interrupted one,
    and never overwrites a key or another file.
    """  # fmt: skip
    given = Given(
        documents.docs, documents.tenant, parties.name, promises.accounts, promises.questions, promises.rights,
        [str(verifier_key(text, field="--verifier")) for text in parties.verifiers],
        _witnesses(parties.witnesses), service.http, service.lasts, service.lead, service.windows,
        documents.embedder, documents.model, documents.skip_unreadable,
        facts.operator, facts.purpose, facts.contact,
    )  # fmt: skip
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError.of_os_error(exc, "the folder cannot be made", field=directory) from exc
    lock = lock_file(directory / ".init.lock", wait=False)
    if lock is None:
        raise SetupError("another `rag-audit init` works on this folder", field=str(directory),
                         hint="wait for its end, and repeat the command")  # fmt: skip
    try:
        answers = load_answers(directory)
        if answers is not None:
            refuse_other_answers(answers, given, directory)
            counted: dict[str, object] = {"capacities": answers.capacities}
            say(
                f"{directory / FILE} has the answers of an earlier call; documents are not counted a second time"
            )
        else:
            _refuse_foreign(directory)
            asked = given if yes or not on_terminal() else _ask(given)
            answers, counted = _answers(asked, directory)
            replace_file(directory / FILE, answers.canonical())
        folder = Folder(directory, answers)
        made = folder.complete()
    finally:
        os.close(lock)
        if not (directory / FILE).exists():
            _remove_if_empty(directory)
    value = {"folder": str(directory), "made": made, "pilot": answers.pilot, **counted,
             "mechanisms": _mechanisms(folder), "sentences": folder.sentences()}  # fmt: skip
    emit(value, as_json, _report(folder, made))


# -- answers -------------------------------------------------------------------------------------------------


def _answers(given: Given, directory: Path) -> tuple[Answers, dict[str, object]]:
    """The answers with the defaults of the omitted ones, after the documents were counted.

    :raises RagAuditError: an answer is not valid, or a document cannot be read; nothing was written
    """
    if not given.docs:
        raise SetupError("no folder of documents is named", field="--docs", expected="a folder",
                         hint=f"rag-audit init {directory} --docs FOLDER")  # fmt: skip
    if given.one_tenant is not None and len(given.docs) > 1:
        raise SetupError("each of several folders is a tenant of its own", field="--tenant", expected="one --docs",
                         actual=given.one_tenant, hint="omit --tenant, or move the folders into one")  # fmt: skip
    tenant = given.one_tenant
    if tenant is None and len(given.docs) == 1:
        tenant = _one_tenant(given.docs[0])
        if tenant is not None and (folders := _folders(given.docs[0])):
            say(f"WARNING: all documents below {given.docs[0]} become one tenant, {tenant}, whose accounts can retrieve"
                f" all of them, because files lie beside the folders {some(folders, 3)}. If each folder is a tenant,"
                " move the files into a folder and repeat the command.")  # fmt: skip
    if tenant is not None:
        tenant_id(tenant, "--tenant")
    embedder = given.embedder or DEFAULT_EMBEDDER
    _check_config(given)
    counts, counted = _count(given, tenant, embedder)
    schedule = SERVICE if given.witnesses else PILOT
    values = {
        "v": 1,
        "name": check_line(given.name or _own_name(directory), field="--name"),
        "docs": [os.path.abspath(folder) for folder in given.docs],
        "one_tenant": tenant,
        "accounts": given.accounts or defaults.ACCOUNTS_MAX,
        "questions": given.questions or defaults.QUERIES,
        "rights": given.rights is True,
        "verifiers": [*given.verifiers],
        "witnesses": [w.dump() for w in given.witnesses],
        "http": given.http or HTTP,
        "lasts": given.lasts or schedule["lasts"],
        "lead": given.lead or schedule["lead"],
        "windows": schedule["windows"] if given.windows is None else given.windows,
        "embedder": embedder,
        "model": None if given.model is None else os.path.abspath(given.model),
        "skip_unreadable": given.skip_unreadable,
        "capacities": {c.tenant: _capacity(c) for c in counts},
        "tables": {c.tenant: _table(c) for c in counts},
        **{name: getattr(given, name) for name in FACTS},
    }
    answers = Answers.parse(values, field="answers")
    SigningKey.generate(answers.name)  # refuses a name that no key can have, before anything is written
    Folder(directory, answers).policy()  # refuses numbers that no policy can have
    return answers, counted


def _check_config(given: Given) -> None:
    """Refuse an address or a duration that provider.toml cannot have, before documents are read.

    :raises SetupError: a value has another form; the error names its option
    """
    from rag_audit.service.running.config import Schedule, Serve
    from rag_audit.service.server import parse_address

    if given.http is not None:
        parse_address(given.http, field="--http")
        Serve.parse({"http": given.http}, field="--http")
    for name, value in (("lasts", given.lasts), ("lead", given.lead)):
        if value is None:
            continue
        try:
            Schedule.parse({name: value}, field="schedule")
        except RagAuditError as exc:
            exc.field = f"--{name}"
            raise


def _own_name(directory: Path) -> str:
    """The name of the key that is in the folder already, or a new default name, which no other service has."""
    path = directory / "provider.skey"
    if path.exists():
        return SigningKey.load(path).name
    folder = re.sub(r"[^a-z0-9]+", "-", directory.resolve().name.lower()).strip("-")[:40].rstrip("-")
    return NAME.format(folder=folder or "pilot", random=secrets.token_hex(3))


def _refuse_foreign(directory: Path) -> None:
    """Refuse a folder with a configuration that this command did not write.

    :raises SetupError: there is one
    """
    for name in ("provider.toml", "policy.json", "trust.toml"):
        if (directory / name).exists():
            raise SetupError("the folder has a file that `rag-audit init` did not write", field=str(directory / name),
                             expected=f"{FILE} beside it", hint="name another folder")  # fmt: skip


def _remove_if_empty(directory: Path) -> None:
    """Remove the folder of a refused call, if it contains only the lock."""
    if [path.name for path in directory.iterdir()] == [".init.lock"]:
        (directory / ".init.lock").unlink()
        directory.rmdir()


def _witnesses(items: Sequence[str]) -> list[WitnessAnswer]:
    """The witnesses of the option.

    :raises SetupError: a witness has no valid key or address, or two witnesses have one name
    """
    result: list[WitnessAnswer] = []
    names: set[str] = set()
    for item in items:
        text, at, url = item.rpartition("@http")
        key = _witness_key(text if at else item, item)
        if key.name in names:
            raise SetupError("two witnesses have one name", field="--witness", expected="each witness once",
                             actual=key.name)  # fmt: skip
        names.add(key.name)
        address = f"http{url}" if at else None
        _check_witness(key, address)
        result.append(WitnessAnswer(vkey=str(key), url=address))
    return result


def _witness_key(text: str, item: str) -> VerifierKey:
    try:
        return verifier_key(text, field="--witness")
    except RagAuditError as exc:
        exc.expected, exc.actual = "VKEY[@URL], or FILE[@URL] with the line of `rag-audit witness init`", item
        exc.hint = "ask the witness for its key and address; without --witness the command makes a pilot"
        raise


def _check_witness(key: VerifierKey, url: str | None) -> None:
    from rag_audit.service.running.config import WitnessKey

    WitnessKey.parse({"name": key.name, "vkey": str(key), "url": url}, field="--witness")


# -- documents -----------------------------------------------------------------------------------------------


def _one_tenant(docs: Path) -> str | None:
    """The tenant of all documents if the folder contains documents as well as folders; None otherwise."""
    try:
        entries = [entry for entry in os.scandir(docs) if not entry.name.startswith(".")]
    except OSError:
        return None  # reading the documents names the fault
    names = [entry.name.lower() for entry in entries if not entry.is_dir()]
    if any(name.endswith(LINES) for name in names):
        return None
    return DEFAULT_TENANT if any(Path(name).suffix in SUFFIXES for name in names) else None


def _folders(docs: Path) -> list[str]:
    """The names of the visible folders at the top of a folder of documents."""
    return sorted(p.name for p in _listed(docs) if p.is_dir() and not p.name.startswith("."))


def _count(given: Given, tenant: str | None, embedder_name: str) -> tuple[list[Count], dict[str, object]]:
    """Read and count the documents, print the sizes, and estimate the time to embed them.

    :raises RagAuditError: a document cannot be read, or a tenant has no document
    """
    inventory, read = Inventory(), dict[str, list[DocumentPart]]()
    with reading_documents() as show:
        for docs, own in _places(given.docs, tenant):
            parts = load_directory(docs, text_alone=False, skip_unreadable=given.skip_unreadable, one_tenant=own,
                                   inventory=inventory, progress=show)  # fmt: skip
            _refuse_empty_tenants(docs, own, parts, inventory, skip=given.skip_unreadable)
            read |= parts
    embedder = get_embedder(embedder_name, folder=given.model)
    counts = [Count.of(inventory, name, parts, embedder) for name, parts in sorted(read.items())]
    seconds = seconds_to_embed(embedder, read)
    omissions = (
        told for told in inventory.lines() if not told.startswith("read ")
    )  # the counts have the sizes
    for told in [*(told for own in counts for told in own.lines()), *omissions]:
        say(told)
    say(f"embedding: about {seconds:.0f} s on this machine with {embedder_name}" if seconds is not None
        else f"embedding: no estimate, since {embedder_name} gives some texts of the sample no vector")  # fmt: skip
    if given.embedder is None and installed_folder() is not None:
        say(MINILM_HINT)
    return counts, {
        "tenants": {own.tenant: own.as_json() for own in counts},
        "seconds_to_embed": None if seconds is None else round(seconds, 1),
    }


def _places(folders: Sequence[Path], tenant: str | None) -> list[tuple[Path, str | None]]:
    """The folders to read, each with the tenant of all its files, or None.

    :raises SetupError: two folders have one name
    """
    if len(folders) == 1:
        return [(folders[0], tenant)]
    names = [Path(os.path.abspath(folder)).name for folder in folders]
    for name in names:
        tenant_id(name, f"--docs {name}")
    if len(set(names)) < len(names):
        raise SetupError("two folders have one name, which is their tenant's", field="--docs",
                         expected="different names", actual=", ".join(names))  # fmt: skip
    return list(zip(folders, names, strict=True))


def _refuse_empty_tenants(
    docs: Path,
    tenant: str | None,
    read: Mapping[str, Sequence[DocumentPart]],
    inventory: Inventory,
    *,
    skip: bool,
) -> None:
    """Refuse a folder that should be a tenant and contains no document.

    :raises NoDocumentsError: a tenant has no document; the error names the omitted files
    """
    if tenant is not None or any(path.suffix.lower() == LINES for path in docs.iterdir()):
        return
    folders = [p.name for p in sorted(docs.iterdir()) if p.is_dir() and not p.is_symlink()]
    for name in folders:
        if not name.startswith(".") and not read.get(name):
            if skip:
                say(f"omitted: {name} has no document, so it is no tenant")
                continue
            raise NoDocumentsError("a tenant has no document", field=str(docs / name),
                                   expected=f"a file ending in {', '.join(sorted(SUFFIXES))}", inventory=inventory,
                                   hint="add a document, remove the folder, or omit it with"
                                        " --skip-unreadable")  # fmt: skip


def _capacity(count: Count) -> int:
    """The capacity of a tenant: with room for later documents, and large enough for the share K/N that trust files
    accept."""
    passages = count.inventory.sizes(count.tenant).positions
    return smallest_capacity(-(-passages * ROOM[0] // ROOM[1]))


def _table(count: Count) -> dict[str, int]:
    """The document table of a tenant: round numbers, with room for later and for larger documents. Each window replaces
    up to a quarter of the rows."""
    sizes = count.inventory.sizes(count.tenant)
    rows = min(_capacity(count), smallest_capacity(-(-sizes.documents * 5 // 3)))
    positions = min(_capacity(count), smallest_capacity(-(-sizes.maximum * ROOM[0] // ROOM[1]), 4))
    fresh = max(1, min(rows // 4, rows - -(-sizes.documents * 9 // 8)))
    return {"rows": rows, "positions_per_document": positions, "fresh_rows": fresh}


# -- questions and report ------------------------------------------------------------------------------------


def _ask(given: Given) -> Given:
    """Ask for the omitted answers."""

    def text(question: str, default: str | None = None) -> str:
        return str(click.prompt(question, default=default, err=True, show_default=bool(default)))

    folders = [*given.docs] or [Path(text("folder of the documents"))]
    docs, tenant = folders[0], given.one_tenant
    several = len(folders) == 1 and tenant is None and _one_tenant(docs) is None
    several = several and not any(p.suffix == LINES for p in _listed(docs))
    if several and not click.confirm("is each folder in it a tenant of its own?", default=True, err=True):
        tenant = text("name of the one tenant", DEFAULT_TENANT)
    accounts = given.accounts or int(click.prompt("maximum accounts of a tenant", type=click.IntRange(1),
                                                  default=defaults.ACCOUNTS_MAX, err=True))  # fmt: skip
    questions = given.questions or int(click.prompt("maximum questions of an account in a window",
                                                    type=click.IntRange(1), default=defaults.QUERIES,
                                                    err=True))  # fmt: skip
    rights = given.rights if given.rights is not None else click.confirm(
        RIGHTS, default=None, err=True)  # fmt: skip
    verifiers = given.verifiers or [
        str(verifier_key(word, field="--verifier"))
        for word in text("vkeys of verifiers, separated by spaces (empty: none)", "").split()
    ]
    witnesses = given.witnesses or _witnesses(
        text(
            "witnesses as VKEY@URL, separated by spaces (empty: a pilot with two local witnesses)", ""
        ).split()
    )

    def fact(name: str, earlier: str | None) -> str | None:
        said = earlier or text(f"{name} of the service, for reports (empty: not stated)", "")
        return check_line(said, field=f"--{name}") if said else None

    return replace(given, docs=folders, one_tenant=tenant, accounts=accounts, questions=questions, rights=rights,
                   verifiers=verifiers, witnesses=witnesses, operator=fact("operator", given.operator),
                   purpose=fact("purpose", given.purpose), contact=fact("contact", given.contact))  # fmt: skip


def _listed(docs: Path) -> list[Path]:
    try:
        return [*docs.iterdir()]
    except OSError:
        return []


def _mechanisms(folder: Folder) -> dict[str, str]:
    policy = read_policy(folder.path / "policy.json")
    return {tenant.tenant: policy.mechanism(tenant).name for tenant in policy.tenants}


def _report(folder: Folder, made: Sequence[str]) -> list[str]:
    """The result for people: sizes, sentences for users, files, and the next commands."""
    answers, path = folder.answers, folder.path
    config = path / "provider.toml"
    account = path / "accounts" / answers.tenants[0]
    head = [f"{tenant}: capacity {answers.capacities[tenant]} positions, mechanism {mechanism}"
            for tenant, mechanism in _mechanisms(folder).items()]  # fmt: skip
    pilot = ["PILOT: the two witnesses and the accounts are NOT independent of the provider. For production,"
             " name witnesses of other parties (--witness); verifiers and accounts make their own keys."]  # fmt: skip
    asks = [f"send {path / 'provider.skey.pub'} to each witness, which starts `rag-audit witness serve` with a trust"
            " file for this provider (docs/witnesses.md)",
            "Only independent accounts count for min_receipts, and the accounts of this folder are not independent:"
            " each verifier adds independent accounts to its own trust file (docs/verifier.md)"]  # fmt: skip
    return [
        *head,
        "",
        f"sentences for users ({path / 'users.txt'}):",
        *folder.sentences(),
        "",
        f"written: {', '.join(made)}" if made else "every file exists already",
        *(pilot if answers.pilot else asks),
        "",
        "next:",
        f"  rag-audit run {config}",
        f'  rag-audit account query "QUESTION" --account {account} --url http://{answers.http}'
        f" --provider {path / 'provider.skey.pub'} --receipts {path / 'receipts'}"
        + ("" if answers.model is None else f" --model {answers.model}"),
        "after the window's end, once `rag-audit run` has printed that window.json is complete:",
        f"  rag-audit verify {path / 'run/windows/w-1/public'} --trust {path / 'trust.toml'}"
        f" --receipts {path / 'receipts/w-1'}",
    ]
