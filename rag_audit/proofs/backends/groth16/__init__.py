"""Groth16 over BN254: circom circuits, keys, proof jobs and verifiers (docs/circuits.md)."""
