"""From a retrieved passage to its receipt, and to the verdict of the window that it was retrieved in."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_audit._internal.errors import SchemaError, StoreError
from rag_audit.account.account import Account, StoredReceipt
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.models import Hex32, Identifier, Model, Positive
from rag_audit.models.publication import Publication
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import verify_window
from rag_audit.verify.verdict import Verdict

KEY = "rag_audit"
"""The metadata key for a passage's evidence."""


class Evidence(Model):
    """Where the evidence of an answer is.

    :param window: the window's id
    :param header: the digest of its header
    :param account: the folder of the account that asked, with the receipt
    :param i: the number of the account's question
    :param service: the service's URL, which hands out the window's public folder below `/public`
    """

    window: Identifier
    header: Hex32
    account: str
    i: Positive
    service: str

    @classmethod
    def of(cls, metadata: Mapping[str, object]) -> Evidence:
        """The evidence in a passage's metadata, as any framework hands them on.

        :raises SchemaError: there is no evidence, or it was changed
        """
        value = metadata.get(KEY)
        if not isinstance(value, Mapping):
            raise SchemaError(
                "the metadata names no answer",
                field=KEY,
                hint="use passages from the retrievers of this package",
            )
        return cls.parse(
            {k: v for k, v in value.items() if k not in ("position", "band", "document")}, field=KEY
        )

    def receipt(self) -> StoredReceipt:
        """The account's receipt of the answer. It opens the question, so the account must not pass it on.

        :raises StoreError: the account's folder does not have it any more
        """
        for kept in Account(Path(self.account)).receipts(self.header):
            if kept.i == self.i:
                return kept
        raise StoreError(
            "the account has no receipt of this answer", field=self.account, expected=f"i = {self.i}"
        )

    def verdict(self, window: Path, trust: Path, previous: Sequence[Path] = ()) -> Verdict:
        """Verify the closed window with all of the account's receipts for it.

        :param window: the window's published folder, or its window.json
        :param trust: the reader's own trust.toml, never a copy that came with the window
        :param previous: the windows before; a later window with a document table is UNPROVEN without them
        :raises SchemaError: the folder is of another window
        """
        folder = window if window.is_dir() else window.parent
        if (actual := ClosedWindow.of(WindowFile.load(window), field=str(window)).digest) != self.header:
            raise SchemaError("the passage was retrieved in another window", field=str(window),
                              expected=self.header, actual=actual)  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="rag-audit-receipts-") as temporary:
            account, public = Account(Path(self.account)), Publication.load(folder)
            receipts = account.export_receipts(public, Path(temporary))
            return verify_window(window, trust=trust, receipts=receipts, previous=previous)
