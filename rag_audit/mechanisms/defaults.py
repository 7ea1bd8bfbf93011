"""The common defaults of policies and trust files: a window made with defaults passes under a trust file of defaults
(docs/decisions/0036-defaults-that-agree.md).
"""

from __future__ import annotations

EPS_JOINT = "8"
"""Epsilon of a coalition of k_max accounts: the target of `provider policy new`, and the maximum that `verifier trust
new` accepts."""
EPS_POOLED_LISTING = "10"
"""The maximum epsilon if `verifier trust new` accepts pooled listing and no noise. It is the same for any number of
accounts."""
DELTA = "1e-5"
K_MAX = 10
QUERIES = 200
"""n, the queries of an account."""
ACCOUNTS_MAX = 16
THETA = "0.95"
"""The theta such that 5 % of windows with this number of honest accounts and queries exceed k_max, as `estimate
calibrate` measures on public questions (docs/estimator.md, "Real questions")."""
TAU = 0
"""The whole window."""
TOP_K = 5
K_SHARE = "0.1"
"""K over the smallest capacity."""
KEEP = "0.9"
"""The sampled share of a tenant's positions."""
EXCLUSION_FACTOR = "10"
"""The promise of `KEEP`; it counts only if a trust file accepts sampling."""
EXCLUSION_FACTOR_POOLED_LISTING = "30"
"""The maximum factor if `verifier trust new` accepts pooled listing: ten windows of one chain at the default
parameters have 1 / (0.1 * 0.9^10) = 28.7."""
MIN_KEEP = "0.5"
"""The minimum share of positions in a sample."""
RECEIPTS = 1
"""Receipts of accounts that the verifier knows to be independent."""
