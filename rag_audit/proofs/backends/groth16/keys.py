"""Proving and verification keys. They are made once for a circuit and cached by its digest.

A key made on this machine has a native one-party phase 1 or a single contribution: its maker could forge proofs with
the discarded secrets. The manifest calls it `unsafe`, and so do the report and the verdict. A key made by several
parties (`ceremony`) is installed in the same folder and preferred.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from rag_audit import _native
from rag_audit._internal.cache import build_once, cache_dir, progress, read_manifest, write_manifest
from rag_audit._internal.canonical import Json, digest_hex, jcs, parse_hex, read_json
from rag_audit._internal.errors import CeremonyError, SchemaError, SetupError
from rag_audit.proofs.backends.groth16.circuit import compile_circuit
from rag_audit.proofs.backends.groth16.encoding import (
    G1Json,
    G2Json,
    SnarkjsKey,
    g1_json,
    g2_json,
    parse_fields,
    parse_g1,
    parse_g2,
)
from rag_audit.proofs.backends.groth16.instance import Instance

MAX_KEY_BYTES = 1 << 20
MAX_INPUTS = 127
FOLDER = "keys2"
"""Subfolder of the cache with keys; the number is the format's."""
_G2 = ("beta", "gamma", "delta")
_COORDINATE = 64
"""Bytes of a coordinate of G2."""


class _KeyJson(TypedDict):
    """The value of a `VerificationKey`."""

    alpha: G1Json
    beta: G2Json
    gamma: G2Json
    delta: G2Json
    ic: list[G1Json]


class KeyManifest(TypedDict):
    """The manifest of a circuit's keys and of their setup.

    :param vk: digest of the verification key
    :param phase1: where the powers of tau come from
    :param setup: "unsafe" or "ceremony"
    :param contributions: number of contributions to phase 2
    :param contributors: their names, after a ceremony
    """

    circuit: str
    name: str
    vk: str
    phase1: str
    setup: str
    contributions: int
    contributors: NotRequired[list[str]]


@dataclass(frozen=True)
class VerificationKey:
    """A parsed verification key.

    :param value: the key's JSON: system, circuit, alpha, beta, gamma, delta, ic
    """

    value: dict[str, Json]

    @classmethod
    def parse(cls, value: Json, *, field: str) -> VerificationKey:
        """Read a key from a file's value.

        :raises SchemaError: the key has other fields or another system
        :raises EncodingError: a point is not canonical or not on the curve
        :raises CeremonyError: delta is gamma or its negative, so the key contains no party's secret
        """
        value = parse_fields(value, ("system", "circuit", "alpha", "ic", *_G2), field=field)
        if value["system"] != "groth16":
            raise SchemaError(
                "the key is of another proof system",
                field=f"{field}.system",
                expected="groth16",
                actual=value["system"],
            )
        parse_hex(value["circuit"], 32, field=f"{field}.circuit")
        parse_g1(value["alpha"], field=f"{field}.alpha")
        points = {name: parse_g2(value[name], field=f"{field}.{name}") for name in _G2}
        ic = value["ic"]
        if not isinstance(ic, list) or not 2 <= len(ic) <= MAX_INPUTS + 1:
            raise SchemaError("wrong number of points", field=f"{field}.ic", expected=f"2..{MAX_INPUTS + 1}")
        for i, point in enumerate(ic):
            parse_g1(point, field=f"{field}.ic[{i}]")
        # With such a delta, C = -IC(x), or IC(x), combined with alpha and beta would verify for any x.
        if points["delta"][:_COORDINATE] == points["gamma"][:_COORDINATE]:
            raise CeremonyError(
                "delta is gamma: anyone can forge proofs under this key",
                field=f"{field}.delta",
                expected="a key with at least one contribution",
            )
        return cls(value)

    @classmethod
    def from_snarkjs(cls, text: str, circuit: str) -> VerificationKey:
        """Read a key from the text of snarkjs's verification_key.json."""
        key: SnarkjsKey = json.loads(text)

        def g1(point: list[str]) -> G1Json:
            return g1_json(b"".join(int(c).to_bytes(32, "big") for c in point[:2]))

        def g2(point: list[list[str]]) -> G2Json:
            return g2_json(b"".join(int(c).to_bytes(32, "big") for pair in point[:2] for c in reversed(pair)))

        value: dict[str, Json] = {
            "system": "groth16",
            "circuit": circuit,
            "alpha": [*g1(key["vk_alpha_1"])],
            "beta": [[*pair] for pair in g2(key["vk_beta_2"])],
            "gamma": [[*pair] for pair in g2(key["vk_gamma_2"])],
            "delta": [[*pair] for pair in g2(key["vk_delta_2"])],
            "ic": [[*g1(point)] for point in key["IC"]],
        }
        return cls.parse(value, field="verification key")

    @property
    def circuit(self) -> str:
        """The digest of the circuit that the key was made for."""
        return str(self.value["circuit"])

    @property
    def inputs(self) -> int:
        """The number of public inputs."""
        return len(self._points["ic"]) - 1

    @property
    def _points(self) -> _KeyJson:
        """The points of the value. `parse` has checked their form."""
        return cast(_KeyJson, self.value)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON, circuit digest included, which trust.toml pins."""
        return digest_hex(self.value)

    @cached_property
    def snarkjs(self) -> str:
        """The key in snarkjs's verification_key.json format, which every verifier reads."""

        def g1(point: G1Json) -> list[str]:
            return [*(str(int(c, 16)) for c in point), "1"]

        def g2(point: G2Json) -> list[list[str]]:
            return [*([str(int(c, 16)) for c in pair] for pair in point), ["1", "0"]]

        points = self._points
        key: SnarkjsKey = {
            "protocol": "groth16",
            "curve": "bn128",
            "nPublic": self.inputs,
            "vk_alpha_1": g1(points["alpha"]),
            "vk_beta_2": g2(points["beta"]),
            "vk_gamma_2": g2(points["gamma"]),
            "vk_delta_2": g2(points["delta"]),
            "IC": [g1(point) for point in points["ic"]],
        }
        return json.dumps(key)


@dataclass(frozen=True)
class KeyFiles:
    """The files of a circuit's keys, and the manifest of their setup.

    :param zkey: the proving key in snarkjs's format
    :param vk: the verification key, JSON as in a window file
    :param vk_digest: SHA-256 over the verification key's canonical JSON
    :param manifest: how the keys were made
    """

    zkey: Path
    vk: dict[str, Json]
    vk_digest: str
    manifest: KeyManifest


def load_verification_key(path: Path) -> VerificationKey:
    """Read a verification key from a file in our format.

    :raises EncodingError: the file is unreadable or not canonical
    :raises SchemaError: the key has other fields
    """
    return VerificationKey.parse(read_json(path, max_bytes=MAX_KEY_BYTES), field=str(path))


def installed(circuit: str) -> Path:
    """The folder of the key that a person installed for a circuit, which may not exist."""
    return cache_dir(FOLDER) / f"{circuit}-installed"


def proving_key(instance: Instance, *, ptau: Path | None = None, ptau_digest: str | None = None) -> KeyFiles:
    """The keys of an instance: the installed ones, or else unsafe ones that are made on first use.

    :param ptau: powers of tau of a public ceremony; the function makes a key from them with one contribution and
        installs it. Without them, this one party makes the powers too
    :param ptau_digest: see `check_powers`
    :raises SetupError: the circuit cannot be compiled, the powers do not fit, an installed key has other powers, or a
        cached file was altered
    :raises CeremonyError: the powers are false
    """
    # Verifiers import this module too, and make no keys.
    from rag_audit.proofs.backends.groth16.powers import check_powers, file_digest

    circuit_digest = instance.digest()
    phase1 = "native-one-party" if ptau is None else f"sha256:{file_digest(ptau)}"
    chosen = installed(circuit_digest)

    def build(folder: Path) -> None:
        if ptau is not None:
            check_powers(ptau, digest=ptau_digest)
        circuit = compile_circuit(instance)
        progress(f"making keys of {instance.name} ({circuit.constraints} constraints)")
        try:
            if ptau is None:
                _native.groth16_setup_one_party(circuit.r1cs, folder / "key.zkey")
            else:
                _native.groth16_setup(circuit.r1cs, ptau, folder / "key.zkey")
        except (ValueError, OSError) as exc:
            raise SetupError("no keys could be made", field=instance.name, actual=str(exc)) from exc
        write_keys(folder, instance, phase1=phase1, contributions=1, setup="unsafe")

    if ptau is not None or chosen.is_dir():
        files = load_keys(build_once(chosen, build), circuit_digest)
        if ptau is not None and files.manifest["phase1"] != phase1:
            raise SetupError(
                "the installed key has other powers of tau",
                field=str(chosen),
                expected=phase1,
                actual=files.manifest["phase1"],
                hint=f"windows that name it need it; if there are none: rm -r {chosen}",
            )
        return files
    return load_keys(build_once(cache_dir(FOLDER) / circuit_digest, build), circuit_digest)


def write_keys(
    folder: Path,
    instance: Instance,
    *,
    phase1: str,
    contributions: int,
    setup: str,
    extra: Mapping[str, Json] | None = None,
) -> None:
    """Write the verification key and the manifest next to `key.zkey`.

    :param contributions: number of secret contributions to phase 2
    :raises SetupError: `key.zkey` is malformed
    """
    circuit = instance.digest()
    try:
        text = _native.groth16_verification_key(str(folder / "key.zkey"))
    except (ValueError, OSError) as exc:
        raise SetupError("no verification key", field=instance.name, actual=str(exc)) from exc
    key = VerificationKey.from_snarkjs(text, circuit)
    manifest = {
        "circuit": circuit,
        "contributions": contributions,
        "name": instance.name,
        "phase1": phase1,
        "setup": setup,
        "vk": key.digest,
        **(extra or {}),
    }
    (folder / "verification_key.json").write_bytes(jcs(key.value))
    write_manifest(folder, manifest)


def load_keys(folder: Path, circuit: str) -> KeyFiles:
    """The keys in a folder of the cache. The function compares each of its files with the manifest.

    :raises SetupError: the keys belong to another circuit, or were altered
    """
    manifest = read_manifest(folder)
    key = load_verification_key(folder / "verification_key.json")
    if manifest.get("vk") != key.digest or key.circuit != circuit:
        raise SetupError(
            "a cached key does not match its manifest",
            field=str(folder),
            expected=f"circuit {circuit}, vk {manifest.get('vk')}",
            actual=f"circuit {key.circuit}, vk {key.digest}",
            hint=f"remove it, and the next run recreates it: rm -r {folder}",
        )
    # `write_keys` wrote it, in a folder that only this user can write to.
    return KeyFiles(folder / "key.zkey", key.value, key.digest, cast(KeyManifest, manifest))
