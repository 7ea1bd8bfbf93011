"""The checks of phase D, with one module for each group. Each takes a `Case` and reports every check, passed or not.

Ids are stable, since programs and regulators refer to them (docs/protocol.md, "Checks").
"""
