"""The attacks, one class each, and their registry."""

from __future__ import annotations

import importlib.util

from rag_audit._internal.extras import missing
from rag_audit.lab.attacks.interface import Attack, AttackError
from rag_audit.lab.attacks.methods.asking import Interrogation, RagMia
from rag_audit.lab.attacks.methods.continuing import (
    MinK,
    S2miaModel,
    S2miaPerplexity,
    S2miaSimilarity,
    S2miaThreshold,
)
from rag_audit.lab.attacks.methods.masking import Mba, MbaProxyOnly, MbaRandom, MbaWithoutSpelling
from rag_audit.lab.attacks.methods.shadow import ShadowAudit
from rag_audit.lab.attacks.methods.synthetic import EmbeddingScore, JaccardScore, NGramScore, Rmia

ATTACKS: dict[str, type[Attack]] = {
    attack.name: attack
    for attack in (
        Mba,
        MbaWithoutSpelling,
        MbaProxyOnly,
        MbaRandom,
        RagMia,
        S2miaSimilarity,
        S2miaPerplexity,
        S2miaThreshold,
        S2miaModel,
        MinK,
        Interrogation,
        ShadowAudit,
        NGramScore,
        JaccardScore,
        EmbeddingScore,
        Rmia,
    )
}
"""Every attack by its name on the command line."""
CLASSIFYING = frozenset({S2miaModel.name, ShadowAudit.name})
"""Attacks with a score that scikit-learn learns."""


def chosen(names: list[str]) -> list[Attack]:
    """The attacks of these names, `all` for every one.

    :raises AttackError: a name is unknown
    :raises SetupError: an attack learns a classifier, and scikit-learn is not installed; the error comes before the
        first question
    """
    wanted = list(ATTACKS) if "all" in names else list(dict.fromkeys(names))
    for name in wanted:
        if name not in ATTACKS:
            raise AttackError(
                "no attack has this name", field="NAMES", expected=", ".join(ATTACKS), actual=name
            )
    if CLASSIFYING.intersection(wanted) and importlib.util.find_spec("sklearn") is None:
        raise missing("sklearn", ", or omit the attacks that train a classifier with scikit-learn: "
                      f"{', '.join(sorted(CLASSIFYING))}")  # fmt: skip
    return [ATTACKS[name]() for name in wanted]
