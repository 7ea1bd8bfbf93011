"""Mutations of the commands' inputs: JSON by its structure, texts by their lines and words, both by bytes.

A mutator depends only on its seed, so the number in the name of a failed case repeats the case.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

PARTS = (
    "entries",
    "policy",
    "embedder",
    "roster",
    "tenants",
    "verification_keys",
    "proofs",
    "coalition_proof",
    "challenges",
)
"""The parts of a window file."""
BIG = 2**53
INTEGERS = (
    0,
    1,
    2,
    3,
    -1,
    7,
    63,
    64,
    65,
    255,
    65_536,
    2**31,
    2**32,
    2**40,
    2**52,
    BIG - 1,
    BIG,
    2**63,
    10**30,
    -BIG,
)
TEXTS = (
    "",
    " ",
    "0",
    "00",
    "-1",
    "1e-999",
    "1e999",
    "1e-9",
    "100000",
    "0.5",
    "nan",
    "inf",
    "true",
    "x",
    "a b",
    "..",
    "/",
    "../x",
    "٣",
    "１",
    "x\ny",
    "x\r\nPASS eps_audit=0.1",
    "\x1b[2J",
    "\u202e",
    "\u2028",
    "\x00",
    "é",
    "漢" * 50,
    "x" * 300,
    "=",
    "0" * 64,
    "f" * 64,
    "0" * 128,
    "F" * 64,
    "0" * 63,
    "example.org/rag",
    "law",
    "law-1",
    "w-1",
    "header",
    "query",
    "groth16",
    "scan",
    "declared",
    "proved",
    "\U0001f600",
    "\u0301" * 40,
    "— w1 AAAA",
    "rag-audit/challenge/v1",
    "1_000",
    "+1",
    "1.",
    ".1",
)
ATOMS: tuple[Any, ...] = (
    None,
    True,
    False,
    1.5,
    1e400,
    -0.0,
    [],
    {},
    [[]],
    [None],
    {"": 0},
    {"sibling": "x"},
    [5],
    {"a": {}},
)
DECIMALS = (
    "0",
    "1",
    "14",
    "100000",
    "1e9",
    "1e300",
    "1e-9",
    "1e-300",
    "1e-999",
    "0.5",
    "0.999999999999",
    "1e-5",
    "1e-7",
    "1e999",
)
_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{1,30})?(e-?[0-9]{1,3})?\Z")
_TOKEN = re.compile(r"[A-Za-z0-9]+|\s+|.", re.DOTALL)
_HEX = re.compile(r"[0-9a-f]{8,}\Z")


def _texts(value: Any) -> list[str]:
    """All texts inside a value, keys left out."""
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inside for text in _texts(item)]


class Mutator:
    """Draws mutations from one seed."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    # -- JSON ------------------------------------------------------------------------------------------------

    def json(self, value: Any, *, under: tuple[str, ...] = ()) -> bytes:
        """A file with one to four changes to a value, now and then to its bytes as well.

        :param under: keys; the change is below one of them, because a random place of a large file seldom matters
        """
        value = copy.deepcopy(value)
        for _ in range(self.pick(1, 1, 1, 2, 2, 3, 4)):
            key = self.pick(*under) if under and self.random.random() < 0.9 else None
            if key is not None and isinstance(value, dict) and key in value:
                value[key] = self.changed(value[key], value)
            else:
                value = self.changed(value, value)
        data = json.dumps(value, ensure_ascii=self.random.random() < 0.5).encode("utf-8", "surrogatepass")
        return self.bytes(data) if self.random.random() < 0.1 else data

    def changed(self, value: Any, whole: Any) -> Any:
        """A value with one change somewhere inside."""
        path = self._path(value)
        if not path:
            return self._other(value, whole)
        parent = value
        for step in path[:-1]:
            parent = parent[step]
        last = path[-1]
        way = self.random.random()
        if way < 0.12:
            del parent[last]
        elif way < 0.2 and isinstance(parent, dict):
            parent[self.pick(*TEXTS, *parent)] = parent.pop(last)
        elif way < 0.25 and isinstance(parent, dict):
            parent[self.pick(*TEXTS)] = copy.deepcopy(self._inside(whole))
        elif way < 0.35 and isinstance(parent, list):
            parent.insert(self.random.randrange(len(parent) + 1), copy.deepcopy(self.pick(*parent)))
        elif way < 0.4 and isinstance(parent, list):
            self.random.shuffle(parent)
        else:
            parent[last] = self._other(parent[last], whole)
        return value

    def gentle(self, value: Any, *, under: tuple[str, ...] = ()) -> Any:
        """A value with one to three changes that keep each part's form, so that what lies behind the forms is
        reached."""
        value = copy.deepcopy(value)
        for _ in range(self.pick(1, 1, 2, 3)):
            branch = value
            if under and isinstance(value, dict):
                branch = value[self.pick(*(key for key in under if value.get(key)))]
            path = self._path(branch)
            if not path:
                continue
            parent = branch
            for step in path[:-1]:
                parent = parent[step]
            parent[path[-1]] = self._alike(parent[path[-1]], value)
        return value

    def _alike(self, old: Any, whole: Any) -> Any:
        if isinstance(old, bool) or old is None:
            return old
        if isinstance(old, int):
            return self.pick(old + 1, max(0, old - 1), *(n for n in INTEGERS if 0 <= n < BIG))
        if isinstance(old, str):
            if _DECIMAL.match(old):
                return self.pick(*DECIMALS)
            others = [text for text in _texts(whole) if len(text) == len(old)]
            if _HEX.match(old) and self.random.random() < 0.5:
                at = self.random.randrange(len(old))
                return old[:at] + self.pick(*"0123456789abcdef") + old[at + 1 :]
            return self.pick(*others) if others and self.random.random() < 0.7 else self.pick(*TEXTS)
        if isinstance(old, list):
            at = self.random.randrange(len(old) + 1)
            return self.pick(
                old[:at], old[at:], old[::-1], old[:at] + old, old * 2, old * self.pick(1, 3, 50)
            )
        keys = list(old)
        return {key: old[self.pick(*keys)] if self.random.random() < 0.3 else old[key] for key in keys
                if self.random.random() < 0.9}  # fmt: skip

    def _path(self, value: Any) -> list[Any]:
        """A way into a value: each step into a branch at random, so that rare branches are found too."""
        path: list[Any] = []
        while isinstance(value, dict | list) and value and (not path or self.random.random() < 0.85):
            step = self.pick(*value) if isinstance(value, dict) else self.random.randrange(len(value))
            path.append(step)
            value = value[step]
        return path

    def _inside(self, whole: Any) -> Any:
        value = whole
        for step in self._path(whole):
            value = value[step]
        return value

    def _other(self, old: Any, whole: Any) -> Any:
        """Something in the place of a value, of its own kind more often than not."""
        if self.random.random() < 0.25:
            return copy.deepcopy(self.pick(*ATOMS, *TEXTS, *INTEGERS))
        if self.random.random() < 0.15:
            return copy.deepcopy(self._inside(whole))
        if isinstance(old, bool) or old is None:
            return self.pick(True, False, None, 0, 1)
        if isinstance(old, int | float):
            return self.pick(old + 1, old - 1, -old, old * 1000, 1.0 * min(old, BIG), *INTEGERS)
        if isinstance(old, str):
            return self.text(old)
        if isinstance(old, list):
            return self.pick(
                [], old * 2, old * 40, old[::-1], old[:-1], [old], dict(enumerate(map(str, old)))
            )
        return self.pick({}, [old], list(old), {**old, "x": 1}, {k: None for k in old})

    # -- texts -----------------------------------------------------------------------------------------------

    def text(self, old: str) -> str:
        """A text with one change: of a digit, a word, a line, or all of it."""
        if _HEX.match(old) and self.random.random() < 0.6:
            at = self.random.randrange(len(old))
            return self.pick(
                old[:at] + self.pick(*"0123456789abcdef") + old[at + 1 :],
                old[::-1], old.upper(), old[:-1], old + "0", "0" * len(old), "f" * len(old),
            )  # fmt: skip
        ways: list[Callable[[str], str]] = [self._lines, self._words, self._words, self._characters]
        changed: str = self.pick(*ways)(old)
        return changed if self.random.random() < 0.9 else self.pick(*TEXTS)

    def file(self, old: str) -> bytes:
        """A text file with one to four changes."""
        for _ in range(self.pick(1, 1, 1, 2, 3, 4)):
            old = self.text(old)
        data = old.encode("utf-8", "surrogatepass")
        return self.bytes(data) if self.random.random() < 0.1 else data

    def _lines(self, old: str) -> str:
        lines = old.split("\n")
        at = self.random.randrange(len(lines))
        way = self.pick("drop", "twice", "swap", "join", "odd", "many")
        if way == "drop":
            del lines[at]
        elif way == "twice":
            lines.insert(at, lines[at])
        elif way == "swap":
            self.random.shuffle(lines)
        elif way == "join":
            lines[at : at + 2] = ["".join(lines[at : at + 2])]
        elif way == "many":
            lines[at : at + 1] = [lines[at]] * self.pick(3, 70, 300)
        else:
            lines.insert(at, self.pick(*TEXTS))
        return "\n".join(lines)

    def _words(self, old: str) -> str:
        words = _TOKEN.findall(old)
        if not words:
            return str(self.pick(*TEXTS))
        at = self.random.randrange(len(words))
        word = words[at]
        new = self.pick(
            *TEXTS,
            *map(str, INTEGERS),
            *words[:20],
            word[::-1],
            word * 2,
            word * 200,
            "",
            word.upper(),
            "[",
            "]",
            "{",
            "[[",
            '"',
            "'",
            "#",
            ".",
            "=",
            "-",
            "+",
            "\\",
            "\n",
        )
        if word.isdigit():
            new = self.pick(
                new,
                str(int(word[:300]) + 1),
                "0",
                "0" + word,
                word + "0",
                word * 30,
                "-" + word,
                word + ".5",
                "true",
                "٣",
                f"0x{word}",
                f"1e{word[:3]}",
                f"1e-{word[:3]}",
            )
        words[at] = new
        return "".join(words)

    def _characters(self, old: str) -> str:
        at = self.random.randrange(len(old) + 1)
        end = min(len(old), at + self.pick(0, 1, 1, 2, 10, 1000))
        return old[:at] + self.pick("", "", old[at:end] * 2, *TEXTS) + old[end:]

    # -- bytes -----------------------------------------------------------------------------------------------

    def bytes(self, data: bytes) -> bytes:
        """Damage: cut, flipped, repeated, nested, not UTF-8."""
        at = self.random.randrange(len(data) + 1)
        return self.pick(
            data[:at],
            data[at:],
            data[:at] + bytes([self.random.randrange(256)]) + data[at + 1 :],
            data[:at] + data[at // 2 : at] + data[at:],
            data[:at] + b"[" * 2_000 + data[at:],
            data[:at] + b'{"a":' * 500 + data[at:],
            data[:at] + b"1" * 5_000 + data[at:],
            data[:at] + b"\xff\xfe" + data[at:],
            b"\xef\xbb\xbf" + data,
            data + data,
            data[:at] + b"\x00" + data[at:],
        )
