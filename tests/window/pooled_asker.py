"""A provider's process that answers several accounts at once, for a test that kills it.

`python -m tests.window.pooled_asker WINDOW KEY ACCOUNTS NOW`: one thread for each account folder below ACCOUNTS asks the
account's remaining questions, and a line of stdout follows each answer.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_audit.account.account import Account
from rag_audit.attest.window import Window
from rag_audit.log.signing import SigningKey
from rag_audit.models.publication import Publication

WORDS = ("contract", "tort", "bail", "copyright", "prisoner", "law", "court", "money", "harm", "works")


def question(account: str, number: int) -> str:
    """The question of an account with a number, from 1."""
    first = sum(account.encode()) + 3 * number
    return f"{WORDS[first % len(WORDS)]} {WORDS[(first // 3) % len(WORDS)]} {account} {number}"


def ask_all(
    window: Window, accounts: Sequence[Account], verifier: Any, *, said: Any = None
) -> list[Exception]:
    """Every remaining question of each account, in one thread for each account; the errors."""
    publication = Publication.load(window.directory / "public")
    errors: list[Exception] = []

    def send(request: Any) -> Any:
        return json.loads(window.handle(json.loads(request.canonical())).canonical())

    def run(account: Account) -> None:
        try:
            used, granted, _pending = account.used(publication)
            for number in range(used + 1, granted + 1):
                account.ask(publication, question(account.account, number), verifier, send)
                if said is not None:
                    said(f"{account.account} {number}")
        except Exception as exc:
            errors.append(exc)

    threads = [threading.Thread(target=run, args=(account,)) for account in accounts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def main(window: str, key: str, accounts: str, now: str) -> None:
    signing = SigningKey.load(Path(key))
    with Window.resume(Path(window), key=signing, clock=lambda: int(now)) as opened:
        own = [
            Account(folder) for folder in sorted(Path(accounts).iterdir()) if folder.name.startswith("law")
        ]
        errors = ask_all(opened, own, signing.verifier, said=lambda line: print(line, flush=True))
    if errors:
        raise errors[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
