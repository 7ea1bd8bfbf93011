"""Members, others and the attacker's own texts, from one collection of documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from rag_audit.commit.explore.collections import NAMES, collection
from rag_audit.lab.attacks.interface import AttackError
from rag_audit.lab.attacks.text import words
from rag_audit.retrieval.inventory import Inventory, NoDocumentsError

MIN_WORDS = 12
"""Minimum words of a document: an attack has no question about a shorter one."""
MAX_OWN = 4096
"""The attacker's own texts, at most: its statistics of three words take a hundred times their length."""
LEAST = 20
"""The least members and others: below, no figure has an error worth printing."""
_SPACE = re.compile(r"\W+")


@dataclass(frozen=True)
class Split:
    """A division of a collection by a seed.

    :param members: documents in the index that are attacked
    :param others: documents outside the index that are attacked
    :param rest: further documents of the index
    :param own: the attacker's own texts, neither in the index nor attacked
    :param left_out: how many texts were empty or too short, and how many were duplicates
    """

    members: tuple[str, ...]
    others: tuple[str, ...]
    rest: tuple[str, ...]
    own: tuple[str, ...]
    left_out: tuple[int, int]

    @property
    def index(self) -> list[str]:
        """The documents of the index, members first."""
        return [*self.members, *self.rest]


def same(text: str) -> str:
    """A normal form that is equal for two copies of a document with different spaces, marks and capitals."""
    return _SPACE.sub(" ", text).strip().lower()


def make_split(texts: Sequence[str], *, members: int, others: int, seed: int = 0, own: float = 0.2) -> Split:
    """Divide texts at random. Duplicates and texts too short to attack are omitted and counted.

    :param own: the share of the texts that is the attacker's, of at most `MAX_OWN`
    :raises AttackError: the texts are too few; the counts are named
    """
    unique: dict[str, str] = {}
    short = copies = 0
    for text in texts:
        key = same(text)
        if len(words(text)) < MIN_WORDS:
            short += 1
        elif key in unique:
            copies += 1
        else:
            unique[key] = text
    usable = list(unique.values())
    Random(seed).shuffle(usable)
    mine = max(LEAST, min(MAX_OWN, int(own * len(usable))))
    if members < LEAST or others < LEAST or len(usable) < members + others + mine:
        raise AttackError(
            "there are too few documents for the split",
            field="--data",
            expected=f"{max(members, LEAST)} members, {max(others, LEAST)} others and {mine} of the attacker's own",
            actual=f"{len(usable)} usable texts; {short} empty or below {MIN_WORDS} words, {copies} copies",
            hint="lower --members and --others",
        )
    at = members + others
    attacker = usable[at : at + mine]
    return Split(
        tuple(usable[:members]),
        tuple(usable[members:at]),
        tuple(usable[at + mine :]),
        tuple(attacker),
        (short, copies),
    )


def given_split(members: Sequence[str], others: Sequence[str], own: Sequence[str], *, seed: int = 0) -> Split:
    """A split with members that are known from elsewhere, such as the documents of a running service.

    :param own: the attacker's texts; a fifth of the others if there are none
    :raises AttackError: a document is on both sides, or there are too few documents
    """
    both = {same(text) for text in members} & {same(text) for text in others}
    if both:
        places = [str(i) for i, text in enumerate(others) if same(text) in both][:5]
        raise AttackError(
            "members and others overlap",
            field="--others",
            expected="no document of --data",
            actual=f"{len(both)} copies, at lines {', '.join(places)}",
            hint="remove them from one file, because a copy would be a member and a non-member",
        )
    drawn, short, copies = [], 0, 0
    for part in (members, others, own):
        unique = {same(t): t for t in part if len(words(t)) >= MIN_WORDS}
        short += sum(len(words(t)) < MIN_WORDS for t in part)
        copies += sum(len(words(t)) >= MIN_WORDS for t in part) - len(unique)
        texts = list(unique.values())
        Random(seed).shuffle(texts)
        drawn.append(texts)
    m, o, mine = drawn
    if not mine:
        cut = max(LEAST, min(MAX_OWN, len(o) // 5))
        mine, o = o[:cut], o[cut:]
    if min(len(m), len(o), len(mine)) < LEAST:
        raise AttackError("there are too few documents for the split", field="--data, --others",
                          expected=f"{LEAST} of each", actual=f"{len(m)} members, {len(o)} others, {len(mine)} own",
                          )  # fmt: skip
    return Split(tuple(m), tuple(o), (), tuple(mine[:MAX_OWN]), (short, copies))


def only(split: Split, members: int | None) -> Split:
    """A split with at most this number of attacked members and others."""
    if members is None:
        return split
    return replace(split, members=split.members[:members], others=split.others[:members],
                   rest=(*split.rest, *split.members[members:]))  # fmt: skip


def load_data(name: str, inventory: Inventory | None = None, *, skip_unreadable: bool = False) -> list[str]:
    """The documents of a public collection by its name, or of a file or folder (`load_texts`).

    :raises AttackError: there is no such file, and no collection of that name
    """
    if name in NAMES:
        return list(collection(name).passages)
    if not Path(name).exists():
        raise AttackError("the documents are unknown", field="--data",
                          expected=f"demo, {', '.join(NAMES)}, or a file or folder", actual=name)  # fmt: skip
    return load_texts(Path(name), inventory, skip_unreadable=skip_unreadable)


def load_texts(path: Path, inventory: Inventory | None = None, *, skip_unreadable: bool = False) -> list[str]:
    """Documents from JSON Lines, ``{"text": ..}``, or from a folder of texts.

    :param inventory: records the texts that are read and the parts that are omitted
    :param skip_unreadable: whether to omit an unreadable file or line; otherwise the error is raised
    :raises SchemaError: a line has another shape; an empty text has the right shape, and is omitted later
    :raises NoDocumentsError: there are no documents; the error names the omitted parts
    """
    from rag_audit.commit.explore.samples import load_passages

    if path.is_dir():
        from rag_audit.retrieval.texts import load_directory

        result = load_directory(path, inventory=inventory, skip_unreadable=skip_unreadable)
        return [document.text for tenant in result.values() for document in tenant]
    inventory = inventory or Inventory()
    texts = [p.text for p in load_passages(path, inventory=inventory, skip_unreadable=skip_unreadable)]
    if not texts:
        raise NoDocumentsError("the file has no documents", field=str(path), expected='lines of {"text": ..}',
                               inventory=inventory)  # fmt: skip
    return texts
