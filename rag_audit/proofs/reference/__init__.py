"""A second verifier of the scan argument, written from docs/scan alone: slow, and nothing of the native core in it."""
