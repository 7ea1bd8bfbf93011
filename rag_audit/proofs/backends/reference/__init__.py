"""A second verifier of the scan argument: slow, and written only from docs/scan, not from the native core.

`session` has the elements of runs, `closing` proves their claims; one module for each kind of run uses these two.
"""
