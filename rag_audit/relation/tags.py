"""The tags that separate the uses of Poseidon, and the number of elements that one hash takes (docs/relation.md)."""

from __future__ import annotations

WIDTH = 17
RATE = WIDTH - 1
"""Maximum inputs of one `hash_elements`."""
LIST_RUN = RATE - 1
"""Number of list elements that one step of `hash_list` absorbs, in addition to the running hash."""

TAG_SEED = 1
TAG_NOISE = 2
TAG_QUERY = 3
TAG_VECTOR = 4
TAG_TOPK = 5
TAG_SLOT = 6
TAG_INDEX = 7
TAG_TABLE = 8
TAG_NOISE_BLOCK = 9
TAG_LIST = 10
TAG_COALITION = 11
TAG_SAMPLE = 12
TAG_ROWS = 13
TAG_CARRIED = 14
TAG_NAMES = 15
TAG_OPENED = 16
