"""`rag-audit provider setup`: keys of the circuits that a policy names, made by one party or by several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from rag_audit._internal.canonical import parse_hex, read_json
from rag_audit._internal.errors import SetupError
from rag_audit.cli.common import PATH, Group, emit, json_option, say
from rag_audit.cli.options import choice_option, gathered, model_option, path_option
from rag_audit.models.policy import Policy
from rag_audit.models.publication import MAX_PUBLICATION_BYTES
from rag_audit.models.trust import CircuitPin
from rag_audit.proofs.backends.groth16 import ceremony
from rag_audit.proofs.backends.groth16.instance import MAX_QUERIES, Instance, NamesInstance
from rag_audit.proofs.backends.groth16.keys import KeyFiles, proving_key
from rag_audit.proofs.backends.groth16.policy import names_instances, policy_instances
from rag_audit.proofs.backends.groth16.powers import Contribution
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, EMBEDDERS, published_constants

embedder_option = choice_option(
    "--embedder",
    choices=EMBEDDERS,
    default=DEFAULT_EMBEDDER,
    help="the embedder of the policy; circuits depend on its dimension and table",
)
circuit_option = click.option("--circuit", help="name of one of the policy's circuits, if it has several")
batch_option = click.option(
    "--batch",
    type=click.IntRange(2, MAX_QUERIES),
    help="also make the circuits that prove this number of a tenant's records in one proof (`provider prove"
    " --batch`)",
)
ptau_option = path_option("--ptau", required=True, help="the ceremony's powers of tau, prepared for phase 2")
ptau_digest_option = click.option(
    "--ptau-sha256",
    "ptau_digest",
    help="the SHA-256 of the powers' file that the ceremony published; a file from a larger ceremony needs this option",
)


@dataclass(frozen=True)
class Circuits:
    """The options that select a key's circuits and its powers of tau.

    :param circuit: the name or digest of one of the circuits
    :raises EncodingError: the powers' digest is malformed
    """

    embedder: str
    model: Path | None
    batch: int | None
    ptau_digest: str | None
    circuit: str | None = None

    def __post_init__(self) -> None:
        if self.ptau_digest is not None:
            parse_hex(self.ptau_digest, 32, field="--ptau-sha256")

    def of(self, policy: Path) -> list[Instance]:
        """The circuits that a policy names, each once, the circuits that prove batches of its records, and the circuits
        that prove names of documents to accounts.
        """
        read = Policy.parse(read_json(policy, max_bytes=MAX_PUBLICATION_BYTES), field=policy.name)
        published = published_constants(self.embedder, self.model)
        of_windows = policy_instances(read, published.dimension, published.table, batch=self.batch)
        return [*of_windows, *names_instances(read)]

    def one_of(self, policy: Path) -> Instance:
        """The named circuit, or the only circuit of the policy.

        :raises SetupError: no circuit is named and the policy has several, or no circuit has the name
        """
        every = self.of(policy)
        named = [i for i in every if self.circuit in (None, i.name, i.digest())]
        if len(named) != 1:
            raise SetupError(
                "name one of the policy's circuits",
                field="--circuit",
                expected=" or ".join(i.name for i in every),
                actual=self.circuit,
            )
        return named[0]


circuits_options = partial(gathered, "circuits", Circuits)
"""The options of a command that gets them as `circuits`."""
one_circuit_options = circuits_options(
    circuit_option, embedder_option, model_option, batch_option, ptau_option, ptau_digest_option
)


@click.group(cls=Group)
def setup() -> None:
    """Make proving and verification keys.

    `new` makes all keys on one machine. Several parties use `start`, then `contribute` one after another; then anybody
    can run `verify`, and the provider runs `finalise`. The files have the formats of snarkjs.
    """


@setup.command("new")
@click.argument("policy", type=PATH)
@circuits_options(
    embedder_option,
    model_option,
    batch_option,
    path_option("--ptau", help="powers of tau of a public ceremony, in snarkjs's format"),
    ptau_digest_option,
)
@json_option
def new(policy: Path, circuits: Circuits, ptau: Path | None, as_json: bool) -> None:
    """Compile the circuits of POLICY and make their keys, in the user cache.

    Keys that one machine makes are UNSAFE: the person who runs this command could forge proofs with secrets that the
    command should delete.
    """
    keys = [(i, proving_key(i, ptau=ptau, ptau_digest=circuits.ptau_digest)) for i in circuits.of(policy)]
    _show(keys, as_json)


@setup.command("start")
@click.argument("policy", type=PATH)
@one_circuit_options
@path_option(
    "--out", required=True, help="the file for the key before any contribution, for example 0000.zkey"
)
@json_option
def start(policy: Path, circuits: Circuits, ptau: Path, out: Path, as_json: bool) -> None:
    """Check the powers of tau and write the first key of a circuit of POLICY, for the first contributor."""
    instance = circuits.one_of(policy)
    ceremony.start(instance, ptau, out, ptau_digest=circuits.ptau_digest)
    value = {"circuit": instance.digest(), "name": instance.name, "key": str(out)}
    emit(value, as_json, [str(out), f"  {instance.name}", f"  circuit {instance.digest()}"])


@setup.command("contribute")
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.option("--name", required=True, help="the published name of the contributor, at most 64 bytes")
@json_option
def contribute(old: Path, new: Path, name: str, as_json: bool) -> None:
    """Add a fresh secret to the key OLD, write the key to NEW, and delete the secret.

    Publish the printed digest. With this digest you find your contribution in the final key (`provider setup verify`).
    """
    contribution = ceremony.contribute(old, new, name)
    value = {"key": str(new), **contribution.as_json()}
    emit(value, as_json, [str(new), f"  {contribution.name}", f"  digest {contribution.digest}"])


@setup.command("verify")
@click.argument("zkey", type=PATH)
@path_option("--policy", help="compile the key's circuit from this policy")
@path_option("--r1cs", help="or read these constraints; --circuit can state their digest")
@one_circuit_options
@json_option
def verify(
    zkey: Path, policy: Path | None, r1cs: Path | None, circuits: Circuits, ptau: Path, as_json: bool
) -> None:
    """Check that ZKEY is the circuit's key under these powers, and every contribution in both phases.

    The command compiles the circuit from the installed sources. It prints the digests of all checked files and
    contributions: compare them, and find the digest of your own contribution. A verification key is pinned with its
    circuit's digest, so --r1cs without --circuit gives no key to pin.
    """
    if (policy is None) == (r1cs is None):
        raise SetupError(
            "the command needs one circuit", field="--policy, --r1cs", expected="exactly one of them"
        )
    instance, circuit, ptau_digest = None, circuits.circuit, circuits.ptau_digest
    if policy is not None:
        instance = circuits.one_of(policy)
        checked = ceremony.check_instance_key(instance, ptau, zkey, ptau_digest=ptau_digest)
        circuit = instance.digest()
    else:
        assert r1cs is not None
        if circuit is not None:
            parse_hex(circuit, 32, field="--circuit")
        checked = ceremony.check_key(r1cs, ptau, zkey, circuit=circuit, ptau_digest=ptau_digest)
    if checked.contributed == 0:
        say("no party contributed a secret to this key, so anybody can forge proofs with it")
    value = {
        "circuit": circuit,
        "name": None if instance is None else instance.name,
        **checked.as_json(),
        "keys": []
        if instance is None or checked.vk is None
        else [_listed(instance, checked.vk.digest, checked.setup)],
    }
    lines = [
        f"circuit {circuit or '(not named)'}" + ("" if instance is None else f"  {instance.name}"),
        f"verification key {_or_none(None if checked.vk is None else checked.vk.digest)}",
        f"  as snarkjs writes it: SHA-256 {_or_none(checked.snarkjs_digest)}",
        f"constraints: SHA-256 {checked.r1cs_digest}",
        f"key file: SHA-256 {checked.zkey_digest}",
        f"powers of tau: SHA-256 {checked.phase1_digest}",
    ]
    for number, contributions in ((1, checked.phase1), (2, checked.phase2)):
        lines += [
            text
            for c in contributions
            for text in (f"phase {number}: {c.name or '(no name)'}{_beacon(c)}", f"  digest {c.digest}")
        ]
    emit(value, as_json, [*lines, f"setup: {checked.setup}"])


@setup.command("finalise")
@click.argument("zkey", type=PATH)
@path_option("--policy", required=True, help="the policy with the key's circuit")
@one_circuit_options
@click.option("--beacon", help="a public random value in hexadecimal, drawn after the last contribution")
@path_option("--out", help="also write the installed key to this file, for verifiers")
@json_option
def finalise(
    zkey: Path,
    policy: Path,
    circuits: Circuits,
    ptau: Path,
    beacon: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Check ZKEY as `provider setup verify` does and install it. Later proofs use this key, so run the command
    between windows.

    Verifiers check the file of --out with `verifier trust new --zkey`. The setup is a `ceremony` if each phase has two
    or more contributions of a secret.
    """
    value = None if beacon is None else parse_hex(beacon, max(1, len(beacon) // 2), field="--beacon")
    instance = circuits.one_of(policy)
    installed = ceremony.finalise(
        instance, ptau, zkey, beacon=value, out=out, ptau_digest=circuits.ptau_digest
    )
    _show([(instance, installed)], as_json)


def checked_pins(
    zkeys: Sequence[str],
    *,
    policy: Path | None,
    ptau: Path | None,
    circuits: Circuits,
) -> list[CircuitPin]:
    """The pins of keys that this function checks like `provider setup verify`. Their labels come from the setup in the
    files.

    :param zkeys: `FILE`, or `CIRCUIT=FILE` if the policy has several circuits
    :raises SetupError: policy or powers are missing, there is no such circuit, or a file cannot be read
    :raises CeremonyError: a key is proven false, belongs to another circuit, or has no contribution
    """
    if not zkeys:
        return []
    if policy is None or ptau is None:
        raise SetupError(
            "the key must be checked before it is pinned",
            field="--zkey",
            expected="the options --policy and --ptau",
        )
    every = circuits.of(policy)
    pins = []
    for text in zkeys:
        circuit, _, rest = text.partition("=")
        known = any(circuit in (i.name, i.digest()) for i in every)
        zkey = Path(rest if known else text)
        instance = replace(circuits, circuit=circuit if known else None).one_of(policy)
        say(f"checking {zkey}: {instance.name}")
        checked = ceremony.check_instance_key(instance, ptau, zkey, ptau_digest=circuits.ptau_digest)
        key = ceremony.refuse_without_secret(checked, zkey)
        pins.append(
            CircuitPin.parse(
                {"circuit": key.circuit, "vk": key.digest, "setup": checked.setup}, field=str(zkey)
            )
        )
    return pins


def _show(installed: Sequence[tuple[Instance, KeyFiles]], as_json: bool) -> None:
    keys = []
    for instance, files in installed:
        label = str(files.manifest["setup"])
        if label == "unsafe":
            if isinstance(instance, NamesInstance):  # only accounts use this key
                say(f"UNSAFE key for {instance.name}: `account names` ends with 3, because the key's maker can forge"
                    " the proof")  # fmt: skip
            else:
                say(f"UNSAFE key for {instance.name}: verifiers refuse it without --allow-unsafe-setup")
        keys.append(_listed(instance, files.vk_digest, label))
    shown = [(k["name"], f"  circuit {k['circuit']}", f"  vk {k['vk']} {k['setup']}") for k in keys]
    emit({"keys": keys}, as_json, [line for part in shown for line in part])


def _listed(instance: Instance, vk: str, label: str) -> dict[str, str]:
    """A key in the form that `verifier trust new --setup` reads."""
    return {"circuit": instance.digest(), "name": instance.name, "vk": vk, "setup": label}


def _or_none(digest: str | None) -> str:
    return digest or "(none)"


def _beacon(contribution: Contribution) -> str:
    return "" if contribution.beacon is None else f" (beacon {contribution.beacon})"
