"""`rag-audit setup`: keys of the circuits that a policy names."""

from __future__ import annotations

from pathlib import Path

import click

from rag_audit.attest import retrieve_instance
from rag_audit.canonical import read_json
from rag_audit.cli.common import PATH, Group, emit, json_option, say
from rag_audit.policy import Policy
from rag_audit.proofs.groth16 import proving_key
from rag_audit.publication import MAX_PUBLICATION_BYTES


@click.group(cls=Group)
def setup() -> None:
    """Make proving and verification keys."""


@setup.command("new")
@click.argument("policy", type=PATH)
@click.option("--dimension", default=256, show_default=True, help="components of the embedder's vectors")
@click.option("--ptau", type=PATH, help="powers of tau of a public ceremony, in snarkjs's format")
@json_option
def new(policy: Path, dimension: int, ptau: Path | None, as_json: bool) -> None:
    """Compile the circuits of POLICY and make their keys, in the user cache.

    Keys made on one machine are UNSAFE: whoever ran this could forge proofs with what it threw away.
    """
    made = Policy.parse(read_json(policy, max_bytes=MAX_PUBLICATION_BYTES), field=policy.name)
    instances = {i.digest(): i for i in (retrieve_instance(made, t.tenant, dimension) for t in made.tenants)}
    keys = []
    for circuit, instance in instances.items():
        files = proving_key(instance, ptau=ptau)
        setup_label = str(files.manifest["setup"])
        if setup_label == "unsafe":
            say(f"UNSAFE one-party key for {instance.name}: verifiers refuse it without --allow-unsafe-setup")
        keys.append({"circuit": circuit, "name": instance.name, "vk": files.vk_digest, "setup": setup_label})
    emit(
        {"keys": keys},
        as_json,
        "\n".join(f"{k['name']}\n  circuit {k['circuit']}\n  vk {k['vk']} {k['setup']}" for k in keys),
    )
