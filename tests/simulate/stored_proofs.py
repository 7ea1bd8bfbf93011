"""What was proved once, by the digest of what it proves: proofs have randomness of their own, so none comes out
twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit.proofs.backends.groth16.instance import Instance
from rag_audit.proofs.backends.groth16.keys import proving_key
from rag_audit.proofs.statements.tenant import PublicValues


class ProofMissing(Exception):
    """A proof is missing in the file, and this run may make none."""


class StoredProofs:
    """The stored proofs and keys.

    :param prove: whether a missing proof is made, under this machine's keys
    """

    def __init__(self, path: Path, *, prove: bool) -> None:
        self.path, self.prove = path, prove
        stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"keys": {}, "proofs": {}}
        self._keys, self._proofs = stored["keys"], stored["proofs"]
        self.used: set[str] = set()

    def key(self, instance: Instance) -> Any:
        """The verification key of a circuit, under which all stored proofs of it verify."""
        circuit = instance.digest()
        if circuit not in self._keys:
            if not self.prove:
                raise ProofMissing(f"key of {instance.name}")
            self._keys[circuit] = json.loads(jcs(proving_key(instance).vk))
        self.used.add(circuit)
        return self._keys[circuit]

    def proof(self, kind: Sequence[str], statement: PublicValues, make: Callable[[], Any]) -> Any:
        """The proof of a statement, stored or made now.

        :param kind: proof system, statement and circuit
        """
        return self.other(digest_hex([*kind, repr(statement)]), make)

    def other(self, label: str, make: Callable[[], Any]) -> Any:
        """As `proof`, by a label of one's own."""
        self.used.add(label)
        if label not in self._proofs:
            if not self.prove:
                raise ProofMissing(label)
            self._proofs[label] = json.loads(jcs(make()))
            self.save()
        return json.loads(jcs(self._proofs[label]))

    def save(self) -> None:
        """Write the file, one proof a line so that a change shows as one."""
        parts = []
        for name, values in (("keys", self._keys), ("proofs", self._proofs)):
            lines = ",\n".join(f"{json.dumps(k)}: {jcs(v).decode()}" for k, v in sorted(values.items()))
            parts.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
        self.path.write_text("{" + ",\n".join(parts) + "}\n")

    def drop_unused(self) -> int:
        """Forget the proofs and keys that no case of a whole run used.

        :return: how many proofs and keys the file no longer has
        """
        before = len(self._proofs) + len(self._keys)
        self._proofs = {k: v for k, v in self._proofs.items() if k in self.used}
        self._keys = {k: v for k, v in self._keys.items() if k in self.used}
        self.save()
        return before - len(self._proofs) - len(self._keys)
