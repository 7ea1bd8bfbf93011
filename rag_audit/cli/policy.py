"""`rag-audit policy`: write a policy, and see what it promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from rag_audit.canonical import jcs, read_json
from rag_audit.cli.common import PATH, Group, emit, json_option
from rag_audit.durable import replace_file
from rag_audit.errors import PolicyError
from rag_audit.policy import Policy, draft_policy
from rag_audit.window import MAX_PUBLICATION_BYTES, now_ms


@click.group(cls=Group)
def policy() -> None:
    """Write a window's policy, and see what it promises."""


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as exc:
        raise PolicyError("not a list of integers", field="--gains", expected="1,8,64", found=text) from exc


def _duration(text: str) -> int:
    """Milliseconds of 30s, 15m, 12h or 7d."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if match is None:
        raise PolicyError("not a duration", expected="30s, 15m, 12h or 7d", found=text)
    return int(match[1]) * {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[match[2]]


@policy.command("new")
@click.argument("out", type=PATH)
@click.option("--window", required=True, help="the window's id, e.g. 2026-11")
@click.option(
    "--tenant", "tenants", multiple=True, required=True, metavar="ID=CAPACITY", help="repeat for each tenant"
)
@click.option(
    "--opens-in", default="15m", show_default=True, help="time for the witnesses to cosign before it opens"
)
@click.option("--lasts", default="7d", show_default=True)
@click.option("--n", default=200, show_default=True, help="queries an account")
@click.option("--k-max", default=10, show_default=True, help="largest coalition that the bound covers")
@click.option("--eps-acc", default="4", show_default=True, help="epsilon promised to one account")
@click.option("--delta-acc", default="1e-7", show_default=True)
@click.option("--delta-policy", default="1e-5", show_default=True)
@click.option(
    "--accounts-max", default=16, show_default=True, help="accounts that a tenant may ever have in the window"
)
@click.option("--gains", default="1,8,64", show_default=True, help="noise components")
@click.option("--lattice", default=32, show_default=True, help="R: steps of a score, a power of two")
@click.option("--top-k", default=5, show_default=True)
@click.option(
    "--proving", type=click.Choice(["eager", "on-challenge"]), default="on-challenge", show_default=True
)
@json_option
def new(
    out: Path,
    window: str,
    tenants: tuple[str, ...],
    opens_in: str,
    lasts: str,
    gains: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Write a well-formed policy to OUT, with the usual constants and the derived fields filled in."""
    capacities: dict[str, int] = {}
    for item in tenants:
        name, _, capacity = item.partition("=")
        if not capacity.isdigit() or name in capacities:
            raise PolicyError(
                "not a tenant", field="--tenant", expected="ID=CAPACITY, each id once", found=item
            )
        capacities[name] = int(capacity)
    opens = now_ms() + _duration(opens_in)
    made = draft_policy(window=window, opens_at=opens, closes_at=opens + _duration(lasts), capacities=capacities,
                        gains=_numbers(gains), **options)  # fmt: skip
    made.check()
    replace_file(out, jcs(made.dump()) + b"\n")
    emit({"policy": str(out), "c_policy": made.digest(), **_promise(made)}, as_json)


@policy.command("bounds")
@click.argument("file", type=PATH)
@json_option
def bounds(file: Path, as_json: bool) -> None:
    """All bounds of a policy, with the numbers that a verdict carries."""
    made = Policy.parse(read_json(file, max_bytes=MAX_PUBLICATION_BYTES), field=file.name)
    made.check()
    emit(_promise(made), as_json)


def _promise(made: Policy) -> dict[str, Any]:
    from rag_audit import accounting

    found = accounting.audit_bounds(made.noise.mechanism(), n=made.n, eps_acc=made.eps_acc, delta_acc=made.delta_acc,
                                    k=made.k_max, delta=made.delta_policy)  # fmt: skip
    return {"eps_audit": found.best.eps, "by": found.best.name, "bounds": found.as_json()}
