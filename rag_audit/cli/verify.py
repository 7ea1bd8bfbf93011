"""`rag-audit verify` and `challenge`: the verifier's side."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.cli.common import PATH, emit, json_option, patiently, say, signing_key
from rag_audit.cli.reports import FORMATS, command_line, planned
from rag_audit.encoding.canonical import jcs
from rag_audit.encoding.durable import replace_file
from rag_audit.errors import SchemaError
from rag_audit.formats.challenge import Challenge, sample_size
from rag_audit.formats.records import Opening, log_origin, parse_entry
from rag_audit.formats.trust import Trust, decimal
from rag_audit.formats.windowfile import WindowFile
from rag_audit.ledger.checkpoint import Checkpoint, open_checkpoint
from rag_audit.ledger.keys import VerifierKey
from rag_audit.ledger.merkle import HashTree, leaf_hash
from rag_audit.ledger.note import sign_note


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
    "--engine",
    type=click.Choice(["native", "py_ecc", "snarkjs"]),
    default="native",
    show_default=True,
    help="what decides about Groth16 proofs",
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
@click.option(
    "--attacks",
    type=PATH,
    help="the provider's attacks.json (`rag-audit attack run`), shown beside the verdict, which it does not change",
)
@click.option("--offline", is_flag=True, default=True, help="no network (the default, and the only mode)")
@click.option("--checks", is_flag=True, help="show every check and every figure, of a window that passed too")
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    help="how the report is written (text); repeat it for several, each with its --output in the same order",
)
@click.option(
    "--output",
    "outputs",
    type=PATH,
    multiple=True,
    help="where the report of the --format at the same place goes, - for standard output",
)
@click.option("--sign-key", type=PATH, help="the key that signs --format vsa")
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
    attacks: Path | None,
    offline: bool,
    checks: bool,
    formats: tuple[str, ...],
    outputs: tuple[Path, ...],
    sign_key: Path | None,
    as_json: bool,
) -> None:
    """Verify WINDOW (window.json or its folder): PASS with eps_audit, or FAIL with the reason.

    The verdict is printed before any file is written. A report that cannot be written is a warning on standard error,
    and the exit code stays the verdict's.
    """
    from rag_audit.verify.verifier import verify_window

    given = [
        window,
        trust,
        *receipts,
        *previous,
        *challenges,
        *(p for p in (attacks, sign_key) if p is not None),
    ]
    plan = planned(formats, outputs, as_json=as_json, sign_key=sign_key, inputs=given)
    with patiently("verifying"):
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
            attacks=attacks,
        )
    plan.write(
        verdict, checks=checks, command=command_line(ctx, window, trust, receipts, previous, challenges)
    )
    if as_json and verdict.measured is not None:
        for above in verdict.measured.above:
            say(
                f"WARNING: a lower bound lies above the certified epsilon, so one of the two is wrong: {above}"
            )
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
        signer, trusted.provider.origin, opening_entry(file).window, head.size, head.root, sample
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
        origin=log_origin(trusted.provider.origin, opening_entry(file).window),
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


def opening_entry(file: WindowFile) -> Opening:
    """The window's opening, entry 0 of its ledger."""
    entry = parse_entry(file.entries[0] if file.entries else None, field="entries[0]")
    if not isinstance(entry, Opening):
        raise SchemaError("entry 0 is not an opening", field="entries[0].type", found=entry.type)
    return entry
