"""Every witness of these tests is made twice."""

from tests.circuits.both import both

__all__ = ["both"]
