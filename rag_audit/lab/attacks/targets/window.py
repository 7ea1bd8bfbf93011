"""A running window under attack: its accounts ask, and a generator answers from the returned passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import RequestRefused
from rag_audit.account.account import Account, embedder_of
from rag_audit.lab.attacks.interface import Answer, AttackError, Generator, Probe
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.split import same
from rag_audit.log.keys import VerifierKey
from rag_audit.models.policy import Policy
from rag_audit.models.publication import Publication
from rag_audit.models.requests import SignedRequest


class WindowService:
    """Asks a window's service as its accounts, which pool their received documents.

    :param accounts: the colluding accounts, of one tenant
    :param send: sends a signed request to the provider and returns its reply
    :param documents: the attacked documents by number; one counts as found if it is among the answers
    :raises AttackError: there is no account, or they are of several tenants
    """

    def __init__(
        self,
        accounts: Sequence[Account],
        window: Publication,
        provider: VerifierKey,
        send: Callable[[SignedRequest], Json],
        generator: Generator,
        documents: Mapping[int, str],
    ) -> None:
        if not accounts or len({a.tenant for a in accounts}) > 1:
            raise AttackError("an attack on a window needs accounts of one tenant", field="--account",
                              expected="at least one", actual=", ".join(f"{a.account} of {a.tenant}" for a in accounts),
                              )  # fmt: skip
        window.check()
        self._accounts = list(accounts)
        self._window = window
        self._provider = provider
        self._send = send
        self._generator = generator
        self._documents = {number: same(text) for number, text in documents.items()}
        self._embedder = embedder_of(window)
        self._policy = Policy.parse(window.policy, field="policy")
        self._locks = [Lock() for _ in accounts]

        self.name = f"{window.header_digest()} {' '.join(a.account for a in accounts)}"
        self.label = f"window {self._policy.window}, answered by {generator.label}"
        self.probabilities = generator.probabilities

    @property
    def facts(self) -> dict[str, str]:
        """The attacked window and tenant, and the certified bounds in words."""
        return {
            "certified": self.certified,
            "header": self._window.header_digest(),
            "tenant": self._accounts[0].tenant,
        }

    @property
    def certified(self) -> str:
        """The bounds on lists that the window's policy certifies, in words."""
        figures = self._policy.figures()
        return (
            f"the window's policy: eps_audit {figures['eps_audit']} for {self._policy.k_max} accounts of"
            f" {self._policy.n} queries; it covers the lists, and not the content of the listed texts"
        )

    def ask(self, probe: Probe) -> Answer:
        """One question of one account.

        :raises AttackError: the account has no queries left, or does not belong to the window
        :raises RequestRefused: the provider refused for another reason
        """
        number = probe.account % len(self._accounts)
        account = self._accounts[number]
        question = probe.task.retrieval
        with self._locks[number]:  # an account has one request on its way at a time
            try:
                answer = account.ask(
                    self._window, question, self._provider, self._send, embedder=self._embedder
                )
            except RequestRefused as exc:
                if exc.reason in ("unknown-account", "unknown-tenant", "wrong-tenant"):
                    raise AttackError(
                        "the account cannot send queries in this window", field=account.account,
                        expected="an account of the window's roster, or one enrolled since (`rag-audit provider"
                                 " enrol`)",
                        actual=exc.reason,
                    ) from exc  # fmt: skip
                if exc.reason in ("limit", "slot-used"):
                    raise AttackError(
                        "the account has used all queries of the window's policy", field=account.account,
                        expected=f"at most {self._policy.n} queries", actual=exc.reason,
                        hint="attack fewer documents (--members), or use more accounts; finished answers are stored",
                    ) from exc  # fmt: skip
                raise
            texts = [document.text for document in answer.documents]
        wanted = self._documents.get(probe.document)
        passages = [Passage(text) for text in texts if text]
        result = None if wanted is None else any(same(text) in wanted for text in texts if text)
        return Answer(self._generator.answer(probe.task, passages), result)
