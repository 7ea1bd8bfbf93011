"""`rag-audit verifier trust`: a verifier's trusted keys and requirements, in the verifier's own file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from rag_audit._internal.canonical import Json, digest_hex, read_json
from rag_audit._internal.durable import create_file
from rag_audit._internal.errors import SchemaError, SetupError, StoreError, brief
from rag_audit.cli.common import PATH, Group, emit, lines, on_terminal, say, verifier_key
from rag_audit.cli.options import choice_option, gathered, line, path_option, read_policy, service_options
from rag_audit.cli.setup import (
    Circuits,
    batch_option,
    checked_pins,
    circuits_options,
    ptau_digest_option,
)
from rag_audit.log.note import parse_note
from rag_audit.mechanisms import ALL, defaults
from rag_audit.models.manifest import manifest_digest, re_executable
from rag_audit.models.models import check_line
from rag_audit.models.records import RosterEntry
from rag_audit.models.trust import MAX_EMPTY, WHOLE_WINDOW, CircuitPin, Pins, Require, Trust
from rag_audit.models.trust_template import trust_template
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends import protocols_digest
from rag_audit.proofs.statements.coalition import MAX_DIMENSION
from rag_audit.relation.noise import table_digest
from rag_audit.retrieval.embedders import (
    DEFAULT_EMBEDDER,
    EMBEDDERS,
    OF_A_PLACE,
    check_pins,
    get_embedder,
    public_artefacts,
    public_manifest,
    published_constants,
)
from rag_audit.verify.drawing import header_entry

COUNT = re.compile(r"[0-9]{1,15}")
REMARKS = {
    "max_epsilon": "for min_k_max accounts: exp(10) is a factor of 22,000 in odds, so smaller is better",
    "max_exclusion_factor": "for sampling, and for pooled listing over all windows of the chain that you supply",
    "max_fresh_share": "maximum share of the rows of a document table that each window replaces",
    "max_exposure": "maximum number of documents that min_k_max accounts of a tenant can read together",
    "max_delta": "far below one over the number of documents",
    "min_k_max": "accounts that pool their answers",
    "max_theta": "for 16 accounts of 200 questions; `rag-audit provider estimate calibrate` finds it for other sizes",
    "min_tau": "0 is the whole window; otherwise a text with a unit, for example 500 positions or 3600 seconds",
    "max_K_share": "maximum share of a tenant's positions in one answer",
    "max_abandoned": "windows abandoned since the last complete one: each is one more draw of the seed",
    "max_empty": "windows without a query since the last complete one: each is one more draw of the seed",
    "min_receipts": "receipts of the accounts above",
}
"""Comments in the file that explain the defaults."""
PROTECTING = [kind.name for kind in ALL if kind.protects]
"""The mechanisms with a figure of privacy: `init` and `provider policy new` choose among them."""


@click.group(cls=Group)
def trust() -> None:
    """Write the trust file of a verifier."""


@dataclass(frozen=True)
class _Parties:
    """The options about the parties whose keys the verifier trusts."""

    origin: str | None
    provider: str | None
    witnesses: tuple[str, ...]
    quorum: int | None
    verifiers: tuple[str, ...]
    accounts: tuple[Path, ...]

    def read(self) -> dict[str, object]:
        """The parties, as the trust file lists them. Missing names and keys are asked for.

        :raises RagAuditError: a key or a roster line cannot be read, or a key is missing and no person can answer
        """
        given = {"--origin": self.origin, "--provider": self.provider, "--witness": self.witnesses}
        if (absent := [option for option, value in given.items() if not value]) and not on_terminal():
            raise SetupError("a trust file needs the provider's name, its key and the keys of witnesses",
                             field=", ".join(absent), expected="a value of each of these options", actual="none",
                             hint="ask each party for its own key; on a terminal, the command asks for them"
                                  " (`rag-audit verifier trust new --help`)")  # fmt: skip
        origin = self.origin or check_line(
            str(click.prompt("the provider's origin", err=True)), field="origin"
        )
        provider = self.provider or click.prompt("the provider's vkey (from the provider itself)", err=True)
        witnesses = (
            self.witnesses or click.prompt("the witnesses' vkeys, separated by spaces", err=True).split()
        )
        keys = [verifier_key(text, field="--witness") for text in witnesses]
        independent = [
            RosterEntry.parse(read_json(path, max_bytes=65_536), field=f"--account {path.name}")
            for path in self.accounts
        ]
        vkey = str(verifier_key(str(provider), field="--provider"))
        verifiers = [verifier_key(text, field="--verifier") for text in self.verifiers]
        return {
            "quorum": self.quorum or len(keys),
            "provider": {"origin": origin, "vkey": vkey},
            "witness": [{"name": key.name, "vkey": str(key)} for key in keys],
            "beacon": {"witnesses": [key.name for key in keys]},
            "verifier": [{"name": key.name, "vkey": str(key)} for key in verifiers],
            "account": [{"id": line.account, "key": line.key} for line in independent],
        }


@dataclass(frozen=True)
class _Statements:
    """The options about service and witnesses that no check reads. Reports show them as the verifier's own words."""

    purpose: str | None
    operator: str | None
    contact: str | None
    keys_made_by: str | None
    relations: tuple[str, ...]
    dependent: tuple[str, ...]

    def added(self, known: dict[str, object]) -> dict[str, object]:
        """The parties with these statements.

        :raises SetupError: a statement names no witness of the file, or a witness twice
        """
        service = {
            name: value
            for name in ("purpose", "operator", "contact", "keys_made_by")
            if (value := getattr(self, name)) is not None
        }
        witnesses: list[dict[str, object]] = [*known["witness"]]  # type: ignore[misc]
        by_name = {str(witness["name"]): witness for witness in witnesses}
        for text in self.relations:
            name, _, words = text.partition("=")
            witness = _named(by_name, name, "--relation")
            if not words:
                raise SetupError(
                    "the relation has no words", field="--relation", expected="NAME=TEXT", actual=text
                )
            if "relation" in witness:
                raise SetupError(
                    "a witness has two relations", field="--relation", expected="one", actual=name
                )
            witness["relation"] = check_line(words, field="--relation")
        for name in self.dependent:
            _named(by_name, name, "--not-independent")["independent"] = False
        return {**known, "witness": witnesses, "service": service}


def _named(witnesses: Mapping[str, dict[str, object]], name: str, option: str) -> dict[str, object]:
    if name not in witnesses:
        raise SetupError("no witness of the file has this name", field=option,
                         expected=", ".join(witnesses), actual=name)  # fmt: skip
    return witnesses[name]


@dataclass(frozen=True)
class _Keys:
    """The options about the circuits' keys."""

    setups: tuple[Path, ...]
    zkeys: tuple[str, ...]
    policy: Path | None
    ptau: Path | None
    circuits: Circuits

    def pins(self) -> list[CircuitPin]:
        """The keys that this command checks, and the keys in someone else's files."""
        checked = checked_pins(self.zkeys, policy=self.policy, ptau=self.ptau, circuits=self.circuits)
        return [*checked, *(pin for path in self.setups for pin in _pins(path))]


@trust.command("new")
@click.argument("out", type=PATH)
@gathered(
    "parties",
    _Parties,
    click.option("--origin", callback=line, help="the provider's ledger name"),
    click.option("--provider", help="the provider's vkey, or a file with it"),
    click.option("--witness", "witnesses", multiple=True, help="a witness's vkey; repeat for each"),
    click.option(
        "--quorum",
        type=click.IntRange(min=1),
        help="number of cosignatures, more than half of the witnesses; all witnesses by default",
    ),
    click.option(
        "--verifier", "verifiers", multiple=True, help="the vkey of a verifier with valid challenges"
    ),
    path_option("--account", "accounts", multiple=True, help="roster line of an independent account"),
)
@gathered(
    "statements",
    _Statements,
    *service_options,
    click.option("--keys-made-by", callback=line, help="who made the keys of the proofs, for reports"),
    click.option(
        "--relation",
        "relations",
        multiple=True,
        metavar="WITNESS=TEXT",
        help="a witness's relation to the provider, for reports; repeat for each",
    ),
    click.option(
        "--not-independent",
        "dependent",
        multiple=True,
        metavar="WITNESS",
        help="a witness that the provider operates: every verdict then says so; repeat for each",
    ),
)
@gathered(
    "keys",
    _Keys,
    path_option(
        "--setup",
        "setups",
        multiple=True,
        help="output of `rag-audit provider setup new --json`: circuits and keys that this command does not"
        " check, so it pins them as unsafe",
    ),
    click.option(
        "--zkey",
        "zkeys",
        multiple=True,
        metavar="[CIRCUIT=]FILE",
        help="a proving key; the command checks it with --policy and --ptau (`provider setup verify`) and pins it",
    ),
    path_option(
        "--policy",
        help="a policy with the mechanisms that you accept and the circuits of --zkey; its own figures set"
        f" no limit, but max_epsilon is {defaults.EPS_POOLED_LISTING} instead of {defaults.EPS_JOINT} if it has"
        f" pooled listing and no noise  [default: accept {', '.join(PROTECTING)}, with"
        f" max_epsilon {defaults.EPS_POOLED_LISTING}]",
    ),
    path_option("--ptau", help="the powers of tau of the --zkey"),
    circuits_options(
        ptau_digest_option,
        choice_option(
            "--embedder",
            choices=EMBEDDERS,
            default=DEFAULT_EMBEDDER,
            help="pin the public artefacts of this embedder, and require its score window",
        ),
        path_option(
            "--model",
            help="pin the files in this folder (or of this embedder.toml) from the embedder's publisher",
        ),
        batch_option,
    ),
)
@path_option("--show", help="show the unverified fingerprints in a window, and pin none of them")
@click.option(
    "--require", "settings", multiple=True, metavar="KEY=VALUE", help="a requirement, e.g. max_epsilon=8"
)
def trust_new(
    out: Path,
    parties: _Parties,
    statements: _Statements,
    keys: _Keys,
    show: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Write a commented trust.toml with strict defaults, and prompt for missing keys.

    The command does not overwrite an existing file.
    """
    if show is not None:
        _show(show)
    if out.exists():  # before anything is asked for
        raise StoreError("the file exists already and is not overwritten", field=str(out),
                         hint="edit the file, or choose another name")  # fmt: skip
    known, circuits = statements.added(parties.read()), keys.pins()
    embedder, model = keys.circuits.embedder, keys.circuits.model
    require = requirements(settings, embedder, model, _mechanisms(keys.policy))
    trusted = trust_of(known, circuits, embedder, model, require)
    text = trust_template(trusted, REMARKS)
    if Trust.from_toml(text.encode(), source="trust.toml").minority_quorum:
        say(
            f"warning: a quorum of {trusted.quorum} of {len(trusted.witness)} witnesses: honest witnesses can"
            " cosign two different ledgers; every verdict will contain allow=minority-quorum"
        )
    if trusted.pilot:
        say(
            "warning: a quorum needs a witness that is not independent of the provider: every verdict will contain"
            " allow=pilot-witnesses, and shows nothing to a party that does not trust the provider"
        )
    if trusted.assumptions["dependent-quorum"]:
        say(
            "warning: two quorums may have only witnesses of the provider in common: every verdict will contain"
            " allow=dependent-quorum, and no report claims that there is one ledger only"
        )
    if trusted.assumptions["dependent-beacon"]:
        say(
            "warning: every witness of the beacon is dependent on the provider: every verdict will contain"
            " allow=dependent-beacon, and no report claims that the provider could not choose the randomness"
        )
    if not trusted.account:
        say("without --account no window can pass: a verdict needs receipts of independent accounts")
    create_file(out, text.encode())
    emit({"trust": str(out)}, False, str(out))


def trust_of(
    known: Mapping[str, object],
    circuits: Sequence[CircuitPin],
    embedder: str,
    model: Path | None,
    require: Require,
) -> Trust:
    """A trust file with the pins of this release and of an embedder.

    :param known: the parties, as the trust file lists them
    :param circuits: the pinned keys of circuits
    :param model: the folder of the embedder's files, if it has any
    :raises RagAuditError: a value is not valid in a trust file, or a file of the embedder cannot be read
    """
    if model is None and embedder not in OF_A_PLACE:
        artefacts, manifest = public_artefacts(embedder), manifest_digest(public_manifest(embedder))
    else:
        files = get_embedder(embedder, folder=model)
        check_pins(files)  # another process may have written the user's cache
        own = files.manifest()
        artefacts, manifest = dict(own["artefacts"]), manifest_digest(own)
    pins = Pins(
        noise_table=table_digest(),
        groth16=[*circuits],
        embedder=artefacts,
        manifest=manifest,
        scan=protocols_digest(),
    )
    return Trust.parse({"version": 1, **known, "pins": pins, "require": require}, field="trust.toml")


def _pins(path: Path) -> list[CircuitPin]:
    """The pins in the file of another party. The verifier checks with `--zkey` whether a key comes from a ceremony, or
    edits its own trust.toml.
    """
    value = read_json(path, max_bytes=1 << 20)
    keys = value.get("keys") if isinstance(value, dict) else None
    listed = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else None
    if not isinstance(keys, list) or listed is None or len(listed) < len(keys):
        raise SchemaError("the file is not the output of `rag-audit provider setup`", field=str(path),
                          expected="{keys: [{circuit, vk, setup}, ..]}")  # fmt: skip
    pins = [
        CircuitPin.parse({k: v for k, v in key.items() if k in ("circuit", "vk", "setup")},
                         field=f"{path.name}.keys[{i}]")
        for i, key in enumerate(listed)
    ]  # fmt: skip
    for pin in pins:
        if pin.setup != "unsafe":
            say(
                f"{path.name}: circuit {pin.circuit[:16]} is pinned as unsafe:"
                f" this command does not check that its setup is {pin.setup} (--zkey does)"
            )
    return [pin.model_copy(update={"setup": "unsafe"}) for pin in pins]


def _mechanisms(policy: Path | None) -> list[str] | None:
    """The mechanisms in the policy that the verifier names; None if the verifier names no policy."""
    if policy is None:
        return None
    read = read_policy(policy)
    names = sorted({read.mechanism(tenant).name for tenant in read.tenants})
    say(f"accepted mechanisms: {', '.join(names)}; docs/accounting.md describes their guarantees")
    return [*names]


def requirements(
    settings: tuple[str, ...],
    embedder: str,
    model: Path | None,
    mechanisms: Sequence[str] | None,
) -> Require:
    """The requirements: the defaults, replaced by the given settings. A window with a default policy meets the
    defaults.

    :param mechanisms: the accepted mechanisms if no setting names them; None accepts `PROTECTING`, with the limit of
        epsilon that the default policies of all of them meet
    """
    for setting in settings:
        if setting.startswith("mechanisms="):
            mechanisms = setting.partition("=")[2].split(",")
    with_epsilon = [m for m in ALL if m.name in (mechanisms or ()) and m.limit == "max_epsilon"]
    pools = mechanisms is None or (bool(with_epsilon) and all(m.pools for m in with_epsilon))
    limit = defaults.EPS_POOLED_LISTING if pools else defaults.EPS_JOINT
    if mechanisms is None:
        mechanisms = PROTECTING
        say(
            f"accepted mechanisms: {', '.join(mechanisms)}, with an epsilon of at most {limit}, because no --policy"
            " names the mechanisms; --policy FILE accepts the mechanisms of a policy only, and --require"
            f" mechanisms=noise accepts noise only, with an epsilon of at most {defaults.EPS_JOINT}"
        )
    published = published_constants(embedder, model)
    lo, hi = published.score_window
    unproved = "re-executed" if re_executable(embedder) else "declared"
    values: dict[str, Json] = {
        "mechanisms": [*mechanisms],
        "max_epsilon": limit,
        "max_exclusion_factor": defaults.EXCLUSION_FACTOR_POOLED_LISTING
        if any(m.pools for m in ALL if m.name in mechanisms)
        else defaults.EXCLUSION_FACTOR,
        "min_keep": defaults.MIN_KEEP,
        "max_delta": defaults.DELTA,
        "min_k_max": defaults.K_MAX,
        "max_theta": defaults.THETA,
        "min_tau": defaults.TAU,
        "max_K_share": defaults.K_SHARE,
        "max_score_hi": hi,
        "min_score_width": hi - lo,
        "max_abandoned": 0,
        "max_empty": MAX_EMPTY,
        "min_receipts": defaults.RECEIPTS,
        # Without an integer normalisation there is no proof of A1; disclosed queries are re-embedded if possible.
        "coalition": "checked" if published.dimension <= MAX_DIMENSION else "not-checked",
        "query_embedding": "proved" if published.table is not None else unproved,
    }
    for setting in settings:
        key, _, text = setting.partition("=")
        integer = key in (
            "min_k_max",
            "max_score_hi",
            "min_score_width",
            "max_abandoned",
            "max_empty",
            "max_exposure",
            "min_receipts",
        )
        integer = integer or (key, text) == ("min_tau", WHOLE_WINDOW)
        _check_setting(setting, integer=integer)
        if key == "mechanisms":
            values[key] = [*text.split(",")]
            continue
        flag = key.startswith("allow_")
        if flag and text not in ("true", "false"):
            raise SetupError(
                "the value is not true or false",
                field=f"--require {key}",
                expected="true or false",
                actual=text,
            )
        values[key] = int(text) if integer else (text == "true") if flag else text
    return Require.parse(values, field="--require")


def _check_setting(setting: str, *, integer: bool) -> None:
    """Refuse a setting that is not KEY=VALUE of a requirement.

    :param integer: whether the requirement takes a whole number
    :raises SetupError: the key is unknown, the value is missing, or the value is not a whole number
    """
    key, _, text = setting.partition("=")
    if key not in Require.model_fields:
        near = difflib.get_close_matches(key, sorted(Require.model_fields), n=1, cutoff=0.6)
        raise SetupError(
            "the setting names no requirement",
            field="--require",
            expected=near[0] if near else "a key below [require] of docs/protocol.md",
            actual=key,
            hint=f"did you mean {near[0]}?" if near else None,
        )
    if not text:
        raise SetupError(
            "the setting has no value", field=f"--require {key}", expected=f"{key}=VALUE", actual=setting
        )
    if integer and not COUNT.fullmatch(text):
        raise SetupError(
            "the value is not a whole number",
            field=f"--require {key}",
            expected="a whole number",
            actual=text,
        )


def _show(path: Path) -> None:
    file = WindowFile.load(path)
    signatures = parse_note(file.header_checkpoint, field="header_checkpoint").signatures
    shown = [
        "values in the window, UNVERIFIED and not pinned:",
        f"  origin {header_entry(file).origin}",
        *(f"  signed by {signature.name} key id {signature.key_id.hex()}" for signature in signatures),
    ]
    embedder = file.embedder.get("embedder")
    if isinstance(embedder, dict):
        shown.append(f"  embedder {brief(embedder.get('kind'))} manifest {manifest_digest(embedder)}")
    shown += [f"  circuit {circuit} key {digest_hex(key)}" for circuit, key in file.verification_keys.items()]
    click.echo(lines(shown), err=True)
