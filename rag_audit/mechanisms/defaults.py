"""The defaults on which policies and trust files agree: a window made with defaults passes under a trust file of
defaults (docs/decisions/0036-defaults-that-agree.md).
"""

from __future__ import annotations

EPS_JOINT = "8"
"""Epsilon of k_max accounts together: what `policy new` aims at, and the most that `trust new` accepts."""
EPS_LISTING = "80"
"""The most that `trust new` accepts of k_max accounts together where it accepts listing and no noise: 8 for each of the
ten accounts, since the epsilon of listing grows by about as much with each account, and with no number of queries."""
DELTA = "1e-5"
K_MAX = 10
QUERIES = 200
"""n, the queries of an account."""
ACCOUNTS_MAX = 16
THETA = "0.95"
"""The theta at which 5 % of windows of so many honest accounts and queries exceed k_max, as `estimate calibrate` finds
on public questions (docs/estimator.md, "Real questions")."""
TAU = 0
"""The whole window."""
TOP_K = 5
K_SHARE = "0.1"
"""K over the smallest capacity."""
KEEP = "0.9"
"""The share of positions that a sampled tenant keeps."""
ODDS_UNLISTED = "10"
"""What `KEEP` promises; it counts only where a trust file accepts sampling."""
LEAST_KEEP = "0.5"
"""The least share of positions that a sample keeps."""
MAX_EMPTY = 7
"""Windows in a row that may end without a query: a week of daily windows. Each is one more draw of the seed."""
RECEIPTS = 1
"""Receipts of accounts that the verifier knows to be independent."""
