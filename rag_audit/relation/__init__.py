"""The arithmetic that provider, circuits and verifier share, in exact integers (docs/relation.md).

This package is the reference: the native core and the circuits are tested against it through `vectors/`.
It has no I/O but the operating system's randomness.
"""
