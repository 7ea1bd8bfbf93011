"""The common part of `attack` and `canary`: the options that name documents and services, and the objects made from
them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_audit._internal.errors import SetupError
from rag_audit.cli.common import estimated, progress, say, verifier_key
from rag_audit.retrieval.inventory import Inventory

if TYPE_CHECKING:
    from rag_audit.lab.attacks.cells import Bench
    from rag_audit.lab.attacks.generators.http import Endpoint
    from rag_audit.lab.attacks.interface import PromptedGenerator
    from rag_audit.lab.attacks.language.model import LanguageModel
    from rag_audit.lab.attacks.mechanisms import Defence
    from rag_audit.lab.attacks.proxy import Proxy
    from rag_audit.lab.attacks.split import Split
    from rag_audit.lab.attacks.targets.stored import StoredReplies
    from rag_audit.lab.attacks.targets.window import WindowService

GGUF = "gguf:"
"""Begins a value of --generator or --proxy that names a model file."""


@dataclass(frozen=True)
class Options:
    """The options of `lab attack run`, and of `lab canary test` as far as it has them."""

    target: str = "engine"
    data: str = "demo"
    out: Path = Path("attacks")
    names: tuple[str, ...] = ()
    others_file: Path | None = None
    own_file: Path | None = None
    members: int | None = None
    mechanisms: tuple[str, ...] = ()
    defences: tuple[Defence, ...] = ()
    accounts: int | None = None
    n: int | None = None
    trials: int = 0
    seed: int = 0
    top_k: int | None = None
    generator: str | None = None
    generator_digest: str | None = None
    proxy: str | None = None
    model: str | None = None
    key_env: str | None = None
    timeout: float = 60.0
    attempts: int = 5
    no_stream: bool = False
    logprobs: bool = False
    parallel: int | None = None
    jobs: int = 1
    folders: tuple[Path, ...] = ()
    public: Path | None = None
    provider: str | None = None
    skip_unreadable: bool = False

    @property
    def k(self) -> int:
        """The accounts of the coalition."""
        return self.accounts or 4

    def endpoint(self, url: str) -> Endpoint:
        """The chat endpoint at an address.

        :raises SetupError: its model is not named, or its key is not in the environment
        """
        from rag_audit.lab.attacks.generators.http import Endpoint

        if self.model is None:
            raise SetupError("a chat endpoint needs the name of its model", field="--model")
        key = None if self.key_env is None else os.environ.get(self.key_env)
        if self.key_env is not None and not key:
            raise SetupError("the chat endpoint's key is not in the environment", field=self.key_env)
        return Endpoint(
            url,
            model=self.model,
            key=key,
            timeout_s=self.timeout,
            attempts=self.attempts,
            stream=not self.no_stream,
            probabilities=self.logprobs,
        )

    def split(self, *, elsewhere: bool) -> Split:
        """The documents, divided.

        :raises AttackError: they are too few, or members and others overlap
        """
        from rag_audit.lab.attacks.split import given_split, make_split, only

        texts = documents_of(self.data, skip_unreadable=self.skip_unreadable)
        if self.others_file is not None:
            own = [] if self.own_file is None else self._texts(self.own_file)
            split = only(given_split(texts, self._texts(self.others_file), own, seed=self.seed), self.members)
        elif elsewhere:
            raise SetupError("the attack needs documents outside of the service", field="--others",
                             hint="--data names the documents that the service has or may have")  # fmt: skip
        else:
            size = self.members or min(1000, 2 * len(texts) // 5)
            split = make_split(texts, members=size, others=size, seed=self.seed)
        if any(split.left_out):
            say(f"omitted: {split.left_out[0]} texts without enough words, {split.left_out[1]} copies")
        return split

    def _texts(self, path: Path) -> list[str]:
        from rag_audit.lab.attacks.split import load_texts

        inventory = Inventory()
        result = load_texts(path, inventory, skip_unreadable=self.skip_unreadable)
        _say_read(inventory)
        return result

    def bench(self, split: Split) -> Bench:
        """The common part of the engines over the split."""
        from rag_audit.lab.attacks import campaign, cells
        from rag_audit.retrieval.embedders import get_embedder

        generator, proxy = self.language_models()
        embedder = get_embedder(query_tokens=512)
        tools = campaign.tools_of(split.own, campaign.Unit(embedder), self.seed, proxy)
        show = None if self.generator is None else lambda: estimated("answers")
        return cells.Bench(split.index, embedder, tools, self.top_k or 5, self.seed, generator, show)

    def language_models(self) -> tuple[PromptedGenerator | None, Proxy | None]:
        """The generator and the proxy model that the options name; None for a baseline.

        :raises SetupError: a model file or llama-cpp-python is missing, or options contradict each other
        :raises AttackError: a model file is not usable
        """
        named = [value for value in (self.generator, self.proxy) if value and value.startswith(GGUF)]
        if named and self.jobs > 1:
            raise SetupError("a model in this process uses all idle processors", field="--jobs", expected=1,
                             actual=self.jobs)  # fmt: skip
        if self.generator_digest is not None and not named:
            raise SetupError("only a model file has a digest", field="--generator-digest",
                             expected=f"--generator {GGUF}PATH")  # fmt: skip
        models = {value: self._language_model(value) for value in dict.fromkeys(named)}
        return self._generator(models), self._proxy(models)

    def _language_model(self, value: str) -> LanguageModel:
        from rag_audit.lab.attacks.language.model import open_model

        return open_model(Path(value.removeprefix(GGUF)), self.generator_digest)

    def _generator(self, models: Mapping[str, LanguageModel]) -> PromptedGenerator | None:
        if self.generator is None:
            return None
        if self.generator in models:
            from rag_audit.lab.attacks.generators.local import LocalGenerator
            from rag_audit.lab.attacks.generators.stored import StoredGenerator

            self.out.mkdir(parents=True, exist_ok=True)
            return StoredGenerator(LocalGenerator(models[self.generator]), self.out / "generated.jsonl")
        if not self.generator.startswith(("http://", "https://")):
            raise SetupError("the option names no generator", field="--generator",
                             expected=f"{GGUF}PATH or https://host/v1", actual=self.generator)  # fmt: skip
        from rag_audit.lab.attacks.generators.http import ChatGenerator

        return ChatGenerator(self.endpoint(self.generator))

    def _proxy(self, models: Mapping[str, LanguageModel]) -> Proxy | None:
        from rag_audit.lab.attacks.proxy import PROXY_NAME

        value = self.proxy or (self.generator if self.generator in models else None) or PROXY_NAME
        if value == PROXY_NAME:
            return None
        if value not in models:
            raise SetupError("the option names no proxy model", field="--proxy",
                             expected=f"{PROXY_NAME} or {GGUF}PATH", actual=value)  # fmt: skip
        from rag_audit.lab.attacks.language.proxy import LanguageProxy

        return LanguageProxy(models[value])


def service_of(o: Options, bench: Bench, documents: dict[int, str]) -> tuple[StoredReplies, dict[str, str]]:
    """A chat endpoint or a window, with stored replies. The second value has the certified bounds in words, and the
    window's name."""
    from rag_audit.lab.attacks.generators.http import ask_chat
    from rag_audit.lab.attacks.interface import Answer, Probe
    from rag_audit.lab.attacks.targets.stored import StoredReplies

    facts, parallel = {"certified": "no figure is certified for a chat endpoint's answers"}, o.parallel or 1
    name = f"{o.target} {o.model}"
    if o.target.startswith(("http://", "https://")):
        endpoint = o.endpoint(o.target)

        def ask(probe: Probe) -> Answer:
            return Answer(ask_chat(endpoint, probe.task))

        label, probabilities = f"chat endpoint, model {endpoint.model}", o.logprobs
    else:
        service = _window(o, bench, documents)
        ask, parallel, name = service.ask, 1, service.name  # the next window may answer at the same socket
        label, probabilities, facts = service.label, service.probabilities, service.facts
    kept = StoredReplies(ask, o.out / "replies.jsonl", label=label, probabilities=probabilities,
                service=name, parallel=parallel, progress=progress("questions"))  # fmt: skip
    return kept, facts


def _window(o: Options, bench: Bench, documents: dict[int, str]) -> WindowService:
    from rag_audit.account.account import Account
    from rag_audit.cli.account import over_socket
    from rag_audit.lab.attacks.cells import Cell
    from rag_audit.lab.attacks.targets.window import WindowService
    from rag_audit.models.publication import Publication

    if o.public is None or o.provider is None or not o.folders:
        raise SetupError("an attack on a window needs its accounts", field="--target",
                         expected="--account, --window and --provider in addition to the"
                                  " socket", actual=o.target)  # fmt: skip
    return WindowService(
        [Account(folder) for folder in o.folders],
        Publication.load(o.public),
        verifier_key(o.provider, field="--provider"),
        over_socket(Path(o.target)),
        bench.engine(Cell("none")).generator,
        documents,
    )


def documents_of(data: str, *, skip_unreadable: bool = False) -> list[str]:
    """The documents that an option names. For a file or folder, the function prints the inventory of read and omitted
    documents.

    :param skip_unreadable: whether a folder's file that cannot be read is omitted; without it the error is raised
    :raises AttackError: there are no documents of that name
    """
    if data == "demo":
        from rag_audit.cli.demo.corpus import collect

        return [document.text for document in collect()]
    from rag_audit.lab.attacks.split import load_data

    inventory = Inventory()
    result = load_data(data, inventory, skip_unreadable=skip_unreadable)
    _say_read(inventory)
    return result


def _say_read(inventory: Inventory) -> None:
    """Print the inventory of a file or folder; a public collection has no inventory."""
    for line in inventory.lines() if inventory.documents else ():
        say(line)
