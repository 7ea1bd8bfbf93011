"""Phase C, estimate: find accounts that repeat a question almost word for word (the paper's Section 5.4,
docs/estimator.md).

The estimate is a gate on the declared cap k_max; no bound of `accounting` rests on it.
"""
