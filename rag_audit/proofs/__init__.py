"""The proof systems behind one interface (`interface`): `groth16` for small tenants, `scan` for large ones."""
