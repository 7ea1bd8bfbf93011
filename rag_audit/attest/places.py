"""The places of a window's accounts: whose ids, keys and tenants' caps are taken, without a look at the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rag_audit._internal.errors import PolicyError
from rag_audit.models.policy import Policy
from rag_audit.models.records import RosterEntry


class Places:
    """The accounts that a window has, or is about to have. What one more costs does not depend on their number.

    :param lines: the roster, which was checked (`formats.opening.check_roster`)
    """

    def __init__(self, policy: Policy, lines: Iterable[RosterEntry]) -> None:
        self._policy = policy
        self._keys: dict[str, str] = {}
        self._ids: set[str] = set()
        self._counts: Counter[str] = Counter()
        for line in lines:
            self.put(line)

    def put(self, line: RosterEntry) -> None:
        """Count an account that has its place by the ledger, whatever a check would say."""
        if line.account not in self._ids:
            self._ids.add(line.account)
            self._keys[line.key] = line.account
            self._counts[line.tenant] += 1

    def take(self, lines: Sequence[RosterEntry]) -> None:
        """Take a place for each line, or for none.

        :raises PolicyError: a tenant is unknown, an id or key is repeated, or a tenant's cap is reached
        """
        taken: list[RosterEntry] = []
        try:
            for line in lines:
                self._check(line)
                self.put(line)
                taken.append(line)
        except PolicyError:
            self.give_back(taken)
            raise

    def without_place(self, lines: Sequence[RosterEntry]) -> dict[int, PolicyError]:
        """Why a line would get no place if all were to take theirs in this order, by its number. None is taken."""
        refused: dict[int, PolicyError] = {}
        for number, line in enumerate(lines):
            try:
                self.take([line])
            except PolicyError as exc:
                refused[number] = exc
        self.give_back(line for number, line in enumerate(lines) if number not in refused)
        return refused

    def give_back(self, lines: Iterable[RosterEntry]) -> None:
        """Give up places that were taken."""
        for line in lines:
            self._ids.discard(line.account)
            self._keys.pop(line.key, None)
            self._counts[line.tenant] -= 1

    def _check(self, line: RosterEntry) -> None:
        part = self._policy.tenant(line.tenant)
        if part is None:
            raise PolicyError(
                "the roster names an unknown tenant", field=f"roster.{line.account}", found=line.tenant
            )
        if line.account in self._ids:
            raise PolicyError("the roster repeats an account", field="roster", expected="each once",
                              found=line.account)  # fmt: skip
        if line.key in self._keys:
            raise PolicyError("the roster repeats a key", field=f"roster.{line.account}", expected="each once",
                              found=line.key)  # fmt: skip
        if (count := self._counts[line.tenant] + 1) > part.accounts_max:
            raise PolicyError(
                "the roster has more accounts than the tenant's cap",
                field=f"roster.{line.tenant}",
                expected=f"at most {part.accounts_max}",
                found=count,
            )
