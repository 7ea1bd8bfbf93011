"""The resources of a service: `python -m bench.plan --positions N --tenants T --accounts A --queries-a-day Q ..`

The script takes a cost model (`bench.costs`) of one machine and computes:

- cores to prove in full and in sampled mode, and bytes a day;
- memory and cores of the serving processes;
- the cost of verifying;
- the work of the ledger and of the witnesses.

N is the total of all tenants' positions. All tenants have the same size. Tenants above `--shard` positions are divided
into shards; docs/scale.md describes the protocol for shards. The current program already does everything else.

`--check REPORT` compares the model's predictions with measured runs (`whole-..` and `cluster` of a report).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from bench.costs import Model, default_model
from bench.model import Report, ReportError, shown, table
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.proving import MAX_BATCH
from rag_audit.retrieval.noise_pool import READY_BYTES, READY_SLOTS

DAY = 86_400
BASE64 = 4 / 3
MAX_POSITIONS = 1 << 24
"""The maximum for a tenant or a shard: the argument cannot prove a larger index."""
GIB = 1 << 30


@dataclass(frozen=True)
class Service:
    """The size of the service to plan for.

    :param positions: the total over all tenants
    :param gains: gains of the noise; 0 for tenants with sampling instead of noise
    :param sampled: records that a challenge draws from a window; each tenant group has one window a day
    :param batch: records in one proof
    :param shard: the maximum number of positions of one index
    :param memory_gib: memory of one serving machine
    :param noise_mib: the maximum memory of precomputed noise, as `provider serve --noise-memory`
    :param busy: the maximum share of a core that work may use
    :param peak: the ratio of queries in the busiest second to queries in an average second
    """

    positions: int
    tenants: int
    accounts: int
    queries_a_day: int
    gains: int = 3
    sampled: int | None = None
    batch: int = 1
    shard: int = 1 << 20
    memory_gib: float = 24.0
    busy: float = 0.7
    peak: float = 3.0
    listed: int = 5
    noise_mib: int = READY_BYTES >> 20

    def check(self) -> None:
        """:raises ReportError: a number is out of range, or the records of one proof are too many"""
        for name, minimum in (("positions", 1), ("tenants", 1), ("accounts", 1), ("queries_a_day", 1), ("batch", 1),
                            ("shard", 1), ("gains", 0), ("noise_mib", 1)):  # fmt: skip
            if getattr(self, name) < minimum:
                raise ReportError(
                    f"--{name.replace('_', '-')}: expected at least {minimum}, found {getattr(self, name)}"
                )
        if self.sampled is not None and not 1 <= self.sampled <= self.queries_a_day:
            raise ReportError(f"--sampled: expected 1..{self.queries_a_day}, found {self.sampled}")
        if not 0 < self.busy <= 1 or self.peak < 1 or self.memory_gib <= 0:
            raise ReportError("--busy is in (0, 1], --peak at least 1, --memory above 0")
        if self.positions < self.tenants:
            raise ReportError(
                f"--positions: expected one for each of {self.tenants} tenants, found {self.positions}"
            )
        if self.shard > MAX_POSITIONS:
            raise ReportError(f"--shard: expected at most {MAX_POSITIONS} positions, found {self.shard}")
        if self.batch > MAX_BATCH:
            raise ReportError(f"--batch: expected at most {MAX_BATCH} records, found {self.batch}")
        if self.batch > 1 and not self.gains:
            raise ReportError("--batch: tenants that are sampled have no proofs of several records yet")

    @property
    def of_tenant(self) -> int:
        """Return the positions of one tenant."""
        return ceil(self.positions / self.tenants)

    @property
    def shards(self) -> int:
        """Return the number of shards of one tenant."""
        return ceil(self.of_tenant / self.shard)

    @property
    def of_shard(self) -> int:
        return ceil(self.of_tenant / self.shards)


def record_cost(model: Model, service: Service, batch: int, *, low_memory: bool = False) -> float:
    """Return the processor seconds to prove one record: all its shards, A1 and, if there are several shards, the merge.

    :param low_memory: whether a proof of several records is made in low memory
    """
    n, g, shards = service.of_shard, service.gains, service.shards
    if not g:
        own = model["sampled proof"].at(n=n)
    elif batch > 1:
        own = model["batch"].at(n=n, g=g, q=batch) * (model["low memory"].at() if low_memory else 1.0)
    else:
        own = model["noise proof"].at(n=n, g=g) + model["query proof"].at(n=n)
    own += model["query"].at(n=n) + (model["draw"].at(n=n, g=g) if g else 0.0)
    return (
        shards * own
        + model["query embedding"].at()
        + model["besides"].at()
        + (merge_cost(model) if shards > 1 else 0.0)
    )


def merge_cost(model: Model) -> float:
    """Return the cost of a merge: a query proof over the smallest table that the argument has."""
    return model["query proof"].at(n=1024)


def record_bytes(model: Model, service: Service, batch: int) -> float:
    """Return the bytes of one record's proofs in a window file."""
    n, g = service.of_shard, service.gains
    own = model["bytes"].at(n=n, g=g) if g else model["bytes sampled"].at(n=n, g=0)
    if batch > 1:
        own *= model["batch bytes"].at(q=batch)
    merged = model["bytes sampled"].at(n=1024, g=0) if service.shards > 1 else 0.0
    return BASE64 * (service.shards * own + model["query embedding bytes"].at() + merged)


def verify_cost(model: Model, service: Service, records: int, batch: int) -> float:
    """Return the processor seconds to verify the proofs of `records` records, a batch for each tenant."""
    n, g, tenants = service.of_shard, service.gains, min(service.tenants, records)
    each = ceil(records / tenants)
    term = model["verify"] if g else model["verify sampled"]
    own = term.at(n=n, g=g, count=each) / each
    if batch > 1:
        own *= model["batch verify"].at(q=batch)
    merged = model["verify sampled"].at(n=1024, g=0, count=each) / each if service.shards > 1 else 0.0
    return records * (service.shards * own + model["query embedding verify"].at() + merged)


def plan(model: Model, service: Service) -> dict[str, dict[str, float]]:
    """Compute the needs of the service, by topic; seconds are processor seconds of the model's machine."""
    service.check()
    queries, busy = service.queries_a_day, service.busy
    modes = {"full": queries} | ({} if service.sampled is None else {"sampled": service.sampled})
    once = (
        0.0
        if service.gains
        else service.tenants * service.shards * model["sampling proof"].at(n=service.of_shard)
    )
    proving, result, verified = {}, {}, {}
    for mode, records in modes.items():
        batch = service.batch
        seconds = records * record_cost(model, service, batch) + once
        proving[f"{mode}: processor seconds a record"] = record_cost(model, service, batch)
        proving[f"{mode}: cores"] = seconds / DAY / busy
        result[f"{mode}: proofs"] = records * record_bytes(model, service, batch)
        checked = verify_cost(model, service, records, batch)
        verified[f"{mode}: processor seconds for proofs"] = checked
        verified[f"{mode}: cores to verify a day in an hour"] = (
            (checked + queries * model["entry"].at()) / 3600 / busy
        )
    result["entries"] = queries * model["entry bytes"].at()
    verified["processor seconds for entries"] = queries * model["entry"].at()
    serving = _serving(model, service)
    rate = queries / DAY
    return {
        "tenant": {"positions": service.of_tenant, "shards": service.shards, "positions of a shard": service.of_shard},
        "proving": proving | _proving_memory(service),
        "bytes a day": result,
        "serving": serving,
        "opening a window": {
            "processor seconds, embedding aside": service.tenants * service.shards
            * (model["index"].at(n=service.of_shard) + model["texts"].at(n=service.of_shard)),
        },
        "verifying": verified,
        "ledger and witnesses": {
            "appends a second, at the peak": rate * service.peak,
            "ledgers, at what one appends": ceil(rate * service.peak / model["appends"].at()),
            "processor seconds of a witness a window": model["witness"].at(),
            "accounts of one tenant": ceil(service.accounts / service.tenants),
        },
    }  # fmt: skip


def _serving(model: Model, service: Service) -> dict[str, float]:
    """Compute memory and cores of the processes that answer."""
    n, indices = service.of_shard, service.tenants * service.shards
    slot = 4 * n if service.gains else 0
    wanted = slot * min(READY_SLOTS, max(2, ceil(2 * service.accounts / service.tenants)))
    # A process stores at least one slot, whatever its size.
    drawn = max(slot, min(wanted, service.noise_mib << 20))
    base = model["resident"].at(n=0.0)
    own = model["resident"].at(n=n) - base + drawn
    room = service.memory_gib * GIB * service.busy - base
    fit = int(room // own)
    if fit < 1:
        raise ReportError(
            f"one index and its drawn noise take {own / GIB:.1f} GiB to serve, and a machine has room for "
            f"{max(room, 0) / GIB:.1f}: a --shard below {n:,}, or more --memory"
        )
    rate = service.queries_a_day / DAY * service.peak
    draws = model["draw"].at(n=n, g=service.gains) * service.shards if service.gains else 0.0
    each = model["query"].at(n=n) * service.shards
    return {
        "bytes of one index and its drawn noise": own,
        "indices that one machine holds": fit,
        "bytes in all": indices * own + base * ceil(indices / fit),
        "machines, by memory": ceil(indices / fit),
        "processor seconds of a query": each,
        "processor seconds of its noise": draws,
        "cores, at the peak": rate * (each + draws) / service.busy,
    }


def _proving_memory(service: Service) -> dict[str, float]:
    """Return the bytes of one job, as the program computes them before it starts."""
    n, gains = service.of_shard, [1] * service.gains
    if service.batch > 1:
        needed = [memory.batch_bytes(n, gains, service.batch, low_memory=low) for low in (False, True)]
    else:
        needed = [memory.query_proof_bytes(n, low_memory=low) for low in (False, True)]
        if gains:
            certified = [memory.drawn_proof_bytes(n, gains, low_memory=low) for low in (False, True)]
            needed = [max(pair) for pair in zip(needed, certified, strict=True)]
    return {"bytes of a job": needed[0], "bytes of a job, in low memory": needed[1]}


def check(model: Model, report: Report) -> Iterator[tuple[str, str, float, float]]:
    """Compare the model with measured runs: (measurement, figure, predicted, measured)."""
    for result in report.results:
        kind = result.name.partition("-")[0]
        if kind not in ("whole", "cluster"):
            continue
        figures = result.figures
        n, g = float(figures["documents"]), float(len(figures["gains"]))
        service = Service(int(n), 1, 1, 1000, gains=int(g), shard=MAX_POSITIONS)
        one = record_cost(model, service, 1)
        if kind == "cluster":
            yield (
                result.name,
                "prove, idle processes aside, processor seconds",
                figures["records"] * one,
                figures["prove"]["of_jobs"],
            )
            continue
        opened, served, proved = figures["open"], figures["serve"], figures["prove"]["cpu_seconds"]
        own = model["index"].at(n=n) + model["texts"].at(n=n)
        yield result.name, "open, embedding aside, processor seconds", own, opened["cpu_seconds"]
        yield (
            result.name,
            "read back, processor seconds",
            model["resume"].at(n=n),
            served["resume"]["cpu_seconds"],
        )
        yield (
            result.name,
            "resident while serving, bytes",
            model["resident"].at(n=n),
            served["resident_bytes"],
        )
        yield (
            result.name,
            "query, processor seconds",
            model["query"].at(n=n),
            served["query_ms"]["cpu_median"] / 1000,
        )
        yield (
            result.name,
            "noise of a slot, processor seconds",
            model["draw"].at(n=n, g=g),
            served["draw"]["cpu_seconds"],
        )
        if "alone" in proved:
            yield result.name, "prove alone, processor seconds", (figures["alone"] - 1) * one, proved["alone"]
        if "batch" in proved:
            count = figures["batch"]
            low = "--low-memory" in result.command
            joined = count * record_cost(model, service, count, low_memory=low)
            yield result.name, f"prove {count} in a batch, processor seconds", joined, proved["batch"]


def main(arguments: list[str] | None = None) -> int:
    """Plan, or check, and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("positions", "tenants", "accounts", "queries-a-day"):
        options.add_argument(f"--{name}", type=int)
    options.add_argument(
        "--gains", type=int, default=3, help="gains of the noise; 0 for sampled tenants without it"
    )
    options.add_argument(
        "--sampled", type=int, metavar="S", help="records that a verifier's challenges draw a day"
    )
    options.add_argument("--batch", type=int, default=1, metavar="Q", help="records in one proof")
    options.add_argument(
        "--shard", type=int, default=1 << 20, metavar="N", help="the most positions of one index"
    )
    options.add_argument("--memory", type=float, default=24.0, metavar="GIB", help="of one serving machine")
    options.add_argument(
        "--noise-memory", type=int, default=READY_BYTES >> 20, metavar="MIB", help="of noise drawn ahead"
    )
    options.add_argument(
        "--busy", type=float, default=0.7, help="the share of a core and of memory that work may fill"
    )
    options.add_argument(
        "--peak", type=float, default=3.0, help="queries in the busiest second, over the average"
    )
    options.add_argument("--model", type=Path, help="a file of bench.costs; the newest of bench/models")
    options.add_argument(
        "--check", type=Path, metavar="REPORT", help="say what was predicted of measured runs"
    )
    options.add_argument("--json", action="store_true", help="print one JSON object")
    args = options.parse_args(arguments)
    try:
        model = Model.load(args.model or default_model())
        if args.check:
            return _print_check(model, Report.load(args.check))
        named = (args.positions, args.tenants, args.accounts, args.queries_a_day)
        if None in named:
            options.error("--positions, --tenants, --accounts and --queries-a-day are needed")
        service = Service(
            *named, args.gains, args.sampled, args.batch, args.shard, args.memory, args.busy, args.peak,
            noise_mib=args.noise_memory,
        )  # fmt: skip
        result = plan(model, service)
    except ReportError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    if args.json:
        print(
            json.dumps(
                {"model": {"created": model.created, "machine": dict(model.machine)}, **result}, indent=1
            )
        )
        return 0
    print(f"On cores of {model.machine.get('cpu')}, measured {model.created}.\n")
    rows = [[topic, name, shown(value)] for topic, part in result.items() for name, value in part.items()]
    print("\n".join(table(["", "figure", "value"], rows)))
    for name in _beyond(model, service):
        print(
            f"\nbench: {name} is extrapolated from at most {model[name].largest:,.0f} positions",
            file=sys.stderr,
        )
    return 0


def _beyond(model: Model, service: Service) -> list[str]:
    wanted = ("noise proof", "query proof", "resident") if service.gains else ("sampled proof", "resident")
    return [name for name in wanted if model[name].largest < service.of_shard]


def _print_check(model: Model, report: Report) -> int:
    rows: list[list[str]] = []
    result: list[tuple[str, str, Any, Any]] = list(check(model, report))
    for name, figure, predicted, measured in result:
        rows.append([name, figure, shown(predicted), shown(measured), f"{predicted / measured:.2f}"])
    if not rows:
        raise ReportError("the report has no whole-.. or cluster measurement")
    print("\n".join(table(["run", "figure", "predicted", "measured", "predicted / measured"], rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
