"""Documents from where they are: tables and databases, whose rows become the lines of ``<tenant>.jsonl``.

What a window commits to is the provider's own copy, made once: a database that changes changes no open window.
"""
