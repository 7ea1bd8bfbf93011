"""A retriever of the reader's own service: a function from a question to passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_audit.lab.attacks.interface import Answer, Probe, Reply


class Retriever:
    """A function from a question to passages as the target of an attack. A reply is the text of all passages.

    The target has no generator, so its results concern the retrieval channel only. The target suits attacks that look
    for a text in a reply, such as the canary test (`rag_audit.lab.attacks.canaries`).

    >>> from rag_audit.lab.attacks.interface import Continue, Probe
    >>> target = Retriever(lambda question: ["the quick brown fox", "jumps over"])
    >>> [answer] = target.ask([Probe(0, 0, 0, Continue("the quick", maximum=3))])
    >>> answer.reply.text
    'the quick brown fox\\njumps over'

    :param search: returns the texts of the passages that the service retrieves for a question
    """

    label = "a retriever that answers with its passages"
    probabilities = False

    def __init__(self, search: Callable[[str], Sequence[str]]) -> None:
        self._search = search

    def ask(self, probes: Sequence[Probe]) -> list[Answer]:
        """Calls the function once for each probe, in the order of the probes."""
        return [Answer(Reply("\n".join(self._search(probe.task.retrieval)))) for probe in probes]
