"""The proof systems behind one interface (`interface` for verifiers, `proving` for providers)."""
