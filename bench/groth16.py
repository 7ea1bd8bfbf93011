"""Time and memory of Groth16: `python -m bench.groth16 [--powers 15 17] [--snarkjs] [--json]`.

The circuit is a chain of products of two-term combinations with full-size values; a quarter of its rows are bits. The
scalars of the multi-scalar multiplications are therefore as large as in real circuits. `--snarkjs` runs snarkjs on the
same files in the same run. The output includes cpu_seconds, because the wall-clock time depends on the machine's other
load.
"""

from __future__ import annotations

import secrets
import struct
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.common import Cost, by_figure, emit, measured, parser
from rag_audit import _native
from rag_audit.relation.field import MODULUS, to_bytes

PUBLIC = 7
VERIFICATIONS = 200
BATCH = 1400


def le(value: int) -> bytes:
    return value.to_bytes(32, "little")


def container(magic: bytes, version: int, *bodies: bytes) -> bytes:
    parts = [magic, struct.pack("<II", version, len(bodies))]
    for number, body in enumerate(bodies, 1):
        parts += [struct.pack("<IQ", number, len(body)), body]
    return b"".join(parts)


def chain(constraints: int) -> tuple[bytes, bytes, list[int]]:
    """Make a constraint system, a witness for it (both as files) and its public inputs."""
    values = [1, *(secrets.randbelow(MODULUS) for _ in range(PUBLIC))]
    one, minus_one, three = le(1), le(MODULUS - 1), le(3)
    body = bytearray()
    for i in range(constraints):
        wire, last = len(values), len(values) - 1
        if i % 4 == 3:  # b (b - 1) = 0
            values.append(secrets.randbelow(2))
            body += struct.pack("<II", 1, wire) + one
            body += struct.pack("<II", 2, wire) + one + struct.pack("<I", 0) + minus_one
            body += struct.pack("<I", 0)
        else:  # (x + y) (3 y + 1) = z
            x, y = values[last - 1], values[last]
            values.append((x + y) * (3 * y + 1) % MODULUS)
            body += struct.pack("<II", 2, last - 1) + one + struct.pack("<I", last) + one
            body += struct.pack("<II", 2, last) + three + struct.pack("<I", 0) + one
            body += struct.pack("<II", 1, wire) + one
    count = len(values)
    prime = struct.pack("<I", 32) + le(MODULUS)
    header = prime + struct.pack("<IIIIQI", count, 0, PUBLIC, count - 1 - PUBLIC, count, constraints)
    labels = b"".join(struct.pack("<Q", i) for i in range(count))
    r1cs = container(b"r1cs", 1, header, bytes(body), labels)
    wtns = container(b"wtns", 2, prime + struct.pack("<I", count), b"".join(map(le, values)))
    return r1cs, wtns, values[1 : 1 + PUBLIC]


def prove_alone(zkey: str, wtns: bytes, r1cs: str) -> tuple[Cost, bytes]:
    """Make a proof in a separate process, to measure the memory of this proof only."""
    return measured(lambda: _native.groth16_prove(zkey, wtns, r1cs))


def measure(power: int, folder: Path, *, ceremony: bool, snarkjs: bool) -> dict[str, Any]:
    """Return the figures for 2^power rows."""
    constraints = (1 << power) - PUBLIC - 1
    r1cs, wtns, inputs = chain(constraints)
    paths = {name: folder / f"{power}.{name}" for name in ("r1cs", "wtns", "ptau", "zkey")}
    paths["r1cs"].write_bytes(r1cs)
    paths["wtns"].write_bytes(wtns)
    costs: dict[str, Cost] = {}
    costs["setup_one_party"], _ = measured(
        lambda: _native.groth16_setup_one_party(paths["r1cs"], paths["zkey"])
    )
    if ceremony or snarkjs:
        costs["powers_of_tau"], _ = measured(lambda: _native.ptau_new(power, paths["ptau"]))
        costs["setup_from_powers"], _ = measured(
            lambda: _native.groth16_setup(paths["r1cs"], paths["ptau"], paths["zkey"])
        )
    with get_context("spawn").Pool(1) as pool:
        costs["prove"], proof = pool.apply(prove_alone, (str(paths["zkey"]), wtns, str(paths["r1cs"])))
    vk = _native.groth16_verification_key(paths["zkey"])
    encoded = b"".join(map(to_bytes, inputs))
    one = ([proof], [encoded])
    assert _native.groth16_verify_batch(vk, *one) == []
    costs["verifications"], _ = measured(
        lambda: [_native.groth16_verify_batch(vk, *one) for _ in range(VERIFICATIONS)]
    )
    figures = {
        "constraints": constraints,
        "verifications": VERIFICATIONS,
        "bytes": len(proof),
        **by_figure(costs),
    }
    if snarkjs:
        figures["seconds"] |= compare(paths, folder)
    return figures


def compare(paths: dict[str, Path], folder: Path) -> dict[str, float]:
    """Run snarkjs on the same files; return wall-clock seconds including its start-up."""
    from rag_audit.proofs.backends.groth16 import snarkjs

    commands = {
        "snarkjs_setup": ["groth16", "setup", str(paths["r1cs"]), str(paths["ptau"]), "s.zkey"],
        "snarkjs_prove": ["groth16", "prove", str(paths["zkey"]), str(paths["wtns"]), "p.json", "i.json"],
        "snarkjs_export": ["zkey", "export", "verificationkey", str(paths["zkey"]), "vk.json"],
        "snarkjs_verify": ["groth16", "verify", "vk.json", "i.json", "p.json"],
    }
    seconds = {}
    for name, arguments in commands.items():
        start = time.perf_counter()
        snarkjs.run(arguments, cwd=folder)
        seconds[name] = time.perf_counter() - start
    return seconds


def batch(folder: Path) -> dict[str, Any]:
    """Verify many proofs at once: all of them good, and with one bad proof among them."""
    r1cs, wtns, inputs = chain(100)
    (folder / "b.r1cs").write_bytes(r1cs)
    _native.groth16_setup_one_party(folder / "b.r1cs", folder / "b.zkey")
    vk = _native.groth16_verification_key(folder / "b.zkey")
    few = [_native.groth16_prove(folder / "b.zkey", wtns) for _ in range(20)]
    proofs = [few[i % len(few)] for i in range(BATCH)]
    encoded = [b"".join(map(to_bytes, inputs))] * BATCH
    costs: dict[str, Cost] = {}
    costs["all_good"], bad = measured(lambda: _native.groth16_verify_batch(vk, proofs, encoded))
    assert bad == []
    encoded[777] = b"".join(map(to_bytes, [*inputs[:-1], inputs[-1] ^ 1]))
    costs["one_bad"], bad = measured(lambda: _native.groth16_verify_batch(vk, proofs, encoded))
    assert bad == [(777, None)]
    return {"proofs": BATCH, **by_figure(costs)}


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--powers", type=int, nargs="+", default=[15, 17], help="log2 of the rows")
    options.add_argument("--ceremony", action="store_true", help="also set-up from powers of tau")
    options.add_argument(
        "--snarkjs", action="store_true", help="also snarkjs on the same files (slow, needs Node)"
    )
    args = options.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for power in args.powers:
            figures[f"2^{power}"] = measure(power, folder, ceremony=args.ceremony, snarkjs=args.snarkjs)
        figures["batch"] = batch(folder)
    emit(figures, as_json=args.json)


if __name__ == "__main__":
    main()
