"""snarkjs as a subprocess, a second prover and a third verifier for cross-checks (needs Node).

Numbers pass through files in a folder. A witness file (the assignment of all wires) is secret, so the folder is private
to the process and removed at once.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from rag_audit._internal.errors import SetupError
from rag_audit._internal.node import NodeFailed, last_lines, npm_packages, run_node
from rag_audit.proofs.backends.groth16.encoding import SnarkjsProof
from rag_audit.proofs.backends.groth16.pyecc import PROOF_BYTES, parse

VERIFY_SECONDS = 120
PROVE_SECONDS = 1800
_REJECTED = ("Invalid proof", "Proof commitments are not valid", "Public inputs are not valid")


def verify(vk_json: str, proof: bytes, inputs: bytes) -> bool:
    """Whether snarkjs accepts a proof.

    :param vk_json: verification key, snarkjs's JSON
    :param proof: 256 bytes in EIP-197 order
    :param inputs: public inputs, 32 bytes big-endian each
    :raises EncodingError: as `pyecc.parse`, since snarkjs itself accepts points outside the subgroup, and reports other
        malformed parts only as an invalid proof
    :raises SetupError: Node or snarkjs is missing, fails or does not end in time
    """
    written = files(vk_json, proof, inputs)
    with tempfile.TemporaryDirectory(prefix="rag-audit-") as name:
        folder = Path(name)
        for part, text in written.items():
            (folder / f"{part}.json").write_text(text, encoding="utf-8")
        arguments = ["groth16", "verify", "key.json", "public.json", "proof.json"]
        try:
            out = _run(arguments, folder, VERIFY_SECONDS)
        except NodeFailed as exc:
            if any(reason in exc.stdout for reason in _REJECTED):
                return False
            raise _failed(exc) from exc
    if "OK!" not in out:
        raise SetupError("snarkjs gave no verdict", field="snarkjs", actual=last_lines(out))
    return True


def files(vk_json: str, proof: bytes, inputs: bytes) -> dict[str, str]:
    """The texts of the files `key`, `public` and `proof` that ``snarkjs groth16 verify`` reads.

    :param proof: 256 bytes in EIP-197 order
    :param inputs: public inputs, 32 bytes big-endian each
    :raises EncodingError: as `verify`
    """
    values = parse(vk_json, proof, inputs).inputs
    return {
        "key": vk_json,
        "public": json.dumps([str(v) for v in values]),
        "proof": json.dumps(_proof_json(proof)),
    }


def prove(zkey: Path, witness: bytes) -> bytes:
    """A proof by snarkjs, 256 bytes in EIP-197 order.

    :param witness: content of a .wtns file, snarkjs's witness
    :raises SetupError: Node or snarkjs is missing, fails or does not end in time
    """
    with tempfile.TemporaryDirectory(prefix="rag-audit-") as name:
        folder = Path(name)
        (folder / "witness.wtns").write_bytes(witness)
        arguments = ["groth16", "prove", str(zkey.resolve()), "witness.wtns", "proof.json", "public.json"]
        try:
            _run(arguments, folder, PROVE_SECONDS)
        except NodeFailed as exc:
            raise _failed(exc) from exc
        proof: SnarkjsProof = json.loads((folder / "proof.json").read_text(encoding="utf-8"))
    a, b, c = proof["pi_a"], proof["pi_b"], proof["pi_c"]
    order = (a[0], a[1], b[0][1], b[0][0], b[1][1], b[1][0], c[0], c[1])
    return b"".join(int(x).to_bytes(32, "big") for x in order)


def run(arguments: list[str], *, cwd: Path, timeout: float = PROVE_SECONDS) -> str:
    """Run any snarkjs command and return its output.

    :raises SetupError: Node or snarkjs is missing, fails or does not end in time
    """
    try:
        return _run(arguments, cwd, timeout)
    except NodeFailed as exc:
        raise _failed(exc) from exc


def _run(arguments: list[str], cwd: Path, timeout: float) -> str:
    script = npm_packages() / "snarkjs" / "build" / "cli.cjs"
    return run_node(script, arguments, cwd=cwd, timeout=timeout).decode(errors="replace")


def _failed(exc: NodeFailed) -> SetupError:
    return SetupError("snarkjs failed", field="snarkjs", actual=last_lines(exc.stderr + "\n" + exc.stdout))


def _proof_json(data: bytes) -> SnarkjsProof:
    n = [str(int.from_bytes(data[i : i + 32], "big")) for i in range(0, PROOF_BYTES, 32)]
    return {
        "protocol": "groth16",
        "curve": "bn128",
        "pi_a": [n[0], n[1], "1"],
        "pi_b": [[n[3], n[2]], [n[5], n[4]], ["1", "0"]],
        "pi_c": [n[6], n[7], "1"],
    }
