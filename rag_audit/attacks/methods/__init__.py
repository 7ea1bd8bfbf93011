"""The attacks, one class each, and their registry."""

from __future__ import annotations

from rag_audit.attacks.interface import Attack, AttackError
from rag_audit.attacks.methods.asking import Interrogation, RagMia
from rag_audit.attacks.methods.continuing import (
    MinK,
    S2miaModel,
    S2miaPerplexity,
    S2miaSimilarity,
    S2miaThreshold,
)
from rag_audit.attacks.methods.masking import Mba, MbaProxyOnly, MbaRandom, MbaWithoutSpelling
from rag_audit.attacks.methods.shadow import ShadowAudit
from rag_audit.attacks.methods.synthetic import EmbeddingScore, JaccardScore, NGramScore, Rmia

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


def chosen(names: list[str]) -> list[Attack]:
    """The attacks of these names, `all` for every one.

    :raises AttackError: a name is unknown
    """
    wanted = list(ATTACKS) if "all" in names else list(dict.fromkeys(names))
    for name in wanted:
        if name not in ATTACKS:
            raise AttackError(
                "there is no such attack", field="NAMES", expected=", ".join(ATTACKS), found=name
            )
    return [ATTACKS[name]() for name in wanted]
