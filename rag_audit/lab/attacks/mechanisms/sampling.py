"""Sampling under attack: exact scores of the sampled positions."""

from rag_audit.lab.attacks.mechanisms.base import Ranked, Usual


class AttackedSampling(Ranked):
    """Exact scores of a sample, first K."""

    name = "sampling"
    form = "sampling:KEEP"
    usual = (Usual("sampling:0.7", "sampling:0.7"),)


ATTACKED = AttackedSampling
