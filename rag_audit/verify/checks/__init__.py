"""The checks of phase D, one module a group. Each takes a `Case` and reports every check, passed or not.

Ids are stable: programs and regulators refer to them (docs/protocol.md, "Checks").
"""
