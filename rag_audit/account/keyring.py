"""An account's keys: the one it was made with, and those that replaced it, each for the windows whose roster has it."""

from __future__ import annotations

from pathlib import Path

from rag_audit.log.signing import SigningKey
from rag_audit.models.publication import Publication

KEY_FILE = "account.skey"


class AccountKeys:
    """The keys in an account's folder. An old key is kept: receipts of its windows are countersigned with it.

    :param directory: the account's folder
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._keys = [SigningKey.load(directory / KEY_FILE)]
        while (path := self._path(len(self._keys) + 1)).exists():
            self._keys.append(SigningKey.load(path))

    @staticmethod
    def create(directory: Path, account: str) -> None:
        """Make the first key.

        :raises StoreError: there is one already
        """
        SigningKey.generate(account).save(directory / KEY_FILE)

    @property
    def newest(self) -> SigningKey:
        """The key that requests for enrolment announce."""
        return self._keys[-1]

    @property
    def before(self) -> SigningKey | None:
        """The key that the newest one replaces."""
        return self._keys[-2] if len(self._keys) > 1 else None

    def of(self, window: Publication, account: str) -> SigningKey:
        """The key that a window's roster has of the account; the newest, if the window has none of them."""
        if len(self._keys) > 1:
            on_roster = {
                line["key"]
                for line in window.roster
                if isinstance(line, dict) and line.get("account") == account
            }
            for key in self._keys:
                if key.verifier.public.hex() in on_roster:
                    return key
        return self.newest

    def renew(self, account: str) -> SigningKey:
        """Make a key that replaces the newest one."""
        key = SigningKey.generate(account)
        key.save(self._path(len(self._keys) + 1))
        self._keys.append(key)
        return key

    def _path(self, number: int) -> Path:
        return self._directory / f"account-{number}.skey"
