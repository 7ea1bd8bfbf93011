"""A second verifier of the scan argument: slow, and written from docs/scan alone, not from the native core.

`session` has what runs are made of, `closing` proves what they claim; a module for each kind of run stands on these.
"""
