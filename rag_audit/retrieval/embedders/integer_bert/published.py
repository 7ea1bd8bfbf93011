"""The values of the integer embedders that a policy or a verifier takes without the model's files."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from rag_audit.models.manifest import ENCODER_ARTEFACT, EmbedderManifest, EncoderConstants
from rag_audit.relation.scores import MAX_COMPONENT
from rag_audit.retrieval.embedders.base import PromptTemplate
from rag_audit.retrieval.embedders.integer_bert.semantics import Scales
from rag_audit.retrieval.embedders.normal_form import NORMAL_FORM
from rag_audit.retrieval.embedders.quantise import published_scale, score_range

MINILM = "minilm-int"
LEXICAL_MINILM = "minilm-int-lexical-768"
LEXICAL_COMPONENTS = 384
DOCUMENT_RULE = "minilm-lexical-1"
"""The rule of `LexicalBert` by which documents are embedded."""
SCORE_WINDOW = (420, 1680)
"""0.1 and 0.4 of the largest score, (7 / 0.108)^2: of nine windows, the one with the highest recall under noise on
1,000 questions of SQuAD."""
LEXICAL_RELEVANCE = 766
"""95 of 100 questions of SQuAD reach this raw score of `minilm-int-lexical-768` with their own passage."""
RELEVANCE = 644
"""95 of 100 questions of SQuAD reach this raw score of `minilm-int` with their own passage, and 1.5 of 100 pairs with
another question's passage reach it (`rag-audit lab relevance`, all 10,570 questions of dev v1.1)."""
SCALES = Scales(x=6, q=7, v=8, o=8, z=6, g=6)
"""The scales of all-MiniLM-L6-v2, by `python -m bench.minilm scales` on SciFact, and the default of other models."""
FILE_PINS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""SHA-256 of the published files of all-MiniLM-L6-v2."""
DIMENSION = 384
PLACES = 256
"""Maximum tokens of a text of all-MiniLM-L6-v2, as its publisher gives it."""
FILE_ARTEFACTS = {
    "integers": "356fb2085bd46298b54e133f8da06928a4f094c963e82f06dd456bb034203e84",
    "scales": "e08b086d2fb7610b7437aae13f20a9e89b41141ae1f1728148d2cad162370a79",
    "tables": "f56509718baba5330f57f978da684b8b7d603610336c414d5059fc893a48fa6b",
    "tokenizer": FILE_PINS["tokenizer.json"],
    "weights": FILE_PINS["model.safetensors"],
}
"""Anybody who has the two files can compute the other digests from them."""
ARTEFACTS = {
    **FILE_ARTEFACTS,
    ENCODER_ARTEFACT: "58d9f7c821fdc3c5e3b9e85279d42a4dcf6c0905eccaecf635c22e3cd6375b46",
}
"""The artefacts of `minilm-int`: also the digest of its pins, which proofs of claim A1 name."""
LEXICAL_ARTEFACTS = {
    **FILE_ARTEFACTS,
    "lexical": "33c21603ae1b89b12cf66fcb79b482b4b83c5bbafbed5a51a0a9e965959baf8b",
}
"""The artefacts of `minilm-int-lexical-768`: also SHA-256 over the lexical rows as int8, token by token."""


def norm_factor(scale: str) -> int:
    """A of the integer normalisation: 7 * 2^8 / scale, rounded half up."""
    exact = Fraction(MAX_COMPONENT << 8) / Fraction(scale)
    return int(exact + Fraction(1, 2))


@dataclass(frozen=True)
class Description:
    """What a manifest states of an embedder.

    :param name: the embedder's name in the registry
    :param artefacts: SHA-256 of files, integers, tables and scales
    :param dimension: components of a vector
    :param pooling: how the rows of a text's tokens become one vector
    :param documents: the rule by which documents are embedded, if it differs from that of queries
    :param window: lo and hi of the score window; None for 0.1 and 0.8 of the largest score
    :param relevance: minimum raw score of a relevant passage, which `rag-audit lab relevance` measured on public texts;
        None if it was not measured
    """

    name: str
    artefacts: dict[str, str]
    dimension: int
    pooling: str = "mean"
    template: PromptTemplate = field(default_factory=PromptTemplate)
    documents: str | None = None
    window: tuple[int, int] | None = None
    relevance: int | None = None

    @property
    def scale(self) -> str:
        """The quantiser's scale, a decimal string."""
        return published_scale(self.dimension)

    @property
    def norm_factor(self) -> int:
        return norm_factor(self.scale)

    @property
    def encoder(self) -> EncoderConstants | None:
        """The constants of proofs of claim A1; None if there is no such proof."""
        return EncoderConstants(self.norm_factor) if ENCODER_ARTEFACT in self.artefacts else None

    @property
    def score_window(self) -> tuple[int, int]:
        return self.window or score_range(Fraction(self.scale))

    def manifest_of(self, query_tokens: int, document_tokens: int) -> EmbedderManifest:
        """The embedder's manifest."""
        result: EmbedderManifest = {
            "kind": self.name,
            "artefacts": dict(self.artefacts),
            "dimension": self.dimension,
            "normal_form": NORMAL_FORM,
            "pooling": self.pooling,
            "prompt": self.template.digest(),
            "quantiser": {"bits": 4, "scale": self.scale, "norm_factor": self.norm_factor},
            "query_commitment": "tokens" if ENCODER_ARTEFACT in self.artefacts else "text",
            "tokens": {"document": document_tokens, "query": query_tokens},
        }
        if self.documents is not None:
            result["documents"] = self.documents
        return result


PUBLISHED_MODELS = {
    MINILM: Description(MINILM, ARTEFACTS, DIMENSION, relevance=RELEVANCE),
    LEXICAL_MINILM: Description(
        LEXICAL_MINILM,
        LEXICAL_ARTEFACTS,
        DIMENSION + LEXICAL_COMPONENTS,
        documents=DOCUMENT_RULE,
        window=SCORE_WINDOW,
        relevance=LEXICAL_RELEVANCE,
    ),
}
