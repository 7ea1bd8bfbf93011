"""`rag-audit verify`, `challenge` and `trust`: the verifier's side."""

from __future__ import annotations

import re
from pathlib import Path

import click

from rag_audit.cli.common import PATH, Group, emit, json_option, lines, say, signing_key, verifier_key
from rag_audit.cli.setup import checked_pins, dimension_option, ptau_digest_option, together_option
from rag_audit.encoding.canonical import Json, digest_hex, jcs, read_json
from rag_audit.encoding.durable import replace_file
from rag_audit.errors import SchemaError, SetupError, brief
from rag_audit.errors.printable import json_text
from rag_audit.formats.challenge import Challenge, sample_size
from rag_audit.formats.policy import DEFAULT_SCORE_WINDOW
from rag_audit.formats.records import Opening, RosterEntry, log_origin, parse_entry
from rag_audit.formats.trust import WHOLE_WINDOW, Groth16Pin, Require, Trust, decimal, trust_template
from rag_audit.formats.windowfile import WindowFile
from rag_audit.index.embedders import get_embedder, manifest_digest, public_artefacts, public_manifest
from rag_audit.ledger.checkpoint import Checkpoint, open_checkpoint
from rag_audit.ledger.keys import VerifierKey
from rag_audit.ledger.merkle import HashTree, leaf_hash
from rag_audit.ledger.note import parse_note, sign_note
from rag_audit.proofs.scan import protocols_digest
from rag_audit.relation.noise import table_digest

COUNT = re.compile(r"[0-9]{1,15}")


@click.command()
@click.argument("window", type=PATH)
@click.option("--trust", type=PATH, required=True, help="what this verifier trusts (`rag-audit trust new`)")
@click.option("--receipts", type=PATH, multiple=True, help="countersigned receipts: files or folders")
@click.option(
    "--previous",
    type=PATH,
    multiple=True,
    help="a window before this one, to check the chain; repeat for each",
)
@click.option(
    "--engine", type=click.Choice(["native", "py_ecc", "snarkjs"]), default="native", show_default=True
)
@click.option(
    "--challenge",
    "challenges",
    type=PATH,
    multiple=True,
    help="the challenge that this verifier drew itself; the one in WINDOW may be of the provider's choice",
)
@click.option("--max-epsilon", help="a tighter limit than trust.toml's")
@click.option("--allow-unsafe-setup", is_flag=True, help="accept one-party keys; printed in the verdict")
@click.option(
    "--model", type=PATH, help="the folder of an ONNX embedder's files, to embed disclosed queries again"
)
@click.option("--offline", is_flag=True, default=True, help="no network (the default, and the only mode)")
@json_option
@click.pass_context
def verify(
    ctx: click.Context,
    window: Path,
    trust: Path,
    receipts: tuple[Path, ...],
    previous: tuple[Path, ...],
    engine: str,
    challenges: tuple[Path, ...],
    max_epsilon: str | None,
    allow_unsafe_setup: bool,
    model: Path | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Verify WINDOW (window.json or its folder): PASS with eps_audit, or FAIL with the reason."""
    from rag_audit.verify.report import render
    from rag_audit.verify.verifier import verify_window

    verdict = verify_window(
        window,
        trust=trust,
        receipts=receipts,
        previous=previous,
        engine=engine,
        challenges=challenges,
        max_epsilon=max_epsilon,
        allow_unsafe_setup=allow_unsafe_setup,
        model=model,
    )
    click.echo(json_text(verdict.as_json()) if as_json else render(verdict), nl=as_json)
    ctx.exit(int(verdict.exit_code))


@click.command()
@click.argument("window", type=PATH)
@click.option("--key", type=PATH, required=True, help="the verifier's signing key")
@click.option("--trust", type=PATH, required=True, help="mode, beta and eta come from here")
@click.option("--out", type=PATH, required=True, help="where the signed note goes")
@json_option
def challenge(window: Path, key: Path, trust: Path, out: Path, as_json: bool) -> None:
    """Draw the records to be proved, over the final checkpoint of WINDOW, and sign the draw."""
    trusted = Trust.load(trust)
    require = trusted.require
    file = WindowFile.load(window)
    head = _cosigned_head(trusted, file)
    queries = sum(isinstance(e, dict) and e.get("type") == "query" for e in file.entries)
    sample = None
    if require.mode == "sampled":
        beta, eta = decimal(require.beta), decimal(require.eta)
        if beta is None or eta is None or not (0 < beta < 1 and 0 < eta < 1):
            raise SchemaError("sampled mode needs beta and eta", field="trust.require", expected="both in (0, 1)",
                              found=f"beta {beta}, eta {eta}")  # fmt: skip
        sample = sample_size(beta, eta, queries)
    signer = signing_key(key)
    drawn = Challenge.new(
        signer, trusted.provider.origin, _opening(file).window, head.size, head.root, sample
    )
    replace_file(out, str(sign_note(drawn.text(), signer)).encode())
    emit({"challenge": str(out), "records": queries if sample is None else sample}, as_json)


def _cosigned_head(trusted: Trust, file: WindowFile) -> Checkpoint:
    """The final checkpoint, if it can no longer change; otherwise a provider could try again after a draw over it.

    :raises SignatureError: the provider did not sign the checkpoint, or the quorum is not complete
    :raises SchemaError: the entries are not the ones under the checkpoint
    """
    signed = open_checkpoint(
        file.final_checkpoint,
        origin=log_origin(trusted.provider.origin, _opening(file).window),
        log_key=VerifierKey.parse(trusted.provider.vkey, field="trust.provider.vkey"),
        witnesses=[VerifierKey.parse(w.vkey, field=f"trust.witness.{w.name}") for w in trusted.witness],
        field="final_checkpoint",
    )
    signed.quorum_time(trusted.quorum)
    head, tree = signed.checkpoint, HashTree(leaf_hash(jcs(entry)) for entry in file.entries)
    if (tree.size, tree.root()) != (head.size, head.root):
        raise SchemaError(
            "the entries are not the ones under the final checkpoint",
            field="entries",
            expected=f"{head.size} entries, root {head.root.hex()}",
            found=f"{tree.size} entries, root {tree.root().hex()}",
        )
    return head


def _opening(file: WindowFile) -> Opening:
    """The window's opening, entry 0 of its ledger."""
    entry = parse_entry(file.entries[0] if file.entries else None, field="entries[0]")
    if not isinstance(entry, Opening):
        raise SchemaError("entry 0 is not an opening", field="entries[0].type", found=entry.type)
    return entry


@click.group(cls=Group)
def trust() -> None:
    """Write the trust file of a verifier."""


@trust.command("new")
@click.argument("out", type=PATH)
@click.option("--origin", help="the provider's ledger name")
@click.option("--provider", help="the provider's vkey, or a file with it")
@click.option("--witness", "witnesses", multiple=True, help="a witness's vkey; repeat for each")
@click.option("--quorum", type=click.IntRange(min=1), help="all witnesses by default; more than half of them")
@click.option("--verifier", "verifiers", multiple=True, help="a vkey whose challenges count")
@click.option(
    "--account",
    "accounts",
    multiple=True,
    type=PATH,
    help="roster line of an account known to be independent",
)
@click.option(
    "--setup",
    "setups",
    multiple=True,
    type=PATH,
    help="output of `rag-audit setup new --json`: circuits and keys in someone else's words, so pinned as unsafe",
)
@click.option(
    "--zkey",
    "zkeys",
    multiple=True,
    metavar="[CIRCUIT=]FILE",
    help="a proving key, which is checked here against --policy and --ptau (`setup verify`) and pinned",
)
@click.option("--policy", type=PATH, help="the policy whose circuits the --zkey are for")
@click.option("--ptau", type=PATH, help="the powers of tau of the --zkey")
@ptau_digest_option
@dimension_option
@together_option
@click.option(
    "--embedder", default="wordllama-256", show_default=True, help="pin this release's public artefacts of it"
)
@click.option(
    "--model", type=PATH, help="pin the files in this folder, which you had from the embedder's publisher"
)
@click.option("--show", type=PATH, help="show the fingerprints in a window, unverified, and adopt none")
@click.option(
    "--require", "settings", multiple=True, metavar="KEY=VALUE", help="a requirement, e.g. max_epsilon=8"
)
def trust_new(
    out: Path,
    origin: str | None,
    provider: str | None,
    witnesses: tuple[str, ...],
    quorum: int | None,
    verifiers: tuple[str, ...],
    accounts: tuple[Path, ...],
    setups: tuple[Path, ...],
    zkeys: tuple[str, ...],
    policy: Path | None,
    ptau: Path | None,
    ptau_digest: str | None,
    dimension: int,
    together: int | None,
    embedder: str,
    model: Path | None,
    show: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Write a commented trust.toml with strict defaults, and ask for the keys that are not given."""
    if show is not None:
        _show(show)
    origin = origin or click.prompt("the provider's origin", err=True)
    provider = provider or click.prompt("the provider's vkey (from the provider itself)", err=True)
    if not witnesses:
        witnesses = tuple(click.prompt("the witnesses' vkeys, separated by spaces", err=True).split())
    keys = [verifier_key(text, field="--witness") for text in witnesses]
    independent = [
        RosterEntry.parse(read_json(path, max_bytes=65_536), field=f"--account {path.name}")
        for path in accounts
    ]
    checked = checked_pins(
        zkeys, policy=policy, dimension=dimension, together=together, ptau=ptau, ptau_digest=ptau_digest
    )
    if model is None:
        artefacts, manifest = public_artefacts(embedder), manifest_digest(public_manifest(embedder))
    else:
        own = get_embedder(embedder, folder=model).manifest()
        artefacts, manifest = dict(own["artefacts"]), manifest_digest(own)
    text = trust_template(
        origin=str(origin),
        vkey=str(verifier_key(str(provider), field="--provider")),
        witnesses=[(key.name, str(key)) for key in keys],
        quorum=quorum or len(keys),
        verifiers=[(k.name, str(k)) for k in (verifier_key(v, field="--verifier") for v in verifiers)],
        accounts=[(line.account, line.key) for line in independent],
        circuits=[*checked, *(pin for path in setups for pin in _pins(path))],
        noise_table=table_digest(),
        embedder=artefacts,
        manifest=manifest,
        scan=protocols_digest(),
        require=_requirements(settings),
    )
    if Trust.from_toml(text.encode(), source="trust.toml").minority_quorum:
        say(
            f"warning: a quorum of {quorum} of {len(keys)} witnesses: two different ledgers can each be cosigned by"
            " honest ones; every verdict will say allow=minority-quorum"
        )
    replace_file(out, text.encode())
    emit({"trust": str(out)}, False, str(out))


def _pins(path: Path) -> list[Groth16Pin]:
    """The pins in someone else's file. A verifier checks itself whether a key is a ceremony's (`--zkey`), or writes so
    into its own trust.toml.
    """
    value = read_json(path, max_bytes=1 << 20)
    keys = value.get("keys") if isinstance(value, dict) else None
    listed = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else None
    if not isinstance(keys, list) or listed is None or len(listed) < len(keys):
        raise SchemaError("the file is not the output of setup", field=str(path),
                          expected="{keys: [{circuit, vk, setup}, ..]}")  # fmt: skip
    pins = [
        Groth16Pin.parse({k: v for k, v in key.items() if k in ("circuit", "vk", "setup")},
                         field=f"{path.name}.keys[{i}]")
        for i, key in enumerate(listed)
    ]  # fmt: skip
    for pin in pins:
        if pin.setup != "unsafe":
            say(
                f"{path.name}: circuit {pin.circuit[:16]} is pinned as unsafe:"
                f" that it is a {pin.setup} is not checked here (--zkey does)"
            )
    return [pin.model_copy(update={"setup": "unsafe"}) for pin in pins]


LEAST_KEEP = "0.5"
"""The least share of positions that a sample keeps, where `trust new` is told nothing else."""


def _requirements(settings: tuple[str, ...]) -> Require:
    # The default of a policy; the relying party sets the other limits.
    lo, hi = DEFAULT_SCORE_WINDOW
    values: dict[str, Json] = {
        "max_score_hi": hi,
        "min_score_width": hi - lo,
        "max_abandoned": 0,
        "min_keep": LEAST_KEEP,
    }
    for setting in settings:
        key, _, text = setting.partition("=")
        integer = key in ("min_k_max", "max_score_hi", "min_score_width", "max_abandoned", "min_receipts")
        integer = integer or (key, text) == ("min_tau", WHOLE_WINDOW)
        if key not in Require.model_fields or not text or (integer and not COUNT.fullmatch(text)):
            raise SetupError(
                "the value is not a requirement",
                field="--require",
                expected=sorted(Require.model_fields),
                found=setting,
            )
        if key == "mechanisms":
            values[key] = [*text.split(",")]
            continue
        flag = key.startswith("allow_")
        if flag and text not in ("true", "false"):
            raise SetupError(
                "the value is not true or false",
                field=f"--require {key}",
                expected="true or false",
                found=text,
            )
        values[key] = int(text) if integer else (text == "true") if flag else text
    return Require.parse(values, field="--require")


def _show(path: Path) -> None:
    file = WindowFile.load(path)
    signatures = parse_note(file.opening_checkpoint, field="opening_checkpoint").signatures
    shown = [
        "found in the window, UNVERIFIED, not adopted:",
        f"  origin {_opening(file).origin}",
        *(f"  signed by {signature.name} key id {signature.key_id.hex()}" for signature in signatures),
    ]
    embedder = file.embedder.get("embedder")
    if isinstance(embedder, dict):
        shown.append(f"  embedder {brief(embedder.get('kind'))} manifest {manifest_digest(embedder)}")
    shown += [f"  circuit {circuit} key {digest_hex(key)}" for circuit, key in file.verification_keys.items()]
    click.echo(lines(shown), err=True)
