"""`rag-audit setup`: keys of the circuits that a policy names, alone or by several parties."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rag_audit.canonical import parse_hex, read_json
from rag_audit.cli.common import PATH, Group, emit, json_option, say
from rag_audit.errors import SetupError
from rag_audit.policy import Policy
from rag_audit.proofs.groth16 import KeyFiles, ceremony, proving_key
from rag_audit.proofs.groth16.circuit import compile_circuit
from rag_audit.proofs.groth16.instance import MAX_QUERIES, Instance
from rag_audit.publication import MAX_PUBLICATION_BYTES

dimension_option = click.option(
    "--dimension", default=256, show_default=True, help="components of the embedder's vectors"
)
circuit_option = click.option("--circuit", help="name of one of the policy's circuits, if it has several")
together_option = click.option(
    "--together",
    type=click.IntRange(2, MAX_QUERIES),
    help="also the circuits that prove so many records of a tenant at once (`prove --together`)",
)
ptau_option = click.option(
    "--ptau", type=PATH, required=True, help="the ceremony's powers of tau, prepared for phase 2"
)


@click.group(cls=Group)
def setup() -> None:
    """Make proving and verification keys.

    `new` makes them at once, on one machine. Several parties use `start`, then `contribute` one after another, then
    `verify` by anyone, then `finalise` by the provider. Files are snarkjs's.
    """


@setup.command("new")
@click.argument("policy", type=PATH)
@dimension_option
@together_option
@click.option("--ptau", type=PATH, help="powers of tau of a public ceremony, in snarkjs's format")
@json_option
def new(policy: Path, dimension: int, together: int | None, ptau: Path | None, as_json: bool) -> None:
    """Compile the circuits of POLICY and make their keys, in the user cache.

    Keys made on one machine are UNSAFE: whoever ran this could forge proofs with what it threw away.
    """
    _show([(i, proving_key(i, ptau=ptau)) for i in _instances(policy, dimension, together)], as_json)


@setup.command("start")
@click.argument("policy", type=PATH)
@circuit_option
@dimension_option
@together_option
@ptau_option
@click.option("--out", type=PATH, required=True, help="the key before any contribution, say 0000.zkey")
@json_option
def start(
    policy: Path,
    circuit: str | None,
    dimension: int,
    together: int | None,
    ptau: Path,
    out: Path,
    as_json: bool,
) -> None:
    """Check the powers of tau and write the first key of a circuit of POLICY, for the first contributor."""
    instance = _instance(policy, circuit, dimension, together)
    ceremony.start(instance, ptau, out)
    value = {"circuit": instance.digest(), "name": instance.name, "key": str(out)}
    emit(value, as_json, [str(out), f"  {instance.name}", f"  circuit {instance.digest()}"])


@setup.command("contribute")
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.option("--name", required=True, help="who contributes, at most 64 bytes; published")
@json_option
def contribute(old: Path, new: Path, name: str, as_json: bool) -> None:
    """Mix a fresh secret into the key OLD, write it to NEW, forget the secret.

    Publish the digest that is printed: with it you find your contribution in the final key (`setup verify`).
    """
    made = ceremony.contribute(old, new, name)
    value = {"key": str(new), **made.as_json()}
    emit(value, as_json, [str(new), f"  {made.name}", f"  digest {made.digest}"])


@setup.command("verify")
@click.argument("zkey", type=PATH)
@click.option("--policy", type=PATH, help="compile the key's circuit from this policy")
@click.option("--r1cs", type=PATH, help="or take these constraints")
@circuit_option
@dimension_option
@together_option
@ptau_option
@json_option
def verify(
    zkey: Path,
    policy: Path | None,
    r1cs: Path | None,
    circuit: str | None,
    dimension: int,
    together: int | None,
    ptau: Path,
    as_json: bool,
) -> None:
    """Check that ZKEY is the circuit's key under these powers, and every contribution in both phases."""
    if (policy is None) == (r1cs is None):
        raise SetupError("one circuit is needed", field="--policy, --r1cs", expected="exactly one of them")
    if policy is not None:
        r1cs = compile_circuit(_instance(policy, circuit, dimension, together)).r1cs
    assert r1cs is not None
    found = ceremony.check_key(r1cs, ptau, zkey)
    lines = [f"phase 1: {c.name or '(no name)'}{_beacon(c)}" for c in found.phase1]
    for c in found.phase2:
        lines += [f"phase 2: {c.name or '(no name)'}{_beacon(c)}", f"  digest {c.digest}"]
    emit(found.as_json(), as_json, [*lines, f"setup: {found.setup}"])


@setup.command("finalise")
@click.argument("zkey", type=PATH)
@click.option("--policy", type=PATH, required=True, help="the policy whose circuit the key is for")
@circuit_option
@dimension_option
@together_option
@ptau_option
@click.option("--beacon", help="public random value in hexadecimal, drawn after the last contribution")
@json_option
def finalise(
    zkey: Path,
    policy: Path,
    circuit: str | None,
    dimension: int,
    together: int | None,
    ptau: Path,
    beacon: str | None,
    as_json: bool,
) -> None:
    """Check ZKEY as `verify` does and install it: windows are proved with it from now on, so do it between windows.

    Prints what `trust new --setup` reads. The setup is a `ceremony` if two parties or more gave a secret in each phase.
    """
    value = None if beacon is None else parse_hex(beacon, max(1, len(beacon) // 2), field="--beacon")
    instance = _instance(policy, circuit, dimension, together)
    _show([(instance, ceremony.finalise(instance, ptau, zkey, beacon=value))], as_json)


def _instances(policy: Path, dimension: int, together: int | None) -> list[Instance]:
    """The circuits that a policy names, each once, and those that prove several of its records at once."""
    made = Policy.parse(read_json(policy, max_bytes=MAX_PUBLICATION_BYTES), field=policy.name)
    return made.instances(dimension, together=together)


def _instance(policy: Path, circuit: str | None, dimension: int, together: int | None) -> Instance:
    every = _instances(policy, dimension, together)
    named = [i for i in every if circuit in (None, i.name, i.digest())]
    if len(named) != 1:
        raise SetupError(
            "which of the policy's circuits?",
            field="--circuit",
            expected=" or ".join(i.name for i in every),
            found=circuit,
        )
    return named[0]


def _show(made: Sequence[tuple[Instance, KeyFiles]], as_json: bool) -> None:
    keys = []
    for instance, files in made:
        label = str(files.manifest["setup"])
        if label == "unsafe":
            say(f"UNSAFE key for {instance.name}: verifiers refuse it without --allow-unsafe-setup")
        keys.append(
            {"circuit": instance.digest(), "name": instance.name, "vk": files.vk_digest, "setup": label}
        )
    shown = [(k["name"], f"  circuit {k['circuit']}", f"  vk {k['vk']} {k['setup']}") for k in keys]
    emit({"keys": keys}, as_json, [line for part in shown for line in part])


def _beacon(contribution: ceremony.Contribution) -> str:
    return "" if contribution.beacon is None else f" (beacon {contribution.beacon})"
