"""Documents from tables and databases. Their rows become the lines of ``<tenant>.jsonl``.

A window commits to the provider's own copy, which is made once: a later change in the database changes no open window.
"""
