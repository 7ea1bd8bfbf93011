"""No mechanism under attack: exact scores of every position."""

from rag_audit.lab.attacks.mechanisms.base import Ranked, Usual


class AttackedExact(Ranked):
    """Exact scores, first K, with every defence of the papers."""

    name = "none"
    form = "none"
    usual = (Usual("none", "no noise", ("mirabel", "prompt", "paraphrase")),)
    bounded = frozenset()


ATTACKED = AttackedExact
