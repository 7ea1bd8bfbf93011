"""Lexical components of an embedder: they raise the score of a passage that has the question's own words.

Each piece of the vocabulary has a public vector of random signs. The components of a token's row are its piece's signs
times a gain, which is higher for rarer pieces. Two texts with a common piece have a common summand; the signs of
different pieces are nearly orthogonal (a random projection of word counts: Charikar, STOC 2002). Documents weigh the
counts of their pieces as BM25 does (Robertson and Zaragoza, "The Probabilistic Relevance Framework", section 3.2).
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_audit.retrieval.embedders.base import Vectors

COMPONENTS = 512
"""Components of the default embedder."""
FIRST_WORD_OF_BERT = "the"
"""The most frequent word, and the first one in BERT's vocabulary."""
SIGNS = "rag-audit/lexical-1"
"""The seed of the signs: those of a piece are the bits of SHAKE-256 over seed, slash and piece, the first bit first, a
1 for minus."""
RANKS = (409, 1731, 6742, 25756)
"""Ranks from which the gain is 2, 3, 4 and 5: clip(round(3/4 ln(1 + rank/64)), 1, 7), with 3/4 ln(1 + rank/64) for the
inverse document frequency of a piece in a vocabulary whose frequencies follow Zipf's law."""
MARK = "\u2581"
"""The mark of a piece that begins a word."""

_FIRST_MERGE, _FIRST_CHARACTER = 259, 29_871
"""First tokens of two parts of the vocabulary, each sorted by frequency: merges, and single characters."""

_CONTROL = re.compile(r"\[[A-Z]+\]|\[unused\d+\]")

Numbers = npt.NDArray[np.int64]


class LexicalTable:
    """The lexical part of the table.

    :param pieces: the piece of each token; tokens with the same piece have the same signs
    :param ranks: the place of each token in the order of frequency; None for a token without a lexical part
    :param components: components of each row, a multiple of 8
    """

    def __init__(
        self, pieces: Sequence[str], ranks: Sequence[int | None], components: int = COMPONENTS
    ) -> None:
        lowest: dict[str, int | None] = {}
        for piece, rank in zip(pieces, ranks, strict=True):
            known = lowest.get(piece)
            lowest[piece] = known if rank is None else rank if known is None else min(known, rank)
        numbers = {piece: number for number, piece in enumerate(lowest)}
        self.piece_of: Numbers = np.array([numbers[piece] for piece in pieces])
        """the number of each token's piece, shape (tokens,)"""
        self.signs: Vectors = np.stack([_signs(piece, components) for piece in lowest])
        """the signs of each piece, 1 or -1, shape (pieces, components)"""
        self.gains: Vectors = np.array(
            [0 if rank is None else 1 + bisect_right(RANKS, rank) for rank in lowest.values()], np.int8
        )
        """the gain of each piece, 0 for a piece without a rank; shape (pieces,)"""

    @classmethod
    def of_llama(cls, vocabulary: Sequence[str]) -> LexicalTable:
        """The table of the vocabulary of Llama 2, with 512 components.

        :param vocabulary: the pieces in the order of their tokens: control pieces, 256 bytes, merges, characters
        """
        pieces = [_tied(token, piece) for token, piece in enumerate(vocabulary)]
        return cls(pieces, [_rank(token) for token in range(len(vocabulary))])

    @classmethod
    def of_bert(cls, vocabulary: Sequence[str], components: int) -> LexicalTable:
        """The table of the vocabulary of BERT in lower case.

        A piece within a word (`##ing`) has the signs of the word `ing`. Control pieces, which mark the ends of every
        text, have no lexical part.

        :param vocabulary: the pieces in the order of their tokens: control pieces, characters, words by frequency
        """
        first = vocabulary.index(FIRST_WORD_OF_BERT)
        pieces = [
            piece if token < first else piece.removeprefix("##") for token, piece in enumerate(vocabulary)
        ]
        ranks = [
            None if token < first and _CONTROL.fullmatch(piece) else max(0, token - first)
            for token, piece in enumerate(vocabulary)
        ]
        return cls(pieces, ranks, components)

    def rows(self) -> Vectors:
        """The lexical components of each token's row, shape (tokens, components)."""
        return (self.gains[:, None] * self.signs)[self.piece_of]

    def of_document(self, tokens: Numbers) -> Numbers:
        """The sum over a document's pieces of their signs times floor(2^8 n / (n + 1.2 (0.6 + 0.4 len / 180))), for n
        occurrences of the piece among len tokens; shape (components,).
        """
        pieces, counts = np.unique(self.piece_of[tokens], return_counts=True)
        weights = 256 * 375 * counts // (375 * counts + 270 + len(tokens))
        total: Numbers = weights @ self.signs[pieces].astype(np.int64)
        return total


def _tied(token: int, piece: str) -> str:
    """The piece of which all variants have the same signs: in lower case, without the mark; bytes and control pieces
    have no variants.
    """
    return piece if token < _FIRST_MERGE else piece.lstrip(MARK).lower()


def _rank(token: int) -> int:
    """The place of a token in its part of the vocabulary, 0 for control pieces and bytes, which are parts of words."""
    if token >= _FIRST_CHARACTER:
        return token - _FIRST_CHARACTER + 1
    return max(0, token - _FIRST_MERGE + 1)


def _signs(piece: str, components: int) -> Vectors:
    stream = hashlib.shake_256(f"{SIGNS}/{piece}".encode()).digest(components // 8)
    return 1 - 2 * np.unpackbits(np.frombuffer(stream, np.uint8)).astype(np.int8)
