"""The files that `rag-audit init` writes. Each is written whole or not at all, and an existing one stays as it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tomlkit

from rag_audit._internal.canonical import jcs
from rag_audit._internal.clock import now_ms
from rag_audit._internal.durable import create_file, sync_directory
from rag_audit._internal.errors import SetupError, StoreError
from rag_audit.account.account import Account
from rag_audit.cli.choice import choose_mechanism, coalition, reason
from rag_audit.cli.init.answers import FACTS, Answers
from rag_audit.cli.mechanisms import read_mechanisms
from rag_audit.cli.options import read_policy
from rag_audit.cli.trust import REMARKS, requirements, trust_of
from rag_audit.commit.draft import (
    Embedding,
    EstimatorParameters,
    Period,
    PrivacyTarget,
    Tenants,
    draft_policy,
)
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.descriptions import description
from rag_audit.models.policy import OWN_DOCUMENTS, Policy
from rag_audit.models.roster import load_roster
from rag_audit.models.trust import Trust
from rag_audit.models.trust_template import trust_template
from rag_audit.proofs.description import default_system
from rag_audit.proofs.policy import check_policy
from rag_audit.proofs.statements.coalition import MAX_DIMENSION, MAX_RECORDS
from rag_audit.report.policy_text import Schedule, explain
from rag_audit.retrieval.embedders import published_constants
from rag_audit.service.running.config import RunConfig
from rag_audit.verify.case import Status
from rag_audit.verify.policy_check import policy_checks
from rag_audit.witness.witness import Witness

PILOT_WITNESSES = 2
PILOT_RELATION = "operated by the provider, with a key that `rag-audit init` made beside the provider's key"
DAY_MS = 86_400_000
QUERY_TOKENS = 64


def pilot_name(number: int) -> str:
    """The name of a pilot's witness. The name is in its key, so that each cosignature and each report shows it."""
    return f"pilot-{number}-not-independent"


@dataclass(frozen=True)
class Folder:
    """The folder of a service.

    :param path: the folder
    :param answers: the provider's answers, which determine the files
    """

    path: Path
    answers: Answers

    # -- the files -------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[tuple[str, Callable[[Path], object]]]:
        """The files and folders in the order in which they are made, each with a function that makes it."""
        yield "provider.skey", SigningKey.generate(self.answers.name).save
        yield "provider.skey.pub", lambda path: _write(path, f"{self.key}\n")
        if self.answers.pilot:
            for number in range(1, PILOT_WITNESSES + 1):
                yield f"witnesses/pilot-{number}", lambda path, n=number: Witness.init(path, pilot_name(n))  # type: ignore[misc]
        for tenant in self.answers.tenants:
            yield f"accounts/{tenant}", lambda path, t=tenant: Account.create(path, account_of(t), t)  # type: ignore[misc]
        yield (
            "roster.json",
            lambda path: create_file(path, jcs([a.roster_entry.dump() for a in self.accounts])),
        )
        yield "policy.json", lambda path: _write(path, jcs(self.policy().dump()).decode() + "\n")
        yield "policy.json.explained.txt", self._explain
        yield "users.txt", lambda path: _write(path, "\n".join(self.sentences()) + "\n")
        yield "trust.toml", lambda path: _write(path, self.trust_text())
        yield (
            "provider.toml",
            lambda path: _write(path, self.config_text()),
        )  # the last one: the folder is complete

    def complete(self) -> list[str]:
        """Make the missing files and folders.

        :returns: the names of the files and folders that were made
        :raises StoreError: the disk is full, or a file cannot be written; a second call continues
        :raises SetupError: the provider's key has another name, or the trust file would refuse the policy
        """
        made = [name for name, make in self.steps() if create_whole(self.path / name, make)]
        self.check()
        return made

    def check(self) -> None:
        """Check that the files fit together: a verifier with this trust file would pass windows of this policy.

        Outside of a pilot, no account that `init` makes counts as independent. Verifiers add independent accounts to
        their own trust files, so `check` does not expect one.

        :raises RagAuditError: a file cannot be read, or does not fit the others
        """
        RunConfig.load(self.path / "provider.toml").check(now_ms())
        load_roster(self.path / "roster.json")
        policy, trust = self._written_policy(), Trust.load(self.path / "trust.toml")
        for check in policy_checks(policy, trust):
            later = check.id == "receipt.independent" and not self.answers.pilot
            if check.status is not Status.PASS and not later:
                raise SetupError("the trust file would refuse windows of this policy", field=f"trust.toml, {check.id}",
                                 expected=check.expected, actual=check.actual,
                                 hint="answer with fewer accounts or questions, or with --rights; or change"
                                      " policy.json (`rag-audit provider policy new`)")  # fmt: skip

    # -- the values ------------------------------------------------------------------------------------------

    @cached_property
    def key(self) -> VerifierKey:
        """The provider's public key.

        :raises SetupError: the key in the folder has another name than the answers
        """
        key = SigningKey.load(self.path / "provider.skey").verifier
        if key.name != self.answers.name:
            raise SetupError("the folder has a provider's key with another name", field="--name",
                             expected=key.name, actual=self.answers.name,
                             hint=f"give --name {key.name}, or name another folder")  # fmt: skip
        return key

    @property
    def accounts(self) -> list[Account]:
        """The accounts for the first questions, one for each tenant."""
        return [Account(self.path / "accounts" / tenant) for tenant in self.answers.tenants]

    @property
    def witnesses(self) -> list[tuple[VerifierKey, str, str]]:
        """The witnesses: key, and name and value of the field of provider.toml that reaches them."""
        if self.answers.pilot:
            places = [f"witnesses/pilot-{number}" for number in range(1, PILOT_WITNESSES + 1)]
            return [(Witness(self.path / place).vkey, "pilot", place) for place in places]
        return [
            (VerifierKey.parse(w.vkey, field="--witness"), "url", w.url or "") for w in self.answers.witnesses
        ]

    def policy(self) -> Policy:
        """The policy.

        :raises RagAuditError: no policy has these numbers
        """
        answers = self.answers
        model = None if answers.model is None else Path(answers.model)
        published = published_constants(answers.embedder, model)
        mechanism = choose_mechanism(
            rights=answers.rights,
            accounts=answers.accounts,
            questions=answers.questions,
            relevance=published.relevance,
        )
        mechanisms = read_mechanisms([mechanism], answers.capacities, published.relevance)
        for tenant, table in answers.tables.items():
            shape = TableShape(table.rows, table.positions_per_document, table.fresh_rows)
            mechanisms[tenant] = mechanisms[tenant].by_document(shape) or mechanisms[tenant]
        tenants = Tenants(answers.capacities, answers.accounts, None, mechanisms)
        queries = min(len(answers.capacities) * answers.accounts * answers.questions, MAX_RECORDS)
        coalition_proof = (default_system(), queries) if published.dimension <= MAX_DIMENSION else None
        documents = published.document_tokens
        now, p = now_ms(), defaults.THETA.partition(".")[2]
        policy = draft_policy(
            Period("w-1", now, now + DAY_MS),
            tenants,
            PrivacyTarget(answers.questions, coalition(answers.accounts), defaults.EPS_JOINT),
            embedding=Embedding(published.dimension, published.table, (min(QUERY_TOKENS, documents), documents),
                                published.relevance),
            estimator=EstimatorParameters((int(p), 10 ** len(p)), defaults.TAU, coalition_proof=coalition_proof),
            top_k=defaults.TOP_K,
            own_documents=True,  # the table follows from the counted documents
        )  # fmt: skip
        check_policy(policy, published.dimension)
        return policy

    def sentences(self) -> list[str]:
        """The sentences for users, by tenant."""
        policy, lines = self._written_policy(), []
        for tenant in self.answers.tenants:
            mechanism = policy.mechanism_of(tenant)
            own = description(mechanism.name).for_users(
                mechanism, self.answers.accounts, self.answers.questions
            )
            lines += [f"For the users of {tenant}:", *(f"- {sentence}" for sentence in own)]
        lines.append(OWN_DOCUMENTS)
        if self.answers.pilot:
            lines.append(
                "PILOT: the provider operates both witnesses, which are not independent. A verdict about this service"
                " shows that its steps work, and proves nothing to other parties."
            )
        return lines

    def trust_text(self) -> str:
        """The trust file."""
        answers = self.answers
        model = None if answers.model is None else Path(answers.model)
        keys = [key for key, _, _ in self.witnesses]
        verifiers = [VerifierKey.parse(text, field="--verifier") for text in answers.verifiers]
        accounts = [account.roster_entry for account in self.accounts]
        policy = self._written_policy()
        own: dict[str, object] = {"independent": False, "relation": PILOT_RELATION} if answers.pilot else {}
        known: Mapping[str, object] = {
            "quorum": len(keys),
            "provider": {"origin": answers.name, "vkey": str(self.key)},
            "witness": [{"name": key.name, "vkey": str(key)} | own for key in keys],
            "beacon": {"witnesses": [key.name for key in keys]},
            "verifier": [{"name": key.name, "vkey": str(key)} for key in verifiers],
            "account": [{"id": line.account, "key": line.key, "independent": False} for line in accounts],
            "service": {name: value for name in FACTS if (value := getattr(answers, name)) is not None},
        }
        mechanisms = sorted({policy.mechanism(tenant).name for tenant in policy.tenants})
        require = requirements(
            (f"min_k_max={policy.k_max}",),
            answers.embedder,
            model,
            mechanisms,
        )
        dependent = [line.account for line in accounts]
        if answers.pilot:
            dependent += [key.name for key in keys]
        trust = trust_of(known, [], answers.embedder, model, require)
        return trust_template(trust, REMARKS, dependent=dependent)

    def config_text(self) -> str:
        """provider.toml."""
        answers = self.answers
        result = tomlkit.document()
        result.add(
            tomlkit.comment("Written by `rag-audit init`; docs/deploy/provider.toml explains every field.")
        )
        if answers.pilot:
            result.add(tomlkit.comment("PILOT: `rag-audit run` operates the witnesses below itself. They are NOT"
                                       " independent of the provider."))  # fmt: skip
            result.add(tomlkit.comment("For production, make a new folder with `rag-audit init --witness`."))
        for name, value in (("folder", "run"), ("key", "provider.skey"), ("policy", "policy.json"),
                            ("roster", "roster.json")):  # fmt: skip
            result.add(name, value)
        documents = {"vectors": "vectors.sqlite", "embedder": answers.embedder}
        if len(answers.docs) == 1:
            documents = {"folder": os.path.relpath(answers.docs[0], self.path), **documents}
        if answers.one_tenant is not None:
            documents["one_tenant"] = answers.one_tenant
        if answers.model is not None:
            documents["model"] = os.path.relpath(answers.model, self.path)
        schedule: dict[str, object] = {"lasts": answers.lasts, "lead": answers.lead}
        if answers.windows:
            schedule["windows"] = answers.windows
        table = _table({**documents, **({"skip_unreadable": True} if answers.skip_unreadable else {})})
        if len(answers.docs) > 1:
            table.add("folders", _table({Path(d).name: os.path.relpath(d, self.path) for d in answers.docs}))
        result.add("documents", table)
        result.add("schedule", _table(schedule))
        result.add("serve", _table({"http": answers.http}))
        result.add("proving", _table({"records": "challenged" if answers.verifiers else "all"}))
        witnesses = tomlkit.aot()
        for key, field, value in self.witnesses:
            witness = _table({"name": key.name, "vkey": str(key), **({field: value} if value else {})})
            if field == "pilot":
                witness["pilot"].comment("NOT independent of the provider")
            witnesses.append(witness)
        result.add("witness", witnesses)
        return tomlkit.dumps(result)

    def _written_policy(self) -> Policy:
        return read_policy(self.path / "policy.json")

    def _explain(self, path: Path) -> None:
        policy = self._written_policy()
        schedule = Schedule(self.answers.lead, self.answers.lasts)
        _write(path, explain(policy, policy.figures(), reason(self.answers.rights), schedule))


def account_of(tenant: str) -> str:
    """The id of the account that `init` makes for a tenant."""
    return f"{tenant[:100]}-pilot"


def create_whole(path: Path, make: Callable[[Path], object]) -> bool:
    """Make a file or folder, so that it exists whole or not at all. An existing one stays as it is.

    :param make: makes it at the path that it receives
    :returns: whether it was made
    :raises StoreError: it cannot be written
    """
    if path.exists():
        return False
    temporary = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove(temporary)  # of an interrupted call
        make(temporary)
        os.rename(temporary, path)
        sync_directory(path.parent)
    except StoreError as exc:
        raise StoreError(exc.message, field=str(path), actual=exc.actual, hint=AGAIN) from exc
    except OSError as exc:
        raise StoreError.of_os_error(exc, "cannot be written", field=path, hint=AGAIN) from exc
    return True


AGAIN = "free disk space or correct the folder, and repeat the command, which continues"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    create_file(path, text.encode())


def _table(values: Mapping[str, object]) -> tomlkit.items.Table:
    result = tomlkit.table()
    for name, value in values.items():
        result.add(name, value)
    return result
