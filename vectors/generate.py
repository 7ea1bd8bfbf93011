"""Known answers for every function of the relation, and for a challenge's draw, made by the Python reference.

    python vectors/generate.py            # write vectors/v1
    python vectors/generate.py --check    # compare with the files in vectors/v1

Inputs come from SHA-256 counters, so that the script can reproduce the files without other data.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from coins import coin_vectors
from document_table import document_table_vectors

from rag_audit.models.challenge import Challenge, draw, sample_size
from rag_audit.relation import draws, noise
from rag_audit.relation.commitments import (
    index_commitment,
    noise_key,
    query_commitment,
    seed_commitment,
    slot_id,
    text_query_commitment,
    topk_commitment,
    vector_commitment,
)
from rag_audit.relation.field import MODULUS, derive_salt, digest_to_field, to_bytes, to_hex
from rag_audit.relation.poseidon import hash_elements, hash_list, permute
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k
from rag_audit.relation.table import TableTree, leaf, tree_depth
from rag_audit.relation.tokens import pack_tokens
from rag_audit.relation.vectors import pack_nibbles
from rag_audit.retrieval.embedders import wordllama

VERSION = 1
ROOT = Path(__file__).resolve().parent
Case = dict[str, Any]


def element(label: str, number: int = 0) -> int:
    """Derive a field element from a label by hashing, so that the author cannot choose it."""
    return digest_to_field(f"rag-audit/vectors/v{VERSION}/{label}/{number}".encode())


def elements(label: str, count: int) -> list[int]:
    return [element(label, number) for number in range(count)]


def small(label: str, count: int, low: int, high: int) -> list[int]:
    """Return `count` integers in low..high."""
    return [low + x % (high - low + 1) for x in elements(label, count)]


def hexes(xs: list[int]) -> list[str]:
    return [to_hex(x) for x in xs]


def field_vectors() -> Case:
    shifted = f"{MODULUS + 5:064x}"
    return {
        "encodings": [
            {"value": str(x), "hex": to_hex(x)} for x in (0, 1, 2**253, MODULUS - 1, element("field"))
        ],
        "digest_to_field": [
            {"data_hex": data.hex(), "result": to_hex(digest_to_field(data))}
            for data in (b"", b"abc", bytes(range(64)))
        ],
        "negative": [
            {"name": "field_not_canonical", "hex": f"{MODULUS:064x}", "why": "r is another form of 0"},
            {"name": "field_not_canonical_shifted", "hex": shifted, "why": "r + 5 is another form of 5"},
            {"name": "field_uppercase", "hex": to_hex(MODULUS - 1).upper(), "why": "lowercase only"},
            {"name": "field_too_short", "hex": "05", "why": "64 digits"},
            {"name": "field_too_long", "hex": "00" + to_hex(5), "why": "64 digits"},
            {"name": "field_prefixed", "hex": "0x" + to_hex(5)[2:], "why": "hexadecimal digits only"},
        ],
    }


def poseidon_vectors() -> Case:
    states = [[0] * 17, [0, *range(1, 17)], [MODULUS - 1] * 17, elements("state", 17)]
    inputs = [[], [0], [1], [1, 2], list(range(1, 17)), [MODULUS - 1] * 16, elements("hash", 15)]
    lists = [(7, elements(f"list{n}", n)) for n in (0, 1, 14, 15, 16, 30, 31)] + [
        (4, [0] * 15),
        (4, [0] * 16),
    ]
    return {
        "permute": [{"state": hexes(s), "result": hexes(permute(s))} for s in states],
        "hash": [{"inputs": hexes(xs), "result": to_hex(hash_elements(*xs))} for xs in inputs],
        "hash_list": [
            {"tag": tag, "elements": hexes(xs), "result": to_hex(hash_list(tag, xs))} for tag, xs in lists
        ],
        "negative": [
            {"name": "hash_too_many_inputs", "inputs": hexes([1] * 17), "why": "at most 16"},
        ],
    }


def packing_vectors() -> Case:
    rows = [
        [],
        [0],
        [7],
        [-7],
        [-8],
        list(range(-8, 8)),
        small("nibbles", 63, -7, 7),
        small("wide", 64, -7, 7),
    ]
    rows.append(small("row", 256, -7, 7))
    tokens = [[], [0], [32767], list(range(16)), small("tokens", 17, 0, 31999), small("query", 64, 0, 31999)]
    full = pack_nibbles([1] * 63)[0]
    return {
        "nibbles": [{"values": v, "elements": hexes(pack_nibbles(v))} for v in rows],
        "tokens": [{"tokens": v, "elements": hexes(pack_tokens(v))} for v in tokens],
        "negative": [
            {"name": "nibble_above_seven", "values": [0, 8], "why": "components are -8..7"},
            {"name": "nibble_below_minus_eight", "values": [-9], "why": "components are -8..7"},
            {"name": "token_sixteen_bits", "tokens": [32768], "why": "15 bits a token"},
            {"name": "token_negative", "tokens": [-1], "why": "15 bits a token"},
            {
                "name": "nibbles_padding_not_eight",
                "elements": hexes([full]),
                "count": 62,
                "why": "a second packing of the same vector",
            },
            {
                "name": "nibbles_too_wide",
                "elements": hexes([full + 2**252]),
                "count": 63,
                "why": "a second packing of the same vector",
            },
            {
                "name": "nibbles_wrong_count",
                "elements": hexes([full]),
                "count": 64,
                "why": "two elements needed",
            },
        ],
    }


def score_vectors() -> Case:
    q, e = small("q", 256, -7, 7), small("e", 256, -7, 7)
    windows = [ScoreWindow.for_scale(Fraction(22, 100), r) for r in (64, 128, 256)]
    windows += [ScoreWindow.for_scale(Fraction(15, 100), 64), ScoreWindow(0, 1, 1), ScoreWindow(3, 10, 4)]
    edges = (
        -12544,
        -1,
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        9,
        10,
        11,
        101,
        102,
        106,
        107,
        400,
        455,
        456,
        809,
        810,
        811,
        12544,
    )
    return {
        "dot": [
            {"q": q, "e": e, "result": dot(q, e)},
            {"q": [7] * 256, "e": [-7] * 256, "result": dot([7] * 256, [-7] * 256)},
            {"q": q, "e": [0] * 256, "result": 0},
        ],
        "quantise": [
            {
                "lo": w.lo,
                "hi": w.hi,
                "lattice": w.lattice,
                "scores": edges,
                "result": [w.quantise(s) for s in edges],
            }
            for w in windows
        ],
        "default_window": [
            {"scale": str(s), "lattice": 64, "lo": w.lo, "hi": w.hi}
            for s in ("0.22", "0.15", "0.19")
            for w in [ScoreWindow.for_scale(Fraction(s), 64)]
        ],
        "negative": [
            {"name": "window_empty", "lo": 101, "hi": 101, "lattice": 64, "why": "lo < hi"},
            {"name": "window_reversed", "lo": 810, "hi": 101, "lattice": 64, "why": "lo < hi"},
            {
                "name": "window_below_zero",
                "lo": -1,
                "hi": 810,
                "lattice": 64,
                "why": "empty rows must give 0",
            },
            {"name": "lattice_not_power_of_two", "lo": 101, "hi": 810, "lattice": 100, "why": "power of two"},
            {"name": "lattice_zero", "lo": 101, "hi": 810, "lattice": 0, "why": "power of two"},
        ],
    }


def noise_vectors() -> Case:
    shapes = [
        (1, [1]),
        (80, [1]),
        (81, [1]),
        (64, [1, 8]),
        (64, [1, 8, 64]),
        (30, [1, 8, 64, 512, 4096, 32768]),
    ]
    pmf = noise.base_pmf()
    r = MODULUS
    return {
        "noise": noise.NOISE_VERSION,
        "table_sha256": noise.table_digest(),
        "masses": {
            "denominator": "2^40",
            "of": "x = 0..127; P(-x) = P(x)",
            "values": [pmf[x] for x in range(128)],
        },
        "draw": [
            {"kappa": to_hex(kappa), "positions": n, "gains": gains, "result": draws.draw(kappa, n, gains)}
            for number, (n, gains) in enumerate(shapes)
            for kappa in (element("kappa", number), MODULUS - 1 - number)
        ],
        "negative": [
            {"name": "gains_none", "gains": [], "why": "1 to 6 gains"},
            {"name": "gains_seven", "gains": [1] * 7, "why": "1 to 6 gains"},
            {"name": "gains_first_not_one", "gains": [2, 8], "why": "g_1 = 1"},
            {"name": "gains_ratio_above_eight", "gains": [1, 9], "why": "g_(c+1) <= 8 g_c"},
            {"name": "gains_zero", "gains": [1, 0], "why": "positive"},
            {
                "name": "word_not_canonical",
                "word": to_hex(element("word")),
                "high": str((element("word") + r) >> 200),
                "low_hex": f"{(element('word') + r) % 2**200:050x}",
                "why": "the decomposition of word + r: high must be below r >> 200 for Groth16",
            },
        ],
        "word_high_limit": str(r >> 200),
    }


def selection_vectors() -> Case:
    ties = [5, 9, 9, -3, 9, 5, 0, -3]
    many = small("y", 64, -40, 40)
    return {
        "top_k": [
            {"y": y, "k": k, "result": top_k(y, k)}
            for y, k in (([0], 1), ([0] * 8, 5), (ties, 1), (ties, 3), (ties, 8), (many, 5), (many, 64))
        ],
        "negative": [
            {"name": "k_zero", "y": ties, "k": 0, "why": "K >= 1"},
            {"name": "k_above_positions", "y": ties, "k": 9, "why": "K <= capacity"},
        ],
    }


def commitment_vectors() -> Case:
    s0, s1, beacon, salt = (element(name) for name in ("s0", "s1", "beacon", "salt"))
    master = bytes(range(32))
    text = "Wie viele Schreibvorgänge?"
    vector = small("q", 256, -7, 7)
    tokens = small("query", 20, 0, 31999)
    slots = [
        ("w-1", "tenant-a", "account-1", 1),
        ("w-1", "tenant-a", "account-1", 2),
        ("w-1", "tenant-b", "ü", 1),
    ]
    rows = [small(f"row{n}", 8, -7, 7) for n in range(3)] + [[0] * 8]
    return {
        "seed": [{"s0": to_hex(s0), "s1": to_hex(s1), "result": to_hex(seed_commitment(s0, s1))}],
        "slot": [
            {"window": w, "tenant": t, "account": a, "i": i, "result": to_hex(slot_id(w, t, a, i))}
            for w, t, a, i in slots
        ],
        "noise_key": [
            {
                "s0": to_hex(s0),
                "s1": to_hex(s1),
                "beacon": to_hex(beacon),
                "slot": to_hex(slot_id(*slot)),
                "result": to_hex(noise_key(s0, s1, beacon, slot_id(*slot))),
            }
            for slot in slots
        ],
        "salt": [
            {"master_hex": master.hex(), "label": label, "result": to_hex(derive_salt(master, label))}
            for label in ("q", "c", "k", "a")
        ],
        "query": [
            {"salt": to_hex(salt), "tokens": t, "result": to_hex(query_commitment(salt, t))}
            for t in ([], tokens[:1], tokens)
        ],
        "text_query": [
            {"salt": to_hex(salt), "text": t, "result": to_hex(text_query_commitment(salt, t.encode()))}
            for t in ("", text)
        ],
        "vector": [
            {"salt": to_hex(salt), "vector": vector, "result": to_hex(vector_commitment(salt, vector))}
        ],
        "topk": [
            {"salt": to_hex(salt), "positions": p, "result": to_hex(topk_commitment(salt, p))}
            for p in ([3], [1, 0], [0, 1], [63, 0, 17, 5, 4])
        ],
        "index": [
            {"salt": to_hex(salt), "rows": r, "result": to_hex(index_commitment(salt, r))}
            for r in (rows[:1], rows, [small(f"doc{n}", 256, -7, 7) for n in range(8)])
        ],
        "negative": [
            {
                "name": "slot_zero",
                "slot": {"window": "w-1", "tenant": "t", "account": "a", "i": 0},
                "why": "i >= 1",
            },
            {"name": "index_ragged", "rows": [[0, 0], [0]], "why": "one dimension"},
            {"name": "index_component_out_of_range", "rows": [[8]], "why": "components are -8..7"},
        ],
    }


def table_vectors() -> Case:
    rows = [small(f"table{n}", 256, -7, 7) for n in range(7)]
    edges = [[0] * 256, [7] * 256, [-8] * 256, [*[0] * 255, 1]]
    trees = [(rows[:3], 1), (rows, 1), (rows[:1], 2), (rows + edges, 2)]
    return {
        "permute": [
            {"state": hexes(s), "result": hexes(permute(s))}
            for s in ([0] * 9, [MODULUS - 1] * 9, elements("state9", 9))
        ],
        "leaf": [{"row": row, "result": to_hex(leaf(row))} for row in (rows[0], *edges, small("wide", 768, -7, 7))],
        "tree": [
            {"depth": depth, "rows": table, "result": to_hex(TableTree(table, depth).root)}
            for table, depth in trees
        ],
        # The file leaves out the table's 32,000 rows; the reference hashes them in minutes (a test of the full suite).
        wordllama.NAME: {
            "depth": tree_depth(wordllama.VOCABULARY),
            "table_sha256": wordllama.TABLE_SHA256,
            "nodes_sha256": wordllama.TREE_SHA256,
            "result": wordllama.TABLE_ROOT,
        },
        "negative": [
            {"name": "table_without_a_zero_row", "depth": 1, "rows": [*rows, rows[0]], "why": "8^depth - 1 rows"},
            {"name": "table_without_rows", "depth": 1, "rows": [], "why": "at least one row"},
        ],
    }  # fmt: skip


def challenge_vectors() -> Case:
    root, nonce = to_bytes(element("challenge/root")), to_bytes(element("challenge/nonce"))
    origin, window = "example.org/rag", "w-1"

    def note(sample: int | None) -> str:
        return Challenge(origin, window, 1402, root, nonce, sample).text()

    def lines(*changes: tuple[int, str]) -> str:
        result = note(7).split("\n")
        for number, line in changes:
            result[number] = line
        return "\n".join(result)

    return {
        "draw": [
            {"root": root.hex(), "nonce": n.hex(), "count": count, "sample": sample,
             "result": draw(root, n, count, sample)}
            for count, sample in ((1, 1), (7, 3), (7, 7), (7, 9), (1400, 20))
            for n in (nonce, bytes(32))
        ],
        "sample_size": [
            {"beta": beta, "eta": eta, "count": count, "result": sample_size(Decimal(beta), Decimal(eta), count)}
            for beta, eta in (("0.01", "0.05"), ("0.1", "0.001"), ("0.5", "0.5"))
            for count in (12, 1400)
        ],
        "note": [{"sample": sample, "text": note(sample)} for sample in (None, 7)],
        "negative": [
            {"name": "challenge_other_header", "text": lines((0, "rag-audit/challenge/v2")), "why": "unknown version"},
            {"name": "challenge_size_with_leading_zero", "text": lines((3, "01402")), "why": "one form of a number"},
            {"name": "challenge_short_nonce", "text": lines((5, "00" * 31)), "why": "32 bytes"},
            {"name": "challenge_uppercase_nonce", "text": lines((5, "AB" * 32)), "why": "lowercase only"},
            {"name": "challenge_unknown_mode", "text": lines((6, "half")), "why": "full or sampled <count>"},
            {"name": "challenge_sample_not_a_number", "text": lines((6, "sampled -1")), "why": "decimal digits"},
            {"name": "challenge_further_line", "text": note(7) + "more\n", "why": "seven lines"},
            {"name": "challenge_without_last_newline", "text": note(7)[:-1], "why": "seven lines"},
        ],
    }  # fmt: skip


def render(name: str, body: Case) -> bytes:
    """Format JSON with one case a line: readable in a diff, and readable for every JSON parser."""

    def compact(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))

    def entries() -> Iterator[str]:
        for key, value in {"version": VERSION, "vectors": name, **body}.items():
            cases = isinstance(value, list)
            text = "[\n  " + ",\n  ".join(map(compact, value)) + "\n ]" if cases else compact(value)
            yield f" {json.dumps(key)}: {text}"

    return ("{\n" + ",\n".join(entries()) + "\n}\n").encode()


def files() -> dict[str, bytes]:
    """Return every file by its path. The table has no line feed at its end, because its SHA-256 is pinned."""
    bodies = {
        "field": field_vectors,
        "poseidon": poseidon_vectors,
        "packing": packing_vectors,
        "scores": score_vectors,
        "noise": noise_vectors,
        "selection": selection_vectors,
        "commitments": commitment_vectors,
        "table": table_vectors,
        "challenge": challenge_vectors,
        "coins": coin_vectors,
        "document-table": document_table_vectors,
    }
    out = {f"v{VERSION}/{name}.json": render(name, body()) for name, body in bodies.items()}
    return out | {f"v{VERSION}/dgs1-table.json": noise.table_json()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    stale = []
    for name, data in files().items():
        path = ROOT / name
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        elif not path.is_file() or path.read_bytes() != data:
            stale.append(name)
    for name in stale:
        print(f"vectors: {name} differs from the reference", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
