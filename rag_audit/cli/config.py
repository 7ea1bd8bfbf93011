"""The options that provider.toml states for all windows: each is the default of the same option of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import click

from rag_audit.cli.options import Command, path_option
from rag_audit.service.running.config import RunConfig

CONFIG = Path("provider.toml")
"""The configuration that commands read if it is in the current folder."""
Value: TypeAlias = str | int | bool | Path | None


def _listens(config: RunConfig) -> dict[str, Value]:
    """The address of `provider serve`, which has one: HTTP where the configuration has HTTP and a socket."""
    serve = config.told.serve
    if serve.http is not None:
        return {"http": serve.http}
    return {"address": config.path(serve.socket or "")}


VALUES: dict[str, Callable[[RunConfig], dict[str, Value]]] = {
    "key": lambda config: {"key": config.path(config.told.key)},
    "header": lambda config: {
        "origin": config.told.origin,
        "policy_file": config.path(config.told.policy),
        "roster": config.path(config.told.roster),
        "given_up": None if (path := config.told.documents.given_up) is None else config.path(path),
        "store": config.told.store if "store" in config.told.model_fields_set else None,
    },
    "documents": lambda config: {
        "docs": None if (folder := config.told.documents.folder) is None else config.path(folder),
        "text_alone": config.told.documents.text_alone,
        "document_column": config.told.documents.document_column,
        "chunk": config.told.documents.chunk,
        "overlap": config.told.documents.overlap,
        "headings": config.told.documents.headings,
        "skip_unreadable": config.told.documents.skip_unreadable,
        "one_tenant": config.told.documents.one_tenant,
    },
    "embedder": lambda config: {
        "name": config.told.documents.embedder,
        "model": config.model,
        "vectors": None if (vectors := config.told.documents.vectors) is None else config.path(vectors),
    },
    "serve": lambda config: {
        **_listens(config),
        "precompute": config.told.serve.precompute,
        "low_memory": config.told.serve.low_memory,
        "noise_mib": config.told.serve.noise_mib,
        "enrolments": None if (kept := config.told.enrolment) is None else config.path(kept.requests),
    },
    "low memory": lambda config: {"low_memory": config.told.serve.low_memory},
    "certify": lambda config: {"certify": config.told.proving.certify},
    "executor": lambda config: {
        "address": config.told.proving.executor,
        "workers": config.told.proving.workers or None,
    },
}
"""The values of a configuration by the parameters of commands, in the groups that commands take. A value of None leaves
the option's own default."""


def configured(*groups: str) -> Callable[[Command], Command]:
    """The option --config of a command whose options have their defaults in provider.toml.

    :param groups: the groups of `VALUES` that the command takes
    """

    def read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
        if ctx.resilient_parsing or (path is None and not CONFIG.exists()):
            return
        config = RunConfig.load(CONFIG if path is None else path)
        values = {name: value for group in groups for name, value in VALUES[group](config).items()}
        ctx.default_map = {name: value for name, value in values.items() if value is not None}

    return path_option(
        "--config",
        expose_value=False,
        is_eager=True,
        callback=read,
        help="the file with the options of all windows, which options given here override"
        f"  [default: {CONFIG}, if the current folder has one]",
    )


def given(ctx: click.Context, *names: str) -> list[str]:
    """The parameters that the command line names itself."""
    return [n for n in names if ctx.get_parameter_source(n) is click.core.ParameterSource.COMMANDLINE]
