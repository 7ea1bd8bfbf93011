"""Measurements, one script each: `python -m bench.core [--json]`. None of them is a test."""
